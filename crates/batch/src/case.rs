//! One case: request, response, record and wallet in one JSON object, or each in a file of its own.

use countersign::{Code, CreateOrder, Policy, Proposal, Refusal, Registry, Unsigned, Verified};
use countersign_core::json::{Node, Value};
use countersign_core::wire::Read;

use crate::dispatch;

/// The members of a case, parsed. Pointers of refusals lead into this object.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Case<'v> {
    /// The wallet's create-order request.
    pub request: &'v Value<'v>,
    /// The service's response, in its envelope.
    pub response: &'v Value<'v>,
    /// The order record, bare or in its envelope.
    pub order: Option<&'v Value<'v>>,
    /// The wallet's context, if it is given.
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
    /// [`Code::MissingField`] without a request or response, [`Code::MisspeltField`] for a member that would be ignored.
    pub fn from_value(value: &'v Value<'v>) -> Result<Self, Refusal> {
        let root = Node::root(value, "");
        let members = root.object()?;
        members.check_spelling(&["id", "request", "response", "order", "wallet"])?;
        Ok(Self {
            request: members.need("request")?.value(),
            response: members.need("response")?.value(),
            order: members.get("order").map(|node| node.value()),
            wallet: members.get("wallet").map(|node| node.value()),
        })
    }

    /// Returns the documents that the order is verified by.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member of the request that is malformed.
    pub fn proposal(&self) -> Result<Proposal<'v>, Refusal> {
        let request = CreateOrder::read(Node::root(self.request, "/request"))?;
        Ok(Proposal::from_parsed(request, self.response, self.order))
    }

    /// Verifies the order.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member or byte that differs.
    pub fn verify(&self, registry: &Registry, policy: &Policy) -> Result<Verified, Refusal> {
        countersign::verify(self.proposal()?, registry, policy)
    }

    /// Verifies the order and adds the wallet's context.
    ///
    /// # Errors
    ///
    /// As [`Case::verify`], and a [`Refusal`] at a member of `/wallet`.
    pub fn prepare(&self, registry: &Registry, policy: &Policy) -> Result<Unsigned, Refusal> {
        let verified = self.verify(registry, policy)?;
        dispatch::prepare(&verified, self.wallet()?)
    }

    /// Verifies and prepares the order, and signs it if the wallet's context holds a key. Also returns whether it was signed.
    ///
    /// # Errors
    ///
    /// As [`Case::prepare`], and a [`Refusal`] at `/wallet/secret_key`.
    pub fn run(&self, registry: &Registry, policy: &Policy) -> Result<(Unsigned, bool), Refusal> {
        let mut unsigned = self.prepare(registry, policy)?;
        let wallet = self.wallet()?;
        match wallet.object()?.get("secret_key") {
            Some(key) => dispatch::sign(&mut unsigned, key.secret()?).map(|()| (unsigned, true)),
            None => Ok((unsigned, false)),
        }
    }

    /// Returns the wallet's context.
    ///
    /// # Errors
    ///
    /// [`Code::MissingField`] if there is none.
    pub fn wallet(&self) -> Result<Node<'v, 'v>, Refusal> {
        self.wallet.map(|wallet| Node::root(wallet, "/wallet")).ok_or_else(|| Refusal::new(Code::MissingField, "/wallet"))
    }
}
