//! A transaction that waits for signatures: its PSBT, and for each input what is signed and how.

use std::fmt;

use bitcoin::consensus::encode;
use bitcoin::hashes::{Hash, sha256, sha256d};
use bitcoin::psbt::Psbt;
use bitcoin::sighash::{EncodeSigningDataResult, Prevouts, SighashCache};
use bitcoin::taproot::{LeafVersion, TapLeafHash};
use bitcoin::{EcdsaSighashType, ScriptBuf, TapSighash, TapSighashType, Transaction, TxOut, Witness, io};
use countersign_core::{Code, Refusal};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{BASE_WEIGHT, FeeRate, Spend, output_weight};
use crate::htlc::{Leaf, Tree};

/// Largest transaction that nodes relay (`MAX_STANDARD_TX_WEIGHT`).
pub const MAX_WEIGHT: u64 = 400_000;

/// A transaction that waits for signatures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Payment {
    /// Version 0, as BIP-174 has it. The unsigned transaction is in it.
    pub psbt: Psbt,
    /// Base units.
    pub fee: u64,
    /// Virtual bytes that the fee was computed for.
    pub vsize: u64,
    /// What was asked for.
    pub fee_rate: FeeRate,
    /// Index of the change output.
    pub change: Option<usize>,
    pub(crate) inputs: Vec<Input>,
}

/// One input as it is signed.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) prevout: TxOut,
    pub(crate) kind: Kind,
    pub(crate) digest: [u8; 32],
}

/// The secret of an HTLC: public once the transaction is sent, not before. Wiped on drop, never printed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Secret(pub(crate) [u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What an input is spent by.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// An output of the wallet.
    Wallet(Spend),
    /// A leaf of the HTLC that one signature, and perhaps a secret, opens.
    Htlc {
        tree: Box<Tree>,
        leaf: Leaf,
        /// Who signs.
        signer: [u8; 32],
        /// What stands on the stack between signature and script.
        secret: Option<Secret>,
    },
    /// An input whose witness is there already.
    Done(Witness),
}

impl Kind {
    /// The leaf's script.
    pub(crate) fn leaf(&self) -> Option<(ScriptBuf, Vec<u8>)> {
        match self {
            Self::Htlc { tree, leaf, .. } => Some((tree.script(*leaf), tree.control_block(*leaf))),
            Self::Wallet(_) | Self::Done(_) => None,
        }
    }

    /// Weight of the whole input. An HTLC's: outpoint, empty script and sequence, then 64 bytes of signature, the secret,
    /// script and control block, each behind its length.
    pub(crate) fn weight(&self) -> u64 {
        match self {
            Self::Wallet(spend) => spend.weight(),
            Self::Done(witness) => u64::try_from(witness.size()).unwrap_or(u64::MAX).saturating_add(164),
            Self::Htlc { secret, .. } => {
                let (script, control) = self.leaf().unwrap_or_default();
                let witness = [1, 65, if secret.is_some() { 33 } else { 0 }, 1, script.len(), 1, control.len()];
                witness.iter().fold(164, |sum: u64, part| sum.saturating_add(u64::try_from(*part).unwrap_or(u64::MAX)))
            }
        }
    }
}

impl Payment {
    /// Puts the PSBT together and computes every digest.
    pub(crate) fn new(
        transaction: Transaction,
        inputs: Vec<(TxOut, Kind)>,
        fee: (u64, u64, FeeRate),
        change: Option<usize>,
    ) -> Result<Self, Refusal> {
        let internal = || Refusal::new(Code::Internal, "/wallet/utxos");
        let outputs = transaction.output.iter().map(|output| output_weight(&output.script_pubkey));
        let weights = inputs.iter().map(|(_, kind)| kind.weight()).chain(outputs);
        let weight = weights.fold(BASE_WEIGHT, u64::saturating_add);
        if weight > MAX_WEIGHT {
            let refusal = Refusal::new(Code::TransactionAboveStandard, "/wallet/utxos");
            return Err(refusal.with_expected(format!("at most {MAX_WEIGHT} weight units")).with_actual(weight));
        }
        let (fee, vsize, fee_rate) = fee;
        let mut psbt = Psbt::from_unsigned_tx(transaction).map_err(|_| internal())?;
        for ((prevout, kind), known) in inputs.iter().zip(&mut psbt.inputs) {
            match kind {
                Kind::Wallet(Spend::P2pkh { previous }) => known.non_witness_utxo = Some((**previous).clone()),
                _ => known.witness_utxo = Some(prevout.clone()),
            }
            match kind {
                Kind::Wallet(Spend::P2shP2wpkh { redeem_script }) => known.redeem_script = Some(redeem_script.clone()),
                Kind::Htlc { tree, leaf, .. } => {
                    let control = bitcoin::taproot::ControlBlock::decode(&tree.control_block(*leaf)).map_err(|_| internal())?;
                    known.tap_internal_key = Some(control.internal_key);
                    known.tap_merkle_root = Some(bitcoin::TapNodeHash::from_byte_array(tree.output.merkle_root));
                    known.tap_scripts.insert(control, (tree.script(*leaf), LeafVersion::TapScript));
                }
                Kind::Done(witness) => known.final_script_witness = Some(witness.clone()),
                Kind::Wallet(_) => {}
            }
        }
        let mut inputs: Vec<_> = inputs.into_iter().map(|(prevout, kind)| Input { prevout, kind, digest: [0; 32] }).collect();
        let digests = {
            let prevouts: Vec<_> = inputs.iter().map(|input| &input.prevout).collect();
            let mut cache = SighashCache::new(&psbt.unsigned_tx);
            let digests = inputs.iter().enumerate().map(|(index, input)| digest(&mut cache, index, input, &prevouts));
            digests.collect::<Option<Vec<_>>>().ok_or_else(internal)?
        };
        for (input, digest) in inputs.iter_mut().zip(digests) {
            input.digest = digest;
        }
        Ok(Self { psbt, fee, vsize, fee_rate, change, inputs })
    }

    /// The unsigned transaction.
    #[must_use]
    pub const fn transaction(&self) -> &Transaction {
        &self.psbt.unsigned_tx
    }

    /// The unsigned transaction's bytes, which have no witness.
    #[must_use]
    pub fn unsigned_bytes(&self) -> Vec<u8> {
        encode::serialize(self.transaction())
    }

    /// Whether signing leaves the transaction's id as it is: so with native segwit inputs only.
    #[must_use]
    pub fn id_is_final(&self) -> bool {
        !self.inputs.iter().any(|input| matches!(input.kind, Kind::Wallet(Spend::P2pkh { .. } | Spend::P2shP2wpkh { .. })))
    }

    /// The bytes that an input's digest is taken of.
    pub(crate) fn payload(&self, index: usize) -> Option<Vec<u8>> {
        let prevouts: Vec<_> = self.inputs.iter().map(|input| &input.prevout).collect();
        let mut payload = Vec::new();
        let mut cache = SighashCache::new(self.transaction());
        write(&mut cache, index, self.inputs.get(index)?, &prevouts, &mut payload)?;
        Some(payload)
    }

    /// The transaction with what each input was signed with.
    pub(crate) fn complete(&self, done: Vec<(ScriptBuf, Witness)>) -> Transaction {
        let mut transaction = self.transaction().clone();
        for (input, (script_sig, witness)) in transaction.input.iter_mut().zip(done) {
            input.script_sig = script_sig;
            input.witness = witness;
        }
        transaction
    }
}

/// The digest of an input.
fn digest(cache: &mut SighashCache<&Transaction>, index: usize, input: &Input, prevouts: &[&TxOut]) -> Option<[u8; 32]> {
    match input.kind {
        Kind::Done(_) => Some([0; 32]),
        Kind::Wallet(Spend::P2tr) | Kind::Htlc { .. } => {
            let mut engine = TapSighash::engine();
            write(cache, index, input, prevouts, &mut engine)?;
            Some(TapSighash::from_engine(engine).to_byte_array())
        }
        Kind::Wallet(_) => {
            let mut engine = sha256::HashEngine::default();
            write(cache, index, input, prevouts, &mut engine)?;
            Some(sha256d::Hash::from_engine(engine).to_byte_array())
        }
    }
}

/// Writes what an input's digest is taken of: BIP-341, BIP-143 or the legacy form, always for all outputs.
fn write(
    cache: &mut SighashCache<&Transaction>,
    index: usize,
    input: &Input,
    prevouts: &[&TxOut],
    to: &mut (impl io::Write + ?Sized),
) -> Option<()> {
    let all = EcdsaSighashType::All;
    let mut segwit = |to: &mut _, script: &ScriptBuf| {
        let code = script.p2wpkh_script_code()?;
        cache.segwit_v0_encode_signing_data_to(to, index, &code, input.prevout.value, all).ok()
    };
    match &input.kind {
        Kind::Done(_) => Some(()),
        Kind::Wallet(Spend::P2wpkh) => segwit(to, &input.prevout.script_pubkey),
        Kind::Wallet(Spend::P2shP2wpkh { redeem_script }) => segwit(to, redeem_script),
        Kind::Wallet(Spend::P2pkh { .. }) => {
            let written = cache.legacy_encode_signing_data_to(to, index, &input.prevout.script_pubkey, all.to_u32());
            matches!(written, EncodeSigningDataResult::WriteResult(Ok(()))).then_some(())
        }
        Kind::Wallet(Spend::P2tr) | Kind::Htlc { .. } => {
            let leaf = match &input.kind {
                Kind::Htlc { tree, leaf, .. } => Some((TapLeafHash::from_script(&tree.script(*leaf), LeafVersion::TapScript), 0xffff_ffff)),
                Kind::Wallet(_) | Kind::Done(_) => None,
            };
            let sighash = TapSighashType::Default;
            cache.taproot_encode_signing_data_to(to, index, &Prevouts::All(prevouts), None, leaf, sighash).ok()
        }
    }
}
