//! Describes a deployed contract, for pinning.

use alloy_primitives::{B256, keccak256};
use countersign_abi::read;
use countersign_core::Refusal;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
use serde_json::json;

use super::call::{Call, Outcome};
use super::{OnChain, View, bytes, post, value, written};
use crate::Address;

/// The maximum length in bytes of a contract's code.
const MAX_CODE: usize = 512 * 1024;

/// The code hash of a contract, and what its getters return. Endpoints must agree on all of it.
///
/// Two deployments of the same source can differ in their code, so a description belongs to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContractDescription {
    /// The Keccak-256 hash of the runtime code; `None` if there is no code at the address.
    pub code_hash: Option<B256>,
    /// What `version()` returns; `None` if the contract does not have it.
    pub version: Option<String>,
    /// What `token()` returns; `None` if the contract does not have it.
    pub token: Option<Address>,
}

impl Agree for ContractDescription {
    type Key = Self;

    fn key(&self) -> Self {
        self.clone()
    }
}

/// Reads the description of the contract at an address.
#[derive(Debug)]
pub struct Describe {
    chain_id: u64,
}

impl Machine for Describe {
    type Subject = OnChain<Address>;
    type Output = ContractDescription;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &Self::Subject, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let OnChain { chain_id, subject: contract } = *subject;
        let code = post(View::Newest, "getcontractinfo", &json!({"value": written(contract), "visible": false}));
        let call = |data| Call::view(contract, data).request(View::Newest);
        Ok((Self { chain_id }, vec![code, call(read::version_call()), call(read::token_call())]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<ContractDescription>, Fault> {
        let node = value(&replies.get(0)?)?;
        let code = node.object()?.get("runtimecode").map(|code| bytes(&code, MAX_CODE)).transpose()?;
        let (version, token) = (Outcome::read(&replies.get(1)?)?.returned(), Outcome::read(&replies.get(2)?)?.returned());
        Ok(Turn::Done(ContractDescription {
            code_hash: code.filter(|code| !code.is_empty()).map(keccak256),
            version: version.and_then(|answer| read::text(&answer).ok()),
            token: token.and_then(|answer| read::address(&answer).ok()).map(Address::from),
        }))
    }
}
