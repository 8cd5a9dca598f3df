//! The Tron result, field for field (protocol.md section 5). Strings stay strings until a rule reads them.

use countersign_core::Refusal;
use countersign_core::json::{Members, Node};

/// The members that carry this family's payloads. The older key `transaction` was never Tron's.
pub(crate) const KEYS: [&str; 3] = ["approval_transaction", "initiate_transaction", "typed_data"];

/// The members of a transaction object; nothing else may stand in one.
const TRANSACTION_KEYS: [&str; 5] = ["chain_id", "data", "gas_limit", "to", "value"];

/// The payloads of a result.
pub(crate) struct Response<'p, 'v> {
    pub(crate) approval: Option<Node<'p, 'v>>,
    pub(crate) initiate: Node<'p, 'v>,
    pub(crate) typed_data: Option<Node<'p, 'v>>,
}

impl<'p, 'v> Response<'p, 'v> {
    pub(crate) fn read(result: &Members<'p, 'v>) -> Result<Self, Refusal> {
        Ok(Self {
            approval: result.get("approval_transaction"),
            initiate: result.need("initiate_transaction")?,
            typed_data: result.get("typed_data"),
        })
    }
}

/// The members of a transaction object.
pub(crate) fn transaction<'s, 'v>(node: &'s Node<'_, 'v>) -> Result<Members<'s, 'v>, Refusal> {
    let members = node.object()?;
    members.only(&TRANSACTION_KEYS)?;
    Ok(members)
}
