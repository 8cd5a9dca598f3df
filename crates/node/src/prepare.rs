//! Preparing what was verified with what its chain says that a wallet must know: nonce, fees, allowance, coins.

use countersign::recover::Recovery;
use countersign::{Policy, Unsigned, Verified};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;

use crate::error::NodeError;
use crate::nodes::{Nodes, Speed};

impl<T: Transport> Nodes<T> {
    /// Prepares an order to be paid by its owner: `owner` is the address whose coins pay on a Bitcoin-like chain. Where an
    /// order offers a gasless path it is prepared for it, with the approval that it still needs; else for the owner's own
    /// transactions.
    ///
    /// # Errors
    ///
    /// [`NodeError::Refused`] where a fee is beyond the policy or the owner has too little; any other [`NodeError`] if the chain
    /// does not answer.
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

    /// Prepares a redemption or a refund. `account` is who sends it and pays the fee; on a Bitcoin-like chain it is the address that
    /// the coins go to, less the fee.
    ///
    /// # Errors
    ///
    /// As [`Nodes::prepare`].
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

    /// Prepares a redemption or a refund in place of one that was sent and is not mined: only one of the two can take effect, and
    /// this one pays enough more for nodes to take it. `None` where the chain has no such thing.
    ///
    /// # Errors
    ///
    /// As [`Nodes::prepare`], and [`Code::TransactionMalformed`](countersign::Code::TransactionMalformed) if what was sent is not a
    /// transaction of the chain.
    #[allow(unused_variables, reason = "not every family replaces transactions")]
    pub async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        chain: &str,
        account: &str,
        sent: &KeptTransaction,
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
