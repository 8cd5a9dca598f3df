//! The spellings of a signature: as hardware wallets, key services and libraries write it.

use countersign_core::Code;
use countersign_evm::Evm;
use countersign_evm::alloy_consensus::Transaction as _;
use countersign_testkit::lines::difference;
use countersign_testkit::{Case, fixture, fixtures};
use serde_json::{Value, json};

use crate::sign::{CASE, attach, prepared, refused};

/// The order of secp256k1 (SEC 2, version 2.0, section 2.4.1), big-endian.
const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

/// r, s and whether y is odd.
#[derive(Clone, Copy)]
pub(crate) struct Ecdsa {
    pub(crate) r: [u8; 32],
    pub(crate) s: [u8; 32],
    pub(crate) odd: bool,
}

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text.trim_start_matches("0x")).unwrap()
}

/// Pads a big-endian integer of RLP, which has no leading zeros, to a word.
fn word(short: &[u8]) -> [u8; 32] {
    let mut word = [0; 32];
    word[32 - short.len()..].copy_from_slice(short);
    word
}

/// The last three items of an RLP list: y parity (or EIP-155 v), r, s. Each is a byte below 0x80, or a short string.
fn last_three(signed: &[u8]) -> (Vec<u8>, [u8; 32], [u8; 32]) {
    let start = usize::from(signed[0] == 0x02);
    let mut at = start + 1 + if signed[start] > 0xf7 { usize::from(signed[start] - 0xf7) } else { 0 };
    let mut items = Vec::new();
    while at < signed.len() {
        let (skip, len) = match signed[at] {
            0..=0x7f => (0, 1),
            short @ 0x80..=0xb7 => (1, usize::from(short - 0x80)),
            long @ 0xb8..=0xbf => {
                let width = usize::from(long - 0xb7);
                (1 + width, signed[at + 1..=at + width].iter().fold(0, |len, byte| len << 8 | usize::from(*byte)))
            }
            // The access list is empty.
            list => (1, usize::from(list - 0xc0)),
        };
        items.push(signed[at + skip..at + skip + len].to_vec());
        at += skip + len;
    }
    let [v, r, s] = items.last_chunk().unwrap();
    (v.clone(), word(r), word(s))
}

impl Ecdsa {
    /// Returns the signature in a transaction that an outside library signed.
    fn from_artefact(part: &Value) -> Option<Self> {
        if let Some(text) = part["signature"].as_str() {
            let bytes = bytes(text);
            return Some(Self { r: bytes[..32].try_into().unwrap(), s: bytes[32..64].try_into().unwrap(), odd: bytes[64] == 28 });
        }
        let (v, r, s) = last_three(&bytes(part["signed"].as_str()?));
        // EIP-1559: 0 or 1, zero as the empty string; EIP-155: 35 or 36 and twice the chain id.
        let odd = match v.as_slice() {
            [] => false,
            [1] => true,
            v => v[v.len() - 1] % 2 == 0,
        };
        Some(Self { r, s, odd })
    }

    pub(crate) fn joined(&self, v: u8) -> String {
        format!("{}{}{v:02x}", hex::encode(self.r), hex::encode(self.s))
    }

    /// EIP-2098: the parity in the highest bit of s.
    fn compact(&self) -> String {
        let mut s = self.s;
        assert!(s[0] < 0x80, "s is low");
        s[0] |= u8::from(self.odd) << 7;
        format!("{}{}", hex::encode(self.r), hex::encode(s))
    }

    pub(crate) fn spellings(&self) -> [String; 5] {
        let odd = u8::from(self.odd);
        [
            format!("0x{}", self.joined(27 + odd)),
            format!("0x{}", self.joined(odd)),
            self.joined(27 + odd).to_uppercase(),
            format!("0x{}", self.compact()),
            self.compact(),
        ]
    }

    /// A sequence of two integers, as key services return it.
    fn der(&self) -> Vec<u8> {
        let integer = |word: &[u8; 32]| {
            let digits: Vec<u8> = word.iter().copied().skip_while(|digit| *digit == 0).collect();
            let digits = if digits[0] >= 0x80 { [vec![0], digits].concat() } else { digits };
            [vec![0x02, u8::try_from(digits.len()).unwrap()], digits].concat()
        };
        let body = [integer(&self.r), integer(&self.s)].concat();
        [vec![0x30, u8::try_from(body.len()).unwrap()], body].concat()
    }

    /// The other signature of the same message: n - s, and the other parity.
    fn high(&self) -> Self {
        let order = bytes(ORDER);
        let mut s = [0; 32];
        let mut borrow = 0;
        for index in (0..32).rev() {
            let digit = i16::from(order[index]) - i16::from(self.s[index]) - borrow;
            borrow = i16::from(digit < 0);
            s[index] = u8::try_from(digit.rem_euclid(256)).unwrap();
        }
        Self { s, odd: !self.odd, ..*self }
    }
}

/// The signatures of a case, by the names of the requests.
pub(crate) fn signatures(case: &Case) -> Vec<(String, Ecdsa)> {
    let expect = case.expect();
    let parts = expect["artefacts"].as_object().unwrap();
    parts.iter().filter_map(|(name, part)| Ecdsa::from_artefact(part).map(|signature| (name.clone(), signature))).collect()
}

pub(crate) fn object(signatures: &[(String, Ecdsa)], spelling: usize) -> Value {
    Value::Object(signatures.iter().map(|(name, signature)| (name.clone(), Value::from(signature.spellings()[spelling].clone()))).collect())
}

#[test]
fn outside_signatures_in_every_spelling_give_the_same_artefacts() {
    let mut signed = 0;
    for case in fixtures::<Evm>().unwrap() {
        let signatures = signatures(&case);
        if signatures.is_empty() {
            continue;
        }
        signed += 1;
        for spelling in 0..5 {
            let (artefacts, warnings) =
                attach(&case, &object(&signatures, spelling)).unwrap_or_else(|refusal| panic!("{}: {refusal}", case.id));
            assert_eq!(difference(&case.expect()["artefacts"], &artefacts, ""), None, "{}", case.id);
            assert!(!warnings.contains(&"contract_signature_unverified"), "{}", case.id);
        }
    }
    assert!(signed > 80, "only {signed} signed cases");
}

/// Hardware wallets, key services and libraries write the same signature in their own ways. Each comes out as the fixture's.
#[test]
fn signatures_as_signers_write_them_give_the_same_artefacts() {
    let mut signed = 0;
    for case in fixtures::<Evm>().unwrap() {
        let signatures = signatures(&case);
        let chain_id = prepared(&case).payloads().calls.first().and_then(|call| call.transaction.transaction.chain_id());
        let Some(chain_id) = chain_id.filter(|_| !signatures.is_empty()) else { continue };
        signed += 1;
        let wanted = case.expect()["artefacts"].clone();
        let number = |word: [u8; 32]| hex::encode(word);
        let spell: [&dyn Fn(&Ecdsa) -> Value; 11] = [
            // r and s alone, and the form with high s, whose parity is the other one.
            &|one| json!(format!("{}{}", number(one.r), number(one.s))),
            &|one| json!(format!("0x{}{}", number(one.r), number(one.high().s))),
            &|one| json!(one.high().joined(27 + u8::from(one.high().odd))),
            // A parity that is wrong.
            &|one| json!(one.joined(27 + u8::from(!one.odd))),
            // EIP-155, whole and cut to its last byte.
            &|one| {
                let v = (35 + 2 * chain_id + u64::from(one.odd)).to_be_bytes();
                json!(format!("{}{}{}", number(one.r), number(one.s), hex::encode(v).trim_start_matches("00")))
            },
            &|one| json!(one.joined((35 + 2 * chain_id + u64::from(one.odd)).to_le_bytes()[0])),
            // Objects of libraries.
            &|one| json!({ "r": format!("0x{}", number(one.r)), "s": format!("0x{}", number(one.s)), "v": 27 + u8::from(one.odd) }),
            &|one| json!(json!({ "r": number(one.r), "s": number(one.s), "v": format!("{:x}", 27 + u8::from(one.odd)) }).to_string()),
            &|one| json!({ "yParity": u8::from(one.odd), "s": number(one.high().s), "r": number(one.r).trim_start_matches('0') }),
            &|one| json!({ "r": number(one.r), "s": number(one.s), "recovery": format!("{:#x}", u8::from(one.odd)) }),
            &|one| json!(format!("\n{} \r\n", hex::encode_upper(one.der()))),
        ];
        for spell in spell {
            let given = signatures.iter().map(|(name, signature)| (name.clone(), spell(signature))).collect();
            let (artefacts, warnings) = attach(&case, &Value::Object(given)).unwrap_or_else(|refusal| panic!("{}: {refusal}", case.id));
            assert_eq!(difference(&wanted, &artefacts, ""), None, "{}", case.id);
            assert!(!warnings.contains(&"contract_signature_unverified"), "{}", case.id);
        }
    }
    assert!(signed > 80, "only {signed} signed cases");
}

#[test]
fn refuses_another_form_or_length() {
    let case = fixture::<Evm>(CASE);
    let (_, signature) = signatures(&case).into_iter().find(|(name, _)| name == "initiate").unwrap();
    let odd = u8::from(signature.odd);
    let whole = signature.joined(27 + odd);
    let at = "/signatures/initiate".to_owned();
    for (text, code) in [
        (String::new(), Code::SignatureMalformed),
        ("0x".to_owned(), Code::SignatureMalformed),
        (whole[..128].to_owned() + "0", Code::SignatureMalformed),
        (whole[..126].to_owned(), Code::SignatureMalformed),
        (format!("{whole}00"), Code::SignatureMalformed),
        (format!("{} ", &whole[..129]), Code::SignatureMalformed),
        (format!("{} {}", &whole[..64], &whole[65..]), Code::HexDigit),
        (format!("0x{}g", &whole[..129]), Code::HexDigit),
        (signature.joined(2), Code::SignatureMalformed),
        (signature.joined(26), Code::SignatureMalformed),
        (signature.joined(29), Code::SignatureMalformed),
        // EIP-155's v of another chain.
        (signature.joined(37 + odd), Code::SignatureMalformed),
        (signature.joined(255), Code::SignatureMalformed),
    ] {
        assert_eq!(refused(&case, &json!({ "initiate": text })), (code, at.clone()), "{text}");
    }
    for value in [json!(null), json!(1), json!(true), json!([1, 2])] {
        assert_eq!(refused(&case, &json!({ "initiate": value })), (Code::WrongType, at.clone()), "{value}");
    }
}
