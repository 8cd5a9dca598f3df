//! The payment of an order in the transaction of another account, by the instruction of the program that ran.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::reader::{Answer, Equal, Fault, Known, Next, Observation, Quorum, Reader, Request};
use countersign_core::{Code, Network, Refusal};
use countersign_solana::reader::{Effect, EffectQuery};
use countersign_solana::solana_hash::Hash;
use countersign_solana::solana_instruction::{AccountMeta, Instruction};
use countersign_solana::solana_message::{AddressLookupTableAccount, VersionedMessage, v0};
use countersign_solana::solana_signature::Signature;
use countersign_solana::solana_transaction::versioned::VersionedTransaction;
use countersign_solana::{Address, Solana, VerifiedOrder, read, received};
use countersign_testkit::chain::solana::{in_version_1, mined, mined_inside, name};
use countersign_testkit::{TestResult, all_fixtures, fixture, set, verified};
use serde_json::{Value, json};

const NATIVE: &str = "solana-native-legacy";
const TOKEN: &str = "solana-token-v0";
const SLOT: u64 = 400_000_000;
/// A multisig or the program of a smart wallet.
const WALLET_PROGRAM: [u8; 32] = [0x77; 32];

/// Where the instruction is that a program called.
const INNER: &str = "/meta/innerInstructions/0/instructions/0";

fn order(id: &str) -> VerifiedOrder {
    verified::<Solana>(&fixture::<Solana>(id))
}

/// The instruction that pays for an order.
fn initiate(order: &VerifiedOrder) -> Instruction {
    let deposit = order.deposit();
    let roles = deposit.transaction.accounts.roles.iter();
    let accounts = roles.map(|role| AccountMeta { pubkey: role.address, is_signer: role.signer, is_writable: role.writable });
    Instruction { program_id: deposit.htlc.program, accounts: accounts.collect(), data: deposit.terms.encode(&deposit.htlc) }
}

/// A transaction on chain, as far as a node shows it.
struct Shown {
    transaction: VersionedTransaction,
    loaded: [Vec<Address>; 2],
    called: Vec<Instruction>,
}

impl Shown {
    /// The answer to `getTransaction`.
    fn answer(&self, encoding: &str) -> Value {
        let Self { transaction, loaded, called } = self;
        let message = &transaction.message;
        let keys: Vec<_> = message.static_account_keys().iter().chain(loaded.iter().flatten()).collect();
        let index = |key: &Address| keys.iter().position(|other| *other == key).expect("a key of the transaction");
        let called: Vec<_> = called
            .iter()
            .map(|each| {
                let accounts: Vec<_> = each.accounts.iter().map(|meta| index(&meta.pubkey)).collect();
                json!({"programIdIndex": index(&each.program_id), "accounts": accounts, "data": bs58(&each.data), "stackHeight": 2})
            })
            .collect();
        let bytes = read::transaction_bytes(transaction);
        let shown = match encoding {
            "json" => as_json(transaction),
            "base58" => json!([bs58(&bytes), "base58"]),
            _ => json!([STANDARD.encode(bytes), "base64"]),
        };
        let [writable, readonly] = loaded.each_ref().map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>());
        json!({
            "slot": SLOT, "blockTime": 1, "transaction": shown,
            "version": match message { VersionedMessage::Legacy(_) => json!("legacy"), VersionedMessage::V0(_) => json!(0), VersionedMessage::V1(_) => json!(1) },
            "meta": {
                "err": null, "status": {"Ok": null}, "fee": 5000, "logMessages": ["Program log: Instruction: Initiate"],
                "innerInstructions": if called.is_empty() { json!([]) } else { json!([{"index": 0, "instructions": called}]) },
                "loadedAddresses": {"writable": writable, "readonly": readonly},
            },
        })
    }
}

fn bs58(bytes: &[u8]) -> String {
    bs58::encode(bytes).into_string()
}

/// A transaction with the encoding `json`.
fn as_json(transaction: &VersionedTransaction) -> Value {
    let message = &transaction.message;
    let texts = |list: &[Address]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let signatures: Vec<_> = transaction.signatures.iter().map(ToString::to_string).collect();
    let instructions: Vec<_> = message
        .instructions()
        .iter()
        .map(|each| {
            json!({"programIdIndex": each.program_id_index, "accounts": each.accounts, "data": bs58(&each.data), "stackHeight": null})
        })
        .collect();
    let mut shown = json!({
        "header": {"numRequiredSignatures": 1, "numReadonlySignedAccounts": 0, "numReadonlyUnsignedAccounts": 0},
        "accountKeys": texts(message.static_account_keys()), "recentBlockhash": message.recent_blockhash().to_string(),
        "instructions": instructions,
    });
    if let Some(tables) = message.address_table_lookups() {
        let tables: Vec<_> = tables
            .iter()
            .map(|table| {
                let (writable, readonly) = (&table.writable_indexes, &table.readonly_indexes);
                json!({"accountKey": table.account_key.to_string(), "writableIndexes": writable, "readonlyIndexes": readonly})
            })
            .collect();
        shown["addressTableLookups"] = tables.into();
    }
    json!({"signatures": signatures, "message": shown})
}

/// A transaction of another account whose program calls the HTLC for the owner, with a legacy message.
fn inside(order: &VerifiedOrder) -> Shown {
    let mined = mined_inside(SLOT, initiate(order));
    Shown { transaction: mined.transaction, loaded: [vec![], vec![]], called: mined.called }
}

/// The same with a message of version 0, most of whose keys are loaded from a lookup table.
fn from_table(order: &VerifiedOrder) -> Shown {
    let called = initiate(order);
    // The owner's program signs for it: the transaction has no signature of the owner.
    let unsigned = called.accounts.iter().map(|meta| AccountMeta { is_signer: false, ..meta.clone() });
    let accounts = unsigned.chain([AccountMeta::new_readonly(called.program_id, false)]).collect();
    let outer = Instruction { program_id: Address::from(WALLET_PROGRAM), accounts, data: vec![1] };
    let addresses = outer.accounts.iter().map(|meta| meta.pubkey).collect();
    let table = AddressLookupTableAccount { key: Address::from([0x55; 32]), addresses };
    let payer = Address::from([9; 32]);
    let message = v0::Message::try_compile(&payer, &[outer], std::slice::from_ref(&table), Hash::new_from_array([6; 32])).unwrap();
    let lookup = &message.address_table_lookups[0];
    let loaded =
        [&lookup.writable_indexes, &lookup.readonly_indexes].map(|list| list.iter().map(|at| table.addresses[usize::from(*at)]).collect());
    let transaction = VersionedTransaction { signatures: vec![Signature::from([5; 64])], message: VersionedMessage::V0(message) };
    Shown { transaction, loaded, called: vec![called] }
}

/// The same with a message of version 1.
fn of_version_1(order: &VerifiedOrder) -> Shown {
    let mined = in_version_1(&mined_inside(SLOT, initiate(order)));
    Shown { transaction: mined.transaction, loaded: [vec![], vec![]], called: mined.called }
}

fn parse(answer: &Value) -> Result<received::TransactionEffect, Refusal> {
    received::effect(answer.to_string().as_bytes())
}

fn find(order: &VerifiedOrder, answer: &Value) -> Result<Signature, (String, String)> {
    order.deposit().find_payment(&parse(answer).unwrap()).map_err(|refusal| {
        assert_eq!(refusal.code(), Code::TransactionMismatch, "{refusal}");
        (refusal.location().to_owned(), refusal.to_string())
    })
}

/// Of every accepted order, of both generations.
#[test]
fn a_payment_that_a_program_made_is_found() -> TestResult {
    let mut seen = 0;
    for case in all_fixtures::<Solana>()? {
        let order = verified::<Solana>(&case);
        let shown = inside(&order);
        assert_eq!(find(&order, &shown.answer("base64")), Ok(shown.transaction.signatures[0]), "{}", case.id);
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
    Ok(())
}

#[test]
fn every_version_and_encoding_shows_the_payment() {
    for id in [NATIVE, TOKEN] {
        let order = order(id);
        // An instruction of the message, of the owner's account but another fee payer.
        let direct = mined(SLOT, &initiate(&order));
        let direct = Shown { transaction: direct.transaction, loaded: [vec![], vec![]], called: vec![] };
        let shown = [inside(&order), from_table(&order), of_version_1(&order), direct];
        assert!(shown[1].loaded.iter().all(|list| !list.is_empty()), "keys are loaded");
        for shown in shown {
            for encoding in ["base64", "base58", "json"] {
                let answer = shown.answer(encoding);
                assert_eq!(find(&order, &answer), Ok(shown.transaction.signatures[0]), "{id}: {answer}");
            }
        }
    }
}

/// The payer of the rent is not a term of an order.
#[test]
fn another_sponsor_may_pay_the_rent() {
    let order = order(TOKEN);
    let mut called = initiate(&order);
    called.accounts[6].pubkey = Address::from([0x66; 32]);
    let mined = mined_inside(SLOT, called);
    let shown = Shown { transaction: mined.transaction, loaded: [vec![], vec![]], called: mined.called };
    assert_eq!(find(&order, &shown.answer("json")), Ok(shown.transaction.signatures[0]));
}

/// What the node shows if the program called this instruction.
fn with(called: Instruction) -> Value {
    let mined = mined_inside(SLOT, called);
    Shown { transaction: mined.transaction, loaded: [vec![], vec![]], called: mined.called }.answer("base64")
}

#[test]
fn a_payment_under_other_terms_is_refused() {
    for id in [NATIVE, TOKEN] {
        let order = order(id);
        let deposit = order.deposit();
        let refused = |change: &dyn Fn(&mut Instruction)| {
            let mut called = initiate(&order);
            change(&mut called);
            find(&order, &with(called)).unwrap_err()
        };
        let own = || deposit.terms.clone();
        let (mut amount, mut timelock, mut redeemer) = (own(), own(), own());
        amount.amount ^= 1;
        timelock.timelock += 1;
        redeemer.redeemer = Address::from([0x31; 32]);
        for (name, terms) in [("amount", amount), ("timelock", timelock), ("redeemer", redeemer)] {
            let (location, message) = refused(&|called| called.data = terms.encode(&deposit.htlc));
            assert!(location == format!("{INNER}/data") && message.contains(&format!("another {name}")), "{id}: {location}: {message}");
        }
        // Arguments behind those of the program.
        let (location, _) = refused(&|called| called.data.push(0));
        assert_eq!(location, format!("{INNER}/data"), "{id}");
        for (index, role) in deposit.transaction.accounts.roles.iter().enumerate().filter(|(_, role)| role.name != "the sponsor") {
            let (location, message) = refused(&|called| called.accounts[index].pubkey = Address::from([0x32; 32]));
            assert!(location == format!("{INNER}/accounts/{index}") && message.contains(role.name), "{id}: {location}: {message}");
        }
        let missing = refused(&|called| called.accounts.truncate(2)).0;
        let more = refused(&|called| called.accounts.push(AccountMeta::new_readonly(Address::from([0x33; 32]), false))).0;
        assert_eq!([missing, more], [format!("{INNER}/accounts"), format!("{INNER}/accounts")], "{id}");
    }
}

/// Instructions that do not pay this order are skipped, so none is left.
#[test]
fn a_transaction_that_does_not_pay_the_order_is_refused() {
    let order = order(NATIVE);
    let skipped = |change: &dyn Fn(&mut Instruction)| {
        let mut called = initiate(&order);
        change(&mut called);
        find(&order, &with(called)).unwrap_err().0
    };
    assert_eq!(skipped(&|called| called.program_id = Address::from([0x34; 32])), "/transaction", "another program");
    assert_eq!(skipped(&|called| called.data[..8].copy_from_slice(&[1; 8])), "/transaction", "another instruction");
    let mut other = order.deposit().terms.clone();
    other.secret_hash[0] ^= 1;
    assert_eq!(skipped(&|called| called.data = other.encode(&order.deposit().htlc)), "/transaction", "another order");
    // A line of the log, which any program can write.
    let mut answer = with(initiate(&order));
    answer["meta"]["innerInstructions"] = json!([]);
    answer["meta"]["logMessages"] = json!([
        format!("Program {} invoke [2]", order.deposit().htlc.program),
        format!("Program data: {}", STANDARD.encode(initiate(&order).data)),
        format!("Program {} success", order.deposit().htlc.program),
    ]);
    assert_eq!(find(&order, &answer).unwrap_err().0, "/transaction");
    // The network has taken it back.
    for error in [json!({"InstructionError": [0, {"Custom": 1}]}), json!("AccountInUse"), json!(false)] {
        let mut answer = with(initiate(&order));
        answer["meta"]["err"] = error;
        let (location, message) = find(&order, &answer).unwrap_err();
        assert!(location == "/meta/err" && message.contains("the transaction failed"), "{message}");
    }
}

#[test]
fn a_second_payment_in_a_transaction_is_refused() {
    let order = order(NATIVE);
    let honest = with(initiate(&order));
    let mut twice = honest.clone();
    let instruction = honest["meta"]["innerInstructions"][0]["instructions"][0].clone();
    twice["meta"]["innerInstructions"][0]["instructions"] = json!([instruction, instruction]);
    let (location, message) = find(&order, &twice).unwrap_err();
    assert!(location == "/meta/innerInstructions/0/instructions/1" && message.contains("paid twice"), "{message}");
    // Another order of the same wallet is none of it.
    let mut other = order.deposit().terms.clone();
    other.secret_hash[0] ^= 1;
    let mut both = honest.clone();
    let mut second = instruction.clone();
    second["data"] = json!(bs58(&other.encode(&order.deposit().htlc)));
    both["meta"]["innerInstructions"][0]["instructions"] = json!([second, instruction]);
    assert!(find(&order, &both).is_ok());
}

#[test]
fn what_a_node_says_is_parsed_strictly() {
    let order = order(NATIVE);
    let shown = from_table(&order);
    let group = "/meta/innerInstructions/0";
    for (encoding, member, value, code) in [
        ("base64", "/meta", Value::Null, Code::MissingField),
        ("base64", "/transaction", Value::Null, Code::MissingField),
        ("base64", "/transaction", json!([]), Code::MissingField),
        ("base64", "/transaction/0", json!("%"), Code::WrongType),
        ("base64", "/transaction/0", json!("AQID"), Code::TransactionMalformed),
        ("base64", "/transaction/0", json!("A".repeat(6_000)), Code::WrongType),
        ("base64", "/meta/loadedAddresses", Value::Null, Code::MissingField),
        ("json", "/meta/loadedAddresses", Value::Null, Code::MissingField),
        ("base64", "/meta/loadedAddresses/writable", json!([]), Code::TransactionMalformed),
        ("json", "/meta/loadedAddresses/readonly", json!([]), Code::TransactionMalformed),
        ("base64", "/meta/loadedAddresses/writable/0", json!("0"), Code::AddressMalformed),
        ("base64", "/meta/loadedAddresses/writable", json!(vec![Address::default().to_string(); 257]), Code::WrongType),
        ("base64", "/meta/innerInstructions", json!({}), Code::WrongType),
        ("base64", "/meta/innerInstructions/0/index", json!(1), Code::TransactionMalformed),
        ("base64", "/meta/innerInstructions/0/instructions/0/programIdIndex", json!(256), Code::NumberTooLarge),
        ("base64", "/meta/innerInstructions/0/instructions/0/programIdIndex", json!(255), Code::TransactionMalformed),
        ("base64", "/meta/innerInstructions/0/instructions/0/accounts/0", json!(255), Code::TransactionMalformed),
        ("base64", "/meta/innerInstructions/0/instructions/0/accounts", Value::Null, Code::MissingField),
        ("base64", "/meta/innerInstructions/0/instructions/0/data", json!([1]), Code::WrongType),
        ("json", "/transaction/signatures", json!([]), Code::MissingField),
        ("json", "/transaction/signatures/0", json!("11"), Code::TransactionIdMalformed),
        ("json", "/transaction/message/accountKeys/0", json!({"pubkey": "1", "signer": true}), Code::WrongType),
        ("json", "/transaction/message/instructions/0", json!({"parsed": {}, "programId": "1"}), Code::MissingField),
        ("json", "/transaction/message/instructions/0/programIdIndex", json!(255), Code::TransactionMalformed),
    ] {
        let mut changed = shown.answer(encoding);
        set(&mut changed, member, value.clone());
        let refusal = parse(&changed).unwrap_err();
        assert_eq!(refusal.code(), code, "{member} = {value}: {refusal}");
        // What does not fit another part is located at the instruction.
        let (at, _) = member.rsplit_once('/').filter(|_| code == Code::TransactionMalformed).unwrap_or((member, ""));
        assert!(refusal.location().starts_with(at.trim_end_matches("/accounts")), "{member}: {refusal}");
    }
    // An instruction that calls another and again another, without end.
    let mut endless = shown.answer("base64");
    let instruction = endless["meta"]["innerInstructions"][0]["instructions"][0].clone();
    set(&mut endless, &format!("{group}/instructions"), vec![instruction.clone(); 513].into());
    assert_eq!(parse(&endless).unwrap_err().code(), Code::WrongType);
    // The time to decode base58 grows with the square of its length. What is too long for the HTLC is not decoded at all.
    for (characters, most) in [(4_096, 4), (1_024, 64), (362, 512)] {
        for count in [most, most + 1] {
            let mut long = shown.answer("base64");
            let mut list = vec![instruction.clone(); count];
            list.iter_mut().for_each(|each| each["data"] = json!("1".repeat(characters)));
            list.extend((count < most.min(500)).then(|| json!({"programIdIndex": 0, "accounts": [], "data": "1".repeat(4_097)})));
            set(&mut long, &format!("{group}/instructions"), list.into());
            assert_eq!(parse(&long).err().map(|refusal| refusal.code()), (count > most).then_some(Code::WrongType), "{characters} {count}");
        }
    }
    let mut other = shown.answer("base64");
    other["transaction"][1] = json!("base58");
    assert_eq!(parse(&other).unwrap_err().location(), "/transaction/0");
    // An answer that does not say whether the transaction failed, and every one that was cut.
    let mut silent = shown.answer("base64");
    silent["meta"].as_object_mut().unwrap().remove("err");
    let refusal = parse(&silent).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::MissingField, "/meta/err"));
    let text = shown.answer("json").to_string();
    for end in 0..text.len() {
        assert!(received::effect(&text.as_bytes()[..end]).is_err(), "{end}");
    }
    let refusal =
        parse(&json!({"transaction": {"signatures": [Signature::default().to_string()], "message": {"accountKeys": [{}]}}, "meta": {}}));
    assert!(refusal.unwrap_err().to_string().contains("jsonParsed"));
}

/// The answer of one endpoint about a transaction.
fn shown(id: Signature, answer: &Value) -> Result<Observation<Effect>, Fault> {
    let subject = EffectQuery { network: Network::Solana("mainnet".to_owned()), id };
    let mut reader = Reader::<Effect>::new(&subject, &Known::default()).unwrap();
    let Next::Ask([_, asked]) = reader.next() else { panic!("the chain, and the transaction") };
    let Request::JsonRpc { method, params } = asked else { panic!("{asked:?}") };
    assert!(*method == "getTransaction" && params.contains(&id.to_string()) && params.contains("finalized"), "{params}");
    let identity = json!("5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d");
    let answers = [identity, answer.clone()].map(|answer| Answer::result(answer.to_string().into_bytes()));
    reader.answer(&answers).unwrap();
    reader.finish()
}

#[test]
fn what_a_transaction_did_counts_if_enough_endpoints_agree() {
    let order = order(NATIVE);
    let transaction = from_table(&order);
    let (id, honest) = (transaction.transaction.signatures[0], transaction.answer("base64"));
    // One more instruction of the program, which no signature covers.
    let mut lying = honest.clone();
    let mut called = transaction.called[0].clone();
    called.data[8] ^= 1;
    lying["meta"]["innerInstructions"][0]["instructions"][0]["data"] = json!(bs58(&called.data));
    let judged = |answers: [&Value; 3]| {
        let endpoints = ["a", "b", "c"];
        let mut quorum = Quorum::new(endpoints, 2).unwrap();
        for (endpoint, answer) in endpoints.into_iter().zip(answers) {
            quorum.hear(endpoint, shown(id, answer));
        }
        let agreed = quorum.agreed::<()>().ok()?;
        let Equal(found) = agreed[0].output();
        Some(found.as_ref().map(|found| order.deposit().find_payment(found) == Ok(id)))
    };
    assert_eq!(judged([&honest, &lying, &honest]), Some(Some(true)));
    assert_eq!(judged([&lying, &honest, &lying]), Some(Some(false)));
    assert_eq!(judged([&honest, &Value::Null, &Value::Null]), Some(None));
    assert_eq!(judged([&honest, &lying, &Value::Null]), None);
    // The transaction of another id, or an answer that does not say whether it failed, is the fault of the endpoint.
    assert!(matches!(shown(Signature::from([1; 64]), &honest), Err(Fault::Malformed(_))));
    lying["meta"] = json!({"innerInstructions": []});
    assert!(matches!(shown(id, &lying), Err(Fault::Malformed(_))));
}

/// Nodes in memory, which other tests ask, show the same.
#[test]
fn a_node_in_memory_shows_what_programs_called() {
    let order = order(NATIVE);
    let mined = mined_inside(SLOT, initiate(&order));
    let answer = countersign_testkit::chain::solana::transaction(&mined);
    assert_eq!(find(&order, &answer).map(|id| id.to_string()), Ok(name(&mined)));
}
