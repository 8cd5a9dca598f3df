//! The machine.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

use countersign::chains::UnixMillis;
use countersign::{Unsigned, report::OrderStage};
use countersign_client::driver::{Chains as _, Driver, OrderState, OrderStore as _, RefundEnd, StoreError};
use countersign_client::{Api, Client, Flow, OrderId, QuoteWish, StreamExt as _};
use countersign_json::objects::{Failure, Value};
use countersign_node::Nodes;
use countersign_store::Zeroizing;
use futures_util::stream::FuturesUnordered;

use crate::disk::{HostDisk, place_of};
use crate::event::{self, Event, StoredOrder};
use crate::host::Host;
use crate::need::{Need, Reply};
use crate::owner::HostOwner;
use crate::setup::Setup;
use crate::store::HostStore;
use crate::wish::{Wish, check_assets, quote_from_json};

mod inner;
#[cfg(feature = "bitcoin")]
mod instant;
#[cfg(all(test, feature = "bitcoin"))]
mod tests;
use inner::Inner;

#[cfg(not(target_family = "wasm"))]
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
#[cfg(target_family = "wasm")]
type Task = Pin<Box<dyn Future<Output = ()>>>;

/// What the host has to do next.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Output {
    /// What is needed now, each once. The host replies in any order.
    pub needs: Vec<Need>,
    /// The numbers of needs that are not needed any more. A reply to one of them is ignored, except [`Reply::Sent`]: hand that one over
    /// whenever it comes, because the secret of a redemption is out then.
    pub withdrawn: Vec<u64>,
    /// What happened.
    pub events: Vec<Event>,
    /// When to poll again even if no reply arrives; `None` if there is nothing to wait for.
    pub wake_at: Option<UnixMillis>,
}

impl Output {
    /// Returns the events as a JSON array.
    #[must_use]
    pub fn events_json(&self) -> String {
        serde_json::to_string(&self.events).unwrap_or_default()
    }
}

/// Runs whole swaps without I/O: it says what it needs, takes the replies, and reports what happens.
///
/// The [crate's documentation](crate) has an example.
pub struct Swaps {
    inner: Arc<Inner>,
    tasks: FuturesUnordered<Task>,
    awake: Arc<Awake>,
}

/// Whether a task was woken since the last look.
#[derive(Debug, Default)]
struct Awake(AtomicBool);

impl Wake for Awake {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl std::fmt::Debug for Swaps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Swaps").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl Swaps {
    /// Opens the machine with what the host has kept. Nothing is needed before the first call.
    ///
    /// The chains that are connected are those of the registry, and those of the pins of every stored order that has not ended: the service
    /// may have taken one off its list since, and a new registry must not stop what is paid. A name in `accounts`, `permissions` or `nodes`
    /// that neither has is left out: [`create`](Self::create) refuses it, because it may be misspelt, and an order that needs its chain says
    /// in its status that the chain is not connected.
    ///
    /// # Errors
    ///
    /// [`Failure`] at a member of `/options/accounts` or `/options/permissions` that is not valid on its chain, or with the code
    /// `store_failed`.
    pub fn open(setup: Setup) -> Result<Self, Failure> {
        let Setup { options, registry, policy, nodes: config, documents, place, now } = setup;
        let (options, policy, now) = (Arc::new(options), Arc::new(policy), now.as_millis());
        let host = Host::default();
        host.set_now(now);
        let disk = HostDisk::new(documents, &place_of(&place, now));
        let store = HostStore::open(host.clone(), disk).map_err(|error| event::of_store(&error.into()))?;
        let chains = store.open_pins().iter().fold((*registry).clone(), |chains, pins| chains.with_chains_of(&pins.registry));
        let chains = Arc::new(chains);
        options.check_accounts(&chains)?;
        let nodes = Nodes::new(host.clone(), config, &chains);
        #[cfg(feature = "tron")]
        let nodes = chains.chains().fold(nodes, |nodes, chain| match options.permission(chain.name(), &chains) {
            Some(permission) => nodes.with_permission(chain.name(), permission.clone()),
            None => nodes,
        });
        let nodes = Arc::new(nodes);
        let api = Api::new(options.service.as_str(), options.app_id.clone()).map_err(event::of_client)?;
        let flow = Flow::new(Client::new(api, host.clone()), Arc::clone(&registry), Arc::clone(&policy));
        let owner = HostOwner {
            host: host.clone(),
            nodes: Arc::clone(&nodes),
            store: store.clone(),
            options: Arc::clone(&options),
            policy,
            registry: Arc::clone(&chains),
            agreed: std::sync::Mutex::default(),
            not_raised: std::sync::Mutex::default(),
        };
        let driver =
            Driver::new(flow, Arc::clone(&nodes), store.clone(), owner).with_pace(options.pace).with_trust(options.trust_the_service);
        let driver = if options.relayer || options.trust_the_service.is_some() { driver.allow_relayer() } else { driver };
        let inner = Arc::new(Inner { host, store, nodes, chains, options, driver });
        Ok(Self { inner, tasks: FuturesUnordered::new(), awake: Arc::default() })
    }

    /// Asks for the best quote. Ends with [`Event::Quoted`] or [`Event::Failed`], with the number that is returned.
    ///
    /// # Errors
    ///
    /// [`Failure`] at `/from` or `/to` if the registry does not pin the asset, or if both are the same. Nothing is sent then.
    pub fn quote(&mut self, wish: QuoteWish) -> Result<u64, Failure> {
        check_assets(&wish.from, &wish.to, self.inner.driver.flow().registry())?;
        Ok(self.start(async move |inner, call| {
            let quote = inner.driver.flow().best_quote(&wish).await.map_err(event::of_quote)?;
            let value = |asset: &countersign::AssetId, amount| {
                let pinned = inner.driver.flow().registry().asset(asset.as_str());
                Value::from(&pinned.map_or_else(|| countersign::report::TypedValue::Number(amount), |pinned| pinned.amount(amount).into()))
            };
            let pay = value(&quote.source.asset, quote.source.amount);
            let receive = value(&quote.destination.asset, quote.destination.amount);
            let solver_id = countersign::text::escape_untrusted(&quote.solver_id);
            inner.host.report(Event::Quoted { call, solver_id, pay, receive });
            Ok(())
        }))
    }

    /// Asks for the best quote, as [`quote`](Self::quote) does, for a wish as JSON. Its members: `from`, `to`, `amount`, and if wanted
    /// `at_least`, `slippage` (basis points) and `solver`. Amounts are base units (`1500000`) or whole units with the symbol (`1.5 usdc`).
    ///
    /// # Errors
    ///
    /// [`Failure`] at the invalid member. Nothing is sent then.
    pub fn quote_json(&mut self, wish: &[u8]) -> Result<u64, Failure> {
        self.quote(quote_from_json(wish, self.inner.driver.flow().registry())?)
    }

    /// Creates an order, verifies it, asks for consent and signatures, pays it, and follows it to its end. The secret, and the owner's keys
    /// on Bitcoin-like chains, are derived from the store's rescue phrase.
    ///
    /// Reports [`Event::Created`], then [`Event::Status`] and [`Event::Alert`], and ends with [`Event::Stopped`]; or with [`Event::Failed`]
    /// if no order was created.
    ///
    /// # Errors
    ///
    /// [`Failure`] at the invalid member: as in the JSON of [`create_json`](Self::create_json). Nothing is sent then.
    pub fn create(&mut self, wish: Wish) -> Result<u64, Failure> {
        let wish = wish.complete(self.inner.driver.flow().registry(), &self.inner.options)?;
        self.inner.check_ends(&wish)?;
        Ok(self.start(async move |inner, call| {
            let accepts_contracts = wish.accepts_changed_contracts;
            let id = inner.new_order(wish).await?;
            inner.host.report(Event::Created { call, order_id: id.to_string() });
            inner.follow(call, &id, accepts_contracts).await
        }))
    }

    /// Creates an order, as [`create`](Self::create) does, for a wish as JSON. Its members are those of [`quote_json`](Self::quote_json), and
    /// `receive_at`, the address that is paid; if wanted, `from_owner`, the address on the source chain that receives a refund (by default
    /// the account of that chain), `affiliate_fees`, and `accept`: with `["contract_changed"]`, a contract that differs from its stored
    /// description is accepted once, and its new description stored.
    ///
    /// # Errors
    ///
    /// [`Failure`] at the invalid member. Nothing is sent then.
    pub fn create_json(&mut self, wish: &[u8]) -> Result<u64, Failure> {
        self.create(Wish::from_json(wish, self.inner.driver.flow().registry())?)
    }

    /// Continues a stored order, from wherever it is. Reports as [`create`](Self::create) does.
    ///
    /// # Errors
    ///
    /// [`Failure`] if `order_id` is not an order id.
    pub fn follow(&mut self, order_id: &str) -> Result<u64, Failure> {
        let id = OrderId::parse(order_id).map_err(event::of_client)?;
        Ok(self.start(async move |inner, call| inner.follow(call, &id, false).await))
    }

    /// Refunds a stored order if its timelock has expired, whatever else could be done. Reports the status, and ends with
    /// [`Event::Stopped`]. Its reason is `refunding` if the refund was sent or its chain shows it, and `not_refunded` if it is too early or
    /// nothing was paid. Otherwise it says what is in the way: `unavailable`, `needs_owner` or `refused`, or how the order ended.
    ///
    /// # Errors
    ///
    /// [`Failure`] if `order_id` is not an order id.
    pub fn refund(&mut self, order_id: &str) -> Result<u64, Failure> {
        let id = OrderId::parse(order_id).map_err(event::of_client)?;
        Ok(self.start(async move |inner, call| {
            let progress = inner.driver.refund(&id).await.map_err(|error| event::of_drive(error, OrderStage::AfterPaying))?;
            let kept = inner.store.load(&id).await.map_err(|error| event::of_store(&error))?;
            let source_connected = inner.nodes.has(kept.swap.request().source.asset.chain());
            let (reason, message, error) = event::of_refund(RefundEnd::new(&progress, &kept, source_connected));
            inner.status(&id, progress);
            inner.host.report(Event::Stopped { call, order_id: id.to_string(), reason, message, error });
            Ok(())
        }))
    }

    /// Asks for the refund of a stored order whose source is a Bitcoin-like chain, before its timelock ends. The solver has to sign it too, and
    /// does so if it has not paid. The hashes to sign are computed again from the verified record and the outputs that the endpoints show,
    /// and each commits to a refund to the owner. Ends with [`Event::Stopped`] and the reason `refunding` once the service has the owner's
    /// signatures: follow the order to see the refund. The reason is `not_refunded` as long as neither the service nor the endpoints show
    /// the payment: ask again once it is in a block.
    ///
    /// # Errors
    ///
    /// [`Failure`] if `order_id` is not an order id, or with the code `unsupported_family` in a build without Bitcoin-like chains.
    pub fn instant_refund(&mut self, order_id: &str) -> Result<u64, Failure> {
        let id = OrderId::parse(order_id).map_err(event::of_client)?;
        #[cfg(not(feature = "bitcoin"))]
        return Err(countersign::Refusal::new(countersign::Code::UnsupportedFamily, "/order_id").with_actual(id.as_str()).into());
        #[cfg(feature = "bitcoin")]
        Ok(self.start(async move |inner, call| {
            let (reason, message) = inner.instant_refund(&id).await?;
            let (reason, message) = (reason.to_owned(), message.to_owned());
            inner.host.report(Event::Stopped { call, order_id: id.to_string(), reason, message, error: None });
            Ok(())
        }))
    }

    /// Lists the stored orders. Ends with [`Event::Listed`] or [`Event::Failed`].
    pub fn list(&mut self) -> u64 {
        self.start(async move |inner, call| {
            let mut orders = Vec::new();
            for id in inner.store.orders().await.map_err(|error| event::of_store(&error))? {
                // One that cannot be read must not hide the others.
                orders.push(match inner.store.load(&id).await {
                    Ok(kept) => stored_order(&kept),
                    Err(error) => unreadable_order(&id, &error),
                });
            }
            inner.host.report(Event::Listed { call, orders });
            Ok(())
        })
    }

    /// Returns the words of the rescue phrase; `None` before the first order, and until the host has kept them. Whoever has them has the funds of every open order.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the code `store_failed` if the stored phrase is damaged.
    pub fn phrase(&self) -> Result<Option<Zeroizing<String>>, Failure> {
        self.inner.store.kept_phrase().map_err(|error| event::of_store(&error.into()))
    }

    /// Goes on as far as possible without the host, and returns what the host has to do. A clock that runs behind can
    /// lose a swap.
    pub fn poll(&mut self, now: UnixMillis) -> Output {
        let host = &self.inner.host;
        host.set_now(now.as_millis());
        let waker = Waker::from(Arc::clone(&self.awake));
        let mut context = Context::from_waker(&waker);
        loop {
            self.awake.0.store(false, Ordering::Release);
            while let Poll::Ready(Some(())) = self.tasks.poll_next_unpin(&mut context) {}
            if !self.awake.0.load(Ordering::Acquire) {
                break;
            }
        }
        let (needs, withdrawn) = host.take_needs();
        Output { needs, withdrawn, events: host.take_events(), wake_at: host.wake_at().map(UnixMillis::from_millis) }
    }

    /// Takes the reply to a need. Returns whether it was still wanted, as [`Reply::Sent`] is for a while after the need was withdrawn. Poll
    /// afterwards.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the code `usage` if the need takes another kind of reply. It is still open then.
    pub fn reply(&mut self, id: u64, reply: Reply) -> Result<bool, Failure> {
        let is_wanted = self.inner.host.reply(id, reply)?;
        for sent in self.inner.host.take_sent_late() {
            let inner = Arc::clone(&self.inner);
            self.tasks.push(Box::pin(async move { inner.note_late(&sent).await }));
        }
        Ok(is_wanted)
    }

    /// Returns the order that a [`Ask::Sign`](crate::Ask::Sign) wants signed; `None` if it was taken before, or is not wanted any more. Sign
    /// it, and hand it back in [`Reply::Signed`].
    #[must_use]
    pub fn take_unsigned(&mut self, id: u64) -> Option<Unsigned> {
        self.inner.host.take_unsigned(id)
    }

    /// Starts a task, and reports its failure.
    fn start<F>(&mut self, task: impl FnOnce(Arc<Inner>, u64) -> F) -> u64
    where
        F: Future<Output = Result<(), Failure>> + countersign_transport::MaybeSend + 'static,
    {
        let call = self.inner.host.number();
        let host = self.inner.host.clone();
        let mut task = Box::pin(task(Arc::clone(&self.inner), call));
        self.tasks.push(Box::pin(poll_fn(move |context| {
            let ended = ready!(host.for_call(call, || task.as_mut().poll(context)));
            if let Err(error) = ended {
                host.report(Event::Failed { call, error });
            }
            Poll::Ready(())
        })));
        call
    }
}

fn stored_order(kept: &OrderState) -> StoredOrder {
    let request = kept.swap.request();
    StoredOrder {
        order_id: kept.swap.id().to_string(),
        from: request.source.asset.to_string(),
        to: request.destination.asset.to_string(),
        may_be_paid: kept.may_be_paid(),
        outcome: kept.outcome().map(|outcome| outcome.name()),
        error: None,
    }
}

fn unreadable_order(id: &OrderId, error: &StoreError) -> StoredOrder {
    let error = Some(error.to_string());
    StoredOrder { order_id: id.to_string(), from: String::new(), to: String::new(), may_be_paid: true, outcome: None, error }
}
