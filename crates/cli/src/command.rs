//! Command lines for the user to run next: complete, with the arguments that this run was given, and quoted for a shell.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};
use countersign::{Family, Leg, Registry};
use countersign_client::OrderId;
use countersign_client::driver::OrderState;

/// Arguments that say where things are. They apply to every command that has them.
const PLACES: [&str; 10] =
    ["state", "registry", "policy", "nodes", "node", "base_url", "app_id_file", "timeout", "proxy", "redeem_key_file"];
/// Arguments that say how an order is continued.
const CHOICES: [&str; 9] =
    ["wallet", "key_file", "key_env", "key_stdin", "service_secret", "trust_the_service", "at_least", "poll", "speed"];
/// Arguments whose values are paths, which must not depend on the directory of a later command.
const PATHS: [&str; 8] = ["state", "registry", "policy", "nodes", "app_id_file", "redeem_key_file", "wallet", "key_file"];

/// An argument of this run.
struct Given {
    id: String,
    flag: String,
    /// The environment variable that it is from; `None` for an argument.
    variable: Option<String>,
    /// Empty for a switch.
    values: Vec<OsString>,
}

/// Writes command lines with the arguments of this run. Defaults and the configuration file are not arguments: a later command reads them
/// too.
pub(crate) struct Commands {
    root: Command,
    given: Vec<Given>,
}

fn given(root: &Command, matches: &ArgMatches) -> Vec<Given> {
    let (mut command, mut matches) = (root, matches);
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, inner);
    }
    let mut given = Vec::new();
    for argument in command.get_arguments() {
        let (id, Some(flag)) = (argument.get_id().as_str(), argument.get_long()) else { continue };
        let source = matches.value_source(id);
        let is_given = matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable));
        if !is_given || !(PLACES.contains(&id) || CHOICES.contains(&id)) {
            continue;
        }
        let is_switch = matches!(argument.get_action(), ArgAction::SetTrue);
        let values = matches.get_raw(id).filter(|_| !is_switch).into_iter().flatten();
        let values = values.map(|value| match id {
            "node" | "proxy" => without_secrets(value),
            id if PATHS.contains(&id) => absolute(value),
            _ => value.to_owned(),
        });
        let values = values.collect();
        let variable = argument.get_env().filter(|_| source == Some(ValueSource::EnvVariable));
        let variable = variable.map(|name| name.to_string_lossy().into_owned());
        given.push(Given { id: id.to_owned(), flag: format!("--{flag}"), variable, values });
    }
    given
}

/// Replaces the parts of a URL that may be a password or an API key. A command with one has to be completed by whoever knows it.
fn without_secrets(value: &OsStr) -> OsString {
    let text = value.to_string_lossy();
    let Some((scheme, rest)) = text.split_once("://") else { return value.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(_, host)| ("USER:PASSWORD@", host));
    let path = if matches!(path, "" | "/") { path } else { "/KEY" };
    format!("{scheme}://{user}{host}{path}").into()
}

fn absolute(path: &OsStr) -> OsString {
    if path == "-" {
        return path.to_owned();
    }
    std::path::absolute(Path::new(path)).map_or_else(|_| path.to_owned(), std::path::PathBuf::into_os_string)
}

impl Commands {
    pub(crate) fn new(root: Command, matches: &ArgMatches) -> Self {
        Self { given: given(&root, matches), root }
    }

    /// Returns the command that continues an order.
    pub(crate) fn resume(&self, id: &OrderId) -> String {
        self.line(&["swap", "--resume", id.as_str()], &[&PLACES[..], &CHOICES].concat(), None)
    }

    /// Returns the command that follows an order.
    pub(crate) fn watch(&self, id: &OrderId) -> String {
        self.line(&["order", "watch", id.as_str()], &[&PLACES[..], &["poll"]].concat(), None)
    }

    /// Returns a command with the arguments that say where things are.
    pub(crate) fn with_places(&self, words: &[&str]) -> String {
        self.line(words, &PLACES, None)
    }

    /// Returns the command with which the owner redeems or refunds an order without the service.
    ///
    /// The key of an account on the other leg's chain would be the wrong one, so the key is that of the leg. On Bitcoin-like chains it is
    /// derived, and needs no argument.
    pub(crate) fn by_self(&self, leg: Leg, kept: &OrderState, registry: &Registry) -> String {
        let (verb, is_source) = if leg == Leg::Source { ("refund", true) } else { ("redeem", false) };
        let request = kept.swap.request();
        let family = |requested: &countersign::wire::RequestedLeg| registry.family(requested.asset.chain()).ok();
        let (source, destination) = (family(&request.source), family(&request.destination));
        let own = if is_source { source } else { destination };
        let key = |id: &'static str| self.has(id).then_some(id);
        let key = match own {
            Some(Family::Bitcoin) => None,
            _ if is_source => key("key_file").or_else(|| key("key_env")),
            _ if self.has("redeem_key_file") => Some("redeem_key_file"),
            _ if source == destination => key("key_file").or_else(|| key("key_env")),
            _ => None,
        };
        let places = PLACES.iter().copied().filter(|id| *id != "redeem_key_file").collect::<Vec<_>>();
        self.line(&[verb, "--self", kept.swap.id().as_str()], &[&places[..], &["speed"]].concat(), key)
    }

    /// Returns where an argument of this run is from: the variable, otherwise the flag.
    pub(crate) fn origin_of(&self, id: &str) -> String {
        let variable = self.given.iter().find(|one| one.id == id).and_then(|one| one.variable.clone());
        variable.unwrap_or_else(|| format!("--{}", id.replace('_', "-")))
    }

    fn has(&self, id: &str) -> bool {
        self.given.iter().any(|one| one.id == id)
    }

    /// Writes a command line. Arguments that the command does not have are left out. `key` is the argument whose value is its key.
    fn line(&self, words: &[&str], wanted: &[&str], key: Option<&str>) -> String {
        let mut command = &self.root;
        for word in words {
            match command.find_subcommand(word) {
                Some(found) => command = found,
                None => break,
            }
        }
        let mut text = words.iter().fold("countersign".to_owned(), |text, word| text + " " + &quoted(OsStr::new(word)));
        for one in &self.given {
            let flag = match key {
                Some(key) if one.id == key => {
                    if key == "redeem_key_file" {
                        "--key-file"
                    } else {
                        &one.flag
                    }
                }
                _ if wanted.contains(&one.id.as_str()) => &one.flag,
                _ => continue,
            };
            let is_known = command.get_arguments().any(|argument| argument.get_long().is_some_and(|long| flag == format!("--{long}")));
            if !is_known {
                continue;
            }
            if one.values.is_empty() {
                text.push_str(&format!(" {flag}"));
            }
            for value in &one.values {
                text.push_str(&format!(" {flag} {}", quoted(value)));
            }
        }
        text
    }
}

/// Quotes one word for a shell.
pub(crate) fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,~".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) && !text.starts_with('~') {
        return text.into_owned();
    }
    if cfg!(windows) { format!("\"{}\"", text.replace('"', "\\\"")) } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_url_in_a_command_line_has_no_secret() {
        for (given, shown) in [
            ("base=https://node.example", "base=https://node.example"),
            ("base=rpc+http://127.0.0.1:8332/", "base=rpc+http://127.0.0.1:8332/"),
            ("base=https://node.example/v3/S3CRET", "base=https://node.example/KEY"),
            ("base=https://node.example?key=S3CRET", "base=https://node.example/KEY"),
            ("http://user:pa55w0rd@proxy.example:8080", "http://USER:PASSWORD@proxy.example:8080"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(without_secrets(OsStr::new(given)), shown);
        }
    }

    #[test]
    fn words_with_special_characters_are_quoted() {
        for (word, expected) in [
            ("/home/user/nodes.json", "/home/user/nodes.json"),
            ("base=https://one.example/key", "base=https://one.example/key"),
            ("my swaps", "'my swaps'"),
            ("it's", r"'it'\''s'"),
            ("a$(b)", "'a$(b)'"),
            ("~", "'~'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(OsStr::new(word)), expected);
        }
    }
}
