//! A model of Starknet that executes no Cairo.
//!
//! The reference SDK and its curve library provide the hashes of transactions and messages, the addresses of accounts
//! and storage, the signatures, the JSON-RPC types, and the interface and class of the HTLC (of November 2025). Calls
//! that the service's wallets send are decoded and applied to balances, allowances, nonces and orders. Any other call
//! reverts with a reason that names it. Block hashes, gas and the classes of tokens are invented.
//!
//! - An account is `Account` of OpenZeppelin 1.0.0, at the address derived from its public key. It exists as soon as
//!   it has tokens, so nothing has to be deployed.
//! - L1 accepts a block once five more exist.
//! - All blocks and their states are kept.
//! - Tokens are credited in a block of their own, without a transaction.
//! - Transactions in one estimate or simulation all start from the same state.

mod contracts;
mod engine;
mod felts;
mod front;
mod invoke;
mod ledger;
mod lies;

use std::sync::Arc;

use alloy_primitives::U256;
use starknet_core::crypto::ecdsa_sign;
use starknet_core::types::{Call, DataAvailabilityMode, ResourceBounds, ResourceBoundsMapping};
use starknet_core::utils::get_contract_address;
use starknet_crypto::Felt;

use self::contracts::{HTLC_CLASS, STRK, Token};
use self::felts::{account_of_key, short};
use self::invoke::{Invoke, PRICES, hash_of};
use self::ledger::{At, Ledger};
use crate::accounts;
use crate::chains::engine::Event;
use crate::chains::family::Family;
use crate::clock::Clock;

pub(super) const FAMILY: Family = Family {
    prefixes: &["starknet"],
    local: &[("starknet_devnet", "starknet:SN_DEVNET")],
    start: |start| Ok(Box::new(Starknet::new(start.name, start.network(), start.clock))),
    tour: &[["starknet:strk", "litecoin:ltc"], ["base:usdc", "starknet:wbtc"]],
    lies: lies::LIES,
    variants: lies::VARIANTS,
    interface: &lies::Rpc,
};

/// A token: symbol, name, decimals, price in dollars, and its mainnet address.
const ASSETS: [(&str, u8, Felt); 3] = [
    ("STRK", 18, STRK),
    ("WBTC", 8, Felt::from_hex_unchecked("0x3fe2b97c1fd336e750087d68b9b867997fd64a2661ff3ca5a7c771641e8e7ac")),
    ("ETH", 18, Felt::from_hex_unchecked("0x49d36570d4e46f48e99674bd3fcc84644ddd6b96f7c741b1562b82f9e004dc7")),
];
/// The balance of the solver and the relayer in each token, in whole units.
const LAVISH: u64 = 1_000_000_000;

/// A Starknet chain.
#[derive(Debug)]
pub struct Starknet {
    name: String,
    chain_id: String,
    clock: Arc<Clock>,
    ledger: Ledger,
    events: Vec<Event>,
}

impl Starknet {
    /// Starts a chain. `name` is its name in asset ids, and `chain_id` its chain id as a short string, for example
    /// `starknet` and `SN_MAIN`, or `starknet_devnet` and `SN_DEVNET`. In registries, `SN_SEPOLIA` is the id of
    /// another chain.
    #[must_use]
    pub fn new(name: &str, chain_id: &str, clock: Arc<Clock>) -> Self {
        let token = |(symbol, decimals, address): (&'static str, u8, Felt)| {
            let htlc = get_contract_address(short(symbol), HTLC_CLASS, &[address], Felt::ZERO);
            Token { address, symbol, decimals, htlc }
        };
        let mut ledger = Ledger::new(short(chain_id), ASSETS.map(token).into(), clock.seconds());
        for role in [accounts::SOLVER, accounts::RELAYER] {
            for (_, decimals, address) in ASSETS {
                let unit = U256::from(10).saturating_pow(U256::from(decimals));
                let amount = U256::from(LAVISH).saturating_mul(unit);
                // The amount is far below the maximum balance of an account.
                let _ = ledger.change(None, |view| view.credit(address, account_of_key(&accounts::key(role)), amount));
            }
        }
        Self { name: name.to_owned(), chain_id: chain_id.to_owned(), clock, ledger, events: Vec::new() }
    }

    /// Submits a transaction as an account whose key is known, unless it would revert.
    fn submit(&mut self, key: &[u8; 32], calls: &[Call]) -> Result<String, String> {
        let sender = account_of_key(key);
        let mut calldata = vec![Felt::from(calls.len())];
        for call in calls {
            calldata.extend([call.to, call.selector, Felt::from(call.calldata.len())]);
            calldata.extend(&call.calldata);
        }
        let bound = |max_amount, price: u64| ResourceBounds { max_amount, max_price_per_unit: u128::from(price).saturating_mul(2) };
        let [l1_gas, l2_gas, l1_data_gas] = PRICES;
        let resource_bounds = ResourceBoundsMapping {
            l1_gas: bound(10_000, l1_gas),
            l2_gas: bound(200_000_000, l2_gas),
            l1_data_gas: bound(50_000, l1_data_gas),
        };
        let mut transaction = Invoke {
            sender_address: sender,
            calldata,
            signature: Vec::new(),
            nonce: self.ledger.nonce(At::Pending, sender),
            resource_bounds,
            tip: 0,
            paymaster_data: Vec::new(),
            account_deployment_data: Vec::new(),
            nonce_data_availability_mode: DataAvailabilityMode::L1,
            fee_data_availability_mode: DataAvailabilityMode::L1,
            is_query: false,
        };
        if let Some(reason) = self.ledger.execute(At::Pending, &transaction, true).reverted {
            return Err(reason.lines().last().unwrap_or_default().to_owned());
        }
        let hash = hash_of(&transaction, self.ledger.chain_id);
        let signature = ecdsa_sign(&Felt::from_bytes_be(key), &hash).map_err(|error| error.to_string())?;
        transaction.signature = vec![signature.r, signature.s];
        self.ledger.submit(transaction).map(|hash| hash.to_hex_string()).map_err(|refused| refused.to_string())
    }
}
