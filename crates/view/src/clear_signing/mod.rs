//! Clear signing: ERC-7730 descriptors, version 2, of the EVM contracts that a registry pins.
//!
//! A wallet that has a descriptor of a contract shows calls and messages of it in words. [`Descriptors::from_registry`] makes one file
//! for each of these, and none for anything else:
//!
//! | file | binds to | shows |
//! |---|---|---|
//! | `calldata-htlc-<chain id>-<address>.json` | a pinned HTLC | `initiate` and `initiateOnBehalf` in every form that `verify` accepts, `redeem`, `refund` |
//! | `calldata-token-<chain id>-<address>.json` | the token of a pinned HTLC | `approve`, if the spender is a pinned HTLC of this token |
//! | `eip712-htlc-<chain id>-<address>.json` | the domain of a pinned HTLC | `Initiate` in every form that `verify` accepts |
//!
//! The labels are the titles of a [`Summary`](countersign::Summary). Where the registry pins the generation of a contract, the
//! descriptor has only what contracts of this generation have. If it also fixes the version of the domain, the descriptor does too.
//!
//! Of the registry's free text only a pinned version of the domain becomes part of a file, where it restricts what matches: names are left out, addresses are written from their bytes, and a symbol is
//! written only as the ticker of its token, if it consists of letters, digits, `_` and `.`. Intents are constants, so no text of
//! the registry can put words or braces into them.
//!
//! What a descriptor cannot do: it does not compare a call with an order. Whoever signs has to read redeemer, amount, secret hash and
//! timelock. The format has no way to convert blocks to hours, so the timelock is shown in blocks only.
//!
//! Specification: <https://eips.ethereum.org/EIPS/eip-7730>. The contracts: `docs/spec/evm.md#generations`.

use std::collections::{BTreeMap, BTreeSet};

use countersign::evm::address;
use countersign::evm::alloy_primitives::Address;
use countersign::{
    AssetId, Registry,
    chains::Network,
    trust::{Asset, EvmGeneration, Generation},
};
use serde::Serialize;

use self::descriptor::{Context, Descriptor, Domain, Metadata, Token};
use self::formats::Pay;

mod descriptor;
mod formats;
#[cfg(test)]
mod tests;

/// The name in the domain of every HTLC's messages.
const DOMAIN_NAME: &str = countersign::evm::message::DOMAIN_NAME;
/// Maximum length of a ticker, by the schema of descriptors.
const MAX_TICKER: usize = 10;

/// The descriptors of a registry's EVM contracts.
///
/// ```
/// use countersign::Registry;
/// use countersign_view::clear_signing::Descriptors;
///
/// let registry: Registry = r#"{
///     "chains": [{"chain": "ethereum", "id": "evm:1"}],
///     "assets": [{"id": "ethereum:eth", "chain": "ethereum", "decimals": 18,
///         "htlc": {"address": "0xd7323ffE2958C4773F792cb9c522938DB3f76886", "generation": "v3"}}]
/// }"#
/// .parse()?;
/// let descriptors = Descriptors::from_registry(&registry);
/// let names: Vec<_> = descriptors.files.iter().map(|file| file.name.as_str()).collect();
/// // Native contracts of this generation have no gasless path, so there is no message to
/// // describe.
/// assert_eq!(names, ["calldata-htlc-1-0xd7323ffe2958c4773f792cb9c522938db3f76886.json"]);
/// # Ok::<(), countersign::Refusal>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Descriptors {
    /// The files, sorted by name. Equal pins give equal bytes.
    pub files: Vec<DescriptorFile>,
    /// Assets of EVM chains for which a file is missing, sorted by id, and why.
    pub left_out: Vec<LeftOut>,
}

/// A descriptor as a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DescriptorFile {
    /// The name of the file: ASCII letters, digits, `-` and `.`.
    pub name: String,
    /// The assets that pin the contract, sorted.
    pub assets: Vec<AssetId>,
    /// The descriptor: indented JSON with a line break at the end.
    pub json: String,
}

/// An asset without a descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The asset.
    pub asset: AssetId,
    /// Why there is no descriptor.
    pub reason: &'static str,
}

/// An asset's contracts.
#[derive(Clone, Copy)]
struct Pinned<'r> {
    asset: &'r Asset,
    htlc: Address,
    /// `None` for the chain's own coin.
    token: Option<Address>,
}

/// A contract of a chain, and the assets that pin it.
type Contracts<'r> = BTreeMap<(u64, Address), Vec<Pinned<'r>>>;

impl Descriptors {
    /// Writes the descriptors of every EVM contract that a registry pins.
    #[must_use]
    pub fn from_registry(registry: &Registry) -> Self {
        let (mut htlcs, mut tokens, mut left_out) = (Contracts::new(), Contracts::new(), Vec::new());
        for asset in registry.assets() {
            let Network::Evm(chain_id) = asset.chain.network else { continue };
            match pinned(asset) {
                Ok(pins) => {
                    htlcs.entry((chain_id, pins.htlc)).or_default().push(pins);
                    if let Some(token) = pins.token {
                        tokens.entry((chain_id, token)).or_default().push(pins);
                    }
                }
                Err(reason) => left_out.push(LeftOut { asset: asset.record.id.clone(), reason }),
            }
        }
        let mut files = Vec::new();
        for ((chain_id, address), pins) in &htlcs {
            match htlc(*chain_id, *address, pins, &tokens) {
                Ok(written) => files.extend(written),
                Err(reason) => leave_out(&mut left_out, pins, reason),
            }
        }
        for ((chain_id, address), pins) in &tokens {
            match token(*chain_id, *address, pins, &htlcs) {
                Ok(written) => files.push(written),
                Err(reason) => leave_out(&mut left_out, pins, reason),
            }
        }
        files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        left_out.sort_unstable_by(|one, other| (&one.asset, one.reason).cmp(&(&other.asset, other.reason)));
        left_out.dedup();
        Self { files, left_out }
    }
}

/// Why an address that is both an HTLC and a token has no descriptor.
const TWO_MEANINGS: &str = "the same address is pinned as an HTLC and as a token";

/// Returns the contracts of an asset, or why none of them is described.
fn pinned(asset: &Asset) -> Result<Pinned<'_>, &'static str> {
    let htlc = asset.htlc.as_ref().and_then(address::from_account).ok_or("no HTLC is pinned")?;
    let token = match &asset.token {
        Some(token) => Some(token.account.as_ref().and_then(address::from_account).ok_or("its token has no address")?),
        None => None,
    };
    Ok(Pinned { asset, htlc, token })
}

fn leave_out(left_out: &mut Vec<LeftOut>, pins: &[Pinned<'_>], reason: &'static str) {
    left_out.extend(pins.iter().map(|pinned| LeftOut { asset: pinned.asset.record.id.clone(), reason }));
}

/// Writes the descriptors of an HTLC: of its calls, and of its message if it has one.
fn htlc(chain_id: u64, address: Address, pins: &[Pinned<'_>], tokens: &Contracts<'_>) -> Result<Vec<DescriptorFile>, &'static str> {
    if tokens.contains_key(&(chain_id, address)) {
        return Err(TWO_MEANINGS);
    }
    // The registry refuses this too. A wrong ticker beside an amount would be worse than none.
    let pay = Pay::new(only(pins.iter().map(|pinned| pinned.token)).ok_or("its HTLC is pinned with different tokens")?);
    let accepted: BTreeSet<_> = pins.iter().flat_map(Pinned::calls).collect();
    let calls = Descriptor {
        context: Context::contract(chain_id, address),
        metadata: Metadata { contract_name: "HTLC", token: None },
        display: formats::calls(&accepted, pay),
    };
    let mut files = vec![file(&format!("calldata-htlc-{chain_id}-{address:#x}"), pins, &calls)];
    let messages: BTreeSet<_> = pins.iter().flat_map(Pinned::messages).collect();
    if !messages.is_empty() {
        let version = only(pins.iter().map(Pinned::domain_version)).flatten();
        let message = Descriptor {
            context: Context::eip712(Domain { name: DOMAIN_NAME, version, chain_id, verifying_contract: address.to_string() }),
            metadata: Metadata { contract_name: "HTLC", token: None },
            display: formats::messages(&messages, pay),
        };
        files.push(file(&format!("eip712-htlc-{chain_id}-{address:#x}"), pins, &message));
    }
    Ok(files)
}

/// Writes the descriptor of a token's approval.
fn token(chain_id: u64, address: Address, pins: &[Pinned<'_>], htlcs: &Contracts<'_>) -> Result<DescriptorFile, &'static str> {
    if htlcs.contains_key(&(chain_id, address)) {
        return Err(TWO_MEANINGS);
    }
    let ticker = only(pins.iter().map(|pinned| pinned.asset.symbol())).and_then(ticker);
    // The registry has a token with one number of decimals alone.
    let token =
        ticker.zip(pins.first()).map(|(ticker, pinned)| Token { name: ticker.clone(), ticker, decimals: pinned.asset.record.decimals });
    let spenders: BTreeSet<_> = pins.iter().map(|pinned| pinned.htlc).collect();
    let descriptor = Descriptor {
        context: Context::contract(chain_id, address),
        metadata: Metadata { contract_name: "Token", token },
        display: formats::approval(&spenders),
    };
    Ok(file(&format!("calldata-token-{chain_id}-{address:#x}"), pins, &descriptor))
}

/// A form of a function or of the message: with an initiator or destination data beside the terms, or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    on_behalf: bool,
    with_data: bool,
}

impl Pinned<'_> {
    fn generation(&self) -> Option<&'static EvmGeneration> {
        self.asset.generation.and_then(Generation::evm)
    }

    /// Returns the forms of `initiate` that `verify` accepts (`docs/spec/evm.md#generations`).
    fn calls(&self) -> impl Iterator<Item = Form> + use<> {
        let contract = self.generation().map(|generation| generation.contract(self.token.is_none()));
        let has =
            move |form: &Form| contract.is_none_or(|has| (has.on_behalf || !form.on_behalf) && (has.destination_data || !form.with_data));
        let forms = [(false, false), (false, true), (true, false), (true, true)];
        forms.map(|(on_behalf, with_data)| Form { on_behalf, with_data }).into_iter().filter(has)
    }

    /// Returns the forms of the message that `verify` accepts. Contracts of a pinned generation hash four members, and those for the
    /// chain's own coin none.
    fn messages(&self) -> impl Iterator<Item = Form> + use<> {
        let is_pinned = self.generation().is_some();
        let has_message = !is_pinned || self.token.is_some();
        [false, true]
            .map(|with_data| Form { on_behalf: false, with_data })
            .into_iter()
            .filter(move |form| has_message && (!is_pinned || !form.with_data))
    }

    /// Returns the version of the message's domain, if the registry fixes it.
    fn domain_version(&self) -> Option<&str> {
        let domain = self.asset.record.htlc.as_ref().and_then(|htlc| htlc.domain.as_ref());
        let version = domain.and_then(|domain| domain.get("version")).map(String::as_str);
        version.or_else(|| self.generation()?.domain_version)
    }
}

/// Returns the value that all items are; `None` if they differ, or if there are none.
fn only<T: PartialEq>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.all(|item| item == first).then_some(first)
}

/// Returns the ticker of a symbol; `None` if the schema of descriptors does not allow it.
fn ticker(symbol: &str) -> Option<String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let is_ticker = (1..=MAX_TICKER).contains(&symbol.len()) && symbol.bytes().all(is_allowed);
    is_ticker.then(|| symbol.to_ascii_uppercase())
}

fn file(name: &str, pins: &[Pinned<'_>], descriptor: &Descriptor<'_>) -> DescriptorFile {
    let assets = pins.iter().map(|pinned| pinned.asset.record.id.clone()).collect();
    DescriptorFile { name: format!("{name}.json"), assets, json: descriptor.to_json() }
}
