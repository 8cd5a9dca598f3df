//! What the example wallets need to run offline: a pinned registry, test keys, and a substitute for the swap service.

use countersign::{CreateOrder, Registry};

/// The examples of the READMEs, compiled as they are.
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../../crates/countersign/README.md")]
#[cfg(doctest)]
pub struct Readme;

/// Returns the registry that the wallet pinned when it was set up.
///
/// # Panics
///
/// Never: the file is part of the project.
#[must_use]
#[expect(clippy::expect_used, reason = "the file is part of the project")]
pub fn pinned_registry() -> Registry {
    Registry::from_json(include_bytes!("../../fixtures/registry.json")).expect("a valid registry file")
}

/// Returns the seed of the keypair in the Solana example. It is a test key that controls no funds.
#[must_use]
pub const fn solana_seed() -> [u8; 32] {
    *include_bytes!("../keys/solana.seed")
}

/// Returns the seed of the sender's key in the Sui example. It is a test key that controls no funds.
#[must_use]
pub const fn sui_seed() -> [u8; 32] {
    *include_bytes!("../keys/sui.seed")
}

/// A substitute for the swap service, which returns stored responses.
pub mod service {
    use super::CreateOrder;

    /// Returns the response of `POST /v2/orders`.
    #[must_use]
    pub fn create_order(request: &CreateOrder) -> &'static [u8] {
        match request.source.asset.chain() {
            "arbitrum" => include_bytes!("../service/evm.response.json"),
            "solana" => include_bytes!("../service/solana.response.json"),
            "starknet" => include_bytes!("../service/starknet.response.json"),
            "sui_testnet" => include_bytes!("../service/sui.response.json"),
            "bitcoin_testnet" => include_bytes!("../service/bitcoin.response.json"),
            _ => br#"{"status":"Error","error":"no solver for this pair"}"#,
        }
    }

    /// Returns the response of `GET /v2/orders/{id}`, which is the order record; `None` if there is none for the request.
    #[must_use]
    pub fn order(request: &CreateOrder) -> Option<&'static [u8]> {
        match request.source.asset.chain() {
            "arbitrum" => Some(include_bytes!("../service/evm.record.json")),
            "bitcoin_testnet" => Some(include_bytes!("../service/bitcoin.record.json")),
            _ => None,
        }
    }
}
