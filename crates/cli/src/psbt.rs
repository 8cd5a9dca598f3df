//! The PSBT of a Bitcoin-like order, as a file for its signer: `--psbt`.

use std::path::{Path, PathBuf};

use countersign::Unsigned;
use countersign::bitcoin::Payment;
use serde::Serialize;

use crate::failure::{Failure, usage};
use crate::files::{self, Access};
use crate::show;

#[derive(clap::Args)]
pub(crate) struct PsbtArgs {
    /// Bitcoin and Litecoin: writes the PSBT, with the signatures so far, to a file as wallet programs and hardware signers read it (binary,
    /// version 0). `attach --signatures` reads what they return.
    #[arg(long, value_name = "FILE")]
    psbt: Option<PathBuf>,
}

/// The PSBT of an order that is still to be signed.
#[derive(Serialize)]
pub(crate) struct Psbt<'a> {
    /// Where it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    /// What some signers need and do not find in it.
    lacks: Vec<String>,
}

impl PsbtArgs {
    pub(crate) const fn is_named(&self) -> bool {
        self.psbt.is_some()
    }

    /// Writes the PSBT if it is asked for, and returns what it lacks; `None` if the order has none, or no signature is missing.
    pub(crate) fn write(&self, order: &Unsigned) -> Result<Option<Psbt<'_>>, Failure> {
        let file = self.psbt.as_deref();
        let Some(payment) = payment(order) else {
            return match file {
                Some(_) => Err(usage("--psbt is for Bitcoin and Litecoin, and for a wallet context with utxos")),
                None => Ok(None),
            };
        };
        if let Some(path) = file {
            files::replace(path, &payment.signed_psbt().serialize(), Access::Private)?;
        }
        let is_open = !order.missing().is_empty();
        Ok(is_open.then(|| Psbt { file, lacks: payment.gaps() }))
    }
}

impl Psbt<'_> {
    pub(crate) fn print(&self) -> std::io::Result<()> {
        if let Some(file) = self.file {
            show::field("file", &file.display().to_string())?;
        }
        self.lacks.iter().try_for_each(|lack| show::field("psbt lacks", lack))
    }
}

fn payment(order: &Unsigned) -> Option<&Payment> {
    let Unsigned::Bitcoin(order) = order else { return None };
    order.payloads().payment.as_ref()
}
