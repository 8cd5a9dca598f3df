//! countersign checks what a cross-chain swap service asks a wallet to sign.
//!
//! A create-order response is decoded, rebuilt from the order's own terms, refused where the two differ, explained in
//! words, and only then turned into bytes for a signer. [`open`] finds the family by the source asset's pinned chain; the
//! states ([`AnyProposed`], [`AnyVerified`], [`AnyUnsigned`], [`AnySigned`]) lead through the steps. A wallet that wants one
//! family's native types uses that family's crate through [`evm`] and its like.
#![cfg_attr(doctest, doc = include_str!("../../../README.md"))]

mod any;
pub mod case;

pub use any::{AnyProposed, AnySigned, AnyUnsigned, AnyVerified, FAMILIES, open};
#[cfg(feature = "bitcoin")]
pub use countersign_bitcoin as bitcoin;
pub use countersign_core as core;
pub use countersign_core::{
    Approvals, AssetId, Code, Documents, Family, Line, Policy, Refusal, Registry, SecretHash, SigningRequest, ByteCoverage, Summary, Topic,
    Warning, Warnings, chains, json, wire,
};
#[cfg(feature = "evm")]
pub use countersign_evm as evm;
#[cfg(feature = "solana")]
pub use countersign_solana as solana;
#[cfg(feature = "starknet")]
pub use countersign_starknet as starknet;
#[cfg(feature = "sui")]
pub use countersign_sui as sui;
#[cfg(feature = "tron")]
pub use countersign_tron as tron;
