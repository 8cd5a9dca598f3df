//! The verification rules for the result of a Bitcoin or Litecoin order.
//!
//! Specification: `docs/spec/bitcoin.md#payload`.

use std::collections::BTreeSet;

use bitcoin::absolute::LockTime;
use bitcoin::psbt::{Psbt, PsbtSighashType};
use bitcoin::script::Instruction;
use bitcoin::secp256k1::ecdsa;
use bitcoin::{Amount, Script, ScriptBuf, TapSighashType, Transaction, Witness};
use countersign_core::json::{At, Cursor};
use countersign_core::wire::OrderRecord;
use countersign_core::{
    ByteCoverage, Code, OrderContext, Refusal, Role, SecretHash, Summary, SwapTerms, TypedValue, U256, Warnings, family,
};

use crate::address::{Chain, account, taproot_key};
use crate::deposit::Deposit;
use crate::htlc::{self, Htlc, Output, Tree};
use crate::received;
use crate::transaction::{self, TxContext, Unsigned};

/// The byte of the hash type that covers all inputs and outputs, of ECDSA and of taproot.
const SIGHASH_ALL: u8 = 0x01;

impl Deposit {
    /// Requires that a PSBT of another wallet pays the deposit, and returns [`Role::Initiate`].
    ///
    /// # Errors
    ///
    /// As [`match_psbt_with_warnings`](Self::match_psbt_with_warnings); [`Code::TransactionMismatch`] where that returns a warning above
    /// [`Severity::Info`](countersign_core::Severity::Info).
    pub fn matches_psbt(&self, psbt: &Psbt) -> Result<Role, Refusal> {
        self.match_psbt_with_warnings(psbt).and_then(Warnings::only_informational)
    }

    /// Requires that a PSBT of another wallet pays the deposit, and returns [`Role::Initiate`] with warnings about what the wallet added:
    /// [`Code::WalletLockTime`].
    ///
    /// The wallet may choose coins, change and a fee within the policy. The fee is judged if the PSBT has every output that it spends:
    /// [`received::psbt_fee`] returns it. Hash types other than SIGHASH_ALL and SIGHASH_DEFAULT are refused, both as the declared type of an input
    /// and in signatures that are already attached, also in finalized scripts and witnesses. Nothing else of these is read.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`], located at the part that differs, also for an output that is spent twice and for outputs that are worth
    /// more than what is spent; [`Code::FeeRateTooHigh`] and [`Code::FeeRateZero`] at `/fee`; [`Code::UtxoMismatch`] for a previous
    /// transaction or output that the input does not spend.
    pub fn match_psbt_with_warnings(&self, psbt: &Psbt) -> Result<(Role, Warnings), Refusal> {
        // SIGHASH_ALL has the same number for ECDSA and taproot.
        let sign_all = [TapSighashType::Default, TapSighashType::All].map(PsbtSighashType::from);
        let mut hash_types = psbt.inputs.iter().enumerate().flat_map(|(index, input)| {
            let ecdsa = input.partial_sigs.values().map(|signature| signature.sighash_type.into());
            let taproot = input.tap_key_sig.iter().chain(input.tap_script_sigs.values()).map(|signature| signature.sighash_type.into());
            input.sighash_type.into_iter().chain(ecdsa).chain(taproot).map(move |hash_type| (index, hash_type))
        });
        if let Some((index, hash_type)) = hash_types.find(|(_, hash_type)| !sign_all.contains(hash_type)) {
            return Err(Refusal::new(Code::TransactionMismatch, format!("/inputs/{index}/sighash_type"))
                .with_reason("this hash type lets others change the transaction")
                .with_expected("SIGHASH_ALL")
                .with_actual(hash_type.to_string()));
        }
        let open = psbt.inputs.iter().enumerate().find_map(|(index, input)| {
            let hash_type = open_hash_type(input.final_script_sig.as_deref(), input.final_script_witness.as_ref())?;
            Some(refuse_open(format!("/inputs/{index}/final_script"), hash_type))
        });
        let role = open.map_or_else(|| self.is_paid_by(&psbt.unsigned_tx), Err)?;
        received::check_cost(psbt, self.chain, self.max_fee_rate)?;
        let mut warnings = Warnings::default();
        warn_of_lock_time(&psbt.unsigned_tx, &mut warnings);
        Ok((role, warnings))
    }

    /// Requires that exactly one output pays the deposit address, that it pays exactly the amount, and that no output is spent twice, which no
    /// node accepts.
    pub(crate) fn is_paid_by(&self, transaction: &Transaction) -> Result<Role, Refusal> {
        let mut paying = transaction.output.iter().enumerate().filter(|(_, output)| output.script_pubkey == self.script_pubkey);
        let differs = |location: String| Refusal::new(Code::TransactionMismatch, location);
        let Some((index, output)) = paying.next() else {
            return Err(differs("/output".to_owned()).with_reason("no output pays the deposit address").with_expected(&self.address));
        };
        if let Some((second, _)) = paying.next() {
            return Err(differs(format!("/output/{second}")).with_reason("the transaction pays the deposit address twice"));
        }
        if output.value != self.amount {
            let refusal = differs(format!("/output/{index}/value")).with_expected(self.amount.to_sat());
            return Err(refusal.with_actual(output.value.to_sat()));
        }
        let mut outpoints = BTreeSet::new();
        if let Some(index) = transaction.input.iter().position(|input| !outpoints.insert(input.previous_output)) {
            return Err(differs(format!("/input/{index}")).with_reason("the output is spent twice"));
        }
        Ok(Role::Initiate)
    }
}

/// Adds a warning about a lock time that is in force. Many wallets set the current height, which stops nothing, and only the chain knows it.
fn warn_of_lock_time(transaction: &Transaction, warnings: &mut Warnings) {
    if transaction.lock_time == LockTime::ZERO || !transaction.is_lock_time_enabled() {
        return;
    }
    let first = match transaction.lock_time {
        LockTime::Blocks(height) => format!("only blocks above {height}"),
        LockTime::Seconds(time) => format!("only blocks after Unix second {time}"),
    };
    warnings.warn_about(Code::WalletLockTime, first);
}

fn refuse_open(location: String, hash_type: u8) -> Refusal {
    Refusal::new(Code::TransactionMismatch, location)
        .with_reason("this hash type lets others change the transaction")
        .with_expected("SIGHASH_ALL")
        .with_actual(format!("{hash_type:#04x}"))
}

/// Returns the hash type of a signature in the scripts of a signed input that does not cover all inputs and outputs; `None` if no signature is recognized
/// that has one.
///
/// Signatures are recognized by their form, because the outputs that the other wallet spends are not known: DER and one byte, or 65 bytes in
/// a taproot witness, whose script path ends with a script and its control block.
fn open_hash_type(script_sig: Option<&Script>, witness: Option<&Witness>) -> Option<u8> {
    let is_open = |hash_type: &u8| *hash_type != SIGHASH_ALL;
    let of_ecdsa = |bytes: &[u8]| {
        let (hash_type, der) = bytes.split_last()?;
        ecdsa::Signature::from_der(der).ok().map(|_| *hash_type).filter(is_open)
    };
    let of_schnorr = |bytes: &[u8]| bytes.last().copied().filter(|_| bytes.len() == 65);
    let pushes = script_sig.iter().flat_map(|script| script.instructions().flatten());
    let pushes = pushes.filter_map(|push| if let Instruction::PushBytes(bytes) = push { Some(bytes.as_bytes()) } else { None });
    let witness: Vec<_> = witness.iter().flat_map(|witness| witness.iter()).collect();
    // The annex is the last of several items, and begins with this byte.
    let items = match witness.as_slice() {
        [items @ .., [0x50, ..]] if !items.is_empty() => items,
        items => items,
    };
    let of_taproot = match items {
        [signature] => std::slice::from_ref(signature),
        [signatures @ .., _, [0xc0 | 0xc1, block @ ..]] if block.len() % 32 == 0 && !block.is_empty() => signatures,
        _ => &[],
    };
    let schnorr = of_taproot.iter().copied().filter_map(of_schnorr).find(is_open);
    pushes.chain(items.iter().copied()).find_map(of_ecdsa).or(schnorr)
}

impl family::Deposit for Deposit {
    type Context = TxContext;
    type Unsigned = Unsigned;

    fn verify(order: &OrderContext<'_>, warnings: &mut Warnings, _: family::Seal<Self>) -> Result<(Self, Option<SwapTerms>), Refusal> {
        let chain = Chain::from_network(&order.source.chain.network)
            .ok_or_else(|| At::REQUEST.refuse_below(Code::UnsupportedFamily, "/source/asset"))?;
        let result = order.result.object()?;
        let (to, stated) = (result.need("to")?, result.need("amount")?.decimal()?);
        let amount = check_amount(order, chain, stated)?;
        check_delegate(order)?;
        let script_pubkey = check_taproot(chain, to)?;
        let dust_limit = chain.dust_limit(&script_pubkey);
        if dust_limit > amount {
            warnings.warn_about(Code::AmountBelowDust, format!("{} of at least {}", amount.to_sat(), dust_limit.to_sat()));
        }
        let tree = check_derivation(order, chain, to, &script_pubkey, warnings)?;
        if order.delegate.is_none() {
            warnings.warn(Code::RefundKeyNotYours);
        }
        let deposit = Self {
            chain,
            // A valid address of the chain is canonical except for its letter case.
            address: to.text()?.to_ascii_lowercase(),
            script_pubkey,
            amount,
            tree,
            canonical_owner: canonical_owner(order, chain),
            max_fee_rate: order.policy.bitcoin.fee_rate,
        };
        Ok((deposit, tree.map(|tree| swap_terms(&tree))))
    }

    fn taproot(&self) -> Option<(&Htlc, &Output)> {
        self.tree.as_ref().map(|tree| (&tree.htlc, &tree.output))
    }

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe(self, summary);
    }

    fn warn_about_wallet(&self, wallet: &TxContext, warnings: &mut Warnings) {
        let floor = self.chain.min_fee_rate();
        if let Some(rate) = wallet.fee_rate.filter(|rate| !wallet.rate_from_nodes && rate.is_below(floor)) {
            warnings.warn_about(Code::FeeTooLow, format!("{rate} sat/vB, and not every node relays less than {floor}"));
        }
    }

    fn coverage(&self) -> Vec<ByteCoverage> {
        crate::summary::coverage()
    }

    fn prepare(&self, wallet: &TxContext, _: family::Seal<Self>) -> Result<Unsigned, Refusal> {
        transaction::prepare(self, wallet)
    }

    fn read_transaction(&self, bytes: &[u8], _: family::Seal<Self>) -> Result<Transaction, Refusal> {
        received::from_bytes(bytes)
    }

    /// Requires that exactly one output pays the deposit address, that it pays exactly the amount, that no output is spent twice, and that every
    /// input is signed, as far as that can be seen without the outputs that are spent: it has a script or a witness, without a hash type that
    /// lets others change the transaction. The paying wallet may choose inputs, change, fee, lock time and the order of outputs.
    fn matches(&self, transaction: &Transaction, warnings: &mut Warnings) -> Result<Role, Refusal> {
        let role = self.is_paid_by(transaction)?;
        for (index, input) in transaction.input.iter().enumerate() {
            if input.script_sig.is_empty() && input.witness.is_empty() {
                return Err(Refusal::new(Code::TransactionMismatch, format!("/input/{index}")).with_reason("the input is not signed"));
            }
            if let Some(hash_type) = open_hash_type(Some(&input.script_sig), Some(&input.witness)) {
                return Err(refuse_open(format!("/input/{index}"), hash_type));
            }
        }
        warn_of_lock_time(transaction, warnings);
        Ok(role)
    }
}

/// Returns the owner's address in its current form, if the request has another form of it.
fn canonical_owner(order: &OrderContext<'_>, chain: Chain) -> Option<String> {
    let script = ScriptBuf::from_bytes(order.owner.as_ref()?.bytes().to_vec());
    let today = chain.address(&script)?;
    let written = order.request.source.owner.as_deref()?;
    (!written.eq_ignore_ascii_case(&today)).then_some(today)
}

fn swap_terms(tree: &Tree) -> SwapTerms {
    SwapTerms {
        initiator: account(tree.htlc.initiator),
        redeemer: account(tree.htlc.redeemer),
        timelock: u64::from(tree.htlc.timelock),
        secret_hash: SecretHash(tree.htlc.secret_hash),
    }
}

/// Requires that the amount is the requested one, and at most the chain's supply.
fn check_amount(order: &OrderContext<'_>, chain: Chain, amount: U256) -> Result<Amount, Refusal> {
    order.check_amount(amount, &|code| At::RESPONSE.refuse_below(code, "/result/amount"))?;
    chain.checked_amount(amount).ok_or_else(|| {
        At::REQUEST
            .refuse_below(Code::AmountAboveSupply, "/source/amount")
            .with_expected(TypedValue::AtMost(U256::from(chain.supply().to_sat())))
            .with_actual(amount)
    })
}

/// Requires that the requested refund key is an x-only key, and can be the owner's.
fn check_delegate(order: &OrderContext<'_>) -> Result<(), Refusal> {
    let Some(delegate) = &order.delegate else { return Ok(()) };
    let refuse = |code| At::REQUEST.refuse_below(code, "/source/delegate");
    if delegate.array::<32>().is_none() {
        let refusal = refuse(Code::InitiatorMismatch).with_reason("the refund key is an address, but must be an x-only key");
        return Err(refusal.with_actual(hex::encode(delegate.bytes())));
    }
    order.check_refund_key(delegate, &refuse)
}

/// Requires a taproot address on the asset's chain.
fn check_taproot(chain: Chain, to: Cursor<'_, '_>) -> Result<ScriptBuf, Refusal> {
    let script = chain.script(to.text()?, "").map_err(|refusal| refusal.within(to.at()))?;
    if script.is_p2tr() { Ok(script) } else { Err(to.refuse(Code::NotTaproot)) }
}

/// Requires that the output key of the address is a point of the curve.
fn check_output_key(to: Cursor<'_, '_>, script: &ScriptBuf) -> Result<[u8; 32], Refusal> {
    taproot_key(script).map(|key| key.serialize()).ok_or_else(|| {
        let reason = "the key in the address is not a point of the curve: nobody could ever spend from it";
        to.refuse(Code::NotTaproot).with_reason(reason)
    })
}

/// Recomputes the address from the record if there is one. Otherwise searches for its HTLC if the request has the wallet's key and
/// secret hash, or else takes it on trust with a warning. In each case the output key must be a point of the curve.
fn check_derivation(
    order: &OrderContext<'_>,
    chain: Chain,
    to: Cursor<'_, '_>,
    script: &ScriptBuf,
    warnings: &mut Warnings,
) -> Result<Option<Tree>, Refusal> {
    if let Some(record) = &order.record {
        let tree = tree_of_record(order, chain, record, warnings);
        if let Ok(tree) = &tree
            && tree.script_pubkey() == *script
        {
            // A recomputed key is a point.
            return Ok(Some(*tree));
        }
        // An address from which nobody can spend is the first reason to refuse, whatever the record contains.
        check_output_key(to, script)?;
        return Err(to.refuse(Code::AddressNotDerived).with_expected(tree?.address(chain)));
    }
    let output_key = check_output_key(to, script)?;
    let delegate = order.delegate.as_ref().and_then(|delegate| delegate.array::<32>());
    let (Some(delegate), Some(secret_hash)) = (delegate, order.request.secret_hash) else {
        warnings.warn(Code::AddressOnTrust);
        return Ok(None);
    };
    order.check_secret_hash(secret_hash, &|code| At::REQUEST.refuse_below(code, "/secret_hash"))?;
    let tree = htlc::search(order, &output_key, delegate, secret_hash).ok_or_else(|| {
        let reason = "no pinned solver and no timelock of the policy give this address with your key and secret hash";
        to.refuse(Code::AddressNotDerived).with_reason(reason)
    })?;
    // The search respects the policy's limit in blocks. The policy may also limit the duration.
    order.check_timelock(U256::from(tree.htlc.timelock), warnings, &|code| to.at().refuse(code))?;
    Ok(Some(tree))
}

/// Checks each term of the record, and returns its HTLC.
fn tree_of_record(order: &OrderContext<'_>, chain: Chain, record: &OrderRecord, warnings: &mut Warnings) -> Result<Tree, Refusal> {
    let refuse = |code, member: &str| order.record_at.refuse_below(code, &format!("/source_swap/{member}"));
    let swap = &record.source_swap;
    let htlc = htlc::from_record(order.source, chain, swap, &|key| order.is_known_key(order.source, key), &refuse)?;
    if let Some(delegate) = &order.delegate
        && delegate.bytes() != htlc.initiator
    {
        let expected = hex::encode(delegate.bytes());
        return Err(refuse(Code::InitiatorMismatch, "delegate").with_expected(expected).with_actual(hex::encode(htlc.initiator)));
    }
    if htlc.redeemer == htlc.initiator {
        let refusal = refuse(Code::RedeemerInvalid, "redeemer").with_reason("the redeemer is the initiator");
        return Err(refusal.with_actual(&swap.redeemer));
    }
    order.check_redeemer(&account(htlc.redeemer), warnings, &|code| refuse(code, "redeemer"))?;
    order.check_secret_hash(swap.secret_hash, &|code| refuse(code, "secret_hash"))?;
    order.check_timelock(U256::from(swap.timelock), warnings, &|code| refuse(code, "timelock"))?;
    let member = if swap.delegate.is_some() { "delegate" } else { "initiator" };
    order.check_refund_key(&account(htlc.initiator), &|code| refuse(code, member))?;
    Tree::of_asset(htlc, order.source)
        .ok_or_else(|| refuse(Code::UnknownAsset, "asset").with_reason("the pinned internal key is not a point of the curve"))
}
