//! `countersign explain`

use std::fs;
use std::path::PathBuf;

use countersign::Verified;
use countersign::bitcoin::uri;
use countersign_view::Sentence;

use crate::accepted::Accepted;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::input::{CaseArgs, TrustArgs};
use crate::page::PageArgs;
use crate::receipt;
use crate::session::Session;
use crate::show;

pub(crate) const EXAMPLES: &str = "Examples:
  countersign explain --registry registry.json --request request.json --response response.json
  countersign explain --registry registry.json --case case.json --order record.json --bytes
  countersign explain --registry registry.json --case case.json --html order.html
  countersign explain --registry registry.json --request request.json --response response.json --receipt receipt.json
  curl -s https://service.example/v2/orders/... | countersign explain --registry registry.json --request q.json --response r.json --order -";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    case: CaseArgs,
    /// Shows the bytes of the response that each line describes.
    #[arg(long)]
    bytes: bool,
    /// Shows the payment URI of a Bitcoin or Litecoin deposit as a QR code below the summary.
    #[arg(long, conflicts_with = "json")]
    qr: bool,
    /// Writes the same QR code to an SVG file.
    #[arg(long, value_name = "FILE")]
    qr_svg: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    receipt: receipt::WriteArgs,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read_to_pay()?;
    let texts = args.case.read(None)?;
    let mut is_parsed = false;
    let answer = texts.open(|values| {
        is_parsed = true;
        let case = values.case();
        let page = case.as_ref().map_or(Ok(()), |case| args.page.write(case, &registry, &policy, None));
        let verified = case.and_then(|case| case.verify(&registry, &policy));
        args.receipt.write(&texts, &registry, &policy, verified.as_ref().err(), session)?;
        let order = match (verified, page) {
            (Ok(order), page) => page.map(|()| order)?,
            (Err(refusal), page) => {
                // The verdict comes first, and decides the exit code.
                if let Err(failure) = page {
                    session.progress(&format!("no page was written: {}", failure.message()));
                }
                return Err(refusal.into());
            }
        };
        let sentence = Sentence::new(&order.terms(), order.warnings());
        let mut accepted = Accepted::verified(&order).with_id(values.id()).with_sentence(&sentence, &args.page.catalogue());
        if args.bytes {
            accepted = accepted.with_coverage(order.coverage());
        }
        accepted.print(session.json)?;
        if args.qr || args.qr_svg.is_some() {
            qr(args, &order)?;
        }
        Ok(OK)
    });
    // A document that is not JSON is refused before the closure is called.
    if let (false, Err(Failure::RefusedCase(_, refusal))) = (is_parsed, &answer) {
        args.receipt.write(&texts, &registry, &policy, Some(refusal), session)?;
    }
    answer
}

fn qr(args: &Args, order: &Verified) -> Result<(), Failure> {
    let Verified::Bitcoin(order) = order else { return Err(usage("only a Bitcoin or Litecoin deposit has a payment URI")) };
    let uri = order.deposit().uri();
    let too_long = || usage("the payment URI is too long for a QR code");
    if args.qr {
        show::raw(&uri::qr_terminal(&uri).ok_or_else(too_long)?)?;
    }
    if let Some(path) = &args.qr_svg {
        let svg = uri::qr_svg(&uri).ok_or_else(too_long)?;
        fs::write(path, svg).map_err(|error| usage(format_args!("{}: {error}", path.display())))?;
    }
    Ok(())
}
