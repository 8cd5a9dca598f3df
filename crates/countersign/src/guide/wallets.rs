//! The wallet context of each family, `TxContext`: what only the wallet knows and `prepare` needs.
//!
//! `prepare` borrows the verified order, so call it again with other values whenever nonce or fees change. If an order offers a gasless
//! path, [`FundingPath`](crate::FundingPath) chooses: `Gasless` needs nothing from the wallet, a context by itself is the self-funded
//! path, and `FundingPath::Both` prepares both, of which only one may be submitted. `countersign-node` makes each of these contexts from
//! the user's own endpoints.
//!
//! A wallet that does not match on the family keeps the context of any family as a [`Context`](crate::Context), and prepares with
//! [`Verified::prepare`](crate::Verified::prepare).
//!
//! Anyone may send a redemption, a refund or a claim, so the order does not say who does. Their `prepare` takes the same context together
//! with the account that sends and pays: `recovery.prepare(context.sent_by(account))`. On Bitcoin and Litecoin it takes a
//! [`Payout`](crate::bitcoin::recover::Payout) instead, because the coins need a destination.
//!
//! Where the tables say *chain*, *clock* or *simulation*, there is no default: read the value from a node for the account that sends, from
//! the clock, or from a simulation.
//!
//! # As JSON
//!
//! Each context is `Serialize` and `Deserialize` and contains no secret: see [surviving a restart](super::restart). Its members have the names
//! of the fields below. Numbers are JSON numbers, bytes are arrays of numbers, variants are their names, and addresses, felts, hashes, fee
//! rates and key origins are text; the bounds of [`ResourceBounds`](crate::starknet::ResourceBounds) and the scripts of coins are hex, and
//! Sui's coins have the form of Mysten's SDK. Later versions of this library read it too:
//!
//! - `version` is 1, and stands first. Without it a context counts as version 1, and one of a newer version is refused with this reason.
//! - A member that has a default below may be missing, and then has it. So a context of a version that did not know the member is read.
//! - Any other member is refused by its name, as a misspelt one would be ignored.
//!
//! The program and the bindings read another form, which is described in `docs/spec/batch.md#wallet-contexts`.
//!
//! # EVM: `evm::TxContext`
//!
//! | field | type, unit | default | meaning |
//! |---|---|---|---|
//! | `nonce` | integer | chain | nonce of the sender's next transaction; the approval takes it, the next call one more |
//! | `unmined` | integer | 0 | how many of the sender's earlier transactions are not mined yet; more than 0 is the warning `nonce_gap` |
//! | `fees` | wei per gas | chain | [`Fees::Eip1559`](crate::evm::Fees) with `max_fee_per_gas` and `max_priority_fee_per_gas`, or `Fees::Legacy` with `gas_price` |
//! | `chain_id` | EIP-155 | `None` | the wallet's own chain, where it names one: it must be the asset's |
//! | `approvals` | `ApprovalPlan` | `AsVerified` | which approvals precede the call, an [`ApprovalStep`](crate::ApprovalStep): `AsVerified`, `Exact`, or `AlreadyApproved` for none; `reset_first` sets the allowance to zero first |
//! | `gas_limit` | gas | the service's | gas limit of the call that locks the funds, within the policy |
//!
//! # Tron: `tron::TxContext`
//!
//! | field | type, unit | default | meaning |
//! |---|---|---|---|
//! | `ref_block_bytes` | 2 bytes | chain | bytes 6 and 7 of the reference block's number |
//! | `ref_block_hash` | 8 bytes | chain | bytes 8 to 15 of the reference block's id |
//! | `expiration` | [`UnixMillis`](crate::chains::UnixMillis) | clock | when nodes stop accepting the transactions |
//! | `timestamp` | [`UnixMillis`](crate::chains::UnixMillis) | clock | when the transactions were created |
//! | `chain_id` | integer | `None` | the wallet's own chain, where it names one |
//! | `approvals` | `ApprovalPlan` | `AsVerified` | as on EVM |
//! | `fee_limit` | sun | the service's | fee limit of the call that locks the funds, within the policy |
//!
//! # Starknet: `starknet::TxContext`
//!
//! | field | type, unit | default | meaning |
//! |---|---|---|---|
//! | `nonce` | felt | chain | nonce of the account's next transaction |
//! | `resource_bounds` | units; FRI per unit | chain | the most that is paid for L1 gas, L2 gas and L1 data gas |
//! | `tip` | FRI per unit of L2 gas | 0 | what the sender adds |
//! | `chain_id` | felt, short string | `None` | the wallet's own chain, where it names one |
//! | `public_key` | felt | `None` | the account's public key, which its address does not show; without it a signature is not proven, and a warning says so. [`KeyedPath`](crate::starknet::KeyedPath) gives it for the gasless path |
//! | `approval` | `ApprovalStep` | `AsVerified` | whether the approval precedes the call, in the same transaction: `AsVerified`, `Exact` or `AlreadyApproved` |
//! | `encoding` | `ExecutionEncoding` | `New` | how the account takes several calls: `New` for Cairo 1, `Legacy` for Cairo 0 |
//! | `paymaster_data` | felts | empty | for a paymaster |
//! | `account_deployment_data` | felts | empty | for a transaction that deploys the account |
//! | `nonce_data_availability_mode`, `fee_data_availability_mode` | L1 or L2 | L1 | only L1 works today |
//!
//! # Solana: `solana::TxContext`
//!
//! | field | type, unit | default | meaning |
//! |---|---|---|---|
//! | `recent_blockhash` | 32 bytes | the service's | a recent blockhash; it is valid for 150 blocks, less than a minute |
//! | `nonce` | nonce account, and the 32 bytes that it stores | `None` | in place of a blockhash: the transaction does not expire |
//! | `priority_fee` | micro-lamports per compute unit; compute units | the service's | a priority fee, within the policy |
//! | `last_valid_block_height` | block height | `None` | the last height at which the blockhash is valid |
//! | `block_height` | block height | `None` | the height now; with both an expired blockhash is refused |
//!
//! # Sui: `sui::TxContext`
//!
//! | field | type, unit | default | meaning |
//! |---|---|---|---|
//! | `price` | MIST per unit of gas | chain | at least the reference gas price |
//! | `budget` | MIST | simulation | the most that the transaction may cost |
//! | `payment` | object references | chain | 1 to 256 distinct coins that pay; [`Deposit::choose_gas`](crate::sui::Deposit::choose_gas) picks them. None if the address balance pays: [`TxContext::from_balance`](crate::sui::TxContext::from_balance) |
//! | `sponsor` | address | `None` | who owns these coins, where that is not the sender. The sponsor signs too |
//! | `expiration_epoch` | epoch | `None` | the last epoch in which the transaction may be executed |
//! | `valid_during` | epochs, genesis digest, number | chain | when a payment from the address balance is valid: the current epoch and the next |
//!
//! # Bitcoin and Litecoin: `bitcoin::TxContext`
//!
//! [`TxContext::address_only`](crate::bitcoin::TxContext::address_only) leaves the payment to another wallet. Otherwise:
//!
//! | field | type, unit | default | meaning |
//! |---|---|---|---|
//! | `utxos` | outputs | `None` | the wallet's coins: outpoint, output, and the previous transaction where the script needs it |
//! | `change_address` | address | `None` | where change goes |
//! | `fee_rate` | sat/vB | `None` | within the policy |
//! | `selection` | `Selection` | `All` | `All` spends all coins, `LowestFee` those with the lowest fee |
//! | `change_rule` | `ChangeRule` | `Standard` | when change is worth an output: `Standard` goes by the dust limit of the chain's nodes |
//! | `ordering` | `TxOrdering` | `Given` | order of inputs and outputs: `Given`, `Bip69`, or `Shuffled` by a seed |
//! | `origins` | key origins | empty | fingerprint and path of the wallet's keys, for hardware signers |
//! | `replaceable` | true or false | true | whether the payment signals BIP-125 |
//!
//! ```
//! # #[cfg(feature = "evm")] {
//! use countersign::evm::{ApprovalStep, TxContext};
//!
//! // Nonce 7, at most 30 gwei per gas, 1 gwei of it for the proposer, and an approval of
//! // exactly the amount.
//! let context = TxContext::eip1559(7, 30_000_000_000, 1_000_000_000)
//!     .with_approval(ApprovalStep::Exact);
//! assert_eq!(context.nonce, 7);
//! # }
//! ```
