//! Describes a deployed contract, for pinning.

use alloy_primitives::{B256, keccak256};
use countersign_core::Refusal;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request};
use countersign_evm_core::read;
use serde_json::json;

use super::call::{Call, Outcome};
use super::{OnChain, View, bytes, post, value, written};
use crate::Address;

/// The maximum length in bytes of a contract's code.
pub(super) const MAX_CODE: usize = 512 * 1024;

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

/// Reads the description of the contract at an address.
pub type Contract = Ask<OnChain<Address>>;

impl Question for OnChain<Address> {
    type Output = Equal<ContractDescription>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let code = post(View::Newest, "getcontractinfo", &json!({"value": written(self.subject), "visible": false}));
        let call = |data| Call::view(self.subject, data).request(View::Newest);
        vec![code, call(read::version_call()), call(read::token_call())]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<ContractDescription>, Fault> {
        let cursor = value(&replies.get(0)?)?;
        let code = cursor.object()?.get("runtimecode").map(|code| bytes(&code, MAX_CODE)).transpose()?;
        let (version, token) = (Outcome::read(&replies.get(1)?)?.returned(), Outcome::read(&replies.get(2)?)?.returned());
        Ok(Equal(ContractDescription {
            code_hash: code.filter(|code| !code.is_empty()).map(keccak256),
            version: version.and_then(|answer| read::text(&answer).ok()),
            token: token.and_then(|answer| read::address(&answer).ok()).map(Address::from),
        }))
    }
}
