//! Tests that orders survive `kill -9` at any moment.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use countersign_sandbox::http::Request;
use countersign_sandbox::sandbox::{Config, Sandbox};
use countersign_sandbox::service;
use serde_json::{Value, json};

use crate::program::{Program, request};
use crate::wire::Connection;
use crate::{Draw, directory, executable};

#[test]
fn an_acknowledged_order_survives_a_kill() {
    let directory = directory("kill");
    let (mut draw, next) = (Draw(2_026), AtomicU64::new(0));
    let acknowledged: Mutex<BTreeMap<u64, Value>> = Mutex::default();
    for round in 0..4 {
        let mut sandbox = Program::start(executable(), &directory, "base,arbitrum", &[]).unwrap();
        let url = sandbox.service().to_owned();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut connection = Connection::open(&url).unwrap();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Ok((status, answer)) = connection.call("POST", "/v2/orders", request(number).to_string().as_bytes()) else {
                            return;
                        };
                        assert_eq!(status, 200);
                        let answer: Value = serde_json::from_slice(&answer).unwrap();
                        acknowledged.lock().unwrap().insert(number, answer);
                    }
                });
            }
            thread::sleep(Duration::from_millis(200 + draw.below(700)));
            sandbox.kill();
        });

        let sandbox = Program::start(executable(), &directory, "base,arbitrum", &[]).unwrap();
        let mut connection = Connection::open(sandbox.service()).unwrap();
        let known = acknowledged.lock().unwrap();
        assert!(known.len() > 4 * round, "too few orders to say anything: {}", known.len());
        let mut ids = std::collections::BTreeSet::new();
        for (number, answer) in known.iter() {
            let (status, again) = connection.call("POST", "/v2/orders", request(*number).to_string().as_bytes()).unwrap();
            assert_eq!((status, &serde_json::from_slice::<Value>(&again).unwrap()), (200, answer), "the same request, another answer");
            let id = answer["result"]["order_id"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "two requests have one order");
            let record = connection.service("GET", &format!("/v2/orders/{id}"), &Value::Null).unwrap();
            assert_eq!(record["nonce"], number.to_string());
            let found = connection.service(
                "GET",
                &format!("/v2/orders?from_owner={}", request(*number)["source"]["owner"].as_str().unwrap()),
                &Value::Null,
            );
            assert_eq!(found.unwrap()["data"][0]["order_id"], id);
        }
        // A client without an answer repeats its request, and gets one order.
        for number in (0..next.load(Ordering::Relaxed)).filter(|number| !known.contains_key(number)) {
            let first = connection.service("POST", "/v2/orders", &request(number)).unwrap();
            assert_eq!(connection.service("POST", "/v2/orders", &request(number)).unwrap(), first);
        }
    }
    // The sandbox still works: a whole swap succeeds on a directory after so many kills.
    let sandbox = Program::start(executable(), &directory, "base,arbitrum", &[]).unwrap();
    let swapped = Command::new(countersign_sandbox::trial::program().unwrap())
        .args("swap --json --yes --poll 100 --from base:usdc --to arbitrum:eth --amount 4000000 --at-least 1".split(' '))
        .env_clear()
        .env("HOME", &directory)
        .env("COUNTERSIGN_CONFIG", sandbox.about["config"].as_str().unwrap())
        .output()
        .unwrap();
    assert!(swapped.status.success(), "{}", String::from_utf8_lossy(&swapped.stderr));
    drop(sandbox);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_second_sandbox_on_a_directory_says_that_one_runs() {
    let directory = directory("second");
    let sandbox = Program::start(executable(), &directory, "base,arbitrum", &[]).unwrap();
    let config = std::fs::read(directory.join("config.json")).unwrap();
    let second = Command::new(executable()).args(["--port", "0", "--chains", "base", "--dir"]).arg(&directory).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    let told =
        format!("another sandbox runs on this directory, process {}: stop it, or choose another directory with --dir\n", sandbox.id());
    assert!(!second.status.success() && said.ends_with(&told), "{said}");
    assert_eq!(std::fs::read(directory.join("config.json")).unwrap(), config, "the first one's files are as they were");
    drop(sandbox);
    std::fs::remove_dir_all(&directory).unwrap();
}

fn call(sandbox: &Sandbox, method: &str, path: &str, body: &Value) -> Value {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request { method: method.into(), path: path.into(), query: String::new(), headers: Vec::new(), body };
    serde_json::from_slice::<Value>(&service::answer(&sandbox.world, &request).body).unwrap()["result"].clone()
}

async fn begun(directory: &std::path::Path) -> Sandbox {
    let chains = vec!["base".to_owned(), "arbitrum".to_owned()];
    for _ in 0..100 {
        let config = Config { directory: Some(directory.to_owned()), chains: chains.clone(), is_manual: true, ..Config::default() };
        // The previous process holds the file until its last task has ended.
        match Sandbox::start(config).await {
            Ok(sandbox) => return sandbox,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    panic!("the ledger is still held");
}

async fn pay_and_run(sandbox: &Sandbox, id: &str, steps: usize) {
    let order = sandbox.world.ledger.by_id(id).unwrap();
    sandbox.world.chain("base").unwrap().engine().lock(&order.source.terms(true)).unwrap();
    for _ in 0..steps {
        sandbox.world.chains.values().for_each(|chain| chain.engine().mine(2));
        sandbox.step().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_under_way_is_unpaid_again_when_the_chains_are_gone() {
    let directory = directory("under-way");
    let sandbox = begun(&directory).await;
    // Without a hash, the service keeps the secret, so the first order completes by itself.
    let mut wanted = request(1);
    wanted["secret_hash"] = Value::Null;
    let ended = call(&sandbox, "POST", "/v2/orders", &wanted)["order_id"].as_str().unwrap().to_owned();
    pay_and_run(&sandbox, &ended, 12).await;
    let complete = call(&sandbox, "GET", &format!("/v2/orders/{ended}"), &Value::Null);
    assert_ne!(complete["source_swap"]["redeem_tx_hash"], "");
    // The second order waits for the user's secret.
    let waiting = call(&sandbox, "POST", "/v2/orders", &request(2))["order_id"].as_str().unwrap().to_owned();
    pay_and_run(&sandbox, &waiting, 6).await;
    let path = format!("/v2/orders/{waiting}");
    assert_ne!(call(&sandbox, "GET", &path, &Value::Null)["destination_swap"]["initiate_tx_hash"], "");
    drop(sandbox);

    let sandbox = begun(&directory).await;
    let record = call(&sandbox, "GET", &path, &Value::Null);
    for leg in ["source_swap", "destination_swap"] {
        assert_eq!((&record[leg]["initiate_tx_hash"], &record[leg]["filled_amount"]), (&json!(""), &json!("0")));
    }
    assert!(sandbox.world.lines().iter().any(|line| line.contains("is unpaid again")), "{:?}", sandbox.world.lines());
    let mut still = call(&sandbox, "GET", &format!("/v2/orders/{ended}"), &Value::Null);
    for leg in ["source_swap", "destination_swap"] {
        still[leg]["current_confirmations"] = complete[leg]["current_confirmations"].clone();
    }
    assert_eq!(still, complete, "what has ended stays as it ended");
    // The order can be paid on the new chains, and the solver pays too.
    pay_and_run(&sandbox, &waiting, 6).await;
    let record = call(&sandbox, "GET", &path, &Value::Null);
    assert_eq!(record["source_swap"]["filled_amount"], "4000000");
    assert_ne!(record["destination_swap"]["initiate_tx_hash"], "");
    drop(sandbox);
    std::fs::remove_dir_all(&directory).unwrap();
}
