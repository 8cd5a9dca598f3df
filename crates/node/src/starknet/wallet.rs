//! The wallet context for signing: nonce, resource bounds, balances, allowances, and the preflight.

use countersign::starknet::reader::{self, Amount, AmountQuery, Context, Intended, Preflight, PreflightCheck, STRK, Sender};
use countersign::starknet::{ApprovalStep, Call as ContractCall, Felt, TxContext, UnsignedOrder, VerifiedOrder};
use countersign::{Policy, Role, U256, trust::Contract};
use countersign_core::reader::{Judged, Urgency};
use countersign_transport::Transport;

use super::{StarknetChain, parse};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::Bid;

impl<T: Transport> StarknetChain<'_, T> {
    /// Reads the context for signing `calls` of `sender`: the nonce after its pending transactions, and resource bounds.
    ///
    /// The amounts are 1.5 times the node's estimate for these calls. The prices are those of the newest block, times 1.2 (slow), 1.5
    /// (normal) or 2 (fast). The endpoints must agree on the nonce. Each amount and each price is the median of theirs.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::GasLimitTooHigh`](countersign::Code::GasLimitTooHigh) if the maximum fee exceeds the
    /// policy, or with [`Code::SimulationReverted`](countersign::Code::SimulationReverted) if the calls fail. Returns another
    /// [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn execution(&self, sender: Felt, calls: &[ContractCall], speed: Speed, policy: &Policy) -> Result<TxContext, NodeError> {
        Ok(self.context(sender, Some(calls), Bid { speed, policy, urgency: Urgency::CanWait }).await?.0)
    }

    /// Reads the context for signing these calls, or for a redemption, whose call no node may see. Also returns whether it offers less than
    /// the chain asks for.
    pub(super) async fn context(&self, sender: Felt, calls: Option<&[ContractCall]>, bid: Bid<'_>) -> Result<(TxContext, bool), NodeError> {
        let tenths = match bid.speed {
            Speed::Slow => 12,
            Speed::Normal => 15,
            Speed::Fast => 20,
        };
        let sender = Sender { chain_id: self.chain_id, address: sender, calls: calls.map(<[_]>::to_vec) };
        let stakes = bid.stakes(if sender.calls.is_none() { Role::Redeem } else { Role::Refund });
        let costs = self.connection.all_agreed::<Context>(&sender, stakes).await?;
        let execution = reader::execution(&sender, &costs.iter().collect::<Vec<_>>(), tenths, stakes.makes_public())?;
        match reader::check_fee(&execution, bid.policy) {
            Ok(()) => Ok((execution, false)),
            Err(_) if bid.urgency == Urgency::SecretIsOut => Ok((reader::at_limit(execution, bid.policy), true)),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Checks that the sender has enough STRK, tokens and allowance, and simulates the transaction: see [`PreflightCheck`]. Call it before
    /// signing.
    ///
    /// A quorum of endpoints must find nothing wrong. A preflight protects from mistakes, not from dishonest nodes.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::WalletChainMismatch`](countersign::Code::WalletChainMismatch) if the transaction is for
    /// another chain, or with a code of [`PreflightCheck`] if enough endpoints refuse the transaction with it. Returns another
    /// [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        self.check(&Intended::new(self.chain_id, order)?).await
    }

    /// Checks that the sender has enough tokens and allowance. `step` is what the transaction will do with the order's approval.
    pub(super) async fn check_token(&self, order: &VerifiedOrder, step: ApprovalStep) -> Result<(), NodeError> {
        self.check(&Intended::tokens_of(self.chain_id, order, step)).await.map(drop)
    }

    async fn check(&self, intended: &Intended) -> Result<Preflight, NodeError> {
        let question = |one: &Judged<Preflight>| one.0.as_ref().map(|preflight| preflight.balance).map_err(Clone::clone);
        let quorum = self.connection.gather::<PreflightCheck, _, _>(intended, |one| question(one.output())).await?;
        Ok(self.verdict(quorum.ask(|one| question(one.output())))?.output().0.clone()?)
    }

    /// Reads the balance of an account in base units of a token. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Felt, token: Felt) -> Result<U256, NodeError> {
        self.amount(token, owner, None).await
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let token = token.map_or(Ok(STRK), |token| parse(&token.text, "/token"))?;
        self.balance(parse(owner, "/owner")?, token).await
    }

    /// Reads the number of base units of a token that `spender` may take from `owner`. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn allowance(&self, token: Felt, owner: Felt, spender: Felt) -> Result<U256, NodeError> {
        self.amount(token, owner, Some(spender)).await
    }

    async fn amount(&self, token: Felt, owner: Felt, spender: Option<Felt>) -> Result<U256, NodeError> {
        let query = AmountQuery { chain_id: self.chain_id, token, owner, spender };
        Ok(self.connection.agreed::<Amount>(&query).await?.0)
    }
}
