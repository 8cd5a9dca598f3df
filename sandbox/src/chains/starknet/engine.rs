//! What the sandbox asks of the chain.

use alloy_primitives::U256;
use serde_json::{Map, Value, json};
use starknet_crypto::Felt;

use super::felts::{account_of_key, halves, hex, padded, parse, parse_any, selector, words};
use super::ledger::{At, INTERVAL, Input, LAG};
use super::machine::{self, Token};
use super::{Call, Starknet, front, htlc, invoke};
use crate::accounts;
use crate::chains::listing::{AssetRow, ChainRow};
use crate::chains::{Change, Engine, Event, Leg, Listing, Terms};
use crate::http::{Reply, Request};

/// Blocks of the timelocks.
const TIMELOCKS: [u64; 2] = [2_880, 1_440];

/// A leg with its addresses.
struct Swap {
    token: Felt,
    htlc: Felt,
    initiator: Felt,
    redeemer: Felt,
    id: Felt,
    /// Redeemer, timelock, amount and secret hash, as all forms of `initiate` take them.
    arguments: Vec<Felt>,
}

fn account(text: &str) -> Result<Felt, String> {
    parse(text).filter(|felt| *felt != Felt::ZERO).ok_or_else(|| format!("invalid Starknet address: {text}"))
}

fn call(to: Felt, function: &'static str, calldata: Vec<Felt>) -> Call {
    Call { to, function, calldata }
}

fn shown(to: Felt, function: &str, calldata: &[Felt]) -> Value {
    json!({"to": hex(to), "selector": hex(selector(function)), "calldata": invoke::hexes(calldata)})
}

impl Starknet {
    fn asset(&self, id: &str) -> Result<&Token, String> {
        let symbol = id.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_prefix(':'));
        let found = symbol.and_then(|symbol| self.ledger.world.tokens.iter().find(|token| token.symbol.to_lowercase() == symbol));
        found.ok_or_else(|| format!("unknown asset: {id}"))
    }

    fn swap(&self, terms: &Terms) -> Result<Swap, String> {
        let token = self.asset(&terms.asset)?;
        let (owner, solver) = (account(&terms.owner)?, account_of_key(&accounts::key(accounts::SOLVER)));
        let [initiator, redeemer] = if terms.is_source { [owner, solver] } else { [solver, owner] };
        if initiator == redeemer {
            return Err("the owner is the solver".to_owned());
        }
        if terms.amount == 0 || terms.timelock == 0 {
            return Err("amount and timelock must not be zero".to_owned());
        }
        let (amount, timelock) = (U256::from(terms.amount), u128::from(terms.timelock));
        let chain_id = self.ledger.world.chain_id;
        let id = htlc::order_id(chain_id, &terms.secret_hash, [initiator, redeemer], timelock, amount, token.htlc);
        let mut arguments = vec![redeemer, Felt::from(terms.timelock)];
        arguments.extend(halves(amount));
        arguments.extend(words(&terms.secret_hash));
        Ok(Swap { token: token.address, htlc: token.htlc, initiator, redeemer, id, arguments })
    }

    fn allowance(&self, token: Felt, owner: Felt, spender: Felt) -> U256 {
        let answer = self.ledger.call(At::Pending, token, selector("allowance"), &[owner, spender]);
        answer.ok().and_then(|frame| super::felts::join(*frame.result.first()?, *frame.result.get(1)?)).unwrap_or_default()
    }

    /// The typed data of a gasless initiation, as the service spells it.
    fn typed_data(&self, swap: &Swap, terms: &Terms) -> Value {
        let members = |members: &[(&str, &str)]| members.iter().map(|(name, kind)| json!({"name": name, "type": kind})).collect::<Value>();
        let [low, high] = halves(U256::from(terms.amount));
        let words: Vec<_> = terms.secret_hash.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap_or_default())).collect();
        json!({
            "domain": {"chainId": hex(self.ledger.world.chain_id), "name": "HTLC", "revision": 1, "version": "0x31"},
            "message": {
                "amount": {"high": hex(high), "low": hex(low)}, "redeemer": swap.redeemer.to_string(), "secretHash": words,
                "timelock": terms.timelock.to_string(), "verifyingContract": hex(swap.htlc),
            },
            "primaryType": "Initiate",
            "types": {
                "Initiate": members(&[
                    ("redeemer", "ContractAddress"), ("amount", "u256"), ("timelock", "u128"), ("secretHash", "u128*"),
                    ("verifyingContract", "ContractAddress"),
                ]),
                "StarknetDomain": members(&[
                    ("name", "shortstring"), ("version", "shortstring"), ("chainId", "shortstring"), ("revision", "shortstring"),
                ]),
            },
        })
    }

    /// The key of whoever acts for a party: the solver for itself, the relayer for users.
    fn actor(is_solver: bool) -> [u8; 32] {
        accounts::key(if is_solver { accounts::SOLVER } else { accounts::RELAYER })
    }
}

/// Reads an event of the HTLC.
fn change(event: &machine::Event) -> Option<(Felt, Change)> {
    let (name, id) = (*event.keys.first()?, *event.keys.get(1)?);
    let is = |known: &str| name == selector(known);
    let change = if is("Initiated") || is("InitiatedWithDestinationData") {
        let amount = super::felts::join(*event.data.get(8)?, *event.data.get(9)?)?;
        Change::Initiated { amount: u128::try_from(amount).unwrap_or(u128::MAX) }
    } else if is("Redeemed") {
        let mut secret = [0; 32];
        for (to, word) in secret.chunks_exact_mut(4).zip(event.data.get(9..17)?) {
            to.copy_from_slice(&u32::try_from(*word).ok()?.to_be_bytes());
        }
        Change::Redeemed { secret }
    } else if is("Refunded") {
        Change::Refunded
    } else {
        return None;
    };
    Some((id, change))
}

impl Engine for Starknet {
    fn listing(&self) -> Listing {
        let chain = ChainRow {
            chain: &self.name,
            id: format!("starknet:{}", self.chain_id),
            title: "Starknet (model)".to_owned(),
            coin: "strk",
            timelocks: TIMELOCKS,
            htlcs: json!(["starknet:htlc_erc20"]),
            tokens: json!(["starknet:erc20"]),
        }
        .json();
        let assets = self.ledger.world.tokens.iter().map(|token| {
            AssetRow {
                chain: &self.name,
                network: json!(self.chain_id),
                symbol: &token.symbol.to_lowercase(),
                decimals: token.decimals,
                limits: ["1", "1000000000000000000000000"].map(str::to_owned),
                htlc: json!({"address": padded(token.htlc), "schema": "starknet:htlc_erc20", "generation": "2025_11"}),
                token: json!({"address": padded(token.address), "schema": "starknet:erc20"}),
            }
            .json()
        });
        Listing { chain, assets: assets.collect(), solver: self.address_of(&accounts::key(accounts::SOLVER)) }
    }

    fn address_of(&self, key: &[u8; 32]) -> String {
        padded(account_of_key(key))
    }

    fn fund(&mut self, text: &str, asset: &str, amount: u128) -> Result<(), String> {
        let (to, token) = (account(text)?, self.asset(asset)?.address);
        self.ledger.mint(token, to, U256::from(amount), self.clock.seconds())
    }

    fn stop(&mut self, asset: &str, text: Option<&str>) -> Result<(), String> {
        let (token, owner) = (self.asset(asset)?.address, text.map(account).transpose()?);
        self.ledger.stop(token, owner, self.clock.seconds());
        Ok(())
    }

    fn balance(&self, text: &str, asset: &str) -> Result<u128, String> {
        let (owner, token) = (account(text)?, self.asset(asset)?.address);
        let balance = self.ledger.on(At::Height(self.ledger.head), |machine| machine.balance(token, owner));
        Ok(u128::try_from(balance).unwrap_or(u128::MAX))
    }

    fn leg(&self, terms: &Terms) -> Result<Leg, String> {
        let Swap { id, initiator, redeemer, .. } = self.swap(terms)?;
        Ok(Leg { swap_id: format!("{id:x}"), initiator: padded(initiator), redeemer: padded(redeemer), delegate: None })
    }

    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        let swap = self.swap(terms)?;
        let delegate = terms.delegate.as_deref().filter(|text| !text.is_empty()).map(account).transpose()?;
        let payer = delegate.unwrap_or(swap.initiator);
        let is_approved = self.allowance(swap.token, payer, swap.htlc) >= U256::from(terms.amount);
        // Exactly the amount: an unlimited approval is a warning that `--yes` does not pass.
        let [low, high] = halves(U256::from(terms.amount));
        let approval = if is_approved { Value::Null } else { shown(swap.token, "approve", &[swap.htlc, low, high]) };
        let (initiate, typed_data) = match delegate {
            None => (shown(swap.htlc, "initiate", &swap.arguments), self.typed_data(&swap, terms)),
            Some(_) => (shown(swap.htlc, "initiate_on_behalf", &[vec![swap.initiator], swap.arguments].concat()), Value::Null),
        };
        let members = [("approval_transaction", approval), ("initiate_transaction", initiate), ("typed_data", typed_data)];
        Ok(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn initiate(&mut self, terms: &Terms, signature: &str) -> Result<String, String> {
        let swap = self.swap(terms)?;
        let felts = signature.split(',').map(|felt| parse_any(felt.trim())).collect::<Option<Vec<_>>>().ok_or("invalid signature")?;
        let calldata = [vec![swap.initiator], swap.arguments, vec![Felt::from(felts.len())], felts].concat();
        self.submit(&Self::actor(false), &[call(swap.htlc, "initiate_with_signature", calldata)])
    }

    fn lock(&mut self, terms: &Terms) -> Result<String, String> {
        let swap = self.swap(terms)?;
        let amount = [vec![swap.htlc], halves(U256::from(terms.amount)).to_vec()].concat();
        let approve = call(swap.token, "approve", amount);
        let user = accounts::key(accounts::USER);
        let (key, initiate) = if !terms.is_source {
            (Self::actor(true), call(swap.htlc, "initiate", swap.arguments))
        } else if swap.initiator == account_of_key(&user) {
            (user, call(swap.htlc, "initiate", swap.arguments))
        } else {
            // A user whose key nobody has here.
            (Self::actor(false), call(swap.htlc, "initiate_on_behalf", [vec![swap.initiator], swap.arguments].concat()))
        };
        self.submit(&key, &[approve, initiate])
    }

    fn redeem(&mut self, terms: &Terms, secret: &[u8; 32]) -> Result<String, String> {
        let swap = self.swap(terms)?;
        let calldata = [vec![swap.id, Felt::from(8)], words(secret)].concat();
        self.submit(&Self::actor(terms.is_source), &[call(swap.htlc, "redeem", calldata)])
    }

    fn refund(&mut self, terms: &Terms) -> Result<String, String> {
        let swap = self.swap(terms)?;
        self.submit(&Self::actor(!terms.is_source), &[call(swap.htlc, "refund", vec![swap.id])])
    }

    fn mine(&mut self, blocks: u64) {
        if blocks == 0 {
            return;
        }
        let height = self.ledger.head.saturating_add(1);
        self.ledger.mine(blocks, self.clock.seconds());
        let entries = self.ledger.bodies.get(&height).map_or(&[][..], |body| body.entries.as_slice());
        for entry in entries.iter().filter(|entry| matches!(entry.input, Input::Invoke(_))) {
            let of_htlcs = entry.events.iter().filter(|event| self.ledger.world.token_of(event.from).is_some());
            let transaction = || hex(entry.hash);
            let events = of_htlcs.filter_map(change).map(|(id, change)| Event {
                swap_id: format!("{id:x}"),
                transaction: transaction(),
                height,
                change,
            });
            self.events.extend(events);
        }
    }

    fn reorganize(&mut self, depth: u64) -> Result<(), String> {
        self.ledger.take_back(depth)?;
        self.events.retain(|event| event.height <= self.ledger.head);
        Ok(())
    }

    fn height(&self) -> u64 {
        self.ledger.head
    }

    fn pending(&self) -> usize {
        self.ledger.pending.len()
    }

    fn depth(&self) -> u64 {
        LAG
    }

    fn interval(&self) -> u64 {
        INTERVAL
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        let now = self.clock.seconds();
        front::answer(&mut self.ledger, now, request)
    }
}
