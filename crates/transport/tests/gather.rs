//! Tests the loop that queries endpoints, in virtual time: which ones it waits for, how long, and what it remembers.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

use countersign_core::UnixTime;
use std::sync::Mutex;
use std::time::Duration;

use countersign_core::Refusal;
use countersign_core::reader::{
    Agree, Answer, Doubt, FailureKind, Fault, Identity, Known, Machine, Observation, Quorum, Reader, Replies, Request, Turn, Verdict,
};
use countersign_transport::{
    ChainEndpoints, Chains, GatherError, Memory, NoChains, Request as Http, Response, Transport, TransportError, gather, gather_all,
    gather_middle,
};
use tokio::time::{Instant, sleep};

/// Reads a height in two rounds: the height, and the block that it names.
#[derive(Debug)]
struct Height {
    known: Known,
    height: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    height: u64,
    block: u64,
}

impl Agree for Shown {
    type Key = u64;

    fn key(&self) -> u64 {
        self.block
    }
}

impl Machine for Height {
    type Subject = u64;
    type Output = Shown;
    const MAX_ROUNDS: usize = 2;

    fn start(_: &u64, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        Ok((Self { known: known.clone(), height: None }, vec![Request::json_rpc("height", "[]")]))
    }

    fn identity(&self) -> Identity {
        Identity {
            request: Request::json_rpc("chain", "[]"),
            expected: "1".to_owned(),
            read: |reply| Ok(reply.json()?.integer()?.to_string()),
        }
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Shown>, Fault> {
        let number = replies.json(0)?.integer()?;
        match self.height {
            Some(height) => Ok(Turn::Done(Shown { height, block: number })),
            None => {
                self.known.check_height(number.into(), 2)?;
                self.height = Some(number);
                Ok(Turn::Ask(vec![Request::json_rpc("block", "[]")]))
            }
        }
    }

    fn learned(&self) -> Known {
        Known::default().with_height(self.height.unwrap_or_default().into()).with_hint("hint", *b"1").with_progress("search", *b"2")
    }

    fn stamp(&self) -> Option<Vec<u8>> {
        self.height.map(|height| height.to_be_bytes().to_vec())
    }
}

/// How an endpoint behaves.
#[derive(Debug, Clone, Copy)]
struct Endpoint {
    chain: u64,
    height: u64,
    block: u64,
    /// How long each round takes; `None` if there is never an answer.
    takes: Option<u64>,
}

const HONEST: Endpoint = Endpoint { chain: 1, height: 100, block: 7, takes: Some(1) };

/// Endpoints named by their place.
#[derive(Default)]
struct World {
    endpoints: Mutex<Vec<Endpoint>>,
    needed: usize,
    asked: Mutex<Vec<(String, usize)>>,
    forgotten: Mutex<Vec<String>>,
}

impl World {
    fn new(endpoints: &[Endpoint], needed: usize) -> Self {
        Self { endpoints: Mutex::new(endpoints.to_vec()), needed, ..Self::default() }
    }

    async fn read(&self, memory: &Memory, subject: u64, least: u64) -> (Quorum<Observation<Height>>, u64) {
        let begin = Instant::now();
        let start = |known: &Known| Reader::<Height>::new(&subject, known);
        let question = |one: &Observation<Height>| if one.output().height >= least { Ok(one.output().height) } else { Err("low") };
        let quorum = gather(self, &Clock, memory, "chain", start, question).await.unwrap();
        (quorum, begin.elapsed().as_secs())
    }
}

fn heights(quorum: &Quorum<Observation<Height>>) -> Option<u64> {
    match quorum.ask(|one| Ok::<_, ()>(one.output().height)) {
        Verdict::Stands(height, _) => Some(height),
        _ => None,
    }
}

impl Chains for World {
    fn endpoints(&self, chain: &str) -> Option<ChainEndpoints> {
        let count = self.endpoints.lock().unwrap().len();
        (chain == "chain").then(|| ChainEndpoints::new((0..count).map(|place| place.to_string()), self.needed))
    }

    fn forget(&self, _: &str, endpoint: &str) {
        self.forgotten.lock().unwrap().push(endpoint.to_owned());
    }

    async fn ask(&self, _: &str, endpoint: &str, requests: &[Request]) -> Vec<Answer> {
        self.asked.lock().unwrap().push((endpoint.to_owned(), requests.len()));
        let Endpoint { chain, height, block, takes } = self.endpoints.lock().unwrap()[endpoint.parse::<usize>().unwrap()];
        match takes {
            Some(seconds) => sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
        let answer = |request: &Request| match request {
            Request::JsonRpc { method: "chain", .. } => chain,
            Request::JsonRpc { method: "height", .. } => height,
            _ => block,
        };
        requests.iter().map(|request| Answer::result(answer(request).to_string().into_bytes())).collect()
    }
}

struct Clock;

impl Transport for Clock {
    async fn send(&self, _: &Http) -> Result<Response, TransportError> {
        panic!("nothing is sent by HTTP")
    }

    async fn sleep(&self, duration: Duration) {
        sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(0)
    }
}

/// A search that takes several readings goes on, although the endpoints cannot agree before it ends.
#[tokio::test(start_paused = true)]
async fn the_progress_of_every_endpoint_is_remembered() {
    let memory = Memory::default();
    let other = Endpoint { block: 8, ..HONEST };
    let (quorum, _) = World::new(&[HONEST, HONEST, other], 2).read(&memory, 1, 50).await;
    assert_eq!(heights(&quorum), Some(100));
    let agreed = memory.known("chain", "0");
    assert_eq!((agreed.height().get(), agreed.hint("hint"), agreed.progress("search")), (100, Some(&b"1"[..]), Some(&b"2"[..])));
    let memory = Memory::default();
    let (quorum, _) = World::new(&[HONEST, other], 2).read(&memory, 1, 50).await;
    assert_eq!(heights(&quorum), None);
    for name in ["0", "1"] {
        let known = memory.known("chain", name);
        assert_eq!((known.height().get(), known.hint("hint"), known.progress("search")), (0, None, Some(&b"2"[..])));
    }
}

#[tokio::test(start_paused = true)]
async fn one_bad_endpoint_of_three_changes_nothing() {
    for bad in [
        Endpoint { takes: None, ..HONEST },
        Endpoint { takes: Some(9), ..HONEST },
        Endpoint { block: 8, height: 5_000, ..HONEST },
        Endpoint { chain: 2, ..HONEST },
        Endpoint { height: 3, ..HONEST },
    ] {
        for place in 0..3 {
            let mut endpoints = [HONEST; 3];
            endpoints[place] = bad;
            let (quorum, seconds) = World::new(&endpoints, 2).read(&Memory::default(), 1, 50).await;
            assert_eq!((heights(&quorum), seconds), (Some(100), 2), "{bad:?} {place}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn others_are_waited_for_only_while_they_can_help() {
    let (low, slow) = (Endpoint { height: 3, ..HONEST }, Endpoint { takes: Some(2), ..HONEST });
    // Two agree, but one of them is too low. The third may help, and ends just within the grace.
    let (quorum, seconds) = World::new(&[HONEST, low, slow], 2).read(&Memory::default(), 1, 50).await;
    assert!(seconds == 4 && quorum.heard().count() >= 2, "{seconds}");
    let (quorum, seconds) = World::new(&[HONEST, low, Endpoint { takes: None, ..HONEST }], 2).read(&Memory::default(), 1, 50).await;
    assert_eq!((quorum.heard().count(), seconds), (2, 2 + 2), "two seconds of grace");
    // No other endpoint can help, so the answer is known at once.
    let (_, seconds) = World::new(&[low, low, Endpoint { takes: None, ..HONEST }], 2).read(&Memory::default(), 1, 50).await;
    assert_eq!(seconds, 2);
}

#[tokio::test(start_paused = true)]
async fn all_are_heard_that_speak_within_the_grace() {
    let (later, hangs) = (Endpoint { takes: Some(2), height: 101, ..HONEST }, Endpoint { takes: None, ..HONEST });
    for (endpoints, heard, limit) in [
        (vec![HONEST, HONEST, later], 3, 4),
        (vec![HONEST, hangs, HONEST], 2, 4),
        (vec![HONEST], 1, 2),
        (vec![HONEST, hangs, hangs], 3, 10),
    ] {
        let (world, memory, begin) = (World::new(&endpoints, endpoints.len() / 2 + 1), Memory::default(), Instant::now());
        let start = |known: &Known| Reader::<Height>::new(&1, known);
        let quorum = gather_all(&world, &Clock, &memory, "chain", start).await.unwrap();
        assert_eq!((quorum.heard().count(), begin.elapsed().as_secs()), (heard, limit), "{endpoints:?}");
    }
}

/// A third endpoint decides between two, so it is waited for; a fourth one does not decide between three.
#[tokio::test(start_paused = true)]
async fn an_even_number_waits_for_who_decides_the_middle() {
    let slow = |seconds| Endpoint { takes: Some(seconds), height: 101, ..HONEST };
    let hangs = Endpoint { takes: None, ..HONEST };
    for (endpoints, heard, limit) in [
        (vec![HONEST, HONEST, slow(4)], 3, 8),
        (vec![HONEST, hangs, HONEST], 3, 10),
        (vec![HONEST, HONEST, HONEST, hangs], 3, 4),
        (vec![HONEST, HONEST, HONEST, slow(2), hangs], 5, 10),
        (vec![HONEST, HONEST], 2, 2),
        (vec![HONEST], 1, 2),
    ] {
        let (world, memory, begin) = (World::new(&endpoints, endpoints.len() / 2 + 1), Memory::default(), Instant::now());
        let start = |known: &Known| Reader::<Height>::new(&1, known);
        let quorum = gather_middle(&world, &Clock, &memory, "chain", start).await.unwrap();
        assert_eq!((quorum.heard().count(), begin.elapsed().as_secs()), (heard, limit), "{endpoints:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_hangs_counts_as_silent_after_its_limit() {
    let hangs = Endpoint { takes: None, ..HONEST };
    let (quorum, seconds) = World::new(&[HONEST, hangs], 2).read(&Memory::default(), 1, 50).await;
    assert_eq!(seconds, 10);
    let faults: Vec<_> = quorum.heard().filter_map(|(_, word)| word.err()).collect();
    assert!(matches!(faults.as_slice(), [Fault::Unanswered(failure)] if failure.kind == FailureKind::Timeout));
    assert!(matches!(quorum.agreed::<()>(), Err(Doubt::Disagree { agreed: 1, needed: 2, .. })));
    let only = World::new(&[hangs], 1).read(&Memory::default(), 1, 50).await;
    assert!(matches!(only.0.agreed::<()>(), Err(Doubt::Fault(Fault::Unanswered(_)))));
}

#[tokio::test(start_paused = true)]
async fn an_absurd_height_of_one_endpoint_is_forgotten_and_a_laggard_is_found() {
    let memory = Memory::default();
    let world = World::new(&[HONEST, HONEST, Endpoint { height: 1_000_000, block: 8, ..HONEST }], 2);
    world.read(&memory, 1, 50).await;
    let height = |place: &str| memory.known("chain", place).height().get();
    assert_eq!((height("0"), height("1"), height("2")), (100, 100, 0));
    *world.endpoints.lock().unwrap() = vec![Endpoint { height: 90, ..HONEST }; 3];
    let (quorum, _) = world.read(&memory, 2, 50).await;
    // The same result at an absurd height is remembered only up to the height that the others have reached.
    let world_of_equals = World::new(&[Endpoint { height: 1_000_000, ..HONEST }, HONEST, HONEST], 2);
    let fresh = Memory::default();
    world_of_equals.read(&fresh, 1, 50).await;
    assert_eq!((fresh.known("chain", "0").height().get(), fresh.known("chain", "1").height().get()), (100, 100));
    let went_back = quorum
        .heard()
        .filter(|(_, word)| matches!(word, Err(Fault::WentBack { before, now }) if (before.get(), now.get()) == (100, 90)))
        .count();
    assert_eq!(went_back, 2, "the third never showed a height that the others share");
}

#[tokio::test(start_paused = true)]
async fn an_observation_is_reused_for_its_subject_only() {
    let (memory, world) = (Memory::default(), World::new(&[HONEST], 1));
    let rounds = async |subject| {
        world.asked.lock().unwrap().clear();
        assert_eq!(heights(&world.read(&memory, subject, 50).await.0), Some(100));
        world.asked.lock().unwrap().len()
    };
    assert_eq!((rounds(1).await, rounds(1).await, rounds(2).await), (2, 1, 2));
    world.endpoints.lock().unwrap()[0].height = 101;
    let (quorum, _) = world.read(&memory, 1, 50).await;
    assert_eq!(heights(&quorum), Some(101));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_shows_another_chain_is_asked_again() {
    let world = World::new(&[Endpoint { chain: 2, ..HONEST }, HONEST, HONEST], 2);
    world.read(&Memory::default(), 1, 50).await;
    assert_eq!(*world.forgotten.lock().unwrap(), ["0"]);
}

#[tokio::test]
async fn a_chain_without_connection_is_not_read() {
    let start = |known: &Known| Reader::<Height>::new(&1, known);
    let error = gather(&NoChains, &Clock, &Memory::default(), "chain", start, |_| Ok::<_, ()>(())).await.unwrap_err();
    assert_eq!(error, GatherError::NotConnected("chain".to_owned()));
    let even = World::new(&[HONEST; 4], 2);
    let error = gather(&even, &Clock, &Memory::default(), "chain", start, |_| Ok::<_, ()>(())).await.unwrap_err();
    assert!(matches!(error, GatherError::Refused(refusal) if refusal.location() == "/quorum"));
}
