//! One endpoint of three lies about the gas price, about what a simulation spends or about coins: in any place and for any transaction, the
//! gas is that which the honest ones lead to.

use countersign::recover::Recovery;
use countersign::sui::Sui;
use countersign::sui::sui_sdk_types::GasPayment;
use countersign::{BroadcastTransaction, Family, Policy, Role, Unsigned, Verified};
use countersign_node::{NodeError, Nodes, Speed};
use countersign_testkit::key;

use crate::sui::fake::{Executed, Ledger, Network, case, digest_of};
use crate::sui::wallet::{honest as rich, order, recovery};

pub(crate) type Lie = fn(&mut Ledger);

const LIES: [(&str, Lie); 10] = [
    ("price 0", |ledger| ledger.gas_price = 0),
    ("price 1", |ledger| ledger.gas_price = 1),
    ("price 1,000,000", |ledger| ledger.gas_price = 1_000_000),
    ("the highest price", |ledger| ledger.gas_price = u64::MAX),
    ("no coins", |ledger| ledger.coins.clear()),
    ("fewer coins", |ledger| ledger.coins.truncate(1)),
    ("coins that do not exist", |ledger| {
        for coin in ledger.coins.iter_mut().flatten() {
            coin.version = coin.version.map(|version| version + 1);
        }
    }),
    ("the simulation fails", |ledger| {
        ledger.simulated = Ok(Executed { success: false, reason: Some("no"), ..Executed::new(digest_of(7)) })
    }),
    ("no balance", |ledger| ledger.balances.clear()),
    ("the simulation spends more", |ledger| {
        if let Ok(executed) = &mut ledger.simulated {
            executed.gas = [90_000_000, 0, 86_000_000];
        }
    }),
];

/// Three endpoints that show the same, but for one.
pub(crate) fn connected(honest: &Ledger, liar: Option<(usize, Lie)>) -> Nodes<Network> {
    let mut all = vec![honest.clone(), honest.clone(), honest.clone()];
    if let Some((place, lie)) = liar {
        lie(&mut all[place]);
    }
    Network::new(&all).connect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Payment,
    Redemption,
    Urgent,
    Replacement,
}

/// What the honest endpoints show: a simulation of the order, or the rehearsal of a redemption.
fn honest(stage: Stage) -> Ledger {
    match stage {
        Stage::Payment => rich(),
        _ => Ledger {
            simulated: Ok(Executed { success: false, reason: Some("no"), abort: Some(("AtomicSwap", 8)), ..Executed::new(digest_of(7)) }),
            ..rich()
        },
    }
}

async fn gas(nodes: &Nodes<Network>, stage: Stage, sent: Option<&BroadcastTransaction>) -> Result<GasPayment, NodeError> {
    let (redemption, policy) = (Recovery::Sui(recovery(Role::Redeem).0), Policy::default());
    let sender = order().deposit().sender.to_string();
    let unsigned = match stage {
        Stage::Payment => nodes.prepare(&Verified::Sui(order()), "sui_testnet", &sender, Speed::Normal, &policy).await?,
        Stage::Redemption => nodes.prepare_recovery(&redemption, "sui_testnet", &sender, Speed::Normal, &policy).await?,
        Stage::Urgent => nodes.prepare_urgent(&redemption, "sui_testnet", &sender, Speed::Fast, &policy).await?,
        Stage::Replacement => {
            let sent = sent.unwrap();
            let submission = nodes.submission("sui_testnet", &sent.id, &sent.payload)?;
            nodes.prepare_replacement(&redemption, "sui_testnet", &sender, &submission, Speed::Fast, &policy).await?
        }
    };
    let Unsigned::Sui(unsigned) = unsigned else { panic!("not of Sui") };
    Ok(unsigned.payloads().gas_payment.clone())
}

/// A redemption that was sent when the reference price was this one.
async fn sent(gas_price: u64) -> BroadcastTransaction {
    let nodes = connected(&Ledger { gas_price, ..honest(Stage::Redemption) }, None);
    let redemption = Recovery::Sui(recovery(Role::Redeem).0);
    let sender = order().deposit().sender.to_string();
    let prepared = nodes.prepare_recovery(&redemption, "sui_testnet", &sender, Speed::Normal, &Policy::default()).await.unwrap();
    let Unsigned::Sui(mut unsigned) = prepared else { panic!("not of Sui") };
    unsigned.sign(&key::<Sui>(&case(Family::Sui, "sui-native"))).unwrap();
    countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().remove(0)
}

#[tokio::test(start_paused = true)]
async fn gas_is_a_quorums_own_at_every_stage() {
    let kept = sent(547).await;
    for stage in [Stage::Payment, Stage::Redemption, Stage::Urgent, Stage::Replacement] {
        let expected = gas(&connected(&honest(stage), None), stage, Some(&kept)).await.unwrap();
        for (what, lie) in LIES {
            for place in 0..3 {
                let found = gas(&connected(&honest(stage), Some((place, lie))), stage, Some(&kept)).await;
                let found = found.unwrap_or_else(|error| panic!("{stage:?}, {what}, endpoint {place}: {error}"));
                assert_eq!((found.price, found.budget), (expected.price, expected.budget), "{stage:?}, {what}, endpoint {place}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_raised_price_ends_at_four_times_the_reference_price() {
    // At the fast speed, twice the reference price is paid at least.
    for (before, price) in [(547, 1_094), (1_500, 1_815), (10_000, 2_188)] {
        let kept = sent(before).await;
        let found = gas(&connected(&honest(Stage::Replacement), None), Stage::Replacement, Some(&kept)).await.unwrap();
        assert_eq!(found.price, price, "{before}");
    }
}

/// A liar that shows only the coins of the transaction that was sent does not make its replacement use them again.
#[tokio::test(start_paused = true)]
async fn hidden_coins_are_found_at_another_endpoint() {
    let kept = sent(547).await;
    for place in 0..3 {
        let nodes = connected(&honest(Stage::Replacement), Some((place, |ledger| ledger.coins.truncate(1))));
        let found = gas(&nodes, Stage::Replacement, Some(&kept)).await.unwrap();
        let coins: Vec<u8> = found.objects.iter().map(|coin| coin.object_id().as_bytes()[0]).collect();
        assert_eq!(coins, [0x23], "{place}");
    }
}
