//! What is kept between two runs: a directory for each order, and the rescue phrase. Only the user can read the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign::{OrderRecord, SecretHash};
use countersign_client::driver::{KeptOrder, Store as _, StoreError};
use countersign_client::{OrderId, Secret};
use countersign_store::rescue::{Phrase, Rescue};
use countersign_store::{Error, Store};

use crate::input::{self, Failure, usage};
use crate::show;

/// The document that names the index from which the keys and the secret of an order are derived.
const INDEX: &str = "index";

/// Where orders are kept.
#[derive(clap::Args)]
pub(crate) struct StateArgs {
    /// Directory of what is kept: orders, secrets, the rescue phrase. By default the user's data directory.
    #[arg(long, value_name = "DIR", env = "COUNTERSIGN_STATE")]
    state: Option<PathBuf>,
}

impl StateArgs {
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        self.state.clone().map_or_else(|| Store::default_path().map_err(|error| failed(&error)), Ok)
    }

    pub(crate) fn open(&self) -> Result<State, Failure> {
        Ok(State { store: Arc::new(Store::open(self.path()?).map_err(|error| failed(&error))?) })
    }
}

/// What is kept.
pub(crate) struct State {
    pub(crate) store: Arc<Store>,
}

impl State {
    /// Returns what is kept of an order. Something that cannot be read is an error, not a missing order.
    pub(crate) fn find(&self, id: &OrderId) -> Result<Option<KeptOrder>, Failure> {
        match self.store.load(id) {
            Ok(kept) => Ok(Some(kept)),
            Err(StoreError::Unknown(_)) => Ok(None),
            Err(error) => Err(usage(error)),
        }
    }

    pub(crate) fn load(&self, id: &OrderId) -> Result<KeptOrder, Failure> {
        self.find(id)?.ok_or_else(|| {
            usage(format_args!("nothing is kept of order {id}: it was created elsewhere, or --state names another directory"))
        })
    }

    /// Returns the record that an order was verified with. Something that cannot be read is an error, not a missing record.
    pub(crate) fn record(&self, id: &OrderId) -> Result<Option<OrderRecord>, Failure> {
        let Some(kept) = self.find(id)? else { return Ok(None) };
        let record = kept.record.map(|body| OrderRecord::from_json(&body)).transpose();
        Ok(record.map_err(|refusal| refusal.under("/order"))?)
    }

    /// Requires that a secret is not that of another order: one that was used is public, or will be.
    pub(crate) fn check_unused(&self, hash: &SecretHash) -> Result<(), Failure> {
        match self.store.order_of(hash).map_err(usage)? {
            None => Ok(()),
            Some(id) => Err(usage(format_args!("the secret is that of order {id}: a secret belongs to one order"))),
        }
    }

    /// Returns what keys and secrets are derived from. The phrase is made at first use, and shown this once.
    pub(crate) fn rescue(&self) -> Result<Rescue, Failure> {
        let phrase = match self.store.phrase().map_err(|error| failed(&error))? {
            Some(phrase) => phrase,
            None => {
                let phrase = Phrase::generate().map_err(|error| failed(&error))?;
                self.store.keep_phrase(&phrase).map_err(|error| failed(&error))?;
                show::rescue_phrase(&phrase.words());
                phrase
            }
        };
        Rescue::new(&phrase).map_err(usage)
    }

    /// Marks the next index as used, before anything derived from it leaves.
    pub(crate) fn take_index(&self) -> Result<u32, Failure> {
        self.store.take_index().map_err(|error| failed(&error))
    }

    /// Keeps the index of an order.
    pub(crate) fn keep_index(&self, id: &OrderId, index: u32) -> Result<(), Failure> {
        let order = self.store.open_order(id.as_str()).and_then(|order| order.lock()).map_err(|error| failed(&error))?;
        order.create_new(INDEX, index.to_string().as_bytes()).map_err(|error| failed(&error))
    }

    /// Returns the index of an order whose keys are derived.
    pub(crate) fn index(&self, id: &OrderId) -> Result<Option<u32>, Failure> {
        let order = self.store.open_order(id.as_str()).map_err(|error| failed(&error))?;
        let bytes = order.read(INDEX).map_err(|error| failed(&error))?;
        let index = bytes.map(|bytes| std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok()).ok_or(()));
        index.transpose().map_err(|()| usage(format_args!("{INDEX} of order {id} is not a number: restore a backup into a new directory")))
    }
}

/// Says what a store does not do, and what remains possible.
pub(crate) fn failed(error: &Error) -> Failure {
    usage(format_args!("{}; {}", input::chain(error), error.advice()))
}

/// Reads an order record, bare or in its envelope.
pub(crate) fn read_record(path: &Path) -> Result<OrderRecord, Failure> {
    Ok(OrderRecord::from_json(&input::read(path)?).map_err(|refusal| refusal.under("/order"))?)
}

pub(crate) fn read_secret(path: &Path) -> Result<Secret, Failure> {
    let bytes = input::read(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| usage("the secret is not text"))?;
    Ok(Secret::parse(text.trim())?)
}
