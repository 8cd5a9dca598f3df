//! A swap as the caller keeps it: enough to go on after any step, in any later process.

use countersign::case::Case;
use countersign::json::{self, Node, Value};
use countersign::wire::{CreateOrder, Read};
use countersign::{Code, Documents, Refusal};

use crate::error::Error;
use crate::request::OrderId;

/// An order that was created: its id, what was asked for and what was answered. It holds no secret.
///
/// Its text is a case of the batch contract, so `countersign explain --case` reads it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    id: OrderId,
    text: Vec<u8>,
}

impl Swap {
    /// Takes the request and the answer to it, both JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if they are not JSON, or name no order.
    pub fn new(id: OrderId, request: &[u8], response: &[u8]) -> Result<Self, Error> {
        let mut text = format!("{{\"id\":\"{id}\",\"request\":").into_bytes();
        text.extend_from_slice(request);
        text.extend_from_slice(b",\"response\":");
        text.extend_from_slice(response);
        text.push(b'}');
        Self::from_json(text)
    }

    /// Reads what [`Swap::as_json`] gave.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] at the member that is missing or malformed.
    pub fn from_json(text: Vec<u8>) -> Result<Self, Error> {
        let id = {
            let value = json::parse(&text).map_err(Error::Input)?;
            Case::of(&value).map_err(Error::Input)?;
            let node = Node::root(&value, "");
            let id = node.object().and_then(|members| members.need("id")?.text()).map_err(Error::Input)?;
            OrderId::parse(id)?
        };
        Ok(Self { id, text })
    }

    /// What to keep: one JSON object.
    #[must_use]
    pub fn as_json(&self) -> &[u8] {
        &self.text
    }

    /// The order's id.
    #[must_use]
    pub const fn id(&self) -> &OrderId {
        &self.id
    }

    /// What was asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if the request is malformed.
    pub fn request(&self) -> Result<CreateOrder, Error> {
        let value = json::parse(&self.text).map_err(Error::Input)?;
        CreateOrder::read(Node::root(Case::of(&value).map_err(Error::Input)?.documents.request, "/request")).map_err(Error::Input)
    }

    /// Lends the documents to a judge, with a record beside them.
    pub(crate) fn judge<R>(&self, record: &[u8], judge: impl FnOnce(Documents<'_>) -> Result<R, Refusal>) -> Result<R, Error> {
        let value = json::parse(&self.text).map_err(Error::Input)?;
        let record: Value<'_> = json::parse(record).map_err(Error::Shape)?;
        let mut documents = Case::of(&value).map_err(Error::Input)?.documents;
        documents.order = Some(&record);
        let named = Node::root(documents.response, "/response").object().and_then(|envelope| {
            let id = envelope.need("result")?.object()?.need("order_id")?.text()?;
            if id.eq_ignore_ascii_case(self.id.as_str()) {
                Ok(())
            } else {
                Err(Refusal::new(Code::RecordMismatch, "/id").with_expected(id).with_actual(&self.id))
            }
        });
        named.map_err(Error::Refused)?;
        judge(documents).map_err(Error::Refused)
    }
}
