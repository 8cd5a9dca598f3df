//! Describes a deployed contract, for pinning.

use countersign::json::Node;
use countersign::starknet::address::from_account;
use countersign::starknet::read;
use countersign::starknet::{Felt, StarknetGeneration, felt};
use countersign::{Asset, Code, Generation, Refusal};
use countersign_client::Transport;
use serde_json::{Value, json};

use super::block::{self, LATEST};
use super::{MAX_ANSWER, StarknetChain, call, felts, first, hex, is_of_contract};
use crate::contracts::Description;
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::quorum::agree;

/// The class of a contract, and what its getter returns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContractDescription {
    /// The hash of its class, which identifies its code. `None` if there is no contract at the address.
    pub class_hash: Option<Felt>,
    /// The generation whose interface the class has; `None` if no known generation has it. The interface of July 2025 is not known. A
    /// contract of that generation may look like one of February 2025.
    pub generation: Option<StarknetGeneration>,
    /// What `token()` returns; `None` if the contract does not have it.
    pub token: Option<Felt>,
}

/// Creates the call that reads the class of a contract, with its interface.
pub(super) fn class_at(contract: Felt, block: &Value) -> Call {
    Call::new("starknet_getClassAt", json!({"block_id": block, "contract_address": hex(contract)}))
}

/// Creates the call that reads the hash of a contract's class.
pub(super) fn class_hash_at(contract: Felt, block: &Value) -> Call {
    Call::new("starknet_getClassHashAt", json!({"block_id": block, "contract_address": hex(contract)}))
}

/// Reads the generation whose interface a class has; `None` if no known generation has it, or if there is no contract.
pub(super) fn generation<T: Transport>(
    caller: Caller<'_, T>,
    outcome: Result<Node<'_, '_>, NodeError>,
) -> Result<Option<StarknetGeneration>, NodeError> {
    let class = match outcome {
        Ok(class) => class,
        Err(error) if is_of_contract(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let malformed = |refusal| caller.malformed(refusal);
    let members = class.object().map_err(malformed)?;
    // In a Cairo 0 class this is a list. No known generation is written in Cairo 0.
    let Some(Ok(abi)) = members.get("abi").map(|abi| abi.text()) else { return Ok(None) };
    Ok(read::generation_of_abi(abi).ok())
}

impl<'n, T: Transport> StarknetChain<'n, T> {
    pub(crate) async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        let Some(contract) = asset.htlc.as_ref().and_then(from_account) else { return Ok(Description::default()) };
        let described = self.describe_contract(contract).await?;
        // A contract of July 2025 may look like one of February 2025, so a maintainer must pin this generation by hand.
        let is_certain = |generation: &StarknetGeneration| *generation != StarknetGeneration::February2025;
        Ok(Description::default()
            .with("class_hash", described.class_hash.map(hex))
            .with("token", described.token.map(hex))
            .with_generation(described.generation.filter(is_certain).map(Generation::Starknet)))
    }

    /// Reads the description of a contract. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn describe_contract(&self, contract: Felt) -> Result<ContractDescription, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let latest = caller.rpc(&[block::by_tag(LATEST)], |results| block::Block::read(&first(results)?)).await?;
            let newest = block::at(Self::latest(caller, latest)?.hash);
            let calls = [class_hash_at(contract, &newest), class_at(contract, &newest), call(contract, read::TOKEN, &[], &newest)];
            caller
                .rpc_each(&calls, |outcomes| {
                    let Ok([class_hash, class, token]) = <[_; 3]>::try_from(outcomes) else {
                        return Err(caller.malformed(Refusal::new(Code::MissingField, "/result")));
                    };
                    let malformed = |refusal| caller.malformed(refusal);
                    let known = |outcome: Result<Node<'_, '_>, NodeError>, read: &dyn Fn(Node<'_, '_>) -> Result<Option<Felt>, Refusal>| {
                        match outcome {
                            Ok(node) => read(node).map_err(malformed),
                            Err(error) if is_of_contract(&error) => Ok(None),
                            Err(error) => Err(error),
                        }
                    };
                    Ok(ContractDescription {
                        class_hash: known(class_hash, &|node| felt::read(node).map(Some))?,
                        generation: generation(caller, class)?,
                        token: known(token, &|node| Ok(read::address(&felts(&node, MAX_ANSWER)?).ok()))?,
                    })
                })
                .await?
        };
        let mut descriptions = agree(self.connection.each(ask).await, self.connection.needed(), Clone::clone)?;
        descriptions.pop().ok_or_else(|| self.not_connected())
    }
}
