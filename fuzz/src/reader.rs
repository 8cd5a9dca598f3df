//! Reads HTLCs on in-memory chains through endpoints that lie as the input decides.
//!
//! | bytes | what they choose |
//! |---|---|
//! | 1 | the order |
//! | 1 | the story: what happened to the HTLC |
//! | 1 | what is already known about the endpoint |
//! | then, for each request | whether the answer is honest, and if not, how it differs |
//!
//! Every answer after the end of the input is honest. An input of three bytes is therefore an honest reading, and
//! each further byte changes an answer deeper in it.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{LazyLock, Mutex, Once};

use crate::bytes::Bytes;
use crate::lie;
use countersign::reader::{Answer, FailureKind, Fault, HtlcReader, Judgement, Known, MAX_REQUESTS, Request, RpcError};
use countersign::{
    Family, SecretHash,
    chains::{Finality, FinalityRule, UnixTime},
    evidence::{HtlcState, HtlcTerms, LockedHtlc, VerifiedTerms},
};

/// The maximum number of rounds that any reading needs.
const MAX_ROUNDS: usize = 24;
/// How far a chain's newest block may fall behind one that was seen before.
const MAX_BACK: u64 = 256;

/// What happened on a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// The HTLC is funded as the terms say.
    Funded,
    /// Nothing happened.
    Unfunded,
    /// An HTLC with this id is funded with less than the terms require.
    Less,
    /// The HTLC was redeemed with [`Chain::SECRET`].
    Redeemed,
    /// The HTLC was refunded.
    Refunded,
}

impl Story {
    const ALL: [Self; 5] = [Self::Funded, Self::Unfunded, Self::Less, Self::Redeemed, Self::Refunded];
}

/// An in-memory chain with one HTLC.
pub trait Chain: Sized + 'static {
    /// The family.
    const FAMILY: Family;
    /// The secret of the orders.
    const SECRET: [u8; 32];
    /// The caller's clock in Unix seconds.
    const NOW: u64;
    /// Whether the chain answers a Bitcoin node's RPC too, and not only an Esplora server's requests.
    const HAS_RPC: bool = false;

    /// Returns orders whose destination is on such a chain and has [`Chain::SECRET`].
    fn orders() -> Vec<VerifiedTerms>;

    /// Creates the chain after a story about the HTLC of the terms. Returns `None` if the story is impossible for
    /// this kind of HTLC.
    fn new(terms: &HtlcTerms, story: Story) -> Option<Self>;

    /// Returns whether no single lie can make an HTLC look funded as agreed if it never was. Where this is false, the
    /// node has to be trusted, and only a quorum helps.
    fn proves(_: &HtlcTerms) -> bool {
        false
    }

    /// Answers a request as an honest endpoint.
    fn answer(&self, request: &Request) -> Answer;
}

/// An order, and its chain after each [`Story`].
struct Order<C> {
    terms: VerifiedTerms,
    chains: Vec<(Story, Endpoint<C>)>,
}

/// An honest endpoint that caches its answers.
struct Endpoint<C> {
    chain: C,
    answers: Mutex<HashMap<Request, Answer>>,
}

/// How an answer relates to the honest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Honesty {
    Honest,
    /// No answer, or an error of the node. Neither says anything about the chain.
    Silent,
    /// A false answer to a request whose honest answer is the same in every story.
    LieAside,
    /// A false answer to a request on which the result depends.
    Lie,
}

/// Reads one HTLC as the input decides, and checks the result.
pub fn read<C: Chain>(orders: &'static LazyLock<Orders<C>>, input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let order = bytes.pick(&orders.0);
    let (story, chain) = bytes.pick(&order.chains);
    let control = bytes.byte();
    let known = known::<C>(&order.terms.destination, chain, control, &mut bytes);
    let (outcome, honesty) = drive(order, chain, &known, &mut bytes);
    let count = |kind| honesty.iter().filter(|one| **one == kind).count();
    let (lies, silences) = (count(Honesty::Lie) + count(Honesty::LieAside), count(Honesty::Silent));
    let observation = match outcome {
        Ok(observation) => observation,
        Err(fault) => {
            let _ = (fault.to_string(), fault.code(), fault.is_transient());
            // The endpoint's height is below one that it is assumed to have shown before. It has gone back, which is
            // an error.
            let is_behind = matches!(control >> 6, 1 | 2);
            assert!(is_behind || lies + silences > 0, "an honest reading of {story:?} failed: {fault}");
            return;
        }
    };
    let (terms, finding, learned) = (&order.terms, observation.finding(), observation.known());
    assert_eq!(observation.terms(), &terms.destination);
    assert_eq!(Known::from_json(learned.to_json().as_bytes()).as_ref(), Ok(learned));
    assert!(finding.seen.height.saturating_add(MAX_BACK) >= known.height(), "the endpoint went back to {}", finding.seen.height);
    assert!(finding.seen.is_safe || !finding.seen.is_finalized);
    if let HtlcState::Redeemed { secret: Some(secret), .. } = &finding.state {
        assert_eq!(SecretHash::of(secret), terms.destination.secret_hash, "a foreign secret");
    }

    // The RPC of a Bitcoin-like node has no address index, so it cannot show everything.
    let is_unclear = matches!(finding.state, HtlcState::Unclear(_)) && (lies + silences > 0 || known.is_rpc());
    // Silence, failures, and lies about what is the same in every story must not change the result.
    if count(Honesty::Lie) == 0 {
        assert!(is_unclear || is_told::<C>(*story, &finding.state, &terms.destination), "{story:?} is read as {:?}", finding.state);
    }
    let rule = FinalityRule::new(Finality::Depth(1), 0, 0);
    let judgement = Judgement::new(terms, finding, &rule, UnixTime::from_secs(C::NOW));
    match story {
        Story::Funded => assert!(judgement.is_ok() || is_unclear || lies + silences > 0, "an honest funding does not count: {judgement:?}"),
        Story::Unfunded | Story::Less if C::proves(&terms.destination) => {
            assert!(judgement.is_err() || lies > 1, "one lie funds {story:?}: {finding:?}")
        }
        _ => assert!(judgement.is_err() || count(Honesty::Lie) > 0, "{story:?} counts as funded: {finding:?}"),
    }
}

/// The orders of a family, with their chains.
pub struct Orders<C>(Vec<Order<C>>);

impl<C: Chain> Orders<C> {
    /// Creates the chains of every order.
    pub fn new() -> Self {
        hide_panics_of_chains();
        let orders = C::orders().into_iter().map(|terms| {
            assert_eq!(terms.destination.family, C::FAMILY);
            let chains = Story::ALL.into_iter().filter_map(|story| Some((story, Endpoint::new(C::new(&terms.destination, story)?))));
            Order { chains: chains.collect(), terms }
        });
        let orders: Vec<_> = orders.collect();
        assert!(!orders.is_empty() && orders.iter().all(|order| order.chains.len() > 1));
        Self(orders)
    }
}

/// Returns whether the state that was read matches the story.
fn is_told<C: Chain>(story: Story, state: &HtlcState, terms: &HtlcTerms) -> bool {
    let is_of =
        |locked: &LockedHtlc| (&locked.initiator, &locked.redeemer, locked.timelock) == (&terms.initiator, &terms.redeemer, terms.timelock);
    match (story, state) {
        // A lie about a slot that holds only the upper half of the amount increases it, and then the contract's
        // balance does not cover it.
        (Story::Funded, HtlcState::Locked(locked)) => {
            is_of(locked) && (locked.amount == terms.amount || (locked.amount > terms.amount && !locked.covered))
        }
        // If the id depends on the amount, there is no such HTLC under the id.
        (Story::Less, HtlcState::Locked(locked)) => locked.amount < terms.amount || !locked.covered,
        (Story::Less, HtlcState::Absent | HtlcState::Unclear(_)) => true,
        (Story::Unfunded, HtlcState::Absent) | (Story::Refunded, HtlcState::Refunded { .. }) => true,
        (Story::Redeemed, HtlcState::Redeemed { secret, .. }) => *secret == Some(C::SECRET),
        _ => false,
    }
}

/// Chooses the heights and facts that the endpoint is assumed to have shown before.
fn known<C: Chain>(terms: &HtlcTerms, chain: &Endpoint<C>, control: u8, bytes: &mut Bytes<'_>) -> Known {
    let mut known = Known::default().with_rpc(C::HAS_RPC && control & 1 == 1);
    if control & 2 != 0
        && let Ok(mut reader) = HtlcReader::new(terms, &known)
    {
        while !reader.requests().is_empty() {
            let answers: Vec<_> = reader.requests().iter().map(|request| chain.answer(request)).collect();
            reader.answer(&answers).expect("one answer for each request");
        }
        if let Ok(observation) = reader.finish() {
            known.learn(observation.known());
        }
    }
    match control >> 6 {
        1 => known.with_height(bytes.number().into()),
        2 => {
            let height = known.height().saturating_add(u64::from(bytes.byte()));
            known.with_height(height)
        }
        _ => known,
    }
}

type Outcome = Result<countersign::reader::HtlcObservation, Fault>;

/// Reads to the end. Returns the outcome, and how honest each answer was.
fn drive<C: Chain>(order: &Order<C>, chain: &Endpoint<C>, known: &Known, bytes: &mut Bytes<'_>) -> (Outcome, Vec<Honesty>) {
    let mut reader = HtlcReader::new(&order.terms.destination, known).expect("verified terms name an HTLC");
    let mut honesty = Vec::new();
    while !reader.requests().is_empty() {
        assert!(reader.outcome().is_none());
        assert!(reader.rounds() <= MAX_ROUNDS, "the reading does not end");
        let requests = reader.requests().to_vec();
        assert!(requests.len() <= MAX_REQUESTS);
        let answers: Vec<_> = requests
            .iter()
            .map(|request| {
                let truth = chain.answer(request);
                let (answer, mut kind) = match bytes.byte() {
                    // Most answers are honest. Otherwise no reading would get to its end.
                    0..=191 => (truth.clone(), Honesty::Honest),
                    192..=199 => (silence(&truth, bytes), Honesty::Silent),
                    200..=215 => (bytes.pick(&order.chains).1.answer(request), Honesty::Lie),
                    216..=223 => (lie::arbitrary(request, bytes), Honesty::Lie),
                    _ => (lie::changed(&truth, bytes), Honesty::Lie),
                };
                if answer == truth {
                    kind = Honesty::Honest;
                } else if kind == Honesty::Lie && order.chains.iter().all(|(_, other)| other.answer(request) == truth) {
                    kind = Honesty::LieAside;
                }
                honesty.push(kind);
                answer
            })
            .collect();
        reader.answer(&answers).expect("one answer for each request");
    }
    assert!(reader.outcome().is_some() && reader.answer(&[Answer::result(*b"1")]).is_err());
    (reader.finish(), honesty)
}

/// Returns the answer of an endpoint that is silent or whose node failed.
fn silence(truth: &Answer, bytes: &mut Bytes<'_>) -> Answer {
    let kinds = [
        FailureKind::Connect,
        FailureKind::Timeout,
        FailureKind::Interrupted,
        FailureKind::TooLarge,
        FailureKind::Status(503),
        FailureKind::Other,
    ];
    match (bytes.byte() % 3, truth) {
        (0, _) | (1, Answer::Failed(_)) => Answer::Failed((*bytes.pick(&kinds)).into()),
        (_, Answer::Http { .. }) => Answer::http(*bytes.pick(&[500, 502, 503, 429]), *b"try again"),
        _ => Answer::Error(RpcError::new(-32_603, "internal error", None)),
    }
}

thread_local! {
    static IS_IN_CHAIN: Cell<bool> = const { Cell::new(false) };
}

impl<C: Chain> Endpoint<C> {
    fn new(chain: C) -> Self {
        Self { chain, answers: Mutex::default() }
    }

    /// Asks the chain. It was written for tests and panics at unknown requests. Here, such a request is the
    /// consequence of a lie.
    fn answer(&self, request: &Request) -> Answer {
        let mut answers = self.answers.lock().expect("no panic while it is held");
        if let Some(answer) = answers.get(request) {
            return answer.clone();
        }
        IS_IN_CHAIN.set(true);
        let answer = panic::catch_unwind(AssertUnwindSafe(|| self.chain.answer(request)));
        IS_IN_CHAIN.set(false);
        let answer = answer.unwrap_or_else(|_| Answer::Error(RpcError::new(-32_603, "internal error", None)));
        if answers.len() >= 1_024 {
            answers.clear();
        }
        answers.insert(request.clone(), answer.clone());
        answer
    }
}

/// Hides panics that are caught, because libFuzzer reports every panic as a failure.
fn hide_panics_of_chains() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_IN_CHAIN.get() {
                hook(info);
            }
        }));
    });
}
