//! Transactions that were sent, and payments by their effect.

use countersign::solana::reader::{Effect, EffectQuery, Sent, SentQuery};
use countersign::solana::{SignedOrder, Solana, VerifiedOrder};
use countersign::{Family, Transaction};
use countersign_core::reader::Equal;
use countersign_transport::Transport;

use super::SolanaChain;
use crate::error::NodeError;
use crate::families::FamilyChain;
use crate::sent::{parsed, read};

impl<T: Transport> SolanaChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        let subject = SentQuery { network: self.connection.network.clone(), id: parsed(id, Family::Solana, str::parse)? };
        Ok(read::<T, Sent, _>(self.connection, &subject).await?.map(Transaction::Solana))
    }
}

impl<T: Transport> FamilyChain for SolanaChain<'_, T> {
    type Family = Solana;

    async fn paid(&self, order: &VerifiedOrder, id: &str) -> Result<bool, NodeError> {
        let query = EffectQuery { network: self.connection.network.clone(), id: parsed(id, Family::Solana, str::parse)? };
        let Equal(effect) = self.connection.agreed::<Effect>(&query).await?;
        Ok(effect.map(|effect| order.deposit().find_payment(&effect)).transpose()?.is_some())
    }

    async fn check_signed(&self, _: &SignedOrder) -> Result<(), NodeError> {
        // The chain asks for the signature alone, which was proven when it was attached.
        Ok(())
    }
}
