//! In-memory endpoints of a Solana cluster, honest or lying on request. No time passes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::solana::address::{self, SYSTEM_PROGRAM, TOKEN_PROGRAM};
use countersign::solana::htlc::{Htlc, HtlcAccount, Initiate, SolanaGeneration, Token};
use countersign::solana::read::{self, CLOCK};
use countersign::solana::solana_hash::Hash;
use countersign::solana::solana_instruction::{AccountMeta, Instruction};
use countersign::solana::solana_message::{Message, VersionedMessage};
use countersign::solana::solana_signature::Signature;
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::solana::{Address, Solana};
use countersign::{Generation, HtlcTerms, Policy, SecretHash, VerifiedTerms, json, verify_record};
use countersign_batch::Case as JsonCase;
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
use countersign_testkit::{Case, fixture};
use serde_json::{Value, json};

/// The caller's clock.
pub const NOW: u64 = 1_800_000_000;
pub const SECRET: [u8; 32] = [0x7e; 32];
/// The slot in which the swap was initiated.
pub const INITIATED: u64 = 400_000_000;
/// The newest finalized slot, and the newest confirmed one.
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
type Body = Box<dyn Fn(&str) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync>;

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
    pub lie: Lie,
    pub body: Body,
    pub seen: Mutex<Vec<(String, String, Value)>>,
    pub requests: Mutex<BTreeMap<String, usize>>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chain")
    }
}

pub fn blockhash() -> Hash {
    Hash::new_from_array([3; 32])
}

/// The case of a form.
pub fn case(form: &str) -> Case {
    fixture::<Solana>(form)
}

/// The terms of a record whose source is on Solana, with source and destination swapped. The secret of these tests redeems the destination.
pub fn terms(form: &str) -> VerifiedTerms {
    let case = case(form);
    let value = json::parse(case.input.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
    let mut terms = verify_record(proposal, case.registry, &Policy::default()).unwrap().terms;
    terms.source.secret_hash = SecretHash::of(&SECRET);
    terms.destination = terms.source.clone();
    terms
}

pub fn account(account: &countersign::Account) -> Address {
    address::from_account(account).unwrap()
}

/// The program and the swap of some terms.
pub fn swap_of(terms: &HtlcTerms) -> (Htlc, HtlcAccount) {
    let token = terms.token.as_deref().map(|mint| Token::new(mint.parse().unwrap(), TOKEN_PROGRAM));
    let generation = match terms.generation {
        Some(Generation::Solana(generation)) => generation,
        _ => SolanaGeneration::Client313,
    };
    let htlc = Htlc::new(account(terms.htlc.as_ref().unwrap()), token).with_generation(generation);
    let amount = terms.amount.try_into().unwrap();
    let swap = HtlcAccount::new(account(&terms.initiator), account(&terms.redeemer), terms.secret_hash.0, amount, terms.timelock);
    (htlc, swap)
}

pub fn is_audited(htlc: &Htlc) -> bool {
    htlc.generation == SolanaGeneration::November2025
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
    let call = Initiate::new(swap.redeemer, swap.timelock, swap.amount, swap.secret_hash);
    let call = if is_audited(htlc) { call.with_refundee(swap.initiator) } else { call };
    let roles = htlc.initiate_accounts(swap, Address::from(SPONSOR)).unwrap().roles;
    let accounts = roles.into_iter().map(|role| AccountMeta { pubkey: role.address, is_signer: role.signer, is_writable: role.writable });
    Instruction { program_id: htlc.program, accounts: accounts.collect(), data: call.encode(htlc) }
}

/// A transaction of one instruction, with a signature that names it.
pub fn mined(slot: u64, instruction: &Instruction) -> Mined {
    let payer = Address::from([9; 32]);
    let message = Message::new_with_blockhash(std::slice::from_ref(instruction), Some(&payer), &Hash::new_from_array([1; 32]));
    let count = usize::from(message.header.num_required_signatures);
    let mut name = [5_u8; 64];
    name[..8].copy_from_slice(&slot.to_le_bytes());
    name[8] = u8::try_from(instruction.data.len()).unwrap();
    let signatures = std::iter::once(Signature::from(name)).chain(std::iter::repeat_n(Signature::default(), count - 1)).collect();
    Mined {
        slot,
        transaction: VersionedTransaction { signatures, message: VersionedMessage::Legacy(message) },
        called: Vec::new(),
        failed: false,
    }
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
        let clock = Account { lamports: 1, owner: "Sysvar1111111111111111111111111111111111111".parse().unwrap(), data: clock };
        Self {
            genesis: if terms.chain == "solana" { MAINNET } else { DEVNET },
            finalized: FINALIZED,
            newest: NEWEST,
            time: NOW - 20,
            accounts: BTreeMap::from([(CLOCK, clock)]),
            mined: Vec::new(),
            simulated: Err(json!("AccountNotFound")),
            fees: vec![0; 150],
            lie: Box::new(|_, _, _| None),
            body: Box::new(|_| None),
            seen: Mutex::default(),
            requests: Mutex::default(),
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
        chain.accounts.insert(htlc.swap_account(&of_terms).unwrap(), account);
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
        chain.accounts.remove(&htlc.swap_account(&swap).unwrap());
        chain.mined.push(mined(INITIATED + 40, instruction));
        chain
    }

    pub fn lying(mut self, lie: impl Fn(&str, &str, &Value) -> Option<Value> + Send + Sync + 'static) -> Self {
        self.lie = Box::new(lie);
        self
    }

    pub fn answering(mut self, body: impl Fn(&str) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync + 'static) -> Self {
        self.body = Box::new(body);
        self
    }

    /// Sets the finalized slot, and the time of its clock.
    pub fn at(mut self, finalized: u64, time: u64) -> Self {
        (self.finalized, self.newest, self.time) = (finalized, finalized + 31, time);
        self.accounts.get_mut(&CLOCK).unwrap().data = [finalized, 0, 0, 0, time].map(u64::to_le_bytes).concat();
        self
    }

    pub fn account_mut(&mut self, address: Address) -> &mut Account {
        self.accounts.get_mut(&address).unwrap()
    }

    fn result(&self, method: &str, params: &Value) -> Value {
        let context = |value: Value| json!({"context": {"apiVersion": "3.0.0", "slot": self.finalized}, "value": value});
        match method {
            "getGenesisHash" => json!(self.genesis),
            "getMultipleAccounts" => {
                if params[1]["minContextSlot"].as_u64().is_some_and(|least| least > self.finalized) {
                    return json!({"error": {"code": -32016, "message": "Minimum context slot has not been reached"}});
                }
                let keys = params[0].as_array().unwrap();
                context(keys.iter().map(|key| shown(self.accounts.get(&key.as_str().unwrap().parse().unwrap()))).collect())
            }
            "getSlot" => json!(self.newest),
            "getBlockHeight" => json!(300_000_000),
            "getLatestBlockhash" => context(json!({"blockhash": blockhash().to_string(), "lastValidBlockHeight": 300_000_150})),
            "isBlockhashValid" => context(json!(params[0] == blockhash().to_string())),
            "getRecentPrioritizationFees" => {
                self.fees.iter().zip(self.finalized..).map(|(fee, slot)| json!({"slot": slot, "prioritizationFee": fee})).collect()
            }
            "getMinimumBalanceForRentExemption" => json!((128 + params[0].as_u64().unwrap()) * 6_960),
            "getSignaturesForAddress" => {
                let address: Address = params[0].as_str().unwrap().parse().unwrap();
                let names = |mined: &&Mined| mined.transaction.message.static_account_keys().contains(&address);
                let shown = |mined: &Mined| {
                    let err = if mined.failed { json!({"InstructionError": [0, {"Custom": 6000}]}) } else { Value::Null };
                    json!({"signature": name(mined), "slot": mined.slot, "err": err, "memo": null, "blockTime": 1, "confirmationStatus": "finalized"})
                };
                let before = |mined: &&Mined| params[1]["before"].as_str().is_some_and(|before| before != name(mined));
                let newest_first = self.mined.iter().rev().filter(names);
                let is_first = params[1]["before"].is_null();
                let skipped = newest_first.skip_while(before).skip(usize::from(!is_first));
                skipped.map(shown).take(usize::try_from(params[1]["limit"].as_u64().unwrap()).unwrap()).collect()
            }
            "getTransaction" => {
                let found = self.mined.iter().find(|mined| json!(name(mined)) == params[0]);
                found.map_or(Value::Null, transaction)
            }
            "simulateTransaction" => match &self.simulated {
                Err(error) => context(
                    json!({"err": error, "logs": ["Program x invoke [1]", "Program log: AnchorError caused by account", "Program x failed: custom"], "accounts": null, "unitsConsumed": 7}),
                ),
                Ok(after) => {
                    let keys = params[1]["accounts"]["addresses"].as_array().unwrap();
                    let get = |key: &Value| {
                        let key: Address = key.as_str().unwrap().parse().unwrap();
                        shown(after.get(&key).or_else(|| self.accounts.get(&key)))
                    };
                    context(json!({"err": null, "logs": [], "accounts": keys.iter().map(get).collect::<Vec<_>>(), "unitsConsumed": 31_000}))
                }
            },
            "sendTransaction" => {
                let bytes = STANDARD.decode(params[0].as_str().unwrap()).unwrap();
                json!(read::transaction(&bytes).unwrap().signatures[0].to_string())
            }
            "getSignatureStatuses" => context(json!([null])),
            _ => json!({"error": {"code": -32601, "message": "Method not found"}}),
        }
    }

    pub fn reply_to(&self, host: &str, call: &Value) -> Value {
        let (method, params) = (call["method"].as_str().unwrap(), &call["params"]);
        self.seen.lock().unwrap().push((host.to_owned(), method.to_owned(), params.clone()));
        let result = (self.lie)(host, method, params).unwrap_or_else(|| self.result(method, params));
        match result.get("error") {
            Some(error) => json!({"jsonrpc": "2.0", "id": call["id"], "error": error}),
            None => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
        }
    }

    /// How often a method was called.
    pub fn count(&self, method: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|(_, called, _)| called == method).count()
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

pub fn transaction(mined: &Mined) -> Value {
    let keys = mined.transaction.message.static_account_keys();
    let index = |key: &Address| keys.iter().position(|other| other == key).unwrap();
    let called = |instruction: &Instruction| {
        let accounts: Vec<_> = instruction.accounts.iter().map(|meta| index(&meta.pubkey)).collect();
        json!({"programIdIndex": index(&instruction.program_id), "accounts": accounts, "data": bs58::encode(&instruction.data).into_string(), "stackHeight": 2})
    };
    let inner: Vec<_> = mined.called.iter().map(called).collect();
    let inner = if inner.is_empty() { json!([]) } else { json!([{"index": 0, "instructions": inner}]) };
    json!({
        "slot": mined.slot,
        "blockTime": 1,
        "version": "legacy",
        "transaction": [STANDARD.encode(read::transaction_bytes(&mined.transaction)), "base64"],
        "meta": {"err": null, "fee": 5000, "innerInstructions": inner, "loadedAddresses": {"writable": [], "readonly": []}, "logMessages": []},
    })
}

impl Transport for Chain {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().to_owned();
        *self.requests.lock().unwrap().entry(host.clone()).or_default() += 1;
        let (status, body) = match (self.body)(&host) {
            Some(answer) => answer.map_err(|kind| TransportError::new(kind, "scripted"))?,
            None => {
                let calls: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
                let reply = match &calls {
                    Value::Array(calls) => Value::Array(calls.iter().map(|call| self.reply_to(&host, call)).collect()),
                    call => self.reply_to(&host, call),
                };
                (200, reply.to_string().into_bytes())
            }
        };
        Ok(Response::new(status, body))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> u64 {
        NOW
    }
}

/// Connects endpoints `https://a.example`, `https://b.example` and so on. Their paths are keys of accounts.
pub fn nodes(chain: Chain, count: usize, form: &str) -> Nodes<Chain> {
    let hosts = ["a", "b", "c", "d", "e"];
    let all = hosts[..count].iter().map(|host| Endpoint::parse(&format!("https://{host}.example/the-key")).unwrap()).collect();
    let name = terms(form).destination.chain;
    Nodes::new(chain, NodeConfig::new().with(name, Endpoints::new(all).unwrap()), case(form).registry)
}
