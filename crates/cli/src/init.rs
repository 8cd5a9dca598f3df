//! `countersign init`: writes the configuration file, after checking each value.

mod checks;
mod guide;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf, absolute};

use countersign::Registry;
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::checks::Checks;
use crate::config::Config;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::files::{self, Access};
use crate::preflight::Problems;
use crate::session::Session;
use crate::{service, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign init                                    # asks for each value
  countersign init --base-url https://service.example --registry registry.json --nodes nodes.json --key-file key.txt
  countersign init --base-url https://service.example --registry registry.json --pin --owner ethereum=0x... --owner bitcoin=bc1q...

Each value is checked before anything is written: the service answers, the registry can be read, the endpoints of each chain answer and
serve that chain, the owners are addresses of their chains, and the key file can be read by nobody else and has the key of one of them. With
--pin, a registry file that does not exist yet is written with what the service lists now. At a terminal the command asks for what is not
given, and asks again for what is wrong; an empty answer leaves a value out, and Ctrl-D stops without writing anything. An existing
configuration file is replaced only with --replace.";

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
}

/// What was found on the way.
struct Found {
    registry: Registry,
    /// Whether the registry was pinned just now, so that its file is still to be written.
    is_new: bool,
    warnings: Vec<String>,
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
    session.advise("nothing was written");
    let is_asked = io::stdin().is_terminal() && !session.json;
    let (values, Found { registry, is_new, mut warnings }) = if is_asked { guide::ask(args, session)? } else { given(args, session)? };
    session.advise("a part may be written: run the command again");
    if let (Some(file), true) = (&values.registry, is_new) {
        files::replace(file, &registry.to_file(), Access::Shared)?;
        warnings.push("these pins are trusted on first use: compare their digest with a source other than the service".to_owned());
    }
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| usage(format_args!("{}: {error}", directory.display())))?;
    }
    let text = serde_json::to_vec_pretty(&values.to_json()).map_err(usage)?;
    files::replace(&path, &text, Access::Private)?;
    let next = session.commands.with_places(&next(&values, &registry).iter().map(String::as_str).collect::<Vec<_>>());
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

/// Returns the words of the command to run next: whether the endpoints of chains work, else what a swap between two of the owner's chains
/// would pay, else a demonstration that needs neither. None of them creates anything.
fn next(values: &Values, registry: &Registry) -> Vec<String> {
    if values.nodes.is_some() {
        return ["node", "check"].map(str::to_owned).into();
    }
    let assets = registry.assets();
    // The chain's own coin, if it is pinned.
    let of = |chain: &str| assets.iter().filter(|asset| asset.record.id.chain() == chain).min_by_key(|asset| asset.token.is_some());
    let mut owned = values.owners.iter().filter_map(|(chain, _)| of(chain));
    let Some(from) = owned.next() else { return vec!["demo".to_owned()] };
    match owned.find(|to| to.record.id.chain() != from.record.id.chain()) {
        Some(to) => {
            let one = format!("1 {}", from.amount(countersign::U256::ZERO).symbol);
            vec!["quote".to_owned(), from.record.id.to_string(), to.record.id.to_string(), one]
        }
        None => vec!["demo".to_owned()],
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

/// Takes the arguments, without asking for what they leave out, and reports every problem at once.
fn given(args: &Args, session: &Session) -> Result<(Values, Found), Failure> {
    let path = |given: &Option<PathBuf>| given.as_ref().map(written).transpose();
    let (registry, nodes, key_file) = (path(&args.registry)?, path(&args.nodes)?, path(&args.key_file)?);
    let base_url = args.service.base_url().map(str::to_owned);
    let app_id_file = args.service.app_id_file().map(written).transpose()?;
    let checks = Checks { service: &args.service, app_id_file: app_id_file.as_deref(), session, is_asked: false };
    let (mut problems, mut warnings) = (Problems::default(), Vec::new());
    let owners = problems.take(checks::owners(&args.owner)).unwrap_or_default();
    // What is missing is a problem too.
    let client = problems.take(checks.client(base_url.as_deref()));
    if client.is_some() {
        let healthy = service::run(session, checks.health(base_url.as_deref()));
        problems.take(healthy.map_err(|failure| failure.with_advice("check --base-url")));
    }
    let mut is_new = false;
    let pinned = match &registry {
        None => {
            problems.add("no registry: pass the pinned one with --registry, or a new file with --registry and --pin");
            None
        }
        Some(path) if path.exists() => problems.take(checks::registry(path)),
        Some(path) if !args.pin => {
            problems.add(format!("{} does not exist: pass --pin to write it with what the service lists now", path.display()));
            None
        }
        Some(path) => {
            is_new = true;
            client.and_then(|_| problems.take(checks.pins(base_url.as_deref(), path)))
        }
    };
    if let Some(registry) = &pinned {
        if let Some(path) = &nodes {
            checks.nodes(&mut problems, path, registry, &mut warnings)?;
        }
        checks::check_owners(&mut problems, &owners, registry);
    }
    if let Some(path) = &key_file {
        checks::key(&mut problems, path, &owners, pinned.as_ref());
    }
    problems.end()?;
    let Some(registry_pins) = pinned else { return Err(usage("the registry is missing")) };
    Ok((Values { base_url, registry, nodes, key_file, app_id_file, owners }, Found { registry: registry_pins, is_new, warnings }))
}

impl Values {
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
