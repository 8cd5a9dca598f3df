//! The JSON that EVM and Tron share.

use countersign_core::json::Members;
use countersign_core::{Refusal, Role};
use countersign_evm_core::funding::ApprovalPlan;
use countersign_evm_core::payloads::{CallPayload, MessagePayload, Unsigned};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::inputs::declare;
use super::read_u64;

/// The form of a key.
pub(super) const KEY_FORM: &str = "64 hex digits";

declare! { SIGNATURES:
    /// The signature of a key on EVM or Tron, in parts. The parity is found, so `v` may be missing or have any usual form or name.
    EcdsaSignature {
        /// The first number; text without `0x` is hex.
        r: NumberOrText,
        /// The second number; text without `0x` is hex.
        s: NumberOrText,
        /// 0, 1, 27 or 28, or EIP-155's, or the last byte of it.
        v: Option<NumberOrText>,
        /// The same as `v`.
        y_parity: Option<NumberOrText>,
        /// The same as `v`.
        recovery: Option<NumberOrText>,
        /// The same as `v`.
        recovery_param: Option<NumberOrText>,
        /// The same as `v`.
        network_v: Option<NumberOrText>,
    }

    /// The signature of a key service on EVM or Tron, with the public key that made it.
    KeyServiceSignature {
        /// DER, or another form of r and s, in hex.
        signature: String,
        /// The public key: SEC 1 or a `SubjectPublicKeyInfo`, in hex.
        public_key: Option<String>,
    }
}

/// Bytes that serialize as `0x` and lower-case hex.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode_prefixed(self.0))
    }
}

/// Reads the chain id that the wallet is set to, if it is given.
pub(crate) fn read_chain_id(members: &Members<'_, '_>) -> Result<Option<u64>, Refusal> {
    members.get("chain_id").map(|cursor| read_u64(cursor)).transpose()
}

/// Reads whether the allowance is set to zero first.
pub(crate) fn read_approvals(members: &Members<'_, '_>) -> Result<ApprovalPlan, Refusal> {
    let resets = members.get("reset_approval").map(|cursor| cursor.bool()).transpose()?.unwrap_or_default();
    Ok(if resets { ApprovalPlan::default().with_reset() } else { ApprovalPlan::default() })
}

/// One call. Each family has its own `Serialize` implementation for it.
pub(crate) struct Call<'a, T>(pub(crate) &'a CallPayload<T>);

struct Message<'a>(&'a MessagePayload);

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let hashes = &self.0.hashes;
        map.serialize_entry("domain_separator", &Hex(hashes.domain_separator.as_slice()))?;
        map.serialize_entry("struct_hash", &Hex(hashes.struct_hash.as_slice()))?;
        map.serialize_entry("digest", &Hex(hashes.digest.as_slice()))?;
        if let Some(signature) = &self.0.signature {
            map.serialize_entry("signature", &Hex(signature))?;
        }
        map.end()
    }
}

/// Writes the steps of an order: calls by their names, then the gasless message. A recovery has one step.
pub(crate) fn serialize_steps<'a, T, S: Serializer>(unsigned: &'a Unsigned<T>, serializer: S) -> Result<S::Ok, S::Error>
where
    Call<'a, T>: Serialize,
{
    let call = |role| unsigned.call(role).map(Call);
    let mut map = serializer.serialize_map(None)?;
    if let Some((role, call)) = [Role::Redeem, Role::Refund].into_iter().find_map(|role| Some((role, call(role)?))) {
        map.serialize_entry(&role.to_string(), &call)?;
        return map.end();
    }
    if let Some(reset) = call(Role::ApprovalReset) {
        map.serialize_entry("approval_reset", &reset)?;
    }
    map.serialize_entry("approval", &call(Role::Approval))?;
    map.serialize_entry("initiate", &call(Role::Initiate))?;
    map.serialize_entry("typed_data", &unsigned.message.as_ref().map(Message))?;
    map.end()
}
