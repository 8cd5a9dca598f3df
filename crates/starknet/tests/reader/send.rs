//! Tests checking, sending, following and describing, with the readers alone.

use countersign_core::reader::{Agree, Answer, Fault, Known, Machine, Observation, Reader, Request, Sent, Submission};
use countersign_core::{Code, Network, U256};
use countersign_starknet::reader::{
    Broadcast, Contract, ContractQuery, Intended, PreflightCheck, Status, StatusShown, TransactionQuery, TransactionStatus, chain_id,
};
use countersign_starknet::{Felt, Starknet, TxContext, UnsignedOrder, felt, read};
use countersign_testkit::chain::starknet::{CLASS, Chain, case, halves, hex, terms};
use countersign_testkit::{key, verified};
use serde_json::{Value, json};

use crate::reader::{method, methods};

const ID: &str = "starknet-2025-11";

type Outcome<M> = (Result<<M as Machine>::Output, Fault>, Vec<Vec<String>>);

/// Drives a reader. `answer` gets the method of the request; the other value is the methods of each round.
fn drive<M: Machine>(subject: &M::Subject, answer: impl Fn(&str, &Request) -> Answer) -> Outcome<M> {
    let drive = crate::reader::drive::<M>(subject, &Known::default(), |_, _, request| answer(&method(request), request));
    (drive.outcome.map(Observation::into_output), drive.asked.iter().map(|requests| methods(requests)).collect())
}

fn network() -> Network {
    terms(ID).source.network
}

/// The lies, without the errors that say something about a contract.
fn lies() -> Vec<Answer> {
    let is_of_contract = |lie: &Answer| matches!(lie, Answer::Error(error) if matches!(error.code, 20 | 21 | 40));
    crate::reader::lies::lies().into_iter().filter(|lie| !is_of_contract(lie)).collect()
}

pub(crate) fn signed() -> Submission {
    let case = case("starknet-public-key");
    let mut unsigned = verified::<Starknet>(&case).prepare(TxContext::new(Felt::ONE, Default::default())).unwrap();
    unsigned.sign(&key::<Starknet>(&case)).unwrap();
    let signed = unsigned.finish().unwrap().transactions().remove(0);
    Submission::new(&network(), &signed.id, &serde_json::to_string(&signed.native).unwrap())
}

fn chain() -> Chain {
    Chain { order: None, ..Chain::funded(&terms(ID).source) }
}

/// A transaction may carry the secret, so the chain is identified before it is sent, and again with it.
#[test]
fn nothing_is_sent_to_another_chain() {
    let signed = signed();
    let id = signed.id.clone();
    let accepting = chain().lying(move |_, method, _| (method == "starknet_addInvokeTransaction").then(|| json!({"transaction_hash": id})));
    let (outcome, asked) = drive::<Broadcast>(&signed, |_, request| accepting.answer(request));
    assert_eq!(outcome, Ok(Sent::Accepted));
    assert_eq!(asked, [vec!["starknet_chainId", "starknet_specVersion"], vec!["starknet_chainId", "starknet_addInvokeTransaction"]]);
    let other = Chain { chain_id: "SN_SEPOLIA", ..chain() };
    let (outcome, asked) = drive::<Broadcast>(&signed, |_, request| other.answer(request));
    assert!(matches!(outcome, Err(Fault::WrongChain { .. })) && asked.len() == 1);
    for lie in lies() {
        for method in ["starknet_chainId", "starknet_specVersion"] {
            let (outcome, asked) =
                drive::<Broadcast>(&signed, |asked, request| if asked == method { lie.clone() } else { chain().answer(request) });
            assert!(outcome.is_err() && asked.len() == 1, "{lie:?}");
        }
    }
    let reader = Reader::<Broadcast>::new(&signed, &Known::default()).unwrap();
    assert!(!format!("{reader:?}").contains("calldata"), "{reader:?}");
    for (id, payload) in [
        ("0x1", signed.payload.as_str()),
        (&signed.id, "{}"),
        (&signed.id, &signed.payload.replace("\"nonce\":\"0x1\"", "\"nonce\":\"0x2\"")),
    ] {
        assert!(Reader::<Broadcast>::new(&Submission::new(&network(), id, payload), &Known::default()).is_err());
    }
}

#[test]
fn no_lie_is_an_acceptance_or_a_rejection() {
    let signed = signed();
    let refusing = |code: i64| {
        chain().lying(move |_, method, _| {
            (method == "starknet_addInvokeTransaction").then(|| json!({"error": {"code": code, "message": "no"}}))
        })
    };
    for lie in lies() {
        for method in ["starknet_addInvokeTransaction", "starknet_getTransactionStatus"] {
            let chain = refusing(52);
            let (outcome, asked) =
                drive::<Broadcast>(&signed, |asked, request| if asked == method { lie.clone() } else { chain.answer(request) });
            assert!(outcome.is_err() && asked.len() <= 3, "{method} {lie:?}: {outcome:?}");
        }
    }
    for (code, is_rejected) in [(52, true), (54, true), (55, true), (59, false), (63, false), (-32_603, false)] {
        let (outcome, asked) = drive::<Broadcast>(&signed, |_, request| refusing(code).answer(request));
        assert_eq!((matches!(outcome, Ok(Sent::Rejected(_))), outcome.is_err(), asked.len()), (is_rejected, !is_rejected, 3), "{code}");
        let mut known = refusing(code);
        known.statuses.insert(signed.id.clone(), json!({"finality_status": "RECEIVED"}));
        assert_eq!(drive::<Broadcast>(&signed, |_, request| known.answer(request)).0, Ok(Sent::Accepted), "{code}");
    }
}

#[test]
fn a_status_is_what_the_chain_says() {
    let query = TransactionQuery { chain_id: chain_id(&network()).unwrap(), id: Felt::from(0x1d) };
    let status = |status: Value| {
        let mut chain = chain();
        chain.statuses.insert(hex(query.id), status);
        drive::<Status>(&query, |_, request| chain.answer(request)).0
    };
    let done = |finality: &str, execution: &str| status(json!({"finality_status": finality, "execution_status": execution}));
    let (l2, l1) = (done("ACCEPTED_ON_L2", "SUCCEEDED").unwrap(), done("ACCEPTED_ON_L1", "SUCCEEDED").unwrap());
    assert_eq!(
        (l2.0, l1.0),
        (Some(TransactionStatus::AcceptedOnL2 { success: true }), Some(TransactionStatus::AcceptedOnL1 { success: true }))
    );
    assert!(l2.key() == l1.key() && !l2.is_on_l1() && l1.is_on_l1(), "L1 may be seen later by one endpoint");
    assert_ne!(done("ACCEPTED_ON_L2", "REVERTED").unwrap().key(), l2.key());
    assert_eq!(status(json!({"finality_status": "REJECTED"})), Ok(StatusShown(None)));
    for odd in [json!({}), json!({"finality_status": "DONE"}), json!({"finality_status": "ACCEPTED_ON_L2"}), json!(null)] {
        assert!(status(odd.clone()).is_err(), "{odd}");
    }
    for lie in lies() {
        let chain = chain();
        let lying =
            |asked: &str, request: &Request| if asked == "starknet_getTransactionStatus" { lie.clone() } else { chain.answer(request) };
        assert!(drive::<Status>(&query, lying).0.is_err(), "{lie:?}");
    }
}

fn prepared() -> UnsignedOrder {
    verified::<Starknet>(&case(ID)).prepare(TxContext::new(Felt::ONE, Default::default())).unwrap()
}

/// The result of a simulation that pays the HTLC.
fn paying() -> Chain {
    let (chain, order) = (chain(), verified::<Starknet>(&case(ID)));
    let deposit = order.deposit();
    let event = json!({"keys": [hex(read::TRANSFER), hex(deposit.sender), hex(chain.htlc)], "data": halves(deposit.terms.amount)});
    let transfer = json!({"contract_address": hex(chain.token), "events": [event], "calls": []});
    let trace = json!({"execute_invocation": {"contract_address": "0x1", "events": [], "calls": [transfer]}});
    Chain { trace, ..chain }
}

#[test]
fn no_lie_passes_a_preflight() {
    let intended = Intended::new(chain_id(&network()).unwrap(), &prepared()).unwrap();
    let check = |chain: &Chain| drive::<PreflightCheck>(&intended, |_, request| chain.answer(request));
    let (outcome, asked) = check(&paying());
    assert!(outcome.unwrap().0.unwrap().is_simulated);
    assert_eq!(asked.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
    for lie in lies() {
        for (round, place) in (0..2).flat_map(|round| (0..4).map(move |place| (round, place))) {
            let chain = paying();
            let asked = std::cell::Cell::new(0_usize);
            let (outcome, _) = drive::<PreflightCheck>(&intended, |_, request| {
                let at = asked.replace(asked.get() + 1);
                if at == round * 4 + place { lie.clone() } else { chain.answer(request) }
            });
            assert!(outcome.is_err(), "{round} {place} {lie:?}: {outcome:?}");
        }
    }
    let amount = verified::<Starknet>(&case(ID)).deposit().terms.amount;
    let code = |chain: &Chain| check(chain).0.unwrap().key();
    assert_eq!(code(&paying()), Ok(()));
    assert_eq!(code(&Chain { balance: amount - U256::ONE, ..paying() }), Err(Code::InsufficientFunds));
    assert_eq!(code(&Chain { token: Felt::ONE, ..paying() }), Err(Code::SimulationDiffers));
    let reverted = json!({"execute_invocation": {"revert_reason": "HTLC: duplicate order"}});
    assert_eq!(code(&Chain { trace: reverted, ..paying() }), Err(Code::SimulationReverted));
    let other = felt::from_short_string("SN_SEPOLIA").unwrap();
    assert_eq!(Intended::new(other, &prepared()).unwrap_err().code(), Code::WalletChainMismatch);
}

#[test]
fn a_contract_is_described_at_one_block() {
    let chain = chain();
    let query = ContractQuery { chain_id: chain_id(&network()).unwrap(), address: chain.htlc };
    let (outcome, asked) = drive::<Contract>(&query, |_, request| chain.answer(request));
    let described = outcome.unwrap();
    assert_eq!(
        (described.class_hash, described.generation, described.token),
        (Some(Felt::from(CLASS)), Some(chain.generation), Some(chain.token))
    );
    assert_eq!(asked.iter().map(Vec::len).collect::<Vec<_>>(), [3, 4]);
    for lie in lies() {
        for method in ["starknet_getBlockWithTxHashes", "starknet_getClassHashAt", "starknet_getClassAt", "starknet_call"] {
            let (outcome, _) =
                drive::<Contract>(&query, |asked, request| if asked == method { lie.clone() } else { chain.answer(request) });
            assert!(outcome.is_err() || outcome.as_ref().is_ok_and(|other| *other != described), "{method} {lie:?}: {outcome:?}");
        }
    }
}
