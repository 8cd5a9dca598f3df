//! The readers alone: honest answers become findings, lies become faults or "unclear", and never a proof of funding.

mod bounds;
mod course;
mod fate;
mod funds;
mod lies;
mod others;
mod settlement;

use countersign_core::reader::{Agree, Answer, Fault, Known, Machine, Next, Observation, Quorum, Reader, Request, Verdict};
use countersign_core::{Finding, HtlcState, HtlcTerms, LockedHtlc, SecretHash};
use countersign_solana::Address;
use countersign_solana::htlc::{Htlc as Program, HtlcAccount};
use countersign_solana::reader::Htlc;
use countersign_solana::solana_signature::Signature;
use countersign_testkit::chain::solana::{
    Chain, FINALIZED, FORMS, INITIATED, Mined, NEWEST, NOW, SECRET, SPONSOR, dust, initiate, is_audited, mined, name, swap_of,
    system_account, terms, token_account,
};
use serde_json::{Value, json};

/// How a reading went.
struct Reading<M: Machine> {
    outcome: Result<Observation<M>, Fault>,
    /// The requests of each round, the identity included.
    rounds: Vec<Vec<Request>>,
}

/// Drives a reader. `answer` is given the round, the place of the request in it, and the request.
fn drive<M: Machine>(subject: &M::Subject, known: &Known, mut answer: impl FnMut(usize, usize, &Request) -> Answer) -> Reading<M> {
    let mut reader = Reader::<M>::new(subject, known).expect("a valid subject");
    let mut rounds: Vec<Vec<Request>> = Vec::new();
    while let Next::Ask(requests) = reader.next() {
        let requests = requests.to_vec();
        assert_eq!(method(&requests[0]), "getGenesisHash", "every round asks for the identity");
        let answers: Vec<_> = requests.iter().enumerate().map(|(place, request)| answer(rounds.len(), place, request)).collect();
        rounds.push(requests);
        assert!(rounds.len() <= M::MAX_ROUNDS);
        reader.answer(&answers).expect("one answer for each request");
    }
    Reading { outcome: reader.finish(), rounds }
}

fn method(request: &Request) -> &'static str {
    let Request::JsonRpc { method, .. } = request else { panic!("{request:?}") };
    method
}

fn read(chain: &Chain, terms: &HtlcTerms) -> Reading<Htlc> {
    drive(terms, &Known::default(), |_, _, request| chain.answer(request))
}

fn finding(chain: &Chain, terms: &HtlcTerms) -> Finding {
    read(chain, terms).outcome.expect("a finding").into_output()
}

fn fault(chain: &Chain, terms: &HtlcTerms) -> Fault {
    read(chain, terms).outcome.expect_err("a fault")
}

fn of(form: &str) -> HtlcTerms {
    terms(form).destination
}

fn locked(state: &HtlcState) -> &LockedHtlc {
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    locked
}

const fn is_unclear(state: &HtlcState) -> bool {
    matches!(state, HtlcState::Unclear(_))
}

/// The program, the swap and its account.
fn parts(terms: &HtlcTerms) -> (Program, HtlcAccount, Address) {
    let (htlc, swap) = swap_of(terms);
    (htlc, swap, htlc.swap_account(&swap).unwrap())
}

/// Transactions of one slot that name an account and do nothing else to it.
fn crowd(slot: u64, to: Address, count: usize) -> impl Iterator<Item = Mined> {
    (0..count).map(move |index| {
        let mut mined = dust(slot, to);
        let mut name: [u8; 64] = mined.transaction.signatures[0].into();
        name[16..24].copy_from_slice(&u64::try_from(index).unwrap().to_le_bytes());
        mined.transaction.signatures[0] = Signature::from(name);
        mined
    })
}

/// Replaces the answers to one method.
fn lying(chain: Chain, about: &'static str, answer: Value) -> Chain {
    chain.lying(move |_, method, _| (method == about).then(|| answer.clone()))
}

fn redeemed(terms: &HtlcTerms) -> Chain {
    let (htlc, swap, _) = parts(terms);
    Chain::ended(terms, &htlc.redeem(&swap, Address::from(SPONSOR), &SECRET).unwrap())
}

fn refunded(terms: &HtlcTerms) -> Chain {
    let (htlc, swap, _) = parts(terms);
    Chain::ended(terms, &htlc.refund(&swap, Address::from(SPONSOR)).unwrap())
}

#[test]
fn an_open_swap_takes_one_round_and_four_requests_or_two_rounds_and_six() {
    for (form, expected) in FORMS.iter().zip([vec![4], vec![4, 2], vec![4], vec![4]]) {
        let terms = of(form);
        let Reading { outcome, rounds } = read(&Chain::funded(&terms), &terms);
        let Finding { state, origin, seen, .. } = outcome.unwrap().into_output();
        let locked = locked(&state);
        assert_eq!((&locked.initiator, &locked.redeemer, locked.amount), (&terms.initiator, &terms.redeemer, terms.amount), "{form}");
        assert_eq!((locked.timelock, &locked.token, locked.secret_hash), (terms.timelock, &terms.token, Some(terms.secret_hash)), "{form}");
        assert!(locked.covered && seen.is_safe && seen.is_finalized, "{form}");
        assert_eq!((origin.len(), &origin[..8]), (40, INITIATED.to_be_bytes().as_slice()), "{form}: the slot, and a digest");
        assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), expected, "{form}");
    }
}

#[test]
fn an_ended_swap_takes_two_rounds() {
    for form in FORMS {
        let terms = of(form);
        for chain in [redeemed(&terms), refunded(&terms)] {
            let Reading { outcome, rounds } = read(&chain, &terms);
            assert!(matches!(outcome.unwrap().output().state, HtlcState::Redeemed { .. } | HtlcState::Refunded { .. }), "{form}");
            assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), [4, 3], "{form}");
        }
        let Reading { outcome, rounds } = read(&Chain::empty(&terms), &terms);
        assert_eq!((outcome.unwrap().output().state.clone(), rounds.len()), (HtlcState::Absent, 2), "{form}: the node's oldest block");
    }
}

/// E1: every round shows the cluster.
#[test]
fn another_cluster_is_a_fault_in_every_round() {
    let terms = of(FORMS[1]);
    let chain = Chain::funded(&terms);
    for lying_round in [0, 1] {
        let reading = drive::<Htlc>(&terms, &Known::default(), |round, place, request| {
            let other = json!("4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY");
            if (round, place) == (lying_round, 0) { Answer::result(other.to_string().into_bytes()) } else { chain.answer(request) }
        });
        assert!(matches!(reading.outcome, Err(Fault::WrongChain { .. })), "round {lying_round}");
        assert_eq!(reading.rounds.len(), lying_round + 1);
    }
}

/// E2: an endpoint may not go back.
#[test]
fn an_endpoint_that_goes_back_is_a_fault() {
    let terms = of(FORMS[3]);
    let chain = Chain::funded(&terms);
    // The endpoint ignores the minimum slot in the request.
    let at = |height: u64| {
        drive::<Htlc>(&terms, &Known::default().with_height(height.into()), |_, _, request| match request {
            Request::JsonRpc { method: "getMultipleAccounts", params } => {
                let mut params: Value = serde_json::from_str(params).unwrap();
                assert_eq!(params[1]["minContextSlot"], height - 150);
                params[1].as_object_mut().unwrap().remove("minContextSlot");
                chain.answer(&Request::json_rpc("getMultipleAccounts", params))
            }
            other => chain.answer(other),
        })
    };
    let observation = at(FINALIZED + 150).outcome.unwrap();
    assert_eq!(observation.known().height().get(), FINALIZED);
    assert_eq!(at(FINALIZED + 151).outcome.unwrap_err(), Fault::WentBack { before: (FINALIZED + 151).into(), now: FINALIZED.into() });
}

/// L1: the vault must be the program's, of the mint, not frozen, and hold the amount.
#[test]
fn a_vault_that_is_not_the_programs_does_not_cover_the_swap() {
    for form in [FORMS[1], FORMS[3]] {
        let terms = of(form);
        let (htlc, swap, _) = parts(&terms);
        let (mint, vault, identity) = (htlc.token.unwrap().mint, htlc.vault().unwrap(), htlc.identity().unwrap());
        let mut frozen = token_account(mint, identity, swap.amount);
        frozen.data[108] = 2;
        let others = [
            Some(frozen),
            Some(token_account(mint, Address::from([0x33; 32]), swap.amount)),
            Some(token_account(Address::from([0x33; 32]), identity, swap.amount)),
            Some(token_account(mint, identity, swap.amount - 1)),
            Some(system_account(swap.amount)),
            None,
        ];
        for other in others {
            let mut chain = Chain::funded(&terms);
            chain.accounts.remove(&vault);
            chain.accounts.extend(other.map(|account| (vault, account)));
            assert!(!locked(&finding(&chain, &terms).state).covered, "{form}");
        }
    }
}

/// L2: "not funded" is only said if nothing is missing.
#[test]
fn an_incomplete_list_is_never_taken_for_not_funded() {
    for form in [FORMS[1], FORMS[2]] {
        let terms = of(form);
        let (_, _, address) = parts(&terms);
        let mut cut = Chain::empty(&terms);
        cut.mined.extend(crowd(INITIATED, address, 4_001));
        let Reading { outcome, rounds } = read(&cut, &terms);
        assert!(is_unclear(&outcome.unwrap().output().state), "{form}");
        assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2, 2, 2, 33, 225], "{form}");

        let pruned = lying(refunded(&terms), "getTransaction", Value::Null);
        assert!(is_unclear(&finding(&pruned, &terms).state), "{form}");
        let refused = json!({"error": {"code": -32_015, "message": "Transaction version (1) is not supported"}});
        assert!(matches!(fault(&lying(refunded(&terms), "getTransaction", refused.clone()), &terms), Fault::Rpc(_)), "{form}");
        assert!(matches!(fault(&lying(refunded(&terms), "getSignaturesForAddress", refused), &terms), Fault::Rpc(_)), "{form}");
    }
}

/// The newest transactions are read even if there are too many, because they may reveal the secret.
#[test]
fn a_crowd_does_not_hide_the_secret() {
    for form in [FORMS[1], FORMS[2]] {
        let terms = of(form);
        let (_, _, address) = parts(&terms);
        let mut chain = redeemed(&terms);
        let end = chain.mined.pop().unwrap();
        chain.mined.extend(crowd(INITIATED + 1, address, 4_500));
        chain.mined.push(end);
        let Reading { outcome, rounds } = read(&chain, &terms);
        let Finding { state, seen, .. } = outcome.unwrap().into_output();
        assert!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{form}: {state:?}");
        assert!(!seen.is_finalized && seen.depth == 0, "{form}");
        assert!(rounds.len() <= Htlc::MAX_ROUNDS);
    }
}

/// L3: the end has a slot, and a redemption that may be another swap's has none.
#[test]
fn the_slot_of_the_end_decides_whether_it_is_final() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, swap, _) = parts(&terms);
        let Finding { seen, origin, .. } = finding(&redeemed(&terms), &terms);
        assert_eq!((seen.depth, seen.is_finalized, &origin[..8]), (60, true, (INITIATED + 40).to_be_bytes().as_slice()), "{form}");
        if is_audited(&htlc) {
            continue;
        }
        let mut less = swap;
        less.amount = 1;
        let mut chain = redeemed(&terms);
        chain.mined[0] = mined(INITIATED, &initiate(&htlc, &less));
        let Finding { state, seen, origin, .. } = finding(&chain, &terms);
        assert!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{form}");
        assert_eq!((seen.depth, seen.is_safe, seen.is_finalized, &origin[..8]), (0, false, false, [0; 8].as_slice()), "{form}");
    }
}

/// L4, G1, G2: depth and time are those of the bank, elapsed time is that of the newest slot, and each endpoint has its own.
#[test]
fn depth_and_elapsed_time_have_their_own_slots() {
    let terms = of(FORMS[3]);
    let near = finding(&Chain::funded(&terms), &terms);
    assert_eq!((near.seen.height.get(), near.seen.depth, near.seen.head_time.as_secs()), (FINALIZED, 100, NOW - 20));
    let far = finding(&lying(Chain::funded(&terms), "getSlot", json!(NEWEST + 70)), &terms);
    for (finding, newest) in [(&near, NEWEST), (&far, NEWEST + 70)] {
        let locked = locked(&finding.state);
        assert_eq!((locked.elapsed, locked.least_elapsed), (newest - INITIATED, newest - INITIATED));
    }
    assert_eq!(near.key(), far.key(), "honest endpoints at different slots agree");
}

/// G: one absurd slot does not end a timelock.
#[test]
fn the_newest_slot_is_near_the_bank() {
    for form in FORMS {
        let terms = of(form);
        let at = |slot: u64| lying(Chain::funded(&terms), "getSlot", json!(slot));
        for absurd in [FINALIZED + 601, FINALIZED + terms.timelock, u64::MAX] {
            assert!(matches!(fault(&at(absurd), &terms), Fault::Malformed(_)), "{form}: {absurd}");
        }
        assert_eq!(locked(&finding(&at(FINALIZED + 600), &terms).state).elapsed, FINALIZED + 600 - INITIATED, "{form}");
        // A slot before that of the bank is not the newest.
        assert_eq!(locked(&finding(&at(0), &terms).state).elapsed, FINALIZED - INITIATED, "{form}");
    }
}

/// L5: the initiation is searched in its slot, or among the newest transactions.
#[test]
fn the_initiation_is_searched_where_it_must_be() {
    let terms = of(FORMS[1]);
    let (htlc, swap, address) = parts(&terms);
    let mut shorter = swap;
    shorter.timelock -= 100;
    let chain = |after: usize| {
        let mut chain = Chain::with_swap(&terms, &shorter, INITIATED + shorter.timelock);
        chain.mined = vec![mined(INITIATED, &initiate(&htlc, &shorter))];
        chain.mined.extend(crowd(INITIATED + 1, address, after));
        chain
    };
    assert_eq!(locked(&finding(&chain(15), &terms).state).timelock, shorter.timelock);
    assert!(is_unclear(&finding(&chain(16), &terms).state));
    // In the slot of the terms, a crowd does not hide it.
    let mut crowded = Chain::funded(&terms);
    crowded.mined.extend(crowd(INITIATED, address, 200));
    crowded.mined.extend(crowd(INITIATED + 1, address, 2_000));
    let Reading { outcome, rounds } = read(&crowded, &terms);
    assert_eq!(locked(&outcome.unwrap().output().state).timelock, terms.timelock);
    assert_eq!(rounds.len(), 4);
}

/// L6: a transaction must be the requested one, at the listed slot, and have succeeded.
#[test]
fn a_transaction_that_was_not_asked_for_is_a_fault() {
    for form in FORMS {
        let terms = of(form);
        for honest in [Chain::funded(&terms), refunded(&terms)] {
            if matches!(finding(&honest, &terms).state, HtlcState::Locked(_)) && form != FORMS[1] {
                continue;
            }
            let params = json!([name(&honest.mined[0])]);
            let truth = honest.reply_to("", &json!({"id": 0, "method": "getTransaction", "params": params}))["result"].clone();
            let (htlc, swap, _) = parts(&terms);
            let elsewhere = mined(INITIATED + 1, &initiate(&htlc, &swap));
            let mut others = vec![truth.clone(), truth.clone(), truth];
            others[0]["slot"] = json!(INITIATED + 1);
            others[1]["meta"]["err"] = json!({"InstructionError": [0, "Custom"]});
            others[2]["transaction"] = countersign_testkit::chain::solana::transaction(&elsewhere)["transaction"].clone();
            for other in others {
                let mut chain = Chain::funded(&terms);
                (chain.accounts, chain.mined) = (honest.accounts.clone(), honest.mined.clone());
                let about = params[0].clone();
                let chain = chain.lying(move |_, method, params| (method == "getTransaction" && params[0] == about).then(|| other.clone()));
                assert!(matches!(fault(&chain, &terms), Fault::Malformed(_)), "{form}");
            }
        }
    }
}

/// G3, G4: an endpoint counts once, and an observation is about the terms that it was read for.
#[test]
fn an_observation_is_of_its_terms_and_its_endpoint() {
    let terms = of(FORMS[2]);
    let observation = read(&Chain::funded(&terms), &terms).outcome.unwrap();
    assert_eq!(observation.subject(), &terms);
    let mut other = terms.clone();
    other.secret_hash = SecretHash([7; 32]);
    assert_ne!(observation.subject(), &other);
    let mut quorum = Quorum::new(["a", "b", "c"], 2).unwrap();
    let question = |one: &Observation<Htlc>| if matches!(one.output().state, HtlcState::Locked(_)) { Ok(()) } else { Err(()) };
    quorum.hear("a", Ok(observation.clone()));
    quorum.hear("a", Ok(observation.clone()));
    assert!(matches!(quorum.ask(question), Verdict::Open(_)));
    quorum.hear("b", Ok(observation));
    assert!(matches!(quorum.ask(question), Verdict::Stands(..)));
}

#[test]
fn other_networks_have_no_identity() {
    use countersign_core::chains::Network;
    use countersign_solana::reader::identity;
    for (network, expected) in [
        ("mainnet", Some("5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d")),
        ("testnet", Some("EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG")),
        ("102", Some("4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY")),
        ("localnet", Some("a local cluster")),
        ("eclipse", None),
    ] {
        let identity = identity(&Network::Solana(network.to_owned())).ok();
        assert_eq!(identity.as_ref().map(|identity| identity.expected.as_str()), expected, "{network}");
    }
    assert!(identity(&Network::Evm(1)).is_err());
}
