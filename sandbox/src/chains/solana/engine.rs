//! Implements the engine trait, through which the service uses the chain.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_chains::swap_id;
use countersign_proofs_solana::machine;
use litesvm::LiteSVM;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use solana_account::{AccountSharedData, ReadableAccount, WritableAccount};
use solana_address::Address;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_message::v1::{self, TransactionConfig};
use solana_message::{Message, VersionedMessage};
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use super::bank::{Bank, Commitment, Record, SLOT_MILLIS, id};
use super::htlc::{self, DECIMALS, MINT, NATIVE, SYSTEM, Step, Swap, TOKEN, TOKENS, token_account, token_account_of};
use crate::accounts::{self, RELAYER, SOLVER, USER};
use crate::chains::engine::{Change, Engine, Event, Leg, Listing, Terms};
use crate::chains::listing::{AssetRow, ChainRow};
use crate::clock::Clock;
use crate::http::{Reply, Request};

const LAMPORTS_PER_SOL: u64 = 1_000_000_000;
/// A hundred million SOL, about a sixth of the supply.
const LAVISH: u64 = LAMPORTS_PER_SOL * 100_000_000;
/// The compute limit in a message of version 1. It is enough for the swap programs and the token program.
const COMPUTE_UNITS: u32 = 200_000;
const LOADED_BYTES: u32 = 1_000_000;
/// A billion USDC.
const LAVISH_TOKENS: u64 = 1_000_000_000_000_000;

/// A Solana cluster with USDC and the swap programs that clients use.
pub struct Solana {
    chain: String,
    cluster: String,
    /// The number of the cluster in swap ids.
    number: u64,
    pub(super) bank: Bank,
    /// The accounts whose keys the sandbox has.
    keys: BTreeMap<Address, [u8; 32]>,
    /// The solver's open swaps, by their accounts.
    open: BTreeMap<Address, Swap>,
    events: Vec<Event>,
}

impl fmt::Debug for Solana {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Solana({}, slot {})", self.chain, self.bank.tip())
    }
}

fn keypair(role: &str) -> Keypair {
    Keypair::new_from_array(accounts::key(role))
}

fn parse(address: &str) -> Result<Address, String> {
    address.parse().map_err(|_| format!("not a valid Solana address: {address}"))
}

/// Signs a message with the given keys. The signatures of other signers stay empty.
fn signed(message: VersionedMessage, keys: &[Keypair]) -> VersionedTransaction {
    let signers = usize::from(message.header().num_required_signatures);
    let bytes = message.serialize();
    let sign = |account: &Address| keys.iter().find(|key| key.pubkey() == *account).map(|key| key.sign_message(&bytes));
    let signatures = message.static_account_keys().iter().take(signers).map(|account| sign(account).unwrap_or_default()).collect();
    VersionedTransaction { signatures, message }
}

/// Puts an instruction into a message. A message of version 1 needs limits, without which nothing runs.
fn message(instruction: Instruction, payer: &Address, blockhash: &Hash, is_v1: bool) -> VersionedMessage {
    let legacy = Message::new_with_blockhash(&[instruction], Some(payer), blockhash);
    if !is_v1 {
        return VersionedMessage::Legacy(legacy);
    }
    let limits = TransactionConfig::empty().with_compute_unit_limit(COMPUTE_UNITS).with_loaded_accounts_data_size_limit(LOADED_BYTES);
    VersionedMessage::V1(v1::Message::new(legacy.header, limits, *blockhash, legacy.account_keys, legacy.instructions))
}

fn encoded(transaction: &VersionedTransaction) -> Result<String, String> {
    wincode::serialize(transaction).map(|bytes| STANDARD.encode(bytes)).map_err(|error| error.to_string())
}

/// Returns the genesis hash, by which clients recognize the cluster.
fn genesis(chain: &str, cluster: &str) -> Hash {
    let known = match cluster {
        "mainnet" | "mainnet-beta" | "101" => "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
        "testnet" | "devnet" | "103" => "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG",
        _ => "",
    };
    known.parse().unwrap_or_else(|_| Hash::new_from_array(Sha256::digest(format!("countersign sandbox: {chain}")).into()))
}

impl Solana {
    /// Starts a cluster and funds the solver and the relayer. `chain` is its name in asset ids, for example `solana`
    /// or `solana_localnet`. `cluster` is its name to clients, for example `mainnet` or `localnet`.
    #[must_use]
    pub fn new(chain: &str, cluster: &str, clock: Arc<Clock>) -> Self {
        Self::of(machine(NATIVE, TOKENS), chain, cluster, clock)
    }

    /// Does the same with a virtual machine that may have other programs and accounts.
    #[must_use]
    pub fn of(machine: LiteSVM, chain: &str, cluster: &str, clock: Arc<Clock>) -> Self {
        let bank = Bank::new(machine, genesis(chain, cluster), clock);
        let number = swap_id::solana_chain_id(cluster).map_or(104, |(number, _)| number);
        let keys = [USER, SOLVER, RELAYER].map(|role| (keypair(role).pubkey(), accounts::key(role))).into_iter().collect();
        let (chain, cluster, open, events) = (chain.to_owned(), cluster.to_owned(), BTreeMap::new(), Vec::new());
        let mut solana = Self { chain, cluster, number, bank, keys, open, events };
        let mut mint = AccountSharedData::new(solana.bank.svm().minimum_balance_for_rent_exemption(82), 82, &TOKEN);
        let data = mint.data_as_mut_slice();
        // Sets the decimals and marks the mint as initialized. It has no mint or freeze authority.
        data.iter_mut().skip(44).zip([DECIMALS, 1]).for_each(|(byte, value)| *byte = value);
        // A new virtual machine accepts any new account.
        let _ = solana.bank.put(MINT, mint);
        for role in [SOLVER, RELAYER] {
            let _ = solana.give(keypair(role).pubkey(), LAVISH);
        }
        for role in [SOLVER, RELAYER] {
            let _ = solana.give_tokens(keypair(role).pubkey(), LAVISH_TOKENS);
        }
        solana
    }

    fn give(&mut self, to: Address, lamports: u64) -> Result<(), String> {
        let mut account = self.bank.account(&to, self.bank.tip()).unwrap_or_else(|| AccountSharedData::new(0, 0, &SYSTEM));
        let total = account.lamports().checked_add(lamports).ok_or("more lamports than there can be")?;
        let least = self.bank.svm().minimum_balance_for_rent_exemption(account.data().len());
        if total < least {
            return Err(format!("an account must hold at least {least} lamports"));
        }
        account.set_lamports(total);
        self.bank.put(to, account)
    }

    fn give_tokens(&mut self, to: Address, amount: u64) -> Result<(), String> {
        let (key, tip) = (token_account_of(&to), self.bank.tip());
        let mut account = match self.bank.account(&key, tip) {
            Some(account) => account,
            None => {
                let rent = self.bank.svm().minimum_balance_for_rent_exemption(165);
                let mut account = AccountSharedData::new(rent, 165, &TOKEN);
                let mut data = [MINT.as_ref(), to.as_ref(), &[0; 101]].concat();
                data.iter_mut().skip(108).take(1).for_each(|state| *state = 1);
                account.set_data_from_slice(&data);
                account
            }
        };
        add(&mut account, 64, amount)?;
        let mut mint = self.bank.account(&MINT, tip).ok_or("there is no such token")?;
        add(&mut mint, 36, amount)?;
        self.bank.put(MINT, mint)?;
        self.bank.put(key, account)
    }

    /// Returns whether an asset id is USDC rather than SOL.
    fn is_token(&self, asset: &str) -> Result<bool, String> {
        match asset.split_once(':') {
            Some((chain, "sol")) if chain == self.chain => Ok(false),
            Some((chain, "usdc")) if chain == self.chain => Ok(true),
            _ => Err(format!("no such asset on {}: {asset}", self.chain)),
        }
    }

    fn swap(&self, terms: &Terms) -> Result<Swap, String> {
        let (owner, solver) = (parse(&terms.owner)?, keypair(SOLVER).pubkey());
        let (initiator, redeemer) = if terms.is_source { (owner, solver) } else { (solver, owner) };
        let amount = u64::try_from(terms.amount).map_err(|_| "the amount does not fit 64 bits")?;
        let is_token = self.is_token(&terms.asset)?;
        Ok(Swap { is_token, initiator, redeemer, hash: terms.secret_hash, amount, slots: terms.timelock })
    }

    fn swap_id(&self, swap: &Swap) -> String {
        hex::encode(swap_id::solana(self.number, &swap.hash, swap.initiator.as_ref()))
    }

    /// Returns a blockhash that every node has, even one that lags slightly behind.
    fn blockhash(&self) -> Hash {
        self.bank.block(self.bank.slot(Commitment::Finalized)).map(|block| block.hash).unwrap_or_default()
    }

    /// Returns the transaction that the owner signs and whose fee the relayer pays.
    fn gasless(&self, swap: &Swap, blockhash: &Hash, is_v1: bool) -> VersionedTransaction {
        let relayer = keypair(RELAYER);
        let payer = relayer.pubkey();
        signed(message(swap.initiate(payer), &payer, blockhash, is_v1), &[relayer])
    }

    fn offered(&self, terms: &Terms, is_v1: bool) -> Result<Map<String, Value>, String> {
        let (swap, blockhash) = (self.swap(terms)?, self.blockhash());
        let owner = swap.initiator;
        let own = signed(message(swap.initiate(owner), &owner, &blockhash, is_v1), &[]);
        // The relayer cannot sponsor itself, and the program for SOL has no sponsor.
        let is_sponsored = swap.is_token && owner != keypair(RELAYER).pubkey();
        let gasless = if is_sponsored { json!(encoded(&self.gasless(&swap, &blockhash, is_v1))?) } else { Value::Null };
        Ok(Map::from_iter([("versioned_tx".to_owned(), json!(encoded(&own)?)), ("versioned_tx_gasless".to_owned(), gasless)]))
    }

    /// Queues a transaction for the next block, if it would succeed now.
    pub(super) fn submit(&mut self, transaction: VersionedTransaction) -> Result<String, String> {
        let id = id(&transaction);
        if !self.bank.is_pending(&id) {
            let simulated = self.bank.simulate(&transaction, self.bank.tip());
            if let Some(error) = simulated.error {
                return Err(format!("the chain refuses the transaction: {error}. {}", simulated.meta.logs.join("; ")));
            }
            self.bank.submit(transaction);
        }
        Ok(id.to_string())
    }

    fn send(&mut self, instructions: &[Instruction], payer: &str, others: Vec<Keypair>) -> Result<String, String> {
        let payer = keypair(payer);
        let newest = self.bank.block(self.bank.tip()).map(|block| block.hash).unwrap_or_default();
        let message = Message::new_with_blockhash(instructions, Some(&payer.pubkey()), &newest);
        let keys: Vec<_> = [payer].into_iter().chain(others).collect();
        self.submit(signed(VersionedMessage::Legacy(message), &keys))
    }

    /// Returns who gets the rent of an open swap back.
    fn sponsor(&self, swap: &Swap) -> Result<Address, String> {
        let program = if swap.is_token { TOKENS } else { NATIVE };
        let account = self.bank.account(&swap.account(), self.bank.tip()).filter(|account| *account.owner() == program);
        let account = account.ok_or("there is no open swap with these terms")?;
        Ok(htlc::sponsor(account.data()).filter(|_| swap.is_token).unwrap_or(swap.initiator))
    }

    /// Records the effects of an executed transaction on the solver's swaps.
    fn follow(&mut self, steps: Vec<(Address, Step)>, signature: Signature, height: u64) {
        let solver = keypair(SOLVER).pubkey();
        for (account, step) in steps {
            let (swap, change) = match step {
                Step::Initiated(swap) => {
                    let change = Change::Initiated { amount: swap.amount.into() };
                    if [swap.initiator, swap.redeemer].contains(&solver) {
                        self.open.insert(account, swap);
                    }
                    (self.open.get(&account).cloned(), change)
                }
                Step::Redeemed(secret) => (self.open.remove(&account), Change::Redeemed { secret }),
                Step::Refunded => (self.open.remove(&account), Change::Refunded),
            };
            if let Some(swap) = swap {
                self.events.push(Event { swap_id: self.swap_id(&swap), transaction: signature.to_string(), height, change });
            }
        }
    }
}

/// Returns the effects of a transaction on swaps. Each instruction is followed by its inner instructions.
fn steps(record: &Record) -> Vec<(Address, Step)> {
    let message = &record.transaction.message;
    let keys = message.static_account_keys();
    let key = |index: &u8| keys.get(usize::from(*index)).copied();
    let read = |program: u8, accounts: &[u8], data: &[u8]| {
        let accounts: Option<Vec<_>> = accounts.iter().map(key).collect();
        htlc::step(&key(&program)?, &accounts?, data)
    };
    let mut steps = Vec::new();
    for (index, outer) in message.instructions().iter().enumerate() {
        steps.extend(read(outer.program_id_index, &outer.accounts, &outer.data));
        for inner in record.meta.inner_instructions.get(index).into_iter().flatten() {
            let inner = &inner.instruction;
            steps.extend(read(inner.program_id_index, &inner.accounts, &inner.data));
        }
    }
    steps
}

/// Adds to an 8-byte number in an account's data.
fn add(account: &mut AccountSharedData, at: usize, amount: u64) -> Result<(), String> {
    let place = account.data_as_mut_slice().get_mut(at..).and_then(|rest| rest.first_chunk_mut::<8>());
    let place = place.ok_or("the account holds no tokens")?;
    let total = u64::from_le_bytes(*place).checked_add(amount).ok_or("more tokens than there can be")?;
    *place = total.to_le_bytes();
    Ok(())
}

impl Engine for Solana {
    fn listing(&self) -> Listing {
        let Self { chain, cluster, .. } = self;
        let row = ChainRow {
            chain,
            id: format!("solana:{cluster}"),
            title: "Solana".to_owned(),
            coin: "sol",
            timelocks: [216_000, 18_000],
            htlcs: json!(["solana:htlc", "solana:htlc_spltoken"]),
            tokens: json!(["solana:spltoken"]),
        }
        .json();
        let asset = |symbol: &str, decimals: u8, limits: [&str; 2], htlc: Value, token: Value| {
            AssetRow { chain, network: json!(cluster), symbol, decimals, limits: limits.map(str::to_owned), htlc, token }.json()
        };
        // An amount below the rent-exempt minimum could not be paid to a new account.
        let sol =
            asset("sol", 9, ["1000000", "1000000000000000"], json!({"address": NATIVE.to_string(), "schema": "solana:htlc"}), Value::Null);
        let usdc = asset(
            "usdc",
            DECIMALS,
            ["1000", "10000000000000"],
            json!({"address": TOKENS.to_string(), "schema": "solana:htlc_spltoken"}),
            json!({"address": MINT.to_string(), "schema": "solana:spltoken"}),
        );
        Listing { chain: row, assets: vec![sol, usdc], solver: keypair(SOLVER).pubkey().to_string() }
    }

    fn address_of(&self, key: &[u8; 32]) -> String {
        Keypair::new_from_array(*key).pubkey().to_string()
    }

    fn key_text(&self, key: &[u8; 32]) -> Option<String> {
        Some(bs58::encode(key).into_string())
    }

    fn fund(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String> {
        let (account, amount) = (parse(account)?, u64::try_from(amount).map_err(|_| "the amount does not fit 64 bits")?);
        if self.is_token(asset)? { self.give_tokens(account, amount) } else { self.give(account, amount) }
    }

    fn stop(&mut self, asset: &str, account: Option<&str>) -> Result<(), String> {
        let (Some(account), true) = (account, self.is_token(asset)?) else { return Err(format!("{asset} cannot be paused")) };
        let owner = account.parse().map_err(|_| format!("{account} is not an address"))?;
        let (key, tip) = (token_account_of(&owner), self.bank.tip());
        let mut tokens = self.bank.account(&key, tip).ok_or_else(|| format!("{account} has no account for {asset}"))?;
        tokens.data_as_mut_slice().iter_mut().skip(108).take(1).for_each(|state| *state = 2);
        self.bank.put(key, tokens)
    }

    fn balance(&self, account: &str, asset: &str) -> Result<u128, String> {
        let owner = parse(account)?;
        let account = |key| self.bank.account(&key, self.bank.tip());
        Ok(if self.is_token(asset)? {
            let tokens = account(token_account_of(&owner)).and_then(|account| token_account(account.data()));
            tokens.map_or(0, |tokens| tokens.amount.into())
        } else {
            account(owner).map_or(0, |account| account.lamports().into())
        })
    }

    fn leg(&self, terms: &Terms) -> Result<Leg, String> {
        let swap = self.swap(terms)?;
        let (initiator, redeemer) = (swap.initiator.to_string(), swap.redeemer.to_string());
        Ok(Leg { swap_id: self.swap_id(&swap), initiator, redeemer, delegate: None })
    }

    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        self.offered(terms, false)
    }

    fn v1_payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        self.offered(terms, true)
    }

    fn initiate(&mut self, terms: &Terms, signature: &str) -> Result<String, String> {
        let swap = self.swap(terms)?;
        if !swap.is_token {
            return Err("SOL cannot be initiated without gas".to_owned());
        }
        let bytes = STANDARD.decode(signature).map_err(|_| "the signature is not a transaction in base64")?;
        let given: VersionedTransaction = wincode::deserialize_exact(&bytes).map_err(|_| "the bytes are not a transaction")?;
        let is_v1 = matches!(given.message, VersionedMessage::V1(_));
        let mut expected = self.gasless(&swap, given.message.recent_blockhash(), is_v1);
        if given.message != expected.message {
            return Err("the transaction is not that of the order".to_owned());
        }
        // The relayer signs first, the owner second.
        expected.signatures.iter_mut().zip(&given.signatures).skip(1).for_each(|(slot, given)| *slot = *given);
        if !expected.verify_with_results().into_iter().all(|is_valid| is_valid) {
            return Err("the owner has not signed the transaction".to_owned());
        }
        self.submit(expected)
    }

    fn lock(&mut self, terms: &Terms) -> Result<String, String> {
        let swap = self.swap(terms)?;
        let key = self.keys.get(&swap.initiator).ok_or("the sandbox has no key of the initiator")?;
        let initiator = Keypair::new_from_array(*key);
        let is_solver = swap.initiator == keypair(SOLVER).pubkey();
        if swap.is_token && !is_solver {
            let instruction = swap.initiate(keypair(RELAYER).pubkey());
            return self.send(&[instruction], RELAYER, vec![initiator]);
        }
        let instruction = swap.initiate(swap.initiator);
        self.send(&[instruction], if is_solver { SOLVER } else { RELAYER }, vec![initiator])
    }

    fn redeem(&mut self, terms: &Terms, secret: &[u8; 32]) -> Result<String, String> {
        let swap = self.swap(terms)?;
        let (sponsor, payer) = (self.sponsor(&swap)?, if terms.is_source { SOLVER } else { RELAYER });
        self.send(&swap.redeem(secret, sponsor, keypair(payer).pubkey()), payer, Vec::new())
    }

    fn refund(&mut self, terms: &Terms) -> Result<String, String> {
        let swap = self.swap(terms)?;
        let (sponsor, payer) = (self.sponsor(&swap)?, if terms.is_source { RELAYER } else { SOLVER });
        self.send(&swap.refund(sponsor, keypair(payer).pubkey()), payer, Vec::new())
    }

    fn mine(&mut self, blocks: u64) {
        let ran = self.bank.mine(blocks);
        let records = self.bank.records().rev().take(ran).filter(|record| record.error.is_none());
        let done: Vec<_> = records.map(|record| (steps(record), record.signature(), record.slot)).collect();
        done.into_iter().rev().for_each(|(steps, signature, slot)| self.follow(steps, signature, slot));
    }

    fn height(&self) -> u64 {
        self.bank.tip()
    }

    fn pending(&self) -> usize {
        self.bank.pending()
    }

    fn depth(&self) -> u64 {
        Commitment::Finalized.lag()
    }

    fn interval(&self) -> u64 {
        SLOT_MILLIS
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        super::front::answer(self, request)
    }
}
