//! Addresses of both coins as script pubkeys, and script pubkeys as addresses.

use bitcoin::hashes::Hash;
use bitcoin::{PubkeyHash, ScriptBuf, ScriptHash, XOnlyPublicKey, base58};
use countersign_core::chains::address::{hrp, parse_bitcoin, parse_xonly};
use countersign_core::chains::{AddressError, BitcoinNet, Coin, Network};
use countersign_core::{Account, Code, Family, Refusal, bad_address};

/// A Bitcoin-like chain: which coin, and which of its networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// Bitcoin or Litecoin.
    pub coin: Coin,
    /// Main, test or regtest.
    pub net: BitcoinNet,
}

impl Chain {
    /// The chain of a network; `None` for another family's.
    #[must_use]
    pub const fn of(network: &Network) -> Option<Self> {
        match network {
            Network::Bitcoin(coin, net) => Some(Self { coin: *coin, net: *net }),
            _ => None,
        }
    }

    /// All coins that will ever be, in base units: 21 million bitcoin, 84 million litecoin.
    #[must_use]
    pub const fn supply(self) -> u64 {
        match self.coin {
            Coin::Bitcoin => 2_100_000_000_000_000,
            Coin::Litecoin => 8_400_000_000_000_000,
        }
    }

    /// The symbol that amounts are shown with.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self.coin {
            Coin::Bitcoin => "BTC",
            Coin::Litecoin => "LTC",
        }
    }

    /// The smallest output of this script that nodes relay, base units: what it costs to spend at 3 sat/vB on Bitcoin and
    /// 30 on Litecoin, whose dust relay rate is ten times as high (`DUST_RELAY_TX_FEE` of both nodes).
    #[must_use]
    pub fn dust(self, script: &ScriptBuf) -> u64 {
        let dust = script.minimal_non_dust().to_sat();
        match self.coin {
            Coin::Bitcoin => dust,
            Coin::Litecoin => dust.saturating_mul(10),
        }
    }

    /// Parses an address of exactly this chain.
    ///
    /// # Errors
    ///
    /// [`Code::AddressNetwork`], [`Code::AddressChecksum`] or [`Code::AddressMalformed`] at `at`.
    pub fn script(self, address: &str, at: &str) -> Result<ScriptBuf, Refusal> {
        let script = if address.is_ascii() && (1..=130).contains(&address.len()) {
            parse_bitcoin(self.coin, self.net, address)
        } else {
            Err(AddressError::Form)
        };
        script.map(ScriptBuf::from_bytes).map_err(|error| bad_address(error, address, at))
    }

    /// The address of a script pubkey, bech32 in lower case; `None` where none is defined.
    #[must_use]
    pub fn address(self, script: &ScriptBuf) -> Option<String> {
        let bytes = script.as_bytes();
        if script.is_witness_program() {
            let program = bytes.get(2..)?;
            let version = script.witness_version()?;
            let version = bech32_version(version.to_num())?;
            return bitcoin::bech32::segwit::encode(hrp(self.coin, self.net), version, program).ok();
        }
        let (key_hash, script_hash) = match (self.coin, self.net) {
            (Coin::Bitcoin, BitcoinNet::Main) => (0x00, 0x05),
            (Coin::Bitcoin, _) => (0x6f, 0xc4),
            (Coin::Litecoin, BitcoinNet::Main) => (0x30, 0x32),
            (Coin::Litecoin, _) => (0x6f, 0x3a),
        };
        let (version, hash) = if script.is_p2pkh() {
            (key_hash, bytes.get(3..23)?)
        } else if script.is_p2sh() {
            (script_hash, bytes.get(2..22)?)
        } else {
            return None;
        };
        Some(base58::encode_check(&[&[version], hash].concat()))
    }

    /// As [`Chain::address`], or the script's hex.
    #[must_use]
    pub fn shown(self, script: &ScriptBuf) -> String {
        self.address(script).unwrap_or_else(|| hex::encode(script.as_bytes()))
    }
}

fn bech32_version(version: u8) -> Option<bitcoin::bech32::Fe32> {
    bitcoin::bech32::Fe32::try_from(version).ok()
}

/// The x-only output key of a taproot script, where it is one and its key is a point of the curve. To any other nobody can
/// ever spend (BIP-341).
#[must_use]
pub fn taproot_key(script: &ScriptBuf) -> Option<[u8; 32]> {
    if !script.is_p2tr() {
        return None;
    }
    let key: [u8; 32] = script.as_bytes().get(2..)?.try_into().ok()?;
    XOnlyPublicKey::from_slice(&key).ok().map(|_| key)
}

/// The hash in a p2pkh script.
pub(crate) fn key_hash(script: &ScriptBuf) -> Option<PubkeyHash> {
    PubkeyHash::from_slice(script.is_p2pkh().then(|| script.as_bytes().get(3..23)).flatten()?).ok()
}

/// The hash in a p2sh script.
pub(crate) fn script_hash(script: &ScriptBuf) -> Option<ScriptHash> {
    ScriptHash::from_slice(script.is_p2sh().then(|| script.as_bytes().get(2..22)).flatten()?).ok()
}

/// An x-only key as an account of this family.
///
/// # Errors
///
/// Never in practice: 32 bytes always fit; [`Code::Internal`] otherwise.
pub(crate) fn account(key: &[u8; 32]) -> Result<Account, Refusal> {
    Account::new(Family::Bitcoin, key).ok_or_else(|| Refusal::new(Code::Internal, ""))
}

/// Reads an x-only key: 64 hex digits of a point of the curve.
pub(crate) fn key(text: &str) -> Result<[u8; 32], AddressError> {
    parse_xonly(text)
}
