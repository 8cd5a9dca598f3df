//! A wallet context that was stored is read by later versions of this library, and nothing in it is ignored.
use std::fmt::Debug;

use countersign::chains::UnixMillis;
use countersign::{
    Code, Context, CreateOrder, FAMILIES, Family, FundingPath, Key, Policy, Proposal, Refusal, Signed, Unsigned, Verified, bitcoin, evm,
    solana, starknet, sui, tron, verify,
};
use countersign_testkit::lines::accepted;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A family's context: as its constructor makes it, with every member set, and the members that have no default.
struct Row {
    family: &'static str,
    plain: Value,
    whole: Value,
    required: &'static [&'static str],
    /// Reads a context and writes it again.
    read: fn(&str) -> Result<Value, String>,
}

fn read<C: DeserializeOwned + Serialize>(text: &str) -> Result<Value, String> {
    let context: C = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(context).unwrap())
}

fn row<C: DeserializeOwned + Serialize + PartialEq + Debug>(
    family: &'static str,
    required: &'static [&'static str],
    plain: C,
    whole: C,
) -> Row {
    for context in [&plain, &whole] {
        let text = serde_json::to_string(context).unwrap();
        assert_eq!(serde_json::from_str::<C>(&text).unwrap(), *context, "{family}: {text}");
        assert!(text.starts_with(r#"{"version":1"#), "{family}: a later version must be recognized before its members: {text}");
    }
    let value = |context: &C| serde_json::to_value(context).unwrap();
    Row { family, plain: value(&plain), whole: value(&whole), required, read: read::<C> }
}

fn rows() -> Vec<Row> {
    let of_evm = evm::TxContext::eip1559(7, 30_000_000_000, 1_000_000_000);
    let whole_evm = of_evm.clone().with_approval(evm::ApprovalStep::Exact).with_allowance_reset();
    let whole_evm = whole_evm.with_chain_id(1).with_gas_limit(100_000).with_unmined(2);

    let plain_owner = evm::OwnerPath::from(FundingPath::SelfFunded(of_evm.clone()));
    let whole_owner = evm::OwnerPath::from(FundingPath::Both(whole_evm.clone())).with_code(Some(true));

    let of_tron =
        tron::TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_772_601_061_001), UnixMillis::from_millis(1_772_601_001_001));
    let key: tron::Address = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t".parse().unwrap();
    let permission = tron::Permission::new(2).with_keys(1, [(key, 1)]);
    let whole_tron = of_tron.clone().with_approval(tron::ApprovalStep::AlreadyApproved).with_allowance_reset();
    let whole_tron = whole_tron.with_chain_id(728_126_428).with_fee_limit(50_000_000).with_permission(permission);

    let felt = starknet::Felt::from;
    let bound = starknet::ResourceBound::new(1, 2);
    let of_starknet = starknet::TxContext::new(felt(7), starknet::ResourceBounds::new(bound, bound, bound));
    let whole_starknet = of_starknet.clone().with_tip(3).with_chain_id(felt(4)).with_public_key(felt(5));
    let whole_starknet = whole_starknet.with_approval(starknet::ApprovalStep::Exact).with_encoding(starknet::ExecutionEncoding::Legacy);
    let whole_starknet = whole_starknet.with_paymaster_data(vec![felt(6)]).with_account_deployment_data(vec![felt(8)]);
    let whole_starknet = whole_starknet.with_data_availability(starknet::DataAvailabilityMode::L2, starknet::DataAvailabilityMode::L2);
    let plain_path = starknet::KeyedPath::from(FundingPath::SelfFunded(of_starknet.clone()));
    let whole_path = starknet::KeyedPath::from(FundingPath::Both(whole_starknet.clone()));

    let hash = solana::solana_hash::Hash::new_from_array([7; 32]);
    let nonce = solana::DurableNonce::new(solana::Address::from([9; 32]), hash);
    let whole_solana = solana::TxContext::new().with_blockhash(hash).with_block_heights(7, 150).with_nonce(nonce);
    let whole_solana = whole_solana.with_priority_fee(solana::PriorityFee::new(5).with_limit(6));

    let coin = |byte| {
        let digest = sui::sui_sdk_types::Digest::new([byte; 32]);
        sui::sui_sdk_types::ObjectReference::new(sui::sui_sdk_types::Address::new([byte; 32]), 7, digest)
    };
    let valid = sui::balance::ValidDuring::from_epoch(900, sui::sui_sdk_types::Digest::new([1; 32]), 42);
    let of_sui = sui::TxContext::new(1_000, 5_000_000, Vec::new());
    let whole_sui = sui::TxContext::sponsored(sui::sui_sdk_types::Address::new([3; 32]), 1_000, 5_000_000, vec![coin(1), coin(2)]);
    let whole_sui = whole_sui.with_expiration_epoch(812).with_valid_during(valid);

    let script_pubkey = bitcoin::bitcoin::ScriptBuf::from_hex("0014751e76e8199196d454941c45d1b3a323f1433bd6").unwrap();
    let outpoint = format!("{}:1", "ab".repeat(32)).parse().unwrap();
    let output = bitcoin::bitcoin::TxOut { value: bitcoin::bitcoin::Amount::from_sat(50_000), script_pubkey };
    let coins = vec![bitcoin::Utxo::new(outpoint, output).unwrap()];
    let whole_bitcoin = bitcoin::TxContext::new(coins, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", bitcoin::FeeRate::from_whole(3));
    let whole_bitcoin = whole_bitcoin.with_selection(bitcoin::Selection::LowestFee).with_rate_from_nodes(true);
    let whole_bitcoin = whole_bitcoin.with_ordering(bitcoin::TxOrdering::Shuffled([5; 32])).with_replaceable(false);
    let whole_bitcoin = whole_bitcoin.with_change_rule(bitcoin::ChangeRule::BatchContract);
    let origin = "[d34db33f/86'/0'/0'/0/7]0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let whole_bitcoin = whole_bitcoin.with_origins([origin.parse().unwrap()]);

    vec![
        row("evm", &["nonce", "fees"], of_evm, whole_evm),
        row("evm's path", &["path"], plain_owner, whole_owner),
        row("tron", &["ref_block_bytes", "ref_block_hash", "expiration", "timestamp"], of_tron, whole_tron),
        row("starknet", &["nonce", "resource_bounds"], of_starknet, whole_starknet),
        row("starknet's path", &["path"], plain_path, whole_path),
        row("solana", &[], solana::TxContext::new(), whole_solana),
        row("sui", &["price", "budget"], of_sui, whole_sui),
        row("bitcoin", &[], bitcoin::TxContext::address_only(), whole_bitcoin),
    ]
}

fn members(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

/// Returns the pointers of all members, those of nested objects too.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let at = format!("{at}/{key}");
                pointers(value, &at, found);
                found.push(at);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| pointers(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// What an older version did not have yet has its default, and what has none is asked for by its name.
#[test]
fn every_optional_member_may_be_missing() {
    for Row { family, plain, whole, required, read } in rows() {
        for (key, value) in members(&whole) {
            let mut older = whole.clone();
            older.as_object_mut().unwrap().remove(key);
            let result = read(&older.to_string());
            if required.contains(&key.as_str()) {
                let error = result.expect_err(key);
                assert!(error.contains(&format!("missing field `{key}`")), "{family}: {error}");
                continue;
            }
            let mut expected = whole.clone();
            match plain.get(key) {
                Some(default) => {
                    assert!(default != value || key == "version" || key == "public_key", "{family}: {key} is not set in the whole context");
                    expected[key] = default.clone();
                }
                None => drop(expected.as_object_mut().unwrap().remove(key)),
            }
            assert_eq!(result.unwrap_or_else(|error| panic!("{family} {key}: {error}")), expected, "{family}: {key}");
        }
        let mut least = Map::new();
        least.extend(required.iter().map(|key| ((*key).to_owned(), plain[*key].clone())));
        assert_eq!(read(&Value::from(least).to_string()).unwrap(), plain, "{family}");
    }
}

#[test]
fn a_misspelt_member_is_refused_by_its_name() {
    for Row { family, whole, read, .. } in rows() {
        let mut found = Vec::new();
        pointers(&whole, "", &mut found);
        for at in found {
            let (parent, key) = at.rsplit_once('/').unwrap();
            let mut changed = whole.clone();
            let object = changed.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            let (misspelt, value) = (format!("{key}s"), object.remove(key).unwrap());
            object.insert(misspelt.clone(), value);
            let error = read(&changed.to_string()).expect_err(&at);
            // A coin of Sui is a type of Mysten's SDK, which has no optional member.
            let name = if at.starts_with("/payment/") { key } else { &misspelt };
            assert!(error.contains(&format!("`{name}`")), "{family} {at}: {error}");
        }
    }
}

#[test]
fn a_newer_version_is_refused_with_the_reason() {
    for Row { family, whole, read, .. } in rows() {
        // As a newer library writes it, with a member that this one does not know.
        let members = whole.to_string();
        let newer = format!(r#"{{"version":2,"novel":true,{}"#, members.trim_start_matches('{').replace(r#","version":1"#, ""));
        let error = read(&newer).expect_err(family);
        assert!(error.contains("has version 2") && error.contains("reads version 1: update it"), "{family}: {error}");
        for (version, reason) in [(json!(0), "no version 0"), (json!("1"), "invalid type"), (json!(1.5), "invalid type")] {
            let mut changed = whole.clone();
            changed["version"] = version;
            let error = read(&changed.to_string()).expect_err(family);
            assert!(error.contains(reason), "{family}: {error}");
        }
    }
}

fn orders() -> Vec<Verified> {
    let order = |family: &Family| {
        let case = accepted(*family).remove(0);
        let tree = case.tree();
        let text = |at: &str| tree.at(at).unwrap().text();
        let (request, response) = (CreateOrder::from_json(text("/request").as_bytes()).unwrap(), text("/response"));
        verify(Proposal::new(&request, response.as_bytes()), case.registry, &Policy::default()).unwrap()
    };
    FAMILIES.iter().map(order).collect()
}

fn contexts() -> Vec<Context> {
    let bounds = starknet::ResourceBounds::default();
    let coin =
        sui::sui_sdk_types::ObjectReference::new(sui::sui_sdk_types::Address::new([1; 32]), 7, sui::sui_sdk_types::Digest::new([2; 32]));
    vec![
        evm::TxContext::eip1559(7, 30, 1).into(),
        tron::TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_772_601_061_001), UnixMillis::from_millis(1_772_601_001_001)).into(),
        starknet::TxContext::new(starknet::Felt::ONE, bounds).into(),
        solana::TxContext::new().into(),
        sui::TxContext::new(1_000, 5_000_000, vec![coin]).into(),
        bitcoin::TxContext::address_only().into(),
    ]
}

/// What any family prepares is what the family itself prepares, and a context of another family prepares nothing.
#[test]
fn a_context_prepares_the_orders_of_its_family() {
    let digests = |unsigned: Result<Unsigned, Refusal>| {
        unsigned.map(|unsigned| unsigned.requests().into_iter().map(|request| request.digest).collect::<Vec<_>>())
    };
    let (orders, contexts) = (orders(), contexts());
    for order in &orders {
        for context in contexts.iter().cloned().chain(Context::gasless(order.family())) {
            let own = match (order, context.clone()) {
                (Verified::Evm(order), Context::Evm(context)) => order.prepare(context).map(Unsigned::from),
                (Verified::Tron(order), Context::Tron(context)) => order.prepare(context).map(Unsigned::from),
                (Verified::Starknet(order), Context::Starknet(context)) => order.prepare(context).map(Unsigned::from),
                (Verified::Solana(order), Context::Solana(context)) => order.prepare(context).map(Unsigned::from),
                (Verified::Sui(order), Context::Sui(context)) => order.prepare(context).map(Unsigned::from),
                (Verified::Bitcoin(order), Context::Bitcoin(context)) => order.prepare(context).map(Unsigned::from),
                (order, context) => {
                    let refusal = order.prepare(&context).expect_err("a context of another family");
                    assert_eq!((refusal.code(), refusal.location()), (Code::WalletChainMismatch, ""), "{refusal}");
                    let [expected, actual] = [refusal.expected(), refusal.actual()].map(|value| value.unwrap().to_string());
                    assert_eq!((expected, actual), (order.family().to_string(), context.family().to_string()));
                    continue;
                }
            };
            assert!(own.is_ok() || context == Context::gasless(order.family()).unwrap(), "{context:?}: {own:?}");
            assert_eq!(digests(order.prepare(&context)), digests(own), "{context:?}");
        }
    }
    let gasless: Vec<_> = Family::ALL.iter().filter_map(|family| Context::gasless(*family)).map(|context| context.family()).collect();
    assert_eq!(gasless, [Family::Evm, Family::Tron, Family::Starknet, Family::Solana]);
}

#[test]
fn a_context_of_any_family_is_stored_under_its_name() {
    for context in contexts().into_iter().chain(FAMILIES.iter().filter_map(|family| Context::gasless(*family))) {
        let text = serde_json::to_string(&context).unwrap();
        assert!(text.starts_with(&format!("{{\"{}\":", context.family().name())), "{text}");
        assert_eq!(serde_json::from_str::<Context>(&text).unwrap(), context, "{text}");
    }
}

/// Each family says in which text nodes take its transactions: what is signed is not changed, only written.
#[test]
fn signed_transactions_are_broadcast_in_the_text_that_nodes_take() {
    let mut sent = 0;
    // Another wallet pays the address of Bitcoin.
    let families = FAMILIES.iter().zip(orders().into_iter().zip(contexts())).filter(|(family, _)| **family != Family::Bitcoin);
    for (family, (order, context)) in families {
        let key = Key::parse(*family, &accepted(*family).remove(0).secret_key().unwrap()).unwrap();
        let mut unsigned = order.prepare(&context).unwrap();
        unsigned.sign(&key).unwrap();
        let signed = unsigned.finish().unwrap();
        for (broadcast, transaction) in signed.broadcasts().into_iter().zip(signed.transactions()) {
            let hex = hex::encode(&transaction.bytes);
            let payload = match &signed {
                Signed::Evm(_) => format!("0x{hex}"),
                Signed::Starknet(_) => String::from_utf8(transaction.bytes).unwrap(),
                Signed::Sui(order) => {
                    let execution = order.payloads().execution();
                    json!({ "tx_bytes": execution.tx_bytes, "signatures": execution.signatures }).to_string()
                }
                _ => hex,
            };
            let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| text.into());
            assert_eq!(value(&broadcast.payload), value(&payload), "{family}");
            assert_eq!((broadcast.role, broadcast.id, broadcast.chain.as_str()), (transaction.role, transaction.id, order.chain()));
            assert!(broadcast.spends.is_empty(), "{family}");
            sent += 1;
        }
    }
    assert!(sent >= 5, "{sent}");

    let previous_output = format!("{}:1", "ab".repeat(32));
    let input = bitcoin::bitcoin::TxIn { previous_output: previous_output.parse().unwrap(), ..Default::default() };
    let transaction = bitcoin::bitcoin::Transaction {
        version: bitcoin::bitcoin::transaction::Version::TWO,
        lock_time: bitcoin::bitcoin::absolute::LockTime::ZERO,
        input: vec![input],
        output: Vec::new(),
    };
    assert_eq!(<bitcoin::SignedPayment as countersign::family::Signed>::spends(&transaction), [previous_output]);
}
