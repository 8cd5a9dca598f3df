//! What is kept between two runs: created orders, and secrets. Files of the user's own, readable by nobody else.
//!
//! A secret is written before the order that names its hash is created, so that no end of the program loses it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use countersign::SecretHash;
use countersign_client::{OrderId, Secret, Swap};

use crate::input::{self, Failure, usage};
use crate::service;

/// Where orders and secrets are kept.
#[derive(clap::Args)]
pub(crate) struct StateArgs {
    /// Directory of created orders and their secrets; without it the user's state directory.
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
    pub(crate) fn save(&self, swap: &Swap) -> Result<(), Failure> {
        write(&self.order_file(swap.id()), swap.as_json())
    }

    pub(crate) fn load(&self, id: &OrderId) -> Result<Swap, Failure> {
        Ok(Swap::from_json(input::read(&self.order_file(id))?.to_vec())?)
    }

    pub(crate) fn save_secret(&self, secret: &Secret) -> Result<(), Failure> {
        write(&self.secret_file(&secret.hash()), secret.to_hex().as_bytes())
    }

    /// The secret of a hash, where it is kept here.
    pub(crate) fn secret(&self, hash: &SecretHash) -> Result<Option<Secret>, Failure> {
        let file = self.secret_file(hash);
        if file.exists() { read_secret(&file).map(Some) } else { Ok(None) }
    }

    fn order_file(&self, id: &OrderId) -> PathBuf {
        self.directory.join(format!("{}.json", id.as_str().to_ascii_lowercase()))
    }

    fn secret_file(&self, hash: &SecretHash) -> PathBuf {
        self.directory.join(format!("{hash}.secret"))
    }
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

/// Writes beside the file and renames: what was there before is whole until the new one is.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&beside).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.and_then(|()| fs::rename(&beside, path)).map_err(|error| usage(format_args!("{}: {error}", path.display())))
}
