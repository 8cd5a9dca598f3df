//! How an order ends without the service: recoveries, and evidence from the chains.

use countersign_json::objects::{self, Convert, Documents};
use pyo3::prelude::*;

use crate::input::{Seconds, Secret, Text};
use crate::order::UnsignedOrder;
use crate::reader::{Quorum, Reader};
use crate::refusal::raise;
use crate::trust::{Policy, Registry, policy_of};
use crate::values::{Decimal, Htlc, HtlcTerms, Notice, Proof};
use crate::wallet::Wallet;

/// A refund or a redemption from an order record alone.
///
/// A record by itself is only coherent: its parties may be anybody's. Verify it first (`Record.verify`), or show the owner who
/// is paid.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Recovery(countersign::recover::Recovery);

#[pymethods]
impl Recovery {
    /// Returns the recovery that refunds a leg after its timelock.
    ///
    /// Args:
    ///     record: The order record.
    ///     leg: `source` or `destination`.
    ///     registry: What the wallet has pinned.
    ///
    /// Raises:
    ///     Refusal: If the record is malformed or contradicts the registry or itself.
    ///     ValueError: If the leg is another word.
    #[staticmethod]
    fn refund(record: Text, leg: Text, registry: &Registry) -> PyResult<Self> {
        objects::refund(record.as_bytes(), leg.as_str()?, &registry.inner).map(Self).map_err(raise)
    }

    /// Returns the recovery that redeems a leg with the secret. Broadcasting it makes the secret public: do it
    /// at once, or check the chain again before.
    ///
    /// Args:
    ///     record: The order record.
    ///     leg: `source` or `destination`.
    ///     secret: Its 32 bytes, or 64 hex digits with or without `0x`. The library's own copies are wiped.
    ///     registry: What the wallet has pinned.
    ///
    /// Raises:
    ///     Refusal: As for `refund`, and if the secret does not match the record's hash. It never has any part of the secret.
    ///     ValueError: If the leg is another word.
    #[staticmethod]
    fn redeem(record: Text, leg: Text, secret: Secret, registry: &Registry) -> PyResult<Self> {
        let secret = secret.to_secret().map_err(raise)?;
        objects::redeem(record.as_bytes(), leg.as_str()?, &secret, &registry.inner).map(Self).map_err(raise)
    }

    /// The family that signs.
    #[getter]
    fn family(&self) -> &'static str {
        self.0.family().name()
    }

    /// The order's id, as the record has it.
    #[getter]
    fn order_id(&self) -> String {
        self.0.terms().order_id
    }

    /// What it does: `refund` or `redeem`.
    #[getter]
    fn role(&self) -> String {
        self.0.terms().role.to_string()
    }

    /// Who is paid; on Bitcoin-like chains the x-only key that takes the coins.
    #[getter]
    fn payee(&self) -> String {
        self.0.terms().payee.to_string()
    }

    /// The amount of the leg in base units, before any fee.
    #[getter]
    fn amount(&self) -> Decimal {
        Decimal(self.0.terms().amount)
    }

    /// Adds the wallet's nonce, fees or coins. May be called again, as often as they change.
    ///
    /// Args:
    ///     wallet: The wallet context of a recovery: a dict such as `EvmRecovery`, or its JSON as docs/spec/batch.md of the project
    ///         describes it.
    ///     policy: The wallet's limits, by default those of `Policy()`.
    ///
    /// Raises:
    ///     Refusal: At the member of `/wallet` that is missing, unknown, malformed or invalid.
    ///     TypeError: If a member of the dict has a type that no wallet context has, such as `float`.
    #[pyo3(signature = (wallet, policy = None))]
    fn prepare(&self, py: Python<'_>, wallet: Wallet, policy: Option<&Policy>) -> PyResult<UnsignedOrder> {
        let policy = policy_of(policy);
        py.detach(|| objects::prepare_recovery(&self.0, wallet.as_bytes(), &policy)).map(UnsignedOrder::new).map_err(raise)
    }

    fn __repr__(&self) -> String {
        let terms = self.0.terms();
        format!("<countersign_swap.Recovery {}: {} of {} on {} to {}>", terms.order_id, terms.role, terms.amount, terms.chain, terms.payee)
    }
}

/// The verified record of an order that is under way. Nothing to sign comes out of it.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Record(objects::Record);

#[pymethods]
impl Record {
    /// Verifies the record of an order that may be funded, redeemed or refunded already.
    ///
    /// Args:
    ///     request: The wallet's create-order request.
    ///     response: The service's response.
    ///     record: The order record.
    ///     registry: What the wallet has pinned.
    ///     policy: The wallet's limits, by default those of `Policy()`.
    ///
    /// Raises:
    ///     Refusal: At the first member or byte that is malformed, unknown or contradictory.
    #[staticmethod]
    #[pyo3(signature = (request, response, record, registry, policy = None))]
    fn verify(py: Python<'_>, request: Text, response: Text, record: Text, registry: &Registry, policy: Option<&Policy>) -> PyResult<Self> {
        let policy = policy_of(policy);
        py.detach(|| {
            let documents = Documents::new(request.as_bytes(), response.as_bytes()).with_record(Some(record.as_bytes()));
            objects::verify_record(&documents, &registry.inner, &policy)
        })
        .map(Self)
        .map_err(raise)
    }

    /// The order's id.
    #[getter]
    fn order_id(&self) -> &str {
        &self.0.verified.terms.order_id
    }

    /// Returns what the HTLC of a leg must hold, and where it is.
    ///
    /// Args:
    ///     leg: `source` or `destination`.
    ///
    /// Raises:
    ///     ValueError: If the leg is another word.
    fn terms(&self, leg: Text) -> PyResult<HtlcTerms> {
        objects::htlc_terms(&self.0, leg.as_str()?).map(Convert::convert).map_err(raise)
    }

    /// Returns what the owner should know.
    fn warnings(&self) -> Vec<Notice> {
        objects::warnings(&self.0.verified.warnings).convert()
    }

    /// Creates the reader of the HTLC of a leg for one endpoint. It says what to ask; the caller's own connection sends it.
    ///
    /// Args:
    ///     leg: `source` or `destination`.
    ///     endpoint: The endpoint's name in the quorum.
    ///     known: What `Reader.known` was after the last reading of this endpoint. It notices an endpoint that falls behind.
    ///     protocol: Bitcoin-like chains: `esplora` for an Esplora server, `rpc` for a node's own RPC.
    ///
    /// Raises:
    ///     Refusal: At the member of `/known` that is malformed.
    ///     ValueError: If the leg or the protocol is another word.
    #[pyo3(signature = (leg, endpoint, *, known = None, protocol = None))]
    fn reader(&self, leg: Text, endpoint: Text, known: Option<Text>, protocol: Option<Text>) -> PyResult<Reader> {
        let protocol = protocol.as_ref().map(Text::as_str).transpose()?;
        let (endpoint, known) = (endpoint.as_str()?, known.as_ref().map_or(&b""[..], Text::as_bytes));
        let reader = self.0.reader(leg.as_str()?, endpoint, known, protocol).map_err(raise)?;
        Ok(Reader::new(endpoint, reader))
    }

    /// Compares what the endpoints show of the destination with the verified terms, and returns the proof that it is funded.
    ///
    /// Args:
    ///     quorum: What the readers of the destination have shown.
    ///     now: The time in Unix seconds, such as `time.time()`.
    ///
    /// Raises:
    ///     Refusal: While the secret must not be revealed, with the blame `chain`.
    ///     ValueError: If the time is negative, above 2^64 seconds or not a number.
    fn judge(&self, quorum: &Quorum, now: Seconds) -> PyResult<Proof> {
        self.0.judge(&quorum.lock(), now.0).map(Convert::convert).map_err(raise)
    }

    /// Returns the state of the HTLC of a leg, on which enough endpoints agree. For display: only `judge` decides about the secret.
    ///
    /// Args:
    ///     leg: `source` or `destination`.
    ///     quorum: What the readers of that leg have shown.
    ///
    /// Raises:
    ///     Refusal: If too few endpoints agree, with the blame `chain`.
    ///     ValueError: If the leg is another word.
    fn state(&self, leg: Text, quorum: &Quorum) -> PyResult<Htlc> {
        self.0.state(leg.as_str()?, &quorum.lock()).map(Convert::convert).map_err(raise)
    }

    fn __repr__(&self) -> String {
        format!("<countersign_swap.Record {}>", self.order_id())
    }
}
