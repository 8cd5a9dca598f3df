//! Prepares orders, redemptions and refunds with the blockhash, fees and accounts that the chain reports.

use countersign::json::Node;
use countersign::solana::recover::Recovery;
use countersign::solana::{Address, FundingPath, Gasless, PriorityFee, Solana, UnsignedOrder, read};
use countersign::{Code, Policy, Refusal, Role, VerifiedOrder};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;

use super::account::{self, Account, Accounts};
use super::{CONFIRMED, SolanaChain, nth, parse, send};
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::quorum::agree;

impl<'n, T: Transport> SolanaChain<'n, T> {
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
        sent: &KeptTransaction,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder, NodeError> {
        let (sent, _) = send::decode(sent)?;
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
        let found = self.settlement(recovery).await?;
        let mut recovery = recovery.clone().with_policy(policy);
        if let Some(sponsor) = found.sponsor {
            recovery = recovery.with_sponsor(sponsor);
        }
        if found.needs_token_account {
            recovery = recovery.with_token_account();
        }
        let mut context = self.context(&[payer, recovery.swap_account], speed).await?;
        if context.priority_fee.map_or(0, |fee| fee.compute_unit_price) < min_price {
            context = context.with_priority_fee(PriorityFee::new(min_price));
        }
        let unsigned = recovery.prepare_self_funded(payer, &context)?;
        self.preflight_recovery(&unsigned, found.needs_token_account).await?;
        Ok(unsigned)
    }

    /// Reads the accounts that a redemption or a refund depends on. The endpoints must agree.
    async fn settlement(&self, recovery: &Recovery) -> Result<Settlement, NodeError> {
        let keys: Vec<_> = [recovery.swap_account].into_iter().chain(recovery.token_account()).collect();
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let read = |results: &[Node<'_, '_>]| Accounts::read(nth(results, 0)?, keys.len());
            let accounts = caller.rpc(&[account::get(&keys, CONFIRMED, 0)], read).await?;
            Settlement::new(recovery, &accounts).map_err(NodeError::from)
        };
        let mut found = agree(self.connection.each(ask).await, self.connection.needed(), Clone::clone)?;
        found.pop().ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }
}

/// The facts on chain that a redemption or a refund depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Settlement {
    /// The account that gets the rent back, if the swap account names one.
    sponsor: Option<Address>,
    /// Whether the token account that receives the payment does not exist yet.
    needs_token_account: bool,
}

impl Settlement {
    fn new(recovery: &Recovery, accounts: &Accounts) -> Result<Self, Refusal> {
        let (htlc, at) = (recovery.htlc(), format!("/{}", recovery.role));
        // Without the account, the call would fail, and a redemption would have revealed the secret for nothing.
        let fails = |reason: &str| Refusal::new(Code::SimulationReverted, at.clone()).with_reason(reason.to_owned());
        let swap = accounts.get(0).filter(|swap| swap.owner == htlc.program);
        let swap = swap.ok_or_else(|| fails("there is no open swap at the swap account"))?;
        let stored = read::swap_account(&swap.data).map_err(|why| fails(&why.to_string()))?;
        if stored.generation != htlc.generation || stored.is_token != htlc.token.is_some() {
            return Err(fails("the swap account belongs to another generation of the program than the pinned one"));
        }
        let payee = if recovery.role == Role::Redeem { stored.redeemer } else { stored.initiator };
        if payee != recovery.to {
            return Err(fails("the swap on chain pays another account")
                .with_expected(recovery.to.to_string())
                .with_actual(payee.to_string()));
        }
        if recovery.role == Role::Refund && accounts.slot <= stored.expiry {
            return Err(fails("the timelock has not passed").with_expected(stored.expiry).with_actual(accounts.slot));
        }
        let token_account = recovery.token_account().map(|_| accounts.get(1).filter(|account| !account.is_unused()));
        let needs_token_account = matches!(token_account, Some(None));
        if let Some(Some(account)) = token_account {
            let token = account.token().filter(|token| token.owner == recovery.to && htlc.token.is_some_and(|own| own.mint == token.mint));
            match token {
                Some(token) if token.is_frozen => return Err(fails("the token account that receives the payment is frozen")),
                Some(_) => {}
                None => {
                    return Err(fails("the token account that receives the payment does not belong to the payee, or is for another token"));
                }
            }
        }
        Ok(Self { sponsor: stored.sponsor, needs_token_account })
    }
}

/// Returns the account if a program uses it.
pub(super) fn used(account: Option<&Account>) -> Option<&Account> {
    account.filter(|account| !account.is_unused())
}
