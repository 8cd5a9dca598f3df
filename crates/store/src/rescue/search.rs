//! The search for the indices of orders in a rescue phrase, by their secret hashes and by the owner's public keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Branch, DeriveError, Rescue};
use crate::index::{BRANCHES, KeyIndex};

/// The maximum number of indices that are searched in a branch.
pub const MAX_INDICES: u32 = 100_000;
/// The number of branches between two reports of the progress.
const PROGRESS_INTERVAL: usize = 4_096;

/// The values of an order that may be derived from a rescue phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the three roles of a derivation path")]
pub struct OrderKeys {
    /// The SHA-256 hash of the order's secret.
    pub secret_hash: [u8; 32],
    /// The owner's x-only public key for refunds, on a Bitcoin-like source chain; `None` on other chains.
    pub refund_key: Option<[u8; 32]>,
    /// The owner's x-only public key for redemptions, on a Bitcoin-like destination chain; `None` on other chains.
    pub redeem_key: Option<[u8; 32]>,
}

/// How far to search.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a set of options")]
pub struct Extent {
    /// The number of unused indices in a row that end the search in branch 0, and in a branch with an order.
    pub look_ahead: u32,
    /// The number of unused indices that end the search in any other branch.
    pub branch_look_ahead: u32,
    /// The branches to search; empty for all.
    pub branches: Vec<u16>,
}

impl Extent {
    /// The default of [`look_ahead`](Self::look_ahead).
    pub const LOOK_AHEAD: u32 = 5_000;
    /// The default of [`branch_look_ahead`](Self::branch_look_ahead).
    pub const BRANCH_LOOK_AHEAD: u32 = 32;
}

impl Default for Extent {
    fn default() -> Self {
        Self { look_ahead: Self::LOOK_AHEAD, branch_look_ahead: Self::BRANCH_LOOK_AHEAD, branches: Vec::new() }
    }
}

/// An index that belongs to an order, and which of the order's values are derived with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundIndex {
    /// The index.
    pub at: KeyIndex,
    /// Whether the order's secret hash is that of this index.
    pub has_secret: bool,
    /// Whether the order's refund key is that of this index.
    pub has_refund_key: bool,
    /// Whether the order's redeem key is that of this index.
    pub has_redeem_key: bool,
}

/// Why an order has no index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// No value of the order was found.
    #[error("neither its secret hash nor its keys belong to this phrase")]
    NotFound,
    /// The order's values were found at several indices.
    #[error("its secret hash and its keys belong to different indices of the phrase")]
    Contradictory,
    /// Other orders have a value of the same index, although a secret belongs to one order.
    #[error("it has the same secret hash or key as {}", .0.join(", "))]
    Shared(Vec<String>),
}

/// The result of a search.
#[derive(Debug, Clone)]
pub struct Search {
    found: BTreeMap<String, Vec<FoundIndex>>,
    /// The orders that have a value of an index.
    orders: BTreeMap<KeyIndex, BTreeSet<String>>,
    branches: usize,
}

impl Search {
    /// Searches for the indices of orders, which are given by their ids.
    ///
    /// Branch 0, and every branch in which an order is found, is searched until [`Extent::look_ahead`] indices in a row match no order.
    /// Of the other branches, only the first indices are searched: first by hash, which costs about 25 microseconds for an index, and then
    /// by key, which costs twice as much, for orders whose hash is not of the phrase. The search ends early once every order is found.
    ///
    /// `progress` is called from time to time in a long search, with the number of branches that were searched and their total. The search
    /// uses every processor.
    ///
    /// # Errors
    ///
    /// [`DeriveError`], which happens for one index in 2^127.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use countersign_store::rescue::{Extent, OrderKeys, Phrase, Rescue, Search};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let phrase = Phrase::parse(
    ///     "legal winner thank year wave sausage worth useful legal winner thank yellow",
    /// )?;
    /// let rescue = Rescue::new(&phrase)?;
    /// let keys = OrderKeys {
    ///     secret_hash: rescue.branch(0)?.secret_hash(7)?,
    ///     refund_key: None,
    ///     redeem_key: None,
    /// };
    /// let orders = BTreeMap::from([("an order's id".to_owned(), keys)]);
    /// let extent = Extent { look_ahead: 10, branches: vec![0], ..Extent::default() };
    /// let search = Search::run(&rescue, &orders, &extent, &mut |_, _| {})?;
    /// assert_eq!(search.index_of("an order's id")?.at.index, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run(
        rescue: &Rescue,
        orders: &BTreeMap<String, OrderKeys>,
        extent: &Extent,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, DeriveError> {
        let mut run = Run { rescue, orders, extent, result: Self { found: BTreeMap::new(), orders: BTreeMap::new(), branches: 0 } };
        let every = Wanted::new(orders, |_| true);
        let is_given = |branch: &u16| extent.branches.is_empty() || extent.branches.contains(branch);
        let mut left: BTreeSet<u16> = (0..BRANCHES).filter_map(|branch| u16::try_from(branch).ok()).filter(is_given).collect();
        if left.remove(&0) {
            run.result.branches = 1;
            run.whole(0, &every, extent.look_ahead)?;
        }
        let others = run.others(&every, &mut left, Wanted::by_hash, progress)?;
        run.result.branches = run.result.branches.saturating_add(others);
        if run.missing().has_keys() {
            run.others(&every, &mut left, Wanted::by_key, progress)?;
        }
        Ok(run.result)
    }

    /// Returns the number of branches of which at least the first indices were searched.
    #[must_use]
    pub const fn branches(&self) -> usize {
        self.branches
    }

    /// Ignores the orders that are not the owner's when several have a value of one index: see [`IndexError::Shared`].
    pub fn retain(&mut self, is_own: impl Fn(&str) -> bool) {
        self.orders.values_mut().for_each(|ids| ids.retain(|id| is_own(id)));
    }

    /// Returns the index of an order.
    ///
    /// # Errors
    ///
    /// An [`IndexError`] if the order has no index, or if it is not certain that it is the order's own.
    pub fn index_of(&self, id: &str) -> Result<&FoundIndex, IndexError> {
        let found = match self.found.get(id).map(Vec::as_slice) {
            None | Some([]) => return Err(IndexError::NotFound),
            Some([found]) => found,
            Some(_) => return Err(IndexError::Contradictory),
        };
        let others: Vec<_> = self.orders.get(&found.at).into_iter().flatten().filter(|other| *other != id).cloned().collect();
        if others.is_empty() { Ok(found) } else { Err(IndexError::Shared(others)) }
    }

    fn add(&mut self, id: &str, at: KeyIndex, role: Role) {
        self.orders.entry(at).or_default().insert(id.to_owned());
        let found = self.found.entry(id.to_owned()).or_default();
        if found.iter().all(|one| one.at != at) {
            found.push(FoundIndex { at, has_secret: false, has_refund_key: false, has_redeem_key: false });
        }
        for one in found.iter_mut().filter(|one| one.at == at) {
            match role {
                Role::Secret => one.has_secret = true,
                Role::RefundKey => one.has_refund_key = true,
                Role::RedeemKey => one.has_redeem_key = true,
            }
        }
    }
}

/// Which value of an order was derived.
#[derive(Clone, Copy)]
enum Role {
    Secret,
    RefundKey,
    RedeemKey,
}

/// The values that are searched for, with the ids of their orders.
#[derive(Default)]
struct Wanted<'o> {
    hashes: BTreeMap<[u8; 32], Vec<&'o str>>,
    refund_keys: BTreeMap<[u8; 32], Vec<&'o str>>,
    redeem_keys: BTreeMap<[u8; 32], Vec<&'o str>>,
}

/// The orders that have a derived value.
type Matches<'o> = Vec<(&'o str, Role)>;

impl<'o> Wanted<'o> {
    /// Collects the values of the orders that `is_wanted` selects.
    fn new(orders: &'o BTreeMap<String, OrderKeys>, is_wanted: impl Fn(&str) -> bool) -> Self {
        let mut wanted = Self::default();
        for (id, keys) in orders.iter().filter(|(id, _)| is_wanted(id)) {
            wanted.hashes.entry(keys.secret_hash).or_default().push(id);
            for (key, all) in [(keys.refund_key, &mut wanted.refund_keys), (keys.redeem_key, &mut wanted.redeem_keys)] {
                if let Some(key) = key {
                    all.entry(key).or_default().push(id);
                }
            }
        }
        wanted
    }

    fn has_keys(&self) -> bool {
        !self.refund_keys.is_empty() || !self.redeem_keys.is_empty()
    }

    fn by_hash(&self, branch: &Branch, index: u32) -> Result<Matches<'o>, DeriveError> {
        Ok(matches(&self.hashes, branch.secret_hash(index)?, Role::Secret).collect())
    }

    fn by_key(&self, branch: &Branch, index: u32) -> Result<Matches<'o>, DeriveError> {
        let mut found = Vec::new();
        if !self.refund_keys.is_empty() {
            found.extend(matches(&self.refund_keys, branch.refund_key(index)?.public_key, Role::RefundKey));
        }
        if !self.redeem_keys.is_empty() {
            found.extend(matches(&self.redeem_keys, branch.redeem_key(index)?.public_key, Role::RedeemKey));
        }
        Ok(found)
    }
}

fn matches<'o>(wanted: &BTreeMap<[u8; 32], Vec<&'o str>>, value: [u8; 32], role: Role) -> impl Iterator<Item = (&'o str, Role)> {
    wanted.get(&value).into_iter().flatten().map(move |id| (*id, role))
}

/// A search under way.
struct Run<'s> {
    rescue: &'s Rescue,
    orders: &'s BTreeMap<String, OrderKeys>,
    extent: &'s Extent,
    result: Search,
}

impl<'s> Run<'s> {
    /// Returns the values of the orders of which nothing was found.
    fn missing(&self) -> Wanted<'s> {
        Wanted::new(self.orders, |id| !self.result.found.contains_key(id))
    }

    /// Searches a branch until `ahead` indices after the first one, and `look_ahead` after the last match, match no order.
    fn whole(&mut self, number: u16, wanted: &Wanted<'_>, ahead: u32) -> Result<(), DeriveError> {
        if self.orders.is_empty() {
            return Ok(());
        }
        let branch = self.rescue.branch(number)?;
        let (mut index, mut end) = (0_u32, ahead.min(MAX_INDICES));
        while index < end {
            for (id, role) in wanted.by_hash(&branch, index)?.into_iter().chain(wanted.by_key(&branch, index)?) {
                self.result.add(id, KeyIndex { branch: number, index }, role);
                end = index.saturating_add(1).saturating_add(self.extent.look_ahead).min(MAX_INDICES);
            }
            index = index.saturating_add(1);
        }
        Ok(())
    }

    /// Searches the first indices of the branches in `left` with `look`, and then those branches whole in which it finds an order. Ends
    /// when every order is found. A branch that was searched whole is removed from `left`. Returns the number of branches.
    fn others(
        &mut self,
        every: &Wanted<'_>,
        left: &mut BTreeSet<u16>,
        look: impl Fn(&Wanted<'s>, &Branch, u32) -> Result<Matches<'s>, DeriveError> + Sync,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<usize, DeriveError> {
        let branches: Vec<u16> = left.iter().copied().collect();
        let (rescue, first) = (self.rescue, self.extent.branch_look_ahead);
        let mut searched = 0_usize;
        for block in branches.chunks(PROGRESS_INTERVAL) {
            let missing = self.missing();
            if missing.hashes.is_empty() {
                break;
            }
            let is_hit = |number: u16| -> Result<bool, DeriveError> {
                let branch = rescue.branch(number)?;
                for index in 0..first {
                    if !look(&missing, &branch, index)?.is_empty() {
                        return Ok(true);
                    }
                }
                Ok(false)
            };
            for number in hits(block, is_hit)? {
                left.remove(&number);
                self.whole(number, every, first)?;
            }
            searched = searched.saturating_add(block.len());
            if branches.len() > PROGRESS_INTERVAL {
                progress(searched, branches.len());
            }
        }
        Ok(searched)
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
