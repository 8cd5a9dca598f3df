//! Tests the typed-data signature: the contract accepts exactly this one.

use alloy_primitives::{Signature, keccak256};
use alloy_sol_types::SolValue;
use countersign::RequestId;
use countersign::evm::ExternalSignature;

use super::*;

/// Returns the call with which anyone can submit the owner's signature.
fn bring(stage: &Stage, signature: impl Into<Bytes>) -> Htlc::initiateWithSignatureCall {
    let Entry { initiator, redeemer, timelock, amount, .. } = stage.entry();
    Htlc::initiateWithSignatureCall { initiator, redeemer, timelock, amount, secretHash: SECRET_HASH, signature: signature.into() }
}

/// Returns what the wallet submits to the service.
fn submission(signed: &SignedOrder) -> Result<Vec<u8>, Box<dyn Error>> {
    let json = serde_json::to_value(JsonArtefacts::<Evm>(signed.payloads().payloads()))?;
    let printed = json["typed_data"]["signature"].as_str().ok_or("a signed message")?;
    assert_eq!(signed.gasless().ok_or("a signed message")?.signature, printed);
    Ok(hex::decode(printed)?)
}

fn refused(stage: &mut Stage, signature: Vec<u8>) -> TestResult {
    let call = bring(stage, signature);
    let receipt = stage.relay(WBTC, &call)?;
    assert_eq!(receipt.reverted_with(), Some(Htlc::HTLC__InvalidInitiatorSignature {}), "{}", call.signature);
    Ok(())
}

/// Attaches an external signer's signature for the message, on the gasless path.
fn attach(stage: &Stage, signature: &[u8]) -> Result<SignedOrder, Refusal> {
    let mut unsigned = stage.order(WBTC).unsigned(FundingPath::Gasless, &Policy::default())?;
    let signature: ExternalSignature = hex::encode_prefixed(signature).parse()?;
    unsigned.attach(RequestId::TypedData, signature)?;
    Ok(unsigned.finish()?)
}

fn flipped(signature: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = signature.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// Returns a few bits of every byte of r and s, and all of v.
fn sample() -> impl Iterator<Item = usize> {
    (0..512).step_by(3).chain(512..520)
}

#[test]
fn the_digest_is_the_contract_s() -> TestResult {
    for version in ["1", "2", "3", "2.1 (beta)"] {
        let stage = Stage::new()?;
        let mut there = World::new(WBTC.chain_id, START);
        there.deploy_at(WBTC.htlc, &Contract::Htlc { token: Address::with_last_byte(1), version })?;

        let signed = stage.sign(&Order { domain: Some(version), ..stage.order(WBTC) })?;
        let hashes = signed.payloads().payloads().message.as_ref().ok_or("a signed message")?.hashes;
        assert_eq!(hashes.domain_separator, there.read(WBTC.htlc, &Htlc::domainSeparatorCall {})?);
        let kind = there.read(WBTC.htlc, &Htlc::INITIATE_TYPEHASHCall {})?;
        let Entry { redeemer, timelock, amount, .. } = stage.entry();
        assert_eq!(hashes.struct_hash, keccak256((kind, redeemer, timelock, amount, SECRET_HASH).abi_encode()));
        assert_eq!(hashes.digest, keccak256([&[0x19, 0x01], hashes.domain_separator.as_slice(), hashes.struct_hash.as_slice()].concat()));
    }
    Ok(())
}

#[test]
fn the_signature_locks_what_the_call_would_have_locked() -> TestResult {
    let mut direct = Stage::new()?;
    let signed = direct.sign(&direct.order(WBTC))?;
    let id = direct.execute(&signed, WBTC)?;

    let mut stage = Stage::new()?;
    stage.approved_before(WBTC, stage.owner.address(), AMOUNT)?;
    let receipt = stage.relay(WBTC, &bring(&stage, submission(&signed)?))?;
    assert_eq!(receipt.event(WBTC.htlc).map(|event: Htlc::Initiated| event.orderId), Some(id));
    assert_eq!(stage.world.order(WBTC.htlc, id)?, stage.entry());
    assert_eq!(stage.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED, MINTED, 0, AMOUNT]));
    assert_eq!(stage.world.native_balance_of(stage.owner.address()), ETHER);
    Ok(())
}

/// The response offers both funding paths, and a wallet might sign both.
#[test]
fn call_and_signature_cannot_both_lock_funds() -> TestResult {
    let mut stage = Stage::new()?;
    let signed = stage.sign(&stage.order(WBTC))?;
    let message = bring(&stage, submission(&signed)?);

    let mut gasless_first = Stage { world: stage.world.clone(), ..Stage::new()? };
    gasless_first.approved_before(WBTC, stage.owner.address(), AMOUNT)?;
    assert!(gasless_first.relay(WBTC, &message)?.is_success());
    let receipts = gasless_first.broadcast(&signed)?;
    assert!(receipts[1].reverted_with::<Htlc::HTLC__DuplicateOrder>().is_some(), "{:?}", receipts[1].outcome);

    stage.execute(&signed, WBTC)?;
    assert_eq!(stage.relay(WBTC, &message)?.reverted_with(), Some(Htlc::HTLC__DuplicateOrder {}));
    for stage in [&stage, &gasless_first] {
        assert_eq!(stage.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED, MINTED, 0, AMOUNT]));
    }
    Ok(())
}

#[test]
fn no_bit_of_the_signature_can_change() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approved_before(WBTC, stage.owner.address(), AMOUNT)?;
    let good = submission(&stage.sign(&stage.order(WBTC))?)?;
    for bit in sample() {
        refused(&mut stage, flipped(&good, bit))?;
    }
    assert!(stage.relay(WBTC, &bring(&stage, good))?.is_success());
    Ok(())
}

/// The contract only accepts r, s and v of 27 or 28. Equivalent signatures are normalized to this form.
#[test]
fn every_spelling_of_the_signature_comes_out_as_the_contract_s() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approved_before(WBTC, stage.owner.address(), AMOUNT)?;
    let good = submission(&stage.sign(&stage.order(WBTC))?)?;
    let signature = Signature::from_raw(&good)?;
    let compact = signature.as_erc2098().to_vec();
    let parity = [&good[..64], &[u8::from(signature.v())]].concat();
    let high = Signature::new(signature.r(), CURVE_ORDER - signature.s(), !signature.v()).as_bytes().to_vec();
    let bare = good[..64].to_vec();
    for spelling in [&compact, &parity, &high, &bare] {
        refused(&mut stage, spelling.clone())?;
        assert_eq!(submission(&attach(&stage, spelling)?)?, good);
    }
    let attached = submission(&attach(&stage, &compact)?)?;
    assert!(stage.relay(WBTC, &bring(&stage, attached))?.is_success());
    Ok(())
}

#[test]
fn what_the_contract_would_refuse_is_not_attached() -> TestResult {
    let stage = Stage::new()?;
    let good = submission(&stage.sign(&stage.order(WBTC))?)?;
    let by_another = stage.thief.sign_digest(keccak256("another digest")).as_bytes().to_vec();
    for bad in sample().step_by(7).map(|bit| flipped(&good, bit)).chain([by_another]) {
        let refusal = attach(&stage, &bad).expect_err("not the owner's signature");
        let codes = [Code::SignatureMismatch, Code::SignatureMalformed];
        assert!(codes.contains(&refusal.code()), "{refusal}");
        assert_eq!(refusal.location(), "");
    }
    Ok(())
}

/// The group order of secp256k1 (SEC 2, section 2.4.1).
const CURVE_ORDER: U256 = U256::from_be_bytes(hex!("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"));
