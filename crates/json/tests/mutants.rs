//! The list of mutants that no test notices: each entry names code that exists, and a reason.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test ends by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// A line of `docs/mutants.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: String,
    /// The name of the function or constant.
    function: String,
    /// The change, as cargo-mutants names it: `replace A with B in ..`, `delete ..`.
    mutation: String,
    /// Why no test can or need notice it.
    why: String,
}

/// Returns the text of an item, up to the next one with the same indentation.
fn item<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let words = [format!("fn {name}("), format!("fn {name}<"), format!("const {name}:"), format!("static {name}:")];
    let at = words.iter().find_map(|word| text.find(word.as_str()))?;
    let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
    let indent = text[start..].len() - text[start..].trim_start_matches(' ').len();
    let rest = &text[start..];
    let end = format!("\n{}}}\n", " ".repeat(indent));
    let length = if rest.lines().next()?.ends_with(';') { rest.find('\n')? } else { rest.find(&end)? + end.len() };
    Some(&rest[..length])
}

#[test]
fn every_survivor_is_explained_and_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = fs::read_to_string(root.join("docs/mutants.jsonl")).unwrap();
    let mut seen = BTreeSet::new();
    for line in list.lines() {
        let entry: Entry = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let text = fs::read_to_string(root.join(&entry.file)).unwrap_or_else(|error| panic!("{}: {error}", entry.file));
        let item = item(&text, &entry.function).unwrap_or_else(|| panic!("{} has no {}", entry.file, entry.function));
        // What is replaced or deleted is still there. Names of whole values are not looked for.
        let before = entry.mutation.strip_prefix("replace ").and_then(|rest| rest.split(" with ").next());
        let operator = before.filter(|word| word.chars().all(|letter| letter.is_ascii_punctuation()));
        assert!(
            operator.is_none_or(|operator| item.contains(operator)),
            "{}: {} has nothing to {}",
            entry.file,
            entry.function,
            entry.mutation
        );
        assert!(entry.why.len() > 20, "{line}: a reason");
        assert!(seen.insert((entry.file, entry.function, entry.mutation)), "twice: {line}");
    }
}
