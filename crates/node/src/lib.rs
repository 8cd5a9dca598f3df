#![doc = include_str!("../README.md")]

#[cfg(feature = "bitcoin")]
pub mod bitcoin;
mod config;
mod contracts;
mod endpoint;
mod error;
mod lane;
#[cfg(feature = "evm")]
pub mod evm;
mod nodes;
mod prepare;
mod quorum;

pub use config::{Endpoints, NodeConfig};
pub use contracts::{ContractChange, Contracts, Description};
pub use endpoint::Endpoint;
pub use error::NodeError;
pub use nodes::{Head, Nodes, Speed};
