//! Reading a swap from honest and lying endpoints of a Solana cluster: honest answers become evidence. A lie becomes "unknown" or a hold,
//! never a proof of funding.
mod effect;
mod fake;
mod history;
mod payout;
mod prices;
mod replace;
mod send;
mod wallet;

use crate::support::{judged, shows_no_key};
use countersign::chains::UnixTime;
use countersign::reader::HtlcQuorum;
use countersign::solana::Address;
use countersign::solana::htlc::HtlcAccount;
use countersign::{
    Funded, SecretHash,
    chains::{Finality, FinalityRule},
    evidence::{HtlcState, VerifiedTerms},
};
use countersign_client::TransportErrorKind;
use countersign_node::NodeError;
use fake::{
    Account, Answering, Chain, FINALIZED, FORMS, Front, INITIATED, NEWEST, NOW, SECRET, SPONSOR, dust, initiate, is_audited, mined,
    mined_inside, name, nodes, swap_of, system_account, terms, token_account,
};
use serde_json::{Value, json};

const RULE: FinalityRule = FinalityRule::new(Finality::Finalized, 64, 1_500);

async fn read_with(chain: impl Into<Front>, count: usize, form: &str, terms: &VerifiedTerms) -> Result<HtlcQuorum, NodeError> {
    let nodes = nodes(chain, count, form);
    shows_no_key(nodes.solana(&terms.destination.chain).unwrap().htlc(&terms.destination).await)
}

async fn state(chain: impl Into<Front>, form: &str) -> HtlcState {
    read_with(chain, 1, form, &terms(form)).await.unwrap().state().unwrap().0
}

async fn judge(chain: impl Into<Front>, count: usize, form: &str) -> Result<Funded, String> {
    let terms = terms(form);
    judged(read_with(chain, count, form, &terms).await, &terms, &RULE, NOW)
}

fn chain(form: &str) -> Chain {
    Chain::funded(&terms(form).destination)
}

/// The chain with another swap at the account of the terms.
fn with_swap(form: &str, change: impl FnOnce(&mut HtlcAccount)) -> Chain {
    let terms = terms(form).destination;
    let (_, mut swap) = swap_of(&terms);
    change(&mut swap);
    Chain::with_swap(&terms, &swap, INITIATED + swap.timelock)
}

#[tokio::test(start_paused = true)]
async fn a_funded_swap_is_evidence_in_every_form() {
    for form in FORMS {
        let terms = terms(form);
        let destination = &terms.destination;
        // As soon as two of three agree, the third is not awaited.
        for (count, agreed) in [(1, 1), (2, 2), (3, 2)] {
            let quorum = read_with(chain(form), count, form, &terms).await.unwrap();
            let (state, seen) = quorum.state().unwrap();
            let HtlcState::Locked(locked) = &state else { panic!("{form}: {state:?}") };
            assert_eq!((&locked.initiator, &locked.redeemer), (&destination.initiator, &destination.redeemer), "{form}");
            assert_eq!((locked.amount, locked.timelock, locked.elapsed), (destination.amount, destination.timelock, NEWEST - INITIATED));
            assert_eq!((&locked.token, locked.secret_hash), (&destination.token, Some(destination.secret_hash)));
            assert!(locked.covered);
            assert_eq!((seen.height.get(), seen.depth, seen.head_time.as_secs()), (FINALIZED, 100, NOW - 20));
            assert_eq!((seen.is_safe, seen.is_finalized, seen.hash.len()), (true, true, 64));
            assert_eq!((seen.agreed, seen.needed), (agreed, agreed));
            assert!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).is_ok(), "{form}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_two_round_trips() {
    for (form, trips) in FORMS.iter().zip([1, 2, 1, 1]) {
        let terms = terms(form);
        let nodes = nodes(chain(form), 1, form);
        let solana = nodes.solana(&terms.destination.chain).unwrap();
        solana.htlc(&terms.destination).await.unwrap();
        solana.htlc(&terms.destination).await.unwrap();
        let chain = nodes.transport();
        assert_eq!(chain.requests.lock().unwrap()["a.example"], trips + trips, "{form}");
        assert_eq!(chain.count("getGenesisHash"), 1, "{form}: the identity is read once, with the first round");
        let seen = chain.seen.lock().unwrap();
        assert_eq!(seen[0].1, "getGenesisHash");
        let reads: Vec<_> = seen.iter().filter(|(_, method, _)| method == "getMultipleAccounts").collect();
        assert!(reads.iter().all(|(_, _, params)| params[1]["commitment"] == "finalized"));
        assert_eq!(reads[1].2[1]["minContextSlot"], FINALIZED - 150, "an endpoint may not go back");
    }
}

#[tokio::test(start_paused = true)]
async fn every_changed_term_holds_the_secret() {
    let other = Address::from([0x33; 32]);
    for form in FORMS {
        let changes: [fn(&mut HtlcAccount, Address); 5] = [
            |swap, other| swap.initiator = other,
            |swap, other| swap.redeemer = other,
            |swap, other| swap.secret_hash = other.to_bytes(),
            |swap, _| swap.amount -= 1,
            |swap, _| swap.timelock -= 100,
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let judged = judge(with_swap(form, |swap| change(swap, other)), 1, form).await;
            let (htlc, swap) = swap_of(&terms(form).destination);
            // For a native swap of the client generation, only the slot of expiry is known.
            if htlc.token.is_none() && !is_audited(&htlc) && index == 4 {
                assert_eq!(judged.unwrap().left().units, swap.timelock - 100 - (NEWEST - INITIATED));
                continue;
            }
            // The initiator and the secret hash determine this account. With others, the transaction creates another one.
            let is_seed = htlc.token.is_some() && !is_audited(&htlc) && [0, 2].contains(&index);
            let expected = if is_seed { "destination_unclear" } else { "destination_differs" };
            assert_eq!(judged.unwrap_err(), expected, "{form} {index}");
        }
        assert!(judge(with_swap(form, |swap| swap.amount += 1), 1, form).await.is_ok(), "{form}: more than was promised");
        assert_eq!(judge(Chain::empty(&terms(form).destination), 1, form).await.unwrap_err(), "destination_not_funded", "{form}");
        assert_eq!(judge(chain(form).at(FINALIZED, NOW - 600), 1, form).await.unwrap_err(), "chain_stale", "{form}");
        let timelock = terms(form).destination.timelock;
        let late = chain(form).at(INITIATED + timelock - 1_500, NOW - 5);
        assert_eq!(judge(late, 1, form).await.unwrap_err(), "destination_no_time", "{form}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_of_another_kind_is_unclear() {
    for form in FORMS {
        let (htlc, swap) = swap_of(&terms(form).destination);
        let address = htlc.swap_account(&swap).unwrap();
        let changes: [fn(&mut Account); 4] = [
            |account| account.owner = Address::from([0x44; 32]),
            |account| account.data[0] ^= 1,
            |account| account.data.push(0),
            |account| account.data.clear(),
        ];
        for change in changes {
            let mut chain = chain(form);
            change(chain.account_mut(address));
            assert!(matches!(state(chain, form).await, HtlcState::Unclear(_)), "{form}");
        }
        // The contents of each other kind of account, at this account.
        for other in FORMS.iter().filter(|other| **other != form) {
            let (other_htlc, _) = swap_of(&terms(other).destination);
            let mut chain = chain(form);
            chain.account_mut(address).data = fake::stored(&other_htlc, &swap, INITIATED + swap.timelock);
            assert!(matches!(state(chain, form).await, HtlcState::Unclear(_)), "{form} {other}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_swaps_funds_must_be_there() {
    for form in FORMS {
        let (htlc, swap) = swap_of(&terms(form).destination);
        let Some(token) = htlc.token else {
            let mut chain = chain(form);
            chain.account_mut(htlc.swap_account(&swap).unwrap()).lamports = swap.amount - 1;
            assert_eq!(judge(chain, 1, form).await.unwrap_err(), "destination_not_covered");
            continue;
        };
        let (vault, identity) = (htlc.vault().unwrap(), htlc.identity().unwrap());
        let mut frozen = token_account(token.mint, identity, swap.amount);
        frozen.data[108] = 2;
        let mut other_program = token_account(token.mint, identity, swap.amount);
        other_program.owner = Address::from([0x44; 32]);
        for account in [
            token_account(token.mint, identity, swap.amount - 1),
            token_account(Address::from([0x33; 32]), identity, swap.amount),
            token_account(token.mint, Address::from([0x33; 32]), swap.amount),
            frozen,
            other_program,
            system_account(swap.amount),
        ] {
            let mut chain = chain(form);
            chain.accounts.insert(vault, account);
            assert_eq!(judge(chain, 1, form).await.unwrap_err(), "destination_not_covered", "{form}");
        }
        let mut chain = chain(form);
        chain.accounts.remove(&vault);
        assert_eq!(judge(chain, 1, form).await.unwrap_err(), "destination_not_covered", "{form}");
    }
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_unknown() {
    let form = FORMS[3];
    let scripted = |status: u16, body: &'static str| chain(form).answering(move |_| Some(Ok((status, body.as_bytes().to_vec()))));
    let failing = |kind: TransportErrorKind| chain(form).answering(move |_| Some(Err(kind)));
    for chain in [
        scripted(200, "<html>busy</html>"),
        scripted(200, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32005,"message":"Node is behind by 42 slots"}}"#),
        scripted(200, r#"{"jsonrpc":"2.0","id":7,"result":"5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"}"#),
        scripted(200, r#"{"jsonrpc":"2.0","id":0}"#),
        scripted(200, r#"{"jsonrpc":"2.0","id":0,"res"#),
        scripted(429, ""),
        scripted(503, ""),
        failing(TransportErrorKind::Timeout),
        failing(TransportErrorKind::Connect),
    ] {
        let error = read_with(chain, 1, form, &terms(form)).await.unwrap_err();
        assert_ne!(error.code().name(), "transaction_rejected", "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_malformed_answer_is_unknown() {
    for form in FORMS {
        let whole = |method: &'static str, value: Value| chain(form).lying(move |_, called, _| (called == method).then(|| value.clone()));
        let clock = |slot: u64| {
            let data = [slot, 0, 0, 0, NOW].map(u64::to_le_bytes).concat();
            let mut chain = chain(form);
            chain.account_mut(countersign::solana::read::CLOCK).data = data;
            chain
        };
        let mut chains = vec![
            whole("getMultipleAccounts", Value::Null),
            whole("getMultipleAccounts", json!({"context": {"slot": FINALIZED}, "value": []})),
            whole("getMultipleAccounts", json!({"context": {"slot": FINALIZED}, "value": [null, null, null]})),
            whole("getMultipleAccounts", json!({"value": [null, null]})),
            whole("getSlot", json!("400")),
            whole("getSlot", json!(-1)),
            // The clock of another bank, and one that has not begun.
            clock(FINALIZED + 151),
            clock(0),
        ];
        let no_list = [
            json!({"error": {"code": -32010, "message": "excluded from account secondary indexes"}}),
            json!([{"signature": "x", "slot": 1, "err": null}]),
            Value::Null,
        ];
        for answer in no_list {
            let chain = whole("getSignaturesForAddress", answer.clone());
            if form != FORMS[1] {
                // The account of an open swap contains everything that the terms need.
                assert!(judge(chain, 1, form).await.is_ok(), "{form}");
                let gone = Chain::empty(&terms(form).destination);
                chains.push(gone.lying(move |_, called, _| (called == "getSignaturesForAddress").then(|| answer.clone())));
            } else {
                chains.push(chain);
            }
        }
        if form == FORMS[1] {
            chains.push(whole("getTransaction", json!({"slot": INITIATED})));
            chains.push(whole("getTransaction", json!({"slot": INITIATED, "transaction": ["AA==", "base64"], "meta": {"err": null}})));
            chains.push(whole("getTransaction", json!({"error": {"code": -32015, "message": "Transaction version (1) is not supported"}})));
        }
        for chain in chains {
            let error = read_with(chain, 1, form, &terms(form)).await.unwrap_err();
            assert!(error.is_transient(), "{form}: {error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_was_not_asked_for_is_refused() {
    let form = FORMS[1];
    let honest = chain(form);
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
    let truth = honest.reply_to("a", &call("getTransaction", json!([name(&honest.mined[0])])))["result"].clone();
    let other = chain(form);
    let (htlc, swap) = swap_of(&terms(form).destination);
    let elsewhere = mined(INITIATED + 1, &initiate(&htlc, &swap));
    let mut others = vec![truth.clone(), truth.clone(), truth];
    others[0]["slot"] = json!(INITIATED + 1);
    others[1]["meta"]["err"] = json!({"InstructionError": [0, "Custom"]});
    others[2]["transaction"][0] =
        other.reply_to("a", &call("getTransaction", json!([name(&elsewhere)])))["result"]["transaction"][0].clone();
    for answer in others {
        let chain = chain(form).lying(move |_, method, _| (method == "getTransaction").then(|| answer.clone()));
        assert_eq!(read_with(chain, 1, form, &terms(form)).await.unwrap_err().code().name(), "node_malformed");
    }
}

#[tokio::test(start_paused = true)]
async fn another_cluster_is_refused_whatever_else_it_says() {
    let form = FORMS[3];
    for genesis in ["5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d", "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY"] {
        let chain = Chain { genesis, ..chain(form) };
        let nodes = nodes(chain, 1, form);
        let error = nodes.solana("solana_testnet").unwrap().htlc(&terms(form).destination).await.unwrap_err();
        assert_eq!(error.code().name(), "node_wrong_chain");
        assert_eq!(nodes.transport().requests.lock().unwrap()["a.example"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_may_not_go_back() {
    let form = FORMS[3];
    let calls = std::sync::atomic::AtomicU64::new(0);
    // The endpoint ignores the minimum slot in the request.
    let chain = chain(form).lying(move |host, method, params| {
        let back = 151 * u64::from(method == "getMultipleAccounts" && calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0);
        let stale = Chain::funded(&terms(form).destination).at(FINALIZED - back, NOW - 20);
        (back > 0).then(|| stale.reply_to(host, &json!({"id": 0, "method": method, "params": [params[0], {}]}))["result"].clone())
    });
    let nodes = nodes(chain, 1, form);
    let solana = nodes.solana("solana_testnet").unwrap();
    assert!(solana.htlc(&terms(form).destination).await.is_ok());
    assert_eq!(solana.htlc(&terms(form).destination).await.unwrap_err().code().name(), "node_went_back");
}

#[tokio::test(start_paused = true)]
async fn the_quorum_speaks_and_not_one_liar() {
    let form = FORMS[2];
    let (htlc, swap) = swap_of(&terms(form).destination);
    let address = htlc.swap_account(&swap).unwrap();
    let absent = |hosts: &'static [&'static str]| {
        chain(form).lying(move |host, method, params| {
            let is_asked = hosts.contains(&host) && method == "getMultipleAccounts";
            is_asked.then(|| {
                let honest = Chain::funded(&terms(form).destination);
                let mut reply = honest.reply_to(host, &json!({"id": 0, "method": method, "params": params}))["result"].clone();
                let keys = params[0].as_array().unwrap();
                let place = keys.iter().position(|key| *key == json!(address.to_string())).unwrap();
                reply["value"][place] = Value::Null;
                reply
            })
        })
    };
    assert!(judge(absent(&["b.example"]), 3, form).await.is_ok());
    assert_eq!(judge(absent(&["a.example"]), 2, form).await.unwrap_err(), "node_disagree");
    // Two of three report that the account is gone, although a transaction created it and none ended the swap.
    assert_eq!(judge(absent(&["a.example", "b.example"]), 3, form).await.unwrap_err(), "destination_unclear");
    // An endpoint that does not answer counts for neither side.
    let silent = chain(form).answering(|host| (host == "a.example").then_some(Err(TransportErrorKind::Timeout)));
    assert!(judge(silent, 3, form).await.is_ok());
    let silent = chain(form).answering(|host| (host != "a.example").then_some(Err(TransportErrorKind::Timeout)));
    assert_eq!(judge(silent, 3, form).await.unwrap_err(), "node_disagree");
}

/// The clock's slot counts if an endpoint reports a slot that is slightly ahead of its accounts.
#[tokio::test(start_paused = true)]
async fn the_clock_says_which_slot_the_accounts_are_of() {
    let form = FORMS[3];
    let ahead = chain(form).lying(move |host, method, params| {
        let honest = Chain::funded(&terms(form).destination);
        (method == "getMultipleAccounts").then(|| {
            let mut reply = honest.reply_to(host, &json!({"id": 0, "method": method, "params": params}))["result"].clone();
            reply["context"]["slot"] = json!(FINALIZED + 3);
            reply
        })
    });
    let (_, seen) = read_with(ahead, 1, form, &terms(form)).await.unwrap().state().unwrap();
    assert_eq!(seen.height.get(), FINALIZED);
}

/// Endpoints are at different slots. The smallest depth and the longest elapsed time count.
#[tokio::test(start_paused = true)]
async fn endpoints_at_different_slots_agree() {
    let form = FORMS[3];
    let ahead = chain(form).lying(|host, method, _| (host == "b.example" && method == "getSlot").then(|| json!(NEWEST + 70)));
    let (state, seen) = read_with(ahead, 2, form, &terms(form)).await.unwrap().state().unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((locked.elapsed, locked.least_elapsed), (NEWEST + 70 - INITIATED, NEWEST - INITIATED));
    assert_eq!((seen.depth, seen.agreed), (100, 2));
}

#[tokio::test(start_paused = true)]
async fn a_swap_from_the_future_is_refused() {
    for form in FORMS {
        let terms = terms(form);
        let (_, swap) = swap_of(&terms.destination);
        let mut chain = Chain::with_swap(&terms.destination, &swap, FINALIZED + 1 + swap.timelock);
        let (htlc, _) = swap_of(&terms.destination);
        chain.mined = vec![mined(FINALIZED + 1, &initiate(&htlc, &swap))];
        let read = read_with(chain, 1, form, &terms).await;
        if form == FORMS[0] {
            // The swap may also have a longer timelock than its terms.
            assert!(matches!(read.unwrap().state().unwrap().0, HtlcState::Unclear(_)));
            continue;
        }
        assert_eq!(read.unwrap_err().code().name(), "node_malformed", "{form}");
    }
}

#[tokio::test(start_paused = true)]
async fn terms_that_are_not_solanas_are_refused() {
    let form = FORMS[1];
    let mut terms = terms(form);
    terms.destination.token = Some("0xdead".to_owned());
    let error = read_with(chain(form), 1, form, &terms).await.unwrap_err();
    assert_eq!(error.code().name(), "address_malformed");
    assert_eq!(SecretHash::of(&SECRET), terms.destination.secret_hash);
}
