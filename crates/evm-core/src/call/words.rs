//! The argument words of a call, as the ABI encodes them.

use alloy_primitives::{Address, Bytes, U256};
use countersign_core::{Code, Refusal, json::At};

use super::{MAX_DESTINATION_DATA, WORD, padded};

/// The argument words of a call, read one by one so that a refusal can name its bytes.
pub(super) struct AbiWords<'a> {
    pub(super) data: &'a [u8],
    pub(super) at: &'a At<'a>,
}

impl AbiWords<'_> {
    /// Returns the first byte of argument word `index` and the byte after its end.
    pub(super) fn range(index: usize) -> (usize, usize) {
        let start = index.saturating_mul(WORD).saturating_add(4);
        (start, start.saturating_add(WORD))
    }

    pub(super) fn refuse(&self, code: Code, index: usize) -> Refusal {
        let (start, end) = Self::range(index);
        self.at.refuse_bytes(code, start, end)
    }

    pub(super) fn exactly(&self, words: usize) -> Result<(), Refusal> {
        self.length(Self::range(words).0)
    }

    pub(super) fn length(&self, len: usize) -> Result<(), Refusal> {
        if self.data.len() == len {
            return Ok(());
        }
        let (start, end) = (len.min(self.data.len()), len.max(self.data.len()));
        Err(self
            .at
            .refuse_bytes(Code::CalldataLength, start, end)
            .with_expected(format!("{len} bytes"))
            .with_actual(format!("{} bytes", self.data.len())))
    }

    pub(super) fn word(&self, index: usize) -> Result<[u8; WORD], Refusal> {
        let (start, end) = Self::range(index);
        self.data.get(start..end).and_then(|word| word.try_into().ok()).ok_or_else(|| {
            self.refuse(Code::CalldataLength, index)
                .with_expected(format!("at least {end} bytes"))
                .with_actual(format!("{} bytes", self.data.len()))
        })
    }

    pub(super) fn number(&self, index: usize) -> Result<U256, Refusal> {
        self.word(index).map(U256::from_be_bytes)
    }

    pub(super) fn address(&self, index: usize) -> Result<Address, Refusal> {
        let word = self.word(index)?;
        match word.split_first_chunk::<12>() {
            Some((&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], address)) => Ok(Address::from_slice(address)),
            _ => Err(self
                .refuse(Code::CalldataPadding, index)
                .with_expected("12 zero bytes before an address")
                .with_actual(hex::encode(word))),
        }
    }

    /// Reads the bytes whose offset is in word `index`, the last argument. The length must follow directly, then the bytes,
    /// then zeros to the end of the word, and nothing more.
    pub(super) fn bytes(&self, index: usize) -> Result<Bytes, Refusal> {
        let length_at = index.saturating_add(1);
        let offset = self.number(index)?;
        let canonical = U256::from(length_at.saturating_mul(WORD));
        if offset != canonical {
            return Err(self
                .refuse(Code::CalldataOffset, index)
                .with_expected(format!("{canonical:#x}"))
                .with_actual(format!("{offset:#x}")));
        }
        let len = self.number(length_at)?;
        let len = usize::try_from(len).ok().filter(|len| *len <= MAX_DESTINATION_DATA).ok_or_else(|| {
            self.refuse(Code::DestinationDataTooLong, length_at).with_expected("at most 1024 bytes").with_actual(format!("{len:#x}"))
        })?;
        let (start, _) = Self::range(length_at.saturating_add(1));
        self.length(start.saturating_add(padded(len)))?;
        let end = start.saturating_add(len);
        let (bytes, padding) = (self.data.get(start..end).unwrap_or_default(), self.data.get(end..).unwrap_or_default());
        if padding.iter().any(|byte| *byte != 0) {
            return Err(self
                .at
                .refuse_bytes(Code::CalldataPadding, end, self.data.len())
                .with_expected("zero bytes")
                .with_actual(hex::encode(padding)));
        }
        Ok(Bytes::copy_from_slice(bytes))
    }

    /// Requires that the rebuilt bytes are the bytes that came, so that nothing was overlooked.
    pub(super) fn same(&self, rebuilt: &[u8]) -> Result<(), Refusal> {
        if rebuilt == self.data {
            return Ok(());
        }
        let start = rebuilt.iter().zip(self.data).take_while(|(a, b)| a == b).count();
        Err(self
            .at
            .refuse_bytes(Code::CalldataPadding, start, self.data.len())
            .with_reason("the calldata is not the encoding of its arguments"))
    }
}
