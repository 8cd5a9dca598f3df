#![doc = include_str!("../README.md")]

pub mod abi;
mod account;
mod artefact;
mod past;
mod receipt;
mod world;

pub use account::Account;
pub use alloy_consensus;
pub use alloy_eips;
pub use alloy_primitives;
pub use alloy_sol_types;
pub use artefact::{Artefact, ArtefactError, Contract};
pub use k256;
pub use past::{Changes, NATIVE, Past, Simulation, UnsignedCall};
pub use receipt::{Outcome, Receipt};
pub use revm;
pub use world::{CallError, DeployError, ReadError, SendError, World};
