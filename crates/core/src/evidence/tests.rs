//! Each way in which the state on a chain can fall short of the verified terms.

use std::time::Duration;

use countersign_chains::profile::known_chain;
use countersign_chains::{Account, ChainProfile, Family, Finality, FinalityRule, KNOWN_CHAINS, Network, Pace, Span, UnixTime, address};
use ruint::aliases::U256;

use super::{Finding, HeadDoubt, Hold, HtlcEvent, HtlcState, HtlcTerms, Judgement, LockedHtlc, ObservedAt, VerifiedTerms, combine};
use crate::reader::Agree;
use crate::report::Code;
use crate::trust::Generation;
use crate::wire::{AssetId, SecretHash};

const NOW: UnixTime = UnixTime::from_secs(1_700_000_000);

const fn after(seconds: u64) -> UnixTime {
    NOW.saturating_add(Duration::from_secs(seconds))
}
const RULE: FinalityRule = FinalityRule::new(Finality::Depth(2), 2, 6);

fn account(digit: char) -> Account {
    let network = Network::parse("evm:1").unwrap();
    address::parse(&network, &format!("0x{}", digit.to_string().repeat(40))).unwrap()
}

fn leg() -> HtlcTerms {
    HtlcTerms {
        chain: "ethereum".to_owned(),
        family: Family::Evm,
        network: Network::parse("evm:1").unwrap(),
        pace: Pace::new(12_000, 12_000, 12_000),
        asset: AssetId::parse("ethereum:usdc").unwrap(),
        htlc: Some(account('9')),
        htlc_registry: None,
        generation: None,
        token: Some("0xtoken".to_owned()),
        swap_id: "ab".repeat(32),
        swap_id_recomputed: true,
        initiator: account('1'),
        redeemer: account('2'),
        amount: U256::from(1_000),
        timelock: 100,
        secret_hash: SecretHash([7; 32]),
        created_at: None,
    }
}

fn terms() -> VerifiedTerms {
    VerifiedTerms { order_id: "cd".repeat(32), source: leg(), destination: leg(), affiliate_fees: Vec::new() }
}

fn locked() -> LockedHtlc {
    LockedHtlc::new(account('1'), account('2'), U256::from(1_000), 100, 10).with_token(Some("0xtoken".to_owned()))
}

fn seen() -> ObservedAt {
    ObservedAt::new(50.into(), "ee", NOW, 2)
}

fn judged(terms: &VerifiedTerms, state: &HtlcState, seen: &ObservedAt, rule: &FinalityRule, now: UnixTime) -> Result<Judgement, Hold> {
    Judgement::new(terms, &Finding::new(state.clone(), seen.clone()), rule, now)
}

fn judge(locked: LockedHtlc, seen: &ObservedAt, rule: FinalityRule) -> Result<Judgement, Hold> {
    judged(&terms(), &HtlcState::Locked(locked), seen, &rule, NOW)
}

#[test]
fn a_payment_as_verified_is_a_proof_for_its_order() {
    let funded = judge(locked(), &seen(), RULE).unwrap();
    assert_eq!((funded.order_id(), funded.left().units, funded.seen()), ("cd".repeat(32).as_str(), 90, &seen()));
    assert!(judge(LockedHtlc { amount: U256::from(1_001), ..locked() }, &seen(), RULE).is_ok(), "more than was promised");
}

#[test]
fn every_term_on_chain_is_the_verified_one() {
    let other = [
        ("initiator", LockedHtlc { initiator: account('3'), ..locked() }),
        ("redeemer", LockedHtlc { redeemer: account('3'), ..locked() }),
        ("amount", LockedHtlc { amount: U256::from(999), ..locked() }),
        ("token", locked().with_token(Some("0xother".to_owned()))),
        ("token", locked().with_token(None)),
        ("timelock", LockedHtlc { timelock: 99, ..locked() }),
        ("timelock", LockedHtlc { timelock: 101, ..locked() }),
        ("secret hash", locked().with_secret_hash(SecretHash([8; 32]))),
    ];
    for (what, locked) in other {
        let hold = judge(locked, &seen(), RULE).unwrap_err();
        assert!(matches!(&hold, Hold::Differs(difference) if difference.what == what) && !hold.is_transient(), "{what}: {hold}");
    }
    assert_eq!(judge(locked().with_covered(false), &seen(), RULE), Err(Hold::NotCovered));
}

#[test]
fn a_hash_that_nothing_shows_cannot_be_judged() {
    let mut terms = terms();
    terms.destination.swap_id_recomputed = false;
    let judge = |locked| judged(&terms, &HtlcState::Locked(locked), &seen(), &RULE, NOW);
    assert!(matches!(judge(locked()), Err(Hold::Unclear(_))));
    assert!(judge(locked().with_secret_hash(SecretHash([7; 32]))).is_ok());
}

#[test]
fn finality_is_what_the_rule_says() {
    let marked = |depth, safe, finalized| ObservedAt::new(50.into(), "ee", NOW, depth).with_safe(safe).with_finalized(finalized);
    let rule = |finality| FinalityRule::new(finality, 2, 6);
    for (finality, seen, is_final) in [
        (Finality::Depth(2), marked(0, false, false), false),
        (Finality::Depth(2), marked(1, true, true), false),
        (Finality::Depth(2), marked(2, false, false), true),
        (Finality::Safe, marked(90, false, false), false),
        (Finality::Safe, marked(1, true, false), true),
        (Finality::Safe, marked(0, true, true), false),
        (Finality::Finalized, marked(90, true, false), false),
        (Finality::Finalized, marked(1, false, true), true),
    ] {
        let result = judge(locked(), &seen, rule(finality));
        assert_eq!(result.is_ok(), is_final, "{finality} {seen:?}");
        assert!(is_final || matches!(result, Err(Hold::NotFinal { .. })));
    }
}

#[test]
fn a_starknet_payment_must_have_settled() {
    let mut terms = terms();
    terms.destination.family = Family::Starknet;
    let rule = FinalityRule::new(Finality::Safe, 30, 6);
    let seen = |depth| ObservedAt::new(50.into(), "ee", NOW, depth);
    let judge = |elapsed, seen: ObservedAt| judged(&terms, &HtlcState::Locked(LockedHtlc { elapsed, ..locked() }), &seen, &rule, NOW);
    // The depth counts, not the elapsed timelock: a greater height that an endpoint reports makes nothing older.
    assert!(matches!(judge(90, seen(30).with_safe(true)), Err(Hold::NotFinal { .. })));
    assert!(judge(30, seen(31).with_safe(true)).is_ok());
    assert!(judge(1, seen(2).with_finalized(true)).is_ok());
    // How a swap ended must have settled as well.
    let is_final = |depth| seen(depth).with_safe(true).is_final(&terms.destination, &rule);
    assert!(!is_final(30) && is_final(31) && seen(1).with_safe(true).is_final(&leg(), &rule));
}

/// Half an hour of depth, whatever the blocks take: 1,800 blocks of one second where nothing was measured, 3,600 where blocks of one
/// second were, because they may take half of that.
#[test]
fn a_starknet_payment_settles_for_half_an_hour_at_the_pace_that_counts() {
    let starknet = &known_chain("starknet").unwrap().profile;
    let mut terms = leg();
    (terms.family, terms.pace) = (Family::Starknet, starknet.pace);
    for (measured, least) in [(None, 1_801), (Some(2_000), 1_801), (Some(30_000), 1_801), (Some(1_000), 3_601), (Some(200), 18_001)] {
        let is_final = |depth| {
            let seen = ObservedAt::new(50.into(), "ee", NOW, depth).with_safe(true).with_pace(measured);
            seen.is_final(&terms, &starknet.finality)
        };
        assert!(is_final(least) && !is_final(least - 1), "{measured:?}");
    }
}

#[test]
fn the_margin_is_counted_in_the_chains_own_unit() {
    for (elapsed, left) in [(93, 7), (94, 6), (95, 5), (100, 0), (u64::MAX, 0)] {
        let result = judge(LockedHtlc { elapsed, ..locked() }, &seen(), RULE);
        match result {
            Ok(funded) => assert_eq!((funded.left().units, left > 6), (left, true)),
            Err(hold) => {
                assert_eq!(hold, Hold::NoTime { left, needed: 6, unit: "blocks" });
                assert!(left <= 6 && !hold.is_transient());
            }
        }
    }
}

/// An endpoint that invents a height can shorten the time to redeem, but cannot make a refund possible earlier.
#[test]
fn a_redemption_counts_the_most_time_and_a_refund_the_least() {
    for (least, most, left, has_run_out) in [
        (10, 10, 90, false),
        (10, 60, 40, false),
        (10, 5_000, 0, false),
        (100, 5_000, 0, false),
        (101, 101, 0, true),
        (101, 5_000, 0, true),
    ] {
        let locked = locked().with_elapsed(least, most);
        assert_eq!((locked.left(), locked.has_run_out()), (left, has_run_out), "{least} {most}");
        assert_eq!(judge(locked, &seen(), RULE).is_ok(), left > 6, "{least} {most}");
    }
    assert!(LockedHtlc::new(account('1'), account('2'), U256::from(1_000), 100, 101).has_run_out());
}

#[test]
fn a_proof_says_until_when_it_is_fresh() {
    // The chain's paces in milliseconds; blocks that are left; whether the age of the reading or the timelock is what ends first.
    for (pace, left, is_old_first) in
        [(12_000, 90, true), (12_000, 7, false), (12_000, 8, false), (1, 90, false), (1_500, 9, false), (7, 1_000, false)]
    {
        let mut terms = terms();
        terms.destination.pace = Pace::new(pace, pace, pace);
        terms.destination.timelock = left;
        let locked = HtlcState::Locked(
            LockedHtlc::new(account('1'), account('2'), U256::from(1_000), left, 0).with_token(Some("0xtoken".to_owned())),
        );
        // A margin of six blocks, whatever the pace.
        let rule = FinalityRule::new(Finality::Depth(2), 2, 6);
        let Ok(proof) = judged(&terms, &locked, &seen(), &rule, NOW) else { panic!("{pace} {left}") };
        let until = proof.fresh_until();
        assert_eq!(proof.check_time(until), Ok(()), "{pace} {left}");
        let late = proof.check_time(until.saturating_add(Duration::from_secs(1)));
        assert_eq!(matches!(late, Err(Hold::Stale { .. })), is_old_first, "{pace} {left}: {late:?}");
        assert_eq!(matches!(late, Err(Hold::NoTime { .. })), !is_old_first, "{pace} {left}: {late:?}");
    }
}

/// The time since an old answer is subtracted from what is left of the timelock.
#[test]
fn an_old_answer_leaves_less_time() {
    let judge = |elapsed, age| {
        let locked = HtlcState::Locked(LockedHtlc { elapsed, ..locked() });
        judged(&terms(), &locked, &seen(), &RULE, after(age))
    };
    let funded = judge(90, 36).unwrap();
    assert_eq!((funded.left().units, funded.check_time(after(36))), (10, Ok(())));
    // Ethereum has a slot every 12 s.
    assert_eq!(funded.left().to_string(), "10 blocks, about 2 min");
    assert!(matches!(funded.check_time(after(48)), Err(Hold::NoTime { left: 6, .. })), "a proof that was kept for a while");
    assert_eq!(judge(90, 48), Err(Hold::NoTime { left: 6, needed: 6, unit: "blocks" }));
    let mut terms = terms();
    // Contracts on Arbitrum may count its own blocks, of which one second may have ten.
    (terms.destination.chain, terms.destination.pace) =
        ("arbitrum_sepolia".to_owned(), known_chain("arbitrum_sepolia").unwrap().profile.pace);
    let on_arbitrum = |age| {
        let locked = HtlcState::Locked(LockedHtlc { elapsed: 50, ..locked() });
        judged(&terms, &locked, &seen(), &RULE, after(age)).map(|_| ())
    };
    assert_eq!((on_arbitrum(4), on_arbitrum(5)), (Ok(()), Err(Hold::NoTime { left: 0, needed: 6, unit: "blocks" })));
    (terms.destination.chain, terms.destination.network) = ("bitcoin".to_owned(), Network::parse("bitcoin:mainnet").unwrap());
    (terms.destination.family, terms.destination.pace) = (Family::Bitcoin, known_chain("bitcoin").unwrap().profile.pace);
    let locked = HtlcState::Locked(LockedHtlc { elapsed: 92, ..locked() });
    let judge = |age| judged(&terms, &locked, &seen(), &RULE, after(age)).map(|_| ());
    assert_eq!((judge(299), judge(599)), (Ok(()), Ok(())));
    assert_eq!(judge(600), Err(Hold::NoTime { left: 6, needed: 6, unit: "blocks" }));
    assert_eq!(judge(3 * 3_600), Err(Hold::NoTime { left: 0, needed: 6, unit: "blocks" }), "a node that is hours behind");
}

/// Terms on a known chain, with so many units of timelock of which some have passed.
fn on_chain(name: &str, timelock: u64) -> (VerifiedTerms, &'static ChainProfile) {
    let known = known_chain(name).unwrap();
    let mut terms = terms();
    let destination = &mut terms.destination;
    (destination.chain, destination.network) = (name.to_owned(), Network::parse(known.id).unwrap());
    (destination.family, destination.pace, destination.timelock) = (known.profile.family, known.profile.pace, timelock);
    (terms, &known.profile)
}

/// The rows say how long a redemption may take. However fast the blocks are, that much time is left at the pace that counts, also after the
/// blocks of the minute since the newest one that was seen.
#[test]
fn every_margin_is_a_time_at_the_pace_that_counts() {
    const TIMELOCK: u64 = 10_000_000;
    // Margin in units, units that pass in 60 s.
    let check = |name: &str, network: Network, measured: Option<u64>, margin: u64, missed: u64| {
        let (mut terms, profile) = (terms(), ChainProfile::of(name, &network));
        let destination = &mut terms.destination;
        (destination.chain, destination.family, destination.network) = (name.to_owned(), profile.family, network);
        (destination.pace, destination.timelock) = (profile.pace, TIMELOCK);
        let judge = |left: u64, age| {
            let locked = LockedHtlc { elapsed: TIMELOCK - left, timelock: TIMELOCK, ..locked() };
            let seen = ObservedAt::new(50.into(), "ee", NOW, 1_000_000).with_finalized(true).with_pace(measured);
            judged(&terms, &HtlcState::Locked(locked), &seen, &profile.finality, after(age)).map(|judgement| judgement.left_at(after(age)))
        };
        let unit = profile.family.timelock_unit();
        assert_eq!(judge(margin + 1, 0), Ok(margin + 1), "{name} {measured:?}");
        assert_eq!(judge(margin, 0), Err(Hold::NoTime { left: margin, needed: margin, unit }), "{name} {measured:?}");
        assert_eq!(judge(margin + missed + 1, 60), Ok(margin + 1), "{name} {measured:?}");
        assert_eq!(judge(margin + missed, 60), Err(Hold::NoTime { left: margin, needed: margin, unit }), "{name} {measured:?}");
    };
    for (name, measured, margin, missed) in [
        ("ethereum", None, 50, 5),
        ("ethereum", Some(12_000), 100, 10),
        ("base", None, 6_000, 600),
        ("base", Some(200), 6_000, 600),
        ("base", Some(2_000), 6_000, 600),
        ("base", Some(20), 60_000, 6_000),
        ("arbitrum", Some(250), 4_800, 480),
        ("bnbchain", None, 8_000, 266),
        ("bnbchain", Some(45), 81_819, 2_727),
        ("tron", Some(3_000), 600, 40),
        ("tron", Some(300), 6_000, 400),
        ("starknet", None, 900, 60),
        ("starknet", Some(30_000), 900, 60),
        ("starknet", Some(200), 9_000, 600),
        ("solana", None, 6_000, 600),
        ("solana", Some(20), 60_000, 6_000),
        ("sui", None, 3_600_000, 60_000),
        ("monad", Some(20_000), 600, 60),
        ("monad", None, 6_000, 600),
    ] {
        let network = known_chain(name).map_or(Network::Evm(143), |known| Network::parse(known.id).unwrap());
        check(name, network, measured, margin, missed);
    }
    // Every other chain, at the pace that counts of it.
    for known in KNOWN_CHAINS {
        for measured in [None, Some(20), Some(200), Some(30_000)] {
            let (Span::Time(margin), pace) = (known.profile.finality.margin, known.profile.pace.counted(measured)) else { continue };
            let margin = u64::try_from(margin.as_millis()).unwrap().div_ceil(pace);
            check(known.name, Network::parse(known.id).unwrap(), measured, margin, 60_000 / pace);
        }
    }
}

/// Blocks of 0.2 s and heads a minute old. The solver's refund is due after 1,350 more blocks, which is in four and a half minutes.
#[test]
fn a_secret_stays_when_blocks_are_faster_than_the_row_says() {
    let (terms, profile) = on_chain("base", 7_200);
    for measured in [None, Some(200), Some(198), Some(2_000), Some(u64::MAX)] {
        let locked = LockedHtlc { elapsed: 7_200 - 1_350, timelock: 7_200, ..locked() };
        let seen = ObservedAt::new(50.into(), "ee", NOW, 900).with_finalized(true).with_pace(measured);
        let held = judged(&terms, &HtlcState::Locked(locked), &seen, &profile.finality, after(60)).unwrap_err();
        assert!(matches!(held, Hold::NoTime { .. }), "{measured:?}: {held}");
    }
}

/// Each endpoint is judged by what it measured itself. Neither a slow pace nor none makes more of the time that is left.
#[test]
fn a_pace_that_an_endpoint_invents_only_shortens_the_time() {
    let (terms, profile) = on_chain("base", 100_000);
    let left = |measured| {
        let locked = LockedHtlc { elapsed: 10_000, timelock: 100_000, ..locked() };
        let seen = ObservedAt::new(50.into(), "ee", NOW, 900).with_finalized(true).with_pace(measured);
        judged(&terms, &HtlcState::Locked(locked), &seen, &profile.finality, after(60)).ok().map(|judgement| judgement.left_at(after(60)))
    };
    assert_eq!([Some(200), None, Some(2_000), Some(u64::MAX)].map(left), [Some(89_400); 4]);
    assert_eq!([Some(100), Some(20), Some(0)].map(left), [Some(88_800), Some(84_000), None]);
}

#[test]
fn nothing_unclear_releases_a_secret() {
    let judge = |state: &HtlcState, seen: &ObservedAt, now| judged(&terms(), state, seen, &RULE, now).unwrap_err();
    let locked = HtlcState::Locked(locked());
    assert_eq!(judge(&HtlcState::Absent, &seen(), NOW), Hold::NotFunded);
    assert_eq!(judge(&HtlcState::Redeemed { secret: None, transaction: None }, &seen(), NOW), Hold::Redeemed);
    assert_eq!(judge(&HtlcState::Refunded { transaction: None }, &seen(), NOW), Hold::Refunded);
    let unclear = judge(&HtlcState::Unclear("a\u{202e}b".to_owned()), &seen(), NOW);
    assert!(!unclear.to_string().contains('\u{202e}') && unclear.is_transient());
    // The caller's clock can make an answer too old, but never adds time.
    assert_eq!(judge(&locked, &seen(), after(121)), Hold::Stale { seconds: 121 });
    assert!(judged(&terms(), &locked, &seen(), &RULE, UnixTime::from_secs(0)).is_ok());
}

#[test]
fn terms_never_change() {
    let first = terms();
    assert!(first.check_unchanged(&first).is_ok());
    type Change = (&'static str, fn(&mut HtlcTerms));
    let changes: [Change; 13] = [
        ("chain", |leg| leg.chain = "base".to_owned()),
        ("asset", |leg| leg.asset = AssetId::parse("ethereum:usdt").unwrap()),
        ("token", |leg| leg.token = None),
        ("chain", |leg| leg.network = Network::Evm(8_453)),
        ("chain", |leg| leg.htlc = Some(account('8'))),
        ("chain", |leg| leg.htlc_registry = Some(account('8'))),
        ("chain", |leg| leg.generation = Generation::all(Family::Starknet).next()),
        ("initiator", |leg| leg.initiator = account('5')),
        ("redeemer", |leg| leg.redeemer = account('5')),
        ("amount", |leg| leg.amount = U256::from(999)),
        ("timelock", |leg| leg.timelock = 99),
        ("secret_hash", |leg| leg.secret_hash = SecretHash([9; 32])),
        ("swap_id", |leg| leg.swap_id = "ff".repeat(32)),
    ];
    for (member, change) in changes {
        for is_source in [true, false] {
            let mut later = first.clone();
            change(if is_source { &mut later.source } else { &mut later.destination });
            let refusal = first.check_unchanged(&later).unwrap_err();
            let leg = if is_source { "source_swap" } else { "destination_swap" };
            assert_eq!((refusal.code(), refusal.location()), (Code::RecordChanged, format!("/order/{leg}/{member}").as_str()));
        }
    }
    let mut later = first.clone();
    later.order_id = "00".repeat(32);
    assert_eq!(first.check_unchanged(&later).unwrap_err().location(), "/order/order_id");
}

fn finding(elapsed: u64, height: u64, is_safe: bool) -> Finding {
    let locked = locked().with_elapsed(elapsed, elapsed);
    Finding::new(HtlcState::Locked(locked), ObservedAt::new(height.into(), height.to_string(), after(height), height).with_safe(is_safe))
}

/// Each number is the worst of the best that are needed: a laggard, or an endpoint without marks, spoils nothing.
#[test]
fn endpoints_at_different_heights_show_one_state() {
    let combined = |findings: &[Finding], needed| combine(&findings.iter().collect::<Vec<_>>(), needed);
    let three = [finding(10, 50, true), finding(12, 52, true), finding(5_000, 7, false)];
    let (state, seen) = combined(&three, 2).unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((locked.least_elapsed, locked.elapsed), (12, 12));
    assert_eq!((seen.height.get(), seen.hash.as_str(), seen.depth, seen.head_time), (50, "50", 50, after(50)));
    assert_eq!((seen.is_safe, seen.is_finalized, seen.agreed, seen.needed), (true, false, 3, 2));
    let (state, seen) = combined(&three, 3).unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((locked.least_elapsed, locked.elapsed, seen.height.get(), seen.is_safe), (10, 5_000, 7, false));
    assert!(combined(&three, 4).is_none() && combined(&three, 0).is_none() && combined(&[], 1).is_none());
}

/// Endpoints agree on what happened, not on how much time has passed since.
#[test]
fn endpoints_at_different_heights_agree() {
    let key = |state: HtlcState, origin: &str| Finding::new(state, seen()).with_origin(origin).key();
    let locked = |elapsed, covered| HtlcState::Locked(locked().with_elapsed(elapsed, elapsed).with_covered(covered));
    assert!(key(locked(1, true), "a") == key(locked(9, false), "a"));
    assert!(key(locked(1, true), "a") != key(locked(1, true), "b"), "another block");
    let unclear = |why: &str| HtlcState::Unclear(why.to_owned());
    assert!(key(unclear("one word"), "") == key(unclear("another"), ""));
    let redeemed = |secret| HtlcState::Redeemed { secret, transaction: None };
    assert!(key(redeemed(Some([1; 32])), "a") != key(redeemed(None), "a"));
    assert!(key(HtlcState::Absent, "") != key(locked(1, true), ""));
}

/// The HTLC is covered only if as many endpoints say so as are needed.
#[test]
fn a_payment_is_covered_if_enough_endpoints_say_so() {
    let finding = |is_covered| Finding::new(HtlcState::Locked(locked().with_covered(is_covered)), seen());
    let covered = |all: &[bool], needed| {
        let findings: Vec<_> = all.iter().map(|is_covered| finding(*is_covered)).collect();
        let (state, _) = combine(&findings.iter().collect::<Vec<_>>(), needed).unwrap();
        matches!(state, HtlcState::Locked(locked) if locked.covered)
    };
    assert!(covered(&[true], 1) && covered(&[true, true], 2) && covered(&[true, false], 1));
    assert!(!covered(&[false], 1) && !covered(&[true, false], 2) && !covered(&[false, true, false], 2));
}

/// A redemption counts with the secret of the verified hash alone.
#[test]
fn an_end_has_the_secret_of_the_terms() {
    let (order_id, secret) = (7_u8, [0x5a; 32]);
    let end = |event: HtlcEvent<u8>| event.end(SecretHash::of(&secret), Some("0xee".to_owned()));
    let transaction = || Some("0xee".to_owned());
    let redeemed = HtlcEvent::Redeemed { order_id, secret };
    assert_eq!(*redeemed.order_id(), order_id);
    assert_eq!(end(redeemed), HtlcState::Redeemed { secret: Some(secret), transaction: transaction() });
    assert!(matches!(end(HtlcEvent::Redeemed { order_id, secret: [1; 32] }), HtlcState::Unclear(_)));
    assert_eq!(end(HtlcEvent::Refunded { order_id }), HtlcState::Refunded { transaction: transaction() });
    let initiated = HtlcEvent::Initiated { order_id, secret_hash: SecretHash::of(&secret), amount: U256::from(1) };
    assert!(matches!(end(initiated), HtlcState::Unclear(_)));
}

/// What the owner reads while a payment is not final.
#[test]
fn a_hold_says_what_is_reached_and_what_is_needed() {
    let marked = |depth, is_safe| ObservedAt::new(50.into(), "ee", NOW, depth).with_safe(is_safe);
    let text = |family, finality, seen: &ObservedAt| {
        let mut terms = terms();
        terms.destination.family = family;
        let rule = FinalityRule::new(finality, 30, 6);
        judged(&terms, &HtlcState::Locked(locked()), seen, &rule, NOW).unwrap_err().to_string()
    };
    let is = |reached: &str, needed: &str| format!("the funding of the destination is {reached}, and must be {needed}");
    for (finality, depth, is_safe, reached, needed) in [
        (Finality::Depth(3), 0, true, "in no block", "3 blocks deep"),
        (Finality::Depth(3), 1, false, "1 block deep", "3 blocks deep"),
        (Finality::Depth(3), 2, false, "2 blocks deep", "3 blocks deep"),
        (Finality::Finalized, 9, true, "safe, 9 blocks deep", "finalized"),
        (Finality::Safe, 9, false, "9 blocks deep", "safe"),
    ] {
        assert_eq!(text(Family::Evm, finality, &marked(depth, is_safe)), is(reached, needed));
    }
    assert_eq!(text(Family::Starknet, Finality::Safe, &marked(9, true)), is("safe, 9 blocks deep", "safe and 30 blocks deep"));
    assert_eq!(Hold::NotFunded.code().to_string(), "destination_not_funded");
    let old = HeadDoubt::Old { seconds: 600, limit: 60 }.to_string();
    assert!(old.starts_with("the newest block is 600 s old, and at most 60 s are normal"), "{old}");
    let ahead = HeadDoubt::Ahead { seconds: 90 }.to_string();
    assert!(ahead.starts_with("the newest block is 90 s ahead of the clock"), "{ahead}");
}
