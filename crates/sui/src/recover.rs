//! The way out from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. Whether a refund
//! is due is for the caller to see on chain: `initiated at + timelock < clock` in milliseconds (protocol.md section 8).

use std::sync::Arc;

pub use countersign_core::Leg;
use countersign_core::chains::swap_id as formula;
use countersign_core::wire::OrderRecord;
use countersign_core::{Account, Code, Family, Refusal, Registry, Side, U256};
use sui_sdk_types::{
    Address, Argument, Command, Identifier, Input, MoveCall, Mutability, ProgrammableTransaction, SharedInput, TransactionKind, TypeTag,
};

use crate::address;
use crate::htlc::{self, byte_vector};
use crate::transaction::{Unsigned, Wallet};

/// Which names the pinned package has for its ways out. No capture shows them; simulate the transaction before it is sent,
/// and take the other names where it aborts for want of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Names {
    /// `redeem` and `refund`: the published source whose swap id is that of the captures.
    #[default]
    Current,
    /// `redeem_swap` and `refund_swap`: the published sources before it, and the published client.
    Older,
}

/// A recovery call, ready to be given a sender and gas.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// One call of the pinned package.
    pub kind: Arc<TransactionKind>,
    /// The swap that it ends.
    pub swap_id: [u8; 32],
    /// Whether the swap id follows from the record. It may not on main networks, whose formula is not certain.
    pub swap_id_recomputed: bool,
    /// Who gets the funds.
    pub to: Address,
    /// Base units.
    pub amount: U256,
}

impl Recovery {
    /// Gives the call a sender, who need not be a party of the swap, and gas.
    ///
    /// # Errors
    ///
    /// [`Code::GasCoinCount`], [`Code::GasCoinTwice`] or [`Code::GasCoinIsInput`].
    pub fn prepare(&self, sender: Address, wallet: &Wallet) -> Result<Unsigned, Refusal> {
        let bytes = bcs::to_bytes(self.kind.as_ref()).map_err(|_| Refusal::new(Code::Internal, "/order"))?;
        Unsigned::new(Arc::clone(&self.kind), &bytes, sender, wallet)
    }
}

/// The swap id of a Sui side of a record and whether it follows from the record's fields and the pinned registry object.
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the record's id is another on a network whose formula is certain, or no id at all; and what
/// [`Side::of`] refuses.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<([u8; 32], bool), Refusal> {
    recompute(&Side::of(record, leg, registry, Family::Sui)?)
}

/// The call that redeems a side with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry, names: Names) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Sui)?;
    side.check_secret(secret)?;
    let function = match names {
        Names::Current => "redeem",
        Names::Older => "redeem_swap",
    };
    recovery(&side, function, Input::Pure(byte_vector(secret)), &side.redeemer)
}

/// The call that refunds a side after its timelock.
///
/// # Errors
///
/// As [`swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry, names: Names) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Sui)?;
    let function = match names {
        Names::Current => "refund",
        Names::Older => "refund_swap",
    };
    recovery(&side, function, Input::Shared(htlc::clock()), &side.initiator)
}

fn registry_object(side: &Side<'_>) -> Result<Address, Refusal> {
    let object = side.asset.htlc_registry.as_ref().and_then(address::of);
    object.ok_or_else(|| side.refuse(Code::UnknownAsset, "asset").with_reason("no orders registry is pinned"))
}

fn recompute(side: &Side<'_>) -> Result<([u8; 32], bool), Refusal> {
    let refuse = || side.refuse(Code::RecordSwapId, "swap_id").with_actual(&side.swap.swap_id);
    let id = formula::sui(&side.terms(), registry_object(side)?.as_bytes());
    let given = countersign_core::number::bare_hex_array(&side.swap.swap_id).map_err(|_| refuse())?;
    match id {
        Some(id) if id == given => Ok((given, true)),
        // The word that stands for the chain is only known on test networks.
        _ if !side.asset.chain.test => Ok((given, false)),
        Some(id) => Err(refuse().with_expected(hex::encode(id))),
        None => Err(refuse()),
    }
}

/// `function<T>(&mut registry, swap id, last)`.
fn recovery(side: &Side<'_>, function: &'static str, last: Input, to: &Account) -> Result<Recovery, Refusal> {
    let unpinned = |what: &'static str| side.refuse(Code::UnknownAsset, "asset").with_reason(what);
    let (swap_id, swap_id_recomputed) = recompute(side)?;
    let package = address::of(side.htlc()?).ok_or_else(|| side.refuse(Code::Internal, "chain"))?;
    let version = side.asset.record.htlc.as_ref().and_then(|htlc| htlc.registry_initial_shared_version.as_deref());
    let version = version.and_then(|text| text.parse().ok()).ok_or_else(|| unpinned("no version of the orders registry is pinned"))?;
    let coin_type: TypeTag = match &side.asset.token {
        Some(token) => token.text.parse().map_err(|_| unpinned("the pinned coin is no Move type"))?,
        None => htlc::sui(),
    };
    let registry = SharedInput::new(registry_object(side)?, version, Mutability::Mutable);
    let call = MoveCall {
        package,
        module: Identifier::from_static(htlc::MODULE),
        function: Identifier::from_static(function),
        type_arguments: vec![coin_type],
        arguments: vec![Argument::Input(0), Argument::Input(1), Argument::Input(2)],
    };
    let inputs = vec![Input::Shared(registry), Input::Pure(byte_vector(&swap_id)), last];
    let kind = TransactionKind::ProgrammableTransaction(ProgrammableTransaction { inputs, commands: vec![Command::MoveCall(call)] });
    let to = address::of(to).ok_or_else(|| side.refuse(Code::Internal, "chain"))?;
    Ok(Recovery { kind: Arc::new(kind), swap_id, swap_id_recomputed, to, amount: side.swap.amount })
}
