//! Tests the status as programs and people read it.

use super::*;

/// The form of `docs/program.md`.
#[test]
fn a_status_is_serialized_with_its_reason_as_text() {
    for (status, expected) in [
        (
            Status::Waiting { on: WaitingFor::Evidence(Hold::NotCovered) },
            r#"{"status":"waiting","reason":"the destination's HTLC holds less than its swaps need","code":"destination_not_covered"}"#,
        ),
        (
            Status::Waiting { on: WaitingFor::SecretOfService },
            r#"{"status":"waiting","reason":"the service holds the secret","code":"no_secret"}"#,
        ),
        (
            Status::Waiting { on: WaitingFor::SecretElsewhere },
            r#"{"status":"waiting","reason":"the secret is not stored here","code":"no_secret"}"#,
        ),
        (
            Status::AwaitingRefund { reason: Hold::Refunded },
            r#"{"status":"awaiting_refund","reason":"the solver has taken the payment back"}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&status).unwrap(), expected);
    }
}

/// What the owner reads. What others wrote in it is escaped.
#[test]
fn a_status_is_a_sentence() {
    for (status, expected) in [
        (Status::Unsigned, "nothing is signed yet"),
        (Status::Expired, "expired: nothing was signed here in time"),
        (Status::Paying, "paying"),
        (Status::NeedsOwner { what: OwnerTask::Refund }, "waiting for you"),
        (
            Status::Waiting { on: WaitingFor::Evidence(Hold::Unclear("a\nb".to_owned())) },
            "paid; the destination cannot be judged: a\\u{000a}b",
        ),
        (Status::Redeeming, "redeeming"),
        (Status::RedeemNow, "REDEEM NOW: others may know the secret, and the destination is not redeemed yet"),
        (Status::AwaitingRefund { reason: Hold::Refunded }, "waiting for the refund: the solver has taken the payment back"),
        (Status::Refunding, "refunding"),
        (Status::Lost, "LOST: the source is redeemed, and the destination refunded"),
        (Status::Ended { outcome: Outcome::Complete }, "complete"),
    ] {
        assert_eq!(status.to_string(), expected);
    }
    let refused = Status::Refused { refusal: Refusal::new(Code::RecordChanged, "/order") }.to_string();
    assert!(refused.starts_with("the record was refused: record_changed at /order: "), "{refused}");
}
