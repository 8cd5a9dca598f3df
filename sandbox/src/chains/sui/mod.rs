//! Sui: a model.
//!
//! Coins, versions, digests, gas, signatures, effects and checkpoints are those of Sui, in the types of its SDK; the swap contract's
//! rules are applied by `htlc`, because there is no Move engine here. Its objects and events have the contract's layout.
//!
//! A transaction is executed when it comes in, and its sender gets the effects at once. Everybody sees it from the next checkpoint on.
//! There are no address balances, packages cannot be published, and old versions of objects are not kept. The last ten thousand
//! transactions are kept; an order that has ended is dropped with the transaction that ended it.

mod check;
mod engine;
mod execute;
mod front;
mod grpc;
mod htlc;
mod json_rpc;
mod ledger;
mod messages;
mod resolve;
mod settle;

use std::collections::BTreeMap;
use std::sync::Arc;

use prost_types::Timestamp;
use sui_crypto::ed25519::Ed25519PrivateKey;
use sui_rpc::proto::sui::rpc::v2::{
    GetCheckpointResponse, GetEpochResponse, GetServiceInfoResponse, GetTransactionResponse, ListOwnedObjectsResponse,
    SimulateTransactionResponse,
};
use sui_sdk_types::{
    Address, Command, Digest, ExecutionStatus, GasCostSummary, GasPayment, Identifier, MovePackage, MoveStruct, Object, ObjectData, Owner,
    ProgrammableTransaction, Publish, SignedTransaction, StructTag, Transaction, TransactionEffects, TransactionEffectsV2,
    TransactionEvents, TransactionExpiration, TransactionKind, TypeOrigin,
};

use crate::accounts;
use crate::clock::Clock;
use crate::http::{Reply, Request};
use execute::Context;
use ledger::{Executed, Ledger};

/// An answer of a node with changed numbers at a place of its message.
pub(crate) fn with_changed(reply: Reply, place: &str, change: &mut dyn FnMut(u64) -> u64) -> Reply {
    let mut number = |number: Option<&mut u64>| {
        if let Some(number) = number {
            *number = change(*number);
        }
    };
    match place {
        "/epoch/reference_gas_price" => grpc::with_changed(reply, |answer: &mut GetEpochResponse| {
            number(answer.epoch.as_mut().and_then(|epoch| epoch.reference_gas_price.as_mut()));
        }),
        "/objects/version" => grpc::with_changed(reply, |answer: &mut ListOwnedObjectsResponse| {
            answer.objects.iter_mut().for_each(|object| number(object.version.as_mut()));
        }),
        "/objects/balance" => grpc::with_changed(reply, |answer: &mut ListOwnedObjectsResponse| {
            answer.objects.iter_mut().for_each(|object| number(object.balance.as_mut()));
        }),
        "/transaction/effects/gas_used/computation_cost" => grpc::with_changed(reply, |answer: &mut SimulateTransactionResponse| {
            let effects = answer.transaction.as_mut().and_then(|transaction| transaction.effects.as_mut());
            number(effects.and_then(|effects| effects.gas_used.as_mut()).and_then(|gas| gas.computation_cost.as_mut()));
        }),
        _ => reply,
    }
}

/// An answer of a node with other times, in seconds.
pub(crate) fn with_times(request: &Request, reply: Reply, told: impl Fn(u64) -> u64) -> Reply {
    let tell = |time: Option<&mut Timestamp>| {
        if let Some(Timestamp { seconds, .. }) = time {
            *seconds = u64::try_from(*seconds).map(&told).ok().and_then(|told| told.try_into().ok()).unwrap_or(*seconds);
        }
    };
    match request.path.rsplit('/').next() {
        Some("GetServiceInfo") => grpc::with_changed(reply, |answer: &mut GetServiceInfoResponse| tell(answer.timestamp.as_mut())),
        Some("GetCheckpoint") => grpc::with_changed(reply, |answer: &mut GetCheckpointResponse| {
            let summary = answer.checkpoint.as_mut().and_then(|checkpoint| checkpoint.summary.as_mut());
            tell(summary.and_then(|summary| summary.timestamp.as_mut()));
        }),
        Some("GetTransaction") => grpc::with_changed(reply, |answer: &mut GetTransactionResponse| {
            tell(answer.transaction.as_mut().and_then(|transaction| transaction.timestamp.as_mut()));
        }),
        _ => reply,
    }
}

/// Which network a chain says that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The chain's name in asset ids.
    pub chain: String,
    /// The network's name.
    pub id: String,
    /// The digest of its genesis checkpoint, in base58.
    pub genesis: String,
    /// The first checkpoint that the sandbox makes.
    pub height: u64,
}

impl Network {
    /// The main network.
    #[must_use]
    pub fn mainnet() -> Self {
        Self::new("sui", "mainnet", "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S")
    }

    /// The test network.
    #[must_use]
    pub fn testnet() -> Self {
        Self::new("sui_testnet", "testnet", "69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD")
    }

    fn new(chain: &str, id: &str, genesis: &str) -> Self {
        Self { chain: chain.to_owned(), id: id.to_owned(), genesis: genesis.to_owned(), height: 330_000_000 }
    }
}

/// What SOLVER and RELAYER have, in MIST: a hundred million SUI.
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
    /// Starts a chain with the contract, and with funds for the solver and the relayer.
    #[must_use]
    pub fn new(network: Network, clock: Arc<Clock>) -> Self {
        let ledger = Ledger::new(network.height, clock.millis());
        let mut chain = Self { network, clock, package: Address::ZERO, registry: (Address::ZERO, 0), ledger };
        chain.publish();
        for role in [accounts::SOLVER, accounts::RELAYER] {
            chain.ledger.mint(account(&accounts::key(role)), StructTag::sui().into(), LAVISH);
        }
        chain
    }

    /// The contract's package, whose module is `AtomicSwap`.
    #[must_use]
    pub const fn package(&self) -> Address {
        self.package
    }

    /// The registry of orders in SUI, and the version at which it was shared.
    #[must_use]
    pub const fn registry(&self) -> (Address, u64) {
        self.registry
    }

    /// Publishes the package. Its only module has no code, so that nobody takes it for the contract.
    fn publish(&mut self) {
        let sender = account(&accounts::key("publisher"));
        let module = b"a model of the contract".to_vec();
        let publish = Publish { modules: vec![module.clone()], dependencies: vec![Address::from_static("0x1"), Address::TWO] };
        let program = ProgrammableTransaction { inputs: vec![], commands: vec![Command::Publish(publish)] };
        let transaction = Transaction {
            kind: TransactionKind::ProgrammableTransaction(program),
            sender,
            gas_payment: GasPayment { objects: vec![], owner: sender, price: ledger::GAS_PRICE, budget: 0 },
            expiration: TransactionExpiration::None,
        };
        let digest = transaction.digest();
        let ids: [Address; 3] = [0, 1, 2].map(|count| Address::derive_id(digest, count));
        let [package, capability, registry] = ids;
        let version = self.network.height;
        let names = ["Order", "OrdersRegistry", "Initiated", "Redeemed", "Refunded", "RegistryCreated"];
        let origin = |name| TypeOrigin { module_name: htlc::MODULE, struct_name: Identifier::from_static(name), package };
        let data = ObjectData::Package(MovePackage {
            id: package,
            version: 1,
            modules: BTreeMap::from([(htlc::MODULE, module)]),
            type_origin_table: names.map(origin).to_vec(),
            linkage_table: BTreeMap::new(),
        });
        let mut written = vec![Arc::new(Object::new(data, Owner::Immutable, digest, 0))];
        let cap = StructTag::new(Address::TWO, Identifier::from_static("package"), Identifier::from_static("UpgradeCap"), vec![]);
        let contents = [capability.as_ref(), package.as_ref(), &1_u64.to_le_bytes()[..], &[0]].concat();
        let made = htlc::registry_type(package, StructTag::sui().into());
        for (kind, is_public, contents, owner) in
            [(cap, true, contents, Owner::Address(sender)), (made, false, registry.into(), Owner::Shared(version))]
        {
            let data = MoveStruct::new(kind, is_public, version, contents).map(ObjectData::Struct);
            written.extend(data.map(|data| Arc::new(Object::new(data, owner, digest, 0))));
        }
        let of = |object: &Arc<Object>| object.as_struct().map(|data| (object.object_id(), data.object_type().to_string()));
        let effects = TransactionEffectsV2 {
            status: ExecutionStatus::Success,
            epoch: ledger::epoch(self.ledger.newest().2).0,
            gas_used: GasCostSummary::default(),
            transaction_digest: digest,
            gas_object_index: None,
            events_digest: None,
            dependencies: vec![],
            lamport_version: version,
            changed_objects: written.iter().map(|object| settle::change(&BTreeMap::new(), object)).collect(),
            unchanged_consensus_objects: vec![],
            auxiliary_data_digest: None,
        };
        (self.package, self.registry) = (package, (registry, version));
        self.ledger.execute(Executed {
            signed: SignedTransaction { transaction, signatures: vec![] },
            digest,
            effects: TransactionEffects::V2(Box::new(effects)),
            events: TransactionEvents(vec![]),
            balances: vec![],
            types: written.iter().filter_map(of).collect(),
            written,
            removed: vec![],
            swaps: vec![],
            checkpoint: None,
        });
        self.ledger.mine(1, self.clock.millis());
    }

    fn context(&self) -> Context {
        let millis = self.clock.millis().max(self.ledger.newest().2);
        Context { package: self.package, epoch: ledger::epoch(millis).0, millis }
    }

    /// Executes a transaction without keeping what it does.
    fn simulated(&self, transaction: Transaction) -> Result<Executed, String> {
        let context = self.context();
        let signed = SignedTransaction { transaction, signatures: vec![] };
        let transaction = signed.transaction.clone();
        let loaded = check::load(&self.ledger.live, &transaction, (context.epoch, context.millis), self.package, true)?;
        Ok(execute::execute(&self.ledger.live, &loaded, signed, context))
    }

    /// Executes a transaction. One that was executed before does nothing again.
    fn submit(&mut self, signed: SignedTransaction) -> Result<Digest, String> {
        let digest = signed.transaction.digest();
        check::signatures(&signed)?;
        if self.ledger.executed.contains_key(&digest) {
            return Ok(digest);
        }
        let context = self.context();
        let transaction = signed.transaction.clone();
        let loaded = check::load(&self.ledger.live, &transaction, (context.epoch, context.millis), self.package, false)?;
        let executed = execute::execute(&self.ledger.live, &loaded, signed, context);
        self.ledger.execute(executed);
        Ok(digest)
    }
}

fn private(key: &[u8; 32]) -> Ed25519PrivateKey {
    Ed25519PrivateKey::new(*key)
}

/// The account that an Ed25519 key controls.
fn account(key: &[u8; 32]) -> Address {
    private(key).public_key().derive_address()
}
