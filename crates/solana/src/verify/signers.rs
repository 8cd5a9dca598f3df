//! Rules on signers and fee payers, on the limits that a message contains, on the permissions of each account key, and on the content of the signature slots.

use countersign_core::{Code, Refusal, Warnings};
use solana_address::address_eq;
use solana_message::VersionedMessage;
use solana_signature::Signature;

use super::{FundingKind, TransactionCheck};
use crate::address::{self, Address};
use crate::allowed::AllowedInstruction;
use crate::deposit::ProposedInstruction;
use crate::fees::{self, FeeLimits};
use crate::htlc::{AccountRole, SPONSOR};
use crate::message;
use crate::sign::is_signed_by;

impl TransactionCheck<'_> {
    /// Refuses address lookup tables, which cannot be checked offline.
    pub(super) fn check_lookup_tables(&self) -> Result<(), Refusal> {
        match self.decoded.transaction.message.address_table_lookups() {
            None | Some([]) => Ok(()),
            Some([table, ..]) => {
                Err(self.refuse(Code::LookupTable, &self.layout.lookups).with_actual(address::to_account(table.account_key)))
            }
        }
    }

    /// Requires that the limits in a message of version 1 let it run, and are within the policy.
    pub(super) fn check_config(&self) -> Result<(), Refusal> {
        let (VersionedMessage::V1(message), Some(places)) = (&self.decoded.transaction.message, &self.layout.config) else { return Ok(()) };
        FeeLimits::of_service(self.order.policy).check_config(&message.config, |code, member| {
            let place = match member {
                fees::FEE => &places.priority_fee,
                fees::UNITS => &places.compute_unit_limit,
                fees::LOADED => &places.loaded_accounts_data_size_limit,
                _ => &places.heap_size,
            };
            let refusal = self.refuse(code, if place.is_empty() { &places.mask } else { place });
            if code == Code::GasLimitTooLow { refusal.with_expected(member) } else { refusal }
        })
    }

    /// Requires one slot for each signer, and exactly as many signers as the order needs.
    pub(super) fn check_signers(&self) -> Result<(), Refusal> {
        let header = self.decoded.transaction.message.header();
        let slots = self.decoded.transaction.signatures.len();
        if slots != usize::from(header.num_required_signatures) {
            return Err(self.refuse(Code::SignatureSlots, &(0..1)).with_expected(header.num_required_signatures).with_actual(slots));
        }
        let expected = self.path.signers();
        if slots != expected {
            return Err(self
                .refuse(Code::UnexpectedSigner, &self.layout.header)
                .with_expected(format!("{expected} signers"))
                .with_actual(slots));
        }
        let others = self.keys().len().saturating_sub(slots);
        if header.num_readonly_signed_accounts >= header.num_required_signatures
            || usize::from(header.num_readonly_unsigned_accounts) > others
        {
            return Err(self
                .refuse(Code::TransactionMalformed, &self.layout.header)
                .with_reason("the header counts more keys than there are"));
        }
        Ok(())
    }

    /// Requires that the fee payer, which is the first key, is the right account. The owner never pays for a gasless transaction.
    pub(super) fn check_fee_payer(&self) -> Result<Address, Refusal> {
        let owner = self.pins.owner;
        let [payer, rest @ ..] = self.keys() else {
            return Err(self.refuse(Code::TransactionMalformed, &self.layout.header).with_reason("the message has no keys"));
        };
        let mismatch = || self.refuse(Code::FeePayerMismatch, &self.layout.key(0)).with_actual(address::to_account(*payer));
        match (self.path, rest) {
            (FundingKind::SelfFunded, _) if *payer == owner => Ok(*payer),
            (FundingKind::SelfFunded, _) => Err(mismatch().with_expected(address::to_account(owner))),
            (FundingKind::Gasless { .. }, _) if *payer == owner => {
                Err(mismatch().with_reason("the owner would pay for the gasless transaction"))
            }
            (FundingKind::Gasless { .. }, [second, ..]) if *second == owner => Ok(*payer),
            (FundingKind::Gasless { .. }, rest) => {
                let refusal = self.refuse(Code::UnexpectedSigner, &self.layout.key(1)).with_expected(address::to_account(owner));
                Err(match rest.first() {
                    Some(second) => refusal.with_actual(address::to_account(*second)),
                    None => refusal.with_actual("no second key"),
                })
            }
        }
    }

    /// Requires that the sponsor has no other role, and that it is pinned if the registry pins any sponsor for the chain.
    pub(super) fn check_sponsor(&self, sponsor: Address, roles: &[AccountRole]) -> Result<(), Refusal> {
        if matches!(self.path, FundingKind::SelfFunded) {
            return Ok(());
        }
        let refuse = |code| self.refuse(code, &self.layout.key(0)).with_actual(address::to_account(sponsor));
        if let Some(role) = roles.iter().find(|role| role.address == sponsor && role.name != SPONSOR) {
            return Err(refuse(Code::SponsorInvalid).with_reason(format!("the sponsor is {}", role.name)));
        }
        if sponsor == self.pins.htlc.program {
            return Err(refuse(Code::SponsorInvalid).with_reason("the sponsor is the HTLC itself"));
        }
        let pinned = self.order.registry.sponsors_of(&self.order.source.record.chain);
        let is_pinned = || pinned.iter().any(|pinned| address::from_account(&pinned.account) == Some(sponsor));
        if pinned.is_empty() || is_pinned() { Ok(()) } else { Err(refuse(Code::UnknownSponsor)) }
    }

    /// Requires that each key is needed, is listed once, and has exactly the permissions that it needs.
    pub(super) fn check_keys(&self, fee_payer: Address, roles: &[AccountRole], kinds: &[ProposedInstruction]) -> Result<(), Refusal> {
        // The allowed instructions need no permissions beyond those of the HTLC's instruction and the fee payer: they write to the
        // token account, and the fee payer signs. Therefore only their programs are added.
        let programs: Vec<_> = kinds.iter().filter_map(ProposedInstruction::allowed).map(AllowedInstruction::program).collect();
        let message = &self.decoded.transaction.message;
        let keys = self.keys();
        for (index, key) in keys.iter().enumerate() {
            let place = self.layout.key(index);
            // Each key is compared with every other key, so speed matters: `address_eq` stops at the first eight bytes that differ.
            let needed = roles.iter().chain(&programs).filter(|role| address_eq(&role.address, key));
            let needed = needed.map(|role| (role.signer, role.writable)).reduce(|a, b| (a.0 || b.0, a.1 || b.1));
            let is_repeated = keys.iter().take(index).any(|earlier| address_eq(earlier, key));
            if is_repeated || (needed.is_none() && *key != self.pins.htlc.program) {
                return Err(self.refuse(Code::AccountUnused, &place).with_actual(address::to_account(*key)));
            }
            let (pays, (signer, writable)) = (*key == fee_payer, needed.unwrap_or_default());
            let (expected, actual) = ((pays || signer, pays || writable), message::flags(message, index));
            if actual != expected {
                return Err(self
                    .refuse(Code::AccountFlags, &place)
                    .with_expected(describe_flags(expected))
                    .with_actual(format!("{key}, {}", describe_flags(actual))));
            }
        }
        Ok(())
    }

    /// Requires that the slot of any other signer is empty or contains a valid signature. Bytes in the owner's slot do not matter,
    /// because they are overwritten. Returns whether that slot has the owner's valid signature of this message.
    pub(super) fn check_slots(&self, warnings: &mut Warnings) -> Result<bool, Refusal> {
        let mut owner_signed = false;
        for (index, (signature, key)) in self.decoded.transaction.signatures.iter().zip(self.keys()).enumerate() {
            if *signature == Signature::default() {
                continue;
            }
            let is_valid = is_signed_by(signature, key, &self.decoded.message);
            if index == self.path.owner_slot() {
                let detail = if is_valid { "the owner's own signature" } else { "not a signature of the owner" };
                warnings.warn_about(Code::OwnSignatureOverwritten, detail);
                owner_signed = is_valid;
            } else if !is_valid {
                return Err(self
                    .refuse(Code::SponsorSignature, &self.layout.slot(index))
                    .with_expected(format!("a signature of {key}, or zeros")));
            }
        }
        Ok(owner_signed)
    }
}

fn describe_flags((signer, writable): (bool, bool)) -> &'static str {
    match (signer, writable) {
        (true, true) => "signer, writable",
        (true, false) => "signer, read-only",
        (false, true) => "writable",
        (false, false) => "read-only",
    }
}
