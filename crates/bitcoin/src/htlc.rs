//! The taproot HTLC: the keys of an order record, the leaves, the control blocks and the address.
//!
//! The tree is `[redeem, [refund, instant refund]]` under the pinned internal key, which has no known secret key. Script
//! bytes, hashes and the tweak come from `countersign_chains::taproot`, which all families use to recompute swap ids.
//!
//! Specification: `docs/spec/bitcoin.md#functions`.

use bitcoin::ScriptBuf;
use bitcoin::taproot::{LeafVersion, TapLeafHash};
use countersign_core::chains::taproot::{self, LEAF_VERSION};
pub use countersign_core::chains::taproot::{Htlc, Output};
use countersign_core::chains::{Account, address};
use countersign_core::wire::SwapRecord;
use countersign_core::{Asset, Code, OrderContext, Refusal, SecretHash};

use crate::address::Chain;

/// A leaf of the HTLC's tree, which is one of the scripts that can spend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leaf {
    /// `OP_SHA256 <secret hash> OP_EQUALVERIFY <redeemer> OP_CHECKSIG`
    Redeem,
    /// `<timelock> OP_CHECKSEQUENCEVERIFY OP_DROP <initiator> OP_CHECKSIG`
    Refund,
    /// `<initiator> OP_CHECKSIG <redeemer> OP_CHECKSIGADD OP_2 OP_NUMEQUAL`
    InstantRefund,
}

/// An HTLC with its computed output key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tree {
    /// The keys and terms in the scripts.
    pub htlc: Htlc,
    /// The leaf hashes, the Merkle root and the output key.
    pub output: Output,
}

impl Tree {
    /// Computes the output key; `None` if the internal key is not a point of the curve.
    #[must_use]
    pub fn new(htlc: Htlc) -> Option<Self> {
        Some(Self { output: htlc.output()?, htlc })
    }

    /// Computes the output key under the internal key that is pinned for an asset; `None` if it is not the key of the HTLC.
    pub(crate) fn of_asset(htlc: Htlc, asset: &Asset) -> Option<Self> {
        Some(Self { output: htlc.output_under(asset.internal_key()?)?, htlc })
    }

    /// Returns the script pubkey: `OP_1 <output key>`, 34 bytes.
    #[must_use]
    pub fn script_pubkey(&self) -> ScriptBuf {
        ScriptBuf::from_bytes([&[0x51, 0x20][..], &self.output.key].concat())
    }

    /// Returns the script of a leaf.
    #[must_use]
    pub fn script(&self, leaf: Leaf) -> ScriptBuf {
        ScriptBuf::from_bytes(match leaf {
            Leaf::Redeem => self.htlc.redeem_script(),
            Leaf::Refund => self.htlc.refund_script(),
            Leaf::InstantRefund => self.htlc.instant_refund_script(),
        })
    }

    /// Returns the hash of a leaf.
    #[must_use]
    pub fn leaf_hash(&self, leaf: Leaf) -> TapLeafHash {
        TapLeafHash::from_script(&self.script(leaf), LeafVersion::TapScript)
    }

    /// Returns the control block of a leaf: leaf version and parity, internal key, path to the root. It has 65 bytes for the redeem leaf
    /// and 97 for the others.
    #[must_use]
    pub fn control_block(&self, leaf: Leaf) -> Vec<u8> {
        let Output { redeem_leaf, refund_leaf, instant_refund_leaf, .. } = &self.output;
        let path = match leaf {
            Leaf::Redeem => taproot::branch_hash(*refund_leaf, *instant_refund_leaf).to_vec(),
            Leaf::Refund => [*instant_refund_leaf, *redeem_leaf].concat(),
            Leaf::InstantRefund => [*refund_leaf, *redeem_leaf].concat(),
        };
        [&[LEAF_VERSION | u8::from(self.output.parity_odd)], &self.htlc.internal_key[..], &path].concat()
    }

    /// Returns the deposit address on a chain.
    #[must_use]
    pub fn address(&self, chain: Chain) -> String {
        chain.format_script(&self.script_pubkey())
    }
}

/// Creates a refusal located at a field of a swap record.
pub(crate) type RefuseMember<'m> = &'m dyn Fn(Code, &str) -> Refusal;

/// Returns the internal key that is pinned for an asset; `None` if none is pinned.
pub(crate) fn internal_key(asset: &Asset) -> Option<[u8; 32]> {
    asset.htlc.as_ref().and_then(Account::array)
}

/// Reads the HTLC of a swap record. If a party is written as an address, its key is the one in `delegate`. `is_known` returns whether
/// the text of a key was checked to be a point before.
///
/// # Errors
///
/// [`Code::UnknownAsset`], [`Code::MissingField`], [`Code::RecordMismatch`] or [`Code::TimelockTooLong`], at the field.
pub(crate) fn from_record(
    asset: &Asset,
    chain: Chain,
    swap: &SwapRecord,
    is_known: &dyn Fn(&str) -> bool,
    refuse: RefuseMember<'_>,
) -> Result<Htlc, Refusal> {
    let internal_key =
        internal_key(asset).ok_or_else(|| refuse(Code::UnknownAsset, "asset").with_reason("no internal key is pinned for the asset"))?;
    let mut delegate = swap.delegate.as_deref();
    let mut party = |member: &str, text: &str| {
        let read = |member: &str, text: &str| {
            address::parse_xonly_unless_known(text, is_known).map_err(|error| {
                refuse(Code::RecordMismatch, member).with_reason(error.to_string()).with_expected("an x-only key").with_actual(text)
            })
        };
        if address::is_key(text) {
            return read(member, text);
        }
        chain.script(text, "").map_err(|_| {
            refuse(Code::RecordMismatch, member).with_expected("an x-only key or an address of this chain").with_actual(text)
        })?;
        // The delegate is the key of only one party.
        let key = delegate.take().ok_or_else(|| refuse(Code::MissingField, "delegate"))?;
        read("delegate", key)
    };
    let (initiator, redeemer) = (party("initiator", &swap.initiator)?, party("redeemer", &swap.redeemer)?);
    let timelock = u16::try_from(swap.timelock)
        .map_err(|_| refuse(Code::TimelockTooLong, "timelock").with_expected("at most 65535 blocks").with_actual(swap.timelock))?;
    Ok(Htlc { internal_key, initiator, redeemer, secret_hash: swap.secret_hash.0, timelock })
}

/// Searches for the HTLC of an output key, over the pinned solvers and every timelock that the policy allows.
pub(crate) fn search(order: &OrderContext<'_>, output_key: &[u8; 32], initiator: [u8; 32], secret_hash: SecretHash) -> Option<Tree> {
    /// The usual timelocks of the service for source legs, which are tried first.
    const COMMON_TIMELOCKS: [u16; 2] = [144, 576];
    let internal_key = internal_key(order.source)?;
    let max = u16::try_from(order.policy.bitcoin.timelock).unwrap_or(u16::MAX);
    let timelocks = || {
        COMMON_TIMELOCKS.into_iter().filter(|usual| *usual <= max).chain((1..=max).filter(|timelock| !COMMON_TIMELOCKS.contains(timelock)))
    };
    let solvers = order.registry.solvers_of(order.source.chain_name());
    let keys: Vec<[u8; 32]> = solvers.iter().filter_map(|solver| solver.account.array()).filter(|key| *key != initiator).collect();
    timelocks()
        .flat_map(|timelock| keys.iter().map(move |redeemer| (timelock, *redeemer)))
        .map(|(timelock, redeemer)| Htlc { internal_key, initiator, redeemer, secret_hash: secret_hash.0, timelock })
        .filter_map(|htlc| Tree::of_asset(htlc, order.source))
        .find(|tree| tree.output.key == *output_key)
}
