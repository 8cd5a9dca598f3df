//! Writes the descriptors of a registry to a directory: `write <registry> <directory>`.

use std::error::Error;
use std::fs;
use std::path::Path;

use countersign::Registry;
use countersign_view::clear_signing::Descriptors;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [registry, directory] = arguments.as_slice() else { return Err("usage: write <registry> <directory>".into()) };
    let registry: Registry = fs::read_to_string(registry)?.parse()?;
    fs::create_dir_all(directory)?;
    for file in Descriptors::from_registry(&registry).files {
        fs::write(Path::new(directory).join(file.name), file.json)?;
    }
    Ok(())
}
