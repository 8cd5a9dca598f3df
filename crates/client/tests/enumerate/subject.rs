//! Builds what `decide` reads: stored orders, views of legs and of the record, evidence. Each shape is built in one place.

use countersign_client::countersign::chains::UnixTime;
use countersign_client::countersign::reader::{HtlcQuorum, HtlcReader, Known};
use countersign_client::countersign::{
    self, BroadcastTransaction, Code, Funded, Policy, Proposal, Refusal, Registry, Role, VerifiedRecord,
    chains::{Finality, FinalityRule},
    evidence::{Hold, HtlcState, LockedHtlc},
};
use countersign_client::driver::{
    Capabilities, Delivery, Entry, Event, LegObservation, OrderObservation, OrderState, Purpose, RecordObservation, Release, SecretRoute,
};
use countersign_client::{CreatedOrder, Secret};
use countersign_testkit::chain::evm::Evm;
use std::time::Duration;

use crate::support::{Fixture, Step};

pub const SECRET: &str = "8cb8a02d5592b0b1556978e1d778b7eff2c23519b8aa65970fa6ac3daa33fb40";
/// The time of every entry in a journal, unless a test sets another.
pub const WRITTEN: u64 = 900;
/// When the payment must be confirmed.
pub const DEADLINE: u64 = 10_000;
/// How long the source chain needs to confirm it.
pub const CONFIRMATION: u64 = 60;
/// How long after the deadline a payment from another wallet is still expected.
pub const GIVEN_UP: u64 = 24 * 3_600;

/// The order whose views are enumerated.
pub struct Subject {
    pub record: VerifiedRecord,
    fixture: Fixture,
}

impl Subject {
    pub fn new() -> Self {
        let fixture = Fixture::with_secret(&Secret::parse(SECRET).unwrap());
        let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
        let (request, response, body) = (fixture.create(), fixture.response.to_string(), fixture.at(Step::Created).to_string());
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(body.as_bytes());
        let record = countersign::verify_record(proposal, &registry, &Policy::default()).unwrap();
        Self { record, fixture }
    }

    /// Returns the stored order with an empty journal. `names_own_key` says that only the owner's key can redeem.
    pub fn kept(&self, has_secret: bool, names_own_key: bool) -> OrderState {
        let mut request = self.fixture.create();
        if names_own_key {
            request.destination.delegate = Some("aa".repeat(32));
        }
        let swap = CreatedOrder::new(request, self.fixture.response.to_string()).unwrap();
        OrderState::new(swap, has_secret.then(|| Secret::parse(SECRET).unwrap()))
    }

    /// Returns an observation in which the chains show nothing yet, long before the deadline and after every wait.
    pub fn observed(&self, record: RecordObservation) -> OrderObservation {
        let mut observed = OrderObservation::unknown(UnixTime::from_secs(WRITTEN + 1_000), record);
        observed.deadline = Some(UnixTime::from_secs(DEADLINE));
        observed.confirmation_time = Duration::from_secs(CONFIRMATION);
        observed.source = seen(HtlcState::Absent, false);
        observed.destination = seen(HtlcState::Absent, false);
        observed.release = Err(Hold::NotFunded);
        observed
    }

    pub fn verified(&self) -> RecordObservation {
        RecordObservation::Verified(Box::new(self.record.clone()))
    }

    pub const fn timelock(&self) -> u64 {
        self.record.terms.destination.timelock
    }

    /// Returns a locked HTLC of which two endpoints have seen this much of the timelock pass.
    pub fn locked(&self, least: u64, most: u64) -> HtlcState {
        let terms = &self.record.terms.destination;
        let locked = LockedHtlc::new(terms.initiator.clone(), terms.redeemer.clone(), terms.amount, terms.timelock, most);
        HtlcState::Locked(locked.with_token(terms.token.clone()).with_elapsed(least, most))
    }

    /// Returns a proof that the destination is funded.
    pub fn evidence(&self) -> Release {
        let terms = &self.record.terms;
        let mut chain = Evm::funded(&terms.destination);
        (chain.chain_id, chain.latest, chain.time, chain.l1_number) = (42_161, chain.initiated + 3, 1_000, Some(1));
        let mut reader = HtlcReader::new(&terms.destination, &Known::default()).unwrap();
        while !reader.requests().is_empty() {
            let answers: Vec<_> = reader.requests().iter().map(|request| chain.answer(request)).collect();
            reader.answer(&answers).unwrap();
        }
        let mut quorum = HtlcQuorum::new(["node.example"], 1).unwrap();
        quorum.hear("node.example", reader.finish());
        Release::Evidence(Funded::judge(terms, &quorum, &FinalityRule::new(Finality::Depth(2), 2, 6), UnixTime::from_secs(1_000)).unwrap())
    }
}

/// Returns a leg as its chain shows it.
pub fn seen(state: HtlcState, is_final: bool) -> LegObservation {
    LegObservation::Seen { state, is_final, head_time: UnixTime::from_secs(1_000) }
}

pub const fn redeemed() -> HtlcState {
    HtlcState::Redeemed { secret: None, transaction: None }
}

pub const fn refunded() -> HtlcState {
    HtlcState::Refunded { transaction: None }
}

pub fn secret_bytes() -> [u8; 32] {
    *Secret::parse(SECRET).unwrap().expose()
}

pub fn changed() -> RecordObservation {
    RecordObservation::Refused(Refusal::new(Code::RecordChanged, "/order"))
}

pub fn unreachable() -> RecordObservation {
    RecordObservation::Unknown("503".to_owned())
}

pub const fn sending(what: Delivery) -> Event {
    Event::sending(what)
}

pub fn signed(purpose: Purpose) -> Event {
    Event::Signed { purpose, transactions: vec![transaction()], gasless: None }
}

/// Another payment, which spends nothing that the first one spends.
pub fn signed_again() -> Event {
    let transactions = vec![BroadcastTransaction { id: "0x02".into(), ..transaction() }];
    Event::Signed { purpose: Purpose::Funding, transactions, gasless: None }
}

/// A gasless payment, after an approval that the owner broadcasts.
pub fn signed_gasless() -> Event {
    Event::Signed { purpose: Purpose::Funding, transactions: vec![transaction()], gasless: Some("0x".to_owned()) }
}

fn transaction() -> BroadcastTransaction {
    BroadcastTransaction { chain: "base".into(), role: Role::Initiate, id: "0x01".into(), payload: "02".into(), spends: Vec::new() }
}

/// The payment was rejected by as many endpoints as must agree.
pub fn rejected() -> Event {
    Event::NotSent { what: Delivery::Funding, error: "underpriced".to_owned(), is_rejected: true }
}

/// Returns a journal of entries that were all written at [`WRITTEN`].
pub fn journal(events: impl IntoIterator<Item = Event>) -> Vec<Entry> {
    events.into_iter().map(|event| Entry { at: UnixTime::from_secs(WRITTEN), event }).collect()
}

/// Returns the events of an order that the owner has paid with a transaction of its own.
pub fn payment() -> Vec<Event> {
    vec![signed(Purpose::Funding), sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }]
}

/// Returns the events of an order whose redemption was sent.
pub fn release(path: SecretRoute) -> Vec<Event> {
    let sent = match path {
        SecretRoute::Own => vec![signed(Purpose::Redemption), sending(Delivery::Redemption)],
        _ => vec![sending(Delivery::Secret)],
    };
    [payment(), vec![Event::SecretLeaving { path }], sent].concat()
}

/// The six means by the bits of a number: the owner redeems, source connected, destination connected, relayer allowed, secret elsewhere,
/// relayer alone.
pub fn capabilities(bits: u64) -> Capabilities {
    let has = |place: u32| bits >> place & 1 == 1;
    let mut capabilities = Capabilities::default();
    (capabilities.owner_redeems, capabilities.source_connected, capabilities.destination_connected) = (has(0), has(1), has(2));
    (capabilities.relayer_allowed, capabilities.secret_is_elsewhere, capabilities.relayer_alone) = (has(3), has(4), has(5));
    capabilities
}
