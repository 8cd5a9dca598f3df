//! Rules that no line of the batch reaches: orders verified at a given time, and the records of orders under way.
use std::time::Duration;

use countersign::wire::{AffiliateFee, BasisPoints, Read};
use countersign::{
    ApprovalPolicy, Code, CreateOrder, Family, Policy, Proposal, Refusal, Registry, Severity, U256, Verified, Warning, chains::UnixTime,
    json, trust::Generation, verify, verify_record, wire::RequestedLeg,
};
use countersign_json::line::Case;
use countersign_testkit::lines::accepted_case;
use countersign_testkit::{registry, set};
use serde_json::{Value, json};

/// 2026-03-04T05:06:07Z, when the records of the fixtures were created, by `date -u -d 2026-03-04T05:06:07Z +%s`.
const CREATED: u64 = 1_772_600_767;
/// The deadline of the fixtures' records.
const DEADLINE: u64 = 1_772_604_367;

/// Verifies a case with changes to its record, at a given time.
fn verified(id: &str, now: Option<u64>, changes: &[(&str, Value)]) -> Result<Verified, Refusal> {
    with_proposal(id, changes, |proposal| {
        let proposal = match now {
            Some(now) => proposal.at_time(UnixTime::from_secs(now)),
            None => proposal,
        };
        verify(proposal, registry(), &Policy::default())
    })
}

fn tracked(id: &str, changes: &[(&str, Value)]) -> Result<(), Refusal> {
    with_proposal(id, changes, |proposal| verify_record(proposal, registry(), &Policy::default()).map(drop))
}

fn with_proposal<T>(id: &str, changes: &[(&str, Value)], then: impl FnOnce(Proposal<'_>) -> T) -> T {
    let mut line = accepted_case(id).json();
    for (at, value) in changes {
        set(&mut line, &format!("/order{at}"), value.clone());
    }
    let text = |member: &str| line[member].to_string();
    let (request, response, record) = (text("request"), text("response"), text("order"));
    let request = CreateOrder::read(json::Cursor::new(&json::parse(request.as_bytes()).unwrap(), json::At::REQUEST)).unwrap();
    then(Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes()))
}

fn code<T>(result: Result<T, Refusal>) -> Option<(Code, String)> {
    result.err().map(|refusal| (refusal.code(), refusal.location().to_owned()))
}

const EVM: &str = "evm-record-bitcoin-v1";
const BITCOIN: &str = "bitcoin-record-litecoin";

#[test]
fn the_formula_of_one_generation_does_not_refuse_the_swap_ids_of_another() {
    let audited = Generation::parse(Family::Solana, "audited_2025_11");
    let pinned = registry().clone().with_generation("solana_testnet:sol", audited);
    let other = [("/destination_swap/swap_id", json!("ab".repeat(32)))];
    let with =
        |registry: &Registry| with_proposal("evm-record-solana-testnet", &other, |order| verify(order, registry, &Policy::default()));
    assert_eq!(code(with(registry())), Some((Code::RecordSwapId, "/order/destination_swap/swap_id".to_owned())));
    let order = with(&pinned).unwrap();
    assert!(order.warnings().list().iter().any(|warning| warning.code() == Code::SwapIdUnchecked));
}

/// Before an order is prepared, its owner already reads what the payload itself chooses.
#[test]
fn a_verified_order_says_what_its_payloads_choose() {
    for (id, part) in [("tron-token-approval-unlimited", "the HTLC may take every token"), ("solana-native-legacy", "swap account")] {
        let order = verified(id, None, &[]).unwrap();
        assert!(order.summary().lines().iter().any(|line| line.to_string().contains(part)), "{id}: {:?}", order.summary());
    }
}

#[test]
fn every_verified_order_says_which_bytes_are_explained() {
    for id in [EVM, "tron-token-approval-unlimited", "starknet-approval-unlimited", "solana-native-legacy", "sui-native", BITCOIN] {
        let coverage = verified(id, None, &[]).unwrap().coverage();
        // The order id is covered in every family.
        assert!(coverage.len() > 2, "{id}: {coverage:?}");
    }
}

#[test]
fn an_approval_that_is_rewritten_to_the_amount_needs_no_warning() {
    for id in ["tron-token-approval-unlimited", "starknet-approval-unlimited"] {
        let line = accepted_case(id).json().to_string();
        let value = json::parse(line.as_bytes()).unwrap();
        let case = Case::from_value(&value).unwrap();
        for (approvals, is_warned) in [(ApprovalPolicy::AsProposed, true), (ApprovalPolicy::Exact, false)] {
            let (unsigned, _) = case.run(registry(), &Policy::default().with_approvals(approvals)).unwrap();
            let codes: Vec<_> = unsigned.warnings().list().iter().map(Warning::code).collect();
            assert_eq!(codes.contains(&Code::UnlimitedApproval), is_warned, "{id}: {approvals:?}: {codes:?}");
        }
    }
}

#[test]
fn an_order_is_not_paid_after_its_deadline_or_too_close_to_it() {
    let at = |now| code(verified(EVM, Some(now), &[]));
    let deadline = || "/order/deadline".to_owned();
    assert_eq!(at(CREATED), None);
    assert_eq!(at(DEADLINE - 60), None);
    assert_eq!(at(DEADLINE - 59), Some((Code::DeadlineTooClose, deadline())));
    assert_eq!(at(DEADLINE), Some((Code::OrderExpired, deadline())));
    assert_eq!(at(DEADLINE + 3 * 86_400), Some((Code::OrderExpired, deadline())));
    assert_eq!(at(u64::MAX), Some((Code::OrderExpired, deadline())));
    // Without a time the deadline is not checked.
    assert_eq!(code(verified(EVM, None, &[("/deadline", json!(1))])), None);
    // Ethereum's nominal block time is 12 s: 10 confirmations and one more block.
    let slow = [("/source_swap/required_confirmations", json!(10))];
    assert_eq!(code(verified(EVM, Some(DEADLINE - 132), &slow)), None);
    assert_eq!(code(verified(EVM, Some(DEADLINE - 131), &slow)), Some((Code::DeadlineTooClose, deadline())));
}

#[test]
fn without_a_deadline_an_order_holds_for_a_time_after_its_creation() {
    let none = [("/deadline", Value::Null)];
    let created = || "/order/created_at".to_owned();
    assert_eq!(code(verified(EVM, Some(CREATED + 3_600 - 60), &none)), None);
    assert_eq!(code(verified(EVM, Some(CREATED + 3_600), &none)), Some((Code::OrderExpired, created())));
    // A Bitcoin deposit has six hours, of which the time of two blocks is needed.
    assert_eq!(code(verified(BITCOIN, Some(CREATED + 6 * 3_600 - 1_200), &none)), None);
    assert_eq!(code(verified(BITCOIN, Some(CREATED + 6 * 3_600 - 1_199), &none)), Some((Code::DeadlineTooClose, created())));
    let nothing = [("/deadline", Value::Null), ("/created_at", json!(""))];
    assert_eq!(code(verified(EVM, Some(CREATED), &nothing)), Some((Code::MissingField, created())));
}

#[test]
fn an_order_from_the_future_or_of_no_time_is_refused() {
    assert_eq!(code(verified(EVM, Some(CREATED - 600), &[])), None);
    assert_eq!(code(verified(EVM, Some(CREATED - 601), &[])), Some((Code::CreatedInFuture, "/order/created_at".to_owned())));
    for (member, value) in [("/deadline", json!("soon")), ("/deadline", json!(1_772_604_367_000_u64)), ("/created_at", json!("yesterday"))]
    {
        let refused = code(verified(EVM, Some(CREATED), &[(member, value.clone())]));
        assert_eq!(refused, Some((Code::TimeMalformed, format!("/order{member}"))), "{value}");
    }
}

/// A line of the program, moved to the start of a line on a screen of 80 columns by spaces.
const FORGED: &str = "2026-03-04T05:06:07Z                                      get  0.259 BTC (25900000 base units) on Bitcoin";

#[test]
fn a_time_of_a_record_is_a_time_or_the_order_is_refused() {
    for member in ["/created_at", "/deadline"] {
        for text in [FORGED, "soon", "1772604367000", "2026-03-04", "\u{5e9}\u{5dc}\u{5d5}\u{5dd}"] {
            let refused = code(verified(EVM, None, &[(member, json!(text))]));
            assert_eq!(refused, Some((Code::TimeMalformed, format!("/order{member}"))), "{text}");
        }
    }
}

#[test]
fn a_time_of_a_record_is_shown_as_a_time_in_utc() {
    let lines = |changes: &[(&str, Value)]| {
        let summary = verified(EVM, None, changes).unwrap().summary();
        summary.lines().iter().map(|line| line.text.clone()).collect::<Vec<_>>()
    };
    // The same moments in other spellings; the deadline's seconds by GNU date.
    for (created, deadline) in
        [("2026-03-04T05:06:07Z", json!(1_772_604_367)), ("2026-03-04T07:06:07.123456+02:00", json!("2026-03-04T06:06:07.9Z"))]
    {
        let shown = lines(&[("/created_at", json!(created)), ("/deadline", deadline)]);
        for line in ["order v1 created 2026-03-04T05:06:07Z", "deadline 2026-03-04T06:06:07Z"] {
            assert!(shown.iter().any(|shown| shown == line), "{shown:?}");
        }
    }
    let shown = lines(&[("/created_at", json!("")), ("/deadline", Value::Null)]);
    assert!(shown.iter().any(|line| line == "order v1 without a time of creation"), "{shown:?}");
    assert!(!shown.iter().any(|line| line.starts_with("deadline")), "{shown:?}");
}

/// What is neither recomputed nor requested is free text of the service.
#[test]
fn free_text_of_the_service_is_quoted_in_an_accepted_order() {
    let id = "evm-record-solana-other-id";
    let fee = json!([{ "asset": FORGED, "address": FORGED, "fee": FORGED }]);
    let order = verified(id, None, &[("/destination_swap/swap_id", json!(FORGED)), ("/affiliate_fees", fee)]).unwrap();
    let quote = "\"2026-03-04T05:06:07Z \\u{0020}\\u{0020}";
    let summary = order.summary();
    let line = summary.lines().iter().find(|line| line.text.starts_with("destination swap id")).unwrap();
    assert!(line.text.starts_with(&format!("destination swap id {quote}")) && line.text.ends_with("on Bitcoin\""), "{line}");
    for wanted in [Code::SwapIdUnchecked, Code::AffiliateFeesNotRequested] {
        let warning = order.warnings().list().iter().find(|warning| warning.code() == wanted).unwrap();
        assert!(warning.detail().unwrap().contains(quote), "{warning}");
    }
    let lines = summary.lines().iter().map(ToString::to_string).chain(order.warnings().list().iter().map(ToString::to_string));
    for line in lines {
        assert!(!line.contains("  "), "{line}");
    }
}

/// A refusal has the place and the value of the text that it refuses.
#[test]
fn free_text_of_the_service_is_quoted_in_a_refusal() {
    let forged = "x                                             accepted  every byte is accounted for; you can sign this order";
    for (at, value) in [("/order_id", json!(forged)), ("/created_at", json!(forged)), ("/destination_swap/redeemer", json!(forged))] {
        let refusal = verified(EVM, None, &[(at, value)]).unwrap_err().to_string();
        assert!(refusal.contains("got \"x \\u{0020}") && refusal.ends_with("this order\""), "{refusal}");
        assert!(!refusal.contains("  "), "{refusal}");
    }
}

#[test]
fn the_deadline_is_looked_at_again_before_submitting() {
    let order = verified(EVM, None, &[]).unwrap();
    assert_eq!(order.check_deadline(UnixTime::from_secs(DEADLINE - 60)), Ok(()));
    assert_eq!(code(order.check_deadline(UnixTime::from_secs(DEADLINE - 1))).unwrap().0, Code::DeadlineTooClose);
    assert_eq!(code(order.check_deadline(UnixTime::from_secs(DEADLINE + 1))).unwrap().0, Code::OrderExpired);
}

#[test]
fn times_of_an_order_under_way_can_be_read() {
    assert_eq!(code(tracked(EVM, &[])), None);
    for good in [json!("2026-03-04T06:06:07Z"), json!("1772604367"), Value::Null] {
        assert_eq!(code(tracked(EVM, &[("/source_swap/initiate_timestamp", good)])), None);
    }
    for member in [
        "/created_at",
        "/deadline",
        "/source_swap/initiate_timestamp",
        "/destination_swap/redeem_timestamp",
        "/source_swap/refund_timestamp",
    ] {
        let refused = code(tracked(EVM, &[(member, json!("later"))]));
        assert_eq!(refused, Some((Code::TimeMalformed, format!("/order{member}"))), "{member}");
    }
}

#[test]
fn transactions_of_an_order_under_way_have_the_form_of_their_chain() {
    // Two transactions of a captured order of the live service: one on Bitcoin's test network, one on Ethereum's.
    let bitcoin = json!("66e11d4099b9351f2b4981b921c2822af5665406968a4896d5b7a2083d56183a:90249");
    let evm = json!("0x7b3d81b0caddadbb35a9cf717b5f23b2ceddfa7a1a5251b2dbee723247cffdd6");
    let funded = |id: &Value| [("/source_swap/initiate_tx_hash", id.clone())];
    let paid = |id: &Value| [("/destination_swap/initiate_tx_hash", id.clone())];
    assert_eq!(code(tracked(EVM, &funded(&evm))), None);
    assert_eq!(code(tracked(EVM, &paid(&bitcoin))), None);
    assert_eq!(code(tracked(BITCOIN, &funded(&bitcoin))), None);
    for (id, changes) in [(EVM, funded(&bitcoin)), (EVM, paid(&evm)), (EVM, funded(&json!("x"))), (BITCOIN, funded(&json!("0xdead")))] {
        assert_eq!(code(tracked(id, &changes)), Some((Code::TransactionIdMalformed, format!("/order{}", changes[0].0))), "{changes:?}");
    }
    for member in ["redeem_tx_hash", "refund_tx_hash"] {
        let at = format!("/destination_swap/{member}");
        assert_eq!(code(tracked(EVM, &[(&at, json!("0xdead"))])), Some((Code::TransactionIdMalformed, format!("/order{at}"))));
    }
}

/// A reader looks for each leg on the chain of its own asset, at the HTLC that is pinned for it.
#[test]
fn the_terms_of_an_order_under_way_belong_to_their_own_leg() {
    for id in [EVM, BITCOIN] {
        let record = accepted_case(id).json()["order"].clone();
        let order = with_proposal(id, &[], |proposal| verify_record(proposal, registry(), &Policy::default())).unwrap();
        for (leg, terms) in [("source_swap", &order.terms.source), ("destination_swap", &order.terms.destination)] {
            let swap = &record[leg];
            let pinned = registry().asset(swap["asset"].as_str().unwrap()).unwrap();
            let texts = [&*terms.chain, terms.asset.as_str(), &*terms.swap_id, &terms.secret_hash.to_string(), &terms.amount.to_string()];
            assert_eq!(
                texts,
                ["chain", "asset", "swap_id", "secret_hash", "amount"].map(|member| swap[member].as_str().unwrap()),
                "{id} {leg}"
            );
            assert_eq!((&terms.network, terms.pace), (&pinned.chain.network, pinned.chain.pace), "{id} {leg}");
            assert_eq!((&terms.htlc, terms.token.as_ref()), (&pinned.htlc, pinned.token.as_ref().map(|token| &token.text)), "{id} {leg}");
            assert!(terms.htlc.is_some() && terms.swap_id_recomputed, "{id} {leg}");
        }
    }
}

/// Tron's formula is not known to be the chain's own, so an equal id proves nothing there.
#[test]
fn an_id_by_an_uncertain_formula_counts_as_not_recomputed() {
    let order = with_proposal("tron-record-evm-v2", &[], |proposal| verify_record(proposal, registry(), &Policy::default())).unwrap();
    assert_eq!((order.terms.source.swap_id_recomputed, order.terms.destination.swap_id_recomputed), (false, true));
}

/// On Bitcoin the initiator is written as the owner's address or as the requested key, and as nothing else.
#[test]
fn the_initiator_of_a_bitcoin_order_is_the_owner_or_the_requested_key() {
    let id = "bitcoin-delegate";
    let initiator = |value: &Value| code(verified(id, None, &[("/source_swap/initiator", value.clone())]));
    let (own, other) = (accepted_case(id).json(), accepted_case("bitcoin-address").json());
    for value in [&own["request"]["source"]["owner"], &own["request"]["source"]["delegate"]] {
        assert_eq!(initiator(value), None, "{value}");
    }
    let refused = Some((Code::RecordMismatch, "/order/source_swap/initiator".to_owned()));
    assert_eq!(initiator(&other["request"]["source"]["owner"]), refused);
}

/// The id of a swap of version 1 does not bind its timelock, so only these rules notice another one.
#[test]
fn the_timelock_of_the_destination_is_at_most_half_the_sources_and_long_enough() {
    let id = "evm-record-evm-v1";
    let record = accepted_case(id).json()["order"].clone();
    let leg = |leg: &str| {
        let pinned = registry().asset(record[leg]["asset"].as_str().unwrap()).unwrap();
        (u128::from(record[leg]["timelock"].as_u64().unwrap() * pinned.chain.pace.contract), &pinned.chain)
    };
    let ((source, _), (_, chain)) = (leg("source_swap"), leg("destination_swap"));
    let warned = |timelock: u64, warning: Code| {
        let order = verified(id, None, &[("/destination_swap/timelock", json!(timelock))]).unwrap();
        order.warnings().list().iter().any(|given| given.code() == warning)
    };
    let half = u64::try_from(source / 2 / u128::from(chain.pace.contract)).unwrap();
    assert!(!warned(half, Code::DestinationTimelockClose) && warned(half + 1, Code::DestinationTimelockClose));
    let least = chain.profile.finality.min_timelock(chain.pace.fastest);
    assert!(!warned(least, Code::DestinationTimelockShort) && warned(least - 1, Code::DestinationTimelockShort));
    let all = [("/destination_swap/timelock", json!(2 * half))];
    assert_eq!(code(verified(id, None, &all)).unwrap().0, Code::RecordOutlastsSource);
    assert_eq!(code(verified(id, None, &[("/destination_swap/timelock", json!(2 * half - 1))])), None);
}

/// The paces of the batch contract decide about two timelocks. Where today's paces would refuse what they accept, the order is accepted with
/// a warning of the highest severity; where today's would accept what they refuse, it stays refused. A registry's paces come before both.
#[test]
fn the_contracts_paces_decide_and_todays_paces_warn() {
    // 2,880 blocks of Starknet were a day at 30 s, and are 96 minutes at 2 s. 600 blocks of Ethereum are two hours.
    let slower = "starknet-captured-2025-07-testnet";
    let pinned = |block_time: Option<Value>| {
        let mut file: Value = serde_json::to_value(registry()).unwrap();
        let chain = file["chains"].as_array_mut().unwrap().iter_mut().find(|chain| chain["chain"] == "starknet_sepolia").unwrap();
        chain["block_time"] = block_time.unwrap_or_default();
        Registry::from_json(file.to_string().as_bytes()).unwrap()
    };
    let outcome = |registry: &Registry| {
        let order = with_proposal(slower, &[], |proposal| verify(proposal, registry, &Policy::default()));
        order.map(|order| order.warnings().list().iter().find(|warning| warning.code() == Code::TimelocksDependOnPace).cloned())
    };
    let warning = outcome(registry()).unwrap().unwrap();
    assert_eq!(warning.severity(), Severity::Danger);
    assert!(warning.to_string().contains("about 2 h") && warning.to_string().contains("about 1.6 h"), "{warning}");
    assert_eq!(outcome(&pinned(Some(json!(30)))).unwrap(), None);
    assert_eq!(code(outcome(&pinned(Some(json!("2.5"))))).unwrap().0, Code::RecordOutlastsSource, "7,200 s are not below 7,200 s");
    assert_eq!(outcome(&pinned(Some(json!("2.501")))).unwrap(), None);
    // 43,200 blocks of Base were a day at 2 s, like 7,200 of Ethereum, and are 2.4 hours at 0.2 s.
    let faster = verified("evm-record-evm-v1", None, &[("/destination_swap/timelock", json!(43_200))]);
    assert_eq!(code(faster).unwrap().0, Code::RecordOutlastsSource);
}

/// Off line no pace is measured, so a timelock must be long enough at the fastest one: that of the registry, else that of the chain.
#[test]
fn a_timelock_is_short_at_the_fastest_pace() {
    // 3,600 blocks of Base.
    let is_short = |min_block_time: Value| {
        let mut file: Value = serde_json::to_value(registry()).unwrap();
        let chain = file["chains"].as_array_mut().unwrap().iter_mut().find(|chain| chain["chain"] == "base").unwrap();
        chain["min_block_time"] = min_block_time;
        let registry = Registry::from_json(file.to_string().as_bytes()).unwrap();
        let order = with_proposal("evm-record-evm-v1", &[], |proposal| verify(proposal, &registry, &Policy::default())).unwrap();
        order.warnings().list().iter().any(|warning| warning.code() == Code::DestinationTimelockShort)
    };
    // Twenty minutes, of which ten are for the payment to be final, are 3,600 blocks of a third of a second.
    assert!(is_short(Value::Null) && is_short(json!("0.333")) && !is_short(json!("0.334")));
}

#[test]
fn an_approval_of_exactly_the_amount_suits_every_policy() {
    for approvals in [ApprovalPolicy::AsProposed, ApprovalPolicy::Exact, ApprovalPolicy::RefuseInexact] {
        let policy = Policy::default().with_approvals(approvals).refusing(Code::ApprovalAboveAmount);
        let order = with_proposal("evm-token-approval-exact", &[], |proposal| verify(proposal, registry(), &policy));
        assert_eq!(code(order), None, "{approvals:?}");
    }
}

#[test]
fn the_longest_timelock_in_nominal_time_is_still_allowed() {
    let pinned = registry().asset("ethereum:usdc").unwrap();
    let timelock = accepted_case(EVM).json()["order"]["source_swap"]["timelock"].as_u64().unwrap();
    let seconds = timelock * pinned.chain.pace.contract / 1_000;
    let outcome = |seconds| {
        let policy = Policy::default().with_max_timelock("ethereum", Duration::from_secs(seconds));
        code(with_proposal(EVM, &[], |proposal| verify(proposal, registry(), &policy))).map(|(code, _)| code)
    };
    assert_eq!((outcome(seconds), outcome(seconds - 1)), (None, Some(Code::TimelockTooLong)));
}

#[test]
fn a_secret_of_an_order_under_way_matches_its_hash() {
    for leg in ["source_swap", "destination_swap"] {
        let at = format!("/{leg}/secret");
        assert_eq!(code(tracked(EVM, &[(&at, json!("0x"))])), None, "no secret yet");
        for wrong in [&"11".repeat(32), &format!("0x{}", "11".repeat(32)), "11", "x"] {
            let refused = code(tracked(EVM, &[(&at, json!(wrong))]));
            assert_eq!(refused, Some((Code::SecretWrong, format!("/order{at}"))), "{wrong}");
        }
    }
}

#[test]
fn sixteen_fees_that_were_not_requested_are_shown_and_the_rest_is_counted() {
    let fees = |count: usize| -> Vec<String> {
        let fee = |index| json!({ "asset": "ethereum:usdc", "address": format!("somebody {index}"), "fee": "30" });
        let order = verified(EVM, None, &[("/affiliate_fees", (0..count).map(fee).collect())]).unwrap();
        let about = order.warnings().list().iter().filter(|warning| warning.code() == Code::AffiliateFeesNotRequested);
        about.map(|warning| warning.detail().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(fees(16).len(), 16);
    let shown = fees(18);
    assert!(shown.len() == 17 && shown[15].contains("somebody 15") && shown[16] == "and 2 more fees", "{shown:?}");
}

#[test]
fn a_fee_of_another_account_in_base58_is_shown() {
    let line = accepted_case(EVM).json();
    let asset = line["request"]["source"]["asset"].clone();
    // Letter case makes another account in base58, and the same one in hex.
    for (wanted, got, is_shown) in [("So1k", "So1k", false), ("So1k", "So1K", true), ("0xab", "0xAB", false)] {
        let mut line = line.clone();
        line["request"]["affiliate_fees"] = json!([{"asset": asset, "address": wanted, "fee": 5}]);
        line["order"]["affiliate_fees"] = json!([{"asset": asset, "address": got, "fee": "5"}]);
        let request = CreateOrder::from_json(line["request"].to_string().as_bytes()).unwrap();
        let (response, record) = (line["response"].to_string(), line["order"].to_string());
        let order = verify(Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes()), registry(), &Policy::default());
        let is_warned = order.unwrap().warnings().list().iter().any(|warning| warning.code() == Code::AffiliateFeesNotRequested);
        assert_eq!(is_warned, is_shown, "{wanted} {got}");
    }
}

#[test]
fn fees_that_are_a_list_of_numbers_are_shown_as_one() {
    let order = verified(EVM, None, &[("/affiliate_fees", vec![0; 1_000].into())]).unwrap();
    assert_eq!(order.warnings().list().iter().filter(|warning| warning.code() == Code::AffiliateFeesNotRequested).count(), 1);
}

#[test]
fn a_key_that_cannot_be_the_owners_is_refused_in_the_record() {
    let (assets, solvers) = (registry().assets(), registry().solvers());
    let internal = assets.iter().find(|asset| asset.record.id.as_str() == "bitcoin:btc").unwrap().htlc.as_ref().unwrap().to_string();
    let solver = |chain: &str| solvers.iter().rev().find(|solver| solver.chain == chain).unwrap().address.clone();
    // The x coordinate of secp256k1's generator (SEC 2), so the public key of the secret 1.
    let generator = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    for key in [internal.as_str(), &solver("bitcoin"), &solver("litecoin"), generator] {
        for (leg, expected) in [("source_swap", Code::InitiatorMismatch), ("destination_swap", Code::PayoutInvalid)] {
            let at = format!("/{leg}/delegate");
            assert_eq!(code(verified(BITCOIN, None, &[(&at, key.into())])), Some((expected, format!("/order{at}"))), "{key}");
        }
    }
    // Any other key only gives another address.
    let stranger = [("/source_swap/delegate", "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036fa".into())];
    assert_ne!(code(verified(BITCOIN, None, &stranger)).unwrap().0, Code::InitiatorMismatch);
}

#[test]
fn what_reading_a_request_refuses_is_refused_of_its_fields_too() {
    let line = accepted_case(EVM).json();
    let (text, response) = (line["request"].to_string(), line["response"].to_string());
    let request = CreateOrder::from_json(text.as_bytes()).unwrap();
    let verified = |request: &CreateOrder| verify(Proposal::new(request, response.as_bytes()), registry(), &Policy::default());
    assert!(verified(&request).is_ok());
    type Leg = fn(&mut CreateOrder) -> &mut RequestedLeg;
    let legs: [(Leg, &str); 2] = [(|order| &mut order.source, "source"), (|order| &mut order.destination, "destination")];
    for (leg, at) in legs {
        let mut nothing = request.clone();
        leg(&mut nothing).amount = U256::ZERO;
        assert_eq!(code(verified(&nothing)), Some((Code::AmountZero, format!("/request/{at}/amount"))));
    }
    let mut all = request.clone().with_affiliate_fee(AffiliateFee::new(request.source.asset.clone(), "0x", BasisPoints::new(1)).unwrap());
    (all.slippage, all.affiliate_fees[0].fee) = (Some(BasisPoints::WHOLE), BasisPoints::new(10_001));
    let too_much = |at: &str| Some((Code::NumberTooLarge, at.to_owned()));
    assert_eq!(code(verified(&all)), too_much("/request/affiliate_fees/0/fee"));
    all.slippage = Some(BasisPoints::new(10_001));
    assert_eq!(code(verified(&all)), too_much("/request/slippage"));
    // All of it, in basis points.
    assert_eq!(request.clone().with_slippage(BasisPoints::WHOLE).unwrap().slippage, Some(BasisPoints::WHOLE));
    assert_eq!(code(request.clone().with_slippage(BasisPoints::new(10_001))), too_much("/slippage"));
    let fee = |points| AffiliateFee::new(request.source.asset.clone(), "0x", BasisPoints::new(points));
    assert_eq!(fee(10_000).unwrap().fee, BasisPoints::WHOLE);
    assert_eq!(code(fee(10_001)), too_much("/fee"));
}

/// The source would only come back after its timelock.
#[test]
#[cfg(all(feature = "evm", feature = "bitcoin"))]
fn a_payout_that_cannot_be_redeemed_is_said() {
    // A taproot output is dust below 330 on Bitcoin and 3,300 on Litecoin. At 20 sat/vB, 142 vB cost 2,840.
    for (id, dust) in [("evm-record-bitcoin-testnet", 330), ("evm-record-litecoin-testnet", 3_300)] {
        for (amount, expected) in
            [(dust - 1, Some("amount_below_dust")), (dust, Some("fee_above_payout")), (5_679, Some("fee_above_payout")), (5_680, None)]
        {
            let mut case = countersign_testkit::lines::accepted_case(id).json();
            case["request"]["destination"]["amount"] = amount.to_string().into();
            case["order"]["destination_swap"]["amount"] = amount.to_string().into();
            let output = countersign_testkit::lines::run(&case.to_string());
            assert_eq!(output["ok"], true, "{output}");
            let codes = countersign_testkit::lines::warning_codes(&output);
            let found: Vec<_> = codes.into_iter().filter(|code| ["amount_below_dust", "fee_above_payout"].contains(code)).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{id} {amount}");
        }
    }
}
