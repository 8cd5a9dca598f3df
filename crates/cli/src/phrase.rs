//! `countersign phrase`: shows the rescue phrase.

use serde::Serialize;

use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::session::Session;
use crate::show;
use crate::state::StateArgs;

pub(crate) const EXAMPLES: &str = "Examples:
  countersign phrase
  countersign phrase --state ~/swaps

Whoever reads the phrase has the secrets and Bitcoin keys of all your orders. Write it down, and store it nowhere else. It is not a wallet's
phrase; never use it as one. `countersign restore --phrase` restores the orders from it.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Serialize)]
struct Shown<'a> {
    ok: bool,
    phrase: &'a str,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let phrase = match args.state.open_existing()? {
        Some(state) => state.store.phrase()?,
        None => None,
    };
    let phrase = phrase.ok_or_else(|| {
        let path = args.state.path().map(|path| path.display().to_string()).unwrap_or_default();
        usage(format_args!("{path} has no rescue phrase yet: it is generated with the first order"))
    })?;
    let words = phrase.words();
    if session.json {
        show::json(&Shown { ok: true, phrase: &words })?;
    } else {
        show::field("phrase", &words)?;
    }
    Ok(OK)
}
