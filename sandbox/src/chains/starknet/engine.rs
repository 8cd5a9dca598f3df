//! Implements the engine trait, through which the sandbox uses the chain.

use alloy_primitives::U256;
use serde_json::{Map, Value, json};
use starknet_core::types::Call;
use starknet_crypto::Felt;

use super::contracts::{self, Token};
use super::felts::{account_of_key, halves, parse, selector, words};
use super::ledger::{At, INTERVAL, LAG};
use super::{Starknet, front};
use crate::accounts;
use crate::chains::engine::{Engine, Event, Leg, Listing, Terms};
use crate::chains::listing::{AssetRow, ChainRow};
use crate::http::{Reply, Request};

/// The timelocks of source and destination, in blocks.
const TIMELOCKS: [u64; 2] = [2_880, 1_440];

/// One side of an order with its addresses.
struct Swap {
    token: Felt,
    htlc: Felt,
    initiator: Felt,
    redeemer: Felt,
    id: Felt,
    /// The redeemer, timelock, amount and secret hash, as all forms of `initiate` take them.
    arguments: Vec<Felt>,
}

fn account(text: &str) -> Result<Felt, String> {
    parse(text).filter(|felt| *felt != Felt::ZERO).ok_or_else(|| format!("invalid Starknet address: {text}"))
}

/// Parses a decimal or hex number. Signatures use both.
fn number(text: &str) -> Option<Felt> {
    parse(text).or_else(|| parse(&format!("{:#x}", U256::from_str_radix(text, 10).ok()?)))
}

fn call(to: Felt, function: &str, calldata: Vec<Felt>) -> Call {
    Call { to, selector: selector(function), calldata }
}

impl Starknet {
    fn asset(&self, id: &str) -> Result<&Token, String> {
        let symbol = id.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_prefix(':'));
        let found = symbol.and_then(|symbol| self.ledger.tokens.iter().find(|token| token.symbol.to_lowercase() == symbol));
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
        let [low, high] = halves(U256::from(terms.amount));
        let arguments = [vec![redeemer, terms.timelock.into(), low, high], words(&terms.secret_hash)].concat();
        let id = contracts::order_id(self.ledger.chain_id, token.htlc, initiator, &arguments);
        Ok(Swap { token: token.address, htlc: token.htlc, initiator, redeemer, id, arguments })
    }

    /// Returns the key that acts for a party: the solver's own, or the relayer's for users.
    fn actor(is_solver: bool) -> [u8; 32] {
        accounts::key(if is_solver { accounts::SOLVER } else { accounts::RELAYER })
    }
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
        let assets = self.ledger.tokens.iter().map(|token| {
            AssetRow {
                chain: &self.name,
                network: json!(self.chain_id),
                symbol: &token.symbol.to_lowercase(),
                decimals: token.decimals,
                limits: ["1", "1000000000000000000000000"].map(str::to_owned),
                htlc: json!({"address": token.htlc.to_fixed_hex_string(), "schema": "starknet:htlc_erc20", "generation": "2025_11"}),
                token: json!({"address": token.address.to_fixed_hex_string(), "schema": "starknet:erc20"}),
            }
            .json()
        });
        Listing { chain, assets: assets.collect(), solver: self.address_of(&accounts::key(accounts::SOLVER)) }
    }

    fn address_of(&self, key: &[u8; 32]) -> String {
        account_of_key(key).to_fixed_hex_string()
    }

    fn fund(&mut self, text: &str, asset: &str, amount: u128) -> Result<(), String> {
        let (to, token) = (account(text)?, self.asset(asset)?.address);
        self.ledger.change(Some(self.clock.seconds()), |view| view.credit(token, to, U256::from(amount)))
    }

    fn stop(&mut self, asset: &str, text: Option<&str>) -> Result<(), String> {
        let (token, owner) = (self.asset(asset)?.address, text.map(account).transpose()?);
        self.ledger.change(Some(self.clock.seconds()), |view| {
            view.stop(token, owner);
            Ok(())
        })
    }

    fn balance(&self, text: &str, asset: &str) -> Result<u128, String> {
        let (owner, token) = (account(text)?, self.asset(asset)?.address);
        let balance = self.ledger.view(At::Height(self.ledger.head)).balance(token, owner);
        Ok(u128::try_from(balance).unwrap_or(u128::MAX))
    }

    fn leg(&self, terms: &Terms) -> Result<Leg, String> {
        let Swap { id, initiator, redeemer, .. } = self.swap(terms)?;
        Ok(Leg {
            swap_id: format!("{id:x}"),
            initiator: initiator.to_fixed_hex_string(),
            redeemer: redeemer.to_fixed_hex_string(),
            delegate: None,
        })
    }

    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        let swap = self.swap(terms)?;
        let delegate = terms.delegate.as_deref().filter(|text| !text.is_empty()).map(account).transpose()?;
        let payer = delegate.unwrap_or(swap.initiator);
        let allowed = self.ledger.view(At::Pending).allowance(swap.token, payer, swap.htlc);
        // The approval has exactly the amount. An unlimited approval would be a warning that `--yes` does not accept.
        let [low, high] = halves(U256::from(terms.amount));
        let approval = (allowed < U256::from(terms.amount)).then(|| call(swap.token, "approve", vec![swap.htlc, low, high]));
        let (initiate, typed_data) = match delegate {
            None => {
                let typed_data = contracts::initiate_data(self.ledger.chain_id, swap.htlc, &swap.arguments);
                (call(swap.htlc, "initiate", swap.arguments), typed_data)
            }
            Some(_) => (call(swap.htlc, "initiate_on_behalf", [vec![swap.initiator], swap.arguments].concat()), None),
        };
        let (approval, initiate, typed_data) = (json!(approval), json!(initiate), json!(typed_data));
        let members = [("approval_transaction", approval), ("initiate_transaction", initiate), ("typed_data", typed_data)];
        Ok(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn initiate(&mut self, terms: &Terms, signature: &str) -> Result<String, String> {
        let swap = self.swap(terms)?;
        let felts = signature.split(',').map(|felt| number(felt.trim())).collect::<Option<Vec<_>>>().ok_or("invalid signature")?;
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
            // The sandbox does not have this user's key.
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
        for entry in self.ledger.bodies.get(&height).iter().flat_map(|body| &body.entries) {
            let events = entry.outcome.changes.iter().map(|(id, change)| Event {
                swap_id: format!("{id:x}"),
                transaction: entry.hash.to_hex_string(),
                height,
                change: change.clone(),
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

    /// The listed timelocks date from when blocks took half a minute.
    fn pinned_interval(&self) -> Option<u64> {
        Some(30_000)
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        let now = self.clock.seconds();
        front::answer(&mut self.ledger, now, request)
    }
}
