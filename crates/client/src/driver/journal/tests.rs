use countersign::{CreateOrder, Role, U256, wire::RequestedLeg};

use super::fold::{KEPT_SIGNATURES, MAX_LINES};
use super::*;
use crate::stored::CreatedOrder;

const WHATS: [Delivery; 6] =
    [Delivery::Gasless, Delivery::Funding, Delivery::Redemption, Delivery::Secret, Delivery::Refund, Delivery::RefundRequest];
const PURPOSES: [Purpose; 3] = [Purpose::Funding, Purpose::Redemption, Purpose::Refund];

fn kept(journal: Vec<Entry>) -> OrderState {
    let leg = |asset: &str| RequestedLeg::new(asset.parse().unwrap(), "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", U256::from(5));
    let request = CreateOrder::new(leg("ethereum:usdc"), leg("base:usdc"));
    let response = format!(r#"{{"status":"Ok","result":{{"order_id":"{}"}}}}"#, "ab".repeat(32));
    OrderState { journal, ..OrderState::new(CreatedOrder::new(request, response).unwrap(), None) }
}

fn signed(purpose: Purpose, at: u64) -> Event {
    let transaction = BroadcastTransaction {
        chain: "base".to_owned(),
        role: Role::Initiate,
        id: at.to_string(),
        payload: String::new(),
        spends: Vec::new(),
    };
    Event::Signed { purpose, transactions: vec![transaction], gasless: (purpose == Purpose::Funding).then(|| "0x".to_owned()) }
}

/// Everything that is asked of a journal.
fn answers(kept: &OrderState) -> String {
    let whats = WHATS.map(|what| (kept.was_sent(what), kept.may_be_sent(what), kept.attempts(what)));
    let signed = PURPOSES.map(|purpose| (format!("{:?}", kept.signed(purpose)), kept.signed_at(purpose)));
    let secret = (kept.secret_left(), kept.secret_has_left(), kept.secret_was_sent(), kept.relayer_has_secret());
    format!("{whats:?} {signed:?} {secret:?} {:?} {} {}", kept.outcome(), kept.is_gasless(), kept.may_be_paid())
}

/// Lines in a pseudorandom order, folded again and again while more are written.
#[test]
fn a_folded_journal_answers_as_the_long_one_does() {
    let (mut long, mut short) = (Vec::new(), Vec::new());
    let mut dice = 7_u64;
    for at in 0..5_000 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let roll = usize::try_from(dice >> 33).unwrap();
        let what = *WHATS.get(roll / 8 % 6).unwrap();
        let event = match roll % 8 {
            0..=2 => Event::sending(what),
            3 => Event::NotSent { what, error: "busy".to_owned(), is_rejected: false },
            4 => Event::Sent { what },
            5 if roll % 3 == 0 => Event::OnChain { what },
            5 if roll % 3 == 1 => {
                if roll % 2 == 0 {
                    Event::PaymentLeaving
                } else {
                    Event::PaymentStayed
                }
            }
            6 => Event::SecretLeaving { path: *[SecretRoute::Own, SecretRoute::Relayer, SecretRoute::Signer].get(roll % 3).unwrap() },
            7 if at > 4_990 => Event::Ended { outcome: Outcome::Refunded },
            _ => signed(*PURPOSES.get(roll / 8 % 3).unwrap(), at),
        };
        let entry = Entry { at: UnixTime::from_secs(at), event };
        long.push(entry.clone());
        short.push(entry);
        if let Some(folded) = folded(&short) {
            short = folded;
        }
        assert!(short.len() <= MAX_LINES, "{}", short.len());
        if at % 97 == 0 || at > 4_980 {
            assert_eq!(answers(&kept(short.clone())), answers(&kept(long.clone())), "{at}");
        }
    }
    let signatures = short.iter().filter(|entry| matches!(entry.event, Event::Signed { purpose: Purpose::Redemption, .. })).count();
    assert!(signatures <= KEPT_SIGNATURES + 1, "{signatures}");
}

/// Both spend the same coin, so either of them may be mined, and the order is paid once.
#[test]
fn a_raised_payment_does_not_hide_the_one_that_it_replaces() {
    let paying = |id: &str, coin: &str| {
        let Event::Signed { purpose, mut transactions, .. } = signed(Purpose::Funding, 1) else { panic!("signed") };
        for transaction in &mut transactions {
            (transaction.id, transaction.spends) = (id.to_owned(), vec![coin.to_owned()]);
        }
        Event::Signed { purpose, transactions, gasless: None }
    };
    let (what, error) = (Delivery::Funding, String::new());
    let sent = [Event::sending(what), Event::Sent { what }];
    let rejected = [Event::sending(what), Event::NotSent { what, error, is_rejected: true }];
    let journal = |events: Vec<Event>| kept(events.into_iter().map(|event| Entry { at: UnixTime::from_secs(9), event }).collect());
    let first = |then: &[Event], raised: Event| [&[paying("a", "coin:0")][..], then, &[raised], &rejected].concat();
    // The first one was accepted. It may still be mined, although its replacement was rejected.
    let raised = journal(first(&sent, paying("b", "coin:0")));
    assert!(raised.has_signed(Purpose::Funding, "a") && raised.has_signed(Purpose::Funding, "b"));
    assert!(!raised.payment_was_rejected());
    assert!(journal(first(&rejected, paying("b", "coin:0"))).payment_was_rejected());
    // A payment with other coins counts alone.
    assert!(journal(first(&sent, paying("b", "other:0"))).payment_was_rejected());
    // However often the fee is raised, and whatever is folded, the payments of the last time are known.
    let mut entries = raised.journal;
    for round in 0..200_u64 {
        let event = if round % 20 == 0 { paying(&round.to_string(), "coin:0") } else { Event::sending(what) };
        entries.push(Entry { at: UnixTime::from_secs(9), event });
        if let Some(folded) = folded(&entries) {
            entries = folded;
        }
    }
    let raised = kept(entries);
    for id in ["a", "b", "0", "100", "180"] {
        assert!(raised.has_signed(Purpose::Funding, id), "{id}");
    }
}

#[test]
fn a_payment_is_with_its_signer_until_a_line_says_what_became_of_it() {
    let is_paid = |events: &[Event]| {
        kept(events.iter().map(|event| Entry { at: UnixTime::from_secs(9), event: event.clone() }).collect()).may_be_paid()
    };
    let (leaving, stayed) = (Event::PaymentLeaving, Event::PaymentStayed);
    let sent = Event::sending(Delivery::Funding);
    assert!(is_paid(std::slice::from_ref(&leaving)));
    assert!(!is_paid(&[leaving.clone(), stayed.clone()]));
    assert!(is_paid(&[leaving.clone(), stayed.clone(), leaving.clone()]), "asked again");
    assert!(!is_paid(&[leaving.clone(), signed(Purpose::Funding, 1)]), "signed, and not sent yet");
    assert!(is_paid(&[leaving, sent, stayed]), "what was sent stays sent");
}

#[test]
fn a_secret_that_the_relayer_has_stays_out_whatever_is_written_later() {
    let entry = |path| Entry { at: UnixTime::from_secs(9), event: Event::SecretLeaving { path } };
    let kept = kept(vec![entry(SecretRoute::Relayer), entry(SecretRoute::Own)]);
    assert!(kept.secret_has_left() && kept.secret_was_sent() && kept.relayer_has_secret());
}

#[test]
fn a_line_of_several_attempts_is_read_back() {
    let entry = Entry { at: UnixTime::from_secs(9), event: Event::Sending { what: Delivery::Refund, times: 3 } };
    let text = serde_json::to_string(&entry).unwrap();
    assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
    let once = serde_json::to_string(&Entry { at: UnixTime::from_secs(9), event: Event::sending(Delivery::Refund) }).unwrap();
    assert_eq!(once, r#"{"at":9,"event":"sending","what":"refund"}"#, "as before");
}

/// Every event is read as it is written, and a line without a member that its event needs is refused.
#[test]
fn lines_are_read_as_they_are_written() {
    let what = Delivery::Secret;
    let events = [
        signed(Purpose::Funding, 7),
        signed(Purpose::Refund, 7),
        Event::sending(what),
        Event::Sending { what, times: 3 },
        Event::Sent { what },
        Event::NotSent { what, error: "busy".to_owned(), is_rejected: false },
        Event::NotSent { what, error: String::new(), is_rejected: true },
        Event::Printed { what },
        Event::OnChain { what },
        Event::PaymentLeaving,
        Event::PaymentStayed,
        Event::SecretLeaving { path: SecretRoute::Own },
        Event::Ended { outcome: Outcome::Lost },
    ];
    for event in events {
        let entry = Entry { at: UnixTime::from_secs(9), event };
        let line = serde_json::to_value(&entry).unwrap();
        assert_eq!(line["event"], entry.event.name());
        assert_eq!(serde_json::from_value::<Entry>(line.clone()).unwrap(), entry, "{line}");
        assert_eq!(serde_json::from_value::<Event>(line.clone()).unwrap(), entry.event, "{line}");
        let members = line.as_object().unwrap();
        for name in members.keys() {
            let (mut without, mut with_null) = (members.clone(), members.clone());
            without.remove(name);
            with_null.insert(name.clone(), serde_json::Value::Null);
            let is_optional = matches!(name.as_str(), "gasless" | "times" | "is_rejected");
            assert_eq!(serde_json::from_value::<Entry>(without.into()).is_ok(), is_optional, "{name}");
            assert_eq!(serde_json::from_value::<Entry>(with_null.into()).is_ok(), name == "gasless", "{name}");
        }
        let mut more = members.clone();
        more.insert("of_a_later_version".to_owned(), true.into());
        assert_eq!(serde_json::from_value::<Entry>(more.into()).unwrap(), entry, "{line}");
    }
    for text in [
        r#"{"at":9}"#,
        r#"{"at":9,"event":"other"}"#,
        r#"{"at":9,"event":"sent","what":"tea"}"#,
        r#"{"at":9,"at":9,"event":"payment_leaving"}"#,
    ] {
        assert!(serde_json::from_str::<Entry>(text).is_err(), "{text}");
    }
}
