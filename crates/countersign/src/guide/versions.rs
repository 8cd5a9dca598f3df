//! Features, which versions of a chain's own crates work with this one, and what to do with other versions.
//!
//! Rust treats the types of two major versions of a crate as different types; before 1.0, those of two minor versions. With a version of
//! the second column, pass values of the wallet's SDK in and out as they are. With any other version, use the last column: bytes, text or a
//! closure, which do not depend on a version. The versions are ranges, so that Cargo builds each crate once for the wallet and this
//! library.
//!
//! | family | works with | feature | with any other version |
//! |---|---|---|---|
//! | EVM | `alloy-consensus` 2.5, `alloy-primitives` 1.7, `alloy-dyn-abi` 1.7; `alloy` 2 re-exports them | `evm` | bytes (EIP-2718): [`matches_bytes`](crate::VerifiedOrder::matches_bytes), `SignedTransaction::bytes` |
//! | | signers: `alloy-signer` 2.5, `alloy-network` 2.5 with its `EthereumWallet` | `alloy-signer` | [`sign_with_fn`](crate::UnsignedOrder::sign_with_fn) with the digest |
//! | Tron | no crate: protobuf bytes, and the JSON of TronWeb | `tron` | |
//! | Starknet | `starknet-types-core` 0.2, the `Felt` of every current crate | `starknet` | |
//! | | types: `starknet-core` 0.16; `starknet` 0.17 re-exports it | `starknet-rs` | JSON: `matches_bytes`, [`requests`](crate::UnsignedOrder::requests) |
//! | | types: `starknet-rust-core` 0.20, which `starknet-rust` re-exports | `starknet-rust` | the same |
//! | | signers: `starknet-signers` 0.14 | `starknet-signer` | `sign_with_fn` with `[Felt; 2]` |
//! | | signers: `starknet-rust-signers` 0.20 | `starknet-rust-signer` | the same |
//! | Solana | `solana-transaction` 4.1, `solana-message` 4.3, `solana-instruction` 3, `solana-signature` 3, `solana-address` 2.6 | `solana` | bytes: `matches_bytes`, `SignedTransaction::bytes` |
//! | | `solana-transaction` 5, `solana-message` 5, `solana-instruction` 4, and the same addresses and signatures | `solana-5` | the same |
//! | | `solana-transaction` 6, `solana-message` 6, `solana-instruction` 4, and the same addresses and signatures | `solana-6` | the same |
//! | | signers: `solana-signer` 3, with `solana-keypair` 3 | `solana-signer-3` | `sign_with_fn` with 64 bytes |
//! | | signers: `solana-signer` 4, with `solana-keypair` 4 | `solana-signer-4` | the same |
//! | Sui | `sui-sdk-types` 0.4 | `sui` | BCS: `matches_bytes`, `SigningRequest::message` |
//! | | signers: `sui-crypto` 0.4 | `sui-signer` | `sign_with_fn`, or [`attach_text`](crate::UnsignedOrder::attach_text) with the flag, signature and key in base64 |
//! | Bitcoin, Litecoin | `bitcoin` 0.32; `bdk_wallet` 3 has it | `bitcoin` | a PSBT in base64: `attach_text`; consensus bytes: `matches_bytes` |
//!
//! The feature `solana-signer` turns on the newer of the two features for Solana's signers. Both may be on. So may all four for
//! Starknet, whose `starknet-rust` is the maintained fork of starknet-rs. Turn on one of `solana`, `solana-5` and `solana-6`. A build
//! that has several uses the types of the lowest version; pass the others as bytes. `.ci/neighbours` in the repository builds small wallets
//! together with these SDKs.
//!
//! Two more features name no version. All families and `libsecp256k1` are on by default.
//!
//! | feature | what it does |
//! |---|---|
//! | `libsecp256k1` | EVM and Tron sign by libsecp256k1, in C; without it `k256` makes the same signatures |
//! | `qr` | QR codes of Bitcoin payment URIs |
//!
//! ```toml
//! [dependencies]
//! countersign = { version = "0.1", default-features = false, features = ["solana-6", "solana-signer-4"] }
//! solana-keypair = "4"
//! solana-transaction = "6" # the version of the feature: the same types
//! ```
