//! The closed sets of words that the objects return and take. Bindings and documents take them from the same list.
//!
//! In Rust, and in languages without literal types, each is a string, because a later version may add a word.

/// A closed set of words.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct WordSet {
    /// The name, which is that of the type in languages with literal types.
    pub name: &'static str,
    /// The lines of its documentation.
    pub doc: &'static [&'static str],
    /// Returns the words.
    pub words: fn() -> Vec<&'static str>,
}

/// Returns the words of the set with this name; none if there is no such set.
#[must_use]
pub fn of(name: &str) -> Vec<&'static str> {
    ALL.iter().find(|set| set.name == name).map_or_else(Vec::new, |set| (set.words)())
}

/// Declares the sets, each as `/// doc` `Name = words;`, where `words` is something to iterate over whose items are text.
macro_rules! word_sets {
    ($($(#[doc = $doc:literal])* $name:ident = $words:expr;)*) => {
        /// Every set.
        pub const ALL: &[WordSet] = &[$(WordSet {
            name: stringify!($name),
            doc: &[$($doc),*],
            words: || $words.into_iter().collect(),
        }),*];

        $($(#[doc = $doc])* pub type $name = String;)*
    };
}

word_sets! {
    /// A chain family. Litecoin is of the family `bitcoin`.
    Family = countersign::Family::ALL.iter().map(|family| family.name());

    /// A leg of the swap: `source`, what the owner pays, or `destination`, what the owner receives.
    Leg = ["source", "destination"];

    /// How much attention something deserves.
    Severity = ["info", "caution", "danger"];

    /// What a value is.
    ValueKind = ["text", "number", "at_least", "at_most", "amount", "account", "hash", "timelock"];

    /// The unit of a timelock.
    TimelockUnit = ["blocks", "slots", "ms"];

    /// The form of a payload: JSON (`evm_transaction`, `tron_transaction`, `starknet_invoke`, `typed_data`) or base64 (the others).
    PayloadKind = [
        "evm_transaction", "tron_transaction", "starknet_invoke", "typed_data", "solana_transaction", "sui_transaction", "psbt",
    ];

    /// A signature scheme, with the hash of its digest.
    Scheme = ["secp256k1_keccak256", "secp256k1_sha256", "secp256k1_sha256d", "bip340", "ed25519", "sui", "stark"];

    /// What a transaction does.
    Role = countersign::Role::ALL.iter().map(|role| role.name());

    /// The state of an HTLC. `unclear` never counts as funded.
    HtlcState = ["absent", "locked", "redeemed", "refunded", "unclear"];

    /// Where Starknet keeps a nonce, or takes a fee.
    DataAvailabilityMode = ["L1", "L2"];

    /// Which outputs of a Bitcoin-like wallet are spent: `all`, or those with the lowest fee.
    CoinSelection = ["all", "lowest_fee"];

    /// The order of inputs and outputs of a Bitcoin-like transaction: as `given`, by BIP 69, or `shuffled` with a seed.
    TxOrdering = ["given", "bip69", "shuffled"];

    /// The names of the functions of the HTLC package on Sui.
    FunctionNames = ["current", "older"];

    /// Who has to act: the `service`, because the response or the record is wrong; the `caller`, because of an argument, a key or
    /// a document of the wallet's own; nobody if the order is `unsupported` by this build; nobody but time or the other party if
    /// the `chain` does not show what is needed; the developers of this library if it is a `bug`.
    Blame = ["service", "caller", "unsupported", "chain", "bug"];

    /// The code of a refusal or a warning.
    Code = countersign::Code::ALL.iter().map(|code| code.name());

    /// Why the secret must not be released.
    HoldCode = countersign::evidence::HoldCode::ALL.iter().map(|code| code.name());

    /// What is wrong with an endpoint, apart from the codes of refusals.
    FaultCode = [
        "connect", "timeout", "interrupted", "response_too_large", "unsupported", "network", "node_http_status", "node_error",
        "node_malformed", "node_wrong_chain", "node_went_back", "node_too_much", "transaction_rejected",
    ];

    /// Why a call failed, apart from the other codes: the object is `used_up`, an argument is invalid (`usage`), or a signature
    /// is missing.
    CallCode = ["used_up", "usage", "signature_missing"];

    /// Why a whole swap, or a call of it, failed, apart from the other codes: the owner, the store, the service, a node, or the
    /// connection to one of them. A test of `countersign-swap` compares them with what it returns.
    SwapCode = [
        "declined", "not_signed", "owner_unavailable", "store_failed", "contract_changed", "secret_used", "derive_failed", "failed",
        "http_status", "service_error", "random", "no_quote", "quote_mismatch", "quote_too_low", "transport_connect",
        "transport_timeout", "transport_interrupted", "transport_too_large", "transport_encoded", "transport_setup",
        "transport_insecure", "node_disagree", "node_endpoint", "not_connected",
    ];

    /// What happened in a whole swap: the member `event`.
    SwapEvent = ["quoted", "phrase_created", "contract", "warning", "created", "deposit", "status", "alert", "stopped", "listed", "failed"];

    /// The status of an order of a whole swap.
    SwapStatusName = [
        "unsigned", "expired", "paying", "needs_owner", "waiting", "redeeming", "redeem_now", "awaiting_refund", "refunding",
        "refused", "lost", "ended",
    ];

    /// What only the owner can do for a whole swap.
    SwapTask = ["secret", "broadcast_funding", "redeem", "broadcast_redemption", "refund"];

    /// How a swap ended.
    SwapOutcome = ["complete", "refunded", "expired", "lost"];

    /// What the owner of a whole swap should hear at once.
    SwapAlert = ["retrying", "maybe_paid", "redeem_now", "stated_only", "other"];

    /// Why an order is not followed any longer. It ended, or only the service says so, or something is in the way.
    SwapStop = [
        "complete", "refunded", "expired", "lost", "stated_complete", "stated_refunded", "stated_expired", "stated_lost",
        "refunding", "not_refunded", "not_signed", "needs_owner", "evidence_needed", "unavailable", "refused", "failed", "other",
    ];

    /// What a signature is for.
    SwapPurpose = ["funding", "redemption", "refund"];
}
