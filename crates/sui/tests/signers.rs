//! Signers of Mysten's SDK.
use countersign_core::{Code, RequestId, Role};
use countersign_sui::sui_crypto::ed25519::Ed25519PrivateKey;
use countersign_sui::sui_crypto::secp256k1::Secp256k1PrivateKey;
use countersign_sui::sui_crypto::secp256r1::Secp256r1PrivateKey;
use countersign_sui::sui_crypto::{SignatureError, SuiSigner};
use countersign_sui::sui_sdk_types::{
    Address, Digest, PersonalMessage, SignedTransaction, Transaction, TransactionExpiration, UserSignature,
};
use countersign_sui::{Key, SignerError, Sui, TxContext, UnsignedOrder};
use countersign_testkit::{Case, TestResult, artefacts, fixture, fixtures, key, verified, wallet};

fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Sui>(case).prepare(wallet::<Sui>(case)).expect(&case.id)
}

/// The flag and the 32 bytes of a case's key.
fn secret(case: &Case) -> (u8, [u8; 32]) {
    use bech32::primitives::decode::CheckedHrpstring;
    let text = case.secret_key().expect("a key");
    let Ok(parsed) = CheckedHrpstring::new::<bech32::Bech32>(&text) else {
        let bytes = hex::decode(&text).expect("hex");
        return (0, bytes.try_into().expect("32 bytes"));
    };
    let bytes: Vec<u8> = parsed.byte_iter().collect();
    let (flag, bytes) = bytes.split_first().expect("a flag");
    (*flag, bytes.try_into().expect("32 bytes"))
}

#[test]
fn mysten_keys_make_the_signatures_of_the_fixtures() -> TestResult {
    let mut flags = [0; 3];
    for case in fixtures::<Sui>()?.into_iter().filter(|case| case.secret_key().is_some()) {
        let mut unsigned = prepared(&case);
        let (flag, bytes) = secret(&case);
        match flag {
            0 => unsigned.sign_with(&Ed25519PrivateKey::new(bytes))?,
            1 => unsigned.sign_with(&Secp256k1PrivateKey::new(bytes)?)?,
            _ => unsigned.sign_with(&Secp256r1PrivateKey::new(bytes))?,
        }
        flags[usize::from(flag)] += 1;
        assert_eq!(artefacts(&unsigned), case.expect()["artefacts"], "{}", case.id);
    }
    assert!(flags.iter().all(|count| *count > 0), "{flags:?}");
    Ok(())
}

#[test]
fn a_signature_goes_to_the_request_of_its_account() -> TestResult {
    let case = fixture::<Sui>("sui-native");
    let (_, seed) = secret(&case);
    let (owner, sponsor) = (Ed25519PrivateKey::new(seed), Ed25519PrivateKey::new([7; 32]));
    let TxContext { price, budget, payment, .. } = wallet::<Sui>(&case);
    let gas = TxContext::sponsored(sponsor.public_key().derive_address(), price, budget, payment);
    let mut unsigned = verified::<Sui>(&case).prepare(gas)?;
    unsigned.sign_with(&sponsor)?;
    assert_eq!(unsigned.missing(), [RequestId::Transaction]);
    unsigned.sign_with(&owner)?;
    assert_eq!(unsigned.finish()?.payloads().signatures().len(), 2);
    Ok(())
}

/// An expiration that is never built here, and that a wallet may choose.
#[test]
fn a_wallets_transaction_with_validity_is_matched() -> TestResult {
    let case = fixture::<Sui>("sui-native");
    let (_, seed) = secret(&case);
    let mut transaction = prepared(&case).payloads().transaction();
    transaction.expiration = TransactionExpiration::Validity {
        min_epoch: Some(900),
        max_epoch: Some(905),
        min_timestamp: None,
        max_timestamp: Some(5),
        chain: Digest::new([7; 32]),
        nonce: 42,
        allowed_proposers: None,
    };
    let signatures = vec![Ed25519PrivateKey::new(seed).sign_transaction(&transaction)?];
    assert_eq!(verified::<Sui>(&case).matches(&SignedTransaction { transaction, signatures })?, Role::Initiate);
    Ok(())
}

/// A signer that fails, or that signs something other than the requested transaction.
struct Faulty(Option<Ed25519PrivateKey>);

impl SuiSigner for Faulty {
    fn sign_transaction(&self, transaction: &Transaction) -> Result<UserSignature, SignatureError> {
        let mut transaction = transaction.clone();
        transaction.gas_payment.budget = 0;
        self.0.as_ref().ok_or_else(SignatureError::new)?.sign_transaction(&transaction)
    }

    fn sign_personal_message(&self, _: &PersonalMessage<'_>) -> Result<UserSignature, SignatureError> {
        Err(SignatureError::new())
    }
}

#[test]
fn a_signer_that_does_not_sign_what_was_asked_for_is_refused() {
    let case = fixture::<Sui>("sui-native");
    let (_, seed) = secret(&case);
    let mut unsigned = prepared(&case);
    let refused = |unsigned: &mut UnsignedOrder, signer: &dyn SuiSigner| match unsigned.sign_with(signer) {
        Err(SignerError::Refused(refusal)) => Some((refusal.code(), refusal.actual().map(ToString::to_string))),
        Err(SignerError::Signer(_)) => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut unsigned, &Faulty(None)), None);
    assert_eq!(refused(&mut unsigned, &Faulty(Some(Ed25519PrivateKey::new(seed)))), Some((Code::SignatureMismatch, None)));
    let stranger: Address = Key::from_ed25519_seed(&[8; 32]).address();
    let mismatch = Some((Code::KeyMismatch, Some(format!("the key of {stranger}"))));
    assert_eq!(refused(&mut unsigned, &Ed25519PrivateKey::new([8; 32])), mismatch);
    assert_eq!(unsigned.missing(), [RequestId::Transaction], "a refused signature changes nothing");
    assert!(unsigned.sign(&key::<Sui>(&case)).is_ok());
}
