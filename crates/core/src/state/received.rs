//! Comparing transactions of external wallets with an order.

use crate::family::{ChainFamily, Deposit, Seal};
use crate::report::{Code, Refusal, Warnings};

use super::{Role, UnsignedOrder, VerifiedOrder};

impl<F: ChainFamily> VerifiedOrder<F> {
    /// Returns the role in this order of a transaction that an external wallet has signed or broadcast.
    ///
    /// Use this with wallets that choose nonce and fees themselves (`eth_sendTransaction`, `account.execute`). Everything that they
    /// may not choose must equal what was verified, and what the owner would have to be warned about is refused: on EVM and Tron another
    /// approval above the amount than the verified one, on Tron a permission or signatures that only the chain can judge, on Sui a signature that
    /// only the network can.
    ///
    /// # Errors
    ///
    /// As [`match_with_warnings`](Self::match_with_warnings); [`Code::TransactionMismatch`] where that returns a warning above
    /// [`Severity::Info`](crate::Severity::Info).
    pub fn matches(&self, transaction: &F::Transaction) -> Result<Role, Refusal> {
        self.match_with_warnings(transaction).and_then(Warnings::only_informational)
    }

    /// Returns the role in this order of a transaction of an external wallet, and warnings about what the wallet changed or added: on EVM and
    /// Tron a larger approval, or bytes behind the calldata; on Tron also another permission than the owner's, and several signatures; on
    /// Solana assertions, or a nonce in place of the blockhash; on Sui a signature that only the network can prove; on Bitcoin-like chains a lock
    /// time. Show them to the owner: the role alone does not say what else was sent.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`], with the first difference, if the transaction is not part of the order. On EVM and Tron
    /// [`Code::ApprovalBelowAmount`] or [`Code::ApprovalNotExact`] for an approval that was edited. [`Code::WarningRefused`] for a warning
    /// that the policy refuses.
    pub fn match_with_warnings(&self, transaction: &F::Transaction) -> Result<(Role, Warnings), Refusal> {
        let mut warnings = Warnings::default();
        let role = self.0.deposit.matches(transaction, &mut warnings)?;
        self.check_refused(&warnings)?;
        Ok((role, warnings))
    }

    /// Requires that the policy refuses none of the warnings about what a family compares in a form of its own.
    ///
    /// # Errors
    ///
    /// [`Code::WarningRefused`].
    #[doc(hidden)]
    pub fn check_refused(&self, warnings: &Warnings) -> Result<(), Refusal> {
        warnings.check_refused(&self.0.refused)
    }

    /// Returns the role in this order of a signed transaction, given as bytes: see [`matches`](Self::matches). Bytes are the same in
    /// every version of a chain's SDK, so a wallet does not need the version whose types this library has. Their form is listed on the
    /// family's page, under "External wallets".
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] if the bytes are not exactly one signed transaction, or, with the first difference, if the
    /// transaction is not part of the order or has a warning that [`matches`](Self::matches) refuses. Other codes are those of the family's
    /// `received` module.
    pub fn matches_bytes(&self, bytes: &[u8]) -> Result<Role, Refusal> {
        self.match_bytes_with_warnings(bytes).and_then(Warnings::only_informational)
    }

    /// Returns the role of a signed transaction, given as bytes, and warnings about what the wallet changed.
    ///
    /// # Errors
    ///
    /// As [`matches_bytes`](Self::matches_bytes) and [`match_with_warnings`](Self::match_with_warnings).
    pub fn match_bytes_with_warnings(&self, bytes: &[u8]) -> Result<(Role, Warnings), Refusal> {
        self.match_with_warnings(&self.0.deposit.read_transaction(bytes, Seal::new())?)
    }
}

impl<F: ChainFamily> UnsignedOrder<F> {
    /// Returns the role in this order of a transaction: see [`VerifiedOrder::matches`].
    ///
    /// # Errors
    ///
    /// As there, and [`Code::TransactionMismatch`] for every transaction of a recovery.
    pub fn matches(&self, transaction: &F::Transaction) -> Result<Role, Refusal> {
        let order = self
            .verified()
            .ok_or_else(|| Refusal::new(Code::TransactionMismatch, "").with_reason("the transactions of a recovery cannot be matched"))?;
        order.matches(transaction)
    }
}
