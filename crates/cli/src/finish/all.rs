//! `countersign refund --all`: refunds every stored order that can be refunded now, and lists the others.

use std::io::{self, IsTerminal};

use countersign::{AssetId, U256, UnixTime, text};
use countersign_client::OrderId;
use countersign_client::driver::OrderState;
use serde::Serialize;

use super::{RefundArgs, refund_stored};
use crate::consent::{self, Consent, Question};
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::session::Session;
use crate::state::State;
use crate::{amount, id, show};

/// What became of one order.
#[derive(Serialize)]
struct Outcome {
    order_id: String,
    refunded: bool,
    /// Why it was not refunded; `None` if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
    /// From about when it can be refunded, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    possible_from: Option<u64>,
}

#[derive(Serialize)]
struct Error {
    code: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Report<'o> {
    /// Whether everything that could be refunded was.
    ok: bool,
    orders: &'o [Outcome],
}

/// What can be done about one order, by what is stored.
enum Choice {
    /// It may be possible to refund it now. The chain or the service decides.
    Try(Box<OrderState>),
    /// It cannot be refunded, or not here.
    No(&'static str, String, Option<UnixTime>),
    /// It has ended.
    Ended,
}

pub(super) fn refund(args: &RefundArgs, session: &Session) -> Result<u8, Failure> {
    args.own.signing.check_key_only(args.nodes.is_named()?)?;
    if !args.yes && !io::stdin().is_terminal() {
        return Err(usage("stdin is not a terminal, so nobody can agree to each refund: pass --yes, or use a terminal"));
    }
    let Some(state) = args.state.open_existing()? else {
        return print(true, &[], 0, session).map(|()| OK);
    };
    let ids = state.store.order_ids()?;
    let digits = id::digits(ids.iter().map(String::as_str));
    let (mut outcomes, mut code) = (Vec::new(), OK);
    for id in &ids {
        let kept = match choice(&state, id) {
            Choice::Ended => continue,
            Choice::No(code, message, from) => {
                outcomes.push(Outcome {
                    order_id: id.clone(),
                    refunded: false,
                    error: Some(Error { code, message }),
                    possible_from: from.map(UnixTime::as_secs),
                });
                continue;
            }
            Choice::Try(kept) => kept,
        };
        let failure = refund_one(args, &state, &kept, session).err();
        // The first failure decides: nothing that could be refunded may look done.
        if let Some(failure) = failure.as_ref().filter(|_| code == OK) {
            code = failure.exit();
        }
        let error = failure.map(|failure| Error { code: failure.code(), message: failure.message() });
        outcomes.push(Outcome { order_id: id.clone(), refunded: error.is_none(), error, possible_from: None });
    }
    print(code == OK, &outcomes, digits, session)?;
    Ok(code)
}

/// Refunds one order, once its owner agrees.
fn refund_one(args: &RefundArgs, state: &State, kept: &OrderState, session: &Session) -> Result<(), Failure> {
    let client = args.service.client(session)?;
    if !args.yes {
        let source = &kept.swap.request().source;
        let what = shown(kept, source.amount, &source.asset);
        let whom = source.owner.as_deref().map(|owner| format!(" to {}", text::escape_untrusted(owner))).unwrap_or_default();
        let consent = Consent {
            headline: format!("Refund {what}{whom}, of order {}.", kept.swap.id()),
            lines: vec![("fee", "to the network, if your own account sends the refund; nothing if the service does".to_owned())],
            warnings: Vec::new(),
        };
        let after_no = "nothing was signed for this order, and it can be refunded later; the same command asks again".to_owned();
        consent::ask(&consent, None, &Question { text: "refund this?", after_no, is_full: false }, session)?;
    }
    refund_stored(args, client, state, kept, session)
}

fn shown(kept: &OrderState, units: U256, asset: &AssetId) -> String {
    amount::shown(units, asset, kept.pins.as_ref().map(|pins| &pins.registry))
}

fn choice(state: &State, id: &str) -> Choice {
    let no = |code, message: String| Choice::No(code, message, None);
    let found = id::full(id).and_then(|id| Ok((state.find(&id)?, id)));
    let (kept, id): (Option<OrderState>, OrderId) = match found {
        Ok(found) => found,
        Err(failure) => return no("order_unreadable", failure.message()),
    };
    let Some(kept) = kept else {
        return match state.restored(&id) {
            Ok(Some(_)) => no("refund_needed", format!("it was restored from the rescue phrase: use `countersign refund --self {id}`")),
            Ok(None) => Choice::Ended,
            Err(failure) => no("order_unreadable", failure.message()),
        };
    };
    if kept.outcome().is_some() {
        return Choice::Ended;
    }
    if kept.secret_left().is_some() {
        return no("redeem_needed", format!("its secret has left, so it is redeemed: `countersign redeem {id}`"));
    }
    if !kept.may_be_paid() {
        return no("not_paid", format!("nothing was paid for it from here; if another wallet paid it: `countersign refund {id}`"));
    }
    match kept.refund_possible_from().filter(|from| *from > show::now()) {
        Some(from) => {
            let message = format!("the timelock of your payment has not expired; possible from about {}", show::time(from));
            Choice::No("not_refundable", message, Some(from))
        }
        None => Choice::Try(Box::new(kept)),
    }
}

fn print(ok: bool, outcomes: &[Outcome], digits: usize, session: &Session) -> Result<(), Failure> {
    if session.json {
        return Ok(show::json(&Report { ok, orders: outcomes })?);
    }
    if outcomes.is_empty() {
        show::field("orders", "none is open")?;
    }
    for Outcome { order_id, error, .. } in outcomes {
        let id = id::short(order_id, digits);
        match error {
            None => show::field("refunded", &format!("{id}: accepted"))?,
            Some(Error { code, message }) => show::field(code, &format!("{id}: {message}"))?,
        }
    }
    Ok(())
}
