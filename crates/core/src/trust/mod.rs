//! What the wallet trusts: the registry that it has pinned, and its own policy.

mod limits;
mod policy;
mod registry;

pub use limits::{BitcoinLimits, EvmLimits, SolanaLimits, StarknetLimits, SuiLimits, TronLimits};
pub use policy::{ApprovalPolicy, Policy};
pub(crate) use registry::ContractKind;
pub use registry::{
    Asset, Chain, Change, Contract, EvmGeneration, Generation, Notice, Registry, ServicePins, SolanaGeneration, Solver, Sponsor,
    StarknetGeneration, TokenStandard,
};
