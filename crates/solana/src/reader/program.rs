//! Describes a deployed program, for pinning.

use countersign_core::chains::Network;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::{Code, Refusal};

use super::account::{self, Accounts};
use super::{FINALIZED, identity};
use crate::address::Address;
use crate::htlc::SolanaGeneration;
use crate::read;

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
    pub generation: Option<&'static SolanaGeneration>,
}

impl Agree for ProgramDescription {
    type Key = Self;

    fn key(&self) -> Self {
        self.clone()
    }
}

/// Which program is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramQuery {
    network: Network,
    program: Address,
    swap_account: Option<Address>,
}

impl ProgramQuery {
    /// Creates the query for a program. The account of an open swap, if there is one, shows the generation.
    #[must_use]
    pub fn new(network: &Network, program: Address, swap_account: Option<Address>) -> Self {
        Self { network: network.clone(), program, swap_account }
    }
}

/// Reads the description of a program: first the program's account, and then the account with the code that it names.
#[derive(Debug)]
pub struct Program {
    identity: Identity,
    query: ProgramQuery,
    /// What the first round has shown.
    found: Option<ProgramDescription>,
}

impl Machine for Program {
    type Subject = ProgramQuery;
    type Output = ProgramDescription;
    const MAX_ROUNDS: usize = 2;

    fn start(query: &ProgramQuery, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let machine = Self { identity: identity(&query.network)?, query: query.clone(), found: None };
        let requests = vec![account::get(&machine.keys(), FINALIZED, 0)];
        Ok((machine, requests))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<ProgramDescription>, Fault> {
        let cursor = replies.json(0)?;
        if let Some(mut description) = self.found.take() {
            let accounts = Accounts::read(&cursor, 1)?;
            if let Some(account) = accounts.get(0) {
                let data = read::program_data(account.owner, &account.data);
                let data = data.map_err(|why| cursor.at().refuse(Code::WrongType).with_reason(why.to_string()))?;
                description.code_hash = Some(data.code_hash);
                description.deploy_slot = Some(data.slot);
                description.upgrade_authority = data.authority;
            }
            return Ok(Turn::Done(description));
        }
        let accounts = Accounts::read(&cursor, self.keys().len())?;
        let swap = accounts.get(1).filter(|swap| swap.owner == self.query.program);
        let stored = swap.and_then(|swap| read::swap_account(&swap.data).ok());
        let of_form = |form| SolanaGeneration::ALL.iter().copied().find(|generation| generation.form == form);
        let generation = stored.and_then(|stored| of_form(stored.form));
        let description = ProgramDescription { code_hash: None, deploy_slot: None, upgrade_authority: None, generation };
        match accounts.get(0).and_then(|program| read::program(program.owner, &program.data)) {
            Some(at) => {
                self.found = Some(description);
                Ok(Turn::Ask(vec![account::get(&[at], FINALIZED, 0)]))
            }
            None => Ok(Turn::Done(description)),
        }
    }
}

impl Program {
    fn keys(&self) -> Vec<Address> {
        [self.query.program].into_iter().chain(self.query.swap_account).collect()
    }
}
