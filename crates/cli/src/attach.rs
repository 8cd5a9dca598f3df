//! `countersign attach`

use std::path::PathBuf;

use countersign::{Code, Family, Refusal, Unsigned};

use crate::accepted::Accepted;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::files;
use crate::input::{CaseArgs, TrustArgs, WalletArgs};
use crate::page::PageArgs;
use crate::session::Session;

pub(crate) const EXAMPLES: &str = "Examples:
  countersign attach --registry registry.json --case case.json --signature initiate=0x... --signature approval=0x...
  countersign attach --registry registry.json --case case.json --signatures signatures.json
  countersign attach --registry registry.json --case case.json --signatures signed.psbt
  echo '{\"typed_data\": {\"contract\": \"0x...\"}}' | countersign attach --registry registry.json --case case.json --signatures -";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    case: CaseArgs,
    #[command(flatten)]
    wallet: WalletArgs,
    #[command(flatten)]
    signatures: SignatureArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Signatures of external signers.
#[derive(clap::Args)]
pub(crate) struct SignatureArgs {
    /// The name of a request and its signature. Can be given several times; on Tron also with one name, for each key of a permission.
    #[arg(long, value_name = "NAME=SIGNATURE", conflicts_with = "signatures")]
    signature: Vec<String>,
    /// A JSON object that maps request names to signatures. On Bitcoin and Litecoin also the file of the signer: a signed PSBT (version 0 or
    /// 2, finalized or not) or the signed transaction, in bytes, base64 or hex. `-` is stdin.
    #[arg(long, value_name = "FILE")]
    signatures: Option<PathBuf>,
}

impl SignatureArgs {
    pub(crate) const fn is_empty(&self) -> bool {
        self.signature.is_empty() && self.signatures.is_none()
    }

    /// Verifies the signatures and attaches them.
    pub(crate) fn attach(&self, order: &mut Unsigned) -> Result<(), Failure> {
        let file = match &self.signatures {
            Some(path) => files::read(path)?.to_vec(),
            None => by_name(&self.signature, order.family() == Family::Tron)?,
        };
        Ok(countersign_json::attach_file(order, &file)?)
    }
}

/// Names `match` where a wallet may have changed what it signed. Of a gasless message nothing may be changed.
fn with_match(refusal: Refusal) -> Refusal {
    let is_other = matches!(refusal.code(), Code::SignatureMismatch | Code::TransactionMismatch | Code::PsbtMismatch);
    if !is_other || ["typed_data", "gasless"].iter().any(|name| refusal.location().contains(name)) {
        return refusal;
    }
    let reason = refusal.reason().to_owned();
    refusal.with_reason(format!(
        "{reason}; if the wallet chose its own blockhash, nonce, fees or coins, pass the transaction that it signed to `countersign match`"
    ))
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    if args.signatures.is_empty() {
        return Err(usage("no signature: pass --signature or --signatures"));
    }
    let (registry, policy) = args.trust.read_to_pay()?;
    let texts = args.case.read(Some(&args.wallet), "")?;
    texts.open(|values| {
        let case = values.case()?;
        let mut order = case.prepare(&registry, &policy)?;
        args.signatures.attach(&mut order).map_err(|failure| match failure {
            Failure::Refused(refusal) => Failure::Refused(with_match(refusal)),
            other => other,
        })?;
        args.page.write(&case, &registry, &policy, Some((&order).into()), None, session)?;
        Accepted::prepared(&order).with_id(values.id()).print(session.json)?;
        Ok(OK)
    })
}

/// Converts `NAME=SIGNATURE` pairs to a JSON object. A repeated name becomes an array if several keys may sign. Otherwise it is a usage error.
fn by_name(pairs: &[String], several: bool) -> Result<Vec<u8>, Failure> {
    let mut object = serde_json::Map::new();
    for pair in pairs {
        let (name, signature) = pair.split_once('=').ok_or_else(|| usage("a signature must have the form NAME=SIGNATURE"))?;
        match object.get_mut(name) {
            None => drop(object.insert(name.to_owned(), signature.into())),
            Some(_) if !several => return Err(usage(format_args!("there are two signatures for {name}"))),
            Some(serde_json::Value::Array(list)) => list.push(signature.into()),
            Some(first) => *first = serde_json::json!([first.take(), signature]),
        }
    }
    serde_json::to_vec(&object).map_err(usage)
}
