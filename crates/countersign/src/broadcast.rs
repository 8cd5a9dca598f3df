//! Signed transactions as text, to store and to send to nodes.

use std::fmt;

use countersign_core::{Role, SignedTransaction};
use serde::{Deserialize, Serialize};

use crate::states::{Signed, Transaction};

/// A signed transaction as text, to store and to send, now or again later.
///
/// ```
/// use countersign::{BroadcastTransaction, Role};
///
/// let stored = r#"{"chain":"base","role":"refund","id":"0x5f1e","payload":"0x02f8"}"#;
/// let transaction: BroadcastTransaction = serde_json::from_str(stored)?;
/// assert_eq!(
///     (transaction.role, transaction.payload.as_str()),
///     (Role::Refund, "0x02f8")
/// );
/// assert_eq!(serde_json::to_string(&transaction)?, stored);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a member of a file whose form is documented")]
pub struct BroadcastTransaction {
    /// The chain's name in asset ids.
    pub chain: String,
    /// What it does.
    pub role: Role,
    /// Its id, as explorers write it.
    pub id: String,
    /// What nodes accept: the bytes in hex, on EVM chains with `0x`; on Starknet and Sui the JSON of their interfaces.
    pub payload: String,
    /// The outputs that it spends, on Bitcoin-like chains: two transactions that share one cannot both be mined. Empty on other chains.
    /// Serialized as `inputs`.
    #[serde(rename = "inputs", default, skip_serializing_if = "Vec::is_empty")]
    pub spends: Vec<String>,
}

impl fmt::Debug for BroadcastTransaction {
    /// Leaves out the payload, because that of a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BroadcastTransaction({} {} on {})", self.role, self.id, self.chain)
    }
}

impl Signed {
    /// Returns the transactions in the order in which they are broadcast, as text.
    #[must_use]
    pub fn broadcasts(&self) -> Vec<BroadcastTransaction> {
        let transactions = self.transactions().into_iter();
        transactions.map(|transaction| self.broadcast(transaction)).collect()
    }

    fn broadcast(&self, transaction: SignedTransaction<Transaction>) -> BroadcastTransaction {
        let SignedTransaction { role, id, bytes, native, .. } = transaction;
        #[allow(unreachable_patterns, reason = "a build can be without other families")]
        let (payload, spends) = match (self, native) {
            #[cfg(feature = "evm")]
            (_, Transaction::Evm(_)) => (format!("0x{}", hex::encode(bytes)), Vec::new()),
            #[cfg(feature = "starknet")]
            (_, Transaction::Starknet(_)) => (String::from_utf8(bytes).unwrap_or_default(), Vec::new()),
            // Nodes take the transaction and its signatures apart.
            #[cfg(feature = "sui")]
            (Self::Sui(order), _) => (serde_json::to_string(&order.payloads().execution()).unwrap_or_default(), Vec::new()),
            #[cfg(feature = "bitcoin")]
            (_, Transaction::Bitcoin(native)) => {
                (hex::encode(bytes), native.input.iter().map(|input| input.previous_output.to_string()).collect())
            }
            _ => (hex::encode(bytes), Vec::new()),
        };
        BroadcastTransaction { chain: self.chain().to_owned(), role, id, payload, spends }
    }
}
