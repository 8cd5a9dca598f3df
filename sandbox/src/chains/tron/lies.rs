//! The lies about Tron.

use serde_json::{Value, json};

use super::wire::Signed;
use crate::chains::evm::lies::{APPROVAL, CALL, STRANGER, word};
use crate::http::{Reply, Request};
use crate::lies::answers::{PAYMENT, lie, put};
use crate::lies::components::{Change, NOTHING, Pace, TOO_LITTLE, TOO_MUCH, lie as component, of, paced};
use crate::lies::endpoints::Interface;
use crate::lies::{Lie, Route, Variant};

const TRON: Route = ["tron:usdt", "base:usdc"];
const FROM_TRON: Route = ["tron:trx", "base:usdc"];
const TO_TRON: Route = ["base:usdc", "tron:trx"];
const BETWEEN_COINS: Route = ["base:eth", "tron:trx"];

const ENERGY_PRICE: &str = "/chainParameter/key=getEnergyFee/value";
const BANDWIDTH_PRICE: &str = "/chainParameter/key=getTransactionFee/value";

pub(super) const VARIANTS: &[Variant] = &[
    Variant::new("solver-never-pays", TRON),
    Variant::new("solver-one-block", TO_TRON),
    Variant::new("receiver-contract", BETWEEN_COINS),
    Variant::new("endpoint-fails", TRON),
    Variant::new("endpoint-stale", TRON),
    Variant::new("endpoint-swallows", BETWEEN_COINS),
];

pub(super) const LIES: &[(u8, &[Lie])] = &[(0, ANSWERS), (1, COMPONENTS)];

#[rustfmt::skip]
const ANSWERS: &[Lie] = &[
    lie("tron-contract", "the call goes to a stranger's contract", PAYMENT, TRON, |answer| put(answer, "/initiate_transaction/to", "TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH")),
    lie("tron-timelock", "the call locks for thousands of years", "the refund", TRON, |answer| word(answer, CALL, 1, "ffffffffff")),
    lie("tron-hash", "the call has the hash of the solver's own secret", PAYMENT, TRON, |answer| word(answer, CALL, 3, &"5a".repeat(32))),
    lie("tron-value", "the call sends coins along", "the coins", TRON, |answer| put(answer, "/initiate_transaction/value", "1000000")),
    lie("tron-message", "the gasless message names another redeemer than the call", PAYMENT, TRON, |answer| put(answer, "/typed_data/message/redeemer", STRANGER)),
    lie("tron-redeemer", "the call names a stranger as the redeemer", PAYMENT, TRON, |answer| word(answer, CALL, 0, STRANGER)),
    lie("tron-amount", "the call locks a thousand times the amount", "the user's balance", TRON, |answer| word(answer, CALL, 2, "ba43b7400")),
    lie("tron-spender", "the approval is for a stranger", "the user's tokens, up to the approval", TRON, |answer| word(answer, APPROVAL, 0, STRANGER)),
    lie("tron-fee", "the call may burn a million coins", "the user's coins", TRON, |answer| put(answer, "/initiate_transaction/gas_limit", "1000000000000")),
];

#[rustfmt::skip]
const COMPONENTS: &[Lie] = &[
    component("endpoint-tron-energy-high", "one endpoint of three shows a price of energy a thousand times as high", TOO_MUCH, TO_TRON, &[of("/wallet/getchainparameters", ENERGY_PRICE, Change::Times(1_000))]),
    component("endpoint-tron-energy-high-source", "one endpoint of three shows a price of energy a thousand times as high", TOO_MUCH, FROM_TRON, &[of("/wallet/getchainparameters", ENERGY_PRICE, Change::Times(1_000))]),
    component("endpoint-tron-energy-low", "one endpoint of three shows a price of energy of 1 sun", TOO_LITTLE, TO_TRON, &[of("/wallet/getchainparameters", ENERGY_PRICE, Change::Is(1))]),
    component("endpoint-tron-bandwidth-high", "one endpoint of three shows a price of bandwidth a million times as high", TOO_MUCH, TO_TRON, &[of("/wallet/getchainparameters", BANDWIDTH_PRICE, Change::Times(1_000_000))]),
    component("endpoint-tron-estimate-high", "one endpoint of three finds that a call uses a thousand times the energy", NOTHING, FROM_TRON, &[of("/wallet/triggerconstantcontract", "/energy_used", Change::Times(1_000))]),
    component("endpoint-tron-estimate-low", "one endpoint of three finds that a call uses 1 unit of energy", NOTHING, FROM_TRON, &[of("/wallet/triggerconstantcontract", "/energy_used", Change::Is(1))]),
    component("endpoint-tron-reference", "one endpoint of three shows another block to refer to", TOO_LITTLE, TO_TRON, &[
        of("/walletsolidity/getblockbynum", "/blockID", Change::Other), of("/walletsolidity/getnowblock", "/blockID", Change::Other),
    ]),
    component("endpoint-tron-reference-source", "one endpoint of three shows another block to refer to", NOTHING, FROM_TRON, &[
        of("/walletsolidity/getblockbynum", "/blockID", Change::Other), of("/walletsolidity/getnowblock", "/blockID", Change::Other),
    ]),
    component("endpoint-tron-reference-old", "one endpoint of three shows an irreversible height that is far back", TOO_LITTLE, TO_TRON, &[of("/walletsolidity/getnowblock", "/block_header/raw_data/number", Change::Less(70_000))]),
    paced("endpoint-pace-at-once-tron", "one endpoint of three shows all blocks at the same time", TO_TRON, Pace::AtOnce),
    paced("endpoint-pace-slower-tron", "one endpoint of three shows blocks ten times as slow", TO_TRON, Pace::Slower),
];

/// The HTTP interface of Tron's nodes.
pub(super) struct Http;

impl Interface for Http {
    fn submits(&self, request: &Request) -> bool {
        ["/broadcasthex", "/broadcasttransaction"].iter().any(|path| request.path.ends_with(path))
    }

    fn accepted(&self, request: &Request) -> Option<Reply> {
        let call: Value = serde_json::from_slice(&request.body).ok().filter(|_| request.path.ends_with("/broadcasthex"))?;
        let id = hex::encode(Signed::read(&hex::decode(call.get("transaction")?.as_str()?).ok()?).ok()?.id);
        let transaction = call.get("transaction");
        Some(Reply::json(200, &json!({ "result": true, "code": "SUCCESS", "message": "", "txid": id, "transaction": transaction })))
    }
}
