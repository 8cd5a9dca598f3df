//! Properties that hold for every change, not only for those that somebody thought of.
//!
//! Each member of a response and each byte of its calldata is changed, one at a time. Then the order is refused, or the summary or
//! a warning changes, or the artefacts stay the same: nothing is signed that was not shown. `COUNTERSIGN_ALL_FIXTURES=1` changes
//! every accept case instead of a selection.
use countersign::{FAMILIES, Family, Policy};
use countersign_json::line::Outcome;
use countersign_testkit::lines::{accepted, output, run, warning_codes, with_fixtures};
use countersign_testkit::telling::Telling;
use countersign_testkit::tree::{escaped, quoted, unquoted};
use countersign_testkit::{Case, Tree, registry};
use proptest::prelude::*;
use serde_json::Value;

/// Returns the families of this build that have accept fixtures.
fn built() -> impl Iterator<Item = Family> {
    with_fixtures(FAMILIES)
}

fn all() -> bool {
    std::env::var_os("COUNTERSIGN_ALL_FIXTURES").is_some()
}

/// Returns the named cases of the families that are built, and every case of a family without named cases.
fn cases(named: fn(Telling) -> Vec<String>) -> Vec<Case> {
    let of_family = |family| {
        let named = Telling::of(family).filter(|_| !all()).map(named);
        accepted(family).into_iter().filter(move |case| named.as_ref().is_none_or(|named| named.contains(&case.id)))
    };
    built().flat_map(of_family).collect()
}

/// Returns whether a scalar is changed. Bytes that are written as integers are hundreds of similar scalars, and the family's own
/// tests change each of them, so a sixteenth is enough here.
fn is_sampled(at: &str) -> bool {
    let index = at.rsplit_once("/ptb_bytes/").and_then(|(_, index)| index.parse::<usize>().ok());
    all() || index.is_none_or(|index| index % 16 == 5)
}

/// Returns a case as a tree, without the key, because signing would only cost time.
fn unsigned(case: &Case) -> Tree {
    let mut tree = Tree::parse(&case.input);
    if tree.at("/wallet/secret_key").is_some() {
        tree.remove("/wallet/secret_key");
    }
    tree
}

/// Returns what a person reads, without the digests at the end. A digest changes whenever the artefacts do, so it shows nothing.
fn read_by_the_owner(output: &Value) -> Vec<&str> {
    let lines = output["summary"].as_array().into_iter().flatten().filter_map(Value::as_str).filter(|line| !line.starts_with("to sign: "));
    let warnings = output["warnings"].as_array().into_iter().flatten().filter_map(|warning| warning["message"].as_str());
    lines.chain(warnings).collect()
}

/// Returns other tokens to put in place of a scalar; `None` removes the member.
fn others(token: &str) -> Vec<(&'static str, Option<String>)> {
    let mut others = vec![("removed", None)];
    let mut put = |how, token: String| others.push((how, Some(token)));
    for (how, other) in
        [("null", "null"), ("false", "false"), ("empty text", "\"\""), ("empty array", "[]"), ("empty object", "{}"), ("zero", "0")]
    {
        put(how, other.to_owned());
    }
    if token.starts_with('"') {
        let text = unquoted(token);
        put("a space behind", quoted(&format!("{text} ")));
        put("a zero behind", quoted(&format!("{text}0")));
        put("a line break behind", quoted(&format!("{text}\nx")));
        put(
            "other case",
            quoted(
                &text
                    .chars()
                    .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                    .collect::<String>(),
            ),
        );
        if let Some(last) = text.chars().last() {
            let rest = &text[..text.len() - last.len_utf8()];
            put("cut", quoted(rest));
            put("another last character", quoted(&format!("{rest}{}", if last == '1' { '2' } else { '1' })));
        }
        if let Some(digits) = text.strip_prefix("0x") {
            put("without prefix", quoted(digits));
            put("a zero before", quoted(&format!("0x0{digits}")));
            if let Some(first) = digits.chars().next() {
                put("another first digit", quoted(&format!("0x{}{}", if first == '1' { '2' } else { '1' }, &digits[1..])));
            }
            let middle = digits.len() / 2;
            let flipped = if digits.get(middle..=middle) == Some("7") { "8" } else { "7" };
            put(
                "another middle digit",
                quoted(&format!("0x{}{flipped}{}", &digits[..middle], digits.get(middle + 1..).unwrap_or_default())),
            );
        }
        if text.parse::<u128>().is_ok() {
            put("as a number", text);
        }
    } else if let Ok(number) = token.parse::<u128>() {
        put("one more", (number + 1).to_string());
        put("one less", number.saturating_sub(1).to_string());
        put("beyond 64 bits", format!("{}", number + (1 << 64)));
        put("as a float", format!("{number}.0"));
        put("as text", quoted(token));
    }
    others.retain(|(_, other)| other.as_deref() != Some(token));
    others
}

fn changed(tree: &Tree, at: &str, other: Option<&str>) -> String {
    let mut tree = tree.clone();
    match other {
        Some(token) => tree.set(at, Tree::parse(token)),
        None => tree.remove(at),
    }
    tree.text()
}

/// Checks the property that the module describes. `Some` tells how it is broken.
fn unseen(before: &Value, after: &Value) -> Option<&'static str> {
    if after["ok"] != Value::Bool(true) {
        let internal = after["error"]["code"] == "internal";
        return internal.then_some("refused as internal: a rule is missing");
    }
    let same = before["artefacts"] == after["artefacts"] && before["order_id"] == after["order_id"];
    (!same && read_by_the_owner(before) == read_by_the_owner(after)).then_some("other artefacts, and nothing shows it")
}

#[test]
fn every_member_of_the_response_is_refused_shown_or_without_effect() {
    let mut wrongs = Vec::new();
    let mut runs = 0;
    for case in cases(|telling| telling.payloads) {
        let tree = unsigned(&case);
        let before = run(&tree.text());
        assert_eq!(before["ok"], Value::Bool(true), "{}", case.id);
        for (at, token) in tree.scalars("/response").into_iter().filter(|(at, _)| is_sampled(at)) {
            for (how, other) in others(&token) {
                let after = run(&changed(&tree, &at, other.as_deref()));
                wrongs.extend(unseen(&before, &after).map(|why| format!("{}: {at}, {how}: {why}", case.id)));
                runs += 1;
            }
        }
    }
    assert!(runs > 3_000, "only {runs} changes");
    assert!(wrongs.is_empty(), "{} of {runs}:\n{}", wrongs.len(), wrongs.join("\n"));
}

/// Returns the members that hold calldata in hex: `data` of EVM and Tron.
fn calldata(tree: &Tree) -> Vec<(String, Vec<u8>)> {
    let scalars = tree.scalars("/response/result").into_iter().filter(|(at, _)| at.ends_with("/data"));
    scalars.map(|(at, token)| (at, hex::decode(unquoted(&token).trim_start_matches("0x")).expect("calldata is hex"))).collect()
}

#[test]
fn every_byte_of_the_calldata_is_refused_or_shown() {
    let mut wrongs = Vec::new();
    let mut runs = 0;
    for case in cases(|telling| telling.payloads) {
        let tree = unsigned(&case);
        let before = run(&tree.text());
        for (at, data) in calldata(&tree) {
            let prefix = if tree.scalar(&at).unwrap().starts_with("0x") { "0x" } else { "" };
            for index in 0..data.len() {
                // The highest and the lowest bit of a byte are those that 64-bit, sign and CSV-flag readings drop or add.
                for bit in [0x01, 0x80] {
                    let mut other = data.clone();
                    other[index] ^= bit;
                    let after = run(&changed(&tree, &at, Some(&quoted(&format!("{prefix}{}", hex::encode(other))))));
                    // Another call always gives another artefact, so it must be refused or shown.
                    let seen = after["ok"] != Value::Bool(true) || read_by_the_owner(&before) != read_by_the_owner(&after);
                    if !seen || after["error"]["code"] == "internal" {
                        wrongs.push(format!("{}: {at}#{index}, bit {bit:#04x}", case.id));
                    }
                    runs += 1;
                }
            }
        }
    }
    assert!(runs > 3_000, "only {runs} changes");
    assert!(wrongs.is_empty(), "{} of {runs}:\n{}", wrongs.len(), wrongs.join("\n"));
}

/// Members of a record that only inform. A change in any other is refused, or shown to the owner, or is the same value in another
/// spelling.
const INFORMS: [&str; 9] = [
    "/source_swap/created_at",
    "/destination_swap/created_at",
    "/asset_price",
    "/required_confirmations",
    "/instant_refund_tx",
    "_timestamp",
    "/integrator",
    "/order/nonce",
    // Whether the solver has already funded its leg decides nothing.
    "/order/destination_swap/initiate_block_number",
];

/// Returns whether two tokens have the same value: none, or the same number, or the same letters.
fn same_value(token: &str, other: Option<&str>) -> bool {
    let plain = |token: &str| {
        let text = if token.starts_with('"') { unquoted(token) } else { token.to_owned() };
        match text.as_str() {
            "" | "0" | "null" => String::new(),
            _ => text.to_ascii_lowercase(),
        }
    };
    plain(token) == other.map(plain).unwrap_or_default()
}

#[test]
fn every_member_of_the_record_is_refused_shown_or_only_informs() {
    let mut wrongs = Vec::new();
    let mut runs = 0;
    for case in cases(|telling| telling.records) {
        let tree = unsigned(&case);
        // Unknown members of a record pass, because the interface grows.
        if tree.at("/order").is_none() || case.id.ends_with("-unknown-fields") {
            continue;
        }
        let before = run(&tree.text());
        assert_eq!(before["ok"], Value::Bool(true), "{}", case.id);
        for (at, token) in tree.scalars("/order") {
            for (how, other) in others(&token) {
                let after = run(&changed(&tree, &at, other.as_deref()));
                runs += 1;
                if let Some(why) = unseen(&before, &after) {
                    wrongs.push(format!("{}: {at}, {how}: {why}", case.id));
                }
                let silent = after["ok"] == Value::Bool(true) && read_by_the_owner(&before) == read_by_the_owner(&after);
                let destination_progress = at.starts_with("/order/destination_swap/")
                    && ["/initiate_tx_hash", "/filled_amount", "/current_confirmations"].iter().any(|end| at.ends_with(end));
                // Older records name no solver; the redeemer's pin identifies it.
                let unnamed = at == "/order/solver_id" && other.as_deref().is_none_or(|other| other == "null");
                let informs = destination_progress || unnamed || INFORMS.iter().any(|informs| at.contains(informs));
                if silent && !informs && !same_value(&token, other.as_deref()) {
                    wrongs.push(format!("{}: {at}, {how} ({token} to {other:?}): accepted, and nothing shows it", case.id));
                }
            }
        }
    }
    assert!(runs > 3_000, "only {runs} changes");
    assert!(wrongs.is_empty(), "{} of {runs}:\n{}", wrongs.len(), wrongs.join("\n"));
}

/// Writes a tree with another order of keys, other blanks between tokens and other escapes in text, which must not matter.
fn respelt(tree: &Tree, random: &mut Random, in_wallet: bool) -> String {
    let blank = |random: &mut Random| ["", " ", "\t", "\r\n  "][random.below(4)].to_owned();
    match tree {
        // A secret key written with escapes is refused on purpose, because the unescaped copy could not be wiped.
        Tree::Scalar(token) if token.starts_with('"') && !in_wallet && random.below(2) == 0 => escaped(&unquoted(token)),
        Tree::Scalar(token) => token.clone(),
        Tree::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| format!("{}{}", blank(random), respelt(item, random, in_wallet))).collect();
            format!("[{}{}]", items.join(","), blank(random))
        }
        Tree::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for index in (1..members.len()).rev() {
                members.swap(index, random.below(index + 1));
            }
            let members: Vec<_> = members
                .into_iter()
                .map(|(key, value)| {
                    let name = unquoted(key);
                    let key = if random.below(4) == 0 { escaped(&name) } else { key.clone() };
                    let value = respelt(value, random, in_wallet || name == "wallet");
                    format!("{}{key}{}:{}{value}", blank(random), blank(random), blank(random))
                })
                .collect();
            format!("{{{}{}}}", members.join(","), blank(random))
        }
    }
}

/// A small generator whose runs can be repeated (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % bound
    }
}

#[test]
fn spelling_does_not_change_the_artefacts() {
    for (index, case) in built().flat_map(accepted).enumerate() {
        let before = run(&case.input);
        let tree = Tree::parse(&case.input);
        for round in 0..if all() { 20 } else { 2 } {
            let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ ((index as u64) << 8) ^ round);
            let line = respelt(&tree, &mut random, false);
            assert_ne!(line, case.input);
            let after = run(&line);
            assert_eq!(before, after, "{}: {line}", case.id);
        }
    }
}

#[test]
fn the_same_line_gives_the_same_bytes() {
    for case in cases(|telling| telling.payloads) {
        let first = output(case.input.as_bytes(), registry(), &Policy::default());
        for _ in 0..3 {
            assert_eq!(first, output(case.input.as_bytes(), registry(), &Policy::default()), "{}", case.id);
        }
    }
}

/// Requires that the output is one line with one object: an id, a verdict, and either artefacts or an error.
fn is_one_answer(line: &[u8]) {
    let outcome = Outcome::from_line(line, registry(), &Policy::default());
    let text = serde_json::to_string(&outcome).expect("an outcome is always JSON");
    assert!(!text.contains('\n'), "more than one line: {text}");
    let answer: Value = serde_json::from_str(&text).expect("one object");
    let ok = answer["ok"].as_bool().expect("a verdict");
    assert_eq!(ok, outcome.is_ok());
    assert!(answer.get("id").is_some(), "no id");
    if ok {
        assert!(
            answer["artefacts"].is_object() && answer["summary"].is_array() && warning_codes(&answer).iter().all(|code| !code.is_empty())
        );
    } else {
        assert!(answer["error"]["code"].is_string() && answer["error"]["message"].is_string() && answer["error"]["at"].is_string());
        assert_ne!(answer["error"]["code"], "internal", "{answer}");
    }
}

/// Generates any JSON value, nested a little, with words of the protocol among its keys and texts.
fn any_json() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "id",
        "request",
        "response",
        "order",
        "wallet",
        "source",
        "destination",
        "asset",
        "owner",
        "amount",
        "status",
        "Ok",
        "result",
        "order_id",
        "initiate_transaction",
        "typed_data",
        "domain",
        "message",
        "types",
        "Initiate",
        "ethereum:usdc",
        "bitcoin:btc",
        "nonce",
        "secret_key",
        "0x",
        "0x00",
        "1",
        "",
    ]);
    let text = prop_oneof![word.prop_map(quoted), any::<String>().prop_map(|text| quoted(&text))];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_filter("JSON has no infinities", |value| value.is_finite()).prop_map(|value| format!("{value:e}")),
        "[0-9]{1,90}".prop_map(|digits| digits),
        text.clone(),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((text.clone(), inner), 0..8).prop_map(|members| format!(
                "{{{}}}",
                members.into_iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>().join(",")
            )),
        ]
    })
}

fn a_case() -> impl Strategy<Value = Tree> {
    let trees: Vec<_> = cases(|telling| telling.payloads).iter().map(|case| Tree::parse(&case.input)).collect();
    prop::sample::select(trees)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_give_one_answer(line in prop::collection::vec(any::<u8>(), 0..400)) {
        is_one_answer(&line);
    }

    #[test]
    fn any_json_gives_one_answer(line in any_json()) {
        is_one_answer(line.as_bytes());
    }

    #[test]
    fn any_json_in_any_place_gives_one_answer(tree in a_case(), place in any::<prop::sample::Index>(), json in any_json()) {
        let mut tree = tree;
        let scalars = tree.scalars("");
        let (at, _) = place.get(&scalars);
        // A parent as often as a leaf: whole objects are replaced as well.
        let at = if json.len().is_multiple_of(2) { at.rsplit_once('/').map_or(at.as_str(), |(parent, _)| parent) } else { at.as_str() };
        if !at.is_empty() {
            tree.set(at, Tree::parse(&json));
            is_one_answer(tree.text().as_bytes());
        }
    }

    #[test]
    fn any_bytes_in_any_place_give_one_answer(tree in a_case(), place in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 1..6)) {
        let mut line = tree.text().into_bytes();
        let at = place.index(line.len());
        for (index, byte) in bytes.into_iter().enumerate() {
            if let Some(to) = line.get_mut(at + index) {
                *to = byte;
            }
        }
        is_one_answer(&line);
    }

    #[test]
    fn a_line_cut_anywhere_gives_one_answer(tree in a_case(), place in any::<prop::sample::Index>()) {
        let line = tree.text();
        let end = place.index(line.len());
        is_one_answer(&line.as_bytes()[..end]);
        prop_assert!(!Outcome::from_line(&line.as_bytes()[..end], registry(), &Policy::default()).is_ok());
    }

    #[test]
    fn any_calldata_is_refused_or_shown(tree in a_case(), data in prop::collection::vec(any::<u8>(), 0..400), selector in prop::sample::select(vec![0x97ff_c7ae_u32, 0x4ede_0ab7, 0x13d4_a787, 0xa66a_8641, 0x095e_a7b3])) {
        for (at, before) in calldata(&tree) {
            let mut other = selector.to_be_bytes().to_vec();
            other.extend(&data);
            prop_assume!(other != before);
            let line = changed(&tree, &at, Some(&quoted(&format!("0x{}", hex::encode(other)))));
            is_one_answer(line.as_bytes());
            // Random words never contain the requested secret hash.
            prop_assert!(!Outcome::from_line(line.as_bytes(), registry(), &Policy::default()).is_ok());
        }
    }
}
