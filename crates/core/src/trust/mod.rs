//! What the wallet trusts: the registry that it has pinned, and its own policy.

pub mod generation;
pub mod limits;
mod policy;
mod registry;

pub use generation::{EvmGeneration, Generation, SolanaGeneration, StarknetGeneration};
pub use policy::{ApprovalPolicy, Policy};
pub(crate) use registry::ContractKind;
pub use registry::{Asset, Chain, Change, Contract, Notice, Registry, ServicePins, Solver, Sponsor, TokenStandard};
