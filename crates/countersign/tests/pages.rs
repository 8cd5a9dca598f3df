//! Examples on the facade's pages: they name the crate that the reader has, and fit the page.
//!
//! The pages show the documentation of the crates below too, so these are read as well.
use std::fs;
use std::path::{Path, PathBuf};

use countersign::FAMILIES;

/// The crates whose documentation the pages of the facade show.
const SHOWN: [&str; 9] = ["bitcoin", "chains", "core", "countersign", "evm", "solana", "starknet", "sui", "tron"];

/// Items that are not on the facade's pages, so that their examples name their own crate.
const NOT_SHOWN: &str = "core/src/reader/components.rs";

/// What a page shows of a line of code before it is cut off.
const MAX_WIDTH: usize = 90;

#[test]
fn examples_name_the_facade_and_fit_its_pages() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut examples, mut faults) = (0, Vec::new());
    for shown in SHOWN {
        let mut files = vec![crates.join(shown).join("README.md")];
        sources(&crates.join(shown).join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for line in example_lines(&text, file.extension().is_some_and(|extension| extension == "md")) {
                examples += 1;
                let names_a_part = line.contains("countersign_") && !file.ends_with(NOT_SHOWN);
                if names_a_part || line.chars().count() > MAX_WIDTH {
                    faults.push(format!("{}: {line}", file.display()));
                }
            }
        }
    }
    assert!(examples > 500, "{examples} lines of examples");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the lines of the Rust examples that a page shows.
fn example_lines(text: &str, markdown: bool) -> Vec<&str> {
    let (mut lines, mut fence) = (Vec::new(), None);
    for line in text.lines() {
        let trimmed = line.trim_start();
        let documented = ["/// ", "//! "].iter().find_map(|prefix| trimmed.strip_prefix(prefix));
        let attribute = trimmed.strip_prefix("#![cfg_attr(").or_else(|| trimmed.strip_prefix("#[cfg_attr("));
        let of_attribute = || attribute?.split_once("doc = \"")?.1.strip_suffix("\")]");
        // Of an attribute over several lines, only this line counts.
        let alone = || trimmed.strip_prefix("doc = \"")?.strip_suffix('"');
        let shown = if markdown { line } else { documented.or_else(of_attribute).or_else(alone).unwrap_or("") };
        match (shown.trim_start().strip_prefix("```"), fence) {
            (Some(""), Some(_)) => fence = None,
            (Some(language), _) => fence = Some(!language.starts_with(['t', 'j', 's'])),
            (None, Some(true)) if !shown.trim_start().starts_with("# ") => lines.push(shown),
            (None, _) => {}
        }
    }
    lines
}

/// The names on the first page: modules, types, functions and constants.
const MAX_NAMES: usize = 60;

#[test]
fn the_first_page_has_few_names() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let (mut names, mut hidden) = (Vec::new(), false);
    let mut items = text.lines();
    while let Some(line) = items.next() {
        if line == "#[doc(hidden)]" {
            hidden = true;
        } else if let Some(module) = line.strip_prefix("pub mod ") {
            names.push(module.trim_end_matches([';', ' ', '{']).to_owned());
        } else if let Some(first) = line.strip_prefix("pub use ") {
            let mut item = first.to_owned();
            while !item.ends_with(';') {
                item.push_str(items.next().unwrap().trim());
            }
            let list = item.trim_end_matches(['}', ';']).rsplit(['{']).next().unwrap();
            if !std::mem::take(&mut hidden) {
                names.extend(list.split(',').filter(|name| !name.is_empty()).map(|name| name.trim().to_owned()));
            }
        }
    }
    assert!(names.iter().any(|name| name == "Proposal") && names.iter().any(|name| name == "trust"), "{names:?}");
    // `families::*` has one module for each family.
    let count = names.len() + FAMILIES.len() - 1;
    assert!(names.iter().any(|name| name == "families::*") && count <= MAX_NAMES, "{count} names: {names:?}");
}
