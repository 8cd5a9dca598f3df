//! Conversion between addresses and script pubkeys, on both Bitcoin and Litecoin.
//!
//! Specification: `docs/spec/bitcoin.md#chains-and-addresses`.

use bitcoin::hashes::Hash;
use bitcoin::{PubkeyHash, ScriptBuf, ScriptHash, XOnlyPublicKey, base58};
use countersign_core::chains::address::{hrp, parse};
use countersign_core::chains::{BitcoinNet, Coin, Network};
use countersign_core::json::At;
use countersign_core::{Account, Amount, Code, Family, Refusal, U256, address_refusal};
use serde::{Deserialize, Serialize};

use crate::transaction::fee_rate::FeeRate;

/// A Bitcoin-like chain: a coin and one of its networks.
///
/// ```
/// use countersign::bitcoin::Chain;
/// use countersign::chains::{BitcoinNet, Coin};
///
/// let chain = Chain { coin: Coin::Bitcoin, net: BitcoinNet::Main };
/// let script = chain.script("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "/to")?;
/// assert_eq!(chain.dust_limit(&script).to_sat(), 294);
/// assert_eq!(
///     chain.address(&script).as_deref(),
///     Some("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
/// );
/// # Ok::<(), countersign::Refusal>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// Bitcoin or Litecoin.
    pub coin: Coin,
    /// The main network, a test network, or regtest.
    pub net: BitcoinNet,
}

impl Chain {
    /// Returns the chain of a network; `None` for a network of another family.
    #[must_use]
    pub const fn from_network(network: &Network) -> Option<Self> {
        match network {
            Network::Bitcoin(coin, net) => Some(Self { coin: *coin, net: *net }),
            _ => None,
        }
    }

    /// Returns the number of base units that will ever exist: 21 million bitcoin, 84 million litecoin.
    #[must_use]
    pub const fn supply(self) -> bitcoin::Amount {
        bitcoin::Amount::from_sat(self.coin.profile().supply)
    }

    /// Returns the symbol of the coin, for example `BTC`.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        self.coin.profile().symbol
    }

    /// Returns an amount in base units; `None` if it is above the chain's supply.
    pub(crate) fn checked_amount(self, base_units: U256) -> Option<bitcoin::Amount> {
        u64::try_from(base_units).ok().map(bitcoin::Amount::from_sat).filter(|amount| *amount <= self.supply())
    }

    /// Returns an amount of the chain's coin.
    pub(crate) fn amount(self, amount: bitcoin::Amount) -> Amount {
        Amount::new(U256::from(amount.to_sat()), 8, self.symbol().to_ascii_lowercase())
    }

    /// Returns the smallest value of an output with this script that nodes relay.
    ///
    /// It is the cost of spending the output at the dust relay rate (`DUST_RELAY_TX_FEE`): 3 sat/vB on Bitcoin, 30 on Litecoin.
    #[must_use]
    pub fn dust_limit(self, script: &ScriptBuf) -> bitcoin::Amount {
        let limit = script.minimal_non_dust().checked_mul(self.coin.profile().dust_factor);
        limit.unwrap_or(bitcoin::Amount::MAX)
    }

    /// Returns the lowest fee rate that every node relays by default.
    #[must_use]
    pub fn min_fee_rate(self) -> FeeRate {
        FeeRate::from_whole(self.coin.profile().min_fee_rate)
    }

    /// Parses an address of this chain, and returns its script pubkey.
    ///
    /// # Errors
    ///
    /// [`Code::AddressNetwork`], [`Code::AddressChecksum`] or [`Code::AddressMalformed`], at `location`.
    pub fn script(self, address: &str, location: &str) -> Result<ScriptBuf, Refusal> {
        let account = parse(&Network::Bitcoin(self.coin, self.net), address)
            .map_err(|error| address_refusal(error, address, &At::root(location), ""))?;
        Ok(ScriptBuf::from_bytes(account.bytes().to_vec()))
    }

    /// Returns the address of a script pubkey, with bech32 in lower case; `None` if the script has no address.
    #[must_use]
    pub fn address(self, script: &ScriptBuf) -> Option<String> {
        let bytes = script.as_bytes();
        if script.is_witness_program() {
            let program = bytes.get(2..)?;
            let version = bitcoin::bech32::Fe32::try_from(script.witness_version()?.to_num()).ok()?;
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

    /// Returns the address of a script pubkey, or its hex if it has no address.
    #[must_use]
    pub fn format_script(self, script: &ScriptBuf) -> String {
        self.address(script).unwrap_or_else(|| hex::encode(script.as_bytes()))
    }
}

/// The destination of a payment: an address, or a script pubkey that has one.
///
/// ```
/// use countersign::bitcoin::Destination;
///
/// let change: Destination = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4".into();
/// assert!(matches!(change, Destination::Address(_)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Destination {
    /// An address. It must be an address of the chain on which it is used.
    Address(String),
    /// A script pubkey that has an address.
    Script(#[serde(with = "script_hex")] ScriptBuf),
}

/// Serializes a script as hex.
mod script_hex {
    use bitcoin::ScriptBuf;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(script: &ScriptBuf, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&script.to_hex_string())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ScriptBuf, D::Error> {
        ScriptBuf::from_hex(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Destination {
    /// Returns the script pubkey on a chain.
    ///
    /// # Errors
    ///
    /// The errors of [`Chain::script`], or [`Code::AddressMalformed`] for a script that has no address. The location is `location`.
    pub fn script(&self, chain: Chain, location: &str) -> Result<ScriptBuf, Refusal> {
        match self {
            Self::Address(address) => chain.script(address, location),
            Self::Script(script) if chain.address(script).is_some() => Ok(script.clone()),
            Self::Script(script) => Err(Refusal::new(Code::AddressMalformed, location)
                .with_reason("the script has no address")
                .with_actual(hex::encode(script.as_bytes()))),
        }
    }
}

impl From<&str> for Destination {
    fn from(address: &str) -> Self {
        Self::Address(address.to_owned())
    }
}

impl From<String> for Destination {
    fn from(address: String) -> Self {
        Self::Address(address)
    }
}

impl From<bitcoin::Address> for Destination {
    /// Keeps the address as text, so that its network is checked against the chain's.
    fn from(address: bitcoin::Address) -> Self {
        Self::Address(address.to_string())
    }
}

impl From<ScriptBuf> for Destination {
    fn from(script: ScriptBuf) -> Self {
        Self::Script(script)
    }
}

/// Returns the output key of a taproot script; `None` for any other script, or if the key is not a point of the curve. Nobody could
/// ever spend from such an output (BIP-341).
#[must_use]
pub fn taproot_key(script: &ScriptBuf) -> Option<XOnlyPublicKey> {
    if !script.is_p2tr() {
        return None;
    }
    XOnlyPublicKey::from_slice(script.as_bytes().get(2..)?).ok()
}

/// Returns the hash in a p2pkh script; `None` for any other script.
pub(crate) fn key_hash(script: &ScriptBuf) -> Option<PubkeyHash> {
    PubkeyHash::from_slice(script.is_p2pkh().then(|| script.as_bytes().get(3..23)).flatten()?).ok()
}

/// Returns the hash in a p2sh script; `None` for any other script.
pub(crate) fn script_hash(script: &ScriptBuf) -> Option<ScriptHash> {
    ScriptHash::from_slice(script.is_p2sh().then(|| script.as_bytes().get(2..22)).flatten()?).ok()
}

/// Returns the account with this x-only key.
pub(crate) fn account(key: [u8; 32]) -> Account {
    Account::from_array(Family::Bitcoin, key)
}
