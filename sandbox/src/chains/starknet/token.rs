//! Tokens as OpenZeppelin writes them.

use alloy_primitives::U256;
use starknet_crypto::Felt;

use super::felts::{ACCOUNT_CLASS, halves, selector, short, storage};
use super::machine::{Arguments, CLASS, Event, Frame, Machine, Token, Why, panic};

impl Machine<'_> {
    pub(super) fn balance(&self, token: Felt, account: Felt) -> U256 {
        self.number(token, storage("ERC20_balances", &[account]))
    }

    pub(super) fn token(&mut self, token: &Token, frame: &mut Frame, name: &str, mut arguments: Arguments<'_>) -> Result<Vec<Felt>, Why> {
        let (here, caller) = (token.address, frame.caller);
        let result = match name {
            "name" | "symbol" => vec![short(token.symbol)],
            "decimals" => vec![Felt::from(token.decimals)],
            "total_supply" | "totalSupply" => halves(self.number(here, storage("ERC20_total_supply", &[]))).to_vec(),
            "balance_of" | "balanceOf" => halves(self.balance(here, arguments.felt()?)).to_vec(),
            "allowance" => {
                let key = storage("ERC20_allowances", &[arguments.felt()?, arguments.felt()?]);
                halves(self.number(here, key)).to_vec()
            }
            "is_paused" => vec![self.read(here, storage("is_paused", &[]))],
            "is_frozen" => vec![self.read(here, storage("is_frozen", &[arguments.felt()?]))],
            "approve" => {
                let (spender, amount) = (arguments.felt()?, arguments.u256()?);
                arguments.end()?;
                self.approve(frame, caller, spender, amount)?;
                vec![Felt::ONE]
            }
            "transfer" => {
                let (to, amount) = (arguments.felt()?, arguments.u256()?);
                arguments.end()?;
                self.move_tokens(frame, caller, to, amount)?;
                vec![Felt::ONE]
            }
            "transfer_from" | "transferFrom" => {
                let (from, to, amount) = (arguments.felt()?, arguments.felt()?, arguments.u256()?);
                arguments.end()?;
                let allowed = self.number(here, storage("ERC20_allowances", &[from, caller]));
                if allowed != U256::MAX {
                    let left = allowed.checked_sub(amount).ok_or_else(|| panic("ERC20: insufficient allowance"))?;
                    self.approve(frame, from, caller, left)?;
                }
                self.move_tokens(frame, from, to, amount)?;
                vec![Felt::ONE]
            }
            _ => return Err(Why::NoFunction),
        };
        arguments.end()?;
        Ok(result)
    }

    fn approve(&mut self, frame: &mut Frame, owner: Felt, spender: Felt, amount: U256) -> Result<(), Why> {
        if spender == Felt::ZERO {
            return Err(panic("ERC20: approve to 0"));
        }
        self.set_number(frame.contract, storage("ERC20_allowances", &[owner, spender]), amount);
        self.emit(frame, vec![selector("Approval"), owner, spender], halves(amount).to_vec());
        Ok(())
    }

    fn move_tokens(&mut self, frame: &mut Frame, from: Felt, to: Felt, amount: U256) -> Result<(), Why> {
        if from == Felt::ZERO {
            return Err(panic("ERC20: transfer from 0"));
        }
        if to == Felt::ZERO {
            return Err(panic("ERC20: transfer to 0"));
        }
        if self.read(frame.contract, storage("is_paused", &[])) != Felt::ZERO {
            return Err(panic("the token is paused"));
        }
        if [from, to].iter().any(|account| self.read(frame.contract, storage("is_frozen", &[*account])) != Felt::ZERO) {
            return Err(panic("the account is frozen"));
        }
        let key = storage("ERC20_balances", &[from]);
        let left = self.number(frame.contract, key).checked_sub(amount).ok_or_else(|| panic("ERC20: insufficient balance"))?;
        self.set_number(frame.contract, key, left);
        self.credit(frame, from, to, amount)
    }

    /// Adds to a balance, and says from whom it came. Nobody's tokens are new ones.
    fn credit(&mut self, frame: &mut Frame, from: Felt, to: Felt, amount: U256) -> Result<(), Why> {
        let key = storage("ERC20_balances", &[to]);
        let sum = self.number(frame.contract, key).checked_add(amount).ok_or_else(|| panic("u256_add Overflow"))?;
        self.set_number(frame.contract, key, sum);
        if self.class_of(to) == Felt::ZERO {
            self.write(to, CLASS, ACCOUNT_CLASS);
        }
        self.emit(frame, vec![selector("Transfer"), from, to], halves(amount).to_vec());
        Ok(())
    }

    /// Makes new tokens.
    pub(super) fn mint(&mut self, token: Felt, to: Felt, amount: U256) -> Option<Vec<Event>> {
        let mut frame = Frame { contract: token, ..Frame::default() };
        let key = storage("ERC20_total_supply", &[]);
        let supply = self.number(token, key).checked_add(amount)?;
        self.set_number(token, key, supply);
        self.credit(&mut frame, Felt::ZERO, to, amount).ok()?;
        Some(frame.events)
    }

    /// Freezes an account, or pauses the token where none is named.
    pub(super) fn stop(&mut self, token: Felt, account: Option<Felt>) {
        let key = account.map_or_else(|| storage("is_paused", &[]), |account| storage("is_frozen", &[account]));
        self.write(token, key, Felt::ONE);
    }

    /// Charges a fee.
    pub(super) fn charge(&mut self, token: Felt, from: Felt, to: Felt, fee: U256) -> Vec<Event> {
        let mut frame = Frame { contract: token, ..Frame::default() };
        // The balance was compared with the bounds before.
        let _ = self.move_tokens(&mut frame, from, to, fee);
        frame.events
    }
}
