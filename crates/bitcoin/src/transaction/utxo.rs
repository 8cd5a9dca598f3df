//! The wallet's unspent outputs: their script types, the weight of spending them, and what is needed to sign for them.

use std::sync::Arc;

use bitcoin::consensus::encode;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, Transaction, TxOut, Txid, XOnlyPublicKey};
use countersign_core::{Code, ParseError, Refusal, number};
use serde::{Deserialize, Serialize};

use crate::address::{script_hash, taproot_key};

/// An unspent output of the wallet.
///
/// ```
/// use countersign::bitcoin::bitcoin::{Amount, ScriptBuf, TxOut};
/// use countersign::bitcoin::{Spend, Utxo};
///
/// let outpoint =
///     "a8d8d2b9b4d3d3b1d2e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f80:1".parse()?;
/// let script_pubkey =
///     ScriptBuf::from_hex("0014751e76e8199196d454941c45d1b3a323f1433bd6")?;
/// let utxo =
///     Utxo::new(outpoint, TxOut { value: Amount::from_sat(50_000), script_pubkey })?;
/// assert_eq!(*utxo.spend(), Spend::P2wpkh);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UtxoText", into = "UtxoText")]
pub struct Utxo {
    outpoint: OutPoint,
    output: TxOut,
    spend: Spend,
    previous: Option<Arc<Transaction>>,
}

/// The serialized form of an output: scripts and transactions are hex.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UtxoText {
    outpoint: String,
    value: u64,
    script_pubkey: String,
    redeem_script: Option<String>,
    previous_tx: Option<String>,
}

impl From<Utxo> for UtxoText {
    fn from(Utxo { outpoint, output, spend, previous }: Utxo) -> Self {
        let redeem_script = if let Spend::P2shP2wpkh { redeem_script } = spend { Some(redeem_script.to_hex_string()) } else { None };
        Self {
            outpoint: outpoint.to_string(),
            value: output.value.to_sat(),
            script_pubkey: output.script_pubkey.to_hex_string(),
            redeem_script,
            previous_tx: previous.map(|previous| encode::serialize_hex(&*previous)),
        }
    }
}

impl TryFrom<UtxoText> for Utxo {
    type Error = Refusal;

    /// Checks the output as [`Utxo::from_parts`] does.
    fn try_from(text: UtxoText) -> Result<Self, Refusal> {
        let malformed = |location: &'static str| Refusal::new(Code::WrongType, location);
        let script = |text: &str, location| ScriptBuf::from_hex(text).map_err(|_| malformed(location));
        let outpoint = text.outpoint.parse().map_err(|_| malformed("/outpoint"))?;
        let output = TxOut { value: Amount::from_sat(text.value), script_pubkey: script(&text.script_pubkey, "/script_pubkey")? };
        let redeem_script = text.redeem_script.map(|text| script(&text, "/redeem_script")).transpose()?;
        let previous = text.previous_tx.map(|text| encode::deserialize_hex(&text).map_err(|_| malformed("/previous_tx"))).transpose()?;
        Self::from_parts(outpoint, output, redeem_script, previous)
    }
}

/// How an output of the wallet is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spend {
    /// Pay to witness public key hash.
    P2wpkh,
    /// Pay to taproot, spent by the key path.
    P2tr {
        /// The output key, which signs: the internal key with its tweak.
        output_key: XOnlyPublicKey,
    },
    /// P2wpkh nested in p2sh.
    P2shP2wpkh {
        /// `OP_0 <key hash>`, the script whose hash is in the output.
        redeem_script: ScriptBuf,
    },
    /// Pay to public key hash. The signature does not commit to the amount, so the transaction that created the output is needed to
    /// prove it.
    P2pkh,
}

impl Spend {
    /// Returns the weight of the input in weight units, with signatures of the maximal length. The outpoint and the sequence are 160 of
    /// them, the scripts and the witness the rest.
    #[must_use]
    pub const fn weight(&self) -> u64 {
        match self {
            Self::P2wpkh => 272,
            Self::P2tr { .. } => 230,
            Self::P2shP2wpkh { .. } => 364,
            // Includes one weight unit for the empty witness that the input has beside segwit inputs.
            Self::P2pkh => 593,
        }
    }
}

impl Utxo {
    /// Creates a p2wpkh or p2tr output.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoUnsupported`] for a script of another kind, [`Code::MissingField`] for p2sh and p2pkh, which need
    /// [`Utxo::with_redeem_script`] or [`Utxo::with_previous_tx`].
    pub fn new(outpoint: OutPoint, output: TxOut) -> Result<Self, Refusal> {
        Self::from_parts(outpoint, output, None, None)
    }

    /// Creates an output that is p2wpkh nested in p2sh.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoMismatch`] if the hash in the output is that of another script, or [`Code::UtxoUnsupported`] if the script is not
    /// p2wpkh.
    pub fn with_redeem_script(outpoint: OutPoint, output: TxOut, redeem_script: ScriptBuf) -> Result<Self, Refusal> {
        Self::from_parts(outpoint, output, Some(redeem_script), None)
    }

    /// Creates an output with the transaction that created it. P2pkh requires that transaction; hardware signers want it for p2wpkh too.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoMismatch`] if the transaction has another id, or another output at the index, or the errors of [`Utxo::new`].
    pub fn with_previous_tx(outpoint: OutPoint, output: TxOut, previous: Transaction) -> Result<Self, Refusal> {
        Self::from_parts(outpoint, output, None, Some(previous))
    }

    /// Creates an output of any supported kind. A previous transaction is always checked. A redeem script is ignored if the output does
    /// not need it.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoUnsupported`] at `/script_pubkey`; [`Code::MissingField`] or [`Code::UtxoMismatch`] at `/redeem_script` or
    /// `/previous_tx`.
    pub fn from_parts(
        outpoint: OutPoint,
        output: TxOut,
        redeem_script: Option<ScriptBuf>,
        previous: Option<Transaction>,
    ) -> Result<Self, Refusal> {
        let spend = read_spend(&output.script_pubkey, redeem_script)?;
        match &previous {
            Some(previous) => {
                check_previous(outpoint, Some(&output), previous, "/previous_tx")?;
            }
            None if spend == Spend::P2pkh => return Err(Refusal::new(Code::MissingField, "/previous_tx")),
            None => {}
        }
        Ok(Self { outpoint, output, spend, previous: previous.map(Arc::new) })
    }

    /// Returns the outpoint: the transaction id and the index of the output.
    #[must_use]
    pub const fn outpoint(&self) -> OutPoint {
        self.outpoint
    }

    /// Returns the value and the script of the output.
    #[must_use]
    pub const fn output(&self) -> &TxOut {
        &self.output
    }

    /// Returns how the output is spent.
    #[must_use]
    pub const fn spend(&self) -> &Spend {
        &self.spend
    }

    /// Returns the transaction that created the output; `None` if the wallet did not give it.
    #[must_use]
    pub const fn previous_tx(&self) -> Option<&Arc<Transaction>> {
        self.previous.as_ref()
    }
}

/// Returns how an output is spent, with the redeem script if it is p2sh.
pub(crate) fn read_spend(script: &ScriptBuf, redeem_script: Option<ScriptBuf>) -> Result<Spend, Refusal> {
    if script.is_p2wpkh() {
        return Ok(Spend::P2wpkh);
    }
    if script.is_p2pkh() {
        return Ok(Spend::P2pkh);
    }
    if let Some(output_key) = taproot_key(script) {
        return Ok(Spend::P2tr { output_key });
    }
    let Some(hash) = script_hash(script) else {
        return Err(Refusal::new(Code::UtxoUnsupported, "/script_pubkey").with_actual(hex::encode(script.as_bytes())));
    };
    let redeem_script = redeem_script.ok_or_else(|| Refusal::new(Code::MissingField, "/redeem_script"))?;
    let actual = redeem_script.script_hash();
    if actual != hash {
        return Err(Refusal::new(Code::UtxoMismatch, "/redeem_script").with_expected(hash.to_string()).with_actual(actual.to_string()));
    }
    if !redeem_script.is_p2wpkh() {
        return Err(Refusal::new(Code::UtxoUnsupported, "/redeem_script").with_actual(hex::encode(redeem_script.as_bytes())));
    }
    Ok(Spend::P2shP2wpkh { redeem_script })
}

/// Returns the output that the transaction created, and requires that it is `output`, if that is given.
pub(crate) fn check_previous<'t>(
    outpoint: OutPoint,
    output: Option<&TxOut>,
    previous: &'t Transaction,
    at: &'static str,
) -> Result<&'t TxOut, Refusal> {
    let refusal = || Refusal::new(Code::UtxoMismatch, at);
    let txid = previous.compute_txid();
    if txid != outpoint.txid {
        return Err(refusal().with_expected(outpoint.txid.to_string()).with_actual(txid.to_string()));
    }
    let made = usize::try_from(outpoint.vout).ok().and_then(|vout| previous.output.get(vout));
    let made = made.filter(|made| output.is_none_or(|output| output == *made));
    made.ok_or_else(|| refusal().with_reason("the transaction has another output at this index"))
}

/// Parses a transaction id as displayed, which is the hash with its bytes in reverse order.
pub(crate) fn parse_txid(text: &str) -> Result<Txid, ParseError> {
    let mut bytes = number::bare_hex_array::<32>(text)?;
    bytes.reverse();
    Ok(Txid::from_byte_array(bytes))
}
