//! The lies about Sui.

use prost_types::Timestamp;
use serde_json::{Value, json};
use sui_rpc::proto::sui::rpc::v2::{
    GetCheckpointResponse, GetEpochResponse, GetServiceInfoResponse, GetTransactionResponse, ListOwnedObjectsResponse,
    SimulateTransactionResponse,
};

use super::grpc::with_changed;
use crate::http::{Reply, Request};
use crate::lies::answers::{PAYMENT, alter, lie};
use crate::lies::components::{Change, Component, NOTHING, Pace, TOO_LITTLE, TOO_MUCH, lie as component, of, paced};
use crate::lies::endpoints::Interface;
use crate::lies::{Lie, Route, Variant};

const SUI: Route = ["sui:sui", "base:usdc"];
const TO_SUI: Route = ["base:usdc", "sui:sui"];

const EPOCH: &str = "/sui.rpc.v2.LedgerService/GetEpoch";
const COINS: &str = "/sui.rpc.v2.StateService/ListOwnedObjects";
const SIMULATION: &str = "/sui.rpc.v2.TransactionExecutionService/SimulateTransaction";
const COST: &str = "/transaction/effects/gas_used/computation_cost";

/// Changes one bit of a byte of the transaction.
fn byte(answer: &mut Value, at: usize) {
    alter(answer, &format!("/ptb_bytes/{at}"), |byte| Some(json!(byte.as_u64()? ^ 1)));
}

#[rustfmt::skip]
pub(super) const VARIANTS: &[Variant] = &[
    Variant::new("solver-never-pays", SUI),
    Variant::new("solver-other-hash", TO_SUI),
    Variant::new("endpoint-fails", SUI),
    Variant::new("endpoint-stale", SUI),
    Variant::new("endpoint-swallows", TO_SUI).about("one endpoint of three refuses transactions that are right"),
];

pub(super) const LIES: &[(u8, &[Lie])] = &[(1, INPUTS), (1, COMPONENTS), (2, ANSWERS)];

#[rustfmt::skip]
const INPUTS: &[Lie] = &[
    lie("sui-bytes", "one bit of the transaction's inputs is another", PAYMENT, SUI, |answer| byte(answer, 20)),
];

#[rustfmt::skip]
const ANSWERS: &[Lie] = &[
    lie("sui-trailing", "the transaction has a byte more than it says", "whatever another reader sees in it", SUI, |answer| {
        if let Some(bytes) = answer.pointer_mut("/ptb_bytes").and_then(Value::as_array_mut) {
            bytes.push(0.into());
        }
    }),
    lie("sui-kind", "the transaction is of another kind", "the user's coins", SUI, |answer| byte(answer, 0)),
    lie("sui-command", "one bit of the transaction's last command is another", PAYMENT, SUI, |answer| {
        let last = answer.pointer("/ptb_bytes").and_then(Value::as_array).map_or(0, |bytes| bytes.len().saturating_sub(1));
        byte(answer, last);
    }),
];

#[rustfmt::skip]
const COMPONENTS: &[Lie] = &[
    component("endpoint-sui-price-high", "one endpoint of three shows a reference price a thousand times as high", TOO_MUCH, TO_SUI, &[of(EPOCH, "/epoch/reference_gas_price", Change::Times(1_000))]),
    component("endpoint-sui-price-high-source", "one endpoint of three shows a reference price a thousand times as high", TOO_MUCH, SUI, &[of(EPOCH, "/epoch/reference_gas_price", Change::Times(1_000))]),
    component("endpoint-sui-price-low", "one endpoint of three shows a reference price of 1", TOO_LITTLE, TO_SUI, &[of(EPOCH, "/epoch/reference_gas_price", Change::Is(1))]),
    component("endpoint-sui-coins", "one endpoint of three shows coins at versions that do not exist", TOO_LITTLE, TO_SUI, &[of(COINS, "/objects/version", Change::Plus(1))]),
    component("endpoint-sui-coins-source", "one endpoint of three shows coins at versions that do not exist", NOTHING, SUI, &[of(COINS, "/objects/version", Change::Plus(1))]),
    component("endpoint-sui-coins-empty", "one endpoint of three shows coins that are worth nothing", NOTHING, TO_SUI, &[of(COINS, "/objects/balance", Change::Is(0))]),
    component("endpoint-sui-cost-high", "one endpoint of three finds that a transaction costs a thousand times as much", TOO_MUCH, SUI, &[of(SIMULATION, COST, Change::Times(1_000))]),
    component("endpoint-sui-cost-low", "one endpoint of three finds that a transaction costs nothing", TOO_LITTLE, SUI, &[of(SIMULATION, COST, Change::Is(0))]),
    paced("endpoint-pace-at-once-sui", "one endpoint of three shows all checkpoints at the same time", TO_SUI, Pace::AtOnce),
    paced("endpoint-pace-slower-sui", "one endpoint of three shows checkpoints ten times as slow", TO_SUI, Pace::Slower),
];

/// gRPC-web.
pub(super) struct Grpc;

impl Interface for Grpc {
    fn submits(&self, request: &Request) -> bool {
        request.path.ends_with("/ExecuteTransaction")
    }

    fn with_component(&self, component: Component, request: &Request, reply: Reply, _: &dyn Fn(&Request) -> Reply) -> Reply {
        if !component.is_asked(request) {
            return reply;
        }
        let change = |number: u64| u64::try_from(component.change.of(number.into())).unwrap_or(u64::MAX);
        match component.place {
            "/epoch/reference_gas_price" => with_changed(reply, |answer: &mut GetEpochResponse| {
                let epoch = answer.epoch.iter_mut();
                epoch.for_each(|epoch| epoch.reference_gas_price = epoch.reference_gas_price.map(change));
            }),
            "/objects/version" => with_changed(reply, |answer: &mut ListOwnedObjectsResponse| {
                answer.objects.iter_mut().for_each(|object| object.version = object.version.map(change));
            }),
            "/objects/balance" => with_changed(reply, |answer: &mut ListOwnedObjectsResponse| {
                answer.objects.iter_mut().for_each(|object| object.balance = object.balance.map(change));
            }),
            COST => with_changed(reply, |answer: &mut SimulateTransactionResponse| {
                let effects = answer.transaction.as_mut().and_then(|transaction| transaction.effects.as_mut());
                let gas = effects.and_then(|effects| effects.gas_used.as_mut()).into_iter();
                gas.for_each(|gas| gas.computation_cost = gas.computation_cost.map(change));
            }),
            _ => reply,
        }
    }

    fn with_times(&self, request: &Request, reply: Reply, told: &dyn Fn(u64) -> u64) -> Reply {
        let tell = |time: Timestamp| {
            let seconds = u64::try_from(time.seconds).map(told).ok().and_then(|told| told.try_into().ok());
            Timestamp { seconds: seconds.unwrap_or(time.seconds), ..time }
        };
        match request.path.rsplit('/').next() {
            Some("GetServiceInfo") => with_changed(reply, |answer: &mut GetServiceInfoResponse| {
                answer.timestamp = answer.timestamp.map(tell);
            }),
            Some("GetCheckpoint") => with_changed(reply, |answer: &mut GetCheckpointResponse| {
                let summary = answer.checkpoint.iter_mut().filter_map(|checkpoint| checkpoint.summary.as_mut());
                summary.for_each(|summary| summary.timestamp = summary.timestamp.map(tell));
            }),
            Some("GetTransaction") => with_changed(reply, |answer: &mut GetTransactionResponse| {
                let found = answer.transaction.iter_mut();
                found.for_each(|transaction| transaction.timestamp = transaction.timestamp.map(tell));
            }),
            _ => reply,
        }
    }
}
