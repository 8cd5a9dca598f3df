//! The state directory: a directory for each order, and the rescue phrase. Only the user can read its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use countersign::{Leg, OrderRecord, SecretHash};
use countersign_client::driver::{self, Entry, Event, OrderState, OrderStore as _, StatedEnd, StoreError};
use countersign_client::restore::RestoredOrder;
use countersign_client::{OrderId, Secret, rescue};
use countersign_store::rescue::Rescue;
use countersign_store::{KeyIndex, OrderDir, Store};
use serde::{Deserialize, Serialize};

use crate::command::quoted;
use crate::config::Config;
use crate::failure::{Failure, usage};
use crate::files;
use crate::key::GivenKey;
use crate::session::Session;
use crate::show;
use crate::{own, prompt};

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
            Err(error) => Err(usage(self.unreadable(id, &error))),
        }
    }

    /// Says how an order that cannot be read is still redeemed or refunded: it may be paid, and most of its documents are intact.
    pub(crate) fn unreadable(&self, id: &OrderId, error: &StoreError) -> String {
        let record = self.store.path().join("orders").join(id.as_str()).join("record.json");
        let record = quoted(record.as_os_str());
        format!(
            "{error}; or find the order again with the rescue phrase, in a new directory: countersign restore --phrase --state DIR; or refund it \
             with its record alone: countersign recover --order {record}"
        )
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

    /// Returns the record that an order was verified with; `None` without one. A record that cannot be read is an error, not a missing
    /// record.
    pub(crate) fn record(&self, id: &OrderId) -> Result<Option<OrderRecord>, Failure> {
        let Some(kept) = self.find(id)? else { return Ok(None) };
        let record = kept.record.map(|body| OrderRecord::from_json(&body)).transpose();
        Ok(record.map_err(|refusal| refusal.with_prefix("/order"))?)
    }

    /// Returns an order that was restored from the rescue phrase; `None` for any other.
    pub(crate) fn restored(&self, id: &OrderId) -> Result<Option<RestoredOrder>, Failure> {
        Ok(RestoredOrder::find(&self.store, id)?)
    }

    /// Checks that no other order has this secret. A secret that was used before is public, or will be.
    pub(crate) fn check_unused(&self, hash: &SecretHash) -> Result<(), Failure> {
        match at_once(self.store.order_of(hash)).map_err(usage)? {
            None => Ok(()),
            Some(id) => Err(usage(format_args!("the secret is already that of order {id}: use a new secret for every order"))),
        }
    }

    /// Returns the keys and secrets of the rescue phrase. The phrase is generated and shown on first use.
    ///
    /// At a terminal its owner is asked for two of its words. If that does not happen, because the window is closed or nobody is there, a mark
    /// stays, and the next order that is made at a terminal asks.
    pub(crate) fn rescue(&self, session: &Session) -> Result<Rescue, Failure> {
        let mark = self.store.path().join(NOT_CONFIRMED);
        if self.store.phrase()?.is_none() {
            fs::write(&mark, []).map_err(|error| usage(format_args!("{}: {error}", mark.display())))?;
        }
        let (words, is_new) = self.store.first_phrase()?;
        if (is_new || mark.exists()) && prompt::rescue_phrase(&words.words(), is_new, session)? {
            // A mark that stays costs one more question.
            let _ = fs::remove_file(&mark);
        }
        Rescue::new(&words).map_err(usage)
    }

    /// Notes the end of an order that the service states, where that counts. It is only for the list of orders: nothing is decided by it.
    pub(crate) fn note_stated(&self, id: &OrderId, end: StatedEnd) -> Result<(), Failure> {
        note_stated(&self.store, id, end)
    }

    /// Returns the end of an order that was noted by [`note_stated`], if nothing was written to its journal since.
    pub(crate) fn stated(&self, order: &OrderDir) -> Result<Option<StatedEnd>, Failure> {
        let Some(note) = order.read(STATED)? else { return Ok(None) };
        // A note of a newer program is none of these.
        let note: Option<Stated> = serde_json::from_slice(&note).ok();
        let Some(note) = note.filter(|note| order.read_journal(JOURNAL).is_ok_and(|journal| journal.entries.len() == note.entries)) else {
            return Ok(None);
        };
        Ok([StatedEnd::Complete, StatedEnd::Refunded, StatedEnd::Expired, StatedEnd::Lost].into_iter().find(|end| end.name() == note.end))
    }

    /// Writes to the journal that a redemption is about to be printed: the secret may be out from then on, and nothing was sent.
    pub(crate) fn write_printed(&self, id: &OrderId) -> Result<(), Failure> {
        let guard = at_once(self.store.lock(id)).map_err(usage)?;
        let at = show::now();
        for event in [Event::SecretLeaving { path: driver::SecretRoute::Own }, Event::Printed { what: driver::Delivery::Redemption }] {
            at_once(self.store.append(&guard, &Entry { at, event })).map_err(usage)?;
        }
        Ok(())
    }

    /// Marks the next index as used and returns it. Call this before anything derived from the index is sent.
    pub(crate) fn take_index(&self) -> Result<KeyIndex, Failure> {
        Ok(self.store.take_index()?)
    }

    /// Returns the index of a restored order; `None` if nothing is derived for it.
    pub(crate) fn index(&self, id: &OrderId) -> Result<Option<KeyIndex>, Failure> {
        Ok(RestoredOrder::index(&self.store.open_order(id.as_str())?)?)
    }

    /// Returns the key that is derived from the rescue phrase for a leg, if `named` is its public key. The user may have chosen another
    /// key; then the result is `None`.
    pub(crate) fn derived_key(&self, leg: Leg, index: Option<KeyIndex>, named: Option<&str>) -> Result<Option<GivenKey>, Failure> {
        let (Some(index), Some(named)) = (index, named) else { return Ok(None) };
        // An order that may be paid is never asked about the phrase, and no phrase is generated for it.
        let Some(words) = self.store.phrase()? else { return Ok(None) };
        let rescue = Rescue::new(&words).map_err(usage)?;
        Ok(rescue::derived_key(&rescue, leg, index, named).map_err(usage)?.map(GivenKey::derived))
    }
}

/// The document with the end that the service stated.
const STATED: &str = "stated.json";
/// The mark of a rescue phrase whose words its owner was not asked for yet.
const NOT_CONFIRMED: &str = "phrase_not_confirmed";
/// The journal of an order, as the driver names it.
const JOURNAL: &str = "journal";

/// The end that the service stated, and how long the journal was then.
#[derive(Serialize, Deserialize)]
struct Stated {
    end: String,
    entries: usize,
}

/// Writes the note of [`State::note_stated`].
pub(crate) fn note_stated(store: &Store, id: &OrderId, end: StatedEnd) -> Result<(), Failure> {
    let order = store.open_order(id.as_str())?.lock_within(Duration::from_secs(2))?;
    let entries = order.read_journal(JOURNAL)?.entries.len();
    let note = serde_json::to_vec(&Stated { end: end.name().to_owned(), entries }).map_err(usage)?;
    Ok(order.write(STATED, &note)?)
}

/// Returns the result of an operation of the store on disk, whose futures are ready when they are first polled.
pub(crate) fn at_once<T>(operation: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(StoreError::Failed("the store on disk did not answer at once".to_owned())),
    }
}

/// Reads an order record from the user's own file, with or without its envelope.
pub(crate) fn read_record(path: &Path) -> Result<OrderRecord, Failure> {
    own::parse(path, OrderRecord::from_json)
}

pub(crate) fn read_secret(path: &Path, session: &Session) -> Result<Secret, Failure> {
    let bytes = files::read_private(path, session)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| usage("the secret is not text: expected 64 hex digits"))?;
    Ok(Secret::parse(text.trim())?)
}
