//! What a Bitcoin or Litecoin order locks: the address and the amount of its deposit.

use bitcoin::{Amount, ScriptBuf};

use crate::address::Chain;
use crate::htlc::Tree;
use crate::uri::payment_uri;

/// The deposit of an order: its address and amount, and the HTLC if the address was recomputed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deposit {
    /// The chain of the deposit.
    pub chain: Chain,
    /// The deposit address, bech32m in lower case.
    pub address: String,
    /// The script pubkey of the address.
    pub script_pubkey: ScriptBuf,
    /// The amount, at most the chain's supply.
    pub amount: Amount,
    /// The HTLC from which the address was recomputed; `None` if the address is taken on trust.
    pub tree: Option<Tree>,
    /// The current form of the owner's address, if the request has Litecoin's old `3…` form, which Bitcoin also uses; else `None`.
    pub canonical_owner: Option<String>,
    /// The highest fee rate that the policy allows, in sat/vB.
    pub(crate) max_fee_rate: u64,
}

impl Deposit {
    /// Returns the payment URI with the address and the amount, for any wallet.
    #[must_use]
    pub fn uri(&self) -> String {
        payment_uri(self.chain, &self.address, self.amount)
    }
}
