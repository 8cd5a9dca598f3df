//! Transactions that were sent, and payments by their effect.

use countersign::number::bare_hex_array;
use countersign::tron::reader::{Effect, EffectOf, Sent, SentTransaction};
use countersign::tron::{SignedOrder, Tron, VerifiedOrder};
use countersign::{Family, Transaction};
use countersign_core::reader::Equal;
use countersign_transport::Transport;

use super::TronChain;
use crate::error::NodeError;
use crate::families::FamilyChain;
use crate::sent::{parsed, read};

impl<T: Transport> TronChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        let subject = self.on_chain(SentTransaction(hash(id)?.into()));
        Ok(read::<T, Sent, _>(self.connection, &subject).await?.map(Transaction::Tron))
    }
}

impl<T: Transport> FamilyChain for TronChain<'_, T> {
    type Family = Tron;

    async fn paid(&self, order: &VerifiedOrder, id: &str) -> Result<bool, NodeError> {
        let Equal(effect) = self.connection.agreed::<Effect>(&self.on_chain(EffectOf(hash(id)?.into()))).await?;
        Ok(effect.map(|effect| order.deposit().find_payment(&effect)).transpose()?.is_some())
    }

    async fn check_signed(&self, order: &SignedOrder) -> Result<(), NodeError> {
        self.check_signers(order).await
    }
}

fn hash(id: &str) -> Result<[u8; 32], NodeError> {
    parsed(id, Family::Tron, |id| bare_hex_array(id.strip_prefix("0x").unwrap_or(id)))
}
