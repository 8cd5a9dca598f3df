//! Endpoints that serve another chain, lag, disagree or return something else, and the description of a package.

use countersign::chains::UnixTime;
use std::collections::BTreeMap;

use countersign::sui::sui_sdk_types::{Address, Digest};
use countersign::{
    Funded, U256,
    evidence::{Hold, HtlcState},
};
use countersign_client::driver::Chains as _;
use countersign_client::{Response, TransportErrorKind};
use countersign_node::sui::{PackageDescription, UpgradeAuthority};
use countersign_node::{NodeError, Nodes};

use crate::sui::fake::{
    Executed, FUNDED, HEAD, Ledger, MAINNET, NOW, Network, Object, bytes, digest_of, made, order, package, package_id, terms,
};
use crate::sui::{RULE, funded, judge, one, read, read_with};
use countersign_testkit::chain::sui::proto::{Message, answer, error, frame};

/// The methods that a read of an order calls.
const METHODS: [&str; 4] = ["GetServiceInfo", "BatchGetObjects", "GetTransaction", "GetCheckpoint"];

/// A node whose answers are honest, except those of one method.
fn lying(method: &'static str, body: impl Fn() -> Result<Response, TransportErrorKind> + Send + Sync + 'static) -> Network {
    funded().answering(move |_, asked, _| (asked == method).then(&body))
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_other_chains_are_asked_nothing_else() {
    for chain_id in [MAINNET, "", "35834a8a", &digest_of(7)] {
        let nodes = one(|ledger| chain_id.clone_into(&mut ledger.chain_id)).connect();
        let error = nodes.sui("sui_testnet").unwrap().htlc(&terms().destination).await.unwrap_err();
        assert!(matches!(&error, NodeError::WrongChain { .. }), "{error}");
        assert_eq!(nodes.transport().methods("a.example"), ["GetServiceInfo", "BatchGetObjects"], "nothing after the first round");
    }
    let main = one(|ledger| MAINNET.clone_into(&mut ledger.chain_id)).connect_to("sui");
    assert_eq!(main.head("sui", 0).await.unwrap().height.get(), HEAD);
}

#[tokio::test(start_paused = true)]
async fn an_error_is_not_kept_as_the_identity_of_a_chain() {
    let nodes = one(|ledger| ledger.chain_id.clear()).connect();
    let sui = nodes.sui("sui_testnet").unwrap();
    assert_eq!(sui.htlc(&terms().destination).await.unwrap_err().code().name(), "node_wrong_chain");
    let busy = std::sync::atomic::AtomicBool::new(true);
    let nodes = funded()
        .answering(move |_, method, _| {
            let is_first = method == "GetServiceInfo" && busy.swap(false, std::sync::atomic::Ordering::Relaxed);
            is_first.then(|| Ok(Response::new(200, error(14, "busy"))))
        })
        .connect();
    let sui = nodes.sui("sui_testnet").unwrap();
    assert_eq!(sui.htlc(&terms().destination).await.unwrap_err().code().name(), "node_error");
    assert!(sui.htlc(&terms().destination).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn each_endpoint_shows_its_newest_checkpoint() {
    let nodes = funded().connect();
    let head = nodes.head("sui_testnet", 0).await.unwrap();
    assert_eq!((head.height.get(), head.hash.as_str(), head.time.as_secs()), (HEAD, hex::encode([9; 32]).as_str(), NOW - 3));
    assert!(nodes.has("sui_testnet") && nodes.sui("sui").is_err());
}

#[tokio::test(start_paused = true)]
async fn enough_endpoints_must_agree() {
    let (good, mut lie) = (Ledger::funded(), Ledger::funded());
    lie.objects[0].contents[162] ^= 1;
    lie.transactions[0].events.clear();
    for (ledgers, is_funded) in [
        (vec![good.clone(), good.clone(), lie.clone()], true),
        (vec![good.clone(), lie.clone(), lie.clone()], false),
        (vec![good.clone(), lie.clone()], false),
    ] {
        let judged = judge(Network::new(&ledgers)).await;
        assert_eq!(judged.is_ok(), is_funded, "{judged:?}");
    }
    // The same order in an object of another version is another answer.
    for change in [|object: &mut Object| object.version = Some(412), |object: &mut Object| object.digest = Some(digest_of(8))] {
        let mut other = good.clone();
        change(&mut other.objects[0]);
        assert_eq!(judge(Network::new(&[good.clone(), other])).await.unwrap_err(), "node_disagree");
    }
}

#[tokio::test(start_paused = true)]
async fn the_worst_of_the_agreeing_endpoints_counts() {
    let mut behind = Ledger::funded();
    (behind.height, behind.time, behind.digest) = (FUNDED + 4, (NOW - 50, 0), digest_of(6));
    let (state, seen) = read(Network::new(&[Ledger::funded(), behind])).await.unwrap().state().unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!(locked.elapsed, 62_682, "the most that has passed");
    assert_eq!((seen.height.get(), seen.depth, seen.head_time.as_secs()), (FUNDED + 4, 5, NOW - 50));
    assert_eq!(seen.hash, hex::encode([6; 32]));
}

#[tokio::test(start_paused = true)]
async fn an_old_head_is_stale() {
    let old = one(|ledger| ledger.time = (NOW - 121, 0));
    // Older than the order itself, which no node can know.
    assert_eq!(judge(old).await.unwrap_err(), "node_malformed");
    let quorum = read(funded()).await.unwrap();
    let held = Funded::judge(&terms(), &quorum, &RULE, UnixTime::from_secs(NOW + 200)).unwrap_err();
    assert!(matches!(held, Hold::Stale { .. }), "{held}");
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_becomes_shorter_is_unknown() {
    let nodes = funded().connect();
    let sui = nodes.sui("sui_testnet").unwrap();
    let height = |height| nodes.transport().ledgers.lock().unwrap()[0].height = height;
    sui.htlc(&terms().destination).await.unwrap();
    height(HEAD + 200);
    sui.htlc(&terms().destination).await.unwrap();
    // Nodes behind the same address are some checkpoints apart.
    height(HEAD + 72);
    sui.htlc(&terms().destination).await.unwrap();
    height(HEAD + 71);
    let error = sui.htlc(&terms().destination).await.unwrap_err();
    assert_eq!((error.code().name(), error.is_transient()), ("node_went_back", true));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_contradicts_itself_is_unknown() {
    let changes: [fn(&mut Ledger); 8] = [
        |ledger| ledger.transactions[0].checkpoint = Some(HEAD + 1),
        |ledger| ledger.objects[0].transaction = None,
        |ledger| ledger.objects[0].transaction = Some("not base58".to_owned()),
        |ledger| ledger.objects[0].version = None,
        |ledger| ledger.objects[0].digest = None,
        |ledger| ledger.digest = "short".to_owned(),
        |ledger| ledger.time = (NOW, 1_000_000_000),
        |ledger| ledger.time = (u64::MAX, 0),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        assert_eq!(judge(one(change)).await.unwrap_err(), "node_malformed", "{index}");
    }
    let pruned = read(one(|ledger| ledger.transactions.clear())).await.unwrap_err();
    assert!(pruned.to_string().contains("has pruned it") && pruned.is_transient(), "{pruned}");
}

#[tokio::test(start_paused = true)]
async fn answers_to_another_question_are_unknown() {
    let object = |object: &Object| {
        let id = object.id.unwrap().to_string();
        Message::default().message(1, &Message::default().text(2, &id).number(3, 1).text(6, &object.kind))
    };
    let (first, second, missing) =
        (object(&order(false)), object(&package(package_id())), Message::default().message(2, &Message::default().number(1, 5)));
    let busy = Message::default().message(2, &Message::default().number(1, 14).text(2, "busy"));
    for (results, code) in [
        (vec![], "node_malformed"),
        (vec![&first, &second], "node_malformed"),
        (vec![&first, &missing, &second, &missing], "node_malformed"),
        (vec![&second, &missing, &first], "node_malformed"),
        (vec![&first, &busy, &second], "node_error"),
        (vec![&busy, &missing, &second], "node_error"),
    ] {
        let body = answer(&Message::default().all(1, results));
        assert_eq!(judge(lying("BatchGetObjects", move || Ok(Response::new(200, body.clone())))).await.unwrap_err(), code);
    }
    // Another transaction than the requested one.
    let other = answer(&Message::default().message(1, &Executed::new(digest_of(7)).message()));
    assert_eq!(judge(lying("GetTransaction", move || Ok(Response::new(200, other.clone())))).await.unwrap_err(), "node_malformed");
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_answer_are_unknown() {
    let message = Message::default().text(1, "x");
    let good = answer(&message);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "node_malformed"),
        (b"<html>busy</html>".to_vec(), "node_malformed"),
        (br#"{"error":"busy"}"#.to_vec(), "node_malformed"),
        // An answer that is cut off at any place.
        (good[..3].to_vec(), "node_malformed"),
        (good[..7].to_vec(), "node_malformed"),
        (good[..8].to_vec(), "node_malformed"),
        (good[..good.len() - 1].to_vec(), "node_malformed"),
        // More than one answer, or something after it.
        ([&good[..], b"\n"].concat(), "node_malformed"),
        ([&good[..], &good].concat(), "node_malformed"),
        ([frame(0, &message.0), good.clone()].concat(), "node_malformed"),
        // A compressed message, a message of another kind, invalid trailers.
        ([frame(1, &message.0), frame(0x80, b"grpc-status:0\r\n")].concat(), "node_malformed"),
        ([frame(0, &[0xff; 9]), frame(0x80, b"grpc-status:0\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"\xff\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"grpc-status\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"grpc-status:0\r\ngrpc-status:0\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"grpc-status:-1\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"grpc-status:+0\r\n")].concat(), "node_malformed"),
        (frame(0x80, b"grpc-status:0\r\n"), "node_malformed"),
        // A length beyond the body.
        ([&[0, 0xff, 0xff, 0xff, 0xff][..], &message.0].concat(), "node_malformed"),
        // Errors with status 200, with and without a message.
        (error(14, "busy"), "node_error"),
        ([frame(0, &message.0), error(8, "too%20much")].concat(), "node_error"),
        (error(16, "\u{1b}[31m"), "node_error"),
    ];
    for method in METHODS {
        for (body, code) in cases.clone() {
            let shown = String::from_utf8_lossy(&body).into_owned();
            assert_eq!(judge(lying(method, move || Ok(Response::new(200, body.clone())))).await.unwrap_err(), code, "{method}: {shown:?}");
        }
        for status in [204, 302, 429, 500, 503] {
            let body = good.clone();
            let judged = judge(lying(method, move || Ok(Response::new(status, body.clone())))).await;
            assert_eq!(judged.unwrap_err(), "node_http_status", "{method}: {status}");
        }
        for kind in [TransportErrorKind::Timeout, TransportErrorKind::Connect, TransportErrorKind::TooLarge] {
            let judged = judge(lying(method, move || Err(kind))).await;
            assert_eq!(judged.unwrap_err(), kind.name(), "{method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_honest_answer_with_anything_more_or_less_is_unknown() {
    let recorded = made()["answers"].clone();
    let judged = async |method: &'static str, change: &dyn Fn(&[u8]) -> Response| {
        let honest = |asked: &str| bytes(recorded.get(asked).or_else(|| recorded.get(format!("{asked} Initiated"))).unwrap());
        let answers: BTreeMap<_, _> = METHODS.map(|asked| (asked, Response::new(200, honest(asked)))).into();
        let changed = change(&answers[method].body);
        let network = funded().answering(move |_, asked, _| Some(Ok(if asked == method { &changed } else { &answers[asked] }.clone())));
        judge(network).await
    };
    for method in METHODS {
        assert!(judged(method, &|honest| Response::new(200, honest)).await.is_ok());
        assert!(judged(method, &|honest| Response::new(200, honest).with_header("grpc-status", "0")).await.is_ok());
        let differs = judged(method, &|honest| Response::new(200, honest).with_header("grpc-status", "5")).await;
        assert_eq!(differs.unwrap_err(), "node_malformed", "{method}");
        let trailers = frame(0x80, b"grpc-status:0\r\n");
        for (before, after) in [(&[][..], &[0][..]), (&[], &trailers), (&trailers, &[]), (&[], b"\r\n")] {
            let more = judged(method, &|honest| Response::new(200, [before, honest, after].concat())).await;
            assert_eq!(more.unwrap_err(), "node_malformed", "{method}");
        }
        for left in (1..200).step_by(7) {
            let cut = judged(method, &|honest| Response::new(200, &honest[..honest.len().saturating_sub(left)])).await;
            assert_eq!(cut.unwrap_err(), "node_malformed", "{method} without {left} bytes");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_can_be_a_header_of_an_empty_response() {
    let with = |status: &'static str, body: Vec<u8>| {
        lying("BatchGetObjects", move || Ok(Response::new(200, body.clone()).with_header("grpc-status", status)))
    };
    assert_eq!(judge(with("14", Vec::new())).await.unwrap_err(), "node_error");
    assert_eq!(judge(with("0", Vec::new())).await.unwrap_err(), "node_malformed");
    assert_eq!(judge(with("ok", Vec::new())).await.unwrap_err(), "node_malformed");
    // A message without trailers was cut off, whatever the header contains.
    assert_eq!(judge(with("0", frame(0, b""))).await.unwrap_err(), "node_malformed");
    assert_eq!(judge(with("5", answer(&Message::default()))).await.unwrap_err(), "node_malformed", "header and trailers differ");
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_node_are_escaped_and_capped() {
    let words = format!("no\u{1b}[31m%0a{}", "x".repeat(4_000));
    let error = read(lying("BatchGetObjects", move || Ok(Response::new(200, error(13, &words))))).await.unwrap_err();
    let shown = error.to_string();
    assert!(shown.starts_with("a.example: no") && shown.len() < 2_000, "{shown}");
    assert!(!shown.contains('\u{1b}') && !shown.contains('\n'), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn the_driver_sees_an_unknown_and_no_path() {
    let nodes = lying("GetServiceInfo", || Err(TransportErrorKind::Timeout)).connect();
    let error = nodes.htlc(&terms().destination).await.unwrap_err();
    assert!(matches!(error, NodeError::Transport { .. }), "{error}");
    assert!(!error.to_string().contains("the-key"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn terms_without_a_registry_or_with_a_malformed_id_are_refused() {
    let at = async |change: fn(&mut countersign::evidence::HtlcTerms)| {
        let mut terms = terms();
        change(&mut terms.destination);
        match read_with(funded(), &terms).await.unwrap_err() {
            NodeError::Refused(refusal) => refusal.location().to_owned(),
            other => panic!("{other}"),
        }
    };
    assert_eq!(at(|terms| terms.htlc_registry = None).await, "/htlc_registry");
    assert_eq!(at(|terms| terms.htlc = None).await, "/htlc");
    assert_eq!(at(|terms| terms.swap_id.push('0')).await, "/swap_id");
    assert_eq!(at(|terms| terms.token = Some("a coin".to_owned())).await, "/token");
    // No order on Sui can have this amount, so only the record's own id is requested.
    let mut terms = terms();
    terms.destination.amount = U256::MAX;
    let quorum = read_with(funded(), &terms).await.unwrap();
    assert!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).is_err());
}

// ---- packages

async fn described(network: Network) -> Result<PackageDescription, NodeError> {
    let nodes: Nodes<Network> = network.connect();
    nodes.sui("sui_testnet").unwrap().describe_package(package_id()).await
}

#[tokio::test(start_paused = true)]
async fn a_package_says_who_can_upgrade_it() {
    let (capability, owner) = (Address::new([0xca; 32]), Address::new([0xaa; 32]));
    let published = |ledger: &mut Ledger| {
        let changed =
            vec![(Address::new([1; 32]), "0x2::coin::Coin<0x2::sui::SUI>".to_owned()), (capability, "0x2::package::UpgradeCap".to_owned())];
        ledger.transactions.push(Executed { changed, ..Executed::new(digest_of(4)) });
        let id = Some(capability);
        let owner = Some(Message::default().number(1, 1).text(2, &owner.to_string()));
        let contents = [capability.as_bytes(), package_id().as_bytes(), &[1, 0, 0, 0, 0, 0, 0, 0], &[128]].concat();
        ledger.objects.push(Object { id, kind: "0x2::package::UpgradeCap".to_owned(), owner, contents, ..Object::default() });
        ledger.versions = vec![1, 2];
    };
    let description = described(one(published)).await.unwrap();
    assert_eq!((description.digest, description.version), (Digest::new([3; 32]), 1));
    assert_eq!((description.original, description.newest_version), (package_id(), 2));
    let UpgradeAuthority { capability: actual, owner: by, policy, .. } = description.upgrade_authority.unwrap();
    assert_eq!((actual, by, policy), (capability, Some(owner), 128));

    // The capability was destroyed, or wrapped into another object.
    let gone = described(one(|ledger| {
        published(ledger);
        ledger.objects.pop();
    }));
    assert_eq!(gone.await.unwrap().upgrade_authority, None);
    // The node no longer has the transaction that published the package.
    assert_eq!(described(funded()).await.unwrap().upgrade_authority, None);
    let none = described(one(|ledger| drop(ledger.objects.remove(1)))).await.unwrap_err();
    assert_eq!(none.code().name(), "unknown_contract");
    let disagree = Network::new(&[Ledger::funded(), Ledger { versions: vec![1, 2], ..Ledger::funded() }]);
    assert_eq!(described(disagree).await.unwrap_err().code().name(), "node_disagree");
}
