//! The members that results of EVM, Tron and Starknet share: calls, and typed data with the same terms.

use crate::json::{Cursor, Members};
use crate::report::{Code, Refusal};

/// The members of a result that carry calls and typed data.
#[derive(Debug)]
#[non_exhaustive]
pub struct CallPayloads<'p, 'v> {
    /// The token approval, where there is one.
    pub approval: Option<Cursor<'p, 'v>>,
    /// The call that locks the funds.
    pub initiate: Cursor<'p, 'v>,
    /// Name of the member that holds this call.
    pub initiate_key: &'static str,
    /// The gasless message, where there is one.
    pub typed_data: Option<Cursor<'p, 'v>>,
}

/// The member that holds the call that locks the funds.
const INITIATE: &str = "initiate_transaction";
/// The older name of that member.
const LEGACY: &str = "transaction";

impl<'p, 'v> CallPayloads<'p, 'v> {
    /// The names of the members, for [`ChainFamily::PAYLOAD_KEYS`](crate::family::ChainFamily::PAYLOAD_KEYS).
    pub const KEYS: &'static [&'static str] = &["approval_transaction", INITIATE, "typed_data"];
    /// The same for a family whose older results have the call under another name.
    pub const KEYS_WITH_LEGACY: &'static [&'static str] = &["approval_transaction", INITIATE, LEGACY, "typed_data"];

    /// Finds the members of a result. `keys` are the names that the family accepts: [`Self::KEYS`] or [`Self::KEYS_WITH_LEGACY`].
    ///
    /// # Errors
    ///
    /// [`Code::LegacyKeyBeside`] if the call is there under both names, [`Code::MissingField`] if it is there under none.
    pub fn read(result: &Members<'p, 'v>, keys: &[&str]) -> Result<Self, Refusal> {
        let legacy = result.get(LEGACY).filter(|_| keys.contains(&LEGACY));
        let (initiate_key, initiate) = match (result.get(INITIATE), legacy) {
            (Some(_), Some(legacy)) => return Err(legacy.at().refuse(Code::LegacyKeyBeside)),
            (None, Some(legacy)) => (LEGACY, legacy),
            _ => (INITIATE, result.need(INITIATE)?),
        };
        Ok(Self { approval: result.get("approval_transaction"), initiate, initiate_key, typed_data: result.get("typed_data") })
    }
}

/// Requires that typed data declares a type with exactly these members, in this order.
///
/// # Errors
///
/// [`Code::TypedDataTypes`] if the members differ; [`Code::WrongType`] or [`Code::MissingField`] if the declaration is malformed.
pub fn check_declared_type(cursor: Cursor<'_, '_>, members: &[(&str, &str)]) -> Result<(), Refusal> {
    let declared = cursor.array()?;
    if declared.len() != members.len() {
        let refusal = cursor.at().refuse(Code::TypedDataTypes).with_expected(format!("{} members", members.len()));
        return Err(refusal.with_actual(format!("{} members", declared.len())));
    }
    for (declared, (name, kind)) in declared.zip(members) {
        let member = declared.object()?;
        member.only(&["name", "type"]).map_err(|refusal| refusal.with_code(Code::TypedDataTypes))?;
        for (key, expected) in [("name", *name), ("type", *kind)] {
            let cursor = member.need(key)?;
            if cursor.text()? != expected {
                return Err(cursor.refuse(Code::TypedDataTypes).with_expected(expected));
            }
        }
    }
    Ok(())
}
