//! Proving a signature: the signer is known, so its parity and the low form of s are found, and everything else is refused with who
//! signed, and over what.

use alloy_primitives::{Address, B256, Signature, U256, hex, keccak256};
use countersign_core::{Code, Refusal};
use k256::sha2::{Digest as _, Sha256};

use super::external::{ExternalSignature, Stated};
use crate::ecdsa;

/// What a signer was asked to sign.
pub(crate) struct Asked<'a> {
    /// The account that has to sign.
    pub(crate) signer: Address,
    /// The digest that has to be signed.
    pub(crate) digest: B256,
    /// The bytes that the digest is computed from.
    pub(crate) message: &'a [u8],
    /// The EIP-155 chain id that v may state.
    pub(crate) chain_id: Option<u64>,
    /// The method of wallets that signs it.
    pub(crate) method: &'static str,
    /// The family's form of an address.
    pub(crate) format: fn(Address) -> String,
}

/// Returns the canonical form of a signature, with low s and the parity that recovers the signer.
///
/// The signer and the digest decide which form is right, and only one is: r and s of another signer or digest recover the signer in none.
/// So nothing that the signer wrote in addition to r and s has to be believed.
///
/// # Errors
///
/// [`Code::SignatureMalformed`] for a v that signers on the chain never write; [`Code::SignatureMismatch`], which names who signed, and over what;
/// [`Code::KeyMismatch`] if the public key that came with the signature is not the signer's.
pub(crate) fn prove(
    given: &ExternalSignature,
    asked: &Asked<'_>,
    others: impl IntoIterator<Item = (B256, String)>,
) -> Result<Signature, Refusal> {
    let signature = match given {
        ExternalSignature::Ecdsa(signature) => signature,
        ExternalSignature::Stated(stated) => {
            check_stated(stated, asked)?;
            stated.signature()
        }
        ExternalSignature::Contract(_) => return Err(not_a_contract()),
    };
    find(signature, &asked.digest, asked.signer).ok_or_else(|| mismatch(signature, asked, others))
}

/// Refuses a contract wallet's signature over a payload that a key signs.
pub(crate) fn not_a_contract() -> Refusal {
    Refusal::new(Code::SignatureMalformed, "").with_reason("this payload is signed by a key, not by a contract")
}

/// Returns whether the bytes are a key's signature in the form that the contract takes, r‖s‖v with low s, of this signer and digest.
#[must_use]
pub fn is_by_key(signer: Address, signature: &[u8], digest: &B256) -> bool {
    // The library reads further forms of v, from which the contract recovers nobody.
    let has_v = matches!(signature, [.., 27 | 28]);
    let read = Signature::try_from(signature).ok().filter(|signature| has_v && signature.normalize_s().is_none());
    read.is_some_and(|signature| is_of(signer, &signature, digest))
}

impl ExternalSignature {
    /// Returns the canonical form of a key's signature if it is this signer's over a digest, whatever parity it states or none. `None` for
    /// another signer, for a v that states a chain, and for a contract.
    #[must_use]
    pub fn by(&self, signer: Address, digest: &B256) -> Option<Signature> {
        match self {
            Self::Ecdsa(signature) => find(signature, digest, signer),
            Self::Stated(stated) if stated.v().is_empty() => find(stated.signature(), digest, signer),
            _ => None,
        }
    }
}

/// Returns whether a signature in its canonical form is the signer's over a digest.
pub(crate) fn is_of(signer: Address, signature: &Signature, digest: &B256) -> bool {
    ecdsa::recover(signature, digest) == Some(signer)
}

fn find(signature: &Signature, digest: &B256, signer: Address) -> Option<Signature> {
    readings(signature).find(|reading| is_of(signer, reading, digest))
}

/// Returns what r, s and a parity can mean, all with low s, as nodes require it (EIP-2): the stated parity first, and then the other.
///
/// The compact form of EIP-2098 has the parity in the highest bit of s. In 64 bytes of r and s alone the same bit belongs to s.
fn readings(signature: &Signature) -> impl Iterator<Item = Signature> {
    let both = |signature: Signature| {
        let low = signature.normalized_s();
        [low, low.with_parity(!low.v())]
    };
    let top = U256::ONE.wrapping_shl(255);
    let whole = signature.v().then(|| both(Signature::new(signature.r(), signature.s() | top, false)));
    both(*signature).into_iter().chain(whole.into_iter().flatten())
}

/// Requires that v is one that a signer writes for this chain, and that a public key is the signer's.
fn check_stated(stated: &Stated, asked: &Asked<'_>) -> Result<(), Refusal> {
    if let Some(account) = stated.account()
        && account != asked.signer
    {
        let key = |account| format!("the public key of {}", (asked.format)(account));
        let refusal = Refusal::new(Code::KeyMismatch, "").with_reason("the public key beside the signature is not the signer's");
        return Err(refusal.with_expected(key(asked.signer)).with_actual(key(account)));
    }
    let first = asked.chain_id.and_then(|chain_id| chain_id.checked_mul(2)?.checked_add(35));
    let of_chain = |v: u64| match first {
        // Some signers keep the last byte of v alone.
        Some(first) => [first, first.saturating_add(1)].into_iter().any(|of_chain| v == of_chain || v == of_chain & 0xff),
        None => false,
    };
    match stated.v() {
        [] => Ok(()),
        readings if readings.iter().any(|v| matches!(v, 0 | 1 | 27 | 28) || of_chain(*v)) => Ok(()),
        [v, ..] => {
            let expected = match first {
                Some(first) => format!("v of 0, 1, 27 or 28, or with the chain id {first} or {}", first.saturating_add(1)),
                None => "v of 0, 1, 27 or 28".to_owned(),
            };
            Err(Refusal::new(Code::SignatureMalformed, "").with_expected(expected).with_actual(*v))
        }
    }
}

/// Refuses a signature, and finds out whose it is or what it is over. `others` are the digests of the order's other payloads.
fn mismatch(signature: &Signature, asked: &Asked<'_>, others: impl IntoIterator<Item = (B256, String)>) -> Refusal {
    let Asked { signer, digest, format, .. } = asked;
    let expected = format!("a signature of {} over {digest}", format(*signer));
    let refusal = Refusal::new(Code::SignatureMismatch, "").with_expected(expected);
    let found = others.into_iter().chain(mistakes(asked)).find(|(other, _)| find(signature, other, *signer).is_some());
    if let Some((other, reason)) = found {
        return refusal.with_reason(reason).with_actual(format!("a signature of {} over {other}", format(*signer)));
    }
    let mut signers: Vec<_> = readings(signature).take(2).filter_map(|reading| ecdsa::recover(&reading, digest)).map(format).collect();
    signers.dedup();
    match signers.as_slice() {
        [] => refusal.with_actual("a signature that no account can have made over it"),
        signers => refusal.with_actual(format!("a signature of {}, or over something else", signers.join(" or "))),
    }
}

/// Returns the digests that signers sign by mistake, each with what went wrong.
fn mistakes(asked: &Asked<'_>) -> impl Iterator<Item = (B256, String)> {
    let Asked { digest, message, method, .. } = *asked;
    let texts = [digest.to_vec(), hex::encode_prefixed(digest).into_bytes(), hex::encode(digest).into_bytes(), message.to_vec()];
    let prefixes = [("Ethereum", "EIP-191", "personal_sign"), ("TRON", "TRON", "signMessageV2")];
    let prefixed = prefixes.into_iter().flat_map(move |(chain, prefix, wrong)| {
        let reason =
            format!("the signer signed it with the prefix of {prefix} messages, as {wrong} does, which nobody accepts: use {method}");
        let hash = move |text: &Vec<u8>| keccak256([format!("\x19{chain} Signed Message:\n{}", text.len()).as_bytes(), text].concat());
        texts.each_ref().map(hash).map(|digest| (digest, reason.clone()))
    });
    let sha256 = |bytes: &[u8]| B256::new(Sha256::digest(bytes).into());
    let hashed = [keccak256(digest), sha256(digest.as_slice()), sha256(message), keccak256(message)];
    let reason = "the signer hashed once more, or with another function: pass the digest to it as a digest, not as a message";
    prefixed.chain(hashed.map(|digest| (digest, reason.to_owned())))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::uint;

    use super::super::Key;
    use super::*;

    const ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);
    const MESSAGE: &[u8] = b"what is signed";

    fn asked(signer: Address) -> Asked<'static> {
        let format = |address: Address| address.to_string();
        Asked { signer, digest: keccak256(MESSAGE), message: MESSAGE, chain_id: Some(8453), method: "the_method", format }
    }

    fn prove_text(text: &str, asked: &Asked<'_>) -> Result<Signature, Refusal> {
        text.parse().and_then(|given| prove(&given, asked, []))
    }

    fn keys() -> impl Iterator<Item = Key> {
        (1..=20).map(|byte| Key::from_bytes(&[byte; 32]).unwrap())
    }

    /// Keys enough for both parities, and for r and s with every highest bit.
    #[test]
    fn every_spelling_is_proven_and_becomes_the_same_signature() {
        for key in keys() {
            let asked = asked(key.address());
            let right = key.sign(&asked.digest).unwrap();
            let (r, s, odd) = (right.r(), right.s(), u64::from(right.v()));
            let high = ORDER.wrapping_sub(s);
            let word = |number: U256| format!("{number:064x}");
            let mut texts = vec![hex::encode(right.as_erc2098()), format!("\n0x{}{} \r\n", word(r), word(s).to_uppercase())];
            for s in [s, high] {
                texts.push(format!("{}{}", word(r), word(s)));
                texts.push(format!("0X{}{}", word(r), word(s)).to_uppercase());
                for v in ["00", "01", "1b", "1c", "422d", "422e", "2d", "2e"] {
                    texts.push(format!("{}{}{v}", word(r), word(s)));
                }
                texts.push(format!("{{\"s\": \"{s:#x}\", \"v\": \"0x1b\", \"r\": \"{r:x}\"}}"));
                texts.push(format!("{{\"r\": \"{r}\", \"s\": \"{s}\", \"recovery\": {odd}}}"));
                texts.push(format!("{{\"r\": {r}, \"s\": {s}, \"yParity\": \"0x1\"}}"));
                for v in [odd, 27 + odd, 16_941 + odd, 45 + odd] {
                    texts.push(format!("{{\"r\": \"{r:#x}\", \"s\": \"{s:#x}\", \"v\": {v}, \"yParity\": null}}"));
                    texts.push(format!("{{\"r\": \"{r:x}\", \"s\": \"{s:x}\", \"v\": \"{v}\"}}"));
                    texts.push(format!("{{\"r\": \"{r:x}\", \"s\": \"{s:x}\", \"v\": \"{v:x}\"}}"));
                }
            }
            for text in texts {
                assert_eq!(prove_text(&text, &asked).as_ref(), Ok(&right), "{text}");
            }
        }
    }

    /// DER as `k256` writes it: r and s with a zero in front where their highest bit is set.
    #[test]
    fn der_of_a_key_service_is_proven() {
        for key in keys() {
            let asked = asked(key.address());
            let right = key.sign(&asked.digest).unwrap();
            for s in [right.s(), ORDER.wrapping_sub(right.s())] {
                let signature = k256::ecdsa::Signature::from_scalars(right.r().to_be_bytes::<32>(), s.to_be_bytes::<32>()).unwrap();
                let der = signature.to_der();
                assert_eq!(prove_text(&hex::encode(der.as_bytes()), &asked), Ok(right));
                for cut in 1..der.as_bytes().len() {
                    assert!(prove_text(&hex::encode(&der.as_bytes()[..cut]), &asked).is_err());
                }
            }
        }
    }

    #[test]
    fn a_public_key_has_to_be_the_signers() {
        let (key, other) = (Key::from_bytes(&[7; 32]).unwrap(), Key::from_bytes(&[8; 32]).unwrap());
        let asked = asked(key.address());
        let right = key.sign(&asked.digest).unwrap();
        let public = |byte: u8, compress: bool| {
            let secret = k256::SecretKey::from_slice(&[byte; 32]).unwrap();
            hex::encode(k256::elliptic_curve::sec1::ToEncodedPoint::to_encoded_point(&secret.public_key(), compress).as_bytes())
        };
        let spki = |byte| format!("3056301006072a8648ce3d020106052b8104000a034200{}", public(byte, false));
        let text = |public: &str| format!("{{\"signature\": \"{}\", \"public_key\": \"{public}\"}}", hex::encode(right.as_bytes()));
        for form in [public(7, true), public(7, false), public(7, false)[2..].to_owned(), spki(7)] {
            assert_eq!(prove_text(&text(&form), &asked), Ok(right), "{form}");
        }
        for form in [public(8, true), public(8, false), spki(8)] {
            let refusal = prove_text(&text(&form), &asked).unwrap_err();
            assert_eq!(refusal.code(), Code::KeyMismatch);
            assert_eq!(refusal.reason(), "the public key beside the signature is not the signer's");
            assert!(refusal.to_string().contains(&other.address().to_string()), "{refusal}");
        }
        for form in ["", "02", &public(7, true)[2..], &format!("05{}", "00".repeat(32))] {
            assert_eq!(prove_text(&text(form), &asked).unwrap_err().code(), Code::SignatureMalformed, "{form}");
        }
    }

    #[test]
    fn a_v_of_another_chain_is_refused() {
        let key = Key::from_bytes(&[7; 32]).unwrap();
        let mut asked = asked(key.address());
        let right = hex::encode(&key.sign(&asked.digest).unwrap().as_bytes()[..64]);
        for v in ["02", "1a", "1d", "22", "23", "25", "2c", "2f", "ff", "422c", "422f", "1c00", "ffffffffffffffff"] {
            assert_eq!(prove_text(&format!("{right}{v}"), &asked).unwrap_err().code(), Code::SignatureMalformed, "{v}");
        }
        asked.chain_id = None;
        assert_eq!(prove_text(&format!("{right}2d"), &asked).unwrap_err().code(), Code::SignatureMalformed);
        // The largest chain ids have no v of 64 bits.
        asked.chain_id = Some(u64::MAX);
        assert_eq!(prove_text(&format!("{right}2d"), &asked).unwrap_err().code(), Code::SignatureMalformed);
        assert!(prove_text(&format!("{right}1b"), &asked).is_ok());
    }

    /// Libraries write v under several names at once: ethers with the parity and with the chain.
    #[test]
    fn the_names_of_v_must_agree() {
        let key = Key::from_bytes(&[7; 32]).unwrap();
        let asked = asked(key.address());
        let right = key.sign(&asked.digest).unwrap();
        let (odd, other) = (u64::from(right.v()), u64::from(!right.v()));
        let text = |v: &str| format!("{{\"r\": \"{:#x}\", \"s\": \"{:#x}\", {v}}}", right.r(), right.s());
        let chain = 16_941 + odd;
        for v in [
            format!("\"v\": {}, \"yParity\": {odd}, \"networkV\": {chain}", 27 + odd),
            format!("\"networkV\": \"{chain}\", \"recoveryParam\": {odd}, \"v\": {chain}"),
            format!("\"v\": \"{:x}\", \"y_parity\": \"0x{odd}\", \"networkV\": null", 27 + odd),
            format!("\"v\": \"{}\", \"recovery\": {odd}", 27 + odd),
        ] {
            assert_eq!(prove_text(&text(&v), &asked), Ok(right), "{v}");
        }
        for (v, at) in [
            (format!("\"v\": {}, \"yParity\": {other}", 27 + odd), "/yParity"),
            (format!("\"recovery\": {other}, \"yParity\": {odd}"), "/yParity"),
            (format!("\"v\": {chain}, \"recovery_param\": {other}"), "/recovery_param"),
            (format!("\"v\": {chain}, \"network_v\": {}", chain + 2), "/network_v"),
            (format!("\"v\": {}, \"yParity\": {odd}, \"networkV\": {}", 27 + odd, 16_941 + other), "/networkV"),
        ] {
            let refusal = prove_text(&text(&v), &asked).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::SignatureMalformed, at), "{v}: {refusal}");
            assert!(refusal.reason().contains("contradict"), "{refusal}");
        }
        // Whichever name states another chain, it is another chain.
        for v in [37 + odd, 2 + odd] {
            let refusal = prove_text(&text(&format!("\"yParity\": {odd}, \"networkV\": {v}")), &asked).unwrap_err();
            assert_eq!(refusal.code(), Code::SignatureMalformed, "{v}");
        }
    }

    #[test]
    fn a_refusal_says_who_signed_and_over_what() {
        let (key, other) = (Key::from_bytes(&[7; 32]).unwrap(), Key::from_bytes(&[8; 32]).unwrap());
        let asked = asked(key.address());
        let refused = |signature: Signature, others: Vec<(B256, String)>| prove(&signature.into(), &asked, others).unwrap_err();
        let stranger = refused(other.sign(&asked.digest).unwrap(), Vec::new());
        assert_eq!(stranger.code(), Code::SignatureMismatch);
        assert!(stranger.actual().unwrap().to_string().contains(&other.address().to_string()), "{stranger}");
        let text = hex::encode_prefixed(asked.digest);
        for (digest, says) in [
            (alloy_primitives::eip191_hash_message(asked.digest), "personal_sign"),
            (alloy_primitives::eip191_hash_message(&text), "personal_sign"),
            (alloy_primitives::eip191_hash_message(&text[2..]), "personal_sign"),
            (alloy_primitives::eip191_hash_message(MESSAGE), "personal_sign"),
            (keccak256([b"\x19TRON Signed Message:\n32", asked.digest.as_slice()].concat()), "signMessageV2"),
            (keccak256(asked.digest), "hashed once more"),
            (B256::new(Sha256::digest(asked.digest).into()), "hashed once more"),
            (B256::new(Sha256::digest(MESSAGE).into()), "hashed once more"),
        ] {
            let refusal = refused(key.sign(&digest).unwrap(), Vec::new());
            assert_eq!(refusal.code(), Code::SignatureMismatch);
            assert!(refusal.reason().contains(says), "{refusal}");
            assert!(refusal.actual().unwrap().to_string().contains(&format!("{} over {digest}", key.address())), "{refusal}");
        }
        let elsewhere = B256::repeat_byte(9);
        let refusal = refused(key.sign(&elsewhere).unwrap(), vec![(elsewhere, "the other payload".to_owned())]);
        assert_eq!(refusal.reason(), "the other payload");
        let nobody = refused(Signature::new(U256::ZERO, U256::ZERO, false), Vec::new());
        assert!(nobody.to_string().contains("no account"), "{nobody}");
    }

    #[test]
    fn no_number_is_a_panic() {
        let edges = [U256::ZERO, U256::ONE, ORDER.wrapping_shr(1), ORDER.wrapping_sub(U256::ONE), ORDER, U256::MAX];
        for r in edges {
            for s in edges {
                for odd in [false, true] {
                    assert!(prove(&Signature::new(r, s, odd).into(), &asked(Address::repeat_byte(1)), []).is_err());
                }
            }
        }
    }
}
