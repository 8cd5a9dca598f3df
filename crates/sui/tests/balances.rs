//! Address balances: withdrawals that the SDK made, payments without coins, and what the chain would not accept.

use crate::support;

use countersign_core::{Code, Policy, Refusal};
use countersign_sui::balance::{ValidDuring, reservation, reserved};
use countersign_sui::htlc::InputRole;
use countersign_sui::sui_sdk_types::{
    Address, Argument, Command, Digest, FundsWithdrawal, Input, MergeCoins, ProgrammableTransaction, TransactionExpiration,
    TransactionKind, WithdrawFrom,
};
use countersign_sui::{Sui, TxContext, UnsignedOrder, VerifiedOrder};
use countersign_testkit::{TestResult, asset_index, fixture, outcome, registry_with, verified, with_verified};
use serde_json::{Value as Json, json};
use support::{coin, outside};

/// A deposit of a token that the SDK takes from the address balance, and from this many coins.
fn funds(number: usize) -> Json {
    outside()["funds"]["cases"][number]["line"].clone()
}

fn verify(line: &Json) -> Result<VerifiedOrder, Refusal> {
    let token = format!("/assets/{}/token", asset_index("sui_testnet:sui"));
    let registry = registry_with(&[(&token, json!({ "address": outside()["funds"]["coin_type"] }))]);
    with_verified::<Sui, _>(line.to_string().as_bytes(), &registry, &Policy::default(), |order, _| Ok(order))
}

fn lines(summary: impl serde::Serialize) -> String {
    serde_json::to_string(&summary).unwrap()
}

#[test]
fn what_the_sdk_takes_from_coins_and_the_balance_is_rebuilt() -> TestResult {
    let amount = 3_000_000_000;
    for (number, merged, withdrawn) in [(0, None, amount), (1, Some(0), amount - amount / 9), (2, Some(2), amount - 3 * (amount / 9))] {
        let line = funds(number);
        let order = verify(&line)?;
        let deposit = order.deposit();
        assert_eq!(json!(bcs::to_bytes(deposit.kind.as_ref())?), line["response"]["result"]["ptb_bytes"], "{number}");
        assert_eq!((deposit.withdrawn(), deposit.split_from_gas()), (withdrawn, 0));
        assert_eq!(deposit.layout.coins.as_ref().map(|coins| coins.merged.len()), merged);
        let text = lines(order.summary());
        assert!(text.contains(&format!("{withdrawn} base units are withdrawn from the address balance of {}", deposit.sender)), "{text}");
        assert!(text.contains("what is left of the coin goes to the sender's address balance"), "{text}");
    }
    Ok(())
}

/// Changes a deposit, encodes it again, and expects a refusal.
fn refused(number: usize, change: impl FnOnce(&mut ProgrammableTransaction)) -> Refusal {
    let mut line = funds(number);
    let bytes = &mut line["response"]["result"]["ptb_bytes"];
    let kind = bcs::from_bytes(&serde_json::from_value::<Vec<u8>>(bytes.clone()).unwrap()).unwrap();
    let TransactionKind::ProgrammableTransaction(mut transaction) = kind else { panic!("another kind") };
    change(&mut transaction);
    *bytes = json!(bcs::to_bytes(&TransactionKind::ProgrammableTransaction(transaction)).unwrap());
    verify(&line).expect_err("a changed deposit")
}

fn withdrawal(transaction: &mut ProgrammableTransaction) -> &mut FundsWithdrawal {
    let found = transaction.inputs.iter_mut().find_map(|input| if let Input::FundsWithdrawal(found) = input { Some(found) } else { None });
    found.expect("a withdrawal")
}

#[test]
fn a_withdrawal_is_the_senders_of_the_coin_and_of_no_more_than_the_amount() {
    let with = |number, amount: u64, coin: Option<&str>, source| {
        refused(number, |transaction| {
            let found = withdrawal(transaction);
            let coin = coin.map_or_else(|| found.coin_type().clone(), |coin| coin.parse().unwrap());
            *found = FundsWithdrawal::new(amount, coin, source);
        })
    };
    let allowance = WithdrawFrom::SenderAllowance { funder: Address::new([7; 32]), allowance: Address::new([8; 32]) };
    for (number, amount, coin, source, code) in [
        (0, 3_000_000_001, None, WithdrawFrom::Sender, Code::AmountMismatch),
        (0, 2_999_999_999, None, WithdrawFrom::Sender, Code::AmountMismatch),
        (1, 3_000_000_001, None, WithdrawFrom::Sender, Code::AmountMismatch),
        (2, 0, None, WithdrawFrom::Sender, Code::AmountMismatch),
        (2, 1, Some("0x2::sui::SUI"), WithdrawFrom::Sender, Code::CoinTypeMismatch),
        (2, 1, None, WithdrawFrom::Sponsor, Code::UnexpectedInput),
        (2, 1, None, allowance, Code::UnexpectedInput),
    ] {
        let refusal = with(number, amount, coin, source);
        assert_eq!(refusal.code(), code, "{refusal}");
    }
}

#[test]
fn every_other_use_of_a_withdrawal_is_refused() {
    let call = |transaction: &mut ProgrammableTransaction, index: usize, change: &dyn Fn(&mut countersign_sui::sui_sdk_types::MoveCall)| {
        let Command::MoveCall(call) = &mut transaction.commands[index] else { panic!("a call") };
        change(call);
    };
    let merge = |transaction: &mut ProgrammableTransaction, change: &dyn Fn(&mut MergeCoins)| {
        let Command::MergeCoins(merge) = &mut transaction.commands[1] else { panic!("a merge") };
        change(merge);
    };
    type Change<'c> = Box<dyn Fn(&mut ProgrammableTransaction) + 'c>;
    let cases: Vec<(usize, &str, Change<'_>)> = vec![
        (2, "unexpected_argument", Box::new(|t| merge(t, &|merge| merge.coins_to_merge.truncate(2)))),
        (2, "unexpected_argument", Box::new(|t| merge(t, &|merge| merge.coins_to_merge.clear()))),
        (2, "unexpected_argument", Box::new(|t| merge(t, &|merge| merge.coins_to_merge.rotate_right(1)))),
        (2, "unexpected_argument", Box::new(|t| merge(t, &|merge| merge.coin = Argument::Gas))),
        (2, "unexpected_command", Box::new(|t| t.commands.swap(0, 1))),
        (2, "unexpected_command", Box::new(|t| t.commands.insert(1, t.commands[0].clone()))),
        (2, "unexpected_command", Box::new(|t| t.commands.insert(4, t.commands[3].clone()))),
        // Without the rest sent back, what is left stays in the owner's coin, but then its account is not used.
        (2, "unexpected_input", Box::new(|t| drop(t.commands.remove(3)))),
        (0, "unexpected_command", Box::new(|t| drop(t.commands.remove(2)))),
        (2, "coin_type_mismatch", Box::new(|t| call(t, 0, &|call| call.type_arguments.clear()))),
        (2, "coin_type_mismatch", Box::new(|t| call(t, 3, &|call| call.type_arguments[0] = "0x2::sui::SUI".parse().unwrap()))),
        (2, "unexpected_argument", Box::new(|t| call(t, 0, &|call| call.arguments.push(Argument::Gas)))),
        (2, "unexpected_argument", Box::new(|t| call(t, 3, &|call| call.arguments[0] = Argument::Result(0)))),
        (2, "unexpected_argument", Box::new(|t| call(t, 3, &|call| call.arguments[0] = Argument::Result(2)))),
        (0, "unexpected_argument", Box::new(|t| call(t, 3, &|call| call.arguments[7] = Argument::Result(0)))),
        (2, "unexpected_input", Box::new(|t| call(t, 3, &|call| call.arguments[1] = Argument::Input(0)))),
        (2, "unexpected_input", Box::new(|t| call(t, 0, &|call| call.arguments[0] = Argument::Input(0)))),
    ];
    for (number, code, change) in cases {
        let refusal = refused(number, change);
        assert_eq!(refusal.code().name(), code, "{refusal}");
    }
}

#[test]
fn a_reservation_is_no_coin_of_the_kind() {
    let refusal = refused(2, |transaction| {
        let coin = transaction.inputs.iter_mut().find(|input| matches!(input, Input::ImmutableOrOwned(_)));
        *coin.unwrap() = Input::ImmutableOrOwned(reservation(Address::new([1; 32]), 5, 900, Digest::new([7; 32])).unwrap());
    });
    assert_eq!(refusal.code(), Code::UnexpectedInput, "{refusal}");
    assert!(refusal.to_string().contains("a reservation of an address balance"), "{refusal}");
}

// ---- payments

fn during() -> ValidDuring {
    ValidDuring::from_epoch(900, Digest::from_base58("69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD").unwrap(), 42)
}

fn prepared(id: &str, gas: TxContext) -> Result<UnsignedOrder, Refusal> {
    verified::<Sui>(&fixture::<Sui>(id)).prepare(gas)
}

#[test]
fn the_payment_follows_from_the_kind_and_is_shown() -> TestResult {
    let unsigned = prepared("sui-native", TxContext::from_balance(1_000, 10_000_000, during()))?;
    let [one] = unsigned.payloads().gas_payment.objects.as_slice() else { panic!("one reservation") };
    assert_eq!(reserved(one), Some((3_010_000_000, 900)), "the amount and the budget");
    let text = lines(unsigned.summary());
    assert!(text.contains("up to 3.01 SUI of the sender's address balance, reserved in epoch 900"), "{text}");
    assert!(text.contains("expires after epoch 901, valid from epoch 900, only on the network with genesis 69WiPg3D"), "{text}");

    let unsigned = prepared("sui-balance-redeemed", TxContext::from_balance(1_000, 10_000_000, during()))?;
    assert!(unsigned.payloads().gas_payment.objects.is_empty());
    assert!(matches!(unsigned.payloads().expiration, TransactionExpiration::ValidDuring { nonce: 42, .. }));
    let text = lines(unsigned.summary());
    assert!(text.contains("gas from the address balance: no coin object is used"), "{text}");
    // Coins beside a reservation, as the SDK lists them.
    let owner = unsigned.payloads().sender;
    let both = vec![reservation(owner, 5, 900, during().chain)?, coin(3, 0).reference];
    let gas = TxContext::new(1_000, 10_000_000, both.clone()).with_valid_during(during());
    assert_eq!(prepared("sui-balance-redeemed", gas)?.payloads().gas_payment.objects, both);
    Ok(())
}

#[test]
fn no_payment_without_what_keeps_it_from_being_executed_twice() {
    let refusal = prepared("sui-balance-redeemed", TxContext::new(1_000, 10_000_000, vec![])).expect_err("no validity");
    assert_eq!((refusal.code(), refusal.location()), (Code::GasCoinCount, "/gas_payment"));
    assert!(refusal.remedy().contains("valid_during"), "{refusal}");
    // On networks without a pinned identity, the chain is the wallet's to know.
    let main = ValidDuring::from_epoch(900, Digest::from_base58("4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S").unwrap(), 42);
    let refusal = prepared("sui-native", TxContext::from_balance(1_000, 10_000_000, main)).expect_err("another network");
    assert_eq!((refusal.code(), refusal.location()), (Code::WalletChainMismatch, "/valid_during/chain"));
}

/// A node refuses a redemption whose reservation is not valid, after it has seen the secret.
#[test]
fn a_reservation_is_valid_in_every_epoch_in_which_the_transaction_is() {
    let case = fixture::<Sui>("sui-balance-redeemed");
    let owner = verified::<Sui>(&case).deposit().sender;
    for (last, epoch, is_valid) in
        [(901, 900, true), (901, 899, false), (901, 901, false), (900, 900, true), (900, 899, true), (900, 898, false), (900, 901, false)]
    {
        let valid = during().until(last);
        let gas = vec![reservation(owner, 5, epoch, valid.chain).unwrap(), coin(3, 0).reference];
        let refusal = prepared("sui-balance-redeemed", TxContext::new(1_000, 10_000_000, gas).with_valid_during(valid)).err();
        assert_eq!(refusal.is_none(), is_valid, "900 to {last}, {epoch}");
        if let Some(refusal) = refusal {
            assert_eq!((refusal.code(), refusal.location()), (Code::AddressBalancePayment, "/gas_payment/0"));
            assert!(refusal.to_string().ends_with(&format!("expected 900; got {epoch}")), "{refusal}");
        }
    }
}

#[test]
fn transactions_of_external_wallets_match_whatever_pays() -> TestResult {
    for id in ["sui-balance", "sui-balance-redeemed-gas", "sui-balance-intent-gas"] {
        let case = fixture::<Sui>(id);
        let mut unsigned = verified::<Sui>(&case).prepare(countersign_testkit::wallet::<Sui>(&case))?;
        unsigned.sign(&countersign_testkit::key::<Sui>(&case))?;
        let transaction = unsigned.finish()?.transactions().swap_remove(0).native;
        assert!(verified::<Sui>(&case).matches(&transaction).is_ok(), "{id}");
    }
    Ok(())
}

#[test]
fn every_byte_of_a_withdrawal_is_covered() {
    for id in ["sui-balance-redeemed", "sui-balance-intent"] {
        let covered = outcome::<Sui>(&fixture::<Sui>(id)).expect(id);
        assert!(covered["summary"].to_string().contains("withdrawn from the address balance"), "{covered}");
        let order = verified::<Sui>(&fixture::<Sui>(id));
        let roles = &order.deposit().layout.roles;
        assert!(roles.contains(&InputRole::Withdrawal(3_000_000_000)), "{roles:?}");
    }
}
