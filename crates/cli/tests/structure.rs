//! The program's modules depend on each other in one direction, and none of them has a global variable.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The sources below a folder, without comments.
fn sources(path: &Path) -> String {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().map(|entry| sources(&entry.unwrap().path())).collect::<Vec<_>>().join("\n");
    }
    let without_comment = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    fs::read_to_string(path).unwrap().lines().map(without_comment).collect::<Vec<_>>().join("\n")
}

/// The source of each module of the program by its name; the modules inside it are part of it.
fn modules() -> BTreeMap<String, String> {
    let mut modules = BTreeMap::<String, String>::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let module = modules.entry(path.file_stem().unwrap().to_str().unwrap().to_owned()).or_default();
        module.push('\n');
        module.push_str(&sources(&path));
    }
    modules
}

/// Returns what a source names in the crate: `crate::a::b` names `a`, and `crate::{a, b::c}` names `a` and `b`.
fn named(source: &str) -> BTreeSet<String> {
    let first = |text: &str| text.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
    let mut names = BTreeSet::new();
    for (at, prefix) in source.match_indices("crate::") {
        let rest = &source[at + prefix.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(first(rest));
            continue;
        };
        let (mut depth, mut start) = (0, 0);
        for (place, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    names.insert(first(&list[start..place]));
                    start = place + 1;
                    if letter == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    names.remove("");
    names
}

/// Returns a circle of modules, if there is one.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<&str>> {
    fn visit<'g>(
        module: &'g str,
        graph: &'g BTreeMap<String, BTreeSet<String>>,
        path: &mut Vec<&'g str>,
        done: &mut BTreeSet<&'g str>,
    ) -> bool {
        if let Some(start) = path.iter().position(|one| *one == module) {
            path.drain(..start);
            return true;
        }
        if done.contains(module) {
            return false;
        }
        path.push(module);
        let is_circle = graph.get(module).into_iter().flatten().any(|next| visit(next, graph, path, done));
        if !is_circle {
            path.pop();
            done.insert(module);
        }
        is_circle
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|module| {
        let mut path = Vec::new();
        visit(module, graph, &mut path, &mut done).then_some(path)
    })
}

#[test]
fn modules_have_no_circles() {
    let modules = modules();
    let graph: BTreeMap<_, _> = modules.iter().map(|(name, source)| (name.clone(), named(source))).collect();
    assert!(graph.len() > 30 && graph.values().map(BTreeSet::len).sum::<usize>() > 100, "{graph:?}");
    // main.rs declares everything that is not a module, and uses every module.
    for (module, names) in &graph {
        let unknown: Vec<_> = names.iter().filter(|name| !graph.contains_key(*name)).collect();
        assert!(unknown.is_empty(), "{module} uses {unknown:?} of main");
    }
    assert_eq!(circle(&graph), None);
}

#[test]
fn a_circle_is_found() {
    let graph =
        |edges: &[(&str, &str)]| edges.iter().map(|(module, source)| ((*module).to_owned(), named(source))).collect::<BTreeMap<_, _>>();
    let nested = "use crate::{b::{self, X}, c};\nfn f() { crate::d::run() }";
    assert_eq!(named(nested), ["b", "c", "d"].map(str::to_owned).into());
    assert_eq!(circle(&graph(&[("a", nested), ("b", "use crate::c;"), ("c", ""), ("d", "use crate::b;")])), None);
    assert_eq!(circle(&graph(&[("a", nested), ("b", ""), ("c", "use crate::d::Y;"), ("d", "use crate::c;")])), Some(vec!["c", "d"]));
}

#[test]
fn no_module_has_a_global_variable() {
    for (module, source) in modules() {
        let is_global = |line: &&str| {
            let line = line.trim_start().trim_start_matches("pub(crate) ");
            line.starts_with("static ") || line.starts_with("thread_local!")
        };
        assert_eq!(source.lines().find(is_global), None, "{module}");
    }
}
