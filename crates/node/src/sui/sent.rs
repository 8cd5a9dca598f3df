//! Transactions that were sent.

use countersign::sui::reader::SentTransaction;
use countersign::sui::sui_sdk_types::Digest;
use countersign::sui::{SignedOrder, Sui, VerifiedOrder};
use countersign::{Family, Transaction};
use countersign_core::reader::Ask;
use countersign_transport::Transport;

use super::SuiChain;
use crate::error::NodeError;
use crate::families::FamilyChain;
use crate::sent::{parsed, read};

impl<T: Transport> SuiChain<'_, T> {
    pub(crate) async fn sent(&self, id: &str) -> Result<Option<Transaction>, NodeError> {
        // The parser takes shorter text too.
        let exact = |id: &str| id.parse().ok().filter(|digest: &Digest| digest.to_base58() == id).ok_or(());
        let digest = parsed(id, Family::Sui, exact)?;
        Ok(read::<T, Ask<_>, _>(self.connection, &self.on(SentTransaction(digest))).await?.map(Transaction::Sui))
    }
}

impl<T: Transport> FamilyChain for SuiChain<'_, T> {
    type Family = Sui;

    async fn paid(&self, _: &VerifiedOrder, _: &str) -> Result<bool, NodeError> {
        // The owner's own transaction is the only one that pays, and it is compared as such.
        Ok(false)
    }

    async fn check_signed(&self, _: &SignedOrder) -> Result<(), NodeError> {
        // A signature was proven when it was attached, or only validators can prove it, and they run nothing that it does not fit.
        Ok(())
    }
}
