//! Rules for every registry, the wallet's own and the service's: known names have their known ids, every account can have an
//! owner, and a contract has one meaning (`docs/spec/batch.md#registry-rules`).

use std::collections::BTreeMap;

use countersign_chains::{Account, Family, profile, taproot};

use super::{Asset, Registry};
use crate::report::text::escape_untrusted;

/// Returns why an account cannot be a party; `None` if it can. Nobody owns the zero address, and anybody can sign for a key whose
/// secret is known.
pub(super) fn fault(account: &Account) -> Option<&'static str> {
    if account.is_zero() {
        return Some("is zero");
    }
    let key = account.array().filter(|_| account.family() == Family::Bitcoin);
    key.is_some_and(taproot::has_known_secret).then_some("is a key that anybody can sign for")
}

/// Requires that a known chain name has its known id, and a known id its known name.
pub(super) fn check_name(chain: &str, id: &str) -> Result<(), String> {
    let Some(known) = profile::misnamed(chain, id) else { return Ok(()) };
    Err(if known.name == chain {
        format!("the id of {chain} is {}, not {}", known.id, escape_untrusted(id))
    } else {
        format!("{id} is the id of {}, not of {chain}", known.name)
    })
}

/// Requires that an asset's contracts are possible: none is zero or a key with a known secret, and the HTLC is not the token. The chain's
/// own coin has its own decimals: they decide how much an amount is, and no contract can be asked for them.
pub(super) fn check_contracts(asset: &Asset) -> Result<(), String> {
    let id = &asset.record.id;
    if let (None, Some(decimals)) = (&asset.token, asset.chain.family().coin_decimals())
        && asset.record.decimals != decimals
    {
        return Err(format!("{id} is a coin with {decimals} decimals, not {}", asset.record.decimals));
    }
    let token = asset.token.as_ref().and_then(|token| token.account.as_ref());
    for (what, account) in [("HTLC", asset.htlc.as_ref()), ("token", token), ("registry object", asset.htlc_registry.as_ref())] {
        if let Some(fault) = account.and_then(fault) {
            return Err(format!("the {what} of {id} {fault}"));
        }
    }
    if token.is_some() && token == asset.htlc.as_ref() {
        return Err(format!("the HTLC of {id} is its token"));
    }
    Ok(())
}

/// The HTLCs and tokens of every chain, each with the name of an asset.
pub(super) type Contracts = BTreeMap<(String, Account), String>;

/// Returns the HTLCs and tokens of every chain.
pub(super) fn contracts(registry: &Registry) -> Contracts {
    let mut contracts = Contracts::new();
    for asset in registry.assets() {
        let token = asset.token.as_ref().and_then(|token| token.account.as_ref());
        for account in asset.htlc.iter().chain(token) {
            contracts.insert((asset.record.chain.clone(), account.clone()), asset.record.id.to_string());
        }
    }
    contracts
}

/// Requires that a solver's account is not a contract of the chain: no contract can redeem, and the internal key of an HTLC
/// has no owner.
pub(super) fn check_solver(contracts: &Contracts, chain: &str, account: &Account) -> Result<(), String> {
    if let Some(fault) = fault(account) {
        return Err(format!("the account of a solver on {chain} {fault}"));
    }
    match contracts.get(&(chain.to_owned(), account.clone())) {
        Some(asset) => Err(format!("the account of a solver on {chain} is a contract of {asset}")),
        None => Ok(()),
    }
}

/// Returns whether two assets may share their HTLC. Where an HTLC holds one token, what is signed would be the same for both, and only what
/// is shown would differ.
pub(super) fn may_share_htlc(a: &Asset, b: &Asset) -> bool {
    let token = |asset: &Asset| asset.token.as_ref().and_then(|token| token.account.clone());
    !a.chain.family().is_htlc_of_one_token() || (token(a) == token(b) && a.record.decimals == b.record.decimals)
}

/// Returns what the assets of one token have in common. On Sui, that is the coin type as it is written.
pub(super) fn token_key(asset: &Asset) -> Option<SharedKey> {
    let token = asset.token.as_ref()?;
    let text = if token.account.is_some() { "" } else { &token.text };
    Some((format!("{} {text}", asset.record.chain), token.account.clone()))
}

/// An entry that another one contradicts.
pub(super) struct Clash {
    pub(super) reason: String,
    /// The member of the entry that the other one contradicts; empty for the entry as a whole.
    pub(super) member: &'static str,
    /// Whether an entry before this one contradicts it.
    pub(super) is_later: bool,
}

/// What entries must not share unless they agree: a name or id, or an HTLC or a token of a chain.
pub(super) type SharedKey = (String, Option<Account>);

/// Finds the entries that share a key with others, unless all of them agree with the first. None of them wins: nothing tells
/// which is right.
pub(super) fn clashes<'e, T: 'e>(
    entries: &mut dyn Iterator<Item = (usize, &'e T)>,
    key: &dyn Fn(&T) -> SharedKey,
    agree: &dyn Fn(&T, &T) -> bool,
    reason: &dyn Fn(&T, &T) -> String,
) -> BTreeMap<usize, Clash> {
    let clash = |reason, is_later| Clash { reason, member: "", is_later };
    let mut groups: BTreeMap<SharedKey, Vec<(usize, &T)>> = BTreeMap::new();
    for (index, entry) in entries {
        groups.entry(key(entry)).or_default().push((index, entry));
    }
    let mut clashes = BTreeMap::new();
    for group in groups.values() {
        let [(first, one), others @ ..] = group.as_slice() else { continue };
        let Some((_, other)) = others.iter().find(|(_, other)| !agree(one, other)) else { continue };
        clashes.insert(*first, clash(reason(one, other), false));
        for (index, entry) in others {
            clashes.insert(*index, clash(reason(entry, one), true));
        }
    }
    clashes
}
