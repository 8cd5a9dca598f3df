//! `countersign bump`: pays a deposit that is not in a block again, with the same coins and a higher fee.

use countersign::{BroadcastTransaction, Code, Family, Proposal, Refusal, Unsigned};
use countersign_client::driver::{Delivery, Entry, Event, OrderState, OrderStore as _, Purpose, SignedFunding};
use countersign_node::NodeError;
use serde::Serialize;

use crate::consent::{self, Judge, Payment, Question};
use crate::drive::check_warnings;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::input::TrustArgs;
use crate::key::{KeyArgs, configured_key, sign};
use crate::nodes::{NodeArgs, SpeedArg};
use crate::session::Session;
use crate::state::{StateArgs, at_once};
use crate::{service, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign bump <order id> --registry registry.json --nodes nodes.json --key-file key.txt
  countersign bump <order id> --speed fast --yes

Only for a payment on Bitcoin or Litecoin that this program signed, and that is not in a block. The new transaction spends the same coins and
pays the same deposit, so only one of the two can be mined. The higher fee is taken from the change, within the policy.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    nodes: NodeArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// How soon the payment should be mined, which determines its fee. The fee is at least what nodes ask of a replacement.
    #[arg(long, value_enum, default_value = "fast")]
    speed: SpeedArg,
    /// Signs without asking.
    #[arg(long)]
    yes: bool,
    /// Shows the whole summary before the question.
    #[arg(long)]
    full: bool,
    /// The order's id, or its first digits.
    id: String,
}

#[derive(Serialize)]
struct Raised<'a> {
    ok: bool,
    order_id: &'a str,
    transaction_id: &'a str,
    /// The transaction that it replaces. Either of the two may still be mined.
    replaces: &'a str,
    /// In base units.
    fee: String,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let id = args.state.id(&args.id)?;
    let (state, current) = (args.state.open()?, args.trust.read()?);
    state.load(&id)?;
    // The driver must not send the payment again meanwhile.
    let guard = at_once(state.store.lock(&id)).map_err(usage)?;
    let kept = state.load(&id)?;
    let (registry, policy) = kept.pins_or(&current.0, &current.1);
    let sent = payment(&kept, session)?;
    let record = kept.record.as_deref().ok_or_else(|| usage("the state directory has no record of this order"))?;
    let proposal = Proposal::new(kept.swap.request(), kept.swap.response()).with_record(record);
    let order = countersign::verify(proposal, registry, policy)?;
    // A payment that is mined after the deadline would only lock the funds.
    order.check_deadline(show::now())?;
    let chain = order.chain();
    if order.family() != Family::Bitcoin {
        return Err(usage("only a payment on a Bitcoin-like chain can be raised"));
    }
    let key = match args.key.read(session)? {
        Some(key) => Some(key),
        None => configured_key(Some(chain), session)?,
    };
    let key = key.ok_or_else(|| usage("no key: pass --key-file, --key-env or --key-stdin"))?;
    let nodes = args.nodes.connect(registry, session)?;
    let prepared = service::run(session, async {
        let submission = nodes.submission(chain, &sent.id, &sent.payload)?;
        Ok(nodes.prepare_raised(&order, chain, &submission, args.speed.into(), policy).await?)
    });
    let mut unsigned = prepared?;
    if args.yes {
        session.summary_on_stderr(&unsigned.summary(), unsigned.warnings())?;
        check_warnings(unsigned.warnings(), policy)?;
    } else {
        let judge = judge(&kept, Judge::chain(&nodes, order.terms().destination.chain()));
        let (found, now, is_full) = (&[], show::now(), args.full);
        let payment = Payment { order: &order, unsigned: &unsigned, registry, quoted: None, found, judge, now, is_full };
        let after_no =
            format!("nothing was signed: the payment that was sent is unchanged; continue with: {}", session.commands.resume(&id));
        let question = Question { text: "sign this in place of the payment that was sent?", after_no, is_full };
        consent::ask(&payment.consent(), Some((&unsigned.summary(), unsigned.warnings())), &question, session)?;
    }
    // The owner may have taken hours.
    order.check_deadline(show::now())?;
    sign(&mut unsigned, &key)?;
    let fee = fee(&unsigned)?;
    let raised = SignedFunding::from_signed(&unsigned.finish().map_err(usage)?).transactions;
    let [transaction] = raised.as_slice() else { return Err(Refusal::new(Code::Internal, "").into()) };

    let write = |event| at_once(state.store.append(&guard, &Entry { at: show::now(), event })).map_err(usage);
    let signed = |transaction: &BroadcastTransaction| Event::Signed {
        purpose: Purpose::Funding,
        transactions: vec![transaction.clone()],
        gasless: None,
    };
    write(signed(transaction))?;
    write(Event::sending(Delivery::Funding))?;
    let result: Result<(), NodeError> =
        service::run(session, async { Ok(nodes.broadcast(chain, &transaction.id, &transaction.payload).await) })?;
    if let Err(error) = result {
        // One endpoint that rejects it does not prove that all do.
        write(Event::NotSent { what: Delivery::Funding, error: error.to_string(), is_rejected: false })?;
        if matches!(error, NodeError::Rejected { .. }) {
            // The payment that was sent remains the one to send again.
            write(signed(&sent))?;
            write(Event::sending(Delivery::Funding))?;
        }
        return Err(Failure::from(error).with_advice(format_args!("continue with: {}", session.commands.resume(&id))));
    }
    write(Event::Sent { what: Delivery::Funding })?;
    if session.json {
        let (transaction_id, replaces) = (transaction.id.as_str(), sent.id.as_str());
        show::json(&Raised { ok: true, order_id: id.as_str(), transaction_id, replaces, fee: fee.to_string() })?;
    } else {
        show::field("raised", &format!("{} replaces {}, for a fee of {fee} base units", transaction.id, sent.id))?;
        show::field("next", &session.commands.resume(&id))?;
    }
    Ok(OK)
}

/// Returns who judges the destination of a stored order. A secret that is not stored is somebody else's, who redeems.
fn judge(kept: &OrderState, chain: Option<Judge>) -> Judge {
    Judge::new(kept.own_secret().is_none(), chain, Judge::Owner)
}

/// Returns the payment that was signed here last, which is a single transaction and may have been sent. What the driver has not sent, it may
/// have refused to send.
fn payment(kept: &OrderState, session: &Session) -> Result<BroadcastTransaction, Failure> {
    if let Some(outcome) = kept.outcome() {
        return Err(usage(format_args!("the order has ended: {}", outcome.name())));
    }
    match kept.signed(Purpose::Funding) {
        Some(([transaction], None)) if kept.newest_payment_may_be_sent() => Ok(transaction.clone()),
        Some(([_], None)) => Err(usage(format_args!(
            "the payment was never sent, so there is nothing to raise; continue with: {}",
            session.commands.resume(kept.swap.id())
        ))),
        Some(_) => Err(usage("only a payment on a Bitcoin-like chain can be raised")),
        None => Err(usage("this program has not signed a payment of the order: raise it in the wallet that paid")),
    }
}

fn fee(unsigned: &Unsigned) -> Result<u64, Failure> {
    let payment = match unsigned {
        Unsigned::Bitcoin(order) => order.payloads().payment.as_ref(),
        _ => None,
    };
    let payment = payment.ok_or_else(|| Refusal::new(Code::Internal, ""))?;
    Ok(payment.fee.to_sat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use countersign::CreateOrder;
    use countersign_client::{CreatedOrder, Secret};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn whoever_holds_the_secret_judges() {
        let fixtures = format!("{}/../../fixtures/accept/bitcoin.jsonl", env!("CARGO_MANIFEST_DIR"));
        let lines = std::fs::read_to_string(fixtures).unwrap();
        let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        let secret = Secret::generate().unwrap();
        let mut request = line["request"].clone();
        request["secret_hash"] = json!(secret.hash().to_string());
        let request: CreateOrder = serde_json::from_value(request).unwrap();
        let order = CreatedOrder::new(request, line["response"].to_string()).unwrap();
        let (own, elsewhere) = (OrderState::new(order.clone(), Some(secret)), OrderState::new(order, None));
        for (chain, judges) in [(None, Judge::Owner), (Some(Judge::Chain(None)), Judge::Chain(None))] {
            assert_eq!(judge(&own, chain.clone()), judges);
            assert_eq!(judge(&elsewhere, chain), Judge::Holder);
        }
    }
}
