//! One case: request, response, record and wallet context in one JSON object, or in separate documents
//! (`docs/spec/batch.md#case`).

use countersign::{Code, CreateOrder, Policy, Proposal, Refusal, Registry, Unsigned, Verified};
use countersign_core::json::{At, Cursor, Value};
use countersign_core::wire::Read;

use crate::dispatch;

/// The parsed members of a case. The locations of refusals point into this object.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Case<'v> {
    /// The wallet's create-order request.
    pub request: &'v Value<'v>,
    /// The service's response, in its envelope.
    pub response: &'v Value<'v>,
    /// The order record, bare or in its envelope; `None` without one.
    pub order: Option<&'v Value<'v>>,
    /// The wallet context of the source family; `None` without one.
    pub wallet: Option<&'v Value<'v>>,
}

impl<'v> Case<'v> {
    /// Creates a case from separate documents.
    #[must_use]
    pub const fn new(request: &'v Value<'v>, response: &'v Value<'v>, order: Option<&'v Value<'v>>, wallet: Option<&'v Value<'v>>) -> Self {
        Self { request, response, order, wallet }
    }

    /// Finds the members of a case. A null member counts as missing.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`] if the value is not an object; [`Code::MissingField`] without a request or a response;
    /// [`Code::MisspeltField`] for a misspelt member, which would be ignored.
    pub fn from_value(value: &'v Value<'v>) -> Result<Self, Refusal> {
        let root = Cursor::root(value, "");
        let members = root.object()?;
        members.check_spelling(&["id", "request", "response", "order", "wallet"])?;
        Ok(Self {
            request: members.get("request").ok_or_else(|| At::REQUEST.refuse(Code::MissingField))?.value(),
            response: members.get("response").ok_or_else(|| At::RESPONSE.refuse(Code::MissingField))?.value(),
            order: members.get("order").map(|cursor| cursor.value()),
            wallet: members.get("wallet").map(|cursor| cursor.value()),
        })
    }

    /// Parses the request, and returns it with the other documents for verification.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member of `/request` that is malformed.
    pub fn proposal(&self) -> Result<Proposal<'v>, Refusal> {
        let request = CreateOrder::read(Cursor::new(self.request, At::REQUEST))?;
        Ok(Proposal::from_parsed(request, self.response, self.order))
    }

    /// Verifies the order: see [`countersign::verify`].
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member or byte that is malformed, unknown or contradictory.
    pub fn verify(&self, registry: &Registry, policy: &Policy) -> Result<Verified, Refusal> {
        countersign::verify(self.proposal()?, registry, policy)
    }

    /// Verifies the order and prepares it with the wallet context.
    ///
    /// # Errors
    ///
    /// As [`Case::verify`], and a [`Refusal`] at a member of `/wallet`.
    pub fn prepare(&self, registry: &Registry, policy: &Policy) -> Result<Unsigned, Refusal> {
        let verified = self.verify(registry, policy)?;
        dispatch::prepare(&verified, self.wallet()?)
    }

    /// Verifies and prepares the order, and signs it if the wallet context has a key. Also returns whether it was signed.
    ///
    /// # Errors
    ///
    /// As [`Case::prepare`] and [`sign`](crate::sign), and [`Code::WrongType`] if the key is not a string.
    pub fn run(&self, registry: &Registry, policy: &Policy) -> Result<(Unsigned, bool), Refusal> {
        let mut unsigned = self.prepare(registry, policy)?;
        let wallet = self.wallet()?;
        match wallet.object()?.get("secret_key") {
            Some(key) => dispatch::sign(&mut unsigned, key.secret()?).map(|()| (unsigned, true)),
            None => Ok((unsigned, false)),
        }
    }

    /// Returns the wallet context.
    ///
    /// # Errors
    ///
    /// [`Code::MissingField`] if there is none.
    pub fn wallet(&self) -> Result<Cursor<'v, 'v>, Refusal> {
        self.wallet.map(|wallet| Cursor::root(wallet, "/wallet")).ok_or_else(|| Refusal::new(Code::MissingField, "/wallet"))
    }
}
