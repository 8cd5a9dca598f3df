//! The lines that a person reads before signing, and the bytes that each of them stands for.

use countersign_core::{Hex, ByteCoverage, Summary, Topic, amount};
use solana_message::VersionedMessage;

use crate::extra::Extra;
use crate::htlc::{Fields, Htlc, TOKEN_ACCOUNT, VAULT};
use crate::message::Layout;
use crate::transaction::Unsigned;
use crate::verify::{Deposit, Proposal};
use crate::wire::{Encoding, GASLESS, TRANSACTION};

/// Nominal thousandths of a second per block.
const BLOCK_MILLIS: u128 = 400;

fn encoding(name: &str, proposal: &Proposal, summary: &mut Summary) {
    let spelt = match proposal.encoding {
        Encoding::Base64 => "base64",
        Encoding::Hex => "hex, as older answers write it",
    };
    let message = &proposal.decoded.transaction.message;
    let version = match message {
        VersionedMessage::Legacy(_) => "legacy message",
        _ => "version 0 message",
    };
    summary.say(Topic::Encoding, format!("{name} in {spelt}, {version}, blockhash {} as it came", message.recent_blockhash()));
}

/// What an instruction beside the HTLC's is about.
const fn topic(extra: &Extra) -> Topic {
    match extra {
        Extra::ComputeUnitLimit(_) | Extra::ComputeUnitPrice(_) => Topic::Gas,
        Extra::CreateTokenAccount => Topic::Token,
        Extra::Memo(_) => Topic::Message,
    }
}

fn extras(name: &str, proposal: &Proposal, summary: &mut Summary) {
    for extra in &proposal.extras {
        let more = match extra {
            Extra::ComputeUnitPrice(_) => format!(", a priority fee of at most {} lamports", Extra::priority_fee(&proposal.extras)),
            Extra::CreateTokenAccount => {
                let account = proposal.account(TOKEN_ACCOUNT).map(|account| account.to_string()).unwrap_or_default();
                format!(", {account}, at the expense of {}", proposal.fee_payer)
            }
            _ => String::new(),
        };
        summary.say(topic(extra), format!("{name}: {extra}{more}"));
    }
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    let vault = deposit.transaction.account(VAULT).map(|vault| format!(", tokens in the vault {vault}")).unwrap_or_default();
    summary.say(Topic::Contract, format!("swap account {}{vault}", deposit.swap_account));
    if deposit.htlc.token.is_some() {
        let shown = match &deposit.terms.destination_data {
            None => "none".to_owned(),
            Some(data) => format!("{} bytes {}", data.len(), Hex(data.clone())),
        };
        summary.say(Topic::DestinationData, shown);
    }
    encoding("transaction", &deposit.transaction, summary);
    summary.say(Topic::Gas, format!("transaction: fees and rent are paid by {}, the owner", deposit.transaction.fee_payer));
    extras("transaction", &deposit.transaction, summary);
    let Some(gasless) = &deposit.gasless else {
        summary.say(Topic::Message, "none: this order has no gasless way");
        return;
    };
    encoding("gasless transaction", gasless, summary);
    let pinned = if deposit.sponsor_pinned { "a pinned one" } else { "whom nobody has pinned" };
    summary.say(Topic::Gas, format!("gasless transaction: fees and rent are paid by the sponsor {}, {pinned}", gasless.fee_payer));
    extras("gasless transaction", gasless, summary);
    let slot = match gasless.decoded.transaction.signatures.first() {
        Some(signature) if signature.as_ref().iter().any(|byte| *byte != 0) => format!("which has signed: {signature}"),
        _ => "which has not signed yet".to_owned(),
    };
    summary.say(Topic::Message, format!("gasless transaction, co-signed with the sponsor {}, {slot}", gasless.fee_payer));
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let mut spans = Vec::new();
    cover(&mut spans, &deposit.transaction, &deposit.htlc, deposit, TRANSACTION);
    if let Some(gasless) = &deposit.gasless {
        cover(&mut spans, gasless, &deposit.htlc, deposit, GASLESS);
    }
    spans
}

fn cover(spans: &mut Vec<ByteCoverage>, proposal: &Proposal, htlc: &Htlc, deposit: &Deposit, member: &str) {
    let at = format!("/response/result/{member}");
    let decoded = &proposal.decoded;
    let layout = &decoded.layout;
    let mut from = 0;
    // Each part ends where the next begins.
    let mut upto = |topic, end, what| {
        if end > from {
            spans.push(ByteCoverage::bytes(topic, at.clone(), from, end, what));
            from = end;
        }
    };
    upto(Topic::Encoding, 1, "count of signatures");
    for index in 0..decoded.transaction.signatures.len() {
        let slot = Layout::slot(index);
        if index == proposal.owner_slot {
            upto(Topic::Owner, slot.end, "the owner's signature slot");
        } else {
            upto(Topic::Message, slot.end, "the sponsor's signature slot");
        }
    }
    upto(Topic::Encoding, layout.keys, "version, header, count of keys");
    for (index, key) in decoded.transaction.message.static_account_keys().iter().enumerate() {
        let (topic, what) = if *key == htlc.program {
            (Topic::Contract, "the HTLC program")
        } else if *key == deposit.owner {
            (Topic::Owner, "the owner")
        } else if *key == proposal.fee_payer {
            (Topic::Gas, "the sponsor")
        } else {
            let what = proposal
                .roles
                .iter()
                .copied()
                .chain(proposal.extras.iter().map(Extra::program))
                .find(|role| role.address == *key)
                .map_or("an account", |role| role.what);
            (if htlc.token.is_some_and(|token| token.mint == *key) { Topic::Token } else { Topic::Contract }, what)
        };
        upto(topic, layout.key(index).end, what);
    }
    upto(Topic::Encoding, layout.blockhash.end, "blockhash");
    let mut extras = proposal.extras.iter();
    for (index, instruction) in layout.instructions.iter().enumerate() {
        if index != proposal.initiate {
            if let Some(extra) = extras.next() {
                upto(topic(extra), instruction.data.end, "an instruction that the policy allows");
            }
            continue;
        }
        upto(Topic::Contract, instruction.data.start.saturating_add(8), "instruction: program, accounts, initiate");
        let fields = Fields::of(htlc);
        let mut parts = [
            (Topic::Send, fields.amount, "amount"),
            (Topic::Timelock, fields.timelock, "timelock"),
            (Topic::Redeemer, fields.redeemer, "redeemer"),
            (Topic::SecretHash, fields.secret_hash, "secret hash"),
        ];
        parts.sort_by_key(|(_, range, _)| range.start);
        for (topic, range, what) in parts {
            upto(topic, instruction.data.start.saturating_add(range.end), what);
        }
        upto(Topic::DestinationData, instruction.data.end, "destination data");
    }
    upto(Topic::Encoding, layout.end, "no lookup tables");
}

pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    let message = &unsigned.transaction.transaction().message;
    let whose = if unsigned.own_blockhash { "the wallet's own" } else { "as it came" };
    summary.say(Topic::Wallet, format!("signed by {}, blockhash {} ({whose})", unsigned.owner, message.recent_blockhash()));
    if let Some(last) = unsigned.wallet.last_valid_block_height {
        let left = unsigned.wallet.block_height.map(|now| {
            let blocks = last.saturating_sub(now);
            format!(", {blocks} blocks from now, {}", amount::duration(u128::from(blocks).saturating_mul(BLOCK_MILLIS)))
        });
        summary.say(Topic::Wallet, format!("safe to sign until block height {last}{}", left.unwrap_or_default()));
    }
    summary.say(Topic::Digest, format!("transaction, SHA-256 of the message {}", unsigned.transaction.message_hash()));
    if let Some(gasless) = &unsigned.gasless {
        summary.say(Topic::Digest, format!("gasless transaction, SHA-256 of the message {}", gasless.message_hash()));
    }
}
