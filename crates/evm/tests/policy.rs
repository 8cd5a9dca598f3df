//! The limits of the wallet's policy, and what the registry lists about chains and solvers.
use std::time::Duration;

use countersign_core::{Blame, Code, Policy, Refusal, Registry};
use countersign_evm::{Evm, VerifiedOrder};
use countersign_testkit::{TestResult, fixture, fixtures, registry, registry_json, set, verified, verified_under};
use serde_json::json;

/// 43200 blocks of two seconds: 24 hours.
const CASE: &str = "evm-token-approval-exact";
const DAY: u64 = 86_400;
/// The location of the timelock in the call.
const TIMELOCK: &str = "/response/result/initiate_transaction/data#36-68";

fn under(id: &str, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder, Refusal> {
    verified_under::<Evm>(&fixture::<Evm>(id), registry, policy)
}

fn limited(chain: &str, seconds: u64) -> Policy {
    let mut policy = Policy::default();
    policy.max_timelock.insert(chain.to_owned(), Duration::from_secs(seconds));
    policy
}

/// A limit in time is converted to blocks for each chain. The same number of blocks is hours on one chain and days on another.
#[test]
fn a_timelock_is_limited_in_time_as_well() {
    let order = under(CASE, registry(), &Policy::default()).unwrap();
    let timelock = order.terms().timelock.unwrap();
    // Today a block of Base takes a fifth of a second, for display. The limit counts the slower pace.
    assert_eq!((timelock.units, timelock.nominal_millis), (43_200, 8_640_000));
    for chain in ["base", "*"] {
        assert!(under(CASE, registry(), &limited(chain, DAY)).is_ok(), "{chain}: the limit itself is allowed");
        let refusal = under(CASE, registry(), &limited(chain, DAY - 1)).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::TimelockTooLong, TIMELOCK));
        assert!(refusal.expected().unwrap().to_string().contains("86399 s"), "{refusal}");
        assert!(refusal.actual().unwrap().to_string().contains("43200 blocks"), "{refusal}");
    }
    assert!(under(CASE, registry(), &limited("ethereum", 1)).is_ok(), "another chain's limit");
    // The limit of a chain takes precedence over the general one, in both directions.
    let mut both = limited("*", 1);
    both.max_timelock.insert("base".to_owned(), Duration::from_secs(DAY));
    assert!(under(CASE, registry(), &both).is_ok());
    let mut both = limited("*", DAY);
    both.max_timelock.insert("base".to_owned(), Duration::from_secs(1));
    assert_eq!(under(CASE, registry(), &both).unwrap_err().code(), Code::TimelockTooLong);
    // The limit in blocks applies too.
    let mut blocks = limited("*", 10 * DAY);
    blocks.evm.timelock = 43_199;
    assert_eq!(under(CASE, registry(), &blocks).unwrap_err().code(), Code::TimelockTooLong);
}

#[test]
fn a_policy_file_limits_a_timelock_in_seconds() -> TestResult {
    let policy = Policy::from_json(br#"{"max_timelock_seconds":{"base":86399}}"#)?;
    assert_eq!(under(CASE, registry(), &policy).unwrap_err().location(), TIMELOCK);
    let policy = Policy::from_json(br#"{"max_timelock_seconds":{"base":86400}}"#)?;
    assert!(under(CASE, registry(), &policy).is_ok());
    Ok(())
}

/// Anything that could not be checked is a warning, and the policy may refuse warnings.
#[test]
fn a_refused_warning_refuses_the_order() -> TestResult {
    let id = "evm-token-approval-unlimited";
    let codes: Vec<_> = under(id, registry(), &Policy::default())?.warnings().list().iter().map(|warning| warning.code()).collect();
    assert!(codes.contains(&Code::UnlimitedApproval) && codes.contains(&Code::NoOrderRecord), "{codes:?}");
    for code in codes {
        let mut policy = Policy::default();
        policy.refused_warnings.insert(code);
        let refusal = under(id, registry(), &policy).unwrap_err();
        assert_eq!((refusal.code(), refusal.blame()), (Code::WarningRefused, Blame::Caller));
        assert!(refusal.to_string().contains(code.name()), "{refusal}");
        // From a file as well.
        let file = format!(r#"{{"refused_warnings":["{code}"]}}"#);
        assert_eq!(under(id, registry(), &Policy::from_json(file.as_bytes())?).unwrap_err().code(), Code::WarningRefused);
    }
    let mut policy = Policy::default();
    policy.refused_warnings.insert(Code::SecretNotYours);
    assert!(under(id, registry(), &policy).is_ok(), "a warning that this order does not have");
    assert_eq!(under("evm-secret-hash-not-requested", registry(), &policy).unwrap_err().code(), Code::WarningRefused);
    assert_eq!(Policy::from_json(br#"{"refused_warnings":["no_such_code"]}"#).unwrap_err().location(), "/refused_warnings/0");
    Ok(())
}

fn registry_listing(chain: &str, timelock: u64) -> Registry {
    let mut pins = registry_json();
    let index = pins["chains"].as_array().unwrap().iter().position(|pinned| pinned["chain"] == chain).unwrap();
    set(&mut pins, &format!("/chains/{index}/source_timelock"), json!(timelock.to_string()));
    Registry::from_json(pins.to_string().as_bytes()).unwrap()
}

/// The service lists the timelocks of source legs. A longer one is a warning, not a refusal.
#[test]
fn a_timelock_above_the_listed_one_is_a_warning() -> TestResult {
    let warned = |registry: &Registry| {
        let order = under(CASE, registry, &Policy::default()).unwrap();
        order
            .warnings()
            .list()
            .iter()
            .find(|warning| warning.code() == Code::TimelockAboveListed)
            .and_then(|warning| warning.detail().map(str::to_owned))
    };
    assert_eq!(warned(registry()), None, "the fixtures' registry lists none that is shorter");
    assert_eq!(warned(&registry_listing("base", 43_200)), None);
    assert_eq!(warned(&registry_listing("base", 43_199)).as_deref(), Some("43200 of 43199 blocks"));
    assert_eq!(warned(&registry_listing("ethereum", 1)), None, "another chain's");
    let mut policy = Policy::default();
    policy.refused_warnings.insert(Code::TimelockAboveListed);
    assert_eq!(under(CASE, &registry_listing("base", 1), &policy).unwrap_err().code(), Code::WarningRefused);
    // The signed data is the same.
    let case = fixture::<Evm>(CASE);
    assert_eq!(
        under(CASE, &registry_listing("base", 1), &Policy::default())?.deposit().initiate,
        verified::<Evm>(&case).deposit().initiate
    );
    Ok(())
}

/// Of the fees in a record, only a few are shown, and the rest are counted.
#[test]
fn a_flood_of_fees_is_counted() {
    let mut tree: serde_json::Value = serde_json::from_str(&fixture::<Evm>("evm-record-bitcoin-v1").input).expect("JSON");
    tree["order"]["affiliate_fees"] = (0..50_000).map(|fee| serde_json::json!({ "fee": fee })).collect();
    let case = fixture::<Evm>("evm-record-bitcoin-v1").with_input(tree.to_string());
    let verified = verified::<Evm>(&case);
    let fees: Vec<_> = verified.warnings().list().iter().filter(|warning| warning.code() == Code::AffiliateFeesNotRequested).collect();
    assert_eq!(fees.len(), 17);
    assert_eq!(fees.last().expect("a warning").detail(), Some("and 49984 more fees"));
}

/// One account may be a solver under two ids. An order is accepted if one of them is on both legs.
#[test]
fn a_solver_may_be_pinned_under_two_ids() {
    let mut pins: serde_json::Value = registry_json();
    let solvers = pins["solvers"].as_array_mut().expect("solvers");
    let mut twice: Vec<_> =
        solvers.iter().filter(|solver| solver["chain"].as_str().is_some_and(|chain| chain.starts_with("bitcoin"))).cloned().collect();
    assert!(!twice.is_empty());
    for solver in &mut twice {
        solver["solver_id"] = "another id".into();
    }
    twice.append(solvers);
    *solvers = twice;
    let registry = Registry::from_json(pins.to_string().as_bytes()).expect("a registry");
    let mut judged = 0;
    for case in fixtures::<Evm>().unwrap().into_iter().filter(|case| case.input.contains("\"order\":{")) {
        let verified = verified_under::<Evm>(&case, &registry, &Policy::default());
        assert!(verified.is_ok(), "{}: {:?}", case.id, verified.err());
        judged += 1;
    }
    assert!(judged > 10, "{judged}");
}

/// The policy either rewrites the approval, which the summary shows, or refuses it.
#[test]
fn a_policy_rewrites_unlimited_approvals() -> TestResult {
    let case = fixture::<Evm>("evm-token-approval-unlimited");
    let exact = Policy::from_json(br#"{"approvals":"exact"}"#)?;
    let order = verified_under::<Evm>(&case, case.registry, &exact)?;
    let amount = case.tree().scalar("/request/source/amount").unwrap();
    let approval = order.deposit().approval.as_ref().unwrap();
    assert_eq!(approval.signed.amount.to_string(), amount);
    assert_ne!(approval.proposed.amount, approval.signed.amount);
    assert_eq!(approval.call.data, approval.signed.encode());
    assert!(order.summary().to_string().contains("rewritten from every token"));
    assert!(order.warnings().list().iter().all(|warning| warning.code() != Code::UnlimitedApproval));
    let strict = Policy::from_json(br#"{"approvals":"refuse_inexact"}"#)?;
    let refusal = verified_under::<Evm>(&case, case.registry, &strict).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::ApprovalNotExact, "/response/result/approval_transaction/data#36-68"));
    Ok(())
}

/// A limit for a misspelt name would be no limit, without a word.
#[test]
fn a_limit_names_a_chain_or_an_asset_of_the_registry() {
    let check = |text: &str| text.parse::<Policy>().unwrap().check_names(registry()).map_err(|refusal| refusal.code());
    let rule = r#"{"finality":"finalized","settle":1,"margin":1}"#;
    for (name, expected) in [
        ("base", Ok(())),
        ("base:usdc", Ok(())),
        ("bsae", Err(Code::UnknownChain)),
        ("base:uscd", Err(Code::UnknownAsset)),
        ("bsae:usdc", Err(Code::UnknownAsset)),
    ] {
        assert_eq!(check(&format!(r#"{{"finality":{{"{name}":{rule}}}}}"#)), expected, "{name}");
    }
    for (name, expected) in [("*", Ok(())), ("base", Ok(())), ("bsae", Err(Code::UnknownChain)), ("base:usdc", Err(Code::UnknownChain))] {
        assert_eq!(check(&format!(r#"{{"max_timelock_seconds":{{"{name}":7200}}}}"#)), expected, "{name}");
    }
}
