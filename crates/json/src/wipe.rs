//! Wipes what a computation with a secret leaves on the stack.

use std::hint::black_box;
use std::mem::MaybeUninit;

use zeroize::Zeroize;

/// Bytes of the stack that are overwritten: more than signing uses on any curve.
const BYTES: usize = 64 * 1024;
/// Bytes that are overwritten at once. Longer memory is filled with an instruction that counts once for each byte where instructions are
/// counted.
const BLOCK: usize = 2 * 1024;

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
    let mut stack = [[MaybeUninit::<u8>::uninit(); BLOCK]; BYTES / BLOCK];
    for block in &mut stack {
        block.as_mut_slice().zeroize();
    }
    black_box(&mut stack);
}
