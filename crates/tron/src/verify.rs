//! The verification rules for the result of a Tron order.
//!
//! Specification: `docs/spec/tron.md#payload`.

use countersign_core::chains::Network;
use countersign_core::json::{At, Cursor};
use countersign_core::{
    ApprovalPolicy, ApprovalStep, ByteCoverage, CallPayloads, Code, FundingPath, OrderContext, Refusal, Role, SecretHash, Summary,
    SwapTerms, Warnings, family,
};
use countersign_evm_core::call::{Approve, Caller, Initiate, InitiateAbi, MAX_CALLDATA};
use countersign_evm_core::effect::SwapIdRule;
use countersign_evm_core::rules;
use countersign_evm_core::typed_data::Message;

use crate::address::{self, Address, CODEC};
use crate::deposit::{Approval, Call, Deposit, check_fee_limit};
use crate::message::RULES;
use crate::received;
use crate::transaction::{self, SignedTronTransaction, TxContext, Unsigned};

/// Mask of the bits of the chain id that TIP-712 domains contain. The chain id is derived from the genesis block.
const DOMAIN_CHAIN_ID: u64 = 0xffff_ffff;
/// The fields of a transaction object. Any other field is refused.
const TRANSACTION_KEYS: [&str; 5] = ["chain_id", "data", "gas_limit", "to", "value"];

impl Deposit {
    /// Returns the path on which the owner pays least, with the approvals that the context names.
    ///
    /// This is the gasless path where the order offers it, and the self-funded path otherwise. If the order offers the gasless path but
    /// an approval is still to be sent, both are prepared, because the approval is the owner's own transaction. An order that pays TRX is
    /// always self-funded: it may carry a message too, but no contract can take an owner's coins by a signature.
    #[must_use]
    pub fn cheapest_path(&self, context: TxContext) -> FundingPath<TxContext> {
        let is_approved = self.approval.is_none() || context.approvals.step == ApprovalStep::AlreadyApproved;
        match (&self.typed_data, is_approved) {
            (Some(_), _) if self.initiate.value > 0 => FundingPath::SelfFunded(context),
            (Some(_), true) => FundingPath::Gasless,
            (Some(_), false) => FundingPath::Both(context),
            (None, _) => FundingPath::SelfFunded(context),
        }
    }
}

impl family::Deposit for Deposit {
    type Context = FundingPath<TxContext>;
    type Unsigned = Unsigned;

    fn verify(order: &OrderContext<'_>, warnings: &mut Warnings, _: family::Seal<Self>) -> Result<(Self, Option<SwapTerms>), Refusal> {
        order.check_no_delegate()?;
        let pins = Expected::from_order(order)?;
        let payloads = CallPayloads::read(&order.result.object()?, CallPayloads::KEYS)?;
        let (initiate, call, timelock) = check_initiate(order, &pins, payloads.initiate, warnings)?;
        let approval = check_approval(order, &pins, payloads.approval, warnings)?;
        let typed_data = check_typed_data(order, &pins, payloads.typed_data, &call)?;
        let terms = SwapTerms {
            initiator: pins.owner.to_account(),
            redeemer: CODEC.account(call.redeemer),
            timelock,
            secret_hash: SecretHash(call.secret_hash.0),
        };
        let deposit = Self {
            chain_id: pins.chain_id,
            sender: pins.owner,
            approval,
            initiate,
            terms: call,
            typed_data,
            max_fee_limit: order.policy.tron.fee_limit,
            swap_id_rule: SwapIdRule::new(order, timelock),
        };
        deposit.warn_about_limits(ApprovalStep::AsVerified, None, warnings);
        Ok((deposit, Some(terms)))
    }

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe(self, summary);
    }

    fn describe_prepared(&self, unsigned: &Unsigned, summary: &mut Summary) {
        crate::summary::describe_prepared(self, unsigned, summary);
    }

    fn warn_about_wallet(&self, path: &FundingPath<TxContext>, warnings: &mut Warnings) {
        if let Some(calls) = path.self_funded() {
            self.warn_about_limits(calls.approvals.step, calls.fee_limit, warnings);
        }
    }

    fn settled_warnings(&self, unsigned: &Unsigned) -> Vec<Code> {
        let mut settled = countersign_evm_core::summary::settled_warnings(unsigned, self.terms.amount);
        // The limits of what is sent are judged again.
        settled.push(Code::FeeTooLow);
        settled
    }

    fn coverage(&self) -> Vec<ByteCoverage> {
        crate::summary::coverage(self)
    }

    fn prepare(&self, path: &FundingPath<TxContext>, _: family::Seal<Self>) -> Result<Unsigned, Refusal> {
        transaction::prepare(self, path)
    }

    fn read_transaction(&self, bytes: &[u8], _: family::Seal<Self>) -> Result<SignedTronTransaction, Refusal> {
        received::from_bytes(bytes)
    }

    fn matches(&self, transaction: &SignedTronTransaction, warnings: &mut Warnings) -> Result<Role, Refusal> {
        transaction::matches(self, transaction, warnings)
    }
}

/// The values of the registry and the request that the payload must equal.
struct Expected {
    chain_id: u64,
    htlc: Address,
    token: Option<Address>,
    owner: Address,
    /// Sun sent with the call: the amount for TRX, zero for a token.
    value: i64,
}

impl Expected {
    fn from_order(order: &OrderContext<'_>) -> Result<Self, Refusal> {
        let Network::Tron(chain_id) = order.source.chain.network else {
            return Err(At::REQUEST.refuse_below(Code::UnsupportedFamily, "/source/asset"));
        };
        let convert = Address::from_account;
        let (htlc, token, owner) = (order.pinned_htlc(convert)?, order.pinned_token(convert)?, order.owner_as(convert)?);
        Ok(Self { chain_id, htlc, token, owner, value: check_native_amount(order)? })
    }
}

/// Returns the call value in sun. Transactions encode it as an `int64`, in which a larger amount of TRX would wrap around.
fn check_native_amount(order: &OrderContext<'_>) -> Result<i64, Refusal> {
    if !order.is_native() {
        return Ok(0);
    }
    let amount = order.request.source.amount;
    i64::try_from(amount).map_err(|_| {
        let expected = format!("at most {} sun", i64::MAX);
        At::REQUEST.refuse_below(Code::NumberTooLarge, "/source/amount").with_expected(expected).with_actual(amount)
    })
}

/// Checks the chain, contract, fee limit and value of a transaction object. Returns the call, whose data is not checked yet.
fn check_transaction(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: &Cursor<'_, '_>,
    to: (Address, Code),
    value: i64,
) -> Result<Call, Refusal> {
    let members = cursor.object()?;
    members.only(&TRANSACTION_KEYS)?;
    let chain = members.need("chain_id")?;
    if chain.integer()? != pins.chain_id {
        return Err(chain.refuse(Code::ChainMismatch).with_expected(pins.chain_id));
    }
    let contract = members.need("to")?;
    if address::read_pinned(order, contract, address::read)? != to.0 {
        return Err(contract.refuse(to.1).with_expected(to.0));
    }
    let coins = members.need("value")?;
    if i64::try_from(coins.decimal()?) != Ok(value) {
        return Err(coins.refuse(Code::ValueMismatch).with_expected(value.to_string()));
    }
    let limit = members.need("gas_limit")?;
    let fee_limit = check_fee_limit(order.policy.tron.fee_limit, limit.decimal()?, &|code| limit.refuse(code))?;
    let data = members.need("data")?.hex_bytes(MAX_CALLDATA)?.into();
    Ok(Call { to: to.0, value, fee_limit, data })
}

fn check_initiate(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: Cursor<'_, '_>,
    warnings: &mut Warnings,
) -> Result<(Call, Initiate, u64), Refusal> {
    let call = check_transaction(order, pins, &cursor, (pins.htlc, Code::UnknownContract), pins.value)?;
    let at = cursor.at().key("data");
    let terms = Initiate::decode(&call.data, Caller::Owner, InitiateAbi::WithData, &at)?;
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
    let mut call = check_transaction(order, pins, &cursor, (token, Code::UnknownToken), 0)?;
    let at = cursor.at().key("data");
    let proposed = Approve::decode(&call.data, &at)?;
    let signed = rules::check_approval(order, proposed, pins.htlc.bytes(), CODEC, &at, warnings)?;
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
) -> Result<Option<Message>, Refusal> {
    let Some(cursor) = cursor else { return Ok(None) };
    let message = Message::read(order, cursor, pins.chain_id & DOMAIN_CHAIN_ID, pins.htlc.bytes(), call, RULES)?;
    rules::check_pinned_version(order, &cursor, &message)?;
    Ok(Some(message))
}
