//! `countersign prepare`

use countersign::Family;
use countersign_json::line::Request;
use countersign_view::hashes::{Safe, SafeTxGas, SafeVersion, hash_cards};

use crate::accepted::Accepted;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::input::{CaseArgs, TrustArgs, WalletArgs};
use crate::page::{PageArgs, Prepared};
use crate::psbt::PsbtArgs;
use crate::session::Session;

pub(crate) const EXAMPLES: &str = "Examples:
  countersign prepare --registry registry.json --request request.json --response response.json --wallet wallet.json
  countersign prepare --registry registry.json --case case.json --psbt deposit.psbt
  countersign prepare --registry registry.json --case case.json --hashes
  countersign prepare --registry registry.json --case case.json --safe-nonce 12 --safe-version 1.3.0
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
    #[command(flatten)]
    psbt: PsbtArgs,
    /// Adds what hardware wallets that sign blindly show, in their own spelling, to compare with the screen.
    #[arg(long)]
    hashes: bool,
    /// The sender is a Safe, whose next transaction has this nonce: adds the hashes that Safe and its owners' devices show.
    #[arg(long, value_name = "N")]
    safe_nonce: Option<u64>,
    /// The version of the Safe.
    #[arg(long, value_name = "VERSION", requires = "safe_nonce", default_value = "1.4.1")]
    safe_version: SafeVersion,
    /// The `safeTxGas` that Safe shows, or `call` for the gas limit of each call.
    #[arg(long, value_name = "GAS", requires = "safe_nonce", default_value = "0")]
    safe_tx_gas: SafeTxGas,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read_to_pay()?;
    let texts = args.case.read(Some(&args.wallet), "")?;
    texts.open(|values| {
        let case = values.case()?;
        let order = case.prepare(&registry, &policy)?;
        if args.safe_nonce.is_some() && order.family() != Family::Evm {
            return Err(usage("--safe-nonce is for an order whose source is an EVM chain"));
        }
        let safe = args.safe_nonce.map(|nonce| Safe { version: args.safe_version, nonce, safe_tx_gas: args.safe_tx_gas });
        args.page.write(&case, &registry, &policy, Some(Prepared { order: &order, safe }), None, session)?;
        let requests = order.requests().into_iter().map(Request::from).collect();
        let psbt = args.psbt.write(&order)?;
        let mut accepted = Accepted::prepared(&order).with_id(values.id()).with_requests(requests).with_psbt(psbt);
        if args.hashes || safe.is_some() {
            let mut cards = hash_cards(&order);
            if let Some(safe) = safe {
                safe.add_to(&mut cards, &order);
            }
            accepted = accepted.with_hashes(cards);
        }
        accepted.print(session.json)?;
        Ok(OK)
    })
}
