//! The directory that holds what the program needs to swap: its configuration, registry, endpoints, key and
//! addresses.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::accounts;
use crate::chains::Engine;
use crate::http::put;
use crate::world::World;

/// A directory for all files.
#[derive(Debug)]
pub struct Home {
    directory: PathBuf,
}

impl Home {
    /// Creates the directory, readable only by its owner.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created.
    pub fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        }
        Ok(Self { directory: directory.canonicalize()? })
    }

    /// Returns the path of a file in the directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes the files for the user with a role. `service` and `chains` hold the URLs of the service and of each
    /// chain's nodes.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written.
    pub fn write(&self, world: &World, role: &str, service: &str, chains: &[(String, String)]) -> io::Result<()> {
        let key = accounts::key(role);
        self.put("key.txt", &format!("{}\n", hex::encode(key)))?;
        let mut key_files = Map::new();
        for (name, chain) in &world.chains {
            if let Some(text) = chain.engine().key_text(&key) {
                let file = format!("key-{name}.txt");
                self.put(&file, &format!("{text}\n"))?;
                key_files.insert(name.clone(), json!(file));
            }
        }
        self.put("registry.json", &pretty(&registry(world)))?;
        // The three endpoints have one address, but count as three providers.
        let endpoint = |url: &str, name: &str| json!({ "url": format!("{url}/{name}"), "provider": name });
        let nodes: Map<String, Value> =
            chains.iter().map(|(name, url)| (name.clone(), ["a", "b", "c"].iter().map(|one| endpoint(url, one)).collect())).collect();
        self.put("nodes.json", &pretty(&Value::Object(nodes)))?;
        let owners: Map<String, Value> =
            world.chains.iter().map(|(name, chain)| (name.clone(), json!(chain.engine().address_of(&key)))).collect();
        let config = json!({
            "base_url": service, "app_id": "sandbox", "registry": "registry.json", "nodes": "nodes.json", "state": "state",
            "key_file": "key.txt", "redeem_key_file": "key.txt", "key_files": key_files, "owners": owners,
        });
        self.put("config.json", &pretty(&config))
    }

    fn put(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.path(name);
        // Written to a temporary file and then renamed, so that a program that starts meanwhile never reads half a
        // file.
        let beside = self.path(&format!(".{name}.new"));
        fs::write(&beside, text)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&beside, fs::Permissions::from_mode(0o600))?;
        }
        fs::rename(beside, path)
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Returns the registry that a wallet pins: the service's lists, with minimum block times. The sandbox never makes
/// blocks faster than listed, unlike the networks it imitates.
#[must_use]
pub fn registry(world: &World) -> Value {
    let assets: Vec<_> = world.chains.values().flat_map(|chain| chain.listing.assets.iter().cloned()).collect();
    let chains: Vec<_> = world.chains.values().map(|chain| pinned(chain.engine().as_ref())).collect();
    let solvers: Vec<_> = world
        .chains
        .iter()
        .map(|(name, chain)| {
            let ids = chain.listing.assets.iter().filter_map(|asset| asset.get("id"));
            let balances: Vec<_> = ids.map(|id| json!({ "asset": id, "balance": "1", "virtual_balance": "1" })).collect();
            json!({ "solver_id": world.solver(), "chain": name, "address": chain.listing.solver, "assets": balances })
        })
        .collect();
    json!({ "chains": chains, "assets": assets, "solvers": solvers })
}

/// Returns a chain as a wallet pins it: the service's listing, plus the time between blocks if timelocks are in blocks.
#[must_use]
pub fn pinned(engine: &dyn Engine) -> Value {
    let mut listed = engine.listing().chain;
    let Some(millis) = engine.pinned_interval() else { return listed };
    let seconds = json!(f64::from(u32::try_from(millis).unwrap_or(u32::MAX)) / 1_000.0);
    put(&mut listed, "block_time", seconds.clone());
    put(&mut listed, "min_block_time", seconds);
    listed
}
