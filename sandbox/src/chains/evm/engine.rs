//! The parts that all chains with the swap contracts share, whether revm or an external node executes them: the
//! listing, what users sign, and the calls of solver and relayer.

use alloy_consensus::TxEip1559;
use alloy_primitives::{Address, TxKind, U256, hex};
use alloy_sol_types::SolCall;
use countersign_proofs_evm::abi::{Erc20, Regulated};
use countersign_proofs_evm::{Account, Contract, Receipt, World};
use serde_json::{Map, Value, json};

use super::Network;
use super::contracts::{self, Asset, Swap};
use super::pool::asked_tip;
use crate::accounts;
use crate::chains::engine::{Engine, Event, Leg, Listing, Terms};
use crate::chains::listing::{AssetRow, ChainRow, cents};
use crate::clock::Clock;
use crate::http::{Reply, Request, put};

/// The family. It decides how addresses and numbers are written, and which of the contract's calls users sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Evm,
    Tron,
}

impl Dialect {
    pub(crate) fn read(self, text: &str) -> Result<Address, String> {
        let bytes = match self {
            Self::Evm => countersign_chains::address::parse_evm(text).map_err(|error| error.to_string()),
            Self::Tron => countersign_chains::address::parse_tron_base58(text).map_err(|error| error.to_string()),
        };
        bytes.map(Address::from).map_err(|error| format!("{text}: {error}"))
    }

    pub(crate) fn write(self, address: Address) -> String {
        match self {
            Self::Evm => address.to_string(),
            Self::Tron => crate::chains::tron::base58(address),
        }
    }

    /// Returns a contract's address as JSON, without a checksum on EVM chains.
    fn contract(self, address: Address) -> Value {
        match self {
            Self::Evm => json!(address),
            Self::Tron => json!(self.write(address)),
        }
    }

    /// Returns a number in a transaction for the user to sign.
    fn number(self, number: U256) -> String {
        match self {
            Self::Evm => format!("{number:#x}"),
            Self::Tron => number.to_string(),
        }
    }

    /// Returns the limits for approval and initiation in transactions for users: gas, or sun on Tron. They are well
    /// above what the calls need.
    pub(crate) const fn limits(self) -> [u64; 2] {
        match self {
            Self::Evm => [100_000, 300_000],
            Self::Tron => [60_000_000, 300_000_000],
        }
    }

    /// Returns the names of the family and of its token standard.
    const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Evm => ["evm", "erc20"],
            Self::Tron => ["tron", "trc20"],
        }
    }

    const fn coin_decimals(self) -> u8 {
        match self {
            Self::Evm => 18,
            Self::Tron => 6,
        }
    }
}

/// The swap contracts of a chain, and the service's accounts that call them.
#[derive(Debug)]
pub(crate) struct Contracts {
    pub(crate) network: Network,
    dialect: Dialect,
    pub(crate) assets: Vec<Asset>,
    /// A contract that accepts coins, but not with the little gas that swap contracts provide.
    vault: Option<Address>,
    pub(crate) solver: Account,
    relayer: Account,
}

impl Contracts {
    /// Creates a chain's initial state: tokens, swap contracts, and well-funded accounts of solver and relayer.
    pub(crate) fn deploy(network: Network, dialect: Dialect, clock: &Clock) -> Result<(Self, World), String> {
        let account = |role| Account::from_secret(&accounts::key(role)).ok_or_else(|| format!("{role} has no key"));
        let (solver, relayer) = (account(accounts::SOLVER)?, account(accounts::RELAYER)?);
        let mut world = World::new(network.id, network.start);
        world.set_block(network.start, clock.seconds());
        world.set_base_fee(network.base_fee);
        let assets = contracts::deploy(&mut world, (network.coin, dialect.coin_decimals()), &network.tokens);
        if assets.len() != network.tokens.len().saturating_add(1) {
            return Err("a contract could not be deployed".to_owned());
        }
        contracts::endow(&mut world, &assets, &[solver.address(), relayer.address()]);
        let vault = world.deploy(&Contract::Vault).ok();
        Ok((Self { network, dialect, assets, vault, solver, relayer }, world))
    }

    /// Returns the account that sends a transaction: the solver's for its own, the relayer's for a user's.
    pub(crate) const fn sender(&self, is_solver: bool) -> &Account {
        if is_solver { &self.solver } else { &self.relayer }
    }

    /// Returns the priority fee of the sandbox's transactions.
    pub(crate) fn tip(&self) -> u128 {
        asked_tip(self.network.base_fee)
    }

    /// Returns a signed transaction of the solver or the relayer. Its gas limit is one and a half times the gas that
    /// the call used.
    pub(crate) fn sign(&self, is_solver: bool, nonce: u64, used: u64, to: Address, data: Vec<u8>, value: U256) -> Vec<u8> {
        let tip = self.tip();
        self.sender(is_solver).sign_transaction(TxEip1559 {
            chain_id: self.network.id,
            nonce,
            gas_limit: used.saturating_mul(3).saturating_div(2).saturating_add(30_000),
            max_fee_per_gas: u128::from(self.network.base_fee).saturating_mul(2).saturating_add(tip),
            max_priority_fee_per_gas: tip,
            to: TxKind::Call(to),
            value,
            input: data.into(),
            ..TxEip1559::default()
        })
    }

    /// Refuses to roll back blocks that wallets may regard as final.
    pub(crate) fn check_depth(&self, depth: u64) -> Result<(), String> {
        match (self.dialect, self.network.finalized) {
            (_, finalized) if depth < finalized => Ok(()),
            (Dialect::Evm, finalized) => Err(format!("blocks are final after {finalized}")),
            (Dialect::Tron, finalized) => Err(format!("blocks are irreversible after {finalized}")),
        }
    }

    /// Returns the effects on swaps of a transaction in a block.
    pub(crate) fn events(&self, receipt: &Receipt, transaction: &str, height: u64) -> impl Iterator<Item = Event> {
        receipt.logs.iter().filter_map(move |log| contracts::event(&self.assets, log, transaction, height))
    }

    fn asset(&self, id: &str) -> Result<&Asset, String> {
        let symbol = id.split_once(':').filter(|(chain, _)| *chain == self.network.chain).map(|(_, symbol)| symbol);
        let asset = symbol.and_then(|symbol| self.assets.iter().find(|asset| asset.symbol == symbol));
        asset.ok_or_else(|| format!("{id} is not an asset of {}", self.network.chain))
    }

    fn swap(&self, terms: &Terms) -> Result<Swap, String> {
        if self.dialect == Dialect::Tron && terms.delegate.is_some() {
            return Err("this chain has no delegates".to_owned());
        }
        let (owner, solver) = (self.dialect.read(&terms.owner)?, self.solver.address());
        let (initiator, redeemer) = if terms.is_source { (owner, solver) } else { (solver, owner) };
        Ok(Swap::new(self.network.id, self.asset(&terms.asset)?, initiator, redeemer, terms))
    }

    /// Returns who pays a source: the delegate if there is one, otherwise the owner.
    fn payer(&self, terms: &Terms, swap: &Swap) -> Result<Address, String> {
        terms.delegate.as_deref().map_or(Ok(swap.initiator), |delegate| self.dialect.read(delegate))
    }

    /// Returns the initiation of a party that locks for itself.
    fn initiate(&self, swap: &Swap) -> Vec<u8> {
        match self.dialect {
            Dialect::Evm => swap.initiate(),
            Dialect::Tron => swap.initiate_with_data(),
        }
    }

    fn listing(&self) -> Listing {
        let Network { chain, id, name, interval, timelocks, coin, .. } = &self.network;
        let [family, token] = self.dialect.names();
        let mut row = ChainRow {
            chain,
            id: format!("{family}:{id}"),
            title: (*name).to_string(),
            coin,
            timelocks: (*timelocks).into(),
            htlcs: json!([format!("{family}:htlc"), format!("{family}:htlc_{token}")]),
            tokens: json!([format!("{family}:{token}")]),
        }
        .json();
        if *interval >= 1_000 {
            put(&mut row, "block_time", json!(interval / 1_000));
        }
        Listing {
            chain: row,
            assets: self.assets.iter().map(|asset| self.row(asset)).collect(),
            solver: self.dialect.write(self.solver.address()),
        }
    }

    /// Returns an asset as in `GET /v2/assets`. The limits are about a dollar and half a million dollars.
    fn row(&self, asset: &Asset) -> Value {
        let [family, standard] = self.dialect.names();
        let at = |address, schema| json!({"address": self.dialect.contract(address), "schema": schema});
        let units = U256::from(10).saturating_pow(U256::from(asset.decimals));
        let min = units.saturating_mul(U256::from(100)).checked_div(U256::from(cents(&asset.symbol)));
        let min = min.unwrap_or_default().max(U256::from(1));
        AssetRow {
            chain: &self.network.chain,
            network: self.network.id.into(),
            symbol: &asset.symbol,
            decimals: asset.decimals,
            limits: [min, min.saturating_mul(U256::from(500_000))].map(|limit| limit.to_string()),
            htlc: match asset.token {
                Some(_) => at(asset.htlc, format!("{family}:htlc_{standard}")),
                None => at(asset.htlc, format!("{family}:htlc")),
            },
            token: asset.token.map(|token| at(token, format!("{family}:{standard}"))).unwrap_or_default(),
        }
        .json()
    }
}

/// The parts in which chains with the swap contracts differ: execution, blocks, and the interface of their nodes.
/// Methods have the same meaning as those of [`Engine`] with the same name.
pub(crate) trait Machine: Send {
    fn contracts(&self) -> &Contracts;

    /// Submits a call of the solver or the relayer if it would succeed, now or after the pending ones. Returns the
    /// transaction's id.
    fn submit(&mut self, is_solver: bool, to: Address, data: Vec<u8>, value: U256) -> Result<String, String>;

    fn fund(&mut self, account: Address, asset: &Asset, amount: U256) -> Result<(), String>;

    /// Makes a call as an account, without its key.
    fn call(&mut self, from: Address, to: Address, data: Vec<u8>) -> Result<(), String>;

    fn balance(&self, account: Address, asset: &Asset) -> Result<U256, String>;

    /// Returns the amount of an owner's tokens that a spender may still take.
    fn allowance(&self, token: Address, owner: Address, spender: Address) -> Result<U256, String>;

    fn mine(&mut self, blocks: u64);

    fn reorganize(&mut self, depth: u64) -> Result<(), String>;

    fn height(&self) -> u64;

    fn pending(&self) -> usize;

    fn events(&mut self) -> Vec<Event>;

    fn answer(&mut self, request: &Request) -> Reply;
}

impl<M: Machine> Engine for M {
    fn listing(&self) -> Listing {
        self.contracts().listing()
    }

    fn address_of(&self, key: &[u8; 32]) -> String {
        Account::from_secret(key).map_or_else(String::new, |account| self.contracts().dialect.write(account.address()))
    }

    fn fund(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String> {
        let (account, asset) = (self.contracts().dialect.read(account)?, self.contracts().asset(asset)?.clone());
        Machine::fund(self, account, &asset, U256::from(amount))
    }

    fn balance(&self, account: &str, asset: &str) -> Result<u128, String> {
        let (asset, account) = (self.contracts().asset(asset)?, self.contracts().dialect.read(account)?);
        Ok(Machine::balance(self, account, asset)?.saturating_to())
    }

    fn stop(&mut self, asset: &str, account: Option<&str>) -> Result<(), String> {
        let token = self.contracts().asset(asset)?.token.ok_or_else(|| format!("{asset} has no issuer"))?;
        let data = match account {
            Some(account) => Regulated::freezeCall { account: self.contracts().dialect.read(account)? }.abi_encode(),
            None => Regulated::pauseCall {}.abi_encode(),
        };
        self.call(self.contracts().relayer.address(), token, data)
    }

    fn approve(&mut self, terms: &Terms) -> Result<(), String> {
        let (contracts, swap) = (self.contracts(), self.contracts().swap(terms)?);
        let (payer, spender) = (contracts.payer(terms, &swap)?, swap.asset.htlc);
        let Some(token) = swap.asset.token else { return Ok(()) };
        if self.allowance(token, payer, spender)? < swap.amount {
            // Some tokens allow raising an allowance only from zero.
            for value in [U256::ZERO, U256::MAX] {
                self.call(payer, token, Erc20::approveCall { spender, value }.abi_encode())?;
            }
        }
        Ok(())
    }

    fn vault(&self) -> Option<String> {
        self.contracts().vault.map(|vault| self.contracts().dialect.write(vault))
    }

    fn leg(&self, terms: &Terms) -> Result<Leg, String> {
        let (swap, dialect) = (self.contracts().swap(terms)?, self.contracts().dialect);
        let (initiator, redeemer) = (dialect.write(swap.initiator), dialect.write(swap.redeemer));
        Ok(Leg { swap_id: hex::encode(swap.id), initiator, redeemer, delegate: None })
    }

    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        let contracts = self.contracts();
        let (swap, dialect, chain_id) = (contracts.swap(terms)?, contracts.dialect, contracts.network.id);
        let (payer, is_delegated) = (contracts.payer(terms, &swap)?, terms.delegate.is_some());
        let [to_approve, to_initiate] = dialect.limits();
        let call = |to: Address, data: &[u8], limit: u64, value: U256| {
            json!({
                "chain_id": chain_id,
                "data": hex::encode_prefixed(data),
                "gas_limit": dialect.number(U256::from(limit)),
                "to": dialect.contract(to),
                "value": dialect.number(value),
            })
        };
        let mut approval = Value::Null;
        if let Some(token) = swap.asset.token
            && self.allowance(token, payer, swap.asset.htlc)? < swap.amount
        {
            approval = call(token, &swap.approve(), to_approve, U256::ZERO);
        }
        let data = if is_delegated { swap.initiate_on_behalf() } else { contracts.initiate(&swap) };
        // A contract cannot pull the chain's own coin, and an owner does not sign what a delegate pays. Clients of
        // Tron expect a message for coins as well, although no signature can pay with them.
        let is_tron = dialect == Dialect::Tron;
        let has_message = is_tron || (swap.asset.token.is_some() && !is_delegated);
        let message = if has_message { swap.typed_data(chain_id, |address| dialect.write(address), is_tron) } else { Value::Null };
        let mut payloads = Map::new();
        payloads.insert("approval_transaction".to_owned(), approval);
        payloads.insert("initiate_transaction".to_owned(), call(swap.asset.htlc, &data, to_initiate, swap.value()));
        payloads.insert("typed_data".to_owned(), message);
        Ok(payloads)
    }

    fn initiate(&mut self, terms: &Terms, signature: &str) -> Result<String, String> {
        let swap = self.contracts().swap(terms)?;
        let data = swap.initiate_with_signature(signature)?;
        self.submit(false, swap.asset.htlc, data, U256::ZERO)
    }

    fn lock(&mut self, terms: &Terms) -> Result<String, String> {
        let swap = self.contracts().swap(terms)?;
        let data = if terms.is_source { swap.initiate_on_behalf() } else { self.contracts().initiate(&swap) };
        self.submit(!terms.is_source, swap.asset.htlc, data, swap.value())
    }

    fn redeem(&mut self, terms: &Terms, secret: &[u8; 32]) -> Result<String, String> {
        let swap = self.contracts().swap(terms)?;
        self.submit(terms.is_source, swap.asset.htlc, swap.redeem(secret), U256::ZERO)
    }

    fn refund(&mut self, terms: &Terms) -> Result<String, String> {
        let swap = self.contracts().swap(terms)?;
        self.submit(!terms.is_source, swap.asset.htlc, swap.refund(), U256::ZERO)
    }

    fn mine(&mut self, blocks: u64) {
        Machine::mine(self, blocks);
    }

    fn reorganize(&mut self, depth: u64) -> Result<(), String> {
        Machine::reorganize(self, depth)
    }

    fn height(&self) -> u64 {
        Machine::height(self)
    }

    fn pending(&self) -> usize {
        Machine::pending(self)
    }

    fn depth(&self) -> u64 {
        self.contracts().network.finalized
    }

    fn interval(&self) -> u64 {
        self.contracts().network.interval
    }

    fn events(&mut self) -> Vec<Event> {
        Machine::events(self)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        Machine::answer(self, request)
    }
}
