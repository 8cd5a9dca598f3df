//! What EVM contracts return and emit, as Solidity's ABI encodes it.

use countersign_core::U256;

fn word(number: usize) -> [u8; 32] {
    U256::from(number).to_be_bytes()
}

/// Encodes bytes or a text that are the only value: the offset, the length, and the bytes up to a whole word.
pub fn bytes(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = [word(32), word(bytes.len())].concat();
    encoded.extend_from_slice(bytes);
    encoded.resize(encoded.len().next_multiple_of(32), 0);
    encoded
}

/// Encodes the answer to `eip712Domain()` on chain 1: fields, name, version, chain id, contract, salt, extensions.
pub fn domain(name: &str, version: &str, contract: [u8; 20]) -> Vec<u8> {
    let mut fields = [0; 32];
    fields[0] = 0x0f;
    let mut address = [0; 32];
    address[12..].copy_from_slice(&contract);
    let heads = [fields, word(0xe0), word(0x120), word(1), address, word(0), word(0x160)].concat();
    // Each text without its offset: both are shorter than a word.
    [heads, bytes(name.as_bytes())[32..].to_vec(), bytes(version.as_bytes())[32..].to_vec(), word(0).to_vec()].concat()
}
