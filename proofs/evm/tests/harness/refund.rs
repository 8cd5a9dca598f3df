//! Tests the refund after the timelock.

use super::*;

#[test]
fn opens_one_block_after_the_timelock_has_run() -> TestResult {
    let mut stage = Stage::new()?;
    let id = stage.initiate()?;
    let refund = Htlc::refundCall { orderId: id };
    for wait in [0, 1, TIMELOCK - 1] {
        stage.world.advance_blocks(wait);
        let expected = Htlc::HTLC__OrderNotExpired {};
        assert_eq!(stage.relay(&refund)?.reverted_with(), Some(expected));
    }
    assert_eq!(stage.world.block_number(), START + TIMELOCK);

    stage.world.advance_blocks(1);
    let receipt = stage.relay(&refund)?;
    assert_eq!(receipt.event(stage.htlc), Some(Htlc::Refunded { orderId: id }));
    assert_eq!(stage.holdings()?, balances([MINTED, 0, 0, 0]));
    assert_eq!(stage.relay(&refund)?.reverted_with(), Some(Htlc::HTLC__OrderFulfilled {}));
    let redeem = Htlc::redeemCall { orderId: id, secret: SECRET.into() };
    assert_eq!(stage.relay(&redeem)?.reverted_with(), Some(Htlc::HTLC__OrderFulfilled {}));
    Ok(())
}

#[test]
fn does_not_shut_the_redemption_by_being_open() -> TestResult {
    let mut stage = Stage::new()?;
    let id = stage.initiate()?;
    stage.world.advance_blocks(2 * TIMELOCK);
    assert!(stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?.is_success());
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, AMOUNT, 0, 0]));
    Ok(())
}
