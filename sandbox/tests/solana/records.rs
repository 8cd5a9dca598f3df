//! Orders of the fixtures, whose transactions @solana/web3.js compiled. `countersign-node` pays and ends those of the
//! audited programs, and sends redemptions with a durable nonce.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::evidence::{HtlcState, VerifiedTerms};
use countersign::solana::address::{TOKEN_PROGRAM, associated_token_account};
use countersign::solana::read::SwapLocation;
use countersign::solana::solana_hash::Hash;
use countersign::solana::{DurableNonce, Key, SignedOrder, TxContext};
use countersign::{Leg, OrderRecord, Policy, SecretHash, Unsigned, chains::swap_id, json as tree, recover};
use countersign_json::line::Case as JsonCase;
use countersign_node::{NodeError, Nodes, Speed};
use countersign_proofs_solana::{audited_machine, machine, rent};
use countersign_sandbox::chains::Engine;
use countersign_sandbox::chains::solana::Solana;
use countersign_testkit::Case;
use countersign_testkit::chain::solana::{FORMS, case, terms, token_account};
use serde_json::{Value, json};
use solana_account::Account;
use solana_address::Address;

use super::scene::{Front, SECRET, SOL, ask, call, connect, judged, send, signed};

const CHAIN: &str = "solana_testnet";
const NONCE: Address = Address::new_from_array([0x71; 32]);
/// The slots from the newest final one to the newest.
const LAG: u64 = 4;

/// An order with a known secret, on its own cluster.
struct Order {
    case: Case,
    line: Value,
    record: OrderRecord,
    terms: VerifiedTerms,
    place: SwapLocation,
    nodes: Nodes<Front>,
}

fn stranger() -> Key {
    Key::from_seed(&[9; 32])
}

fn order(form: &str) -> Order {
    let (case, mut terms) = (case(form), terms(form));
    for side in [&mut terms.source, &mut terms.destination] {
        side.secret_hash = SecretHash::of(&SECRET);
    }
    let (mut before, hash) = (terms.source.clone(), terms.source.secret_hash.0);
    let old: [u8; 32] = hex::decode(case.json()["request"]["secret_hash"].as_str().unwrap()).unwrap().try_into().unwrap();
    before.secret_hash = SecretHash(old);
    let (before, place) = (SwapLocation::new(&before).unwrap(), SwapLocation::new(&terms.source).unwrap());
    let (owner, redeemer) = (place.swap.initiator, place.swap.redeemer);
    let mut line = case.replaced(&hex::encode(old), &hex::encode(hash)).json();
    let payload = &mut line["response"]["result"];
    let mut bytes = STANDARD.decode(payload["versioned_tx"].as_str().unwrap()).unwrap();
    for (from, to) in [(old, hash), (before.swap_account.to_bytes(), place.swap_account.to_bytes())] {
        let at = bytes.windows(32).position(|bytes| bytes == from).unwrap();
        bytes[at..at + 32].copy_from_slice(&to);
    }
    (payload["versioned_tx"], payload["versioned_tx_gasless"]) = (json!(STANDARD.encode(bytes)), Value::Null);
    // The record's other side still has the fixture's hash, so the order is verified without it.
    let mut record = line.as_object_mut().unwrap().remove("order").unwrap();
    record["source_swap"]["swap_id"] = json!(hex::encode(swap_id::solana(103, &hash, owner.as_ref())));
    let record = OrderRecord::from_json(record.to_string().as_bytes()).unwrap();

    let (program, nobody) = (place.htlc.program, Address::from([1; 32]));
    let machine = if FORMS[2..].contains(&form) { audited_machine } else { machine };
    let mut svm = if place.htlc.token.is_none() { machine(program, nobody) } else { machine(nobody, program) };
    let mut put = |key: Address, owner: Address, data: Vec<u8>| {
        svm.set_account(key, Account { lamports: rent(165), data, owner, executable: false, rent_epoch: u64::MAX }).unwrap();
    };
    // The version, that it is initialized, the authority, the nonce, and the fee of a signature.
    let nonce = [&[1, 0, 0, 0, 1, 0, 0, 0][..], &stranger().address().to_bytes(), &[0x5a; 32], &5_000_u64.to_le_bytes()].concat();
    put(NONCE, Address::default(), nonce);
    if let Some(token) = place.htlc.token {
        let account = associated_token_account(owner, token.mint, TOKEN_PROGRAM).unwrap();
        put(account, TOKEN_PROGRAM, token_account(token.mint, owner, place.swap.amount + 3).data);
        let mut mint = vec![0; 82];
        (mint[44], mint[45]) = (6, 1);
        put(token.mint, TOKEN_PROGRAM, mint);
    }
    let mut solana = Solana::of(svm, CHAIN, "testnet", Arc::default());
    for party in [owner, redeemer, stranger().address()] {
        solana.fund(&party.to_string(), "solana_testnet:sol", 20 * SOL).unwrap();
    }
    let nodes = connect(solana, CHAIN, case.registry);
    Order { case, line, record, terms, place, nodes }
}

impl Order {
    fn mine(&self, blocks: u64) {
        self.nodes.transport().0.lock().unwrap().mine(blocks);
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        ask(&mut *self.nodes.transport().0.lock().unwrap(), method, params)
    }

    async fn fund(&self) {
        let text = self.line.to_string();
        let value = tree::parse(text.as_bytes()).unwrap();
        let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
        let order = countersign::verify(proposal, self.case.registry, &Policy::default()).unwrap();
        let unsigned = self.nodes.prepare(&order, CHAIN, "", Speed::Normal, &Policy::default()).await.unwrap();
        let key = self.case.secret_key().unwrap().parse().unwrap();
        send(&self.nodes, CHAIN, signed(unsigned, &key)).await.unwrap();
        self.mine(1 + LAG);
    }

    fn recovery(&self, redeems: bool) -> recover::Recovery {
        let made = if redeems {
            recover::redeem(&self.record, Leg::Source, &SECRET, self.case.registry)
        } else {
            recover::refund(&self.record, Leg::Source, self.case.registry)
        };
        made.unwrap()
    }

    /// Redeems or refunds as a stranger, and returns the transaction's id.
    async fn recover(&self, redeems: bool) -> Result<String, NodeError> {
        let (recovery, sender) = (self.recovery(redeems), stranger().address().to_string());
        let unsigned = self.nodes.prepare_recovery(&recovery, CHAIN, &sender, Speed::Normal, &Policy::default()).await?;
        let id = send(&self.nodes, CHAIN, signed(unsigned, &stranger())).await?;
        self.mine(1 + LAG);
        Ok(id)
    }

    async fn read(&self) -> HtlcState {
        self.nodes.htlc(&self.terms.destination).await.unwrap().state().unwrap().0
    }

    /// Returns what a party has of the locked asset.
    fn has(&self, party: Address) -> u64 {
        let Some(token) = self.place.htlc.token else {
            return self.ask("getBalance", json!([party.to_string()]))["value"].as_u64().unwrap();
        };
        let account = associated_token_account(party, token.mint, TOKEN_PROGRAM).unwrap().to_string();
        let account = self.ask("getAccountInfo", json!([account, {"encoding": "jsonParsed"}]));
        account["value"]["data"]["parsed"]["info"]["tokenAmount"]["amount"].as_str().map_or(0, |amount| amount.parse().unwrap())
    }
}

#[tokio::test]
async fn an_order_of_the_audited_programs_is_funded_proven_and_redeemed() {
    for form in &FORMS[2..] {
        let order = order(form);
        assert_eq!(order.read().await, HtlcState::Absent, "{form}");
        order.fund().await;
        order.mine(90);
        let quorum = order.nodes.htlc(&order.terms.destination).await.unwrap();
        let (state, seen) = quorum.state().unwrap();
        let HtlcState::Locked(locked) = &state else { panic!("{form}: {state:?}") };
        assert_eq!((locked.elapsed, seen.depth, seen.is_finalized), (90, 91, true), "{form}");
        assert_eq!(judged(&order.nodes, &order.terms, &quorum, order.case.registry), Ok(()), "{form}");

        let before = order.has(order.place.swap.redeemer);
        let id = order.recover(true).await.unwrap();
        assert_eq!(order.has(order.place.swap.redeemer), before + order.place.swap.amount, "{form}");
        assert_eq!(order.read().await, HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(id) }, "{form}");
        assert_eq!(order.recover(true).await.unwrap_err().code().name(), "simulation_reverted", "{form}: once");
    }
}

#[tokio::test]
async fn an_order_of_the_audited_programs_is_refunded_after_its_timelock_and_not_before() {
    for form in &FORMS[2..] {
        let order = order(form);
        order.fund().await;
        let before = order.has(order.place.swap.initiator);
        order.mine(order.place.swap.timelock);
        assert_eq!(order.recover(false).await.unwrap_err().code().name(), "simulation_reverted", "{form}");
        order.mine(1);
        let id = order.recover(false).await.unwrap();
        // The rent of a native swap is also returned to the owner.
        let rent = if order.place.htlc.token.is_none() { rent(order.place.htlc.swap_account_length()) } else { 0 };
        assert_eq!(order.has(order.place.swap.initiator), before + order.place.swap.amount + rent, "{form}");
        assert_eq!(order.read().await, HtlcState::Refunded { transaction: Some(id) }, "{form}");
    }
}

/// The network uses up the nonce of a transaction that fails, too. A transaction whose nonce is used up before its
/// block is in no block.
#[tokio::test]
async fn a_nonce_is_used_by_one_transaction() {
    let order = order(FORMS[0]);
    order.fund().await;
    let made_by = |key: &Key, redeems: bool, nonce: Hash| -> SignedOrder {
        let recover::Recovery::Solana(recovery) = order.recovery(redeems) else { panic!("a recovery of Solana") };
        let context = TxContext::new().with_nonce(DurableNonce::new(NONCE, nonce)).sent_by(key.address());
        signed(Unsigned::Solana(recovery.prepare(context).unwrap()), key)
    };
    let made = |redeems: bool, nonce: Hash| made_by(&stranger(), redeems, nonce);
    let is_refused = async |transaction: SignedOrder| {
        let sent = send(&order.nodes, CHAIN, transaction).await;
        assert!(matches!(&sent, Err(NodeError::Rejected { .. })) && format!("{sent:?}").contains("stores another nonce"), "{sent:?}");
    };
    let stored = || {
        let account = order.ask("getAccountInfo", json!([NONCE.to_string(), {"encoding": "base64"}]));
        let data = STANDARD.decode(account["value"]["data"][0].as_str().unwrap()).unwrap();
        Hash::new_from_array(data[40..72].try_into().unwrap())
    };
    let shown = |id: &str| order.ask("getTransaction", json!([id]));

    let (first, before) = (stored(), order.has(order.place.swap.redeemer));
    assert_eq!(first.to_bytes(), [0x5a; 32]);
    is_refused(made(true, Hash::default())).await;
    // Only its authority may use it.
    let foreign = made_by(&Key::from_seed(&[8; 32]), true, first);
    let params = json!([STANDARD.encode(&foreign.transactions()[0].bytes), {"encoding": "base64"}]);
    let refused = call(&mut *order.nodes.transport().0.lock().unwrap(), "sendTransaction", params);
    assert_eq!(refused["error"]["data"]["err"], "BlockhashNotFound");
    is_refused(foreign).await;
    // The refund is too early.
    let id = send(&order.nodes, CHAIN, made(false, first)).await.unwrap();
    order.mine(1 + LAG);
    assert!(shown(&id)["meta"]["err"].is_object());
    let second = stored();
    assert_ne!(second, first);
    is_refused(made(true, first)).await;
    let (redemption, refund) = (made(true, second), made(false, second));
    // No blockhash would be valid for so long.
    order.mine(1_000);
    send(&order.nodes, CHAIN, redemption).await.unwrap();
    let late = send(&order.nodes, CHAIN, refund).await.unwrap();
    order.mine(1 + LAG);
    assert_eq!(order.has(order.place.swap.redeemer), before + order.place.swap.amount);
    assert_eq!(shown(&late), Value::Null);
    assert!(![first, second].contains(&stored()));
    is_refused(made(false, second)).await;
}
