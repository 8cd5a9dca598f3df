//! Each call that `docs/languages.md` names exists in the sources of its language, and each call of Kotlin and Swift is named there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use countersign_testkit::project;

/// A language: how its sources declare something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Rust,
    JavaScript,
    Python,
    /// Kotlin and Swift, whose names are those of the Rust sources of `bindings/ffi` in camel case.
    Ffi,
}

const LANGUAGES: [Language; 4] = [Language::Rust, Language::JavaScript, Language::Python, Language::Ffi];

/// The text of files with an ending, in a folder and those below it.
fn sources(folder: &Path, ending: &str) -> String {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut text = String::new();
    for path in paths {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "tests" && name != "target") {
            text.push_str(&sources(&path, ending));
        } else if path.to_str().is_some_and(|name| name.ends_with(ending)) {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

impl Language {
    fn sources(self) -> String {
        let bindings = project().join("bindings");
        match self {
            Self::Rust => sources(&project().join("crates"), ".rs"),
            Self::JavaScript => sources(&bindings.join("js/lib"), ".ts") + &sources(&bindings.join("js/adapters"), ".ts"),
            Self::Python => sources(&bindings.join("python/python"), ".py") + &sources(&bindings.join("python/python"), ".pyi"),
            Self::Ffi => {
                sources(&bindings.join("ffi/src"), ".rs")
                    + &fs::read_to_string(project().join("crates/json/src/objects/fields.rs")).unwrap()
            }
        }
    }

    /// Whether the sources declare a name: `name`, or `Owner.name` (in Rust `Owner::name`).
    fn has(self, sources: &str, name: &str) -> bool {
        let parts: Vec<_> = name.split("::").flat_map(|part| part.split('.')).collect();
        match (self, parts.as_slice()) {
            // The last two parts, wherever they are: a type may be a macro's.
            (Self::Rust, [.., last]) => {
                declares(sources, last, &["fn ", "struct ", "enum ", "const ", "trait "])
                    && parts.iter().all(|part| has_word(sources, part))
            }
            (Self::JavaScript, [function]) => declares(sources, function, &["export function ", "export async function ", "export class "]),
            (Self::JavaScript, [owner, member]) => bodies(sources, owner, &["export class ", "export interface "], &["\n}"])
                .iter()
                .any(|body| declares(body, member, &["  ", "static ", "get ", "async ", "async *", "readonly "])),
            (Self::Python, [function]) => declares(sources, function, &["\ndef ", "\nclass "]),
            (Self::Python, [owner, member]) => {
                let ends = ["\n\n\n", "\n\n@final", "\n    class "];
                bodies(sources, owner, &["\nclass ", "\n    class "], &ends).iter().any(|body| declares(body, member, &["def ", "    "]))
            }
            (Self::Ffi, [function]) => declares(sources, &snake(function), &["pub fn ", "pub struct "]),
            (Self::Ffi, [owner, member]) => {
                let member = snake(member);
                let is_method = bodies(sources, owner, &["\nimpl "], &["\n}"]).iter().any(|body| declares(body, &member, &["pub fn "]));
                is_method
                    || bodies(sources, owner, &["            "], &["\n            }"])
                        .iter()
                        .any(|body| declares(body, &member, &["                "]))
            }
            _ => false,
        }
    }
}

/// Whether a text has a name behind one of these words, and nothing that continues the name.
fn declares(text: &str, name: &str, before: &[&str]) -> bool {
    let ends = |rest: &str| rest.chars().next().is_some_and(|letter| "(<:{= ?,;\n".contains(letter));
    before.iter().any(|word| text.match_indices(&format!("{word}{name}")).any(|(at, found)| ends(&text[at + found.len()..])))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    text.match_indices(word).any(|(at, _)| !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + word.len()..].chars().next()))
}

/// The bodies of everything that has this name behind one of these words.
fn bodies<'t>(text: &'t str, owner: &str, before: &[&str], ends: &[&str]) -> Vec<&'t str> {
    let is_whole = |rest: &str| rest.starts_with(['(', ' ', ':', '<', '\n']);
    let starts = before.iter().flat_map(|word| text.match_indices(&format!("{word}{owner}")).collect::<Vec<_>>());
    let rests = starts.map(|(at, found)| &text[at + found.len()..]).filter(|rest| is_whole(rest));
    let end = |rest: &str| ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    rests.map(|rest| &rest[..end(rest)]).collect()
}

fn snake(name: &str) -> String {
    let mut text = String::new();
    for (at, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && at > 0 && name.starts_with(|first: char| first.is_ascii_lowercase()) {
            text.push('_');
            text.push(letter.to_ascii_lowercase());
        } else {
            text.push(letter);
        }
    }
    text
}

/// The rows of the tables of capabilities: what can be done, and a cell for each language.
fn rows() -> Vec<(String, [String; 4])> {
    let text = fs::read_to_string(project().join("docs/languages.md")).unwrap();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| capability") && line.matches(" | ").count() == 4;
    let row = |line: &str| {
        let mut cells = line.trim_matches(['|', ' ']).split(" | ").map(str::to_owned);
        (cells.next().unwrap(), [(); 4].map(|()| cells.next().unwrap()))
    };
    text.lines().filter(is_row).map(row).collect()
}

/// What a cell has in backquotes. Behind `with`, and in a reason, are no calls.
fn calls(cell: &str) -> Vec<String> {
    let said = cell.split(" with ").next().unwrap();
    if said.starts_with("no: ") { Vec::new() } else { said.split('`').skip(1).step_by(2).map(str::to_owned).collect() }
}

#[test]
fn each_call_of_the_table_of_languages_exists() {
    let rows = rows();
    assert!(rows.len() > 40, "{}", rows.len());
    for (at, language) in LANGUAGES.into_iter().enumerate() {
        let sources = language.sources();
        for (capability, cells) in &rows {
            let (cell, calls) = (&cells[at], calls(&cells[at]));
            assert!(
                !calls.is_empty() || cell.len() > "no: ..".len() && cell.starts_with("no: "),
                "{capability}: neither a call nor a reason: {cell}"
            );
            for call in calls {
                assert!(language.has(&sources, &call), "{capability}: {language:?} has no {call}");
            }
        }
        // What is not there is not found.
        let missing = [
            ["Verified::verifies", "Order.verifies", "Order.verifies", "Order.verifies"],
            ["sumary", "orderPages", "order_pages", "verifyLines"],
        ];
        for names in missing {
            assert!(!language.has(&sources, names[at]), "{language:?} has {}", names[at]);
        }
        // A member of another object is not this object's.
        let others = ["", "Order.attach", "Order.attach", "Order.attach"];
        assert!(at == 0 || !language.has(&sources, others[at]), "{language:?}");
    }
}

#[test]
fn each_call_of_kotlin_and_swift_is_in_the_table() {
    let named: BTreeSet<_> = rows()
        .iter()
        .flat_map(|(_, cells)| calls(&cells[3]))
        .map(|call| call.split('.').map(snake).collect::<Vec<_>>().join("."))
        .collect();
    let sources = sources(&project().join("bindings/ffi/src"), ".rs");
    let mut found = 0;
    for (at, _) in sources.match_indices("#[uniffi::export]\nimpl ") {
        let (owner, body) = sources[at..].split_once("impl ").unwrap().1.split_once(" {").unwrap();
        for (name, _) in body.split("\n}").next().unwrap().split("    pub fn ").skip(1).filter_map(|part| part.split_once('(')) {
            found += 1;
            assert!(named.contains(&format!("{owner}.{name}")) || name == "new", "docs/languages.md does not name {owner}.{name}");
        }
    }
    assert!(found > 60, "{found}");
}
