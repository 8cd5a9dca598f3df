//! Instant refund: both parties sign the coins back to the owner before the timelock.
//!
//! The owner's signature has hash type 0x83, SINGLE with ANYONECANPAY: it binds one input and the output at the same index,
//! so that others can add an input for the fee. A bare hash from the service could bind any output, or be of the refund leaf,
//! which the same key opens. Nothing here signs a hash that it has not computed from the record itself.

use bitcoin::consensus::encode;
use bitcoin::hashes::Hash;
use bitcoin::secp256k1::{Message, schnorr};
use bitcoin::sighash::{Prevouts, SighashCache};
use bitcoin::{ScriptBuf, Sequence, TapSighashType, Transaction, TxOut, XOnlyPublicKey};
use countersign_core::chains::digits;
use countersign_core::{Code, Refusal, SigningRequest};
use serde::Serialize;

use super::{Cost, Fee, Funding, Swap, add_fee_coins, input, transaction};
use crate::htlc::Leaf;
use crate::sign::{Key, SECP, Signed};
use crate::transaction::{Kind, Payment};

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

/// Why a refusal of a hash can say more.
const REFUND_LEAF: &str = "this hash would sign the refund leaf, which the key alone opens";

/// A refund of every funding output to the owner, each in its own input and output.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InstantRefund {
    /// The transaction without witnesses: output `i` has all of input `i`.
    pub transaction: Transaction,
    /// What is signed for each input.
    pub sighashes: Vec<[u8; 32]>,
    swap: Swap,
    prevouts: Vec<TxOut>,
}

/// The body of `PATCH /v2/orders/{id}?action=instant-refund`: one signature for each funding output, 65 bytes in hex, the
/// last of them the hash type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Body {
    /// 130 hex digits each.
    pub signatures: Vec<String>,
}

impl InstantRefund {
    /// The refund of these outputs to the owner's address.
    ///
    /// # Errors
    ///
    /// [`Code::FundingMismatch`] and what the address refuses.
    pub fn new(swap: &Swap, fundings: &[Funding], owner: &str) -> Result<Self, Refusal> {
        swap.check_fundings(fundings)?;
        let script_pubkey = swap.destination(owner)?;
        let prevouts: Vec<_> = fundings.iter().map(|funding| swap.prevout(funding)).collect();
        let outputs = prevouts.iter().map(|prevout| TxOut { value: prevout.value, script_pubkey: script_pubkey.clone() }).collect();
        let inputs = fundings.iter().map(|funding| input(funding, Sequence::MAX)).collect();
        Self::of(swap.clone(), transaction(inputs, outputs), prevouts).ok_or_else(|| Refusal::new(Code::Internal, "/order"))
    }

    fn of(swap: Swap, transaction: Transaction, prevouts: Vec<TxOut>) -> Option<Self> {
        let sighashes = (0..prevouts.len()).map(|index| sighash(&swap, &transaction, &prevouts, index, Leaf::InstantRefund, HASH_TYPE));
        let sighashes = sighashes.collect::<Option<Vec<_>>>()?;
        Some(Self { transaction, sighashes, swap, prevouts })
    }

    /// Requires that the hashes that the service wants signed are exactly these.
    ///
    /// # Errors
    ///
    /// [`Code::SighashMismatch`] at `/hashes/<index>`, which says so where a hash is of the refund leaf.
    pub fn check_hashes(&self, hashes: &[&str]) -> Result<(), Refusal> {
        if hashes.len() != self.sighashes.len() {
            return Err(Refusal::new(Code::SighashMismatch, "/hashes").with_expected(self.sighashes.len()).with_actual(hashes.len()));
        }
        for (index, (wanted, hash)) in self.sighashes.iter().zip(hashes).enumerate() {
            let given = digits::array::<32>(hash.strip_prefix("0x").unwrap_or(hash)).ok();
            if given.as_ref() == Some(wanted) {
                continue;
            }
            let refusal = Refusal::new(Code::SighashMismatch, format!("/hashes/{index}")).with_expected(hex::encode(wanted)).with_actual(hash);
            return Err(if given.is_some_and(|given| self.is_of_refund_leaf(index, &given)) {
                refusal.with_reason(REFUND_LEAF)
            } else {
                refusal
            });
        }
        Ok(())
    }

    /// Whether a hash is that of the refund leaf for this input, under any hash type, as a refund or as an instant refund.
    fn is_of_refund_leaf(&self, index: usize, hash: &[u8; 32]) -> bool {
        let mut refund = self.transaction.clone();
        for input in &mut refund.input {
            input.sequence = Sequence::from_height(self.swap.tree.htlc.timelock);
        }
        [&self.transaction, &refund].into_iter().any(|transaction| {
            HASH_TYPES
                .into_iter()
                .any(|hash_type| sighash(&self.swap, transaction, &self.prevouts, index, Leaf::Refund, hash_type).as_ref() == Some(hash))
        })
    }

    /// What a signer outside is asked for: the initiator's key, one signature for each input.
    #[must_use]
    pub fn requests(&self) -> Vec<SigningRequest> {
        let signer = hex::encode(self.swap.tree.htlc.initiator);
        let requests = self.sighashes.iter().enumerate().map(|(index, sighash)| {
            let payload = payload(&self.swap, &self.transaction, &self.prevouts, index, Leaf::InstantRefund, HASH_TYPE);
            SigningRequest::new(format!("input_{index}"), signer.clone(), payload.unwrap_or_default(), sighash.to_vec())
        });
        requests.collect()
    }

    /// Signs every input with the initiator's key.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] if it is another's.
    pub fn sign(&self, key: &Key) -> Result<Body, Refusal> {
        self.sign_as(key, &self.swap.tree.htlc.initiator)
    }

    /// Signs every input with the redeemer's key: the other half, for whoever holds it.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] if it is another's.
    pub fn countersign(&self, key: &Key) -> Result<Body, Refusal> {
        self.sign_as(key, &self.swap.tree.htlc.redeemer)
    }

    fn sign_as(&self, key: &Key, signer: &[u8; 32]) -> Result<Body, Refusal> {
        let signatures = self.sighashes.iter().map(|sighash| {
            let signature = key.sign_as(signer, &Message::from_digest(*sighash)).ok_or_else(|| {
                Refusal::new(Code::KeyMismatch, "/wallet/secret_key").with_expected(format!("the key of {}", hex::encode(signer)))
            })?;
            Ok(hex::encode(with_type(&signature)))
        });
        Ok(Body { signatures: signatures.collect::<Result<_, Refusal>>()? })
    }

    /// Proves the initiator's signatures from outside, 64 or 65 bytes in hex each, and writes the body of the PATCH.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureCount`], [`Code::SignatureMalformed`] or [`Code::SignatureMismatch`] at `/signatures/<index>`.
    pub fn attach(&self, signatures: &[&str]) -> Result<Body, Refusal> {
        let proven = self.proven(signatures, &self.swap.tree.htlc.initiator)?;
        Ok(Body { signatures: proven.iter().map(|signature| hex::encode(with_type(signature))).collect() })
    }

    fn proven(&self, signatures: &[&str], signer: &[u8; 32]) -> Result<Vec<schnorr::Signature>, Refusal> {
        if signatures.len() != self.sighashes.len() {
            return Err(Refusal::new(Code::SignatureCount, "/signatures").with_expected(self.sighashes.len()).with_actual(signatures.len()));
        }
        let prove = |(index, (text, sighash)): (usize, (&&str, &[u8; 32]))| {
            let refuse = |code| Refusal::new(code, format!("/signatures/{index}"));
            let bytes = digits::bytes(text).map_err(|_| refuse(Code::SignatureMalformed))?;
            let signature = parse(&bytes).ok_or_else(|| refuse(Code::SignatureMalformed).with_expected("64 bytes, and 83 behind them"))?;
            if verify(&signature, sighash, signer) { Ok(signature) } else { Err(refuse(Code::SignatureMismatch)) }
        };
        signatures.iter().zip(&self.sighashes).enumerate().map(prove).collect()
    }

    /// The transaction with both parties' signatures. It pays no fee: see [`InstantRefund::with_fee`].
    ///
    /// # Errors
    ///
    /// As [`InstantRefund::attach`].
    pub fn complete(&self, initiator: &Body, redeemer: &Body) -> Result<Transaction, Refusal> {
        let proven = |body: &Body, signer| {
            let signatures: Vec<_> = body.signatures.iter().map(String::as_str).collect();
            self.proven(&signatures, signer)
        };
        let htlc = &self.swap.tree.htlc;
        let (first, second) = (proven(initiator, &htlc.initiator)?, proven(redeemer, &htlc.redeemer)?);
        let mut transaction = self.transaction.clone();
        for ((input, initiator), redeemer) in transaction.input.iter_mut().zip(&first).zip(&second) {
            // The item nearest the script is checked first, and that is the initiator's.
            input.witness.push(with_type(redeemer));
            input.witness.push(with_type(initiator));
            input.witness.push(self.swap.tree.script(Leaf::InstantRefund));
            input.witness.push(self.swap.tree.control_block(Leaf::InstantRefund));
        }
        Ok(transaction)
    }

    /// Adds coins that pay the fee behind a completed refund, and signs them: the signatures that are there stay valid.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] if the key does not open the coins, and [`Code::InsufficientFunds`].
    pub fn with_fee(&self, complete: &Transaction, fee: &Fee, key: &Key) -> Result<Signed, Refusal> {
        let Fee::Paid { .. } = fee else {
            return Err(Refusal::new(Code::InsufficientFunds, "/fee")
                .with_reason("an instant refund pays out everything: its fee comes from other coins"));
        };
        let done = complete.input.iter().zip(&self.prevouts);
        let mut inputs: Vec<_> = done.map(|(input, prevout)| (prevout.clone(), Kind::Done(input.witness.clone()))).collect();
        let mut whole = self.transaction.clone();
        add_fee_coins(fee, &mut inputs, &mut whole.input);
        let cost = Cost::of(self.swap.chain, &inputs, &whole.output, fee)?;
        let change = cost.change.is_some().then_some(whole.output.len());
        whole.output.extend(cost.change);
        let payment = Payment::new(whole, inputs, (cost.fee, cost.vsize, fee.rate()), change)?;
        payment.sign(key, self.swap.chain)
    }

    /// Verifies the presigned instant refund of a record: it refunds all of the record's amount to the owner's address, and
    /// the initiator's signature in it is valid. Answers what it refunds.
    ///
    /// The slot of the redeemer may be empty, hold a copy of the initiator's signature as a placeholder, or the redeemer's own
    /// valid signature, nothing else.
    ///
    /// # Errors
    ///
    /// [`Code::InstantRefundMismatch`] at `/order/source_swap/instant_refund_tx`, with a byte range where one is to blame.
    pub fn verify_presigned(swap: &Swap, owner: &str) -> Result<Self, Refusal> {
        let mismatch = |why: &'static str| swap.refuse(Code::InstantRefundMismatch, "instant_refund_tx").with_reason(why);
        let owner = swap.destination(owner)?;
        let bytes = digits::bytes(&swap.instant_refund_tx).ok().filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or_else(|| mismatch("the record has no presigned refund in hex"))?;
        let found: Transaction = encode::deserialize(&bytes).map_err(|_| mismatch("these bytes are no transaction"))?;
        if encode::serialize(&found) != bytes {
            return Err(mismatch("the transaction is not in its canonical form"));
        }
        let fundings: Vec<_> = found
            .input
            .iter()
            .zip(&found.output)
            .map(|(input, output)| Funding::new(input.previous_output, output.value.to_sat()))
            .collect();
        if swap.funding.is_empty() {
            return Err(mismatch("the record names no funding transaction"));
        }
        let total = swap.check_fundings(&fundings)?;
        let wanted = if swap.filled == 0 { swap.amount } else { swap.filled };
        if total != wanted {
            return Err(mismatch("it refunds another amount").with_expected(wanted).with_actual(total));
        }
        let prevouts: Vec<_> = fundings.iter().map(|funding| swap.prevout(funding)).collect();
        let outputs = prevouts.iter().map(|prevout| TxOut { value: prevout.value, script_pubkey: owner.clone() }).collect();
        let bare = transaction(fundings.iter().map(|funding| input(funding, Sequence::MAX)).collect(), outputs);
        let refund = Self::of(swap.clone(), bare, prevouts).ok_or_else(|| swap.refuse(Code::Internal, "instant_refund_tx"))?;
        let mut stripped = found.clone();
        for input in &mut stripped.input {
            input.witness.clear();
        }
        if stripped != refund.transaction {
            return Err(mismatch(
                "it is not the transaction that the record's terms give: version, locktime, sequences, outputs to the owner",
            ));
        }
        for (input, sighash) in found.input.iter().zip(&refund.sighashes) {
            refund.check_witness(&input.witness, sighash).map_err(mismatch)?;
        }
        Ok(refund)
    }

    fn check_witness(&self, witness: &bitcoin::Witness, sighash: &[u8; 32]) -> Result<(), &'static str> {
        let items: Vec<_> = witness.iter().collect();
        let [redeemer, initiator, script, control] = items.as_slice() else { return Err("the witness has another number of items") };
        if ScriptBuf::from_bytes(script.to_vec()) != self.swap.tree.script(Leaf::InstantRefund) {
            return Err("the script is not the instant-refund leaf");
        }
        if **control != self.swap.tree.control_block(Leaf::InstantRefund) {
            return Err("the control block is not the instant-refund leaf's");
        }
        let typed = |bytes: &[u8]| (bytes.len() == 65).then(|| parse(bytes)).flatten();
        let valid = |bytes: &[u8], key: &[u8; 32]| typed(bytes).is_some_and(|signature| verify(&signature, sighash, key));
        let htlc = &self.swap.tree.htlc;
        if !valid(initiator, &htlc.initiator) {
            return Err("the initiator's signature is not valid");
        }
        if !redeemer.is_empty() && redeemer != initiator && !valid(redeemer, &htlc.redeemer) {
            return Err("the redeemer's slot holds neither a placeholder nor a valid signature");
        }
        Ok(())
    }
}

fn with_type(signature: &schnorr::Signature) -> Vec<u8> {
    bitcoin::taproot::Signature { signature: *signature, sighash_type: HASH_TYPE }.to_vec()
}

/// 64 bytes, or 65 with the hash type of an instant refund.
fn parse(bytes: &[u8]) -> Option<schnorr::Signature> {
    match bytes {
        [signature @ .., 0x83] if signature.len() == 64 => schnorr::Signature::from_slice(signature).ok(),
        signature if signature.len() == 64 => schnorr::Signature::from_slice(signature).ok(),
        _ => None,
    }
}

fn verify(signature: &schnorr::Signature, sighash: &[u8; 32], signer: &[u8; 32]) -> bool {
    let key = XOnlyPublicKey::from_slice(signer);
    key.is_ok_and(|key| SECP.verify_schnorr(signature, &Message::from_digest(*sighash), &key).is_ok())
}

fn payload(
    swap: &Swap,
    transaction: &Transaction,
    prevouts: &[TxOut],
    index: usize,
    leaf: Leaf,
    hash_type: TapSighashType,
) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    let leaf = Some((swap.tree.leaf_hash(leaf), 0xffff_ffff));
    let mut cache = SighashCache::new(transaction);
    cache.taproot_encode_signing_data_to(&mut payload, index, &Prevouts::All(prevouts), None, leaf, hash_type).ok()?;
    Some(payload)
}

fn sighash(
    swap: &Swap,
    transaction: &Transaction,
    prevouts: &[TxOut],
    index: usize,
    leaf: Leaf,
    hash_type: TapSighashType,
) -> Option<[u8; 32]> {
    payload(swap, transaction, prevouts, index, leaf, hash_type).map(|payload| bitcoin::TapSighash::hash(&payload).to_byte_array())
}
