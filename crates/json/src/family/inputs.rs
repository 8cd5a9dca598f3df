//! The objects that wallets pass in, declared once: wallet contexts, contexts of recoveries, and signatures in several parts. Bindings and
//! documents take them from the same list.

/// Calls a macro with the objects that wallets pass in, each as `/// doc` `Name { /// doc` `field: Type, }`. The context of a recovery is
/// written `Name: Base { .. }`, and also has the members of its base.
///
/// A type is a set of [words](crate::objects::words), another object of the list, or one of these. It may be in a `Vec`, and a member that
/// may be missing or null is an `Option`.
///
/// | type | JSON |
/// |---|---|
/// | `String`, `bool` | the same |
/// | `Integer` | an integer of at most 64 bits |
/// | `Decimal` | a decimal string |
/// | `Number` | an integer, a decimal string or a `0x` hex string |
/// | `NumberOrText` | the same, or other text |
/// | `IntegerOrDecimal` | an integer or a decimal string |
/// | `Hex` | bytes in `0x` hex |
/// | `BareHex` | bytes in hex without `0x` |
/// | `Felt` | `0x` and 1 to 64 hex digits |
/// | `FeeRate` | a decimal string, with decimal places if necessary |
#[macro_export]
macro_rules! for_each_input {
    ($callback:ident) => {
        $callback! {
            /// The wallet context of an EVM chain. Transactions are of type EIP-1559 with `max_fee_per_gas` and
            /// `max_priority_fee_per_gas`, and legacy ones with `gas_price`.
            EvmWallet {
                /// Nonce of the first transaction. Each further one takes the next.
                nonce: Integer,
                /// Wei per unit of gas; required without `gas_price`.
                max_fee_per_gas: Option<Decimal>,
                /// Wei per unit of gas, at most `max_fee_per_gas`; required with it.
                max_priority_fee_per_gas: Option<Decimal>,
                /// Wei per unit of gas, for a legacy transaction; ignored beside `max_fee_per_gas`.
                gas_price: Option<Decimal>,
                /// The chain that the wallet is set to, which must be that of the asset.
                chain_id: Option<Number>,
                /// Whether the allowance is set to zero first, in a transaction of its own.
                reset_approval: Option<bool>,
                /// The key of the sender, 64 hex digits. Without it nothing is signed.
                secret_key: Option<String>,
            }

            /// The wallet context of a recovery on an EVM chain.
            EvmRecovery: EvmWallet {
                /// The account that sends and pays for the transaction; the payee if it is missing.
                sender: Option<Hex>,
                /// The gas limit, at most that of the policy.
                gas_limit: Option<Number>,
                /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
                accept_low_fee: Option<bool>,
            }

            /// The wallet context of Tron.
            TronWallet {
                /// Bytes 6 and 7 of the reference block's number.
                ref_block_bytes: BareHex,
                /// Bytes 8 to 15 of the reference block's id.
                ref_block_hash: BareHex,
                /// When the transaction expires, in Unix milliseconds.
                expiration: Integer,
                /// The time of the transaction, in Unix milliseconds.
                timestamp: Integer,
                /// The chain that the wallet is set to, which must be that of the asset.
                chain_id: Option<Number>,
                /// Whether the allowance is set to zero first, in a transaction of its own.
                reset_approval: Option<bool>,
                /// The permission of the sender's account under which calls are signed: 0, which is the default, or 2 to 9.
                permission_id: Option<Integer>,
                /// The keys of that permission. Without them the sender's own key signs.
                permission: Option<TronPermission>,
                /// The key of the owner, or of the permission, 64 hex digits. Without it nothing is signed.
                secret_key: Option<String>,
            }

            /// A permission of a Tron account, as `/wallet/getaccount` returns it. Its further members are not read.
            TronPermission {
                /// Which one: `permission_id`, if both are given; otherwise 0 if it is missing.
                id: Option<Integer>,
                /// The weight that the signatures must reach.
                threshold: Integer,
                /// One to five keys, none twice.
                keys: Vec<TronKey>,
                /// The 32 bytes of what an active permission allows, which must include calls of contracts.
                operations: Option<BareHex>,
            }

            /// A key of a permission.
            TronKey {
                /// The account of the key, in base58check, or in hex with its prefix `41`.
                address: String,
                /// How much its signature counts, from 1 on.
                weight: Integer,
            }

            /// The wallet context of a recovery on Tron.
            TronRecovery: TronWallet {
                /// The account that sends and pays for the transaction; the payee if it is missing.
                sender: Option<String>,
                /// The fee limit in sun, at most that of the policy.
                fee_limit: Option<Number>,
                /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
                accept_low_fee: Option<bool>,
            }

            /// The wallet context of Starknet.
            StarknetWallet {
                /// Nonce of the account.
                nonce: Number,
                /// The most that the transaction may use and pay.
                resource_bounds: ResourceBounds,
                /// The chain that the wallet is set to, which must be that of the asset: a short string such as `SN_MAIN`, or its number.
                chain_id: Option<NumberOrText>,
                /// FRI per unit of L2 gas; 0 if it is missing.
                tip: Option<Number>,
                /// The account's public key. Without it a local key cannot be checked.
                public_key: Option<Felt>,
                /// The account's Cairo version, 0 or 1; 1 if it is missing. It determines how the account takes several calls.
                cairo_version: Option<Number>,
                /// Felts for the paymaster.
                paymaster_data: Option<Vec<Number>>,
                /// Felts that deploy the account.
                account_deployment_data: Option<Vec<Number>>,
                /// Where the nonce is kept; `L1` if it is missing.
                nonce_data_availability_mode: Option<DataAvailabilityMode>,
                /// Where the fee is paid; `L1` if it is missing.
                fee_data_availability_mode: Option<DataAvailabilityMode>,
                /// The key of the account, 1 to 64 hex digits. Without it nothing is signed.
                secret_key: Option<String>,
            }

            /// The resource bounds of a Starknet transaction.
            ResourceBounds {
                /// The bound of L1 gas.
                l1_gas: ResourceBound,
                /// The bound of L2 gas.
                l2_gas: ResourceBound,
                /// The bound of L1 data gas.
                l1_data_gas: ResourceBound,
            }

            /// The bound of one resource.
            ResourceBound {
                /// Units, at most 64 bits.
                max_amount: Number,
                /// FRI per unit, at most 128 bits.
                max_price_per_unit: Number,
            }

            /// The wallet context of a recovery on Starknet.
            StarknetRecovery: StarknetWallet {
                /// The account that sends and pays for the transaction; the payee if it is missing.
                sender: Option<Felt>,
                /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
                accept_low_fee: Option<bool>,
            }

            /// The wallet context of Solana.
            SolanaWallet {
                /// Base58 of 32 bytes. It replaces the blockhash of the response's own transaction, never that of the gasless one.
                recent_blockhash: Option<String>,
                /// A nonce account of the signer, in base58, with `nonce`: in place of a blockhash, so that the transaction does not expire.
                nonce_account: Option<String>,
                /// Base58 of the 32 bytes that the nonce account stores.
                nonce: Option<String>,
                /// The last block height at which the blockhash is valid.
                last_valid_block_height: Option<Integer>,
                /// The block height now. A blockhash that has expired is refused.
                block_height: Option<Integer>,
                /// The key of the owner, in base58. Without it nothing is signed.
                secret_key: Option<String>,
            }

            /// The wallet context of a recovery on Solana.
            SolanaRecovery: SolanaWallet {
                /// The account that pays for the transaction; the payee if it is missing.
                sender: Option<String>,
                /// The account that paid the rent of the swap of an SPL token, and gets it back.
                rent_sponsor: Option<String>,
                /// The limits of a message of version 1; without them the message is a legacy one, which every wallet can sign.
                config: Option<SolanaConfig>,
                /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
                accept_low_fee: Option<bool>,
            }

            /// The limits that a Solana message of version 1 contains.
            SolanaConfig {
                /// The most compute units that the transaction may use.
                compute_unit_limit: Integer,
                /// The most bytes of accounts that it may load, at most 64 MiB.
                loaded_accounts_data_size_limit: Integer,
                /// The whole priority fee in lamports; none if it is missing.
                priority_fee: Option<Integer>,
                /// The bytes of the heap, a multiple of 1024 between 32768 and 262144; 32768 if it is missing.
                heap_size: Option<Integer>,
            }

            /// The wallet context of Sui.
            SuiWallet {
                /// MIST per unit of gas.
                gas_price: Decimal,
                /// The most that the transaction may cost, in MIST.
                gas_budget: Decimal,
                /// The coins that pay for gas, at most 256, each once. If there is none, the address balance pays, and `valid_during` is required.
                gas_payment: Vec<GasCoin>,
                /// The owner of the gas coins; the sender if it is missing.
                sponsor: Option<Hex>,
                /// The last epoch in which the transaction may run.
                expiration_epoch: Option<Number>,
                /// When a payment from the address balance is valid.
                valid_during: Option<ValidDuring>,
                /// The key of the sender: `suiprivkey1..`, or the 64 hex digits of an Ed25519 seed. Without it nothing is signed.
                secret_key: Option<String>,
            }

            /// When a payment from the address balance of an account on Sui is valid.
            ValidDuring {
                /// The first epoch: the current one.
                min_epoch: Number,
                /// The last epoch: the first one, or the next.
                max_epoch: Number,
                /// The network: the digest of its genesis checkpoint, base58 of 32 bytes.
                chain: String,
                /// A number of at most 32 bits, which distinguishes transactions that are equal otherwise.
                nonce: Number,
            }

            /// A coin that pays for gas, or a reservation of the address balance in the form of a coin.
            GasCoin {
                /// The id of the object.
                object_id: Hex,
                /// Its version.
                version: Number,
                /// Its digest: base58 of 32 bytes.
                digest: String,
            }

            /// The wallet context of a recovery on Sui.
            SuiRecovery: SuiWallet {
                /// The account that sends the transaction; the payee if it is missing.
                sender: Option<Hex>,
                /// The names of the package's functions; `current` if it is missing.
                function_names: Option<FunctionNames>,
                /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
                accept_low_fee: Option<bool>,
            }

            /// The wallet context of Bitcoin and Litecoin. Without `utxos`, only the deposit address is wanted.
            BitcoinWallet {
                /// Outputs of the wallet, each once. With them, `change_address` and `fee_rate` are required.
                utxos: Option<Vec<Utxo>>,
                /// The address that receives the change.
                change_address: Option<String>,
                /// The fee rate in sat/vB, with decimal places if necessary; at most that of the policy.
                fee_rate: Option<FeeRate>,
                /// Which outputs are spent; `all` if it is missing.
                selection: Option<CoinSelection>,
                /// The order of inputs and outputs; `given` if it is missing.
                order: Option<TxOrdering>,
                /// 32 random bytes; required with the order `shuffled`, and refused otherwise.
                seed: Option<BareHex>,
                /// Whether the transaction can be replaced; `true` if it is missing.
                rbf: Option<bool>,
                /// Derivations of the wallet's keys, for hardware signers: `[fingerprint/path]public key`.
                origins: Option<Vec<String>>,
                /// One or more keys, separated by white space: WIF or 64 hex digits. Without it nothing is signed.
                secret_key: Option<String>,
            }

            /// An output of a Bitcoin-like wallet.
            Utxo {
                /// The id of the transaction, as it is displayed.
                txid: BareHex,
                /// The index of the output.
                vout: Integer,
                /// Base units.
                value: IntegerOrDecimal,
                /// P2WPKH, P2TR, P2SH-P2WPKH or P2PKH.
                script_pubkey: BareHex,
                /// The redeem script; required for P2SH.
                redeem_script: Option<BareHex>,
                /// The whole transaction; required for P2PKH.
                previous_tx: Option<BareHex>,
            }

            /// The wallet context of a recovery on Bitcoin and Litecoin. The fee is deducted, unless `utxos` pay it.
            BitcoinRecovery {
                /// The outputs of the HTLC, each as `<txid>:<index>:<base units>`. One that covers the amount is spent alone.
                funding: Vec<String>,
                /// The address that receives the coins.
                to: String,
                /// The fee rate in sat/vB, with decimal places if necessary; at most that of the policy.
                fee_rate: FeeRate,
                /// Outputs of the wallet that pay the fee.
                utxos: Option<Vec<Utxo>>,
                /// The address that receives the change; required with `utxos`, and refused otherwise.
                change_address: Option<String>,
                /// Derivations of the wallet's keys, for hardware signers: `[fingerprint/path]public key`.
                origins: Option<Vec<String>>,
                /// Whether a redemption may take less than the amount, or several outputs, although the secret becomes public; `false` if it is
                /// missing.
                accept_less: Option<bool>,
                /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
                accept_low_fee: Option<bool>,
                /// Whether the fee may be higher than what is paid out; `false` if it is missing.
                accept_high_fee: Option<bool>,
                /// One or more keys, separated by white space: WIF or 64 hex digits. Without it nothing is signed.
                secret_key: Option<String>,
            }

            /// The signature of a contract wallet over EVM typed data (ERC-1271).
            ContractSignature {
                /// The signature, at most 64 KiB; `0x` if the wallet keeps on chain what it signed.
                contract: Hex,
                /// Whether the account is deployed, so that the wrapper of ERC-6492 is taken off; `false` if it is missing. An order that was prepared
                /// with a connection knows it.
                deployed: Option<bool>,
            }

            /// The signature of a key on EVM or Tron, in parts. The parity is found, so `v` may be missing or have any usual form or name.
            EcdsaSignature {
                /// The first number; text without `0x` is hex.
                r: NumberOrText,
                /// The second number; text without `0x` is hex.
                s: NumberOrText,
                /// 0, 1, 27 or 28, or EIP-155's, or the last byte of it.
                v: Option<NumberOrText>,
                /// The same as `v`.
                y_parity: Option<NumberOrText>,
                /// The same as `v`.
                recovery: Option<NumberOrText>,
                /// The same as `v`.
                recovery_param: Option<NumberOrText>,
                /// The same as `v`.
                network_v: Option<NumberOrText>,
            }

            /// The signature of a key service on EVM or Tron, with the public key that made it.
            KeyServiceSignature {
                /// DER, or another form of r and s, in hex.
                signature: String,
                /// The public key: SEC 1 or a `SubjectPublicKeyInfo`, in hex.
                public_key: Option<String>,
            }

            /// A signature of a Starknet account with one key.
            StarknetSignature {
                /// The first felt.
                r: Number,
                /// The second felt.
                s: Number,
                /// Ignored: the account's key proves a signature of two felts.
                recovery: Option<Number>,
            }

            /// A signature of one input on Bitcoin-like chains, with the key that made it.
            BitcoinSignature {
                /// The signature.
                signature: BareHex,
                /// The public key.
                public_key: BareHex,
            }
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident $(: $base:ident)? { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[allow(dead_code, reason = "a build without the family does not read it")]
            pub(crate) struct $name;

            impl $name {
                /// The names of the members, without those of the base.
                #[allow(dead_code, reason = "a build without the family does not read it")]
                pub(crate) const MEMBERS: &'static [&'static str] = &[$(stringify!($field)),*];
            }
        )*

        /// The names of all members, with their types.
        const TYPES: &[(&str, &str)] = &[$($((stringify!($field), stringify!($type)),)*)*];
    };
}
for_each_input! { declare }

/// Returns how numbers are written in the member with this name, wherever it is in a wallet context: as decimal text (`true`), or as JSON
/// integers. A language with integers of its own needs this to write a context.
#[must_use]
pub fn is_decimal_text(member: &str) -> bool {
    let is_text = |kind: &str| kind.split(|letter: char| !letter.is_alphanumeric()).any(|word| matches!(word, "Decimal" | "FeeRate"));
    TYPES.iter().any(|(name, kind)| *name == member && is_text(kind))
}
