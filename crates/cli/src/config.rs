//! The user's configuration file: defaults for values that neither an argument nor an environment variable sets.

use std::collections::BTreeMap;
use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use countersign::json::{self, Cursor};
use countersign::{AssetId, Code, Refusal};
use etcetera::BaseStrategy;
use zeroize::Zeroizing;

use crate::failure::{Failure, usage};
use crate::own;

const MEMBERS: [&str; 11] =
    ["app_id", "app_id_file", "base_url", "key_file", "key_files", "nodes", "owners", "policy", "redeem_key_file", "registry", "state"];
/// The variable that names another configuration file.
const FILE: &str = "COUNTERSIGN_CONFIG";

/// The members of the configuration file, all optional. Relative paths are relative to the file's directory; `~/` is the home directory.
///
/// ```json
/// {"base_url": "https://..", "app_id_file": "app-id.txt", "registry": "registry.json", "policy": "policy.json",
///  "state": "~/swaps", "nodes": "nodes.json", "key_file": "key.txt", "key_files": {"solana": "solana.txt"}, "owners": {"ethereum": "0x..", "bitcoin": "bc1.."}}
/// ```
#[derive(Default)]
pub(crate) struct Config {
    pub(crate) base_url: Option<String>,
    pub(crate) app_id: Option<Zeroizing<String>>,
    pub(crate) app_id_file: Option<PathBuf>,
    pub(crate) registry: Option<PathBuf>,
    pub(crate) policy: Option<PathBuf>,
    pub(crate) state: Option<PathBuf>,
    key_file: Option<PathBuf>,
    /// The files with the keys of chains, by the chain name of asset ids.
    key_files: BTreeMap<String, PathBuf>,
    /// The file with the key that sends redemptions on the destination chain.
    redeem_key_file: Option<PathBuf>,
    /// The file with the endpoints of each chain.
    pub(crate) nodes: Option<PathBuf>,
    /// The user's address on each chain, by the chain name of asset ids.
    owners: BTreeMap<String, String>,
}

impl Config {
    /// Returns the path of the file: `COUNTERSIGN_CONFIG`, or the usual place; `None` if the user has no home directory.
    pub(crate) fn path() -> Option<PathBuf> {
        if let Some(path) = env::var_os(FILE).filter(|path| !path.is_empty()) {
            return Some(path.into());
        }
        etcetera::choose_base_strategy().ok().map(|directories| directories.config_dir().join("countersign").join("config.json"))
    }

    /// Reads the file, or returns the defaults if it does not exist. A file that cannot be read is an error, because its values could
    /// differ from the defaults.
    pub(crate) fn read() -> Result<Self, Failure> {
        let (Ok(directories), Some(path)) = (etcetera::choose_base_strategy(), Self::path()) else { return Ok(Self::default()) };
        let directory = path.parent().unwrap_or(&path).to_owned();
        match path.symlink_metadata() {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound && env::var_os(FILE).is_none_or(|path| path.is_empty()) => {
                return Ok(Self::default());
            }
            Err(error) => return Err(usage(format_args!("{}: {error}", path.display()))),
        }
        let paths = Paths { home: directories.home_dir(), directory: &directory };
        own::parse(&path, |text| Self::parse(text, &paths))
    }

    fn parse(bytes: &[u8], paths: &Paths<'_>) -> Result<Self, Refusal> {
        let value = json::parse(bytes)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        members.only(&MEMBERS)?;
        let text = |name| members.get(name).map(|node| node.text().map(str::to_owned)).transpose();
        let path = |name| Ok::<_, Refusal>(text(name)?.map(|text| paths.resolve(&text)));
        Ok(Self {
            base_url: text("base_url")?,
            app_id: members.get("app_id").map(|node| node.secret().map(|id| Zeroizing::new(id.to_owned()))).transpose()?,
            app_id_file: path("app_id_file")?,
            registry: path("registry")?,
            policy: path("policy")?,
            state: path("state")?,
            key_file: path("key_file")?,
            key_files: members
                .get("key_files")
                .map(|node| by_chain(&node))
                .transpose()?
                .unwrap_or_default()
                .into_iter()
                .map(|(chain, file)| (chain, paths.resolve(&file)))
                .collect(),
            redeem_key_file: path("redeem_key_file")?,
            nodes: path("nodes")?,
            owners: members.get("owners").map(|node| by_chain(&node)).transpose()?.unwrap_or_default(),
        })
    }

    /// Returns the user's address on the chain of an asset; `None` if the file has none.
    pub(crate) fn owner(&self, asset: &AssetId) -> Option<&str> {
        self.owners.get(asset.chain()).map(String::as_str)
    }

    /// Returns the file with the key that pays on a chain; without a chain, the one for all.
    pub(crate) fn key_file(&self, chain: Option<&str>) -> Option<&Path> {
        chain.and_then(|chain| self.key_files.get(chain)).or(self.key_file.as_ref()).map(PathBuf::as_path)
    }

    /// Returns the file with the key that redeems on a chain.
    pub(crate) fn redeem_key_file(&self, chain: Option<&str>) -> Option<&Path> {
        chain.and_then(|chain| self.key_files.get(chain)).or(self.redeem_key_file.as_ref()).map(PathBuf::as_path)
    }

    /// Returns the user's addresses, each once.
    pub(crate) fn owners(&self) -> Vec<&str> {
        let mut owners: Vec<_> = self.owners.values().map(String::as_str).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}

/// Parses texts by chain names.
fn by_chain(node: &Cursor<'_, '_>) -> Result<BTreeMap<String, String>, Refusal> {
    let members = node.object()?;
    let text = |chain: &str| {
        let text = members.need(chain)?;
        // A name that cannot be a chain of an asset id would never be used, so it is a typing error.
        let is_name = |name: &str| AssetId::parse(&format!("{name}:x")).is_ok();
        if !is_name(chain) {
            let refusal =
                text.at().refuse(Code::AssetIdMalformed).with_reason("use the chain names of asset ids, like ethereum or bitcoin");
            let small = chain.trim().to_ascii_lowercase();
            let refusal = if is_name(&small) { refusal.with_reason(format!("write {small}")) } else { refusal };
            return Err(refusal.with_actual(chain));
        }
        Ok((chain.to_owned(), text.text()?.to_owned()))
    };
    members.keys().map(text).collect()
}

/// The directories that paths are relative to.
struct Paths<'p> {
    home: &'p Path,
    directory: &'p Path,
}

impl Paths<'_> {
    fn resolve(&self, text: &str) -> PathBuf {
        match text.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.directory.join(text),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    fn parse(text: &str) -> Result<Config, Refusal> {
        Config::parse(text.as_bytes(), &Paths { home: Path::new("/home/user"), directory: Path::new("/home/user/.config/countersign") })
    }

    #[test]
    fn paths_start_at_the_files_directory_at_home_or_at_the_root() {
        let config = parse(r#"{"registry": "registry.json", "policy": "/etc/policy.json", "state": "~/swaps"}"#).unwrap();
        assert_eq!(config.registry.unwrap(), Path::new("/home/user/.config/countersign/registry.json"));
        assert_eq!(config.policy.unwrap(), Path::new("/etc/policy.json"));
        assert_eq!(config.state.unwrap(), Path::new("/home/user/swaps"));
    }

    #[test]
    fn misspelt_and_malformed_members_are_refused_with_their_place() {
        for (text, at) in [
            (r#"{"registery": "r.json"}"#, "/registery"),
            (r#"{"Registry": "r.json"}"#, "/Registry"),
            (r#"{"owner": {}}"#, "/owner"),
            (r#"{"registry": 7}"#, "/registry"),
            (r#"{"owners": "0xab"}"#, "/owners"),
            (r#"{"key_files": {"Solana": "key.txt"}}"#, "/key_files/Solana"),
            (r#"{"owners": {"ethereum": 7}}"#, "/owners/ethereum"),
            (r#"{"owners": {"Ethereum": "0xab"}}"#, "/owners/Ethereum"),
            (r#"{"owners": {"ethereum:usdc": "0xab"}}"#, "/owners/ethereum:usdc"),
        ] {
            let refusal = parse(text).err().unwrap();
            assert_eq!(refusal.location(), at, "{text}");
        }
        assert!(parse(r#"{"base_url": "a", "base_url": "b"}"#).is_err() && parse("[]").is_err() && parse("").is_err());
    }

    #[test]
    fn a_chain_has_a_key_of_its_own_or_the_one_for_all() {
        let config = parse(r#"{"key_file": "all.txt", "key_files": {"solana": "solana.txt"}}"#).unwrap();
        let name = |path: Option<&Path>| path.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(name(config.key_file(Some("solana"))).as_deref(), Some("solana.txt"));
        assert_eq!(name(config.key_file(Some("base"))).as_deref(), Some("all.txt"));
        assert_eq!(name(config.key_file(None)).as_deref(), Some("all.txt"));
        assert_eq!(name(config.redeem_key_file(Some("solana"))).as_deref(), Some("solana.txt"));
        assert_eq!(name(config.redeem_key_file(Some("base"))), None);
    }

    #[test]
    fn an_owner_belongs_to_its_chain() {
        let config = parse(r#"{"owners": {"ethereum": "0xab", "base": "0xab", "bitcoin": "bc1q"}}"#).unwrap();
        let owner = |asset: &str| config.owner(&AssetId::parse(asset).unwrap()).map(str::to_owned);
        assert_eq!(owner("ethereum:usdc").as_deref(), Some("0xab"));
        assert_eq!(owner("bitcoin:btc").as_deref(), Some("bc1q"));
        assert_eq!(owner("bitcoin_testnet:btc"), None);
        assert_eq!(config.owners(), ["0xab", "bc1q"]);
    }
}
