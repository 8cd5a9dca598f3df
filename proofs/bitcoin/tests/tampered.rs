//! Tests a hostile service that names another deposit address. Each answer is refused. If it is paid anyway, it costs
//! the owner the amount.
//!
//! The payment is built and signed with rust-bitcoin alone. Bitcoin Core's script verifier decides who can spend it.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a panic in a test is a failed test")]

mod support;

use bitcoin::absolute::LockTime;
use bitcoin::bech32::segwit;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, WitnessProgram, WitnessVersion};
use countersign_bitcoin::htlc::{Htlc, Leaf, Tree};
use countersign_bitcoin::{FeeRate, TxContext, Utxo};
use countersign_core::Code;
use serde_json::Value;
use support::by_hand::{through_key, through_leaf};
use support::ledger::{Invalid, Ledger};
use support::{INITIATOR, REDEEMER, SECRET, Scene, WALLET, outpoint, scripts, scripts_of, signed, x_only};

const NETWORKS: [&str; 2] = ["bitcoin:testnet", "litecoin:testnet"];
const THIEF: &str = "4444444444444444444444444444444444444444444444444444444444444444";
const TIMELOCK: u16 = 144;
/// The owner's balance, the order's amount, and the fee of each transaction that is made by hand.
const FUNDS: u64 = 200_000;
const AMOUNT: u64 = 50_000;
const FEE: u64 = 1_000;
/// The balances of owner, solver and thief once the thief has the deposit.
const STOLEN: [u64; 3] = [FUNDS - AMOUNT - FEE, 0, AMOUNT - FEE];
/// A secret that the solver chose, not the owner.
const SOLVERS_OWN: [u8; 32] = *b"countersign proofs: solver's own";

/// An order, and a chain on which its owner has one coin.
struct Stage {
    scene: Scene,
    ledger: Ledger,
}

/// Returns an unsigned transaction that spends one coin to these outputs.
fn spending(coin: OutPoint, sequence: Sequence, output: Vec<TxOut>) -> Transaction {
    let input = vec![TxIn { previous_output: coin, sequence, ..TxIn::default() }];
    Transaction { version: Version::TWO, lock_time: LockTime::ZERO, input, output }
}

fn output(value: u64, script_pubkey: ScriptBuf) -> TxOut {
    TxOut { value: Amount::from_sat(value), script_pubkey }
}

/// Returns a payment of what an answer asks for, without checks.
fn blindly(answer: &Value) -> Transaction {
    let (_, version, program) = segwit::decode(answer["to"].as_str().expect("a text")).expect("an address");
    let version = WitnessVersion::try_from(version).expect("a version");
    let to = ScriptBuf::new_witness_program(&WitnessProgram::new(version, &program).expect("a program"));
    let amount = answer["amount"].as_str().expect("a text").parse::<u64>().expect("a number");
    let own = scripts().p2tr;
    let outputs = vec![output(amount, to), output(FUNDS - amount - FEE, own.clone())];
    let transaction = spending(outpoint(1), Sequence::MAX, outputs);
    through_key(transaction, &[output(FUNDS, own)], WALLET, None)
}

impl Stage {
    fn new(network: &str) -> Self {
        let mut ledger = Ledger::default();
        ledger.add(outpoint(1), output(FUNDS, scripts().p2tr));
        Self { scene: Scene::new(network, TIMELOCK, AMOUNT), ledger }
    }

    fn wallet(&self) -> TxContext {
        let coin = Utxo::new(outpoint(1), output(FUNDS, scripts().p2tr)).expect("a coin");
        TxContext::new(vec![coin], self.scene.chain.address(&scripts().p2tr).expect("an address"), FeeRate::from_whole(2))
    }

    /// Returns the order's HTLC with changed terms.
    fn changed(&self, change: impl FnOnce(&mut Htlc)) -> Tree {
        let mut htlc = self.scene.tree.htlc;
        change(&mut htlc);
        Tree::new(htlc).expect("a point")
    }

    /// Checks that this deposit address is refused, either with a record of this HTLC or without any.
    fn refused(&self, to: &str, record: Option<&Tree>, code: Code, at: &str) {
        let record = record.map(|tree| self.scene.order_of(tree));
        let refusal = self.scene.answered(&self.scene.answer(to), record.as_ref(), self.wallet()).expect_err("a tampered answer");
        assert_eq!((refusal.code(), refusal.location()), (code, at), "{refusal}");
    }

    /// Checks that the address is refused, without a record and with an honest one. Then pays it anyway.
    fn refused_then_paid(&mut self, to: &str) -> Deposit {
        for record in [None, Some(&self.scene.tree)] {
            self.refused(to, record, Code::AddressNotDerived, "/response/result/to");
        }
        self.paid(&self.scene.answer(to))
    }

    /// Signs and executes what an answer asks for, without checks.
    fn paid(&mut self, answer: &Value) -> Deposit {
        let transaction = blindly(answer);
        assert_eq!(self.ledger.execute(&transaction), Ok(()));
        assert_eq!(self.holdings()[0], FUNDS - AMOUNT - FEE);
        Deposit { outpoint: OutPoint { txid: transaction.compute_txid(), vout: 0 }, output: transaction.output[0].clone() }
    }

    /// Returns the balances of owner, solver and thief.
    fn holdings(&self) -> [u64; 3] {
        [WALLET, REDEEMER, THIEF].map(|key| self.ledger.balance(&scripts_of(key).p2tr))
    }
}

/// A deposit on the chain.
struct Deposit {
    outpoint: OutPoint,
    output: TxOut,
}

impl Deposit {
    /// Returns an unsigned transaction that pays everything to the spender's key.
    fn to(&self, spender: &str, sequence: Sequence) -> Transaction {
        spending(self.outpoint, sequence, vec![output(AMOUNT - FEE, scripts_of(spender).p2tr)])
    }

    /// Returns a transaction that spends the deposit with the output's key.
    fn by_key(&self, key: &str, scripts: Option<&Tree>) -> Transaction {
        through_key(self.to(key, Sequence::MAX), std::slice::from_ref(&self.output), key, scripts)
    }

    fn redeem(&self, tree: &Tree, key: &str, secret: &[u8; 32]) -> Transaction {
        through_leaf(self.to(key, Sequence::MAX), std::slice::from_ref(&self.output), (tree, Leaf::Redeem), key, Some(secret))
    }

    /// Returns a refund that `key` signs and that pays the key of `to`.
    fn refund(&self, tree: &Tree, key: &str, to: &str) -> Transaction {
        let transaction = self.to(to, Sequence::from_height(TIMELOCK));
        through_leaf(transaction, std::slice::from_ref(&self.output), (tree, Leaf::Refund), key, None)
    }
}

/// Checks that the owner cannot refund the deposit as the right HTLC, and that the thief gets it.
fn stolen(stage: &mut Stage, deposit: &Deposit, theft: &Transaction, holdings: [u64; 3]) {
    let refund = deposit.refund(&stage.scene.tree, INITIATOR, WALLET);
    assert_eq!(stage.ledger.execute(&refund), Err(Invalid::Script(0)));
    assert_eq!(stage.ledger.execute(theft), Ok(()));
    assert_eq!(stage.holdings(), holdings);
    assert_eq!(stage.ledger.execute(&refund), Err(Invalid::Missing));
}

/// The control test. An honest answer leads to the same payment by hand and by the library. No thief can spend it,
/// and the owner can refund it.
#[test]
fn the_blind_hand_pays_an_honest_answer_as_the_library_does() {
    for network in NETWORKS {
        let mut stage = Stage::new(network);
        let honest = stage.scene.tree;
        let answer = stage.scene.answer(&honest.address(stage.scene.chain));
        let deposit = stage.paid(&answer);
        for record in [None, Some(stage.scene.order_of(&honest))] {
            let unsigned = stage.scene.answered(&answer, record.as_ref(), stage.wallet()).expect("an honest answer");
            assert_eq!(signed(unsigned, WALLET).expect("the key").output[0], deposit.output);
        }
        let thefts = [
            deposit.by_key(THIEF, None),
            deposit.by_key(THIEF, Some(&honest)),
            deposit.redeem(&honest, THIEF, &SECRET),
            deposit.redeem(&honest, REDEEMER, &SOLVERS_OWN),
            deposit.refund(&honest, THIEF, THIEF),
        ];
        for theft in thefts {
            assert_eq!(stage.ledger.execute(&theft), Err(Invalid::Script(0)));
        }
        assert_eq!(stage.ledger.execute(&deposit.refund(&honest, INITIATOR, WALLET)), Ok(()));
        assert_eq!(stage.holdings(), [FUNDS - 2 * FEE, 0, 0]);
    }
}

#[test]
fn the_address_of_the_thief() {
    for network in NETWORKS {
        let mut stage = Stage::new(network);
        let to = stage.scene.chain.address(&scripts_of(THIEF).p2tr).expect("an address");
        let deposit = stage.refused_then_paid(&to);
        stolen(&mut stage, &deposit, &deposit.by_key(THIEF, None), STOLEN);
    }
}

/// The right leaves under an internal key that somebody controls.
#[test]
fn another_internal_key() {
    for network in NETWORKS {
        let mut stage = Stage::new(network);
        let tree = stage.changed(|htlc| htlc.internal_key = x_only(THIEF));
        let deposit = stage.refused_then_paid(&tree.address(stage.scene.chain));
        stolen(&mut stage, &deposit, &deposit.by_key(THIEF, Some(&tree)), STOLEN);
    }
}

#[test]
fn an_address_with_another_redeemer() {
    for network in NETWORKS {
        let mut stage = Stage::new(network);
        let tree = stage.changed(|htlc| htlc.redeemer = x_only(THIEF));
        let to = tree.address(stage.scene.chain);
        stage.refused(&to, Some(&tree), Code::UnknownRedeemer, "/order/source_swap/redeemer");
        let deposit = stage.refused_then_paid(&to);
        // The owner reveals the secret by redeeming the destination.
        stolen(&mut stage, &deposit, &deposit.redeem(&tree, THIEF, &SECRET), STOLEN);
    }
}

#[test]
fn an_address_with_another_secret_hash() {
    for network in NETWORKS {
        let mut stage = Stage::new(network);
        let tree = stage.changed(|htlc| htlc.secret_hash = sha256::Hash::hash(&SOLVERS_OWN).to_byte_array());
        let to = tree.address(stage.scene.chain);
        stage.refused(&to, Some(&tree), Code::SecretHashMismatch, "/order/source_swap/secret_hash");
        let deposit = stage.refused_then_paid(&to);
        // The solver does this at once, without paying the destination.
        stolen(&mut stage, &deposit, &deposit.redeem(&tree, REDEEMER, &SOLVERS_OWN), [FUNDS - AMOUNT - FEE, AMOUNT - FEE, 0]);
    }
}

#[test]
fn an_address_with_another_refund_key() {
    for network in NETWORKS {
        let mut stage = Stage::new(network);
        let tree = stage.changed(|htlc| htlc.initiator = x_only(THIEF));
        let to = tree.address(stage.scene.chain);
        stage.refused(&to, Some(&tree), Code::InitiatorMismatch, "/order/source_swap/delegate");
        let deposit = stage.refused_then_paid(&to);
        // The solver only has to wait.
        stolen(&mut stage, &deposit, &deposit.refund(&tree, THIEF, THIEF), STOLEN);
    }
}
