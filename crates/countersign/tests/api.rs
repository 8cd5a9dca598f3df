//! The public surface: what crosses threads, what is printed, and what the facade answers where it cannot judge.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]
#![cfg(feature = "evm")]

mod fixture;

use countersign::case::{Case, Outcome, Prepared};
use countersign::core::{Order, Proposed, Signed, Terms, Unsigned, Verified};
use countersign::evm::{Evm, Key, ExternalSignature, Submission};
use countersign::json::{Node, Value, parse};
use countersign::{
    AnyProposed, AnySigned, AnyUnsigned, AnyVerified, AssetId, Code, Documents, Family, Policy, Refusal, Registry, SecretHash,
    SigningRequest, Summary, Warnings, evm, open,
};
use fixture::{REGISTRY, Tree, accepted, accepted_case, fixtures, read, run};

const CASE: &str = "evm-token-approval-exact";

/// However many fees a record lists, a few are shown and the rest counted.
#[test]
fn a_flood_of_fees_is_counted() {
    let mut tree: serde_json::Value = serde_json::from_str(&accepted_case("evm-record-bitcoin-v1").input).expect("JSON");
    tree["order"]["affiliate_fees"] = (0..50_000).map(|fee| serde_json::json!({ "fee": fee })).collect();
    let text = tree.to_string();
    let value = parse(text.as_bytes()).expect("JSON");
    let verified = Case::of(&value).and_then(|case| case.verify(&REGISTRY, &Policy::default())).expect("accepted");
    let fees: Vec<_> = verified.warnings().list().iter().filter(|warning| warning.code == Code::AffiliateFeesNotRequested).collect();
    assert_eq!(fees.len(), 17);
    assert_eq!(fees.last().expect("a warning").detail, "and 49984 fees more");
}

/// One account may be a solver under two ids: an order is judged as before if one of them is on both sides.
#[test]
fn a_solver_may_be_pinned_under_two_ids() {
    let mut pins: serde_json::Value = serde_json::from_str(&read(&fixtures().join("registry.json"))).expect("a registry");
    let solvers = pins["solvers"].as_array_mut().expect("solvers");
    let mut twice: Vec<_> =
        solvers.iter().filter(|solver| solver["chain"].as_str().is_some_and(|chain| chain.starts_with("bitcoin"))).cloned().collect();
    assert!(!twice.is_empty());
    for solver in &mut twice {
        solver["solver_id"] = "another id".into();
    }
    twice.append(solvers);
    *solvers = twice;
    let registry = Registry::from_json(pins.to_string().as_bytes()).expect("a registry");
    let mut judged = 0;
    for good in accepted(Family::Evm).into_iter().filter(|good| good.input.contains("\"order\":{")) {
        let value = parse(good.input.as_bytes()).expect("JSON");
        let verified = Case::of(&value).and_then(|case| case.verify(&registry, &Policy::default()));
        assert!(verified.is_ok(), "{}: {:?}", good.id, verified.err());
        judged += 1;
    }
    assert!(judged > 10, "{judged}");
}

#[test]
fn every_public_type_crosses_threads() {
    const fn crosses<T: Send + Sync>() {}
    crosses::<AnyProposed<'static>>();
    crosses::<AnyVerified>();
    crosses::<AnyUnsigned>();
    crosses::<AnySigned>();
    crosses::<Proposed<'static, Evm>>();
    crosses::<Verified<Evm>>();
    crosses::<Unsigned<Evm>>();
    crosses::<Signed<Evm>>();
    crosses::<Order<'static>>();
    crosses::<Terms>();
    crosses::<Case<'static>>();
    crosses::<Prepared>();
    crosses::<Outcome>();
    crosses::<Registry>();
    crosses::<Policy>();
    crosses::<Refusal>();
    crosses::<Summary>();
    crosses::<Warnings>();
    crosses::<SigningRequest>();
    crosses::<Value<'static>>();
    crosses::<SecretHash>();
    crosses::<AssetId>();
    crosses::<Key>();
    crosses::<ExternalSignature>();
    crosses::<Submission>();
    crosses::<evm::Deposit>();
    crosses::<evm::Wallet>();
    crosses::<evm::Unsigned>();
    crosses::<evm::Artefacts>();
    crosses::<evm::recover::Recovery>();
    const fn is_error<T: std::error::Error + 'static>() {}
    is_error::<Refusal>();
}

#[test]
fn the_display_of_every_code_is_one_line() {
    for code in Code::ALL {
        let refusal = Refusal::new(*code, "/a/b#4-36").with_expected("one\nthing").with_actual("another\r\n\u{2028}\u{202e}thing");
        for text in [code.to_string(), code.meaning().to_owned(), code.remedy().to_owned(), refusal.to_string(), format!("{refusal:?}")] {
            assert!(!text.is_empty(), "{code}");
            assert!(!text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202e}')), "{code}: {text:?}");
            assert!(!text.ends_with('.'), "{code}: {text}");
        }
        assert!(refusal.to_string().starts_with(&format!("{} at /a/b#4-36: ", code.name())), "{refusal}");
        assert!(refusal.message().contains(code.remedy()), "{refusal}");
    }
}

#[test]
fn codes_are_stable_words() {
    let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    for name in names {
        assert!(
            name.split('_').all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())),
            "{name}"
        );
    }
}

/// No state, key, value or outcome prints the secret key, in any of its spellings.
#[test]
fn debug_shows_no_secret() {
    for case in accepted(Family::Evm) {
        let Some(key) = Tree::parse(&case.input).scalar("/wallet/secret_key") else { continue };
        let digits = key.trim_start_matches("0x").to_lowercase();
        let number = hex::decode(&digits).unwrap();
        let value = parse(case.input.as_bytes()).unwrap();
        let case_of = Case::of(&value).unwrap();
        let policy = Policy::default();
        let proposed = open(case_of.documents, &REGISTRY, &policy).unwrap();
        let mut shown = vec![format!("{value:?} {value:#?} {case_of:?} {case_of:#?} {proposed:?}")];
        let wallet = Node::root(case_of.wallet.unwrap(), "/wallet");
        shown.push(format!("{wallet:?} {wallet:#?}"));
        let verified = proposed.verify().unwrap();
        shown.push(format!("{verified:?} {verified:#?}"));
        let unsigned = verified.prepare_json(wallet).unwrap();
        shown.push(format!("{unsigned:?} {unsigned:#?}"));
        let signed = unsigned.sign(&key).unwrap();
        shown.push(format!("{signed:?} {signed:#?}"));
        let outcome = Outcome::of_line(case.input.as_bytes(), &REGISTRY, &policy);
        shown.push(format!("{outcome:?} {outcome:#?} {}", serde_json::to_string(&outcome).unwrap()));
        let parsed = Key::parse(&key).unwrap();
        shown.push(format!("{parsed:?} {parsed:#?}"));
        for text in shown {
            let text = text.to_lowercase();
            assert!(!text.contains(&digits), "{}", case.id);
            assert!(!text.contains(&format!("{number:?}")), "{}", case.id);
        }
    }
}

/// A key that was refused is not repeated either, nor any long part of it.
#[test]
fn refusals_show_no_secret() {
    let base = Tree::parse(&accepted_case(CASE).input);
    let good = base.scalar("/wallet/secret_key").unwrap();
    for key in [
        "0x1111111111111111111111111111111111111111111111111111111111111112".to_owned(),
        format!("{good}00"),
        good[..64].to_owned(),
        good.replace("0x", "0X"),
        format!(" {good}"),
    ] {
        let mut line = base.clone();
        line.set("/wallet/secret_key", Tree::parse(&format!("\"{key}\"")));
        let outcome = Outcome::of_line(line.text().as_bytes(), &REGISTRY, &Policy::default());
        let refusal = outcome.result.as_ref().expect_err("another key").to_string();
        for text in [refusal, format!("{outcome:?}"), serde_json::to_string(&outcome).unwrap()] {
            let secret: String = key.chars().filter(char::is_ascii_hexdigit).collect();
            for start in 0..secret.len() - 16 {
                assert!(!text.to_lowercase().contains(&secret[start..start + 16].to_lowercase()), "{text}");
            }
        }
    }
}

fn refusal(at: &str, value: &str) -> (String, String) {
    let mut line = Tree::parse(&accepted_case(CASE).input);
    line.set(at, Tree::parse(&format!("\"{value}\"")));
    let got = run(&line.text());
    let text = |member: &str| got["error"][member].as_str().unwrap_or_default().to_owned();
    (text("code"), text("at"))
}

#[test]
fn what_is_not_pinned_is_refused_by_name() {
    let source = "/request/source/asset";
    let words = |code: &str, at: &str| (code.to_owned(), at.to_owned());
    assert_eq!(refusal(source, "nowhere:coin"), words("unknown_chain", source));
    assert_eq!(refusal(source, "base:nothing"), words("unknown_asset", source));
    // A chain that is known by name, but not pinned.
    let mut registry = Tree::parse(&read(&fixtures().join("registry.json")));
    registry.set("/assets", Tree::parse("[]"));
    registry.set("/solvers", Tree::parse("[]"));
    registry.set("/chains", Tree::parse("[]"));
    let registry = Registry::from_json(registry.text().as_bytes()).unwrap();
    let case = accepted_case(CASE);
    let got = Outcome::of_line(case.input.as_bytes(), &registry, &Policy::default()).result.unwrap_err();
    assert_eq!((got.code(), got.at()), (Code::UnknownAsset, source));
    assert_eq!(registry.family("base"), Ok(Family::Evm));
    assert_eq!(registry.family("nowhere"), Err(Code::UnknownChain));
}

/// The source asset's pinned chain decides the family, never the shape of the response.
#[test]
fn a_family_without_code_is_unsupported() {
    let unbuilt = [
        ("tron:trx", Family::Tron, "TSfPmyuqPyAJaXPBMe4RSvV3Lj2kyT1xzc"),
        ("sui:sui", Family::Sui, "0x79a1582388c16d0ab85904f320eb0527481391a9b9ab4b2ab46adc4c2564f9d0"),
        ("solana:sol", Family::Solana, "YH4btvqb4JBWSEJh22MuA231ekpJ5JqbBXQY1apJtKH"),
        ("starknet:strk", Family::Starknet, "0x00609190b1348bcc06da44d58c79709495c11a5a6f0b9e154e1209f2a17dd933"),
    ];
    for (asset, family, owner) in unbuilt {
        let mut line = Tree::parse(&accepted_case(CASE).input);
        line.set("/request/source/asset", Tree::parse(&format!("\"{asset}\"")));
        line.set("/request/source/owner", Tree::parse(&format!("\"{owner}\"")));
        let got = run(&line.text());
        if countersign::FAMILIES.contains(&family) {
            // Its own code judges it then, and finds no payload of its own.
            assert_ne!(got["error"]["code"], "unsupported_family", "{asset}");
            assert_eq!(got["ok"], serde_json::Value::Bool(false), "{asset}");
        } else {
            assert_eq!(
                (&got["error"]["code"], &got["error"]["at"]),
                (&"unsupported_family".into(), &"/request/source/asset".into()),
                "{asset}: {got}"
            );
        }
    }
}

/// One family's type does not take another family's order.
#[test]
fn a_proposed_order_is_of_its_own_family() {
    let line = accepted_case(CASE).input;
    let value = parse(line.as_bytes()).unwrap();
    let documents = Case::of(&value).unwrap().documents;
    let policy = Policy::default();
    let order = Order::open(documents, &REGISTRY, &policy).unwrap();
    assert_eq!(order.family(), Family::Evm);
    assert!(Proposed::<Evm>::new(order).is_ok());
    let bitcoin = r#"{"source":{"asset":"bitcoin:btc","amount":"50000"},"destination":{"asset":"ethereum:usdc","owner":"0xAE04EfaBe6775956E5BEC687f2B36B2A028cE7eB","amount":"1"}}"#;
    let request = parse(bitcoin.as_bytes()).unwrap();
    let order = Order::open(Documents { request: &request, ..documents }, &REGISTRY, &policy).unwrap();
    let refusal = Proposed::<Evm>::new(order).map(|_| ()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::UnsupportedFamily, "/request/source/asset"));
}

/// A registry that contradicts itself is refused before any order is judged by it.
#[test]
fn a_registry_that_contradicts_itself_is_refused() {
    let good = Tree::parse(&read(&fixtures().join("registry.json")));
    assert!(Registry::from_json(good.text().as_bytes()).is_ok());
    let Some(Tree::Array(chains)) = good.at("/chains").cloned() else { panic!("chains") };
    let Some(Tree::Array(assets)) = good.at("/assets").cloned() else { panic!("assets") };
    let (chain, asset) = (&chains[0], &assets[1]);
    let set = |at: &str, value: &str| {
        let mut registry = good.clone();
        registry.set(at, Tree::parse(value));
        registry.text()
    };
    for (what, text, code, at) in [
        ("a chain twice", set("/chains/-", &chain.text()), Code::RegistryMalformed, format!("/chains/{}", chains.len())),
        ("an asset twice", set("/assets/-", &asset.text()), Code::RegistryMalformed, format!("/assets/{}", assets.len())),
        ("another chain id", set("/assets/1/chain_id", "2"), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("an asset of another chain", set("/assets/1/chain", "\"base\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("an asset of no chain", set("/assets/1/id", "\"nowhere:usdc\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        (
            "a mistyped HTLC",
            set("/assets/1/htlc/address", "\"0x2A9eA852e504D0d531f83Df5D9EC1938F33D5B9e\""),
            Code::RegistryMalformed,
            "/assets/1".to_owned(),
        ),
        ("a token without address", set("/assets/1/token/address", "\"\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("a limit in coins", set("/assets/1/min_amount", "\"0.5\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("a malformed network", set("/chains/0/id", "\"evm:x\""), Code::RegistryMalformed, "/chains/0".to_owned()),
        ("a solver without account", set("/solvers/0/address", "\"0x12\""), Code::RegistryMalformed, "/solvers/0".to_owned()),
        ("a solver of no chain", set("/solvers/0/chain", "\"nowhere\""), Code::RegistryMalformed, "/solvers/0".to_owned()),
        ("chains of another type", set("/chains", "{}"), Code::WrongType, "/chains".to_owned()),
    ] {
        let refusal = Registry::from_json(text.as_bytes()).map(|_| ()).expect_err(what);
        assert_eq!((refusal.code(), refusal.location()), (code, at.as_str()), "{what}: {refusal}");
    }
    for member in ["/chains", "/assets"] {
        let mut registry = good.clone();
        registry.remove(member);
        let refusal = Registry::from_json(registry.text().as_bytes()).map(|_| ()).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::MissingField, member));
    }
}

/// What is pinned is written and read again without a change.
#[test]
fn a_registry_survives_its_own_file() {
    let first = serde_json::to_string(&*REGISTRY).unwrap();
    let again = Registry::from_json(first.as_bytes()).unwrap();
    assert_eq!(first, serde_json::to_string(&again).unwrap());
    assert_eq!(REGISTRY.assets().len(), again.assets().len());
    assert_eq!(REGISTRY.solvers(), again.solvers());
}

/// Every byte of the payload stands for a line that the owner reads.
#[test]
fn the_spans_of_a_summary_cover_the_payload() {
    for case in accepted(Family::Evm) {
        let value = parse(case.input.as_bytes()).unwrap();
        let verified = Case::of(&value).unwrap().verify(&REGISTRY, &Policy::default()).unwrap();
        let spans = verified.coverage();
        let tree = Tree::parse(&case.input);
        let titles: Vec<_> = verified.summary().lines().iter().map(|line| line.topic).collect();
        for at in [
            "/response/result/approval_transaction",
            "/response/result/initiate_transaction",
            "/response/result/transaction",
            "/response/result/typed_data",
        ] {
            for (at, token) in tree.scalars(at) {
                if token == "null" {
                    continue;
                }
                if at.ends_with("/data") {
                    let len = (token.len() - 4) / 2;
                    let mut next = 0;
                    for span in spans.iter().filter(|span| span.at == at) {
                        let (start, end) = span.bytes.unwrap();
                        assert_eq!(start, next, "{}: {at}", case.id);
                        next = end;
                    }
                    assert_eq!(next, len, "{}: {at}", case.id);
                } else {
                    assert!(
                        spans.iter().any(|span| at == span.at || at.starts_with(&format!("{}/", span.at))),
                        "{}: {at} is not covered",
                        case.id
                    );
                }
            }
        }
        for span in &spans {
            assert!(tree.at(&span.at).is_some(), "{}: {} does not exist", case.id, span.at);
            assert!(titles.contains(&span.topic), "{}: {:?} has no line", case.id, span.topic);
        }
    }
}
