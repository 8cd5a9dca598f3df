//! The wallet context for signing, and the preflight of a transaction.

use std::collections::BTreeMap;

use countersign::recover::{self, Recovery};
use countersign::solana::address::{TOKEN_PROGRAM, associated_token_account};
use countersign::solana::read::RECENT_BLOCKHASHES;
use countersign::solana::solana_hash::Hash;
use countersign::solana::{Address, Key, PriorityFee};
use countersign::wire::OrderRecord;
use countersign::{Leg, Policy, SecretHash, Unsigned, Verified, json as tree};
use countersign_json::line::Case as JsonCase;
use countersign_node::{NodeError, Nodes, Speed};
use serde_json::{Value, json};

use crate::solana::fake::{
    Account, Chain, FINALIZED, FORMS, Front, INITIATED, SECRET, SPONSOR, account, blockhash, case, is_audited, listed, nodes, stored,
    swap_of, system_account, terms, token_account,
};

/// The fee for one signature, in lamports.
const FEE: u64 = 5_000;

/// The rent of an account with this many bytes of data.
const fn rent(bytes: u64) -> u64 {
    (128 + bytes) * 6_960
}

/// The order for a kind of program, verified against its response.
fn order(form: &str) -> Verified {
    let case = case(form);
    let mut line = case.json();
    // The fixtures' gasless path is tested on its own.
    line["response"]["result"]["versioned_tx_gasless"] = Value::Null;
    verified(form, &line)
}

fn verified(form: &str, line: &Value) -> Verified {
    let text = line.to_string();
    let value = tree::parse(text.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
    countersign::verify(proposal, case(form).registry, &Policy::default()).unwrap()
}

/// The swap that the response creates.
pub(crate) struct Scene {
    htlc: countersign::solana::htlc::Htlc,
    swap: countersign::solana::htlc::HtlcAccount,
    owner: Address,
    swap_account: Address,
    pub(crate) chain: Chain,
    after: BTreeMap<Address, Account>,
    /// The cost of the transaction for the owner.
    cost: u64,
}

/// The owner can pay, and the simulation does what was verified.
pub(crate) fn scene(form: &str) -> Scene {
    let mut destination = terms(form).destination;
    let Verified::Solana(order) = order(form) else { panic!("an order of Solana") };
    let deposit = order.deposit();
    destination.secret_hash = SecretHash(deposit.terms.secret_hash);
    let (htlc, swap) = swap_of(&destination);
    let owner = account(&destination.initiator);
    let swap_account = htlc.swap_account(&swap).unwrap();
    let length = u64::try_from(htlc.swap_account_length()).unwrap();
    let mut chain = Chain::empty(&destination);
    let mut after = BTreeMap::new();
    let mut cost = FEE + rent(length);
    let mut made = Account { lamports: rent(length), owner: htlc.program, data: stored(&htlc, &swap, FINALIZED + swap.timelock) };
    if let Some(token) = htlc.token {
        let tokens = associated_token_account(owner, token.mint, TOKEN_PROGRAM).unwrap();
        let (vault, identity) = (htlc.vault().unwrap(), htlc.identity().unwrap());
        chain.accounts.insert(tokens, token_account(token.mint, owner, swap.amount + 7));
        chain.accounts.insert(vault, token_account(token.mint, identity, 11));
        after.insert(tokens, token_account(token.mint, owner, 7));
        after.insert(vault, token_account(token.mint, identity, 11 + swap.amount));
    } else {
        cost += swap.amount;
        made.lamports += swap.amount;
    }
    chain.accounts.insert(owner, system_account(cost + rent(0)));
    after.insert(owner, system_account(rent(0)));
    after.insert(swap_account, made);
    chain.simulated = Ok(after.clone());
    Scene { htlc, swap, owner, swap_account, chain, after, cost }
}

impl Scene {
    fn after(mut self, change: impl FnOnce(&mut Self)) -> Chain {
        change(&mut self);
        self.chain.simulated = Ok(self.after);
        self.chain
    }
}

pub(crate) async fn prepare(chain: impl Into<Front>, form: &str) -> Result<(Unsigned, Nodes<Front>), NodeError> {
    let nodes = nodes(chain, 1, form);
    let name = terms(form).destination.chain;
    let unsigned = nodes.prepare(&order(form), &name, "", Speed::Normal, &Policy::default()).await?;
    Ok((unsigned, nodes))
}

async fn refused(chain: impl Into<Front>, form: &str) -> (&'static str, String) {
    match prepare(chain, form).await {
        Err(NodeError::Refused(refusal)) => (refusal.code().name(), refusal.to_string()),
        Err(error) => panic!("{form}: {error}"),
        Ok(_) => panic!("{form}: prepared"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_is_prepared_with_what_the_chain_says() {
    for form in FORMS {
        let mut scene = scene(form);
        let mut chain = scene.chain;
        chain.fees = (0..150).rev().collect();
        // The priority fee comes on top: 75 micro-lamports for each of 400,000 units, of two instructions.
        chain.account_mut(scene.owner).lamports += 30;
        scene.after.insert(scene.owner, system_account(rent(0)));
        chain.simulated = Ok(scene.after);
        let (unsigned, nodes) = prepare(chain, form).await.unwrap();
        let Unsigned::Solana(unsigned) = unsigned else { panic!("an order of Solana") };
        let payload = unsigned.payloads().transaction.as_ref().unwrap();
        assert_eq!(*payload.transaction().message.recent_blockhash(), blockhash());
        let summary = unsigned.summary().to_string();
        assert!(summary.contains("75 micro-lamports") && summary.contains("block height 300000150"), "{summary}");
        let chain = nodes.transport();
        assert_eq!(chain.count("simulateTransaction"), 1);
        let seen = chain.seen.lock().unwrap();
        let (_, _, params) = seen.iter().find(|(_, method, _)| method == "simulateTransaction").unwrap();
        assert_eq!((&params[1]["sigVerify"], &params[1]["commitment"]), (&json!(false), &json!("finalized")));
        let fees = seen.iter().find(|(_, method, _)| method == "getRecentPrioritizationFees").unwrap();
        assert_eq!(fees.2[0], json!([scene.owner.to_string(), scene.swap_account.to_string()]));
    }
}

#[tokio::test(start_paused = true)]
async fn speeds_are_percentiles_and_no_fee_is_none() {
    let form = FORMS[2];
    let fee = async |fees: Vec<u64>, speed| {
        let nodes = nodes(Chain { fees, ..Chain::empty(&terms(form).destination) }, 1, form);
        nodes.solana("solana_testnet").unwrap().context(&[], speed).await.unwrap().priority_fee.map(|fee| fee.compute_unit_price)
    };
    let fees: Vec<u64> = (1..=100).collect();
    assert_eq!(fee(fees.clone(), Speed::Slow).await, Some(26));
    assert_eq!(fee(fees.clone(), Speed::Normal).await, Some(51));
    assert_eq!(fee(fees, Speed::Fast).await, Some(91));
    assert_eq!((fee(vec![0; 150], Speed::Fast).await, fee(Vec::new(), Speed::Fast).await), (None, None));
}

/// One of three endpoints offers a blockhash that does not exist and refuses every simulation.
#[tokio::test(start_paused = true)]
async fn one_liar_of_three_decides_nothing() {
    let form = FORMS[2];
    let mut scene = scene(form);
    scene.chain.fees = vec![75; 150];
    scene.chain.account_mut(scene.owner).lamports += 30;
    let context = |value: Value| json!({"context": {"slot": 1}, "value": value});
    let lies = move |host: &str, method: &str, params: &Value| match (host, method) {
        ("a.example", "getMultipleAccounts") if params[0][0] == RECENT_BLOCKHASHES.to_string() => {
            Some(listed(&[Hash::new_from_array([9; 32])]))
        }
        ("a.example", "simulateTransaction") => Some(context(json!({"err": "BlockhashNotFound", "logs": []}))),
        _ => None,
    };
    let nodes = nodes(scene.chain.lying(lies), 3, form);
    let name = terms(form).destination.chain;
    let unsigned = nodes.prepare(&order(form), &name, "", Speed::Normal, &Policy::default()).await.unwrap();
    let Unsigned::Solana(unsigned) = unsigned else { panic!("an order of Solana") };
    let message = &unsigned.payloads().transaction.as_ref().unwrap().transaction().message;
    assert_eq!(*message.recent_blockhash(), blockhash());
    assert_eq!(PriorityFee::from_message(message).map(|fee| fee.compute_unit_price), Some(75));
}

#[tokio::test(start_paused = true)]
async fn a_fee_above_the_policy_is_refused() {
    let form = FORMS[2];
    let mut scene = scene(form);
    scene.chain.fees = vec![10_000_001; 150];
    assert_eq!(refused(scene.chain, form).await.0, "gas_limit_too_high");
}

#[tokio::test(start_paused = true)]
async fn too_little_sol_is_said_before_signing() {
    for form in FORMS {
        let has = |lamports: u64| {
            let mut scene = scene(form);
            let cost = scene.cost;
            scene.chain.accounts.insert(scene.owner, system_account(cost + lamports - 10));
            scene.after(|scene| drop(scene.after.insert(scene.owner, system_account(lamports.saturating_sub(10)))))
        };
        let (code, text) = refused(has(0), form).await;
        assert_eq!(code, "insufficient_funds", "{form}: {text}");
        assert!(text.contains("/balance"), "{text}");
        // The remaining balance must be 0, or at least the rent of an account.
        assert_eq!(refused(has(11), form).await.0, "insufficient_funds", "{form}");
        assert!(prepare(has(10), form).await.is_ok(), "{form}: to the last lamport");
        assert!(prepare(has(10 + rent(0)), form).await.is_ok(), "{form}");
        let mut none = scene(form);
        none.chain.accounts.remove(&none.owner);
        assert_eq!(refused(none.chain, form).await.0, "insufficient_funds", "{form}: no account at all");
    }
}

#[tokio::test(start_paused = true)]
async fn too_little_of_the_token_is_said_before_signing() {
    for form in [FORMS[1], FORMS[3]] {
        let with = |change: fn(&mut Account)| {
            let mut scene = scene(form);
            let token = scene.htlc.token.unwrap();
            change(scene.chain.account_mut(associated_token_account(scene.owner, token.mint, TOKEN_PROGRAM).unwrap()));
            scene.chain
        };
        let (code, text) = refused(with(|account| account.data[64..72].fill(0)), form).await;
        assert_eq!(code, "insufficient_funds");
        assert!(text.contains("too little of the token"), "{text}");
        let (code, text) = refused(with(|account| *account = system_account(1)), form).await;
        assert_eq!(code, "insufficient_funds");
        assert!(text.contains("no token account"), "{text}");
        let (code, text) = refused(with(|account| account.data[108] = 2), form).await;
        assert_eq!(code, "simulation_reverted");
        assert!(text.contains("frozen"), "{text}");
        // The first swap of a token also creates the vault, and its sender pays for it.
        let mut first = scene(form);
        first.chain.accounts.remove(&first.htlc.vault().unwrap());
        assert_eq!(refused(first.chain, form).await.0, "insufficient_funds");
    }
}

#[tokio::test(start_paused = true)]
async fn a_simulation_that_fails_stops_the_order() {
    for form in FORMS {
        let mut failing = scene(form).chain;
        failing.simulated = Err(json!({"InstructionError": [0, {"Custom": 6001}]}));
        let (code, text) = refused(failing, form).await;
        assert_eq!(code, "simulation_reverted", "{form}");
        assert!(text.contains("AnchorError"), "{text}");
        let mut expired = scene(form).chain;
        expired.simulated = Err(json!("BlockhashNotFound"));
        let (_, text) = refused(expired, form).await;
        assert!(text.contains("blockhash"), "{text}");
        let mut funded = scene(form);
        funded.chain.accounts.insert(funded.swap_account, funded.after[&funded.swap_account].clone());
        let (code, text) = refused(funded.chain, form).await;
        assert_eq!(code, "simulation_reverted");
        assert!(text.contains("exists already"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_simulation_that_does_something_else_stops_the_order() {
    for form in FORMS {
        let other = Address::from([0x33; 32]);
        let stores = |change: fn(&mut countersign::solana::htlc::HtlcAccount, Address)| {
            scene(form).after(|scene| {
                let mut swap = scene.swap;
                change(&mut swap, other);
                scene.after.get_mut(&scene.swap_account).unwrap().data = stored(&scene.htlc, &swap, FINALIZED + swap.timelock);
            })
        };
        let chains = [
            stores(|swap, other| swap.initiator = other),
            stores(|swap, other| swap.redeemer = other),
            stores(|swap, other| swap.secret_hash = other.to_bytes()),
            stores(|swap, _| swap.amount -= 1),
            stores(|swap, _| swap.timelock += 1_000),
            scene(form).after(|scene| scene.after.get_mut(&scene.swap_account).unwrap().owner = other),
            scene(form).after(|scene| drop(scene.after.remove(&scene.swap_account))),
            scene(form).after(|scene| scene.after.get_mut(&scene.owner).unwrap().lamports -= 1),
        ];
        for (index, chain) in chains.into_iter().enumerate() {
            assert_eq!(refused(chain, form).await.0, "simulation_differs", "{form} {index}");
        }
        if let Some(token) = scene(form).htlc.token {
            let tokens = |scene: &Scene| associated_token_account(scene.owner, token.mint, TOKEN_PROGRAM).unwrap();
            let spent_more = scene(form).after(|scene| drop(scene.after.insert(tokens(scene), token_account(token.mint, scene.owner, 6))));
            assert_eq!(refused(spent_more, form).await.0, "simulation_differs", "{form}");
            // A token that takes a fee.
            let arrives_less = scene(form).after(|scene| {
                let (vault, identity) = (scene.htlc.vault().unwrap(), scene.htlc.identity().unwrap());
                scene.after.insert(vault, token_account(token.mint, identity, 10 + scene.swap.amount));
            });
            assert_eq!(refused(arrives_less, form).await.0, "simulation_differs", "{form}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_gasless_order_costs_the_owner_no_sol() {
    for form in [FORMS[1], FORMS[3]] {
        let mut scene = scene(form);
        scene.chain.accounts.remove(&scene.owner);
        scene.after.remove(&scene.owner);
        scene.chain.simulated = Ok(scene.after);
        let nodes = nodes(scene.chain, 1, form);
        let order = verified(form, &case(form).json());
        let name = terms(form).destination.chain;
        let Unsigned::Solana(unsigned) = nodes.prepare(&order, &name, "", Speed::Normal, &Policy::default()).await.unwrap() else {
            panic!("an order of Solana")
        };
        assert!(unsigned.payloads().transaction.is_none() && unsigned.payloads().gasless.is_some());
        assert_eq!(nodes.transport().count("getBlockHeight"), 0, "the service has chosen the blockhash");
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_who_prefers_it_pays_for_an_order_that_is_offered_gasless() {
    for form in [FORMS[1], FORMS[3]] {
        let mut scene = scene(form);
        scene.chain.simulated = Ok(scene.after);
        let nodes = nodes(scene.chain, 1, form);
        let order = verified(form, &case(form).json());
        let name = terms(form).destination.chain;
        let own = nodes.prepare_own(&order, &name, "", Speed::Normal, &Policy::default()).await.unwrap();
        let Unsigned::Solana(unsigned) = own else { panic!("an order of Solana") };
        assert!(unsigned.payloads().transaction.is_some() && unsigned.payloads().gasless.is_none());
    }
}

/// The record for a kind of program with the secret of these tests, and its recovery.
pub fn recovery(form: &str, redeems: bool) -> Recovery {
    let case = case(form);
    let mut order = case.json()["order"].take();
    order["source_swap"]["secret_hash"] = json!(SecretHash::of(&SECRET).to_string());
    order["source_swap"]["swap_id"] = json!(swap_id(form, &order));
    let record = OrderRecord::from_json(order.to_string().as_bytes()).unwrap();
    let made = if redeems {
        recover::redeem(&record, Leg::Source, &SECRET, case.registry)
    } else {
        recover::refund(&record, Leg::Source, case.registry)
    };
    made.unwrap()
}

fn swap_id(form: &str, order: &Value) -> String {
    let initiator: Address = order["source_swap"]["initiator"].as_str().unwrap().parse().unwrap();
    let id = countersign::chains::swap_id::solana(
        if form.contains("token") { 101 } else { 103 },
        &SecretHash::of(&SECRET).0,
        initiator.as_ref(),
    );
    SecretHash(id).to_string()
}

pub fn stranger() -> Key {
    Key::from_seed(&[9; 32])
}

pub async fn recover_on(chain: impl Into<Front>, form: &str, recovery: &Recovery) -> Result<(Unsigned, Nodes<Front>), NodeError> {
    let nodes = nodes(chain, 1, form);
    let name = terms(form).destination.chain;
    let sender = stranger().address().to_string();
    let unsigned = nodes.prepare_recovery(recovery, &name, &sender, Speed::Normal, &Policy::default()).await?;
    Ok((unsigned, nodes))
}

/// The funded swap, and a stranger who sends the recovery.
pub fn settled(form: &str, lamports: u64) -> Chain {
    let mut chain = Chain::funded(&terms(form).destination);
    chain.accounts.insert(stranger().address(), system_account(lamports));
    chain.simulated = Ok(BTreeMap::from([(stranger().address(), system_account(lamports - FEE))]));
    chain
}

#[tokio::test(start_paused = true)]
async fn a_redemption_pays_the_rent_back_and_is_never_simulated() {
    for form in FORMS {
        let (htlc, swap) = swap_of(&terms(form).destination);
        let mut chain = settled(form, FEE);
        if let Some(token) = htlc.token {
            let paid = associated_token_account(swap.redeemer, token.mint, TOKEN_PROGRAM).unwrap();
            chain.accounts.insert(paid, token_account(token.mint, swap.redeemer, 0));
        }
        let (unsigned, nodes) = recover_on(chain, form, &recovery(form, true)).await.unwrap();
        let Unsigned::Solana(unsigned) = unsigned else { panic!("a recovery on Solana") };
        let payload = unsigned.payloads().transaction.as_ref().unwrap();
        let message = &payload.transaction().message;
        let names_sponsor = message.static_account_keys().contains(&Address::from(SPONSOR));
        assert_eq!(names_sponsor, is_audited(&htlc) || htlc.token.is_some(), "{form}");
        assert_eq!(message.instructions().len(), 1, "{form}");
        let chain = nodes.transport();
        assert_eq!(chain.count("simulateTransaction"), 0);
        let shown = chain.seen.lock().unwrap().iter().any(|(_, _, params)| {
            let text = params.to_string();
            [payload.message(), &SECRET].iter().any(|bytes| text.contains(&hex::encode(bytes)))
        });
        assert!(!shown, "{form}: the secret left before it was signed");
    }
}

/// What is built from a wallet context neither creates the payee's token account nor knows who paid the rent.
#[tokio::test(start_paused = true)]
async fn a_redemption_from_a_wallet_context_is_compared_with_the_chain() {
    for form in FORMS {
        let (htlc, swap) = swap_of(&terms(form).destination);
        let mut chain = settled(form, FEE);
        if let Some(token) = htlc.token {
            let paid = associated_token_account(swap.redeemer, token.mint, TOKEN_PROGRAM).unwrap();
            let missing = nodes(settled(form, FEE), 1, form);
            let name = terms(form).destination.chain;
            let refused = missing.check_offline(&recovery(form, true), &name, &Address::from(SPONSOR).to_string()).await.unwrap_err();
            assert_eq!(refused.code().name(), "receiver_not_payable", "{form}: no token account");
            chain.accounts.insert(paid, token_account(token.mint, swap.redeemer, 0));
        }
        let (nodes, name) = (nodes(chain, 1, form), terms(form).destination.chain);
        let ask = async |sponsor: Address| nodes.check_offline(&recovery(form, true), &name, &sponsor.to_string()).await;
        assert!(ask(Address::from(SPONSOR)).await.is_ok(), "{form}");
        let names_sponsor = is_audited(&htlc) || htlc.token.is_some();
        let other = ask(swap.initiator).await;
        assert_eq!(other.map_err(|error| error.code().name()), if names_sponsor { Err("receiver_not_payable") } else { Ok(()) }, "{form}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_token_account_is_made_at_the_senders_expense() {
    for form in [FORMS[1], FORMS[3]] {
        let (unsigned, _) = recover_on(settled(form, FEE + rent(165)), form, &recovery(form, true)).await.unwrap();
        let Unsigned::Solana(unsigned) = unsigned else { panic!("a recovery on Solana") };
        assert_eq!(unsigned.payloads().transaction.as_ref().unwrap().transaction().message.instructions().len(), 2);
        let summary = unsigned.summary().to_string();
        assert!(summary.contains("creates the token account"), "{summary}");
        let error = recover_on(settled(form, FEE + rent(165) - 1), form, &recovery(form, true)).await.unwrap_err();
        assert_eq!(error.code().name(), "insufficient_funds");

        let (htlc, swap) = swap_of(&terms(form).destination);
        let (mint, paid) = (htlc.token.unwrap().mint, recovery_account(form));
        let mut frozen = token_account(mint, swap.redeemer, 0);
        frozen.data[108] = 2;
        for account in
            [frozen, token_account(mint, Address::from([0x33; 32]), 0), token_account(Address::from([0x33; 32]), swap.redeemer, 0)]
        {
            let mut chain = settled(form, FEE + rent(165));
            chain.accounts.insert(paid, account);
            assert_eq!(recover_on(chain, form, &recovery(form, true)).await.unwrap_err().code().name(), "simulation_reverted", "{form}");
        }
    }
}

fn recovery_account(form: &str) -> Address {
    let Recovery::Solana(recovery) = recovery(form, true) else { panic!("a recovery on Solana") };
    recovery.token_account().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_redemption_that_would_fail_does_not_show_the_secret() {
    for form in FORMS {
        let (htlc, swap) = swap_of(&terms(form).destination);
        let address = htlc.swap_account(&swap).unwrap();
        let mut closed = settled(form, 1_000_000_000);
        closed.accounts.remove(&address);
        let mut other_program = settled(form, 1_000_000_000);
        other_program.account_mut(address).owner = Address::from([0x44; 32]);
        let mut other_redeemer = settled(form, 1_000_000_000);
        let mut other = swap;
        other.redeemer = Address::from([0x33; 32]);
        other_redeemer.account_mut(address).data = stored(&htlc, &other, INITIATED + swap.timelock);
        let mut other_kind = settled(form, 1_000_000_000);
        other_kind.account_mut(address).data.push(0);
        for chain in [closed, other_program, other_redeemer, other_kind] {
            assert_eq!(recover_on(chain, form, &recovery(form, true)).await.unwrap_err().code().name(), "simulation_reverted", "{form}");
        }
        assert_eq!(recover_on(settled(form, FEE), form, &recovery(form, true)).await.is_ok(), htlc.token.is_none(), "{form}");
        let poor = settled(form, FEE);
        let mut poor = Chain { simulated: Err(Value::Null), ..poor };
        poor.accounts.insert(stranger().address(), system_account(FEE - 1));
        assert_eq!(recover_on(poor, form, &recovery(form, true)).await.unwrap_err().code().name(), "insufficient_funds", "{form}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refund_waits_for_the_slot_and_is_simulated() {
    for form in FORMS {
        let (htlc, swap) = swap_of(&terms(form).destination);
        let expiry = INITIATED + swap.timelock;
        let at = |slot: u64| {
            let mut chain = settled(form, FEE).at(slot, crate::solana::fake::NOW);
            if let Some(token) = htlc.token {
                let paid = associated_token_account(swap.initiator, token.mint, TOKEN_PROGRAM).unwrap();
                chain.accounts.insert(paid, token_account(token.mint, swap.initiator, 0));
            }
            chain
        };
        assert_eq!(recover_on(at(expiry), form, &recovery(form, false)).await.unwrap_err().code().name(), "simulation_reverted", "{form}");
        let (_, nodes) = recover_on(at(expiry + 1), form, &recovery(form, false)).await.unwrap();
        assert_eq!(nodes.transport().count("simulateTransaction"), 1, "{form}");
        let mut failing = at(expiry + 1);
        failing.simulated = Err(json!({"InstructionError": [0, {"Custom": 6003}]}));
        assert_eq!(recover_on(failing, form, &recovery(form, false)).await.unwrap_err().code().name(), "simulation_reverted", "{form}");
    }
}
