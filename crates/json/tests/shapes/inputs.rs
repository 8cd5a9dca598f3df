//! The lists of inputs are what the parsers take: each member is known and read, and no other is.

use countersign::FAMILIES;
use countersign_json::objects::{self, words};
use countersign_testkit::lines::{accepted_case, run};
use countersign_testkit::set;
use serde_json::{Value, json};

use crate::contexts::{prepare, recoveries};
use crate::model::{Field, Shape, Type, find, get};
use crate::schemas::{documents_of, shape_of, validator};

/// Returns a case of each built family whose wallet context has every required member, and every object.
fn cases() -> Vec<Value> {
    let ids =
        ["evm-record-evm-v1", "tron-record-evm-v2", "starknet-record-evm-v2", "solana-record-token", "sui-record-evm", "bitcoin-p2sh"];
    let built = ids.into_iter().filter(|id| FAMILIES.iter().any(|family| id.starts_with(family.name())));
    let mut lines: Vec<Value> = built.map(|id| accepted_case(id).json()).collect();
    for line in lines.iter_mut().filter(|line| line["wallet"].get("gas_payment").is_some()) {
        line["wallet"]["valid_during"] = accepted_case("sui-balance").json()["wallet"]["valid_during"].take();
    }
    for line in lines.iter_mut().filter(|line| line["wallet"].get("ref_block_hash").is_some()) {
        let mut other = accepted_case("tron-permission-two-keys").json();
        for member in ["permission", "secret_key"] {
            line["wallet"][member] = other["wallet"][member].take();
        }
    }
    lines
}

/// Calls `check` with the pointer of each member of a shape below `at`, and of the shapes inside it.
fn each_member(shape: &Shape, at: &str, check: &mut impl FnMut(&str, &Field)) {
    for field in shape.members() {
        let pointer = format!("{at}/{}", field.name);
        check(&pointer, field);
        let item = if matches!(field.kind.required(), Type::List(_)) { "/0" } else { "" };
        if let Some(inner) = get(field.kind.name()) {
            each_member(inner, &format!("{pointer}{item}"), check);
        }
    }
}

/// Returns the context with a value that no member takes. Members that would hide this one are removed, and those it needs are there.
fn broken(line: &Value, pointer: &str) -> Value {
    let mut line = line.clone();
    match pointer {
        "/wallet/gas_price" if line["wallet"].get("max_fee_per_gas").is_some() => set(&mut line, "/wallet/max_fee_per_gas", Value::Null),
        "/wallet/utxos" => line["wallet"]["change_address"] = json!("tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"),
        _ => {}
    }
    set(&mut line, pointer, json!({}));
    line
}

/// Returns the pointer with the last name in another spelling.
fn misspelt(pointer: &str) -> String {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    format!("{parent}/{}", name.to_uppercase())
}

#[test]
fn wallet_contexts_have_the_members_of_their_lists() {
    for line in cases() {
        let id = line["id"].as_str().unwrap();
        let name = shape_of(id, "Wallet");
        let refused = |line: &Value| {
            let error = run(&line.to_string())["error"].take();
            (error["code"].as_str().unwrap_or_default().to_owned(), error["at"].as_str().unwrap_or_default().to_owned())
        };
        assert_eq!(refused(&line), (String::new(), String::new()), "{id}");
        each_member(find(&name), "/wallet", &mut |pointer, field| {
            let (code, at) = refused(&broken(&line, pointer));
            assert!(at.starts_with(pointer), "{id}: {pointer}: {code} at {at}");
            let mut changed = line.clone();
            set(&mut changed, &misspelt(pointer), json!(1));
            assert_eq!(refused(&changed), ("misspelt_field".to_owned(), misspelt(pointer)), "{id}");
            if !field.kind.is_optional() {
                let mut changed = line.clone();
                set(&mut changed, pointer, Value::Null);
                assert_eq!(refused(&changed), ("missing_field".to_owned(), pointer.to_owned()), "{id}");
            }
            each_word(field, |word, is_known| {
                let mut changed = line.clone();
                set(&mut changed, pointer, json!(word));
                assert_eq!(refused(&changed).1 != pointer, is_known, "{id}: {pointer}: {word}");
            });
        });
    }
}

#[test]
fn contexts_of_recoveries_have_exactly_the_members_of_their_lists() {
    for (recovery, wallet) in recoveries() {
        let name = shape_of(recovery.family().name(), "Recovery");
        let line = json!({ "wallet": wallet });
        let refused = |line: &Value| prepare(&recovery, &line["wallet"].to_string()).err();
        let mut unknown = line.clone();
        unknown["wallet"]["another"] = json!(1);
        let refusal = refused(&unknown).unwrap();
        assert_eq!((refusal.code().name(), refusal.location()), ("unexpected_field", "/wallet/another"), "{name}");
        assert!(
            !validator("inputs", Some(&name)).is_valid(&unknown["wallet"]) && validator("inputs", Some(&name)).is_valid(&wallet),
            "{name}"
        );
        each_member(find(&name), "/wallet", &mut |pointer, field| {
            if pointer_exists(&line, pointer) {
                let at = refused(&broken(&line, pointer)).map(|refusal| refusal.location().to_owned());
                // A recovery approves nothing, and is signed in a step of its own.
                let is_read = !matches!(field.name, "reset_approval" | "secret_key");
                assert_eq!(at.as_ref().is_some_and(|at| at.starts_with(pointer)), is_read, "{name}: {pointer}: {at:?}");
                assert!(is_read || at.is_none(), "{name}: {pointer}: {at:?}");
            }
            each_word(field, |word, is_known| {
                let mut changed = line.clone();
                set(&mut changed, pointer, json!(word));
                assert_eq!(refused(&changed).is_none_or(|refusal| refusal.location() != pointer), is_known, "{name}: {pointer}: {word}");
            });
        });
    }
}

#[test]
fn examples_of_recoveries_have_the_members_that_are_required_and_no_unknown_one() {
    let examples = countersign_json::recovery_examples();
    assert_eq!(examples.len(), FAMILIES.len());
    for (family, (chains, example)) in FAMILIES.iter().zip(examples) {
        // Its values are shortened, so it is not JSON.
        let parts: Vec<_> = example.split('"').collect();
        let names: Vec<_> = parts.windows(2).filter(|pair| pair[1].starts_with(':')).map(|pair| pair[0]).collect();
        let shape = find(&shape_of(family.name(), "Recovery"));
        assert!(
            chains.to_lowercase() == family.name() && names.iter().all(|name| shape.members().any(|field| field.name == *name)),
            "{example}"
        );
        assert!(shape.members().all(|field| field.kind.is_optional() || names.contains(&field.name)), "{example}");
    }
}

/// Returns whether the object that the pointer leads into is there.
fn pointer_exists(line: &Value, pointer: &str) -> bool {
    let (parent, _) = pointer.rsplit_once('/').unwrap();
    line.pointer(parent).is_some()
}

/// Calls `check` with each word of the member's set, and with one that is not in it.
fn each_word(field: &Field, check: impl Fn(&str, bool)) {
    let words = words::of(field.kind.name());
    words.iter().for_each(|word| check(word, true));
    if !words.is_empty() {
        check("another", false);
    }
}

#[test]
fn signatures_in_parts_have_exactly_the_members_of_their_lists() {
    for line in cases() {
        let id = line["id"].as_str().unwrap();
        // Each list is chosen by a member that it alone has, or is the one without any.
        let lists: &[(&str, Option<&str>)] = match id.split('-').next() {
            Some("evm" | "tron") => {
                &[("EcdsaSignature", None), ("ContractSignature", Some("contract")), ("KeyServiceSignature", Some("signature"))]
            }
            Some("starknet") => &[("StarknetSignature", None)],
            Some("bitcoin") => &[("BitcoinSignature", None)],
            _ => continue,
        };
        let case = accepted_case(id);
        let order = documents_of(&case, |documents| objects::verify(documents, case.registry, &countersign::Policy::default()).unwrap());
        let mut unsigned = objects::prepare(&order, line["wallet"].to_string().as_bytes()).unwrap();
        let mut attach = |signature: &Value| objects::attach(&mut unsigned, "initiate", &signature.to_string()).unwrap_err();
        for (name, chosen_by) in lists {
            let fields = &find(name).fields;
            let listed: Vec<_> = fields.iter().map(|field| field.name).collect();
            let mut other = serde_json::Map::from_iter([("another".to_owned(), json!(1))]);
            other.extend(chosen_by.map(|name| (name.to_owned(), json!("0x01"))));
            let failure = attach(&other.into());
            // Behind the members, those of libraries in their own spelling.
            let shows = failure.expected.is_some_and(|expected| expected.starts_with(&listed.join(", ")));
            assert_eq!((failure.code, shows), ("unexpected_field", true), "{id}: {name}");
            let whole: serde_json::Map<String, Value> = listed.iter().map(|name| ((*name).to_owned(), json!("0x01"))).collect();
            let is_required = |field: &&Field| !field.kind.is_optional() && Some(field.name) != *chosen_by;
            for field in fields.iter().filter(is_required) {
                let mut part = whole.clone();
                part.remove(field.name);
                let failure = attach(&part.into());
                assert_eq!((failure.code, &*failure.at), ("missing_field", &*format!("/signatures/initiate/{}", field.name)), "{id}");
            }
        }
    }
}
