#![doc = include_str!("../README.md")]

pub mod hashes;
pub mod receipt;
