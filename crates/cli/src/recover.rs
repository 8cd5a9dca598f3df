//! `countersign recover`: redeems or refunds from an order record alone. `refund --self` and `redeem --self` use the same code
//! (`docs/spec/batch.md#recovery-contexts`).

mod arguments;

use std::path::{Path, PathBuf};

use countersign::bitcoin::Key;
use countersign::bitcoin::recover::{Funding, FundingStatus, InstantRefund, RecordedHtlc};
use countersign::json::{self, Cursor};
use countersign::recover::{self, Leg, Recovery, RecoveryTerms};
use countersign::{
    Code, Family, OrderRecord, Policy, Refusal, Registry, Role, U256, Unsigned, Warnings,
    report::{Amount, Hex},
    trust::Asset,
};
use countersign_client::Http;
use countersign_json::line::Request;
use countersign_node::{Nodes, Speed};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::accepted::Accepted;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::files;
use crate::input::TrustArgs;
use crate::key::GivenKey;
use crate::psbt::PsbtArgs;
use crate::session::Session;
use crate::{service, show, state};

pub(crate) use self::arguments::SigningArgs;

const EXAMPLES: &str = "Examples:
  countersign recover --registry registry.json --order record.json --wallet wallet.json --key-file key.txt              # refunds
  countersign recover ... --leg destination --secret-file secret.txt --wallet wallet.json --key-file key.txt            # redeems
  countersign recover ... --wallet wallet.json --json | jq -r '.requests[0].digest'                                     # external signer
  countersign recover ... --wallet wallet.json --signature refund=0x...

The wallet context has the members that fund an order of the family, and `sender`, the account that pays the fee (by default the payee):";

const NOTES: &str = "Solana's message is a legacy one, or of version 1 with these additional limits:
  {\"config\": {\"compute_unit_limit\": 100000, \"loaded_accounts_data_size_limit\": 65536}}

Bitcoin and Litecoin also accept flags in place of a wallet context:
  countersign recover --registry registry.json --order record.json --funding <txid>:0:50000 --to bc1q... --fee-rate 2.5
  countersign recover ... --key-file refund-key.txt --json | jq -r .artefacts.refund.signed
  countersign recover --registry registry.json --order record.json --funding <txid>:0:50000 --to bc1q... --instant --hash <hash> --key-env KEY

Of several outputs, the one that covers the amount is spent alone. A redemption of less, or at a rate that not every node relays, is refused,
because it makes the secret public: --accept-less and --accept-low-fee allow it. --accept-high-fee allows a fee above the payout.

A refund is valid only after the timelock has expired, so check the chain first. Broadcasting a redemption makes the secret public.";

const SECRET_BECOMES_PUBLIC: &str = "broadcasting this redemption makes the secret public, and with it the other leg can be redeemed too: broadcast \
                                     it now, or check the chain again before you do";
const VERIFIED: &str = "verified against the stored request and response";
const NOT_VERIFIED: &str = "not verified against your request, only consistent with itself and the registry: check who is paid";

/// Returns the examples of the command's help, with a wallet context of each family.
pub(crate) fn examples() -> String {
    let contexts = countersign_json::recovery_examples().iter().map(|(chains, context)| format!("  {chains:<11}{context}\n"));
    format!("{EXAMPLES}\n{}\n{NOTES}", contexts.collect::<String>())
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The order record, with or without its envelope; `-` is stdin.
    #[arg(help_heading = "The order", long, value_name = "FILE")]
    order: PathBuf,
    /// Which leg of the order: source is what you paid, destination is what you receive.
    #[arg(help_heading = "The order", long, value_enum, default_value = "source")]
    leg: LegArg,
    /// Redeems with the secret in this file (64 hex digits). Without it, the leg is refunded.
    #[arg(help_heading = "The order", long, value_name = "FILE", conflicts_with = "instant")]
    secret_file: Option<PathBuf>,
    /// Bitcoin and Litecoin: signs an instant refund, which the solver has to sign too, and prints the body of the PATCH request.
    #[arg(help_heading = "The order", long, conflicts_with_all = ["wallet", "signature", "signatures"])]
    instant: bool,
    /// A sighash that the service wants signed, one for each output. It is refused unless it equals the one computed here. Can be given
    /// several times.
    #[arg(help_heading = "The order", long, value_name = "HEX", requires = "instant")]
    hash: Vec<String>,
    /// Bitcoin and Litecoin: only verifies the presigned instant refund of the record, for the outputs that the record contains.
    #[arg(help_heading = "The order", long,
          conflicts_with_all = ["instant", "secret_file", "funding", "wallet", "signature", "signatures"])]
    presigned: bool,
    #[command(flatten, next_help_heading = "Your own transaction")]
    signing: SigningArgs,
    #[command(flatten, next_help_heading = "Trust")]
    trust: TrustArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LegArg {
    Source,
    Destination,
}

impl From<LegArg> for Leg {
    fn from(leg: LegArg) -> Self {
        match leg {
            LegArg::Source => Self::Source,
            LegArg::Destination => Self::Destination,
        }
    }
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let record = state::read_record(&args.order)?;
    let leg = Leg::from(args.leg);
    if args.instant || args.presigned {
        let asset = leg.pinned(leg.of(&record), &registry)?;
        return instant_refund(args, &RecordedHtlc::new(&record, leg, &registry)?, asset, session);
    }
    let secret = args.secret_file.as_deref().map(|path| read_secret(path, session)).transpose()?;
    LegRecovery::new(&record, leg, secret.as_deref(), &registry)?.finish(
        None,
        &Context { signing: &args.signing, policy: &policy, chain: None },
        || Ok(()),
        session,
    )
}

/// What a recovery is built with.
pub(crate) struct Context<'c> {
    pub(crate) signing: &'c SigningArgs,
    pub(crate) policy: &'c Policy,
    /// The chain, if nonce, fees and coins are read from it; `None` if the wallet context has them.
    pub(crate) chain: Option<ConnectedChain>,
}

/// The chain that a recovery is built from, in place of a wallet context.
pub(crate) struct ConnectedChain {
    pub(crate) nodes: Nodes<Http>,
    pub(crate) name: String,
    /// The owner's address on the chain, as requested; `None` if it is not stored.
    pub(crate) owner: Option<String>,
    pub(crate) speed: Speed,
    /// Whether others may know the secret already, so that nothing may delay the redemption.
    pub(crate) is_urgent: bool,
}

impl ConnectedChain {
    /// Prepares a recovery. On Bitcoin-like chains and on Starknet it belongs to the owner; elsewhere the key's account sends it.
    fn prepare(
        &self,
        recovery: &Recovery,
        key: Option<&GivenKey>,
        to: Option<&str>,
        context: &Context<'_>,
        session: &Session,
    ) -> Result<Unsigned, Failure> {
        let key = key.filter(|_| recovery.family() != Family::Bitcoin).map(|key| key.parse(recovery.family())).transpose()?;
        let sender = key.and_then(|key| key.account()).map(|account| account.to_string());
        let account = to.map(str::to_owned).or(sender).or_else(|| self.owner.clone());
        let account = account.ok_or_else(|| usage("no address: pass yours with --to, or a wallet context with --wallet"))?;
        let (nodes, chain, policy) = (&self.nodes, &self.name, context.policy);
        service::run(session, async {
            Ok(match self.is_urgent {
                true => nodes.prepare_urgent(recovery, chain, &account, self.speed, policy).await?,
                false => nodes.prepare_recovery(recovery, chain, &account, self.speed, policy).await?,
            })
        })
    }
}

/// The recovery of one leg.
pub(crate) struct LegRecovery {
    recovery: Recovery,
    /// The amount that it pays.
    amount: Amount,
    /// The key that signs if no other is given: from the rescue phrase or the configuration file.
    default_key: Option<GivenKey>,
}

impl LegRecovery {
    /// Returns the redemption or the refund.
    pub(crate) const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Creates the redemption if a secret is given, otherwise the refund.
    pub(crate) fn new(record: &OrderRecord, leg: Leg, secret: Option<&[u8; 32]>, registry: &Registry) -> Result<Self, Failure> {
        let recovery = match secret {
            Some(secret) => recover::redeem(record, leg, secret, registry)?,
            None => recover::refund(record, leg, registry)?,
        };
        let amount = leg.pinned(leg.of(record), registry)?.amount(recovery.terms().amount);
        Ok(Self { recovery, amount, default_key: None })
    }

    /// Sets the key that signs if no other is given.
    pub(crate) fn with_default_key(mut self, key: Option<GivenKey>) -> Self {
        self.default_key = key;
        self
    }

    /// Prepares the recovery, signs it with the given key or signatures, and prints it. `verified` contains the warnings of a record that
    /// was verified against the order's request and response; `None` for any other record.
    ///
    /// `leaving` is called before a redemption is printed, because the secret may be public from then on.
    pub(crate) fn finish(
        &self,
        verified: Option<&Warnings>,
        context: &Context<'_>,
        leaving: impl FnOnce() -> Result<(), Failure>,
        session: &Session,
    ) -> Result<u8, Failure> {
        let order = prepare(&self.recovery, self.default_key.as_ref(), context, session)?;
        // An unsigned redemption contains the secret too.
        if self.recovery.terms().role == Role::Redeem {
            leaving()?;
        }
        self.print(verified, order, &context.signing.psbt, session)
    }

    fn print(&self, verified: Option<&Warnings>, order: Unsigned, psbt: &PsbtArgs, session: &Session) -> Result<u8, Failure> {
        let Self { recovery, amount, .. } = self;
        let psbt = psbt.write(&order)?;
        let RecoveryTerms { role, payee, .. } = recovery.terms();
        let payee = payee.to_string();
        let missing = order.missing();
        let requests = order.requests().into_iter().filter(|request| missing.contains(&request.id)).map(Request::from);
        let requests: Vec<_> = requests.collect();
        let secret_becomes_public = role == Role::Redeem;
        if session.json {
            let mut shown = serde_json::to_value(Recovered {
                accepted: Accepted::prepared(&order).with_requests(requests).with_psbt(psbt),
                role: role.to_string(),
                payee: &payee,
                amount: amount.base_units.to_string(),
                record_verified: verified.is_some(),
                record_warnings: verified,
                secret_becomes_public,
                record_funding: record_funding(recovery),
            })
            .map_err(usage)?;
            if let Some(members) = shown.as_object_mut() {
                members.insert("transactions".to_owned(), serde_json::to_value(transactions(order)).map_err(usage)?);
            }
            show::json(&shown)?;
            return Ok(OK);
        }
        show::field("record", if verified.is_some() { VERIFIED } else { NOT_VERIFIED })?;
        if let Some(warnings) = verified {
            show::warnings(warnings)?;
        }
        if let Recovery::Bitcoin(recovery) = recovery
            && let status @ FundingStatus::Partial { .. } = recovery.htlc.funding_status()
        {
            show::field("record", &status.to_string())?;
        }
        show::field("amount", &amount.to_string())?;
        if secret_becomes_public {
            show::field("secret", SECRET_BECOMES_PUBLIC)?;
        }
        let accepted = Accepted::prepared(&order);
        if requests.is_empty() { accepted } else { accepted.with_requests(requests).with_psbt(psbt) }.print(false)?;
        if !missing.is_empty()
            && let Unsigned::Bitcoin(order) = &order
            && let Some(payment) = &order.payloads().payment
        {
            show::field("psbt", &payment.signed_psbt().to_string())?;
        }
        for Transaction { id, bytes } in transactions(order) {
            show::field("id", &id)?;
            if let Some(bytes) = bytes {
                show::field("bytes", &bytes.to_string())?;
            }
        }
        Ok(OK)
    }
}

/// Prepares a recovery, and signs it with the given key or signatures.
fn prepare(recovery: &Recovery, default_key: Option<&GivenKey>, context: &Context<'_>, session: &Session) -> Result<Unsigned, Failure> {
    let Context { signing: args, policy, chain } = context;
    let given = args.key.read(session)?;
    let given = given.as_ref();
    let mut order = match chain {
        Some(chain) => {
            let key = given.or(default_key);
            let mut order = chain.prepare(recovery, key, args.to.as_deref(), context, session)?;
            if let Some(key) = key.filter(|_| given.is_some() || args.signatures.is_empty()) {
                sign(&mut order, key)?;
            }
            order
        }
        None => {
            let text = args.wallet(recovery.family())?;
            let wallet = json::parse(&text).map_err(|refusal| refusal.with_prefix("/wallet"))?;
            let wallet = Cursor::root(&wallet, "/wallet");
            let mut order = countersign_json::prepare_recovery(recovery, wallet, policy)?;
            match (given, wallet.object()?.get("secret_key")) {
                (Some(key), _) => sign(&mut order, key)?,
                (None, Some(key)) => sign(&mut order, &GivenKey::of_wallet(Zeroizing::new(key.secret()?.to_owned())))?,
                (None, None) => {
                    if let Some(key) = default_key.filter(|_| args.signatures.is_empty()) {
                        sign(&mut order, key)?;
                    }
                }
            }
            order
        }
    };
    if !args.signatures.is_empty() {
        args.signatures.attach(&mut order)?;
    }
    Ok(order)
}

/// Signs what the key can sign. Coins that pay the fee can have another key.
fn sign(order: &mut Unsigned, key: &GivenKey) -> Result<(), Refusal> {
    let family = order.family();
    order.sign(&key.parse(family)?).map_err(|refusal| refusal.with_prefix("/wallet/secret_key"))
}

/// A recovery as JSON.
#[derive(Serialize)]
struct Recovered<'a> {
    #[serde(flatten)]
    accepted: Accepted<'a>,
    role: String,
    payee: &'a str,
    amount: String,
    record_verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    record_warnings: Option<&'a Warnings>,
    secret_becomes_public: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    record_funding: Option<RecordFunding>,
}

/// How much of the amount has been paid, according to the record.
#[derive(Serialize)]
struct RecordFunding {
    status: &'static str,
    filled: String,
    missing: String,
}

fn record_funding(recovery: &Recovery) -> Option<RecordFunding> {
    let Recovery::Bitcoin(recovery) = recovery else { return None };
    let (status, missing) = match recovery.htlc.funding_status() {
        FundingStatus::Unfunded => ("unfunded", recovery.htlc.amount.to_sat()),
        FundingStatus::Partial { missing } => ("partial", missing.to_sat()),
        _ => ("full", 0),
    };
    Some(RecordFunding { status, filled: recovery.htlc.filled.to_sat().to_string(), missing: missing.to_string() })
}

/// A fully signed transaction. It has no bytes on Starknet, whose nodes accept the artefact as JSON.
#[derive(Serialize)]
struct Transaction {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<Hex>,
}

/// Returns the transactions to broadcast; none while a signature is missing.
fn transactions(order: Unsigned) -> Vec<Transaction> {
    let has_bytes = order.family() != Family::Starknet;
    let Ok(signed) = order.finish() else { return Vec::new() };
    let transactions = signed.transactions().into_iter();
    transactions.map(|one| Transaction { id: one.id, bytes: has_bytes.then_some(Hex(one.bytes)) }).collect()
}

/// Reads a secret from a file of 64 hex digits.
pub(crate) fn read_secret(path: &Path, session: &Session) -> Result<Zeroizing<[u8; 32]>, Failure> {
    let text = files::read_private(path, session)?;
    let mut secret = Zeroizing::new([0; 32]);
    let digits = std::str::from_utf8(&text).ok().map(str::trim).unwrap_or_default();
    hex::decode_to_slice(digits, secret.as_mut_slice()).map_err(|_| Refusal::new(Code::SecretWrong, "/secret"))?;
    Ok(secret)
}

/// Signs the instant refund of a leg on a Bitcoin-like chain, or prints the requests to an external signer.
fn instant_refund(args: &Args, htlc: &RecordedHtlc, asset: &Asset, session: &Session) -> Result<u8, Failure> {
    let signing = &args.signing;
    let to = signing.to.as_deref().ok_or_else(|| usage("no address: pass yours with --to"))?;
    let key = signing
        .key
        .read(session)?
        .map(|key| Key::parse(&key).map_err(|error| key.explain(Refusal::new(error, "/key"), Family::Bitcoin)))
        .transpose()?;
    if args.presigned {
        return hashes(&InstantRefund::verify_presigned(htlc, to)?, asset, session);
    }
    let funding = |text: &String| Funding::parse(text).map_err(|error| Refusal::new(error, "/funding").with_actual(text));
    let fundings = signing.funding.iter().map(funding).collect::<Result<Vec<_>, _>>()?;
    let refund = InstantRefund::new(htlc, &fundings, to)?;
    report(&refund.warnings, session);
    if !args.hash.is_empty() {
        let texts: Vec<_> = args.hash.iter().map(String::as_str).collect();
        refund.check_hashes(&texts).map_err(|refusal| refusal.with_prefix("/hashes"))?;
    }
    match key {
        Some(key) => show::json(&refund.sign(&key).map_err(|refusal| refusal.with_prefix("/key"))?).map(|()| OK).map_err(Failure::from),
        None => hashes(&refund, asset, session),
    }
}

/// Reports what the owner should know about an instant refund, whose output is only what the service or a signer reads.
pub(crate) fn report(warnings: &Warnings, session: &Session) {
    for warning in warnings {
        session.progress(&format!("warning {warning}"));
    }
}

/// Prints the requests to an external signer.
fn hashes(refund: &InstantRefund, asset: &Asset, session: &Session) -> Result<u8, Failure> {
    let requests: Vec<_> = refund.requests().into_iter().map(Request::from).collect();
    if session.json {
        show::json(&requests)?;
        return Ok(OK);
    }
    for (request, output) in requests.iter().zip(&refund.transaction.output) {
        let amount = asset.amount(U256::from(output.value.to_sat()));
        show::heading(&format!("instant refund of {amount}: sign {} with {}", request.id, request.signer))?;
        show::field("digest", &request.digest.to_string())?;
    }
    Ok(OK)
}
