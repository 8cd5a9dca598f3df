//! Exit codes.

/// Every line was accepted, the order was accepted, or the swap is complete.
pub(crate) const OK: u8 = 0;
/// An order was refused, a step was not taken, or two registries differ.
pub(crate) const REFUSED: u8 = 1;
/// A usage error, or a file that cannot be read or written.
pub(crate) const USAGE: u8 = 2;
/// The network or the service failed. The same command may succeed later.
pub(crate) const NETWORK: u8 = 3;
/// The user has to do something first.
pub(crate) const NEEDS_USER: u8 = 4;
/// The funds are lost.
pub(crate) const LOST: u8 = 5;
/// The user stopped the program. Shells use the same for a program that SIGINT ended.
pub(crate) const INTERRUPTED: u8 = 130;
