//! Transactions that were sent, and payments by their effect.

use countersign::starknet::reader::{Effect, EffectQuery, Sent, SentQuery};
use countersign::starknet::{Felt, SignedOrder, Starknet, VerifiedOrder, felt};
use countersign::{Family, Transaction};
use countersign_core::reader::Equal;
use countersign_transport::Transport;

use super::StarknetChain;
use crate::error::NodeError;
use crate::families::FamilyChain;
use crate::sent::{parsed, read};

impl<T: Transport> StarknetChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        let subject = SentQuery { chain_id: self.chain_id, id: hash(id)? };
        Ok(read::<T, Sent, _>(self.connection, &subject).await?.map(Transaction::Starknet))
    }
}

impl<T: Transport> FamilyChain for StarknetChain<'_, T> {
    type Family = Starknet;

    async fn paid(&self, order: &VerifiedOrder, id: &str) -> Result<bool, NodeError> {
        let Equal(effect) = self.connection.agreed::<Effect>(&EffectQuery { chain_id: self.chain_id, id: hash(id)? }).await?;
        Ok(effect.map(|effect| order.deposit().find_payment(&effect)).transpose()?.is_some())
    }

    async fn check_signed(&self, _: &SignedOrder) -> Result<(), NodeError> {
        // The account's contract judges the signature when it runs the call, or when the relayer submits it. Nothing is paid if it refuses.
        Ok(())
    }
}

fn hash(id: &str) -> Result<Felt, NodeError> {
    parsed(id, Family::Starknet, felt::parse)
}
