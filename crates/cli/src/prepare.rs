//! `countersign prepare`

use countersign_json::line::Request;
use countersign_view::hashes::hash_cards;

use crate::accepted::Accepted;
use crate::exit::OK;
use crate::failure::Failure;
use crate::input::{CaseArgs, TrustArgs, WalletArgs};
use crate::page::PageArgs;
use crate::session::Session;

pub(crate) const EXAMPLES: &str = "Examples:
  countersign prepare --registry registry.json --request request.json --response response.json --wallet wallet.json
  countersign prepare --registry registry.json --case case.json --hashes
  countersign prepare --registry registry.json --case case.json --json | jq -r '.requests[].digest'";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    case: CaseArgs,
    #[command(flatten)]
    wallet: WalletArgs,
    #[command(flatten)]
    page: PageArgs,
    /// Adds what hardware wallets that sign blindly show, in their own spelling, to compare with the screen.
    #[arg(long)]
    hashes: bool,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let texts = args.case.read(Some(&args.wallet))?;
    texts.open(|values| {
        let case = values.case()?;
        let order = case.prepare(&registry, &policy)?;
        args.page.write(&case, &registry, &policy, Some(&order))?;
        let requests = order.requests().into_iter().map(Request::from).collect();
        let mut accepted = Accepted::prepared(&order).with_id(values.id()).with_requests(requests);
        if args.hashes {
            accepted = accepted.with_hashes(hash_cards(&order));
        }
        accepted.print(session.json)?;
        Ok(OK)
    })
}
