//! Rules on the instructions: the HTLC's own, which locks the funds, and those that the policy allows.

use countersign_core::{Code, Refusal, SecretHash, U256, Warnings};
use solana_message::compiled_instruction::CompiledInstruction;

use super::{FundingKind, TransactionCheck};
use crate::address::{self, Address, COMPUTE_BUDGET_PROGRAM};
use crate::allowed::AllowedInstruction;
use crate::deposit::ProposedInstruction;
use crate::htlc::{AccountRole, Fields, Initiate, InitiateAccounts};
use crate::message::{InstructionLayout, describe_instruction, refuse};

/// An instruction and its byte ranges.
pub(super) struct InstructionAt<'i> {
    instruction: &'i CompiledInstruction,
    place: &'i InstructionLayout,
}

impl<'c> TransactionCheck<'c> {
    fn instructions(&self) -> impl Iterator<Item = InstructionAt<'c>> + use<'c> {
        let instructions = self.decoded.transaction.message.instructions().iter().zip(&self.layout.instructions);
        instructions.map(|(instruction, place)| InstructionAt { instruction, place })
    }

    /// Requires exactly one instruction of the HTLC. All others, before or after it, must be allowed by the policy. Returns the HTLC's
    /// instruction, and the kind of each instruction.
    pub(super) fn check_instructions(&self) -> Result<(InstructionAt<'c>, Vec<ProposedInstruction>), Refusal> {
        let htlc = &self.pins.htlc;
        let (mut initiate, mut kinds) = (None, Vec::new());
        let is_single = self.layout.instructions.len() == 1;
        for located in self.instructions() {
            let InstructionAt { instruction, place } = located;
            let program = self
                .keys()
                .get(usize::from(instruction.program_id_index))
                .ok_or_else(|| self.refuse(Code::TransactionMalformed, &place.whole).with_reason("the program index is beyond the keys"))?;
            if *program == htlc.program && initiate.is_none() {
                initiate = Some(located);
                kinds.push(ProposedInstruction::Initiate);
                continue;
            }
            let unexpected =
                || self.refuse(Code::UnexpectedInstruction, &place.whole).with_actual(describe_instruction(program, &instruction.data));
            if self.layout.config.is_some() && *program == COMPUTE_BUDGET_PROGRAM {
                return Err(unexpected().with_reason("a message of version 1 contains its limits, and this program does nothing there"));
            }
            match AllowedInstruction::read(program, instruction, place, self.order.policy, self.at)? {
                Some(AllowedInstruction::CreateTokenAccount) if htlc.token.is_none() => {
                    return Err(unexpected().with_reason("a native asset needs no token account"));
                }
                Some(allowed) if kinds.iter().filter_map(ProposedInstruction::allowed).any(|other| allowed.is_like(other)) => {
                    return Err(unexpected().with_reason("the transaction has two instructions of this kind"));
                }
                Some(allowed) => kinds.push(ProposedInstruction::Allowed(allowed)),
                None if is_single && !address::is_well_known(program) => {
                    return Err(self
                        .refuse(Code::UnknownContract, &place.whole)
                        .with_expected(address::to_account(htlc.program))
                        .with_actual(address::to_account(*program)));
                }
                None => return Err(unexpected().with_expected("initiate of the pinned HTLC, and only instructions that the policy allows")),
            }
        }
        let initiate = initiate.ok_or_else(|| {
            let place = self.layout.blockhash.end..self.layout.lookups.start;
            self.refuse(Code::UnexpectedInstruction, &place)
                .with_reason("the transaction does not lock the funds")
                .with_expected("initiate")
        })?;
        Ok((initiate, kinds))
    }

    /// Requires that the HTLC's instruction has the order's terms and accounts, and that the two transactions agree.
    pub(super) fn check_initiate(
        &self,
        initiate: &InstructionAt<'_>,
        fee_payer: Address,
        warnings: &mut Warnings,
    ) -> Result<(Initiate, InitiateAccounts), Refusal> {
        let (terms, accounts) = match self.path {
            FundingKind::SelfFunded => {
                let terms = self.check_arguments(initiate, warnings)?;
                let accounts = self.derive_accounts(&terms, fee_payer);
                let underivable = || self.at.refuse(Code::Internal).with_reason("no program-derived address for the terms");
                (terms, accounts.ok_or_else(underivable)?)
            }
            // Equal data was checked with the first transaction and has the same accounts. They are reused, because deriving them
            // costs more than everything else.
            FundingKind::Gasless { own: (own, terms) } if own.initiate().is_some_and(|own| own.data == initiate.instruction.data) => {
                (terms.clone(), own.accounts.with_sponsor(fee_payer))
            }
            // If the data breaks a rule, the refusal of that rule is more helpful than one about the difference.
            FundingKind::Gasless { .. } => {
                self.check_arguments(initiate, warnings)?;
                return Err(self.refuse(Code::PayloadsDisagree, &initiate.place.data));
            }
        };
        self.check_accounts(initiate, &accounts.roles)?;
        Ok((terms, accounts))
    }

    /// Derives the accounts of the HTLC's instruction. Those that depend only on the pinned asset are derived once and kept with it.
    fn derive_accounts(&self, terms: &Initiate, fee_payer: Address) -> Option<InitiateAccounts> {
        let htlc = &self.pins.htlc;
        let kept = || self.order.source.program_addresses(|| Some(htlc.program_addresses()?.map(|address| address.to_bytes())));
        let program_addresses = || kept().map(|addresses| addresses.map(Address::from));
        htlc.initiate_accounts_with(program_addresses, &terms.swap(self.pins.owner), fee_payer)
    }

    /// Requires that the arguments of the HTLC's instruction are the order's terms.
    fn check_arguments(&self, initiate: &InstructionAt<'_>, warnings: &mut Warnings) -> Result<Initiate, Refusal> {
        let (order, htlc, at) = (self.order, &self.pins.htlc, self.at);
        let InstructionAt { instruction, place } = initiate;
        let call = Initiate::decode(&instruction.data, htlc, at, place.data.start)?;
        let fields = Fields::new(htlc);
        let [amount, redeemer, timelock, secret_hash] =
            [fields.amount, fields.redeemer, fields.timelock, fields.secret_hash].map(|field| place.field(&field));
        order.check_amount(U256::from(call.amount), &|code| refuse(at, code, &amount))?;
        order.check_redeemer(&address::to_account(call.redeemer), warnings, &|code| refuse(at, code, &redeemer))?;
        order.check_timelock(U256::from(call.timelock), warnings, &|code| refuse(at, code, &timelock))?;
        order.check_secret_hash(SecretHash(call.secret_hash), &|code| refuse(at, code, &secret_hash))?;
        if let (Some(refundee), Some(field)) = (call.refundee, &fields.refundee) {
            order.check_initiator(&address::to_account(refundee), &|code| refuse(at, code, &place.field(field)))?;
        }
        // A program could not move the funds that it receives. Any other account may belong to the solver.
        if htlc.token.is_some_and(|token| token.program == call.redeemer) || address::is_well_known(&call.redeemer) {
            return Err(self
                .refuse(Code::RedeemerInvalid, &redeemer)
                .with_reason("the redeemer is a program")
                .with_actual(address::to_account(call.redeemer)));
        }
        if call.encode(htlc) != instruction.data {
            return Err(self.refuse(Code::InstructionData, &place.data));
        }
        Ok(call)
    }

    /// Requires that the accounts of the allowed instructions are the order's too.
    pub(super) fn check_allowed_accounts(
        &self,
        kinds: &[ProposedInstruction],
        fee_payer: Address,
        accounts: &InitiateAccounts,
    ) -> Result<(), Refusal> {
        for (located, kind) in self.instructions().zip(kinds) {
            if *kind != ProposedInstruction::Allowed(AllowedInstruction::CreateTokenAccount) {
                continue;
            }
            let roles = self.pins.htlc.create_token_account(fee_payer, self.pins.owner, accounts);
            let roles = roles.ok_or_else(|| self.refuse(Code::UnexpectedInstruction, &located.place.whole))?;
            self.check_accounts(&located, &roles)?;
        }
        Ok(())
    }

    /// Requires that the accounts of an instruction are exactly those of the roles, in the same order.
    fn check_accounts(&self, located: &InstructionAt<'_>, roles: &[AccountRole]) -> Result<(), Refusal> {
        let InstructionAt { instruction, place } = located;
        if instruction.accounts.len() != roles.len() {
            return Err(self
                .refuse(Code::AccountMismatch, &place.accounts)
                .with_expected(format!("{} accounts", roles.len()))
                .with_actual(instruction.accounts.len()));
        }
        for ((index, role), byte) in instruction.accounts.iter().zip(roles).zip(place.accounts.clone()) {
            let index = usize::from(*index);
            match self.keys().get(index) {
                Some(key) if *key == role.address => {}
                Some(key) => {
                    return Err(self
                        .refuse(Code::AccountMismatch, &self.layout.key(index))
                        .with_reason(format!("{} is another account", role.name))
                        .with_expected(address::to_account(role.address))
                        .with_actual(address::to_account(*key)));
                }
                None => {
                    return Err(self
                        .refuse(Code::AccountMismatch, &(byte..byte.saturating_add(1)))
                        .with_reason(format!("the index of {} is beyond the keys", role.name)));
                }
            }
        }
        Ok(())
    }
}
