//! Checks `eth_getProof` against the state root of a block: the order that a node reports must be the one that its chain stores.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::encode;
use alloy_trie::proof::verify_proof;
use alloy_trie::{Nibbles, TrieAccount};
use countersign_core::Refusal;
use countersign_core::json::Node;

use super::{hash, quantity};

/// The maximum number of nodes in a proof: one for each hex digit of a key, and the root.
const MAX_NODES: usize = 65;
/// The maximum length in bytes of a node. A branch has 17 entries of at most 33 bytes.
const MAX_NODE: usize = 1024;

/// Returns the proven values of these storage slots; `None` if the answer proves nothing. A missing proof is not a contradiction, because
/// some chains keep their state in another kind of tree.
pub(super) fn read(node: &Node<'_, '_>, state_root: B256, address: Address, slots: &[B256]) -> Option<Vec<U256>> {
    prove(node, state_root, address, slots).ok().flatten()
}

fn prove(node: &Node<'_, '_>, state_root: B256, address: Address, slots: &[B256]) -> Result<Option<Vec<U256>>, Refusal> {
    let members = node.object()?;
    #[allow(clippy::needless_update, reason = "a feature that another crate may turn on adds a member")]
    let account = TrieAccount {
        nonce: quantity(&members.need("nonce")?)?,
        balance: members.need("balance")?.hex_number()?,
        storage_root: hash(&members.need("storageHash")?)?,
        code_hash: hash(&members.need("codeHash")?)?,
    };
    let storage_root = account.storage_root;
    if !is_proven(&members.need("accountProof")?, state_root, keccak256(address), Some(encode(account)))? {
        return Ok(None);
    }
    let storage = members.need("storageProof")?;
    let storage = storage.array()?;
    if storage.len() != slots.len() {
        return Ok(None);
    }
    let mut values = Vec::new();
    for (entry, slot) in storage.zip(slots) {
        let entry = entry.object()?;
        let value = entry.need("value")?.hex_number()?;
        let (proof, key) = (entry.need("proof")?, keccak256(slot));
        // A slot with the value zero is absent from the trie. Some test engines store it nevertheless.
        let is_stored = is_proven(&proof, storage_root, key, Some(encode(value)))?;
        let is_absent = || is_proven(&proof, storage_root, key, None);
        if !(is_stored || value.is_zero() && is_absent()?) {
            return Ok(None);
        }
        values.push(value);
    }
    Ok(Some(values))
}

fn is_proven(node: &Node<'_, '_>, root: B256, key: B256, value: Option<Vec<u8>>) -> Result<bool, Refusal> {
    let nodes: Vec<Bytes> =
        node.array()?.take(MAX_NODES).map(|node| node.hex_bytes(MAX_NODE).map(Bytes::from)).collect::<Result<_, _>>()?;
    Ok(verify_proof(root, Nibbles::unpack(key), value, &nodes).is_ok())
}
