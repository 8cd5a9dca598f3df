//! Swaps of every kind of source through the program, with a service that fails every twentieth request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::home::Home;
use crate::support::{Fixture, Reply, Seen, Server, Service, Step};
use serde_json::json;

/// Returns the next kind of fault. In some of them the service acts on the request before its reply is lost or replaced.
fn fault(number: usize, service: &Service, seen: &Seen) -> Reply {
    let html = "<html>bad gateway</html>";
    let acted = |reply: Reply| {
        service.answer(seen);
        reply
    };
    match number % 9 {
        0 => Reply::Reset,
        1 => acted(Reply::Reset),
        2 => Reply::json(500, html),
        3 => Reply::json(502, html),
        4 => Reply::json(408, ""),
        5 => Reply::json(302, ""),
        6 => acted(Reply::json(504, html)),
        7 => acted(Reply::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{\"status\":\"Ok\",".to_vec())),
        _ => acted(Reply::json(200, html)),
    }
}

#[test]
fn swaps_of_every_source_complete_at_five_per_cent_faults() {
    let faults = Arc::new(AtomicUsize::new(0));
    let fixtures = Fixture::of_each_source();
    assert_eq!(fixtures.len(), 7);
    for (kind, fixture) in fixtures {
        for round in 0..6_usize {
            complete(kind, fixture.clone(), round, &faults);
        }
    }
    assert!(faults.load(Ordering::SeqCst) >= 9, "each kind of fault came up");
}

/// Signs, pays and follows one order. Until it is paid, the program ends when the service fails, and the test runs it again. A paid
/// order is followed through every fault.
fn complete(kind: &str, mut fixture: Fixture, round: usize, faults: &Arc<AtomicUsize>) {
    fixture.order["created_at"] = json!(chrono::Utc::now().to_rfc3339());
    fixture.order["deadline"] = json!(chrono::Utc::now().timestamp() + 6 * 3_600);
    let home = Home::new(&format!("faults-{kind}-{round}"));
    let (registry, wallet) = (home.file("registry.json", &fixture.registry), home.file("wallet.json", &fixture.wallet.to_string()));
    let accepted = "redeem_key_not_yours refund_key_not_yours unlimited_approval approval_above_amount destination_timelock_short \
                    destination_timelock_close affiliate_fees_not_requested pays_less_within_slippage amount_outside_limits swap_id_unchecked \
                    unpinned_registry_version unpinned_solver nonce_differs timelock_above_listed signature_unverified \
                    contract_signature_unverified amount_below_dust";
    let accepted: Vec<_> = accepted.split_whitespace().collect();
    let policy = home.file("policy.json", &json!({ "accepted_warnings": accepted }).to_string());
    let service = Service::new(fixture.clone());
    let (behind, count, asked) = (service.clone(), Arc::clone(faults), AtomicUsize::new(round * 3));
    let server = Server::start(move |seen| {
        if asked.fetch_add(1, Ordering::SeqCst) % 20 == 19 {
            return fault(count.fetch_add(1, Ordering::SeqCst), &behind, seen);
        }
        let reply = behind.answer(seen);
        // The service holds the secret of these orders: it redeems once both sides have paid.
        let mut step = behind.step.lock().unwrap();
        if *step == Step::DestinationFunded && seen.method == "GET" {
            *step = Step::Redeemed;
        }
        reply
    });
    let id = fixture.order_id().to_owned();
    home.keep(&id, &fixture.request, &fixture.response, None);
    let mut arguments = vec!["swap", "--registry", &registry, "--policy", &policy, "--resume", &id, "--wallet", &wallet, "--yes"];
    arguments.extend(["--poll", "20", "--service-secret", "--trust-the-service"]);
    for _ in 0..20 {
        // The secrets of these orders are unknown, so the program continues after the service reports that they are
        // complete.
        let (code, said) = home.run_until(&server.base, &arguments, "states that the order is complete");
        match code {
            None => {
                let initiations =
                    server.seen().iter().filter(|seen| seen.target.ends_with("action=initiate")).map(Seen::text).collect::<Vec<_>>();
                assert!(initiations.iter().all(|body| *body == initiations[0]), "{kind}: one payment, whatever was sent again");
                return;
            }
            // Nothing is paid yet: run it again.
            Some(3) => {}
            // The transactions are printed: the test broadcasts them.
            Some(4) => {
                let flag = if said.contains("--approved") { "--approved" } else { "--paid" };
                if !arguments.contains(&flag) {
                    arguments.push(flag);
                }
                let mut step = service.step.lock().unwrap();
                if flag == "--paid" && *step == Step::Created {
                    *step = Step::SourceSeen;
                }
            }
            _ => panic!("{kind}: {said}"),
        }
    }
    panic!("{kind}: not completed");
}
