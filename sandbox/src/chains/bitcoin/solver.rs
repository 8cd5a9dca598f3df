//! The solver's transactions on this chain. The relayer uses them for users without a key.

use std::cmp::Reverse;

use bitcoin::ecdsa;
use bitcoin::hashes::Hash;
use bitcoin::key::{Keypair, Secp256k1};
use bitcoin::secp256k1::{All, Message, SecretKey};
use bitcoin::sighash::{EcdsaSighashType, Prevouts, SighashCache};
use bitcoin::{
    Amount, OutPoint, PublicKey, ScriptBuf, Sequence, TapSighashType, Transaction, TxIn, TxOut, Witness, XOnlyPublicKey, absolute,
    transaction,
};

use super::Bitcoin;
use super::htlc::{Htlc, Leaf};
use super::ledger::script_hash;
use crate::accounts;
use crate::chains::engine::Terms;

/// The fee rate of the sandbox's own transactions, in base units per virtual byte.
const FEE_RATE: u64 = 2;
/// With more confirmed coins than this, a payment spends the smallest ones first. [`GATHERED`] is their number.
const MANY: usize = 500;
const GATHERED: usize = 3;
/// The hash type of an instant refund.
pub(super) const SINGLE: TapSighashType = TapSighashType::SinglePlusAnyoneCanPay;

/// A key with the script of its own coins.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    pub(super) pair: Keypair,
    pub(super) x_only: XOnlyPublicKey,
    pub(super) script: ScriptBuf,
}

impl Holder {
    pub(super) fn new(secp: &Secp256k1<All>, key: &[u8; 32]) -> Result<Self, String> {
        let pair = Keypair::from_seckey_slice(secp, key).map_err(|error| error.to_string())?;
        let public = PublicKey::new(pair.public_key());
        let hash = public.wpubkey_hash().map_err(|error| error.to_string())?;
        Ok(Self { pair, x_only: pair.x_only_public_key().0, script: ScriptBuf::new_p2wpkh(&hash) })
    }
}

/// An output to spend.
type Coin = (OutPoint, TxOut);

impl Bitcoin {
    pub(super) fn holder(&self, role: &str) -> Result<Holder, String> {
        Holder::new(&self.secp, &accounts::key(role))
    }

    /// Returns the key of a side whose request had no public key of the user. The service holds this key, so such a
    /// user trusts the service.
    fn held(&self, terms: &Terms) -> Result<Holder, String> {
        let side = if terms.is_source { "source" } else { "destination" };
        self.holder(&format!("{side} of {}", hex::encode(terms.secret_hash)))
    }

    /// Returns the user's key in the HTLC.
    pub(super) fn user_key(&self, terms: &Terms) -> Result<XOnlyPublicKey, String> {
        match terms.delegate.as_deref().filter(|text| !text.is_empty()) {
            Some(text) => text.parse().map_err(|_| "delegate is not an x-only public key".to_owned()),
            None => Ok(self.held(terms)?.x_only),
        }
    }

    pub(super) fn htlc(&self, terms: &Terms) -> Result<Htlc, String> {
        self.check_asset(&terms.asset)?;
        let (user, solver) = (self.user_key(terms)?, self.holder(accounts::SOLVER)?.x_only);
        if user == solver {
            return Err("delegate is the solver's key".to_owned());
        }
        let (initiator, redeemer) = if terms.is_source { (user, solver) } else { (solver, user) };
        let timelock = u16::try_from(terms.timelock).ok();
        let htlc = timelock.and_then(|timelock| Htlc::new(&self.secp, initiator, redeemer, terms.secret_hash, timelock));
        htlc.ok_or_else(|| "the timelock must be from 1 to 65535 blocks".to_owned())
    }

    pub(super) fn submit(&mut self, transaction: Transaction) -> Result<String, String> {
        self.ledger.accept(transaction).map(|txid| txid.to_string()).map_err(|rejection| rejection.message)
    }

    /// Returns a payment from a key's coins. The most valuable confirmed coins are used first, then unconfirmed
    /// change.
    pub(super) fn payment(&self, payer: &Holder, outputs: Vec<TxOut>, with_change: bool) -> Result<Transaction, String> {
        let empty = new_transaction(Vec::new(), outputs);
        self.with_coins(payer, empty, &[], with_change)
    }

    /// Adds coins of a key and change to a transaction. Its existing inputs are signed and spend `held`.
    pub(super) fn with_coins(&self, payer: &Holder, start: Transaction, held: &[TxOut], pending: bool) -> Result<Transaction, String> {
        let unspent = self.ledger.unspent(script_hash(&payer.script));
        let mut coins: Vec<_> = unspent.filter(|(_, _, entry)| pending || entry.height().is_some()).collect();
        coins.sort_by_key(|(outpoint, output, entry)| (entry.height().is_none(), Reverse(output.value), *outpoint));
        let confirmed = coins.partition_point(|(_, _, entry)| entry.height().is_some());
        if let Some(confirmed) = coins.get_mut(..confirmed).filter(|confirmed| confirmed.len() > MANY) {
            // Redemptions leave small coins behind, which payments collect.
            confirmed.rotate_right(GATHERED);
        }
        let paid = super::ledger::sum(&start.output);
        let (mut transaction, mut prevouts) = (start, held.to_vec());
        let fixed = transaction.input.len();
        transaction.output.push(TxOut { value: Amount::ZERO, script_pubkey: payer.script.clone() });
        for (outpoint, output, _) in coins {
            // A signature and a key of the maximum length.
            let witness = Witness::from_slice(&[&[0; 72][..], &[0; 33]]);
            transaction.input.push(new_input(outpoint, Sequence::ENABLE_RBF_NO_LOCKTIME, witness));
            prevouts.push(output.clone());
            let rest = super::ledger::sum(&prevouts).checked_sub(paid).and_then(|rest| rest.checked_sub(fee(&transaction)));
            let min = payer.script.minimal_non_dust_custom(self.ledger.network.dust_rate());
            let Some(rest) = rest.map(Amount::from_sat).filter(|rest| *rest >= min) else { continue };
            if let Some(change) = transaction.output.last_mut() {
                change.value = rest;
            }
            return self.signed(payer, transaction, &prevouts, fixed);
        }
        Err("the account does not have that much".to_owned())
    }

    /// Signs the inputs from `first` on. They spend outputs of the key.
    fn signed(&self, payer: &Holder, transaction: Transaction, prevouts: &[TxOut], first: usize) -> Result<Transaction, String> {
        let mut cache = SighashCache::new(transaction);
        let secret = SecretKey::from_keypair(&payer.pair);
        for (index, prevout) in prevouts.iter().enumerate().skip(first) {
            let hash_type = EcdsaSighashType::All;
            let digest = cache.p2wpkh_signature_hash(index, &prevout.script_pubkey, prevout.value, hash_type);
            let digest = digest.map_err(|error| error.to_string())?;
            let signature = self.secp.sign_ecdsa(&Message::from_digest(digest.to_byte_array()), &secret);
            let signature = ecdsa::Signature { signature, sighash_type: hash_type };
            if let Some(witness) = cache.witness_mut(index) {
                *witness = Witness::p2wpkh(&signature, &payer.pair.public_key());
            }
        }
        Ok(cache.into_transaction())
    }

    /// Returns the unspent outputs of an HTLC: the one that covers the amount, or all of them if only their sum does.
    ///
    /// Dust next to the payment is not spent. Whoever can refund the dust early could evict the whole transaction
    /// from the mempool.
    pub(super) fn deposits(&self, htlc: &Htlc, amount: u128) -> Result<Vec<Coin>, String> {
        let unspent = self.ledger.unspent(script_hash(&htlc.script_pubkey()));
        let mut coins: Vec<_> = unspent.map(|(outpoint, output, entry)| (entry.height().unwrap_or(u32::MAX), outpoint, output)).collect();
        coins.sort_by_key(|(height, outpoint, _)| (*height, *outpoint));
        let coins: Vec<Coin> = coins.into_iter().map(|(_, outpoint, output)| (outpoint, output.clone())).collect();
        let covering = coins.iter().find(|(_, output)| u128::from(output.value.to_sat()) >= amount);
        match covering {
            Some(coin) => Ok(vec![coin.clone()]),
            None if coins.is_empty() => Err("nothing is locked at the address".to_owned()),
            None => Ok(coins),
        }
    }

    /// Returns who can spend an HTLC, and the script that receives the coins. The solver is paid to its own script.
    /// For the user, it is the holder of the user's key.
    pub(super) fn spender(&self, terms: &Terms, by_solver: bool) -> Result<(Htlc, Holder, ScriptBuf), String> {
        let htlc = self.htlc(terms)?;
        if by_solver {
            let solver = self.holder(accounts::SOLVER)?;
            let script = solver.script.clone();
            return Ok((htlc, solver, script));
        }
        let held = self.held(terms)?;
        if self.user_key(terms)? != held.x_only {
            return Err("only the holder of the delegate's key can do this on this chain".to_owned());
        }
        Ok((htlc, held, self.owner(terms)?))
    }

    fn owner(&self, terms: &Terms) -> Result<ScriptBuf, String> {
        self.ledger.network.script(&terms.owner).map_err(|error| format!("invalid address: {error}"))
    }

    pub(super) fn by_leaf(
        &self,
        htlc: &Htlc,
        leaf: Leaf,
        coins: &[Coin],
        by: &Holder,
        secret: Option<&[u8; 32]>,
        to: ScriptBuf,
    ) -> Result<Transaction, String> {
        let witness = |signature: &[u8]| {
            let items: Vec<&[u8]> = std::iter::once(signature).chain(secret.map(|secret| &secret[..])).collect();
            htlc.witness(leaf, &items)
        };
        let inputs = coins.iter().map(|(outpoint, _)| new_input(*outpoint, htlc.sequence(leaf), witness(&[0; 64])));
        let mut transaction = new_transaction(inputs.collect(), vec![TxOut { value: Amount::ZERO, script_pubkey: to }]);
        let prevouts: Vec<TxOut> = coins.iter().map(|(_, output)| output.clone()).collect();
        let value = super::ledger::sum(&prevouts).checked_sub(fee(&transaction)).ok_or("what is locked does not pay its fee")?;
        if let Some(output) = transaction.output.first_mut() {
            output.value = Amount::from_sat(value);
        }
        let mut cache = SighashCache::new(transaction);
        for index in 0..prevouts.len() {
            let (all, hash) = (Prevouts::All(&prevouts), htlc.leaf_hash(leaf));
            let digest = cache.taproot_script_spend_signature_hash(index, &all, hash, TapSighashType::Default);
            let message = Message::from_digest(digest.map_err(|error| error.to_string())?.to_byte_array());
            let signature = self.secp.sign_schnorr_no_aux_rand(&message, &by.pair).serialize();
            if let Some(items) = cache.witness_mut(index) {
                *items = witness(&signature);
            }
        }
        Ok(cache.into_transaction())
    }

    /// Returns the transaction of an instant refund without witnesses, the outputs that it spends, and the digest of
    /// each input.
    pub(super) fn instant(&self, terms: &Terms) -> Result<(Htlc, Transaction, Vec<TxOut>, Vec<Message>), String> {
        if !terms.is_source {
            return Err("only a source can be refunded instantly".to_owned());
        }
        let (htlc, owner) = (self.htlc(terms)?, self.owner(terms)?);
        let coins = self.deposits(&htlc, terms.amount)?;
        let inputs = coins.iter().map(|(outpoint, _)| new_input(*outpoint, htlc.sequence(Leaf::InstantRefund), Witness::new()));
        let outputs = coins.iter().map(|(_, output)| TxOut { value: output.value, script_pubkey: owner.clone() });
        let transaction = new_transaction(inputs.collect(), outputs.collect());
        let mut cache = SighashCache::new(&transaction);
        let digests = coins.iter().enumerate().map(|(index, (_, output))| {
            let (one, hash) = (Prevouts::One(index, output), htlc.leaf_hash(Leaf::InstantRefund));
            let digest = cache.taproot_script_spend_signature_hash(index, &one, hash, SINGLE).map_err(|error| error.to_string())?;
            Ok(Message::from_digest(digest.to_byte_array()))
        });
        let digests = digests.collect::<Result<_, String>>()?;
        Ok((htlc, transaction, coins.into_iter().map(|(_, output)| output).collect(), digests))
    }
}

pub(super) fn base_units(amount: u128) -> Result<Amount, String> {
    u64::try_from(amount).map(Amount::from_sat).map_err(|_| "the amount is larger than the supply".to_owned())
}

fn fee(transaction: &Transaction) -> u64 {
    transaction.weight().to_vbytes_ceil().saturating_mul(FEE_RATE)
}

fn new_input(previous_output: OutPoint, sequence: Sequence, witness: Witness) -> TxIn {
    TxIn { previous_output, script_sig: ScriptBuf::new(), sequence, witness }
}

fn new_transaction(input: Vec<TxIn>, output: Vec<TxOut>) -> Transaction {
    Transaction { version: transaction::Version::TWO, lock_time: absolute::LockTime::ZERO, input, output }
}
