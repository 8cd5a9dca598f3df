//! Payment URIs (BIP-21, extended by BIP-321), and QR codes with the feature `qr`.
//!
//! Any wallet can pay a deposit address, because any transaction that sends the coins to it funds the swap.
//!
//! Specification: `docs/spec/bitcoin.md#payload`.

use bitcoin::Amount;
use countersign_core::chains::Coin;
use countersign_core::{U256, number};

use crate::address::Chain;

/// Returns `bitcoin:<address>?amount=<whole coins>`, or the same with `litecoin:` for Litecoin. The scheme is the same on test
/// networks.
///
/// ```
/// use countersign::bitcoin::bitcoin::Amount;
/// use countersign::bitcoin::{Chain, uri};
/// use countersign::chains::{BitcoinNet, Coin};
///
/// let chain = Chain { coin: Coin::Bitcoin, net: BitcoinNet::Main };
/// let uri = uri::payment_uri(
///     chain,
///     "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
///     Amount::from_sat(50_000),
/// );
/// assert_eq!(uri, "bitcoin:bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4?amount=0.0005");
/// ```
#[must_use]
pub fn payment_uri(chain: Chain, address: &str, amount: Amount) -> String {
    let scheme = match chain.coin {
        Coin::Bitcoin => "bitcoin",
        Coin::Litecoin => "litecoin",
    };
    format!("{scheme}:{address}?amount={}", number::in_whole_units(U256::from(amount.to_sat()), 8))
}

/// Returns a QR code of the text for a terminal, two modules per character cell; `None` if the text is too long for one.
#[cfg(feature = "qr")]
#[must_use]
pub fn qr_terminal(text: &str) -> Option<String> {
    use qrcode::render::unicode::Dense1x2;
    // Light on dark, like most terminals. Cameras read both.
    let code = qrcode::QrCode::new(text).ok()?;
    Some(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}

/// Returns a QR code of the text as an SVG document; `None` if the text is too long for one.
#[cfg(feature = "qr")]
#[must_use]
pub fn qr_svg(text: &str) -> Option<String> {
    let code = qrcode::QrCode::new(text).ok()?;
    Some(code.render::<qrcode::render::svg::Color<'_>>().min_dimensions(256, 256).build())
}
