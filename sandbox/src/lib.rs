//! A swap service and its chains on one machine, to try whole swaps against. It is honest unless lies are switched
//! on.
//!
//! The sandbox plays the other side, so it shares no code with the crates that verify. Only the page of an order uses
//! those. Its keys are public and its coins are worthless.

pub mod accounts;
pub mod chains;
pub mod clock;
pub mod home;
pub mod http;
pub mod ledger;
pub mod lies;
pub mod order;
pub mod page;
pub mod recording;
pub mod sandbox;
pub mod server;
pub mod service;
pub mod solver;
pub mod tour;
pub mod trial;
pub mod world;
