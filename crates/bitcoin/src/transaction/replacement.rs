//! The payment of a deposit again, for a higher fee (BIP-125): the same inputs and the same deposit, and less change.

use bitcoin::{Transaction, TxOut};
use countersign_core::{Code, Refusal};

use super::{FeeRate, Selection, TxContext, TxOrdering, Utxo};
use crate::{UnsignedOrder, VerifiedOrder};

/// Prepares a payment that replaces `sent`, which pays the deposit of the same order and is not in a block.
///
/// Both spend the same coins, so at most one of them is mined: the order cannot be paid twice. The fee rate is `fee_rate`, or the lowest
/// one with which nodes accept the replacement if that is higher. What the fee costs more is taken from the change.
///
/// `prevouts` are the outputs that `sent` spends, in its order. A wrong one makes the signature invalid.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] if `sent` does not pay the deposit, does not signal that it can be replaced, or has more than one other
/// output; [`Code::InsufficientFunds`] if its change does not cover the fee; [`Code::FeeRateTooHigh`] above the policy; the errors of
/// [`Utxo::from_parts`] for a coin, and those of [`VerifiedOrder::prepare`](countersign_core::VerifiedOrder::prepare).
pub fn replacement(order: &VerifiedOrder, sent: &Transaction, prevouts: &[TxOut], fee_rate: FeeRate) -> Result<UnsignedOrder, Refusal> {
    let deposit = order.deposit();
    deposit.is_paid_by(sent)?;
    let refuse = |why: &'static str| Refusal::new(Code::TransactionMismatch, "/sent").with_reason(why);
    if sent.input.len() != prevouts.len() {
        return Err(refuse("not every output that the payment spends is known"));
    }
    if !sent.is_explicitly_rbf() {
        return Err(refuse("the payment does not signal that it can be replaced"));
    }
    let mut others = sent.output.iter().filter(|output| output.script_pubkey != deposit.script_pubkey);
    let (change, None) = (others.next(), others.next()) else { return Err(refuse("the payment has outputs other than its change")) };
    let Some(change) = change else {
        let reason = "the payment has no change from which a higher fee could be taken";
        return Err(Refusal::new(Code::InsufficientFunds, "/sent").with_reason(reason));
    };
    let coins = sent.input.iter().zip(prevouts).map(|(input, prevout)| {
        // P2wpkh nested in p2sh shows its redeem script, the only item of the input's script.
        let redeem_script = input.script_sig.redeem_script().map(ToOwned::to_owned);
        Utxo::from_parts(input.previous_output, prevout.clone(), redeem_script, None)
    });
    let coins: Vec<_> = coins.collect::<Result<_, _>>()?;
    let held = super::sum(prevouts.iter().map(|prevout| prevout.value));
    let paid = held.checked_sub(super::sum(sent.output.iter().map(|output| output.value)));
    let paid = paid.ok_or_else(|| refuse("the payment spends more than its inputs hold"))?;

    let prepare = |rate| {
        let context = TxContext::new(coins.clone(), change.script_pubkey.clone(), rate);
        let context = context.with_selection(Selection::All).with_ordering(TxOrdering::Given);
        order.prepare(context)
    };
    // A replacement pays more in total and for each virtual byte, and for its own relay. Its size is known once it is prepared.
    let lowest = |vsize: u64| {
        let rates = [FeeRate::replacing(paid, vsize), FeeRate::replacing(paid, sent.weight().to_vbytes_ceil())];
        rates.into_iter().flatten().fold(fee_rate, |highest, rate| if highest.is_below(rate) { rate } else { highest })
    };
    let sized = |unsigned: &UnsignedOrder| unsigned.payloads().payment.clone();
    let first = prepare(lowest(sent.weight().to_vbytes_ceil()))?;
    let vsize = sized(&first).map_or(0, |payment| payment.vsize);
    let replacement = prepare(lowest(vsize))?;
    let payment = sized(&replacement).ok_or_else(|| Refusal::new(Code::Internal, ""))?;
    // Without change, the fee is what is left, which may not be enough.
    let needed = deposit.chain.min_fee_rate().fee(payment.vsize).and_then(|relay| relay.checked_add(paid));
    if needed.is_none_or(|needed| payment.fee < needed) {
        let reason = "the change of the payment does not cover a fee with which nodes accept a replacement";
        return Err(Refusal::new(Code::InsufficientFunds, "/sent").with_reason(reason).with_actual(payment.fee.to_sat()));
    }
    Ok(replacement)
}
