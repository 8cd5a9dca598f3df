//! Tests the JSON-RPC interface as wallets and libraries use it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_sandbox::accounts::{self, SOLVER, USER};
use countersign_sandbox::chains::Engine;
use countersign_sandbox::chains::solana::{Solana, Subscriptions, signature_result};
use countersign_sandbox::clock::Clock;
use countersign_sandbox::http::Request;
use serde_json::{Value, json};
use solana_address::Address;
use solana_instruction::{AccountMeta, Instruction};
use solana_keypair::Keypair;
use solana_message::v1::{self, TransactionConfig};
use solana_message::{Message, VersionedMessage, v0};
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use super::scene::{ROLES, SOL, USDC, address, ask, call, post, token_account};

fn cluster() -> Solana {
    let mut solana = Solana::new("solana", "mainnet", Arc::new(Clock::default()));
    solana.fund(&address(USER), "solana:sol", SOL).unwrap();
    solana
}

/// Returns a signed transfer by the user.
fn transfer(solana: &mut Solana, to: Address, lamports: u64, commitment: &str) -> VersionedMessage {
    let newest = ask(solana, "getLatestBlockhash", json!([{"commitment": commitment}]));
    let blockhash = newest["value"]["blockhash"].as_str().unwrap().parse().unwrap();
    let user = Keypair::new_from_array(accounts::key(USER)).pubkey();
    let data = [&[2, 0, 0, 0], lamports.to_le_bytes().as_slice()].concat();
    let accounts = vec![AccountMeta::new(user, true), AccountMeta::new(to, false)];
    let instruction = Instruction { program_id: Address::default(), accounts, data };
    VersionedMessage::Legacy(Message::new_with_blockhash(&[instruction], Some(&user), &blockhash))
}

fn signed(message: VersionedMessage) -> String {
    let user = Keypair::new_from_array(accounts::key(USER));
    STANDARD.encode(wincode::serialize(&VersionedTransaction::try_new(message, &[user]).unwrap()).unwrap())
}

#[test]
fn a_payment_is_sent_and_confirmed_as_libraries_do_it() {
    let (mut solana, to) = (cluster(), Address::from([7; 32]));
    let message = transfer(&mut solana, to, 1_000_000, "finalized");
    let transaction = signed(message);
    let simulated = ask(
        &mut solana,
        "simulateTransaction",
        json!([transaction, {"encoding": "base64", "sigVerify": true,
        "accounts": {"encoding": "base64", "addresses": [to.to_string()]}}]),
    );
    assert_eq!((&simulated["value"]["err"], &simulated["value"]["accounts"][0]["lamports"]), (&Value::Null, &json!(1_000_000)));

    let mut subscriptions = Subscriptions::default();
    let id = ask(&mut solana, "sendTransaction", json!([transaction, {"encoding": "base64"}]));
    let id = id.as_str().unwrap();
    assert_eq!(ask(&mut solana, "sendTransaction", json!([transaction, {"encoding": "base64"}])), id, "twice");
    assert_eq!(solana.pending(), 1);
    let status = |solana: &mut Solana| ask(solana, "getSignatureStatuses", json!([[id]]))["value"][0].clone();
    assert!(status(&mut solana).is_null());
    let subscribe = |commitment: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "signatureSubscribe", "params": [id, {"commitment": commitment}]}).to_string()
    };
    let subscribed = json!({"jsonrpc": "2.0", "id": 1, "result": 0}).to_string();
    assert_eq!(subscriptions.receive(&subscribe("confirmed")), Some(subscribed));
    assert_eq!(subscriptions.receive(r#"{"jsonrpc":"2.0","method":"ping"}"#), None);
    assert_eq!(subscriptions.poll(&mut solana), Vec::<String>::new());
    let expected =
        [("processed", json!(0)), ("confirmed", json!(1)), ("confirmed", json!(2)), ("confirmed", json!(3)), ("finalized", Value::Null)];
    for (mark, confirmations) in expected {
        solana.mine(1);
        let status = status(&mut solana);
        assert_eq!((&status["confirmationStatus"], &status["confirmations"]), (&json!(mark), &confirmations));
        assert_eq!((&status["err"], &status["status"]), (&Value::Null, &json!({"Ok": null})));
        assert_eq!(signature_result(&mut solana, id, "finalized").is_some(), mark == "finalized");
        let balance =
            |solana: &mut Solana, at: &str| ask(solana, "getBalance", json!([to.to_string(), {"commitment": at}]))["value"].clone();
        assert_eq!(balance(&mut solana, "processed"), 1_000_000);
        assert_eq!(balance(&mut solana, "finalized"), if mark == "finalized" { 1_000_000 } else { 0 });
        let told = subscriptions.poll(&mut solana);
        assert_eq!(told.len(), usize::from(confirmations == 1), "{mark}: once");
        assert!(told.iter().all(|frame| frame.contains(r#""value":{"err":null}"#)));
    }
    // The same transaction is sent again. The call is the one that explorers make.
    let again = call(&mut solana, "sendTransaction", json!([transaction, {"encoding": "base64"}]));
    assert_eq!(again["error"]["code"], -32_002);
    assert_eq!(again["error"]["message"], "Transaction simulation failed: This transaction has already been processed");
    assert_eq!(again["error"]["data"]["err"], "AlreadyProcessed");
    assert_eq!(ask(&mut solana, "sendTransaction", json!([transaction, {"encoding": "base64", "skipPreflight": true}])), id);
    let shown = ask(&mut solana, "getTransaction", json!([id]));
    assert_eq!(shown["transaction"]["message"]["accountKeys"][0], address(USER));
    assert_eq!(shown["meta"]["preBalances"], json!([1_000_000_000, 0, 1]));
    assert_eq!(shown["meta"]["postBalances"], json!([998_995_000, 1_000_000, 1]));
    assert_eq!(shown["meta"]["fee"], 5_000);
    let parsed = ask(&mut solana, "getTransaction", json!([id, {"encoding": "jsonParsed", "maxSupportedTransactionVersion": 0}]));
    assert_eq!((&parsed["version"], &parsed["transaction"]["message"]["accountKeys"][0]["signer"]), (&json!("legacy"), &json!(true)));
    let listed = ask(&mut solana, "getSignaturesForAddress", json!([to.to_string(), {"limit": 10}]));
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["signature"]), (1, &json!(id)));
    let older = ask(&mut solana, "getSignaturesForAddress", json!([to.to_string(), {"before": id}]));
    assert_eq!(older, json!([]));
}

#[test]
fn blockhashes_expire_after_150_blocks() {
    let (clock, to) = (Arc::new(Clock::default()), Address::from([7; 32]));
    let mut solana = Solana::new("solana", "mainnet", Arc::clone(&clock));
    solana.fund(&address(USER), "solana:sol", SOL).unwrap();
    let (early, late) = (transfer(&mut solana, to, 1_000_000, "processed"), transfer(&mut solana, to, 1_000_001, "processed"));
    let hash = early.recent_blockhash().to_string();
    let height = |solana: &mut Solana| ask(solana, "getBlockHeight", json!([{"commitment": "processed"}])).as_u64().unwrap();
    let last = height(&mut solana) + 150;
    let newest = ask(&mut solana, "getLatestBlockhash", json!([{"commitment": "processed"}]));
    assert_eq!((&newest["value"]["blockhash"], &newest["value"]["lastValidBlockHeight"]), (&json!(hash), &json!(last)));
    // The state of an older slot does not have the blockhash yet.
    let unknown = call(&mut solana, "sendTransaction", json!([signed(early.clone()), {"encoding": "base64"}]));
    assert_eq!(unknown["error"]["message"], "Transaction simulation failed: Blockhash not found");
    let is_valid = |solana: &mut Solana| ask(solana, "isBlockhashValid", json!([hash, {"commitment": "processed"}]))["value"].clone();
    clock.advance(59_600);
    solana.mine(149);
    assert_eq!(is_valid(&mut solana), true);
    let sent = ask(&mut solana, "sendTransaction", json!([signed(early), {"encoding": "base64"}]));
    clock.advance(1_400);
    solana.mine(1);
    assert_eq!(height(&mut solana), last);
    assert!(signature_result(&mut solana, sent.as_str().unwrap(), "processed").is_some(), "in the last block");
    assert_eq!(is_valid(&mut solana), false);
    let options = json!({"encoding": "base64", "preflightCommitment": "processed"});
    let expired = call(&mut solana, "sendTransaction", json!([signed(late.clone()), options]));
    assert_eq!(expired["error"]["data"]["err"], "BlockhashNotFound");
    // Without a preflight the transaction is accepted, and then dropped.
    let sent = ask(&mut solana, "sendTransaction", json!([signed(late), {"encoding": "base64", "skipPreflight": true}]));
    solana.mine(5);
    assert!(signature_result(&mut solana, sent.as_str().unwrap(), "processed").is_none());
}

#[test]
fn blocks_on_demand_leave_a_minute_to_sign() {
    let (mut solana, to) = (cluster(), Address::from([7; 32]));
    let message = transfer(&mut solana, to, 1_000_000, "finalized");
    (0..1_000).for_each(|_| solana.mine(1));
    ask(&mut solana, "sendTransaction", json!([signed(message.clone()), {"encoding": "base64"}]));
    // That many blocks at once count as a jump in time.
    solana.mine(150);
    let refused = call(&mut solana, "sendTransaction", json!([signed(message), {"encoding": "base64"}]));
    assert_eq!(refused["error"]["data"]["err"], "BlockhashNotFound");
}

#[test]
fn a_transaction_that_fails_without_a_preflight_pays_its_fee() {
    let (mut solana, to) = (cluster(), Address::from([7; 32]));
    let message = transfer(&mut solana, to, 5_000_000_000, "finalized");
    let refused = call(&mut solana, "sendTransaction", json!([signed(message.clone()), {"encoding": "base64"}]));
    assert_eq!(refused["error"]["data"]["err"], json!({"InstructionError": [0, {"Custom": 1}]}));
    assert!(refused["error"]["data"]["logs"].to_string().contains("insufficient lamports"), "{refused}");
    let id = ask(&mut solana, "sendTransaction", json!([signed(message), {"encoding": "base64", "skipPreflight": true}]));
    solana.mine(5);
    let told = signature_result(&mut solana, id.as_str().unwrap(), "finalized").unwrap();
    assert_eq!(told["value"]["err"], json!({"InstructionError": [0, {"Custom": 1}]}));
    assert_eq!(ask(&mut solana, "getTransaction", json!([id]))["meta"]["status"]["Err"], told["value"]["err"]);
    assert_eq!(ask(&mut solana, "getBalance", json!([address(USER)]))["value"], 999_995_000);
    assert!(solana.events().is_empty());
}

#[test]
fn accounts_are_shown_in_every_encoding() {
    let mut solana = cluster();
    solana.fund(&address(USER), "solana:usdc", 12_345_670).unwrap();
    let key = token_account(USER);
    let info = |solana: &mut Solana, options: Value| ask(solana, "getAccountInfo", json!([key, options]))["value"].clone();
    let account = info(&mut solana, json!({"encoding": "base64"}));
    let data = STANDARD.decode(account["data"][0].as_str().unwrap()).unwrap();
    assert_eq!((data.len(), &account["space"], &account["lamports"]), (165, &json!(165), &json!(2_039_280)));
    let sliced = info(&mut solana, json!({"encoding": "base58", "dataSlice": {"offset": 64, "length": 8}}));
    assert_eq!(bs58::decode(sliced["data"][0].as_str().unwrap()).into_vec().unwrap(), data[64..72]);
    let frame = STANDARD.decode(info(&mut solana, json!({"encoding": "base64+zstd"}))["data"][0].as_str().unwrap()).unwrap();
    assert_eq!(frame, [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0, 165, 0, 0, 0, 0x29, 0x05, 0], data.as_slice()].concat());
    let too_long = call(&mut solana, "getAccountInfo", json!([key]));
    assert_eq!(too_long["error"]["code"], -32_600);
    let parsed = &info(&mut solana, json!({"encoding": "jsonParsed"}))["data"]["parsed"]["info"];
    let amount = json!({"amount": "12345670", "decimals": 6, "uiAmount": 12.34567, "uiAmountString": "12.34567"});
    assert_eq!((&parsed["tokenAmount"], &parsed["owner"]), (&amount, &json!(address(USER))));
    let accounts = ask(&mut solana, "getMultipleAccounts", json!([[key, Address::from([9; 32]).to_string(), USDC]]));
    assert_eq!((&accounts["value"][0], &accounts["value"][1]), (&account, &Value::Null));
    assert_eq!(accounts["value"][2]["owner"], "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
}

#[test]
fn version_0_transactions_are_taken_and_their_readers_must_know_them() {
    let mut solana = cluster();
    let VersionedMessage::Legacy(legacy) = transfer(&mut solana, Address::from([7; 32]), 1_000_000, "finalized") else { panic!() };
    let (header, instructions) = (legacy.header, legacy.instructions);
    let (account_keys, recent_blockhash, address_table_lookups) = (legacy.account_keys, legacy.recent_blockhash, Vec::new());
    let message = v0::Message { header, account_keys, recent_blockhash, instructions, address_table_lookups };
    let id = ask(&mut solana, "sendTransaction", json!([signed(VersionedMessage::V0(message)), {"encoding": "base64"}]));
    solana.mine(5);
    assert_eq!(call(&mut solana, "getTransaction", json!([id]))["error"]["code"], -32_015);
    let shown = ask(&mut solana, "getTransaction", json!([id, {"maxSupportedTransactionVersion": 0}]));
    assert_eq!((&shown["version"], &shown["transaction"]["message"]["addressTableLookups"]), (&json!(0), &json!([])));
}

/// The limits are part of the message. A message without them loads no accounts, but still pays its fee.
#[test]
fn version_1_transactions_are_taken_and_their_readers_must_know_them() {
    let mut solana = cluster();
    let to = Address::from([7; 32]);
    let limits = TransactionConfig::empty().with_compute_unit_limit(1_000).with_loaded_accounts_data_size_limit(65_536);
    let message = |solana: &mut Solana, config: TransactionConfig| {
        let VersionedMessage::Legacy(legacy) = transfer(solana, to, 1_000_000, "finalized") else { panic!() };
        VersionedMessage::V1(v1::Message::new(legacy.header, config, legacy.recent_blockhash, legacy.account_keys, legacy.instructions))
    };
    let transaction = signed(message(&mut solana, limits.with_priority_fee(7)));
    assert!(transaction.starts_with("gQ"), "{transaction}");
    let id = ask(&mut solana, "sendTransaction", json!([transaction, {"encoding": "base64"}]));
    solana.mine(5);
    for older in [json!([id]), json!([id, {"maxSupportedTransactionVersion": 0}])] {
        let refused = call(&mut solana, "getTransaction", older);
        assert_eq!(refused["error"]["code"], -32_015);
        assert!(refused["error"]["message"].as_str().unwrap().contains("Transaction version (1)"), "{refused}");
    }
    let shown = ask(&mut solana, "getTransaction", json!([id, {"maxSupportedTransactionVersion": 1}]));
    let config = json!({"computeUnitLimit": 1_000, "heapSize": null, "loadedAccountsDataSizeLimit": 65_536, "priorityFee": 7});
    assert_eq!((&shown["version"], &shown["transaction"]["message"]["transactionConfig"]), (&json!(1), &config));
    assert_eq!((&shown["meta"]["fee"], &shown["meta"]["err"]), (&json!(5_007), &Value::Null));
    let raw = ask(&mut solana, "getTransaction", json!([id, {"encoding": "base64", "maxSupportedTransactionVersion": 1}]));
    assert_eq!(raw["transaction"], json!([transaction, "base64"]));
    // Without a limit for loaded bytes.
    let bare = message(&mut solana, TransactionConfig::empty().with_compute_unit_limit(1_000).with_priority_fee(9));
    let refused = call(&mut solana, "sendTransaction", json!([signed(bare), {"encoding": "base64"}]));
    assert_eq!(refused["error"]["data"]["err"], "MaxLoadedAccountsDataSizeExceeded");
    let large = [vec![0x81, 1, 0, 0], vec![0; 4_093]].concat();
    let refused = call(&mut solana, "sendTransaction", json!([STANDARD.encode(large), {"encoding": "base64"}]));
    assert!(refused["error"]["message"].as_str().unwrap().ends_with("(max: encoded/raw 5464/4096)"), "{refused}");
}

#[test]
fn facts_about_the_cluster() {
    let mut solana = cluster();
    assert_eq!(ask(&mut solana, "getGenesisHash", json!([])), "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d");
    assert_eq!(ask(&mut solana, "getMinimumBalanceForRentExemption", json!([165])), 2_039_280);
    let slot = ask(&mut solana, "getSlot", json!([]));
    assert_eq!(slot, solana.height() - solana.depth());
    let (time, now) = (ask(&mut solana, "getBlockTime", json!([slot])).as_u64().unwrap(), Clock::default().seconds());
    assert!(now - time < 5, "{time}");
    let next = solana.height() + 1;
    let far = call(&mut solana, "getBalance", json!([address(USER), {"minContextSlot": next}]));
    assert_eq!((&far["error"]["code"], &far["error"]["data"]["contextSlot"]), (&json!(-32_016), &slot));
    for role in ROLES {
        assert!(solana.balance(&address(role), "solana:sol").unwrap() >= SOL);
    }
    assert!(solana.fund(&Address::from([5; 32]).to_string(), "solana:sol", 1).unwrap_err().contains("890880"));
    assert!(solana.fund("nobody", "solana:sol", SOL).unwrap_err().contains("not a valid Solana address"));
    assert!(solana.fund(&address(USER), "base:eth", SOL).unwrap_err().contains("no such asset"));
}

#[test]
fn two_hundred_thousand_blocks_take_no_time() {
    let clock = Arc::new(Clock::default());
    let mut solana = Solana::new("solana", "mainnet", Arc::clone(&clock));
    let (before, start) = (solana.height(), Instant::now());
    clock.advance(24 * 3_600_000);
    solana.mine(216_000);
    assert!(start.elapsed() < Duration::from_millis(500));
    assert_eq!(solana.height(), before + 216_000);
    let slot = ask(&mut solana, "getSlot", json!([{"commitment": "processed"}]));
    let times: Vec<_> =
        (0..100).map(|back| before + 216_000 - 1 - back).map(|slot| ask(&mut solana, "getBlockTime", json!([slot]))).collect();
    assert!(times.is_sorted_by(|newer, older| newer.as_u64() >= older.as_u64()));
    assert!(times[0].as_u64().unwrap().abs_diff(clock.seconds()) < 5);
    assert_eq!(slot, solana.height());
    // Empty blocks come five times in two seconds.
    let start = Instant::now();
    (0..1_000).for_each(|_| solana.mine(1));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn any_bytes_are_answered_as_a_node_does() {
    let mut solana = cluster();
    let mut code = |body: &[u8]| {
        let reply = solana.answer(&post(body));
        (reply.status, serde_json::from_slice::<Value>(&reply.body).unwrap_or_default()["error"]["code"].clone())
    };
    assert_eq!(code(b"{"), (200, json!(-32_700)));
    assert_eq!(code(b"[]"), (200, json!(-32_600)));
    assert_eq!(code(b"1"), (200, json!(-32_600)));
    assert_eq!(code(br#"{"id":1,"method":5}"#), (200, json!(-32_600)));
    assert_eq!(code(br#"{"id":1,"jsonrpc":"2.0","method":"getThings"}"#), (200, json!(-32_601)));
    assert_eq!(code(br#"{"id":1,"jsonrpc":"2.0","method":"getBalance"}"#), (200, json!(-32_602)));
    assert_eq!(code(br#"{"jsonrpc":"2.0","method":"getSlot"}"#).0, 200);
    assert_eq!(code("[".repeat(9_999).as_bytes()), (200, json!(-32_700)));
    assert_eq!(code(&vec![b' '; 60_000]).0, 413);
    let calls =
        br#"[{"id":"a","jsonrpc":"2.0","method":"getSlot"},{"jsonrpc":"2.0","method":"getSlot"},{"id":3,"jsonrpc":"2.0","method":"x"}]"#;
    let batch: Value = serde_json::from_slice(&solana.answer(&post(calls.to_vec())).body).unwrap();
    assert_eq!((batch.as_array().unwrap().len(), &batch[0]["id"], &batch[1]["id"]), (2, &json!("a"), &json!(3)));
    let get = |path: &str| Request { method: "GET".to_owned(), path: path.to_owned(), ..post("") };
    assert_eq!((solana.answer(&get("/health")).body, solana.answer(&get("/")).status), (b"ok".to_vec(), 405));
    assert_eq!(solana.answer(&Request { headers: vec![("content-type".to_owned(), "text/plain".to_owned())], ..post("{}") }).status, 415);

    // Calls every method with parameters of every kind.
    let (user, signature) = (address(USER), bs58::encode([1; 64]).into_string());
    let transaction = {
        let message = transfer(&mut solana, Address::from([7; 32]), 1, "finalized");
        signed(message)
    };
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("é"),
        json!("1".repeat(20_000)),
        json!([]),
        json!({}),
        json!(user),
        json!([user]),
        json!(signature),
        json!([signature]),
        json!(transaction),
        json!({"encoding": "base64", "skipPreflight": true}),
        json!({"commitment": "processed", "encoding": "jsonParsed", "dataSlice": {"offset": u64::MAX, "length": u64::MAX}}),
        json!({"accounts": {"addresses": [user, 5]}, "replaceRecentBlockhash": true}),
        json!({"mint": user, "limit": 0, "minContextSlot": -1}),
    ];
    let methods = [
        "getAccountInfo",
        "getBalance",
        "getBlockHeight",
        "getBlockTime",
        "getFirstAvailableBlock",
        "getLatestBlockhash",
        "getMinimumBalanceForRentExemption",
        "getMultipleAccounts",
        "getRecentPrioritizationFees",
        "getSignatureStatuses",
        "getSignaturesForAddress",
        "getSlot",
        "getTransaction",
        "isBlockhashValid",
        "sendTransaction",
        "simulateTransaction",
    ];
    for method in methods {
        for first in &values {
            for second in &values {
                let reply = call(&mut solana, method, json!([first, second]));
                assert!(reply["error"]["code"].is_i64() != reply.get("result").is_some(), "{method} {reply}");
            }
        }
    }
    solana.mine(1);
    // Changes each byte of a transaction in turn.
    let bytes = STANDARD.decode(&transaction).unwrap();
    for place in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            let options = json!({"encoding": "base64", "skipPreflight": true});
            let reply = call(&mut solana, "sendTransaction", json!([STANDARD.encode(&changed), options]));
            assert!([-32_602, -32_003].contains(&reply["error"]["code"].as_i64().unwrap()), "{place}: {reply}");
            let options = json!({"encoding": "base64", "replaceRecentBlockhash": true});
            call(&mut solana, "simulateTransaction", json!([STANDARD.encode(&changed), options]));
        }
    }
    let mut subscriptions = Subscriptions::default();
    for frame in [
        "",
        "{",
        "[]",
        r#"{"method":"slotSubscribe","id":{}}"#,
        r#"{"id":1,"method":"signatureSubscribe","params":["x"]}"#,
        r#"{"id":1,"method":"x"}"#,
    ] {
        assert!(subscriptions.receive(frame).unwrap().contains("jsonrpc"), "{frame}");
    }
    solana.mine(1);
    let told = subscriptions.poll(&mut solana);
    assert!(told.len() == 1 && told[0].contains("slotNotification"), "{told:?}");
}

#[test]
fn programs_are_not_deployed() {
    let mut solana = cluster();
    let user = Keypair::new_from_array(accounts::key(USER)).pubkey();
    let message = transfer(&mut solana, Address::from([7; 32]), 1, "finalized");
    for loader in ["BPFLoaderUpgradeab1e11111111111111111111111", "LoaderV411111111111111111111111111111111111"] {
        let instruction = Instruction { program_id: loader.parse().unwrap(), accounts: Vec::new(), data: vec![0; 4] };
        let called = Message::new_with_blockhash(&[instruction], Some(&user), message.recent_blockhash());
        let refused = call(&mut solana, "sendTransaction", json!([signed(VersionedMessage::Legacy(called)), {"encoding": "base64"}]));
        assert_eq!(refused["error"]["data"]["err"], json!({"InstructionError": [0, "UnsupportedProgramId"]}));
    }
    assert_ne!(address(SOLVER), address(USER));
}
