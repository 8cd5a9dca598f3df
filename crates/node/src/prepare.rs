//! Prepares verified orders for signing, with the wallet context that their chains report: nonce, fees, allowance, coins.

use countersign::recover::Recovery;
use countersign::{Leg, Policy, Role, Signed, Unsigned, Verified};
use countersign_core::reader::{Submission, Urgency};
use countersign_transport::Transport;

use crate::error::NodeError;
use crate::families::FamilyChain;
use crate::nodes::{Nodes, Speed};

/// What a redemption or a refund may offer for a place in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bid<'p> {
    pub(crate) speed: Speed,
    pub(crate) policy: &'p Policy,
    pub(crate) urgency: Urgency,
}

/// What is lost if the price of a transaction is too low.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stakes {
    /// Time: a payment or a refund is replaced at a higher price once it is overdue.
    Time,
    /// The secret: a redemption that is never mined shows it to everybody who has received it.
    Secret,
    /// The funds: the secret is out, so the redemption must be mined in time. It may take some seconds longer to read a better price.
    Funds,
}

impl Stakes {
    /// Whether of two prices in the middle the higher one counts.
    pub(crate) fn makes_public(self) -> bool {
        self == Self::Secret
    }
}

impl Bid<'_> {
    pub(crate) fn stakes(&self, role: Role) -> Stakes {
        match (role, self.urgency) {
            (Role::Redeem, Urgency::CanWait) => Stakes::Secret,
            (Role::Redeem, Urgency::SecretIsOut) => Stakes::Funds,
            _ => Stakes::Time,
        }
    }
}

/// Calls a method of the connected chain whose family a state has.
macro_rules! on_chain {
    (
        [$nodes:ident $chain:ident, $state:ident, $any:ident.$method:ident $arguments:tt]
        $($feature:literal $family:ident $module:ident,)*
    ) => {
        match $state {
            $(#[cfg(feature = $feature)] $any::$family($state) => Ok($nodes.$module($chain)?.$method $arguments.await?.into()),)*
            _ => Err(NodeError::NotConnected($chain.to_owned())),
        }
    };
}

impl<T: Transport> Nodes<T> {
    /// Reads the wallet context from the chain and prepares a verified order for signing.
    ///
    /// If the order offers a gasless path, it is prepared for that path, with the approval that it still needs. Otherwise it is prepared
    /// for the owner's own transactions. (On Starknet an order that still needs an approval is one transaction of the owner.) `owner` is
    /// the address whose coins pay on a Bitcoin-like chain; other chains ignore it. Except on Bitcoin-like chains, a preflight checks
    /// the funds and simulates what may be shown to a node. An account that is paid in a token that has frozen it is refused: see
    /// [`Nodes::check_receiver`].
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain is not connected or belongs to another family. Returns [`NodeError::Refused`] if
    /// a fee exceeds the policy, the owner has too little, or the simulation fails. Returns another [`NodeError`] if no endpoint answers
    /// or too few of them agree.
    pub async fn prepare(&self, order: &Verified, chain: &str, owner: &str, speed: Speed, policy: &Policy) -> Result<Unsigned, NodeError> {
        self.prepare_by(order, chain, owner, speed, policy, false).await
    }

    /// Prepares a verified order as [`Nodes::prepare`] does, but always for the owner's own transactions, which cost its fees: where the
    /// owner's account does not accept the signature of the gasless message ([`Code::ContractSignatureRefused`]), or the owner prefers it.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Nodes::prepare`].
    ///
    /// [`Code::ContractSignatureRefused`]: countersign::Code::ContractSignatureRefused
    pub async fn prepare_own(
        &self,
        order: &Verified,
        chain: &str,
        owner: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<Unsigned, NodeError> {
        self.prepare_by(order, chain, owner, speed, policy, true).await
    }

    /// Prepares a verified order, with `own` for the owner's own transactions alone.
    async fn prepare_by(
        &self,
        order: &Verified,
        chain: &str,
        owner: &str,
        speed: Speed,
        policy: &Policy,
        own: bool,
    ) -> Result<Unsigned, NodeError> {
        if let Some(swap) = order.terms().record.map(|record| &record.destination_swap) {
            self.check_receiver(order.asset(Leg::Destination), &swap.redeemer).await?;
        }
        countersign::for_each_family! { on_chain! [self chain, order, Verified.prepare(order, owner, speed, policy, own)] }
    }

    /// Checks that the chain accepts who has signed a payment. Call it before the payment is sent, or submitted to the service.
    ///
    /// On an EVM chain the swap contract asks an owner that has code about a gasless signature, and so does this. On Tron an account may have
    /// permissions with keys of their own, and only the chain knows them. Other payments pass, and so does one on a chain that is not
    /// connected.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the signatures will not be accepted. Returns another [`NodeError`] if no endpoint answers or too few
    /// of them agree.
    pub async fn check_signed(&self, signed: &Signed) -> Result<(), NodeError> {
        macro_rules! check {
            ([] $($feature:literal $family:ident $module:ident,)*) => {
                match signed {
                    $(
                        #[cfg(feature = $feature)]
                        Signed::$family(order) => match self.$module(order.chain()) {
                            Ok(chain) => chain.check_signed(order).await,
                            Err(NodeError::NotConnected(_)) => Ok(()),
                            Err(error) => Err(error),
                        },
                    )*
                    _ => Ok(()),
                }
            };
        }
        countersign::for_each_family! { check! [] }
    }

    /// Prepares a payment on a Bitcoin-like chain that replaces one that was sent and is not in a block, for a higher fee. It spends the same
    /// coins and pays the same deposit, so only one of the two can be mined.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Rejected`] if the payment is in a block, or its coins are spent by another transaction. Returns
    /// [`NodeError::Refused`] if the change does not cover the fee, if the fee exceeds the policy, or if `sent` is not a payment of this
    /// order. Returns [`NodeError::NotConnected`] if the chain is not connected or belongs to another family.
    pub async fn prepare_raised(
        &self,
        order: &Verified,
        chain: &str,
        sent: &Submission,
        speed: Speed,
        policy: &Policy,
    ) -> Result<Unsigned, NodeError> {
        match (order, sent, speed, policy) {
            #[cfg(feature = "bitcoin")]
            (Verified::Bitcoin(order), sent, speed, policy) => {
                Ok(self.bitcoin(chain)?.prepare_raised(order, sent, speed, policy).await?.into())
            }
            _ => Err(NodeError::NotConnected(chain.to_owned())),
        }
    }

    /// Reads the wallet context from the chain and prepares a redemption or a refund for signing.
    ///
    /// `account` is the address that sends it and pays the fee. On a Bitcoin-like chain it is the address that receives the coins, minus
    /// the fee.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Nodes::prepare`].
    pub async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        chain: &str,
        account: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<Unsigned, NodeError> {
        self.recovery_with(recovery, chain, account, Bid { speed, policy, urgency: Urgency::CanWait }).await
    }

    /// Prepares a redemption as [`Nodes::prepare_recovery`] does, whose secret others may know already. Where the chain asks for more than
    /// the policy allows, it pays the limit of the policy and has a warning, because a slow redemption is better than none.
    ///
    /// Do not call it for a redemption that shows the secret for the first time. While that waits, the other side could take both payments.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Nodes::prepare`].
    pub async fn prepare_urgent(
        &self,
        recovery: &Recovery,
        chain: &str,
        account: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<Unsigned, NodeError> {
        self.recovery_with(recovery, chain, account, Bid { speed, policy, urgency: Urgency::SecretIsOut }).await
    }

    /// Checks what a redemption that is built offline, from a wallet context, assumes about its chain. On Solana it must name the account that
    /// paid the rent (`rent_sponsor`), and the payee's token account must exist. No request contains the secret.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::ReceiverNotPayable`](countersign::Code::ReceiverNotPayable), or another [`NodeError`] if
    /// too few endpoints agree.
    pub async fn check_offline(&self, recovery: &Recovery, chain: &str, rent_sponsor: &str) -> Result<(), NodeError> {
        match (recovery, chain, rent_sponsor) {
            #[cfg(feature = "solana")]
            (Recovery::Solana(recovery), chain, rent_sponsor) => self.solana(chain)?.check_offline(recovery, rent_sponsor).await,
            _ => Ok(()),
        }
    }

    async fn recovery_with(&self, recovery: &Recovery, chain: &str, account: &str, bid: Bid<'_>) -> Result<Unsigned, NodeError> {
        countersign::for_each_family! { on_chain! [self chain, recovery, Recovery.prepare_recovery(recovery, account, bid)] }
    }

    /// Prepares a redemption or a refund that takes the place of one that was sent and is not mined yet.
    ///
    /// It is a new transaction on every chain, because a single endpoint may have kept the first one to itself. Two of them do each other
    /// no harm, because an HTLC ends once:
    ///
    /// | what orders transactions | the new transaction | what becomes of the other one |
    /// |---|---|---|
    /// | the output that they spend | spends the same output for a higher fee | it conflicts |
    /// | a nonce of the sender | has the same nonce and higher fees, or the current nonce if that was taken | it conflicts, or reverts |
    /// | the versions of objects | pays a higher price, with other coins if the sender has any | it conflicts, or aborts |
    /// | only a recent block | refers to a new one, for a higher price if the chain has prices | it fails, because the HTLC has ended |
    ///
    /// A transaction that reverts, fails or aborts costs its sender the fee, and nothing else. Where the chain asks for more than the
    /// policy allows, the limit of the policy is paid, as long as that is enough to take the other one's place.
    ///
    /// Do not call it for a redemption that was signed and never sent, because its replacement shows the secret for the first time: see
    /// [`Nodes::prepare_urgent`].
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Nodes::prepare`]. Also returns [`NodeError::Refused`] if `sent` is not a transaction of the chain with
    /// the stored id: with [`Code::TransactionMalformed`](countersign::Code::TransactionMalformed) on Bitcoin-like chains, and with
    /// [`Code::TransactionMismatch`](countersign::Code::TransactionMismatch) or a code of what cannot be decoded elsewhere. Tron does not
    /// need the transaction.
    pub async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        chain: &str,
        account: &str,
        sent: &Submission,
        speed: Speed,
        policy: &Policy,
    ) -> Result<Unsigned, NodeError> {
        let bid = Bid { speed, policy, urgency: Urgency::SecretIsOut };
        countersign::for_each_family! { on_chain! [self chain, recovery, Recovery.prepare_replacement(recovery, account, sent, bid)] }
    }
}
