//! The public API: thread safety, secrets in printed text, and the agreement of its forms.
use countersign_core::json::{self, Cursor};
use countersign_core::{Code, CreateOrder, Policy, Proposal, RequestedLeg, U256};
use countersign_evm::{
    ApprovalPlan, ApprovalStep, Call, Deposit, Evm, ExternalSignature, Fees, FundingPath, Gasless, Key, Payload, SignedOrder,
    SignedPayloads, TxContext, Unsigned, UnsignedOrder, VerifiedOrder, claim, external, message, recover,
};
use countersign_json::line::Outcome;
use countersign_testkit::{Tree, fixture, fixtures, key, registry, verified, wallet};

const CASE: &str = "evm-token-approval-exact";

#[test]
fn every_public_type_crosses_threads() {
    const fn crosses<T: Send + Sync + 'static>() {}
    crosses::<VerifiedOrder>();
    crosses::<UnsignedOrder>();
    crosses::<SignedOrder>();
    crosses::<(Deposit, Unsigned, SignedPayloads, Payload)>();
    crosses::<(Key, ExternalSignature)>();
    crosses::<(TxContext, Fees, FundingPath<TxContext>, Gasless, ApprovalPlan, ApprovalStep, Call)>();
    crosses::<(external::SendTransaction, external::SendCalls, message::Message)>();
    crosses::<(recover::Recovery, claim::Claim)>();
}

/// Cloning a verified order is cheap, because clones share their content.
#[test]
fn a_verified_order_is_shared() {
    let order = verified::<Evm>(&fixture::<Evm>(CASE));
    let clone = order.clone();
    assert!(std::ptr::eq(order.deposit(), clone.deposit()));
    assert_eq!((order.order_id(), order.summary()), (clone.order_id(), clone.summary()));
}

/// No state, key, value or outcome prints the secret key in any form.
#[test]
fn debug_shows_no_secret() {
    for case in fixtures::<Evm>().unwrap() {
        let Some(text) = case.secret_key() else { continue };
        let digits = text.trim_start_matches("0x").to_lowercase();
        let number = hex::decode(&digits).unwrap();
        let value = json::parse(case.input.as_bytes()).unwrap();
        let json_case = countersign_json::line::Case::from_value(&value).unwrap();
        let proposal = json_case.proposal().unwrap();
        let mut shown = vec![format!("{value:?} {value:#?} {json_case:?} {json_case:#?} {proposal:?}")];
        let node = json_case.wallet().unwrap();
        shown.push(format!("{node:?} {node:#?}"));
        let order = verified::<Evm>(&case);
        shown.push(format!("{order:?} {order:#?}"));
        let context = wallet::<Evm>(&case);
        shown.push(format!("{context:?} {context:#?}"));
        let key = key::<Evm>(&case);
        shown.push(format!("{key:?} {key:#?}"));
        let mut unsigned = order.prepare(context).unwrap();
        shown.push(format!("{unsigned:?} {unsigned:#?} {:?}", unsigned.requests()));
        unsigned.sign(&key).unwrap();
        shown.push(format!("{unsigned:?} {unsigned:#?}"));
        let signed = unsigned.finish().unwrap();
        shown.push(format!("{signed:?} {signed:#?} {:?} {:?}", signed.transactions(), signed.gasless()));
        let outcome = Outcome::from_line(case.input.as_bytes(), case.registry, &Policy::default());
        shown.push(format!("{outcome:?} {outcome:#?} {}", serde_json::to_string(&outcome).unwrap()));
        for text in shown {
            let text = text.to_lowercase();
            assert!(!text.contains(&digits), "{}", case.id);
            assert!(!text.contains(&format!("{number:?}")), "{}", case.id);
        }
    }
}

/// The refusal of a key contains neither the key nor a long part of it.
#[test]
fn refusals_show_no_secret() {
    let case = fixture::<Evm>(CASE);
    let good = case.secret_key().unwrap();
    for key in [
        "0x1111111111111111111111111111111111111111111111111111111111111112".to_owned(),
        format!("{good}00"),
        good[..64].to_owned(),
        good.replace("0x", "0X"),
        format!(" {good}"),
    ] {
        let mut line = case.tree();
        line.set("/wallet/secret_key", Tree::parse(&format!("\"{key}\"")));
        let outcome = Outcome::from_line(line.text().as_bytes(), case.registry, &Policy::default());
        let refusal = outcome.result.as_ref().expect_err("another key");
        assert_eq!(refusal.location(), "/wallet/secret_key");
        let mut texts = vec![refusal.to_string(), format!("{outcome:?}"), serde_json::to_string(&outcome).unwrap()];
        texts.push(match key.parse::<Key>() {
            Ok(parsed) => {
                let mut unsigned = verified::<Evm>(&case).prepare(Gasless).unwrap();
                let refusal = unsigned.sign(&parsed).unwrap_err();
                format!("{refusal} {refusal:?} {parsed:?}")
            }
            Err(error) => format!("{error} {error:?}"),
        });
        for text in texts {
            let secret: String = key.chars().filter(char::is_ascii_hexdigit).collect();
            for start in 0..secret.len() - 16 {
                assert!(!text.to_lowercase().contains(&secret[start..start + 16].to_lowercase()), "{text}");
            }
        }
    }
}

/// An order of another family is refused, whatever the response contains.
#[test]
fn an_order_of_another_family_is_refused() {
    let case = fixture::<Evm>(CASE);
    let response = case.json()["response"].to_string();
    let leg = |asset: &str, amount: u64| {
        RequestedLeg::new(asset.parse().unwrap(), "0xAE04EfaBe6775956E5BEC687f2B36B2A028cE7eB", U256::from(amount))
    };
    let mut bitcoin = leg("bitcoin:btc", 50_000);
    bitcoin.owner = None;
    let request = CreateOrder::new(bitcoin, leg("ethereum:usdc", 1));
    let refusal = countersign_evm::verify(Proposal::new(&request, response.as_bytes()), registry(), &Policy::default()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::UnsupportedFamily, "/request/source/asset"));
}

/// The typed documents and the JSON line of a case give the same order.
#[test]
fn typed_documents_and_a_json_line_are_one_order() {
    for case in fixtures::<Evm>().unwrap() {
        let line = case.tree();
        let text = |at: &str| line.at(at).map(Tree::text).filter(|text| text != "null");
        let request = CreateOrder::from_json(text("/request").unwrap().as_bytes()).unwrap();
        let (response, record) = (text("/response").unwrap(), text("/order"));
        let mut proposal = Proposal::new(&request, response.as_bytes());
        if let Some(record) = &record {
            proposal = proposal.with_record(record.as_bytes());
        }
        let typed = countersign_evm::verify(proposal, case.registry, &Policy::default()).unwrap();
        let order = verified::<Evm>(&case);
        assert_eq!((typed.order_id(), typed.summary(), typed.warnings()), (order.order_id(), order.summary(), order.warnings()));
        assert_eq!((&typed.deposit().initiate, typed.coverage()), (&order.deposit().initiate, order.coverage()));
    }
}

/// The terms of an order contain the same values as the text of the summary.
#[test]
fn terms_are_the_requests_and_the_payloads() {
    for case in fixtures::<Evm>().unwrap() {
        let line = case.json();
        let order = verified::<Evm>(&case);
        let (terms, deposit) = (order.terms(), order.deposit());
        assert_eq!(terms.order_id, line["response"]["result"]["order_id"], "{}", case.id);
        assert_eq!(terms.pay.base_units.to_string(), line["request"]["source"]["amount"]);
        assert_eq!(terms.receive.base_units.to_string(), line["request"]["destination"]["amount"]);
        assert_eq!(terms.secret_hash.unwrap().0, deposit.terms.secret_hash);
        assert_eq!(U256::from(terms.timelock.unwrap().units), deposit.terms.timelock);
        assert_eq!(terms.redeemer.unwrap().bytes(), deposit.terms.redeemer.as_slice());
        assert_eq!(terms.record.is_some(), !line["order"].is_null());
        let owner = line["request"]["source"]["owner"].as_str().unwrap().to_lowercase();
        assert_eq!(format!("0x{}", hex::encode(terms.initiator.unwrap().bytes())), owner);
    }
}

#[test]
fn a_node_of_the_wallet_is_read_by_the_adapter_alone() {
    // A `TxContext` value and the JSON of the batch give the same wallet context.
    let case = fixture::<Evm>(CASE);
    let value = json::parse(br#"{"nonce":22,"max_fee_per_gas":"30000000000","max_priority_fee_per_gas":"1000000000"}"#).unwrap();
    let read = <Evm as countersign_json::JsonFamily>::read_wallet(Cursor::root(&value, "/wallet")).unwrap();
    assert_eq!(read, FundingPath::Both(TxContext::eip1559(22, 30_000_000_000, 1_000_000_000)).into());
    assert_eq!(read, wallet::<Evm>(&case));
}
