//! The sighash of each input, by BIP-341, BIP-143 or the legacy algorithm. It always covers all inputs and outputs.
//!
//! A taproot input has two such sighashes: `SIGHASH_DEFAULT`, which is requested, and `SIGHASH_ALL`, which some signers use in its place.

use bitcoin::hashes::{Hash, sha256, sha256d};
use bitcoin::sighash::{EncodeSigningDataResult, Prevouts, SighashCache};
use bitcoin::{EcdsaSighashType, ScriptBuf, TapSighash, TapSighashType, Transaction, TxOut, io};

use super::{Input, Kind, Payment, Spend};

/// The code separator position of a leaf without `OP_CODESEPARATOR`.
pub(crate) const NO_CODE_SEPARATOR: u32 = 0xffff_ffff;

/// Returns the digest of every input, which is zeros for a presigned input.
pub(crate) fn digests(transaction: &Transaction, inputs: &[Input]) -> Option<Vec<[u8; 32]>> {
    let prevouts: Vec<_> = inputs.iter().map(|input| &input.prevout).collect();
    let mut cache = SighashCache::new(transaction);
    let digest = |(index, input)| digest(&mut cache, index, input, &prevouts, TapSighashType::Default);
    inputs.iter().enumerate().map(digest).collect()
}

impl Payment {
    /// Returns the index of each input to sign, the input, and the bytes that are hashed for its digest.
    pub(crate) fn signing_bytes(&self) -> impl Iterator<Item = (usize, &Input, Vec<u8>)> {
        let prevouts: Vec<_> = self.inputs.iter().map(|input| &input.prevout).collect();
        let mut cache = SighashCache::new(self.transaction());
        self.inputs_to_sign().map(move |(index, input)| {
            let mut bytes = Vec::new();
            let written = write(&mut cache, index, input, &prevouts, TapSighashType::Default, &mut bytes);
            let bytes = written.map(|()| bytes).unwrap_or_default();
            (index, input, bytes)
        })
    }

    /// Returns the digests of taproot inputs for signatures with an explicit `SIGHASH_ALL`.
    pub(crate) fn explicit_all(&self) -> ExplicitAll<'_> {
        ExplicitAll::new(self.transaction(), &self.inputs)
    }
}

/// The digests of taproot inputs with an explicit `SIGHASH_ALL`. Each is computed when a signature needs it.
pub(crate) struct ExplicitAll<'p> {
    cache: SighashCache<&'p Transaction>,
    prevouts: Vec<&'p TxOut>,
}

impl<'p> ExplicitAll<'p> {
    /// Computes nothing yet.
    pub(crate) fn new(transaction: &'p Transaction, inputs: &'p [Input]) -> Self {
        Self { cache: SighashCache::new(transaction), prevouts: inputs.iter().map(|input| &input.prevout).collect() }
    }

    /// Returns the digest of an input of the transaction.
    pub(crate) fn digest(&mut self, index: usize, input: &Input) -> Option<[u8; 32]> {
        digest(&mut self.cache, index, input, &self.prevouts, TapSighashType::All)
    }
}

fn digest(
    cache: &mut SighashCache<&Transaction>,
    index: usize,
    input: &Input,
    prevouts: &[&TxOut],
    tap_type: TapSighashType,
) -> Option<[u8; 32]> {
    match input.kind {
        Kind::Presigned(_) => Some([0; 32]),
        Kind::Wallet(Spend::P2tr { .. }) | Kind::Htlc(_) => {
            let mut engine = TapSighash::engine();
            write(cache, index, input, prevouts, tap_type, &mut engine)?;
            Some(TapSighash::from_engine(engine).to_byte_array())
        }
        Kind::Wallet(_) => {
            let mut engine = sha256::HashEngine::default();
            write(cache, index, input, prevouts, tap_type, &mut engine)?;
            Some(sha256d::Hash::from_engine(engine).to_byte_array())
        }
    }
}

/// Writes the bytes that are hashed for an input's digest; `None` if the library refuses, which does not happen for inputs of the
/// transaction.
fn write(
    cache: &mut SighashCache<&Transaction>,
    index: usize,
    input: &Input,
    prevouts: &[&TxOut],
    tap_type: TapSighashType,
    to: &mut (impl io::Write + ?Sized),
) -> Option<()> {
    let all = EcdsaSighashType::All;
    let mut segwit_v0 = |to: &mut _, script: &ScriptBuf| {
        let code = script.p2wpkh_script_code()?;
        cache.segwit_v0_encode_signing_data_to(to, index, &code, input.prevout.value, all).ok()
    };
    match &input.kind {
        Kind::Presigned(_) => Some(()),
        Kind::Wallet(Spend::P2wpkh) => segwit_v0(to, &input.prevout.script_pubkey),
        Kind::Wallet(Spend::P2shP2wpkh { redeem_script }) => segwit_v0(to, redeem_script),
        Kind::Wallet(Spend::P2pkh) => {
            let written = cache.legacy_encode_signing_data_to(to, index, &input.prevout.script_pubkey, all.to_u32());
            matches!(written, EncodeSigningDataResult::WriteResult(Ok(()))).then_some(())
        }
        Kind::Wallet(Spend::P2tr { .. }) => taproot(cache, index, prevouts, None, tap_type, to),
        Kind::Htlc(leaf) => taproot(cache, index, prevouts, Some((leaf.leaf_hash, NO_CODE_SEPARATOR)), tap_type, to),
    }
}

fn taproot(
    cache: &mut SighashCache<&Transaction>,
    index: usize,
    prevouts: &[&TxOut],
    leaf: Option<(bitcoin::TapLeafHash, u32)>,
    tap_type: TapSighashType,
    to: &mut (impl io::Write + ?Sized),
) -> Option<()> {
    cache.taproot_encode_signing_data_to(to, index, &Prevouts::All(prevouts), None, leaf, tap_type).ok()
}
