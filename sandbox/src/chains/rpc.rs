//! JSON-RPC: errors, replies and batches, as the nodes of several families have them.

use serde_json::{Value, json};

use crate::http::put;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    code: i64,
    message: String,
    data: Value,
}

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// Returns an error in the parameters of a call.
    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(-32_602, message)
    }

    /// Returns an error for a call that is not one.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(-32_600, message)
    }

    pub(crate) fn no_method(message: impl Into<String>) -> Self {
        Self::new(-32_601, message)
    }

    /// Adds data, unless it is null.
    pub(crate) fn with_data(self, data: Value) -> Self {
        Self { data, ..self }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if !self.data.is_null() {
            put(&mut error, "data", self.data.clone());
        }
        error
    }
}

/// Returns the reply to a call.
pub(crate) fn reply(id: &Value, outcome: Result<Value, Fault>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(fault) => json!({"jsonrpc": "2.0", "id": id, "error": fault.json()}),
    }
}

/// Answers the calls in a body. `batch` refuses a batch of a length that the node does not take. Returns `None` if
/// there are only notifications, for which `one` returns `None`.
pub(crate) fn answer(
    body: &[u8],
    unreadable: &str,
    batch: impl FnOnce(usize) -> Option<Fault>,
    mut one: impl FnMut(&Value) -> Option<Value>,
) -> Option<Value> {
    let failed = |fault| Some(reply(&Value::Null, Err(fault)));
    match serde_json::from_slice::<Value>(body) {
        Err(_) => failed(Fault::new(-32_700, unreadable)),
        Ok(Value::Array(calls)) => match batch(calls.len()) {
            Some(fault) => failed(fault),
            None => Some(calls.iter().filter_map(one).collect::<Vec<_>>()).filter(|replies| !replies.is_empty()).map(Value::Array),
        },
        Ok(call) => one(&call),
    }
}
