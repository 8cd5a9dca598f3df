//! Whether the receiver of an HTLC can be paid.

use alloy_primitives::{Address, U256, hex};
use countersign_core::Refusal;
use countersign_core::reader::{Ask, Fault, Identity, Judged, Known, Question, Replies, Reply, Request, RpcError};
use countersign_evm_core::transfer::{self, PAYOUT_GAS, Payability, refuse_coins};
use serde_json::json;

use super::block::LATEST;
use super::preflight::empty_transfer;
use super::{MAX_ANSWER, OnChain, call, returned, revert};
use crate::recover::PAYMENT_GAS;
use crate::{gas, read};

/// The gas of a transaction without calldata, before its receiver runs.
const TRANSACTION_GAS: u64 = 21_000;
/// The maximum length in bytes of a contract's code. EIP-170 allows 24 kB, and some chains a multiple.
const MAX_CODE: usize = 1024 * 1024;

/// Who will be paid what by which contract.
pub type Receiver = transfer::Receiver<Address>;

/// Checks that the receiver can be paid: that the token is not paused and has not frozen it ([`Payability`]), or that its code takes coins
/// with the gas that the HTLC gives it ([`PAYOUT_GAS`]). An account without code takes coins.
///
/// The payment itself is run, without the HTLC and its secret, and with the gas that a redemption leaves for it. Before the HTLC holds the
/// amount, a payment of nothing is. Only an answer is a yes: an error that is not of the contract ends the reading.
pub type ReceiverCheck = Ask<OnChain<Receiver>>;

impl Question for OnChain<Receiver> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let Receiver { token, htlc, receiver, amount } = self.subject;
        let Some(token) = token else {
            return vec![Request::json_rpc("eth_getCode", json!([receiver, LATEST])), coin_transfer(htlc, receiver, amount)];
        };
        let is_payment = |transfer: (Address, Address)| transfer == (htlc, receiver);
        let payment = |amount| payment(token, htlc, &read::transfer_call(receiver, amount));
        let empty = self
            .subject
            .empty_transfers()
            .map(|(from, to)| if is_payment((from, to)) { payment(U256::ZERO) } else { empty_transfer(token, from, to) });
        empty.into_iter().chain([call(token, &read::paused_call(), &json!(LATEST))]).chain(amount.map(payment)).collect()
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        let Receiver { token, amount, .. } = self.subject;
        if token.is_none() {
            let code = replies.json(0)?.hex_bytes(MAX_CODE)?;
            return Ok(Judged(if code.is_empty() { Ok(()) } else { takes_coins(&replies.get(1)?)? }));
        }
        let outcome = |index: usize| failure(&replies.get(index)?);
        let is_paused = returned(&replies.get(4)?, MAX_ANSWER)?.and_then(|answer| read::number(&answer).ok()) == Some(U256::ONE);
        Ok(Judged(Payability::read(amount, is_paused, outcome)?.check()))
    }
}

/// Creates the transfer of coins by the HTLC, with the gas that it gives. The HTLC has the coins there, whether it holds them yet or not.
/// It sends at least one, because code may take none only if there is something to take.
fn coin_transfer(htlc: Address, receiver: Address, amount: Option<U256>) -> Request {
    let value = amount.unwrap_or(U256::ONE);
    let gas = TRANSACTION_GAS.saturating_add(PAYOUT_GAS);
    let transfer = json!({"from": htlc, "to": receiver, "value": format!("{value:#x}"), "gas": format!("{gas:#x}")});
    let balance = json!({htlc.to_string(): {"balance": format!("{:#x}", value.saturating_mul(U256::from(2)))}});
    Request::json_rpc("eth_call", json!([transfer, LATEST, balance]))
}

/// Creates a transfer of tokens by the HTLC, with the gas that a redemption leaves for it.
fn payment(token: Address, htlc: Address, data: &[u8]) -> Request {
    let gas = gas::min_gas(data).saturating_add(PAYMENT_GAS);
    let transfer = json!({"from": htlc, "to": token, "data": hex::encode_prefixed(data), "gas": format!("{gas:#x}")});
    Request::json_rpc("eth_call", json!([transfer, LATEST]))
}

fn takes_coins(reply: &Reply<'_>) -> Result<Result<(), Refusal>, Fault> {
    Ok(failure(reply)?.map_or(Ok(()), |why| Err(refuse_coins(&why))))
}

/// Returns why a call with little gas fails; `None` if it does not. Any error that is not of the contract is a fault.
fn failure(reply: &Reply<'_>) -> Result<Option<String>, Fault> {
    match reply.json_or_error()? {
        Ok(cursor) => Ok(cursor.hex_bytes(MAX_CODE).map(|_| None)?),
        Err(error) => revert(error).or_else(|| halted(error)).map(Some).ok_or_else(|| reply.fault()),
    }
}

/// Returns the message of a node whose virtual machine stopped the code, most often because the gas was used up, or would not have been
/// enough to write to the storage.
fn halted(error: &RpcError) -> Option<String> {
    const WORDS: [&str; 5] = ["outofgas", "reentrancysentry", "invalidopcode", "invalidjump", "stackunderflow"];
    let message: String = error.message.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    WORDS.iter().any(|word| message.contains(word)).then(|| error.message.clone())
}
