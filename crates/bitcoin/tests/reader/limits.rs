//! Tests the limits on an endpoint's answers: an answer at the limit is read, and one above it is refused.

use countersign_bitcoin::bitcoin::{Amount, Txid};
use countersign_bitcoin::reader::{Htlc, NewestBlock, OnChain, Unspent};
use countersign_core::Code;
use countersign_core::reader::{Answer, Fault, Machine as _, Request};
use countersign_testkit::chain::bitcoin::{Ledger, terms, tree};
use serde_json::{Value, json};

use super::{asks, drive, edited, malformed, named, protocol};

/// A list of this many outputs of one unit.
fn listed(count: u32, is_rpc: bool) -> Value {
    let hash = "11".repeat(32);
    let output = |vout: u32| {
        if is_rpc {
            json!({"txid": hash, "vout": vout, "amount": 0.000_000_01, "height": 1})
        } else {
            json!({"txid": hash, "vout": vout, "value": 1, "status": {"confirmed": true, "block_height": 1, "block_hash": hash}})
        }
    };
    (0..count).map(output).collect()
}

#[test]
fn a_list_of_unspent_outputs_is_limited() {
    let ledger = Ledger::new();
    let subject = OnChain::new(named(), tree().script_pubkey());
    for is_rpc in [false, true] {
        let read = |count| {
            let answer = |_, _: usize, request: &Request| match request {
                scan if asks(scan, "scantxoutset") => edited(ledger.answer(scan), |found| found["unspents"] = listed(count, true)),
                list if asks(list, "/utxo") => Answer::http(200, listed(count, false).to_string().into_bytes()),
                output if asks(output, "gettxout") => Answer::result(*br#"{"value": 0.00000001}"#),
                other => ledger.answer(other),
            };
            drive::<Unspent>(&subject, &protocol(is_rpc), answer).0
        };
        // The most valuable ones are used, at most 200.
        let outputs = read(50_000).unwrap().into_output();
        assert_eq!((outputs.0.len(), outputs.sum()), (200, Amount::from_sat(200)), "{is_rpc}");
        assert_eq!(malformed(read(50_001)), Code::JsonTooLarge, "{is_rpc}");
    }
}

/// A block has at most 4,000,000 bytes, and a transaction or a proof is not longer.
#[test]
fn a_text_in_hex_is_limited() {
    let (ledger, _) = Ledger::funded(3);
    let read = |is_rpc, what: &str, digits: usize| {
        let text = "0".repeat(digits);
        let answer = |_, _: usize, request: &Request| match request {
            proof if asks(proof, what) && is_rpc => Answer::result(format!("\"{text}\"").into_bytes()),
            proof if asks(proof, what) => Answer::http(200, text.as_bytes()),
            other => ledger.answer(other),
        };
        malformed(drive::<Htlc>(&terms("bitcoin"), &protocol(is_rpc), answer).0)
    };
    // What is short enough is decoded, and is neither a transaction nor a proof.
    assert_eq!(read(true, "getrawtransaction", 8_000_000), Code::TransactionMalformed);
    assert_eq!(read(true, "getrawtransaction", 8_000_002), Code::HexLength);
    assert_eq!(read(false, "/merkleblock-proof", 8_000_000), Code::FundingMismatch);
    assert_eq!(read(false, "/merkleblock-proof", 8_000_002), Code::HexDigit);
}

#[test]
fn a_height_is_limited() {
    let ledger = Ledger::new();
    for is_rpc in [false, true] {
        let read = |height: u64| {
            let answer = |_, _: usize, request: &Request| match ledger.answer(request) {
                honest if asks(request, "getblockchaininfo") => edited(honest, |info| info["blocks"] = json!(height)),
                honest if asks(request, "/blocks") => edited(honest, |blocks| blocks[0]["height"] = json!(height)),
                honest => honest,
            };
            drive::<NewestBlock>(&named(), &protocol(is_rpc), answer).0
        };
        assert_eq!(read(0xffff_ffff).unwrap().output().height.get(), 0xffff_ffff);
        assert_eq!(malformed(read(0x1_0000_0000)), Code::NumberTooLarge, "{is_rpc}");
    }
}

/// The history of a script with too many outputs: each page holds so many mined transactions that pay one unit to it.
fn history(pages: &[usize], page: usize) -> Vec<u8> {
    let script = hex::encode(tree().script_pubkey().as_bytes());
    let entry = |number: usize| {
        let txid = format!("{:064x}", page * 1_000 + number + 1);
        let status = json!({"confirmed": true, "block_height": 1, "block_hash": "11".repeat(32)});
        json!({"txid": txid, "vout": [{"scriptpubkey": script, "value": 1}], "status": status})
    };
    let entries: Vec<_> = (0..pages.get(page).copied().unwrap_or_default()).map(entry).collect();
    json!(entries).to_string().into_bytes()
}

/// Reads unspent outputs through the history. Returns their number, the pages that were asked for, and the number of outputs of which the
/// server was asked whether they are spent.
fn read_pages(pages: &[usize]) -> (usize, usize, usize) {
    let (ledger, subject) = (Ledger::new(), OnChain::new(named(), tree().script_pubkey()));
    let (mut asked, mut last, mut outspends) = (0, None::<Txid>, 0);
    let answer = |_, _: usize, request: &Request| match request {
        list if asks(list, "/utxo") => Answer::http(400, *b""),
        Request::Get { path, .. } if path.contains("/txs") => {
            let after = last.map_or("/txs".to_owned(), |txid| format!("/txs/chain/{txid}"));
            assert!(path.ends_with(&after), "{path}: the page after the last one");
            let page = history(pages, asked);
            let entries: Value = serde_json::from_slice(&page).unwrap();
            last = entries.as_array().unwrap().last().map(|entry| entry["txid"].as_str().unwrap().parse().unwrap());
            asked += 1;
            Answer::http(200, page)
        }
        Request::Get { path, .. } if path.contains("/outspend/") => {
            outspends += 1;
            Answer::http(200, *br#"{"spent": false}"#)
        }
        other => ledger.answer(other),
    };
    let (outcome, rounds, _) = drive::<Unspent>(&subject, &protocol(false), answer);
    assert!(rounds <= Unspent::MAX_ROUNDS);
    (outcome.unwrap().into_output().0.len(), asked, outspends)
}

/// A page with fewer mined transactions than any server shows is the last one. Of too many pages, the newest 41 are read.
#[test]
fn the_pages_of_a_history_are_limited() {
    assert_eq!(read_pages(&[0]), (0, 1, 0));
    assert_eq!(read_pages(&[9, 25]), (9, 1, 9));
    assert_eq!(read_pages(&[10, 25, 9, 25]), (44, 3, 44));
    assert_eq!(read_pages(&[10, 10]), (20, 3, 20), "the page after a full one may be empty");
    assert_eq!(read_pages(&[25; 41]), (50, 41, 50));
    assert_eq!(read_pages(&[25; 60]), (50, 41, 50));
}

/// More than all coins cannot be unspent.
#[test]
fn unspent_outputs_are_not_more_than_the_supply() {
    const ALL: u64 = 21_000_000 * 100_000_000;
    let (ledger, subject) = (Ledger::new(), OnChain::new(named(), tree().script_pubkey()));
    let read = |values: &[u64]| {
        let output = |(vout, value): (usize, &u64)| {
            let hash = "11".repeat(32);
            json!({"txid": hash, "vout": vout, "value": value, "status": {"confirmed": true, "block_height": 1, "block_hash": hash}})
        };
        let list: Value = values.iter().enumerate().map(output).collect();
        let answer = |_, _: usize, request: &Request| {
            if asks(request, "/utxo") { Answer::http(200, list.to_string().into_bytes()) } else { ledger.answer(request) }
        };
        drive::<Unspent>(&subject, &protocol(false), answer).0.map(|outputs| outputs.into_output().sum().to_sat())
    };
    assert_eq!(read(&[ALL]), Ok(ALL));
    assert_eq!(read(&[ALL - 1, 1]), Ok(ALL));
    for values in [&[ALL + 1][..], &[ALL, 1], &[u64::MAX, u64::MAX]] {
        assert!(matches!(read(values), Err(Fault::Malformed(refusal)) if refusal.code() == Code::AmountAboveSupply), "{values:?}");
    }
}
