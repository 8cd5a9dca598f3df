//! Transactions that were sent.

use countersign::bitcoin::reader::{Sent, SentTransaction};
use countersign::bitcoin::{Bitcoin, SignedOrder, VerifiedOrder};
use countersign::{Family, Transaction};
use countersign_transport::Transport;

use super::BitcoinChain;
use crate::error::NodeError;
use crate::families::FamilyChain;
use crate::sent::{parsed, read};

impl<T: Transport> BitcoinChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        // Records add a number to the hash, which nodes do not take.
        let id = parsed(id, Family::Evm, str::parse)?;
        Ok(read::<T, Sent, _>(self.connection, &self.on_chain(SentTransaction(id))).await?.map(Transaction::Bitcoin))
    }
}

impl<T: Transport> FamilyChain for BitcoinChain<'_, T> {
    type Family = Bitcoin;

    async fn paid(&self, _: &VerifiedOrder, _: &str) -> Result<bool, NodeError> {
        // Any transaction that has the output pays, and it is compared as such.
        Ok(false)
    }

    async fn check_signed(&self, _: &SignedOrder) -> Result<(), NodeError> {
        // The signatures were proven when they were attached, and the chain asks for nothing else.
        Ok(())
    }
}
