//! Replacing a redemption, and redeeming while the secret is out.

use countersign::solana::PriorityFee;
use countersign::{Policy, Unsigned};
use countersign_node::Speed;
use countersign_testkit::chain::solana::swap_of;
use serde_json::json;

use crate::solana::fake::{FORMS, nodes, terms};
use crate::solana::wallet::{recover_on, recovery, settled, stranger};

/// A blockhash is valid for about half a minute. A transaction that was not mined is signed again, with a new one and a higher price.
#[tokio::test(start_paused = true)]
async fn a_recovery_that_is_not_mined_is_replaced() {
    let form = FORMS[2];
    let chain = |price: u64, lamports: u64| {
        let mut chain = settled(form, lamports);
        chain.fees = vec![price; 150];
        chain
    };
    let recovery = recovery(form, true);
    let (unsigned, _) = recover_on(chain(1_001, 1_000_000_000), form, &recovery).await.unwrap();
    let Unsigned::Solana(mut unsigned) = unsigned else { panic!("a recovery on Solana") };
    unsigned.sign(&stranger()).unwrap();
    let [sent] = countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().try_into().unwrap();
    for (price, expected) in [(0, 1_102), (1_101, 1_102), (5_000, 5_000)] {
        let nodes = nodes(chain(price, 1_000_000_000), 1, form);
        let sender = stranger().address().to_string();
        let sent = nodes.submission("solana_testnet", &sent.id, &sent.payload).unwrap();
        let replaced = nodes.prepare_replacement(&recovery, "solana_testnet", &sender, &sent, Speed::Normal, &Policy::default()).await;
        let Unsigned::Solana(replaced) = replaced.unwrap() else { panic!("a recovery on Solana") };
        let message = &replaced.payloads().transaction.as_ref().unwrap().transaction().message;
        assert_eq!(PriorityFee::from_message(message).map(|fee| fee.compute_unit_price), Some(expected));
    }
    // Once the swap has ended there is nothing to replace.
    let (htlc, swap) = swap_of(&terms(form).destination);
    let mut ended = chain(0, 1_000_000_000);
    ended.accounts.remove(&htlc.swap_account(&swap).unwrap());
    assert_eq!(recover_on(ended, form, &recovery).await.unwrap_err().code().name(), "simulation_reverted");
}

#[tokio::test(start_paused = true)]
async fn once_the_secret_is_out_the_limit_of_the_policy_is_paid_and_said() {
    let form = FORMS[2];
    let mut chain = settled(form, 1_000_000_000);
    chain.fees = vec![5_000; 150];
    let nodes = nodes(chain, 1, form);
    let (recovery, sender) = (recovery(form, true), stranger().address().to_string());
    let policy = |price: u64| Policy::from_json(json!({ "solana_compute_unit_price": price }).to_string().as_bytes()).unwrap();
    let first = nodes.prepare_recovery(&recovery, "solana_testnet", &sender, Speed::Normal, &policy(4_000)).await.unwrap_err();
    assert_eq!(first.code().name(), "gas_limit_too_high");
    for (limit, price, is_said) in [(4_000, 4_000, true), (5_000, 5_000, false)] {
        let urgent = nodes.prepare_urgent(&recovery, "solana_testnet", &sender, Speed::Normal, &policy(limit)).await.unwrap();
        let said = urgent.warnings().list().iter().any(|warning| warning.to_string().contains("so it pays that limit"));
        let Unsigned::Solana(urgent) = urgent else { panic!("a recovery on Solana") };
        let message = &urgent.payloads().transaction.as_ref().unwrap().transaction().message;
        let offered = PriorityFee::from_message(message).map(|fee| fee.compute_unit_price);
        assert_eq!((offered, said), (Some(price), is_said), "{limit}");
    }
}
