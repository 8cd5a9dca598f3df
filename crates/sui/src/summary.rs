//! The lines that a person reads before signing, and the bytes that each of them stands for.

use countersign_core::{ByteCoverage, Summary, Topic, U256, number};
use sui_sdk_types::{Argument, Command, ObjectReference, TransactionExpiration, TransactionKind};

use crate::htlc::{self, Layout, MODULE, Role};
use crate::transaction::Unsigned;
use crate::verify::{Deposit, shared};

/// Digits behind the point of one SUI, in MIST.
const COIN: u8 = 9;
/// Gas coins that are shown one by one.
const SHOWN_COINS: usize = 8;

const AT: &str = "/response/result/ptb_bytes";

fn object(reference: &ObjectReference) -> String {
    format!("{} version {} digest {}", reference.object_id(), reference.version(), reference.digest())
}

fn coin(deposit: &Deposit, index: u16) -> Option<&ObjectReference> {
    match deposit.shape.roles.get(usize::from(index)) {
        Some(Role::Coin(reference)) => Some(reference),
        _ => None,
    }
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    let Deposit { terms, shape, .. } = deposit;
    summary.say(Topic::Contract, format!("one call of {MODULE}::{} in package {}", htlc::INITIATE, terms.package));
    summary.say(Topic::Contract, format!("orders registry {}", shared(&terms.registry)));
    summary.say(Topic::Token, format!("coin type {}", terms.coin_type));
    match &shape.coins {
        None => summary.say(Topic::Send, "split from the coins that pay the gas"),
        Some(coins) => {
            for merged in coins.merged.iter().filter_map(|index| coin(deposit, *index)) {
                summary.say(Topic::Send, format!("coin {} is merged first", object(merged)));
            }
            if let Some(split) = coin(deposit, coins.split) {
                summary.say(Topic::Send, format!("split from coin {}", object(split)));
            }
        }
    }
    let data = &terms.destination_data;
    let shown = if data.is_empty() { "none".to_owned() } else { format!("{} bytes 0x{}", data.len(), hex::encode(data)) };
    summary.say(Topic::DestinationData, shown);
    let roles: Vec<_> = shape.roles.iter().map(Role::name).collect();
    let result = if shape.nested { "nested result" } else { "result" };
    summary.say(Topic::Encoding, format!("inputs in the order {}; the coin as {result} of the split", roles.join(", ")));
    summary.say(Topic::Message, "none: Sui has no gasless way");
}

const fn topic(role: &Role) -> (Topic, &'static str) {
    match role {
        Role::Registry => (Topic::Contract, "orders registry"),
        Role::Initiator => (Topic::Owner, "initiator"),
        Role::Redeemer => (Topic::Redeemer, "redeemer"),
        Role::SecretHash => (Topic::SecretHash, "secret hash"),
        Role::Amount => (Topic::Send, "amount"),
        Role::Timelock => (Topic::Timelock, "timelock"),
        Role::DestinationData => (Topic::DestinationData, "destination data"),
        Role::Clock => (Topic::Timelock, "clock"),
        Role::Coin(_) => (Topic::Send, "coin of the owner"),
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let Some(transaction) = deposit.programmable() else { return Vec::new() };
    let layout = Layout(transaction);
    let mut spans = Vec::new();
    let mut span = |topic, (start, end), what| spans.push(ByteCoverage::bytes(topic, AT, start, end, what));
    span(Topic::Encoding, layout.head(), "kind and number of inputs");
    for (index, role) in deposit.shape.roles.iter().enumerate() {
        let (topic, what) = topic(role);
        span(topic, layout.input(index), what);
    }
    span(Topic::Encoding, layout.commands_head(), "number of commands");
    let call = transaction.commands.len().saturating_sub(1);
    for index in 0..call {
        let what = if index.saturating_add(1) == call { "split of the amount" } else { "merge of coins" };
        span(Topic::Send, layout.command(index), what);
    }
    let [package, module, function, coin_type, arguments] = layout.call();
    span(Topic::Contract, package, "call and package");
    span(Topic::Contract, module, "module");
    span(Topic::Contract, function, "function");
    span(Topic::Token, coin_type, "coin type");
    span(Topic::Encoding, arguments, "arguments");
    spans
}

pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    let gas = &unsigned.gas_payment;
    let payer = match unsigned.sponsor() {
        Some(sponsor) => format!("sent by {}, gas paid by {sponsor}, who signs too", unsigned.sender),
        None => format!("sent and paid by {}", unsigned.sender),
    };
    let expiration = match &unsigned.expiration {
        TransactionExpiration::Epoch(epoch) => format!("expires after epoch {epoch}"),
        _ => "does not expire".to_owned(),
    };
    let budget = number::in_whole_units(U256::from(gas.budget), COIN);
    summary.say(Topic::Wallet, format!("{payer}, {} MIST per unit of gas, at most {budget} SUI, {expiration}", gas.price));
    if unsigned.sponsor().is_some() && splits_gas(unsigned) {
        summary.say(Topic::Wallet, "the amount too is split from the sponsor's coins");
    }
    for coin in gas.objects.iter().take(SHOWN_COINS) {
        summary.say(Topic::Wallet, format!("gas coin {}", object(coin)));
    }
    if let Some(more @ 1..) = gas.objects.len().checked_sub(SHOWN_COINS) {
        summary.say(Topic::Wallet, format!("and {more} gas coins more"));
    }
    summary.say(Topic::Digest, format!("transaction {}", unsigned.digest()));
    summary.say(Topic::Digest, format!("signing digest {}", hex::encode(unsigned.signing_digest)));
}

fn splits_gas(unsigned: &Unsigned) -> bool {
    let TransactionKind::ProgrammableTransaction(transaction) = unsigned.kind.as_ref() else { return false };
    transaction.commands.iter().any(|command| matches!(command, Command::SplitCoins(split) if split.coin == Argument::Gas))
}
