//! Prepares verified orders for signing, with the wallet context that their chains report: nonce, fees, allowance, coins.

use countersign::recover::Recovery;
use countersign::{Policy, Unsigned, Verified};
use countersign_core::reader::Submission;
use countersign_transport::Transport;

use crate::error::NodeError;
use crate::nodes::{Nodes, Speed};

impl<T: Transport> Nodes<T> {
    /// Reads the wallet context from the chain and prepares a verified order for signing.
    ///
    /// If the order offers a gasless path, it is prepared for that path, with the approval that it still needs. Otherwise it is prepared
    /// for the owner's own transactions. (On Starknet an order that still needs an approval is one transaction of the owner.) `owner` is
    /// the address whose coins pay on a Bitcoin-like chain; other chains ignore it. Except on Bitcoin-like chains, a preflight checks
    /// the funds and simulates what may be shown to a node.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain is not connected or belongs to another family. Returns [`NodeError::Refused`] if
    /// a fee exceeds the policy, the owner has too little, or the simulation fails. Returns another [`NodeError`] if no endpoint answers
    /// or too few of them agree.
    #[allow(unused_variables, reason = "not every family has a speed, or coins with an owner")]
    pub async fn prepare(&self, order: &Verified, chain: &str, owner: &str, speed: Speed, policy: &Policy) -> Result<Unsigned, NodeError> {
        match order {
            #[cfg(feature = "bitcoin")]
            Verified::Bitcoin(order) => Ok(self.bitcoin(chain)?.prepare(order, owner, speed, policy).await?.into()),
            #[cfg(feature = "evm")]
            Verified::Evm(order) => Ok(self.evm(chain)?.prepare(order, speed, policy).await?.into()),
            #[cfg(feature = "solana")]
            Verified::Solana(order) => Ok(self.solana(chain)?.prepare(order, speed).await?.into()),
            #[cfg(feature = "starknet")]
            Verified::Starknet(order) => Ok(self.starknet(chain)?.prepare(order, speed, policy).await?.into()),
            #[cfg(feature = "sui")]
            Verified::Sui(order) => Ok(self.sui(chain)?.prepare(order, speed, policy).await?.into()),
            #[cfg(feature = "tron")]
            Verified::Tron(order) => Ok(self.tron(chain)?.prepare(order).await?.into()),
            _ => Err(NodeError::NotConnected(chain.to_owned())),
        }
    }

    /// Reads the wallet context from the chain and prepares a redemption or a refund for signing.
    ///
    /// `account` is the address that sends it and pays the fee. On a Bitcoin-like chain it is the address that receives the coins, minus
    /// the fee.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Nodes::prepare`].
    #[allow(unused_variables, reason = "not every family has a speed")]
    pub async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        chain: &str,
        account: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<Unsigned, NodeError> {
        match recovery {
            #[cfg(feature = "bitcoin")]
            Recovery::Bitcoin(recovery) => Ok(self.bitcoin(chain)?.prepare_recovery(recovery, account, speed, policy).await?.into()),
            #[cfg(feature = "evm")]
            Recovery::Evm(recovery) => Ok(self.evm(chain)?.prepare_recovery(recovery, account, speed, policy).await?.into()),
            #[cfg(feature = "solana")]
            Recovery::Solana(recovery) => Ok(self.solana(chain)?.prepare_recovery(recovery, account, speed, policy).await?.into()),
            #[cfg(feature = "starknet")]
            Recovery::Starknet(recovery) => Ok(self.starknet(chain)?.prepare_recovery(recovery, account, speed, policy).await?.into()),
            #[cfg(feature = "sui")]
            Recovery::Sui(recovery) => Ok(self.sui(chain)?.prepare_recovery(recovery, account, speed, policy).await?.into()),
            #[cfg(feature = "tron")]
            Recovery::Tron(recovery) => Ok(self.tron(chain)?.prepare_recovery(recovery, account, policy).await?.into()),
            _ => Err(NodeError::NotConnected(chain.to_owned())),
        }
    }

    /// Prepares a redemption or a refund that replaces one that was sent and is not mined yet.
    ///
    /// Only one of the two can take effect. The new one pays a fee that is high enough for nodes to accept it. Returns `None` on chains
    /// without replacement: Starknet, Sui and Tron.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Nodes::prepare`]. Also returns [`NodeError::Refused`] if `sent` is not a transaction of the chain with
    /// the stored id: with [`Code::TransactionMalformed`](countersign::Code::TransactionMalformed) on Bitcoin-like chains, and with
    /// [`Code::TransactionMismatch`](countersign::Code::TransactionMismatch) on EVM chains and Solana.
    #[allow(unused_variables, reason = "not every family replaces transactions")]
    pub async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        chain: &str,
        account: &str,
        sent: &Submission,
        speed: Speed,
        policy: &Policy,
    ) -> Result<Option<Unsigned>, NodeError> {
        match recovery {
            #[cfg(feature = "bitcoin")]
            Recovery::Bitcoin(recovery) => {
                Ok(Some(self.bitcoin(chain)?.prepare_replacement(recovery, account, sent, speed, policy).await?.into()))
            }
            #[cfg(feature = "evm")]
            Recovery::Evm(recovery) => Ok(Some(self.evm(chain)?.prepare_replacement(recovery, account, sent, speed, policy).await?.into())),
            #[cfg(feature = "solana")]
            Recovery::Solana(recovery) => {
                Ok(Some(self.solana(chain)?.prepare_replacement(recovery, account, sent, speed, policy).await?.into()))
            }
            _ => Ok(None),
        }
    }
}
