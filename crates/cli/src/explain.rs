//! `countersign explain`

use std::fs;
use std::path::PathBuf;

use countersign::bitcoin::uri;
use countersign::{Code, Policy, Registry, Verified};
use countersign_view::Sentence;

use crate::accepted::Accepted;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::input::{CaseArgs, Texts, TrustArgs};
use crate::page::PageArgs;
use crate::session::Session;
use crate::state::StateArgs;
use crate::{orders, receipt, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign explain --registry registry.json --request request.json --response response.json
  countersign explain --registry registry.json --case case.json --order record.json --bytes
  countersign explain --registry registry.json --case case.json --html order.html
  countersign explain --registry registry.json --request request.json --response response.json --receipt receipt.json
  countersign explain 4784d9c7                        # an order that this program created, as it was paid, and how it ended
  curl -s https://service.example/v2/orders/... | countersign explain --registry registry.json --request q.json --response r.json --order -";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    case: CaseArgs,
    /// An order of the state directory, by its id or its first digits: shows it as it was verified before it was paid, and how it ended.
    #[arg(value_name = "ORDER", conflicts_with_all = ["case", "request", "response", "order"])]
    stored: Option<String>,
    #[command(flatten)]
    state: StateArgs,
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
    if let Some(id) = &args.stored {
        return stored(args, id, session);
    }
    let (registry, policy) = args.trust.read_to_pay()?;
    show_documents(args, &args.case.read(None, "; or an order of `countersign orders` by its id")?, &registry, &policy, None, session)
}

/// Shows an order that was created here, with the documents, the pins and the policy that it was paid with. What the service states today,
/// such as a secret that is public by now, has no part in that.
fn stored(args: &Args, id: &str, session: &Session) -> Result<u8, Failure> {
    let (id, state) = (args.state.id(id)?, args.state.open()?);
    let kept = state.find(&id)?.ok_or_else(|| {
        let show = session.commands.with_places(&["order", "show", id.as_str()]);
        usage(format_args!("order {id} was not created here, so its request and response are not known: its record is shown by: {show}"))
    })?;
    let request = serde_json::to_vec(kept.swap.request()).map_err(usage)?;
    let texts = Texts::of_order(&request, kept.swap.response(), kept.record.as_deref());
    let ending = orders::of(&state, &kept, session)?;
    let (registry, policy) = args.trust.of_order(&kept)?;
    let shown = show_documents(args, &texts, &registry, &policy, Some(&ending), session);
    // The id of a case is no member of an order's documents.
    shown.map_err(|failure| match failure {
        Failure::RefusedCase(_, refusal) if kept.may_be_paid() => Failure::RefusedAfterPaying(refusal),
        Failure::RefusedCase(_, refusal) => Failure::Refused(refusal),
        other => other,
    })
}

fn show_documents(
    args: &Args,
    texts: &Texts,
    registry: &Registry,
    policy: &Policy,
    ending: Option<&orders::Order>,
    session: &Session,
) -> Result<u8, Failure> {
    let mut is_parsed = false;
    let answer = texts.open(|values| {
        is_parsed = true;
        let case = values.case();
        let page = case.as_ref().map_or(Ok(()), |case| args.page.write(case, registry, policy, None, ending, session));
        let verified = case.and_then(|case| case.verify(registry, policy));
        args.receipt.write(texts, registry, policy, verified.as_ref().err(), session)?;
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
        if let Some(ending) = ending {
            accepted = accepted.with_ending(ending);
        }
        // What became of a stored order is known.
        accepted = accepted.with_past(past(&order).filter(|_| ending.is_none()));
        accepted.print(session.json)?;
        if args.qr || args.qr_svg.is_some() {
            qr(args, &order)?;
        }
        Ok(OK)
    });
    // A document that is not JSON is refused before the closure is called.
    if let (false, Err(Failure::RefusedCase(_, refusal))) = (is_parsed, &answer) {
        args.receipt.write(texts, registry, policy, Some(refusal), session)?;
    }
    answer
}

/// Returns why the order can no longer be paid; `None` if it can be, or without a record.
fn past(order: &Verified) -> Option<String> {
    let refusal = order.check_deadline(show::now()).err()?;
    (refusal.code() == Code::OrderExpired).then(|| refusal.reason().to_owned())
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
