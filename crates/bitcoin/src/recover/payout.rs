//! The destination of recovered coins, and the payment of the fee.

use bitcoin::{Amount, ScriptBuf, Sequence, TxOut};
use countersign_core::{Code, Refusal, TypedValue, U256};

use super::{Funding, FundingSource};
use crate::address::{Chain, Destination};
use crate::summary::format_coins;
use crate::transaction::{ChangePlan, ChangeRule, Draft, FeeRate, Input, KeyOrigin, Origins, Payment, PaymentPlan, Utxo, check_coins};

/// The outputs of the HTLC to spend, the destination of their coins, and the source of the fee.
///
/// ```
/// use countersign::bitcoin::FeeRate;
/// use countersign::bitcoin::recover::{Fee, Payout};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let funding =
///     "a8d8d2b9b4d3d3b1d2e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f80:0:50000"
///         .parse()?;
/// let payout = Payout::new(
///     [funding],
///     "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
///     Fee::Deducted(FeeRate::from_whole(3)),
/// );
/// # let _ = payout;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Payout {
    /// The outputs of the HTLC, of which [`Recovery::divide`](super::Recovery::divide) chooses those that are spent.
    pub fundings: Vec<Funding>,
    /// The destination of the coins.
    pub to: Destination,
    /// How the fee is paid.
    pub fee: Fee,
    /// Derivations of keys, among them that of the HTLC's signer, for hardware signers.
    pub origins: Vec<KeyOrigin>,
    /// Where the outputs come from.
    pub source: FundingSource,
    /// What the user accepts in spite of a rule.
    pub accepts: Exceptions,
}

/// What the user of a recovery accepts in spite of a rule. The result has a warning for each rule that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_structs, reason = "one member for each rule")]
pub struct Exceptions {
    /// A redemption for less than the amount, or of several outputs, although the secret becomes public: [`Code::SecretForLess`].
    pub less: bool,
    /// A redemption that not every node relays, although nodes see the secret: [`Code::FeeTooLow`].
    pub low_fee: bool,
    /// A fee that is higher than the payout: [`Code::FeeAbovePayout`].
    pub high_fee: bool,
}

impl Payout {
    /// Creates a payout of outputs that the caller gives, without derivations of keys.
    #[must_use]
    pub fn new(fundings: impl Into<Vec<Funding>>, to: impl Into<Destination>, fee: Fee) -> Self {
        Self {
            fundings: fundings.into(),
            to: to.into(),
            fee,
            origins: Vec::new(),
            source: FundingSource::Caller,
            accepts: Exceptions::default(),
        }
    }

    /// Sets where the outputs come from.
    #[must_use]
    pub const fn with_source(mut self, source: FundingSource) -> Self {
        self.source = source;
        self
    }

    /// Sets what the user accepts in spite of a rule.
    #[must_use]
    pub const fn with_exceptions(mut self, accepts: Exceptions) -> Self {
        self.accepts = accepts;
        self
    }

    /// Adds derivations of keys. The PSBT contains the one of the HTLC's signer; others are ignored.
    #[must_use]
    pub fn with_origins(mut self, origins: impl IntoIterator<Item = KeyOrigin>) -> Self {
        self.origins.extend(origins);
        self
    }
}

/// How the fee of a recovery is paid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fee {
    /// The fee is deducted from the payout, at this rate in sat/vB.
    Deducted(FeeRate),
    /// Other coins of the wallet pay the fee.
    Paid(FeeCoins),
}

/// Coins of the wallet that pay the fee of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeeCoins {
    /// Fee rate in sat/vB.
    pub fee_rate: FeeRate,
    /// The coins, all of which are spent.
    pub utxos: Vec<Utxo>,
    /// The address for the change, on the same chain.
    pub change_address: Destination,
    /// Derivations of the keys of the coins and the change, for hardware signers.
    pub origins: Vec<KeyOrigin>,
}

impl FeeCoins {
    /// Creates the fee payment from coins, all of which are spent.
    #[must_use]
    pub fn new(utxos: Vec<Utxo>, change_address: impl Into<Destination>, fee_rate: FeeRate) -> Self {
        Self { fee_rate, utxos, change_address: change_address.into(), origins: Vec::new() }
    }

    /// Adds derivations of the keys of the coins and the change.
    #[must_use]
    pub fn with_origins(mut self, origins: impl IntoIterator<Item = KeyOrigin>) -> Self {
        self.origins.extend(origins);
        self
    }

    /// Creates a payment from inputs that pay the outputs exactly, with the coins as further inputs and the change as a further output.
    pub(super) fn add_to(&self, chain: Chain, mut inputs: Vec<Input>, mut outputs: Vec<TxOut>) -> Result<Payment, Refusal> {
        let held = check_coins(&self.utxos, chain)?;
        let is_spent = |utxo: &Utxo| inputs.iter().any(|input| input.outpoint == utxo.outpoint());
        if let Some(index) = self.utxos.iter().position(is_spent) {
            let reason = "the coin is an output of the HTLC that the recovery already spends";
            return Err(Refusal::new(Code::UtxoTwice, format!("/utxos/{index}/txid")).with_reason(reason));
        }
        let script = self.change_address.script(chain, "/change_address")?;
        if inputs.iter().any(|input| input.prevout.script_pubkey == script) {
            return Err(Refusal::new(Code::ChangeToDeposit, "/change_address"));
        }
        let origins = Origins::new(&self.origins);
        inputs.extend(self.utxos.iter().map(|utxo| Input::from_utxo(utxo, Sequence::ENABLE_RBF_NO_LOCKTIME, &origins)));
        let draft = Draft::new(inputs.iter().map(|input| (input.prevout.value, input.weight())), &outputs);
        let plan = ChangePlan { chain, rule: ChangeRule::Standard, fee_rate: self.fee_rate, script: &script };
        let cost = plan.settle(&draft).map_err(|short| {
            let needed = short.needed.to_sat().saturating_sub(draft.paid.to_sat());
            Refusal::new(Code::InsufficientFunds, "/utxos")
                .with_expected(TypedValue::AtLeast(U256::from(needed)))
                .with_actual(held.to_sat())
        })?;
        let change = cost.change.is_some().then_some(outputs.len());
        outputs.extend(cost.change);
        let change_origin = origins.of_script(&script);
        let (fee, weight) = (cost.fee, cost.weight);
        Payment::new(PaymentPlan { chain, inputs, outputs, change, change_origin, fee, fee_rate: self.fee_rate, weight })
    }
}

impl Fee {
    /// Returns the fee rate.
    #[must_use]
    pub const fn rate(&self) -> FeeRate {
        match self {
            Self::Deducted(fee_rate) => *fee_rate,
            Self::Paid(coins) => coins.fee_rate,
        }
    }

    /// Creates the payment of an HTLC's inputs, which are worth `total`, to a script.
    pub(super) fn pay(&self, chain: Chain, inputs: Vec<Input>, total: Amount, script: ScriptBuf) -> Result<Payment, Refusal> {
        let fee_rate = match self {
            Self::Paid(coins) => {
                return coins.add_to(chain, inputs, vec![TxOut { value: total, script_pubkey: script }]);
            }
            Self::Deducted(fee_rate) => *fee_rate,
        };
        let (draft, plan) = (draft(&inputs), plan(chain, fee_rate, &script));
        let settled = plan.settle(&draft).ok().and_then(|cost| Some((cost.fee, cost.weight, cost.change?)));
        let (fee, weight, paid) = settled.ok_or_else(|| {
            let needed = TypedValue::AtLeast(U256::from(plan.needed_with_change(&draft).to_sat()));
            let fee = fee_rate.fee(plan.vsize_with_change(&draft)).unwrap_or(Amount::MAX);
            let (fee, held) = (format_coins(fee, chain), format_coins(total, chain));
            let reason = format!(
                "at {fee_rate} sat/vB the fee would be {fee} of {held}, which leaves nothing that nodes relay (other coins can pay the fee)"
            );
            Refusal::new(Code::FeeAbovePayout, "/fee_rate").with_reason(reason).with_expected(needed).with_actual(total.to_sat())
        })?;
        Payment::new(PaymentPlan { chain, inputs, outputs: vec![paid], change: None, change_origin: None, fee, fee_rate, weight })
    }
}

/// Returns the virtual size of the transaction that pays an HTLC's inputs to a script, with the fee deducted.
pub(super) fn vsize(chain: Chain, inputs: &[Input], script: &ScriptBuf) -> u64 {
    plan(chain, FeeRate::from_whole(1), script).vsize_with_change(&draft(inputs))
}

/// The whole payout is computed as change, because nothing else is paid.
fn draft(inputs: &[Input]) -> Draft {
    Draft::new(inputs.iter().map(|input| (input.prevout.value, input.weight())), [])
}

const fn plan(chain: Chain, fee_rate: FeeRate, script: &ScriptBuf) -> ChangePlan<'_> {
    ChangePlan { chain, rule: ChangeRule::Standard, fee_rate, script }
}
