//! The only file that accepts or refuses: each rule on a Starknet result (batch-contract.md, attacks.md).

use countersign_core::chains::Network;
use countersign_core::json::Node;
use countersign_core::{Code, Order, Refusal, Terms, U256, Warnings};
use starknet_crypto::Felt;

use crate::htlc::{APPROVE, Approve, Arguments, INITIATE, INITIATE_ON_BEHALF, Initiate, arguments_of, named};
use crate::message::{Domain, Message};
use crate::transaction::Call;
use crate::{address, felt, wire};

/// What an order locks, rebuilt from its terms.
#[derive(Debug)]
#[non_exhaustive]
pub struct Deposit {
    /// Chain id of the pinned asset, as a short string.
    pub chain_id: Felt,
    /// Who sends and pays: the delegate where there is one, else the owner.
    pub sender: Felt,
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

/// An approval as it came, and as it will be signed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Approval {
    /// The call that will be signed.
    pub call: Call,
    /// What the response proposed.
    pub proposed: Approve,
    /// What will be signed: the proposal, or exactly the amount where the policy rewrites.
    pub signed: Approve,
}

pub(crate) fn check(order: &Order<'_>, warnings: &mut Warnings) -> Result<(Deposit, Terms), Refusal> {
    let pins = Pins::of(order)?;
    let result = order.result.object()?;
    let response = wire::Response::read(&result)?;
    let terms = check_initiate(order, &pins, response.initiate, warnings)?;
    let approval = check_approval(order, &pins, response.approval, warnings)?;
    let typed_data = check_typed_data(order, &pins, response.typed_data, &terms)?;
    let common = Terms {
        initiator: address::account(pins.owner)?,
        redeemer: address::account(terms.redeemer)?,
        timelock: u64::try_from(terms.timelock).map_err(|_| order.result.refuse(Code::Internal))?,
        secret_hash: terms.secret_hash,
    };
    let deposit = Deposit {
        chain_id: pins.chain_id,
        sender: pins.sender,
        approval,
        initiate: Call::new(pins.htlc, terms.selector(), terms.encode()),
        terms,
        typed_data,
        initiate_key: response.initiate_key,
    };
    Ok((deposit, common))
}

/// What the wallet knows already.
struct Pins {
    chain_id: Felt,
    htlc: Felt,
    token: Option<Felt>,
    owner: Felt,
    sender: Felt,
    on_behalf: bool,
}

impl Pins {
    fn of(order: &Order<'_>) -> Result<Self, Refusal> {
        let asset = order.source;
        let internal = || Refusal::new(Code::Internal, "/request/source/asset");
        let Network::Starknet(chain) = &asset.chain.network else { return Err(internal()) };
        let chain_id = felt::of_short_string(chain).ok_or_else(internal)?;
        let (htlc, token, owner) = (order.pinned_htlc(address::of)?, order.pinned_token(address::of)?, order.owner_as(address::of)?);
        let delegate = order.delegate.as_ref().and_then(address::of);
        Ok(Self { chain_id, htlc, token, owner, sender: delegate.unwrap_or(owner), on_behalf: delegate.is_some() })
    }
}

/// Contract and function of a call.
fn check_target(node: &Node<'_, '_>, to: (Felt, Code), selector: (Felt, &str)) -> Result<(), Refusal> {
    let members = wire::call(node)?;
    let contract = members.need("to")?;
    if felt::read(contract)? != to.0 {
        return Err(contract.refuse(to.1).with_expected(format!("{:#x}", to.0)));
    }
    let function = members.need("selector")?;
    let found = felt::read(function)?;
    if found != selector.0 {
        let refusal = function.at().refuse(Code::UnexpectedSelector);
        return Err(refusal.with_expected(format!("{:#x} {}", selector.0, selector.1)).with_actual(named(found)));
    }
    Ok(())
}

fn check_initiate(order: &Order<'_>, pins: &Pins, node: Node<'_, '_>, warnings: &mut Warnings) -> Result<Initiate, Refusal> {
    let selector = if pins.on_behalf { (INITIATE_ON_BEHALF, "initiate_on_behalf") } else { (INITIATE, "initiate") };
    check_target(&node, (pins.htlc, Code::UnknownContract), selector)?;
    let members = node.object()?;
    let calldata = members.need("calldata")?;
    let arguments = Arguments::read(&calldata, arguments_of(pins.on_behalf))?;
    let terms = Initiate::decode(&arguments, pins.on_behalf)?;
    check_terms(order, &terms, &arguments, warnings)?;
    Ok(terms)
}

/// Each argument against the request, the registry or the policy, at its own felt.
fn check_terms(order: &Order<'_>, terms: &Initiate, arguments: &Arguments<'_, '_>, warnings: &mut Warnings) -> Result<(), Refusal> {
    let redeemer = usize::from(terms.initiator.is_some());
    let place = |behind: usize| move |code| arguments.refuse(redeemer.saturating_add(behind), code);
    if let Some(initiator) = terms.initiator {
        order.check_initiator(&address::account(initiator)?, &|code| arguments.refuse(0, code))?;
    }
    order.check_redeemer(&address::account(terms.redeemer)?, warnings, &place(0))?;
    order.check_timelock(U256::from(terms.timelock), &place(1))?;
    let wrong_half = first_difference(felt::words(terms.amount), felt::words(order.request.source.amount));
    order.check_amount(terms.amount, &place(wrong_half.saturating_add(2)))?;
    let requested = order.request.secret_hash.unwrap_or(terms.secret_hash);
    let wrong_word = first_difference(terms.secret_hash.0, requested.0) / 4;
    order.check_secret_hash(terms.secret_hash, &place(wrong_word.saturating_add(4)))
}

/// Index of the first element that differs; the first of all where none does.
fn first_difference<T: PartialEq, const N: usize>(a: [T; N], b: [T; N]) -> usize {
    a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or_default()
}

fn check_approval(
    order: &Order<'_>,
    pins: &Pins,
    node: Option<Node<'_, '_>>,
    warnings: &mut Warnings,
) -> Result<Option<Approval>, Refusal> {
    let Some(node) = node else { return Ok(None) };
    let Some(token) = pins.token else { return Err(node.at().refuse(Code::UnexpectedApproval)) };
    check_target(&node, (token, Code::UnknownToken), (APPROVE, "approve"))?;
    let members = node.object()?;
    let calldata = members.need("calldata")?;
    let arguments = Arguments::read(&calldata, Approve::ARGUMENTS)?;
    let proposed = Approve::decode(&arguments)?;
    if proposed.spender != pins.htlc {
        let (expected, got) = (format!("{:#x}", pins.htlc), format!("{:#x}", proposed.spender));
        return Err(arguments.refuse(0, Code::UnknownSpender).with_expected(expected).with_actual(got));
    }
    let place = first_difference(felt::words(proposed.amount), felt::words(order.request.source.amount)).saturating_add(1);
    let amount = order.check_approval(proposed.amount, warnings, &|code| arguments.refuse(place, code))?;
    let signed = Approve { amount, ..proposed };
    Ok(Some(Approval { call: Call::new(token, APPROVE, signed.encode()), proposed, signed }))
}

fn check_typed_data(order: &Order<'_>, pins: &Pins, node: Option<Node<'_, '_>>, terms: &Initiate) -> Result<Option<Message>, Refusal> {
    let Some(node) = node else { return Ok(None) };
    if pins.on_behalf {
        return Err(node.at().refuse(Code::TypedDataWithDelegate));
    }
    let pinned = order.source.record.htlc.as_ref().and_then(|htlc| htlc.domain.as_ref());
    let domain = match pinned {
        Some(domain) => Domain::pinned(domain, pins.chain_id).map_err(|code| {
            let because = format!("the pinned domain of the HTLC is no domain of Starknet: {}", code.meaning());
            Refusal::new(Code::RegistryMalformed, "/request/source/asset").with_reason(because)
        })?,
        None => Domain::deployed(pins.chain_id),
    };
    Message::read(order.source, node, domain, pinned.is_some(), pins.htlc, terms).map(Some)
}
