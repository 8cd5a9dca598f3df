//! Reading what a chain returns: values that were computed outside of this project, and bytes that a contract never stores.
use countersign_core::chains::swap_id::{SwapIdInput, sui, sui_with_chain_word};
use countersign_core::{SecretHash, U256};
use countersign_sui::read::{HtlcEvent, StoredOrder, event, field_id, order};
use countersign_sui::sui_sdk_types::{Address, TypeTag};
use proptest::prelude::*;
use serde_json::Value as Json;

/// An order encoded with @mysten/sui: `fixtures/generate/lib/sui-chain.mjs`.
fn chain() -> Json {
    serde_json::from_slice(&std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/chain/sui.json")).unwrap()).unwrap()
}

fn bytes(value: &Json) -> Vec<u8> {
    let text = value.as_str().unwrap();
    hex::decode(text.strip_prefix("0x").unwrap_or(text)).unwrap()
}

fn word(value: &Json) -> [u8; 32] {
    bytes(value).try_into().unwrap()
}

fn address(value: &Json) -> Address {
    value.as_str().unwrap().parse().unwrap()
}

fn number(value: &Json) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap()
}

fn open(made: &Json) -> StoredOrder {
    order(text(&made["object_type"]), &bytes(&made["open"])).unwrap()
}

#[test]
fn an_order_of_the_reference_sdk_is_read() {
    let made = &chain()["order"];
    let stored = open(made);
    assert_eq!((stored.field, stored.order_id), (address(&made["fields"][0]), word(&made["ids"][0])));
    assert_eq!((stored.package, stored.coin_type.to_string()), (address(&made["package"]), TypeTag::from(sui_type()).to_string()));
    assert_eq!((stored.initiator, stored.redeemer), (address(&made["initiator"]), address(&made["redeemer"])));
    assert_eq!((stored.amount, stored.balance, stored.has_ended), (number(&made["amount"]), number(&made["amount"]), false));
    assert_eq!((stored.initiated_at, stored.timelock), (number(&made["initiated_at"]), number(&made["timelock"])));
    let mut ended = order(text(&made["object_type"]), &bytes(&made["ended"])).unwrap();
    assert_eq!((ended.has_ended, ended.balance), (true, 0));
    (ended.has_ended, ended.balance) = (false, stored.balance);
    assert_eq!(ended, stored);
}

fn sui_type() -> countersign_sui::sui_sdk_types::StructTag {
    countersign_sui::sui_sdk_types::StructTag::sui()
}

#[test]
fn ids_are_those_of_the_reference_sdk() {
    let made = &chain()["order"];
    let (secret_hash, initiator, redeemer) = (word(&made["secret_hash"]), word(&made["initiator"]), word(&made["redeemer"]));
    let swap = SwapIdInput {
        secret_hash: &secret_hash,
        initiator: &initiator,
        redeemer: &redeemer,
        timelock: number(&made["timelock"]),
        amount: U256::from(number(&made["amount"])),
    };
    let registry = address(&made["registry"]);
    for chain_word in [0_u8, 1] {
        let id = sui_with_chain_word(chain_word, &swap, registry.as_bytes()).unwrap();
        let index = usize::from(chain_word);
        assert_eq!((id, field_id(registry, &id)), (word(&made["ids"][index]), address(&made["fields"][index])));
    }
    assert_eq!(sui(&swap, registry.as_bytes()), Some(word(&made["ids"][0])), "the test network's word is zero");
    assert_eq!(sui_with_chain_word(1, &SwapIdInput { amount: U256::MAX, ..swap }, registry.as_bytes()), None);
}

/// An order whose ids, object and events were computed from the contract's public source.
mod public_source {
    pub(super) const PACKAGE: &str = "0x99865b03dd1bc03d0a6a805c454ea257c464f7abcccae9cd4b621b91e7ca04de";
    pub(super) const REGISTRY: &str = "0x5c438715b7dcc02d12ab92449153a1e5ade2301620d5bf60aa748f006726d369";
    pub(super) const INITIATOR: &str = "0x79a1582388c16d0ab85904f320eb0527481391a9b9ab4b2ab46adc4c2564f9d0";
    pub(super) const REDEEMER: &str = "0x3f6d9e07fd4cdabbaa7097c19ecf655809c893a9cfe3f418c3ffbc04250d3b4c";
    pub(super) const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    pub(super) const IDS: [&str; 2] = [
        "4484782f0a77e9df31d3aa1759e5b65143bbad71273978c1b993565027f7a912",
        "c963feb24a5b5c9676c6d38f8b5e29840bfb6ce9f05b938639af0d064ac890b1",
    ];
    pub(super) const FIELD: &str = "0x2098af76fa638f10f4a658f1ba564e40d8280fc5512b1ec8a1c568bc1209194d";
    pub(super) const CONTENTS: &str = "2098af76fa638f10f4a658f1ba564e40d8280fc5512b1ec8a1c568bc1209194d\
        204484782f0a77e9df31d3aa1759e5b65143bbad71273978c1b993565027f7a912\
        d9956b50199bc9f182ab96efce2b463a916f709d46055f79a6073fb24a009e36\
        0079a1582388c16d0ab85904f320eb0527481391a9b9ab4b2ab46adc4c2564f9d0\
        3f6d9e07fd4cdabbaa7097c19ecf655809c893a9cfe3f418c3ffbc04250d3b4c\
        005ed0b20000000000c02cc899010000000000000000000000000000000000000000000000000000\
        63b0489040c9ff543e536b0256439451c050eda5de9ff7235d43296619ab027f\
        005ed0b200000000005c260500000000000000000000000000000000000000000000000000000000";
    pub(super) const INITIATED: &str = "204484782f0a77e9df31d3aa1759e5b65143bbad71273978c1b993565027f7a912\
        20630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd005ed0b20000000000";
    pub(super) const REDEEMED: &str = "204484782f0a77e9df31d3aa1759e5b65143bbad71273978c1b993565027f7a912\
        20630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd\
        20000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    pub(super) const REFUNDED: &str = "204484782f0a77e9df31d3aa1759e5b65143bbad71273978c1b993565027f7a912";
}

#[test]
fn an_order_of_the_public_source_is_read() {
    use public_source::{CONTENTS, FIELD, IDS, INITIATED, INITIATOR, PACKAGE, REDEEMED, REDEEMER, REFUNDED, REGISTRY, SECRET};
    let id = |text: &str| -> [u8; 32] { hex::decode(text).unwrap().try_into().unwrap() };
    let parsed = |text: &str| -> Address { text.parse().unwrap() };
    let secret = id(SECRET);
    let (secret_hash, initiator, redeemer) = (SecretHash::of(&secret), parsed(INITIATOR), parsed(REDEEMER));
    let swap = SwapIdInput {
        secret_hash: &secret_hash.0,
        initiator: initiator.as_bytes(),
        redeemer: redeemer.as_bytes(),
        timelock: 86_400_000,
        amount: U256::from(3_000_000_000_u64),
    };
    for (chain_word, expected) in [0, 1].into_iter().zip(IDS) {
        assert_eq!(sui_with_chain_word(chain_word, &swap, parsed(REGISTRY).as_bytes()), Some(id(expected)));
    }
    assert_eq!(field_id(parsed(REGISTRY), &id(IDS[0])), parsed(FIELD));

    let object_type = format!("0x2::dynamic_field::Field<vector<u8>,{PACKAGE}::AtomicSwap::Order<0x2::sui::SUI>>");
    let stored = order(&object_type, &hex::decode(CONTENTS).unwrap()).unwrap();
    assert_eq!((stored.field, stored.order_id, stored.package), (parsed(FIELD), id(IDS[0]), parsed(PACKAGE)));
    assert_eq!((stored.initiator, stored.redeemer), (parsed(INITIATOR), parsed(REDEEMER)));
    assert_eq!((stored.amount, stored.balance, stored.has_ended), (3_000_000_000, 3_000_000_000, false));
    assert_eq!((stored.initiated_at, stored.timelock), (1_760_000_000_000, 86_400_000));

    let told = |name: &str, contents: &str| {
        event(&format!("{PACKAGE}::AtomicSwap::{name}"), parsed(PACKAGE), &hex::decode(contents).unwrap()).unwrap().unwrap()
    };
    let order_id = id(IDS[0]);
    let initiated = HtlcEvent::Initiated { order_id, secret_hash, amount: U256::from(3_000_000_000_u64) };
    assert_eq!(told("Initiated", INITIATED), initiated);
    assert_eq!(told("Redeemed", REDEEMED), HtlcEvent::Redeemed { order_id, secret });
    assert_eq!(told("Refunded", REFUNDED), HtlcEvent::Refunded { order_id });
}

#[test]
fn events_of_the_reference_sdk_are_read() {
    let made = &chain()["order"];
    let package = address(&made["package"]);
    let told = |name: &str, contents: &str| event(&format!("{package}::AtomicSwap::{name}"), package, &bytes(&made["events"][contents]));
    let (order_id, secret_hash) = (word(&made["ids"][0]), SecretHash(word(&made["secret_hash"])));
    let initiated = HtlcEvent::Initiated { order_id, secret_hash, amount: U256::from(number(&made["amount"])) };
    assert_eq!(told("Initiated", "Initiated"), Ok(Some(initiated)));
    assert_eq!(told("Initiated", "InitiatedWithData"), Ok(Some(initiated)));
    assert_eq!(told("Redeemed", "Redeemed"), Ok(Some(HtlcEvent::Redeemed { order_id, secret: word(&made["secret"]) })));
    assert_eq!(told("Refunded", "Refunded"), Ok(Some(HtlcEvent::Refunded { order_id })));
    assert_eq!(told("RegistryCreated", "Refunded"), Ok(None), "an event that says nothing about an order");
    for (name, contents) in [("Redeemed", "Refunded"), ("Refunded", "Redeemed"), ("Initiated", "Redeemed"), ("Redeemed", "Initiated")] {
        assert!(told(name, contents).is_err(), "{name} with the contents of {contents}");
    }
}

#[test]
fn events_of_others_are_not_read() {
    let made = &chain()["order"];
    let (package, contents) = (address(&made["package"]), bytes(&made["events"]["Refunded"]));
    for other in ["0x7::AtomicSwap::Refunded".to_owned(), format!("{package}::Other::Refunded")] {
        assert_eq!(event(&other, package, &contents), Ok(None), "{other}");
    }
    for malformed in ["", "Refunded", "::", "0x7::AtomicSwap::Refunded<"] {
        assert!(event(malformed, package, &contents).is_err(), "{malformed}");
    }
}

#[test]
fn a_secret_must_hash_to_what_its_event_says() {
    let made = &chain()["order"];
    let package = address(&made["package"]);
    let mut contents = bytes(&made["events"]["Redeemed"]);
    *contents.last_mut().unwrap() ^= 1;
    let error = event(&format!("{package}::AtomicSwap::Redeemed"), package, &contents).unwrap_err();
    assert_eq!(error.to_string(), "the secret does not hash to the secret hash");
}

#[test]
fn orders_of_another_type_are_unclear() {
    let made = &chain()["order"];
    let (object_type, contents) = (text(&made["object_type"]), bytes(&made["open"]));
    for (from, to) in [
        ("::AtomicSwap::", "::AtomicSwap2::"),
        ("::Order<", "::Offer<"),
        ("vector<u8>", "vector<u16>"),
        ("vector<u8>", "address"),
        ("::dynamic_field::", "::dynamic_object_field::"),
        ("::Field<", "::Wrapper<"),
        ("0000000002::dynamic", "0000000003::dynamic"),
        ("Order<0x", "Order<u8, 0x"),
        ("Field<vector<u8>, ", "Field<"),
        (">>", ">"),
    ] {
        let other = object_type.replacen(from, to, 1);
        assert_ne!(other, object_type, "{from}");
        assert!(order(&other, &contents).is_err(), "{other}");
    }
    assert!(order("package", &contents).is_err());
    // The caller must compare the package and the coin.
    assert_eq!(
        order(&object_type.replace("::sui::SUI", "::usdc::USDC"), &contents).unwrap().coin_type.to_string().split("::").nth(1),
        Some("usdc")
    );
}

#[test]
fn contents_that_the_contract_never_stores_are_unclear() {
    let made = &chain()["order"];
    let (object_type, contents) = (text(&made["object_type"]), bytes(&made["open"]));
    let refused = |change: &dyn Fn(&mut Vec<u8>), why: &str| {
        let mut changed = contents.clone();
        change(&mut changed);
        assert_eq!(order(object_type, &changed).map_err(|unclear| unclear.to_string()).unwrap_err(), why);
    };
    let zero = "the order has a field that is zero";
    refused(&|contents| contents.truncate(273), "the contract stores orders in an unknown layout");
    refused(&|contents| contents.push(0), "the contract stores orders in an unknown layout");
    refused(&|contents| contents[32] = 31, "the key of the order does not have 32 bytes");
    refused(&|contents| contents[97] = 2, "the order is in an unknown state");
    refused(&|contents| contents[97] = 1, "the order has ended but still holds coins");
    refused(&|contents| contents[98..130].fill(0), zero);
    refused(&|contents| contents[130..162].fill(0), zero);
    refused(&|contents| contents[162..170].fill(0), zero);
    refused(&|contents| contents[170..202].fill(0), zero);
    refused(&|contents| contents[242..274].fill(0), zero);
    refused(&|contents| contents[178] = 1, "a time of the order has more than 64 bits");
    refused(&|contents| contents[273] = 1, "a time of the order has more than 64 bits");
}

proptest! {
    #[test]
    fn any_bytes_are_an_order_or_unclear(object_type in ".{0,80}", contents in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = order(&object_type, &contents);
        let made = chain();
        let _ = order(text(&made["order"]["object_type"]), &contents);
        let package = address(&made["order"]["package"]);
        for name in ["Initiated", "Redeemed", "Refunded"] {
            let _ = event(&format!("{package}::AtomicSwap::{name}"), package, &contents);
        }
    }

    /// Every byte except those of two object ids affects the decoded order.
    #[test]
    fn every_byte_counts(at in 0_usize..274, flip in 1_u8..) {
        let made = chain();
        let (object_type, mut contents) = (text(&made["order"]["object_type"]), bytes(&made["order"]["open"]));
        contents[at] ^= flip;
        let is_id = (65..97).contains(&at) || (202..234).contains(&at);
        prop_assert_eq!(order(object_type, &contents).ok() == Some(open(&made["order"])), is_id);
    }
}
