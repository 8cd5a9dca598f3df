//! Transactions that were sent, and payments by their effect.

use countersign::evm::reader::{Effect, EffectOf, Sent, SentTransaction};
use countersign::evm::{Evm, SignedOrder, VerifiedOrder};
use countersign::number::bare_hex_array;
use countersign::{Family, Transaction};
use countersign_core::reader::Equal;
use countersign_transport::Transport;

use super::EvmChain;
use crate::error::NodeError;
use crate::families::FamilyChain;
use crate::sent::{parsed, read};

impl<T: Transport> EvmChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        let subject = self.on_chain(SentTransaction(hash(id)?.into()));
        Ok(read::<T, Sent, _>(self.connection, &subject).await?.map(Transaction::Evm))
    }
}

impl<T: Transport> FamilyChain for EvmChain<'_, T> {
    type Family = Evm;

    async fn paid(&self, order: &VerifiedOrder, id: &str) -> Result<bool, NodeError> {
        let Equal(effect) = self.connection.agreed::<Effect>(&self.on_chain(EffectOf(hash(id)?.into()))).await?;
        Ok(effect.map(|effect| order.deposit().find_payment(&effect)).transpose()?.is_some())
    }

    async fn check_signed(&self, order: &SignedOrder) -> Result<(), NodeError> {
        self.check_gasless(order).await
    }
}

fn hash(id: &str) -> Result<[u8; 32], NodeError> {
    parsed(id, Family::Evm, |id| bare_hex_array(id.strip_prefix("0x").unwrap_or(id)))
}
