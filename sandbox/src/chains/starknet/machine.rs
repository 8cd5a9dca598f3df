//! Runs calls of contracts, as a state machine over true storage addresses.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use alloy_primitives::U256;
use starknet_crypto::Felt;

pub(super) use super::felts::ACCOUNT_CLASS;
use super::felts::{after, halves, hex, is_signed, join, selector, short};

/// The class of the HTLC: the hash of the compiled contract whose interface the front shows.
pub(super) const HTLC_CLASS: Felt = Felt::from_hex_unchecked("0x5e20dcfacd356c6ba4fe1d2ce5e55dc54fd5cccda2af24a3e47e4efd5d0f71e");
/// The class of the tokens. It has no code, so this is a number and not a hash.
pub(super) const TOKEN_CLASS: Felt = Felt::from_hex_unchecked("0x6d6f64656c206f662061207469746f6b656e");
/// The token in which fees are paid.
pub(super) const STRK: Felt = Felt::from_hex_unchecked("0x4718f5a0fc34cc1af16a1cdee98ffb20c31f5cd61d6ab07201858f4287c938d");
/// Where the nonce and the class of an account are kept. Storage addresses are below 2^251, so neither can be read as storage.
pub(super) const NONCE: Felt = Felt::MAX;
pub(super) const CLASS: Felt = Felt::from_hex_unchecked("0x800000000000010ffffffffffffffffffffffffffffffffffffffffffffffff");

/// A contract and an address in its storage.
pub(super) type Slot = (Felt, Felt);

/// The functions by their selectors.
static NAMES: LazyLock<BTreeMap<Felt, &'static str>> = LazyLock::new(|| {
    let token = ["name", "symbol", "decimals", "total_supply", "totalSupply", "balance_of", "balanceOf", "allowance"];
    let moves = ["approve", "transfer", "transfer_from", "transferFrom", "token", "get_order", "redeem", "refund", "instant_refund"];
    let opens = ["initiate", "initiate_on_behalf", "initiate_with_signature", "initiate_with_destination_data"];
    let rest = ["initiate_on_behalf_with_destination_data", "is_valid_signature", "isValidSignature", "is_paused", "is_frozen"];
    token.iter().chain(&moves).chain(&opens).chain(&rest).map(|name| (selector(name), *name)).collect()
});

/// A token.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) address: Felt,
    pub(super) symbol: &'static str,
    pub(super) decimals: u8,
    /// The HTLC that takes it.
    pub(super) htlc: Felt,
}

/// What exists from the beginning.
#[derive(Debug)]
pub(super) struct World {
    pub(super) chain_id: Felt,
    pub(super) tokens: Vec<Token>,
}

impl World {
    pub(super) fn token(&self, address: Felt) -> Option<&Token> {
        self.tokens.iter().find(|token| token.address == address)
    }

    /// Returns the token of an HTLC.
    pub(super) fn token_of(&self, htlc: Felt) -> Option<&Token> {
        self.tokens.iter().find(|token| token.htlc == htlc)
    }
}

/// An event, and its place among those of the transaction.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) order: usize,
    pub(super) from: Felt,
    pub(super) keys: Vec<Felt>,
    pub(super) data: Vec<Felt>,
}

/// A call that has been made, with those that it made.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) contract: Felt,
    pub(super) class: Felt,
    pub(super) selector: Felt,
    pub(super) caller: Felt,
    pub(super) calldata: Vec<Felt>,
    pub(super) result: Vec<Felt>,
    pub(super) events: Vec<Event>,
    pub(super) calls: Vec<Self>,
}

impl Frame {
    /// Collects the events of this call and of all below it.
    pub(super) fn all_events(&self) -> Vec<Event> {
        let mut events = self.events.clone();
        events.extend(self.calls.iter().flat_map(Self::all_events));
        events.sort_by_key(|event| event.order);
        events
    }

    pub(super) fn count(&self) -> u64 {
        self.calls.iter().fold(1, |count: u64, call| count.saturating_add(call.count()))
    }
}

/// Why a call fails.
#[derive(Debug)]
pub(super) enum Why {
    NoContract,
    NoFunction,
    /// The contract's own words, as nodes print them.
    Panic(String),
}

/// A call that has failed: contract, class and selector of each call on the way, the innermost first.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) why: Why,
    pub(super) path: Vec<[Felt; 3]>,
}

impl From<Why> for Failure {
    fn from(why: Why) -> Self {
        Self { why, path: Vec::new() }
    }
}

impl Failure {
    /// A failure in a call itself.
    pub(super) fn panic(text: &str, frame: &Frame) -> Self {
        Self { why: panic(text), path: vec![[frame.contract, frame.class, frame.selector]] }
    }

    /// The whole trace, as receipts and simulations have it.
    pub(super) fn trace(&self) -> String {
        let names = |[contract, class, selector]: &[Felt; 3]| {
            format!("(contract address: {}, class hash: {}, selector: {})", hex(*contract), hex(*class), hex(*selector))
        };
        let mut calls = self.path.iter().rev();
        let first = calls.next().map(names).unwrap_or_default();
        let inner: String = calls.map(|call| format!("Error in contract {}:\n", names(call))).collect();
        let reason = self.reason();
        format!(
            "Transaction execution has failed:\n0: Error in the called contract {first}:\nExecution failed. Failure reason:\n{inner}{reason}.\n"
        )
    }

    /// The last line of a trace.
    pub(super) fn reason(&self) -> String {
        match &self.why {
            Why::NoContract => "Requested contract address is not deployed.".to_owned(),
            Why::NoFunction => felt_text("ENTRYPOINT_NOT_FOUND"),
            Why::Panic(text) => text.clone(),
        }
    }
}

/// Panic data that is one number.
fn felt_text(text: &str) -> String {
    format!("{} ('{text}')", hex(short(text)))
}

pub(super) fn panic(text: &str) -> Why {
    Why::Panic(felt_text(text))
}

/// Requires something, with the message that the HTLC's assertion has.
pub(super) fn require(holds: bool, text: &str) -> Result<(), Why> {
    if holds { Ok(()) } else { Err(Why::Panic(format!("\"{text}\""))) }
}

/// Arguments that are still to be read.
pub(super) struct Arguments<'a>(pub(super) &'a [Felt]);

impl<'a> Arguments<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [Felt], Why> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| panic("Failed to deserialize param"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn felt(&mut self) -> Result<Felt, Why> {
        self.take(1)?.first().copied().ok_or_else(|| panic("Failed to deserialize param"))
    }

    pub(super) fn u128(&mut self) -> Result<u128, Why> {
        u128::try_from(self.felt()?).map_err(|_| panic("Failed to deserialize param"))
    }

    pub(super) fn u256(&mut self) -> Result<U256, Why> {
        let (low, high) = (self.felt()?, self.felt()?);
        join(low, high).ok_or_else(|| panic("Failed to deserialize param"))
    }

    /// Eight words of 32 bits.
    pub(super) fn hash(&mut self) -> Result<[u8; 32], Why> {
        let mut bytes = [0; 32];
        for (to, word) in bytes.chunks_exact_mut(4).zip(self.take(8)?) {
            let word = u32::try_from(*word).map_err(|_| panic("Failed to deserialize param"))?;
            to.copy_from_slice(&word.to_be_bytes());
        }
        Ok(bytes)
    }

    pub(super) fn array(&mut self) -> Result<&'a [Felt], Why> {
        let length = usize::try_from(self.felt()?).map_err(|_| panic("Failed to deserialize param"))?;
        self.take(length)
    }

    pub(super) fn end(&self) -> Result<(), Why> {
        if self.0.is_empty() { Ok(()) } else { Err(panic("Input too long for arguments")) }
    }
}

/// Runs calls at a block, and keeps what they write.
pub(super) struct Machine<'a> {
    pub(super) world: &'a World,
    pub(super) base: &'a dyn Fn(&Slot) -> Felt,
    pub(super) writes: BTreeMap<Slot, Felt>,
    pub(super) block: u64,
    pub(super) events: usize,
}

impl Machine<'_> {
    pub(super) fn read(&self, contract: Felt, key: Felt) -> Felt {
        let slot = (contract, key);
        self.writes.get(&slot).copied().unwrap_or_else(|| (self.base)(&slot))
    }

    pub(super) fn write(&mut self, contract: Felt, key: Felt, value: Felt) {
        self.writes.insert((contract, key), value);
    }

    pub(super) fn number(&self, contract: Felt, key: Felt) -> U256 {
        join(self.read(contract, key), self.read(contract, after(key, 1))).unwrap_or_default()
    }

    pub(super) fn set_number(&mut self, contract: Felt, key: Felt, number: U256) {
        for (place, half) in (0..).zip(halves(number)) {
            self.write(contract, after(key, place), half);
        }
    }

    /// Returns the class of a contract; zero if there is none. An account exists as soon as it has had tokens.
    pub(super) fn class_of(&self, contract: Felt) -> Felt {
        match self.world {
            world if world.token(contract).is_some() => TOKEN_CLASS,
            world if world.token_of(contract).is_some() => HTLC_CLASS,
            _ => self.read(contract, CLASS),
        }
    }

    /// Calls a contract.
    pub(super) fn call(&mut self, caller: Felt, contract: Felt, selector: Felt, calldata: &[Felt]) -> Result<Frame, Failure> {
        let class = self.class_of(contract);
        let mut frame = Frame { contract, class, selector, caller, calldata: calldata.to_vec(), ..Frame::default() };
        match self.run(&mut frame, Arguments(calldata)) {
            Ok(result) => {
                frame.result = result;
                Ok(frame)
            }
            Err(mut failure) => {
                failure.path.push([contract, class, selector]);
                Err(failure)
            }
        }
    }

    fn run(&mut self, frame: &mut Frame, arguments: Arguments<'_>) -> Result<Vec<Felt>, Failure> {
        let world = self.world;
        let name = NAMES.get(&frame.selector).copied();
        match (world.token(frame.contract), world.token_of(frame.contract)) {
            (Some(token), _) => Ok(self.token(token, frame, name.ok_or(Why::NoFunction)?, arguments)?),
            (_, Some(token)) => self.htlc(token.address, frame, name.ok_or(Why::NoFunction)?, arguments),
            _ if frame.class == ACCOUNT_CLASS => Ok(account(frame.contract, name, arguments)?),
            _ => Err(Why::NoContract.into()),
        }
    }

    pub(super) fn emit(&mut self, frame: &mut Frame, keys: Vec<Felt>, data: Vec<Felt>) {
        frame.events.push(Event { order: self.events, from: frame.contract, keys, data });
        self.events = self.events.saturating_add(1);
    }
}

/// What accounts can be asked.
fn account(account: Felt, name: Option<&str>, mut arguments: Arguments<'_>) -> Result<Vec<Felt>, Why> {
    if !matches!(name, Some("is_valid_signature" | "isValidSignature")) {
        return Err(Why::NoFunction);
    }
    let (hash, signature) = (arguments.felt()?, arguments.array()?);
    arguments.end()?;
    Ok(vec![if is_signed(account, hash, signature) { short("VALID") } else { Felt::ZERO }])
}
