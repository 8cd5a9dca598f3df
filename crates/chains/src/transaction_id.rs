//! The forms of transaction ids in order records (`docs/spec/service.md#order-record`).

use crate::network::Family;

/// Returns whether a text has the form of a transaction id on a family's chains: see the table of [`Family`]. The transaction need not
/// exist.
#[must_use]
pub fn is_well_formed(family: Family, text: &str) -> bool {
    (family.rules().is_transaction_id)(text)
}

/// Returns the form of a family's transaction ids in words.
#[must_use]
pub const fn form(family: Family) -> &'static str {
    family.rules().transaction_id
}

pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn without_prefix(text: &str) -> &str {
    text.strip_prefix("0x").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_texts_are_ids_on_no_chain() {
        let hash = "66e11d4099b9351f2b4981b921c2822af5665406968a4896d5b7a2083d56183a";
        for bad in ["", "x", "0x", &format!("{hash}0"), &format!("{hash}:"), &format!("{hash}:x"), "é"] {
            for family in Family::ALL {
                assert!(!is_well_formed(family, bad), "{family} {bad}");
            }
        }
    }
}
