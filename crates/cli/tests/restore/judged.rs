//! Tests what `redeem --self` reads from the destination chain before it prints a restored order's redemption.

use countersign::{Leg, OrderRecord, Registry, evidence::HtlcTerms};
use countersign_testkit::chain::evm::Evm;
use serde_json::{Value, json};

use super::{OWNER, Vector, order, restored, service};
use crate::home::{Home, NOWHERE, out, said};
use crate::kept::{derived, wallet};
use crate::support::{Reply, Server};

/// A node of the destination's chain, with the payment of a restored order as `change` makes it. The account that redeems has these coins.
fn node_of(order: &Value, coins: &'static str, change: impl Fn(&mut Evm) + Send + Sync + 'static) -> Server {
    let registry = Registry::from_json(crate::support::registry_text().as_bytes()).unwrap();
    let record = OrderRecord::from_json(order.to_string().as_bytes()).unwrap();
    let terms = HtlcTerms::stated(&record, Leg::Destination, &registry).unwrap();
    Server::start(move |seen| {
        let mut chain = Evm::funded(&terms);
        (chain.chain_id, chain.l1_number, chain.time) = (42_161, Some(1), u64::try_from(chrono::Utc::now().timestamp()).unwrap() - 5);
        change(&mut chain);
        let reply = |call: &Value| {
            let result = match call["method"].as_str().unwrap() {
                "eth_getCode" => json!("0x"),
                "eth_getBalance" if call["params"][0].as_str().unwrap().eq_ignore_ascii_case(&record.destination_swap.redeemer) => {
                    json!(coins)
                }
                // The HTLC pays the receiver in coins.
                "eth_call" if call["params"][0].get("data").is_none() => json!("0x"),
                method => chain.result(method, &call["params"]),
            };
            let mut reply = json!({"jsonrpc": "2.0", "id": call["id"]});
            match result.get("error") {
                Some(error) => reply["error"] = error.clone(),
                None => reply["result"] = result,
            }
            reply
        };
        let calls: Value = serde_json::from_str(&seen.text()).unwrap();
        Reply::json(200, calls.as_array().map_or_else(|| reply(&calls), |calls| calls.iter().map(reply).collect()).to_string())
    })
}

/// The request of a restored order is lost. What the destination must hold is what its record and the pins say, and the chain is asked for
/// that before the secret is printed.
#[test]
fn a_restored_order_is_judged_by_its_record() {
    let order = order(2, "a2");
    let secret = Vector::at(2).text("/secret").to_owned();
    type Change = fn(&mut Evm);
    let cases: [(&str, Change, &str); 6] = [
        // The chain shows it, and still only the service says that it is what the owner agreed to.
        ("held", |_| {}, "only the service says what the redemption pays: nothing was printed"),
        ("absent", |chain| chain.order = None, "is not funded"),
        ("less", |chain| chain.order.as_mut().unwrap()[4] -= countersign::U256::from(1), "the amount of the destination's HTLC"),
        ("not final", |chain| (chain.safe, chain.finalized) = (Some(chain.initiated - 1), None), "must be"),
        // The wallet context says what the redemption costs, and not whether the account has it.
        ("poor", |_| {}, "insufficient"),
        ("late", |chain| chain.order.as_mut().unwrap()[3] = countersign::U256::from(1), "the timelock of the destination's HTLC"),
    ];
    for (name, change, why) in cases {
        let home = Home::new(&format!("restore-judged-{}", name.replace(' ', "-")));
        restored(&home, &service(vec![order.clone()]).base, &["--from-owner", OWNER]);
        let state = home.path.join("state").to_str().unwrap().to_owned();
        let registry = home.file("registry.json", &crate::support::registry_text());
        let (mut context, _) = wallet("evm", None);
        context.as_object_mut().unwrap().remove("sender");
        let context = home.file("wallet.json", &context.to_string());
        let key = home.file("redeem.txt", &derived("destination owner of evm-record-evm-v2"));
        let node = node_of(&order, if name == "poor" { "0x1" } else { "0xde0b6b3a7640000" }, change);
        let (id, endpoint) = ("a2".repeat(32), format!("arbitrum={}", node.base));
        let arguments = [
            "redeem",
            "--self",
            &id,
            "--state",
            &state,
            "--registry",
            &registry,
            "--wallet",
            &context,
            "--key-file",
            &key,
            "--node",
            &endpoint,
        ];
        let run = |more: &[&str]| home.run(NOWHERE, &[&arguments[..], more].concat());
        #[cfg(unix)]
        if name == "held" {
            asked_at_a_terminal(&home, &arguments, &secret);
        }
        let output = run(&["--json"]);
        assert!(said(&output).contains("only the service says what the redemption pays"), "{name}: {}", said(&output));
        assert_eq!(output.status.code(), Some(1), "{name}: {}", said(&output));
        let told = format!("{}{}", out(&output), said(&output));
        assert!(told.contains("evidence_needed") && told.contains(why) && !told.contains(&secret), "{name}: {told}");
        assert!(out(&run(&["--json", "--without-evidence"])).contains(&secret), "{name}");
        // The wallet context may come from a pipe, which can be read once.
        let piped = ["redeem", "--self", &id, "--state", &state, "--registry", &registry, "--wallet", "-", "--key-file", &key];
        let piped = [&piped[..], &["--node", &endpoint, "--json", "--without-evidence"]].concat();
        let printed = home.run_with(NOWHERE, &piped, &[], &std::fs::read_to_string(&context).unwrap());
        assert!(out(&printed).contains(&secret), "{name}: {}", said(&printed));
    }
}

/// At a terminal the owner is asked, after what only the service states. A no prints nothing.
#[cfg(unix)]
fn asked_at_a_terminal(home: &Home, arguments: &[&str], secret: &str) {
    let question = "does the order pay you this? [y/N]";
    let Some(no) = crate::terminal::answer(home, NOWHERE, arguments, &[(question, "\n")]) else { return };
    let before = no.before(question);
    for text in
        ["Redeem ", "as only the service states it", " refund  ", " destination  this program has read the chain", " danger  whoever sees"]
    {
        assert!(before.contains(text), "{text}: {before}");
    }
    assert!(
        no.code == 1 && no.said.contains("nothing was printed, and the secret has not left") && !no.said.contains(secret),
        "{}",
        no.said
    );
    let in_json = [arguments, &["--json"]].concat();
    let Some(no) = crate::terminal::answer(home, NOWHERE, &in_json, &[(question, "\n")]) else { return };
    let events = no.before(question).lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let consent = events.into_iter().find(|event| event["event"] == "consent").unwrap_or_else(|| panic!("{}", no.said));
    assert!(consent["headline"].as_str().unwrap().starts_with("Redeem "), "{consent}");
    let labels: Vec<_> = consent["lines"].as_array().unwrap().iter().map(|line| line["label"].as_str().unwrap()).collect();
    assert_eq!((labels, &consent["warnings"][0]["severity"]), (vec!["fee", "refund", "destination"], &json!("danger")), "{consent}");
    let Some(yes) = crate::terminal::answer(home, NOWHERE, arguments, &[(question, "yes\n")]) else { return };
    assert!(yes.code == 0 && yes.said.replace('\n', "").contains(secret), "{}", yes.said);
}
