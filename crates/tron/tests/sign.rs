//! Signing: the requests, the accepted signatures, and the artefacts for nodes and the service.

use alloy_primitives::{B256, hex, keccak256};
use countersign_core::{Code, Policy, Refusal, RequestId, Role, Scheme};
use countersign_testkit::{
    Case, TestResult, artefacts, attach as attach_json, fixture, key, outcome_under, verified, verified_under, wallet,
};
use countersign_tron::transaction::protocol::Transaction;
use countersign_tron::{ApprovalStep, FundingPath, Gasless, Key, Payload, SignedOrder, Tron, TxContext, UnsignedOrder};
use k256_free::{flip_s, with_v};
use serde_json::{Value as Json, json};

const CASE: &str = "tron-token-approval-exact";

/// Signatures as bytes, for changes that need no curve arithmetic.
mod k256_free {
    use alloy_primitives::{U256, uint};

    const ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

    /// The same signature with s in the other half.
    pub(crate) fn flip_s(signature: &[u8]) -> Vec<u8> {
        let s = U256::from_be_slice(&signature[32..64]);
        [&signature[..32], &(ORDER - s).to_be_bytes::<32>()[..], &[signature[64] ^ 7]].concat()
    }

    pub(crate) fn with_v(signature: &[u8], v: u8) -> Vec<u8> {
        [&signature[..64], &[v]].concat()
    }
}

fn case() -> Case {
    fixture::<Tron>(CASE)
}

fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Tron>(case).prepare(wallet::<Tron>(case)).unwrap_or_else(|refusal| panic!("{}: {refusal}", case.id))
}

/// Returns the context of the case's wallet.
fn calls(case: &Case) -> TxContext {
    let FundingPath::Both(calls) = wallet::<Tron>(case) else { panic!("the contract prepares both") };
    calls
}

fn signed(case: &Case) -> SignedOrder {
    let mut unsigned = prepared(case);
    unsigned.sign(&key::<Tron>(case)).expect("signs");
    unsigned.finish().expect("everything is signed")
}

fn attach(case: &Case, given: &Json) -> Result<UnsignedOrder, Refusal> {
    let mut unsigned = prepared(case);
    attach_json(&mut unsigned, given)?;
    Ok(unsigned)
}

/// The signatures that the fixture expects, by request, as bytes.
fn expected(case: &Case) -> [(&'static str, Vec<u8>); 3] {
    ["approval", "initiate", "typed_data"].map(|name| {
        let text = case.expect()["artefacts"][name]["signature"].as_str().expect("a signature").to_owned();
        (name, hex::decode(text).expect("hex"))
    })
}

#[test]
fn requests_name_owner_payload_and_digest() -> TestResult {
    let case = case();
    let requests = prepared(&case).requests();
    let artefacts = case.expect()["artefacts"].take();
    let owner = case.json()["request"]["source"]["owner"].take();
    for (request, name) in requests.iter().zip(["approval", "initiate"]) {
        assert_eq!((request.id.name().as_ref(), request.scheme), (name, Scheme::Secp256k1Sha256));
        assert_eq!(owner, request.signer);
        assert_eq!(artefacts[name]["raw_data"], hex::encode(&request.message));
        assert_eq!(artefacts[name]["tx_id"], hex::encode(&request.digest));
        let Payload::Transaction(transaction) = &request.payload else { panic!("a transaction") };
        let json = request.payload.to_json();
        assert_eq!((&json["txID"], &json["raw_data_hex"]), (&artefacts[name]["tx_id"], &artefacts[name]["raw_data"]));
        assert_eq!((json.get("signature"), &json), (None, &transaction.to_json()));
    }
    let [.., message] = requests.as_slice() else { panic!("three requests") };
    assert_eq!((message.id, message.scheme), (RequestId::TypedData, Scheme::Secp256k1Keccak));
    assert_eq!(artefacts["typed_data"]["digest"], hex::encode_prefixed(&message.digest));
    assert_eq!((message.message.len(), &message.message[..2]), (66, &[0x19, 0x01][..]));
    let json = message.payload.to_json();
    assert_eq!(json["primaryType"], "Initiate");
    assert_eq!(json["domain"]["verifyingContract"], case.json()["response"]["result"]["initiate_transaction"]["to"]);
    Ok(())
}

#[test]
fn takes_every_v_and_gives_27_or_28() -> TestResult {
    let case = case();
    let wanted = case.expect()["artefacts"].take();
    for spell in [|bytes: &[u8]| bytes.to_vec(), |bytes: &[u8]| with_v(bytes, bytes[64] - 27)] {
        for prefix in ["", "0x"] {
            let given = expected(&case).map(|(name, bytes)| (name, format!("{prefix}{}", hex::encode(spell(&bytes)))));
            let unsigned = attach(&case, &given.into_iter().collect())?;
            assert_eq!(artefacts(&unsigned), wanted);
            assert!(unsigned.finish().is_ok());
        }
    }
    Ok(())
}

/// r and s alone, a parity that is wrong, an object, and the signed transaction in TronWeb's JSON.
#[test]
fn takes_signatures_as_signers_write_them() -> TestResult {
    let case = case();
    let wanted = case.expect()["artefacts"].take();
    let spell: [fn(&[u8]) -> Json; 4] = [
        |bytes| json!(hex::encode(flip_s(bytes))),
        |bytes| json!(hex::encode(&bytes[..64])),
        |bytes| json!(hex::encode(with_v(bytes, 27 + 28 - bytes[64]))),
        |bytes| json!({ "v": bytes[64], "s": hex::encode(&bytes[32..64]), "r": hex::encode(&bytes[..32]) }),
    ];
    for spell in spell {
        let given = expected(&case).map(|(name, bytes)| (name, spell(&bytes)));
        assert_eq!(artefacts(&attach(&case, &given.into_iter().collect())?), wanted);
    }
    let mut unsigned = prepared(&case);
    for transaction in signed(&case).transactions() {
        let mut json = transaction.native.broadcast_json();
        let name = transaction.role.to_string();
        // The content of `raw_data` is that of `raw_data_hex`, and a signature may have a form that only its signer proves.
        json["raw_data"] = json!({});
        let whole = json["signature"][0].as_str().ok_or("no text")?.to_owned();
        json["signature"] = json!([whole[..128]]);
        // Under another permission other bytes are signed, and other keys count.
        let mut raw = transaction.native.transaction().raw.clone();
        raw.contract[0].permission_id = 2;
        let mut active = json.clone();
        active["raw_data_hex"] = hex::encode(countersign_tron::prost::Message::encode_to_vec(&raw)).into();
        active["txID"] = Json::Null;
        let refusal = unsigned.attach_transaction(active.to_string().as_bytes()).expect_err("another permission");
        let at = "/raw_data/contract/0/Permission_id";
        assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, at), "{refusal}");
        let attached = unsigned.attach_transaction(json.to_string().as_bytes())?;
        assert_eq!(attached.iter().map(ToString::to_string).collect::<Vec<_>>(), [name.as_str()]);
        assert_eq!(artefacts(&unsigned)[name.as_str()], wanted[name.as_str()]);
    }
    Ok(())
}

#[test]
fn a_refusal_says_who_signed_and_over_what() -> TestResult {
    let case = case();
    let (key, stranger) = (key::<Tron>(&case), Key::from_bytes(&[1; 32])?);
    let requests = prepared(&case).requests();
    let digest = |name: &str| requests.iter().find(|request| request.id.name() == name).map(|request| B256::from_slice(&request.digest));
    let refusal = |name: &str, digest: B256, key: &Key| -> Result<Refusal, Box<dyn std::error::Error>> {
        let signature = hex::encode(key.sign(&digest)?.as_bytes());
        Ok(attach(&case, &json!({ name: signature })).expect_err("another digest or account"))
    };
    let typed = digest("typed_data").ok_or("no request")?;
    let prefixed = keccak256([b"\x19TRON Signed Message:\n32", typed.as_slice()].concat());
    let prefixed = refusal("typed_data", prefixed, &key)?;
    assert!(prefixed.reason().contains("signMessageV2") && prefixed.reason().contains("trx.signTypedData"), "{prefixed}");
    // Ethereum's signers hash with Keccak-256.
    let initiate = requests.iter().find(|request| request.id.name() == "initiate").ok_or("no request")?;
    let keccak = refusal("initiate", keccak256(&initiate.message), &key)?;
    assert!(keccak.reason().contains("with another function"), "{keccak}");
    let theirs = refusal("initiate", digest("initiate").ok_or("no request")?, &stranger)?;
    let address = countersign_tron::Address::from(stranger.address()).to_string();
    assert!(theirs.actual().is_some_and(|actual| actual.to_string().contains(&address)), "{theirs}");
    Ok(())
}

#[test]
fn what_is_not_signed_stays_unsigned() -> TestResult {
    let case = case();
    let [.., (_, bytes)] = expected(&case);
    let unsigned = attach(&case, &json!({ "typed_data": hex::encode(&bytes) }))?;
    assert_eq!(unsigned.missing(), [RequestId::Approval, RequestId::Initiate]);
    assert!(artefacts(&unsigned)["initiate"].get("signature").is_none());
    let incomplete = unsigned.finish().expect_err("two signatures are missing");
    assert_eq!(incomplete.missing(), [RequestId::Approval, RequestId::Initiate]);
    Ok(())
}

#[test]
fn the_gasless_path_needs_nothing_from_the_wallet() -> TestResult {
    let case = case();
    let mut unsigned = verified::<Tron>(&case).prepare(Gasless)?;
    assert_eq!(unsigned.missing(), [RequestId::TypedData]);
    unsigned.sign(&key::<Tron>(&case))?;
    let signed = unsigned.finish()?;
    let [.., (_, bytes)] = expected(&case);
    assert_eq!(serde_json::to_value(signed.gasless())?, json!({ "signature": hex::encode_prefixed(bytes) }));
    assert!(signed.transactions().is_empty());
    let none = fixture::<Tron>("tron-token-typed-data-null");
    assert_eq!(verified::<Tron>(&none).prepare(Gasless).expect_err("no gasless path").code(), Code::NothingToSign);
    Ok(())
}

#[test]
fn the_wallet_chooses_approvals_and_the_fee_limit() -> TestResult {
    let case = fixture::<Tron>("tron-token-approval-unlimited");
    let order = verified::<Tron>(&case);
    let unsigned = order.prepare(calls(&case).with_approval(ApprovalStep::AlreadyApproved).with_fee_limit(5_000_000))?;
    assert_eq!(unsigned.missing(), [RequestId::Initiate], "neither approval nor message");
    let initiate = unsigned.payloads().call(Role::Initiate).ok_or("no call")?;
    assert_eq!(initiate.transaction.raw.fee_limit, 5_000_000);
    let unsigned = order.prepare(calls(&case).with_approval(ApprovalStep::Exact))?;
    let approval = unsigned.payloads().call(Role::Approval).ok_or("no approval")?;
    assert_eq!(B256::from_slice(&approval.transaction.trigger.data[36..]), B256::left_padding_from(&1_750_000_000_u64.to_be_bytes()));
    for (limit, code) in [(0, Code::GasLimitTooLow), (u64::MAX, Code::GasLimitTooHigh), (15_000_000_001, Code::GasLimitTooHigh)] {
        let refusal = order.prepare(calls(&case).with_fee_limit(limit)).expect_err("outside the policy");
        assert_eq!((refusal.code(), refusal.location()), (code, "/fee_limit"), "{limit}");
    }
    Ok(())
}

#[test]
fn refuses_signatures_that_prove_nothing() {
    let case = case();
    let [(_, approval), (_, initiate), (_, typed)] = expected(&case);
    let other = expected(&fixture::<Tron>("tron-token-approval-above-amount"));
    let hex = |bytes: &[u8]| json!(hex::encode(bytes));
    for (name, signature, code) in [
        ("initiate", hex(&approval), Code::SignatureMismatch),
        ("approval", hex(&initiate), Code::SignatureMismatch),
        ("typed_data", hex(&initiate), Code::SignatureMismatch),
        ("typed_data", hex(&other[2].1), Code::SignatureMismatch),
        ("typed_data", hex(&flip_s(&other[2].1)), Code::SignatureMismatch),
        ("typed_data", hex(&with_v(&typed, 29)), Code::SignatureMalformed),
        // Tron's transactions have no chain id.
        ("initiate", hex(&with_v(&initiate, 0xdb)), Code::SignatureMalformed),
        ("typed_data", hex(&typed[..63]), Code::SignatureMalformed),
        ("typed_data", json!({ "contract": "0x01" }), Code::SignatureMalformed),
        ("initiate", json!({ "contract": "0x01" }), Code::SignatureMalformed),
        ("approval_reset", hex(&approval), Code::NothingToSign),
    ] {
        let refusal = attach(&case, &json!({ name: signature })).expect_err(name);
        assert_eq!((refusal.code(), refusal.location()), (code, &*format!("/signatures/{name}")), "{refusal}");
    }
    let mut unsigned = prepared(&case);
    for bit in 0..65 * 8 {
        let mut bytes = typed.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(attach_json(&mut unsigned, &json!({ "typed_data": hex(&bytes) })).is_err(), "bit {bit}");
    }
    assert_eq!(unsigned.missing().len(), 3, "a refused signature changes nothing");
}

#[test]
fn a_key_of_another_account_is_refused() {
    let mut unsigned = prepared(&case());
    let refusal = unsigned.sign(&Key::from_bytes(&[1; 32]).expect("a key")).expect_err("another account");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, ""));
    assert!(refusal.to_string().contains("the key of T"), "{refusal}");
}

#[test]
fn nodes_take_the_bytes_and_the_json() -> TestResult {
    use countersign_tron::prost::Message as _;
    let case = fixture::<Tron>("tron-native-typed-data");
    let (whole, line) = (case.expect(), case.json());
    let expected = &whole["artefacts"]["initiate"];
    let transactions = signed(&case).transactions();
    let [transaction] = transactions.as_slice() else { panic!("one transaction") };
    assert_eq!((transaction.role, json!(transaction.id)), (Role::Initiate, expected["tx_id"].clone()));

    let decoded = Transaction::decode(transaction.bytes.as_slice())?;
    assert_eq!(decoded.raw_data.as_ref().map(|raw| hex::encode(raw.encode_to_vec())), expected["raw_data"].as_str().map(str::to_owned));
    assert_eq!(decoded.signature.iter().map(hex::encode).collect::<Vec<_>>(), [expected["signature"].as_str().ok_or("none")?]);
    assert_eq!(transaction.native.broadcast_bytes(), transaction.bytes);

    let wallet = &line["wallet"];
    let address = |value: &Json| Ok::<_, Box<dyn std::error::Error>>(value.as_str().ok_or("text")?.parse::<countersign_tron::Address>()?);
    let owner = address(&line["request"]["source"]["owner"])?;
    let to = &line["response"]["result"]["initiate_transaction"];
    let htlc = address(&to["to"])?;
    assert_eq!(
        transaction.native.broadcast_json(),
        json!({
            "visible": false,
            "txID": expected["tx_id"],
            "raw_data": {
                "contract": [{
                    "parameter": {
                        "value": {
                            "owner_address": hex::encode(owner.prefixed()),
                            "contract_address": hex::encode(htlc.prefixed()),
                            "call_value": 4_321_000_000_u64,
                            "data": to["data"].as_str().and_then(|data| data.strip_prefix("0x")),
                        },
                        "type_url": "type.googleapis.com/protocol.TriggerSmartContract",
                    },
                    "type": "TriggerSmartContract",
                }],
                "ref_block_bytes": wallet["ref_block_bytes"],
                "ref_block_hash": wallet["ref_block_hash"],
                "expiration": wallet["expiration"],
                "fee_limit": 300_000_000,
                "timestamp": wallet["timestamp"],
            },
            "raw_data_hex": expected["raw_data"],
            "signature": [expected["signature"]],
        })
    );
    Ok(())
}

#[test]
fn a_wallet_may_reset_the_allowance_first() -> TestResult {
    let case = case().replaced("\"wallet\":{", "\"wallet\":{\"reset_approval\":true,");
    let transactions = signed(&case).transactions();
    let [reset, approval, initiate] = transactions.as_slice() else { panic!("three transactions") };
    assert_eq!([reset.role, approval.role, initiate.role], [Role::ApprovalReset, Role::Approval, Role::Initiate]);
    let [spent, approved] = [reset, approval].map(|call| &call.native.transaction().trigger.data);
    assert_eq!((&spent[..36], &spent[36..]), (&approved[..36], &[0; 32][..]));
    Ok(())
}

#[test]
fn a_policy_rewrites_unlimited_approvals() -> TestResult {
    let case = fixture::<Tron>("tron-token-approval-unlimited");
    let policy = Policy::from_json(br#"{"approvals":"exact"}"#)?;
    let order = verified_under::<Tron>(&case, case.registry, &policy)?;
    let rewritten = order.deposit().approval.as_ref().ok_or("no approval")?;
    assert_eq!(rewritten.call.data, rewritten.signed.encode());
    let unsigned = order.prepare(wallet::<Tron>(&case))?;
    let approval = unsigned.payloads().call(Role::Approval).ok_or("no approval")?;
    assert_eq!(B256::from_slice(&approval.transaction.trigger.data[36..]), B256::left_padding_from(&1_750_000_000_u64.to_be_bytes()));
    assert!(unsigned.summary().to_string().contains("rewritten from every token"));
    assert_eq!(unsigned.warnings().list().len(), 1, "only that there is no record");
    let strict = Policy::from_json(br#"{"approvals":"refuse_inexact"}"#)?;
    let refusal = outcome_under::<Tron>(&case, case.registry, &strict).expect_err("not exact");
    assert_eq!((refusal.code(), refusal.location()), (Code::ApprovalNotExact, "/response/result/approval_transaction/data#36-68"));
    Ok(())
}

#[test]
fn neither_key_nor_secret_is_ever_printed() {
    let case = case();
    let secret = case.secret_key().expect("a key");
    let shown = format!("{:?} {:?}", key::<Tron>(&case), signed(&case));
    assert!(!shown.contains(&secret));
    let malformed = secret[1..].parse::<Key>().expect_err("63 digits");
    assert_eq!(malformed.code(), Code::KeyMalformed);
}

#[test]
fn the_cheapest_path_is_gasless_unless_an_approval_is_missing() -> TestResult {
    let with = |step| calls(&fixture::<Tron>(CASE)).with_approval(step);
    let order = verified::<Tron>(&fixture::<Tron>(CASE));
    assert_eq!(order.deposit().cheapest_path(with(ApprovalStep::AlreadyApproved)), FundingPath::Gasless);
    assert_eq!(order.deposit().cheapest_path(with(ApprovalStep::Exact)), FundingPath::Both(with(ApprovalStep::Exact)));
    let none = verified::<Tron>(&fixture::<Tron>("tron-token-typed-data-null"));
    let approved = with(ApprovalStep::AlreadyApproved);
    assert_eq!(none.deposit().cheapest_path(approved.clone()), FundingPath::SelfFunded(approved.clone()));
    // No signature takes coins, so the message that comes with such an order leads nowhere.
    let coins = verified::<Tron>(&fixture::<Tron>("tron-native-typed-data"));
    assert!(coins.deposit().typed_data.is_some());
    assert_eq!(coins.deposit().cheapest_path(approved.clone()), FundingPath::SelfFunded(approved));
    Ok(())
}

#[test]
fn the_context_and_the_signatures_survive_a_restart() -> countersign_testkit::TestResult {
    countersign_testkit::restart::the_context_and_the_signatures_survive::<Tron>()
}

/// Returns the warnings about fee limits, of the order and as it is prepared for a wallet.
fn low_limits(limit: &str, context: impl Fn(TxContext) -> TxContext) -> [Vec<String>; 2] {
    let mut case = fixture::<Tron>("tron-token-approval-unlimited");
    let mut tree = case.tree();
    tree.set("/response/result/initiate_transaction/gas_limit", countersign_testkit::Tree::parse(&format!("\"{limit}\"")));
    case.input = tree.text();
    let order = verified::<Tron>(&case);
    let prepared = order.prepare(context(calls(&case))).expect("prepares");
    [order.warnings(), prepared.warnings()].map(|warnings| {
        let low = warnings.list().iter().filter(|warning| warning.code() == Code::FeeTooLow);
        low.map(ToString::to_string).collect()
    })
}

/// A fee limit without energy for the call fails, also with staked energy. The warning goes away when the wallet sets a limit.
#[test]
fn a_fee_limit_that_buys_no_energy_is_said() {
    let [verified, prepared] = low_limits("1", |calls| calls);
    assert!(verified == prepared && verified.len() == 1, "{verified:?}");
    assert!(verified[0].contains("a fee limit of 1 sun") && verified[0].contains("16000000"), "{verified:?}");
    assert_eq!(low_limits("16000000", |calls| calls), [Vec::<String>::new(), Vec::new()]);
    let [_, prepared] = low_limits("1", |calls| calls.with_fee_limit(16_000_000));
    assert!(prepared.is_empty(), "{prepared:?}");
    let [_, prepared] = low_limits("16000000", |calls| calls.with_fee_limit(15_999_999));
    assert_eq!(prepared.len(), 1, "{prepared:?}");
}
