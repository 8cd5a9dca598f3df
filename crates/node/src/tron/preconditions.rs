//! What must hold on Tron before an order is paid, and before its secret leaves.

use countersign::evidence::Precondition;
use countersign::tron::Address;
use countersign::tron::reader::{Decimals, DecimalsCheck, Payer, PayerCheck, Receiver, ReceiverCheck};
use countersign::tron::recover::fee_limit;
use countersign_transport::Transport;

use super::{TronChain, parse};
use crate::error::NodeError;
use crate::preconditions::End;

impl<T: Transport> TronChain<'_, T> {
    pub(crate) async fn precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        let asset = end.asset;
        let token = asset.token.as_ref().map(|token| parse(&token.text, "/token")).transpose()?;
        match item {
            Precondition::Decimals => {
                if let Some(token) = token {
                    let subject = Decimals { token, decimals: asset.record.decimals };
                    self.connection.agreed::<DecimalsCheck>(&self.on_chain(subject)).await?.0?;
                }
            }
            Precondition::Receiver => {
                if let (Some(receiver), Some(htlc)) = (end.receiver, asset.htlc.as_ref().and_then(Address::from_account)) {
                    let subject = Receiver { token, htlc, receiver: parse(receiver, "/destination")?, amount: end.held() };
                    self.connection.agreed::<ReceiverCheck>(&self.on_chain(subject)).await?.0?;
                }
            }
            Precondition::Payout | Precondition::Redeemer => {
                let payout = end.coins().filter(|_| item == Precondition::Payout);
                if let Some(account) = end.redeemer
                    && (payout.is_some() || item == Precondition::Redeemer)
                {
                    let (account, fee_limit) = (parse(account, "/sender")?, fee_limit(end.bid.policy)?);
                    let subject = Payer { account, fee_limit, payout, permission: end.permission.or(self.connection.permission).cloned() };
                    self.connection.agreed::<PayerCheck>(&self.on_chain(subject)).await?.0?;
                }
            }
            _ => {}
        }
        Ok(Vec::new())
    }
}
