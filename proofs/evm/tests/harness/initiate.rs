//! Tests locking funds by a call of the payer.

use super::*;

#[test]
fn moves_exactly_the_amount_and_records_the_terms() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(AMOUNT)?;
    let before = stage.world.native_balance_of(stage.owner.address());
    let receipt = stage.send(stage.htlc, &stage.terms(), U256::ZERO)?;

    let event = initiated(&receipt, stage.htlc);
    assert_eq!((event.secretHash, event.amount), (secret_hash(), U256::from(AMOUNT)));
    assert_eq!(receipt.from, stage.owner.address());
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
    assert_eq!(stage.world.allowance(stage.token, stage.owner.address(), stage.htlc)?, U256::ZERO);
    assert_eq!(stage.world.order(stage.htlc, event.orderId)?, open_order(&stage));
    assert_eq!(stage.world.nonce_of(stage.owner.address()), 2);

    let price = u128::from(stage.world.base_fee()) + TIP;
    assert_eq!(receipt.gas_price, price);
    let after = stage.world.native_balance_of(stage.owner.address());
    assert_eq!(before - after, U256::from(price) * U256::from(receipt.gas_used));
    Ok(())
}

#[test]
fn needs_the_allowance_and_the_balance() -> TestResult {
    let mut stage = Stage::new()?;
    let receipt = stage.send(stage.htlc, &stage.terms(), U256::ZERO)?;
    assert!(receipt.reverted_with::<Erc20::InsufficientAllowance>().is_some(), "{:?}", receipt.outcome);

    stage.approve(u64::MAX)?;
    let too_much = Htlc::initiate_0Call { amount: U256::from(MINTED + 1), ..stage.terms() };
    let receipt = stage.send(stage.htlc, &too_much, U256::ZERO)?;
    assert!(receipt.reverted_with::<Erc20::InsufficientBalance>().is_some(), "{:?}", receipt.outcome);
    assert_eq!(stage.holdings()?, balances([MINTED, 0, 0, 0]));
    Ok(())
}

#[test]
fn passes_the_destination_data_on_and_leaves_the_id_alone() -> TestResult {
    let mut stage = Stage::new()?;
    let mut plain = Stage::new()?;
    stage.approve(AMOUNT)?;
    let terms = stage.terms();
    let call = Htlc::initiate_1Call {
        redeemer: terms.redeemer,
        timelock: terms.timelock,
        amount: terms.amount,
        secretHash: terms.secretHash,
        destinationData: Bytes::from_static(b"where to"),
    };
    let receipt = stage.send(stage.htlc, &call, U256::ZERO)?;
    let id = initiated(&receipt, stage.htlc).orderId;
    let event: Htlc::InitiatedWithData = receipt.event(stage.htlc).expect("the data is logged");
    assert_eq!((event.orderId, event.destinationData), (id, call.destinationData));
    assert_eq!(stage.world.order(stage.htlc, id)?, open_order(&stage));
    assert_eq!(id, plain.initiate()?);
    Ok(())
}

#[test]
fn on_behalf_takes_from_the_caller_and_records_the_initiator() -> TestResult {
    let initiator = Account::from_phrase("countersign proofs: initiator").address();
    for with_data in [false, true] {
        let mut stage = Stage::new()?;
        stage.approve(AMOUNT)?;
        let Htlc::initiate_0Call { redeemer, timelock, amount, secretHash } = stage.terms();
        let receipt = if with_data {
            let call = Htlc::initiateOnBehalf_1Call { initiator, redeemer, timelock, amount, secretHash, destinationData: Bytes::new() };
            stage.send(stage.htlc, &call, U256::ZERO)?
        } else {
            let call = Htlc::initiateOnBehalf_0Call { initiator, redeemer, timelock, amount, secretHash };
            stage.send(stage.htlc, &call, U256::ZERO)?
        };
        let id = initiated(&receipt, stage.htlc).orderId;
        assert_eq!(receipt.event::<Htlc::InitiatedWithData>(stage.htlc).is_some(), with_data);
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
        assert_eq!(stage.world.order(stage.htlc, id)?, Order { initiator, ..open_order(&stage) });

        stage.world.advance_blocks(TIMELOCK + 1);
        assert!(stage.relay(&Htlc::refundCall { orderId: id })?.is_success());
        assert_eq!(stage.world.balance_of(stage.token, initiator)?, U256::from(AMOUNT));
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, 0]));
    }
    Ok(())
}

#[test]
fn an_id_opens_once_even_after_it_was_closed() -> TestResult {
    let mut stage = Stage::new()?;
    let id = stage.initiate()?;
    stage.approve(AMOUNT)?;
    let duplicate = Some(Htlc::HTLC__DuplicateOrder {});
    assert_eq!(stage.send(stage.htlc, &stage.terms(), U256::ZERO)?.reverted_with(), duplicate);
    assert_eq!(stage.relay(&stage.signed_terms())?.reverted_with(), duplicate);

    let redeem = Htlc::redeemCall { orderId: id, secret: SECRET.into() };
    assert!(stage.relay(&redeem)?.is_success());
    assert_eq!(stage.send(stage.htlc, &stage.terms(), U256::ZERO)?.reverted_with(), duplicate);
    assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, AMOUNT, 0, 0]));
    Ok(())
}

#[test]
fn each_term_is_part_of_the_id() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(MINTED)?;
    let terms = stage.terms();
    let variants = [
        terms.clone(),
        Htlc::initiate_0Call { redeemer: stage.relayer, ..terms.clone() },
        Htlc::initiate_0Call { timelock: terms.timelock + U256::ONE, ..terms.clone() },
        Htlc::initiate_0Call { amount: terms.amount + U256::ONE, ..terms.clone() },
        Htlc::initiate_0Call { secretHash: keccak256("another"), ..terms },
    ];
    let mut ids = Vec::new();
    for call in variants {
        let receipt = stage.send(stage.htlc, &call, U256::ZERO)?;
        let id = initiated(&receipt, stage.htlc).orderId;
        assert!(!ids.contains(&id));
        ids.push(id);
    }
    Ok(())
}

#[test]
fn refuses_zeros() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(AMOUNT)?;
    let terms = stage.terms();
    let call = Htlc::initiate_0Call { redeemer: Address::ZERO, ..terms.clone() };
    assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::HTLC__ZeroAddressRedeemer>().is_some());
    let call = Htlc::initiate_0Call { timelock: U256::ZERO, ..terms.clone() };
    assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::HTLC__ZeroTimelock>().is_some());
    let call = Htlc::initiate_0Call { amount: U256::ZERO, ..terms.clone() };
    assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::HTLC__ZeroAmount>().is_some());
    let call = Htlc::initiate_0Call { secretHash: B256::ZERO, ..terms.clone() };
    assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::ZeroSecretHash>().is_some());
    let Htlc::initiate_0Call { redeemer, timelock, amount, secretHash } = terms;
    let initiator = Address::ZERO;
    let call = Htlc::initiateOnBehalf_0Call { initiator, redeemer, timelock, amount, secretHash };
    assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::HTLC__ZeroAddressInitiator>().is_some());
    Ok(())
}

#[test]
fn the_token_htlc_refuses_native_coins() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approve(AMOUNT)?;
    let receipt = stage.send(stage.htlc, &stage.terms(), U256::ONE)?;
    assert_eq!(receipt.outcome, Outcome::Reverted { output: Bytes::new() });
    Ok(())
}

#[test]
fn a_token_without_code_is_refused() -> TestResult {
    let mut stage = Stage::new()?;
    let nowhere = address!("00000000000000000000000000000000000000aa");
    let htlc = stage.world.deploy(&Contract::Htlc { token: nowhere, version: "3" })?;
    let receipt = stage.send(htlc, &stage.terms(), U256::ZERO)?;
    assert!(receipt.reverted_with::<Htlc::TokenCallFailed>().is_some());
    let deployed = stage.world.deploy(&Contract::Htlc { token: Address::ZERO, version: "3" });
    assert!(matches!(deployed, Err(DeployError::Failed(Outcome::Reverted { .. }))));
    Ok(())
}
