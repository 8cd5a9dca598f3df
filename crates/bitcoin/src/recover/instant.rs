//! Instant refund: both parties sign a transaction that returns the coins to the owner before the timelock.
//!
//! The owner's signature has the hash type 0x83, SINGLE with ANYONECANPAY. It covers one input and the output at the same index,
//! so that others can add an input for the fee. A bare hash from the service could cover any output, or be for the refund leaf,
//! which the same key can spend alone. Therefore only hashes that were computed here from the record are signed.
//!
//! Specification: `docs/spec/bitcoin.md#instant-refund`.

use std::sync::Arc;

use bitcoin::hashes::Hash;
use bitcoin::psbt;
use bitcoin::secp256k1::schnorr;
use bitcoin::sighash::{Prevouts, SighashCache};
use bitcoin::{ScriptBuf, Sequence, TapSighash, TapSighashType, Transaction, TxIn, TxOut, Witness, XOnlyPublicKey};
use countersign_core::chains::digits;
use countersign_core::json::At;
use countersign_core::{Code, Origin, Refusal, RequestId, Role, Scheme, SigningRequest, Summary, Warnings};
use serde::Serialize;

use super::{Exceptions, FeeCoins, Funding, FundingSource, RecordedHtlc};
use crate::UnsignedOrder;
use crate::address::Destination;
use crate::curve;
use crate::htlc::{Leaf, Tree};
use crate::sign::{Key, Payload};
use crate::transaction::{Input, Kind, LeafSpend, NO_CODE_SEPARATOR, new_psbt, new_transaction, sum};

/// The hash type of an instant refund.
const HASH_TYPE: TapSighashType = TapSighashType::SinglePlusAnyoneCanPay;
/// Every hash type that a taproot signature may have.
const HASH_TYPES: [TapSighashType; 7] = [
    TapSighashType::Default,
    TapSighashType::All,
    TapSighashType::None,
    TapSighashType::Single,
    TapSighashType::AllPlusAnyoneCanPay,
    TapSighashType::NonePlusAnyoneCanPay,
    TapSighashType::SinglePlusAnyoneCanPay,
];

/// The reason of the refusal of a hash for the refund leaf.
const REFUND_LEAF: &str = "a signature of this hash would spend the refund leaf, for which this key alone is enough";

/// A refund of every funding output to the owner, each in its own input and output.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InstantRefund {
    /// The transaction without witnesses. Output `i` has the whole value of input `i`.
    pub transaction: Transaction,
    /// The sighash of each input.
    pub sighashes: Vec<[u8; 32]>,
    /// What the owner should know: outputs whose transaction the record does not name ([`Code::FundingTxDiffers`]).
    pub warnings: Warnings,
    pub(super) htlc: RecordedHtlc,
    prevouts: Vec<TxOut>,
}

/// The body of `PATCH /v2/orders/{id}?action=instant-refund`, with one signature for each funding output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Body {
    /// The signatures, each 130 hex digits: 65 bytes, of which the last is the hash type.
    pub signatures: Vec<String>,
}

impl InstantRefund {
    /// Creates the refund of these outputs to the owner's address.
    ///
    /// # Errors
    ///
    /// [`Code::FundingMismatch`] for no output, one that is given twice, or more than the chain's supply; or the errors of [`Destination::script`] and
    /// [`Code::ChangeToDeposit`] for the address.
    pub fn new(htlc: &RecordedHtlc, fundings: &[Funding], owner: impl Into<Destination>) -> Result<Self, Refusal> {
        htlc.check_fundings(fundings)?;
        Self::from_parts(htlc, fundings, &htlc.destination(&owner.into())?)
    }

    /// Creates the refund of the outputs whose sighashes equal `hashes`, in that order. A hash commits to a single output, so the service may
    /// name any of them.
    ///
    /// # Errors
    ///
    /// [`Code::SighashMismatch`] at `/hashes` for no hash, or for more than outputs, and at `/hashes/<index>` for one that belongs to no
    /// output, or to one that another hash has already: the service is to blame for each. [`Code::FundingMismatch`] at `/funding` for no
    /// output, and otherwise the errors of [`InstantRefund::new`].
    pub fn of_hashes(
        htlc: &RecordedHtlc,
        outputs: &[Funding],
        owner: impl Into<Destination>,
        hashes: &[[u8; 32]],
    ) -> Result<Self, Refusal> {
        const AT: At<'_> = At::of("/hashes", Origin::Service);
        let owner = htlc.destination(&owner.into())?;
        if outputs.is_empty() {
            htlc.check_fundings(outputs)?;
        }
        if hashes.is_empty() || hashes.len() > outputs.len() {
            let refusal = AT.refuse(Code::SighashMismatch).with_actual(hashes.len());
            return Err(refusal.with_reason("each output of the deposit has one hash"));
        }
        let refund_of = |output: &Funding| Self::from_parts(htlc, &[*output], &owner);
        let is_taken =
            |chosen: &[Option<Funding>], output: &Funding| chosen.iter().flatten().any(|taken| taken.outpoint == output.outpoint);
        let mut chosen = vec![None; hashes.len()];
        for output in outputs {
            if chosen.iter().all(Option::is_some) {
                break;
            }
            if is_taken(&chosen, output) {
                continue;
            }
            let refund = refund_of(output)?;
            let mut open = chosen.iter_mut().zip(hashes).filter(|(slot, _)| slot.is_none());
            if let Some((slot, _)) = open.find(|(_, hash)| refund.sighashes.contains(hash)) {
                *slot = Some(*output);
            }
        }
        let missing = chosen.iter().zip(hashes).enumerate().find(|(_, (slot, _))| slot.is_none());
        if let Some((index, (_, hash))) = missing {
            let refusal = AT.refuse_below(Code::SighashMismatch, &format!("/{index}")).with_actual(hex::encode(hash));
            let mut expected = None;
            for output in outputs.iter().filter(|output| !is_taken(&chosen, output)) {
                let refund = refund_of(output)?;
                expected = expected.or_else(|| refund.sighashes.first().map(hex::encode));
                if refund.is_of_refund_leaf(0, hash) {
                    return Err(refusal.with_reason(REFUND_LEAF));
                }
            }
            return Err(match expected {
                Some(expected) => refusal.with_expected(expected),
                None => refusal,
            });
        }
        let chosen: Vec<_> = chosen.into_iter().flatten().collect();
        htlc.check_fundings(&chosen)?;
        Self::from_parts(htlc, &chosen, &owner)
    }

    /// Returns whether this refunds the whole payment: every output of the deposit that is `known`, such as from endpoints, and at least
    /// the order's amount and what the record states as paid. What is left can be refunded after the timelock.
    ///
    /// The record alone proves nothing here. The service writes it, and anybody can pay dust to the deposit.
    #[must_use]
    pub fn is_whole(&self, known: &[Funding]) -> bool {
        let is_refunded = |funding: &Funding| self.transaction.input.iter().any(|input| input.previous_output == funding.outpoint);
        let refunded = sum(self.prevouts.iter().map(|prevout| prevout.value));
        known.iter().all(is_refunded) && refunded >= self.htlc.amount.max(self.htlc.filled)
    }

    pub(super) fn from_parts(htlc: &RecordedHtlc, fundings: &[Funding], owner: &ScriptBuf) -> Result<Self, Refusal> {
        let prevouts: Vec<_> = fundings.iter().map(|funding| htlc.prevout(funding)).collect();
        let inputs = fundings.iter().map(|funding| TxIn {
            previous_output: funding.outpoint,
            script_sig: ScriptBuf::new(),
            sequence: Sequence::MAX,
            witness: Witness::new(),
        });
        let outputs = prevouts.iter().map(|prevout| TxOut { value: prevout.value, script_pubkey: owner.clone() });
        let transaction = new_transaction(inputs.collect(), outputs.collect());
        let signed = HtlcSighash { tree: &htlc.tree, transaction: &transaction, prevouts: &prevouts };
        let sighashes = (0..prevouts.len()).map(|index| signed.digest(index, Leaf::InstantRefund, HASH_TYPE));
        // The library can compute this digest for every input with an output at its index, which all inputs have.
        let sighashes = sighashes.collect::<Option<_>>().ok_or_else(|| Refusal::new(Code::Internal, ""))?;
        Ok(Self { sighashes, warnings: htlc.funding_warnings(fundings), htlc: htlc.clone(), transaction, prevouts })
    }

    /// Requires that the hashes that the service wants to be signed are exactly [`sighashes`](Self::sighashes).
    ///
    /// # Errors
    ///
    /// The service is to blame for each: [`Code::SighashMismatch`] at `/<index>`, with a special reason for a hash of the refund leaf, or at the root for another number of
    /// hashes.
    pub fn check_hashes(&self, hashes: &[&str]) -> Result<(), Refusal> {
        const AT: At<'_> = At::of("", Origin::Service);
        if hashes.len() != self.sighashes.len() {
            return Err(AT.refuse(Code::SighashMismatch).with_expected(self.sighashes.len()).with_actual(hashes.len()));
        }
        for (index, (expected, hash)) in self.sighashes.iter().zip(hashes).enumerate() {
            let given = digits::array::<32>(hash.strip_prefix("0x").unwrap_or(hash)).ok();
            if given.as_ref() == Some(expected) {
                continue;
            }
            let refusal = AT.refuse_below(Code::SighashMismatch, &format!("/{index}"));
            let refusal = refusal.with_expected(hex::encode(expected)).with_actual(*hash);
            let is_of_refund_leaf = given.is_some_and(|given| self.is_of_refund_leaf(index, &given));
            return Err(if is_of_refund_leaf { refusal.with_reason(REFUND_LEAF) } else { refusal });
        }
        Ok(())
    }

    /// Returns whether a hash is one of the refund leaf for this input, with any hash type, and with the sequence of a refund or of an
    /// instant refund.
    fn is_of_refund_leaf(&self, index: usize, hash: &[u8; 32]) -> bool {
        let mut refund = self.transaction.clone();
        for input in &mut refund.input {
            input.sequence = Sequence::from_height(self.htlc.tree.htlc.timelock);
        }
        [&self.transaction, &refund].into_iter().any(|transaction| {
            let signed = HtlcSighash { tree: &self.htlc.tree, transaction, prevouts: &self.prevouts };
            HASH_TYPES.into_iter().any(|hash_type| signed.digest(index, Leaf::Refund, hash_type).as_ref() == Some(hash))
        })
    }

    /// Returns the signing requests for the initiator's key, one for each input.
    #[must_use]
    pub fn requests(&self) -> Vec<SigningRequest<Payload>> {
        let htlc = &self.htlc;
        let leaf = LeafSpend::new(&htlc.tree, Leaf::InstantRefund, htlc.initiator, None);
        let inputs = self.prevouts.iter().map(|prevout| {
            let mut input = psbt::Input { witness_utxo: Some(prevout.clone()), ..Default::default() };
            input.sighash_type = Some(HASH_TYPE.into());
            if let Some(leaf) = &leaf {
                leaf.add_to_input(&mut input);
            }
            input
        });
        let psbt = Arc::new(new_psbt(self.transaction.clone(), inputs.collect()));
        let signed = HtlcSighash { tree: &htlc.tree, transaction: &self.transaction, prevouts: &self.prevouts };
        let requests = self.sighashes.iter().enumerate().map(|(index, sighash)| {
            let bytes = signed.bytes(index, Leaf::InstantRefund, HASH_TYPE).unwrap_or_default();
            let payload = Payload::new(Arc::clone(&psbt), index);
            SigningRequest::new(RequestId::Input(index), htlc.initiator.to_string(), Scheme::Bip340, payload, bytes, sighash.to_vec())
        });
        requests.collect()
    }

    /// Signs every input with the initiator's key.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] for any other key.
    pub fn sign(&self, key: &Key) -> Result<Body, Refusal> {
        self.sign_as(key, &self.htlc.initiator)
    }

    /// Signs every input with the redeemer's key, which is the redeemer's part of an instant refund.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] for any other key.
    pub fn countersign(&self, key: &Key) -> Result<Body, Refusal> {
        self.sign_as(key, &self.htlc.redeemer)
    }

    fn sign_as(&self, key: &Key, signer: &XOnlyPublicKey) -> Result<Body, Refusal> {
        let signatures = self.sighashes.iter().map(|sighash| {
            let signature = key.sign_as(signer, sighash);
            signature.map(|signature| hex::encode(with_type(&signature)))
        });
        let signatures = signatures.collect::<Option<_>>();
        let signatures = signatures.ok_or_else(|| Refusal::new(Code::KeyMismatch, "").with_expected(format!("the key of {signer}")))?;
        Ok(Body { signatures })
    }

    /// Proves the initiator's signatures of an external signer, each 64 or 65 bytes in hex, and returns the body of the PATCH.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureCount`] for another number of signatures; [`Code::SignatureMalformed`] or [`Code::SignatureMismatch`] at
    /// `/<index>`.
    pub fn attach(&self, signatures: &[&str]) -> Result<Body, Refusal> {
        let proven = self.prove(signatures, &self.htlc.initiator)?;
        Ok(Body { signatures: proven.iter().map(|signature| hex::encode(with_type(signature))).collect() })
    }

    fn prove(&self, signatures: &[&str], signer: &XOnlyPublicKey) -> Result<Vec<schnorr::Signature>, Refusal> {
        if signatures.len() != self.sighashes.len() {
            return Err(Refusal::new(Code::SignatureCount, "").with_expected(self.sighashes.len()).with_actual(signatures.len()));
        }
        let prove = |(index, (text, sighash)): (usize, (&&str, &[u8; 32]))| {
            let refuse = |code| Refusal::new(code, format!("/{index}"));
            let bytes = digits::bytes(text).map_err(|_| refuse(Code::SignatureMalformed))?;
            let signature =
                parse(&bytes).ok_or_else(|| refuse(Code::SignatureMalformed).with_expected("64 bytes, or 65 bytes that end with 83"))?;
            if curve::verify_schnorr(&signature, sighash, signer) { Ok(signature) } else { Err(refuse(Code::SignatureMismatch)) }
        };
        signatures.iter().zip(&self.sighashes).enumerate().map(prove).collect()
    }

    /// Returns the transaction with the signatures of both parties. It pays no fee: see [`InstantRefund::with_fee`].
    ///
    /// # Errors
    ///
    /// As [`InstantRefund::attach`], for the signatures of either party.
    pub fn complete(&self, initiator: &Body, redeemer: &Body) -> Result<Transaction, Refusal> {
        let prove = |body: &Body, signer| {
            let signatures: Vec<_> = body.signatures.iter().map(String::as_str).collect();
            self.prove(&signatures, signer)
        };
        let (first, second) = (prove(initiator, &self.htlc.initiator)?, prove(redeemer, &self.htlc.redeemer)?);
        let tree = &self.htlc.tree;
        let mut transaction = self.transaction.clone();
        for ((input, initiator), redeemer) in transaction.input.iter_mut().zip(&first).zip(&second) {
            // The script checks the initiator's signature first, so that is the item next to the script.
            input.witness.push(with_type(redeemer));
            input.witness.push(with_type(initiator));
            input.witness.push(tree.script(Leaf::InstantRefund));
            input.witness.push(tree.control_block(Leaf::InstantRefund));
        }
        Ok(transaction)
    }

    /// Adds coins that pay the fee to a completed refund. Its signatures stay valid.
    ///
    /// # Errors
    ///
    /// [`Code::InstantRefundMismatch`] for another transaction than this refund; [`Code::InsufficientFunds`]; [`Code::FeeRateTooHigh`] or
    /// [`Code::FeeAbovePayout`]; [`Code::UtxoTwice`] or [`Code::AmountAboveSupply`] for a coin; the errors of [`Destination::script`], or
    /// [`Code::ChangeToDeposit`], for the change address; [`Code::TransactionAboveStandard`].
    pub fn with_fee(&self, complete: &Transaction, coins: &FeeCoins) -> Result<UnsignedOrder, Refusal> {
        if without_witnesses(complete) != self.transaction {
            return Err(Refusal::new(Code::InstantRefundMismatch, "").with_reason("the transaction is not this refund"));
        }
        let inputs = complete.input.iter().zip(&self.prevouts).map(|(input, prevout)| {
            Input::new(input.previous_output, input.sequence, prevout.clone(), Kind::Presigned(input.witness.clone()))
        });
        let payment = coins.add_to(self.htlc.chain, inputs.collect(), self.transaction.output.clone())?;
        self.htlc.recovery(Role::Refund, payment, Summary::default(), self.warnings.clone(), Exceptions::default(), FundingSource::Caller)
    }
}

/// Returns a transaction without its witnesses.
pub(super) fn without_witnesses(transaction: &Transaction) -> Transaction {
    let mut stripped = transaction.clone();
    for input in &mut stripped.input {
        input.witness.clear();
    }
    stripped
}

fn with_type(signature: &schnorr::Signature) -> Vec<u8> {
    bitcoin::taproot::Signature { signature: *signature, sighash_type: HASH_TYPE }.to_vec()
}

/// Parses a signature of 64 bytes, or of 65 bytes that end with the hash type of an instant refund.
pub(super) fn parse(bytes: &[u8]) -> Option<schnorr::Signature> {
    match bytes {
        [signature @ .., 0x83] if signature.len() == 64 => schnorr::Signature::from_slice(signature).ok(),
        signature if signature.len() == 64 => schnorr::Signature::from_slice(signature).ok(),
        _ => None,
    }
}

/// A transaction that spends outputs of one HTLC, for the computation of sighashes.
struct HtlcSighash<'s> {
    tree: &'s Tree,
    transaction: &'s Transaction,
    prevouts: &'s [TxOut],
}

impl HtlcSighash<'_> {
    /// Returns the bytes that are hashed for a digest.
    fn bytes(&self, index: usize, leaf: Leaf, hash_type: TapSighashType) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let leaf = Some((self.tree.leaf_hash(leaf), NO_CODE_SEPARATOR));
        let prevouts = Prevouts::All(self.prevouts);
        SighashCache::new(self.transaction).taproot_encode_signing_data_to(&mut bytes, index, &prevouts, None, leaf, hash_type).ok()?;
        Some(bytes)
    }

    fn digest(&self, index: usize, leaf: Leaf, hash_type: TapSighashType) -> Option<[u8; 32]> {
        self.bytes(index, leaf, hash_type).map(|bytes| TapSighash::hash(&bytes).to_byte_array())
    }
}
