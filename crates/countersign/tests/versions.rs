//! The versions of other crates that the texts name are those of the manifests: the libraries' own, and those of the wallets that
//! `.ci/neighbours` builds beside them. Outside the repository there is nothing to compare.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A requirement of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Requirement {
    version: String,
    is_optional: bool,
}

/// Returns the quoted value of a key in a line of TOML.
fn value<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    line.split_once(&format!("{key} = \""))?.1.split('"').next()
}

/// Reads the requirements on crates with a version, by the names of the crates. `workspace` has those that a manifest inherits.
fn requirements(manifest: &Path, workspace: &BTreeMap<String, Requirement>) -> BTreeMap<String, BTreeSet<Requirement>> {
    let mut found = BTreeMap::<String, BTreeSet<Requirement>>::new();
    for line in fs::read_to_string(manifest).unwrap().lines() {
        let Some((key, rest)) = line.split_once(" = ").filter(|(key, _)| !key.contains('#')) else { continue };
        let key = key.trim_end_matches(".workspace");
        let version = match (rest.strip_prefix('"'), value(rest, "version"), workspace.get(key)) {
            (_, Some(version), _) => version.to_owned(),
            (Some(version), None, _) if version.starts_with(|c: char| c.is_ascii_digit()) => version.trim_end_matches('"').to_owned(),
            (None, None, Some(inherited)) => inherited.version.clone(),
            _ => continue,
        };
        let name = value(rest, "package").unwrap_or(key).to_owned();
        let is_optional = rest.contains("optional = true");
        found.entry(name).or_default().insert(Requirement { version, is_optional });
    }
    found
}

/// Returns the pairs of a crate and a version in a text: `` `crate` 1.2 ``.
fn named(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts: Vec<_> = text.split('`').collect();
    let pairs = parts.windows(2).enumerate().filter(|(at, _)| at % 2 == 1).filter_map(|(_, pair)| {
        let [name, after] = pair else { return None };
        let version = after.strip_prefix(' ')?.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        version.starts_with(|c: char| c.is_ascii_digit()).then_some((*name, version.trim_end_matches('.')))
    });
    pairs.collect::<Vec<_>>().into_iter()
}

/// Returns a column of a text's tables.
fn column(text: &str, number: usize) -> String {
    let rows = text.lines().map(|line| line.trim_start_matches("//! ")).filter(|line| line.starts_with("| "));
    rows.filter_map(|row| row.trim_matches('|').split('|').nth(number)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_versions_that_texts_name_are_those_of_the_manifests() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = crates.join("../..");
    let Ok(neighbours) = fs::read_dir(root.join(".ci/neighbours")) else { return };
    let workspace = requirements(&root.join("Cargo.toml"), &BTreeMap::new());
    let workspace = workspace.into_iter().filter_map(|(name, of)| Some((name, of.into_iter().next()?))).collect();

    let families = ["evm", "tron", "starknet", "solana", "sui", "bitcoin"].map(|family| root.join(format!("crates/{family}/Cargo.toml")));
    let neighbours = neighbours.map(|entry| entry.unwrap().path().join("Cargo.toml")).filter(|manifest| manifest.exists());
    let mut known = BTreeMap::<String, BTreeSet<Requirement>>::new();
    let mut signers = BTreeSet::new();
    for manifest in families.iter().cloned().chain(neighbours).collect::<Vec<PathBuf>>() {
        for (name, of) in requirements(&manifest, &workspace) {
            if families.contains(&manifest) && of.iter().any(|requirement| requirement.is_optional) {
                signers.insert(name.clone());
            }
            known.entry(name).or_default().extend(of);
        }
    }
    let fits = |name: &str, version: &str| {
        let of = known.get(name).into_iter().flatten().map(|requirement| requirement.version.trim_start_matches(['~', '^']));
        of.filter_map(|known| known.strip_prefix(version)).any(|rest| rest.is_empty() || rest.starts_with('.'))
    };

    let page = column(&fs::read_to_string(crates.join("src/guide/versions.rs")).unwrap(), 1);
    let readme = column(&fs::read_to_string(crates.join("README.md")).unwrap(), 2);
    for (text, least) in [(&page, 15), (&readme, 6)] {
        let named: Vec<_> = named(text).collect();
        assert!(named.len() >= least, "{named:?}");
        let wrong: Vec<_> = named.iter().filter(|(name, version)| !fits(name, version)).collect();
        assert!(wrong.is_empty(), "the manifests have other versions: {wrong:?}");
    }
    // And back: every crate of a signer adapter is on the page, in each version.
    for name in signers.iter().filter(|name| ["alloy", "solana", "starknet", "sui"].iter().any(|chain| name.starts_with(chain))) {
        for requirement in known.get(name).unwrap().iter().filter(|requirement| requirement.is_optional) {
            let is_named = named(&page).any(|(other, version)| other == name && requirement.version.starts_with(version));
            assert!(is_named, "guide/versions.rs does not name {name} {}", requirement.version);
        }
    }
}
