//! Tests a token that requires its allowance to be reset to zero, and returns nothing.

use super::*;

fn stage() -> Result<Stage, Box<dyn Error>> {
    Stage::with(&Contract::StubbornToken { symbol: "USDT", decimals: 6 })
}

#[test]
fn wants_the_allowance_reset_to_zero() -> TestResult {
    let mut stage = stage()?;
    stage.approve(AMOUNT - 1)?;
    let raise = Erc20::approveCall { spender: stage.htlc, value: U256::from(AMOUNT) };
    let expected = Erc20::AllowanceNotZero { spender: stage.htlc, allowance: U256::from(AMOUNT - 1) };
    assert_eq!(stage.send(stage.token, &raise, U256::ZERO)?.reverted_with(), Some(expected));

    stage.approve(0)?;
    stage.approve(AMOUNT)?;
    assert_eq!(stage.world.allowance(stage.token, stage.owner.address(), stage.htlc)?, U256::from(AMOUNT));
    Ok(())
}

#[test]
fn works_in_the_htlc_though_it_returns_nothing() -> TestResult {
    let mut stage = stage()?;
    let id = stage.initiate()?;
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
    assert!(stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?.is_success());
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, AMOUNT, 0, 0]));
    Ok(())
}

#[test]
fn a_plain_token_changes_the_allowance_at_once() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(AMOUNT - 1)?;
    stage.approve(AMOUNT)
}
