//! The gasless message: `Initiate` of SNIP-12 revision 1, in the domain of the swap contract.
//!
//! General encoders accept domains and types that the contract does not hash. They also disagree with each other where SNIP-12 is
//! ambiguous: a `version` of "1" is the number 1 to one of them, and the character 1 to another. Here the whole structure is read
//! strictly, and the hash is computed from the terms of the call and the contract's own type hashes.
//!
//! Specification: `docs/spec/starknet.md#typed-data`; <https://github.com/starknet-io/SNIPs/blob/main/SNIPS/snip-12.md>

use std::collections::BTreeMap;
use std::fmt;

use countersign_core::json::{At, Cursor};
use countersign_core::{Asset, Code, Refusal, StarknetGeneration, check_declared_type};
use serde_json::{Value as Json, json};
use starknet_types_core::felt::Felt;

use crate::curve::poseidon;
use crate::htlc::Initiate;
use crate::{felt, generation};

/// Hash of `"StarknetDomain"("name":"shortstring","version":"shortstring","chainId":"shortstring","revision":"shortstring")`
const DOMAIN_TYPE_HASH: Felt = Felt::from_hex_unchecked("0x1ff2f602e42168014d405a94f75e8a93d640751d71d16311266e140d8b0a210");
/// Hash of `"Initiate"("redeemer":"ContractAddress","amount":"u256","timelock":"u128","secretHash":"u128*")` followed by `u256`.
const INITIATE_TYPE_HASH: Felt = Felt::from_hex_unchecked("0x1eb8412028a1738d6d332ca18c3cf1049c4fefe5d969594792a33f746bee4d7");
/// The same with `"verifyingContract":"ContractAddress"` as the fifth member.
const INITIATE_FOR_CONTRACT_TYPE_HASH: Felt = Felt::from_hex_unchecked("0x1a3e1bc7621475162167ff5bf6709b3f0287414d84d408fcc16f5c8fa452328");
/// Hash of `"u256"("low":"u128","high":"u128")`
const U256_TYPE_HASH: Felt = Felt::from_hex_unchecked("0x3b143be38b811560b45593fb2a071ec4ddd0a020e10782be62ffe6f39e0e82c");
/// Hash of `"instantRefund"("orderID":"felt")`
const INSTANT_REFUND_TYPE_HASH: Felt = Felt::from_hex_unchecked("0x30a54f3d1548368bc45cab0ba298f4c88e1847fd5ae128d03477ef46d0426a3");
/// The same with `"verifyingContract":"ContractAddress"` as the second member.
const INSTANT_REFUND_FOR_CONTRACT_TYPE_HASH: Felt =
    Felt::from_hex_unchecked("0x31f36f5842b3037a0895734cc18bfe518c9159047a6415cf39239dccba9b8ea");
/// `StarkNet Message`, the prefix of every off-chain message.
const PREFIX: Felt = Felt::from_hex_unchecked("0x537461726b4e6574204d657373616765");

/// The SNIP-12 domain of a contract, revision 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Domain {
    /// Name, a short string.
    pub name: Felt,
    /// Version, a short string.
    pub version: Felt,
    /// Chain id, a short string.
    pub chain_id: Felt,
}

impl Domain {
    /// Returns the domain of the contracts of a generation: name `HTLC`, and a version of one character.
    #[must_use]
    pub fn deployed(generation: &StarknetGeneration, chain_id: Felt) -> Self {
        Self { name: Felt::from_hex_unchecked("0x48544c43"), version: generation::domain_version(generation), chain_id }
    }

    /// Returns the domain that the registry pins for a contract. Its members are written as in typed data. Members that are not
    /// pinned are those of the contract's generation.
    ///
    /// # Errors
    ///
    /// The code of a member that is not a short string, or [`Code::TypedDataRevision`] for another revision than 1.
    fn from_pins(pins: &BTreeMap<String, String>, generation: &StarknetGeneration, chain_id: Felt) -> Result<Self, Code> {
        let mut domain = Self::deployed(generation, chain_id);
        for (member, felt) in [("name", &mut domain.name), ("version", &mut domain.version), ("chainId", &mut domain.chain_id)] {
            if let Some(text) = pins.get(member) {
                *felt = felt::parse_short_string(text)?;
            }
        }
        // Other revisions hash differently.
        match pins.get("revision").map(|text| felt::parse_short_string(text)).transpose()? {
            Some(revision) if revision != Felt::ONE => Err(Code::TypedDataRevision),
            _ => Ok(domain),
        }
    }

    fn to_json(self) -> Json {
        let name = felt::to_short_string(&self.name).filter(|name| is_only_text(name));
        json!({
            "name": name.unwrap_or_else(|| hex(self.name)),
            "version": hex(self.version),
            "chainId": hex(self.chain_id),
            "revision": "1",
        })
    }

    /// Returns the domain of an asset's contract: the pinned one, or that of its generation.
    ///
    /// # Errors
    ///
    /// [`Code::RegistryMalformed`] if the pinned domain is not a Starknet domain.
    pub(crate) fn of_asset(asset: &Asset, chain_id: Felt, refuse: impl FnOnce(Code) -> Refusal) -> Result<Self, Refusal> {
        let generation = StarknetGeneration::expected(asset.generation);
        let Some(pins) = asset.record.htlc.as_ref().and_then(|htlc| htlc.domain.as_ref()) else {
            return Ok(Self::deployed(generation, chain_id));
        };
        Self::from_pins(pins, generation, chain_id).map_err(|code| {
            let reason = format!("the pinned domain of the HTLC is not a Starknet domain: {}", code.meaning());
            refuse(Code::RegistryMalformed).with_reason(reason)
        })
    }

    /// Returns the Poseidon hash of the type hash, name, version, chain id and revision 1.
    #[must_use]
    pub fn hash(&self) -> Felt {
        poseidon(&[DOMAIN_TYPE_HASH, self.name, self.version, self.chain_id, Felt::ONE])
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "name {}, version {}, chain {}", Text(self.name), Text(self.version), Text(self.chain_id))
    }
}

/// Writes a short string as text, if it is printable, and as a felt.
struct Text(Felt);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match felt::to_short_string(&self.0) {
            Some(text) => write!(f, "{text:?} ({:#x})", self.0),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// The gasless message of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The contract's domain.
    pub domain: Domain,
    /// The terms. They have no initiator, because the signer is the initiator.
    pub terms: Initiate,
    /// The address of the contract; `None` if the message of this generation does not contain it.
    pub contract: Option<Felt>,
    domain_hash: Felt,
}

/// The hashes of a message for the account that signs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hashes {
    /// The account that signs.
    pub signer: Felt,
    /// Hash of the domain.
    pub domain_hash: Felt,
    /// Hash of the message's members.
    pub struct_hash: Felt,
    /// The message hash, which is signed.
    pub message_hash: Felt,
}

impl Hashes {
    fn new(signer: Felt, domain_hash: Felt, struct_hash: Felt) -> Self {
        let mut hashes = Self { signer, domain_hash, struct_hash, message_hash: Felt::ZERO };
        hashes.message_hash = poseidon(&hashes.preimage());
        hashes
    }

    /// Returns the felts whose Poseidon hash is the message hash.
    #[must_use]
    pub const fn preimage(&self) -> [Felt; 4] {
        [PREFIX, self.domain_hash, self.signer, self.struct_hash]
    }
}

impl Message {
    /// Returns the hashes of the message for the account that signs it.
    #[must_use]
    pub fn hashes(&self, signer: Felt) -> Hashes {
        Hashes::new(signer, self.domain_hash, self.struct_hash())
    }

    /// Returns the message hash in another domain, which the contract does not accept.
    pub(crate) fn hash_in(&self, domain: Domain, signer: Felt) -> Felt {
        Hashes::new(signer, domain.hash(), self.struct_hash()).message_hash
    }

    /// Returns the message as wallets accept it (`account.signMessage`, `wallet_signTypedData`): `types`, `primaryType`,
    /// `domain` and `message`.
    ///
    /// Every value is written so that all wallets read the same felt. The name is text only if no wallet reads it as a number. The
    /// version and the chain id are hex.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let Initiate { redeemer, timelock, amount, .. } = &self.terms;
        let [low, high] = felt::split(*amount).map(|half| half.to_string());
        let words: Vec<_> = self.terms.hash_words().map(hex).collect();
        let mut initiate = types(&INITIATE_TYPE);
        let mut message = json!({
            "redeemer": hex(*redeemer),
            "amount": { "low": low, "high": high },
            "timelock": timelock.to_string(),
            "secretHash": words,
        });
        if let (Some(contract), Some(members)) = (self.contract, message.as_object_mut()) {
            initiate.extend(types(&[CONTRACT_MEMBER]));
            members.insert(CONTRACT_MEMBER.0.to_owned(), hex(contract).into());
        }
        json!({
            "types": { "StarknetDomain": types(&DOMAIN_TYPE), "Initiate": initiate },
            "primaryType": "Initiate",
            "domain": self.domain.to_json(),
            "message": message,
        })
    }

    /// Returns the Poseidon hash of the type hash, the redeemer, the hash of the amount, the timelock, the hash of the words of the
    /// secret hash, and the contract if the message contains it.
    #[must_use]
    pub fn struct_hash(&self) -> Felt {
        let terms = &self.terms;
        let [low, high] = felt::halves(terms.amount);
        let amount = poseidon(&[U256_TYPE_HASH, low, high]);
        let words: Vec<Felt> = terms.hash_words().collect();
        let secret_hash = poseidon(&words);
        let timelock = Felt::from(terms.timelock);
        match self.contract {
            None => poseidon(&[INITIATE_TYPE_HASH, terms.redeemer, amount, timelock, secret_hash]),
            Some(contract) => poseidon(&[INITIATE_FOR_CONTRACT_TYPE_HASH, terms.redeemer, amount, timelock, secret_hash, contract]),
        }
    }

    /// Reads typed data, and requires that its terms, chain and contract are those of `call`.
    ///
    /// # Errors
    ///
    /// [`Code::TypedDataPrimaryType`], [`Code::TypedDataRevision`], [`Code::TypedDataTypes`], [`Code::TypedDataDomain`],
    /// [`Code::GenerationMismatch`], [`Code::ChainMismatch`], [`Code::UnknownContract`], [`Code::PayloadsDisagree`], or the code of
    /// a malformed value.
    pub(crate) fn read(asset: &Asset, cursor: Cursor<'_, '_>, form: &MessageForm, htlc: Felt, call: &Initiate) -> Result<Self, Refusal> {
        let domain = form.domain;
        let members = cursor.object()?;
        let primary = members.need("primaryType")?;
        if primary.text()? != "Initiate" {
            return Err(primary.refuse(Code::TypedDataPrimaryType).with_expected("Initiate"));
        }
        members.only(&["domain", "message", "primaryType", "types"])?;
        check_domain(members.need("domain")?, form, call.generation)?;
        let names_contract = check_types(members.need("types")?, form, call.generation)?;
        check_message(members.need("message")?, call, names_contract.then_some(htlc))?;
        // A pinned asset has one domain.
        let domain_hash = Felt::from_bytes_be(&asset.domain_separator("", || domain.hash().to_bytes_be()));
        Ok(Self { domain, terms: Initiate { initiator: None, ..*call }, contract: names_contract.then_some(htlc), domain_hash })
    }
}

/// The message that a redeemer signs to allow a refund before the timelock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstantRefundMessage {
    /// The contract's domain.
    pub domain: Domain,
    /// The id of the swap.
    pub swap_id: Felt,
    /// The address of the contract; `None` if the message of this generation does not contain it.
    pub contract: Option<Felt>,
}

impl InstantRefundMessage {
    /// Returns the hashes of the message for the redeemer's account.
    #[must_use]
    pub fn hashes(&self, redeemer: Felt) -> Hashes {
        let members = match self.contract {
            None => poseidon(&[INSTANT_REFUND_TYPE_HASH, self.swap_id]),
            Some(contract) => poseidon(&[INSTANT_REFUND_FOR_CONTRACT_TYPE_HASH, self.swap_id, contract]),
        };
        Hashes::new(redeemer, self.domain.hash(), members)
    }

    /// Returns the message as wallets accept it (`account.signMessage`, `wallet_signTypedData`).
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut kinds = types(&[("orderID", "felt")]);
        let mut message = json!({ "orderID": hex(self.swap_id) });
        if let (Some(contract), Some(members)) = (self.contract, message.as_object_mut()) {
            kinds.extend(types(&[CONTRACT_MEMBER]));
            members.insert(CONTRACT_MEMBER.0.to_owned(), hex(contract).into());
        }
        json!({
            "types": { "StarknetDomain": types(&DOMAIN_TYPE), "instantRefund": kinds },
            "primaryType": "instantRefund",
            "domain": self.domain.to_json(),
            "message": message,
        })
    }
}

/// Returns the members of a type as typed data declares them.
fn types(members: &[(&str, &str)]) -> Vec<Json> {
    members.iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect()
}

fn hex(felt: Felt) -> String {
    felt::to_hex(&felt)
}

/// The expected form of a contract's message.
pub(crate) struct MessageForm {
    /// The domain: the pinned one, or that of the contract's generation.
    pub(crate) domain: Domain,
    pub(crate) is_domain_pinned: bool,
    /// Whether the registry pins the generation. If it pins only a domain, the message may contain the address of the contract or not.
    pub(crate) is_generation_pinned: bool,
}

/// Requires that the domain is the contract's. The revision is checked first, because it decides what the other members mean.
fn check_domain(cursor: Cursor<'_, '_>, form: &MessageForm, generation: &StarknetGeneration) -> Result<(), Refusal> {
    let domain = form.domain;
    let members = cursor.object()?;
    let revision = members.get("revision").ok_or_else(|| {
        let missing = cursor.at().key("revision").refuse(Code::TypedDataRevision);
        missing.with_reason("typed data without a revision has revision 0, which the contract does not hash").with_expected(1_u64)
    })?;
    if felt::read_short_string(revision)? != Felt::ONE {
        return Err(revision.refuse(Code::TypedDataRevision).with_expected(1_u64));
    }
    members
        .only(&["name", "version", "chainId", "revision"])
        .map_err(|refusal| refusal.with_code(Code::TypedDataDomain).with_reason("not a member of the contract's domain"))?;
    let name = members.need("name")?;
    if felt::read_short_string(name)? != domain.name {
        return Err(name.refuse(Code::TypedDataDomain).with_expected(Text(domain.name).to_string()));
    }
    let version = members.need("version")?;
    let found = felt::read_short_string(version)?;
    if found != domain.version {
        let has_version = |other| !form.is_domain_pinned && generation::domain_version(other) == found;
        if let Some(refusal) = generation::mismatch(generation, has_version, |code| version.at().refuse(code)) {
            return Err(refusal);
        }
        let refusal =
            version.refuse(Code::TypedDataDomain).with_expected(Text(domain.version).to_string()).with_actual(Text(found).to_string());
        return Err(refusal.with_reason("the contract has another domain version and would refuse the signature"));
    }
    let chain = members.need("chainId")?;
    if felt::read_short_string(chain)? != domain.chain_id {
        return Err(chain.refuse(Code::ChainMismatch).with_expected(Text(domain.chain_id).to_string()));
    }
    Ok(())
}

const DOMAIN_TYPE: [(&str, &str); 4] =
    [("name", "shortstring"), ("version", "shortstring"), ("chainId", "shortstring"), ("revision", "shortstring")];
const INITIATE_TYPE: [(&str, &str); 4] =
    [("redeemer", "ContractAddress"), ("amount", "u256"), ("timelock", "u128"), ("secretHash", "u128*")];
const CONTRACT_MEMBER: (&str, &str) = ("verifyingContract", "ContractAddress");

/// Requires that the declared types are exactly those that the contract hashes. Returns whether the message contains the address of
/// the contract.
fn check_types(cursor: Cursor<'_, '_>, form: &MessageForm, generation: &StarknetGeneration) -> Result<bool, Refusal> {
    let members = cursor.object()?;
    if let Some(older) = members.get("StarkNetDomain") {
        return Err(older.at().refuse(Code::TypedDataRevision).with_reason("StarkNetDomain is the domain type of revision 0"));
    }
    members
        .only(&["StarknetDomain", "Initiate"])
        .map_err(|refusal| refusal.with_code(Code::TypedDataTypes).with_reason("the type is never used, or is built into SNIP-12"))?;
    check_declared_type(members.need("StarknetDomain")?, &DOMAIN_TYPE)?;
    let initiate = members.need("Initiate")?;
    let check = |names_contract| {
        let [redeemer, amount, timelock, secret_hash] = INITIATE_TYPE;
        let members = [redeemer, amount, timelock, secret_hash, CONTRACT_MEMBER];
        check_declared_type(initiate, if names_contract { &members } else { &INITIATE_TYPE })
    };
    let mut expected = generation.names_contract;
    if form.is_domain_pinned && !form.is_generation_pinned {
        expected = initiate.array()?.len() > INITIATE_TYPE.len();
    }
    let Err(refusal) = check(expected) else { return Ok(expected) };
    let is_other_form = check(!expected).is_ok();
    let has_form = |other: &StarknetGeneration| is_other_form && other.names_contract != expected;
    Err(generation::mismatch(generation, has_form, |code| initiate.at().refuse(code)).unwrap_or(refusal))
}

/// Returns whether every reader takes the text of a short string as text. JavaScript also reads signs, spaces, `0b1` and `0o7` as
/// numbers.
fn is_only_text(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Requires that the message and the call have the same terms, felt by felt.
fn check_message(cursor: Cursor<'_, '_>, call: &Initiate, contract: Option<Felt>) -> Result<(), Refusal> {
    let members = cursor.object()?;
    let keys = ["redeemer", "amount", "timelock", "secretHash", CONTRACT_MEMBER.0];
    members.only(if contract.is_some() { &keys } else { keys.get(..4).unwrap_or_default() })?;
    check_equal(members.need("redeemer")?, call.redeemer)?;
    let amount = members.need("amount")?;
    let halves = amount.object()?;
    halves.only(&["low", "high"])?;
    for (key, expected) in ["low", "high"].into_iter().zip(felt::halves(call.amount)) {
        check_equal(halves.need(key)?, expected)?;
    }
    check_equal(members.need("timelock")?, Felt::from(call.timelock))?;
    check_words(members.need("secretHash")?, call)?;
    match contract {
        Some(contract) => {
            let named = members.need(CONTRACT_MEMBER.0)?;
            let found = felt::read_any(named)?;
            if found == contract { Ok(()) } else { Err(named.refuse(Code::UnknownContract).with_expected(format!("{contract:#x}"))) }
        }
        None => Ok(()),
    }
}

fn check_words(cursor: Cursor<'_, '_>, call: &Initiate) -> Result<(), Refusal> {
    let words = cursor.array()?;
    let count = call.generation.hash_words;
    if words.len() != count {
        return Err(differs(cursor.at(), &format!("{count} words")).with_actual(format!("{} words", words.len())));
    }
    words.zip(call.hash_words()).try_for_each(|(word, expected)| check_equal(word, expected))
}

fn check_equal(cursor: Cursor<'_, '_>, expected: Felt) -> Result<(), Refusal> {
    let found = felt::read_any(cursor)?;
    if found == expected { Ok(()) } else { Err(differs(cursor.at(), &format!("{expected:#x}")).with_actual(format!("{found:#x}"))) }
}

fn differs(at: &At<'_>, expected: &str) -> Refusal {
    at.refuse(Code::PayloadsDisagree).with_expected(format!("{expected}, as in the call"))
}

#[cfg(test)]
mod tests {
    use starknet_core::utils::{cairo_short_string_to_felt, starknet_keccak};

    use super::*;

    const DEFAULT: &StarknetGeneration = StarknetGeneration::JULY_2025;

    #[test]
    fn type_hashes_are_the_hashes_of_the_types() {
        let u256 = r#""u256"("low":"u128","high":"u128")"#;
        let domain = r#""StarknetDomain"("name":"shortstring","version":"shortstring","chainId":"shortstring","revision":"shortstring")"#;
        let members = r#""redeemer":"ContractAddress","amount":"u256","timelock":"u128","secretHash":"u128*""#;
        let initiate = format!(r#""Initiate"({members}){u256}"#);
        let for_contract = format!(r#""Initiate"({members},"verifyingContract":"ContractAddress"){u256}"#);
        for (text, hash) in [
            (u256, U256_TYPE_HASH),
            (domain, DOMAIN_TYPE_HASH),
            (&initiate, INITIATE_TYPE_HASH),
            (&for_contract, INITIATE_FOR_CONTRACT_TYPE_HASH),
            (r#""instantRefund"("orderID":"felt")"#, INSTANT_REFUND_TYPE_HASH),
            (r#""instantRefund"("orderID":"felt","verifyingContract":"ContractAddress")"#, INSTANT_REFUND_FOR_CONTRACT_TYPE_HASH),
        ] {
            assert_eq!(starknet_keccak(text.as_bytes()), hash, "{text}");
        }
        assert_eq!(cairo_short_string_to_felt("StarkNet Message").unwrap(), PREFIX);
        assert_eq!(cairo_short_string_to_felt("HTLC").unwrap(), Domain::deployed(DEFAULT, Felt::ZERO).name);
    }

    #[test]
    fn the_domain_of_the_first_capture_is_the_contracts() {
        let domain = Domain::deployed(DEFAULT, cairo_short_string_to_felt("SN_SEPOLIA").unwrap());
        assert_eq!(format!("{:#x}", domain.hash()), "0x6c210b1fea5c75f34a94a2ff8219155de14f537e021b255b556c46f36c57e3");
        assert_eq!(domain.to_string(), r#"name "HTLC" (0x48544c43), version "1" (0x31), chain "SN_SEPOLIA" (0x534e5f5345504f4c4941)"#);
    }

    /// JavaScript reads `0b1`, a space and `1 ` as numbers; a general encoder in Rust reads them as text.
    #[test]
    fn wallets_read_the_domain_that_is_hashed_whatever_its_name() {
        let call = Initiate {
            generation: DEFAULT,
            initiator: None,
            redeemer: Felt::THREE,
            timelock: 7,
            amount: countersign_core::U256::MAX,
            secret_hash: countersign_core::SecretHash([0xab; 32]),
        };
        for name in ["HTLC", "HTLC_2", "0b1", " ", "1 ", "-1", "1", "0x1", "x".repeat(31).as_str()] {
            let felt = felt::from_short_string(name).unwrap();
            let domain = Domain { name: felt, ..Domain::deployed(DEFAULT, cairo_short_string_to_felt("SN_MAIN").unwrap()) };
            let message = Message { domain, terms: call, contract: None, domain_hash: domain.hash() };
            let json = message.to_json();
            let general: starknet_core::types::typed_data::TypedData = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(general.message_hash(Felt::TWO).unwrap(), message.hashes(Felt::TWO).message_hash, "{name:?}");
            let shown = if name.starts_with(['H', 'x']) { name.to_owned() } else { format!("{felt:#x}") };
            assert_eq!(json["domain"]["name"], shown, "{name:?}");
        }
    }
}
