//! The way out from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. Whether a refund
//! is due is for the caller to see on chain: `initiated at + timelock < block number`.
//!
//! No live record has confirmed how Tron's contract makes swap ids (protocol.md section 5). So the calls take the
//! record's own id, and say whether the formula gives the same.

use alloy_primitives::U256;
use countersign_core::chains::swap_id::{self, Swap, Version};
use countersign_core::chains::{Network, address as spelling};
use countersign_core::number::bare_hex_array;
use countersign_core::wire::{OrderRecord, SwapRecord};
use countersign_core::{Asset, Code, Refusal, Registry, SecretHash};

use crate::address::Address;
use crate::htlc;
use crate::transaction::{Payload, Wallet};
use crate::verify::Call;

/// Which side of an order to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leg {
    /// Where the owner paid: refund it.
    Source,
    /// Where the owner is paid: redeem it.
    Destination,
}

/// Fee limit that these calls are given, in sun: 100 TRX, enough for the contract's storage writes and one token transfer
/// at the energy prices of the last years.
pub const FEE_LIMIT: i64 = 100_000_000;

/// A recovery call, ready to be given a sender and a reference block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Chain id.
    pub chain_id: u64,
    /// The call.
    pub call: Call,
    /// The swap that it ends: the record's id.
    pub swap_id: [u8; 32],
    /// Whether the record's other fields and the pinned contract give that id by EVM's formula. Where they do not,
    /// simulate the call first: a redeem that fails has shown the secret to everybody all the same.
    pub swap_id_recomputed: bool,
    /// Who gets the funds.
    pub to: Address,
    /// Base units.
    pub amount: U256,
}

impl Recovery {
    /// Gives the call a sender, who pays for it, and a reference block; sign the payload's id, or hand its bytes to a
    /// hardware signer.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain, or a refusal of its lifetime.
    pub fn prepare(&self, sender: Address, wallet: &Wallet) -> Result<Payload, Refusal> {
        wallet.check(self.chain_id)?;
        Ok(Payload::new(sender, wallet, &self.call))
    }
}

/// The swap id of a Tron side of a record, and whether its fields and the pinned contract give it.
///
/// # Errors
///
/// [`Code::RecordVersion`], [`Code::RecordMismatch`] for a member that is no address of the chain, and
/// [`Code::RecordSwapId`] if the id is not 64 hex digits.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<([u8; 32], bool), Refusal> {
    Side::of(record, leg, registry)?.swap_id(record)
}

/// The call that redeems a side with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry)?;
    if SecretHash::of(secret) != side.swap.secret_hash {
        return Err(side.refuse(Code::SecretWrong, "secret_hash").expected(side.swap.secret_hash));
    }
    let (swap_id, recomputed) = side.swap_id(record)?;
    let to = side.address("redeemer", &side.swap.redeemer)?;
    Ok(side.recovery(htlc::redeem(swap_id, secret), swap_id, recomputed, to))
}

/// The call that refunds a side after its timelock.
///
/// # Errors
///
/// As [`swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry)?;
    let (swap_id, recomputed) = side.swap_id(record)?;
    let to = side.address("initiator", &side.swap.initiator)?;
    Ok(side.recovery(htlc::refund(swap_id), swap_id, recomputed, to))
}

struct Side<'r> {
    swap: &'r SwapRecord,
    name: &'static str,
    asset: &'r Asset,
    chain_id: u64,
    htlc: Address,
}

impl<'r> Side<'r> {
    fn of(record: &'r OrderRecord, leg: Leg, registry: &'r Registry) -> Result<Self, Refusal> {
        let (swap, name) = match leg {
            Leg::Source => (&record.source_swap, "source_swap"),
            Leg::Destination => (&record.destination_swap, "destination_swap"),
        };
        let at = || format!("/order/{name}/asset");
        let asset = registry.asset(swap.asset.as_str()).ok_or_else(|| Refusal::new(Code::UnknownAsset, at()).got(&swap.asset))?;
        let Network::Tron(chain_id) = asset.chain.network else {
            return Err(Refusal::new(Code::UnsupportedFamily, at()).expected("tron").got(asset.chain.family()));
        };
        let htlc = asset.htlc.as_ref().and_then(Address::of).ok_or_else(|| Refusal::new(Code::UnknownAsset, at()))?;
        Ok(Self { swap, name, asset, chain_id, htlc })
    }

    fn refuse(&self, code: Code, member: &str) -> Refusal {
        Refusal::new(code, format!("/order/{}/{member}", self.name))
    }

    fn address(&self, member: &str, text: &str) -> Result<Address, Refusal> {
        let account = spelling::parse(&self.asset.chain.network, text)
            .map_err(|error| self.refuse(Code::RecordMismatch, member).because(error.to_string()).got(text))?;
        Address::of(&account).ok_or_else(|| self.refuse(Code::Internal, member))
    }

    fn swap_id(&self, record: &OrderRecord) -> Result<([u8; 32], bool), Refusal> {
        let version = Version::parse(&record.version)
            .ok_or_else(|| Refusal::new(Code::RecordVersion, "/order/version").expected("v1, v2 or v3").got(&record.version))?;
        let initiator = self.address("initiator", &self.swap.initiator)?.bytes();
        let redeemer = self.address("redeemer", &self.swap.redeemer)?.bytes();
        let swap = Swap {
            secret_hash: &self.swap.secret_hash.0,
            initiator: initiator.as_slice(),
            redeemer: redeemer.as_slice(),
            timelock: self.swap.timelock,
            amount: self.swap.amount,
        };
        let recomputed = swap_id::evm(version, self.chain_id, &swap, self.htlc.bytes().as_slice());
        let id = bare_hex_array(&self.swap.swap_id)
            .map_err(|code| self.refuse(Code::RecordSwapId, "swap_id").because(code.meaning()).got(&self.swap.swap_id))?;
        Ok((id, id == recomputed))
    }

    fn recovery(&self, data: Vec<u8>, swap_id: [u8; 32], swap_id_recomputed: bool, to: Address) -> Recovery {
        let call = Call { to: self.htlc, value: 0, fee_limit: FEE_LIMIT, data: data.into() };
        Recovery { chain_id: self.chain_id, call, swap_id, swap_id_recomputed, to, amount: self.swap.amount }
    }
}
