//! Signs with rust-bitcoin alone, without the library under test.

use bitcoin::hashes::Hash;
use bitcoin::key::{Keypair, Secp256k1, TapTweak};
use bitcoin::sighash::{Prevouts, SighashCache, TapSighashType};
use bitcoin::taproot::TapNodeHash;
use bitcoin::{Transaction, TxOut, secp256k1};
use countersign_bitcoin::htlc::{Leaf, Tree};

fn keypair(secret_key: &str) -> Keypair {
    Keypair::from_seckey_slice(&Secp256k1::new(), &hex::decode(secret_key).expect("hex")).expect("a key")
}

fn signature(keypair: &Keypair, digest: impl Into<secp256k1::Message>) -> [u8; 64] {
    Secp256k1::new().sign_schnorr_no_aux_rand(&digest.into(), keypair).serialize()
}

/// Signs every input through a leaf. A redemption also needs the secret.
pub(crate) fn through_leaf(
    mut transaction: Transaction,
    prevouts: &[TxOut],
    (tree, leaf): (&Tree, Leaf),
    secret_key: &str,
    secret: Option<&[u8; 32]>,
) -> Transaction {
    let unsigned = transaction.clone();
    for (index, input) in transaction.input.iter_mut().enumerate() {
        let digest = SighashCache::new(&unsigned)
            .taproot_script_spend_signature_hash(index, &Prevouts::All(prevouts), tree.leaf_hash(leaf), TapSighashType::Default)
            .expect("a digest");
        input.witness.push(signature(&keypair(secret_key), digest));
        secret.into_iter().for_each(|secret| input.witness.push(secret));
        input.witness.push(tree.script(leaf));
        input.witness.push(tree.control_block(leaf));
    }
    transaction
}

/// Signs every input with the output's own key, which is the internal key tweaked by the root of its scripts, if
/// there are any.
pub(crate) fn through_key(mut transaction: Transaction, prevouts: &[TxOut], secret_key: &str, scripts: Option<&Tree>) -> Transaction {
    let root = scripts.map(|tree| TapNodeHash::from_byte_array(tree.output.merkle_root));
    let keypair = keypair(secret_key).tap_tweak(&Secp256k1::new(), root).to_keypair();
    let unsigned = transaction.clone();
    for (index, input) in transaction.input.iter_mut().enumerate() {
        let digest = SighashCache::new(&unsigned)
            .taproot_key_spend_signature_hash(index, &Prevouts::All(prevouts), TapSighashType::Default)
            .expect("a digest");
        input.witness.push(signature(&keypair, digest));
    }
    transaction
}
