//! The WebAssembly module behind the npm package `countersign`.
//!
//! The objects are those of [`countersign_json::objects`]. Bytes of JSON go in, text goes out, and the package's JavaScript
//! (`lib/`) turns that text into values and errors. It also checks every argument before it comes here, so that this module has
//! nothing but the calls. What it throws is the JSON of a [`Failure`].

mod key;
#[cfg(feature = "page")]
pub mod page;
#[cfg(feature = "swap")]
mod swap;

use countersign_json::objects::{self, Documents, Failure};
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use crate::key::Key;

/// Text for JavaScript, or the JSON of a failure as what is thrown.
type Text = Result<String, String>;

fn json(value: &impl Serialize) -> String {
    // Structs with string keys and no fallible members always serialize.
    serde_json::to_string(value).unwrap_or_default()
}

fn thrown(failure: Failure) -> String {
    json(&failure)
}

fn documents<'d>(request: &'d [u8], response: &'d [u8], record: Option<&'d [u8]>) -> Documents<'d> {
    Documents::new(request, response).with_record(record)
}

/// Returns the names of the families that this build has code for.
#[wasm_bindgen]
pub fn families() -> String {
    json(&countersign::FAMILIES.iter().map(|family| family.name()).collect::<Vec<_>>())
}

/// What the wallet has pinned.
#[wasm_bindgen]
pub struct Registry(countersign::Registry);

#[wasm_bindgen]
impl Registry {
    /// Parses a registry file.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &[u8]) -> Result<Self, String> {
        objects::registry(text).map(Self).map_err(thrown)
    }
}

/// The wallet's own limits.
#[wasm_bindgen]
pub struct Policy(countersign::Policy);

#[wasm_bindgen]
impl Policy {
    /// Parses a policy file.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &[u8]) -> Result<Self, String> {
        objects::policy(text).map(Self).map_err(thrown)
    }
}

/// Answers one line of `countersign batch`.
#[wasm_bindgen(js_name = verifyLine)]
pub fn verify_line(line: Vec<u8>, registry: &Registry, policy: &Policy) -> String {
    // The line can hold a secret key.
    objects::verify_line(&Zeroizing::new(line), &registry.0, &policy.0)
}

/// A verified order.
#[wasm_bindgen]
pub struct Order(countersign::Verified);

#[wasm_bindgen]
impl Order {
    /// Verifies an order.
    pub fn verify(
        request: &[u8],
        response: &[u8],
        record: Option<Box<[u8]>>,
        registry: &Registry,
        policy: &Policy,
    ) -> Result<Self, String> {
        objects::verify(&documents(request, response, record.as_deref()), &registry.0, &policy.0).map(Self).map_err(thrown)
    }

    /// Returns the terms.
    pub fn terms(&self) -> String {
        json(&objects::terms(&self.0.terms()))
    }

    /// Returns the summary.
    pub fn summary(&self) -> String {
        json(&objects::summary(&self.0.summary()))
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> String {
        json(&objects::warnings(self.0.warnings()))
    }

    /// Returns which bytes of the response the lines of the summary describe.
    pub fn coverage(&self) -> String {
        json(&objects::coverage(self.0.coverage()))
    }

    /// Checks that there is still time to pay at `now`, in Unix seconds.
    #[wasm_bindgen(js_name = checkDeadline)]
    pub fn check_deadline(&self, now: u64) -> Result<(), String> {
        self.0.check_deadline(countersign::chains::UnixTime::from_secs(now)).map_err(|refusal| thrown(refusal.into()))
    }

    /// Returns what wallets take that choose nonce and fees themselves.
    #[wasm_bindgen(js_name = walletCalls)]
    pub fn wallet_calls(&self) -> Text {
        objects::wallet_calls(&self.0).map(|calls| json(&calls)).map_err(thrown)
    }

    /// Returns the role in this order of a transaction that an external wallet has signed or broadcast, and refuses what has warnings.
    pub fn matches(&self, transaction: &[u8]) -> Text {
        objects::matches(&self.0, transaction).map_err(thrown)
    }

    /// Returns the role of a transaction, and what the wallet changed or added although it may.
    #[wasm_bindgen(js_name = matchWithWarnings)]
    pub fn match_with_warnings(&self, transaction: &[u8]) -> Text {
        objects::match_with_warnings(&self.0, transaction).map(|matched| json(&matched)).map_err(thrown)
    }

    /// Finds the payment by what a transaction did, which may be that of another account, and returns the id of the transaction.
    #[wasm_bindgen(js_name = findPayment)]
    pub fn find_payment(&self, effect: &[u8]) -> Text {
        objects::find_payment(&self.0, effect).map_err(thrown)
    }

    /// Prepares the order with a wallet context.
    pub fn prepare(&self, wallet: Vec<u8>) -> Result<UnsignedOrder, String> {
        // The wallet context can have a secret key.
        objects::prepare(&self.0, &Zeroizing::new(wallet)).map(UnsignedOrder::new).map_err(thrown)
    }

    /// Prepares the gasless path.
    #[wasm_bindgen(js_name = prepareGasless)]
    pub fn prepare_gasless(&self) -> Result<UnsignedOrder, String> {
        objects::prepare_gasless(&self.0).map(UnsignedOrder::new).map_err(thrown)
    }
}

/// An order with its payloads, and the signatures so far. Nothing is left in it after it was finished.
#[wasm_bindgen]
pub struct UnsignedOrder(Option<countersign::Unsigned>);

#[wasm_bindgen]
impl UnsignedOrder {
    /// Returns the family that signs.
    pub fn family(&self) -> Text {
        Ok(self.get()?.family().name().to_owned())
    }

    /// Returns the order's id.
    #[wasm_bindgen(js_name = orderId)]
    pub fn order_id(&self) -> Text {
        Ok(self.get()?.order_id().unwrap_or_default().to_owned())
    }

    /// Returns the summary.
    pub fn summary(&self) -> Text {
        Ok(json(&objects::summary(&self.get()?.summary())))
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> Text {
        Ok(json(&objects::warnings(self.get()?.warnings())))
    }

    /// Returns what signers are asked for.
    pub fn requests(&self) -> Text {
        Ok(json(&objects::requests(self.get()?)))
    }

    /// Returns the names of the requests that have no signature yet.
    pub fn missing(&self) -> Text {
        Ok(json(&self.get()?.missing().iter().map(ToString::to_string).collect::<Vec<_>>()))
    }

    /// Returns the artefacts with the signatures so far.
    pub fn artefacts(&self) -> Text {
        Ok(objects::artefacts(self.get()?))
    }

    /// Proves a signature and attaches it.
    pub fn attach(&mut self, name: &str, signature: &str) -> Result<(), String> {
        objects::attach(self.get_mut()?, name, signature).map_err(thrown)
    }

    /// Attaches the signatures of a signed transaction, and returns the names of their requests.
    #[wasm_bindgen(js_name = attachTransaction)]
    pub fn attach_transaction(&mut self, transaction: &[u8]) -> Text {
        objects::attach_transaction(self.get_mut()?, transaction).map(|names| json(&names)).map_err(thrown)
    }

    /// Signs with a local key.
    pub fn sign(&mut self, key: Vec<u8>) -> Result<(), String> {
        let key = Zeroizing::new(key);
        let unsigned = self.get_mut()?;
        let text = objects::key_text(&key, unsigned.family()).map_err(thrown)?;
        objects::sign(unsigned, &text).map_err(thrown)
    }

    /// Signs with a key that was parsed before.
    #[wasm_bindgen(js_name = signWith)]
    pub fn sign_with(&mut self, key: &Key) -> Result<(), String> {
        objects::sign_with(self.get_mut()?, &key.0).map_err(thrown)
    }

    /// Combines the payloads with their signatures.
    pub fn finish(&mut self) -> Result<SignedOrder, String> {
        let unsigned = self.0.take().ok_or_else(used_up)?;
        objects::finish(unsigned).map(SignedOrder).map_err(|incomplete| {
            let (unsigned, failure) = *incomplete;
            self.0 = Some(unsigned);
            thrown(failure)
        })
    }
}

impl UnsignedOrder {
    const fn new(order: countersign::Unsigned) -> Self {
        Self(Some(order))
    }

    #[cfg(feature = "swap")]
    const fn take(&mut self) -> Option<countersign::Unsigned> {
        self.0.take()
    }

    fn get(&self) -> Result<&countersign::Unsigned, String> {
        self.0.as_ref().ok_or_else(used_up)
    }

    fn get_mut(&mut self) -> Result<&mut countersign::Unsigned, String> {
        self.0.as_mut().ok_or_else(used_up)
    }
}

fn used_up() -> String {
    thrown(Failure::used_up())
}

/// An order with all its signatures.
#[wasm_bindgen]
pub struct SignedOrder(countersign::Signed);

#[wasm_bindgen]
impl SignedOrder {
    /// Returns the order's id.
    #[wasm_bindgen(js_name = orderId)]
    pub fn order_id(&self) -> String {
        self.0.order_id().unwrap_or_default().to_owned()
    }

    /// Returns the transactions in the order in which they are broadcast.
    pub fn transactions(&self) -> String {
        json(&objects::transactions(&self.0))
    }

    /// Returns the signature that the service is sent on the gasless path.
    pub fn gasless(&self) -> Option<String> {
        objects::gasless(&self.0)
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> String {
        json(&objects::warnings(self.0.warnings()))
    }
}

/// A recovery from the record alone.
#[wasm_bindgen]
pub struct Recovery(countersign::recover::Recovery);

#[wasm_bindgen]
impl Recovery {
    /// Creates the refund of a leg.
    pub fn refund(record: &[u8], leg: &str, registry: &Registry) -> Result<Self, String> {
        objects::refund(record, leg, &registry.0).map(Self).map_err(thrown)
    }

    /// Creates the redemption of a leg.
    pub fn redeem(record: &[u8], leg: &str, secret: Vec<u8>, registry: &Registry) -> Result<Self, String> {
        let secret = objects::secret_text(&Zeroizing::new(secret)).map_err(thrown)?;
        objects::redeem(record, leg, &secret, &registry.0).map(Self).map_err(thrown)
    }

    /// Returns the family that signs.
    pub fn family(&self) -> String {
        self.0.family().name().to_owned()
    }

    /// Returns the order's id.
    #[wasm_bindgen(js_name = orderId)]
    pub fn order_id(&self) -> String {
        self.0.terms().order_id
    }

    /// Returns who is paid.
    pub fn payee(&self) -> String {
        self.0.terms().payee.to_string()
    }

    /// Returns the amount in base units.
    pub fn amount(&self) -> String {
        self.0.terms().amount.to_string()
    }

    /// Prepares the recovery with a wallet context.
    pub fn prepare(&self, wallet: Vec<u8>, policy: &Policy) -> Result<UnsignedOrder, String> {
        objects::prepare_recovery(&self.0, &Zeroizing::new(wallet), &policy.0).map(UnsignedOrder::new).map_err(thrown)
    }
}

/// A verified record.
#[wasm_bindgen]
pub struct Record(objects::Record);

#[wasm_bindgen]
impl Record {
    /// Verifies the record of an order that is under way.
    pub fn verify(request: &[u8], response: &[u8], record: &[u8], registry: &Registry, policy: &Policy) -> Result<Self, String> {
        let documents = documents(request, response, Some(record));
        objects::verify_record(&documents, &registry.0, &policy.0).map(Self).map_err(thrown)
    }

    /// Returns the order's id.
    #[wasm_bindgen(js_name = orderId)]
    pub fn order_id(&self) -> String {
        self.0.verified.terms.order_id.clone()
    }

    /// Returns what the HTLC of a leg must hold, and where it is.
    pub fn terms(&self, leg: &str) -> Text {
        objects::htlc_terms(&self.0, leg).map(|terms| json(&terms)).map_err(thrown)
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> String {
        json(&objects::warnings(&self.0.verified.warnings))
    }

    /// Creates the reader of the HTLC of a leg for one endpoint.
    pub fn reader(&self, leg: &str, endpoint: &str, known: &[u8], protocol: &str) -> Result<Reader, String> {
        self.0.reader(leg, endpoint, known, Some(protocol)).map(Reader).map_err(thrown)
    }

    /// Compares what the endpoints show of the destination with the verified terms.
    pub fn judge(&self, quorum: &Quorum, now: u64) -> Text {
        self.0.judge(&quorum.0, now).map(|proof| json(&proof)).map_err(thrown)
    }

    /// Returns the state of the HTLC of a leg, on which enough endpoints agree.
    pub fn state(&self, leg: &str, quorum: &Quorum) -> Text {
        self.0.state(leg, &quorum.0).map(|state| json(&state)).map_err(thrown)
    }
}

/// Reads one HTLC from one endpoint.
#[wasm_bindgen]
pub struct Reader(objects::Reader);

#[wasm_bindgen]
impl Reader {
    /// Returns the requests to send now.
    pub fn requests(&self) -> String {
        json(&self.0.requests())
    }

    /// Takes the answers, which are not there any more afterwards.
    pub fn answer(&mut self, answers: Answers) -> Result<(), String> {
        self.0.answer(answers.list).map_err(thrown)
    }

    /// Returns why the endpoint's answers cannot be used.
    pub fn fault(&self) -> Option<String> {
        self.0.fault().map(thrown)
    }

    /// Returns the height of the newest block that the endpoint shows.
    pub fn height(&self) -> Option<u64> {
        self.0.height()
    }

    /// Returns the endpoint's memory as JSON, to pass to its next reader.
    pub fn known(&self) -> String {
        self.0.known()
    }
}

/// The answers of one round, which are collected one by one: together they may be larger than any JSON document.
#[wasm_bindgen]
pub struct Answers {
    list: Vec<objects::Answer>,
    batches: Vec<Vec<objects::Answer>>,
}

#[wasm_bindgen]
impl Answers {
    /// Starts without answers.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self { list: Vec::new(), batches: Vec::new() }
    }

    /// Adds the JSON text of a result.
    pub fn result(&mut self, text: Vec<u8>) {
        self.list.push(objects::Answer::Result(text));
    }

    /// Adds an error, as the JSON text of the member `error`.
    pub fn error(&mut self, text: &[u8]) {
        self.list.push(objects::error_answer(text));
    }

    /// Adds the response to a GET or POST.
    pub fn http(&mut self, status: u16, body: Vec<u8>, grpc_status: Option<String>) {
        self.list.push(objects::Answer::Http { status, body, grpc_status });
    }

    /// Adds that no complete response arrived.
    pub fn failed(&mut self, kind: String, detail: String) {
        self.list.push(objects::Answer::Failed { kind, detail });
    }

    /// Splits the response to a batch, and returns its number for `from_batch`.
    pub fn split(&mut self, status: u16, body: &[u8], calls: usize) -> usize {
        self.batches.push(objects::split_batch(status, body, calls));
        self.batches.len().saturating_sub(1)
    }

    /// Adds one answer of a response that was split.
    #[wasm_bindgen(js_name = fromBatch)]
    pub fn from_batch(&mut self, batch: usize, place: usize) {
        let answer = self.batches.get(batch).and_then(|answers| answers.get(place)).cloned();
        let missing = || objects::Answer::Failed { kind: "other".to_owned(), detail: "the batch has no such reply".to_owned() };
        self.list.push(answer.unwrap_or_else(missing));
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self::new()
    }
}

/// What several endpoints show of one HTLC.
#[wasm_bindgen]
pub struct Quorum(objects::Quorum);

#[wasm_bindgen]
impl Quorum {
    /// Creates a quorum of endpoints.
    #[wasm_bindgen(constructor)]
    pub fn new(endpoints: Vec<String>, needed: usize) -> Result<Self, String> {
        objects::Quorum::new(endpoints.iter().map(String::as_str), needed).map(Self).map_err(thrown)
    }

    /// Takes what the endpoint of a reader shows.
    pub fn hear(&mut self, reader: &Reader) {
        self.0.hear(&reader.0);
    }

    /// Returns whether enough endpoints agree, or every endpoint has spoken.
    #[wasm_bindgen(js_name = isSettled)]
    pub fn is_settled(&self) -> bool {
        self.0.is_settled()
    }
}
