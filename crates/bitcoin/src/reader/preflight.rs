//! Checks a transaction before it is sent.

use std::sync::Arc;

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{Amount, OutPoint, Transaction, TxOut};
use countersign_core::reader::{Agree, Fault, Identity, Judged, Known, Machine, Replies, Reply, Request, Turn};
use countersign_core::{Code, Refusal, TypedValue, U256};

use super::broadcast::KNOWN;
use super::{OnChain, esplora, rpc};
use crate::recover::Funding;
use crate::transaction::{FeeRate, sum};

/// The maximum number of inputs of a transaction.
const MAX_INPUTS: usize = 500;

/// A transaction to check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The transaction.
    pub transaction: Arc<Transaction>,
    /// The highest fee rate that the policy allows. `None` reads the inputs alone, for a transaction that was sent before.
    pub max_fee_rate: Option<FeeRate>,
}

impl Plan {
    /// Creates the plan to send a transaction.
    #[must_use]
    pub fn new(transaction: &Transaction, max_fee_rate: Option<FeeRate>) -> Self {
        Self { transaction: Arc::new(transaction.clone()), max_fee_rate }
    }
}

/// What a transaction spends and pays.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// The outputs that it spends.
    pub inputs: Vec<Funding>,
    /// Values and scripts of these outputs.
    pub prevouts: Vec<TxOut>,
    /// The fee.
    pub fee: Amount,
}

impl Agree for Preflight {
    type Key = Self;

    fn key(&self) -> Self {
        self.clone()
    }
}

/// Checks that the inputs of a transaction exist and are unspent, and that its fee is within the policy. A node's own RPC also tests
/// whether it would accept the transaction.
///
/// Refuses a transaction that cannot be mined, with [`Code::SimulationReverted`] and the reason as the actual value, and one whose fee
/// exceeds the policy, with [`Code::FeeRateTooHigh`].
///
/// The transaction is shown only to a node's own RPC. Do not check one that contains the secret before the secret may be released.
#[derive(Debug)]
pub struct PreflightCheck {
    subject: OnChain<Plan>,
    is_rpc: bool,
}

impl Machine for PreflightCheck {
    type Subject = OnChain<Plan>;
    type Output = Judged<Preflight>;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &OnChain<Plan>, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let transaction = &subject.subject.transaction;
        let machine = Self { subject: subject.clone(), is_rpc: known.is_rpc() };
        if transaction.input.is_empty() || transaction.input.len() > MAX_INPUTS {
            return Err(Refusal::new(Code::TransactionMalformed, "/input").with_reason("the transaction has no inputs, or too many"));
        }
        let inputs = transaction.input.iter().map(|input| input.previous_output);
        let requests = if machine.is_rpc {
            let test = subject.subject.max_fee_rate.map(|_| rpc::test(&serialize_hex(transaction.as_ref())));
            let outputs = inputs.flat_map(|outpoint| [rpc::output(outpoint, false), rpc::output(outpoint, true)]);
            test.into_iter().chain(outputs).collect()
        } else {
            inputs.flat_map(|outpoint| [esplora::raw(outpoint.txid), esplora::outspend(outpoint)]).collect()
        };
        Ok((machine, requests))
    }

    fn identity(&self) -> Identity {
        self.subject.chain.identity(self.is_rpc)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Judged<Preflight>>, Fault> {
        Ok(Turn::Done(Judged(self.judge(replies.all())?)))
    }
}

impl PreflightCheck {
    fn judge(&self, mut replies: &[Reply<'_>]) -> Result<Result<Preflight, Refusal>, Fault> {
        let Plan { transaction, max_fee_rate } = &self.subject.subject;
        let invalid = |why: &str| Ok(Err(Refusal::new(Code::SimulationReverted, "").with_actual(why)));
        if self.is_rpc && max_fee_rate.is_some() {
            let (test, rest) = replies.split_first().ok_or_else(|| Refusal::new(Code::MissingField, "/result"))?;
            replies = rest;
            if let Some(why) = rpc::read_test(test.json()?)?.filter(|why| !KNOWN.contains(&why.as_str())) {
                return invalid(&why);
            }
        }
        let (mut inputs, mut prevouts) = (Vec::new(), Vec::new());
        for (input, pair) in transaction.input.iter().zip(replies.chunks(2)) {
            let outpoint = input.previous_output;
            match self.prevout(outpoint, pair)? {
                Some(prevout) => {
                    inputs.push(Funding::new(outpoint, prevout.value));
                    prevouts.push(prevout);
                }
                None => return invalid(&format!("the output {outpoint} does not exist or is spent")),
            }
        }
        let held = sum(inputs.iter().map(|funding| funding.value));
        let paid = sum(transaction.output.iter().map(|output| output.value));
        let Some(fee) = held.checked_sub(paid) else { return invalid("its outputs exceed its inputs") };
        let max = max_fee_rate.and_then(|rate| rate.fee(transaction.weight().to_vbytes_ceil())).map_or(u64::MAX, Amount::to_sat);
        if fee.to_sat() > max {
            let refusal = Refusal::new(Code::FeeRateTooHigh, "/fee").with_expected(TypedValue::AtMost(U256::from(max)));
            return Ok(Err(refusal.with_actual(fee.to_sat())));
        }
        Ok(Ok(Preflight { inputs, prevouts, fee }))
    }

    /// Returns the output that an input spends; `None` if it does not exist, or if another transaction spends it.
    fn prevout(&self, outpoint: OutPoint, pair: &[Reply<'_>]) -> Result<Option<TxOut>, Fault> {
        let [first, second] = pair else { return Err(Refusal::new(Code::MissingField, "/result").into()) };
        if self.is_rpc {
            // A transaction in the mempool may spend it, because that may be the transaction that is being checked.
            let (mined, any) = (rpc::read_output(first.json()?)?, rpc::read_output(second.json()?)?);
            return Ok(mined.or(any));
        }
        if let Reply::Status { status: 404, .. } = first {
            return Ok(None);
        }
        let previous = esplora::read_transaction(first, outpoint.txid)?;
        let spender = esplora::read_outspend(second.json()?)?;
        let output = usize::try_from(outpoint.vout).ok().and_then(|vout| previous.output.get(vout));
        let own = self.subject.subject.transaction.compute_txid();
        Ok(output.filter(|_| spender.is_none_or(|(by, _)| by == own)).cloned())
    }
}
