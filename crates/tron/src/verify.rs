//! The only file that accepts or refuses: each rule on a Tron result (batch-contract.md, attacks.md). What EVM requires in
//! the same words stands in `countersign_abi::rules`.

use alloy_primitives::{Bytes, U256};
use countersign_abi::call::{self, Approve, InitiateAbi, Initiate, MAX_CALLDATA};
use countersign_abi::rules::{AddressCodec, check_approval as settle_approval, check_arguments, check_pinned_version};
use countersign_abi::typed_data::Message;
use countersign_core::chains::Network;
use countersign_core::json::Node;
use countersign_core::{Code, Order, Refusal, SecretHash, Terms, Warnings};

use crate::address::{self, Address};
use crate::message::RULES;
use crate::wire;

const SPELLING: AddressCodec =
    AddressCodec { account: |address| Address::from(address).account(), shown: |address| Address::from(address).to_string() };

/// TIP-712 domains carry these bits of the genesis-derived chain id.
const DOMAIN_CHAIN_ID: u64 = 0xffff_ffff;

/// What an order locks, rebuilt from its terms.
#[derive(Debug)]
#[non_exhaustive]
pub struct Deposit {
    /// Chain id of the pinned asset.
    pub chain_id: u64,
    /// Who sends and pays: the owner.
    pub sender: Address,
    /// The token approval, `None` where none is needed.
    pub approval: Option<Approval>,
    /// The call that locks the funds.
    pub initiate: Call,
    /// What the call says.
    pub terms: Initiate,
    /// The gasless message, `None` where there is no gasless way.
    pub typed_data: Option<Message>,
}

/// A call to a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The contract.
    pub to: Address,
    /// Sun that go with it, `int64` as in the protocol; never negative.
    pub value: i64,
    /// Most sun that it may burn for energy, `int64` as in the protocol; never negative.
    pub fee_limit: i64,
    /// Selector and arguments.
    pub data: Bytes,
}

/// An approval as it came, and as it will be signed.
pub type Approval = call::Approval<Call>;

pub(crate) fn check(order: &Order<'_>, warnings: &mut Warnings) -> Result<(Deposit, Terms), Refusal> {
    order.check_no_delegate()?;
    let pins = Pins::of(order)?;
    let result = order.result.object()?;
    let response = wire::Response::read(&result)?;
    let (initiate, call) = check_initiate(order, &pins, response.initiate, warnings)?;
    let approval = check_approval(order, &pins, response.approval, warnings)?;
    let typed_data = check_typed_data(order, &pins, response.typed_data, &call)?;
    let terms = Terms {
        initiator: pins.owner.account()?,
        redeemer: Address::from(call.redeemer).account()?,
        timelock: u64::try_from(call.timelock).map_err(|_| order.result.refuse(Code::Internal))?,
        secret_hash: SecretHash(call.secret_hash.0),
    };
    let deposit = Deposit { chain_id: pins.chain_id, sender: pins.owner, approval, initiate, terms: call, typed_data };
    Ok((deposit, terms))
}

/// What the wallet knows already.
struct Pins {
    chain_id: u64,
    htlc: Address,
    token: Option<Address>,
    owner: Address,
    /// Sun that go with the call: the amount of TRX, nothing for a token.
    value: i64,
}

impl Pins {
    fn of(order: &Order<'_>) -> Result<Self, Refusal> {
        let asset = order.source;
        let internal = || Refusal::new(Code::Internal, "/request/source/asset");
        let Network::Tron(chain_id) = asset.chain.network else { return Err(internal()) };
        let (htlc, token, owner) = (order.pinned_htlc(Address::of)?, order.pinned_token(Address::of)?, order.owner_as(Address::of)?);
        Ok(Self { chain_id, htlc, token, owner, value: check_native_amount(order)? })
    }
}

/// A transaction holds its call value in an `int64`: a larger amount of TRX would wrap to another one.
fn check_native_amount(order: &Order<'_>) -> Result<i64, Refusal> {
    if !order.is_native() {
        return Ok(0);
    }
    let amount = order.request.source.amount;
    i64::try_from(amount)
        .map_err(|_| Refusal::new(Code::NumberTooLarge, "/request/source/amount").with_expected(format!("at most {} sun", i64::MAX)).with_actual(amount))
}

/// Chain, contract, fee limit and value of a transaction object; answers the call with its data still to be judged.
fn check_transaction(order: &Order<'_>, pins: &Pins, node: &Node<'_, '_>, to: (Address, Code), value: i64) -> Result<Call, Refusal> {
    let members = wire::transaction(node)?;
    let chain = members.need("chain_id")?;
    if chain.integer()? != pins.chain_id {
        return Err(chain.refuse(Code::ChainMismatch).with_expected(pins.chain_id));
    }
    let contract = members.need("to")?;
    if address::read_once(order, contract, address::read)? != to.0 {
        return Err(contract.refuse(to.1).with_expected(to.0));
    }
    let coins = members.need("value")?;
    if i64::try_from(coins.decimal()?) != Ok(value) {
        return Err(coins.refuse(Code::ValueMismatch).with_expected(value));
    }
    let fee_limit = check_fee_limit(order.policy.tron_fee_limit, &members.need("gas_limit")?)?;
    let data = members.need("data")?.hex_bytes(MAX_CALLDATA)?.into();
    Ok(Call { to: to.0, value, fee_limit, data })
}

/// `gas_limit` is the fee limit in sun. A call that may burn nothing never runs, whatever energy the owner has staked.
fn check_fee_limit(most: u64, node: &Node<'_, '_>) -> Result<i64, Refusal> {
    let limit = node.decimal()?;
    match i64::try_from(limit) {
        Ok(0) => Err(node.refuse(Code::GasLimitTooLow).with_expected("at least 1 sun")),
        Ok(fee_limit) if limit <= U256::from(most) => Ok(fee_limit),
        _ => Err(node.refuse(Code::GasLimitTooHigh).with_expected(format!("at most {most} sun"))),
    }
}

fn check_initiate(order: &Order<'_>, pins: &Pins, node: Node<'_, '_>, warnings: &mut Warnings) -> Result<(Call, Initiate), Refusal> {
    let call = check_transaction(order, pins, &node, (pins.htlc, Code::UnknownContract), pins.value)?;
    let at = node.at().key("data");
    let terms = Initiate::decode(&call.data, false, InitiateAbi::WithData, &at)?;
    check_arguments(order, &terms, SPELLING, &at, warnings)?;
    Ok((call, terms))
}

fn check_approval(
    order: &Order<'_>,
    pins: &Pins,
    node: Option<Node<'_, '_>>,
    warnings: &mut Warnings,
) -> Result<Option<Approval>, Refusal> {
    let Some(node) = node else { return Ok(None) };
    let Some(token) = pins.token else { return Err(node.at().refuse(Code::UnexpectedApproval)) };
    let mut call = check_transaction(order, pins, &node, (token, Code::UnknownToken), 0)?;
    let at = node.at().key("data");
    let proposed = Approve::decode(&call.data, &at)?;
    let signed = settle_approval(order, proposed, pins.htlc.bytes(), SPELLING, &at, warnings)?;
    if signed != proposed {
        call.data = signed.encode().into();
    }
    Ok(Some(Approval { call, proposed, signed }))
}

fn check_typed_data(order: &Order<'_>, pins: &Pins, node: Option<Node<'_, '_>>, call: &Initiate) -> Result<Option<Message>, Refusal> {
    let Some(node) = node else { return Ok(None) };
    let message = Message::read(order, node, pins.chain_id & DOMAIN_CHAIN_ID, pins.htlc.bytes(), call, RULES)?;
    check_pinned_version(order, &node, &message)?;
    Ok(Some(message))
}
