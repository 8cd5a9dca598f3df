//! Drives a stored order, for `swap`, `order watch`, `redeem` and `refund`.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use countersign::json::{self, Node};
use countersign::{Code, Family, Policy, RequestedLeg, Severity, U256, Unsigned, Verified, Warnings, recover, text};
use countersign_client::driver::{
    Chains as _, DriveError, Driver, FundingReply, KeptTransaction, Outcome, Owner, OwnerError, OwnerTask, Progress, Purpose, Sendable,
    Settlement, SignedFunding, Status, Store as _, TrustTheService, check_floor,
};
use countersign_client::status::State;
use countersign_client::{Flow, Http, OrderId, Pace, StreamExt};
use countersign_node::{Nodes, Speed};
use countersign_store::Store;
use zeroize::Zeroizing;

use crate::accepted::Accepted;
use crate::input::{Failure, chain, usage};
use crate::status::{StatusReport, describe, report_status};
use crate::{OK, show};

/// The message if an order's secret is missing.
pub(crate) const SECRET_MISSING: &str =
    "the secret of this order is not in the state directory, so nothing is paid; pass --service-secret if somebody else holds the secret";

/// Whether to trust the service's statements about chains.
#[derive(clap::Args)]
pub(crate) struct TrustFlags {
    /// Trusts the service's word that the solver has paid, and sends the secret to the service's relayer. RISK: a dishonest service then has the
    /// secret, takes your payment and pays nothing. Without this flag, check the destination chain yourself and redeem with
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
pub(crate) type Program<O> = Driver<Http, Arc<Nodes<Http>>, Arc<Store>, O>;

pub(crate) fn driver<O: Owner>(
    flow: Flow<Http>,
    nodes: &Arc<Nodes<Http>>,
    store: &Arc<Store>,
    owner: O,
    pace: Pace,
    trust: Option<TrustTheService>,
) -> Program<O> {
    let driver = Driver::new(flow, Arc::clone(nodes), Arc::clone(store), owner);
    driver.with_pace(pace).with_relayer(trust.is_some()).with_trust(trust)
}

/// The key and the account of the owner's own redemption or refund.
pub(crate) struct Ending {
    pub(crate) key: Zeroizing<String>,
    /// The account that sends the transaction; on a Bitcoin-like chain the address that receives the coins.
    pub(crate) account: String,
}

/// The owner at a terminal, with or without a local key.
pub(crate) struct Terminal {
    pub(crate) nodes: Arc<Nodes<Http>>,
    pub(crate) speed: Speed,
    /// Signs the owner's own refund of the source; `None` without a key.
    pub(crate) refund: Option<Ending>,
    /// Signs the owner's own redemption of the destination; `None` without a key.
    pub(crate) redeem: Option<Ending>,
    /// The owner's address on the source chain.
    pub(crate) owner: String,
    /// The wallet context, as JSON.
    pub(crate) wallet: Option<Zeroizing<Vec<u8>>>,
    pub(crate) key: Option<Zeroizing<String>>,
    /// The key of the configuration file, used if neither an argument nor the wallet context gives one.
    pub(crate) configured_key: Option<Zeroizing<String>>,
    /// Whether to sign without asking.
    pub(crate) yes: bool,
    /// Whether the token approval is on chain already.
    pub(crate) approved: bool,
    /// The minimum that the record must pay, in base units, by an argument of this run. The minimum stored with the order applies as well.
    pub(crate) at_least: Option<U256>,
    pub(crate) policy: Policy,
    pub(crate) json: bool,
}

fn failed(failure: Failure) -> OwnerError {
    match failure {
        Failure::Refused(refusal) => refusal.into(),
        Failure::Network { message, .. } => OwnerError::Unavailable(message),
        Failure::Held { code, message } => OwnerError::Failed { code, message },
        other => OwnerError::Failed { code: "not_signed", message: other.message() },
    }
}

impl Owner for Terminal {
    async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        self.sign(order).await.map_err(failed)
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<KeptTransaction>>, OwnerError> {
        let ending = if task.purpose == Purpose::Refund { &self.refund } else { &self.redeem };
        match ending {
            Some(ending) if self.nodes.has(&task.leg.of(task.record).chain) => self.end(task, ending).await.map(Some).map_err(failed),
            _ => Ok(None),
        }
    }

    fn can_redeem(&self, chain: &str) -> bool {
        self.redeem.is_some() && self.nodes.has(chain)
    }
}

impl Terminal {
    /// Shows the order, asks for confirmation, and signs.
    async fn sign(&self, order: &Verified) -> Result<FundingReply, Failure> {
        check_floor(order, self.at_least)?;
        let chain = source_chain(order);
        let key = self.key.as_deref().or(self.configured_key.as_deref()).map(String::as_str);
        if let Some(key) = key.filter(|_| self.wallet.is_none() && self.nodes.has(&chain)) {
            let unsigned = self.nodes.prepare(order, &chain, &self.owner, self.speed, &self.policy).await?;
            return self.sign_prepared(unsigned, key, &chain);
        }
        let Some(text) = wallet_context(order, self.wallet.clone()) else {
            show::summary_on_stderr(&order.summary(), order.warnings())?;
            return Ok(FundingReply::NotNow);
        };
        let wallet = json::parse(&text).map_err(|refusal| refusal.under("/wallet"))?;
        let wallet = Node::root(&wallet, "/wallet");
        let unsigned = countersign_batch::prepare(order, wallet)?;
        let in_wallet = wallet.object()?.get("secret_key").map(|key| key.secret()).transpose()?;
        let (named, configured) = (self.key.as_deref(), self.configured_key.as_deref());
        let Some(key) = named.map(String::as_str).or(in_wallet).or(configured.map(String::as_str)) else {
            Accepted::prepared(&unsigned).print(self.json)?;
            let is_deposit = order.family() == Family::Bitcoin;
            return Ok(if is_deposit { FundingReply::Elsewhere } else { FundingReply::NotNow });
        };
        self.sign_prepared(unsigned, key, &chain)
    }

    fn sign_prepared(&self, mut unsigned: Unsigned, key: &str, chain: &str) -> Result<FundingReply, Failure> {
        show::summary_on_stderr(&unsigned.summary(), unsigned.warnings())?;
        if self.yes {
            self.check_warnings(unsigned.warnings())?
        } else {
            confirm("sign this?")?
        }
        countersign_batch::sign(&mut unsigned, key)?;
        let mut funding = SignedFunding::from_signed(&unsigned.finish().map_err(usage)?, chain);
        if self.approved && funding.gasless.is_some() {
            funding.transactions.clear();
        }
        Ok(FundingReply::Signed(funding))
    }

    /// Builds and signs a redemption or a refund with the nonce and fees read from its chain.
    async fn end(&self, task: &Settlement<'_>, ending: &Ending) -> Result<Vec<KeptTransaction>, Failure> {
        let Settlement { leg, record, registry, .. } = task;
        let recovery = match task.secret {
            Some(secret) => recover::redeem(record, *leg, secret.expose(), registry)?,
            None => recover::refund(record, *leg, registry)?,
        };
        let chain = &leg.of(record).chain;
        let unsigned = match task.replaces {
            [] => Some(self.nodes.prepare_recovery(&recovery, chain, &ending.account, self.speed, &self.policy).await?),
            // A transaction with too low a fee is replaced by one that should be mined at once.
            [sent] => {
                let sent = self.nodes.submission(chain, &sent.id, &sent.payload)?;
                self.nodes.prepare_replacement(&recovery, chain, &ending.account, &sent, Speed::Fast, &self.policy).await?
            }
            // A recovery is a single transaction.
            _ => None,
        };
        let Some(mut unsigned) = unsigned else { return Ok(Vec::new()) };
        unsigned.sign(&ending.key)?;
        Ok(KeptTransaction::all(&unsigned.finish().map_err(usage)?, chain))
    }

    /// Checks that the policy accepts every warning, because with `--yes` nobody reads them.
    fn check_warnings(&self, warnings: &Warnings) -> Result<(), Failure> {
        let is_open = |code: Code| code.severity() > Severity::Info && !self.policy.accepted_warnings.contains(&code);
        let open: BTreeSet<_> = warnings.list().iter().map(|warning| warning.code).filter(|code| is_open(*code)).collect();
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
}

/// Returns the wallet context to prepare an order with: the given one, or an empty one for a Bitcoin-like deposit, whose address any
/// wallet can pay.
pub(crate) fn wallet_context(order: &Verified, given: Option<Zeroizing<Vec<u8>>>) -> Option<Zeroizing<Vec<u8>>> {
    given.or_else(|| (order.family() == Family::Bitcoin).then(|| b"{}".to_vec().into()))
}

fn source_chain(order: &Verified) -> String {
    let terms = order.terms();
    terms.record.map(|record| record.source_swap.chain.clone()).unwrap_or_default()
}

/// Asks for confirmation at the terminal.
pub(crate) fn confirm(question: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(usage("stdin is not a terminal: read the summary, then pass --yes to skip the prompt"));
    }
    write!(std::io::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim().eq_ignore_ascii_case("y") {
        return Ok(());
    }
    Err(Failure::Held { code: "not_confirmed", message: "nothing was signed".to_owned() })
}

/// Drives an order until it ends, or until the owner has to act.
pub(crate) async fn follow<O: Owner>(driver: &Program<O>, id: &OrderId, trusts: bool, json: bool) -> Result<u8, Failure> {
    let again = format!("continue with: countersign swap --resume {id}");
    let mut changes = std::pin::pin!(driver.drive(vec![id.clone()]));
    let (source_is_seen, destination_is_seen, mut is_paid) = {
        let kept = driver.store().load(id).map_err(usage)?;
        let request = kept.swap.request();
        let is_seen = |leg: &RequestedLeg| driver.chains().has(leg.asset.chain());
        (is_seen(&request.source), is_seen(&request.destination), kept.may_be_paid())
    };
    let mut is_alarmed = false;
    while let Some(change) = changes.next().await {
        let progress = match change.result {
            Ok(progress) => progress,
            // A paid order is followed until it ends, whatever fails. A fee above the policy's limit may be below it in an hour.
            Err(error) if is_paid && (error.is_transient() || matches!(error, DriveError::Owner(_))) => {
                show::progress(&format!("{}; retrying", chain(&error)));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        is_paid |= progress.is_paid;
        report_status(id, &progress);
        if matches!(progress.status, Status::RedeemNow) && !is_alarmed {
            is_alarmed = true;
            alarm(driver, id)?;
        }
        if progress.acted {
            continue;
        }
        // With connections to both chains, what they show decides when the order ends.
        if !(source_is_seen && destination_is_seen)
            && let Some(code) = stated_end(id, &progress, trusts, json)?
        {
            return Ok(code);
        }
        match &progress.status {
            Status::Ended { outcome } => return ended(id, &progress, *outcome, json),
            // Without a connection to the chain this is only a statement of the service.
            Status::Lost if !destination_is_seen => {
                let message =
                    "the service states that the source is redeemed and the destination refunded: check both chains. If that is not true";
                return Err(Failure::Lost(format!("{message}, {again}")));
            }
            Status::Expired => return ended(id, &progress, Outcome::Expired, json),
            Status::Unsigned if progress.trouble.is_none() => {
                let message =
                    format!("to sign, pass --wallet and a key; or pay what was shown with another wallet and pass --paid; then {again}");
                return Err(Failure::NeedsUser { code: "not_signed", message });
            }
            Status::Refused { refusal } if !is_paid => return Err(Failure::Refused(refusal.clone())),
            Status::NeedsOwner { what } => return needs_owner(driver, id, &progress, *what, json),
            Status::Waiting { code: "destination_unclear", .. } if !trusts && !destination_is_seen && says_funded(&progress) => {
                let message = format!(
                    "the service states that the solver has paid, but only the destination chain can prove it. Check that chain yourself, then run: \
                     countersign redeem --self {id}; or connect the chain with --node, or send the secret to the service with \
                     --trust-the-service"
                );
                return Err(Failure::NeedsUser { code: "evidence_needed", message });
            }
            _ => {}
        }
        // Nothing is paid yet, so the program ends instead of waiting for a service that is down.
        if !is_paid && let Some(trouble) = &progress.trouble {
            let message = format!("{}; this program has sent nothing that moves your funds; {again}", text::escape_untrusted(trouble));
            return Err(Failure::Network { code: "service_unavailable", message });
        }
    }
    // Not reached: the stream ends only after the order has ended, which returns above.
    Err(Failure::Held { code: "swap_not_complete", message: again })
}

/// Stops following an order if the service states an end that the program cannot check. Nothing is stored, so the order stays open and
/// `swap --resume` continues it.
fn stated_end(id: &OrderId, progress: &Progress, trusts: bool, json: bool) -> Result<Option<u8>, Failure> {
    let Some(stated) = progress.stated.as_ref().filter(|stated| stated.status.is_final() && progress.is_paid) else { return Ok(None) };
    if stated.status.complete && trusts {
        show_complete(id, progress, json)?;
        show::progress("this is only what the service states: check the balance of your address");
        return Ok(Some(OK));
    }
    let what = if stated.status.complete { "complete" } else { "refunded" };
    let message = format!(
        "the service states that the order is {what}, and this program cannot check that: check the balance of your address. If it is not true, run: \
         countersign swap --resume {id}"
    );
    if trusts {
        return Err(Failure::Held { code: "swap_not_complete", message });
    }
    Err(Failure::NeedsUser { code: "look_at_your_address", message })
}

fn says_funded(progress: &Progress) -> bool {
    progress.stated.as_ref().is_some_and(|stated| stated.status.state == State::AwaitingRedeem)
}

/// Prints a complete order, with the id of the redemption as the service states it.
fn show_complete(id: &OrderId, progress: &Progress, json: bool) -> Result<(), Failure> {
    if json {
        show::json(&StatusReport { ok: Some(true), ..StatusReport::new(id, progress) })?;
    } else {
        let transaction = progress.stated.as_ref().map(|stated| stated.record.destination_swap.redeem_tx_hash.as_str());
        show::field("complete", &text::escape_untrusted(transaction.unwrap_or_default()))?;
    }
    Ok(())
}

fn ended(id: &OrderId, progress: &Progress, outcome: Outcome, json: bool) -> Result<u8, Failure> {
    match outcome {
        Outcome::Complete => show_complete(id, progress, json).map(|()| OK),
        Outcome::Lost => Err(Failure::Lost(describe(&Status::Lost))),
        other => Err(order_ended("swap_not_complete", other)),
    }
}

fn order_ended(code: &'static str, outcome: Outcome) -> Failure {
    Failure::Held { code, message: format!("the order ended: {}", describe(&Status::Ended { outcome })) }
}

/// Says how to redeem at once, with the transaction if one is signed. The program continues to follow the order.
fn alarm<O: Owner>(driver: &Program<O>, id: &OrderId) -> Result<(), Failure> {
    let kept = driver.store().load(id).map_err(usage)?;
    match kept.signed(Purpose::Redemption) {
        Some((transactions, _)) => {
            show::progress("broadcast this transaction at once, through any node of the destination chain:");
            for transaction in transactions {
                show::progress(&transaction.payload);
            }
        }
        None => show::progress(&format!("redeem the order yourself now, in another terminal: countersign redeem --self {id}")),
    }
    Ok(())
}

/// Prints what the owner has to do.
fn needs_owner<O: Owner>(driver: &Program<O>, id: &OrderId, progress: &Progress, what: OwnerTask, json: bool) -> Result<u8, Failure> {
    let kept = driver.store().load(id).map_err(usage)?;
    let (purpose, message) = match what {
        OwnerTask::BroadcastFunding => {
            let (what, flag) = if kept.is_gasless() { ("the approval", "--approved") } else { ("these transactions", "--paid") };
            let message = format!("broadcast {what}, then run: countersign swap --resume {id} {flag}");
            (Purpose::Funding, message)
        }
        OwnerTask::BroadcastRedemption => (Purpose::Redemption, "broadcast the redemption at once: the secret may be public".to_owned()),
        OwnerTask::Secret => return Err(usage(SECRET_MISSING)),
        OwnerTask::Refund => (Purpose::Refund, format!("refund your payment with: countersign refund --self {id}")),
        _ => {
            let message = format!(
                "only your own key can redeem, and the secret must not go to the service. Check the destination chain, then run: countersign \
                 redeem --self {id}"
            );
            (Purpose::Redemption, message)
        }
    };
    let transactions = kept.signed(purpose).map(|(transactions, _)| transactions).unwrap_or_default();
    if json {
        show::json(&StatusReport { ok: Some(true), transactions, ..StatusReport::new(id, progress) })?;
    } else {
        for transaction in transactions {
            show::field(&transaction.role, &transaction.id)?;
            show::raw(&transaction.payload)?;
        }
    }
    show::progress(&message);
    Ok(crate::NEEDS_USER)
}

/// Refunds a stored order once its timelock has expired: with the owner's own transaction where the source chain is connected, otherwise
/// through the service's relayer.
pub(crate) async fn refund<O: Owner>(driver: &Program<O>, id: &OrderId) -> Result<(), Failure> {
    let progress = driver.refund(id).await?;
    report_status(id, &progress);
    let by_self = format!("countersign refund --self {id}");
    let not_yet = |reason: &str| {
        let from = progress.stated.as_ref().and_then(|stated| stated.status.refund_possible_from);
        let from = from.map(|time| format!("; possible from about {}", show::time(time))).unwrap_or_default();
        Err(Failure::Held { code: "not_refundable", message: format!("nothing was refunded: {reason}{from}") })
    };
    let was_sent = || {
        let kept = driver.store().load(id).map_err(usage)?;
        Ok::<_, Failure>(kept.was_sent(Sendable::RefundRequest) || kept.was_sent(Sendable::Refund))
    };
    // A refund that was broadcast does not need the service.
    if progress.acted && matches!(progress.status, Status::Refunding) {
        return Ok(());
    }
    // The source chain alone shows that it is too early, even if the service fails.
    let source_is_seen = driver.chains().has(driver.store().load(id).map_err(usage)?.swap.request().source.asset.chain());
    let is_too_early = source_is_seen && matches!(progress.status, Status::Waiting { .. } | Status::AwaitingRefund { .. });
    if let Some(trouble) = progress.trouble.as_ref().filter(|_| !is_too_early) {
        let message = format!("{}; try again, or refund your payment with: {by_self}", text::escape_untrusted(trouble));
        return Err(Failure::Network { code: "service_unavailable", message });
    }
    match &progress.status {
        Status::Refunding if was_sent()? => Ok(()),
        Status::Refunding => {
            let message = format!("the service did not accept the request a moment ago; try again, or run: {by_self}");
            Err(Failure::Network { code: "service_unavailable", message })
        }
        Status::NeedsOwner { what: OwnerTask::Refund } => {
            Err(Failure::NeedsUser { code: "refund_needed", message: format!("only your own key can refund: {by_self}") })
        }
        Status::Refused { refusal } => Err(Failure::Refused(refusal.clone())),
        Status::Ended { outcome } => Err(order_ended("order_ended", *outcome)),
        Status::Lost => Err(Failure::Lost(describe(&progress.status))),
        Status::Unsigned | Status::Expired => not_yet("nothing was paid for this order"),
        Status::Paying => not_yet("the payment for this order has not arrived yet"),
        Status::Waiting { .. } | Status::AwaitingRefund { .. } => not_yet("the timelock of your payment has not expired"),
        other => not_yet(&describe(other)),
    }
}

/// Redeems a stored order: with the owner's own transaction where the destination chain is connected, otherwise by sending the secret to
/// the relayer on the service's word that the destination is funded.
pub(crate) async fn release<O: Owner>(driver: &Program<O>, id: &OrderId) -> Result<(), Failure> {
    loop {
        let progress = driver.advance(id).await?;
        report_status(id, &progress);
        let kept = driver.store().load(id).map_err(usage)?;
        if kept.was_sent(Sendable::Secret) || kept.was_sent(Sendable::Redemption) {
            return Ok(());
        }
        let not_redeemable =
            |reason: &str| Failure::Held { code: "not_redeemable", message: format!("the secret was not released: {reason}") };
        let not_paid = |message: &str| Failure::Held { code: "not_paid", message: message.to_owned() };
        match &progress.status {
            Status::Waiting { code, reason } => {
                return Err(Failure::Held { code, message: format!("the secret was not released: {reason}") });
            }
            Status::Refused { refusal } => return Err(Failure::Refused(refusal.clone())),
            Status::AwaitingRefund { reason } => return Err(not_redeemable(reason)),
            Status::Refunding => return Err(not_redeemable("the order is being refunded")),
            Status::NeedsOwner { .. } => {
                let message = format!("only your own key can redeem: run countersign redeem --self {id}");
                return Err(Failure::NeedsUser { code: "redeem_needed", message });
            }
            Status::Ended { outcome } => return Err(order_ended("order_ended", *outcome)),
            Status::Unsigned | Status::Expired => return Err(not_paid("nothing was paid for this order")),
            Status::Paying => return Err(not_paid("the payment for this order has not arrived yet")),
            _ => {}
        }
        // After a failed attempt the driver waits a few seconds before the next one.
        if !progress.acted {
            let may_have_left = kept.secret_left().is_some();
            let secret = if may_have_left { "the service may have the secret already" } else { "the secret was not released" };
            let trouble = progress.trouble.as_deref().unwrap_or("nothing was sent in this run");
            let message = format!("{}; {secret}; try again", text::escape_untrusted(trouble));
            return Err(Failure::Network { code: "service_unavailable", message });
        }
    }
}
