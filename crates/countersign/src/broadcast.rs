//! Signed transactions as text, to store and to send to nodes.

use std::fmt;

use countersign_core::family::{ChainFamily, Signed as _};
use countersign_core::{Role, SignedOrder, SignedTransaction};
use serde::{Deserialize, Serialize};

use crate::states::Signed;

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
        each_family!(self, Self => |order| broadcasts(order))
    }
}

fn broadcasts<F: ChainFamily>(order: &SignedOrder<F>) -> Vec<BroadcastTransaction> {
    let broadcast = |transaction: SignedTransaction<F::Transaction>| BroadcastTransaction {
        chain: order.chain().to_owned(),
        role: transaction.role,
        payload: order.payloads().payload(&transaction),
        spends: F::Signed::spends(&transaction.native),
        id: transaction.id,
    };
    order.transactions().into_iter().map(broadcast).collect()
}
