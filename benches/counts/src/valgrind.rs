//! Runs programs under valgrind, which emulates the same processor on every machine with AVX2. The benches' `report`
//! includes this file too.

use std::path::Path;
use std::process::Command;

/// A tool, its options, and the label of its result line.
pub(crate) type Tool = ([&'static str; 2], &'static str);

/// Counts instructions.
pub(crate) const INSTRUCTIONS: Tool = (["--tool=callgrind", "--callgrind-out-file=/dev/null"], "Collected :");

/// Returns whether valgrind is installed.
pub(crate) fn is_installed() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs a program, and returns the first numbers in the tool's result.
pub(crate) fn count<const N: usize>((options, label): Tool, program: &Path, arguments: &[&str]) -> Result<[u64; N], String> {
    let output = Command::new("valgrind").args(options).arg(program).args(arguments).output();
    let output = output.map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind: {text}"));
    }
    let numbers = text.lines().find_map(|line| line.split_once(label)).and_then(|(_, rest)| {
        let rest = rest.replace(',', "");
        let numbers: Vec<_> = rest.split_whitespace().filter_map(|word| word.parse().ok()).take(N).collect();
        numbers.try_into().ok()
    });
    numbers.ok_or_else(|| format!("valgrind: {text}"))
}
