//! The only file that accepts or refuses: each rule on a Solana result (batch-contract.md, attacks.md).

use std::ops::Range;
use std::sync::Arc;

use countersign_core::json::{At, Node};
use countersign_core::{Code, Order, Policy, Refusal, SecretHash, Terms, U256, Warnings};
use solana_address::address_eq;
use solana_message::compiled_instruction::CompiledInstruction;
use solana_signature::Signature;

use crate::address::{self, Address, TOKEN_2022_PROGRAM, TOKEN_PROGRAM};
use crate::extra::Extra;
use crate::htlc::{Fields, Htlc, Initiate, Role, SPONSOR, SWAP_ACCOUNT, TOKEN_ACCOUNT, Token};
use crate::message::{self, Decoded, InstructionLayout, Layout, refuse};
use crate::sign::is_signed_by;
use crate::wire::{self, Encoding};

/// What an order locks, rebuilt from its terms.
#[derive(Debug)]
#[non_exhaustive]
pub struct Deposit {
    /// The pinned program and token.
    pub htlc: Htlc,
    /// Who locks the funds, and gets refunds.
    pub owner: Address,
    /// What the instruction says.
    pub terms: Initiate,
    /// Holds the swap's state, and the lamports of a native one.
    pub swap_account: Address,
    /// The transaction that the owner sends.
    pub transaction: Proposal,
    /// The transaction that the service sends, `None` where there is no gasless way.
    pub gasless: Option<Proposal>,
    /// Whether the wallet has pinned who pays for the gasless transaction.
    pub sponsor_pinned: bool,
}

/// A transaction as it came.
#[derive(Debug)]
#[non_exhaustive]
pub struct Proposal {
    /// The transaction, decoded.
    pub decoded: Arc<Decoded>,
    /// How it was written.
    pub encoding: Encoding,
    /// Who pays fees and rent: the owner, or the sponsor.
    pub fee_payer: Address,
    /// Index of the owner's signature slot.
    pub(crate) owner_slot: usize,
    /// Whether the owner's slot held the owner's own signature of this message: then the message must stay.
    pub owner_signed: bool,
    /// The instructions beside the HTLC's own, which the policy allows, in order.
    pub extras: Vec<Extra>,
    /// Which instruction is the HTLC's.
    pub(crate) initiate: usize,
    /// What each account of the HTLC's instruction is there for.
    pub(crate) roles: Vec<Role>,
}

impl Proposal {
    /// The account with this role.
    pub(crate) fn account(&self, what: &str) -> Option<Address> {
        self.roles.iter().find(|role| role.what == what).map(|role| role.address)
    }

    /// The data of the HTLC's instruction.
    fn data(&self, at: &At<'_>) -> Result<&[u8], Refusal> {
        part(&self.decoded, self.initiate, at).map(|(instruction, _)| instruction.data.as_slice())
    }
}

pub(crate) fn check(order: &Order<'_>, warnings: &mut Warnings) -> Result<(Deposit, Terms), Refusal> {
    order.check_no_delegate()?;
    let pins = Pins::of(order)?;
    let result = order.result.object()?;
    let response = wire::Response::read(&result)?;
    let ordinary = pins.check_transaction(order, &response.transaction, Way::Ordinary, warnings)?;
    let gasless = match response.gasless {
        Some(node) if pins.htlc.token.is_none() => return Err(node.at().refuse(Code::GaslessNative)),
        Some(node) => Some(pins.check_transaction(order, &node, Way::Gasless { twin: &ordinary }, warnings)?.0),
        None => None,
    };
    let (transaction, terms) = ordinary;
    let shared = Terms {
        initiator: address::account(pins.owner)?,
        redeemer: address::account(terms.redeemer)?,
        timelock: terms.timelock,
        secret_hash: SecretHash(terms.secret_hash),
    };
    let sponsor_pinned = !order.registry.sponsors_of(&order.source.record.chain).is_empty();
    let swap_account = transaction.account(SWAP_ACCOUNT).ok_or_else(|| order.result.refuse(Code::Internal))?;
    Ok((Deposit { htlc: pins.htlc, owner: pins.owner, terms, swap_account, transaction, gasless, sponsor_pinned }, shared))
}

/// Which of the two transactions.
#[derive(Clone, Copy)]
enum Way<'t> {
    /// The owner pays and is the only signer.
    Ordinary,
    /// The service pays and signs first; all else is as in the ordinary transaction.
    Gasless { twin: &'t (Proposal, Initiate) },
}

/// What the wallet knows already.
struct Pins {
    htlc: Htlc,
    owner: Address,
}

impl Pins {
    fn of(order: &Order<'_>) -> Result<Self, Refusal> {
        let program = order.pinned_htlc(address::of)?;
        let schema = order.source.record.token.as_ref().and_then(|token| token.schema.as_deref());
        let token = order.pinned_token(address::of)?.map(|mint| Token { mint, program: token_program(schema) });
        Ok(Self { htlc: Htlc { program, token }, owner: order.owner_as(address::of)? })
    }

    fn check_transaction(
        &self,
        order: &Order<'_>,
        node: &Node<'_, '_>,
        way: Way<'_>,
        warnings: &mut Warnings,
    ) -> Result<(Proposal, Initiate), Refusal> {
        let at = node.at();
        let (bytes, encoding) = wire::transaction(node)?;
        let decoded = message::decode(bytes, at)?;
        check_lookup_tables(&decoded, at)?;
        let (initiate, extras) = self.check_instructions(&decoded, order.policy, at)?;
        let instruction = part(&decoded, initiate, at)?;
        check_signers(&decoded, way, at)?;
        let fee_payer = self.check_fee_payer(&decoded, way, at)?;
        let (terms, roles) = match way {
            Way::Ordinary => {
                let terms = self.check_arguments(order, instruction.0, instruction.1, warnings, at)?;
                let own = || order.source.derived("", || Some(self.htlc.program_addresses()?.map(|account| account.to_bytes())));
                let own = || own().map(|accounts| accounts.map(Address::from));
                let roles = self.htlc.initiate_accounts_beside(own, self.owner, fee_payer, &terms.secret_hash);
                (terms, roles.ok_or_else(|| at.refuse(Code::Internal).with_reason("no program-derived address for the terms"))?)
            }
            // Bytes that have been judged say the same once more, and derive the same accounts: that costs more than all else.
            Way::Gasless { twin: (twin, terms) } if twin.data(at)? == instruction.0.data => {
                let role = |role: &Role| if role.what == SPONSOR { Role { address: fee_payer, ..*role } } else { *role };
                (terms.clone(), twin.roles.iter().map(role).collect())
            }
            // A rule that they break says more than that they differ.
            Way::Gasless { .. } => {
                self.check_arguments(order, instruction.0, instruction.1, warnings, at)?;
                return Err(refuse(at, Code::PayloadsDisagree, &instruction.1.data));
            }
        };
        check_accounts(&decoded, instruction.0, instruction.1, &roles, at)?;
        self.check_extras(&decoded, initiate, &extras, fee_payer, &roles, at)?;
        self.check_sponsor(order, fee_payer, &roles, &decoded.layout, way, at)?;
        self.check_keys(&decoded, fee_payer, &roles, &extras, at)?;
        let owner_slot = usize::from(matches!(way, Way::Gasless { .. }));
        let owner_signed = self.check_slots(&decoded, owner_slot, warnings, at)?;
        let decoded = Arc::new(decoded);
        Ok((Proposal { decoded, encoding, fee_payer, owner_slot, owner_signed, extras, initiate, roles }, terms))
    }

    /// Exactly one instruction of the HTLC, and beside it none that the policy does not allow. The position of a foreign one
    /// does not matter: before or after, it is refused. Answers which is the HTLC's, and what the others are.
    fn check_instructions(&self, decoded: &Decoded, policy: &Policy, at: &At<'_>) -> Result<(usize, Vec<Extra>), Refusal> {
        let message = &decoded.transaction.message;
        let layout = &decoded.layout;
        let keys = message.static_account_keys();
        let (mut own, mut extras) = (None, Vec::new());
        let single = message.instructions().len() == 1;
        for (index, (instruction, place)) in message.instructions().iter().zip(&layout.instructions).enumerate() {
            let program = keys
                .get(usize::from(instruction.program_id_index))
                .ok_or_else(|| refuse(at, Code::TransactionMalformed, &place.whole).with_reason("the program index is beyond the keys"))?;
            if *program == self.htlc.program && own.is_none() {
                own = Some(index);
                continue;
            }
            let unexpected = || refuse(at, Code::UnexpectedInstruction, &place.whole).with_actual(message::name(program, &instruction.data));
            match Extra::read(program, instruction, place, policy, at)? {
                Some(Extra::CreateTokenAccount) if self.htlc.token.is_none() => {
                    return Err(unexpected().with_reason("a native asset needs no token account"));
                }
                Some(extra) if extras.iter().any(|other| extra.is_like(other)) => {
                    return Err(unexpected().with_reason("the same instruction stands twice"));
                }
                Some(extra) => extras.push(extra),
                None if single && !address::is_well_known(program) => {
                    return Err(refuse(at, Code::UnknownContract, &place.whole).with_expected(self.htlc.program).with_actual(program));
                }
                None => return Err(unexpected().with_expected("initiate of the pinned HTLC, and nothing that the policy does not allow")),
            }
        }
        let own = own.ok_or_else(|| {
            let place = layout.blockhash.end..layout.lookups.start;
            refuse(at, Code::UnexpectedInstruction, &place).with_reason("the transaction does not lock the funds").with_expected("initiate")
        })?;
        Ok((own, extras))
    }

    /// The accounts of the instructions beside the HTLC's are those of the order as well.
    fn check_extras(
        &self,
        decoded: &Decoded,
        initiate: usize,
        extras: &[Extra],
        fee_payer: Address,
        roles: &[Role],
        at: &At<'_>,
    ) -> Result<(), Refusal> {
        let others = (0..).filter(|index| *index != initiate);
        for (index, _) in others.zip(extras).filter(|(_, extra)| **extra == Extra::CreateTokenAccount) {
            let account = roles.iter().find(|role| role.what == TOKEN_ACCOUNT).map(|role| role.address);
            let wanted = account.and_then(|account| self.htlc.create_token_account(fee_payer, self.owner, account));
            let (instruction, place) = part(decoded, index, at)?;
            check_accounts(decoded, instruction, place, &wanted.ok_or_else(|| at.refuse(Code::Internal))?, at)?;
        }
        Ok(())
    }

    /// Who pays stands first and signs. The gasless transaction is never at the owner's expense.
    fn check_fee_payer(&self, decoded: &Decoded, way: Way<'_>, at: &At<'_>) -> Result<Address, Refusal> {
        let keys = decoded.transaction.message.static_account_keys();
        let layout = &decoded.layout;
        let [payer, rest @ ..] = keys else {
            return Err(refuse(at, Code::TransactionMalformed, &layout.header).with_reason("the message has no keys"));
        };
        let place = layout.key(0);
        match way {
            Way::Ordinary if *payer == self.owner => Ok(*payer),
            Way::Ordinary => Err(refuse(at, Code::FeePayerMismatch, &place).with_expected(self.owner).with_actual(payer)),
            Way::Gasless { .. } if *payer == self.owner => {
                Err(refuse(at, Code::FeePayerMismatch, &place).with_reason("the owner would pay for the gasless transaction").with_actual(payer))
            }
            Way::Gasless { .. } => match rest.first() {
                Some(owner) if *owner == self.owner => Ok(*payer),
                other => {
                    let got = other.map_or_else(|| "nobody".to_owned(), ToString::to_string);
                    Err(refuse(at, Code::UnexpectedSigner, &layout.key(1)).with_expected(self.owner).with_actual(got))
                }
            },
        }
    }

    fn check_arguments(
        &self,
        order: &Order<'_>,
        instruction: &CompiledInstruction,
        place: &InstructionLayout,
        warnings: &mut Warnings,
        at: &At<'_>,
    ) -> Result<Initiate, Refusal> {
        let start = place.data.start;
        let call = Initiate::decode(&instruction.data, &self.htlc, at, start)?;
        let fields = Fields::of(&self.htlc);
        let refuse_at =
            |range: Range<usize>| move |code| refuse(at, code, &(start.saturating_add(range.start)..start.saturating_add(range.end)));
        order.check_amount(U256::from(call.amount), &refuse_at(fields.amount))?;
        order.check_redeemer(&address::account(call.redeemer)?, warnings, &refuse_at(fields.redeemer.clone()))?;
        order.check_timelock(U256::from(call.timelock), &refuse_at(fields.timelock))?;
        order.check_secret_hash(SecretHash(call.secret_hash), &refuse_at(fields.secret_hash))?;
        // The redeemer must be able to be one: a program cannot take the funds out. Which account can is the solver's to know.
        if self.htlc.token.is_some_and(|token| token.program == call.redeemer) || address::is_well_known(&call.redeemer) {
            return Err(refuse_at(fields.redeemer)(Code::RedeemerInvalid).with_reason("the redeemer is a program").with_actual(call.redeemer));
        }
        if call.encode(&self.htlc) != instruction.data {
            return Err(refuse(at, Code::InstructionData, &place.data));
        }
        Ok(call)
    }

    /// The sponsor is a pinned one, where any is pinned for the chain, and an account of its own.
    fn check_sponsor(
        &self,
        order: &Order<'_>,
        sponsor: Address,
        roles: &[Role],
        layout: &Layout,
        way: Way<'_>,
        at: &At<'_>,
    ) -> Result<(), Refusal> {
        let other_role = roles.iter().find(|role| role.address == sponsor && role.what != SPONSOR);
        match (way, other_role) {
            (Way::Gasless { .. }, Some(role)) => {
                Err(refuse(at, Code::SponsorInvalid, &layout.key(0)).with_reason(format!("the sponsor is {}", role.what)).with_actual(sponsor))
            }
            (Way::Gasless { .. }, None) if sponsor == self.htlc.program => {
                Err(refuse(at, Code::SponsorInvalid, &layout.key(0)).with_reason("the sponsor is the HTLC itself").with_actual(sponsor))
            }
            (Way::Gasless { .. }, None) if !may_sponsor(order, sponsor) => {
                Err(refuse(at, Code::UnknownSponsor, &layout.key(0)).with_actual(sponsor))
            }
            _ => Ok(()),
        }
    }

    /// Each key is needed, once, and may do exactly what it is needed for.
    fn check_keys(&self, decoded: &Decoded, fee_payer: Address, roles: &[Role], extras: &[Extra], at: &At<'_>) -> Result<(), Refusal> {
        // What the extras write to or have signed is written to and signs for the HTLC's instruction too, or pays the fee.
        let programs: Vec<_> = extras.iter().map(Extra::program).collect();
        let message = &decoded.transaction.message;
        let keys = message.static_account_keys();
        for (index, key) in keys.iter().enumerate() {
            let place = decoded.layout.key(index);
            // `address_eq` stops at the first eight bytes that differ, and these compare each with each.
            let needed = roles.iter().chain(&programs).filter(|role| address_eq(&role.address, key));
            let needed = needed.map(|role| (role.signer, role.writable)).reduce(|a, b| (a.0 || b.0, a.1 || b.1));
            let twice = keys.iter().position(|other| address_eq(other, key)) != Some(index);
            if twice || (needed.is_none() && *key != self.htlc.program) {
                return Err(refuse(at, Code::AccountUnused, &place).with_actual(key));
            }
            let (pays, (signer, writable)) = (*key == fee_payer, needed.unwrap_or_default());
            let wanted = (pays || signer, pays || writable);
            let got = message::flags(message, index);
            if got != wanted {
                return Err(refuse(at, Code::AccountFlags, &place).with_expected(flags(wanted)).with_actual(format!("{key}, {}", flags(got))));
            }
        }
        Ok(())
    }

    /// Bytes in the owner's slot do not matter: they are overwritten. Another signer's slot is empty or proven. Answers
    /// whether the owner has signed this very message.
    fn check_slots(&self, decoded: &Decoded, owner_slot: usize, warnings: &mut Warnings, at: &At<'_>) -> Result<bool, Refusal> {
        let transaction = &decoded.transaction;
        let mut owner_signed = false;
        for (index, (signature, key)) in transaction.signatures.iter().zip(transaction.message.static_account_keys()).enumerate() {
            if *signature == Signature::default() {
                continue;
            }
            let valid = is_signed_by(signature, key, &decoded.message);
            if index == owner_slot {
                warnings
                    .about(Code::OwnSignatureOverwritten, if valid { "the owner's own signature" } else { "no signature of the owner" });
                owner_signed = valid;
            } else if !valid {
                return Err(refuse(at, Code::SponsorSignature, &Layout::slot(index)).with_expected(format!("a signature of {key}, or zeros")));
            }
        }
        Ok(owner_signed)
    }
}

/// The classic token program, unless the pinned schema says Token-2022.
pub(crate) fn token_program(schema: Option<&str>) -> Address {
    if schema.is_some_and(|schema| schema.contains("2022")) { TOKEN_2022_PROGRAM } else { TOKEN_PROGRAM }
}

/// Whether this account is one of the chain's pinned sponsors, or nobody has pinned any.
fn may_sponsor(order: &Order<'_>, sponsor: Address) -> bool {
    let pinned = order.registry.sponsors_of(&order.source.record.chain);
    pinned.is_empty() || pinned.iter().any(|pinned| address::of(&pinned.account) == Some(sponsor))
}

/// An instruction and where it stands.
fn part<'d>(decoded: &'d Decoded, index: usize, at: &At<'_>) -> Result<(&'d CompiledInstruction, &'d InstructionLayout), Refusal> {
    let instruction = decoded.transaction.message.instructions().get(index);
    instruction.zip(decoded.layout.instructions.get(index)).ok_or_else(|| at.refuse(Code::Internal))
}

fn flags((signer, writable): (bool, bool)) -> &'static str {
    match (signer, writable) {
        (true, true) => "signs and is written to",
        (true, false) => "signs and is only read",
        (false, true) => "is written to",
        (false, false) => "is only read",
    }
}

fn check_lookup_tables(decoded: &Decoded, at: &At<'_>) -> Result<(), Refusal> {
    match decoded.transaction.message.address_table_lookups() {
        None | Some([]) => Ok(()),
        Some([table, ..]) => Err(refuse(at, Code::LookupTable, &decoded.layout.lookups).with_actual(table.account_key)),
    }
}

/// One slot for each signer, and no other signers than the order needs.
fn check_signers(decoded: &Decoded, way: Way<'_>, at: &At<'_>) -> Result<(), Refusal> {
    let header = decoded.transaction.message.header();
    let layout = &decoded.layout;
    let slots = decoded.transaction.signatures.len();
    if slots != usize::from(header.num_required_signatures) {
        return Err(at.refuse_bytes(Code::SignatureSlots, 0, 1).with_expected(header.num_required_signatures).with_actual(slots));
    }
    let wanted = match way {
        Way::Ordinary => 1,
        Way::Gasless { .. } => 2,
    };
    if slots != wanted {
        return Err(refuse(at, Code::UnexpectedSigner, &layout.header).with_expected(format!("{wanted} signers")).with_actual(slots));
    }
    let others = decoded.transaction.message.static_account_keys().len().saturating_sub(slots);
    if header.num_readonly_signed_accounts >= header.num_required_signatures || usize::from(header.num_readonly_unsigned_accounts) > others
    {
        return Err(refuse(at, Code::TransactionMalformed, &layout.header).with_reason("the header counts more keys than there are"));
    }
    Ok(())
}

/// The instruction's accounts are those of the order, one by one.
fn check_accounts(
    decoded: &Decoded,
    instruction: &CompiledInstruction,
    place: &InstructionLayout,
    roles: &[Role],
    at: &At<'_>,
) -> Result<(), Refusal> {
    if instruction.accounts.len() != roles.len() {
        return Err(refuse(at, Code::AccountMismatch, &place.accounts)
            .with_expected(format!("{} accounts", roles.len()))
            .with_actual(instruction.accounts.len()));
    }
    let keys = decoded.transaction.message.static_account_keys();
    for ((index, role), byte) in instruction.accounts.iter().zip(roles).zip(place.accounts.start..) {
        match keys.get(usize::from(*index)) {
            Some(key) if *key == role.address => {}
            Some(key) => {
                return Err(refuse(at, Code::AccountMismatch, &decoded.layout.key(usize::from(*index)))
                    .with_reason(format!("{} is another account", role.what))
                    .with_expected(role.address)
                    .with_actual(key));
            }
            None => {
                return Err(at
                    .refuse_bytes(Code::AccountMismatch, byte, byte.saturating_add(1))
                    .with_reason(format!("the index of {} is beyond the keys", role.what)));
            }
        }
    }
    Ok(())
}
