//! Orders end without the service: from a record alone, and from the state directory. Every family, with a local key and with an
//! external signature. Nothing listens at the service's address.
//!
//! That the calls are the contracts' own is proven elsewhere: `proofs` runs them in the chains' engines, and the calls of Sui are
//! compared here with those of the reference SDK.

mod refusals;

use std::fs;

use crate::home::{out, said};
use crate::kept::{BLOCKHASH, Kept, derived, mended, secret, wallet};
use crate::support::{Fixture, Step};
use countersign::bitcoin::bitcoin::Transaction;
use countersign::bitcoin::bitcoin::consensus::encode::deserialize_hex;
use countersign::evm::alloy_consensus::transaction::SignerRecoverable as _;
use countersign::evm::alloy_consensus::{Transaction as _, TxEnvelope};
use countersign::evm::alloy_eips::eip2718::Decodable2718;
use countersign::evm::alloy_primitives::{hex, keccak256};
use countersign_client::Secret;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// From the examples of BIP-173.
const TO: &str = "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx";

/// Selector of a function of Starknet: the last 250 bits of Keccak-256 of its name.
fn selector(name: &str) -> String {
    let mut hash = keccak256(name).0;
    hash[0] &= 3;
    format!("0x{}", hex::encode(hash).trim_start_matches('0'))
}

/// Requires that a signed recovery is the call that ends the swap. The expected bytes are decoded by other libraries or written by
/// hand. Returns the signature in the form of an external signer.
fn check(family: &str, shown: &Value, leg: &Value, secret: Option<&Secret>, htlc: &str) -> String {
    let role = if secret.is_some() { "redeem" } else { "refund" };
    let id = leg["swap_id"].as_str().unwrap().trim_start_matches("0x");
    let artefact = &shown["artefacts"][role];
    let text = |member: &str| artefact[member].as_str().unwrap().to_owned();
    let bytes = shown["transactions"][0]["bytes"].as_str().unwrap_or_default().trim_start_matches("0x");
    let digits = secret.map(|secret| secret.to_hex().to_string()).unwrap_or_default();
    // f7ff7207 is redeem(bytes32,bytes), 7249fbb6 is refund(bytes32).
    let call = match secret {
        Some(_) => format!("f7ff7207{id}{:064x}{:064x}{digits}", 0x40, 0x20),
        None => format!("7249fbb6{id}"),
    };
    match family {
        "evm" => {
            let envelope = TxEnvelope::decode_2718(&mut hex::decode(bytes).unwrap().as_slice()).unwrap();
            assert_eq!(hex::encode(envelope.input()), call);
            assert_eq!(envelope.to().unwrap().to_string().to_lowercase(), htlc.to_lowercase());
            assert_eq!((envelope.value().to_string(), envelope.gas_limit()), ("0".to_owned(), 300_000));
            assert_eq!(envelope.recover_signer().unwrap().to_string(), shown["payee"], "the owner sends it");
            assert_eq!(envelope.hash().to_string(), shown["transactions"][0]["id"].as_str().unwrap());
            hex::encode(envelope.signature().as_bytes())
        }
        "tron" => {
            assert!(text("raw_data").contains(&call), "{artefact}");
            assert_eq!(hex::encode(Sha256::digest(hex::decode(text("raw_data")).unwrap())), text("tx_id"));
            assert!(bytes.contains(&text("raw_data")) && bytes.ends_with(&text("signature")));
            text("signature")
        }
        "starknet" => {
            let felts: Vec<_> = artefact["calldata"].as_array().unwrap().iter().map(|felt| felt.as_str().unwrap()).collect();
            let short = |digits: &str| format!("0x{}", digits.trim_start_matches('0'));
            let mut expected = vec!["0x1".to_owned(), short(htlc.trim_start_matches("0x")), selector(role)];
            // One call with the swap id; with the secret also a span of its eight words.
            expected.extend(if secret.is_some() {
                ["0xa".to_owned(), short(id), "0x8".to_owned()].to_vec()
            } else {
                ["0x1".to_owned(), short(id)].to_vec()
            });
            expected.extend((0..digits.len() / 8).map(|word| short(&digits[word * 8..word * 8 + 8])));
            assert_eq!(felts, expected);
            artefact["signature"].as_array().unwrap().iter().map(|felt| felt.as_str().unwrap()).collect::<Vec<_>>().join(",")
        }
        "solana" => {
            // Anchor's discriminator.
            let discriminator = hex::encode(&Sha256::digest(format!("global:{role}"))[..8]);
            assert!(bytes.ends_with(&format!("{discriminator}{digits}")), "{bytes}");
            text("signature")
        }
        "sui" => {
            assert!(bytes.contains(id) && bytes.contains(&digits) && bytes.contains(&hex::encode(role)), "{bytes}");
            text("signature")
        }
        "bitcoin" => {
            let transaction: Transaction = deserialize_hex(bytes).unwrap();
            assert_eq!(text("signed"), bytes);
            let witness: Vec<_> = transaction.input[0].witness.iter().map(hex::encode).collect();
            assert_eq!(witness.len(), if secret.is_some() { 4 } else { 3 });
            assert_eq!(if secret.is_some() { &witness[1] } else { &digits }, &digits);
            witness[0].clone()
        }
        other => panic!("{other}"),
    }
}

/// The pinned HTLC of a leg's asset.
fn htlc(fixture: &Fixture, leg: &str) -> String {
    let registry: Value = serde_json::from_str(&fixture.registry).unwrap();
    let asset = registry["assets"].as_array().unwrap().iter().find(|asset| asset["id"] == fixture.order[leg]["asset"]).unwrap();
    asset["htlc"]["address"].as_str().unwrap_or_default().to_owned()
}

/// The registry with a generation pinned for the destination's contract, which determines how the contract takes the secret.
fn pinned(fixture: &Fixture, generation: &str) -> String {
    let mut registry: Value = serde_json::from_str(&fixture.registry).unwrap();
    let mut assets = registry["assets"].as_array_mut().unwrap().iter_mut();
    let asset = assets.find(|asset| asset["id"] == fixture.order["destination_swap"]["asset"]).unwrap();
    asset["htlc"]["generation"] = json!(generation);
    registry.to_string()
}

/// Signs with a local key, then with an external signature for the same command. Both give the same transaction.
fn both_ways(kept: &Kept, family: &str, command: &[&str], key: &str, leg: &str, secret: Option<&Secret>) -> Value {
    let (key, role) = (kept.file("key.txt", key), command[0]);
    let signed = kept.ok(&[command, &["--key-file", &key]].concat());
    assert_eq!((&signed["family"], &signed["role"], &signed["requests"]), (&json!(family), &json!(role), &json!([])), "{signed}");
    assert_eq!(signed["order_id"], kept.fixture.order["order_id"]);
    assert_eq!(signed["amount"], kept.fixture.order[leg]["amount"]);
    assert_eq!(signed["secret_becomes_public"], secret.is_some());
    let signature = check(family, &signed, &kept.fixture.order[leg], secret, &htlc(&kept.fixture, leg));

    let unsigned = kept.ok(command);
    assert_eq!(unsigned["transactions"], json!([]), "{unsigned}");
    let name = unsigned["requests"][0]["name"].as_str().unwrap();
    assert_eq!(name, if family == "bitcoin" { "input_0" } else { role });
    let signatures = kept.file("signatures.json", &json!({ name: signature }).to_string());
    let attached = kept.ok(&[command, &["--signatures", &signatures]].concat());
    assert_eq!((&attached["artefacts"], &attached["transactions"]), (&signed["artefacts"], &signed["transactions"]));
    let attached = kept.ok(&[command, &["--signature", &format!("{name}={signature}")]].concat());
    assert_eq!(attached["transactions"], signed["transactions"]);
    if matches!(family, "evm" | "tron") {
        let output = kept.run(&[command, &["--signature", &format!("{name}={}1b", "11".repeat(64))]].concat());
        let told = said(&output);
        assert!(told.contains("signature_mismatch") && !told.contains("countersign match"), "recoveries are not matched: {told}");
    }
    signed
}

/// The source of every family is refunded from the stored order.
#[test]
fn refund_self_needs_no_service() {
    let cases = [
        "evm-record-evm-v1",
        "tron-record-evm-v2",
        "starknet-record-evm-v2",
        "solana-record-testnet",
        "solana-record-token",
        "sui-record-evm",
        "bitcoin-delegate",
        "bitcoin-delegate-litecoin",
    ];
    for id in cases {
        let family = id.split('-').next().unwrap();
        let kept = Kept::new(&format!("refund-{id}"), Fixture::load(id), None);
        let mut order = kept.fixture.at(Step::SourceFunded);
        if family == "bitcoin" {
            order["source_swap"]["initiate_tx_hash"] = json!(format!("{}:90249", "aa".repeat(32)));
        }
        kept.keep(&order);
        let id_of_order = kept.fixture.order_id();
        let source = &kept.fixture.request["source"];
        let signed = if family == "bitcoin" {
            let funding = format!("{}:0:{}", "aa".repeat(32), source["amount"].as_str().unwrap());
            let key = derived(&format!("refund key of {id}"));
            let to = source["owner"].as_str().unwrap();
            both_ways(
                &kept,
                family,
                &["refund", "--self", id_of_order, "--funding", &funding, "--to", to, "--fee-rate", "2.5"],
                &key,
                "source_swap",
                None,
            )
        } else {
            // The wallet that funded the order: its owner sends the refund too.
            let mut wallet = kept.fixture.wallet.clone();
            let key = wallet.as_object_mut().unwrap().remove("secret_key").unwrap();
            if family == "solana" {
                wallet["recent_blockhash"] = json!(BLOCKHASH);
            }
            let wallet = kept.file("wallet.json", &wallet.to_string());
            let command = ["refund", "--self", id_of_order, "--wallet", &wallet];
            both_ways(&kept, family, &command, key.as_str().unwrap(), "source_swap", None)
        };
        assert_eq!((&signed["record_verified"], signed["warnings"].is_array()), (&json!(true), true));
        let payee = if family == "bitcoin" { &source["delegate"] } else { &source["owner"] };
        assert_eq!(signed["payee"].as_str().unwrap().to_lowercase(), payee.as_str().unwrap().to_lowercase(), "{id}");
    }
}

/// The destination of every family is redeemed from the stored order, with the stored secret.
#[test]
fn redeem_self_needs_no_service() {
    let cases = [
        ("evm-record-evm-v1", "evm"),
        ("evm-record-tron", "tron"),
        ("evm-record-starknet-sepolia", "starknet"),
        ("evm-record-solana-testnet", "solana"),
        ("evm-record-sui-testnet", "sui"),
        ("evm-record-bitcoin-testnet", "bitcoin"),
        ("evm-record-litecoin-testnet", "bitcoin"),
    ];
    let secret = secret();
    for (id, family) in cases {
        let mut fixture = Fixture::load(id).with_secret_hash(&secret.hash().to_string());
        if family == "starknet" {
            fixture.registry = pinned(&fixture, "2025_11");
        }
        let kept = Kept::new(&format!("redeem-{id}"), mended(fixture), Some(&secret));
        kept.keep(&kept.fixture.at(Step::DestinationFunded));
        let order_id = kept.fixture.order_id();
        if family == "bitcoin" {
            let funding = format!("{}:1:{}", "aa".repeat(32), kept.fixture.order["destination_swap"]["amount"].as_str().unwrap());
            let to = kept.fixture.request["destination"]["owner"].as_str().unwrap();
            let key = derived(&format!("redeem key that the service holds for {order_id}"));
            let command = ["redeem", "--self", order_id, "--funding", &funding, "--to", to, "--fee-rate", "3"];
            let signed = both_ways(&kept, family, &command, &key, "destination_swap", Some(&secret));
            assert!(signed["summary"].to_string().contains(to), "{signed}");
            continue;
        }
        let owner = kept.fixture.request["destination"]["owner"].as_str().unwrap();
        // On EVM the owner sends it, elsewhere another account of the user's.
        let (mut context, mut key) = wallet(family, (family == "starknet").then_some(owner));
        if family == "evm" {
            context.as_object_mut().unwrap().remove("sender");
            key = derived(&format!("destination owner of {id}"));
        }
        let wallet = kept.file("wallet.json", &context.to_string());
        let command = ["redeem", "--self", order_id, "--wallet", &wallet];
        let signed = both_ways(&kept, family, &command, &key, "destination_swap", Some(&secret));
        assert_eq!(signed["payee"].as_str().unwrap().to_lowercase(), owner.to_lowercase(), "{id}");
        assert_eq!(signed["record_verified"], true);

        // For people: what it does to the secret, and the secret nowhere but in the transaction.
        let shown = kept.run(&[&command[..], &["--key-file", kept.home.path.join("key.txt").to_str().unwrap()]].concat());
        let warned = "makes the secret public, and with it the other leg can be redeemed too: broadcast it now, or check the chain again";
        assert!(shown.status.success() && out(&shown).contains(warned), "{}", said(&shown));
        // From the moment it is printed the secret may be public: later runs must know, and must not take it for sent.
        let journal = fs::read_to_string(kept.home.kept(order_id, "journal")).unwrap();
        assert!(journal.contains("secret_leaving") && journal.contains(r#""event":"printed""#), "{id}: {journal}");
        assert!(!journal.contains(r#""event":"sending""#), "{id}: {journal}");
        assert!(out(&shown).contains("verified against the stored request"), "{}", out(&shown));
        assert!(!String::from_utf8_lossy(&shown.stderr).contains(secret.to_hex().as_str()));
    }
}

/// The calls on Sui are those that the reference SDK builds for the same order.
#[test]
fn recover_makes_the_calls_of_suis_reference_sdk() {
    let outside = fs::read_to_string(crate::support::project().join("crates/sui/tests/outside.json")).unwrap();
    let ways = serde_json::from_str::<Value>(&outside).unwrap()["ways_out"].take();
    let kept = Kept::new("sdk", Fixture::load("sui-record-evm"), None);
    let (order, secret) = (kept.file("order.json", &ways["order"].to_string()), kept.file("secret.txt", ways["secret"].as_str().unwrap()));
    let (mut context, key) = wallet("sui", None);
    let key = kept.file("key.txt", &key);
    for (names, refund) in [("current", "refund"), ("older", "refund_swap")] {
        context["function_names"] = json!(names);
        let wallet = kept.file("wallet.json", &context.to_string());
        let common = ["recover", "--order", &order, "--wallet", &wallet, "--key-file", &key];
        let bytes = |more: &[&str]| kept.ok(&[&common[..], more].concat())["transactions"][0]["bytes"].as_str().unwrap().to_owned();
        assert!(bytes(&[]).contains(ways[refund].as_str().unwrap()));
        if names == "current" {
            assert!(bytes(&["--secret-file", &secret]).contains(ways["redeem"].as_str().unwrap()));
        }
    }
}

/// A record alone is enough, but it is shown as not verified against an offer.
#[test]
fn a_record_alone_is_not_called_verified() {
    let kept = Kept::new("alone", Fixture::load("evm-record-evm-v1"), None);
    let order = kept.file("order.json", &json!({ "status": "Ok", "result": kept.fixture.order }).to_string());
    let wallet = kept.file("wallet.json", &kept.fixture.wallet.to_string());
    let id = kept.fixture.order_id();
    let recover = ["recover", "--order", &order, "--wallet", &wallet];
    // The key of the wallet context signs, as it does for `sign`.
    let shown = kept.ok(&recover);
    assert_eq!((&shown["record_verified"], shown["transactions"].as_array().unwrap().len()), (&json!(false), 1));
    let text = out(&kept.run(&recover));
    assert!(text.contains("not verified against your request") && text.contains("2500 USDC (2500000000 base units)"), "{text}");
    // A named record of an order that was created here is verified, even if no record is kept.
    fs::remove_file(kept.home.kept(id, "record.json")).unwrap();
    assert_eq!(kept.ok(&["refund", "--self", id, "--order", &order, "--wallet", &wallet])["record_verified"], true);
    assert_eq!(kept.run(&["refund", "--self", id, "--wallet", &wallet]).status.code(), Some(2), "no record");
    fs::remove_file(kept.home.kept(id, "order.json")).unwrap();
    assert_eq!(kept.ok(&["refund", "--self", id, "--order", &order, "--wallet", &wallet])["record_verified"], false);
    // The secret of another order does not leave under this record: only a kept request says which hash is its own.
    let secret = secret();
    let fixture = mended(kept.fixture.with_secret_hash(&secret.hash().to_string()));
    fs::write(kept.home.kept(id, "secret"), secret.to_hex().as_bytes()).unwrap();
    let order = kept.file("other.json", &fixture.order.to_string());
    let redeem = ["redeem", "--self", id, "--order", &order, "--wallet", &wallet];
    assert_eq!(kept.run(&redeem).status.code(), Some(2));
    let own = kept.file("own.secret", &secret.to_hex());
    let (code, shown) = kept.json(&[&redeem[..], &["--secret-file", &own]].concat());
    assert_eq!((code, &shown["error"]["code"]), (Some(1), &json!("key_mismatch")), "the key is the source owner's: {shown}");
}

/// A paid order is refunded even if its asset was unpinned later: the pins that were stored with the order apply.
#[test]
fn an_order_is_recovered_by_the_pins_that_were_kept_with_it() {
    let kept = Kept::new("pins", Fixture::load("evm-record-evm-v1"), None);
    let (id, wallet) = (kept.fixture.order_id(), kept.file("wallet.json", &kept.fixture.wallet.to_string()));
    let refund = ["refund", "--self", id, "--wallet", &wallet];
    let pinned: Value = serde_json::from_str(&kept.fixture.registry).unwrap();
    let mut others = pinned.clone();
    others["assets"].as_array_mut().unwrap().retain(|asset| asset["id"] != kept.fixture.order["source_swap"]["asset"]);
    kept.file("registry.json", &others.to_string());
    assert_eq!(kept.refused(&refund).0, "unknown_asset");
    let pins = json!({ "registry": pinned, "policy": countersign::Policy::default() });
    fs::write(kept.home.kept(id, "pins.json"), pins.to_string()).unwrap();
    assert_eq!(kept.ok(&refund)["record_verified"], true);
}

/// Bitcoin and Litecoin: flags or a wallet context, ceilings for the fee, and no other hash than the owner's own instant refund.
#[test]
fn bitcoin_takes_flags_or_a_wallet_context() {
    for (id, to) in [("bitcoin-delegate", TO), ("bitcoin-delegate-litecoin", "ltc1qy6yh34fevvhvqdf3rvgh9ucjsdry07ralqlteg")] {
        let kept = Kept::new(&format!("flags-{id}"), Fixture::load(id), None);
        let order = kept.file("order.json", &json!({ "status": "Ok", "result": kept.fixture.order }).to_string());
        let (key, other) = (kept.file("key", &derived(&format!("refund key of {id}"))), kept.file("other", &"11".repeat(32)));
        let funding = format!("{}:1:50000", "ab".repeat(32));
        let flags = ["recover", "--order", &order, "--funding", &funding, "--to", to];
        let rate = |rate: &str, more: &[&str]| {
            [&flags[..], &["--fee-rate", rate], more].concat().iter().map(|&text| text.to_owned()).collect::<Vec<_>>()
        };
        let arguments = |arguments: &[String]| kept.ok(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let refused = |arguments: &[String]| {
            let (code, at) = kept.refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
            format!("{code} {at}")
        };
        let unsigned = arguments(&rate("2.5", &[]));
        assert_eq!(unsigned["requests"][0]["signer"], kept.fixture.order["source_swap"]["delegate"], "{unsigned}");
        assert!(unsigned["artefacts"]["refund"]["psbt"].as_str().unwrap().starts_with("cHNidP8"));
        let shown = out(&kept.run(&[&flags[..], &["--fee-rate", "2.5"]].concat()));
        assert!(shown.contains("cHNidP8") && shown.contains("confirmations"), "{shown}");
        let signed = arguments(&rate("2.5", &["--key-file", &key]));
        check("bitcoin", &signed, &kept.fixture.order["source_swap"], None, "");

        // The same from a wallet context.
        let context = json!({ "funding": [funding], "to": to, "fee_rate": "2.5" });
        let with = |change: Value| {
            let mut context = context.clone();
            for (member, value) in change.as_object().unwrap() {
                context[member] = value.clone();
            }
            let wallet = kept.file("wallet.json", &context.to_string());
            ["recover", "--order", &order, "--wallet", &wallet, "--key-file", &key].map(str::to_owned)
        };
        assert_eq!(arguments(&with(json!({})))["transactions"], signed["transactions"]);
        assert_eq!(refused(&with(json!({ "fee_rate": "1000.5" }))), "fee_rate_too_high /wallet/fee_rate");
        assert_eq!(refused(&with(json!({ "fee_rate": "300" }))), "fee_above_payout /wallet/fee_rate", "more than is paid out");
        assert_eq!(refused(&with(json!({ "fee_rate": "0" }))), "fee_rate_zero /wallet/fee_rate");
        assert_eq!(refused(&with(json!({ "to": null }))), "missing_field /wallet/to");
        assert_eq!(refused(&with(json!({ "funding": ["1:2"] }))), "funding_mismatch /wallet/funding/0");
        assert_eq!(refused(&with(json!({ "funding": [] }))), "funding_mismatch /wallet/funding");
        assert_eq!(refused(&with(json!({ "sender": to }))), "unexpected_field /wallet/sender");
        assert_eq!(refused(&with(json!({ "change_address": to }))), "unexpected_field /wallet/change_address");
        // A coin of the wallet pays the fee, so the recovered amount arrives whole.
        let coin = Fixture::load(if id.ends_with("litecoin") { "bitcoin-every-kind-litecoin" } else { "bitcoin-p2wpkh" }).wallet["utxos"]
            [0]
        .clone();
        let paid = arguments(&with(json!({ "utxos": [coin], "change_address": to })));
        assert_eq!((paid["requests"].as_array().unwrap().len(), &paid["requests"][0]["name"]), (1, &json!("input_1")), "{paid}");
        assert!(paid["summary"].to_string().contains("50000 "), "{paid}");

        assert_eq!(refused(&rate("1001", &[])), "fee_rate_too_high /wallet/fee_rate");
        assert_eq!(refused(&rate("2", &["--key-file", &other])), "key_mismatch /wallet/secret_key");
        assert_eq!(refused(&rate("2", &["--secret-file", &other])), "secret_wrong /order/source_swap/secret_hash");
        let instant = |more: &[&str]| kept.json(&[&flags[..], &["--instant"], more].concat());
        assert_eq!(instant(&["--hash", &"ab".repeat(32)]).1["error"]["code"], "sighash_mismatch");
        let wanted = instant(&[]).1;
        assert_eq!(instant(&["--hash", wanted[0]["digest"].as_str().unwrap()]).0, Some(0));
        assert_eq!(instant(&["--key-file", &key]).1["signatures"].as_array().unwrap().len(), 1);
        for usage in
            [&flags[..], &["recover", "--order", &order, "--funding", &funding, "--fee-rate", "1"], &["recover", "--order", &order]]
        {
            assert_eq!(kept.run(usage).status.code(), Some(2));
        }
    }
}
