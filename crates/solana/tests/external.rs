//! External wallets, which return the transaction signed. Only their own blockhash and priority fee may differ.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::{Code, Policy, RequestId, Role};
use countersign_solana::address::{COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM};
use countersign_solana::solana_hash::Hash;
use countersign_solana::solana_instruction::{AccountMeta, Instruction};
use countersign_solana::solana_message::{Message, VersionedMessage, v0, v1};
use countersign_solana::solana_transaction::versioned::VersionedTransaction;
use countersign_solana::{Address, ExternalSignature, Gasless, MAX_COMPUTE_UNIT_PRICE, Solana, VerifiedOrder};
use countersign_testkit::{Case, TestResult, fixture, verified, verified_under};
use solana_keypair::{Keypair, Signer as _};

pub(crate) fn keypair(case: &Case) -> Keypair {
    Keypair::try_from_base58_string(&case.secret_key().expect("a key")).expect("a keypair")
}

/// Signs like a wallet, in the slot of its own account.
pub(crate) fn sign(case: &Case, transaction: &mut VersionedTransaction) {
    let (key, message) = (keypair(case), transaction.message.serialize());
    let slot = transaction.message.static_account_keys().iter().position(|account| *account == key.pubkey());
    transaction.signatures[slot.expect("a slot")] = key.sign_message(&message);
}

/// Returns the transaction for `signTransaction` of a wallet.
pub(crate) fn received(order: &VerifiedOrder) -> VersionedTransaction {
    wincode::deserialize_exact(&order.deposit().transaction.bytes()).expect("a transaction")
}

/// Returns whether an account is writable, by the counts of the header.
fn is_writable(message: &VersionedMessage, index: usize) -> bool {
    let (header, keys) = (message.header(), message.static_account_keys().len());
    let [signers, read_only, other] =
        [header.num_required_signatures, header.num_readonly_signed_accounts, header.num_readonly_unsigned_accounts].map(usize::from);
    if index < signers { index < signers - read_only } else { index < keys - other }
}

/// The instructions, so that they can be compiled again.
pub(crate) fn decompile(message: &VersionedMessage) -> Vec<Instruction> {
    let keys = message.static_account_keys();
    let meta = |index: &u8| {
        let index = usize::from(*index);
        AccountMeta { pubkey: keys[index], is_signer: message.is_signer(index), is_writable: is_writable(message, index) }
    };
    let decompile = |each: &countersign_solana::solana_message::compiled_instruction::CompiledInstruction| Instruction {
        program_id: keys[usize::from(each.program_id_index)],
        accounts: each.accounts.iter().map(meta).collect(),
        data: each.data.clone(),
    };
    message.instructions().iter().map(decompile).collect()
}

/// Compiles instructions with Solana's library, which orders the keys in its own way, and signs them.
pub(crate) fn compiled(case: &Case, like: &VersionedMessage, instructions: &[Instruction], blockhash: [u8; 32]) -> VersionedTransaction {
    let (payer, hash) = (keypair(case).pubkey(), Hash::new_from_array(blockhash));
    let message = match like {
        VersionedMessage::Legacy(_) => VersionedMessage::Legacy(Message::new_with_blockhash(instructions, Some(&payer), &hash)),
        VersionedMessage::V1(like) => {
            VersionedMessage::V1(v1::Message::try_compile_with_config(&payer, instructions, hash, like.config).expect("compiles"))
        }
        VersionedMessage::V0(_) => VersionedMessage::V0(v0::Message::try_compile(&payer, instructions, &[], hash).expect("compiles")),
    };
    let slots = usize::from(message.header().num_required_signatures);
    let mut transaction = VersionedTransaction { signatures: vec![Default::default(); slots], message };
    if slots == 1 {
        sign(case, &mut transaction);
    }
    transaction
}

pub(crate) fn compute_budget(tag: u8, value: &[u8]) -> Instruction {
    Instruction { program_id: COMPUTE_BUDGET_PROGRAM, accounts: Vec::new(), data: [&[tag], value].concat() }
}

pub(crate) fn refused(order: &VerifiedOrder, transaction: &VersionedTransaction) -> String {
    let refusal = order.matches(transaction).expect_err("not the order's transaction");
    assert_eq!(refusal.code(), Code::TransactionMismatch, "{refusal}");
    refusal.location().to_owned()
}

pub(crate) const CASES: [&str; 4] = ["solana-native-legacy", "solana-native-v0", "solana-token-sponsor-signed", "solana-token-v0"];

#[test]
fn wallets_are_offered_the_bytes_as_they_came() -> TestResult {
    for id in CASES {
        let case = fixture::<Solana>(id);
        let (order, line) = (verified::<Solana>(&case), case.json());
        let result = &line["response"]["result"];
        assert_eq!(STANDARD.encode(order.deposit().transaction.bytes()), result["versioned_tx"], "{id}");
        if let Some(gasless) = &order.deposit().gasless {
            assert_eq!(STANDARD.encode(gasless.bytes()), result["versioned_tx_gasless"], "{id}");
        }
    }
    Ok(())
}

#[test]
fn a_wallet_may_choose_blockhash_fee_and_order_of_keys() -> TestResult {
    for id in CASES {
        let case = fixture::<Solana>(id);
        let order = verified::<Solana>(&case);
        let mut transaction = received(&order);
        sign(&case, &mut transaction);
        assert_eq!(order.matches(&transaction)?, Role::Initiate, "{id}");
        transaction.message.set_recent_blockhash(Hash::new_from_array([9; 32]));
        assert_eq!(refused(&order, &transaction), "/signatures/0", "{id}: signed before the change");
        sign(&case, &mut transaction);
        assert_eq!(order.matches(&transaction)?, Role::Initiate, "{id}");

        let own = decompile(&transaction.message);
        let fees = [compute_budget(2, &90_000_u32.to_le_bytes()), compute_budget(3, &7_u64.to_le_bytes())];
        for instructions in [own.clone(), [&fees, own.as_slice()].concat(), [own.as_slice(), &fees[1..]].concat()] {
            let transaction = compiled(&case, &transaction.message, &instructions, [3; 32]);
            assert_eq!(order.matches(&transaction)?, Role::Initiate, "{id}");
        }
        assert_eq!(order.prepare(countersign_solana::TxContext::new())?.matches(&transaction)?, Role::Initiate);
    }
    Ok(())
}

#[test]
fn a_wallets_fee_is_within_the_policy() -> TestResult {
    let case = fixture::<Solana>("solana-native-legacy");
    let order = verified::<Solana>(&case);
    let strict = Policy::from_json(br#"{"solana_compute_unit_price": 10, "solana_compute_unit_limit": 1000}"#)?;
    let strict: VerifiedOrder = verified_under(&case, case.registry, &strict)?;
    let message = received(&order).message;
    let with = |fee: &[Instruction]| compiled(&case, &message, &[fee, &decompile(&message)].concat(), [3; 32]);
    let price = |price: u64| compute_budget(3, &price.to_le_bytes());
    let limit = |limit: u32| compute_budget(2, &limit.to_le_bytes());
    assert!(strict.matches(&with(&[price(10), limit(1_000)])).is_ok());
    assert_eq!(refused(&strict, &with(&[price(11)])), "/message/instructions");
    assert_eq!(refused(&strict, &with(&[limit(1_001)])), "/message/instructions");
    assert!(order.matches(&with(&[price(MAX_COMPUTE_UNIT_PRICE)])).is_ok());
    assert_eq!(refused(&order, &with(&[price(MAX_COMPUTE_UNIT_PRICE + 1)])), "/message/instructions");
    // Once each, in their own form, and no other instruction of the program.
    assert_eq!(refused(&order, &with(&[price(1), price(1)])), "/message/instructions/1");
    // A limit of the bytes of accounts costs nothing. Zero would make the transaction invalid.
    assert!(order.matches(&with(&[price(1), limit(1_000), compute_budget(4, &[0, 0, 1, 0])])).is_ok());
    assert_eq!(refused(&order, &with(&[compute_budget(4, &[0, 0, 1, 0]), compute_budget(4, &[0, 0, 2, 0])])), "/message/instructions/1");
    for other in [
        compute_budget(1, &[0, 0, 1, 0]),
        compute_budget(4, &[0; 4]),
        compute_budget(2, &[0; 4]),
        compute_budget(3, &[1]),
        compute_budget(2, &[]),
    ] {
        assert_eq!(refused(&order, &with(&[other])), "/message/instructions/0/program_id");
    }
    let mut with_account = price(1);
    with_account.accounts.push(AccountMeta { pubkey: keypair(&case).pubkey(), is_signer: true, is_writable: true });
    assert_eq!(refused(&order, &with(&[with_account])), "/message/instructions/0/program_id");
    Ok(())
}

#[test]
fn everything_else_is_the_orders() -> TestResult {
    for id in CASES {
        let case = fixture::<Solana>(id);
        let order = verified::<Solana>(&case);
        let message = received(&order).message;
        let own = decompile(&message);
        // Every byte of the call: discriminator, amount, timelock, redeemer, secret hash.
        for byte in 0..own[0].data.len() {
            let mut other = own.clone();
            other[0].data[byte] ^= 1;
            assert_eq!(refused(&order, &compiled(&case, &message, &other, [3; 32])), "/message/instructions/0/data", "{id} byte {byte}");
        }
        // Every account, and its permissions.
        for account in 0..own[0].accounts.len() {
            let mut other = own.clone();
            other[0].accounts[account] = AccountMeta { pubkey: Address::from([0x51; 32]), is_signer: false, is_writable: true };
            let location = refused(&order, &compiled(&case, &message, &other, [3; 32]));
            assert!(location.starts_with("/message/instructions/0/accounts"), "{id} {location}");
            let mut other = own.clone();
            let raised = &mut other[0].accounts[account];
            if !raised.is_writable {
                raised.is_writable = true;
                assert_eq!(refused(&order, &compiled(&case, &message, &other, [3; 32])), "/message/account_keys", "{id}");
            }
        }
        let mut other = own.clone();
        other[0].program_id = Address::from([0x52; 32]);
        assert_eq!(refused(&order, &compiled(&case, &message, &other, [3; 32])), "/message/instructions/0/program_id", "{id}");
        // An additional instruction, a missing one, and a repeated one.
        let memo = Instruction { program_id: MEMO_PROGRAM, accounts: Vec::new(), data: b"hello".to_vec() };
        let more = [own.as_slice(), &[memo]].concat();
        assert_eq!(refused(&order, &compiled(&case, &message, &more, [3; 32])), "/message/instructions", "{id}");
        assert_eq!(refused(&order, &compiled(&case, &message, &[], [3; 32])), "/message/instructions", "{id}");
        let twice = [own.as_slice(), &own].concat();
        assert_eq!(refused(&order, &compiled(&case, &message, &twice, [3; 32])), "/message/instructions", "{id}");
    }
    Ok(())
}

#[test]
fn payer_version_and_signature_are_the_orders() -> TestResult {
    let case = fixture::<Solana>("solana-native-legacy");
    let order = verified::<Solana>(&case);
    let message = received(&order).message;
    let own = decompile(&message);
    let payer = Address::from([0x53; 32]);
    let foreign = VersionedTransaction {
        signatures: vec![Default::default(); 2],
        message: VersionedMessage::Legacy(Message::new_with_blockhash(&own, Some(&payer), &Hash::default())),
    };
    assert_eq!(refused(&order, &foreign), "/message/account_keys/0");
    assert_eq!(refused(&order, &VersionedTransaction::default()), "/message/account_keys/0");
    let versioned = VersionedMessage::V0(v0::Message::default());
    assert_eq!(refused(&order, &compiled(&case, &versioned, &own, [3; 32])), "/message");

    let mut transaction = received(&order);
    assert_eq!(refused(&order, &transaction), "/signatures/0");
    sign(&case, &mut transaction);
    transaction.signatures.push(transaction.signatures[0]);
    assert_eq!(refused(&order, &transaction), "/signatures");
    transaction.signatures.clear();
    assert_eq!(refused(&order, &transaction), "/signatures");
    Ok(())
}

#[test]
fn the_gasless_transaction_is_signed_as_it_came() -> TestResult {
    let case = fixture::<Solana>("solana-token-sponsor-signed");
    let order = verified::<Solana>(&case);
    let bytes = order.deposit().gasless.as_ref().ok_or("no gasless path")?.bytes();
    let received: VersionedTransaction = wincode::deserialize_exact(&bytes)?;
    let mut transaction = received.clone();
    assert_eq!(refused(&order, &transaction), "/signatures/1");
    sign(&case, &mut transaction);
    assert_eq!(order.matches(&transaction)?, Role::Initiate);

    // The owner's signature is extracted from the transaction that the wallet returned.
    let mut unsigned = order.prepare(Gasless)?;
    let signature = ExternalSignature::from_transaction(&transaction, keypair(&case).pubkey()).ok_or("no signature")?;
    unsigned.attach(RequestId::Gasless, signature)?;
    let submission = unsigned.finish()?.gasless().ok_or("no submission")?.signature;
    assert_eq!(STANDARD.decode(submission)?, wincode::serialize(&transaction)?);

    let mut other = transaction.clone();
    other.signatures[0] = Default::default();
    assert_eq!(refused(&order, &other), "/signatures/0");
    let mut other = received.clone();
    other.message.set_recent_blockhash(Hash::new_from_array([9; 32]));
    sign(&case, &mut other);
    assert_eq!(refused(&order, &other), "/message/recent_blockhash");
    let mut other = received;
    let VersionedMessage::Legacy(message) = &mut other.message else { return Err("a legacy message".into()) };
    message.instructions[0].data[10] ^= 1;
    sign(&case, &mut other);
    assert_eq!(refused(&order, &other), "/message");
    Ok(())
}

/// If a wallet changes a byte of the message and signs it, only bytes of the blockhash are accepted.
#[test]
fn every_byte_but_the_blockhash_is_the_orders() -> TestResult {
    for id in CASES {
        let case = fixture::<Solana>(id);
        let order = verified::<Solana>(&case);
        let bytes = order.deposit().transaction.bytes();
        let blockhash = received(&order).message.recent_blockhash().to_bytes();
        let start = bytes.windows(32).position(|window| *window == blockhash).ok_or("no blockhash")?;
        let mut read = 0;
        for index in 65..bytes.len() {
            for flip in [0x01, 0x02, 0x40, 0x80] {
                let mut other = bytes.clone();
                other[index] ^= flip;
                // A wallet never returns bytes that are not a transaction, or a transaction that its account does not sign.
                let Ok(mut other) = wincode::deserialize_exact::<VersionedTransaction>(&other) else { continue };
                let key = keypair(&case).pubkey();
                let Some(slot) = other.message.static_account_keys().iter().position(|account| *account == key) else { continue };
                let signature = keypair(&case).sign_message(&other.message.serialize());
                if let Some(slot) = other.signatures.get_mut(slot) {
                    *slot = signature;
                }
                let is_free = (start..start + 32).contains(&index);
                assert_eq!(order.matches(&other).is_ok(), is_free, "{id} byte {index} ^ {flip}");
                read += 1;
            }
        }
        assert!(read > 500, "{id}: {read}");
    }
    Ok(())
}

#[test]
fn transactions_are_matched_as_bytes() -> TestResult {
    let bytes = |transaction: &VersionedTransaction| wincode::serialize(transaction).expect("serializes");
    countersign_testkit::received::bytes_are_matched::<Solana>(10, bytes, |signed| {
        let signatures = vec![Default::default(); signed.signatures.len()];
        bytes(&VersionedTransaction { signatures, message: signed.message.clone() })
    })
}

/// A signer that returns the signed transaction is as good as one that returns a signature.
#[test]
fn signatures_are_taken_from_signed_transactions() -> TestResult {
    countersign_testkit::received::signatures_are_taken_from_transactions::<Solana>(10, |signed| {
        let gasless = signed.gasless().map(|submission| STANDARD.decode(submission.signature).expect("base64"));
        signed.transactions().into_iter().map(|one| one.bytes).chain(gasless).collect()
    })
}
