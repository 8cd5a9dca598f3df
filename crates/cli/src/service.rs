//! The service and the application id: from arguments, the environment, or the user's configuration file.
//!
//! The application id is never an argument, because other users of the machine see those, and it is never printed.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign::json::{self, Node};
use countersign_client::{Api, AppId, Client, Http, Timeouts};
use zeroize::Zeroizing;

use crate::input::{self, Failure, usage};

const APP_ID: &str = "COUNTERSIGN_APP_ID";

/// The service and the application id.
#[derive(clap::Args)]
pub(crate) struct ServiceArgs {
    /// The service's address, without /v2.
    #[arg(long, value_name = "URL", env = "COUNTERSIGN_BASE_URL")]
    base_url: Option<String>,
    /// Reads the application id from a file. By default it is COUNTERSIGN_APP_ID, or that of the configuration file.
    #[arg(long, value_name = "FILE")]
    app_id_file: Option<PathBuf>,
    /// Seconds that one call may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Tunnels https connections through a proxy.
    #[arg(long, value_name = "URL", env = "HTTPS_PROXY", hide_env_values = true)]
    proxy: Option<String>,
}

/// What the configuration file holds: `{"base_url": "..", "app_id": "..", "app_id_file": ".."}`, each optional.
#[derive(Default)]
struct Config {
    base_url: Option<String>,
    app_id: Option<Zeroizing<String>>,
    app_id_file: Option<PathBuf>,
}

impl ServiceArgs {
    pub(crate) fn client(&self) -> Result<Client<Http>, Failure> {
        let config = Config::read()?;
        let base = self
            .base_url
            .clone()
            .or(config.base_url)
            .ok_or_else(|| usage("no service: name it with --base-url, COUNTERSIGN_BASE_URL, or base_url in the configuration file"))?;
        let app_id = if let Some(file) = &self.app_id_file {
            Some(from_file(file)?)
        } else if let Ok(id) = env::var(APP_ID) {
            Some(Zeroizing::new(id))
        } else if let Some(id) = config.app_id {
            Some(id)
        } else {
            config.app_id_file.as_deref().map(from_file).transpose()?
        };
        let app_id = app_id.map(|id| AppId::new(id.trim())).transpose()?;
        let call = Duration::from_secs(self.timeout);
        let timeouts = Timeouts { connect: Timeouts::default().connect.min(call), call };
        let http = match &self.proxy {
            Some(proxy) => Http::with_proxy(timeouts, proxy),
            None => Http::new(timeouts),
        };
        Ok(Client::new(Api::new(&base, app_id)?, http.map_err(countersign_client::Error::from)?))
    }
}

fn from_file(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let bytes = input::read(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| usage(format_args!("{}: not text", path.display())))?;
    Ok(Zeroizing::new(text.to_owned()))
}

impl Config {
    fn read() -> Result<Self, Failure> {
        let Some(path) = directory("XDG_CONFIG_HOME", ".config").map(|directory| directory.join("config.json")) else {
            return Ok(Self::default());
        };
        if !path.exists() {
            return Ok(Self::default());
        }
        let bytes = input::read(&path)?;
        let at = |refusal| usage(format_args!("{}: {refusal}", path.display()));
        let value = json::parse(&bytes).map_err(at)?;
        let read = || {
            let node = Node::root(&value, "");
            let members = node.object()?;
            members.only(&["base_url", "app_id", "app_id_file"])?;
            Ok(Self {
                base_url: members.get("base_url").map(|node| node.text().map(str::to_owned)).transpose()?,
                app_id: members.get("app_id").map(|node| node.secret().map(|id| Zeroizing::new(id.to_owned()))).transpose()?,
                app_id_file: members.get("app_id_file").map(|node| node.text().map(PathBuf::from)).transpose()?,
            })
        };
        read().map_err(at)
    }
}

/// Returns the program's directory in an XDG base directory, or in its default in the user's home.
pub(crate) fn directory(variable: &str, default: &str) -> Option<PathBuf> {
    // The specification says to ignore relative paths.
    let set = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(default)))?;
    Some(base.join("countersign"))
}

/// Runs the calls of one command. The library knows no runtime: only this function creates one.
pub(crate) fn run<R>(work: impl Future<Output = Result<R, Failure>>) -> Result<R, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
