//! The verification rules for the result of an EVM order.
//!
//! Specification: `docs/spec/evm.md#payload`.

use alloy_consensus::TxEnvelope;
use alloy_primitives::{Address, U256};
use countersign_core::chains::Network;
use countersign_core::json::{At, Cursor, Members};
use countersign_core::{
    ApprovalPolicy, ApprovalStep, ByteCoverage, CallPayloads, Code, FundingPath, OrderContext, Refusal, Role, SecretHash, Summary,
    SwapTerms, Warnings, family,
};
use countersign_evm_core::call::{Approve, Caller, Initiate, InitiateAbi, MAX_CALLDATA};
use countersign_evm_core::effect::SwapIdRule;
use countersign_evm_core::rules;
use countersign_evm_core::typed_data::Message;

use crate::address::{self, CODEC};
use crate::deposit::{Approval, Call, Deposit, OwnerPath};
use crate::gas;
use crate::generation;
use crate::message::RULES;
use crate::received;
use crate::transaction::{self, TxContext, Unsigned};

/// The fields of a transaction object. Any other field is refused.
const TRANSACTION_KEYS: [&str; 5] = ["chain_id", "data", "gas_limit", "to", "value"];

impl Deposit {
    /// Returns the path on which the owner pays least, with the approvals that the context names.
    ///
    /// This is the gasless path where the order offers it, and the self-funded path otherwise. If the order offers the gasless path but
    /// an approval is still to be sent, both are prepared, because the approval is the owner's own transaction. An order that pays the
    /// chain's own coin is always self-funded: it may carry a message too, but no contract can take an owner's coins by a signature.
    #[must_use]
    pub fn cheapest_path(&self, context: TxContext) -> FundingPath<TxContext> {
        let is_approved = self.approval.is_none() || context.approvals.step == ApprovalStep::AlreadyApproved;
        match (&self.typed_data, is_approved) {
            // No signature takes coins.
            (Some(_), _) if !self.initiate.value.is_zero() => FundingPath::SelfFunded(context),
            (Some(_), true) => FundingPath::Gasless,
            (Some(_), false) => FundingPath::Both(context),
            (None, _) => FundingPath::SelfFunded(context),
        }
    }
}

impl family::Deposit for Deposit {
    type Context = OwnerPath;
    type Unsigned = Unsigned;

    fn verify(order: &OrderContext<'_>, warnings: &mut Warnings, _: family::Seal<Self>) -> Result<(Self, Option<SwapTerms>), Refusal> {
        let pins = Expected::from_order(order)?;
        let payloads = CallPayloads::read(&order.result.object()?, CallPayloads::KEYS_WITH_LEGACY)?;
        let (initiate, call, timelock) = check_initiate(order, &pins, payloads.initiate, warnings)?;
        let approval = check_approval(order, &pins, payloads.approval, warnings)?;
        let typed_data = check_typed_data(order, &pins, payloads.typed_data, &call, warnings)?;
        let terms = SwapTerms {
            initiator: address::to_account(pins.owner),
            redeemer: address::to_account(call.redeemer),
            timelock,
            secret_hash: SecretHash(call.secret_hash.0),
        };
        let deposit = Self {
            chain_id: pins.chain_id,
            sender: pins.sender,
            approval,
            initiate,
            terms: call,
            typed_data,
            initiate_key: payloads.initiate_key,
            max_gas_limit: order.policy.evm.gas_limit,
            max_tx_gas: order.source.chain.profile.max_tx_gas,
            swap_id_rule: SwapIdRule::new(order, timelock),
        };
        deposit.warn_about_gas(ApprovalStep::AsVerified, None, warnings);
        Ok((deposit, Some(terms)))
    }

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe(self, summary);
    }

    fn describe_prepared(&self, unsigned: &Unsigned, summary: &mut Summary) {
        crate::summary::describe_prepared(self, unsigned, summary);
    }

    fn warn_about_wallet(&self, owner: &OwnerPath, warnings: &mut Warnings) {
        if let Some(calls) = owner.path.self_funded() {
            calls.warn(warnings);
            self.warn_about_gas(calls.approvals.step, calls.gas_limit, warnings);
        }
    }

    fn settled_warnings(&self, unsigned: &Unsigned) -> Vec<Code> {
        let mut settled = countersign_evm_core::summary::settled_warnings(unsigned, self.terms.amount);
        // The limits of what is sent are judged again.
        settled.extend([Code::GasLimitAboveCap, Code::FeeTooLow]);
        settled
    }

    fn coverage(&self) -> Vec<ByteCoverage> {
        crate::summary::coverage(self)
    }

    fn prepare(&self, OwnerPath { path, has_code, .. }: &OwnerPath, _: family::Seal<Self>) -> Result<Unsigned, Refusal> {
        Ok(transaction::prepare(self, path)?.with_code(*has_code))
    }

    fn read_transaction(&self, bytes: &[u8], _: family::Seal<Self>) -> Result<TxEnvelope, Refusal> {
        received::from_bytes(bytes)
    }

    fn matches(&self, transaction: &TxEnvelope, warnings: &mut Warnings) -> Result<Role, Refusal> {
        transaction::matches(self, transaction, warnings)
    }
}

/// The values of the registry and the request that the payload must equal.
struct Expected {
    chain_id: u64,
    htlc: Address,
    token: Option<Address>,
    owner: Address,
    sender: Address,
    caller: Caller,
}

impl Expected {
    fn from_order(order: &OrderContext<'_>) -> Result<Self, Refusal> {
        let Network::Evm(chain_id) = order.source.chain.network else {
            return Err(At::REQUEST.refuse_below(Code::UnsupportedFamily, "/source/asset"));
        };
        let convert = address::from_account;
        let (htlc, token, owner) = (order.pinned_htlc(convert)?, order.pinned_token(convert)?, order.owner_as(convert)?);
        let delegate = order.delegate.as_ref().and_then(convert);
        Ok(Self {
            chain_id,
            htlc,
            token,
            owner,
            sender: delegate.unwrap_or(owner),
            caller: if delegate.is_some() { Caller::Delegate } else { Caller::Owner },
        })
    }
}

/// Checks the chain, contract, gas limit and value of a transaction object. Returns the call, whose data is not checked yet.
fn check_transaction(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: &Cursor<'_, '_>,
    to: (Address, Code),
    value: U256,
) -> Result<Call, Refusal> {
    let members: Members<'_, '_> = cursor.object()?;
    members.only(&TRANSACTION_KEYS)?;
    let chain = members.need("chain_id")?;
    if chain.integer()? != pins.chain_id {
        return Err(chain.refuse(Code::ChainMismatch).with_expected(pins.chain_id));
    }
    let contract = members.need("to")?;
    if address::read(pins.chain_id, contract)? != to.0 {
        return Err(contract.refuse(to.1).with_expected(to.0.to_string()));
    }
    let coins = members.need("value")?;
    if coins.hex_number()? != value {
        return Err(coins.refuse(Code::ValueMismatch).with_expected(format!("{value:#x}")));
    }
    let limit = members.need("gas_limit")?;
    let gas_limit = gas::check_limit(order.policy.evm.gas_limit, limit.hex_number()?, &|code| limit.refuse(code))?;
    let data = members.need("data")?.hex_bytes(MAX_CALLDATA)?.into();
    Ok(Call { to: to.0, value, gas_limit, data })
}

fn check_initiate(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: Cursor<'_, '_>,
    warnings: &mut Warnings,
) -> Result<(Call, Initiate, u64), Refusal> {
    let value = if order.is_native() { order.request.source.amount } else { U256::ZERO };
    let call = check_transaction(order, pins, &cursor, (pins.htlc, Code::UnknownContract), value)?;
    let at = cursor.at().key("data");
    let terms = Initiate::decode(&call.data, pins.caller, InitiateAbi::All, &at)?;
    generation::check_call(order, &terms, &at)?;
    let timelock = rules::check_arguments(order, &terms, CODEC, &at, warnings)?;
    Ok((call, terms, timelock))
}

fn check_approval(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: Option<Cursor<'_, '_>>,
    warnings: &mut Warnings,
) -> Result<Option<Approval>, Refusal> {
    let Some(cursor) = cursor else { return Ok(None) };
    let Some(token) = pins.token else { return Err(cursor.at().refuse(Code::UnexpectedApproval)) };
    let mut call = check_transaction(order, pins, &cursor, (token, Code::UnknownToken), U256::ZERO)?;
    let at = cursor.at().key("data");
    let proposed = Approve::decode(&call.data, &at)?;
    let signed = rules::check_approval(order, proposed, pins.htlc, CODEC, &at, warnings)?;
    if signed != proposed {
        call.data = signed.encode().into();
    }
    let is_exact = order.policy.approvals != ApprovalPolicy::AsProposed;
    Ok(Some(Approval { call, proposed, signed, is_exact }))
}

fn check_typed_data(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: Option<Cursor<'_, '_>>,
    call: &Initiate,
    warnings: &mut Warnings,
) -> Result<Option<Message>, Refusal> {
    let Some(cursor) = cursor else { return Ok(None) };
    if pins.caller == Caller::Delegate {
        return Err(cursor.at().refuse(Code::TypedDataWithDelegate));
    }
    let message = Message::read(order, cursor, pins.chain_id, pins.htlc, call, RULES)?;
    rules::check_pinned_version(order, &cursor, &message)?;
    generation::check_message(order, &cursor, &message)?;
    if message.terms.destination_data.is_some() {
        warnings.warn(Code::GaslessFormUnproven);
    }
    Ok(Some(message))
}
