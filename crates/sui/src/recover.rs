//! Recovery from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. Whether a refund
//! is due is for the caller to see on chain: `initiated at + timelock < clock` in milliseconds.
//!
//! Specification: `docs/spec/sui.md#redeem-and-refund`.

use std::fmt;
use std::sync::Arc;

pub use countersign_core::Leg;
use countersign_core::chains::swap_id as formula;
use countersign_core::{Account, Code, Family, OrderRecord, RecordedLeg, Refusal, Registry, Role, Summary, Topic, U256, Warnings, number};
use sui_sdk_types::{
    Address, Argument, Command, Identifier, Input, MoveCall, Mutability, ProgrammableTransaction, SharedInput, TransactionKind,
};

use crate::gas::Gas;
use crate::htlc::{self, byte_vector};
use crate::transaction::Unsigned;
use crate::{UnsignedOrder, address};

/// Which names the pinned package has for its functions. No captured transaction shows them, so simulate the transaction
/// before sending it. If the function does not exist, use the other names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FunctionNames {
    /// `redeem` and `refund`: the published source whose swap id is that of the captured orders.
    #[default]
    Current,
    /// `redeem_swap` and `refund_swap`: the published sources before it, and the published client.
    Older,
}

impl FunctionNames {
    /// Returns the function that redeems or refunds.
    const fn function(self, role: Role) -> Identifier {
        Identifier::from_static(match (role, self) {
            (Role::Redeem, Self::Current) => "redeem",
            (Role::Redeem, Self::Older) => "redeem_swap",
            (_, Self::Current) => "refund",
            (_, Self::Older) => "refund_swap",
        })
    }
}

/// A recovery call, ready to be given a sender and gas.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The order's id, as the record has it.
    pub order_id: String,
    /// Whether the call redeems or refunds.
    pub role: Role,
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

impl fmt::Debug for Recovery {
    /// Leaves out the call, because that of a redemption holds the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Recovery");
        shown.field("order_id", &self.order_id).field("role", &self.role).field("to", &self.to).field("amount", &self.amount);
        shown.finish_non_exhaustive()
    }
}

impl Recovery {
    /// Calls the functions by these names.
    #[must_use]
    pub fn with_names(mut self, names: FunctionNames) -> Self {
        if let TransactionKind::ProgrammableTransaction(transaction) = Arc::make_mut(&mut self.kind) {
            for command in &mut transaction.commands {
                if let Command::MoveCall(call) = command {
                    call.function = names.function(self.role);
                }
            }
        }
        self
    }

    /// Returns a redemption with a secret that the contract refuses, as it refuses any but the right one. A node may see it: if
    /// simulating it fails for another reason, so will the redemption. A refund is returned as it is.
    #[must_use]
    pub fn rehearsal(mut self) -> Self {
        if self.role == Role::Redeem
            && let TransactionKind::ProgrammableTransaction(transaction) = Arc::make_mut(&mut self.kind)
            && let Some(secret) = transaction.inputs.last_mut()
        {
            *secret = Input::Pure(byte_vector(&[0; 32]));
        }
        self
    }

    /// Makes the call a transaction of `sender`, who need not be a party of the swap.
    ///
    /// A swap id that does not follow from the record is a warning of the result ([`Code::SwapIdUnchecked`]).
    ///
    /// # Errors
    ///
    /// [`Code::GasCoinCount`], [`Code::GasCoinTwice`] or [`Code::GasCoinIsInput`]; [`Code::KindMalformed`] if the kind was
    /// changed into one that has no bytes.
    pub fn prepare(&self, sender: Address, gas: &Gas) -> Result<UnsignedOrder, Refusal> {
        let bytes =
            bcs::to_bytes(self.kind.as_ref()).map_err(|error| Refusal::new(Code::KindMalformed, "").with_reason(error.to_string()))?;
        let unsigned = Unsigned::new(self.role, Arc::clone(&self.kind), &bytes, sender, gas)?;
        let mut summary = Summary::default();
        let text = format!("{} of swap {} pays {} base units to {}", self.role, hex::encode(self.swap_id), self.amount, self.to);
        summary.add_values(Topic::Payout, text, [address::to_account(self.to).into(), self.amount.into()]);
        let mut warnings = Warnings::default();
        if !self.swap_id_recomputed {
            warnings.warn(Code::SwapIdUnchecked);
        }
        Ok(UnsignedOrder::from_recovery(self.order_id.clone(), summary, unsigned, warnings))
    }
}

/// Returns the swap id of a Sui leg of a record, and whether it follows from the record's fields and the pinned registry object.
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the record's id is another on a network whose formula is certain, or not an id at all; and what
/// [`RecordedLeg::new`] refuses.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<([u8; 32], bool), Refusal> {
    recompute(&RecordedLeg::new(record, leg, registry, Family::Sui)?)
}

/// Returns the call that redeems a leg with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`fn@swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Sui)?;
    leg.check_secret(secret)?;
    recovery(record, &leg, Role::Redeem, Input::Pure(byte_vector(secret)))
}

/// Returns the call that refunds a leg after its timelock.
///
/// # Errors
///
/// As [`fn@swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Sui)?;
    recovery(record, &leg, Role::Refund, Input::Shared(htlc::clock()))
}

fn registry_object(leg: &RecordedLeg<'_>) -> Result<Address, Refusal> {
    let object = leg.asset.htlc_registry.as_ref().and_then(address::from_account);
    object.ok_or_else(|| leg.refuse(Code::UnknownAsset, "asset").with_reason("no orders registry is pinned"))
}

fn recompute(leg: &RecordedLeg<'_>) -> Result<([u8; 32], bool), Refusal> {
    let refuse = || leg.refuse(Code::RecordSwapId, "swap_id").with_actual(&leg.swap.swap_id);
    let id = formula::sui(&leg.terms(), registry_object(leg)?.as_bytes());
    let given = number::bare_hex_array(&leg.swap.swap_id).map_err(|_| refuse())?;
    match id {
        Some(id) if id == given => Ok((given, true)),
        // The chain's name in the formula is only known on test networks.
        _ if !leg.asset.chain.test => Ok((given, false)),
        Some(id) => Err(refuse().with_expected(hex::encode(id))),
        None => Err(refuse()),
    }
}

/// Builds `function<T>(&mut registry, swap id, last)`.
fn recovery(record: &OrderRecord, leg: &RecordedLeg<'_>, role: Role, last: Input) -> Result<Recovery, Refusal> {
    let unpinned = |what: &'static str| leg.refuse(Code::UnknownAsset, "asset").with_reason(what);
    let (swap_id, swap_id_recomputed) = recompute(leg)?;
    let account = |account: &Account| address::from_account(account).ok_or_else(|| leg.refuse(Code::RecordMismatch, "chain"));
    let package = account(leg.htlc()?)?;
    let version = leg.asset.record.htlc.as_ref().and_then(|htlc| htlc.registry_initial_shared_version.as_deref());
    let version = version.and_then(|text| text.parse().ok()).ok_or_else(|| unpinned("no version of the orders registry is pinned"))?;
    let coin_type = htlc::coin_type(leg.asset).ok_or_else(|| unpinned("the pinned coin is not a Move type"))?;
    let registry = SharedInput::new(registry_object(leg)?, version, Mutability::Mutable);
    let call = MoveCall {
        package,
        module: Identifier::from_static(htlc::MODULE),
        function: FunctionNames::default().function(role),
        type_arguments: vec![coin_type],
        arguments: vec![Argument::Input(0), Argument::Input(1), Argument::Input(2)],
    };
    let inputs = vec![Input::Shared(registry), Input::Pure(byte_vector(&swap_id)), last];
    let kind = TransactionKind::ProgrammableTransaction(ProgrammableTransaction { inputs, commands: vec![Command::MoveCall(call)] });
    let to = account(if role == Role::Redeem { &leg.redeemer } else { &leg.initiator })?;
    let (order_id, amount) = (record.order_id.clone(), leg.swap.amount);
    Ok(Recovery { order_id, role, kind: Arc::new(kind), swap_id, swap_id_recomputed, to, amount })
}
