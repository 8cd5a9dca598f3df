//! What makes a value of the configuration right. Each check stands once, whether the value is an argument or an answer.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use countersign::chains::address;
use countersign::{Family, Policy, Registry, chains::Account, trust::Chain};
use countersign_client::{Client, Http};
use countersign_node::{Endpoints, NodeConfig, Nodes};

use crate::failure::{Failure, usage};
use crate::key::GivenKey;
use crate::nodes::{check_names, connect};
use crate::preflight::{self, Problems, controls_script};
use crate::session::Session;
use crate::{files, input, own, service};

/// The checks that ask somebody.
pub(super) struct Checks<'c> {
    pub(super) service: &'c service::ServiceArgs,
    pub(super) app_id_file: Option<&'c Path>,
    pub(super) session: &'c Session,
    /// Whether the values are answers to questions, which messages name in the place of flags.
    pub(super) is_asked: bool,
}

impl Checks<'_> {
    /// Returns a client of the service. This sends nothing yet.
    pub(super) fn client(&self, base_url: Option<&str>) -> Result<Client<Http>, Failure> {
        let origin = || if self.is_asked { "the answer".to_owned() } else { self.session.commands.origin_of("base_url") };
        self.service.client_at(base_url.map(|url| (url, origin())), self.app_id_file, self.session)
    }

    /// Checks that the service answers.
    pub(super) async fn health(&self, base_url: Option<&str>) -> Result<(), Failure> {
        Ok(self.client(base_url)?.health().await.map(drop)?)
    }

    /// Returns what the service lists now, for a registry file that can be written then.
    pub(super) fn pins(&self, base_url: Option<&str>, path: &Path) -> Result<Registry, Failure> {
        if let Some(directory) = path.parent().filter(|directory| !directory.is_dir()) {
            return Err(usage(format_args!("{}: there is no such directory", directory.display())));
        }
        let pins = service::run(self.session, async { Ok(self.client(base_url)?.registry().await?) })?;
        for notice in &pins.notices {
            self.session.progress(&format!("notice: {notice}"));
        }
        Ok(pins.registry)
    }

    /// Checks that the endpoints answer and serve their chains.
    pub(super) fn nodes(
        &self,
        problems: &mut Problems,
        path: &Path,
        registry: &Registry,
        warnings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let read = own::parse(path, NodeConfig::from_json);
        let Some(nodes) = problems.take(read.and_then(|config| connect(config, registry, self.session))) else { return Ok(()) };
        let nodes = Arc::new(nodes);
        problems.take(check_names(&nodes, registry, Some(path)));
        let names: Vec<_> = nodes.names().collect();
        for name in &names {
            warnings.extend(Nodes::endpoints(&nodes, name).and_then(Endpoints::doubt).map(|doubt| format!("{name}: {doubt}")));
        }
        service::run(self.session, async {
            preflight::check_nodes(problems, &nodes, registry, &names).await;
            problems.advise_on_network("name other endpoints, or take the chain out of the file");
            for name in &names {
                warnings.extend(preflight::said(&nodes.chain_preconditions(name, registry, &Policy::default()).await));
            }
            Ok(())
        })
    }
}

/// Reads the registry.
pub(super) fn registry(path: &Path) -> Result<Registry, Failure> {
    input::registry(path)
}

/// Splits addresses of the form `CHAIN=ADDRESS`.
pub(super) fn owners<T: AsRef<str>>(texts: &[T]) -> Result<Vec<(String, String)>, Failure> {
    let owner = |text: &T| {
        let parts = text.as_ref().split_once('=').map(|(chain, address)| (chain.to_owned(), address.to_owned()));
        parts.ok_or_else(|| usage(format_args!("{}: an owner must have the form CHAIN=ADDRESS", text.as_ref())))
    };
    texts.iter().map(owner).collect()
}

fn chain<'r>(registry: &'r Registry, name: &str) -> Option<&'r Chain> {
    registry.chains().find(|chain| chain.record.chain == name)
}

/// Checks that every owner is an address of its chain.
pub(super) fn check_owners(problems: &mut Problems, owners: &[(String, String)], registry: &Registry) {
    for (name, text) in owners {
        let Some(chain) = chain(registry, name) else {
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

/// Checks that a file has a key that nobody else can read, and that it is the key of one of the owners. Without owners, it must be a key of one
/// of the registry's families; without a registry, it is only read.
pub(super) fn key(problems: &mut Problems, path: &Path, owners: &[(String, String)], registry: Option<&Registry>) {
    let name = path.display();
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return problems.add(format!("{name}: not a regular file"));
    }
    let Some(text) = problems.take(files::private(path).and_then(|bytes| GivenKey::new(&bytes, name.to_string()))) else { return };
    if let Some(open) = files::open_to_others(path) {
        problems.add(open);
    }
    if let Some(mistake) = text.mistake() {
        return problems.add(mistake);
    }
    let Some(registry) = registry else { return };
    let owned: Vec<(Family, Account, &str)> = owners
        .iter()
        .filter_map(|(name, text)| {
            let chain = chain(registry, name)?;
            Some((chain.family(), address::parse(&chain.network, text).ok()?, name.as_str()))
        })
        .collect();
    let families: BTreeSet<Family> =
        if owned.is_empty() { registry.chains().map(Chain::family).collect() } else { owned.iter().map(|(family, ..)| *family).collect() };
    let mut controls = BTreeSet::new();
    let mut is_key = false;
    for family in families {
        let Ok(key) = text.parse(family) else { continue };
        is_key = true;
        let mut own = owned.iter().filter(|(other, ..)| *other == family).map(|(_, account, _)| account);
        let is_owners = match (key.account(), family) {
            (Some(account), _) => {
                controls.insert(account.to_string());
                own.any(|owner| *owner == account)
            }
            (None, Family::Bitcoin) => own.any(|owner| controls_script(&text, owner.bytes())),
            // The account does not follow from the key.
            (None, _) => true,
        };
        if is_owners || owned.is_empty() {
            return;
        }
    }
    let chains = owned.iter().map(|(.., chain)| *chain).collect::<Vec<_>>().join(" or ");
    match (is_key, chains.as_str()) {
        (false, "") => problems.add(format!("{name}: not a secret key of any chain in the registry")),
        (false, chains) => problems.add(format!("{name}: not a secret key for {chains}")),
        (true, chains) => {
            let whose = controls.into_iter().collect::<Vec<_>>().join(", ");
            let whose = if whose.is_empty() { String::new() } else { format!(", but of {whose}") };
            problems.add(format!("{name}: not the key of your address on {chains}{whose}"));
        }
    }
}
