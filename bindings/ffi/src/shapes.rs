//! The records of the interface: the structs of `countersign_json::objects`, as UniFFI needs them declared.

use countersign_json::objects;

/// Converts a list of the library's structs.
pub(crate) fn list<T, U: From<T>>(items: Vec<T>) -> Vec<U> {
    items.into_iter().map(U::from).collect()
}

/// Declares a record with the fields of the library's struct, which may grow, and the conversion from it.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident = $of:ty { $($(#[$field_doc:meta])* $field:ident: $type:ty $(= $convert:expr)?,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl From<$of> for $name {
            fn from(from: $of) -> Self {
                Self { $($field: record!(@value from.$field $(, $convert)?),)* }
            }
        }
    };
    (@value $value:expr) => { $value };
    (@value $value:expr, $convert:expr) => { $convert($value) };
}

record! {
    /// One value, as text for people and in parts for programs.
    Value = objects::Value {
        /// `text`, `number`, `at_least`, `at_most`, `amount`, `account`, `hash` or `timelock`.
        kind: String,
        /// The value as a person reads it; untrusted text in it is escaped.
        text: String,
        /// Numbers, amounts and timelocks: the decimal number of base units, blocks, slots or milliseconds.
        number: Option<String>,
        /// Amounts: the asset's symbol. Timelocks: `blocks`, `slots` or `ms`.
        unit: Option<String>,
        /// Amounts: decimal places of one whole unit.
        decimals: Option<u8>,
    }
}

record! {
    /// One line of a summary.
    Line = objects::Line {
        /// What it is about.
        topic: String,
        /// What it says; untrusted text in it is escaped.
        text: String,
        /// `info`, `caution` or `danger`.
        severity: String,
        /// The values that the text is made of.
        values: Vec<Value> = list,
    }
}

record! {
    /// Something that the owner should know.
    Warning = objects::Notice {
        /// The stable code.
        code: String,
        /// The text that a person reads.
        message: String,
        /// `info`, `caution` or `danger`.
        severity: String,
    }
}

record! {
    /// Which bytes of the response the lines about one topic cover.
    Coverage = objects::Coverage {
        /// The topic of the lines.
        topic: String,
        /// JSON pointer of the payload.
        at: String,
        /// First byte in the decoded payload; none for the whole member.
        start: Option<u64>,
        /// The byte after the last.
        end: Option<u64>,
        /// What these bytes are.
        what: String,
    }
}

record! {
    /// The terms that the owner agrees to.
    Terms = objects::Terms {
        /// The order's id.
        order_id: String,
        /// The family that signs.
        family: String,
        /// What the owner pays.
        pay: Value = Value::from,
        /// Display name of the source chain.
        source_chain: String,
        /// What the owner receives, as the request has it.
        receive: Value = Value::from,
        /// Display name of the destination chain.
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
        timelock: Option<Value> = |value: Option<objects::Value>| value.map(Value::from),
        /// SHA-256 of the secret, in hex.
        secret_hash: Option<String>,
    }
}

record! {
    /// A payload as the chain's own wallets take it.
    NativePayload = objects::Native {
        /// `evm_transaction`, `tron_transaction`, `starknet_invoke`, `typed_data`, `solana_transaction`, `sui_transaction` or
        /// `psbt`.
        kind: String,
        /// JSON (`evm_transaction`, `tron_transaction`, `starknet_invoke`, `typed_data`) or base64 (the others).
        value: String,
    }
}

record! {
    /// Something to sign.
    Request = objects::Request {
        /// The name under which the signature is attached.
        name: String,
        /// The account whose signature is needed.
        signer: String,
        /// `secp256k1_keccak256`, `secp256k1_sha256`, `secp256k1_sha256d`, `bip340`, `ed25519`, `sui` or `stark`.
        scheme: String,
        /// The bytes that the digest is computed from.
        payload: Vec<u8> = |bytes: countersign::Hex| bytes.0,
        /// What is signed; Ed25519 signs the payload itself, which is then here too.
        digest: Vec<u8> = |bytes: countersign::Hex| bytes.0,
        /// The payload as the chain's own wallets take it.
        native: NativePayload = NativePayload::from,
    }
}

record! {
    /// A signed transaction.
    Transaction = objects::Transaction {
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

record! {
    /// The state of one HTLC.
    Htlc = objects::Htlc {
        /// `absent`, `locked`, `redeemed`, `refunded` or `unclear`.
        state: String,
        /// `locked`: who gets a refund.
        initiator: Option<String>,
        /// `locked`: who redeems.
        redeemer: Option<String>,
        /// `locked`: base units, decimal.
        amount: Option<String>,
        /// `locked`: the token, as the registry writes it; none for the chain's own coin.
        token: Option<String>,
        /// `locked`: the hash that locks it, where the chain shows it.
        secret_hash: Option<String>,
        /// `locked`: the timelock in the chain's own unit.
        timelock: Option<u64>,
        /// `locked`: how much of the timelock has passed.
        elapsed: Option<u64>,
        /// `locked`: whether what the HTLC holds covers the amount.
        covered: Option<bool>,
        /// `redeemed`: the secret in hex, where the transaction shows it. It is public then.
        secret: Option<String>,
        /// `redeemed`, `refunded`: the transaction, where it is known.
        transaction: Option<String>,
        /// `unclear`: why.
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

record! {
    /// The proof that a destination is funded.
    Proof = objects::Proof {
        /// The order that it is a proof for.
        order_id: String,
        /// What is left of the destination's timelock, in the chain's unit.
        left: u64,
        /// `blocks`, `slots` or `ms`.
        unit: String,
    }
}

record! {
    /// What one HTLC of a swap must hold, and where it is.
    HtlcTerms = objects::HtlcTerms {
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
        /// The pinned token, as the registry writes it; none for the chain's own coin.
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
        /// Base units, decimal.
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
