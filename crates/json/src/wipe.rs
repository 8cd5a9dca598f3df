//! Wipes what a computation with a secret leaves on the stack.

use zeroize::Zeroize;

/// 64-bit words of the stack that are overwritten: more than signing uses on any curve.
const WORDS: usize = 8 * 1024;

/// Calls `work` and overwrites the stack that it used.
///
/// A value that holds a key is wiped when it is dropped, but moving it leaves a copy behind, and curve libraries pass scalars by value.
/// Such copies stay until another call happens to overwrite them.
pub(crate) fn with_wiped_stack<T>(work: impl FnOnce() -> T) -> T {
    let result = below(work);
    overwrite();
    result
}

/// Has a frame of its own, which [`overwrite`] then covers.
#[inline(never)]
fn below<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn overwrite() {
    let mut words = [1_u64; WORDS];
    words.zeroize();
    std::hint::black_box(&mut words);
}
