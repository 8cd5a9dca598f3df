//! An unsigned transaction: its PSBT, and how each input is signed.

use std::fmt;
use std::sync::Arc;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode;
use bitcoin::psbt::{self, Psbt};
use bitcoin::taproot::{ControlBlock, LeafVersion, TapNodeHash};
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, TapLeafHash, Transaction, TxIn, TxOut, Witness, XOnlyPublicKey};
use countersign_core::{Code, Refusal};
use zeroize::Zeroizing;

use super::{FeeRate, KeyOrigin, Origins, Spend, Utxo, sighash};
use crate::address::Chain;
use crate::htlc::{Leaf, Tree};
use crate::sign::Proof;

/// The weight of the largest transaction that nodes relay (`MAX_STANDARD_TX_WEIGHT`).
pub const MAX_WEIGHT: u64 = 400_000;
/// The weight of an outpoint, an empty script and a sequence.
pub(crate) const INPUT_WEIGHT: u64 = 164;

/// A transaction to sign, with the signatures that are attached so far.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Payment {
    /// The chain of the transaction.
    pub chain: Chain,
    /// The PSBT for signers, version 0 (BIP-174), without signatures.
    pub psbt: Arc<Psbt>,
    /// The fee.
    pub fee: Amount,
    /// The virtual size for which the fee was computed.
    pub vsize: u64,
    /// The requested fee rate.
    pub fee_rate: FeeRate,
    /// Index of the change output; `None` if there is no change.
    pub change: Option<usize>,
    pub(crate) inputs: Vec<Input>,
}

/// The parts of a payment.
pub(crate) struct PaymentPlan {
    pub(crate) chain: Chain,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<TxOut>,
    /// Index of the change output.
    pub(crate) change: Option<usize>,
    pub(crate) change_origin: Option<KeyOrigin>,
    pub(crate) fee: Amount,
    pub(crate) fee_rate: FeeRate,
    pub(crate) weight: u64,
}

/// An input of a payment, with its digest and its proven signature.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) outpoint: OutPoint,
    pub(crate) sequence: Sequence,
    pub(crate) prevout: TxOut,
    pub(crate) kind: Kind,
    previous: Option<Arc<Transaction>>,
    origin: Option<KeyOrigin>,
    pub(crate) digest: [u8; 32],
    pub(crate) proof: Option<Proof>,
}

/// The secret of an HTLC, which must stay private until the transaction is sent. Wiped on drop, never printed.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) Zeroizing<[u8; 32]>);

impl Secret {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self(Zeroizing::new(*secret))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How an input is spent.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// By a signature of the wallet.
    Wallet(Spend),
    /// By a leaf of the HTLC, with a signature and, for a redemption, the secret.
    Htlc(Arc<LeafSpend>),
    /// By a complete witness that already exists.
    Presigned(Witness),
}

/// A leaf of the HTLC, with everything that is needed to spend it except the signature.
#[derive(Debug, Clone)]
pub(crate) struct LeafSpend {
    pub(crate) leaf_hash: TapLeafHash,
    pub(crate) script: ScriptBuf,
    control: ControlBlock,
    merkle_root: TapNodeHash,
    /// The key that must sign.
    pub(crate) signer: XOnlyPublicKey,
    /// The witness item between the signature and the script, for a redemption.
    pub(crate) secret: Option<Secret>,
}

impl LeafSpend {
    /// Creates the spend of a leaf; `None` if the internal key is not a point of the curve.
    pub(crate) fn new(tree: &Tree, leaf: Leaf, signer: XOnlyPublicKey, secret: Option<Secret>) -> Option<Self> {
        use bitcoin::hashes::Hash as _;

        Some(Self {
            leaf_hash: tree.leaf_hash(leaf),
            script: tree.script(leaf),
            control: ControlBlock::decode(&tree.control_block(leaf)).ok()?,
            merkle_root: TapNodeHash::from_byte_array(tree.output.merkle_root),
            signer,
            secret,
        })
    }

    pub(crate) fn control_block(&self) -> Vec<u8> {
        self.control.serialize()
    }

    /// Adds the script and its proof, which a signer needs, to a PSBT.
    pub(crate) fn add_to_input(&self, input: &mut psbt::Input) {
        input.tap_internal_key = Some(self.control.internal_key);
        input.tap_merkle_root = Some(self.merkle_root);
        input.tap_scripts.insert(self.control.clone(), (self.script.clone(), LeafVersion::TapScript));
    }
}

impl Kind {
    /// Returns the weight of the whole input. The witness of an HTLC is a signature of 64 bytes, the secret if there is one, the script
    /// and the control block, each with its length in front.
    pub(crate) fn weight(&self) -> u64 {
        let bytes = match self {
            Self::Wallet(spend) => return spend.weight(),
            Self::Presigned(witness) => witness.size(),
            Self::Htlc(leaf) => {
                let secret = if leaf.secret.is_some() { 33 } else { 0 };
                let parts = [1, 65, secret, 1, leaf.script.len(), 1, leaf.control.size()];
                parts.into_iter().fold(0, usize::saturating_add)
            }
        };
        u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(INPUT_WEIGHT)
    }
}

impl Input {
    pub(crate) const fn new(outpoint: OutPoint, sequence: Sequence, prevout: TxOut, kind: Kind) -> Self {
        Self { outpoint, sequence, prevout, kind, previous: None, origin: None, digest: [0; 32], proof: None }
    }

    pub(crate) fn from_utxo(utxo: &Utxo, sequence: Sequence, origins: &Origins<'_>) -> Self {
        Self {
            previous: utxo.previous_tx().cloned(),
            origin: origins.of_script(&utxo.output().script_pubkey),
            ..Self::new(utxo.outpoint(), sequence, utxo.output().clone(), Kind::Wallet(utxo.spend().clone()))
        }
    }

    pub(crate) fn with_origin(mut self, origin: Option<KeyOrigin>) -> Self {
        self.origin = origin;
        self
    }

    pub(crate) fn weight(&self) -> u64 {
        self.kind.weight()
    }

    /// Returns whether the input has its signature.
    pub(crate) const fn is_signed(&self) -> bool {
        matches!(self.kind, Kind::Presigned(_)) || self.proof.is_some()
    }

    fn unsigned(&self) -> TxIn {
        TxIn { previous_output: self.outpoint, script_sig: ScriptBuf::new(), sequence: self.sequence, witness: Witness::new() }
    }

    /// Returns the input of the PSBT.
    fn to_psbt(&self) -> psbt::Input {
        let mut input = psbt::Input::default();
        // A legacy signature does not commit to the amount, so only the previous transaction can prove it.
        if !matches!(self.kind, Kind::Wallet(Spend::P2pkh)) {
            input.witness_utxo = Some(self.prevout.clone());
        }
        // Hardware signers also want the previous transaction for segwit version 0, because wrong amounts in two signing requests
        // could hide a higher fee. Taproot signatures commit to every amount.
        if !matches!(self.kind, Kind::Wallet(Spend::P2tr { .. })) {
            input.non_witness_utxo = self.previous.as_deref().cloned();
        }
        match &self.kind {
            Kind::Wallet(spend) => {
                if let Spend::P2shP2wpkh { redeem_script } = spend {
                    input.redeem_script = Some(redeem_script.clone());
                }
                if let Some(origin) = &self.origin {
                    origin.add_to_input(spend, &mut input);
                }
            }
            Kind::Htlc(leaf) => {
                leaf.add_to_input(&mut input);
                if let Some(origin) = &self.origin {
                    origin.add_to_leaf(leaf.leaf_hash, &mut input);
                }
            }
            Kind::Presigned(witness) => input.final_script_witness = Some(witness.clone()),
        }
        input
    }
}

/// Returns a transaction of version 2 without a locktime.
pub(crate) const fn new_transaction(input: Vec<TxIn>, output: Vec<TxOut>) -> Transaction {
    Transaction { version: Version::TWO, lock_time: LockTime::ZERO, input, output }
}

/// Returns a PSBT of version 0.
pub(crate) fn new_psbt(unsigned_tx: Transaction, inputs: Vec<psbt::Input>) -> Psbt {
    Psbt {
        outputs: unsigned_tx.output.iter().map(|_| psbt::Output::default()).collect(),
        unsigned_tx,
        version: 0,
        xpub: Default::default(),
        proprietary: Default::default(),
        unknown: Default::default(),
        inputs,
    }
}

impl Payment {
    /// Creates the PSBT and computes every digest.
    pub(crate) fn new(plan: PaymentPlan) -> Result<Self, Refusal> {
        let PaymentPlan { chain, mut inputs, outputs, change, change_origin, fee, fee_rate, weight } = plan;
        if weight > MAX_WEIGHT {
            let expected = format!("at most {MAX_WEIGHT} weight units");
            return Err(Refusal::new(Code::TransactionAboveStandard, "/utxos").with_expected(expected).with_actual(weight));
        }
        let unsigned = new_transaction(inputs.iter().map(Input::unsigned).collect(), outputs);
        let mut psbt = new_psbt(unsigned, inputs.iter().map(Input::to_psbt).collect());
        let output = change.and_then(|index| Some((psbt.unsigned_tx.output.get(index)?, psbt.outputs.get_mut(index)?)));
        if let (Some(origin), Some((change, known))) = (change_origin, output) {
            origin.add_to_change(&change.script_pubkey, known);
        }
        // The library can compute a digest for every input of the transaction, so this error does not occur.
        let digests = sighash::digests(&psbt.unsigned_tx, &inputs).ok_or_else(|| Refusal::new(Code::Internal, ""))?;
        for (input, digest) in inputs.iter_mut().zip(digests) {
            input.digest = digest;
        }
        Ok(Self { chain, psbt: Arc::new(psbt), fee, vsize: weight.div_ceil(4), fee_rate, change, inputs })
    }

    /// Returns the unsigned transaction.
    #[must_use]
    pub fn transaction(&self) -> &Transaction {
        &self.psbt.unsigned_tx
    }

    /// Returns the bytes of the unsigned transaction, without a witness.
    #[must_use]
    pub fn unsigned_bytes(&self) -> Vec<u8> {
        encode::serialize(self.transaction())
    }

    /// Returns whether signing does not change the transaction's id, which is the case if all inputs are native segwit.
    #[must_use]
    pub fn id_is_final(&self) -> bool {
        !self.inputs.iter().any(|input| matches!(input.kind, Kind::Wallet(Spend::P2pkh | Spend::P2shP2wpkh { .. })))
    }

    /// Returns the inputs that need a signature, attached or not, each with its index.
    pub(crate) fn inputs_to_sign(&self) -> impl Iterator<Item = (usize, &Input)> {
        self.inputs.iter().enumerate().filter(|(_, input)| !matches!(input.kind, Kind::Presigned(_)))
    }

    /// Returns whether any signature is attached.
    #[must_use]
    pub fn has_signatures(&self) -> bool {
        self.inputs.iter().any(|input| input.proof.is_some())
    }

    /// Returns the PSBT with the signatures that are attached so far.
    #[must_use]
    pub fn signed_psbt(&self) -> Psbt {
        let mut psbt = (*self.psbt).clone();
        for (known, input) in psbt.inputs.iter_mut().zip(&self.inputs) {
            if let Some(proof) = &input.proof {
                proof.add_to_input(known);
            }
        }
        psbt
    }

    /// Returns the signed transaction; `None` while a signature is missing.
    #[must_use]
    pub fn signed_transaction(&self) -> Option<Transaction> {
        let mut transaction = self.transaction().clone();
        for (signed, input) in transaction.input.iter_mut().zip(&self.inputs) {
            match (&input.kind, &input.proof) {
                (Kind::Presigned(witness), _) => signed.witness = witness.clone(),
                (_, Some(proof)) => (signed.script_sig, signed.witness) = proof.scripts(),
                (_, None) => return None,
            }
        }
        Some(transaction)
    }
}
