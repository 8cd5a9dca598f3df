//! The sentence of every accept case, in every language, has every value of the terms.
use crate::common;

use common::{FAMILIES, with_case};
use countersign::report::{TypedValue, amount};
use countersign::{Code, Policy};
use countersign_testkit::{TestResult, fixtures_of};
use countersign_view::{Catalogue, CatalogueError, Documents, LANGUAGES, Message, Page, Sentence};

#[test]
fn no_language_loses_a_value() -> TestResult {
    let mut seen = 0;
    for family in FAMILIES {
        for case in fixtures_of(family)? {
            with_case(&case.input, |documents| {
                let page = Page::new(documents, case.registry, &Policy::default());
                let order = page.verdict().expect(&case.id);
                let terms = order.terms();
                let sentence = Sentence::new(&terms, order.warnings());
                assert_eq!(sentence.message() == Message::LockWithoutTerms, terms.timelock.is_none(), "{}", case.id);
                for (language, sign) in LANGUAGES.into_iter().zip([".", ","]) {
                    let text = sentence.in_language(&Catalogue::of(language).unwrap());
                    let number = |text: String| text.replace('.', sign);
                    for (name, value) in sentence.values() {
                        let shown = match value {
                            TypedValue::Amount(amount) => {
                                format!("{} {}", number(amount.whole_units().to_string()), amount.symbol.to_ascii_uppercase())
                            }
                            TypedValue::Timelock(timelock) => number(amount::round_duration(timelock.nominal_millis).0),
                            other => other.to_string(),
                        };
                        assert!(text.contains(&shown), "{} {language}: {name} {shown} is not in {text}", case.id);
                    }
                    seen += 1;
                }
            });
        }
    }
    assert!(seen > 400, "{seen}");
    Ok(())
}

#[test]
fn the_languages_pass_the_check_that_other_catalogues_must_pass() -> TestResult {
    for (language, messages) in [("en", include_str!("../locales/en.ftl")), ("de", include_str!("../locales/de.ftl"))] {
        assert!(LANGUAGES.contains(&language));
        assert_eq!(Catalogue::new(language, messages)?.language(), language);
    }
    assert_eq!(LANGUAGES.len(), 2);
    Ok(())
}

#[test]
fn a_catalogue_that_loses_a_value_is_refused() {
    let english = include_str!("../locales/en.ftl");
    // A value that only one variant of a plural loses.
    let one_hour = english.replace("[one] { $count } hour", "[one] an hour");
    assert_ne!(one_hour, english);
    for (messages, error) in [
        (english.replace("{ $payout }", "your address"), CatalogueError::LosesValue { message: "lock", value: "payout" }),
        (one_hour, CatalogueError::LosesValue { message: "lock", value: "refund" }),
        (english.replace("{ refund-time }", "{ missing }"), CatalogueError::Message("lock")),
        (english.replace("lock-without-terms =", "other ="), CatalogueError::Message("lock-without-terms")),
        (english.replace("lock-for-promise =", "other ="), CatalogueError::Message("lock-for-promise")),
        (english.replace("decimal-sign = .", ""), CatalogueError::Message("decimal-sign")),
        (english.replace("decimal-sign = .", "decimal-sign = 0"), CatalogueError::Message("decimal-sign")),
    ] {
        assert_eq!(Catalogue::new("en", &messages).unwrap_err(), error);
    }
    assert!(matches!(Catalogue::new("en", "lock = {"), Err(CatalogueError::Syntax(_))));
    assert!(matches!(Catalogue::new("not a tag", english), Err(CatalogueError::Language(_))));
}

/// Every accept case, in every language: what a warning denies, the sentence does not promise.
#[test]
fn a_sentence_promises_nothing_that_a_warning_denies() -> TestResult {
    let (mut promises, mut without_refund) = (0, 0);
    for family in FAMILIES {
        for case in fixtures_of(family)? {
            with_case(&case.input, |documents| {
                let page = Page::new(documents, case.registry, &Policy::default());
                let order = page.verdict().expect(&case.id);
                let has = |code: Code| order.warnings().list().iter().any(|warning| warning.code() == code);
                let is_promise = has(Code::RedeemKeyNotYours) || has(Code::NoOrderRecord);
                let is_services = has(Code::RefundKeyNotYours) && order.terms().timelock.is_some();
                let sentence = Sentence::new(&order.terms(), order.warnings());
                for (language, promise, refund) in
                    [("en", "the service promises", "only the service can refund"), ("de", "der Dienst verspricht", "nur der Dienst kann")]
                {
                    let text = sentence.in_language(&Catalogue::of(language).unwrap());
                    assert_eq!((text.contains(promise), text.contains(refund)), (is_promise, is_services), "{}: {text}", case.id);
                }
                let html = page.to_html();
                assert_eq!(html.contains("The service promises at least"), is_promise, "{}", case.id);
                promises += usize::from(is_promise);
                without_refund += usize::from(is_services);
            });
        }
    }
    assert!(promises > 100 && without_refund > 2, "{promises} {without_refund}");
    Ok(())
}

/// To a German reader 12.345 is twelve thousand.
#[test]
fn numbers_have_the_decimal_sign_of_the_language() -> TestResult {
    let case = fixtures_of(countersign::Family::Bitcoin)?.into_iter().find(|case| case.id == "bitcoin-address").unwrap();
    with_case(&case.input, |documents: Documents<'_>| {
        let page = Page::new(documents, case.registry, &Policy::default());
        let sentence = Sentence::new(&page.verdict().unwrap().terms(), page.verdict().unwrap().warnings());
        let text = sentence.in_language(&Catalogue::of("de").unwrap());
        assert!(text.starts_with("0,0005 BTC auf Bitcoin Testnet sperren"), "{text}");
    });
    Ok(())
}

#[test]
fn the_sentence_reads_as_a_person_would_say_it() -> TestResult {
    let case = fixtures_of(countersign::Family::Bitcoin)?.into_iter().find(|case| case.id == "bitcoin-address").unwrap();
    with_case(&case.input, |documents: Documents<'_>| {
        let page = Page::new(documents, case.registry, &Policy::default());
        let sentence = Sentence::new(&page.verdict().unwrap().terms(), page.verdict().unwrap().warnings());
        assert_eq!(
            sentence.to_string(),
            "Lock 0.0005 BTC on Bitcoin Testnet until a secret is shown; receive at least 49 USDC on Base Sepolia at \
             0x8B68811FD7257C126E9d6ac074a76C5AE34424c4; only the service can refund, after about 24 hours."
        );
        let json = serde_json::to_value(&sentence).unwrap();
        assert_eq!(
            (json["message"].as_str(), json["values"]["payout"].as_str()),
            (Some("lock-without-refund"), Some("0x8B68811FD7257C126E9d6ac074a76C5AE34424c4"))
        );
    });
    Ok(())
}
