//! Guide: running swaps on your own platform. These modules contain no items.
//!
//! A [`Driver`](crate::Driver) needs implementations of four traits. For each there is a ready-made one, and a wallet can write its own:
//!
//! | trait | what it does | ready to use | page |
//! |---|---|---|---|
//! | [`Transport`](crate::Transport) | HTTP to the service, a timer, a clock | `Http` (feature `http`) | [`platform`] |
//! | [`Chains`](crate::driver::Chains) | sends requests to the user's own endpoints | `countersign_node::Nodes`, [`NoChains`](crate::driver::NoChains) | [`platform`] |
//! | [`Owner`](crate::driver::Owner) | signs | [`NoOwner`](crate::driver::NoOwner), which never does | [`owner`] |
//! | [`OrderStore`](crate::driver::OrderStore) | keeps orders and their journals | `countersign_store::Store` (feature `store`), [`MemoryStore`](crate::driver::MemoryStore) | [`store`] |
//!
//! No implementation decides anything about money: readers judge what an endpoint answers, the driver has verified what an owner signs, and
//! a store returns what the driver wrote.
//!
//! # Putting them together
//!
//! The types of all four are part of the driver's type. [`BoxTransport`](crate::BoxTransport), [`BoxChains`](crate::driver::BoxChains),
//! [`BoxStore`](crate::driver::BoxStore) and [`BoxOwner`](crate::driver::BoxOwner) erase them, so that an application can name the driver
//! in a struct:
//!
//! ```
//! use countersign_client::countersign::{Policy, Registry};
//! use countersign_client::driver::{
//!     BoxChains, BoxOwner, BoxStore, Chains, MemoryStore, Owner,
//! };
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
//!         let client =
//!             Client::new(Api::new("https://service.example", None)?, transport)
//!                 .boxed();
//!         let flow = Flow::new(client, registry, Policy::default());
//!         // `MemoryStore` forgets: a wallet has a store on disk.
//!         Ok(Self {
//!             driver: Driver::new(
//!                 flow,
//!                 BoxChains::new(chains),
//!                 BoxStore::new(MemoryStore::default()),
//!                 BoxOwner::new(owner),
//!             ),
//!         })
//!     }
//! }
//! ```
//!
//! # What it reports
//!
//! [`Driver::run`](crate::Driver::run) is a stream of changes, [`Driver::advance`](crate::Driver::advance) one step of one order. Their
//! [`Progress`](crate::driver::Progress) has the status, what only the owner can do
//! ([`NeedsOwner`](crate::driver::Status::NeedsOwner)), and in `trouble` what did not work. If `trouble` is
//! [`NotConnected`](crate::driver::Trouble::NotConnected), the next action needs a chain for which [`Chains`](crate::driver::Chains) has no
//! endpoints. It names the chain as asset ids do.
//!
//! What an operator can follow and count is in [`traces`].

pub mod owner;
pub mod platform;
pub mod store;
pub mod traces;
