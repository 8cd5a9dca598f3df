//! `countersign quote`

use countersign::AssetId;
use countersign::wire::{BasisPoints, Quote};
use countersign_client::{QuoteAmount, QuoteRequest};

use crate::amount::{self, units};
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::input::RegistryArgs;
use crate::session::Session;
use crate::{service, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign quote bitcoin:btc ethereum:usdc 50000
  countersign quote bitcoin:btc ethereum:usdc '0.0005 btc' --registry registry.json
  countersign quote ethereum:usdc bitcoin:btc --receive 50000 --affiliate-fee 30 --json";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Source asset, `<chain>:<symbol>`.
    from: String,
    /// Destination asset, `<chain>:<symbol>`.
    to: String,
    /// Amount to pay: base units, or whole units with the symbol (`1.5 usdc`). Whole units need the registry.
    #[arg(required_unless_present = "receive")]
    amount: Option<String>,
    /// Amount to receive, in place of an amount to pay.
    #[arg(long, value_name = "AMOUNT", conflicts_with = "amount")]
    receive: Option<String>,
    /// Affiliate fee, in basis points.
    #[arg(long, value_name = "BPS")]
    affiliate_fee: Option<u64>,
    /// Allowed slippage, in basis points.
    #[arg(long, value_name = "BPS")]
    slippage: Option<u64>,
    /// Includes quotes that exceed the available liquidity.
    #[arg(long)]
    indicative: bool,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let (from, to) = (asset(&args.from)?, asset(&args.to)?);
    let registry = args.registry.read()?;
    let units = |text: &str, asset| units(text, asset, registry.as_ref());
    let amount = match (&args.amount, &args.receive) {
        (_, Some(receive)) => QuoteAmount::To(units(receive, &to)?),
        (Some(amount), None) => QuoteAmount::From(units(amount, &from)?),
        (None, None) => return Err(usage("no amount: pass an amount to pay, or --receive")),
    };
    let mut request = QuoteRequest::new(from, to, amount);
    request.affiliate_fee = args.affiliate_fee.map(BasisPoints::new);
    request.slippage = args.slippage.map(BasisPoints::new);
    request.indicative = args.indicative;
    let client = args.service.client(session)?;
    let answer = service::run(session, async { Ok(client.quote(&request).await?) })?;
    if session.json {
        show::answer(&answer.body)?;
        return Ok(OK);
    }
    let number = |number: Option<u64>, unit: &str| number.map_or_else(|| "-".to_owned(), |number| format!("{number} {unit}"));
    let row = |quote: &Quote| {
        vec![
            quote.solver_id.clone(),
            amount::shown(quote.source.amount, &quote.source.asset, registry.as_ref()),
            amount::shown(quote.destination.amount, &quote.destination.asset, registry.as_ref()),
            number(quote.fee.map(BasisPoints::get), "bps"),
            quote.fixed_fee.clone().unwrap_or_else(|| "-".to_owned()),
            number(quote.estimated_time, "s"),
        ]
    };
    show::table(
        &["solver id", "source", "destination", "fee", "fixed fee", "estimated time"],
        &answer.value.iter().map(row).collect::<Vec<_>>(),
    )?;
    Ok(OK)
}

pub(crate) fn asset(text: &str) -> Result<AssetId, Failure> {
    AssetId::parse(text).map_err(|error| match text.contains(':') {
        true => usage(format_args!("{text}: {error}")),
        // The symbol alone is what people write first.
        false => usage(format_args!("{text}: an asset is named with its chain, such as base:usdc; `countersign assets` lists them")),
    })
}
