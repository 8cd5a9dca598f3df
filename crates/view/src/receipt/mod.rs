//! Receipts: one file that proves years later what was verified, and what the verdict was.
//!
//! A receipt has the documents of an order byte for byte, the digest of the registry, the policy, the verdict and the hashes that can be
//! known without a wallet. [`Receipt::check`] verifies the documents again and compares everything. Verification reads no clock, so the
//! result is the same at any time. A receipt never has a wallet context or a key. A signature is optional.
//!
//! Specification: `docs/spec/receipt.md`.

mod check;
mod verdict;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::json::{self, At, Cursor, Members, Value};
use countersign::text::quote_untrusted;
use countersign::wire::Read as _;
use countersign::{Code, CreateOrder, Policy, Proposal, Refusal, Registry, Verified};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::hashes::{of_order, sha256};

pub use check::{Check, Difference, OwnLimit};
pub use verdict::Verdict;

/// The name of the format.
pub const FORMAT: &str = "countersign-receipt";
/// The version of the format.
pub const VERSION: u64 = 1;
/// Maximum length of a receipt in bytes.
pub const MAX_BYTES: usize = json::MAX_BYTES;

/// The member of every wallet context that holds a key. A document with this name is not put into a receipt.
const SECRET: &[u8] = b"secret_key";

/// The documents of one order, as they were received.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "an order has these three documents")]
pub struct Documents<'d> {
    /// The create-order request.
    pub request: &'d [u8],
    /// The service's response.
    pub response: &'d [u8],
    /// The order record; `None` without one.
    pub record: Option<&'d [u8]>,
}

impl Documents<'_> {
    /// Verifies the order.
    fn verify(&self, registry: &Registry, policy: &Policy) -> Result<Verified, Refusal> {
        let parse = |text, at: At<'_>| json::parse(text).map_err(|refusal: Refusal| refusal.within(&at));
        let (request, response) = (parse(self.request, At::REQUEST)?, parse(self.response, At::RESPONSE)?);
        let record = self.record.map(|text| parse(text, At::RECORD)).transpose()?;
        let request = CreateOrder::read(Cursor::new(&request, At::REQUEST))?;
        countersign::verify(Proposal::from_parsed(request, &response, record.as_ref()), registry, policy)
    }
}

/// A document and its SHA-256. Text is kept as text, and other bytes as base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    sha256: String,
}

impl Document {
    fn new(bytes: &[u8], at: &str) -> Result<Self, Refusal> {
        // The service does not have the owner's key, and must not prevent a receipt by a word. But a whole case, taken for one of its
        // documents, has a wallet context.
        let has_word = || bytes.windows(SECRET.len()).any(|window| window == SECRET);
        let is_case = || {
            let root = json::parse(bytes);
            matches!(&root, Ok(Value::Object(members)) if members.iter().any(|(name, _)| name == "wallet"))
        };
        if has_word() && (at == "/request" || is_case()) {
            let reason = "the document has a member named secret_key, and a receipt must not contain a key";
            return Err(Refusal::new(Code::UnexpectedField, at).with_reason(reason));
        }
        let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
        let base64 = text.is_none().then(|| STANDARD.encode(bytes));
        Ok(Self { text, base64, sha256: sha256(bytes) })
    }

    fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        members.only(&["text", "base64", "sha256"])?;
        let document = Self { text: text(&members, "text")?, base64: text(&members, "base64")?, sha256: need_text(&members, "sha256")? };
        match (&document.text, &document.base64) {
            (Some(_), None) => Ok(document),
            // Only what is not text is base64, so that a document has one form.
            (None, Some(base64)) if STANDARD.decode(base64).is_ok_and(|bytes| std::str::from_utf8(&bytes).is_err()) => Ok(document),
            _ => Err(cursor.refuse(Code::WrongType).with_expected("text, or base64 of bytes that are not text")),
        }
    }

    fn bytes(&self) -> Cow<'_, [u8]> {
        match &self.text {
            Some(text) => Cow::Borrowed(text.as_bytes()),
            None => Cow::Owned(self.base64.as_ref().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default()),
        }
    }
}

/// Everything that the digest covers, in the order in which it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Body {
    format: &'static str,
    version: u64,
    program: String,
    registry: String,
    policy: String,
    request: Document,
    response: Document,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<Document>,
    verdict: Verdict,
    hashes: BTreeMap<String, String>,
}

/// A receipt: see the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    #[serde(flatten)]
    body: Body,
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

impl Receipt {
    /// Verifies the documents, and writes down the verdict, whatever it is.
    ///
    /// # Errors
    ///
    /// [`Code::UnexpectedField`] at a document with a member named `secret_key`; [`Code::JsonTooLarge`] if the receipt would be longer
    /// than [`MAX_BYTES`].
    pub fn new(documents: &Documents<'_>, registry: &Registry, policy: &Policy) -> Result<Self, Refusal> {
        let result = documents.verify(registry, policy);
        let body = Body {
            format: FORMAT,
            version: VERSION,
            program: program(),
            registry: hex::encode(registry.digest()),
            // A policy can always be written.
            policy: serde_json::to_string(policy).unwrap_or_default(),
            request: Document::new(documents.request, "/request")?,
            response: Document::new(documents.response, "/response")?,
            record: documents.record.map(|record| Document::new(record, "/order")).transpose()?,
            verdict: Verdict::new(&result),
            hashes: result.as_ref().map(of_order).unwrap_or_default(),
        };
        let receipt = Self { digest: hex::encode(digest(&body)), body, public_key: None, signature: None };
        // The public key and the signature that may follow have less than 300 bytes.
        match receipt.to_json().len() {
            length if length.saturating_add(300) <= MAX_BYTES => Ok(receipt),
            length => {
                let refusal = Refusal::new(Code::JsonTooLarge, "").with_reason("the receipt would be too large to be read again");
                Err(refusal.with_expected(format!("at most {MAX_BYTES} bytes")).with_actual(length))
            }
        }
    }

    /// Returns whether there is a signature, valid or not.
    #[must_use]
    pub const fn has_signature(&self) -> bool {
        self.signature.is_some()
    }

    /// Signs the digest. An earlier signature is replaced.
    pub fn sign(&mut self, key: &ReceiptKey) {
        self.public_key = Some(hex::encode(key.public_key()));
        self.signature = Some(hex::encode(key.0.sign(&digest(&self.body)).to_bytes()));
    }

    /// Returns the file: one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        // A receipt can always be written.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Parses a receipt. Nothing in it is checked but its form: see [`Receipt::check`].
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member that is missing, unknown or malformed.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(bytes)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        let format = members.need("format")?;
        if format.text()? != FORMAT {
            return Err(format.refuse(Code::WrongType).with_expected(FORMAT));
        }
        let version = members.need("version")?;
        if version.integer()? != VERSION {
            let reason = "this program does not know receipts of this version";
            return Err(version.refuse(Code::WrongType).with_reason(reason).with_expected(VERSION));
        }
        members.only(&[
            "format",
            "version",
            "program",
            "registry",
            "policy",
            "request",
            "response",
            "record",
            "verdict",
            "hashes",
            "digest",
            "public_key",
            "signature",
        ])?;
        let mut hashes = BTreeMap::new();
        for hash in members.need("hashes")?.object()?.iter() {
            let name = hash.at().to_string();
            hashes.insert(name.strip_prefix("/hashes/").unwrap_or(&name).to_owned(), hash.text()?.to_owned());
        }
        let body = Body {
            format: FORMAT,
            version: VERSION,
            program: need_text(&members, "program")?,
            registry: need_text(&members, "registry")?,
            policy: need_text(&members, "policy")?,
            request: Document::read(&members.need("request")?)?,
            response: Document::read(&members.need("response")?)?,
            record: members.get("record").as_ref().map(Document::read).transpose()?,
            verdict: Verdict::read(&members.need("verdict")?)?,
            hashes,
        };
        Policy::from_json(body.policy.as_bytes()).map_err(|refusal| refusal.with_prefix("/policy"))?;
        let (public_key, signature) = (text(&members, "public_key")?, text(&members, "signature")?);
        if public_key.is_some() != signature.is_some() {
            return Err(root.refuse(Code::MissingField).with_expected("public_key and signature, or neither"));
        }
        Ok(Self { body, digest: need_text(&members, "digest")?, public_key, signature })
    }

    /// Verifies the documents again with the policy of the receipt, and compares the digest, the signature, the registry, the verdict and
    /// the hashes. With another registry nothing is verified again, because the verdict would be about other pins.
    ///
    /// `signer` is the public key that must have signed; without it, any valid signature or none will do.
    ///
    /// A proven receipt says what its own policy led to: see [`Receipt::own_limits`] and [`Receipt::check_with_policy`].
    pub fn check(&self, registry: &Registry, signer: Option<[u8; 32]>) -> Check {
        let Self { body, .. } = self;
        let mut check = Check { differences: Vec::new(), signer: None };
        let digest = digest(body);
        check.compare("/digest", &self.digest, &hex::encode(digest));
        match (&self.public_key, &self.signature) {
            (Some(key), Some(signature)) if is_signed(key, signature, &digest) => check.signer = Some(key.clone()),
            (Some(_), Some(_)) => check.differs("/signature", "a signature", "the signature of the key over the digest"),
            _ => {}
        }
        if let Some(signer) = signer {
            check.compare("/public_key", self.public_key.as_deref().unwrap_or("no signature"), &hex::encode(signer));
        }
        let documents = [("/request", Some(&body.request)), ("/response", Some(&body.response)), ("/record", body.record.as_ref())];
        for (at, document) in documents.iter().filter_map(|(at, document)| Some((at, (*document)?))) {
            check.compare(&format!("{at}/sha256"), &document.sha256, &sha256(&document.bytes()));
        }
        check.compare("/registry", &body.registry, &hex::encode(registry.digest()));
        if body.registry != hex::encode(registry.digest()) {
            return check;
        }
        // The policy was parsed together with the receipt.
        let Ok(policy) = Policy::from_json(body.policy.as_bytes()) else {
            check.differs("/policy", &body.policy, "a policy");
            return check;
        };
        let [request, response] = [body.request.bytes(), body.response.bytes()];
        let record = body.record.as_ref().map(Document::bytes);
        let result = Documents { request: &request, response: &response, record: record.as_deref() }.verify(registry, &policy);
        check.compare_json("/verdict", &to_json(&body.verdict), &to_json(&Verdict::new(&result)));
        check.compare_json("/hashes", &to_json(&body.hashes), &to_json(&result.as_ref().map(of_order).unwrap_or_default()));
        check
    }

    /// Checks like [`Receipt::check`], and requires that the receipt's policy has exactly these limits. A policy that permits everything
    /// proves an order, too.
    pub fn check_with_policy(&self, policy: &Policy, registry: &Registry, signer: Option<[u8; 32]>) -> Check {
        let mut check = self.check(registry, signer);
        check.compare_json("/policy", &to_json(&self.policy()), &to_json(policy));
        check
    }

    /// Returns the members of the receipt's policy that are not the default ones; none if it is the default policy.
    #[must_use]
    pub fn own_limits(&self) -> Vec<OwnLimit> {
        let (own, default) = (to_json(&self.policy()), to_json(&Policy::default()));
        let members = own.as_object().into_iter().flatten();
        let with_default = members.map(|(name, value)| OwnLimit {
            default: default.get(name).cloned().unwrap_or_default(),
            name: name.clone(),
            value: value.clone(),
        });
        with_default.filter(|limit| limit.value != limit.default).collect()
    }

    /// The policy was parsed together with the receipt.
    fn policy(&self) -> Policy {
        Policy::from_json(self.body.policy.as_bytes()).unwrap_or_default()
    }

    /// Returns the program that wrote the receipt: free text of whoever wrote it. [`Receipt::written_by`] is for people.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.body.program
    }

    /// Returns the program that wrote the receipt as people may see it: quoted like other untrusted text, unless it is this program.
    #[must_use]
    pub fn written_by(&self) -> String {
        if self.program() == program() { program() } else { quote_untrusted(self.program()) }
    }

    /// Returns the verdict. It is only a statement until [`Receipt::check`] has proven it.
    #[must_use]
    pub const fn verdict(&self) -> &Verdict {
        &self.body.verdict
    }

    /// Returns the hashes by their names.
    #[must_use]
    pub const fn hashes(&self) -> &BTreeMap<String, String> {
        &self.body.hashes
    }

    /// Returns the SHA-256 of the receipt's canonical body, which is what is signed.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// An Ed25519 key that signs receipts. It is wiped on drop.
pub struct ReceiptKey(SigningKey);

impl ReceiptKey {
    /// Parses a seed of 32 bytes in hex, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`], never with any part of the text.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let mut seed = Zeroizing::new([0; 32]);
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let malformed = |_| Refusal::new(Code::KeyMalformed, "").with_reason("not a seed of 32 bytes in hex");
        hex::decode_to_slice(digits, seed.as_mut_slice()).map_err(malformed)?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// Returns the public key.
    #[must_use]
    pub fn public_key(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }
}

impl fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptKey(..)")
    }
}

/// Returns the name and version of this program.
#[must_use]
pub fn program() -> String {
    format!("countersign {}", env!("CARGO_PKG_VERSION"))
}

/// Returns the SHA-256 of the body's compact JSON.
fn digest(body: &Body) -> [u8; 32] {
    Sha256::digest(serde_json::to_vec(body).unwrap_or_default()).into()
}

fn to_json(value: &impl Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns whether both texts are lower-case hex of a public key and of its signature over the digest.
fn is_signed(key: &str, signature: &str, digest: &[u8; 32]) -> bool {
    let Some((key, signature)) = exactly::<32>(key).zip(exactly::<64>(signature)) else { return false };
    VerifyingKey::from_bytes(&key).is_ok_and(|key| key.verify_strict(digest, &Signature::from_bytes(&signature)).is_ok())
}

fn exactly<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    (hex::encode(bytes) == text).then_some(bytes)
}

fn text(members: &Members<'_, '_>, key: &str) -> Result<Option<String>, Refusal> {
    members.get(key).map(|member| member.text().map(str::to_owned)).transpose()
}

fn need_text(members: &Members<'_, '_>, key: &str) -> Result<String, Refusal> {
    Ok(members.need(key)?.text()?.to_owned())
}
