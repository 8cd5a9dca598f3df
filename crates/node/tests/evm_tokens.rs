//! Tokens that take a fee, or freeze an account, and nodes that have pruned what is asked: a payment that could not be redeemed or refunded
//! is not signed, and an endpoint without the state counts as silent.
use crate::support;

use countersign::evm::alloy_primitives::{Address, U256, hex};
use countersign::evm::read;
use countersign::evm::{ApprovalStep, Evm, TxContext, UnsignedOrder};
use countersign::{Code, evidence::HtlcState};
use countersign_node::NodeError;
use countersign_testkit::{registry, verified};
use serde_json::{Value, json};
use support::{Chain, case, nodes, terms};

const GWEI: u128 = 1_000_000_000;
const COLLECTOR: Address = Address::repeat_byte(0x66);

fn order() -> UnsignedOrder {
    let calls = TxContext::eip1559(1, 30 * GWEI, GWEI).with_approval(ApprovalStep::AlreadyApproved);
    verified::<Evm>(&case("evm-chain-id-integer")).prepare(calls).unwrap()
}

/// Token, sender, HTLC and amount of the order.
fn parties() -> (Address, Address, Address, U256) {
    let order = order();
    let deposit = order.verified().unwrap().deposit();
    (deposit.approval.as_ref().unwrap().call.to, deposit.sender, deposit.initiate.to, deposit.terms.amount)
}

fn transfer(from: Address, to: Address, amount: U256) -> Value {
    json!({
        "address": parties().0,
        "topics": [read::TRANSFER, from.into_word(), to.into_word()],
        "data": hex::encode_prefixed(amount.to_be_bytes::<32>()),
    })
}

/// A node that simulates these logs, unless it cannot, and reverts what `frozen` says of the sender of a call.
fn chain(logs: Option<Vec<Value>>, frozen: impl Fn(Address) -> bool + Send + Sync + 'static) -> Chain {
    let (token, _, _, amount) = parties();
    Chain::funded(&terms().destination).lying(move |_, method, params| {
        let number = |number: U256| Some(json!(hex::encode_prefixed(number.to_be_bytes::<32>())));
        match method {
            "eth_getBalance" => Some(json!("0xde0b6b3a7640000")),
            "eth_simulateV1" => Some(match &logs {
                Some(logs) => json!([{"calls": [{"status": "0x1", "gasUsed": "0x5208", "logs": logs, "returnData": "0x"}]}]),
                None => json!({"error": {"code": -32_601, "message": "the method does not exist"}}),
            }),
            "eth_call" => match &params[0]["data"].as_str().unwrap()[..10] {
                "0xfc0c546a" => number(token.into_word().into()),
                "0x70a08231" | "0xdd62ed3e" => number(amount),
                "0xa9059cbb" if frozen(params[0]["from"].as_str().unwrap().parse().unwrap()) => {
                    Some(json!({"error": {"code": 3, "message": "execution reverted: Blacklistable: account is blacklisted"}}))
                }
                _ => Some(json!("0x")),
            },
            _ => None,
        }
    })
}

async fn preflight(chain: Chain) -> Result<Option<u64>, NodeError> {
    nodes(chain, 1).evm("ethereum").unwrap().preflight(&order()).await.map(|found| found.gas_used)
}

async fn refused(chain: Chain) -> (Code, String) {
    match preflight(chain).await.unwrap_err() {
        NodeError::Refused(refusal) => (refusal.code(), refusal.to_string()),
        other => panic!("{other:?}"),
    }
}

fn honest() -> Option<Vec<Value>> {
    let (_, sender, htlc, amount) = parties();
    Some(vec![transfer(sender, htlc, amount)])
}

#[tokio::test(start_paused = true)]
async fn a_token_that_has_frozen_the_htlc_is_not_paid() {
    let (_, sender, htlc, _) = parties();
    assert_eq!(preflight(chain(honest(), |_| false)).await.unwrap(), Some(21_000));
    for logs in [honest(), None] {
        let (code, text) = refused(chain(logs.clone(), move |from| from == htlc)).await;
        assert_eq!(code, Code::SimulationReverted);
        for part in ["/token", "does not let the HTLC pay out", "blacklisted"] {
            assert!(text.contains(part), "{text}");
        }
        // The sender is frozen, too.
        assert_eq!(refused(chain(logs.clone(), move |from| from == htlc || from == sender)).await.0, Code::SimulationReverted);
        // A token that refuses every transfer of nothing shows nothing.
        preflight(chain(logs, |_| true)).await.unwrap();
    }
}

/// Two endpoints that limit requests have not run the calls, so that the token's fee is known from the third alone, which is too few.
#[tokio::test(start_paused = true)]
async fn endpoints_that_limit_requests_do_not_outvote_a_simulation() {
    let (_, sender, htlc, amount) = parties();
    let taxed = || Some(vec![transfer(sender, htlc, amount - U256::ONE)]);
    for code in [-32_005, -32_603, 429] {
        for limited in [["a.example", "b.example"], ["a.example", "c.example"], ["b.example", "c.example"]] {
            let honest = chain(taxed(), |_| false);
            let lying = chain(taxed(), |_| false).lying(move |host, method, params| {
                if limited.contains(&host) && method == "eth_simulateV1" {
                    return Some(json!({"error": {"code": code, "message": "slow down"}}));
                }
                (honest.lie)(host, method, params)
            });
            let error = nodes(lying, 3).evm("ethereum").unwrap().preflight(&order()).await.unwrap_err();
            assert_eq!(error.code().name(), "node_disagree", "{code} {limited:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_takes_a_fee_is_not_paid() {
    let (_, sender, htlc, amount) = parties();
    let fee = U256::from(3);
    for logs in [
        vec![transfer(sender, htlc, amount - fee), transfer(sender, COLLECTOR, fee)],
        vec![transfer(sender, htlc, amount - fee)],
        vec![transfer(sender, htlc, amount), transfer(htlc, COLLECTOR, fee)],
        vec![transfer(sender, htlc, amount), transfer(sender, COLLECTOR, fee)],
        vec![],
    ] {
        let (code, text) = refused(chain(Some(logs), |_| false)).await;
        assert_eq!(code, Code::SimulationDiffers, "{text}");
    }
}

/// The errors of nodes that have pruned the state: Geth, Erigon, and one that adds data.
fn pruned() -> [Value; 3] {
    [
        json!({"error": {"code": -32_000, "message": "missing trie node 5f0e (path ) state 0x5f0e is not available"}}),
        json!({"error": {"code": -32_000, "message": "state not available"}}),
        json!({"error": {"code": -32_000, "message": "historical state is not available", "data": "0x5f0e"}}),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_has_pruned_the_state_is_silent_and_shows_no_absence() {
    for error in pruned() {
        for method in ["eth_call", "eth_getBlockByNumber"] {
            let on = |hosts: &'static [&'static str], error: Value| {
                Chain::funded(&terms().destination)
                    .lying(move |host, asked, _| (hosts.contains(&host) && asked == method).then(|| error.clone()))
            };
            let alone = nodes(on(&["a.example"], error.clone()), 1).htlc(&terms().destination).await.unwrap_err();
            assert_eq!(alone.code().name(), "node_error", "{method} {error}");
            let quorum = nodes(on(&["a.example"], error.clone()), 3).htlc(&terms().destination).await.unwrap();
            assert!(matches!(quorum.state().unwrap().0, HtlcState::Locked(_)), "{method} {error}");
            let two = nodes(on(&["a.example", "b.example"], error.clone()), 3).htlc(&terms().destination).await.unwrap_err();
            assert_eq!(two.code().name(), "node_disagree", "{method} {error}");
        }
    }
    // Without its events, an ended order is unclear, never absent.
    let ended = Chain::funded(&terms().destination).redeemed(&terms().destination, support::SECRET).with(|evm| evm.logs.clear());
    let quorum = nodes(ended, 1).htlc(&terms().destination).await.unwrap();
    assert!(matches!(quorum.state().unwrap().0, HtlcState::Unclear(_)));
}

/// Whoever is paid at the destination may be frozen by the token that is received: as a receiver, or only as a sender, as with USDT.
#[tokio::test(start_paused = true)]
async fn a_token_that_has_frozen_the_receiver_is_not_paid_for() {
    let receiver = Address::repeat_byte(0x5a);
    let nothing = hex::encode_prefixed(read::empty_transfer_call(receiver));
    for (blocks_receivers, blocks_senders, blocks_all) in
        [(true, true, false), (true, false, false), (false, true, false), (false, false, false), (true, true, true)]
    {
        let nothing = nothing.clone();
        let lying = move |_: &str, method: &str, params: &Value| {
            let from = || params[0]["from"].as_str().and_then(|from| from.parse::<Address>().ok());
            let is_to = || params[0]["data"].as_str() == Some(nothing.as_str());
            if method == "eth_getCode" {
                return Some(json!("0x"));
            }
            (method == "eth_call").then(|| {
                if blocks_all || blocks_receivers && is_to() || blocks_senders && from() == Some(receiver) {
                    json!({"error": {"code": 3, "message": "execution reverted: Blacklistable: account is blacklisted"}})
                } else {
                    json!("0x")
                }
            })
        };
        let nodes = nodes(Chain::funded(&terms().destination).lying(lying), 3);
        let checked = nodes.check_receiver(registry().asset("ethereum:usdc").unwrap(), &receiver.to_string()).await;
        if (blocks_receivers || blocks_senders) && !blocks_all {
            let error = checked.unwrap_err();
            assert!(matches!(&error, NodeError::Refused(refusal) if refusal.location() == "/destination"), "{error}");
            assert!(error.to_string().contains("blacklisted"), "{error}");
        } else {
            checked.unwrap();
        }
        // The chain's own coin cannot freeze a key account, and a chain that is not connected is not asked.
        nodes.check_receiver(registry().asset("ethereum:eth").unwrap(), &receiver.to_string()).await.unwrap();
        nodes.check_receiver(registry().asset("base:usdc").unwrap(), &receiver.to_string()).await.unwrap();
    }
}
