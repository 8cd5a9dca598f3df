//! Reading what a chain returns about an order: only the layouts, events and interfaces of known generations are accepted.

use countersign_core::{SecretHash, StarknetGeneration as Generation, U256};
use countersign_starknet::read::{self, Access, HtlcEvent, Progress, StoredOrder};
use countersign_starknet::{Felt, felt};
use countersign_testkit::cairo::abi;
use countersign_testkit::{TestResult, shared, skipped};
use serde_json::{Value as Json, json};

const READABLE: [&Generation; 3] = [Generation::FEBRUARY_2025, Generation::NOVEMBER_2025, Generation::CLIENT_3_1_3];

fn hex(text: &str) -> Felt {
    felt::parse(text).expect(text)
}

fn secret() -> [u8; 32] {
    std::array::from_fn(|index| u8::try_from(index).expect("below 32"))
}

/// Addresses in storage, computed with starknet.js.
#[test]
fn an_order_is_stored_behind_the_hash_of_its_id() {
    for (id, base) in [
        (
            "0x1b2f4e33b3b7cec5765451c607c2a8d3cce76ce7282039d5c90fa52078015e5",
            "0x722a11d68018491823beb392b9b1609a43aa4ba729afcb64ee865bc407ecb0c",
        ),
        (
            "0x7ff785323e5cb9ee7569575db24731ccf1636561ac82082e4ad7b27c666695",
            "0x2489ab8885d6256c05ef1ab48df0600bbdfe3b12306782a0d83f1f39a9594f1",
        ),
        (
            "0x623679b75a7e464b2f857e6d9938cc43cb7e7ee7f6c0e8a742b0981bd07b052",
            "0x1b64e1970608a932b9364f34c69d859205bcc8cb8db244020ac261f70a2c19a",
        ),
    ] {
        let slots = read::slots(hex(id));
        assert_eq!(slots[0], hex(base), "{id}");
        assert!(slots.windows(2).all(|pair| pair[1] == pair[0] + Felt::ONE), "{id}");
    }
}

#[test]
fn each_generation_is_read_in_its_own_way() {
    assert_eq!(read::access(Generation::FEBRUARY_2025), Ok(Access::Storage));
    assert_eq!([Generation::NOVEMBER_2025, Generation::CLIENT_3_1_3].map(read::access), [Ok(Access::Getter); 2]);
    let unknown = read::access(Generation::JULY_2025).expect_err("it is not known").to_string();
    assert!(unknown.contains("not known"), "{unknown}");
    // Nothing is read for this generation, not even the absence of an order.
    assert!(read::order(Generation::JULY_2025, &[Felt::ZERO; 7]).is_err());
    assert!(read::event(Generation::JULY_2025, &[read::REFUNDED, Felt::ONE], &[]).is_err());
}

fn open_order() -> [Felt; 7] {
    [0, 0xa1, 0xb2, 700_000, 2880, 50_000, 0].map(|number: u64| Felt::from(number))
}

#[test]
fn an_order_is_seven_felts() {
    let expected = StoredOrder::clone(&read::order(Generation::NOVEMBER_2025, &open_order()).expect("an order").expect("there is one"));
    assert_eq!((expected.initiator, expected.redeemer), (Felt::from(0xa1), Felt::from(0xb2)));
    assert_eq!((expected.initiated_at, expected.timelock, expected.amount), (700_000, 2880, U256::from(50_000)));
    for generation in READABLE {
        let order = read::order(generation, &open_order());
        assert_eq!(order.as_ref().map(Option::as_ref), Ok(Some(&expected)), "{generation:?}");
        assert_eq!(read::order(generation, &[Felt::ZERO; 7]), Ok(None));

        let mut wide = open_order();
        wide[6] = Felt::from(3);
        let amount = read::order(generation, &wide).expect("an order").expect("there is one").amount;
        assert_eq!(amount, U256::from(50_000) | (U256::from(3) << 128));
    }
    let ended = |generation, at: u64| {
        let mut order = open_order();
        order[0] = Felt::from(at);
        read::order(generation, &order).map(|order| order.map(|order| order.progress))
    };
    for generation in [Generation::NOVEMBER_2025, Generation::CLIENT_3_1_3] {
        assert_eq!(ended(generation, 700_001), Ok(Some(Progress::Ended { at: Some(700_001) })));
        assert!(ended(generation, 699_999).is_err() && ended(generation, 1).is_err());
    }
    assert_eq!(ended(Generation::FEBRUARY_2025, 1), Ok(Some(Progress::Ended { at: None })));
    assert!(ended(Generation::FEBRUARY_2025, 2).is_err() && ended(Generation::FEBRUARY_2025, 700_001).is_err());
}

#[test]
fn felts_of_another_layout_are_unclear() {
    for generation in READABLE {
        for length in [0, 1, 6, 8, 14] {
            assert!(read::order(generation, &vec![Felt::ONE; length]).is_err(), "{length}");
        }
        // A field that is zero, or too wide.
        for index in 1..6 {
            let mut order = open_order();
            order[index] = Felt::ZERO;
            assert!(read::order(generation, &order).is_err(), "{index} is zero");
        }
        for index in [0, 3, 4, 5, 6] {
            let mut order = open_order();
            order[index] = Felt::MAX;
            assert!(read::order(generation, &order).is_err(), "{index} is too wide");
        }
    }
}

fn words(bytes: &[u8; 32], size: usize) -> Vec<Felt> {
    bytes.chunks(size).map(Felt::from_bytes_be_slice).collect()
}

/// The data of a `Redeemed` event.
fn redeemed(generation: &'static Generation, secret: &[u8; 32]) -> Vec<Felt> {
    let hash = SecretHash::of(secret).0;
    let mut data = words(&hash, if generation == Generation::CLIENT_3_1_3 { 16 } else { 4 });
    if generation != Generation::CLIENT_3_1_3 {
        data.push(Felt::from(8));
    }
    data.extend(words(secret, 4));
    data
}

#[test]
fn events_are_those_of_the_generation() {
    let (id, hash) = (Felt::from(0x123), SecretHash::of(&secret()));
    for generation in READABLE {
        let hash_words = words(&hash.0, if generation == Generation::CLIENT_3_1_3 { 16 } else { 4 });
        let initiated = [&hash_words[..], &[Felt::from(50_000), Felt::ZERO]].concat();
        // The numbers of felts of the events in the contract's interface.
        assert_eq!(
            (initiated.len(), redeemed(generation, &secret()).len()),
            if generation == Generation::CLIENT_3_1_3 { (4, 10) } else { (10, 17) }
        );
        let event = HtlcEvent::Initiated { order_id: id, secret_hash: hash, amount: U256::from(50_000) };
        assert_eq!(read::event(generation, &[read::INITIATED, id], &initiated), Ok(Some(event)), "{generation:?}");
        let with_data = [&initiated[..], &[Felt::TWO, Felt::from(7), Felt::from(8)]].concat();
        let keys = [read::INITIATED_WITH_DESTINATION_DATA, id];
        let read_with_data = read::event(generation, &keys, &with_data);
        if generation == Generation::FEBRUARY_2025 {
            assert!(read_with_data.is_err(), "this contract has no such event");
        } else {
            assert_eq!(read_with_data, Ok(Some(event)), "{generation:?}");
            assert_eq!(read::event(generation, &keys, &[&initiated[..], &[Felt::ZERO]].concat()), Ok(Some(event)));
            assert!(read::event(generation, &keys, &[&initiated[..], &[Felt::THREE, Felt::ONE]].concat()).is_err());
            assert!(read::event(generation, &keys, &initiated).is_err());
        }
        let event = HtlcEvent::Redeemed { order_id: id, secret: secret() };
        assert_eq!(read::event(generation, &[read::REDEEMED, id], &redeemed(generation, &secret())), Ok(Some(event)), "{generation:?}");
        assert_eq!(read::event(generation, &[read::REFUNDED, id], &[]), Ok(Some(HtlcEvent::Refunded { order_id: id })));
        // Events that are not about the progress of an order.
        assert_eq!(read::event(generation, &[], &[]), Ok(None));
        assert_eq!(read::event(generation, &[read::TRANSFER, id], &[]), Ok(None));
    }
}

#[test]
fn a_malformed_event_is_unclear() {
    let id = Felt::from(0x123);
    for generation in READABLE {
        let good = redeemed(generation, &secret());
        let keys = [read::REDEEMED, id];
        for index in 0..good.len() {
            for value in [Felt::ZERO, good[index] + Felt::ONE, Felt::MAX] {
                if value == good[index] {
                    continue;
                }
                let mut data = good.clone();
                data[index] = value;
                assert!(read::event(generation, &keys, &data).is_err(), "{generation:?}: felt {index} is {value:#x}");
            }
        }
        for length in 0..good.len() {
            assert!(read::event(generation, &keys, &good[..length]).is_err(), "{generation:?}: {length} felts");
        }
        assert!(read::event(generation, &keys, &[&good[..], &[Felt::ZERO]].concat()).is_err());
        for keys in [&[read::REDEEMED][..], &[read::REDEEMED, id, id]] {
            assert!(read::event(generation, keys, &good).is_err());
        }
        assert!(read::event(generation, &[read::REFUNDED, id], &[Felt::ONE]).is_err());
        assert!(read::event(generation, &[read::INITIATED, id], &good).is_err());
        // The events of another generation.
        for other in READABLE {
            let is_alike = (generation == Generation::CLIENT_3_1_3) == (other == Generation::CLIENT_3_1_3);
            assert_eq!(read::event(generation, &keys, &redeemed(other, &secret())).is_ok(), is_alike, "{other:?} as {generation:?}");
        }
    }
}

#[test]
fn transfers_have_their_parties_in_the_keys_or_in_the_data() {
    let [from, to, amount] = [Felt::from(0xa1), Felt::from(0xb2), Felt::from(9)];
    let in_keys = read::transfer(&[read::TRANSFER, from, to], &[amount, Felt::ZERO]);
    assert_eq!(in_keys.map(|transfer| (transfer.from, transfer.to, transfer.amount)), Some((from, to, U256::from(9))));
    assert_eq!(read::transfer(&[read::TRANSFER], &[from, to, amount, Felt::ZERO]), in_keys);
    for (keys, data) in [
        (vec![], vec![]),
        (vec![read::REFUNDED, from, to], vec![amount, Felt::ZERO]),
        (vec![read::TRANSFER, from], vec![to, amount, Felt::ZERO]),
        (vec![read::TRANSFER, from, to], vec![amount]),
        (vec![read::TRANSFER, from, to], vec![Felt::MAX, Felt::ZERO]),
        (vec![read::TRANSFER, from, to, amount], vec![]),
    ] {
        assert_eq!(read::transfer(&keys, &data), None, "{keys:?} {data:?}");
    }
}

#[test]
fn the_interface_of_a_class_shows_the_generation() {
    for generation in READABLE {
        assert_eq!(read::generation_of_abi(&abi(generation).to_string()), Ok(generation));
        // Functions on their own, outside an interface.
        let mut flat = abi(generation).as_array().cloned().expect("entries");
        let interface = flat.pop().expect("an interface");
        flat.extend(interface["items"].as_array().cloned().expect("items"));
        assert_eq!(read::generation_of_abi(&json!(flat).to_string()), Ok(generation));
    }
}

#[test]
fn any_other_interface_is_unclear() {
    for text in ["", "[", "{}", "[]", "null", "7", r#"["x"]"#, r#"[{"type": "function"}]"#, &"[".repeat(100_000)] {
        assert!(read::generation_of_abi(text).is_err(), "{}", &text[..text.len().min(20)]);
    }
    for generation in READABLE {
        let interface = abi(generation).as_array().expect("entries").len() - 1;
        let items = abi(generation)[interface]["items"].as_array().expect("items").len();
        for item in 0..items {
            let changed = |change: &dyn Fn(&mut Json)| {
                let mut abi = abi(generation);
                change(&mut abi[interface]["items"][item]);
                read::generation_of_abi(&abi.to_string())
            };
            let name = abi(generation)[interface]["items"][item]["name"].clone();
            assert_ne!(changed(&|function| function["name"] = json!("another")), Ok(generation), "{generation:?} without {name}");
            let more = |function: &mut Json| {
                function["inputs"].as_array_mut().expect("inputs").push(json!({ "name": "y", "type": "core::felt252" }))
            };
            assert!(changed(&more).is_err(), "{generation:?}: {name} with another argument");
            assert!(changed(&|function| function["inputs"] = json!([{ "type": "core::bool" }])).is_err(), "{generation:?}: {name}");
            // Two functions with the same name are ambiguous.
            let mut twice = abi(generation);
            let copy = twice[interface]["items"][item].clone();
            twice.as_array_mut().expect("entries").push(copy);
            assert_ne!(read::generation_of_abi(&twice.to_string()), Ok(generation), "{generation:?}: {name} twice");
        }
    }
    let mut other_layout = abi(Generation::NOVEMBER_2025);
    other_layout[0]["members"].as_array_mut().expect("members").swap(0, 3);
    assert!(read::generation_of_abi(&other_layout.to_string()).is_err());
}

#[test]
fn shared_interfaces_are_recognised() -> TestResult {
    for generation in READABLE {
        let file: Json = match shared(&format!("abis/starknet_htlc_{}.json", generation.name)) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(reason) => return skipped(&reason),
        };
        assert_eq!(read::generation_of_abi(&file["abi"].to_string()), Ok(generation));
    }
    Ok(())
}
