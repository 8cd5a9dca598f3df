//! Checks `eth_getProof` against the state root of a block: the order that a node reports must be the one that its chain stores.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{EMPTY_STRING_CODE, Header, encode};
use alloy_trie::proof::verify_proof;
use alloy_trie::{Nibbles, TrieAccount};
use countersign_core::Refusal;
use countersign_core::json::Cursor;

use super::{hash, quantity};

/// The maximum number of nodes in a proof: one for each hex digit of a key, and the root.
const MAX_NODES: usize = 65;
/// The maximum length in bytes of a node. A branch has 17 entries of at most 33 bytes.
const MAX_NODE: usize = 1024;
/// The number of nibbles of a key, which is a hash.
const KEY_NIBBLES: usize = 64;

/// Returns the proven values of these storage slots; `None` if the answer proves nothing. A missing proof is not a contradiction, because
/// some chains keep their state in another kind of tree.
pub(super) fn read(node: &Cursor<'_, '_>, state_root: B256, address: Address, slots: &[B256]) -> Option<Vec<U256>> {
    prove(node, state_root, address, slots).ok().flatten()
}

fn prove(node: &Cursor<'_, '_>, state_root: B256, address: Address, slots: &[B256]) -> Result<Option<Vec<U256>>, Refusal> {
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

fn is_proven(node: &Cursor<'_, '_>, root: B256, key: B256, value: Option<Vec<u8>>) -> Result<bool, Refusal> {
    let nodes: Vec<Bytes> =
        node.array()?.take(MAX_NODES).map(|node| node.hex_bytes(MAX_NODE).map(Bytes::from)).collect::<Result<_, _>>()?;
    // The verifier adds up the paths of the nodes before it compares them, and panics above the length of a key.
    let length = nodes.iter().try_fold(0_usize, |sum, node| Some(sum.saturating_add(path_length(node, 0)?)));
    Ok(length.is_some_and(|length| length <= KEY_NIBBLES) && verify_proof(root, Nibbles::unpack(key), value, &nodes).is_ok())
}

/// Returns the greatest number of nibbles that a path through a node and the nodes inside it can have; `None` if it is not a node.
fn path_length(mut node: &[u8], level: usize) -> Option<usize> {
    // The only node of an empty trie.
    if node == [EMPTY_STRING_CODE] {
        return Some(0);
    }
    if level > KEY_NIBBLES || !Header::decode(&mut node).ok()?.list {
        return None;
    }
    let mut items = Vec::new();
    while !node.is_empty() {
        let whole = node;
        let Header { list, payload_length } = Header::decode(&mut node).ok()?;
        let (content, rest) = node.split_at_checked(payload_length)?;
        let whole = whole.get(..whole.len().checked_sub(rest.len())?)?;
        items.push((list, whole, content));
        node = rest;
    }
    let inside = |item: &(bool, &[u8], &[u8])| if item.0 { path_length(item.1, level.saturating_add(1)) } else { Some(0) };
    match items.as_slice() {
        // An extension or a leaf: the first nibble tells which, and whether the number of nibbles is odd.
        [(false, _, path), child] => {
            let is_odd = path.first()? & 0x10 != 0;
            let own = path.len().checked_sub(1)?.saturating_mul(2).saturating_add(usize::from(is_odd));
            Some(own.saturating_add(inside(child)?))
        }
        branch if branch.len() == 17 => {
            let children = branch.iter().map(inside).collect::<Option<Vec<_>>>()?;
            Some(children.into_iter().max()?.saturating_add(1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::U256;
    use countersign_core::json::{self, Cursor as JsonNode};

    use super::*;

    /// Writes a list of two strings.
    fn pair(path: &[u8], value: &[u8]) -> Vec<u8> {
        let mut payload = encode(path);
        payload.extend(encode(value));
        let mut node = Vec::new();
        Header { list: true, payload_length: payload.len() }.encode(&mut node);
        node.extend(payload);
        node
    }

    fn is_proven_by(nodes: &[Vec<u8>]) -> bool {
        let text = serde_json::json!(nodes.iter().map(alloy_primitives::hex::encode_prefixed).collect::<Vec<_>>()).to_string();
        let value = json::parse(text.as_bytes()).unwrap();
        is_proven(&JsonNode::root(&value, ""), keccak256(&nodes[0]), B256::ZERO, Some(encode(U256::ONE))).unwrap()
    }

    #[test]
    fn a_path_that_is_longer_than_a_key_proves_nothing() {
        let leaf = pair(&[0x31], &[7; 40]);
        let extension = pair(&[0; 33], keccak256(&leaf).as_slice());
        assert!(!is_proven_by(&[extension, leaf]));
        assert!(!is_proven_by(&[pair(&[0; 60], &[7; 40])]));
        // Inside a branch.
        let mut payload = pair(&[0; 20], &pair(&[0x20; 4], &[1]));
        payload.extend([0x80; 16]);
        let mut branch = Vec::new();
        Header { list: true, payload_length: payload.len() }.encode(&mut branch);
        branch.extend(payload);
        assert!(!is_proven_by(&[branch]));
        for nodes in [vec![Vec::new()], vec![vec![0xc0]], vec![vec![0xff; 9]], vec![vec![0xc1; 900]]] {
            assert!(!is_proven_by(&nodes));
        }
    }

    #[test]
    fn a_single_leaf_is_proven() {
        let leaf = pair(&[&[0x20][..], &[0; 32]].concat(), &encode(U256::ONE));
        assert!(is_proven_by(&[leaf]));
    }
}
