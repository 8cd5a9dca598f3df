//! Each text form of a signature that the pages of the families list (`attach_text`): what another library or device writes is attached like
//! the signature of the local key.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::bitcoin::ExternalSignature;
use countersign::{Code, Payload, Policy, RequestId, Unsigned};
use countersign_core::json;
use countersign_json::line::Case;
use countersign_testkit::lines::accepted_case;

/// An order that the key of its case has signed, and the same order without signatures.
struct Signed {
    whole: Unsigned,
    open: Unsigned,
}

fn signed(id: &str) -> Signed {
    let case = accepted_case(id);
    let value = json::parse(case.input.as_bytes()).unwrap();
    let read = Case::from_value(&value).unwrap();
    let (whole, is_signed) = read.run(case.registry, &Policy::default()).unwrap();
    assert!(is_signed && whole.missing().is_empty(), "{id}");
    Signed { whole, open: read.prepare(case.registry, &Policy::default()).unwrap() }
}

impl Signed {
    /// Returns the text of a signature as this library writes it.
    fn text(&self, id: RequestId) -> String {
        self.whole.signatures().into_iter().find(|(request, _)| *request == id).unwrap().1
    }

    /// Attaches a signature in another form, which must be the one that the key has made.
    fn takes(&mut self, id: RequestId, form: &str) {
        self.open.attach_text(id, form).unwrap_or_else(|refusal| panic!("{form}: {refusal}"));
        assert!(!self.open.missing().contains(&id), "{form}");
        let text = self.open.signatures().into_iter().find(|(request, _)| *request == id).unwrap().1;
        assert_eq!(text, self.text(id), "{form}");
    }
}

/// The hex of r, s and v of a signature of EVM or Tron.
fn parts(text: &str) -> (String, String, u8) {
    let hex = text.trim_start_matches("0x");
    (hex[..64].to_owned(), hex[64..128].to_owned(), u8::from_str_radix(&hex[128..], 16).unwrap())
}

/// DER of r and s, each 32 bytes in hex.
fn der(r: &str, s: &str) -> Vec<u8> {
    let compact = [hex::decode(r).unwrap(), hex::decode(s).unwrap()].concat();
    let signature = countersign::bitcoin::bitcoin::secp256k1::ecdsa::Signature::from_compact(&compact).unwrap();
    signature.serialize_der().to_vec()
}

const OF_KEYS: [(&str, RequestId); 2] =
    [("evm-token-approval-exact", RequestId::Initiate), ("tron-token-approval-exact", RequestId::Initiate)];

#[test]
fn evm_and_tron_take_hex_of_r_s_and_v() {
    for (id, request) in OF_KEYS {
        let mut order = signed(id);
        let text = order.text(request);
        let (r, s, v) = parts(&text);
        let parity = v - 27;
        let compact = {
            let mut s = hex::decode(&s).unwrap();
            s[0] |= parity << 7;
            hex::encode(s)
        };
        for form in [
            text.clone(),
            text.trim_start_matches("0x").to_uppercase(),
            format!("0x{r}{s}{parity:02x}"),
            format!("{r}{compact}"),
            format!("0x{}", hex::encode(der(&r, &s))),
        ] {
            order.takes(request, &form);
        }
    }
}

#[test]
fn evm_and_tron_take_objects_with_r_and_s() {
    for (id, request) in OF_KEYS {
        let mut order = signed(id);
        let (r, s, v) = parts(&order.text(request));
        let parity = v - 27;
        for form in [
            format!(r#"{{"r":"0x{r}","s":"0x{s}","v":{v}}}"#),
            format!(r#"{{"r":"0x{r}","s":"0x{s}","yParity":"0x{parity}"}}"#),
            format!(r#"{{"r":"0x{r}","s":"0x{s}","recovery":{parity}}}"#),
        ] {
            order.takes(request, &form);
        }
    }
}

#[test]
fn evm_and_tron_take_objects_with_a_public_key() {
    for (id, request) in OF_KEYS {
        let mut order = signed(id);
        let (r, s, _) = parts(&order.text(request));
        let secret = accepted_case(id).secret_key().unwrap();
        let secret: countersign::bitcoin::bitcoin::secp256k1::SecretKey = secret.trim_start_matches("0x").parse().unwrap();
        let key = secret.public_key(&countersign::bitcoin::bitcoin::secp256k1::Secp256k1::new());
        order.takes(request, &format!(r#"{{"signature":"0x{r}{s}","public_key":"0x{key}"}}"#));
    }
}

#[test]
fn evm_takes_the_signature_of_a_contract_wallet() {
    let request = RequestId::TypedData;
    for form in ["contract:0x0102", "contract:0102", r#"{"contract":"0x0102"}"#] {
        let mut order = signed("evm-token-approval-exact");
        order.open.attach_text(request, form).unwrap_or_else(|refusal| panic!("{form}: {refusal}"));
        let kept = order.open.signatures().into_iter().find(|(id, _)| *id == request).unwrap().1;
        assert_eq!(kept, "contract:0x0102");
        assert!(order.open.warnings().list().iter().any(|warning| warning.code() == Code::ContractSignatureUnverified), "{form}");
    }
    // Without the mark, so many bytes cannot be a key's, and the refusal names the form.
    let refusal = signed("evm-token-approval-exact").open.attach_text(request, &"01".repeat(130)).unwrap_err();
    assert!(refusal.code() == Code::SignatureMalformed && refusal.reason().contains(r#"{"contract": "0x.."}"#), "{refusal}");
}

/// The felts of a signature, which this library writes in decimal.
fn felts(text: &str) -> Vec<countersign::starknet::Felt> {
    text.split(',').map(|felt| countersign::starknet::Felt::from_dec_str(felt).unwrap()).collect()
}

#[test]
fn starknet_takes_felts_joined_by_commas() {
    let mut order = signed("starknet-public-key");
    let text = order.text(RequestId::Invoke);
    let hex: Vec<_> = felts(&text).iter().map(|felt| format!("{felt:#x}")).collect();
    for form in [text.clone(), text.replace(',', ", "), hex.join(",")] {
        order.takes(RequestId::Invoke, &form);
    }
}

#[test]
fn starknet_takes_an_array_of_felts() {
    let mut order = signed("starknet-public-key");
    let text = order.text(RequestId::Invoke);
    let quoted = |felts: Vec<String>| format!("[{}]", felts.iter().map(|felt| format!("\"{felt}\"")).collect::<Vec<_>>().join(","));
    for form in [
        quoted(felts(&text).iter().map(|felt| format!("{felt:#x}")).collect()),
        quoted(text.split(',').map(str::to_owned).collect()),
        format!(" [{text}]"),
    ] {
        order.takes(RequestId::Invoke, &form);
    }
}

#[test]
fn starknet_takes_an_object_with_r_and_s() {
    let mut order = signed("starknet-public-key");
    let felts = felts(&order.text(RequestId::Invoke));
    for form in [
        format!(r#"{{"r":"{:#x}","s":"{:#x}"}}"#, felts[0], felts[1]),
        format!(r#"{{"r":"{}","s":"{}","recovery":1}}"#, felts[0], felts[1]),
    ] {
        order.takes(RequestId::Invoke, &form);
    }
}

#[test]
fn solana_takes_base58_base64_and_hex() {
    let mut order = signed("solana-native-v0");
    let text = order.text(RequestId::Transaction);
    let bytes = bs58::decode(&text).into_vec().unwrap();
    for form in [text.clone(), STANDARD.encode(&bytes), hex::encode(&bytes), format!("0x{}", hex::encode_upper(&bytes))] {
        order.takes(RequestId::Transaction, &form);
    }
}

#[test]
fn sui_takes_base64_of_flag_signature_and_key() {
    for id in ["sui-native", "sui-secp256k1", "sui-secp256r1"] {
        let mut order = signed(id);
        let text = order.text(RequestId::Transaction);
        assert!([97, 98].contains(&STANDARD.decode(&text).unwrap().len()), "{text}");
        order.takes(RequestId::Transaction, &text);
    }
}

#[test]
fn bitcoin_takes_a_bip_340_signature() {
    let mut order = signed("bitcoin-p2tr");
    let text = order.text(RequestId::Input(0));
    assert_eq!(text.len(), 128);
    for form in [text.clone(), format!("0x{}", text.to_uppercase()), format!("{}\n{}", &text[..64], &text[64..])] {
        order.takes(RequestId::Input(0), &form);
    }
}

#[test]
fn bitcoin_takes_an_ecdsa_signature_with_its_key() {
    let mut order = signed("bitcoin-p2wpkh");
    let text = order.text(RequestId::Input(0));
    let (_, key) = text.split_once(':').unwrap();
    let Ok(ExternalSignature::Ecdsa { signature, .. }) = text.parse() else { panic!("{text}") };
    let (der, compact) = (hex::encode(signature.serialize_der()), hex::encode(signature.serialize_compact()));
    for form in [text.clone(), format!("{der}:{key}"), format!("{compact}:{key}"), format!("0x{der}01:{key}")] {
        order.takes(RequestId::Input(0), &form);
    }
}

#[test]
fn bitcoin_takes_a_psbt() {
    let mut order = signed("bitcoin-p2tr");
    let Payload::Bitcoin(payload) = order.open.requests().remove(0).payload else { panic!("not a payload of Bitcoin") };
    let mut psbt = (*payload.psbt).clone();
    let signature = countersign::bitcoin::bitcoin::taproot::Signature::from_slice(&hex::decode(order.text(RequestId::Input(0))).unwrap());
    psbt.inputs[0].tap_key_sig = Some(signature.unwrap());
    for form in [psbt.to_string(), hex::encode(psbt.serialize())] {
        order.takes(RequestId::Input(0), &form);
    }
}

#[test]
fn bitcoin_takes_the_signed_transaction() {
    let mut order = signed("bitcoin-p2wpkh");
    let transaction = signed("bitcoin-p2wpkh").whole.finish().unwrap().transactions().remove(0);
    for form in [hex::encode(&transaction.bytes), STANDARD.encode(&transaction.bytes)] {
        order.takes(RequestId::Input(0), &form);
    }
}
