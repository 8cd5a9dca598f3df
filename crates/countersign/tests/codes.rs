//! Codes are stable words, and every refusal is one line that can be shown.
use countersign::json::At;
use countersign::{Blame, Code, Refusal};

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
        assert!(refusal.message().contains(refusal.remedy()), "{refusal}");
        // The message tells the party that made the mistake what to do, whether in the service's document or in the
        // user's.
        for at in [At::RESPONSE, At::RECORD, At::REQUEST, At::root("/nonce"), At::root("")] {
            let refusal = at.refuse(*code);
            let told = refusal.remedy();
            assert!(!told.is_empty() && refusal.message().ends_with(told), "{refusal}");
            assert!(refusal.blame() != Blame::Caller || !told.contains("report the service"), "{at}: {refusal}");
        }
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
