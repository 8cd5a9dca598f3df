//! Permissions of an account: an active one, and several keys. The transactions of `fixtures/chain/tron.json` are TronWeb's.

mod recoveries;

use std::time::Duration;

use alloy_primitives::{B256, hex};
use countersign_core::{Code, Refusal, Role};
use countersign_testkit::{Case, TestResult, artefacts, attach, fixture, key, project, verified, wallet};
use countersign_tron::prost::Message as _;
use countersign_tron::{Address, FundingPath, Key, Permission, SignedTronTransaction, Tron, TronTransaction, TxContext, UnsignedOrder};
use serde_json::{Value as Json, json};

const TWO_KEYS: &str = "tron-permission-two-keys";

/// An order whose calls several keys have signed with TronWeb: the keys, and the transactions by role.
struct Signed {
    case: Case,
    keys: Vec<Key>,
    transactions: Vec<(Role, Json)>,
}

fn orders() -> Vec<Signed> {
    let text = std::fs::read(project().join("fixtures/chain/tron.json")).expect("the file");
    let file: Json = serde_json::from_slice(&text).expect("JSON");
    let orders = file["orders"].as_array().expect("orders");
    let read = |order: &Json| {
        let keys = order["keys"].as_array().expect("keys").iter().map(|key| key.as_str().expect("text").parse().expect("a key"));
        let transactions = [("approval", Role::Approval), ("initiate", Role::Initiate)].into_iter();
        Signed {
            case: fixture::<Tron>(order["case"].as_str().expect("an id")),
            keys: keys.collect(),
            transactions: transactions.filter_map(|(name, role)| Some((role, order["transactions"].get(name)?.clone()))).collect(),
        }
    };
    orders.iter().map(read).collect()
}

fn two_keys() -> Signed {
    orders().into_iter().find(|order| order.case.id == TWO_KEYS).expect("the case")
}

fn calls(case: &Case) -> TxContext {
    let FundingPath::Both(calls) = wallet::<Tron>(case) else { panic!("the contract prepares both") };
    calls
}

fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Tron>(case).prepare(calls(case)).expect(&case.id)
}

fn signatures(transaction: &Json) -> Vec<String> {
    let list = transaction["signature"].as_array().expect("signatures");
    list.iter().map(|text| text.as_str().expect("text").to_owned()).collect()
}

fn address(key: &Key) -> String {
    Address::from(key.address()).to_string()
}

/// The transaction with other signatures, as text.
fn with(transaction: &Json, signatures: &[&str]) -> Vec<u8> {
    let mut transaction = transaction.clone();
    transaction["signature"] = json!(signatures);
    transaction.to_string().into_bytes()
}

fn found(refusal: &Refusal) -> (Code, &str) {
    (refusal.code(), refusal.location())
}

#[test]
fn signatures_are_attached_one_by_one() -> TestResult {
    for order in orders() {
        let mut unsigned = prepared(&order.case);
        for (role, transaction) in &order.transactions {
            let id = role.to_string().parse()?;
            let request = unsigned.requests().into_iter().find(|request| request.id == id).ok_or("no request")?;
            assert_eq!(transaction["raw_data_hex"].as_str(), Some(&*hex::encode(&request.message)), "{}", order.case.id);
            for (key, signature) in order.keys.iter().zip(signatures(transaction)) {
                assert!(unsigned.missing().contains(&id), "{}: complete too early", order.case.id);
                let request = unsigned.requests().into_iter().find(|request| request.id == id).ok_or("no request")?;
                assert!(request.signer.contains(&address(key)), "{}", request.signer);
                unsigned.attach_text(id, &signature)?;
            }
            assert!(!unsigned.missing().contains(&id), "{}: not complete", order.case.id);
            // The owner's key, which signs nothing of this, is not named for it.
            let request = unsigned.requests().into_iter().find(|request| request.id == id).ok_or("no request")?;
            let signed_by: Vec<_> = order.keys.iter().map(address).collect();
            assert_eq!(request.signer, signed_by.join(" and "), "{}", order.case.id);
        }
        let kept = unsigned.signatures();
        let mut after = prepared(&order.case);
        for (id, text) in &kept {
            after.attach_text(*id, text)?;
        }
        assert_eq!(artefacts(&after), artefacts(&unsigned), "a restart keeps them");
        if !unsigned.missing().is_empty() {
            continue; // the gasless message
        }
        let signed = unsigned.finish()?;
        for (sent, (role, transaction)) in signed.transactions().iter().zip(&order.transactions) {
            assert_eq!((sent.role, &json!(sent.id)), (*role, &transaction["txID"]));
            let broadcast = sent.native.broadcast_json();
            assert_eq!(
                broadcast["raw_data"]["contract"][0].get("Permission_id"),
                transaction["raw_data"]["contract"][0].get("Permission_id")
            );
            assert_eq!(signatures(&broadcast), signatures(transaction).iter().map(|text| text.to_lowercase()).collect::<Vec<_>>());
            assert_eq!(SignedTronTransaction::from_bytes(&sent.bytes)?, sent.native);
            assert_eq!(SignedTronTransaction::from_json(broadcast.to_string().as_bytes())?.broadcast_bytes(), sent.bytes);
        }
    }
    Ok(())
}

#[test]
fn local_keys_sign_as_tronweb_does() -> TestResult {
    for order in orders() {
        let mut unsigned = prepared(&order.case);
        for key in order.keys.iter().chain(&order.keys) {
            unsigned.sign(key)?;
        }
        let wanted = artefacts(&unsigned);
        for (role, transaction) in &order.transactions {
            let signed = &wanted[role.to_string().as_str()];
            let shown = if order.keys.len() > 1 { signed["signatures"].clone() } else { json!([signed["signature"]]) };
            let lower: Vec<_> = signatures(transaction).iter().map(|text| text.to_lowercase()).collect();
            assert_eq!(shown, json!(lower), "{}", order.case.id);
        }
        let mut fresh = prepared(&order.case);
        let stranger = Key::from_bytes(&[1; 32])?;
        assert_eq!(fresh.sign(&stranger).expect_err("a stranger").code(), Code::KeyMismatch);
        assert_eq!(fresh.signatures(), []);
    }
    Ok(())
}

#[test]
fn the_next_signer_returns_the_signatures_of_those_before_it() -> TestResult {
    let order = two_keys();
    for (role, transaction) in &order.transactions {
        let (id, given) = (role.to_string().parse()?, signatures(transaction));
        let [first, second] = [given[0].as_str(), given[1].as_str()];
        let mut unsigned = prepared(&order.case);
        assert_eq!(unsigned.attach_transaction(&with(transaction, &[first]))?, [id]);
        assert!(unsigned.missing().contains(&id));
        assert_eq!(unsigned.attach_transaction(&with(transaction, &[first]))?, [], "it was there already");
        assert_eq!(unsigned.attach_transaction(&with(transaction, &[first, second]))?, [id]);
        assert!(!unsigned.missing().contains(&id));
        // In any order, and without the parity.
        let mut other = prepared(&order.case);
        assert_eq!(other.attach_transaction(&with(transaction, &[&second[..128], first]))?, [id, id]);
        assert!(!other.missing().contains(&id));
    }
    Ok(())
}

#[test]
fn a_key_counts_once_and_only_if_it_is_named() -> TestResult {
    let order = two_keys();
    let (_, transaction) = &order.transactions[1];
    let id = "initiate".parse()?;
    let given = signatures(transaction);
    let [first, second] = [given[0].as_str(), given[1].as_str()];
    let mut unsigned = prepared(&order.case);
    let twice = unsigned.attach_transaction(&with(transaction, &[first, first])).expect_err("twice");
    assert_eq!(found(&twice), (Code::SignatureMismatch, "/signature/1"));
    assert_eq!(twice.actual().map(ToString::to_string), Some(address(&order.keys[0])));
    // The other parity, and s in the other half: another text, but the same key.
    let twice = unsigned.attach_transaction(&with(transaction, &[first, &first[..128]])).expect_err("twice");
    assert_eq!(found(&twice), (Code::SignatureMismatch, "/signature/1"));
    assert_eq!(unsigned.signatures(), [], "a refused transaction changes nothing");
    assert!(twice.reason().contains("counts once") && twice.blame() == countersign_core::Blame::Caller, "{twice}");
    for text in [first, first, &first[..128]] {
        unsigned.attach_text(id, text)?;
        assert!(unsigned.signatures().len() == 1 && unsigned.missing().contains(&id), "{text}");
    }

    let digest: B256 = B256::from_slice(&hex::decode(transaction["txID"].as_str().ok_or("no id")?)?);
    let stranger = Key::from_bytes(&[1; 32])?;
    let refusal = unsigned.attach_text(id, &hex::encode(stranger.sign(&digest)?.as_bytes())).expect_err("not named");
    let text = refusal.to_string();
    assert_eq!(refusal.code(), Code::SignatureMismatch);
    assert!(text.contains(&address(&stranger)) && order.keys.iter().all(|key| text.contains(&address(key))), "{text}");
    // A named key that signed another payload of the order.
    let approval = signatures(&order.transactions[0].1);
    let refusal = unsigned.attach_text(id, &approval[1]).expect_err("of the approval");
    assert!(refusal.reason().contains("approval"), "{refusal}");
    // The gasless message is the owner's.
    let mut both = verified::<Tron>(&order.case).prepare(wallet::<Tron>(&order.case))?;
    let message = both.requests().into_iter().find(|request| request.id == countersign_core::RequestId::TypedData).ok_or("none")?;
    let by_named = order.keys[0].sign(&B256::from_slice(&message.digest))?;
    let refusal = both.attach_text(message.id, &hex::encode(by_named.as_bytes())).expect_err("not the owner's");
    assert_eq!(refusal.code(), Code::SignatureMismatch);
    both.sign(&order.keys[0])?;
    assert_eq!(both.missing(), ["approval".parse()?, id, message.id]);
    unsigned.attach_text(id, second)?;
    assert!(!unsigned.missing().contains(&id));
    Ok(())
}

/// An array of signatures is attached as a whole: what was there is passed over, and of a refused one nothing stays.
#[test]
fn several_signatures_are_attached_together_or_not_at_all() -> TestResult {
    let order = two_keys();
    let (_, transaction) = &order.transactions[1];
    let id = "initiate".parse()?;
    let given = signatures(transaction);
    let [first, second] = [given[0].as_str(), given[1].as_str()];
    let digest = B256::from_slice(&hex::decode(transaction["txID"].as_str().ok_or("no id")?)?);
    let stranger = hex::encode(Key::from_bytes(&[1; 32])?.sign(&digest)?.as_bytes());
    let mut unsigned = prepared(&order.case);
    for (list, at) in [
        (json!([first, stranger]), "/signatures/initiate/1"),
        (json!([first, second, first]), "/signatures/initiate/2"),
        (json!([first, &first[..128]]), "/signatures/initiate/1"),
        (json!([stranger]), "/signatures/initiate/0"),
        (json!(stranger), "/signatures/initiate"),
    ] {
        let refusal = attach(&mut unsigned, &json!({ "initiate": list })).expect_err("refused");
        assert_eq!(found(&refusal), (Code::SignatureMismatch, at));
        assert_eq!(unsigned.signatures(), [], "nothing stays");
    }
    attach(&mut unsigned, &json!({ "initiate": first }))?;
    attach(&mut unsigned, &json!({ "initiate": [first, second] }))?;
    assert!(!unsigned.missing().contains(&id));
    assert_eq!(signatures(&json!({ "signature": artefacts(&unsigned)["initiate"]["signatures"] })).len(), 2);
    // Where the account's own key signs, there is one signature.
    let mut own = verified::<Tron>(&order.case).prepare(wallet::<Tron>(&order.case))?;
    let refusal = attach(&mut own, &json!({ "typed_data": [first, second] })).expect_err("two");
    assert_eq!(found(&refusal), (Code::SignatureCount, "/signatures/typed_data"));
    Ok(())
}

/// A refusal names every key that could have signed, and a public key beside the signature for what it is.
#[test]
fn a_public_key_of_nobody_is_refused_by_name() -> TestResult {
    let order = two_keys();
    let mut unsigned = prepared(&order.case);
    let signature = &signatures(&order.transactions[1].1)[0];
    let public = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"; // the generator: the key 1
    let text = json!({ "signature": signature, "public_key": public }).to_string();
    let refusal = unsigned.attach_text("initiate".parse()?, &text).expect_err("another public key");
    assert_eq!(refusal.code(), Code::KeyMismatch);
    assert_eq!(refusal.reason(), "the public key beside the signature is not the signer's");
    let expected = refusal.expected().map(ToString::to_string).unwrap_or_default();
    assert!(order.keys.iter().all(|key| expected.contains(&address(key))), "{expected}");
    Ok(())
}

#[test]
fn protobuf_is_never_read_as_json() -> TestResult {
    let order = two_keys();
    let mut unsigned = prepared(&order.case);
    // `raw_data` of 123 bytes: the tag is a line feed, and the length an opening brace.
    let refusal = unsigned.attach_transaction(&[&[0x0a, b'{'][..], &[0; 123]].concat()).expect_err("no transaction");
    assert_eq!(found(&refusal), (Code::TransactionMismatch, ""));
    assert!(refusal.reason().contains("canonical bytes"), "{refusal}");
    let (_, transaction) = &order.transactions[1];
    let json = with(transaction, &[&signatures(transaction)[0]]);
    assert_eq!(unsigned.attach_transaction(&[b" \r\n", &json[..]].concat())?, ["initiate".parse()?]);
    Ok(())
}

#[test]
fn another_permission_than_the_prepared_one_is_refused_by_name() -> TestResult {
    let order = two_keys();
    let (_, transaction) = &order.transactions[1];
    let given = signatures(transaction);
    let at = "/raw_data/contract/0/Permission_id";
    let order_of = verified::<Tron>(&order.case);
    let mut without = calls(&order.case);
    without.permission = None;
    let mut unsigned = order_of.prepare(without)?;
    let refusal = unsigned.attach_transaction(&with(transaction, &[&given[0]])).expect_err("permission 2");
    assert_eq!(found(&refusal), (Code::TransactionMismatch, at));
    let refusal = unsigned.attach_transaction(&with(transaction, &[&given[0], &given[1]])).expect_err("two signatures");
    assert_eq!(found(&refusal), (Code::TransactionMismatch, "/signature"));
    assert!(refusal.reason().contains("permission"), "{refusal}");
    let mut other = calls(&order.case);
    if let Some(permission) = &mut other.permission {
        permission.id = 3;
    }
    let mut unsigned = order_of.prepare(other)?;
    let refusal = unsigned.attach_transaction(&with(transaction, &[&given[0], &given[1]])).expect_err("permission 2");
    assert_eq!(found(&refusal), (Code::TransactionMismatch, at));
    Ok(())
}

#[test]
fn a_permission_has_keys_that_reach_its_threshold() {
    let case = fixture::<Tron>("tron-permission-own-key");
    let order = verified::<Tron>(&case);
    let keys = |count: u8| (1..=count).map(|byte| (Address::from([byte; 20]), 1));
    let prepare = |permission| order.prepare(calls(&case).with_permission(permission));
    let twice = [(Address::from([1; 20]), 1), (Address::from([1; 20]), 1)];
    let mut own = Permission::new(2);
    own.threshold = 2;
    for (permission, at) in [
        (Permission::new(1), "/permission_id"),
        (Permission::new(255), "/permission_id"),
        (Permission::new(2).with_keys(1, keys(6)), "/permission/keys"),
        (Permission::new(2).with_keys(1, twice), "/permission/keys/1/address"),
        (Permission::new(2).with_keys(3, keys(2)), "/permission/threshold"),
        (Permission::new(2).with_keys(0, keys(2)), "/permission/threshold"),
        (own, "/permission/threshold"),
    ] {
        let refusal = prepare(permission.clone()).map(|_| ()).expect_err("no permission");
        assert_eq!(found(&refusal), (Code::WrongType, at), "{permission:?}");
    }
    // The bit of each operation is its number: 30 creates contracts, 31 calls them, 32 is none.
    let allows = |operation: usize| {
        let mut operations = [0; 32];
        operations[operation / 8] = 1 << (operation % 8);
        Permission::allows_calls(&operations)
    };
    assert_eq!((0..256).filter(|operation| allows(*operation)).collect::<Vec<_>>(), [31]);
    let heavy = [(Address::from([1; 20]), u64::MAX), (Address::from([2; 20]), u64::MAX)];
    for permission in [Permission::new(9).with_keys(5, keys(5)), Permission::new(0).with_keys(u64::MAX, heavy), Permission::new(0)] {
        assert!(prepare(permission).is_ok());
    }
}

#[test]
fn who_has_to_sign_is_shown() {
    let shown = |case: &str| prepared(&fixture::<Tron>(case)).summary().to_string();
    assert!(!shown("tron-token-approval-exact").contains("permission"));
    assert!(shown("tron-permission-own-key").contains("signed under permission 2 by the sender's own key"));
    let order = two_keys();
    let text = shown(TWO_KEYS);
    assert!(text.contains("signed under permission 2 with a weight of 3 by ") && text.contains("1 TRX"), "{text}");
    assert!(text.contains(&format!("{} (weight 1)", address(&order.keys[0]))), "{text}");
    assert!(text.contains(&format!("{} (weight 2)", address(&order.keys[1]))), "{text}");
}

#[test]
fn a_transaction_of_a_permission_is_the_orders_with_a_warning() -> TestResult {
    for order in orders() {
        let verified = verified::<Tron>(&order.case);
        for (role, transaction) in &order.transactions {
            let signed = SignedTronTransaction::from_json(transaction.to_string().as_bytes())?;
            let (matched, warnings) = verified.match_with_warnings(&signed)?;
            assert_eq!(matched, *role, "{}", order.case.id);
            let [warning] = warnings.list() else { panic!("{}: one warning", order.case.id) };
            assert_eq!(warning.code(), Code::SignatureUnverified);
            let text = warning.to_string();
            let alone = verified.matches(&signed).expect_err("nobody would read who signed");
            assert_eq!(alone.code(), Code::TransactionMismatch, "{alone}");
            assert!(alone.reason().contains(&text) && alone.reason().contains("match it with warnings"), "{alone}");
            assert!(order.keys.iter().all(|key| text.contains(&address(key))) && text.contains("the chain decides"), "{text}");
            let id = calls(&order.case).permission.map_or(0, |permission| permission.id);
            assert!(text.contains(&if id == 0 { "the owner permission".to_owned() } else { format!("permission {id}") }), "{text}");
        }
    }
    Ok(())
}

#[test]
fn what_else_a_permission_signs_is_refused() -> TestResult {
    let order = two_keys();
    let verified = verified::<Tron>(&order.case);
    let signed = SignedTronTransaction::from_json(order.transactions[1].1.to_string().as_bytes())?;
    let changed = |change: &dyn Fn(&mut countersign_tron::transaction::protocol::Raw)| {
        let mut raw = signed.transaction().raw.clone();
        change(&mut raw);
        let transaction = TronTransaction::decode(&raw.encode_to_vec()).expect("canonical");
        let signatures: Vec<_> = order.keys.iter().map(|key| key.sign(&transaction.tx_id).expect("signs").as_bytes()).collect();
        let mut json = transaction.to_json();
        json["signature"] = signatures.iter().map(hex::encode).collect();
        let signed = SignedTronTransaction::from_json(json.to_string().as_bytes()).expect("signed");
        let matched = verified.match_with_warnings(&signed).map(|(role, _)| role);
        matched.map_err(|refusal| (refusal.code(), refusal.location().split('#').next().unwrap_or_default().to_owned()))
    };
    assert_eq!(changed(&|_| {}), Ok(Role::Initiate));
    assert_eq!(changed(&|raw| raw.contract[0].permission_id = 9), Ok(Role::Initiate));
    assert_eq!(changed(&|raw| raw.contract[0].permission_id = 0), Ok(Role::Initiate));
    let refused = |at: &str| Err((Code::TransactionMismatch, at.to_owned()));
    for id in [1, 10, -1, 258, i32::MIN] {
        assert_eq!(changed(&|raw| raw.contract[0].permission_id = id), refused("/raw_data/contract/0/Permission_id"), "{id}");
    }
    assert_eq!(changed(&|raw| raw.data = b"memo".to_vec()), refused("/raw_data"));
    assert_eq!(changed(&|raw| raw.contract[0].provider = vec![1]), refused("/raw_data"));
    assert_eq!(changed(&|raw| raw.fee_limit = 0), refused("/raw_data/fee_limit"));
    let trigger = |change: &dyn Fn(&mut countersign_tron::transaction::protocol::TriggerSmartContract)| {
        changed(&|raw| {
            let mut trigger = signed.transaction().trigger.clone();
            change(&mut trigger);
            raw.contract[0].parameter = trigger.to_contract().parameter;
        })
    };
    assert_eq!(trigger(&|trigger| trigger.owner_address[20] ^= 1), refused("/raw_data/contract/owner_address"));
    assert_eq!(trigger(&|trigger| trigger.contract_address[20] ^= 1), refused("/raw_data/contract/contract_address"));
    assert_eq!(trigger(&|trigger| trigger.data[40] ^= 1), refused("/raw_data/contract/data"));
    assert_eq!(trigger(&|trigger| trigger.call_token_value = 1), refused("/raw_data"));
    Ok(())
}

#[test]
fn one_key_signs_a_transaction_once() -> TestResult {
    let order = two_keys();
    let (_, transaction) = &order.transactions[1];
    let given = signatures(transaction);
    let read = |signatures: &[&str]| SignedTronTransaction::from_json(&with(transaction, signatures));
    let refusal = read(&[&given[0], &given[0]]).expect_err("twice");
    assert_eq!(found(&refusal), (Code::TransactionMismatch, "/signature"));
    assert!(refusal.reason().contains("signed twice"), "{refusal}");
    assert_eq!(
        found(&read(&[&given[0], &format!("{}1b", "00".repeat(64))]).expect_err("nobody's")),
        (Code::TransactionMismatch, "/signature")
    );
    assert_eq!(found(&read(&[&given[0], "00"]).expect_err("short")), (Code::SignatureMalformed, "/signature/1"));
    assert_eq!(found(&read(&[given[0].as_str(); 6]).expect_err("six")), (Code::TransactionMismatch, "/signature"));
    assert_eq!(read(&[&given[0], &given[1]])?.signatures().count(), 2);
    Ok(())
}

#[test]
fn the_owners_own_key_signs_under_an_active_permission() {
    let case = fixture::<Tron>("tron-permission-own-key");
    let mut unsigned = prepared(&case);
    unsigned.sign(&key::<Tron>(&case)).expect("signs");
    let signed = unsigned.finish().expect("complete").transactions();
    assert!(signed.iter().all(|call| call.native.transaction().raw.contract[0].permission_id == 2));
}

/// DER as OpenSSL writes it says no parity. The owner's own key is known, so that the parity is found; another key's is not guessed.
#[test]
fn a_signature_without_a_parity_is_proven_or_refused() -> TestResult {
    fn integer(bytes: &[u8]) -> Vec<u8> {
        let rest = &bytes[bytes.iter().position(|byte| *byte != 0).expect("not zero")..];
        let number = if rest[0] < 0x80 { rest.to_vec() } else { [&[0], rest].concat() };
        [&[2, u8::try_from(number.len()).expect("short")], number.as_slice()].concat()
    }
    let mut parities = std::collections::BTreeSet::new();
    for order in orders() {
        for (_, transaction) in &order.transactions {
            let given = signatures(transaction);
            let whole: Vec<_> = given.iter().map(String::as_str).collect();
            let bytes = hex::decode(whole[0])?;
            let body = [integer(&bytes[..32]), integer(&bytes[32..64])].concat();
            let der = hex::encode([&[0x30, u8::try_from(body.len())?], body.as_slice()].concat());
            let with_der: Vec<_> = [der.as_str()].into_iter().chain(whole[1..].iter().copied()).collect();
            let expected = SignedTronTransaction::from_json(&with(transaction, &whole))?;
            let read = SignedTronTransaction::from_json(&with(transaction, &with_der));
            let owner = verified::<Tron>(&order.case).deposit().sender;
            if expected.signer() == Some(owner) {
                parities.insert(bytes[64]);
                assert_eq!(read?, expected, "{}", order.case.id);
            } else {
                assert_eq!(found(&read.expect_err("not known")), (Code::SignatureMalformed, "/signature/0"), "{}", order.case.id);
            }
        }
    }
    // TronWeb's transactions of the fixtures, and enough of our own for both parities.
    let case = fixture::<Tron>("tron-native-typed-data-null");
    let owner = key::<Tron>(&case);
    for minute in 1..=20 {
        let base = calls(&case);
        let times = TxContext::new(
            base.ref_block_bytes,
            base.ref_block_hash,
            base.timestamp.saturating_add(Duration::from_mins(minute)),
            base.timestamp,
        );
        let mut unsigned = verified::<Tron>(&case).prepare(times)?;
        unsigned.sign(&owner)?;
        let signed = unsigned.finish()?.transactions()[0].native.clone();
        let bytes = signed.signature().as_bytes();
        let body = [integer(&bytes[..32]), integer(&bytes[32..64])].concat();
        let der = hex::encode([&[0x30, u8::try_from(body.len())?], body.as_slice()].concat());
        let transaction = signed.broadcast_json();
        assert_eq!(SignedTronTransaction::from_json(&with(&transaction, &[&der]))?, signed);
        parities.insert(bytes[64]);
    }
    assert_eq!(parities.into_iter().collect::<Vec<_>>(), [27, 28]);
    Ok(())
}
