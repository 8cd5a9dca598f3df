//! A model of Sui.
//!
//! The SDK decodes transactions, verifies signatures and computes digests. There is no Move engine. What the
//! service's wallets send is applied to a ledger of coins and orders, whose objects and events have the contract's
//! layout. The model supports splitting, merging and transferring coins of SUI, address balances of SUI, and calls of
//! the swap contract. It refuses everything else: "the model does not execute ..".
//!
//! A transaction is executed on arrival, and its sender receives the effects at once. Others see it from the next
//! checkpoint on. Old versions of objects and old checkpoints are not kept.

mod check;
mod engine;
mod execute;
mod front;
mod funds;
mod grpc;
mod htlc;
mod json_rpc;
mod ledger;
mod lies;
mod messages;
mod resolve;

use std::collections::BTreeMap;
use std::sync::Arc;

use sui_crypto::ed25519::Ed25519PrivateKey;
use sui_sdk_types::{
    Address, Command, Digest, ExecutionStatus, GasPayment, Identifier, MovePackage, Object, ObjectData, Owner, ProgrammableTransaction,
    Publish, SignedTransaction, StructTag, Transaction, TransactionExpiration, TransactionKind, TypeOrigin,
};

use crate::accounts;
use crate::chains::family::Family;
use crate::clock::Clock;
use execute::{Context, Work};
use ledger::{Executed, Ledger};

pub(super) const FAMILY: Family = Family {
    prefixes: &["sui"],
    local: &[],
    start: |start| {
        let network = match start.network() {
            "mainnet" => Network::mainnet(),
            "testnet" => Network::testnet(),
            _ => return Err(format!("the sandbox does not have the chain {}", start.name)),
        };
        Ok(Box::new(Sui::new(network, start.clock)))
    },
    tour: &[["sui:sui", "base:usdc"], ["base:usdc", "sui:sui"]],
    lies: lies::LIES,
    variants: lies::VARIANTS,
    interface: &lies::Grpc,
};

/// The network that a chain claims to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The chain's name in asset ids.
    pub chain: String,
    /// The network's name.
    pub id: String,
    /// The digest of the genesis checkpoint, in base58.
    pub genesis: String,
    /// The first checkpoint that the sandbox makes.
    pub height: u64,
}

impl Network {
    /// Returns the main network.
    #[must_use]
    pub fn mainnet() -> Self {
        Self::new("sui", "mainnet", "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S")
    }

    /// Returns the test network.
    #[must_use]
    pub fn testnet() -> Self {
        Self::new("sui_testnet", "testnet", "69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD")
    }

    fn new(chain: &str, id: &str, genesis: &str) -> Self {
        Self { chain: chain.to_owned(), id: id.to_owned(), genesis: genesis.to_owned(), height: 330_000_000 }
    }
}

/// The balances of solver, relayer and publisher, in MIST: a hundred million SUI.
const LAVISH: u64 = 100_000_000_000_000_000;

/// A Sui chain.
#[derive(Debug)]
pub struct Sui {
    network: Network,
    clock: Arc<Clock>,
    package: Address,
    /// The registry of orders in SUI, and the version at which it was shared.
    registry: (Address, u64),
    ledger: Ledger,
}

impl Sui {
    /// Starts a chain with the contract, and funds the solver and the relayer.
    #[must_use]
    pub fn new(network: Network, clock: Arc<Clock>) -> Self {
        let ledger = Ledger::new(network.height, clock.millis());
        let mut chain = Self { network, clock, package: Address::ZERO, registry: (Address::ZERO, 0), ledger };
        chain.publish();
        for role in [accounts::SOLVER, accounts::RELAYER] {
            chain.ledger.mint(account(&accounts::key(role)), LAVISH);
        }
        chain
    }

    /// Returns the contract's package, whose module is `AtomicSwap`.
    #[must_use]
    pub const fn package(&self) -> Address {
        self.package
    }

    /// Returns the registry of orders in SUI, and the version at which it was shared.
    #[must_use]
    pub const fn registry(&self) -> (Address, u64) {
        self.registry
    }

    /// Publishes the package. Its only module has no code, so that it cannot be mistaken for the contract.
    fn publish(&mut self) {
        let sender = account(&accounts::key("publisher"));
        let module = b"a model of the contract".to_vec();
        let publish = Publish { modules: vec![module.clone()], dependencies: vec![Address::from_static("0x1"), Address::TWO] };
        let program = ProgrammableTransaction { inputs: vec![], commands: vec![Command::Publish(publish)] };
        self.ledger.mint(sender, LAVISH);
        let signed = SignedTransaction { transaction: self.paid(sender, program), signatures: vec![] };
        let Ok(mut work) = Work::begin(&self.ledger.live, &signed, self.context()) else { return };
        let (package, capability, registry) = (work.new_id(), work.new_id(), work.new_id());
        let names = ["Order", "OrdersRegistry", "Initiated", "Redeemed", "Refunded"];
        let origin = |name| TypeOrigin { module_name: htlc::MODULE, struct_name: Identifier::from_static(name), package };
        let data = ObjectData::Package(MovePackage {
            id: package,
            version: 1,
            modules: BTreeMap::from([(htlc::MODULE, module)]),
            type_origin_table: names.map(origin).to_vec(),
            linkage_table: BTreeMap::new(),
        });
        let published = Object::new(data, Owner::Immutable, signed.transaction.digest(), 0);
        work.after.insert(package, Some(Arc::new(published)));
        let kind = StructTag::new(Address::TWO, Identifier::from_static("package"), Identifier::from_static("UpgradeCap"), vec![]);
        let contents = [capability.as_ref(), package.as_ref(), &1_u64.to_le_bytes()[..], &[0]].concat();
        work.write((kind, contents), Owner::Address(sender));
        let kind = htlc::type_of(package, "OrdersRegistry", vec![StructTag::sui().into()]);
        work.write((kind, registry.into()), Owner::Shared(1));
        (self.package, self.registry) = (package, (registry, 1));
        let executed = work.settle(ExecutionStatus::Success);
        self.ledger.execute(executed);
        self.ledger.mine(1, self.clock.millis());
    }

    fn context(&self) -> Context {
        let millis = self.clock.millis().max(self.ledger.newest.timestamp_ms);
        let genesis = Digest::from_base58(&self.network.genesis).unwrap_or(Digest::ZERO);
        Context { package: self.package, registry: self.registry.0, millis, genesis }
    }

    /// Returns a transaction with the coins that pay for it.
    fn paid(&self, sender: Address, program: ProgrammableTransaction) -> Transaction {
        let (kind, expiration) = (TransactionKind::ProgrammableTransaction(program), TransactionExpiration::None);
        let gas_payment = GasPayment { objects: vec![], owner: sender, price: ledger::GAS_PRICE, budget: 0 };
        let mut transaction = Transaction { kind, sender, gas_payment, expiration };
        resolve::pay(&self.ledger.live, &mut transaction);
        transaction
    }

    /// Executes a transaction without storing the effects.
    fn simulated(&self, transaction: Transaction) -> Result<Executed, String> {
        execute::execute(&self.ledger.live, &SignedTransaction { transaction, signatures: vec![] }, self.context())
    }

    /// Executes a transaction. Repeating one has no further effect.
    fn submit(&mut self, signed: &SignedTransaction) -> Result<&Executed, String> {
        let digest = signed.transaction.digest();
        check::signatures(signed)?;
        if !self.ledger.executed.contains_key(&digest) {
            let executed = execute::execute(&self.ledger.live, signed, self.context())?;
            self.ledger.execute(executed);
        }
        self.ledger.executed.get(&digest).ok_or_else(|| "not executed".to_owned())
    }
}

fn private(key: &[u8; 32]) -> Ed25519PrivateKey {
    Ed25519PrivateKey::new(*key)
}

/// Returns the address that an Ed25519 key controls.
fn account(key: &[u8; 32]) -> Address {
    private(key).public_key().derive_address()
}
