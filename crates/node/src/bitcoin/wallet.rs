//! The wallet context for paying: coins, a fee rate, and the HTLC outputs to redeem or refund.

use countersign::bitcoin::bitcoin::Amount;
use countersign::bitcoin::htlc::Tree;
use countersign::bitcoin::reader::fees::{self, FeeQuote};
use countersign::bitcoin::reader::{Coins, FeeEstimation, ListedCoins, Outputs, Unspent};
use countersign::bitcoin::recover::{Funding, RecordedHtlc};
use countersign::bitcoin::{FeeRate, Selection, TxContext, Utxo};
use countersign::{Code, Leg, OrderRecord, Policy, Refusal, Registry, U256, trust::Contract};
use countersign_core::reader::{Observation, Verdict};
use countersign_transport::Transport;

use super::BitcoinChain;
use crate::error::NodeError;
use crate::nodes::{Nodes, Speed};
use crate::prepare::Stakes;

/// A fee rate for the next transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeeEstimate {
    /// The fee rate, in sat/vB.
    pub rate: FeeRate,
    /// Whether the endpoint had no estimate, so that `rate` is the minimum that nodes relay. This happens on new or idle networks, such
    /// as regtest.
    pub is_floor: bool,
}

impl From<FeeQuote> for FeeEstimate {
    fn from(quote: FeeQuote) -> Self {
        Self { rate: quote.rate(), is_floor: quote.estimate.is_none() }
    }
}

impl<T: Transport> Nodes<T> {
    /// Lists the outputs of an order's deposit for an instant refund, as [`BitcoinChain::fundings`] does. `None` if neither the endpoints nor
    /// the record show the payment yet: there is nothing to refund.
    ///
    /// If the record names the one transaction that paid, endpoints that fail or are missing leave an empty list: the outputs of that
    /// transaction can be tried without them, and a signature is no less safe for it.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if the record has no such source, or if too few endpoints answer and it does not name one transaction.
    pub async fn deposit(&self, record: &OrderRecord, registry: &Registry) -> Result<Option<Vec<Funding>>, NodeError> {
        let htlc = RecordedHtlc::new(record, Leg::Source, registry)?;
        let shown = match self.bitcoin(&record.source_swap.chain) {
            Ok(chain) => chain.fundings(&htlc.tree).await,
            Err(error) => Err(error),
        };
        match (shown, htlc.funding.as_slice()) {
            (Ok(outputs), []) if outputs.is_empty() => Ok(None),
            (Ok(outputs), _) => Ok(Some(outputs)),
            (Err(_), [_]) => Ok(Some(Vec::new())),
            (Err(error), _) => Err(error),
        }
    }
}

impl<T: Transport> BitcoinChain<'_, T> {
    /// Reads the confirmed coins of an address that nothing in the mempool spends: at most 200, the most valuable first.
    ///
    /// Each coin comes with the transaction that created it, which proves the amount. Taproot coins come without it, because a taproot
    /// signature commits to the amount and is invalid if the amount is wrong.
    ///
    /// Enough endpoints must show each coin. One of them alone could list coins that have been spent, so that the payment never leaves.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if `owner` is not an address of this chain, or if the library cannot spend its type of script.
    /// Returns another [`NodeError`] if too few endpoints answer.
    pub async fn coins(&self, owner: &str) -> Result<Vec<Utxo>, NodeError> {
        let quorum = self.connection.gather_all::<Coins>(&self.on_chain(self.chain.script(owner, "/owner")?)).await?;
        let lists = quorum.agreed().map_err(|doubt| self.connection.doubt::<NodeError>(doubt))?;
        Ok(ListedCoins::agreed(lists.iter().map(|list| list.output()), quorum.needed()).0)
    }

    /// Returns the sum of the confirmed coins of an address: as much as enough endpoints show at least. Only the 200 most
    /// valuable coins count.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if `owner` is not an address of this chain, and another [`NodeError`] if too few endpoints answer.
    pub async fn balance(&self, owner: &str) -> Result<Amount, NodeError> {
        let subject = self.on_chain(self.chain.script(owner, "/owner")?);
        let sum = |one: &Observation<Unspent>| Ok::<_, NodeError>(one.output().sum());
        match self.connection.gather::<Unspent, _, _>(&subject, sum).await?.ask(sum) {
            Verdict::Stands(sum, _) => Ok(sum),
            Verdict::Open(doubt) | Verdict::Falls(doubt) => Err(self.connection.doubt(doubt)),
        }
    }

    pub(crate) async fn balance_of(&self, owner: &str, _: Option<&Contract>) -> Result<U256, NodeError> {
        self.balance(owner).await.map(|sum| U256::from(sum.to_sat()))
    }

    /// Lists the confirmed, unspent outputs of an HTLC that enough endpoints show, the most valuable first. An output that only some
    /// endpoints show does not change what the others agree on.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if too few endpoints answer.
    pub async fn fundings(&self, tree: &Tree) -> Result<Vec<Funding>, NodeError> {
        Ok(self.outputs(tree).await?.0.into_iter().map(|output| output.funding).collect())
    }

    pub(super) async fn outputs(&self, tree: &Tree) -> Result<Outputs, NodeError> {
        let quorum = self.connection.gather_all::<Unspent>(&self.on_chain(tree.script_pubkey())).await?;
        let lists = quorum.agreed().map_err(|doubt| self.connection.doubt::<NodeError>(doubt))?;
        Ok(Outputs::agreed(lists.iter().map(|list| list.output()), quorum.needed()))
    }

    /// Estimates the fee rate for confirmation within a number of blocks. It is the median of what the endpoints show. What each of them
    /// shows is at least the lowest rate that its node takes: see [`FeeQuote::rate`].
    ///
    /// | speed | blocks on Bitcoin | blocks on Litecoin |
    /// |---|---|---|
    /// | slow | 6 | 24 |
    /// | normal | 3 | 6 |
    /// | fast | 1 | 2 |
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::FeeRateTooHigh`] if the rate exceeds the policy, and another [`NodeError`] if too few
    /// endpoints answer.
    pub async fn fee_rate(&self, speed: Speed, policy: &Policy) -> Result<FeeEstimate, NodeError> {
        let estimate = self.shown_fee_rate(speed, Stakes::Time).await?;
        estimate.rate.check(policy.bitcoin.fee_rate, "/fee_rate")?;
        Ok(estimate)
    }

    /// Estimates the fee rate as [`BitcoinChain::fee_rate`] does, even if it exceeds the policy, for a transaction with these stakes.
    pub(super) async fn shown_fee_rate(&self, speed: Speed, stakes: Stakes) -> Result<FeeEstimate, NodeError> {
        self.estimate(fees::middle(&self.quotes(speed, stakes).await?, stakes.makes_public()))
    }

    async fn quotes(&self, speed: Speed, stakes: Stakes) -> Result<Vec<FeeQuote>, NodeError> {
        let targets = self.chain.coin.profile().fee_targets;
        let blocks = match speed {
            Speed::Slow => targets.slow,
            Speed::Normal => targets.normal,
            Speed::Fast => targets.fast,
        };
        self.connection.all_agreed::<FeeEstimation>(&self.on_chain(blocks), stakes).await
    }

    fn estimate(&self, quote: Option<FeeQuote>) -> Result<FeeEstimate, NodeError> {
        quote.map(FeeEstimate::from).ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }

    /// Returns the lowest fee rate that lets a transaction of `vsize` virtual bytes replace one that paid `fee` (BIP-125).
    ///
    /// # Errors
    ///
    /// Returns [`Code::FeeRateTooHigh`] if the rate exceeds the policy.
    pub fn replacement_rate(fee: Amount, vsize: u64, policy: &Policy) -> Result<FeeRate, Refusal> {
        let refuse = || Refusal::new(Code::FeeRateTooHigh, "/fee_rate").with_actual(fee.to_sat());
        let rate = FeeRate::replacing(fee, vsize).ok_or_else(refuse)?;
        rate.check(policy.bitcoin.fee_rate, "/fee_rate")?;
        Ok(rate)
    }

    /// Reads the context for paying a deposit from the owner's address: its coins, the fee rate, and the same address for the change.
    /// Coins are selected for the lowest fee.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`BitcoinChain::coins`] and [`BitcoinChain::fee_rate`].
    pub async fn wallet(&self, owner: &str, speed: Speed, policy: &Policy) -> Result<TxContext, NodeError> {
        let coins = self.coins(owner).await?;
        let estimate = self.fee_rate(speed, policy).await?;
        Ok(TxContext::new(coins, owner, estimate.rate).with_selection(Selection::LowestFee).with_rate_from_nodes(true))
    }
}
