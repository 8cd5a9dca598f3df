//! Signed transactions as wallets and nodes return them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::json::{self, Cursor};
use countersign_core::{Code, Refusal};
use serde::Serialize;
use sui_sdk_types::{SignedTransaction, UserSignature};

use crate::kind;
use crate::signature::{ExternalSignature, MAX_SIGNATURE_BYTES, check_low_s};

/// The most signatures of a transaction: the sender's and the sponsor's.
pub(crate) const MAX_SIGNATURES: usize = 2;

/// How the `rawTransaction` of a node begins: a list of one transaction, and the three bytes of the intent of a user's transaction.
const LIST_OF_ONE: [u8; 4] = [1, 0, 0, 0];

/// Decodes a signed transaction from BCS: the transaction and its signatures, as `sui-sdk-types` encodes a [`SignedTransaction`], or the
/// same with the intent and in a list of one, as nodes return it in `rawTransaction`.
///
/// ```
/// # use countersign::Refusal;
/// # fn check(order: &countersign::sui::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
/// use countersign::sui::received;
///
/// let role = order.matches(&received::from_bytes(from_node)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Code::TransactionMismatch`] if the bytes are not exactly one transaction or there are more than two signatures;
/// [`Code::SignatureMalformed`] or [`Code::SignatureHighS`].
pub fn from_bytes(bytes: &[u8]) -> Result<SignedTransaction, Refusal> {
    // A transaction begins with 0, the index of its version, so the first byte says which form it is.
    let bytes = bytes.strip_prefix(&LIST_OF_ONE).unwrap_or(bytes);
    let not_one = |_| Refusal::new(Code::TransactionMismatch, "").with_reason("the bytes are not one signed transaction");
    let (transaction, signatures) = kind::decode_signed(bytes).map_err(not_one)?;
    Ok(SignedTransaction { transaction, signatures: read_signatures(&signatures)? })
}

/// Decodes a signed transaction from the BCS of its transaction and from its signatures, as nodes return them over gRPC, or says why the
/// transaction cannot be one of an order. Signatures that no node would have accepted are an error of the endpoint.
pub(crate) fn from_parts(transaction: &[u8], signatures: &[&[u8]]) -> Result<Result<SignedTransaction, Refusal>, Refusal> {
    let not_one = |_| Refusal::new(Code::TransactionMismatch, "").with_reason("the bytes are not one transaction of an order's kind");
    let signatures = read_signatures(signatures)?;
    Ok(kind::decode_transaction(transaction).map(|transaction| SignedTransaction { transaction, signatures }).map_err(not_one))
}

fn read_signatures(signatures: &[impl AsRef<[u8]>]) -> Result<Vec<UserSignature>, Refusal> {
    if signatures.len() > MAX_SIGNATURES {
        let refusal = Refusal::new(Code::TransactionMismatch, "/signatures");
        return Err(refusal.with_expected(format!("at most {MAX_SIGNATURES} signatures")).with_actual(signatures.len()));
    }
    let signatures = signatures.iter().map(AsRef::as_ref).enumerate().map(|(index, bytes): (usize, &[u8])| {
        let at = format!("/signatures/{index}");
        let malformed = || Refusal::new(Code::SignatureMalformed, &at).with_expected("flag, signature and public key");
        if bytes.len() > MAX_SIGNATURE_BYTES {
            return Err(malformed());
        }
        let signature = UserSignature::from_bytes(bytes).map_err(|_| malformed())?;
        check_low_s(&signature).map_err(|refusal| refusal.with_prefix(&at))?;
        Ok(signature)
    });
    signatures.collect()
}

/// Parses a signed transaction in the JSON of the method that executes it, with `tx_bytes` and `signatures` in base64: see
/// [`Execution::from_json`].
///
/// # Errors
///
/// As [`Execution::from_json`].
pub fn from_json(text: &[u8]) -> Result<SignedTransaction, Refusal> {
    Execution::from_json(text)
}

/// Parameters of the JSON-RPC method `executeTransactionBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Execution {
    /// The BCS bytes of the transaction, in base64.
    pub tx_bytes: String,
    /// The sender's signature, then the sponsor's if there is one, in base64.
    pub signatures: Vec<String>,
}

impl Execution {
    /// Parses these parameters in JSON. Other members are ignored.
    ///
    /// # Errors
    ///
    /// The codes of malformed JSON; [`Code::MissingField`]; [`Code::WrongType`]; [`Code::TransactionMismatch`] if the bytes are not
    /// exactly one transaction or there are more than two signatures; [`Code::SignatureMalformed`] or [`Code::SignatureHighS`].
    pub fn from_json(text: &[u8]) -> Result<SignedTransaction, Refusal> {
        let value = json::parse(text)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        let bytes = members.need("tx_bytes")?;
        let decoded =
            STANDARD.decode(bytes.text()?).map_err(|_| bytes.at().refuse(Code::TransactionEncoding).with_expected("canonical base64"))?;
        let not_one = |_| bytes.at().refuse(Code::TransactionMismatch).with_reason("the bytes are not one transaction");
        let transaction = kind::decode_transaction(&decoded).map_err(not_one)?;
        let signatures = members.need("signatures")?;
        let all = signatures.array()?;
        if all.len() > MAX_SIGNATURES {
            let refusal = signatures.at().refuse(Code::TransactionMismatch);
            return Err(refusal.with_expected(format!("at most {MAX_SIGNATURES} signatures")).with_actual(all.len()));
        }
        let signature = |cursor: Cursor<'_, '_>| {
            let read = cursor.text()?.parse().and_then(|ExternalSignature(signature)| check_low_s(&signature).map(|()| signature));
            read.map_err(|refusal| refusal.with_prefix(&cursor.at().to_string()))
        };
        Ok(SignedTransaction { transaction, signatures: all.map(signature).collect::<Result<_, Refusal>>()? })
    }
}
