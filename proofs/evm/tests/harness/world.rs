//! Tests the checks that a node makes before it executes anything.

use super::*;

fn transfer(stage: &Stage) -> TxEip1559 {
    transaction(&stage.world, stage.owner.address(), stage.redeemer, Vec::new(), U256::from(7))
}

/// Sends a changed transfer, and checks that it is refused without effect. Returns the reason.
fn refusal(stage: &mut Stage, change: impl FnOnce(&mut TxEip1559)) -> InvalidTransaction {
    let mut transaction = transfer(stage);
    change(&mut transaction);
    let owner = stage.owner.address();
    let before = (stage.world.native_balance_of(owner), stage.world.nonce_of(owner));
    let error = stage.world.send_raw(&stage.owner.sign_transaction(transaction)).expect_err("refused");
    assert_eq!((stage.world.native_balance_of(owner), stage.world.nonce_of(owner)), before);
    error.refusal().cloned().expect("refused by a check")
}

#[test]
fn checks_nonce_chain_balance_gas_and_fee() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(1)?;
    assert_eq!(refusal(&mut stage, |tx| tx.nonce = 0), InvalidTransaction::NonceTooLow { tx: 0, state: 1 });
    assert_eq!(refusal(&mut stage, |tx| tx.nonce = 2), InvalidTransaction::NonceTooHigh { tx: 2, state: 1 });
    assert_eq!(refusal(&mut stage, |tx| tx.chain_id = 1), InvalidTransaction::InvalidChainId);
    let reason = refusal(&mut stage, |tx| tx.value = ETHER);
    assert!(matches!(reason, InvalidTransaction::LackOfFundForMaxFee { .. }), "{reason:?}");
    let reason = refusal(&mut stage, |tx| tx.gas_limit = 20_999);
    assert!(matches!(reason, InvalidTransaction::CallGasCostMoreThanGasLimit { .. }), "{reason:?}");
    let reason = refusal(&mut stage, |tx| tx.gas_limit = 17_000_000);
    assert!(matches!(reason, InvalidTransaction::TxGasLimitGreaterThanCap { .. }), "{reason:?}");
    let reason = refusal(&mut stage, |tx| tx.max_fee_per_gas = 999_999_999);
    assert_eq!(reason, InvalidTransaction::PriorityFeeGreaterThanMaxFee);
    stage.world.set_base_fee(4_000_000_000);
    assert_eq!(refusal(&mut stage, |_| ()), InvalidTransaction::GasPriceLessThanBasefee);

    stage.world.set_base_fee(1);
    let raw = stage.owner.sign_transaction(transfer(&stage));
    let receipt = stage.world.send_raw(&raw)?;
    assert!(receipt.is_success());
    assert_eq!((receipt.gas_used, receipt.gas_price), (21_000, TIP + 1));
    assert_eq!(receipt.hash, Some(keccak256(&raw)));
    assert_eq!(stage.world.native_balance_of(stage.redeemer), U256::from(7));
    let replay = stage.world.send_raw(&raw).expect_err("a transaction runs once");
    assert_eq!(replay.refusal(), Some(&InvalidTransaction::NonceTooLow { tx: 1, state: 2 }));
    Ok(())
}

#[test]
fn takes_one_whole_transaction_and_nothing_else() -> TestResult {
    let mut stage = Stage::new()?;
    let raw = stage.owner.sign_transaction(transfer(&stage));
    for end in 0..raw.len() {
        let error = stage.world.send_raw(&raw[..end]).expect_err("cut short");
        assert!(matches!(error, SendError::Malformed(_)), "{end}: {error:?}");
    }
    let longer = [raw.as_slice(), &[0]].concat();
    assert!(matches!(stage.world.send_raw(&longer), Err(SendError::Malformed(_))));
    assert!(stage.world.send_raw(&raw)?.is_success());
    Ok(())
}

#[test]
fn refuses_a_high_s_and_charges_another_account_for_other_content() -> TestResult {
    let mut stage = Stage::new()?;
    let transaction = transfer(&stage);
    let signature = stage.owner.sign_digest(transaction.signature_hash());
    let mut raw = Vec::new();
    transaction.clone().into_signed(high_s(&signature)).eip2718_encode(&mut raw);
    assert!(matches!(stage.world.send_raw(&raw), Err(SendError::Signature(_))));

    let mut raw = Vec::new();
    TxEip1559 { value: U256::from(8), ..transaction }.into_signed(signature).eip2718_encode(&mut raw);
    let error = stage.world.send_raw(&raw).expect_err("the signer is a stranger without funds");
    assert!(matches!(error.refusal(), Some(InvalidTransaction::LackOfFundForMaxFee { .. })), "{error:?}");
    Ok(())
}

#[test]
fn takes_legacy_transactions_that_name_the_chain() -> TestResult {
    let mut stage = Stage::new()?;
    let legacy = TxLegacy {
        chain_id: Some(SEPOLIA),
        nonce: 0,
        gas_price: MAX_FEE,
        gas_limit: 21_000,
        to: TxKind::Call(stage.redeemer),
        value: U256::from(7),
        input: Bytes::new(),
    };
    let unprotected = TxLegacy { chain_id: None, ..legacy.clone() };
    let raw = stage.owner.sign_transaction(unprotected);
    assert!(matches!(stage.world.send_raw(&raw), Err(SendError::Unprotected)));
    let elsewhere = TxLegacy { chain_id: Some(1), ..legacy.clone() };
    let error = stage.world.send_raw(&stage.owner.sign_transaction(elsewhere)).expect_err("another chain");
    assert_eq!(error.refusal(), Some(&InvalidTransaction::InvalidChainId));

    let receipt = stage.world.send_raw(&stage.owner.sign_transaction(legacy))?;
    assert_eq!((receipt.is_success(), receipt.gas_price), (true, MAX_FEE));

    let other_type = TxEip2930 { chain_id: SEPOLIA, ..TxEip2930::default() };
    let error = stage.world.send_raw(&stage.owner.sign_transaction(other_type)).expect_err("another type");
    assert!(matches!(error, SendError::UnsupportedType(1)));
    Ok(())
}

#[test]
fn a_reverted_transaction_costs_its_fee_and_its_nonce_only() -> TestResult {
    let mut stage = Stage::new()?;
    let before = stage.world.native_balance_of(stage.owner.address());
    let receipt = stage.send(stage.htlc, &stage.terms(), U256::ZERO)?;
    assert!(matches!(receipt.outcome, Outcome::Reverted { .. }));
    assert!(receipt.logs.is_empty());
    let fee = U256::from(receipt.gas_price) * U256::from(receipt.gas_used);
    assert_eq!(stage.world.native_balance_of(stage.owner.address()), before - fee);
    assert_eq!(stage.world.nonce_of(stage.owner.address()), 1);
    assert_eq!(stage.holdings()?, balances([MINTED, 0, 0, 0]));

    let mut starved = transaction(&stage.world, stage.owner.address(), stage.token, Vec::new(), U256::ZERO);
    starved.input = Erc20::approveCall { spender: stage.htlc, value: U256::ONE }.abi_encode().into();
    starved.gas_limit = 25_000;
    let receipt = stage.world.send_raw(&stage.owner.sign_transaction(starved))?;
    assert!(matches!(receipt.outcome, Outcome::Halted { .. }), "{:?}", receipt.outcome);
    assert_eq!(receipt.gas_used, 25_000);
    Ok(())
}

#[test]
fn unsigned_calls_leave_nonces_alone_and_reads_leave_everything_alone() -> TestResult {
    let mut stage = Stage::new()?;
    let owner = stage.owner.address();
    let balance = stage.world.native_balance_of(owner);
    let approve = Erc20::approveCall { spender: stage.htlc, value: U256::from(5) };
    assert!(stage.world.call(owner, stage.token, approve.abi_encode(), U256::ZERO)?.is_success());
    assert_eq!(stage.world.nonce_of(owner), 0);
    assert_eq!(stage.world.native_balance_of(owner), balance);
    assert_eq!(stage.world.allowance(stage.token, owner, stage.htlc)?, U256::from(5));

    stage.world.read(stage.token, &Erc20::mintCall { to: owner, value: U256::from(5) })?;
    assert_eq!(stage.world.balance_of(stage.token, owner)?, U256::from(MINTED));
    // An address without code returns nothing, which is not a balance of zero.
    assert!(stage.world.balance_of(stage.redeemer, owner).is_err());
    assert!(stage.world.call(stage.relayer, stage.redeemer, Bytes::new(), U256::ONE).is_err());
    Ok(())
}

#[test]
fn a_clone_goes_its_own_way() -> TestResult {
    let mut stage = Stage::new()?;
    let untouched = stage.world.clone();
    stage.approve(AMOUNT)?;
    assert_eq!(untouched.nonce_of(stage.owner.address()), 0);
    assert_eq!(untouched.allowance(stage.token, stage.owner.address(), stage.htlc)?, U256::ZERO);
    Ok(())
}

#[test]
fn deploys_at_a_chosen_address_once() -> TestResult {
    let mut world = World::new(SEPOLIA, START);
    let place = address!("00000000000000000000000000000000000000bb");
    world.fund(place, ETHER);
    let bad = Contract::Htlc { token: Address::ZERO, version: "3" };
    assert!(matches!(world.deploy_at(place, &bad), Err(DeployError::Failed(_))));
    let token = Contract::Token { symbol: "WBTC", decimals: 8 };
    world.deploy_at(place, &token)?;
    assert!(matches!(world.deploy_at(place, &token), Err(DeployError::Occupied { .. })));
    assert_eq!(world.native_balance_of(place), ETHER);
    assert_eq!(world.read(place, &Erc20::decimalsCall {})?, 8);
    Ok(())
}

#[test]
fn accounts_come_from_their_phrase() {
    let account = Account::from_phrase("countersign proofs: owner");
    assert_eq!(account.secret(), keccak256("countersign proofs: owner"));
    assert_eq!(account.address(), Address::from_private_key(account.key()));
    assert!(!format!("{account:?}").contains(&hex::encode(account.secret())));
}
