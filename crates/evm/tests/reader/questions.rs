//! What one or two rounds answer: amounts, nonces, fees, receipts and receivers.

use std::cell::RefCell;

use countersign_core::reader::{Agree as _, Fault, Known, Machine, Observation, Request};
use countersign_core::{Code, RequestId, U256};
use countersign_evm::alloy_primitives::{Address, hex};
use countersign_evm::read;
use countersign_evm::reader::{
    Amount, AmountOf, CodeCheck, CodeOf, Context, FeeLevels, GaslessSignature, Newest, NewestBlock, NonceAndFees, OnChain, Prices,
    Receiver, ReceiverCheck, SignatureCheck, Status, fees, pending_nonce,
};
use countersign_evm::{Evm, ExternalSignature, Fees, Gasless};
use countersign_evm_core::transfer::BYSTANDERS;
use countersign_testkit::chain::evm::{LATEST, answer_with, hash_of};
use countersign_testkit::{fixture, key, verified};
use serde_json::{Value, json};

use super::{chain, drive};

pub(super) const OWNER: Address = Address::repeat_byte(0xa1);
pub(super) const SPENDER: Address = Address::repeat_byte(0xa2);
pub(super) const TOKEN: Address = Address::repeat_byte(0x70);

pub(super) type Asked = Vec<(String, Value)>;

/// Asks about something on chain 1. Returns the outcome, and what was asked for beside the identity.
pub(super) fn ask<S: Clone, M: Machine<Subject = OnChain<S>>>(
    subject: S,
    answer: impl Fn(&str, &Value) -> Value,
) -> (Result<Observation<M>, Fault>, Asked) {
    let asked = RefCell::new(Asked::new());
    let subject = OnChain { chain_id: 1, subject };
    let (outcome, _) = drive::<M>(&subject, &Known::default(), |_, place, request| {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let params = serde_json::from_str(params).unwrap();
        if place == 0 {
            assert_eq!(*method, "eth_chainId");
            return answer_with(&json!("0x1"));
        }
        let reply = answer_with(&answer(method, &params));
        asked.borrow_mut().push(((*method).to_owned(), params));
        reply
    });
    (outcome, asked.into_inner())
}

fn word(number: u64) -> Value {
    json!(hex::encode_prefixed(U256::from(number).to_be_bytes::<32>()))
}

pub(super) fn error(code: i64, message: &str) -> Value {
    json!({"error": {"code": code, "message": message}})
}

#[test]
fn an_amount_is_what_the_newest_block_says_of_the_account() {
    let call = |data: Vec<u8>| ("eth_call".to_owned(), json!([{"to": TOKEN, "data": hex::encode_prefixed(data)}, "latest"]));
    for (subject, request, good, bad) in [
        (
            AmountOf::Balance { owner: OWNER, token: None },
            ("eth_getBalance".to_owned(), json!([OWNER, "latest"])),
            json!("0x1234"),
            json!("1234"),
        ),
        (AmountOf::Balance { owner: OWNER, token: Some(TOKEN) }, call(read::balance_call(OWNER)), word(0x1234), json!("0x1234")),
        (
            AmountOf::Allowance { token: TOKEN, owner: OWNER, spender: SPENDER },
            call(read::allowance_call(OWNER, SPENDER)),
            word(0x1234),
            json!("0x"),
        ),
    ] {
        let (outcome, asked) = ask::<_, Amount>(subject, |_, _| good.clone());
        assert_eq!((outcome.unwrap().output().0, asked), (U256::from(0x1234), vec![request]));
        assert_eq!(ask::<_, Amount>(subject, |_, _| bad.clone()).0.unwrap_err().code().name(), "node_malformed");
    }
}

/// Reads nonces and fees from a chain with a base fee.
fn context(mined: u64, pending: u64) -> Result<Observation<Context>, Fault> {
    let (outcome, asked) = ask::<_, Context>(OWNER, |method, params| match method {
        "eth_getTransactionCount" => {
            assert_eq!(params[0], json!(OWNER));
            json!(format!("{:#x}", if params[1] == "latest" { mined } else { pending }))
        }
        _ => chain().result(method, params),
    });
    let methods: Vec<_> = asked.iter().map(|(method, params)| (method.as_str(), params.get(1).or(params.get(0)))).collect();
    let (pending, latest) = (json!("pending"), json!("latest"));
    assert_eq!(methods[..2], [("eth_getTransactionCount", Some(&pending)), ("eth_getTransactionCount", Some(&latest))]);
    outcome
}

#[test]
fn the_next_nonce_is_not_below_the_mined_one() {
    for (mined, pending) in [(7, 7), (7, 9), (0, 0)] {
        let observation = context(mined, pending).unwrap();
        assert_eq!((observation.output().mined_nonce, observation.output().nonce, observation.output().key()), (mined, pending, mined));
        assert_eq!((observation.output().height.get(), observation.known().height().get()), (LATEST, LATEST));
    }
    assert_eq!(context(7, 6).unwrap_err().code().name(), "node_malformed");
}

#[test]
fn a_pending_nonce_is_one_that_enough_endpoints_show() {
    let shown = |pending: &[u64]| pending.iter().map(|pending| *context(5, *pending).unwrap().output()).collect::<Vec<NonceAndFees>>();
    for (pending, needed, expected) in [
        (&[5, 5, 5][..], 2, Some(5)),
        (&[9, 5, 5], 2, Some(5)),
        (&[5, 9, 9], 2, Some(9)),
        (&[9], 1, Some(9)),
        (&[5, 6, 7], 2, None),
        (&[5, 5], 3, None),
        (&[], 1, None),
    ] {
        assert_eq!(pending_nonce(&shown(pending), needed), expected, "{pending:?}");
    }
}

/// Reads the fees of a chain with this history.
fn fees_of(base: &[u64], tips: &[[u64; 3]]) -> FeeLevels {
    let hex = |number: &u64| format!("{number:#x}");
    let tips: Vec<_> = tips.iter().map(|row| row.each_ref().map(hex)).collect();
    let history = json!({"baseFeePerGas": base.iter().map(hex).collect::<Vec<_>>(), "reward": tips});
    let (outcome, asked) = ask::<_, Context>(OWNER, |method, params| match method {
        "eth_feeHistory" => history.clone(),
        _ => chain().result(method, params),
    });
    assert!(asked.contains(&("eth_feeHistory".to_owned(), json!(["0x5", "latest", [10, 50, 90]]))));
    fees::levels(&[outcome.unwrap().output().prices]).unwrap()
}

#[test]
fn tips_are_medians_and_the_base_fee_is_that_of_the_next_block() {
    let levels = |base: u64, [slow, normal, fast]: [u64; 3]| {
        let level = |tenths: u64, tip: u64| Fees::Eip1559 {
            max_fee_per_gas: u128::from((base * tenths).div_ceil(10) + tip),
            max_priority_fee_per_gas: u128::from(tip),
        };
        (level(12, slow), level(15, normal), level(20, fast))
    };
    let rows = [[50, 5, 900], [10, 1, 100], [40, 4, 800], [20, 2, 200], [30, 3, 300]];
    let base = [1, 2, 3, 4, 5, 1_001];
    for (count, tips) in [(5, [30, 3, 300]), (4, [40, 4, 800]), (3, [40, 4, 800]), (2, [50, 5, 900]), (1, [50, 5, 900]), (0, [1, 1, 1])] {
        let fees = fees_of(&base, &rows[..count]);
        assert_eq!((fees.slow, fees.normal, fees.fast), levels(1_001, tips), "{count} blocks");
    }
    // Six base fees and five blocks were asked for, and no more are read.
    let more = [rows.as_slice(), &[[7_000; 3]; 4]].concat();
    let fees = fees_of(&[&base[..], &[9_000]].concat(), &more);
    assert_eq!((fees.slow, fees.normal, fees.fast), levels(1_001, [30, 3, 300]));
    // A tip of zero is not relayed: the node asks for 1 wei.
    let fees = fees_of(&[10], &[[0, 0, 0]]);
    assert_eq!((fees.slow, fees.normal, fees.fast), levels(10, [1, 1, 1]));
}

/// What a node shows of its prices, next to blocks without tips.
fn idle(base: u64, gas_price: Value, asked_tip: Value) -> Result<FeeLevels, Fault> {
    let hex = |number: u64| json!(format!("{number:#x}"));
    let (outcome, _) = ask::<_, Context>(OWNER, |method, params| match method {
        "eth_getBlockByNumber" => {
            let mut block = chain().block(LATEST);
            block["baseFeePerGas"] = hex(base);
            block
        }
        "eth_feeHistory" => json!({"baseFeePerGas": [hex(base)], "reward": [[hex(0), hex(0), hex(0)]]}),
        "eth_gasPrice" => gas_price.clone(),
        "eth_maxPriorityFeePerGas" => asked_tip.clone(),
        _ => chain().result(method, params),
    });
    outcome.map(|one| fees::levels(&[one.output().prices]).unwrap())
}

#[test]
fn a_tip_is_never_below_what_the_node_asks_for() {
    let unknown = || json!({"error": {"code": -32601, "message": "the method does not exist"}});
    let tips = |levels: FeeLevels| {
        [levels.slow, levels.normal, levels.fast].map(|fees| match fees {
            Fees::Eip1559 { max_priority_fee_per_gas, .. } => max_priority_fee_per_gas,
            _ => panic!("{fees:?}"),
        })
    };
    for (what, base, gas_price, asked_tip, expected) in [
        // BNB Chain: the base fee is 0, and nodes relay nothing below 0.1 gwei.
        ("the price where nothing is paid to the chain", 0, json!("0x5f5e100"), unknown(), 100_000_000),
        ("the price, although the tip that is asked for is lower", 0, json!("0x5f5e100"), json!("0x1"), 100_000_000),
        ("the tip that is asked for", 7, json!("0x5f5e100"), json!("0x3e8"), 1_000),
        ("the price without the base fee", 1_000, json!("0xfa0"), unknown(), 3_000),
        ("a price below the base fee", 1_000, json!("0x3e7"), unknown(), 1),
        ("neither", 1_000, unknown(), unknown(), 1),
        ("one of the two methods", 1_000, unknown(), json!("0x9"), 9),
        ("the tip alone where nothing is paid to the chain", 0, unknown(), json!("0x9"), 9),
    ] {
        assert_eq!(tips(idle(base, gas_price, asked_tip).unwrap()), [expected; 3], "{what}");
    }
    for bad in [json!("0x"), json!(null), json!("9"), json!(format!("0x1{}", "0".repeat(32)))] {
        assert!(idle(7, json!("0x9"), bad.clone()).is_err(), "{bad}");
        assert!(idle(7, bad, json!("0x9")).is_err());
    }
    // A node that limits requests, or fails, has not asked for nothing. Nor has one that has neither method where only nodes name a price.
    for base in [0, 7] {
        for failed in [error(-32_005, "limit exceeded"), error(429, "Too Many Requests"), error(-32_603, "internal error")] {
            for (gas_price, asked_tip) in [(failed.clone(), json!("0x9")), (json!("0x9"), failed.clone()), (failed.clone(), failed)] {
                assert!(matches!(idle(base, gas_price.clone(), asked_tip), Err(Fault::Rpc(_))), "{base} {gas_price}");
            }
        }
    }
    assert!(matches!(idle(0, unknown(), unknown()), Err(Fault::Rpc(_))));
}

#[test]
fn a_price_without_a_base_fee_is_rounded_up() {
    let (outcome, _) = ask::<_, Context>(OWNER, |method, params| match method {
        "eth_getBlockByNumber" => {
            let mut block = chain().block(LATEST);
            block["baseFeePerGas"] = Value::Null;
            block
        }
        "eth_gasPrice" => json!("0x3e9"),
        _ => chain().result(method, params),
    });
    let FeeLevels { slow, normal, fast, .. } = fees::levels(&[outcome.unwrap().output().prices]).unwrap();
    let legacy = |gas_price| Fees::Legacy { gas_price };
    assert_eq!((slow, normal, fast), (legacy(1_001), legacy(1_102), legacy(1_302)));
}

/// Three endpoints that show these prices: base fee, tips, the tip and the price that they ask for.
fn shown(all: [(u128, u128, u128, u128); 3]) -> Vec<Prices> {
    all.iter()
        .map(|(base, tip, asked_tip, gas_price)| Prices {
            base_fee: Some(*base),
            tips: [*tip; 3],
            asked_tip: *asked_tip,
            gas_price: *gas_price,
        })
        .collect()
}

#[test]
fn each_price_is_the_quorums_own() {
    let fast = |all| fees::levels(&shown(all)).unwrap().fast;
    let eip1559 = |base: u128, tip: u128| Fees::Eip1559 { max_fee_per_gas: 2 * base + tip, max_priority_fee_per_gas: tip };
    let honest = (100, 10, 5, 110);
    // No component of one endpoint decides, and none rides along with another one.
    for lie in [0, 1, 104, u128::MAX] {
        for liar in [(lie, 10, 5, 110), (100, lie, 5, 110), (100, 10, lie, 110), (100, 10, 5, lie), (lie, 0, 0, 0), (lie, lie, lie, lie)] {
            for all in [[liar, honest, honest], [honest, liar, honest], [honest, honest, liar]] {
                assert_eq!(fast(all), eip1559(100, 10), "{all:?}");
            }
        }
    }
    assert_eq!(fast([(1, 30, 0, 0), (2, 20, 0, 0), (3, 10, 0, 0)]), eip1559(2, 20));
    // Whether there is a base fee at all is decided by most of them.
    let mut mixed = shown([honest; 3]);
    mixed[0].base_fee = None;
    assert_eq!(fees::levels(&mixed).unwrap().fast, eip1559(100, 10));
    mixed[2].base_fee = None;
    assert_eq!(fees::levels(&mixed).unwrap().fast, Fees::Legacy { gas_price: 143 });
    assert_eq!(fees::levels(&[]), None);
    // Of two that differ, the lower one counts, and for what makes a secret public the higher one: the other may be a liar's.
    let two = |[one, other]: [(u128, u128, u128, u128); 2]| shown([one, other, other])[..2].to_vec();
    for (honest, liar) in [((100, 10, 5, 110), (0, 0, 0, 0)), ((0, 0, 100, 100), (0, 0, 0, 0))] {
        for all in [[liar, honest], [honest, liar]] {
            assert_eq!(fees::revealing_levels(&two(all)), fees::levels(&two([honest; 2])), "{all:?}");
            assert_eq!(fees::levels(&two(all)), fees::levels(&two([liar; 2])), "{all:?}");
        }
    }
}

#[test]
fn a_raised_fee_ends_at_four_times_the_median() {
    let eip1559 = |cap, tip| Fees::Eip1559 { max_fee_per_gas: cap, max_priority_fee_per_gas: tip };
    let legacy = |gas_price| Fees::Legacy { gas_price };
    let now = eip1559(1_000, 100);
    for (what, before, expected) in [
        ("both are raised by a tenth", eip1559(1_000, 100), eip1559(1_100, 110)),
        ("at least to what is paid now", eip1559(10, 1), eip1559(1_000, 100)),
        ("the cap is not paid, so it follows the tip", eip1559(8_000, 1), eip1559(8_800, 100)),
        ("beyond the limit it does not", eip1559(9_500, 1), eip1559(4_000, 100)),
        ("what was too high is offered at what is allowed now", eip1559(9_500, 9_000), eip1559(4_000, 400)),
        ("a tip that cannot be raised", eip1559(500, 400), eip1559(1_000, 400)),
    ] {
        assert_eq!(fees::overdue(before, now, 10_000), expected, "{what}");
    }
    for (before, expected) in [(100, 110), (1, 100), (399, 400), (10_000, 400)] {
        assert_eq!(fees::overdue(legacy(before), legacy(100), 10_000), legacy(expected), "{before}");
    }
}

#[test]
fn a_receipt_is_of_the_transaction_and_says_whether_it_succeeded() {
    let id = hash_of(77);
    let good = || json!({"transactionHash": id, "blockNumber": "0x10", "blockHash": hash_of(16), "status": "0x1"});
    let read = |receipt: Value| {
        let (outcome, asked) = ask::<_, Status>(id, |_, _| receipt.clone());
        assert_eq!(asked, [("eth_getTransactionReceipt".to_owned(), json!([id]))]);
        outcome.map(|observation| observation.into_output().0)
    };
    for (status, success) in [("0x1", true), ("0x0", false)] {
        let mut receipt = good();
        receipt["status"] = json!(status);
        let found = read(receipt).unwrap().unwrap();
        assert_eq!((found.block.get(), found.hash, found.success), (16, hash_of(16), success));
    }
    assert_eq!(read(Value::Null), Ok(None));
    assert_eq!(read(error(-32_000, "header not found")).unwrap_err().code().name(), "node_error");
    for (member, value) in [
        ("transactionHash", json!(hash_of(78))),
        ("transactionHash", Value::Null),
        ("status", json!("0x2")),
        ("status", json!("0x10000000000000001")),
        ("status", Value::Null),
        ("blockNumber", Value::Null),
        ("blockNumber", json!("0x10000000000000000")),
        ("blockHash", Value::Null),
        ("blockHash", json!("0x10")),
    ] {
        let mut forged = good();
        forged[member] = value;
        assert_eq!(read(forged).unwrap_err().code().name(), "node_malformed", "{member}");
    }
}

/// The HTLC pays the receiver, who must be able to use the payment.
#[test]
fn a_receiver_is_refused_only_by_a_token_that_lets_others_be_paid() {
    let (htlc, receiver) = (Address::repeat_byte(0x11), Address::repeat_byte(0x5a));
    let call = |from: Address, to: Address| {
        let data = hex::encode_prefixed(read::empty_transfer_call(to));
        ("eth_call".to_owned(), json!([{"from": from, "to": TOKEN, "data": data}, "latest"]))
    };
    // `paused()`.
    let paused = ("eth_call".to_owned(), json!([{"to": TOKEN, "data": "0x5c975abb"}, "latest"]));
    let mut paid = call(htlc, receiver);
    paid.1[0]["gas"] = gas_of_payment(&read::transfer_call(receiver, U256::ZERO));
    let transfers = [call(BYSTANDERS[0], BYSTANDERS[1]), call(htlc, htlc), paid, call(receiver, htlc), paused];
    let checked = Receiver { token: Some(TOKEN), htlc, receiver, amount: None };
    for (reverts, is_refused) in [
        ([false, false, false, false], false),
        ([false, false, true, false], true),
        ([false, false, false, true], true),
        // The token serves only accounts that it knows.
        ([true, false, true, true], true),
        // The token has frozen the HTLC.
        ([false, true, true, true], true),
        ([false, true, true, false], true),
        // The token refuses empty transfers.
        ([true, true, true, true], false),
        ([true, true, false, true], false),
    ] {
        let (outcome, asked) = ask::<_, ReceiverCheck>(checked, |method, params| {
            let place = transfers.iter().position(|one| *one == (method.to_owned(), params.clone())).unwrap();
            if *reverts.get(place).unwrap_or(&true) { error(3, "execution reverted: frozen") } else { json!("0x") }
        });
        assert_eq!(asked, transfers);
        let judged = outcome.unwrap().into_output().0;
        assert_eq!(judged.is_err(), is_refused, "{reverts:?}");
        assert!(judged.is_ok() || judged.unwrap_err().to_string().contains("frozen"));
    }
    // A node that fails or limits requests has answered neither yes nor no.
    for failure in [error(-32_000, "missing trie node"), error(-32_005, "limit exceeded")] {
        for (place, transfer) in transfers.iter().enumerate() {
            let (outcome, _) = ask::<_, ReceiverCheck>(checked, |method, params| {
                let is_there = *transfer == (method.to_owned(), params.clone());
                if is_there { failure.clone() } else { json!("0x") }
            });
            assert!(outcome.is_err(), "{place}");
        }
    }
}

/// The gas of a payment: its own bytes at the floor of EIP-7623, and what a redemption leaves for it. That is 63/64 of its limit of 300,000,
/// less 100,000 for the transaction and the contract.
fn gas_of_payment(data: &[u8]) -> Value {
    let zeros = data.iter().filter(|byte| **byte == 0).count();
    json!(format!("{:#x}", 21_000 + 10 * zeros + 40 * (data.len() - zeros) + 196_875))
}

/// A redemption that runs out of gas shows its secret for nothing. Before the HTLC holds the amount, a transfer of nothing is asked about.
#[test]
fn a_payment_has_the_gas_that_a_redemption_leaves_for_it() {
    let (htlc, receiver) = (Address::repeat_byte(0x11), Address::repeat_byte(0x5a));
    for amount in [None, Some(U256::from(7))] {
        let data = read::transfer_call(receiver, amount.unwrap_or_default());
        let transfer = json!({"from": htlc, "to": TOKEN, "data": hex::encode_prefixed(&data), "gas": gas_of_payment(&data)});
        let with = |answer: Value| {
            let (outcome, asked) = ask::<_, ReceiverCheck>(Receiver { token: Some(TOKEN), htlc, receiver, amount }, |_, params| {
                if params[0] == transfer { answer.clone() } else { json!("0x") }
            });
            assert!(asked.contains(&("eth_call".to_owned(), json!([transfer, "latest"]))), "{asked:?}");
            outcome.unwrap().into_output().0
        };
        assert_eq!(with(json!("0x")), Ok(()));
        for why in ["out of gas", "execution reverted"] {
            let refusal = with(error(-32_000, why)).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::ReceiverNotPayable, "/destination"), "{amount:?} {why}");
        }
    }
}

/// The gasless message of a fixture, signed by its key or with the bytes of a contract wallet.
fn gasless(contract: Option<Vec<u8>>) -> GaslessSignature {
    let case = fixture::<Evm>("evm-token-approval-exact");
    let mut unsigned = verified::<Evm>(&case).prepare(Gasless).unwrap();
    match contract {
        Some(bytes) => unsigned.attach(RequestId::TypedData, ExternalSignature::contract(bytes).unwrap()).unwrap(),
        None => unsigned.sign(&key::<Evm>(&case)).unwrap(),
    }
    GaslessSignature::of(&unsigned.finish().unwrap()).unwrap()
}

/// The contract recovers a key of an account without code. An account with code decides itself (ERC-1271).
#[test]
fn a_gasless_signature_is_asked_about_before_it_is_submitted() {
    let (by_key, by_contract) = (gasless(None), gasless(Some(vec![0xab; 96])));
    let tagged = |less: u8| {
        let mut bytes = by_key.signature.to_vec();
        *bytes.last_mut().unwrap() = bytes.last().unwrap().wrapping_sub(less);
        gasless(Some(bytes))
    };
    let magic = "0x1626ba7e00000000000000000000000000000000000000000000000000000000";
    let longer = format!("{magic}{}", "00".repeat(32));
    let delegated = "0xef01000000000000000000000000000000000000000001";
    let refused = Some("contract_signature_refused");
    for (signature, code, answer, expected) in [
        (&by_key, "0x", json!("0x"), None),
        (&by_contract, "0x", json!("0x"), Some("account_not_deployed")),
        // A key's signature that is passed as a contract's stays as it is, and the contract knows two values of v.
        (&tagged(0), "0x", json!("0x"), None),
        (&tagged(27), "0x", json!("0x"), Some("account_not_deployed")),
        (&tagged(248), "0x", json!("0x"), Some("account_not_deployed")),
        (&by_key, delegated, json!(magic), None),
        (&by_contract, "0x6080", json!(longer), None),
        (&by_key, delegated, json!("0x"), refused),
        (&by_key, delegated, json!("0xffffffff00000000000000000000000000000000000000000000000000000000"), refused),
        // Not the whole word, and one with something behind the four bytes.
        (&by_key, delegated, json!("0x1626ba7e"), refused),
        (&by_key, delegated, json!(magic.replace("7e00", "7e01")), refused),
        (&by_contract, "0x6080", error(3, "execution reverted: GS026"), refused),
    ] {
        let (outcome, asked) = ask::<_, SignatureCheck>(signature.clone(), |method, _| match method {
            "eth_getCode" => json!(code),
            _ => answer.clone(),
        });
        let judged = outcome.unwrap().into_output().0;
        assert_eq!(judged.as_ref().err().map(|refusal| refusal.code().name()), expected, "{code} {answer}");
        let [(_, owner), (_, call)] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(
            (&owner[0], &call[0]["to"], &call[0]["from"]),
            (&json!(signature.owner), &json!(signature.owner), &json!(signature.htlc))
        );
        // `isValidSignature(bytes32,bytes)`: selector, digest, offset, length, the very signature.
        let data = hex::decode(call[0]["data"].as_str().unwrap()).unwrap();
        assert_eq!((&data[..4], &data[4..36]), (&[0x16, 0x26, 0xba, 0x7e][..], signature.digest.as_slice()));
        assert_eq!(data[100..100 + signature.signature.len()], signature.signature);
    }
    // A failing node has answered nothing.
    for failure in [error(-32_000, "missing trie node"), error(-32_005, "limit exceeded")] {
        let (outcome, _) =
            ask::<_, SignatureCheck>(by_key.clone(), |method, _| if method == "eth_getCode" { json!(delegated) } else { failure.clone() });
        assert!(outcome.is_err());
    }
}

/// A delegate's code counts as well: the account is asked about the signature then.
#[test]
fn an_account_has_code_or_not() {
    for (code, expected) in
        [("0x", Some(false)), ("0x6080", Some(true)), ("0xef01000000000000000000000000000000000000000001", Some(true)), ("0x6", None)]
    {
        let (outcome, asked) = ask::<_, CodeCheck>(CodeOf(OWNER), |_, _| json!(code));
        assert_eq!(outcome.ok().map(|observation| observation.into_output().0), expected, "{code}");
        assert_eq!(asked, [("eth_getCode".to_owned(), json!([OWNER, "latest"]))]);
    }
    let (outcome, _) = ask::<_, CodeCheck>(CodeOf(OWNER), |_, _| error(-32_000, "missing trie node"));
    assert!(outcome.is_err(), "a node that fails has said nothing");
}

#[test]
fn the_newest_block_is_what_is_known_afterwards() {
    let (outcome, asked) = ask::<_, NewestBlock>(Newest, |method, params| chain().result(method, params));
    let observation = outcome.unwrap();
    assert_eq!(asked, [("eth_getBlockByNumber".to_owned(), json!(["latest", false]))]);
    assert_eq!((observation.output().height.get(), observation.known().height().get()), (LATEST, LATEST));
}
