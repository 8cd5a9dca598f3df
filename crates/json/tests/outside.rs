//! What is compared with outside truth: every encoding, hash, id and signature has a row in `docs/outside.jsonl`, which names the source
//! and the tests that compare. The rows become a table of docs/proofs.md.
//!
//! What needs a row is read from the code: artefacts, formulas, schemes, and every file that uses a hash, a curve or a text encoding.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use countersign::Family;
use serde::Deserialize;
use serde_json::Value;

/// A row of `docs/outside.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    what: String,
    /// The things of [`needed`] that this row is about.
    #[serde(default)]
    covers: Vec<String>,
    /// The files of [`hashing`] that this row is about.
    #[serde(default)]
    files: Vec<String>,
    /// Where the expected values come from.
    source: Option<String>,
    /// Each as `file::function`.
    #[serde(default)]
    tests: Vec<String>,
    /// Why nobody outside computes this value, in place of a source.
    inside: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rows() -> Vec<Row> {
    text("docs/outside.jsonl").lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Returns what is behind a prefix, up to the first character that no name has, in every line that has the prefix.
fn names<'t>(text: &'t str, prefix: &'t str) -> impl Iterator<Item = &'t str> {
    let lines = text.split("#[cfg(test)]\nmod ").next().unwrap().lines();
    let rest = lines.filter_map(move |line| line.trim_start().strip_prefix(prefix));
    rest.map(|rest| rest.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).next().unwrap())
}

/// Returns everything that must be compared with outside truth.
fn needed() -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for entry in fs::read_dir(root().join("fixtures/accept")).unwrap() {
        let path = entry.unwrap().path();
        let family = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            for artefact in leaves(&case["expect"]["artefacts"]) {
                needed.insert(format!("artefact:{family}.{artefact}"));
            }
        }
    }
    for family in Family::ALL {
        for what in ["address", "redeem", "refund", "stored"] {
            needed.insert(format!("{what}:{family}"));
        }
    }
    // Of Bitcoin, the id is the address of the tree.
    needed.insert("swap_id:bitcoin".to_owned());
    let ids = text("crates/chains/src/swap_id.rs");
    needed
        .extend(names(&ids, "pub fn ").filter(|name| !matches!(*name, "parse" | "solana_chain_id")).map(|name| format!("swap_id:{name}")));
    needed.extend(names(&text("crates/chains/src/taproot.rs"), "pub fn ").map(|name| format!("taproot:{name}")));
    let schemes = text("crates/core/src/state/request.rs");
    let (_, schemes) = schemes.split_once("impl Scheme {").unwrap();
    let schemes = schemes.split("\n}\n").next().unwrap();
    needed.extend(schemes.split("=> \"").skip(1).map(|rest| format!("scheme:{}", rest.split('"').next().unwrap())));
    needed
}

/// Returns the paths of the members that are neither an object nor a list.
fn leaves(value: &Value) -> Vec<String> {
    let below = |name: &str, value: &Value| {
        let dot = if name == "[]" { "" } else { "." };
        leaves(value)
            .into_iter()
            .map(|rest| if rest.is_empty() { name.to_owned() } else { format!("{name}{}{rest}", if rest == "[]" { "" } else { dot }) })
            .collect::<Vec<_>>()
    };
    match value {
        Value::Object(members) => members.iter().flat_map(|(name, value)| below(name, value)).collect(),
        Value::Array(items) => items.iter().flat_map(|item| below("[]", item)).collect(),
        _ => vec![String::new()],
    }
}

/// How a file uses a hash, a curve, or an encoding with a checksum or a proof.
const USES: [&str; 24] = [
    "sha2::",
    "sha3::",
    "keccak256(",
    "Keccak256::new",
    "sha256::Hash",
    "sha256d::Hash",
    "blake2",
    "poseidon",
    "Poseidon",
    "Pedersen",
    "k256::",
    "secp256k1::",
    "ed25519_dalek::",
    "starknet_crypto::",
    "starknet_rust_crypto::",
    "pathfinder_crypto::",
    "alloy_trie::",
    "alloy_rlp::",
    "chacha20poly1305::",
    "argon2::",
    "bech32::",
    "bs58::",
    "five8::",
    "tagged_hash(",
];

/// Returns the files of the libraries that use one of [`USES`] outside of their tests.
fn hashing() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each(&root().join("crates"), &mut |path| {
        let path = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
        let is_library =
            path.contains("/src/") && !["/testing", "testkit/", "tests.rs", "/published.rs"].iter().any(|part| path.contains(part));
        if is_library && path.ends_with(".rs") {
            let text = text(&path);
            let code: Vec<_> =
                text.split("#[cfg(test)]\nmod ").next().unwrap().lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            if USES.iter().any(|word| code.iter().any(|line| line.contains(word))) {
                found.insert(path);
            }
        }
    });
    found
}

fn each(folder: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { each(&path, visit) } else { visit(&path) }
    }
}

#[test]
fn every_encoding_hash_id_and_signature_is_compared_with_outside_truth() {
    let rows = rows();
    let of = |list: fn(&Row) -> &Vec<String>| -> BTreeSet<String> { rows.iter().flat_map(|row| list(row).clone()).collect() };
    let (covered, needed) = (of(|row| &row.covers), needed());
    assert!(needed.len() > 90, "{}", needed.len());
    let missing: Vec<_> = needed.difference(&covered).collect();
    let unknown: Vec<_> = covered.difference(&needed).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "without a row: {missing:#?}\nin no code: {unknown:#?}");
    let (named, hashing) = (of(|row| &row.files), hashing());
    let missing: Vec<_> = hashing.difference(&named).collect();
    let gone: Vec<_> = named.iter().filter(|file| !root().join(file).is_file()).collect();
    assert!(missing.is_empty() && gone.is_empty(), "without a row: {missing:#?}\nno such file: {gone:#?}");
}

#[test]
fn every_row_has_a_source_and_tests_that_exist() {
    for row in rows() {
        let is_inside = row.inside.is_some() && row.source.is_none() && row.tests.is_empty() && row.covers.is_empty();
        let is_outside = row.inside.is_none() && row.source.as_ref().is_some_and(|source| !source.is_empty()) && !row.tests.is_empty();
        assert!(is_inside || is_outside, "{}: a source with tests, or the reason why there is none", row.what);
        for test in &row.tests {
            let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{test}"));
            let text = text(file);
            assert!(text.contains(&format!("fn {name}(")) || text.contains(&format!("test(\"{name}\"")), "{}: no test {test}", row.what);
        }
    }
}

/// Appends every Rust file of tests below a folder to one text.
fn sources(folder: &Path, into: &mut String) {
    each(folder, &mut |path| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    });
}

#[test]
fn every_test_that_the_proofs_name_exists() {
    let mut all = String::new();
    for package in fs::read_dir(root().join("proofs")).unwrap() {
        let tests = package.unwrap().path().join("tests");
        if tests.is_dir() {
            sources(&tests, &mut all);
        }
    }
    sources(&root().join("sandbox/tests"), &mut all);
    let page = text("docs/proofs.md");
    let (_, table) = page.split_once("\n## Refused here, stolen there\n").unwrap();
    let rows = table.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut named = 0;
    for row in rows {
        for test in row.trim_matches('|').rsplit(" | ").next().unwrap().split('`').skip(1).step_by(2) {
            named += 1;
            assert!(all.contains(&format!("fn {test}(")), "docs/proofs.md names a test that does not exist: {test}");
        }
    }
    assert!(named > 15, "{named}");
}

/// Replaces the text between `<!-- name -->` and `<!-- end of name -->`.
fn with_table(text: &str, name: &str, table: &str) -> String {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = text.split_once(&start).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    format!("{before}{start}\n{table}\n{end}{after}")
}

#[test]
fn the_table_of_the_proofs_is_the_list() {
    let mut table = String::from("| what | source | tests |\n|---|---|---|\n");
    let mut inside = String::from("\n| value of our own | why there is no source |\n|---|---|\n");
    for row in rows() {
        match row.inside {
            Some(why) => writeln!(inside, "| {} | {why} |", row.what).unwrap(),
            None => {
                let mut files = BTreeMap::<&str, Vec<String>>::new();
                for test in &row.tests {
                    let (file, name) = test.split_once("::").unwrap();
                    files.entry(file).or_default().push(format!("`{name}`"));
                }
                let tests: Vec<_> = files.into_iter().map(|(file, names)| format!("{file}: {}", names.join(", "))).collect();
                writeln!(table, "| {} | {} | {} |", row.what, row.source.unwrap(), tests.join("; ")).unwrap();
            }
        }
    }
    let path = root().join("docs/proofs.md");
    let text = with_table(&fs::read_to_string(&path).unwrap(), "outside truth", &(table + &inside));
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == text, "docs/proofs.md is behind docs/outside.jsonl: run with UPDATE=1");
}

/// The stages and paths at which a rule could apply, with the heading of their column.
const STAGES: [(&str, &str); 9] = [
    ("before_order", "before an order"),
    ("before_paying", "before paying"),
    ("payment_retry", "each retry of the payment"),
    ("before_secret", "before the secret leaves"),
    ("redemption_retry", "each retry of the redemption"),
    ("refund", "refund"),
    ("offline", "offline"),
    ("foreign_wallet", "a foreign wallet's transaction"),
    ("bindings", "bindings"),
];

/// A row of `docs/rules.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    rule: String,
    /// The function that decides, as `file::function`. Only that one does.
    decides: String,
    cells: BTreeMap<String, Cell>,
}

/// Where a rule holds at one stage: the tests that show it, or why it does not apply, or both for each family.
#[derive(Deserialize)]
#[serde(untagged)]
enum Cell {
    Tests { tests: Vec<String> },
    Nothing { none: String },
    Families(BTreeMap<String, Self>),
}

/// Returns the names of tests of any language, after checking that each exists.
fn names_of(row: &str, tests: &[String]) -> String {
    let name = |test: &String| {
        let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{row}: {test}"));
        let text = text(file);
        let spellings = [format!("fn {name}("), format!("def {name}("), format!("fun {name}("), format!("\"{name}\""), format!("'{name}'")];
        assert!(spellings.iter().any(|spelling| text.contains(spelling)), "{row}: no test {test}");
        format!("`{name}`")
    };
    tests.iter().map(name).collect::<Vec<_>>().join(", ")
}

impl Cell {
    /// Returns the text of the table, after checking that every test exists.
    fn check(&self, rule: &str) -> String {
        match self {
            Self::Tests { tests } => {
                assert!(!tests.is_empty(), "{rule}: an empty cell");
                names_of(rule, tests)
            }
            Self::Nothing { none } => {
                assert!(none.len() > 5, "{rule}: say why it does not apply");
                format!("– {none}")
            }
            Self::Families(families) => {
                let known: BTreeSet<String> = Family::ALL.iter().map(ToString::to_string).chain(["others".to_owned()]).collect();
                assert!(families.keys().all(|family| known.contains(family)), "{rule}: an unknown family");
                families.iter().map(|(family, cell)| format!("{family}: {}", cell.check(rule))).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

#[test]
fn every_rule_says_for_each_stage_which_test_shows_it() {
    let list = text("docs/rules.jsonl");
    let rules: Vec<Rule> = list.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let mut table = String::new();
    for rule in &rules {
        let (file, function) = rule.decides.split_once("::").unwrap_or_else(|| panic!("{}: {}", rule.rule, rule.decides));
        let name = function.rsplit("::").next().unwrap();
        let code = text(file);
        let is_there = [
            format!("fn {name}"),
            format!("const {name}"),
            format!("struct {name}"),
            format!("def {name}"),
            format!("function {name}"),
            format!("{name}("),
        ];
        assert!(is_there.iter().any(|form| code.contains(form)), "{}: nothing in {file} is {name}", rule.rule);
        writeln!(table, "### {}\n\nDecided by `{function}` in {file}.\n\n| stage | shown by |\n|---|---|", rule.rule).unwrap();
        let stages: BTreeSet<_> = STAGES.iter().map(|(stage, _)| (*stage).to_owned()).collect();
        let named: BTreeSet<_> = rule.cells.keys().cloned().collect();
        assert_eq!(named, stages, "{}: a cell for each stage", rule.rule);
        let mut elsewhere = Vec::new();
        for (stage, heading) in STAGES {
            let cell = &rule.cells[stage];
            let text = cell.check(&rule.rule);
            match cell {
                Cell::Nothing { none } => elsewhere.push(format!("*{heading}* ({none})")),
                _ => writeln!(table, "| {heading} | {text} |").unwrap(),
            }
        }
        if !elsewhere.is_empty() {
            writeln!(table, "\nDoes not apply: {}.", elsewhere.join("; ")).unwrap();
        }
        table.push('\n');
    }
    let names: BTreeSet<_> = rules.iter().map(|rule| &rule.rule).collect();
    assert_eq!(names.len(), rules.len(), "a rule is listed twice");
    let path = root().join("docs/rules.md");
    let text = with_table(&fs::read_to_string(&path).unwrap(), "rules", &table);
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == text, "docs/rules.md is behind docs/rules.jsonl: run with UPDATE=1");
}

/// A row of `docs/expected.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Feature {
    group: String,
    feature: String,
    has: Has,
    /// Where it is; empty if nothing of it is there.
    r#where: String,
    #[serde(default)]
    tests: Vec<String>,
    /// What is missing, and why.
    lacks: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Has {
    Yes,
    Partly,
    No,
}

impl Feature {
    /// Returns the row of the table, after checking that a yes is shown by tests, and that the rest has a reason.
    fn check(&self) -> String {
        let Self { feature, r#where: place, tests, .. } = self;
        let lacks = self.lacks.as_deref().unwrap_or_default();
        let is_right = match self.has {
            Has::Yes => !place.is_empty() && !tests.is_empty() && lacks.is_empty(),
            Has::Partly => !place.is_empty() && lacks.len() > 10,
            Has::No => place.is_empty() && tests.is_empty() && lacks.len() > 10,
        };
        assert!(is_right, "{feature}: a yes has tests, a no has a reason, what is partly there has a place and a reason");
        let has = match self.has {
            Has::Yes => "yes",
            Has::Partly => "partly",
            Has::No => "no",
        };
        format!("| {feature} | {has} | {place} | {lacks} | {} |", names_of(feature, tests))
    }
}

#[test]
fn every_expected_feature_is_shown_by_tests_or_says_what_is_missing() {
    let list = text("docs/expected.jsonl");
    let rows: Vec<Feature> =
        list.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let names: BTreeSet<_> = rows.iter().map(|row| &row.feature).collect();
    assert_eq!(names.len(), rows.len(), "a feature is listed twice");
    let mut table = String::new();
    for of_group in rows.chunk_by(|one, next| one.group == next.group) {
        let group = &of_group[0].group;
        let heading = format!("## {group}\n");
        assert!(!table.contains(&heading), "{group}: listed in two places");
        writeln!(table, "{heading}\n| feature | there | where | what is missing, and why | shown by |\n|---|---|---|---|---|").unwrap();
        for row in of_group {
            writeln!(table, "{}", row.check()).unwrap();
        }
        table.push('\n');
    }
    let path = root().join("docs/expected.md");
    let text = with_table(&fs::read_to_string(&path).unwrap(), "features", &table);
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == text, "docs/expected.md is behind docs/expected.jsonl: run with UPDATE=1");
}
