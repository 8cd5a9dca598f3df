//! Tests the preconditions for paying an order whose owner receives coins of a Bitcoin-like chain.

use countersign::wire::OrderRecord;
use countersign::{
    Policy, Registry, U256,
    evidence::{Precondition, Stage},
};
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_node::{Endpoint, Endpoints, Ends, NodeConfig, Nodes, Speed};
use serde_json::{Value, json};

use super::fake::{Servers, verified};
use super::prices::{HOSTS, Lie, funded, servers};

/// The virtual bytes of a redemption: see `docs/spec/bitcoin.md`.
const VBYTES: u64 = 142;

/// The pins of a chain with its coin.
fn registry() -> Registry {
    let fixture = serde_json::to_value(countersign_testkit::registry().asset("bitcoin:btc").unwrap().record.clone()).unwrap();
    let mut asset = fixture;
    asset["id"] = json!("bitcoin_regtest:btc");
    asset["chain"] = json!("bitcoin_regtest");
    asset["chain_id"] = json!("regtest");
    let registry = json!({"chains": [{"chain": "bitcoin_regtest", "id": "bitcoin:regtest"}], "assets": [asset]});
    Registry::from_json(registry.to_string().as_bytes()).unwrap()
}

fn connect(servers: Servers, registry: &Registry) -> Nodes<Servers> {
    let url = |host: &str| format!("{}https://{host}/the-key/api", if host.starts_with("rpc") { "rpc+" } else { "" });
    let all = HOSTS.iter().map(|host| Endpoint::parse(&url(host)).unwrap()).collect();
    Nodes::new(servers, NodeConfig::new().with("bitcoin_regtest", Endpoints::new(all).unwrap()), registry)
}

async fn unmet(servers: Servers, payout: u64, stage: Stage) -> Vec<(Precondition, &'static str)> {
    let mut record: OrderRecord = verified().record;
    record.destination_swap.asset = "bitcoin_regtest:btc".parse().unwrap();
    record.destination_swap.amount = U256::from(payout);
    let (registry, policy) = (registry(), Policy::default());
    let found = connect(servers, &registry).preconditions(&Ends::of_record(&record, &registry), stage, Speed::Normal, &policy).await;
    found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect()
}

/// Two of three endpoints are honest and show 10 and 12 sat/vB, so a redemption costs between 1,420 and 1,704 sat, whatever the third says.
#[tokio::test(start_paused = true)]
async fn a_payout_in_coins_is_worth_more_than_its_redemption() {
    let (ledger, ..) = funded();
    let lies = [Lie::Rate(json!(0)), Lie::Rate(json!(1)), Lie::Rate(json!(990)), Lie::Status(429), Lie::Silent];
    let mut liars = vec![None];
    liars.extend(lies.iter().flat_map(|lie| (0..3).map(move |place| Some((place, lie)))));
    for liar in liars {
        for (payout, expected) in [
            (330, vec![(Precondition::Payout, "fee_above_payout")]),
            (10 * VBYTES, vec![(Precondition::Payout, "fee_above_payout")]),
            (12 * VBYTES + 1, vec![]),
        ] {
            assert_eq!(unmet(servers(&ledger, liar), payout, Stage::BeforePaying).await, expected, "{payout}: {liar:?}");
        }
        // Before the secret leaves, the payment is out, and a payout that shrank is better than none.
        assert_eq!(unmet(servers(&ledger, liar), 330, Stage::BeforeSecret).await, []);
    }
}

/// Without the answers of two endpoints, what a redemption costs is not known, and nothing is paid.
#[tokio::test(start_paused = true)]
async fn a_fee_that_nobody_shows_is_no_yes() {
    let (ledger, ..) = funded();
    let silent = |host: &'static str, servers: Servers| servers.lying(host, |_, _| Err(TransportErrorKind::Timeout));
    let two = silent(HOSTS[0], silent(HOSTS[2], servers(&ledger, None)));
    let found = unmet(two, 1_000_000, Stage::BeforePaying).await;
    assert!(matches!(found.as_slice(), [(Precondition::Payout, code)] if *code != "fee_above_payout"), "{found:?}");
}

/// A node of Litecoin of one version.
struct Node(u64);

impl Transport for Node {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let body: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
        let reply = |call: &Value| {
            let result = match call["method"].as_str().unwrap() {
                "getblockhash" => json!("12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2"),
                "getnetworkinfo" => json!({"version": self.0, "subversion": "/LitecoinCore:0.21/"}),
                other => panic!("{other}"),
            };
            json!({"result": result, "error": null, "id": call["id"]})
        };
        let reply: Value = body.as_array().map_or_else(|| reply(&body), |calls| calls.iter().map(reply).collect());
        Ok(Response::new(200, reply.to_string()))
    }

    async fn sleep(&self, _: std::time::Duration) {}

    fn now(&self) -> countersign::chains::UnixTime {
        countersign::chains::UnixTime::from_secs(1_800_000_000)
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_rules_in_force_is_refused_before_paying() {
    for (version, expected) in [(210_508, vec![]), (210_507, vec![(Precondition::NodeVersion, "node_outdated")])] {
        let endpoint = Endpoint::parse("rpc+http://user:password@127.0.0.1:1").unwrap();
        let config = NodeConfig::new().with("litecoin", Endpoints::new(vec![endpoint]).unwrap());
        let nodes = Nodes::new(Node(version), config, countersign_testkit::registry());
        let found = nodes.chain_preconditions("litecoin", countersign_testkit::registry(), &Policy::default()).await;
        let unmet: Vec<_> = found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect();
        assert_eq!(unmet, expected, "{version}");
        assert_eq!(found.met.iter().any(|(met, _)| *met == Precondition::NodeVersion), expected.is_empty());
    }
}
