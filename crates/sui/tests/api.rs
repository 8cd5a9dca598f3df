//! The public surface: states cross threads, and native types come with the crate.

use countersign_core::{Proposed, Signed, Unsigned, Verified};
use countersign_sui::{Artefacts, Coin, Deposit, Execution, Key, Sui, Wallet};

const fn crosses_threads<T: Send + Sync>() {}

#[test]
fn states_and_keys_cross_threads() {
    crosses_threads::<Proposed<'_, Sui>>();
    crosses_threads::<Verified<Sui>>();
    crosses_threads::<Unsigned<Sui>>();
    crosses_threads::<Signed<Sui>>();
    crosses_threads::<(Artefacts, Coin, Deposit, Execution, Key, Wallet)>();
}

#[test]
fn the_gasless_way_is_refused_in_words() {
    let refusal = countersign_sui::message::gasless("/response/result");
    assert_eq!(refusal.code().name(), "nothing_to_sign");
    assert!(refusal.message().starts_with("Sui has no gasless way"), "{refusal}");
}
