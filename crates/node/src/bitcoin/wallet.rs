//! The wallet context for paying: coins, a fee rate, and the HTLC outputs to redeem or refund.

use countersign::bitcoin::bitcoin::{Amount, ScriptBuf, TxOut};
use countersign::bitcoin::htlc::Tree;
use countersign::bitcoin::{FeeRate, Selection, Wallet};
use countersign::{Contract, Policy, U256};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::{
    BitcoinChain, Caller, Claim, Code, Coin, Funding, MAX_COINS, NodeError, OutPoint, Refusal, Transport, Utxo, agree, esplora, rpc,
};
use crate::nodes::Speed;

/// The number of transactions that are requested from an endpoint concurrently.
const AT_ONCE: usize = 4;

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

impl<'n, T: Transport> BitcoinChain<'n, T> {
    /// Reads the confirmed coins of an address that nothing in the mempool spends: at most 200, the most valuable first.
    ///
    /// Each coin comes with the transaction that created it, which proves the amount. Taproot coins come without it, because a taproot
    /// signature commits to the amount and is invalid if the amount is wrong.
    ///
    /// The first endpoint that answers decides. An endpoint that omits or invents coins can only make the payment fail.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if `owner` is not an address of this chain, or if the library cannot spend its type of script.
    /// Returns another [`NodeError`] if no endpoint answers.
    pub async fn coins(&self, owner: &str) -> Result<Vec<Utxo>, NodeError> {
        let script = self.chain.script(owner, "/owner")?;
        self.connection.first(|caller| self.coins_of(caller, &script)).await
    }

    async fn coins_of(&self, caller: Caller<'n, T>, script: &ScriptBuf) -> Result<Vec<Utxo>, NodeError> {
        let claims = self.unspent(caller, script).await?;
        stream::iter(claims).map(|claim| coin(caller, script, claim)).buffered(AT_ONCE).try_collect().await
    }

    /// Returns the sum of the coins that [`BitcoinChain::coins`] lists, in base units. Only the 200 most valuable coins count.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if `owner` is not an address of this chain, and another [`NodeError`] if no endpoint answers.
    pub async fn balance(&self, owner: &str) -> Result<u64, NodeError> {
        let script = self.chain.script(owner, "/owner")?;
        let claims = self.connection.first(|caller| self.unspent(caller, &script)).await?;
        Ok(claims.iter().map(|claim| claim.funding.value).fold(0, u64::saturating_add))
    }

    pub(crate) async fn balance_of(&self, owner: &str, _: Option<&Contract>) -> Result<U256, NodeError> {
        self.balance(owner).await.map(U256::from)
    }

    /// Lists the confirmed unspent outputs to a script.
    async fn unspent(&self, caller: Caller<'n, T>, script: &ScriptBuf) -> Result<Vec<Claim>, NodeError> {
        self.identify(caller).await?;
        let claims = if caller.endpoint.is_rpc { rpc::unspent(caller, script).await } else { esplora::unspent(caller, script).await };
        let mut claims: Vec<Claim> = claims?.into_iter().filter(|claim| claim.height.is_some()).collect();
        claims.sort_by_key(|claim| (u64::MAX.saturating_sub(claim.funding.value), claim.funding.outpoint));
        claims.truncate(MAX_COINS);
        let total = claims.iter().map(|claim| claim.funding.value).fold(0, u64::saturating_add);
        if total > self.chain.supply() {
            return Err(caller.malformed(Refusal::new(Code::AmountAboveSupply, "").with_actual(total)));
        }
        Ok(claims)
    }

    /// Lists the confirmed, unspent outputs of an HTLC, which a redemption or a refund spends. The endpoints must agree on the list.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn fundings(&self, tree: &Tree) -> Result<Vec<Funding>, NodeError> {
        let script = tree.script_pubkey();
        let lists = self.connection.each(|caller| self.unspent(caller, &script)).await;
        let fundings = |claims: &Vec<Claim>| claims.iter().map(|claim| claim.funding).collect::<Vec<_>>();
        let agreed = agree(lists, self.connection.needed(), fundings)?;
        Ok(agreed.first().map(fundings).unwrap_or_default())
    }

    /// Estimates the fee rate for confirmation within a number of blocks. It is at least 1 sat/vB. The first endpoint that answers decides.
    ///
    /// | speed | blocks on Bitcoin | blocks on Litecoin |
    /// |---|---|---|
    /// | slow | 6 | 24 |
    /// | normal | 3 | 6 |
    /// | fast | 1 | 2 |
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::FeeRateTooHigh`] if the rate exceeds the policy, and another [`NodeError`] if no
    /// endpoint answers.
    pub async fn fee_rate(&self, speed: Speed, policy: &Policy) -> Result<FeeEstimate, NodeError> {
        let blocks = match (self.chain.coin, speed) {
            (Coin::Bitcoin, Speed::Slow) | (Coin::Litecoin, Speed::Normal) => 6,
            (Coin::Bitcoin, Speed::Normal) => 3,
            (Coin::Bitcoin, Speed::Fast) => 1,
            (Coin::Litecoin, Speed::Slow) => 24,
            (Coin::Litecoin, Speed::Fast) => 2,
        };
        let ask = |caller: Caller<'n, T>| async move {
            self.identify(caller).await?;
            if caller.endpoint.is_rpc { rpc::fee_rate(caller, blocks).await } else { esplora::fee_rate(caller, blocks).await }
        };
        let floor = FeeRate::from_whole(1);
        let estimate = self.connection.first(ask).await?;
        // Compares the fees for 1,000 vB, because `FeeRate` does not implement `Ord`.
        let rate = estimate.filter(|rate| rate.fee(1_000).is_none_or(|fee| fee > 1_000)).unwrap_or(floor);
        rate.check(policy.bitcoin_fee_rate, "/fee_rate")?;
        Ok(FeeEstimate { rate, is_floor: estimate.is_none() })
    }

    /// Returns the lowest fee rate that lets a transaction of `vsize` virtual bytes replace one that paid `fee` base units (BIP-125).
    ///
    /// # Errors
    ///
    /// Returns [`Code::FeeRateTooHigh`] if the rate exceeds the policy.
    pub fn replacement_rate(fee: u64, vsize: u64, policy: &Policy) -> Result<FeeRate, Refusal> {
        let rate = FeeRate::replacing(fee, vsize).ok_or_else(|| Refusal::new(Code::FeeRateTooHigh, "/fee_rate").with_actual(fee))?;
        rate.check(policy.bitcoin_fee_rate, "/fee_rate")?;
        Ok(rate)
    }

    /// Reads the context for paying a deposit from the owner's address: its coins, the fee rate, and the same address for the change.
    /// Coins are selected for the lowest fee.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`BitcoinChain::coins`] and [`BitcoinChain::fee_rate`].
    pub async fn wallet(&self, owner: &str, speed: Speed, policy: &Policy) -> Result<Wallet, NodeError> {
        let coins = self.coins(owner).await?;
        let estimate = self.fee_rate(speed, policy).await?;
        Ok(Wallet::new(coins, owner, estimate.rate).with_selection(Selection::LowestFee))
    }
}

/// Reads one coin, with the transaction that created it if the amount must be proven.
async fn coin<T: Transport>(caller: Caller<'_, T>, script: &ScriptBuf, claim: Claim) -> Result<Utxo, NodeError> {
    let Funding { outpoint, value, .. } = claim.funding;
    let output = TxOut { value: Amount::from_sat(value), script_pubkey: script.clone() };
    if script.is_p2tr() {
        return Ok(Utxo::new(outpoint, output)?);
    }
    let OutPoint { txid, .. } = outpoint;
    let previous =
        if caller.endpoint.is_rpc { rpc::transaction(caller, txid, claim.hash).await? } else { esplora::transaction(caller, txid).await? };
    Utxo::with_previous_tx(outpoint, output, previous).map_err(|refusal| match refusal.code() {
        Code::UtxoMismatch => caller.malformed(refusal),
        _ => NodeError::Refused(refusal),
    })
}
