//! Guide: running swaps on a platform of one's own. These modules contain no items.
//!
//! A [`Driver`](crate::Driver) needs four things of a wallet. For each there is one that is ready, and each can be the wallet's own:
//!
//! | trait | what it does | ready to use | page |
//! |---|---|---|---|
//! | [`Transport`](crate::Transport) | HTTP to the service, a timer, a clock | `Http` (feature `http`) | [`platform`] |
//! | [`Chains`](crate::driver::Chains) | sends requests to the user's own endpoints | `countersign_node::Nodes`, [`NoChains`](crate::driver::NoChains) | [`platform`] |
//! | [`Owner`](crate::driver::Owner) | signs | [`NoOwner`](crate::driver::NoOwner), which never does | [`owner`] |
//! | [`OrderStore`](crate::driver::OrderStore) | keeps orders and their journals | `countersign_store::Store` (feature `store`), [`MemoryStore`](crate::driver::MemoryStore) | [`store`] |
//!
//! No implementation decides anything about money: what an endpoint answers is judged by readers, what an owner signs was verified, and
//! what a store returns was written by the driver.
//!
//! # Put together
//!
//! The types of all four are part of the driver's type. [`BoxTransport`](crate::BoxTransport), [`BoxChains`](crate::driver::BoxChains),
//! [`BoxStore`](crate::driver::BoxStore) and [`BoxOwner`](crate::driver::BoxOwner) erase them, so that an application can name the driver
//! in a struct:
//!
//! ```
//! use countersign_client::countersign::{Policy, Registry};
//! use countersign_client::driver::{BoxChains, BoxOwner, BoxStore, Chains, MemoryStore, Owner};
//! use countersign_client::{Api, BoxTransport, Client, Driver, Error, Flow, Transport};
//!
//! struct Wallet {
//!     driver: Driver<BoxTransport, BoxChains, BoxStore, BoxOwner>,
//! }
//!
//! impl Wallet {
//!     fn new(
//!         transport: impl Transport + 'static,
//!         chains: impl Chains + 'static,
//!         owner: impl Owner + 'static,
//!         registry: Registry,
//!     ) -> Result<Self, Error> {
//!         let client = Client::new(Api::new("https://service.example", None)?, transport).boxed();
//!         let flow = Flow::new(client, registry, Policy::default());
//!         // `MemoryStore` forgets: a wallet has a store on disk.
//!         Ok(Self { driver: Driver::new(flow, BoxChains::new(chains), BoxStore::new(MemoryStore::default()), BoxOwner::new(owner)) })
//!     }
//! }
//! ```
//!
//! # What it reports
//!
//! [`Driver::run`](crate::Driver::run) is a stream of changes, [`Driver::advance`](crate::Driver::advance) one step of one order. Their
//! [`Progress`](crate::driver::Progress) has the status, what only the owner can do
//! ([`NeedsOwner`](crate::driver::Status::NeedsOwner)), and in `trouble` what did not work. If `trouble` is
//! [`NotConnected`](crate::driver::Trouble::NotConnected), the next action needs a chain of which [`Chains`](crate::driver::Chains) has no
//! endpoints: it names the chain as asset ids do.

pub mod owner;
pub mod platform;
pub mod store;
