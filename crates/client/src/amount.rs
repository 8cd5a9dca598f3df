//! Parses amounts: base units (`1500000`), or whole units with the asset's symbol (`1.5 usdc`).

use countersign::{AssetId, Registry, U256, number};

/// An amount that cannot be parsed. The message contains the text and says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AmountError(String);

/// Returns whether an amount is in base units, so that parsing it does not need the registry.
fn is_in_base_units(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses an amount of an asset into base units. The conversion of whole units is exact, with the asset's pinned decimals.
///
/// A number without a symbol is in base units and must not contain a decimal point, so that a forgotten symbol is always noticed.
///
/// # Errors
///
/// [`AmountError`] for zero, text of another form, another symbol, too many decimals, or an asset that is not in the registry.
pub fn base_units(text: &str, asset: &AssetId, registry: Option<&Registry>) -> Result<U256, AmountError> {
    let text = text.trim();
    let units = if is_in_base_units(text) { number::decimal(text) } else { number::decimal(&whole_units(text, asset, registry)?) };
    let units = units.map_err(|error| AmountError(format!("{text}: {error}")))?;
    if units.is_zero() { Err(AmountError("the amount is zero".to_owned())) } else { Ok(units) }
}

/// Returns the digits of an amount in base units.
fn whole_units(text: &str, asset: &AssetId, registry: Option<&Registry>) -> Result<String, AmountError> {
    let refused = |reason: String| AmountError(format!("{text}: {reason}"));
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, symbol) = text.split_at(end);
    let (symbol, wanted) = (symbol.trim_start(), asset.symbol());
    if number.is_empty() {
        return Err(refused(format!("not an amount: write base units, or whole units like 1.5 {wanted}")));
    }
    if symbol.is_empty() {
        return Err(refused(format!("base units have no decimal point: for whole units add the symbol, as in {number} {wanted}")));
    }
    if !symbol.eq_ignore_ascii_case(wanted) {
        let habit = foreign_form(symbol).map(str::to_owned);
        return Err(refused(habit.unwrap_or_else(|| format!("the symbol of {asset} is {wanted}"))));
    }
    let registry = registry.ok_or_else(|| refused("whole units need the registry, which contains the asset's decimals".to_owned()))?;
    let pinned = registry.asset(asset.as_str()).ok_or_else(|| refused(format!("{asset} is not in the registry")))?;
    let decimals = usize::from(pinned.record.decimals);
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit()) => (whole, fraction),
        Some(_) => return Err(refused("write a single decimal point, with digits on both sides".to_owned())),
        None => (number, ""),
    };
    number::decimal(whole).map_err(|error| refused(error.to_string()))?;
    if fraction.len() > decimals {
        return Err(refused(format!("{wanted} has {decimals} decimals, not {}", fraction.len())));
    }
    let digits = format!("{whole}{fraction:0<decimals$}");
    let canonical = digits.trim_start_matches('0');
    Ok(if canonical.is_empty() { "0".to_owned() } else { canonical.to_owned() })
}

/// Returns what to write in place of a form of number that is not read; `None` if the text behind the first digits has no such form. A guess
/// at what `1,5` or `1_000` means could be wrong by a factor of a thousand.
fn foreign_form(rest: &str) -> Option<&'static str> {
    let mut letters = rest.chars();
    let (first, next) = (letters.next()?, letters.next());
    let starts_number = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || matches!(c, '+' | '-'));
    match first {
        ',' => Some("use a point, not a comma"),
        '_' | '\'' | '’' | '\u{a0}' | '\u{202f}' | '0'..='9' => Some("write the digits without separators"),
        'e' | 'E' if starts_number(next) => Some("numbers with an exponent are not read: write all digits"),
        'x' | 'X' if next.is_some_and(|c| c.is_ascii_hexdigit()) => Some("hexadecimal numbers are not read: write decimal digits"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use countersign::evm::alloy_primitives::utils::parse_units;

    use super::*;

    fn read(text: &str, asset: &str) -> Result<U256, String> {
        let registry = Registry::from_json(include_bytes!("../../../fixtures/registry.json")).unwrap();
        base_units(text, &AssetId::parse(asset).unwrap(), Some(&registry)).map_err(|error| error.to_string())
    }

    #[test]
    fn whole_units_are_exact() {
        // The expected values come from alloy's conversion, which wallets use.
        for (number, symbol, asset, decimals) in [
            ("1.5", "usdc", "ethereum:usdc", 6),
            ("0.000001", "usdc", "ethereum:usdc", 6),
            ("123456789.123456", "USDC", "ethereum:usdc", 6),
            ("5000000", "usdc", "ethereum:usdc", 6),
            ("0.0005", "btc", "bitcoin:btc", 8),
            ("20999999.97690000", "btc", "bitcoin:btc", 8),
            ("0.000000000000000001", "eth", "base:eth", 18),
            // More digits than a 64-bit float has.
            ("9007199254740993.000000000000000001", "eth", "base:eth", 18),
        ] {
            let expected: U256 = parse_units(number, decimals).unwrap().into();
            for text in [format!("{number} {symbol}"), format!("{number}{symbol}"), format!(" {number}  {symbol} ")] {
                assert_eq!(read(&text, asset), Ok(expected), "{text}");
            }
        }
    }

    #[test]
    fn digits_alone_are_base_units() {
        assert_eq!(read("1500000", "ethereum:usdc"), Ok(U256::from(1_500_000)));
        // Base units do not need a registry.
        assert!(base_units("7", &AssetId::parse("ethereum:usdc").unwrap(), None).is_ok_and(|amount| amount == U256::from(7)));
        assert!(base_units("7 usdc", &AssetId::parse("ethereum:usdc").unwrap(), None).is_err());
    }

    #[test]
    fn what_is_not_exactly_an_amount_of_the_asset_is_refused() {
        for (text, reason) in [
            ("1.5", "add the symbol"),
            ("1.5 btc", "the symbol of ethereum:usdc is usdc"),
            ("1.5 usdcx", "the symbol"),
            ("1.5 usd c", "the symbol"),
            ("1.5 usdc usdc", "the symbol"),
            ("1,5 usdc", "use a point, not a comma"),
            ("1,500,000", "use a point, not a comma"),
            ("1e3 usdc", "exponent"),
            ("1.5E-3 usdc", "exponent"),
            ("1e15", "exponent"),
            ("1_000 usdc", "without separators"),
            ("1_000", "without separators"),
            ("1'000 usdc", "without separators"),
            ("1 000 usdc", "without separators"),
            ("1\u{a0}000 usdc", "without separators"),
            ("0x10 usdc", "hexadecimal"),
            ("0x10", "hexadecimal"),
            ("1 eur", "the symbol of ethereum:usdc is usdc"),
            ("1 xrp", "the symbol of ethereum:usdc is usdc"),
            ("-1 usdc", "not an amount"),
            ("+1 usdc", "not an amount"),
            ("usdc", "not an amount"),
            ("１.5 usdc", "not an amount"),
            ("1.5000000 usdc", "6 decimals, not 7"),
            ("0.0000001 usdc", "6 decimals, not 7"),
            ("1. usdc", "both sides"),
            (".5 usdc", ""),
            ("1.2.3 usdc", "both sides"),
            (". usdc", "both sides"),
            ("01.5 usdc", ""),
            ("007", ""),
            ("", ""),
            (" ", ""),
            ("0", "zero"),
            ("0 usdc", "zero"),
            ("0.000000 usdc", "zero"),
            // 2^256 base units.
            ("115792089237316195423570985008687907853269984665640564039457584007913129.639936 usdc", ""),
        ] {
            let refused = read(text, "ethereum:usdc").expect_err(text);
            assert!(refused.contains(reason), "{text}: {refused}");
        }
        assert!(read("1 usdc", "ethereum:unknown").is_err_and(|refused| refused.contains("symbol")));
        assert!(read("1 unknown", "ethereum:unknown").is_err_and(|refused| refused.contains("not in the registry")));
        let most = "115792089237316195423570985008687907853269984665640564039457584007913129.639935 usdc";
        assert_eq!(read(most, "ethereum:usdc"), Ok(U256::MAX));
    }
}
