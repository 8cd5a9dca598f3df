//! The order lifecycle: create, verify, sign, submit, follow, redeem or refund (`docs/spec/service.md#creating-an-order`). Each step
//! is a separate call that needs only the [`CreatedOrder`], so a caller can stop after any step and continue later.

use std::sync::Arc;

use countersign::{Code, CreateOrder, OrderRecord, Policy, Refusal, Registry, Signed, Verified, VerifiedRecord};
use futures_util::Stream;

use crate::client::Client;
use crate::driver::Release;
use crate::error::Error;
use crate::release;
use crate::request::{Action, OrderId};
use crate::response::Answer;
use crate::secret::Secret;
use crate::stored::CreatedOrder;
use crate::track::{Pace, Progress, track};
use countersign_transport::Transport;

/// The steps of an order, with the wallet's registry and policy.
///
/// A flow owns what it needs and is cheap to clone, so it can be stored in a struct or moved into a task.
///
/// ```no_run
/// use countersign_client::countersign::{Policy, Registry};
/// use countersign_client::{Client, Error, Flow, Http, CreatedOrder};
///
/// fn verify_in_background(client: Client<Http>, registry: Registry, swap: CreatedOrder) -> tokio::task::JoinHandle<Result<(), Error>> {
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

    /// Creates the order. Store the [`Secret`] before this call, because the order commits to its hash. Store the returned swap before
    /// you do anything else with it.
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

    /// Verifies the body of a record against the stored request and response.
    pub(crate) fn verify_kept(&self, swap: &CreatedOrder, body: &[u8]) -> Result<VerifiedRecord, Refusal> {
        countersign::verify_record(swap.proposal(body), &self.registry, &self.policy)
    }

    /// Submits the signed gasless payload, once. If [`Error::may_have_acted`] is true, follow the order to see whether it arrived.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with [`Code::NothingToSign`] if the wallet did not choose the gasless path or the order has none, or with
    /// [`Code::RecordMismatch`] if the signatures belong to another order; or any other [`Error`].
    pub async fn submit(&self, swap: &CreatedOrder, signed: &Signed) -> Result<Answer<Option<String>>, Error> {
        let id = signed.order_id().unwrap_or_default();
        if !id.eq_ignore_ascii_case(swap.id().as_str()) {
            let refusal = Refusal::new(Code::RecordMismatch, "/order_id").with_expected(swap.id().as_str()).with_actual(id);
            return Err(Error::Refused(refusal));
        }
        let submission = signed.gasless().ok_or_else(|| {
            Error::Refused(Refusal::new(Code::NothingToSign, "/response/result").with_reason("nothing was signed for the gasless path"))
        })?;
        self.client.act(swap.id(), &Action::Initiate(&submission)).await
    }

    /// Fetches the record and verifies it again, against the request and the response. A caller that stored the record it signed for
    /// should also compare the terms of both: [`VerifiedTerms::check_unchanged`](countersign::VerifiedTerms::check_unchanged).
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the record contradicts the request or the response, or any other [`Error`].
    pub async fn follow(&self, swap: &CreatedOrder) -> Result<VerifiedRecord, Error> {
        let record = self.client.order(swap.id()).await?;
        self.verify_kept(swap, &record.body).map_err(Error::Refused)
    }

    /// Follows the order until it ends. Every record is verified again before it becomes an item; a refusal is the last item. The
    /// stream owns what it needs.
    pub fn watch(&self, swap: &CreatedOrder, pace: Pace) -> impl Stream<Item = Result<Progress, Error>> + use<T> {
        let (flow, swap) = (self.clone(), swap.clone());
        let (client, registry, id) = (Arc::clone(&self.client), Arc::clone(&self.registry), swap.id().clone());
        track(client, registry, id, pace, move |record| flow.verify_kept(&swap, &record.body).map(drop).map_err(Error::Refused))
    }

    /// Sends the secret to the service's relayer, which redeems for the owner. A [`Driver`](crate::Driver) redeems without the relayer
    /// where it can.
    ///
    /// # Errors
    ///
    /// [`Error::Held`] if the secret may not be released. [`Error::Refused`] with [`Code::SecretHashMismatch`] if the request does not
    /// contain the hash of this secret, with [`Code::RecordMismatch`] if the proof belongs to another order or if the request names the
    /// owner's own redeem key, which the service does not have, or with another code if the record contradicts the request or the
    /// response. Or any other [`Error`].
    pub async fn redeem(&self, swap: &CreatedOrder, secret: &Secret, release: &Release) -> Result<Answer<Option<String>>, Error> {
        let hash = secret.hash();
        if swap.request().secret_hash != Some(hash) {
            let refusal = Refusal::new(Code::SecretHashMismatch, "/request/secret_hash").with_actual(hash);
            return Err(Error::Refused(refusal.with_reason("the order's request does not contain the hash of this secret")));
        }
        if let Some(key) = &swap.request().destination.delegate {
            let refusal = Refusal::new(Code::RecordMismatch, "/request/destination/delegate").with_actual(key);
            return Err(Error::Refused(
                refusal.with_reason("only the owner's own key can redeem, so the service must not learn the secret"),
            ));
        }
        let known = self.follow(swap).await?;
        match release {
            Release::Evidence(funded) if funded.order_id().eq_ignore_ascii_case(swap.id().as_str()) => {
                funded.check_time(self.client.transport().now())?;
            }
            Release::Evidence(funded) => {
                let refusal = Refusal::new(Code::RecordMismatch, "/order_id").with_expected(swap.id().as_str());
                return Err(Error::Refused(refusal.with_actual(funded.order_id())));
            }
            Release::Trust(_) => {
                release::check(&known.record, &self.registry, &self.policy, self.client.transport().now())?;
            }
        }
        self.client.act(swap.id(), &Action::Redeem { secret }).await
    }

    /// Requests a refund from the service's relayer. The service refuses until the timelock has expired.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn refund(&self, id: &OrderId) -> Result<Answer<Option<String>>, Error> {
        self.client.act(id, &Action::Refund).await
    }

    /// Consents to an early refund on a Bitcoin-like chain.
    ///
    /// `sign` receives the verified record and the sighashes that the service wants signed. It must recompute each hash from the record
    /// (the function `instant_refund` of this crate does that) and refuse a hash that differs. It returns one signature for each hash,
    /// in the same order: 130 hex digits without `0x`, for a 64-byte signature followed by the sighash type `83`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if `sign` refuses, with [`Code::SignatureCount`] for the wrong number of signatures, or with
    /// [`Code::SignatureMalformed`] for one of another form: nothing was sent then. Or any other [`Error`].
    pub async fn instant_refund(
        &self,
        swap: &CreatedOrder,
        sign: impl FnOnce(&OrderRecord, &[[u8; 32]]) -> Result<Vec<String>, Refusal>,
    ) -> Result<Answer<Option<String>>, Error> {
        let record = self.follow(swap).await?.record;
        let hashes = self.client.instant_refund_hash(swap.id()).await?.value;
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
        self.client.act(swap.id(), &Action::InstantRefund { signatures: &signatures }).await
    }
}
