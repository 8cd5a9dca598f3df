//! Coins: those from which a deposit of a coin other than SUI is split, and those that pay the gas.

use crate::support;

use countersign_core::{Code, Policy, Refusal};
use countersign_sui::Sui;
use countersign_sui::htlc::{InputRole, PtbLayout};
use countersign_sui::sui_sdk_types::{
    Address, Argument, Command, Digest, Input, MergeCoins, ObjectReference, ProgrammableTransaction, TransactionKind,
};
use countersign_testkit::{TestResult, asset_index, fixture, registry, registry_with, with_verified};
use serde_json::{Value as Json, json};
use support::{coin, outside};

fn token_registry(coin_type: &Json) -> countersign_core::Registry {
    let token = format!("/assets/{}/token", asset_index("sui_testnet:sui"));
    registry_with(&[(&token, json!({ "address": coin_type }))])
}

fn layout(line: &Json, coin_type: &Json) -> Result<PtbLayout, Refusal> {
    with_verified::<Sui, _>(line.to_string().as_bytes(), &token_registry(coin_type), &Policy::default(), |verified, _| {
        assert_eq!(
            bcs::to_bytes(verified.deposit().kind.as_ref()).expect("encodes"),
            serde_json::from_value::<Vec<u8>>(line["response"]["result"]["ptb_bytes"].clone()).expect("bytes")
        );
        let lines = serde_json::to_string(&verified.summary()).expect("JSON");
        for role in &verified.deposit().layout.roles {
            if let InputRole::Coin(coin) = role {
                assert!(lines.contains(&coin.object_id().to_string()) && lines.contains(&coin.digest().to_string()), "{lines}");
            }
        }
        Ok(verified.deposit().layout.clone())
    })
}

#[test]
fn other_coins_are_merged_and_split() -> TestResult {
    let outside = outside();
    let tokens = &outside["tokens"];
    for (case, merged) in tokens["cases"].as_array().into_iter().flatten().zip([0, 1, 4]) {
        let coins = layout(&case["line"], &tokens["coin_type"])?.coins.ok_or("split from the gas coin")?;
        assert_eq!(coins.merged.len(), merged);
    }
    Ok(())
}

/// Changes a token deposit, encodes it again, and expects a refusal.
fn refused(number: usize, change: impl FnOnce(&mut ProgrammableTransaction)) -> Refusal {
    let outside = outside();
    let tokens = &outside["tokens"];
    let mut line = tokens["cases"][number]["line"].clone();
    let bytes = &mut line["response"]["result"]["ptb_bytes"];
    let kind = bcs::from_bytes(&serde_json::from_value::<Vec<u8>>(bytes.clone()).expect("bytes")).expect("a kind");
    let TransactionKind::ProgrammableTransaction(mut transaction) = kind else { panic!("another kind") };
    change(&mut transaction);
    *bytes = json!(bcs::to_bytes(&TransactionKind::ProgrammableTransaction(transaction)).expect("encodes"));
    layout(&line, &tokens["coin_type"]).expect_err("a changed deposit")
}

#[test]
fn a_coin_that_does_not_belong_there_is_refused() {
    let split_gas = refused(0, |transaction| {
        if let Command::SplitCoins(split) = &mut transaction.commands[0] {
            split.coin = Argument::Gas;
        }
    });
    assert_eq!(split_gas.code(), Code::UnexpectedArgument, "{split_gas}");

    let merge_gas = refused(1, |transaction| {
        if let Command::MergeCoins(merge) = &mut transaction.commands[0] {
            merge.coins_to_merge = vec![Argument::Gas];
        }
    });
    assert_eq!(merge_gas.code(), Code::UnexpectedArgument, "{merge_gas}");

    let merges_nothing = refused(1, |transaction| {
        if let Command::MergeCoins(merge) = &mut transaction.commands[0] {
            merge.coins_to_merge.clear();
        }
    });
    assert_eq!(merges_nothing.code(), Code::UnexpectedArgument, "{merges_nothing}");

    let merges_elsewhere = refused(2, |transaction| {
        if let Command::MergeCoins(merge) = &mut transaction.commands[0] {
            (merge.coin, merge.coins_to_merge[0]) = (merge.coins_to_merge[0], merge.coin);
        }
    });
    assert_eq!(merges_elsewhere.code(), Code::UnexpectedArgument, "{merges_elsewhere}");

    let twice = refused(1, |transaction| {
        if let Command::MergeCoins(merge) = &mut transaction.commands[0] {
            merge.coins_to_merge.push(merge.coins_to_merge[0]);
        }
    });
    assert_eq!(twice.code(), Code::UnexpectedInput, "{twice}");

    let unused = refused(2, |transaction| {
        if let Command::MergeCoins(merge) = &mut transaction.commands[0] {
            merge.coins_to_merge.pop();
        }
    });
    assert_eq!(unused.code(), Code::UnexpectedInput, "{unused}");

    let merged_after = refused(1, |transaction| transaction.commands.swap(0, 1));
    assert_eq!(merged_after.code(), Code::UnexpectedCommand, "{merged_after}");

    let merged_again = refused(1, |transaction| {
        let again = MergeCoins { coin: Argument::Input(0), coins_to_merge: vec![Argument::Input(1)] };
        transaction.commands.insert(1, Command::MergeCoins(again));
    });
    assert_eq!(merged_again.code(), Code::UnexpectedCommand, "{merged_again}");

    let pure = refused(0, |transaction| {
        let coin = transaction.inputs.iter_mut().find(|input| matches!(input, Input::ImmutableOrOwned(_)));
        *coin.expect("a coin") = Input::Pure(vec![1; 32]);
    });
    assert_eq!(pure.code(), Code::UnexpectedInput, "{pure}");

    for what in ["orders registry", "clock"] {
        let in_two_roles = refused(0, |transaction| {
            let clock = |id| id == Address::from_static("0x6");
            let shared = transaction.inputs.iter().find_map(|input| match input {
                Input::Shared(shared) if clock(shared.object_id()) == (what == "clock") => Some(shared.object_id()),
                _ => None,
            });
            let coin = transaction.inputs.iter_mut().find(|input| matches!(input, Input::ImmutableOrOwned(_)));
            *coin.expect("a coin") = Input::ImmutableOrOwned(ObjectReference::new(shared.expect("an object"), 1, Digest::new([1; 32])));
        });
        assert_eq!(in_two_roles.code(), Code::UnexpectedInput, "{in_two_roles}");
        assert!(in_two_roles.to_string().contains(&format!("coin and the {what}")), "{in_two_roles}");
    }
}

#[test]
fn a_pinned_version_that_is_not_a_number_is_refused() {
    let version = format!("/assets/{}/htlc/registry_initial_shared_version", asset_index("sui_testnet:sui"));
    let registry = registry_with(&[(&version, json!("latest"))]);
    let case = fixture::<Sui>("sui-native");
    let refusal = with_verified::<Sui, _>(case.input.as_bytes(), &registry, &Policy::default(), |_, _| Ok(())).expect_err("not a number");
    assert_eq!((refusal.code(), refusal.location()), (Code::RegistryMalformed, "/request/source/asset"));
}

#[test]
fn a_version_that_is_not_pinned_is_taken_and_shown_with_a_warning() -> TestResult {
    let version = format!("/assets/{}/htlc/registry_initial_shared_version", asset_index("sui_testnet:sui"));
    let registry = registry_with(&[(&version, Json::Null)]);
    let case = fixture::<Sui>("sui-native");
    let lines = with_verified::<Sui, _>(case.input.as_bytes(), &registry, &Policy::default(), |verified, _| {
        assert!(verified.warnings().list().iter().any(|warning| warning.code() == Code::UnpinnedRegistryVersion));
        Ok(serde_json::to_string(&verified.summary()))
    })??;
    assert!(lines.contains("shared since version 117440512"), "{lines}");
    Ok(())
}

#[test]
fn another_coin_type_is_refused() {
    let outside = outside();
    let line = &outside["tokens"]["cases"][0]["line"];
    let refusal = layout(line, &json!("0x2::sui::SUI")).expect_err("SUI is split from the gas coin");
    assert_eq!(refusal.code(), Code::UnexpectedArgument, "{refusal}");
    let refusal = layout(line, &json!("0x3::usdc::USDC")).expect_err("another coin");
    assert_eq!(refusal.code(), Code::CoinTypeMismatch, "{refusal}");
    let refusal = layout(line, &json!("USDC")).expect_err("no type");
    assert_eq!(refusal.code(), Code::RegistryMalformed, "{refusal}");
}

#[test]
fn an_external_wallet_gets_the_kind_and_the_gas_coins_that_the_deposit_needs() -> TestResult {
    let outside = outside();
    let (native, tokens) = (fixture::<Sui>("sui-native").json(), &outside["tokens"]);
    for (line, registry, is_native) in
        [(&native, registry(), true), (&tokens["cases"][0]["line"], &token_registry(&tokens["coin_type"]), false)]
    {
        with_verified::<Sui, _>(line.to_string().as_bytes(), registry, &Policy::default(), |verified, _| {
            let deposit = verified.deposit();
            assert_eq!(json!(deposit.kind_bytes()), line["response"]["result"]["ptb_bytes"]);
            let split = if is_native { deposit.terms.amount } else { 0 };
            assert_eq!(deposit.split_from_gas(), split);
            let coins = [coin(1, split), coin(2, 49), coin(3, 50)];
            // Largest first; then what could not pay the budget alone, smallest first.
            let chosen = if is_native { [1, 3, 2] } else { [3, 1, 2] };
            assert_eq!(deposit.choose_gas(&coins, 50)?, chosen.map(|id| coin(id, 0).reference));
            let refusal = deposit.choose_gas(&coins[..1], 50).expect_err("nothing is left for gas");
            assert_eq!((refusal.code(), refusal.location()), (Code::InsufficientFunds, "/gas_payment"));
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_kind_that_is_too_long_is_refused_before_it_is_decoded() {
    const MAX: usize = 128 * 1024;
    let reason = |length: usize| {
        let mut line = fixture::<Sui>("sui-native").json();
        line["response"]["result"]["ptb_bytes"] = json!(vec![0; length]);
        let refused = with_verified::<Sui, _>(line.to_string().as_bytes(), registry(), &Policy::default(), |_, _| Ok(()));
        refused.expect_err("no kind").to_string()
    };
    let limit = format!("at most {MAX} bytes");
    assert!(reason(MAX + 1).contains(&limit), "{}", reason(MAX + 1));
    assert!(!reason(MAX).contains(&limit), "{}", reason(MAX));
}
