//! The swap service and its chains on one machine, to try whole swaps against: honest, or with the lies that are asked for.
//!
//! It is the other side: nothing that it answers is built with what verifies, which only the page of an order shows. Its keys are public and its coins are worthless.

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
