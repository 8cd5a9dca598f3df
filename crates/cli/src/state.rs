//! What is kept between two runs: created orders, and secrets. Only the user can read the files.
//!
//! A secret is written before the order that names its hash is created, so that it is not lost if the program ends early.

use std::fs;
use std::path::{Path, PathBuf};

use countersign::{OrderRecord, SecretHash};
use countersign_client::{OrderId, Secret, StoredSwap};

use crate::files::{self, Access};
use crate::input::{self, Failure, usage};
use crate::service;

/// Where orders and secrets are kept.
#[derive(clap::Args)]
pub(crate) struct StateArgs {
    /// Directory of created orders and their secrets. By default the user's state directory.
    #[arg(long, value_name = "DIR", env = "COUNTERSIGN_STATE")]
    state: Option<PathBuf>,
}

impl StateArgs {
    pub(crate) fn open(&self) -> Result<State, Failure> {
        let directory = self.state.clone().or_else(|| service::directory("XDG_STATE_HOME", ".local/state"));
        let directory = directory.ok_or_else(|| usage("no state directory: name one with --state"))?;
        create_directory(&directory)?;
        Ok(State { directory })
    }
}

/// The state directory.
pub(crate) struct State {
    directory: PathBuf,
}

impl State {
    pub(crate) fn save(&self, swap: &StoredSwap) -> Result<(), Failure> {
        files::replace(&self.order_file(swap.id()), &serde_json::to_vec(swap).map_err(usage)?, Access::Private)
    }

    pub(crate) fn load(&self, id: &OrderId) -> Result<StoredSwap, Failure> {
        Ok(StoredSwap::from_json(&input::read(&self.order_file(id))?)?)
    }

    /// Returns the order with this id, if it is kept here. A file that cannot be read is an error, not a missing order.
    pub(crate) fn find(&self, id: &OrderId) -> Result<Option<StoredSwap>, Failure> {
        match self.order_file(id).try_exists() {
            Ok(false) => Ok(None),
            _ => self.load(id).map(Some),
        }
    }

    /// Returns the record that is kept of an order. A file that cannot be read is an error, not a missing record.
    pub(crate) fn record(&self, id: &OrderId) -> Result<Option<OrderRecord>, Failure> {
        let file = self.directory.join(format!("{}.record.json", id.as_str().to_ascii_lowercase()));
        match file.try_exists() {
            Ok(false) => Ok(None),
            _ => read_record(&file).map(Some),
        }
    }

    pub(crate) fn save_secret(&self, secret: &Secret) -> Result<(), Failure> {
        files::replace(&self.secret_file(&secret.hash()), secret.to_hex().as_bytes(), Access::Private)
    }

    /// Returns the secret of a hash, if it is kept here. A file that cannot be read is an error, not a missing secret.
    pub(crate) fn secret(&self, hash: &SecretHash) -> Result<Option<Secret>, Failure> {
        let file = self.secret_file(hash);
        match file.try_exists() {
            Ok(false) => Ok(None),
            _ => read_secret(&file).map(Some),
        }
    }

    fn order_file(&self, id: &OrderId) -> PathBuf {
        self.directory.join(format!("{}.json", id.as_str().to_ascii_lowercase()))
    }

    fn secret_file(&self, hash: &SecretHash) -> PathBuf {
        self.directory.join(format!("{hash}.secret"))
    }
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

fn create_directory(path: &Path) -> Result<(), Failure> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| usage(format_args!("{}: {error}", path.display())))
}
