//! Tests the native coin: the transaction carries the amount in its calldata.

use countersign_proofs_evm::abi::NativeHtlc;

use super::tampered::by_hand;
use super::*;

#[test]
fn the_value_is_the_amount() -> TestResult {
    for destination_data in [None, Some(Bytes::from_static(b"where to"))] {
        let mut stage = Stage::new()?;
        let signed = stage.sign(&Order { destination_data, ..stage.order(ETH) })?;
        let receipts = stage.broadcast(&signed)?;
        let [receipt] = receipts.as_slice() else { return Err("one transaction, and no approval".into()) };
        let event: Htlc::Initiated = receipt.event(ETH.htlc).expect("an initiated order is logged");
        assert_eq!(stage.world.order(ETH.htlc, event.orderId)?, stage.entry());
        assert_eq!(stage.world.native_balance_of(ETH.htlc), U256::from(AMOUNT));
        let paid = ETHER - stage.world.native_balance_of(stage.owner.address());
        assert_eq!(paid, U256::from(AMOUNT) + fee(&receipts));

        assert!(stage.relay(ETH, &Htlc::redeemCall { orderId: event.orderId, secret: SECRET.into() })?.is_success());
        assert_eq!(stage.world.native_balance_of(stage.solver), U256::from(AMOUNT));
    }
    Ok(())
}

#[test]
fn another_value_is_refused_here_as_it_is_there() -> TestResult {
    for value in [0, AMOUNT - 1, AMOUNT + 1] {
        let mut stage = Stage::new()?;
        let order = stage.order(ETH);
        let mut result = order.result();
        result["initiate_transaction"]["value"] = json!(format!("{value:#x}"));
        let refusal = order.answered(&result, stage.wallet(&stage.owner), &Policy::default()).expect_err("another value");
        assert_eq!((refusal.code(), refusal.location()), (Code::ValueMismatch, "/response/result/initiate_transaction/value"));

        let receipts = by_hand(&mut stage, &result)?;
        let expected = NativeHtlc::NativeHTLC__IncorrectFundsRecieved {};
        assert_eq!(receipts[0].reverted_with(), Some(expected));
    }
    Ok(())
}
