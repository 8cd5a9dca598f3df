//! The swap contract: a taproot output with three scripts and an unspendable internal key.

use bitcoin::hashes::{Hash, sha256};
use bitcoin::key::{Secp256k1, UntweakedPublicKey};
use bitcoin::opcodes::all::{OP_CHECKSIG, OP_CHECKSIGADD, OP_CSV, OP_DROP, OP_EQUALVERIFY, OP_NUMEQUAL, OP_SHA256};
use bitcoin::secp256k1::All;
use bitcoin::taproot::{LeafVersion, TapLeafHash, TaprootBuilder, TaprootSpendInfo};
use bitcoin::{ScriptBuf, Sequence, Witness, XOnlyPublicKey};

use crate::chains::engine::Change;

/// The x-only internal key, which the registry lists as `htlc.address`.
pub(super) const INTERNAL_KEY: [u8; 32] = [
    0x21, 0x60, 0xe1, 0x1a, 0x13, 0x5f, 0x94, 0xe5, 0x36, 0xa5, 0xb2, 0x22, 0xe5, 0xd0, 0x9f, 0xd9, 0xdb, 0x1b, 0xe5, 0xf5, 0xf5, 0xe7,
    0x53, 0x92, 0x02, 0x90, 0xc0, 0x41, 0x0c, 0xf3, 0x88, 0xf0,
];

/// The script paths that can spend the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    Redeem,
    Refund,
    InstantRefund,
}

/// An HTLC.
#[derive(Debug, Clone)]
pub(super) struct Htlc {
    tree: TaprootSpendInfo,
    scripts: [ScriptBuf; 3],
    timelock: u16,
}

impl Htlc {
    /// Builds the script tree. Returns `None` for a timelock of zero.
    pub(super) fn new(
        secp: &Secp256k1<All>,
        initiator: XOnlyPublicKey,
        redeemer: XOnlyPublicKey,
        secret_hash: [u8; 32],
        timelock: u16,
    ) -> Option<Self> {
        let initiator_key = initiator.serialize();
        let redeemer_key = redeemer.serialize();
        let redeem = ScriptBuf::builder().push_opcode(OP_SHA256).push_slice(secret_hash).push_opcode(OP_EQUALVERIFY);
        let redeem = redeem.push_slice(redeemer_key).push_opcode(OP_CHECKSIG).into_script();
        let refund = ScriptBuf::builder().push_int(timelock.into()).push_opcode(OP_CSV).push_opcode(OP_DROP);
        let refund = refund.push_slice(initiator_key).push_opcode(OP_CHECKSIG).into_script();
        let instant = ScriptBuf::builder().push_slice(initiator_key).push_opcode(OP_CHECKSIG).push_slice(redeemer_key);
        let instant = instant.push_opcode(OP_CHECKSIGADD).push_int(2).push_opcode(OP_NUMEQUAL).into_script();
        let builder = TaprootBuilder::new().add_leaf(1, redeem.clone()).ok()?.add_leaf(2, refund.clone()).ok()?;
        let builder = builder.add_leaf(2, instant.clone()).ok()?;
        let tree = builder.finalize(secp, UntweakedPublicKey::from_slice(&INTERNAL_KEY).ok()?).ok()?;
        (timelock > 0).then_some(Self { tree, scripts: [redeem, refund, instant], timelock })
    }

    pub(super) fn script_pubkey(&self) -> ScriptBuf {
        ScriptBuf::new_p2tr_tweaked(self.tree.output_key())
    }

    fn script(&self, leaf: Leaf) -> &ScriptBuf {
        let [redeem, refund, instant] = &self.scripts;
        match leaf {
            Leaf::Redeem => redeem,
            Leaf::Refund => refund,
            Leaf::InstantRefund => instant,
        }
    }

    pub(super) fn leaf_hash(&self, leaf: Leaf) -> TapLeafHash {
        TapLeafHash::from_script(self.script(leaf), LeafVersion::TapScript)
    }

    /// Returns the sequence of an input that is spent through a leaf.
    pub(super) fn sequence(&self, leaf: Leaf) -> Sequence {
        match leaf {
            Leaf::Redeem => Sequence::ENABLE_RBF_NO_LOCKTIME,
            Leaf::Refund => Sequence::from_height(self.timelock),
            Leaf::InstantRefund => Sequence::MAX,
        }
    }

    /// Returns the witness of a leaf. `items` are the inputs of its script.
    pub(super) fn witness(&self, leaf: Leaf, items: &[&[u8]]) -> Witness {
        let mut witness = Witness::from_slice(items);
        let script = self.script(leaf).clone();
        witness.push(&script);
        let control = self.tree.control_block(&(script, LeafVersion::TapScript));
        witness.push(control.map(|control| control.serialize()).unwrap_or_default());
        witness
    }
}

/// Returns the effect of a spend on a swap, as its witness reveals it, or `None` for a spend of something else.
pub(super) fn change(witness: &Witness) -> Option<Change> {
    let mut items: Vec<&[u8]> = witness.iter().collect();
    // The annex of BIP-341 is not part of the script's input.
    if items.len() >= 2 && items.last().is_some_and(|item| item.first() == Some(&0x50)) {
        items.pop();
    }
    let [.., script, control] = items.as_slice() else { return None };
    if control.get(1..33) != Some(&INTERNAL_KEY[..]) {
        return None;
    }
    match (items.as_slice(), *script) {
        ([_, secret, _, _], [0xa8, 0x20, rest @ .., 0xac]) if rest.len() == 66 => {
            let is_opened = rest.get(..32) == Some(&sha256::Hash::hash(secret).to_byte_array()[..]);
            let secret = <[u8; 32]>::try_from(*secret).ok().filter(|_| is_opened)?;
            Some(Change::Redeemed { secret })
        }
        ([_, _, _], [.., 0xac]) => Some(Change::Refunded),
        ([_, _, _, _], [0x20, .., 0xba, 0x52, 0x9c]) => Some(Change::Refunded),
        _ => None,
    }
}
