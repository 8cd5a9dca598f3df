//! `countersign prepare`

use countersign::{AnyUnsigned, Policy, Registry, SigningRequest, Summary, Warnings};
use serde::Serialize;

use crate::input::{CaseArgs, Failure, TrustArgs, Values, WalletArgs};
use crate::{OK, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign prepare --registry registry.json --request request.json --response response.json --wallet wallet.json
  countersign prepare --registry registry.json --case case.json --json | jq -r '.requests[].digest'";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    case: CaseArgs,
    #[command(flatten)]
    wallet: WalletArgs,
}

#[derive(Serialize)]
struct Prepared<'a> {
    id: Option<&'a str>,
    ok: bool,
    family: &'a str,
    order_id: &'a str,
    artefacts: &'a AnyUnsigned,
    requests: &'a [SigningRequest],
    summary: &'a Summary,
    warnings: &'a Warnings,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let texts = args.case.read(Some(&args.wallet))?;
    texts.judge(|values| prepare(values, &registry, &policy, json))
}

fn prepare(values: &Values<'_>, registry: &Registry, policy: &Policy, json: bool) -> Result<u8, Failure> {
    let order = values.case()?.prepare(registry, policy)?;
    let (summary, requests) = (order.summary(), order.requests());
    if json {
        show::json(&Prepared {
            id: values.id(),
            ok: true,
            family: order.family().name(),
            order_id: order.order_id(),
            artefacts: &order,
            requests: &requests,
            summary: &summary,
            warnings: order.warnings(),
        })?;
        return Ok(OK);
    }
    show::summary(&summary, None)?;
    show::warnings(order.warnings())?;
    for request in &requests {
        show::heading(&format!("sign {} with {}", request.name, request.signer))?;
        show::field("payload", &request.payload.to_string())?;
        show::field("digest", &request.digest.to_string())?;
    }
    Ok(OK)
}
