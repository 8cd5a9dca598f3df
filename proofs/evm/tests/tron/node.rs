//! Tests a swap on Tron that `countersign-node` reads and writes. An order that the contract executed becomes
//! evidence, its redemption and refund are found, and broadcast transactions arrive.
//!
//! The node has Tron's HTTP interface on this crate's engine. `calls.rs` states what the virtual machine leaves out.
//! The node here speaks Tron's HTTP interface over the engine of this crate. What the machine leaves out is said in `calls.rs`.

use std::fs;
use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use alloy_sol_types::SolCall;
use countersign::recover::Recovery;
use countersign::tron::recover::{self, Leg};
use countersign::tron::{Address as TronAddress, Key};
use countersign::{
    BroadcastTransaction, Funded, Policy, Registry, SecretHash, Signed, Unsigned, VerifiedRecord,
    evidence::{Hold, HtlcState, HtlcTerms},
    json, verify_record,
};
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes, Speed};
use countersign_proofs_evm::abi::{Erc20, Htlc};
use countersign_proofs_evm::{Contract, World};

use crate::chain::{Chain, GENESIS, LAG, Node, START, bare};
use crate::{fixtures, registry};

const SECRET: [u8; 32] = *b"the secret of these proofs, 2026";
/// The balance of the account that sends recoveries, in sun.
const FUNDS: u64 = 100_000_000;

/// Returns the output of a future. Nothing here waits, so the future is ready at the first poll.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing waits"),
    }
}

/// A chain with the contracts of one side of an order, and a connection to it.
struct Stage {
    nodes: Nodes<Node>,
    registry: Registry,
    record: VerifiedRecord,
    htlc: Address,
    token: Address,
}

/// Returns the key of the account that sends recoveries.
fn sender() -> Key {
    format!("{:064x}", 7).parse().unwrap()
}

fn fixture(name: &str, id: &str) -> String {
    let text = fs::read_to_string(fixtures().join(name)).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{{\"id\":\"{id}\""))).expect(id).to_owned();
    format!("{}}}", line.split_once(",\"note\":").unwrap().0)
}

fn verified(input: &str, registry: &Registry) -> VerifiedRecord {
    let value = json::parse(input.as_bytes()).unwrap();
    verify_record(countersign_json::line::Case::from_value(&value).unwrap().proposal().unwrap(), registry, &Policy::default()).unwrap()
}

impl Stage {
    /// Returns an order of the fixtures with these proofs' secret. Its id is the one that the contract itself
    /// computes.
    fn new(file: &str, id: &str, leg: Leg) -> Self {
        let registry = registry().unwrap();
        let input = fixture(file, id);
        let before = verified(&input, &registry).terms;
        let changed = input.replace(&hex::encode(before.source.secret_hash.0), &SecretHash::of(&SECRET).to_string());
        let terms = before.leg(leg);
        let mut world = World::new(u64::from(GENESIS), START);
        let htlc = TronAddress::from_account(terms.htlc.as_ref().unwrap()).unwrap().bytes();
        let token = TronAddress::parse(terms.token.as_ref().unwrap()).unwrap().bytes();
        world.deploy_at(token, &Contract::Token { symbol: "TRC20", decimals: 6 }).unwrap();
        world.deploy_at(htlc, &Contract::Htlc { token, version: "3" }).unwrap();
        world.fund(sender().address(), U256::from(FUNDS));
        let initiator = TronAddress::from_account(&terms.initiator).unwrap().bytes();
        let mint = Erc20::mintCall { to: initiator, value: terms.amount };
        assert!(world.call(initiator, token, mint.abi_encode(), U256::ZERO).unwrap().is_success());
        let approve = Erc20::approveCall { spender: htlc, value: terms.amount };
        assert!(world.call(initiator, token, approve.abi_encode(), U256::ZERO).unwrap().is_success());

        // The contract's event for these terms, from a copy of the chain.
        let receipt = world.clone().call(initiator, htlc, initiate(terms), U256::ZERO).unwrap();
        let made = receipt.event::<Htlc::Initiated>(htlc).expect("an order").orderId;
        // Only the other side's id has a formula that is certain.
        let other = if leg == Leg::Source { &before.destination } else { &before.source };
        let changed = recomputed(&changed, other, &registry).replace(&terms.swap_id, &bare(made));
        let record = verified(&changed, &registry);
        let endpoints = Endpoints::new(vec![Endpoint::parse("https://node.example").unwrap()]).unwrap();
        let nodes = Nodes::new(Node(Mutex::new(Chain::new(world))), NodeConfig::new().with("tron", endpoints), &registry);
        Self { nodes, registry, record, htlc, token }
    }

    fn chain(&self) -> std::sync::MutexGuard<'_, Chain> {
        self.nodes.transport().0.lock().unwrap()
    }

    fn state(&self, leg: Leg) -> HtlcState {
        ready(self.nodes.tron("tron").unwrap().htlc(self.record.terms.leg(leg))).unwrap().state().unwrap().0
    }

    fn judge(&self) -> Result<Funded, Hold> {
        let quorum = ready(self.nodes.tron("tron").unwrap().htlc(&self.record.terms.destination)).unwrap();
        let (_, seen) = quorum.state().unwrap();
        let rule = self.registry.chains().find(|chain| chain.name() == "tron").unwrap().profile.finality;
        Funded::judge(&self.record.terms, &quorum, &rule, seen.head_time)
    }

    fn initiate(&self, leg: Leg) {
        let terms = self.record.terms.leg(leg);
        let initiator = TronAddress::from_account(&terms.initiator).unwrap().bytes();
        assert!(self.chain().execute(B256::repeat_byte(0x11), initiator, self.htlc, initiate(terms).into(), U256::ZERO));
    }

    /// Prepares a recovery with the node's answers.
    fn prepare(&self, recovery: recover::Recovery) -> Result<Unsigned, NodeError> {
        let account = TronAddress::from(sender().address()).to_string();
        let (recovery, policy) = (Recovery::Tron(recovery), Policy::default());
        ready(self.nodes.prepare_recovery(&recovery, "tron", &account, Speed::Normal, &policy))
    }

    /// Prepares, signs and sends a recovery.
    fn recover(&self, recovery: recover::Recovery) -> BroadcastTransaction {
        let Unsigned::Tron(mut unsigned) = self.prepare(recovery).unwrap() else { panic!("not of Tron") };
        unsigned.sign(&sender()).unwrap();
        let [kept] = Signed::from(unsigned.finish().unwrap()).broadcasts().try_into().unwrap();
        let tron = self.nodes.tron("tron").unwrap();
        ready(tron.broadcast(&kept.id, &kept.payload)).unwrap();
        // Repeating the broadcast has no further effect.
        ready(tron.broadcast(&kept.id, &kept.payload)).unwrap();
        kept
    }

    fn succeeded(&self, kept: &BroadcastTransaction) -> bool {
        ready(self.nodes.tron("tron").unwrap().receipt(kept.id.parse().unwrap())).unwrap().expect("a receipt").success
    }

    fn holds(&self, account: &countersign::chains::Account) -> U256 {
        self.chain().now.balance_of(self.token, TronAddress::from_account(account).unwrap().bytes()).unwrap()
    }
}

/// Returns the initiation with destination data, the only form in orders on Tron.
fn initiate(terms: &HtlcTerms) -> Vec<u8> {
    let call = Htlc::initiate_1Call {
        redeemer: TronAddress::from_account(&terms.redeemer).unwrap().bytes(),
        timelock: U256::from(terms.timelock),
        amount: terms.amount,
        secretHash: SecretHash::of(&SECRET).0.into(),
        destinationData: Bytes::new(),
    };
    call.abi_encode()
}

/// Replaces the swap id of a side with a certain formula. The refusal states the right id.
fn recomputed(input: &str, terms: &HtlcTerms, registry: &Registry) -> String {
    let value = json::parse(input.as_bytes()).unwrap();
    let proposal = countersign_json::line::Case::from_value(&value).unwrap().proposal().unwrap();
    let refusal = verify_record(proposal, registry, &Policy::default()).unwrap_err();
    input.replace(&terms.swap_id, &refusal.expected().expect("an id").to_string())
}

#[test]
fn an_order_that_the_contract_executed_is_evidence() {
    let stage = Stage::new("accept/evm.jsonl", "evm-record-tron", Leg::Destination);
    assert_eq!(stage.state(Leg::Destination), HtlcState::Absent);
    assert_eq!(stage.judge(), Err(Hold::NotFunded));

    stage.initiate(Leg::Destination);
    assert!(matches!(stage.judge(), Err(Hold::NotFinal { .. })));
    stage.chain().advance(LAG - 1);
    assert!(matches!(stage.judge(), Err(Hold::NotFinal { .. })));
    stage.chain().advance(1);
    let funded = stage.judge().unwrap();
    let terms = &stage.record.terms.destination;
    assert_eq!(funded.left().units, terms.timelock - LAG);
    let HtlcState::Locked(locked) = stage.state(Leg::Destination) else { panic!("locked") };
    assert_eq!((locked.secret_hash, locked.covered), (Some(SecretHash::of(&SECRET)), true));

    // The redemption pays the redeemer and reveals the secret.
    let redemption = recover::redeem(&stage.record.record, Leg::Destination, &SECRET, &stage.registry).unwrap();
    let kept = stage.recover(redemption);
    assert!(stage.succeeded(&kept));
    assert_eq!(stage.holds(&terms.redeemer), terms.amount);
    assert_eq!(stage.state(Leg::Destination), HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(kept.id) });
    assert_eq!(stage.judge(), Err(Hold::Redeemed));
}

#[test]
fn a_refund_is_sent_and_found() {
    let stage = Stage::new("accept/tron.jsonl", "tron-record-evm-v2", Leg::Source);
    stage.initiate(Leg::Source);
    let terms = stage.record.terms.source.clone();
    let refund = recover::refund(&stage.record.record, Leg::Source, &stage.registry).unwrap();

    // Too early. The contract would revert, so nothing is signed.
    assert_eq!(stage.prepare(refund.clone()).unwrap_err().code().name(), "simulation_reverted");
    assert!(matches!(stage.state(Leg::Source), HtlcState::Locked(_)));
    let (blocks, initiated) = (stage.chain().now.block_number(), START + 1);
    stage.chain().now.advance_blocks(initiated + terms.timelock + 1 - blocks);
    // The expiration is counted from an irreversible block.
    stage.chain().advance(LAG);
    let kept = stage.recover(refund);
    assert!(stage.succeeded(&kept));
    assert_eq!(stage.holds(&terms.initiator), terms.amount);
    assert_eq!(stage.state(Leg::Source), HtlcState::Refunded { transaction: Some(kept.id) });
}

/// An amount, redeemer or timelock other than the verified one, executed by the same contract under its own id.
#[test]
fn an_order_with_other_terms_is_held_back() {
    type Change = fn(&mut HtlcTerms);
    let changes: [(&str, Change); 3] = [
        ("redeemer", |terms| terms.redeemer = TronAddress::from([9; 20]).to_account()),
        ("timelock", |terms| terms.timelock -= 1),
        ("amount", |terms| terms.amount -= U256::ONE),
    ];
    for (what, change) in changes {
        let mut stage = Stage::new("accept/evm.jsonl", "evm-record-tron", Leg::Destination);
        let honest = stage.record.terms.destination.clone();
        let mut other = honest.clone();
        change(&mut other);
        let initiator = TronAddress::from_account(&other.initiator).unwrap().bytes();
        let (htlc, call) = (stage.htlc, initiate(&other));
        let made = stage.chain().now.clone().call(initiator, htlc, call.clone(), U256::ZERO).unwrap();
        // The service claims that this is the order.
        stage.record.terms.destination.swap_id = bare(made.event::<Htlc::Initiated>(htlc).unwrap().orderId);
        assert!(stage.chain().execute(B256::repeat_byte(0x11), initiator, htlc, call.into(), U256::ZERO));
        stage.chain().advance(LAG);
        let hold = stage.judge().unwrap_err();
        assert!(matches!(&hold, Hold::Differs(difference) if difference.what == what), "{what}: {hold}");
    }
}
