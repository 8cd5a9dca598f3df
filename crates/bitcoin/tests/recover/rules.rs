//! Tests which outputs a recovery spends, and its minimum fee. The rules are the same for outputs from the caller and
//! from the chain.

use countersign_bitcoin::recover::{Exceptions, FundingSource};

use super::*;

const NONE: Exceptions = Exceptions { less: false, low_fee: false, high_fee: false };
const SOURCES: [FundingSource; 2] = [FundingSource::Caller, FundingSource::Chain];

fn codes(order: &UnsignedOrder) -> Vec<Code> {
    order.warnings().list().iter().map(|warning| warning.code()).collect()
}

fn spent(order: &UnsignedOrder) -> Vec<OutPoint> {
    payment(order).transaction().input.iter().map(|input| input.previous_output).collect()
}

fn at_rate(fundings: &[Funding], rate: &str) -> Payout {
    Payout::new(fundings, TO, deducted(rate))
}

#[test]
fn the_secret_is_not_shown_for_less_than_the_amount() -> TestResult {
    let swap = swap();
    // Each of these is less than the 50,000 of the order, or is not one output.
    for fundings in [vec![funding(1, 0, 1_000)], vec![funding(1, 0, 49_999)], vec![funding(1, 0, 30_000), funding(2, 0, 20_000)]] {
        for source in SOURCES {
            let payout = payout(&fundings).with_source(source);
            let refusal = swap.redeem(&SECRET, &payout).map(|_| ()).expect_err("less than the amount");
            assert_eq!((refusal.code(), refusal.location()), (Code::FundingMismatch, "/funding"));
            for part in ["makes the secret public", "of an order of 0.0005 BTC (50000 sat)", "accept_less"] {
                assert!(refusal.message().contains(part), "{}", refusal.message());
            }
            let accepted = swap.redeem(&SECRET, &payout.clone().with_exceptions(Exceptions { less: true, ..NONE }))?;
            assert_eq!((codes(&accepted), spent(&accepted).len()), (vec![Code::SecretForLess], fundings.len()));
            assert_eq!(codes(&swap.refund(&payout)?), [], "a refund shows nothing");
        }
    }
    assert_eq!(codes(&swap.redeem(&SECRET, &payout(&[funding(1, 0, 50_000)]))?), []);
    assert_eq!(codes(&swap.redeem(&SECRET, &payout(&[funding(1, 0, 50_001)]))?), []);
    Ok(())
}

/// The payer of dust can refund it earlier, and so evict the redemption after its secret is public.
#[test]
fn the_payment_is_spent_alone() -> TestResult {
    let swap = swap();
    let (first, second, dust) = (funding(1, 0, 50_000), funding(3, 0, 60_000), funding(2, 0, 700));
    for fundings in [[dust, first, second], [first, dust, second]] {
        for order in [swap.redeem(&SECRET, &payout(&fundings))?, swap.refund(&payout(&fundings))?] {
            assert_eq!((spent(&order), codes(&order)), (vec![first.outpoint], vec![Code::OutputsLeft]));
            let said = order.warnings().list()[0].message();
            assert!(
                [dust, second].iter().all(|left| said.contains(&left.outpoint.to_string())) && !said.contains(&first.outpoint.to_string())
            );
        }
    }
    Ok(())
}

/// At 100 sat/vB, the input of a refund costs about 8,000 base units.
#[test]
fn a_refund_of_parts_leaves_what_costs_more_than_it_pays() -> TestResult {
    let swap = swap();
    let (large, small) = (funding(1, 0, 49_000), funding(2, 0, 700));
    let refund = swap.refund(&at_rate(&[small, large], "100"))?;
    assert_eq!((spent(&refund), codes(&refund)), (vec![large.outpoint], vec![Code::OutputsLeft]));
    let cheap = swap.refund(&at_rate(&[small, large], "1"))?;
    assert_eq!((spent(&cheap).len(), codes(&cheap)), (2, vec![]));
    Ok(())
}

/// The record's transaction ids are a statement of the service. The outputs are on the chain, whatever it states.
#[test]
fn an_output_that_the_record_does_not_name_is_recovered() {
    let mut order = order();
    let named = |byte: u8| format!("{}:90249", format!("{byte:02x}").repeat(32));
    for (stated, differs) in [
        (String::new(), false),
        (named(1), false),
        (format!("{},{}", named(1), named(2)), false),
        (named(9), true),
        ("0x1234:5".to_owned(), true),
    ] {
        order["source_swap"]["initiate_tx_hash"] = json!(stated);
        let swap = read(&order).expect("a record");
        let expected = if differs { vec![Code::FundingTxDiffers] } else { vec![] };
        for source in SOURCES {
            let payout = payout(&[funding(1, 0, 50_000)]).with_source(source);
            for unsigned in [swap.redeem(&SECRET, &payout), swap.refund(&payout)] {
                assert_eq!(codes(&unsigned.expect("a recovery")), expected, "{stated}");
            }
            for fundings in [vec![], vec![funding(1, 0, 1), funding(1, 0, 1)], vec![funding(1, 0, u64::MAX)]] {
                let refusal = refused(swap.refund(&self::payout(&fundings).with_source(source)));
                assert_eq!(refusal, (Code::FundingMismatch, "/funding".to_owned()));
            }
        }
        let instant = InstantRefund::new(&swap, &[funding(1, 0, 50_000)], TO).expect("an instant refund");
        assert_eq!(instant.warnings.list().iter().map(|warning| warning.code()).collect::<Vec<_>>(), expected, "{stated}");
    }
    order["source_swap"]["initiate_tx_hash"] = json!(format!("{},{}", named(1), "02".repeat(32)));
    order["source_swap"]["filled_amount"] = json!("49999");
    let swap = read(&order).expect("a record");
    assert_eq!((swap.funding.len(), swap.funding[0].number, swap.funding[1].number), (2, Some(90_249.into()), None));
    assert_eq!(swap.funding_status(), FundingStatus::Partial { missing: Amount::ONE_SAT });
    // According to the record of the fixture, the swap is not funded.
    assert_eq!(self::swap().funding_status(), FundingStatus::Unfunded);
}

#[test]
fn a_redemption_that_some_nodes_drop_is_refused() -> TestResult {
    let swap = swap();
    let fundings = [funding(1, 0, 50_000)];
    for rate in ["0.0001", "0.1", "0.999999999999999999999999999999999999"] {
        let low = at_rate(&fundings, rate);
        let refusal = swap.redeem(&SECRET, &low).map(|_| ()).expect_err("a low rate");
        assert_eq!((refusal.code(), refusal.location()), (Code::FeeTooLow, "/fee_rate"));
        assert!(refusal.message().contains("less than 1") && refusal.message().contains("see its secret"), "{}", refusal.message());
        let accepted = swap.redeem(&SECRET, &low.clone().with_exceptions(Exceptions { low_fee: true, ..NONE }))?;
        assert_eq!(codes(&accepted), [Code::FeeTooLow]);
        assert_eq!(codes(&swap.refund(&low)?), [Code::FeeTooLow]);
    }
    for order in [swap.redeem(&SECRET, &at_rate(&fundings, "1"))?, swap.refund(&at_rate(&fundings, "1.0"))?] {
        assert_eq!(codes(&order), []);
    }
    Ok(())
}

/// Other coins pay 466 sat for an output of 330. The refusal states that, and the user decides.
#[test]
fn a_refund_that_costs_more_than_it_pays_is_the_users_decision() -> TestResult {
    let swap = swap();
    let output = TxOut { value: Amount::from_sat(9_000), script_pubkey: swap.chain.script(TO, "")? };
    let coins = FeeCoins::new(vec![Utxo::new(funding(9, 0, 0).outpoint, output)?], TO, FeeRate::from_whole(2));
    let payout = Payout::new([funding(1, 0, 330)], TO, Fee::Paid(coins));
    let refusal = swap.refund(&payout).map(|_| ()).expect_err("a fee above the payout");
    assert_eq!((refusal.code(), refusal.location()), (Code::FeeAbovePayout, "/fee_rate"));
    let said = refusal.message();
    assert!(said.contains("pay out 0.0000033 BTC (330 sat)") && said.contains("accept_high_fee") && !said.contains("policy"), "{said}");
    let accepted = swap.refund(&payout.with_exceptions(Exceptions { high_fee: true, ..NONE }))?;
    assert_eq!(codes(&accepted), [Code::FeeAbovePayout]);
    Ok(())
}
