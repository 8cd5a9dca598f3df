//! The `Initiate` message of the swap contract: EIP-712 on EVM (`docs/spec/evm.md#typed-data`), TIP-712 on Tron
//! (`docs/spec/tron.md#typed-data`). Both hash alike once addresses are reduced to their 20 bytes.
//!
//! General hashers ignore members that the types do not name, and some ignore the declared domain type, so two wallets can hash
//! one JSON differently. Here the whole structure is read strictly, and the digest is computed from the rebuilt message.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256, b256, keccak256};
use alloy_sol_types::{Eip712Domain, SolStruct, eip712_domain};
use countersign_core::json::{At, Cursor, Members};
use countersign_core::{Code, OrderContext, Refusal, check_declared_type};

use crate::call::{Initiate, MAX_DESTINATION_DATA};
use crate::rules::AddressCodec;

/// The message that the deployed contracts hash.
pub mod plain {
    alloy_sol_types::sol! {
        /// `Initiate` of four members.
        #[derive(Debug)]
        #[allow(missing_docs, reason = "the type string is the documentation")]
        struct Initiate { address redeemer; uint256 timelock; uint256 amount; bytes32 secretHash; }
    }
}

/// The message of a contract that binds destination data.
pub mod with_data {
    alloy_sol_types::sol! {
        /// `Initiate` of five members.
        #[derive(Debug)]
        #[allow(missing_docs, reason = "the type string is the documentation")]
        struct Initiate { address redeemer; uint256 timelock; uint256 amount; bytes32 secretHash; bytes destinationData; }
    }
}

/// Name of the contract's domain.
pub const DOMAIN_NAME: &str = "HTLC";

/// `keccak256("HTLC")`
const DOMAIN_NAME_HASH: B256 = b256!("c38c02e093b1d1fd69dbaa0ddbcf16061a269f51df3a6e168cfe9f9334eb875f");
/// `keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")`
const DOMAIN_TYPE_HASH: B256 = b256!("8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f");
/// `keccak256("Initiate(address redeemer,uint256 timelock,uint256 amount,bytes32 secretHash)")`.
const INITIATE_TYPE_HASH: B256 = b256!("de5278e8c85ac4e57ea69f40f594c328916a0c846a6bbd82592e91cff5eee136");

/// What a family allows in its messages.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every rule")]
pub struct MessageRules {
    /// How addresses are parsed and formatted.
    pub codec: AddressCodec,
    /// Whether the signed message leaves out the destination data, as on Tron.
    pub drops_destination_data: bool,
}

/// A message that was read strictly.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The domain's version: 1 to 32 printable ASCII characters.
    pub version: String,
    /// The domain's chain id.
    pub chain_id: u64,
    /// The domain's contract.
    pub verifying_contract: Address,
    /// The terms. They have no initiator, because that is whoever signs.
    pub terms: Initiate,
    /// The contract as text, as its chain's users write it.
    pub contract_text: Arc<str>,
    domain_separator: B256,
    hashed_data: bool,
}

/// A message as the struct that is hashed.
#[derive(Debug)]
#[allow(clippy::exhaustive_enums, reason = "the contract has these two forms")]
pub enum Struct {
    /// Four members.
    Plain(plain::Initiate),
    /// Five members, destination data last.
    WithData(with_data::Initiate),
}

/// Hashes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hashes {
    /// The hash of the domain.
    pub domain_separator: B256,
    /// The hash of the message.
    pub struct_hash: B256,
    /// The digest that is signed: Keccak-256 of the bytes `1901`, the domain separator and the struct hash.
    pub digest: B256,
}

impl Hashes {
    /// Computes the digest of a domain separator and a struct hash.
    #[must_use]
    pub fn new(domain_separator: B256, struct_hash: B256) -> Self {
        Self { domain_separator, struct_hash, digest: keccak256(preimage(domain_separator, struct_hash)) }
    }
}

impl Message {
    /// Computes domain separator, struct hash and digest.
    #[must_use]
    pub fn hashes(&self) -> Hashes {
        Hashes::new(self.domain_separator, self.struct_hash())
    }

    fn struct_hash(&self) -> B256 {
        match self.to_struct() {
            Struct::Plain(message) => hash_words([
                INITIATE_TYPE_HASH,
                message.redeemer.into_word(),
                message.timelock.into(),
                message.amount.into(),
                message.secretHash,
            ]),
            Struct::WithData(message) => message.eip712_hash_struct(),
        }
    }

    /// Returns the message in the form that `eth_signTypedData_v4` accepts: `types` with `EIP712Domain`, `primaryType`, `domain` and
    /// `message`. Addresses are 20 bytes in `0x` hex, and numbers decimal strings.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let types = |members: &[(&str, &str)]| -> Vec<_> {
            members.iter().map(|(name, kind)| serde_json::json!({ "name": name, "type": kind })).collect()
        };
        let members = if self.data().is_some() { &INITIATE_TYPE[..] } else { INITIATE_TYPE.split_at(4).0 };
        serde_json::json!({
            "types": { "EIP712Domain": types(&DOMAIN_TYPE), "Initiate": types(members) },
            "primaryType": "Initiate",
            "domain": {
                "name": DOMAIN_NAME,
                "version": self.version,
                "chainId": self.chain_id,
                "verifyingContract": self.verifying_contract.to_string(),
            },
            "message": self.members(),
        })
    }

    /// Returns the members of `message` in [`Message::to_json`].
    #[must_use]
    pub fn members(&self) -> serde_json::Map<String, serde_json::Value> {
        let Initiate { redeemer, timelock, amount, secret_hash, .. } = &self.terms;
        let mut message = serde_json::Map::new();
        for (name, value) in [
            ("redeemer", redeemer.to_string()),
            ("timelock", timelock.to_string()),
            ("amount", amount.to_string()),
            ("secretHash", secret_hash.to_string()),
        ] {
            message.insert(name.to_owned(), value.into());
        }
        if let Some(data) = self.data() {
            message.insert("destinationData".to_owned(), data.to_string().into());
        }
        message
    }

    /// Returns the destination data that the message hashes.
    fn data(&self) -> Option<&Bytes> {
        self.terms.destination_data.as_ref().filter(|_| self.hashed_data)
    }

    /// Returns the domain as alloy's own type.
    #[must_use]
    pub fn domain(&self) -> Eip712Domain {
        let (version, chain_id, verifying_contract) = (self.version.clone(), self.chain_id, self.verifying_contract);
        eip712_domain! { name: DOMAIN_NAME, version: version, chain_id: chain_id, verifying_contract: verifying_contract, }
    }

    /// Returns the message as the struct that is hashed.
    #[must_use]
    pub fn to_struct(&self) -> Struct {
        let Initiate { redeemer, timelock, amount, secret_hash, .. } = self.terms;
        match self.data() {
            Some(data) => {
                Struct::WithData(with_data::Initiate { redeemer, timelock, amount, secretHash: secret_hash, destinationData: data.clone() })
            }
            None => Struct::Plain(plain::Initiate { redeemer, timelock, amount, secretHash: secret_hash }),
        }
    }

    /// Reads typed data, and requires that it has the terms of `call`, and this chain and contract.
    ///
    /// # Errors
    ///
    /// [`Code::TypedDataPrimaryType`], [`Code::TypedDataTypes`], [`Code::TypedDataDomain`], [`Code::ChainMismatch`],
    /// [`Code::UnknownContract`] or [`Code::PayloadsDisagree`] if it differs; [`Code::UnexpectedField`], [`Code::MissingField`],
    /// [`Code::TextNotPlain`] or the code of a malformed number, address or hex string.
    pub fn read(
        order: &OrderContext<'_>,
        cursor: Cursor<'_, '_>,
        chain_id: u64,
        htlc: Address,
        call: &Initiate,
        rules: MessageRules,
    ) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let primary = members.need("primaryType")?;
        if primary.text()? != "Initiate" {
            return Err(primary.refuse(Code::TypedDataPrimaryType).with_expected("Initiate"));
        }
        members.only(&["domain", "message", "primaryType", "types"])?;
        let version = read_domain(order, members.need("domain")?, chain_id, htlc, rules)?;
        let carries_data = check_types(members.need("types")?)?;
        let terms = read_message(order, members.need("message")?, carries_data, rules)?;
        check_agrees(&terms, call, carries_data, members.need("message")?.at(), rules)?;
        let separator = order.source.domain_separator(&version, || domain_separator(&version, chain_id, htlc).0);
        let hashed_data = carries_data && !rules.drops_destination_data;
        let contract_text = order.source.htlc_text().cloned().unwrap_or_default();
        Ok(Self { version, chain_id, verifying_contract: htlc, terms, contract_text, domain_separator: separator.into(), hashed_data })
    }
}

/// Computes the hash of the domain. Two of its hashes are constants, which a general encoder would compute each time.
fn domain_separator(version: &str, chain_id: u64, contract: Address) -> B256 {
    hash_words([DOMAIN_TYPE_HASH, DOMAIN_NAME_HASH, keccak256(version), U256::from(chain_id).into(), contract.into_word()])
}

/// Computes Keccak-256 of five words in a row.
fn hash_words(words: [B256; 5]) -> B256 {
    let mut bytes = [0; 160];
    for (to, from) in bytes.chunks_exact_mut(32).zip(words) {
        to.copy_from_slice(from.as_slice());
    }
    keccak256(bytes)
}

/// Returns the bytes that the digest is computed from: `1901`, domain separator, struct hash.
#[must_use]
pub fn preimage(domain_separator: B256, struct_hash: B256) -> [u8; 66] {
    let mut bytes = [0; 66];
    let parts = [0x19, 0x01].into_iter().chain(domain_separator).chain(struct_hash);
    for (to, from) in bytes.iter_mut().zip(parts) {
        *to = from;
    }
    bytes
}

/// Requires that the domain is that of the pinned contract, and returns its version.
fn read_domain(
    order: &OrderContext<'_>,
    cursor: Cursor<'_, '_>,
    chain_id: u64,
    htlc: Address,
    rules: MessageRules,
) -> Result<String, Refusal> {
    let members = cursor.object()?;
    members.only(&["name", "version", "chainId", "verifyingContract"]).map_err(|refusal| at_code(refusal, Code::TypedDataDomain))?;
    let name = members.need("name")?;
    if name.text()? != DOMAIN_NAME {
        return Err(name.refuse(Code::TypedDataDomain).with_expected(DOMAIN_NAME));
    }
    let version_node = members.need("version")?;
    let version = version_node.text()?;
    if !(1..=32).contains(&version.len()) || !version.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Err(version_node.refuse(Code::TextNotPlain).with_expected("1 to 32 printable ASCII characters"));
    }
    let chain = members.need("chainId")?;
    let found = chain.any_number()?;
    if found != U256::from(chain_id) {
        return Err(chain.refuse(Code::ChainMismatch).with_expected(chain_id));
    }
    let contract = members.need("verifyingContract")?;
    if (rules.codec.parse)(order, contract)? != htlc {
        return Err(contract.refuse(Code::UnknownContract).with_expected((rules.codec.format)(htlc)));
    }
    Ok(version.to_owned())
}

/// Replaces the code of a refusal and keeps its location.
fn at_code(refusal: Refusal, code: Code) -> Refusal {
    refusal.with_code(code).with_reason("a member that the contract's domain does not have")
}

const DOMAIN_TYPE: [(&str, &str); 4] =
    [("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address")];
const INITIATE_TYPE: [(&str, &str); 5] =
    [("redeemer", "address"), ("timelock", "uint256"), ("amount", "uint256"), ("secretHash", "bytes32"), ("destinationData", "bytes")];

/// Requires that the declared types are exactly those that the contract hashes, and returns whether destination data is among them.
fn check_types(cursor: Cursor<'_, '_>) -> Result<bool, Refusal> {
    let members = cursor.object()?;
    members
        .only(&["EIP712Domain", "Initiate"])
        .map_err(|refusal| refusal.with_code(Code::TypedDataTypes).with_reason("the typed data declares a type that is not used"))?;
    if let Some(domain) = members.get("EIP712Domain") {
        check_declared_type(domain, &DOMAIN_TYPE)?;
    }
    let initiate = members.need("Initiate")?;
    let count = initiate.array()?.len();
    let carries_data = count == INITIATE_TYPE.len();
    check_declared_type(initiate, INITIATE_TYPE.get(..count).filter(|_| count >= 4).unwrap_or(&INITIATE_TYPE))?;
    Ok(carries_data)
}

fn read_message(order: &OrderContext<'_>, cursor: Cursor<'_, '_>, carries_data: bool, rules: MessageRules) -> Result<Initiate, Refusal> {
    let members = cursor.object()?;
    let keys: Vec<_> = INITIATE_TYPE.iter().map(|(name, _)| *name).collect();
    members.only(if carries_data { &keys } else { keys.get(..4).unwrap_or_default() })?;
    let destination_data = |members: &Members<'_, '_>| members.need("destinationData")?.hex_bytes(MAX_DESTINATION_DATA).map(Bytes::from);
    Ok(Initiate {
        initiator: None,
        redeemer: (rules.codec.parse)(order, members.need("redeemer")?)?,
        timelock: members.need("timelock")?.any_number()?,
        amount: members.need("amount")?.any_number()?,
        secret_hash: members.need("secretHash")?.hex_array::<32>()?.into(),
        destination_data: if carries_data { Some(destination_data(&members)?) } else { None },
    })
}

/// Requires that call and message have the same terms. Empty destination data is the same as none. If a family leaves the data out of
/// the signed message, a message without it is accepted too.
fn check_agrees(message: &Initiate, call: &Initiate, carries_data: bool, at: &At<'_>, rules: MessageRules) -> Result<(), Refusal> {
    let differs = |member: &str, wanted: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
        let refusal = at.key(member).refuse(Code::PayloadsDisagree);
        Err(refusal.with_expected(format!("{wanted}, as in the call")).with_actual(got.to_string()))
    };
    if message.redeemer != call.redeemer {
        return differs("redeemer", &(rules.codec.format)(call.redeemer), &(rules.codec.format)(message.redeemer));
    }
    if message.timelock != call.timelock {
        return differs("timelock", &call.timelock, &message.timelock);
    }
    if message.amount != call.amount {
        return differs("amount", &call.amount, &message.amount);
    }
    if message.secret_hash != call.secret_hash {
        return differs("secretHash", &call.secret_hash, &message.secret_hash);
    }
    let of_call = call.destination_data.clone().unwrap_or_default();
    let of_message = message.destination_data.clone().unwrap_or_default();
    let same = match (carries_data, rules.drops_destination_data) {
        (true, _) => of_message == of_call && call.destination_data.is_some(),
        (false, true) => true,
        (false, false) => of_call.is_empty(),
    };
    if same { Ok(()) } else { differs("destinationData", &of_call, &of_message) }
}

#[cfg(test)]
impl Message {
    /// Creates a message in the domain of some contract.
    pub(crate) fn for_tests(terms: Initiate) -> Self {
        let verifying_contract = Address::repeat_byte(1);
        let separator = domain_separator("3", 1, verifying_contract);
        let hashed_data = terms.destination_data.is_some();
        let contract_text = verifying_contract.to_string().into();
        Self { version: "3".to_owned(), chain_id: 1, verifying_contract, terms, contract_text, domain_separator: separator, hashed_data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(destination_data: Option<Bytes>) -> Message {
        Message::for_tests(Initiate {
            initiator: None,
            redeemer: Address::repeat_byte(2),
            timelock: U256::from(7200),
            amount: U256::MAX,
            secret_hash: B256::repeat_byte(3),
            destination_data,
        })
    }

    #[test]
    fn constant_hashes_are_those_of_a_general_encoder() {
        let message = message(None);
        let Struct::Plain(general) = message.to_struct() else { panic!("no destination data") };
        let (domain, hashes) = (message.domain(), message.hashes());
        assert_eq!(DOMAIN_NAME_HASH, keccak256(DOMAIN_NAME));
        assert_eq!(hashes.domain_separator, domain.separator());
        assert_eq!(hashes.struct_hash, general.eip712_hash_struct());
        assert_eq!(hashes.digest, general.eip712_signing_hash(&domain));
        assert_eq!(INITIATE_TYPE_HASH, general.eip712_type_hash());
        assert_eq!(DOMAIN_TYPE_HASH, domain.type_hash());
    }

    #[test]
    fn json_declares_what_is_hashed() {
        let encode_type = |json: &serde_json::Value, name: &str| {
            let members = json["types"][name].as_array().unwrap().iter();
            let members: Vec<_> =
                members.map(|member| format!("{} {}", member["type"].as_str().unwrap(), member["name"].as_str().unwrap())).collect();
            format!("{name}({})", members.join(","))
        };
        let plain = message(None);
        let json = plain.to_json();
        assert_eq!(keccak256(encode_type(&json, "EIP712Domain")), DOMAIN_TYPE_HASH);
        assert_eq!(keccak256(encode_type(&json, "Initiate")), INITIATE_TYPE_HASH);
        assert_eq!(json["message"].get("destinationData"), None);

        let json = message(Some(Bytes::from_static(&[0xab, 0xcd]))).to_json();
        let Struct::WithData(general) = message(Some(Bytes::new())).to_struct() else { panic!("destination data") };
        assert_eq!(keccak256(encode_type(&json, "Initiate")), general.eip712_type_hash());
        assert_eq!(json["message"]["destinationData"], "0xabcd");
        // No reader loses digits: numbers are text.
        assert_eq!(json["message"]["amount"], U256::MAX.to_string());
    }

    #[test]
    fn a_preimage_is_1901_and_both_hashes() {
        let (domain, hash) = (B256::repeat_byte(4), B256::repeat_byte(5));
        assert_eq!(preimage(domain, hash)[..], [&[0x19, 0x01][..], domain.as_slice(), hash.as_slice()].concat());
    }
}
