//! Describes a deployed contract, for pinning.

use alloy_primitives::{Address, B256, keccak256};
use countersign_core::reader::{Equal, Fault, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::{EvmGeneration, Refusal};
use serde_json::json;

use super::block::{self, Block};
use super::{MAX_ANSWER, OnChain, at, call, returned};
use crate::message::DOMAIN_NAME;
pub use crate::read::Domain;
use crate::read::{self, Layout};

/// The maximum length in bytes of a contract's code. EIP-170 allows 24,576, some chains allow more.
const MAX_CODE: usize = 512 * 1024;

/// The code hash of a contract, and what its getters return.
///
/// Two deployments of the same source can differ in their code, so a description belongs to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContractDescription {
    /// The Keccak-256 hash of the code; `None` if there is no code at the address.
    pub code_hash: Option<B256>,
    /// What `version()` returns; `None` if the contract does not have it.
    pub version: Option<String>,
    /// What `token()` returns; `None` if the contract does not have it.
    pub token: Option<Address>,
    /// What `eip712Domain()` returns; `None` if the contract does not have it.
    pub domain: Option<Domain>,
}

impl ContractDescription {
    /// Returns the generation that the description matches; `None` if it matches no known one.
    ///
    /// `layout` is the layout of an order that the contract stores ([`read::order`]), if one is known. If the layout belongs to another
    /// generation than the description, the result is `None`.
    ///
    /// A contract returns the version of its generation from `version()` and in its EIP-712 domain, or has no `version()`, and a domain
    /// version that is not another generation's. This recognizes honest contracts only, because any code can return the same values.
    #[must_use]
    pub fn generation(&self, layout: Option<Layout>) -> Option<&'static EvmGeneration> {
        let domain = self.domain.as_ref().filter(|domain| domain.name == DOMAIN_NAME && self.code_hash.is_some())?;
        let generation = EvmGeneration::of_domain(&domain.version)?;
        let has_getters = self.version.as_deref() == generation.domain_version
            && (self.token.is_some() || (layout.is_some() && !generation.native.has_token));
        (has_getters && layout.is_none_or(|layout| layout == generation.layout)).then_some(generation)
    }
}

/// Reads the description of a contract at the newest block.
#[derive(Debug)]
pub struct Contract {
    subject: OnChain<Address>,
    known: Known,
    newest: Option<Block>,
}

impl Machine for Contract {
    type Subject = OnChain<Address>;
    type Output = Equal<ContractDescription>;
    const MAX_ROUNDS: usize = 2;

    fn start(subject: &Self::Subject, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        Ok((Self { subject: *subject, known: known.clone(), newest: None }, vec![block::by_tag(block::LATEST)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.subject.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Self::Output>, Fault> {
        if self.newest.is_none() {
            let block = block::latest(replies, 0, self.subject.chain_id, &self.known)?;
            self.newest = Some(block);
            let (contract, newest) = (self.subject.subject, at(block.hash));
            return Ok(Turn::Ask(vec![
                Request::json_rpc("eth_getCode", json!([contract, newest])),
                call(contract, &read::version_call(), &newest),
                call(contract, &read::token_call(), &newest),
                call(contract, &read::domain_call(), &newest),
            ]));
        }
        let bytes = |index, max| returned(&replies.get(index)?, max);
        Ok(Turn::Done(Equal(ContractDescription {
            code_hash: bytes(0, MAX_CODE)?.filter(|code| !code.is_empty()).map(keccak256),
            version: bytes(1, MAX_ANSWER)?.and_then(|answer| read::text(&answer).ok()),
            token: bytes(2, MAX_ANSWER)?.and_then(|answer| read::address(&answer).ok()),
            domain: bytes(3, MAX_ANSWER)?.and_then(|answer| read::domain(&answer).ok()),
        })))
    }

    fn learned(&self) -> Known {
        block::learned(self.newest.as_ref())
    }
}
