//! The verification rules for the result of a Starknet order.
//!
//! Specification: `docs/spec/starknet.md#payload`.

use countersign_core::chains::Network;
use countersign_core::json::{At, Cursor};
use countersign_core::report::settled_by_approval;
use countersign_core::{
    ApprovalStep, ByteCoverage, CallPayloads, Code, OrderContext, Refusal, Role, StarknetGeneration, Summary, SwapTerms, U256, Warnings,
    family,
};
use starknet_types_core::felt::Felt;

use crate::deposit::{Approval, Deposit};
use crate::funding::KeyedPath;
use crate::htlc::{
    self, APPROVE, Approve, Arguments, INITIATE, INITIATE_ON_BEHALF, INITIATE_ON_BEHALF_WITH_DESTINATION_DATA,
    INITIATE_WITH_DESTINATION_DATA, Initiate, outside_execution,
};
use crate::message::{Domain, Message, MessageForm};
use crate::payloads::Unsigned;
use crate::transaction::{Call, ExecutionEncoding, InvokeTransaction};
use crate::{address, felt, signature};

/// The fields of a call. Any other field is refused.
const CALL_KEYS: [&str; 3] = ["calldata", "selector", "to"];

impl family::Deposit for Deposit {
    type Context = KeyedPath;
    type Unsigned = Unsigned;

    fn verify(order: &OrderContext<'_>, warnings: &mut Warnings, _: family::Seal<Self>) -> Result<(Self, Option<SwapTerms>), Refusal> {
        let pins = Expected::from_order(order)?;
        let payloads = CallPayloads::read(&order.result.object()?, CallPayloads::KEYS_WITH_LEGACY)?;
        let (call, destination_data, timelock) = check_initiate(order, &pins, payloads.initiate, warnings)?;
        let approval = check_approval(order, &pins, payloads.approval, warnings)?;
        let typed_data = check_typed_data(order, &pins, payloads.typed_data, &call, destination_data.as_deref())?;
        let terms = SwapTerms {
            initiator: address::to_account(pins.owner),
            redeemer: address::to_account(call.redeemer),
            timelock,
            secret_hash: call.secret_hash,
        };
        let (selector, calldata) = call.call_with(destination_data.as_deref());
        let deposit = Self {
            chain_id: pins.chain_id,
            sender: pins.sender,
            approval,
            initiate: Call::new(pins.htlc, selector, calldata),
            terms: call,
            destination_data,
            typed_data,
            initiate_key: payloads.initiate_key,
            recorded_id: order.record.as_ref().map(|record| record.source_swap.swap_id.clone()),
        };
        Ok((deposit, Some(terms)))
    }

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe(self, summary);
    }

    fn describe_prepared(&self, unsigned: &Unsigned, summary: &mut Summary) {
        crate::summary::describe_prepared(self, unsigned, summary);
    }

    fn settled_warnings(&self, unsigned: &Unsigned) -> Vec<Code> {
        settled_by_approval(self.sent_approval(unsigned), self.terms.amount)
    }

    fn coverage(&self) -> Vec<ByteCoverage> {
        crate::summary::coverage(self)
    }

    fn prepare(&self, KeyedPath { path, public_key, .. }: &KeyedPath, _: family::Seal<Self>) -> Result<Unsigned, Refusal> {
        let invoke = path.self_funded().map(|execution| execution.invoke(self.sender, self.chain_id, self.send(execution.approval)));
        let invoke = invoke.transpose()?.map(|invoke| (Role::Initiate, invoke));
        Ok(Unsigned::new(self.sender, *public_key, invoke, path.gasless(self.typed_data.as_ref())?))
    }

    fn read_transaction(&self, bytes: &[u8], _: family::Seal<Self>) -> Result<InvokeTransaction, Refusal> {
        self.read_sent(bytes)
    }

    /// Compares the sender and the calls, and requires a signature. It is not verified, because only the account's own code can do that.
    /// A transaction does not contain its chain, so read it from a node of the order's chain.
    fn matches(&self, transaction: &InvokeTransaction, _: &mut Warnings) -> Result<Role, Refusal> {
        if transaction.sender_address != self.sender {
            let refusal = Refusal::new(Code::TransactionMismatch, "/sender_address").with_expected(format!("{:#x}", self.sender));
            let refusal = refusal.with_actual(format!("{:#x}", transaction.sender_address));
            return Err(match transaction.calldata.iter().find_map(|felt| outside_execution(*felt)) {
                Some(function) => refusal.with_reason(format!(
                    "another account executed the owner's calls from outside ({function}), as paymasters do: that it was paid for is not shown \
                     here. Read the source leg from the chain, which shows the payment whoever sent it, or pass the receipt (`find_payment`)"
                )),
                None => refusal,
            });
        }
        if !signature::LENGTHS.contains(&transaction.signature.len()) {
            let refusal = Refusal::new(Code::TransactionMismatch, "/signature").with_reason("the transaction is not signed");
            return Err(refusal.with_expected(signature::lengths()).with_actual(transaction.signature.len()));
        }
        let steps = [ApprovalStep::AsVerified, ApprovalStep::Exact, ApprovalStep::AlreadyApproved];
        let whole = steps.map(|step| (Role::Initiate, self.send(step)));
        // A wallet may send the approval in a separate transaction.
        let approvals =
            self.approval.iter().flat_map(|approval| steps.into_iter().filter_map(|step| approval.step(step, self.terms.amount)));
        let approvals = approvals.map(|call| (Role::Approval, vec![call]));
        // The most common transaction comes last, because `max_by_key` below returns the last of several that are equally similar.
        let expected: Vec<_> = approvals.chain(whole).collect();
        let encodings = [ExecutionEncoding::Legacy, ExecutionEncoding::New];
        let expected: Vec<_> =
            expected.iter().flat_map(|(role, calls)| encodings.map(|encoding| (*role, encoding.encode(calls)))).collect();
        if let Some((role, _)) = expected.iter().find(|(_, calldata)| *calldata == transaction.calldata) {
            return Ok(*role);
        }
        // The refusal names the first felt that differs from the most similar calldata.
        let common =
            |calldata: &[Felt]| calldata.iter().zip(&transaction.calldata).take_while(|(expected, actual)| expected == actual).count();
        let closest = expected.iter().map(|(_, calldata)| calldata).max_by_key(|calldata| common(calldata));
        let index = closest.map(|calldata| common(calldata)).unwrap_or_default();
        let format = |felt: Option<&Felt>| felt.map_or_else(|| "no more felts".to_owned(), |felt| format!("{felt:#x}"));
        Err(Refusal::new(Code::TransactionMismatch, format!("/calldata/{index}"))
            .with_expected(format(closest.and_then(|calldata| calldata.get(index))))
            .with_actual(format(transaction.calldata.get(index))))
    }
}

/// The values of the registry and the request that the payload must equal.
struct Expected {
    chain_id: Felt,
    generation: &'static StarknetGeneration,
    htlc: Felt,
    token: Option<Felt>,
    owner: Felt,
    sender: Felt,
    on_behalf: bool,
}

impl Expected {
    fn from_order(order: &OrderContext<'_>) -> Result<Self, Refusal> {
        let chain_id = match &order.source.chain.network {
            Network::Starknet(chain) => felt::from_short_string(chain).ok(),
            _ => None,
        };
        let chain_id = chain_id.ok_or_else(|| At::REQUEST.refuse_below(Code::UnsupportedFamily, "/source/asset"))?;
        let convert = address::from_account;
        let (htlc, token, owner) = (order.pinned_htlc(convert)?, order.pinned_token(convert)?, order.owner_as(convert)?);
        let delegate = order.delegate.as_ref().and_then(convert);
        let generation = StarknetGeneration::expected(order.source.generation);
        Ok(Self { chain_id, generation, htlc, token, owner, sender: delegate.unwrap_or(owner), on_behalf: delegate.is_some() })
    }
}

/// Checks the contract and the function of a call. Returns the selector of the function.
fn check_target(cursor: &Cursor<'_, '_>, to: (Felt, Code), selectors: &[Felt]) -> Result<Felt, Refusal> {
    let members = cursor.object()?;
    members.only(&CALL_KEYS)?;
    let contract = members.need("to")?;
    if felt::read(contract)? != to.0 {
        return Err(contract.refuse(to.1).with_expected(format!("{:#x}", to.0)));
    }
    let function = members.need("selector")?;
    let actual = felt::read(function)?;
    if !selectors.contains(&actual) {
        let refusal = function.at().refuse(Code::UnexpectedSelector);
        let expected: Vec<_> = selectors.iter().copied().map(htlc::describe_selector).collect();
        return Err(refusal.with_expected(expected.join(" or ")).with_actual(htlc::describe_selector(actual)));
    }
    Ok(actual)
}

/// Checks the call that locks the funds. Returns its terms, the destination data, and the timelock in blocks.
fn check_initiate(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: Cursor<'_, '_>,
    warnings: &mut Warnings,
) -> Result<(Initiate, Option<Vec<Felt>>, u64), Refusal> {
    let (plain, with_data) = match pins.on_behalf {
        true => (INITIATE_ON_BEHALF, INITIATE_ON_BEHALF_WITH_DESTINATION_DATA),
        false => (INITIATE, INITIATE_WITH_DESTINATION_DATA),
    };
    let selectors = [plain, with_data];
    let selectors = if pins.generation.takes_destination_data { &selectors[..] } else { &selectors[..1] };
    let selector = check_target(&cursor, (pins.htlc, Code::UnknownContract), selectors)?;
    let members = cursor.object()?;
    let calldata = members.need("calldata")?;
    let (arguments, destination_data) = if selector == with_data {
        let (arguments, data) = Arguments::with_data(&calldata, pins.generation, pins.on_behalf)?;
        (arguments, Some(data))
    } else {
        (Arguments::of_initiate(&calldata, pins.generation, pins.on_behalf)?, None)
    };
    let terms = Initiate::decode(&arguments, pins.generation, pins.on_behalf)?;
    let timelock = check_terms(order, &terms, &arguments, warnings)?;
    Ok((terms, destination_data, timelock))
}

/// Checks each argument against the request, the registry or the policy. A refusal locates the felt. Returns the timelock in blocks.
fn check_terms(order: &OrderContext<'_>, terms: &Initiate, arguments: &Arguments<'_, '_>, warnings: &mut Warnings) -> Result<u64, Refusal> {
    let redeemer = usize::from(terms.initiator.is_some());
    let place = |offset: usize| move |code| arguments.refuse(redeemer.saturating_add(offset), code);
    if let Some(initiator) = terms.initiator {
        order.check_initiator(&address::to_account(initiator), &|code| arguments.refuse(0, code))?;
    }
    order.check_redeemer(&address::to_account(terms.redeemer), warnings, &place(0))?;
    let timelock = order.check_timelock(U256::from(terms.timelock), warnings, &place(1))?;
    let wrong_half = first_difference(felt::split(terms.amount), felt::split(order.request.source.amount));
    order.check_amount(terms.amount, &place(wrong_half.saturating_add(2)))?;
    let requested = order.request.secret_hash.unwrap_or(terms.secret_hash);
    let wrong_byte = first_difference(terms.secret_hash.0, requested.0);
    let wrong_word = wrong_byte.checked_div(terms.generation.word_size()).unwrap_or_default();
    order.check_secret_hash(terms.secret_hash, &place(wrong_word.saturating_add(4)))?;
    Ok(timelock)
}

/// Returns the index of the first element that differs, or 0 if none does.
fn first_difference<T: PartialEq, const N: usize>(a: [T; N], b: [T; N]) -> usize {
    a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or_default()
}

fn check_approval(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: Option<Cursor<'_, '_>>,
    warnings: &mut Warnings,
) -> Result<Option<Approval>, Refusal> {
    let Some(cursor) = cursor else { return Ok(None) };
    let Some(token) = pins.token else { return Err(cursor.at().refuse(Code::UnexpectedApproval)) };
    check_target(&cursor, (token, Code::UnknownToken), &[APPROVE])?;
    let members = cursor.object()?;
    let calldata = members.need("calldata")?;
    let arguments = Arguments::read(&calldata, Approve::ARGUMENTS)?;
    let proposed = Approve::decode(&arguments)?;
    if proposed.spender != pins.htlc {
        let (expected, actual) = (format!("{:#x}", pins.htlc), format!("{:#x}", proposed.spender));
        return Err(arguments.refuse(0, Code::UnknownSpender).with_expected(expected).with_actual(actual));
    }
    let place = first_difference(felt::split(proposed.amount), felt::split(order.request.source.amount)).saturating_add(1);
    let amount = order.check_approval(proposed.amount, warnings, &|code| arguments.refuse(place, code))?;
    let signed = Approve { amount, ..proposed };
    Ok(Some(Approval { call: Call::new(token, APPROVE, signed.encode()), proposed, signed }))
}

fn check_typed_data(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: Option<Cursor<'_, '_>>,
    terms: &Initiate,
    destination_data: Option<&[Felt]>,
) -> Result<Option<Message>, Refusal> {
    let Some(cursor) = cursor else { return Ok(None) };
    if pins.on_behalf {
        return Err(cursor.at().refuse(Code::TypedDataWithDelegate));
    }
    // The message cannot contain destination data, so an order that is funded with the message would lose them.
    if destination_data.is_some_and(|data| !data.is_empty()) {
        return Err(cursor.at().refuse(Code::PayloadsDisagree).with_reason("the typed data lacks the destination data of the call"));
    }
    let domain = Domain::of_asset(order.source, pins.chain_id, |code| At::REQUEST.refuse_below(code, "/source/asset"))?;
    let is_domain_pinned = order.source.record.htlc.as_ref().is_some_and(|htlc| htlc.domain.is_some());
    let form = MessageForm { domain, is_domain_pinned, is_generation_pinned: order.source.generation.is_some() };
    Message::read(order.source, cursor, &form, pins.htlc, terms).map(Some)
}
