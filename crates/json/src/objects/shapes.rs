//! How the structs that the objects return are made from the library's values, and their errors.

use countersign::reader::{Fault, Miscount};
use countersign::{
    Blame, BroadcastTransaction, Refusal, SigningRequest, Summary, U256, Warnings,
    evidence::{Hold, HtlcState, LockedHtlc, ObservedAt},
    report::{ByteCoverage, Hex, OrderStage, OrderTerms, TypedValue},
};
use serde::Serialize;

use super::fields::{Coverage, Decimal, Htlc, HtlcTerms, Line, NativePayload, Notice, Request, Terms, Transaction, Value};

const CALLER: &str = "caller";
const USAGE: &str = "usage";

/// Why something was refused. A binding turns it into its language's own error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// The stable code: of a [`countersign::Code`], of a [`Hold`], or `used_up`, `usage` or `signature_missing`.
    pub code: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
    /// The location: a JSON pointer, with a byte range behind `#` where bytes of a payload are meant. Empty where the whole argument is
    /// meant.
    pub at: Box<str>,
    /// What would have been accepted, where that can be stated.
    pub expected: Option<String>,
    /// What came, where it can be shown.
    pub actual: Option<String>,
    /// Who has to act: `service`, `caller`, `unsupported` or `bug`; `chain` where only waiting or the other party can help.
    pub blame: &'static str,
}

impl Failure {
    /// Returns whether an argument was invalid before anything was judged, as [`Failure::usage`] makes it.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        self.code == USAGE
    }

    /// Creates a failure without a location. `blame` is one of the words of [`Failure::blame`].
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>, blame: &'static str) -> Self {
        Self { code, message: message.into(), at: Box::default(), expected: None, actual: None, blame }
    }

    /// Creates the failure of an object that an earlier call has consumed, with the code `used_up`.
    #[must_use]
    pub fn used_up() -> Self {
        Self::new("used_up", "the order is already finished; prepare the verified order again", CALLER)
    }

    /// Creates the failure of an invalid argument, with the code `usage`.
    #[must_use]
    pub fn usage(at: impl Into<Box<str>>, expected: impl Into<String>) -> Self {
        let failure = Self::new(USAGE, "the argument is invalid; correct it", CALLER);
        Self { at: at.into(), expected: Some(expected.into()), ..failure }
    }

    pub(super) fn signature_missing(message: String) -> Self {
        Self::new("signature_missing", format!("{message}; attach them first"), CALLER)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, message, at, expected, actual, .. } = self;
        let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
        write!(f, "{code}{at}: {message}")?;
        for (name, value) in [("expected", expected), ("got", actual)] {
            if let Some(value) = value {
                write!(f, "; {name} {value}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::at_stage(&refusal, OrderStage::BeforePaying)
    }
}

impl Failure {
    /// Creates the failure of a refusal with the remedy of a stage.
    #[must_use]
    pub fn at_stage(refusal: &Refusal, stage: OrderStage) -> Self {
        let blame = match refusal.blame() {
            Blame::Service => "service",
            Blame::Caller => CALLER,
            Blame::Unsupported => "unsupported",
            _ => "bug",
        };
        Self {
            at: refusal.location().into(),
            expected: refusal.expected().map(ToString::to_string),
            actual: refusal.actual().map(ToString::to_string),
            ..Self::new(refusal.code().name(), refusal.at_stage(stage).message(), blame)
        }
    }
}

impl From<Hold> for Failure {
    fn from(hold: Hold) -> Self {
        let advice = if hold.is_transient() { "do not reveal the secret; check again later" } else { "do not reveal the secret" };
        Self::new(hold.code().name(), format!("{hold}; {advice}"), "chain")
    }
}

impl From<&Fault> for Failure {
    fn from(fault: &Fault) -> Self {
        Self::new(fault.code().name(), format!("{fault}; the endpoint counts as silent"), "chain")
    }
}

impl From<Miscount> for Failure {
    fn from(miscount: Miscount) -> Self {
        let Miscount { expected, actual, .. } = miscount;
        Self { actual: Some(actual.to_string()), ..Self::usage("/answers", format!("{expected}, one for each request")) }
    }
}

impl From<&TypedValue> for Value {
    fn from(value: &TypedValue) -> Self {
        let (kind, number, unit, decimals) = match value {
            TypedValue::Number(number) => ("number", Some(*number), None, None),
            TypedValue::AtLeast(bound) => ("at_least", Some(*bound), None, None),
            TypedValue::AtMost(bound) => ("at_most", Some(*bound), None, None),
            TypedValue::Amount(amount) => ("amount", Some(amount.base_units), Some(amount.symbol.clone()), Some(amount.decimals)),
            TypedValue::Timelock(timelock) => ("timelock", Some(U256::from(timelock.units)), Some(timelock.unit().to_owned()), None),
            TypedValue::Account(_) => ("account", None, None, None),
            TypedValue::Hash(_) => ("hash", None, None, None),
            _ => ("text", None, None, None),
        };
        Self { kind: kind.to_owned(), text: value.to_string(), number: number.map(Decimal), unit, decimals }
    }
}

/// Returns the lines of a summary.
#[must_use]
pub fn summary(summary: &Summary) -> Vec<Line> {
    let line = |line: &countersign::report::Line| Line {
        topic: line.topic.title().to_owned(),
        text: line.text.clone(),
        severity: line.severity.to_string(),
        values: line.values.iter().map(Value::from).collect(),
    };
    summary.lines().iter().map(line).collect()
}

/// Returns the warnings.
#[must_use]
pub fn warnings(warnings: &Warnings) -> Vec<Notice> {
    let notice = |warning: &countersign::Warning| Notice {
        code: warning.code().name().to_owned(),
        message: warning.message(),
        severity: warning.severity().to_string(),
    };
    warnings.list().iter().map(notice).collect()
}

/// Returns which bytes of the response each line of the summary describes.
#[must_use]
pub fn coverage(coverage: Vec<ByteCoverage>) -> Vec<Coverage> {
    let wide = |position: usize| u64::try_from(position).unwrap_or(u64::MAX);
    let covered = |covered: ByteCoverage| Coverage {
        topic: covered.topic.title().to_owned(),
        at: covered.at,
        start: covered.bytes.map(|(start, _)| wide(start)),
        end: covered.bytes.map(|(_, end)| wide(end)),
        what: covered.what.to_owned(),
    };
    coverage.into_iter().map(covered).collect()
}

/// Returns the terms of a verified order.
#[must_use]
pub fn terms(terms: &OrderTerms<'_>) -> Terms {
    let account = |account: Option<&countersign::chains::Account>| account.map(ToString::to_string);
    Terms {
        order_id: terms.order_id.to_owned(),
        family: terms.family.name().to_owned(),
        pay: Value::from(&terms.pay.clone().into()),
        source_chain: terms.source_chain_title.to_owned(),
        receive: Value::from(&terms.receive.clone().into()),
        destination_chain: terms.destination_chain_title.to_owned(),
        payout: terms.payout.map(str::to_owned),
        initiator: account(terms.initiator),
        redeemer: account(terms.redeemer),
        solver_id: terms.solver_id.map(str::to_owned),
        timelock: terms.timelock.map(|timelock| Value::from(&timelock.into())),
        secret_hash: terms.secret_hash.map(|hash| hash.to_string()),
    }
}

impl Request {
    pub(super) fn new<P>(native: NativePayload, request: SigningRequest<P>) -> Self {
        let SigningRequest { id, signer, scheme, message, digest, .. } = request;
        Self { name: id.to_string(), signer, scheme: scheme.name().to_owned(), payload: Hex(message), digest: Hex(digest), native }
    }
}

impl From<BroadcastTransaction> for Transaction {
    fn from(broadcast: BroadcastTransaction) -> Self {
        let BroadcastTransaction { role, id, payload, spends, .. } = broadcast;
        Self { role: role.to_string(), id, payload, spends }
    }
}

/// Describes the terms of an HTLC. What stores the swap is not in the terms.
pub(super) fn htlc_terms(terms: &countersign::evidence::HtlcTerms) -> HtlcTerms {
    let address = countersign::chains::Account::to_string;
    HtlcTerms {
        chain: terms.chain.clone(),
        family: terms.family.name().to_owned(),
        asset: terms.asset.to_string(),
        htlc: terms.htlc.as_ref().map(address),
        htlc_registry: terms.htlc_registry.as_ref().map(address),
        token: terms.token.clone(),
        generation: terms.generation.map(|generation| generation.name().to_owned()),
        swap_id: terms.swap_id.clone(),
        account: None,
        vault: None,
        initiator: address(&terms.initiator),
        redeemer: address(&terms.redeemer),
        amount: Decimal(terms.amount),
        timelock: terms.timelock,
        unit: terms.family.timelock_unit().to_owned(),
        unit_millis: terms.pace.nominal,
        secret_hash: terms.secret_hash.to_string(),
    }
}

/// Describes the state of an HTLC that enough endpoints agree on.
pub(super) fn htlc(state: &HtlcState, seen: &ObservedAt, is_final: bool) -> Htlc {
    let ObservedAt { height, depth, agreed, needed, .. } = *seen;
    let named = |state: &str| Htlc { state: state.to_owned(), height: height.get(), depth, is_final, agreed, needed, ..Htlc::default() };
    match state {
        HtlcState::Absent => named("absent"),
        HtlcState::Locked(locked) => locked_htlc(named("locked"), locked),
        HtlcState::Redeemed { secret, transaction } => {
            Htlc { secret: secret.map(hex::encode), transaction: transaction.clone(), ..named("redeemed") }
        }
        HtlcState::Refunded { transaction } => Htlc { transaction: transaction.clone(), ..named("refunded") },
        HtlcState::Unclear(why) => Htlc { reason: Some(why.clone()), ..named("unclear") },
        _ => named("unclear"),
    }
}

fn locked_htlc(named: Htlc, locked: &LockedHtlc) -> Htlc {
    Htlc {
        initiator: Some(locked.initiator.to_string()),
        redeemer: Some(locked.redeemer.to_string()),
        amount: Some(Decimal(locked.amount)),
        token: locked.token.clone(),
        secret_hash: locked.secret_hash.map(|hash| hash.to_string()),
        timelock: Some(locked.timelock),
        elapsed: Some(locked.elapsed),
        covered: Some(locked.covered),
        ..named
    }
}
