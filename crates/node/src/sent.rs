//! Reads transactions that were sent, by their ids.

use countersign::{Code, Family, Refusal, Transaction, Verified};
use countersign_core::chains::transaction_id::form;
use countersign_core::reader::{Agree, Equal, Judged, Machine};
use countersign_transport::Transport;

use crate::error::NodeError;
use crate::nodes::{Connection, Nodes};

/// Reads a transaction on which the endpoints must agree.
async fn read<T: Transport, M, D>(connection: Connection<'_, T>, subject: &M::Subject) -> Result<Option<D>, NodeError>
where
    M: Machine<Output = Judged<Equal<Option<D>>>>,
    M::Output: Agree,
{
    Ok(connection.agreed::<M>(subject).await?.0.map(|Equal(found)| found)?)
}

fn wrong_id(id: &str, family: Family) -> NodeError {
    // Records of chains like Bitcoin add a number to the hash, which nodes do not take.
    let expected = form(if family == Family::Bitcoin { Family::Evm } else { family });
    NodeError::Refused(Refusal::new(Code::TransactionIdMalformed, "/id").with_expected(expected).with_actual(id))
}

impl<T: Transport> Nodes<T> {
    /// Returns whether a transaction paid an order by its effect, which is that of an account with code, a bundler or a relay: on EVM,
    /// Tron and Starknet the event of the contract in its receipt, on Solana the instruction of the program, which another program may have called. `false` if the
    /// endpoints have no receipt of it, on a chain of another family, or if the chain is not connected. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionMismatch`] if the receipt does not show the payment, or with
    /// [`Code::TransactionIdMalformed`]; another [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn find_payment(&self, order: &Verified, id: &str) -> Result<bool, NodeError> {
        let paid = match (order, id) {
            #[cfg(feature = "evm")]
            (Verified::Evm(order), id) => match self.evm(order.chain()) {
                Ok(chain) => chain.paid(order, id).await,
                Err(error) => Err(error),
            },
            #[cfg(feature = "tron")]
            (Verified::Tron(order), id) => match self.tron(order.chain()) {
                Ok(chain) => chain.paid(order, id).await,
                Err(error) => Err(error),
            },
            #[cfg(feature = "starknet")]
            (Verified::Starknet(order), id) => match self.starknet(order.chain()) {
                Ok(chain) => chain.paid(order, id).await,
                Err(error) => Err(error),
            },
            #[cfg(feature = "solana")]
            (Verified::Solana(order), id) => match self.solana(order.chain()) {
                Ok(chain) => chain.paid(order, id).await,
                Err(error) => Err(error),
            },
            _ => Ok(false),
        };
        if matches!(paid, Err(NodeError::NotConnected(_))) { Ok(false) } else { paid }
    }
}

#[cfg(any(feature = "evm", feature = "tron"))]
fn hash(id: &str) -> Result<[u8; 32], NodeError> {
    let digits = id.strip_prefix("0x").unwrap_or(id);
    countersign::number::bare_hex_array(digits).map_err(|_| wrong_id(id, Family::Evm))
}

#[cfg(feature = "evm")]
impl<T: Transport> crate::evm::EvmChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        use countersign::evm::reader::{Sent, SentTransaction};

        let subject = self.on_chain(SentTransaction(hash(id)?.into()));
        Ok(read::<T, Sent, _>(self.connection, &subject).await?.map(Transaction::Evm))
    }

    async fn paid(&self, order: &countersign::evm::VerifiedOrder, id: &str) -> Result<bool, NodeError> {
        use countersign::evm::reader::{Effect, EffectOf};

        let Equal(effect) = self.connection.agreed::<Effect>(&self.on_chain(EffectOf(hash(id)?.into()))).await?;
        Ok(effect.map(|effect| order.deposit().find_payment(&effect)).transpose()?.is_some())
    }
}

#[cfg(feature = "tron")]
impl<T: Transport> crate::tron::TronChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        use countersign::tron::reader::{Sent, SentTransaction};

        let subject = self.on_chain(SentTransaction(hash(id)?.into()));
        Ok(read::<T, Sent, _>(self.connection, &subject).await?.map(Transaction::Tron))
    }

    async fn paid(&self, order: &countersign::tron::VerifiedOrder, id: &str) -> Result<bool, NodeError> {
        use countersign::tron::reader::{Effect, EffectOf};

        let Equal(effect) = self.connection.agreed::<Effect>(&self.on_chain(EffectOf(hash(id)?.into()))).await?;
        Ok(effect.map(|effect| order.deposit().find_payment(&effect)).transpose()?.is_some())
    }
}

#[cfg(feature = "starknet")]
impl<T: Transport> crate::starknet::StarknetChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        use countersign::starknet::felt;
        use countersign::starknet::reader::{Sent, SentQuery};

        let id = felt::parse(id).map_err(|_| wrong_id(id, Family::Starknet))?;
        let subject = SentQuery { chain_id: self.chain_id, id };
        Ok(read::<T, Sent, _>(self.connection, &subject).await?.map(Transaction::Starknet))
    }

    async fn paid(&self, order: &countersign::starknet::VerifiedOrder, id: &str) -> Result<bool, NodeError> {
        use countersign::starknet::felt;
        use countersign::starknet::reader::{Effect, EffectQuery};

        let id = felt::parse(id).map_err(|_| wrong_id(id, Family::Starknet))?;
        let Equal(effect) = self.connection.agreed::<Effect>(&EffectQuery { chain_id: self.chain_id, id }).await?;
        Ok(effect.map(|effect| order.deposit().find_payment(&effect)).transpose()?.is_some())
    }
}

#[cfg(feature = "solana")]
impl<T: Transport> crate::solana::SolanaChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        use countersign::solana::reader::{Sent, SentQuery};

        let id = id.parse().map_err(|_| wrong_id(id, Family::Solana))?;
        let subject = SentQuery { network: self.connection.network.clone(), id };
        Ok(read::<T, Sent, _>(self.connection, &subject).await?.map(Transaction::Solana))
    }

    async fn paid(&self, order: &countersign::solana::VerifiedOrder, id: &str) -> Result<bool, NodeError> {
        use countersign::solana::reader::{Effect, EffectQuery};

        let id = id.parse().map_err(|_| wrong_id(id, Family::Solana))?;
        let Equal(effect) = self.connection.agreed::<Effect>(&EffectQuery { network: self.connection.network.clone(), id }).await?;
        Ok(effect.map(|effect| order.deposit().find_payment(&effect)).transpose()?.is_some())
    }
}

#[cfg(feature = "sui")]
impl<T: Transport> crate::sui::SuiChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        use countersign::sui::reader::SentTransaction;
        use countersign::sui::sui_sdk_types::Digest;
        use countersign_core::reader::Ask;

        // The parser takes shorter text too.
        let digest = id.parse().ok().filter(|digest: &Digest| digest.to_base58() == id);
        let digest = digest.ok_or_else(|| wrong_id(id, Family::Sui))?;
        Ok(read::<T, Ask<_>, _>(self.connection, &self.on(SentTransaction(digest))).await?.map(Transaction::Sui))
    }
}

#[cfg(feature = "bitcoin")]
impl<T: Transport> crate::bitcoin::BitcoinChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        use countersign::bitcoin::reader::{Sent, SentTransaction};

        let id = id.parse().map_err(|_| wrong_id(id, Family::Bitcoin))?;
        Ok(read::<T, Sent, _>(self.connection, &self.on_chain(SentTransaction(id))).await?.map(Transaction::Bitcoin))
    }
}
