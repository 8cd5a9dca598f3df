//! The outline of the book (`site/book/SUMMARY.md`) names every document, and only files that exist. `site/book/check` builds the book.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the documents below a folder that the outline does not name, and the entries of the outline that are not files.
fn faults(root: &Path, outline: &str, documents: &[PathBuf]) -> (Vec<PathBuf>, Vec<String>) {
    let entries: BTreeSet<_> = outline.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let place = root.join("site/book");
    let found: BTreeSet<_> = entries.iter().filter_map(|entry| place.join(entry).canonicalize().ok()).collect();
    let gone = entries.iter().filter(|entry| !place.join(entry).is_file()).map(|entry| (*entry).to_owned()).collect();
    (documents.iter().filter(|document| !found.contains(*document)).cloned().collect(), gone)
}

fn documents(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documents(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            into.push(path.canonicalize().unwrap());
        }
    }
}

#[test]
fn every_document_has_a_place_in_the_book() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Outside the repository there is no book.
    let Ok(outline) = fs::read_to_string(root.join("site/book/SUMMARY.md")) else { return };
    let mut all = Vec::new();
    documents(&root.join("docs"), &mut all);
    assert!(all.len() > 30, "{}", all.len());
    assert_eq!(faults(&root, &outline, &all), (Vec::new(), Vec::new()));
    let program = root.join("docs/program.md").canonicalize().unwrap();
    let without = outline.replace("docs/program.md", "docs/programs.md");
    assert_eq!(faults(&root, &without, &all), (vec![program], vec!["../../docs/programs.md".to_owned()]));
}
