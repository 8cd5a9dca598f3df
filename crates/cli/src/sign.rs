//! `countersign sign`

use countersign::AnySigned;
use countersign::{Summary, Warnings};
use serde::Serialize;

use crate::input::{CaseArgs, Failure, KeyArgs, TrustArgs, WalletArgs, usage};
use crate::{OK, show};

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
}

#[derive(Serialize)]
struct Signed<'a> {
    /// Of a case only.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Option<&'a str>>,
    ok: bool,
    family: &'a str,
    order_id: &'a str,
    artefacts: &'a AnySigned,
    summary: &'a Summary,
    warnings: &'a Warnings,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let texts = args.case.read(Some(&args.wallet))?;
    texts.judge(|values| {
        let case = values.case()?;
        let signed = match args.key.read()? {
            Some(key) => case.prepare(&registry, &policy)?.sign(&key)?,
            None => match case.run(&registry, &policy)? {
                countersign::case::Prepared::Signed(signed) => signed,
                _ => return Err(usage("no key: name a source with --key-file, --key-env or --key-stdin")),
            },
        };
        print(Some(values.id()), &signed, json)
    })
}

pub(crate) fn print(id: Option<Option<&str>>, signed: &AnySigned, json: bool) -> Result<u8, Failure> {
    if json {
        show::json(&Signed {
            id,
            ok: true,
            family: signed.family().name(),
            order_id: signed.order_id(),
            artefacts: signed,
            summary: signed.summary(),
            warnings: signed.warnings(),
        })?;
        return Ok(OK);
    }
    show::summary(signed.summary(), None)?;
    show::warnings(signed.warnings())?;
    show::heading("signed")?;
    show::artefacts(&serde_json::to_value(signed).map_err(usage)?, "")?;
    Ok(OK)
}
