//! Passes the compiler's version and the target to the program.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = env::var("RUSTC").expect("cargo names the compiler");
    let version = Command::new(compiler).arg("--version").output().expect("the compiler runs").stdout;
    println!("cargo::rustc-env=COMPILER={}", String::from_utf8(version).expect("text").trim());
    println!("cargo::rustc-env=TARGET={}", env::var("TARGET").expect("cargo names the target"));
}
