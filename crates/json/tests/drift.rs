//! The forms of transactions, messages and interfaces that chains and wallets use: `docs/drift.jsonl`, a form a line, and the page
//! `docs/spec/drift.md` that is made from it.
#![cfg(test)]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use countersign::Code;
use serde::Deserialize;

/// The chains, in the order of the page.
const CHAINS: [&str; 7] = ["EVM", "Tron", "Starknet", "Solana", "Sui", "Bitcoin", "Litecoin"];

/// A row of `docs/drift.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    chain: String,
    form: String,
    /// Whether the chain has the form, and since when.
    status: String,
    /// Where that is documented.
    source: String,
    does: Does,
    how: String,
    /// The version that did it first.
    since: Option<String>,
    /// The codes of refusals and warnings.
    #[serde(default)]
    codes: Vec<String>,
    /// What sends the form: a fixture (`file::id`), a test (`file::function`), a file of tests, or a lie of the sandbox (`lie:name`).
    #[serde(default)]
    shown_by: Vec<String>,
    /// What is missing, where nothing sends it.
    none: Option<String>,
}

/// What is done with a form.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Does {
    Signed,
    Read,
    Refused,
    Unseen,
}

impl Does {
    const fn word(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Read => "read",
            Self::Refused => "refused",
            Self::Unseen => "**not seen**",
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rows() -> Vec<Row> {
    text("docs/drift.jsonl").lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Requires that what a row names exists, and returns how the page shows it.
fn shown(row: &Row, name: &str) -> String {
    if let Some(lie) = name.strip_prefix("lie:") {
        assert!(text("docs/lies.md").contains(&format!("| `{lie}` |")), "{}: no lie {lie}", row.form);
        return format!("lie `{lie}`");
    }
    let Some((file, name)) = name.split_once("::") else {
        assert!(root().join(name).is_file(), "{}: no file {name}", row.form);
        return name.to_owned();
    };
    let content = text(file);
    let spellings = [format!("fn {name}("), format!("\"id\":\"{name}\""), format!("\"id\": \"{name}\""), format!("\"{name}\",")];
    assert!(spellings.iter().any(|spelling| content.contains(spelling)), "{}: no {name} in {file}", row.form);
    format!("`{name}` ({file})")
}

#[test]
fn every_form_says_what_is_done_with_it_and_what_shows_it() {
    let codes: BTreeSet<_> = Code::ALL.iter().map(|code| code.name()).collect();
    let rows = rows();
    let mut forms = BTreeSet::new();
    for row in &rows {
        let form = &row.form;
        assert!(forms.insert((&row.chain, form)), "{form}: listed twice");
        assert!(CHAINS.contains(&row.chain.as_str()), "{form}: an unknown chain");
        assert!(
            row.source.starts_with("https://") && row.status.len() > 3 && row.how.len() > 3,
            "{form}: a status, a source and what is done"
        );
        assert!(row.codes.iter().all(|code| codes.contains(code.as_str())), "{form}: an unknown code among {:?}", row.codes);
        assert!(row.does != Does::Refused || !row.codes.is_empty(), "{form}: refused by name, so with its code");
        match row.does {
            // What is not seen has nothing that shows it, and says what is missing.
            Does::Unseen => assert!(row.shown_by.is_empty() && row.since.is_none() && row.none.is_some(), "{form}: say what is missing"),
            _ => {
                assert!(!row.shown_by.is_empty() && row.since.is_some() && row.none.is_none(), "{form}: name what shows it, and since when")
            }
        }
        for name in &row.shown_by {
            shown(row, name);
        }
    }
    for chain in CHAINS {
        assert!(rows.iter().any(|row| row.chain == chain), "{chain} has no row");
    }
}

#[test]
fn the_page_is_made_from_the_list() {
    let (rows, mut table) = (rows(), String::new());
    for chain in CHAINS {
        writeln!(
            table,
            "### {chain}\n\n| form | on the chain | what is done | since | shown by, or what is missing |\n|---|---|---|---|---|"
        )
        .unwrap();
        for row in rows.iter().filter(|row| row.chain == chain) {
            let codes: Vec<_> = row.codes.iter().map(|code| format!("`{code}`")).collect();
            let codes = if codes.is_empty() || row.codes.iter().all(|code| row.how.contains(code)) {
                String::new()
            } else {
                format!(" ({})", codes.join(", "))
            };
            let by: Vec<_> = row.shown_by.iter().map(|name| shown(row, name)).collect();
            let by = row.none.as_ref().map_or_else(|| by.join("; "), |none| format!("– {none}"));
            let (form, status, source, how) = (&row.form, &row.status, &row.source, &row.how);
            let since = row.since.as_deref().unwrap_or("–");
            writeln!(table, "| {form} | [{status}]({source}) | {}{codes}: {how} | {since} | {by} |", row.does.word()).unwrap();
        }
        table.push('\n');
    }
    let path = root().join("docs/spec/drift.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- forms -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of forms -->").unwrap();
    let made = format!("{before}<!-- forms -->\n\n{table}<!-- end of forms -->{after}");
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == made, "docs/spec/drift.md is behind docs/drift.jsonl: run with UPDATE=1");
}
