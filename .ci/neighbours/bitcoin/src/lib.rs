//! Beside bdk: coins and change address of its wallet go in, seeds and external signers sign the PSBT that countersign made, a
//! PSBT that the wallet made is checked before it is signed, and the wallet is told about the transaction that was sent.

use std::error::Error;

use bdk_wallet::bitcoin::bip32::Xpriv;
use bdk_wallet::bitcoin::{Psbt, Transaction};
use bdk_wallet::signer::SignerError;
use bdk_wallet::{KeychainKind, SignOptions, Wallet};
use countersign::bitcoin::bitcoin::consensus::encode;
use countersign::bitcoin::{FeeRate, Selection, SignedOrder, UnsignedOrder, Utxo, VerifiedOrder};
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry, Role};

/// Verifies a response with its record, and pays it from the wallet's coins.
///
/// # Errors
///
/// A refusal of the response or of a coin.
pub fn prepare(
    (request, response, record, registry): (&CreateOrder, &[u8], &[u8], &Registry),
    wallet: &mut Wallet,
    fee_rate: FeeRate,
) -> Result<UnsignedOrder, Refusal> {
    let proposal = Proposal::new(request, response).with_record(record);
    let order = countersign::bitcoin::verify(proposal, registry, &Policy::default())?;
    let coins: Vec<_> = wallet.list_unspent().map(|coin| Utxo::new(coin.outpoint, coin.txout)).collect::<Result<_, _>>()?;
    let change = wallet.reveal_next_address(KeychainKind::Internal).address;
    order.prepare(countersign::bitcoin::TxContext::new(coins, change, fee_rate).with_selection(Selection::LowestFee))
}

/// Signs with the wallet's seed.
///
/// # Errors
///
/// A refusal if the seed has no key for the coins.
pub fn sign(mut unsigned: UnsignedOrder, seed: &Xpriv) -> Result<SignedOrder, Refusal> {
    unsigned.sign_with(seed)?;
    Ok(unsigned.finish()?)
}

/// Attaches the PSBT that an external signer has signed, and proves every signature in it.
///
/// # Errors
///
/// A refusal of the first signature that is not right.
pub fn attach(mut unsigned: UnsignedOrder, signer: impl Fn(&Psbt) -> Psbt) -> Result<SignedOrder, Refusal> {
    for request in unsigned.requests().into_iter().take(1) {
        unsigned.attach(request.id, signer(&request.payload.psbt))?;
    }
    Ok(unsigned.finish()?)
}

/// Has the wallet choose coins, change and fee itself, and checks what it made before it is signed.
///
/// # Errors
///
/// What the wallet fails with, or the refusal of another payment.
pub fn pay(wallet: &mut Wallet, order: &VerifiedOrder, seed: &Xpriv) -> Result<(Role, Psbt), Box<dyn Error>> {
    let deposit = order.deposit();
    let mut builder = wallet.build_tx();
    builder.add_recipient(deposit.script_pubkey.clone(), deposit.amount);
    let mut psbt = builder.finish()?;
    let role = deposit.matches_psbt(&psbt)?;
    psbt.sign(seed, wallet.secp_ctx()).map_err(|_| "the seed has no key for a coin")?;
    Ok((role, psbt))
}

/// Finishes a PSBT that other keys have signed.
///
/// # Errors
///
/// What is missing from the payment.
pub fn finish(wallet: &Wallet, payment: &mut Psbt) -> Result<bool, SignerError> {
    wallet.finalize_psbt(payment, SignOptions::default())
}

/// Tells the wallet about the transactions that were sent, and returns them as nodes take them.
pub fn sent(wallet: &mut Wallet, signed: &SignedOrder, at: u64) -> Vec<String> {
    let transactions: Vec<Transaction> = signed.transactions().into_iter().map(|transaction| transaction.native).collect();
    let hex = transactions.iter().map(encode::serialize_hex).collect();
    wallet.apply_unconfirmed_txs(transactions.into_iter().map(|transaction| (transaction, at)));
    hex
}
