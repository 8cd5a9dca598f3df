//! The claim of affiliate earnings, compared with its documented layout and a general encoder.
use countersign_core::json::{self, At, Cursor};
use countersign_core::wire::{Earnings, Read};
use countersign_core::{Code, Origin, Refusal, RequestId, Role};
use countersign_evm::alloy_dyn_abi::DynSolValue;
use countersign_evm::alloy_primitives::{Address, U256, hex, keccak256};
use countersign_evm::claim::{Claim, encode};
use countersign_evm::{Key, TxContext};
use countersign_testkit::registry;
use serde_json::{Value, json};

/// The project's own pinned token of ethereum:usdc.
fn token() -> String {
    registry().asset("ethereum:usdc").unwrap().token.as_ref().unwrap().text.clone()
}

fn row() -> Value {
    json!({
        "total_earnings": "15075000000", "total_earnings_usd": "15075", "asset": "ethereum:usdc",
        "affiliate": "0x004Cc75ACF4132Fc08cB6a252E767804F303F729", "token_address": token(),
        "claim_amount": "5075000000", "claim_amount_usd": "5075",
        "claim_signature": format!("0x{}1b", "1234567890abcdef".repeat(8)),
        "claim_contract": "0x5EbEC4D8DA437b2BAD656D43d40fE412bA5D217a",
    })
}

fn claim(row: &Value) -> Result<Option<Claim>, Refusal> {
    let text = row.to_string();
    let value = json::parse(text.as_bytes()).unwrap();
    Claim::from_earnings(&Earnings::read(Cursor::new(&value, At::of("", Origin::Service)))?, registry())
}

#[test]
fn the_calldata_has_the_documented_layout() {
    let claim = claim(&row()).unwrap().unwrap();
    let words = |address: &str| format!("{}{}", "0".repeat(24), address.to_lowercase().trim_start_matches("0x"));
    let expected = [
        "ce2631b8".to_owned(),
        words("0x004Cc75ACF4132Fc08cB6a252E767804F303F729"),
        words(&token()),
        // printf %064x 15075000000: all earnings so far, not only those that are still to be claimed.
        format!("{:0>64}", "3828a3ec0"),
        format!("{:0>64}", "80"),
        format!("{:0>64}", "41"),
        format!("{}1b{}", "1234567890abcdef".repeat(8), "0".repeat(62)),
    ]
    .concat();
    assert_eq!(hex::encode(&claim.call.data), expected);
    assert_eq!((claim.call.data.len(), claim.chain_id, claim.call.value), (260, 1, U256::ZERO));
    assert_eq!(claim.call.to.to_string(), "0x5EbEC4D8DA437b2BAD656D43d40fE412bA5D217a");
    // The selector is that of the documented signature.
    assert_eq!(keccak256("claim((address,address,uint256),bytes)")[..4], claim.call.data[..4]);
}

#[test]
fn the_calldata_is_what_a_general_encoder_writes() {
    for (total, len) in [(U256::ZERO, 0_usize), (U256::MAX, 65), (U256::from(1), 32), (U256::from(7), 64)] {
        let (to, token, signature) = (Address::repeat_byte(0xa1), Address::repeat_byte(0xb2), vec![0xc3; len]);
        let tuple = DynSolValue::Tuple(vec![to.into(), token.into(), total.into()]);
        let general = DynSolValue::Tuple(vec![tuple, DynSolValue::Bytes(signature.clone())]).abi_encode_params();
        assert_eq!(encode(to, token, total, &signature)[4..], general);
    }
}

#[test]
fn rows_without_a_claim_have_nothing_to_claim() {
    let mut row = row();
    for member in ["claim_amount", "claim_amount_usd", "claim_signature", "claim_contract"] {
        row.as_object_mut().unwrap().remove(member);
    }
    assert_eq!(claim(&row).unwrap(), None);
    row["claim_contract"] = json!(null);
    assert_eq!(claim(&row).unwrap(), None);
}

#[test]
fn what_cannot_be_a_claim_is_refused() {
    for (member, value, code) in [
        ("claim_signature", Value::Null, Code::MissingField),
        ("claim_contract", Value::Null, Code::MissingField),
        ("token_address", Value::Null, Code::MissingField),
        ("claim_signature", json!("0x1234"), Code::SignatureMalformed),
        ("claim_signature", json!("0xzz"), Code::SignatureMalformed),
        ("token_address", json!("0x00000000000000000000000000000000000000aa"), Code::UnknownToken),
        ("claim_contract", json!("0x0000000000000000000000000000000000000000"), Code::UnknownContract),
        ("claim_contract", json!(token()), Code::UnknownContract),
        ("claim_contract", json!("0x004Cc75ACF4132Fc08cB6a252E767804F303F729"), Code::UnknownContract),
        ("claim_contract", json!("0x5ebEC4D8DA437b2BAD656D43d40fE412bA5D217a"), Code::AddressChecksum),
        ("affiliate", json!("bc1q"), Code::AddressMalformed),
        ("asset", json!("ethereum:nothing"), Code::UnknownAsset),
        ("asset", json!("solana:usdc"), Code::UnsupportedFamily),
        ("total_earnings", json!(5), Code::WrongType),
    ] {
        let mut row = row();
        row[member] = value;
        let refusal = claim(&row).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (code, format!("/{member}").as_str()));
        assert_eq!(refusal.origin(), Origin::Service, "{refusal}");
    }
}

#[test]
fn a_claim_is_signed_on_the_chain_where_it_was_earned() {
    let claim = claim(&row()).unwrap().unwrap();
    // Anyone may send the call, which pays the affiliate.
    let key = Key::from_bytes(&[0x41; 32]).unwrap();
    let calls = TxContext::eip1559(3, 30_000_000_000, 1_000_000_000);
    let mut unsigned = claim.prepare(calls.clone().sent_by(key.address())).unwrap();
    let [request] = unsigned.requests().try_into().unwrap();
    assert_eq!(keccak256(&request.message).as_slice(), request.digest);
    assert_eq!((request.id, request.signer), (RequestId::Claim, key.address().to_string()));
    let summary = unsigned.summary().to_string();
    for value in [claim.to.to_string(), claim.token.to_string(), claim.total_rewards.to_string()] {
        assert!(summary.contains(&value), "{summary}");
    }
    assert_eq!((unsigned.order_id(), unsigned.verified().is_none()), (None, true));
    unsigned.sign(&key).unwrap();
    let signed = unsigned.finish().unwrap();
    let [transaction] = signed.transactions().try_into().unwrap();
    assert_eq!((transaction.role, signed.gasless()), (Role::Claim, None));
    assert_eq!(claim.prepare(calls.clone().with_chain_id(1).sent_by(key.address())).unwrap().requests().len(), 1);
    let refusal = claim.prepare(calls.with_chain_id(8453).sent_by(key.address())).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::WalletChainMismatch, "/chain_id"));
}

/// Rootstock's wallets write the checksum of EIP-1191. The account is an example of that EIP, as viem 2.57.1 writes it on Rootstock.
#[test]
fn a_claim_on_rootstock_may_have_its_checksum() {
    let of_rootstock = "0x5aaEB6053f3e94c9b9a09f33669435E7ef1bEAeD";
    let mut registry = countersign_testkit::registry_json();
    for (list, id) in [("chains", ("chain", "ethereum")), ("assets", ("id", "ethereum:usdc"))] {
        let all = registry[list].as_array_mut().unwrap();
        let one = all.iter().find(|one| one[id.0] == id.1).unwrap();
        let text =
            one.to_string().replace("ethereum", "rootstock").replace("evm:1\"", "evm:30\"").replace("\"chain_id\":1,", "\"chain_id\":30,");
        all.push(serde_json::from_str(&text).unwrap());
    }
    let registry = countersign_core::Registry::from_json(registry.to_string().as_bytes()).unwrap();
    for (asset, passes) in [("rootstock:usdc", true), ("ethereum:usdc", false)] {
        for member in ["affiliate", "claim_contract"] {
            let mut row = row();
            row["asset"] = json!(asset);
            row[member] = json!(of_rootstock);
            let text = row.to_string();
            let value = json::parse(text.as_bytes()).unwrap();
            let claim = Claim::from_earnings(&Earnings::read(Cursor::root(&value, "")).unwrap(), &registry);
            let code = claim.map(|claim| claim.map(|claim| claim.chain_id)).map_err(|refusal| refusal.code());
            assert_eq!(code, if passes { Ok(Some(30)) } else { Err(Code::AddressChecksum) }, "{asset} {member}");
        }
    }
}
