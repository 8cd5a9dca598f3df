//! The documents agree with the code: the list of codes, the tests that docs/threats.md names, and citations of docs/spec.
#![cfg(test)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use countersign::chains::{Coin, CoinProfile, FeeTargets, KNOWN_CHAINS};
use countersign::{
    Code, Family, Severity,
    chains::{ChainProfile, Network, Pace},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_list_of_codes_is_the_code() {
    let mut text = String::from(
        "# Codes\n\nRefusals and warnings are one flat list; the names never change once released. Written by\n\
         `UPDATE=1 cargo test -p countersign-json --test docs`.\n\n| code | what it says | what to do |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        writeln!(text, "| `{code}` | {} | {} |", code.meaning(), code.remedy()).unwrap();
    }
    let path = root().join("docs/codes.md");
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == text, "docs/codes.md is behind crates/core/src/report/code.rs: run with UPDATE=1");
}

/// The codes of warnings are the last ones of the list.
#[test]
fn every_warning_is_listed_with_its_severity() {
    let text = fs::read_to_string(root().join("docs/spec/batch.md")).unwrap();
    let (_, section) = text.split_once("\n## Warnings\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let row = |name: &str| section.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
    let first = Code::ALL.iter().position(|code| *code == Code::AddressOnTrust).unwrap();
    for code in Code::ALL.iter().skip(first) {
        let word = format!("`{code}`");
        for (severity, name) in [(Severity::Danger, "danger"), (Severity::Info, "info")] {
            assert_eq!(row(name).contains(&word), code.severity() == severity, "{code} in the row {name}");
        }
        assert!(section.contains(&word), "{code} is not listed");
    }
}

#[test]
fn the_tables_of_known_chains_are_the_code() {
    let path = root().join("docs/spec/chains.md");
    let is = fs::read_to_string(&path).unwrap();
    let text = with_table(&with_table(&is, "known chains", &known_chains()), "coins", &coins());
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == text, "docs/spec/chains.md is behind crates/chains: run with UPDATE=1");
}

/// Replaces the text between `<!-- name -->` and `<!-- end of name -->`.
fn with_table(text: &str, name: &str, table: &str) -> String {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = text.split_once(&start).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    format!("{before}{start}\n{table}\n{end}{after}")
}

fn known_chains() -> String {
    let mut text = String::from(
        "| chain | id, other ids | contract, today, fastest | final | settle | margin | paid within | newest block |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let mut row = |name: &str, ids: &str, chain: &ChainProfile| {
        let rule = chain.finality;
        let Pace { contract, nominal, fastest, .. } = chain.pace;
        let paces = [contract, nominal, fastest].map(|millis| Duration::from_millis(millis).as_secs_f64().to_string()).join(", ");
        let coin =
            |units: u128| format!("from {}", units.div_euclid(if chain.family == Family::Evm { 10_u128.pow(18) } else { 10_u128.pow(8) }));
        let steps = chain.steps.iter().map(|(from, rule)| format!("; {}: {}", coin(*from), rule.finality)).collect::<String>();
        let (age, ahead) = (chain.max_head_age.as_secs(), chain.max_head_ahead().as_secs());
        let (settle, margin, hours) = (rule.settle, rule.margin, chain.payment_window.as_secs_f64() / 3_600.0);
        let finality = rule.finality;
        writeln!(text, "| {name} | {ids} | {paces} | {finality}{steps} | {settle} | {margin} | {hours} h | {age} s, {ahead} s |").unwrap();
    };
    for chain in KNOWN_CHAINS {
        let ids: Vec<_> = [chain.id].iter().chain(chain.aliases).map(|id| format!("`{id}`")).collect();
        let name = format!("`{}`{}", chain.name, if chain.test { " (test)" } else { "" });
        row(&name, &ids.join(", "), &chain.profile);
    }
    row("other EVM chains", "", ChainProfile::of("", &Network::Evm(0)));
    text
}

fn coins() -> String {
    let mut text = String::from(
        "| coin | base units | dust, sat/vB | relay, sat/vB | goes back | extension block | fee targets |\n|---|---|---|---|---|---|---|\n",
    );
    for coin in Coin::ALL.map(Coin::profile) {
        let CoinProfile { symbol, supply, min_fee_rate, max_reorganization, fee_targets, .. } = coin;
        let FeeTargets { slow, normal, fast } = fee_targets;
        let (dust, depth) =
            (coin.dust_factor.saturating_mul(3), coin.extension_depth.map_or_else(|| "none".to_owned(), |depth| depth.to_string()));
        writeln!(text, "| {symbol} | {supply} | {dust} | {min_fee_rate} | {max_reorganization} | {depth} | {slow}, {normal}, {fast} |")
            .unwrap();
    }
    text
}

/// Appends every file with this extension below a folder to one text.
fn all(folder: &Path, extension: &str, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all(&path, extension, into);
        } else if path.extension().is_some_and(|found| found == extension) {
            into.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_threats_name_exists() {
    let (mut fixtures, mut sources) = (String::new(), String::new());
    all(&root().join("fixtures/reject"), "json", &mut fixtures);
    all(&root().join("crates"), "rs", &mut sources);
    let threats = fs::read_to_string(root().join("docs/threats.md")).unwrap();
    let (mut named, mut missing) = (0, Vec::new());
    for row in threats.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| attack")) {
        let columns: Vec<_> = row.trim_matches('|').split(" | ").collect();
        let [.., codes, tests] = columns.as_slice() else { panic!("{row}") };
        for code in ticked(codes) {
            assert!(Code::ALL.iter().any(|known| known.name() == code), "no code {code}: {row}");
        }
        for test in ticked(tests) {
            named += 1;
            let function = sources.contains(&format!("fn {test}(")) || is_test_file(test);
            if !function && !has_case(&fixtures, test) {
                missing.push(test);
            }
        }
    }
    assert!(missing.is_empty(), "docs/threats.md names tests that do not exist: {missing:?}");
    assert!(named > 80, "{named}");
}

/// Returns whether some crate has a file of tests with this name.
fn is_test_file(name: &str) -> bool {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    crates.map(|entry| entry.unwrap().path().join(format!("tests/{name}.rs"))).any(|path| path.exists())
}

fn ticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns whether a fixture has this id, in which `*` matches any characters.
fn has_case(fixtures: &str, pattern: &str) -> bool {
    fixtures.split("\"id\": \"").skip(1).filter_map(|rest| rest.split('"').next()).any(|id| {
        let mut rest = Some(id);
        for (index, part) in pattern.split('*').enumerate() {
            rest = rest.and_then(|rest| match index {
                0 => rest.strip_prefix(part),
                _ => rest.split_once(part).map(|(_, rest)| rest),
            });
        }
        rest.is_some_and(|rest| rest.is_empty() || pattern.ends_with('*'))
    })
}

/// Phrases of the private dialect that this project once had, with what to write instead.
const PHRASES: [(&str, &str); 8] = [
    ("thousandths of a second", "milliseconds"),
    ("answers what", "returns"),
    ("stands twice", "duplicate"),
    (" twins", "payloads"),
    ("way out", "recovery"),
    ("wrong use", "usage error"),
    ("is no number", "not a number"),
    ("are no hex", "invalid hex"),
];

#[test]
fn the_private_dialect_stays_out() {
    let mut found = Vec::new();
    each_file(&root(), &mut |path, text| {
        // Labels that fixtures are derived from stay as they are.
        let own = path.ends_with("crates/json/tests/docs.rs") || path.extension().is_some_and(|extension| extension == "mjs");
        for (phrase, instead) in PHRASES.iter().filter(|(phrase, _)| !own && text.contains(phrase)) {
            found.push(format!("{}: \"{phrase}\", write \"{instead}\"", path.display()));
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_citation_of_the_specification_resolves() {
    let (mut cited, mut dead) = (0, Vec::new());
    each_file(&root(), &mut |path, text| {
        for citation in text.split("docs/spec/").skip(1) {
            let end = citation.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_-.#".contains(letter))).unwrap_or(citation.len());
            let (file, anchor) =
                citation[..end].trim_end_matches('.').split_once('#').unwrap_or((citation[..end].trim_end_matches('.'), ""));
            if !file.ends_with(".md") {
                continue;
            }
            cited += 1;
            let headings = fs::read_to_string(root().join("docs/spec").join(file)).unwrap_or_default();
            let mut anchors =
                headings.lines().filter_map(|line| line.strip_prefix('#')).map(|line| slug(line.trim_start_matches('#').trim()));
            if headings.is_empty() || !(anchor.is_empty() || anchors.any(|known| known == anchor)) {
                dead.push(format!("{}: docs/spec/{file}#{anchor}", path.display()));
            }
        }
    });
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(cited > 40, "{cited}");
}

/// Returns the anchor that renderers give a heading.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Visits every source and document of the project, but no generated files.
fn each_file(folder: &Path, visit: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let is_made = matches!(name.as_str(), "target" | "node_modules" | "corpus" | "artifacts") || name.starts_with('.');
            if !is_made {
                each_file(&path, visit);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md" || extension == "mjs") {
            visit(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_member_of_a_policy_is_documented() {
    let policy = serde_json::to_value(countersign::Policy::default()).unwrap();
    let members = policy.as_object().unwrap();
    assert!(members.len() > 15, "{members:?}");
    let text = fs::read_to_string(root().join("docs/spec/batch.md")).unwrap();
    for (member, default) in members {
        let row = text.lines().find(|line| line.contains(&format!("| `{member}` |"))).unwrap_or_else(|| panic!("{member}"));
        if let Some(number) = default.as_u64() {
            assert!(row.replace(',', "").contains(&format!("| {number} |")), "the default of {member} is {number}");
        }
    }
}
