//! `countersign restore`: restores the state directory from a backup or from the rescue phrase.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use countersign::text;
use countersign_client::OrderFilter;
use countersign_client::restore::{NotRestored, Restoration};
use countersign_store::rescue::{Extent, FoundIndex, IndexError, MAX_INDICES, Phrase};
use countersign_store::{KeyIndex, Zeroizing};
use serde::Serialize;

use crate::config::Config;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::files;
use crate::prompt::{self, PasswordArgs};
use crate::session::Session;
use crate::state::StateArgs;
use crate::{backup, id, service, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign restore swaps.backup --state DIR                      # everything, from a backup
  countersign restore --phrase --state DIR --from-owner 0x... --to-owner bc1q...
  countersign restore --phrase --phrase-file words.txt --state DIR --from-owner 0x...

The directory must be new or empty. With --phrase, the secrets and keys are derived again, and the service is asked for the orders of
your addresses (by default the owners of the configuration file, as source and as destination). A restored order has its record, its
secret and its keys, but not its request and response. It can be redeemed and refunded with --self, and its record is shown as not
verified.

Every restoration starts a branch of the rescue phrase, a random one of 65536, so that two copies of a state directory never hand out the
same secret. With --phrase every branch is searched until all listed orders are found. That takes up to a minute, and several if the list
contains orders with Bitcoin keys that are not of the phrase; --branch limits the search to the branches that you know.";

/// The minimum number of unused indices that end the search in a branch: earlier versions skipped 1000 when they restored a backup.
const MIN_LOOK_AHEAD: u32 = 1_200;
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    phrase: PhraseArgs,
    /// The backup to restore.
    #[arg(required_unless_present = "phrase", conflicts_with = "phrase")]
    file: Option<PathBuf>,
}

#[derive(clap::Args)]
struct PhraseArgs {
    /// Restores the orders of a rescue phrase. The words are read from stdin unless another source is given.
    #[arg(long, conflicts_with_all = ["password_file", "password_env"])]
    phrase: bool,
    /// Reads the words from a file.
    #[arg(long, value_name = "FILE", requires = "phrase", conflicts_with = "phrase_env")]
    phrase_file: Option<PathBuf>,
    /// Reads the words from an environment variable.
    #[arg(long, value_name = "NAME", requires = "phrase")]
    phrase_env: Option<String>,
    /// Your address on the source chain of orders. Can be given several times.
    #[arg(long, value_name = "ADDRESS", requires = "phrase")]
    from_owner: Vec<String>,
    /// Your address on the destination chain of orders. Can be given several times.
    #[arg(long, value_name = "ADDRESS", requires = "phrase")]
    to_owner: Vec<String>,
    /// Restores only this order. Can be given several times.
    #[arg(long, value_name = "ORDER", requires = "phrase")]
    order: Vec<String>,
    /// Number of unused indices after the last order that end the search in a branch.
    #[arg(long, value_name = "COUNT", requires = "phrase", default_value_t = Extent::LOOK_AHEAD,
          value_parser = clap::value_parser!(u32).range(i64::from(MIN_LOOK_AHEAD)..=i64::from(MAX_INDICES)))]
    look_ahead: u32,
    /// Number of indices that are searched in a branch before it counts as unused. Branch 0 is searched further.
    #[arg(long, value_name = "COUNT", requires = "phrase", default_value_t = Extent::BRANCH_LOOK_AHEAD,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_INDICES)))]
    branch_look_ahead: u32,
    /// Searches only this branch of the phrase. Can be given several times.
    #[arg(long, value_name = "NUMBER", requires = "phrase")]
    branch: Vec<u16>,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    match &args.file {
        Some(file) => backup::restore(file, &args.state, &args.password, session),
        None => from_phrase(args, session),
    }
}

fn from_phrase(args: &Args, session: &Session) -> Result<u8, Failure> {
    let filters = args.phrase.filters()?;
    let only = args.phrase.order.iter().map(|id| Ok(id::full(id)?.as_str().to_ascii_lowercase()));
    let only = only.collect::<Result<BTreeSet<_>, Failure>>()?;
    let phrase = args.phrase.read(session)?;
    let path = args.state.path()?;
    check_free(&args.state, &path, &phrase)?;
    let client = args.service.client(session)?;
    let listed = service::run(session, async { Ok(client.list_orders(filters).await?) })
        .map_err(|failure| failure.with_advice("nothing was written: run the same command again"))?;
    for count in &listed.counts {
        session.progress(&format!("{} listed", show::count(*count, "order")));
    }
    let PhraseArgs { look_ahead, branch_look_ahead, branch, .. } = &args.phrase;
    let extent = Extent { look_ahead: *look_ahead, branch_look_ahead: *branch_look_ahead, branches: branch.clone() };
    let mut progress =
        |searched: usize, all: usize| session.progress(&format!("{searched} of {all} branches of the rescue phrase searched"));
    // The search covers every listed order, because --order only decides which of several orders with one index is yours.
    let found = Restoration::search(&phrase, &listed.orders, &extent, &mut progress).map_err(usage)?;
    let found = found.only(|id| only.is_empty() || only.contains(id));

    let state = args.state.open()?;
    let outcomes = found.restore(&state.store)?;
    let next = state.store.next_index()?;
    let mut report = Report {
        ok: true,
        state: &path,
        listed: found.count(),
        complete: !listed.is_cut,
        branches: found.branches(),
        branch: next.branch,
        next_index: next.index,
        restored: Vec::new(),
        not_restored: Vec::new(),
    };
    for (id, outcome) in outcomes {
        match outcome {
            Ok(found) => report.restored.push(Restored::new(id, &found)),
            Err(reason) => report.not_restored.push(Unrestored { order_id: id.to_owned(), reason: why(&reason) }),
        }
    }
    let without_id = listed.without_id.into_iter();
    report
        .not_restored
        .extend(without_id.map(|order_id| Unrestored { order_id, reason: "invalid order id, expected 64 hex digits".to_owned() }));
    report.print(session)?;
    Ok(OK)
}

/// Says why an order was not restored, and what the user can do about it.
fn why(reason: &NotRestored) -> String {
    match reason {
        NotRestored::Index(IndexError::Shared(others)) => format!(
            "the service lists the same secret hash or key for {}, but a secret belongs to one order. If you know which one is yours, pass it \
             with --order",
            others.join(", ")
        ),
        NotRestored::Exists => "it is already in the state directory".to_owned(),
        other => other.to_string(),
    }
}

/// Checks that the directory is new or empty, or contains the same phrase because this command was interrupted before.
fn check_free(args: &StateArgs, path: &Path, phrase: &Phrase) -> Result<(), Failure> {
    let failed = |error: io::Error| usage(format_args!("{}: {error}", path.display()));
    let is_empty = match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(failed(error)),
    };
    if is_empty {
        return Ok(());
    }
    let kept = args.open()?.store.phrase()?;
    if kept.is_some_and(|kept| *kept.words() == *phrase.words()) {
        return Ok(());
    }
    Err(usage(format_args!("{} is not empty: pass a new directory with --state", path.display())))
}

impl PhraseArgs {
    fn read(&self, session: &Session) -> Result<Phrase, Failure> {
        let words = match prompt::named(self.phrase_file.as_deref(), self.phrase_env.as_deref(), session)? {
            Some(words) => words,
            None if io::stdin().is_terminal() => prompt::hidden("rescue phrase: ", session)?,
            None => {
                let bytes = files::read(Path::new("-"))?;
                Zeroizing::new(std::str::from_utf8(&bytes).map_err(|_| usage("the rescue phrase is not text"))?.to_owned())
            }
        };
        Phrase::parse(&words).map_err(usage)
    }

    /// Returns the filters for the service's list: one for each address and leg.
    fn filters(&self) -> Result<Vec<OrderFilter>, Failure> {
        let config = Config::read()?;
        let owners: Vec<_> = config.owners().into_iter().map(str::to_owned).collect();
        let is_given = !self.from_owner.is_empty() || !self.to_owner.is_empty();
        let (from, to) = if is_given { (&self.from_owner, &self.to_owner) } else { (&owners, &owners) };
        let from = from.iter().map(|owner| OrderFilter::from_owner(owner));
        let filters: Vec<_> = from.chain(to.iter().map(|owner| OrderFilter::to_owner(owner))).collect();
        if filters.is_empty() {
            return Err(usage("no address: pass yours with --from-owner and --to-owner, or set owners in the configuration file"));
        }
        Ok(filters)
    }
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    state: &'a Path,
    /// The number of orders that the service listed; with `--order`, only of those.
    listed: usize,
    /// Whether the service's list was read to its end.
    complete: bool,
    /// The number of branches of the phrase that were searched.
    branches: usize,
    /// The branch in which this state directory goes on.
    branch: u16,
    next_index: u32,
    restored: Vec<Restored>,
    not_restored: Vec<Unrestored>,
}

#[derive(Serialize)]
struct Restored {
    order_id: String,
    branch: u16,
    index: u32,
    secret: bool,
    keys: Vec<&'static str>,
}

#[derive(Serialize)]
struct Unrestored {
    order_id: String,
    reason: String,
}

impl Restored {
    fn new(id: &str, found: &FoundIndex) -> Self {
        let KeyIndex { branch, index } = found.at;
        let keys = [(found.has_refund_key, "source"), (found.has_redeem_key, "destination")];
        let keys = keys.into_iter().filter_map(|(is_found, leg)| is_found.then_some(leg)).collect();
        Self { order_id: id.to_owned(), branch, index, secret: found.has_secret, keys }
    }
}

impl Report<'_> {
    fn print(&self, session: &Session) -> Result<(), Failure> {
        if session.json {
            return Ok(show::json(self)?);
        }
        let cut = if self.complete { "" } else { "; the service has more orders than were read" };
        show::field(
            "restored",
            &format!("{} of {} into {}{cut}", self.restored.len(), show::count(self.listed, "listed order"), self.state.display()),
        )?;
        for order in &self.restored {
            let secret = if order.secret { "with its secret" } else { "without a secret, because it does not belong to this phrase" };
            let keys = if order.keys.is_empty() { String::new() } else { format!(", with the key of its {}", order.keys.join(" and ")) };
            let place = if order.branch == 0 { String::new() } else { format!("branch {}, ", order.branch) };
            show::field("order", &format!("{}, {place}index {}, {secret}{keys}", order.order_id, order.index))?;
        }
        for order in &self.not_restored {
            show::field("not restored", &text::escape_untrusted(&format!("{}: {}", order.order_id, order.reason)))?;
        }
        show::field("branch", &format!("{}, in which new orders are made from now on", self.branch))?;
        show::field("missing", "request and response of every order: the records are only the service's word, so check who is paid")?;
        Ok(show::field("next", "countersign orders")?)
    }
}
