//! Fee rates in sat/vB, as exact decimals. With floats, two wallets could disagree by a satoshi.

use std::fmt;
use std::str::FromStr;

use bitcoin::Amount;
use countersign_core::{Code, ParseError, Refusal, TypedValue, U256, number};

/// The most digits after the decimal point.
const MAX_FRACTION: usize = 36;

/// A fee rate in base units per virtual byte (sat/vB), as an exact decimal.
///
/// ```
/// use countersign::bitcoin::FeeRate;
/// use countersign::bitcoin::bitcoin::Amount;
///
/// let rate: FeeRate = "2.5".parse()?;
/// assert_eq!(rate.fee(141), Some(Amount::from_sat(353)), "352.5 rounded up");
/// # Ok::<(), countersign::report::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeeRate {
    /// The rate times `10^scale`.
    units: U256,
    scale: u8,
}

impl FeeRate {
    /// Creates a rate from a whole number of base units per virtual byte.
    #[must_use]
    pub fn from_whole(rate: u64) -> Self {
        Self { units: U256::from(rate), scale: 0 }
    }

    /// Parses a decimal in sat/vB, such as `2.5`, with up to 36 digits after the decimal point.
    ///
    /// # Errors
    ///
    /// A `decimal_` code, or [`Code::NumberTooLarge`] if the whole part has more than 64 bits or the fraction more than 36 digits.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(Code::DecimalEmpty.into()),
            Some((whole, fraction)) => (whole, fraction),
            None => (text, ""),
        };
        let whole = u64::try_from(number::decimal(whole)?).map_err(|_| Code::NumberTooLarge)?;
        if let Some(bad) = fraction.bytes().find(|byte| !byte.is_ascii_digit()) {
            return Err(if matches!(bad, b'e' | b'E') { Code::DecimalExponent } else { Code::DecimalDigit }.into());
        }
        if fraction.len() > MAX_FRACTION {
            return Err(Code::NumberTooLarge.into());
        }
        // The largest 64-bit number times 10^36 is below 2^184, so it can be multiplied by any 64-bit size without overflow.
        let units = format!("{whole}{fraction}").parse().map_err(|_| Code::NumberTooLarge)?;
        let scale = u8::try_from(fraction.len()).map_err(|_| Code::NumberTooLarge)?;
        Ok(Self { units, scale })
    }

    /// Returns the lowest rate at which nodes accept a transaction of `vsize` virtual bytes as the replacement of one that pays `fee` and
    /// has the same size. The replacement must pay that fee, and 1 sat/vB for its own relay (BIP-125, rules 3 and 4). Returns `None` if
    /// `vsize` is zero, or if the fee has more than 64 bits.
    #[must_use]
    pub fn replacing(fee: Amount, vsize: u64) -> Option<Self> {
        Self::of(fee.checked_add(Amount::from_sat(vsize))?, vsize)
    }

    /// Returns the rate of a transaction of `vsize` virtual bytes that pays `fee`, rounded up to a thousandth; `None` if `vsize` is zero.
    pub(crate) fn of(fee: Amount, vsize: u64) -> Option<Self> {
        let thousandths = U256::from(fee.to_sat()).saturating_mul(U256::from(1_000));
        (vsize != 0).then(|| Self { units: thousandths.div_ceil(U256::from(vsize)), scale: 3 })
    }

    /// Requires that the rate is neither zero nor above `max` sat/vB.
    ///
    /// # Errors
    ///
    /// [`Code::FeeRateZero`] or [`Code::FeeRateTooHigh`] at `location`.
    pub fn check(self, max: u64, location: &str) -> Result<(), Refusal> {
        if self.units.is_zero() {
            return Err(Refusal::new(Code::FeeRateZero, location).with_actual(self.to_string()));
        }
        self.check_ceiling(max, location)
    }

    /// Requires that the rate is not above `max` sat/vB.
    pub(crate) fn check_ceiling(self, max: u64, location: &str) -> Result<(), Refusal> {
        // The fee of one byte, rounded up, is above the maximum exactly if the rate is.
        if self.fee(1).is_none_or(|fee| fee.to_sat() > max) {
            let expected = TypedValue::AtMost(U256::from(max));
            return Err(Refusal::new(Code::FeeRateTooHigh, location).with_expected(expected).with_actual(self.to_string()));
        }
        Ok(())
    }

    /// Returns whether the rate is below another one.
    pub(crate) fn is_below(self, other: Self) -> bool {
        // Both are rates per byte at the larger of the two scales, which is at most `MAX_FRACTION`.
        let scale = self.scale.max(other.scale);
        let at_scale = |rate: Self| {
            let factor = U256::from(10).checked_pow(U256::from(scale.saturating_sub(rate.scale)));
            factor.and_then(|factor| rate.units.checked_mul(factor)).unwrap_or(U256::MAX)
        };
        at_scale(self) < at_scale(other)
    }

    /// Returns the fee of a transaction with this virtual size, rounded up; `None` if it has more than 64 bits.
    #[must_use]
    pub fn fee(self, vsize: u64) -> Option<Amount> {
        let scale = U256::from(10).checked_pow(U256::from(self.scale))?;
        let fee = self.units.checked_mul(U256::from(vsize))?.div_ceil(scale);
        u64::try_from(fee).ok().map(Amount::from_sat)
    }

    /// Returns the approximate rate in sat/vB. Callers must check their result against the exact rate.
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "the float next to the number is near enough")]
    pub(crate) fn rough(self) -> Option<f32> {
        Some(self.fee(1_000_000)?.to_sat() as f32 / 1e6)
    }
}

impl FromStr for FeeRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl From<bitcoin::FeeRate> for FeeRate {
    /// Converts a rate in satoshi per 1,000 weight units. A virtual byte is 4 weight units.
    fn from(rate: bitcoin::FeeRate) -> Self {
        Self { units: U256::from(rate.to_sat_per_kwu()).saturating_mul(U256::from(4)), scale: 3 }
    }
}

impl fmt::Display for FeeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number::in_whole_units(self.units, self.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fees_are_exact_and_rounded_up() {
        // By hand: 2.5 * 141 = 352.5; 1.1 * 10 = 11 exactly, where a float gives 11.000000000000002.
        for (rate, vsize, fee) in [
            ("2.5", 141, 353),
            ("1.1", 10, 11),
            ("1", 141, 141),
            ("0.001", 1, 1),
            ("17.03", 100, 1703),
            ("14.000000000000000000000000000000000001", 1, 15),
        ] {
            assert_eq!(FeeRate::parse(rate).unwrap().fee(vsize), Some(Amount::from_sat(fee)), "{rate}");
        }
        let largest = FeeRate::parse("18446744073709551615.999999999999999999999999999999999999").unwrap();
        assert_eq!((largest.fee(0), largest.fee(1), largest.fee(u64::MAX)), (Some(Amount::ZERO), None, None));
    }

    #[test]
    fn refuses_what_is_not_a_plain_decimal() {
        for (text, code) in [
            ("", Code::DecimalEmpty),
            ("2.", Code::DecimalEmpty),
            (".5", Code::DecimalEmpty),
            ("-1", Code::DecimalSign),
            ("1e3", Code::DecimalExponent),
            ("1.5e3", Code::DecimalExponent),
            ("01", Code::DecimalLeadingZero),
            ("1.2.3", Code::DecimalDigit),
            ("1.+2", Code::DecimalDigit),
            ("18446744073709551616", Code::NumberTooLarge),
            ("1.0000000000000000000000000000000000001", Code::NumberTooLarge),
        ] {
            assert_eq!(FeeRate::parse(text).unwrap_err().code(), code, "{text:?}");
        }
    }

    #[test]
    fn rates_of_the_bitcoin_crate_are_converted() {
        // 250 sat/kWU are 1 sat/vB.
        assert_eq!(FeeRate::from(bitcoin::FeeRate::BROADCAST_MIN).fee(141), Some(Amount::from_sat(141)));
        assert_eq!(FeeRate::from(bitcoin::FeeRate::from_sat_per_kwu(625)).to_string(), "2.5");
    }

    #[test]
    fn a_replacement_pays_for_being_relayed_again() {
        // 141 vB at 2 sat/vB pay 282; another 141 make 3 sat/vB.
        let replacing = |fee| FeeRate::replacing(Amount::from_sat(fee), 141).unwrap().fee(141).unwrap().to_sat();
        assert_eq!(replacing(282), 423);
        assert_eq!(replacing(283), 425, "rounded up: 1 above the minimum, never below it");
        assert_eq!((FeeRate::replacing(Amount::ONE_SAT, 0), FeeRate::replacing(Amount::MAX, 1)), (None, None));
    }

    #[test]
    fn rates_are_compared_exactly() {
        let rate = |text| FeeRate::parse(text).unwrap();
        for (low, high) in [("0.999999999999999999999999999999999999", "1"), ("0.0001", "0.1"), ("1", "18446744073709551615"), ("2", "2.1")]
        {
            assert!(rate(low).is_below(rate(high)) && !rate(high).is_below(rate(low)), "{low} {high}");
        }
        assert!(!rate("1.0").is_below(rate("1")) && !rate("1").is_below(rate("1.000")));
    }

    #[test]
    fn the_ceiling_is_inclusive() {
        assert!(FeeRate::parse("1000").unwrap().check(1000, "").is_ok());
        assert_eq!(FeeRate::parse("1000.000000000000000001").unwrap().check(1000, "").unwrap_err().code(), Code::FeeRateTooHigh);
        assert_eq!(FeeRate::parse("0.0").unwrap().check(1000, "").unwrap_err().code(), Code::FeeRateZero);
    }
}
