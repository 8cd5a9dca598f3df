//! The service's list of the user's orders.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use countersign::OrderRecord;
use countersign_client::driver::OrderState;
use countersign_client::{Client, Http, OrderFilter, OrderId, StreamExt};

use crate::failure::Failure;
use crate::state::State;

/// The maximum number of orders that are read for one owner on one leg.
const MAX_ORDERS: usize = 10_000;

/// The orders that the service lists, by their ids in lower case.
pub(crate) struct Listed {
    pub(crate) orders: BTreeMap<String, OrderRecord>,
    /// Order ids that are not valid.
    pub(crate) without_id: BTreeSet<String>,
    /// Whether the service has more orders than were read.
    pub(crate) is_cut: bool,
    /// The number of entries that were read for each filter.
    pub(crate) counts: Vec<usize>,
}

/// Returns the filter for the orders of an owner on the source chain.
pub(crate) fn from_owner(owner: &str) -> OrderFilter {
    OrderFilter { from_owner: Some(owner.to_owned()), ..OrderFilter::default() }
}

/// Returns the filter for the orders of an owner on the destination chain.
pub(crate) fn to_owner(owner: &str) -> OrderFilter {
    OrderFilter { to_owner: Some(owner.to_owned()), ..OrderFilter::default() }
}

/// Reads every page of the list for each filter.
pub(crate) async fn list(client: &Client<Http>, filters: Vec<OrderFilter>) -> Result<Listed, Failure> {
    let mut listed = Listed { orders: BTreeMap::new(), without_id: BTreeSet::new(), is_cut: false, counts: Vec::new() };
    for filter in filters {
        let mut orders = pin!(client.all_orders(filter));
        let mut count = 0_usize;
        while let Some(record) = orders.next().await {
            if count == MAX_ORDERS {
                listed.is_cut = true;
                break;
            }
            count = count.saturating_add(1);
            let record = record?;
            // An order without a valid id must not hide the others.
            match OrderId::parse(&record.order_id) {
                Ok(id) => drop(listed.orders.insert(id.as_str().to_ascii_lowercase(), record)),
                Err(_) => drop(listed.without_id.insert(record.order_id)),
            }
        }
        listed.counts.push(count);
    }
    Ok(listed)
}

/// Checks, before an order is signed, that the service lists no other order of its owners with the same secret hash. There is one if this
/// state directory is a copy that could not be recognized as such. The state directory then starts a branch of the rescue phrase of its
/// own, so that the next order has a new secret.
///
/// A service that hides orders is not noticed. It gains nothing that it could not have from the other copy.
pub(crate) async fn check_unlisted(client: &Client<Http>, state: &State, kept: &OrderState) -> Result<(), Failure> {
    let request = kept.swap.request();
    let Some(hash) = request.secret_hash else { return Ok(()) };
    let filters = request.source.owner.iter().map(|owner| from_owner(owner));
    let filters = filters.chain(request.destination.owner.iter().map(|owner| to_owner(owner))).collect();
    let listed =
        list(client, filters).await.map_err(|failure| failure.with_advice("nothing was signed or paid: run the same command again"))?;
    let is_other = |id: &str| !id.eq_ignore_ascii_case(kept.swap.id().as_str());
    let has_hash = |record: &OrderRecord| record.source_swap.secret_hash == hash || record.destination_swap.secret_hash == hash;
    let Some((other, _)) = listed.orders.iter().find(|(id, record)| is_other(id) && has_hash(record)) else { return Ok(()) };
    if kept.index.is_some() {
        state.store.start_branch()?;
    }
    Err(Failure::Held {
        code: "secret_used",
        message: format!(
            "the service lists order {other} of yours with the same secret hash, so a copy of this state directory is in use elsewhere; nothing \
             was signed or paid; create a new order, which gets a new secret"
        ),
    })
}
