//! Asks for each value at the terminal, checks it at once, and asks again for what is wrong.

use std::path::{Path, PathBuf};

use super::checks::{self, Checks};
use super::{Args, Found, Values, written};
use crate::failure::Failure;
use crate::preflight::Problems;
use crate::session::Session;
use crate::{prompt, service};

/// Asks for what the arguments leave out. An argument that is wrong is asked for, too.
///
/// # Errors
///
/// [`Failure::Interrupted`] if the input ends (Ctrl-D). Nothing is written before the last answer.
pub(super) fn ask(args: &Args, session: &Session) -> Result<(Values, Found), Failure> {
    let app_id_file = args.service.app_id_file().map(written).transpose()?;
    let checks = Checks { service: &args.service, app_id_file: app_id_file.as_deref(), session, is_asked: true };
    let dialogue = Dialogue { session };
    let path = |given: &Option<PathBuf>| given.as_ref().map(|path| path.display().to_string());

    let base_url = dialogue.until_right(args.service.base_url().map(str::to_owned), "URL of the service:", |answer, problems| {
        let Some(url) = answer else {
            problems.add("the URL is needed: the service makes the offers");
            return Ok(None);
        };
        problems.take(service::run(session, checks.health(Some(url))));
        Ok(Some(url.to_owned()))
    })?;
    let question = "registry file, with the contracts that you trust (a new name to make one):";
    let (registry, pins, is_new) = dialogue.until_right(path(&args.registry), question, |answer, problems| {
        let Some(path) = answer else {
            problems.add("a registry is needed: orders are compared with it");
            return Ok(None);
        };
        let path = file(path)?;
        if path.exists() {
            return Ok(problems.take(checks::registry(&path)).map(|registry| (path, registry, false)));
        }
        let question = format!("{} does not exist; make it of what the service lists now? [y/N]", path.display());
        if !args.pin && !dialogue.line(&question)?.is_some_and(|answer| prompt::is_yes(&answer)) {
            problems.add("then name a file that exists");
            return Ok(None);
        }
        Ok(problems.take(checks.pins(Some(&base_url), &path)).map(|registry| (path, registry, true)))
    })?;
    let mut warnings = Vec::new();
    let question = "file with the endpoints of chains (empty: you broadcast, and check the solver's payment, yourself):";
    let nodes = dialogue.until_right(path(&args.nodes), question, |answer, problems| {
        let Some(path) = answer.map(file).transpose()? else { return Ok(Some(None)) };
        warnings.clear();
        checks.nodes(problems, &path, &pins, &mut warnings)?;
        Ok(Some(Some(path)))
    })?;
    let question = "your addresses, to pay from and to be paid at, as chain=address chain=address (empty: name them with each swap):";
    let given = Some(args.owner.join(" ")).filter(|owners| !owners.is_empty());
    let owners = dialogue.until_right(given, question, |answer, problems| {
        let texts: Vec<_> = answer.unwrap_or_default().split_whitespace().collect();
        let owners = problems.take(checks::owners(&texts)).unwrap_or_default();
        checks::check_owners(problems, &owners, &pins);
        Ok(Some(owners))
    })?;
    let question = "file with the key that pays (empty for none):";
    let key_file = dialogue.until_right(path(&args.key_file), question, |answer, problems| {
        let Some(path) = answer.map(file).transpose()? else { return Ok(Some(None)) };
        checks::key(problems, &path, &owners, Some(&pins));
        Ok(Some(Some(path)))
    })?;
    let values = Values { base_url: Some(base_url), registry: Some(registry), nodes, key_file, app_id_file, owners };
    Ok((values, Found { registry: pins, is_new, warnings }))
}

/// Returns the path that a person has typed, in which `~/` is the home directory.
fn file(answer: &str) -> Result<PathBuf, Failure> {
    let home = answer.strip_prefix("~/").and_then(|rest| Some(etcetera::home_dir().ok()?.join(rest)));
    written(home.unwrap_or_else(|| Path::new(answer).to_owned()))
}

struct Dialogue<'d> {
    session: &'d Session,
}

impl Dialogue<'_> {
    /// Asks a question; `None` for an empty answer.
    fn line(&self, question: &str) -> Result<Option<String>, Failure> {
        let answer = prompt::line(question, self.session)?;
        let answer = answer.ok_or_else(|| Failure::Interrupted("stopped; nothing was written".to_owned()))?;
        Ok(Some(answer).filter(|answer| !answer.is_empty()))
    }

    /// Asks until an answer has no problem. The first answer is what was given, if anything was. `check` returns the value of an answer, which
    /// is `None` for an empty one, or notes what is wrong with it.
    fn until_right<T>(
        &self,
        mut given: Option<String>,
        question: &str,
        mut check: impl FnMut(Option<&str>, &mut Problems) -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        loop {
            let answer = match given.take() {
                Some(given) => Some(given),
                None => self.line(question)?,
            };
            let mut problems = Problems::default();
            let value = check(answer.as_deref(), &mut problems)?;
            match (value, problems.all()) {
                (Some(value), problems) if problems.is_empty() => return Ok(value),
                (_, problems) => problems.iter().for_each(|problem| self.session.progress(&format!("- {problem}"))),
            }
        }
    }
}
