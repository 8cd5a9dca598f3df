//! The payment of an order in a transaction that is not the order's own.
//!
//! An account that a program controls, such as the vault of a multisig (Squads) or a smart wallet, cannot sign a transaction. Its program
//! calls the HTLC for it, in a transaction of somebody else. What such a transaction has in common with the order is the HTLC's instruction.
//! It has all terms, and its accounts follow from them. If the transaction succeeded, the instruction did too, because the network takes
//! back everything that a failed transaction did.
//!
//! Log lines and the events in them are not read: any program can write such a line, and nodes cut long logs.
//!
//! Specification: `docs/spec/solana.md#proof-by-effect`.

use countersign_core::{Code, Refusal, TypedValue};
use solana_signature::Signature;

use crate::address::{self, Address};
use crate::deposit::Deposit;
use crate::htlc::{INITIATE, Initiate, SPONSOR};
use crate::read::{ChainInstruction, TransactionEffect};

impl Deposit {
    /// Finds the payment of the order in what a transaction did, which may be that of another account, and returns the id of the transaction.
    ///
    /// `effect` is what `getTransaction` returned: see [`received::effect`](crate::received::effect). The transaction must have succeeded, and
    /// contain one instruction of the pinned program that locks funds for the order's secret hash, of the message or called by a program. It
    /// must have the order's arguments and accounts. Another sponsor may have paid the rent: no term names it, and it gets the rent back.
    /// Instructions of other programs and of other orders are skipped.
    ///
    /// **Whoever returned the answer states all this.** It is bound to nothing: no signature covers what programs called. From a node it counts
    /// if enough nodes agree ([`reader::Effect`](crate::reader::Effect)). Whether the payment is final, and still locked, is decided by the
    /// [reader](crate::reader::HtlcReader) of the source HTLC. What else the transaction did is not checked.
    ///
    /// ```
    /// # use countersign::Refusal;
    /// # fn check(order: &countersign::solana::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
    /// use countersign::solana::received;
    ///
    /// // getTransaction [signature, {"encoding": "base64", "maxSupportedTransactionVersion": 1}]
    /// let effect = received::effect(from_node)?;
    /// let signature = order.deposit().find_payment(&effect)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`], located in the answer, if the transaction failed, does not contain the payment, or pays the same secret
    /// hash under other terms, from other accounts or twice.
    pub fn find_payment(&self, effect: &TransactionEffect) -> Result<Signature, Refusal> {
        let differs = |location: String| Refusal::new(Code::TransactionMismatch, location);
        if !effect.is_success {
            return Err(differs("/meta/err".to_owned()).with_reason("the transaction failed"));
        }
        let mut is_paid = false;
        for executed in &effect.instructions {
            let (instruction, at) = (&executed.instruction, |part: &str| differs(format!("{}{part}", executed.place)));
            if instruction.program != self.htlc.program || !instruction.data.starts_with(&INITIATE) {
                continue;
            }
            let call = Initiate::read(&instruction.data, &self.htlc)
                .ok_or_else(|| at("/data").with_reason("the arguments are not those of the pinned program"))?;
            if call.secret_hash != self.terms.secret_hash {
                continue;
            }
            if let Some((name, expected, actual)) = self.other_argument(&call) {
                let reason = format!("the program was paid with this secret hash under other terms: another {name}");
                return Err(at("/data").with_reason(reason).with_expected(expected).with_actual(actual));
            }
            self.check_accounts(instruction, &at)?;
            if is_paid {
                return Err(at("").with_reason("the order was paid twice"));
            }
            is_paid = true;
        }
        let missing = || differs("/transaction".to_owned()).with_reason("no instruction of the program shows that the order was paid");
        if is_paid { Ok(effect.signature) } else { Err(missing()) }
    }

    /// Returns the first argument that is not the order's: its name, the order's value, and the one of the call.
    fn other_argument(&self, call: &Initiate) -> Option<(&'static str, TypedValue, TypedValue)> {
        let number = |own: u64, other: u64| [TypedValue::from(own), other.into()];
        let account = |own: Address, other: Address| [TypedValue::from(address::to_account(own)), address::to_account(other).into()];
        let text = |own: &Option<Vec<u8>>, other: &Option<Vec<u8>>| {
            [own, other].map(|data| data.as_ref().map_or_else(|| "none".to_owned(), hex::encode).into())
        };
        let (own, owner) = (&self.terms, self.owner);
        let arguments = [
            (own.amount != call.amount).then(|| ("amount", number(own.amount, call.amount))),
            (own.redeemer != call.redeemer).then(|| ("redeemer", account(own.redeemer, call.redeemer))),
            (own.timelock != call.timelock).then(|| ("timelock", number(own.timelock, call.timelock))),
            (own.refundee != call.refundee).then(|| ("refundee", account(own.refundee.unwrap_or(owner), call.refundee.unwrap_or(owner)))),
            (own.destination_data != call.destination_data)
                .then(|| ("destination data", text(&own.destination_data, &call.destination_data))),
        ];
        let (name, [own, other]) = arguments.into_iter().flatten().next()?;
        Some((name, own, other))
    }

    /// Requires the accounts that follow from the terms. The sponsor's place may have any account.
    fn check_accounts(&self, instruction: &ChainInstruction, at: &impl Fn(&str) -> Refusal) -> Result<(), Refusal> {
        let (roles, accounts) = (&self.transaction.accounts.roles, &instruction.accounts);
        for (index, (role, account)) in roles.iter().zip(accounts).enumerate() {
            if role.name != SPONSOR && role.address != *account {
                let refusal = at(&format!("/accounts/{index}")).with_reason(format!("{} is another account", role.name));
                return Err(refusal.with_expected(address::to_account(role.address)).with_actual(address::to_account(*account)));
            }
        }
        if roles.len() != accounts.len() {
            return Err(at("/accounts").with_expected(format!("{} accounts", roles.len())).with_actual(accounts.len()));
        }
        Ok(())
    }
}
