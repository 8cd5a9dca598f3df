//! Runs of this program under valgrind, which emulates one processor on every machine that has AVX2.

use std::env;
use std::process::Command;

/// Whether valgrind is installed.
pub(crate) fn is_installed() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns how many instructions a run takes.
pub(crate) fn instructions(row: &str, times: u32) -> Result<u64, String> {
    let [instructions] = run(row, times, &["--tool=callgrind", "--callgrind-out-file=/dev/null"], "Collected :")?;
    Ok(instructions)
}

/// Returns how many bytes a run allocates, and in how many allocations.
pub(crate) fn allocations(row: &str, times: u32) -> Result<[u64; 2], String> {
    run(row, times, &["--tool=dhat", "--dhat-out-file=/dev/null"], "Total:")
}

/// Returns the first numbers of the line of valgrind's output that has the label.
fn run<const N: usize>(row: &str, times: u32, tool: &[&str], label: &str) -> Result<[u64; N], String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind").args(tool).arg(program).args(["run", row, &times.to_string()]).output();
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
