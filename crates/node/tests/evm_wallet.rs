//! What a wallet signs: fees within the policy, preflights of what was verified.
use crate::support;

use countersign::evm::alloy_primitives::{Address, U256, hex};
use countersign::evm::read;
use countersign::evm::{Evm, Fees, Gasless, TxContext, UnsignedOrder};
use countersign::{Code, Policy, RequestId, Role, Signed, Verified};
use countersign_node::evm::Preflight;
use countersign_node::{NodeError, Speed};
use countersign_testkit::{key, verified};
use serde_json::{Value, json};
use support::{Chain, case, nodes, terms};

const GWEI: u128 = 1_000_000_000;
pub(crate) const SENDER: Address = Address::repeat_byte(0xa1);

pub(crate) fn chain() -> Chain {
    Chain::funded(&terms().destination)
}

pub(crate) fn refused(error: &NodeError) -> (Code, String) {
    match error {
        NodeError::Refused(refusal) => (refusal.code(), refusal.location().to_owned()),
        other => panic!("{other:?}"),
    }
}

// ---- nonce and fees

async fn calls(chain: Chain, count: usize, speed: Speed, policy: &Policy) -> Result<TxContext, NodeError> {
    nodes(chain, count).evm("ethereum").unwrap().calls(SENDER, speed, policy).await
}

fn eip1559(max_fee_per_gas: u128, max_priority_fee_per_gas: u128) -> Fees {
    Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas }
}

#[tokio::test(start_paused = true)]
async fn fees_follow_the_chain_and_the_speed() {
    // The next block's base fee is 20 gwei. The tips are the medians of each column.
    for (speed, fees) in [
        (Speed::Slow, eip1559(24 * GWEI + 2, 2)),
        (Speed::Normal, eip1559(31 * GWEI + 1, GWEI + 1)),
        (Speed::Fast, eip1559(42 * GWEI + 1, 2 * GWEI + 1)),
    ] {
        let calls = calls(chain(), 2, speed, &Policy::default()).await.unwrap();
        assert_eq!((calls.nonce, calls.fees, calls.chain_id), (42, fees, Some(1)), "{speed:?}");
    }
}

fn without_eip1559() -> Chain {
    let honest = chain();
    chain().lying(move |_, method, _| match method {
        "eth_getBlockByNumber" => {
            let mut block = honest.block(honest.latest);
            block.as_object_mut().unwrap().remove("baseFeePerGas");
            Some(block)
        }
        "eth_feeHistory" => Some(json!({"error": {"code": -32601, "message": "no such method"}})),
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_chain_without_a_base_fee_has_legacy_prices() {
    for (speed, gas_price) in [(Speed::Slow, 2_000_000_000), (Speed::Normal, 2_200_000_000), (Speed::Fast, 2_600_000_000)] {
        let calls = calls(without_eip1559(), 1, speed, &Policy::default()).await.unwrap();
        assert_eq!(calls.fees, Fees::Legacy { gas_price });
    }
}

#[tokio::test(start_paused = true)]
async fn fees_above_the_policy_are_refused_and_never_lowered() {
    let low = Policy::from_json(br#"{"evm_gas_price": 31}"#).unwrap();
    let error = calls(chain(), 1, Speed::Normal, &low).await.unwrap_err();
    assert_eq!(refused(&error), (Code::GasPriceTooHigh, "/max_fee_per_gas".to_owned()));
    assert!(calls(chain(), 1, Speed::Slow, &low).await.is_ok());
    let none = Policy::from_json(br#"{"evm_gas_price": 2}"#).unwrap();
    let error = calls(without_eip1559(), 1, Speed::Normal, &none).await.unwrap_err();
    assert_eq!(refused(&error), (Code::GasPriceTooHigh, "/gas_price".to_owned()));

    let history = |member: &'static str, value: Value| {
        chain().lying(move |_, method, _| {
            (method == "eth_feeHistory").then(|| {
                let mut history = json!({"baseFeePerGas": ["0x1"], "reward": [["0x1", "0x1", "0x1"]]});
                history[member] = value.clone();
                history
            })
        })
    };
    let most = format!("0x{}", "f".repeat(32));
    for absurd in [history("baseFeePerGas", json!([most])), history("reward", json!([[most, most, most]]))] {
        let error = calls(absurd, 1, Speed::Fast, &Policy::default()).await.unwrap_err();
        assert_eq!(refused(&error).0, Code::GasPriceTooHigh);
    }
    for malformed in [json!([]), json!(["1"]), json!([format!("0x1{}", "0".repeat(32))]), json!("0x1"), Value::Null] {
        let error = calls(history("baseFeePerGas", malformed.clone()), 1, Speed::Fast, &Policy::default()).await.unwrap_err();
        assert_eq!(error.code().name(), "node_malformed", "{malformed}");
    }
    // An idle chain has no tips, but nodes do not relay a transaction without one.
    let empty = calls(history("reward", Value::Null), 1, Speed::Slow, &Policy::default()).await.unwrap();
    assert_eq!(empty.fees, eip1559(3, 1));
}

#[tokio::test(start_paused = true)]
async fn endpoints_agree_on_the_nonce() {
    let lie = |host: &str, method: &str, _: &Value| (host == "a.example" && method == "eth_getTransactionCount").then(|| json!("0xffff"));
    assert_eq!(calls(chain().lying(lie), 2, Speed::Slow, &Policy::default()).await.unwrap_err().code().name(), "node_disagree");
    assert_eq!(calls(chain().lying(lie), 3, Speed::Slow, &Policy::default()).await.unwrap().nonce, 42);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_pays_ten_percent_more_of_both() {
    let nodes = nodes(chain(), 1);
    let ethereum = nodes.evm("ethereum").unwrap();
    let policy = Policy::default();
    for (before, after) in [
        (eip1559(100 * GWEI + 1, 3 * GWEI + 1), eip1559(110 * GWEI + 2, 3_300_000_002)),
        (eip1559(GWEI, 1), eip1559(24 * GWEI + 2, 2)),
        (Fees::Legacy { gas_price: 100 * GWEI }, Fees::Legacy { gas_price: 110 * GWEI }),
    ] {
        let calls = TxContext::new(7, before).with_gas_limit(123_456);
        let replacement = ethereum.replacement(SENDER, &calls, Speed::Slow, &policy).await.unwrap();
        assert_eq!((replacement.nonce, replacement.fees, replacement.gas_limit), (7, after, Some(123_456)));
    }
    let calls = TxContext::eip1559(7, 950 * GWEI, GWEI);
    let error = ethereum.replacement(SENDER, &calls, Speed::Slow, &policy).await.unwrap_err();
    assert_eq!(refused(&error).0, Code::GasPriceTooHigh);
}

#[tokio::test(start_paused = true)]
async fn balances_and_allowances_are_agreed_upon() {
    let honest = nodes(chain(), 3);
    let (ethereum, amount) = (honest.evm("ethereum").unwrap(), terms().destination.amount);
    assert_eq!(ethereum.balance(SENDER, None).await.unwrap(), amount);
    assert_eq!(ethereum.balance(SENDER, Some(SENDER)).await.unwrap(), amount);
    assert_eq!(ethereum.allowance(SENDER, SENDER, SENDER).await.unwrap(), amount);
    for (wrong, code) in [
        (json!("0x"), "node_malformed"),
        (json!(hex::encode_prefixed([0; 33])), "node_malformed"),
        (json!({"error": {"code": 3, "message": "execution reverted"}}), "node_error"),
    ] {
        let nodes = nodes(chain().lying(move |_, method, _| (method == "eth_call").then(|| wrong.clone())), 1);
        assert_eq!(nodes.evm("ethereum").unwrap().balance(SENDER, Some(SENDER)).await.unwrap_err().code().name(), code);
    }
}

// ---- preflight

pub(crate) fn unsigned(id: &str) -> UnsignedOrder {
    verified::<Evm>(&case(id)).prepare(TxContext::eip1559(1, 30 * GWEI, GWEI)).unwrap()
}

/// A sender with enough of everything, and a node that simulates what was verified.
struct Sight {
    order: UnsignedOrder,
    token: Address,
    has: U256,
    coin: U256,
    allowance: U256,
    logs: Vec<Value>,
    statuses: Vec<u8>,
    simulates: bool,
    reverts: bool,
    /// The code of every account, as the first and the second endpoint show it.
    codes: [&'static str; 2],
}

fn transfer(token: Address, from: Address, to: Address, amount: U256) -> Value {
    json!({
        "address": token,
        "topics": [read::TRANSFER, from.into_word(), to.into_word()],
        "data": hex::encode_prefixed(amount.to_be_bytes::<32>()),
    })
}

impl Sight {
    fn new(id: &str) -> Self {
        let order = unsigned(id);
        let deposit = order.verified().unwrap().deposit();
        let (sender, htlc, amount) = (deposit.sender, deposit.initiate.to, deposit.terms.amount);
        let token = deposit.approval.as_ref().map_or(Address::repeat_byte(0x70), |approval| approval.call.to);
        let paid = if deposit.initiate.value.is_zero() { token } else { read::NATIVE };
        let statuses = vec![1; order.payloads().calls.len()];
        let logs = vec![transfer(paid, sender, htlc, amount)];
        let coin = U256::from(10).pow(U256::from(18));
        Self { token, has: amount, coin, allowance: amount, logs, statuses, simulates: true, reverts: false, codes: ["0x"; 2], order }
    }

    async fn preflight(self) -> Result<(Preflight, Vec<String>), NodeError> {
        let nodes = nodes(self.chain(), 1);
        let preflight = nodes.evm("ethereum").unwrap().preflight(&self.order).await?;
        let seen = nodes.transport().seen.lock().unwrap();
        Ok((preflight, seen.iter().map(|(_, method, _)| method.clone()).collect()))
    }

    fn chain(&self) -> Chain {
        let Self { token, has, coin, allowance, simulates, reverts, codes, .. } = *self;
        let (logs, statuses) = (self.logs.clone(), self.statuses.clone());
        chain().lying(move |host: &str, method: &str, params: &Value| match method {
            "eth_getBalance" => Some(json!(format!("{coin:#x}"))),
            "eth_getCode" => Some(json!(codes[usize::from(host.starts_with('b'))])),
            "eth_call" => {
                let data = params[0]["data"].as_str().unwrap();
                let number = |number: U256| Some(json!(hex::encode_prefixed(number.to_be_bytes::<32>())));
                match &data[..10] {
                    "0xfc0c546a" => number(token.into_word().into()),
                    "0x70a08231" => number(has),
                    "0xdd62ed3e" => number(allowance),
                    _ if reverts => {
                        // Error("paused"), word by word: the selector, the offset, the length, the text.
                        let data = "0x08c379a00000000000000000000000000000000000000000000000000000000000000020\
                                    000000000000000000000000000000000000000000000000000000000000000670617573656400000000\
                                    00000000000000000000000000000000000000000000";
                        Some(json!({"error": {"code": 3, "message": "execution reverted", "data": data}}))
                    }
                    _ => Some(json!("0x")),
                }
            }
            "eth_simulateV1" if simulates => {
                let last = statuses.len().saturating_sub(1);
                let call = |(index, status): (usize, &u8)| {
                    let logs = if index == last { logs.clone() } else { Vec::new() };
                    json!({"status": format!("{status:#x}"), "gasUsed": "0x5208", "logs": logs, "returnData": "0x356b842c"})
                };
                Some(json!([{"calls": statuses.iter().enumerate().map(call).collect::<Vec<_>>()}]))
            }
            _ => None,
        })
    }
}

pub(crate) const WITH_APPROVAL: &str = "evm-chain-id-integer";
const WITHOUT_APPROVAL: &str = "evm-record-evm-v1";
const NATIVE: &str = "evm-record-native";
/// Needs no approval, and has a gasless message.
const GASLESS: &str = "evm-message-integers";

async fn code(change: impl FnOnce(&mut Sight), id: &str) -> (Code, String) {
    let mut sight = Sight::new(id);
    change(&mut sight);
    refused(&sight.preflight().await.unwrap_err())
}

#[tokio::test(start_paused = true)]
async fn what_was_verified_passes() {
    for (id, calls) in [(WITH_APPROVAL, 2), (WITHOUT_APPROVAL, 1), (NATIVE, 1)] {
        let (preflight, _) = Sight::new(id).preflight().await.unwrap();
        assert_eq!(preflight.gas_used, Some(calls * 21_000), "{id}");
        assert!(preflight.cost > U256::ZERO && preflight.cost < preflight.balance);
    }
    // The calls include the approval, so the allowance may still be zero.
    let (preflight, _) = Sight { allowance: U256::ZERO, ..Sight::new(WITH_APPROVAL) }.preflight().await.unwrap();
    assert_eq!(preflight.gas_used, Some(42_000));
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_said_before_anything_is_signed() {
    let insufficient = |at: &str| (Code::InsufficientFunds, at.to_owned());
    for id in [WITH_APPROVAL, WITHOUT_APPROVAL] {
        assert_eq!(code(|sight| sight.has -= U256::ONE, id).await, insufficient("/token"));
        assert_eq!(code(|sight| sight.coin = U256::ONE, id).await, insufficient("/balance"));
    }
    assert_eq!(code(|sight| sight.allowance -= U256::ONE, WITHOUT_APPROVAL).await, (Code::AllowanceTooLow, "/allowance".to_owned()));
    // The coin must cover the amount and the gas.
    assert_eq!(code(|sight| sight.coin = U256::from(400_000_000_000_000_000_u64), NATIVE).await, insufficient("/balance"));
}

#[tokio::test(start_paused = true)]
async fn a_simulation_that_moves_something_else_is_refused() {
    let differs = (Code::SimulationDiffers, "/transfers".to_owned());
    for id in [WITH_APPROVAL, WITHOUT_APPROVAL, NATIVE] {
        let order = unsigned(id);
        let deposit = order.verified().unwrap().deposit();
        let (sender, htlc, amount) = (deposit.sender, deposit.initiate.to, deposit.terms.amount);
        let thief = Address::repeat_byte(0x66);
        let paid: Address = Sight::new(id).logs[0]["address"].as_str().unwrap().parse().unwrap();
        let honest = || transfer(paid, sender, htlc, amount);
        for logs in [
            vec![],
            vec![transfer(paid, sender, htlc, amount - U256::ONE)],
            vec![transfer(paid, sender, htlc, amount + U256::ONE)],
            vec![transfer(paid, sender, thief, amount)],
            vec![transfer(thief, sender, htlc, amount)],
            vec![transfer(paid, thief, htlc, amount)],
            vec![honest(), honest()],
            vec![honest(), transfer(paid, sender, thief, U256::ONE)],
            vec![honest(), transfer(read::NATIVE, sender, thief, U256::ONE)],
            vec![honest(), transfer(paid, htlc, thief, U256::ONE)],
        ] {
            assert_eq!(code(|sight| sight.logs.clone_from(&logs), id).await, differs, "{id} {logs:?}");
        }
        // Transfers of other accounts and transfers of 0 do not matter.
        let mut sight = Sight::new(id);
        sight.logs.extend([transfer(thief, thief, htlc, amount), transfer(paid, sender, thief, U256::ZERO)]);
        sight.preflight().await.unwrap();
    }
    let other = code(|sight| sight.token = Address::repeat_byte(9), WITH_APPROVAL).await;
    assert_eq!(other, (Code::SimulationDiffers, "/token".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_would_fail_is_refused_with_its_reason() {
    let mut sight = Sight::new(WITH_APPROVAL);
    sight.statuses = vec![1, 0];
    let error = sight.preflight().await.unwrap_err();
    assert_eq!(refused(&error), (Code::SimulationReverted, "/initiate".to_owned()));
    assert!(error.to_string().contains("already redeemed or refunded (HTLC__OrderFulfilled)"), "{error}");
    // A node without the method runs the first call.
    let old = Sight { simulates: false, ..Sight::new(NATIVE) };
    assert_eq!(old.preflight().await.unwrap().0.gas_used, None);
    let old = Sight { simulates: false, reverts: true, ..Sight::new(WITHOUT_APPROVAL) };
    let error = old.preflight().await.unwrap_err();
    assert_eq!(refused(&error), (Code::SimulationReverted, "/initiate".to_owned()));
    assert!(error.to_string().contains("paused"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_simulation_is_unknown() {
    let changes: [fn(&mut Sight); 3] =
        [|sight| sight.statuses.push(1), |sight| sight.statuses.clear(), |sight| sight.logs = vec![json!({}); 65]];
    for change in changes {
        let mut sight = Sight::new(WITHOUT_APPROVAL);
        change(&mut sight);
        assert_eq!(sight.preflight().await.unwrap_err().code().name(), "node_malformed");
    }
}

/// Once submitted, a signature that the contract refuses leaves the order unpaid, and nobody says why.
#[tokio::test(start_paused = true)]
async fn an_owner_with_code_is_asked_about_its_gasless_signature() {
    let order = |id: &str| {
        let case = case(id);
        let mut unsigned = verified::<Evm>(&case).prepare(Gasless).unwrap();
        unsigned.sign(&key::<Evm>(&case)).unwrap();
        Signed::from(unsigned.finish().unwrap())
    };
    let delegated = |answer: &'static str| {
        chain().lying(move |_, method, params| match method {
            "eth_getCode" => Some(json!("0xef01000000000000000000000000000000000000000001")),
            "eth_call" if params[0]["data"].as_str().unwrap().starts_with("0x1626ba7e") => Some(json!(answer)),
            _ => None,
        })
    };
    let signed = order("evm-message-integers");
    let magic = "0x1626ba7e00000000000000000000000000000000000000000000000000000000";
    nodes(chain(), 2).check_signed(&signed).await.unwrap();
    nodes(delegated(magic), 2).check_signed(&signed).await.unwrap();
    let error = nodes(delegated("0x"), 2).check_signed(&signed).await.unwrap_err();
    assert_eq!(refused(&error).0, Code::ContractSignatureRefused);
    // One endpoint that disagrees decides nothing.
    let split = chain().lying(|host, method, _| (host == "a.example" && method == "eth_getCode").then(|| json!("0x6001")));
    assert_eq!(nodes(split, 2).check_signed(&signed).await.unwrap_err().code().name(), "node_disagree");
    // A chain that is not connected says nothing; one that is says nothing about the orders of another.
    let elsewhere = order("evm-token-approval-exact");
    nodes(chain(), 1).check_signed(&elsewhere).await.unwrap();
    let Signed::Evm(elsewhere) = elsewhere else { panic!("an EVM order") };
    let error = nodes(chain(), 1).evm("ethereum").unwrap().check_gasless(&elsewhere).await.unwrap_err();
    assert_eq!(refused(&error).0, Code::WalletChainMismatch);
}

/// Wallets put the signature of a deployed account into the wrapper of ERC-6492, too. The chain decides whether it can be taken off, and one
/// endpoint that says otherwise decides nothing.
#[tokio::test(start_paused = true)]
async fn the_chain_decides_about_the_wrapper_of_a_signature() {
    let inner = "ab".repeat(64);
    let word = |number: usize| format!("{number:064x}");
    let wrapped = [[0x1111, 96, 160].map(word).concat(), word(4), format!("3ffba36f{}", "00".repeat(28)), word(64), inner.clone()].concat();
    let signature = format!("contract:0x{wrapped}{}", "6492".repeat(16));
    let order = Verified::from(verified::<Evm>(&case(GASLESS)));
    for (codes, expected) in [
        (["0x6080", "0x6080"], Ok(())),
        (["0x", "0x"], Err("the account has no code on this chain, so the signature of a contract wallet does not count")),
        (["0x6080", "0x"], Err(Code::AccountNotDeployed.meaning())),
    ] {
        let chain = Sight { codes, ..Sight::new(GASLESS) }.chain();
        let mut unsigned = nodes(chain, 2).prepare(&order, "ethereum", "", Speed::Normal, &Policy::default()).await.unwrap();
        let attached = unsigned.attach_text(RequestId::TypedData, &signature);
        assert_eq!(
            attached.as_ref().map_err(|refusal| (refusal.code(), refusal.reason())),
            expected.as_ref().map_err(|why| (Code::AccountNotDeployed, *why))
        );
        if attached.is_ok() {
            assert_eq!(unsigned.finish().unwrap().gasless().unwrap().signature, format!("0x{inner}"));
        }
    }
}

/// An account whose code refuses the message can pay the same order with a transaction.
#[tokio::test(start_paused = true)]
async fn a_gasless_order_can_be_paid_with_the_accounts_own_transactions() {
    let case = case(GASLESS);
    let order = Verified::from(verified::<Evm>(&case));
    let paid = async |own: bool| {
        let nodes = nodes(Sight::new(GASLESS).chain(), 2);
        let (speed, policy) = (Speed::Normal, Policy::default());
        let mut unsigned = match own {
            true => nodes.prepare_own(&order, "ethereum", "", speed, &policy).await.unwrap(),
            false => nodes.prepare(&order, "ethereum", "", speed, &policy).await.unwrap(),
        };
        unsigned.sign(&countersign::Key::Evm(key::<Evm>(&case))).unwrap();
        let signed = unsigned.finish().unwrap();
        (signed.broadcasts().iter().map(|one| one.role).collect::<Vec<_>>(), signed.gasless().is_some())
    };
    assert_eq!(paid(false).await, (vec![], true));
    assert_eq!(paid(true).await, (vec![Role::Initiate], false));
}
