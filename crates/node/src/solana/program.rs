//! What a program says about itself, for pinning.

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

/// What a program says about itself. A program that can be upgraded is another one once its hash or its slot has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramDescription {
    /// SHA-256 of the code without the zeros at its end; `None` if there is no upgradeable program at the address.
    pub code_hash: Option<[u8; 32]>,
    /// The slot of the last deployment.
    pub deploy_slot: Option<u64>,
    /// Who can replace the program; `None` if nobody can.
    pub upgrade_authority: Option<Address>,
    /// The generation, told by the length of a swap account; `None` without one.
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

    /// Asks what a program is. Nothing in a program itself names its generation: the account of an open swap does, if there is one.
    /// The endpoints must agree.
    ///
    /// # Errors
    ///
    /// [`NodeError`].
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
