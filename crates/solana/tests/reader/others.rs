//! Tests readings other than of HTLCs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::Network;
use countersign_core::reader::{Equal, Failure, FailureKind, RpcError, Sent, Submission};
use countersign_core::{Code, Leg, OrderRecord};
use countersign_solana::address::SYSTEM_PROGRAM;
use countersign_solana::read::RECENT_BLOCKHASHES;
use countersign_solana::reader::{
    Balance, BalanceQuery, Broadcast, Context, ContextQuery, HeadQuery, MAX_AGE, NewestBlock, Offer, PreflightCheck, PreflightQuery,
    Program as Described, ProgramQuery, Sent as SentReader, SentQuery, Settlement, SettlementQuery, Status, StatusQuery, TransactionStatus,
    wallet_context,
};
use countersign_solana::solana_hash::Hash;
use countersign_solana::{DurableNonce, Key, Solana, TxContext, read, recover};
use countersign_testkit::chain::solana::{Account, case, older_blockhash, recent_blockhashes};
use countersign_testkit::verified;

use super::*;

pub(crate) fn devnet() -> Network {
    Network::Solana("testnet".to_owned())
}

pub(crate) fn drive_on<M: Machine>(subject: &M::Subject, chain: &Chain) -> Reading<M> {
    drive(subject, &Known::default(), |_, _, request| chain.answer(request))
}

pub(crate) fn empty() -> Chain {
    Chain::empty(&of(FORMS[2]))
}

pub(crate) fn signed() -> Submission {
    let transaction = dust(7, Address::from([1; 32])).transaction;
    let (id, payload) = (transaction.signatures[0].to_string(), hex::encode(read::transaction_bytes(&transaction)));
    Submission::new(&devnet(), &id, &payload)
}

/// A transaction may carry the secret. It is not sent before the endpoint has shown its cluster.
#[test]
fn a_transaction_is_sent_only_to_the_pinned_cluster() {
    let reading = drive_on::<Broadcast>(&signed(), &empty());
    assert_eq!(reading.outcome.unwrap().into_output(), Sent::Accepted);
    let methods: Vec<Vec<_>> = reading.rounds.iter().map(|round| round.iter().map(method).collect()).collect();
    assert_eq!(methods, [vec!["getGenesisHash", "isBlockhashValid"], vec!["getGenesisHash", "sendTransaction"]]);
    for answer in
        [json!("5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"), Value::Null, json!("x"), json!({"error": {"code": 1, "message": ""}})]
    {
        let reading = drive_on::<Broadcast>(&signed(), &lying(empty(), "getGenesisHash", answer));
        assert!(reading.outcome.is_err());
        assert_eq!(reading.rounds.len(), 1, "nothing but the identity was asked");
    }
    assert!(!format!("{:?}", signed()).contains("payload"));
}

#[test]
fn a_refused_transaction_is_looked_up() {
    let refused = |code: i64, statuses: Value| {
        let error = json!({"error": {"code": code, "message": "no\u{202e}"}});
        let chain = empty().lying(move |_, method, _| match method {
            "sendTransaction" => Some(error.clone()),
            "getSignatureStatuses" => Some(statuses.clone()),
            _ => None,
        });
        drive_on::<Broadcast>(&signed(), &chain).outcome.map(Observation::into_output)
    };
    let context = |value: Value| json!({"context": {"slot": 1}, "value": value});
    let landed = json!({"slot": 7, "err": null, "confirmationStatus": "confirmed"});
    assert_eq!(refused(-32_002, context(json!([landed]))), Ok(Sent::Accepted));
    assert!(matches!(refused(-32_003, context(json!([null]))), Ok(Sent::Rejected(reason)) if !reason.contains('\u{202e}')));
    assert!(matches!(refused(-32_005, context(json!([null]))), Err(Fault::Rpc(_))), "the node's own problem");
    // Without the status it is unknown whether the transaction is on chain.
    for statuses in
        [Value::Null, context(json!([])), context(json!([null, null])), context(json!([{"slot": "7"}])), json!({"error": {"code": 1}})]
    {
        let statuses = if statuses.get("error").is_some() { json!({"error": {"code": 1, "message": ""}}) } else { statuses };
        assert!(refused(-32_003, statuses.clone()).is_err(), "{statuses}");
    }
    for other in [json!("1".repeat(64)), Value::Null, json!(7)] {
        let reading = drive_on::<Broadcast>(&signed(), &lying(empty(), "sendTransaction", other));
        assert!(matches!(reading.outcome, Err(Fault::Malformed(_))));
    }
    let silent = drive::<Broadcast>(&signed(), &Known::default(), |_, _, request| match method(request) {
        "sendTransaction" => Answer::Failed(Failure::new(FailureKind::Timeout, "")),
        _ => empty().answer(request),
    });
    assert!(matches!(silent.outcome, Err(Fault::Unanswered(_))), "it may have arrived");
}

#[test]
fn endpoints_agree_on_a_status_whether_it_is_final_or_not() {
    let query = StatusQuery::new(&devnet(), Signature::from([3; 64]), 300_000_000);
    let status = |mark: &str| {
        let value = json!({"context": {"slot": 1}, "value": [{"slot": 7, "err": null, "confirmationStatus": mark}]});
        drive_on::<Status>(&query, &lying(empty(), "getSignatureStatuses", value)).outcome.unwrap().into_output()
    };
    let (near, final_) = (status("confirmed"), status("finalized"));
    assert_eq!((near.is_finalized(), final_.is_finalized(), near.key() == final_.key()), (false, true, true));
    let pending = drive_on::<Status>(&query, &empty()).outcome.unwrap().into_output();
    assert_eq!(pending, TransactionStatus::Pending);
    let expired = StatusQuery::new(&devnet(), Signature::from([3; 64]), 299_999_999);
    assert_eq!(drive_on::<Status>(&expired, &empty()).outcome.unwrap().into_output(), TransactionStatus::Expired);
}

/// An answer that was cut says nothing: a transaction that failed would look as if it had succeeded.
#[test]
fn an_answer_without_the_outcome_of_a_transaction_is_no_success() {
    let context = |value: Value| json!({"context": {"slot": 1}, "value": value});
    let statuses = context(json!([{"slot": 7, "confirmationStatus": "finalized"}]));
    let query = StatusQuery::new(&devnet(), Signature::from([3; 64]), 300_000_000);
    let told = drive_on::<Status>(&query, &lying(empty(), "getSignatureStatuses", statuses)).outcome;
    assert!(matches!(told, Err(Fault::Malformed(refusal)) if refusal.code() == Code::MissingField));
    for form in FORMS {
        let terms = of(form);
        let mut list = serde_json::from_slice::<Value>(&match redeemed(&terms)
            .answer(&Request::json_rpc("getSignaturesForAddress", json!([parts(&terms).2.to_string(), {"limit": 1_000}])))
        {
            Answer::Result(text) => text,
            other => panic!("{other:?}"),
        })
        .unwrap();
        list[0].as_object_mut().unwrap().remove("err");
        let told = fault(&lying(redeemed(&terms), "getSignaturesForAddress", list), &terms);
        assert!(matches!(told, Fault::Malformed(refusal) if refusal.code() == Code::MissingField), "{form}");
        let order = verified::<Solana>(&case(form)).prepare(TxContext::new()).unwrap();
        let cut = context(json!({"logs": [], "accounts": [null, null], "unitsConsumed": 1}));
        let chain = lying(Chain::empty(&terms), "simulateTransaction", cut);
        let told = drive_on::<PreflightCheck>(&PreflightQuery::new(&terms.network, &order).unwrap(), &chain).outcome;
        assert!(matches!(told, Err(Fault::Malformed(refusal)) if refusal.code() == Code::MissingField), "{form}");
    }
}

/// A redemption that has expired would reveal the secret for nothing. A transaction that is already on chain counts
/// as accepted.
#[test]
fn a_transaction_with_a_blockhash_that_is_over_is_not_sent() {
    let context = |value: Value| json!({"context": {"slot": 1}, "value": value});
    let sent = |valid: Value, statuses: Value| {
        let chain = empty().lying(move |_, method, _| match method {
            "isBlockhashValid" => Some(valid.clone()),
            "getSignatureStatuses" => Some(statuses.clone()),
            _ => None,
        });
        let reading = drive_on::<Broadcast>(&signed(), &chain);
        let is_shown = reading.rounds.iter().flatten().any(|request| method(request) == "sendTransaction");
        (reading.outcome.map(Observation::into_output), is_shown)
    };
    let nowhere = context(json!([null]));
    let landed = context(json!([{"slot": 7, "err": null, "confirmationStatus": "confirmed"}]));
    let (outcome, is_shown) = sent(context(json!(false)), nowhere.clone());
    assert!(matches!(outcome, Ok(Sent::Rejected(why)) if why.contains("blockhash")) && !is_shown);
    assert_eq!(sent(context(json!(false)), landed), (Ok(Sent::Accepted), false));
    // An endpoint without an answer about the blockhash has no reason to refuse it.
    let error = json!({"error": {"code": -32_005, "message": "Node is behind by 42 slots"}});
    assert_eq!(sent(error, nowhere.clone()), (Ok(Sent::Accepted), true));
    for lie in [Value::Null, json!(true), context(Value::Null), context(json!("true")), context(json!(1))] {
        let (outcome, is_shown) = sent(lie, nowhere.clone());
        assert!(matches!(outcome, Err(Fault::Malformed(_))) && !is_shown);
    }
}

/// A redemption with a nonce that has been advanced would show the secret for nothing, as one with an old blockhash would. The layout of the
/// account is that of `NonceAccountLayout` in @solana/web3.js.
#[test]
fn a_transaction_with_a_nonce_that_is_not_stored_is_not_sent() {
    let (account, value, key) = (Address::from([0x71; 32]), [0x72; 32], Key::from_seed(&[9; 32]));
    let record = countersign_testkit::recover::record::<Solana>("solana-record-testnet", |_| {}).unwrap();
    let recovery = recover::refund(&record, Leg::Source, countersign_testkit::registry()).unwrap();
    let context = TxContext::new().with_nonce(DurableNonce::new(account, Hash::new_from_array(value)));
    let mut unsigned = recovery.prepare(context.sent_by(key.address())).unwrap();
    unsigned.sign(&key).unwrap();
    let transaction = unsigned.finish().unwrap().transactions().swap_remove(0);
    let submission = Submission::new(&devnet(), &transaction.native.signatures[0].to_string(), &hex::encode(&transaction.bytes));
    let stored = |version: u8, state: u8, authority: Address, value: [u8; 32]| {
        [&[version, 0, 0, 0, state, 0, 0, 0], authority.as_ref(), value.as_slice(), &5_000_u64.to_le_bytes()].concat()
    };
    let own = stored(1, 1, key.address(), value);
    let sent = |owner: Address, data: Option<Vec<u8>>| {
        let mut chain = empty();
        if let Some(data) = data {
            chain.accounts.insert(account, Account { lamports: 1_447_680, owner, data });
        }
        let reading = drive_on::<Broadcast>(&submission, &chain);
        let methods: Vec<_> = reading.rounds.iter().flatten().map(method).collect();
        assert!(methods.contains(&"getMultipleAccounts") && !methods.contains(&"isBlockhashValid"), "{methods:?}");
        (reading.outcome.map(Observation::into_output), methods.contains(&"sendTransaction"))
    };
    assert_eq!(sent(SYSTEM_PROGRAM, Some(own.clone())), (Ok(Sent::Accepted), true));
    for (owner, data) in [
        (SYSTEM_PROGRAM, None),
        (SYSTEM_PROGRAM, Some(Vec::new())),
        (SYSTEM_PROGRAM, Some(own[..71].to_vec())),
        (Address::from([6; 32]), Some(own)),
        (SYSTEM_PROGRAM, Some(stored(0, 1, key.address(), value))),
        (SYSTEM_PROGRAM, Some(stored(1, 0, key.address(), value))),
        (SYSTEM_PROGRAM, Some(stored(1, 1, account, value))),
        (SYSTEM_PROGRAM, Some(stored(1, 1, key.address(), [0x73; 32]))),
    ] {
        let (outcome, is_shown) = sent(owner, data.clone());
        assert!(matches!(outcome, Ok(Sent::Rejected(why)) if why.contains("nonce")) && !is_shown, "{data:?}");
    }
}

/// What an endpoint shows whose newest blockhashes are these.
fn offer(hashes: &[Hash], height: u64, price: u64) -> Offer {
    let mut chain = empty();
    chain.accounts.insert(RECENT_BLOCKHASHES, recent_blockhashes(hashes));
    let chain = chain.lying(move |_, method, _| match method {
        "getBlockHeight" => Some(json!(height)),
        "getRecentPrioritizationFees" => Some(json!([{"slot": 1, "prioritizationFee": price}])),
        _ => None,
    });
    drive_on::<Context>(&ContextQuery::new(&devnet(), &[], 50), &chain).outcome.unwrap().into_output()
}

/// The blockhashes of an honest endpoint that is this many blocks behind the newest one.
fn behind(blocks: u8) -> Vec<Hash> {
    (blocks..150).map(older_blockhash).collect()
}

/// One endpoint decides neither the fee, nor the blockhash, nor how long a transaction is waited for.
#[test]
fn a_wallet_context_is_the_quorums_own() {
    let (low, liar, high) =
        (offer(&behind(1), 1_000, 10), offer(&[Hash::new_from_array([2; 32])], 5, 9_999_999), offer(&behind(0), 1_001, 12));
    for offers in [[&liar, &low, &high], [&low, &liar, &high], [&high, &low, &liar]] {
        let context = wallet_context(&offers.map(Clone::clone), 2, false).unwrap();
        assert_eq!(context.priority_fee.map(|fee| fee.compute_unit_price), Some(12));
        // The endpoint that is ahead has one more block, so 149 of the 150 are left.
        assert_eq!((context.block_height, context.last_valid_block_height), (Some(1_000), Some(1_149)));
        assert_eq!(context.recent_blockhash, Some(older_blockhash(1)));
    }
    let context = wallet_context(&[low.clone(), high.clone()], 2, false).unwrap();
    assert_eq!(context.priority_fee.map(|fee| fee.compute_unit_price), Some(10), "the lower one of two");
    let revealing = wallet_context(&[low.clone(), high.clone()], 2, true).unwrap();
    assert_eq!(revealing.priority_fee.map(|fee| fee.compute_unit_price), Some(12), "the higher one, for what makes a secret public");
    assert_eq!(wallet_context(&[low, liar], 2, false), None);
    assert_eq!(wallet_context(&[offer(&behind(0), 1_000, 0)], 1, false).unwrap().priority_fee, None);
    assert_eq!(wallet_context(&[], 1, false), None);
}

/// A blockhash that is about to expire is valid everywhere. A transaction with it would expire on its way.
#[test]
fn most_of_the_life_of_a_blockhash_is_left() {
    let newest = |blocks: u8| offer(&behind(blocks), 1_000, 0);
    let last = u8::try_from(MAX_AGE).unwrap() - 1;
    for (age, is_used) in [(last, true), (last + 1, false), (149, false)] {
        let liar = offer(&[older_blockhash(age)], 1_000, 0);
        // Beside one honest endpoint, an old blockhash is the only one in common.
        let found = wallet_context(&[liar.clone(), newest(0)], 2, false).map(|context| context.recent_blockhash);
        assert_eq!(found, is_used.then(|| Some(older_blockhash(age))), "{age}");
        // Two honest ones have a newer one.
        for offers in [[liar.clone(), newest(0), newest(0)], [newest(0), liar.clone(), newest(2)], [newest(2), newest(0), liar]] {
            let context = wallet_context(&offers, 2, false).unwrap();
            let newer = [older_blockhash(0), older_blockhash(2)].map(Some);
            assert!(newer.contains(&context.recent_blockhash), "{age}: {context:?}");
            assert!(context.last_valid_block_height >= Some(1_000 + 100));
        }
    }
}

#[test]
fn recent_blockhashes_are_read_from_their_account() {
    let query = ContextQuery::new(&devnet(), &[], 50);
    let reading = drive_on::<Context>(&query, &empty());
    assert!(reading.outcome.is_ok());
    let Request::JsonRpc { params, .. } = &reading.rounds[0][1] else { panic!("{:?}", reading.rounds) };
    assert!(params.contains(r#""dataSlice":{"offset":0,"length":2008}"#), "{params}");
    for data in [Vec::new(), vec![0; 7], vec![0; 8], vec![0; 47]] {
        let mut chain = empty();
        chain.account_mut(RECENT_BLOCKHASHES).data = data;
        assert!(matches!(drive_on::<Context>(&query, &chain).outcome, Err(Fault::Malformed(_))));
    }
    let mut none = empty();
    none.accounts.remove(&RECENT_BLOCKHASHES);
    assert!(drive_on::<Context>(&query, &none).outcome.is_err());
}

#[test]
fn heads_and_balances_are_read_from_one_bank() {
    let head = drive_on::<NewestBlock>(&HeadQuery::new(&devnet()), &empty()).outcome.unwrap();
    assert_eq!((head.output().height.get(), head.output().time.as_secs(), head.known().height().get()), (FINALIZED, NOW - 20, FINALIZED));
    let behind =
        drive::<NewestBlock>(&HeadQuery::new(&devnet()), &Known::default().with_height((FINALIZED + 151).into()), |_, _, request| {
            empty().answer(request)
        });
    assert!(matches!(behind.outcome, Err(Fault::WentBack { .. })));
    let owner = Address::from([0x21; 32]);
    let mut chain = empty();
    chain.accounts.insert(owner, system_account(123));
    let balance = |chain: &Chain| drive_on::<Balance>(&BalanceQuery::new(&devnet(), owner, None), chain).outcome;
    assert_eq!(balance(&chain).unwrap().output().0, countersign_core::U256::from(123));
    for lie in [Value::Null, json!({"context": {"slot": 1}, "value": []}), json!({"context": {"slot": 1}, "value": [null, null]})] {
        assert!(matches!(balance(&lying(empty(), "getMultipleAccounts", lie)), Err(Fault::Malformed(_))));
    }
    let elsewhere = BalanceQuery::new(&Network::Evm(1), owner, None);
    assert_eq!(Reader::<Balance>::new(&elsewhere, &Known::default()).unwrap_err().code(), Code::UnknownChain);
}

/// Replaces each answer of each round. `is_number` are the methods to which every number is an answer.
fn assert_lies_are_faults<M: Machine>(subject: &M::Subject, chain: &Chain, is_number: &[&str]) {
    let honest = drive_on::<M>(subject, chain);
    assert!(honest.outcome.is_ok(), "{:?}", honest.outcome);
    let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    let results = ["null", "7", "\"7\"", "true", "{}", "[[]]", "[", &deep];
    let mut lies: Vec<_> = results.iter().map(|text| Answer::result(text.as_bytes())).collect();
    lies.push(Answer::http(200, b"{}".to_vec()));
    lies.push(Answer::Error(RpcError::new(-32_005, "Node is behind by 42 slots", None)));
    lies.push(Answer::Failed(Failure::new(FailureKind::Timeout, "")));
    for (round, requests) in honest.rounds.iter().enumerate() {
        for (place, request) in requests.iter().enumerate() {
            for (index, lie) in lies.iter().enumerate() {
                if index == 1 && is_number.contains(&method(request)) {
                    continue;
                }
                let answer = |now, at, request: &Request| if (now, at) == (round, place) { lie.clone() } else { chain.answer(request) };
                let told = drive::<M>(subject, &Known::default(), answer).outcome;
                assert!(told.is_err(), "round {round}, {request:?}, lie {index}: {told:?}");
            }
        }
    }
}

#[test]
fn an_answer_that_is_something_else_is_a_fault_of_every_reader() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, _, address) = parts(&terms);
        let mut chain = Chain::funded(&terms);
        let network = &terms.network;
        let (code, loader) = (Address::from([0x55; 32]), "BPFLoaderUpgradeab1e11111111111111111111111".parse().unwrap());
        let of_loader = |data: Vec<u8>| Account { lamports: 1, owner: loader, data };
        chain.accounts.insert(htlc.program, of_loader([&[2, 0, 0, 0], code.as_ref()].concat()));
        chain.accounts.insert(code, of_loader([&[3, 0, 0, 0], 77_u64.to_le_bytes().as_slice(), &[0; 33], b"code"].concat()));
        assert_lies_are_faults::<NewestBlock>(&HeadQuery::new(network), &chain, &[]);
        assert_lies_are_faults::<Context>(&ContextQuery::new(network, &[address], 50), &chain, &["getBlockHeight"]);
        assert_lies_are_faults::<Balance>(&BalanceQuery::new(network, address, htlc.token.map(|token| token.mint)), &chain, &[]);
        assert_lies_are_faults::<Status>(&StatusQuery::new(network, Signature::from([3; 64]), 0), &chain, &["getBlockHeight"]);
        assert_lies_are_faults::<Described>(&ProgramQuery::new(network, htlc.program, Some(address)), &chain, &[]);
        let order = verified::<Solana>(&case(form)).prepare(TxContext::new()).unwrap();
        let query = PreflightQuery::new(network, &order).unwrap();
        assert_lies_are_faults::<PreflightCheck>(&query, &chain, &["getMinimumBalanceForRentExemption"]);
        let record = OrderRecord::from_json(case(form).json()["order"].to_string().as_bytes()).unwrap();
        let refund = recover::refund(&record, Leg::Source, case(form).registry).unwrap();
        assert_lies_are_faults::<Settlement>(&SettlementQuery::new(network, &refund), &chain, &[]);
    }
}

/// The id is the first signature, so that it must be one of the content.
#[test]
fn a_transaction_is_believed_if_its_id_signs_it() {
    let case = countersign_testkit::fixture::<Solana>("solana-native-legacy");
    let mut unsigned = verified::<Solana>(&case).prepare(countersign_testkit::wallet::<Solana>(&case)).unwrap();
    unsigned.sign(&countersign_testkit::key::<Solana>(&case)).unwrap();
    let transaction = unsigned.finish().unwrap().transactions().swap_remove(0);
    let (id, bytes) = (transaction.native.signatures[0], transaction.bytes);
    let asked = |id: Signature, bytes: &[u8]| {
        let value = json!({"slot": 1, "transaction": [STANDARD.encode(bytes), "base64"], "meta": {"err": null}, "version": "legacy"});
        let query = SentQuery { network: devnet(), id };
        let found = drive_on::<SentReader>(&query, &lying(empty(), "getTransaction", value)).outcome?.into_output().0;
        Ok::<_, Fault>(found.map(|Equal(found)| found.map(|found| found.signatures[0])).map_err(|refusal| refusal.code()))
    };
    assert_eq!(asked(id, &bytes), Ok(Ok(Some(id))));
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    let foreign = Signature::from([7; 64]);
    let mut under_another = bytes.clone();
    under_another[1..65].copy_from_slice(foreign.as_ref());
    for (id, shown) in [(id, &changed[..]), (foreign, &bytes), (foreign, &under_another), (id, &bytes[..70]), (id, b"")] {
        assert!(matches!(asked(id, shown), Err(Fault::Malformed(_))), "{id}");
    }
}
