//! What the calls of a machine do: an order is checked, created and followed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use countersign::{Code, Registry, evidence::Stage, report::OrderStage};
use countersign_client::driver::{Chains as _, Driver, Following, NewOrder, OrderState, OrderStore as _, Stop, StoreError};
use countersign_client::rescue::Missing;
use countersign_client::{OrderId, StreamExt as _, Transport as _};
use countersign_json::objects::Failure;
use countersign_node::{Contracts, Endpoints, Ends, Nodes};
use countersign_store::rescue::{Phrase, Rescue};

use crate::event::{self, Event};
use crate::host::{Host, SentLate};
use crate::options::Options;
use crate::owner::{HostOwner, note_sent};
use crate::store::HostStore;
use crate::wish::{CONTRACT_CHANGED, Wish};

/// How often it is tried to write down what a wallet has sent, and the wait in between.
const NOTE_RETRIES: (u8, Duration) = (30, Duration::from_secs(120));

/// What every task of a machine shares.
pub(super) struct Inner {
    pub(super) host: Host,
    pub(super) store: HostStore,
    pub(super) nodes: Arc<Nodes<Host>>,
    /// The registry, with the chains of open orders that are not listed any more.
    pub(super) chains: Arc<Registry>,
    pub(super) options: Arc<Options>,
    pub(super) driver: Driver<Host, Arc<Nodes<Host>>, HostStore, HostOwner>,
}

impl Inner {
    /// Refuses a swap that could not be paid, redeemed or refunded from here. An order that is paid is past helping.
    pub(super) fn check_ends(&self, wish: &Wish) -> Result<(), Failure> {
        let (from, to) = (wish.quote.from.chain(), wish.quote.to.chain());
        let registry = self.driver.flow().registry();
        // A misspelt one would be missing once the order is paid.
        self.options.check_names(&self.chains)?;
        if let Some(name) = self.nodes.unknown().first() {
            return Err(Failure::usage(format!("/nodes/{name}"), "the name of a chain of the registry"));
        }
        if !self.nodes.has(from) {
            return Err(Failure::usage(format!("/nodes/{from}"), "endpoints of the source chain, to pay and to refund"));
        }
        if !self.nodes.has(to) && self.options.trust_the_service.is_none() {
            return Err(Failure::usage(format!("/nodes/{to}"), "endpoints of the destination chain, which prove that the solver has paid"));
        }
        self.check_redemption(to)?;
        // The address that receives a refund.
        if wish.from_owner.is_none() && registry.family(from) == Ok(countersign::Family::Bitcoin) {
            return Err(Failure::usage("/from_owner", format!("your address on {from}, to which a refund is paid")));
        }
        Ok(())
    }

    /// Refuses a swap whose payout only the service's relayer could redeem, unless the service is trusted: it can keep the secret, take the
    /// source, and let the destination run out.
    fn check_redemption(&self, to: &str) -> Result<(), Failure> {
        if self.driver.can_redeem(to) || self.options.trust_the_service.is_some() {
            return Ok(());
        }
        let has_account = self.options.account(to, self.driver.flow().registry()).is_some();
        let (member, what) = if has_account { ("signers", "a signer of the account") } else { ("accounts", "an account") };
        let expected = format!(
            "{what} that redeems on the destination chain; the service's relayer alone could take the funds, so it takes the option \
             trust_the_service"
        );
        Err(Failure::usage(format!("/{member}/{to}"), expected))
    }

    /// Takes the best quote, derives what is secret, and creates and stores the order.
    pub(super) async fn new_order(&self, wish: Wish) -> Result<OrderId, Failure> {
        let flow = self.driver.flow();
        let stored = |error| event::of_store(&error);
        let quote = flow.best_quote(&wish.quote).await.map_err(event::of_quote)?;
        let mut request = wish.request(quote.destination.amount);
        request.solver_id = Some(quote.solver_id).filter(|_| wish.quote.solver.is_some());
        let account = self.options.account(request.destination.asset.chain(), flow.registry());
        let ends = Ends::of_request(&request.source, &request.destination, flow.registry())
            .redeemed_by(account)
            .with_relayer(self.options.relayer);
        let ends = ends.paying(quote.destination.amount);
        let found = self.nodes.preconditions(&ends, Stage::BeforePaying, self.options.speed, flow.policy()).await;
        found.check().map_err(event::of_node)?;
        let missing = Missing::of(&request, flow.registry(), false);
        let (phrase, is_new) = self.store.run(|store| store.first_phrase()).await.map_err(stored)?;
        if is_new {
            self.host.report(Event::PhraseCreated);
        }
        // Durably marked as used before anything derived from it is sent.
        let at = self.store.take_index().await.map_err(stored)?;
        let secret = derive(missing, &phrase, &mut request, at).map_err(|error| Failure::new("derive_failed", error, "bug"))?;
        let order = NewOrder { request, secret, index: Some(at.index), branch: at.branch, at_least: wish.quote.at_least };
        self.driver.create(order).await.map_err(|error| event::of_drive(error, OrderStage::BeforePaying))
    }

    /// Follows an order until it ends, or until only the owner can continue.
    pub(super) async fn follow(&self, call: u64, id: &OrderId, accepts_contracts: bool) -> Result<(), Failure> {
        let kept = self.store.load(id).await.map_err(|error| event::of_store(&error))?;
        if kept.is_to_be_paid() {
            self.check_redemption(kept.swap.request().destination.asset.chain())?;
            self.check_contracts(&kept, accepts_contracts).await?;
            self.check_unlisted(&kept).await?;
            self.warn_of_providers(&kept);
        }
        let mut following = Following::new(&kept, &self.nodes, self.options.trust_the_service);
        let mut kept = kept;
        let mut changes = pin!(self.driver.drive(vec![id.clone()]));
        while let Some(change) = changes.next().await {
            // Read after the step: what was about to be sent in it may have arrived.
            if let Ok(newer) = self.store.load(id).await {
                kept = newer;
            }
            let step = following.hear(&kept, &change.result);
            let error = change.result.as_ref().err();
            for alert in step.alerts {
                let (alert, message) = event::of_alert(alert, error);
                self.host.report(Event::Alert { order_id: id.to_string(), alert, message });
            }
            if let Ok(progress) = change.result {
                self.status(id, progress);
            }
            if let Some(stop) = step.stop {
                let stage = if kept.may_be_paid() { OrderStage::AfterPaying } else { OrderStage::BeforePaying };
                self.stopped(call, id, stop, stage);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes down what a wallet has sent although nobody waited for it any more. A store that fails is tried again.
    pub(super) async fn note_late(&self, sent: &SentLate) {
        let Ok(id) = OrderId::parse(&sent.order_id) else { return };
        let (retries, wait) = NOTE_RETRIES;
        for _ in 0..retries {
            match note_sent(&self.host, &self.store, &id, sent.purpose).await {
                Ok(()) | Err(StoreError::Unknown(_)) => return,
                Err(_) => self.host.sleep(wait).await,
            }
        }
    }

    /// Says where a single provider decides what a chain shows.
    fn warn_of_providers(&self, kept: &OrderState) {
        let request = kept.swap.request();
        for chain in [request.source.asset.chain(), request.destination.asset.chain()] {
            if let Some(doubt) = Nodes::endpoints(&self.nodes, chain).and_then(Endpoints::doubt) {
                let message = format!("{chain}: {doubt}");
                self.host.report(Event::warning(kept.swap.id().as_str(), Code::SingleProvider, message));
            }
        }
    }

    pub(super) fn status(&self, id: &OrderId, progress: countersign_client::driver::Progress) {
        let message = progress.message();
        self.host.report(Event::Status { order_id: id.to_string(), message, progress: Box::new(progress) });
    }

    fn stopped(&self, call: u64, id: &OrderId, stop: Stop, stage: OrderStage) {
        let (reason, message, error) = event::of_stop(stop, stage);
        self.host.report(Event::Stopped { call, order_id: id.to_string(), reason, message, error });
    }

    /// Compares the contracts of both legs with their stored descriptions, where their chains are connected. One that is seen for the first
    /// time is stored; one that has changed is refused, unless that is accepted.
    async fn check_contracts(&self, kept: &OrderState, accepts_changes: bool) -> Result<(), Failure> {
        let (registry, request) = (self.driver.flow().registry(), kept.swap.request());
        let assets = [&request.source, &request.destination].into_iter().filter_map(|leg| registry.asset(leg.asset.as_str()));
        let assets: Vec<_> = assets.map(AsRef::as_ref).collect();
        let stored = |error| event::of_store(&error);
        let bytes = self.store.run(|store| store.contracts()).await.map_err(stored)?;
        let known = bytes.map(|bytes| Contracts::from_json(&bytes)).transpose()?.unwrap_or_default();
        let report = known.check(&self.nodes, assets).await.map_err(event::of_node)?;
        if let Some(change) = report.changes.first().filter(|_| !accepts_changes) {
            let message =
                format!("a pinned contract has changed: {change}; inspect it, then create an order that accepts {CONTRACT_CHANGED}");
            return Err(Failure::new(CONTRACT_CHANGED, message, "caller"));
        }
        if report.new == Contracts::default() && report.changed == Contracts::default() {
            return Ok(());
        }
        // Another swap may have stored descriptions in the meantime.
        let added = |bytes: Option<&[u8]>| {
            let mut all = bytes.map_or_else(|| Ok(Contracts::default()), Contracts::from_json).ok()?;
            all.extend(report.new);
            all.extend(report.changed);
            Some(all.to_file())
        };
        self.store.run(|store| store.update_contracts(added)).await.map_err(stored)?;
        let tell = |asset: &str, is_new, message| {
            self.host.report(Event::Contract { order_id: kept.swap.id().to_string(), asset: asset.to_owned(), is_new, message });
        };
        for asset in report.first_seen {
            tell(asset.as_str(), true, format!("the contract of {asset} is seen for the first time; its description is stored"));
        }
        for change in report.changes {
            tell(&change.asset, false, format!("the contract of {change}; that was accepted, and is stored"));
        }
        Ok(())
    }

    /// Checks that the service lists no other order of the owner with the same secret hash: the store would be a copy then.
    async fn check_unlisted(&self, kept: &OrderState) -> Result<(), Failure> {
        let other = self.driver.flow().client().other_with_secret_of(&kept.swap).await.map_err(event::of_client)?;
        let Some(other) = other else { return Ok(()) };
        self.store.run(|store| store.start_branch()).await.map_err(|error| event::of_store(&error))?;
        let message =
            format!("order {other} of yours has the same secret hash, so a copy of this store is in use elsewhere; create a new order");
        Err(Failure::new("secret_used", message, "caller"))
    }
}

fn derive(
    missing: Missing,
    phrase: &Phrase,
    request: &mut countersign::CreateOrder,
    at: countersign_store::KeyIndex,
) -> Result<Option<countersign_client::Secret>, String> {
    let rescue = Rescue::new(phrase).map_err(|error| error.to_string())?;
    missing.derive(request, &rescue, at).map_err(|error| error.to_string())
}
