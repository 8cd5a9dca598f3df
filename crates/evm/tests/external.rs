//! External wallets, which choose nonce, fees and gas themselves: the parameters for them, and the matching of what they sent.
use countersign_core::{Code, Policy, Role, Severity};
use countersign_evm::alloy_consensus::{
    SignableTransaction, Transaction as _, TxEip1559, TxEip2930, TxEnvelope, TxLegacy, TypedTransaction,
};
use countersign_evm::alloy_eips::eip2718::Encodable2718 as _;
use countersign_evm::alloy_primitives::{Address, Bytes, TxKind, U256, hex};
use countersign_evm::htlc::Approve;
use countersign_evm::{ApprovalPlan, ApprovalStep, Call, Evm, Gasless, Key, TxContext, VerifiedOrder};
use countersign_testkit::{TestResult, fixture, fixtures, key, received, verified, verified_under};
use serde_json::json;

const CASE: &str = "evm-token-approval-unlimited";

/// Creates the transaction of an external wallet for a call, with its own nonce, fees and gas.
fn transaction(order: &VerifiedOrder, call: &Call) -> TxEip1559 {
    TxEip1559 {
        chain_id: order.deposit().chain_id,
        nonce: 7_001,
        gas_limit: 987_654,
        max_fee_per_gas: 55_000_000_000,
        max_priority_fee_per_gas: 3_000_000_000,
        to: TxKind::Call(call.to),
        value: call.value,
        access_list: Default::default(),
        input: call.data.clone(),
    }
}

fn sign<T: SignableTransaction<countersign_evm::alloy_primitives::Signature>>(transaction: T, key: &Key) -> TxEnvelope
where
    countersign_evm::alloy_consensus::Signed<T>: Into<TxEnvelope>,
{
    let signature = key.sign(&transaction.signature_hash()).unwrap();
    transaction.into_signed(signature).into()
}

fn refused(order: &VerifiedOrder, transaction: &TxEnvelope) -> String {
    let refusal = order.matches(transaction).unwrap_err();
    assert_eq!(refusal.code(), Code::TransactionMismatch, "{refusal}");
    let (place, _) = refusal.location().split_once('#').unwrap_or((refusal.location(), ""));
    place.to_owned()
}

/// Returns the role, and the codes of what the wallet changed. Where one is more than information, the role alone is refused.
fn matched(order: &VerifiedOrder, transaction: &TxEnvelope) -> (Role, Vec<Code>) {
    let (role, warnings) = order.match_with_warnings(transaction).unwrap();
    let bytes = order.matches_bytes(&transaction.encoded_2718());
    assert_eq!(order.matches(transaction), bytes);
    match warnings.list() {
        list if list.iter().all(|warning| warning.severity() == Severity::Info) => assert_eq!(bytes, Ok(role)),
        list => {
            let refusal = bytes.unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, ""));
            assert!(list.iter().all(|warning| refusal.reason().contains(&warning.to_string())), "{refusal}");
            assert!(refusal.reason().contains("match it with warnings"), "{refusal}");
        }
    }
    (role, warnings.list().iter().map(countersign_core::Warning::code).collect())
}

fn approval(order: &VerifiedOrder, amount: U256) -> Call {
    let mut call = order.deposit().approval.as_ref().unwrap().call.clone();
    call.data = Approve { spender: order.deposit().initiate.to, amount }.encode().into();
    call
}

#[test]
fn honest_transactions_are_recognised_whatever_nonce_and_fees_they_have() -> TestResult {
    let mut seen = 0;
    for case in fixtures::<Evm>()? {
        if case.secret_key().is_none() {
            continue;
        }
        let (order, key) = (verified::<Evm>(&case), key::<Evm>(&case));
        let mut honest = vec![(order.deposit().initiate.clone(), Role::Initiate)];
        if order.deposit().approval.is_some() {
            let amount = order.deposit().terms.amount;
            let proposed = order.deposit().approval.as_ref().unwrap().signed.amount;
            honest.push((approval(&order, proposed), Role::Approval));
            honest.push((approval(&order, amount), Role::Approval));
            honest.push((approval(&order, U256::ZERO), Role::ApprovalReset));
        }
        for (call, role) in honest {
            let eip1559 = transaction(&order, &call);
            let TxEip1559 { chain_id, nonce, gas_limit, to, value, input, .. } = eip1559.clone();
            let legacy = TxLegacy { chain_id: Some(chain_id), nonce, gas_price: 9, gas_limit, to, value, input: input.clone() };
            let eip2930 = TxEip2930 { chain_id, nonce, gas_price: 9, gas_limit, to, value, input, access_list: Default::default() };
            for envelope in [sign(eip1559, &key), sign(legacy, &key), sign(eip2930, &key)] {
                assert_eq!(order.match_with_warnings(&envelope)?.0, role, "{}", case.id);
            }
            // Prepared payloads still match their order.
            if let Ok(unsigned) = order.prepare(Gasless) {
                let sent = sign(transaction(&order, &call), &key);
                assert_eq!(unsigned.matches(&sent).ok(), order.matches(&sent).ok());
            }
        }
        seen += 1;
    }
    assert!(seen > 80, "only {seen} cases");
    Ok(())
}

#[test]
fn any_other_transaction_is_refused_where_it_differs() {
    let case = fixture::<Evm>(CASE);
    let (order, key) = (verified::<Evm>(&case), key::<Evm>(&case));
    let honest = transaction(&order, &order.deposit().initiate);
    assert_eq!(order.matches(&sign(honest.clone(), &key)).unwrap(), Role::Initiate);
    let stranger = Address::repeat_byte(0x12);
    for (changed, at) in [
        (TxEip1559 { chain_id: honest.chain_id + 1, ..honest.clone() }, "/chain_id"),
        (TxEip1559 { to: TxKind::Call(stranger), ..honest.clone() }, "/to"),
        (TxEip1559 { to: TxKind::Create, ..honest.clone() }, "/to"),
        // Calldata of the HTLC, sent to the token.
        (TxEip1559 { to: TxKind::Call(order.deposit().approval.as_ref().unwrap().call.to), ..honest.clone() }, "/input"),
        (TxEip1559 { value: U256::from(1), ..honest.clone() }, "/value"),
        (TxEip1559 { input: Bytes::new(), ..honest.clone() }, "/input"),
        (TxEip1559 { input: honest.input[..honest.input.len() - 1].to_vec().into(), ..honest.clone() }, "/input"),
        (TxEip1559 { input: [&honest.input[..], &[0; 257]].concat().into(), ..honest.clone() }, "/input"),
    ] {
        assert_eq!(refused(&order, &sign(changed.clone(), &key)), at, "{changed:?}");
    }
    for index in 0..honest.input.len() {
        let mut input = honest.input.to_vec();
        input[index] ^= 1;
        assert_eq!(refused(&order, &sign(TxEip1559 { input: input.into(), ..honest.clone() }, &key)), "/input", "byte {index}");
    }
    // A legacy transaction without EIP-155 can be replayed on every chain.
    let TxEip1559 { nonce, gas_limit, to, value, input, .. } = honest.clone();
    let unprotected = TxLegacy { chain_id: None, nonce, gas_price: 9, gas_limit, to, value, input };
    assert_eq!(refused(&order, &sign(unprotected, &key)), "/chain_id");
    // The transaction of another account does not fund this order.
    let other = Key::from_bytes(&[7; 32]).unwrap();
    let refusal = order.matches(&sign(honest, &other)).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/from"));
    let text = refusal.to_string();
    assert!(text.contains(&order.deposit().sender.to_string()) && text.contains(&other.address().to_string()), "{text}");
}

#[test]
fn any_other_approval_is_refused() {
    let case = fixture::<Evm>(CASE);
    let (order, key) = (verified::<Evm>(&case), key::<Evm>(&case));
    let amount = order.deposit().terms.amount;
    for other in [amount - U256::from(1), U256::from(1)] {
        let refusal = order.matches(&sign(transaction(&order, &approval(&order, other)), &key)).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::ApprovalBelowAmount, "/input#36-68"), "{other}");
        assert_eq!(refusal.expected().unwrap().to_string(), format!("at least {amount}"));
        assert_eq!(refusal.actual().unwrap().to_string(), other.to_string());
        assert!(!refusal.to_string().contains("reset") && !refusal.to_string().contains("service"), "{refusal}");
    }
    for amount in [U256::MAX, amount, U256::ZERO] {
        let honest = approval(&order, amount);
        for index in 4..36 {
            let mut data = honest.data.to_vec();
            data[index] ^= 1;
            let mut call = honest.clone();
            call.data = data.into();
            assert_eq!(refused(&order, &sign(transaction(&order, &call), &key)), "/input", "byte {index}");
        }
        let paid = TxEip1559 { value: U256::from(1), ..transaction(&order, &honest) };
        assert_eq!(refused(&order, &sign(paid, &key)), "/value");
    }
    // If the policy accepts approvals of exactly the amount only, a larger one is refused by that name.
    let exact = Policy::from_json(br#"{"approvals":"exact"}"#).unwrap();
    let rewritten = verified_under::<Evm>(&case, case.registry, &exact).unwrap();
    for larger in [U256::MAX, amount + U256::from(1)] {
        let refusal = rewritten.matches(&sign(transaction(&rewritten, &approval(&rewritten, larger)), &key)).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::ApprovalNotExact, "/input#36-68"));
    }
    assert_eq!(rewritten.matches(&sign(transaction(&rewritten, &approval(&rewritten, amount)), &key)).unwrap(), Role::Approval);
}

/// Wallets let people edit the spending cap. More than the amount is the approval of the order, with a warning.
#[test]
fn a_larger_approval_is_the_approval_with_a_warning() {
    let case = fixture::<Evm>(CASE);
    let (order, key) = (verified::<Evm>(&case), key::<Evm>(&case));
    let amount = order.deposit().terms.amount;
    let above = vec![Code::ApprovalAboveAmount];
    for (other, role, codes) in [
        (amount, Role::Approval, vec![]),
        (amount + U256::from(1), Role::Approval, above.clone()),
        (amount * U256::from(10), Role::Approval, above.clone()),
        (U256::MAX - U256::from(1), Role::Approval, above),
        // As the service proposed it, which the order itself warns about.
        (U256::MAX, Role::Approval, vec![]),
        (U256::ZERO, Role::ApprovalReset, vec![]),
    ] {
        let sent = sign(transaction(&order, &approval(&order, other)), &key);
        assert_eq!(matched(&order, &sent), (role, codes), "{other}");
    }
    assert_eq!(order.warnings().list().iter().filter(|warning| warning.code() == Code::UnlimitedApproval).count(), 1);
    let careful = Policy::from_json(br#"{"refused_warnings":["approval_above_amount"]}"#).unwrap();
    let careful = verified_under::<Evm>(&case, case.registry, &careful).unwrap();
    let sent = sign(transaction(&careful, &approval(&careful, amount + U256::from(1))), &key);
    assert_eq!(careful.matches(&sent).unwrap_err().code(), Code::WarningRefused);
}

/// The suffix that ox 0.11.1 documents for the codes `baseapp` and `morpho` (`Attribution.toDataSuffix`, ERC-8021).
const SUFFIX: &str = "626173656170702c6d6f7270686f0e0080218021802180218021802180218021";

#[test]
fn bytes_behind_the_calldata_are_shown() {
    let case = fixture::<Evm>(CASE);
    let (order, key) = (verified::<Evm>(&case), key::<Evm>(&case));
    let amount = order.deposit().terms.amount;
    let calls = [(order.deposit().initiate.clone(), Role::Initiate), (approval(&order, amount), Role::Approval)];
    for (call, role) in calls {
        for suffix in [hex::decode(SUFFIX).unwrap(), vec![0], vec![0xab; 256]] {
            let mut call = call.clone();
            call.data = [&call.data[..], &suffix].concat().into();
            let sent = sign(transaction(&order, &call), &key);
            assert_eq!(matched(&order, &sent), (role, vec![Code::CalldataSuffix]));
            let (_, warnings) = order.match_with_warnings(&sent).unwrap();
            assert!(warnings.list()[0].to_string().contains(&hex::encode(&suffix)), "the whole suffix is shown");
        }
        // Too many, and none that would hide a change before them.
        let longer = TxEip1559 { input: [&call.data[..], &[1; 257]].concat().into(), ..transaction(&order, &call) };
        let refusal = order.matches(&sign(longer, &key)).unwrap_err();
        assert!(refusal.to_string().contains("257 bytes were appended"), "{refusal}");
        let mut data = [&call.data[..], &[1; 16]].concat();
        data[70 - 35] ^= 1;
        assert!(order.matches(&sign(TxEip1559 { input: data.into(), ..transaction(&order, &call) }, &key)).is_err());
    }
}

/// Two long texts that are cut before they differ look the same.
#[test]
fn the_refusal_shows_the_bytes_that_differ() {
    let case = fixture::<Evm>(CASE);
    let (order, key) = (verified::<Evm>(&case), key::<Evm>(&case));
    let honest = transaction(&order, &order.deposit().initiate);
    for at in [4, 99, honest.input.len() - 1] {
        let mut input = honest.input.to_vec();
        input[at] ^= 0x5a;
        let refusal = order.matches(&sign(TxEip1559 { input: input.clone().into(), ..honest.clone() }, &key)).unwrap_err();
        assert_eq!(refusal.location(), format!("/input#{at}-{}", at + 1));
        assert!(refusal.actual().unwrap().to_string().starts_with(&format!("{:02x} from byte {at} of", input[at])), "{refusal}");
    }
}

#[test]
fn native_coins_are_part_of_the_match() {
    let case = fixture::<Evm>("evm-native-typed-data");
    let (order, key) = (verified::<Evm>(&case), key::<Evm>(&case));
    let honest = transaction(&order, &order.deposit().initiate);
    assert_eq!(order.matches(&sign(honest.clone(), &key)).unwrap(), Role::Initiate);
    for value in [U256::ZERO, honest.value - U256::from(1), honest.value + U256::from(1)] {
        let refusal = order.matches(&sign(TxEip1559 { value, ..honest.clone() }, &key)).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/value"));
        assert_eq!(refusal.expected().unwrap().to_string(), honest.value.to_string());
        assert_eq!(refusal.actual().unwrap().to_string(), value.to_string());
    }
}

/// If a delegate sends for the owner, the same transaction of the owner does not match.
#[test]
fn a_delegates_order_is_matched_by_the_delegate() {
    let case = fixture::<Evm>("evm-on-behalf");
    let (order, key) = (verified::<Evm>(&case), key::<Evm>(&case));
    let honest = transaction(&order, &order.deposit().initiate);
    assert_eq!(order.matches(&sign(honest.clone(), &key)).unwrap(), Role::Initiate);
    assert_eq!(refused(&order, &sign(honest, &Key::from_bytes(&[9; 32]).unwrap())), "/from");
}

/// A recovery has no order, so no transaction matches it.
#[test]
fn a_recovery_matches_nothing() -> TestResult {
    use countersign_evm::recover::{Leg, refund};
    let case = fixture::<Evm>("evm-record-evm-v1");
    let record = countersign_testkit::recover::record::<Evm>(&case.id, |_| {})?;
    let key = key::<Evm>(&case);
    let mut unsigned = refund(&record, Leg::Source, case.registry)?.prepare(TxContext::eip1559(1, 2, 1).sent_by(key.address()))?;
    unsigned.sign(&key)?;
    let honest = {
        let order = verified::<Evm>(&case);
        sign(transaction(&order, &order.deposit().initiate), &key)
    };
    assert_eq!(unsigned.matches(&honest).unwrap_err().code(), Code::TransactionMismatch);
    // A refund does not belong to the order's funding either.
    let [refund] = unsigned.finish()?.transactions().try_into().unwrap();
    assert_eq!(refused(&verified::<Evm>(&case), &refund.native), "/input");
    Ok(())
}

fn quantity(number: impl std::fmt::LowerHex) -> String {
    format!("{number:#x}")
}

/// `eth_sendTransaction` (EIP-1474): quantities are hex without leading zeros, and there are no members that wallets do not know.
#[test]
fn send_transactions_are_what_eip_1193_wallets_take() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let line = case.json();
    let order = verified::<Evm>(&case);
    let deposit = order.deposit();
    let result = &line["response"]["result"];
    let chain_id = quantity(result["initiate_transaction"]["chain_id"].as_u64().unwrap());
    let sender = line["request"]["source"]["owner"].as_str().unwrap().to_lowercase();
    let member = |part: &str, name: &str| result[part][name].clone();
    let whole = |part: &str| {
        json!({
            "from": sender,
            "to": member(part, "to"),
            "value": "0x0",
            "gas": member(part, "gas_limit"),
            "data": member(part, "data"),
            "chainId": chain_id,
        })
    };
    let calls = deposit.send_transactions(ApprovalPlan::default());
    assert_eq!(calls.iter().map(|call| call.role).collect::<Vec<_>>(), [Role::Approval, Role::Initiate]);
    assert_eq!(serde_json::to_value(&calls)?, json!([whole("approval_transaction"), whole("initiate_transaction")]));
    let without = calls.iter().cloned().map(countersign_evm::external::SendTransaction::without_gas).collect::<Vec<_>>();
    let mut expected = [whole("approval_transaction"), whole("initiate_transaction")];
    for call in &mut expected {
        call.as_object_mut().unwrap().remove("gas");
    }
    assert_eq!(serde_json::to_value(&without)?, json!(expected));
    let calls = deposit.send_transactions(ApprovalPlan::new(ApprovalStep::AlreadyApproved));
    assert_eq!(serde_json::to_value(&calls)?, json!([whole("initiate_transaction")]));
    let calls = deposit.send_transactions(ApprovalPlan::new(ApprovalStep::Exact).with_reset());
    assert_eq!(calls.iter().map(|call| call.role).collect::<Vec<_>>(), [Role::ApprovalReset, Role::Approval, Role::Initiate]);
    let data = serde_json::to_value(&calls)?[1]["data"].as_str().unwrap().to_owned();
    assert_eq!(data, hex::encode_prefixed(Approve { spender: deposit.initiate.to, amount: deposit.terms.amount }.encode()));
    Ok(())
}

/// EIP-5792, version 2.0.0 of the parameters.
#[test]
fn send_calls_are_what_eip_5792_wallets_take() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let line = case.json();
    let deposit = verified::<Evm>(&case);
    let deposit = deposit.deposit();
    let result = &line["response"]["result"];
    let call = |part: &str| json!({ "to": result[part]["to"], "value": "0x0", "data": result[part]["data"] });
    let sent = serde_json::to_value(deposit.send_calls(ApprovalPlan::default()))?;
    assert_eq!(
        sent,
        json!({
            "version": "2.0.0",
            "chainId": quantity(result["initiate_transaction"]["chain_id"].as_u64().unwrap()),
            "from": line["request"]["source"]["owner"].as_str().unwrap().to_lowercase(),
            "atomicRequired": true,
            "calls": [call("approval_transaction"), call("initiate_transaction")],
        })
    );
    let sent = serde_json::to_value(deposit.send_calls(ApprovalPlan::new(ApprovalStep::AlreadyApproved)))?;
    assert_eq!(sent["calls"], json!([call("initiate_transaction")]));
    // There is nothing that a single call could be atomic with, and every wallet can send it.
    assert_eq!(sent["atomicRequired"], false);
    Ok(())
}

/// The application decides whether calls must be atomic. What it asks of the wallet beside the calls changes none of them.
#[test]
fn atomicity_and_capabilities_are_the_applications_choice() -> TestResult {
    let deposit = verified::<Evm>(&fixture::<Evm>(CASE));
    let deposit = deposit.deposit();
    let sent = serde_json::to_value(deposit.send_calls(ApprovalStep::Exact).without_atomicity())?;
    assert_eq!(sent["atomicRequired"], false);
    let sent = serde_json::to_value(deposit.send_calls(ApprovalStep::AlreadyApproved).requiring_atomicity())?;
    assert_eq!(sent["atomicRequired"], true);

    let plain = serde_json::to_value(deposit.send_calls(ApprovalStep::Exact))?;
    let capabilities = json!({ "paymasterService": { "url": "https://paymaster.example", "optional": true }, "atomic": [1, null, "x"] });
    let mut sent = serde_json::to_value(deposit.send_calls(ApprovalStep::Exact).with_capabilities(capabilities.clone()))?;
    assert_eq!(sent.as_object_mut().unwrap().remove("capabilities"), Some(capabilities));
    assert_eq!(sent, plain);
    Ok(())
}

/// Coins are hex quantities too, and every case's calls come through both forms unchanged.
#[test]
fn every_orders_calls_come_through_unchanged() -> TestResult {
    for case in fixtures::<Evm>()? {
        let order = verified::<Evm>(&case);
        let deposit = order.deposit();
        let calls = deposit.calls(ApprovalPlan::default());
        let transactions = serde_json::to_value(deposit.send_transactions(ApprovalPlan::default()))?;
        let batch = serde_json::to_value(deposit.send_calls(ApprovalPlan::default()))?;
        assert_eq!(batch["calls"].as_array().unwrap().len(), calls.len());
        for (index, (_, call)) in calls.iter().enumerate() {
            let expected =
                json!({ "to": call.to.to_string().to_lowercase(), "value": quantity(call.value), "data": call.data.to_string() });
            assert_eq!(batch["calls"][index], expected, "{}", case.id);
            for (name, value) in expected.as_object().unwrap() {
                assert_eq!(transactions[index][name], *value, "{}", case.id);
            }
            assert_eq!(transactions[index]["gas"], quantity(call.gas_limit), "{}", case.id);
        }
        // The transactions of a wallet that sends exactly these calls match.
        if case.secret_key().is_some() {
            let key = key::<Evm>(&case);
            for (role, call) in calls {
                let sent = sign(transaction(&order, &call), &key);
                assert_eq!((order.match_with_warnings(&sent)?.0, sent.input()), (role, &call.data), "{}", case.id);
            }
        }
    }
    Ok(())
}

/// An EIP-7702 authorization beside the right call would give a contract control over the owner's account.
#[test]
fn a_transaction_that_delegates_the_account_is_refused() -> TestResult {
    use countersign_evm::alloy_consensus::TxEip7702;
    use countersign_evm::alloy_eips::eip7702::Authorization;
    let case = fixture::<Evm>("evm-token-approval-exact");
    let (order, key) = (verified::<Evm>(&case), key::<Evm>(&case));
    let honest = transaction(&order, &order.deposit().initiate);
    let authorization = Authorization { chain_id: U256::ZERO, address: [0x33; 20].into(), nonce: honest.nonce + 1 };
    let signature = key.sign(&authorization.signature_hash())?;
    let TxEip1559 { chain_id, nonce, gas_limit, max_fee_per_gas, max_priority_fee_per_gas, value, input, .. } = honest;
    let delegating = TxEip7702 {
        chain_id,
        nonce,
        gas_limit,
        max_fee_per_gas,
        max_priority_fee_per_gas,
        to: order.deposit().initiate.to,
        value,
        access_list: Default::default(),
        authorization_list: vec![authorization.into_signed(signature)],
        input,
    };
    assert_eq!(refused(&order, &sign(delegating.clone(), &key)), "/authorization_list");
    let harmless = TxEip7702 { authorization_list: Vec::new(), ..delegating };
    assert_eq!(order.matches(&sign(harmless, &key))?, Role::Initiate);
    Ok(())
}

#[test]
fn transactions_are_matched_as_bytes() -> TestResult {
    received::bytes_are_matched::<Evm>(10, countersign_evm::alloy_eips::Encodable2718::encoded_2718, |signed| {
        TypedTransaction::from(signed.clone()).encoded_for_signing()
    })
}

/// A signer that returns the signed transaction is as good as one that returns a signature.
#[test]
fn signatures_are_taken_from_signed_transactions() -> TestResult {
    received::signatures_are_taken_from_transactions::<Evm>(10, |signed| signed.transactions().into_iter().map(|one| one.bytes).collect())
}
