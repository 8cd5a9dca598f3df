//! Describes a deployed contract, for pinning.

use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Reply, Request, Turn};
use countersign_core::{Refusal, StarknetGeneration};
use serde_json::{Value, json};
use starknet_types_core::felt::Felt;

use super::block::{self, LATEST};
use super::{Endpoint, MAX_ANSWER, call, check_version, felts, hex, spec_version, unless_of_contract};
use crate::{felt, read};

/// A contract on a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct ContractQuery {
    /// The chain id.
    pub chain_id: Felt,
    /// The contract.
    pub address: Felt,
}

/// The class of a contract, and what its getter returns. Endpoints must agree on all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContractDescription {
    /// The hash of its class, which identifies its code. `None` if there is no contract at the address.
    pub class_hash: Option<Felt>,
    /// The generation whose interface the class has; `None` if no known generation has it. The interface of July 2025 is not known. A
    /// contract of that generation may look like one of February 2025.
    pub generation: Option<&'static StarknetGeneration>,
    /// What `token()` returns; `None` if the contract does not have it.
    pub token: Option<Felt>,
}

impl Agree for ContractDescription {
    type Key = Self;

    fn key(&self) -> Self {
        self.clone()
    }
}

/// Describes a contract at an endpoint's newest block.
#[derive(Debug)]
pub struct Contract {
    address: Felt,
    endpoint: Endpoint,
    is_block_read: bool,
}

impl Machine for Contract {
    type Subject = ContractQuery;
    type Output = ContractDescription;
    const MAX_ROUNDS: usize = 2;

    fn start(query: &ContractQuery, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let machine = Self { address: query.address, endpoint: Endpoint::new(query.chain_id, known), is_block_read: false };
        Ok((machine, vec![spec_version(), block::by_tag(LATEST)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.endpoint.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<ContractDescription>, Fault> {
        let contract = self.address;
        if !std::mem::replace(&mut self.is_block_read, true) {
            check_version(&replies.get(0)?)?;
            let newest = block::at(self.endpoint.newest(&replies.json(1)?)?.hash);
            let requests = vec![class_hash_at(contract, &newest), class_at(contract, &newest), call(contract, read::TOKEN, &[], &newest)];
            return Ok(Turn::Ask(requests));
        }
        Ok(Turn::Done(ContractDescription {
            class_hash: class_hash(&replies.get(0)?)?,
            generation: generation(&replies.get(1)?)?,
            token: token(&replies.get(2)?)?,
        }))
    }

    fn learned(&self) -> Known {
        self.endpoint.learned.clone()
    }
}

/// Creates the request for the class of a contract, with its interface.
pub(super) fn class_at(contract: Felt, block: &Value) -> Request {
    Request::json_rpc("starknet_getClassAt", json!({"block_id": block, "contract_address": hex(contract)}))
}

/// Creates the request for the hash of a contract's class.
pub(super) fn class_hash_at(contract: Felt, block: &Value) -> Request {
    Request::json_rpc("starknet_getClassHashAt", json!({"block_id": block, "contract_address": hex(contract)}))
}

/// Reads the hash of a contract's class; `None` if there is no contract.
pub(super) fn class_hash(reply: &Reply<'_>) -> Result<Option<Felt>, Fault> {
    Ok(unless_of_contract(reply)?.map(felt::read).transpose()?)
}

/// Reads what a contract's `token()` returns; `None` if the contract does not have it.
pub(super) fn token(reply: &Reply<'_>) -> Result<Option<Felt>, Fault> {
    let felts = unless_of_contract(reply)?.map(|cursor| felts(&cursor, MAX_ANSWER)).transpose()?;
    Ok(felts.and_then(|felts| read::address(&felts).ok()))
}

/// Reads the generation whose interface a class has; `None` if no known generation has it, or if there is no contract.
pub(super) fn generation(reply: &Reply<'_>) -> Result<Option<&'static StarknetGeneration>, Fault> {
    let Some(class) = unless_of_contract(reply)? else { return Ok(None) };
    let members = class.object()?;
    // In a Cairo 0 class this is a list. No known generation is written in Cairo 0.
    let Some(Ok(abi)) = members.get("abi").map(|abi| abi.text()) else { return Ok(None) };
    Ok(read::generation_of_abi(abi).ok())
}
