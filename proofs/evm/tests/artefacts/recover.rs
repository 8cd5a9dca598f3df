//! Tests recovery from an order record alone.

use alloy_consensus::TxEip1559;
use alloy_primitives::TxKind;
use countersign::OrderRecord;
use countersign::evm::recover::{self, Leg, Recovery};

use super::order::registry;
use super::*;

/// An order that is paid on both sides.
struct Paid {
    source: Stage,
    payout: Stage,
    order: Order,
}

impl Paid {
    /// The swap ids are those under which the contracts hold the order. Each is taken from a copy of its chain.
    fn new(asset: Asset) -> Result<Self, Box<dyn Error>> {
        let (mut source, mut payout) = (Stage::new()?, Stage::payout()?);
        let mut order = source.order(asset);
        let mut ahead = Stage { world: source.world.clone(), ..Stage::new()? };
        let source_id = ahead.execute(&ahead.sign(&order)?, asset)?;

        payout.approved_before(CBBTC, payout.solver, PAYOUT)?;
        let (owner, solver) = (payout.owner.address(), payout.solver);
        let timelock = U256::from(PAYOUT_TIMELOCK);
        let call = Htlc::initiate_0Call { redeemer: owner, timelock, amount: U256::from(PAYOUT), secretHash: SECRET_HASH };
        let receipt = payout.world.call(solver, CBBTC.htlc, call.abi_encode(), U256::ZERO)?;
        let event: Htlc::Initiated = receipt.event(CBBTC.htlc).expect("an initiated order is logged");

        // With a record, the library requires both ids to follow from it.
        order.swap_ids = Some([source_id, event.orderId]);
        let signed = source.sign(&order)?;
        assert!(signed.warnings().list().iter().all(|warning| warning.code() != Code::NoOrderRecord));
        assert_eq!(source.execute(&signed, asset)?, source_id);
        Ok(Self { source, payout, order })
    }

    fn record(&self) -> Result<OrderRecord, Refusal> {
        read(&self.order.record())
    }
}

fn read(record: &Value) -> Result<OrderRecord, Refusal> {
    OrderRecord::from_json(record.to_string().as_bytes())
}

/// Signs a recovery, checks that the bytes equal those signed by hand, and broadcasts them.
fn send(stage: &mut Stage, recovery: &Recovery, signer: &Account) -> Result<Receipt, Box<dyn Error>> {
    assert_eq!(recovery.chain_id(), stage.world.chain_id());
    let transaction = TxEip1559 {
        chain_id: recovery.chain_id(),
        nonce: stage.world.nonce_of(signer.address()),
        gas_limit: recovery.call().gas_limit,
        max_fee_per_gas: 3_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to: TxKind::Call(recovery.call().to),
        value: recovery.call().value,
        input: recovery.call().data.clone(),
        ..TxEip1559::default()
    };
    let by_hand = signer.sign_transaction(transaction);
    let signed = sign(recovery.prepare(stage.calls(signer).sent_by(signer.address()))?, signer)?;
    let [transaction] = signed.transactions().try_into().map_err(|_| "one transaction")?;
    assert_eq!((transaction.role, &transaction.bytes), (recovery.terms().role, &by_hand));
    Ok(stage.world.send_raw(&by_hand)?)
}

#[test]
fn the_secret_pays_the_redeemer_of_each_side() -> TestResult {
    let Paid { mut source, mut payout, order } = Paid::new(WBTC)?;
    let (record, registry) = (read(&order.record())?, registry()?);
    let [source_id, payout_id] = order.swap_ids.ok_or("both sides are paid")?;

    let recovery = recover::redeem(&record, Leg::Destination, SECRET, &registry)?;
    assert_eq!((recovery.swap_id(), recovery.to(), recovery.terms().amount), (payout_id.0, payout.owner.address(), U256::from(PAYOUT)));
    let owner = payout.owner.clone();
    let receipt = send(&mut payout, &recovery, &owner)?;
    let event: Htlc::Redeemed = receipt.event(CBBTC.htlc).expect("a redemption is logged");
    assert_eq!((event.orderId, event.secret), (payout_id, SECRET.into()));
    assert_eq!(payout.holdings(CBBTC)?, tokens([MINTED + PAYOUT, MINTED - PAYOUT, MINTED, 0, 0]));

    // The secret is now public, and the solver uses it. The sender gets nothing, whoever it is.
    let recovery = recover::redeem(&record, Leg::Source, SECRET, &registry)?;
    assert_eq!((recovery.swap_id(), recovery.to()), (source_id.0, source.solver));
    let thief = source.thief.clone();
    assert!(send(&mut source, &recovery, &thief)?.is_success());
    assert_eq!(source.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED + AMOUNT, MINTED, 0, 0]));
    Ok(())
}

#[test]
fn another_secret_is_refused_here_as_it_is_there() -> TestResult {
    let paid = Paid::new(WBTC)?;
    let mut payout = paid.payout;
    let (record, registry) = (read(&paid.order.record())?, registry()?);
    let mut wrong = *SECRET;
    wrong[31] ^= 1;
    let refusal = recover::redeem(&record, Leg::Destination, &wrong, &registry).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/destination_swap/secret_hash"));

    let recovery = recover::redeem(&record, Leg::Destination, SECRET, &registry)?;
    let call = Htlc::redeemCall { orderId: recovery.swap_id().into(), secret: wrong.into() };
    let receipt = payout.world.call(payout.owner.address(), recovery.call().to, call.abi_encode(), U256::ZERO)?;
    assert_eq!(receipt.reverted_with(), Some(Htlc::HTLC__IncorrectSecret {}));
    Ok(())
}

#[test]
fn the_refund_pays_the_owner_once_the_timelock_has_run() -> TestResult {
    let paid = Paid::new(WBTC)?;
    let (recovery, mut stage) = (recover::refund(&paid.record()?, Leg::Source, &registry()?)?, paid.source);
    assert_eq!((recovery.to(), recovery.terms().amount), (stage.owner.address(), U256::from(AMOUNT)));
    let thief = stage.thief.clone();
    for wait in [0, 1, TIMELOCK - 1] {
        stage.world.advance_blocks(wait);
        let early = Htlc::HTLC__OrderNotExpired {};
        assert_eq!(send(&mut stage, &recovery, &thief)?.reverted_with(), Some(early));
    }
    stage.world.advance_blocks(1);
    let receipt = send(&mut stage, &recovery, &thief)?;
    assert_eq!(receipt.event(WBTC.htlc), Some(Htlc::Refunded { orderId: recovery.swap_id().into() }));
    assert_eq!(stage.holdings(WBTC)?, tokens([MINTED, MINTED, MINTED, 0, 0]));
    assert!(send(&mut stage, &recovery, &thief)?.reverted_with::<Htlc::HTLC__OrderFulfilled>().is_some());
    Ok(())
}

#[test]
fn native_coins_and_stubborn_tokens_come_back_too() -> TestResult {
    let registry = registry()?;
    let Paid { source: mut stage, order, .. } = Paid::new(USDT)?;
    let recovery = recover::refund(&read(&order.record())?, Leg::Source, &registry)?;
    stage.world.advance_blocks(TIMELOCK + 1);
    let owner = stage.owner.clone();
    assert!(send(&mut stage, &recovery, &owner)?.is_success());
    assert_eq!(stage.holdings(USDT)?, tokens([MINTED, MINTED, MINTED, 0, 0]));

    let Paid { source: mut stage, order, .. } = Paid::new(ETH)?;
    let record = read(&order.record())?;
    let mut redeemed = Stage { world: stage.world.clone(), ..Stage::new()? };
    let before = redeemed.world.native_balance_of(redeemed.solver);
    assert!(send(&mut redeemed, &recover::redeem(&record, Leg::Source, SECRET, &registry)?, &owner)?.is_success());
    assert_eq!(redeemed.world.native_balance_of(redeemed.solver), before + U256::from(AMOUNT));

    stage.world.advance_blocks(TIMELOCK + 1);
    let (before, recovery) = (stage.world.native_balance_of(owner.address()), recover::refund(&record, Leg::Source, &registry)?);
    let thief = stage.thief.clone();
    assert!(send(&mut stage, &recovery, &thief)?.is_success());
    assert_eq!(stage.world.native_balance_of(owner.address()), before + U256::from(AMOUNT));
    Ok(())
}

/// The contract identifies an order by its terms. A record with other terms cannot lead to it.
#[test]
fn a_record_that_contradicts_itself_is_refused() -> TestResult {
    let paid = Paid::new(WBTC)?;
    let registry = registry()?;
    let changes = [
        ("amount", json!((AMOUNT + 1).to_string())),
        ("timelock", json!(TIMELOCK + 1)),
        ("initiator", json!(paid.source.thief.address())),
        ("redeemer", json!(paid.source.thief.address())),
        ("swap_id", json!("00".repeat(32))),
    ];
    for (member, value) in changes {
        let mut record = paid.order.record();
        record["source_swap"][member] = value;
        let refusal = recover::refund(&read(&record)?, Leg::Source, &registry).expect_err(member);
        assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/source_swap/swap_id"));
    }
    Ok(())
}

/// The record is coherent, which is all that can be seen without the chain. The contract has no such order.
#[test]
fn the_record_of_an_order_that_nobody_paid_opens_nothing() -> TestResult {
    let Paid { mut source, mut order, .. } = Paid::new(WBTC)?;
    let mut ahead = Stage { world: source.world.clone(), ..Stage::new()? };
    ahead.approved_before(WBTC, ahead.delegate.address(), AMOUNT)?;
    let Entry { initiator, redeemer, timelock, amount, .. } = source.entry();
    let call = Htlc::initiateOnBehalf_0Call { initiator, redeemer, timelock: timelock + U256::ONE, amount, secretHash: SECRET_HASH };
    let receipt = ahead.world.call(ahead.delegate.address(), WBTC.htlc, call.abi_encode(), U256::ZERO)?;
    let event: Htlc::Initiated = receipt.event(WBTC.htlc).expect("an initiated order is logged");

    order.swap_ids = order.swap_ids.map(|[_, payout]| [event.orderId, payout]);
    let mut record = order.record();
    record["source_swap"]["timelock"] = json!(TIMELOCK + 1);
    let recovery = recover::refund(&read(&record)?, Leg::Source, &registry()?)?;
    assert_eq!(recovery.swap_id(), event.orderId.0);
    source.world.advance_blocks(TIMELOCK + 2);
    let owner = source.owner.clone();
    let receipt = send(&mut source, &recovery, &owner)?;
    assert_eq!(receipt.reverted_with(), Some(Htlc::HTLC__OrderNotInitiated {}));
    assert_eq!(source.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED, MINTED, 0, AMOUNT]));
    Ok(())
}
