//! The driver as this program uses it, and the owner at a terminal who signs for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign::json::{self, Cursor};
use countersign::{
    BroadcastTransaction, Code, Family, OrderRecord, Policy, Registry, Severity, U256, Unsigned, Verified, Warnings, evidence::Stage,
};
use countersign_client::driver::{
    Chains as _, Driver, FundingReply, Owner, OwnerCode, OwnerError, Purpose, Settlement, SignedFunding, TrustTheService, check_floor,
};
use countersign_client::{Flow, Http, OrderId, Pace};
use countersign_node::{Attempt, Ends, Nodes, SettlementKey, Speed};
use countersign_store::Store;
use countersign_view::{Catalogue, Sentence};
use zeroize::Zeroizing;

use crate::accepted::Accepted;
use crate::command::Commands;
use crate::consent::{self, Judge, Payment, Question, QuotedFee};
use crate::contracts;
use crate::failure::{Failure, usage};
use crate::key::{GivenKey, sign};
use crate::session::Session;
use crate::show;

/// Whether to trust the service's statements about chains.
#[derive(clap::Args)]
pub(crate) struct TrustFlags {
    /// Trusts the service's word that the solver has paid, and sends the secret to the service's relayer. RISK: a dishonest service then
    /// has the secret, takes your payment and pays nothing. Without this flag, check the destination chain yourself and redeem with
    /// `countersign redeem --self`.
    #[arg(long)]
    trust_the_service: bool,
}

impl TrustFlags {
    pub(crate) fn trust(&self) -> Option<TrustTheService> {
        self.trust_the_service.then_some(TrustTheService)
    }
}

/// The driver as this program uses it.
pub(crate) type CliDriver<O> = Driver<Http, Arc<Nodes<Http>>, Arc<Store>, O>;

pub(crate) fn driver<O: Owner>(
    flow: Flow<Http>,
    nodes: &Arc<Nodes<Http>>,
    store: &Arc<Store>,
    owner: O,
    pace: Pace,
    trust: Option<TrustTheService>,
) -> CliDriver<O> {
    let driver = Driver::new(flow, Arc::clone(nodes), Arc::clone(store), owner).with_pace(pace).with_trust(trust);
    if trust.is_some() { driver.allow_relayer() } else { driver }
}

/// The owner at a terminal, with or without a local key.
pub(crate) struct TerminalOwner<'s> {
    pub(crate) session: &'s Session,
    pub(crate) nodes: Arc<Nodes<Http>>,
    /// Has the descriptions of the contracts.
    pub(crate) store: Arc<Store>,
    pub(crate) speed: Speed,
    /// Signs the owner's own refund of the source; `None` without a key.
    pub(crate) refund: Option<SettlementKey>,
    /// Signs the owner's own redemption of the destination; `None` without a key.
    pub(crate) redeem: Option<SettlementKey>,
    /// The owner's address on the source chain.
    pub(crate) owner: String,
    /// The wallet context, as JSON.
    pub(crate) wallet: Option<Zeroizing<Vec<u8>>>,
    pub(crate) key: Option<GivenKey>,
    /// The key of the configuration file, used if neither an argument nor the wallet context gives one.
    pub(crate) configured_key: Option<GivenKey>,
    /// Whether to sign without asking.
    pub(crate) yes: bool,
    /// Whether the whole summary is shown before the question.
    pub(crate) full: bool,
    /// The pins, for the names of coins.
    pub(crate) registry: Registry,
    /// The service's fee; `None` if this run has not seen the quote.
    pub(crate) quoted: Option<QuotedFee>,
    /// Whether somebody else holds the secret.
    pub(crate) secret_elsewhere: bool,
    /// Whether the token approval is on chain already.
    pub(crate) approved: bool,
    /// Whether the account pays with its own transactions, although the order offers a gasless message.
    pub(crate) own_transactions: bool,
    /// The minimum that the record must pay, in base units, by an argument of this run. The minimum stored with the order applies as well.
    pub(crate) at_least: Option<U256>,
    pub(crate) policy: Policy,
    /// Whether the service's relayer may redeem in place of an account without coins for the fee.
    pub(crate) has_relayer: bool,
}

fn failed(failure: Failure) -> OwnerError {
    match failure {
        Failure::Refused(refusal) => refusal.into(),
        Failure::Network { message, .. } => OwnerError::Unavailable(message),
        Failure::Held { code, message } => OwnerError::Failed { code: OwnerCode::new(code), message },
        other => OwnerError::Failed { code: OwnerCode::new("not_signed"), message: other.message() },
    }
}

impl Owner for TerminalOwner<'_> {
    async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        self.sign(order, false).await.map_err(failed)
    }

    async fn hand_out(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        self.sign(order, true).await.map_err(failed)
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        let key = if task.purpose == Purpose::Refund { &self.refund } else { &self.redeem };
        match key {
            Some(key) if self.nodes.has(&task.leg.of(task.record).chain) => self.settle_with(task, key).await.map(Some).map_err(failed),
            _ => Ok(None),
        }
    }

    async fn raise(&self, order: &Verified, sent: &BroadcastTransaction) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        let key = self.key.as_ref().or(self.configured_key.as_ref());
        match key.filter(|_| self.wallet.is_none() && self.nodes.has(order.chain())) {
            Some(key) => self.raise_with(order, sent, key).await.map(Some).map_err(failed),
            None => Ok(None),
        }
    }

    async fn check_release(&self, record: &OrderRecord, registry: &Registry) -> Result<(), OwnerError> {
        self.check(Ends::of_record(record, registry), Stage::BeforeSecret).await.map(drop).map_err(failed)
    }

    fn can_redeem(&self, chain: &str) -> bool {
        self.redeem.is_some() && self.nodes.has(chain)
    }

    /// Every key is read from an argument, a file or the rescue phrase.
    fn signs_here(&self, _: &str) -> bool {
        true
    }
}

impl TerminalOwner<'_> {
    /// Shows the order, asks for confirmation, and signs. A deposit that any wallet pays is shown once the journal says so (`is_written`).
    async fn sign(&self, order: &Verified, is_written: bool) -> Result<FundingReply, Failure> {
        check_floor(order, self.at_least)?;
        // Whoever pays, and from wherever: what could never be redeemed is not paid.
        let found = match Ends::of_order(order).filter(|_| !is_written) {
            Some(ends) => self.check(ends, Stage::BeforePaying).await?,
            None => Vec::new(),
        };
        let chain = order.chain();
        let key = self.key.as_ref().or(self.configured_key.as_ref());
        if let Some(key) = key.filter(|_| self.wallet.is_none() && self.nodes.has(chain)) {
            let (owner, speed, policy) = (&self.owner, self.speed, &self.policy);
            let unsigned = match self.own_transactions {
                true => self.nodes.prepare_own(order, chain, owner, speed, policy).await?,
                false => self.nodes.prepare(order, chain, owner, speed, policy).await?,
            };
            return self.sign_prepared(order, unsigned, &found, key).await;
        }
        let sentence = Sentence::new(&order.terms(), order.warnings());
        let Some(text) = wallet_context(order, self.wallet.clone()) else {
            self.tell(&found, order);
            if !self.session.json {
                show::heading_on_stderr(&sentence.to_string())?;
            }
            self.session.summary_on_stderr(&order.summary(), order.warnings())?;
            return Ok(FundingReply::NotNow);
        };
        let wallet = json::parse(&text).map_err(|refusal| refusal.with_prefix("/wallet"))?;
        let wallet = Cursor::root(&wallet, "/wallet");
        let unsigned = countersign_json::prepare(order, wallet)?;
        let in_wallet = wallet.object()?.get("secret_key").map(|key| key.secret()).transpose()?;
        let in_wallet = in_wallet.map(|key| GivenKey::of_wallet(Zeroizing::new(key.to_owned())));
        let Some(key) = self.key.as_ref().or(in_wallet.as_ref()).or(self.configured_key.as_ref()) else {
            self.tell(&found, order);
            let is_deposit = order.family() == Family::Bitcoin;
            if is_deposit && !is_written {
                return Ok(FundingReply::Outside);
            }
            // The result of the command follows later, so that this is not its document.
            if self.session.json {
                Accepted::prepared(&unsigned).report(self.session)
            } else {
                Accepted::prepared(&unsigned).with_sentence(&sentence, &Catalogue::english()).print(false)?
            }
            return Ok(if is_deposit { FundingReply::Elsewhere } else { FundingReply::NotNow });
        };
        self.sign_prepared(order, unsigned, &found, key).await
    }

    /// Signs the payment again for a higher fee. The owner has agreed to the payment, and the policy limits the fee.
    async fn raise_with(
        &self,
        order: &Verified,
        sent: &BroadcastTransaction,
        key: &GivenKey,
    ) -> Result<Vec<BroadcastTransaction>, Failure> {
        let chain = order.chain();
        let submission = self.nodes.submission(chain, &sent.id, &sent.payload)?;
        let mut unsigned = self.nodes.prepare_raised(order, chain, &submission, Speed::Fast, &self.policy).await?;
        sign(&mut unsigned, key)?;
        let raised = SignedFunding::from_signed(&unsigned.finish().map_err(usage)?).transactions;
        self.session.progress("the payment is in no block yet: it is sent again for a higher fee, with the same coins");
        Ok(raised)
    }

    /// Shows a prepared payment, asks for confirmation, and signs.
    async fn sign_prepared(
        &self,
        order: &Verified,
        mut unsigned: Unsigned,
        found: &[(Code, String)],
        key: &GivenKey,
    ) -> Result<FundingReply, Failure> {
        let order_id = order.order_id();
        if self.yes {
            self.tell(found, order);
            self.session.summary_on_stderr(&unsigned.summary(), unsigned.warnings())?;
            check_warnings(unsigned.warnings(), &self.policy)?
        } else {
            self.confirm(order, &unsigned, found).await?
        }
        sign(&mut unsigned, key)?;
        let signed = unsigned.finish().map_err(usage)?;
        self.nodes.check_signed(&signed).await.map_err(|error| with_own_transactions(error.into(), &self.session.commands, order_id))?;
        let mut funding = SignedFunding::from_signed(&signed);
        if self.approved && funding.gasless.is_some() {
            funding.transactions.clear();
        }
        Ok(FundingReply::Signed(funding))
    }

    /// Asks the owner whether to sign a payment.
    async fn confirm(&self, order: &Verified, unsigned: &Unsigned, found: &[(Code, String)]) -> Result<(), Failure> {
        if self.session.json {
            self.tell(found, order);
        }
        let payment = Payment {
            order,
            unsigned,
            registry: &self.registry,
            quoted: self.quoted.as_ref(),
            found,
            judge: self.judge(order),
            now: show::now(),
            is_full: self.full,
        };
        let id = OrderId::parse(order.order_id())?;
        let after_no = consent::unpaid(&id, &self.session.commands.resume(&id));
        let question = Question { text: "sign this?", after_no, is_full: self.full };
        // An order that is paid already may have to be redeemed meanwhile.
        consent::ask_meanwhile(&payment.consent(), Some((&unsigned.summary(), unsigned.warnings())), &question, self.session).await
    }

    fn judge(&self, order: &Verified) -> Judge {
        let alone = if self.has_relayer { Judge::Service } else { Judge::Owner };
        Judge::new(self.secret_elsewhere, Judge::chain(&self.nodes, order.terms().destination.chain()), alone)
    }

    /// Says what the chains show about an order that is about to be paid.
    fn tell(&self, found: &[(Code, String)], order: &Verified) {
        for (code, message) in found {
            self.session.progress(&format!("warning: {code}: {message}"));
        }
        let chain = order.terms().destination.chain();
        if !self.nodes.has(chain) {
            self.session.progress(&format!("{chain} is not connected: you will have to check the solver's payment there yourself"));
        }
    }

    /// Asks what must hold at a stage of an order, and returns what the owner should know about it.
    async fn check(&self, ends: Ends<'_>, stage: Stage) -> Result<Vec<(Code, String)>, Failure> {
        let contracts = contracts::kept(&self.store)?;
        let ends = ends.redeemed_by(self.redeem.as_ref().map(|key| key.account.as_str())).with_relayer(self.has_relayer);
        let ends = ends.described(&contracts);
        let found = self.nodes.preconditions(&ends, stage, self.speed, &self.policy).await;
        if stage == Stage::BeforePaying && self.yes {
            check_accepted(found.warnings.iter().map(|(code, _)| *code), &self.policy)?;
        }
        let warnings = found.warnings.clone();
        found.check()?;
        Ok(warnings)
    }

    /// Builds and signs a redemption or a refund with the nonce and fees read from its chain.
    async fn settle_with(&self, task: &Settlement<'_>, key: &SettlementKey) -> Result<Vec<BroadcastTransaction>, Failure> {
        let recovery = task.recovery()?;
        let attempt = match task.replaces {
            [] if task.is_urgent => Attempt::Urgent,
            [] => Attempt::First(self.speed),
            [sent] => Attempt::Replacement { id: &sent.id, payload: &sent.payload },
            // A recovery is a single transaction.
            _ => return Ok(Vec::new()),
        };
        let signed = self.nodes.settle(&recovery, &task.leg.of(task.record).chain, attempt, key, &self.policy).await?;
        Ok(signed.broadcasts())
    }
}

/// Offers to pay the same order with the account's own transactions, where its code refuses the gasless message. They cost gas, so nothing
/// of it happens before the owner gives the command.
fn with_own_transactions(failure: Failure, commands: &Commands, order_id: &str) -> Failure {
    match (failure, OrderId::parse(order_id)) {
        (Failure::Refused(refusal), Ok(id)) if refusal.code() == Code::ContractSignatureRefused => {
            let (reason, again) = (refusal.reason().to_owned(), commands.resume(&id));
            Failure::Refused(
                refusal.with_reason(format!("{reason}; nothing was sent. To pay with transactions: {again} --own-transactions")),
            )
        }
        (failure, _) => failure,
    }
}

/// Checks that the policy accepts every warning, because with `--yes` nobody reads them.
pub(crate) fn check_warnings(warnings: &Warnings, policy: &Policy) -> Result<(), Failure> {
    check_accepted(warnings.list().iter().map(|warning| warning.code()), policy)
}

/// Checks that the policy accepts warnings with these codes, those of a document or of a chain.
fn check_accepted(codes: impl Iterator<Item = Code>, policy: &Policy) -> Result<(), Failure> {
    let is_open = |code: &Code| code.severity() > Severity::Info && !policy.accepted_warnings.contains(code);
    let open: BTreeSet<_> = codes.filter(is_open).collect();
    if open.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = open.into_iter().map(Code::name).collect();
    let message = format!(
        "--yes does not accept: {}. Read the warnings and run without --yes, or list them as accepted_warnings in the policy",
        names.join(", ")
    );
    Err(Failure::Held { code: "warning_not_accepted", message })
}

/// Returns the wallet context to prepare an order with: the given one, or an empty one for a Bitcoin-like deposit, whose address any
/// wallet can pay.
pub(crate) fn wallet_context(order: &Verified, given: Option<Zeroizing<Vec<u8>>>) -> Option<Zeroizing<Vec<u8>>> {
    given.or_else(|| (order.family() == Family::Bitcoin).then(|| b"{}".to_vec().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody reads them then, whether a document or a chain gave rise to them.
    #[test]
    fn with_yes_the_policy_accepts_what_chains_show() {
        let found = [Code::MintAuthorities, Code::FinalityIgnoresValue];
        let held = check_accepted(found.into_iter(), &Policy::default());
        assert!(matches!(&held, Err(Failure::Held { code: "warning_not_accepted", message }) if message.contains("mint_authorities")));
        assert!(
            check_accepted(found.into_iter(), &Policy::default().accepting(Code::MintAuthorities)).is_ok(),
            "the other one only informs"
        );
    }
}
