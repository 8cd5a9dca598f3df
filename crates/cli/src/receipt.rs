//! `countersign check-receipt`, and the receipts of `countersign explain`.

use std::path::PathBuf;

use countersign::text::quote_untrusted;
use countersign::{Policy, Refusal, Registry};
use countersign_view::receipt::{Check, Difference, OwnLimit, Receipt, ReceiptKey, Verdict, program};
use serde::Serialize;

use crate::exit::{OK, REFUSED};
use crate::failure::{Failure, described, usage};
use crate::files;
use crate::input::{Texts, TrustArgs};
use crate::key::key_from;
use crate::session::Session;
use crate::show;

pub(crate) const EXAMPLES: &str = "Examples:
  countersign explain --registry registry.json --request request.json --response response.json --receipt receipt.json
  countersign check-receipt --registry registry.json receipt.json
  countersign check-receipt --registry registry.json receipt.json --require-policy
  countersign check-receipt --registry registry.json receipt.json --signer d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// Where a receipt is written, and who signs it.
#[derive(clap::Args)]
pub(crate) struct WriteArgs {
    /// Writes a receipt to a new file: documents, digest of the registry, policy, verdict and hashes. Never a wallet context or a key.
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Signs the receipt with an Ed25519 key: a file with a seed of 32 bytes in hex.
    #[arg(long, value_name = "FILE", requires = "receipt")]
    receipt_key_file: Option<PathBuf>,
}

impl WriteArgs {
    /// Writes the receipt, if one is asked for, before anything is printed. A refusal is reported even if its receipt cannot be written.
    pub(crate) fn write(
        &self,
        texts: &Texts,
        registry: &Registry,
        policy: &Policy,
        refusal: Option<&Refusal>,
        session: &Session,
    ) -> Result<(), Failure> {
        let Some(path) = &self.receipt else { return Ok(()) };
        let code = refusal.map(|refusal| refusal.code().name());
        let written = self.make(texts, registry, policy, code, session).and_then(|receipt| files::create_private(path, &receipt.to_json()));
        match written {
            Ok(()) => session.progress(&format!("the receipt was written to {}", path.display())),
            Err(failure) if refusal.is_some() => session.progress(&format!("no receipt was written: {}", failure.message())),
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    fn make(&self, texts: &Texts, registry: &Registry, policy: &Policy, code: Option<&str>, session: &Session) -> Result<Receipt, Failure> {
        let apart = "pass the documents as separate files, with --request and --response";
        let documents = texts.documents().ok_or_else(|| usage(format_args!("no documents can be cut out of the case file; {apart}")))?;
        let refused = |refusal: Refusal| usage(format_args!("no receipt: {}", described(&refusal)));
        let mut receipt = Receipt::new(&documents, registry, policy).map_err(refused)?;
        if receipt.verdict().code() != code {
            return Err(usage(format_args!("the case file was refused for something beside its documents; {apart}")));
        }
        if let Some(path) = &self.receipt_key_file {
            let key = key_from(path, session)?;
            let wrong = |refusal: Refusal| usage(key.mistake().unwrap_or_else(|| format!("{}: {}", key.origin(), described(&refusal))));
            receipt.sign(&ReceiptKey::parse(&key).map_err(wrong)?);
        }
        Ok(receipt)
    }
}

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    /// Requires that the receipt was made under your own policy: that of `--policy`, which implies this, or of the configuration file, else
    /// the default one. Without it, a receipt is checked under its own policy, which is shown.
    #[arg(long)]
    require_policy: bool,
    /// The receipt; `-` is stdin.
    #[arg(value_name = "FILE")]
    receipt: PathBuf,
    /// Requires a signature by this public key: 32 bytes in hex. Without it, a signature must be valid, and none is required.
    #[arg(long, value_name = "HEX", value_parser = public_key)]
    signer: Option<[u8; 32]>,
}

fn public_key(text: &str) -> Result<[u8; 32], String> {
    let mut bytes = [0; 32];
    let decoded = hex::decode_to_slice(text.strip_prefix("0x").unwrap_or(text), &mut bytes);
    decoded.map(|()| bytes).map_err(|_| "not a public key of 32 bytes in hex".to_owned())
}

/// The policy of a receipt, as JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum PolicyReport<'a> {
    Default(&'static str),
    Own(&'a [OwnLimit]),
}

/// What was found, as JSON.
#[derive(Serialize)]
struct Checked<'a> {
    ok: bool,
    receipt: &'static str,
    program: &'a str,
    digest: &'a str,
    signer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a Verdict>,
    /// `default`, or the members of the receipt's policy that differ.
    policy: PolicyReport<'a>,
    differences: &'a [Difference],
    advice: Option<&'a str>,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let receipt = Receipt::from_json(&files::read(&args.receipt)?)
        .map_err(|refusal| usage(format_args!("{}: {}; take the file as it was written", args.receipt.display(), described(&refusal))))?;
    let check = if args.require_policy || args.trust.has_policy() {
        receipt.check_with_policy(&policy, &registry, args.signer)
    } else {
        receipt.check(&registry, args.signer)
    };
    let (is_proven, advice, own_policy) = (check.is_proven(), advice(&receipt, &check), receipt.own_limits());
    if session.json {
        show::json(&Checked {
            ok: is_proven,
            receipt: if is_proven { "proven" } else { "not proven" },
            program: receipt.program(),
            digest: receipt.digest(),
            signer: check.signer(),
            verdict: is_proven.then(|| receipt.verdict()),
            policy: if own_policy.is_empty() { PolicyReport::Default("default") } else { PolicyReport::Own(&own_policy) },
            differences: check.differences(),
            advice: advice.as_deref(),
        })?;
    } else {
        print(&receipt, &check, &own_policy, advice.as_deref())?;
    }
    Ok(if is_proven { OK } else { REFUSED })
}

/// Returns what to do about a difference that has an innocent cause.
fn advice(receipt: &Receipt, check: &Check) -> Option<String> {
    if check.differences().iter().any(|difference| difference.at == "/registry") {
        return Some("the receipt belongs to another registry: pass the one that was pinned at the time".to_owned());
    }
    if check.differences().iter().all(|difference| difference.at.starts_with("/policy/")) && !check.is_proven() {
        return Some("the receipt was made under another policy than yours: what it proves holds under its own limits only".to_owned());
    }
    // Any other difference means that the file was changed.
    let is_worded = |difference: &Difference| ["/verdict", "/hashes"].iter().any(|part| difference.at.starts_with(part));
    let is_older = !check.is_proven() && receipt.program() != program() && check.differences().iter().all(is_worded);
    is_older.then(|| format!("the receipt was written by {}, and this is {}: check it with that version", receipt.written_by(), program()))
}

fn print(receipt: &Receipt, check: &Check, own_policy: &[OwnLimit], advice: Option<&str>) -> Result<(), Failure> {
    show::field("receipt", if check.is_proven() { "proven" } else { "not proven" })?;
    show::field("program", &receipt.written_by())?;
    show::field("digest", &quote_untrusted(receipt.digest()))?;
    if own_policy.is_empty() {
        show::field("policy", "default")?;
    }
    own_policy.iter().try_for_each(|limit| show::field("policy", &limit.to_string()))?;
    let unsigned = if receipt.has_signature() { "none: the signature is not valid" } else { "none: the receipt is not signed" };
    show::field("signer", check.signer().unwrap_or(unsigned))?;
    for Difference { at, receipt, computed, .. } in check.differences().iter().map(Difference::quoted) {
        show::field("at", &at)?;
        show::field("receipt", &receipt)?;
        show::field("computed", &computed)?;
    }
    advice.iter().try_for_each(|advice| show::field("advice", advice))?;
    if !check.is_proven() {
        return Ok(());
    }
    match receipt.verdict() {
        Verdict::Accepted { summary, warnings, .. } => {
            summary.iter().try_for_each(|line| show::field("verdict", line))?;
            warnings.iter().try_for_each(|code| show::field("warning", code))?;
        }
        Verdict::Refused { code, at, expected, got, .. } => {
            show::field("refused", code)?;
            show::field("where", &quote_untrusted(if at.is_empty() { "/" } else { at }))?;
            expected.iter().try_for_each(|value| show::field("expected", value))?;
            got.iter().try_for_each(|value| show::field("got", &quote_untrusted(value)))?;
        }
        _ => {}
    }
    Ok(())
}
