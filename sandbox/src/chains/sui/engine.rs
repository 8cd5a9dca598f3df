//! The chain as the sandbox drives it.

use alloy_primitives::U256;
use countersign_chains::swap_id::SwapIdInput;
use serde_json::{Map, Value, json};
use sui_crypto::SuiSigner as _;
use sui_sdk_types::bcs::ToBcs as _;
use sui_sdk_types::{
    Address, Argument, Command, ExecutionStatus, GasPayment, Identifier, Input, MoveCall, ProgrammableTransaction, SharedInput,
    SignedTransaction, SplitCoins, StructTag, Transaction, TransactionExpiration, TransactionKind, TypeTag,
};

use super::ledger::{CLOCK, GAS_PRICE};
use super::{Sui, account, htlc, messages, private, resolve};
use crate::accounts::{self, RELAYER, SOLVER};
use crate::chains::listing::{AssetRow, ChainRow};
use crate::chains::{Engine, Event, Leg, Listing, Terms};
use crate::http::{Reply, Request};

/// Milliseconds between checkpoints.
const INTERVAL: u64 = 250;
/// The budget of the sandbox's own transactions, in MIST. What is not spent comes back.
const BUDGET: u64 = 1_000_000_000;

/// A leg, with its words as values.
struct Swap {
    id: [u8; 32],
    initiator: Address,
    redeemer: Address,
    amount: u64,
}

fn pure(value: &[u8]) -> Input {
    Input::Pure(value.to_vec())
}

fn vector(value: &[u8]) -> Input {
    Input::Pure(value.to_vec().to_bcs().unwrap_or_default())
}

/// Arguments that are the inputs, in their order.
fn inputs(count: u16) -> Vec<Argument> {
    (0..count).map(Argument::Input).collect()
}

impl Sui {
    fn asset_id(&self) -> String {
        format!("{}:sui", self.network.chain)
    }

    /// The coin type of an asset.
    fn coin_type(&self, asset: &str) -> Result<TypeTag, String> {
        if asset == self.asset_id() { Ok(StructTag::sui().into()) } else { Err(format!("unknown asset: {asset}")) }
    }

    fn swap(&self, terms: &Terms) -> Result<Swap, String> {
        self.coin_type(&terms.asset)?;
        if terms.delegate.is_some() {
            return Err("a delegate is only for Bitcoin".to_owned());
        }
        let owner = parsed(&terms.owner)?;
        let solver = account(&accounts::key(SOLVER));
        let (initiator, redeemer) = if terms.is_source { (owner, solver) } else { (solver, owner) };
        let amount = u64::try_from(terms.amount).map_err(|_| "the amount exceeds 64 bits".to_owned())?;
        let input = SwapIdInput {
            secret_hash: &terms.secret_hash,
            initiator: initiator.inner(),
            redeemer: redeemer.inner(),
            timelock: terms.timelock,
            amount: U256::from(amount),
        };
        let id = htlc::swap_id(self.registry.0, &input).ok_or_else(|| "the amount exceeds 64 bits".to_owned())?;
        Ok(Swap { id, initiator, redeemer, amount })
    }

    fn shared(&self) -> Input {
        Input::Shared(SharedInput::new(self.registry.0, self.registry.1, true))
    }

    fn function(&self, name: &'static str, arguments: Vec<Argument>) -> Command {
        let (package, function) = (self.package, Identifier::from_static(name));
        Command::MoveCall(MoveCall { package, module: htlc::MODULE, function, type_arguments: vec![StructTag::sui().into()], arguments })
    }

    /// What locks a leg, as the service lays it out.
    fn initiation(&self, terms: &Terms) -> Result<ProgrammableTransaction, String> {
        let swap = self.swap(terms)?;
        let inputs = vec![
            pure(&swap.amount.to_le_bytes()),
            self.shared(),
            pure(swap.initiator.as_ref()),
            pure(swap.redeemer.as_ref()),
            vector(&terms.secret_hash),
            pure(&U256::from(terms.timelock).to_le_bytes::<32>()),
            vector(&[]),
            Input::Shared(SharedInput::new(CLOCK, 1, false)),
        ];
        let split = SplitCoins { coin: Argument::Gas, amounts: vec![Argument::Input(0)] };
        let arguments = [1, 2, 3, 4, 0, 5, 6].map(Argument::Input).into_iter();
        let arguments = arguments.chain([Argument::Result(0), Argument::Input(7)]).collect();
        Ok(ProgrammableTransaction { inputs, commands: vec![Command::SplitCoins(split), self.function("initiate", arguments)] })
    }

    /// Sends a transaction that will succeed, with all coins of its sender.
    fn send(&mut self, role: &str, program: ProgrammableTransaction) -> Result<String, String> {
        let key = private(&accounts::key(role));
        let sender = key.public_key().derive_address();
        let mut transaction = Transaction {
            kind: TransactionKind::ProgrammableTransaction(program),
            sender,
            gas_payment: GasPayment { objects: vec![], owner: sender, price: GAS_PRICE, budget: BUDGET },
            expiration: TransactionExpiration::None,
        };
        transaction.gas_payment.objects = resolve::gas_coins(&self.ledger.live, sender, &transaction);
        if let ExecutionStatus::Failure { error, command } = self.simulated(transaction.clone())?.effects.status() {
            return Err(messages::reason(error, *command));
        }
        let signature = key.sign_transaction(&transaction).map_err(|error| error.to_string())?;
        let digest = self.submit(SignedTransaction { transaction, signatures: vec![signature] })?;
        Ok(digest.to_base58())
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

    fn fund(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String> {
        let amount = u64::try_from(amount).map_err(|_| "the amount exceeds 64 bits".to_owned())?;
        self.ledger.mint(parsed(account)?, self.coin_type(asset)?, amount);
        Ok(())
    }

    fn balance(&self, account: &str, asset: &str) -> Result<u128, String> {
        let (owner, coin_type) = (parsed(account)?, self.coin_type(asset)?);
        Ok(self.ledger.seen.coins(owner, &coin_type).fold(0, |sum: u128, (_, balance)| sum.saturating_add(balance.into())))
    }

    fn leg(&self, terms: &Terms) -> Result<Leg, String> {
        let swap = self.swap(terms)?;
        let (initiator, redeemer) = (swap.initiator.to_string(), swap.redeemer.to_string());
        Ok(Leg { swap_id: hex::encode(swap.id), initiator, redeemer, delegate: None })
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
        // The contract does not let the redeemer pay, who is the solver on a source.
        let program = self.initiation(terms)?;
        self.send(if terms.is_source { RELAYER } else { SOLVER }, program)
    }

    fn redeem(&mut self, terms: &Terms, secret: &[u8; 32]) -> Result<String, String> {
        let id = self.swap(terms)?.id;
        let inputs_of = vec![self.shared(), vector(&id), vector(secret)];
        let program = ProgrammableTransaction { inputs: inputs_of, commands: vec![self.function("redeem", inputs(3))] };
        self.send(if terms.is_source { SOLVER } else { RELAYER }, program)
    }

    fn refund(&mut self, terms: &Terms) -> Result<String, String> {
        let id = self.swap(terms)?.id;
        let inputs_of = vec![self.shared(), vector(&id), Input::Shared(SharedInput::new(CLOCK, 1, false))];
        let program = ProgrammableTransaction { inputs: inputs_of, commands: vec![self.function("refund", inputs(3))] };
        self.send(if terms.is_source { RELAYER } else { SOLVER }, program)
    }

    fn mine(&mut self, blocks: u64) {
        self.ledger.mine(blocks, self.clock.millis());
    }

    fn height(&self) -> u64 {
        self.ledger.newest().0
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

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.ledger.events)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        self.respond(request)
    }
}
