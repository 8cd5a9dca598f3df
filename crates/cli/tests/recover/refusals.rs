//! Recoveries that are refused: a record that was changed, a context that is wrong or incomplete, a policy that forbids them.

use serde_json::{Value, json};

use super::TO;
use crate::home::{out, said};
use crate::kept::{BLOCKHASH, Kept, mended, secret};
use crate::support::Fixture;

/// A record that was changed after it was verified is refused before anything is signed.
#[test]
fn a_tampered_record_is_refused() {
    let secret = secret();
    let fixture = mended(Fixture::load("evm-record-evm-v1").with_secret_hash(&secret.hash().to_string()));
    let kept = Kept::new("tampered", fixture, Some(&secret));
    let wallet = kept.file("wallet.json", &kept.fixture.wallet.to_string());
    let id = kept.fixture.order_id();
    let stranger = "0x000000000000000000000000000000000000dead";
    for (at, value, code) in [
        ("/source_swap/initiator", json!(stranger), "record_mismatch"),
        ("/source_swap/amount", json!("1"), "record_mismatch"),
        ("/source_swap/swap_id", json!("12".repeat(32)), "record_swap_id"),
        ("/source_swap/secret_hash", json!("34".repeat(32)), "record_mismatch"),
        ("/destination_swap/redeemer", json!(stranger), "record_pays_elsewhere"),
        ("/destination_swap/amount", json!("1"), "record_pays_less"),
        ("/destination_swap/secret_hash", json!("34".repeat(32)), "record_mismatch"),
        ("/order_id", json!("56".repeat(32)), "record_mismatch"),
    ] {
        let mut order = kept.fixture.order.clone();
        *order.pointer_mut(at).unwrap() = value;
        kept.keep(&order);
        for command in ["refund", "redeem"] {
            let refused = kept.refused(&[command, "--self", id, "--wallet", &wallet]);
            assert_eq!(refused, (code.to_owned(), format!("/order{at}")), "{command}");
        }
    }
    kept.keep(&json!("not a record"));
    assert_eq!(kept.refused(&["refund", "--self", id, "--wallet", &wallet]), ("wrong_type".to_owned(), "/order".to_owned()));
}

#[test]
fn what_is_not_right_is_refused_with_its_place() {
    let secret = secret();
    let fixture = mended(Fixture::load("evm-record-evm-v1").with_secret_hash(&secret.hash().to_string()));
    let kept = Kept::new("refused", fixture, Some(&secret));
    let order = kept.file("order.json", &kept.fixture.order.to_string());
    let (right, wrong) = (kept.file("right", &secret.to_hex()), kept.file("wrong", &"77".repeat(32)));
    let good = kept.fixture.wallet.clone();
    let refused = |change: &dyn Fn(&mut Value), more: &[&str]| {
        let mut wallet = good.clone();
        change(&mut wallet);
        let wallet = kept.file("wallet.json", &wallet.to_string());
        let (code, at) = kept.refused(&[&["recover", "--order", &order, "--wallet", &wallet], more].concat());
        format!("{code} {at}")
    };
    let without = |member: &'static str| move |wallet: &mut Value| drop(wallet.as_object_mut().unwrap().remove(member));
    let with = |member: &'static str, value: Value| move |wallet: &mut Value| wallet[member] = value.clone();
    assert_eq!(refused(&|_| {}, &["--secret-file", &wrong]), "secret_wrong /order/source_swap/secret_hash");
    assert_eq!(refused(&|_| {}, &["--secret-file", &order]), "secret_wrong /secret");
    // The key is that of the source's owner, whom a redemption of the destination does not pay.
    assert_eq!(refused(&|_| {}, &["--leg", "destination", "--secret-file", &right]), "key_mismatch /wallet/secret_key");
    assert_eq!(refused(&|_| {}, &["--key-file", &wrong]), "key_mismatch /wallet/secret_key");
    assert_eq!(refused(&|_| {}, &["--key-file", &order]), "key_malformed /wallet/secret_key");
    assert_eq!(refused(&without("nonce"), &[]), "missing_field /wallet/nonce");
    assert_eq!(refused(&without("max_fee_per_gas"), &[]), "missing_field /wallet/max_fee_per_gas");
    assert_eq!(refused(&with("Sender", json!("0x")), &[]), "unexpected_field /wallet/Sender");
    assert_eq!(refused(&with("sender", json!("0x12")), &[]), "address_malformed /wallet/sender");
    assert_eq!(refused(&with("chain_id", json!(5)), &[]), "wallet_chain_mismatch /wallet/chain_id");
    assert_eq!(refused(&with("gas_limit", json!(30_000_001)), &[]), "gas_limit_too_high /wallet/gas_limit");
    let forged = format!("refund={}1b", "11".repeat(64));
    assert_eq!(refused(&without("secret_key"), &["--signature", &forged]), "signature_mismatch /signatures/refund");
    assert_eq!(refused(&without("secret_key"), &["--signature", "redeem=0x00"]), "signature_malformed /signatures/redeem");
    let policy = kept.file("policy.json", r#"{"evm_gas_limit":299999}"#);
    assert_eq!(refused(&|_| {}, &["--policy", &policy]), "gas_limit_too_high /wallet/gas_limit");

    let id = kept.fixture.order_id();
    for usage in [
        &["recover", "--order", &order][..],
        &["recover", "--order", &order, "--funding", "1", "--to", TO, "--fee-rate", "1"],
        &["refund", "--self", id],
        &["refund", id, "--order", &order],
        &["redeem", "--self", id],
        &["redeem", id, "--key-file", &right],
    ] {
        assert_eq!(kept.run(usage).status.code(), Some(2), "{usage:?}");
    }
}

/// A user who ends an order has paid it, so no message advises against signing or paying, or suggests another quote.
#[test]
fn what_is_refused_off_line_has_the_words_of_after_the_payment() {
    let secret = secret();
    let fixture = mended(Fixture::load("evm-record-evm-v1").with_secret_hash(&secret.hash().to_string()));
    let kept = Kept::new("words-off-line", fixture, Some(&secret));
    let (id, wallet) = (kept.fixture.order_id().to_owned(), kept.file("wallet.json", &kept.fixture.wallet.to_string()));
    let right = kept.file("right", &secret.to_hex());
    for (at, value) in [
        ("/destination_swap/amount", json!("1")),
        ("/source_swap/swap_id", json!("12".repeat(32))),
        ("/source_swap/chain", json!("nowhere")),
        ("/version", json!("v9")),
    ] {
        let mut order = kept.fixture.order.clone();
        *order.pointer_mut(at).unwrap() = value;
        let path = kept.file("order.json", &order.to_string());
        let commands: [&[&str]; 5] = [
            &["refund", "--self", &id, "--wallet", &wallet, "--order", &path],
            &["redeem", "--self", &id, "--wallet", &wallet, "--order", &path],
            &["recover", "--order", &path, "--wallet", &wallet],
            &["recover", "--order", &path, "--wallet", &wallet, "--secret-file", &right],
            &["recover", "--order", &path, "--wallet", &wallet, "--leg", "destination", "--secret-file", &right],
        ];
        for command in commands {
            for json in [&[][..], &["--json"]] {
                let output = kept.run(&[command, json].concat());
                let told = format!("{}{}", out(&output), said(&output));
                if output.status.code() == Some(0) {
                    continue;
                }
                assert_eq!(output.status.code(), Some(1), "{command:?} {at}: {told}");
                for before in ["do not sign", "do not pay", "correct the input", "new quote"] {
                    assert!(!told.contains(before), "{before}: {command:?} {at}: {told}");
                }
            }
        }
        assert_eq!(kept.run(commands[0]).status.code(), Some(1), "{at}");
    }
}

/// The wallet context of each other family is read as strictly.
#[test]
fn each_familys_context_is_read_strictly() {
    for (id, change, expected) in [
        ("tron-record-evm-v2", json!({ "expiration": null }), "missing_field /wallet/expiration"),
        ("tron-record-evm-v2", json!({ "fee_limit": 15_000_000_001_u64 }), "gas_limit_too_high /wallet/fee_limit"),
        ("tron-record-evm-v2", json!({ "fee": 1 }), "unexpected_field /wallet/fee"),
        ("starknet-record-evm-v2", json!({ "nonce": null }), "missing_field /wallet/nonce"),
        ("starknet-record-evm-v2", json!({ "sender": "owner" }), "hex_prefix /wallet/sender"),
        ("solana-record-testnet", json!({ "sender": null }), "missing_field /wallet/recent_blockhash"),
        (
            "solana-record-testnet",
            json!({ "recent_blockhash": BLOCKHASH, "block_height": 9, "last_valid_block_height": 8 }),
            "blockhash_expired /wallet/last_valid_block_height",
        ),
        ("solana-record-testnet", json!({ "fee_payer": BLOCKHASH }), "unexpected_field /wallet/fee_payer"),
        ("sui-record-evm", json!({ "gas_payment": [] }), "gas_coin_count /wallet/gas_payment"),
        ("sui-record-evm", json!({ "function_names": "newest" }), "wrong_type /wallet/function_names"),
    ] {
        let kept = Kept::new(&format!("strict-{id}"), Fixture::load(id), None);
        let mut wallet = kept.fixture.wallet.clone();
        for (member, value) in change.as_object().unwrap() {
            wallet[member] = value.clone();
        }
        let wallet = kept.file("wallet.json", &wallet.to_string());
        let (code, at) = kept.refused(&["refund", "--self", kept.fixture.order_id(), "--wallet", &wallet]);
        assert_eq!(format!("{code} {at}"), expected, "{id}");
    }
}

#[test]
fn a_warning_that_the_policy_refuses_is_refused_for_a_recovery_too() {
    let kept = Kept::new("warning", Fixture::load("tron-record-other-id"), None);
    let wallet = kept.file("wallet.json", &kept.fixture.wallet.to_string());
    let refund = ["refund", "--self", kept.fixture.order_id(), "--wallet", &wallet];
    assert!(kept.ok(&refund)["warnings"].to_string().contains("swap_id_unchecked"));
    let policy = kept.file("policy.json", r#"{"refused_warnings":["swap_id_unchecked"]}"#);
    assert_eq!(kept.refused(&[&refund[..], &["--policy", &policy]].concat()), ("warning_refused".to_owned(), String::new()));
}

/// The rules of outputs, amounts and fee floors are those of a connected recovery, from flags and from a wallet context, for `recover` and
/// for `redeem --self` and `refund --self`.
#[test]
fn a_recovery_off_line_has_the_rules_of_a_connected_one() {
    let secret = secret();
    let fixture = mended(Fixture::load("evm-record-bitcoin-testnet").with_secret_hash(&secret.hash().to_string()));
    let kept = Kept::new("rules", fixture, Some(&secret));
    let mut order = kept.fixture.at(crate::support::Step::DestinationFunded);
    let amount: u64 = order["destination_swap"]["amount"].as_str().unwrap().parse().unwrap();
    order["destination_swap"]["initiate_tx_hash"] = json!(format!("{}:7", "11".repeat(32)));
    kept.keep(&order);
    let (id, file) = (kept.fixture.order_id().to_owned(), kept.file("order.json", &order.to_string()));
    let secret_file = kept.file("right", &secret.to_hex());
    let to = kept.fixture.request["destination"]["owner"].as_str().unwrap();
    let output = |byte: &str, value: u64| format!("{}:0:{value}", byte.repeat(32));
    let (whole, less, dust) = (output("11", amount), output("11", amount - 1), output("22", 330));
    let unnamed = output("33", amount);

    let recover: &[&str] = &["recover", "--order", &file, "--leg", "destination"];
    let redeem = [recover, &["--secret-file", &secret_file]].concat();
    let entries = [redeem.clone(), vec!["redeem", "--self", &id]];
    for entry in &entries {
        let run = |fundings: &[&str], rate: &str, more: &[&str]| {
            let mut arguments = entry.clone();
            for funding in fundings {
                arguments.extend(["--funding", funding]);
            }
            arguments.extend(["--to", to, "--fee-rate", rate]);
            arguments.extend(more);
            let (code, shown) = kept.json(&arguments);
            let codes = shown["warnings"].as_array().into_iter().flatten().map(|warning| warning["code"].as_str().unwrap().to_owned());
            (code, shown["error"]["code"].as_str().map(str::to_owned), codes.collect::<Vec<_>>(), shown)
        };
        let refused = |code: &str| (Some(1), Some(code.to_owned()));
        for (fundings, rate, code) in [
            (vec![&*less], "2", "funding_mismatch"),
            (vec![&*less, &*dust], "2", "funding_mismatch"),
            (vec![&*whole], "0.0001", "fee_too_low"),
        ] {
            let (exit, error, _, shown) = run(&fundings, rate, &[]);
            assert_eq!((exit, error), refused(code), "{entry:?} {fundings:?}");
            assert!(!shown.to_string().contains(secret.to_hex().as_str()), "{shown}");
        }
        for (fundings, rate, flags, expected) in [
            (vec![&*less], "2", &["--accept-less"][..], "secret_for_less"),
            (vec![&*whole], "0.5", &["--accept-low-fee"], "fee_too_low"),
            (vec![&*dust, &*whole], "2", &[], "outputs_left"),
            (vec![&*unnamed], "2", &[], "funding_tx_differs"),
        ] {
            let (exit, _, codes, shown) = run(&fundings, rate, flags);
            assert_eq!((exit, codes), (Some(0), vec![expected.to_owned()]), "{entry:?} {shown}");
        }
        assert_eq!(run(&[&whole], "1", &[]).2, Vec::<String>::new());
    }
    // A wallet context has the same rules, and members for the same exceptions.
    let with = |context: Value| {
        let wallet = kept.file("wallet.json", &context.to_string());
        kept.json(&[&redeem[..], &["--wallet", &wallet]].concat())
    };
    let mut context = json!({ "funding": [less], "to": to, "fee_rate": "2" });
    assert_eq!(with(context.clone()).1["error"]["code"], "funding_mismatch");
    context["accept_less"] = json!(true);
    assert_eq!(with(context).1["warnings"][0]["code"], "secret_for_less");
    // Exceptions are for transactions that are built from flags.
    assert_eq!(kept.run(&["redeem", &id, "--accept-less"]).status.code(), Some(2));

    // People and programs see what the record states about the payment.
    order["destination_swap"]["filled_amount"] = json!("1000");
    let partial = kept.file("partial.json", &order.to_string());
    let run = ["recover", "--order", &partial, "--leg", "destination", "--funding", &whole, "--to", to, "--fee-rate", "2"];
    assert_eq!(
        kept.json(&run).1["record_funding"],
        json!({ "status": "partial", "filled": "1000", "missing": (amount - 1_000).to_string() })
    );
    assert!(crate::home::out(&kept.run(&run)).contains("partly funded"));
}

/// Only a payment that was signed here can be raised, and only where a replacement spends the same coins, while there is time.
#[test]
fn bump_raises_only_a_payment_that_was_signed_here_and_in_time() {
    use countersign_client::countersign::{BroadcastTransaction, Role, chains::UnixTime};
    use countersign_client::driver::{Delivery, Entry, Event, OrderStore as _, Outcome, Purpose};

    for id in ["bitcoin-delegate", "evm-record-evm-v1"] {
        let kept = Kept::new(&format!("bump-{id}"), Fixture::load(id), None);
        let key = kept.file("key", &"11".repeat(32));
        let order_id = kept.fixture.order_id();
        let bump = ["bump", order_id, "--key-file", &key, "--yes"];
        let said = |code: i32| {
            let output = kept.run(&bump);
            assert_eq!(output.status.code(), Some(code), "{}", crate::home::said(&output));
            crate::home::said(&output)
        };
        assert!(said(2).contains("has not signed a payment"));
        let write = |event| {
            let store = countersign_store::Store::open(kept.home.path.join(".local/share/countersign")).unwrap();
            let guard = crate::home::at_once(store.lock(&countersign_client::OrderId::parse(order_id).unwrap())).unwrap();
            crate::home::at_once(store.append(&guard, &Entry { at: UnixTime::from_secs(1), event })).unwrap();
        };
        let transaction = BroadcastTransaction {
            chain: kept.fixture.order["source_swap"]["chain"].as_str().unwrap().to_owned(),
            role: Role::Initiate,
            id: "ab".repeat(32),
            payload: "00".to_owned(),
            spends: Vec::new(),
        };
        write(Event::Signed { purpose: Purpose::Funding, transactions: vec![transaction], gasless: None });
        // A transaction that was only signed may have been refused by the driver.
        assert!(said(2).contains("was never sent"));
        write(Event::sending(Delivery::Funding));
        // The record is of long ago, and a payment after the deadline would only lock the funds.
        assert!(said(1).contains("order_expired"));
        let mut record = kept.fixture.order.clone();
        record["deadline"] = json!("2126-03-04T05:06:07Z");
        kept.keep(&record);
        if id.starts_with("evm") {
            assert!(said(2).contains("only a payment on a Bitcoin-like chain"));
        } else {
            assert!(said(2).contains("not connected"));
        }
        write(Event::Ended { outcome: Outcome::Refunded });
        assert!(said(2).contains("the order has ended: refunded"));
    }
}
