#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

use countersign_core::{Code, Refusal};
use proptest::prelude::*;
use sui_sdk_types::{Address, Digest, ObjectReference};

use super::{Coin, MAX_GAS_COINS, choose_gas};
use crate::balance::choose_coins;

fn coin(id: u16, balance: u64) -> Coin {
    let mut bytes = [0; 32];
    bytes[30..].copy_from_slice(&id.to_be_bytes());
    Coin::new(ObjectReference::new(Address::new(bytes), 1, Digest::new(bytes)), balance)
}

fn ids(chosen: &[ObjectReference]) -> Vec<u8> {
    chosen.iter().map(|coin| coin.object_id().inner()[31]).collect()
}

#[test]
fn the_largest_coins_cover_and_dust_is_swept() -> Result<(), Refusal> {
    let coins = [coin(1, 10), coin(2, 500), coin(3, 3), coin(4, 700), coin(5, 100), coin(6, 700)];
    assert_eq!(ids(&choose_gas(&coins, 1_000, 50)?), [4, 6, 3, 1], "5 could pay by itself");
    assert_eq!(ids(&choose_gas(&coins, 0, 50)?), [4, 3, 1]);
    assert_eq!(ids(&choose_gas(&[coin(1, 0)], 0, 0)?), [1], "even nothing is paid by a coin");
    assert_eq!(ids(&choose_gas(&[coin(1, u64::MAX), coin(2, u64::MAX)], u64::MAX, u64::MAX)?), [1, 2]);
    assert_eq!(ids(&choose_gas(&[coin(1, 5), coin(1, 5), coin(2, 1)], 5, 1)?), [1, 2], "a coin listed twice is one");
    for (coins, split, budget) in [(&coins[..], 2_000, 50), (&[], 0, 0)] {
        let refusal = choose_gas(coins, split, budget).expect_err("too little");
        assert_eq!((refusal.code(), refusal.location()), (Code::InsufficientFunds, "/gas_payment"));
    }
    let many: Vec<_> = (0..300).map(|id| coin(id, 1)).collect();
    assert_eq!(choose_gas(&many, 100, 156)?.len(), MAX_GAS_COINS);
    assert_eq!(choose_gas(&many, 100, 157).expect_err("more coins than fit").code(), Code::InsufficientFunds);
    assert_eq!(choose_gas(&many, 0, 2)?.len(), MAX_GAS_COINS);
    Ok(())
}

#[test]
fn coins_beside_a_reservation_leave_a_place_for_it() -> Result<(), Refusal> {
    let chosen = |coins: &[Coin], missing| choose_coins(coins, missing).map(|chosen| chosen.len());
    assert_eq!(chosen(&[coin(1, 10), coin(2, 500), coin(3, 3)], 501)?, 2);
    assert_eq!(chosen(&[coin(1, 5), coin(1, 5), coin(2, 1)], 6)?, 2, "a coin listed twice is one");
    assert_eq!(chosen(&[coin(1, 5), coin(1, 5)], 6).expect_err("too little").code(), Code::InsufficientFunds);
    let many: Vec<_> = (0..300).map(|id| coin(id, 1)).collect();
    assert_eq!(chosen(&many, 255)?, MAX_GAS_COINS - 1);
    assert_eq!(chosen(&many, 256).expect_err("more coins than fit").code(), Code::InsufficientFunds);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_choice_covers_and_does_not_depend_on_order(
        balances in proptest::collection::vec(0..1_000_u64, 1..300),
        split in 0..50_000_u64,
        budget in 1..2_000_u64,
        seed in any::<u64>(),
    ) {
        let coins: Vec<_> = balances.iter().enumerate().map(|(id, balance)| coin(u16::try_from(id).unwrap_or(0), *balance)).collect();
        let mut shuffled = coins.clone();
        for index in (1..shuffled.len()).rev() {
            shuffled.swap(index, usize::try_from(seed.rotate_left(u32::try_from(index).unwrap_or(0)) % 1_000).unwrap_or(0) % (index + 1));
        }
        let chosen = choose_gas(&coins, split, budget);
        prop_assert_eq!(&chosen, &choose_gas(&shuffled, split, budget));
        if let Ok(chosen) = chosen {
            let held: u64 = chosen.iter().map(|reference| coins.iter().find(|coin| coin.reference == *reference).map_or(0, |coin| coin.balance)).sum();
            prop_assert!(held >= split + budget && chosen.len() <= MAX_GAS_COINS);
            let mut distinct = chosen.clone();
            distinct.sort_by_key(|coin| *coin.object_id());
            distinct.dedup();
            prop_assert_eq!(distinct.len(), chosen.len());
        }
    }
}
