//! The values that the objects return: immutable, with named attributes.

use countersign::Hex;
use countersign_json::objects;
use pyo3::prelude::*;

/// Declares a Python class with the attributes of a struct of [`objects`]. A field is moved, or converted by the closure after `=`.
macro_rules! value {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty $(= $convert:expr)?,)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, eq, get_all, module = "countersign")]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct $name {
            $($(#[$field_doc])* $field: $type,)*
        }

        #[pymethods]
        impl $name {
            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let members = [$(format!("{}={}", stringify!($field), slf.getattr(stringify!($field))?.repr()?)),*];
                Ok(format!("{}({})", stringify!($name), members.join(", ")))
            }
        }

        impl From<objects::$name> for $name {
            fn from(value: objects::$name) -> Self {
                Self { $($field: value!(@ value.$field $(, $convert)?),)* }
            }
        }
    };
    (@ $value:expr) => { $value };
    (@ $value:expr, $convert:expr) => { $convert($value) };
}

value! {
    /// One value, as text for people and in parts for programs.
    Value {
        /// `text`, `number`, `at_least`, `at_most`, `amount`, `account`, `hash` or `timelock`.
        kind: String,
        /// The value as a person reads it; untrusted text in it is escaped.
        text: String,
        /// Numbers, amounts and timelocks: decimal digits of the base units, blocks, slots or milliseconds.
        number: Option<String>,
        /// Amounts: the asset's symbol. Timelocks: `blocks`, `slots` or `ms`.
        unit: Option<String>,
        /// Amounts: decimal places of one whole unit.
        decimals: Option<u8>,
    }
}

value! {
    /// One line of a summary.
    Line {
        /// What the line is about.
        topic: String,
        /// What the line says; untrusted text in it is escaped.
        text: String,
        /// `info`, `caution` or `danger`.
        severity: String,
        /// The values that the text is made of.
        values: Vec<Value> = |values: Vec<objects::Value>| values.into_iter().map(Value::from).collect(),
    }
}

value! {
    /// Something that the owner should know before signing.
    Notice {
        /// The stable code.
        code: String,
        /// The text that a person reads.
        message: String,
        /// `info`, `caution` or `danger`.
        severity: String,
    }
}

value! {
    /// Which bytes of the response the lines about one topic describe.
    Coverage {
        /// The topic of the lines.
        topic: String,
        /// The JSON pointer of the payload.
        at: String,
        /// The first byte in the decoded payload; None where the whole member is meant.
        start: Option<u64>,
        /// The byte after the last one.
        end: Option<u64>,
        /// What these bytes are.
        what: String,
    }
}

value! {
    /// The terms that the owner agrees to.
    Terms {
        /// The order's id.
        order_id: String,
        /// The family that signs.
        family: String,
        /// What the owner pays.
        pay: Value = Value::from,
        /// The display name of the source chain.
        source_chain: String,
        /// What the owner receives, as the request has it.
        receive: Value = Value::from,
        /// The display name of the destination chain.
        destination_chain: String,
        /// Where the owner is paid.
        payout: Option<String>,
        /// Who receives a refund; on Bitcoin-like chains the x-only key. None where the payload does not state it.
        initiator: Option<String>,
        /// Who may redeem with the secret. None where the payload does not state it.
        redeemer: Option<String>,
        /// The pinned solver that the redeemer belongs to.
        solver_id: Option<String>,
        /// How long until a refund is possible. None where the payload does not state it.
        timelock: Option<Value> = |timelock: Option<objects::Value>| timelock.map(Value::from),
        /// The SHA-256 hash of the secret, in hex.
        secret_hash: Option<String>,
    }
}

value! {
    /// A payload as the wallets of its chain take it.
    Native {
        /// `evm_transaction`, `tron_transaction`, `starknet_invoke`, `typed_data`, `solana_transaction`, `sui_transaction` or
        /// `psbt`.
        kind: String,
        /// JSON for the first four kinds, base64 for the others.
        value: String,
    }
}

value! {
    /// Something to sign.
    Request {
        /// The name under which the signature is attached.
        name: String,
        /// The account whose signature is needed.
        signer: String,
        /// The signature scheme.
        scheme: String,
        /// The bytes that the digest is computed from.
        payload: Vec<u8> = |Hex(bytes)| bytes,
        /// The bytes that are signed. Ed25519 signs the payload itself, which is then here too.
        digest: Vec<u8> = |Hex(bytes)| bytes,
        /// The payload as the wallets of the chain take it.
        native: Native = Native::from,
    }
}

value! {
    /// A signed transaction.
    Transaction {
        /// What it does.
        role: String,
        /// Its id, as explorers write it.
        id: String,
        /// What nodes accept: the bytes in hex, on EVM chains with `0x`; on Starknet and Sui the JSON of their interfaces.
        payload: String,
        /// The outputs that it spends, on Bitcoin-like chains.
        spends: Vec<String>,
    }
}

value! {
    /// What one HTLC of a swap must hold, and where it is.
    HtlcTerms {
        /// The chain's name in asset ids.
        chain: String,
        /// The chain's family.
        family: String,
        /// The asset's id.
        asset: String,
        /// The pinned contract, program or package; on Bitcoin-like chains the internal key.
        htlc: Option<String>,
        /// Sui: the registry object of the pinned package.
        htlc_registry: Option<String>,
        /// The pinned token, as the registry writes it. None for the chain's own coin.
        token: Option<String>,
        /// The pinned generation of the contract.
        generation: Option<String>,
        /// The swap's id in the record; on Bitcoin-like chains the HTLC's address.
        swap_id: String,
        /// What stores the swap: the swap account on Solana, the order's dynamic field on Sui. None where it is read by its id.
        account: Option<String>,
        /// Tokens on Solana: the account that holds the tokens of all swaps.
        vault: Option<String>,
        /// Who pays and gets a refund; on Bitcoin-like chains the x-only key.
        initiator: String,
        /// Who redeems with the secret; on Bitcoin-like chains the x-only key.
        redeemer: String,
        /// Decimal digits of the base units.
        amount: String,
        /// The timelock, in `unit`.
        timelock: u64,
        /// `blocks`, `slots` or `ms`.
        unit: String,
        /// Nominal milliseconds of one unit.
        unit_millis: u64,
        /// SHA-256 of the secret, in hex.
        secret_hash: String,
    }
}

value! {
    /// The state of one HTLC.
    Htlc {
        /// `absent`, `locked`, `redeemed`, `refunded` or `unclear`.
        state: String,
        /// Locked: who gets a refund.
        initiator: Option<String>,
        /// Locked: who may redeem.
        redeemer: Option<String>,
        /// Locked: decimal digits of the base units.
        amount: Option<String>,
        /// Locked: the token, as the registry writes it. None for the chain's own coin.
        token: Option<String>,
        /// Locked: the hash that locks it, where the chain shows it.
        secret_hash: Option<String>,
        /// Locked: the timelock in the chain's own unit.
        timelock: Option<u64>,
        /// Locked: how much of the timelock has passed.
        elapsed: Option<u64>,
        /// Locked: whether what the HTLC holds covers the amount.
        covered: Option<bool>,
        /// Redeemed: the secret in hex, where the transaction shows it. It is public then.
        secret: Option<String>,
        /// Redeemed or refunded: the transaction, where it is known.
        transaction: Option<String>,
        /// Unclear: why.
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
}

value! {
    /// The proof that a destination is funded, so that the secret may be revealed.
    Proof {
        /// The order that it is a proof for.
        order_id: String,
        /// What is left of the destination's timelock, in the chain's unit.
        left: u64,
        /// `blocks`, `slots` or `ms`.
        unit: String,
    }
}

/// Converts the structs of a list.
pub(crate) fn all<T, V: From<T>>(values: Vec<T>) -> Vec<V> {
    values.into_iter().map(V::from).collect()
}
