//! Orders on their own virtual machines. They are fixtures whose transactions @solana/web3.js compiled, with the
//! virtual machine's blockhash and the hash of a known secret.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::json;
use countersign::solana::address::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM, associated_token_account, parse};
use countersign::solana::recover::Recovery;
use countersign::solana::solana_instruction::{AccountMeta, Instruction};
use countersign::solana::solana_message::compiled_instruction::CompiledInstruction;
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::solana::{Address, SignedOrder, Solana, TxContext, UnsignedOrder};
use countersign::{OrderRecord, Policy, Refusal, Registry, Role, Unsigned};
use countersign_json::line::Case;
use countersign_proofs_solana::{audited_machine, machine, rent};
use countersign_testkit::fixture;
use litesvm::LiteSVM;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sha3::Keccak256;
use solana_account::Account;
use solana_clock::Clock;
use solana_keypair::Keypair;
use solana_signer::Signer;

pub(crate) const SECRET: [u8; 32] = *b"a secret that nobody would guess";
/// The rent of a native swap account, of one for tokens, and of a token account.
pub(crate) const NATIVE: u64 = rent(120);
pub(crate) const TOKENS: u64 = rent(153);
pub(crate) const VAULT: u64 = rent(165);
/// The fee for one signature, in lamports: <https://solana.com/docs/core/fees>
pub(crate) const FEE: u64 = 5_000;
pub(crate) const FUNDS: u64 = 20_000_000_000;

static REGISTRY: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("../../../../fixtures/registry.json")).unwrap());
pub(crate) static PINNED: LazyLock<Registry> = LazyLock::new(|| Registry::from_json(REGISTRY.to_string().as_bytes()).unwrap());

/// The program that an order is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Native,
    Tokens,
    AuditedNative,
    AuditedTokens,
}

/// The offsets of the terms in the data of the instruction that locks the funds.
pub(crate) struct Places {
    pub(crate) amount: Range<usize>,
    pub(crate) timelock: Range<usize>,
    pub(crate) redeemer: Range<usize>,
    pub(crate) hash: Range<usize>,
    /// Only in the audited programs. In the others, the refund goes to the initiator.
    pub(crate) refundee: Option<Range<usize>>,
}

impl Form {
    const fn of(audited: bool, tokens: bool) -> Self {
        match (audited, tokens) {
            (false, false) => Self::Native,
            (false, true) => Self::Tokens,
            (true, false) => Self::AuditedNative,
            (true, true) => Self::AuditedTokens,
        }
    }

    const fn is_audited(self) -> bool {
        matches!(self, Self::AuditedNative | Self::AuditedTokens)
    }

    pub(crate) const fn places(self) -> Places {
        match self {
            Self::Native => Places { amount: 8..16, timelock: 16..24, redeemer: 24..56, hash: 56..88, refundee: None },
            Self::Tokens => Places { timelock: 8..16, redeemer: 16..48, hash: 48..80, amount: 80..88, refundee: None },
            Self::AuditedNative | Self::AuditedTokens => {
                Places { redeemer: 8..40, refundee: Some(40..72), hash: 72..104, amount: 104..112, timelock: 112..120 }
            }
        }
    }
}

/// An order on its own virtual machine.
pub(crate) struct Scene {
    pub(crate) svm: LiteSVM,
    pub(crate) line: Value,
    pub(crate) registry: &'static Registry,
    pub(crate) form: Form,
    pub(crate) program: Address,
    pub(crate) owner: Address,
    pub(crate) redeemer: Address,
    /// The mint and the token program.
    pub(crate) token: Option<(Address, Address)>,
    pub(crate) swap_account: Address,
    pub(crate) amount: u64,
    /// The slots and the transactions of the owner and of recoveries.
    pub(crate) sent: Vec<(u64, VersionedTransaction)>,
}

pub(crate) fn hash() -> [u8; 32] {
    Sha256::digest(SECRET).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the service's key, derived as in `fixtures/generate`.
pub(crate) fn sponsor() -> Keypair {
    Keypair::new_from_array(Keccak256::digest("countersign fixture: sponsor of the service").into())
}

/// Returns the key of a stranger, who has lamports and an account for the order's tokens.
pub(crate) fn thief() -> Keypair {
    Keypair::new_from_array([0x33; 32])
}

fn replaced(bytes: &[u8], from: &[u8; 32], to: &[u8; 32]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let places: Vec<_> = bytes.windows(32).enumerate().filter(|(_, window)| window == from).map(|(place, _)| place).collect();
    for place in places {
        bytes[place..place + 32].copy_from_slice(to);
    }
    bytes
}

/// Returns the swap account that a program derives from an account and the instruction's arguments.
fn derive(form: Form, token: Option<(Address, Address)>, owner: Address, program: Address, data: &[u8]) -> Address {
    let Places { hash, redeemer, refundee, amount, timelock } = form.places();
    let own = &data[hash];
    let audited = || [&data[redeemer], &data[refundee.unwrap_or_default()], own, &data[amount], &data[timelock]];
    let mint = token.as_ref().map(|(mint, _)| mint.as_ref()).unwrap_or_default();
    let seeds = match form {
        Form::Native => vec![b"swap_account", owner.as_ref(), own],
        Form::Tokens => vec![owner.as_ref(), own],
        Form::AuditedNative => audited().to_vec(),
        Form::AuditedTokens => [&[mint][..], &audited()].concat(),
    };
    Address::find_program_address(&seeds, &program).0
}

pub(crate) fn transaction(text: &str) -> VersionedTransaction {
    wincode::deserialize_exact(&STANDARD.decode(text).unwrap()).unwrap()
}

/// Returns the instructions of a message with their accounts' addresses.
pub(crate) fn instructions(transaction: &VersionedTransaction) -> Vec<Instruction> {
    let (message, keys) = (&transaction.message, transaction.message.static_account_keys());
    let account = |index: &u8| {
        let index = usize::from(*index);
        let is_writable = message.is_maybe_writable_with_reserved_addresses(index, None::<&HashSet<Address>>);
        AccountMeta { pubkey: keys[index], is_signer: message.is_signer(index), is_writable }
    };
    let named = |compiled: &CompiledInstruction| Instruction {
        program_id: keys[usize::from(compiled.program_id_index)],
        accounts: compiled.accounts.iter().map(account).collect(),
        data: compiled.data.clone(),
    };
    message.instructions().iter().map(named).collect()
}

pub(crate) fn scene(id: &str) -> Scene {
    let case = fixture::<Solana>(id);
    let mut line = case.whole().unwrap();
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
    let form = Form::of(id.contains("audited"), token.is_some());
    let data = instructions(&transaction(line["response"]["result"]["versioned_tx"].as_str().unwrap())).remove(0).data;
    let old_account = derive(form, token, owner, program, &data);
    let data = replaced(&data, &old, &hash());
    let swap_account = derive(form, token, owner, program, &data);

    let nobody = Address::from([1; 32]);
    let make = if form.is_audited() { audited_machine } else { machine };
    let mut svm = if token.is_none() { make(program, nobody) } else { make(nobody, program) };
    for (member, slots) in [("versioned_tx", 1), ("versioned_tx_gasless", 2)] {
        let Some(text) = line["response"]["result"][member].as_str() else { continue };
        let blockhash = transaction(text).message.recent_blockhash().to_bytes();
        let mut bytes = STANDARD.decode(text).unwrap();
        // In version 1, the signatures follow the message.
        let first = if bytes[0] == 0x81 { bytes.len() - 64 * slots } else { 1 };
        bytes[first..first + 64 * slots].fill(0);
        bytes = replaced(&bytes, &blockhash, &svm.latest_blockhash().to_bytes());
        bytes = replaced(&bytes, &old, &hash());
        bytes = replaced(&bytes, &old_account.to_bytes(), &swap_account.to_bytes());
        line["response"]["result"][member] = json!(STANDARD.encode(bytes));
    }
    let redeemer = Address::from(<[u8; 32]>::try_from(&data[form.places().redeemer]).unwrap());
    let amount: u64 = line["request"]["source"]["amount"].as_str().unwrap().parse().unwrap();
    for account in [owner, redeemer, sponsor().pubkey(), thief().pubkey()] {
        svm.airdrop(&account, FUNDS).unwrap();
    }
    if let Some((mint, token_program)) = token {
        let mut data = [0; 82];
        data[36..44].copy_from_slice(&(amount * 2).to_le_bytes());
        (data[44], data[45]) = (6, 1);
        put(&mut svm, mint, token_program, &data);
        for (holder, balance) in [(owner, amount * 2), (redeemer, 0), (thief().pubkey(), 0)] {
            let mut data = [0; 165];
            data[..32].copy_from_slice(mint.as_ref());
            data[32..64].copy_from_slice(holder.as_ref());
            data[64..72].copy_from_slice(&u64::to_le_bytes(balance));
            data[108] = 1;
            put(&mut svm, associated_token_account(holder, mint, token_program).unwrap(), token_program, &data);
        }
    }
    Scene { svm, line, registry: case.registry, form, program, owner, redeemer, token, swap_account, amount, sent: Vec::new() }
}

fn put(svm: &mut LiteSVM, address: Address, owner: Address, data: &[u8]) {
    svm.set_account(address, Account { lamports: VAULT, data: data.to_vec(), owner, executable: false, rent_epoch: u64::MAX }).unwrap();
}

impl Scene {
    /// Returns the order with the fixture's signature.
    pub(crate) fn unsigned(&self) -> Result<UnsignedOrder, Refusal> {
        let mut line = self.line.clone();
        line.as_object_mut().unwrap().remove("order");
        let text = line.to_string();
        let value = json::parse(text.as_bytes())?;
        let (unsigned, has_key) = Case::from_value(&value)?.run(self.registry, &Policy::default())?;
        assert!(has_key, "the fixture holds a key");
        let Unsigned::Solana(unsigned) = unsigned else { panic!("an order of another family") };
        Ok(unsigned)
    }

    /// Returns the signed order and its summary.
    pub(crate) fn signed(&self) -> Result<(SignedOrder, String), Refusal> {
        let unsigned = self.unsigned()?;
        let summary = unsigned.summary().to_string();
        Ok((unsigned.finish()?, summary))
    }

    /// Returns the swap account of an instruction with these arguments.
    pub(crate) fn swap_account_of(&self, data: &[u8]) -> Address {
        derive(self.form, self.token, self.owner, self.program, data)
    }

    pub(crate) fn lamports(&self, account: Address) -> u64 {
        self.svm.get_balance(&account).unwrap_or_default()
    }

    pub(crate) fn tokens(&self, holder: Address) -> u64 {
        let (mint, program) = self.token.unwrap();
        self.tokens_in(associated_token_account(holder, mint, program).unwrap())
    }

    pub(crate) fn tokens_in(&self, account: Address) -> u64 {
        let account = self.svm.get_account(&account).unwrap();
        u64::from_le_bytes(account.data[64..72].try_into().unwrap())
    }

    pub(crate) fn vault(&self) -> Address {
        Address::find_program_address(&[self.token.unwrap().0.as_ref()], &self.program).0
    }

    /// Sends the owner's signed transaction, whose amount the summary has shown.
    pub(crate) fn initiate(&mut self) {
        let (signed, summary) = self.signed().unwrap();
        assert!(summary.contains(&format!("({} base units)", self.amount)), "{summary}");
        let [transaction] = signed.transactions().try_into().unwrap();
        assert_eq!((transaction.role, transaction.native.signatures[0].to_string()), (Role::Initiate, transaction.id));
        assert_eq!(wincode::serialize(&transaction.native).unwrap(), transaction.bytes);
        assert!(self.execute(transaction.native));
    }

    fn execute(&mut self, transaction: VersionedTransaction) -> bool {
        let is_success = self.svm.send_transaction(transaction.clone()).is_ok();
        if is_success {
            self.sent.push((self.slot(), transaction));
        }
        is_success
    }

    pub(crate) fn slot(&self) -> u64 {
        self.svm.get_sysvar::<Clock>().slot
    }

    /// Acts as the service: adds the signature at index 0 to the owner's transaction and sends it.
    pub(crate) fn initiate_gasless(&mut self) {
        let (signed, _) = self.signed().unwrap();
        let mut transaction = transaction(&signed.gasless().unwrap().signature);
        assert!(self.svm.send_transaction(transaction.clone()).is_err(), "the sponsor has not signed");
        transaction.signatures[0] = sponsor().sign_message(&transaction.message.serialize());
        self.svm.send_transaction(transaction).unwrap();
    }

    pub(crate) fn record(&self) -> OrderRecord {
        let mut order = self.line["order"].clone();
        for side in ["source_swap", "destination_swap"] {
            order[side]["secret_hash"] = json!(hex(&hash()));
        }
        // The swap id is the SHA-256 hash of the chain's number, the secret hash and the owner. The test network's
        // number is 103.
        let mut chain = [0; 32];
        chain[31] = if order["source_swap"]["chain"] == "solana" { 101 } else { 103 };
        order["source_swap"]["swap_id"] = json!(hex(&Sha256::digest([chain, hash(), self.owner.to_bytes()].concat())));
        OrderRecord::from_json(order.to_string().as_bytes()).unwrap()
    }

    /// Checks that a refund is refused in the timelock's last slot, and possible in the next one.
    pub(crate) fn outlive_the_timelock(&mut self, recovery: &Recovery) {
        let expiry = self.slot() + self.record().source_swap.timelock;
        assert!(!self.send(recovery));
        self.svm.warp_to_slot(expiry);
        assert!(!self.send(recovery), "not yet");
        self.svm.warp_to_slot(expiry + 1);
        assert!(self.send(recovery));
    }

    /// Sends a recovery as a stranger.
    pub(crate) fn send(&mut self, recovery: &Recovery) -> bool {
        let stranger = Keypair::new_from_array([9; 32]);
        self.svm.airdrop(&stranger.pubkey(), 1_000_000_000).unwrap();
        self.svm.expire_blockhash();
        let mut unsigned =
            recovery.prepare(TxContext::new().with_blockhash(self.svm.latest_blockhash()).sent_by(stranger.pubkey())).unwrap();
        unsigned.sign_with(&stranger).unwrap();
        let [transaction] = unsigned.finish().unwrap().transactions().try_into().unwrap();
        self.execute(transaction.native)
    }
}
