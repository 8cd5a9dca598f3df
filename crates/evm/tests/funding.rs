//! Funding paths, which the wallet chooses before it needs a nonce and fees.
use countersign_core::{Code, Policy, RequestId, Role, Topic};
use countersign_evm::alloy_consensus::{Transaction as _, TxEnvelope};
use countersign_evm::alloy_primitives::{U256, hex};
use countersign_evm::htlc::Approve;
use countersign_evm::{ApprovalPlan, ApprovalStep, Evm, ExternalSignature, FundingPath, Gasless, TxContext, UnsignedOrder, VerifiedOrder};
use countersign_testkit::{Case, TestResult, artefacts, fixture, fixtures, key, verified, verified_under, wallet};
use serde_json::Value;

const CASE: &str = "evm-token-approval-exact";
const UNLIMITED: &str = "evm-token-approval-unlimited";

/// Nonce and fees of a case.
fn calls(case: &Case) -> TxContext {
    let FundingPath::Both(calls) = wallet::<Evm>(case).path else { panic!("the batch prepares both paths") };
    calls
}

fn ids(unsigned: &UnsignedOrder) -> Vec<RequestId> {
    unsigned.requests().iter().map(|request| request.id).collect()
}

fn signed(case: &Case, mut unsigned: UnsignedOrder) -> Vec<(Role, TxEnvelope)> {
    unsigned.sign(&key::<Evm>(case)).unwrap();
    unsigned.finish().unwrap().transactions().into_iter().map(|transaction| (transaction.role, transaction.native)).collect()
}

fn approve(order: &VerifiedOrder, amount: U256) -> Vec<u8> {
    Approve { spender: order.deposit().initiate.to, amount }.encode()
}

/// Returns the expected value of a field of an artefact.
fn expected(case: &Case, part: &str, member: &str) -> Value {
    case.expect()["artefacts"][part][member].clone()
}

#[test]
fn the_gasless_path_needs_neither_nonce_nor_fees() -> TestResult {
    let mut seen = 0;
    for case in fixtures::<Evm>()? {
        let expect = case.expect();
        let digest = &expect["artefacts"]["typed_data"]["digest"];
        if digest.is_null() {
            continue;
        }
        let mut unsigned = verified::<Evm>(&case).prepare(Gasless)?;
        let [request] = unsigned.requests().try_into().unwrap();
        assert_eq!((request.id, Value::from(format!("0x{}", hex::encode(&request.digest)))), (RequestId::TypedData, digest.clone()));
        let summary = unsigned.summary();
        assert_eq!(summary.about(Topic::Wallet).count(), 0, "nobody pays for gas: {summary}");
        assert_eq!(summary.about(Topic::Digest).count(), 1);
        if case.secret_key().is_none() {
            continue;
        }
        unsigned.sign(&key::<Evm>(&case))?;
        let signed = unsigned.finish()?;
        assert_eq!(signed.transactions().len(), 0);
        assert_eq!(Value::from(signed.gasless().unwrap().signature), expected(&case, "typed_data", "signature"), "{}", case.id);
        seen += 1;
    }
    assert!(seen > 60, "only {seen} gasless orders");
    Ok(())
}

/// The call of a delegate contains the owner as initiator, which no message does. A service may also offer no message at all.
#[test]
fn an_order_without_the_gasless_path_has_nothing_to_sign_for_it() -> TestResult {
    let mut seen = 0;
    for case in fixtures::<Evm>()? {
        if !expected(&case, "typed_data", "digest").is_null() {
            continue;
        }
        let order = verified::<Evm>(&case);
        let refusal = order.prepare(Gasless).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::NothingToSign, ""), "{}", case.id);
        assert!(refusal.to_string().contains("gasless"), "{refusal}");
        // The order is unchanged, and `Both` prepares only the calls.
        let both = order.prepare(FundingPath::Both(calls(&case)))?;
        let alone = order.prepare(calls(&case))?;
        assert_eq!((ids(&both), artefacts(&both)), (ids(&alone), artefacts(&alone)));
        seen += 1;
    }
    for id in ["evm-on-behalf", "evm-on-behalf-data", "evm-native-typed-data-null", "evm-native-typed-data-absent"] {
        assert_eq!(verified::<Evm>(&fixture::<Evm>(id)).prepare(Gasless).unwrap_err().code(), Code::NothingToSign, "{id}");
    }
    assert!(seen > 10, "only {seen} orders without typed data");
    Ok(())
}

#[test]
fn calls_alone_leave_the_message_out() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let unsigned = verified::<Evm>(&case).prepare(calls(&case))?;
    assert_eq!(ids(&unsigned), [RequestId::Approval, RequestId::Initiate]);
    let refusal = {
        let mut unsigned = verified::<Evm>(&case).prepare(calls(&case))?;
        unsigned.attach_text(RequestId::TypedData, expected(&case, "typed_data", "signature").as_str().unwrap()).unwrap_err()
    };
    assert_eq!(refusal.code(), Code::NothingToSign);
    let transactions = signed(&case, unsigned);
    for ((role, transaction), part) in transactions.iter().zip(["approval", "initiate"]) {
        assert_eq!((role.to_string(), Value::from(transaction.tx_hash().to_string())), (part.to_owned(), expected(&case, part, "tx_hash")));
    }
    Ok(())
}

/// The plan decides which approvals precede the call that locks the funds, and its nonce. The call itself does not change.
#[test]
fn approvals_are_sent_as_planned() -> TestResult {
    let case = fixture::<Evm>(UNLIMITED);
    let order = verified::<Evm>(&case);
    let amount = order.deposit().terms.amount;
    let plan = ApprovalPlan::new;
    for (approvals, expected) in [
        (plan(ApprovalStep::AsVerified), vec![(Role::Approval, U256::MAX)]),
        (plan(ApprovalStep::Exact), vec![(Role::Approval, amount)]),
        (plan(ApprovalStep::AsVerified).with_reset(), vec![(Role::ApprovalReset, U256::ZERO), (Role::Approval, U256::MAX)]),
        (plan(ApprovalStep::Exact).with_reset(), vec![(Role::ApprovalReset, U256::ZERO), (Role::Approval, amount)]),
        (plan(ApprovalStep::AlreadyApproved), vec![]),
        // Without an approval there is nothing to reset.
        (plan(ApprovalStep::AlreadyApproved).with_reset(), vec![]),
    ] {
        let mut wallet = calls(&case);
        let first = wallet.nonce;
        wallet.approvals = approvals;
        let [sent @ .., (last, initiate)] = &signed(&case, order.prepare(wallet)?)[..] else { panic!("a call that locks the funds") };
        let approved: Vec<_> = sent.iter().map(|(role, transaction)| (*role, transaction.input().to_vec())).collect();
        let expected: Vec<_> = expected.into_iter().map(|(role, amount)| (role, approve(&order, amount))).collect();
        assert_eq!(approved, expected, "{approvals:?}");
        for (nonce, (_, transaction)) in (first..).zip(sent) {
            assert_eq!(
                (transaction.nonce(), transaction.to()),
                (nonce, order.deposit().approval.as_ref().map(|approval| approval.call.to))
            );
        }
        assert_eq!((*last, initiate.input()), (Role::Initiate, &order.deposit().initiate.data));
        assert_eq!((initiate.nonce(), initiate.value()), (first + u64::try_from(expected.len())?, U256::ZERO));
    }
    // The builder returns the same result as the plan.
    let built = TxContext::eip1559(1, 2, 2).with_approval(ApprovalStep::Exact).with_allowance_reset();
    assert_eq!(built.approvals, plan(ApprovalStep::Exact).with_reset());
    Ok(())
}

/// Native coins need no approval, whatever the plan contains.
#[test]
fn native_coins_are_sent_with_the_call_alone() -> TestResult {
    let case = fixture::<Evm>("evm-native-typed-data");
    let order = verified::<Evm>(&case);
    for step in [ApprovalStep::AsVerified, ApprovalStep::Exact, ApprovalStep::AlreadyApproved] {
        let unsigned = order.prepare(calls(&case).with_approval(step).with_allowance_reset())?;
        let [(role, transaction)] = signed(&case, unsigned).try_into().unwrap();
        assert_eq!((role, transaction.value()), (Role::Initiate, order.deposit().terms.amount));
        assert_eq!(Value::from(transaction.tx_hash().to_string()), expected(&case, "initiate", "tx_hash"));
    }
    Ok(())
}

/// A policy that rewrites the approval decides what "as verified" means.
#[test]
fn an_approval_as_verified_is_the_policys() -> TestResult {
    let case = fixture::<Evm>(UNLIMITED);
    let policy = Policy::from_json(br#"{"approvals":"exact"}"#)?;
    let order = verified_under::<Evm>(&case, case.registry, &policy)?;
    let [(_, approval), _] = signed(&case, order.prepare(calls(&case))?).try_into().unwrap();
    assert_eq!(approval.input().to_vec(), approve(&order, order.deposit().terms.amount));
    Ok(())
}

/// Fees may change while the owner reads the summary. The verified order can be prepared again, and only the fees change.
#[test]
fn one_verified_order_is_prepared_as_often_as_fees_change() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let order = verified::<Evm>(&case);
    let first = order.prepare(calls(&case))?;
    let mut dearer = calls(&case);
    dearer.nonce += 3;
    dearer.fees = TxContext::eip1559(0, 99_000_000_000, 2_000_000_000).fees;
    let second = order.clone().prepare(dearer)?;
    let (again, legacy) = (order.prepare(calls(&case))?, order.prepare(TxContext::legacy(22, 1))?);
    assert_eq!(artefacts(&first), artefacts(&again));
    let digests = |unsigned: &UnsignedOrder| -> Vec<_> { unsigned.requests().into_iter().map(|request| request.digest).collect() };
    for other in [&second, &legacy] {
        assert!(digests(&first).iter().all(|digest| !digests(other).contains(digest)));
        assert_eq!((other.order_id(), other.warnings()), (first.order_id(), first.warnings()));
    }
    let (first, second) = (signed(&case, first), signed(&case, second));
    for ((role, one), (other_role, other)) in first.iter().zip(&second) {
        assert_eq!((role, one.to(), one.value(), one.input()), (other_role, other.to(), other.value(), other.input()));
        assert_eq!((one.nonce() + 3, one.gas_limit(), one.chain_id()), (other.nonce(), other.gas_limit(), other.chain_id()));
    }
    assert_eq!(second[0].1.max_fee_per_gas(), 99_000_000_000);
    for (_, transaction) in signed(&case, legacy) {
        assert!(transaction.is_legacy());
        assert_eq!((transaction.chain_id(), transaction.gas_price()), (Some(8453), Some(1)), "EIP-155");
    }
    Ok(())
}

/// A wallet that simulates the call can set a better gas limit than the service, within the policy.
#[test]
fn the_wallets_own_gas_limit_is_within_the_policy() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let order = verified::<Evm>(&case);
    for limit in [25_000, 123_456, 30_000_000] {
        let [(_, approval), (_, initiate)] = signed(&case, order.prepare(calls(&case).with_gas_limit(limit))?).try_into().unwrap();
        assert_eq!((approval.gas_limit(), initiate.gas_limit()), (60_000, limit), "only the call that locks the funds has it");
        // Everything else is as verified.
        assert_eq!(order.matches(&initiate)?, Role::Initiate);
    }
    for (limit, code) in
        [(21_000, Code::GasLimitTooLow), (0, Code::GasLimitTooLow), (30_000_001, Code::GasLimitTooHigh), (u64::MAX, Code::GasLimitTooHigh)]
    {
        let refusal = order.prepare(calls(&case).with_gas_limit(limit)).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (code, "/gas_limit"), "{limit}");
    }
    // 21,000 gas, and 40 for each byte of the calldata that is not zero, 10 for each zero (EIP-7623).
    let data = &order.deposit().initiate.data;
    let least = data.iter().map(|byte| if *byte == 0 { 10 } else { 40 }).sum::<u64>() + 21_000;
    assert!(order.prepare(calls(&case).with_gas_limit(least)).is_ok());
    let refusal = order.prepare(calls(&case).with_gas_limit(least - 1)).unwrap_err();
    assert_eq!(refusal.code(), Code::GasLimitTooLow);
    assert_eq!(refusal.expected().map(ToString::to_string), Some(format!("at least {least}")));
    let low = Policy::from_json(br#"{"evm_gas_limit":300000}"#)?;
    let order = verified_under::<Evm>(&case, case.registry, &low)?;
    assert!(order.prepare(calls(&case).with_gas_limit(300_000)).is_ok());
    assert_eq!(order.prepare(calls(&case).with_gas_limit(300_001)).unwrap_err().code(), Code::GasLimitTooHigh);
    Ok(())
}

#[test]
fn nonce_fees_and_chain_are_checked_where_they_are_given() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let order = verified::<Evm>(&case);
    let good = calls(&case);
    let with_nonce = |nonce| TxContext::new(nonce, good.fees);
    for (wallet, code, at) in [
        (good.clone().with_chain_id(1), Code::WalletChainMismatch, "/chain_id"),
        (TxContext::eip1559(22, 10, 11), Code::PriorityFeeAboveCap, "/max_priority_fee_per_gas"),
        (with_nonce(u64::MAX), Code::NonceLimit, "/nonce"),
        // The highest nonce is valid for the last transaction, but no transaction can follow it.
        (with_nonce(u64::MAX - 1), Code::NonceLimit, "/nonce"),
        (with_nonce(u64::MAX - 2).with_allowance_reset(), Code::NonceLimit, "/nonce"),
    ] {
        for path in [FundingPath::SelfFunded(wallet.clone()), FundingPath::Both(wallet.clone())] {
            let refusal = order.prepare(path).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (code, at), "{wallet:?}");
        }
    }
    assert!(order.prepare(good.clone().with_chain_id(8453)).is_ok());
    assert!(order.prepare(TxContext::eip1559(22, 10, 10)).is_ok());
    assert!(order.prepare(with_nonce(u64::MAX - 2)).is_ok());
    assert!(order.prepare(with_nonce(u64::MAX - 1).with_approval(ApprovalStep::AlreadyApproved)).is_ok());
    Ok(())
}

fn texts(unsigned: &UnsignedOrder, topic: Topic) -> Vec<String> {
    unsigned.summary().about(topic).map(|line| line.text.clone()).collect()
}

fn warns(unsigned: &UnsignedOrder, code: Code) -> bool {
    unsigned.warnings().list().iter().any(|warning| warning.code() == code)
}

/// The summary shows what will be signed on the chosen path, not what the response offered.
#[test]
fn the_summary_says_what_the_chosen_path_signs() -> TestResult {
    let (case, order) = (fixture::<Evm>(UNLIMITED), verified::<Evm>(&fixture::<Evm>(UNLIMITED)));
    let (calls, amount) = (calls(&case), order.deposit().terms.amount);

    let offered = order.prepare(calls.clone())?;
    assert!(texts(&offered, Topic::Approval)[0].contains("without limit") && warns(&offered, Code::UnlimitedApproval));

    let exact = order.prepare(calls.clone().with_approval(ApprovalStep::Exact))?;
    let text = format!("the HTLC may take {amount} base units, rewritten from every token of this kind, without limit");
    assert_eq!(texts(&exact, Topic::Approval), [text]);
    assert!(!warns(&exact, Code::UnlimitedApproval));

    let approved = order.prepare(calls.clone().with_approval(ApprovalStep::AlreadyApproved))?;
    assert_eq!(texts(&approved, Topic::Approval), ["none is sent: the allowance must cover the amount already"]);
    assert!(!warns(&approved, Code::UnlimitedApproval));
    assert_eq!(texts(&approved, Topic::Message), ["none: the wallet sends its own transactions"]);

    let limited = order.prepare(calls.with_gas_limit(2_900_000))?;
    assert!(texts(&limited, Topic::Gas).contains(&"initiate at most 2900000 gas".to_owned()), "{}", limited.summary());

    let gasless = order.prepare(Gasless)?;
    assert_eq!((texts(&gasless, Topic::Approval).len(), texts(&gasless, Topic::Gas).len()), (0, 0), "{}", gasless.summary());
    assert!(texts(&gasless, Topic::Message)[0].starts_with("gasless Initiate for 0x"));
    Ok(())
}

/// A contract wallet's signature cannot be proven. If the policy refuses the warning, the signature is refused, and nothing changes.
#[test]
fn a_refused_warning_is_refused_when_it_arises() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let policy = Policy::default().refusing(Code::ContractSignatureUnverified);
    let mut unsigned = verified_under::<Evm>(&case, case.registry, &policy)?.prepare(Gasless)?;
    let signature = ExternalSignature::contract(vec![1; 65])?;
    let refusal = unsigned.attach(RequestId::TypedData, signature.clone()).unwrap_err();
    assert_eq!(refusal.code(), Code::WarningRefused, "{refusal}");
    assert_eq!(unsigned.missing(), [RequestId::TypedData]);
    assert!(!warns(&unsigned, Code::ContractSignatureUnverified));

    let mut accepting = verified::<Evm>(&case).prepare(Gasless)?;
    accepting.attach(RequestId::TypedData, signature)?;
    assert!(warns(&accepting, Code::ContractSignatureUnverified));
    Ok(())
}

#[test]
fn the_cheapest_path_is_gasless_unless_an_approval_is_missing() -> TestResult {
    let with = |step| calls(&fixture::<Evm>(CASE)).with_approval(step);
    let order = verified::<Evm>(&fixture::<Evm>(CASE));
    assert_eq!(order.deposit().cheapest_path(with(ApprovalStep::AlreadyApproved)), FundingPath::Gasless);
    assert_eq!(order.deposit().cheapest_path(with(ApprovalStep::Exact)), FundingPath::Both(with(ApprovalStep::Exact)));
    let none = verified::<Evm>(&fixture::<Evm>("evm-on-behalf"));
    let approved = with(ApprovalStep::AlreadyApproved);
    assert_eq!(none.deposit().cheapest_path(approved.clone()), FundingPath::SelfFunded(approved.clone()));
    // No signature takes coins, so the message that comes with such an order leads nowhere.
    let coins = verified::<Evm>(&fixture::<Evm>("evm-native-typed-data"));
    assert!(coins.deposit().typed_data.is_some());
    assert_eq!(coins.deposit().cheapest_path(approved.clone()), FundingPath::SelfFunded(approved));
    Ok(())
}

/// The calls have later nonces than these, so they wait for them.
#[test]
fn transactions_that_are_not_mined_yet_are_said() -> TestResult {
    let case = fixture::<Evm>(CASE);
    for (unmined, expected) in [(0, None), (2, Some("2 of them, from nonce 40 on"))] {
        let context = TxContext::eip1559(42, 1_000_000_000, 1).with_unmined(unmined);
        let unsigned = verified::<Evm>(&case).prepare(context)?;
        let warning = unsigned.warnings().list().iter().find(|warning| warning.code() == Code::NonceGap);
        assert_eq!(warning.map(|warning| warning.detail()), expected.map(Some));
    }
    Ok(())
}

/// Returns the warnings about limits, of the order and as it is prepared for a wallet.
fn limits(id: &str, gas_limit: &str, context: impl Fn(TxContext) -> TxContext) -> [Vec<String>; 2] {
    let mut case = fixture::<Evm>(id);
    let mut tree = case.tree();
    tree.set("/response/result/initiate_transaction/gas_limit", countersign_testkit::Tree::parse(&format!("\"{gas_limit}\"")));
    case.input = tree.text();
    let order = verified::<Evm>(&case);
    let prepared = order.prepare(context(calls(&case))).unwrap();
    [order.warnings(), prepared.warnings()].map(|warnings| {
        let about = |warning: &&countersign_core::Warning| [Code::FeeTooLow, Code::GasLimitAboveCap].contains(&warning.code());
        warnings.list().iter().filter(about).map(ToString::to_string).collect()
    })
}

/// A limit of the service that no node takes is a warning with the figure that works, which goes away when the wallet sets a limit.
#[test]
fn a_gas_limit_that_can_never_work_is_said() {
    let [verified, prepared] = limits(CASE, "0x5208", |calls| calls);
    let [text] = verified.as_slice() else { panic!("{verified:?}") };
    assert!(text.starts_with("fee_too_low") && text.contains("21000 for the initiate") && text.contains("raise it"), "{text}");
    assert_eq!(prepared, verified);
    let [_, prepared] = limits(CASE, "0x5208", |calls| calls.with_gas_limit(300_000));
    assert!(prepared.is_empty(), "{prepared:?}");
    // EIP-7825: 2^24 gas. The case is on a chain that has it.
    let [verified, prepared] = limits(CASE, "0x1000001", |calls| calls);
    assert!(verified == prepared && verified[0].contains("16777217 gas, and at most 16777216"), "{verified:?}");
    assert_eq!(limits(CASE, "0x1000000", |calls| calls), [Vec::<String>::new(), Vec::new()]);
    let [_, prepared] = limits(CASE, "0x493e0", |calls| calls.with_gas_limit(20_000_000));
    assert_eq!(prepared.len(), 1, "{prepared:?}");
}
