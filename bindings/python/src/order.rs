//! The states of an order.

use std::sync::{Mutex, MutexGuard};

use countersign_json::objects::{self, Convert, Documents, Failure};
use pyo3::prelude::*;

use crate::input::{Bytes, Seconds, Text};
use crate::key::KeyOrSecret;
use crate::refusal::raise;
use crate::trust::{Policy, Registry, policy_of};
use crate::values::{Coverage, Line, Matched, Notice, Request, Terms, Transaction};
use crate::wallet::Wallet;

/// A verified order: every byte that would be signed agrees with the request, the registry and the record, or is shown.
///
/// Only `Order.verify` makes one. Immutable and usable from all threads.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Order(countersign::Verified);

#[pymethods]
impl Order {
    /// Verifies what the service returned for an order.
    ///
    /// Args:
    ///     request: The wallet's create-order request, as it was sent.
    ///     response: The service's response, as it came. Do not parse it first: that loses duplicate keys and number spellings.
    ///     registry: What the wallet has pinned.
    ///     policy: The wallet's limits, by default those of `Policy()`.
    ///     record: The order record, where the wallet has it.
    ///
    /// Raises:
    ///     Refusal: At the first member or byte that is malformed, unknown or contradictory.
    #[staticmethod]
    #[pyo3(signature = (request, response, registry, policy = None, record = None))]
    fn verify(
        py: Python<'_>,
        request: Text,
        response: Text,
        registry: &Registry,
        policy: Option<&Policy>,
        record: Option<Text>,
    ) -> PyResult<Self> {
        let policy = policy_of(policy);
        py.detach(|| {
            let documents = Documents::new(request.as_bytes(), response.as_bytes()).with_record(record.as_ref().map(Text::as_bytes));
            objects::verify(&documents, &registry.inner, &policy)
        })
        .map(Self)
        .map_err(raise)
    }

    /// The family that signs, such as `evm`.
    #[getter]
    fn family(&self) -> &'static str {
        self.0.family().name()
    }

    /// The order's id.
    #[getter]
    fn order_id(&self) -> &str {
        self.0.order_id()
    }

    /// Returns the terms that the owner agrees to, as values.
    fn terms(&self) -> Terms {
        objects::terms(&self.0.terms()).convert()
    }

    /// Returns what the owner reads before signing: every value that the response chose.
    fn summary(&self) -> Vec<Line> {
        objects::summary(&self.0.summary()).convert()
    }

    /// Returns what the owner should know.
    fn warnings(&self) -> Vec<Notice> {
        objects::warnings(self.0.warnings()).convert()
    }

    /// Returns which bytes of the response each topic of the summary describes.
    fn coverage(&self) -> Vec<Coverage> {
        objects::coverage(self.0.coverage()).convert()
    }

    /// Checks that there is still time to pay. Call it again right before broadcasting.
    ///
    /// Args:
    ///     now: The time in Unix seconds, such as `time.time()`.
    ///
    /// Raises:
    ///     Refusal: When it is too late.
    ///     ValueError: If the time is negative, above 2^64 seconds or not a number.
    fn check_deadline(&self, now: Seconds) -> PyResult<()> {
        self.0.check_deadline(countersign::chains::UnixTime::from_secs(now.0)).map_err(|refusal| raise(refusal.into()))
    }

    /// Returns what wallets take that choose nonce and fees themselves, as JSON texts.
    ///
    /// On EVM chains these are the parameters of `eth_sendTransaction`, one for each call; on Starknet the calls of
    /// `account.execute`.
    ///
    /// Raises:
    ///     Refusal: With the code `unsupported_family` for a family without such an interface.
    fn wallet_calls(&self) -> PyResult<Vec<String>> {
        objects::wallet_calls(&self.0).map_err(raise)
    }

    /// Returns what a transaction does in this order, such as `approval` or `initiate`.
    ///
    /// Use it with wallets that choose nonce and fees themselves: everything that they may not choose must be as it was verified. What the
    /// owner would have to be warned about is refused: on EVM and Tron another approval above the amount than the verified one, on Tron a
    /// permission or signatures that only the chain can judge. `match_with_warnings` returns it.
    ///
    /// Args:
    ///     transaction: The transaction that the wallet signed or sent, in the form that docs/spec/batch.md of the project lists: on
    ///         EVM chains the JSON that `eth_getTransactionByHash` returns, or the raw bytes in hex.
    ///
    /// Raises:
    ///     Refusal: With the code `transaction_mismatch` and the first difference if it is not part of the order, or with the warnings if
    ///         it is.
    fn matches(&self, transaction: Text) -> PyResult<String> {
        objects::matches(&self.0, transaction.as_bytes()).map_err(raise)
    }

    /// Returns what a transaction does in this order, such as `approval` or `initiate`, and what the wallet changed or added although it may.
    ///
    /// Show the warnings to the owner: the role alone does not say what else was sent.
    ///
    /// Args:
    ///     transaction: As for `matches`.
    ///
    /// Raises:
    ///     Refusal: With the code `transaction_mismatch` and the first difference if it is not part of the order, or with
    ///         `warning_refused` for a warning that the policy refuses.
    fn match_with_warnings(&self, transaction: Text) -> PyResult<Matched> {
        objects::match_with_warnings(&self.0, transaction.as_bytes()).map(Convert::convert).map_err(raise)
    }

    /// Finds the payment of an order by what a transaction did.
    ///
    /// Use it with wallets that send in a form of their own: by a bundler, a relay, the owners of a Safe or the members of a multisig. The
    /// wallet or node that returned the JSON is trusted for this: whether the payment is final, a reader of the source leg decides.
    ///
    /// Args:
    ///     effect: JSON that the wallet or node returned for a method that docs/spec/batch.md of the project lists, such as
    ///         `wallet_getCallsStatus` or `eth_getTransactionReceipt`.
    ///
    /// Returns:
    ///     The id of the transaction that paid, as explorers show it.
    ///
    /// Raises:
    ///     Refusal: With the code `transaction_mismatch` if the transaction failed, is not confirmed or does not show the payment, or with
    ///         `unsupported_family` for a source of a family without such a method.
    fn find_payment(&self, effect: Text) -> PyResult<String> {
        objects::find_payment(&self.0, effect.as_bytes()).map_err(raise)
    }

    /// Adds the wallet's nonce, fees or coins. May be called again, as often as they change.
    ///
    /// Args:
    ///     wallet: The family's wallet context: a dict such as `EvmWallet`, or its JSON as docs/spec/batch.md of the project describes it. A
    ///         `secret_key` in it is not used.
    ///
    /// Raises:
    ///     Refusal: At the member of `/wallet` that is missing, malformed or invalid.
    ///     TypeError: If a member of the dict has a type that no wallet context has, such as `float`.
    fn prepare(&self, py: Python<'_>, wallet: Wallet) -> PyResult<UnsignedOrder> {
        py.detach(|| objects::prepare(&self.0, wallet.as_bytes())).map(UnsignedOrder::new).map_err(raise)
    }

    /// Prepares the gasless path, for which a wallet needs neither nonce nor fees.
    ///
    /// Raises:
    ///     Refusal: With the code `nothing_to_sign` if the order does not offer it.
    fn prepare_gasless(&self, py: Python<'_>) -> PyResult<UnsignedOrder> {
        py.detach(|| objects::prepare_gasless(&self.0)).map(UnsignedOrder::new).map_err(raise)
    }

    fn __repr__(&self) -> String {
        format!("<countersign_swap.Order {}: {}>", self.order_id(), self.family())
    }
}

/// Payloads for any signer, and the signatures that have been attached so far.
///
/// Usable from all threads. After `finish` it is used up: every method raises a `Refusal` with the code `used_up`.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct UnsignedOrder(Mutex<Option<countersign::Unsigned>>);

impl UnsignedOrder {
    pub(crate) const fn new(order: countersign::Unsigned) -> Self {
        Self(Mutex::new(Some(order)))
    }

    /// Locks the order. It is never locked while anything waits for the interpreter lock, so the two cannot deadlock.
    ///
    /// A lock that a panic has poisoned counts as used up: the order may be half changed, and preparing it again is the remedy of both.
    fn lock(&self) -> Result<MutexGuard<'_, Option<countersign::Unsigned>>, Failure> {
        self.0.lock().map_err(|_| Failure::used_up())
    }

    /// Takes the order out, which uses this object up.
    pub(crate) fn take(&self) -> PyResult<countersign::Unsigned> {
        self.lock().and_then(|mut order| order.take().ok_or_else(Failure::used_up)).map_err(raise)
    }

    fn change<T: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut countersign::Unsigned) -> Result<T, Failure> + Send) -> PyResult<T> {
        py.detach(|| change(self.lock()?.as_mut().ok_or_else(Failure::used_up)?)).map_err(raise)
    }

    pub(crate) fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&countersign::Unsigned) -> T + Send) -> PyResult<T> {
        self.change(py, |order| Ok(read(order)))
    }
}

#[pymethods]
impl UnsignedOrder {
    /// The family that signs.
    #[getter]
    fn family(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.read(py, |order| order.family().name())
    }

    /// The order's id.
    #[getter]
    fn order_id(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |order| order.order_id().unwrap_or_default().to_owned())
    }

    /// Returns what the owner reads before signing. The last lines are the digests.
    fn summary(&self, py: Python<'_>) -> PyResult<Vec<Line>> {
        self.read(py, |order| objects::summary(&order.summary()).convert())
    }

    /// Returns what the owner should know.
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<Notice>> {
        self.read(py, |order| objects::warnings(order.warnings()).convert())
    }

    /// Returns what signers are asked for, in the order in which payloads are sent.
    fn requests(&self, py: Python<'_>) -> PyResult<Vec<Request>> {
        self.read(py, |order| objects::requests(order).convert())
    }

    /// Returns the names of the requests that still need a signature.
    fn missing(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, |order| order.missing().iter().map(ToString::to_string).collect())
    }

    /// Signs with a local key whatever that key can sign. Prefer an external signer and `attach`.
    ///
    /// Args:
    ///     key: A `Key`, which is parsed once; or the key in its family's usual text form, or as bytes: 32 bytes are the raw key (on
    ///         Solana the seed, or 64 bytes the keypair), and any other number of bytes is the text in UTF-8. The library's own copies are
    ///         wiped. Python cannot wipe a `str` or `bytes`: pass a `bytearray` and clear it afterwards.
    ///
    /// Raises:
    ///     Refusal: With the code `key_malformed` or `key_mismatch`, never with any part of the key.
    fn sign(&self, py: Python<'_>, key: KeyOrSecret) -> PyResult<()> {
        self.change(py, |order| match &key {
            KeyOrSecret::Key(key) => objects::sign_with(order, &key.get().0),
            KeyOrSecret::Secret(secret) => {
                let key = secret.to_key(order.family())?;
                objects::sign(order, &key)
            }
        })
    }

    /// Proves a signature of an external signer and attaches it. A signature that is refused changes nothing.
    ///
    /// Args:
    ///     name: The name of the request.
    ///     signature: The family's usual text form, or the text of a JSON object as docs/spec/batch.md describes it.
    ///
    /// Raises:
    ///     Refusal: If the signature is malformed or not the signer's over exactly this digest.
    fn attach(&self, py: Python<'_>, name: Text, signature: Text) -> PyResult<()> {
        let (name, signature) = (name.as_str()?, signature.as_str()?);
        self.change(py, |order| objects::attach(order, name, signature))
    }

    /// Takes the signatures out of a transaction that an external signer has signed, proves and attaches them.
    ///
    /// A transaction that is refused changes nothing.
    ///
    /// Args:
    ///     transaction: The bytes, in the form that docs/spec/batch.md of the project lists: on EVM chains EIP-2718, on Solana the wire
    ///         format, on Bitcoin-like chains a PSBT.
    ///
    /// Returns:
    ///     The names of the requests whose signatures it had.
    ///
    /// Raises:
    ///     Refusal: With the code `transaction_mismatch` or `psbt_mismatch` if it is not one of the requested payloads, or as `attach`.
    fn attach_transaction(&self, py: Python<'_>, transaction: Bytes) -> PyResult<Vec<String>> {
        self.change(py, |order| objects::attach_transaction(order, transaction.as_bytes()))
    }

    /// Returns the artefacts with the signatures so far: the JSON of `countersign batch`.
    fn artefacts(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, objects::artefacts)
    }

    /// Combines the payloads with their signatures. This uses the order up.
    ///
    /// Raises:
    ///     Refusal: With the code `signature_missing`. The order can then still be signed.
    fn finish(&self, py: Python<'_>) -> PyResult<SignedOrder> {
        py.detach(|| {
            let mut slot = self.lock()?;
            let order = slot.take().ok_or_else(Failure::used_up)?;
            objects::finish(order).map_err(|incomplete| {
                let (order, failure) = *incomplete;
                *slot = Some(order);
                failure
            })
        })
        .map(SignedOrder)
        .map_err(raise)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let describe = |order: &countersign::Unsigned| {
            let missing: Vec<_> = order.missing().iter().map(ToString::to_string).collect();
            let missing = if missing.is_empty() { "nothing".to_owned() } else { missing.join(", ") };
            format!("{}: {}, missing {missing}", order.order_id().unwrap_or_default(), order.family().name())
        };
        format!("<countersign_swap.UnsignedOrder {}>", self.read(py, describe).unwrap_or_else(|_| "that is used up".to_owned()))
    }
}

/// An order with all its signatures. Immutable and usable from all threads.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct SignedOrder(countersign::Signed);

#[pymethods]
impl SignedOrder {
    /// The order's id.
    #[getter]
    fn order_id(&self) -> &str {
        self.0.order_id().unwrap_or_default()
    }

    /// Returns what the owner should know.
    fn warnings(&self) -> Vec<Notice> {
        objects::warnings(self.0.warnings()).convert()
    }

    /// Returns the transactions in the order in which they are broadcast.
    fn transactions(&self) -> Vec<Transaction> {
        objects::transactions(&self.0).convert()
    }

    /// Returns the signature that the service is sent on the gasless path; None where the wallet chose another path.
    fn gasless(&self) -> Option<String> {
        objects::gasless(&self.0)
    }

    fn __repr__(&self) -> String {
        let mut parts: Vec<_> = self.0.broadcasts().iter().map(|transaction| format!("{} {}", transaction.role, transaction.id)).collect();
        if self.0.gasless().is_some() {
            parts.push("gasless".to_owned());
        }
        format!("<countersign_swap.SignedOrder {}: {}>", self.order_id(), parts.join(", "))
    }
}
