//! Describes a deployed program, for pinning.

use countersign::json::Node;
use countersign::solana::Address;
use countersign::solana::address::from_account;
use countersign::solana::htlc::SolanaGeneration;
use countersign::solana::read;
use countersign::{Asset, Generation};
use countersign_client::Transport;

use super::account::{self, Account, Accounts};
use super::{FINALIZED, SolanaChain, nth, unclear};
use crate::contracts::Description;
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::quorum::agree;

/// The code hash and the upgrade authority of a program.
///
/// If the hash or the slot of a program has changed, the program was upgraded and must be examined again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramDescription {
    /// The SHA-256 hash of the code without trailing zeros; `None` if there is no upgradeable program at the address.
    pub code_hash: Option<[u8; 32]>,
    /// The slot of the last deployment; `None` if there is no upgradeable program at the address.
    pub deploy_slot: Option<u64>,
    /// The account that can replace the program; `None` if nobody can, or if there is no upgradeable program.
    pub upgrade_authority: Option<Address>,
    /// The generation, recognized by the length of a swap account; `None` if no swap account was given or it was not recognized.
    pub generation: Option<SolanaGeneration>,
}

impl<'n, T: Transport> SolanaChain<'n, T> {
    pub(crate) async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        let Some(program) = asset.htlc.as_ref().and_then(from_account) else { return Ok(Description::default()) };
        let program = self.describe_program(program, None).await?;
        Ok(Description::default()
            .with("code_hash", program.code_hash.map(hex::encode))
            .with("deploy_slot", program.deploy_slot)
            .with("upgrade_authority", program.upgrade_authority)
            .with_generation(program.generation.map(Generation::Solana)))
    }

    /// Reads the description of a program. The endpoints must agree.
    ///
    /// The program itself does not show its generation. Pass the account of an open swap as `swap_account` to recognize the generation.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn describe_program(&self, program: Address, swap_account: Option<Address>) -> Result<ProgramDescription, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let keys: Vec<_> = [program].into_iter().chain(swap_account).collect();
            let accounts = |results: &[Node<'_, '_>]| Accounts::read(nth(results, 0)?, keys.len());
            let accounts = caller.rpc(&[account::get(&keys, FINALIZED, 0)], accounts).await?;
            let stored = accounts.get(1).filter(|swap| swap.owner == program).and_then(|swap| read::swap_account(&swap.data).ok());
            let mut description = ProgramDescription {
                code_hash: None,
                deploy_slot: None,
                upgrade_authority: None,
                generation: stored.map(|stored| stored.generation),
            };
            let at = accounts.get(0).and_then(|program| read::program(program.owner, &program.data));
            let Some(at) = at else { return Ok(description) };
            let deployed = |results: &[Node<'_, '_>]| {
                let node = nth(results, 0)?;
                let accounts = Accounts::read(node, 1)?;
                let data = accounts.get(0).map(|Account { owner, data, .. }| read::program_data(*owner, data));
                data.transpose().map_err(|why| unclear(node, why))
            };
            if let Some(deployed) = caller.rpc(&[account::get(&[at], FINALIZED, 0)], deployed).await? {
                description.code_hash = Some(deployed.code_hash);
                description.deploy_slot = Some(deployed.slot);
                description.upgrade_authority = deployed.authority;
            }
            Ok(description)
        };
        let mut descriptions = agree(self.connection.each(ask).await, self.connection.needed(), Clone::clone)?;
        descriptions.pop().ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }
}
