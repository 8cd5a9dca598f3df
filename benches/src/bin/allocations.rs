//! Counts the allocations of an order. `allocations <family> <cases.jsonl>` prints them for each contender, and the
//! number of signatures per order. This is a separate program, because counting takes time.

use countersign_benches::orders::contender;
use countersign_benches::{family, read_cases};
use serde_json::{Map, Value, json};

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [family_name, file] = args.as_slice() else { panic!("usage: allocations <family> <file>") };
    let (family, lines) = (family(family_name), read_cases(file));
    let mut counts = Map::new();
    for name in ["batch", "facade", "peer"] {
        let Some(contender) = contender(name, family, &lines) else { continue };
        // One-time work, such as tables and the hash of a contract's domain, is not part of an order.
        contender.pass();
        let info = allocation_counter::measure(|| _ = contender.pass());
        counts.insert(name.to_owned(), json!(info.count_total as f64 / lines.len() as f64));
        if let Some(signatures) = contender.signatures() {
            counts.insert("signatures".to_owned(), json!(signatures as f64 / lines.len() as f64));
        }
    }
    println!("{}", Value::Object(counts));
}
