//! The way of an order: create, verify, sign, submit, follow, redeem or refund. Each step is a call of its own and needs
//! only what the caller kept ([`Swap`]), so that nothing is lost by stopping between two.

use std::time::Duration;

use countersign::wire::{CreateOrder, OrderRecord};
use countersign::{AnySigned, AnyVerified, Code, Policy, Refusal, Registry, open};
use futures_util::Stream;

use crate::client::Client;
use crate::error::Error;
use crate::release::{self, HEADROOM, Hold};
use crate::request::{Action, OrderId};
use crate::response::Answer;
use crate::secret::Secret;
use crate::swap::Swap;
use crate::track::{Pace, Progress, track};
use crate::transport::Transport;

/// The steps of an order, with what the wallet has pinned and allows.
#[derive(Debug)]
pub struct Flow<'f, T> {
    client: &'f Client<T>,
    registry: &'f Registry,
    policy: &'f Policy,
    headroom: Duration,
}

impl<'f, T: Transport> Flow<'f, T> {
    /// The steps with the default headroom.
    pub const fn new(client: &'f Client<T>, registry: &'f Registry, policy: &'f Policy) -> Self {
        Self { client, registry, policy, headroom: HEADROOM }
    }

    /// Sets the least time that must be left on the destination's timelock when the secret leaves.
    #[must_use]
    pub const fn with_headroom(mut self, headroom: Duration) -> Self {
        self.headroom = headroom;
        self
    }

    /// Creates the order. Keep what comes back before anything else is done with it; a `secret` must be kept before this
    /// call, because the order names its hash.
    ///
    /// # Errors
    ///
    /// Any [`Error`]. If [`Error::may_have_acted`], an order may exist that nobody funds: creating another one costs nothing.
    pub async fn create(&self, request: &CreateOrder) -> Result<Swap, Error> {
        for (side, at) in [(&request.source, "/source/asset"), (&request.destination, "/destination/asset")] {
            if self.registry.asset(side.asset.as_str()).is_none() {
                return Err(Error::Input(Refusal::new(Code::UnknownAsset, at).with_actual(&side.asset)));
            }
        }
        let answer = self.client.create_order(request).await?;
        let body = serde_json::to_vec(request).map_err(|_| Error::Input(Refusal::new(Code::Internal, "")))?;
        Swap::new(answer.value, &body, &answer.body)
    }

    /// Fetches the record and requires that request, answer and record tell one story: only this makes something to sign.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] at the first member or byte that differs, or any other [`Error`].
    pub async fn verify(&self, swap: &Swap) -> Result<AnyVerified, Error> {
        let record = self.client.order(swap.id()).await?;
        swap.judge(&record.body, |documents| open(documents, self.registry, self.policy)?.verify())
    }

    /// Submits the signed gasless message. Sent once: if [`Error::may_have_acted`], follow the order to see.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with [`Code::NothingToSign`] if the order has no gasless way, or any other [`Error`].
    pub async fn submit(&self, swap: &Swap, signed: &AnySigned) -> Result<Answer<Option<String>>, Error> {
        if !signed.order_id().eq_ignore_ascii_case(swap.id().as_str()) {
            let refusal = Refusal::new(Code::RecordMismatch, "/order_id").with_expected(swap.id()).with_actual(signed.order_id());
            return Err(Error::Refused(refusal));
        }
        let signature = signed.submission().ok_or_else(|| {
            Error::Refused(Refusal::new(Code::NothingToSign, "/response/result").with_reason("this order has no gasless way of funding"))
        })?;
        self.client.act(swap.id(), &Action::Initiate { signature: &signature }).await
    }

    /// Fetches the record and judges it again by the terms that were verified when the order was signed.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the service now tells another story, or any other [`Error`].
    pub async fn follow(&self, swap: &Swap) -> Result<OrderRecord, Error> {
        let record = self.client.order(swap.id()).await?;
        self.judge(swap, &record)
    }

    fn judge(&self, swap: &Swap, record: &Answer<OrderRecord>) -> Result<OrderRecord, Error> {
        swap.judge(&record.body, |documents| open(documents, self.registry, self.policy)?.follow()).map(|(record, _)| record)
    }

    /// Follows the order: every record is judged again before it is believed.
    pub fn watch<'w>(&'w self, swap: &'w Swap, pace: Pace) -> impl Stream<Item = Result<Progress, Error>> + 'w {
        track(self.client, swap.id(), self.registry, pace, move |record| self.judge(swap, record).map(drop))
    }

    /// Gives the secret to the service's relayer, which redeems to the owner, if everything allows it: the record holds
    /// what was verified, the destination side is funded in a block, and its timelock leaves room.
    ///
    /// # Errors
    ///
    /// [`Error::Held`] or [`Error::Refused`], and the secret has not left; or any other [`Error`].
    pub async fn redeem(&self, swap: &Swap, secret: &Secret) -> Result<Answer<Option<String>>, Error> {
        let record = self.follow(swap).await?;
        if secret.hash() != record.destination_swap.secret_hash || secret.hash() != record.source_swap.secret_hash {
            return Err(Error::Held(Hold::OtherSecret));
        }
        release::check(&record, self.registry, self.client.transport().now(), self.headroom)?;
        self.client.act(swap.id(), &Action::Redeem { secret }).await
    }

    /// Asks the service's relayer to refund. Where the timelock has not run out, the service says so.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn refund(&self, id: &OrderId) -> Result<Answer<Option<String>>, Error> {
        self.client.act(id, &Action::Refund).await
    }

    /// Consents to an early refund on a Bitcoin-like chain.
    ///
    /// `sign` gets the record and the hashes that the service wants signed. It computes each hash again from the record
    /// (`instant_refund` of this crate does), refuses one that it did not find, and returns one signature for each, in their order: 64 bytes and the hash type
    /// `83`, in hex.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] as `sign` refuses, and nothing was sent; or any other [`Error`].
    pub async fn instant_refund(
        &self,
        swap: &Swap,
        sign: impl FnOnce(&OrderRecord, &[[u8; 32]]) -> Result<Vec<String>, Refusal>,
    ) -> Result<Answer<Option<String>>, Error> {
        let record = self.follow(swap).await?;
        let hashes = self.client.instant_refund_hash(swap.id()).await?.value;
        let signatures = sign(&record, &hashes).map_err(Error::Refused)?;
        let formed =
            |signature: &String| signature.len() == 130 && signature.ends_with("83") && signature.bytes().all(|b| b.is_ascii_hexdigit());
        if hashes.is_empty() || signatures.len() != hashes.len() {
            return Err(Error::Refused(Refusal::new(Code::SignatureCount, "/signatures").with_expected(hashes.len()).with_actual(signatures.len())));
        }
        if !signatures.iter().all(formed) {
            return Err(Error::Refused(Refusal::new(Code::SignatureMalformed, "/signatures")));
        }
        self.client.act(swap.id(), &Action::InstantRefund { signatures: &signatures }).await
    }
}
