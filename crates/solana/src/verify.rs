//! The verification rules for the result of a Solana order, in the order in which they are checked. [`signers`] has the rules on
//! signers and fee payers, [`instructions`] those on the instructions.
//!
//! Specification: `docs/spec/solana.md#payload`.

mod instructions;
mod signers;

use std::ops::Range;
use std::sync::Arc;

use countersign_core::json::{At, Cursor};
use countersign_core::{ByteCoverage, Code, FundingPath, OrderContext, Refusal, Role, SecretHash, Summary, SwapTerms, Warnings, family};
use solana_transaction::versioned::VersionedTransaction;

use crate::address::{self, Address, token_program};
use crate::deposit::{Deposit, ProposedTransaction};
use crate::fees::FeeLimits;
use crate::htlc::{Htlc, Initiate, SolanaGeneration, Token};
use crate::message::{self, Decoded, Layout, refuse};
use crate::received;
use crate::transaction::{self, TxContext, Unsigned};
use crate::wire::{self, GASLESS, TRANSACTION};

impl family::Deposit for Deposit {
    type Context = FundingPath<TxContext>;
    type Unsigned = Unsigned;

    fn verify(order: &OrderContext<'_>, warnings: &mut Warnings, _: family::Seal<Self>) -> Result<(Self, Option<SwapTerms>), Refusal> {
        order.check_no_delegate()?;
        let pins = Expected::from_order(order)?;
        let result = order.result.object()?;
        let (cursor, gasless) = (result.need(TRANSACTION)?, result.get(GASLESS));
        let own = check_transaction(order, &pins, &cursor, FundingKind::SelfFunded, warnings)?;
        let gasless = match gasless {
            Some(cursor) if !pins.htlc.has_sponsor() => return Err(cursor.at().refuse(Code::GaslessNative)),
            Some(cursor) => Some(check_transaction(order, &pins, &cursor, FundingKind::Gasless { own: &own }, warnings)?.0),
            None => None,
        };
        let (transaction, terms) = own;
        let swap_terms = SwapTerms {
            initiator: address::to_account(pins.owner),
            redeemer: address::to_account(terms.redeemer),
            timelock: terms.timelock,
            secret_hash: SecretHash(terms.secret_hash),
        };
        let deposit = Self {
            htlc: pins.htlc,
            owner: pins.owner,
            terms,
            swap_account: transaction.accounts.swap_account,
            transaction,
            gasless,
            sponsor_pinned: !order.registry.sponsors_of(&order.source.record.chain).is_empty(),
            fee_limits: FeeLimits::from_policy(order.policy),
        };
        Ok((deposit, Some(swap_terms)))
    }

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe(self, summary);
    }

    fn describe_prepared(&self, unsigned: &Unsigned, summary: &mut Summary) {
        crate::summary::describe_prepared(self, unsigned, summary);
    }

    fn coverage(&self) -> Vec<ByteCoverage> {
        crate::summary::coverage(self)
    }

    fn prepare(&self, path: &FundingPath<TxContext>, _: family::Seal<Self>) -> Result<Unsigned, Refusal> {
        transaction::prepare(self, path)
    }

    fn read_transaction(&self, bytes: &[u8], _: family::Seal<Self>) -> Result<VersionedTransaction, Refusal> {
        received::from_bytes(bytes)
    }

    fn matches(&self, transaction: &VersionedTransaction, warnings: &mut Warnings) -> Result<Role, Refusal> {
        crate::external::matches(self, transaction, warnings)
    }
}

/// The values of the registry and the request that the payload must equal.
struct Expected {
    htlc: Htlc,
    owner: Address,
}

impl Expected {
    fn from_order(order: &OrderContext<'_>) -> Result<Self, Refusal> {
        let convert = address::from_account;
        let program = order.pinned_htlc(convert)?;
        let token = order.pinned_token(convert)?.map(|mint| Token { mint, program: token_program(order.source) });
        let unknown = || At::REQUEST.refuse_below(Code::UnknownGeneration, "/source/asset");
        let generation = SolanaGeneration::expected(order.source.generation).ok_or_else(unknown)?;
        Ok(Self { htlc: Htlc { program, token, generation }, owner: order.owner_as(convert)? })
    }
}

/// The funding path of a transaction.
#[derive(Clone, Copy)]
enum FundingKind<'t> {
    /// The owner pays and is the only signer.
    SelfFunded,
    /// The sponsor pays and signs first; everything else is as in the transaction that the owner sends.
    Gasless { own: &'t (ProposedTransaction, Initiate) },
}

impl FundingKind<'_> {
    const fn signers(self) -> usize {
        match self {
            Self::SelfFunded => 1,
            Self::Gasless { .. } => 2,
        }
    }

    /// Returns the index of the owner's signature slot, which is the last one.
    const fn owner_slot(self) -> usize {
        self.signers().saturating_sub(1)
    }
}

/// A transaction under verification, with everything that it is compared with.
struct TransactionCheck<'c> {
    order: &'c OrderContext<'c>,
    pins: &'c Expected,
    path: FundingKind<'c>,
    decoded: &'c Decoded,
    layout: &'c Layout,
    at: &'c At<'c>,
}

impl TransactionCheck<'_> {
    fn keys(&self) -> &[Address] {
        self.decoded.transaction.message.static_account_keys()
    }

    fn refuse(&self, code: Code, range: &Range<usize>) -> Refusal {
        refuse(self.at, code, range)
    }
}

fn check_transaction(
    order: &OrderContext<'_>,
    pins: &Expected,
    cursor: &Cursor<'_, '_>,
    path: FundingKind<'_>,
    warnings: &mut Warnings,
) -> Result<(ProposedTransaction, Initiate), Refusal> {
    let at = cursor.at();
    let (bytes, encoding) = wire::transaction(cursor)?;
    let (decoded, layout) = message::decode(bytes, at)?;
    let subject = TransactionCheck { order, pins, path, decoded: &decoded, layout: &layout, at };
    subject.check_lookup_tables()?;
    subject.check_config()?;
    let (initiate, instructions) = subject.check_instructions()?;
    subject.check_signers()?;
    let fee_payer = subject.check_fee_payer()?;
    let (terms, accounts) = subject.check_initiate(&initiate, fee_payer, warnings)?;
    subject.check_allowed_accounts(&instructions, fee_payer, &accounts)?;
    subject.check_sponsor(fee_payer, &accounts.roles)?;
    subject.check_keys(fee_payer, &accounts.roles, &instructions)?;
    let owner_signed = subject.check_slots(warnings)?;
    let decoded = Arc::new(decoded);
    let owner_slot = path.owner_slot();
    Ok((ProposedTransaction { decoded, encoding, fee_payer, owner_signed, instructions, accounts, owner_slot, layout }, terms))
}
