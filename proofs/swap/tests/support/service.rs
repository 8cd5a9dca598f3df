//! The service that the program swaps through: it quotes, makes orders, and states what it likes about them.
//!
//! Every order is coherent with the registry that the program has pinned. The relayer is off: what the program sends to it is
//! only remembered.

use std::sync::{Arc, Mutex};

use bitcoin::hashes::{Hash as _, sha256};
use countersign_bitcoin::Key;
use countersign_bitcoin::htlc::{Htlc, Tree};
use countersign_core::chains::Network;
use countersign_core::chains::address;
use countersign_core::chains::swap_id::{self, SwapIdInput, Version};
use countersign_core::{OrderRecord, Registry, U256};
use serde_json::{Value, json};

use super::anvil::{self, Anvil};
use super::http::{Seen, Server};

/// The solver's key on Litecoin.
pub const SOLVER_KEY: &str = "2222222222222222222222222222222222222222222222222222222222222222";
const SOLVER_ID: &str = "test-solver";
/// A point that nobody has the secret key of.
const INTERNAL_KEY: &str = "2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0";
/// Another one, under which the payment would be at another address.
const OTHER_INTERNAL_KEY: &str = "50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0";

pub const LITECOIN: &str = "litecoin_regtest:ltc";
pub const USDC: &str = "localnet:usdc";
pub const ETH: &str = "localnet:eth";

/// Blocks. The registry lists 12 s for a block of the EVM chain, so each source outlasts its destination twice; the destinations
/// leave the settling time and the margin of the program's default rules.
const EVM_SOURCE: u64 = 700;
const EVM_DESTINATION: u64 = 900;
const LITECOIN_SOURCE: u64 = 144;
const LITECOIN_DESTINATION: u64 = 24;

/// What a solver or a service does that it should not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    Honest,
    /// The solver never pays.
    NeverPays,
    /// The solver never pays, and the service states that it has.
    StatesPayment,
    /// The solver pays, and the service states the agreed payment, but it is of another amount.
    PaysLess,
    PaysUnderOtherHash,
    PaysForOneBlock,
    /// The solver pays much less so early that it can be refunded at once, then as agreed. The service states another payment.
    PaysDustFirst,
    /// The order names an HTLC on the destination that is not the pinned one.
    NamesOtherHtlc,
    /// The record names another timelock on the destination once the source is paid.
    ChangesRecord,
}

impl Conduct {
    pub fn pays(self) -> bool {
        !matches!(self, Self::NeverPays | Self::StatesPayment)
    }
}

/// An order under way.
#[derive(Debug, Clone)]
pub struct Order {
    pub record: Value,
    /// The HTLC contract of the side on the EVM chain.
    pub htlc: String,
    pub source_is_paid: bool,
    pub destination_is_paid: bool,
    /// The secret that the program has shown on the destination chain.
    pub secret: Option<[u8; 32]>,
    pub source_is_redeemed: bool,
}

impl Order {
    pub fn id(&self) -> &str {
        self.record["order_id"].as_str().unwrap()
    }

    pub fn is_from(&self, asset: &str) -> bool {
        self.record["source_swap"]["asset"] == asset
    }

    pub fn typed(&self) -> OrderRecord {
        OrderRecord::from_json(self.record.to_string().as_bytes()).unwrap()
    }

    pub fn set(&mut self, leg: &str, fields: &[(&str, Value)]) {
        for (name, value) in fields {
            self.record[leg][*name] = value.clone();
        }
    }

    /// States that a side is paid, as agreed.
    pub fn state_payment(&mut self, leg: &str, transaction: &str, block: u64) {
        let (amount, confirmations) = (self.record[leg]["amount"].clone(), self.record[leg]["required_confirmations"].clone());
        let now = json!(chrono::Utc::now().to_rfc3339());
        let fields = [
            ("initiate_tx_hash", json!(transaction)),
            ("initiate_block_number", json!(block.to_string())),
            ("filled_amount", amount),
            ("current_confirmations", confirmations),
            ("initiate_timestamp", now),
        ];
        self.set(leg, &fields);
    }
}

/// The one order of a test, which service and solver share.
pub struct Book {
    pub conduct: Conduct,
    pub registry: Value,
    chain: Contracts,
    order: Mutex<Option<Order>>,
}

struct Contracts {
    token: String,
    htlc: String,
    native_htlc: String,
    approve: String,
    initiate: String,
}

pub fn litecoin_chain() -> countersign_bitcoin::Chain {
    countersign_bitcoin::Chain::from_network(&Network::parse("litecoin:regtest").unwrap()).unwrap()
}

fn x_only(key: &str) -> [u8; 32] {
    key.parse::<Key>().unwrap().x_only().serialize()
}

fn array(hex: &str) -> [u8; 32] {
    hex::decode(hex).unwrap().try_into().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The HTLC on Litecoin between two keys.
fn tree(internal_key: &str, initiator: [u8; 32], redeemer: [u8; 32], timelock: u64, hash: &str) -> Tree {
    let (internal_key, secret_hash) = (array(internal_key), array(hash));
    Tree::new(Htlc { internal_key, initiator, redeemer, secret_hash, timelock: timelock.try_into().unwrap() }).unwrap()
}

/// The address of a destination of Litecoin with other terms than those of the record.
pub fn litecoin_address(swap: &Value, timelock: u64, hash: &str) -> String {
    let (initiator, redeemer) = (array(text(&swap["initiator"])), array(text(&swap["delegate"])));
    tree(INTERNAL_KEY, initiator, redeemer, timelock, hash).address(litecoin_chain())
}

impl Book {
    pub fn new(anvil: &Anvil, conduct: Conduct) -> Self {
        let chain = |name: &str, id: &str, native: &str, schemas: Value| {
            json!({
                "chain": name, "id": id, "name": name, "icon": "", "explorer_url": "https://explorer.invalid", "native_asset_id": native,
                "confirmation_target": 1, "supported_htlc_schemas": schemas, "supported_token_schemas": ["evm:erc20"],
            })
        };
        let mut localnet = chain("localnet", &format!("evm:{}", anvil::CHAIN_ID), ETH, json!(["evm:htlc", "evm:htlc_erc20"]));
        let mut litecoin = chain("litecoin_regtest", "litecoin:regtest", LITECOIN, json!(["litecoin:htlc"]));
        localnet["block_time"] = json!(12);
        for (chain, source, destination) in
            [(&mut localnet, EVM_SOURCE, EVM_DESTINATION), (&mut litecoin, LITECOIN_SOURCE, LITECOIN_DESTINATION)]
        {
            chain["source_timelock"] = json!(source.to_string());
            chain["destination_timelock"] = json!(destination.to_string());
        }
        let asset = |id: &str, decimals: u8, htlc: Value, token: Value| {
            let (chain, name) = id.split_once(':').unwrap();
            let chain_id = if chain == "localnet" { json!(anvil::CHAIN_ID) } else { json!("regtest") };
            json!({
                "id": id, "name": name.to_uppercase(), "chain": chain, "chain_id": chain_id, "icon": "", "decimals": decimals,
                "min_amount": "1", "max_amount": "18446744073709551615", "price": 1, "htlc": htlc, "token": token,
            })
        };
        let pinned = |address: &str, schema: &str| json!({ "address": address, "schema": schema });
        let solver = |chain: &str, address: &str, assets: &[&str]| {
            let assets: Vec<_> = assets
                .iter()
                .map(|asset| json!({ "asset": asset, "balance": "1000000000000", "virtual_balance": "1000000000000" }))
                .collect();
            json!({ "solver_id": SOLVER_ID, "chain": chain, "address": address, "assets": assets })
        };
        let registry = json!({
            "chains": [localnet, litecoin],
            "assets": [
                asset(ETH, 18, pinned(&anvil.native_htlc, "evm:htlc"), Value::Null),
                asset(USDC, 6, pinned(&anvil.htlc, "evm:htlc_erc20"), pinned(&anvil.token, "evm:erc20")),
                asset(LITECOIN, 8, pinned(INTERNAL_KEY, "litecoin:htlc"), Value::Null),
            ],
            "solvers": [
                solver("localnet", anvil::SOLVER, &[ETH, USDC]),
                solver("litecoin_regtest", &hex::encode(x_only(SOLVER_KEY)), &[LITECOIN]),
            ],
        });
        let chain = Contracts {
            token: anvil.token.clone(),
            htlc: anvil.htlc.clone(),
            native_htlc: anvil.native_htlc.clone(),
            approve: anvil.selector("approve(address,uint256)"),
            initiate: anvil.selector("initiate(address,uint256,uint256,bytes32)"),
        };
        Self { conduct, registry, chain, order: Mutex::new(None) }
    }

    pub fn pinned(&self) -> Registry {
        Registry::from_json(self.registry.to_string().as_bytes()).unwrap()
    }

    /// The order as it is, once there is one.
    pub fn order(&self) -> Option<Order> {
        self.order.lock().unwrap().clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut Order)) {
        change(self.order.lock().unwrap().as_mut().unwrap());
    }

    /// Starts the service.
    pub fn serve(self: &Arc<Self>) -> Server {
        let book = Arc::clone(self);
        Server::start(move |seen| book.answer(seen))
    }

    fn answer(&self, seen: &Seen) -> (u16, String) {
        let ok = |result: Value| (200, json!({ "status": "Ok", "result": result }).to_string());
        let missing = || (404, json!({ "status": "Error", "error": "not found" }).to_string());
        match (seen.method.as_str(), seen.path()) {
            ("GET", "/v2/policy") => {
                ok(json!({ "default": "open", "isolation_groups": [], "blacklist_pairs": [], "whitelist_overrides": [] }))
            }
            ("GET", "/v2/quote") => ok(quote(&seen.target)),
            ("POST", "/v2/orders") => ok(self.create(&serde_json::from_slice(&seen.body).unwrap())),
            ("GET", "/v2/orders") => {
                let orders: Vec<_> = self.order().into_iter().map(|order| self.stated(order)).collect();
                let count = orders.len();
                ok(json!({ "data": orders, "page": 1, "total_pages": 1, "total_items": count, "per_page": 100 }))
            }
            ("GET", path) => match self.order().filter(|order| path == format!("/v2/orders/{}", order.id())) {
                Some(order) => ok(self.stated(order)),
                None => missing(),
            },
            // The relayer takes everything and does nothing.
            ("PATCH", _) => ok(json!("accepted")),
            _ => missing(),
        }
    }

    /// The record as the service states it.
    fn stated(&self, mut order: Order) -> Value {
        if self.conduct == Conduct::StatesPayment && order.source_is_paid {
            order.state_payment("destination_swap", &"aa".repeat(32), 1);
        }
        if self.conduct == Conduct::PaysDustFirst && order.destination_is_paid {
            order.set("destination_swap", &[("initiate_tx_hash", json!(format!("{}:1", "aa".repeat(32))))]);
        }
        if self.conduct == Conduct::ChangesRecord && order.source_is_paid {
            order.set("destination_swap", &[("timelock", json!(1))]);
        }
        order.record
    }

    fn create(&self, request: &Value) -> Value {
        let (source, destination) = (&request["source"], &request["destination"]);
        let hash = text(&request["secret_hash"]).trim_start_matches("0x").to_owned();
        let order_id = hex::encode(sha256::Hash::hash(hash.as_bytes()).to_byte_array());
        let now = chrono::Utc::now();
        let is_to_litecoin = destination["asset"] == LITECOIN;
        let evm = if is_to_litecoin { source } else { destination };
        let htlc = if evm["asset"] == ETH { &self.chain.native_htlc } else { &self.chain.htlc };
        let named = self.conduct == Conduct::NamesOtherHtlc;
        let (source_swap, destination_swap) = if is_to_litecoin {
            let internal_key = if named { OTHER_INTERNAL_KEY } else { INTERNAL_KEY };
            let keys = (x_only(SOLVER_KEY), array(text(&destination["delegate"])));
            let tree = tree(internal_key, keys.0, keys.1, LITECOIN_DESTINATION, &hash);
            let mut paid = swap(destination, &tree.address(litecoin_chain()), LITECOIN_DESTINATION, &hash);
            paid["initiator"] = json!(hex::encode(keys.0));
            paid["redeemer"] = destination["owner"].clone();
            paid["delegate"] = destination["delegate"].clone();
            (evm_swap(source, text(&source["owner"]), anvil::SOLVER, EVM_SOURCE, &hash, htlc), paid)
        } else {
            let keys = (array(text(&source["delegate"])), x_only(SOLVER_KEY));
            let tree = tree(INTERNAL_KEY, keys.0, keys.1, LITECOIN_SOURCE, &hash);
            let mut paid = swap(source, &tree.address(litecoin_chain()), LITECOIN_SOURCE, &hash);
            paid["initiator"] = source["owner"].clone();
            paid["redeemer"] = json!(hex::encode(keys.1));
            paid["delegate"] = source["delegate"].clone();
            let other = if htlc == &self.chain.htlc { &self.chain.native_htlc } else { &self.chain.htlc };
            let htlc = if named { other } else { htlc };
            (paid, evm_swap(destination, anvil::SOLVER, text(&destination["owner"]), EVM_DESTINATION, &hash, htlc))
        };
        let response = if is_to_litecoin {
            self.evm_response(&order_id, source, &hash, htlc)
        } else {
            json!({ "order_id": order_id, "to": source_swap["swap_id"], "amount": source["amount"] })
        };
        let record = json!({
            "created_at": now.to_rfc3339(), "source_swap": source_swap, "destination_swap": destination_swap, "nonce": "1", "order_id": order_id,
            "affiliate_fees": [], "version": "v3", "solver_id": SOLVER_ID, "integrator": "test", "deadline": now.timestamp() + 3_600,
        });
        *self.order.lock().unwrap() = Some(Order {
            record,
            htlc: htlc.clone(),
            source_is_paid: false,
            destination_is_paid: false,
            secret: None,
            source_is_redeemed: false,
        });
        response
    }

    fn evm_response(&self, order_id: &str, source: &Value, hash: &str, htlc: &str) -> Value {
        let amount: u128 = text(&source["amount"]).parse().unwrap();
        let is_native = source["asset"] == ETH;
        let transaction = |to: &str, data: String, value: u128| json!({ "chain_id": anvil::CHAIN_ID, "data": data, "gas_limit": "0x493e0", "to": to, "value": format!("{value:#x}") });
        let approve = format!("{}{}{}", self.chain.approve, anvil::padded(htlc), anvil::word(amount));
        let terms = [anvil::padded(anvil::SOLVER), anvil::word(EVM_SOURCE.into()), anvil::word(amount), hash.to_owned()];
        let initiate = format!("{}{}", self.chain.initiate, terms.concat());
        json!({
            "order_id": order_id,
            "approval_transaction": if is_native { Value::Null } else { transaction(&self.chain.token, approve, 0) },
            "initiate_transaction": transaction(htlc, initiate, if is_native { amount } else { 0 }),
            "typed_data": null,
        })
    }
}

/// What pays for what: the amount is that of the test, and the destination's follows from its asset.
fn quote(target: &str) -> Value {
    let parameter = |name: &str| {
        let pairs = target.split_once('?').unwrap().1.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).unwrap().1.replace("%3A", ":")
    };
    let (from, to) = (parameter("from"), parameter("to"));
    let leg = |asset: &str, amount: &str| json!({ "asset": asset, "amount": amount, "display": "1", "value": "1" });
    json!([{
        "source": leg(&from, &parameter("from_amount")), "destination": leg(&to, &super::amount(&to).to_string()),
        "solver_id": SOLVER_ID, "estimated_time": 60, "slippage": 50, "fee": 30, "fixed_fee": "0",
    }])
}

/// A side of a record on which nothing has happened.
fn swap(asked: &Value, swap_id: &str, timelock: u64, hash: &str) -> Value {
    let asset = text(&asked["asset"]);
    json!({
        "created_at": chrono::Utc::now().to_rfc3339(), "swap_id": swap_id, "chain": asset.split(':').next(), "asset": asset,
        "timelock": timelock, "filled_amount": "0", "asset_price": 1, "amount": asked["amount"], "secret_hash": hash, "secret": "",
        "initiate_tx_hash": "", "redeem_tx_hash": "", "refund_tx_hash": "", "initiate_block_number": "0", "redeem_block_number": "0",
        "refund_block_number": "0", "required_confirmations": 1, "current_confirmations": 0, "initiate_timestamp": null,
        "redeem_timestamp": null, "refund_timestamp": null,
    })
}

fn evm_swap(asked: &Value, initiator: &str, redeemer: &str, timelock: u64, hash: &str, htlc: &str) -> Value {
    let id = evm_id(initiator, redeemer, timelock, text(&asked["amount"]).parse().unwrap(), hash, htlc);
    let mut swap = swap(asked, &id, timelock, hash);
    swap["initiator"] = json!(initiator);
    swap["redeemer"] = json!(redeemer);
    swap
}

/// The id that the contract gives to these terms.
pub fn evm_id(initiator: &str, redeemer: &str, timelock: u64, amount: u128, hash: &str, htlc: &str) -> String {
    let account = |text: &str| address::parse(&Network::Evm(anvil::CHAIN_ID), text).unwrap();
    let (initiator, redeemer, htlc) = (account(initiator), account(redeemer), account(htlc));
    let input = SwapIdInput {
        secret_hash: &array(hash),
        initiator: initiator.bytes(),
        redeemer: redeemer.bytes(),
        timelock,
        amount: U256::from(amount),
    };
    hex::encode(swap_id::evm(Version::V3, anvil::CHAIN_ID, &input, htlc.bytes()))
}
