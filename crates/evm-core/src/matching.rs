//! Which call of an order a transaction of an external wallet makes.
//!
//! Wallets let people edit an approval, and append bytes to calldata (ERC-8021). Both change less than what is compared here, and are
//! warnings. Everything else is refused where it differs.

use alloy_primitives::{Address, U256, hex};
use countersign_core::json::At;
use countersign_core::{Code, Refusal, Role, TypedValue, Warnings};

use crate::call::{Approval, Approve};

/// The highest number of bytes that a wallet may append to calldata.
pub const MAX_SUFFIX: usize = 256;

/// The length of the calldata of an approval: selector, spender, amount.
const APPROVAL: usize = 4 + 32 + 32;

/// The call that a transaction makes.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every member")]
pub struct SentCall<'a> {
    /// The contract that is called. `None` if the transaction creates one, or if it is not an address of the family.
    pub to: Option<Address>,
    /// Base units of the chain's own coin that are sent with the call.
    pub value: U256,
    /// The calldata.
    pub data: &'a [u8],
}

/// The calls of an order, and where a transaction of its family has their parts.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every member")]
pub struct OrderCalls<'a, C> {
    /// The call that locks the funds.
    pub initiate: SentCall<'a>,
    /// The token and its approval, if the order has one.
    pub approval: Option<(Address, &'a Approval<C>)>,
    /// The amount of the order, in base units.
    pub amount: U256,
    /// The locations of the called contract, of the value, and of the calldata.
    pub places: [&'static str; 3],
    /// Formats an address as the family's users write it.
    pub format: fn(Address) -> String,
}

impl<C> OrderCalls<'_, C> {
    /// Returns which call of the order was sent.
    ///
    /// An approval may be larger than the amount, and set the allowance to zero. Behind the arguments there may be at most [`MAX_SUFFIX`]
    /// bytes: the ABI gives every argument a place from the start of the calldata, and the bytes from there to the end of the arguments are
    /// compared whole, so a contract that decodes them finds the order's arguments.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] at the part that differs; [`Code::ApprovalBelowAmount`] or, if the policy accepts no larger approval,
    /// [`Code::ApprovalNotExact`], at the amount of the approval.
    pub fn role(&self, sent: SentCall<'_>, warnings: &mut Warnings) -> Result<Role, Refusal> {
        let [to_at, ..] = self.places;
        if sent.to.is_some() && sent.to == self.initiate.to {
            self.check_value(self.initiate.value, sent)?;
            self.check_data(self.initiate.data, sent.data, Role::Initiate, warnings)?;
            return Ok(Role::Initiate);
        }
        if let Some((_, approval)) = self.approval.filter(|(token, _)| sent.to == Some(*token)) {
            self.check_value(U256::ZERO, sent)?;
            return self.approval_role(approval, sent.data, warnings);
        }
        let text = |to: Option<Address>| to.map_or_else(|| "another kind of receiver".to_owned(), self.format);
        Err(differs(to_at).with_expected(text(self.initiate.to)).with_actual(text(sent.to)))
    }

    fn check_value(&self, expected: U256, sent: SentCall<'_>) -> Result<(), Refusal> {
        let [_, at, _] = self.places;
        if sent.value == expected { Ok(()) } else { Err(differs(at).with_expected(expected).with_actual(sent.value)) }
    }

    fn check_data(&self, expected: &[u8], actual: &[u8], role: Role, warnings: &mut Warnings) -> Result<(), Refusal> {
        let [.., at] = self.places;
        match actual.strip_prefix(expected) {
            Some([]) => Ok(()),
            Some(suffix) if suffix.len() <= MAX_SUFFIX => {
                let text = format!("{} bytes behind the {role}: {}", suffix.len(), hex::encode(suffix));
                warnings.warn_in_full(Code::CalldataSuffix, &text);
                Ok(())
            }
            Some(suffix) => {
                let reason = format!("{} bytes were appended to the calldata of the {role}, and at most {MAX_SUFFIX} may be", suffix.len());
                Err(differs(at).with_reason(reason).with_difference(expected, actual))
            }
            None => {
                let reason = format!("the calldata is not that of the {role}");
                Err(differs(at).with_reason(reason).with_difference(expected, actual))
            }
        }
    }

    fn approval_role(&self, approval: &Approval<C>, data: &[u8], warnings: &mut Warnings) -> Result<Role, Refusal> {
        let [.., at] = self.places;
        let approve = data.get(..APPROVAL).and_then(|call| Approve::decode(call, &At::root("")).ok());
        let Some(approve) = approve.filter(|approve| approve.spender == approval.signed.spender) else {
            let reason = "the calldata is not that of the approval";
            return Err(differs(at).with_reason(reason).with_difference(&approval.signed.encode(), data));
        };
        let role = if approve.amount.is_zero() { Role::ApprovalReset } else { Role::Approval };
        self.check_data(&approve.encode(), data, role, warnings)?;
        let refuse = |code| Refusal::new(code, format!("{at}#36-{APPROVAL}")).with_actual(approve.amount);
        if role == Role::Approval && approve.amount < self.amount {
            let reason = "the approval was changed to less than the amount of the order, so the payment would fail: approve again";
            return Err(refuse(Code::ApprovalBelowAmount).with_reason(reason).with_expected(TypedValue::AtLeast(self.amount)));
        }
        if approve.amount > self.amount {
            if approval.is_exact {
                return Err(refuse(Code::ApprovalNotExact).with_expected(self.amount));
            }
            // An approval as the order has it is in the order's own warnings.
            if approve.amount != approval.signed.amount {
                warnings.warn_about_approval(approve.amount, self.amount);
            }
        }
        Ok(role)
    }
}

fn differs(at: &str) -> Refusal {
    Refusal::new(Code::TransactionMismatch, at)
}
