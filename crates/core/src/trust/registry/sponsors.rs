//! Who may pay for gasless transactions. The service lists no sponsors, so a wallet pins those that it knows
//! (`docs/spec/batch.md#sponsor-entry`).

use countersign_chains::{Account, address};
use serde::Serialize;

use super::Registry;
use super::rules::fault;
use crate::json::Cursor;
use crate::report::Code;
use crate::report::Refusal;
use crate::sort;
use crate::wire::Read;

/// An account of the service that pays for gasless transactions of one chain: `{"chain", "address"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Sponsor {
    /// Chain name.
    pub chain: String,
    /// The address as it was pinned.
    pub address: String,
    /// The account.
    #[serde(skip)]
    pub account: Account,
}

impl Registry {
    /// Pins the sponsors of a registry file. One on a chain that is not listed would silently have no effect, so it is refused.
    pub(super) fn add_sponsors(&mut self, list: Cursor<'_, '_>) -> Result<(), Refusal> {
        for cursor in list.array()? {
            let members = cursor.object()?;
            let (chain, address) = (String::read(members.need("chain")?)?, String::read(members.need("address")?)?);
            let malformed = |detail: String| cursor.refuse(Code::RegistryMalformed).with_reason(detail);
            let pinned = self.chains.get(&chain).ok_or_else(|| malformed("the chain of a sponsor is not listed".to_owned()))?;
            let account = address::parse(&pinned.network, &address).map_err(|error| malformed(format!("sponsor: {error}")))?;
            if let Some(fault) = fault(&account) {
                return Err(malformed(format!("the account of a sponsor {fault}")));
            }
            let known = self.sponsors.entry(chain.clone()).or_default();
            if !known.iter().any(|sponsor| sponsor.account == account) {
                known.push(Sponsor { chain, address, account });
            }
        }
        Ok(())
    }

    /// Returns the pinned sponsors of one chain. If there are none, a sponsor is not compared with the registry.
    #[must_use]
    pub fn sponsors_of(&self, chain: &str) -> &[Sponsor] {
        self.sponsors.get(chain).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns every pinned sponsor, sorted by chain and address.
    #[must_use]
    pub fn sponsors(&self) -> Vec<&Sponsor> {
        let mut sponsors: Vec<_> = self.sponsors.values().flatten().collect();
        sort::by(&mut sponsors, |one, other| (&one.chain, &one.address).cmp(&(&other.chain, &other.address)));
        sponsors
    }

    /// Replaces the sponsors by those of older pins, because no list of the service has any.
    #[must_use]
    pub fn with_sponsors_of(mut self, older: &Self) -> Self {
        self.sponsors = older.sponsors.clone();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAINS: &str = r#"{"chains":[{"chain":"solana","id":"solana:mainnet"}],"assets":[],"sponsors":"#;
    const PINNED: &str = r#"[{"chain":"solana","address":"4JVH1tK1mDB5HmmcLCyVQZ5iK2iCK4kBCoj5nsStEBoG"}]"#;

    fn read(sponsors: &str) -> Result<Registry, Refusal> {
        Registry::from_json(format!("{CHAINS}{sponsors}}}").as_bytes())
    }

    #[test]
    fn sponsors_are_kept_compared_and_written() {
        let (pinned, none) = (read(PINNED).unwrap(), read("[]").unwrap());
        assert_eq!(pinned.sponsors_of("solana").len(), 1);
        assert!(none.sponsors_of("solana").is_empty());
        assert_eq!(pinned.diff(&none).len(), 1);
        assert!(pinned.diff(&none.clone().with_sponsors_of(&pinned)).is_empty());
        let again = Registry::from_json(&serde_json::to_vec(&pinned).unwrap()).unwrap();
        assert_eq!(again.sponsors(), pinned.sponsors());
        assert!(!serde_json::to_string(&none).unwrap().contains("sponsors"));
    }

    #[test]
    fn refuses_a_sponsor_that_would_not_hold() {
        for sponsors in [
            r#"[{"chain":"sol","address":"4JVH1tK1mDB5HmmcLCyVQZ5iK2iCK4kBCoj5nsStEBoG"}]"#,
            r#"[{"chain":"solana","address":"4J"}]"#,
            r#"[{"chain":"solana","address":"11111111111111111111111111111111"}]"#,
        ] {
            let refusal = read(sponsors).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::RegistryMalformed, "/sponsors/0"));
        }
    }
}
