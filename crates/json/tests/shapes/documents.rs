//! The documents of an order that `countersign-core` reads, and a line of output. The rules are in `docs/spec/batch.md`.

use crate::model::{Shape, shapes};

/// Returns the objects.
pub(crate) fn documents() -> Vec<Shape> {
    shapes! {
        /// What a wallet requests.
        CreateOrder {
            /// What the owner pays.
            source: RequestedLeg,
            /// What the owner receives.
            destination: RequestedLeg,
            /// SHA-256 of the secret, if the wallet has chosen it.
            secret_hash: Option<Hash>,
            /// The solver of the quote.
            solver_id: Option<String>,
            /// How much less the owner accepts, in basis points.
            slippage: Option<Number>,
            /// A number that tells apart orders with otherwise equal terms.
            nonce: Option<Number>,
            /// Fees for affiliates.
            affiliate_fees: Option<Vec<AffiliateFee>>,
        }

        /// One leg of a request.
        RequestedLeg {
            /// The asset's id.
            asset: AssetId,
            /// The owner's address on this chain; required except for a Bitcoin-like source.
            owner: Option<String>,
            /// The amount in base units.
            amount: Decimal,
            /// The account that acts for the owner.
            delegate: Option<String>,
        }

        /// A fee for an affiliate.
        AffiliateFee {
            /// The asset in which it is paid.
            asset: AssetId,
            /// Who receives it.
            address: String,
            /// The fee in basis points.
            fee: Number,
        }

        /// The chains, assets, solvers and sponsors that a wallet has pinned.
        Registry {
            /// The chains.
            chains: Vec<Chain>,
            /// The assets.
            assets: Vec<Asset>,
            /// The solvers. With none pinned, every order has a warning.
            solvers: Option<Vec<Solver>>,
            /// Accounts that pay for gasless Solana transactions.
            sponsors: Option<Vec<Sponsor>>,
        }

        /// A pinned chain.
        Chain {
            /// The chain's name in asset ids.
            chain: String,
            /// `<family>:<network>`, such as `evm:1`.
            id: String,
            /// Display name.
            name: Option<String>,
            /// Block explorer.
            explorer_url: Option<String>,
            /// The chain's own coin.
            native_asset_id: Option<String>,
            /// Nominal seconds per unit of a timelock. They come before those that are known of the chain.
            block_time: Option<Seconds>,
            /// The fewest seconds per unit of a timelock. They count where no pace was measured.
            min_block_time: Option<Seconds>,
            /// The source timelock that the service lists, in the chain's unit.
            source_timelock: Option<Number>,
        }

        /// A pinned asset.
        Asset {
            /// The asset's id.
            id: AssetId,
            /// The name of a listed chain.
            chain: String,
            /// Display name.
            name: Option<String>,
            /// The network part of the chain's id.
            chain_id: Option<NumberOrText>,
            /// Decimal places of one whole unit, at most 77.
            decimals: Integer,
            /// The HTLC; required for a source.
            htlc: Option<Contract>,
            /// The token; none for the chain's own coin.
            token: Option<Contract>,
            /// An amount below this has a warning, in base units.
            min_amount: Option<Decimal>,
            /// An amount above this has a warning, in base units.
            max_amount: Option<Decimal>,
        }

        /// A pinned contract, program, package or key.
        Contract {
            /// The address; of a Bitcoin-like HTLC the x-only internal key, of a Sui token the coin type.
            address: String,
            /// Schema name.
            schema: Option<String>,
            /// The shared orders registry, of a Sui HTLC.
            registry: Option<String>,
            /// The version at which the registry became shared, on Sui.
            registry_initial_shared_version: Option<NumberOrText>,
            /// The domain of its typed data.
            domain: Option<Map<NumberOrText>>,
            /// Its generation.
            generation: Option<String>,
        }

        /// A pinned account of a solver. It has a `chain`, or else `assets`.
        Solver {
            /// The solver's id.
            solver_id: String,
            /// The account; on Bitcoin-like chains the x-only key.
            address: String,
            /// The chain of the account.
            chain: Option<String>,
            /// Assets on whose chains the account is pinned.
            assets: Option<Vec<SolverAsset>>,
            /// Another name of `assets`.
            liquidity: Option<Vec<SolverAsset>>,
        }

        /// An asset that a solver pays.
        SolverAsset {
            /// The asset's id.
            asset: AssetId,
        }

        /// An account that pays for gasless Solana transactions.
        Sponsor {
            /// The name of a listed chain.
            chain: String,
            /// The account.
            address: String,
        }

        /// The wallet's own limits. A missing member has its default value.
        Policy {
            /// Longest source timelock on EVM chains, in blocks.
            evm_timelock: Option<Integer>,
            /// Longest source timelock on Tron, in blocks.
            tron_timelock: Option<Integer>,
            /// Longest source timelock on Starknet, in blocks.
            starknet_timelock: Option<Integer>,
            /// Longest source timelock on Solana, in slots.
            solana_timelock: Option<Integer>,
            /// Longest source timelock on Sui, in milliseconds.
            sui_timelock: Option<Integer>,
            /// Longest source timelock on Bitcoin and Litecoin, in blocks.
            bitcoin_timelock: Option<Integer>,
            /// Longest source timelock in nominal seconds, by chain name, or `*` for all others.
            max_timelock_seconds: Option<Map<Integer>>,
            /// Highest gas limit of one call on EVM chains.
            evm_gas_limit: Option<Integer>,
            /// Highest price of gas that is taken from a node, in gwei.
            evm_gas_price: Option<Integer>,
            /// Highest fee limit of one call on Tron, in sun.
            tron_fee_limit: Option<Integer>,
            /// Highest gas budget that is proposed from a node's simulation, in MIST.
            sui_gas_budget: Option<Integer>,
            /// Highest fee that resource bounds proposed from a node allow in all, in 10⁹ FRI.
            starknet_fee: Option<Integer>,
            /// Highest fee rate on Bitcoin and Litecoin, in sat/vB.
            bitcoin_fee_rate: Option<Integer>,
            /// Highest price that a Solana transaction may set, in micro-lamports per compute unit. Null refuses the instruction.
            solana_compute_unit_price: Option<Integer>,
            /// Highest limit that a Solana transaction may set, in compute units. Null refuses the instruction.
            solana_compute_unit_limit: Option<Integer>,
            /// Whether a Solana transaction may create the owner's token account.
            solana_create_associated_account: Option<bool>,
            /// Longest memo of a Solana transaction, in bytes. Null refuses memos.
            solana_memo: Option<Integer>,
            /// What to do with an approval that is not of exactly the amount.
            approvals: Option<ApprovalPolicy>,
            /// When a payment counts as made, by the name of the destination chain.
            finality: Option<Map<FinalityRule>>,
            /// Warnings that make an order refused.
            refused_warnings: Option<Vec<Code>>,
            /// Warnings that the program accepts without asking.
            accepted_warnings: Option<Vec<Code>>,
        }

        /// When a payment on a destination chain counts as made. Numbers are in the unit of the chain's timelocks, and texts such as
        /// `600 s` are durations.
        FinalityRule {
            /// The chain's own mark, or a depth in blocks.
            finality: Finality,
            /// How much usually passes until the payment is final.
            settle: NumberOrText,
            /// How much must be left of the timelock when the secret is released.
            margin: NumberOrText,
        }

        /// An accepted case.
        Accepted {
            /// The id of the case.
            id: String,
            /// Accepted.
            ok: True,
            /// The family that signs.
            family: Family,
            /// The order's id, as the response has it.
            order_id: String,
            /// What to sign, as `docs/spec/batch.md` describes it for each family.
            artefacts: Object,
            /// Lines for people.
            summary: Vec<String>,
            /// What the owner should know.
            warnings: Vec<ResultWarning>,
        }

        /// A warning.
        ResultWarning {
            /// The stable code.
            code: Code,
            /// The text that a person reads.
            message: String,
        }

        /// A refused case.
        Refused {
            /// The id of the case; null unless exactly one can be read.
            id: Option<String>,
            /// Refused.
            ok: False,
            /// Why.
            error: ResultError,
        }

        /// Why a case was refused.
        ResultError {
            /// The stable code.
            code: Code,
            /// What is wrong, and what to do.
            message: String,
            /// Where: a JSON pointer, with a byte range behind `#` inside a payload. Empty where the whole line is meant.
            at: String,
            /// What would have been accepted.
            expected: Option<String>,
            /// What was received.
            got: Option<String>,
        }
    }
}
