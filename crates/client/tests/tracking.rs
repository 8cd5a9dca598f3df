//! The status of an order, and the stream of changes.
use crate::support;

use countersign_client::countersign::chains::UnixTime;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_client::countersign::{Code, OrderRecord, Refusal, Registry};
use countersign_client::status::parse_time;
use countersign_client::{Error, OrderId, Pace, Progress, State, Status, StreamExt, TransportErrorKind, track};
use serde_json::{Value, json};
use support::memory::{Memory, ok, whole};
use support::{Fixture, Step, beside};

fn record(value: &Value) -> OrderRecord {
    OrderRecord::from_json(value.to_string().as_bytes()).unwrap()
}

fn registry() -> Registry {
    Registry::from_json(support::registry_text().as_bytes()).unwrap()
}

const HOUR: u64 = 3_600;

/// Every row of the table in `docs/spec/service.md#status`, by its number: which fields are set on source and destination, at which age.
/// The first match wins.
#[test]
fn states_are_those_of_the_published_client() {
    let registry = registry();
    let tx = |leg: &str, name: &str| (format!("/{leg}_swap/{name}_tx_hash"), json!("ab"));
    let block = |leg: &str, name: &str| (format!("/{leg}_swap/{name}_block_number"), json!("7"));
    let (s, d) = ("source", "destination");
    let evm = Fixture::load("evm-record-evm-v3");
    let to_bitcoin = Fixture::load("evm-record-bitcoin-v3");
    let to_litecoin = Fixture::load("evm-record-litecoin");
    for (fixture, set, age, state) in [
        // 1, 2
        (&evm, vec![tx(d, "redeem")], 0, State::RedeemDetected),
        (&evm, vec![tx(d, "redeem"), block(d, "redeem")], 0, State::Redeemed),
        (&to_bitcoin, vec![tx(d, "redeem")], 0, State::Redeemed),
        (&to_litecoin, vec![tx(d, "redeem")], 0, State::RedeemDetected),
        (&evm, vec![tx(d, "redeem"), tx(s, "refund"), tx(d, "refund")], 99 * HOUR, State::RedeemDetected),
        // 3
        (&evm, vec![tx(s, "redeem"), tx(d, "refund")], 0, State::Lost),
        // 4
        (&to_bitcoin, vec![tx(s, "redeem"), tx(s, "refund")], 0, State::Redeemed),
        (&evm, vec![tx(s, "redeem")], 0, State::Created),
        // 5, 6
        (&evm, vec![tx(s, "refund"), tx(d, "refund")], 0, State::RefundDetected),
        (&evm, vec![tx(s, "refund"), block(s, "refund")], 0, State::Refunded),
        // 7
        (&evm, vec![tx(d, "refund"), tx(d, "initiate"), tx(s, "initiate")], 0, State::AwaitingRefund),
        // 8, even when it is late
        (&evm, vec![tx(d, "initiate"), tx(s, "initiate")], 99 * HOUR, State::AwaitingRedeem),
        // 9 to 11
        (&evm, vec![tx(s, "initiate"), block(s, "initiate")], HOUR + 1, State::AwaitingRefund),
        (&evm, vec![tx(s, "initiate"), block(s, "initiate")], HOUR, State::Initiated),
        (&evm, vec![tx(s, "initiate")], HOUR, State::InitiateDetected),
        // A block number without a transaction id does not count.
        (&evm, vec![block(s, "initiate")], HOUR, State::Created),
        // 12, 13
        (&evm, vec![], HOUR, State::Created),
        (&evm, vec![], HOUR + 1, State::Expired),
    ] {
        let mut order = fixture.order.clone();
        for (at, value) in &set {
            *order.pointer_mut(at).unwrap() = value.clone();
        }
        assert_eq!(
            State::from_record(&record(&order), &registry, UnixTime::from_secs(fixture.created() + age)),
            state,
            "{set:?} after {age} s"
        );
    }
}

#[test]
fn a_bitcoin_source_has_six_hours() {
    let Some(text) = beside("captures/bitcoin-order-record-1.json") else { return };
    let pinned = Registry::from_json(beside("vectors/registry.json").unwrap().as_bytes()).unwrap();
    let mut order = serde_json::from_str::<Value>(&text).unwrap()["result"].clone();
    // The capture is a finished swap: created 2025-07-09T04:38:18Z (coreutils: date -d .. +%s gives 1752035898).
    let created = 1_752_035_898;
    let finished = Status::from_record(&record(&order), &pinned, UnixTime::from_secs(created));
    assert!(finished.complete && finished.is_final() && finished.state == State::Redeemed);
    for leg in ["source_swap", "destination_swap"] {
        for name in ["initiate_tx_hash", "redeem_tx_hash"] {
            order[leg][name] = json!("");
        }
    }
    let at = |age| Status::from_record(&record(&order), &pinned, UnixTime::from_secs(created + age));
    assert_eq!((at(6 * HOUR).state, at(6 * HOUR + 1).state), (State::Created, State::Expired));
    assert_eq!(at(0).deadline, Some(UnixTime::from_secs(created + 6 * HOUR)));
}

#[test]
fn a_wrong_clock_changes_no_transaction() {
    let (registry, fixture) = (registry(), Fixture::load("evm-record-evm-v3"));
    for now in [0, 1, fixture.created(), u64::MAX] {
        assert_eq!(
            State::from_record(&record(&fixture.at(Step::DestinationFunded)), &registry, UnixTime::from_secs(now)),
            State::AwaitingRedeem
        );
        assert_eq!(State::from_record(&record(&fixture.at(Step::Redeemed)), &registry, UnixTime::from_secs(now)), State::Redeemed);
    }
    let mut order = fixture.order;
    order["created_at"] = json!("not a time");
    assert_eq!(State::from_record(&record(&order), &registry, UnixTime::from_secs(u64::MAX)), State::Created);
}

#[test]
fn times_are_read_in_every_form_that_was_seen() {
    // coreutils: date -u -d 2025-07-09T04:38:18Z +%s
    for text in ["2025-07-09T04:38:18Z", "2025-07-09T04:38:18.632122Z", "2025-07-09T04:38:18.632122999Z", "1752035898"] {
        assert_eq!(parse_time(text), Some(UnixTime::from_secs(1_752_035_898)), "{text}");
    }
    for text in ["", "now", "2025-07-09", "1969-12-31T23:59:59Z", "-5", "2025-13-09T04:38:18Z"] {
        assert_eq!(parse_time(text), None, "{text}");
    }
}

#[test]
fn says_from_when_on_refunds_are_possible() {
    let (registry, fixture) = (registry(), Fixture::load("evm-record-evm-v2"));
    // base 43200 blocks of 2 s and arbitrum 600 blocks of 12 s; funded 600 s after creation.
    let funded = fixture.created() + 600;
    let status = Status::from_record(&record(&fixture.at(Step::DestinationFunded)), &registry, UnixTime::from_secs(0));
    assert_eq!(status.refund_possible_from, Some(UnixTime::from_secs(funded + 86_400)));
    assert_eq!(status.solver_refund_possible_from, Some(UnixTime::from_secs(funded + 7_200)));
    let status = Status::from_record(&record(&fixture.at(Step::Created)), &registry, UnixTime::from_secs(0));
    assert_eq!((status.refund_possible_from, status.solver_refund_possible_from), (None, None));
    // Without a time of funding, the time of creation is used, which is earlier and so errs on the safe side.
    let mut order = fixture.at(Step::SourceFunded);
    order["source_swap"]["initiate_timestamp"] = Value::Null;
    assert_eq!(
        Status::from_record(&record(&order), &registry, UnixTime::from_secs(0)).refund_possible_from,
        Some(UnixTime::from_secs(fixture.created() + 86_400))
    );
}

#[test]
fn the_deadline_of_the_record_goes_first() {
    let (registry, fixture) = (registry(), Fixture::load("evm-record-evm-v2"));
    let mut order = fixture.order.clone();
    assert_eq!(
        Status::from_record(&record(&order), &registry, UnixTime::from_secs(0)).deadline,
        Some(UnixTime::from_secs(fixture.created() + HOUR))
    );
    for deadline in [json!(1_752_035_898), json!("2025-07-09T04:38:18Z"), json!("1752035898")] {
        order["deadline"] = deadline;
        assert_eq!(
            Status::from_record(&record(&order), &registry, UnixTime::from_secs(0)).deadline,
            Some(UnixTime::from_secs(1_752_035_898))
        );
    }
}

/// Runs a script of responses through the stream.
async fn follow(script: Vec<Result<Value, TransportErrorKind>>) -> (Vec<Result<Progress, String>>, Vec<Duration>) {
    let fixture = Fixture::load("evm-record-evm-v3");
    let (id, registry, asked) = (OrderId::parse(fixture.order_id()).unwrap(), registry(), AtomicUsize::new(0));
    let client = Memory::client(fixture.created(), |_| match script.get(asked.fetch_add(1, Ordering::SeqCst)) {
        Some(Ok(value)) => ok(value),
        Some(Err(kind)) => Err(*kind),
        None => whole(404, "the script is over"),
    });
    let client = client.with_retry(countersign_client::Retry { attempts: 1, ..Default::default() });
    let stream = track(&client, &registry, id, Pace::default(), |_| Ok(()));
    let items = stream.map(|item| item.map_err(|error| error.code().name().to_owned())).take(script.len() + 2).collect().await;
    let waits = client.transport().waits.lock().unwrap().clone();
    (items, waits)
}

#[tokio::test]
async fn a_stream_tells_each_change_once_and_ends_with_the_swap() {
    let fixture = Fixture::load("evm-record-evm-v3");
    let steps = [Step::Created, Step::SourceSeen, Step::SourceFunded, Step::DestinationFunded, Step::Redeemed];
    let script = steps.iter().flat_map(|step| vec![Ok(fixture.at(*step)); 3]).collect();
    let (items, waits) = follow(script).await;
    let states: Vec<_> = items.iter().map(|item| item.as_ref().unwrap().status.state).collect();
    assert_eq!(states, [State::Created, State::InitiateDetected, State::Initiated, State::AwaitingRedeem, State::Redeemed]);
    assert!(items.last().unwrap().as_ref().unwrap().status.complete);
    assert!(items.iter().all(|item| !item.as_ref().unwrap().went_back));
    // There are twelve waits. They grow until something changes, and are short again after that.
    assert_eq!(waits.len(), 12);
    let pace = Pace::default();
    assert!(waits.iter().all(|wait| *wait <= pace.slowest) && waits[0] <= pace.quickest && waits[3] <= pace.quickest, "{waits:?}");
}

#[tokio::test]
async fn polling_slows_down_while_nothing_happens() {
    let fixture = Fixture::load("evm-record-evm-v3");
    let (_, waits) = follow(vec![Ok(fixture.order); 40]).await;
    let pace = Pace::default();
    assert!(waits[30] >= pace.slowest / 2 && waits.iter().all(|wait| *wait <= pace.slowest), "{waits:?}");
    assert!(waits.iter().sum::<Duration>() > Duration::from_secs(15 * 60));
}

#[tokio::test]
async fn an_older_answer_is_marked() {
    let fixture = Fixture::load("evm-record-evm-v3");
    let script = [Step::SourceFunded, Step::Created, Step::Redeemed].map(|step| Ok(fixture.at(step)));
    let (items, _) = follow(script.into()).await;
    assert_eq!(items.iter().map(|item| item.as_ref().unwrap().went_back).collect::<Vec<_>>(), [false, true, false]);
}

#[tokio::test]
async fn a_passing_failure_is_told_and_the_stream_goes_on() {
    let fixture = Fixture::load("evm-record-evm-v3");
    let script =
        vec![Ok(fixture.order.clone()), Err(TransportErrorKind::Timeout), Err(TransportErrorKind::Connect), Ok(fixture.at(Step::Redeemed))];
    let (items, _) = follow(script).await;
    let told: Vec<_> = items.iter().map(|item| item.as_ref().map(|item| item.status.state).map_err(String::as_str)).collect();
    assert_eq!(told, [Ok(State::Created), Err("transport_timeout"), Err("transport_connect"), Ok(State::Redeemed)]);
}

/// Whatever the pace is, there is a pause between two requests.
#[tokio::test]
async fn polling_has_a_floor() {
    let fixture = Fixture::load("evm-record-evm-v3");
    let (id, registry, asked) = (OrderId::parse(fixture.order_id()).unwrap(), registry(), AtomicUsize::new(0));
    let client = Memory::client(fixture.created(), |_| {
        let fails = asked.fetch_add(1, Ordering::SeqCst) < 5;
        if fails { whole(404, "no") } else { ok(&fixture.at(Step::Redeemed)) }
    });
    let spinning = Pace { quickest: Duration::ZERO, slowest: Duration::ZERO };
    let items: Vec<_> = track(&client, &registry, id, spinning, |_| Ok(())).collect().await;
    let waits = client.transport().waits.lock().unwrap().clone();
    assert_eq!((items.len(), waits.len()), (6, 5));
    assert!(waits.iter().all(|wait| *wait >= Duration::from_millis(25)), "{waits:?}");
}

#[tokio::test]
async fn only_a_refusal_ends_the_stream() {
    let mut other = Fixture::load("evm-record-evm-v3").order;
    other["order_id"] = json!("f".repeat(64));
    let (items, _) = follow(vec![Ok(other)]).await;
    let told: Vec<_> = items.into_iter().map(Result::unwrap_err).collect();
    assert_eq!(told, ["record_mismatch", "http_status", "http_status"], "a paid order is watched whatever the service says");

    let fixture = Fixture::load("evm-record-evm-v3");
    let (id, registry) = (OrderId::parse(fixture.order_id()).unwrap(), registry());
    let client = Memory::client(fixture.created(), |_| ok(&fixture.order));
    let refuse = |_: &_| Err(Error::Refused(Refusal::new(Code::RecordMismatch, "/order")));
    let items: Vec<_> = track(&client, &registry, id, Pace::default(), refuse).collect().await;
    assert_eq!(items.into_iter().map(|item| item.unwrap_err().code().name()).collect::<Vec<_>>(), ["record_mismatch"]);
}
