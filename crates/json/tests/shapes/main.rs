//! The types of TypeScript and Python and the JSON Schemas are what the lists of this crate say, and the lists are what the code does.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

#[path = "../contexts/mod.rs"]
mod contexts;
mod documents;
mod inputs;
mod model;
mod python;
mod schema;
mod schemas;
mod typescript;

use std::{env, fs};

use countersign_json::is_decimal_text;
use countersign_json::objects::words;
use countersign_testkit::project;

use crate::model::{DOCUMENTS, INPUTS, OUTPUTS, camel, get, members_of_type};

#[test]
fn the_files_are_made_from_the_lists() {
    let mut files = vec![
        ("bindings/js/lib/shapes.ts".to_owned(), typescript::write()),
        ("bindings/python/python/countersign_swap/_shapes.py".to_owned(), python::write()),
    ];
    files.extend(schema::write().into_iter().map(|(name, text)| (format!("docs/schema/{name}.schema.json"), text)));
    for (name, text) in files {
        let path = project().join(&name);
        if env::var_os("UPDATE").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let is_same = fs::read_to_string(&path).is_ok_and(|found| found == text);
        assert!(is_same, "{name} is behind the lists: run `UPDATE=1 cargo test -p countersign-json --test shapes`");
    }
}

#[test]
fn every_type_is_known_and_every_name_is_unique() {
    for field in OUTPUTS.iter().chain(&*INPUTS).chain(&*DOCUMENTS).flat_map(|shape| &shape.fields) {
        let name = field.kind.name();
        let is_set = words::ALL.iter().any(|set| set.name == name);
        assert!(is_set || schema::basic(name).is_some() || get(name).is_some(), "{}: no type {name}", field.name);
    }
    // What TypeScript and Python have in one module.
    let mut names = python::names();
    names.extend(DOCUMENTS.iter().map(|shape| shape.name));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
}

#[test]
fn names_in_camel_case_lead_back_to_the_members() {
    let snake_case = |name: &str| {
        name.chars().fold(String::new(), |mut text, letter| {
            if letter.is_ascii_uppercase() {
                text.push('_');
            }
            text.push(letter.to_ascii_lowercase());
            text
        })
    };
    for field in OUTPUTS.iter().chain(&*INPUTS).flat_map(|shape| &shape.fields) {
        assert_eq!(snake_case(&camel(field.name)), field.name);
    }
}

#[test]
fn the_name_of_a_member_says_how_its_number_is_written() {
    let decimals = members_of_type(&INPUTS, &["Decimal", "FeeRate"]);
    assert_eq!(decimals, ["fee_rate", "gas_budget", "gas_price", "max_fee_per_gas", "max_priority_fee_per_gas"]);
    let others = members_of_type(&INPUTS, &["Integer", "Number", "NumberOrText", "IntegerOrDecimal"]);
    assert!(others.iter().all(|name| !decimals.contains(name) && !is_decimal_text(name)), "{others:?}");
    assert!(decimals.iter().all(|name| is_decimal_text(name)));
    let (numbers, bytes) = (members_of_type(&OUTPUTS, &["Decimal"]), members_of_type(&OUTPUTS, &["Hex"]));
    assert_eq!((numbers.as_slice(), bytes.as_slice()), (["amount", "number"].as_slice(), ["digest", "payload"].as_slice()));
    let others: Vec<_> = OUTPUTS.iter().filter(|shape| shape.name != "Transaction").flat_map(|shape| &shape.fields).collect();
    assert!(others.iter().all(|field| field.kind.name() == "Decimal" || !numbers.contains(&field.name)));
    assert!(
        others.iter().all(|field| field.kind.name() == "Hex" || !bytes.contains(&field.name)),
        "only a transaction has a payload of text"
    );
}
