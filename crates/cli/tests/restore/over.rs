//! Tests restored orders that have ended only according to the service.

use std::fs;

use serde_json::{Value, json};

use super::{OWNER, Vector, order, restored, service};
use crate::home::{Home, NOWHERE, out};

/// What is over by the service's record says whose word it is, comes last, and keeps its commands.
#[test]
fn a_restored_order_that_is_over_by_the_services_word_keeps_its_commands() {
    let home = Home::new("restore-over");
    let redeemed = |index: u32, byte: &str| {
        let mut order = order(index, byte);
        order["destination_swap"]["redeem_tx_hash"] = json!(format!("0x{}", "cc".repeat(32)));
        order["destination_swap"]["redeem_block_number"] = json!("1250");
        order
    };
    // A redemption is impossible without the secret.
    let mut over = redeemed(2, "a2");
    over["destination_swap"]["secret"] = json!(Vector::at(2).text("/secret"));
    let mut refunded = order(1, "a4");
    refunded["source_swap"]["refund_tx_hash"] = json!(format!("0x{}", "cc".repeat(32)));
    refunded["source_swap"]["refund_block_number"] = json!("1250");
    let server = service(vec![over, redeemed(0, "a3"), refunded, order(19, "a6")]);
    restored(&home, &server.base, &["--from-owner", OWNER]);
    let state = home.path.join("state").to_str().unwrap().to_owned();
    let list = || {
        let output = home.run(NOWHERE, &["orders", "--state", &state, "--json"]);
        serde_json::from_str::<Value>(&out(&output)).unwrap()["orders"].as_array().unwrap().clone()
    };
    // The service said once that nothing was paid. It may have been paid from elsewhere.
    let note = home.path.join("state/orders").join("a6".repeat(32)).join("stated.json");
    fs::write(note, r#"{"end":"expired","entries":0}"#).unwrap();
    let expected = [
        ("a3", "restored", Value::Null),
        ("a6", "restored", Value::Null),
        ("a2", "complete", json!("complete")),
        ("a4", "refunded", json!("refunded")),
    ];
    let listed = list();
    assert_eq!(listed.len(), expected.len());
    for (order, (byte, stage, stated)) in listed.iter().zip(expected) {
        let id = byte.repeat(32);
        assert_eq!((&order["order_id"], &order["stage"], &order["stated"]), (&json!(id), &json!(stage), &stated), "{order}");
        assert_eq!(order["finished"], false, "{order}");
        let begins = |text: &Value, command: &str| text.as_str().unwrap().starts_with(&format!("countersign {command} {id}"));
        assert!(begins(&order["next"], "order show") && begins(&order["then"][0], "redeem --self"), "{order}");
        assert!(begins(&order["then"][1], "refund --self"), "{order}");
    }
    let people = out(&home.run(NOWHERE, &["orders", "--state", &state]));
    assert!(people.contains("complete*") && people.contains("the service's word"), "{people}");
    assert!(people.contains("countersign redeem --self a2a2a2a2"), "{people}");
}
