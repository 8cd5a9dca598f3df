//! The wallet's unspent outputs: what each is, what spending it weighs, and what must be known to sign for it.

use bitcoin::consensus::encode;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, Transaction, TxOut, Txid};
use countersign_core::chains::digits;
use countersign_core::json::Node;
use countersign_core::{Code, Refusal, number};

use crate::address::{script_hash, taproot_key};

/// Longest script that is read: the longest that consensus lets run.
const MAX_SCRIPT: usize = 10_000;
/// Longest transaction that is read: more than a block holds of one.
const MAX_TRANSACTION: usize = 4_000_000;

/// An unspent output of the wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Utxo {
    /// Where it is.
    pub outpoint: OutPoint,
    /// Its value and script.
    pub output: TxOut,
    /// How it is spent.
    pub kind: Spend,
}

/// How an output of the wallet is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spend {
    /// Pay to witness public key hash.
    P2wpkh,
    /// Taproot, by its key.
    P2tr,
    /// A p2wpkh script behind a script hash.
    P2shP2wpkh {
        /// `OP_0 <key hash>`: what the script hash is of.
        redeem_script: ScriptBuf,
    },
    /// Pay to public key hash. Its signature does not commit to the amount, so the transaction that made the output must be
    /// there to prove it.
    P2pkh {
        /// The transaction that made the output.
        previous: Box<Transaction>,
    },
}

impl Spend {
    /// Weight of the input, signatures as long as they get: outpoint and sequence 160 WU, then scripts and witness.
    #[must_use]
    pub const fn weight(&self) -> u64 {
        match self {
            Self::P2wpkh => 272,
            Self::P2tr => 230,
            Self::P2shP2wpkh { .. } => 364,
            // One more than alone: the empty witness that it has beside inputs with one.
            Self::P2pkh { .. } => 593,
        }
    }
}

impl Utxo {
    /// An output that is spent as its script says.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoUnsupported`] for a script of another kind, [`Code::MissingField`] for p2sh and p2pkh, which need
    /// [`Utxo::with_redeem_script`] or [`Utxo::with_previous`].
    pub fn new(outpoint: OutPoint, output: TxOut) -> Result<Self, Refusal> {
        Self::of(outpoint, output, None, None, "/wallet/utxos")
    }

    /// A p2wpkh output behind a script hash.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoMismatch`] if the script hash is of another script.
    pub fn with_redeem_script(outpoint: OutPoint, output: TxOut, redeem_script: ScriptBuf) -> Result<Self, Refusal> {
        Self::of(outpoint, output, Some(redeem_script), None, "/wallet/utxos")
    }

    /// A p2pkh output, with the transaction that made it.
    ///
    /// # Errors
    ///
    /// [`Code::UtxoMismatch`] if the transaction is another, or made another output there.
    pub fn with_previous(outpoint: OutPoint, output: TxOut, previous: Transaction) -> Result<Self, Refusal> {
        Self::of(outpoint, output, None, Some(previous), "/wallet/utxos")
    }

    fn of(
        outpoint: OutPoint,
        output: TxOut,
        redeem_script: Option<ScriptBuf>,
        previous: Option<Transaction>,
        at: &str,
    ) -> Result<Self, Refusal> {
        let script = &output.script_pubkey;
        let refuse = |code, member: &str| Refusal::new(code, format!("{at}/{member}"));
        let kind = if script.is_p2wpkh() {
            Spend::P2wpkh
        } else if taproot_key(script).is_some() {
            Spend::P2tr
        } else if let Some(hash) = script_hash(script) {
            let redeem_script = redeem_script.ok_or_else(|| refuse(Code::MissingField, "redeem_script"))?;
            if redeem_script.script_hash() != hash {
                return Err(refuse(Code::UtxoMismatch, "redeem_script").with_expected(hash).with_actual(redeem_script.script_hash()));
            }
            if !redeem_script.is_p2wpkh() {
                return Err(refuse(Code::UtxoUnsupported, "redeem_script"));
            }
            Spend::P2shP2wpkh { redeem_script }
        } else if script.is_p2pkh() {
            Spend::P2pkh { previous: Box::new(previous.ok_or_else(|| refuse(Code::MissingField, "previous_tx"))?) }
        } else {
            return Err(refuse(Code::UtxoUnsupported, "script_pubkey").with_actual(hex::encode(script.as_bytes())));
        };
        if let Spend::P2pkh { previous } = &kind {
            let vout = usize::try_from(outpoint.vout).unwrap_or(usize::MAX);
            if previous.compute_txid() != outpoint.txid || previous.output.get(vout) != Some(&output) {
                return Err(refuse(Code::UtxoMismatch, "previous_tx"));
            }
        }
        Ok(Self { outpoint, output, kind })
    }

    pub(crate) fn read(node: &Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let (txid, vout, value) = (members.need("txid")?, members.need("vout")?, members.need("value")?);
        let vout = u32::try_from(vout.integer()?).map_err(|_| vout.refuse(Code::NumberTooLarge))?;
        let wide = value.decimal().or_else(|refusal| value.integer().map(countersign_core::U256::from).map_err(|_| refusal))?;
        let value = u64::try_from(wide).map_err(|_| value.refuse(Code::NumberTooLarge))?;
        let script_pubkey = script(&members.need("script_pubkey")?)?;
        let redeem_script = members.get("redeem_script").map(|node| script(&node)).transpose()?;
        let previous = members.get("previous_tx").map(|node| transaction(&node)).transpose()?;
        let output = TxOut { value: Amount::from_sat(value), script_pubkey };
        Self::of(OutPoint { txid: read_txid(&txid)?, vout }, output, redeem_script, previous, &node.at().to_string())
    }
}

/// A transaction id as it is written: the hash's bytes in the opposite order.
fn read_txid(node: &Node<'_, '_>) -> Result<Txid, Refusal> {
    txid(node.text()?).map_err(|code| node.refuse(code))
}

pub(crate) fn txid(text: &str) -> Result<Txid, Code> {
    let mut bytes = number::bare_hex_array::<32>(text)?;
    bytes.reverse();
    Ok(Txid::from_byte_array(bytes))
}

fn bytes(node: &Node<'_, '_>, max: usize) -> Result<Vec<u8>, Refusal> {
    let text = node.text()?;
    if text.len() / 2 > max {
        return Err(node.at().refuse(Code::HexLength).with_expected(format!("at most {max} bytes")));
    }
    digits::bytes(text).map_err(|_| node.refuse(if text.len() % 2 == 0 { Code::HexDigit } else { Code::HexOddLength }))
}

fn script(node: &Node<'_, '_>) -> Result<ScriptBuf, Refusal> {
    bytes(node, MAX_SCRIPT).map(ScriptBuf::from_bytes)
}

fn transaction(node: &Node<'_, '_>) -> Result<Transaction, Refusal> {
    encode::deserialize(&bytes(node, MAX_TRANSACTION)?)
        .map_err(|_| node.at().refuse(Code::UtxoMismatch).with_reason("these bytes are no transaction"))
}
