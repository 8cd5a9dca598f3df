//! CONTRIBUTING.md agrees with the tree: which files a new family, chain and generation touch, and the order of publication.
//!
//! Each is compared both ways: what the text names exists, and what the tree says is named. Outside the repository there is nothing to
//! compare.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use countersign::{Family, trust::Generation};

/// The repository, as its index lists it.
struct Repository {
    root: PathBuf,
    files: BTreeSet<String>,
    contributing: String,
}

impl Repository {
    fn open() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let contributing = fs::read_to_string(root.join("CONTRIBUTING.md")).ok()?;
        let listed =
            Command::new("git").arg("-C").arg(&root).args(["ls-files", "--cached", "--others", "--exclude-standard"]).output().ok()?;
        let files: BTreeSet<_> = String::from_utf8(listed.stdout).ok()?.lines().map(str::to_owned).collect();
        files.contains("CONTRIBUTING.md").then_some(Self { root, files, contributing })
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(file)).unwrap_or_default()
    }

    /// Returns the text below a heading, up to the next one.
    fn section(&self, heading: &str) -> &str {
        let (_, below) = self.contributing.split_once(&format!("\n## {heading}\n")).expect(heading);
        below.split("\n## ").next().unwrap()
    }

    /// Returns the paths of a section's table, with `{a,b}` written out, and what the table says of them. `<family>` stays.
    fn table(&self, heading: &str) -> BTreeMap<String, &str> {
        let rows = self.section(heading).lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let rows: BTreeMap<_, _> =
            rows.flat_map(|(pattern, what)| written_out(pattern).into_iter().map(move |path| (path, what))).collect();
        assert!(rows.len() > 1, "{heading}: no table");
        rows
    }

    /// Returns the paths of a section's table.
    fn rows(&self, heading: &str) -> BTreeSet<String> {
        self.table(heading).into_keys().collect()
    }

    /// Returns whether a row of a table is a file, or a folder with files.
    fn has(&self, path: &str) -> bool {
        self.files.contains(path) || (path.ends_with('/') && self.files.iter().any(|file| file.starts_with(path)))
    }

    /// Returns the code of the library and of the program, without tests.
    fn library(&self) -> impl Iterator<Item = (&String, String)> {
        let of_library = |file: &&String| file.starts_with("crates/") && file.contains("/src/") && !file.contains("/tests");
        let files = self.files.iter().filter(|file| file.ends_with(".rs") && !file.starts_with("crates/testkit/"));
        files.filter(of_library).map(|file| {
            let text = self.text(file);
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap().lines().filter(|line| !line.trim_start().starts_with("//"));
            (file, code.collect::<Vec<_>>().join("\n"))
        })
    }
}

/// Returns the paths that match a pattern with at most one `{a,b}`.
fn written_out(pattern: &str) -> Vec<String> {
    let parts = pattern.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match parts {
        Some((before, (names, after))) => names.split(',').map(|name| format!("{before}{name}{after}")).collect(),
        None => vec![pattern.to_owned()],
    }
}

/// Returns whether a row names the file, or a folder that contains it.
fn names(rows: &BTreeSet<String>, file: &str) -> bool {
    rows.iter().any(|row| row == file || (row.ends_with('/') && file.starts_with(row.as_str())))
}

fn families() -> impl Iterator<Item = &'static str> {
    Family::ALL.iter().map(|family| family.name())
}

/// Returns the words of a text in lower case; a name in camel case is several words.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for run in text.split(|c: char| !c.is_ascii_alphabetic()) {
        let mut word = String::new();
        for c in run.chars() {
            if c.is_ascii_uppercase() && word.ends_with(|last: char| last.is_ascii_lowercase()) {
                words.insert(std::mem::take(&mut word).to_ascii_lowercase());
            }
            word.push(c);
        }
        words.insert(word.to_ascii_lowercase());
    }
    words
}

/// Returns how many families a text names.
fn families_in(text: &str) -> usize {
    let words = words(text);
    families().filter(|family| words.contains(*family)).count()
}

/// Returns the path with `<family>` in place of the family's name, if it is a part of the path.
fn template(path: &str, family: &str) -> Option<String> {
    let of_family = |part: &str| part.split(['.', '_']).any(|word| word == family);
    path.split('/').any(of_family).then(|| {
        let parts = path.split('/').map(|part| if of_family(part) { part.replace(family, "<family>") } else { part.to_owned() });
        parts.collect::<Vec<_>>().join("/")
    })
}

/// Returns whether somebody writes this file, and whether it is neither prose nor a test.
fn is_written_code(file: &str) -> bool {
    let other = [".md", ".txt", ".lock", ".svg", ".json", ".jsonl", "/tests.rs"].iter().any(|end| file.ends_with(end))
        && !file.ends_with("/package.json");
    let folder = ["tests/", "test/", "examples/", "docs/", ".ci/neighbours/"].iter().any(|part| file.contains(part));
    !other && !folder
}

#[test]
fn the_files_of_a_family_are_those_that_every_family_has_and_those_that_name_all() {
    let Some(repository) = Repository::open() else { return };
    let rows = repository.rows("A new family");
    let (per_family, shared): (BTreeSet<_>, BTreeSet<_>) = rows.into_iter().partition(|row| row.contains("<family>"));

    let mut templates = BTreeMap::<String, usize>::new();
    for family in families() {
        for path in repository.files.iter().filter_map(|file| template(file, family)) {
            *templates.entry(path).or_default() += 1;
        }
    }
    templates.retain(|_, of| *of == families().count());
    let unnamed: Vec<_> = templates.keys().filter(|path| !names(&per_family, path)).collect();
    assert!(unnamed.is_empty(), "every family has these files, but the table does not name them: {unnamed:#?}");
    let absent: Vec<_> = per_family.iter().filter(|row| !names(&templates.keys().cloned().collect(), row) && !row.ends_with('/')).collect();
    assert!(absent.is_empty(), "not every family has these: {absent:#?}");

    let of_one_family = |file: &str| families().any(|family| file.starts_with(&format!("crates/{family}/")));
    let all = repository
        .files
        .iter()
        .filter(|file| is_written_code(file) && !of_one_family(file) && families().all(|f| template(file, f).is_none()));
    let unnamed: Vec<_> = all.filter(|file| families_in(&repository.text(file)) == families().count() && !names(&shared, file)).collect();
    assert!(unnamed.is_empty(), "these name every family, but the table does not name them: {unnamed:#?}");
    for row in shared {
        assert!(repository.has(&row), "{row} does not exist");
        assert!(
            row.ends_with('/') || families_in(&repository.text(&row)) > 2,
            "{row} names no families any more: remove it from the table"
        );
    }
}

/// A file that a command writes does not have to be understood.
#[test]
fn a_family_touches_few_files_that_exist() {
    let Some(repository) = Repository::open() else { return };
    let table = repository.table("A new family").into_iter().filter(|(path, _)| !path.contains("<family>"));
    let (generated, written): (Vec<_>, Vec<_>) = table.partition(|(_, what)| what.contains("` writes "));
    let paths = |rows: &[(String, &str)]| rows.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>().join("\n");
    assert!(written.len() <= 35, "a family touches more than 35 files that exist:\n{}", paths(&written));
    assert_eq!(generated.len(), 2, "{}", paths(&generated));
}

#[test]
fn the_files_of_a_chain_are_those_that_name_one() {
    let Some(repository) = Repository::open() else { return };
    let rows = repository.rows("A new chain of a family");
    // The chains whose names are neither a family's nor a coin's.
    let registry: serde_json::Value = serde_json::from_str(&repository.text("fixtures/registry.json")).unwrap();
    let chains = registry["chains"].as_array().unwrap().iter().filter_map(|chain| chain["chain"].as_str());
    let quoted: BTreeSet<_> = chains
        .filter(|name| !name.contains('_') && families_in(name) == 0 && *name != "litecoin")
        .map(|name| format!("\"{name}\""))
        .collect();
    assert!(quoted.len() > 3, "{quoted:?}");
    let naming: BTreeSet<_> =
        repository.library().filter(|(_, code)| quoted.iter().any(|name| code.contains(name))).map(|(file, _)| file.clone()).collect();
    // The quoted chains are all of one family.
    let listed: BTreeSet<_> = rows.iter().filter(|row| row.ends_with(".rs")).map(|row| row.replace("<family>", "evm")).collect();
    assert_eq!(naming, listed, "left: the files that name a chain; right: those of the table");
    for row in rows.iter().flat_map(|row| families().map(|family| row.replace("<family>", family))) {
        assert!(repository.has(&row), "{row} does not exist");
    }
}

#[test]
fn the_files_of_a_generation_are_those_that_name_one() {
    let Some(repository) = Repository::open() else { return };
    let rows = repository.rows("A new generation of a contract");
    let all: Vec<_> = Family::ALL.iter().flat_map(|family| Generation::all(*family)).collect();
    let owners: BTreeSet<_> = all.iter().map(|generation| generation.family().name()).collect();
    let of_family = |family: &str| -> BTreeSet<String> {
        let is_of_other = |row: &String| owners.iter().any(|other| *other != family && row.starts_with(&format!("crates/{other}")));
        rows.iter().filter(|row| !is_of_other(row)).map(|row| row.replace("<family>", family)).collect()
    };
    assert!(of_family("evm").len() <= 8, "a generation on EVM touches more than eight files: {:#?}", of_family("evm"));
    let rows: BTreeSet<_> = owners.iter().flat_map(|family| of_family(family)).collect();
    for row in &rows {
        let of_generation = row.ends_with('/') || repository.text(row).to_ascii_lowercase().contains("generation");
        assert!(repository.has(row) && of_generation, "{row} does not exist, or names no generation any more");
    }

    // A row of the tables is the only place that has a generation's name, in JSON or in Rust.
    let is_constant = |rest: &str| {
        let other = ["ALL", "EXPECTED", "Evm", "Starknet", "Solana"].iter().any(|other| rest.starts_with(other));
        !other && rest.starts_with(|c: char| c.is_ascii_uppercase())
    };
    let names_one = |code: &str| {
        code.split("Generation::").skip(1).any(is_constant) || all.iter().any(|one| code.contains(&format!("\"{}\"", one.name())))
    };
    let named: Vec<_> = repository.library().filter(|(_, code)| names_one(code)).map(|(file, _)| file).collect();
    assert!(named.len() >= owners.len(), "{named:?}");
    let unnamed: Vec<_> = named.into_iter().filter(|file| !names(&rows, file)).collect();
    assert!(unnamed.is_empty(), "these name a generation, but the table does not name them: {unnamed:#?}");
}

#[test]
fn crates_are_published_after_those_that_they_depend_on() {
    let Some(repository) = Repository::open() else { return };
    let metadata = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(repository.root.join("Cargo.toml"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let short = |name: &serde_json::Value| name.as_str().unwrap().trim_start_matches("countersign-").to_owned();
    let published: Vec<_> = metadata["packages"].as_array().unwrap().iter().filter(|package| package["publish"].is_null()).collect();

    let text = repository.section("Release checklist").replace("\n   ", " ");
    let (_, order) = text.split_once("in the order of their dependencies: ").unwrap();
    let order = order.split_once('.').unwrap().0.replace("the families", &families().collect::<Vec<_>>().join(", "));
    let order: Vec<_> = order.split(", ").collect();
    assert_eq!(
        order.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(),
        published.iter().map(|package| short(&package["name"])).collect()
    );
    let place = |name: &str| order.iter().position(|other| *other == name);
    for package in &published {
        let name = short(&package["name"]);
        // Cargo removes a dependency of the tests without a version from what it publishes.
        let needed = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dependency| dependency["path"].is_string() && dependency["req"] != "*");
        for needed in needed.map(|dependency| short(&dependency["name"])).filter(|needed| *needed != name) {
            assert!(place(&needed) < place(&name), "{name} depends on {needed}, which is published later");
        }
    }
}

/// Cargo finds no tests by itself where a crate's tests are one program: a file that no other declares would never run.
#[test]
fn every_file_of_tests_is_part_of_a_program() {
    let Some(repository) = Repository::open() else { return };
    let of_tests: Vec<_> = repository.files.iter().filter(|file| file.contains("/tests/") && file.ends_with(".rs")).collect();
    assert!(of_tests.len() > 200);
    for file in &of_tests {
        let (folder, name) = file.rsplit_once('/').unwrap();
        let package = file.split("/tests/").next().unwrap();
        let manifest = repository.text(&format!("{package}/Cargo.toml"));
        if manifest.contains(&format!("path = \"{}\"", file.strip_prefix(package).unwrap().trim_start_matches('/'))) {
            continue;
        }
        // A module is declared beside its folder, or at the head of it; one in a folder of its own is `mod.rs`.
        let (folder, module) = match name {
            "mod.rs" => folder.rsplit_once('/').unwrap(),
            _ => (folder, name.trim_end_matches(".rs")),
        };
        let heads = [format!("{folder}.rs"), format!("{folder}/mod.rs"), format!("{folder}/main.rs")];
        let declared = format!("mod {module};");
        let is_declared =
            |text: String| text.lines().any(|line| line == declared || line.starts_with("pub") && line.ends_with(&format!(" {declared}")));
        let is_program = folder.ends_with("/tests") || name == "main.rs" && folder.rsplit_once('/').unwrap().0.ends_with("/tests");
        let is_found_by_cargo = is_program && !manifest.contains("autotests = false");
        assert!(is_found_by_cargo || heads.iter().any(|head| is_declared(repository.text(head))), "nothing declares {file}");
    }
}
