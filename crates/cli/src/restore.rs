//! `countersign restore`: restores the state directory from a backup or from the rescue phrase.
//!
//! The secrets and keys of every index can be derived from the phrase. Only the service knows which orders they belong to, so its list of
//! the user's orders is searched for their hashes and public keys. A dishonest service can hide an order, or list one with the hash of
//! another. If two orders claim the same index, neither is restored until the user names the right one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::pin::pin;

use countersign::recover::Leg;
use countersign::wire::SwapRecord;
use countersign::{OrderRecord, SecretHash, text};
use countersign_client::{Client, Http, OrderFilter, OrderId, Secret, StreamExt};
use countersign_store::Zeroizing;
use countersign_store::backup::RESTORE_SKIP;
use countersign_store::rescue::{Phrase, Rescue};
use serde::Serialize;

use crate::config::Config;
use crate::input::{self, Failure, usage};
use crate::prompt::{self, PasswordArgs};
use crate::state::{Restored, StateArgs};
use crate::{OK, backup, service, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign restore swaps.backup --state DIR                      # everything, from a backup
  countersign restore --phrase --state DIR --from-owner 0x... --to-owner bc1q...
  countersign restore --phrase --phrase-file words.txt --state DIR --from-owner 0x...

The directory must be new or empty. With --phrase, the secrets and keys are derived again, and the service is asked for the orders of
your addresses (by default the owners of the configuration file, as source and as destination). A restored order has its record, its
secret and its keys, but not its request and response. It can be redeemed and refunded with --self, and its record is shown as not
verified.";

/// The maximum number of orders that are read for one owner on one leg.
const MAX_ORDERS: usize = 10_000;
/// The minimum number of unused indices that end the search: more than one restoration skips.
const MIN_LOOK_AHEAD: u32 = 1_200;
/// The default number of unused indices that end the search: more than several restorations in a row skip.
const LOOK_AHEAD: u32 = 5_000;
/// The maximum number of indices that are searched.
const MAX_INDICES: u32 = 100_000;

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
    /// Number of unused indices after the last order that end the search.
    #[arg(long, value_name = "COUNT", requires = "phrase", default_value_t = LOOK_AHEAD,
          value_parser = clap::value_parser!(u32).range(i64::from(MIN_LOOK_AHEAD)..=i64::from(MAX_INDICES)))]
    look_ahead: u32,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    match &args.file {
        Some(file) => backup::restore(file, &args.state, &args.password, json),
        None => from_phrase(args, json),
    }
}

fn from_phrase(args: &Args, json: bool) -> Result<u8, Failure> {
    let filters = args.phrase.filters()?;
    let only = args.phrase.order.iter().map(|id| Ok(OrderId::parse(id)?.as_str().to_ascii_lowercase()));
    let only = only.collect::<Result<BTreeSet<_>, Failure>>()?;
    let phrase = args.phrase.read()?;
    let path = args.state.path()?;
    check_free(&args.state, &path, &phrase)?;
    let client = args.service.client()?;
    let listed =
        service::run(list(&client, filters)).map_err(|failure| failure.with_advice("nothing was written: run the same command again"))?;
    let rescue = Rescue::new(&phrase).map_err(usage)?;
    // The search covers every listed order, because the indices of orders that --order leaves out are used as well.
    let mut search = Search::run(&rescue, &listed.orders, args.phrase.look_ahead)?;
    let is_wanted = |id: &String| only.is_empty() || only.contains(id);
    search.claims.values_mut().for_each(|ids| ids.retain(is_wanted));
    let wanted: Vec<_> = listed.orders.iter().filter(|(id, _)| is_wanted(id)).collect();

    let state = args.state.open()?;
    if state.store.phrase()?.is_none() {
        state.store.keep_phrase(&phrase)?;
    }
    // Written first, so that an index is not used twice after an interruption. Orders that the service did not list may have used more
    // indices.
    let next = search.last.map_or(0, |last| last.saturating_add(1)).saturating_add(RESTORE_SKIP);
    state.store.skip_to_index(next)?;
    let mut report = Report {
        ok: true,
        state: &path,
        listed: wanted.len(),
        complete: !listed.is_cut,
        searched: search.searched,
        next_index: state.store.next_index()?,
        restored: Vec::new(),
        not_restored: Vec::new(),
    };
    for (id, record) in wanted {
        let found = match search.index_of(id) {
            Ok(found) => found,
            Err(reason) => {
                report.not_restored.push(NotRestored { order_id: id.clone(), reason });
                continue;
            }
        };
        let secret = found.by_hash.then(|| secret(&rescue, found.index)).transpose()?;
        let (has_secret, restored) = (secret.is_some(), Restored { record: record.clone(), secret });
        if state.keep_restored(&restored, found.index)? {
            report.restored.push(RestoredOrder { order_id: id.clone(), index: found.index, secret: has_secret, keys: found.keys.clone() });
        } else {
            report.not_restored.push(NotRestored { order_id: id.clone(), reason: "it is already in the state directory".to_owned() });
        }
    }
    let without_id = listed.without_id.into_iter();
    report
        .not_restored
        .extend(without_id.map(|order_id| NotRestored { order_id, reason: "invalid order id, expected 64 hex digits".to_owned() }));
    report.print(json)?;
    Ok(OK)
}

fn secret(rescue: &Rescue, index: u32) -> Result<Secret, Failure> {
    let digits = Zeroizing::new(hex::encode(*rescue.secret(index).map_err(usage)?));
    Ok(Secret::parse(&digits)?)
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
    fn read(&self) -> Result<Phrase, Failure> {
        let words = match prompt::named(self.phrase_file.as_deref(), self.phrase_env.as_deref())? {
            Some(words) => words,
            None if io::stdin().is_terminal() => prompt::hidden("rescue phrase: ")?,
            None => {
                let bytes = input::read(Path::new("-"))?;
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
        let from = from.iter().map(|owner| OrderFilter { from_owner: Some(owner.clone()), ..OrderFilter::default() });
        let to = to.iter().map(|owner| OrderFilter { to_owner: Some(owner.clone()), ..OrderFilter::default() });
        let filters: Vec<_> = from.chain(to).collect();
        if filters.is_empty() {
            return Err(usage("no address: pass yours with --from-owner and --to-owner, or set owners in the configuration file"));
        }
        Ok(filters)
    }
}

/// The orders that the service lists, by their ids in lower case.
struct Listed {
    orders: BTreeMap<String, OrderRecord>,
    /// Order ids that are not valid.
    without_id: BTreeSet<String>,
    /// Whether the service has more orders than were read.
    is_cut: bool,
}

async fn list(client: &Client<Http>, filters: Vec<OrderFilter>) -> Result<Listed, Failure> {
    let mut listed = Listed { orders: BTreeMap::new(), without_id: BTreeSet::new(), is_cut: false };
    for filter in filters {
        let mut orders = pin!(client.all_orders(filter));
        let mut count = 0_usize;
        while let Some(record) = orders.next().await {
            if count == MAX_ORDERS {
                listed.is_cut = true;
                break;
            }
            count = count.saturating_add(1);
            let record = record?;
            // An order without a valid id must not prevent the others from being restored.
            match OrderId::parse(&record.order_id) {
                Ok(id) => drop(listed.orders.insert(id.as_str().to_ascii_lowercase(), record)),
                Err(_) => drop(listed.without_id.insert(record.order_id)),
            }
        }
        show::progress(&format!("{} listed", show::count(count, "order")));
    }
    Ok(listed)
}

/// An index that belongs to an order.
struct Found {
    index: u32,
    /// Whether the order's secret hash was derived, not only a key.
    by_hash: bool,
    /// The legs whose keys were derived.
    keys: Vec<&'static str>,
}

/// The search for indices.
struct Search<'r> {
    orders: &'r BTreeMap<String, OrderRecord>,
    found: BTreeMap<String, Vec<Found>>,
    /// The orders that claim an index.
    claims: BTreeMap<u32, BTreeSet<String>>,
    /// The last index that belongs to an order.
    last: Option<u32>,
    /// The number of indices searched so far.
    searched: u32,
}

impl<'r> Search<'r> {
    fn run(rescue: &Rescue, orders: &'r BTreeMap<String, OrderRecord>, look_ahead: u32) -> Result<Self, Failure> {
        let mut hashes: BTreeMap<SecretHash, Vec<&String>> = BTreeMap::new();
        let mut keys: BTreeMap<(bool, String), Vec<&String>> = BTreeMap::new();
        for (id, record) in orders {
            hashes.entry(record.source_swap.secret_hash).or_default().push(id);
            for leg in [Leg::Source, Leg::Destination] {
                if let Some(key) = owner_key(record, leg) {
                    keys.entry((leg == Leg::Source, key.to_ascii_lowercase())).or_default().push(id);
                }
            }
        }
        let mut search = Self { orders, found: BTreeMap::new(), claims: BTreeMap::new(), last: None, searched: 0 };
        let end = |last: Option<u32>| last.map_or(0, |last| last.saturating_add(1)).saturating_add(look_ahead).min(MAX_INDICES);
        while !orders.is_empty() && search.searched < end(search.last) {
            let index = search.searched;
            let hash = SecretHash(rescue.secret_hash(index).map_err(usage)?);
            for id in hashes.get(&hash).into_iter().flatten() {
                search.claim(id, index, None);
            }
            // Keys are derived only if some order contains one.
            if !keys.is_empty() {
                let refund = (true, rescue.refund_key(index).map_err(usage)?.public_key());
                let redeem = (false, rescue.redeem_key(index).map_err(usage)?.public_key());
                for (key, leg) in [(refund, "source"), (redeem, "destination")] {
                    for id in keys.get(&key).into_iter().flatten() {
                        search.claim(id, index, Some(leg));
                    }
                }
            }
            search.searched = index.saturating_add(1);
        }
        Ok(search)
    }

    /// Records that an index belongs to an order, by its secret hash (`leg` is `None`) or by the key of a leg.
    fn claim(&mut self, id: &str, index: u32, leg: Option<&'static str>) {
        self.last = Some(index);
        self.claims.entry(index).or_default().insert(id.to_owned());
        let found = self.found.entry(id.to_owned()).or_default();
        let one = match found.iter().position(|one| one.index == index) {
            Some(position) => found.get_mut(position),
            None => {
                found.push(Found { index, by_hash: false, keys: Vec::new() });
                found.last_mut()
            }
        };
        if let Some(one) = one {
            one.by_hash |= leg.is_none();
            one.keys.extend(leg);
        }
    }

    /// Returns the index of an order, or why the order cannot be restored.
    fn index_of(&self, id: &str) -> Result<&Found, String> {
        let found = match self.found.get(id).map(Vec::as_slice) {
            None | Some([]) => return Err("neither its secret hash nor its keys belong to this phrase".to_owned()),
            Some([found]) => found,
            Some(_) => return Err("its secret hash and its keys belong to different indices of the phrase".to_owned()),
        };
        let others = self.claims.get(&found.index).into_iter().flatten().filter(|other| *other != id);
        let others: Vec<_> = others.map(String::as_str).collect();
        if !others.is_empty() {
            return Err(format!(
                "the service lists the same secret hash or key for {}, but a secret belongs to one order. If you know which one is yours, pass it \
                 with --order",
                others.join(", ")
            ));
        }
        match self.orders.get(id) {
            Some(record) if record.source_swap.secret_hash == record.destination_swap.secret_hash => Ok(found),
            _ => Err("its two legs have different secret hashes: report the service".to_owned()),
        }
    }
}

/// Returns the owner's x-only public key of a leg on a Bitcoin-like chain, 64 hex digits in the case of the record; `None` without one.
pub(crate) fn owner_key(record: &OrderRecord, leg: Leg) -> Option<&str> {
    let swap: &SwapRecord = leg.of(record);
    let party = if leg == Leg::Source { &swap.initiator } else { &swap.redeemer };
    // The delegate is the key if the party is an address. In old records the party itself is the key. Accounts of other chains begin with
    // 0x or are not hex, so they cannot be mistaken for a key.
    [swap.delegate.as_deref(), Some(party.as_str())].into_iter().flatten().find_map(|text| {
        let digits = if text.len() == 66 { text.get(2..).unwrap_or_default() } else { text };
        (digits.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(digits)
    })
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    state: &'a Path,
    /// The number of orders that the service listed; with `--order`, only of those.
    listed: usize,
    /// Whether the service's list was read to its end.
    complete: bool,
    /// The number of indices that were searched.
    searched: u32,
    next_index: u32,
    restored: Vec<RestoredOrder>,
    not_restored: Vec<NotRestored>,
}

#[derive(Serialize)]
struct RestoredOrder {
    order_id: String,
    index: u32,
    secret: bool,
    keys: Vec<&'static str>,
}

#[derive(Serialize)]
struct NotRestored {
    order_id: String,
    reason: String,
}

impl Report<'_> {
    fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
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
            show::field("order", &format!("{}, index {}, {secret}{keys}", order.order_id, order.index))?;
        }
        for order in &self.not_restored {
            show::field("not restored", &text::escape_untrusted(&format!("{}: {}", order.order_id, order.reason)))?;
        }
        show::field("missing", "request and response of every order: the records are only the service's word, so check who is paid")?;
        Ok(show::field("next", "countersign orders")?)
    }
}
