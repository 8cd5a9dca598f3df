//! Whether the receiver of an HTLC can be paid, and what a token shows.

use alloy_primitives::U256;
use countersign_core::Refusal;
use countersign_core::reader::{Ask, Fault, Identity, Judged, Known, Question, Replies, Reply, Request};
use countersign_evm_core::read;
use countersign_evm_core::transfer::{self, PAYOUT_GAS, Payability, check_decimals, refuse_coins};
use serde_json::json;

use super::call::{Call, Outcome};
use super::contract::MAX_CODE;
use super::preflight::{PAYMENT_ENERGY, failure};
use super::{OnChain, View, bytes, post, value, written};
use crate::Address;

/// Who will be paid what by which contract.
pub type Receiver = transfer::Receiver<Address>;

/// Checks that the receiver can be paid: that the token is not paused and has not frozen it ([`Payability`]), or that its code takes TRX
/// with the energy that the HTLC gives it ([`PAYOUT_GAS`]). An account without code takes TRX. A token's transfer from the HTLC to the receiver
/// must not use more energy than a redemption is assumed to leave for it.
pub type ReceiverCheck = Ask<OnChain<Receiver>>;

impl Question for OnChain<Receiver> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let Receiver { token, htlc, receiver, amount } = self.subject;
        let call = |sender: Address, to: Address, data: Vec<u8>| Call { sender, to, value: 0, data }.request(View::Newest);
        let Some(token) = token else {
            let code = post(View::Newest, "getcontractinfo", &json!({"value": written(receiver), "visible": false}));
            // Before the HTLC holds the coins, nothing is sent: the node would refuse the call for lack of them.
            let value = amount.and_then(|amount| i64::try_from(amount).ok()).unwrap_or_default();
            return vec![code, Call { sender: htlc, to: receiver, value, data: Vec::new() }.request(View::Newest)];
        };
        let empty = self.subject.empty_transfers().map(|(from, to)| call(from, token, read::empty_transfer_call(to.bytes())));
        let payment = amount.map(|amount| call(htlc, token, read::transfer_call(receiver.bytes(), amount)));
        empty.into_iter().chain([Call::view(token, read::paused_call()).request(View::Newest)]).chain(payment).collect()
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        let Receiver { token, amount, .. } = self.subject;
        if token.is_none() {
            let info = value(&replies.get(0)?)?;
            let code = info.object()?.get("runtimecode").map(|code| bytes(&code, MAX_CODE)).transpose()?;
            if code.is_none_or(|code| code.is_empty()) {
                return Ok(Judged(Ok(())));
            }
            return Ok(Judged(match Outcome::read(&replies.get(1)?)? {
                Outcome::Returned { energy, .. } if energy <= PAYOUT_GAS => Ok(()),
                Outcome::Returned { energy, .. } => Err(refuse_coins(&format!("it uses {energy} units of energy"))),
                Outcome::Reverted(why) => Err(refuse_coins(&why)),
            }));
        }
        let outcome = |index: usize| {
            let reply = replies.get(index)?;
            // A redemption transfers from the HTLC to the receiver. The other transfers may use any energy: otherwise the controls of a token
            // whose every transfer is dear would fail, and say that it refuses empty transfers.
            if matches!(index, 2 | 5) { payment_failure(&reply) } else { failure(&reply) }
        };
        let is_paused = Outcome::read(&replies.get(4)?)?.returned().and_then(|answer| read::number(&answer).ok()) == Some(U256::ONE);
        Ok(Judged(Payability::read(amount, is_paused, outcome)?.check()))
    }
}

/// Returns why a redemption could not make its transfer; `None` if it could.
fn payment_failure(reply: &Reply<'_>) -> Result<Option<String>, Fault> {
    Ok(match Outcome::read(reply)? {
        Outcome::Returned { energy, .. } if energy <= PAYMENT_ENERGY => None,
        Outcome::Returned { energy, .. } => {
            Some(format!("it uses {energy} units of energy, and a redemption is assumed to leave {PAYMENT_ENERGY}"))
        }
        Outcome::Reverted(why) => Some(why),
    })
}

/// A token, and the decimals that are pinned for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct Decimals {
    /// The token.
    pub token: Address,
    /// The decimals.
    pub decimals: u8,
}

/// Checks that a token shows the decimals of the registry: see [`check_decimals`].
pub type DecimalsCheck = Ask<OnChain<Decimals>>;

impl Question for OnChain<Decimals> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![Call::view(self.subject.token, read::decimals_call()).request(View::Newest)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        let shown = Outcome::read(&replies.get(0)?)?.returned().and_then(|answer| read::number(&answer).ok());
        Ok(Judged(check_decimals(self.subject.decimals, shown)))
    }
}
