//! Tests a hostile service. Each response is refused before anything is signed. If it is signed by hand anyway, the
//! owner loses what the refusal would have saved. Only this shows that the refusal matters.

use alloy_consensus::TxEip1559;
use alloy_primitives::TxKind;
use alloy_sol_types::SolStruct;
use countersign_proofs_evm::alloy_sol_types::eip712_domain;

use super::*;

sol! {
    function transfer(address to, uint256 value);
    function transferFrom(address from, address to, uint256 value);

    /// The message for `initiateWithSignature`.
    struct Initiate {
        address redeemer;
        uint256 timelock;
        uint256 amount;
        bytes32 secretHash;
    }
}

const APPROVAL: &str = "approval_transaction";
const INITIATE: &str = "initiate_transaction";

/// Signs what a response asks for, without checks, and returns the bytes.
fn blindly(stage: &Stage, result: &Value) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let transactions = [&result[APPROVAL], &result[INITIATE]].into_iter().filter(|transaction| !transaction.is_null());
    let mut signed = Vec::new();
    for (transaction, nonce) in transactions.zip(stage.world.nonce_of(stage.owner.address())..) {
        let text = |key: &str| transaction[key].as_str().ok_or("a text");
        let transaction = TxEip1559 {
            chain_id: transaction["chain_id"].as_u64().ok_or("a number")?,
            nonce,
            gas_limit: text("gas_limit")?.parse::<U256>()?.to(),
            max_fee_per_gas: 3_000_000_000,
            max_priority_fee_per_gas: 1_000_000_000,
            to: TxKind::Call(text("to")?.parse()?),
            value: text("value")?.parse()?,
            input: text("data")?.parse()?,
            ..TxEip1559::default()
        };
        signed.push(stage.owner.sign_transaction(transaction));
    }
    Ok(signed)
}

/// Signs and broadcasts what a response asks for, without checks.
pub(crate) fn by_hand(stage: &mut Stage, result: &Value) -> Result<Vec<Receipt>, Box<dyn Error>> {
    blindly(stage, result)?.iter().map(|raw| Ok(stage.world.send_raw(raw)?)).collect()
}

/// Checks that the response is refused, then executes it anyway. Returns the receipts.
fn refused_then_done(stage: &mut Stage, result: &Value, code: Code, at: &str) -> Result<Vec<Receipt>, Box<dyn Error>> {
    let (order, wallet) = (stage.order(WBTC), stage.wallet(&stage.owner));
    let refusal = order.answered(result, wallet, &Policy::default()).expect_err("a tampered answer");
    assert_eq!((refusal.code(), refusal.location()), (code, format!("/response/result/{at}").as_str()), "{refusal}");
    let receipts = by_hand(stage, result)?;
    for receipt in &receipts {
        assert!(receipt.is_success(), "{:?}", receipt.outcome);
    }
    Ok(receipts)
}

/// Returns a response with other calldata in one of its transactions.
fn answer(stage: &Stage, transaction: &str, call: &impl SolCall) -> Value {
    // Without typed data, which would disagree with the changed call.
    let mut result = Order { domain: None, ..stage.order(WBTC) }.result();
    result[transaction]["data"] = json!(hex::encode_prefixed(call.abi_encode()));
    result
}

fn terms(stage: &Stage) -> Htlc::initiate_0Call {
    let Entry { redeemer, timelock, amount, .. } = stage.entry();
    Htlc::initiate_0Call { redeemer, timelock, amount, secretHash: SECRET_HASH }
}

fn opened(receipts: &[Receipt]) -> B256 {
    let event: Htlc::Initiated = receipts.last().and_then(|last| last.event(WBTC.htlc)).expect("an initiated order is logged");
    event.orderId
}

/// The control test: for an honest response, signing by hand gives the same bytes as the library.
#[test]
fn the_blind_hand_signs_an_honest_answer_as_the_library_does() -> TestResult {
    let stage = Stage::new()?;
    for asset in [WBTC, USDT, ETH] {
        let order = stage.order(asset);
        assert_eq!(blindly(&stage, &order.result())?, transactions(&stage.sign(&order)?)?);
    }
    Ok(())
}

#[test]
fn another_recipient_contract() -> TestResult {
    let mut stage = Stage::new()?;
    let trap = stage.world.deploy(&Contract::Htlc { token: WBTC.token.ok_or("a token")?, version: "3" })?;
    let mut result = answer(&stage, APPROVAL, &Erc20::approveCall { spender: trap, value: U256::MAX });
    result[INITIATE]["to"] = json!(trap);
    refused_then_done(&mut stage, &result, Code::UnknownContract, "initiate_transaction/to")?;
    assert_eq!(stage.world.balance_of(WBTC.token.ok_or("a token")?, trap)?, U256::from(AMOUNT));
    Ok(())
}

#[test]
fn another_amount() -> TestResult {
    let mut stage = Stage::new()?;
    let call = Htlc::initiate_0Call { amount: U256::from(MINTED), ..terms(&stage) };
    let result = answer(&stage, INITIATE, &call);
    refused_then_done(&mut stage, &result, Code::AmountMismatch, "initiate_transaction/data#68-100")?;
    assert_eq!(stage.holdings(WBTC)?, tokens([0, MINTED, MINTED, 0, MINTED]));
    Ok(())
}

#[test]
fn another_redeemer() -> TestResult {
    let mut stage = Stage::new()?;
    let call = Htlc::initiate_0Call { redeemer: stage.thief.address(), ..terms(&stage) };
    let result = answer(&stage, INITIATE, &call);
    let receipts = refused_then_done(&mut stage, &result, Code::UnknownRedeemer, "initiate_transaction/data#4-36")?;
    // The owner reveals the secret by redeeming the destination.
    assert!(stage.relay(WBTC, &Htlc::redeemCall { orderId: opened(&receipts), secret: SECRET.into() })?.is_success());
    assert_eq!(stage.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED, MINTED, AMOUNT, 0]));
    Ok(())
}

#[test]
fn another_secret_hash() -> TestResult {
    let mut stage = Stage::new()?;
    // SHA-256 of 32 bytes that the solver chose, computed by `sha256sum`.
    let secret = b"countersign proofs: solver's own";
    let own = b256!("abe65bd5b998367d5873f9432ab67c4e1c02579057b3d39314a85cb6ddc81cb0");
    let call = Htlc::initiate_0Call { secretHash: own, ..terms(&stage) };
    let result = answer(&stage, INITIATE, &call);
    let receipts = refused_then_done(&mut stage, &result, Code::SecretHashMismatch, "initiate_transaction/data#100-132")?;
    // The solver does this at once, without paying the destination.
    assert!(stage.relay(WBTC, &Htlc::redeemCall { orderId: opened(&receipts), secret: secret.into() })?.is_success());
    assert_eq!(stage.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED + AMOUNT, MINTED, 0, 0]));
    Ok(())
}

#[test]
fn a_timelock_without_end() -> TestResult {
    let mut stage = Stage::new()?;
    let call = Htlc::initiate_0Call { timelock: U256::MAX >> 1, ..terms(&stage) };
    let result = answer(&stage, INITIATE, &call);
    let receipts = refused_then_done(&mut stage, &result, Code::TimelockTooLong, "initiate_transaction/data#36-68")?;
    stage.world.advance_blocks(100 * Policy::default().evm.timelock);
    let refund = stage.relay(WBTC, &Htlc::refundCall { orderId: opened(&receipts) })?;
    assert!(refund.reverted_with::<Htlc::HTLC__OrderNotExpired>().is_some(), "{:?}", refund.outcome);
    Ok(())
}

#[test]
fn another_function_that_gives_the_refund_away() -> TestResult {
    let mut stage = Stage::new()?;
    let Htlc::initiate_0Call { redeemer, timelock, amount, secretHash } = terms(&stage);
    let call = Htlc::initiateOnBehalf_0Call { initiator: stage.thief.address(), redeemer, timelock, amount, secretHash };
    let result = answer(&stage, INITIATE, &call);
    let receipts = refused_then_done(&mut stage, &result, Code::UnexpectedSelector, "initiate_transaction/data#0-4")?;
    stage.world.advance_blocks(TIMELOCK + 1);
    assert!(stage.relay(WBTC, &Htlc::refundCall { orderId: opened(&receipts) })?.is_success());
    assert_eq!(stage.holdings(WBTC)?, tokens([MINTED - AMOUNT, MINTED, MINTED, AMOUNT, 0]));
    Ok(())
}

#[test]
fn a_transfer_for_an_approval() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approved_before(WBTC, stage.owner.address(), AMOUNT)?;
    let call = transferCall { to: stage.thief.address(), value: U256::from(MINTED - AMOUNT) };
    let result = answer(&stage, APPROVAL, &call);
    refused_then_done(&mut stage, &result, Code::UnexpectedSelector, "approval_transaction/data#0-4")?;
    assert_eq!(stage.holdings(WBTC)?, tokens([0, MINTED, MINTED, MINTED - AMOUNT, AMOUNT]));
    Ok(())
}

#[test]
fn another_spender() -> TestResult {
    let mut stage = Stage::new()?;
    stage.approved_before(WBTC, stage.owner.address(), AMOUNT)?;
    let call = Erc20::approveCall { spender: stage.thief.address(), value: U256::MAX };
    let result = answer(&stage, APPROVAL, &call);
    refused_then_done(&mut stage, &result, Code::UnknownSpender, "approval_transaction/data#4-36")?;
    let (thief, owner) = (stage.thief.address(), stage.owner.address());
    let take = transferFromCall { from: owner, to: thief, value: U256::from(MINTED - AMOUNT) };
    assert!(stage.world.call(thief, WBTC.token.ok_or("a token")?, take.abi_encode(), U256::ZERO)?.is_success());
    assert_eq!(stage.holdings(WBTC)?, tokens([0, MINTED, MINTED, MINTED - AMOUNT, AMOUNT]));
    Ok(())
}

/// The call is honest, but the message next to it is not.
#[test]
fn a_message_that_disagrees_with_the_call() -> TestResult {
    let mut stage = Stage::new()?;
    let (order, wallet) = (stage.order(WBTC), stage.wallet(&stage.owner));
    let mut result = order.result();
    result["typed_data"]["message"]["amount"] = json!(format!("{MINTED:#x}"));
    let refusal = order.answered(&result, wallet, &Policy::default()).expect_err("a tampered message");
    assert_eq!((refusal.code(), refusal.location()), (Code::PayloadsDisagree, "/response/result/typed_data/message/amount"));

    stage.approved_before(WBTC, stage.owner.address(), MINTED)?;
    let Htlc::initiate_0Call { redeemer, timelock, secretHash, .. } = terms(&stage);
    let (amount, initiator) = (U256::from(MINTED), stage.owner.address());
    let domain = eip712_domain! { name: "HTLC", version: "3", chain_id: WBTC.chain_id, verifying_contract: WBTC.htlc, };
    let digest = Initiate { redeemer, timelock, amount, secretHash }.eip712_signing_hash(&domain);
    let signature = stage.owner.sign_digest(digest).as_bytes().into();
    let call = Htlc::initiateWithSignatureCall { initiator, redeemer, timelock, amount, secretHash, signature };
    assert!(stage.relay(WBTC, &call)?.is_success());
    assert_eq!(stage.holdings(WBTC)?, tokens([0, MINTED, MINTED, 0, MINTED]));
    Ok(())
}
