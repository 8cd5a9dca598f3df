//! Reads passwords and rescue phrases from a file, an environment variable or the terminal. They are never arguments, because other users
//! of the machine can see those.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::failure::{Failure, usage};
use crate::session::Session;
use crate::{files, show};

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
        if let Some(text) = named(self.password_file.as_deref(), self.password_env.as_deref(), session)? {
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
pub(crate) fn named(file: Option<&Path>, variable: Option<&str>, session: &Session) -> Result<Option<Zeroizing<String>>, Failure> {
    match (file, variable) {
        (Some(path), _) => from_file(path, session).map(Some),
        (None, Some(name)) => match std::env::var(name) {
            Ok(text) => Ok(Some(Zeroizing::new(text))),
            Err(_) => Err(usage(format_args!("the environment variable {name} is not set, or is not text"))),
        },
        (None, None) => Ok(None),
    }
}

/// Reads text from a file that only the user should read.
pub(crate) fn from_file(path: &Path, session: &Session) -> Result<Zeroizing<String>, Failure> {
    text(&files::read_private(path, session)?, path)
}

/// Returns what a file contains as text.
pub(crate) fn text(bytes: &[u8], path: &Path) -> Result<Zeroizing<String>, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| usage(format_args!("{}: not text", path.display())))?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Asks a question at the terminal, and returns the answer without surrounding white space; `None` if the input ended (Ctrl-D).
pub(crate) fn line(question: &str, session: &Session) -> Result<Option<String>, Failure> {
    session.question(question)?;
    Ok(answered(&read_line()?, session))
}

/// Does the same, while whatever else runs goes on. The caller may give the question up by dropping the future.
pub(crate) async fn line_meanwhile(question: &str, session: &Session) -> Result<Option<String>, Failure> {
    let mut open = Open(Some(session));
    let line = session.lines.read(|| session.question(question), read_line).await;
    open.0 = None;
    Ok(answered(&line?, session))
}

fn read_line() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_until(b'\n', &mut bytes)?;
    Ok(bytes)
}

/// A question without an answer. Ends its line when it is given up.
struct Open<'s>(Option<&'s Session>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // Best effort: a closed stderr is not an error here.
        if self.0.is_some_and(|session| !session.json) {
            let _ = writeln!(io::stderr());
        }
    }
}

fn answered(bytes: &[u8], session: &Session) -> Option<String> {
    if bytes.is_empty() {
        drop(Open(Some(session)));
        return None;
    }
    Some(String::from_utf8_lossy(bytes).trim().to_owned())
}

/// Returns whether an answer is a yes: the letter or the word, and nothing else.
pub(crate) fn is_yes(answer: &str) -> bool {
    ["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes))
}

/// Asks at the terminal without echoing the input.
pub(crate) fn hidden(question: &str, session: &Session) -> Result<Zeroizing<String>, Failure> {
    Ok(Zeroizing::new(session.at_hidden_prompt(|| rpassword::prompt_password(question))?))
}

/// Shows a new rescue phrase, but only at a terminal: anything else that reads stderr could store or forward it. Where the owner can answer, two
/// of its words are asked for, so that nothing scrolls it away before it is written down. Returns whether they were.
///
/// # Errors
///
/// [`Failure::Interrupted`] if the input ends (Ctrl-D).
pub(crate) fn rescue_phrase(words: &str, is_new: bool, session: &Session) -> Result<bool, Failure> {
    // It is shown again only to somebody who can answer.
    if !is_new && !io::stdin().is_terminal() {
        return Ok(false);
    }
    if session.json || !io::stderr().is_terminal() {
        let show = session.commands.with_places(&["phrase"]);
        if is_new {
            session.progress(&format!(
                "a rescue phrase was generated; the secrets and Bitcoin keys of all your orders can be derived from it; write it down: {show}"
            ));
        }
        return Ok(false);
    }
    let text = format!(
        ", which `countersign phrase` shows again:\n\n  {words}\n\nWrite it down. The secrets and Bitcoin keys of all your orders can be \
         derived from it.\nIt is not a wallet's phrase; never use it as one."
    );
    show::block_on_stderr("Your rescue phrase", &text);
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    confirm_words(words, session).map(|()| true)
}

/// Asks for two of the words until both are right.
fn confirm_words(words: &str, session: &Session) -> Result<(), Failure> {
    let words: Vec<_> = words.split(' ').collect();
    for position in asked(words.len(), show::now().as_secs()) {
        let question = format!("Once it is written down: which is word {} of {}?", position.saturating_add(1), words.len());
        loop {
            match line(&question, session)? {
                Some(answer) if words.get(position).is_some_and(|word| answer.eq_ignore_ascii_case(word)) => break,
                Some(_) => session.progress("that is another word; the phrase is above"),
                None => {
                    let advice = session.advice().unwrap_or_else(|| "nothing was sent".to_owned());
                    return Err(Failure::Interrupted(format!("stopped; {advice}; `countersign phrase` shows the rescue phrase again")));
                }
            }
        }
    }
    Ok(())
}

/// Returns the positions of two different words, in order, which change with the time.
fn asked(count: usize, seconds: u64) -> Vec<usize> {
    let Some(others) = count.checked_sub(1).filter(|others| *others > 0) else { return Vec::new() };
    let seconds = usize::try_from(seconds % 1_000_000).unwrap_or_default();
    let first = seconds.checked_rem(count).unwrap_or_default();
    let distance = seconds.checked_div(count).and_then(|rest| rest.checked_rem(others)).unwrap_or_default().saturating_add(1);
    let mut both = vec![first, first.saturating_add(distance).checked_rem(count).unwrap_or_default()];
    both.sort_unstable();
    both
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn only_the_letter_and_the_word_are_a_yes() {
        assert!(["y", "Y", "yes", "YES\n", " y "].into_iter().all(is_yes));
        assert!(["", "n", "no", "j", "ye", "yess", "y y", "true", "1"].into_iter().all(|answer| !is_yes(answer)));
    }

    #[test]
    fn two_different_words_of_the_phrase_are_asked_for() {
        let mut seen = std::collections::BTreeSet::new();
        for seconds in 0..200 {
            let both = asked(12, seconds);
            assert!(both.len() == 2 && both[0] < both[1] && both[1] < 12, "{seconds}: {both:?}");
            seen.extend(both);
        }
        assert_eq!(seen.len(), 12, "every word can be asked for");
        assert!(asked(0, 7).is_empty() && asked(1, 7).is_empty());
    }
}
