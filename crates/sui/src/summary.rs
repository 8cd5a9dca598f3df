//! The summary lines of a deposit and its payload, and the bytes that each line covers.

use countersign_core::{ByteCoverage, Summary, Topic, TypedValue, U256, line_text, number};
use sui_sdk_types::{Command, Mutability, ObjectReference, SharedInput, TransactionExpiration};

use crate::address::{format_address, format_digest, format_type, to_account};
use crate::balance;
use crate::deposit::{Deposit, PAYLOAD_KEY};
use crate::htlc::{self, InputRole, MODULE, Ranges};
use crate::transaction::Unsigned;

/// Decimal places of one SUI, whose base unit is the MIST.
pub(crate) const SUI_DECIMALS: u8 = 9;
/// The number of gas coins that are shown one by one.
const SHOWN_COINS: usize = 8;

fn object(reference: &ObjectReference) -> String {
    let (id, digest) = (format_address(reference.object_id()), format_digest(reference.digest()));
    format!("{id} version {} digest {digest}", reference.version())
}

fn object_values(reference: &ObjectReference) -> [TypedValue; 3] {
    let (id, digest) = (to_account(*reference.object_id()), TypedValue::Hash(reference.digest().into_inner()));
    [id.into(), reference.version().into(), digest]
}

fn coin(deposit: &Deposit, index: u16) -> Option<&ObjectReference> {
    match deposit.layout.roles.get(usize::from(index)) {
        Some(InputRole::Coin(reference)) => Some(reference),
        _ => None,
    }
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    let Deposit { terms, layout, .. } = deposit;
    let call = format!("one call of {MODULE}::{} in package {}", htlc::INITIATE, format_address(&terms.package));
    summary.add_values(Topic::Contract, call, [to_account(terms.package).into()]);
    let registry = format!("orders registry {}", shared(&terms.registry));
    summary.add_values(Topic::Contract, registry, [to_account(terms.registry.object_id()).into()]);
    summary.add(Topic::Token, line_text!("coin type {}", format_type(&terms.coin_type)));
    if layout.splits_gas() {
        summary.add(Topic::Send, "split from the coins that pay the gas");
    }
    if layout.funds.is_some() {
        let withdrawn = layout.withdrawn();
        let text = line_text!("{withdrawn} base units are withdrawn from the address balance of {}", format_address(&deposit.sender));
        summary.add_values(Topic::Send, text, [withdrawn.into()]);
    }
    if let Some(coins) = &layout.coins {
        for merged in coins.merged.iter().filter_map(|index| coin(deposit, *index)) {
            summary.add_values(Topic::Send, line_text!("coin {} is merged first", object(merged)), object_values(merged));
        }
        if let Some(split) = coin(deposit, coins.split) {
            summary.add_values(Topic::Send, line_text!("split from coin {}", object(split)), object_values(split));
        }
    }
    if layout.funds.is_some_and(|funds| funds.remainder.is_some()) {
        summary.add(Topic::Send, "what is left of the coin goes to the sender's address balance");
    }
    let data = &terms.destination_data;
    let text = if data.is_empty() { "none".to_owned() } else { format!("{} bytes 0x{}", data.len(), hex::encode(data)) };
    summary.add(Topic::DestinationData, text);
    let roles: Vec<_> = layout.roles.iter().map(InputRole::name).collect();
    let result = if layout.nested { "nested result" } else { "result" };
    let is_whole = layout.coins.is_none() && layout.funds.is_some_and(|funds| funds.remainder.is_none());
    let of = if is_whole { "withdrawal" } else { "split" };
    summary.add(Topic::Encoding, line_text!("inputs in the order {}; the coin as {result} of the {of}", roles.join(", ")));
    summary.add(Topic::Message, "none: Sui has no gasless funding path");
}

const fn topic(role: &InputRole) -> (Topic, &'static str) {
    match role {
        InputRole::Registry => (Topic::Contract, "orders registry"),
        InputRole::Initiator => (Topic::Owner, "initiator"),
        InputRole::Redeemer => (Topic::Redeemer, "redeemer"),
        InputRole::SecretHash => (Topic::SecretHash, "secret hash"),
        InputRole::Amount => (Topic::Send, "amount"),
        InputRole::Timelock => (Topic::Timelock, "timelock"),
        InputRole::DestinationData => (Topic::DestinationData, "destination data"),
        InputRole::Clock => (Topic::Timelock, "clock"),
        InputRole::Coin(_) => (Topic::Send, "coin of the owner"),
        InputRole::Withdrawal(_) => (Topic::Send, "withdrawal from the sender's address balance"),
        InputRole::Remainder(_) => (Topic::Send, "account of what is left: the owner"),
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let Some(transaction) = deposit.programmable() else { return Vec::new() };
    let ranges = Ranges(transaction);
    let at = format!("/response/result/{PAYLOAD_KEY}");
    let mut coverage = Vec::new();
    let mut cover = |topic, (start, end), what| coverage.push(ByteCoverage::bytes(topic, at.clone(), start, end, what));
    cover(Topic::Encoding, ranges.head(), "kind and number of inputs");
    for (index, role) in deposit.layout.roles.iter().enumerate() {
        let (topic, what) = topic(role);
        cover(topic, ranges.input(index), what);
    }
    cover(Topic::Encoding, ranges.commands_head(), "number of commands");
    let call = transaction.commands.len().saturating_sub(1);
    for (index, command) in transaction.commands.iter().enumerate().take(call) {
        let what = match command {
            Command::MergeCoins(_) => "merge of coins",
            Command::MoveCall(_) if index == 0 => "withdrawal from the address balance",
            Command::MoveCall(_) => "the rest back to the address balance",
            _ => "split of the amount",
        };
        cover(Topic::Send, ranges.command(index), what);
    }
    let [package, module, function, coin_type, arguments] = ranges.call();
    cover(Topic::Contract, package, "call and package");
    cover(Topic::Contract, module, "module");
    cover(Topic::Contract, function, "function");
    cover(Topic::Token, coin_type, "coin type");
    cover(Topic::Encoding, arguments, "arguments");
    coverage
}

pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    let gas = &unsigned.gas_payment;
    let mut values = vec![to_account(unsigned.sender).into()];
    let sender = format_address(&unsigned.sender);
    let payer = match unsigned.sponsor() {
        Some(sponsor) => {
            values.push(to_account(sponsor).into());
            format!("sent by {sender}, gas paid by {}, who signs too", format_address(&sponsor))
        }
        None => format!("sent and paid for by {sender}"),
    };
    values.extend([gas.price, gas.budget].map(TypedValue::from));
    let expiration = expiration(&unsigned.expiration);
    let budget = number::in_whole_units(U256::from(gas.budget), SUI_DECIMALS);
    let text = line_text!("{payer}, {} MIST per unit of gas, at most {budget} SUI, {expiration}", gas.price);
    summary.add_values(Topic::Wallet, text, values);
    if unsigned.sponsor().is_some() && unsigned.splits_gas() {
        summary.add(Topic::Wallet, "the amount is also split from the sponsor's coins");
    }
    if gas.objects.is_empty() {
        summary.add(Topic::Wallet, "gas from the address balance: no coin object is used");
    }
    for coin in gas.objects.iter().take(SHOWN_COINS) {
        let text = match balance::reserved(coin) {
            Some((amount, epoch)) => {
                let amount = number::in_whole_units(U256::from(amount), SUI_DECIMALS);
                format!("up to {amount} SUI of the sender's address balance, reserved in epoch {epoch}: {}", object(coin))
            }
            None => format!("gas coin {}", object(coin)),
        };
        summary.add_values(Topic::Wallet, text, object_values(coin));
    }
    if let Some(more @ 1..) = gas.objects.len().checked_sub(SHOWN_COINS) {
        summary.add_values(Topic::Wallet, line_text!("and {more} more gas coins"), [more.into()]);
    }
    let digest = unsigned.digest();
    summary.add_values(Topic::Digest, line_text!("transaction {}", format_digest(&digest)), [TypedValue::Hash(digest.into_inner())]);
    let text = line_text!("signing digest {}", hex::encode(unsigned.signing_digest));
    summary.add_values(Topic::Digest, text, [TypedValue::Hash(unsigned.signing_digest)]);
}

/// Says when a transaction expires.
fn expiration(expiration: &TransactionExpiration) -> String {
    let (parts, proposers) = match expiration {
        TransactionExpiration::None => return "does not expire".to_owned(),
        TransactionExpiration::Epoch(epoch) => return format!("expires after epoch {epoch}"),
        TransactionExpiration::ValidDuring { min_epoch, max_epoch, min_timestamp, max_timestamp, chain, nonce } => {
            ((min_epoch, max_epoch, min_timestamp, max_timestamp, chain, nonce), None)
        }
        TransactionExpiration::Validity { min_epoch, max_epoch, min_timestamp, max_timestamp, chain, nonce, allowed_proposers } => {
            ((min_epoch, max_epoch, min_timestamp, max_timestamp, chain, nonce), allowed_proposers.as_ref())
        }
        _ => return "expires in a way that this library does not know".to_owned(),
    };
    let (first, last, from, until, chain, nonce) = parts;
    let mut text = match last {
        Some(last) => format!("expires after epoch {last}"),
        None => "does not expire with an epoch".to_owned(),
    };
    let mut more = |what: &str, value: Option<u64>| {
        if let Some(value) = value {
            text.push_str(&format!(", {what} {value}"));
        }
    };
    more("valid from epoch", *first);
    more("valid from Unix time in milliseconds", *from);
    more("expires at Unix time in milliseconds", *until);
    more("only for validators of epoch", proposers.map(|proposers| proposers.epoch));
    text.push_str(&format!(", only on the network with genesis {}, number {nonce}", format_digest(chain)));
    text
}

/// Describes a shared object.
pub(crate) fn shared(object: &SharedInput) -> String {
    let access = match object.mutability() {
        Mutability::Mutable => "mutable",
        Mutability::Immutable => "read-only",
        Mutability::NonExclusiveWrite => "non-exclusive write",
    };
    format!("{}, shared since version {}, {access}", format_address(&object.object_id()), object.version())
}

#[cfg(test)]
mod tests {
    use sui_sdk_types::{AllowedProposers, Digest};

    use super::*;

    #[test]
    fn every_expiration_is_told_as_it_is() {
        let (chain, nonce) = (Digest::new([7; 32]), 42);
        let allowed_proposers = Some(AllowedProposers { epoch: 900, proposers: vec![3, 9] });
        let (min_epoch, max_epoch, min_timestamp, max_timestamp) = (Some(900), Some(901), None, Some(5));
        let validity =
            TransactionExpiration::Validity { min_epoch, max_epoch, min_timestamp, max_timestamp, chain, nonce, allowed_proposers };
        let open = TransactionExpiration::ValidDuring {
            min_epoch: None,
            max_epoch: None,
            min_timestamp: Some(4),
            max_timestamp: None,
            chain,
            nonce,
        };
        let network = format!("only on the network with genesis {}, number 42", chain.to_base58());
        for (told, text) in [
            (TransactionExpiration::None, "does not expire".to_owned()),
            (TransactionExpiration::Epoch(812), "expires after epoch 812".to_owned()),
            (
                validity,
                format!(
                    "expires after epoch 901, valid from epoch 900, expires at Unix time in milliseconds 5, only for validators of epoch \
                     900, {network}"
                ),
            ),
            (open, format!("does not expire with an epoch, valid from Unix time in milliseconds 4, {network}")),
        ] {
            assert_eq!(expiration(&told), text);
        }
    }
}
