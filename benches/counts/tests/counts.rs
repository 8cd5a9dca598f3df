//! Tests that the counts match the file within 5 %.

use std::process::Command;

#[test]
fn counts_are_those_of_the_file() {
    let status = Command::new(env!("CARGO_BIN_EXE_countersign-counts")).status().expect("the program runs");
    assert!(status.success(), "see above");
}
