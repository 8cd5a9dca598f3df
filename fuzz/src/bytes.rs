//! Decisions from the input.

/// The bytes that are left of the input. Where it ends, every further byte is zero.
#[derive(Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Creates the decisions of an input.
    pub const fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Takes a byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Takes a number of at most 64 bits.
    pub fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// Takes a number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number.checked_rem(end).unwrap_or_default()
    }

    /// Takes one of some choices.
    pub fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[usize::from(self.byte()) % choices.len()]
    }

    /// Returns the bytes that are left.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Takes some bytes, with their length first: at most 65,535, and at most what is left.
    pub fn some(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()) << 8 | usize::from(self.byte());
        let (some, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        some
    }
}
