//! Executes what the library signs. Each test goes from a response of the service, through every check, to the
//! balances after its transactions and signatures.
//!
//! Responses are built with this crate's own types, and contracts are deployed at the addresses in them. The executed
//! transactions are the bytes that the library returns for broadcasting. They must equal those of its native types
//! and of its JSON.

#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "the helpers of the tests, where a panic is a failed test")]

mod delegate;
mod gasless;
mod native;
mod order;
mod recover;
mod tampered;
mod token;

use std::error::Error;

use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, U256, address, b256, hex};
use alloy_sol_types::{SolCall, sol};
use countersign::evm::{Evm, FundingPath, Key, SignedOrder, TxContext, UnsignedOrder};
use countersign::{Code, Policy, Refusal, Role};
use countersign_json::JsonArtefacts;
use countersign_proofs_evm::abi::{Erc20, Htlc, Order as Entry};
use countersign_proofs_evm::{Account, Contract, Receipt, World};
use serde_json::{Value, json};

use crate::order::Order;

type TestResult = Result<(), Box<dyn Error>>;

const START: u64 = 8_000_000;
const TIMELOCK: u64 = 7_200;
const PAYOUT_TIMELOCK: u64 = 3_600;
const AMOUNT: u64 = 50_000;
const PAYOUT: u64 = 49_500;
const MINTED: u64 = 1_000_000;
const SECRET: &[u8; 32] = b"countersign proofs: the secret!!";
const ETHER: U256 = U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]);

/// SHA-256 of [`SECRET`], by `sha256sum`.
const SECRET_HASH: B256 = b256!("62fba994be90586f088c35e11d85044fc8d82a5d3c8cb8b9c0fb7493391ad06a");

/// An asset as pinned in the registry.
#[derive(Clone, Copy, Debug)]
struct Asset {
    id: &'static str,
    chain: &'static str,
    chain_id: u64,
    htlc: Address,
    token: Option<Address>,
}

const WBTC: Asset = Asset {
    id: "ethereum_sepolia:wbtc",
    chain: "ethereum_sepolia",
    chain_id: 11_155_111,
    htlc: address!("d1e0ba2b165726b3a6051b765d4564d030fdcf50"),
    token: Some(address!("e918a5a47b8e0afac2382bc5d1e981613e63fb07")),
};
/// Its token requires the allowance to be reset to zero, and returns nothing.
const USDT: Asset = Asset {
    id: "ethereum_sepolia:usdt",
    htlc: address!("00000000000000000000000000000000000a0001"),
    token: Some(address!("00000000000000000000000000000000000a0002")),
    ..WBTC
};
const ETH: Asset = Asset { id: "ethereum_sepolia:eth", htlc: address!("00000000000000000000000000000000000a0003"), token: None, ..WBTC };
/// The asset that every order here pays out.
const CBBTC: Asset = Asset {
    id: "base_sepolia:cbbtc",
    chain: "base_sepolia",
    chain_id: 84_532,
    htlc: address!("00000000000000000000000000000000000b0001"),
    token: Some(address!("00000000000000000000000000000000000b0002")),
};

fn account(name: &str) -> Account {
    Account::from_phrase(&format!("countersign proofs: {name}"))
}

/// A chain with its swap contracts. The parties own tokens and coins and have approved nothing.
struct Stage {
    world: World,
    owner: Account,
    delegate: Account,
    solver: Address,
    thief: Account,
}

impl Stage {
    /// Returns the chain on which the owner pays.
    fn new() -> Result<Self, Box<dyn Error>> {
        let plain = Contract::Token { symbol: "WBTC", decimals: 8 };
        let stubborn = Contract::StubbornToken { symbol: "USDT", decimals: 6 };
        let mut stage = Self::on(WBTC.chain_id, &[(WBTC, plain), (USDT, stubborn)])?;
        stage.world.deploy_at(ETH.htlc, &Contract::NativeHtlc)?;
        Ok(stage)
    }

    /// Returns the chain on which the solver pays.
    fn payout() -> Result<Self, Box<dyn Error>> {
        Self::on(CBBTC.chain_id, &[(CBBTC, Contract::Token { symbol: "cbBTC", decimals: 8 })])
    }

    fn on(chain_id: u64, tokens: &[(Asset, Contract<'_>)]) -> Result<Self, Box<dyn Error>> {
        let mut world = World::new(chain_id, START);
        let (owner, delegate, thief) = (account("owner"), account("delegate"), account("thief"));
        let solver = account("solver").address();
        for account in [owner.address(), delegate.address(), thief.address()] {
            world.fund(account, ETHER);
        }
        for (asset, contract) in tokens {
            let token = asset.token.expect("an asset with a token");
            world.deploy_at(token, contract)?;
            world.deploy_at(asset.htlc, &Contract::Htlc { token, version: "3" })?;
            for payer in [owner.address(), delegate.address(), solver] {
                let mint = Erc20::mintCall { to: payer, value: U256::from(MINTED) };
                assert!(world.call(payer, token, mint.abi_encode(), U256::ZERO)?.is_success());
            }
        }
        Ok(Self { world, owner, delegate, solver, thief })
    }

    /// Returns one of the owner's orders, as the service answers it.
    fn order(&self, asset: Asset) -> Order {
        Order::new(asset, self.owner.address())
    }

    /// Returns both funding paths, with the nonce and fees for the sender's next transactions.
    fn wallet(&self, sender: &Account) -> FundingPath<TxContext> {
        FundingPath::Both(self.calls(sender))
    }

    /// Returns the nonce and fees for the sender's next transactions.
    fn calls(&self, sender: &Account) -> TxContext {
        TxContext::eip1559(self.world.nonce_of(sender.address()), 3_000_000_000, 1_000_000_000)
    }

    /// Verifies, prepares and signs the owner's order.
    fn sign(&self, order: &Order) -> Result<SignedOrder, Refusal> {
        sign(order.unsigned(self.wallet(&self.owner), &Policy::default())?, &self.owner)
    }

    /// Broadcasts every transaction of an order and returns the receipts.
    fn broadcast(&mut self, signed: &SignedOrder) -> Result<Vec<Receipt>, Box<dyn Error>> {
        transactions(signed)?.iter().map(|raw| Ok(self.world.send_raw(raw)?)).collect()
    }

    /// Broadcasts every transaction, all of which must succeed. Returns the id under which the contract holds the
    /// order.
    fn execute(&mut self, signed: &SignedOrder, asset: Asset) -> Result<B256, Box<dyn Error>> {
        let receipts = self.broadcast(signed)?;
        for receipt in &receipts {
            assert!(receipt.is_success(), "{:?}", receipt.outcome);
        }
        let event: Htlc::Initiated = receipts.last().and_then(|last| last.event(asset.htlc)).expect("an initiated order is logged");
        assert_eq!((event.secretHash, event.amount), (SECRET_HASH, U256::from(AMOUNT)));
        Ok(event.orderId)
    }

    /// Calls an asset's HTLC as a stranger.
    fn relay(&mut self, asset: Asset, call: &impl SolCall) -> Result<Receipt, Box<dyn Error>> {
        Ok(self.world.call(account("relayer").address(), asset.htlc, call.abi_encode(), U256::ZERO)?)
    }

    /// Returns the token balances of owner, solver, delegate, thief and HTLC, in this order.
    fn holdings(&self, asset: Asset) -> Result<[U256; 5], Box<dyn Error>> {
        let token = asset.token.ok_or("an asset with a token")?;
        let mut holdings = [U256::ZERO; 5];
        let accounts = [self.owner.address(), self.solver, self.delegate.address(), self.thief.address(), asset.htlc];
        for (holding, account) in holdings.iter_mut().zip(accounts) {
            *holding = self.world.balance_of(token, account)?;
        }
        Ok(holdings)
    }

    /// Returns how much of the owner's tokens an HTLC may still take.
    fn allowance(&self, asset: Asset) -> Result<U256, Box<dyn Error>> {
        Ok(self.world.allowance(asset.token.ok_or("an asset with a token")?, self.owner.address(), asset.htlc)?)
    }

    /// Approves without a signature, as if long ago.
    fn approved_before(&mut self, asset: Asset, payer: Address, amount: u64) -> TestResult {
        let call = Erc20::approveCall { spender: asset.htlc, value: U256::from(amount) };
        assert!(self.world.call(payer, asset.token.ok_or("an asset with a token")?, call.abi_encode(), U256::ZERO)?.is_success());
        Ok(())
    }

    /// Returns what the contract should store under the order's id.
    fn entry(&self) -> Entry {
        Entry {
            initiator: self.owner.address(),
            redeemer: self.solver,
            initiatedAt: U256::from(START),
            timelock: U256::from(TIMELOCK),
            amount: U256::from(AMOUNT),
            fulfilledAt: U256::ZERO,
        }
    }
}

/// Signs everything with one key, in the format in which wallets provide it.
fn sign(mut unsigned: UnsignedOrder, account: &Account) -> Result<SignedOrder, Refusal> {
    let key: Key = format!("{:#x}", account.secret()).parse().expect("a key");
    unsigned.sign(&key)?;
    Ok(unsigned.finish()?)
}

/// Returns the signed transactions in the order of sending. Those in the JSON must equal the native ones.
fn transactions(signed: &SignedOrder) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let json = serde_json::to_value(JsonArtefacts::<Evm>(signed.payloads().payloads()))?;
    let found = ["approval_reset", "approval", "initiate"].iter().filter_map(|key| json[*key]["signed"].as_str());
    let found = found.map(hex::decode).collect::<Result<Vec<_>, _>>()?;
    let (roles, bytes): (Vec<_>, Vec<_>) = signed
        .transactions()
        .into_iter()
        .map(|transaction| {
            assert_eq!(
                (transaction.native.encoded_2718(), transaction.native.hash().to_string()),
                (transaction.bytes.clone(), transaction.id)
            );
            (transaction.role, transaction.bytes)
        })
        .unzip();
    assert!([Role::ApprovalReset, Role::Approval, Role::Initiate].ends_with(&roles), "{roles:?}");
    assert_eq!(found, bytes);
    Ok(found)
}

fn tokens(values: [u64; 5]) -> [U256; 5] {
    values.map(U256::from)
}

/// Returns what the sender paid for gas.
fn fee(receipts: &[Receipt]) -> U256 {
    receipts.iter().map(|receipt| U256::from(receipt.gas_price) * U256::from(receipt.gas_used)).sum()
}
