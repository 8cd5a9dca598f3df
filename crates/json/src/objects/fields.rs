//! The structs that the objects return, declared once. A binding makes its own records from the same list.

use std::fmt;

use countersign::{U256, report::Hex};
use serde::{Serialize, Serializer};

use super::words::{Code, Family, HtlcState, PayloadKind, Role, Scheme, Severity, TimelockUnit, ValueKind};

/// Calls a macro with the structs that the objects return, each as `/// doc` `Name { /// doc` `field: Type, }`.
///
/// A type is `String`, `bool`, `u8`, `u32`, `u64`, `Hex` for bytes, `Decimal` for a number of up to 256 bits, a set of
/// [words](crate::objects::words), another struct of the list, or an `Option` or `Vec` of these.
/// [`Convert`](crate::objects::Convert) turns the values into those of the caller's structs.
#[macro_export]
macro_rules! for_each_shape {
    ($callback:ident) => {
        $callback! {
            /// One value, as text for people and in its parts for programs.
            Value {
                /// What it is.
                kind: ValueKind,
                /// The value as a person reads it; untrusted text in it is escaped.
                text: String,
                /// Of numbers, bounds, amounts and timelocks: the number, for amounts in base units, for timelocks in `unit`.
                number: Option<Decimal>,
                /// Of amounts: the asset's symbol. Of timelocks: `blocks`, `slots` or `ms`.
                unit: Option<String>,
                /// Of amounts: decimal places of one whole unit.
                decimals: Option<u8>,
            }

            /// One line of a summary.
            Line {
                /// What the line is about, such as `secret hash`.
                topic: String,
                /// The text; untrusted text in it is escaped.
                text: String,
                /// How much attention it deserves.
                severity: Severity,
                /// The values in the text.
                values: Vec<Value>,
            }

            /// A warning: something that the owner should know.
            Notice {
                /// The stable code.
                code: Code,
                /// The text that a person reads.
                message: String,
                /// How much attention it deserves.
                severity: Severity,
            }

            /// Bytes of the response that the lines of one topic describe.
            Coverage {
                /// The topic of the lines.
                topic: String,
                /// JSON pointer of the payload.
                at: String,
                /// The first byte in the decoded payload; none for the whole member.
                start: Option<u64>,
                /// The byte after the last; none for the whole member.
                end: Option<u64>,
                /// What these bytes are.
                what: String,
            }

            /// The terms that the owner agrees to.
            Terms {
                /// The order's id.
                order_id: String,
                /// The family that signs.
                family: Family,
                /// What the owner pays.
                pay: Value,
                /// Display name of the source chain.
                source_chain: String,
                /// What the owner receives, as requested.
                receive: Value,
                /// Display name of the destination chain.
                destination_chain: String,
                /// The address at which the owner is paid.
                payout: Option<String>,
                /// Who receives a refund; on Bitcoin-like chains the x-only key. None where the payload does not state it.
                initiator: Option<String>,
                /// Who may redeem with the secret. None where the payload does not state it.
                redeemer: Option<String>,
                /// The id of the pinned solver that the redeemer belongs to; none if it is not pinned.
                solver_id: Option<String>,
                /// How long until a refund is possible. None where the payload does not state it.
                timelock: Option<Value>,
                /// SHA-256 of the secret, 64 hex digits without `0x`.
                secret_hash: Option<String>,
            }

            /// A payload in the form that wallets accept.
            NativePayload {
                /// Its form.
                kind: PayloadKind,
                /// JSON (`evm_transaction`, `tron_transaction`, `starknet_invoke`, `typed_data`) or base64 (the others).
                value: String,
            }

            /// Something to sign.
            Request {
                /// The name under which the signature is attached.
                name: String,
                /// The account whose signature is needed.
                signer: String,
                /// The signature scheme.
                scheme: Scheme,
                /// The bytes that the digest is computed from.
                payload: Hex,
                /// What is signed. Ed25519 signs the payload itself, so then this is the payload too.
                digest: Hex,
                /// The payload in the form that the chain's own wallets accept.
                native: NativePayload,
            }

            /// A signed transaction.
            Transaction {
                /// What it does, such as `approval` or `initiate`.
                role: Role,
                /// Its id, as explorers write it.
                id: String,
                /// What nodes accept: the bytes in hex, on EVM chains with `0x`; on Starknet and Sui the JSON that their nodes accept.
                payload: String,
                /// The outputs that it spends, on Bitcoin-like chains.
                spends: Vec<String>,
            }

            /// What a transaction of an external wallet is in an order.
            Matched {
                /// What it does, such as `approval` or `initiate`.
                role: Role,
                /// What the wallet changed or added although it may.
                warnings: Vec<Notice>,
            }

            /// What one HTLC of a swap must hold, and where it is.
            HtlcTerms {
                /// The chain's name in asset ids.
                chain: String,
                /// The chain's family.
                family: Family,
                /// The asset's id.
                asset: String,
                /// The pinned contract, program or package; on Bitcoin-like chains the internal key.
                htlc: Option<String>,
                /// The registry object of the pinned package, on Sui.
                htlc_registry: Option<String>,
                /// The pinned token, as the registry writes it; none for the chain's own coin.
                token: Option<String>,
                /// The pinned generation of the contract, as the registry writes it.
                generation: Option<String>,
                /// The swap's id in the record; on Bitcoin-like chains the HTLC's address.
                swap_id: String,
                /// What stores the swap: the swap account on Solana, the order's dynamic field on Sui. None where it is read by its id.
                account: Option<String>,
                /// The account that holds the tokens of all swaps, for tokens on Solana.
                vault: Option<String>,
                /// Who pays and gets a refund; on Bitcoin-like chains the x-only key.
                initiator: String,
                /// Who redeems with the secret; on Bitcoin-like chains the x-only key.
                redeemer: String,
                /// The amount in base units.
                amount: Decimal,
                /// The timelock, in `unit`.
                timelock: u64,
                /// The unit of the timelock.
                unit: TimelockUnit,
                /// Nominal milliseconds of one unit.
                unit_millis: u64,
                /// SHA-256 of the secret, 64 hex digits without `0x`.
                secret_hash: String,
            }

            /// The state of one HTLC.
            Htlc {
                /// The state. Members that it does not have are empty.
                state: HtlcState,
                /// If `locked`: who gets a refund.
                initiator: Option<String>,
                /// If `locked`: who redeems.
                redeemer: Option<String>,
                /// If `locked`: the amount in base units.
                amount: Option<Decimal>,
                /// If `locked`: the token, as the registry writes it; none for the chain's own coin.
                token: Option<String>,
                /// If `locked`: the secret hash, where the chain shows it.
                secret_hash: Option<String>,
                /// If `locked`: the timelock in the chain's own unit.
                timelock: Option<u64>,
                /// If `locked`: how much of the timelock has passed, in the same unit.
                elapsed: Option<u64>,
                /// If `locked`: whether the balance of the HTLC covers the amount.
                covered: Option<bool>,
                /// If `redeemed`: the secret in hex, where the transaction shows it. It is then public.
                secret: Option<String>,
                /// If `redeemed` or `refunded`: the id of the transaction, where it is known.
                transaction: Option<String>,
                /// If `unclear`: why.
                reason: Option<String>,
                /// Height of the block at which the state was read.
                height: u64,
                /// Number of blocks from the one that created the state to the newest, both included; 0 while it is in no block.
                depth: u64,
                /// Whether the state is in a final block, by the policy's rule for the chain.
                is_final: bool,
                /// How many endpoints show this state.
                agreed: u32,
                /// How many endpoints must show it.
                needed: u32,
            }

            /// The proof that a destination is funded.
            Proof {
                /// Id of the order that the proof is for.
                order_id: String,
                /// What is left of the destination's timelock, in `unit`.
                left: u64,
                /// The unit of what is left.
                unit: TimelockUnit,
                /// The last time at which the proof is valid, in Unix seconds. Judge again after it, with a new reading.
                fresh_until: u64,
            }

            /// One value that differs between two registries.
            PinChange {
                /// The entry: `chain ethereum`, `asset ethereum:usdc`, `solver <id> on ethereum, <address>`, `sponsor on solana, <address>`.
                entry: String,
                /// The member of the entry, such as `htlc address`.
                field: String,
                /// What was pinned before; none if it is new.
                old: Option<String>,
                /// What would be pinned now; none if it is gone.
                new: Option<String>,
            }
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
            #[non_exhaustive]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }
        )*
    };
}
for_each_shape! { declare }

/// Turns a value of the library into the value of a binding. A binding implements this for the structs that it declares.
pub trait Convert<T> {
    /// Returns the binding's value.
    fn convert(self) -> T;
}

macro_rules! unchanged {
    ($($type:ty),*) => {
        $(impl Convert<$type> for $type {
            fn convert(self) -> $type {
                self
            }
        })*
    };
}
unchanged!(String, bool, u8, u32, u64);

/// A number that may exceed 64 bits, such as an amount in base units. It serializes as a decimal string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal(pub U256);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Convert<String> for Decimal {
    fn convert(self) -> String {
        self.to_string()
    }
}

impl Convert<Vec<u8>> for Hex {
    fn convert(self) -> Vec<u8> {
        self.0
    }
}

impl<T: Convert<U>, U> Convert<Option<U>> for Option<T> {
    fn convert(self) -> Option<U> {
        self.map(T::convert)
    }
}

impl<T: Convert<U>, U> Convert<Vec<U>> for Vec<T> {
    fn convert(self) -> Vec<U> {
        self.into_iter().map(T::convert).collect()
    }
}
