//! `countersign quote`

use countersign::wire::Quote;
use countersign::{AssetId, U256, number};
use countersign_client::{QuoteAmount, QuoteRequest};

use crate::input::{Failure, usage};
use crate::{OK, service, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign quote bitcoin:btc ethereum:usdc 50000
  countersign quote ethereum:usdc bitcoin:btc --receive 50000 --affiliate-fee 30 --json";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    service: service::ServiceArgs,
    /// Source asset, `<chain>:<symbol>`.
    from: String,
    /// Destination asset.
    to: String,
    /// Base units to pay.
    #[arg(required_unless_present = "receive")]
    amount: Option<String>,
    /// Base units to receive, instead of an amount to pay.
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

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let amount = match (&args.amount, &args.receive) {
        (_, Some(receive)) => QuoteAmount::To(units(receive)?),
        (Some(amount), None) => QuoteAmount::From(units(amount)?),
        (None, None) => return Err(usage("name an amount")),
    };
    let mut request = QuoteRequest::new(asset(&args.from)?, asset(&args.to)?, amount);
    request.affiliate_fee = args.affiliate_fee;
    request.slippage = args.slippage;
    request.indicative = args.indicative;
    let client = args.service.client()?;
    let answer = service::run(async { Ok(client.quote(&request).await?) })?;
    if json {
        show::answer(&answer.body)?;
        return Ok(OK);
    }
    let number = |number: Option<u64>, unit: &str| number.map_or_else(|| "-".to_owned(), |number| format!("{number} {unit}"));
    let row = |quote: &Quote| {
        vec![
            quote.solver_id.clone(),
            quote.source.amount.to_string(),
            quote.destination.amount.to_string(),
            number(quote.fee, "bps"),
            quote.fixed_fee.clone().unwrap_or_else(|| "-".to_owned()),
            number(quote.estimated_time, "s"),
        ]
    };
    show::table(&["solver", "pay", "get", "fee", "fixed fee", "time"], &answer.value.iter().map(row).collect::<Vec<_>>())?;
    Ok(OK)
}

pub(crate) fn asset(text: &str) -> Result<AssetId, Failure> {
    AssetId::parse(text).map_err(|error| usage(format_args!("{text}: {error}")))
}

/// Parses base units: a decimal integer, not zero.
pub(crate) fn units(text: &str) -> Result<U256, Failure> {
    let units = number::decimal(text).map_err(|error| usage(format_args!("{text}: {error}")))?;
    if units.is_zero() { Err(usage("the amount is zero")) } else { Ok(units) }
}
