//! The machine.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use countersign::{Policy, Registry, Unsigned, report::OrderStage};
use countersign_client::driver::{Delivery, Driver, OrderState, OrderStore as _, StoreError};
use countersign_client::{Api, Client, Flow, OrderId, StreamExt as _};
use countersign_json::objects::{Failure, Value};
use countersign_node::{NodeConfig, Nodes};
use countersign_store::Zeroizing;
use futures_util::stream::FuturesUnordered;

use crate::disk::{HostDisk, place_of};
use crate::event::{self, Event, StoredOrder};
use crate::host::Host;
use crate::need::{Need, Reply};
use crate::options::{Options, Wish, quote_from_json};
use crate::owner::HostOwner;
use crate::store::HostStore;

mod inner;
#[cfg(feature = "bitcoin")]
mod instant;
use inner::Inner;

#[cfg(not(target_family = "wasm"))]
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
#[cfg(target_family = "wasm")]
type Task = Pin<Box<dyn Future<Output = ()>>>;

/// What a host opens the machine with.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Setup<'s> {
    /// The options, as JSON: see [`Swaps::open`].
    pub options: &'s [u8],
    /// The pinned registry, as JSON.
    pub registry: &'s [u8],
    /// The policy, as JSON; empty for the default.
    pub policy: &'s [u8],
    /// The endpoints of each chain, as JSON ([`NodeConfig::from_json`]); empty for none.
    pub nodes: &'s [u8],
    /// Every document that the host has kept, by name; empty for a new store.
    pub documents: Vec<(String, Zeroizing<Vec<u8>>)>,
    /// What identifies the place where the documents are kept, and changes if an older document `index` is put back there: such as a
    /// directory with its inode, and a random mark that is valid as long as `index` is the very file that the host has written. A store that
    /// is found in another place is a copy, and starts a branch of the rescue phrase of its own, so that two orders never share a secret.
    ///
    /// Empty where the host cannot tell, as with a database in a browser's profile: each opening then starts a branch.
    pub place: &'s str,
    /// Unix milliseconds.
    pub now: u64,
}

impl<'s> Setup<'s> {
    /// Creates a setup without endpoints and documents, with the default policy.
    #[must_use]
    pub fn new(options: &'s [u8], registry: &'s [u8], now: u64) -> Self {
        Self { options, registry, now, ..Self::default() }
    }
}

/// What the host has to do next.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Output {
    /// What is needed now, each once. The host replies in any order.
    pub needs: Vec<Need>,
    /// The numbers of needs that are not needed any more. A reply to one of them is ignored.
    pub withdrawn: Vec<u64>,
    /// What happened.
    pub events: Vec<Event>,
    /// When to poll again even if no reply arrives, in Unix milliseconds; `None` if there is nothing to wait for.
    pub wake_at: Option<u64>,
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
    /// | option | meaning |
    /// |---|---|
    /// | `service` | the URL of the service |
    /// | `app_id` | the application's id, if the service wants one |
    /// | `accounts` | the owner's accounts: addresses by chain (`base`) or by family (`evm`). The host signs for them |
    /// | `relayer` | whether the service's relayer may redeem, once the destination is proven to be funded, where the owner's account does not sign or has no coins for the fee |
    /// | `trust_the_service` | whether to believe the service about a destination that is not connected, and to swap where only its relayer could redeem. **A dishonest service then has the funds**: it can keep the secret, take what was paid, and pay nothing |
    /// | `poll_ms` | milliseconds between two looks at an order, for tests; by default the wait adapts |
    /// | `speed` | `slow`, `normal` or `fast`: how soon the owner's transactions should be mined |
    /// | `sign_only` | whether the host's signers never send a payment by themselves. Otherwise an order counts as paid from the moment its payment is handed out, so that it is not paid twice if the machine ends before the reply |
    ///
    /// # Errors
    ///
    /// [`Failure`] at the first member of `/options`, `/registry`, `/policy` or `/nodes` that is invalid, or with the code `store_failed`.
    pub fn open(setup: Setup<'_>) -> Result<Self, Failure> {
        let Setup { options, registry, policy, nodes, documents, place, now } = setup;
        let options = Arc::new(Options::from_json(options).map_err(|refusal| refusal.with_prefix("/options"))?);
        let registry = Arc::new(Registry::from_json(registry).map_err(|refusal| refusal.with_prefix("/registry"))?);
        options.check_accounts(&registry)?;
        let policy = if policy.is_empty() {
            Policy::default()
        } else {
            Policy::from_json(policy).map_err(|refusal| refusal.with_prefix("/policy"))?
        };
        let config = if nodes.is_empty() {
            NodeConfig::new()
        } else {
            NodeConfig::from_json(nodes).map_err(|refusal| refusal.with_prefix("/nodes"))?
        };
        let policy = Arc::new(policy);
        let host = Host::default();
        host.set_now(now);
        let nodes = Arc::new(Nodes::new(host.clone(), config, &registry));
        if let Some(name) = nodes.unknown().first() {
            return Err(Failure::usage(format!("/nodes/{name}"), "a chain of the registry"));
        }
        let disk = HostDisk::new(documents, &place_of(place, now));
        let store = HostStore::open(host.clone(), disk).map_err(|error| event::of_store(&error.into()))?;
        let api = Api::new(options.service.as_str(), options.app_id.clone()).map_err(event::of_client)?;
        let flow = Flow::new(Client::new(api, host.clone()), Arc::clone(&registry), Arc::clone(&policy));
        let owner = HostOwner {
            host: host.clone(),
            nodes: Arc::clone(&nodes),
            store: store.clone(),
            options: Arc::clone(&options),
            policy,
            registry,
            agreed: std::sync::Mutex::default(),
            not_raised: std::sync::Mutex::default(),
        };
        let driver = Driver::new(flow, Arc::clone(&nodes), store.clone(), owner).with_pace(options.pace).with_trust(options.trust);
        let driver = if options.relayer || options.trust.is_some() { driver.allow_relayer() } else { driver };
        let inner = Arc::new(Inner { host, store, nodes, options, driver });
        Ok(Self { inner, tasks: FuturesUnordered::new(), awake: Arc::default() })
    }

    /// Asks for the best quote. The members of `wish`: `from`, `to`, `amount`, and if wanted `at_least`, `slippage` (basis points) and
    /// `solver`. Amounts are base units (`1500000`) or whole units with the symbol (`1.5 usdc`). Ends with [`Event::Quoted`] or
    /// [`Event::Failed`], with the number that is returned.
    ///
    /// # Errors
    ///
    /// [`Failure`] at the invalid member. Nothing is sent then.
    pub fn quote(&mut self, wish: &[u8]) -> Result<u64, Failure> {
        let wish = quote_from_json(wish, self.inner.driver.flow().registry())?;
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

    /// Creates an order, verifies it, asks for consent and signatures, pays it, and follows it to its end. The members of `wish` are those
    /// of [`quote`](Self::quote), and `receive_at`, the address that is paid; if wanted, `from_owner`, the address on the source chain that
    /// receives a refund (by default the account of that chain), `affiliate_fees`, and `accept`: with `["contract_changed"]`, a contract that
    /// differs from its stored description is accepted once, and its new description stored. The secret, and the owner's keys on Bitcoin-like
    /// chains, are derived from the store's rescue phrase.
    ///
    /// Reports [`Event::Created`], then [`Event::Status`] and [`Event::Alert`], and ends with [`Event::Stopped`]; or with [`Event::Failed`]
    /// if no order was created.
    ///
    /// # Errors
    ///
    /// [`Failure`] at the invalid member. Nothing is sent then.
    pub fn create(&mut self, wish: &[u8]) -> Result<u64, Failure> {
        let wish = Wish::from_json(wish, self.inner.driver.flow().registry(), &self.inner.options)?;
        self.inner.check_ends(&wish)?;
        Ok(self.start(async move |inner, call| {
            let accepts_contracts = wish.accepts_contracts;
            let id = inner.new_order(wish).await?;
            inner.host.report(Event::Created { call, order_id: id.to_string() });
            inner.follow(call, &id, accepts_contracts).await
        }))
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
    /// [`Event::Stopped`].
    ///
    /// # Errors
    ///
    /// [`Failure`] if `order_id` is not an order id.
    pub fn refund(&mut self, order_id: &str) -> Result<u64, Failure> {
        let id = OrderId::parse(order_id).map_err(event::of_client)?;
        Ok(self.start(async move |inner, call| {
            let progress = inner.driver.refund(&id).await.map_err(|error| event::of_drive(error, OrderStage::AfterPaying))?;
            let kept = inner.store.load(&id).await.map_err(|error| event::of_store(&error))?;
            let was_sent = kept.was_sent(Delivery::Refund) || kept.was_sent(Delivery::RefundRequest);
            let reason = if progress.is_refunded || was_sent { "refunding" } else { "not_refunded" };
            let message = progress.status.to_string();
            inner.status(&id, progress);
            inner.host.report(Event::Stopped { call, order_id: id.to_string(), reason: reason.to_owned(), message, error: None });
            Ok(())
        }))
    }

    /// Asks for the refund of a stored order whose source is a Bitcoin-like chain, before its timelock ends. The solver has to sign it too, and
    /// does so if it has not paid. The hashes to sign are computed again from the verified record, and each commits to a refund of the whole
    /// deposit to the owner. Ends with [`Event::Stopped`] and the reason `refunding` once the service has the owner's signatures: follow the
    /// order to see the refund.
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
            inner.instant_refund(&id).await?;
            let message = "the service has your signature; the refund is sent once the solver has signed it too".to_owned();
            inner.host.report(Event::Stopped { call, order_id: id.to_string(), reason: "refunding".to_owned(), message, error: None });
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

    /// Goes on as far as possible without the host, and returns what the host has to do. `now` is the time in Unix milliseconds; a clock
    /// that runs behind can lose a swap.
    pub fn poll(&mut self, now: u64) -> Output {
        let host = &self.inner.host;
        host.set_now(now);
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
        Output { needs, withdrawn, events: host.take_events(), wake_at: host.wake_at() }
    }

    /// Takes the reply to a need. Returns whether it was still wanted. Poll afterwards.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the code `usage` if the need takes another kind of reply. It is still open then.
    pub fn reply(&mut self, id: u64, reply: Reply) -> Result<bool, Failure> {
        self.inner.host.reply(id, reply)
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
        let task = task(Arc::clone(&self.inner), call);
        self.tasks.push(Box::pin(async move {
            if let Err(error) = task.await {
                host.report(Event::Failed { call, error });
            }
        }));
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
