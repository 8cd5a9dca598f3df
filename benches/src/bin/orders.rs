//! Runs one contender in a process of its own, started by `report`:
//!
//! ```text
//! orders <contender> <family> <cases.jsonl>            id and artefacts of each order, a line of JSON each
//! orders <contender> <family> <cases.jsonl> <seconds>  the median time of an order, in nanoseconds
//! orders <contender> <family> <cases.jsonl> --passes <count>
//!                                                      signs every order <count> times, to count instructions
//! ```

use std::time::Duration;

use countersign_benches::orders::{contender, median_nanos};
use countersign_benches::{family, read_cases};
use serde_json::{Value, json};

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [name, family_name, file, rest @ ..] = args.as_slice() else {
        panic!("usage: orders <contender> <family> <file> [seconds | --passes count]")
    };
    let lines = read_cases(file);
    let contender = contender(name, family(family_name), &lines).expect("the family has this contender");
    let rest: Vec<_> = rest.iter().map(String::as_str).collect();
    if let ["--passes", count] = rest[..] {
        for _ in 0..count.parse().expect("a number of passes") {
            contender.pass();
        }
    } else if let [seconds] = rest[..] {
        let orders = if name == "signature" { 1 } else { lines.len() };
        println!("{}", median_nanos(contender.as_ref(), orders, Duration::from_secs_f64(seconds.parse().expect("seconds"))));
    } else {
        for (line, artefacts) in lines.iter().zip(contender.artefacts()) {
            let case: Value = serde_json::from_str(line).expect("JSON");
            println!("{}", json!({"id": case["id"], "artefacts": artefacts}));
        }
    }
}
