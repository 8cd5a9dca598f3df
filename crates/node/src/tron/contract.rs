//! Describes a deployed contract, for pinning.

use countersign::Asset;
use countersign::json::Node;
use countersign::tron::alloy_primitives::{Address as AbiAddress, B256, keccak256};
use countersign::tron::{Address, read};
use countersign_client::Transport;
use futures_util::future::try_join3;
use serde_json::json;

use super::call::{self, Call};
use super::{NEWEST, TronChain, ask, bytes, written};
use crate::contracts::Description;
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::quorum::agree;

/// The maximum length in bytes of a contract's code.
const MAX_CODE: usize = 512 * 1024;

/// The code hash of a contract, and what its getters return.
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

impl<'n, T: Transport> TronChain<'n, T> {
    pub(crate) async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        let Some(contract) = asset.htlc.as_ref().and_then(Address::from_account) else { return Ok(Description::default()) };
        let described = self.describe_contract(contract).await?;
        Ok(Description::default().with("code_hash", described.code_hash).with("version", described.version).with("token", described.token))
    }

    /// Reads the description of a contract. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn describe_contract(&self, contract: Address) -> Result<ContractDescription, NodeError> {
        let describe = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let read_code = |node: &Node<'_, '_>| match node.object()?.get("runtimecode") {
                Some(code) => Ok(Some(bytes(&code, MAX_CODE)?).filter(|code| !code.is_empty())),
                None => Ok(None),
            };
            let (version, token) = (read::version_call(), read::token_call());
            let (code, version, token) = try_join3(
                ask(caller, "/wallet/getcontractinfo", json!({"value": written(contract), "visible": false}), read_code),
                call::run(caller, NEWEST, &Call::view(contract, &version)),
                call::run(caller, NEWEST, &Call::view(contract, &token)),
            )
            .await?;
            Ok(ContractDescription {
                code_hash: code.map(keccak256),
                version: version.returned().and_then(|answer| read::text(&answer).ok()),
                token: token.returned().and_then(|answer| read::address(&answer).ok()).map(|token: AbiAddress| token.into()),
            })
        };
        let mut descriptions = agree(self.connection.each(describe).await, self.connection.needed(), Clone::clone)?;
        descriptions.pop().ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }
}
