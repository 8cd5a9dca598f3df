//! The state directory: a directory for each order, and the rescue phrase. Only the user can read its files.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use countersign::{OrderRecord, SecretHash};
use countersign_client::driver::{self, Entry, Event, OrderState, OrderStore as _, StoreError};
use countersign_client::{OrderId, Secret};
use countersign_store::rescue::Rescue;
use countersign_store::{Error, KeyIndex, OrderDir, Store};

use crate::config::Config;
use crate::input::{self, Failure, usage};
use crate::show;

/// The document with the index with which the keys and the secret of an order are derived.
const INDEX: &str = "index";
/// The document with the branch of that index; absent for branch 0.
const BRANCH: &str = "branch";
/// The documents that the client writes. Every order that was created here has the first.
const ORDER: &str = "order.json";
const RECORD: &str = "record.json";
const SECRET: &str = "secret";

/// Where orders are stored.
#[derive(clap::Args)]
pub(crate) struct StateArgs {
    /// The state directory, with orders, secrets and the rescue phrase. By default that of the configuration file, or a directory of the
    /// user's data directory.
    #[arg(long, value_name = "DIR", env = "COUNTERSIGN_STATE")]
    state: Option<PathBuf>,
}

impl StateArgs {
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.state {
            return Ok(path.clone());
        }
        match Config::read()?.state {
            Some(path) => Ok(path),
            None => Ok(Store::default_path()?),
        }
    }

    /// Opens the state directory; `None` if it does not exist. Creates nothing.
    pub(crate) fn open_existing(&self) -> Result<Option<State>, Failure> {
        let path = self.path()?;
        match path.try_exists() {
            Ok(true) => self.open().map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(usage(format_args!("{}: {error}", path.display()))),
        }
    }

    pub(crate) fn open(&self) -> Result<State, Failure> {
        Ok(State { store: Arc::new(Store::open(self.path()?)?) })
    }
}

/// An order that was restored from the rescue phrase: its record as the service listed it, and the secret if it could be derived. The
/// request and the response are lost, so the record cannot be verified.
pub(crate) struct Restored {
    pub(crate) record: OrderRecord,
    pub(crate) secret: Option<Secret>,
}

/// An open state directory.
pub(crate) struct State {
    pub(crate) store: Arc<Store>,
}

impl State {
    /// Loads an order that was created here; `None` if there is none. An order that cannot be read is an error.
    pub(crate) fn find(&self, id: &OrderId) -> Result<Option<OrderState>, Failure> {
        match at_once(self.store.load(id)) {
            Ok(kept) => Ok(Some(kept)),
            Err(StoreError::Unknown(_)) => Ok(None),
            Err(error) => Err(usage(error)),
        }
    }

    pub(crate) fn load(&self, id: &OrderId) -> Result<OrderState, Failure> {
        if let Some(kept) = self.find(id)? {
            return Ok(kept);
        }
        Err(match self.restored(id)? {
            Some(_) => usage(format_args!(
                "order {id} was restored from the rescue phrase, without its request and response: use redeem --self or refund --self"
            )),
            None => usage(format_args!(
                "order {id} is not in the state directory: check --state, or use the machine on which the order was created"
            )),
        })
    }

    /// Returns the record that an order was verified with; `None` without one. A record that cannot be read is an error, not a missing record.
    pub(crate) fn record(&self, id: &OrderId) -> Result<Option<OrderRecord>, Failure> {
        let Some(kept) = self.find(id)? else { return Ok(None) };
        let record = kept.record.map(|body| OrderRecord::from_json(&body)).transpose();
        Ok(record.map_err(|refusal| refusal.with_prefix("/order"))?)
    }

    /// Returns an order that was restored from the rescue phrase; `None` for any other.
    pub(crate) fn restored(&self, id: &OrderId) -> Result<Option<Restored>, Failure> {
        match self.store.open_order(id.as_str()) {
            Ok(order) => Restored::read(&order),
            Err(Error::OrderNotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores an order that was restored from the rescue phrase. Returns `false` if the order existed before.
    pub(crate) fn keep_restored(&self, restored: &Restored, taken: KeyIndex) -> Result<bool, Failure> {
        let record = serde_json::to_vec(&restored.record).map_err(usage)?;
        let secret = restored.secret.as_ref().map(Secret::to_hex);
        let (index, branch) = (taken.index.to_string(), taken.branch.to_string());
        let mut documents = vec![(INDEX, index.as_bytes()), (RECORD, &record)];
        if taken.branch != 0 {
            documents.push((BRANCH, branch.as_bytes()));
        }
        documents.extend(secret.as_ref().map(|digits| (SECRET, digits.as_bytes())));
        match self.store.lock_store()?.create_order(&restored.record.order_id, &documents) {
            Err(Error::OrderExists { .. }) => Ok(false),
            created => Ok(created.map(|_| true)?),
        }
    }

    /// Checks that no other order has this secret. A secret that was used before is public, or will be.
    pub(crate) fn check_unused(&self, hash: &SecretHash) -> Result<(), Failure> {
        let mut used = at_once(self.store.order_of(hash)).map_err(usage)?.map(|id| id.to_string());
        for order in self.store.as_ref().orders()? {
            let order = order?;
            if Restored::read(&order)?.is_some_and(|restored| restored.record.source_swap.secret_hash == *hash) {
                used = Some(order.id().to_owned());
            }
        }
        match used {
            None => Ok(()),
            Some(id) => Err(usage(format_args!("the secret is already that of order {id}: use a new secret for every order"))),
        }
    }

    /// Returns the keys and secrets of the rescue phrase. The phrase is generated on first use, and shown only then.
    pub(crate) fn rescue(&self) -> Result<Rescue, Failure> {
        let (phrase, is_new) = self.store.first_phrase()?;
        if is_new {
            show::rescue_phrase(&phrase.words());
        }
        Rescue::new(&phrase).map_err(usage)
    }

    /// Writes to the journal that the secret is about to be released in the owner's own redemption.
    pub(crate) fn write_secret_leaving(&self, id: &OrderId) -> Result<(), Failure> {
        let guard = at_once(self.store.lock(id)).map_err(usage)?;
        let at = show::now();
        for event in [Event::SecretLeaving { path: driver::SecretRoute::Own }, Event::sending(driver::Delivery::Redemption)] {
            at_once(self.store.append(&guard, &Entry { at, event })).map_err(usage)?;
        }
        Ok(())
    }

    /// Marks the next index as used and returns it. Call this before anything derived from the index is sent.
    pub(crate) fn take_index(&self) -> Result<KeyIndex, Failure> {
        Ok(self.store.take_index()?)
    }

    /// Returns the index of an order; `None` if nothing is derived for it.
    pub(crate) fn index(&self, id: &OrderId) -> Result<Option<KeyIndex>, Failure> {
        let order = self.store.open_order(id.as_str())?;
        let Some(index) = read_number(&order, INDEX)? else { return Ok(None) };
        Ok(Some(KeyIndex { branch: read_number(&order, BRANCH)?.unwrap_or_default(), index }))
    }
}

impl Restored {
    /// Reads a restored order; `None` for an order that was created here, and for a directory without a record.
    pub(crate) fn read(order: &OrderDir) -> Result<Option<Self>, Failure> {
        if order.exists(ORDER)? {
            return Ok(None);
        }
        let Some(bytes) = order.read(RECORD)? else { return Ok(None) };
        let damaged = |what: &str| usage(format_args!("order {}: {what}; restore again into a new directory", order.id()));
        let record = OrderRecord::from_json(&bytes).map_err(|refusal| damaged(&format!("{RECORD}: {refusal}")))?;
        if !record.order_id.eq_ignore_ascii_case(order.id()) {
            return Err(damaged("its record belongs to another order"));
        }
        let parse = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(|text| Secret::parse(text.trim()).ok());
        let secret = order.read(SECRET)?.map(|bytes| parse(&bytes).ok_or_else(|| damaged("its secret cannot be read"))).transpose()?;
        // The secret of another order must never be released for this one.
        if secret.as_ref().is_some_and(|secret| secret.hash() != record.destination_swap.secret_hash) {
            return Err(damaged("its secret belongs to another order"));
        }
        Ok(Some(Self { record, secret }))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        failed(&error)
    }
}

/// Returns the result of an operation of the store on disk, whose futures are ready when they are first polled.
pub(crate) fn at_once<T>(operation: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(StoreError::Failed("the store on disk did not answer at once".to_owned())),
    }
}

/// Returns the index of an order that was created here; `None` if nothing is derived for it.
pub(crate) fn key_index(kept: &OrderState) -> Option<KeyIndex> {
    kept.index.map(|index| KeyIndex { branch: kept.branch, index })
}

/// Reads a document that is a decimal number.
fn read_number<N: FromStr>(order: &OrderDir, name: &str) -> Result<Option<N>, Failure> {
    let Some(bytes) = order.read(name)? else { return Ok(None) };
    let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
    let damaged = || usage(format_args!("{name} of order {} is not a number: restore a backup into a new directory", order.id()));
    number.map(Some).ok_or_else(damaged)
}

/// Converts an error of the store to a failure, with what the user can do next.
pub(crate) fn failed(error: &Error) -> Failure {
    usage(format_args!("{}; {}", input::chain(error), error.advice()))
}

/// Reads an order record from the user's own file, with or without its envelope.
pub(crate) fn read_record(path: &Path) -> Result<OrderRecord, Failure> {
    OrderRecord::from_json(&input::read(path)?).map_err(|refusal| input::own_file(path, &refusal))
}

pub(crate) fn read_secret(path: &Path) -> Result<Secret, Failure> {
    let bytes = input::read(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| usage("the secret is not text: expected 64 hex digits"))?;
    Ok(Secret::parse(text.trim())?)
}
