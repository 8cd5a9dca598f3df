//! Recovery from an order record alone: redeem with the secret, refund after the timelock, or refund before it with the redeemer's
//! signature.
//!
//! Anyone may send these calls. The funds go to the redeemer or the initiator that the contract has stored. The caller must
//! check on chain whether a refund is due: `initiated at + timelock < block number`.
//!
//! Specification: `docs/spec/starknet.md#redeem-and-refund`.

use std::ops::Deref;

pub use countersign_core::Leg;
use countersign_core::chains::{Network, swap_id as formulas};
use countersign_core::reader::{Expense, check_low_fee};
use countersign_core::{
    Account, Code, Family, OrderRecord, RecordedLeg, RecoveryTerms, Refusal, Registry, Role, SentBy, StarknetGeneration, SwapRecovery,
    U256, Warnings,
};
use starknet_types_core::felt::Felt;

use crate::funding::TxContext;
use crate::message::{Domain, Hashes, InstantRefundMessage};
use crate::payloads::Unsigned;
use crate::reader::STRK;
use crate::signature::ExternalSignature;
use crate::transaction::Call;
use crate::{Starknet, UnsignedOrder, address, felt, htlc};

/// Units of L2 gas that no redemption or refund needs less of: those of 1,000 Cairo steps, at 100 units each. The network, the account, the
/// contract and the token each run more.
const MIN_L2_GAS: u64 = 100_000;

/// A recovery call, to which [`Recovery::prepare`] adds a sender, a nonce and fees.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    swap: SwapRecovery<Call, Felt, Felt>,
    chain_id: Felt,
    /// Whether the token is the one that pays fees.
    pays_strk: bool,
}

impl Deref for Recovery {
    type Target = SwapRecovery<Call, Felt, Felt>;

    fn deref(&self) -> &Self::Target {
        &self.swap
    }
}

impl Recovery {
    /// Returns the chain id of the pinned asset, as a short string.
    #[must_use]
    pub const fn chain_id(&self) -> Felt {
        self.chain_id
    }

    /// Prepares the transaction in which the sender makes the call: see [`TxContext::sent_by`]. The sender need not be a party to the
    /// swap. The approval of the context is not used.
    ///
    /// The result has the warning [`Code::SwapIdUnchecked`] if the swap id was not recomputed, and [`Code::FeeAbovePayout`] if the
    /// transaction may cost more than it pays.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain, or [`Code::FeeTooLow`] for a redemption with less L2 gas than any
    /// redemption needs, or at a price of zero.
    pub fn prepare(&self, context: SentBy<Felt, TxContext>) -> Result<UnsignedOrder, Refusal> {
        let SentBy { sender, context: execution, accepts_low_fee } = context;
        let invoke = execution.invoke(sender, self.chain_id, vec![self.call.clone()])?;
        let summary = self.terms.describe(&format!("{:x}", self.swap_id));
        let unsigned = Unsigned::new(sender, execution.public_key, Some((self.terms.role, invoke)), None);
        let mut warnings = Warnings::default();
        if !self.swap_id_recomputed {
            warnings.warn(Code::SwapIdUnchecked);
        }
        let l2 = &execution.resource_bounds.l2_gas;
        if l2.max_amount < MIN_L2_GAS || l2.max_price_per_unit == 0 {
            let why = format!(
                "at most {} units of L2 gas at {} FRI, and no such call needs less than {MIN_L2_GAS} units",
                l2.max_amount, l2.max_price_per_unit
            );
            check_low_fee(self.terms.role, accepts_low_fee, "/resource_bounds/l2_gas", &why, &mut warnings)?;
        }
        self.expense(execution.resource_bounds.max_fee(execution.tip)).warn(&mut warnings);
        Ok(UnsignedOrder::from_recovery(self.terms.recovered(summary, unsigned, warnings), Starknet(())))
    }
}

impl Recovery {
    /// Returns what a transaction with this maximum fee in FRI may cost, and what it pays.
    #[must_use]
    pub fn expense(&self, cost: U256) -> Expense {
        Expense { role: self.terms.role, cost, pays: self.pays_strk.then_some(self.terms.amount), unit: ("FRI", 18) }
    }
}

/// Returns the swap id of a Starknet leg of a record, and whether it was recomputed: see [`SwapRecovery::swap_id_recomputed`].
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the record has another id or one that is not a felt, or the errors of [`RecordedLeg::new`].
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<(Felt, bool), Refusal> {
    recompute(&RecordedLeg::new(record, leg, registry, Family::Starknet)?)
}

/// Returns the call that redeems a leg with the secret.
///
/// The form of the call is never guessed: a call of the wrong form fails, but still reveals the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret does not hash to the record's secret hash, [`Code::CallFormUnknown`] if the form of the call is
/// not known for the contract's generation, or the errors of [`fn@swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Starknet)?;
    leg.check_secret(secret)?;
    let id = recompute(&leg)?;
    let generation = generation_of(&leg);
    let calldata =
        htlc::redeem(generation, id.0, secret).ok_or_else(|| leg.refuse(Code::CallFormUnknown, "asset").with_actual(generation.name))?;
    recovery(record, &leg, (Role::Redeem, htlc::REDEEM), calldata, id)
}

/// Returns the call that refunds a leg after its timelock.
///
/// # Errors
///
/// The errors of [`fn@swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Starknet)?;
    let id = recompute(&leg)?;
    recovery(record, &leg, (Role::Refund, htlc::REFUND), htlc::refund(id.0), id)
}

/// A refund before the timelock, which the redeemer allows with a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct InstantRefund {
    /// The account that must sign the message.
    pub redeemer: Felt,
    /// The message that the redeemer signs.
    pub message: InstantRefundMessage,
    refund: Recovery,
}

impl InstantRefund {
    /// Returns the hashes of the message. The redeemer's account verifies a signature over [`Hashes::message_hash`].
    #[must_use]
    pub fn hashes(&self) -> Hashes {
        self.message.hashes(self.redeemer)
    }

    /// Returns the call with the redeemer's signature. Anyone may send it. The signature is not verified here, because only the
    /// redeemer's account can do that.
    #[must_use]
    pub fn with_signature(self, signature: &ExternalSignature) -> Recovery {
        let calldata = htlc::instant_refund(self.refund.swap_id, signature.felts());
        let call = Call::new(self.refund.call.to, htlc::INSTANT_REFUND, calldata);
        Recovery { swap: SwapRecovery { call, ..self.refund.swap }, ..self.refund }
    }
}

/// Returns the refund of a leg before its timelock, with the message that the redeemer must sign for it.
///
/// # Errors
///
/// [`Code::CallFormUnknown`] if the message is not known for the contract's generation, [`Code::RegistryMalformed`] if the pinned
/// domain is not a Starknet domain, or the errors of [`fn@swap_id`].
pub fn instant_refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<InstantRefund, Refusal> {
    let refund = refund(record, leg, registry)?;
    let leg = RecordedLeg::new(record, leg, registry, Family::Starknet)?;
    let generation = generation_of(&leg);
    let names_contract =
        generation.instant_refund_names_contract.ok_or_else(|| leg.refuse(Code::CallFormUnknown, "asset").with_actual(generation.name))?;
    let redeemer = address::from_account(&leg.redeemer).ok_or_else(|| leg.refuse(Code::RecordMismatch, "redeemer"))?;
    let message = InstantRefundMessage {
        domain: Domain::of_asset(leg.asset, refund.chain_id, |code| leg.refuse(code, "asset"))?,
        swap_id: refund.swap_id,
        contract: names_contract.then_some(refund.call.to),
    };
    Ok(InstantRefund { redeemer, message, refund })
}

const fn generation_of(leg: &RecordedLeg<'_>) -> &'static StarknetGeneration {
    StarknetGeneration::expected(leg.asset.generation)
}

fn chain<'l>(leg: &'l RecordedLeg<'_>) -> Result<&'l str, Refusal> {
    match &leg.asset.chain.network {
        Network::Starknet(chain) => Ok(chain),
        _ => Err(leg.refuse(Code::RecordMismatch, "chain")),
    }
}

/// Recomputes the swap id. Records contain it without `0x` and leading zeros; an id with leading zeros is accepted too.
fn recompute(leg: &RecordedLeg<'_>) -> Result<(Felt, bool), Refusal> {
    let recorded = felt::parse(&format!("0x{}", leg.swap.swap_id));
    let refuse = || leg.refuse(Code::RecordSwapId, "swap_id").with_actual(&leg.swap.swap_id);
    let Some(formula) = generation_of(leg).swap_id else {
        let id = recorded.map_err(|error| refuse().with_reason(error.to_string()))?;
        return Ok((id, false));
    };
    let htlc = leg.htlc().map(Account::bytes).unwrap_or_default();
    let ids: Vec<_> = formulas::starknet(formula, chain(leg)?, &leg.terms(), htlc).into_iter().flat_map(felt::from_bytes).collect();
    if let Ok(id) = recorded
        && ids.contains(&id)
    {
        return Ok((id, true));
    }
    let id = ids.first().ok_or_else(|| leg.refuse(Code::RecordMismatch, "chain"))?;
    Err(refuse().with_expected(format!("{id:x}")))
}

fn recovery(
    record: &OrderRecord,
    leg: &RecordedLeg<'_>,
    (role, selector): (Role, Felt),
    calldata: Vec<Felt>,
    (swap_id, swap_id_recomputed): (Felt, bool),
) -> Result<Recovery, Refusal> {
    let mismatch = || leg.refuse(Code::RecordMismatch, "chain");
    let address = |account: &Account| address::from_account(account).ok_or_else(mismatch);
    let to = address(if role == Role::Redeem { &leg.redeemer } else { &leg.initiator })?;
    let call = Call::new(address(leg.htlc()?)?, selector, calldata);
    let chain_id = felt::from_short_string(chain(leg)?).map_err(|_| mismatch())?;
    let token = leg.asset.token.as_ref().and_then(|token| token.account.as_ref()).and_then(address::from_account);
    let terms = RecoveryTerms::of_leg(record, leg, role);
    let swap = SwapRecovery { terms, call, swap_id, swap_id_recomputed, to };
    Ok(Recovery { swap, chain_id, pays_strk: token == Some(STRK) })
}
