//! Implements the engine trait, through which the sandbox uses the chain.

use alloy_primitives::U256;
use bech32::{Bech32, Hrp};
use countersign_chains::swap_id::{self, SwapIdInput};
use serde_json::{Map, Value, json};
use sui_crypto::SuiSigner as _;
use sui_sdk_types::bcs::ToBcs as _;
use sui_sdk_types::{
    Address, Argument, Command, ExecutionStatus, Identifier, Input, MoveCall, ProgrammableTransaction, SharedInput, SignedTransaction,
    SplitCoins, StructTag, TransactionKind,
};

use super::ledger::{CLOCK, coins};
use super::{Sui, account, funds, htlc, messages, private};
use crate::accounts::{self, RELAYER, SOLVER};
use crate::chains::engine::{Engine, Event, Leg, Listing, Terms};
use crate::chains::listing::{AssetRow, ChainRow};
use crate::http::{Reply, Request};

/// Milliseconds between checkpoints.
const INTERVAL: u64 = 250;

fn pure(value: &[u8]) -> Input {
    Input::Pure(value.to_vec())
}

fn vector(value: &[u8]) -> Input {
    Input::Pure(value.to_vec().to_bcs().unwrap_or_default())
}

fn clock() -> Input {
    Input::Shared(SharedInput::new(CLOCK, 1, false))
}

impl Sui {
    /// Refuses every asset except SUI.
    fn check_asset(&self, asset: &str) -> Result<(), String> {
        if *asset == format!("{}:sui", self.network.chain) { Ok(()) } else { Err(format!("unknown asset: {asset}")) }
    }

    /// Returns the id, initiator, redeemer and amount of one side.
    fn swap(&self, terms: &Terms) -> Result<([u8; 32], Address, Address, u64), String> {
        self.check_asset(&terms.asset)?;
        if terms.delegate.is_some() {
            return Err("a delegate is only for Bitcoin".to_owned());
        }
        let (owner, solver) = (parsed(&terms.owner)?, account(&accounts::key(SOLVER)));
        let (from, to) = if terms.is_source { (owner, solver) } else { (solver, owner) };
        let amount = u64::try_from(terms.amount).map_err(|_| "the amount exceeds 64 bits".to_owned())?;
        let (initiator, redeemer, timelock) = (from.inner(), to.inner(), terms.timelock);
        let input = SwapIdInput { secret_hash: &terms.secret_hash, initiator, redeemer, timelock, amount: U256::from(amount) };
        let id = swap_id::sui(&input, self.registry.0.as_ref()).ok_or_else(|| "the amount exceeds 64 bits".to_owned())?;
        Ok((id, from, to, amount))
    }

    fn shared(&self) -> Input {
        Input::Shared(SharedInput::new(self.registry.0, self.registry.1, true))
    }

    fn function(&self, name: &'static str, arguments: Vec<Argument>) -> Command {
        let (package, function) = (self.package, Identifier::from_static(name));
        Command::MoveCall(MoveCall { package, module: htlc::MODULE, function, type_arguments: vec![StructTag::sui().into()], arguments })
    }

    /// Returns the program that locks one side, in the service's layout.
    fn initiation(&self, terms: &Terms) -> Result<ProgrammableTransaction, String> {
        let (_, initiator, redeemer, amount) = self.swap(terms)?;
        let inputs = vec![
            pure(&amount.to_le_bytes()),
            self.shared(),
            pure(initiator.as_ref()),
            pure(redeemer.as_ref()),
            vector(&terms.secret_hash),
            pure(&U256::from(terms.timelock).to_le_bytes::<32>()),
            vector(&[]),
            clock(),
        ];
        let split = SplitCoins { coin: Argument::Gas, amounts: vec![Argument::Input(0)] };
        let arguments = [1, 2, 3, 4, 0, 5, 6].map(Argument::Input).into_iter();
        let arguments = arguments.chain([Argument::Result(0), Argument::Input(7)]).collect();
        Ok(ProgrammableTransaction { inputs, commands: vec![Command::SplitCoins(split), self.function("initiate", arguments)] })
    }

    /// Redeems or refunds one side.
    fn end(&mut self, terms: &Terms, is_redemption: bool, function: &'static str, last: Input) -> Result<String, String> {
        let inputs = vec![self.shared(), vector(&self.swap(terms)?.0), last];
        let commands = vec![self.function(function, (0..3).map(Argument::Input).collect())];
        let role = if terms.is_source == is_redemption { SOLVER } else { RELAYER };
        self.send(role, ProgrammableTransaction { inputs, commands })
    }

    /// Sends a transaction if it would succeed. All coins of its sender can pay for it.
    fn send(&mut self, role: &str, program: ProgrammableTransaction) -> Result<String, String> {
        let (key, transaction) = (private(&accounts::key(role)), self.paid(account(&accounts::key(role)), program));
        if let ExecutionStatus::Failure { error, command } = self.simulated(transaction.clone())?.effects.status() {
            return Err(messages::reason(error, *command));
        }
        let signature = key.sign_transaction(&transaction).map_err(|error| error.to_string())?;
        self.submit(&SignedTransaction { transaction, signatures: vec![signature] }).map(|executed| executed.digest.to_base58())
    }
}

fn parsed(text: &str) -> Result<Address, String> {
    countersign_chains::address::parse_sui(text).map(Address::new).map_err(|error| format!("{text}: {error}"))
}

impl Engine for Sui {
    fn listing(&self) -> Listing {
        let chain = &self.network.chain;
        let title = if self.network.id == "mainnet" { "Sui (model)".to_owned() } else { format!("Sui {} (model)", self.network.id) };
        let row = ChainRow {
            chain,
            id: format!("sui:{}", self.network.id),
            title,
            coin: "sui",
            timelocks: [86_400_000, 7_200_000],
            htlcs: json!(["sui:htlc"]),
            tokens: json!([]),
        }
        .json();
        let (registry, version) = (self.registry.0.to_string(), self.registry.1.to_string());
        let asset = AssetRow {
            chain,
            network: json!(self.network.id),
            symbol: "sui",
            decimals: 9,
            limits: ["1".to_owned(), u64::MAX.to_string()],
            htlc: json!({
                "address": self.package.to_string(), "schema": "sui:htlc", "registry": registry, "registry_initial_shared_version": version,
            }),
            token: Value::Null,
        }
        .json();
        Listing { chain: row, assets: vec![asset], solver: account(&accounts::key(SOLVER)).to_string() }
    }

    fn address_of(&self, key: &[u8; 32]) -> String {
        account(key).to_string()
    }

    fn key_text(&self, key: &[u8; 32]) -> Option<String> {
        // The flag for Ed25519 comes first.
        bech32::encode::<Bech32>(Hrp::parse("suiprivkey").ok()?, &[&[0], key.as_slice()].concat()).ok()
    }

    fn fund(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String> {
        let amount = u64::try_from(amount).map_err(|_| "the amount exceeds 64 bits".to_owned())?;
        self.check_asset(asset)?;
        self.ledger.mint(parsed(account)?, amount);
        Ok(())
    }

    fn fund_balance(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String> {
        let amount = u64::try_from(amount).map_err(|_| "the amount exceeds 64 bits".to_owned())?;
        self.check_asset(asset)?;
        self.ledger.gather(parsed(account)?, amount);
        Ok(())
    }

    fn balance(&self, account: &str, asset: &str) -> Result<u128, String> {
        self.check_asset(asset)?;
        let account = parsed(account)?;
        let in_balance = funds::balance(&self.ledger.seen, account).into();
        Ok(coins(&self.ledger.seen, account).fold(in_balance, |sum: u128, (_, balance)| sum.saturating_add(balance.into())))
    }

    fn leg(&self, terms: &Terms) -> Result<Leg, String> {
        let (id, initiator, redeemer, _) = self.swap(terms)?;
        Ok(Leg { swap_id: hex::encode(id), initiator: initiator.to_string(), redeemer: redeemer.to_string(), delegate: None })
    }

    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        let kind = TransactionKind::ProgrammableTransaction(self.initiation(terms)?);
        let bytes = kind.to_bcs().map_err(|error| error.to_string())?;
        Ok(Map::from_iter([("ptb_bytes".to_owned(), bytes.into())]))
    }

    fn initiate(&mut self, _terms: &Terms, _signature: &str) -> Result<String, String> {
        Err("this chain has no gasless initiation".to_owned())
    }

    fn lock(&mut self, terms: &Terms) -> Result<String, String> {
        // The contract does not let the redeemer pay, and on a source the redeemer is the solver.
        let program = self.initiation(terms)?;
        self.send(if terms.is_source { RELAYER } else { SOLVER }, program)
    }

    fn redeem(&mut self, terms: &Terms, secret: &[u8; 32]) -> Result<String, String> {
        self.end(terms, true, "redeem", vector(secret))
    }

    fn refund(&mut self, terms: &Terms) -> Result<String, String> {
        self.end(terms, false, "refund", clock())
    }

    fn mine(&mut self, blocks: u64) {
        self.ledger.mine(blocks, self.clock.millis());
    }

    fn height(&self) -> u64 {
        self.ledger.newest.sequence_number
    }

    fn pending(&self) -> usize {
        self.ledger.pending.len()
    }

    fn depth(&self) -> u64 {
        0
    }

    fn interval(&self) -> u64 {
        INTERVAL
    }

    /// Timelocks are in milliseconds.
    fn pinned_interval(&self) -> Option<u64> {
        None
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.ledger.events)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        self.respond(request)
    }
}
