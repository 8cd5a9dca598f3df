#![doc = include_str!("../README.md")]

#[cfg(feature = "bitcoin")]
pub mod bitcoin;
mod config;
mod endpoint;
mod error;
#[cfg(feature = "evm")]
pub mod evm;
mod nodes;
mod prepare;
mod quorum;
#[cfg(feature = "starknet")]
pub mod starknet;

pub use config::{Endpoints, NodeConfig};
pub use endpoint::Endpoint;
pub use error::NodeError;
pub use nodes::{Head, Nodes, Speed};
