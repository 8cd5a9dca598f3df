//! Signed transactions as wallets and nodes return them.

use alloy_consensus::transaction::{RlpEcdsaDecodableTx, RlpEcdsaEncodableTx};
use alloy_consensus::{SignableTransaction as _, Signed, TxEip1559, TxEip2930, TxEnvelope, TxLegacy};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{B256, Bytes, Signature, TxKind, U256, normalize_v};
use countersign_core::json::{self, MAX_BYTES, Members, Node};
use countersign_core::{Code, Refusal, TypedValue};

/// Maximum number of entries of an access list, and of storage keys of an entry.
const MAX_ACCESS: usize = 1_000;

/// Decodes a signed transaction from its bytes (EIP-2718), as `eth_getRawTransactionByHash` returns them in hex: of type 0, 1 or 2,
/// because orders need no other.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] if the bytes are not exactly one such transaction.
pub fn from_bytes(bytes: &[u8]) -> Result<TxEnvelope, Refusal> {
    // By type: the decoder of the envelope has the other types too, which are a large part of a WebAssembly module.
    let decoded = match bytes.first() {
        Some(0x01) => decode::<TxEip2930>(bytes).map(TxEnvelope::Eip2930),
        Some(0x02) => decode::<TxEip1559>(bytes).map(TxEnvelope::Eip1559),
        Some(0xc0..) => decode::<TxLegacy>(bytes).map(TxEnvelope::Legacy),
        _ => None,
    };
    decoded.ok_or_else(|| Refusal::new(Code::TransactionMismatch, "").with_reason("the bytes are not one signed transaction"))
}

fn decode<T: RlpEcdsaDecodableTx + RlpEcdsaEncodableTx>(bytes: &[u8]) -> Option<Signed<T>> {
    let mut rest = bytes;
    let signed = T::eip2718_decode(&mut rest).ok()?;
    let mut again = Vec::with_capacity(bytes.len());
    signed.eip2718_encode(&mut again);
    (rest.is_empty() && again == bytes).then_some(signed)
}

/// Parses a signed transaction in the JSON form of `eth_getTransactionByHash`: of type 0, 1 or 2, because orders need no other.
///
/// The fields that a node adds (`from`, block, index) are ignored; the sender follows from the signature. If `hash` is present, it must be
/// the hash of the transaction.
///
/// ```
/// # use countersign_core::Refusal;
/// # fn check(order: &countersign_evm::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
/// use countersign_evm::received;
///
/// let role = order.matches(&received::from_json(from_node)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Code::TransactionMismatch`] for any other type, or if `hash` differs; the codes of malformed JSON; [`Code::MissingField`];
/// [`Code::WrongType`]; a `hex_` code; or [`Code::NumberTooLarge`].
pub fn from_json(text: &[u8]) -> Result<TxEnvelope, Refusal> {
    let value = json::parse(text)?;
    let root = Node::root(&value, "");
    let members = root.object()?;
    let (signature, v) = signature(&members)?;
    let number = |key| small(&members.need(key)?);
    let fee = |key| u128::try_from(members.need(key)?.hex_number()?).map_err(|_| at(&members, key).refuse(Code::NumberTooLarge));
    let to = match members.get("to") {
        Some(to) => TxKind::Call(to.hex_array()?.into()),
        None => TxKind::Create,
    };
    let (nonce, gas_limit, value) = (number("nonce")?, number("gas")?, members.need("value")?.hex_number()?);
    let input = Bytes::from(members.need("input")?.hex_bytes(MAX_BYTES)?);
    let envelope: TxEnvelope = match members.get("type").map_or(Ok(0), |node| small(&node))? {
        0 => {
            // EIP-155: v is 35 or 36 more than twice the chain id. Without a chain id it is 27 or 28.
            let chain_id = v.checked_sub(35).map(|v| v >> 1);
            let transaction = TxLegacy { chain_id, nonce, gas_price: fee("gasPrice")?, gas_limit, to, value, input };
            transaction.into_signed(signature).into()
        }
        1 => {
            let (chain_id, gas_price, access_list) = (number("chainId")?, fee("gasPrice")?, access_list(&members)?);
            TxEip2930 { chain_id, nonce, gas_price, gas_limit, to, value, input, access_list }.into_signed(signature).into()
        }
        2 => {
            let (max_fee_per_gas, max_priority_fee_per_gas) = (fee("maxFeePerGas")?, fee("maxPriorityFeePerGas")?);
            let (chain_id, access_list) = (number("chainId")?, access_list(&members)?);
            let transaction =
                TxEip1559 { chain_id, nonce, gas_limit, max_fee_per_gas, max_priority_fee_per_gas, to, value, access_list, input };
            transaction.into_signed(signature).into()
        }
        other => {
            let refusal = at(&members, "type").refuse(Code::TransactionMismatch);
            return Err(refusal.with_expected("0x0, 0x1 or 0x2").with_actual(format!("{other:#x}")));
        }
    };
    if let Some(hash) = members.get("hash")
        && hash.hex_array()? != envelope.tx_hash().0
    {
        return Err(hash.refuse(Code::TransactionMismatch).with_expected(TypedValue::Hash(envelope.tx_hash().0)));
    }
    Ok(envelope)
}

fn at<'p>(members: &Members<'p, '_>, key: &'p str) -> json::At<'p> {
    members.at().key(key)
}

fn small(node: &Node<'_, '_>) -> Result<u64, Refusal> {
    u64::try_from(node.hex_number()?).map_err(|_| node.refuse(Code::NumberTooLarge))
}

/// Reads the signature, and `v` as it is written. Nodes write the parity as `v` or as `yParity`, or as both.
fn signature(members: &Members<'_, '_>) -> Result<(Signature, u64), Refusal> {
    let node = match members.get("v") {
        Some(v) => v,
        None => members.need("yParity")?,
    };
    let v = small(&node)?;
    let parity = normalize_v(v).ok_or_else(|| node.refuse(Code::SignatureMalformed))?;
    let word = |key| members.need(key)?.hex_number();
    let (r, s): (U256, U256) = (word("r")?, word("s")?);
    Ok((Signature::new(r, s, parity), v))
}

fn access_list(members: &Members<'_, '_>) -> Result<AccessList, Refusal> {
    let Some(list) = members.get("accessList") else { return Ok(AccessList::default()) };
    let bounded = |node: &Node<'_, '_>, count: usize| match count {
        0..=MAX_ACCESS => Ok(()),
        _ => Err(node.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_ACCESS} entries")).with_actual(count)),
    };
    let items = list.array()?;
    bounded(&list, items.len())?;
    let item = |item: Node<'_, '_>| {
        let members = item.object()?;
        let keys = members.need("storageKeys")?;
        let all = keys.array()?;
        bounded(&keys, all.len())?;
        let storage_keys = all.map(|key| key.hex_array().map(B256::from)).collect::<Result<_, Refusal>>()?;
        Ok(AccessListItem { address: members.need("address")?.hex_array()?.into(), storage_keys })
    };
    items.map(item).collect::<Result<_, Refusal>>().map(AccessList)
}
