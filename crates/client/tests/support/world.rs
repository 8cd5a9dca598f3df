//! A simulated service, two chains, a solver and an owner in virtual time: honest, faulty or malicious.

use countersign_client::countersign::UnixTime;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_client::countersign::evm::alloy_primitives::B256;
use countersign_client::countersign::json::{self, Cursor};
use countersign_client::countersign::{
    BroadcastTransaction, Code, HtlcTerms, Leg, OrderRecord, Policy, Proposal, Refusal, Registry, Role, Verified, VerifiedTerms,
    verify_record,
};
use countersign_client::driver::{Driver, FundingReply, MemoryStore, OrderStore, Owner, OwnerError, Purpose, Settlement, SignedFunding};
use countersign_client::{
    Api, Client, Flow, OrderId, Pace, Request, Response, Retry, Secret, Transport, TransportError, TransportErrorKind,
};
use countersign_testkit::chain::view::{End, Tempo};
use serde_json::{Value, json};

use super::chains::{Sent, transaction};
use super::{Fixture, state_htlc};

/// Seconds until the solver pays after the owner, and until it redeems after the secret is public.
pub const SOLVER: u64 = 30;
/// Seconds until a transaction is in a block.
pub const BLOCK: u64 = 4;
/// Seconds until that block is final.
pub const FINAL: u64 = 12;

/// What one endpoint of three does. The other two are honest, and two must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Third {
    /// It accepts connections but never answers.
    Hangs,
    /// It shows every HTLC as not funded, and keeps the transactions that it accepts.
    Denies,
    /// It shows blocks of two hours ago.
    IsOld,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malice {
    /// What the third endpoint of each chain does; `None` if each chain has one endpoint, which is honest.
    pub third: Option<Third>,
    /// The service accepts the gasless payment and submits nothing.
    pub submits_nothing: bool,
    /// The service says that the destination is funded, and nothing is on chain.
    pub only_says_funded: bool,
    /// The service takes the secret and relays nothing.
    pub keeps_the_secret: bool,
    /// Later records have another destination amount.
    pub changes_the_record: bool,
    /// The solver refunds its payment between the driver's two readings.
    pub refunds_at_the_last_moment: bool,
    /// The solver never pays.
    pub never_pays: bool,
    /// The solver pays one unit less.
    pub pays_less: bool,
    /// The service acts on every PATCH, and its reply is lost.
    pub loses_replies: bool,
    /// The record's deadline is in the past.
    pub is_late: bool,
    /// The owner takes six hours to sign a redemption.
    pub owner_is_slow: bool,
    /// From the payment on, the source chain's endpoint accepts connections but never answers.
    pub source_hangs: bool,
    /// The first four attempts to broadcast fail, and a transaction is accepted for a minute only.
    pub transactions_expire: bool,
    /// Redemptions and refunds are accepted but never mined, unless they replace one that was sent.
    pub fees_rise: bool,
    /// From the payment on, the service accepts connections but never answers.
    pub service_hangs: bool,
    /// Every reply of a node takes three seconds.
    pub nodes_are_slow: bool,
    /// Every redemption is rejected.
    pub rejects_redemptions: bool,
    /// The owner has no coin for the fee of a refund.
    pub cannot_refund: bool,
    /// The owner has no coin for the fee of a redemption.
    pub cannot_pay_to_redeem: bool,
    /// The token has frozen the owner's receiver.
    pub freezes_the_receiver: bool,
    /// From the payment on, the record has an affiliate fee.
    pub adds_a_fee: bool,
    /// The owner's wallet raises the payment by itself: it is in a block once a node is asked for the sender's nonce, under another id.
    pub raises_in_the_wallet: bool,
    /// How far the newest blocks are ahead of the clock, in seconds; negative if they are old.
    pub head_offset: i64,
    /// The record's deadline, in seconds from the beginning.
    pub deadline_in: Option<u64>,
}

impl Malice {
    /// Everybody is honest.
    pub const NONE: Self = Self {
        third: None,
        submits_nothing: false,
        only_says_funded: false,
        keeps_the_secret: false,
        changes_the_record: false,
        refunds_at_the_last_moment: false,
        never_pays: false,
        pays_less: false,
        loses_replies: false,
        is_late: false,
        owner_is_slow: false,
        source_hangs: false,
        transactions_expire: false,
        fees_rise: false,
        service_hangs: false,
        nodes_are_slow: false,
        rejects_redemptions: false,
        cannot_refund: false,
        cannot_pay_to_redeem: false,
        freezes_the_receiver: false,
        adds_a_fee: false,
        raises_in_the_wallet: false,
        head_offset: 0,
        deadline_in: None,
    };
}

/// The state of one order on the chains and at the service. Times are those of the virtual clock.
pub struct Order {
    fixture: Fixture,
    terms: VerifiedTerms,
    pub secret: [u8; 32],
    pub funded_at: Option<u64>,
    /// The different fundings that were seen. With more than one, the owner has paid twice.
    fundings: BTreeSet<String>,
    pub redeemed_at: Option<u64>,
    /// The transaction of the owner's redemption.
    pub redeemed_by: Option<B256>,
    pub refunded_at: Option<u64>,
    pub destination_refunded: bool,
}

impl Order {
    /// Returns what the HTLC of a leg must hold.
    pub const fn terms(&self, leg: Leg) -> &HtlcTerms {
        self.terms.leg(leg)
    }
}

/// Everything outside the driver.
pub struct World {
    start: tokio::time::Instant,
    pub epoch: u64,
    pub orders: Mutex<BTreeMap<String, Order>>,
    dice: Mutex<u64>,
    /// How many operations of a thousand fail, in any way.
    pub faults: u64,
    pub malice: Malice,
    /// The number of operations until the process dies.
    fuse: Mutex<Option<u32>>,
    pub died: tokio::sync::Notify,
    cannot_redeem: AtomicBool,
    /// The number of drivers of this world.
    drivers: AtomicU64,
    pub attempts: AtomicU64,
    requests: AtomicU64,
    /// Every secret that reached the service.
    pub leaked: Mutex<Vec<[u8; 32]>>,
    pub connected: bool,
    pub registry: Arc<Registry>,
    /// Both chains have a block every two seconds.
    pub tempo: Tempo,
}

impl World {
    pub fn new(faults: u64, malice: Malice) -> Arc<Self> {
        let registry = Registry::from_json(super::registry_text().as_bytes()).unwrap();
        // Shortly after the fixture's order was created.
        let epoch = Fixture::load("evm-record-evm-v2").created() + 10;
        Arc::new(Self {
            start: tokio::time::Instant::now(),
            epoch,
            tempo: Tempo::new(epoch, 2_000, None, None, 1),
            orders: Mutex::default(),
            dice: Mutex::new(0x9e37_79b9_7f4a_7c15),
            faults,
            malice,
            fuse: Mutex::new(None),
            died: tokio::sync::Notify::new(),
            cannot_redeem: AtomicBool::new(false),
            drivers: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            leaked: Mutex::default(),
            connected: true,
            registry: Arc::new(registry),
        })
    }

    pub fn time(&self) -> u64 {
        self.epoch + self.start.elapsed().as_secs()
    }

    pub fn seed(&self, seed: u64) {
        *self.dice.lock().unwrap() ^= seed.wrapping_mul(0xd134_2543_de82_ef95) | 1;
    }

    /// Returns a pseudorandom number below a bound, by xorshift.
    pub fn roll(&self, below: u64) -> u64 {
        let mut dice = self.dice.lock().unwrap();
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        *dice % below
    }

    /// Returns whether any order is paid.
    pub fn is_paid(&self) -> bool {
        self.orders.lock().unwrap().values().any(|order| order.funded_at.is_some())
    }

    /// Returns the number of requests that the service was sent.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Sets whether the owner can redeem.
    pub fn cannot_redeem(&self, cannot: bool) {
        self.cannot_redeem.store(cannot, Ordering::SeqCst);
    }

    /// Lets the process die after this number of operations.
    pub fn light(&self, operations: u32) {
        *self.fuse.lock().unwrap() = Some(operations);
    }

    /// Counts one operation outside the process, which may be the last.
    pub async fn operation(&self) {
        let burnt = match &mut *self.fuse.lock().unwrap() {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        if burnt {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// Adds an order whose secret the owner knows.
    pub fn order(&self, number: u64) -> (Fixture, Secret) {
        let secret = Secret::parse(&format!("{:064x}", 0xabcd_ef01_2345_u64 + number)).unwrap();
        let mut fixture = Fixture::with_secret(&secret);
        let id = format!("{number:064x}");
        let old = fixture.order_id().to_owned();
        let swap = |value: &Value| serde_json::from_str(&value.to_string().replace(&old, &id)).unwrap();
        (fixture.order, fixture.response) = (swap(&fixture.order), swap(&fixture.response));
        if self.malice.is_late {
            fixture.order["deadline"] = json!(self.epoch - 60);
        }
        if let Some(seconds) = self.malice.deadline_in {
            fixture.order["deadline"] = json!(self.epoch + seconds);
        }
        let terms = {
            let request = fixture.create();
            let (response, record) = (fixture.response.to_string(), json!({"status": "Ok", "result": fixture.order}).to_string());
            let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
            verify_record(proposal, &self.registry, &Policy::default()).unwrap().terms
        };
        let order = Order {
            terms,
            fixture: fixture.clone(),
            secret: *secret.expose(),
            funded_at: None,
            fundings: BTreeSet::new(),
            redeemed_at: None,
            refunded_at: None,
            redeemed_by: None,
            destination_refunded: false,
        };
        self.orders.lock().unwrap().insert(id.clone(), order);
        (fixture, secret)
    }

    /// Returns the driver of one process.
    pub fn driver<S: OrderStore>(self: &Arc<Self>, store: S) -> Driver<Arc<Self>, Arc<Self>, S, Arc<Self>> {
        self.driver_with(store, &self.registry, Policy::default())
    }

    /// Returns the driver of a process with other pins or another policy.
    pub fn driver_with<S: OrderStore>(
        self: &Arc<Self>,
        store: S,
        registry: &Arc<Registry>,
        policy: Policy,
    ) -> Driver<Arc<Self>, Arc<Self>, S, Arc<Self>> {
        self.drivers.fetch_add(1, Ordering::SeqCst);
        let api = Api::new("https://service.example", None).unwrap();
        let client = Client::new(api, Arc::clone(self)).with_retry(Retry { attempts: 1, ..Retry::default() });
        let flow = Flow::new(client, Arc::clone(registry), policy);
        let pace = Pace { quickest: Duration::from_secs(4), slowest: Duration::from_secs(20) };
        Driver::new(flow, Arc::clone(self), store, Arc::clone(self)).with_pace(pace)
    }

    /// Returns how an order ended: the number of different fundings, whether the owner was paid, and whether the service has the secret
    /// although the owner was not paid.
    pub fn end(&self, id: &OrderId) -> (usize, bool, bool) {
        let orders = self.orders.lock().unwrap();
        let order = &orders[id.as_str()];
        let paid = order.redeemed_at.is_some() && !order.destination_refunded;
        let stolen = self.leaked.lock().unwrap().contains(&order.secret) && !paid;
        (order.fundings.len(), paid, stolen)
    }

    pub fn is_refunded(&self, id: &OrderId) -> bool {
        self.orders.lock().unwrap()[id.as_str()].refunded_at.is_some()
    }

    pub fn is_destination_funded(&self, order: &Order, now: u64) -> bool {
        !self.malice.never_pays && !self.malice.only_says_funded && order.funded_at.is_some_and(|at| now >= at + SOLVER)
    }

    fn record(&self, order: &Order) -> Value {
        let now = self.time();
        let mut record = order.fixture.order.clone();
        for (leg, name) in [(Leg::Source, "source_swap"), (Leg::Destination, "destination_swap")] {
            let mut htlc = self.htlc(leg, order, now);
            if leg == Leg::Destination {
                // The service hears of no refund of the solver's.
                htlc.ended = htlc.ended.filter(|(end, _)| *end != End::Refunded);
                let stated = order.funded_at.filter(|_| self.malice.only_says_funded).map(|at| at + SOLVER);
                htlc.funded = htlc.funded.or(stated);
            }
            state_htlc(&mut record, name, htlc, Some(&order.secret));
        }
        if self.malice.adds_a_fee && order.funded_at.is_some() {
            record["affiliate_fees"] =
                json!([{"asset": "arbitrum:usdc", "address": "0x75196C3fEa443e4f086cF9f30D51CF375704f166", "fee": 30}]);
        }
        if self.malice.changes_the_record && order.funded_at.is_some() {
            record["affiliate_fees"] = json!([]);
            record["destination_swap"]["redeemer"] = json!("0x75196C3fEa443e4f086cF9f30D51CF375704f166");
        }
        record
    }

    fn fund(&self, id: &str, funding: &str) {
        let mut orders = self.orders.lock().unwrap();
        let order = orders.get_mut(id).unwrap();
        order.fundings.insert(funding.to_owned());
        if self.malice.submits_nothing {
            return;
        }
        let now = self.time();
        order.funded_at.get_or_insert(now);
    }

    fn reply(&self, request: &Request) -> Response {
        let body = request.body.as_ref().map(|body| String::from_utf8(body.to_vec()).unwrap()).unwrap_or_default();
        let whole = |status, body: String| Response::new(status, body);
        let ok = |result: &Value| whole(200, format!(r#"{{"status":"Ok","result":{result}}}"#));
        let path = request.url.path().to_owned();
        match request.method.name() {
            "POST" => {
                let asked: Value = serde_json::from_str(&body).unwrap();
                let orders = self.orders.lock().unwrap();
                let order = orders.values().find(|order| order.fixture.order["source_swap"]["secret_hash"] == asked["secret_hash"]);
                whole(200, order.unwrap().fixture.response.to_string())
            }
            "GET" => {
                let id = path.rsplit('/').next().unwrap();
                ok(&self.record(&self.orders.lock().unwrap()[id]))
            }
            _ => {
                let id = path.rsplit('/').next().unwrap();
                match request.url.query().unwrap() {
                    "action=initiate" => self.fund(id, &body),
                    "action=redeem" => {
                        let now = self.time();
                        let mut orders = self.orders.lock().unwrap();
                        let order = orders.get_mut(id).unwrap();
                        self.leaked.lock().unwrap().push(order.secret);
                        if !self.malice.keeps_the_secret && self.is_destination_funded(order, now) {
                            order.redeemed_at.get_or_insert(now);
                        }
                    }
                    "action=refund" => {
                        let now = self.time();
                        self.orders.lock().unwrap().get_mut(id).unwrap().refunded_at.get_or_insert(now);
                    }
                    other => panic!("{other}"),
                }
                ok(&json!("0xtransaction"))
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub type TestDriver = Driver<Arc<World>, Arc<World>, MemoryStore, Arc<World>>;

impl Transport for World {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        self.operation().await;
        self.requests.fetch_add(1, Ordering::SeqCst);
        if self.malice.service_hangs && self.is_paid() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(20 + self.roll(200))).await;
        let fault = self.roll(1_000) < self.faults;
        let whole = |status, body: &str| Ok(Response::new(status, body));
        let kind = if fault { self.roll(10) } else { 99 };
        match kind {
            0 => return Err(TransportError::new(TransportErrorKind::Connect, "refused")),
            1 => return Err(TransportError::new(TransportErrorKind::Timeout, "no answer")),
            2 => return whole(500, "<html>oops</html>"),
            3 => return whole(502, "<html>bad gateway</html>"),
            4 => return whole(408, ""),
            5 => return whole(302, ""),
            6 => return whole(504, "timeout"),
            _ => {}
        }
        let reply = self.reply(request);
        self.operation().await;
        match kind {
            7 => Err(TransportError::new(TransportErrorKind::Interrupted, "reset")),
            8 => whole(200, r#"{"status":"Ok","resu"#),
            9 => whole(200, "<html>maintenance</html>"),
            _ if self.malice.loses_replies && request.method.name() == "PATCH" => {
                Err(TransportError::new(TransportErrorKind::Interrupted, "lost"))
            }
            _ => Ok(reply),
        }
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.time())
    }
}

/// The owner signs with the fixture's key.
impl Owner for World {
    async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        self.operation().await;
        let wallet = self.orders.lock().unwrap()[order.order_id()].fixture.wallet.clone();
        let text = wallet.to_string();
        let wallet = json::parse(text.as_bytes()).unwrap();
        let mut unsigned = countersign_json::prepare(order, Cursor::root(&wallet, "/wallet"))?;
        let value: Value = serde_json::from_str(&text).unwrap();
        countersign_json::sign(&mut unsigned, value["secret_key"].as_str().unwrap())?;
        let mut funding = SignedFunding::from_signed(&unsigned.finish().unwrap());
        // A second signature differs from the first: if both were sent, the order would be paid twice.
        funding.gasless = funding.gasless.map(|signature| format!("{signature}{:02x}", self.roll(256)));
        Ok(FundingReply::Signed(funding))
    }

    async fn check_release(&self, record: &OrderRecord) -> Result<(), OwnerError> {
        self.operation().await;
        let is_out = {
            let orders = self.orders.lock().unwrap();
            let order = &orders[record.order_id.as_str()];
            order.redeemed_at.is_some() || self.leaked.lock().unwrap().contains(&order.secret)
        };
        // Another process may have sent it a moment ago, which this one does not know.
        let is_alone = self.drivers.load(Ordering::SeqCst) < 2;
        assert!(!is_out || !is_alone, "nothing is asked once the secret is out");
        if self.malice.freezes_the_receiver {
            return Err(Refusal::new(Code::ReceiverNotPayable, "/destination").into());
        }
        Ok(())
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        self.operation().await;
        assert!(!self.malice.freezes_the_receiver || task.purpose == Purpose::Refund, "a redemption that would not pay is not signed");
        if self.malice.owner_is_slow && task.purpose == Purpose::Redemption {
            tokio::time::sleep(Duration::from_secs(6 * 3_600)).await;
        }
        let cannot_pay = if task.purpose == Purpose::Refund { self.malice.cannot_refund } else { self.malice.cannot_pay_to_redeem };
        if cannot_pay {
            return Err(Refusal::new(Code::InsufficientFunds, "/value").into());
        }
        let role = if task.purpose == Purpose::Redemption { Role::Redeem } else { Role::Refund };
        assert_eq!(task.secret.is_some(), task.purpose == Purpose::Redemption);
        let chain = task.leg.of(task.record).chain.clone();
        let id = task.record.order_id.clone();
        let sent = Sent { role, order: id, signed_at: self.time(), is_replacement: !task.replaces.is_empty() };
        Ok(Some(vec![transaction(&chain, &sent)]))
    }

    fn can_redeem(&self, _: &str) -> bool {
        self.connected && !self.cannot_redeem.load(Ordering::SeqCst)
    }

    fn signs_here(&self, _: &str) -> bool {
        true
    }
}
