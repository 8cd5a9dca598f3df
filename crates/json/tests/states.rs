//! The states of an order, which are the same for every family. An order keeps its signatures until it is complete, and recognises
//! its own signed transactions.
use countersign::{Refusal, Role, UnsignedOrder};
use countersign_json::JsonFamily;
use countersign_testkit::lines::difference;
use countersign_testkit::{artefacts, fixtures, key, verified, wallet};

/// Takes every fixture from verification to the unsigned order, and those with a key to the signed order.
fn orders_are_signed_step_by_step<F: JsonFamily>() {
    let (mut whole, mut partial) = (0, 0);
    for case in fixtures::<F>().unwrap() {
        let order = verified::<F>(&case);
        assert_eq!(order.family(), F::FAMILY);
        let mut unsigned = order.prepare(wallet::<F>(&case)).unwrap();
        let ids: Vec<_> = unsigned.requests().iter().map(|request| request.id).collect();
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{}: one id for two requests: {ids:?}", case.id);
        for id in &ids {
            assert_eq!(id.name().parse(), Ok(*id));
        }
        for request in unsigned.requests() {
            assert!(!request.signer.is_empty() && !request.message.is_empty() && !request.digest.is_empty(), "{}: {request:?}", case.id);
        }
        assert!(unsigned.missing().iter().all(|id| ids.contains(id)), "{}", case.id);
        if ids.is_empty() {
            // The deposit address is paid by another wallet, so nothing is signed.
            assert_eq!(unsigned.finish().unwrap().transactions().len(), 0, "{}", case.id);
            continue;
        }
        let before = artefacts(&unsigned);
        unsigned = unfinished(unsigned);
        assert_eq!(artefacts(&unsigned), before, "{}", case.id);
        if case.secret_key().is_none() {
            continue;
        }
        let key: F::Key = key::<F>(&case);
        unsigned.sign(&key).unwrap();
        assert_eq!(difference(&case.expect()["artefacts"], &artefacts(&unsigned), ""), None, "{}", case.id);
        // A sponsor's or a service's signature may still be missing.
        if !unsigned.missing().is_empty() {
            unsigned = unfinished(unsigned);
            assert_eq!(difference(&case.expect()["artefacts"], &artefacts(&unsigned), ""), None, "{}", case.id);
            partial += 1;
            continue;
        }
        let summary = unsigned.summary();
        for line in order.summary().lines() {
            assert!(summary.lines().contains(line), "{}: {line} was in the summary before signing, and is missing", case.id);
        }
        let signed = unsigned.finish().unwrap();
        assert_eq!(signed.order_id(), case.expect()["order_id"].as_str());
        assert_eq!(signed.verified().unwrap().order_id(), order.order_id());
        let transactions = signed.transactions();
        assert!(!transactions.is_empty() || signed.gasless().is_some(), "{}: nothing to send", case.id);
        for transaction in transactions {
            assert!(!transaction.id.is_empty(), "{}", case.id);
            assert_eq!(own(&order, &transaction.native).unwrap(), transaction.role, "{}", case.id);
        }
        whole += 1;
    }
    assert!(whole > 20, "{}: {whole} orders are signed, {partial} partly", F::FAMILY);
}

fn own<F: JsonFamily>(order: &countersign::VerifiedOrder<F>, transaction: &F::Transaction) -> Result<Role, Refusal> {
    order.match_with_warnings(transaction).map(|(role, _)| role)
}

/// Requires that an order with missing signatures cannot be finished, and returns it.
fn unfinished<F: JsonFamily>(unsigned: UnsignedOrder<F>) -> UnsignedOrder<F> {
    let missing = unsigned.missing();
    let incomplete = unsigned.finish().unwrap_err();
    assert!(!missing.is_empty());
    assert_eq!(incomplete.missing(), missing);
    incomplete.into_unsigned()
}

macro_rules! each_family {
    ($($feature:literal $name:ident $family:ty;)*) => {
        $(
            #[cfg(feature = $feature)]
            #[test]
            fn $name() {
                orders_are_signed_step_by_step::<$family>();
            }
        )*
    };
}

each_family! {
    "evm" evm_orders_are_signed_step_by_step countersign::evm::Evm;
    "tron" tron_orders_are_signed_step_by_step countersign::tron::Tron;
    "starknet" starknet_orders_are_signed_step_by_step countersign::starknet::Starknet;
    "solana" solana_orders_are_signed_step_by_step countersign::solana::Solana;
    "sui" sui_orders_are_signed_step_by_step countersign::sui::Sui;
    "bitcoin" bitcoin_orders_are_signed_step_by_step countersign::bitcoin::Bitcoin;
}

/// The most that a fixture costs its signer. The figures are computed by hand from the limits in each fixture's wallet context and response.
#[cfg(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana", feature = "sui", feature = "bitcoin"))]
fn fee<F: JsonFamily>(id: &str) -> Option<String> {
    let case = fixtures::<F>().unwrap().into_iter().find(|case| case.id == id).unwrap();
    verified::<F>(&case).prepare(wallet::<F>(&case)).unwrap().network_fee().map(|fee| fee.to_string())
}

#[cfg(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana", feature = "sui", feature = "bitcoin"))]
#[test]
fn a_payment_costs_at_most_what_its_limits_allow() {
    use countersign::{bitcoin::Bitcoin, evm::Evm, solana::Solana, starknet::Starknet, sui::Sui, tron::Tron};

    let said = |fee: &'static str| Some(fee.to_owned());
    // 60000 and 300000 gas at 30 gwei, on Base.
    let evm = "at most 0.0108 of the chain's own coin, and the L1 data fee";
    assert_eq!(fee::<Evm>("evm-token-approval-exact"), said(evm));
    // 60 and 300 TRX of energy.
    assert_eq!(fee::<Tron>("tron-token-approval-exact"), said("at most 360 TRX, and what the chain burns for its bytes"));
    // Three bounds of units and their price.
    assert_eq!(fee::<Starknet>("starknet-approval-exact"), said("at most 889006417525.720732842086469795 STRK"));
    // One signature, and no priority fee.
    assert_eq!(fee::<Solana>("solana-native-legacy"), said("at most 0.000005 SOL, and the rent of the accounts that it creates"));
    // A budget of 10000000 MIST.
    assert_eq!(fee::<Sui>("sui-native"), said("at most 0.01 SUI"));
    // 120000 spent, 50000 paid, 69694 of change.
    assert_eq!(fee::<Bitcoin>("bitcoin-p2wpkh"), said("at most 0.00000306 BTC"));
    // Another wallet pays the address.
    assert_eq!(fee::<Bitcoin>("bitcoin-address"), None);
}
