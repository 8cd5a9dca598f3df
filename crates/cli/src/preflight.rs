//! Checks what the user gave for a new order, before the service hears of it. Every problem is reported at once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;

use countersign::bitcoin::bitcoin::key::{Parity, Secp256k1};
use countersign::bitcoin::bitcoin::{CompressedPublicKey, ScriptBuf};
use countersign::chains::address;
use countersign::json::{self, Cursor};
use countersign::wire::AffiliateFee;
use countersign::{
    AssetId, CreateOrder, Family, Policy, Refusal, Registry,
    evidence::{Precondition, Stage, check_head_time},
    text,
    trust::Asset,
    wire::RequestedLeg,
};
use countersign_client::Http;
use countersign_client::driver::Chains as _;
use countersign_json::read_context;
use countersign_node::{Endpoints, Ends, NodeError, Nodes, Preconditions, Speed, Unmet};
use tokio::task::JoinSet;
use zeroize::Zeroizing;

use crate::failure::{Failure, described, told};
use crate::key::GivenKey;
use crate::session::Session;
use crate::{own, show};

/// The problems that were found so far.
#[derive(Default)]
pub(crate) struct Problems {
    input: Vec<String>,
    /// What a chain shows, with its code.
    refused: Vec<(&'static str, String)>,
    network: Vec<String>,
}

impl Problems {
    /// Notes a problem, once: a file has several readers.
    pub(crate) fn add(&mut self, problem: impl Into<String>) {
        let problem = problem.into();
        if !self.input.contains(&problem) {
            self.input.push(problem);
        }
    }

    /// Adds what to do to each problem of the network.
    pub(crate) fn advise_on_network(&mut self, advice: &str) {
        for problem in &mut self.network {
            problem.push_str("; ");
            problem.push_str(advice);
        }
    }

    /// Returns whether nothing was found so far.
    pub(crate) const fn is_empty(&self) -> bool {
        self.input.is_empty() && self.refused.is_empty() && self.network.is_empty()
    }

    /// Returns the value, or notes why there is none.
    pub(crate) fn take<T>(&mut self, result: Result<T, Failure>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Failure::Network { message, .. }) => {
                self.network.push(message);
                None
            }
            Err(failure) => {
                self.add(failure.message());
                None
            }
        }
    }

    /// Returns every problem, in sentences.
    pub(crate) fn all(self) -> Vec<String> {
        let Self { input, refused, network } = self;
        [input, refused.into_iter().map(|(_, message)| message).collect(), network].concat()
    }

    /// Ends the checks.
    ///
    /// # Errors
    ///
    /// All problems. If nothing is wrong with the input, [`Failure::Held`] with the first code if a chain refuses something; otherwise
    /// [`Failure::Network`], so that the same command may succeed later.
    pub(crate) fn end(self) -> Result<(), Failure> {
        if self.is_empty() {
            return Ok(());
        }
        let (code, is_input) = (self.refused.first().map(|(code, _)| *code), !self.input.is_empty());
        let all = self.all();
        if is_input {
            return Err(Failure::Problems(all));
        }
        let message = format!("{}; nothing was sent to the service, and no order exists", all.join("; "));
        Err(match code {
            Some(code) => Failure::Held { code, message },
            None => Failure::Network { code: "node_unavailable", message: format!("{message}: try again") },
        })
    }
}

/// The names under which the user gave a leg.
pub(crate) struct Names {
    owner: &'static str,
    delegate: &'static str,
}

pub(crate) const SOURCE: Names = Names { owner: "--from-owner", delegate: "--from-delegate" };
pub(crate) const DESTINATION: Names = Names { owner: "--to-owner", delegate: "--to-delegate" };

/// Checks the addresses of a request, and that its assets are pinned.
pub(crate) fn check_request(problems: &mut Problems, request: &CreateOrder, registry: &Registry) {
    check_assets(problems, &request.source.asset, &request.destination.asset);
    check_leg(problems, &request.source, &SOURCE, registry);
    check_leg(problems, &request.destination, &DESTINATION, registry);
    check_fees(problems, &request.affiliate_fees, registry);
}

/// Checks that the legs are in different assets.
pub(crate) fn check_assets(problems: &mut Problems, source: &AssetId, destination: &AssetId) {
    if source == destination {
        problems.add(format!("both legs are in {source}: choose another asset for one of them"));
    }
}

/// Checks the addresses that receive affiliate fees, where their assets are pinned.
pub(crate) fn check_fees(problems: &mut Problems, fees: &[AffiliateFee], registry: &Registry) {
    for fee in fees {
        if let Some(asset) = registry.asset(fee.asset.as_str()) {
            check_address(problems, asset, &fee.address, "--affiliate");
        }
    }
}

fn pinned<'r>(problems: &mut Problems, id: &AssetId, registry: &'r Registry) -> Option<&'r Asset> {
    let asset = registry.asset(id.as_str()).map(AsRef::as_ref);
    if asset.is_none() {
        problems.add(format!("{id} is not pinned in the registry"));
    }
    asset
}

/// Checks the addresses of a leg, and that its asset is pinned.
pub(crate) fn check_leg(problems: &mut Problems, leg: &RequestedLeg, names: &Names, registry: &Registry) {
    let Some(asset) = pinned(problems, &leg.asset, registry) else { return };
    let is_bitcoin = asset.chain.network.family() == Family::Bitcoin;
    match leg.owner.as_deref().filter(|owner| !owner.is_empty()) {
        Some(owner) => check_address(problems, asset, owner, names.owner),
        // A deposit names no owner. Everywhere else the owner pays and is refunded.
        None if is_bitcoin && names.owner == SOURCE.owner => {}
        None => problems.add(format!(
            "{} is missing: pass your address on {}, or set it in owners of the configuration file",
            names.owner,
            leg.asset.chain()
        )),
    }
    if let Some(delegate) = &leg.delegate {
        match address::parse_party(&asset.chain.network, delegate) {
            Ok(_) if is_bitcoin && !address::is_key(delegate) => {
                problems.add(format!("{} {delegate}: not the 64 hex digits of an x-only public key", names.delegate));
            }
            Ok(account) if account.is_zero() => problems.add(format!("{} {delegate}: nobody owns the zero address", names.delegate)),
            Ok(_) => {}
            Err(error) => problems.add(format!("{} {delegate}: {error}", names.delegate)),
        }
    }
}

/// Checks an address of the user: it belongs to the asset's chain, its checksum is right, and somebody can own it.
fn check_address(problems: &mut Problems, asset: &Asset, text: &str, name: &str) {
    let chain = &asset.chain.record.chain;
    match address::parse(&asset.chain.network, text) {
        Err(error) => problems.add(format!("{name} {text}: {error}, for {chain}")),
        Ok(account) if account.is_zero() => problems.add(format!("{name} {text}: nobody owns the zero address")),
        Ok(account) => {
            let token = asset.token.as_ref().and_then(|token| token.account.as_ref());
            let contracts = [(asset.htlc.as_ref(), "HTLC"), (token, "token")];
            for (_, what) in contracts.into_iter().filter(|(other, _)| *other == Some(&account)) {
                problems.add(format!("{name} {text}: this is the pinned {what} contract, not an address of yours"));
            }
        }
    }
}

/// Checks that a key is one of the family, and controls the account that pays: the delegate, otherwise the owner. `spends_owner` says that
/// the coins of the owner's address pay on a Bitcoin-like chain; those of a wallet context can have other keys.
pub(crate) fn check_payer(problems: &mut Problems, key: &GivenKey, leg: &RequestedLeg, registry: &Registry, spends_owner: bool) {
    let Some(asset) = registry.asset(leg.asset.as_str()) else { return };
    let network = &asset.chain.network;
    let account = match key.parse(network.family()) {
        Ok(key) => key.account(),
        Err(refusal) => return problems.add(described(&refusal)),
    };
    // An address that cannot be parsed is a problem of its own.
    let parsed = |text: &str| address::parse(network, text).ok();
    if network.family() == Family::Bitcoin {
        let Some((owner, script)) = leg.owner.as_deref().filter(|_| spends_owner).and_then(|owner| Some((owner, parsed(owner)?))) else {
            return;
        };
        if !controls_script(key, script.bytes()) {
            problems.add(format!("{}: the key does not control {owner}, whose coins pay", key.origin()));
        }
        return;
    }
    let payer = leg.delegate.as_deref().or(leg.owner.as_deref());
    if let (Some(account), Some(payer)) = (account, payer)
        && let Some(wanted) = parsed(payer)
        && account != wanted
    {
        problems.add(format!("{}: the key controls {account}, not {payer}, which pays", key.origin()));
    }
}

/// Returns whether a key controls the address with this script, on a Bitcoin-like chain. Several keys are tried by the signer only.
pub(crate) fn controls_script(key: &str, script: &[u8]) -> bool {
    let (Ok(parsed), false) = (countersign::bitcoin::Key::parse(key), key.split_ascii_whitespace().nth(1).is_some()) else { return true };
    let x_only = parsed.x_only();
    let taproot = ScriptBuf::new_p2tr(&Secp256k1::verification_only(), x_only, None);
    let others = [Parity::Even, Parity::Odd].into_iter().flat_map(|parity| {
        let public_key = CompressedPublicKey(x_only.public_key(parity));
        let segwit = ScriptBuf::new_p2wpkh(&public_key.wpubkey_hash());
        [ScriptBuf::new_p2sh(&segwit.script_hash()), segwit, ScriptBuf::new_p2pkh(&public_key.pubkey_hash())]
    });
    others.chain([taproot]).any(|one| one.as_bytes() == script)
}

/// Checks that a key can send transactions on the chain of a leg.
pub(crate) fn check_sender(problems: &mut Problems, key: &GivenKey, leg: &RequestedLeg, registry: &Registry) {
    let Some(asset) = registry.asset(leg.asset.as_str()) else { return };
    if let Err(refusal) = key.parse(asset.chain.network.family()) {
        problems.add(described(&refusal));
    }
}

/// Checks the wallet context, and returns the key that it contains, if any.
pub(crate) fn check_wallet(problems: &mut Problems, path: Option<&Path>, text: &[u8], family: Family) -> Option<GivenKey> {
    let read = || -> Result<Option<Zeroizing<String>>, Refusal> {
        let value = json::parse(text)?;
        let wallet = Cursor::root(&value, "");
        read_context(family, wallet)?;
        let key = wallet.object()?.get("secret_key").map(|key| key.secret().map(|key| Zeroizing::new(key.to_owned())));
        key.transpose()
    };
    let key = read().unwrap_or_else(|refusal| {
        problems.add(own::below(path.unwrap_or(Path::new("-")), text, "", &refusal));
        None
    });
    key.map(GivenKey::of_wallet)
}

/// Checks that the user can confirm what is signed, or has said that nobody has to.
pub(crate) fn check_consent(problems: &mut Problems, yes: bool, signs: bool) {
    if signs && !yes && !io::stdin().is_terminal() {
        problems.add("stdin is not a terminal, so nobody can confirm what is signed: pass --yes with --at-least, or use a terminal");
    }
}

/// Asks everything that must hold before an order is paid, of the chains that are connected, and returns what holds.
pub(crate) async fn check_preconditions(
    problems: &mut Problems,
    nodes: &Nodes<Http>,
    ends: Ends<'_>,
    policy: &Policy,
    session: &Session,
) -> Vec<(Precondition, String)> {
    for chain in ends.chains() {
        if let Some(doubt) = nodes.endpoints(chain).and_then(Endpoints::doubt) {
            session.progress(&format!("warning: {chain}: {doubt}"));
        }
    }
    let found = nodes.preconditions(&ends, Stage::BeforePaying, Speed::Normal, policy).await;
    for (code, message) in &found.warnings {
        session.progress(&format!("warning: {code}: {message}"));
    }
    for unmet in &found.unmet {
        let said = unmet_said(unmet);
        match &unmet.error {
            NodeError::Refused(refusal) => problems.refused.push((refusal.code().name(), said)),
            _ => problems.network.push(said),
        }
    }
    found.met
}

/// Returns everything that was found, in sentences.
pub(crate) fn said(found: &Preconditions) -> Vec<String> {
    let warnings = found.warnings.iter().map(|(code, message)| format!("{code}: {message}"));
    found.unmet.iter().map(unmet_said).chain(warnings).collect()
}

fn unmet_said(unmet: &Unmet) -> String {
    format!("{}: {}: {}", text::escape_untrusted(&unmet.chain), unmet.precondition, told(&unmet.error))
}

/// Checks that enough endpoints of the connected chains answer, serve their chain, and follow it.
pub(crate) async fn check_nodes(problems: &mut Problems, nodes: &Arc<Nodes<Http>>, registry: &Registry, chains: &[&str]) {
    let mut reads = JoinSet::new();
    let mut open: BTreeMap<String, (u32, Vec<String>)> = BTreeMap::new();
    let mut good = BTreeSet::new();
    for chain in chains.iter().filter(|chain| nodes.has(chain)) {
        let (Some(endpoints), Ok(profile)) = (Nodes::endpoints(nodes, chain), registry.profile(chain)) else { continue };
        open.insert((*chain).to_owned(), (endpoints.quorum, Vec::new()));
        for (index, endpoint) in endpoints.all.iter().enumerate() {
            let (nodes, chain, host) = (Arc::clone(nodes), (*chain).to_owned(), endpoint.host().to_owned());
            let provider = endpoint.provider().to_owned();
            reads.spawn(async move {
                let problem = match nodes.head(&chain, index).await {
                    Ok(head) => check_head_time(profile, head.time, show::now()).err().map(|doubt| format!("{host}: {doubt}")),
                    Err(error) => Some(spoken(&host, &error)),
                };
                (chain, provider, problem)
            });
        }
    }
    // Enough good endpoints end the wait: a slow one must not hold up the order.
    while !open.is_empty()
        && let Some(read) = reads.join_next().await
    {
        let Ok((chain, provider, problem)) = read else { continue };
        let Some((missing, found)) = open.get_mut(&chain) else { continue };
        match problem {
            Some(problem) => found.push(problem),
            None if good.insert((chain.clone(), provider)) => *missing = missing.saturating_sub(1),
            None => {}
        }
        if *missing == 0 {
            open.remove(&chain);
        }
    }
    for (chain, (missing, mut found)) in open {
        found.sort_unstable();
        problems
            .network
            .push(format!("{chain}: {missing} more of its endpoints must answer as the chain's rules demand: {}", found.join("; ")));
    }
}

fn spoken(host: &str, error: &NodeError) -> String {
    let text = told(error);
    if text.contains(host) { text } else { format!("{host}: {text}") }
}
