//! The wallet context for signing: a reference block, a lifetime, balances and allowances.

use countersign::tron::alloy_primitives::U256;
use countersign::tron::reader::{Balance, BalanceOf, Context, NewestBlock, View, candidates};
use countersign::tron::{Address, TxContext};
use countersign::trust::Contract;
use countersign_transport::Transport;

use super::{TronChain, parse};
use crate::error::NodeError;

impl<T: Transport> TronChain<'_, T> {
    /// Reads the context for signing the next calls: a reference block, a lifetime of one hour after its time, and the permission of
    /// [`Nodes::with_permission`](crate::Nodes::with_permission).
    ///
    /// The reference is the newest irreversible block on which the endpoints agree, so that no reorganization makes the transactions
    /// invalid. With a reference that the chain does not have, a redemption would show the secret and never be mined.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn calls(&self) -> Result<TxContext, NodeError> {
        let irreversible = self.on_chain(View::Irreversible);
        let tips = self.connection.gather::<NewestBlock, _, _>(&irreversible, |tip| Ok::<_, NodeError>(tip.output().height)).await?;
        tips.agreed().map_err(|doubt| self.connection.doubt::<NodeError>(doubt))?;
        let mut failed = None;
        for height in candidates(tips.heard().filter_map(|(_, word)| Some(word.ok()?.output().height))) {
            match self.connection.agreed::<Context>(&self.on_chain(height)).await {
                Ok(read) => {
                    let mut calls = read.0;
                    calls.permission = self.connection.permission.cloned();
                    return Ok(calls);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| NodeError::NotConnected(self.connection.name.to_owned())))
    }

    /// Reads the balance of an account in base units of a token, or in sun of TRX if `token` is `None`. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Address, token: Option<Address>) -> Result<U256, NodeError> {
        let of = token.map_or(BalanceOf::Coins { owner }, |token| BalanceOf::Tokens { token, owner });
        Ok(self.connection.agreed::<Balance>(&self.on_chain(of)).await?.0)
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let token = token.map(|token| parse(&token.text, "/token")).transpose()?;
        self.balance(parse(owner, "/owner")?, token).await
    }

    /// Reads the number of base units of a token that `spender` may take from `owner`. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn allowance(&self, token: Address, owner: Address, spender: Address) -> Result<U256, NodeError> {
        Ok(self.connection.agreed::<Balance>(&self.on_chain(BalanceOf::Allowance { token, owner, spender })).await?.0)
    }
}
