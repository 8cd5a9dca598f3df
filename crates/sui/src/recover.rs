//! Recovery from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls. The funds go to the redeemer or the initiator that the contract has stored. The caller must
//! check on chain whether a refund is due: `initiated at + timelock < clock`, in milliseconds.
//!
//! Specification: `docs/spec/sui.md#redeem-and-refund`.

use std::ops::Deref;
use std::sync::Arc;

pub use countersign_core::Leg;
use countersign_core::chains::swap_id as formula;
use countersign_core::reader::{Expense, check_low_fee};
use countersign_core::{
    Account, Code, Family, OrderRecord, RecordedLeg, RecoveryTerms, Refusal, Registry, Role, SentBy, SwapRecovery, U256, Warnings, number,
};
use sui_sdk_types::{
    Address, Argument, Command, Identifier, Input, MoveCall, Mutability, ObjectReference, ProgrammableTransaction, SharedInput,
    TransactionKind,
};

use crate::gas::{self, Coin, TxContext};
use crate::htlc::{self, byte_vector};
use crate::kind::Kind;
use crate::transaction::Unsigned;
use crate::{Sui, UnsignedOrder, address, reader};

/// The units of computation that every transaction costs at least. Validators refuse a budget that does not cover them.
const MIN_GAS_UNITS: u64 = 1_000;

/// The function names of the pinned package. No captured transaction shows them, so simulate the transaction before sending it. If the
/// function does not exist, use the other names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FunctionNames {
    /// `redeem` and `refund`, as in the published source whose swap ids are those of the captured orders.
    #[default]
    Current,
    /// `redeem_swap` and `refund_swap`, as in the earlier published sources and in the published client.
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

/// A recovery call, to which [`Recovery::prepare`] adds a sender and gas.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    swap: SwapRecovery<Arc<TransactionKind>, [u8; 32], Address>,
    /// Whether SUI is paid, and not another coin.
    pays_sui: bool,
    /// The digest that identifies the network, if it is known.
    genesis: Option<&'static str>,
}

impl Deref for Recovery {
    type Target = SwapRecovery<Arc<TransactionKind>, [u8; 32], Address>;

    fn deref(&self) -> &Self::Target {
        &self.swap
    }
}

impl Recovery {
    /// Returns the transaction kind: one call of the pinned package.
    #[must_use]
    pub fn kind(&self) -> &TransactionKind {
        &self.call
    }

    /// Sets the function names of the pinned package.
    #[must_use]
    pub fn with_names(mut self, names: FunctionNames) -> Self {
        if let TransactionKind::ProgrammableTransaction(transaction) = Arc::make_mut(&mut self.swap.call) {
            for command in &mut transaction.commands {
                if let Command::MoveCall(call) = command {
                    call.function = names.function(self.swap.terms.role);
                }
            }
        }
        self
    }

    /// Returns the redemption with a wrong secret, which can be shown to a node for a simulation. The contract refuses the secret. If the
    /// simulation fails for another reason, the redemption would fail for that reason too. It does not show whether the receiver can be paid:
    /// see [`Receiver`](reader::Receiver). A refund is returned unchanged.
    #[must_use]
    pub fn rehearsal(mut self) -> Self {
        if self.terms.role == Role::Redeem
            && let TransactionKind::ProgrammableTransaction(transaction) = Arc::make_mut(&mut self.swap.call)
            && let Some(secret) = transaction.inputs.last_mut()
        {
            *secret = Input::Pure(byte_vector(&[0; 32]));
        }
        self
    }

    /// Selects the coins that pay for gas, as [`Deposit::choose_gas`](crate::Deposit::choose_gas) does. The budget is in MIST.
    ///
    /// # Errors
    ///
    /// [`Code::InsufficientFunds`] at `/gas_payment` if the [`MAX_GAS_COINS`](crate::MAX_GAS_COINS) largest coins do not cover it.
    pub fn choose_gas(&self, coins: &[Coin], budget: u64) -> Result<Vec<ObjectReference>, Refusal> {
        gas::choose_gas(coins, 0, budget)
    }

    /// Prepares the transaction in which the sender makes the call: see [`TxContext::sent_by`]. The sender need not be a party to the swap.
    ///
    /// The result has the warning [`Code::SwapIdUnchecked`] if the swap id was not recomputed, and [`Code::FeeAbovePayout`] if the
    /// transaction may cost more than it pays.
    ///
    /// # Errors
    ///
    /// [`Code::GasCoinCount`], [`Code::GasCoinTwice`] or [`Code::GasCoinIsInput`]; [`Code::AddressBalancePayment`] or
    /// [`Code::WalletChainMismatch`] for a payment from the address balance; [`Code::KindMalformed`] or
    /// [`Code::KindNotProgrammable`] if `kind` was changed to a value that cannot be encoded, or to another kind.
    pub fn prepare(&self, context: SentBy<Address, TxContext>) -> Result<UnsignedOrder, Refusal> {
        let SentBy { sender, context: gas, accepts_low_fee } = context;
        let TransactionKind::ProgrammableTransaction(transaction) = self.call.as_ref() else {
            return Err(Refusal::new(Code::KindNotProgrammable, ""));
        };
        let bytes = bcs::to_bytes(&Kind::ProgrammableTransaction(transaction))
            .map_err(|error| Refusal::new(Code::KindMalformed, "").with_reason(error.to_string()))?;
        let unsigned = Unsigned::new(self.terms.role, Arc::clone(&self.call), &bytes, sender, &gas, self.genesis)?;
        let summary = self.terms.describe(&hex::encode(self.swap_id));
        let mut warnings = Warnings::default();
        if !self.swap_id_recomputed {
            warnings.warn(Code::SwapIdUnchecked);
        }
        let needed = gas.price.saturating_mul(MIN_GAS_UNITS);
        if gas.price == 0 || gas.budget < needed {
            let why = format!(
                "a budget of {} MIST at {} MIST per unit, and every transaction costs {MIN_GAS_UNITS} units",
                gas.budget, gas.price
            );
            check_low_fee(self.terms.role, accepts_low_fee, "/gas_budget", &why, &mut warnings)?;
        }
        self.expense(gas.budget).warn(&mut warnings);
        Ok(UnsignedOrder::from_recovery(self.terms.recovered(summary, unsigned, warnings), Sui(())))
    }
}

impl Recovery {
    /// Returns what a transaction with this gas budget in MIST may cost, and what it pays.
    #[must_use]
    pub fn expense(&self, budget: u64) -> Expense {
        Expense { role: self.terms.role, cost: U256::from(budget), pays: self.pays_sui.then_some(self.terms.amount), unit: ("MIST", 9) }
    }
}

/// Returns the recorded swap id of a Sui leg, and whether the formula gives the same one from the record's other fields and the pinned
/// orders registry: see [`SwapRecovery::swap_id_recomputed`].
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the id is not 64 hex digits, or is not the one that a certain formula gives; [`Code::UnknownAsset`] if no
/// orders registry is pinned; or the errors of [`RecordedLeg::new`].
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<([u8; 32], bool), Refusal> {
    recompute(&RecordedLeg::new(record, leg, registry, Family::Sui)?)
}

/// Returns the call that redeems a leg with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret does not hash to the record's secret hash, [`Code::UnknownAsset`] if the version of the orders
/// registry is not pinned, or the errors of [`fn@swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Sui)?;
    leg.check_secret(secret)?;
    recovery(record, &leg, Role::Redeem, Input::Pure(byte_vector(secret)))
}

/// Returns the call that refunds a leg after its timelock.
///
/// # Errors
///
/// As [`redeem`], without [`Code::SecretWrong`].
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
        // The chain word of the formula is known only for test networks.
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
    let pays_sui = coin_type == htlc::sui();
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
    let terms = RecoveryTerms::of_leg(record, leg, role);
    let swap = SwapRecovery { terms, call: Arc::new(kind), swap_id, swap_id_recomputed, to };
    Ok(Recovery { swap, pays_sui, genesis: reader::genesis(&leg.asset.chain.network) })
}
