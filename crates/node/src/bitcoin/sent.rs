//! Transactions that were sent.

use countersign::bitcoin::Bitcoin;
use countersign::bitcoin::reader::{Sent, SentTransaction};
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
}
