//! A delegate sends and pays. The order and its refund belong to the owner.

use super::*;

fn sign(stage: &Stage, order: &Order, key: &Account) -> Result<SignedOrder, Refusal> {
    super::sign(order.unsigned(stage.wallet(&stage.delegate), &Policy::default())?, key)
}

#[test]
fn a_delegate_pays_and_the_owner_gets_the_refund() -> TestResult {
    for (selector, destination_data) in [(hex!("13d4a787"), None), (hex!("a66a8641"), Some(Bytes::from_static(b"where to")))] {
        let mut stage = Stage::new()?;
        let delegate = Some(stage.delegate.address());
        let order = Order { delegate, destination_data: destination_data.clone(), domain: None, ..stage.order(WBTC) };
        assert!(order.calldata().starts_with(&selector));
        let receipts = stage.broadcast(&sign(&stage, &order, &stage.delegate)?)?;
        assert!(receipts.iter().all(|receipt| receipt.is_success() && receipt.from == stage.delegate.address()));
        assert_eq!(receipts[1].event(WBTC.htlc).map(|event: Htlc::InitiatedWithData| event.destinationData), destination_data);
        let event: Htlc::Initiated = receipts[1].event(WBTC.htlc).expect("an initiated order is logged");
        assert_eq!(stage.world.order(WBTC.htlc, event.orderId)?, stage.entry());
        assert_eq!(stage.holdings(WBTC)?, tokens([MINTED, MINTED, MINTED - AMOUNT, 0, AMOUNT]));

        stage.world.advance_blocks(TIMELOCK + 1);
        assert!(stage.relay(WBTC, &Htlc::refundCall { orderId: event.orderId })?.is_success());
        assert_eq!(stage.holdings(WBTC)?, tokens([MINTED + AMOUNT, MINTED, MINTED - AMOUNT, 0, 0]));
    }
    Ok(())
}

#[test]
fn a_delegate_pays_native_coins_and_the_owner_gets_the_refund() -> TestResult {
    let mut stage = Stage::new()?;
    let order = Order { delegate: Some(stage.delegate.address()), ..stage.order(ETH) };
    let [receipt] = <[Receipt; 1]>::try_from(stage.broadcast(&sign(&stage, &order, &stage.delegate)?)?).expect("one transaction");
    let event: Htlc::Initiated = receipt.event(ETH.htlc).expect("an initiated order is logged");
    assert_eq!(stage.world.order(ETH.htlc, event.orderId)?, stage.entry());
    let paid = ETHER - stage.world.native_balance_of(stage.delegate.address());
    assert_eq!(paid, U256::from(AMOUNT) + fee(&[receipt]));

    stage.world.advance_blocks(TIMELOCK + 1);
    assert!(stage.relay(ETH, &Htlc::refundCall { orderId: event.orderId })?.is_success());
    assert_eq!(stage.world.native_balance_of(stage.owner.address()), ETHER + U256::from(AMOUNT));
    Ok(())
}

#[test]
fn the_owner_s_key_does_not_sign_for_the_delegate() -> TestResult {
    let stage = Stage::new()?;
    let order = Order { delegate: Some(stage.delegate.address()), domain: None, ..stage.order(WBTC) };
    let refusal = sign(&stage, &order, &stage.owner).expect_err("another account's key");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, ""));
    Ok(())
}
