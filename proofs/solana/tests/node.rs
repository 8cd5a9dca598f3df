//! Tests that `countersign-node` reads and writes the virtual machine through the JSON-RPC interface of the network's
//! nodes.
//!
//! This proof's programs make the swaps, and accounts are also written byte by byte in the interfaces' layouts. The
//! deployed programs are not available. That they store and do the same is not shown here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

#[path = "../../../crates/solana/tests/forms/mod.rs"]
mod forms;

use std::sync::Mutex;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::chains::UnixTime;
use countersign::solana::address::{TOKEN_PROGRAM, associated_token_account, to_account};
use countersign::solana::htlc::{Htlc, HtlcAccount};
use countersign::solana::read::{self, SwapLocation};
use countersign::solana::solana_hash::Hash;
use countersign::solana::solana_instruction::Instruction;
use countersign::solana::solana_message::v1::TransactionConfig;
use countersign::solana::solana_message::{Message, VersionedMessage};
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::solana::{Address, DurableNonce, Key, Solana, TxContext};
use countersign::{
    Family, Funded, Leg, OrderRecord, Policy, SecretHash, U256, Unsigned, Verified,
    chains::FinalityRule,
    evidence::{HtlcState, HtlcTerms, VerifiedTerms},
    json as tree, recover,
    trust::Generation,
};
use countersign_client::{Request, Response, Transport, TransportError};
use countersign_json::line::Case as JsonCase;
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes, Speed};
use countersign_proofs_solana::{audited_machine, machine, rent};
use countersign_testkit::{Case, fixture};
use litesvm::LiteSVM;
use litesvm::types::TransactionMetadata;
use serde_json::{Value, json};
use solana_account::Account;
use solana_clock::Clock;
use solana_keypair::Keypair;
use solana_nonce::state::State;
use solana_nonce::versions::Versions;
use solana_signer::Signer;
use solana_system_interface::instruction::create_nonce_account;

const SECRET: [u8; 32] = *b"a secret that nobody would guess";
const NOW: u64 = 1_800_000_000;
const FUNDS: u64 = 20_000_000_000;

/// A record for each form of the programs.
const RECORDS: [&str; 4] = ["solana-record-testnet", "solana-record-token", "solana-audited-native-record", "solana-audited-token-record"];

/// A transaction that the virtual machine has executed.
struct Run {
    slot: u64,
    transaction: VersionedTransaction,
    meta: TransactionMetadata,
    error: Option<String>,
}

/// The virtual machine, as a node presents it.
struct Front {
    genesis: &'static str,
    state: Mutex<(LiteSVM, Vec<Run>)>,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Front")
    }
}

fn shown(account: Option<&Account>) -> Value {
    let shown = |account: &Account| {
        let (owner, data) = (account.owner.to_string(), json!([STANDARD.encode(&account.data), "base64"]));
        json!({"lamports": account.lamports, "owner": owner, "data": data, "executable": account.executable, "rentEpoch": u64::MAX})
    };
    account.filter(|account| account.lamports > 0).map_or(Value::Null, shown)
}

fn decoded(payload: &Value) -> VersionedTransaction {
    wincode::deserialize_exact(&STANDARD.decode(payload.as_str().unwrap()).unwrap()).unwrap()
}

impl Run {
    fn shown(&self) -> Value {
        let inner = self.meta.inner_instructions.iter().enumerate().filter(|(_, called)| !called.is_empty()).map(|(index, called)| {
            let called = called.iter().map(|inner| {
                let instruction = &inner.instruction;
                let data = bs58::encode(&instruction.data).into_string();
                json!({"programIdIndex": instruction.program_id_index, "accounts": instruction.accounts, "data": data})
            });
            json!({"index": index, "instructions": called.collect::<Vec<_>>()})
        });
        let err = self.error.as_ref().map_or(Value::Null, |error| json!(error));
        json!({
            "slot": self.slot,
            "transaction": [STANDARD.encode(wincode::serialize(&self.transaction).unwrap()), "base64"],
            "meta": {"err": err, "innerInstructions": inner.collect::<Vec<_>>(), "loadedAddresses": {"writable": [], "readonly": []}, "logMessages": self.meta.logs},
        })
    }
}

impl Front {
    fn result(&self, method: &str, params: &Value) -> Value {
        let (svm, runs) = &mut *self.state.lock().unwrap();
        let slot = svm.get_sysvar::<Clock>().slot;
        let context = |value: Value| json!({"context": {"slot": slot}, "value": value});
        let address = |value: &Value| value.as_str().unwrap().parse::<Address>().unwrap();
        match method {
            "getGenesisHash" => json!(self.genesis),
            "getSlot" | "getBlockHeight" => json!(slot),
            "getMultipleAccounts" => {
                // The virtual machine has only one recent blockhash.
                let hashes = || [&1_u64.to_le_bytes(), svm.latest_blockhash().as_ref(), &5_000_u64.to_le_bytes()].concat();
                let recent = || Account { lamports: 1, data: hashes(), ..Account::default() };
                let get = |key: Address| if key == read::RECENT_BLOCKHASHES { Some(recent()) } else { svm.get_account(&key) };
                let keys = params[0].as_array().unwrap();
                context(keys.iter().map(|key| shown(get(address(key)).as_ref())).collect())
            }
            "isBlockhashValid" => context(json!(params[0] == svm.latest_blockhash().to_string())),
            "getLatestBlockhash" => context(json!({"blockhash": svm.latest_blockhash().to_string(), "lastValidBlockHeight": slot + 150})),
            "getRecentPrioritizationFees" => json!([]),
            "getMinimumBalanceForRentExemption" => {
                json!(svm.minimum_balance_for_rent_exemption(usize::try_from(params[0].as_u64().unwrap()).unwrap()))
            }
            "getSignaturesForAddress" => {
                let names = |run: &&Run| run.transaction.message.static_account_keys().contains(&address(&params[0]));
                let one = |run: &Run| json!({"signature": run.transaction.signatures[0].to_string(), "slot": run.slot, "err": run.error});
                runs.iter().rev().filter(names).map(one).collect()
            }
            "getTransaction" => {
                let found = runs.iter().find(|run| json!(run.transaction.signatures[0].to_string()) == params[0]);
                let newest = found.map(|run| u64::from(matches!(run.transaction.message, VersionedMessage::V1(_))));
                if newest > params[1]["maxSupportedTransactionVersion"].as_u64() {
                    return json!({"error": {"code": -32_015, "message": "Transaction version (1) is not supported"}});
                }
                found.map_or(Value::Null, Run::shown)
            }
            "simulateTransaction" => {
                // A simulated transaction is not signed yet.
                let simulated = svm.clone().with_sigverify(false).simulate_transaction(decoded(&params[0]));
                let keys = params[1]["accounts"]["addresses"].as_array().unwrap();
                match simulated {
                    Err(failed) => context(json!({"err": {"failed": failed.err.to_string()}, "logs": failed.meta.logs, "accounts": null})),
                    Ok(info) => {
                        let after = |key: &Value| {
                            let after = info.post_accounts.iter().find(|(changed, _)| *changed == address(key));
                            let after = after.map(|(_, account)| Account::from(account.clone()));
                            shown(after.or_else(|| svm.get_account(&address(key))).as_ref())
                        };
                        let units = info.meta.compute_units_consumed;
                        context(
                            json!({"err": null, "logs": [], "unitsConsumed": units, "accounts": keys.iter().map(after).collect::<Vec<_>>()}),
                        )
                    }
                }
            }
            "sendTransaction" => {
                let transaction = decoded(&params[0]);
                let (meta, error) = match svm.send_transaction(transaction.clone()) {
                    Ok(meta) => (meta, None),
                    Err(failed) => (failed.meta, Some(failed.err.to_string())),
                };
                let id = transaction.signatures[0].to_string();
                if !runs.iter().any(|run| run.transaction.signatures == transaction.signatures) {
                    runs.push(Run { slot, transaction, meta, error });
                }
                json!(id)
            }
            "getSignatureStatuses" => {
                let found = runs.iter().find(|run| json!(run.transaction.signatures[0].to_string()) == params[0][0]);
                let status = found.map(|run| json!({"slot": run.slot, "err": run.error, "confirmationStatus": "finalized"}));
                context(json!([status]))
            }
            _ => json!({"error": {"code": -32601, "message": "Method not found"}}),
        }
    }

    fn reply(&self, call: &Value) -> Value {
        let result = self.result(call["method"].as_str().unwrap(), &call["params"]);
        match result.get("error") {
            Some(error) => json!({"jsonrpc": "2.0", "id": call["id"], "error": error}),
            None => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
        }
    }

    fn with<R>(&self, change: impl FnOnce(&mut LiteSVM) -> R) -> R {
        change(&mut self.state.lock().unwrap().0)
    }

    /// Advances the slot. Blockhashes change with it.
    fn warp(&self, slot: u64) {
        self.with(|svm| {
            svm.set_sysvar(&Clock { slot, unix_timestamp: i64::try_from(NOW).unwrap(), ..Clock::default() });
            svm.expire_blockhash();
        });
    }
}

impl Transport for Front {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let calls: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
        let reply = match &calls {
            Value::Array(calls) => calls.iter().map(|call| self.reply(call)).collect(),
            call => self.reply(call),
        };
        Ok(Response::new(200, reply.to_string().into_bytes()))
    }

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(NOW)
    }
}

fn put(svm: &mut LiteSVM, address: Address, owner: Address, lamports: u64, data: &[u8]) {
    svm.set_account(address, Account { lamports, data: data.to_vec(), owner, executable: false, rent_epoch: u64::MAX }).unwrap();
}

fn put_tokens(svm: &mut LiteSVM, account: Address, mint: Address, owner: Address, amount: u64) {
    let mut data = [mint.as_ref(), owner.as_ref(), &amount.to_le_bytes(), &[0; 93]].concat();
    data[108] = 1;
    put(svm, account, TOKEN_PROGRAM, rent(165), &data);
}

/// An order on its own virtual machine, whose payload and record have the hash of this proof's secret.
struct Scene {
    case: Case,
    line: Value,
    terms: VerifiedTerms,
    htlc: Htlc,
    swap: HtlcAccount,
    nodes: Nodes<Front>,
}

fn proposal<R>(line: &Value, then: impl FnOnce(countersign::Proposal<'_>) -> R) -> R {
    let text = line.to_string();
    let value = tree::parse(text.as_bytes()).unwrap();
    then(JsonCase::from_value(&value).unwrap().proposal().unwrap())
}

fn located(terms: &HtlcTerms) -> SwapLocation {
    SwapLocation::new(terms).unwrap()
}

fn scene(form: &str) -> Scene {
    let case = fixture::<Solana>(form);
    let mut line = case.json();
    let old = proposal(&line, |proposal| countersign::verify_record(proposal, case.registry, &Policy::default()).unwrap().terms);
    let mut terms = old.clone();
    let hash = SecretHash::of(&SECRET);
    terms.source.secret_hash = hash;
    let (before, after) = (located(&old.source), located(&terms.source));

    // The fixture's payload with another hash, and the swap account derived from it.
    let mut payload = STANDARD.decode(line["response"]["result"]["versioned_tx"].as_str().unwrap()).unwrap();
    for (from, to) in [(old.source.secret_hash.0, hash.0), (before.swap_account.to_bytes(), after.swap_account.to_bytes())] {
        let places: Vec<_> = (0..payload.len() - 31).filter(|place| payload[*place..place + 32] == from).collect();
        places.into_iter().for_each(|place| payload[place..place + 32].copy_from_slice(&to));
    }
    line["response"]["result"]["versioned_tx"] = json!(STANDARD.encode(payload));
    line["response"]["result"]["versioned_tx_gasless"] = Value::Null;
    line["request"]["secret_hash"] = json!(hash.to_string());
    for leg in ["source_swap", "destination_swap"] {
        line["order"][leg]["secret_hash"] = json!(hash.to_string());
    }
    let owner = after.swap.initiator;
    let number = if terms.source.chain == "solana" { 101 } else { 103 };
    line["order"]["source_swap"]["swap_id"] =
        json!(SecretHash(countersign::chains::swap_id::solana(number, &hash.0, owner.as_ref())).to_string());
    terms.destination = terms.source.clone();

    let (program, nobody) = (after.htlc.program, Address::from([1; 32]));
    let make = if form.contains("audited") { audited_machine } else { machine };
    let mut svm = if after.htlc.token.is_none() { make(program, nobody) } else { make(nobody, program) };
    svm.airdrop(&owner, FUNDS).unwrap();
    svm.airdrop(&after.swap.redeemer, FUNDS).unwrap();
    svm.airdrop(&stranger().address(), FUNDS).unwrap();
    if let Some(token) = after.htlc.token {
        let mut mint = [0; 82];
        (mint[44], mint[45]) = (6, 1);
        put(&mut svm, token.mint, TOKEN_PROGRAM, rent(82), &mint);
        put_tokens(&mut svm, associated_token_account(owner, token.mint, TOKEN_PROGRAM).unwrap(), token.mint, owner, after.swap.amount + 3);
    }
    let nodes = connect(svm, &terms.source, &case);
    nodes.transport().warp(1_000);
    Scene { case, line, terms, htlc: after.htlc, swap: after.swap, nodes }
}

fn connect(svm: LiteSVM, terms: &HtlcTerms, case: &Case) -> Nodes<Front> {
    let genesis = match terms.chain.as_str() {
        "solana" => "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
        _ => "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG",
    };
    let front = Front { genesis, state: Mutex::new((svm, Vec::new())) };
    let endpoints = Endpoints::new(vec![Endpoint::parse("https://machine.example/key").unwrap()]).unwrap();
    Nodes::new(front, NodeConfig::new().with(terms.chain.clone(), endpoints), case.registry)
}

fn stranger() -> Key {
    Key::from_seed(&[9; 32])
}

impl Scene {
    fn name(&self) -> &str {
        &self.terms.source.chain
    }

    /// Returns the verified order. The record's other side still has the fixture's hash, so it is left out.
    fn order(&self) -> Verified {
        let mut line = self.line.clone();
        line.as_object_mut().unwrap().remove("order");
        proposal(&line, |proposal| countersign::verify(proposal, self.case.registry, &Policy::default()).unwrap())
    }

    async fn read(&self) -> HtlcState {
        self.nodes.htlc(&self.terms.destination).await.unwrap().state().unwrap().0
    }

    /// Prepares the order with the virtual machine's answers, signs it and sends it.
    async fn fund(&self) {
        let order = self.order();
        let unsigned = self.nodes.prepare(&order, self.name(), "", Speed::Normal, &Policy::default()).await.unwrap();
        let key: Key = self.case.secret_key().unwrap().parse().unwrap();
        self.send(unsigned, &key).await;
    }

    async fn send(&self, unsigned: Unsigned, key: &Key) {
        let Unsigned::Solana(mut unsigned) = unsigned else { panic!("a transaction of Solana") };
        unsigned.sign(key).unwrap();
        let [kept] = countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().try_into().unwrap();
        // Sends twice, as an interrupted driver would.
        self.nodes.broadcast(self.name(), &kept.id, &kept.payload).await.unwrap();
        self.nodes.broadcast(self.name(), &kept.id, &kept.payload).await.unwrap();
    }

    fn recovery(&self, redeems: bool) -> recover::Recovery {
        let record = OrderRecord::from_json(self.line["order"].to_string().as_bytes()).unwrap();
        let made = if redeems {
            recover::redeem(&record, Leg::Source, &SECRET, self.case.registry)
        } else {
            recover::refund(&record, Leg::Source, self.case.registry)
        };
        made.unwrap()
    }

    async fn recover(&self, redeems: bool) -> Result<(), countersign_node::NodeError> {
        let sender = stranger().address().to_string();
        let recovery = self.recovery(redeems);
        let unsigned = self.nodes.prepare_recovery(&recovery, self.name(), &sender, Speed::Normal, &Policy::default()).await?;
        self.send(unsigned, &stranger()).await;
        Ok(())
    }

    /// Returns a party's balance of the locked asset.
    fn has(&self, party: Address) -> u64 {
        self.nodes.transport().with(|svm| match self.htlc.token {
            None => svm.get_balance(&party).unwrap_or_default(),
            Some(token) => {
                let account = associated_token_account(party, token.mint, TOKEN_PROGRAM).and_then(|account| svm.get_account(&account));
                account.map_or(0, |account| u64::from_le_bytes(account.data[64..72].try_into().unwrap()))
            }
        })
    }

    fn rule(&self) -> FinalityRule {
        self.case.registry.chains().find(|chain| chain.name() == self.name()).unwrap().profile.finality
    }
}

#[tokio::test]
async fn an_order_is_funded_proven_and_redeemed() {
    for form in RECORDS {
        let scene = scene(form);
        assert_eq!(scene.read().await, HtlcState::Absent, "{form}");
        scene.fund().await;
        scene.nodes.transport().warp(1_090);
        let quorum = scene.nodes.htlc(&scene.terms.destination).await.unwrap();
        let (state, seen) = quorum.state().unwrap();
        let HtlcState::Locked(locked) = &state else { panic!("{form}: {state:?}") };
        assert_eq!((locked.elapsed, seen.depth, seen.is_finalized), (90, 91, true), "{form}");
        assert!(Funded::judge(&scene.terms, &quorum, &scene.rule(), UnixTime::from_secs(NOW)).is_ok(), "{form}");

        let before = scene.has(scene.swap.redeemer);
        scene.recover(true).await.unwrap();
        assert_eq!(scene.has(scene.swap.redeemer), before + scene.swap.amount, "{form}");
        let state = scene.read().await;
        assert!(matches!(&state, HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(_) }), "{form}: {state:?}");
        assert_eq!(scene.recover(true).await.unwrap_err().code().name(), "simulation_reverted", "{form}: once");
    }
}

/// Anyone may redeem with such a message. A reader that does not support it would miss the secret.
#[tokio::test]
async fn a_redemption_with_a_message_of_version_1_shows_the_secret() {
    for form in RECORDS {
        let scene = scene(form);
        scene.fund().await;
        scene.nodes.transport().warp(1_090);
        let limits = TransactionConfig::empty().with_compute_unit_limit(100_000).with_loaded_accounts_data_size_limit(1_000_000);
        let recover::Recovery::Solana(recovery) = scene.recovery(true) else { panic!("{form}") };
        let recovery = recover::Recovery::Solana(recovery.with_config(limits));
        let sender = stranger().address().to_string();
        let unsigned = scene.nodes.prepare_recovery(&recovery, scene.name(), &sender, Speed::Normal, &Policy::default()).await.unwrap();
        let before = scene.has(scene.swap.redeemer);
        scene.send(unsigned, &stranger()).await;
        assert_eq!(scene.has(scene.swap.redeemer), before + scene.swap.amount, "{form}");
        let is_of_version_1 = |run: &Run| matches!(run.transaction.message, VersionedMessage::V1(_)) && run.error.is_none();
        assert!(scene.nodes.transport().state.lock().unwrap().1.last().is_some_and(is_of_version_1), "{form}");
        let state = scene.read().await;
        assert!(matches!(&state, HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(_) }), "{form}: {state:?}");
    }
}

/// The system program creates and advances a nonce account. A transaction is not sent if its nonce is not, or no
/// longer, stored.
#[tokio::test]
async fn a_nonce_account_of_the_system_program_is_read_and_advanced() {
    let scene = scene(RECORDS[0]);
    scene.fund().await;
    let (owner, account) = (Keypair::new_from_array([9; 32]), Keypair::new_from_array([0x71; 32]));
    let made = create_nonce_account(&owner.pubkey(), &account.pubkey(), &owner.pubkey(), rent(80));
    let run = |instruction: &Instruction, signers: &[&Keypair]| {
        scene.nodes.transport().with(|svm| {
            let message = Message::new_with_blockhash(std::slice::from_ref(instruction), Some(&owner.pubkey()), &svm.latest_blockhash());
            let signatures = signers.iter().map(|signer| signer.sign_message(&message.serialize())).collect();
            svm.send_transaction(VersionedTransaction { signatures, message: VersionedMessage::Legacy(message) }).unwrap();
        });
    };
    let stored =
        || match bincode::deserialize(&scene.nodes.transport().with(|svm| svm.get_account(&account.pubkey()).unwrap().data)).unwrap() {
            Versions::Current(state) => match *state {
                State::Initialized(data) => data.blockhash(),
                State::Uninitialized => panic!("not initialized"),
            },
            Versions::Legacy(_) => panic!("an account of before 2022"),
        };
    let send = async |redeems: bool, value: Hash| {
        let recover::Recovery::Solana(recovery) = scene.recovery(redeems) else { panic!("a recovery of Solana") };
        let context = TxContext::new().with_nonce(DurableNonce::new(account.pubkey(), value));
        let mut unsigned = recovery.prepare(context.sent_by(owner.pubkey())).unwrap();
        unsigned.sign(&stranger()).unwrap();
        let [kept] = countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().try_into().unwrap();
        scene.nodes.broadcast(scene.name(), &kept.id, &kept.payload).await
    };
    let is_refused = |sent: Result<(), NodeError>| {
        assert!(matches!(&sent, Err(NodeError::Rejected { .. })) && format!("{sent:?}").contains("stores another nonce"), "{sent:?}");
    };

    run(&made[0], &[&owner, &account]);
    is_refused(send(true, Hash::default()).await);
    run(&made[1], &[&owner]);
    let first = stored();
    // The current blockhash is not the nonce, and the account cannot be advanced before there is another blockhash.
    scene.nodes.transport().warp(1_090);
    is_refused(send(true, scene.nodes.transport().with(|svm| svm.latest_blockhash())).await);
    let before = scene.has(scene.swap.redeemer);
    send(true, first).await.unwrap();
    assert_eq!(scene.has(scene.swap.redeemer), before + scene.swap.amount);
    assert_ne!(stored(), first);
    is_refused(send(false, first).await);
}

#[tokio::test]
async fn an_order_is_refunded_after_its_timelock_and_not_before() {
    for form in RECORDS {
        let scene = scene(form);
        scene.fund().await;
        let locked = scene.has(scene.swap.initiator);
        scene.nodes.transport().warp(1_000 + scene.swap.timelock);
        assert_eq!(scene.recover(false).await.unwrap_err().code().name(), "simulation_reverted", "{form}");
        scene.nodes.transport().warp(1_001 + scene.swap.timelock);
        scene.recover(false).await.unwrap();
        // The rent of a native swap is also returned to the owner.
        let rent = if scene.htlc.token.is_none() { rent(scene.htlc.swap_account_length()) } else { 0 };
        assert_eq!(scene.has(scene.swap.initiator), locked + scene.swap.amount + rent, "{form}");
        let state = scene.read().await;
        assert!(matches!(&state, HtlcState::Refunded { transaction: Some(_) }), "{form}: {state:?}");
    }
}

#[tokio::test]
async fn what_the_owner_cannot_pay_is_not_signed() {
    for form in RECORDS {
        let scene = scene(form);
        let order = scene.order();
        scene.nodes.transport().with(|svm| put(svm, scene.swap.initiator, Address::default(), 900_000, &[]));
        let prepared = scene.nodes.prepare(&order, scene.name(), "", Speed::Normal, &Policy::default()).await;
        assert_eq!(prepared.unwrap_err().code().name(), "insufficient_funds", "{form}");
        // The virtual machine itself refuses a swap that already exists.
        scene.nodes.transport().with(|svm| put(svm, scene.swap.initiator, Address::default(), FUNDS, &[]));
        scene.fund().await;
        scene.nodes.transport().warp(1_001);
        let again = scene.nodes.prepare(&order, scene.name(), "", Speed::Normal, &Policy::default()).await;
        assert_eq!(again.unwrap_err().code().name(), "simulation_reverted", "{form}");
    }
}

/// Tests the accounts in the interfaces' examples, byte by byte. The client's SPL program stores no mint, so an
/// account proves nothing without the transaction that initiated the swap.
#[tokio::test]
async fn accounts_of_every_layout_are_read_and_judged() {
    for (form, record) in forms::FORMS.iter().zip([RECORDS[0], RECORDS[2], RECORDS[1], RECORDS[3]]) {
        let case = fixture::<Solana>(record);
        let mut terms =
            proposal(&case.json(), |proposal| countersign::verify_record(proposal, case.registry, &Policy::default()).unwrap().terms);
        let swap = forms::swap();
        let destination = &mut terms.source;
        destination.htlc = Some(to_account(forms::key(form.program)));
        destination.generation = Some(Generation::Solana(form.generation));
        destination.token = form.own.map(|_| forms::MINT.to_owned());
        (destination.initiator, destination.redeemer) = (to_account(swap.initiator), to_account(swap.redeemer));
        (destination.amount, destination.timelock) = (U256::from(swap.amount), swap.timelock);
        destination.secret_hash = SecretHash(swap.secret_hash);
        assert_eq!(destination.family, Family::Solana);
        terms.destination = terms.source.clone();

        let mut svm = LiteSVM::new();
        let program = forms::key(form.program);
        let lamports = rent(200) + if form.own.is_none() { swap.amount } else { 0 };
        put(&mut svm, forms::key(form.swap_account), program, lamports, &forms::bytes(form.account));
        if let Some([identity, vault]) = form.own {
            put_tokens(&mut svm, forms::key(vault), forms::key(forms::MINT), forms::key(identity), swap.amount);
        }
        let nodes = connect(svm, &terms.destination, &case);
        nodes.transport().warp(forms::EXPIRY - swap.timelock + 99);
        let rule = case.registry.chains().find(|chain| chain.name() == terms.source.chain).unwrap().profile.finality;
        let quorum = nodes.htlc(&terms.destination).await.unwrap();
        let judged = Funded::judge(&terms, &quorum, &rule, UnixTime::from_secs(NOW)).map_err(|hold| hold.code().name());
        if form.is_audited() || form.own.is_none() {
            assert_eq!(judged.unwrap().left().units, swap.timelock - 99, "{}", form.program);
            // With one unit less in the account, it is not what was verified.
            let mut data = forms::bytes(form.account);
            let place = data.windows(8).position(|bytes| bytes == swap.amount.to_le_bytes()).unwrap();
            data[place] -= 1;
            nodes.transport().with(|svm| put(svm, forms::key(form.swap_account), program, lamports, &data));
            let quorum = nodes.htlc(&terms.destination).await.unwrap();
            assert_eq!(Funded::judge(&terms, &quorum, &rule, UnixTime::from_secs(NOW)).unwrap_err().code().name(), "destination_differs");
        } else {
            assert_eq!(judged.unwrap_err(), "destination_unclear", "{}", form.program);
        }
        assert!(read::swap_account(&forms::bytes(form.account)).is_ok());
    }
}
