//! The Python package `countersign-swap`, with the module `countersign_swap`.
//!
//! No verdict is made here: everything comes from `countersign_json`, as in the bindings of other languages. The only `unsafe`
//! code is what PyO3's macros expand to.

mod input;
mod key;
mod lines;
mod order;
mod reader;
mod recovery;
mod refusal;
mod swap;
mod trust;
mod values;
mod view;
mod wallet;

use pyo3::prelude::*;

/// The compiled part of `countersign_swap`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::key::Key;
    #[pymodule_export]
    use crate::lines::{verify_line, verify_many};
    #[pymodule_export]
    use crate::order::{Order, SignedOrder, UnsignedOrder};
    #[pymodule_export]
    use crate::reader::{ChainAnswer, ChainRequest, Quorum, Reader, split_batch};
    #[pymodule_export]
    use crate::recovery::{Record, Recovery};
    #[pymodule_export]
    use crate::refusal::Refusal;
    #[pymodule_export]
    use crate::swap::{Machine, Need};
    #[pymodule_export]
    use crate::trust::{Policy, Registry};
    #[pymodule_export]
    use crate::values::{
        Coverage, Htlc, HtlcTerms, Line, Matched, NativePayload, Notice, PinChange, Proof, Request, Terms, Transaction, Value, families,
        in_whole_units,
    };
    #[pymodule_export]
    use crate::view::{CheckedReceipt, Difference, OrderPage, Sentence, check_receipt, descriptors, order_page, write_receipt};

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
