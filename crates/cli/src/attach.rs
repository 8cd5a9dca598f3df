//! `countersign attach`

use std::path::PathBuf;

use countersign::json::{self, Node};

use crate::OK;
use crate::accepted::Accepted;
use crate::input::{self, CaseArgs, Failure, TrustArgs, WalletArgs, usage};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign attach --registry registry.json --case case.json --signature initiate=0x... --signature approval=0x...
  countersign attach --registry registry.json --case case.json --signatures signatures.json
  echo '{\"typed_data\": {\"contract\": \"0x...\"}}' | countersign attach --registry registry.json --case case.json --signatures -";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    case: CaseArgs,
    #[command(flatten)]
    wallet: WalletArgs,
    /// A signature and the name of its request. Can be given several times.
    #[arg(long, value_name = "NAME=SIGNATURE", conflicts_with = "signatures", required_unless_present = "signatures")]
    signature: Vec<String>,
    /// An object from request name to signature; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    signatures: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let texts = args.case.read(Some(&args.wallet))?;
    texts.open(|values| {
        let mut order = values.case()?.prepare(&registry, &policy)?;
        let text = match &args.signatures {
            Some(path) => input::read(path)?.to_vec(),
            None => by_name(&args.signature)?,
        };
        let signatures = json::parse(&text).map_err(|refusal| refusal.under("/signatures"))?;
        countersign_batch::attach(&mut order, Node::root(&signatures, "/signatures"))?;
        Accepted::prepared(&order).with_id(values.id()).print(json)?;
        Ok(OK)
    })
}

/// Parses `NAME=SIGNATURE` pairs into an object from request name to signature; a repeated name is a usage error.
fn by_name(pairs: &[String]) -> Result<Vec<u8>, Failure> {
    let mut object = serde_json::Map::new();
    for pair in pairs {
        let (name, signature) = pair.split_once('=').ok_or_else(|| usage("a signature has the form NAME=SIGNATURE"))?;
        if object.insert(name.to_owned(), signature.into()).is_some() {
            return Err(usage(format_args!("two signatures for {name}")));
        }
    }
    serde_json::to_vec(&object).map_err(usage)
}
