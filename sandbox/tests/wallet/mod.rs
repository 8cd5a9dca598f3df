//! A wallet made of countersign's own parts. It reads and pays through the interfaces of the sandbox's chains.
#![allow(
    clippy::missing_panics_doc,
    missing_debug_implementations,
    missing_docs,
    dead_code,
    unreachable_pub,
    reason = "a test ends by panicking, and uses the parts that it needs"
)]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use countersign::recover::Recovery;
use countersign::{
    BroadcastTransaction, Funded, Key, Policy, Registry, Role, Signed, Unsigned, VerifiedRecord,
    chains::UnixTime,
    evidence::{Hold, HtlcState, LockedHtlc},
    json, verify, verify_record,
};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes, Speed};
use countersign_sandbox::accounts;
use countersign_sandbox::chains::{Change, Engine, Event, Terms};
use countersign_sandbox::clock::Clock;
use countersign_sandbox::home::pinned;
use countersign_sandbox::http;
use countersign_transport::{Method, Request, Response, Transport, TransportError};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub const SECRET: [u8; 32] = *b"the secret of the sandbox, 2026.";
const ORDER_ID: &str = "4784d9c7706413956fcfe6b9148adddc60eb6cfe3765f95b0f50600d874d3c26";

pub fn secret_hash() -> [u8; 32] {
    Sha256::digest(SECRET).into()
}

/// Returns the output of a future. Nothing here waits, so the future is ready at the first poll.
pub fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing waits"),
    }
}

/// The chains of a test, as a transport. The first label of a host is the name of the chain.
pub struct Chains {
    pub clock: Arc<Clock>,
    engines: Mutex<BTreeMap<String, Box<dyn Engine>>>,
}

impl Chains {
    pub fn new(clock: Arc<Clock>, engines: Vec<(&str, Box<dyn Engine>)>) -> Arc<Self> {
        let engines = engines.into_iter().map(|(name, engine)| (name.to_owned(), engine)).collect();
        Arc::new(Self { clock, engines: Mutex::new(engines) })
    }

    pub fn with<R>(&self, chain: &str, act: impl FnOnce(&mut dyn Engine) -> R) -> R {
        act(self.engines.lock().unwrap().get_mut(chain).expect("the chain").as_mut())
    }

    /// Makes blocks on a chain, and advances the clock by their time.
    pub fn mine(&self, chain: &str, blocks: u64) {
        let interval = self.with(chain, |engine| engine.interval());
        self.clock.advance(interval * blocks);
        self.with(chain, |engine| engine.mine(blocks));
        // The other chains make a block too.
        for engine in self.engines.lock().unwrap().values_mut() {
            engine.mine(1);
        }
    }

    pub fn registry(&self) -> Registry {
        let engines = self.engines.lock().unwrap();
        let all: Vec<_> = engines.values().map(|engine| engine.listing()).collect();
        let assets: Vec<_> = all.iter().flat_map(|listing| listing.assets.clone()).collect();
        let chains: Vec<_> = engines.values().map(|engine| pinned(engine.as_ref())).collect();
        let solvers: Vec<_> = all
            .iter()
            .map(|listing| {
                let chain = &listing.chain["chain"];
                let own = assets.iter().filter(|asset| asset["chain"] == *chain);
                let own: Vec<_> = own.map(|asset| json!({"asset": asset["id"], "balance": "1", "virtual_balance": "1"})).collect();
                json!({"solver_id": "solver", "chain": chain, "address": listing.solver, "assets": own})
            })
            .collect();
        let text = json!({"chains": chains, "assets": assets, "solvers": solvers}).to_string();
        Registry::from_json(text.as_bytes()).expect("a registry")
    }
}

impl Transport for Chains {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().split('.').next().unwrap().to_owned();
        let request = http::Request {
            method: if request.method == Method::Get { "GET" } else { "POST" }.to_owned(),
            path: request.url.path().to_owned(),
            query: request.url.query().unwrap_or_default().to_owned(),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: request.body.as_ref().map(|body| body.to_vec()).unwrap_or_default(),
        };
        let reply = self.with(&host, |engine| engine.answer(&request));
        Ok(Response::new(reply.status, reply.body))
    }

    async fn sleep(&self, duration: Duration) {
        self.clock.advance(duration.as_millis().try_into().unwrap());
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.clock.seconds())
    }
}

/// A swap of one user between two assets.
pub struct Swap {
    pub chains: Arc<Chains>,
    pub nodes: Nodes<Arc<Chains>>,
    pub registry: Registry,
    pub source: Terms,
    pub destination: Terms,
    delegate: Option<String>,
}

pub fn chain_of(terms: &Terms) -> &str {
    terms.asset.split(':').next().unwrap()
}

fn bare(id: &str) -> &str {
    id.trim_start_matches("0x")
}

/// Returns whether fees are paid in the asset itself.
fn is_coin(terms: &Terms) -> bool {
    [":eth", ":bnb", ":trx"].iter().any(|coin| terms.asset.ends_with(coin))
}

/// What the wallet has seen of a whole swap.
pub struct Done {
    pub locked: LockedHtlc,
    pub funded: Funded,
    /// The id of the user's redemption.
    pub redemption: String,
}

impl Swap {
    /// Returns a swap of amounts in base units. The user holds the source amount, and some coins on both chains.
    pub fn new(chains: &Arc<Chains>, source: (&str, u128), destination: (&str, u128)) -> Self {
        let registry = chains.registry();
        let key = accounts::key(accounts::USER);
        let terms = |(asset, amount): (&str, u128), is_source: bool| {
            let chain = asset.split(':').next().unwrap();
            let listed = chains.with(chain, |engine| engine.listing().chain);
            let timelock = if is_source { &listed["source_timelock"] } else { &listed["destination_timelock"] };
            Terms {
                asset: asset.to_owned(),
                amount,
                owner: chains.with(chain, |engine| engine.address_of(&key)),
                delegate: None,
                is_source,
                timelock: timelock.as_str().unwrap().parse().unwrap(),
                secret_hash: secret_hash(),
            }
        };
        let (source, destination) = (terms(source, true), terms(destination, false));
        for (terms, amount) in [(&source, source.amount), (&destination, 0)] {
            let listed = chains.with(chain_of(terms), |engine| engine.listing().chain);
            let coin = listed["native_asset_id"].as_str().unwrap().to_owned();
            let fees = if coin.ends_with("trx") { 10_000_000_000 } else { 1_000_000_000_000_000_000 };
            chains.with(chain_of(terms), |engine| {
                engine.fund(&terms.owner, &coin, fees).unwrap();
                engine.fund(&terms.owner, &terms.asset, amount).unwrap();
            });
        }
        let mut config = NodeConfig::new();
        for name in [chain_of(&source), chain_of(&destination)] {
            let endpoint = Endpoint::parse(&format!("https://{name}.example")).unwrap();
            config = config.with(name, Endpoints::new(vec![endpoint]).unwrap());
        }
        let nodes = Nodes::new(Arc::clone(chains), config, &registry);
        Self { chains: Arc::clone(chains), nodes, registry, source, destination, delegate: None }
    }

    pub fn with_delegate(mut self, delegate: String) -> Self {
        self.source.delegate = Some(delegate.clone());
        self.delegate = Some(delegate);
        self
    }

    fn record_leg(&self, terms: &Terms) -> Value {
        let leg = self.chains.with(chain_of(terms), |engine| engine.leg(terms)).unwrap();
        json!({
            "swap_id": leg.swap_id,
            "chain": chain_of(terms),
            "asset": terms.asset,
            "initiator": leg.initiator,
            "redeemer": leg.redeemer,
            "timelock": terms.timelock,
            "amount": terms.amount.to_string(),
            "filled_amount": "0",
            "secret_hash": hex::encode(terms.secret_hash),
        })
    }

    /// Returns the order as a line of a batch: the request, the response and the record.
    pub fn line(&self) -> Value {
        let mut result = self.chains.with(chain_of(&self.source), |engine| engine.payloads(&self.source)).unwrap();
        result.insert("order_id".to_owned(), json!(ORDER_ID));
        let leg = |terms: &Terms| json!({"asset": terms.asset, "owner": terms.owner, "amount": terms.amount.to_string()});
        let mut source = leg(&self.source);
        if let Some(delegate) = &self.delegate {
            source["delegate"] = json!(delegate);
        }
        json!({
            "id": "order",
            "request": {"source": source, "destination": leg(&self.destination), "secret_hash": hex::encode(self.source.secret_hash)},
            "response": {"status": "Ok", "result": result},
            "order": {
                "created_at": "2026-11-23T12:00:00Z",
                "order_id": ORDER_ID,
                "version": "v3",
                "nonce": "1",
                "affiliate_fees": [],
                "source_swap": self.record_leg(&self.source),
                "destination_swap": self.record_leg(&self.destination),
            },
        })
    }

    pub fn record(&self) -> VerifiedRecord {
        let (line, policy) = (self.line().to_string(), Policy::default());
        let value = json::parse(line.as_bytes()).unwrap();
        let proposal = countersign_json::line::Case::from_value(&value).unwrap().proposal().unwrap();
        verify_record(proposal, &self.registry, &policy).expect("a record that countersign accepts")
    }

    /// Verifies the response, prepares the transaction with the nodes' answers, and signs it.
    pub fn sign(&self, speed: Speed) -> Signed {
        let (line, policy) = (self.line().to_string(), Policy::default());
        let value = json::parse(line.as_bytes()).unwrap();
        let proposal = countersign_json::line::Case::from_value(&value).unwrap().proposal().unwrap();
        let verified = verify(proposal, &self.registry, &policy).expect("a response that countersign accepts");
        let unsigned = ready(self.nodes.prepare(&verified, chain_of(&self.source), &self.source.owner, speed, &policy));
        signed(unsigned.expect("prepared"))
    }

    pub fn send(&self, chain: &str, transaction: &BroadcastTransaction) {
        ready(self.nodes.broadcast(chain, &transaction.id, &transaction.payload)).expect("accepted");
        // Repeating the broadcast has no further effect.
        ready(self.nodes.broadcast(chain, &transaction.id, &transaction.payload)).expect("accepted again");
    }

    /// Prepares, signs and sends a redemption or a refund. Returns its id.
    pub fn recover(&self, recovery: &Recovery, terms: &Terms) -> String {
        let chain = chain_of(terms);
        let unsigned = ready(self.nodes.prepare_recovery(recovery, chain, &terms.owner, Speed::Normal, &Policy::default()));
        let [transaction] = signed(unsigned.expect("prepared")).broadcasts().try_into().unwrap();
        self.send(chain, &transaction);
        self.chains.mine(chain, 1);
        transaction.id
    }

    pub fn state(&self, record: &VerifiedRecord, is_source: bool) -> HtlcState {
        let terms = if is_source { &record.terms.source } else { &record.terms.destination };
        ready(self.nodes.htlc(terms)).unwrap().state().expect("a state").0
    }

    pub fn judge(&self, record: &VerifiedRecord) -> Result<Funded, Hold> {
        let quorum = ready(self.nodes.htlc(&record.terms.destination)).unwrap();
        let chain = self.registry.chains().find(|chain| chain.name() == chain_of(&self.destination)).unwrap();
        Funded::judge(&record.terms, &quorum, &chain.profile.finality, UnixTime::from_secs(self.chains.clock.seconds()))
    }

    pub fn balance(&self, terms: &Terms) -> u128 {
        self.chains.with(chain_of(terms), |engine| engine.balance(&terms.owner, &terms.asset)).unwrap()
    }

    pub fn events(&self, terms: &Terms) -> Vec<Event> {
        self.chains.with(chain_of(terms), |engine| engine.events())
    }

    /// Makes blocks until the solver's payment is evidence, which it is not before it is final.
    fn wait_until_final(&self, record: &VerifiedRecord) -> Funded {
        let chain = chain_of(&self.destination);
        let (depth, interval) = self.chains.with(chain, |engine| (engine.depth(), engine.interval()));
        for _ in 0..=depth {
            match self.judge(record) {
                Ok(funded) => return funded,
                Err(hold) => assert!(matches!(hold, Hold::NotFinal { .. }), "{hold}"),
            }
            self.chains.clock.advance(interval);
            self.chains.with(chain, |engine| engine.mine(1));
        }
        panic!("not final after {depth} blocks");
    }

    /// Runs a whole swap: the user pays, the solver pays, the user redeems, and the solver redeems.
    pub fn run(&self, is_gasless: bool) -> Done {
        let (source, destination) = (chain_of(&self.source), chain_of(&self.destination));
        let record = self.record();
        assert_eq!([true, false].map(|is_source| self.state(&record, is_source)), [HtlcState::Absent, HtlcState::Absent]);
        let signed = self.sign(Speed::Normal);
        let sent = signed.broadcasts();
        let id = match signed.gasless().filter(|_| is_gasless) {
            Some(submission) => {
                for approval in sent.iter().filter(|transaction| transaction.role != Role::Initiate) {
                    self.send(source, approval);
                }
                self.chains.mine(source, 1);
                let id = self.chains.with(source, |engine| engine.initiate(&self.source, &submission.signature)).expect("relayed");
                self.chains.mine(source, 1);
                id
            }
            None => {
                for transaction in &sent {
                    self.send(source, transaction);
                }
                self.chains.mine(source, 1);
                sent.last().expect("a transaction").id.clone()
            }
        };
        assert!(matches!(self.state(&record, true), HtlcState::Locked(_)), "{:?}", self.state(&record, true));
        let [event] = self.events(&self.source).try_into().unwrap();
        assert_eq!((bare(&event.transaction), &event.change), (bare(&id), &Change::Initiated { amount: self.source.amount }));

        assert_eq!(self.judge(&record), Err(Hold::NotFunded));
        self.chains.with(destination, |engine| engine.lock(&self.destination)).expect("the solver locks");
        self.chains.mine(destination, 1);
        assert!(matches!(self.judge(&record), Err(Hold::NotFinal { .. })), "{:?}", self.judge(&record));
        let funded = self.wait_until_final(&record);
        let HtlcState::Locked(locked) = self.state(&record, false) else { panic!("locked") };
        assert!(locked.covered);

        let before = self.balance(&self.destination);
        let leg = countersign::recover::Leg::Destination;
        let redemption = countersign::recover::redeem(&record.record, leg, &SECRET, &self.registry).unwrap();
        let id = self.recover(&redemption, &self.destination);
        assert_eq!(self.judge(&record), Err(Hold::Redeemed));
        let state = self.state(&record, false);
        assert!(
            matches!(&state, HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(seen) } if bare(seen) == bare(&id)),
            "{state:?}"
        );
        if !is_coin(&self.destination) {
            assert_eq!(self.balance(&self.destination), before + self.destination.amount);
        }
        let secret = self.events(&self.destination).into_iter().find_map(|event| match event.change {
            Change::Redeemed { secret } => Some(secret),
            _ => None,
        });
        self.chains.with(source, |engine| engine.redeem(&self.source, &secret.expect("shown"))).expect("the solver redeems");
        self.chains.mine(source, 1);
        assert!(matches!(self.state(&record, true), HtlcState::Redeemed { .. }));
        Done { locked, funded, redemption: id }
    }

    /// The solver locks other terms than the verified ones. The service claims that they are those of the order.
    pub fn holds_back_other_terms(&self) {
        let destination = chain_of(&self.destination);
        let terms = || self.destination.clone();
        let another = self.chains.with(destination, |engine| engine.address_of(&[9; 32]));
        let changed = [
            ("redeemer", Terms { owner: another, ..terms() }),
            ("timelock", Terms { timelock: terms().timelock - 1, ..terms() }),
            ("amount", Terms { amount: terms().amount - 1, ..terms() }),
        ];
        for (what, other) in changed {
            let mut record = self.record();
            record.terms.destination.swap_id = self.chains.with(destination, |engine| {
                engine.lock(&other).unwrap();
                engine.leg(&other).unwrap().swap_id
            });
            self.chains.mine(destination, 1 + self.chains.with(destination, |engine| engine.depth()));
            let hold = self.judge(&record).unwrap_err();
            assert!(matches!(&hold, Hold::Differs(difference) if difference.what == what), "{what}: {hold}");
        }
    }

    /// The user pays, the solver does nothing, and the user refunds the payment.
    pub fn refund(&self) {
        let source = chain_of(&self.source);
        let record = self.record();
        self.chains.with(source, |engine| engine.lock(&self.source)).expect("locked for the user");
        self.chains.mine(source, 1);
        let leg = countersign::recover::Leg::Source;
        let refund = || countersign::recover::refund(&record.record, leg, &self.registry).unwrap();
        let (early, policy) = (refund(), Policy::default());
        let early = ready(self.nodes.prepare_recovery(&early, source, &self.source.owner, Speed::Normal, &policy));
        assert_eq!(early.unwrap_err().code().name(), "simulation_reverted");
        assert!(matches!(self.state(&record, true), HtlcState::Locked(_)));
        assert!(self.chains.with(source, |engine| engine.refund(&self.source)).is_err(), "too early for the relayer too");
        self.chains.mine(source, self.source.timelock);
        let before = self.balance(&self.source);
        let id = self.recover(&refund(), &self.source);
        let state = self.state(&record, true);
        assert!(matches!(&state, HtlcState::Refunded { transaction: Some(seen) } if bare(seen) == bare(&id)), "{state:?}");
        if !is_coin(&self.source) {
            assert_eq!(self.balance(&self.source), before + self.source.amount);
        }
        assert!(self.events(&self.source).iter().any(|event| event.change == Change::Refunded));
    }
}

fn signed(mut unsigned: Unsigned) -> Signed {
    let key = Key::parse(unsigned.family(), &hex::encode(accounts::key(accounts::USER))).expect("a key");
    unsigned.sign(&key).expect("the user's key");
    unsigned.finish().expect("complete")
}

/// Posts JSON to a chain's interface.
pub fn post(engine: &mut dyn Engine, path: &str, body: &Value) -> Value {
    let reply = raw(engine, "POST", path, body.to_string().as_bytes());
    serde_json::from_slice(&reply.body).expect("JSON")
}

pub fn raw(engine: &mut dyn Engine, method: &str, path: &str, body: &[u8]) -> http::Reply {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    engine.answer(&http::Request { method: method.to_owned(), path: path.to_owned(), query: String::new(), headers, body: body.to_vec() })
}
