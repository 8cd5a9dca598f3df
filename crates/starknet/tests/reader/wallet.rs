//! What a transaction needs: nonce, fees and balances.

use countersign_core::Policy;
use countersign_core::reader::{Agree, Fault, Known, Observation, Request};
use countersign_starknet::reader::{Amount, AmountQuery, Context, Costs, HeadQuery, NewestBlock, STRK, Sender, chain_id, execution};
use countersign_starknet::{Felt, felt};
use countersign_testkit::chain::starknet::{Chain, LATEST, chain_of, halves};
use serde_json::json;

use crate::lies::lies;
use crate::{USUAL, destination, drive, error, lying};

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

#[test]
fn fees_are_the_median_and_for_a_redemption_the_highest_within_the_policy() {
    let sender = |calls| Sender { chain_id: chain_id(&destination(USUAL).network).unwrap(), address: Felt::from(5), calls };
    let prices = |sender: &Sender, all: &[(u64, u64)]| {
        let all: Vec<_> = all.iter().map(|(l1_gas, l2_gas)| costs(&at_prices(*l1_gas, *l2_gas), sender).unwrap()).collect();
        let bounds = execution(sender, &all.iter().collect::<Vec<_>>(), 10, &Policy::default()).map(|context| context.resource_bounds);
        bounds.map(|bounds| (bounds.l1_gas.max_price_per_unit, bounds.l2_gas.max_price_per_unit)).map_err(|refusal| refusal.code().name())
    };
    let (funding, redemption) = (sender(Some(Vec::new())), sender(None));
    for (all, median, highest) in [
        (&[(10, 30)][..], (10, 30), (10, 30)),
        (&[(10, 30), (20, 40), (1, 50)], (10, 40), (20, 50)),
        // An endpoint whose figures exceed the policy does not count.
        (&[(10, 30), (u64::MAX, u64::MAX), (20, 40)], (20, 40), (20, 40)),
    ] {
        assert_eq!(prices(&funding, all), Ok(median));
        assert_eq!(prices(&redemption, all), Ok(highest));
    }
    assert_eq!(prices(&funding, &[(1, u64::MAX)]), Err("gas_limit_too_high"));
    // Two endpoints whose highest prices are too high together: the dearer one counts.
    let limit = 10_000_000_000_000_000_000_u64;
    let (l1_gas, l2_gas) = (limit / 5_000 - 1_000_000, limit / 40_000_000 - 1_000);
    assert_eq!(
        prices(&redemption, &[(l1_gas, 1), (1, l2_gas)]).unwrap().0.min(2),
        if l1_gas * 5_000 > l2_gas * 40_000_000 { 2 } else { 1 }
    );
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
            assert!(costs.output().bounds(10, &Policy::default()).is_err(), "{lie:?}");
        }
    }
    let balance = drive::<Amount>(&amount, &Known::default(), |_, _, request| chain.answer(request)).outcome.unwrap();
    assert_eq!((balance.output().0, halves(balance.output().0)), (chain.balance, halves(chain.balance)));
}
