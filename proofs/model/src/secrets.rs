//! Searches for two orders with the same secret. It runs the real store, phrase, order creation and service list in
//! every order of events.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_client::countersign::{OrderRecord, Policy, Registry, SecretHash, chains::UnixTime};
use countersign_client::driver::{Driver, NewOrder, NoChains, NoOwner, OrderStore as _};
use countersign_client::rescue::Missing;
use countersign_client::restore::Restoration;
use countersign_client::{Api, Client, Flow, Request, Response, Transport, TransportError};
use countersign_store::disk::Disk as _;
use countersign_store::rescue::{Extent, Phrase, Rescue};
use countersign_store::testing::MemoryDisk;
use countersign_store::{KeyIndex, Store};
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::setup::{body, lock};
use crate::support::{Fixture, registry_text};

const ROOT: &str = "/state";
pub const DEPTH: usize = 8;
pub const ONE_SECRET: &str = "no two orders have one secret";

/// An action of the owner on a state directory, or of a process with an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// A process marks the next index as used.
    TakesIndex,
    /// The process with the oldest index creates an order. Before it signs, it asks the service for others with the
    /// same secret.
    Creates,
    /// The same, while the service hides all other orders.
    CreatesUnseen,
    /// The directory is copied file by file.
    CopiesFiles,
    /// The whole file system is copied, which no file shows.
    CopiesDisk,
    /// The owner continues in the other directory. Either a copy is restored, or both are in use.
    Switches,
    /// The owner restores the service's listed orders from the phrase.
    Restores,
}

use Deed::{CopiesDisk, CopiesFiles, Creates, CreatesUnseen, Restores, Switches, TakesIndex};

/// A sequence of actions so far.
#[derive(Default)]
struct World {
    disk: MemoryDisk,
    other: Option<MemoryDisk>,
    /// Whether the two directories are copies that nothing reveals.
    is_snapshot: bool,
    taken: Vec<KeyIndex>,
    /// The hashes of the orders that the service has, and of those that would be signed.
    orders: Vec<SecretHash>,
    signed: Vec<SecretHash>,
    is_broken: bool,
}

impl Clone for World {
    fn clone(&self) -> Self {
        // All writes are synced, so a restart finds the same contents.
        let (disk, other) = (self.disk.reboot(0), self.other.as_ref().map(|disk| disk.reboot(0)));
        Self { disk, other, taken: self.taken.clone(), orders: self.orders.clone(), signed: self.signed.clone(), ..*self }
    }
}

/// The constants of a search, and the service: the hashes that it has, and whether it hides them.
pub struct Office {
    fixture: Fixture,
    registry: Arc<Registry>,
    phrase: Phrase,
    rescue: Rescue,
    service: Mutex<(Vec<SecretHash>, bool)>,
}

fn open(disk: &MemoryDisk) -> Store {
    Store::open_on(Arc::new(disk.clone()), Path::new(ROOT)).unwrap()
}

impl Office {
    pub fn new() -> Self {
        let phrase = Phrase::parse("legal winner thank year wave sausage worth useful legal winner thank yellow").unwrap();
        let mut fixture = Fixture::load("evm-record-evm-v2");
        fixture.request.as_object_mut().unwrap().remove("secret_hash");
        let registry = Arc::new(Registry::from_json(registry_text().as_bytes()).unwrap());
        Self { fixture, registry, rescue: Rescue::new(&phrase).unwrap(), phrase, service: Mutex::default() }
    }

    fn first(&self) -> World {
        let world = World::default();
        open(&world.disk).keep_phrase(&self.phrase).unwrap();
        world
    }

    /// Returns the records of the orders with these hashes, by their ids.
    fn records(&self, hashes: &[SecretHash]) -> BTreeMap<String, Value> {
        let record = |(number, hash): (usize, &SecretHash)| {
            let mut record = self.fixture.with_secret_hash(&hash.to_string()).order;
            record["order_id"] = json!(format!("{number:064x}"));
            (format!("{number:064x}"), record)
        };
        hashes.iter().enumerate().map(record).collect()
    }

    /// Creates an order as a wallet does. Returns whether it would be signed.
    fn create(&self, store: &Store, at: KeyIndex) -> bool {
        let mut request = self.fixture.create();
        let secret = Missing::of(&request, &self.registry, false).derive(&mut request, &self.rescue, at).unwrap();
        let client = Client::new(Api::new("https://service.example", None).unwrap(), self);
        let driver = Driver::new(Flow::new(client, Arc::clone(&self.registry), Policy::default()), NoChains, store, NoOwner);
        let order = NewOrder { index: Some(at.index), branch: at.branch, ..NewOrder::new(request, secret) };
        let Ok(id) = driver.create(order).now_or_never().unwrap() else { return false };
        let swap = store.load(&id).now_or_never().unwrap().unwrap().swap;
        let other = driver.flow().client().other_with_secret_of(&swap).now_or_never().unwrap().unwrap();
        if other.is_some() {
            store.start_branch().unwrap();
        }
        other.is_none()
    }

    /// Returns the result of an action, or `None` if it is not possible now.
    fn after(&self, world: &World, deed: Deed) -> Option<World> {
        let mut next = world.clone();
        let store = open(&next.disk);
        match deed {
            TakesIndex if world.taken.len() < 2 => next.taken.push(store.take_index().unwrap()),
            Creates | CreatesUnseen if !world.taken.is_empty() && world.orders.len() < 3 => {
                *lock(&self.service) = (world.orders.clone(), deed == CreatesUnseen);
                let is_signed = self.create(&store, next.taken.remove(0));
                next.orders.clone_from(&lock(&self.service).0);
                if let Some(hash) = next.orders.last().filter(|_| is_signed) {
                    // If a store cannot tell two directories apart, only the list shows the other directory's order.
                    let is_excused = deed == CreatesUnseen && world.is_snapshot;
                    next.is_broken = next.signed.contains(hash) && !is_excused;
                    next.signed.push(*hash);
                }
            }
            CopiesFiles | CopiesDisk if world.other.is_none() => {
                let (other, file) = (next.disk.reboot(0), Path::new(ROOT).join("index"));
                if deed == CopiesFiles {
                    let bytes = other.read(&file, 100).unwrap();
                    other.remove(&file).unwrap();
                    other.write_new(&file, &bytes).unwrap();
                }
                (next.other, next.is_snapshot) = (Some(other), deed == CopiesDisk);
            }
            Switches => {
                let other = next.other.take()?;
                next.other = Some(std::mem::replace(&mut next.disk, other));
            }
            Restores if !world.orders.is_empty() => {
                let read = |(id, record): (String, Value)| (id, OrderRecord::from_json(record.to_string().as_bytes()).unwrap());
                let listed = self.records(&world.orders).into_iter().map(read).collect();
                let extent = Extent { look_ahead: 3, branches: vec![0], ..Extent::default() };
                Restoration::search(&self.phrase, &listed, &extent, &mut |_, _| {}).unwrap().restore(&store).unwrap();
            }
            _ => return None,
        }
        next.is_broken |= shares(&open(&next.disk));
        Some(next)
    }

    /// Tries every sequence of actions, shortest first. Returns their number, and the first one that breaks the rule.
    pub fn search(&self) -> (usize, Option<Vec<Deed>>) {
        let (mut count, mut worlds) = (0, vec![(self.first(), Vec::<Deed>::new())]);
        for _ in 0..DEPTH {
            let mut next = Vec::new();
            for (world, done) in &worlds {
                let is_new = |deed: &Deed| !matches!(deed, Switches | Restores) || done.last() != Some(deed);
                let all = [TakesIndex, Creates, CreatesUnseen, CopiesFiles, CopiesDisk, Switches, Restores];
                for deed in all.into_iter().filter(is_new) {
                    let Some(after) = self.after(world, deed) else { continue };
                    next.push((after, [&done[..], &[deed]].concat()));
                    count += 1;
                    // Two random branches are equal once in 65,535 times.
                    if next.last().is_some_and(|(after, done)| after.is_broken && self.replay(done)) {
                        return (count, next.pop().map(|(_, done)| done));
                    }
                }
            }
            worlds = next;
        }
        (count, None)
    }

    /// Returns whether a sequence of actions breaks the rule.
    pub fn replay(&self, deeds: &[Deed]) -> bool {
        deeds.iter().try_fold(self.first(), |world, deed| self.after(&world, *deed).filter(|next| !next.is_broken)).is_none()
    }
}

/// Returns whether two orders in one directory have the same secret.
fn shares(store: &Store) -> bool {
    let secret = |id: &String| store.open_order(id).unwrap().read("secret").unwrap();
    let secrets: Vec<_> = store.order_ids().unwrap().iter().map(secret).collect();
    (1..secrets.len()).any(|place| secrets[..place].contains(&secrets[place]))
}

impl Transport for &Office {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let (orders, is_hiding) = &mut *lock(&self.service);
        if request.method.name() == "POST" {
            let sent: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
            let id = format!("{:064x}", orders.len());
            orders.push(sent["secret_hash"].as_str().unwrap().parse().unwrap());
            return Ok(Response::new(200, self.fixture.response.to_string().replace(self.fixture.order_id(), &id)));
        }
        let hidden = if *is_hiding { orders.len() - 1 } else { 0 };
        let records: Vec<_> = self.records(orders).into_values().skip(hidden).collect();
        Ok(Response::new(200, body(&json!({"data": records, "page": 1, "total_pages": 1, "total_items": 3, "per_page": 9}))))
    }

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.fixture.created())
    }
}
