//! Invoke transactions of version 3: their hash, validation, fees and execution.

use std::collections::BTreeMap;

use alloy_primitives::U256;
use starknet_core::types::{
    BroadcastedInvokeTransactionV3, Call, DataAvailabilityMode, Event, ExecuteInvocation, ExecutionResources, ExecutionResult, FeeEstimate,
    FunctionInvocation, InvokeTransactionTrace, ResourceBounds, RevertedInvocation, SimulatedTransaction, StarknetError, TransactionTrace,
};
use starknet_crypto::{Felt, poseidon_hash_many};

use super::contracts::{NONCES, STRK, Slot, View};
use super::felts::{ACCOUNT_CLASS, after, is_signed, selector, short};
use super::ledger::{At, Ledger};
use crate::chains::engine::Change;

pub(super) type Invoke = BroadcastedInvokeTransactionV3;

/// The prices of a unit of L1 gas, L2 gas and L1 data gas, in FRI.
pub(super) const PRICES: [u64; 3] = [45_000_000_000_000, 3_000_000_000, 60_000];
/// The account that receives the fees.
pub(super) const SEQUENCER: Felt = Felt::from_hex_unchecked("0x1176a1bd84444c89232ec27754698e5d2e7e1a7f1539f12027f28b23ec9f3d8");
/// The transaction version for fee estimates.
const QUERY: Felt = Felt::from_hex_unchecked("0x100000000000000000000000000000003");
/// The L1 gas, L2 gas and L1 data gas of every transaction, and the part of the L2 gas that validation takes.
const GAS: [u64; 3] = [0, 3_000_000, 512];
const VALIDATION: u64 = 500_000;
/// The names of the resources, in hashes and in messages.
const RESOURCES: [(&[u8; 8], &str); 3] = [(b"\0\0L1_GAS", "l1_gas"), (b"\0\0L2_GAS", "l2_gas"), (b"\0L1_DATA", "l1_data_gas")];

fn bounds(transaction: &Invoke) -> [&ResourceBounds; 3] {
    let bounds = &transaction.resource_bounds;
    [&bounds.l1_gas, &bounds.l2_gas, &bounds.l1_data_gas]
}

/// Returns the hash of a transaction, which its sender signs.
pub(super) fn hash_of(transaction: &Invoke, chain_id: Felt) -> Felt {
    let mut fees = vec![Felt::from(transaction.tip)];
    for ((name, _), bound) in RESOURCES.iter().zip(bounds(transaction)) {
        let parts = [&name[..], &bound.max_amount.to_be_bytes(), &bound.max_price_per_unit.to_be_bytes()].concat();
        fees.push(Felt::from_bytes_be_slice(&parts));
    }
    let mode = |mode: &DataAvailabilityMode| u64::from(*mode == DataAvailabilityMode::L2);
    let modes = mode(&transaction.nonce_data_availability_mode) << 32 | mode(&transaction.fee_data_availability_mode);
    poseidon_hash_many(&[
        short("invoke"),
        if transaction.is_query { QUERY } else { Felt::THREE },
        transaction.sender_address,
        poseidon_hash_many(&fees),
        poseidon_hash_many(&transaction.paymaster_data),
        chain_id,
        transaction.nonce,
        modes.into(),
        poseidon_hash_many(&transaction.account_deployment_data),
        poseidon_hash_many(&transaction.calldata),
    ])
}

/// Returns whether a transaction may replace another: it must offer at least a tenth more.
pub(super) fn outbids(new: &Invoke, old: &Invoke) -> bool {
    let offers = |one: &Invoke| [one.resource_bounds.l2_gas.max_price_per_unit, one.tip.into()];
    offers(new).into_iter().zip(offers(old)).all(|(new, old)| new >= old.saturating_add(old.div_ceil(10)))
}

/// Returns the total cost of amounts at prices, in FRI.
fn cost(amounts: [u64; 3], prices: [u128; 3], tip: u64) -> u128 {
    let [_, l2_gas, _] = amounts;
    let tips = u128::from(l2_gas).saturating_mul(tip.into());
    amounts.into_iter().zip(prices).fold(tips, |sum, (amount, price)| sum.saturating_add(u128::from(amount).saturating_mul(price)))
}

/// The outcome of a transaction.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The reason of a revert, as in receipts.
    pub(super) reverted: Option<String>,
    /// The account's call with its inner calls, unless it reverted.
    invocation: Option<FunctionInvocation>,
    pub(super) events: Vec<Event>,
    pub(super) changes: Vec<(Felt, Change)>,
    /// L1 gas, L2 gas and L1 data gas.
    pub(super) gas: [u64; 3],
    pub(super) fee: u128,
    pub(super) writes: BTreeMap<Slot, Felt>,
}

impl Outcome {
    pub(super) fn resources(&self) -> ExecutionResources {
        let [l1_gas, l2_gas, l1_data_gas] = self.gas;
        ExecutionResources { l1_gas, l2_gas, l1_data_gas }
    }

    pub(super) fn estimate(&self) -> FeeEstimate {
        let [l1_gas_consumed, l2_gas_consumed, l1_data_gas_consumed] = self.gas;
        let [l1_gas_price, l2_gas_price, l1_data_gas_price] = PRICES.map(u128::from);
        FeeEstimate {
            l1_gas_consumed,
            l1_gas_price,
            l2_gas_consumed,
            l2_gas_price,
            l1_data_gas_consumed,
            l1_data_gas_price,
            overall_fee: self.fee,
        }
    }

    pub(super) fn result(&self) -> ExecutionResult {
        self.reverted.clone().map_or(ExecutionResult::Succeeded, |reason| ExecutionResult::Reverted { reason })
    }

    pub(super) fn simulated(&self) -> SimulatedTransaction {
        let revert_reason = self.reverted.clone().unwrap_or_default();
        let reverted = || ExecuteInvocation::Reverted(RevertedInvocation { revert_reason });
        let execute_invocation = self.invocation.clone().map_or_else(reverted, ExecuteInvocation::Success);
        let transaction_trace = TransactionTrace::Invoke(InvokeTransactionTrace {
            validate_invocation: None,
            execute_invocation,
            fee_transfer_invocation: None,
            state_diff: None,
            execution_resources: self.resources(),
        });
        SimulatedTransaction { transaction_trace, fee_estimation: self.estimate() }
    }
}

impl Ledger {
    /// Checks that the sender exists and that its signature is valid.
    pub(super) fn validate(&self, at: At, transaction: &Invoke) -> Result<(), StarknetError> {
        let sender = transaction.sender_address;
        if self.view(at).class_of(sender) != Ok(ACCOUNT_CLASS) {
            return Err(StarknetError::ValidationFailure(format!("Requested contract address {sender:#x} is not deployed.")));
        }
        if !is_signed(sender, hash_of(transaction, self.chain_id), &transaction.signature) {
            return Err(StarknetError::ValidationFailure(format!("Account: invalid signature. Sender: {sender:#x}")));
        }
        Ok(())
    }

    /// Checks that the nonce is the sender's next one.
    pub(super) fn check_nonce(&self, at: At, transaction: &Invoke) -> Result<(), StarknetError> {
        let (nonce, next) = (transaction.nonce, self.nonce(at, transaction.sender_address));
        let refused = || StarknetError::InvalidTransactionNonce(format!("Account nonce: {next}; got: {nonce}."));
        if nonce == next { Ok(()) } else { Err(refused()) }
    }

    /// Checks that the resource bounds cover the prices and the validation, and that the sender can pay for them.
    pub(super) fn check_bounds(&self, at: At, transaction: &Invoke) -> Result<(), StarknetError> {
        let bounds = bounds(transaction);
        let [_, l2_gas, _] = bounds;
        if bounds.iter().zip(PRICES).any(|(bound, price)| bound.max_price_per_unit < price.into()) || l2_gas.max_amount < VALIDATION {
            return Err(StarknetError::InsufficientResourcesForValidate);
        }
        let max = cost(bounds.map(|bound| bound.max_amount), bounds.map(|bound| bound.max_price_per_unit), transaction.tip);
        let has = self.view(at).balance(STRK, transaction.sender_address);
        if has < U256::from(max) { Err(StarknetError::InsufficientAccountBalance) } else { Ok(()) }
    }

    /// Executes a validated transaction. The fee is charged only if `is_charged`.
    pub(super) fn execute(&self, at: At, transaction: &Invoke, is_charged: bool) -> Outcome {
        let sender = transaction.sender_address;
        let mut view = self.view(at);
        view.write(NONCES, sender, after(transaction.nonce, 1));
        let start = view.writes.clone();
        let call = Call { to: sender, selector: selector("__execute__"), calldata: transaction.calldata.clone() };
        let result = view.execute(Felt::ZERO, &call);
        let mut reverted = result.err().map(|trace| format!("Transaction execution has failed:\n0: {trace}.\n"));
        let mut gas = GAS;
        if is_charged {
            for ((used, bound), (_, name)) in gas.iter_mut().zip(bounds(transaction)).zip(RESOURCES) {
                let max = bound.max_amount;
                if *used > max && reverted.is_none() {
                    reverted = Some(format!("Insufficient max {name}: max amount: {max}, actual used: {used}."));
                }
                *used = max.min(*used);
            }
        }
        let fee = cost(gas, PRICES.map(u128::from), transaction.tip);
        if is_charged && reverted.is_none() && view.balance(STRK, sender) < U256::from(fee) {
            reverted = Some("Insufficient fee token balance.".to_owned());
        }
        if reverted.is_some() {
            view = View { writes: start, ..self.view(at) };
        }
        let invocation = view.calls.pop();
        if is_charged {
            // The balance has been compared with the resource bounds before.
            let _ = view.transfer(STRK, sender, SEQUENCER, U256::from(fee));
        }
        Outcome { reverted, invocation, events: view.events, changes: view.changes, gas, fee, writes: view.writes }
    }
}
