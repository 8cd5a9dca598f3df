//! The service's address and the application id, from arguments, the environment or the configuration file.
//!
//! The application id is never an argument, because other users of the machine can see those, and it is never printed.

use std::env;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use countersign_client::{Api, AppId, Client, Http, Timeouts};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::failure::{Failure, usage};
use crate::session::Session;
use crate::{files, prompt, proxy};

const APP_ID: &str = "COUNTERSIGN_APP_ID";
/// How long a command waits for others in silence.
const PATIENCE: Duration = Duration::from_secs(5);

/// The service and the application id.
#[derive(clap::Args)]
pub(crate) struct ServiceArgs {
    /// The service's URL, without /v2.
    #[arg(long, value_name = "URL", env = "COUNTERSIGN_BASE_URL")]
    base_url: Option<String>,
    /// Reads the application id from a file. By default it is the value of COUNTERSIGN_APP_ID, or that of the configuration file.
    #[arg(long, value_name = "FILE")]
    app_id_file: Option<PathBuf>,
    /// Time limit of one call, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
}

impl ServiceArgs {
    /// Returns the given URL, without that of the configuration file.
    pub(crate) fn base_url(&self) -> Option<&str> {
        self.base_url.as_deref()
    }

    /// Returns the given file of the application id.
    pub(crate) fn app_id_file(&self) -> Option<&Path> {
        self.app_id_file.as_deref()
    }

    pub(crate) fn client(&self, session: &Session) -> Result<Client<Http>, Failure> {
        let config = Config::read()?;
        let base = match (&self.base_url, &config.base_url) {
            (Some(url), _) => Some((url.as_str(), session.commands.origin_of("base_url"))),
            (None, Some(url)) => {
                let file = Config::path().unwrap_or_default();
                Some((url.as_str(), format!("base_url in {}", file.display())))
            }
            (None, None) => None,
        };
        self.connect(base, config.app_id, config.app_id_file.as_deref(), session)
    }

    /// Returns a client for values that may become those of the configuration file.
    pub(crate) fn client_at(
        &self,
        base: Option<(&str, String)>,
        app_id_file: Option<&Path>,
        session: &Session,
    ) -> Result<Client<Http>, Failure> {
        self.connect(base, None, app_id_file, session)
    }

    fn connect(
        &self,
        base: Option<(&str, String)>,
        configured_id: Option<Zeroizing<String>>,
        configured_file: Option<&Path>,
        session: &Session,
    ) -> Result<Client<Http>, Failure> {
        let (base, origin) =
            base.ok_or_else(|| usage("no service: pass --base-url, or set COUNTERSIGN_BASE_URL or base_url in the configuration file; `countersign init` makes one"))?;
        let app_id = if let Some(file) = &self.app_id_file {
            Some(app_id(file)?)
        } else if let Some(id) = env::var(APP_ID).ok().filter(|id| !id.is_empty()) {
            Some(Zeroizing::new(id))
        } else if let Some(id) = configured_id {
            Some(id)
        } else {
            configured_file.map(app_id).transpose()?
        };
        let app_id = app_id.map(|id| AppId::new(id.trim())).transpose()?;
        let call = Duration::from_secs(self.timeout);
        let timeouts = Timeouts { connect: Timeouts::default().connect.min(call), call };
        let refused = |why: &dyn std::fmt::Display| usage(format_args!("{origin}: {why}"));
        let api = Api::new(base, app_id).map_err(|error| refused(&error))?;
        if base.trim_end_matches('/').ends_with("/v2") {
            return Err(refused(&"write the service's URL without /v2, which every request adds"));
        }
        Ok(Client::new(api, proxy::http(timeouts, session.proxy.as_deref())?))
    }
}

/// Reads an application id. It is no key, so others may read the file.
fn app_id(path: &Path) -> Result<Zeroizing<String>, Failure> {
    prompt::text(&files::private(path)?, path)
}

/// Runs the calls of one command on a new runtime. The library itself does not depend on one.
///
/// If nothing is said for some seconds, an answer is slow or does not end: that is said once.
pub(crate) fn run<R>(session: &Session, work: impl Future<Output = Result<R, Failure>>) -> Result<R, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let (mut work, said) = (pin!(work), session.messages());
        match tokio::time::timeout(PATIENCE, work.as_mut()).await {
            Ok(answer) => return answer,
            Err(_) if session.messages() == said => {
                session.progress(&format!("no complete answer after {} seconds: still waiting", PATIENCE.as_secs()));
            }
            Err(_) => {}
        }
        work.await
    })
}
