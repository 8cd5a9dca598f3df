//! What hosts may choose, and what their replies mean: the table that the bindings' tests read too.
#![cfg(test)]

use std::path::Path;

use countersign_swap::{Ask, Failure, JsonSetup, NOTHING_SENT, Reply, Swaps, UnixMillis};
use serde_json::Value;

fn read(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

fn table() -> Value {
    serde_json::from_slice(&read("bindings/hostile.json")).unwrap()
}

fn reply(text: &str) -> Result<Reply, Failure> {
    Reply::from_json(text.as_bytes(), Vec::new())
}

#[test]
fn only_true_is_a_yes() {
    let consent = &table()["consent"];
    for yes in consent["yes"].as_array().unwrap() {
        assert!(matches!(reply(&format!(r#"{{"consent":{yes}}}"#)), Ok(Reply::Consent(true))), "{yes}");
    }
    for no in consent["no"].as_array().unwrap() {
        assert!(matches!(reply(&format!(r#"{{"consent":{no}}}"#)), Ok(Reply::Consent(false))), "{no}");
    }
    for wrong in consent["wrong"].as_array().unwrap() {
        assert_eq!(&*reply(&format!(r#"{{"consent":{wrong}}}"#)).unwrap_err().at, "/reply/consent", "{wrong}");
    }
}

#[test]
fn only_true_says_that_documents_are_kept() {
    for wrong in table()["store"]["write"]["wrong"].as_array().unwrap() {
        let read = reply(&format!(r#"{{"stored":{wrong}}}"#));
        // A reply that is a truth value is one; the hosts' own rule is stricter.
        assert!(read.is_err() || wrong.is_boolean(), "{wrong}");
    }
}

#[test]
fn a_status_is_a_whole_number_of_its_range() {
    for wrong in table()["transport"]["status"]["wrong"].as_array().unwrap() {
        let is_number = wrong.as_u64().is_some_and(|status| u16::try_from(status).is_ok());
        assert_eq!(reply(&format!(r#"{{"status":{wrong}}}"#)).is_ok(), is_number, "{wrong}");
    }
}

#[test]
fn the_codes_after_which_nothing_was_sent_are_those_of_the_table() {
    let signer = &table()["signer"];
    let listed: Vec<i64> = signer["nothing_sent"].as_array().unwrap().iter().map(|code| code.as_i64().unwrap()).collect();
    assert_eq!(listed, NOTHING_SENT);
    for other in signer["maybe_sent"].as_array().unwrap() {
        assert!(!other.as_i64().is_some_and(|code| NOTHING_SENT.contains(&code)), "{other}");
        let read = reply(&format!(r#"{{"signer_failed":"no","code":{other}}}"#)).unwrap();
        // A code is text; whatever else is there says nothing.
        assert!(matches!(read, Reply::SignerFailed { code: None, .. }), "{other}");
    }
}

const NOW: UnixMillis = UnixMillis::from_millis(1_764_000_000_000);

fn open(options: &str) -> Swaps {
    let (options, registry) = (format!(r#"{{"service":"https://service.example"{options}}}"#), read("fixtures/registry.json"));
    let mut setup = JsonSetup::new(options.as_bytes(), &registry, NOW);
    setup.nodes = br#"{"base": ["https://base.example"], "bitcoin": ["https://bitcoin.example"]}"#;
    Swaps::open(setup.parse().unwrap()).unwrap()
}

#[test]
fn the_relayer_alone_takes_the_word_that_the_service_is_trusted() {
    const OWNER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    let wish = format!(
        r#"{{"from":"bitcoin:btc","to":"base:usdc","amount":"0.1 btc","receive_at":"{OWNER}",
             "from_owner":"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"}}"#
    );
    let account = |name: &str, more: &str| format!(r#","relayer":true,"accounts":{{"{name}":"{OWNER}"}}{more}"#);
    let (no_account, no_signer) = (Some("/accounts/base"), Some("/signers/base"));
    for (options, refused) in [
        (String::new(), no_account),
        (r#","relayer":true"#.to_owned(), no_account),
        (r#","relayer":true,"trust_the_service":false"#.to_owned(), no_account),
        (r#","relayer":true,"trust_the_service":true"#.to_owned(), None),
        (r#","trust_the_service":true"#.to_owned(), None),
        (format!(r#","accounts":{{"evm":"{OWNER}"}}"#), None),
        (account("base", ""), None),
        // An account that nobody signs for leaves the relayer alone, too.
        (account("base", r#","signers":[]"#), no_signer),
        (account("evm", r#","signers":["arbitrum","solana"]"#), no_signer),
        (account("evm", r#","signers":["base"]"#), None),
        (account("base", r#","signers":["evm"]"#), None),
        (account("base", r#","signers":[],"trust_the_service":true"#), None),
    ] {
        let is_refused = refused.is_some();
        let mut swaps = open(&options);
        let created = swaps.create_json(wish.as_bytes());
        assert_eq!(created.as_ref().err().map(|failure| &*failure.at), refused, "{options}");
        let advice = created.err().and_then(|failure| failure.expected).unwrap_or_default();
        assert_eq!(advice.contains("trust_the_service"), is_refused, "{options}");
        // Nothing is sent for a refused order.
        let needs = swaps.poll(NOW).needs;
        assert_eq!(needs.iter().any(|need| matches!(need.ask, Ask::Http(_))), !is_refused, "{options}");
    }
}
