//! The wallet's own blockhash and priority fee, which change only the transaction that the owner sends.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::{Code, Policy, RequestId};
use countersign_solana::address::COMPUTE_BUDGET_PROGRAM;
use countersign_solana::solana_hash::Hash;
use countersign_solana::solana_message::VersionedMessage;
use countersign_solana::solana_transaction::versioned::VersionedTransaction;
use countersign_solana::{
    Address, DurableNonce, FundingPath, MAX_COMPUTE_UNIT_LIMIT, MAX_COMPUTE_UNIT_PRICE, PriorityFee, Solana, TxContext, UnsignedOrder,
    VerifiedOrder,
};
use countersign_testkit::{Case, TestResult, artefacts, fixture, key, verified, verified_under};
use serde_json::{Value as Json, json};

/// An instruction with addresses in place of indexes.
type Instruction = (String, Vec<String>, Vec<u8>);

/// What a transaction does, read from its bytes by Solana's own decoder.
fn instructions(bytes: &[u8]) -> Vec<Instruction> {
    let transaction: VersionedTransaction = wincode::deserialize_exact(bytes).expect("a transaction");
    assert!(transaction.sanitize().is_ok());
    let keys = transaction.message.static_account_keys().to_vec();
    let key = |index: &u8| keys[usize::from(*index)].to_string();
    let instructions = transaction.message.instructions().iter();
    instructions.map(|each| (key(&each.program_id_index), each.accounts.iter().map(key).collect(), each.data.clone())).collect()
}

/// Returns whether an account is writable, by the counts of the header.
fn is_writable(message: &VersionedMessage, index: usize) -> bool {
    let (header, keys) = (message.header(), message.static_account_keys().len());
    let [signers, read_only, other] =
        [header.num_required_signatures, header.num_readonly_signed_accounts, header.num_readonly_unsigned_accounts].map(usize::from);
    if index < signers { index < signers - read_only } else { index < keys - other }
}

/// Returns the account keys with their permissions.
fn permissions(bytes: &[u8]) -> Vec<(String, bool, bool)> {
    let transaction: VersionedTransaction = wincode::deserialize_exact(bytes).expect("a transaction");
    let message = &transaction.message;
    let keys = message.static_account_keys().iter().enumerate();
    keys.map(|(index, key)| (key.to_string(), message.is_signer(index), is_writable(message, index))).collect()
}

fn signed(case: &Case, mut unsigned: UnsignedOrder) -> Vec<u8> {
    unsigned.sign(&key::<Solana>(case)).expect("signs");
    let signed = unsigned.finish().expect("every signature is there");
    let transaction = &signed.transactions()[0];
    assert!(transaction.native.verify_with_results().into_iter().all(|valid| valid));
    transaction.bytes.clone()
}

fn set(tag: u8, value: &[u8]) -> Instruction {
    (COMPUTE_BUDGET_PROGRAM.to_string(), Vec::new(), [&[tag], value].concat())
}

#[test]
fn a_fee_of_the_wallets_own_comes_before_what_was_verified() -> TestResult {
    for id in ["solana-native-legacy", "solana-native-v0", "solana-token-legacy", "solana-token-v0", "solana-native-keys-reordered"] {
        let case = fixture::<Solana>(id);
        let order = verified::<Solana>(&case);
        let plain = signed(&case, order.prepare(TxContext::new())?);
        let fee = PriorityFee::new(50_000).with_limit(180_000);
        let prepared = order.prepare(TxContext::new().with_priority_fee(fee).with_blockhash(Hash::new_from_array([7; 32])))?;
        let shown = prepared.summary().to_string();
        assert!(shown.contains("50000 micro-lamports for each of 180000 compute units, at most 9000 lamports"), "{shown}");
        assert!(shown.contains("(the wallet's own)"), "{shown}");
        let paid = signed(&case, prepared);
        let fees = [set(2, &180_000_u32.to_le_bytes()), set(3, &50_000_u64.to_le_bytes())];
        assert_eq!(instructions(&paid), [fees.as_slice(), &instructions(&plain)].concat(), "{id}");
        let program = (COMPUTE_BUDGET_PROGRAM.to_string(), false, false);
        assert_eq!(permissions(&paid), [permissions(&plain), vec![program]].concat(), "{id}");

        let priced = signed(&case, order.prepare(TxContext::new().with_priority_fee(PriorityFee::new(1)))?);
        assert_eq!(instructions(&priced), [&[set(3, &1_u64.to_le_bytes())], instructions(&plain).as_slice()].concat(), "{id}");
    }
    Ok(())
}

#[test]
fn the_gasless_transaction_stays_as_it_came() -> TestResult {
    let case = fixture::<Solana>("solana-token-sponsor-signed");
    let order = verified::<Solana>(&case);
    let chosen = TxContext::new().with_blockhash(Hash::new_from_array([7; 32])).with_priority_fee(PriorityFee::new(9));
    let mut unsigned = order.prepare(FundingPath::Both(chosen))?;
    assert_eq!(unsigned.requests().len(), 2);
    unsigned.sign(&key::<Solana>(&case))?;
    let got = artefacts(&unsigned);
    assert_eq!(got["gasless"], case.expect()["artefacts"]["gasless"]);
    assert_ne!(got["transaction"], case.expect()["artefacts"]["transaction"]);
    Ok(())
}

/// A fixture with another transaction in place of its own.
fn with_transaction(case: &Case, bytes: &[u8]) -> Case {
    let mut line = case.json();
    *line.pointer_mut("/response/result/versioned_tx").expect("a payload") = json!(STANDARD.encode(bytes));
    case.with_input(line.to_string())
}

fn policy(text: &Json) -> Policy {
    Policy::from_json(text.to_string().as_bytes()).expect("a policy")
}

#[test]
fn a_fee_of_the_services_is_replaced_in_place() -> TestResult {
    let base = fixture::<Solana>("solana-native-legacy");
    let proposed = TxContext::new().with_priority_fee(PriorityFee::new(50).with_limit(60_000));
    let case = with_transaction(&base, &signed(&base, verified::<Solana>(&base).prepare(proposed)?));
    let policy = policy(&json!({ "solana_compute_unit_price": 100, "solana_compute_unit_limit": 70_000 }));
    // The transaction above has the owner's signature in its slot, so empty it.
    let mut line = case.json();
    let mut bytes = STANDARD.decode(line["response"]["result"]["versioned_tx"].as_str().ok_or("no payload")?)?;
    bytes[1..65].fill(0);
    *line.pointer_mut("/response/result/versioned_tx").ok_or("no payload")? = json!(STANDARD.encode(&bytes));
    let order: VerifiedOrder = verified_under(&case.with_input(line.to_string()), case.registry, &policy)?;
    let proposed = instructions(&bytes);

    let mut expected = proposed.clone();
    expected[1] = set(3, &100_u64.to_le_bytes());
    assert_eq!(instructions(&signed(&case, order.prepare(TxContext::new().with_priority_fee(PriorityFee::new(100)))?)), expected);
    expected[0] = set(2, &70_000_u32.to_le_bytes());
    let fee = PriorityFee::new(100).with_limit(70_000);
    assert_eq!(instructions(&signed(&case, order.prepare(TxContext::new().with_priority_fee(fee))?)), expected);

    for (fee, at) in [(PriorityFee::new(101), "price"), (PriorityFee::new(1).with_limit(70_001), "limit")] {
        let refusal = order.prepare(TxContext::new().with_priority_fee(fee)).expect_err("above the policy");
        assert_eq!((refusal.code(), refusal.location()), (Code::GasLimitTooHigh, format!("/priority_fee/compute_unit_{at}").as_str()));
    }
    Ok(())
}

#[test]
fn without_a_policy_the_fee_has_a_bound_of_its_own() -> TestResult {
    let case = fixture::<Solana>("solana-native-legacy");
    let order = verified::<Solana>(&case);
    let max_limit = u32::try_from(MAX_COMPUTE_UNIT_LIMIT)?;
    let prepare = |fee| order.prepare(TxContext::new().with_priority_fee(fee)).map(|_| ()).map_err(|refusal| refusal.code());
    assert_eq!(prepare(PriorityFee::new(MAX_COMPUTE_UNIT_PRICE).with_limit(max_limit)), Ok(()));
    assert_eq!(prepare(PriorityFee::new(MAX_COMPUTE_UNIT_PRICE + 1)), Err(Code::GasLimitTooHigh));
    assert_eq!(prepare(PriorityFee::new(1).with_limit(max_limit + 1)), Err(Code::GasLimitTooHigh));
    Ok(())
}

#[test]
fn a_message_that_the_owner_has_signed_stays_as_it_is() -> TestResult {
    let base = fixture::<Solana>("solana-native-legacy");
    let bytes = signed(&base, verified::<Solana>(&base).prepare(TxContext::new())?);
    let case = with_transaction(&base, &bytes);
    let order = verified::<Solana>(&case);
    let chosen = TxContext::new().with_blockhash(Hash::new_from_array([7; 32])).with_priority_fee(PriorityFee::new(9));
    let unsigned = order.prepare(chosen)?;
    let shown = unsigned.summary().to_string();
    assert!(shown.contains("(the service's)") && shown.contains("the priority fee is not changed"), "{shown}");
    assert_eq!(signed(&case, unsigned), bytes);
    Ok(())
}

#[test]
fn a_transaction_without_room_for_what_the_wallet_adds_is_refused() -> TestResult {
    let nonce = || TxContext::new().with_nonce(DurableNonce::new(Address::from([0x71; 32]), Hash::new_from_array([0x72; 32])));
    let fee = PriorityFee::new(1);
    // The bytes of the packet that destination data leave, and what has no room: a program and an instruction for the fee, two keys more for
    // the nonce.
    for (room, chosen, at) in [
        (20, TxContext::new().with_priority_fee(fee), "/priority_fee"),
        (20, nonce(), "/nonce_account"),
        (20, nonce().with_priority_fee(fee), "/priority_fee"),
        (60, nonce().with_priority_fee(fee), "/nonce_account"),
    ] {
        let order = with_room(room)?;
        assert_eq!(order.prepare(TxContext::new())?.missing(), [RequestId::Transaction]);
        let refusal = order.prepare(chosen).expect_err("no room");
        assert_eq!((refusal.code(), refusal.location()), (Code::TransactionTooLarge, at), "{refusal}");
        let reason = if at == "/nonce_account" { "no room for the nonce" } else { "no room for instructions that set the priority fee" };
        assert!(refusal.to_string().contains(reason), "{refusal}");
    }
    assert!(with_room(60)?.prepare(TxContext::new().with_priority_fee(fee)).is_ok());
    Ok(())
}

/// An order whose destination data leave this many bytes of the packet.
fn with_room(left: usize) -> Result<VerifiedOrder, Box<dyn std::error::Error>> {
    let base = fixture::<Solana>("solana-token-gasless-null");
    let mut transaction: VersionedTransaction = wincode::deserialize_exact(&verified::<Solana>(&base).deposit().transaction.bytes())?;
    let room = 1_232 - left - wincode::serialize(&transaction)?.len();
    let data = match &mut transaction.message {
        VersionedMessage::Legacy(message) => &mut message.instructions[0].data,
        VersionedMessage::V0(message) => &mut message.instructions[0].data,
        VersionedMessage::V1(_) => return Err("an older message".into()),
    };
    assert_eq!(data.split_off(88), [0], "no destination data");
    // Their length has four bytes, and the length of the instruction's data a second one.
    let destination_data = vec![0x5d; room - 5];
    data.extend([&[1], u32::try_from(destination_data.len())?.to_le_bytes().as_slice(), &destination_data].concat());
    let bytes = wincode::serialize(&transaction)?;
    assert_eq!(bytes.len(), 1_232 - left);
    Ok(verified::<Solana>(&with_transaction(&base, &bytes)))
}

/// The network takes the fee of a transaction that fails, and a redemption shows its secret.
#[test]
fn a_limit_of_no_compute_units_is_refused() -> TestResult {
    let none = || TxContext::new().with_blockhash(Hash::new_from_array([5; 32])).with_priority_fee(PriorityFee::new(1).with_limit(0));
    let refusal = verified::<Solana>(&fixture::<Solana>("solana-native-legacy")).prepare(none()).expect_err("no units");
    assert_eq!((refusal.code(), refusal.location()), (Code::GasLimitTooLow, "/priority_fee/compute_unit_limit"));
    let record = countersign_testkit::recover::record::<Solana>("solana-record-testnet", |_| {})?;
    let recovery = countersign_solana::recover::refund(&record, countersign_solana::recover::Leg::Source, countersign_testkit::registry())?;
    let refusal =
        recovery.prepare(none().sent_by(key::<Solana>(&fixture::<Solana>("solana-native-legacy")).address())).expect_err("no units");
    assert_eq!((refusal.code(), refusal.location()), (Code::GasLimitTooLow, "/priority_fee/compute_unit_limit"));
    Ok(())
}

#[test]
fn an_expired_blockhash_is_refused() -> TestResult {
    let order = verified::<Solana>(&fixture::<Solana>("solana-native-legacy"));
    assert!(order.prepare(TxContext::new().with_block_heights(100, 100)).is_ok());
    let refusal = order.prepare(TxContext::new().with_block_heights(101, 100)).expect_err("expired");
    assert_eq!((refusal.code(), refusal.location()), (Code::BlockhashExpired, "/last_valid_block_height"));
    assert_eq!(refusal.expected().map(ToString::to_string).as_deref(), Some("at least 101"));
    Ok(())
}
