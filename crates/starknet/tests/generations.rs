//! The generations of the contract: each order is accepted only under its own pin, and hashes and calldata are those of starknet.js.

use countersign_core::{Code, OrderRecord, Policy, Refusal, Registry, Role, StarknetGeneration as Generation};
use countersign_starknet::recover::{self, Leg};
use countersign_starknet::{Felt, Gasless, ResourceBounds, Starknet, TxContext, felt, htlc};
use countersign_testkit::recover::{read_record, record};
use countersign_testkit::{Case, TestResult, asset_index, fixture, outcome, outcome_under, registry_with, verified_under};
use serde_json::{Value as Json, json};

/// Each generation with the case of an order and its record.
const CASES: [(&Generation, &str, &str); 4] = [
    (Generation::FEBRUARY_2025, "starknet-2025-02", "starknet:usdc"),
    (Generation::JULY_2025, "starknet-captured-2025-07", "starknet:dai"),
    (Generation::NOVEMBER_2025, "starknet-2025-11", "starknet:eth"),
    (Generation::CLIENT_3_1_3, "starknet-client-3-1-3", "starknet:usdt"),
];

/// The fixtures' registry with another pin of an asset.
fn pinned(asset: &str, generation: Option<&'static Generation>) -> Registry {
    let at = format!("/assets/{}/htlc/generation", asset_index(asset));
    registry_with(&[(&at, json!(generation.map(|generation| generation.name)))])
}

fn under(case: &Case, registry: &Registry) -> Result<Json, Refusal> {
    outcome_under::<Starknet>(case, registry, &Policy::default())
}

fn without_record(case: &Case) -> Case {
    let mut line = case.json();
    line.as_object_mut().expect("a line").remove("order");
    case.with_input(line.to_string())
}

#[test]
fn an_order_is_refused_under_every_other_pin() {
    const CALLDATA: &str = "/response/result/initiate_transaction/calldata";
    const TYPES: &str = "/response/result/typed_data/types/Initiate";
    const ID: &str = "/order/source_swap/swap_id";
    for (is, id, asset) in CASES {
        let case = fixture::<Starknet>(id);
        for pin in Generation::ALL.iter().copied().map(Some).chain([None]) {
            let expected = pin.unwrap_or(Generation::JULY_2025);
            let result = under(&case, &pinned(asset, pin));
            let names_contract = |generation| generation == Generation::NOVEMBER_2025;
            let (at, actual) = match (is, expected) {
                _ if is == expected => {
                    assert!(result.is_ok(), "{id} under {pin:?}: {result:?}");
                    continue;
                }
                (Generation::CLIENT_3_1_3, _) => (CALLDATA, "client_3_1_3"),
                (_, Generation::CLIENT_3_1_3) => (CALLDATA, "2025_02, captured_2025_07 or 2025_11"),
                _ if names_contract(is) && !names_contract(expected) => (TYPES, "2025_11 or client_3_1_3"),
                _ if names_contract(expected) => (TYPES, "2025_02 or captured_2025_07"),
                _ => (ID, is.name),
            };
            let refusal = result.expect_err(id);
            assert_eq!((refusal.code(), refusal.location()), (Code::GenerationMismatch, at), "{id} under {pin:?}");
            let shown = [refusal.expected(), refusal.actual()].map(|value| value.map(ToString::to_string).unwrap_or_default());
            assert_eq!(shown, [expected.name, actual], "{id} under {pin:?}");
        }
    }
}

/// Without a record and typed data, orders of three generations are accepted alike, because their calls are the same. Only their ids
/// differ.
#[test]
fn a_call_that_generations_share_is_signed_alike() -> TestResult {
    for (_, id, asset) in &CASES[..3] {
        let mut line = without_record(&fixture::<Starknet>(id)).json();
        line["response"]["result"]["typed_data"] = Json::Null;
        let case = fixture::<Starknet>(id).with_input(line.to_string());
        let signed = [Generation::FEBRUARY_2025, Generation::JULY_2025, Generation::NOVEMBER_2025]
            .map(|pin| under(&case, &pinned(asset, Some(pin))).map(|got| got["artefacts"].clone()));
        let [Ok(first), Ok(second), Ok(third)] = signed else { panic!("{id}: {signed:?}") };
        assert!(first == second && second == third, "{id}");
    }
    Ok(())
}

#[test]
fn a_domain_of_another_generation_is_refused_and_a_pinned_one_overrides_it() {
    for (is, id, asset) in CASES {
        let other = if is == Generation::CLIENT_3_1_3 { "0x31" } else { "0x32" };
        let mut line = without_record(&fixture::<Starknet>(id)).json();
        line["response"]["result"]["typed_data"]["domain"]["version"] = json!(other);
        let case = fixture::<Starknet>(id).with_input(line.to_string());
        let refusal = outcome::<Starknet>(&case).expect_err(id);
        let at = "/response/result/typed_data/domain/version";
        assert_eq!((refusal.code(), refusal.location()), (Code::GenerationMismatch, at), "{id}");

        let domain = format!("/assets/{}/htlc/domain", asset_index(asset));
        let overridden = registry_with(&[(&domain, json!({ "version": other }))]);
        assert!(under(&case, &overridden).is_ok(), "{id}");
        let refusal = under(&fixture::<Starknet>(id), &overridden).expect_err("the generation's own version is not the pinned one");
        assert_eq!((refusal.code(), refusal.location()), (Code::TypedDataDomain, at), "{id}");
    }
}

/// If a generation is pinned, a pinned domain does not allow other members of the message.
#[test]
fn a_pinned_domain_leaves_the_types_to_the_generation() {
    for (is, id, asset) in CASES {
        let domain = format!("/assets/{}/htlc/domain", asset_index(asset));
        let registry = registry_with(&[(&domain, json!({ "name": "HTLC" }))]);
        let mut line = without_record(&fixture::<Starknet>(id)).json();
        assert!(under(&fixture::<Starknet>(id).with_input(line.to_string()), &registry).is_ok(), "{id}");
        let result = &mut line["response"]["result"];
        let htlc = result["initiate_transaction"]["to"].clone();
        let typed_data = &mut result["typed_data"];
        let members = typed_data["types"]["Initiate"].as_array_mut().expect("members");
        if [Generation::NOVEMBER_2025, Generation::CLIENT_3_1_3].contains(&is) {
            members.pop();
            typed_data["message"].as_object_mut().expect("a message").remove("verifyingContract");
        } else {
            members.push(json!({ "name": "verifyingContract", "type": "ContractAddress" }));
            typed_data["message"]["verifyingContract"] = htlc;
        }
        let refusal = under(&fixture::<Starknet>(id).with_input(line.to_string()), &registry).expect_err(id);
        let at = "/response/result/typed_data/types/Initiate";
        assert_eq!((refusal.code(), refusal.location()), (Code::GenerationMismatch, at), "{id}");
    }
}

const HTLC: &str = "0x06579d255314109429a4477d89629bc2b94f529ae01979c2f8014f9246482603";
const OWNER: &str = "0x00609190b1348bcc06da44d58c79709495c11a5a6f0b9e154e1209f2a17dd933";
const SOLVER: &str = "0x078f8ae98fe78b5df9d3755b5910864c028d5249b4af685eb45687b1b76a4205";
const SECRET_HASH: &str = "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd";

/// The secret `00 01 .. 1f`.
fn secret() -> [u8; 32] {
    std::array::from_fn(|index| u8::try_from(index).expect("below 32"))
}

/// One order in each generation: hashes of domain, struct and message, swap id, calldata of a redemption. Computed with starknet.js
/// for an order of 50000 base units with a timelock of 2880 blocks on the test network.
struct Known {
    generation: &'static Generation,
    domain_hash: &'static str,
    struct_hash: &'static str,
    message_hash: &'static str,
    swap_id: &'static str,
}

const DOMAIN_1: &str = "0x6c210b1fea5c75f34a94a2ff8219155de14f537e021b255b556c46f36c57e3";
const KNOWN: [Known; 4] = [
    Known {
        generation: Generation::FEBRUARY_2025,
        domain_hash: DOMAIN_1,
        struct_hash: "0x3ec51928fce02c22eb93288f70a5283eb3d60dc9c9df3fbf4be97bc724314c7",
        message_hash: "0x9bc725fec9b2d84a16f3ab4649f16afe3ae743e9f757df3b511ad8a8224100",
        swap_id: "1b2f4e33b3b7cec5765451c607c2a8d3cce76ce7282039d5c90fa52078015e5",
    },
    Known {
        generation: Generation::JULY_2025,
        domain_hash: DOMAIN_1,
        struct_hash: "0x3ec51928fce02c22eb93288f70a5283eb3d60dc9c9df3fbf4be97bc724314c7",
        message_hash: "0x9bc725fec9b2d84a16f3ab4649f16afe3ae743e9f757df3b511ad8a8224100",
        swap_id: "7ff785323e5cb9ee7569575db24731ccf1636561ac82082e4ad7b27c666695",
    },
    Known {
        generation: Generation::NOVEMBER_2025,
        domain_hash: DOMAIN_1,
        struct_hash: "0x7118661074c091edd26ceb534769eb6c085bcfe2b2eef1856c5109746850778",
        message_hash: "0x676d21582126b97ba79ab737f96871d597fc2f99b72a2fc580777656d0ffc1e",
        swap_id: "623679b75a7e464b2f857e6d9938cc43cb7e7ee7f6c0e8a742b0981bd07b052",
    },
    Known {
        generation: Generation::CLIENT_3_1_3,
        domain_hash: "0x52a66ac386c2305f10081d4c2c07e4ec87813719ff58a935974f8c77f3988c8",
        struct_hash: "0x77b5ce56969ce6f73f3368dca51a079cf7beb3a556041b1d2b4b7a2ee8d774b",
        message_hash: "0x1a24c99fc1619740261065f3442bbf2c8c090f77a5867db5441c8aae9c52f4c",
        swap_id: "123",
    },
];

/// The fixtures' registry with the known order's contract and solver.
fn known_registry(generation: &'static Generation) -> &'static Registry {
    let htlc = format!("/assets/{}/htlc", asset_index("starknet_sepolia:wbtc"));
    let (address, pin) = (format!("{htlc}/address"), format!("{htlc}/generation"));
    let changes = [(&*address, json!(HTLC)), (&*pin, json!(generation.name)), ("/solvers", json!([]))];
    Box::leak(Box::new(registry_with(&changes)))
}

/// The call and the message of the known order, as in a response.
fn known_case(generation: &'static Generation) -> Case {
    let case = fixture::<Starknet>("starknet-approval-null");
    let mut line = case.json();
    line["request"]["source"]["owner"] = json!(OWNER);
    line["request"]["source"]["amount"] = json!("50000");
    line["request"]["secret_hash"] = json!(SECRET_HASH);
    let size = if generation == Generation::CLIENT_3_1_3 { 32 } else { 8 };
    let words: Vec<_> = SECRET_HASH.as_bytes().chunks(size).map(|word| format!("0x{}", String::from_utf8_lossy(word))).collect();
    let terms = [SOLVER, "0xb40", "0xc350", "0x0"].map(str::to_owned);
    let result = &mut line["response"]["result"];
    result["initiate_transaction"]["to"] = json!(HTLC);
    result["initiate_transaction"]["calldata"] = json!([&terms[..], &words].concat());
    let typed_data = &mut result["typed_data"];
    typed_data["message"] =
        json!({ "redeemer": SOLVER, "amount": { "low": "0xc350", "high": "0x0" }, "timelock": "2880", "secretHash": words });
    if [Generation::NOVEMBER_2025, Generation::CLIENT_3_1_3].contains(&generation) {
        typed_data["message"]["verifyingContract"] = json!(HTLC);
        let member = json!({ "name": "verifyingContract", "type": "ContractAddress" });
        typed_data["types"]["Initiate"].as_array_mut().expect("members").push(member);
    }
    if generation == Generation::CLIENT_3_1_3 {
        typed_data["domain"]["version"] = json!("0x32");
    }
    Case { registry: known_registry(generation), ..case.with_input(line.to_string()) }
}

#[test]
fn messages_hash_as_the_reference_sdk_hashes_them() -> TestResult {
    for known in KNOWN {
        let case = known_case(known.generation);
        let order = verified_under::<Starknet>(&case, case.registry, &Policy::default())?;
        assert_eq!(order.deposit().initiate.calldata, order.deposit().terms.encode());
        let unsigned = order.prepare(Gasless)?;
        let hashes = unsigned.payloads().message.as_ref().ok_or("no message")?.hashes;
        let hashes = [hashes.domain_hash, hashes.struct_hash, hashes.message_hash].map(|hash| format!("{hash:#x}"));
        assert_eq!(hashes, [known.domain_hash, known.struct_hash, known.message_hash], "{}", known.generation.name);
    }
    Ok(())
}

/// A record of the known order, whose source is on Starknet.
fn known_record(known: &Known) -> Result<OrderRecord, Refusal> {
    record::<Starknet>("starknet-captured-2025-07-testnet", |order| {
        let swap = &mut order["source_swap"];
        for (member, value) in [("initiator", OWNER), ("redeemer", SOLVER), ("amount", "50000"), ("secret_hash", SECRET_HASH)] {
            swap[member] = json!(value);
        }
        swap["timelock"] = json!(2880);
        swap["swap_id"] = json!(known.swap_id);
    })
}

#[test]
fn swaps_are_ended_as_their_contract_takes_it() -> TestResult {
    let words = [0x0001_0203, 0x0405_0607, 0x0809_0a0b, 0x0c0d_0e0f, 0x1011_1213, 0x1415_1617, 0x1819_1a1b, 0x1c1d_1e1f];
    let words = words.map(|word: u32| Felt::from(word)).to_vec();
    for known in KNOWN {
        let (registry, record) = (known_registry(known.generation), known_record(&known)?);
        let id = felt::parse(&format!("0x{}", known.swap_id)).map_err(|error| error.to_string())?;
        assert_eq!(recover::swap_id(&record, Leg::Source, registry)?, (id, known.generation != Generation::CLIENT_3_1_3));
        let refund = recover::refund(&record, Leg::Source, registry)?;
        assert_eq!((refund.call().selector, &refund.call().calldata), (htlc::REFUND, &vec![id]));

        let redeem = recover::redeem(&record, Leg::Source, &secret(), registry);
        let expected = match known.generation {
            Generation::JULY_2025 => {
                let refusal = redeem.expect_err("it is not known how this contract takes the secret");
                assert_eq!((refusal.code(), refusal.location()), (Code::CallFormUnknown, "/order/source_swap/asset"));
                assert_eq!(refusal.actual().map(ToString::to_string).as_deref(), Some("captured_2025_07"));
                continue;
            }
            Generation::CLIENT_3_1_3 => [vec![id], words.clone()].concat(),
            _ => [vec![id, Felt::from(8)], words.clone()].concat(),
        };
        let redeem = redeem?;
        assert_eq!((redeem.call().selector, &redeem.call().calldata), (htlc::REDEEM, &expected), "{}", known.generation.name);
        let unsigned = redeem.prepare(TxContext::new(Felt::ZERO, ResourceBounds::default()).sent_by(Felt::ONE).with_low_fee(true))?;
        let warned = unsigned.warnings().list().iter().any(|warning| warning.code() == Code::SwapIdUnchecked);
        assert_eq!(warned, known.generation == Generation::CLIENT_3_1_3);
    }
    Ok(())
}

/// The message that a redeemer signs to allow a refund before the timelock. The hashes were computed with starknet.js.
#[test]
fn an_instant_refund_is_signed_as_its_contract_hashes_it() -> TestResult {
    for known in KNOWN {
        let refund = recover::instant_refund(&known_record(&known)?, Leg::Source, known_registry(known.generation));
        let (expected, names_contract) = match known.generation {
            Generation::FEBRUARY_2025 => ("0x4b207da459fa02b7d0b74c855e353242b1740fce80d759ff64683634e88f1e6", false),
            Generation::NOVEMBER_2025 => ("0x1b3a12216fe06adc3fb123822f3ab99bc3ebb449d2ced6f7f52715271cca9b5", true),
            _ => {
                let refusal = refund.expect_err("it is not known what this contract hashes");
                assert_eq!((refusal.code(), refusal.location()), (Code::CallFormUnknown, "/order/source_swap/asset"));
                continue;
            }
        };
        let refund = refund?;
        let id = felt::parse(&format!("0x{}", known.swap_id)).map_err(|error| error.to_string())?;
        assert_eq!(format!("{:#x}", refund.hashes().message_hash), expected);
        assert_eq!((refund.redeemer, refund.message.contract.is_some()), (felt::parse(SOLVER).expect("a felt"), names_contract));
        let general: starknet_core::types::typed_data::TypedData = serde_json::from_value(refund.message.to_json())?;
        assert_eq!(general.message_hash(refund.redeemer)?, refund.hashes().message_hash);

        let recovery = refund.with_signature(&[Felt::from(7), Felt::from(8)].into());
        assert_eq!(recovery.call().selector, htlc::INSTANT_REFUND);
        assert_eq!(recovery.call().calldata, [id, Felt::TWO, Felt::from(7), Felt::from(8)]);
        assert_eq!((recovery.terms().role, format!("{:#066x}", recovery.to())), (Role::Refund, OWNER.to_owned()));
    }
    Ok(())
}

#[test]
fn an_id_of_another_formula_gives_no_recovery() -> TestResult {
    for known in &KNOWN[..3] {
        for other in &KNOWN[..3] {
            let record = known_record(other)?;
            let refund = recover::refund(&record, Leg::Source, known_registry(known.generation));
            match refund {
                Ok(_) => assert_eq!(known.generation, other.generation),
                Err(refusal) => {
                    assert_ne!(known.generation, other.generation);
                    assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/source_swap/swap_id"));
                }
            }
        }
    }
    let mut order = fixture::<Starknet>("starknet-client-3-1-3").json()["order"].take();
    for (id, is_id) in [("12ab", true), ("0x12", false), ("", false), ("xyz", false), (&"f".repeat(64), false)] {
        order["source_swap"]["swap_id"] = json!(id);
        let refund = recover::refund(&read_record(&order)?, Leg::Source, countersign_testkit::registry());
        assert_eq!(refund.as_ref().err().map(Refusal::code), (!is_id).then_some(Code::RecordSwapId), "{id}");
    }
    Ok(())
}
