//! The requests, and the answers of the endpoints in these tests, have the format of the reference SDK (starknet-core, interface 0.9).

use countersign::Policy;
use countersign_node::Speed;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use starknet_core::types::requests::{
    AddInvokeTransactionRequest, CallRequest, EstimateFeeRequest, GetBlockWithTxHashesRequest, GetClassAtRequest, GetClassHashAtRequest,
    GetEventsRequest, GetNonceRequest, GetStorageAtRequest, GetTransactionStatusRequest, SimulateTransactionsRequest,
};
use starknet_core::types::{BlockWithTxHashes, EventsPage, FeeEstimate, Felt, SimulatedTransaction, TransactionStatus};

use crate::starknet::fake::{Chain, READABLE, chain_of, nodes, terms};
use crate::starknet::wallet::{self, kept};

fn reads<T: DeserializeOwned>(value: &Value) -> Result<(), String> {
    serde_json::from_value::<T>(value.clone()).map(drop).map_err(|error| format!("{error}: {value}"))
}

fn check_request(method: &str, params: &Value) -> Result<(), String> {
    match method {
        "starknet_chainId" | "starknet_specVersion" => {
            if *params == json!([]) {
                Ok(())
            } else {
                Err(params.to_string())
            }
        }
        "starknet_getBlockWithTxHashes" => reads::<GetBlockWithTxHashesRequest>(params),
        "starknet_call" => reads::<CallRequest>(params),
        "starknet_getStorageAt" => reads::<GetStorageAtRequest>(params),
        "starknet_getClassAt" => reads::<GetClassAtRequest>(params),
        "starknet_getClassHashAt" => reads::<GetClassHashAtRequest>(params),
        "starknet_getEvents" => reads::<GetEventsRequest>(params),
        "starknet_getNonce" => reads::<GetNonceRequest>(params),
        "starknet_estimateFee" => reads::<EstimateFeeRequest>(params),
        "starknet_simulateTransactions" => reads::<SimulateTransactionsRequest>(params),
        "starknet_addInvokeTransaction" => reads::<AddInvokeTransactionRequest>(params),
        "starknet_getTransactionStatus" => reads::<GetTransactionStatusRequest>(params),
        other => Err(format!("{other} is not checked")),
    }
}

fn check_answer(method: &str, answer: &Value) -> Result<(), String> {
    match method {
        "starknet_getBlockWithTxHashes" => reads::<BlockWithTxHashes>(answer),
        "starknet_call" => reads::<Vec<Felt>>(answer),
        "starknet_getEvents" => reads::<EventsPage>(answer),
        "starknet_estimateFee" => reads::<Vec<FeeEstimate>>(answer),
        "starknet_simulateTransactions" => reads::<Vec<SimulatedTransaction>>(answer),
        "starknet_getTransactionStatus" => reads::<TransactionStatus>(answer),
        "starknet_chainId" | "starknet_getStorageAt" | "starknet_getClassHashAt" | "starknet_getNonce" => reads::<Felt>(answer),
        _ => Ok(()),
    }
}

/// Requires that every request so far, and its answer, has the SDK's format. Returns the methods.
fn check(chain: &Chain) -> Vec<String> {
    let seen = chain.seen.lock().unwrap().clone();
    for (_, method, params) in &seen {
        check_request(method, params).unwrap_or_else(|error| panic!("{method}: {error}"));
        let answer = chain.reply("a.example", method, params);
        if answer.get("error").is_none() {
            check_answer(method, &answer).unwrap_or_else(|error| panic!("{method}: {error}"));
        }
    }
    seen.into_iter().map(|(_, method, _)| method).collect()
}

#[tokio::test(start_paused = true)]
async fn requests_and_answers_have_the_shapes_of_the_reference_sdk() {
    let mut methods = Vec::new();
    for id in READABLE {
        for chain in [chain_of(id), chain_of(id).redeemed(&crate::starknet::fake::SECRET), chain_of(id).refunded()] {
            let nodes = nodes(chain, 1);
            nodes.htlc(&terms(id).destination).await.unwrap();
            methods.extend(check(nodes.transport()));
        }
    }
    let mut chain = wallet::chain();
    let kept = kept();
    chain.statuses.insert(kept.id.clone(), json!({"finality_status": "ACCEPTED_ON_L2", "execution_status": "SUCCEEDED"}));
    let nodes = nodes(chain, 1);
    let _ = nodes.prepare(&wallet::verified_order(), "starknet", "", Speed::Fast, &Policy::default()).await.unwrap();
    nodes.starknet("starknet").unwrap().describe_contract(nodes.transport().htlc).await.unwrap();
    nodes.broadcast("starknet", &kept.id, &kept.payload).await.unwrap();
    methods.extend(check(nodes.transport()));
    methods.sort();
    methods.dedup();
    assert_eq!(methods.len(), 13, "{methods:?}");
}
