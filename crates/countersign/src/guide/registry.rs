//! The registry: what the wallet has pinned.
//!
//! [`Registry`](crate::Registry) is trusted. A response is compared with it, so it must not come from the service in the same moment
//! as the response. Pin it once, show every change to the owner, and keep the file with the wallet:
//!
//! ```no_run
//! use countersign::Registry;
//!
//! let registry = Registry::from_json(&std::fs::read("registry.json")?)?;
//! for change in
//!     registry.diff(&Registry::from_json(&std::fs::read("registry.new.json")?)?)
//! {
//!     println!(
//!         "{}, {}: {:?} becomes {:?}",
//!         change.entry, change.field, change.old, change.new
//!     );
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `countersign registry pin` makes the file from the service's lists `/v2/chains`, `/v2/assets` and `/v2/liquidity`;
//! [`Registry::from_service`](crate::Registry::from_service) does the same in code. The file is one object with four arrays. `chains`
//! and `assets` are required. Members that are not listed here are ignored, because the service adds some.
//!
//! # `chains`
//!
//! | member | type | required | meaning |
//! |---|---|---|---|
//! | `chain` | text | yes | the name in asset ids, lower case: `ethereum_sepolia` |
//! | `id` | text | yes | `<family>:<network>`, such as `evm:1`, `starknet:SN_MAIN` or `litecoin:mainnet`: see [`Network`](crate::chains::Network) |
//! | `name` | text | no | display name; default: `chain` |
//! | `explorer_url` | text | no | where people look transactions up; shown, never opened |
//! | `native_asset_id` | text | no | asset id of the chain's own coin |
//! | `block_time` | seconds, number or text | no | nominal time of one unit of a timelock; comes before the one that is known here |
//! | `min_block_time` | seconds, number or text | no | the fastest time of one unit, which counts where no pace was measured |
//! | `source_timelock` | units of the chain | no | a longer source timelock is the warning `timelock_above_listed` |
//!
//! # `assets`
//!
//! | member | type | required | meaning |
//! |---|---|---|---|
//! | `id` | text | yes | `<chain>:<symbol>`: `ethereum:usdc` |
//! | `chain` | text | yes | a chain of the file |
//! | `name` | text | no | display name |
//! | `chain_id` | number or text | no | the network part of the chain's `id`; compared where it is there |
//! | `decimals` | integer up to 77 | yes | decimal places of one whole unit |
//! | `htlc` | object | for sources | the contract that locks funds: see below |
//! | `token` | object or null | no | the token's contract; null for the chain's own coin |
//! | `min_amount`, `max_amount` | base units, text | no | an amount outside is the warning `amount_outside_limits` |
//!
//! `htlc` and `token` are objects:
//!
//! | member | type | required | meaning |
//! |---|---|---|---|
//! | `address` | text | yes | the contract; on Solana the program, or the mint; on Sui the package, or the coin type; on Bitcoin and Litecoin the x-only internal key, 64 hex digits |
//! | `schema` | text | no | a token schema that contains `2022` is Solana's Token-2022 |
//! | `registry` | text | Sui HTLC | id of the shared object that holds the orders |
//! | `registry_initial_shared_version` | number or text | no | version at which that object became shared |
//! | `domain` | object | no | typed-data domain: `version` of EIP-712 and TIP-712; `name`, `version`, `chainId`, `revision` of SNIP-12 |
//! | `generation` | text | no | which generation of the contract it is: see [`Generation`](crate::trust::Generation) |
//!
//! # `solvers`
//!
//! | member | type | required | meaning |
//! |---|---|---|---|
//! | `solver_id` | text | yes | the solver |
//! | `address` | text | yes | its account; on Bitcoin and Litecoin its x-only key |
//! | `chain` | text | this or `assets` | the chain of the account |
//! | `assets` | array | this or `chain` | objects with `asset`: the account is pinned on the chain of each |
//!
//! Where solvers are pinned, a redeemer that is not one of them is refused.
//!
//! # `sponsors`
//!
//! | member | type | required | meaning |
//! |---|---|---|---|
//! | `chain` | text | yes | a Solana chain of the file |
//! | `address` | text | yes | an account that may pay for gasless transactions. Where a chain has a sponsor, every other one is refused |
//!
//! Specification: `docs/spec/batch.md#registry-file`.
