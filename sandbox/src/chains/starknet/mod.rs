//! Starknet, as a model: no Cairo is executed.
//!
//! Real are the hashes of transactions and messages, addresses of accounts and of storage, signatures (judged by the curve's reference
//! library), the interface and class of the HTLC (of November 2025) and the JSON-RPC. The rules of the HTLC, of the tokens and of the
//! accounts are a state machine. Hashes of blocks, gas and the classes of tokens are invented.
//!
//! - An account is `Account` of OpenZeppelin 1.0.0, at the address that follows from its public key. It exists as soon as it has tokens:
//!   nothing has to be deployed.
//! - L1 accepts a block as soon as five more are there.
//! - The newest 20,000 blocks with transactions are kept, and the state of every block since then.
//! - Tokens from nowhere come in a block of their own.
//! - Transactions in one call of an estimate or a simulation all see the same state.

mod engine;
mod felts;
mod front;
mod htlc;
mod invoke;
mod ledger;
mod machine;
mod shapes;
mod token;

use std::sync::Arc;

use alloy_primitives::U256;
use starknet_crypto::Felt;

use self::felts::{account_of_key, contract_address, hex, short};
use self::invoke::Invoke;
use self::ledger::{At, Ledger};
use self::machine::{HTLC_CLASS, STRK, Token, World};
use crate::accounts;
use crate::chains::Event;
use crate::clock::Clock;

/// A token: symbol, name, decimals, price in dollars, and its address on the main network.
const ASSETS: [(&str, u8, Felt); 3] = [
    ("STRK", 18, STRK),
    ("WBTC", 8, Felt::from_hex_unchecked("0x3fe2b97c1fd336e750087d68b9b867997fd64a2661ff3ca5a7c771641e8e7ac")),
    ("ETH", 18, Felt::from_hex_unchecked("0x49d36570d4e46f48e99674bd3fcc84644ddd6b96f7c741b1562b82f9e004dc7")),
];
/// What the solver and the relayer have of each token, in whole ones.
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

/// A call of an account.
struct Call {
    to: Felt,
    function: &'static str,
    calldata: Vec<Felt>,
}

impl Starknet {
    /// Starts a chain: its name in asset ids, and its chain id as a short string, for example `starknet` and `SN_MAIN`, or
    /// `starknet_devnet` and `SN_DEVNET` (registries know `SN_SEPOLIA` as another chain's).
    #[must_use]
    pub fn new(name: &str, chain_id: &str, clock: Arc<Clock>) -> Self {
        let token = |(symbol, decimals, address): (&'static str, u8, Felt)| {
            let htlc = contract_address(short(symbol), HTLC_CLASS, &[address]);
            Token { address, symbol, decimals, htlc }
        };
        let world = World { chain_id: short(chain_id), tokens: ASSETS.into_iter().map(token).collect() };
        let mut ledger = Ledger::new(world, clock.seconds());
        for role in [accounts::SOLVER, accounts::RELAYER] {
            for (_, decimals, address) in ASSETS {
                let unit = U256::from(10).saturating_pow(U256::from(decimals));
                let amount = U256::from(LAVISH).saturating_mul(unit);
                ledger.give(address, account_of_key(&accounts::key(role)), amount);
            }
        }
        Self { name: name.to_owned(), chain_id: chain_id.to_owned(), clock, ledger, events: Vec::new() }
    }

    /// Submits a transaction of an account whose key is known, unless it would revert.
    fn submit(&mut self, key: &[u8; 32], calls: &[Call]) -> Result<String, String> {
        let sender = account_of_key(key);
        let mut calldata = vec![Felt::from(calls.len())];
        for call in calls {
            calldata.extend([call.to, felts::selector(call.function), Felt::from(call.calldata.len())]);
            calldata.extend(&call.calldata);
        }
        let mut bounds = [(10_000, 0), (200_000_000, 0), (50_000, 0)];
        for ((_, offered), price) in bounds.iter_mut().zip(invoke::PRICES) {
            *offered = price.saturating_mul(2);
        }
        let mut transaction = Invoke {
            sender,
            calldata,
            signature: Vec::new(),
            nonce: self.ledger.nonce(At::Pending, sender),
            bounds,
            tip: 0,
            paymaster: Vec::new(),
            deployment: Vec::new(),
            modes: [0, 0],
            version: Felt::THREE,
        };
        let outcome = self.ledger.try_out(At::Pending, &transaction, true);
        if let Some(trace) = outcome.reverted {
            return Err(outcome.failure.map_or(trace, |failure| failure.reason()));
        }
        let hash = transaction.hash(self.ledger.world.chain_id);
        transaction.signature = felts::signed(key, hash).ok_or("the hash cannot be signed")?;
        self.ledger.submit(transaction).map(hex).map_err(|refused| refused.1)
    }
}
