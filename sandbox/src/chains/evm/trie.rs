//! State roots and proofs for `eth_getProof`.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_trie::proof::ProofRetainer;
use alloy_trie::{EMPTY_ROOT_HASH, HashBuilder, Nibbles, TrieAccount};
use countersign_proofs_evm::{Changes, Past};

/// The maximum number of slots in a contract. Computing a larger trie for every block takes too long. Above this, the
/// chain no longer offers proofs, like chains with another kind of state tree.
const MAX_SLOTS: usize = 4_096;

/// The tries of the newest state.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    /// The encoded accounts, by the hash of their address.
    accounts: BTreeMap<B256, Vec<u8>>,
    state: B256,
    is_full: bool,
}

type Leaves = BTreeMap<B256, Vec<u8>>;

/// A proof of an account and of storage slots.
pub(crate) struct Proof {
    pub(crate) account: TrieAccount,
    pub(crate) nodes: Vec<Bytes>,
    pub(crate) slots: Vec<(U256, Vec<Bytes>)>,
}

impl Tries {
    /// Returns the state root after accounts have changed.
    pub(crate) fn root(&mut self, state: Past<'_>, changed: &Changes) -> B256 {
        if self.state == B256::ZERO {
            for address in state.addresses() {
                self.update(state, address);
            }
        } else if changed.accounts().next().is_none() {
            return self.state;
        }
        for address in changed.accounts() {
            self.update(state, address);
        }
        self.state = if self.is_full { keccak256(self.state) } else { build(&self.accounts, None).0 };
        self.state
    }

    /// Drops all tries after a reorganization. They are computed again from the restored accounts.
    pub(crate) fn forget(&mut self) {
        *self = Self { is_full: self.is_full, ..Self::default() };
    }

    fn update(&mut self, state: Past<'_>, address: Address) {
        let leaf = if self.is_full { None } else { account(state, address).map(|(account, _)| alloy_rlp::encode(account)) };
        match leaf {
            Some(leaf) => self.accounts.insert(keccak256(address), leaf),
            None => self.accounts.remove(&keccak256(address)),
        };
        self.is_full = self.is_full || state.storage(address).len() > MAX_SLOTS;
    }

    /// Returns the proof of an account in a state, or `None` if the chain is too large for proofs.
    pub(crate) fn prove(&self, state: Past<'_>, address: Address, slots: &[U256]) -> Option<Proof> {
        if self.is_full {
            return None;
        }
        let all = state.addresses().into_iter();
        let leaves: Leaves = all.filter_map(|one| Some((keccak256(one), alloy_rlp::encode(account(state, one)?.0)))).collect();
        let (_, nodes) = build(&leaves, Some(keccak256(address)));
        let absent = || (TrieAccount { storage_root: EMPTY_ROOT_HASH, ..TrieAccount::default() }, Leaves::new());
        let (account, storage) = account(state, address).unwrap_or_else(absent);
        let prove = |slot: &U256| (state.slot(address, *slot), build(&storage, Some(keccak256(slot.to_be_bytes::<32>()))).1);
        Some(Proof { account, nodes, slots: slots.iter().map(prove).collect() })
    }
}

/// Returns an account as the trie stores it, with the leaves of its storage. Empty accounts are not in the trie.
fn account(state: Past<'_>, address: Address) -> Option<(TrieAccount, Leaves)> {
    let info = state.account(address).filter(|info| !info.is_empty())?;
    let storage = state.storage(address).into_iter();
    let leaves = storage.map(|(slot, value)| (keccak256(slot.to_be_bytes::<32>()), alloy_rlp::encode(value))).collect();
    #[allow(clippy::needless_update, reason = "a feature that another crate may turn on adds a member")]
    let account = TrieAccount {
        nonce: info.nonce,
        balance: info.balance,
        storage_root: build(&leaves, None).0,
        code_hash: info.code_hash,
        ..TrieAccount::default()
    };
    Some((account, leaves))
}

/// Returns the root, and the nodes on the path to a key.
fn build(leaves: &Leaves, key: Option<B256>) -> (B256, Vec<Bytes>) {
    let keys: Vec<_> = key.into_iter().map(Nibbles::unpack).collect();
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(keys));
    for (key, value) in leaves {
        builder.add_leaf(Nibbles::unpack(key), value);
    }
    let root = builder.root();
    (root, builder.take_proof_nodes().into_nodes_sorted().into_iter().map(|(_, node)| node).collect())
}
