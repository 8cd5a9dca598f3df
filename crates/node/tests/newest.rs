//! The newest block of a chain of each family, as enough endpoints show it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test ends by panicking"
)]

mod support;

use countersign::chains::{BitcoinNet, Coin, Network};
use countersign::reader::{Drive as _, HeadReader, Known};
use countersign::{Code, HeadDoubt};
use countersign_node::NodeError;
use serde_json::json;
use support::{Chain, LATEST, NOW, nodes, terms};

/// The newest blocks of the endpoints: seconds before the caller's clock, and `None` for one that fails.
fn chain(ages: &'static [Option<i64>]) -> Chain {
    let honest = Chain::funded(&terms().destination);
    Chain::funded(&terms().destination).lying(move |host, method, _| {
        let age = ages[usize::from(host.as_bytes()[0] - b'a')];
        (method == "eth_getBlockByNumber").then(|| match age {
            Some(age) => {
                let mut block = honest.block(honest.latest);
                block["timestamp"] = json!(format!("{:#x}", NOW.checked_add_signed(-age).unwrap()));
                block
            }
            None => json!({"error": {"code": -32_000, "message": "missing trie node"}}),
        })
    })
}

async fn newest(ages: &'static [Option<i64>]) -> Result<u64, NodeError> {
    let head = nodes(chain(ages), ages.len()).newest_block("ethereum", NOW).await?;
    assert_eq!(head.height, LATEST);
    Ok(NOW.saturating_sub(head.time))
}

#[tokio::test]
async fn the_newest_block_is_the_one_that_enough_endpoints_have_reached() {
    assert_eq!(newest(&[Some(5)]).await.unwrap(), 5);
    assert_eq!(newest(&[Some(5), Some(9)]).await.unwrap(), 9);
    // Of three, one that is stale, in the future, broken or silent changes nothing.
    for ages in [
        &[Some(5), Some(9), Some(2_400)],
        &[Some(2_400), Some(5), Some(9)],
        &[Some(-1_000_000), Some(5), Some(9)],
        &[None, Some(9), Some(5)],
    ] {
        assert!(newest(ages).await.unwrap() <= 9, "{ages:?}");
    }
    for (ages, code) in [
        (&[Some(5), None][..], "node_disagree"),
        (&[None], "node_error"),
        (&[Some(121)], "chain_stale"),
        (&[Some(5), Some(2_400)], "chain_stale"),
        (&[Some(5), Some(2_400), Some(2_400)], "chain_stale"),
        (&[Some(-61)], "chain_ahead"),
        (&[Some(-61), Some(-90), Some(5)], "chain_ahead"),
    ] {
        let ages: &'static [_] = ages;
        let error = newest(ages).await.unwrap_err();
        assert_eq!(error.code(), code, "{ages:?}: {error}");
    }
    assert_eq!(newest(&[Some(120)]).await.unwrap(), 120);
    assert_eq!(newest(&[Some(-60)]).await.unwrap(), 0);
    let error = newest(&[Some(2_400)]).await.unwrap_err();
    assert!(matches!(&error, NodeError::Head { chain, doubt: HeadDoubt::Old { seconds: 2_400, limit: 120 } } if chain == "ethereum"));
    assert!(error.is_transient() && error.to_string().starts_with("ethereum: the newest block is 2400 s old"), "{error}");
    let error = newest(&[Some(-75)]).await.unwrap_err();
    assert!(error.to_string().contains("75 s ahead of the clock of this machine: correct the clock"), "{error}");
    let missing = nodes(chain(&[Some(5)]), 1).newest_block("base", NOW).await.unwrap_err();
    assert_eq!(missing.code(), "not_connected");
}

#[tokio::test]
async fn an_endpoint_of_another_chain_has_no_newest_block() {
    let other = chain(&[Some(5)]).with(|evm| evm.chain_id = 10);
    assert_eq!(nodes(other, 1).newest_block("ethereum", NOW).await.unwrap_err().code(), "node_wrong_chain");
}

/// One round for every family, besides the RPC of a Bitcoin-like node.
#[test]
fn every_family_has_a_newest_block() {
    let networks = [
        (Network::Evm(1), "ethereum"),
        (Network::Tron(728_126_428), "tron"),
        (Network::Starknet("SN_MAIN".to_owned()), "starknet"),
        (Network::Solana("mainnet".to_owned()), "solana"),
        (Network::Sui("mainnet".to_owned()), "sui"),
        (Network::Bitcoin(Coin::Bitcoin, BitcoinNet::Main), "bitcoin"),
        (Network::Bitcoin(Coin::Litecoin, BitcoinNet::Main), "litecoin"),
    ];
    for (network, name) in networks {
        let reader = HeadReader::new(&network, name, &Known::default()).unwrap();
        assert!((2..=3).contains(&reader.requests().len()), "{name}: {:?}", reader.requests());
    }
    let devnet = HeadReader::new(&Network::Sui("devnet".to_owned()), "sui", &Known::default()).unwrap_err();
    assert_eq!(devnet.code(), Code::UnknownChain);
}
