//! Matching the transactions of external wallets: any gas is accepted, and any other difference is refused.

use crate::support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::{Code, Role};
use countersign_sui::sui_sdk_types::{
    Address, Argument, Command, Digest, Input, ObjectReference, ProgrammableTransaction, SignedTransaction, TransactionKind, UserSignature,
};
use countersign_sui::{Key, Sui, TxContext, VerifiedOrder};
use countersign_testkit::{Case, TestResult, fixture, fixtures, key, received, verified, wallet};
use support::{outside, outside_case};

fn signed(case: &Case, gas: TxContext, sponsor: Option<&Key>) -> SignedTransaction {
    let mut unsigned = verified::<Sui>(case).prepare(gas).expect("prepares");
    unsigned.sign(&key::<Sui>(case)).expect("signs");
    if let Some(sponsor) = sponsor {
        unsigned.sign(sponsor).expect("signs");
    }
    unsigned.finish().expect("complete").transactions().swap_remove(0).native
}

fn own(case: &Case) -> SignedTransaction {
    signed(case, wallet::<Sui>(case), None)
}

/// Returns the order and a transaction of its owner, which is changed before it is signed.
fn changed(change: impl FnOnce(&mut ProgrammableTransaction)) -> (VerifiedOrder, SignedTransaction) {
    use sui_crypto::SuiSigner as _;
    use sui_crypto::ed25519::Ed25519PrivateKey;
    let case = fixture::<Sui>("sui-key-hex");
    let mut signed = own(&case);
    let TransactionKind::ProgrammableTransaction(transaction) = &mut signed.transaction.kind else { panic!("another kind") };
    change(transaction);
    let seed = hex::decode(case.secret_key().expect("a key")).expect("hex");
    let key = Ed25519PrivateKey::new(seed.try_into().expect("32 bytes"));
    signed.signatures = vec![key.sign_transaction(&signed.transaction).expect("signs")];
    (verified::<Sui>(&case), signed)
}

fn refused(order: &VerifiedOrder, transaction: &SignedTransaction) -> String {
    let refusal = order.matches(transaction).expect_err("not a transaction of this order");
    assert_eq!(refusal.code(), Code::TransactionMismatch, "{refusal}");
    refusal.location().to_owned()
}

#[test]
fn gas_is_free() -> TestResult {
    let case = fixture::<Sui>("sui-native");
    let order = verified::<Sui>(&case);
    let coin = |id: u8| ObjectReference::new(Address::new([id; 32]), 3, Digest::new([id; 32]));
    let sponsor = Key::from_ed25519_seed(&[7; 32]);
    let gas = TxContext::new(999, 77_000_000, vec![coin(1), coin(2)]).with_expiration_epoch(9);
    assert_eq!(order.matches(&signed(&case, gas.clone(), None)), Ok(Role::Initiate));
    let mut sponsored = signed(&case, gas.with_sponsor(sponsor.address()), Some(&sponsor));
    assert_eq!(order.matches(&sponsored), Ok(Role::Initiate));
    sponsored.signatures.reverse();
    assert_eq!(order.matches(&sponsored), Ok(Role::Initiate), "the sponsor's signature first");
    // Nodes take the transaction only with the sponsor's signature, over the same gas.
    let of_sponsor = sponsored.signatures.remove(0);
    assert_eq!(refused(&order, &sponsored), "/signatures");
    let other = TxContext::new(999, 77_000_001, vec![coin(1), coin(2)]).with_expiration_epoch(9).with_sponsor(sponsor.address());
    let mut other = signed(&case, other, Some(&sponsor));
    *other.signatures.last_mut().ok_or("no signature")? = of_sponsor;
    assert_eq!(refused(&order, &other), "/signatures/1");
    Ok(())
}

#[test]
fn every_fixture_matches_itself_and_no_other_order() -> TestResult {
    let mut orders = Vec::new();
    for case in fixtures::<Sui>()? {
        if case.secret_key().is_some() && case.json()["wallet"]["sponsor"].is_null() {
            let transaction = own(&case);
            orders.push((verified::<Sui>(&case), transaction));
        }
    }
    assert!(orders.len() > 10, "{}", orders.len());
    for (order, transaction) in &orders {
        assert_eq!(order.matches(transaction), Ok(Role::Initiate), "{}", order.order_id());
    }
    for (order, transaction) in orders.iter().zip(orders.iter().skip(1)).map(|(one, other)| (&one.0, &other.1)) {
        if *order.deposit().kind != transaction.transaction.kind {
            refused(order, transaction);
        }
    }
    Ok(())
}

#[test]
fn every_byte_of_every_input_is_compared() {
    let (order, same) = changed(|_| {});
    assert_eq!(order.matches(&same), Ok(Role::Initiate));
    let TransactionKind::ProgrammableTransaction(transaction) = &same.transaction.kind else { panic!("another kind") };
    let mut pure = 0;
    for (index, input) in transaction.inputs.iter().enumerate() {
        let Input::Pure(bytes) = input else { continue };
        for byte in 0..bytes.len() {
            let (order, other) = changed(|transaction| {
                if let Input::Pure(bytes) = &mut transaction.inputs[index] {
                    bytes[byte] ^= 1;
                }
            });
            assert_eq!(refused(&order, &other), format!("/kind/inputs/{index}"));
            pure += 1;
        }
    }
    assert!(pure > 100, "{pure}");
}

#[test]
fn other_inputs_and_commands_are_refused() {
    let at = |change: fn(&mut ProgrammableTransaction)| {
        let (order, other) = changed(change);
        refused(&order, &other)
    };
    assert_eq!(at(|transaction| transaction.inputs.push(Input::Pure(vec![0]))), "/kind/inputs");
    assert_eq!(at(|transaction| transaction.commands.push(transaction.commands[0].clone())), "/kind/commands");
    assert_eq!(
        at(|transaction| {
            if let Command::MoveCall(call) = &mut transaction.commands[1] {
                call.arguments[7] = Argument::Gas;
            }
        }),
        "/kind/commands/1"
    );
    assert_eq!(
        at(|transaction| {
            if let Command::MoveCall(call) = &mut transaction.commands[1] {
                call.package = Address::new([1; 32]);
            }
        }),
        "/kind/commands/1"
    );
}

#[test]
fn sender_and_signature_are_the_owners() -> TestResult {
    let case = fixture::<Sui>("sui-native");
    let order = verified::<Sui>(&case);
    let honest = own(&case);

    let mut other = honest.clone();
    other.transaction.sender = Address::new([1; 32]);
    assert_eq!(refused(&order, &other), "/sender");
    let mut other = honest.clone();
    other.signatures.clear();
    assert_eq!(refused(&order, &other), "/signatures");
    // A signature of another account, and one of the owner for another gas budget.
    other.signatures = own(&fixture::<Sui>("sui-key-hex")).signatures;
    assert_eq!(refused(&order, &other), "/signatures");
    let mut other = honest.clone();
    other.transaction.gas_payment.budget += 1;
    assert_eq!(refused(&order, &other), "/signatures/0");
    let mut other = honest;
    other.transaction.kind = TransactionKind::EndOfEpoch(Vec::new());
    assert_eq!(refused(&order, &other), "/kind");
    Ok(())
}

#[test]
fn signatures_that_only_the_network_proves_count_by_their_address() -> TestResult {
    let outside = outside();
    for scheme in ["multisig", "zklogin"] {
        let case = outside_case(&outside[scheme]);
        let order = verified::<Sui>(&case);
        let unsigned = order.prepare(wallet::<Sui>(&case))?;
        let signature = UserSignature::from_base64(outside[scheme]["signature"].as_str().ok_or("no signature")?)?;
        let transaction = SignedTransaction { transaction: unsigned.payloads().transaction(), signatures: vec![signature] };
        let (role, warnings) = order.match_with_warnings(&transaction)?;
        let codes: Vec<_> = warnings.list().iter().map(|warning| warning.code()).collect();
        assert_eq!((role, &codes[..]), (Role::Initiate, &[Code::SignatureUnverified][..]), "{scheme}");
        // Nobody reads the warning there.
        let refusal = order.matches(&transaction).expect_err("not proven");
        assert!(refusal.code() == Code::TransactionMismatch && refusal.message().contains("signature_unverified"), "{scheme}: {refusal}");
    }
    Ok(())
}

#[test]
fn transactions_are_matched_as_bytes() -> TestResult {
    let bytes = |signed: &SignedTransaction| bcs::to_bytes(signed).expect("BCS");
    let unsigned = |signed: &SignedTransaction| bytes(&SignedTransaction { signatures: Vec::new(), ..signed.clone() });
    received::bytes_are_matched::<Sui>(10, bytes, unsigned)?;
    // The form of a node: in a list, with the intent.
    received::bytes_are_matched::<Sui>(10, |signed| [vec![1, 0, 0, 0], bytes(signed)].concat(), unsigned)
}

#[test]
fn signatures_in_bytes_are_parsed_as_in_text() {
    use countersign_sui::received::{from_bytes, from_json};
    let case = fixture::<Sui>("sui-native");
    let signed = own(&case);
    let text = |signed: &SignedTransaction| {
        let signatures: Vec<_> = signed.signatures.iter().map(UserSignature::to_base64).collect();
        let tx_bytes = STANDARD.encode(bcs::to_bytes(&signed.transaction).expect("BCS"));
        serde_json::json!({ "tx_bytes": tx_bytes, "signatures": signatures }).to_string()
    };
    assert_eq!(from_json(text(&signed).as_bytes()).as_ref(), Ok(&signed));
    assert_eq!(from_bytes(&bcs::to_bytes(&signed).expect("BCS")).as_ref(), Ok(&signed));

    let mut three = signed.clone();
    three.signatures = vec![signed.signatures[0].clone(); 3];
    let refusal = from_bytes(&bcs::to_bytes(&three).expect("BCS")).expect_err("three signatures");
    assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/signatures"));
    // A scheme that does not exist.
    let mut bytes = bcs::to_bytes(&signed).expect("BCS");
    let flag = bytes.len() - 97;
    bytes[flag] = 0xee;
    let refusal = from_bytes(&bytes).expect_err("an unknown scheme");
    assert_eq!((refusal.code(), refusal.location()), (Code::SignatureMalformed, "/signatures/0"));
}

/// A signer that returns the signed transaction is as good as one that returns a signature.
#[test]
fn signatures_are_taken_from_signed_transactions() -> TestResult {
    received::signatures_are_taken_from_transactions::<Sui>(10, |signed| {
        signed.transactions().iter().map(|one| bcs::to_bytes(&one.native).expect("BCS")).collect()
    })
}
