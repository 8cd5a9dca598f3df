//! `countersign init`: writes the configuration file, after checking each value.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

use countersign::chains::address;
use countersign::{AssetId, Policy, Registry};
use countersign_client::{Client, Http};
use countersign_node::{Endpoints, NodeConfig, Nodes};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::exit::OK;
use crate::failure::{Failure, own_file, usage};
use crate::files::{self, Access};
use crate::input::{self, key_from};
use crate::nodes::{check_names, connect};
use crate::preflight::{self, Problems};
use crate::session::Session;
use crate::{command, prompt, service, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign init                                    # asks for each value
  countersign init --base-url https://service.example --registry registry.json --nodes nodes.json --key-file key.txt
  countersign init --base-url https://service.example --registry registry.json --pin --owner ethereum=0x... --owner bitcoin=bc1q...

Each value is checked before anything is written: the service answers, the registry can be read, the endpoints of each chain answer and
serve that chain, the key file can be read by nobody else, and the owners are addresses of their chains. With --pin, a registry file that
does not exist yet is written with what the service lists now. At a terminal the command asks for what is not given; an empty answer
leaves a value out. An existing configuration file is replaced only with --replace.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    service: service::ServiceArgs,
    /// The pinned registry.
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_REGISTRY")]
    registry: Option<PathBuf>,
    /// Pins what the service lists now, if the registry file does not exist yet. This trusts the service on first use.
    #[arg(long)]
    pin: bool,
    /// The file with the endpoints of each chain.
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_NODES")]
    nodes: Option<PathBuf>,
    /// The file with the key that signs payments.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Your address on a chain. Can be given several times.
    #[arg(long, value_name = "CHAIN=ADDRESS")]
    owner: Vec<String>,
    /// Replaces an existing configuration file.
    #[arg(long)]
    replace: bool,
}

/// The values to write.
#[derive(Default)]
struct Values {
    base_url: Option<String>,
    registry: Option<PathBuf>,
    nodes: Option<PathBuf>,
    key_file: Option<PathBuf>,
    app_id_file: Option<PathBuf>,
    owners: Vec<(String, String)>,
    pin: bool,
}

#[derive(Serialize)]
struct Written<'a> {
    ok: bool,
    config: &'a Path,
    registry_digest: String,
    warnings: &'a [String],
    next: &'a str,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let path = Config::path().ok_or_else(|| usage("the user has no home directory"))?;
    if path.symlink_metadata().is_ok() && !args.replace {
        return Err(usage(format_args!("{} exists: pass --replace to write it anew, or edit it", path.display())));
    }
    let values = Values::new(args, session)?;
    let mut problems = Problems::default();
    let mut warnings = Vec::new();
    let client = problems.take(args.service.client_at(values.base_url.as_deref(), values.app_id_file.as_deref(), session));
    let registry = service::run(async {
        if let Some(client) = &client {
            problems.take(health(client).await);
        }
        Ok(values.registry(&mut problems, client.as_ref(), session).await)
    })?;
    if let Some((registry, _)) = &registry {
        values.check_nodes(&mut problems, registry, &mut warnings, session)?;
        values.check_owners(&mut problems, registry);
    }
    values.check_key(&mut problems, session);
    problems.end()?;
    let Some((registry, pinned)) = registry else { return Err(usage("the registry is missing")) };
    if let (Some(file), true) = (&values.registry, pinned) {
        files::replace(file, &registry.to_file(), Access::Shared)?;
        warnings.push("these pins are trusted on first use: compare their digest with a source other than the service".to_owned());
    }
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| usage(format_args!("{}: {error}", directory.display())))?;
    }
    let text = serde_json::to_vec_pretty(&values.to_json()).map_err(usage)?;
    files::replace(&path, &text, Access::Private)?;
    let next = next(&values, &registry, session);
    let digest = hex::encode(registry.digest());
    if session.json {
        show::json(&Written { ok: true, config: &path, registry_digest: digest, warnings: &warnings, next: &next })?;
        return Ok(OK);
    }
    show::field("config", &path.display().to_string())?;
    show::field("registry digest", &format!("{digest}, of {} assets", registry.assets().len()))?;
    for warning in &warnings {
        show::field("warning", warning)?;
    }
    show::field("next", &next)?;
    Ok(OK)
}

async fn health(client: &Client<Http>) -> Result<(), Failure> {
    client.health().await.map(drop).map_err(|error| Failure::from(error).with_advice("check --base-url"))
}

/// Returns the command to run next: a first swap that creates nothing.
fn next(values: &Values, registry: &Registry, session: &Session) -> String {
    if values.nodes.is_some() {
        return session.commands.with_places(&["node", "check"]);
    }
    let owned = |id: &AssetId| values.owners.iter().any(|(chain, _)| chain == id.chain());
    let mut ids = registry.assets().into_iter().map(|asset| &asset.record.id).filter(|id| values.owners.is_empty() || owned(id));
    match (ids.next(), ids.next()) {
        (Some(from), Some(to)) => session.commands.with_places(&["quote", from.as_str(), to.as_str(), "1000000"]),
        _ => session.commands.with_places(&["assets"]),
    }
}

/// Returns a path as the configuration file has it: absolute, and text.
fn written(path: impl AsRef<Path>) -> Result<PathBuf, Failure> {
    let path = absolute(path).map_err(usage)?;
    if path.to_str().is_none() {
        return Err(usage(format_args!(
            "{}: the path is not UTF-8 text, and a configuration file is: use another directory",
            path.display()
        )));
    }
    Ok(path)
}

impl Values {
    /// Takes the arguments, and asks at the terminal for what they leave out.
    fn new(args: &Args, session: &Session) -> Result<Self, Failure> {
        let is_asked = std::io::stdin().is_terminal() && !session.json;
        let ask = |question: &str| -> Result<Option<String>, Failure> {
            if !is_asked {
                return Ok(None);
            }
            session.question(question)?;
            let mut answer = String::new();
            std::io::stdin().lock().read_line(&mut answer)?;
            Ok(Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty()))
        };
        let file = |given: &Option<PathBuf>, question: &str| -> Result<Option<PathBuf>, Failure> {
            let path = match given {
                Some(path) => Some(path.clone()),
                None => ask(question)?.map(PathBuf::from),
            };
            path.map(written).transpose()
        };
        let base_url = match args.service.base_url() {
            Some(url) => Some(url.to_owned()),
            None => ask("URL of the service:")?,
        };
        let registry = file(&args.registry, "registry file:")?;
        let is_missing = registry.as_ref().is_some_and(|path| !path.exists());
        let pin = args.pin
            || is_missing
                && ask("this file does not exist; pin what the service lists now? [y/N]")?.is_some_and(|answer| prompt::is_yes(&answer));
        let nodes = file(&args.nodes, "file with the endpoints of chains (empty for none):")?;
        let key_file = file(&args.key_file, "key file (empty for none):")?;
        let mut owners: Vec<_> = args.owner.clone();
        if owners.is_empty()
            && let Some(answer) = ask("your addresses, as chain=address, separated by spaces (empty for none):")?
        {
            owners.extend(answer.split_whitespace().map(str::to_owned));
        }
        let owner = |text: &String| {
            let parts = text.split_once('=').map(|(chain, address)| (chain.to_owned(), address.to_owned()));
            parts.ok_or_else(|| usage(format_args!("{text}: an owner must have the form CHAIN=ADDRESS")))
        };
        let owners = owners.iter().map(owner).collect::<Result<_, _>>()?;
        let app_id_file = args.service.app_id_file().map(written).transpose()?;
        Ok(Self { base_url, registry, nodes, key_file, app_id_file, owners, pin })
    }

    /// Returns the registry, and whether it was pinned just now.
    async fn registry(&self, problems: &mut Problems, client: Option<&Client<Http>>, session: &Session) -> Option<(Registry, bool)> {
        let Some(path) = &self.registry else {
            problems.add("no registry: pass the pinned one with --registry, or a new file with --registry and --pin");
            return None;
        };
        if path.exists() {
            return problems.take(input::registry(path)).map(|registry| (registry, false));
        }
        if !self.pin {
            problems.add(format!("{} does not exist: pass --pin to write it with what the service lists now", path.display()));
            return None;
        }
        let pins = problems.take(client?.registry().await.map_err(Failure::from))?;
        for notice in &pins.notices {
            session.progress(&format!("notice: {notice}"));
        }
        Some((pins.registry, true))
    }

    /// Checks that the endpoints answer and serve their chains.
    fn check_nodes(
        &self,
        problems: &mut Problems,
        registry: &Registry,
        warnings: &mut Vec<String>,
        session: &Session,
    ) -> Result<(), Failure> {
        let Some(path) = &self.nodes else { return Ok(()) };
        let read = || NodeConfig::from_json(&files::read(path)?).map_err(|refusal| own_file(path, &refusal));
        let Some(nodes) = problems.take(read().and_then(|config| connect(config, registry, session))) else { return Ok(()) };
        let nodes = Arc::new(nodes);
        problems.take(check_names(&nodes));
        let names: Vec<_> = nodes.names().collect();
        for name in &names {
            warnings.extend(Nodes::endpoints(&nodes, name).and_then(Endpoints::doubt).map(|doubt| format!("{name}: {doubt}")));
        }
        service::run(async {
            preflight::check_nodes(problems, &nodes, registry, &names).await;
            for name in &names {
                warnings.extend(preflight::said(&nodes.chain_preconditions(name, &Policy::default()).await));
            }
            Ok(())
        })
    }

    /// Checks that every owner is an address of its chain.
    fn check_owners(&self, problems: &mut Problems, registry: &Registry) {
        for (name, text) in &self.owners {
            let Some(chain) = registry.chains().find(|chain| chain.record.chain == *name) else {
                problems.add(format!("{name}: not a chain of the registry"));
                continue;
            };
            match address::parse(&chain.network, text) {
                Ok(account) if account.is_zero() => problems.add(format!("{name}={text}: nobody owns the zero address")),
                Ok(_) => {}
                Err(error) => problems.add(format!("{name}={text}: {error}")),
            }
        }
    }

    /// Checks that the key file can be read, and by nobody else.
    fn check_key(&self, problems: &mut Problems, session: &Session) {
        let Some(path) = &self.key_file else { return };
        if let Some(key) = problems.take(key_from(path, session))
            && key.is_empty()
        {
            problems.add(format!("{}: the file is empty", path.display()));
        }
        #[cfg(unix)]
        if let Ok(metadata) = path.metadata() {
            let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
            if mode & 0o077 != 0 {
                let fix = command::quoted(path.as_os_str());
                problems.add(format!("{}: other users can read or change it: chmod 600 {fix}", path.display()));
            }
        }
    }

    fn to_json(&self) -> Value {
        let mut members = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                members.insert(name.to_owned(), value);
            }
        };
        let file = |path: &Option<PathBuf>| path.as_ref().map(|path| Value::from(path.to_string_lossy()));
        set("base_url", self.base_url.clone().map(Value::from));
        set("app_id_file", file(&self.app_id_file));
        set("registry", file(&self.registry));
        set("nodes", file(&self.nodes));
        set("key_file", file(&self.key_file));
        if !self.owners.is_empty() {
            let owners: Map<_, _> = self.owners.iter().map(|(chain, text)| (chain.clone(), json!(text))).collect();
            set("owners", Some(Value::Object(owners)));
        }
        Value::Object(members)
    }
}
