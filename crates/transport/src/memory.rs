//! What is remembered about endpoints between readings.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_core::reader::{Known, Remembered};

/// The maximum number of observations that are kept for one endpoint. They are dropped when there are more.
const MAX_OBSERVATIONS: usize = 4_096;

/// What is remembered about endpoints between readings. Keep one for all chains, as long as the connections.
///
/// It makes readings cheaper and notices endpoints that fall behind. Nothing depends on it for safety.
#[derive(Default)]
pub struct Memory {
    endpoints: Mutex<HashMap<(String, String), EndpointMemory>>,
}

#[derive(Default)]
struct EndpointMemory {
    known: Known,
    observations: HashMap<(TypeId, Vec<u8>), Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory(..)")
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), EndpointMemory>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the heights and facts that an endpoint has shown.
    #[must_use]
    pub fn known(&self, chain: &str, endpoint: &str) -> Known {
        self.lock().get(&key(chain, endpoint)).map(|memory| memory.known.clone()).unwrap_or_default()
    }

    /// Adds what an endpoint has shown. Call it only for observations that the quorum agrees with, or with
    /// [`Known::progress_only`].
    pub fn learn(&self, chain: &str, endpoint: &str, known: &Known) {
        self.lock().entry(key(chain, endpoint)).or_default().known.learn(known);
    }

    pub(crate) fn observation<O: Remembered>(&self, chain: &str, endpoint: &str, stamp: &[u8]) -> Option<O> {
        let endpoints = self.lock();
        let observations = &endpoints.get(&key(chain, endpoint))?.observations;
        observations.get(&(TypeId::of::<O>(), stamp.to_vec()))?.downcast_ref::<O>().cloned()
    }

    pub(crate) fn keep<O: Remembered>(&self, chain: &str, endpoint: &str, observation: &O) {
        let Some(stamp) = observation.stamp() else { return };
        self.insert(chain, endpoint, (TypeId::of::<O>(), stamp.to_vec()), Box::new(observation.clone()));
    }

    fn insert(&self, chain: &str, endpoint: &str, stamp: (TypeId, Vec<u8>), observation: Box<dyn Any + Send + Sync>) {
        let mut endpoints = self.lock();
        let observations = &mut endpoints.entry(key(chain, endpoint)).or_default().observations;
        if observations.len() >= MAX_OBSERVATIONS {
            observations.clear();
        }
        observations.insert(stamp, observation);
    }
}

fn key(chain: &str, endpoint: &str) -> (String, String) {
    (chain.to_owned(), endpoint.to_owned())
}
