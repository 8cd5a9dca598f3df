//! An order from a Bitcoin-like chain whose keys and secret the tests know, with a service's documents for it.
#![allow(dead_code, reason = "each test file takes what it needs")]

pub(crate) mod by_hand;
pub(crate) mod ledger;
pub(crate) mod litecoind;

use bitcoin::hashes::{Hash, sha256};
use bitcoin::{Amount, OutPoint, ScriptBuf, Transaction, TxOut, Txid};
use countersign_bitcoin::htlc::{Htlc, Tree};
use countersign_bitcoin::recover::{Leg, RecordedHtlc};
use countersign_bitcoin::{Chain, Key, TxContext, UnsignedOrder, Utxo};
use countersign_core::{CreateOrder, OrderRecord, Policy, Proposal, Refusal, Registry};
use serde_json::{Value, json};

pub(crate) const INITIATOR: &str = "1111111111111111111111111111111111111111111111111111111111111111";
pub(crate) const REDEEMER: &str = "2222222222222222222222222222222222222222222222222222222222222222";
/// The key of the wallet's own coins.
pub(crate) const WALLET: &str = "3333333333333333333333333333333333333333333333333333333333333333";
pub(crate) const SECRET: [u8; 32] = *b"thirty-two bytes of good secret!";
const INTERNAL_KEY: &str = "2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0";
/// SHA-256 of the chain id, the hash of [`SECRET`] and the solver's account, each in 32 bytes, computed by Python's
/// hashlib.
const DESTINATION_SWAP_ID: &str = "a3cc26ac20d1e0b560ad2e0ffba652c427f3737dcb6ff5bc67d81f1258292406";
const PAYEE: &str = "0x2e349190D7eD9350E72305FC6f1c9B3416cCbE36";

pub(crate) fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

pub(crate) fn x_only(text: &str) -> [u8; 32] {
    key(text).x_only().serialize()
}

/// An order on one chain.
pub(crate) struct Scene {
    pub(crate) chain: Chain,
    pub(crate) tree: Tree,
    pub(crate) amount: u64,
    name: String,
    registry: Value,
}

/// The scripts of a key: p2wpkh, p2tr, p2sh-p2wpkh (with its redeem script), and p2pkh.
pub(crate) struct Scripts {
    pub(crate) p2wpkh: ScriptBuf,
    pub(crate) p2tr: ScriptBuf,
    pub(crate) p2sh: ScriptBuf,
    pub(crate) p2pkh: ScriptBuf,
}

pub(crate) fn scripts() -> Scripts {
    scripts_of(WALLET)
}

pub(crate) fn scripts_of(secret_key: &str) -> Scripts {
    let secp = bitcoin::key::Secp256k1::new();
    let secret = bitcoin::secp256k1::SecretKey::from_slice(&hex::decode(secret_key).expect("hex")).expect("a key");
    let public = bitcoin::PublicKey::new(secret.public_key(&secp));
    let p2wpkh = ScriptBuf::new_p2wpkh(&public.wpubkey_hash().expect("compressed"));
    let p2tr = ScriptBuf::new_p2tr(&secp, public.inner.x_only_public_key().0, None);
    Scripts { p2sh: ScriptBuf::new_p2sh(&p2wpkh.script_hash()), p2pkh: ScriptBuf::new_p2pkh(&public.pubkey_hash()), p2wpkh, p2tr }
}

impl Scene {
    /// Creates a scene. `network` is written as in the registry, for example `litecoin:regtest`.
    pub(crate) fn new(network: &str, timelock: u16, amount: u64) -> Self {
        let coin = network.split(':').next().expect("a coin");
        let name = format!("{coin}_{}", network.split(':').nth(1).expect("a network"));
        let chain = Chain::from_network(&countersign_core::chains::Network::parse(network).expect("a network")).expect("Bitcoin-like");
        let secret_hash = sha256::Hash::hash(&SECRET).to_byte_array();
        let internal_key = hex::decode(INTERNAL_KEY).expect("hex").try_into().expect("32 bytes");
        let htlc = Htlc { internal_key, initiator: x_only(INITIATOR), redeemer: x_only(REDEEMER), secret_hash, timelock };
        let tree = Tree::new(htlc).expect("a point");
        let registry = json!({
            "chains": [{ "chain": name, "id": network }, { "chain": "base_sepolia", "id": "evm:84532" }],
            "assets": [
                { "id": format!("{name}:coin"), "chain": name, "decimals": 8, "token": null, "htlc": { "address": INTERNAL_KEY } },
                {
                    "id": "base_sepolia:wbtc", "chain": "base_sepolia", "chain_id": 84532, "decimals": 8,
                    "htlc": { "address": "0x3f349190d7ed9350e72305fc6f1c9b3416ccbe37" }, "token": { "address": "0x5b4a7Cc96ccB1eda77DA0F37Dd182e96923505d6" },
                },
            ],
            "solvers": [
                { "solver_id": "solver", "chain": name, "address": hex::encode(x_only(REDEEMER)) },
                { "solver_id": "solver", "chain": "base_sepolia", "address": "0x661bA32eb5f86CaB358DDbB7F264b10c5825e2dd" },
            ],
        });
        Self { chain, tree, amount, name, registry }
    }

    pub(crate) fn registry(&self) -> Registry {
        Registry::from_json(self.registry.to_string().as_bytes()).expect("a registry")
    }

    pub(crate) fn prevout(&self, value: u64) -> TxOut {
        TxOut { value: Amount::from_sat(value), script_pubkey: self.tree.script_pubkey() }
    }

    /// Returns one of the owner's addresses.
    pub(crate) fn owner(&self) -> String {
        self.chain.address(&scripts().p2wpkh).expect("an address")
    }

    fn request(&self) -> Value {
        json!({
            "source": { "asset": format!("{}:coin", self.name), "owner": self.owner(), "amount": self.amount.to_string(), "delegate": hex::encode(self.tree.htlc.initiator) },
            "destination": { "asset": "base_sepolia:wbtc", "owner": PAYEE, "amount": "1" },
            "secret_hash": hex::encode(self.tree.htlc.secret_hash),
        })
    }

    fn order(&self) -> Value {
        self.order_of(&self.tree)
    }

    /// Returns a record with this HTLC as its source.
    pub(crate) fn order_of(&self, tree: &Tree) -> Value {
        let swap = |swap_id: &str, chain: &str, asset: &str, initiator: &str, redeemer: &str, timelock: u16, amount: u64| {
            json!({
                "swap_id": swap_id, "chain": chain, "asset": asset, "initiator": initiator, "redeemer": redeemer, "timelock": timelock,
                "amount": amount.to_string(), "filled_amount": "0", "secret_hash": hex::encode(tree.htlc.secret_hash), "secret": "",
            })
        };
        let address = tree.address(self.chain);
        let htlc = &tree.htlc;
        let mut source = swap(
            &address,
            &self.name,
            &format!("{}:coin", self.name),
            &self.owner(),
            &hex::encode(htlc.redeemer),
            htlc.timelock,
            self.amount,
        );
        source["delegate"] = json!(hex::encode(htlc.initiator));
        json!({
            "order_id": "ab".repeat(32), "version": "v1", "created_at": "", "source_swap": source,
            "destination_swap":
                swap(DESTINATION_SWAP_ID, "base_sepolia", "base_sepolia:wbtc", "0x661bA32eb5f86CaB358DDbB7F264b10c5825e2dd", PAYEE, 1, 1),
        })
    }

    /// Returns the order's source, built from its record alone.
    pub(crate) fn htlc(&self) -> RecordedHtlc {
        let record = OrderRecord::from_json(self.order().to_string().as_bytes()).expect("a record");
        RecordedHtlc::new(&record, Leg::Source, &self.registry()).expect("a coherent record")
    }

    /// Returns the verified and prepared deposit. Without a record, the address is found through the pinned solver.
    pub(crate) fn unsigned(&self, wallet: TxContext) -> UnsignedOrder {
        self.answered(&self.answer(&self.tree.address(self.chain)), None, wallet).expect("an honest answer")
    }

    /// Returns the service's answer with this deposit address.
    pub(crate) fn answer(&self, to: &str) -> Value {
        json!({ "order_id": "ab".repeat(32), "to": to, "amount": self.amount.to_string() })
    }

    /// Verifies and prepares an answer, with a record if there is one.
    pub(crate) fn answered(&self, answer: &Value, record: Option<&Value>, wallet: TxContext) -> Result<UnsignedOrder, Refusal> {
        let request = CreateOrder::from_json(self.request().to_string().as_bytes())?;
        let response = json!({ "status": "Ok", "result": answer }).to_string();
        let (record, registry) = (record.map(Value::to_string), self.registry());
        let mut proposal = Proposal::new(&request, response.as_bytes());
        if let Some(record) = &record {
            proposal = proposal.with_record(record.as_bytes());
        }
        countersign_bitcoin::verify(proposal, &registry, &Policy::default())?.prepare(wallet)
    }
}

/// Returns a coin of the wallet, with the additional data that its script needs.
pub(crate) fn coin(outpoint: OutPoint, output: TxOut, previous: &Transaction) -> Utxo {
    let utxo = if output.script_pubkey.is_p2sh() {
        Utxo::with_redeem_script(outpoint, output, scripts().p2wpkh)
    } else if output.script_pubkey.is_p2pkh() {
        Utxo::with_previous_tx(outpoint, output, previous.clone())
    } else {
        Utxo::new(outpoint, output)
    };
    utxo.expect("a coin")
}

/// Signs with one key and returns the complete transaction.
pub(crate) fn signed(mut unsigned: UnsignedOrder, secret_key: &str) -> Result<Transaction, Refusal> {
    unsigned.sign(&key(secret_key))?;
    Ok(unsigned.finish()?.transactions().remove(0).native)
}

pub(crate) fn outpoint(byte: u8) -> OutPoint {
    OutPoint { txid: Txid::from_byte_array([byte; 32]), vout: 0 }
}
