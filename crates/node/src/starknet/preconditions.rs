//! What must hold on Starknet before an order is paid, and before its secret leaves.

use countersign::evidence::Precondition;
use countersign::starknet::address::from_account;
use countersign::starknet::reader::{STRK, TokenAsked, TokenCheck, TokenQuery};
use countersign_core::reader::check_worth;
use countersign_transport::Transport;

use super::{StarknetChain, parse};
use crate::error::NodeError;
use crate::preconditions::End;

impl<T: Transport> StarknetChain<'_, T> {
    pub(crate) async fn precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        let token = end.asset.token.as_ref().map(|token| parse(&token.text, "/token")).transpose()?;
        let (token, asked) = match (item, token) {
            (Precondition::Decimals, Some(token)) => (token, TokenAsked::Decimals(end.asset.record.decimals)),
            (Precondition::Receiver, Some(token)) => match (end.receiver, end.asset.htlc.as_ref().and_then(from_account)) {
                (Some(receiver), Some(htlc)) => (token, TokenAsked::Payment { htlc, receiver: parse(receiver, "/destination")? }),
                _ => return Ok(Vec::new()),
            },
            (Precondition::Redeemer | Precondition::Payout, _) => {
                // Fees are paid in STRK, so only a payout in it can be compared with them.
                let payout = end.payout.filter(|_| token == Some(STRK) && item == Precondition::Payout);
                let Some(account) = end.redeemer.filter(|_| payout.is_some() || item == Precondition::Redeemer) else {
                    return Ok(Vec::new());
                };
                let account = parse(account, "/sender")?;
                let (execution, _) = self.context(account, None, end.bid).await?;
                let fee = execution.resource_bounds.max_fee(execution.tip);
                if let Some(payout) = payout {
                    check_worth(payout, fee)?;
                    return Ok(Vec::new());
                }
                (STRK, TokenAsked::Balance(account, fee))
            }
            _ => return Ok(Vec::new()),
        };
        self.connection.agreed::<TokenCheck>(&TokenQuery { chain_id: self.chain_id, token, asked }).await?.0?;
        Ok(Vec::new())
    }
}
