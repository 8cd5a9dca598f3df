//! Reads a registry file named by the argument and one case from standard input, and prints the result. Without a
//! family, the program is empty.

#[cfg(feature = "batch")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use countersign::{Policy, Registry};

    let registry = std::fs::read(std::env::args().nth(1).ok_or("usage: countersign-size <registry.json> < case.json")?)?;
    let registry = Registry::from_json(&registry)?;
    let case = std::io::read_to_string(std::io::stdin())?;
    let outcome = countersign_json::line::Outcome::from_line(case.trim_end().as_bytes(), &registry, &Policy::default());
    Ok(serde_json::to_writer(std::io::stdout(), &outcome)?)
}

#[cfg(not(feature = "batch"))]
fn main() {}
