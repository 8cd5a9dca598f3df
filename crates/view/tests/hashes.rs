//! Hash cards, compared with hashes that other tools computed: ethers, TronWeb, starknet.js, web3.js, Mysten's SDK, bitcoinjs-lib.
use countersign::{Policy, Unsigned, UnsignedOrder};
use countersign_json::JsonFamily;
use countersign_testkit::{Case, all_fixtures, fixture, with_unsigned};
use countersign_view::hashes::{Device, HashCard, Safe, SafeTxGas, SafeVersion, hash_cards};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

/// Calls `check` with each card of each fixture of a family, and with the expected artefact of the same name. Returns how many cards
/// there were.
fn each<F: JsonFamily>(check: impl Fn(&Case, &HashCard, &Json)) -> usize
where
    Unsigned: From<UnsignedOrder<F>>,
{
    let mut count = 0;
    for case in all_fixtures::<F>().unwrap() {
        let expected = &case.expect()["artefacts"];
        let cards = with_unsigned::<F, _>(&case, &Policy::default(), |order, _| Ok(hash_cards(&order.into()))).unwrap();
        for card in cards {
            check(&case, &card, &expected[&*card.request.name()]);
            count += 1;
        }
    }
    count
}

/// Returns the values of a device as label and value.
fn on(card: &HashCard, device: Device) -> Vec<(&str, &str)> {
    card.values.iter().filter(|value| value.device == device).map(|value| (value.label, value.value.as_str())).collect()
}

/// Returns the hex of an artefact without `0x`.
fn digits(value: &Json) -> &str {
    value.as_str().unwrap().trim_start_matches("0x")
}

fn check_typed_data(card: &HashCard, ledger: Device, expected: &Json) {
    let [domain, message, digest] = ["domain_separator", "struct_hash", "digest"].map(|name| digits(&expected[name]));
    let [upper_domain, upper_message] = [domain, message].map(str::to_uppercase);
    assert_eq!(on(card, ledger), [("Domain hash", &*format!("0x{upper_domain}")), ("Message hash", &*format!("0x{upper_message}"))]);
    let software = [("Domain separator", domain), ("Struct hash", message), ("Digest", digest)];
    assert_eq!(on(card, Device::Software), software.map(|(label, hash)| (label, format!("0x{hash}"))).each_ref().map(|(l, h)| (*l, &**h)));
    if ledger == Device::LedgerEthereum {
        assert_eq!(on(card, Device::TrezorCore), [("Confirm message hash", &*format!("0x{message}"))]);
        assert_eq!(on(card, Device::TrezorOne), [("EIP-712 domain hash", &*upper_domain), ("EIP-712 message hash", &*upper_message)]);
    }
}

#[test]
fn evm_shows_the_hashes_of_ethers() {
    let count = each::<countersign::evm::Evm>(|case, card, expected| match expected["signing_hash"].as_str() {
        Some(hash) => assert_eq!(on(card, Device::LedgerEthereum), [("Transaction hash", hash)], "{}", case.id),
        None => check_typed_data(card, Device::LedgerEthereum, expected),
    });
    assert!(count > 200, "{count}");
}

#[test]
fn evm_typed_data_hashes_as_alloys_general_hasher_does() {
    let case = fixture::<countersign::evm::Evm>("evm-token-approval-exact");
    let requests = with_unsigned::<countersign::evm::Evm, _>(&case, &Policy::default(), |order, _| {
        let order = Unsigned::from(order);
        Ok((order.requests(), hash_cards(&order)))
    });
    let (requests, cards) = requests.unwrap();
    let mut compared = 0;
    for (request, card) in requests.iter().zip(&cards) {
        assert_eq!(request.id, card.request);
        let countersign::Payload::Evm(countersign::evm::Payload::TypedData(data)) = &request.payload else { continue };
        let software =
            [data.domain.separator(), data.hash_struct().unwrap(), data.eip712_signing_hash().unwrap()].map(|hash| hash.to_string());
        assert_eq!(on(card, Device::Software).iter().map(|(_, hash)| *hash).collect::<Vec<_>>(), software);
        compared += 1;
    }
    assert_eq!(compared, 1);
}

#[test]
fn tron_shows_the_hashes_of_tronweb() {
    let count = each::<countersign::tron::Tron>(|case, card, expected| {
        let Some(id) = expected["tx_id"].as_str() else { return check_typed_data(card, Device::LedgerTron, expected) };
        assert_eq!(on(card, Device::LedgerTronByHash), [("Hash", &*id.to_uppercase())], "{}", case.id);
        assert_eq!(on(card, Device::Software), [("Transaction id", id)], "{}", case.id);
        let known = on(card, Device::LedgerTron);
        assert_eq!(known.is_empty(), card.request.name() == "approval", "{}", case.id);
        let raw = expected["raw_data"].as_str().unwrap();
        if let [("Contract", contract), ("Selector", selector)] = known[..] {
            // The contract is field 2 of the call with 21 bytes, the sent value field 3, and the calldata field 4.
            let contract = bs58::decode(contract).with_check(None).into_vec().unwrap();
            let hex: String = contract.iter().map(|byte| format!("{byte:02x}")).collect();
            let (_, rest) = raw.split_once(&format!("1215{hex}")).expect(&case.id);
            assert!(rest.split_once(selector).unwrap().0.len() <= 32, "{}: {rest}", case.id);
        }
    });
    assert!(count > 80, "{count}");
}

#[test]
fn starknet_shows_the_hashes_of_starknet_js() {
    let count = each::<countersign::starknet::Starknet>(|case, card, expected| {
        let (hash, label, software) = match expected["tx_hash"].as_str() {
            Some(hash) => (hash, "Transaction Hash", "Transaction hash"),
            None => (expected["message_hash"].as_str().unwrap(), "Hash", "Message hash"),
        };
        let digits = hash.trim_start_matches("0x").to_uppercase();
        assert_eq!(on(card, Device::LedgerStarknet), [(label, &*format!("{digits:0>64}"))], "{}", case.id);
        assert_eq!(on(card, Device::Software), [(software, hash)], "{}", case.id);
    });
    assert!(count > 100, "{count}");
}

#[test]
fn solana_shows_the_hash_of_the_message_of_web3_js() {
    use base64::Engine as _;
    let count = each::<countersign::solana::Solana>(|case, card, expected| {
        let message = base64::engine::general_purpose::STANDARD.decode(expected["message"].as_str().unwrap()).unwrap();
        let hash = bs58::encode(Sha256::digest(message)).into_string();
        assert_eq!(on(card, Device::LedgerSolana), [("Message Hash", &*hash)], "{}", case.id);
        if case.id == "solana-native-legacy" {
            // By Python's hashlib and integers.
            assert_eq!(hash, "Awnc6s4A5yx2gQp9KvCVTQFvNSCXMxT7xsLCpDf3Lc5Y");
        }
    });
    assert!(count > 50, "{count}");
}

#[test]
fn sui_shows_the_digest_of_mystens_sdk() {
    let count = each::<countersign::sui::Sui>(|case, card, expected| {
        let expected = if expected.is_null() { case.expect()["artefacts"]["transaction"].clone() } else { expected.clone() };
        let digest = format!("0x{}", expected["signing_digest"].as_str().unwrap());
        assert_eq!(on(card, Device::LedgerSui), [("Transaction hash", &*digest)], "{}", case.id);
    });
    assert!(count >= 58, "{count}");
}

#[test]
fn bitcoin_shows_outputs_and_fee_once() {
    let case = fixture::<countersign::bitcoin::Bitcoin>("bitcoin-p2wpkh");
    let cards =
        with_unsigned::<countersign::bitcoin::Bitcoin, _>(&case, &Policy::default(), |order, _| Ok(hash_cards(&order.into()))).unwrap();
    let [card] = &cards[..] else { panic!("{cards:?}") };
    // The transaction of bitcoinjs-lib spends 120000 sat to 50000 and 69694.
    let shown = [
        ("Amount", "0.0005 TEST"),
        ("To", "tb1phf33hd32q856xxajs6cw2577jsdjz5f27qhrag6n0szrt2wyar2seajfz4"),
        ("Amount", "0.00069694 TEST"),
        ("To", "tb1qudngkd3wzhlllgmythpwmw4ur3ztn33s6zvn0l"),
        ("Fees", "0.00000306 TEST"),
    ];
    assert_eq!(on(card, Device::LedgerBitcoin), shown);
    for case in all_fixtures::<countersign::bitcoin::Bitcoin>().unwrap() {
        let deposit = &case.expect()["artefacts"]["deposit"];
        let cards = with_unsigned::<countersign::bitcoin::Bitcoin, _>(&case, &Policy::default(), |order, _| Ok(hash_cards(&order.into())));
        let cards = cards.unwrap();
        assert_eq!(cards.len(), usize::from(!deposit["psbt"].is_null()), "{}", case.id);
        let values: Vec<_> = cards.iter().flat_map(|card| &card.values).collect();
        assert!(
            values.is_empty() || values.iter().any(|value| value.label == "To" && json!(value.value) == deposit["address"]),
            "{}",
            case.id
        );
    }
}

#[test]
fn a_card_is_text_and_json() {
    let case = fixture::<countersign::sui::Sui>("sui-native");
    let cards = with_unsigned::<countersign::sui::Sui, _>(&case, &Policy::default(), |order, _| Ok(hash_cards(&order.into()))).unwrap();
    let digest = format!("0x{}", case.expect()["artefacts"]["transaction"]["signing_digest"].as_str().unwrap());
    let signer = &cards[0].signer;
    assert_eq!(cards[0].to_string(), format!("transaction by {signer}\n  Ledger, Sui app\n    Transaction hash: {digest}\n"));
    let value = json!({"device": "Ledger, Sui app", "label": "Transaction hash", "value": digest});
    assert_eq!(serde_json::to_value(&cards).unwrap(), json!([{"request": "transaction", "signer": signer, "values": [value]}]));
}

#[test]
fn a_safe_shows_the_hashes_of_its_own_contract() {
    let expected: Json = serde_json::from_str(include_str!("safe.json")).unwrap();
    let mut compared = 0;
    for row in expected["cases"].as_array().unwrap() {
        let safe =
            Safe { version: row["version"].as_str().unwrap().parse().unwrap(), nonce: row["nonce"].as_u64().unwrap(), ..Safe::default() };
        let case = fixture::<countersign::evm::Evm>(row["fixture"].as_str().unwrap());
        let cards = with_unsigned::<countersign::evm::Evm, _>(&case, &Policy::default(), |order, _| {
            let order = Unsigned::from(order);
            let mut cards = hash_cards(&order);
            safe.add_to(&mut cards, &order);
            Ok(cards)
        });
        let cards = cards.unwrap();
        for card in &cards {
            let hashes: Vec<_> = on(card, Device::Safe).into_iter().map(|(_, hash)| hash).collect();
            let expected = row["shown"].get(&*card.request.name()).cloned().unwrap_or(json!([]));
            assert_eq!(json!(hashes), expected, "{} by Safe {}", case.id, row["version"]);
            compared += hashes.len();
        }
    }
    // Each has a domain hash, a message hash and their digest.
    assert_eq!(compared, 26 * 3);
}

/// Safe's provider makes the `gas` of `eth_sendTransaction` the `safeTxGas`, which is signed. The hashes are those of viem 2.57.1
/// (`hashTypedData`), for a Safe of version 1.3 or later whose next nonce is 5.
#[test]
fn the_hash_of_a_safe_follows_its_safe_tx_gas() {
    let case = fixture::<countersign::evm::Evm>("evm-token-approval-exact");
    for (gas, approval, initiate) in [
        (
            "0",
            "67c01c3a3dbc93e1fd5abc01206e8e0de50d6f5d989fa929cfc6ac1b1fe47bd7",
            "7f749b745a668e004b4038f920c38705e41a2a61dbf00a144f37d9e2bde97fda",
        ),
        (
            "call",
            "c5ab33e071190fd1fb75cd2ba0e175448aade62061219032f63c74c6532a5dc4",
            "fb7b0da5693cc8680b34e9d74e5f8b052fa2fc94fdbd3e6beb963a0ab9ab4c92",
        ),
        (
            "123456",
            "a9f834aebf49d7aa92bb96d80ae2109b739a60c0b3e189cca6b3050cd103c573",
            "ab568e82c484848d718726c8c3773e7c9ae4acc5cf28a9c95cf49ee1d7a90640",
        ),
    ] {
        let safe = Safe { nonce: 5, safe_tx_gas: gas.parse().unwrap(), ..Safe::default() };
        let cards = with_unsigned::<countersign::evm::Evm, _>(&case, &Policy::default(), |order, _| {
            let order = Unsigned::from(order);
            let mut cards = hash_cards(&order);
            safe.add_to(&mut cards, &order);
            Ok(cards)
        });
        let cards = cards.unwrap();
        let shown: Vec<_> = cards.iter().filter_map(|card| Some(on(card, Device::Safe).last()?.1)).collect();
        assert_eq!(shown[..2], [format!("0x{approval}"), format!("0x{initiate}")], "{gas}");
    }
    for text in ["", "-1", "0x10", "1.5", "18446744073709551616", "calls"] {
        assert!(text.parse::<SafeTxGas>().is_err(), "{text}");
    }
}

#[test]
fn a_safe_is_of_a_known_version() {
    for (text, version) in [("1.0.0", SafeVersion::Before1_3), ("1.2.0", SafeVersion::Before1_3), ("1.3.0+L2", SafeVersion::From1_3)] {
        assert_eq!(text.parse(), Ok(version));
    }
    for text in ["", "1", "0.1.0", "2.0.0", "1.x", "one.two"] {
        assert!(text.parse::<SafeVersion>().is_err(), "{text}");
    }
}

#[test]
fn only_evm_orders_have_a_safe() {
    let case = fixture::<countersign::tron::Tron>("tron-token-approval-exact");
    let cards = with_unsigned::<countersign::tron::Tron, _>(&case, &Policy::default(), |order, _| {
        let order = Unsigned::from(order);
        let mut cards = hash_cards(&order);
        Safe::default().add_to(&mut cards, &order);
        Ok(cards)
    });
    assert!(cards.unwrap().iter().all(|card| on(card, Device::Safe).is_empty()));
}
