//! The fate of a transaction that was sent, read from honest endpoints and from those that lie in one place.

use countersign_core::reader::{
    Answer, Failure, FailureKind, Fate, Fault, Known, Machine, Next, Observation, Quorum, Reader, Request, RpcError, Submission, Verdict,
};

/// Reads a fate. `answer` gets the round, the place of the request in it, and the request. Returns it with the requests of each round.
pub fn read<M: Machine<Subject = Submission, Output = Fate>>(
    submission: &Submission,
    known: &Known,
    mut answer: impl FnMut(usize, usize, &Request) -> Answer,
) -> (Result<Observation<M>, Fault>, Vec<Vec<Request>>) {
    let mut reader = Reader::<M>::new(submission, known).unwrap();
    assert!(!format!("{reader:?}").contains(submission.payload.as_str()), "a redemption contains the secret");
    let mut rounds: Vec<Vec<Request>> = Vec::new();
    while let Next::Ask(requests) = reader.next() {
        let answers: Vec<_> = requests.iter().enumerate().map(|(place, request)| answer(rounds.len(), place, request)).collect();
        rounds.push(requests.to_vec());
        assert!(rounds.len() <= M::MAX_ROUNDS);
        reader.answer(&answers).unwrap();
    }
    (reader.finish(), rounds)
}

/// Answers that no honest endpoint gives to any request for a fate.
fn malformed() -> Vec<Answer> {
    let deep = "[".repeat(1_000);
    let texts = ["7", "-1", "\"x\"", "\"0x\"", "[]", "[[]]", "true", "1e400", "[", "", "{\"value\":{}}", "{\"value\":[7]}", &deep];
    let texts = texts.map(|text| text.as_bytes().to_vec());
    let mut all: Vec<_> = texts.iter().map(|text| Answer::result(text.clone())).collect();
    all.extend(texts.iter().map(|text| Answer::http(200, text.clone())));
    all.extend([[0, 0, 0, 0, 1], [1, 2, 3, 4, 5], [0x80, 0, 0, 0, 0]].map(|frame| Answer::http(200, frame)));
    all.extend([429, 500].map(|status| Answer::http(status, *b"try again")));
    all.extend([-1, 3, 40, -32_603, -32_000].map(|code| Answer::Error(RpcError::new(code, "no", None))));
    all.extend([FailureKind::Timeout, FailureKind::Status(503), FailureKind::NotJsonRpc].map(|kind| Answer::Failed(Failure::from(kind))));
    all
}

/// Requires that an endpoint which lies in any one place neither makes a transaction dead nor keeps it alive among three, and that an
/// answer in the wrong format never makes it dead by itself. Returns the fate that honest endpoints show.
pub fn one_lie_decides_nothing<M: Machine<Subject = Submission, Output = Fate>>(
    submission: &Submission,
    known: &Known,
    honest: impl Fn(&Request) -> Answer,
) -> Fate {
    let (truth, rounds) = read::<M>(submission, known, |_, _, request| honest(request));
    let truth = truth.unwrap();
    let is_dead = matches!(truth.output(), Fate::Dead(_));
    let question = |one: &Observation<M>| if matches!(one.output(), Fate::Dead(_)) { Ok(()) } else { Err(()) };
    let honest_answers: Vec<_> = rounds.iter().flatten().map(&honest).collect();
    let empty = [Answer::result(*b"null"), Answer::result(*b"{}"), Answer::http(200, *b"{}"), Answer::http(404, *b"")];
    for (round, requests) in rounds.iter().enumerate() {
        for (place, request) in requests.iter().enumerate() {
            let tell = |lie: &Answer| {
                read::<M>(submission, known, |at, here, request| if (at, here) == (round, place) { lie.clone() } else { honest(request) }).0
            };
            for lie in malformed() {
                let told = tell(&lie);
                let is_killed = told.as_ref().is_ok_and(|one| question(one).is_ok());
                assert!(is_dead || !is_killed, "{request:?}: {lie:?} in round {round}");
            }
            for lie in malformed().iter().chain(&honest_answers).chain(&empty) {
                let mut quorum = Quorum::new(["liar", "one", "another"], 2).unwrap();
                quorum.hear("liar", tell(lie));
                assert!(matches!(quorum.ask(question), Verdict::Open(_)), "one endpoint alone");
                for name in ["one", "another"] {
                    quorum.hear(name, Ok(truth.clone()));
                }
                assert_eq!(matches!(quorum.ask(question), Verdict::Stands(..)), is_dead, "{request:?}: {lie:?}");
            }
        }
    }
    truth.into_output()
}
