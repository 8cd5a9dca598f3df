//! What the wallet trusts: what it has pinned, and its own limits.

mod finality;
mod policy;
mod registry;

pub use finality::{Finality, FinalityRule};
pub use policy::{ApprovalPolicy, Policy};
pub use registry::{
    Asset, Chain, Change, Contract, EvmGeneration, Generation, Notice, Registry, ServicePins, SolanaGeneration, Solver, Sponsor,
    StarknetGeneration,
};
