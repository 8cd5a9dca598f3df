//! countersign with bdk. The wallet provides coins and a change address. Seeds and external signers sign
//! countersign's PSBT. A PSBT that the wallet made is checked before it is signed, and sent transactions are
//! registered with the wallet.

use std::error::Error;

use bdk_wallet::bitcoin::bip32::Xpriv;
use bdk_wallet::bitcoin::{Psbt, Transaction};
use bdk_wallet::signer::SignerError;
use bdk_wallet::{KeychainKind, SignOptions, Wallet};
use countersign::bitcoin::bitcoin::consensus::encode;
use countersign::bitcoin::{FeeRate, Selection, SignedOrder, UnsignedOrder, Utxo, VerifiedOrder};
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry, Role};

/// Verifies a response with its record, and pays it with the wallet's coins.
///
/// # Errors
///
/// Returns the refusal of the response or of a coin.
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
/// Returns a refusal if the seed has no key for the coins.
pub fn sign(mut unsigned: UnsignedOrder, seed: &Xpriv) -> Result<SignedOrder, Refusal> {
    unsigned.sign_with(seed)?;
    Ok(unsigned.finish()?)
}

/// Attaches a PSBT from an external signer, and verifies every signature in it.
///
/// # Errors
///
/// Returns the refusal of the first invalid signature.
pub fn attach(mut unsigned: UnsignedOrder, signer: impl Fn(&Psbt) -> Psbt) -> Result<SignedOrder, Refusal> {
    for request in unsigned.requests().into_iter().take(1) {
        unsigned.attach(request.id, signer(&request.payload.psbt))?;
    }
    Ok(unsigned.finish()?)
}

/// Lets the wallet choose coins, change and fee, and checks the result before it is signed.
///
/// # Errors
///
/// Returns the wallet's error, or the refusal of another payment.
pub fn pay(wallet: &mut Wallet, order: &VerifiedOrder, seed: &Xpriv) -> Result<(Role, Psbt), Box<dyn Error>> {
    let deposit = order.deposit();
    let mut builder = wallet.build_tx();
    builder.add_recipient(deposit.script_pubkey.clone(), deposit.amount);
    let mut psbt = builder.finish()?;
    let role = deposit.matches_psbt(&psbt)?;
    psbt.sign(seed, wallet.secp_ctx()).map_err(|_| "the seed has no key for a coin")?;
    Ok((role, psbt))
}

/// Finalizes a PSBT that other keys have signed.
///
/// # Errors
///
/// Returns the error of the wallet if it cannot finalize the payment.
pub fn finish(wallet: &Wallet, payment: &mut Psbt) -> Result<bool, SignerError> {
    wallet.finalize_psbt(payment, SignOptions::default())
}

/// Registers the sent transactions with the wallet. Returns them in the format for nodes.
pub fn sent(wallet: &mut Wallet, signed: &SignedOrder, at: u64) -> Vec<String> {
    let transactions: Vec<Transaction> = signed.transactions().into_iter().map(|transaction| transaction.native).collect();
    let hex = transactions.iter().map(encode::serialize_hex).collect();
    wallet.apply_unconfirmed_txs(transactions.into_iter().map(|transaction| (transaction, at)));
    hex
}
