//! The gasless message: SNIP-12 revision 1, `Initiate` in the domain of the swap contract (protocol.md section 6).
//!
//! General encoders take a domain or types that the contract does not hash, and disagree with each other where the
//! specification leaves room (`version` "1" is the number 1 to one of them and the character 1 to another). Here the whole
//! structure is read strictly, and the hash comes from the terms of the call by the contract's own type hashes.

use std::collections::BTreeMap;
use std::fmt;

use countersign_core::json::{At, Node};
use countersign_core::{Asset, Code, Refusal};
use starknet_crypto::{Felt, poseidon_hash_many};

use crate::felt;
use crate::htlc::{self, Initiate};

/// Hash of `"StarknetDomain"("name":"shortstring","version":"shortstring","chainId":"shortstring","revision":"shortstring")`
const DOMAIN_TYPE_HASH: Felt = Felt::from_hex_unchecked("0x1ff2f602e42168014d405a94f75e8a93d640751d71d16311266e140d8b0a210");
/// Hash of `"Initiate"("redeemer":"ContractAddress","amount":"u256","timelock":"u128","secretHash":"u128*")` and of `u256`,
/// as protocol.md section 6 gives it.
const INITIATE_TYPE_HASH: Felt = Felt::from_hex_unchecked("0x1eb8412028a1738d6d332ca18c3cf1049c4fefe5d969594792a33f746bee4d7");
/// The same with `"verifyingContract":"ContractAddress"` as fifth member.
const INITIATE_FOR_CONTRACT_TYPE_HASH: Felt = Felt::from_hex_unchecked("0x1a3e1bc7621475162167ff5bf6709b3f0287414d84d408fcc16f5c8fa452328");
/// Hash of `"u256"("low":"u128","high":"u128")`
const U256_TYPE_HASH: Felt = Felt::from_hex_unchecked("0x3b143be38b811560b45593fb2a071ec4ddd0a020e10782be62ffe6f39e0e82c");
/// `StarkNet Message`, the prefix of everything that is signed off chain.
const PREFIX: Felt = Felt::from_hex_unchecked("0x537461726b4e6574204d657373616765");

/// The domain of a contract: what its constants are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Domain {
    /// Short string.
    pub name: Felt,
    /// Short string.
    pub version: Felt,
    /// Short string.
    pub chain_id: Felt,
}

impl Domain {
    /// The domain of the deployed contracts: name `HTLC`, version `1` as a short string.
    #[must_use]
    pub const fn deployed(chain_id: Felt) -> Self {
        Self { name: Felt::from_hex_unchecked("0x48544c43"), version: Felt::from_hex_unchecked("0x31"), chain_id }
    }

    /// The domain that the wallet has pinned for a contract, in the spellings of typed data; what it leaves out is as
    /// deployed.
    ///
    /// # Errors
    ///
    /// The code of a member that is no short string.
    pub(crate) fn pinned(pins: &BTreeMap<String, String>, chain_id: Felt) -> Result<Self, Code> {
        let mut domain = Self::deployed(chain_id);
        for (member, felt) in [("name", &mut domain.name), ("version", &mut domain.version), ("chainId", &mut domain.chain_id)] {
            if let Some(text) = pins.get(member) {
                *felt = felt::short_string_or_number(text)?;
            }
        }
        // Another revision hashes otherwise.
        match pins.get("revision").map(|text| felt::short_string_or_number(text)).transpose()? {
            Some(revision) if revision != Felt::ONE => Err(Code::TypedDataRevision),
            _ => Ok(domain),
        }
    }

    /// Poseidon of type hash, name, version, chain id and revision 1.
    #[must_use]
    pub fn hash(&self) -> Felt {
        poseidon_hash_many(&[DOMAIN_TYPE_HASH, self.name, self.version, self.chain_id, Felt::ONE])
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "name {}, version {}, chain {}", Text(self.name), Text(self.version), Text(self.chain_id))
    }
}

/// A short string as text where it is printable, and as a felt.
struct Text(Felt);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.to_bytes_be();
        let text = std::str::from_utf8(&bytes).unwrap_or_default().trim_start_matches('\0');
        if felt::of_short_string(text) == Some(self.0) { write!(f, "{text:?} ({:#x})", self.0) } else { write!(f, "{:#x}", self.0) }
    }
}

/// A message that was read strictly.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Message {
    /// The contract's domain.
    pub domain: Domain,
    /// The terms, without an initiator: that is whoever signs.
    pub terms: Initiate,
    /// The contract, where the message names it.
    pub contract: Option<Felt>,
    domain_hash: Felt,
}

/// A message with its hashes, ready to be signed by the owner.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnsignedMessage {
    /// The message.
    pub message: Message,
    /// The owner.
    pub signer: Felt,
    /// Hash of the domain.
    pub domain_hash: Felt,
    /// Hash of the message's members.
    pub struct_hash: Felt,
    /// What is signed.
    pub message_hash: Felt,
}

impl UnsignedMessage {
    pub(crate) fn new(message: Message, signer: Felt) -> Self {
        let (domain_hash, struct_hash) = (message.domain_hash, message.struct_hash());
        let message_hash = poseidon_hash_many(&[PREFIX, domain_hash, signer, struct_hash]);
        Self { message, signer, domain_hash, struct_hash, message_hash }
    }

    /// The felts that the message hash is the Poseidon hash of.
    #[must_use]
    pub const fn preimage(&self) -> [Felt; 4] {
        [PREFIX, self.domain_hash, self.signer, self.struct_hash]
    }
}

impl Message {
    /// Poseidon of type hash, redeemer, hash of the amount, timelock, hash of the words of the secret hash, and the
    /// contract where the message names it.
    #[must_use]
    pub fn struct_hash(&self) -> Felt {
        let terms = &self.terms;
        let [low, high] = felt::halves(terms.amount);
        let amount = poseidon_hash_many(&[U256_TYPE_HASH, low, high]);
        let words: Vec<Felt> = htlc::words(&terms.secret_hash.0).collect();
        let secret_hash = poseidon_hash_many(&words);
        let timelock = Felt::from(terms.timelock);
        match self.contract {
            None => poseidon_hash_many(&[INITIATE_TYPE_HASH, terms.redeemer, amount, timelock, secret_hash]),
            Some(contract) => {
                poseidon_hash_many(&[INITIATE_FOR_CONTRACT_TYPE_HASH, terms.redeemer, amount, timelock, secret_hash, contract])
            }
        }
    }

    /// Reads typed data and requires that it tells the story of `call`: same terms, same chain, same contract.
    ///
    /// A message that names its contract is only taken where the wallet has pinned the domain (`pinned`).
    ///
    /// # Errors
    ///
    /// [`Code::TypedDataPrimaryType`], [`Code::TypedDataRevision`], [`Code::TypedDataTypes`], [`Code::TypedDataDomain`],
    /// [`Code::ChainMismatch`], [`Code::UnknownContract`], [`Code::PayloadsDisagree`], or what is malformed.
    pub(crate) fn read(
        asset: &Asset,
        node: Node<'_, '_>,
        domain: Domain,
        pinned: bool,
        htlc: Felt,
        call: &Initiate,
    ) -> Result<Self, Refusal> {
        let members = node.object()?;
        let primary = members.need("primaryType")?;
        if primary.text()? != "Initiate" {
            return Err(primary.refuse(Code::TypedDataPrimaryType).with_expected("Initiate"));
        }
        members.only(&["domain", "message", "primaryType", "types"])?;
        check_domain(members.need("domain")?, domain)?;
        let names_contract = check_types(members.need("types")?, pinned)?;
        check_message(members.need("message")?, call, names_contract.then_some(htlc))?;
        // A pinned asset has one domain.
        let domain_hash = Felt::from_bytes_be(&asset.domain_hash("", || domain.hash().to_bytes_be()));
        Ok(Self { domain, terms: Initiate { initiator: None, ..*call }, contract: names_contract.then_some(htlc), domain_hash })
    }
}

/// The domain hashes to the contract's. The revision comes first: it decides what the other members mean.
fn check_domain(node: Node<'_, '_>, domain: Domain) -> Result<(), Refusal> {
    let members = node.object()?;
    let revision = members.get("revision").ok_or_else(|| {
        let missing = node.at().key("revision").refuse(Code::TypedDataRevision);
        missing.with_reason("typed data without a revision is of revision 0, which the contract does not hash").with_expected(1)
    })?;
    if felt::read_short_string(revision)? != Felt::ONE {
        return Err(revision.refuse(Code::TypedDataRevision).with_expected(1));
    }
    members.only(&["name", "version", "chainId", "revision"]).map_err(|refusal| {
        Refusal::new(Code::TypedDataDomain, refusal.location()).with_reason("a member that the contract's domain does not have")
    })?;
    let name = members.need("name")?;
    if felt::read_short_string(name)? != domain.name {
        return Err(name.refuse(Code::TypedDataDomain).with_expected(Text(domain.name)));
    }
    let version = members.need("version")?;
    let found = felt::read_short_string(version)?;
    if found != domain.version {
        let refusal = version.refuse(Code::TypedDataDomain).with_expected(Text(domain.version)).with_actual(Text(found));
        return Err(refusal.with_reason("the domain's version is not the contract's: it would refuse the signature"));
    }
    let chain = members.need("chainId")?;
    if felt::read_short_string(chain)? != domain.chain_id {
        return Err(chain.refuse(Code::ChainMismatch).with_expected(Text(domain.chain_id)));
    }
    Ok(())
}

const DOMAIN_TYPE: [(&str, &str); 4] =
    [("name", "shortstring"), ("version", "shortstring"), ("chainId", "shortstring"), ("revision", "shortstring")];
const INITIATE_TYPE: [(&str, &str); 4] =
    [("redeemer", "ContractAddress"), ("amount", "u256"), ("timelock", "u128"), ("secretHash", "u128*")];
const CONTRACT_MEMBER: (&str, &str) = ("verifyingContract", "ContractAddress");

/// The declared types are exactly those that the contract hashes; answers whether the message names the contract.
fn check_types(node: Node<'_, '_>, pinned: bool) -> Result<bool, Refusal> {
    let members = node.object()?;
    if let Some(older) = members.get("StarkNetDomain") {
        return Err(older.at().refuse(Code::TypedDataRevision).with_reason("StarkNetDomain is the domain type of revision 0"));
    }
    members
        .only(&["StarknetDomain", "Initiate"])
        .map_err(|refusal| Refusal::new(Code::TypedDataTypes, refusal.location()).with_reason("an unused type, or one that is built into SNIP-12"))?;
    check_type(members.need("StarknetDomain")?, &DOMAIN_TYPE)?;
    let initiate = members.need("Initiate")?;
    let names_contract = pinned && initiate.array()?.len() > INITIATE_TYPE.len();
    if names_contract {
        let [redeemer, amount, timelock, secret_hash] = INITIATE_TYPE;
        check_type(initiate, &[redeemer, amount, timelock, secret_hash, CONTRACT_MEMBER])?;
    } else {
        check_type(initiate, &INITIATE_TYPE)?;
    }
    Ok(names_contract)
}

fn check_type(node: Node<'_, '_>, wanted: &[(&str, &str)]) -> Result<(), Refusal> {
    let fields = node.array()?;
    if fields.len() != wanted.len() {
        let refusal = node.at().refuse(Code::TypedDataTypes).with_expected(format!("{} members", wanted.len()));
        return Err(refusal.with_actual(format!("{} members", fields.len())));
    }
    for (field, (name, kind)) in fields.zip(wanted) {
        let members = field.object()?;
        members.only(&["name", "type"]).map_err(|refusal| Refusal::new(Code::TypedDataTypes, refusal.location()))?;
        for (key, wanted) in [("name", name), ("type", kind)] {
            let node = members.need(key)?;
            if node.text()? != *wanted {
                return Err(node.refuse(Code::TypedDataTypes).with_expected(wanted));
            }
        }
    }
    Ok(())
}

/// Message and call carry the same terms, felt by felt.
fn check_message(node: Node<'_, '_>, call: &Initiate, contract: Option<Felt>) -> Result<(), Refusal> {
    let members = node.object()?;
    let keys = ["redeemer", "amount", "timelock", "secretHash", CONTRACT_MEMBER.0];
    members.only(if contract.is_some() { &keys } else { keys.get(..4).unwrap_or_default() })?;
    check_twin(members.need("redeemer")?, call.redeemer)?;
    let amount = members.need("amount")?;
    let halves = amount.object()?;
    halves.only(&["low", "high"])?;
    for (key, wanted) in ["low", "high"].into_iter().zip(felt::halves(call.amount)) {
        check_twin(halves.need(key)?, wanted)?;
    }
    check_twin(members.need("timelock")?, Felt::from(call.timelock))?;
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

fn check_words(node: Node<'_, '_>, call: &Initiate) -> Result<(), Refusal> {
    let words = node.array()?;
    if words.len() != 8 {
        return Err(differs(node.at(), "8 words").with_actual(format!("{} words", words.len())));
    }
    words.zip(htlc::words(&call.secret_hash.0)).try_for_each(|(word, wanted)| check_twin(word, wanted))
}

fn check_twin(node: Node<'_, '_>, wanted: Felt) -> Result<(), Refusal> {
    let found = felt::read_any(node)?;
    if found == wanted { Ok(()) } else { Err(differs(node.at(), &format!("{wanted:#x}")).with_actual(format!("{found:#x}"))) }
}

fn differs(at: &At<'_>, wanted: &str) -> Refusal {
    at.refuse(Code::PayloadsDisagree).with_expected(format!("{wanted}, as in the call"))
}

#[cfg(test)]
mod tests {
    use starknet_core::utils::{cairo_short_string_to_felt, starknet_keccak};

    use super::*;

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
        ] {
            assert_eq!(starknet_keccak(text.as_bytes()), hash, "{text}");
        }
        assert_eq!(cairo_short_string_to_felt("StarkNet Message").unwrap(), PREFIX);
        assert_eq!(cairo_short_string_to_felt("HTLC").unwrap(), Domain::deployed(Felt::ZERO).name);
    }

    #[test]
    fn the_domain_of_the_first_capture_is_the_contracts() {
        // protocol.md section 6.
        let domain = Domain::deployed(cairo_short_string_to_felt("SN_SEPOLIA").unwrap());
        assert_eq!(format!("{:#x}", domain.hash()), "0x6c210b1fea5c75f34a94a2ff8219155de14f537e021b255b556c46f36c57e3");
        assert_eq!(domain.to_string(), r#"name "HTLC" (0x48544c43), version "1" (0x31), chain "SN_SEPOLIA" (0x534e5f5345504f4c4941)"#);
    }
}
