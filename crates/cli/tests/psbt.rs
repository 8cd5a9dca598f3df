//! PSBTs as files: what `prepare` and `recover` write for a signer, and what `attach` reads of what the signer wrote.

use std::fs;

use countersign::bitcoin::bitcoin::Psbt;
use countersign::bitcoin::bitcoin::consensus::encode::{deserialize_hex, serialize};
use countersign::bitcoin::bitcoin::key::Secp256k1;
use countersign::bitcoin::bitcoin::secp256k1::SecretKey;
use countersign::bitcoin::bitcoin::{Amount, Transaction, hex::FromHex as _};
use serde_json::{Value, json};

use crate::home::{out, said};
use crate::program::{case, expected, json as answer, registry, run};

struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("countersign-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A case without its key, and the deposit that its signer makes of it.
fn unsigned(id: &str) -> (String, Value) {
    let mut line: Value = serde_json::from_str(&case(id)).unwrap();
    line["wallet"].as_object_mut().unwrap().remove("secret_key");
    (line.to_string(), expected(id)["deposit"].clone())
}

#[test]
fn a_signer_reads_the_file_and_its_own_file_is_read() {
    let folder = Folder::new("psbt-files");
    for id in ["bitcoin-p2tr", "bitcoin-every-kind", "bitcoin-every-kind-litecoin"] {
        let (line, deposit) = unsigned(id);
        let (case, written) = (folder.file("case.json", line), folder.file("prepared.psbt", ""));
        let registry = registry();
        let with =
            |command: &str, more: &[&str]| run(&[&[command, "--registry", &registry, "--case", &case, "--json"], more].concat(), b"");
        let prepared = with("prepare", &["--psbt", &written]);
        assert_eq!(prepared.status.code(), Some(0), "{}", said(&prepared));
        let psbt = Psbt::deserialize(&fs::read(&written).unwrap()).unwrap();
        assert_eq!(psbt.to_string(), deposit["psbt"]);
        assert_eq!(answer(&prepared)["psbt"]["file"], json!(written));

        let signed: Psbt = deposit["signed_psbt"].as_str().unwrap().parse().unwrap();
        let transaction: Transaction = deserialize_hex(deposit["signed"].as_str().unwrap()).unwrap();
        let files = [
            folder.file("signed.psbt", signed.serialize()),
            folder.file("signed.txt", format!("{signed}\n")),
            folder.file("final.txn", serialize(&transaction)),
            folder.file("final.hex", deposit["signed"].as_str().unwrap().to_uppercase()),
            folder.file("signatures.json", json!({ "psbt": signed.to_string() }).to_string()),
        ];
        for file in files {
            let attached = with("attach", &["--signatures", &file]);
            assert_eq!(answer(&attached)["artefacts"]["deposit"], deposit, "{id}: {file}");
        }
        let attached = with("attach", &["--signature", &format!("psbt={}", deposit["signed"].as_str().unwrap())]);
        assert_eq!(answer(&attached)["artefacts"]["deposit"], deposit, "{id}");

        // A file for another payment, a truncated one, and an empty one.
        let mut other = transaction.clone();
        other.output[0].value = other.output[0].value.checked_sub(Amount::ONE_SAT).unwrap();
        let mut cut = signed.serialize();
        cut.truncate(60);
        for (bytes, code) in
            [(serialize(&other), "psbt_mismatch"), (cut, "transaction_mismatch"), (b"nothing".to_vec(), "transaction_mismatch")]
        {
            let refused = with("attach", &["--signatures", &folder.file("other", bytes)]);
            assert_eq!(refused.status.code(), Some(1));
            let error = &answer(&refused)["error"];
            assert_eq!((error["code"].as_str(), error["at"].as_str()), (Some(code), Some("/signatures")), "{id}");
        }
    }
}

#[test]
fn what_a_psbt_lacks_is_said() {
    let folder = Folder::new("psbt-lacks");
    let registry = registry();
    let lacks = |case: &str| {
        let prepared = run(&["prepare", "--registry", &registry, "--case", case, "--json"], b"");
        let psbt = answer(&prepared)["psbt"].clone();
        let text = out(&run(&["prepare", "--registry", &registry, "--case", case], b""));
        let lacks: Vec<String> = serde_json::from_value(psbt["lacks"].clone()).unwrap();
        assert!(lacks.iter().all(|lack| text.contains(lack.as_str())), "{text}");
        assert!(psbt.get("file").is_none());
        lacks
    };
    let (line, _) = unsigned("bitcoin-every-kind");
    let found = lacks(&folder.file("case.json", &line));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("input 0, 1, 2, 3, 4 (`origins`)") && found[0].contains("Coldcard"), "{found:?}");
    assert!(found[1].contains("input 2, 3 (`previous_tx`)") && found[1].contains("Trezor"), "{found:?}");
    assert!(found[2].contains("the change"), "{found:?}");

    // With the origins of the coin and the change, nothing is missing for a taproot coin.
    let (line, _) = unsigned("bitcoin-p2tr");
    let mut line: Value = serde_json::from_str(&line).unwrap();
    let secret = case("bitcoin-p2tr");
    let secret: Value = serde_json::from_str(&secret).unwrap();
    let bytes = <[u8; 32]>::from_hex(secret["wallet"]["secret_key"].as_str().unwrap()).unwrap();
    let key = SecretKey::from_slice(&bytes).unwrap().public_key(&Secp256k1::new());
    line["wallet"]["origins"] = json!([format!("[d34db33f/86'/1'/0'/0/0]{key}")]);
    let found = lacks(&folder.file("case.json", line.to_string()));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("the change"), "{found:?}");

    // Other families have no PSBT, and a deposit that another wallet pays neither.
    for id in ["evm-token-approval-exact", "bitcoin-address"] {
        let case = folder.file("case.json", case(id));
        let refused = run(&["prepare", "--registry", &registry, "--case", &case, "--psbt", &folder.file("x.psbt", "")], b"");
        assert_eq!(refused.status.code(), Some(2), "{id}");
        assert!(said(&refused).contains("--psbt is for Bitcoin and Litecoin"), "{id}: {}", said(&refused));
    }
}
