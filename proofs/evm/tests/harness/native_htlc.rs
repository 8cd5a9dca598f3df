//! Tests the native coin.

use super::*;

fn stage() -> Result<Stage, Box<dyn Error>> {
    let mut stage = Stage::new()?;
    stage.htlc = stage.world.deploy(&Contract::NativeHtlc)?;
    Ok(stage)
}

#[test]
fn holds_the_value_then_pays_the_redeemer() -> TestResult {
    let mut stage = stage()?;
    let amount = U256::from(AMOUNT);
    let before = stage.world.native_balance_of(stage.owner.address());
    let receipt = stage.send(stage.htlc, &stage.terms(), amount)?;
    let id = initiated(&receipt, stage.htlc).orderId;
    let fee = U256::from(receipt.gas_price) * U256::from(receipt.gas_used);
    assert_eq!(stage.world.native_balance_of(stage.owner.address()), before - amount - fee);
    assert_eq!(stage.world.native_balance_of(stage.htlc), amount);
    assert_eq!(stage.world.order(stage.htlc, id)?, open_order(&stage));

    assert!(stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?.is_success());
    assert_eq!(stage.world.native_balance_of(stage.redeemer), amount);
    assert_eq!(stage.world.native_balance_of(stage.htlc), U256::ZERO);
    Ok(())
}

#[test]
fn refuses_a_value_that_is_not_the_amount() -> TestResult {
    let mut stage = stage()?;
    let amount = U256::from(AMOUNT);
    for value in [U256::ZERO, amount - U256::ONE, amount + U256::ONE] {
        let receipt = stage.send(stage.htlc, &stage.terms(), value)?;
        assert_eq!(receipt.reverted_with(), Some(NativeHtlc::NativeHTLC__IncorrectFundsRecieved {}));
        assert_eq!(stage.world.native_balance_of(stage.htlc), U256::ZERO);
    }
    Ok(())
}

#[test]
fn refunds_the_initiator_after_the_timelock() -> TestResult {
    let mut stage = stage()?;
    let initiator = Account::from_phrase("countersign proofs: initiator").address();
    let Htlc::initiate_0Call { redeemer, timelock, amount, secretHash } = stage.terms();
    let call = Htlc::initiateOnBehalf_0Call { initiator, redeemer, timelock, amount, secretHash };
    let receipt = stage.send(stage.htlc, &call, amount)?;
    let refund = Htlc::refundCall { orderId: initiated(&receipt, stage.htlc).orderId };
    stage.world.advance_blocks(TIMELOCK);
    assert!(stage.relay(&refund)?.reverted_with::<NativeHtlc::NativeHTLC__OrderNotExpired>().is_some());
    stage.world.advance_blocks(1);
    assert!(stage.relay(&refund)?.is_success());
    assert_eq!(stage.world.native_balance_of(initiator), amount);
    Ok(())
}

#[test]
fn a_payee_that_takes_no_coins_leaves_the_order_open() -> TestResult {
    let mut stage = stage()?;
    // A token contract cannot receive the native coin.
    let call = Htlc::initiate_0Call { redeemer: stage.token, ..stage.terms() };
    let receipt = stage.send(stage.htlc, &call, call.amount)?;
    let id = initiated(&receipt, stage.htlc).orderId;
    let receipt = stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?;
    assert_eq!(receipt.reverted_with(), Some(NativeHtlc::PaymentFailed { to: stage.token }));
    assert_eq!(stage.world.order(stage.htlc, id)?.fulfilledAt, U256::ZERO);
    Ok(())
}
