//! The wallet's unspent outputs: what each is, what spending it weighs, and what must be known to sign for it.

use std::sync::Arc;

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, ScriptBuf, Transaction, TxOut, Txid, XOnlyPublicKey};
use countersign_core::{Code, ParseError, Refusal, number};

use crate::address::{script_hash, taproot_key};

/// An unspent output of the wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utxo {
    outpoint: OutPoint,
    output: TxOut,
    spend: Spend,
    previous: Option<Arc<Transaction>>,
}

/// How an output of the wallet is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spend {
    /// Pay to witness public key hash.
    P2wpkh,
    /// Taproot, by its key.
    P2tr {
        /// The key that signs: the internal key with its tweak.
        output_key: XOnlyPublicKey,
    },
    /// P2wpkh nested in p2sh.
    P2shP2wpkh {
        /// `OP_0 <key hash>`, the script whose hash the output has.
        redeem_script: ScriptBuf,
    },
    /// Pay to public key hash. Its signature does not commit to the amount, so the transaction that made the output has to prove
    /// it.
    P2pkh,
}

impl Spend {
    /// Returns the weight of the input with the longest signatures: outpoint and sequence 160 WU, then scripts and witness.
    #[must_use]
    pub const fn weight(&self) -> u64 {
        match self {
            Self::P2wpkh => 272,
            Self::P2tr { .. } => 230,
            Self::P2shP2wpkh { .. } => 364,
            // One weight unit more than alone: beside segwit inputs it has an empty witness.
            Self::P2pkh => 593,
        }
    }
}

impl Utxo {
    /// Takes a p2wpkh or p2tr output.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoUnsupported`] for a script of another kind, [`Code::MissingField`] for p2sh and p2pkh, which need
    /// [`Utxo::with_redeem_script`] or [`Utxo::with_previous_tx`].
    pub fn new(outpoint: OutPoint, output: TxOut) -> Result<Self, Refusal> {
        Self::from_parts(outpoint, output, None, None)
    }

    /// Takes an output that is p2wpkh nested in p2sh.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoMismatch`] if the script hash is of another script.
    pub fn with_redeem_script(outpoint: OutPoint, output: TxOut, redeem_script: ScriptBuf) -> Result<Self, Refusal> {
        Self::from_parts(outpoint, output, Some(redeem_script), None)
    }

    /// Takes an output with the transaction that made it. P2pkh needs it; hardware signers ask for it for p2wpkh too.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoMismatch`] if the transaction is another, or made another output there.
    pub fn with_previous_tx(outpoint: OutPoint, output: TxOut, previous: Transaction) -> Result<Self, Refusal> {
        Self::from_parts(outpoint, output, None, Some(previous))
    }

    /// Takes an output with whatever the wallet knows of it. A previous transaction is checked wherever it is given; a redeem
    /// script beside an output that has none is ignored.
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
            Some(previous) => check_previous(outpoint, &output, previous)?,
            None if spend == Spend::P2pkh => return Err(Refusal::new(Code::MissingField, "/previous_tx")),
            None => {}
        }
        Ok(Self { outpoint, output, spend, previous: previous.map(Arc::new) })
    }

    /// Returns where the output is.
    #[must_use]
    pub const fn outpoint(&self) -> OutPoint {
        self.outpoint
    }

    /// Returns the output's value and script.
    #[must_use]
    pub const fn output(&self) -> &TxOut {
        &self.output
    }

    /// Returns how the output is spent.
    #[must_use]
    pub const fn spend(&self) -> &Spend {
        &self.spend
    }

    /// Returns the transaction that made the output, where it is known.
    #[must_use]
    pub const fn previous_tx(&self) -> Option<&Arc<Transaction>> {
        self.previous.as_ref()
    }
}

fn read_spend(script: &ScriptBuf, redeem_script: Option<ScriptBuf>) -> Result<Spend, Refusal> {
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

/// The transaction made this very output.
fn check_previous(outpoint: OutPoint, output: &TxOut, previous: &Transaction) -> Result<(), Refusal> {
    let refusal = || Refusal::new(Code::UtxoMismatch, "/previous_tx");
    let txid = previous.compute_txid();
    if txid != outpoint.txid {
        return Err(refusal().with_expected(outpoint.txid.to_string()).with_actual(txid.to_string()));
    }
    let made = usize::try_from(outpoint.vout).ok().and_then(|vout| previous.output.get(vout));
    if made == Some(output) { Ok(()) } else { Err(refusal().with_reason("the transaction made another output at this index")) }
}

/// Parses a transaction id as it is displayed: the hash's bytes in the opposite order.
pub(crate) fn parse_txid(text: &str) -> Result<Txid, ParseError> {
    let mut bytes = number::bare_hex_array::<32>(text)?;
    bytes.reverse();
    Ok(Txid::from_byte_array(bytes))
}
