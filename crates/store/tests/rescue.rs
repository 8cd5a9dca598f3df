//! The rescue phrase, compared with vectors computed by bip_utils (`vectors/rescue.py`).

use countersign_store::rescue::{Phrase, Rescue};
use serde_json::{Value, json};

#[test]
fn derives_what_bip_utils_derives() {
    let file: Value = serde_json::from_str(include_str!("vectors/rescue.json")).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 40);
    for vector in vectors {
        let phrase = Phrase::parse(vector["phrase"].as_str().unwrap()).unwrap();
        let index = u32::try_from(vector["index"].as_u64().unwrap()).unwrap();
        let branch_number = u16::try_from(vector["branch"].as_u64().unwrap()).unwrap();
        let rescue = Rescue::new(&phrase).unwrap();
        let branch = rescue.branch(branch_number).unwrap();
        let (refund, redeem) = (branch.refund_key(index).unwrap(), branch.redeem_key(index).unwrap());
        let derived = json!({
            "phrase": vector["phrase"],
            "branch": branch_number,
            "index": index,
            "secret": hex::encode(*branch.secret(index).unwrap()),
            "secret_hash": hex::encode(branch.secret_hash(index).unwrap()),
            "refund_key": { "public_key": refund.public_key(), "secret_key": hex::encode(refund.expose()) },
            "redeem_key": { "public_key": redeem.public_key(), "secret_key": hex::encode(redeem.expose()) },
        });
        assert_eq!(derived, *vector);
    }
}
