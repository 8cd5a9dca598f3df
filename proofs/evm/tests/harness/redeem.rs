//! Tests redemption with the secret.

use super::*;

#[test]
fn pays_the_redeemer_for_the_secret_whoever_brings_it() -> TestResult {
    let mut stage = Stage::new()?;
    let id = stage.initiate()?;
    stage.world.advance_blocks(1);
    let receipt = stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?;
    let event: Htlc::Redeemed = receipt.event(stage.htlc).expect("a redemption is logged");
    assert_eq!((event.orderId, event.secretHash, event.secret), (id, secret_hash(), SECRET.into()));
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, AMOUNT, 0, 0]));
    assert_eq!(stage.world.order(stage.htlc, id)?, Order { fulfilledAt: U256::from(START + 1), ..open_order(&stage) });
    Ok(())
}

#[test]
fn refuses_a_wrong_secret_and_an_unknown_order() -> TestResult {
    let mut stage = Stage::new()?;
    let id = stage.initiate()?;
    for wrong in [b"".as_slice(), &SECRET[1..], &[SECRET, &[0]].concat(), secret_hash().as_slice()] {
        let receipt = stage.relay(&Htlc::redeemCall { orderId: id, secret: Bytes::copy_from_slice(wrong) })?;
        assert_eq!(receipt.reverted_with(), Some(Htlc::HTLC__IncorrectSecret {}));
    }
    let unknown = keccak256("unknown");
    let receipt = stage.relay(&Htlc::redeemCall { orderId: unknown, secret: SECRET.into() })?;
    assert_eq!(receipt.reverted_with(), Some(Htlc::HTLC__OrderNotInitiated {}));
    assert_eq!(stage.world.order(stage.htlc, unknown)?, no_order());
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
    Ok(())
}

#[test]
fn pays_once_and_shuts_the_refund() -> TestResult {
    let mut stage = Stage::new()?;
    let id = stage.initiate()?;
    let redeem = Htlc::redeemCall { orderId: id, secret: SECRET.into() };
    assert!(stage.relay(&redeem)?.is_success());
    assert_eq!(stage.relay(&redeem)?.reverted_with(), Some(Htlc::HTLC__OrderFulfilled {}));
    stage.world.advance_blocks(TIMELOCK + 1);
    let receipt = stage.relay(&Htlc::refundCall { orderId: id })?;
    assert_eq!(receipt.reverted_with(), Some(Htlc::HTLC__OrderFulfilled {}));
    Ok(())
}
