//! A chain in memory.

use std::convert::Infallible;

use alloy_consensus::crypto::RecoveryError;
use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::{Transaction, TxEnvelope};
use alloy_eips::eip2718::Eip2718Error;
use alloy_eips::{Decodable2718, Encodable2718};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address};
use alloy_sol_types::SolCall;
use revm::bytecode::Bytecode;
use revm::context::{BlockEnv, Context, TxEnv};
use revm::context_interface::result::{EVMError, ExecutionResult, InvalidTransaction, ResultAndState};
use revm::database::{CacheDB, EmptyDB};
use revm::database_interface::{Database, DatabaseRef, WrapDatabaseRef};
use revm::handler::MainnetContext;
use revm::primitives::hardfork::SpecId;
use revm::{ExecuteEvm, MainBuilder, MainContext};
use thiserror::Error;

use crate::abi::{Erc20, Htlc, Order};
use crate::artefact::{ArtefactError, Contract};
use crate::past::{Changes, UnsignedCall};
use crate::receipt::{Outcome, Receipt};

/// The execution rules: the newest fork on Ethereum at the time of writing.
const FORK: SpecId = SpecId::OSAKA;

/// The nominal seconds between blocks.
const SECONDS_PER_BLOCK: u64 = 12;

/// The block's gas limit. It is above the limit of EIP-7825 for one transaction.
const BLOCK_GAS_LIMIT: u64 = 30_000_000;

/// The gas for one unsigned call. It is below the limit of EIP-7825, and far above what any contract here needs.
pub(crate) const CALL_GAS_LIMIT: u64 = 16_000_000;

/// One gwei.
const BASE_FEE: u64 = 1_000_000_000;

/// Receives the priority fees, so that no account of a test does.
const BENEFICIARY: Address = address!("00000000000000000000000000000000000beef1");

/// The sender of deployments.
const DEPLOYER: Address = address!("00000000000000000000000000000000000beef2");

/// A chain with its accounts and its current block. A clone is independent of the original.
///
/// Executions share the current block until [`World::advance_blocks`] closes it.
#[derive(Clone, Debug)]
pub struct World {
    chain_id: u64,
    pub(crate) block: BlockEnv,
    pub(crate) accounts: CacheDB<EmptyDB>,
    /// The recorded changes, if recording was requested.
    pub(crate) changes: Option<Changes>,
}

impl World {
    /// Returns an empty chain at the given block, with a base fee of 1 gwei.
    #[must_use]
    pub fn new(chain_id: u64, block_number: u64) -> Self {
        let block = BlockEnv {
            number: U256::from(block_number),
            timestamp: U256::from(block_number).saturating_mul(U256::from(SECONDS_PER_BLOCK)),
            gas_limit: BLOCK_GAS_LIMIT,
            basefee: BASE_FEE,
            beneficiary: BENEFICIARY,
            ..BlockEnv::default()
        };
        Self { chain_id, block, accounts: CacheDB::new(EmptyDB::new()), changes: None }
    }

    /// Returns the chain id that transactions and typed data must contain.
    #[must_use]
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// Returns the number of the current block.
    #[must_use]
    pub fn block_number(&self) -> u64 {
        self.block.number.saturating_to()
    }

    /// Returns the base fee of the current block, in wei per unit of gas.
    #[must_use]
    pub const fn base_fee(&self) -> u64 {
        self.block.basefee
    }

    /// Sets the base fee, in wei per unit of gas.
    pub const fn set_base_fee(&mut self, wei: u64) {
        self.block.basefee = wei;
    }

    /// Closes the current block, and adds `count - 1` empty ones. Each takes twelve seconds.
    pub fn advance_blocks(&mut self, count: u64) {
        let seconds = U256::from(count).saturating_mul(U256::from(SECONDS_PER_BLOCK));
        self.block.number = self.block.number.saturating_add(U256::from(count));
        self.block.timestamp = self.block.timestamp.saturating_add(seconds);
    }

    /// Credits an account with the native coin. Nobody pays for it.
    pub fn fund(&mut self, account: Address, wei: U256) {
        self.note(account);
        let Ok(known) = self.accounts.basic(account);
        let mut info = known.unwrap_or_default();
        info.balance = info.balance.saturating_add(wei);
        self.accounts.insert_account_info(account, info);
    }

    /// Removes up to this amount of the native coin from an account, for fees that a chain charges by its own rules.
    pub fn burn(&mut self, account: Address, wei: U256) {
        self.note(account);
        let Ok(known) = self.accounts.basic(account);
        let mut info = known.unwrap_or_default();
        info.balance = info.balance.saturating_sub(wei);
        self.accounts.insert_account_info(account, info);
    }

    /// Returns an account's native balance in wei.
    #[must_use]
    pub fn native_balance_of(&self, account: Address) -> U256 {
        let Ok(known) = self.accounts.basic_ref(account);
        known.unwrap_or_default().balance
    }

    /// Returns the nonce for an account's next transaction.
    #[must_use]
    pub fn nonce_of(&self, account: Address) -> u64 {
        let Ok(known) = self.accounts.basic_ref(account);
        known.unwrap_or_default().nonce
    }

    /// Deploys a contract at an address derived from the number of earlier deployments.
    ///
    /// # Errors
    ///
    /// Returns [`DeployError`] if the constructor reverts, as the HTLC's does for a zero token.
    pub fn deploy(&mut self, contract: &Contract<'_>) -> Result<Address, DeployError> {
        let address = DEPLOYER.create(self.nonce_of(DEPLOYER));
        let receipt = self.execute_unsigned(DEPLOYER, TxKind::Create, contract.init_code()?, U256::ZERO)?;
        if !receipt.is_success() {
            return Err(DeployError::Failed(receipt.outcome));
        }
        Ok(address)
    }

    /// Deploys a contract at a given address, for orders that name one.
    ///
    /// The constructor runs at that address, so immutables and storage are those of a real deployment. Unlike there,
    /// the address already has code while the constructor runs. No constructor here depends on that.
    ///
    /// # Errors
    ///
    /// Returns [`DeployError::Occupied`] if there is code at the address. Otherwise fails as [`World::deploy`] does.
    pub fn deploy_at(&mut self, address: Address, contract: &Contract<'_>) -> Result<(), DeployError> {
        // This works on a copy, so that a failed constructor leaves nothing behind.
        let mut next = self.clone();
        let Ok(known) = next.accounts.basic(address);
        let mut info = known.unwrap_or_default();
        if !info.is_empty_code_hash() {
            return Err(DeployError::Occupied { address });
        }
        info.nonce = 1;
        let init_code = Bytecode::new_raw(contract.init_code()?);
        next.accounts.insert_account_info(address, info.clone().with_code(init_code));

        let receipt = next.execute_unsigned(DEPLOYER, TxKind::Call(address), Bytes::new(), U256::ZERO)?;
        let Outcome::Success { output } = receipt.outcome else {
            return Err(DeployError::Failed(receipt.outcome));
        };
        next.accounts.insert_account_info(address, info.with_code(Bytecode::new_raw(output)));
        *self = next;
        Ok(())
    }

    /// Executes a signed transaction, as a node does when it receives the bytes.
    ///
    /// Legacy (EIP-155) and EIP-1559 transactions are supported. The signer is recovered from the signature, whose
    /// `s` must be low. Nonce, chain id, balance, gas limit and base fee are fully checked. A transaction that fails
    /// a check has no effect. One that reverts returns an `Ok` receipt, and has paid its fee.
    ///
    /// # Errors
    ///
    /// Returns [`SendError`] if no node would put the transaction into a block.
    pub fn send_raw(&mut self, raw: &[u8]) -> Result<Receipt, SendError> {
        let (envelope, from) = Self::decode(raw)?;
        self.send(&envelope, from)
    }

    /// Decodes a signed transaction and recovers its signer.
    ///
    /// # Errors
    ///
    /// Returns [`SendError`] if it is not a transaction that a chain of this kind accepts.
    pub fn decode(raw: &[u8]) -> Result<(TxEnvelope, Address), SendError> {
        let envelope = TxEnvelope::decode_2718_exact(raw)?;
        if !matches!(envelope, TxEnvelope::Legacy(_) | TxEnvelope::Eip1559(_)) {
            return Err(SendError::UnsupportedType(envelope.tx_type().into()));
        }
        if envelope.encoded_2718() != raw {
            return Err(SendError::NotCanonical);
        }
        envelope.chain_id().ok_or(SendError::Unprotected)?;
        let from = envelope.recover_signer()?;
        Ok((envelope, from))
    }

    /// Executes a transaction that [`World::decode`] has decoded.
    ///
    /// # Errors
    ///
    /// Fails as [`World::send_raw`] does.
    pub fn send(&mut self, envelope: &TxEnvelope, from: Address) -> Result<Receipt, SendError> {
        let transaction = TxEnv {
            tx_type: envelope.tx_type().into(),
            caller: from,
            gas_limit: envelope.gas_limit(),
            gas_price: envelope.max_fee_per_gas(),
            gas_priority_fee: envelope.max_priority_fee_per_gas(),
            kind: envelope.kind(),
            value: envelope.value(),
            data: envelope.input().clone(),
            nonce: envelope.nonce(),
            chain_id: envelope.chain_id(),
            access_list: envelope.access_list().cloned().unwrap_or_default(),
            ..TxEnv::default()
        };
        let gas_price = envelope.effective_gas_price(Some(self.block.basefee));
        let ResultAndState { result, state } = transact(&mut self.accounts, &self.block, self.chain_id, transaction, Checks::Full)?;
        self.commit(state);
        Ok(receipt(result, Some(*envelope.tx_hash()), from, gas_price))
    }

    /// Executes a call as `from` without a signature, and keeps its effects.
    ///
    /// For steps that are not under test, such as minting, or the actions of a relayer or counterparty. It pays no
    /// fee and does not change the caller's nonce. The value is taken from the caller's balance.
    ///
    /// # Errors
    ///
    /// Returns [`CallError`] if the caller lacks the value or has code.
    pub fn call(&mut self, from: Address, to: Address, data: impl Into<Bytes>, value: U256) -> Result<Receipt, CallError> {
        self.execute_unsigned(from, TxKind::Call(to), data.into(), value)
    }

    /// Calls a view function and decodes the result, without changing anything.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError`] if the call fails or its result does not match the function.
    pub fn read<C: SolCall>(&self, to: Address, call: &C) -> Result<C::Return, ReadError> {
        let transaction = unsigned(DEPLOYER, TxKind::Call(to), call.abi_encode().into(), U256::ZERO, 0);
        let accounts = WrapDatabaseRef(&self.accounts);
        let outcome = transact(accounts, &self.block, self.chain_id, transaction, Checks::Unsigned).map_err(CallError::from)?;
        match receipt(outcome.result, None, DEPLOYER, 0).outcome {
            Outcome::Success { output } => Ok(C::abi_decode_returns_validate(&output)?),
            failed => Err(ReadError::Failed(failed)),
        }
    }

    /// Returns an account's balance of a token, in base units.
    ///
    /// # Errors
    ///
    /// Fails as [`World::read`] does.
    pub fn balance_of(&self, token: Address, account: Address) -> Result<U256, ReadError> {
        self.read(token, &Erc20::balanceOfCall { owner: account })
    }

    /// Returns how much of `owner`'s tokens `spender` may still take, in base units.
    ///
    /// # Errors
    ///
    /// Fails as [`World::read`] does.
    pub fn allowance(&self, token: Address, owner: Address, spender: Address) -> Result<U256, ReadError> {
        self.read(token, &Erc20::allowanceCall { owner, spender })
    }

    /// Returns an HTLC's record of a swap id. It is all zero if there is none.
    ///
    /// # Errors
    ///
    /// Fails as [`World::read`] does.
    pub fn order(&self, htlc: Address, order_id: B256) -> Result<Order, ReadError> {
        self.read(htlc, &Htlc::ordersCall { orderId: order_id })
    }

    fn execute_unsigned(&mut self, from: Address, kind: TxKind, data: Bytes, value: U256) -> Result<Receipt, CallError> {
        self.run(&UnsignedCall { from, to: kind.to().copied(), data, value, gas: None })
    }

    /// Executes a call like [`World::call`], with a gas limit.
    ///
    /// # Errors
    ///
    /// Returns [`CallError`] if the caller lacks the value or has code, or if the limit does not cover the
    /// transaction itself.
    pub fn run(&mut self, call: &UnsignedCall) -> Result<Receipt, CallError> {
        let UnsignedCall { from, to, ref data, value, gas } = *call;
        let nonce = self.nonce_of(from);
        let mut transaction = unsigned(from, to.map_or(TxKind::Create, TxKind::Call), data.clone(), value, nonce);
        transaction.gas_limit = gas.unwrap_or(CALL_GAS_LIMIT).min(CALL_GAS_LIMIT);
        let ResultAndState { result, mut state } = transact(&mut self.accounts, &self.block, self.chain_id, transaction, Checks::Unsigned)?;
        // The address of a created contract depends on the nonce, so the nonce has to increase.
        if to.is_some()
            && let Some(caller) = state.get_mut(&from)
        {
            caller.info.nonce = nonce;
        }
        self.commit(state);
        Ok(receipt(result, None, from, 0))
    }
}

/// How much of a transaction's envelope is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// Everything a node checks.
    Full,
    /// Everything but the nonce and the base fee.
    Unsigned,
    /// The same as for unsigned calls, and contracts may call as well.
    Simulated,
}

fn transact<D: Database<Error = Infallible>>(
    accounts: D,
    block: &BlockEnv,
    chain_id: u64,
    transaction: TxEnv,
    checks: Checks,
) -> Result<ResultAndState, EVMError<Infallible, InvalidTransaction>> {
    context(accounts, block, chain_id, checks).build_mainnet().transact(transaction)
}

pub(crate) fn context<D: Database>(accounts: D, block: &BlockEnv, chain_id: u64, checks: Checks) -> MainnetContext<D> {
    let mut block = block.clone();
    if checks != Checks::Full {
        block.basefee = 0;
    }
    Context::mainnet().with_db(accounts).with_block(block).modify_cfg_chained(|cfg| {
        cfg.set_spec_and_mainnet_gas_params(FORK);
        cfg.chain_id = chain_id;
        cfg.tx_chain_id_check = true;
        cfg.disable_nonce_check = checks != Checks::Full;
        cfg.disable_eip3607 = checks == Checks::Simulated;
    })
}

fn unsigned(from: Address, kind: TxKind, data: Bytes, value: U256, nonce: u64) -> TxEnv {
    TxEnv { caller: from, kind, data, value, nonce, gas_limit: CALL_GAS_LIMIT, gas_price: 0, chain_id: None, ..TxEnv::default() }
}

pub(crate) fn receipt(result: ExecutionResult, hash: Option<B256>, from: Address, gas_price: u128) -> Receipt {
    let gas_used = result.gas().tx_gas_used();
    let (outcome, logs) = match result {
        ExecutionResult::Success { output, logs, .. } => (Outcome::Success { output: output.into_data() }, logs),
        ExecutionResult::Revert { output, .. } => (Outcome::Reverted { output }, Vec::new()),
        ExecutionResult::Halt { reason, .. } => (Outcome::Halted { reason }, Vec::new()),
    };
    Receipt { hash, from, outcome, gas_used, gas_price, logs }
}

/// Why a raw transaction was not executed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// Not a transaction, or one with trailing bytes.
    #[error("the bytes are not one transaction")]
    Malformed(#[from] Eip2718Error),
    /// The bytes are not the canonical encoding of the transaction that they decode to.
    #[error("the bytes are not the canonical encoding of the transaction they decode to")]
    NotCanonical,
    /// Neither legacy nor EIP-1559.
    #[error("unsupported transaction type {0}")]
    UnsupportedType(u8),
    /// A legacy transaction without a chain id, which could be replayed on every chain.
    #[error("the transaction has no chain id")]
    Unprotected,
    /// No signer can be recovered, or `s` is too high.
    #[error("the signature is not valid")]
    Signature(#[from] RecoveryError),
    /// A check of nonce, chain id, balance, gas limit or fee failed.
    #[error("the transaction fails a check of the chain")]
    Refused(#[from] EVMError<Infallible, InvalidTransaction>),
}

impl SendError {
    /// Returns the check that failed, for [`SendError::Refused`].
    #[must_use]
    pub const fn refusal(&self) -> Option<&InvalidTransaction> {
        match self {
            Self::Refused(EVMError::Transaction(reason)) => Some(reason),
            _ => None,
        }
    }
}

/// Why an unsigned call was not executed.
#[derive(Debug, Error)]
#[error("the call cannot be executed")]
pub struct CallError(#[from] EVMError<Infallible, InvalidTransaction>);

/// Why a contract was not deployed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeployError {
    /// The artefact cannot be read.
    #[error("no artefact")]
    Artefact(#[from] ArtefactError),
    /// The deployment cannot be executed.
    #[error("the deployment cannot be executed")]
    Call(#[from] CallError),
    /// There is code at the chosen address.
    #[error("there is already code at {address}")]
    Occupied {
        /// The address.
        address: Address,
    },
    /// The constructor did not succeed.
    #[error("the constructor failed: {0:?}")]
    Failed(Outcome),
}

/// Why a view function returned no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The call cannot be executed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The function did not succeed.
    #[error("the function failed: {0:?}")]
    Failed(Outcome),
    /// The result does not match the function. An address without code returns nothing.
    #[error("the result does not match the function")]
    Answer(#[from] alloy_sol_types::Error),
}
