//! Why a call reverted.
//!
//! Contracts revert with `Error(string)` and a text, or with an error of their own, of which only the selector is in the data. The errors of
//! the swap contracts are those of `docs/spec/evm.md#errors`.

use alloy_primitives::{hex, keccak256};
use countersign_core::text::escape_untrusted;

use crate::read::text;

/// The selector of `Error(string)`.
const TEXT: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];

/// What the names of a contract's errors begin with: the token HTLC and the native HTLC, and their variants for Arbitrum.
const PREFIXES: [&str; 4] = ["HTLC__", "NativeHTLC__", "ArbHTLC__", "ArbNativeHTLC__"];

/// The errors of the swap contracts, which have no parameters.
const ERRORS: [(&str, &str); 16] = [
    ("DuplicateOrder", "an order with these terms exists already"),
    ("HTLCAlreadyInitialized", "the token is already set"),
    ("IncorrectFundsRecieved", "the value is not the amount"),
    ("IncorrectSecret", "the secret is wrong"),
    ("InsufficientBalance", "the balance is too small"),
    ("InvalidInitiatorSignature", "the signature is not the initiator's"),
    ("InvalidRedeemerSignature", "the signature is not the redeemer's"),
    ("OrderFulfilled", "the order was already redeemed or refunded"),
    ("OrderNotExpired", "the timelock has not expired"),
    ("OrderNotInitiated", "the contract has no such order"),
    ("SameFunderAndRedeemer", "the sender is the redeemer"),
    ("SameInitiatorAndRedeemer", "the initiator is the redeemer"),
    ("ZeroAddressInitiator", "the initiator is the zero address"),
    ("ZeroAddressRedeemer", "the redeemer is the zero address"),
    ("ZeroAmount", "the amount is zero"),
    ("ZeroTimelock", "the timelock is zero"),
];

/// Errors of the tokens, which pass through the swap contracts, and of the compiler.
const OTHER_ERRORS: [(&str, &str, &str); 4] = [
    ("ERC20InsufficientAllowance", "(address,uint256,uint256)", "the token's allowance is too small"),
    ("ERC20InsufficientBalance", "(address,uint256,uint256)", "the token balance is too small"),
    ("SafeERC20FailedOperation", "(address)", "the token did not transfer"),
    ("Panic", "(uint256)", "the contract failed"),
];

/// Returns why a call reverted: the text of `Error(string)`, escaped, or the name of a known error and what it means, or the selector of
/// another error. `None` for data of less than four bytes.
#[must_use]
pub fn revert_reason(data: &[u8]) -> Option<String> {
    let (selector, arguments) = data.split_first_chunk::<4>()?;
    if *selector == TEXT
        && let Ok(text) = text(arguments)
    {
        return Some(escape_untrusted(&text));
    }
    Some(known(*selector).unwrap_or_else(|| format!("error {}", hex::encode_prefixed(selector))))
}

fn known(selector: [u8; 4]) -> Option<String> {
    let named = |prefix: &str, name: &str, parameters: &str, meaning: &str| {
        let name = format!("{prefix}{name}");
        let is_named = keccak256(format!("{name}{parameters}")).starts_with(&selector);
        is_named.then(|| format!("{meaning} ({name})"))
    };
    let of_contracts = PREFIXES.iter().flat_map(|prefix| ERRORS.iter().map(move |(name, meaning)| (*prefix, *name, "()", *meaning)));
    let of_others = OTHER_ERRORS.iter().map(|(name, parameters, meaning)| ("", *name, *parameters, *meaning));
    of_contracts.chain(of_others).find_map(|(prefix, name, parameters, meaning)| named(prefix, name, parameters, meaning))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::hex;
    use alloy_sol_types::{Revert, SolError};

    use super::revert_reason;

    /// Selectors of `docs/spec/evm.md#errors`.
    #[test]
    fn names_the_errors_of_every_contract() {
        let expired = "the timelock has not expired";
        let cases = [
            ("839f009c", format!("{expired} (HTLC__OrderNotExpired)")),
            ("221bb10a", format!("{expired} (NativeHTLC__OrderNotExpired)")),
            ("cadc2009", format!("{expired} (ArbHTLC__OrderNotExpired)")),
            ("9c5ad466", format!("{expired} (ArbNativeHTLC__OrderNotExpired)")),
            ("90c06174", "an order with these terms exists already (HTLC__DuplicateOrder)".to_owned()),
            ("5fe38e21", "the value is not the amount (ArbNativeHTLC__IncorrectFundsRecieved)".to_owned()),
            ("f2965010", "the balance is too small (NativeHTLC__InsufficientBalance)".to_owned()),
            ("c7ea8167", "the sender is the redeemer (HTLC__SameFunderAndRedeemer)".to_owned()),
            // With the beginning of its parameters.
            ("fb8f41b20000", "the token's allowance is too small (ERC20InsufficientAllowance)".to_owned()),
            ("5274afe7", "the token did not transfer (SafeERC20FailedOperation)".to_owned()),
            ("4e487b71", "the contract failed (Panic)".to_owned()),
            ("d05c31dc", "error 0xd05c31dc".to_owned()),
        ];
        for (data, expected) in cases {
            let data = hex::decode(data).expect("hex");
            assert_eq!(revert_reason(&data).as_deref(), Some(expected.as_str()));
        }
    }

    /// A text that is not the encoding of a string is no text.
    #[test]
    fn escapes_the_text_of_a_revert() {
        let text = Revert::from("HTLC: order not expired\u{202e}").abi_encode();
        assert_eq!(revert_reason(&text).as_deref(), Some(r"HTLC: order not expired\u{202e}"));
        assert_eq!(revert_reason(&text[..40]).as_deref(), Some("error 0x08c379a0"));
        assert_eq!(revert_reason(&text[..3]), None);
    }
}
