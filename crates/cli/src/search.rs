//! The search for the indices of orders in a rescue phrase, by their secret hashes and by the owner's public keys.
//!
//! Branch 0 and every branch in which an order is found are searched until a number of indices in a row match no order. Of the other
//! branches, only the first indices are searched: first by hash, which costs about 25 microseconds for an index, and then by key, which
//! costs twice as much, for orders whose hash does not belong to the phrase.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::OrderRecord;
use countersign::recover::Leg;
use countersign::wire::SwapRecord;
use countersign_store::rescue::{Branch, DeriveError, Rescue};
use countersign_store::{BRANCHES, KeyIndex};

use crate::input::{Failure, usage};
use crate::show;

/// The maximum number of indices that are searched in a branch.
pub(crate) const MAX_INDICES: u32 = 100_000;
/// The number of branches between two reports of the progress.
const PROGRESS_INTERVAL: usize = 4_096;

/// How far to search.
pub(crate) struct Extent<'a> {
    /// The number of unused indices that end the search in branch 0 and in a branch with an order.
    pub(crate) look_ahead: u32,
    /// The number of unused indices that end the search in any other branch.
    pub(crate) first: u32,
    /// The branches to search; empty for all.
    pub(crate) branches: &'a [u16],
}

/// An index that belongs to an order.
pub(crate) struct Found {
    pub(crate) at: KeyIndex,
    /// Whether the order's secret hash was derived, not only a key.
    pub(crate) by_hash: bool,
    /// The legs whose keys were derived.
    pub(crate) keys: Vec<&'static str>,
}

/// What is searched for.
#[derive(Default)]
struct Wanted<'r> {
    hashes: BTreeMap<[u8; 32], Vec<&'r String>>,
    refund_keys: BTreeMap<String, Vec<&'r String>>,
    redeem_keys: BTreeMap<String, Vec<&'r String>>,
}

/// What a derived value belongs to.
type Match<'r> = (&'r String, Option<&'static str>);

impl<'r> Wanted<'r> {
    /// Collects the hashes and keys of the orders that `is_wanted` selects.
    fn new(orders: &'r BTreeMap<String, OrderRecord>, is_wanted: impl Fn(&str) -> bool) -> Self {
        let mut wanted = Self::default();
        for (id, record) in orders.iter().filter(|(id, _)| is_wanted(id)) {
            wanted.hashes.entry(record.source_swap.secret_hash.0).or_default().push(id);
            for (leg, keys) in [(Leg::Source, &mut wanted.refund_keys), (Leg::Destination, &mut wanted.redeem_keys)] {
                if let Some(key) = owner_key(record, leg) {
                    keys.entry(key.to_ascii_lowercase()).or_default().push(id);
                }
            }
        }
        wanted
    }

    fn has_keys(&self) -> bool {
        !self.refund_keys.is_empty() || !self.redeem_keys.is_empty()
    }

    fn by_hash(&self, branch: &Branch<'_>, index: u32) -> Result<Vec<Match<'r>>, DeriveError> {
        let hash = branch.secret_hash(index)?;
        Ok(self.hashes.get(&hash).into_iter().flatten().map(|id| (*id, None)).collect())
    }

    fn by_key(&self, branch: &Branch<'_>, index: u32) -> Result<Vec<Match<'r>>, DeriveError> {
        let mut matches = Vec::new();
        if !self.refund_keys.is_empty() {
            let key = branch.refund_key(index)?.public_key();
            matches.extend(self.refund_keys.get(&key).into_iter().flatten().map(|id| (*id, Some("source"))));
        }
        if !self.redeem_keys.is_empty() {
            let key = branch.redeem_key(index)?.public_key();
            matches.extend(self.redeem_keys.get(&key).into_iter().flatten().map(|id| (*id, Some("destination"))));
        }
        Ok(matches)
    }

    fn by_any(&self, branch: &Branch<'_>, index: u32) -> Result<Vec<Match<'r>>, DeriveError> {
        let mut matches = self.by_hash(branch, index)?;
        matches.extend(self.by_key(branch, index)?);
        Ok(matches)
    }
}

/// The result of a search.
pub(crate) struct Search<'r> {
    orders: &'r BTreeMap<String, OrderRecord>,
    found: BTreeMap<String, Vec<Found>>,
    /// The orders that claim an index.
    claims: BTreeMap<KeyIndex, BTreeSet<String>>,
    /// The number of branches of which at least the first indices were searched.
    pub(crate) branches: usize,
}

impl<'r> Search<'r> {
    pub(crate) fn run(rescue: &Rescue, orders: &'r BTreeMap<String, OrderRecord>, extent: &Extent<'_>) -> Result<Self, Failure> {
        let mut search = Self { orders, found: BTreeMap::new(), claims: BTreeMap::new(), branches: 0 };
        let every = Wanted::new(orders, |_| true);
        let is_given = |branch: &u16| extent.branches.is_empty() || extent.branches.contains(branch);
        let mut left: BTreeSet<u16> = (0..BRANCHES).filter_map(|branch| u16::try_from(branch).ok()).filter(is_given).collect();
        if left.remove(&0) {
            search.branches = 1;
            search.whole(rescue, 0, &every, extent.look_ahead, extent)?;
        }
        let others = search.others(rescue, &every, &mut left, Wanted::by_hash, extent)?;
        search.branches = search.branches.saturating_add(others);
        let missing = Wanted::new(orders, |id| !search.found.contains_key(id));
        if missing.has_keys() {
            search.others(rescue, &every, &mut left, Wanted::by_key, extent)?;
        }
        Ok(search)
    }

    /// Searches a branch until `ahead` indices after the first one, and `look_ahead` after the last match, match no order.
    fn whole(&mut self, rescue: &Rescue, number: u16, wanted: &Wanted<'r>, ahead: u32, extent: &Extent<'_>) -> Result<(), Failure> {
        if self.orders.is_empty() {
            return Ok(());
        }
        let branch = rescue.branch(number).map_err(usage)?;
        let (mut index, mut end) = (0_u32, ahead.min(MAX_INDICES));
        while index < end {
            for (id, leg) in wanted.by_any(&branch, index).map_err(usage)? {
                self.claim(id, KeyIndex { branch: number, index }, leg);
                end = index.saturating_add(1).saturating_add(extent.look_ahead).min(MAX_INDICES);
            }
            index = index.saturating_add(1);
        }
        Ok(())
    }

    /// Searches the first indices of the branches in `left` with `look`, and then those branches whole in which it finds an order. Ends
    /// when every order is found. A branch that was searched whole is removed from `left`. Returns the number of branches.
    fn others(
        &mut self,
        rescue: &Rescue,
        every: &Wanted<'r>,
        left: &mut BTreeSet<u16>,
        look: impl Fn(&Wanted<'r>, &Branch<'_>, u32) -> Result<Vec<Match<'r>>, DeriveError> + Sync,
        extent: &Extent<'_>,
    ) -> Result<usize, Failure> {
        let branches: Vec<u16> = left.iter().copied().collect();
        let mut searched = 0_usize;
        for block in branches.chunks(PROGRESS_INTERVAL) {
            let orders = self.orders;
            let missing = Wanted::new(orders, |id| !self.found.contains_key(id));
            if missing.hashes.is_empty() {
                break;
            }
            let is_hit = |number: u16| -> Result<bool, DeriveError> {
                let branch = rescue.branch(number)?;
                for index in 0..extent.first {
                    if !look(&missing, &branch, index)?.is_empty() {
                        return Ok(true);
                    }
                }
                Ok(false)
            };
            for number in hits(block, is_hit).map_err(usage)? {
                left.remove(&number);
                self.whole(rescue, number, every, extent.first, extent)?;
            }
            searched = searched.saturating_add(block.len());
            if branches.len() > PROGRESS_INTERVAL {
                show::progress(&format!("{searched} of {} branches of the rescue phrase searched", branches.len()));
            }
        }
        Ok(searched)
    }

    /// Records that an index belongs to an order, by its secret hash (`leg` is `None`) or by the key of a leg.
    fn claim(&mut self, id: &str, at: KeyIndex, leg: Option<&'static str>) {
        self.claims.entry(at).or_default().insert(id.to_owned());
        let found = self.found.entry(id.to_owned()).or_default();
        let one = match found.iter().position(|one| one.at == at) {
            Some(position) => found.get_mut(position),
            None => {
                found.push(Found { at, by_hash: false, keys: Vec::new() });
                found.last_mut()
            }
        };
        if let Some(one) = one {
            one.by_hash |= leg.is_none();
            one.keys.extend(leg);
        }
    }

    /// Ignores the orders that the user did not ask for when several claim one index.
    pub(crate) fn keep_claims(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.claims.values_mut().for_each(|ids| ids.retain(|id| is_wanted(id)));
    }

    /// Returns the index of an order, or why the order cannot be restored.
    pub(crate) fn index_of(&self, id: &str) -> Result<&Found, String> {
        let found = match self.found.get(id).map(Vec::as_slice) {
            None | Some([]) => return Err("neither its secret hash nor its keys belong to this phrase".to_owned()),
            Some([found]) => found,
            Some(_) => return Err("its secret hash and its keys belong to different indices of the phrase".to_owned()),
        };
        let others = self.claims.get(&found.at).into_iter().flatten().filter(|other| *other != id);
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

/// Returns the branches for which `is_hit` is true, sorted. Uses every processor.
fn hits(branches: &[u16], is_hit: impl Fn(u16) -> Result<bool, DeriveError> + Sync) -> Result<Vec<u16>, DeriveError> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<u16>, DeriveError> {
        let mut hits = Vec::new();
        while let Some(number) = branches.get(next.fetch_add(1, Ordering::Relaxed)) {
            if is_hit(*number)? {
                hits.push(*number);
            }
        }
        Ok(hits)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut hits = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // A worker does not panic; if it did, its branches would be missing, which must not go unnoticed.
        let parts: Result<Vec<_>, _> = workers.into_iter().map(|worker| worker.join().unwrap_or(Err(DeriveError))).collect();
        Ok(parts?.concat())
    })?;
    hits.sort_unstable();
    Ok(hits)
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
