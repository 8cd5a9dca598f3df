//! The shape of the help texts: paragraphs fill the width of the terminal, and examples are never cut in the middle of a word of the shell.

use clap::Command;

/// The width up to which help is written, however wide the terminal is. Also where there is no terminal.
const WIDTH: usize = 100;
/// The width of an example. A narrower terminal wraps it by itself, without a line break in what is copied.
const EXAMPLE: usize = 96;

/// Shapes the help of a command and of its subcommands.
pub(crate) fn shaped(command: Command) -> Command {
    let text = command.get_after_help().map(|text| reflowed(&text.to_string()));
    let command = match text {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.max_term_width(WIDTH).mut_subcommands(shaped)
}

/// Joins the lines of each paragraph, and breaks long examples where a shell goes on. An indented line is an example, a remark on the next
/// one, or a line of a table.
fn reflowed(text: &str) -> String {
    let (mut lines, mut paragraph) = (Vec::new(), String::new());
    for line in text.lines() {
        let is_own = line.is_empty() || line.starts_with(' ') || line == "Examples:";
        if is_own {
            if !paragraph.is_empty() {
                lines.push(std::mem::take(&mut paragraph));
            }
            lines.extend(example(line));
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line);
        }
    }
    if !paragraph.is_empty() {
        lines.push(paragraph);
    }
    lines.join("\n")
}

/// Puts the remark of an example above it, and breaks the example if it is long.
fn example(line: &str) -> Vec<String> {
    let is_command = ["  countersign ", "  curl ", "  echo ", "  pass "].iter().any(|start| line.starts_with(start));
    if !is_command {
        return vec![line.to_owned()];
    }
    let (command, remark) = line.split_once("  #").map_or((line, None), |(command, remark)| (command.trim_end(), Some(remark.trim())));
    let mut lines: Vec<_> = remark.map(|remark| format!("  # {remark}")).into_iter().collect();
    let mut open = String::new();
    // A flag and its value stay together, and a pipe begins a line.
    for part in command.replace(" --", "\n--").replace(" | ", "\n| ").split('\n') {
        if open.is_empty() {
            open.push_str(part);
        } else if open.len().saturating_add(part.len()) > EXAMPLE.saturating_sub(3) {
            lines.push(format!("{open} \\"));
            open = format!("      {part}");
        } else {
            open.push(' ');
            open.push_str(part);
        }
    }
    lines.push(open);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_examples_are_broken_where_a_shell_goes_on() {
        let long = format!("  countersign explain {}--order - | jq", "--request a-request.json ".repeat(5));
        let text = format!("Examples:\n  countersign demo   # shows all\n{long}\n\nOne\ntwo.\n  a  table\nThree\nfour.");
        let shaped = reflowed(&text);
        let lines: Vec<_> = shaped.lines().collect();
        assert!(lines.starts_with(&["Examples:", "  # shows all", "  countersign demo"]), "{shaped}");
        assert!(shaped.ends_with("\n\nOne two.\n  a  table\nThree four."), "{shaped}");
        assert!(lines.iter().all(|line| line.len() <= EXAMPLE), "{shaped}");
        assert_eq!(shaped.replace(" \\\n      ", " ").lines().nth(3), Some(long.as_str()));
    }
}
