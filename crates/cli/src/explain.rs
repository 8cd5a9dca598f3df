//! `countersign explain`

use std::fs;
use std::path::PathBuf;

use countersign::bitcoin::message;
use countersign::{AnyVerified, Policy, Registry, ByteCoverage, Summary, Warnings};
use serde::Serialize;

use crate::input::{CaseArgs, Failure, TrustArgs, Values, usage};
use crate::{OK, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign explain --registry registry.json --request request.json --response response.json
  countersign explain --registry registry.json --case case.json --order record.json --bytes
  curl -s https://service.example/v2/orders/... | countersign explain --registry registry.json --request q.json --response r.json --order -";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    case: CaseArgs,
    /// Shows which bytes of the answer each line stands for.
    #[arg(long)]
    bytes: bool,
    /// Shows the payment URI of a Bitcoin or Litecoin deposit as a QR code behind the summary.
    #[arg(long, conflicts_with = "json")]
    qr: bool,
    /// Writes the same QR code to an SVG file.
    #[arg(long, value_name = "FILE")]
    qr_svg: Option<PathBuf>,
}

#[derive(Serialize)]
struct Explained<'a> {
    id: Option<&'a str>,
    ok: bool,
    family: &'a str,
    order_id: &'a str,
    summary: &'a Summary,
    warnings: &'a Warnings,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<&'a [ByteCoverage]>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let texts = args.case.read(None)?;
    texts.judge(|values| explain(args, values, &registry, &policy, json))
}

fn explain(args: &Args, values: &Values<'_>, registry: &Registry, policy: &Policy, json: bool) -> Result<u8, Failure> {
    let order = values.case()?.verify(registry, policy)?;
    let summary = order.summary();
    let coverage = args.bytes.then(|| order.coverage());
    if json {
        show::json(&Explained {
            id: values.id(),
            ok: true,
            family: order.family().name(),
            order_id: order.order_id(),
            summary: &summary,
            warnings: order.warnings(),
            coverage: coverage.as_deref(),
        })?;
    } else {
        show::summary(&summary, coverage.as_deref())?;
        show::warnings(order.warnings())?;
    }
    if args.qr || args.qr_svg.is_some() {
        qr(args, &order)?;
    }
    Ok(OK)
}

fn qr(args: &Args, order: &AnyVerified) -> Result<(), Failure> {
    let AnyVerified::Bitcoin(order) = order else { return Err(usage("only a Bitcoin or Litecoin deposit has a payment URI")) };
    let uri = order.deposit().uri();
    let too_long = || usage("the payment URI is too long for a QR code");
    if args.qr {
        show::raw(&message::qr_terminal(&uri).ok_or_else(too_long)?)?;
    }
    if let Some(path) = &args.qr_svg {
        let svg = message::qr_svg(&uri).ok_or_else(too_long)?;
        fs::write(path, svg).map_err(|error| usage(format_args!("{}: {error}", path.display())))?;
    }
    Ok(())
}
