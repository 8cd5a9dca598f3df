//! The tokens and swap contracts of a chain, the calls of a swap, and the events that show its progress. EVM chains
//! and Tron share them.

use alloy_primitives::{Address, B256, Bytes, Log, U256};
use alloy_sol_types::{SolCall, SolEvent, SolValue};
use countersign_proofs_evm::abi::{Erc20, Htlc};
use countersign_proofs_evm::{Contract, Outcome, World};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::chains::engine::{Change, Event, Terms};
use crate::http::put;

/// The version in the EIP-712 domain of messages that users sign.
pub(crate) const VERSION: &str = "3";

/// An asset and its contracts.
#[derive(Debug, Clone)]
pub(crate) struct Asset {
    /// The symbol, for example `usdc`.
    pub(crate) symbol: String,
    pub(crate) decimals: u8,
    /// `None` for the chain's own coin.
    pub(crate) token: Option<Address>,
    pub(crate) htlc: Address,
}

/// One side of an order with its addresses resolved.
#[derive(Debug, Clone)]
pub(crate) struct Swap {
    pub(crate) asset: Asset,
    pub(crate) initiator: Address,
    pub(crate) redeemer: Address,
    pub(crate) amount: U256,
    pub(crate) timelock: U256,
    pub(crate) hash: B256,
    pub(crate) id: B256,
}

impl Swap {
    pub(crate) fn new(chain_id: u64, asset: &Asset, initiator: Address, redeemer: Address, terms: &Terms) -> Self {
        let (amount, timelock, hash) = (U256::from(terms.amount), U256::from(terms.timelock), B256::from(terms.secret_hash));
        // The contract computes the id in the same way.
        let words = (U256::from(chain_id), hash, initiator, redeemer, timelock, amount, asset.htlc).abi_encode();
        let id = B256::from_slice(&Sha256::digest(words));
        Self { asset: asset.clone(), initiator, redeemer, amount, timelock, hash, id }
    }

    /// Returns the amount of the chain's own coin that the call carries.
    pub(crate) fn value(&self) -> U256 {
        if self.asset.token.is_none() { self.amount } else { U256::ZERO }
    }

    pub(crate) fn approve(&self) -> Vec<u8> {
        Erc20::approveCall { spender: self.asset.htlc, value: self.amount }.abi_encode()
    }

    pub(crate) fn initiate(&self) -> Vec<u8> {
        let Self { redeemer, timelock, amount, hash, .. } = *self;
        Htlc::initiate_0Call { redeemer, timelock, amount, secretHash: hash }.abi_encode()
    }

    /// Returns the initiation with data for the destination, which is empty here. Tron's orders use this form.
    pub(crate) fn initiate_with_data(&self) -> Vec<u8> {
        let Self { redeemer, timelock, amount, hash, .. } = *self;
        Htlc::initiate_1Call { redeemer, timelock, amount, secretHash: hash, destinationData: Bytes::new() }.abi_encode()
    }

    pub(crate) fn initiate_on_behalf(&self) -> Vec<u8> {
        let Self { initiator, redeemer, timelock, amount, hash, .. } = *self;
        Htlc::initiateOnBehalf_0Call { initiator, redeemer, timelock, amount, secretHash: hash }.abi_encode()
    }

    /// Returns the call that submits a user's signature, given as 65 bytes in hex.
    pub(crate) fn initiate_with_signature(&self, signature: &str) -> Result<Vec<u8>, String> {
        let Self { initiator, redeemer, timelock, amount, hash, .. } = *self;
        if self.asset.token.is_none() {
            return Err("a signature cannot pay the chain's own coin".to_owned());
        }
        let digits = signature.strip_prefix("0x").unwrap_or(signature);
        let mut bytes = hex::decode(digits).ok().filter(|bytes| bytes.len() == 65).ok_or("the signature is not 65 bytes in hex")?;
        if let Some(parity) = bytes.last_mut().filter(|parity| **parity < 27) {
            *parity = parity.saturating_add(27);
        }
        let signature = bytes.into();
        let call = Htlc::initiateWithSignatureCall { initiator, redeemer, timelock, amount, secretHash: hash, signature };
        Ok(call.abi_encode())
    }

    pub(crate) fn redeem(&self, secret: &[u8; 32]) -> Vec<u8> {
        Htlc::redeemCall { orderId: self.id, secret: Bytes::copy_from_slice(secret) }.abi_encode()
    }

    pub(crate) fn refund(&self) -> Vec<u8> {
        Htlc::refundCall { orderId: self.id }.abi_encode()
    }

    /// Returns the typed data that a user signs. `data` adds the member that Tron's messages have.
    pub(crate) fn typed_data(&self, chain_id: u64, write: impl Fn(Address) -> String, data: bool) -> Value {
        let member = |name: &str, kind: &str| json!({"name": name, "type": kind});
        let mut message = json!({
            "redeemer": write(self.redeemer),
            "timelock": format!("{:#x}", self.timelock),
            "amount": format!("{:#x}", self.amount),
            "secretHash": self.hash,
        });
        let domain = [("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address")];
        let initiate = [("redeemer", "address"), ("timelock", "uint256"), ("amount", "uint256"), ("secretHash", "bytes32")];
        let list = |members: &[(&str, &str)]| members.iter().map(|(name, kind)| member(name, kind)).collect::<Vec<_>>();
        let mut members = list(&initiate);
        if data {
            put(&mut message, "destinationData", json!("0x"));
            members.push(member("destinationData", "bytes"));
        }
        json!({
            "domain": {
                "name": "HTLC",
                "version": VERSION,
                "chainId": format!("{chain_id:#x}"),
                "verifyingContract": write(self.asset.htlc),
            },
            "message": message,
            "primaryType": "Initiate",
            "types": {"EIP712Domain": list(&domain), "Initiate": members},
        })
    }
}

/// Deploys a chain's tokens, a swap contract for each, and one for its own coin.
pub(crate) fn deploy(world: &mut World, coin: (&str, u8), tokens: &[(&str, u8)]) -> Vec<Asset> {
    // The contracts are compiled in, and their constructors do not fail. A missing asset would be a build error.
    let mut assets = Vec::new();
    if let Ok(htlc) = world.deploy(&Contract::NativeHtlc) {
        assets.push(Asset { symbol: coin.0.to_owned(), decimals: coin.1, token: None, htlc });
    }
    for (symbol, decimals) in tokens {
        let (name, decimals) = (symbol.to_uppercase(), *decimals);
        let contract = match *symbol {
            "usdc" => Contract::RegulatedToken { symbol: &name, decimals },
            "usdt" => Contract::StubbornToken { symbol: &name, decimals },
            _ => Contract::Token { symbol: &name, decimals },
        };
        let deployed = world.deploy(&contract).and_then(|token| Ok((token, world.deploy(&Contract::Htlc { token, version: VERSION })?)));
        if let Ok((token, htlc)) = deployed {
            assets.push(Asset { symbol: (*symbol).to_owned(), decimals, token: Some(token), htlc });
        }
    }
    assets
}

/// Makes a call that is required to succeed.
pub(crate) fn call(world: &mut World, from: Address, to: Address, data: Vec<u8>) -> Result<(), String> {
    let receipt = world.call(from, to, data, U256::ZERO).map_err(|error| error.to_string())?;
    failure(&receipt.outcome).map_or(Ok(()), Err)
}

/// Credits an account with an asset. Nobody pays for it.
pub(crate) fn fund(world: &mut World, asset: &Asset, account: Address, amount: U256) -> Result<(), String> {
    match asset.token {
        None => world.fund(account, amount),
        Some(token) => {
            let mint = Erc20::mintCall { to: account, value: amount }.abi_encode();
            let receipt = world.call(account, token, mint, U256::ZERO).map_err(|error| error.to_string())?;
            if !receipt.is_success() {
                return Err("the token cannot mint this amount".to_owned());
            }
        }
    }
    Ok(())
}

/// Credits the sandbox's accounts with ten million units of every asset, and approves the swap contracts for them.
pub(crate) fn endow(world: &mut World, assets: &[Asset], accounts: &[Address]) {
    for (asset, account) in assets.iter().flat_map(|asset| accounts.iter().map(move |account| (asset, *account))) {
        let amount = U256::from(10).saturating_pow(U256::from(asset.decimals)).saturating_mul(U256::from(10_000_000));
        // None of this fails: see `deploy`.
        let _ = fund(world, asset, account, amount);
        if let Some(token) = asset.token {
            let approve = Erc20::approveCall { spender: asset.htlc, value: U256::MAX }.abi_encode();
            let _ = world.call(account, token, approve, U256::ZERO);
        }
    }
}

/// Returns an account's balance of an asset.
pub(crate) fn balance(world: &World, asset: &Asset, account: Address) -> Result<U256, String> {
    match asset.token {
        None => Ok(world.native_balance_of(account)),
        Some(token) => world.balance_of(token, account).map_err(|error| error.to_string()),
    }
}

/// Returns the event on a swap that a log of a swap contract reports.
pub(crate) fn event(assets: &[Asset], log: &Log, transaction: &str, height: u64) -> Option<Event> {
    let data = &log.data;
    let (id, change) = if !assets.iter().any(|asset| asset.htlc == log.address) {
        return None;
    } else if let Ok(event) = Htlc::Initiated::decode_log_data_validate(data) {
        (event.orderId, Change::Initiated { amount: event.amount.saturating_to() })
    } else if let Ok(event) = Htlc::Redeemed::decode_log_data_validate(data) {
        (event.orderId, Change::Redeemed { secret: event.secret.as_ref().try_into().ok()? })
    } else {
        (Htlc::Refunded::decode_log_data_validate(data).ok()?.orderId, Change::Refunded)
    };
    Some(Event { swap_id: hex::encode(id), transaction: transaction.to_owned(), height, change })
}

/// Describes why an execution did not succeed.
pub(crate) fn failure(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Success { .. } => None,
        Outcome::Reverted { output } => Some(reverted(output)),
        Outcome::Halted { reason } => Some(format!("{reason:?}")),
    }
}

/// Describes why a contract reverted.
pub(crate) fn reverted(output: &[u8]) -> String {
    reason(output).map_or_else(|| "execution reverted".to_owned(), |reason| format!("execution reverted: {reason}"))
}

/// Returns the text of `Error(string)`, or the name of a custom error of the contracts.
pub(crate) fn reason(output: &[u8]) -> Option<String> {
    use alloy_sol_types::{Revert, SolError, SolInterface};
    if let Ok(revert) = Revert::abi_decode(output) {
        return Some(revert.reason);
    }
    if let Ok(error) = Htlc::HtlcErrors::abi_decode(output) {
        return Some(format!("{error:?}"));
    }
    Erc20::Erc20Errors::abi_decode(output).ok().map(|error| format!("{error:?}"))
}
