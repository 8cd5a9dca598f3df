//! Tests what is printed before a question at a terminal, and the effect of each answer.
#![cfg(unix)]

use std::fs;

use crate::home::{Home, paste, said};
use crate::support::{Fixture, Server, Service};
use crate::terminal::answer;
use crate::whole::Whole;
use serde_json::json;

const QUESTION: &str = "sign this? [y/N]";

/// The arguments of a swap that asks.
fn asking(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).filter(|argument| *argument != "--yes").collect()
}

fn is_paid(server: &Server) -> bool {
    server.lines().iter().any(|line| line.starts_with("PATCH"))
}

#[test]
fn a_yes_follows_one_sentence_the_fee_the_refund_and_the_judge() {
    for yes in ["yes\n", "Y\n"] {
        let whole = Whole::new("consent-yes");
        let server = whole.service.start();
        let Some(screen) = answer(&whole.home, &server.base, &asking(&whole.begin), &[(QUESTION, yes)]) else { return };
        assert_eq!(screen.code, 0, "{}", screen.said);
        let before = screen.before(QUESTION);
        let shown = &before[before.rfind("Lock ").unwrap()..];
        for text in [
            "; receive at least ",
            " fee  ",
            " to the network",
            " refund  by you, from about 20",
            " UTC if you pay now",
            "the service's word",
            "--full",
        ] {
            assert!(shown.contains(text), "{text}: {before}");
        }
        for text in ["secret hash", "swap id", "digest", "calldata", "redeemer"] {
            assert!(!before.contains(text), "{text}: {before}");
        }
        assert!(shown.lines().count() <= 10, "{shown}");
        assert!(is_paid(&server) && screen.said.contains("complete"), "{}", screen.said);
    }
}

#[test]
fn a_no_says_that_an_order_exists_and_how_to_go_on() {
    let whole = Whole::new("consent-no");
    let (server, id) = (whole.service.start(), whole.service.fixture.order_id());
    // Enter, another word, Ctrl-D and Ctrl-C sign nothing. All of them say the same.
    for (step, (typed, code)) in [("\n", 1), ("maybe\n", 1), ("\x04", 1), ("\x03", 130)].into_iter().enumerate() {
        let arguments = if step == 0 { &whole.begin } else { &whole.resume };
        let Some(screen) = answer(&whole.home, &server.base, &asking(arguments), &[(QUESTION, typed)]) else { return };
        assert_eq!(screen.code, code, "{typed:?}: {}", screen.said);
        let after = screen.said.split(QUESTION).nth(1).unwrap();
        for text in ["nothing was signed now", &format!("order {id} exists"), &format!("countersign swap --resume {id}")] {
            assert!(after.contains(text), "{typed:?}: {text}: {after}");
        }
        assert!(!is_paid(&server), "{typed:?}");
    }
    // The order exists, and the command continues with it.
    let resume = format!("countersign swap --resume {id}");
    let Some(screen) = answer(&whole.home, &server.base, &[&asking(&whole.resume)[..], &["--full"]].concat(), &[(QUESTION, "n\n")]) else {
        return;
    };
    let before = screen.before(QUESTION);
    assert!(before.contains("secret hash") && before.contains("to sign") && before.contains("Lock "), "{before}");
    let line = screen.said[screen.said.rfind(&resume).unwrap()..].lines().next().unwrap().to_owned();
    let pasted = paste(&whole.home, &server.base, &format!("{line} --yes"));
    assert!(pasted.status.success() && is_paid(&server), "{line}: {}", said(&pasted));
}

/// The arguments without those of the secret, which is then derived.
fn derived(whole: &Whole) -> Vec<String> {
    let mut begin = whole.begin.clone();
    let at = begin.iter().position(|argument| argument == "--secret-file").unwrap();
    begin.drain(at..at + 2);
    begin
}

#[test]
fn the_rescue_phrase_is_confirmed_before_anything_is_asked_of_the_service() {
    let whole = Whole::new("consent-phrase");
    let server = whole.service.start();
    let begin = derived(&whole);
    let asked = |server: &Server| server.lines().iter().any(|line| line.contains("quote") || line.starts_with("POST"));
    let word = "which is word ";
    // Ctrl-D at the first of the two words.
    let Some(screen) = answer(&whole.home, &server.base, &asking(&begin), &[(word, "\x04")]) else { return };
    assert!(screen.code == 130 && screen.said.contains("no order was created, and nothing was paid"), "{}", screen.said);
    assert!(screen.said.contains("countersign phrase") && !asked(&server), "{:?}", server.lines());
    // The next command asks again, also after one at no terminal.
    let piped = whole.home.run(&server.base, &["swap", "--dry-run"]);
    assert!(!said(&piped).contains("rescue phrase"), "{}", said(&piped));
    let Some(screen) = answer(&whole.home, &server.base, &asking(&begin), &[(word, "\x04")]) else { return };
    assert!(screen.code == 130 && screen.said.contains("Your rescue phrase") && !asked(&server), "{}", screen.said);
    // What stands in front of no new order is never asked: the command ends without the phrase.
    let Some(screen) = answer(&whole.home, &server.base, &["refund", "--all"], &[]) else { return };
    assert!(!screen.said.contains("which is word") && !screen.said.contains("Your rescue phrase"), "{}", screen.said);
    // Two right words, after a wrong one. The order of this service has another secret hash, so it is refused then.
    fs::remove_dir_all(whole.home.path.join(".local")).unwrap();
    let steps = [(word, "nonsense\n"), ("another word", ""), (word, "{word}"), (word, "{word}")];
    let Some(screen) = answer(&whole.home, &server.base, &asking(&begin), &steps) else { return };
    assert!(screen.code == 1 && screen.said.contains("refused") && asked(&server), "{}", screen.said);
    assert_eq!(screen.said.matches("which is word").count(), 3, "{}", screen.said);
    // A second run does not ask again.
    let Some(screen) = answer(&whole.home, &server.base, &asking(&begin), &[]) else { return };
    assert!(screen.code == 1 && !screen.said.contains("which is word"), "{}", screen.said);
}

#[test]
fn a_second_order_of_the_same_amount_says_that_the_first_one_has_not_ended() {
    let whole = Whole::new("consent-twice");
    let (server, id) = (whole.service.start(), whole.service.fixture.order_id());
    let Some(first) = answer(&whole.home, &server.base, &asking(&whole.begin), &[(QUESTION, "n\n")]) else { return };
    let waits = format!("order {id} of the same amount has not ended");
    assert!(!first.said.contains(&waits), "{}", first.said);
    // The order of this service is stored already, which ends the command.
    let again = whole.home.run(&server.base, &derived(&whole).iter().map(String::as_str).collect::<Vec<_>>());
    assert!(said(&again).contains(&waits) && said(&again).contains(&format!("swap --resume {id}")), "{}", said(&again));
}

/// The same lines stand before the question in every family.
#[test]
fn every_kind_of_source_is_asked_about_in_the_same_way() {
    let mut asked = 0;
    for (kind, mut fixture) in Fixture::of_each_source() {
        fixture.order["created_at"] = json!(chrono::Utc::now().to_rfc3339());
        fixture.order["deadline"] = json!(chrono::Utc::now().timestamp() + 3_600);
        let home = Home::new(&format!("consent-{kind}"));
        let (registry, wallet) = (home.file("registry.json", &fixture.registry), home.file("wallet.json", &fixture.wallet.to_string()));
        let server = Service::new(fixture.clone()).start();
        let request = home.file("request.json", &fixture.request.to_string());
        let create = ["order", "create", "--registry", &registry, "--request", &request, "--service-secret"];
        let created = home.run(&server.base, &create);
        assert!(created.status.success(), "{kind}: {}", said(&created));
        let resume = ["swap", "--registry", &registry, "--resume", fixture.order_id(), "--wallet", &wallet, "--service-secret"];
        let Some(screen) = answer(&home, &server.base, &resume, &[(QUESTION, "n\n")]) else { return };
        let shown = &screen.before(QUESTION)[screen.said.find("Lock ").unwrap()..];
        for text in [" fee  ", " to the network", " refund  ", " UTC if you pay now", " destination  somebody else holds the secret"] {
            assert!(shown.contains(text), "{kind}: {text}: {}", screen.said);
        }
        assert!(screen.code == 1 && !shown.contains("secret hash") && !is_paid(&server), "{kind}: {}", screen.said);
        assert!(screen.said.contains("other users can read or change it"), "{kind}: the wallet context has the key: {}", screen.said);
        asked += 1;
    }
    assert_eq!(asked, 7);
}
