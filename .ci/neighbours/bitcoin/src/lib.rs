//! Beside bdk: its wallet finishes the PSBT that countersign made, and hears of the transaction.

use bdk_wallet::bitcoin::{Psbt, Transaction};
use bdk_wallet::signer::SignerError;
use bdk_wallet::{SignOptions, Wallet};
use countersign::bitcoin::bitcoin;

/// Finishes a payment that the keys have signed.
///
/// # Errors
///
/// What is missing from the payment.
pub fn finish(wallet: &Wallet, payment: &mut bitcoin::Psbt) -> Result<bool, SignerError> {
    let payment: &mut Psbt = payment;
    wallet.finalize_psbt(payment, SignOptions::default())
}

/// Tells the wallet about a transaction that was sent.
pub fn sent(wallet: &mut Wallet, transaction: bitcoin::Transaction, at: u64) {
    let transaction: Transaction = transaction;
    wallet.apply_unconfirmed_txs([(transaction, at)]);
}
