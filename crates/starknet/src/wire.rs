//! The Starknet result, field for field (interface.md section 2.5). Strings stay strings until a rule reads them.

use countersign_core::json::{Members, Node};
use countersign_core::{Code, Refusal};

/// The members that carry this family's payloads.
pub(crate) const KEYS: [&str; 4] = ["approval_transaction", "initiate_transaction", "transaction", "typed_data"];

/// The members of a call; nothing else may stand in one.
const CALL_KEYS: [&str; 3] = ["calldata", "selector", "to"];

/// The payloads of a result.
pub(crate) struct Response<'p, 'v> {
    pub(crate) approval: Option<Node<'p, 'v>>,
    pub(crate) initiate: Node<'p, 'v>,
    /// Name of the member that holds the initiate call.
    pub(crate) initiate_key: &'static str,
    pub(crate) typed_data: Option<Node<'p, 'v>>,
}

impl<'p, 'v> Response<'p, 'v> {
    /// The older key `transaction` stands for `initiate_transaction` where it is alone.
    pub(crate) fn read(result: &Members<'p, 'v>) -> Result<Self, Refusal> {
        let (initiate_key, initiate) = match (result.get("initiate_transaction"), result.get("transaction")) {
            (Some(_), Some(older)) => return Err(older.at().refuse(Code::LegacyKeyBeside)),
            (None, Some(older)) => ("transaction", older),
            _ => ("initiate_transaction", result.need("initiate_transaction")?),
        };
        Ok(Self { approval: result.get("approval_transaction"), initiate, initiate_key, typed_data: result.get("typed_data") })
    }
}

/// The members of a call.
pub(crate) fn call<'s, 'v>(node: &'s Node<'_, 'v>) -> Result<Members<'s, 'v>, Refusal> {
    let members = node.object()?;
    members.only(&CALL_KEYS)?;
    Ok(members)
}
