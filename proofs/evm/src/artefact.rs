//! The compiled contracts in `contracts/out`, as `contracts/build.mjs` writes them.

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolValue;
use serde::Deserialize;
use thiserror::Error;

/// A contract to deploy, with the arguments for its constructor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract<'a> {
    /// A plain ERC-20 token that anyone may mint.
    Token {
        /// The symbol and name.
        symbol: &'a str,
        /// The decimals of a whole unit.
        decimals: u8,
    },
    /// An ERC-20 token that requires its allowance to be reset to zero and returns no booleans, like USDT.
    StubbornToken {
        /// The symbol and name.
        symbol: &'a str,
        /// The decimals of a whole unit.
        decimals: u8,
    },
    /// An ERC-20 token whose issuer can pause it and freeze accounts, like USDC.
    RegulatedToken {
        /// The symbol and name.
        symbol: &'a str,
        /// The decimals of a whole unit.
        decimals: u8,
    },
    /// A contract that accepts coins, but not with 2,300 gas.
    Vault,
    /// The HTLC for one token.
    Htlc {
        /// The token that it holds.
        token: Address,
        /// The version in its EIP-712 domain. Known orders have `"2"` or `"3"`.
        version: &'a str,
    },
    /// The HTLC for the native coin.
    NativeHtlc,
}

impl Contract<'_> {
    /// Returns the compiler's checked-in output.
    ///
    /// # Errors
    ///
    /// Returns [`ArtefactError`] if the file is not an artefact, which would be a fault of the build script.
    pub fn artefact(&self) -> Result<Artefact, ArtefactError> {
        let (name, text) = match self {
            Self::Token { .. } => ("Token", include_str!("../contracts/out/Token.json")),
            Self::StubbornToken { .. } => ("StubbornToken", include_str!("../contracts/out/StubbornToken.json")),
            Self::RegulatedToken { .. } => ("RegulatedToken", include_str!("../contracts/out/RegulatedToken.json")),
            Self::Vault => ("Vault", include_str!("../contracts/out/Vault.json")),
            Self::Htlc { .. } => ("Htlc", include_str!("../contracts/out/Htlc.json")),
            Self::NativeHtlc => ("NativeHtlc", include_str!("../contracts/out/NativeHtlc.json")),
        };
        serde_json::from_str(text).map_err(|source| ArtefactError { name, source })
    }

    /// Returns the creation code followed by the ABI encoding of the constructor's arguments.
    ///
    /// # Errors
    ///
    /// Fails as [`Contract::artefact`] does.
    pub fn init_code(&self) -> Result<Bytes, ArtefactError> {
        let arguments = match self {
            Self::Token { symbol, decimals } | Self::StubbornToken { symbol, decimals } | Self::RegulatedToken { symbol, decimals } => {
                // A `uint8` has the same encoding as a wider integer of the same value.
                (symbol.to_string(), symbol.to_string(), U256::from(*decimals)).abi_encode_params()
            }
            Self::Htlc { token, version } => (*token, version.to_string()).abi_encode_params(),
            Self::NativeHtlc | Self::Vault => Vec::new(),
        };
        let creation = self.artefact()?.bytecode;
        Ok([creation.as_ref(), arguments.as_slice()].concat().into())
    }
}

/// The compiler's output for one contract.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Artefact {
    /// The compiler's name and exact version.
    pub compiler: String,
    /// The JSON ABI, unchanged.
    pub abi: serde_json::Value,
    /// The creation code, without constructor arguments.
    pub bytecode: Bytes,
    /// The runtime code. Immutables are zero in it, because the creation code fills them in.
    pub deployed_bytecode: Bytes,
}

/// A checked-in artefact cannot be read.
#[derive(Debug, Error)]
#[error("contracts/out/{name}.json is not an artefact")]
pub struct ArtefactError {
    name: &'static str,
    source: serde_json::Error,
}
