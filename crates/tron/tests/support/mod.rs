//! What the tests of every family share, for this one.

#[path = "../../../core/tests/family/mod.rs"]
mod family;

use countersign_tron::Tron as Tested;
#[allow(unused_imports, reason = "each test file takes what it needs")]
pub(crate) use family::*;
