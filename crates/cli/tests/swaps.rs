//! Whole swaps through the program against a scripted service: every kind of source, interruptions, tampering, the secret.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::home::{APP_ID, Home, out, said};
use crate::support::{Fixture, Reply, Server, Service, Step};
use crate::whole::Whole;
use countersign_client::countersign::Registry;
use serde_json::{Value, json};

#[test]
fn swap_dry_run_and_order_watch_work_for_every_kind_of_source() {
    let fixtures = Fixture::of_each_source();
    for (kind, fixture) in &fixtures {
        let home = Home::new(&format!("dry-{kind}"));
        let (registry, wallet) = (home.file("registry.json", &fixture.registry), home.file("wallet.json", &fixture.wallet.to_string()));
        let service = Service::new(fixture.clone());
        let server = service.start();
        // The fixtures' orders name hashes whose secrets nobody knows: the request is given as it is, on a file.
        let request = home.file("request.json", &fixture.request.to_string());
        let created =
            home.run(&server.base, &["order", "create", "--registry", &registry, "--request", &request, "--service-secret", "--json"]);
        assert!(created.status.success(), "{kind}: {}", said(&created));
        assert_eq!(serde_json::from_str::<Value>(&out(&created)).unwrap()["order_id"], fixture.order_id());

        let resume = ["swap", "--registry", &registry, "--resume", fixture.order_id(), "--dry-run", "--wallet", &wallet, "--json"];
        let dry = home.run(&server.base, &resume);
        assert!(dry.status.success(), "{kind}: {}", said(&dry));
        let shown: Value = serde_json::from_str(&out(&dry)).unwrap();
        assert!(shown["ok"] == true && shown["artefacts"].is_object() && !shown["summary"].as_array().unwrap().is_empty());
        assert!(!out(&dry).contains("\"signed\""), "{kind}");
        assert!(server.seen().iter().all(|seen| seen.method != "PATCH"), "{kind}");
        assert_eq!(server.seen().iter().filter(|seen| seen.method == "POST").count(), 1, "{kind}");

        *service.step.lock().unwrap() = Step::SourceSeen;
        let finished = Arc::clone(&service.step);
        let ender = std::thread::spawn(move || {
            loop {
                std::thread::sleep(std::time::Duration::from_millis(20));
                let mut step = finished.lock().unwrap();
                if *step == Step::DestinationFunded {
                    *step = Step::Redeemed;
                    return;
                }
            }
        });
        let watch = ["order", "watch", fixture.order_id(), "--registry", &registry, "--poll", "30", "--trust-the-service", "--json"];
        // These secrets are unknown, so the service's word is not enough to call the order complete. It is followed.
        let (code, told) = home.run_until(&server.base, &watch, "states that the order is complete");
        ender.join().unwrap();
        assert!(code.is_none() && told.contains("look at your address"), "{kind}: {code:?} {told}");
    }
    assert_eq!(fixtures.len(), 7);
}

#[test]
fn a_swap_goes_from_quote_to_redemption() {
    let whole = Whole::new("whole");
    let server = whole.service.start();
    let output = whole.run(&server.base, &whole.begin);
    assert!(output.status.success() && out(&output).contains("complete"), "{}", said(&output));
    let id = whole.service.fixture.order_id();
    let acts: Vec<_> = server.seen().into_iter().filter(|seen| seen.method != "GET").map(|seen| (seen.line(), seen.text())).collect();
    let request = serde_json::from_str::<Value>(&acts[0].1).unwrap();
    assert_eq!((acts[0].0.as_str(), &request["secret_hash"]), ("POST /v2/orders", &json!(whole.secret.hash().to_string())));
    assert_eq!(acts[1].0, format!("PATCH /v2/orders/{id}?action=initiate"));
    assert_eq!(acts[2], (format!("PATCH /v2/orders/{id}?action=redeem"), format!(r#"{{"secret":"{}"}}"#, *whole.secret.to_hex())));
    assert_eq!(acts.len(), 3);
    // Neither secret nor key nor application id was printed.
    let key = whole.service.fixture.wallet["secret_key"].as_str().unwrap().trim_start_matches("0x");
    for private in [whole.secret.to_hex().as_str(), key, APP_ID] {
        assert!(!said(&output).contains(private), "{}", said(&output));
    }
}

/// An order of another day whose file was cut by a full disk, and one that is no directory at all.
#[test]
fn one_order_that_cannot_be_read_stops_no_new_swap() {
    let whole = Whole::new("beside-unreadable");
    let server = whole.service.start();
    let other = Fixture::load("evm-record-evm-v1");
    whole.home.keep(other.order_id(), &other.request, &other.response, None);
    let file = whole.home.kept(other.order_id(), "order.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() - 1]).unwrap();
    fs::write(whole.home.path.join(".local/share/countersign/orders").join("66".repeat(32)), "a file").unwrap();
    let output = whole.run(&server.base, &whole.begin);
    assert!(output.status.success() && out(&output).contains("complete"), "{}", said(&output));
    // The amount that arrived, the recipient, and the transaction.
    let owner = whole.service.fixture.request["destination"]["owner"].as_str().unwrap();
    assert!(
        out(&output).lines().any(|line| line.contains("complete") && line.contains("redeemed to") && line.contains(owner)),
        "{}",
        said(&output)
    );

    // The order itself names every way back to its funds, and no input that its owner could correct.
    let registry = whole.home.path.join("registry.json").to_str().unwrap().to_owned();
    let shown = whole.home.run(&server.base, &["swap", "--resume", other.order_id(), "--registry", &registry]);
    let told = said(&shown);
    let record = whole.home.kept(other.order_id(), "record.json");
    for part in ["countersign restore --phrase", &format!("countersign recover --order {}", record.display()), "not valid JSON"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("correct the input") && !told.contains("invalid input"), "{told}");
}

/// The connection is lost at every request in turn and the program killed; the next run ends the swap, with one order, one initiation and
/// one redemption that the service acted on.
#[test]
fn a_swap_that_ends_anywhere_goes_on_from_its_order_id() {
    let mut resumed = 0;
    for lost in 0.. {
        let whole = Whole::new(&format!("lost-{lost}"));
        let (service, asked) = (whole.service.clone(), AtomicUsize::new(0));
        let broken = Server::start(move |seen| {
            // A GET is retried automatically, so all later ones fail too.
            if asked.fetch_add(1, Ordering::SeqCst) >= lost { Reply::Reset } else { service.answer(seen) }
        });
        let child = {
            let (base, home) = (broken.base.clone(), whole.home.path.clone());
            Command::new(env!("CARGO_BIN_EXE_countersign"))
                .args(&whole.begin)
                .env_clear()
                .env("HOME", &home)
                .env("COUNTERSIGN_BASE_URL", &base)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        if ended_well(child, &broken, lost) {
            assert!(lost > 6, "the swap needs more than {lost} requests");
            break;
        }
        let created = broken.seen().iter().take(lost).any(|seen| seen.method == "POST");
        let server = whole.service.start();
        let output = whole.run(&server.base, if created { &whole.resume } else { &whole.begin });
        assert!(output.status.success(), "lost at {lost}: {}", said(&output));
        resumed += usize::from(created);
        let acted = broken.seen().into_iter().take(lost).chain(server.seen());
        let acted: Vec<_> = acted.filter(|seen| seen.method != "GET").map(|seen| seen.line()).collect();
        for what in ["POST", "action=initiate", "action=redeem"] {
            assert_eq!(acted.iter().filter(|line| line.contains(what)).count(), 1, "lost at {lost}: {acted:?}");
        }
    }
    assert!(resumed >= 4, "only {resumed} resumed");
}

/// Waits for the end, or kills the program soon after a request was lost. Returns whether it ended well.
fn ended_well(mut child: std::process::Child, server: &Server, lost: usize) -> bool {
    let mut patience = 10;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(20));
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if server.seen().len() > lost {
            patience -= 1;
        }
        if patience == 0 {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
    }
}

#[test]
fn a_tampered_answer_ends_the_swap_before_anything_is_signed() {
    let whole = Whole::new("tampered");
    let mut service = whole.service.clone();
    let text = service.fixture.response.to_string();
    let redeemer = service.fixture.order["source_swap"]["redeemer"].as_str().unwrap().to_lowercase();
    let digits = redeemer.trim_start_matches("0x").to_owned();
    assert!(text.contains(&digits));
    service.fixture.response = serde_json::from_str(&text.replace(&digits, &"ab".repeat(20))).unwrap();
    let server = service.start();
    let mut arguments = whole.begin.clone();
    arguments.push("--json".into());
    let output = whole.run(&server.base, &arguments);
    assert_eq!(output.status.code(), Some(1));
    let refused: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((&refused["ok"], &refused["error"]["code"]), (&json!(false), &json!("unknown_redeemer")), "{}", said(&output));
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"));
}

/// The service takes the redemption only at the third time: the program asks the record, and tries again.
#[test]
fn a_redemption_that_was_lost_is_tried_again() {
    let whole = Whole::new("again");
    let (service, lost) = (whole.service.clone(), AtomicUsize::new(0));
    let server = Server::start(move |seen| {
        if seen.target.ends_with("action=redeem") && lost.fetch_add(1, Ordering::SeqCst) < 2 { Reply::Reset } else { service.answer(seen) }
    });
    let output = whole.run(&server.base, &whole.begin);
    assert!(output.status.success(), "{}", said(&output));
    let lines = server.lines();
    let redeems: Vec<_> = (0..lines.len()).filter(|index| lines[*index].ends_with("action=redeem")).collect();
    assert_eq!(redeems.len(), 3);
    // Each follows a read of the record.
    assert!(redeems.iter().all(|index| lines[index - 1].starts_with("GET")), "{lines:?}");
}

#[test]
fn an_offer_that_pays_too_little_is_not_taken() {
    let whole = Whole::new("offer");
    let server = whole.service.start();
    let mut arguments = whole.begin.clone();
    let at = arguments.iter().position(|argument| argument == "--at-least").unwrap();
    arguments[at + 1].push('0');
    let output = whole.run(&server.base, &arguments);
    assert!(output.status.code() == Some(1) && said(&output).contains("quote_too_low"), "{}", said(&output));
    arguments.drain(at..at + 2);
    let output = whole.run(&server.base, &arguments);
    assert!(output.status.code() == Some(2) && said(&output).contains("--at-least"), "{}", said(&output));
    assert!(server.seen().iter().all(|seen| seen.method == "GET"));
}

/// A quote is only a promise. The minimum applies to the order itself, even in a run that does not state it again.
#[test]
fn a_floor_holds_for_the_record_and_in_later_runs() {
    let whole = Whole::new("floor");
    let mut service = whole.service.clone();
    // The quote pays more than the resulting order. The requested slippage allows that.
    let offered: u128 = service.fixture.request["destination"]["amount"].as_str().unwrap().parse().unwrap();
    let better = (offered + 1_000).to_string();
    service.fixture.request["destination"]["amount"] = json!(better);
    let server = service.start();
    let mut arguments = whole.begin.clone();
    let at = arguments.iter().position(|argument| argument == "--at-least").unwrap();
    arguments[at + 1] = better;
    arguments.extend(["--slippage".to_owned(), "5000".to_owned()]);
    for command in [&arguments, &whole.resume] {
        let output = whole.run(&server.base, command);
        assert!(output.status.code() == Some(1) && said(&output).contains("pays_too_little"), "{}", said(&output));
    }
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"));
}

#[test]
fn a_quote_for_something_else_is_refused() {
    for (leg, member, other) in [("source", "asset", "base:usdc"), ("source", "amount", "1"), ("destination", "asset", "arbitrum:usdc")] {
        let whole = Whole::new(&format!("quote-{leg}-{member}"));
        let mut service = whole.service.clone();
        service.fixture.request[leg][member] = json!(other);
        let server = service.start();
        let output = whole.run(&server.base, &whole.begin);
        assert!(output.status.code() == Some(1) && said(&output).contains("quote_mismatch"), "{leg} {member}: {}", said(&output));
        assert!(server.seen().iter().all(|seen| seen.method == "GET"));
    }
}

/// Only the owner's own reading of the chain, or an explicit choice, releases the secret.
#[test]
fn without_evidence_the_program_asks_the_user() {
    let whole = Whole::new("evidence");
    let server = whole.service.start();
    let mut arguments = whole.begin.clone();
    arguments.retain(|argument| argument != "--trust-the-service");
    let output = whole.run(&server.base, &arguments);
    assert!(output.status.code() == Some(4) && said(&output).contains("evidence_needed"), "{}", said(&output));
    let redeem = ["redeem", whole.service.fixture.order_id()].map(str::to_owned);
    let registry = whole.home.path.join("registry.json").to_str().unwrap().to_owned();
    let output = whole.run(&server.base, &[&redeem[..], &["--registry".to_owned(), registry]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(server.seen().iter().all(|seen| !seen.text().contains(whole.secret.to_hex().as_str())));
    // The secret never went out, so a later run can still give it away deliberately.
    let output = whole.run(&server.base, &whole.resume);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn redeem_holds_the_secret_back_until_the_destination_is_funded() {
    let whole = Whole::new("held");
    let server = Service { moves: false, ..whole.service.clone() }.start();
    whole.create(&server.base);
    *whole.service.step.lock().unwrap() = Step::SourceFunded;
    let registry = whole.home.path.join("registry.json");
    let redeem = ["redeem", whole.service.fixture.order_id(), "--registry", registry.to_str().unwrap(), "--trust-the-service", "--json"];
    let output = whole.home.run(&server.base, &redeem);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(serde_json::from_str::<Value>(&out(&output)).unwrap()["error"]["code"], "destination_not_funded");
    assert!(server.seen().iter().all(|seen| !seen.text().contains(whole.secret.to_hex().as_str())));
    *whole.service.step.lock().unwrap() = Step::DestinationFunded;
    let output = whole.home.run(&server.base, &redeem);
    assert!(output.status.success(), "{}", said(&output));
    let patches: Vec<_> = server.lines().into_iter().filter(|line| line.starts_with("PATCH")).collect();
    assert_eq!(patches, [format!("PATCH /v2/orders/{}?action=redeem", whole.service.fixture.order_id())]);
    assert!(out(&output).contains("complete"), "the redemption was followed: {}", said(&output));
}

/// A refund depends on the stored order and its terms. It is not sent before its time, and nothing else is sent.
#[test]
fn a_refund_waits_for_the_timelock() {
    let mut whole = Whole::new("refund");
    let id = whole.service.fixture.order_id().to_owned();
    let server = Service { moves: false, ..whole.service.clone() }.start();
    whole.create(&server.base);
    let refund = ["refund", &id, "--json"];
    let code = |output: &Output| serde_json::from_str::<Value>(&out(output)).unwrap()["error"]["code"].clone();
    let output = whole.home.run(&server.base, &refund);
    assert_eq!((output.status.code(), code(&output)), (Some(1), json!("not_refundable")), "{}", said(&output));
    *whole.service.step.lock().unwrap() = Step::SourceFunded;
    let output = whole.home.run(&server.base, &refund);
    assert_eq!((output.status.code(), code(&output)), (Some(1), json!("not_refundable")), "{}", said(&output));
    assert!(said(&output).contains("possible from"), "{}", said(&output));
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"));
    // Later: the same order, whose payment is of last spring.
    let old = Fixture::with_secret(&whole.secret);
    for member in ["created_at", "deadline"] {
        whole.service.fixture.order[member] = old.order[member].clone();
    }
    let server = Service { moves: false, ..whole.service.clone() }.start();
    for _ in 0..2 {
        let output = whole.home.run(&server.base, &refund);
        assert!(output.status.success(), "{}", said(&output));
    }
    let acts: Vec<_> = server.seen().into_iter().filter(|seen| seen.method != "GET").map(|seen| seen.line()).collect();
    // The user may be impatient: asked again, it asks again, and nothing else is sent.
    assert_eq!(acts, [format!("PATCH /v2/orders/{id}?action=refund"), format!("PATCH /v2/orders/{id}?action=refund")]);
}

/// The relayer has the secret, and time is running out. The program prints how to redeem alone, and keeps trying.
#[test]
fn a_redemption_that_does_not_come_raises_the_alarm() {
    let mut whole = Whole::new("alarm");
    // Three quarters of the destination's timelock are over; both sides were paid ten minutes after the order was created.
    let registry = Registry::from_json(whole.service.fixture.registry.as_bytes()).unwrap();
    let swap = &whole.service.fixture.order["destination_swap"];
    let unit = registry.asset(swap["asset"].as_str().unwrap()).unwrap().chain.pace.nominal;
    let over = swap["timelock"].as_u64().unwrap() * unit * 3 / 4_000;
    let created = chrono::Utc::now() - chrono::TimeDelta::seconds(600 + i64::try_from(over).unwrap());
    whole.service.fixture.order["created_at"] = json!(created.to_rfc3339());
    let id = whole.service.fixture.order_id().to_owned();
    let server = Service { moves: false, ..whole.service.clone() }.start();
    whole.create(&server.base);
    let store = countersign_store::Store::open(whole.home.path.join(".local/share/countersign")).unwrap();
    let order = store.open_order(&id).unwrap().lock().unwrap();
    order.append("journal", br#"{"at":1,"event":"secret_leaving","path":"relayer"}"#).unwrap();
    drop(order);
    *whole.service.step.lock().unwrap() = Step::DestinationFunded;
    let output = whole.run(&server.base, &whole.resume);
    let told = said(&output);
    assert!(told.contains("REDEEM NOW") && told.contains(&format!("countersign redeem --self {id}")), "{told}");
    assert!(output.status.success() && server.lines().iter().any(|line| line.ends_with("action=redeem")), "{told}");
}

/// The reply to the secret is lost. From then on the service may have it, and the program neither denies that nor claims more.
#[test]
fn a_redemption_of_unknown_outcome_is_not_called_done() {
    let whole = Whole::new("unknown");
    let service = Service { moves: false, ..whole.service.clone() };
    let server =
        Server::start(
            move |seen| {
                if seen.target.ends_with("action=redeem") { Reply::json(504, "<html>timeout</html>") } else { service.answer(seen) }
            },
        );
    whole.create(&server.base);
    *whole.service.step.lock().unwrap() = Step::DestinationFunded;
    let registry = whole.home.path.join("registry.json");
    let redeem = ["redeem", whole.service.fixture.order_id(), "--registry", registry.to_str().unwrap(), "--trust-the-service"];
    // The second run comes before the next attempt is due.
    for run in ["first", "second"] {
        let output = whole.home.run(&server.base, &redeem);
        assert_eq!((output.status.code(), out(&output)), (Some(3), String::new()), "{run}: {}", said(&output));
        assert!(said(&output).contains("the service may have the secret already"), "{run}: {}", said(&output));
    }
}

/// A stored secret that cannot be read is an error before anything is paid or redeemed.
#[cfg(unix)]
#[test]
fn a_secret_that_cannot_be_read_is_not_a_missing_secret() {
    let whole = Whole::new("unreadable");
    let server = Service { moves: false, ..whole.service.clone() }.start();
    whole.create(&server.base);
    let file = whole.home.kept(whole.service.fixture.order_id(), "secret");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&file, &file).unwrap();
    let registry = whole.home.path.join("registry.json");
    let redeem =
        ["redeem", whole.service.fixture.order_id(), "--registry", registry.to_str().unwrap(), "--trust-the-service"].map(str::to_owned);
    for command in [&redeem[..], &whole.resume] {
        let output = whole.run(&server.base, command);
        assert!(output.status.code() == Some(2) && said(&output).contains("secret"), "{}", said(&output));
    }
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"));
}

/// A token needs its approval on chain first: the program prints it, and submits the message only when told that it is there.
#[test]
fn a_gasless_message_waits_for_the_approval() {
    let home = Home::new("approval");
    let mut fixture = Fixture::load("evm-record-bitcoin-v3");
    fixture.order["created_at"] = json!(chrono::Utc::now().to_rfc3339());
    fixture.order["deadline"] = json!(chrono::Utc::now().timestamp() + 3_600);
    let (registry, wallet) = (home.file("registry.json", &fixture.registry), home.file("wallet.json", &fixture.wallet.to_string()));
    let request = home.file("request.json", &fixture.request.to_string());
    let service = Service::new(fixture.clone());
    let server = Server::start(move |seen| {
        let reply = service.answer(seen);
        if seen.method == "PATCH" {
            *service.step.lock().unwrap() = Step::Redeemed;
        }
        reply
    });
    let create = ["order", "create", "--registry", &registry, "--request", &request, "--service-secret"];
    assert!(home.run(&server.base, &create).status.success());
    let mut resume = vec!["swap", "--registry", &registry, "--resume", fixture.order_id(), "--wallet", &wallet, "--json"];
    resume.extend(["--yes", "--poll", "20", "--service-secret"]);
    // With --yes nobody reads warnings, so only those that the policy accepts may pass.
    let refused = home.run(&server.base, &resume);
    assert!(refused.status.code() == Some(1) && said(&refused).contains("warning_not_accepted"), "{}", said(&refused));
    assert!(said(&refused).contains("redeem_key_not_yours"), "the warning is printed all the same");
    let policy = home.file("policy.json", r#"{"accepted_warnings": ["redeem_key_not_yours"]}"#);
    resume.extend(["--policy", &policy]);
    let printed = home.run(&server.base, &resume);
    assert!(printed.status.code() == Some(4) && said(&printed).contains("--approved"), "{}", said(&printed));
    let shown: Value = serde_json::from_str(&out(&printed)).unwrap();
    assert_eq!(shown["transactions"][0]["payload"], fixture.expect["approval"]["signed"], "{shown}");
    assert_eq!((&shown["ok"], &shown["error"]["code"]), (&json!(false), &json!("broadcast_needed")), "{shown}");
    let message = shown["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("broadcast the approval before 20"), "it says until when: {message}");
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"));
    resume.extend(["--approved", "--trust-the-service"]);
    // The secret of this order is unknown, so the service's word does not end it.
    let (code, told) = home.run_until(&server.base, &resume, "states that the order is complete");
    assert!(code.is_none(), "{told}");
    let patch = server.seen().into_iter().find(|seen| seen.method == "PATCH").unwrap();
    assert_eq!(patch.text(), format!(r#"{{"signature":"{}"}}"#, fixture.gasless().unwrap()));
}
