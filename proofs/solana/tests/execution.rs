//! What `sign` gives is what the SVM takes, and it moves exactly the amount that was shown; a changed copy never gets there.
//!
//! Orders are the fixtures, whose transactions @solana/web3.js compiled, with the machine's blockhash and a secret hash
//! whose secret is known put in their places. Expected balances are arithmetic on the request's amount.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::json;
use countersign::solana::address::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM, associated_token_account, parse};
use countersign::solana::recover::{self, Recovery};
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::solana::{Address, SignedOrder, TxContext};
use countersign::{Code, Leg, OrderRecord, Policy, Refusal, Registry, Role, Unsigned};
use countersign_json::line::Case;
use countersign_proofs_solana::rent;
use litesvm::LiteSVM;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sha3::Keccak256;
use solana_account::Account;
use solana_clock::Clock;
use solana_keypair::Keypair;
use solana_signer::Signer;

const SECRET: [u8; 32] = *b"a secret that nobody would guess";
/// The rent of a native swap account, of one for tokens, and of a token account.
const NATIVE: u64 = rent(120);
const TOKENS: u64 = rent(153);
const VAULT: u64 = rent(165);
/// Lamports for one signature: <https://solana.com/docs/core/fees>
const FEE: u64 = 5_000;
const FUNDS: u64 = 20_000_000_000;

static REGISTRY: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("../../../fixtures/registry.json")).unwrap());
static PINNED: LazyLock<Registry> = LazyLock::new(|| Registry::from_json(REGISTRY.to_string().as_bytes()).unwrap());

/// An order on its own machine.
struct Scene {
    svm: LiteSVM,
    line: Value,
    program: Address,
    owner: Address,
    redeemer: Address,
    /// Mint and token program.
    token: Option<(Address, Address)>,
    swap_account: Address,
    amount: u64,
}

fn hash() -> [u8; 32] {
    Sha256::digest(SECRET).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The service's key, as `fixtures/generate` derives it.
fn sponsor() -> Keypair {
    Keypair::new_from_array(Keccak256::digest("countersign fixture: sponsor of the service").into())
}

fn replaced(bytes: &[u8], from: &[u8; 32], to: &[u8; 32]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let places: Vec<_> = bytes.windows(32).enumerate().filter(|(_, window)| window == from).map(|(place, _)| place).collect();
    for place in places {
        bytes[place..place + 32].copy_from_slice(to);
    }
    bytes
}

fn derive(token: bool, owner: Address, hash: &[u8; 32], program: Address) -> Address {
    let native: &[&[u8]] = &[b"swap_account", owner.as_ref(), hash];
    let seeds = if token { &native[1..] } else { native };
    Address::find_program_address(seeds, &program).0
}

fn transaction(text: &str) -> VersionedTransaction {
    wincode::deserialize_exact(&STANDARD.decode(text).unwrap()).unwrap()
}

fn scene(id: &str) -> Scene {
    let file = include_str!("../../../fixtures/accept/solana.jsonl");
    let mut line: Value = file
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["id"] == id)
        .unwrap_or_else(|| panic!("{id}"));
    for member in ["note", "source", "expect"] {
        line.as_object_mut().unwrap().remove(member);
    }
    line["wallet"]["recent_blockhash"] = Value::Null;
    let asset = REGISTRY["assets"].as_array().unwrap().iter().find(|asset| asset["id"] == line["request"]["source"]["asset"]).unwrap();
    let key = |value: &Value| parse(value.as_str().unwrap()).unwrap();
    let (program, owner) = (key(&asset["htlc"]["address"]), key(&line["request"]["source"]["owner"]));
    let token = asset["token"].is_object().then(|| {
        let is_2022 = asset["token"]["schema"].as_str().unwrap().contains("2022");
        (key(&asset["token"]["address"]), if is_2022 { TOKEN_2022_PROGRAM } else { TOKEN_PROGRAM })
    });
    let old = line["request"]["secret_hash"].as_str().unwrap().trim_start_matches("0x").to_owned();
    let old: [u8; 32] = std::array::from_fn(|index| u8::from_str_radix(&old[2 * index..2 * index + 2], 16).unwrap());
    line["request"]["secret_hash"] = json!(hex(&hash()));
    let swap_account = derive(token.is_some(), owner, &hash(), program);
    let old_account = derive(token.is_some(), owner, &old, program);

    let mut svm = countersign_proofs_solana::machine(
        if token.is_none() { program } else { Address::from([1; 32]) },
        if token.is_some() { program } else { Address::from([2; 32]) },
    );
    for (member, slots) in [("versioned_tx", 1), ("versioned_tx_gasless", 2)] {
        let Some(text) = line["response"]["result"][member].as_str() else { continue };
        let blockhash = transaction(text).message.recent_blockhash().to_bytes();
        let mut bytes = STANDARD.decode(text).unwrap();
        bytes[1..1 + 64 * slots].fill(0);
        bytes = replaced(&bytes, &blockhash, &svm.latest_blockhash().to_bytes());
        bytes = replaced(&bytes, &old, &hash());
        bytes = replaced(&bytes, &old_account.to_bytes(), &swap_account.to_bytes());
        line["response"]["result"][member] = json!(STANDARD.encode(bytes));
    }
    let data = transaction(line["response"]["result"]["versioned_tx"].as_str().unwrap()).message.instructions()[0].data.clone();
    let redeemer = Address::from(<[u8; 32]>::try_from(if token.is_some() { &data[16..48] } else { &data[24..56] }).unwrap());
    let amount: u64 = line["request"]["source"]["amount"].as_str().unwrap().parse().unwrap();
    for account in [owner, redeemer, sponsor().pubkey()] {
        svm.airdrop(&account, FUNDS).unwrap();
    }
    if let Some((mint, token_program)) = token {
        let mut data = [0; 82];
        data[36..44].copy_from_slice(&(amount * 2).to_le_bytes());
        (data[44], data[45]) = (6, 1);
        put(&mut svm, mint, token_program, &data);
        for (holder, balance) in [(owner, amount * 2), (redeemer, 0)] {
            let mut data = [0; 165];
            data[..32].copy_from_slice(mint.as_ref());
            data[32..64].copy_from_slice(holder.as_ref());
            data[64..72].copy_from_slice(&u64::to_le_bytes(balance));
            data[108] = 1;
            put(&mut svm, associated_token_account(holder, mint, token_program).unwrap(), token_program, &data);
        }
    }
    Scene { svm, line, program, owner, redeemer, token, swap_account, amount }
}

fn put(svm: &mut LiteSVM, address: Address, owner: Address, data: &[u8]) {
    svm.set_account(address, Account { lamports: VAULT, data: data.to_vec(), owner, executable: false, rent_epoch: u64::MAX }).unwrap();
}

impl Scene {
    /// The signed order and its summary.
    fn signed(&self) -> Result<(SignedOrder, String), Refusal> {
        let mut line = self.line.clone();
        line.as_object_mut().unwrap().remove("order");
        let text = line.to_string();
        let value = json::parse(text.as_bytes())?;
        let (unsigned, has_key) = Case::from_value(&value)?.run(&PINNED, &Policy::default())?;
        assert!(has_key, "the fixture holds a key");
        let Unsigned::Solana(unsigned) = unsigned else { panic!("an order of another family") };
        let summary = unsigned.summary().to_string();
        Ok((unsigned.finish()?, summary))
    }

    fn lamports(&self, account: Address) -> u64 {
        self.svm.get_balance(&account).unwrap_or_default()
    }

    fn tokens(&self, holder: Address) -> u64 {
        let (mint, program) = self.token.unwrap();
        self.tokens_in(associated_token_account(holder, mint, program).unwrap())
    }

    fn tokens_in(&self, account: Address) -> u64 {
        let account = self.svm.get_account(&account).unwrap();
        u64::from_le_bytes(account.data[64..72].try_into().unwrap())
    }

    fn vault(&self) -> Address {
        Address::find_program_address(&[self.token.unwrap().0.as_ref()], &self.program).0
    }

    /// Sends the owner's signed transaction; the summary has shown its amount.
    fn initiate(&mut self) {
        let (signed, summary) = self.signed().unwrap();
        assert!(summary.contains(&format!("({} base units)", self.amount)), "{summary}");
        let [transaction] = signed.transactions().try_into().unwrap();
        assert_eq!((transaction.role, transaction.native.signatures[0].to_string()), (Role::Initiate, transaction.id));
        assert_eq!(wincode::serialize(&transaction.native).unwrap(), transaction.bytes);
        self.svm.send_transaction(transaction.native).unwrap();
    }

    /// Plays the service: signs at index 0 what the owner handed in, and sends it.
    fn initiate_gasless(&mut self) {
        let (signed, _) = self.signed().unwrap();
        let mut transaction = transaction(&signed.gasless().unwrap().signature);
        assert!(self.svm.send_transaction(transaction.clone()).is_err(), "the sponsor has not signed");
        transaction.signatures[0] = sponsor().sign_message(&transaction.message.serialize());
        self.svm.send_transaction(transaction).unwrap();
    }

    fn record(&self) -> OrderRecord {
        let mut order = self.line["order"].clone();
        for side in ["source_swap", "destination_swap"] {
            order[side]["secret_hash"] = json!(hex(&hash()));
        }
        // The swap id is SHA-256 of the chain's number, the secret hash and the owner; that of the test network is 103.
        let mut chain = [0; 32];
        chain[31] = 103;
        order["source_swap"]["swap_id"] = json!(hex(&Sha256::digest([chain, hash(), self.owner.to_bytes()].concat())));
        OrderRecord::from_json(order.to_string().as_bytes()).unwrap()
    }

    /// The slot that the timelock ends with refuses a refund, the next one takes it.
    fn outlive_the_timelock(&mut self, recovery: &Recovery) {
        let expiry = self.svm.get_sysvar::<Clock>().slot + self.record().source_swap.timelock;
        assert!(!self.send(recovery));
        self.svm.warp_to_slot(expiry);
        assert!(!self.send(recovery), "not yet");
        self.svm.warp_to_slot(expiry + 1);
        assert!(self.send(recovery));
    }

    /// Somebody who has nothing to do with the order sends a recovery.
    fn send(&mut self, recovery: &Recovery) -> bool {
        let stranger = Keypair::new_from_array([9; 32]);
        self.svm.airdrop(&stranger.pubkey(), 1_000_000_000).unwrap();
        self.svm.expire_blockhash();
        let mut unsigned =
            recovery.prepare(TxContext::new().with_blockhash(self.svm.latest_blockhash()).sent_by(stranger.pubkey())).unwrap();
        unsigned.sign_with(&stranger).unwrap();
        let [transaction] = unsigned.finish().unwrap().transactions().try_into().unwrap();
        self.svm.send_transaction(transaction.native).is_ok()
    }
}

#[test]
fn lamports_move_by_exactly_the_amount_shown() {
    for id in ["solana-native-legacy", "solana-native-v0", "solana-native-keys-reordered"] {
        let mut scene = scene(id);
        scene.initiate();
        assert_eq!(scene.lamports(scene.swap_account), scene.amount + NATIVE, "{id}");
        assert_eq!(scene.lamports(scene.owner), FUNDS - scene.amount - NATIVE - FEE, "{id}");
        assert_eq!(scene.svm.get_account(&scene.swap_account).unwrap().owner, scene.program);
    }
}

#[test]
fn tokens_move_by_exactly_the_amount_shown_at_the_owners_expense() {
    for id in ["solana-token-legacy", "solana-token-v0", "solana-token-2022", "solana-token-destination-data"] {
        let mut scene = scene(id);
        scene.initiate();
        assert_eq!((scene.tokens(scene.owner), scene.tokens_in(scene.vault())), (scene.amount, scene.amount), "{id}");
        assert_eq!(scene.lamports(scene.owner), FUNDS - TOKENS - VAULT - FEE, "{id}");
    }
}

#[test]
fn tokens_move_by_exactly_the_amount_shown_at_the_sponsors_expense() {
    for id in ["solana-token-legacy", "solana-token-v0", "solana-token-2022"] {
        let mut scene = scene(id);
        scene.initiate_gasless();
        assert_eq!((scene.tokens(scene.owner), scene.tokens_in(scene.vault())), (scene.amount, scene.amount), "{id}");
        assert_eq!(scene.lamports(scene.owner), FUNDS, "{id}");
        assert_eq!(scene.lamports(sponsor().pubkey()), FUNDS - TOKENS - VAULT - 2 * FEE, "{id}");
    }
}

#[test]
fn recovery_pays_lamports() {
    let mut redeemed = scene("solana-record-testnet");
    redeemed.initiate();
    let recovery = recover::redeem(&redeemed.record(), Leg::Source, &SECRET, &PINNED).unwrap();
    assert!(redeemed.send(&recovery));
    assert_eq!(redeemed.lamports(redeemed.redeemer), FUNDS + redeemed.amount);
    assert_eq!(redeemed.lamports(redeemed.owner), FUNDS - redeemed.amount - FEE, "the rent came back");
    assert!(!redeemed.send(&recovery), "once");

    let mut refunded = scene("solana-record-testnet");
    refunded.initiate();
    let recovery = recover::refund(&refunded.record(), Leg::Source, &PINNED).unwrap();
    refunded.outlive_the_timelock(&recovery);
    assert_eq!(refunded.lamports(refunded.owner), FUNDS - FEE);
}

#[test]
fn recovery_pays_tokens() {
    let key = sponsor().pubkey();
    let mut redeemed = scene("solana-record-token");
    redeemed.initiate_gasless();
    let recovery = recover::redeem(&redeemed.record(), Leg::Source, &SECRET, &PINNED).unwrap().with_sponsor(key);
    assert!(redeemed.send(&recovery));
    assert_eq!((redeemed.tokens(redeemed.redeemer), redeemed.tokens_in(redeemed.vault())), (redeemed.amount, 0));
    assert_eq!(redeemed.lamports(key), FUNDS - VAULT - 2 * FEE, "the swap's rent came back, the vault stays");

    let mut refunded = scene("solana-record-token");
    refunded.initiate();
    // The owner sent the ordinary transaction and was its own sponsor.
    let recovery = recover::refund(&refunded.record(), Leg::Source, &PINNED).unwrap();
    refunded.outlive_the_timelock(&recovery);
    assert_eq!((refunded.tokens(refunded.owner), refunded.tokens_in(refunded.vault())), (2 * refunded.amount, 0));
}

/// Signed blind, a changed redeemer runs and the funds are another's: nothing but verification stands before it.
#[test]
fn what_the_machine_would_take_is_refused_before_it_gets_there() {
    let thief = Address::from([0x33; 32]);
    for (id, refuse) in [("solana-native-legacy", Code::UnknownRedeemer), ("solana-token-legacy", Code::UnknownRedeemer)] {
        let mut scene = scene(id);
        let honest = scene.line["response"]["result"]["versioned_tx"].as_str().unwrap().to_owned();
        let bytes = replaced(&STANDARD.decode(&honest).unwrap(), &scene.redeemer.to_bytes(), &thief.to_bytes());
        scene.line["response"]["result"]["versioned_tx"] = json!(STANDARD.encode(&bytes));
        assert_eq!(scene.signed().unwrap_err().code(), refuse, "{id}");

        let key = scene.line["wallet"]["secret_key"].as_str().unwrap();
        let key = Keypair::from_base58_string(key);
        let mut blind = transaction(&STANDARD.encode(&bytes));
        blind.signatures[0] = key.sign_message(&blind.message.serialize());
        scene.svm.send_transaction(blind).unwrap();
        let state = scene.svm.get_account(&scene.swap_account).unwrap().data;
        let redeemer = if scene.token.is_some() { 48..80 } else { 56..88 };
        assert_eq!(&state[redeemer], thief.as_ref(), "{id}");
    }
}

/// Each bit of each account, instruction and argument: refused, except what `tests/properties.rs` of the family shows to be
/// free (blockhash, a sponsor that has not signed, a native timelock), and that is shown.
#[test]
fn every_changed_copy_is_refused_or_shown() {
    for (id, members) in [("solana-native-legacy", &["versioned_tx"][..]), ("solana-token-v0", &["versioned_tx", "versioned_tx_gasless"])] {
        let mut scene = scene(id);
        let (_, shown) = scene.signed().unwrap();
        for member in members {
            let honest = scene.line["response"]["result"][*member].as_str().unwrap().to_owned();
            let bytes = STANDARD.decode(&honest).unwrap();
            let slots = usize::from(bytes[0]);
            let mut refused = 0;
            for index in 1 + 64 * slots..bytes.len() {
                let mut other = bytes.clone();
                other[index] ^= 1;
                scene.line["response"]["result"][*member] = json!(STANDARD.encode(other));
                match scene.signed() {
                    Err(_) => refused += 1,
                    Ok((_, other)) => assert_ne!(other, shown, "{id} {member} byte {index}"),
                }
            }
            scene.line["response"]["result"][*member] = json!(honest);
            assert!(refused + 32 + 32 >= bytes.len() - 1 - 64 * slots, "{id} {member}: {refused} of {} refused", bytes.len());
        }
    }
}
