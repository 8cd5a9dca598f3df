//! `countersign backup` and `countersign restore FILE`: the whole state directory in one encrypted file.

use std::fs;
use std::path::{Path, PathBuf};

use countersign::text;
use countersign_store::KeyIndex;
use countersign_store::backup::{self, BackupError, MAX_BACKUP, MIN_PASSWORD};
use serde::Serialize;

use crate::exit::{OK, USAGE};
use crate::failure::{Failure, chain, usage};
use crate::prompt::PasswordArgs;
use crate::session::Session;
use crate::state::StateArgs;
use crate::{files, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign backup swaps.backup                                  # asks for a password
  countersign backup swaps.backup --password-file password.txt --json

The file contains every order, the rescue phrase and the secrets, encrypted with the password. An existing file is never overwritten.
Files that cannot be read are listed and left out; the exit code is then 2.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    password: PasswordArgs,
    /// The file to create.
    file: PathBuf,
}

#[derive(Serialize)]
struct Written<'a> {
    /// Whether no file was unreadable.
    ok: bool,
    file: &'a Path,
    orders: usize,
    left_out: Vec<LeftOut>,
}

#[derive(Serialize)]
struct LeftOut {
    path: String,
    reason: String,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let path = args.state.path()?;
    let Some(state) = args.state.open_existing()? else {
        return Err(usage(format_args!("the state directory {} does not exist: pass the right one with --state", path.display())));
    };
    // Checked before the user types a password; `create_private` checks it again.
    if args.file.symlink_metadata().is_ok() {
        return Err(usage(format_args!("{} already exists and is never overwritten", args.file.display())));
    }
    let password = args.password.read(true, session)?;
    let kept = backup::backup(&state.store, &password).map_err(|error| failed(&error))?;
    files::create_private(&args.file, &kept.bytes)?;
    let orders = state.store.orders()?.len();
    let ok = kept.left_out.iter().all(|(_, error)| error.is_none());
    let reason = |error: Option<countersign_store::Error>| match error {
        Some(error) => format!("{}; {}", chain(&error), error.advice()),
        None => "not a file of this program".to_owned(),
    };
    let left_out = kept.left_out.into_iter().map(|(path, error)| LeftOut { path, reason: reason(error) }).collect();
    let written = Written { ok, file: &args.file, orders, left_out };
    if session.json {
        show::json(&written)?;
    } else {
        show::field("file", &format!("{}, {}", args.file.display(), show::count(orders, "order")))?;
        for LeftOut { path, reason } in &written.left_out {
            show::field("left out", &text::escape_untrusted(&format!("{path}: {reason}")))?;
        }
    }
    Ok(if ok { OK } else { USAGE })
}

#[derive(Serialize)]
struct Restored<'a> {
    ok: bool,
    state: &'a Path,
    orders: usize,
    /// The branch of the rescue phrase in which this state directory goes on.
    branch: u16,
    next_index: u32,
}

/// Restores a backup into a new or empty state directory.
pub(crate) fn restore(file: &Path, state: &StateArgs, password: &PasswordArgs, session: &Session) -> Result<u8, Failure> {
    let path = state.path()?;
    let bytes = read(file)?;
    let store = backup::restore(&bytes, &password.read(false, session)?, &path).map_err(|error| failed(&error))?;
    let orders = store.orders()?.len();
    let KeyIndex { branch, index: next_index } = store.next_index()?;
    if session.json {
        show::json(&Restored { ok: true, state: &path, orders, branch, next_index })?;
    } else {
        show::field("state", &format!("{}, with {}", path.display(), show::count(orders, "order")))?;
        show::field("branch", &format!("{branch}, in which new orders are made from now on"))?;
        show::field("note", "follow each order in one of the two state directories only, because neither sees what the other one does")?;
        show::field("next", "countersign orders")?;
    }
    Ok(OK)
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| usage(format_args!("{}: {error}", file.display()));
    let limit = u64::try_from(MAX_BACKUP).unwrap_or(u64::MAX);
    if fs::metadata(file).map_err(failed)?.len() > limit {
        return Err(usage(BackupError::TooLarge));
    }
    fs::read(file).map_err(failed)
}

fn failed(error: &BackupError) -> Failure {
    let advice = match error {
        BackupError::Store(error) => return error.into(),
        BackupError::PasswordTooShort => format!("choose a password of at least {MIN_PASSWORD} bytes"),
        BackupError::WrongPasswordOrDamaged => "try the password again, or use another copy of the file".to_owned(),
        BackupError::NotEmpty { .. } => "pass a new directory with --state".to_owned(),
        BackupError::NewerVersion { .. } => "update this program".to_owned(),
        _ => "nothing was written".to_owned(),
    };
    usage(format_args!("{}; {advice}", chain(error)))
}
