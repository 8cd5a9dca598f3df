#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "bitcoin")]
pub mod bitcoin;
mod config;
mod contracts;
mod endpoint;
mod error;
#[cfg(feature = "evm")]
pub mod evm;
mod families;
mod nodes;
mod preconditions;
mod prepare;
mod queue;
mod sent;
mod settle;
#[cfg(feature = "solana")]
pub mod solana;
#[cfg(feature = "starknet")]
pub mod starknet;
#[cfg(feature = "sui")]
pub mod sui;
#[cfg(feature = "tron")]
pub mod tron;

pub use config::{Endpoints, NodeConfig};
pub use contracts::{ContractChange, ContractReport, Contracts, Description};
pub use endpoint::Endpoint;
pub use error::{NodeError, NodeErrorCode};
pub use nodes::{Head, Nodes, Speed};
pub use preconditions::{Ends, Preconditions, Unmet};
pub use settle::{Attempt, SettlementKey};
