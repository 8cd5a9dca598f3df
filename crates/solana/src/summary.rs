//! The summary lines of a deposit and its payloads, and the bytes that each line covers.

use countersign_core::report::amount::format_duration;
use countersign_core::{ByteCoverage, ChainProfile, Hex, Network, RequestId, Span, Summary, Topic, TypedValue, line_text, sort};
use solana_message::VersionedMessage;
use solana_message::v1::TransactionConfig;

use crate::address::{self, Address};
use crate::allowed::AllowedInstruction;
use crate::deposit::{Deposit, ProposedInstruction, ProposedTransaction};
use crate::fees::ComputeBudget;
use crate::htlc::Fields;
use crate::message::InstructionLayout;
use crate::transaction::{self, LIFE, Unsigned};
use crate::wire::{Encoding, GASLESS, TRANSACTION};

fn value(address: Address) -> TypedValue {
    address::to_account(address).into()
}

fn describe_encoding(name: &str, proposed: &ProposedTransaction, summary: &mut Summary) {
    let encoding = match proposed.encoding {
        Encoding::Base64 => "base64",
        Encoding::Hex => "hex, the form of older responses",
    };
    let message = &proposed.decoded.transaction.message;
    let version = match message {
        VersionedMessage::Legacy(_) => "legacy message",
        VersionedMessage::V0(_) => "version 0 message",
        VersionedMessage::V1(_) => "version 1 message",
    };
    let blockhash = message.recent_blockhash().to_string();
    let text = line_text!("{name} in {encoding}, {version}, blockhash {blockhash} of the service");
    summary.add_values(Topic::Encoding, text, [blockhash.into()]);
}

/// Returns the topic of an instruction other than the HTLC's own.
const fn topic(allowed: &AllowedInstruction) -> Topic {
    match allowed {
        AllowedInstruction::ComputeUnitLimit(_) | AllowedInstruction::ComputeUnitPrice(_) => Topic::Gas,
        AllowedInstruction::CreateTokenAccount => Topic::Token,
        AllowedInstruction::Memo(_) => Topic::Message,
    }
}

/// Adds the limits and the fees that a message of version 1 contains.
fn describe_config(name: &str, proposed: &ProposedTransaction, summary: &mut Summary) {
    let VersionedMessage::V1(message) = &proposed.decoded.transaction.message else { return };
    let TransactionConfig { priority_fee, compute_unit_limit, loaded_accounts_data_size_limit, heap_size } = message.config;
    let (fee, units, loaded) = (priority_fee.unwrap_or(0), compute_unit_limit.unwrap_or(0), loaded_accounts_data_size_limit.unwrap_or(0));
    let total = transaction::max_fee(&proposed.decoded.transaction.message);
    let text =
        line_text!("{name}: {units} compute units at most, a priority fee of {fee} lamports, {total} lamports with the fee for signatures");
    summary.add_values(Topic::Gas, text, [units.into(), fee.into(), total.into()]);
    let heap = heap_size.map(|heap| format!(", a heap of {heap} bytes")).unwrap_or_default();
    let values = [loaded].into_iter().chain(heap_size).map(TypedValue::from);
    summary.add_values(Topic::Gas, line_text!("{name}: loads at most {loaded} bytes of accounts{heap}"), values);
}

fn describe_allowed(name: &str, proposed: &ProposedTransaction, summary: &mut Summary) {
    let all: Vec<_> = proposed.allowed().cloned().collect();
    for allowed in &all {
        let (more, values): (String, Vec<TypedValue>) = match allowed {
            AllowedInstruction::ComputeUnitLimit(limit) => (String::new(), vec![(*limit).into()]),
            AllowedInstruction::ComputeUnitPrice(price) => {
                let fee = AllowedInstruction::priority_fee(&all);
                (format!(", a priority fee of at most {fee} lamports"), vec![(*price).into(), fee.into()])
            }
            AllowedInstruction::CreateTokenAccount => {
                let account = proposed.accounts.token_account.unwrap_or_default();
                let payer = proposed.fee_payer;
                (format!(", {account}, at the expense of {payer}"), vec![value(account), value(payer)])
            }
            AllowedInstruction::Memo(memo) => (String::new(), vec![memo.into()]),
        };
        summary.add_values(topic(allowed), format!("{name}: {allowed}{more}"), values);
    }
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    describe_parts(deposit, true, deposit.gasless.as_ref(), summary);
}

pub(crate) fn describe_prepared(deposit: &Deposit, unsigned: &Unsigned, summary: &mut Summary) {
    let gasless = deposit.gasless.as_ref().filter(|_| unsigned.gasless.is_some());
    describe_parts(deposit, unsigned.transaction.is_some(), gasless, summary);
}

fn describe_parts(deposit: &Deposit, is_self_funded: bool, gasless: Option<&ProposedTransaction>, summary: &mut Summary) {
    let vault = deposit.transaction.accounts.vault;
    let tokens = vault.map(|vault| format!(", tokens in the vault {vault}")).unwrap_or_default();
    let values = [deposit.swap_account].into_iter().chain(vault).map(value);
    summary.add_values(Topic::Contract, line_text!("swap account {}{tokens}", deposit.swap_account), values);
    if let Some(refundee) = deposit.terms.refundee {
        let generation = deposit.htlc.generation.name;
        let text = line_text!("generation {generation}: refunds go to {refundee}, rent returns to its payer");
        summary.add_values(Topic::Contract, text, [value(refundee)]);
    }
    if deposit.htlc.takes_destination_data() {
        match &deposit.terms.destination_data {
            None => summary.add(Topic::DestinationData, "none"),
            Some(data) => {
                let hex = Hex(data.clone()).to_string();
                summary.add(Topic::DestinationData, line_text!("{} bytes {hex}", data.len()));
            }
        }
    }
    if is_self_funded {
        describe_encoding("transaction", &deposit.transaction, summary);
        let payer = deposit.transaction.fee_payer;
        summary.add_values(Topic::Gas, line_text!("transaction: fees and rent are paid by {payer}, the owner"), [value(payer)]);
        describe_config("transaction", &deposit.transaction, summary);
        describe_allowed("transaction", &deposit.transaction, summary);
    }
    let Some(gasless) = gasless else {
        return summary.add_no_gasless(deposit.gasless.is_some());
    };
    describe_encoding("gasless transaction", gasless, summary);
    let sponsor = gasless.fee_payer;
    let pinned = if deposit.sponsor_pinned { "which is pinned" } else { "which is not pinned" };
    let text = line_text!("gasless transaction: fees and rent are paid by the sponsor {sponsor}, {pinned}");
    summary.add_values(Topic::Gas, text, [value(sponsor)]);
    describe_config("gasless transaction", gasless, summary);
    describe_allowed("gasless transaction", gasless, summary);
    let slot = match gasless.decoded.transaction.signatures.first() {
        Some(signature) if signature.as_ref().iter().any(|byte| *byte != 0) => format!("which has signed: {signature}"),
        _ => "which has not signed yet".to_owned(),
    };
    let text = line_text!("gasless transaction, co-signed with the sponsor {sponsor}, {slot}");
    summary.add_values(Topic::Message, text, [value(sponsor)]);
}

/// Returns how long a number of blocks takes at the chain's nominal pace.
pub(crate) fn duration(blocks: u64) -> String {
    format_duration(Span::Units(blocks).millis(ChainProfile::of("", &Network::Solana(String::new())).pace.nominal))
}

/// Adds the wallet's choices and the digests.
pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    let (own_blockhash, own_fee) = (unsigned.chosen.recent_blockhash.is_some(), unsigned.chosen.priority_fee.is_some());
    if let Some((_, payload)) = unsigned.payloads().next() {
        let whose = match (own_blockhash, unsigned.chosen.nonce) {
            (_, Some(_)) if !unsigned.is_fixed => "the value of the nonce account",
            (true, _) if !unsigned.is_fixed => "the wallet's own",
            _ => "the service's",
        };
        let blockhash = payload.transaction().message.recent_blockhash().to_string();
        let text = line_text!("signed by {}, blockhash {blockhash} ({whose})", unsigned.signer);
        summary.add_values(Topic::Wallet, text, [value(unsigned.signer), blockhash.into()]);
    }
    if let (Some(nonce), Some(_), false) = (unsigned.chosen.nonce, &unsigned.transaction, unsigned.is_fixed) {
        let account = nonce.account;
        let text = line_text!(
            "the transaction does not expire: it stays valid until the nonce account {account} of {} is advanced",
            unsigned.signer
        );
        summary.add_values(Topic::Wallet, text, [value(account), value(unsigned.signer)]);
    }
    if let (Some(payload), true) = (&unsigned.transaction, own_fee) {
        let budget = ComputeBudget::from_message(&payload.transaction().message);
        let (units, lamports) = (budget.units(), budget.priority_fee());
        let text = match (unsigned.is_fixed, budget.price, budget.total) {
            (false, Some(price), _) => format!(
                "priority fee set by the wallet: {price} micro-lamports for each of {units} compute units, at most {lamports} lamports"
            ),
            (false, None, Some(_)) => format!("priority fee set by the wallet: {lamports} lamports for at most {units} compute units"),
            _ => "the priority fee is not changed: the owner has signed the transaction already".to_owned(),
        };
        summary.add_values(Topic::Gas, text, budget.price.map(|price| price.into()));
    }
    // Without the height, the lifetime in general. The service's blockhash of a transaction that the owner sends can be replaced at any time.
    let lifetime = match (unsigned.transaction.is_none(), own_blockhash && !unsigned.is_fixed, unsigned.chosen.last_valid_block_height) {
        (true, ..) => Some("sign at once, or ask for the order anew"),
        (false, true, None) => Some("a signer that takes longer needs a transaction that is prepared anew"),
        _ => None,
    };
    if let Some(advice) = lifetime {
        summary.add(Topic::Wallet, line_text!("a blockhash is valid for {LIFE} blocks, {}: {advice}", duration(LIFE)));
    }
    if let Some(last) = unsigned.chosen.last_valid_block_height {
        let left = unsigned.chosen.block_height.map(|now| {
            let blocks = last.saturating_sub(now);
            format!(", {blocks} blocks from now, {}", duration(blocks))
        });
        let text = line_text!("safe to sign until block height {last}{}", left.unwrap_or_default());
        summary.add_values(Topic::Wallet, text, [last.into()]);
    }
    for (id, payload) in unsigned.payloads() {
        let name = match id {
            RequestId::Gasless => "gasless transaction",
            RequestId::Redeem => "redeem transaction",
            RequestId::Refund => "refund transaction",
            _ => "transaction",
        };
        let hash = payload.message_hash();
        let text = line_text!("{name}, SHA-256 of the message {hash}");
        summary.add_values(Topic::Digest, text, [TypedValue::Hash(hash.to_bytes())]);
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let mut coverage = Coverage::new(TRANSACTION);
    coverage.add_transaction(&deposit.transaction, deposit);
    let mut all = coverage.parts;
    if let Some(gasless) = &deposit.gasless {
        let mut coverage = Coverage::new(GASLESS);
        coverage.add_transaction(gasless, deposit);
        all.extend(coverage.parts);
    }
    all
}

/// The covered parts of one transaction. Each part ends where the next one begins.
struct Coverage {
    at: String,
    parts: Vec<ByteCoverage>,
    end: usize,
}

impl Coverage {
    fn new(member: &str) -> Self {
        Self { at: format!("/response/result/{member}"), parts: Vec::new(), end: 0 }
    }

    /// Adds the bytes up to `end` as one part, unless it would be empty.
    fn up_to(&mut self, topic: Topic, end: usize, what: &'static str) {
        if end > self.end {
            self.parts.push(ByteCoverage::bytes(topic, self.at.clone(), self.end, end, what));
            self.end = end;
        }
    }

    fn add_transaction(&mut self, proposed: &ProposedTransaction, deposit: &Deposit) {
        let (transaction, layout) = (&proposed.decoded.transaction, &proposed.layout);
        if layout.config.is_none() {
            self.up_to(Topic::Encoding, 1, "count of signatures");
            self.add_slots(proposed);
            self.up_to(Topic::Encoding, layout.keys, "version, header, count of keys");
        } else {
            self.up_to(Topic::Encoding, layout.header.end, "version, header");
            self.up_to(Topic::Gas, layout.blockhash.start, "which limits the message contains");
            self.up_to(Topic::Encoding, layout.blockhash.end, "blockhash");
            self.up_to(Topic::Encoding, layout.keys, "counts of instructions and keys");
        }
        for (index, key) in transaction.message.static_account_keys().iter().enumerate() {
            let (topic, what) = name_key(key, proposed, deposit);
            self.up_to(topic, layout.key(index).end, what);
        }
        if let Some(config) = &layout.config {
            self.up_to(Topic::Gas, config.priority_fee.end, "priority fee");
            self.up_to(Topic::Gas, config.compute_unit_limit.end, "compute unit limit");
            self.up_to(Topic::Gas, config.loaded_accounts_data_size_limit.end, "most bytes of accounts");
            self.up_to(Topic::Gas, config.heap_size.end, "bytes of heap");
            let headers = layout.instructions.last().map_or(0, |last| last.whole.end);
            self.up_to(Topic::Contract, headers, "instructions: programs, numbers of accounts, lengths of data");
        }
        self.up_to(Topic::Encoding, layout.blockhash.end, "blockhash");
        for (kind, place) in proposed.instructions.iter().zip(&layout.instructions) {
            match kind {
                ProposedInstruction::Initiate => self.add_initiate(place, deposit),
                ProposedInstruction::Allowed(allowed) => {
                    self.up_to(topic(allowed), place.data.end, "an instruction that the policy allows");
                }
            }
        }
        if layout.config.is_some() {
            self.add_slots(proposed);
        }
        self.up_to(Topic::Encoding, layout.end, "no lookup tables");
    }

    fn add_slots(&mut self, proposed: &ProposedTransaction) {
        for index in 0..proposed.decoded.transaction.signatures.len() {
            let end = proposed.layout.slot(index).end;
            if index == proposed.owner_slot {
                self.up_to(Topic::Owner, end, "the owner's signature slot");
            } else {
                self.up_to(Topic::Message, end, "the sponsor's signature slot");
            }
        }
    }

    fn add_initiate(&mut self, place: &InstructionLayout, deposit: &Deposit) {
        let fields = Fields::new(&deposit.htlc);
        let discriminator = place.field(&(0..8));
        self.up_to(Topic::Contract, discriminator.end, "instruction: program, accounts, initiate");
        let mut parts = vec![
            (Topic::Send, fields.amount, "amount"),
            (Topic::Timelock, fields.timelock, "timelock"),
            (Topic::Redeemer, fields.redeemer, "redeemer"),
            (Topic::SecretHash, fields.secret_hash, "secret hash"),
        ];
        parts.extend(fields.refundee.map(|refundee| (Topic::Owner, refundee, "refundee")));
        sort::by(&mut parts, |(_, one, _), (_, other, _)| one.start.cmp(&other.start));
        for (topic, range, what) in parts {
            self.up_to(topic, place.field(&range).end, what);
        }
        self.up_to(Topic::DestinationData, place.data.end, "destination data");
    }
}

/// Returns the topic and the name of an account key.
fn name_key(key: &Address, proposed: &ProposedTransaction, deposit: &Deposit) -> (Topic, &'static str) {
    let htlc = &deposit.htlc;
    if *key == htlc.program {
        (Topic::Contract, "the HTLC program")
    } else if *key == deposit.owner {
        (Topic::Owner, "the owner")
    } else if *key == proposed.fee_payer {
        (Topic::Gas, "the sponsor")
    } else {
        let programs = proposed.allowed().map(AllowedInstruction::program);
        let role = proposed.accounts.roles.iter().copied().chain(programs).find(|role| role.address == *key);
        let topic = if htlc.token.is_some_and(|token| token.mint == *key) { Topic::Token } else { Topic::Contract };
        (topic, role.map_or("an account", |role| role.name))
    }
}
