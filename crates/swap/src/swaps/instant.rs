//! The refund of a Bitcoin-like deposit before its timelock ends, which the solver has to sign too.

use countersign::report::OrderStage;
use countersign::{OrderRecord, Refusal};
use countersign_client::driver::OrderStore as _;
use countersign_client::{Error, OrderId};
use countersign_json::objects::Failure;

use super::inner::Inner;
use crate::event;

impl Inner {
    /// Recomputes the hashes of the refund from the verified record and the outputs that the endpoints show, signs them with the key of the
    /// rescue phrase, and sends the signatures to the service. Returns how that ended: a reason and a sentence.
    pub(super) async fn instant_refund(&self, id: &OrderId) -> Result<(&'static str, &'static str), Failure> {
        let kept = self.store.load(id).await.map_err(|error| event::of_store(&error))?;
        let (flow, source) = (self.driver.flow(), &kept.swap.request().source);
        let (registry, _) = kept.pins_or(flow.registry(), flow.policy());
        if registry.family(source.asset.chain()) != Ok(countersign::Family::Bitcoin) {
            return Err(Failure::usage(
                "/order_id",
                "an order whose source is a Bitcoin-like chain: only there a solver can sign a refund",
            ));
        }
        let owner = source.owner.as_deref().ok_or_else(|| Failure::usage("/order_id", "an order with an address for the refund"))?;
        let key = self.refund_key(&kept).await?;
        let failed = |error| match error {
            Error::Refused(refusal) => Failure::at_stage(&refusal, OrderStage::AfterPaying),
            other => event::of_client(other),
        };
        let record = flow.follow_stored(&kept).await.map_err(failed)?.record;
        let Some(shown) = self.nodes.deposit(&record, registry).await.map_err(event::of_node)? else {
            return Ok(("not_refunded", "neither the service nor the endpoints show your payment yet; ask again once it is in a block"));
        };
        let mut is_whole = false;
        let sign = |record: &OrderRecord, hashes: &[[u8; 32]]| -> Result<Vec<String>, Refusal> {
            let refund = countersign_client::instant_refund(record, registry, &shown, owner, hashes)?;
            is_whole = refund.is_whole(&shown);
            Ok(refund.sign(&key)?.signatures)
        };
        flow.instant_refund(&kept, sign).await.map_err(failed)?;
        Ok((
            "refunding",
            match is_whole {
                true => "the service has your signature; the refund is sent once the solver has signed it too",
                false => {
                    "the service has your signature for what may be only a part of your payment; whatever is left can be refunded after the \
                     timelock"
                }
            },
        ))
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
