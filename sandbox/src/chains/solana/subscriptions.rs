//! The subscriptions that clients use to confirm a payment. Text frames of a WebSocket go in and out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::bank::Commitment;
use crate::chains::engine::Engine;
use crate::chains::rpc::{self, Fault};
use crate::http::Request;

/// The maximum number of open subscriptions on one connection.
const MAX_OPEN: usize = 128;

/// Returns the notification for a transaction that has reached a commitment (`processed`, `confirmed` or
/// `finalized`): the slot, and the error if it failed. Returns `None` until then.
pub fn signature_result(engine: &mut dyn Engine, signature: &str, commitment: &str) -> Option<Value> {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "getSignatureStatuses", "params": [[signature]]});
    let reply = engine.answer(&Request::new("POST", "/", "", call.to_string()));
    let reply: Value = serde_json::from_slice(&reply.body).ok()?;
    let status = reply.pointer("/result/value/0")?;
    let reached = status.get("confirmationStatus").and_then(Value::as_str).and_then(Commitment::named)?;
    let has_reached = Commitment::named(commitment).is_some_and(|wanted| reached >= wanted);
    has_reached.then(|| json!({"context": reply.pointer("/result/context"), "value": {"err": status.get("err")}}))
}

#[derive(Debug)]
enum Topic {
    Signature { signature: String, commitment: String },
    Slot,
}

/// The subscriptions of one connection: `signatureSubscribe` and `slotSubscribe`.
///
/// The server passes it each incoming text frame, and calls [`poll`](Self::poll) often, for example after each block.
#[derive(Debug, Default)]
pub struct Subscriptions {
    next: u64,
    open: BTreeMap<u64, Topic>,
    /// The newest slot that subscribers were told.
    slot: u64,
}

impl Subscriptions {
    /// Processes a text frame. Returns the reply, or `None` for a notification such as the `ping` of some clients.
    pub fn receive(&mut self, frame: &str) -> Option<String> {
        let call: Value = serde_json::from_str(frame).unwrap_or_default();
        if call.get("method").is_some() && call.get("id").is_none() {
            return None;
        }
        let id = call.get("id").filter(|id| id.is_string() || id.is_u64()).unwrap_or(&Value::Null);
        let params = call.get("params").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Some(rpc::reply(id, self.call(call.get("method").and_then(Value::as_str), params)).to_string())
    }

    fn call(&mut self, method: Option<&str>, params: &[Value]) -> Result<Value, Fault> {
        let invalid = || Fault::params("Invalid params");
        let number = || params.first().and_then(Value::as_u64).ok_or_else(invalid);
        match method {
            None => Err(Fault::request("Invalid request")),
            Some("signatureSubscribe") => {
                let signature = params.first().and_then(Value::as_str).filter(|text| text.len() <= 88);
                let signature = signature.filter(|text| bs58::decode(text).into_vec().is_ok_and(|bytes| bytes.len() == 64));
                let commitment = params.get(1).and_then(|config| config.get("commitment")).map_or(Some("finalized"), Value::as_str);
                let commitment = commitment.filter(|name| Commitment::named(name).is_some());
                let (signature, commitment) = signature.zip(commitment).ok_or_else(invalid)?;
                self.subscribe(Topic::Signature { signature: signature.to_owned(), commitment: commitment.to_owned() })
            }
            Some("slotSubscribe") => self.subscribe(Topic::Slot),
            Some("signatureUnsubscribe" | "slotUnsubscribe") => match self.open.remove(&number()?) {
                Some(_) => Ok(json!(true)),
                None => Err(Fault::params("Invalid subscription id.")),
            },
            Some(_) => Err(Fault::no_method("Method not found")),
        }
    }

    fn subscribe(&mut self, topic: Topic) -> Result<Value, Fault> {
        if self.open.len() >= MAX_OPEN {
            return Err(Fault::new(-32_603, "Internal error: Subscription refused. Node subscription limit reached"));
        }
        let id = self.next;
        self.next = id.saturating_add(1);
        self.open.insert(id, topic);
        Ok(json!(id))
    }

    /// Returns the frames that are due. A subscription to a signature ends with its notification.
    pub fn poll(&mut self, engine: &mut dyn Engine) -> Vec<String> {
        let slot = engine.height();
        let (mut frames, mut done) = (Vec::new(), Vec::new());
        for (id, topic) in &self.open {
            let due = match topic {
                Topic::Signature { signature, commitment } => {
                    signature_result(engine, signature, commitment).map(|result| ("signatureNotification", result))
                }
                Topic::Slot => (slot > self.slot).then(|| {
                    let root = slot.saturating_sub(Commitment::Finalized.lag());
                    ("slotNotification", json!({"parent": slot.saturating_sub(1), "root": root, "slot": slot}))
                }),
            };
            if let Some((method, result)) = due {
                frames.push(json!({"jsonrpc": "2.0", "method": method, "params": {"result": result, "subscription": id}}).to_string());
                if method == "signatureNotification" {
                    done.push(*id);
                }
            }
        }
        self.slot = slot;
        done.iter().for_each(|id| {
            self.open.remove(id);
        });
        frames
    }
}
