//! Tests the list of mutants that no test detects. Each entry must name existing code and a reason, and every known
//! survivor must be listed.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

const EXPLAINED: &str = "docs/mutants.jsonl";
const FOUND: &str = "proofs/mutants/outcomes.jsonl";

/// A line of `docs/mutants.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: String,
    /// The name of the function or constant.
    function: String,
    /// The change, as cargo-mutants names it: `replace A with B in ..`, `delete ..`.
    mutation: String,
    /// How many mutants of the function this is about.
    #[serde(default = "one")]
    count: usize,
    /// Why no test can or need notice it.
    why: String,
}

const fn one() -> usize {
    1
}

/// A line of `proofs/mutants/outcomes.jsonl`: what was found about the mutants of a file.
#[derive(Deserialize)]
struct Found {
    file: String,
    /// The beginning of the SHA-256 of the file that was tried.
    hash: String,
    /// The survivors: the function, then the place and the change.
    missed: Vec<(String, String)>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn lines<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{file}: {error}: {line}"))).collect()
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
fn every_explanation_is_about_code_that_exists() {
    let mut seen = BTreeSet::new();
    for Entry { file, function, mutation, count, why } in lines(EXPLAINED) {
        let text = fs::read_to_string(root().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let item = item(&text, &function).unwrap_or_else(|| panic!("{file} has no {function}"));
        // What is replaced or deleted is still there. Names of whole values are not looked for.
        let before = mutation.strip_prefix("replace ").and_then(|rest| rest.split(" with ").next());
        let operator = before.filter(|word| word.chars().all(|letter| letter.is_ascii_punctuation()));
        assert!(operator.is_none_or(|operator| item.contains(operator)), "{file}: {function} has nothing to {mutation}");
        assert!(why.len() > 20 && count > 0, "{file}: {function}: {mutation}: a reason");
        assert!(seen.insert((file.clone(), function.clone(), mutation.clone())), "twice: {file}: {function}: {mutation}");
    }
}

#[test]
fn every_survivor_is_explained() {
    let mut explained = BTreeMap::<_, usize>::new();
    for entry in lines::<Entry>(EXPLAINED) {
        *explained.entry((entry.file, entry.function)).or_default() += entry.count;
    }
    let mut open = Vec::new();
    for Found { file, hash, missed } in lines(FOUND) {
        // These outcomes are about an older version of the file.
        if fs::read(root().join(&file)).map_or(true, |bytes| !hex::encode(Sha256::digest(bytes)).starts_with(&hash)) {
            continue;
        }
        let functions: BTreeSet<_> = missed.iter().map(|(function, _)| function).collect();
        for function in functions {
            let of_function: Vec<_> = missed.iter().filter(|(name, _)| name == function).map(|(_, mutant)| mutant).collect();
            if of_function.len() > explained.get(&(file.clone(), function.clone())).copied().unwrap_or_default() {
                open.push(format!("{file}: {function}: {of_function:?}"));
            }
        }
    }
    assert!(open.is_empty(), "neither killed nor explained in {EXPLAINED}:\n{}", open.join("\n"));
}
