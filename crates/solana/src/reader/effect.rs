//! What a transaction did, also that of another account.

use countersign_core::chains::Network;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request};
use countersign_core::{Code, Refusal};
use solana_signature::Signature;

use super::{identity, transactions};
use crate::read::TransactionEffect;

/// The transaction whose effect is read. Its id does not cover what programs called: that endpoints must agree protects it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct EffectQuery {
    /// The cluster.
    pub network: Network,
    /// The first signature.
    pub id: Signature,
}

/// Reads what the transaction with an id did, which may be that of a multisig or a smart wallet; `None` while the endpoint does not know it as
/// finalized. What it means for an order, [`Deposit::find_payment`](crate::Deposit::find_payment) says.
pub type Effect = Ask<EffectQuery>;

impl Question for EffectQuery {
    type Output = Equal<Option<TransactionEffect>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![transactions::by_id(&self.id.to_string())]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        let cursor = replies.json(0)?;
        if cursor.is_null() {
            return Ok(Equal(None));
        }
        let effect = TransactionEffect::read(&cursor)?;
        if effect.signature != self.id {
            let refusal = cursor.at().key("transaction").refuse(Code::TransactionMismatch).with_expected(self.id.to_string());
            return Err(refusal.with_actual(effect.signature.to_string()).into());
        }
        Ok(Equal(Some(effect)))
    }
}
