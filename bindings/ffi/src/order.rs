//! The states of an order.

use std::sync::{Arc, Mutex};

use countersign::{RequestId, Signed, Unsigned, Verified, chains::UnixTime};
use countersign_json::objects::{self, Convert, Documents, Failure};
use zeroize::Zeroizing;

use crate::shapes::{Coverage, Line, Matched, Notice, Request, Terms, Transaction};
use crate::{Policy, Registry, Result};

/// A verified order: every field of the response equals the request, the registry or the record, or is shown.
#[derive(Debug, uniffi::Object)]
pub struct Order(Verified);

#[uniffi::export]
impl Order {
    /// Verifies what the service sent. The documents are the bytes of JSON as the wallet sent and received them.
    #[uniffi::constructor(default(policy = None, record = None))]
    pub fn verify(
        request: Vec<u8>,
        response: Vec<u8>,
        registry: &Registry,
        policy: Option<Arc<Policy>>,
        record: Option<Vec<u8>>,
    ) -> Result<Self> {
        let documents = Documents::new(&request, &response).with_record(record.as_deref());
        Ok(Self(objects::verify(&documents, &registry.0, &policy.unwrap_or_default().0)?))
    }

    /// Returns the family that signs, such as `evm`.
    pub fn family(&self) -> String {
        self.0.family().name().to_owned()
    }

    /// Returns the order's id.
    pub fn order_id(&self) -> String {
        self.0.order_id().to_owned()
    }

    /// Returns the terms that the owner agrees to, as values.
    pub fn terms(&self) -> Terms {
        objects::terms(&self.0.terms()).convert()
    }

    /// Returns what the owner reads before signing.
    pub fn summary(&self) -> Vec<Line> {
        objects::summary(&self.0.summary()).convert()
    }

    /// Returns what the owner should know.
    pub fn warnings(&self) -> Vec<Notice> {
        objects::warnings(self.0.warnings()).convert()
    }

    /// Returns which bytes of the response each line of the summary describes.
    pub fn coverage(&self) -> Vec<Coverage> {
        objects::coverage(self.0.coverage()).convert()
    }

    /// Checks that there is still time to pay, at `now` in Unix seconds. Call it again right before submitting.
    pub fn check_deadline(&self, now: u64) -> Result<()> {
        Ok(self.0.check_deadline(UnixTime::from_secs(now)).map_err(Failure::from)?)
    }

    /// Prepares the order with the wallet context of its family, as JSON: `docs/spec/batch.md`. The order can be prepared
    /// again, as often as nonce or fees change.
    pub fn prepare(&self, wallet: Vec<u8>) -> Result<UnsignedOrder> {
        Ok(objects::prepare(&self.0, &wallet)?.into())
    }

    /// Prepares the gasless path, for which a wallet needs neither nonce nor fees.
    pub fn prepare_gasless(&self) -> Result<UnsignedOrder> {
        Ok(objects::prepare_gasless(&self.0)?.into())
    }

    /// Returns what wallets take that choose nonce and fees themselves, as JSON: the parameters of `eth_sendTransaction` on
    /// EVM chains, the calls of `account.execute` on Starknet.
    pub fn wallet_calls(&self) -> Result<Vec<String>> {
        Ok(objects::wallet_calls(&self.0)?)
    }

    /// Returns what a transaction does in this order, such as `approval` or `initiate`. Use it with wallets that choose nonce and fees
    /// themselves: everything that they may not choose must be as it was verified. What the owner would have to be warned about is refused
    /// with `transaction_mismatch`: on EVM and Tron another approval above the amount than the verified one, on Tron a permission or
    /// signatures that only the chain can judge. `match_with_warnings` returns it.
    ///
    /// The forms of the transaction are listed in `docs/spec/batch.md#external-transactions`: on EVM chains the JSON that
    /// `eth_getTransactionByHash` returns, or the raw bytes in hex.
    pub fn matches(&self, transaction: Vec<u8>) -> Result<String> {
        Ok(objects::matches(&self.0, &transaction)?)
    }

    /// Returns what a transaction does in this order, and what the wallet changed or added although it may. Show the warnings to the owner:
    /// the role alone does not say what else was sent. The transaction is as for `matches`.
    pub fn match_with_warnings(&self, transaction: Vec<u8>) -> Result<Matched> {
        Ok(objects::match_with_warnings(&self.0, &transaction)?.convert())
    }

    /// Finds the payment of an order by what a transaction did, and returns the id of the transaction. Use it with wallets that send in a
    /// form of their own: by a bundler, a relay, the owners of a Safe or the members of a multisig.
    ///
    /// `effect` is JSON that the wallet or node returned for a method that `docs/spec/batch.md#bundled-calls` lists, such as
    /// `wallet_getCallsStatus` or `eth_getTransactionReceipt`. It is trusted for this: read the source leg before the secret is released.
    pub fn find_payment(&self, effect: Vec<u8>) -> Result<String> {
        Ok(objects::find_payment(&self.0, &effect)?)
    }
}

/// Payloads for any signer, and the signatures that have been attached so far.
///
/// After a successful `finish`, and after `Swaps.reply_signed`, every method fails with the code `used_up`.
#[derive(Debug, uniffi::Object)]
pub struct UnsignedOrder(Mutex<Option<Unsigned>>);

impl From<Unsigned> for UnsignedOrder {
    fn from(order: Unsigned) -> Self {
        Self(Mutex::new(Some(order)))
    }
}

impl UnsignedOrder {
    /// Calls `act` with the order. A lock that a panic has poisoned counts as used up: the order may be half changed, and
    /// preparing it again is the remedy of both.
    fn with<T>(&self, act: impl FnOnce(&mut Unsigned) -> std::result::Result<T, Failure>) -> Result<T> {
        let mut order = self.0.lock().map_err(|_| Failure::used_up())?;
        Ok(act(order.as_mut().ok_or_else(Failure::used_up)?)?)
    }

    /// Takes the order out, for the machine that handed it out. The object is used up.
    pub(crate) fn take(&self) -> Result<Unsigned> {
        Ok(self.0.lock().map_err(|_| Failure::used_up())?.take().ok_or_else(Failure::used_up)?)
    }
}

#[uniffi::export]
impl UnsignedOrder {
    /// Returns what signers are asked for, in the order in which payloads are sent.
    pub fn requests(&self) -> Result<Vec<Request>> {
        self.with(|order| Ok(objects::requests(order).convert()))
    }

    /// Returns the names of the requests that still need a signature.
    pub fn missing(&self) -> Result<Vec<String>> {
        self.with(|order| Ok(order.missing().into_iter().map(|id: RequestId| id.to_string()).collect()))
    }

    /// Returns what the owner reads before signing. The last lines are the digests.
    pub fn summary(&self) -> Result<Vec<Line>> {
        self.with(|order| Ok(objects::summary(&order.summary()).convert()))
    }

    /// Returns what the owner should know. A signature that only the chain can verify adds a warning.
    pub fn warnings(&self) -> Result<Vec<Notice>> {
        self.with(|order| Ok(objects::warnings(order.warnings()).convert()))
    }

    /// Proves a signature of an external signer and attaches it. A refused signature changes nothing.
    ///
    /// The signature is text in its family's usual form, or JSON where it is an object: `docs/spec/batch.md`, External
    /// signatures.
    pub fn attach(&self, name: String, signature: String) -> Result<()> {
        self.with(|order| objects::attach(order, &name, &signature))
    }

    /// Takes the signatures out of a transaction that an external signer has signed, proves and attaches them, and returns the names
    /// of their requests. A transaction that is not one of the requested payloads is refused and changes nothing.
    ///
    /// The form of the bytes in each family: `docs/spec/batch.md`, External signatures.
    pub fn attach_transaction(&self, transaction: Vec<u8>) -> Result<Vec<String>> {
        self.with(|order| objects::attach_transaction(order, &transaction))
    }

    /// Signs with a local key, in its family's usual text form, whatever that key can sign.
    ///
    /// The copy of the key that the library gets is wiped. The caller's own `String` cannot be wiped: prefer a signer
    /// outside, and [`attach`](Self::attach).
    pub fn sign(&self, key: String) -> Result<()> {
        let key = Zeroizing::new(key);
        self.with(|order| objects::sign(order, &key))
    }

    /// Signs with a key that was parsed before, whatever that key can sign.
    pub fn sign_with(&self, key: &Key) -> Result<()> {
        self.with(|order| objects::sign_with(order, &key.0))
    }

    /// Returns the artefacts with the signatures so far, as the JSON of `countersign batch`.
    pub fn artefacts(&self) -> Result<String> {
        self.with(|order| Ok(objects::artefacts(order)))
    }

    /// Combines the payloads with their signatures. While one is missing, the order stays as it was.
    pub fn finish(&self) -> Result<SignedOrder> {
        let mut state = self.0.lock().map_err(|_| Failure::used_up())?;
        let order = state.take().ok_or_else(Failure::used_up)?;
        match objects::finish(order) {
            Ok(signed) => Ok(SignedOrder(signed)),
            Err(refused) => {
                let (order, failure) = *refused;
                *state = Some(order);
                Err(failure.into())
            }
        }
    }
}

/// A local key, parsed once, for `UnsignedOrder.sign_with`. It is wiped when the object is closed, and nothing returns it.
#[derive(Debug, uniffi::Object)]
#[uniffi::export(Display)]
pub struct Key(objects::Key);

impl std::fmt::Display for Key {
    /// Writes the family and the account.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[uniffi::export]
impl Key {
    /// Parses a key of a family, such as `evm`; Litecoin is of the family `bitcoin`. 32 bytes are the raw key (on Solana the seed, or 64 bytes
    /// the keypair), and any other number of bytes is the key's usual text in UTF-8.
    ///
    /// The copy of the key that the library gets is wiped. The buffer that carries the bytes across the border is not: prefer a signer
    /// outside, and `UnsignedOrder.attach`.
    #[uniffi::constructor]
    pub fn parse(family: String, key: Vec<u8>) -> Result<Self> {
        Ok(Self(objects::Key::parse_named(&Zeroizing::new(key), &family)?))
    }

    /// Returns the family that the key signs for.
    pub fn family(&self) -> String {
        self.0.family().name().to_owned()
    }

    /// Returns the account that the key controls; none on chains where it does not follow from the key.
    pub fn account(&self) -> Option<String> {
        self.0.account()
    }
}

/// An order with all its signatures.
#[derive(Debug, uniffi::Object)]
pub struct SignedOrder(Signed);

#[uniffi::export]
impl SignedOrder {
    /// Returns the order's id.
    pub fn order_id(&self) -> String {
        self.0.order_id().unwrap_or_default().to_owned()
    }

    /// Returns the transactions in the order in which they are broadcast.
    pub fn transactions(&self) -> Vec<Transaction> {
        objects::transactions(&self.0).convert()
    }

    /// Returns the signature that the service is sent on the gasless path; none where the wallet chose another path.
    pub fn gasless(&self) -> Option<String> {
        objects::gasless(&self.0)
    }

    /// Returns what the owner should know.
    pub fn warnings(&self) -> Vec<Notice> {
        objects::warnings(self.0.warnings()).convert()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<T>(result: Result<T>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    /// Returns the order of a case of the fixtures, and the case.
    fn fixture(id: &str) -> (Order, serde_json::Value) {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
        let registry = Registry::new(std::fs::read(format!("{fixtures}/registry.json")).unwrap()).unwrap();
        let family = id.split('-').next().unwrap();
        let cases = std::fs::read_to_string(format!("{fixtures}/accept/{family}.jsonl")).unwrap();
        let case = cases.lines().find(|line| line.contains(&format!(r#""id":"{id}""#))).unwrap();
        let case: serde_json::Value = serde_json::from_str(case).unwrap();
        let [request, response] = ["request", "response"].map(|member| case[member].to_string().into_bytes());
        let record = case["order"].is_object().then(|| case["order"].to_string().into_bytes());
        (Order::verify(request, response, &registry, None, record).unwrap(), case)
    }

    #[test]
    fn a_key_that_is_parsed_once_signs_as_its_text_does_and_shows_its_account_alone() {
        let (order, case) = fixture("evm-token-approval-exact");
        let text = case["wallet"]["secret_key"].as_str().unwrap();
        let prepare = || order.prepare(case["wallet"].to_string().into_bytes()).unwrap();
        let key = Key::parse("evm".to_owned(), text.as_bytes().to_vec()).unwrap();
        let (by_text, by_key) = (prepare(), prepare());
        by_text.sign(text.to_owned()).unwrap();
        by_key.sign_with(&key).unwrap();
        assert_eq!(by_key.finish().unwrap().transactions(), by_text.finish().unwrap().transactions());
        let account = key.account().unwrap();
        assert_eq!(account.to_lowercase(), case["request"]["source"]["owner"].as_str().unwrap().to_lowercase());
        assert_eq!((key.family(), key.to_string()), ("evm".to_owned(), format!("Key(evm, {account})")));
        let malformed = error(Key::parse("evm".to_owned(), text.as_bytes()[4..].to_vec()));
        assert!(malformed.starts_with("key_malformed at /key") && !malformed.contains(&text[6..20]), "{malformed}");
        let other = Key::parse("tron".to_owned(), text.as_bytes().to_vec()).unwrap();
        assert!(error(prepare().sign_with(&other)).starts_with("key_mismatch"));
        assert!(error(Key::parse("ethereum".to_owned(), text.as_bytes().to_vec())).starts_with("usage at /family"));
    }

    #[test]
    fn a_newer_registry_is_compared_with_the_pinned_one() {
        let text = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/registry.json")).unwrap();
        let mut newer: serde_json::Value = serde_json::from_slice(&text).unwrap();
        newer["assets"][0]["min_amount"] = "12345".into();
        let (pinned, newer) = (Registry::new(text).unwrap(), Registry::new(newer.to_string().into_bytes()).unwrap());
        assert_eq!(pinned.diff(&pinned), []);
        assert_eq!(pinned.diff(&newer).iter().map(|change| change.field.as_str()).collect::<Vec<_>>(), ["smallest amount"]);
    }

    #[test]
    fn the_payment_of_bundled_calls_is_found_in_their_status() {
        use serde_json::json;

        let (order, case) = fixture("evm-record-evm-v3");
        let swap = &case["order"]["source_swap"];
        let call = order.wallet_calls().unwrap().pop().unwrap();
        let call: serde_json::Value = serde_json::from_str(&call).unwrap();
        // The swap id of the record was computed by another tool; the log is that of version 3 of the contract.
        let initiated = "0x01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65";
        let [id, hash] = ["swap_id", "secret_hash"].map(|member| format!("0x{}", swap[member].as_str().unwrap()));
        let amount: u64 = swap["amount"].as_str().unwrap().parse().unwrap();
        let log = json!({"address": call["to"], "topics": [initiated, id, hash, format!("{amount:#066x}")], "data": "0x"});
        let transaction = format!("0x{}", "77".repeat(32));
        let receipt = json!({"transactionHash": transaction, "status": "0x1", "logs": [log]});
        let find = |status: &serde_json::Value| order.find_payment(status.to_string().into_bytes());
        for status in [receipt.clone(), json!({"status": "CONFIRMED", "receipts": [receipt]})] {
            assert_eq!(find(&status).unwrap(), transaction);
        }
        assert!(error(find(&json!({"status": 100}))).starts_with("transaction_mismatch"));
        assert!(error(find(&json!({"status": 200}))).contains("no receipts"));
        let (other, _) = fixture("bitcoin-p2wpkh");
        assert!(error(other.find_payment(receipt.to_string().into_bytes())).starts_with("unsupported_family"));
    }

    #[test]
    fn the_payment_of_another_account_is_found_on_tron_and_solana() {
        use serde_json::json;

        let (order, case) = fixture("tron-record-native-v3");
        let swap = &case["order"]["source_swap"];
        // The address of the contract in the logs is that of the transaction, without the prefix `41`.
        let contract = case["response"]["result"]["initiate_transaction"]["to"].as_str().unwrap();
        let contract = countersign::tron::Address::parse(contract).unwrap();
        let contract: String = contract.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let initiated = "01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65";
        let [swap_id, secret_hash] = ["swap_id", "secret_hash"].map(|member| swap[member].as_str().unwrap());
        let amount: u64 = swap["amount"].as_str().unwrap().parse().unwrap();
        let topics = |event: &str| json!([event, swap_id, secret_hash, format!("{amount:064x}")]);
        // The destination data is empty: its offset and its length.
        let with_data = topics("380328b26f928a9e51ec19f8e2199a2bce34db266d093d1e0104bce139ed7555");
        let logs = [
            json!({"address": contract, "topics": topics(initiated), "data": ""}),
            json!({"address": contract, "topics": with_data, "data": format!("{:064x}{:064x}", 32, 0)}),
        ];
        let mut info = json!({"id": "77".repeat(32), "blockNumber": 1, "receipt": {"result": "SUCCESS"}, "log": logs});
        assert_eq!(order.find_payment(info.to_string().into_bytes()).unwrap(), "77".repeat(32));
        info["receipt"]["result"] = json!("REVERT");
        assert!(error(order.find_payment(info.to_string().into_bytes())).starts_with("transaction_mismatch"));

        let (order, case) = fixture("solana-native-legacy");
        let transaction = &case["expect"]["artefacts"]["transaction"];
        let mut shown = json!({"slot": 1, "transaction": [transaction["signed"], "base64"], "meta": {"err": null}, "version": "legacy"});
        assert_eq!(order.find_payment(shown.to_string().into_bytes()).unwrap(), transaction["signature"].as_str().unwrap());
        shown["meta"]["err"] = json!({"InstructionError": [0, {"Custom": 1}]});
        assert!(error(order.find_payment(shown.to_string().into_bytes())).starts_with("transaction_mismatch"));
    }

    #[test]
    fn a_lock_that_a_panic_has_poisoned_is_used_up() {
        let (order, case) = fixture("evm-token-approval-exact");
        let unsigned = order.prepare(case["wallet"].to_string().into_bytes()).unwrap();
        assert_eq!(error(unsigned.missing()), "");

        let panicked = std::thread::scope(|scope| scope.spawn(|| unsigned.with::<()>(|_| panic!("a bug"))).join());
        assert!(panicked.is_err());
        for error in [error(unsigned.missing()), error(unsigned.sign(String::new())), error(unsigned.finish())] {
            assert!(error.starts_with("used_up"), "{error}");
        }
    }
}
