//! Texts for people: the summary shows every value that the response chose, and what the wallet adds.

use countersign_bitcoin::Bitcoin;
use countersign_testkit::{TestResult, fixture, outcome};

fn lines(id: &str) -> Vec<String> {
    let got = outcome::<Bitcoin>(&fixture::<Bitcoin>(id)).expect(id);
    serde_json::from_value(got["summary"].clone()).expect("lines")
}

#[test]
fn a_deposit_with_coins_shows_what_is_spent_paid_and_signed() -> TestResult {
    let case = fixture::<Bitcoin>("bitcoin-every-kind");
    let (line, whole) = (case.json(), case.whole()?);
    let lines = lines("bitcoin-every-kind");
    let all = lines.join("\n");
    let deposit = &whole["expect"]["artefacts"]["deposit"];
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let swap = &line["order"]["source_swap"];
    for shown in [
        text(&deposit["address"]),
        text(&deposit["uri"]),
        text(&swap["delegate"]),
        text(&swap["redeemer"]),
        text(&swap["secret_hash"]),
        text(&line["wallet"]["change_address"]),
        "144 blocks, about 24 h".to_owned(),
        "exactly 0.0005 BTC (50000 sat)".to_owned(),
        // By hand: 42 + 593 + 2 * 230 + 364 + 272 of inputs, 4 * (43 + 31) of outputs are 2,027 weight units.
        "fee 0.00001014 BTC (1014 sat), at least 2 sat/vB of 507 vB".to_owned(),
        "which signing changes".to_owned(),
    ] {
        assert!(all.contains(&shown), "{shown}\nis not in\n{all}");
    }
    for (index, utxo) in line["wallet"]["utxos"].as_array().expect("coins").iter().enumerate() {
        assert!(all.contains(&format!("{}:{}", text(&utxo["txid"]), utxo["vout"])), "{index}");
        assert!(all.contains(&format!("input {index}, digest ")), "{index}");
    }
    Ok(())
}

/// The address of one script, in the form of Litecoin's software until 2018 and since (the example of litecoin-project/p2sh-convert).
#[test]
fn an_old_address_of_litecoin_is_named_in_its_new_form() -> TestResult {
    let (old, today) = ("3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY", "MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh");
    let case = fixture::<Bitcoin>("bitcoin-without-record-litecoin");
    let owner = case.json()["request"]["source"]["owner"].as_str().ok_or("no owner")?.to_owned();
    let lines = |owner_now: &str| outcome::<Bitcoin>(&case.replaced(&owner, owner_now)).map(|got| got["summary"].to_string());
    assert!(lines(old)?.contains(&format!("its current form is {today}")), "{}", lines(old)?);
    assert!(!lines(today)?.contains("its current form is"));
    Ok(())
}

#[test]
fn many_coins_are_counted() {
    let lines = lines("bitcoin-many-coins");
    assert!(lines.iter().any(|line| line == "wallet: and 32 more outputs"), "{lines:#?}");
    assert_eq!(lines.last().map(String::as_str), Some("to sign: and 32 more digests"));
}

#[test]
fn an_address_on_trust_says_so() {
    let lines = lines("bitcoin-without-record");
    assert!(lines.iter().any(|line| line.contains("taken on trust")), "{lines:#?}");
    assert_eq!(lines.last().map(String::as_str), Some("to sign: nothing: any wallet can pay the address"));
}

#[test]
fn litecoin_is_shown_as_litecoin() {
    let lines = lines("bitcoin-every-kind-litecoin");
    assert!(lines.iter().any(|line| line.contains("exactly 0.0005 LTC (50000 sat)")), "{lines:#?}");
    assert!(!lines.join(" ").contains(" BTC"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("litecoin:ltc1p")));
}
