//! Parses arbitrary bytes as a document that is stored or exchanged: a receipt, a journal line, a rescue phrase, or a
//! response of the service. The first byte chooses the kind.
#![no_main]

use countersign::{OrderRecord, Policy, Registry};
use countersign_client::driver::Entry;
use countersign_client::{Response, response};
use countersign_fuzz::REGISTRY;
use countersign_store::rescue::Phrase;
use countersign_view::receipt::Receipt;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [kind, document @ ..] = input else { return };
    match kind % 5 {
        0 => {
            if let Ok(receipt) = Receipt::from_json(document) {
                let _ = receipt.check(&REGISTRY, None);
                assert!(Receipt::from_json(&receipt.to_json()).is_ok(), "what is written cannot be read");
            }
        }
        1 => {
            if let Ok(entry) = serde_json::from_slice::<Entry>(document) {
                let written = serde_json::to_vec(&entry).expect("an entry is JSON");
                assert_eq!(serde_json::from_slice::<Entry>(&written).ok(), Some(entry));
            }
        }
        2 => {
            let text = String::from_utf8_lossy(document);
            if let Ok(phrase) = Phrase::parse(&text) {
                assert!(Phrase::parse(&phrase.words()).is_ok());
            }
        }
        3 => {
            let _ = response::read::<Vec<OrderRecord>>(Response::new(200, document));
            let _ = response::read::<OrderRecord>(Response::new(if document.len() % 2 == 0 { 200 } else { 400 }, document));
        }
        _ => {
            let third = document.len() / 3;
            let _ = Registry::from_service(&document[..third], &document[third..2 * third], &document[2 * third..]);
            let _ = Policy::from_json(document);
        }
    }
});
