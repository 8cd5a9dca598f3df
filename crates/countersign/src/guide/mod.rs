//! Guide: what a wallet supplies, and what to do with what comes back. These modules contain no items.
//!
//! | page | contents |
//! |---|---|
//! | [`request`] | what the wallet asks for |
//! | [`registry`] | the pinned chains, assets, solvers and sponsors |
//! | [`policy`] | the limits of what the wallet signs |
//! | [`wallets`] | the wallet context: nonce, fees, coins, blockhash |
//! | [`external`] | external wallets and signers of teams: signatures, PSBTs, transactions and bundles from outside |
//! | [`accounts`] | accounts with code: Safe, ERC-1271, ERC-4337, EIP-7702, multisigs: what is proven of what they sign and send |
//! | [`versions`] | features: which versions of a chain's SDK fit, and what to do with others |
//! | [`restart`] | what a wallet stores so that it can continue after a restart |
//! | [`refusals`] | refusals and warnings: what they contain, and who has to act |
//! | [`swaps`] | what comes after the signature: evidence, redemption, refund |
//! | [`recovery`] | refunds and redemptions, from an order record alone |

pub mod accounts;
pub mod external;
pub mod policy;
pub mod recovery;
pub mod refusals;
pub mod registry;
pub mod request;
pub mod restart;
pub mod swaps;
pub mod versions;
pub mod wallets;
