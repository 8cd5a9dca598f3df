//! The only file that accepts or refuses: each rule on an EVM result (batch-contract.md, attacks.md).

use alloy_primitives::{Address, Bytes, U256};
use countersign_abi::call::{self, Approve, InitiateAbi, Initiate, MAX_CALLDATA};
use countersign_abi::rules::{self, AddressCodec};
use countersign_abi::typed_data::Message;
use countersign_core::chains::Network;
use countersign_core::json::Node;
use countersign_core::{Code, Order, Refusal, SecretHash, Terms, Warnings};

use crate::message::RULES;
use crate::{address, wire};

/// Gas of the cheapest transaction there is: a limit below it can never be mined.
const MIN_GAS: u64 = 21_000;

const SPELLING: AddressCodec = AddressCodec { account: address::account, shown: |address| address.to_string() };

/// What an order locks, rebuilt from its terms.
#[derive(Debug)]
#[non_exhaustive]
pub struct Deposit {
    /// EIP-155 chain id of the pinned asset.
    pub chain_id: u64,
    /// Who sends and pays: the delegate where there is one, else the owner.
    pub sender: Address,
    /// The token approval, `None` where none is needed.
    pub approval: Option<Approval>,
    /// The call that locks the funds.
    pub initiate: Call,
    /// What the call says.
    pub terms: Initiate,
    /// The gasless message, `None` where there is no gasless way.
    pub typed_data: Option<Message>,
    pub(crate) initiate_key: &'static str,
}

/// A call to a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The contract.
    pub to: Address,
    /// Wei that go with it.
    pub value: U256,
    /// Most gas that it may use.
    pub gas_limit: u64,
    /// Selector and arguments.
    pub data: Bytes,
}

/// An approval as it came, and as it will be signed.
pub type Approval = call::Approval<Call>;

pub(crate) fn check(order: &Order<'_>, warnings: &mut Warnings) -> Result<(Deposit, Terms), Refusal> {
    let pins = Pins::of(order)?;
    let result = order.result.object()?;
    let response = wire::Response::read(&result)?;
    let (initiate, call) = check_initiate(order, &pins, response.initiate, warnings)?;
    let approval = check_approval(order, &pins, response.approval, warnings)?;
    let typed_data = check_typed_data(order, &pins, response.typed_data, &call, warnings)?;
    let terms = Terms {
        initiator: address::account(pins.owner)?,
        redeemer: address::account(call.redeemer)?,
        timelock: u64::try_from(call.timelock).map_err(|_| order.result.refuse(Code::Internal))?,
        secret_hash: SecretHash(call.secret_hash.0),
    };
    let deposit = Deposit {
        chain_id: pins.chain_id,
        sender: pins.sender,
        approval,
        initiate,
        terms: call,
        typed_data,
        initiate_key: response.initiate_key,
    };
    Ok((deposit, terms))
}

/// What the wallet knows already.
struct Pins {
    chain_id: u64,
    htlc: Address,
    token: Option<Address>,
    owner: Address,
    sender: Address,
    on_behalf: bool,
}

impl Pins {
    fn of(order: &Order<'_>) -> Result<Self, Refusal> {
        let asset = order.source;
        let internal = || Refusal::new(Code::Internal, "/request/source/asset");
        let Network::Evm(chain_id) = asset.chain.network else { return Err(internal()) };
        let (htlc, token, owner) = (order.pinned_htlc(address::of)?, order.pinned_token(address::of)?, order.owner_as(address::of)?);
        let delegate = order.delegate.as_ref().and_then(address::of);
        Ok(Self { chain_id, htlc, token, owner, sender: delegate.unwrap_or(owner), on_behalf: delegate.is_some() })
    }
}

/// Chain, contract, gas and value of a transaction object; answers the call with its data still to be judged.
fn check_transaction(order: &Order<'_>, pins: &Pins, node: &Node<'_, '_>, to: (Address, Code), value: U256) -> Result<Call, Refusal> {
    let members = wire::transaction(node)?;
    let chain = members.need("chain_id")?;
    if chain.integer()? != pins.chain_id {
        return Err(chain.refuse(Code::ChainMismatch).with_expected(pins.chain_id));
    }
    let contract = members.need("to")?;
    if address::read(contract)? != to.0 {
        return Err(contract.refuse(to.1).with_expected(to.0));
    }
    let coins = members.need("value")?;
    if coins.hex_number()? != value {
        return Err(coins.refuse(Code::ValueMismatch).with_expected(format!("{value:#x}")));
    }
    let gas = members.need("gas_limit")?;
    let gas_limit = check_gas_limit(order.policy.evm_gas_limit, &gas)?;
    let data = members.need("data")?.hex_bytes(MAX_CALLDATA)?.into();
    Ok(Call { to: to.0, value, gas_limit, data })
}

fn check_gas_limit(most: u64, node: &Node<'_, '_>) -> Result<u64, Refusal> {
    match u64::try_from(node.hex_number()?) {
        Ok(gas) if gas < MIN_GAS => Err(node.refuse(Code::GasLimitTooLow).with_expected(format!("at least {MIN_GAS:#x}"))),
        Ok(gas) if gas <= most => Ok(gas),
        _ => Err(node.refuse(Code::GasLimitTooHigh).with_expected(format!("at most {most:#x}"))),
    }
}

fn check_initiate(order: &Order<'_>, pins: &Pins, node: Node<'_, '_>, warnings: &mut Warnings) -> Result<(Call, Initiate), Refusal> {
    let value = if order.is_native() { order.request.source.amount } else { U256::ZERO };
    let call = check_transaction(order, pins, &node, (pins.htlc, Code::UnknownContract), value)?;
    let at = node.at().key("data");
    let terms = Initiate::decode(&call.data, pins.on_behalf, InitiateAbi::All, &at)?;
    rules::check_arguments(order, &terms, SPELLING, &at, warnings)?;
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
    let mut call = check_transaction(order, pins, &node, (token, Code::UnknownToken), U256::ZERO)?;
    let at = node.at().key("data");
    let proposed = Approve::decode(&call.data, &at)?;
    let signed = rules::check_approval(order, proposed, pins.htlc, SPELLING, &at, warnings)?;
    if signed != proposed {
        call.data = signed.encode().into();
    }
    Ok(Some(Approval { call, proposed, signed }))
}

fn check_typed_data(
    order: &Order<'_>,
    pins: &Pins,
    node: Option<Node<'_, '_>>,
    call: &Initiate,
    warnings: &mut Warnings,
) -> Result<Option<Message>, Refusal> {
    let Some(node) = node else { return Ok(None) };
    if pins.on_behalf {
        return Err(node.at().refuse(Code::TypedDataWithDelegate));
    }
    let message = Message::read(order, node, pins.chain_id, pins.htlc, call, RULES)?;
    rules::check_pinned_version(order, &node, &message)?;
    if message.terms.destination_data.is_some() {
        warnings.warn(Code::GaslessFormUnproven);
    }
    Ok(Some(message))
}
