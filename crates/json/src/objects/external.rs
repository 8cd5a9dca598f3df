//! Transactions that an external wallet has signed or broadcast, in the forms in which wallets and nodes return them.

#![cfg_attr(
    not(all(feature = "bitcoin", feature = "evm", feature = "solana", feature = "starknet", feature = "sui", feature = "tron")),
    allow(dead_code, unused_variables, reason = "each family needs some of this")
)]

use countersign::{Code, Refusal, Transaction, Verified};
use countersign_core::number;

use super::Failure;

/// Maximum length of a transaction's bytes.
const MAX_BYTES: usize = 4_000_000;

/// Returns the role in an order of a transaction that an external wallet has signed or broadcast, such as `approval` or `initiate`:
/// see [`Verified::matches`]. Use this with wallets that choose nonce and fees themselves.
///
/// The forms of the transaction are listed in `docs/spec/batch.md#external-transactions`.
///
/// # Errors
///
/// [`Failure`] at the first member of `/transaction` that is missing, malformed or, with the code `transaction_mismatch`, not as in the
/// order.
pub fn matches(order: &Verified, transaction: &[u8]) -> Result<String, Failure> {
    let role = read(order, transaction).and_then(|transaction| order.matches(&transaction));
    Ok(role.map_err(|refusal| refusal.with_prefix("/transaction"))?.to_string())
}

fn read(order: &Verified, text: &[u8]) -> Result<Transaction, Refusal> {
    match order {
        #[cfg(feature = "evm")]
        Verified::Evm(_) => {
            use countersign::evm::received;
            let transaction = match text.trim_ascii_start() {
                [b'{', ..] => received::from_json(text)?,
                _ => received::from_bytes(&hex(text)?)?,
            };
            Ok(Transaction::Evm(transaction))
        }
        #[cfg(feature = "tron")]
        Verified::Tron(_) => {
            use countersign::tron::SignedTronTransaction;
            let transaction = match text.trim_ascii_start() {
                [b'{', ..] => SignedTronTransaction::from_json(text)?,
                _ => SignedTronTransaction::from_bytes(&bare_hex(text)?)?,
            };
            Ok(Transaction::Tron(transaction))
        }
        #[cfg(feature = "starknet")]
        Verified::Starknet(_) => countersign::starknet::InvokeTransaction::from_json(text).map(Transaction::Starknet),
        #[cfg(feature = "solana")]
        Verified::Solana(_) => countersign::solana::received::from_bytes(&base64(text)?).map(Transaction::Solana),
        #[cfg(feature = "sui")]
        Verified::Sui(_) => countersign::sui::Execution::from_json(text).map(Transaction::Sui),
        #[cfg(feature = "bitcoin")]
        Verified::Bitcoin(_) => countersign::bitcoin::received::from_bytes(&bare_hex(text)?).map(Transaction::Bitcoin),
        #[allow(unreachable_patterns, reason = "every family of this build is above")]
        other => Err(Refusal::new(Code::UnsupportedFamily, "").with_actual(other.family())),
    }
}

fn plain(text: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(text).map(str::trim_ascii).map_err(|_| Refusal::new(Code::JsonNotUtf8, ""))
}

fn hex(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    number::hex_bytes(plain(text)?, MAX_BYTES).map_err(|error| Refusal::new(error, ""))
}

fn bare_hex(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    number::hex_bytes(&format!("0x{}", plain(text)?), MAX_BYTES).map_err(|error| Refusal::new(error, ""))
}

#[cfg(feature = "solana")]
fn base64(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(plain(text)?);
    bytes.map_err(|_| Refusal::new(Code::WrongType, "").with_expected("base64"))
}
