//! A step of the real driver. The world and a script answer all of its questions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_client::countersign::evm::alloy_consensus::{SignableTransaction as _, Transaction as _, TxEip1559, TxEnvelope};
use countersign_client::countersign::evm::alloy_eips::eip2718::{Decodable2718 as _, Encodable2718 as _};
use countersign_client::countersign::evm::alloy_primitives::{Signature, U256};
use countersign_client::countersign::reader::{Answer, FailureKind, Request as Asked, RpcError};
use countersign_client::countersign::{
    BroadcastTransaction, Code, OrderRecord, Policy, Refusal, Registry, Role, Verified, chains::UnixTime,
};
use countersign_client::driver::{
    ChainEndpoints, Chains, DriveError, Driver, Entry, FundingReply, OrderState, OrderStore, Owner, OwnerCode, OwnerError, Progress,
    Purpose, Settlement, SignedFunding, SignedUnder, StoreError, decide, decide_refund,
};
use countersign_client::{Api, Client, Flow, OrderId, Request, Response, Retry, Transport, TransportError, TransportErrorKind};
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::price::Price;
use crate::script::{Leg, Question, Script};
use crate::setup::{Kept, Setup, body, lock};
use crate::state::{ATTEMPTS, Broken, CLOCK, Move, SEARCHED, State};

const ENDPOINTS: [&str; 3] = ["a.example", "b.example", "c.example"];
/// The nonce of the first payment.
const NONCE: u64 = 42;

/// A command of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Advance,
    Refund,
}

/// The result of running a step, or part of it.
pub type Run<T> = (T, State, Script);

impl Setup {
    /// Lets the driver observe the order, and numbers the observation. A step depends on nothing else from its
    /// readings.
    pub fn observe(&self, state: &State, script: Script) -> Run<u32> {
        let step = Step::new(self, state, script);
        let order = self.order(&self.kept(state.kept));
        let observed = step.drive(|driver| driver.observe(&order).now_or_never().unwrap());
        let (state, script) = step.end();
        (self.number_observation(observed), state, script)
    }

    /// Lets the driver complete the step.
    pub fn proceed(&self, state: &State, observation: u32, command: Command, script: Script) -> Run<()> {
        let step = Step::new(self, state, script);
        let (order, observed) = (self.order(&self.kept(state.kept)), self.observation(observation));
        let decide = match command {
            Command::Advance => decide,
            Command::Refund => decide_refund,
        };
        // All answers come at once, so a step that waits must have been killed.
        let done = step.drive(|driver| driver.proceed(order, (*observed).as_ref().unwrap(), decide).now_or_never());
        self.ended(step, command, done)
    }

    /// Lets the driver take a whole step, as in a wallet.
    pub fn step(&self, state: &State, command: Command, script: Script) -> Run<()> {
        let step = Step::new(self, state, script);
        let id = self.swap.id();
        let done = step.drive(|driver| match command {
            Command::Advance => driver.advance(id).now_or_never(),
            Command::Refund => driver.refund(id).now_or_never(),
        });
        self.ended(step, command, done)
    }

    fn ended(&self, step: Step<'_>, command: Command, done: Option<Result<Progress, DriveError>>) -> Run<()> {
        let kept = self.number(lock(&step.kept).clone());
        let (mut next, script) = step.end();
        let is_clean = script.bad_luck() == 0 && done.is_some();
        let has_acted = matches!(&done, Some(Ok(progress)) if progress.acted);
        next.kept = kept;
        next.bad_luck += script.bad_luck();
        // The last attempt of a moment shows whether anything is left to do.
        next.rested = is_clean && command == Command::Advance && !has_acted && next.attempt == ATTEMPTS;
        if !has_acted {
            next.attempt = (next.attempt + 1).min(ATTEMPTS);
        }
        next.ended = self.outcome(kept).is_some();
        ((), next, script)
    }
}

/// A step in progress.
struct Step<'s> {
    setup: &'s Setup,
    state: Mutex<State>,
    script: Mutex<Script>,
    kept: Mutex<Kept>,
    /// What the lying endpoint shows of each side in the current reading.
    lies: Mutex<[u8; 2]>,
    /// Whether another process has had its turn.
    is_met: Mutex<bool>,
}

type Driving<'d, 's> = Driver<&'d Step<'s>, &'d Step<'s>, &'d Step<'s>, &'d Step<'s>>;

impl<'s> Step<'s> {
    fn new(setup: &'s Setup, state: &State, script: Script) -> Self {
        let kept = Mutex::new((*setup.kept(state.kept)).clone());
        let begun = State { rested: false, ..*state };
        Self { setup, state: Mutex::new(begun), script: Mutex::new(script), kept, lies: Mutex::default(), is_met: Mutex::default() }
    }

    fn drive<T>(&self, run: impl FnOnce(&Driving<'_, 's>) -> T) -> T {
        let api = Api::new("https://service.example", None).unwrap();
        let client = Client::new(api, self).with_retry(Retry { attempts: 1, ..Retry::default() });
        let flow = Flow::new(client, Arc::clone(&self.setup.registry), Policy::default());
        let mut driver = Driver::new(flow, self, self, self);
        if self.setup.config.has_relayer {
            driver = driver.allow_relayer();
        }
        run(&driver)
    }

    fn end(self) -> (State, Script) {
        (*lock(&self.state), lock(&self.script).clone())
    }

    /// Lets another process take steps with honest answers before this one continues.
    fn meet(&self) {
        if std::mem::replace(&mut *lock(&self.is_met), true) {
            return;
        }
        let mut state = *lock(&self.state);
        for _ in 0..self.choose(Question::Meet) {
            state.kept = self.setup.number(lock(&self.kept).clone());
            let begun = state;
            let inner = Step { is_met: Mutex::new(true), ..Step::new(self.setup, &begun, Script::default()) };
            let id = self.setup.swap.id();
            let done = inner.drive(|driver| driver.advance(id).now_or_never());
            *lock(&self.kept) = lock(&inner.kept).clone();
            drop(done);
            state = inner.end().0;
        }
        *lock(&self.state) = state;
    }

    fn choose(&self, question: Question) -> u8 {
        lock(&self.script).choose(question)
    }

    fn leg(chain: &str) -> Leg {
        if chain == "base" { Leg::Source } else { Leg::Destination }
    }

    /// Lets an event happen on a chain right before it is read.
    fn happen(&self, leg: Leg) {
        let mut state = lock(&self.state);
        let is_over = leg == Leg::Destination && state.is_over(leg) && state.heads[1] == state.now;
        let taken = match (is_over, state.can_be_replaced(leg)) {
            (false, false) => return,
            (true, false) => lock(&self.script).choose_of(Question::Before(leg), 2),
            (_, true) => lock(&self.script).choose_of(Question::Before(leg), 3),
        };
        *state = match taken {
            1 if is_over => state.after(Move::SolverRefunds),
            2 => state.after(Move::Replaced(leg)),
            _ => return,
        };
    }

    /// Writes to the store, unless the write fails.
    async fn write(&self, write: impl FnOnce(&mut Kept)) -> Result<(), StoreError> {
        let taken = self.choose(Question::Write);
        if matches!(taken, 0 | 3) {
            write(&mut lock(&self.kept));
        }
        match taken {
            0 => Ok(()),
            1 => Err(StoreError::Failed("the disk is full".to_owned())),
            _ => std::future::pending().await,
        }
    }

    /// Accepts a transaction at an endpoint.
    fn take(&self, endpoint: &str, payload: &str) -> Answer {
        let bytes = hex::decode(payload).unwrap();
        let envelope = TxEnvelope::decode_2718(&mut bytes.as_slice()).unwrap();
        let role: Role = serde_json::from_slice(envelope.input()).unwrap();
        let is_liar = endpoint == ENDPOINTS[self.setup.config.liar];
        let taken = if is_liar { self.choose(Question::Send) } else { 0 };
        let mut state = lock(&self.state);
        // Anyone who receives a redemption can read the secret in it, whatever they do with it.
        if role == Role::Redeem {
            state.leak();
        }
        let accepted = || Answer::result(json!(envelope.tx_hash()).to_string().into_bytes());
        let too_low = || Answer::Error(RpcError::new(-32_000, "nonce too low", None));
        let others = u64::from(state.taken[usize::from(role == Role::Redeem)] > 0) + u64::from(self.setup.config.has_other);
        match taken {
            0 => {}
            1 => return accepted(),
            2 => return too_low(),
            _ => return Answer::Failed(FailureKind::Status(503).into()),
        }
        match role {
            Role::Redeem | Role::Refund => match Price::is_mined(envelope.nonce(), others, envelope.max_priority_fee_per_gas().unwrap()) {
                None => return too_low(),
                Some(is_mined) if role == Role::Redeem => state.redemption |= is_mined,
                Some(is_mined) => state.refund |= is_mined,
            },
            _ => {
                state.check_payment();
                let one = u8::try_from(envelope.nonce() - NONCE).unwrap();
                if state.dead & (1 << one) != 0 {
                    return too_low();
                }
                state.on_the_way |= 1 << one;
            }
        }
        accepted()
    }
}

/// Creates a transaction whose calldata states its role.
fn transaction(chain: &str, role: Role, price: Price, time: u64) -> BroadcastTransaction {
    let (input, chain_id) = (serde_json::to_vec(&role).unwrap(), if chain == "base" { 8_453 } else { 42_161 });
    let transaction = TxEip1559 {
        chain_id,
        nonce: price.nonce,
        gas_limit: time,
        max_fee_per_gas: price.cap,
        max_priority_fee_per_gas: price.tip,
        input: input.into(),
        ..TxEip1559::default()
    };
    // The value 1 is a valid coordinate of a point, so a sender can be recovered.
    let envelope = TxEnvelope::from(transaction.into_signed(Signature::new(U256::from(1), U256::from(1), false)));
    let (id, payload) = (envelope.tx_hash().to_string(), hex::encode(envelope.encoded_2718()));
    BroadcastTransaction { chain: chain.to_owned(), role, id, payload, spends: Vec::new() }
}

impl Chains for &Step<'_> {
    fn endpoints(&self, chain: &str) -> Option<ChainEndpoints> {
        let is_blind = self.setup.config.is_blind && Step::leg(chain) == Leg::Source;
        (!is_blind).then(|| ChainEndpoints::new(ENDPOINTS, 2))
    }

    async fn ask(&self, chain: &str, endpoint: &str, requests: &[Asked]) -> Vec<Answer> {
        let leg = Step::leg(chain);
        let method = |request: &Asked| match request {
            Asked::JsonRpc { method, params } => (*method, params.to_string()),
            other => panic!("{other:?}"),
        };
        let is_begun = requests.iter().map(method).any(|(method, params)| method == "eth_getBlockByNumber" && params.contains("latest"));
        let is_liar = endpoint == ENDPOINTS[self.setup.config.liar];
        if is_begun && endpoint == ENDPOINTS[0] {
            self.happen(leg);
        }
        if is_begun && is_liar {
            let lie = self.choose(Question::Reading(leg));
            lock(&self.lies)[leg.index()] = lie;
        }
        let lie = if is_liar { lock(&self.lies)[leg.index()] } else { 0 };
        if lie == 1 {
            return vec![Answer::Failed(FailureKind::Status(503).into()); requests.len()];
        }
        let shown = self.setup.shown(&lock(&self.state), leg, lie);
        let answer = |request: &Asked| match method(request) {
            ("eth_sendRawTransaction", params) => self.take(endpoint, params.trim_matches(['[', ']', '"']).trim_start_matches("0x")),
            ("eth_getTransactionByHash", _) => Answer::result(*b"null"),
            ("eth_getTransactionCount", params) => {
                let state = lock(&self.state);
                let is_newer = state.is_taken_anew(leg) && !shown.is_of_newest(&params);
                let used = u64::from(state.used()).saturating_sub(is_newer.into());
                let next = NONCE + if lie == 2 { 100 } else { used };
                Answer::result(json!(format!("{next:#x}")).to_string().into_bytes())
            }
            _ => shown.answer(request),
        };
        requests.iter().map(answer).collect()
    }
}

impl Transport for &Step<'_> {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let lost = || Err(TransportError::new(TransportErrorKind::Timeout, "no answer"));
        if request.method.name() == "GET" {
            let count = Question::Record.count() - usize::from(!self.setup.config.has_other);
            return match lock(&self.script).choose_of(Question::Record, count) {
                1 => lost(),
                taken => Ok(Response::new(200, &*self.setup.record(&lock(&self.state), taken))),
            };
        }
        let taken = self.choose(Question::Patch);
        let mut state = lock(&self.state);
        match request.url.query().unwrap() {
            "action=redeem" => {
                if !self.setup.config.has_relayer && !state.secret {
                    state.broken.get_or_insert(Broken::Leak);
                }
                state.leak();
            }
            "action=initiate" => {
                state.check_payment();
                state.gasless = true;
            }
            _ if taken == 0 || taken == 2 => state.refund = true,
            _ => {}
        }
        match taken {
            0 | 1 => Ok(Response::new(200, body(&json!("0xtransaction")))),
            2 => Ok(Response::new(500, "")),
            _ => lost(),
        }
    }

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> UnixTime {
        let state = lock(&self.state);
        UnixTime::from_secs(self.setup.epoch + state.time())
            .saturating_add(Duration::from_secs(if state.clock > 0 { CLOCK } else { 0 }))
            .saturating_sub(Duration::from_secs(if state.clock < 0 { CLOCK } else { 0 }))
    }
}

/// The store, which holds a single order.
impl OrderStore for &Step<'_> {
    type Guard = ();

    async fn create(&self, _: &OrderState) -> Result<(), StoreError> {
        Err(StoreError::Failed("there is one order".to_owned()))
    }

    async fn lock(&self, _: &OrderId) -> Result<(), StoreError> {
        self.meet();
        Ok(())
    }

    async fn load(&self, _: &OrderId) -> Result<OrderState, StoreError> {
        Ok(self.setup.order(&lock(&self.kept)))
    }

    async fn keep_record(&self, (): &(), _: &[u8]) -> Result<(), StoreError> {
        self.write(|kept| kept.has_record = true).await
    }

    async fn keep_pins(&self, (): &(), _: &SignedUnder) -> Result<(), StoreError> {
        Ok(())
    }

    async fn append(&self, (): &(), entry: &Entry) -> Result<(), StoreError> {
        self.write(|kept| kept.journal.push(entry.clone())).await
    }

    async fn replace_journal(&self, (): &(), entries: &[Entry]) -> Result<(), StoreError> {
        lock(&self.kept).journal = entries.to_vec();
        Ok(())
    }

    async fn orders(&self) -> Result<Vec<OrderId>, StoreError> {
        Ok(vec![self.setup.swap.id().clone()])
    }
}

impl Owner for &Step<'_> {
    async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        match self.choose(Question::Fund) {
            0 => {}
            1 => return Ok(FundingReply::NotNow),
            _ => return Err(OwnerError::Failed { code: OwnerCode::new("declined"), message: "the owner declined".to_owned() }),
        }
        let mut state = lock(&self.state);
        let pays = order.terms().record.map(|record| record.destination_swap.redeemer.clone());
        let is_agreed = pays.as_deref() == self.setup.fixture.order["destination_swap"]["redeemer"].as_str();
        if state.secret || !is_agreed || state.is_late() || state.is_taken_back() {
            state.broken.get_or_insert(Broken::Signed);
        }
        let nonce = state.payments;
        state.payments = (nonce + 1).min(7);
        Ok(FundingReply::Signed(if self.setup.config.is_gasless {
            SignedFunding { transactions: Vec::new(), gasless: Some(format!("0x{nonce:02x}")) }
        } else {
            SignedFunding {
                transactions: vec![transaction("base", Role::Initiate, Price { nonce: NONCE + u64::from(nonce), cap: 1, tip: 1 }, 0)],
                gasless: None,
            }
        }))
    }

    async fn check_release(&self, _: &OrderRecord, _: &Registry) -> Result<(), OwnerError> {
        match self.choose(Question::Payable) {
            0 => Ok(()),
            _ => Err(Refusal::new(Code::ReceiverNotPayable, "/destination").into()),
        }
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        // Once the secret is out, the owner does not hesitate.
        let is_out = lock(&self.kept).may_be_out();
        let is_last = {
            let state = lock(&self.state);
            state.secret || is_out || usize::from(state.now) + 1 >= SEARCHED.into()
        };
        let taken = lock(&self.script).choose_of(Question::Settle, if is_last { 3 } else { 5 });
        if taken > 2 {
            let mut state = lock(&self.state);
            *state = state.after(Move::Later { standing: None });
        }
        match taken {
            0 | 3 => {}
            1 | 4 => return Ok(None),
            _ => return Err(Refusal::new(Code::InsufficientFunds, "/value").into()),
        }
        let role = if task.purpose == Purpose::Redemption { Role::Redeem } else { Role::Refund };
        let price = self.setup.prices[usize::from(self.choose(Question::Price))];
        if !price.is_affordable() {
            return Err(Refusal::new(Code::InsufficientFunds, "/value").into());
        }
        let (chain, state) = (&task.leg.of(task.record).chain, *lock(&self.state));
        let price = Price { nonce: price.nonce + u64::from(state.taken[Step::leg(chain).index()] > 0), ..price };
        Ok(Some(vec![transaction(chain, role, price, state.time())]))
    }

    fn can_redeem(&self, _: &str) -> bool {
        true
    }

    fn signs_here(&self, _: &str) -> bool {
        true
    }
}
