//! The pages for machines that read (`llms.txt`, `AGENTS.md`, `docs/skill/SKILL.md`): commands and flags are those of the program, and links
//! and paths lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::commands::commands;
use crate::home::{Home, NOWHERE, out};

const PAGES: [&str; 3] = ["llms.txt", "AGENTS.md", "docs/skill/SKILL.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// Returns what a page shows as code: each line of a block, and each text in backticks.
fn code(text: &str) -> Vec<&str> {
    let (mut found, mut is_block) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            found.push(line);
        } else {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

fn flags(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    words.filter(|word| word.starts_with("--") && word.len() > 2).collect()
}

/// Returns the options that a help lists.
fn options(help: &str) -> BTreeSet<&str> {
    let listed = help.lines().filter(|line| line.starts_with("      --") || line.starts_with("  -"));
    listed.flat_map(|line| line.split_whitespace().take(2)).flat_map(flags).collect()
}

/// The help of each command.
fn helps() -> BTreeMap<String, String> {
    let home = Home::new("agents");
    let help = |command: &String| out(&home.run(NOWHERE, &[&command.split(' ').collect::<Vec<_>>()[..], &["--help"]].concat()));
    commands(&home, &[]).into_iter().map(|command| (command.clone(), help(&command))).collect()
}

/// Returns the commands and flags in a text that the program does not have.
fn unknown(text: &str, helps: &BTreeMap<String, String>) -> Vec<String> {
    let all: BTreeSet<_> = helps.values().flat_map(|help| options(help)).collect();
    let mut wrong = Vec::new();
    for code in code(text) {
        let known = match code.strip_prefix("countersign ") {
            // Of two commands the longer one: `order show` is not `order`.
            Some(run) => match helps.keys().filter(|name| format!("{run} ").starts_with(&format!("{name} "))).max_by_key(|name| name.len())
            {
                Some(command) => options(&helps[command]),
                None => {
                    wrong.push(format!("no such command: {code}"));
                    continue;
                }
            },
            None if code.starts_with("--") => all.clone(),
            None => continue,
        };
        wrong.extend(flags(code).difference(&known).map(|flag| format!("no such flag: {flag} in {code}")));
    }
    wrong
}

#[test]
fn pages_for_machines_name_what_the_program_has() {
    let helps = helps();
    for page in PAGES {
        assert_eq!(unknown(&text(page), &helps), Vec::<String>::new(), "{page}");
    }
    let skill = text("docs/skill/SKILL.md");
    assert!(code(&skill).iter().filter(|code| code.starts_with("countersign ")).count() > 10, "{skill}");
    let wrong = "`countersign swop`, `--yess`\n```sh\ncountersign order show x --dry-run\ncountersign orders --json\n```";
    assert_eq!(
        unknown(wrong, &helps),
        [
            "no such command: countersign swop",
            "no such flag: --yess in --yess",
            "no such flag: --dry-run in countersign order show x --dry-run"
        ]
    );
}

#[test]
fn the_skill_names_every_flag_that_decides_for_a_person() {
    let skill = text("docs/skill/SKILL.md");
    let never = flags(skill.split_once("\n## What you never pass\n").unwrap().1.split("\n## Results\n").next().unwrap());
    for (command, help) in helps() {
        let decides = options(&help).into_iter().filter(|flag| {
            ["--yes", "--service-secret", "--replace", "--paid", "--approved"].contains(flag) || flag.starts_with("--accept")
        });
        for flag in decides {
            assert!(never.contains(flag), "{command} {flag}");
        }
        // What the program itself calls a risk.
        for risk in help.split("\n      --").skip(1).filter(|option| option.contains("RISK")) {
            let flag = format!("--{}", risk.split([' ', '\n']).next().unwrap());
            assert!(never.contains(flag.as_str()), "{command} {flag}");
        }
    }
}

#[test]
fn the_skill_leaves_every_command_that_takes_a_key_to_a_person() {
    let skill = text("docs/skill/SKILL.md");
    let section = |title: &str| skill.split_once(&format!("\n## {title}\n")).unwrap().1.split("\n## ").next().unwrap();
    let person = code(section("What a person does"));
    let is_named = |command: &str| person.iter().any(|code| format!("{code} ").starts_with(&format!("countersign {command} ")));
    let mut count = 0;
    for (command, help) in helps() {
        let keys: Vec<_> = options(&help).into_iter().filter(|flag| flag.contains("-key-")).collect();
        // This key signs a receipt and no order, so the command itself may run without it.
        let pays = keys.iter().any(|flag| *flag != "--receipt-key-file");
        // The keys of `batch` are in its lines.
        if pays || command == "batch" {
            count += 1;
            assert!(is_named(&command), "{command}");
        } else if !keys.is_empty() {
            assert!(flags(section("Keys")).contains("--receipt-key-file"), "{command}");
        }
    }
    assert!(count > 8, "{count}");
    assert!(!is_named("quote") && !is_named("order"));
}

#[test]
fn the_skill_has_every_exit_code() {
    let home = Home::new("agents-codes");
    let help = out(&home.run(NOWHERE, &["--help"]));
    let listed = help.split_once("Exit codes:").unwrap().1.replace('\n', " ");
    let listed: BTreeSet<u8> = listed.split(", ").filter_map(|part| part.trim().split(' ').next()?.parse().ok()).collect();
    assert!(listed.len() > 5, "{help}");
    let skill = text("docs/skill/SKILL.md");
    let rows: BTreeSet<u8> = skill.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok()).collect();
    assert_eq!(rows, listed);
}

#[test]
fn links_and_paths_of_pages_for_machines_lead_somewhere() {
    let mut count = 0;
    for page in PAGES {
        let text = text(page);
        let folder = root().join(page);
        let folder = folder.parent().unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(|link| !link.contains("://")) {
            count += 1;
            assert!(folder.join(link.split('#').next().unwrap()).exists(), "{page}: {link}");
        }
        for path in code(&text).into_iter().filter_map(|code| code.split(' ').next()) {
            let is_path = page == "AGENTS.md" && path.contains('/');
            assert!(!is_path || root().join(path).exists(), "{page}: {path}");
        }
    }
    assert!(count > 30, "{count}");
}
