//! The refund of a Bitcoin-like deposit before its timelock ends, which the solver has to sign too.

use countersign::{OrderRecord, Refusal};
use countersign_client::OrderId;
use countersign_client::driver::OrderStore as _;
use countersign_json::objects::Failure;

use super::inner::Inner;
use crate::event;

impl Inner {
    /// Recomputes the hashes of the refund from the verified record, signs them with the key of the rescue phrase, and sends the signatures to
    /// the service. Each hash commits to a refund to the owner of all that one output of the deposit holds. Returns whether the deposit is
    /// known: until the record names its transaction or the endpoints show it, there is nothing to sign.
    pub(super) async fn instant_refund(&self, id: &OrderId) -> Result<bool, Failure> {
        let kept = self.store.load(id).await.map_err(|error| event::of_store(&error))?;
        let (flow, source) = (self.driver.flow(), &kept.swap.request().source);
        if flow.registry().family(source.asset.chain()) != Ok(countersign::Family::Bitcoin) {
            return Err(Failure::usage(
                "/order_id",
                "an order whose source is a Bitcoin-like chain: only there a solver can sign a refund",
            ));
        }
        let owner = source.owner.as_deref().ok_or_else(|| Failure::usage("/order_id", "an order with an address for the refund"))?;
        let key = self.refund_key(&kept).await?;
        let record = flow.follow(&kept.swap).await.map_err(event::of_client)?.record;
        // Endpoints that fail leave the output that the record names. A signature is no less safe for it.
        let shown = self.nodes.deposit(&record, flow.registry()).await.unwrap_or_default();
        if shown.is_empty() && record.source_swap.initiate_tx_hash.is_none() {
            return Ok(false);
        }
        let sign = |record: &OrderRecord, hashes: &[[u8; 32]]| -> Result<Vec<String>, Refusal> {
            let refund = countersign_client::instant_refund(record, flow.registry(), &shown, owner, hashes)?;
            Ok(refund.sign(&key)?.signatures)
        };
        flow.instant_refund(&kept.swap, sign).await.map(|_| true).map_err(event::of_client)
    }

    /// Returns the key of the rescue phrase to which the order's deposit can be refunded.
    async fn refund_key(&self, kept: &countersign_client::driver::OrderState) -> Result<countersign::bitcoin::Key, Failure> {
        let own = || Failure::usage("/order_id", "an order whose refund key is derived from this store's rescue phrase");
        let phrase = self.store.run(|store| store.phrase()).await.map_err(|error| event::of_store(&error))?.ok_or_else(own)?;
        let (at, named) = kept.key_index().zip(kept.swap.request().source.delegate.as_deref()).ok_or_else(own)?;
        let failed = |error: countersign_store::rescue::DeriveError| Failure::new("derive_failed", error.to_string(), "bug");
        let rescue = countersign_store::rescue::Rescue::new(&phrase).map_err(failed)?;
        let key = countersign_client::rescue::derived_key(&rescue, countersign::Leg::Source, at, named).map_err(failed)?.ok_or_else(own)?;
        Ok(countersign::bitcoin::Key::parse(&key).map_err(|error| Refusal::new(error, ""))?)
    }
}
