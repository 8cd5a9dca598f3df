//! The networks of Bitcoin and Litecoin: their identity, addresses, policy, and what the service lists about them.

use bitcoin::base58;
use bitcoin::bech32::segwit;
use bitcoin::block::{Header, Version};
use bitcoin::constants::genesis_block;
use bitcoin::hashes::Hash;
use bitcoin::pow::CompactTarget;
use bitcoin::{BlockHash, FeeRate, Network as BitcoinNetwork, Script, ScriptBuf, TxMerkleNode};
use countersign_chains::address::{hrp, parse_bitcoin};
use countersign_chains::{AddressError, BitcoinNet, Coin, Network as KnownNetwork};
use serde_json::{Value, json};

use super::htlc::INTERNAL_KEY;
use crate::chains::engine::Listing;
use crate::chains::listing::{AssetRow, ChainRow};

/// One network.
#[derive(Debug, Clone)]
pub(super) struct Network {
    /// The name in asset ids, for example `litecoin_regtest`.
    pub(super) name: String,
    /// The id in the registry, for example `litecoin:regtest`.
    id: String,
    pub(super) coin: Coin,
    net: BitcoinNet,
}

impl Network {
    pub(super) fn new(name: &str, id: &str) -> Result<Self, String> {
        match KnownNetwork::parse(id) {
            Ok(KnownNetwork::Bitcoin(coin, net)) => Ok(Self { name: name.to_owned(), id: id.to_owned(), coin, net }),
            _ => Err(format!("{id} is not a Bitcoin or Litecoin network")),
        }
    }

    /// Returns the real header of block 0, whose hash tells clients which network they are on.
    pub(super) fn genesis(&self) -> Header {
        let bitcoin = |network| genesis_block(network).header;
        let is_called = |word: &str| self.name.ends_with(word) || self.id.ends_with(word);
        match (self.coin, self.net) {
            (Coin::Bitcoin, BitcoinNet::Main) => bitcoin(BitcoinNetwork::Bitcoin),
            (Coin::Bitcoin, BitcoinNet::Regtest) => bitcoin(BitcoinNetwork::Regtest),
            (Coin::Bitcoin, BitcoinNet::Test) if is_called("signet") => bitcoin(BitcoinNetwork::Signet),
            (Coin::Bitcoin, BitcoinNet::Test) if is_called("testnet4") => bitcoin(BitcoinNetwork::Testnet4),
            (Coin::Bitcoin, BitcoinNet::Test) => bitcoin(BitcoinNetwork::Testnet),
            (Coin::Litecoin, BitcoinNet::Main) => litecoin(1_317_972_665, 0x1e0f_fff0, 2_084_524_493),
            (Coin::Litecoin, BitcoinNet::Test) => litecoin(1_486_949_366, 0x1e0f_fff0, 293_345),
            (Coin::Litecoin, BitcoinNet::Regtest) => litecoin(1_296_688_602, 0x207f_ffff, 0),
        }
    }

    /// Returns the height of the first block after the genesis block. It is close to the height of the real chain, so
    /// that it looks plausible in explorers.
    pub(super) const fn start(&self) -> u32 {
        match (self.coin, self.net) {
            (Coin::Bitcoin, BitcoinNet::Main) => 970_000,
            (Coin::Litecoin, BitcoinNet::Main) => 3_200_000,
            (_, BitcoinNet::Test) => 100_000,
            (_, BitcoinNet::Regtest) => 1,
        }
    }

    /// Returns the nominal seconds between blocks.
    pub(super) const fn interval(&self) -> u64 {
        match self.coin {
            Coin::Bitcoin => 600,
            Coin::Litecoin => 150,
        }
    }

    /// Returns how many confirmations a careful wallet waits for.
    pub(super) const fn confirmations(&self) -> u64 {
        match self.coin {
            Coin::Bitcoin => 3,
            Coin::Litecoin => 24,
        }
    }

    /// Returns the rate below which spending an output is not worthwhile: `-dustrelayfee` of the coin's node.
    pub(super) fn dust_rate(&self) -> FeeRate {
        FeeRate::from_sat_per_vb(self.coin.profile().dust_factor.saturating_mul(3)).unwrap_or(FeeRate::DUST)
    }

    /// Returns whether nodes replace transactions that do not signal replaceability. Bitcoin's nodes do since version
    /// 28.
    pub(super) const fn is_full_rbf(&self) -> bool {
        matches!(self.coin, Coin::Bitcoin)
    }

    pub(super) const fn supply(&self) -> u64 {
        self.coin.profile().supply
    }

    /// Returns the asset's id.
    pub(super) fn asset(&self) -> String {
        format!("{}:{}", self.name, self.symbol())
    }

    fn symbol(&self) -> String {
        self.coin.profile().symbol.to_ascii_lowercase()
    }

    /// Returns the address of a script, if it has one.
    pub(super) fn address(&self, script: &Script) -> Option<String> {
        if let Some(version) = script.witness_version() {
            return segwit::encode(hrp(self.coin, self.net), version.to_fe(), script.as_bytes().get(2..)?).ok();
        }
        let (key_hash, script_hash) = match (self.coin, self.net) {
            (Coin::Bitcoin, BitcoinNet::Main) => (0x00, 0x05),
            (Coin::Bitcoin, _) => (0x6f, 0xc4),
            (Coin::Litecoin, BitcoinNet::Main) => (0x30, 0x32),
            (Coin::Litecoin, _) => (0x6f, 0x3a),
        };
        let (version, hash) = match script.as_bytes() {
            [0x76, 0xa9, 0x14, hash @ .., 0x88, 0xac] if script.is_p2pkh() => (key_hash, hash),
            [0xa9, 0x14, hash @ .., 0x87] if script.is_p2sh() => (script_hash, hash),
            _ => return None,
        };
        Some(base58::encode_check(&[&[version], hash].concat()))
    }

    /// Returns the script of an address. The address must belong to exactly this network.
    pub(super) fn script(&self, address: &str) -> Result<ScriptBuf, AddressError> {
        if address.len() > 128 || !address.is_ascii() {
            return Err(AddressError::Form);
        }
        parse_bitcoin(self.coin, self.net, address).map(ScriptBuf::from_bytes)
    }

    pub(super) fn listing(&self, solver: String) -> Listing {
        let (title, timelocks, min) = match self.coin {
            Coin::Bitcoin => ("Bitcoin", [144, 12], "1000"),
            Coin::Litecoin => ("Litecoin", [576, 48], "10000"),
        };
        let title = match self.net {
            BitcoinNet::Main => title.to_owned(),
            BitcoinNet::Test => format!("{title} Testnet"),
            BitcoinNet::Regtest => format!("{title} Regtest"),
        };
        let (family, network) = self.id.split_once(':').unwrap_or_default();
        let schema = format!("{family}:htlc");
        let coin = &self.symbol();
        let chain =
            ChainRow { chain: &self.name, id: self.id.to_owned(), title, coin, timelocks, htlcs: json!([schema]), tokens: json!([]) }
                .json();
        let asset = AssetRow {
            chain: &self.name,
            network: network.into(),
            symbol: coin,
            decimals: 8,
            limits: [min, "10000000000"].map(str::to_owned),
            htlc: json!({"address": hex::encode(INTERNAL_KEY), "schema": schema}),
            token: Value::Null,
        }
        .json();
        Listing { chain, assets: vec![asset], solver }
    }
}

/// Returns the header of a Litecoin genesis block. All of Litecoin's networks start with the same transaction.
fn litecoin(time: u32, bits: u32, nonce: u32) -> Header {
    const ROOT: &str = "97ddfbbae6be97fd6cdf3e7ca13232a3afff2353e29badfab7f73011edd4ced9";
    Header {
        version: Version::ONE,
        prev_blockhash: BlockHash::all_zeros(),
        merkle_root: ROOT.parse().unwrap_or_else(|_| TxMerkleNode::all_zeros()),
        time,
        bits: CompactTarget::from_consensus(bits),
        nonce,
    }
}
