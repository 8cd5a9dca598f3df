//! `countersign clear-signing`

use std::fs;
use std::path::{Path, PathBuf};

use countersign_view::clear_signing::{DescriptorFile, Descriptors};
use serde::Serialize;

use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::files::{self, Access};
use crate::input::RegistryArgs;
use crate::session::Session;
use crate::show;

pub(crate) const EXAMPLES: &str = "Examples:
  countersign clear-signing --registry registry.json --out descriptors
  erc7730 lint descriptors

The files are those of ERC-7730, version 2: calldata-*.json for calls, eip712-*.json for messages. Nothing is written for a contract that
is not pinned, and a directory with descriptors of other contracts is refused. The contracts of other chains than EVM ones have none.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    registry: RegistryArgs,
    /// The directory to write to. It is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// What was written.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    written: Vec<Written<'a>>,
    left_out: Vec<LeftOut<'a>>,
}

#[derive(Serialize)]
struct Written<'a> {
    file: &'a str,
    assets: Vec<&'a str>,
}

#[derive(Serialize)]
struct LeftOut<'a> {
    asset: &'a str,
    reason: &'a str,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let registry = args.registry.read()?.ok_or_else(|| {
        usage("no registry: pass the pinned one with --registry, or set COUNTERSIGN_REGISTRY or registry in the configuration file")
    })?;
    let descriptors = Descriptors::from_registry(&registry);
    if descriptors.files.is_empty() {
        return Err(usage("the registry pins no contract of an EVM chain that can be described, so nothing was written"));
    }
    write(&args.out, &descriptors.files)?;
    let report = Report {
        ok: true,
        written: descriptors.files.iter().map(Written::from).collect(),
        left_out: descriptors.left_out.iter().map(|left| LeftOut { asset: left.asset.as_str(), reason: left.reason }).collect(),
    };
    if session.json {
        show::json(&report)?;
        return Ok(OK);
    }
    for written in &report.written {
        show::field("written", &format!("{} for {}", written.file, written.assets.join(", ")))?;
    }
    for left in &report.left_out {
        show::field("left out", &format!("{}: {}", left.asset, left.reason))?;
    }
    Ok(OK)
}

impl<'a> From<&'a DescriptorFile> for Written<'a> {
    fn from(file: &'a DescriptorFile) -> Self {
        Self { file: &file.name, assets: file.assets.iter().map(AsRef::as_ref).collect() }
    }
}

/// Writes the files, unless the directory has descriptors of other contracts, which a wallet would load with them.
fn write(directory: &Path, descriptors: &[DescriptorFile]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| usage(format_args!("{}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    let mut others = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        let is_descriptor = name.ends_with(".json") && (name.starts_with("calldata-") || name.starts_with("eip712-"));
        if is_descriptor && descriptors.iter().all(|descriptor| descriptor.name != name) {
            others.push(name);
        }
    }
    others.sort_unstable();
    if !others.is_empty() {
        return Err(usage(format_args!(
            "{} has descriptors of contracts that the registry does not pin: remove {}, or choose another directory",
            directory.display(),
            others.join(", ")
        )));
    }
    descriptors
        .iter()
        .try_for_each(|descriptor| files::replace(&directory.join(&descriptor.name), descriptor.json.as_bytes(), Access::Shared))
}
