//! Whether an account has what an act needs.

use ruint::aliases::U256;

use crate::json::number;
use crate::report::{Code, Refusal, TypedValue, Warnings};
use crate::state::Role;

/// Requires that the sender has enough of a coin or token. `at` is where the amount belongs, and `what` names it: "of the token".
///
/// # Errors
///
/// [`Code::InsufficientFunds`] at `at`.
pub fn check_balance(at: &'static str, what: &str, needed: U256, has: U256) -> Result<(), Refusal> {
    if has >= needed {
        return Ok(());
    }
    let refusal = Refusal::new(Code::InsufficientFunds, at).with_expected(TypedValue::AtLeast(needed)).with_actual(has);
    Err(refusal.with_reason(format!("the sender has too little {what}")))
}

/// Requires that the HTLC may take enough of the sender's token.
///
/// # Errors
///
/// [`Code::AllowanceTooLow`] at `/allowance`.
pub fn check_allowance(needed: U256, allowed: U256) -> Result<(), Refusal> {
    if allowed >= needed {
        return Ok(());
    }
    Err(Refusal::new(Code::AllowanceTooLow, "/allowance").with_expected(TypedValue::AtLeast(needed)).with_actual(allowed))
}

/// Requires that a payout is worth more than its redemption costs, both in base units of the chain's own coin.
///
/// # Errors
///
/// [`Code::FeeAbovePayout`] at `/payout`.
pub fn check_worth(payout: U256, cost: U256) -> Result<(), Refusal> {
    if payout > cost {
        return Ok(());
    }
    let refusal = Refusal::new(Code::FeeAbovePayout, "/payout").with_expected(TypedValue::AtLeast(cost)).with_actual(payout);
    Err(refusal.with_reason("to redeem the payout costs more than it is worth today"))
}

/// What a redemption or a refund may cost, and what it pays if it pays the chain's own coin: only then the two can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the families construct it")]
pub struct Expense {
    /// Whether it redeems or refunds.
    pub role: Role,
    /// The maximum cost in base units of the coin that pays fees.
    pub cost: U256,
    /// The payout in the same unit; `None` if another token is paid.
    pub pays: Option<U256>,
    /// The name of the base unit, and the decimal places of one whole coin: `("wei", 18)`.
    pub unit: (&'static str, u8),
}

impl Expense {
    /// Returns whether the maximum cost is above the payout.
    #[must_use]
    pub fn is_above_payout(&self) -> bool {
        self.pays.is_some_and(|pays| self.cost > pays)
    }

    /// Adds the warning [`Code::FeeAbovePayout`] if the transaction may cost more than it pays.
    pub fn warn(&self, warnings: &mut Warnings) {
        if self.is_above_payout() {
            warnings.warn_about(Code::FeeAbovePayout, self.text());
        }
    }

    /// Gives the refusal of a fee above the policy the figures, and names the limit of the policy that can be raised.
    #[must_use]
    pub fn explain(&self, refusal: Refusal, limit: &str) -> Refusal {
        refusal.with_reason(format!("{}: above the policy's {limit}, so wait for lower fees while the timelock allows it", self.text()))
    }

    /// Explains the refusal of a fee above the policy by what the cost in it means. Any other refusal stays as it is.
    #[must_use]
    pub fn explain_cost(refusal: Refusal, limit: &str, expense: impl FnOnce(U256) -> Self) -> Refusal {
        match refusal.actual() {
            Some(TypedValue::Number(cost)) if refusal.code() == Code::GasLimitTooHigh => expense(*cost).explain(refusal, limit),
            _ => refusal,
        }
    }

    /// Returns what to say of a transaction that pays the limit of the policy although the chain asks for more.
    #[must_use]
    pub fn at_limit(&self, limit: &str) -> String {
        format!("the chain asks for more than the policy's {limit}, so it pays that limit and may wait: {}", self.text())
    }

    fn text(&self) -> String {
        let Self { role, cost, pays, unit: (name, decimals) } = self;
        let coins = |units: U256| format!("{} of the chain's own coin ({units} {name})", number::in_whole_units(units, *decimals));
        let pays = match pays {
            Some(pays) if self.is_above_payout() => format!(" and pays only {}", coins(*pays)),
            Some(pays) => format!(" and pays {}", coins(*pays)),
            None => " and pays another token".to_owned(),
        };
        let what = if *role == Role::Redeem { "redemption" } else { "refund" };
        format!("the {what} may cost up to {}{pays}", coins(*cost))
    }
}

/// Judges a redemption or a refund whose fee, or a limit of it, is lower than nodes relay or the transaction needs. `why` states the figures.
///
/// Nodes that do not mine a redemption still see its secret. It is refused, unless the user has accepted the low fee. Everything else
/// only gets the warning [`Code::FeeTooLow`].
///
/// # Errors
///
/// [`Code::FeeTooLow`] at `location`.
pub fn check_low_fee(role: Role, is_accepted: bool, location: &str, why: &str, warnings: &mut Warnings) -> Result<(), Refusal> {
    if role == Role::Redeem && !is_accepted {
        let reason = format!("{why}: nodes may not mine the redemption, and still see its secret (`accept_low_fee` allows it)");
        return Err(Refusal::new(Code::FeeTooLow, location).with_reason(reason));
    }
    warnings.warn_about(Code::FeeTooLow, why);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_more_than_it_pays_is_said_with_both_figures() {
        let expense = |cost: u64, pays: Option<u64>| Expense {
            role: Role::Redeem,
            cost: U256::from(cost),
            pays: pays.map(U256::from),
            unit: ("sun", 6),
        };
        let warned = |expense: Expense| {
            let mut warnings = Warnings::default();
            expense.warn(&mut warnings);
            warnings.list().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(warned(expense(7, Some(7))).is_empty() && warned(expense(7, None)).is_empty());
        let [text] = warned(expense(2_500_000, Some(1_000_000))).try_into().unwrap();
        for part in ["fee_above_payout", "2.5 of the chain's own coin (2500000 sun)", "pays only 1 of", "wait until fees are lower"] {
            assert!(text.contains(part), "{text}");
        }
        let refusal = Refusal::new(Code::GasLimitTooHigh, "/fee_limit");
        let text = expense(1, Some(2)).at_limit("tron_fee_limit");
        assert!(text.ends_with(" and pays 0.000002 of the chain's own coin (2 sun)"), "{text}");
        let text = expense(2_500_000, None).explain(refusal, "tron_fee_limit").to_string();
        for part in ["2500000 sun", "another token", "tron_fee_limit", "raise the limit of the policy deliberately"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn exactly_enough_is_enough() {
        let check = |has: u64| check_balance("/value", "of the token", U256::from(5), U256::from(has));
        assert_eq!((check(5), check(6)), (Ok(()), Ok(())));
        let refusal = check(4).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::InsufficientFunds, "/value"));
        let allowance = |allowed: u64| check_allowance(U256::from(5), U256::from(allowed));
        assert_eq!((allowance(5), allowance(6)), (Ok(()), Ok(())));
        assert_eq!(allowance(4).unwrap_err().code(), Code::AllowanceTooLow);
    }

    #[test]
    fn a_payout_that_costs_all_of_itself_is_worth_nothing() {
        let worth = |payout: u64| check_worth(U256::from(payout), U256::from(5));
        assert_eq!(worth(6), Ok(()));
        assert_eq!([worth(5), worth(0)].map(|outcome| outcome.unwrap_err().code()), [Code::FeeAbovePayout; 2]);
    }

    #[test]
    fn a_refund_at_the_limit_says_what_it_costs_and_pays() {
        let expense = Expense { role: Role::Refund, cost: U256::from(7), pays: Some(U256::from(8)), unit: ("wei", 18) };
        let text = expense.at_limit("max_gas_cost");
        for part in ["more than the policy's max_gas_cost", "the refund may cost up to ", "(7 wei) and pays ", "(8 wei)"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
