//! Tests locking funds by a typed-data signature that anyone may submit.

use super::*;

fn refused(stage: &mut Stage, call: &Htlc::initiateWithSignatureCall) -> TestResult {
    let receipt = stage.relay(call)?;
    let expected = Htlc::HTLC__InvalidInitiatorSignature {};
    assert_eq!(receipt.reverted_with(), Some(expected), "{}", call.signature);
    Ok(())
}

#[test]
fn pulls_from_the_signer_whoever_brings_the_signature() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(AMOUNT)?;
    let receipt = stage.relay(&stage.signed_terms())?;
    let id = initiated(&receipt, stage.htlc).orderId;
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
    assert_eq!(stage.world.order(stage.htlc, id)?, open_order(&stage));
    let mut direct = Stage::new()?;
    assert_eq!(id, direct.initiate()?);
    Ok(())
}

#[test]
fn refuses_every_single_flipped_bit() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(AMOUNT)?;
    let good = stage.signed_terms();
    for bit in 0..good.signature.len() * 8 {
        let signature = flip(&good.signature, bit);
        refused(&mut stage, &Htlc::initiateWithSignatureCall { signature, ..good.clone() })?;
    }
    assert!(stage.relay(&good)?.is_success());
    Ok(())
}

#[test]
fn refuses_the_high_s_twin() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(AMOUNT)?;
    let good = stage.signed_terms();
    let digest = stage.digest(&good);
    let twin = high_s(&stage.owner.sign_digest(digest));
    // The signature is valid in every other respect: plain recovery yields the owner.
    assert_eq!(twin.recover_address_from_prehash(&digest)?, stage.owner.address());
    let signature = twin.as_bytes().into();
    refused(&mut stage, &Htlc::initiateWithSignatureCall { signature, ..good })
}

#[test]
fn refuses_other_lengths_and_recovery_ids() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(AMOUNT)?;
    let good = stage.signed_terms();
    let mut raw_parity = good.signature.to_vec();
    raw_parity[64] -= 27;
    let longer = [good.signature.as_ref(), &[0]].concat();
    for bytes in [&[][..], &good.signature[..64], &longer, &raw_parity, &[0; 65]] {
        let signature = Bytes::copy_from_slice(bytes);
        refused(&mut stage, &Htlc::initiateWithSignatureCall { signature, ..good.clone() })?;
    }
    Ok(())
}

#[test]
fn a_signature_of_nobody_does_not_speak_for_the_zero_address() -> TestResult {
    let mut stage = Stage::new()?;
    let signature = Bytes::from([[0; 64].as_slice(), &[27]].concat());
    let call = Htlc::initiateWithSignatureCall { initiator: Address::ZERO, signature, ..stage.signed_terms() };
    refused(&mut stage, &call)
}

#[test]
fn refuses_other_terms_domains_and_signers() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(MINTED)?;
    let good = stage.signed_terms();
    let others = [
        Htlc::initiateWithSignatureCall { initiator: stage.relayer, ..good.clone() },
        Htlc::initiateWithSignatureCall { initiator: Address::ZERO, ..good.clone() },
        Htlc::initiateWithSignatureCall { redeemer: stage.relayer, ..good.clone() },
        Htlc::initiateWithSignatureCall { timelock: good.timelock + U256::ONE, ..good.clone() },
        Htlc::initiateWithSignatureCall { amount: good.amount + U256::ONE, ..good.clone() },
        Htlc::initiateWithSignatureCall { secretHash: keccak256("another"), ..good.clone() },
    ];
    for call in others {
        refused(&mut stage, &call)?;
    }

    let message = Initiate { redeemer: good.redeemer, timelock: good.timelock, amount: good.amount, secretHash: good.secretHash };
    let here = domain(stage.htlc, "3");
    let domains = [
        domain(stage.htlc, "2"),
        domain(stage.token, "3"),
        Eip712Domain { chain_id: Some(U256::ONE), ..here.clone() },
        Eip712Domain { name: Some("Htlc".into()), ..here },
    ];
    for domain in domains {
        let signature = stage.owner.sign_digest(message.eip712_signing_hash(&domain)).as_bytes().into();
        refused(&mut stage, &Htlc::initiateWithSignatureCall { signature, ..good.clone() })?;
    }
    Ok(())
}
