//! What a transaction needs: nonce, fees and balances.

use countersign_core::reader::{Agree, Fault, Known, Observation, Request};
use countersign_starknet::reader::{Amount, AmountQuery, Context, Costs, HeadQuery, NewestBlock, STRK, Sender, chain_id, execution};
use countersign_starknet::{Felt, felt};
use countersign_testkit::chain::starknet::{Chain, LATEST, chain_of, halves};
use serde_json::json;

use crate::reader::lies::lies;
use crate::reader::{USUAL, destination, drive, error, lying};

fn chain_id_of(chain: &Chain) -> Felt {
    felt::from_short_string(chain.chain_id).unwrap()
}

fn costs(chain: &Chain, sender: &Sender) -> Result<Costs, Fault> {
    drive::<Context>(sender, &Known::default(), |_, _, request| chain.answer(request)).outcome.map(Observation::into_output)
}

/// The chain at other prices.
pub(crate) fn at_prices(l1_gas: u64, l2_gas: u64) -> Chain {
    let mut block = chain_of(USUAL).block(LATEST);
    block["l1_gas_price"]["price_in_fri"] = json!(format!("{l1_gas:#x}"));
    block["l2_gas_price"]["price_in_fri"] = json!(format!("{l2_gas:#x}"));
    lying(chain_of(USUAL), "starknet_getBlockWithTxHashes", |_| true, block)
}

/// Each amount and each price is the median of its own, whatever the transaction is; of two prices the higher one where a secret becomes public.
#[test]
fn each_bound_is_the_quorums_own() {
    let sender = |calls| Sender { chain_id: chain_id(&destination(USUAL).network).unwrap(), address: Felt::from(5), calls };
    let prices = |sender: &Sender, makes_public: bool, all: &[(u64, u64)]| {
        let all: Vec<_> = all.iter().map(|(l1_gas, l2_gas)| costs(&at_prices(*l1_gas, *l2_gas), sender).unwrap()).collect();
        let bounds = execution(sender, &all.iter().collect::<Vec<_>>(), 10, makes_public).unwrap().resource_bounds;
        (bounds.l1_gas.max_price_per_unit, bounds.l2_gas.max_price_per_unit)
    };
    let (funding, redemption) = (sender(Some(Vec::new())), sender(None));
    for (all, expected) in [
        (&[(10, 30)][..], (10, 30)),
        (&[(10, 30), (20, 40), (1, 50)], (10, 40)),
        (&[(10, 30), (u64::MAX, u64::MAX), (20, 40)], (20, 40)),
        (&[(0, u64::MAX), (10, 30), (20, 40)], (10, 40)),
    ] {
        assert_eq!((prices(&funding, false, all), prices(&redemption, true, all)), (expected, expected), "{all:?}");
    }
    let two = [(10, 40), (20, 30)];
    assert_eq!((prices(&redemption, false, &two), prices(&redemption, true, &two)), ((10, 30), (20, 40)));
    // The amounts, which one endpoint estimates.
    let estimated = |units: &'static str| {
        let estimate = json!([{"l1_gas_consumed": units, "l2_gas_consumed": units, "l1_data_gas_consumed": units}]);
        costs(&lying(chain_of(USUAL), "starknet_estimateFee", |_| true, estimate), &funding).unwrap()
    };
    let honest = estimated("0x64");
    for lie in ["0x0", "0x1", "0xffffffffffffffff"].map(estimated) {
        for all in [[&lie, &honest, &honest], [&honest, &lie, &honest], [&honest, &honest, &lie]] {
            let bounds = execution(&funding, &all, 10, false).unwrap().resource_bounds;
            assert_eq!([bounds.l1_gas, bounds.l2_gas, bounds.l1_data_gas].map(|bound| bound.max_amount), [150; 3]);
        }
    }
    // No endpoint sees a redemption.
    let chain = chain_of(USUAL);
    let drive = drive::<Context>(&redemption, &Known::default(), |_, _, request| chain.answer(request));
    assert_eq!(drive.asked.len(), 1);
    // Endpoints agree on the nonce, and on whether the calls succeed.
    let failing = lying(chain_of(USUAL), "starknet_estimateFee", |_| true, error(41));
    let other_nonce = lying(chain_of(USUAL), "starknet_getNonce", |_| true, json!("0x2b"));
    let keys = [&chain, &at_prices(1, 1), &failing, &other_nonce].map(|chain| costs(chain, &funding).unwrap().key());
    assert!(keys[0] == keys[1] && keys[0] != keys[2] && keys[0] != keys[3]);
}

#[test]
fn no_lie_is_a_number() {
    let chain = chain_of(USUAL);
    let chain_id = chain_id_of(&chain);
    let amount = AmountQuery { chain_id, token: STRK, owner: Felt::from(5), spender: None };
    let sender = Sender { chain_id, address: Felt::from(5), calls: Some(Vec::new()) };
    for lie in lies() {
        for wrong in 0..3 {
            let answer = |round, place, request: &Request| if (round, place) == (0, wrong) { lie.clone() } else { chain.answer(request) };
            assert!(drive::<NewestBlock>(&HeadQuery { chain_id }, &Known::default(), answer).outcome.is_err(), "{wrong} {lie:?}");
            assert!(drive::<Amount>(&amount, &Known::default(), answer).outcome.is_err(), "{wrong} {lie:?}");
            assert!(drive::<Context>(&sender, &Known::default(), answer).outcome.is_err(), "{wrong} {lie:?}");
        }
        let answer = |round, place, request: &Request| if (round, place) == (1, 1) { lie.clone() } else { chain.answer(request) };
        if let Ok(costs) = drive::<Context>(&sender, &Known::default(), answer).outcome {
            assert!(execution(&sender, &[costs.output()], 10, false).is_err(), "{lie:?}");
        }
    }
    let balance = drive::<Amount>(&amount, &Known::default(), |_, _, request| chain.answer(request)).outcome.unwrap();
    assert_eq!((balance.output().0, halves(balance.output().0)), (chain.balance, halves(chain.balance)));
}
