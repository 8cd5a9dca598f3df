//! The effects of calls to tokens and HTLCs on balances, allowances and orders, stored at the real contracts' storage
//! addresses. The HTLC has the interface, ids, messages and events of November 2025. The tokens are those of
//! OpenZeppelin.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use alloy_primitives::U256;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use starknet_core::types::{
    Call, CallType, EntryPointType, Event, FunctionCall, FunctionInvocation, InnerCallExecutionResources, OrderedEvent, StarknetError,
    TypedData,
};
use starknet_crypto::{Felt, poseidon_hash_many};

use super::felts::{ACCOUNT_CLASS, after, bytes, halves, is_signed, join, selector, short, storage, words};
use super::ledger::{At, Ledger};
use crate::chains::engine::Change;

/// The class hash of the HTLC, that of the compiled contract. Clients receive the contract's interface.
pub(super) const HTLC_CLASS: Felt = Felt::from_hex_unchecked("0x5e20dcfacd356c6ba4fe1d2ce5e55dc54fd5cccda2af24a3e47e4efd5d0f71e");
/// The class hash of the tokens. They have no code, so it is an arbitrary number.
const TOKEN_CLASS: Felt = Felt::from_hex_unchecked("0x6d6f64656c206f662061207469746f6b656e");
/// The token in which fees are paid.
pub(super) const STRK: Felt = Felt::from_hex_unchecked("0x4718f5a0fc34cc1af16a1cdee98ffb20c31f5cd61d6ab07201858f4287c938d");
/// Where nonces are stored, and with them which accounts exist. No contract has this address.
pub(super) const NONCES: Felt = Felt::MAX;
const ACCOUNTS: Felt = Felt::from_hex_unchecked("0x800000000000010ffffffffffffffffffffffffffffffffffffffffffffffff");

/// A contract and an address in its storage.
pub(super) type Slot = (Felt, Felt);

/// The functions that the model implements, by selector.
static NAMES: LazyLock<BTreeMap<Felt, &str>> = LazyLock::new(|| {
    let calls = ["__execute__", "approve", "transfer", "transfer_from", "redeem", "refund", "instant_refund"];
    let initiates = ["initiate", "initiate_on_behalf", "initiate_with_signature"];
    let views = ["decimals", "balance_of", "balanceOf", "allowance", "is_paused", "is_frozen", "token", "get_order"];
    let all = calls.iter().chain(&initiates).chain(&views).chain(&["is_valid_signature", "isValidSignature"]);
    all.map(|name| (selector(name), *name)).collect()
});

/// A token with its HTLC.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) address: Felt,
    pub(super) symbol: &'static str,
    pub(super) decimals: u8,
    /// The HTLC that locks the token.
    pub(super) htlc: Felt,
}

/// What a contract address holds.
enum Kind<'a> {
    Token(&'a Token),
    Htlc(&'a Token),
    Account,
    Nothing,
}

/// The state after a block, with the changes made on top of it.
pub(super) struct View<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) at: At,
    /// The number of the block in which the changes are made.
    pub(super) block: u64,
    pub(super) writes: BTreeMap<Slot, Felt>,
    pub(super) events: Vec<Event>,
    /// The calls so far, with their inner calls.
    pub(super) calls: Vec<FunctionInvocation>,
    pub(super) changes: Vec<(Felt, Change)>,
}

/// Returns panic data of one felt in the format that nodes print.
fn panic(text: &str) -> String {
    format!("{:#x} ('{text}')", short(text))
}

/// Fails with the message of the HTLC's assertion if the condition does not hold.
fn require(holds: bool, text: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("\"{text}\"")) }
}

fn decoded<T>(argument: Option<T>) -> Result<T, String> {
    argument.ok_or_else(|| panic("Failed to deserialize param"))
}

/// Returns the elements of an array at the end of the arguments.
fn array(felts: &[Felt]) -> Result<&[Felt], String> {
    decoded(felts.split_first().filter(|(length, rest)| **length == Felt::from(rest.len())).map(|(_, rest)| rest))
}

/// Returns the id of an order. It commits to the terms, the chain and the contract. `terms` are those of all forms of
/// `initiate`: redeemer, timelock, amount and secret hash.
pub(super) fn order_id(chain_id: Felt, htlc: Felt, initiator: Felt, terms: &[Felt]) -> Felt {
    let (rest, hash) = terms.split_at_checked(4).unwrap_or_default();
    poseidon_hash_many(&[&[chain_id], hash, &[initiator], rest, &[htlc]].concat())
}

/// Returns a message in the swap contract's domain, in the service's format. `members` are names with types.
fn typed_data(chain_id: Felt, name: &str, members: &str, message: Value) -> Value {
    let listed = |members: &str| {
        let members = members.split(' ').filter_map(|member| member.split_once(':'));
        members.map(|(name, kind)| json!({"name": name, "type": kind})).collect::<Value>()
    };
    json!({
        "domain": {"chainId": chain_id, "name": "HTLC", "revision": 1, "version": "0x31"},
        "message": message,
        "primaryType": name,
        "types": {
            name: listed(members),
            "StarknetDomain": listed("name:shortstring version:shortstring chainId:shortstring revision:shortstring"),
        },
    })
}

/// Returns the message of a gasless initiation.
pub(super) fn initiate_data(chain_id: Felt, htlc: Felt, terms: &[Felt]) -> Option<Value> {
    let [redeemer, timelock, low, high, hash @ ..] = terms else { return None };
    let hash = hash.iter().map(|word| u32::try_from(*word).ok()).collect::<Option<Vec<_>>>()?;
    let members = "redeemer:ContractAddress amount:u256 timelock:u128 secretHash:u128* verifyingContract:ContractAddress";
    let message = json!({
        "amount": {"high": high, "low": low}, "redeemer": redeemer.to_string(), "secretHash": hash, "timelock": timelock.to_string(),
        "verifyingContract": htlc,
    });
    Some(typed_data(chain_id, "Initiate", members, message))
}

/// Returns whether the account has signed the message. The SDK computes the message's hash.
fn has_signed(account: Felt, message: Value, signature: &[Felt]) -> bool {
    let hash = serde_json::from_value::<TypedData>(message).ok().and_then(|data| data.message_hash(account).ok());
    hash.is_some_and(|hash| is_signed(account, hash, signature))
}

/// Decodes calls as Cairo 1 accounts do: the count, then the address, selector, length and arguments of each call.
fn calls_of(calldata: &[Felt]) -> Option<Vec<Call>> {
    let (count, mut rest) = calldata.split_first()?;
    let mut calls = Vec::new();
    for _ in 0..u16::try_from(*count).ok()? {
        let (&[to, selector, length], after) = rest.split_first_chunk()?;
        let (calldata, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
        calls.push(Call { to, selector, calldata: calldata.to_vec() });
        rest = after;
    }
    rest.is_empty().then_some(calls)
}

impl<'a> View<'a> {
    fn read(&self, contract: Felt, key: Felt) -> Felt {
        let slot = (contract, key);
        self.writes.get(&slot).copied().unwrap_or_else(|| self.ledger.slot(self.at, &slot))
    }

    pub(super) fn write(&mut self, contract: Felt, key: Felt, value: Felt) {
        self.writes.insert((contract, key), value);
    }

    fn number(&self, contract: Felt, key: Felt) -> U256 {
        join(self.read(contract, key), self.read(contract, after(key, 1))).unwrap_or_default()
    }

    fn set_number(&mut self, contract: Felt, key: Felt, number: U256) {
        for (place, half) in (0..).zip(halves(number)) {
            self.write(contract, after(key, place), half);
        }
    }

    pub(super) fn balance(&self, token: Felt, account: Felt) -> U256 {
        self.number(token, storage("ERC20_balances", &[account]))
    }

    pub(super) fn allowance(&self, token: Felt, owner: Felt, spender: Felt) -> U256 {
        self.number(token, storage("ERC20_allowances", &[owner, spender]))
    }

    fn order(&self, htlc: Felt, id: Felt) -> [Felt; 7] {
        let base = storage("orders", &[id]);
        std::array::from_fn(|place| self.read(htlc, after(base, place)))
    }

    fn kind(&self, address: Felt) -> Kind<'a> {
        let tokens = &self.ledger.tokens;
        match tokens.iter().find(|token| [token.address, token.htlc].contains(&address)) {
            Some(token) if token.address == address => Kind::Token(token),
            Some(token) => Kind::Htlc(token),
            None if self.read(ACCOUNTS, address) != Felt::ZERO => Kind::Account,
            None => Kind::Nothing,
        }
    }

    /// Returns the class hash of a contract. An account exists as soon as it has received tokens.
    pub(super) fn class_of(&self, address: Felt) -> Result<Felt, StarknetError> {
        match self.kind(address) {
            Kind::Token(_) => Ok(TOKEN_CLASS),
            Kind::Htlc(_) => Ok(HTLC_CLASS),
            Kind::Account => Ok(ACCOUNT_CLASS),
            Kind::Nothing => Err(StarknetError::ContractNotFound),
        }
    }

    /// Executes a view function.
    pub(super) fn ask(&self, call: &FunctionCall) -> Result<Vec<Felt>, StarknetError> {
        let here = call.contract_address;
        let name = NAMES.get(&call.entry_point_selector).copied().unwrap_or_default();
        Ok(match (self.kind(here), name, call.calldata.as_slice()) {
            (Kind::Token(token), "decimals", []) => vec![token.decimals.into()],
            (Kind::Token(_), "balance_of" | "balanceOf", &[account]) => halves(self.balance(here, account)).to_vec(),
            (Kind::Token(_), "allowance", &[owner, spender]) => halves(self.allowance(here, owner, spender)).to_vec(),
            (Kind::Token(_), "is_paused", []) | (Kind::Token(_), "is_frozen", [_]) => vec![self.read(here, storage(name, &call.calldata))],
            (Kind::Htlc(token), "token", []) => vec![token.address],
            (Kind::Htlc(_), "get_order", &[id]) => self.order(here, id).to_vec(),
            (Kind::Account, "is_valid_signature" | "isValidSignature", [hash, length, signature @ ..])
                if *length == Felt::from(signature.len()) =>
            {
                vec![if is_signed(here, *hash, signature) { short("VALID") } else { Felt::ZERO }]
            }
            (Kind::Nothing, ..) => return Err(StarknetError::ContractNotFound),
            _ => return Err(StarknetError::EntrypointNotFound),
        })
    }

    /// Executes a call, and records it with its inner calls as in a trace. An error names the chain of calls and the
    /// reason of the revert.
    pub(super) fn execute(&mut self, caller: Felt, call: &Call) -> Result<(), String> {
        let (first_event, first_call, to, selector) = (self.events.len(), self.calls.len(), call.to, call.selector);
        let in_call = |reason| format!("Error in contract (contract address: {to:#x}, selector: {selector:#x}):\n{reason}");
        self.apply(caller, call).map_err(in_call)?;
        let calls = self.calls.split_off(first_call);
        let events = (0..).zip(&self.events).skip(first_event).filter(|(_, event)| event.from_address == to);
        self.calls.push(FunctionInvocation {
            contract_address: to,
            entry_point_selector: selector,
            calldata: call.calldata.clone(),
            caller_address: caller,
            class_hash: self.class_of(to).unwrap_or_default(),
            entry_point_type: EntryPointType::External,
            call_type: CallType::Call,
            result: Vec::new(),
            calls,
            events: events.map(|(order, event)| OrderedEvent { order, keys: event.keys.clone(), data: event.data.clone() }).collect(),
            messages: Vec::new(),
            execution_resources: InnerCallExecutionResources { l1_gas: 0, l2_gas: 400_000 },
            is_reverted: false,
        });
        Ok(())
    }

    /// Applies a call to the state.
    fn apply(&mut self, caller: Felt, call: &Call) -> Result<(), String> {
        let here = call.to;
        let name = NAMES.get(&call.selector).copied().unwrap_or_default();
        match (self.kind(here), name, call.calldata.as_slice()) {
            // Only the chain itself calls an account.
            (Kind::Account, "__execute__", calldata) if caller == Felt::ZERO => {
                decoded(calls_of(calldata))?.iter().try_for_each(|call| self.execute(here, call))
            }
            (Kind::Token(_), "approve", &[spender, low, high]) => self.approve(here, caller, spender, decoded(join(low, high))?),
            (Kind::Token(_), "transfer", &[to, low, high]) => self.transfer(here, caller, to, decoded(join(low, high))?),
            (Kind::Token(_), "transfer_from", &[from, to, low, high]) => {
                let (amount, allowed) = (decoded(join(low, high))?, self.allowance(here, from, caller));
                if allowed != U256::MAX {
                    let left = allowed.checked_sub(amount).ok_or_else(|| panic("ERC20: insufficient allowance"))?;
                    self.approve(here, from, caller, left)?;
                }
                self.transfer(here, from, to, amount)
            }
            (Kind::Htlc(token), "initiate", terms) => self.initiate(token, [caller, caller], terms),
            (Kind::Htlc(token), "initiate_on_behalf", [initiator, terms @ ..]) => self.initiate(token, [*initiator, caller], terms),
            (Kind::Htlc(token), "initiate_with_signature", [initiator, rest @ ..]) => {
                let (terms, signature) = decoded(rest.split_at_checked(12))?;
                let message = decoded(initiate_data(self.ledger.chain_id, here, terms))?;
                require(has_signed(*initiator, message, array(signature)?), "HTLC: invalid initiator signature")?;
                self.initiate(token, [*initiator, *initiator], terms)
            }
            (Kind::Htlc(token), "redeem", [id, secret @ ..]) => self.redeem(token, *id, array(secret)?),
            (Kind::Htlc(token), "refund", &[id]) => {
                let order @ [.., initiated, timelock, _, _] = self.open_order(here, id)?;
                let [initiated, timelock] = [initiated, timelock].map(|felt| u128::try_from(felt).unwrap_or_default());
                let end = initiated.checked_add(timelock).ok_or_else(|| panic("u128_add Overflow"))?;
                require(end < self.block.into(), "HTLC: order not expired")?;
                self.refund(token, id, order)
            }
            (Kind::Htlc(token), "instant_refund", [id, signature @ ..]) => {
                let (order @ [_, _, redeemer, ..], signature) = (self.open_order(here, *id)?, array(signature)?);
                let message = json!({"orderID": id, "verifyingContract": here});
                let message = typed_data(self.ledger.chain_id, "instantRefund", "orderID:felt verifyingContract:ContractAddress", message);
                require(caller == redeemer || has_signed(redeemer, message, signature), "HTLC: invalid redeemer signature")?;
                self.refund(token, *id, order)
            }
            (_, "", _) => Err(format!("the model does not execute the selector {:#x} of {here:#x}", call.selector)),
            (_, name, felts) => Err(format!("the model does not execute {name} of {here:#x} with {} felts", felts.len())),
        }
    }

    fn emit(&mut self, from_address: Felt, keys: Vec<Felt>, data: Vec<Felt>) {
        self.events.push(Event { from_address, keys, data });
    }

    fn approve(&mut self, token: Felt, owner: Felt, spender: Felt, amount: U256) -> Result<(), String> {
        if spender == Felt::ZERO {
            return Err(panic("ERC20: approve to 0"));
        }
        self.set_number(token, storage("ERC20_allowances", &[owner, spender]), amount);
        self.emit(token, vec![selector("Approval"), owner, spender], halves(amount).to_vec());
        Ok(())
    }

    pub(super) fn transfer(&mut self, token: Felt, from: Felt, to: Felt, amount: U256) -> Result<(), String> {
        if to == Felt::ZERO {
            return Err(panic("ERC20: transfer to 0"));
        }
        if self.read(token, storage("is_paused", &[])) != Felt::ZERO {
            return Err(panic("the token is paused"));
        }
        if [from, to].iter().any(|account| self.read(token, storage("is_frozen", &[*account])) != Felt::ZERO) {
            return Err(panic("the account is frozen"));
        }
        let left = self.balance(token, from).checked_sub(amount).ok_or_else(|| panic("ERC20: insufficient balance"))?;
        self.set_number(token, storage("ERC20_balances", &[from]), left);
        self.emit(token, vec![selector("Transfer"), from, to], halves(amount).to_vec());
        self.credit(token, to, amount)
    }

    /// Adds to a balance. Nobody pays for it.
    pub(super) fn credit(&mut self, token: Felt, to: Felt, amount: U256) -> Result<(), String> {
        let sum = self.balance(token, to).checked_add(amount).ok_or_else(|| panic("u256_add Overflow"))?;
        self.set_number(token, storage("ERC20_balances", &[to]), sum);
        if matches!(self.kind(to), Kind::Nothing) {
            self.write(ACCOUNTS, to, Felt::ONE);
        }
        Ok(())
    }

    /// Freezes an account, or pauses the token if no account is given.
    pub(super) fn stop(&mut self, token: Felt, account: Option<Felt>) {
        let key = account.map_or_else(|| storage("is_paused", &[]), |account| storage("is_frozen", &[account]));
        self.write(token, key, Felt::ONE);
    }

    /// Calls the token as its HTLC.
    fn pay(&mut self, token: &Token, name: &str, calldata: Vec<Felt>) -> Result<(), String> {
        self.execute(token.htlc, &Call { to: token.address, selector: selector(name), calldata })
    }

    fn initiate(&mut self, token: &Token, [initiator, payer]: [Felt; 2], terms: &[Felt]) -> Result<(), String> {
        let &[redeemer, timelock, low, high, ref hash @ ..] = terms else { return decoded(None) };
        decoded(bytes(hash).zip(u128::try_from(timelock).ok()))?;
        let (here, amount) = (token.htlc, decoded(join(low, high))?);
        require(initiator != Felt::ZERO, "HTLC: zero address initiator")?;
        require(redeemer != Felt::ZERO, "HTLC: zero address redeemer")?;
        require(payer != redeemer || payer == initiator, "HTLC: sender == redeemer")?;
        require(initiator != redeemer, "HTLC: same initiator & redeemer")?;
        require(timelock != Felt::ZERO, "HTLC: zero timelock")?;
        require(!amount.is_zero(), "HTLC: zero amount")?;
        let id = order_id(self.ledger.chain_id, here, initiator, terms);
        let [_, _, exists, ..] = self.order(here, id);
        require(exists == Felt::ZERO, "HTLC: duplicate order")?;
        let base = storage("orders", &[id]);
        for (place, felt) in (0..).zip([Felt::ZERO, initiator, redeemer, self.block.into(), timelock, low, high]) {
            self.write(here, after(base, place), felt);
        }
        self.emit(here, vec![selector("Initiated"), id], [hash, &[low, high]].concat());
        self.changes.push((id, Change::Initiated { amount: u128::try_from(amount).unwrap_or(u128::MAX) }));
        self.pay(token, "transfer_from", vec![payer, here, low, high])
    }

    fn open_order(&self, htlc: Felt, id: Felt) -> Result<[Felt; 7], String> {
        let order @ [ended, _, redeemer, ..] = self.order(htlc, id);
        require(redeemer != Felt::ZERO, "HTLC: order not initiated")?;
        require(ended == Felt::ZERO, "HTLC: order fulfilled")?;
        Ok(order)
    }

    fn redeem(&mut self, token: &Token, id: Felt, secret: &[Felt]) -> Result<(), String> {
        let here = token.htlc;
        require(secret.len() == 8, "HTLC: invalid length of secret")?;
        let [_, initiator, redeemer, _, timelock, low, high] = self.open_order(here, id)?;
        let secret_bytes = decoded(bytes(secret))?;
        let hash = words(&Sha256::digest(secret_bytes).into());
        // The id depends on the secret hash, so a wrong secret leads to another id.
        let terms = [&[redeemer, timelock, low, high], &hash[..]].concat();
        require(order_id(self.ledger.chain_id, here, initiator, &terms) == id, "HTLC: incorrect secret")?;
        self.write(here, storage("orders", &[id]), self.block.into());
        self.emit(here, vec![selector("Redeemed"), id], [&hash[..], &[Felt::from(8)], secret].concat());
        self.changes.push((id, Change::Redeemed { secret: secret_bytes }));
        self.pay(token, "transfer", vec![redeemer, low, high])
    }

    fn refund(&mut self, token: &Token, id: Felt, [_, initiator, .., low, high]: [Felt; 7]) -> Result<(), String> {
        self.write(token.htlc, storage("orders", &[id]), self.block.into());
        self.emit(token.htlc, vec![selector("Refunded"), id], Vec::new());
        self.changes.push((id, Change::Refunded));
        self.pay(token, "transfer", vec![initiator, low, high])
    }
}
