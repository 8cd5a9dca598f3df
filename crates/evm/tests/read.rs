//! Reading what a chain returns about an order. Topics, slots and hashes were computed with js-sha3 0.8.0 and Node's `crypto`. The
//! worked examples beside the project come from a chain that executed them.
use countersign_core::{EvmGeneration, SecretHash};
use countersign_evm::alloy_primitives::{Address, B256, U256, address, b256, hex};
use countersign_evm::read::{self, HtlcEvent, Layout, Progress};
use countersign_testkit::{abi, shared};
use proptest::prelude::*;
use serde_json::Value;

const INITIATOR: Address = address!("4cd3fb4a504cc978f316a81dc5165d2c5b30592d");
const REDEEMER: Address = address!("661ba32eb5f86cab358ddbb7f264b10c5825e2dd");
const ID: B256 = B256::repeat_byte(0x5a);
const SECRET: [u8; 32] = [0x7e; 32];
const SECRET_HASH: B256 = b256!("3af805c48a2c0ebeed554ca823ab935ac1be570533b651122cf517791fa1561c");
const INITIATED: B256 = b256!("01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65");

fn words(words: [U256; 6]) -> Vec<u8> {
    words.iter().flat_map(U256::to_be_bytes::<32>).collect()
}

fn word(address: Address) -> U256 {
    address.into_word().into()
}

fn number(number: u64) -> U256 {
    U256::from(number)
}

fn v3(ended: u64) -> [U256; 6] {
    [word(INITIATOR), word(REDEEMER), number(9_000_000), number(7_200), number(50_000), number(ended)]
}

fn older(ended: u64) -> [U256; 6] {
    [number(ended), word(INITIATOR), word(REDEEMER), number(9_000_000), number(7_200), number(50_000)]
}

#[test]
fn reads_both_layouts() {
    for (answer, layout, progress) in [
        (v3(0), Layout::V3, Progress::Open),
        (v3(9_000_001), Layout::V3, Progress::Ended { at: Some(9_000_001) }),
        (older(0), Layout::Older, Progress::Open),
        (older(1), Layout::Older, Progress::Ended { at: None }),
    ] {
        let order = read::order(&words(answer)).unwrap().expect("an order");
        assert_eq!((order.layout, order.progress), (layout, progress));
        assert_eq!((order.initiator, order.redeemer), (INITIATOR, REDEEMER));
        assert_eq!((order.initiated_at, order.timelock, order.amount), (9_000_000, 7_200, number(50_000)));
    }
    assert_eq!(read::order(&[0; 192]), Ok(None));
}

#[test]
fn an_order_of_another_generation_than_the_pinned_one_is_unclear() {
    let read = |answer: [U256; 6]| read::order(&words(answer)).unwrap().expect("an order");
    for (order, generation, other) in
        [(read(v3(0)), EvmGeneration::V3, EvmGeneration::OLD), (read(older(0)), EvmGeneration::OLD, EvmGeneration::V3)]
    {
        assert_eq!(order.generation(), Some(generation));
        assert_eq!((order.check_generation(None), order.check_generation(Some(generation))), (Ok(()), Ok(())));
        let unclear = order.check_generation(Some(other)).unwrap_err();
        assert!(unclear.contains("`old`") && unclear.contains("`v3`"), "{unclear}");
    }
}

#[test]
fn refuses_every_other_layout() {
    for length in [0, 1, 32, 160, 191, 193, 224] {
        read::order(&vec![0; length]).unwrap_err();
        read::order(&vec![1; length]).unwrap_err();
    }
    let huge = U256::from(u64::MAX) + U256::ONE;
    let not_an_address = word(INITIATOR) | (U256::ONE << 160);
    let changes = [
        (v3(0), 0, vec![U256::ZERO, U256::ONE, U256::MAX, not_an_address]),
        (v3(0), 1, vec![U256::ZERO, U256::MAX, not_an_address]),
        (v3(0), 2, vec![U256::ZERO, U256::MAX, huge]),
        (v3(0), 3, vec![U256::ZERO, U256::MAX, huge]),
        (v3(0), 4, vec![U256::ZERO]),
        (v3(0), 5, vec![U256::ONE, U256::MAX, huge, number(8_999_999)]),
        (older(1), 0, vec![number(2), U256::MAX]),
        (older(1), 1, vec![U256::ZERO, U256::MAX, not_an_address]),
        (older(1), 2, vec![U256::ZERO, U256::MAX, not_an_address]),
        (older(1), 3, vec![U256::ZERO, U256::MAX, huge]),
        (older(1), 4, vec![U256::ZERO, U256::MAX, huge]),
        (older(1), 5, vec![U256::ZERO]),
    ];
    for (base, field, wrong) in changes {
        for wrong in wrong {
            let mut changed = base;
            changed[field] = wrong;
            assert!(read::order(&words(changed)).is_err(), "{field}: {wrong}");
        }
    }
    // A contract of another generation returns a seventh word.
    read::order(&[words(v3(0)), vec![0; 32]].concat()).unwrap_err();
}

#[test]
fn reads_the_events() {
    assert_eq!(read::REDEEMED, b256!("4c9a044220477b4e94dbb0d07ff6ff4ac30d443bef59098c4541b006954778e2"));
    assert_eq!(read::REFUNDED, b256!("fe509803c09416b28ff3d8f690c8b0c61462a892c46d5430c8fb20abe472daf0"));
    assert_eq!(read::TRANSFER, b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"));

    let amount = B256::from(number(50_000));
    let initiated = Some(HtlcEvent::Initiated { order_id: ID, secret_hash: SecretHash(SECRET_HASH.0), amount: number(50_000) });
    assert!(matches!(&initiated, Some(HtlcEvent::Initiated { .. })));
    assert_eq!(read::event(&[INITIATED, ID, SECRET_HASH, amount], &[]), Ok(initiated));
    assert_eq!(read::event(&[INITIATED, ID, SECRET_HASH], amount.as_slice()), Ok(initiated));
    let ended = read::event(&[read::REDEEMED, ID, SECRET_HASH], &abi::bytes(&SECRET));
    assert_eq!(ended, Ok(Some(HtlcEvent::Redeemed { order_id: ID, secret: SECRET })));
    assert_eq!(read::event(&[read::REFUNDED, ID], &[]), Ok(Some(HtlcEvent::Refunded { order_id: ID })));
    assert_eq!(read::event(&[read::TRANSFER, ID, ID], &[]), Ok(None));
    assert_eq!(read::event(&[], &[]), Ok(None));
}

#[test]
fn refuses_forged_and_malformed_events() {
    let topics = [read::REDEEMED, ID, SECRET_HASH];
    for secret in [[0x7f; 32].as_slice(), &[0x7e; 31], &[0x7e; 33], &[]] {
        read::event(&topics, &abi::bytes(secret)).unwrap_err();
    }
    let good = abi::bytes(&SECRET);
    for data in [&good[..95], &good[..32], &[], &[good.as_slice(), &[0]].concat()] {
        read::event(&topics, data).unwrap_err();
    }
    read::event(&[read::REDEEMED, ID], &good).unwrap_err();
    read::event(&[read::REFUNDED, ID], &[0]).unwrap_err();
    read::event(&[read::REFUNDED, ID, ID], &[]).unwrap_err();
    read::event(&[INITIATED, ID, SECRET_HASH], &[0; 31]).unwrap_err();
}

fn slots(order_id: B256, is_native: bool) -> [B256; 6] {
    read::slots(order_id.0, EvmGeneration::V3.contract(is_native).slot.unwrap())
}

#[test]
fn knows_where_an_order_is_stored() {
    let token = slots(ID, false);
    assert_eq!(token[0], b256!("ff762348e2f21e220b24728fb08d07e24fb2ac892b58d2700772d7ee665cd71d"));
    assert_eq!(token[5], b256!("ff762348e2f21e220b24728fb08d07e24fb2ac892b58d2700772d7ee665cd722"));
    assert_eq!(slots(ID, true)[0], b256!("df6fef576a789678a37b6b5e0b147cf3383eabb533b9043837aeebbda4dbcb77"));
}

#[test]
fn calls_are_those_of_the_abi() {
    let selector = |call: Vec<u8>| hex::encode(&call[..4]);
    assert_eq!(read::orders_call(ID.0), [hex!("9c3f1e90").as_slice(), ID.as_slice()].concat());
    assert_eq!(selector(read::token_call()), "fc0c546a");
    assert_eq!(selector(read::version_call()), "54fd4d50");
    assert_eq!(selector(read::domain_call()), "84b0196e");
    let owner = INITIATOR.into_word();
    assert_eq!(read::balance_call(INITIATOR), [hex!("70a08231").as_slice(), owner.as_slice()].concat());
    let spender = REDEEMER.into_word();
    assert_eq!(read::allowance_call(INITIATOR, REDEEMER), [hex!("dd62ed3e").as_slice(), owner.as_slice(), spender.as_slice()].concat());
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

fn hash(value: &Value) -> B256 {
    B256::from_slice(&bytes(value))
}

#[test]
fn reads_the_worked_examples() {
    let text = match shared("abis/examples.json") {
        Ok(text) => text,
        Err(reason) => return eprintln!("skipped: {reason}"),
    };
    let mut examples = serde_json::from_slice::<Value>(&text).unwrap()["evm"].take();
    let mut read_one = |name: &str, layout: Layout| read_example(&examples[name].take(), layout);
    let token = read_one("evm_v3_token", Layout::V3);
    assert_eq!(slots(hash(&token["order_id"]), false)[0], hash(&token["storage"]["first_slot_of_order"]));
    read_one("evm_v3_native", Layout::V3);
    read_one("evm_old_token_source_2024", Layout::Older);
    read_one("evm_old_native", Layout::Older);
}

fn read_example(example: &Value, layout: Layout) -> Value {
    let (id, inputs) = (hash(&example["order_id"]), &example["inputs"]);
    let secret_hash = SecretHash(hash(&inputs["secret_hash"]).0);

    let order = read::order(&bytes(&example["orders_return"])).unwrap().expect("an order");
    assert_eq!((order.layout, order.progress), (layout, Progress::Open));
    assert_eq!(order.initiator.to_string(), inputs["initiator"]);
    assert_eq!(order.redeemer.to_string(), inputs["redeemer"]);
    assert_eq!(order.timelock, inputs["timelock"]);
    assert_eq!(order.amount.to_string(), inputs["amount"]);

    let event = |name: &str| {
        let log = &example["logs"][name];
        let topics: Vec<_> = log["topics"].as_array().unwrap().iter().map(hash).collect();
        read::event(&topics, &bytes(&log["data"])).unwrap().expect("an event of the HTLC")
    };
    assert_eq!(event("Initiated"), HtlcEvent::Initiated { order_id: id, secret_hash, amount: order.amount });
    let secret: [u8; 32] = bytes(&inputs["secret"]).try_into().unwrap();
    assert_eq!(event("Redeemed"), HtlcEvent::Redeemed { order_id: id, secret });
    assert_eq!(event("Refunded"), HtlcEvent::Refunded { order_id: id });
    assert_eq!(read::orders_call(id.0), bytes(&example["calldata"]["orders"]));
    example.clone()
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..260), topics in prop::collection::vec(any::<[u8; 32]>(), 0..5)) {
        let mut topics: Vec<_> = topics.into_iter().map(B256::from).collect();
        let _ = (read::order(&bytes), read::number(&bytes), read::address(&bytes), read::text(&bytes), read::transfer(&topics, &bytes));
        for signature in [INITIATED, read::REDEEMED, read::REFUNDED, read::TRANSFER] {
            if let Some(first) = topics.first_mut() {
                *first = signature;
            }
            let _ = (read::event(&topics, &bytes), read::transfer(&topics, &bytes));
        }
    }
}
