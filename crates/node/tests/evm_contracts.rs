//! What a contract on an EVM chain is: described, compared with its stored description, and recognised as a generation.

use countersign::evm::alloy_primitives::{hex, keccak256};
use countersign::evm::read::Layout;
use countersign::trust::EvmGeneration;
use countersign_node::{ContractReport, Contracts};
use countersign_testkit::{abi, registry};
use serde_json::json;

use crate::evm_wallet::{SENDER, chain};
use crate::support::nodes;

#[tokio::test(start_paused = true)]
async fn a_contract_is_described_by_what_it_is() {
    let code = |code: &'static str| {
        let chain = chain().lying(move |_, method, _| (method == "eth_getCode").then(|| json!(code)));
        async move { nodes(chain, 1).evm("ethereum").unwrap().describe_contract(SENDER).await.unwrap() }
    };
    let described = code("0x6001").await;
    assert_eq!((described.code_hash, described.version, described.domain), (Some(keccak256([0x60, 1])), None, None));
    assert_eq!(described.token, Some(chain().token));
    assert_eq!(code("0x").await.code_hash, None);
}

#[tokio::test(start_paused = true)]
async fn a_contract_is_compared_with_its_stored_description() {
    let check = async |kept: &Contracts, code: &'static str, ids: &[&str]| {
        let chain = chain().lying(move |_, method, _| (method == "eth_getCode").then(|| json!(code)));
        let nodes = nodes(chain, 1);
        kept.check(&nodes, ids.iter().map(|id| registry().asset(id).unwrap().as_ref())).await.unwrap()
    };
    // Another chain is not connected.
    let first = check(&Contracts::default(), "0x6001", &["ethereum:usdc", "base:usdc"]).await;
    assert_eq!(first.first_seen.iter().map(ToString::to_string).collect::<Vec<_>>(), ["ethereum:usdc"]);
    assert!(first.changes.is_empty());
    let kept = Contracts::from_json(&first.new.to_file()).unwrap();
    assert_eq!(check(&kept, "0x6001", &["ethereum:usdc"]).await, ContractReport::default());
    let changed = check(&kept, "0x6002", &["ethereum:usdc"]).await;
    assert_eq!(changed.changes.iter().map(|change| change.fact.as_str()).collect::<Vec<_>>(), ["code_hash"]);
    assert!(changed.first_seen.is_empty() && changed.new == Contracts::default());
    assert_eq!(check(&changed.changed, "0x6002", &["ethereum:usdc"]).await, ContractReport::default());
}

#[tokio::test(start_paused = true)]
async fn a_generation_is_recognised_by_what_the_contract_says_of_itself() {
    let text = |text: &str| abi::bytes(text.as_bytes());
    let domain = |name: &str, version: &str| abi::domain(name, version, SENDER.into());
    let describe = async |version: Option<&'static str>, name: &'static str, domain_version: &'static str| {
        let chain = chain().lying(move |_, method, params| match method {
            "eth_getCode" => Some(json!("0x6001")),
            "eth_call" if params[0]["data"] == "0x54fd4d50" => version.map(|version| json!(hex::encode_prefixed(text(version)))),
            "eth_call" if params[0]["data"] == "0x84b0196e" => Some(json!(hex::encode_prefixed(domain(name, domain_version)))),
            _ => None,
        });
        nodes(chain, 1).evm("ethereum").unwrap().describe_contract(SENDER).await.unwrap()
    };
    let v3 = describe(Some("3"), "HTLC", "3").await;
    assert_eq!(v3.domain.as_ref().unwrap().version, "3");
    assert_eq!(v3.generation(None), Some(EvmGeneration::V3));
    assert_eq!(v3.generation(Some(Layout::V3)), Some(EvmGeneration::V3));
    assert_eq!(v3.generation(Some(Layout::Older)), None);
    let old = describe(None, "HTLC", "2").await;
    assert_eq!(old.generation(None), Some(EvmGeneration::OLD));
    assert_eq!(old.generation(Some(Layout::Older)), Some(EvmGeneration::OLD));
    assert_eq!(old.generation(Some(Layout::V3)), None);
    for (version, name, domain_version) in
        [(Some("4"), "HTLC", "4"), (Some("3"), "HTLC", "2"), (None, "HTLC", "3"), (None, "Token", "1"), (Some("3"), "Other", "3")]
    {
        assert_eq!(describe(version, name, domain_version).await.generation(None), None, "{version:?} {name} {domain_version}");
    }
    let mut gone = v3;
    gone.code_hash = None;
    assert_eq!(gone.generation(None), None);
}
