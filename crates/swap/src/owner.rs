//! The owner behind the host: asked for consent and signatures, except for what the keys of the rescue phrase sign.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign::{
    BroadcastTransaction, Code, Family, Key, OrderRecord, Policy, Refusal, Registry, Signed, Unsigned, Verified, chains::UnixTime,
    evidence::Stage,
};
use countersign_client::driver::{
    Chains as _, Delivery, Entry, Event as Noted, FundingReply, OrderState, OrderStore as _, Owner, OwnerCode, OwnerError, Purpose,
    SecretRoute, Settlement, SignedFunding, StoreError,
};
use countersign_client::rescue::derived_key;
use countersign_client::{OrderId, Transport as _};
use countersign_json::objects;
use countersign_node::{Attempt, Contracts, Ends, NodeError, Nodes, SettlementKey, Speed};
use countersign_store::rescue::Rescue;
use futures_util::future::{Either, select};

use crate::event::Event;
use crate::host::Host;
use crate::need::{Ask, Consent, Reply, Signing, has_sent_nothing};
use crate::options::Options;
use crate::store::HostStore;

/// How long a signature of a redemption or a refund is waited for. Then the order is observed again, and a new transaction is asked for.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the chain may take to show what a wallet has sent by itself. The wallet chose its fee, and is then asked again.
const WALLET_WAIT: Duration = Duration::from_secs(120);
/// How often a line is written again whose order is locked, and the wait in between. Such locks are short.
const LOCK_RETRIES: (u8, Duration) = (50, Duration::from_millis(100));
const DECLINED: OwnerCode = OwnerCode::new("declined");
const NOT_SIGNED: OwnerCode = OwnerCode::new("not_signed");

pub(crate) struct HostOwner {
    pub(crate) host: Host,
    pub(crate) nodes: Arc<Nodes<Host>>,
    pub(crate) store: HostStore,
    pub(crate) options: Arc<Options>,
    pub(crate) policy: Arc<Policy>,
    /// The pins of today, with the chains of open orders that are not listed any more.
    pub(crate) registry: Arc<Registry>,
    /// What the owner agreed to and nobody has signed yet, by order id.
    pub(crate) agreed: Mutex<BTreeMap<String, Payment>>,
    /// The orders whose payment a signer was asked to raise and did not sign. It may have sent one of its own, so it is not asked again.
    pub(crate) not_raised: Mutex<BTreeSet<String>>,
}

/// A payment that the owner agreed to.
pub(crate) enum Payment {
    /// A signer gets it.
    Sign(Box<Signing>, Unsigned),
    /// Any wallet pays the deposit address.
    Deposit(Unsigned),
}

fn unavailable(error: impl std::fmt::Display) -> OwnerError {
    OwnerError::Unavailable(error.to_string())
}

fn of_node(error: NodeError) -> OwnerError {
    match error {
        NodeError::Refused(refusal) => OwnerError::Refused(refusal),
        other => unavailable(other),
    }
}

impl Owner for HostOwner {
    async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        // Whoever pays, and from wherever: what could never be redeemed is not paid.
        let found = match Ends::of_order(order) {
            Some(ends) => self.check(ends, Stage::BeforePaying).await?,
            None => Vec::new(),
        };
        let chain = order.chain().to_owned();
        let Some(account) = self.options.account(&chain, &self.registry).map(str::to_owned) else {
            return self.deposit(order, found).await;
        };
        let unsigned = match self.prepare(order, &chain, &account).await {
            Ok(unsigned) => unsigned,
            // The coins are in another wallet, which pays the deposit address.
            Err(NodeError::Refused(refusal)) if order.family() == Family::Bitcoin && refusal.code() == Code::InsufficientFunds => {
                return self.deposit(order, found).await;
            }
            Err(error) => return Err(of_node(error)),
        };
        self.consent(order, &unsigned, found).await?;
        let signing = signing(order.order_id(), Purpose::Funding, chain, account);
        if self.options.sign_only {
            return self.sign(order, signing, unsigned).await;
        }
        Ok(self.agree(order, Payment::Sign(Box::new(signing), unsigned)))
    }

    async fn hand_out(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        let agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner).remove(order.order_id());
        match agreed {
            None => Ok(FundingReply::NotNow),
            Some(Payment::Deposit(unsigned)) => {
                let message = "pay the deposit address from any wallet; the order counts as paid from now on".to_owned();
                let summary = objects::summary(&unsigned.summary());
                self.host.report(Event::Deposit { order_id: order.order_id().to_owned(), message, summary });
                Ok(FundingReply::Elsewhere)
            }
            Some(Payment::Sign(signing, unsigned)) => self.sign(order, *signing, unsigned).await,
        }
    }

    /// Asks the signer that signed the payment. Whatever it does otherwise, what was sent remains the payment: both spend the same coins.
    async fn raise(&self, order: &Verified, sent: &BroadcastTransaction) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        let chain = order.chain().to_owned();
        let account = self.options.account(&chain, &self.registry).map(str::to_owned);
        let may_ask = self.nodes.has(&chain) && !self.lock_not_raised().contains(order.order_id());
        let Some(account) = account.filter(|_| may_ask) else { return Ok(None) };
        let submission = self.nodes.submission(&chain, &sent.id, &sent.payload).map_err(of_node)?;
        let unsigned = self.nodes.prepare_raised(order, &chain, &submission, Speed::Fast, &self.policy).await.map_err(of_node)?;
        let mut signing = signing(order.order_id(), Purpose::Funding, chain, account);
        signing.replaces = Some(sent.id.clone());
        let asked = Payloads::of(&unsigned);
        let asking = pin!(self.host.ask_to_sign(Ask::Sign(signing), unsigned));
        match select(asking, pin!(self.host.sleep(SETTLE_TIMEOUT))).await {
            Either::Left((Reply::Signed(signed), _)) => Ok(Some(SignedFunding::from_signed(&asked.finish(*signed)?).transactions)),
            _ => {
                self.lock_not_raised().insert(order.order_id().to_owned());
                Ok(None)
            }
        }
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        let chain = task.leg.of(task.record).chain.clone();
        if !self.nodes.has(&chain) {
            return Ok(None);
        }
        let recovery = task.recovery()?;
        let attempt = match task.replaces {
            [] if task.is_urgent => Attempt::Urgent,
            [] => Attempt::First(self.options.speed),
            [sent] => Attempt::Replacement { id: &sent.id, payload: &sent.payload },
            // A recovery is a single transaction.
            _ => return Ok(None),
        };
        if recovery.family() == Family::Bitcoin {
            let Some(key) = self.derived(task).await? else { return Ok(None) };
            let signed = self.nodes.settle(&recovery, &chain, attempt, &key, &self.policy).await.map_err(of_node)?;
            return Ok(Some(signed.broadcasts()));
        }
        let Some(account) = self.options.account(&chain, task.registry).map(str::to_owned) else { return Ok(None) };
        let id = OrderId::parse(&task.record.order_id).map_err(unavailable)?;
        let kept = self.store.load(&id).await.map_err(unavailable)?;
        match self_sent(&kept, task.purpose, self.host.now(), self.options.relayer) {
            SelfSent::Wait => return Err(unavailable(AT_WALLET)),
            SelfSent::Relayer => return Ok(None),
            SelfSent::Ask => {}
        }
        let unsigned = self.nodes.prepare_settlement(&recovery, &chain, attempt, &account, &self.policy).await.map_err(of_node)?;
        let ask = Ask::Sign(signing(&task.record.order_id, task.purpose, chain, account));
        let asked = Payloads::of(&unsigned);
        let asking = pin!(self.host.ask_to_sign(ask, unsigned));
        match select(asking, pin!(self.host.sleep(SETTLE_TIMEOUT))).await {
            Either::Left((Reply::Signed(signed), _)) => Ok(Some(asked.finish(*signed)?.broadcasts())),
            Either::Left((Reply::NotSigned(_), _)) => Ok(None),
            Either::Left((Reply::SignerFailed { code, .. }, _)) if has_sent_nothing(code) => Ok(None),
            // What a wallet that fails has sent is shown by the chain: both transactions end the same HTLC, and only one takes effect.
            Either::Left((Reply::SignerFailed { message, .. }, _)) => Err(unavailable(message)),
            Either::Left((Reply::Sent, _)) => {
                note_sent(&self.host, &self.store, &id, task.purpose).await.map_err(unavailable)?;
                Err(unavailable(AT_WALLET))
            }
            _ => Err(unavailable("the redemption or refund was not signed in time; asking again")),
        }
    }

    async fn check_release(&self, record: &OrderRecord, registry: &Registry) -> Result<(), OwnerError> {
        self.check(Ends::of_record(record, registry), Stage::BeforeSecret).await.map(drop)
    }

    fn can_redeem(&self, chain: &str) -> bool {
        let has_account = || self.options.account(chain, &self.registry).is_some() && self.options.may_sign(chain, &self.registry);
        self.nodes.has(chain) && (self.signs_here(chain) || has_account())
    }

    /// The keys of the rescue phrase are here, and those of accounts are the host's: a wallet can send what it gets, so the journal says first
    /// that the secret may be out.
    fn signs_here(&self, chain: &str) -> bool {
        self.registry.family(chain).is_ok_and(|family| family == Family::Bitcoin)
    }
}

const AT_WALLET: &str = "the wallet has sent the transaction, which the chain does not show yet";

/// What to do about a redemption or a refund that a wallet may have sent by itself.
#[derive(Debug, PartialEq, Eq)]
enum SelfSent {
    /// The wallet is asked: it has sent nothing, or what it sent should have been mined by now.
    Ask,
    /// The wallet has sent it so recently that it may not be mined yet.
    Wait,
    /// It should have been mined by now, and the relayer does not know the secret yet, which is out.
    Relayer,
}

fn self_sent(kept: &OrderState, purpose: Purpose, now: UnixTime, relayer_allowed: bool) -> SelfSent {
    let what = delivery(purpose);
    // One that was signed here is sent again from here.
    if kept.signed(purpose).is_some() || !kept.was_sent(what) {
        return SelfSent::Ask;
    }
    let (_, last) = kept.attempts(what);
    // A clock that was set back delays nothing.
    if last <= now && now < last.saturating_add(WALLET_WAIT) {
        return SelfSent::Wait;
    }
    match purpose == Purpose::Redemption && relayer_allowed && !kept.relayer_has_secret() {
        true => SelfSent::Relayer,
        false => SelfSent::Ask,
    }
}

const fn delivery(purpose: Purpose) -> Delivery {
    match purpose {
        Purpose::Redemption => Delivery::Redemption,
        Purpose::Refund => Delivery::Refund,
        _ => Delivery::Funding,
    }
}

fn signing(order_id: &str, purpose: Purpose, chain: String, account: String) -> Signing {
    Signing { order_id: order_id.to_owned(), purpose, chain, account, replaces: None }
}

/// What the host was asked to sign. It must hand back the same order, not another one that it holds.
struct Payloads(Vec<(String, Vec<u8>)>);

impl Payloads {
    fn of(unsigned: &Unsigned) -> Self {
        Self(unsigned.requests().into_iter().map(|request| (request.id.to_string(), request.digest)).collect())
    }

    fn finish(&self, signed: Unsigned) -> Result<Signed, OwnerError> {
        if Self::of(&signed).0 != self.0 {
            return Err(OwnerError::Failed {
                code: NOT_SIGNED,
                message: "another order was signed than the one that was asked for".to_owned(),
            });
        }
        Ok(signed.finish()?)
    }
}

/// Writes down that a wallet has sent a redemption or a refund by itself. The secret of a redemption is out then.
pub(crate) async fn note_sent(host: &Host, store: &HostStore, id: &OrderId, purpose: Purpose) -> Result<(), StoreError> {
    let what = delivery(purpose);
    let leaving = (purpose == Purpose::Redemption).then_some(Noted::SecretLeaving { path: SecretRoute::Own });
    let (retries, wait) = LOCK_RETRIES;
    let mut left = retries;
    let guard = loop {
        match store.lock(id).await {
            Err(StoreError::Busy) if left > 0 => host.sleep(wait).await,
            locked => break locked?,
        }
        left = left.saturating_sub(1);
    };
    for event in leaving.into_iter().chain([Noted::sending(what), Noted::Sent { what }]) {
        store.append(&guard, &Entry { at: host.now(), event }).await?;
    }
    Ok(())
}

impl HostOwner {
    fn lock_not_raised(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.not_raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares a payment of an account as the options say: with the gasless message that the order offers, or with the account's own
    /// transactions.
    async fn prepare(&self, order: &Verified, chain: &str, account: &str) -> Result<Unsigned, NodeError> {
        let Options { speed, own_transactions, .. } = *self.options;
        match own_transactions {
            true => self.nodes.prepare_own(order, chain, account, speed, &self.policy).await,
            false => self.nodes.prepare(order, chain, account, speed, &self.policy).await,
        }
    }

    /// Asks what must hold at a stage of an order, and returns what the owner should know about it.
    async fn check(&self, ends: Ends<'_>, stage: Stage) -> Result<Vec<(Code, String)>, OwnerError> {
        let account = self.options.account(ends.destination_chain(), &self.registry);
        // Before paying, whoever follows the order compares the contracts of both legs.
        let bytes = match stage {
            Stage::BeforePaying => None,
            _ => self.store.run(|store| store.contracts()).await.map_err(unavailable)?,
        };
        let contracts = bytes.map(|bytes| Contracts::from_json(&bytes)).transpose()?.unwrap_or_default();
        let ends = ends.redeemed_by(account).with_relayer(self.options.relayer).described(&contracts);
        let mut found = self.nodes.preconditions(&ends, stage, self.options.speed, &self.policy).await;
        let warnings = std::mem::take(&mut found.warnings);
        found.check().map_err(of_node)?;
        Ok(warnings)
    }

    /// Has a payment signed. An account whose code refuses the gasless message can pay with its own transactions, which cost gas, so the owner
    /// is asked anew.
    async fn sign(&self, order: &Verified, signing: Signing, unsigned: Unsigned) -> Result<FundingReply, OwnerError> {
        let mut signed = match self.ask_to_pay(signing.clone(), unsigned).await? {
            Ok(signed) => signed,
            Err(reply) => return Ok(reply),
        };
        match self.nodes.check_signed(&signed).await {
            Ok(()) => {}
            Err(NodeError::Refused(refusal)) if refusal.code() == Code::ContractSignatureRefused => {
                let own = self.agree_to_own(order, &signing, &refusal).await?;
                signed = match self.ask_to_pay(signing, own).await? {
                    Ok(signed) => signed,
                    Err(reply) => return Ok(reply),
                };
            }
            Err(error) => return Err(of_node(error)),
        }
        Ok(FundingReply::Signed(SignedFunding::from_signed(&signed)))
    }

    /// Prepares the account's own transactions in place of a message that its code refuses, and asks the owner to agree to them.
    async fn agree_to_own(&self, order: &Verified, signing: &Signing, refusal: &Refusal) -> Result<Unsigned, OwnerError> {
        let prepared = self.nodes.prepare_own(order, &signing.chain, &signing.account, self.options.speed, &self.policy).await;
        let unsigned = prepared.map_err(of_node)?;
        let answer = refusal.actual().map(ToString::to_string).unwrap_or_default();
        self.consent(order, &unsigned, vec![(refusal.code(), answer)]).await?;
        Ok(unsigned)
    }

    /// Asks the signer for the signatures of a payment; an inner error is the reply if there are none.
    async fn ask_to_pay(&self, signing: Signing, unsigned: Unsigned) -> Result<Result<Signed, FundingReply>, OwnerError> {
        let asked = Payloads::of(&unsigned);
        let order_id = signing.order_id.clone();
        match self.host.ask_to_sign(Ask::Sign(signing), unsigned).await {
            Reply::Signed(signed) => Ok(Ok(asked.finish(*signed)?)),
            Reply::Sent => Ok(Err(FundingReply::Elsewhere)),
            Reply::NotSigned(message) => Err(OwnerError::Failed { code: NOT_SIGNED, message }),
            Reply::SignerFailed { message, code } if self.options.sign_only || has_sent_nothing(code) => {
                Err(OwnerError::Failed { code: NOT_SIGNED, message })
            }
            // The wallet may have sent the payment before it failed. Asking again could pay twice.
            Reply::SignerFailed { message, .. } => {
                self.host.report(Event::maybe_sent(&order_id, &message));
                Ok(Err(FundingReply::Elsewhere))
            }
            _ => Ok(Err(FundingReply::NotNow)),
        }
    }

    /// Returns whether a swap to this chain can be redeemed only by the service's relayer, which learns the secret before the owner is paid.
    fn trusts_the_service(&self, order: &Verified) -> bool {
        !self.can_redeem(order.terms().destination.chain())
    }

    /// Shows a Bitcoin-like deposit, which any wallet can pay. Other families need an account.
    async fn deposit(&self, order: &Verified, found: Vec<(Code, String)>) -> Result<FundingReply, OwnerError> {
        if order.family() != Family::Bitcoin {
            return Ok(FundingReply::NotNow);
        }
        let unsigned = objects::prepare(order, b"{}").map_err(unavailable)?;
        self.consent(order, &unsigned, found).await?;
        // Written down as paid before anybody is asked to pay: a deposit that is forgotten would be paid twice.
        Ok(self.agree(order, Payment::Deposit(unsigned)))
    }

    /// Keeps what the owner agreed to until the journal says that it may be on its way.
    fn agree(&self, order: &Verified, payment: Payment) -> FundingReply {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner).insert(order.order_id().to_owned(), payment);
        FundingReply::Outside
    }

    /// Asks the owner to agree to exactly what would be signed. `found` is what the chains have shown.
    async fn consent(&self, order: &Verified, unsigned: &Unsigned, found: Vec<(Code, String)>) -> Result<(), OwnerError> {
        let mut warnings = unsigned.warnings().clone();
        for (code, message) in found {
            warnings.warn_about(code, message);
        }
        if self.trusts_the_service(order) {
            warnings.warn(Code::TrustsTheService);
            warnings.check_refused(&self.policy.refused_warnings)?;
        }
        let consent = Consent {
            order_id: order.order_id().to_owned(),
            terms: objects::terms(&order.terms()),
            summary: objects::summary(&unsigned.summary()),
            warnings: objects::warnings(&warnings),
        };
        match self.host.ask(Ask::Consent(Box::new(consent))).await {
            // The owner may have taken hours.
            Reply::Consent(true) => Ok(order.check_deadline(self.host.now())?),
            _ => Err(OwnerError::Failed { code: DECLINED, message: "the owner declined".to_owned() }),
        }
    }

    /// Returns the key of the rescue phrase that settles a leg of an order on a Bitcoin-like chain; `None` if the order names another key.
    async fn derived(&self, task: &Settlement<'_>) -> Result<Option<SettlementKey>, OwnerError> {
        let id = OrderId::parse(&task.record.order_id).map_err(unavailable)?;
        let kept = self.store.load(&id).await.map_err(unavailable)?;
        let request = kept.swap.request();
        let leg = if task.purpose == Purpose::Refund { &request.source } else { &request.destination };
        let (Some(at), Some(named)) = (kept.key_index(), &leg.delegate) else { return Ok(None) };
        let Some(phrase) = self.store.run(|store| store.phrase()).await.map_err(unavailable)? else { return Ok(None) };
        let rescue = Rescue::new(&phrase).map_err(unavailable)?;
        let Some(key) = derived_key(&rescue, task.leg, at, named).map_err(unavailable)? else { return Ok(None) };
        let account = leg.owner.clone().or_else(|| self.options.account(leg.asset.chain(), task.registry).map(str::to_owned));
        Ok(SettlementKey::new(Key::parse(Family::Bitcoin, &key)?, account))
    }
}

#[cfg(test)]
mod tests;
