//! Checks transactions before they are sent, broadcasts them, and reads their confirmations.

use countersign::Policy;
use countersign::bitcoin::FeeRate;
use countersign::bitcoin::bitcoin::Weight;
use countersign::bitcoin::bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use countersign::text;
use countersign_client::driver::KeptTransaction;
use futures_util::future::{try_join, try_join_all};

use super::{
    BitcoinChain, Caller, Code, Funding, Head, NodeError, OutPoint, Refusal, Status, Transaction, Transport, Txid, agree, esplora, rpc,
};

/// The maximum number of inputs of a transaction.
const MAX_INPUTS: usize = 500;

/// The messages of a node that already has a transaction.
const KNOWN: [&str; 4] = ["txn-already-in-mempool", "txn-already-known", "already in block chain", "already in utxo set"];

/// How far a transaction is confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionStatus {
    /// The number of blocks from its block to the newest one, both included; 0 while it is in the mempool.
    pub confirmations: u64,
    /// The hash of its block, in hex without `0x`; `None` while it is in the mempool.
    pub block_hash: Option<String>,
}

impl<'n, T: Transport> BitcoinChain<'n, T> {
    /// Checks that the inputs of a transaction exist and are unspent, and that its fee is within the policy. A node's own RPC also tests
    /// whether it would accept the transaction. Returns the fee in base units.
    ///
    /// The first endpoint that answers decides.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Rejected`] if the transaction cannot be mined, [`NodeError::Refused`] with [`Code::FeeRateTooHigh`] if it pays
    /// too high a fee, and another [`NodeError`] if no endpoint answers.
    pub async fn preflight(&self, transaction: &Transaction, policy: &Policy) -> Result<u64, NodeError> {
        self.connection.first(|caller| self.check(caller, transaction, policy)).await
    }

    async fn check(&self, caller: Caller<'n, T>, transaction: &Transaction, policy: &Policy) -> Result<u64, NodeError> {
        self.identify(caller).await?;
        let reject =
            |why: String| NodeError::Rejected { endpoint: caller.endpoint.host().to_owned(), message: text::escape_untrusted(&why) };
        if transaction.input.is_empty() || transaction.input.len() > MAX_INPUTS {
            return Err(reject("it has no inputs, or too many".to_owned()));
        }
        let txid = transaction.compute_txid();
        if caller.endpoint.is_rpc {
            let refused = rpc::test(caller, &serialize_hex(transaction)).await?;
            if let Some(why) = refused.filter(|why| !KNOWN.contains(&why.as_str())) {
                return Err(reject(why));
            }
        }
        let fundings = self.inputs(caller, transaction, txid).await?;
        let fee = fee(&fundings, transaction).ok_or_else(|| reject("its outputs exceed its inputs".to_owned()))?;
        let max = policy.bitcoin_fee_rate.saturating_mul(vsize(transaction));
        if fee > max {
            let expected = countersign::TypedValue::AtMost(countersign::U256::from(max));
            return Err(Refusal::new(Code::FeeRateTooHigh, "/fee").with_expected(expected).with_actual(fee).into());
        }
        Ok(fee)
    }

    /// Reads the amounts of a transaction's inputs. No other transaction may have spent them.
    async fn inputs(&self, caller: Caller<'n, T>, transaction: &Transaction, txid: Txid) -> Result<Vec<Funding>, NodeError> {
        let read = |outpoint: OutPoint| async move {
            let value = if caller.endpoint.is_rpc {
                rpc::value(caller, outpoint).await?
            } else {
                let (previous, spend) = try_join(esplora::transaction(caller, outpoint.txid), esplora::outspend(caller, outpoint)).await?;
                let output = usize::try_from(outpoint.vout).ok().and_then(|vout| previous.output.get(vout));
                output.filter(|_| spend.is_none_or(|(by, _)| by == txid)).map(|output| output.value.to_sat())
            };
            let message = || format!("the output {outpoint} does not exist or is spent");
            let value = value.ok_or_else(|| NodeError::Rejected { endpoint: caller.endpoint.host().to_owned(), message: message() })?;
            Ok(Funding::new(outpoint, value))
        };
        try_join_all(transaction.input.iter().take(MAX_INPUTS).map(|input| read(input.previous_output))).await
    }

    /// Returns the inputs of a stored transaction, the lowest fee rate of a transaction that may replace it, and its size in virtual
    /// bytes.
    pub(super) async fn replaceable(&self, sent: &KeptTransaction, policy: &Policy) -> Result<(Vec<Funding>, FeeRate, u64), NodeError> {
        let (transaction, txid) = decode(sent)?;
        let read = |caller: Caller<'n, T>| {
            let transaction = &transaction;
            async move {
                self.identify(caller).await?;
                self.inputs(caller, transaction, txid).await
            }
        };
        let fundings = self.connection.first(read).await?;
        let malformed =
            || Refusal::new(Code::TransactionMalformed, "/payload").with_reason("the outputs of the transaction exceed its inputs");
        let (fee, vsize) = (fee(&fundings, &transaction).ok_or_else(malformed)?, vsize(&transaction));
        Ok((fundings, Self::replacement_rate(fee, vsize, policy)?, vsize))
    }

    /// Broadcasts a signed transaction through every endpoint. Succeeds if one of them accepts it or already knows it.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionMalformed`] if the payload is not a transaction with the stored id. Returns
    /// [`NodeError::Rejected`] if no endpoint accepts the transaction and a quorum of them rejects it. After any other [`NodeError`] it is
    /// unknown whether the transaction arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let (_, txid) = decode(transaction)?;
        let outcomes = self.connection.each(|caller| self.send(caller, &transaction.payload, txid)).await;
        let (mut rejected, mut failed) = (Vec::new(), None);
        for outcome in outcomes {
            match outcome {
                Ok(()) => return Ok(()),
                Err(error @ NodeError::Rejected { .. }) => rejected.push(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let enough = u32::try_from(rejected.len()).unwrap_or(u32::MAX) >= self.connection.needed();
        let first = rejected.into_iter().next();
        let error = if enough { first.or(failed) } else { failed.or(first) };
        Err(error.unwrap_or_else(|| NodeError::NotConnected(self.connection.name.to_owned())))
    }

    async fn send(&self, caller: Caller<'n, T>, hex: &str, txid: Txid) -> Result<(), NodeError> {
        self.identify(caller).await?;
        let sent = if caller.endpoint.is_rpc { rpc::send(caller, hex).await } else { esplora::send(caller, hex).await };
        let error = match sent {
            Ok(id) if id == txid => return Ok(()),
            Ok(id) => {
                let refusal = Refusal::new(Code::TransactionIdMalformed, "").with_expected(txid.to_string()).with_actual(id.to_string());
                return Err(caller.malformed(refusal));
            }
            Err(error) => error,
        };
        let NodeError::Rpc { code, message, .. } = &error else { return Err(error) };
        // Without a transaction index, a node does not find a mined transaction by its id. Its message shows that it knows it.
        if caller.endpoint.is_rpc && KNOWN.iter().any(|known| message.contains(known)) || find(caller, txid).await?.is_some() {
            return Ok(());
        }
        // The transaction is malformed, its inputs are missing or spent, or it breaks the rules. Esplora returns HTTP status 400.
        Err(if matches!(code, -22 | -25 | -26 | 400) { error.rejected() } else { error })
    }

    /// Reads how far a transaction is confirmed; `None` if the endpoints agree that they do not know it. A node's own RPC finds mined
    /// transactions only if it has a transaction index (`-txindex=1`).
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionIdMalformed`] if `txid` is not a transaction id, and another [`NodeError`]
    /// if no endpoint answers or too few of them agree.
    pub async fn status(&self, txid: &str) -> Result<Option<TransactionStatus>, NodeError> {
        let txid: Txid = txid.parse().map_err(|_| Refusal::new(Code::TransactionIdMalformed, "/txid").with_actual(txid))?;
        let ask = |caller: Caller<'n, T>| async move {
            let head = self.head(caller).await?;
            Ok((head, find(caller, txid).await?))
        };
        let agreed = agree(self.connection.each(ask).await, self.connection.needed(), |(_, status)| *status)?;
        let Some(Status { block }) = agreed.first().and_then(|(_, status)| *status) else { return Ok(None) };
        let depth = |head: &Head| {
            block.filter(|block| block.height <= head.height).map_or(0, |block| head.height.saturating_sub(block.height).saturating_add(1))
        };
        let confirmations = agreed.iter().map(|(head, _)| depth(head)).min().unwrap_or_default();
        Ok(Some(TransactionStatus { confirmations, block_hash: block.map(|block| block.hash.to_string()) }))
    }
}

/// Decodes a stored transaction, and requires that it has the stored id. Returns it with its id.
fn decode(kept: &KeptTransaction) -> Result<(Transaction, Txid), Refusal> {
    let transaction: Transaction = deserialize_hex(&kept.payload).map_err(|_| Refusal::new(Code::TransactionMalformed, "/payload"))?;
    let txid = transaction.compute_txid();
    if !kept.id.eq_ignore_ascii_case(&txid.to_string()) {
        return Err(Refusal::new(Code::TransactionMalformed, "/id").with_expected(txid.to_string()).with_actual(&kept.id));
    }
    Ok((transaction, txid))
}

/// Returns the fee of a transaction in base units; `None` if its outputs exceed its inputs.
fn fee(inputs: &[Funding], transaction: &Transaction) -> Option<u64> {
    let held = inputs.iter().map(|funding| funding.value).fold(0, u64::saturating_add);
    held.checked_sub(transaction.output.iter().map(|output| output.value.to_sat()).fold(0, u64::saturating_add))
}

async fn find<T: Transport>(caller: Caller<'_, T>, txid: Txid) -> Result<Option<Status>, NodeError> {
    if caller.endpoint.is_rpc { rpc::find(caller, txid).await } else { esplora::find(caller, txid).await }
}

fn vsize(transaction: &Transaction) -> u64 {
    let weight: Weight = transaction.weight();
    weight.to_vbytes_ceil()
}
