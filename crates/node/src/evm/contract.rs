//! Describes a deployed contract, for pinning.

use countersign::evm::address::from_account;
use countersign::evm::alloy_primitives::{Address, B256, keccak256};
use countersign::evm::message::DOMAIN_NAME;
use countersign::evm::read::{self, Layout};
use countersign::{Asset, EvmGeneration, Generation};
use countersign_client::Transport;
use serde_json::json;

pub use countersign::evm::read::Domain;

use super::{EvmChain, MAX_ANSWER, at, block, call, first, revert};
use crate::contracts::Description;
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::quorum::agree;

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
    /// A contract of version 3 returns `3` from `version()` and in its EIP-712 domain. The older contract has the same domain name,
    /// another domain version, and no `version()`. This recognizes honest contracts only, because any code can return the same values.
    #[must_use]
    pub fn generation(&self, layout: Option<Layout>) -> Option<EvmGeneration> {
        let domain = self.domain.as_ref().filter(|domain| domain.name == DOMAIN_NAME && self.code_hash.is_some())?;
        let generation = match (self.version.as_deref(), domain.version.as_str()) {
            (Some("3"), "3") if self.token.is_some() => EvmGeneration::V3,
            (None, version) if version != "3" && (self.token.is_some() || layout.is_some()) => EvmGeneration::Old,
            _ => return None,
        };
        Some(generation).filter(|generation| layout.is_none_or(|layout| layout.generation() == *generation))
    }
}

impl<'n, T: Transport> EvmChain<'n, T> {
    pub(crate) async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        let Some(contract) = asset.htlc.as_ref().and_then(from_account) else { return Ok(Description::default()) };
        let described = self.describe_contract(contract).await?;
        let (domain, generation) = (described.domain.as_ref(), described.generation(None).map(Generation::Evm));
        Ok(Description::default()
            .with("code_hash", described.code_hash)
            .with("version", described.version)
            .with("token", described.token)
            .with("domain_name", domain.map(|domain| &domain.name))
            .with("domain_version", domain.map(|domain| &domain.version))
            .with_generation(generation))
    }

    /// Reads the description of a contract. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn describe_contract(&self, contract: Address) -> Result<ContractDescription, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let latest = caller.rpc(&[block::by_tag(block::LATEST)], |results| block::Block::read(&first(results)?)).await?;
            let newest = at(self.latest(caller, latest)?.hash);
            let calls = [
                Call::new("eth_getCode", json!([contract, newest])),
                call(contract, &read::version_call(), &newest),
                call(contract, &read::token_call(), &newest),
                call(contract, &read::domain_call(), &newest),
            ];
            caller
                .rpc_each(&calls, |outcomes| {
                    let mut outcomes = outcomes.into_iter();
                    let mut bytes = |max| match outcomes.next() {
                        Some(Ok(node)) => node.hex_bytes(max).map(Some).map_err(|refusal| caller.malformed(refusal)),
                        Some(Err(error)) if revert(&error).is_none() => Err(error),
                        _ => Ok(None),
                    };
                    let code = bytes(MAX_CODE)?.filter(|code| !code.is_empty());
                    Ok(ContractDescription {
                        code_hash: code.map(keccak256),
                        version: bytes(MAX_ANSWER)?.and_then(|answer| read::text(&answer).ok()),
                        token: bytes(MAX_ANSWER)?.and_then(|answer| read::address(&answer).ok()),
                        domain: bytes(MAX_ANSWER)?.and_then(|answer| read::domain(&answer).ok()),
                    })
                })
                .await?
        };
        let mut descriptions = agree(self.connection.each(ask).await, self.connection.needed(), Clone::clone)?;
        descriptions.pop().ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }
}
