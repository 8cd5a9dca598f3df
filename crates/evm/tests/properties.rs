//! Properties: every change of a response is refused, is shown, or has no effect on what is signed. No bytes make the library
//! panic.
use std::collections::BTreeMap;

use countersign_core::{Family, Policy, Role, U256};
use countersign_evm::alloy_consensus::{TxEnvelope, TypedTransaction};
use countersign_evm::alloy_dyn_abi::TypedData;
use countersign_evm::alloy_primitives::{Address, B256, Bytes, hex};
use countersign_evm::htlc::{Approve, Initiate};
use countersign_evm::{Evm, ExternalSignature, FundingPath, Key, TxContext};
use countersign_json::line::Outcome;
use countersign_testkit::properties::{
    Payloads, account_for, every_member_is_needed_or_without_effect, every_scalar_is_accounted_for, is_refused_at_the_wallet, spans_cover,
    wallet_values,
};
use countersign_testkit::telling::Telling;
use countersign_testkit::tree::quoted;
use countersign_testkit::{Case, Tree, fixture, fixtures, outcome, verified, with_unsigned};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const PAYLOADS: Payloads = Payloads {
    pointers: &[
        "/response/result/approval_transaction/data",
        "/response/result/initiate_transaction/data",
        "/response/result/transaction/data",
    ],
    read: |text| text.as_str().map(|text| hex::decode(text).expect("hex")),
    spell: |bytes| json!(hex::encode_prefixed(bytes)),
};

const EVERY_KIND: [&str; 8] = [
    "evm-token-approval-unlimited",
    "evm-native-typed-data",
    "evm-older-key-transaction",
    "evm-destination-data",
    "evm-on-behalf",
    "evm-on-behalf-data",
    "evm-record-bitcoin-v1",
    "evm-legacy-without-key",
];

#[test]
fn every_byte_of_calldata_is_accounted_for() {
    PAYLOADS.every_byte_is_accounted_for::<Evm>(&EVERY_KIND);
}

#[test]
fn every_scalar_of_a_response_is_accounted_for() {
    every_scalar_is_accounted_for::<Evm>(&EVERY_KIND);
}

#[test]
fn every_member_of_a_response_is_needed_or_without_effect() {
    every_member_is_needed_or_without_effect::<Evm>(&EVERY_KIND);
}

#[test]
fn spans_cover_every_byte_and_every_scalar() {
    let members = ["approval_transaction", "initiate_transaction", "transaction", "typed_data", "order_id"];
    spans_cover::<Evm>(&members, |pointer, scalar| {
        let data = PAYLOADS.pointers.contains(&pointer);
        data.then(|| (PAYLOADS.read)(scalar).expect("calldata").len())
    });
}

/// The location that a line covers exists in the response.
#[test]
fn spans_lead_to_members_of_the_response() {
    for case in fixtures::<Evm>().unwrap() {
        let tree = case.tree();
        for span in verified::<Evm>(&case).coverage() {
            assert!(tree.at(&span.at).is_some(), "{}: {} does not exist", case.id, span.at);
        }
    }
}

/// Returns the case as a tree, without its key.
fn without_key(case: &Case) -> Tree {
    let mut tree = case.tree();
    if tree.at("/wallet/secret_key").is_some() {
        tree.remove("/wallet/secret_key");
    }
    tree
}

fn is_accepted(line: &Tree) -> bool {
    Outcome::from_line(line.text().as_bytes(), countersign_testkit::registry(), &Policy::default()).is_ok()
}

/// Of the five words of a call, only the solver and, without typed data, the timelock are not fixed by the request or by another
/// payload.
#[test]
fn a_changed_byte_that_the_terms_fix_is_refused() {
    for id in ["evm-token-approval-exact", "evm-native-typed-data"] {
        let mut tree = without_key(&fixture::<Evm>(id));
        assert!(is_accepted(&tree));
        let at = "/response/result/initiate_transaction/data";
        let data = hex::decode(tree.scalar(at).unwrap()).unwrap();
        for index in 0..data.len() {
            for bit in 0..8 {
                let mut other = data.clone();
                other[index] ^= 1 << bit;
                tree.set(at, Tree::parse(&quoted(&hex::encode_prefixed(other))));
                assert!(!is_accepted(&tree), "{id}: byte {index}, bit {bit}");
            }
        }
    }
}

/// Returns the summary without the digests at the end.
fn read_by_the_owner(line: &Tree) -> Option<String> {
    let got = countersign_testkit::lines::run(&line.text());
    let lines = got["summary"].as_array()?.iter().filter_map(Json::as_str).filter(|line| !line.starts_with("to sign: "));
    Some(format!("{:?} {}", lines.collect::<Vec<_>>(), got["warnings"]))
}

/// On Bitcoin-like chains the request may leave out the owner. Then neither the request nor the swap id, which binds only the key,
/// fixes the payout address of the record.
#[test]
fn a_payout_address_that_the_record_chose_is_shown_or_refused() {
    let mut tree = without_key(&fixture::<Evm>("evm-record-bitcoin-v1"));
    tree.remove("/request/destination/owner");
    let before = read_by_the_owner(&tree);
    // The address of another fixture, which is valid and on the same network.
    let theirs = fixture::<Evm>("evm-record-bitcoin-v2").tree().scalar("/order/destination_swap/redeemer").unwrap();
    tree.set("/order/destination_swap/redeemer", Tree::parse(&quoted(&theirs)));
    let after = read_by_the_owner(&tree);
    assert!(after.is_none() || after != before, "the record pays to {theirs}, and nothing says so");
}

/// Terms that an honest service could respond with.
#[derive(Debug, Clone)]
struct Terms {
    amount: U256,
    timelock: u64,
    secret_hash: B256,
    data: Option<Vec<u8>>,
    gas_limit: u64,
    unlimited: bool,
}

fn terms() -> impl Strategy<Value = Terms> {
    let amount = prop_oneof![any::<u64>().prop_map(U256::from), any::<[u8; 32]>().prop_map(U256::from_be_bytes)];
    let amount = amount.prop_map(|amount| amount.max(U256::from(1)));
    let data = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..=1024));
    (amount, 1..=86_400_u64, any::<[u8; 32]>(), data, 21_000..=30_000_000_u64, any::<bool>()).prop_map(
        |(amount, timelock, secret_hash, data, gas_limit, unlimited)| Terms {
            amount,
            timelock,
            secret_hash: secret_hash.into(),
            data,
            gas_limit,
            unlimited,
        },
    )
}

fn address(value: &Json) -> Address {
    value.as_str().and_then(|text| text.parse().ok()).expect("an address")
}

/// An honest response to a request for these terms.
fn honest(terms: &Terms) -> (Case, Initiate) {
    let case = fixture::<Evm>("evm-token-approval-unlimited");
    let mut line = case.json();
    let result = line["response"]["result"].clone();
    let call = Initiate {
        initiator: None,
        redeemer: address(&result["typed_data"]["message"]["redeemer"]),
        timelock: U256::from(terms.timelock),
        amount: terms.amount,
        secret_hash: terms.secret_hash,
        destination_data: terms.data.clone().map(Bytes::from),
    };
    let approve =
        Approve { spender: address(&result["initiate_transaction"]["to"]), amount: if terms.unlimited { U256::MAX } else { terms.amount } };
    line["request"]["source"]["amount"] = json!(terms.amount.to_string());
    line["request"]["secret_hash"] = json!(terms.secret_hash.to_string());
    let result = &mut line["response"]["result"];
    result["approval_transaction"]["data"] = json!(hex::encode_prefixed(approve.encode()));
    result["initiate_transaction"]["data"] = json!(hex::encode_prefixed(call.encode()));
    result["initiate_transaction"]["gas_limit"] = json!(format!("{:#x}", terms.gas_limit));
    let message = &mut result["typed_data"]["message"];
    message["timelock"] = json!(terms.timelock);
    message["amount"] = json!(format!("{:#x}", terms.amount));
    message["secretHash"] = json!(terms.secret_hash.to_string());
    if let Some(data) = &terms.data {
        message["destinationData"] = json!(hex::encode_prefixed(data));
        let types = result["typed_data"]["types"]["Initiate"].as_array_mut().expect("members");
        types.push(json!({ "name": "destinationData", "type": "bytes" }));
    }
    let input = line.to_string();
    (case.with_input(input), call)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn honest_terms_come_out_as_they_went_in(terms in terms()) {
        let (case, call) = honest(&terms);
        let (transaction, message, digest) = with_unsigned::<Evm, _>(&case, &Policy::default(), |unsigned, _| {
            let payloads = unsigned.payloads();
            let message = payloads.message.as_ref().expect("typed data");
            Ok((payloads.call(Role::Initiate).expect("a call").transaction.transaction.clone(), message.message.to_json(), message.hashes.digest))
        }).map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
        let TypedTransaction::Eip1559(transaction) = transaction else { panic!("EIP-1559") };
        prop_assert_eq!(transaction.input.to_vec(), call.encode());
        prop_assert_eq!((transaction.gas_limit, transaction.value), (terms.gas_limit, U256::ZERO));
        let general: TypedData = serde_json::from_value(message).expect("typed data");
        prop_assert_eq!(general.eip712_signing_hash().expect("a digest"), digest);
    }

    #[test]
    fn a_changed_byte_of_honest_calldata_is_accounted_for(terms in terms(), at in any::<prop::sample::Index>(), flip in 1..=u8::MAX) {
        let (case, call) = honest(&terms);
        let base = outcome::<Evm>(&case).expect("honest");
        let mut data = call.encode();
        let at = at.index(data.len());
        data[at] ^= flip;
        let mut line = case.json();
        line["response"]["result"]["initiate_transaction"]["data"] = json!(hex::encode_prefixed(data));
        prop_assert_eq!(account_for::<Evm>(&case, &base, &line, &format!("byte {at}")), Ok(()));
    }

    /// If one byte of a signed transaction changes, it no longer matches the order. If the byte is in the nonce, the fees or the gas
    /// limit, the recovered signer is another account.
    #[test]
    fn a_changed_byte_of_a_sent_transaction_is_noticed(terms in terms(), at in any::<prop::sample::Index>(), flip in 1..=u8::MAX) {
        use countersign_evm::alloy_eips::eip2718::Decodable2718;
        let (case, _) = honest(&terms);
        let order = verified::<Evm>(&case);
        let key: Key = case.secret_key().expect("a key").parse().expect("a key");
        let mut unsigned = order.prepare(FundingPath::SelfFunded(TxContext::eip1559(5, 30, 20))).expect("prepared");
        unsigned.sign(&key).expect("signed");
        for transaction in unsigned.finish().expect("signed").transactions() {
            prop_assert_eq!(order.match_with_warnings(&transaction.native).map(|(role, _)| role), Ok(transaction.role));
            let mut bytes = transaction.bytes.clone();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if let Ok(other) = TxEnvelope::decode_2718(&mut bytes.as_slice()) {
                // Only another encoding of the same signature recovers the same account from the same content.
                prop_assert!(order.matches(&other).is_err() || other.signature_hash() == transaction.native.signature_hash(), "byte {}", at);
            }
        }
    }

    #[test]
    fn signatures_read_back(key in proptest::array::uniform32(1..=u8::MAX / 2), digest in any::<[u8; 32]>()) {
        let signature = Key::from_bytes(&key).expect("a key").sign(&digest.into()).expect("a signature");
        let expected = ExternalSignature::from(signature);
        let (whole, compact) = (signature.as_bytes(), signature.as_erc2098());
        for text in [hex::encode(whole), hex::encode_prefixed(whole), hex::encode(compact), hex::encode_prefixed(compact)] {
            prop_assert_eq!(text.parse::<ExternalSignature>(), Ok(expected.clone()));
        }
    }

    #[test]
    fn no_text_makes_a_signature_or_key_panic(text in any::<String>(), digits in "(0x)?[0-9a-fA-F]{120,134}") {
        for text in [text, digits] {
            let _ = text.parse::<ExternalSignature>();
            let _ = text.parse::<Key>();
        }
    }

    #[test]
    fn no_wallet_makes_the_library_panic(member in 0..6_usize, value in wallet_values()) {
        let member = ["nonce", "max_fee_per_gas", "max_priority_fee_per_gas", "gas_price", "chain_id", "reset_approval"][member];
        is_refused_at_the_wallet::<Evm>("evm-token-approval-exact", member, value)?;
    }

    #[test]
    fn any_calldata_is_refused(
        case in a_case(),
        data in prop::collection::vec(any::<u8>(), 0..400),
        selector in prop::sample::select(vec![0x97ff_c7ae_u32, 0x4ede_0ab7, 0x13d4_a787, 0xa66a_8641, 0x095e_a7b3]),
    ) {
        for at in PAYLOADS.pointers {
            let mut line = case.clone();
            let Some(before) = line.scalar(at).filter(|text| text.starts_with("0x")) else { continue };
            let other = hex::encode_prefixed([&selector.to_be_bytes()[..], &data].concat());
            prop_assume!(other != before);
            line.set(at, Tree::parse(&quoted(&other)));
            // Random words never contain the requested secret hash.
            prop_assert!(!is_accepted(&line), "{}", line.text());
        }
    }
}

fn a_case() -> impl Strategy<Value = Tree> {
    let named = Telling::of(Family::Evm).expect("named cases");
    let cases: BTreeMap<_, _> = fixtures::<Evm>().expect("fixtures").into_iter().map(|case| (case.id.clone(), case)).collect();
    let trees: Vec<_> = named.payloads.iter().filter_map(|id| cases.get(id)).map(without_key).collect();
    prop::sample::select(trees)
}
