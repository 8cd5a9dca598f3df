//! The compiled contracts: `contracts/out`, as `contracts/build.mjs` writes it.

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolValue;
use serde::Deserialize;
use thiserror::Error;

/// A contract to deploy, with the arguments of its constructor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract<'a> {
    /// A plain ERC-20 token that anyone may mint.
    Token {
        /// Symbol and name.
        symbol: &'a str,
        /// Decimals of a whole unit.
        decimals: u8,
    },
    /// An ERC-20 token that wants its allowance reset to zero and returns no booleans, as USDT does.
    StubbornToken {
        /// Symbol and name.
        symbol: &'a str,
        /// Decimals of a whole unit.
        decimals: u8,
    },
    /// An ERC-20 token that its issuer can pause, and whose accounts it can freeze, as USDC.
    RegulatedToken {
        /// Symbol and name.
        symbol: &'a str,
        /// Decimals of a whole unit.
        decimals: u8,
    },
    /// A contract that takes coins, but not with 2,300 gas.
    Vault,
    /// The HTLC over one token.
    Htlc {
        /// The token it holds.
        token: Address,
        /// The version in its EIP-712 domain, `"2"` or `"3"` in the orders seen.
        version: &'a str,
    },
    /// The HTLC over the native coin.
    NativeHtlc,
}

impl Contract<'_> {
    /// Returns the checked-in output of the compiler.
    ///
    /// # Errors
    ///
    /// [`ArtefactError`] if the file is not an artefact, which is a fault of the build script.
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
    /// As [`Contract::artefact`].
    pub fn init_code(&self) -> Result<Bytes, ArtefactError> {
        let arguments = match self {
            Self::Token { symbol, decimals } | Self::StubbornToken { symbol, decimals } | Self::RegulatedToken { symbol, decimals } => {
                // A `uint8` is encoded as the wider integer of the same value.
                (symbol.to_string(), symbol.to_string(), U256::from(*decimals)).abi_encode_params()
            }
            Self::Htlc { token, version } => (*token, version.to_string()).abi_encode_params(),
            Self::NativeHtlc | Self::Vault => Vec::new(),
        };
        let creation = self.artefact()?.bytecode;
        Ok([creation.as_ref(), arguments.as_slice()].concat().into())
    }
}

/// What the compiler made of one contract.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Artefact {
    /// Name and exact version of the compiler.
    pub compiler: String,
    /// The JSON ABI, as the compiler wrote it.
    pub abi: serde_json::Value,
    /// Creation code, without constructor arguments.
    pub bytecode: Bytes,
    /// Runtime code. Immutables are zero in it: the creation code fills them in.
    pub deployed_bytecode: Bytes,
}

/// A checked-in artefact cannot be read.
#[derive(Debug, Error)]
#[error("contracts/out/{name}.json is not an artefact")]
pub struct ArtefactError {
    name: &'static str,
    source: serde_json::Error,
}
