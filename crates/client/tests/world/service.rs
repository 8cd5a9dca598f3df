//! The service: honest or hostile, behind a network with faults.

use countersign_client::countersign::chains::UnixTime;
use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign_client::countersign::Leg;
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use serde_json::{Value, json};

use super::plan::Service;
use super::{State, World, Worlds};
use crate::support::state_htlc;
use countersign_testkit::chain::view::{End, Htlc};

const FAULTS: [&str; 14] = [
    "service: refused",
    "service: timed out",
    "service: 500",
    "service: 502",
    "service: 408",
    "service: 302",
    "service: 504",
    "service: 429",
    "service: reply lost",
    "service: reply cut",
    "service: html",
    "service: error",
    "service: slow",
    "service: old record",
];

impl World {
    /// Returns whether the service does something that is not honest.
    fn service(&self, what: Service) -> bool {
        self.has_faults() && self.plan.service.contains(&what)
    }

    /// Returns the service's record of the order.
    fn record(&self, state: &State, is_old: bool) -> Value {
        let now = self.time();
        let mut record = self.swap.fixture.order.clone();
        if is_old || self.service(Service::Replays) {
            return record;
        }
        let is_paid = state.source.funded.is_some();
        let says = |what: Service| is_paid && self.service(what);
        let end = match (says(Service::SaysRedeemed), says(Service::SaysRefunded)) {
            // The service has the secret only if the owner has released it, so it states a refund otherwise.
            (true, _) if state.secret_known.is_some() => Some(End::Redeemed(None)),
            (false, false) => None,
            _ => Some(End::Refunded),
        };
        let claim = Htlc { funded: Some(now - 60), ended: end.map(|end| (end, now - 10)), is_short: false };
        let claims = end.is_some() || says(Service::SaysFunded);
        for (leg, htlc) in [(Leg::Source, state.source.at(now)), (Leg::Destination, state.destination.at(now))] {
            let htlc = if claims { claim } else { htlc };
            let name = if leg == Leg::Source { "source_swap" } else { "destination_swap" };
            state_htlc(&mut record, name, htlc, Some(&self.swap.secret));
        }
        if says(Service::ChangesTerms) {
            record["destination_swap"]["amount"] = json!("1000");
        }
        if says(Service::AddsAFee) {
            record["affiliate_fees"] =
                json!([{"asset": "arbitrum:usdc", "address": "0x75196C3fEa443e4f086cF9f30D51CF375704f166", "fee": 30}]);
        }
        record
    }

    fn reply(&self, request: &Request, is_old: bool) -> Response {
        let body = request.body.as_ref().map(|body| String::from_utf8(body.to_vec()).unwrap()).unwrap_or_default();
        let ok = |result: &Value| Response::new(200, format!(r#"{{"status":"Ok","result":{result}}}"#));
        let mut state = self.now();
        match (request.method.name(), request.url.query()) {
            ("POST", _) => Response::new(200, self.swap.fixture.response.to_string()),
            ("GET", _) => ok(&self.record(&state, is_old)),
            (_, Some("action=initiate")) => {
                if self.service(Service::KeepsThePayment) {
                    state.fundings.insert(body);
                } else {
                    self.initiate(&mut state, &body);
                }
                ok(&json!("0xtransaction"))
            }
            (_, Some("action=redeem")) => {
                self.learn_secret(&mut state, "to the service");
                state.has_leaked = true;
                if !self.service(Service::KeepsTheSecret) {
                    self.relay(&mut state, Leg::Destination);
                }
                ok(&json!("0xtransaction"))
            }
            (_, Some("action=refund")) => {
                if self.relay(&mut state, Leg::Source) {
                    return ok(&json!("0xtransaction"));
                }
                Response::new(400, r#"{"status":"Error","error":"the timelock is not over"}"#)
            }
            other => panic!("{other:?}"),
        }
    }
}

impl World {
    /// Answers as the service.
    async fn serve(&self, request: &Request) -> Result<Response, TransportError> {
        if request.url.query() == Some("action=initiate") {
            self.leave(&mut self.now());
        }
        self.operation().await;
        self.wait(20, 300).await;
        let failed = |kind| Err(TransportError::new(kind, "scripted"));
        let whole = |status, body: &str| Ok(Response::new(status, body));
        if self.service(Service::HangsOncePaid) && self.is_paid() {
            std::future::pending::<()>().await;
        }
        if self.service(Service::Hangs) {
            tokio::time::sleep(Duration::from_secs(120)).await;
            return failed(TransportErrorKind::Timeout);
        }
        if self.service(Service::Fails) && self.roll(0, 3) > 0 {
            return whole(500, "<html>oops</html>");
        }
        let fault = self.fault(&FAULTS);
        match fault {
            Some("service: refused") => return failed(TransportErrorKind::Connect),
            Some("service: timed out") => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                return failed(TransportErrorKind::Timeout);
            }
            Some("service: 500") => return whole(500, "<html>oops</html>"),
            Some("service: 502") => return whole(502, "<html>bad gateway</html>"),
            Some("service: 408") => return whole(408, ""),
            Some("service: 302") => return whole(302, ""),
            Some("service: 504") => return whole(504, "timeout"),
            Some("service: 429") => return whole(429, ""),
            Some("service: error") => return whole(200, r#"{"status":"Error","error":"no liquidity"}"#),
            Some("service: slow") => self.wait(2_000, 60_000).await,
            _ => {}
        }
        let reply = self.reply(request, fault == Some("service: old record"));
        self.operation().await;
        let is_lost = self.service(Service::LosesReplies) && request.method.name() == "PATCH";
        match fault {
            Some("service: reply lost") => failed(TransportErrorKind::Interrupted),
            Some("service: reply cut") => whole(200, r#"{"status":"Ok","resu"#),
            Some("service: html") => whole(200, "<html>maintenance</html>"),
            _ if is_lost => failed(TransportErrorKind::Interrupted),
            _ => Ok(reply),
        }
    }
}

impl Transport for Worlds {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let body = request.body.as_ref().map(|body| String::from_utf8(body.to_vec()).unwrap()).unwrap_or_default();
        let id = request.url.path().rsplit('/').next().unwrap();
        let hash = |world: &World| world.swap.fixture.order["source_swap"]["secret_hash"].as_str().unwrap().to_owned();
        let is_named = |world: &World| {
            if request.method.name() == "POST" { body.contains(&hash(world)) } else { world.swap.fixture.order_id() == id }
        };
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.find(is_named).unwrap().serve(request).await
    }

    /// Sleeps as long as the driver says. Where it adds a jitter that no seed decides, the world decides: only such a time is not in whole
    /// milliseconds.
    async fn sleep(&self, duration: Duration) {
        let is_jittered = !duration.subsec_nanos().is_multiple_of(1_000_000);
        tokio::time::sleep(if is_jittered { self.first().pause() } else { duration }).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.first().clock())
    }
}
