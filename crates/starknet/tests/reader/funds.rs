//! Tests what a transaction may cost and transfer: the policy's limits, the sender's funds, and the size of a
//! simulation.

use countersign_core::reader::{Fault, Known, Observation, Sending as _};
use countersign_core::{ApprovalStep, Code, Policy, U256};
use countersign_starknet::reader::{
    Context, Costs, Intended, Preflight, PreflightCheck, STRK, Sender, SignedInvoke, at_limit, chain_id, check_fee, execution,
    least_raised, raised,
};
use countersign_starknet::{Felt, Gasless, ResourceBound, ResourceBounds, Starknet, TxContext, VerifiedOrder, read};
use countersign_testkit::chain::starknet::{Chain, case, chain_of, halves, hex, terms};
use countersign_testkit::verified;
use serde_json::{Value, json};

use crate::reader::wallet::at_prices;
use crate::reader::{USUAL, destination, drive, error, lying, send};

/// An order whose transaction includes the approval.
const WITH_APPROVAL: &str = "starknet-2025-11";
/// An order without an approval, on the test network.
const WITHOUT_APPROVAL: &str = "starknet-2025-11-testnet";
const ETH: Felt = Felt::from_hex_unchecked("0x77");
const STRANGER: Felt = Felt::from_hex_unchecked("0xbad");
/// 1,000 units of L2 gas at 3 FRI and a tip of 2 FRI.
const FEE: u64 = 5_000;

type Outcome = Result<Preflight, (Code, String)>;

fn order() -> VerifiedOrder {
    verified::<Starknet>(&case(WITHOUT_APPROVAL))
}

fn fees() -> TxContext {
    let none = ResourceBound::new(0, 0);
    TxContext::new(Felt::ONE, ResourceBounds::new(none, ResourceBound::new(1_000, 3), none)).with_tip(2)
}

/// The order's chain, on which the HTLC holds this token, and the sender has exactly the deposit. A simulation pays the HTLC.
fn chain(token: Felt) -> Chain {
    let amount = order().deposit().terms.amount;
    let chain = Chain { chain_id: "SN_SEPOLIA", order: None, ..Chain::funded(&terms(WITHOUT_APPROVAL).source) };
    let chain = Chain { token, balance: amount, allowance: amount, ..chain };
    Chain { trace: trace(vec![paying(&chain)]), ..chain }
}

/// The chain with this balance of STRK.
fn with_strk(chain: Chain, has: U256) -> Chain {
    chain.lying(move |_, method, params| {
        let request = &params["request"];
        let is_balance = request["entry_point_selector"] == hex(read::BALANCE_OF) && request["contract_address"] == hex(STRK);
        (method == "starknet_call" && is_balance).then(|| halves(has))
    })
}

fn transfer(from: Felt, to: Felt, amount: U256) -> Value {
    json!({"keys": [hex(read::TRANSFER), hex(from), hex(to)], "data": halves(amount)})
}

fn call(contract: Felt, events: Vec<Value>) -> Value {
    json!({"contract_address": hex(contract), "events": events, "calls": []})
}

/// The call that pays the HTLC.
fn paying(chain: &Chain) -> Value {
    let order = order();
    call(chain.token, vec![transfer(order.deposit().sender, chain.htlc, order.deposit().terms.amount)])
}

fn trace(calls: Vec<Value>) -> Value {
    json!({"execute_invocation": {"contract_address": "0x1", "events": [], "calls": calls}})
}

fn check(intended: &Intended, chain: &Chain) -> Result<Outcome, Fault> {
    let drive = drive::<PreflightCheck>(intended, &Known::default(), |_, _, request| chain.answer(request));
    let outcome = drive.outcome.map(Observation::into_output)?.0;
    Ok(outcome.map_err(|refusal| (refusal.code(), refusal.location().to_owned())))
}

fn intended() -> Intended {
    let network = terms(WITHOUT_APPROVAL).source.network;
    Intended::new(chain_id(&network).unwrap(), &order().prepare(fees()).unwrap()).unwrap()
}

#[test]
fn the_amount_counts_with_the_fee_if_both_are_paid_in_the_same_token() {
    let amount = order().deposit().terms.amount;
    for (token, cost) in [(ETH, U256::from(FEE)), (STRK, amount + U256::from(FEE))] {
        let found = check(&intended(), &with_strk(chain(token), cost)).unwrap().unwrap();
        assert_eq!((found.cost, found.balance, found.is_simulated), (cost, cost, true));
        let short = check(&intended(), &with_strk(chain(token), cost - U256::ONE)).unwrap();
        assert_eq!(short, Err((Code::InsufficientFunds, "/balance".to_owned())));
    }
    // Somebody else pays the fee of a gasless order, and nothing is simulated.
    let network = terms(WITHOUT_APPROVAL).source.network;
    let gasless = Intended::new(chain_id(&network).unwrap(), &order().prepare(Gasless).unwrap()).unwrap();
    for (token, has) in [(ETH, U256::ZERO), (STRK, amount)] {
        let found = check(&gasless, &with_strk(chain(token), has)).unwrap().unwrap();
        assert_eq!((found.cost, found.balance, found.is_simulated), (U256::ZERO, has, false));
    }
}

#[test]
fn an_allowance_is_needed_unless_the_transaction_includes_the_approval() {
    let low = || (Code::AllowanceTooLow, "/allowance".to_owned());
    let with = verified::<Starknet>(&case(WITH_APPROVAL));
    let poor = Chain { order: None, ..Chain::funded(&terms(WITH_APPROVAL).source) };
    let network = terms(WITH_APPROVAL).source.network;
    let tokens = |step| check(&Intended::tokens_of(chain_id(&network).unwrap(), &with, step), &poor).unwrap().map(|found| found.cost);
    assert_eq!(tokens(ApprovalStep::AsVerified), Ok(U256::ZERO));
    assert_eq!(tokens(ApprovalStep::Exact), Ok(U256::ZERO));
    assert_eq!(tokens(ApprovalStep::AlreadyApproved), Err(low()));
    // Without an approval there is nothing to include.
    let network = terms(WITHOUT_APPROVAL).source.network;
    let amount = order().deposit().terms.amount;
    for (allowance, expected) in [(amount, Ok(())), (amount - U256::ONE, Err(low()))] {
        for step in [ApprovalStep::AsVerified, ApprovalStep::Exact, ApprovalStep::AlreadyApproved] {
            let intended = Intended::tokens_of(chain_id(&network).unwrap(), &order(), step);
            let found = check(&intended, &Chain { allowance, ..chain(ETH) }).unwrap();
            assert_eq!(found.map(drop), expected, "{step:?}");
        }
    }
}

/// A node may be unable to simulate what cannot be paid.
#[test]
fn what_is_missing_is_said_whatever_the_simulation_shows() {
    let fee = U256::from(FEE);
    for answer in [error(41), error(-32_603), json!([]), json!("no")] {
        let found = |has| {
            let (poor, answer) = (with_strk(chain(ETH), has), answer.clone());
            let simulated = chain(ETH).lying(move |host, method, params| {
                let is_simulation = method == "starknet_simulateTransactions";
                if is_simulation { Some(answer.clone()) } else { (poor.lie)(host, method, params) }
            });
            check(&intended(), &simulated)
        };
        assert_eq!(found(fee - U256::ONE), Ok(Err((Code::InsufficientFunds, "/balance".to_owned()))), "{answer}");
        assert!(!matches!(found(fee), Ok(Ok(_))), "{answer}");
    }
}

#[test]
fn a_simulation_that_does_not_pay_exactly_the_deposit_is_refused() {
    let (sender, amount) = (order().deposit().sender, order().deposit().terms.amount);
    let htlc = chain(ETH).htlc;
    let with = |calls: Vec<Value>| check(&intended(), &with_strk(Chain { trace: trace(calls), ..chain(ETH) }, U256::MAX)).unwrap();
    let pays = |token, from, to, amount| call(token, vec![transfer(from, to, amount)]);
    let good = || pays(ETH, sender, htlc, amount);
    let differs = Err((Code::SimulationDiffers, "/transfers".to_owned()));
    for (why, calls) in [
        ("nothing", vec![]),
        ("too little", vec![pays(ETH, sender, htlc, amount - U256::ONE)]),
        ("another token", vec![pays(STRANGER, sender, htlc, amount)]),
        ("to a stranger", vec![pays(ETH, sender, STRANGER, amount)]),
        ("by a stranger", vec![pays(ETH, STRANGER, htlc, amount)]),
        ("twice", vec![good(), good()]),
        ("something more of the sender", vec![good(), pays(STRANGER, sender, STRANGER, U256::ONE)]),
        ("something of the contract", vec![good(), pays(ETH, htlc, STRANGER, U256::ONE)]),
    ] {
        assert_eq!(with(calls).map(drop), differs, "{why}");
    }
    // Transfers between others do not matter, also to the sender.
    assert_eq!(with(vec![good(), pays(ETH, STRANGER, sender, amount), pays(ETH, STRANGER, STRANGER, amount)]).map(drop), Ok(()));
}

#[test]
fn only_an_error_of_the_contract_means_that_the_simulation_fails() {
    let simulated =
        |code| {
            let strk = with_strk(chain(ETH), U256::MAX);
            let chain = chain(ETH).lying(move |host, method, params| {
                if method == "starknet_simulateTransactions" { Some(error(code)) } else { (strk.lie)(host, method, params) }
            });
            check(&intended(), &chain)
        };
    for code in [40, 41] {
        assert_eq!(simulated(code), Ok(Err((Code::SimulationReverted, "/initiate".to_owned()))), "{code}");
    }
    for code in [20, 24, 63, -32_603] {
        assert!(matches!(simulated(code), Err(Fault::Rpc(_))), "{code}");
    }
}

#[test]
fn the_sizes_of_a_simulation_are_bounded() {
    let chain = || chain(ETH);
    let passes = |calls: Vec<Value>| {
        let chain = Chain { trace: trace(calls), ..chain() };
        match check(&intended(), &with_strk(chain, U256::MAX)) {
            Ok(outcome) => outcome.is_ok(),
            Err(Fault::Malformed(_)) => false,
            Err(other) => panic!("{other:?}"),
        }
    };
    let (paying, other) = (paying(&chain()), call(STRANGER, Vec::new()));
    // 256 calls, with the one that makes the others.
    let calls = |count: usize| [vec![paying.clone()], vec![other.clone(); count - 2]].concat();
    assert_eq!([256, 257].map(|count| passes(calls(count))), [true, false], "calls");
    let event = json!({"keys": ["0x1"], "data": []});
    let events = |count| vec![paying.clone(), call(STRANGER, vec![event.clone(); count])];
    assert_eq!([64, 65].map(|count| passes(events(count))), [true, false], "events of a call");
    for member in ["keys", "data"] {
        let felts = |count| {
            let mut event = event.clone();
            event[member] = json!(vec!["0x1"; count]);
            vec![paying.clone(), call(STRANGER, vec![event])]
        };
        assert_eq!([1_024, 1_025].map(|count| passes(felts(count))), [true, false], "{member}");
    }
}

#[test]
fn a_transfer_of_nothing_moves_nothing() {
    let sender = order().deposit().sender;
    let with = |amount| {
        let chain = chain(ETH);
        let calls = vec![paying(&chain), call(STRANGER, vec![transfer(sender, STRANGER, amount), transfer(chain.htlc, STRANGER, amount)])];
        check(&intended(), &with_strk(Chain { trace: trace(calls), ..chain }, U256::MAX)).unwrap().map(drop)
    };
    assert_eq!(with(U256::ZERO), Ok(()));
    assert_eq!(with(U256::ONE), Err((Code::SimulationDiffers, "/transfers".to_owned())));
}

#[test]
fn a_fee_of_exactly_the_limit_is_within_the_policy() {
    // The policy counts in units of 10^9 FRI.
    let policy = Policy::from_json(br#"{"starknet_fee": 7}"#).unwrap();
    let bounds = |l2_gas| ResourceBounds::new(ResourceBound::new(0, 9), l2_gas, ResourceBound::new(9, 0));
    let check = |l2_gas, tip| {
        let context = TxContext::new(Felt::ONE, bounds(l2_gas)).with_tip(tip);
        check_fee(&context, &policy).map_err(|refusal| (refusal.code(), refusal.location().to_owned()))
    };
    let too_high = || Err((Code::GasLimitTooHigh, "/resource_bounds".to_owned()));
    assert_eq!(check(ResourceBound::new(1_000_000_000, 7), 0), Ok(()));
    assert_eq!(check(ResourceBound::new(1_000_000_000, 6), 1), Ok(()));
    assert_eq!(check(ResourceBound::new(1_000_000_000, 7), 1), too_high());
    assert_eq!(check(ResourceBound::new(7_000_000_001, 1), 0), too_high());
}

fn costs(sender: &Sender, prices: &[(u64, u64)]) -> Vec<Costs> {
    let read = |chain: Chain| drive::<Context>(sender, &Known::default(), |_, _, request| chain.answer(request)).outcome.unwrap();
    prices.iter().map(|(l1_gas, l2_gas)| read(at_prices(*l1_gas, *l2_gas)).into_output()).collect()
}

/// The secret is out, so a slow redemption is better than none.
#[test]
fn at_the_limit_as_much_is_paid_as_the_policy_allows() {
    let sender = Sender { chain_id: chain_id(&destination(USUAL).network).unwrap(), address: Felt::from(5), calls: None };
    let asked = |prices: &[(u64, u64)]| {
        let costs = costs(&sender, prices);
        execution(&sender, &costs.iter().collect::<Vec<_>>(), 10, true)
    };
    let context = asked(&[(8_000, 1_000)]).unwrap();
    assert_eq!((context.nonce, context.chain_id), (Felt::from(0x2a), Some(sender.chain_id)));
    assert_eq!(at_limit(context.clone(), &Policy::default()), context);
    // 5,000 units of L1 gas, 40,000,000 of L2 gas and 5,000 of L1 data gas, at 8,000, 1,000 and 7 FRI: half of it is allowed.
    let total = 5_000 * 8_000 + 40_000_000 * 1_000 + 5_000 * 7_u64;
    let policy = Policy::from_json(json!({"starknet_fee": total / 2 / 1_000_000_000}).to_string().as_bytes()).unwrap();
    let lowered = at_limit(context.clone(), &policy).resource_bounds;
    assert_eq!(
        (lowered.l1_gas.max_price_per_unit, lowered.l2_gas.max_price_per_unit),
        (8_000 * 20_000_000_000 / u128::from(total), 1_000 * 20_000_000_000 / u128::from(total))
    );
    assert!(lowered.max_fee(0) <= U256::from(20_000_000_000_u64), "{lowered:?}");
    // The tip is a part of the fee.
    let tipped = at_limit(context.with_tip(500), &policy);
    assert!(tipped.resource_bounds.max_fee(tipped.tip) <= U256::from(20_000_000_000_u64) && tipped.tip > 0, "{tipped:?}");
    // Without an endpoint there is nothing to pay with.
    let none = asked(&[]).unwrap_err();
    assert_eq!((none.code(), none.location()), (Code::MissingField, "/resource_bounds"));
}

/// Nodes replace a transaction only for prices and a tip that are at least 10 % higher.
#[test]
fn a_replacement_offers_a_tenth_more_and_no_less_than_the_chain_asks() {
    let sent = order().prepare(fees()).unwrap().payloads().invoke.as_ref().unwrap().invoke.transaction.clone();
    let none = ResourceBound::new(0, 0);
    let now = |l2_gas, tip| TxContext::new(Felt::TWO, ResourceBounds::new(none, l2_gas, none)).with_tip(tip);
    let next = raised(&sent, now(ResourceBound::new(10, 2), 0));
    assert_eq!((next.resource_bounds.l2_gas, next.tip, next.nonce), (ResourceBound::new(10, 4), 3, Felt::TWO));
    // A transaction that offers more than four times the current price is not pending because of its price.
    let cheap = raised(&sent, now(ResourceBound::new(10, 0), 0));
    assert_eq!(cheap.resource_bounds.l2_gas, ResourceBound::new(10, 0));
    let dear = raised(&sent, now(ResourceBound::new(5_000, 9), 7));
    assert_eq!((dear.resource_bounds.l2_gas, dear.tip), (ResourceBound::new(5_000, 9), 7));
    // A tenth of nothing is nothing, and full blocks are ordered by the tip. What nodes require at least is asked for separately.
    let with_tip = |tip| {
        let mut sent = sent.clone();
        sent.tip = tip;
        sent
    };
    let tip = |before, price| raised(&with_tip(before), now(ResourceBound::new(10, price), 0)).tip;
    assert_eq!((tip(0, 4_500), tip(0, u128::MAX)), (450, u64::MAX));
    assert_eq!(tip(450, 4_500), 495, "the next one offers a tenth more");
    assert_eq!(least_raised(&with_tip(0), now(ResourceBound::new(10, 4_500), 0)).tip, 0);
}

/// A node that cannot estimate proves nothing about the calls.
#[test]
fn only_an_error_of_the_contract_means_that_the_calls_fail() {
    let sender = Sender { chain_id: chain_id(&destination(USUAL).network).unwrap(), address: Felt::from(5), calls: Some(Vec::new()) };
    let estimate = |code| {
        let chain = lying(chain_of(USUAL), "starknet_estimateFee", |_| true, error(code));
        drive::<Context>(&sender, &Known::default(), |_, _, request| chain.answer(request)).outcome.map(Observation::into_output)
    };
    for code in [40, 41] {
        let refusal = execution(&sender, &[&estimate(code).unwrap()], 10, true).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::SimulationReverted, "/estimate"), "{code}");
    }
    for code in [20, 24, 63, -32_603] {
        assert!(matches!(estimate(code), Err(Fault::Rpc(_))), "{code}");
    }
}

/// The calldata of a redemption contains the secret.
#[test]
fn a_signed_transaction_is_shown_by_its_id_alone() {
    let submission = send::signed();
    let signed = SignedInvoke::decode(&submission, &Known::default()).unwrap();
    assert_eq!(format!("{signed:?}"), format!("SignedInvoke({})", submission.id));
}
