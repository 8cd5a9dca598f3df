//! The service's list of an owner's orders, read whole.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use countersign::OrderRecord;
use futures_util::StreamExt;

use crate::client::Client;
use crate::error::Error;
use crate::request::{OrderFilter, OrderId};
use crate::stored::CreatedOrder;
use countersign_transport::Transport;

/// The maximum number of orders that are read for one filter.
pub const MAX_LISTED: usize = 10_000;

/// The orders that the service lists, by their ids in lower case.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ListedOrders {
    /// The records, by order id.
    pub orders: BTreeMap<String, OrderRecord>,
    /// Order ids that are not valid.
    pub without_id: BTreeSet<String>,
    /// Whether the service has more orders than were read.
    pub is_cut: bool,
    /// The number of entries that were read for each filter.
    pub counts: Vec<usize>,
}

impl OrderFilter {
    /// Returns the filter for the orders of an owner on the source chain.
    #[must_use]
    pub fn from_owner(owner: &str) -> Self {
        Self { from_owner: Some(owner.to_owned()), ..Self::default() }
    }

    /// Returns the filter for the orders of an owner on the destination chain.
    #[must_use]
    pub fn to_owner(owner: &str) -> Self {
        Self { to_owner: Some(owner.to_owned()), ..Self::default() }
    }
}

impl<T: Transport> Client<T> {
    /// Reads every page of the list for each filter, up to [`MAX_LISTED`] orders each.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn list_orders(&self, filters: Vec<OrderFilter>) -> Result<ListedOrders, Error> {
        let mut listed = ListedOrders::default();
        for filter in filters {
            let mut orders = pin!(self.all_orders(filter));
            let mut count = 0_usize;
            while let Some(record) = orders.next().await {
                if count == MAX_LISTED {
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

    /// Returns another order that the service lists for the owners of `swap` and that has the same secret hash; `None` if there is none.
    /// Ask before an order is signed: there is one if the store is a copy that could not be recognized as such.
    ///
    /// A service that hides orders is not noticed. Whoever learns the secret of the other order can then take the payment of this one.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn other_with_secret_of(&self, swap: &CreatedOrder) -> Result<Option<String>, Error> {
        let request = swap.request();
        let Some(hash) = request.secret_hash else { return Ok(None) };
        let filters = request.source.owner.iter().map(|owner| OrderFilter::from_owner(owner));
        let filters = filters.chain(request.destination.owner.iter().map(|owner| OrderFilter::to_owner(owner))).collect();
        let listed = self.list_orders(filters).await?;
        let is_other = |id: &str| !id.eq_ignore_ascii_case(swap.id().as_str());
        let has_hash = |record: &OrderRecord| record.source_swap.secret_hash == hash || record.destination_swap.secret_hash == hash;
        Ok(listed.orders.into_iter().find(|(id, record)| is_other(id) && has_hash(record)).map(|(id, _)| id))
    }
}
