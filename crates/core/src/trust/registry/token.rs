//! The standard of a token, where a chain has more than one.

/// The standard of a token, as its pinned schema names it. Only Solana has two programs for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenStandard {
    /// The chain's usual one; on Solana that of the classic token program.
    Classic,
    /// Solana's Token-2022.
    Token2022,
}

impl TokenStandard {
    /// Parses the schema of a token: Token-2022 if it contains `2022` (`docs/spec/batch.md#registry-file`), otherwise the usual standard.
    pub(super) fn from_schema(schema: Option<&str>) -> Self {
        if schema.is_some_and(|schema| schema.contains("2022")) { Self::Token2022 } else { Self::Classic }
    }
}

#[cfg(test)]
mod tests {
    use super::TokenStandard;

    #[test]
    fn only_a_schema_with_2022_is_token_2022() {
        for (schema, expected) in [
            (Some("solana:spltoken_2022"), TokenStandard::Token2022),
            (Some("solana:spltoken"), TokenStandard::Classic),
            (Some("evm:erc20"), TokenStandard::Classic),
            (None, TokenStandard::Classic),
        ] {
            assert_eq!(TokenStandard::from_schema(schema), expected, "{schema:?}");
        }
    }
}
