//! What one dishonest endpoint of a chain does. The other two are honest.

use std::collections::BTreeMap;

use super::{Act, Liar, Lie};
use crate::http::{Reply, Request};

/// How an endpoint lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointLie {
    /// Repeats for ever what it has answered first.
    Stale,
    /// Accepts transactions and does not relay them.
    Swallows,
    /// Fails at everything.
    Fails,
}

/// Whether a call submits a transaction, in any family's interface.
fn submits(request: &Request) -> bool {
    let body = String::from_utf8_lossy(&request.body);
    let methods = ["eth_sendRawTransaction", "\"sendTransaction\"", "starknet_addInvokeTransaction"];
    request.path.ends_with("/broadcasthex")
        || request.path.ends_with("/broadcasttransaction")
        || request.path.ends_with("/ExecuteTransaction")
        || (request.method == "POST" && request.path == "/tx")
        || methods.iter().any(|method| body.contains(method))
}

impl EndpointLie {
    pub(super) fn tell(
        self,
        chain: &str,
        request: &Request,
        remembered: &mut BTreeMap<String, Reply>,
        answer: impl FnOnce(&Request) -> Reply,
    ) -> Reply {
        match self {
            Self::Stale if !submits(request) => {
                let key = format!("{chain} {} {} {}", request.path, request.query, without_id(&request.body));
                remembered.entry(key).or_insert_with(|| answer(request)).clone()
            }
            Self::Swallows if submits(request) => Reply::text(503, "accepted, said the endpoint, and did nothing"),
            Self::Fails => Reply::text(500, "internal error"),
            Self::Stale | Self::Swallows => answer(request),
        }
    }
}

/// A JSON-RPC body without what differs from call to call.
fn without_id(body: &[u8]) -> String {
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(body) else { return hex::encode(body) };
    if let Some(members) = value.as_object_mut() {
        members.remove("id");
    }
    value.to_string()
}

const ROUTE: [&str; 2] = ["base:usdc", "litecoin:ltc"];

pub(super) const LIES: &[Lie] = &[Lie {
    name: "endpoint-fails",
    liar: Liar::Endpoint,
    about: "one endpoint of three fails at everything",
    at_stake: "nothing, if the other two are enough",
    route: ROUTE,
    act: Act::Endpoint(EndpointLie::Fails),
}];
