//! A Solana cluster with one swap, in memory, and its endpoints, honest or lying on request. No time passes.

mod view;

use std::collections::BTreeMap;
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::reader::{Answer, Request, RpcError};
use countersign_core::{HtlcTerms, Policy, SecretHash, VerifiedTerms, json, verify_record};
use countersign_json::line::Case as JsonCase;
use countersign_solana::address::{self, SYSTEM_PROGRAM, TOKEN_PROGRAM};
use countersign_solana::htlc::{Htlc, HtlcAccount, Initiate, SolanaGeneration, Token};
use countersign_solana::read::{self, CLOCK, RECENT_BLOCKHASHES};
use countersign_solana::solana_hash::Hash;
use countersign_solana::solana_instruction::{AccountMeta, Instruction};
use countersign_solana::solana_message::v1::TransactionConfig;
use countersign_solana::solana_message::{Message, VersionedMessage, v1};
use countersign_solana::solana_signature::Signature;
use countersign_solana::solana_transaction::versioned::VersionedTransaction;
use countersign_solana::{Address, Solana};
use serde_json::{Value, json};

use crate::{Case, fixture};

pub(crate) use self::view::moment;

/// The caller's clock.
pub const NOW: u64 = 1_800_000_000;
pub const SECRET: [u8; 32] = [0x7e; 32];
/// The slot in which the swap was initiated.
pub const INITIATED: u64 = 400_000_000;
/// The slot of the bank, and the newest slot, which another node behind the same address shows.
pub const FINALIZED: u64 = INITIATED + 99;
pub const NEWEST: u64 = FINALIZED + 31;
pub const RENT: u64 = 2_000_000;
pub const SPONSOR: [u8; 32] = [8; 32];

const MAINNET: &str = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";
const DEVNET: &str = "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG";

/// A record for each kind of program: native and SPL, of the client and of the audited generation.
pub const FORMS: [&str; 4] =
    ["solana-record-testnet", "solana-record-token", "solana-audited-native-record", "solana-audited-token-record"];

type Lie = Box<dyn Fn(&str, &str, &Value) -> Option<Value> + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub lamports: u64,
    pub owner: Address,
    pub data: Vec<u8>,
}

/// A transaction on chain.
#[derive(Debug, Clone)]
pub struct Mined {
    pub slot: u64,
    pub transaction: VersionedTransaction,
    /// The inner instructions of the first one.
    pub called: Vec<Instruction>,
    pub failed: bool,
}

/// A cluster with one swap, and its endpoints.
pub struct Chain {
    pub genesis: &'static str,
    pub finalized: u64,
    pub newest: u64,
    pub time: u64,
    pub accounts: BTreeMap<Address, Account>,
    /// Oldest first.
    pub mined: Vec<Mined>,
    /// The accounts after a simulation, or its error.
    pub simulated: Result<BTreeMap<Address, Account>, Value>,
    pub fees: Vec<u64>,
    /// Overrides the result of a method on a host; an object with `error` is an error.
    pub lie: Lie,
    /// The host, method and parameters of every call so far.
    pub seen: Mutex<Vec<(String, String, Value)>>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chain")
    }
}

/// The blockhash of the transactions on chain.
const USED: Hash = Hash::new_from_array([1; 32]);

pub fn blockhash() -> Hash {
    Hash::new_from_array([3; 32])
}

/// The blockhash of the block that is this much older than the newest one: at most 149.
pub fn older_blockhash(blocks: u8) -> Hash {
    if blocks == 0 { blockhash() } else { Hash::new_from_array([100 + blocks; 32]) }
}

/// The account that lists these blockhashes, the newest first.
pub fn recent_blockhashes(hashes: &[Hash]) -> Account {
    let mut data = u64::try_from(hashes.len()).expect("valid").to_le_bytes().to_vec();
    for hash in hashes {
        data.extend_from_slice(hash.as_ref());
        data.extend_from_slice(&5_000_u64.to_le_bytes());
    }
    Account { lamports: 1, owner: "Sysvar1111111111111111111111111111111111111".parse().expect("valid"), data }
}

/// The answer of an endpoint that lists these blockhashes.
pub fn listed(hashes: &[Hash]) -> Value {
    json!({"context": {"slot": 1}, "value": [shown(Some(&recent_blockhashes(hashes)))]})
}

/// The case of a form.
pub fn case(form: &str) -> Case {
    fixture::<Solana>(form)
}

/// The terms of a record whose source is on Solana, with source and destination swapped. The secret of these tests redeems the destination.
pub fn terms(form: &str) -> VerifiedTerms {
    let case = case(form);
    let value = json::parse(case.input.as_bytes()).expect("valid");
    let proposal = JsonCase::from_value(&value).expect("valid").proposal().expect("valid");
    let mut terms = proposal.open(case.registry, &Policy::default(), verify_record::<Solana>).expect("valid").terms;
    terms.source.secret_hash = SecretHash::of(&SECRET);
    terms.destination = terms.source.clone();
    terms
}

pub fn account(account: &countersign_core::Account) -> Address {
    address::from_account(account).expect("valid")
}

/// The program and the swap of some terms.
pub fn swap_of(terms: &HtlcTerms) -> (Htlc, HtlcAccount) {
    let token = terms.token.as_deref().map(|mint| Token::new(mint.parse().expect("valid"), TOKEN_PROGRAM));
    let generation = SolanaGeneration::expected(terms.generation).expect("valid");
    let htlc = Htlc::new(account(terms.htlc.as_ref().expect("valid")), token).with_generation(generation);
    let amount = terms.amount.try_into().expect("valid");
    let swap = HtlcAccount::new(account(&terms.initiator), account(&terms.redeemer), terms.secret_hash.0, amount, terms.timelock);
    (htlc, swap)
}

pub fn is_audited(htlc: &Htlc) -> bool {
    htlc.generation == SolanaGeneration::NOVEMBER_2025
}

/// What a program stores, field after field.
pub fn stored(htlc: &Htlc, swap: &HtlcAccount, expiry: u64) -> Vec<u8> {
    let (amount, expiry, timelock) = (swap.amount.to_le_bytes(), expiry.to_le_bytes(), swap.timelock.to_le_bytes());
    let (initiator, redeemer, hash) = (swap.initiator.as_ref(), swap.redeemer.as_ref(), swap.secret_hash.as_slice());
    let head: &[u8] = &[0x35, 0x7e, 0x09, 0x0e, 0x0e, 0xc5, 0x69, 0xb6];
    match (htlc.token, is_audited(htlc)) {
        (None, false) => [head, &amount, &expiry, initiator, redeemer, hash].concat(),
        (Some(_), false) => [head, &expiry, initiator, redeemer, hash, &amount, &[254], &SPONSOR].concat(),
        (None, true) => [head, &expiry, &[252], redeemer, initiator, hash, &amount, &SPONSOR, &timelock].concat(),
        (Some(token), true) => {
            [head, &[252], &expiry, &[255], &SPONSOR, token.mint.as_ref(), redeemer, initiator, hash, &amount, &timelock].concat()
        }
    }
}

pub fn token_account(mint: Address, owner: Address, amount: u64) -> Account {
    let mut data = [mint.as_ref(), owner.as_ref(), &amount.to_le_bytes(), &[0; 93]].concat();
    data[108] = 1;
    Account { lamports: RENT, owner: TOKEN_PROGRAM, data }
}

pub fn system_account(lamports: u64) -> Account {
    Account { lamports, owner: SYSTEM_PROGRAM, data: Vec::new() }
}

/// The instruction that funds a swap.
pub fn initiate(htlc: &Htlc, swap: &HtlcAccount) -> Instruction {
    let call = Initiate::new(swap);
    let call = if is_audited(htlc) { call.with_refundee(swap.initiator) } else { call };
    let roles = htlc.initiate_accounts(swap, Address::from(SPONSOR)).expect("valid").roles;
    let accounts = roles.into_iter().map(|role| AccountMeta { pubkey: role.address, is_signer: role.signer, is_writable: role.writable });
    Instruction { program_id: htlc.program, accounts: accounts.collect(), data: call.encode(htlc) }
}

/// A transaction of one instruction, with a signature that names it.
pub fn mined(slot: u64, instruction: &Instruction) -> Mined {
    let payer = Address::from([9; 32]);
    let message = Message::new_with_blockhash(std::slice::from_ref(instruction), Some(&payer), &USED);
    let count = usize::from(message.header.num_required_signatures);
    let mut name = [5_u8; 64];
    name[..8].copy_from_slice(&slot.to_le_bytes());
    name[8] = u8::try_from(instruction.data.len()).expect("valid");
    let signatures = std::iter::once(Signature::from(name)).chain(std::iter::repeat_n(Signature::default(), count - 1)).collect();
    Mined {
        slot,
        transaction: VersionedTransaction { signatures, message: VersionedMessage::Legacy(message) },
        called: Vec::new(),
        failed: false,
    }
}

/// The same transaction with a message of version 1.
pub fn in_version_1(mined: &Mined) -> Mined {
    let VersionedMessage::Legacy(message) = mined.transaction.message.clone() else { panic!("not a legacy message") };
    let config = TransactionConfig::empty().with_compute_unit_limit(200_000).with_loaded_accounts_data_size_limit(65_536);
    let message = v1::Message::new(message.header, config, message.recent_blockhash, message.account_keys, message.instructions);
    let transaction = VersionedTransaction { signatures: mined.transaction.signatures.clone(), message: VersionedMessage::V1(message) };
    Mined { transaction, ..mined.clone() }
}

/// A transaction whose only instruction is another program's, which calls `called`.
pub fn mined_inside(slot: u64, called: Instruction) -> Mined {
    let mut accounts = called.accounts.clone();
    accounts.push(AccountMeta::new_readonly(called.program_id, false));
    let outer = Instruction { program_id: Address::from([0x77; 32]), accounts, data: vec![1] };
    Mined { called: vec![called], ..mined(slot, &outer) }
}

/// Lamports sent to an account.
pub fn dust(slot: u64, to: Address) -> Mined {
    let instruction = Instruction { program_id: SYSTEM_PROGRAM, accounts: vec![AccountMeta::new(to, false)], data: vec![2; 12] };
    mined(slot, &instruction)
}

impl Chain {
    pub fn empty(terms: &HtlcTerms) -> Self {
        let clock = [FINALIZED, 0, 0, 0, NOW - 20].map(u64::to_le_bytes).concat();
        let clock = Account { lamports: 1, owner: "Sysvar1111111111111111111111111111111111111".parse().expect("valid"), data: clock };
        let recent = recent_blockhashes(&(0..150).map(older_blockhash).collect::<Vec<_>>());
        Self {
            genesis: if terms.chain == "solana" { MAINNET } else { DEVNET },
            finalized: FINALIZED,
            newest: NEWEST,
            time: NOW - 20,
            accounts: BTreeMap::from([(CLOCK, clock), (RECENT_BLOCKHASHES, recent)]),
            mined: Vec::new(),
            simulated: Err(json!("AccountNotFound")),
            fees: vec![0; 150],
            lie: Box::new(|_, _, _| None),
            seen: Mutex::default(),
        }
    }

    /// Creates a cluster with the destination's swap, funded according to its terms.
    pub fn funded(terms: &HtlcTerms) -> Self {
        let (_, swap) = swap_of(terms);
        Self::with_swap(terms, &swap, INITIATED + swap.timelock)
    }

    /// Creates a cluster with a swap with these contents at the account of the terms.
    pub fn with_swap(terms: &HtlcTerms, swap: &HtlcAccount, expiry: u64) -> Self {
        let (htlc, of_terms) = swap_of(terms);
        let mut chain = Self::empty(terms);
        let lamports = RENT + if htlc.token.is_none() { swap.amount } else { 0 };
        let account = Account { lamports, owner: htlc.program, data: stored(&htlc, swap, expiry) };
        chain.accounts.insert(htlc.swap_account(&of_terms).expect("valid"), account);
        if let (Some(token), Some(vault), Some(identity)) = (htlc.token, htlc.vault(), htlc.identity()) {
            chain.accounts.insert(vault, token_account(token.mint, identity, swap.amount + 5));
        }
        chain.mined = vec![mined(INITIATED, &initiate(&htlc, swap))];
        chain
    }

    /// Ends the swap with this instruction.
    pub fn ended(terms: &HtlcTerms, instruction: &Instruction) -> Self {
        let (htlc, swap) = swap_of(terms);
        let mut chain = Self::funded(terms);
        chain.accounts.remove(&htlc.swap_account(&swap).expect("valid"));
        chain.mined.push(mined(INITIATED + 40, instruction));
        chain
    }

    pub fn lying(mut self, lie: impl Fn(&str, &str, &Value) -> Option<Value> + Send + Sync + 'static) -> Self {
        self.lie = Box::new(lie);
        self
    }

    /// Sets the finalized slot, and the time of its clock.
    pub fn at(mut self, finalized: u64, time: u64) -> Self {
        (self.finalized, self.newest, self.time) = (finalized, finalized + 31, time);
        self.accounts.get_mut(&CLOCK).expect("valid").data = [finalized, 0, 0, 0, time].map(u64::to_le_bytes).concat();
        self
    }

    pub fn account_mut(&mut self, address: Address) -> &mut Account {
        self.accounts.get_mut(&address).expect("valid")
    }

    fn result(&self, method: &str, params: &Value) -> Value {
        let context = |value: Value| json!({"context": {"apiVersion": "3.0.0", "slot": self.finalized}, "value": value});
        match method {
            "getGenesisHash" => json!(self.genesis),
            "getMultipleAccounts" => {
                if params[1]["minContextSlot"].as_u64().is_some_and(|least| least > self.finalized) {
                    return json!({"error": {"code": -32016, "message": "Minimum context slot has not been reached"}});
                }
                let keys = params[0].as_array().expect("valid");
                let length = params[1]["dataSlice"]["length"].as_u64().map_or(usize::MAX, |length| length.try_into().expect("valid"));
                let get = |key: &Value| {
                    let mut account = self.accounts.get(&key.as_str().expect("valid").parse().expect("valid")).cloned()?;
                    account.data.truncate(length);
                    Some(account)
                };
                context(keys.iter().map(|key| shown(get(key).as_ref())).collect())
            }
            "getSlot" => json!(self.newest),
            "getBlockHeight" => json!(300_000_000),
            "getFirstAvailableBlock" => json!(0),
            "getLatestBlockhash" => context(json!({"blockhash": blockhash().to_string(), "lastValidBlockHeight": 300_000_150})),
            "isBlockhashValid" => {
                // What was sent in the tests has a blockhash that only the newest block knows.
                let newest = (params[1]["commitment"] == "processed").then_some(USED);
                context(json!((0..150).map(older_blockhash).chain(newest).any(|hash| params[0] == hash.to_string())))
            }
            "getRecentPrioritizationFees" => {
                self.fees.iter().zip(self.finalized..).map(|(fee, slot)| json!({"slot": slot, "prioritizationFee": fee})).collect()
            }
            "getMinimumBalanceForRentExemption" => json!((128 + params[0].as_u64().expect("valid")) * 6_960),
            "getSignaturesForAddress" => {
                let address: Address = params[0].as_str().expect("valid").parse().expect("valid");
                let names = |mined: &&Mined| mined.transaction.message.static_account_keys().contains(&address);
                let shown = |mined: &Mined| {
                    let err = if mined.failed { json!({"InstructionError": [0, {"Custom": 6000}]}) } else { Value::Null };
                    json!({"signature": name(mined), "slot": mined.slot, "err": err, "memo": null, "blockTime": 1, "confirmationStatus": "finalized"})
                };
                let before = |mined: &&Mined| params[1]["before"].as_str().is_some_and(|before| before != name(mined));
                let newest_first = self.mined.iter().rev().filter(names);
                let is_first = params[1]["before"].is_null();
                let skipped = newest_first.skip_while(before).skip(usize::from(!is_first));
                skipped.map(shown).take(usize::try_from(params[1]["limit"].as_u64().expect("valid")).expect("valid")).collect()
            }
            "getTransaction" => {
                let Some(found) = self.mined.iter().find(|mined| json!(name(mined)) == params[0]) else { return Value::Null };
                // A legacy message has no version. Without the member, a node supports no other one.
                match (version(found).as_u64(), params[1]["maxSupportedTransactionVersion"].as_u64()) {
                    (Some(version), max) if max.is_none_or(|max| version > max) => json!({"error": {
                        "code": -32_015,
                        "message": format!("Transaction version ({version}) is not supported by the requesting client. Please try the request again with the following configuration parameter: \"maxSupportedTransactionVersion\": {version}"),
                    }}),
                    _ => transaction(found),
                }
            }
            "simulateTransaction" => match &self.simulated {
                Err(error) => context(
                    json!({"err": error, "logs": ["Program x invoke [1]", "Program log: AnchorError caused by account", "Program x failed: custom"], "accounts": null, "unitsConsumed": 7}),
                ),
                Ok(after) => {
                    let keys = params[1]["accounts"]["addresses"].as_array().expect("valid");
                    let get = |key: &Value| {
                        let key: Address = key.as_str().expect("valid").parse().expect("valid");
                        shown(after.get(&key).or_else(|| self.accounts.get(&key)))
                    };
                    context(json!({"err": null, "logs": [], "accounts": keys.iter().map(get).collect::<Vec<_>>(), "unitsConsumed": 31_000}))
                }
            },
            "sendTransaction" => {
                let bytes = STANDARD.decode(params[0].as_str().expect("valid")).expect("valid");
                json!(read::transaction(&bytes).expect("valid").signatures[0].to_string())
            }
            "getSignatureStatuses" => context(json!([null])),
            _ => json!({"error": {"code": -32601, "message": "Method not found"}}),
        }
    }

    /// Answers what a reader asks.
    pub fn answer(&self, request: &Request) -> Answer {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?} is not a call") };
        let params: Value = serde_json::from_str(params).expect("JSON");
        let mut reply = self.reply_to("", &json!({"id": 0, "method": method, "params": params}));
        match reply.get("error") {
            Some(error) => {
                Answer::Error(RpcError::new(error["code"].as_i64().expect("valid"), error["message"].as_str().expect("valid"), None))
            }
            None => Answer::result(reply["result"].take().to_string().into_bytes()),
        }
    }

    /// Answers a JSON-RPC call to an endpoint.
    pub fn reply_to(&self, host: &str, call: &Value) -> Value {
        let (method, params) = (call["method"].as_str().expect("valid"), &call["params"]);
        self.seen.lock().expect("valid").push((host.to_owned(), method.to_owned(), params.clone()));
        let result = (self.lie)(host, method, params).unwrap_or_else(|| self.result(method, params));
        match result.get("error") {
            Some(error) => json!({"jsonrpc": "2.0", "id": call["id"], "error": error}),
            None => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
        }
    }

    /// How often a method was called.
    pub fn count(&self, method: &str) -> usize {
        self.seen.lock().expect("valid").iter().filter(|(_, called, _)| called == method).count()
    }
}

pub fn name(mined: &Mined) -> String {
    mined.transaction.signatures[0].to_string()
}

fn shown(account: Option<&Account>) -> Value {
    account.map_or(Value::Null, |account| {
        json!({
            "lamports": account.lamports,
            "owner": account.owner.to_string(),
            "data": [STANDARD.encode(&account.data), "base64"],
            "executable": false,
            "rentEpoch": u64::MAX,
            "space": account.data.len(),
        })
    })
}

/// The version of a transaction's message, as a node writes it.
fn version(mined: &Mined) -> Value {
    match mined.transaction.message {
        VersionedMessage::Legacy(_) => json!("legacy"),
        VersionedMessage::V0(_) => json!(0),
        VersionedMessage::V1(_) => json!(1),
    }
}

pub fn transaction(mined: &Mined) -> Value {
    let keys = mined.transaction.message.static_account_keys();
    let index = |key: &Address| keys.iter().position(|other| other == key).expect("valid");
    let called = |instruction: &Instruction| {
        let accounts: Vec<_> = instruction.accounts.iter().map(|meta| index(&meta.pubkey)).collect();
        json!({"programIdIndex": index(&instruction.program_id), "accounts": accounts, "data": bs58::encode(&instruction.data).into_string(), "stackHeight": 2})
    };
    let inner: Vec<_> = mined.called.iter().map(called).collect();
    let inner = if inner.is_empty() { json!([]) } else { json!([{"index": 0, "instructions": inner}]) };
    json!({
        "slot": mined.slot,
        "blockTime": 1,
        "version": version(mined),
        "transaction": [STANDARD.encode(read::transaction_bytes(&mined.transaction)), "base64"],
        "meta": {"err": null, "fee": 5000, "innerInstructions": inner, "loadedAddresses": {"writable": [], "readonly": []}, "logMessages": []},
    })
}
