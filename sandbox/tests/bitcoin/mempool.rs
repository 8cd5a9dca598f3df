//! Tests what the mempool rejects, and with which messages.

use bitcoin::{Amount, OutPoint, Sequence, Transaction, TxOut};
use countersign_sandbox::accounts;
use countersign_sandbox::chains::Engine;
use serde_json::json;

use super::{World, call};

/// Makes a transaction invalid before it is signed.
pub(super) type Spoil = fn(&mut Transaction);

/// Returns a payment from the solver's coins. `edit` can change it before it is signed.
pub(super) fn solvers_payment(world: &World, chain: &str, edit: impl FnOnce(&mut Transaction)) -> Transaction {
    use bitcoin::sighash::{EcdsaSighashType, SighashCache};
    let secp = bitcoin::key::Secp256k1::new();
    let key = accounts::key(accounts::SOLVER);
    let address = world.on(chain, |engine| engine.address_of(&key));
    let coin = world.json(chain, &format!("/address/{address}/txs/chain"))[0].clone();
    let vout = coin["vout"].as_array().unwrap().iter().position(|output| output["scriptpubkey_address"] == address).unwrap();
    let script_pubkey = bitcoin::ScriptBuf::from_hex(coin["vout"][vout]["scriptpubkey"].as_str().unwrap()).unwrap();
    let held = coin["vout"][vout]["value"].as_u64().unwrap();
    let from = OutPoint { txid: coin["txid"].as_str().unwrap().parse().unwrap(), vout: vout.try_into().unwrap() };
    let input = bitcoin::TxIn { previous_output: from, sequence: Sequence::MAX, ..Default::default() };
    let mut transaction = Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: bitcoin::absolute::LockTime::ZERO,
        input: vec![input],
        output: vec![TxOut { value: Amount::from_sat(held - 1_000), script_pubkey: script_pubkey.clone() }],
    };
    edit(&mut transaction);
    let mut cache = SighashCache::new(&mut transaction);
    let digest = cache.p2wpkh_signature_hash(0, &script_pubkey, Amount::from_sat(held), EcdsaSighashType::All).unwrap();
    let secret = bitcoin::secp256k1::SecretKey::from_slice(&key).unwrap();
    let signature = bitcoin::ecdsa::Signature::sighash_all(secp.sign_ecdsa(&digest.into(), &secret));
    *cache.witness_mut(0).unwrap() = bitcoin::Witness::p2wpkh(&signature, &secret.public_key(&secp));
    transaction
}

#[test]
fn the_mempool_refuses_in_the_words_of_a_node() {
    let cases: [(&str, Spoil); 9] = [
        ("bad-txns-inputs-missingorspent", |tx| tx.input[0].previous_output.vout = 9_999),
        ("bad-txns-in-belowout, value in (100.00) < value out (200.00)", |tx| tx.output[0].value = Amount::from_sat(20_000_000_000)),
        ("bad-txns-vout-toolarge", |tx| tx.output[0].value = Amount::from_sat(u64::MAX)),
        ("min relay fee not met, 0 < 110", |tx| tx.output[0].value = Amount::from_sat(10_000_000_000)),
        ("Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)", |tx| tx.output[0].value = Amount::ONE_BTC),
        ("dust", |tx| tx.output.push(TxOut { value: Amount::from_sat(293), ..tx.output[0].clone() })),
        ("scriptpubkey", |tx| tx.output[0].script_pubkey = bitcoin::ScriptBuf::from_bytes(vec![0x51])),
        ("version", |tx| tx.version = bitcoin::transaction::Version::non_standard(4)),
        ("non-BIP68-final", |tx| tx.input[0].sequence = Sequence::from_height(100)),
    ];
    let chain = "bitcoin_regtest";
    let world = World::new(&[(chain, "bitcoin:regtest")]);
    for (text, spoil) in cases {
        let refused = world.post(chain, &solvers_payment(&world, chain, spoil)).unwrap_err();
        let code = if text.contains("missing") || text.starts_with("Fee") { -25 } else { -26 };
        assert_eq!(refused, format!(r#"sendrawtransaction RPC error: {{"code":{code},"message":"{text}"}}"#));
    }
    // A signature over something else.
    let mut forged = solvers_payment(&world, chain, |_| {});
    forged.output[0].value = Amount::from_sat(5_000_000_000);
    forged.output.push(TxOut { value: Amount::from_sat(4_999_000_000), ..forged.output[0].clone() });
    assert!(world.post(chain, &forged).unwrap_err().contains("mandatory-script-verify-flag-failed"));

    // A replacement has to pay more, both per virtual byte and in total.
    let first = solvers_payment(&world, chain, |_| {});
    let txid = world.post(chain, &first).unwrap();
    assert_eq!(world.post(chain, &first).unwrap(), txid, "again is not an error");
    let more = |fee: u64| with_fee(&world, chain, fee);
    let third = more(2_000);
    assert!(world.post(chain, &more(999)).unwrap_err().contains("; new feerate 0.00009081 BTC/kvB <= old feerate 0.00009090 BTC/kvB"));
    assert!(world.post(chain, &more(1_050)).unwrap_err().contains("not enough additional fees to relay; 0.0000005 < 0.0000011"));
    let replacement = more(1_110);
    let second = world.post(chain, &replacement).unwrap();
    assert_eq!(world.json(chain, "/mempool/txids"), json!([second]));
    world.on(chain, |engine| engine.mine(1));
    assert!(world.post(chain, &first).unwrap_err().contains("missingorspent"));
    assert!(world.post(chain, &third).unwrap_err().contains("missingorspent"));
    assert!(world.post(chain, &replacement).unwrap_err().contains(r#""code":-27"#));
    let garbage = world.on(chain, |engine| engine.answer(&call("POST", "/tx", b"zz")));
    assert_eq!(garbage.status, 400);
    assert!(String::from_utf8(garbage.body).unwrap().contains(r#""code":-22,"message":"TX decode failed."#));
}

/// Returns the same payment with another fee, as long as its coin is unspent in all blocks.
fn with_fee(world: &World, chain: &str, fee: u64) -> Transaction {
    solvers_payment(world, chain, |transaction| {
        let held = transaction.output[0].value.to_sat() + 1_000;
        transaction.output[0].value = Amount::from_sat(held - fee);
    })
}

#[test]
fn a_coin_of_litecoin_has_its_own_dust_and_asks_to_be_replaceable() {
    follows_litecoin(&World::new(&[("litecoin_regtest", "litecoin:regtest")]));
}

pub(super) fn follows_litecoin(world: &World) {
    let chain = "litecoin_regtest";
    let dust = |value| solvers_payment(world, chain, |tx| tx.output.push(TxOut { value: Amount::from_sat(value), ..tx.output[0].clone() }));
    assert!(world.post(chain, &dust(2_939)).unwrap_err().contains(r#""dust""#));
    world.post(chain, &solvers_payment(world, chain, |_| {})).unwrap();
    assert!(world.post(chain, &with_fee(world, chain, 50_000)).unwrap_err().contains("txn-mempool-conflict"));
}
