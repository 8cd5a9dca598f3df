//! The bounds of a reader, and the quorum over every combination of endpoints.

use countersign_chains::{BlockHeight, Network};

use super::*;
use crate::report::Code;

/// A machine that asks for a number in each round, until one is odd. The numbers are heights of blocks.
#[derive(Debug)]
struct Odd {
    last: Option<u64>,
}

impl Machine for Odd {
    type Subject = u64;
    type Output = u64;
    const MAX_ROUNDS: usize = 3;

    fn start(subject: &u64, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        if *subject == 0 {
            return Err(Refusal::new(Code::WrongType, "/subject"));
        }
        Ok((Self { last: None }, vec![Request::json_rpc("number", "[]")]))
    }

    fn identity(&self) -> Identity {
        Identity {
            request: Request::json_rpc("chain", "[]"),
            expected: "7".to_owned(),
            read: |reply| Ok(reply.json()?.integer()?.to_string()),
        }
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<u64>, Fault> {
        let number = replies.json(0)?.integer()?;
        self.last = Some(number);
        Ok(if number % 2 == 1 { Turn::Done(number) } else { Turn::Ask(vec![Request::json_rpc("number", "[]")]) })
    }

    fn learned(&self) -> Known {
        Known::default().with_height(self.last.unwrap_or_default().into())
    }

    fn stamp(&self) -> Option<Vec<u8>> {
        self.last.map(|number| number.to_be_bytes().to_vec())
    }
}

fn result(text: &str) -> Answer {
    Answer::result(text.as_bytes())
}

fn reader() -> Reader<Odd> {
    Reader::new(&1, &Known::default()).unwrap()
}

#[test]
fn asks_for_the_identity_in_every_round() {
    let mut reader = reader();
    for (round, answer) in [(1, "2"), (2, "4"), (3, "5")] {
        assert_eq!(reader.rounds(), round);
        let Next::Ask(requests) = reader.next() else { panic!("{reader:?}") };
        assert_eq!(format!("{requests:?}"), "[chain(..), number(..)]");
        reader.answer(&[result("7"), result(answer)]).unwrap();
    }
    let observation = reader.finish().unwrap();
    assert_eq!((observation.subject(), observation.output()), (&1, &5));
    let mut switched = self::reader();
    switched.answer(&[result("7"), result("2")]).unwrap();
    switched.answer(&[result("8"), result("5")]).unwrap();
    assert_eq!(switched.finish().unwrap_err(), Fault::WrongChain { expected: "7".to_owned(), actual: "8".to_owned() });
}

#[test]
fn takes_one_answer_for_each_request() {
    let mut reader = reader();
    for answers in [vec![], vec![result("7")], vec![result("7"), result("2"), result("3")]] {
        let actual = answers.len();
        assert_eq!(reader.answer(&answers), Err(Miscount { expected: 2, actual }));
    }
    reader.answer(&[result("7"), result("3")]).unwrap();
    assert!(matches!(reader.next(), Next::Done(observation) if *observation.output() == 3));
    assert_eq!(reader.answer(&[result("7"), result("5")]), Err(Miscount { expected: 0, actual: 2 }));
    assert!(Reader::<Odd>::new(&0, &Known::default()).is_err());
}

#[test]
fn ends_after_the_last_round_and_at_the_first_bad_answer() {
    let mut endless = reader();
    for _ in 0..3 {
        endless.answer(&[result("7"), result("2")]).unwrap();
    }
    assert!(matches!(endless.next(), Next::Failed(Fault::TooMuch(_))));
    for (answer, code) in [
        (result("["), "node_malformed"),
        (result("\"5\""), "node_malformed"),
        (Answer::Error(RpcError::new(-1, "no", None)), "node_error"),
        (Answer::Failed(FailureKind::Timeout.into()), "timeout"),
        (Answer::http(200, *b"5"), "node_malformed"),
        (Answer::result(vec![b' '; crate::json::MAX_BYTES + 1]), "node_malformed"),
    ] {
        let mut reader = reader();
        reader.answer(&[result("7"), answer]).unwrap();
        assert_eq!(reader.finish().unwrap_err().code().name(), code);
    }
    assert!(matches!(reader().finish(), Err(Fault::Unanswered(Failure { kind: FailureKind::Timeout, .. }))));
}

#[test]
fn a_transport_sees_what_the_reader_and_its_observation_hold() {
    fn drive<R: Drive>(reader: &mut R, answer: &str) -> (usize, Option<Vec<u8>>) {
        reader.answer(&[result("7"), result(answer)]).unwrap();
        (reader.requests().len(), reader.stamp())
    }
    let mut reader = reader();
    assert_eq!((Drive::requests(&reader).len(), Drive::stamp(&reader)), (2, None));
    let miscount = Drive::answer(&mut reader, &[]).unwrap_err();
    assert_eq!(miscount.to_string(), "0 answers to 2 requests");
    assert_eq!(drive(&mut reader, "4"), (2, Some(4_u64.to_be_bytes().to_vec())));
    assert_eq!(drive(&mut reader, "5"), (0, None));
    let observation = Drive::finish(reader).unwrap();
    let stamp = 5_u64.to_be_bytes();
    assert_eq!((observation.known().height().get(), observation.stamp()), (5, Some(&stamp[..])));
    assert_eq!((Remembered::known(&observation), Remembered::stamp(&observation)), (observation.known(), observation.stamp()));
    for (subject, is_same) in [(1, true), (2, false)] {
        assert_eq!(Reader::<Odd>::new(&subject, &Known::default()).unwrap().is_of_subject(&observation), is_same);
    }
    let mut silent = self::reader();
    Drive::fail(&mut silent, Failure::new(FailureKind::Connect, "refused"));
    assert_eq!(Drive::requests(&silent), []);
    assert_eq!(silent.finish().unwrap_err(), Fault::Unanswered(Failure::new(FailureKind::Connect, "refused")));
}

#[test]
fn a_reply_of_another_format_is_a_fault() {
    assert_eq!(Reply::Bytes(b"06").bytes().unwrap(), b"06");
    let failure = Failure::from(FailureKind::Other);
    for (reply, code) in [
        (Reply::Status { status: 200, body: b"" }, "node_malformed"),
        (Reply::Status { status: 503, body: b"" }, "node_http_status"),
        (Reply::Grpc { status: 404, body: b"", grpc_status: None }, "node_http_status"),
        (Reply::Failed(&failure), "network"),
    ] {
        assert_eq!(reply.bytes().unwrap_err().code().to_string(), code);
    }
}

#[test]
fn each_answer_is_read_in_the_format_that_was_asked_for() {
    let read = |request: &Request, answer: &Answer| {
        let value = parse(request, answer).unwrap();
        assert_eq!(value.is_some(), is_json(request, answer));
        match reply(request, answer, value.as_ref()) {
            Reply::Json(cursor) => format!("json {} at {:?}", cursor.integer().unwrap(), cursor.at().to_string()),
            Reply::Bytes(bytes) => format!("bytes {}", bytes.len()),
            Reply::Status { status, body } => format!("status {status}, {}", body.len()),
            Reply::Grpc { status, body, grpc_status } => format!("grpc {status}, {}, {grpc_status:?}", body.len()),
            Reply::Error(error) => format!("error {}", error.code),
            Reply::Failed(failure) => format!("{:?}", failure.kind),
        }
    };
    let get = |format| Request::get("/x", format);
    let post = |format| Request::post("/x", *b"", format);
    let call = Request::json_rpc("x", "[]");
    let (ok, missing) = (Answer::http(200, *b"5"), Answer::http(404, *b"no"));
    for (request, answer, expected) in [
        (&call, &result("5"), "json 5 at \"/result\""),
        (&call, &Answer::Error(RpcError::new(-1, "no", None)), "error -1"),
        (&call, &Answer::Failed(FailureKind::Timeout.into()), "Timeout"),
        (&call, &ok, "status 200, 1"),
        (&get(Format::Json), &ok, "json 5 at \"\""),
        (&post(Format::Json), &ok, "json 5 at \"\""),
        (&get(Format::Json), &missing, "status 404, 2"),
        (&get(Format::Json), &result("5"), "bytes 1"),
        (&get(Format::Text), &ok, "bytes 1"),
        (&post(Format::Bytes), &ok, "bytes 1"),
        (&get(Format::Bytes), &missing, "status 404, 2"),
        (&post(Format::GrpcWeb), &ok, "grpc 200, 1, None"),
        (&post(Format::GrpcWeb), &missing, "grpc 404, 2, None"),
    ] {
        assert_eq!(read(request, answer), expected, "{request:?}: {answer:?}");
    }
}

#[test]
fn the_answers_of_a_reading_and_of_a_round_are_bounded() {
    let padded = |text: &str, length: usize| result(&format!("{text}{}", " ".repeat(length - text.len())));
    let requests = [Request::json_rpc("chain", "[]"), Request::json_rpc("number", "[]")];
    let half = crate::json::MAX_BYTES / 2;
    let read = |requests: &[Request], answers: &[Answer], bytes| {
        let mut machine = Odd { last: None };
        let identity = machine.identity();
        turn(&mut machine, &identity, requests, answers, bytes)
    };
    for (second, bytes, is_read) in
        [(half, 2 * half, true), (half + 1, 2 * half + 1, false), (1, MAX_TOTAL, true), (1, MAX_TOTAL + 1, false)]
    {
        let turn = read(&requests, &[padded("7", half), padded("5", second)], bytes);
        assert_eq!(matches!(turn, Ok(Turn::Done(5))), is_read, "{second}, {bytes}");
        assert_eq!(matches!(turn, Err(Fault::TooMuch(_))), !is_read, "{second}, {bytes}");
    }
    // Only JSON takes many times its length when it is parsed.
    let raw = [requests[0].clone(), Request::get("/x", Format::Bytes)];
    let body = Answer::http(200, vec![b' '; crate::json::MAX_BYTES]);
    assert!(matches!(read(&raw, &[result("7"), body], 0), Err(Fault::Malformed(_))));
}

/// A machine that names no blocks.
#[derive(Debug)]
struct Plain(Odd);

impl Machine for Plain {
    type Subject = u64;
    type Output = u64;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &u64, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        Odd::start(subject, known).map(|(machine, requests)| (Self(machine), requests))
    }

    fn identity(&self) -> Identity {
        self.0.identity()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<u64>, Fault> {
        self.0.answer(replies)
    }
}

#[test]
fn a_machine_that_names_no_blocks_is_always_read_again() {
    assert_eq!(Reader::<Plain>::new(&1, &Known::default()).unwrap().stamp(), None);
}

#[test]
fn what_went_wrong_is_one_line() {
    assert_eq!(RpcError::new(-32_000, "busy\n", None).to_string(), r"busy\u{000a} (-32000)");
    let failure = |kind| Failure::new(kind, "reset\tby peer").to_string();
    assert_eq!(failure(FailureKind::Interrupted), r"the connection broke: reset\u{0009}by peer");
    assert_eq!(failure(FailureKind::Status(503)), "HTTP status 503");
    assert_eq!(Failure::from(FailureKind::Timeout).to_string(), "timed out");
}

#[test]
fn only_what_may_succeed_later_is_transient() {
    let refusal = || Refusal::new(Code::WrongType, "/x");
    let unanswered = |kind: FailureKind| Fault::Unanswered(kind.into());
    for fault in [
        unanswered(FailureKind::Timeout),
        unanswered(FailureKind::Status(500)),
        Fault::Rpc(RpcError::new(-1, "busy", None)),
        Fault::Malformed(refusal()),
        Fault::WentBack { before: 2.into(), now: 1.into() },
    ] {
        assert!(fault.is_transient(), "{fault}");
    }
    for fault in [
        unanswered(FailureKind::Unsupported),
        unanswered(FailureKind::TooLarge),
        Fault::WrongChain { expected: "1".to_owned(), actual: "2".to_owned() },
        Fault::TooMuch("rounds"),
        Fault::Rejected("nonce too low".to_owned()),
        Fault::Refused(refusal()),
    ] {
        assert!(!fault.is_transient(), "{fault}");
    }
}

#[test]
fn what_is_sent_is_not_in_debug_output() {
    let text = format!("{:?}", [Request::json_rpc("send", r#"["0x5ec7e7"]"#), Request::post("/tx", *b"5ec7e7", Format::Text)]);
    assert!(!text.contains("5ec7e7"), "{text}");
    let network = Network::Evm(1);
    let text = format!("{:?}", Submission::new(&network, "0x1d", "0x5ec7e7"));
    assert!(text.contains("0x1d") && !text.contains("5ec7e7"), "{text}");
}

#[test]
fn each_format_has_its_media_type() {
    let types = [Format::Json, Format::Text, Format::Bytes, Format::GrpcWeb].map(Format::content_type);
    assert_eq!(types, ["application/json", "text/plain", "application/octet-stream", "application/grpc-web+proto"]);
}

/// The height of the newest block.
#[derive(Debug, Clone, PartialEq)]
struct Newest;

impl Question for Newest {
    type Output = u64;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(Odd { last: None }.identity())
    }

    fn requests(&self) -> Vec<Request> {
        vec![Request::json_rpc("height", "[]"), Request::json_rpc("height", "[]")]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<u64, Fault> {
        let heights = replies.all().iter().map(|reply| Ok(reply.json()?.integer()?)).collect::<Result<Vec<_>, Fault>>()?;
        Ok(heights.into_iter().max().unwrap_or_default())
    }

    fn height(output: &u64) -> BlockHeight {
        (*output).into()
    }
}

#[test]
fn the_height_that_a_question_has_shown_is_known_afterwards() {
    let mut reader = Reader::<Ask<Newest>>::new(&Newest, &Known::default()).unwrap();
    reader.answer(&[result("7"), result("3"), result("4")]).unwrap();
    let observation = reader.finish().unwrap();
    assert_eq!((*observation.output(), observation.known().height().get()), (4, 4));
}

#[test]
fn endpoints_that_reject_a_transaction_agree_whatever_their_reasons() {
    let rejected = |reason: &str| Sent::Rejected(reason.to_owned()).key();
    assert_eq!(rejected("nonce too low"), rejected("already spent"));
    assert_ne!(rejected("nonce too low"), Sent::Accepted.key());
}

/// What an endpoint shows in the tests of the quorum: which chain of events, and how good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shown {
    story: u8,
    left: u8,
}

impl Agree for Shown {
    type Key = u8;

    fn key(&self) -> u8 {
        self.story
    }
}

/// Every kind of endpoint: honest and ahead, honest and behind, honest without marks, a liar who agrees with itself, another, one who
/// tells the honest story with better or worse numbers, one that fails, and one that is silent.
const KINDS: [Option<Result<Shown, ()>>; 9] = [
    Some(Ok(Shown { story: 1, left: 50 })),
    Some(Ok(Shown { story: 1, left: 49 })),
    Some(Ok(Shown { story: 1, left: 0 })),
    Some(Ok(Shown { story: 2, left: 99 })),
    Some(Ok(Shown { story: 3, left: 99 })),
    Some(Ok(Shown { story: 1, left: 99 })),
    Some(Ok(Shown { story: 1, left: 1 })),
    Some(Err(())),
    None,
];

fn question(shown: &Shown) -> Result<u8, &'static str> {
    if shown.left > 10 { Ok(shown.left) } else { Err("no time") }
}

fn verdict_of(kinds: &[usize], order: &[usize], needed: usize) -> (Option<u8>, bool) {
    let names = ["a", "b", "c", "d", "e"];
    let mut quorum = Quorum::new(names[..kinds.len()].iter().copied(), needed).unwrap();
    let (mut stood, mut fell) = (None, false);
    for place in order {
        match KINDS[kinds[*place]] {
            Some(Ok(shown)) => quorum.hear(names[*place], Ok(shown)),
            Some(Err(())) => quorum.hear(names[*place], Err(Fault::TooMuch("failed"))),
            None => {}
        }
        match quorum.ask(question) {
            Verdict::Stands(value, _) => {
                assert!(!fell, "what has fallen never stands: {kinds:?} {order:?}");
                assert!(stood.is_none_or(|before| value >= before), "never taken back: {kinds:?} {order:?}");
                stood = Some(value);
            }
            Verdict::Falls(_) => {
                assert!(stood.is_none(), "what stands never falls: {kinds:?} {order:?}");
                fell = true;
            }
            Verdict::Open(_) => assert!(!fell && stood.is_none(), "{kinds:?} {order:?}"),
        }
    }
    (stood, fell)
}

#[test]
fn a_verdict_stands_exactly_when_enough_endpoints_of_one_group_pass_alone() {
    let mut cases = 0_u32;
    for (all, needed, orders) in [
        (1, 1, vec![vec![0]]),
        (2, 2, vec![vec![0, 1], vec![1, 0]]),
        (3, 2, vec![vec![0, 1, 2], vec![0, 2, 1], vec![1, 0, 2], vec![1, 2, 0], vec![2, 0, 1], vec![2, 1, 0]]),
        (3, 3, vec![vec![0, 1, 2], vec![2, 1, 0]]),
        (5, 3, vec![vec![0, 1, 2, 3, 4], vec![4, 3, 2, 1, 0], vec![2, 4, 0, 3, 1]]),
    ] {
        for number in 0..KINDS.len().pow(all) {
            let kinds: Vec<_> = (0..all).map(|place| number / KINDS.len().pow(place) % KINDS.len()).collect();
            let shown: Vec<_> = kinds.iter().filter_map(|kind| KINDS[*kind]?.ok()).collect();
            let expected = (1..=3)
                .filter_map(|story| {
                    let mut left: Vec<_> = shown.iter().filter(|one| one.story == story).filter_map(|one| question(one).ok()).collect();
                    left.sort_unstable_by(|one, other| other.cmp(one));
                    left.get(needed - 1).copied()
                })
                .next();
            let is_silent = kinds.iter().any(|kind| KINDS[*kind].is_none());
            for order in &orders {
                let (stood, fell) = verdict_of(&kinds, order, needed);
                assert_eq!(stood, expected, "{kinds:?} {order:?}");
                assert!(is_silent || fell == expected.is_none(), "everybody has spoken: {kinds:?}");
                cases += 1;
            }
        }
    }
    assert!(cases > 180_000, "{cases}");
}

#[test]
fn the_reason_is_that_of_the_endpoint_that_is_missing() {
    let shown = |left| Ok(Shown { story: 1, left });
    let mut quorum = Quorum::new(["a", "b", "c"], 2).unwrap();
    quorum.hear("a", shown(50));
    quorum.hear("b", shown(1));
    assert!(matches!(quorum.ask(question), Verdict::Open(Doubt::Held("no time"))));
    quorum.hear("b", shown(50));
    quorum.hear("x", shown(50));
    assert!(matches!(quorum.ask(question), Verdict::Open(_)), "the first word counts, and strangers do not");
    quorum.hear("c", Err(Fault::TooMuch("too much")));
    assert!(matches!(quorum.ask(question), Verdict::Falls(Doubt::Held("no time"))));
    let mut split = Quorum::new(["a", "b"], 2).unwrap();
    split.hear("a", shown(50));
    split.hear("b", Err(Fault::TooMuch("too much")));
    let expected = Doubt::Disagree { agreed: 1, needed: 2, detail: "; b: too much".to_owned() };
    assert!(matches!(split.ask(question), Verdict::Falls(doubt) if doubt == expected));
    let mut only = Quorum::<Shown>::new(["a"], 1).unwrap();
    only.hear("a", Err(Fault::TooMuch("too much")));
    assert!(matches!(only.ask(question), Verdict::Falls(Doubt::Fault(Fault::TooMuch("too much")))));
}

/// A verdict falls as soon as those who are silent cannot change it, and not before.
#[test]
fn nobody_is_awaited_who_cannot_change_the_verdict() {
    let shown = |story| Ok(Shown { story, left: 50 });
    let disagree = |agreed, needed| Doubt::Disagree { agreed, needed, detail: String::new() };
    // The reason of one endpoint is not that of the quorum.
    let mut one = Quorum::new(["a", "b", "c"], 2).unwrap();
    one.hear("a", Ok(Shown { story: 1, left: 0 }));
    assert!(matches!(one.ask(question), Verdict::Open(doubt) if doubt == disagree(1, 2)));
    let mut all = Quorum::new(["a", "b", "c"], 3).unwrap();
    all.hear("a", shown(1));
    assert!(matches!(all.ask(question), Verdict::Open(doubt) if doubt == disagree(1, 3)));
    all.hear("b", shown(2));
    assert!(matches!(all.ask(question), Verdict::Falls(doubt) if doubt == disagree(1, 3)), "the third one is not awaited");
    // The second group can still grow.
    let mut most = Quorum::new(["a", "b", "c", "d", "e"], 3).unwrap();
    for (name, story) in [("a", 1), ("b", 2), ("c", 2)] {
        most.hear(name, shown(story));
    }
    assert!(matches!(most.ask(question), Verdict::Open(_)));
    let doubt: Doubt<&str> = most.agreed().unwrap_err();
    assert_eq!((doubt.clone(), doubt.to_string()), (disagree(2, 3), "too few endpoints agree: 2 of the required 3".to_owned()));
    most.hear("d", shown(1));
    assert!(matches!(most.ask(question), Verdict::Open(_)), "either group may win");
    assert!(!most.is_complete());
    most.hear("e", shown(2));
    let agreed: Vec<_> = most.agreed::<&str>().unwrap().into_iter().map(|one| one.story).collect();
    assert_eq!((agreed, most.needed(), most.heard().count(), most.is_complete()), (vec![2, 2, 2], 3, 5, true));
    assert!(matches!(most.ask(question), Verdict::Stands(..)));
    assert_eq!(Doubt::Held("no time").to_string(), "no time");
}

#[test]
fn an_endpoint_that_is_named_twice_counts_once() {
    assert!(Quorum::<Shown>::new(["a", "a", "b"], 3).is_err());
    assert!(Quorum::<Shown>::new(["a", "a"], 1).is_ok());
    for (names, needed) in [(vec![], 0), (vec!["a"], 0), (vec!["a"], 2), (vec!["a", "b"], 1), (vec!["a", "b", "c", "d"], 2)] {
        assert!(Quorum::<Shown>::new(names, needed).is_err());
    }
}
