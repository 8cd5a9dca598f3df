//! Published vectors: the wallet vectors of BIP-341, addresses that the service computed.

use bitcoin::consensus::encode::deserialize;
use bitcoin::hashes::Hash;
use bitcoin::{TapNodeHash, Transaction, XOnlyPublicKey};
use countersign_bitcoin::address::Chain;
use countersign_bitcoin::htlc::{Htlc, Leaf, Tree};
use countersign_core::chains::taproot::{branch_hash, leaf_hash, tagged_hash, tweak};
use countersign_core::chains::{BitcoinNet, Coin};
use countersign_testkit::{TestResult, shared, skipped};
use serde_json::Value as Json;

const TESTNET: Chain = Chain { coin: Coin::Bitcoin, net: BitcoinNet::Test };

fn bytes(hex: &str) -> Vec<u8> {
    hex::decode(hex).expect("hex")
}

fn array(hex: &str) -> [u8; 32] {
    bytes(hex).try_into().expect("32 bytes")
}

fn text<'j>(value: &'j Json, at: &str) -> &'j str {
    value.pointer(at).and_then(Json::as_str).expect(at)
}

/// All ten swap records of known_answers.json give the address that the service computed, and the intermediate values that the
/// file has.
#[test]
fn the_services_own_addresses_are_recomputed() -> TestResult {
    let known: Json = match shared("known_answers.json") {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(reason) => return skipped(&reason),
    };
    let internal_key = array(text(&known, "/bitcoin_internal_key/x_only"));
    let swaps = known["bitcoin_htlc"].as_array().expect("an array");
    assert_eq!(swaps.len(), 10);
    for swap in swaps {
        let timelock = u16::try_from(swap["timelock_blocks"].as_u64().expect("blocks"))?;
        let (initiator, redeemer) = (array(text(swap, "/initiator_xonly")), array(text(swap, "/redeemer_xonly")));
        let htlc = Htlc { internal_key, initiator, redeemer, secret_hash: array(text(swap, "/secret_hash")), timelock };
        let tree = Tree::new(htlc).expect("a point");
        assert_eq!(tree.address(TESTNET), text(swap, "/address"));
        if let Some(between) = swap.get("intermediate") {
            assert_eq!(hex::encode(tree.output.merkle_root), text(between, "/merkle_root"));
            assert_eq!(hex::encode(tree.output.refund_leaf), text(between, "/refund_leaf"));
            assert_eq!(tree.leaf_hash(Leaf::Redeem).to_byte_array(), array(text(between, "/redeem_leaf")));
            assert_eq!(hex::encode(tree.script(Leaf::Refund).as_bytes()), text(between, "/refund_script"));
        }
    }
    Ok(())
}

/// Returns the root of the tree below `node`.
fn root(node: &Json) -> [u8; 32] {
    match node {
        Json::Array(children) => branch_hash(root(&children[0]), root(&children[1])),
        leaf => {
            assert!(leaf["leafVersion"] == 0xc0 || leaf["leafVersion"] == 0xfa);
            let script = bytes(text(leaf, "/script"));
            let version = u8::try_from(leaf["leafVersion"].as_u64().expect("a version")).expect("a byte");
            let len = u8::try_from(script.len()).expect("a short script");
            let hash = tagged_hash("TapLeaf", &[&[version, len], &script]);
            assert!(version != 0xc0 || hash == leaf_hash(&script));
            hash
        }
    }
}

#[test]
fn bip341_outputs() -> TestResult {
    let vectors: Json = match shared("public-vectors/bip341-wallet.json") {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(reason) => return skipped(&reason),
    };
    let chain = Chain { coin: Coin::Bitcoin, net: BitcoinNet::Main };
    let vectors = vectors["scriptPubKey"].as_array().expect("an array");
    assert_eq!(vectors.len(), 7);
    for vector in vectors {
        let key = array(text(vector, "/given/internalPubkey"));
        let tree = &vector["given"]["scriptTree"];
        let (node, hash) = if tree.is_null() {
            (None, tagged_hash("TapTweak", &[&key]))
        } else {
            (Some(root(tree)), tagged_hash("TapTweak", &[&key, &root(tree)]))
        };
        assert_eq!(node.map(hex::encode).as_deref(), vector["intermediary"]["merkleRoot"].as_str());
        assert_eq!(hex::encode(hash), text(vector, "/intermediary/tweak"));
        let (output, _) = tweak(key, hash).expect("a point");
        assert_eq!(hex::encode(output), text(vector, "/intermediary/tweakedPubkey"));
        let script = chain.script(text(vector, "/expected/bip350Address"), "")?;
        assert_eq!(hex::encode(script.as_bytes()), text(vector, "/expected/scriptPubKey"));
        assert_eq!(chain.address(&script).as_deref(), Some(text(vector, "/expected/bip350Address")));
        // The bitcoin crate's own tweak agrees.
        let own = bitcoin::key::TapTweak::tap_tweak(
            XOnlyPublicKey::from_slice(&key)?,
            &bitcoin::key::Secp256k1::new(),
            node.map(TapNodeHash::from_byte_array),
        );
        assert_eq!(own.0.to_x_only_public_key().serialize(), output);
    }
    Ok(())
}

/// The library computes the digests of key-path spends. They are compared with the vectors of BIP-341.
#[test]
fn bip341_sighashes() -> TestResult {
    use bitcoin::sighash::{Prevouts, SighashCache, TapSighashType};
    use bitcoin::{Amount, ScriptBuf, TxOut};
    let vectors: Json = match shared("public-vectors/bip341-wallet.json") {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(reason) => return skipped(&reason),
    };
    let vector = &vectors["keyPathSpending"][0];
    let transaction: Transaction = deserialize(&bytes(text(vector, "/given/rawUnsignedTx")))?;
    let prevouts: Vec<_> = vector["given"]["utxosSpent"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|utxo| TxOut {
            value: Amount::from_sat(utxo["amountSats"].as_u64().expect("an amount")),
            script_pubkey: ScriptBuf::from_bytes(bytes(text(utxo, "/scriptPubKey"))),
        })
        .collect();
    let inputs = vector["inputSpending"].as_array().expect("an array");
    assert_eq!(inputs.len(), 7);
    for input in inputs {
        let index = usize::try_from(input["given"]["txinIndex"].as_u64().expect("an index"))?;
        let hash_type = u8::try_from(input["given"]["hashType"].as_u64().expect("a type"))?;
        let mut cache = SighashCache::new(&transaction);
        let digest =
            cache.taproot_key_spend_signature_hash(index, &Prevouts::All(&prevouts), TapSighashType::from_consensus_u8(hash_type)?)?;
        assert_eq!(hex::encode(digest.to_byte_array()), text(input, "/intermediary/sigHash"));
    }
    Ok(())
}
