//! The proxy of every connection: to the service, and to the endpoints of chains.
//!
//! `--proxy` names it, otherwise the first of `HTTPS_PROXY`, `https_proxy`, `ALL_PROXY` and `all_proxy` that is not empty. The hosts in
//! `NO_PROXY` or `no_proxy` are reached directly, and so is this machine over http.

use std::env;

use countersign_client::{Http, Timeouts};

use crate::failure::{Failure, usage};

const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Returns the first variable that is set and not empty.
fn variable<'n>(names: &[&'n str]) -> Option<(&'n str, String)> {
    names.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()).map(|value| (*name, value)))
}

/// Creates the HTTP stack. `given` is the proxy that the user gave as an argument. Errors do not contain the proxy's URL, which may have a
/// password.
pub(crate) fn http(timeouts: Timeouts, given: Option<&str>) -> Result<Http, Failure> {
    let given = given.filter(|url| !url.is_empty()).map(|url| ("--proxy", url.to_owned()));
    let Some((name, url)) = given.or_else(|| variable(&PROXIES)) else {
        return Http::new(timeouts).map_err(|error| countersign_client::Error::from(error).into());
    };
    let direct = variable(&EXCEPTIONS).map(|(_, hosts)| hosts).unwrap_or_default();
    Http::with_proxy(timeouts, &url, &direct).map_err(|error| usage(format_args!("{name}: {}", error.detail)))
}
