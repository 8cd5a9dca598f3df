//! Past states, and simulations on top of them.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use alloy_primitives::{Address, B256, Bytes, Log, U256};
use alloy_sol_types::SolEvent;
use revm::bytecode::Bytecode;
use revm::context::{BlockEnv, ContextTr, TxEnv};
use revm::context_interface::JournalTr;
use revm::context_interface::result::ResultAndState;
use revm::database::{CacheDB, DatabaseRef};
use revm::interpreter::{CallInputs, CallOutcome};
use revm::primitives::TxKind;
use revm::state::{AccountInfo, EvmState};
use revm::{DatabaseCommit, InspectEvm, Inspector, MainBuilder};

use crate::abi::Erc20;
use crate::receipt::Receipt;
use crate::world::{CALL_GAS_LIMIT, CallError, Checks, World, context, receipt};

/// The address that represents the chain's own coin in the logs of traced transfers (ERC-7528).
pub const NATIVE: Address = Address::repeat_byte(0xee);

/// The previous contents of accounts and slots that executions changed.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    accounts: BTreeMap<Address, Before>,
}

#[derive(Clone, Debug, Default)]
struct Before {
    /// `None` if the account did not exist.
    info: Option<AccountInfo>,
    slots: BTreeMap<U256, U256>,
}

impl Changes {
    /// Returns the changed accounts.
    pub fn accounts(&self) -> impl Iterator<Item = Address> {
        self.accounts.keys().copied()
    }

    /// Adds changes that were made before these. Where both have a previous value, the earlier one counts.
    pub fn add_earlier(&mut self, earlier: &Self) {
        for (address, before) in &earlier.accounts {
            let entry = self.accounts.entry(*address).or_default();
            entry.info.clone_from(&before.info);
            entry.slots.extend(&before.slots);
        }
    }
}

impl World {
    /// Sets the number of the current block and its time in Unix seconds.
    pub fn set_block(&mut self, number: u64, seconds: u64) {
        self.block.number = U256::from(number);
        self.block.timestamp = U256::from(seconds);
    }

    /// Returns the changes since the last call. Recording starts with the first call.
    pub fn take_changes(&mut self) -> Changes {
        self.changes.replace(Changes::default()).unwrap_or_default()
    }

    /// Undoes changes. Later changes must have been undone before.
    pub fn undo(&mut self, changes: Changes) {
        for (address, Before { info, slots }) in changes.accounts {
            let accounts = &mut self.accounts.cache.accounts;
            let Some(info) = info else {
                accounts.remove(&address);
                continue;
            };
            let account = accounts.entry(address).or_default();
            account.update_info(info);
            account.storage.extend(slots);
        }
    }

    /// Returns the state before `changes`.
    #[must_use]
    pub const fn before<'w>(&'w self, changes: &'w Changes) -> Past<'w> {
        Past { world: self, changes }
    }

    /// Records the contents of an account before it is changed.
    pub(crate) fn note(&mut self, address: Address) {
        if let Some(changes) = &mut self.changes {
            let Ok(info) = self.accounts.basic_ref(address);
            changes.accounts.entry(address).or_insert_with(|| Before { info, slots: BTreeMap::new() });
        }
    }

    /// Applies the result of an execution to the state.
    pub(crate) fn commit(&mut self, state: EvmState) {
        for (address, account) in state.iter().filter(|(_, account)| account.is_touched()) {
            self.note(*address);
            if let Some(before) = self.changes.as_mut().and_then(|changes| changes.accounts.get_mut(address)) {
                for (slot, value) in account.changed_storage_slots() {
                    before.slots.entry(*slot).or_insert(value.original_value);
                }
            }
        }
        self.accounts.commit(state);
    }
}

/// The state of a [`World`] at a block.
#[derive(Clone, Copy, Debug)]
pub struct Past<'w> {
    world: &'w World,
    changes: &'w Changes,
}

impl<'w> Past<'w> {
    /// Returns an account, or `None` if it never existed.
    #[must_use]
    pub fn account(&self, address: Address) -> Option<AccountInfo> {
        let Ok(info) = self.basic_ref(address);
        info
    }

    /// Returns the code at an address.
    #[must_use]
    pub fn code(&self, address: Address) -> Bytes {
        let hash = self.account(address).unwrap_or_default().code_hash;
        let Ok(code) = self.code_by_hash_ref(hash);
        code.original_bytes()
    }

    /// Returns a slot of an account's storage.
    #[must_use]
    pub fn slot(&self, address: Address, slot: U256) -> U256 {
        let Ok(value) = self.storage_ref(address, slot);
        value
    }

    /// Returns the addresses of all accounts.
    #[must_use]
    pub fn addresses(&self) -> BTreeSet<Address> {
        let known = self.world.accounts.cache.accounts.keys().chain(self.changes.accounts.keys());
        known.copied().filter(|address| self.account(*address).is_some()).collect()
    }

    /// Returns the slots of an account that are not zero.
    #[must_use]
    pub fn storage(&self, address: Address) -> BTreeMap<U256, U256> {
        let now = self.world.accounts.cache.accounts.get(&address).into_iter().flat_map(|account| account.storage.keys());
        let before = self.changes.accounts.get(&address).into_iter().flat_map(|account| account.slots.keys());
        now.chain(before).map(|slot| (*slot, self.slot(address, *slot))).filter(|(_, value)| !value.is_zero()).collect()
    }

    /// Starts a simulation on top of this state, in a block with this number and time in Unix seconds.
    #[must_use]
    pub fn simulate(self, number: u64, seconds: u64) -> Simulation<'w> {
        let block = BlockEnv { number: U256::from(number), timestamp: U256::from(seconds), ..self.world.block.clone() };
        Simulation { chain_id: self.world.chain_id(), block, accounts: CacheDB::new(self) }
    }
}

impl DatabaseRef for Past<'_> {
    type Error = Infallible;

    fn basic_ref(&self, address: Address) -> Result<Option<AccountInfo>, Infallible> {
        match self.changes.accounts.get(&address) {
            Some(before) => Ok(before.info.clone()),
            None => self.world.accounts.basic_ref(address),
        }
    }

    fn code_by_hash_ref(&self, hash: B256) -> Result<Bytecode, Infallible> {
        self.world.accounts.code_by_hash_ref(hash)
    }

    fn storage_ref(&self, address: Address, slot: U256) -> Result<U256, Infallible> {
        match self.changes.accounts.get(&address).and_then(|before| before.slots.get(&slot)) {
            Some(value) => Ok(*value),
            None => self.world.accounts.storage_ref(address, slot),
        }
    }

    fn block_hash_ref(&self, number: u64) -> Result<B256, Infallible> {
        self.world.accounts.block_hash_ref(number)
    }
}

/// A call without a signature.
#[derive(Clone, Debug, Default)]
pub struct UnsignedCall {
    /// The caller, which may be a contract.
    pub from: Address,
    /// The contract. `None` creates one.
    pub to: Option<Address>,
    /// The calldata.
    pub data: Bytes,
    /// The value in wei.
    pub value: U256,
    /// The gas limit. `None` is the maximum for a transaction.
    pub gas: Option<u64>,
}

/// Executions that have no effect on the chain.
#[derive(Debug)]
pub struct Simulation<'w> {
    chain_id: u64,
    block: BlockEnv,
    accounts: CacheDB<Past<'w>>,
}

impl Simulation<'_> {
    /// Sets the number of the block, and its time in Unix seconds.
    pub fn set_block(&mut self, number: u64, seconds: u64) {
        self.block.number = U256::from(number);
        self.block.timestamp = U256::from(seconds);
    }

    /// Changes an account before a call.
    pub fn change(&mut self, address: Address, change: impl FnOnce(&mut AccountInfo)) {
        let Ok(known) = self.accounts.basic_ref(address);
        let mut info = known.unwrap_or_default();
        change(&mut info);
        self.accounts.insert_account_info(address, info);
    }

    /// Puts code at an address.
    pub fn set_code(&mut self, address: Address, code: Bytes) {
        self.change(address, |info| *info = info.clone().with_code(Bytecode::new_raw(code)));
    }

    /// Writes a slot.
    pub fn set_slot(&mut self, address: Address, slot: U256, value: U256) {
        let Ok(()) = self.accounts.insert_account_storage(address, slot, value);
    }

    /// Replaces all slots of an account.
    pub fn set_storage(&mut self, address: Address, slots: BTreeMap<U256, U256>) {
        let Ok(()) = self.accounts.replace_account_storage(address, slots.into_iter().collect());
    }

    /// Executes a call after the preceding ones, without fees. If `traced`, transfers of the chain's own coin appear
    /// as logs of [`NATIVE`], including those of failed inner calls.
    ///
    /// # Errors
    ///
    /// Returns [`CallError`] if the caller lacks the value, or if the call is too large.
    pub fn run(&mut self, call: &UnsignedCall, traced: bool) -> Result<Receipt, CallError> {
        let transaction = TxEnv {
            caller: call.from,
            kind: call.to.map_or(TxKind::Create, TxKind::Call),
            data: call.data.clone(),
            value: call.value,
            gas_limit: call.gas.unwrap_or(CALL_GAS_LIMIT).min(CALL_GAS_LIMIT),
            gas_price: 0,
            chain_id: None,
            ..TxEnv::default()
        };
        let context = context(&mut self.accounts, &self.block, self.chain_id, Checks::Simulated);
        let ResultAndState { result, state } = if traced {
            context.build_mainnet_with_inspector(Transfers).inspect_tx(transaction)?
        } else {
            revm::ExecuteEvm::transact(&mut context.build_mainnet(), transaction)?
        };
        self.accounts.commit(state);
        Ok(receipt(result, None, call.from, 0))
    }
}

/// Logs transfers of the chain's own coin like those of a token, as `eth_simulateV1` does.
struct Transfers;

impl<C: ContextTr> Inspector<C> for Transfers {
    fn call(&mut self, context: &mut C, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if let Some(value) = inputs.transfer_value().filter(|value| !value.is_zero()) {
            let event = Erc20::Transfer { from: inputs.transfer_from(), to: inputs.transfer_to(), value };
            context.journal_mut().log(Log { address: NATIVE, data: event.encode_log_data() });
        }
        None
    }
}
