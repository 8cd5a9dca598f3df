//! Published values: the examples of the EIPs, documented responses of the live service, and the hashes of every fixture by a
//! general EIP-712 hasher.
use countersign_core::{Code, Hex, OrderRecord, Policy, Refusal, Registry, VerifiedOrder};
use countersign_evm::alloy_dyn_abi::TypedData;
use countersign_evm::alloy_primitives::{Address, B256, U256, eip191_hash_message};
use countersign_evm::message::to_typed_data;
use countersign_evm::recover::{self, Leg};
use countersign_evm::{Evm, ExternalSignature, FundingPath, Key, Payload, TxContext};
use countersign_testkit::recover::read_record;
use countersign_testkit::tree::{self, Tree};
use countersign_testkit::{Case, fixture, fixtures, registry, shared, verified, with_verified};
use serde_json::{Value, json};

/// Reads a file that may exist outside the project.
fn beside(name: &str) -> Option<String> {
    match shared(name) {
        Ok(text) => Some(String::from_utf8(text).unwrap()),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

/// Verifies a line.
fn verify(line: &Tree, registry: &Registry) -> Result<VerifiedOrder<Evm>, Refusal> {
    with_verified(line.text().as_bytes(), registry, &Policy::default(), |verified, _| Ok(verified))
}

fn record(text: &str) -> OrderRecord {
    read_record(&serde_json::from_str(text).unwrap()).unwrap()
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    Hex(bytes.as_ref().to_vec()).to_string()
}

fn outside(text: &str) -> Result<ExternalSignature, Refusal> {
    text.parse()
}

/// <https://eips.ethereum.org/EIPS/eip-2098>, "Test Cases": both forms are the same signature, which the local key makes too.
#[test]
fn the_vectors_of_eip_2098() {
    let key = Key::parse("0x1234567890123456789012345678901234567890123456789012345678901234").unwrap();
    for (message, r, s, v, compact) in [
        (
            "Hello World",
            "68a020a209d3d56c46f38cc50a33f704f4a9a10a59377f8dd762ac66910e9b90",
            "7e865ad05c4035ab5792787d4a0297a43617ae897930a6fe4d822b8faea52064",
            27_u8,
            "7e865ad05c4035ab5792787d4a0297a43617ae897930a6fe4d822b8faea52064",
        ),
        (
            "It's a small(er) world",
            "9328da16089fcba9bececa81663203989f2df5fe1faa6291a45381c81bd17f76",
            "139c6d6b623b42da56557e5e734a43dc83345ddfadec52cbe24d0cc64f550793",
            28,
            "939c6d6b623b42da56557e5e734a43dc83345ddfadec52cbe24d0cc64f550793",
        ),
    ] {
        let digest = eip191_hash_message(message);
        let ExternalSignature::Ecdsa(whole) = outside(&format!("0x{r}{s}{v:02x}")).unwrap() else { panic!("no contract signed this") };
        assert_eq!(ExternalSignature::Ecdsa(whole), outside(&format!("0x{r}{compact}")).unwrap(), "{message}");
        assert_eq!(ExternalSignature::Ecdsa(whole), outside(&format!("{r}{s}{:02x}", v - 27)).unwrap(), "{message}");
        assert_eq!(whole.recover_address_from_prehash(&digest).unwrap(), key.address(), "{message}");
        // ethers also uses RFC 6979, so the local signer makes the same signature.
        assert_eq!(key.sign(&digest).unwrap(), whole, "{message}");
    }
}

/// <https://eips.ethereum.org/EIPS/eip-712>: the account of the example, whose key is Keccak-256 of `cow`.
#[test]
fn keys_control_the_accounts_of_the_examples() {
    for (key, address) in [
        ("0xc85ef7d79691fe79573b1a7064c19c1a9819ebdbd1faaab1a8ec92344438aaf4", "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"),
        ("0x4646464646464646464646464646464646464646464646464646464646464646", "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F"),
    ] {
        assert_eq!(Key::parse(key).unwrap().address(), address.parse::<Address>().unwrap());
        assert_eq!(Key::parse(&key[2..].to_uppercase()).unwrap().address(), address.parse::<Address>().unwrap());
    }
}

/// Writes integers as decimal text, which general parsers accept at any width.
fn numbers_as_text(tree: &Tree) -> Tree {
    match tree {
        Tree::Scalar(token) if token.bytes().all(|byte| byte.is_ascii_digit()) => Tree::Scalar(tree::quoted(token)),
        Tree::Scalar(token) => Tree::Scalar(token.clone()),
        Tree::Array(items) => Tree::Array(items.iter().map(numbers_as_text).collect()),
        Tree::Object(members) => Tree::Object(members.iter().map(|(key, value)| (key.clone(), numbers_as_text(value))).collect()),
    }
}

/// Hashes typed data with a general hasher.
fn general_digest(typed_data: &Tree) -> B256 {
    let typed_data: TypedData = serde_json::from_str(&numbers_as_text(typed_data).text()).unwrap();
    typed_data.eip712_signing_hash().unwrap()
}

fn our_digest(verified: &VerifiedOrder<Evm>) -> B256 {
    verified.deposit().typed_data.as_ref().expect("typed data").hashes().digest
}

/// Hashes a message with other hashers: alloy's own type, and the JSON for browser wallets.
fn check_forms(case: &Case, verified: &VerifiedOrder<Evm>, general: B256) {
    let message = verified.deposit().typed_data.as_ref().unwrap();
    assert_eq!(to_typed_data(message).eip712_signing_hash().unwrap(), general, "{}", case.id);
    let json = message.to_json();
    assert_eq!(serde_json::from_value::<TypedData>(json.clone()).unwrap().eip712_signing_hash().unwrap(), general, "{}", case.id);
    // eth_signTypedData_v4 of browser wallets hashes the domain by its declared type.
    let declared = &json["types"]["EIP712Domain"];
    assert_eq!(
        *declared,
        json!([
            { "name": "name", "type": "string" },
            { "name": "version", "type": "string" },
            { "name": "chainId", "type": "uint256" },
            { "name": "verifyingContract", "type": "address" },
        ]),
        "{}",
        case.id
    );
    let types = json["types"].as_object().unwrap();
    assert_eq!(types.keys().map(String::as_str).collect::<Vec<_>>(), ["EIP712Domain", "Initiate"]);
    assert_eq!(json["primaryType"], "Initiate");
    // Every declared member has a value, and there are no other values.
    let declared = types["Initiate"].as_array().unwrap().iter().map(|member| member["name"].as_str().unwrap());
    let mut declared: Vec<_> = declared.collect();
    declared.sort_unstable();
    let mut given: Vec<_> = json["message"].as_object().unwrap().keys().map(String::as_str).collect();
    given.sort_unstable();
    assert_eq!(declared, given, "{}", case.id);
}

#[test]
fn a_general_hasher_agrees_on_every_fixture() {
    let mut seen = 0;
    for case in fixtures::<Evm>().unwrap() {
        let line = case.tree();
        let typed_data = line.at("/response/result/typed_data").filter(|typed_data| typed_data.text() != "null");
        let Some(typed_data) = typed_data else { continue };
        let (id, expect) = (&case.id, case.expect());
        let verified = verified::<Evm>(&case);
        let general = general_digest(typed_data);
        assert_eq!(our_digest(&verified), general, "{id}");
        assert_eq!(hex(general), expect["artefacts"]["typed_data"]["digest"], "{id}");
        // The payload for wallets that sign typed data has the same hash.
        check_forms(&case, &verified, general);
        let unsigned = verified.prepare(FundingPath::Both(TxContext::eip1559(0, 0, 0))).unwrap();
        let message = unsigned.payloads().message.as_ref().unwrap();
        let request = unsigned.requests().pop().unwrap();
        let Payload::TypedData(typed_data) = &request.payload else { panic!("{id}: the message comes last") };
        assert_eq!(typed_data.eip712_signing_hash().unwrap(), general, "{id}");
        assert_eq!(
            hex(&request.message),
            format!("0x1901{}{}", &hex(message.hashes.domain_separator)[2..], &hex(message.hashes.struct_hash)[2..])
        );
        seen += 1;
    }
    assert!(seen > 60, "only {seen} fixtures have typed data");
}

/// A message of five members. No fixture exists for it, so the general hasher is the only independent source.
#[test]
fn a_general_hasher_agrees_on_a_message_with_destination_data() {
    let case = fixture::<Evm>("evm-destination-data");
    let mut line = case.tree();
    let call = line.scalar("/response/result/initiate_transaction/data").unwrap();
    let word = |index: usize| &call[10 + 64 * index..74 + 64 * index];
    let data = format!("0x{}", &word(6)[..40]);
    let mut typed_data = fixture::<Evm>("evm-token-approval-unlimited").tree().at("/response/result/typed_data").unwrap().clone();
    let text = |text: &str| Tree::Scalar(tree::quoted(text));
    typed_data.set("/message/redeemer", text(&format!("0x{}", &word(0)[24..])));
    typed_data.set("/message/timelock", text(&format!("0x{}", word(1))));
    typed_data.set("/message/amount", text(&format!("0x{}", word(2))));
    typed_data.set("/message/secretHash", text(&format!("0x{}", word(3))));
    typed_data.set("/message/destinationData", text(&data));
    typed_data.set("/types/Initiate/-", Tree::parse(r#"{"name":"destinationData","type":"bytes"}"#));
    line.set("/response/result/typed_data", typed_data.clone());
    let verified = verify(&line, registry()).unwrap();
    assert_eq!(our_digest(&verified), general_digest(&typed_data));
    check_forms(&case, &verified, general_digest(&typed_data));
    assert_eq!(verified.deposit().typed_data.as_ref().unwrap().to_json()["message"]["destinationData"], data);
}

/// Responses of the service on its test networks, as shown in its documentation.
struct Capture {
    line: Tree,
    registry: Registry,
}

fn capture(number: u8) -> Option<Capture> {
    let text = |what: &str| beside(&format!("captures/evm-{what}-{number}.json")).map(|text| Tree::parse(&text));
    let (request, response, order) = (text("create-request")?, text("create-response")?, text("order-record")?);
    let call = if number == 1 { "/result/initiate_transaction" } else { "/result/transaction" };
    let htlc = response.scalar(&format!("{call}/to")).unwrap();
    // The second capture has neither a token nor an approval.
    let token =
        response.scalar("/result/approval_transaction/to").unwrap_or_else(|| "0xe918a5a47b8e0afac2382bc5d1e981613e63fb07".to_owned());
    let record = |at: &str| order.scalar(&format!("/result{at}")).unwrap();
    let registry = json!({
        "chains": [
            { "chain": "ethereum_sepolia", "id": "evm:11155111", "name": "", "native_asset_id": "ethereum_sepolia:eth" },
            { "chain": "bitcoin_testnet", "id": "bitcoin:testnet", "name": "", "native_asset_id": "bitcoin_testnet:btc" },
        ],
        "assets": [
            { "id": "ethereum_sepolia:wbtc", "chain": "ethereum_sepolia", "chain_id": 11_155_111, "decimals": 8,
              "htlc": { "address": htlc, "schema": "evm:htlc_erc20" }, "token": { "address": token, "schema": "evm:erc20" } },
            { "id": "bitcoin_testnet:btc", "chain": "bitcoin_testnet", "decimals": 8,
              "htlc": { "address": internal_key()?, "schema": "bitcoin:htlc" }, "token": null },
        ],
        "solvers": [
            { "solver_id": "docs", "chain": "ethereum_sepolia", "address": record("/source_swap/redeemer") },
            { "solver_id": "docs", "chain": "bitcoin_testnet", "address": record("/destination_swap/initiator") },
        ],
    });
    let line = Tree::Object(vec![("\"request\"".into(), request), ("\"response\"".into(), response), ("\"order\"".into(), order)]);
    Some(Capture { line, registry: Registry::from_json(registry.to_string().as_bytes()).unwrap() })
}

fn known_answers() -> Option<Value> {
    Some(serde_json::from_str(&beside("known_answers.json")?).unwrap())
}

/// The internal key of the taproot HTLC, from the known answers.
fn internal_key() -> Option<String> {
    Some(known_answers()?["bitcoin_internal_key"]["x_only"].as_str().unwrap().to_owned())
}

fn known_swap_id(known: &Value, secret_hash: &str) -> String {
    let ids = known["evm_swap_id"].as_array().unwrap();
    ids.iter().find(|id| id["secret_hash"] == secret_hash).unwrap()["swap_id"].as_str().unwrap().to_owned()
}

#[test]
fn the_services_documented_orders_are_accepted() {
    for number in [1, 2] {
        let (Some(Capture { line, registry }), Some(known)) = (capture(number), known_answers()) else { return };
        let verified = verify(&line, &registry).unwrap_or_else(|refusal| panic!("capture {number}: {refusal}"));
        assert_eq!(Some(verified.order_id()), line.scalar("/response/result/order_id").as_deref());
        let codes: Vec<_> = verified.warnings().list().iter().map(|warning| warning.code()).collect();
        // The documented requests have neither a secret hash nor a redeem key. The approval of the first order is unlimited.
        let unlimited = (number == 1).then_some(Code::UnlimitedApproval);
        let expected: Vec<_> = [Code::SecretNotYours].into_iter().chain(unlimited).chain([Code::RedeemKeyNotYours]).collect();
        assert_eq!(codes, expected, "capture {number}");
        // Digest and domain separator, computed with ethers 6 and eth-account.
        let hashes = verified.deposit().typed_data.as_ref().unwrap().hashes();
        let known = &known["evm_typed_data"][usize::from(number) - 1];
        assert_eq!(hex(hashes.digest)[2..], *known["digest"].as_str().unwrap());
        assert_eq!(hex(hashes.domain_separator)[2..], *known["domain_separator"].as_str().unwrap());
        assert_eq!(hashes.digest, general_digest(line.at("/response/result/typed_data").unwrap()));
    }
}

/// The swap ids that the service computed, in the records of both orders.
#[test]
fn swap_ids_are_the_services() {
    for number in [1, 2] {
        let (Some(Capture { line, registry }), Some(known)) = (capture(number), known_answers()) else { return };
        let record = record(&line.at("/order/result").unwrap().text());
        let expected = known_swap_id(&known, &record.source_swap.secret_hash.to_string());
        assert_eq!(hex(recover::swap_id(&record, Leg::Source, &registry).unwrap())[2..], expected);
        let bitcoin = recover::swap_id(&record, Leg::Destination, &registry).unwrap_err();
        assert_eq!((bitcoin.code(), bitcoin.location()), (Code::UnsupportedFamily, "/order/destination_swap/asset"));
    }
}

/// The destination leg of an order whose secret is public. It can be redeemed only with that secret.
#[test]
fn recovery_of_a_documented_order() {
    let (Some(order), Some(known)) = (beside("captures/bitcoin-order-record-1.json"), known_answers()) else { return };
    let order = Tree::parse(&order);
    let record = record(&order.at("/result").unwrap().text());
    let registry = json!({
        "chains": [{ "chain": "base_sepolia", "id": "evm:84532", "name": "", "native_asset_id": "base_sepolia:eth" }],
        "assets": [{ "id": "base_sepolia:wbtc", "chain": "base_sepolia", "chain_id": 84_532, "decimals": 8,
            "htlc": { "address": "0x3535353535353535353535353535353535353535", "schema": "evm:htlc_erc20" },
            "token": { "address": "0x3636363636363636363636363636363636363636", "schema": "evm:erc20" } }],
    });
    let registry = Registry::from_json(registry.to_string().as_bytes()).unwrap();
    let id = known_swap_id(&known, &record.destination_swap.secret_hash.to_string());
    assert_eq!(hex(recover::swap_id(&record, Leg::Destination, &registry).unwrap())[2..], id);

    let digits = record.destination_swap.secret.as_ref().unwrap();
    let secret: [u8; 32] = hex::decode(digits).unwrap().try_into().unwrap();
    let redeem = recover::redeem(&record, Leg::Destination, &secret, &registry).unwrap();
    // redeem(bytes32,bytes): selector, id, offset 0x40, length 0x20, secret.
    let calldata = format!("0xf7ff7207{id}{:064x}{:064x}{}", 0x40, 0x20, digits);
    assert_eq!(hex(&redeem.call().data), calldata);
    assert_eq!(redeem.to(), "0x004Cc75ACF4132Fc08cB6a252E767804F303F729".parse::<Address>().unwrap());
    assert_eq!((redeem.chain_id(), redeem.terms().amount, redeem.call().value), (84_532, U256::from(498_500), U256::ZERO));

    let mut wrong = secret;
    wrong[31] ^= 1;
    let refusal = recover::redeem(&record, Leg::Destination, &wrong, &registry).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/destination_swap/secret_hash"));
    assert!(!refusal.to_string().contains(&hex::encode(wrong)), "a secret is never shown");

    let refund = recover::refund(&record, Leg::Destination, &registry).unwrap();
    assert_eq!(hex(&refund.call().data), format!("0x7249fbb6{id}"));
    assert_eq!(refund.to(), "0x661bA32eb5f86CaB358DDbB7F264b10c5825e2dd".parse::<Address>().unwrap());

    // An id that does not follow from the record's fields.
    let mut forged = record.clone();
    forged.destination_swap.timelock += 1;
    let refusal = recover::refund(&forged, Leg::Destination, &registry).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/destination_swap/swap_id"));
    forged.version = "v9".to_owned();
    assert_eq!(recover::refund(&forged, Leg::Destination, &registry).unwrap_err().code(), Code::RecordVersion);
}
