//! The facade: the states of one family convert into those of any family and return the same values, and a family that is not
//! built is refused.
use std::error::Error;

use countersign::{
    AssetId, Code, CreateOrder, FAMILIES, Family, GaslessSubmission, Incomplete, OrderRecord, Payload, Policy, Proposal, Refusal, Registry,
    RequestId, SecretHash, Signed, SigningRequest, Summary, Transaction, Unsigned, Verified, Warnings,
    report::{OrderTerms, ParseError},
    verify, verify_record,
};
use countersign_testkit::lines::{accepted, accepted_case, with_fixtures};
use countersign_testkit::{Case, Tree, registry};

/// The typed request and the texts of a case.
struct Documents {
    request: CreateOrder,
    response: String,
    record: Option<String>,
}

impl Documents {
    fn from_case(case: &Case) -> Self {
        Self::from_tree(&case.tree())
    }

    fn from_tree(line: &Tree) -> Self {
        let text = |at: &str| line.at(at).map(Tree::text).filter(|text| text != "null");
        Self {
            request: CreateOrder::from_json(text("/request").unwrap().as_bytes()).unwrap(),
            response: text("/response").unwrap(),
            record: text("/order"),
        }
    }

    fn proposal(&self) -> Proposal<'_> {
        let proposal = Proposal::new(&self.request, self.response.as_bytes());
        match &self.record {
            Some(record) => proposal.with_record(record.as_bytes()),
            None => proposal,
        }
    }

    fn verify(&self) -> Result<Verified, Refusal> {
        verify(self.proposal(), registry(), &Policy::default())
    }
}

#[test]
fn every_public_type_crosses_threads() {
    const fn crosses<T: Send + Sync>() {}
    crosses::<Proposal<'static>>();
    crosses::<Verified>();
    crosses::<Unsigned>();
    crosses::<Signed>();
    crosses::<Incomplete>();
    crosses::<SigningRequest<Payload>>();
    crosses::<(Transaction, RequestId, GaslessSubmission)>();
    crosses::<OrderTerms<'static>>();
    crosses::<(CreateOrder, OrderRecord, Registry, Policy)>();
    crosses::<(Refusal, ParseError, Summary, Warnings)>();
    crosses::<countersign::json::Value<'static>>();
    crosses::<(SecretHash, AssetId)>();
}

#[test]
fn every_error_is_a_standard_error() {
    const fn is_error<T: Error + Send + Sync + 'static>() {}
    is_error::<Refusal>();
    is_error::<ParseError>();
    is_error::<Incomplete>();
    // Question marks reach any caller's error type.
    fn parse(text: &str) -> Result<AssetId, Box<dyn Error + Send + Sync>> {
        Ok(text.parse()?)
    }
    assert_eq!(parse("bitcoin:btc").unwrap().as_str(), "bitcoin:btc");
    let error = parse("Bitcoin").unwrap_err();
    assert_eq!(error.downcast_ref::<ParseError>().unwrap().code(), Code::AssetIdMalformed);
}

/// Typed documents go to the family of the source asset, and say what they say.
#[test]
fn documents_of_every_family_are_verified_by_their_own_family() {
    for family in with_fixtures(FAMILIES) {
        let mut with_record = 0;
        for case in accepted(family) {
            let documents = Documents::from_case(&case);
            let order = documents.verify().unwrap_or_else(|refusal| panic!("{}: {refusal}", case.id));
            let expect = case.expect();
            assert_eq!((order.family(), order.family().name()), (family, expect["family"].as_str().unwrap()), "{}", case.id);
            assert_eq!(order.order_id(), expect["order_id"], "{}", case.id);
            let terms = order.terms();
            assert_eq!((terms.order_id, terms.family), (order.order_id(), family));
            assert_eq!(terms.pay.base_units, documents.request.source.amount);
            assert_eq!(terms.receive.base_units, documents.request.destination.amount);
            assert_eq!(terms.record.is_some(), documents.record.is_some());
            assert!(!order.summary().lines().is_empty() && !order.coverage().is_empty(), "{}", case.id);
            let clone = order.clone();
            assert_eq!((clone.summary(), clone.warnings(), clone.coverage()), (order.summary(), order.warnings(), order.coverage()));
            // The record of an order in progress is judged by the same rules.
            match verify_record(documents.proposal(), registry(), &Policy::default()) {
                Ok(countersign::VerifiedRecord { record, .. }) => {
                    assert_eq!(record.order_id, order.order_id());
                    with_record += 1;
                }
                Err(refusal) => assert_eq!((refusal.code(), refusal.location()), (Code::MissingField, "/order"), "{}", case.id),
            }
        }
        assert!(with_record > 0, "{family}: no record");
    }
}

/// The source asset's pinned chain decides the family, never the shape of the response.
#[test]
fn a_family_without_code_is_unsupported() {
    for (asset, family, owner) in [
        ("base:cbbtc", Family::Evm, "0x6BEe096D56DCfa2a38e9F21FcaecbaB8D21D5aa5"),
        ("tron:trx", Family::Tron, "TSfPmyuqPyAJaXPBMe4RSvV3Lj2kyT1xzc"),
        ("sui:sui", Family::Sui, "0x79a1582388c16d0ab85904f320eb0527481391a9b9ab4b2ab46adc4c2564f9d0"),
        ("solana:sol", Family::Solana, "YH4btvqb4JBWSEJh22MuA231ekpJ5JqbBXQY1apJtKH"),
        ("starknet:strk", Family::Starknet, "0x00609190b1348bcc06da44d58c79709495c11a5a6f0b9e154e1209f2a17dd933"),
    ] {
        // A response of other families' shape.
        for base in ["evm-token-approval-exact", "bitcoin-address", "solana-native-legacy"] {
            if base.starts_with(family.name()) {
                continue;
            }
            let mut line = accepted_case("evm-token-approval-exact").tree();
            line.set("/response", accepted_case(base).tree().at("/response").unwrap().clone());
            line.set("/request/source/asset", Tree::parse(&format!("\"{asset}\"")));
            line.set("/request/source/owner", Tree::parse(&format!("\"{owner}\"")));
            let refusal = Documents::from_tree(&line).verify().map(|_| ()).unwrap_err();
            if FAMILIES.contains(&family) {
                // Its own code judges it then, and finds no payload of its own.
                assert_ne!(refusal.code(), Code::UnsupportedFamily, "{asset}: {refusal}");
            } else {
                assert_eq!((refusal.code(), refusal.location()), (Code::UnsupportedFamily, "/request/source/asset"), "{asset}: {refusal}");
            }
        }
    }
}

/// Orders of families that this build lacks are refused as that, whatever they say, and their records too.
#[test]
fn every_order_of_a_family_that_is_not_built_is_unsupported() {
    for family in Family::ALL.iter().copied().filter(|family| !FAMILIES.contains(family)) {
        for case in accepted(family) {
            let documents = Documents::from_case(&case);
            let refusal = documents.verify().map(|_| ()).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::UnsupportedFamily, "/request/source/asset"), "{}", case.id);
            assert_eq!(refusal.blame(), countersign::Blame::Unsupported);
            let refusal = verify_record(documents.proposal(), registry(), &Policy::default()).map(|_| ()).unwrap_err();
            assert_eq!(refusal.code(), Code::UnsupportedFamily, "{}", case.id);
        }
    }
}

#[test]
fn what_is_not_pinned_is_refused_by_name() {
    let case = accepted_case("evm-token-approval-exact");
    let source = "/request/source/asset";
    let refusal = |asset: &str, registry: &Registry| {
        let mut line = case.tree();
        line.set(source, Tree::parse(&format!("\"{asset}\"")));
        let refusal = verify(Documents::from_tree(&line).proposal(), registry, &Policy::default()).map(|_| ()).unwrap_err();
        (refusal.code(), refusal.location().to_owned())
    };
    assert_eq!(refusal("nowhere:coin", registry()), (Code::UnknownChain, source.to_owned()));
    assert_eq!(refusal("base:nothing", registry()), (Code::UnknownAsset, source.to_owned()));
    // A chain that is known by name, but not pinned.
    let empty = Registry::from_json(br#"{"chains":[],"assets":[],"solvers":[]}"#).unwrap();
    assert_eq!(refusal("base:cbbtc", &empty), (Code::UnknownAsset, source.to_owned()));
    assert_eq!(empty.family("base"), Ok(Family::Evm));
    assert_eq!(empty.family("nowhere").map_err(ParseError::code), Err(Code::UnknownChain));
}

#[cfg(feature = "evm")]
mod with_evm {
    //! The whole flow through the facade, and that a family's own states are its states.

    use countersign::evm::{self, FundingPath, TxContext};
    use countersign::{Key, Role, SignedTransaction};

    use super::*;

    const CASE: &str = "evm-token-approval-exact";

    fn prepared(case: &Case, path: impl Into<FundingPath<TxContext>>) -> Unsigned {
        let Verified::Evm(order) = Documents::from_case(case).verify().unwrap() else { panic!("the wrong family") };
        let path: FundingPath<TxContext> = path.into();
        order.prepare(path).unwrap().into()
    }

    fn calls() -> TxContext {
        TxContext::eip1559(22, 30_000_000_000, 1_000_000_000)
    }

    #[test]
    fn the_whole_flow_without_naming_a_family_but_once() {
        let case = accepted_case(CASE);
        let mut unsigned = prepared(&case, FundingPath::Both(calls()));
        assert_eq!((unsigned.family(), unsigned.order_id()), (Family::Evm, case.expect()["order_id"].as_str()));
        let requests = unsigned.requests();
        assert_eq!(requests.iter().map(|request| request.id).collect::<Vec<_>>(), unsigned.missing());
        assert!(requests.iter().all(|request| matches!(request.payload, Payload::Evm(_))));
        assert!(unsigned.summary().to_string().contains(&hex::encode(&requests[0].digest)));

        let incomplete = unsigned.finish().unwrap_err();
        assert_eq!(incomplete.missing().len(), 3);
        assert!(incomplete.to_string().contains("approval, initiate, typed_data"), "{incomplete}");
        unsigned = incomplete.into_unsigned();
        unsigned.sign(&Key::parse(Family::Evm, &case.secret_key().unwrap()).unwrap()).unwrap();
        assert_eq!(unsigned.missing(), []);
        let signed = unsigned.finish().unwrap();
        assert_eq!(signed.order_id(), case.expect()["order_id"].as_str());
        let expect = &case.expect()["artefacts"];
        let order = Documents::from_case(&case).verify().unwrap();
        assert_eq!(order.matches_bytes(b"").unwrap_err().code(), Code::TransactionMismatch);
        for SignedTransaction { role, id, bytes, native, .. } in signed.transactions() {
            assert_eq!(order.matches_bytes(&bytes), Ok(role));
            let Transaction::Evm(native) = native else { panic!("the wrong family") };
            let part = &expect[role.to_string()];
            assert_eq!(
                (id.as_str(), format!("0x{}", hex::encode(bytes)).as_str()),
                (part["tx_hash"].as_str().unwrap(), part["signed"].as_str().unwrap())
            );
            assert_eq!(native.tx_hash().to_string(), id);
        }
        assert_eq!(signed.gasless().unwrap().signature, expect["typed_data"]["signature"]);
    }

    #[test]
    fn signatures_in_text_are_proven_one_by_one() {
        let case = accepted_case(CASE);
        let signature = case.expect()["artefacts"]["typed_data"]["signature"].as_str().unwrap().to_owned();
        let mut unsigned = prepared(&case, evm::Gasless);
        assert_eq!(unsigned.missing(), [RequestId::TypedData]);
        for (id, text, code) in [
            (RequestId::Initiate, signature.as_str(), Code::NothingToSign),
            (RequestId::TypedData, "0x", Code::SignatureMalformed),
            (RequestId::TypedData, &"11".repeat(65)[..128], Code::SignatureMismatch),
        ] {
            let refusal = unsigned.attach_text(id, text).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (code, ""), "{id}");
            assert_eq!(unsigned.missing(), [RequestId::TypedData]);
        }
        unsigned.attach_text(RequestId::TypedData, &signature).unwrap();
        let signed = unsigned.finish().unwrap();
        assert_eq!((signed.transactions().len(), signed.gasless().unwrap().signature), (0, signature));
    }

    #[test]
    fn a_key_that_is_none_is_never_repeated() {
        let secret = "63822b05d67ab80da6f2055ccc95d1522d984f040566dd5c90a1e27607948";
        let refusal = Key::parse(Family::Evm, secret).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::KeyMalformed, ""));
        assert!(!format!("{refusal} {refusal:?}").contains(&secret[..8]));
    }

    /// A state of one family goes where a state of any family is wanted.
    #[test]
    fn a_familys_states_are_the_facades() {
        let case = accepted_case(CASE);
        let documents = Documents::from_case(&case);
        let order = evm::verify(documents.proposal(), registry(), &Policy::default()).unwrap();
        let any = Verified::from(order.clone());
        assert_eq!((any.summary(), any.order_id()), (order.summary(), order.order_id()));
        let mut unsigned = order.prepare(calls()).unwrap();
        unsigned.sign(&case.secret_key().unwrap().parse().unwrap()).unwrap();
        let signed = unsigned.finish().unwrap();
        let roles: Vec<_> = signed.transactions().iter().map(|transaction| transaction.role).collect();
        assert_eq!(roles, [Role::Approval, Role::Initiate]);
        let any = Signed::from(signed);
        assert_eq!(any.transactions().iter().map(|transaction| transaction.role).collect::<Vec<_>>(), roles);
    }
}

#[test]
fn terms_serialize_for_a_wallets_own_interface() -> Result<(), Box<dyn Error>> {
    let documents = accepted(Family::Evm).iter().map(Documents::from_case).find(|documents| documents.record.is_some()).unwrap();
    let order = documents.verify()?;
    let (terms, shown) = (order.terms(), serde_json::to_value(order.terms())?);
    assert_eq!(shown["family"], "evm");
    assert_eq!(shown["source"], terms.source.to_string());
    assert_eq!(shown["pay"]["base_units"], terms.pay.base_units.to_string());
    assert_eq!(shown["timelock"]["unit"], "blocks");
    assert_eq!(shown["redeemer"], terms.redeemer.unwrap().to_string());
    assert_eq!(shown["record"]["order_id"], terms.order_id);
    let record = verify_record(documents.proposal(), registry(), &Policy::default())?;
    let leg = serde_json::to_value(&record.terms.destination)?;
    assert_eq!(leg["amount"], record.terms.destination.amount.to_string());
    assert_eq!(
        (leg["asset"].as_str(), leg["timelock"].as_u64()),
        (Some(terms.destination.as_str()), Some(record.terms.destination.timelock))
    );
    Ok(())
}
