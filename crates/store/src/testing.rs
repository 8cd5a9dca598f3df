//! A simulated disk in memory that loses what was not synced when the power is cut, for tests.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "only tests use this module")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use zeroize::Zeroizing;

use crate::disk::{Disk, Kind, LockGuard};

/// A disk in memory that models durability.
///
/// Every change is a step, and the power can be cut before any step ([`cut_after`](Self::cut_after)). From then on every call fails.
/// [`reboot`](Self::reboot) returns the disk as it is found afterwards. Synced bytes and names are present. Each creation, rename and
/// removal in a directory that was not synced may have happened or not. The content of a file that was not synced may be old, new,
/// truncated or partly filled with zeros.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    nodes: Vec<Node>,
    /// The identity of each node, which a power failure does not change.
    ids: Vec<u64>,
    next_id: u64,
    locked: BTreeSet<PathBuf>,
    steps: u64,
    cut_at: Option<u64>,
    fail_at: Option<u64>,
    lazy: bool,
}

#[derive(Debug)]
enum Node {
    File { bytes: Vec<u8>, synced: Vec<u8> },
    Directory { entries: BTreeMap<OsString, usize>, synced: BTreeMap<OsString, usize>, pending: Vec<Change> },
}

#[derive(Debug, Clone)]
enum Change {
    Link(OsString, usize),
    Rename(OsString, OsString, usize),
    Unlink(OsString),
}

impl Change {
    fn apply(self, entries: &mut BTreeMap<OsString, usize>) {
        match self {
            Self::Link(name, node) => {
                entries.insert(name, node);
            }
            Self::Rename(from, to, node) => {
                entries.remove(&from);
                entries.insert(to, node);
            }
            Self::Unlink(name) => {
                entries.remove(&name);
            }
        }
    }
}

impl Node {
    const fn directory() -> Self {
        Self::Directory { entries: BTreeMap::new(), synced: BTreeMap::new(), pending: Vec::new() }
    }
}

impl Default for State {
    fn default() -> Self {
        let (nodes, ids) = (vec![Node::directory()], vec![0]);
        Self { nodes, ids, next_id: 1, locked: BTreeSet::new(), steps: 0, cut_at: None, fail_at: None, lazy: false }
    }
}

impl MemoryDisk {
    /// Returns an empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a disk whose syncs do nothing, to prove that a test detects missing syncs.
    #[must_use]
    pub fn lazy() -> Self {
        let disk = Self::default();
        disk.state().lazy = true;
        disk
    }

    /// Cuts the power after this many more steps.
    pub fn cut_after(&self, steps: u64) {
        let mut state = self.state();
        state.cut_at = Some(state.steps + steps);
    }

    /// Switches the power on again with nothing lost and every lock released, as if only the process had been killed.
    pub fn revive(&self) {
        let mut state = self.state();
        state.cut_at = None;
        state.locked.clear();
    }

    /// Makes one step fail after this many more, like a full disk. If the step appends bytes, only a part of them is written.
    pub fn fail_after(&self, steps: u64) {
        let mut state = self.state();
        state.fail_at = Some(state.steps + steps);
    }

    /// Returns the number of steps taken so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.state().steps
    }

    /// Returns the disk as found after a power failure. The seed determines what happened to everything that was not synced.
    #[must_use]
    pub fn reboot(&self, seed: u64) -> Self {
        let state = self.state();
        let mut found = State { lazy: state.lazy, next_id: state.next_id, ..State::default() };
        let mut random = Random(seed);
        copy(&state, 0, &mut found, 0, &mut random);
        Self(Arc::new(Mutex::new(found)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds this")
    }
}

/// Copies what a power failure leaves of a directory.
fn copy(from: &State, directory: usize, to: &mut State, target: usize, random: &mut Random) {
    let Node::Directory { synced, pending, .. } = &from.nodes[directory] else { return };
    let mut left = synced.clone();
    for change in pending {
        if random.below(2) == 0 {
            change.clone().apply(&mut left);
        }
    }
    let mut copied = BTreeMap::new();
    for (name, node) in left {
        let new = to.nodes.len();
        copied.insert(name, new);
        to.ids.push(from.ids[node]);
        match &from.nodes[node] {
            Node::File { bytes, synced } => {
                let found = torn(bytes, synced, random);
                to.nodes.push(Node::File { bytes: found.clone(), synced: found });
            }
            Node::Directory { .. } => {
                to.nodes.push(Node::directory());
                copy(from, node, to, new, random);
            }
        }
    }
    to.nodes[target] = Node::Directory { entries: copied.clone(), synced: copied, pending: Vec::new() };
}

/// Returns the content that a power failure leaves of a file that was being changed from `synced` to `bytes`.
fn torn(bytes: &[u8], synced: &[u8], random: &mut Random) -> Vec<u8> {
    if bytes == synced {
        return bytes.to_vec();
    }
    let kept = if bytes.starts_with(synced) { synced.len() } else { 0 };
    let cut = kept + random.below(bytes.len() - kept + 1);
    let mut found = bytes.to_vec();
    match random.below(4) {
        0 => synced.to_vec(),
        1 => found,
        2 => {
            found.truncate(cut);
            found
        }
        // The new length and the last blocks were written, the blocks before were not.
        _ => {
            found[kept..cut].fill(0);
            found
        }
    }
}

/// SplitMix64, which gives the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(end).expect("a length")).expect("less than a length")
    }
}

impl State {
    fn on(&self) -> io::Result<()> {
        if self.cut_at.is_some_and(|cut| self.steps >= cut) { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    fn step(&mut self) -> io::Result<()> {
        self.on()?;
        self.steps += 1;
        if self.fail_at.is_some_and(|at| self.steps > at) {
            self.fail_at = None;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<Option<usize>> {
        let mut node = 0;
        for part in path.components().filter_map(name_of) {
            match &self.nodes[node] {
                Node::Directory { entries, .. } => match entries.get(part) {
                    Some(next) => node = *next,
                    None => return Ok(None),
                },
                Node::File { .. } => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Ok(Some(node))
    }

    fn need(&self, path: &Path) -> io::Result<usize> {
        self.find(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, directory: &Path, change: Change) -> io::Result<()> {
        let directory = self.need(directory)?;
        let Node::Directory { entries, pending, .. } = &mut self.nodes[directory] else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        pending.push(change.clone());
        change.apply(entries);
        Ok(())
    }

    fn link(&mut self, path: &Path, node: Node) -> io::Result<usize> {
        let (directory, name) = split(path)?;
        self.need(directory)?;
        self.step()?;
        self.nodes.push(node);
        self.ids.push(self.next_id);
        self.next_id += 1;
        let node = self.nodes.len() - 1;
        self.change(directory, Change::Link(name.to_owned(), node))?;
        Ok(node)
    }

    fn create_file(&mut self, path: &Path) -> io::Result<usize> {
        self.link(path, Node::File { bytes: Vec::new(), synced: Vec::new() })
    }

    /// Writes at the end of a file, then syncs it: two steps.
    fn extend(&mut self, node: usize, more: &[u8]) -> io::Result<()> {
        self.on()?;
        let written = self.step();
        let Node::File { bytes, .. } = &mut self.nodes[node] else { return Err(io::ErrorKind::IsADirectory.into()) };
        bytes.extend_from_slice(if written.is_ok() { more } else { &more[..more.len() / 2] });
        written?;
        self.step()?;
        let lazy = self.lazy;
        if let Node::File { bytes, synced } = &mut self.nodes[node]
            && !lazy
        {
            synced.clone_from(bytes);
        }
        Ok(())
    }
}

fn name_of(part: Component<'_>) -> Option<&OsStr> {
    if let Component::Normal(name) = part { Some(name) } else { None }
}

fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent().zip(path.file_name()).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

impl Disk for MemoryDisk {
    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        let state = self.state();
        state.on()?;
        Ok(state.find(path)?.map(|node| match &state.nodes[node] {
            Node::File { .. } => Kind::File,
            Node::Directory { .. } => Kind::Directory,
        }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let state = self.state();
        state.on()?;
        match &state.nodes[state.need(directory)?] {
            Node::Directory { entries, .. } => Ok(entries.keys().cloned().collect()),
            Node::File { .. } => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn read(&self, file: &Path, max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
        let state = self.state();
        state.on()?;
        match &state.nodes[state.need(file)?] {
            Node::File { bytes, .. } => Ok(Zeroizing::new(bytes[..bytes.len().min(max)].to_vec())),
            Node::Directory { .. } => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.find(directory)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.link(directory, Node::directory()).map(|_| ())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        let (node, lazy) = (state.need(directory)?, state.lazy);
        if let Node::Directory { entries, synced, pending } = &mut state.nodes[node]
            && !lazy
        {
            synced.clone_from(entries);
            pending.clear();
        }
        Ok(())
    }

    fn write_new(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if state.find(file)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = state.create_file(file)?;
        state.extend(node, bytes)
    }

    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let node = match state.find(file)? {
            Some(node) => node,
            None => state.create_file(file)?,
        };
        state.extend(node, bytes)
    }

    fn identity(&self, path: &Path) -> io::Result<String> {
        let state = self.state();
        state.on()?;
        Ok(state.ids[state.need(path)?].to_string())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.need(from)?;
        state.step()?;
        let ((directory, old), (other, new)) = (split(from)?, split(to)?);
        if directory != other {
            return Err(io::ErrorKind::Unsupported.into());
        }
        state.change(directory, Change::Rename(old.to_owned(), new.to_owned(), node))
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.need(file)?;
        state.step()?;
        let (directory, name) = split(file)?;
        state.change(directory, Change::Unlink(name.to_owned()))
    }

    fn lock(&self, file: &Path) -> io::Result<Option<LockGuard>> {
        let mut state = self.state();
        state.on()?;
        if state.find(file)?.is_none() {
            state.create_file(file)?;
        }
        if !state.locked.insert(file.to_owned()) {
            return Ok(None);
        }
        Ok(Some(Box::new(MemoryLock { disk: self.clone(), path: file.to_owned() })))
    }
}

struct MemoryLock {
    disk: MemoryDisk,
    path: PathBuf,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.path);
    }
}

#[cfg(test)]
mod power;
