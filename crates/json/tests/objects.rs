//! The functions that the language bindings call: the same artefacts as the batch, and typed failures.
#![cfg(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana", feature = "bitcoin"))]
use std::collections::BTreeSet;

use crate::documents;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::{FAMILIES, Family, Policy, Verified};
use countersign_json::objects::{self, Documents, Failure};
use countersign_testkit::lines::difference;
use serde_json::{Value, json};

use documents::{fixtures, registry};

#[test]
fn orders_are_signed_step_by_step_as_by_the_batch() {
    let (registry, policy) = (registry(), objects::policy(b"{}").unwrap());
    let mut signed = 0;
    for family in FAMILIES {
        for case in fixtures(family.name()) {
            let (id, wallet) = (case.value("id"), case.value("wallet"));
            let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
            assert_eq!(objects::terms(&order.terms()).order_id, order.order_id(), "{id}");
            assert!(!objects::summary(&order.summary()).is_empty() && !objects::coverage(order.coverage()).is_empty(), "{id}");
            let mut unsigned = objects::prepare(&order, case.text("wallet")).unwrap();
            for request in objects::requests(&unsigned) {
                assert!(!request.native.kind.is_empty() && !request.native.value.is_empty(), "{id}: {}", request.name);
            }
            if let Some(key) = wallet["secret_key"].as_str() {
                objects::sign(&mut unsigned, key).unwrap();
                signed += 1;
            }
            let artefacts: Value = serde_json::from_str(&objects::artefacts(&unsigned)).unwrap();
            assert_eq!(difference(&case.value("expect")["artefacts"], &artefacts, ""), None, "{id}");
            match objects::finish(unsigned) {
                Ok(order) => assert!(objects::transactions(&order).iter().all(|transaction| !transaction.payload.is_empty()), "{id}"),
                Err(refused) => {
                    let (order, failure) = *refused;
                    assert_eq!(failure.code, "signature_missing", "{id}");
                    assert!(!order.missing().is_empty(), "{id}");
                }
            }
        }
    }
    assert!(signed > 100, "{signed} orders were signed");
}

#[test]
fn external_signatures_are_proven() {
    let (registry, policy) = (registry(), Policy::default());
    let case = fixtures("evm").into_iter().find(|case| case.value("wallet")["secret_key"].is_string()).unwrap();
    let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
    let prepare = || objects::prepare(&order, case.text("wallet")).unwrap();
    let mut unsigned = prepare();
    let request = objects::requests(&unsigned).swap_remove(0);
    let transaction: Value = serde_json::from_str(&request.native.value).unwrap();
    let nonce = case.value("wallet")["nonce"].as_u64().unwrap();
    assert_eq!((request.native.kind.as_str(), &transaction["nonce"]), ("evm_transaction", &json!(format!("{nonce:#x}"))));

    let code = |result: Result<(), Failure>| result.unwrap_err().code;
    assert_eq!(code(objects::attach(&mut unsigned, &request.name, "0x00")), "signature_malformed");
    assert_eq!(code(objects::attach(&mut unsigned, "no such request", &format!("0x{}1b", "11".repeat(64)))), "nothing_to_sign");
    assert_eq!(code(objects::attach(&mut unsigned, &request.name, &format!("0x{}1b", "11".repeat(64)))), "signature_mismatch");
    assert_eq!(code(objects::attach(&mut unsigned, &request.name, "{\"contract\": 1}")), "wrong_type");
    assert_eq!(code(objects::attach(&mut unsigned, &request.name, "{\"contract\"")), "json_syntax");
    // The signer of one request must not answer another one.
    let both = "{\"contract\": \"0x\"}, \"typed_data\": {\"contract\": \"0x\"}";
    assert_eq!(code(objects::attach(&mut unsigned, &request.name, both)), "json_syntax");
    assert_eq!(objects::artefacts(&unsigned), objects::artefacts(&prepare()), "a refused signature changes nothing");
}

/// A case, a change of its wallet context that gives another transaction, the code of that transaction's refusal, and the names of the
/// requests.
const RETURNED: [(&str, [&str; 2], &str, &[&str]); 5] = [
    ("evm-token-approval-exact", [r#""nonce":22"#, r#""nonce":23"#], "transaction_mismatch", &["approval", "initiate"]),
    ("tron-native-typed-data", ["1772601010010", "1772601010011"], "transaction_mismatch", &["initiate"]),
    ("starknet-approval-exact", [r#""nonce":"0x2""#, r#""nonce":"0x3""#], "transaction_mismatch", &["invoke"]),
    (
        "solana-native-v0",
        [r#""recent_blockhash":null"#, r#""recent_blockhash":"SysvarC1ock11111111111111111111111111111111""#],
        "transaction_mismatch",
        &["transaction"],
    ),
    ("bitcoin-p2wpkh", [r#""fee_rate":"2""#, r#""fee_rate":"3""#], "psbt_mismatch", &["input_0"]),
];

/// Signs a case, and returns the bytes that signers of its family return.
fn returned(order: &Verified, wallet: &str, key: &str) -> Vec<Vec<u8>> {
    let mut unsigned = objects::prepare(order, wallet.as_bytes()).unwrap();
    objects::sign(&mut unsigned, key).unwrap();
    let artefacts: Value = serde_json::from_str(&objects::artefacts(&unsigned)).unwrap();
    if let Some(psbt) = artefacts["deposit"]["signed_psbt"].as_str() {
        return vec![STANDARD.decode(psbt).unwrap()];
    }
    let bytes = |payload: &str| hex::decode(payload.trim_start_matches("0x")).unwrap_or_else(|_| payload.as_bytes().to_vec());
    objects::transactions(&objects::finish(unsigned).unwrap()).iter().map(|transaction| bytes(&transaction.payload)).collect()
}

#[test]
fn a_signer_may_return_the_signed_transaction() {
    let (registry, policy) = (registry(), Policy::default());
    for (id, [from, to], code, names) in RETURNED {
        let family = id.split('-').next().unwrap();
        let case = fixtures(family).into_iter().find(|case| case.value("id") == *id).unwrap();
        let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
        let wallet = case.value("wallet").to_string();
        let key = case.value("wallet")["secret_key"].as_str().unwrap().to_owned();
        assert!(wallet.contains(from), "{id}: {wallet}");
        let mut unsigned = objects::prepare(&order, wallet.as_bytes()).unwrap();
        let before = objects::artefacts(&unsigned);
        for other in returned(&order, &wallet.replacen(from, to, 1), &key) {
            let failure = objects::attach_transaction(&mut unsigned, &other).unwrap_err();
            assert_eq!((failure.code, &*failure.at), (code, "/transaction"), "{id}");
        }
        let failure = objects::attach_transaction(&mut unsigned, b"").unwrap_err();
        assert!(failure.at.starts_with("/transaction"), "{id}: {failure}");
        assert_eq!(objects::artefacts(&unsigned), before, "{id}: a refused transaction changes nothing");
        let transactions = returned(&order, &wallet, &key);
        let attached = transactions.iter().map(|transaction| objects::attach_transaction(&mut unsigned, transaction).unwrap());
        assert_eq!(attached.collect::<Vec<_>>().concat(), names, "{id}");
    }
}

/// Returns a signed transaction in the form in which wallets of the family return it.
fn as_returned(family: &str, payload: &str) -> String {
    match family {
        "solana" => STANDARD.encode(hex::decode(payload).unwrap()),
        _ => payload.to_owned(),
    }
}

#[test]
fn what_an_external_wallet_sent_is_compared_with_the_order() {
    let (registry, policy) = (registry(), Policy::default());
    let (mut compared, mut families, mut refused) = (0, Vec::new(), BTreeSet::new());
    for family in FAMILIES {
        let mut last: Option<(Verified, String)> = None;
        for case in fixtures(family.name()) {
            let (id, wallet) = (case.value("id"), case.value("wallet"));
            let Some(key) = wallet["secret_key"].as_str() else { continue };
            let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
            let mut unsigned = objects::prepare(&order, case.text("wallet")).unwrap();
            objects::sign(&mut unsigned, key).unwrap();
            let Ok(signed) = objects::finish(unsigned) else { continue };
            for transaction in objects::transactions(&signed) {
                let sent = as_returned(family.name(), &transaction.payload);
                let matched = objects::match_with_warnings(&order, sent.as_bytes()).unwrap();
                assert_eq!(matched.role, transaction.role, "{id}");
                match objects::matches(&order, sent.as_bytes()) {
                    Ok(role) => assert!(role == matched.role && matched.warnings.iter().all(|notice| notice.severity == "info"), "{id}"),
                    Err(failure) => {
                        assert_eq!((failure.code, &*failure.at), ("transaction_mismatch", "/transaction"), "{id}");
                        assert!(matched.warnings.iter().all(|notice| failure.message.contains(&notice.message)), "{id}: {failure}");
                        assert!(failure.message.contains("match it with warnings"), "{id}: {failure}");
                        refused.extend(matched.warnings.into_iter().map(|notice| notice.code));
                    }
                }
                last = Some((objects::verify(&case.documents(), &registry, &policy).unwrap(), sent));
                compared += 1;
            }
        }
        let (order, sent) = last.unwrap_or_else(|| panic!("no order of {family} was signed"));
        for malformed in [&sent[..sent.len() / 2], "", "{", "{}", "0x", "\u{e9}"] {
            let failure = objects::matches(&order, malformed.as_bytes()).unwrap_err();
            assert!(failure.at.starts_with("/transaction"), "{family} {malformed}: {failure}");
        }
        families.push(family.name());
    }
    assert!(compared > 100 && families.len() == 6, "{compared} transactions of {families:?}");
    // Nothing else was changed; an approval that the service proposed is in the order's own warnings.
    assert_eq!(refused.into_iter().collect::<Vec<_>>(), ["signature_unverified"]);
}

/// A case, the member of a transaction's JSON that states its outcome, the place of the outcome, and the member of one that succeeded and of
/// one that failed. No JSON of a transaction on Solana or a Bitcoin-like chain is read.
const OUTCOMES: [(&str, &str, &str, [&str; 2]); 19] = [
    ("evm-token-approval-exact", "status", "/status", [r#""0x1""#, r#""0x0""#]),
    ("evm-token-approval-exact", "status", "/status", ["1", "0"]),
    ("evm-token-approval-exact", "status", "/status", ["true", "false"]),
    ("evm-token-approval-exact", "status", "/status", [r#""success""#, r#""reverted""#]),
    ("evm-token-approval-exact", "status", "/status", [r#""unknown""#, r#""Dropped""#]),
    ("tron-token-approval-exact", "ret", "/ret/0/contractRet", [r#"[{"contractRet":"SUCCESS"}]"#, r#"[{"contractRet":"OUT_OF_ENERGY"}]"#]),
    ("tron-token-approval-exact", "ret", "/ret/0/ret", [r#"[{"ret":"SUCESS"}]"#, r#"[{"ret":"FAILED"}]"#]),
    ("tron-token-approval-exact", "code", "/code", [r#""SUCCESS""#, r#""SIGERROR""#]),
    ("tron-token-approval-exact", "code", "/code", [r#""DUP_TRANSACTION_ERROR""#, r#""TAPOS_ERROR""#]),
    ("tron-token-approval-exact", "result", "/result", ["true", "false"]),
    ("starknet-approval-exact", "execution_status", "/execution_status", [r#""SUCCEEDED""#, r#""REVERTED""#]),
    ("starknet-approval-exact", "finality_status", "/finality_status", [r#""ACCEPTED_ON_L2""#, r#""REJECTED""#]),
    ("starknet-approval-exact", "status", "/status", [r#""PENDING""#, r#""REVERTED""#]),
    (
        "sui-native",
        "effects",
        "/effects/status/status",
        [r#"{"status":{"status":"success"}}"#, r#"{"status":{"status":"failure","error":"MoveAbort"}}"#],
    ),
    ("sui-native", "effects", "/effects/status/success", [r#"{"status":{"success":true}}"#, r#"{"status":{"success":false}}"#]),
    ("sui-native", "status", "/status/success", [r#"{"success":true,"error":null}"#, r#"{"success":false,"error":"MoveAbort"}"#]),
    ("sui-native", "status", "/status", [r#""sent""#, r#""failure""#]),
    ("sui-native", "effects", "/effects/status", [r#"{"status":"SUCCESS"}"#, r#"{"status":"FAILURE"}"#]),
    // BCS: the second version, then the variant of the status.
    ("sui-native", "effects", "/effects", [r#""AQAB""#, r#""AQEB""#]),
];

/// The payment of a case, signed, in the JSON of its family's wallets and nodes.
fn payment_in_json(order: &Verified, case: &documents::Case) -> Value {
    let wallet = case.value("wallet");
    let mut unsigned = objects::prepare(order, case.text("wallet")).unwrap();
    objects::sign(&mut unsigned, wallet["secret_key"].as_str().unwrap()).unwrap();
    let artefacts: Value = serde_json::from_str(&objects::artefacts(&unsigned)).unwrap();
    let part = &artefacts["initiate"];
    match order.family() {
        Family::Evm => {
            let request = objects::requests(&unsigned).into_iter().find(|request| request.name == "initiate").unwrap();
            let mut sent: Value = serde_json::from_str(&request.native.value).unwrap();
            sent["input"] = sent["data"].take();
            // The bytes end with the parity and the two words of the signature, each of them behind a byte for its length.
            let signed = part["signed"].as_str().unwrap();
            let (parity, words) = signed[signed.len() - 134..].split_at(2);
            sent["yParity"] = json!(if parity == "01" { "0x1" } else { "0x0" });
            (sent["r"], sent["s"]) = (json!(format!("0x{}", &words[2..66])), json!(format!("0x{}", &words[68..])));
            sent
        }
        Family::Tron => json!({"txID": part["tx_id"], "raw_data_hex": part["raw_data"], "signature": [part["signature"]]}),
        _ => serde_json::from_str(&objects::transactions(&objects::finish(unsigned).unwrap()).pop().unwrap().payload).unwrap(),
    }
}

/// A transaction that failed is the order's, and locked nothing.
#[test]
fn a_transaction_that_states_that_it_failed_is_no_payment() {
    let (registry, policy) = (registry(), Policy::default());
    for (id, member, at, outcomes) in OUTCOMES {
        let case = fixtures(id.split('-').next().unwrap()).into_iter().find(|case| case.value("id") == id).unwrap();
        let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
        let mut sent = payment_in_json(&order, &case);
        let matches = |sent: &Value| objects::matches(&order, sent.to_string().as_bytes());
        assert_eq!(matches(&sent).unwrap(), "initiate", "{id}");
        let [succeeded, failed] = outcomes.map(|outcome| serde_json::from_str::<Value>(outcome).unwrap());
        sent[member] = succeeded;
        assert_eq!(matches(&sent).unwrap(), "initiate", "{id}");
        sent[member] = failed;
        let with_warnings = objects::match_with_warnings(&order, sent.to_string().as_bytes());
        for failure in [matches(&sent).unwrap_err(), with_warnings.unwrap_err()] {
            assert_eq!((failure.code, &*failure.at), ("transaction_mismatch", &*format!("/transaction{at}")), "{id}: {failure}");
            assert!(failure.message.contains("the transaction failed"), "{id}: {failure}");
        }
    }
}

/// The transaction of a relay or a multisig is not the order's, but what it did pays it.
#[test]
fn the_payment_of_another_account_is_found_by_its_effect() {
    let (registry, policy) = (registry(), Policy::default());
    let order = |family: &str, id: &str| {
        let case = fixtures(family).into_iter().find(|case| case.value("id") == id).unwrap();
        (objects::verify(&case.documents(), &registry, &policy).unwrap(), case)
    };
    let find = |order: &Verified, effect: &Value| {
        let found = objects::find_payment(order, effect.to_string().as_bytes());
        found.map_err(|failure| (failure.code, failure.at.into_string()))
    };
    let refused = |code: &'static str, at: &str| Err((code, at.to_owned()));
    let initiated = "01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65";
    // The swap ids of the records were computed by another tool.
    let (evm, case) = order("evm", "evm-record-evm-v3");
    let event = |case: &documents::Case, prefix: &str| {
        let order = case.value("order");
        let swap = &order["source_swap"];
        let [id, hash] = ["swap_id", "secret_hash"].map(|member| format!("{prefix}{}", swap[member].as_str().unwrap()));
        let amount: u64 = swap["amount"].as_str().unwrap().parse().unwrap();
        json!([format!("{prefix}{initiated}"), id, hash, format!("{prefix}{amount:064x}")])
    };
    let Verified::Evm(verified) = &evm else { panic!("an order on an EVM chain") };
    let log = json!({"address": verified.deposit().initiate.to, "topics": event(&case, "0x"), "data": "0x"});
    let mut receipt = json!({"transactionHash": format!("0x{}", "77".repeat(32)), "status": "0x1", "logs": [log]});
    assert_eq!(find(&evm, &receipt), Ok(format!("0x{}", "77".repeat(32))));
    receipt["status"] = json!("0x0");
    assert_eq!(find(&evm, &receipt), refused("transaction_mismatch", "/calls/status"));

    let (tron, case) = order("tron", "tron-record-native-v3");
    let Verified::Tron(verified) = &tron else { panic!("an order on Tron") };
    let contract = format!("{:x}", verified.deposit().initiate.to.bytes());
    // The destination data is empty: its offset and its length.
    let mut data = event(&case, "");
    data[0] = json!("380328b26f928a9e51ec19f8e2199a2bce34db266d093d1e0104bce139ed7555");
    let logs = [
        json!({"address": contract, "topics": event(&case, ""), "data": ""}),
        json!({"address": contract, "topics": data, "data": format!("{:064x}{:064x}", 32, 0)}),
    ];
    let mut info = json!({"id": "77".repeat(32), "blockNumber": 1, "receipt": {"result": "SUCCESS"}, "log": logs});
    assert_eq!(find(&tron, &info), Ok("77".repeat(32)));
    info["blockNumber"] = json!(0);
    assert_eq!(find(&tron, &info), refused("wrong_type", "/calls/blockNumber"));
    info["blockNumber"] = json!(1);
    info["receipt"]["result"] = json!("OUT_OF_TIME");
    assert_eq!(find(&tron, &info), refused("transaction_mismatch", "/calls/receipt/result"));
    assert_eq!(find(&tron, &json!({})), refused("missing_field", "/calls/id"));

    let (solana, case) = order("solana", "solana-native-legacy");
    let expect = case.value("expect");
    let transaction = &expect["artefacts"]["transaction"];
    let mut shown = json!({"slot": 1, "transaction": [transaction["signed"], "base64"], "meta": {"err": null}, "version": "legacy"});
    assert_eq!(find(&solana, &shown), Ok(transaction["signature"].as_str().unwrap().to_owned()));
    shown["meta"] = json!({"err": {"InsufficientFundsForRent": {"account_index": 0}}});
    assert_eq!(find(&solana, &shown), refused("transaction_mismatch", "/calls/meta/err"));
    shown["meta"] = json!({});
    assert_eq!(find(&solana, &shown), refused("missing_field", "/calls/meta/err"));

    let (starknet, case) = order("starknet", "starknet-2025-11");
    let Verified::Starknet(verified) = &starknet else { panic!("an order on Starknet") };
    let order_record = case.value("order");
    let swap = &order_record["source_swap"];
    let hash = swap["secret_hash"].as_str().unwrap();
    let words = (0..8).map(|word| format!("0x{}", &hash[8 * word..8 * word + 8]));
    let amount: u64 = swap["amount"].as_str().unwrap().parse().unwrap();
    let data: Vec<_> = words.chain([format!("{amount:#x}"), "0x0".to_owned()]).collect();
    let initiated = "0xebf924f11f1ca1dec8c58c339f9ee9d29f63da2478b85366a1a80ca432b972";
    let contract = format!("{:#x}", verified.deposit().initiate.to);
    let keys = json!([initiated, format!("0x{}", swap["swap_id"].as_str().unwrap())]);
    let mut receipt = json!({
        "transaction_hash": "0x777", "finality_status": "ACCEPTED_ON_L1", "execution_status": "SUCCEEDED",
        "events": [{"from_address": contract, "keys": keys, "data": data}],
    });
    assert!(matches!(find(&starknet, &receipt), Ok(hash) if hash.ends_with("777")));
    receipt["execution_status"] = json!("REVERTED");
    assert_eq!(find(&starknet, &receipt), refused("transaction_mismatch", "/calls/execution_status"));

    let (sui, _) = order("sui", "sui-native");
    assert_eq!(find(&sui, &receipt), refused("unsupported_family", ""));
    for order in [&evm, &tron, &starknet, &solana] {
        for malformed in ["", "{", "[]", "1", "{\"meta\": 1, \"id\": 1}"] {
            let failure = objects::find_payment(order, malformed.as_bytes()).unwrap_err();
            assert!(failure.at.starts_with("/calls"), "{malformed}: {failure}");
        }
    }
}

/// Nobody can leave unsigned what a wallet has sent.
#[test]
fn the_policy_does_not_forbid_to_sign_what_was_sent() {
    let case = fixtures("tron").into_iter().find(|case| case.value("id") == "tron-permission-own-key").unwrap();
    let key = case.value("wallet")["secret_key"].as_str().unwrap().to_owned();
    let policy = objects::policy(br#"{"refused_warnings": ["signature_unverified"]}"#).unwrap();
    let order = objects::verify(&case.documents(), &registry(), &policy).unwrap();
    let mut unsigned = objects::prepare(&order, case.text("wallet")).unwrap();
    objects::sign(&mut unsigned, &key).unwrap();
    let sent = objects::transactions(&objects::finish(unsigned).unwrap()).remove(0).payload;
    for failure in
        [objects::matches(&order, sent.as_bytes()).unwrap_err(), objects::match_with_warnings(&order, sent.as_bytes()).unwrap_err()]
    {
        assert_eq!((failure.code, &*failure.at), ("warning_refused", "/transaction"));
        assert!(!failure.message.contains("do not sign") && failure.message.contains("change the policy"), "{failure}");
    }
}

/// Of an array of signatures, none stays if one is refused.
#[test]
fn an_array_of_signatures_is_attached_as_a_whole() {
    let text = std::fs::read(countersign_testkit::project().join("fixtures/chain/tron.json")).unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let signed = file["orders"].as_array().unwrap().iter().find(|order| order["case"] == "tron-permission-two-keys").unwrap();
    let [first, second] = [0, 1].map(|index| signed["transactions"]["initiate"]["signature"][index].as_str().unwrap());
    let case = fixtures("tron").into_iter().find(|case| case.value("id") == "tron-permission-two-keys").unwrap();
    let order = objects::verify(&case.documents(), &registry(), &Policy::default()).unwrap();
    let mut unsigned = objects::prepare(&order, case.text("wallet")).unwrap();
    let before = objects::artefacts(&unsigned);
    let failure = objects::attach(&mut unsigned, "initiate", &json!([first, "11".repeat(65)]).to_string()).unwrap_err();
    assert_eq!(&*failure.at, "/signatures/initiate/1", "{failure}");
    assert_eq!(objects::artefacts(&unsigned), before);
    objects::attach(&mut unsigned, "initiate", first).unwrap();
    objects::attach(&mut unsigned, "initiate", &json!([first, second]).to_string()).unwrap();
    assert!(unsigned.missing().iter().all(|id| id.name() != "initiate"));
}

/// What JavaScript, Python, Kotlin and Swift verify before a payment, without a connection.
#[test]
fn a_limit_for_a_misspelt_name_accepts_no_order() {
    let (registry, case) = (registry(), fixtures("evm").swap_remove(0));
    let verify = |policy: &str| {
        let policy = objects::policy(policy.as_bytes()).unwrap();
        objects::verify(&case.documents(), &registry, &policy).map(drop).map_err(|failure| (failure.code, failure.at.to_string()))
    };
    assert_eq!(verify(r#"{"max_timelock_seconds":{"base":86400,"*":864000}}"#), Ok(()));
    let refused = verify(r#"{"max_timelock_seconds":{"bsae":86400}}"#);
    assert_eq!(refused, Err(("unknown_chain", "/policy/max_timelock_seconds".to_owned())));
}

#[test]
fn failures_say_what_is_wrong_where_and_who_has_to_act() {
    let (registry, policy) = (registry(), Policy::default());
    let case = fixtures("evm").swap_remove(0);
    let fail = |request: &[u8], response: &[u8]| objects::verify(&Documents::new(request, response), &registry, &policy).unwrap_err();
    let failure = fail(b"{", case.text("response"));
    assert_eq!((&*failure.at, failure.blame), ("/request#1-2", "caller"), "{failure}");
    let failure = fail(case.text("request"), b"\xff");
    assert_eq!((failure.code, failure.blame), ("json_not_utf8", "service"), "{failure}");
    let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
    let failure = objects::prepare(&order, b"{\"nonce\": \"x\"}").unwrap_err();
    assert!(failure.at.starts_with("/wallet"), "{failure}");
    let failure = objects::refund(b"{}", "elsewhere", &registry).unwrap_err();
    assert_eq!((failure.code, failure.expected.as_deref()), ("usage", Some("source or destination")));
    let failure = objects::redeem(b"{}", "source", "0xsecret", &registry).unwrap_err();
    assert!(!failure.to_string().contains("secret\""), "{failure}");
}
