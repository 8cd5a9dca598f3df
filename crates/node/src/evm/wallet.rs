//! The wallet context for signing: nonce, fees, balances and allowances.

use countersign::evm::alloy_primitives::{Address, U256};
use countersign::evm::reader::{Amount, AmountOf, Context, FeeLevels, fees};
use countersign::evm::{Calls, Fees};
use countersign::{Contract, Policy};
use countersign_transport::Transport;

use super::EvmChain;
use super::prepare::parse;
use crate::error::NodeError;
use crate::nodes::Speed;

/// Chooses among the fees that the endpoints show.
type Choice = fn(Vec<Fees>, &Policy) -> Option<Fees>;

impl<T: Transport> EvmChain<'_, T> {
    /// Reads the context for signing the next calls of `sender`: the nonce after its pending transactions, and the
    /// [fees](FeeLevels). The endpoints must agree on the nonce. Of their fees, the median is used.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::GasPriceTooHigh`](countersign::Code::GasPriceTooHigh) if the fees exceed the policy,
    /// and another [`NodeError`] if no endpoint answers or too few of them agree on the nonce.
    pub async fn calls(&self, sender: Address, speed: Speed, policy: &Policy) -> Result<Calls, NodeError> {
        self.calls_with(sender, speed, policy, |fees, _| fees::median(fees)).await
    }

    /// Reads the context for a transaction that must not wait: of the fees that the endpoints show, the highest within the policy.
    pub(super) async fn urgent_calls(&self, sender: Address, speed: Speed, policy: &Policy) -> Result<Calls, NodeError> {
        self.calls_with(sender, speed, policy, fees::highest_within).await
    }

    async fn calls_with(&self, sender: Address, speed: Speed, policy: &Policy, choice: Choice) -> Result<Calls, NodeError> {
        let (nonce, fees) = self.nonce_and_fees(sender, speed, policy, choice).await?;
        fees::check(fees, policy)?;
        Ok(Calls::new(nonce, fees).with_chain_id(self.chain_id))
    }

    /// Reads the context for signing calls that replace unmined ones. It has the same nonce. The fee cap and the tip are at least 10 %
    /// higher, as nodes require, and at least the current fees of the chain.
    ///
    /// The calls themselves must not change: prepare the same order with this context.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`EvmChain::calls`].
    pub async fn replacement(&self, sender: Address, calls: &Calls, speed: Speed, policy: &Policy) -> Result<Calls, NodeError> {
        let (_, now) = self.nonce_and_fees(sender, speed, policy, fees::highest_within).await?;
        let fees = fees::raised(calls.fees, now);
        fees::check(fees, policy)?;
        let mut replacement = calls.clone();
        replacement.fees = fees;
        Ok(replacement)
    }

    /// Reads the balance of an account in base units of a token, or in wei of the chain's own coin if `token` is `None`. The endpoints
    /// must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Address, token: Option<Address>) -> Result<U256, NodeError> {
        self.amount(AmountOf::Balance { owner, token }).await
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
        self.amount(AmountOf::Allowance { token, owner, spender }).await
    }

    async fn amount(&self, of: AmountOf) -> Result<U256, NodeError> {
        Ok(self.connection.agreed::<Amount>(&self.on_chain(of)).await?.0)
    }

    async fn nonce_and_fees(&self, sender: Address, speed: Speed, policy: &Policy, choice: Choice) -> Result<(u64, Fees), NodeError> {
        let shown = self.connection.all_agreed::<Context>(&self.on_chain(sender)).await?;
        let level = |fees: FeeLevels| match speed {
            Speed::Slow => fees.slow,
            Speed::Normal => fees.normal,
            Speed::Fast => fees.fast,
        };
        let nonce = shown.first().map(|one| one.nonce);
        let fees = choice(shown.iter().map(|one| level(one.fees)).collect(), policy);
        nonce.zip(fees).ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }
}
