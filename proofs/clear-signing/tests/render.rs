//! Compares an independent renderer's output for every accepted EVM order with our own summary.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a panic in a test is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use countersign::evm::alloy_primitives::{U256, hex};
use countersign::evm::{self, Deposit, VerifiedOrder, htlc};
use countersign::{
    CreateOrder, Policy, Proposal, Registry, Summary, number,
    report::{Topic, TypedValue},
};
use countersign_proofs_clear_signing::{Call, Shown, Wallet};
use countersign_view::clear_signing::Descriptors;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The topics of a summary that descriptors do not show, for the reasons in the README.
const NOT_SHOWN: [Topic; 9] =
    [Topic::Order, Topic::Chain, Topic::Receive, Topic::Payout, Topic::Record, Topic::Fees, Topic::Gas, Topic::Message, Topic::Encoding];

/// The documents of a case in their original text.
#[derive(Deserialize)]
struct Documents<'l> {
    id: &'l str,
    #[serde(borrow)]
    request: &'l RawValue,
    #[serde(borrow)]
    response: &'l RawValue,
    #[serde(borrow)]
    order: Option<&'l RawValue>,
}

fn fixture(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)).unwrap()
}

fn registry() -> Registry {
    fixture("registry.json").parse().unwrap()
}

fn wallet(registry: &Registry) -> Wallet {
    let descriptors = Descriptors::from_registry(registry);
    Wallet::load(descriptors.files.iter().map(|file| file.json.as_str())).unwrap()
}

/// Calls a function with every accepted order: its id, its asset, and the order.
fn each_order(registry: &Registry, mut each: impl FnMut(&str, &str, &VerifiedOrder)) {
    for line in fixture("accept/evm.jsonl").lines() {
        let documents: Documents<'_> = serde_json::from_str(line).unwrap();
        let request = CreateOrder::from_json(documents.request.get().as_bytes()).unwrap();
        let mut proposal = Proposal::new(&request, documents.response.get().as_bytes());
        if let Some(record) = documents.order {
            proposal = proposal.with_record(record.get().as_bytes());
        }
        let order = evm::verify(proposal, registry, &Policy::default()).unwrap();
        each(documents.id, request.source.asset.as_str(), &order);
    }
}

fn initiate(deposit: &Deposit) -> Call<'_> {
    Call {
        chain_id: deposit.chain_id,
        to: deposit.initiate.to.to_string(),
        from: deposit.sender.to_string(),
        value: deposit.initiate.value.to_be_bytes(),
        data: &deposit.initiate.data,
    }
}

/// The contents of our summary, in the renderer's words.
struct Said<'s> {
    summary: &'s Summary,
    used: BTreeSet<Topic>,
}

impl<'s> Said<'s> {
    fn new(summary: &'s Summary) -> Self {
        Self { summary, used: BTreeSet::new() }
    }

    /// Returns the values of a topic's lines.
    fn values(&mut self, topic: Topic) -> impl Iterator<Item = &'s TypedValue> + use<'s> {
        self.used.insert(topic);
        self.summary.about(topic).flat_map(|line| &line.values)
    }

    fn amount(&mut self) -> (String, u8) {
        let Some(TypedValue::Amount(amount)) = self.values(Topic::Send).next() else { panic!("no amount") };
        (format!("{} {}", amount.whole_units(), amount.symbol.to_ascii_uppercase()), amount.decimals)
    }

    fn symbol(&mut self) -> String {
        self.amount().0.split_once(' ').unwrap().1.to_owned()
    }

    /// Returns the coins that are sent with the call, if there are any.
    fn coins(&mut self) -> Option<String> {
        let coins = self.values(Topic::Send).nth(1)?;
        let TypedValue::Number(wei) = coins else { panic!("{coins:?}") };
        Some(format!("{} {}", number::in_whole_units(*wei, 18), self.symbol()))
    }

    /// Returns an account. Renderers may write addresses with or without a checksum.
    fn account(&mut self, topic: Topic) -> Option<String> {
        match self.values(topic).next()? {
            TypedValue::Account(account) => Some(account.to_string().to_lowercase()),
            TypedValue::Text(text) => Some(text.to_lowercase()),
            other => panic!("{other:?}"),
        }
    }

    fn secret_hash(&mut self) -> String {
        let Some(TypedValue::Hash(hash)) = self.values(Topic::SecretHash).next() else { panic!("no secret hash") };
        hex::encode_prefixed(hash)
    }

    fn timelock(&mut self) -> String {
        let Some(TypedValue::Timelock(timelock)) = self.values(Topic::Timelock).next() else { panic!("no timelock") };
        format!("{} {}", timelock.units, timelock.unit())
    }

    fn destination_data(&mut self) -> Option<String> {
        self.used.insert(Topic::DestinationData);
        let line = self.summary.about(Topic::DestinationData).next()?;
        Some(if line.text == "none" { "0x".to_owned() } else { line.text.split_once(" bytes ").unwrap().1.to_owned() })
    }

    /// Returns the lines of the call or message that locks the funds.
    fn lock(&mut self, coins: bool, delegated: bool) -> Vec<(String, String)> {
        let mut lines = vec![(Topic::Send.title(), Some(self.amount().0))];
        if coins {
            lines.extend(self.coins().map(|coins| ("coins sent", Some(coins))));
        }
        lines.push((Topic::Owner.title(), self.account(Topic::Owner)));
        let delegate = self.account(Topic::Delegate);
        assert_eq!(delegate.is_some(), delegated);
        lines.extend(delegate.map(|delegate| (Topic::Delegate.title(), Some(delegate))));
        lines.extend([
            (Topic::Contract.title(), self.account(Topic::Contract)),
            (Topic::Redeemer.title(), self.account(Topic::Redeemer)),
            (Topic::SecretHash.title(), Some(self.secret_hash())),
            (Topic::Timelock.title(), Some(self.timelock())),
        ]);
        lines.extend(self.destination_data().map(|data| (Topic::DestinationData.title(), Some(data))));
        lines.into_iter().map(|(label, value)| (label.to_owned(), value.expect(label))).collect()
    }

    /// Returns the lines of the approval.
    fn approval(&mut self) -> Vec<(String, String)> {
        let (symbol, decimals) = (self.symbol(), self.amount().1);
        let Some(TypedValue::Number(allowance)) = self.values(Topic::Approval).next() else { panic!("no allowance") };
        let allowance = if *allowance == U256::MAX { "Unlimited".to_owned() } else { number::in_whole_units(*allowance, decimals) };
        [
            (Topic::Approval, Some(format!("{allowance} {symbol}"))),
            (Topic::Contract, self.account(Topic::Contract)),
            (Topic::Token, self.account(Topic::Token)),
        ]
        .map(|(topic, value)| (topic.title().to_owned(), value.unwrap()))
        .into()
    }
}

/// Returns the lines with addresses in lower case.
fn lines(shown: &Shown) -> Vec<(String, String)> {
    let plain = |value: &String| if value.len() == 42 && value.starts_with("0x") { value.to_lowercase() } else { value.clone() };
    shown.lines.iter().map(|(label, value)| (label.clone(), plain(value))).collect()
}

fn line(shown: &Shown, topic: Topic) -> &str {
    &shown.lines.iter().find(|(label, _)| label == topic.title()).unwrap().1
}

#[test]
fn every_accepted_order_is_shown_as_our_summary_says() {
    let registry = registry();
    let wallet = wallet(&registry);
    let (mut calls, mut approvals, mut unlimited, mut messages, mut topics) = (0, 0, 0, 0, BTreeSet::new());
    each_order(&registry, |id, _, order| {
        let (deposit, summary) = (order.deposit(), order.summary());
        let mut said = Said::new(&summary);
        let delegated = deposit.terms.initiator.is_some();

        let shown = wallet.show_call(&initiate(deposit)).unwrap_or_else(|why| panic!("{id}: {why}"));
        assert_eq!(lines(&shown), said.lock(true, delegated), "{id}");
        assert_eq!(shown.intent, "Lock funds for a swap");
        let sentence = format!("Lock {} for {}", line(&shown, Topic::Send), line(&shown, Topic::Redeemer));
        assert_eq!(shown.sentence, Some(sentence), "{id}");
        calls += 1;

        if let Some(approval) = &deposit.approval {
            let call = Call {
                chain_id: deposit.chain_id,
                to: approval.call.to.to_string(),
                from: deposit.sender.to_string(),
                value: [0; 32],
                data: &approval.call.data,
            };
            let shown = wallet.show_call(&call).unwrap_or_else(|why| panic!("{id}: {why}"));
            assert_eq!(lines(&shown), said.approval(), "{id}");
            let sentence = format!("Let {} take {}", line(&shown, Topic::Contract), line(&shown, Topic::Approval));
            assert_eq!((shown.intent.as_str(), shown.sentence.as_ref()), ("Approve a swap contract", Some(&sentence)), "{id}");
            approvals += 1;
            unlimited += usize::from(approval.signed.amount == U256::MAX);
        } else {
            said.used.insert(Topic::Token);
        }

        if let Some(message) = &deposit.typed_data {
            let owner = deposit.sender.to_string();
            let shown = wallet.show_message(&message.to_json(), &owner).unwrap_or_else(|why| panic!("{id}: {why}"));
            assert_eq!(lines(&shown), said.lock(false, false), "{id}");
            let sentence = format!("Lock {} for {}", line(&shown, Topic::Send), line(&shown, Topic::Redeemer));
            assert_eq!(shown.sentence, Some(sentence), "{id}");
            messages += 1;
        }
        for line in summary.lines() {
            assert!(said.used.contains(&line.topic) || NOT_SHOWN.contains(&line.topic), "{id}: {line}");
        }
        topics.extend(said.used);
    });
    assert_eq!((calls, approvals, unlimited, messages), (112, 43, 16, 90), "the fixtures have changed");
    assert!(topics.contains(&Topic::DestinationData) && topics.contains(&Topic::Delegate) && topics.contains(&Topic::Approval));
}

/// Returns the labels whose values differ.
fn changed(one: &Shown, other: &Shown) -> Vec<String> {
    assert_eq!(one.lines.len(), other.lines.len());
    let pairs = one.lines.iter().zip(&other.lines);
    pairs.filter(|(one, other)| one != other).map(|(one, _)| one.0.clone()).collect()
}

#[test]
fn a_changed_argument_changes_its_line_and_no_other() {
    let registry = registry();
    let wallet = wallet(&registry);
    let mut forms = BTreeSet::new();
    each_order(&registry, |id, _, order| {
        let deposit = order.deposit();
        let data = deposit.initiate.data.clone();
        if !forms.insert(data[..4].to_vec()) {
            return;
        }
        let shown = wallet.show_call(&initiate(deposit)).unwrap();
        let owner = deposit.terms.initiator.map(|_| Topic::Owner);
        let arguments = owner.into_iter().chain([Topic::Redeemer, Topic::Timelock, Topic::Send, Topic::SecretHash]);
        for (index, topic) in arguments.enumerate() {
            let mut other = data.to_vec();
            other[4 + 32 * index + 31] ^= 1;
            let other = wallet.show_call(&Call { data: &other, ..initiate(deposit) }).unwrap();
            assert_eq!(changed(&shown, &other), [topic.title()], "{id}");
        }
        if deposit.terms.destination_data.as_ref().is_some_and(|data| !data.is_empty()) {
            let mut other = data.to_vec();
            let first = 4 + 32 * (6 + usize::from(owner.is_some()));
            other[first] ^= 1;
            let other = wallet.show_call(&Call { data: &other, ..initiate(deposit) }).unwrap();
            assert_eq!(changed(&shown, &other), [Topic::DestinationData.title()], "{id}");
        }
        if owner.is_some() {
            let from = format!("{:#x}", deposit.initiate.to);
            let other = wallet.show_call(&Call { from, ..initiate(deposit) }).unwrap();
            assert_eq!(changed(&shown, &other), [Topic::Delegate.title()], "{id}");
        }
    });
    assert_eq!(forms.len(), 4, "every form of the call");

    let (_, typed_data, owner) = message_of(&registry, "ethereum:usdt");
    let shown = wallet.show_message(&typed_data, &owner).unwrap();
    for (member, value, topic) in [
        ("redeemer", json!(owner), Topic::Redeemer),
        ("timelock", json!("7201"), Topic::Timelock),
        ("amount", json!("1"), Topic::Send),
        ("secretHash", json!(format!("0x{}", "77".repeat(32))), Topic::SecretHash),
    ] {
        let mut other = typed_data.clone();
        other["message"][member] = value;
        assert_eq!(changed(&shown, &wallet.show_message(&other, &owner).unwrap()), [topic.title()]);
    }
}

/// Returns the first message of an asset: its order's id, its typed data and its owner.
fn message_of(registry: &Registry, wanted: &str) -> (String, Value, String) {
    let mut found = None;
    each_order(registry, |id, asset, order| {
        if let (Some(message), true) = (&order.deposit().typed_data, found.is_none() && asset == wanted) {
            found = Some((id.to_owned(), message.to_json(), order.deposit().sender.to_string()));
        }
    });
    found.expect(wanted)
}

#[test]
fn what_is_not_pinned_is_not_shown() {
    let registry = registry();
    let wallet = wallet(&registry);
    let mut refused = 0;
    let mut refuse = |call: &Call<'_>| {
        let shown = wallet.show_call(call);
        assert!(shown.is_err(), "{shown:?}");
        refused += 1;
    };
    each_order(&registry, |id, _, order| {
        let Some(approval) = order.deposit().approval.as_ref().filter(|_| id == "evm-token-approval-exact") else { return };
        let call = initiate(order.deposit());
        let stranger = format!("0x{}", "11".repeat(20));
        refuse(&Call { to: stranger, ..call.clone() });
        refuse(&Call { chain_id: call.chain_id + 1, ..call.clone() });
        let mut other = call.data.to_vec();
        other[3] ^= 1;
        refuse(&Call { data: &other, ..call.clone() });
        // A spender that is not pinned for this token.
        let mut other = approval.call.data.to_vec();
        let call = Call { to: approval.call.to.to_string(), data: &approval.call.data, ..call };
        assert!(wallet.show_call(&call).is_ok());
        other[35] ^= 1;
        refuse(&Call { data: &other, ..call.clone() });
        // The token's other functions.
        let transfer = [&hex!("a9059cbb")[..], &approval.call.data[4..]].concat();
        refuse(&Call { data: &transfer, ..call });
    });
    assert_eq!(refused, 5);

    // The generation is pinned, and with it the domain's version and the message's members.
    let (_, typed_data, owner) = message_of(&registry, "ethereum:usdt");
    assert!(wallet.show_message(&typed_data, &owner).is_ok());
    for (member, value) in [("name", json!("HTLC2")), ("version", json!("2")), ("chainId", json!(5)), ("verifyingContract", json!(owner))] {
        let mut other = typed_data.clone();
        other["domain"][member] = value;
        assert!(wallet.show_message(&other, &owner).is_err(), "{member}");
    }
    let mut other = typed_data.clone();
    other["types"]["Initiate"].as_array_mut().unwrap().push(json!({ "name": "destinationData", "type": "bytes" }));
    other["message"]["destinationData"] = json!("0x00");
    assert!(wallet.show_message(&other, &owner).is_err());
}

#[test]
fn redemptions_and_refunds_are_shown() {
    let registry = registry();
    let wallet = wallet(&registry);
    let (swap_id, secret) = ([0xa1; 32], [0x5e; 32]);
    let mut shown = 0;
    for asset in registry.assets().into_iter().filter(|asset| asset.chain.record.id.starts_with("evm:")) {
        let chain_id = asset.chain.record.id.strip_prefix("evm:").unwrap().parse().unwrap();
        let to = asset.record.htlc.as_ref().unwrap().address.clone();
        let call = |data| wallet.show_call(&Call { chain_id, to: to.clone(), from: to.clone(), value: [0; 32], data }).unwrap();
        let (redeem, refund) = (call(&htlc::redeem(swap_id, &secret)), call(&htlc::refund(swap_id)));
        let id = hex::encode_prefixed(swap_id);
        assert_eq!((redeem.intent.as_str(), redeem.sentence.clone()), ("Redeem a swap", Some(format!("Redeem swap {id}"))));
        assert_eq!((refund.intent.as_str(), refund.sentence.clone()), ("Refund a swap", Some(format!("Refund swap {id}"))));
        let line = |label: &str, value: &str| (label.to_owned(), value.to_owned());
        let common = [line("swap id", &id), line("contract", &to.to_lowercase())];
        assert_eq!(lines(&refund), common);
        assert_eq!(lines(&redeem), [&common[..], &[line("secret", &hex::encode_prefixed(secret))]].concat());
        shown += 1;
    }
    assert_eq!(shown, 19);
}
