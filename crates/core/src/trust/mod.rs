//! What the wallet trusts: the registry that it has pinned, and its own policy.

mod finality;
mod policy;
mod registry;

pub use finality::{Finality, FinalityRule};
pub use policy::{ApprovalPolicy, Policy};
pub use registry::{
    Asset, Chain, Change, Contract, EvmGeneration, Generation, Notice, Registry, ServicePins, SolanaGeneration, Solver, Sponsor,
    StarknetGeneration, TokenStandard,
};
