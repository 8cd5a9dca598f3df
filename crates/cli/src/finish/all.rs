//! `countersign refund --all`: refunds every stored order that can be refunded now, and lists the others.

use std::io::{self, IsTerminal};

use countersign::{AssetId, Family, Registry, U256, chains::UnixTime, text};
use countersign_client::driver::OrderState;
use countersign_store::{Error as StoreError, OrderDir};
use serde::Serialize;

use super::{RefundArgs, refund_stored};
use crate::consent::{self, Consent, Question};
use crate::exit::{OK, USAGE};
use crate::failure::{Failure, usage};
use crate::key::GivenKey;
use crate::orders::{self, ReadError, Stored};
use crate::session::Session;
use crate::state::State;
use crate::{amount, id, show};

/// What became of one order.
#[derive(Serialize)]
struct Outcome {
    /// `None` if not even the order's directory can be opened.
    order_id: Option<String>,
    refunded: bool,
    /// Why it was not refunded; `None` if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ReadError>,
    /// From about when it can be refunded, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    possible_from: Option<u64>,
}

#[derive(Serialize)]
struct Report<'o> {
    /// Whether everything that could be refunded was, and every order could be read.
    ok: bool,
    orders: &'o [Outcome],
}

/// What can be done about one order, by what is stored.
enum Choice {
    /// It may be possible to refund it now. The chain or the service decides.
    Try(Box<OrderState>),
    /// It cannot be refunded, or not here.
    No(&'static str, String, Option<UnixTime>),
    /// It cannot be read, so it is not known whether it has to be refunded.
    Unreadable(ReadError),
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
    // Stdin can be read once, and one key is for every order.
    let key = args.own.signing.key(session)?;
    if let Some(mistake) = key.as_ref().and_then(GivenKey::mistake) {
        return Err(usage(mistake));
    }
    let stored = state.store.as_ref().orders()?;
    let digits = id::digits(stored.iter().flatten().map(OrderDir::id));
    let (mut outcomes, mut code) = (Vec::new(), OK);
    for order in &stored {
        let (failed, error, possible_from) = match choice(&state, order) {
            Choice::Ended => continue,
            Choice::No(code, message, from) => (OK, Some(ReadError { code, message }), from.map(UnixTime::as_secs)),
            Choice::Unreadable(error) => (USAGE, Some(error), None),
            Choice::Try(kept) => match refund_one(args, &state, &kept, key.as_ref(), session) {
                Ok(()) => (OK, None, None),
                Err(failure) => (failure.exit(), Some(ReadError { code: failure.code(), message: failure.message() }), None),
            },
        };
        // The first failure decides: nothing that could be refunded may look done.
        code = if code == OK { failed } else { code };
        let order_id = order.as_ref().ok().map(|order| order.id().to_owned());
        outcomes.push(Outcome { order_id, refunded: error.is_none(), error, possible_from });
    }
    print(code == OK, &outcomes, digits, session)?;
    Ok(code)
}

/// Refunds one order, once its owner agrees.
fn refund_one(args: &RefundArgs, state: &State, kept: &OrderState, key: Option<&GivenKey>, session: &Session) -> Result<(), Failure> {
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
    refund_stored(args, client, state, kept, |registry| Ok(key.filter(|key| is_for(key, kept, registry, session)).cloned()), session)
}

/// Returns whether the given key is one of the source's family. An order whose key it is not goes on as without a key, and that is said.
fn is_for(key: &GivenKey, kept: &OrderState, registry: &Registry, session: &Session) -> bool {
    // On Bitcoin-like chains the key is always derived from the rescue phrase.
    let Ok(family) = registry.family(kept.swap.request().source.asset.chain()) else { return true };
    if family == Family::Bitcoin || key.parse(family).is_ok() {
        return true;
    }
    session.progress(&format!("order {}: {} has no key of {family}, so it is refunded as without it", kept.swap.id(), key.origin()));
    false
}

fn shown(kept: &OrderState, units: U256, asset: &AssetId) -> String {
    amount::shown(units, asset, kept.pins.as_ref().map(|pins| &pins.registry))
}

fn choice(state: &State, order: &Result<OrderDir, StoreError>) -> Choice {
    let no = |code, message: String| Choice::No(code, message, None);
    let kept = match orders::read(state, order) {
        Ok(Some(Stored::Created(kept))) => kept,
        Ok(Some(Stored::Restored(restored))) => {
            let id = &restored.record.order_id;
            return no("refund_needed", format!("it was restored from the rescue phrase: use `countersign refund --self {id}`"));
        }
        Ok(None) => return Choice::Ended,
        Err(unreadable) => return Choice::Unreadable(unreadable.error),
    };
    let id = kept.swap.id();
    if kept.outcome().is_some() {
        return Choice::Ended;
    }
    if kept.secret_left().is_some() {
        return no(
            "redeem_needed",
            format!(
                "its secret has left, so it is redeemed: `countersign redeem {id}`; only once the destination's time is over: `countersign refund \
                 {id}`"
            ),
        );
    }
    if !kept.may_be_paid() {
        return no("not_paid", format!("nothing was paid for it from here; if another wallet paid it: `countersign refund {id}`"));
    }
    match kept.refund_possible_from().filter(|from| *from > show::now()) {
        Some(from) => {
            let message = format!("the timelock of your payment has not expired; possible from about {}", show::time(from));
            Choice::No("not_refundable", message, Some(from))
        }
        None => Choice::Try(kept),
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
        let id = order_id.as_deref().map_or("?", |id| id::short(id, digits));
        match error {
            None => show::field("refunded", &format!("{id}: accepted"))?,
            Some(ReadError { code, message }) => show::field(code, &format!("{id}: {message}"))?,
        }
    }
    Ok(())
}
