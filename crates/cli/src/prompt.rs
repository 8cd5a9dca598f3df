//! Reads passwords and rescue phrases from a file, an environment variable or the terminal. They are never arguments, because other users
//! of the machine can see those.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::failure::{Failure, usage};
use crate::files;
use crate::session::Session;

/// Where a backup's password comes from.
#[derive(clap::Args)]
#[group(required = false, multiple = false)]
pub(crate) struct PasswordArgs {
    /// Reads the password from a file. A line break at the end is not part of the password.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Reads the password from an environment variable.
    #[arg(long, value_name = "NAME")]
    password_env: Option<String>,
}

impl PasswordArgs {
    /// Reads the password. At the terminal, a new password is asked for twice.
    pub(crate) fn read(&self, is_new: bool, session: &Session) -> Result<Zeroizing<String>, Failure> {
        if let Some(text) = named(self.password_file.as_deref(), self.password_env.as_deref())? {
            let line = text.strip_suffix('\n').unwrap_or(&text);
            return Ok(Zeroizing::new(line.strip_suffix('\r').unwrap_or(line).to_owned()));
        }
        if !io::stdin().is_terminal() {
            return Err(usage("no password, and stdin is not a terminal: pass --password-file or --password-env"));
        }
        let password = hidden("password: ", session)?;
        if is_new && *hidden("password again: ", session)? != *password {
            return Err(usage("the two passwords differ; nothing was written"));
        }
        Ok(password)
    }
}

/// Reads text from the given file or environment variable; `None` if neither is given.
pub(crate) fn named(file: Option<&Path>, variable: Option<&str>) -> Result<Option<Zeroizing<String>>, Failure> {
    match (file, variable) {
        (Some(path), _) => from_file(path).map(Some),
        (None, Some(name)) => match std::env::var(name) {
            Ok(text) => Ok(Some(Zeroizing::new(text))),
            Err(_) => Err(usage(format_args!("the environment variable {name} is not set, or is not text"))),
        },
        (None, None) => Ok(None),
    }
}

/// Reads text from a file.
pub(crate) fn from_file(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let bytes = files::read(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| usage(format_args!("{}: not text", path.display())))?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Asks at the terminal without echoing the input.
pub(crate) fn hidden(question: &str, session: &Session) -> Result<Zeroizing<String>, Failure> {
    Ok(Zeroizing::new(session.at_hidden_prompt(|| rpassword::prompt_password(question))?))
}
