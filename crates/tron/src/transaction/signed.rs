//! Signed transactions, of this crate or of an external wallet that chose its own reference block and fee limit.

use alloy_primitives::{B256, Signature, U256, hex};
use countersign_core::json::{self, Cursor, MAX_BYTES, Members};
use countersign_core::{Code, Refusal, Role, TypedValue, UnixMillis, Warnings, number};
use countersign_evm_core::matching::{OrderCalls, SentCall};
use countersign_evm_core::signature::{self, ExternalSignature};
use prost::Message as _;
use serde_json::Value;

use super::json as node_json;
use super::permission::{self, MAX_KEYS};
use super::protocol::Transaction;
use super::{Permission, TronTransaction, TxContext, Unsigned, id_of};
use crate::address::Address;
use crate::deposit::{Call, Deposit, check_fee_limit};

/// A transaction with one contract call and one signature, or those of several keys: the crate's native transaction type.
///
/// Wallets such as TronLink return such a transaction as JSON, nodes as JSON or protobuf:
///
/// ```
/// # use countersign::Refusal;
/// # fn check(order: &countersign::tron::VerifiedOrder, from_tronlink: &[u8]) -> Result<(), Refusal> {
/// use countersign::tron::SignedTronTransaction;
///
/// let transaction = SignedTronTransaction::from_json(from_tronlink)?;
/// let role = order.matches(&transaction)?;
/// // POST /wallet/broadcasttransaction
/// let body = transaction.broadcast_json();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SignedTronTransaction {
    pub(super) transaction: TronTransaction,
    pub(super) signature: Signature,
    /// The signatures of further keys.
    pub(super) further: Vec<Signature>,
}

impl SignedTronTransaction {
    /// Decodes a transaction in protobuf, which nodes accept over gRPC and, as hex, at `/wallet/broadcasthex`.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] for anything but one contract call with one to five signatures, each of another key, and
    /// [`Code::SignatureMalformed`] or [`Code::SignatureHighS`] for a malformed signature.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::from_parts(parts_of_bytes(bytes)?)
    }

    /// Parses a transaction in the JSON of node APIs, as TronWeb and TronLink return it.
    ///
    /// The transaction is taken from `raw_data_hex` and `signature`. If `txID` is present, it must be the hash of the bytes.
    /// `raw_data` repeats the content of `raw_data_hex` and is ignored.
    ///
    /// # Errors
    ///
    /// As [`SignedTronTransaction::from_bytes`]; the codes of malformed JSON; [`Code::MissingField`]; [`Code::WrongType`]; or a
    /// `hex_` code.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        Self::from_parts(parts_of_json(&Cursor::root(&json::parse(text)?, ""))?)
    }

    /// Reads what a node shows of a transaction that was sent: the id that follows from the bytes, and the transaction, or why it cannot be
    /// one of an order. A stated `txID` is ignored. Signatures that no node would have accepted are an error of the endpoint.
    pub(crate) fn read_sent(root: &Cursor<'_, '_>) -> Result<(B256, Result<Self, Refusal>), Refusal> {
        let members = root.object()?;
        let raw_data = raw_data(&members)?;
        let read = match TronTransaction::decode(&raw_data) {
            Ok(transaction) => Ok(Self::from_parts((transaction, signatures(&members)?))?),
            Err(refusal) => Err(refusal),
        };
        Ok((id_of(&raw_data), read))
    }

    fn from_parts((transaction, given): Parts) -> Result<Self, Refusal> {
        let mut signatures = given.into_iter().enumerate().map(|(index, signature)| canonical(&signature, &transaction, index));
        let first = signatures.next().unwrap_or_else(|| Err(count(0)))?;
        let further = signatures.collect::<Result<_, _>>()?;
        let signed = Self { further, ..transaction.with_signature(first) };
        if !signed.further.is_empty() {
            signed.distinct_signers()?;
        }
        Ok(signed)
    }

    /// Returns the transaction that was signed.
    #[must_use]
    pub const fn transaction(&self) -> &TronTransaction {
        &self.transaction
    }

    /// Returns the bytes that were signed.
    #[must_use]
    pub fn raw_data(&self) -> &[u8] {
        &self.transaction.raw_data
    }

    /// Returns the transaction's id: SHA-256 of [`raw_data`](Self::raw_data).
    #[must_use]
    pub const fn tx_id(&self) -> B256 {
        self.transaction.tx_id
    }

    /// Returns the signature, or the first of several.
    #[must_use]
    pub const fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Returns all signatures, each of another key.
    pub fn signatures(&self) -> impl Iterator<Item = &Signature> {
        [&self.signature].into_iter().chain(&self.further)
    }

    /// Returns the account whose key made the signature, or the first of several, recovered from it; `None` if no key can have made it.
    #[must_use]
    pub fn signer(&self) -> Option<Address> {
        self.recover(&self.signature)
    }

    /// Returns the accounts of the keys that have signed, recovered from the signatures.
    pub fn signers(&self) -> impl Iterator<Item = Address> {
        self.signatures().filter_map(|signature| self.recover(signature))
    }

    fn recover(&self, signature: &Signature) -> Option<Address> {
        signature.recover_address_from_prehash(&self.tx_id()).ok().map(Address::from)
    }

    /// Returns the accounts of the keys that have signed, and refuses two signatures of one key, as nodes do.
    fn distinct_signers(&self) -> Result<Vec<Address>, Refusal> {
        let mut signers = Vec::new();
        let refuse = || Refusal::new(Code::TransactionMismatch, "/signature");
        for signature in self.signatures() {
            let signer = self.recover(signature).ok_or_else(refuse)?;
            if signers.contains(&signer) {
                let reason = "one key has signed twice, which nodes refuse: each key of a permission counts once";
                return Err(refuse().with_expected("signatures of different keys").with_actual(signer).with_reason(reason));
            }
            signers.push(signer);
        }
        Ok(signers)
    }

    fn signature_bytes(&self) -> Vec<Vec<u8>> {
        self.signatures().map(signature::bytes).collect()
    }

    /// Returns the signed transaction in protobuf, which nodes accept over gRPC and, as hex, at `/wallet/broadcasthex`.
    #[must_use]
    pub fn broadcast_bytes(&self) -> Vec<u8> {
        Transaction { raw_data: Some(self.transaction.raw.clone()), signature: self.signature_bytes() }.encode_to_vec()
    }

    /// Returns the signed transaction in the JSON that nodes accept at `/wallet/broadcasttransaction`.
    #[must_use]
    pub fn broadcast_json(&self) -> Value {
        node_json::transaction(&self.transaction, &self.signature_bytes())
    }
}

/// A transaction with its signatures, which are not proven yet.
type Parts = (TronTransaction, Vec<ExternalSignature>);

/// Reads a signed transaction as a wallet returns it, in protobuf or in the JSON of TronWeb. The signatures may have any form that can be
/// proven. It must be signed under the permission of what was prepared, and by several keys only if the wallet has named them.
pub(super) fn parts(bytes: &[u8], prepared: &Unsigned) -> Result<Parts, Refusal> {
    // Protobuf begins with the tag of `raw_data`, which is also a line feed: what follows it is no white space before JSON.
    let is_json = !bytes.starts_with(b"\n") && bytes.trim_ascii_start().starts_with(b"{");
    let (transaction, signatures) = if is_json { parts_of_json(&Cursor::root(&json::parse(bytes)?, ""))? } else { parts_of_bytes(bytes)? };
    if prepared.signers().is_none() && signatures.len() > 1 {
        let refusal = Refusal::new(Code::TransactionMismatch, "/signature").with_expected("one signature").with_actual(signatures.len());
        let reason =
            "several keys have signed: name the permission of the account and its keys in the wallet's context, and prepare it again";
        return Err(refusal.with_reason(reason));
    }
    let expected = prepared.calls.first().map_or(0, |call| call.transaction.permission_id());
    let actual = transaction.permission_id();
    if actual != expected {
        let refusal = Refusal::new(Code::TransactionMismatch, "/raw_data/contract/0/Permission_id").with_actual(actual.to_string());
        let reason = "it is signed under another permission of the account: name it in the wallet's context, and prepare it again";
        return Err(refusal.with_expected(format!("{expected}, {}", permission::name(expected))).with_reason(reason));
    }
    Ok((transaction, signatures))
}

fn parts_of_bytes(bytes: &[u8]) -> Result<Parts, Refusal> {
    let malformed = || Refusal::new(Code::TransactionMismatch, "").with_reason("not the canonical bytes of a signed transaction");
    let decoded = Transaction::decode(bytes).map_err(|_| malformed())?;
    if decoded.encode_to_vec() != bytes {
        return Err(malformed());
    }
    let Transaction { raw_data: Some(raw), signature } = decoded else { return Err(malformed()) };
    check_count(signature.len())?;
    let read = |(index, bytes)| {
        let read = ExternalSignature::from_hex(&hex::encode::<&Vec<u8>>(bytes));
        read.map_err(|refusal| refusal.with_prefix(&format!("/signature/{index}")))
    };
    let signatures = signature.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    Ok((TronTransaction::decode(&raw.encode_to_vec())?, signatures))
}

fn parts_of_json(root: &Cursor<'_, '_>) -> Result<Parts, Refusal> {
    let members = root.object()?;
    let transaction = TronTransaction::decode(&raw_data(&members)?)?;
    if let Some(id) = members.get("txID")
        && !id.text()?.eq_ignore_ascii_case(&hex::encode(transaction.tx_id))
    {
        return Err(id.refuse(Code::TransactionMismatch).with_expected(TypedValue::Hash(transaction.tx_id.0)));
    }
    Ok((transaction, signatures(&members)?))
}

/// Reads the bytes that are signed.
fn raw_data(members: &Members<'_, '_>) -> Result<Vec<u8>, Refusal> {
    let raw_data = members.need("raw_data_hex")?;
    number::hex_bytes(&format!("0x{}", raw_data.text()?), MAX_BYTES).map_err(|error| raw_data.refuse(error))
}

/// Reads the signatures, which are not proven yet.
fn signatures(members: &Members<'_, '_>) -> Result<Vec<ExternalSignature>, Refusal> {
    let signatures = members.need("signature")?;
    let items = signatures.array()?;
    check_count(items.len())?;
    let read =
        |item: Cursor<'_, '_>| ExternalSignature::from_hex(item.text()?).map_err(|refusal| refusal.with_prefix(&item.at().to_string()));
    items.map(read).collect()
}

fn check_count(signatures: usize) -> Result<(), Refusal> {
    if (1..=MAX_KEYS).contains(&signatures) { Ok(()) } else { Err(count(signatures)) }
}

fn count(signatures: usize) -> Refusal {
    let expected = format!("1 to {MAX_KEYS} signatures");
    Refusal::new(Code::TransactionMismatch, "/signature").with_expected(expected).with_actual(signatures)
}

/// Requires r, s and a parity with low s. The only signer that is known is the owner of the account, so the parity of its own key's
/// signature is found; of another key nothing can be proven, and a parity that is not stated is not guessed.
fn canonical(signature: &ExternalSignature, transaction: &TronTransaction, index: usize) -> Result<Signature, Refusal> {
    let refuse = |code| Refusal::new(code, format!("/signature/{index}"));
    if let ExternalSignature::Ecdsa(signature) = signature
        && signature.normalize_s().is_some()
    {
        return Err(refuse(Code::SignatureHighS));
    }
    let owner = transaction.trigger.owner_address.as_slice().try_into().ok().and_then(Address::from_prefixed);
    if let Some(proven) = owner.and_then(|owner| signature.by(owner.bytes(), &transaction.tx_id)) {
        return Ok(proven);
    }
    match signature {
        ExternalSignature::Ecdsa(signature) => Ok(*signature),
        _ => {
            let reason =
                "it says no parity, and is not of the account's own key, so it cannot be known who signed: attach it to the prepared order";
            Err(refuse(Code::SignatureMalformed).with_expected("65 bytes r, s, v").with_reason(reason))
        }
    }
}

/// Returns which call of a deposit a signed transaction makes.
///
/// The wallet may choose the reference block, expiration, timestamp and fee limit, and what [`OrderCalls::role`] allows. The transaction is
/// rebuilt with these values and compared as a whole, so nothing else can differ. It may also be signed under another permission than the
/// owner's, or by several keys: then the chain, which knows the keys, decides whether it counts, and a warning says so.
pub(crate) fn matches(deposit: &Deposit, signed: &SignedTronTransaction, warnings: &mut Warnings) -> Result<Role, Refusal> {
    let TronTransaction { raw, trigger, raw_data, .. } = signed.transaction();
    let differs = |location: &'static str| Refusal::new(Code::TransactionMismatch, location);
    let signers = signed.distinct_signers()?;
    let permission_id = signed.transaction().permission_id();
    permission::check_id(permission_id, Code::TransactionMismatch, "/raw_data/contract/0/Permission_id")?;
    if let ([signer], 0) = (signers.as_slice(), permission_id)
        && *signer != deposit.sender
    {
        return Err(differs("/signature").with_expected(deposit.sender).with_actual(*signer));
    }
    let address = |bytes: &[u8]| bytes.try_into().ok().and_then(Address::from_prefixed);
    if address(&trigger.owner_address) != Some(deposit.sender) {
        return Err(differs("/raw_data/contract/owner_address")
            .with_expected(deposit.sender)
            .with_actual(hex::encode(&trigger.owner_address)));
    }
    let Deposit { initiate, approval, terms, .. } = deposit;
    // No order sends a negative amount of sun.
    let sun = |sun: i64| U256::try_from(sun).unwrap_or(U256::MAX);
    let to = address(&trigger.contract_address);
    let calls = OrderCalls {
        initiate: SentCall { to: Some(initiate.to.bytes()), value: sun(initiate.value), data: &initiate.data },
        approval: approval.as_ref().map(|approval| (approval.call.to.bytes(), approval)),
        amount: terms.amount,
        places: ["/raw_data/contract/contract_address", "/raw_data/contract/call_value", "/raw_data/contract/data"],
        format: |address| Address::from(address).to_string(),
    };
    let sent = SentCall { to: to.map(Address::bytes), value: sun(trigger.call_value), data: &trigger.data };
    let role = calls.role(sent, warnings)?;
    // `role` has found both to be the order's.
    let call = Call { to: to.unwrap_or(initiate.to), value: trigger.call_value, fee_limit: 0, data: trigger.data.clone().into() };
    let limit = U256::try_from(raw.fee_limit).unwrap_or_default();
    let refuse = |code: Code| differs("/raw_data/fee_limit").with_reason(code.meaning()).with_actual(raw.fee_limit.to_string());
    let fee_limit = check_fee_limit(deposit.max_fee_limit, limit, &refuse)?;

    let reference = raw.ref_block_bytes.as_slice().try_into().ok().zip(raw.ref_block_hash.as_slice().try_into().ok());
    let (bytes, hash) = reference.ok_or_else(|| differs("/raw_data/ref_block_hash"))?;
    let mut wallet = TxContext::new(bytes, hash, UnixMillis::default(), UnixMillis::default());
    // `check_id` has found it to be small.
    wallet.permission = u8::try_from(permission_id).ok().map(Permission::new);
    let rebuilt = TronTransaction::at(deposit.sender, &wallet, (raw.expiration, raw.timestamp), &Call { fee_limit, ..call });
    if rebuilt.raw_data != *raw_data {
        let reason = "the transaction carries a memo or tokens that the order does not need";
        return Err(differs("/raw_data").with_reason(reason));
    }
    if signers.len() > 1 || permission_id != 0 {
        let signers = signers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let (owner, name) = (deposit.sender, permission::name(permission_id));
        let detail =
            format!("under {name} of {owner}, by the key of {signers}: whether it allows this call with these keys, the chain decides");
        warnings.warn_in_full(Code::SignatureUnverified, &detail);
    }
    Ok(role)
}
