//! A payment on a Bitcoin-like chain that is in no block: the signer is asked for a higher fee, with the same coins.

use countersign::Proposal;
use countersign::bitcoin::bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use countersign::bitcoin::bitcoin::{OutPoint, Transaction};
use countersign::bitcoin::{FeeRate, TxContext, Utxo};
use countersign::reader::{Answer, Format, Request};
use countersign_testkit::chain::bitcoin::{Deposit, Ledger, NOW, REGTEST, deposit, outpoint, pay};

use super::*;

/// Of BIP-173's examples.
const ACCOUNT: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

/// What an Esplora server replies to the host.
fn esplora(ledger: &Ledger, asked: &crate::need::HttpRequest) -> Reply {
    let path = asked.url.strip_prefix("https://esplora.example/api").unwrap();
    let (status, body) = match &asked.body {
        None => ledger.get(path),
        Some(body) => match ledger.answer(&Request::post(path, body.to_vec(), Format::Text)) {
            Answer::Http { status, body, .. } => (status, body.to_vec()),
            other => panic!("{other:?}"),
        },
    };
    Reply::Response { status, headers: Vec::new(), body }
}

#[test]
fn a_signer_is_asked_for_a_higher_fee_with_the_same_coins() {
    let Deposit { request, response, record, registry, key, script } = deposit();
    let mut ledger = Ledger::new();
    let coin = pay(outpoint(9), &[vec![1; 64]], &[(120_000, script)]);
    ledger.mempool.push(coin.clone());
    ledger.mine(3);
    let coins = vec![Utxo::new(OutPoint { txid: coin.compute_txid(), vout: 0 }, coin.output.first().unwrap().clone()).unwrap()];
    let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
    let order = countersign::verify(proposal, &registry, &Policy::default()).unwrap();
    let Verified::Bitcoin(deposit) = &order else { panic!("not of Bitcoin") };
    let mut paying = Unsigned::Bitcoin(deposit.prepare(TxContext::new(coins, ACCOUNT, FeeRate::from_whole(1))).unwrap());
    countersign_json::sign(&mut paying, &key).unwrap();
    let [sent] = paying.finish().unwrap().broadcasts().try_into().unwrap();
    let first: Transaction = deserialize_hex(&sent.payload).unwrap();
    ledger.offer(&first).unwrap();

    for answer in ["signed", "sent", "failed", "nobody"] {
        let mut owner = owner(&if answer == "nobody" { "{}".to_owned() } else { format!(r#"{{"{REGTEST}":"{ACCOUNT}"}}"#) }, "");
        owner.host.set_now(NOW * 1_000);
        let nodes = NodeConfig::from_json(format!(r#"{{"{REGTEST}": ["https://esplora.example/api"]}}"#).as_bytes()).unwrap();
        (owner.registry, owner.nodes) = (Arc::new(registry.clone()), Arc::new(Nodes::new(owner.host.clone(), nodes, &registry)));
        let raised = run(&owner.host, owner.raise(&order, &sent), |need| match &need.ask {
            Ask::Http(asked) => esplora(&ledger, asked),
            Ask::Sign(signing) => {
                assert_eq!((signing.purpose, signing.replaces.as_deref()), (Purpose::Funding, Some(&*sent.id)));
                match answer {
                    "sent" => Reply::Sent,
                    "failed" => Reply::SignerFailed { message: "the wallet failed".to_owned(), code: None },
                    _ => {
                        let mut unsigned = owner.host.take_unsigned(need.id).unwrap();
                        countersign_json::sign(&mut unsigned, &key).unwrap();
                        Reply::Signed(Box::new(unsigned))
                    }
                }
            }
            other => panic!("{other:?}"),
        });
        let raised = raised.unwrap();
        // Nobody is told that another payment may be on its way: at most one of the two is mined.
        assert!(owner.host.take_events().is_empty());
        if answer != "signed" {
            assert_eq!(raised, None, "{answer}: what was sent remains the payment");
            // The signer may have sent a payment of its own, so it is not asked for one again.
            let again = run(&owner.host, owner.raise(&order, &sent), |need| panic!("{need:?}"));
            assert_eq!(again.unwrap(), None, "{answer}");
            continue;
        }
        let [raised] = raised.unwrap().try_into().unwrap();
        assert_eq!(raised.spends, sent.spends);
        let second: Transaction = deserialize_hex(&raised.payload).unwrap();
        assert_eq!(second.output.first(), first.output.first(), "the same deposit");
        ledger.clone().offer(&second).unwrap();
        assert_ne!(serialize_hex(&second), sent.payload);
    }
}
