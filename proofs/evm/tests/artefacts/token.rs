//! Tests approval and call, with an ordinary token and with a stubborn one.

use countersign_proofs_evm::revm::context_interface::result::InvalidTransaction;

use super::*;

fn codes(signed: &SignedOrder) -> Vec<Code> {
    signed.warnings().list().iter().map(|warning| warning.code()).filter(|code| *code != Code::NoOrderRecord).collect()
}

#[test]
fn approval_and_call_lock_exactly_the_amount() -> TestResult {
    let amount = U256::from(AMOUNT);
    let cases = [
        (U256::MAX, U256::MAX, vec![Code::UnlimitedApproval]),
        (amount, U256::ZERO, vec![]),
        (U256::from(MINTED), U256::from(MINTED - AMOUNT), vec![Code::ApprovalAboveAmount]),
    ];
    for (approval, left, warnings) in cases {
        let mut stage = Stage::new()?;
        let coins = stage.world.native_balance_of(stage.owner.address());
        let signed = stage.sign(&Order { approval: Some(approval), ..stage.order(WBTC) })?;
        assert_eq!(codes(&signed), warnings);

        let receipts = stage.broadcast(&signed)?;
        assert!(receipts.iter().all(|receipt| receipt.is_success() && receipt.from == stage.owner.address()));
        let event: Htlc::Initiated = receipts[1].event(WBTC.htlc).expect("an initiated order is logged");
        assert_eq!(stage.world.order(WBTC.htlc, event.orderId)?, stage.entry());
        assert_eq!(stage.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED, MINTED, 0, AMOUNT]));
        assert_eq!(stage.allowance(WBTC)?, left);
        assert_eq!(stage.world.nonce_of(stage.owner.address()), 2);
        assert_eq!(stage.world.native_balance_of(stage.owner.address()), coins - fee(&receipts));
    }
    Ok(())
}

#[test]
fn a_policy_of_exact_approvals_leaves_no_allowance() -> TestResult {
    let policy = Policy::from_json(br#"{"approvals": "exact"}"#)?;
    for approval in [U256::MAX, U256::from(MINTED), U256::from(AMOUNT)] {
        for asset in [WBTC, USDT] {
            let mut stage = Stage::new()?;
            let order = Order { approval: Some(approval), ..stage.order(asset) };
            let signed = sign(order.unsigned(stage.wallet(&stage.owner), &policy)?, &stage.owner)?;
            assert_eq!(codes(&signed), []);
            let id = stage.execute(&signed, asset)?;
            assert_eq!(stage.world.order(asset.htlc, id)?, stage.entry());
            assert_eq!(stage.holdings(asset)?, tokens([MINTED - AMOUNT, MINTED, MINTED, 0, AMOUNT]));
            assert_eq!(stage.allowance(asset)?, U256::ZERO);
        }
    }
    Ok(())
}

#[test]
fn an_allowance_that_is_there_needs_no_approval() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approved_before(WBTC, stage.owner.address(), AMOUNT)?;
    let signed = stage.sign(&Order { approval: None, ..stage.order(WBTC) })?;
    assert_eq!(transactions(&signed)?.len(), 1);
    stage.execute(&signed, WBTC)?;
    assert_eq!(stage.allowance(WBTC)?, U256::ZERO);
    Ok(())
}

#[test]
fn a_left_over_allowance_of_a_stubborn_token_needs_the_reset() -> TestResult {
    let mut stage = Stage::new()?;
    let left_over = AMOUNT - 1;
    stage.approved_before(USDT, stage.owner.address(), left_over)?;
    let order = Order { approval: Some(U256::from(AMOUNT)), ..stage.order(USDT) };

    let mut without = Stage { world: stage.world.clone(), ..Stage::new()? };
    let signed = without.sign(&order)?;
    let [approval, initiate] = <[Receipt; 2]>::try_from(without.broadcast(&signed)?).expect("two transactions");
    let refused = Erc20::AllowanceNotZero { spender: USDT.htlc, allowance: U256::from(left_over) };
    assert_eq!(approval.reverted_with(), Some(refused));
    assert!(initiate.reverted_with::<Erc20::InsufficientAllowance>().is_some(), "{:?}", initiate.outcome);
    assert_eq!(without.holdings(USDT)?, tokens([MINTED, MINTED, MINTED, 0, 0]));

    let wallet = FundingPath::Both(stage.calls(&stage.owner).with_allowance_reset());
    let signed = sign(order.unsigned(wallet, &Policy::default())?, &stage.owner)?;
    assert_eq!(transactions(&signed)?.len(), 3);
    let id = stage.execute(&signed, USDT)?;
    assert_eq!(stage.world.order(USDT.htlc, id)?, stage.entry());
    assert_eq!(stage.holdings(USDT)?, tokens([MINTED - AMOUNT, MINTED, MINTED, 0, AMOUNT]));
    assert_eq!(stage.allowance(USDT)?, U256::ZERO);
    Ok(())
}

/// Includes the lengths at which padding ends, and the maximum length.
#[test]
fn destination_data_arrives_and_changes_nothing_else() -> TestResult {
    let mut plain = Stage::new()?;
    let signed = plain.sign(&plain.order(WBTC))?;
    let id = plain.execute(&signed, WBTC)?;
    for length in [0, 1, 31, 32, 33, 1024] {
        let mut stage = Stage::new()?;
        let data = Bytes::from(vec![0xd7; length]);
        let order = Order { destination_data: Some(data.clone()), domain: None, ..stage.order(WBTC) };
        assert!(order.calldata().starts_with(&hex!("4ede0ab7")));
        let receipts = stage.broadcast(&stage.sign(&order)?)?;
        let event: Htlc::InitiatedWithData = receipts[1].event(WBTC.htlc).expect("the data is logged");
        assert_eq!((event.orderId, event.destinationData), (id, data));
        assert_eq!(stage.world.order(WBTC.htlc, id)?, stage.entry());
        assert_eq!(stage.holdings(WBTC)?, plain.holdings(WBTC)?);
    }
    Ok(())
}

#[test]
fn legacy_transactions_execute_at_their_gas_price() -> TestResult {
    let mut stage = Stage::new()?;
    let wallet = FundingPath::Both(TxContext::legacy(0, 2_000_000_000));
    let signed = sign(stage.order(WBTC).unsigned(wallet, &Policy::default())?, &stage.owner)?;
    // A typed transaction begins with its type, which is below 0x80. A legacy one begins with a list header.
    assert!(transactions(&signed)?.iter().all(|raw| raw[0] >= 0xc0));
    let receipts = stage.broadcast(&signed)?;
    assert!(receipts.iter().all(|receipt| receipt.is_success() && receipt.gas_price == 2_000_000_000));
    assert_eq!(stage.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED, MINTED, 0, AMOUNT]));
    Ok(())
}

#[test]
fn the_call_cannot_run_before_its_approval_nor_twice() -> TestResult {
    let mut stage = Stage::new()?;
    let signed = stage.sign(&stage.order(WBTC))?;
    let raw = transactions(&signed)?;
    let early = stage.world.send_raw(&raw[1]).expect_err("one nonce ahead");
    assert_eq!(early.refusal(), Some(&InvalidTransaction::NonceTooHigh { tx: 1, state: 0 }));
    stage.execute(&signed, WBTC)?;
    for (again, nonce) in raw.iter().zip(0..) {
        let error = stage.world.send_raw(again).expect_err("a transaction runs once");
        assert_eq!(error.refusal(), Some(&InvalidTransaction::NonceTooLow { tx: nonce, state: 2 }));
    }
    Ok(())
}

#[test]
fn one_order_locks_funds_once_even_if_it_is_signed_again() -> TestResult {
    let mut stage = Stage::new()?;
    let order = stage.order(WBTC);
    stage.execute(&stage.sign(&order)?, WBTC)?;
    let receipts = stage.broadcast(&stage.sign(&order)?)?;
    assert_eq!(receipts[1].reverted_with(), Some(Htlc::HTLC__DuplicateOrder {}));
    assert_eq!(stage.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED, MINTED, 0, AMOUNT]));
    Ok(())
}
