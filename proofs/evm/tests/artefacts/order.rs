//! An honest service: its registry, requests, responses and order records. As in real answers, addresses have a
//! checksum in requests and records, and are in lower case in transactions and typed data.

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use alloy_sol_types::SolCall;
use countersign::evm::{FundingPath, TxContext, UnsignedOrder};
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry, SecretHash, Verified, wire::RequestedLeg};
use countersign_proofs_evm::abi::{Erc20, Htlc};
use serde_json::{Value, json};

use crate::{AMOUNT, Asset, CBBTC, ETH, PAYOUT, PAYOUT_TIMELOCK, SECRET_HASH, TIMELOCK, USDT, WBTC, account};

const ORDER_ID: &str = "4784d9c7706413956fcfe6b9148adddc60eb6cfe3765f95b0f50600d874d3c26";

/// The owner's request, and the choices that the service is free to make.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) asset: Asset,
    pub(crate) owner: Address,
    pub(crate) delegate: Option<Address>,
    /// The allowance that the response proposes.
    pub(crate) approval: Option<U256>,
    pub(crate) destination_data: Option<Bytes>,
    /// The version in the typed data's domain. Without it there is no gasless path.
    pub(crate) domain: Option<&'static str>,
    /// The swap ids of source and destination. With them, there is an order record.
    pub(crate) swap_ids: Option<[B256; 2]>,
}

impl Order {
    pub(crate) const fn new(asset: Asset, owner: Address) -> Self {
        let has_token = asset.token.is_some();
        let approval = if has_token { Some(U256::MAX) } else { None };
        let domain = if has_token { Some("3") } else { None };
        Self { asset, owner, delegate: None, approval, destination_data: None, domain, swap_ids: None }
    }

    /// Returns the call that locks the funds, encoded with this crate's types.
    pub(crate) fn calldata(&self) -> Vec<u8> {
        let (initiator, redeemer) = (self.owner, account("solver").address());
        let (timelock, amount) = (U256::from(TIMELOCK), U256::from(AMOUNT));
        let plain = Htlc::initiate_0Call { redeemer, timelock, amount, secretHash: SECRET_HASH };
        let Htlc::initiate_0Call { secretHash, .. } = plain;
        match (self.delegate, self.destination_data.clone()) {
            (None, None) => plain.abi_encode(),
            (None, Some(data)) => Htlc::initiate_1Call { redeemer, timelock, amount, secretHash, destinationData: data }.abi_encode(),
            (Some(_), None) => Htlc::initiateOnBehalf_0Call { initiator, redeemer, timelock, amount, secretHash }.abi_encode(),
            (Some(_), Some(data)) => {
                Htlc::initiateOnBehalf_1Call { initiator, redeemer, timelock, amount, secretHash, destinationData: data }.abi_encode()
            }
        }
    }

    /// Returns the `result` of the response.
    pub(crate) fn result(&self) -> Value {
        let Asset { chain_id, htlc, token, .. } = self.asset;
        let value = if token.is_some() { U256::ZERO } else { U256::from(AMOUNT) };
        let approval = self.approval.zip(token).map(|(allowed, token)| {
            let data = Erc20::approveCall { spender: htlc, value: allowed }.abi_encode();
            json!({ "chain_id": chain_id, "to": token, "value": "0x0", "gas_limit": "0xea60", "data": hex::encode_prefixed(data) })
        });
        json!({
            "order_id": ORDER_ID,
            "approval_transaction": approval,
            "initiate_transaction": {
                "chain_id": chain_id,
                "to": htlc,
                "value": format!("{value:#x}"),
                "gas_limit": "0x493e0",
                "data": hex::encode_prefixed(self.calldata()),
            },
            "typed_data": self.domain.map(|version| self.typed_data(version)),
        })
    }

    fn typed_data(&self, version: &str) -> Value {
        let members = |members: &[[&str; 2]]| members.iter().map(|[name, kind]| json!({ "name": name, "type": kind })).collect::<Value>();
        json!({
            "primaryType": "Initiate",
            "domain": {
                "name": "HTLC",
                "version": version,
                "chainId": format!("{:#x}", self.asset.chain_id),
                "verifyingContract": self.asset.htlc,
            },
            "types": {
                "EIP712Domain":
                    members(&[["name", "string"], ["version", "string"], ["chainId", "uint256"], ["verifyingContract", "address"]]),
                "Initiate": members(&[["redeemer", "address"], ["timelock", "uint256"], ["amount", "uint256"], ["secretHash", "bytes32"]]),
            },
            "message": {
                "redeemer": account("solver").address(),
                "timelock": format!("{TIMELOCK:#x}"),
                "amount": format!("{AMOUNT:#x}"),
                "secretHash": SECRET_HASH,
            },
        })
    }

    /// Returns the order's record, or `null` without swap ids.
    pub(crate) fn record(&self) -> Value {
        let Some([source, destination]) = self.swap_ids else { return Value::Null };
        let solver = account("solver").address();
        let swap = |asset: Asset, id: B256, [initiator, redeemer]: [Address; 2], timelock: u64, amount: u64| {
            json!({
                "swap_id": hex::encode(id),
                "chain": asset.chain,
                "asset": asset.id,
                "initiator": initiator.to_string(),
                "redeemer": redeemer.to_string(),
                "timelock": timelock,
                "amount": amount.to_string(),
                "filled_amount": "0",
                "secret_hash": hex::encode(SECRET_HASH),
            })
        };
        json!({
            "order_id": ORDER_ID,
            "version": "v3",
            "created_at": "2025-09-01T12:00:00Z",
            "source_swap": swap(self.asset, source, [self.owner, solver], TIMELOCK, AMOUNT),
            "destination_swap": swap(CBBTC, destination, [solver, self.owner], PAYOUT_TIMELOCK, PAYOUT),
        })
    }

    /// Returns the wallet's request.
    fn request(&self) -> Result<CreateOrder, Refusal> {
        let leg = |asset: Asset, amount| -> Result<_, Refusal> {
            let id = asset.id.parse().map_err(|error| Refusal::new(error, asset.id))?;
            Ok(RequestedLeg::new(id, self.owner.to_string(), U256::from(amount)))
        };
        let mut source = leg(self.asset, AMOUNT)?;
        source.delegate = self.delegate.map(|delegate| delegate.to_string());
        Ok(CreateOrder::new(source, leg(CBBTC, PAYOUT)?).with_secret_hash(SecretHash(SECRET_HASH.0)))
    }

    /// Verifies and prepares the honest response.
    pub(crate) fn unsigned(&self, path: FundingPath<TxContext>, policy: &Policy) -> Result<UnsignedOrder, Refusal> {
        self.answered(&self.result(), path, policy)
    }

    /// Verifies and prepares a response with another result.
    pub(crate) fn answered(&self, result: &Value, path: FundingPath<TxContext>, policy: &Policy) -> Result<UnsignedOrder, Refusal> {
        let (registry, request) = (registry()?, self.request()?);
        let response = json!({ "status": "Ok", "result": result }).to_string();
        let record = self.swap_ids.map(|_| self.record().to_string());
        let mut proposal = Proposal::new(&request, response.as_bytes());
        if let Some(record) = &record {
            proposal = proposal.with_record(record.as_bytes());
        }
        let Verified::Evm(verified) = countersign::verify(proposal, &registry, policy)? else { panic!("an order of another family") };
        verified.prepare(path)
    }
}

/// Returns the wallet's pinned registry.
pub(crate) fn registry() -> Result<Registry, Refusal> {
    let chain = |asset: Asset| json!({ "chain": asset.chain, "id": format!("evm:{}", asset.chain_id) });
    let pin = |asset: Asset| {
        json!({
            "id": asset.id,
            "chain": asset.chain,
            "decimals": if asset.token.is_some() { 8 } else { 18 },
            "htlc": { "address": asset.htlc },
            "token": asset.token.map(|address| json!({ "address": address })),
        })
    };
    let solver = |asset: Asset| json!({ "solver_id": "solver-1", "chain": asset.chain, "address": account("solver").address() });
    let text = json!({
        "chains": [chain(WBTC), chain(CBBTC)],
        "assets": [pin(WBTC), pin(USDT), pin(ETH), pin(CBBTC)],
        "solvers": [solver(WBTC), solver(CBBTC)],
    });
    Registry::from_json(text.to_string().as_bytes())
}
