//! Prepares orders, redemptions and refunds with the blockhash, fees and accounts that the chain reports.

use countersign::solana::reader::{self, PreflightCheck, PreflightQuery, Settlement, SettlementQuery};
use countersign::solana::recover::Recovery;
use countersign::solana::{FundingPath, Gasless, PriorityFee, Solana, UnsignedOrder};
use countersign::{Code, Policy, Refusal, VerifiedOrder};
use countersign_core::reader::{Submission, outbid, overdue_limit};
use countersign_transport::Transport;

use super::{Preflight, SolanaChain, parse};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::Bid;

/// The price of a compute unit up to which a replacement is raised where nothing is paid, in micro-lamports. Of the units of one
/// transaction it is less than the fee of a signature.
const RAISED_FROM_NOTHING: u64 = 2_500;

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

    pub(crate) async fn prepare(
        &self,
        order: &VerifiedOrder<Solana>,
        _owner: &str,
        speed: Speed,
        _policy: &Policy,
        own: bool,
    ) -> Result<UnsignedOrder, NodeError> {
        let deposit = order.deposit();
        let path = match &deposit.gasless {
            Some(_) if !own => FundingPath::from(Gasless),
            _ => self.context(&[deposit.owner, deposit.swap_account], speed).await?.into(),
        };
        let unsigned = order.prepare(path)?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }

    /// Prepares a redemption or a refund that `account` sends and pays for. The rent goes back to the account that the swap account names.
    /// If the token account that receives the payment does not exist, the transaction creates it first.
    pub(crate) async fn prepare_recovery(&self, recovery: &Recovery, account: &str, bid: Bid<'_>) -> Result<UnsignedOrder, NodeError> {
        self.prepare_paying(recovery, account, None, bid).await
    }

    /// Prepares a replacement. It needs no common nonce: the first of the two transactions that is mined closes the swap account, and the
    /// other one then fails. It has a new blockhash, because the old one may have expired, and a price that is 10 % higher, but at most
    /// four times the median of this moment.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder, NodeError> {
        let (sent, _) = reader::decode(sent)?;
        let before = PriorityFee::from_message(&sent.message).map_or(0, |fee| fee.compute_unit_price);
        self.prepare_paying(recovery, account, Some(before), bid).await
    }

    /// Checks a redemption that is built offline: it must name the account that paid the rent, and must not need a new token account.
    pub(crate) async fn check_offline(&self, recovery: &Recovery, rent_sponsor: &str) -> Result<(), NodeError> {
        let found = self.judged::<_, Settlement>(&SettlementQuery::new(self.connection.network, recovery)).await?;
        let refuse = |at: &'static str, why: &str| Refusal::new(Code::ReceiverNotPayable, at).with_reason(why.to_owned());
        if found.new_token_account.is_some() {
            let why = "the payee has no token account, and a redemption built from a wallet context does not create one: create the account \
                       first, or build the redemption from the chain";
            return Err(refuse("/wallet", why).into());
        }
        match found.sponsor {
            Some(paid) if paid != parse(rent_sponsor, "/wallet/rent_sponsor")? => {
                let refusal = refuse("/wallet/rent_sponsor", "the program accepts only the account that paid the rent of the swap account");
                Err(refusal.with_expected(paid.to_string()).with_actual(rent_sponsor).into())
            }
            _ => Ok(()),
        }
    }

    /// Prepares a redemption or a refund. `before` is the price of a compute unit of a transaction that is overdue, in micro-lamports.
    async fn prepare_paying(
        &self,
        recovery: &Recovery,
        account: &str,
        before: Option<u64>,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder, NodeError> {
        let payer = parse(account, "/sender")?;
        let network = self.connection.network;
        let found = self.judged::<_, Settlement>(&SettlementQuery::new(network, recovery)).await?;
        let mut recovery = recovery.clone().with_policy(bid.policy);
        if let Some(sponsor) = found.sponsor {
            recovery = recovery.with_sponsor(sponsor);
        }
        if found.new_token_account.is_some() {
            recovery = recovery.with_token_account();
        }
        let stakes = bid.stakes(recovery.terms().role);
        let mut context = self.priced(&[payer, recovery.swap_account()], bid.speed, stakes).await?;
        let shown = context.priority_fee.map_or(0, |fee| u128::from(fee.compute_unit_price));
        // No node requires that a replacement pays more.
        let asked = before.map_or(shown, |before| {
            let max = overdue_limit(shown.max(RAISED_FROM_NOTHING.into()));
            outbid(before.into()).min(max).max(shown)
        });
        let offered = bid.urgency.offer(asked, 0, PriorityFee::max_price(bid.policy).into());
        if offered != shown {
            context = context.with_priority_fee(PriorityFee::new(u64::try_from(offered).unwrap_or(u64::MAX)));
        }
        let unsigned = recovery.prepare(context.sent_by(payer))?;
        let mut query = PreflightQuery::for_recovery(network, &unsigned)?;
        if let Some(length) = found.new_token_account {
            query = query.with_new_account(length);
        }
        bid.urgency.unless_unknown(self.judged::<_, PreflightCheck>(&query).await, NodeError::is_refused)?;
        match unsigned.payloads().transaction.as_ref().filter(|_| offered < asked) {
            Some(payload) => {
                let said = recovery.expense(&payload.transaction().message).at_limit("solana_compute_unit_price");
                Ok(unsigned.with_warning(Code::GasLimitTooHigh, said))
            }
            None => Ok(unsigned),
        }
    }
}
