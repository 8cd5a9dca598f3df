//! The wire model: what order creation and tracking send and receive (interface.md section 2).
//!
//! Strings stay strings until a rule reads them; unknown members pass, because the interface grows. Whatever is signed is
//! read by the families instead, where nothing unknown passes.

mod market;
mod request;
mod service;
mod swap;

pub use market::{AssetRecord, ChainRecord, ContractRecord, LiquidityRecord, Quote, QuoteSide, Seconds};
pub(crate) use request::least_after_slippage;
pub use request::{AffiliateFee, CreateOrder, Side};
pub use service::{Balance, Earnings, Fees, Page, SchemaRecord, SolverBalances};
pub use swap::{OrderRecord, RecordFee, SwapRecord};

use crate::code::Code;
use crate::json::{Members, Node};
use crate::refusal::Refusal;

/// A type that is read from a JSON value.
pub trait Read: Sized {
    /// Reads the value.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member that does not have its shape.
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal>;
}

impl<T: Read> Read for Vec<T> {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        node.array()?.map(|item| T::read(item)).collect()
    }
}

impl Read for String {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        node.text().map(str::to_owned)
    }
}

/// Opens an envelope: `{"status":"Ok","result":..}` or `{"status":"Error","error":"<text>"}` (protocol.md section 2).
///
/// # Errors
///
/// [`Code::ServiceError`] with the service's text, [`Code::StatusNotOk`], [`Code::ErrorBesideOk`] or
/// [`Code::MissingField`].
pub fn with_result<'v, T>(envelope: Node<'_, 'v>, read: impl FnOnce(Node<'_, 'v>) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let members = envelope.object()?;
    let status = members.need("status")?;
    match status.text()? {
        "Ok" => {}
        "Error" => {
            let refusal = status.at().refuse(Code::ServiceError);
            return Err(match members.get("error").map(|error| error.text()) {
                Some(Ok(text)) => refusal.got(text),
                _ => refusal,
            });
        }
        _ => return Err(status.refuse(Code::StatusNotOk).expected("Ok")),
    }
    if let Some(error) = members.get("error") {
        return Err(error.refuse(Code::ErrorBesideOk));
    }
    read(members.need("result")?)
}

/// An optional text member.
fn text(members: &Members<'_, '_>, key: &str) -> Result<Option<String>, Refusal> {
    members.get(key).map(|node| node.text().map(str::to_owned)).transpose()
}

/// A text member that is empty until it is known; missing, null and empty mean the same.
fn text_or_empty(members: &Members<'_, '_>, key: &str) -> Result<String, Refusal> {
    text(members, key).map(Option::unwrap_or_default)
}
