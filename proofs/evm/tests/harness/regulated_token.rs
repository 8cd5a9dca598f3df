//! Tests a token whose issuer can pause it and freeze accounts.

use super::*;
use countersign_proofs_evm::abi::Regulated;

fn stage() -> Result<Stage, Box<dyn Error>> {
    Stage::with(&Contract::RegulatedToken { symbol: "USDC", decimals: 6 })
}

#[test]
fn pays_nobody_who_is_frozen() -> TestResult {
    let mut stage = stage()?;
    let id = stage.initiate()?;
    let freeze = Regulated::freezeCall { account: stage.redeemer };
    assert!(stage.send(stage.token, &freeze, U256::ZERO)?.is_success());
    assert!(!stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?.is_success());
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
    Ok(())
}

#[test]
fn pays_nobody_while_it_is_paused() -> TestResult {
    let mut stage = stage()?;
    let id = stage.initiate()?;
    assert!(stage.send(stage.token, &Regulated::pauseCall {}, U256::ZERO)?.is_success());
    assert!(!stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?.is_success());
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
    Ok(())
}
