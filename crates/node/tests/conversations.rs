//! The recorded conversations of `fixtures/readers`, through this crate's lanes, batches and HTTP: the verdicts are those that the
//! bindings give.
use countersign::chains::UnixTime;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use countersign::{Funded, Policy, Registry};
use countersign_json::objects::{self, Documents, Record};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
use countersign_testkit::project;
use countersign_transport::{Request, Response, Transport, TransportError, TransportErrorKind};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// An endpoint that answers from a conversation.
struct Recorded {
    /// Each request with its answer.
    pairs: Vec<(Value, Value)>,
    now: u64,
}

impl Recorded {
    fn new(line: &Value) -> Self {
        let rounds = line["rounds"].as_array().unwrap().iter();
        let pairs = rounds.flat_map(|round| {
            let (requests, answers) = (round["requests"].as_array().unwrap(), round["answers"].as_array().unwrap());
            requests.iter().cloned().zip(answers.iter().cloned())
        });
        Self { pairs: pairs.collect(), now: line["now"].as_u64().unwrap() }
    }

    fn answer(&self, is_asked: impl Fn(&Value) -> bool) -> Result<&Value, TransportError> {
        let found = self.pairs.iter().find(|(request, _)| is_asked(request)).map(|(_, answer)| answer);
        // After a failure, a conversation has no more rounds.
        found.filter(|answer| answer["failed"].is_null()).ok_or_else(|| TransportError::new(TransportErrorKind::Timeout, "no more"))
    }

    fn call(&self, call: &Value) -> Result<Value, TransportError> {
        let is_asked = |request: &Value| {
            let params = request["params"].as_str().map(|params| serde_json::from_str::<Value>(params).unwrap());
            request["method"] == call["method"] && params.as_ref() == Some(&call["params"])
        };
        let answer = self.answer(is_asked)?;
        Ok(match answer["result"].as_str() {
            Some(text) => json!({"jsonrpc": "2.0", "id": call["id"], "result": serde_json::from_str::<Value>(text).unwrap()}),
            None => json!({"jsonrpc": "2.0", "id": call["id"], "error": answer["error"]}),
        })
    }
}

impl Transport for Recorded {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let body = request.body.as_ref().map(|body| body.to_vec());
        if self.pairs[0].0["kind"] == "json_rpc" {
            let reply = match serde_json::from_slice(&body.unwrap()).unwrap() {
                Value::Array(calls) => Value::Array(calls.iter().map(|call| self.call(call)).collect::<Result<_, _>>()?),
                call => self.call(&call)?,
            };
            return Ok(Response::new(200, reply.to_string()));
        }
        let body = body.map(hex::encode_prefixed);
        let answer = self.answer(|asked| asked["path"] == request.url.path() && asked["body"].as_str() == body.as_deref())?;
        let response =
            Response::new(answer["status"].as_u64().unwrap().try_into().unwrap(), hex::decode(answer["body"].as_str().unwrap()).unwrap());
        Ok(answer["grpc_status"].as_str().map_or(response.clone(), |status| response.with_header("grpc-status", status)))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.now)
    }
}

fn registry() -> Registry {
    objects::registry(&fs::read(project().join("fixtures/registry.json")).unwrap()).unwrap()
}

fn open(id: &str) -> Record {
    let family = id.split('-').next().unwrap();
    let text = fs::read_to_string(project().join(format!("fixtures/accept/{family}.jsonl"))).unwrap();
    let case = text.lines().find(|line| line.contains(&format!(r#""id":"{id}""#))).expect(id);
    let case: BTreeMap<String, Box<RawValue>> = serde_json::from_str(case).unwrap();
    let [request, response, order] = ["request", "response", "order"].map(|member| case[member].get().as_bytes());
    objects::verify_record(&Documents::new(request, response).with_record(Some(order)), &registry(), &Policy::default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_conversation_has_the_verdict_of_the_bindings() {
    for family in ["evm", "tron", "starknet", "solana", "sui", "bitcoin"] {
        let text = fs::read_to_string(project().join(format!("fixtures/readers/{family}.jsonl"))).unwrap();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let verified = open(line["fixture"].as_str().unwrap()).verified;
            let terms = &verified.terms;
            let scheme = if family == "bitcoin" && line["protocol"] == "rpc" { "rpc+https" } else { "https" };
            let endpoint = Endpoint::parse(&format!("{scheme}://one.example")).unwrap();
            let config = NodeConfig::new().with(&*terms.destination.chain, Endpoints::new(vec![endpoint]).unwrap());
            let registry = registry();
            let rule = Policy::default().finality_of(registry.asset(terms.destination.asset.as_str()).unwrap(), terms.destination.amount);
            let nodes = Nodes::new(Recorded::new(&line), config, &registry);
            let expected = &line["outcome"];
            match nodes.htlc(&terms.destination).await {
                Ok(quorum) => {
                    let verdict = match Funded::judge(terms, &quorum, &rule, UnixTime::from_secs(line["now"].as_u64().unwrap())) {
                        Ok(funded) => json!({"left": funded.left().units, "unit": funded.left().unit()}),
                        Err(hold) => json!({ "code": hold.code().name() }),
                    };
                    assert_eq!((&verdict, expected["fault"].is_null()), (&expected["verdict"], true), "{family}: {}", line["case"]);
                }
                Err(error) => assert!(expected["fault"].is_string(), "{family}: {}: {error}", line["case"]),
            }
        }
    }
}
