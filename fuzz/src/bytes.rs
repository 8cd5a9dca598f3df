//! Reads a target's decisions from the input.

/// The unread bytes of the input. Beyond its end, every byte is zero.
#[derive(Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Creates a reader of an input.
    pub const fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Takes a byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Takes a number of up to 64 bits.
    pub fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// Takes a number below `end`. Returns 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number.checked_rem(end).unwrap_or_default()
    }

    /// Takes one of several choices.
    pub fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[usize::from(self.byte()) % choices.len()]
    }

    /// Returns the unread bytes.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Takes a byte string, preceded by its length: at most 65,535 bytes, and at most the unread ones.
    pub fn some(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()) << 8 | usize::from(self.byte());
        let (some, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        some
    }
}
