//! Recovery from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these transactions, and pays only their fee. The funds go to the redeemer or the initiator that the
//! program has stored. The caller must check on chain whether a refund is due: the slot must be above the swap's expiry slot.
//!
//! The SPL program and the audited native program return the rent to the sponsor of the swap. Records do not contain the sponsor. It is
//! the owner if the owner sent the transaction, else the fee payer of the gasless transaction: see [`Recovery::with_sponsor`]. The swap
//! account contains it too: see [`crate::read`].
//!
//! Specification: `docs/spec/solana.md#redeem-and-refund`.

use std::ops::Deref;

pub use countersign_core::Leg;
use countersign_core::chains::{Network, swap_id as formula};
use countersign_core::number::bare_hex_array;
use countersign_core::reader::{Expense, check_low_fee};
use countersign_core::{
    Account, Code, Family, OrderRecord, Policy, RecordedLeg, RecoveryTerms, Refusal, Registry, Role, SecretHash, SentBy, SwapRecovery,
    Topic, U256, Warnings,
};
use solana_instruction::{AccountMeta, Instruction};
use solana_message::v1::{self, TransactionConfig};
use solana_message::{Message, VersionedMessage};

use crate::address::{self, ASSOCIATED_TOKEN_PROGRAM, Address, SYSTEM_PROGRAM, token_program};
use crate::fees::{ComputeBudget, FeeLimits, PriorityFee};
use crate::htlc::{Htlc, HtlcAccount, SolanaGeneration, Token};
use crate::transaction::{LAMPORTS_PER_SIGNATURE, TxContext, Unsigned};
use crate::{Solana, UnsignedOrder};

/// The instructions of a redemption: the price of its compute units, the token account of the receiver, and the redemption itself.
const MOST_INSTRUCTIONS: usize = 3;
/// The signatures of a redemption: that of the account that pays, and that of the receiver.
const MOST_SIGNATURES: u64 = 2;

/// Compute units that no redemption or refund needs less of. The program derives the address of the swap account, which alone costs 1,500, and
/// reads and writes the accounts.
const MIN_UNITS: u64 = 2_000;
/// Bytes of accounts that no redemption or refund needs less of. The program's own bytes count.
const MIN_LOADED: u32 = 10_000;

/// Returns the highest fee of a redemption with this priority fee, in lamports, under a policy. Rent is not included.
///
/// # Errors
///
/// [`Code::GasLimitTooHigh`] if the policy allows less.
pub fn max_fee(priority_fee: Option<PriorityFee>, policy: &Policy) -> Result<u64, Refusal> {
    let mut budget = ComputeBudget { instructions: MOST_INSTRUCTIONS, ..ComputeBudget::default() };
    if let Some(fee) = priority_fee {
        FeeLimits::from_policy(policy).check_own(fee)?;
        (budget.price, budget.limit) = (Some(fee.compute_unit_price), fee.compute_unit_limit);
    }
    let priority_fee = u64::try_from(budget.priority_fee()).unwrap_or(u64::MAX);
    Ok(MOST_SIGNATURES.saturating_mul(LAMPORTS_PER_SIGNATURE).saturating_add(priority_fee))
}

/// A recovery instruction, to which [`Recovery::prepare`] adds a fee payer and a blockhash.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recovery {
    swap: SwapRecovery<Instruction, [u8; 32], Address>,
    swap_account: Address,
    /// The program and its token.
    htlc: Htlc,
    /// Whether the token account that receives the funds is created first.
    creates_token_account: bool,
    /// The limits of a message of version 1; `None` for a legacy message.
    config: Option<TransactionConfig>,
    fee_limits: FeeLimits,
}

impl Deref for Recovery {
    type Target = SwapRecovery<Instruction, [u8; 32], Address>;

    fn deref(&self) -> &Self::Target {
        &self.swap
    }
}

impl Recovery {
    /// Returns the instruction to the HTLC. Only the fee payer signs.
    #[must_use]
    pub const fn instruction(&self) -> &Instruction {
        &self.swap.call
    }

    /// Returns the swap account, which holds the state of the swap.
    #[must_use]
    pub const fn swap_account(&self) -> Address {
        self.swap_account
    }

    /// Sets the account that paid the rent of the swap and gets it back. The default is the initiator. The client's native program has
    /// no sponsor, so this has no effect there.
    #[must_use]
    pub fn with_sponsor(mut self, sponsor: Address) -> Self {
        if let Some(account) = self.htlc.sponsor_index().and_then(|index| self.swap.call.accounts.get_mut(index)) {
            account.pubkey = sponsor;
        }
        self
    }

    /// Applies the priority fee limits of `policy` instead of the default policy's.
    #[must_use]
    pub fn with_policy(mut self, policy: &Policy) -> Self {
        self.fee_limits = FeeLimits::from_policy(policy);
        self
    }

    /// Adds an instruction that creates the token account that receives the funds if it does not exist. The fee payer pays for it. The
    /// program can pay only to an existing account. This has no effect for SOL.
    #[must_use]
    pub const fn with_token_account(mut self) -> Self {
        self.creates_token_account = self.htlc.token.is_some();
        self
    }

    /// Prepares a message of version 1 with these limits in place of a legacy message. It needs a limit of compute units and one of the bytes
    /// of accounts. A priority fee of the context replaces that of `config`, because the message contains the whole fee.
    #[must_use]
    pub const fn with_config(mut self, config: TransactionConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Returns the token account that receives the funds; `None` for SOL.
    #[must_use]
    pub fn token_account(&self) -> Option<Address> {
        let token = self.htlc.token?;
        address::associated_token_account(self.to, token.mint, token.program)
    }

    /// Returns the pinned program and its token.
    #[must_use]
    pub const fn htlc(&self) -> &Htlc {
        &self.htlc
    }

    /// Returns the instructions of a transaction that `fee_payer` pays for.
    fn instructions(&self, fee_payer: Address) -> Vec<Instruction> {
        let create = self.token_account().zip(self.htlc.token).filter(|_| self.creates_token_account).map(|(account, token)| Instruction {
            program_id: ASSOCIATED_TOKEN_PROGRAM,
            accounts: vec![
                AccountMeta::new(fee_payer, true),
                AccountMeta::new(account, false),
                AccountMeta::new_readonly(self.to, false),
                AccountMeta::new_readonly(token.mint, false),
                AccountMeta::new_readonly(SYSTEM_PROGRAM, false),
                AccountMeta::new_readonly(token.program, false),
            ],
            // CreateIdempotent
            data: vec![1],
        });
        create.into_iter().chain([self.call.clone()]).collect()
    }

    /// Prepares the transaction that the fee payer signs and pays for: see [`TxContext::sent_by`]. The fee payer need not be a party to
    /// the swap. The transaction has a legacy message, which every wallet can sign, or one of version 1: see [`Recovery::with_config`].
    ///
    /// The result has the warning [`Code::SwapIdUnchecked`] if the swap id was not recomputed, and [`Code::FeeAbovePayout`] if the
    /// transaction may cost more than it pays.
    ///
    /// # Errors
    ///
    /// [`Code::MissingField`] without a blockhash, [`Code::BlockhashExpired`], [`Code::GasLimitTooHigh`] for a priority fee above the
    /// policy's, [`Code::GasLimitTooLow`] for a message of version 1 without a limit that it needs, [`Code::TransactionTooLarge`], or
    /// [`Code::FeeTooLow`] for a redemption with a lower limit of compute units or of bytes than any redemption needs.
    pub fn prepare(&self, context: SentBy<Address, TxContext>) -> Result<UnsignedOrder, Refusal> {
        let SentBy { sender: fee_payer, context: path, accepts_low_fee } = context;
        path.check()?;
        let lifetime = path.nonce.map(|nonce| nonce.value).or(path.recent_blockhash);
        let blockhash = lifetime.ok_or_else(|| Refusal::new(Code::MissingField, "/recent_blockhash"))?;
        let instructions = self.instructions(fee_payer);
        let mut message = match self.config {
            None => VersionedMessage::Legacy(Message::new_with_blockhash(&instructions, Some(&fee_payer), &blockhash)),
            Some(config) => {
                let message = v1::Message::try_compile_with_config(&fee_payer, &instructions, blockhash, config);
                VersionedMessage::V1(message.map_err(|_| Refusal::new(Code::TransactionTooLarge, ""))?)
            }
        };
        if let Some(fee) = path.priority_fee {
            fee.set(&mut message).ok_or_else(|| Refusal::new(Code::TransactionTooLarge, "/priority_fee"))?;
            if let Err(refusal) = self.fee_limits.check_own(fee) {
                return Err(self.expense(&message).explain(refusal, self.fee_limits.exceeded_by(fee)));
            }
        }
        path.set_nonce(fee_payer, &mut message)?;
        if let VersionedMessage::V1(message) = &message {
            self.fee_limits.check_config(&message.config, |code, member| Refusal::new(code, format!("/config/{member}")))?;
        }
        let mut warnings = Warnings::default();
        for (at, why) in low_limits(&message, path.priority_fee) {
            check_low_fee(self.terms.role, accepts_low_fee, at, &why, &mut warnings)?;
        }
        Ok(self.unsigned(fee_payer, message, path, warnings))
    }

    /// Returns what a transaction with this message may cost in lamports, without the rent of a new token account, and what it pays.
    #[must_use]
    pub fn expense(&self, message: &VersionedMessage) -> Expense {
        let fee = ComputeBudget::from_message(message).priority_fee().saturating_add(u128::from(LAMPORTS_PER_SIGNATURE));
        let pays = self.htlc.token.is_none().then_some(self.terms.amount);
        Expense { role: self.terms.role, cost: U256::from(fee), pays, unit: ("lamports", 9) }
    }

    fn unsigned(&self, fee_payer: Address, message: VersionedMessage, chosen: TxContext, mut warnings: Warnings) -> UnsignedOrder {
        let swap_id = SecretHash(self.swap_id).to_string();
        if !self.swap_id_recomputed {
            warnings.warn_about(Code::SwapIdUnchecked, format!("{swap_id} on Solana"));
        }
        self.expense(&message).warn(&mut warnings);
        let mut summary = self.terms.describe(&swap_id);
        if let Some(account) = self.token_account().filter(|_| self.creates_token_account) {
            let text = format!("creates the token account {account} if it does not exist, at the expense of {fee_payer}");
            summary.add_values(Topic::Token, text, [account, fee_payer].map(|address| address::to_account(address).into()));
        }
        let unsigned = Unsigned::recovery(self.terms.role, fee_payer, message, chosen);
        UnsignedOrder::from_recovery(self.terms.recovered(summary, unsigned, warnings), Solana(()))
    }
}

/// Returns the limits in a message that are too low for a redemption or a refund, each with its location in the wallet context and the reason.
/// `chosen` is the priority fee of the wallet.
fn low_limits(message: &VersionedMessage, chosen: Option<PriorityFee>) -> Vec<(&'static str, String)> {
    let units = ComputeBudget::from_message(message).units();
    let is_own = chosen.is_some_and(|fee| fee.compute_unit_limit.is_some());
    let at = if is_own { "/priority_fee/compute_unit_limit" } else { "/config/compute_unit_limit" };
    let why = format!("at most {units} compute units, and no such transaction needs less than {MIN_UNITS}");
    let mut low: Vec<_> = (units < MIN_UNITS).then_some((at, why)).into_iter().collect();
    if let VersionedMessage::V1(message) = message
        && let Some(loaded) = message.config.loaded_accounts_data_size_limit.filter(|loaded| *loaded < MIN_LOADED)
    {
        let why = format!("at most {loaded} bytes of accounts, and no such transaction needs less than {MIN_LOADED}");
        low.push(("/config/loaded_accounts_data_size_limit", why));
    }
    low
}

/// Returns the recorded swap id of a Solana leg. If its formula is certain, it was recomputed from the other fields: see
/// [`SwapRecovery::swap_id_recomputed`].
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the id is not 64 hex digits, or is not the one that a certain formula gives, or the errors of
/// [`RecordedLeg::new`].
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<[u8; 32], Refusal> {
    recompute(&RecordedLeg::new(record, leg, registry, Family::Solana)?).map(|(id, _)| id)
}

/// Returns the instruction that redeems a leg with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret does not hash to the record's secret hash, [`Code::UnknownGeneration`],
/// [`Code::NumberTooLarge`] for an amount of more than 64 bits, or the errors of [`fn@swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Solana)?;
    leg.check_secret(secret)?;
    recovery(record, &leg, Role::Redeem, |htlc, swap| (htlc.redeem(swap, swap.initiator, secret), swap.redeemer))
}

/// Returns the instruction that refunds a leg after its timelock.
///
/// # Errors
///
/// As [`redeem`], without [`Code::SecretWrong`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Solana)?;
    recovery(record, &leg, Role::Refund, |htlc, swap| (htlc.refund(swap, swap.initiator), swap.initiator))
}

/// Returns the recorded swap id, and whether the formula gives the same one.
fn recompute(leg: &RecordedLeg<'_>) -> Result<([u8; 32], bool), Refusal> {
    let Network::Solana(cluster) = &leg.asset.chain.network else { return Err(leg.refuse(Code::RecordMismatch, "chain")) };
    let refuse = || leg.refuse(Code::RecordSwapId, "swap_id").with_actual(&leg.swap.swap_id);
    let id = bare_hex_array(&leg.swap.swap_id).map_err(|error| refuse().with_reason(error.to_string()))?;
    let is_known = SolanaGeneration::expected(leg.asset.generation).is_some_and(|expected| expected.is_swap_id_known);
    let known = formula::solana_chain_id(cluster).filter(|_| is_known);
    let Some((chain, is_certain)) = known else { return Ok((id, false)) };
    let recomputed = formula::solana(chain, &leg.swap.secret_hash.0, leg.initiator.bytes());
    if is_certain && id != recomputed {
        return Err(refuse().with_expected(SecretHash(recomputed)));
    }
    Ok((id, id == recomputed))
}

fn recovery(
    record: &OrderRecord,
    leg: &RecordedLeg<'_>,
    role: Role,
    build: impl FnOnce(&Htlc, &HtlcAccount) -> (Option<Instruction>, Address),
) -> Result<Recovery, Refusal> {
    let convert = |account: &Account| address::from_account(account).ok_or_else(|| leg.refuse(Code::RecordMismatch, "chain"));
    let token = match &leg.asset.token {
        Some(token) => Some(Token {
            mint: token.account.as_ref().and_then(address::from_account).ok_or_else(|| leg.refuse(Code::UnknownAsset, "asset"))?,
            program: token_program(leg.asset),
        }),
        None => None,
    };
    let generation = SolanaGeneration::expected(leg.asset.generation).ok_or_else(|| leg.refuse(Code::UnknownGeneration, "asset"))?;
    let htlc = Htlc::new(convert(leg.htlc()?)?, token).with_generation(generation);
    let amount = u64::try_from(leg.swap.amount).map_err(|_| leg.refuse(Code::NumberTooLarge, "amount"))?;
    let (initiator, redeemer) = (convert(&leg.initiator)?, convert(&leg.redeemer)?);
    let swap = HtlcAccount::new(initiator, redeemer, leg.swap.secret_hash.0, amount, leg.swap.timelock);
    let (swap_id, swap_id_recomputed) = recompute(leg)?;
    let (instruction, to) = build(&htlc, &swap);
    let (Some(instruction), Some(swap_account)) = (instruction, htlc.swap_account(&swap)) else {
        return Err(leg.refuse(Code::Internal, "secret_hash").with_reason("no program-derived address for the terms"));
    };
    let swap = SwapRecovery { terms: RecoveryTerms::of_leg(record, leg, role), call: instruction, swap_id, swap_id_recomputed, to };
    Ok(Recovery {
        swap,
        swap_account,
        htlc,
        creates_token_account: false,
        config: None,
        fee_limits: FeeLimits::from_policy(&Policy::default()),
    })
}
