//! `countersign sign`

use crate::accepted::Accepted;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::input::{CaseArgs, TrustArgs, WalletArgs};
use crate::key::{KeyArgs, configured_key, sign};
use crate::page::PageArgs;
use crate::session::Session;

pub(crate) const EXAMPLES: &str = "Examples:
  countersign sign --registry registry.json --case case.json --key-file key.txt
  countersign sign --registry registry.json --case case.json --key-env WALLET_KEY --json
  pass show wallet | countersign sign --registry registry.json --case case.json --key-stdin";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    case: CaseArgs,
    #[command(flatten)]
    wallet: WalletArgs,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    page: PageArgs,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read_to_pay()?;
    let texts = args.case.read(Some(&args.wallet), "")?;
    texts.open(|values| {
        let case = values.case()?;
        let order = match args.key.read(session)? {
            Some(key) => {
                let mut order = case.prepare(&registry, &policy)?;
                sign(&mut order, &key)?;
                order
            }
            None => match case.run(&registry, &policy)? {
                (order, true) => order,
                (mut order, false) => {
                    let key = configured_key(Some(order.chain()), session)?;
                    let key = key.ok_or_else(|| usage("no key: pass --key-file, --key-env or --key-stdin"))?;
                    sign(&mut order, &key)?;
                    order
                }
            },
        };
        args.page.write(&case, &registry, &policy, Some((&order).into()), None, session)?;
        Accepted::prepared(&order).with_id(values.id()).print(session.json)?;
        Ok(OK)
    })
}
