//! `countersign match`: what a wallet sent, in every form, of all six families, from files and stdin. By its id: `matches_by_id.rs`.
//!
//! The transactions are those of the fixtures, which official SDKs have signed.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use countersign::bitcoin::bitcoin::absolute::LockTime;
use countersign::bitcoin::bitcoin::{Amount, Psbt, Sequence};
use serde_json::{Value, json};

use crate::home::{Home, NOWHERE, machine, out, said};
use crate::matches_by_id::evm_json;
use crate::support::{Reply, Server};

/// An order of each family, and another one, whose transaction is not the first one's.
pub(crate) const ORDERS: [(&str, &str, &str); 6] = [
    ("evm", "evm-native-record-v2", "evm-native-bnb"),
    ("tron", "tron-token-approval-exact", "tron-native-large"),
    ("starknet", "starknet-strk", "starknet-amount-one"),
    ("solana", "solana-native-legacy", "solana-native-amount-one"),
    ("sui", "sui-native", "sui-amount-one"),
    ("bitcoin", "bitcoin-p2tr", "bitcoin-p2wpkh"),
];

/// A line of the fixtures.
pub(crate) struct Line {
    pub(crate) family: &'static str,
    text: String,
    pub(crate) value: Value,
}

impl Line {
    pub(crate) fn load(family: &'static str, id: &str) -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/accept");
        let lines = fs::read_to_string(fixtures.join(family).with_extension("jsonl")).unwrap();
        let line = lines.lines().find(|line| line.starts_with(&format!("{{\"id\":\"{id}\""))).unwrap();
        let text = format!("{}}}", line.split_once(",\"note\":").unwrap().0);
        Self { family, text, value: serde_json::from_str(line).unwrap() }
    }

    fn artefact(&self, path: &str) -> &str {
        self.value["expect"]["artefacts"].pointer(path).and_then(Value::as_str).unwrap_or_else(|| panic!("{path}: {}", self.text))
    }

    /// The bytes of the transaction that pays, and its id.
    pub(crate) fn paying(&self) -> (Vec<u8>, String) {
        match self.family {
            "evm" => (hex::decode(&self.artefact("/initiate/signed")[2..]).unwrap(), self.artefact("/initiate/tx_hash").to_owned()),
            "tron" => (tron_bytes(self.artefact("/initiate/raw_data"), self.artefact("/initiate/signature")), self.id("/initiate/tx_id")),
            "solana" => (STANDARD.decode(self.artefact("/transaction/signed")).unwrap(), self.id("/transaction/signature")),
            "sui" => {
                let (transaction, signature) = self.sui();
                let signature = [&[1, u8::try_from(signature.len()).unwrap()][..], &signature].concat();
                ([&[1, 0, 0, 0][..], &transaction, &signature].concat(), self.id("/transaction/tx_digest"))
            }
            "bitcoin" => (hex::decode(self.artefact("/deposit/signed")).unwrap(), self.id("/deposit/tx_id")),
            _ => (self.invoke().to_string().into_bytes(), self.id("/invoke/tx_hash")),
        }
    }

    fn id(&self, path: &str) -> String {
        self.artefact(path).to_owned()
    }

    pub(crate) fn sui(&self) -> (Vec<u8>, Vec<u8>) {
        let decoded = |path| STANDARD.decode(self.artefact(path)).unwrap();
        (decoded("/transaction/transaction_data"), decoded("/transaction/signature"))
    }

    /// A transaction of Starknet as nodes return it.
    pub(crate) fn invoke(&self) -> Value {
        let (wallet, invoke) = (&self.value["wallet"], &self.value["expect"]["artefacts"]["invoke"]);
        json!({
            "type": "INVOKE", "version": "0x3", "sender_address": self.value["request"]["source"]["owner"],
            "calldata": invoke["calldata"], "signature": invoke["signature"], "nonce": wallet["nonce"], "tip": wallet["tip"],
            "resource_bounds": wallet["resource_bounds"], "paymaster_data": [], "account_deployment_data": [],
            "nonce_data_availability_mode": "L1", "fee_data_availability_mode": "L1", "transaction_hash": invoke["tx_hash"],
        })
    }

    /// A transaction of Tron as wallets and nodes return it.
    pub(crate) fn tron(&self) -> Value {
        json!({
            "txID": self.artefact("/initiate/tx_id"), "raw_data_hex": self.artefact("/initiate/raw_data"),
            "signature": [self.artefact("/initiate/signature")],
        })
    }

    /// All forms of the transaction that pays.
    fn forms(&self) -> Vec<Vec<u8>> {
        let (bytes, _) = self.paying();
        let (encoded, digits) = (STANDARD.encode(&bytes), hex::encode(&bytes));
        let answer = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string().into_bytes();
        let text = |value: Value| value.to_string().into_bytes();
        let own = match self.family {
            "evm" => vec![answer(json!(format!("0x{digits}"))), text(json!({"raw": format!("0x{digits}"), "tx": {}}))],
            "tron" => vec![text(self.tron()), text(json!({"result": true, "txid": "", "transaction": self.tron()}))],
            "starknet" => return vec![text(self.invoke()), answer(self.invoke())],
            "solana" => {
                let in_base58 = bs58::encode(&bytes).into_string();
                vec![
                    answer(json!({"slot": 1, "transaction": [encoded, "base64"], "meta": null, "version": "legacy"})),
                    answer(json!({"slot": 1, "transaction": [in_base58, "base58"], "meta": null})),
                    in_base58.into_bytes(),
                ]
            }
            "sui" => {
                let (transaction, signature) = self.sui();
                let (transaction, signature) = (STANDARD.encode(transaction), STANDARD.encode(signature));
                vec![
                    text(json!({"tx_bytes": transaction, "signatures": [signature]})),
                    text(json!({"bytes": transaction, "signature": signature})),
                    answer(json!({"digest": "", "rawTransaction": encoded})),
                ]
            }
            _ => {
                let psbt = self.artefact("/deposit/signed_psbt");
                let wrapped: Vec<_> = psbt.as_bytes().chunks(64).map(|line| [line, b"\r\n"].concat()).collect();
                let binary = STANDARD.decode(psbt).unwrap();
                vec![
                    answer(json!({"hex": digits, "txid": self.artefact("/deposit/tx_id")})),
                    text(json!({"psbt": psbt, "complete": true})),
                    wrapped.concat(),
                    hex::encode(&binary).into_bytes(),
                    binary,
                ]
            }
        };
        let bytes_in_text = [
            digits.clone(),
            format!("0x{digits}\n"),
            digits.to_uppercase(),
            json!(digits).to_string(),
            format!(" {encoded}\r\n"),
            STANDARD_NO_PAD.encode(&bytes),
        ];
        own.into_iter().chain(bytes_in_text.map(String::into_bytes)).chain([bytes]).collect()
    }
}

/// The protobuf message of a signed transaction: fields 1 and 2.
fn tron_bytes(raw_data: &str, signature: &str) -> Vec<u8> {
    let (raw_data, signature) = (hex::decode(raw_data).unwrap(), hex::decode(signature).unwrap());
    [field(1, &raw_data), field(2, &signature)].concat()
}

/// A field of a protobuf message, of at most 16 kB.
pub(crate) fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let length = match length {
        0..128 => vec![length],
        _ => vec![length % 128 + 128, length / 128],
    };
    let length = length.into_iter().map(|byte| u8::try_from(byte).unwrap()).collect();
    [vec![number << 3 | 2], length, content.to_vec()].concat()
}

pub(crate) struct World {
    pub(crate) home: Home,
    registry: String,
}

impl World {
    pub(crate) fn new(name: &str) -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        let home = Home::new(&format!("match-{name}"));
        let registry = home.file("registry.json", &fs::read_to_string(fixtures.join("registry.json")).unwrap());
        Self { home, registry }
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.home.path.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Compares a file with an order.
    pub(crate) fn of(&self, line: &Line, sent: &[u8]) -> (i32, Value) {
        let sent = self.file("sent", sent);
        self.run(line, &[&sent])
    }

    pub(crate) fn run(&self, line: &Line, arguments: &[&str]) -> (i32, Value) {
        let case = self.file("case.json", line.text.as_bytes());
        let output = self.home.run(NOWHERE, &[&["match", "--registry", &self.registry, "--case", &case, "--json"], arguments].concat());
        (output.status.code().unwrap(), machine(&output).unwrap().0)
    }
}

#[test]
fn a_transaction_of_the_order_is_proven_in_every_form() {
    let world = World::new("forms");
    for (family, id, _) in ORDERS {
        let line = Line::load(family, id);
        for form in line.forms() {
            let (code, shown) = world.of(&line, &form);
            let text = String::from_utf8_lossy(&form);
            assert_eq!((code, &shown["role"], &shown["id"]), (0, &json!("initiate"), &json!(id)), "{text}: {shown}");
            assert_eq!((&shown["family"], &shown["order_id"]), (&json!(family), &line.value["expect"]["order_id"]));
            let is_psbt = shown["form"] == "psbt";
            assert!(is_psbt && family == "bitcoin" || shown["form"] == "transaction", "{shown}");
            assert!(!shown["not_proven"].as_str().unwrap().is_empty());
            assert_eq!(shown["changed"], json!([]), "{shown}");
        }
    }
}

#[test]
fn an_approval_is_named_and_people_read_what_it_does() {
    let world = World::new("approval");
    for (family, id) in [("evm", "evm-token-approval-exact"), ("tron", "tron-token-approval-exact")] {
        let line = Line::load(family, id);
        let bytes = match family {
            "evm" => line.artefact("/approval/signed").to_owned(),
            _ => hex::encode(tron_bytes(line.artefact("/approval/raw_data"), line.artefact("/approval/signature"))),
        };
        let (case, sent) = (world.file("case.json", line.text.as_bytes()), world.file("sent", bytes.as_bytes()));
        let output = world.home.run(NOWHERE, &["match", "--registry", &world.registry, "--case", &case, &sent]);
        assert!(
            output.status.success() && out(&output).contains("approval: approves the token amount, and pays nothing yet"),
            "{}",
            said(&output)
        );
        assert!(out(&output).contains("that it is in a block and succeeded"), "{}", said(&output));
        // The same from stdin.
        let output = world.home.run_with(NOWHERE, &["match", "--registry", &world.registry, "--case", &case, "-"], &[], &bytes);
        assert!(output.status.success(), "{}", said(&output));
    }
}

/// The documents of an order that was created here are in the state directory.
#[test]
fn a_stored_order_needs_no_files() {
    let world = World::new("stored");
    for (family, id, other) in ORDERS {
        let line = Line::load(family, id);
        let order_id = line.value["expect"]["order_id"].as_str().unwrap();
        world.home.keep(order_id, &line.value["request"], &line.value["response"], None);
        let run = |line: &Line, more: &[&str]| {
            let sent = world.file("sent", &line.forms()[0]);
            let arguments = [&["match", "--registry", &world.registry, "--json", "--stored", order_id, &sent], more].concat();
            let output = world.home.run(NOWHERE, &arguments);
            (output.status.code().unwrap(), machine(&output).unwrap().0)
        };
        let (code, shown) = run(&line, &[]);
        assert_eq!((code, &shown["role"], &shown["order_id"]), (0, &json!("initiate"), &json!(order_id)), "{shown}");
        let (code, shown) = run(&Line::load(family, other), &[]);
        assert_eq!((code, &shown["error"]["code"]), (1, &json!("transaction_mismatch")), "{shown}");
        assert_eq!(run(&line, &["--case", "case.json"]).0, 2, "one of both");
    }
    let unknown = ["match", "--registry", &world.registry, "--stored", &"ab".repeat(32), "sent"];
    let output = world.home.run(NOWHERE, &unknown);
    assert!(output.status.code() == Some(2) && said(&output).contains("not in the state directory"), "{}", said(&output));
}

/// A PSBT that has what it spends shows its fee before anybody signs it.
#[test]
fn the_fee_of_a_psbt_is_shown_or_said_to_be_open() {
    let world = World::new("fee");
    let line = Line::load("bitcoin", "bitcoin-p2wpkh");
    let good: Psbt = line.artefact("/deposit/psbt").parse().unwrap();
    let of = |change: &dyn Fn(&mut Psbt)| {
        let mut psbt = good.clone();
        change(&mut psbt);
        world.of(&line, &psbt.serialize())
    };
    let spent = good.inputs[0].witness_utxo.as_ref().unwrap().value;
    let paid: Amount = good.unsigned_tx.output.iter().map(|output| output.value).sum();
    let (code, shown) = of(&|_| ());
    assert_eq!((code, &shown["form"], &shown["fee"]), (0, &json!("psbt"), &json!((spent - paid).to_sat().to_string())), "{shown}");
    assert!(!shown["not_proven"].as_str().unwrap().contains("fee"), "{shown}");
    let (code, shown) = of(&|psbt| (psbt.inputs[0].witness_utxo, psbt.inputs[0].non_witness_utxo) = (None, None));
    assert_eq!((code, &shown["fee"]), (0, &Value::Null), "{shown}");
    assert!(shown["not_proven"].as_str().unwrap().contains("its fee"), "{shown}");
    let (code, shown) = of(&|psbt| {
        psbt.unsigned_tx.lock_time = LockTime::from_consensus(900_000);
        psbt.unsigned_tx.input[0].sequence = Sequence::ENABLE_LOCKTIME_NO_RBF;
    });
    assert_eq!((code, &shown["changed"][0]["code"]), (0, &json!("wallet_lock_time")), "{shown}");
    // Without change.
    let (code, shown) = of(&|psbt| {
        let output = psbt.inputs[0].witness_utxo.as_mut().unwrap();
        output.value += Amount::ONE_BTC;
        psbt.inputs[0].non_witness_utxo = None;
    });
    assert_eq!((code, &shown["error"]["code"], &shown["error"]["at"]), (1, &json!("fee_rate_too_high"), &json!("/psbt/fee")), "{shown}");
    assert!(!shown.to_string().contains("do not sign"), "{shown}");
}

/// An approval above the amount belongs to the order, and is reported.
#[test]
fn what_a_wallet_changed_although_it_may_is_shown() {
    let world = World::new("allowed");
    let mut line = Line::load("evm", "evm-token-approval-unlimited");
    let sent = line.artefact("/approval/signed").as_bytes().to_vec();
    // As the service proposed it, the order itself warns about it.
    let (code, shown) = world.of(&line, &sent);
    assert_eq!((code, &shown["role"], &shown["changed"]), (0, &json!("approval"), &json!([])), "{shown}");
    assert!(shown["warnings"].to_string().contains("unlimited_approval"), "{shown}");
    // The same from a wallet that was asked for exactly the amount.
    line.text = line.text.replace(&"f".repeat(64), &format!("{:064x}", 2_500_000_000_u64));
    let (code, shown) = world.of(&line, &sent);
    assert_eq!((code, &shown["role"], &shown["changed"][0]["code"]), (0, &json!("approval"), &json!("unlimited_approval")), "{shown}");
}

/// A refusal names the place, and says neither that nothing may be signed nor that the service is to blame.
#[test]
fn the_transaction_of_another_order_is_refused_at_the_place_where_it_differs() {
    let world = World::new("other");
    for (family, id, other) in ORDERS {
        let (line, other) = (Line::load(family, id), Line::load(family, other));
        for form in other.forms() {
            let (code, shown) = world.of(&line, &form);
            let error = &shown["error"];
            assert_eq!((code, &error["code"], &shown["ok"]), (1, &json!("transaction_mismatch"), &json!(false)), "{family}: {shown}");
            let at = error["at"].as_str().unwrap();
            assert!(at.starts_with("/transaction/") || at.starts_with("/psbt/"), "{family}: {shown}");
            assert!(!shown.to_string().contains("do not sign") && !shown.to_string().contains("report the service"), "{shown}");
        }
    }
}

#[test]
fn a_changed_byte_is_refused() {
    let world = World::new("changed");
    for (family, id, _) in ORDERS {
        let line = Line::load(family, id);
        let (mut bytes, _) = line.paying();
        // Of a Bitcoin transaction only the outputs are compared: the amount.
        let paid = [&50_000_u64.to_le_bytes()[..], &[34, 0x51]].concat();
        let at = bytes.windows(paid.len()).position(|part| part == paid).unwrap_or(bytes.len() / 2);
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        let (code, shown) = world.of(&line, &bytes);
        assert_eq!((code, &shown["ok"]), (1, &json!(false)), "{family}: {shown}");
    }
}

/// Input that is not a transaction at all is an input error, which states what to pass.
#[test]
fn files_of_the_wrong_form_say_what_to_pass() {
    let world = World::new("input");
    let line = Line::load("evm", "evm-native-record-v2");
    let (_, id) = line.paying();
    for (content, words) in [
        (&b""[..], "empty; pass what the wallet returned"),
        (b" \r\n\t", "empty; pass what the wallet returned"),
        (b"\xef\xbb\xbf{}", "byte order mark; save it as UTF-8 without one"),
        (b"\xff\xfe{\0}\0", "byte order mark; save it as UTF-8 without one"),
        (b"[{}]", "a list; pass one transaction"),
        (id.as_bytes(), "pass it with --id"),
        (b"0x02f", "the text is cut, copy it again"),
        (b"hello, world", "neither JSON nor a transaction"),
        (br#"{"jsonrpc":"2.0","id":1,"result":null}"#, "does not know the transaction"),
        (br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"busy"}}"#, "the node answered with an error"),
    ] {
        let (code, shown) = world.of(&line, content);
        let message = shown["error"]["message"].as_str().unwrap();
        assert!(code == 2 && message.contains(words), "{words}: {shown}");
    }
    for arguments in [&[][..], &["missing"], &["sent", "--id", "0x00"]] {
        assert_eq!(world.run(&line, arguments).0, 2, "{arguments:?}");
    }
    // Malformed JSON is refused with its place.
    for (content, at) in
        [(&b"{\"type\": 1,,}"[..], "/transaction#"), (b"{}", "/transaction/"), (b"{\"v\":\"0x0\",\"v\":\"0x0\"}", "/transaction")]
    {
        let (code, shown) = world.of(&line, content);
        assert!(code == 1 && shown["error"]["at"].as_str().unwrap().starts_with(at), "{shown}");
    }
    // A file that wraps nothing in itself, again and again.
    for (family, id, member, refused) in [
        ("evm", "evm-native-record-v2", "raw", "json_too_deep"),
        ("tron", "tron-token-approval-exact", "transaction", "json_too_deep"),
        ("sui", "sui-native", "rawTransaction", "json_too_deep"),
        ("bitcoin", "bitcoin-p2tr", "hex", "hex_digit"),
    ] {
        let deep = format!("{}{{}}{}", format!("{{\"{member}\":").repeat(50_000), "}".repeat(50_000));
        let (code, shown) = world.of(&Line::load(family, id), deep.as_bytes());
        assert_eq!((code, &shown["error"]["code"]), (1, &json!(refused)), "{shown}");
    }
    // A decoded transaction of Solana has lost the bytes that were signed.
    let solana = Line::load("solana", "solana-native-legacy");
    let decoded = json!({"jsonrpc": "2.0", "id": 1, "result": {"transaction": {"message": {}, "signatures": []}}});
    assert!(world.of(&solana, decoded.to_string().as_bytes()).1["error"]["message"].as_str().unwrap().contains("\"encoding\": \"base64\""));
    let signature = solana.paying().1;
    assert!(world.of(&solana, signature.as_bytes()).1["error"]["message"].as_str().unwrap().contains("--id"));
}

/// The payment among calls that a wallet bundled, by the status of the calls and by the receipt.
#[test]
fn bundled_calls_are_proven_by_their_effect() {
    let world = World::new("calls");
    let line = Line::load("evm", "evm-record-evm-v3");
    let (request, order, result) = (&line.value["request"], &line.value["order"], &line.value["response"]["result"]);
    let amount: u128 = request["source"]["amount"].as_str().unwrap().parse().unwrap();
    let hash = format!("0x{}", "77".repeat(32));
    let log = |amount: u128| {
        json!({
            "address": result["initiate_transaction"]["to"],
            "topics": [
                "0x01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65",
                format!("0x{}", order["source_swap"]["swap_id"].as_str().unwrap()),
                format!("0x{}", request["secret_hash"].as_str().unwrap().trim_start_matches("0x")),
                format!("{amount:#066x}"),
            ],
            "data": "0x",
        })
    };
    let receipt = |amount| json!({"transactionHash": hash, "status": "0x1", "logs": [log(amount)], "blockNumber": "0x10"});
    let chain_id = match &result["initiate_transaction"]["chain_id"] {
        Value::Number(id) => format!("{:#x}", id.as_u64().unwrap()),
        id => id.as_str().unwrap().to_owned(),
    };
    // By the id of a bundler's transaction, which is not the order's: the receipt shows what it did. Where the endpoint has none, or it shows
    // another amount, the refusal of the transaction stands.
    let other = Line::load("evm", "evm-native-bnb");
    let sent = evm_json(&other.paying().0);
    let id = sent["hash"].as_str().unwrap().to_owned();
    for (receipt, expected) in [(receipt(amount), 0), (Value::Null, 1), (receipt(amount - 1), 1)] {
        let mut receipt = receipt;
        if receipt.is_object() {
            receipt["transactionHash"] = json!(id);
            receipt["blockHash"] = json!(format!("0x{}", "11".repeat(32)));
        }
        let server = Server::start({
            let (sent, chain_id) = (sent.clone(), chain_id.clone());
            move |seen| {
                let call: Value = serde_json::from_str(&seen.text()).unwrap();
                let result = |call: &Value| {
                    let result = match call["method"].as_str().unwrap() {
                        "eth_chainId" => json!(chain_id),
                        "eth_getTransactionReceipt" => receipt.clone(),
                        _ => sent.clone(),
                    };
                    json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
                };
                let reply = call.as_array().map_or_else(|| result(&call), |calls| calls.iter().map(result).collect());
                Reply::json(200, reply.to_string())
            }
        });
        let chain = request["source"]["asset"].as_str().unwrap().split(':').next().unwrap();
        let nodes = world.home.file("nodes.json", &json!({chain: [server.base]}).to_string());
        let (code, shown) = world.run(&line, &["--id", &id, "--nodes", &nodes]);
        assert_eq!(code, expected, "{shown}");
        let (form, error) = (shown["form"].as_str(), shown["error"]["code"].as_str());
        assert_eq!((form, error), if code == 0 { (Some("receipt"), None) } else { (None, Some("transaction_mismatch")) }, "{shown}");
    }
    let status = |status: u64, receipts: Value| json!({"chainId": chain_id, "id": "0x1", "status": status, "receipts": receipts});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": receipt(amount)});
    for form in [status(200, json!([receipt(amount)])), receipt(amount), answer] {
        let (code, shown) = world.of(&line, form.to_string().as_bytes());
        assert_eq!((code, &shown["form"], &shown["transaction"]), (0, &json!("calls"), &json!(hash)), "{shown}");
        assert!(shown["not_proven"].as_str().unwrap().contains("what else the transaction did, such as another approval"), "{shown}");
    }
    for (form, at) in [
        (status(200, json!([receipt(amount - 1)])), "/calls/receipts/0/logs/0"),
        (receipt(amount + 1), "/calls/receipts/0/logs/0"),
        (status(100, Value::Null), "/calls/status"),
    ] {
        let (code, shown) = world.of(&line, form.to_string().as_bytes());
        assert_eq!((code, &shown["error"]["at"]), (1, &json!(at)), "{shown}");
    }
}

/// `attach` names `match` where the wallet may have changed what it signed.
#[test]
fn attach_names_match() {
    let world = World::new("attach");
    let (line, other) = (Line::load("solana", "solana-native-legacy"), Line::load("solana", "solana-native-blockhash-replaced"));
    let case = world.file("case.json", line.text.as_bytes());
    let attach =
        |signature: &str| world.home.run(NOWHERE, &["attach", "--registry", &world.registry, "--case", &case, "--signature", signature]);
    let output = attach(&format!("transaction={}", other.artefact("/transaction/signature")));
    assert!(output.status.code() == Some(1) && said(&output).contains("`countersign match`"), "{}", said(&output));
    let line = Line::load("evm", "evm-token-approval-exact");
    let case = world.file("case.json", line.text.as_bytes());
    let signature = format!("typed_data={}", Line::load("evm", "evm-second-solver").artefact("/typed_data/signature"));
    let output = world.home.run(NOWHERE, &["attach", "--registry", &world.registry, "--case", &case, "--signature", &signature]);
    assert!(output.status.code() == Some(1) && !said(&output).contains("countersign match"), "{}", said(&output));
}

/// The keys of a permission sign one transaction, so their signatures have one name. Elsewhere one key signs.
#[test]
fn several_keys_sign_under_one_name() {
    let world = World::new("keys");
    let file = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/chain/tron.json")).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let signed = file["orders"].as_array().unwrap().iter().find(|order| order["case"] == "tron-permission-two-keys").unwrap();
    let [first, second] =
        [0, 1].map(|index| format!("initiate={}", signed["transactions"]["initiate"]["signature"][index].as_str().unwrap()));
    let attach = |line: &Line, signatures: &[&str]| {
        let case = world.file("case.json", line.text.as_bytes());
        let mut arguments = vec!["attach", "--registry", &world.registry, "--case", &case, "--json"];
        signatures.iter().for_each(|signature| arguments.extend(["--signature", signature]));
        let output = world.home.run(NOWHERE, &arguments);
        (output.status.code().unwrap(), machine(&output).unwrap().0)
    };
    let line = Line::load("tron", "tron-permission-two-keys");
    let (code, shown) = attach(&line, &[&first, &second]);
    assert_eq!((code, shown["artefacts"]["initiate"]["signatures"].as_array().map(Vec::len)), (0, Some(2)), "{shown}");
    let (code, shown) = attach(&line, &[&first, &second, &first]);
    assert_eq!((code, &shown["error"]["at"]), (1, &json!("/signatures/initiate/2")), "{shown}");
    let (code, shown) = attach(&Line::load("evm", "evm-token-approval-exact"), &[&first, &second]);
    assert!(code == 2 && shown.to_string().contains("two signatures for initiate"), "{shown}");
}

/// A transaction that is already on its way is not signed any more.
#[test]
fn the_policy_does_not_forbid_to_sign_what_was_sent() {
    let world = World::new("policy");
    let line = Line::load("tron", "tron-permission-own-key");
    let policy = world.file("policy.json", br#"{"refused_warnings": ["signature_unverified"]}"#);
    let sent = world.file("sent.json", line.tron().to_string().as_bytes());
    let (code, shown) = world.run(&line, &[&sent]);
    assert_eq!((code, &shown["changed"][0]["code"]), (0, &json!("signature_unverified")), "{shown}");
    let (code, shown) = world.run(&line, &["--policy", &policy, &sent]);
    assert_eq!((code, &shown["error"]["code"]), (1, &json!("warning_refused")), "{shown}");
    assert!(!shown.to_string().contains("do not sign") && shown.to_string().contains("change the policy"), "{shown}");
}
