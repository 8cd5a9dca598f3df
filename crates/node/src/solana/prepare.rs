//! Prepares orders, redemptions and refunds with the blockhash, fees and accounts that the chain reports.

use countersign::solana::reader::{self, PreflightCheck, PreflightQuery, Settlement, SettlementQuery};
use countersign::solana::recover::Recovery;
use countersign::solana::{FundingPath, Gasless, PriorityFee, Solana, UnsignedOrder};
use countersign::{Policy, VerifiedOrder};
use countersign_core::reader::Submission;
use countersign_transport::Transport;

use super::{Preflight, SolanaChain, parse};
use crate::error::NodeError;
use crate::nodes::Speed;

impl<T: Transport> SolanaChain<'_, T> {
    /// Checks that the signer has enough SOL for the amount, rent and fees, and enough of the token, and simulates the transaction. Call
    /// it before signing.
    ///
    /// The simulation must create the swap account with the verified terms, and transfer exactly the verified amount. A redemption is
    /// never simulated, because that would show the secret to the node. The endpoints must agree, also to refuse the order.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with
    ///
    /// - [`Code::NothingToSign`] if the order has no transaction,
    /// - [`Code::InsufficientFunds`] if the signer has too little,
    /// - [`Code::SimulationReverted`] if the transaction fails, or would fail because of the accounts' state,
    /// - [`Code::SimulationDiffers`] if the transaction would do something else than what was verified,
    ///
    /// and another [`NodeError`] if no endpoint answers or too few of them agree.
    ///
    /// [`Code::NothingToSign`]: countersign::Code::NothingToSign
    /// [`Code::InsufficientFunds`]: countersign::Code::InsufficientFunds
    /// [`Code::SimulationReverted`]: countersign::Code::SimulationReverted
    /// [`Code::SimulationDiffers`]: countersign::Code::SimulationDiffers
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        self.judged::<_, PreflightCheck>(&PreflightQuery::new(self.connection.network, order)?).await
    }

    pub(crate) async fn prepare(&self, order: &VerifiedOrder<Solana>, speed: Speed) -> Result<UnsignedOrder, NodeError> {
        let deposit = order.deposit();
        let path = match &deposit.gasless {
            Some(_) => FundingPath::from(Gasless),
            None => self.context(&[deposit.owner, deposit.swap_account], speed).await?.into(),
        };
        let unsigned = order.prepare(path)?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }

    /// Prepares a redemption or a refund that `account` sends and pays for. The rent goes back to the account that the swap account names.
    /// If the token account that receives the payment does not exist, the transaction creates it first.
    pub(crate) async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        account: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder, NodeError> {
        self.prepare_paying(recovery, account, 0, speed, policy).await
    }

    /// Prepares a replacement. It needs no common nonce: the first of the two transactions that is mined closes the swap account, and the
    /// other one then fails. It has a new blockhash, because the old one may have expired, and a price that is at least 10 % higher.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder, NodeError> {
        let (sent, _) = reader::decode(sent)?;
        let before = PriorityFee::from_message(&sent.message).map_or(0, |fee| fee.compute_unit_price);
        let min_price = before.saturating_add(before.div_ceil(10));
        self.prepare_paying(recovery, account, min_price, speed, policy).await
    }

    /// Prepares a redemption or a refund that pays at least `min_price` for a compute unit, in micro-lamports.
    async fn prepare_paying(
        &self,
        recovery: &Recovery,
        account: &str,
        min_price: u64,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder, NodeError> {
        let payer = parse(account, "/sender")?;
        let network = self.connection.network;
        let found = self.judged::<_, Settlement>(&SettlementQuery::new(network, recovery)).await?;
        let mut recovery = recovery.clone().with_policy(policy);
        if let Some(sponsor) = found.sponsor {
            recovery = recovery.with_sponsor(sponsor);
        }
        if found.needs_token_account {
            recovery = recovery.with_token_account();
        }
        let mut context = self.context(&[payer, recovery.swap_account()], speed).await?;
        if context.priority_fee.map_or(0, |fee| fee.compute_unit_price) < min_price {
            context = context.with_priority_fee(PriorityFee::new(min_price));
        }
        let unsigned = recovery.prepare_self_funded(payer, &context)?;
        let query = PreflightQuery::for_recovery(network, &unsigned, found.needs_token_account)?;
        self.judged::<_, PreflightCheck>(&query).await?;
        Ok(unsigned)
    }
}
