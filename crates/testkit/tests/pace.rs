//! How fast a chain is, as its readers measure it, and what that decides.
#![cfg(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana", feature = "sui", feature = "bitcoin"))]
use countersign::reader::{Answer, Finding, HtlcObservation, HtlcQuorum, HtlcReader, Known, Request};
use countersign::{Funded, Policy, VerifiedRecord, chains::UnixTime, evidence::Hold, verify_record};
use countersign_testkit::chain::{evm, solana, starknet, tron};
use countersign_testkit::lines::accepted_case;
use countersign_testkit::registry;

/// The clock of the chains in memory.
const NOW: u64 = 1_800_000_000;

fn open(id: &str) -> VerifiedRecord {
    let line = accepted_case(id).json();
    let request = countersign::CreateOrder::from_json(line["request"].to_string().as_bytes()).unwrap();
    let (response, order) = (line["response"].to_string(), line["order"].to_string());
    let proposal = countersign::Proposal::new(&request, response.as_bytes()).with_record(order.as_bytes());
    verify_record(proposal, registry(), &Policy::default()).unwrap()
}

/// Lets a reader of the destination talk to a chain.
fn read(record: &VerifiedRecord, chain: impl Fn(&Request) -> Answer) -> HtlcObservation {
    let mut reader = HtlcReader::new(&record.terms.destination, &Known::default()).unwrap();
    while !reader.requests().is_empty() {
        let answers: Vec<_> = reader.requests().iter().map(&chain).collect();
        reader.answer(&answers).unwrap();
    }
    reader.finish().unwrap()
}

fn pace(record: &VerifiedRecord, chain: impl Fn(&Request) -> Answer) -> Option<u64> {
    let Finding { seen, .. } = read(record, chain).finding().clone();
    seen.pace
}

/// Blocks that share a second, and chains ten times faster and slower than their row. The measured pace is never slower than the true one.
#[test]
fn each_reader_measures_the_pace_of_its_chain() {
    let record = open("evm-record-evm-v1");
    let evm = |block_millis, latest| {
        let chain = evm::Evm {
            chain_id: 8453,
            block_millis,
            latest,
            safe: Some(latest - 900),
            finalized: None,
            ..evm::Evm::funded(&record.terms.destination)
        };
        pace(&record, move |request| chain.answer(request))
    };
    let latest = evm::INITIATED + 1_000;
    for (block_millis, measured) in [(20, None), (200, Some(198)), (2_000, Some(1_998)), (20_000, Some(19_998))] {
        assert_eq!(evm(block_millis, latest), measured, "{block_millis}");
    }
    // A chain of 20 ms shows its pace once the funding is half a minute old.
    assert_eq!(evm(20, evm::INITIATED + 3_000), Some(19));

    let record = open("evm-record-tron");
    let chain = tron::Tron::funded(&record.terms.destination);
    assert_eq!(pace(&record, |request| chain.answer(request)), Some(2_947), "19 blocks of 3 s, less a second");
    let record = open("starknet-to-2025-11");
    let chain = starknet::Chain::funded(&record.terms.destination);
    let measured = pace(&record, |request| chain.answer(request)).unwrap();
    assert!((3_800..4_000).contains(&measured), "{measured}");

    let record = open("evm-record-solana");
    let terms = &record.terms.destination;
    let funded = solana::Chain::funded(terms);
    let times = |age: u64| {
        let time = solana::Chain::funded(terms).time - age;
        let chain = solana::Chain::funded(terms);
        move |request: &Request| match chain.answer(request) {
            Answer::Result(text) => {
                let text = String::from_utf8(text.to_vec()).unwrap();
                Answer::result(text.replace(r#""blockTime":1,"#, &format!(r#""blockTime":{time},"#)).into_bytes())
            }
            other => other,
        }
    };
    let slots = funded.finalized - funded.mined.first().unwrap().slot;
    assert_eq!(pace(&record, times(slots * 200 / 1_000)), (slots * 200 / 1_000 >= 30).then(|| (slots * 200 / 1_000 - 1) * 1_000 / slots));
    assert_eq!(pace(&record, times(100)), Some(99_000 / slots));
    assert_eq!(pace(&record, times(29)), None, "too short");
}

/// Blocks of 0.2 s, and heads a minute old. The solver's refund is due after 1,350 blocks of the 3,600, some of which have passed unseen.
#[test]
fn the_secret_stays_where_blocks_are_ten_times_faster_than_they_were() {
    let record = open("evm-record-evm-v1");
    let funded = |block_millis, left: u64| {
        let latest = evm::INITIATED + record.terms.destination.timelock - left;
        let chain = evm::Evm {
            chain_id: 8453,
            block_millis,
            latest,
            time: NOW - 60,
            safe: Some(latest - 500),
            finalized: None,
            ..evm::Evm::funded(&record.terms.destination)
        };
        let mut quorum = HtlcQuorum::new(["one"], 1).unwrap();
        quorum.hear("one", Ok(read(&record, move |request| chain.answer(request))));
        let rule = Policy::default()
            .finality_of(registry().asset(record.terms.destination.asset.as_str()).unwrap(), record.terms.destination.amount);
        Funded::judge(&record.terms, &quorum, &rule, UnixTime::from_secs(NOW))
    };
    for block_millis in [20, 200, 2_000, 20_000] {
        let hold = funded(block_millis, 1_350).unwrap_err();
        assert!(matches!(hold, Hold::NoTime { .. }), "{block_millis}: {hold}");
    }
}
