//! The service's answers under the wallet's pins: orders are created, and verified before they are signed and whenever their record is
//! read (`docs/spec/service.md#creating-an-order`). The rest of the lifecycle is the [`Driver`](crate::Driver)'s.

use std::sync::Arc;

use countersign::{Code, CreateOrder, OrderRecord, Policy, Refusal, Registry, Verified, VerifiedRecord};

use crate::client::Client;
use crate::driver::{OrderState, trace};
use crate::error::Error;
use crate::request::Action;
use crate::response::Answer;
use crate::stored::CreatedOrder;
use countersign_transport::Transport;

/// The client with the wallet's registry and policy.
///
/// A flow owns what it needs and is cheap to clone, so it can be stored in a struct or moved into a task.
///
/// ```no_run
/// use countersign_client::countersign::{Policy, Registry};
/// use countersign_client::{Client, CreatedOrder, Error, Flow, Http};
///
/// fn verify_in_background(
///     client: Client<Http>,
///     registry: Registry,
///     swap: CreatedOrder,
/// ) -> tokio::task::JoinHandle<Result<(), Error>> {
///     let flow = Flow::new(client, registry, Policy::default());
///     tokio::spawn(async move {
///         let verified = flow.verify(&swap).await?;
///         println!("{}", verified.order.summary());
///         Ok(())
///     })
/// }
/// ```
#[derive(Debug)]
pub struct Flow<T> {
    client: Arc<Client<T>>,
    registry: Arc<Registry>,
    policy: Arc<Policy>,
}

impl<T> Clone for Flow<T> {
    fn clone(&self) -> Self {
        let Self { client, registry, policy } = self;
        Self { client: Arc::clone(client), registry: Arc::clone(registry), policy: Arc::clone(policy) }
    }
}

/// A verified order, every byte of which is accounted for, and the record that it was verified with.
#[derive(Debug, Clone)]
#[must_use = "nothing is signed until a verified order is prepared"]
#[non_exhaustive]
pub struct VerifiedSwap {
    /// The order. Match on it to prepare it with the wallet context of its family.
    pub order: Verified,
    /// The record.
    pub record: OrderRecord,
}

impl<T: Transport> Flow<T> {
    /// Creates a flow. Pass an [`Arc`] to share a client, registry or policy.
    #[must_use]
    pub fn new(client: impl Into<Arc<Client<T>>>, registry: impl Into<Arc<Registry>>, policy: impl Into<Arc<Policy>>) -> Self {
        Self { client: client.into(), registry: registry.into(), policy: policy.into() }
    }

    /// Returns the client.
    #[must_use]
    pub fn client(&self) -> &Client<T> {
        &self.client
    }

    /// Returns the wallet's pinned registry.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the wallet's policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Creates the order. Store the [`Secret`](crate::Secret) before this call, because the order commits to its hash. Store the returned
    /// swap before you do anything else with it.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] with [`Code::UnknownAsset`] if an asset is not pinned, or any other [`Error`]. If [`Error::may_have_acted`] is
    /// true, an order may exist that nobody will fund. Creating another one costs nothing.
    pub async fn create(&self, request: CreateOrder) -> Result<CreatedOrder, Error> {
        self.policy.check_names(&self.registry).map_err(Error::Input)?;
        for (leg, at) in [(&request.source, "/source/asset"), (&request.destination, "/destination/asset")] {
            if self.registry.asset(leg.asset.as_str()).is_none() {
                return Err(Error::Input(Refusal::new(Code::UnknownAsset, at).with_actual(&leg.asset)));
            }
        }
        let Answer { value: id, body } = self.client.create_order(&request).await?;
        Ok(CreatedOrder::from_answer(id, request, body))
    }

    /// Fetches the record and verifies request, response and record together. Nothing can be signed without this step.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] at the first field or byte that differs, or any other [`Error`].
    pub async fn verify(&self, swap: &CreatedOrder) -> Result<VerifiedSwap, Error> {
        self.policy.check_names(&self.registry).map_err(Error::Input)?;
        let Answer { value: record, body } = self.client.order(swap.id()).await?;
        let order = countersign::verify(swap.proposal(&body), &self.registry, &self.policy).map_err(Error::Refused)?;
        Ok(VerifiedSwap { order, record })
    }

    /// Fetches the record, verifies everything including the deadline, and returns the order with the body of the record.
    pub(crate) async fn verify_with_body(&self, swap: &CreatedOrder) -> Result<(Verified, Vec<u8>), Error> {
        self.policy.check_names(&self.registry).map_err(Error::Input)?;
        let Answer { body, .. } = self.client.order(swap.id()).await?;
        let proposal = swap.proposal(&body).at_time(self.client.transport().now());
        let order = countersign::verify(proposal, &self.registry, &self.policy).map_err(Error::Refused)?;
        Ok((order, body))
    }

    /// Fetches the record and verifies it again, against the request and the response, with the flow's own pins. For an order that is stored,
    /// [`Flow::follow_stored`] takes those that it was signed with.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the record contradicts the request or the response, or any other [`Error`].
    pub async fn follow(&self, swap: &CreatedOrder) -> Result<VerifiedRecord, Error> {
        let record = self.client.order(swap.id()).await?;
        countersign::verify_record(swap.proposal(&record.body), &self.registry, &self.policy).map_err(Error::Refused)
    }

    /// Fetches the record of a stored order and verifies it again: see [`OrderState::verify_record`]. A pin that was removed after the
    /// signature, or a stricter policy, changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the record contradicts the request, the response, or the record that the order was signed with; or any other
    /// [`Error`].
    pub async fn follow_stored(&self, order: &OrderState) -> Result<VerifiedRecord, Error> {
        let record = self.client.order(order.swap.id()).await?;
        order.verify_record(&record.body, &self.registry, &self.policy).map_err(Error::Refused)
    }

    /// Consents to an early refund on a Bitcoin-like chain, with the pins that the order was signed with.
    ///
    /// `sign` receives the verified record and the sighashes that the service wants signed. It must recompute each hash from the record
    /// and the outputs of the deposit (the function `instant_refund` of this crate does that) and refuse a hash that differs. It returns one signature for each hash,
    /// in the same order: 130 hex digits without `0x`, for a 64-byte signature followed by the sighash type `83`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if `sign` refuses, with [`Code::SignatureCount`] for the wrong number of signatures, or with
    /// [`Code::SignatureMalformed`] for one of another form: nothing was sent then. Or any other [`Error`].
    pub async fn instant_refund(
        &self,
        order: &OrderState,
        sign: impl FnOnce(&OrderRecord, &[[u8; 32]]) -> Result<Vec<String>, Refusal>,
    ) -> Result<Answer<Option<String>>, Error> {
        trace::call(order.swap.id(), || self.sign_instant_refund(order, sign)).await
    }

    async fn sign_instant_refund(
        &self,
        order: &OrderState,
        sign: impl FnOnce(&OrderRecord, &[[u8; 32]]) -> Result<Vec<String>, Refusal>,
    ) -> Result<Answer<Option<String>>, Error> {
        let record = self.follow_stored(order).await?.record;
        let hashes = self.client.instant_refund_hash(order.swap.id()).await?.value;
        let signatures = sign(&record, &hashes).map_err(Error::Refused)?;
        let is_formed =
            |signature: &String| signature.len() == 130 && signature.ends_with("83") && signature.bytes().all(|b| b.is_ascii_hexdigit());
        if hashes.is_empty() || signatures.len() != hashes.len() {
            let refusal = Refusal::new(Code::SignatureCount, "/signatures").with_expected(hashes.len()).with_actual(signatures.len());
            return Err(Error::Refused(refusal));
        }
        if !signatures.iter().all(is_formed) {
            return Err(Error::Refused(Refusal::new(Code::SignatureMalformed, "/signatures")));
        }
        self.client.act(order.swap.id(), &Action::InstantRefund { signatures: &signatures }).await
    }
}
