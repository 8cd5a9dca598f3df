//! A swap as the caller stores it: everything that a later process needs to continue after any step.

use std::fmt;
use std::str::FromStr;

use countersign::json::{self, At, Cursor};
use countersign::wire::{self, Read};
use countersign::{Code, CreateOrder, Proposal, Refusal};
use serde::ser::{Error as _, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::request::OrderId;

/// A created order: its id, the request and the response. It does not contain the secret.
///
/// It serializes as a case of the batch contract (`docs/spec/batch.md#case`), with the response byte for byte as received, so that
/// `countersign explain --case` can read it. Serialize it with `serde_json`: other formats cannot embed the response.
///
/// ```
/// use countersign_client::CreatedOrder;
/// use countersign_client::countersign::{CreateOrder, U256, wire::RequestedLeg};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let request = CreateOrder::new(
///     RequestedLeg::new(
///         "ethereum:usdc".parse()?,
///         "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
///         U256::from(5_000_000),
///     ),
///     RequestedLeg::new(
///         "bitcoin:btc".parse()?,
///         "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
///         U256::from(4_900),
///     ),
/// );
/// let response = br#"{"status":"Ok","result":{"order_id":"4784d9c7706413956fcfe6b9148adddc60eb6cfe3765f95b0f50600d874d3c26"}}"#;
/// let swap = CreatedOrder::new(request, *response)?;
/// let kept = serde_json::to_vec(&swap)?;
/// assert_eq!(CreatedOrder::from_json(&kept)?, swap);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CreatedOrder {
    id: OrderId,
    request: CreateOrder,
    response: Vec<u8>,
}

impl fmt::Debug for CreatedOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedOrder").field("id", &self.id).field("request", &self.request).finish_non_exhaustive()
    }
}

/// The response of a stored swap, as raw text.
#[derive(Deserialize)]
struct Kept<'t> {
    #[serde(borrow)]
    response: &'t RawValue,
}

impl CreatedOrder {
    /// Creates a swap from the request and the body of the response, including its envelope. The id is taken from the response.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] at or below `/response` if the body is not a response to an order.
    pub fn new(request: CreateOrder, response: impl Into<Vec<u8>>) -> Result<Self, Error> {
        let response = response.into();
        let id = order_id(&response).map_err(Error::Input)?;
        Ok(Self { id, request, response })
    }

    /// Creates a swap from a response that the client has already read.
    pub(crate) const fn from_answer(id: OrderId, request: CreateOrder, response: Vec<u8>) -> Self {
        Self { id, request, response }
    }

    /// Parses a serialized swap.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] at the member that is missing or malformed, with [`Code::RecordMismatch`] at `/id` if the response is that of
    /// another order.
    pub fn from_json(text: &[u8]) -> Result<Self, Error> {
        let (id, request) = members(text).map_err(Error::Input)?;
        // The strict parser has accepted the text. This second pass only finds the bytes of the response.
        let kept: Kept<'_> = serde_json::from_slice(text).map_err(|_| Error::Input(Refusal::new(Code::JsonSyntax, "")))?;
        let swap = Self::new(request, kept.response.get())?;
        if swap.id.as_str().eq_ignore_ascii_case(&id) {
            return Ok(swap);
        }
        Err(Error::Input(Refusal::new(Code::RecordMismatch, "/id").with_expected(swap.id.as_str()).with_actual(id)))
    }

    /// Returns the order's id.
    #[must_use]
    pub const fn id(&self) -> &OrderId {
        &self.id
    }

    /// Returns the request.
    #[must_use]
    pub const fn request(&self) -> &CreateOrder {
        &self.request
    }

    /// Returns the body of the response as received, including its envelope.
    #[must_use]
    pub fn response(&self) -> &[u8] {
        &self.response
    }

    /// Returns the documents that the order is verified with, together with a record.
    pub(crate) fn proposal<'d>(&'d self, record: &'d [u8]) -> Proposal<'d> {
        Proposal::new(&self.request, &self.response).with_record(record)
    }
}

/// Reads the id and the request of a stored swap.
fn members(text: &[u8]) -> Result<(String, CreateOrder), Refusal> {
    let value = json::parse_case(text)?;
    let root = Cursor::root(&value, "");
    let members = root.object()?;
    let id = members.need("id")?.text()?.to_owned();
    Ok((id, CreateOrder::read(Cursor::new(members.need("request")?.value(), At::REQUEST))?))
}

/// Reads the order id that a response contains.
fn order_id(response: &[u8]) -> Result<OrderId, Refusal> {
    let value = json::parse(response).map_err(|refusal| refusal.within(&At::RESPONSE))?;
    wire::with_result(Cursor::new(&value, At::RESPONSE), OrderId::from_result)
}

impl FromStr for CreatedOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::from_json(text.as_bytes())
    }
}

impl TryFrom<&[u8]> for CreatedOrder {
    type Error = Error;

    fn try_from(text: &[u8]) -> Result<Self, Error> {
        Self::from_json(text)
    }
}

impl Serialize for CreatedOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let response: &RawValue = serde_json::from_slice(&self.response).map_err(S::Error::custom)?;
        let mut map = serializer.serialize_struct("CreatedOrder", 3)?;
        map.serialize_field("id", &self.id)?;
        map.serialize_field("request", &self.request)?;
        map.serialize_field("response", response)?;
        map.end()
    }
}
