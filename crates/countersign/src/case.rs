//! One case of the batch contract: request, response, record and wallet in one JSON object; one object out.

use countersign_core::json::{self, Node, Value};
use countersign_core::{Code, Documents, Policy, Refusal, Registry, Summary, Warnings};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::any::{AnySigned, AnyUnsigned, AnyVerified, open};

/// The members of a case, parsed. Pointers of refusals lead into this object.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Case<'v> {
    /// The documents that the order is judged by.
    pub documents: Documents<'v>,
    /// The wallet's context, where it is given.
    pub wallet: Option<&'v Value<'v>>,
}

impl<'v> Case<'v> {
    /// A case whose members came apart.
    #[must_use]
    pub const fn new(documents: Documents<'v>, wallet: Option<&'v Value<'v>>) -> Self {
        Self { documents, wallet }
    }

    /// Finds the members of a case. Missing and null mean the same.
    ///
    /// # Errors
    ///
    /// [`Code::MissingField`] without a request or response.
    pub fn of(value: &'v Value<'v>) -> Result<Self, Refusal> {
        let root = Node::root(value, "");
        let members = root.object()?;
        Ok(Self {
            documents: Documents {
                request: members.need("request")?.value(),
                response: members.need("response")?.value(),
                order: members.get("order").map(|node| node.value()),
            },
            wallet: members.get("wallet").map(|node| node.value()),
        })
    }

    /// Verifies the order.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member or byte that differs.
    pub fn verify(&self, registry: &Registry, policy: &Policy) -> Result<AnyVerified, Refusal> {
        open(self.documents, registry, policy)?.verify()
    }

    /// Verifies the order and adds the wallet's context.
    ///
    /// # Errors
    ///
    /// As [`Case::verify`], and a [`Refusal`] at a member of `/wallet`.
    pub fn prepare(&self, registry: &Registry, policy: &Policy) -> Result<AnyUnsigned, Refusal> {
        let verified = self.verify(registry, policy)?;
        verified.prepare_json(self.wallet_node()?)
    }

    /// Verifies, prepares, and signs where the wallet's context holds a key.
    ///
    /// # Errors
    ///
    /// As [`Case::prepare`], and a [`Refusal`] at `/wallet/secret_key`.
    pub fn run(&self, registry: &Registry, policy: &Policy) -> Result<Prepared, Refusal> {
        let unsigned = self.prepare(registry, policy)?;
        match self.wallet_node()?.object()?.get("secret_key") {
            Some(key) => unsigned.sign(key.secret()?).map(Prepared::Signed),
            None => Ok(Prepared::Unsigned(unsigned)),
        }
    }

    fn wallet_node(&self) -> Result<Node<'v, 'v>, Refusal> {
        self.wallet.map(|wallet| Node::root(wallet, "/wallet")).ok_or_else(|| Refusal::new(Code::MissingField, "/wallet"))
    }
}

/// An order that is ready for a signer, or signed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Prepared {
    /// No key was given.
    Unsigned(AnyUnsigned),
    /// Signed with the key that was given.
    Signed(AnySigned),
}

impl Prepared {
    fn summary(&self) -> Summary {
        match self {
            Self::Unsigned(order) => order.summary(),
            Self::Signed(order) => order.summary().clone(),
        }
    }

    const fn warnings(&self) -> &Warnings {
        match self {
            Self::Unsigned(order) => order.warnings(),
            Self::Signed(order) => order.warnings(),
        }
    }
}

/// One line of the batch's output.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The line's id, `None` where not exactly one could be read.
    pub id: Option<String>,
    /// The artefacts, or why there are none.
    pub result: Result<Prepared, Refusal>,
}

impl Outcome {
    /// Judges one line. Never panics, whatever the bytes.
    #[must_use]
    pub fn of_line(line: &[u8], registry: &Registry, policy: &Policy) -> Self {
        let value = match json::parse(line) {
            Ok(value) => value,
            Err(refusal) => return Self { id: json::salvage_id(line), result: Err(refusal) },
        };
        let root = Node::root(&value, "");
        let id = root.object().and_then(|members| members.need("id")?.text().map(str::to_owned));
        match id {
            Ok(id) => Self { id: Some(id), result: Case::of(&value).and_then(|case| case.run(registry, policy)) },
            Err(refusal) => Self { id: None, result: Err(refusal) },
        }
    }

    /// A line that was refused before it could be judged.
    #[must_use]
    pub const fn refused(id: Option<String>, refusal: Refusal) -> Self {
        Self { id, result: Err(refusal) }
    }

    /// Whether the order was accepted.
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        self.result.is_ok()
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("ok", &self.is_ok())?;
        match &self.result {
            Ok(prepared) => {
                match prepared {
                    Prepared::Unsigned(order) => {
                        map.serialize_entry("family", order.family().name())?;
                        map.serialize_entry("order_id", order.order_id())?;
                        map.serialize_entry("artefacts", order)?;
                    }
                    Prepared::Signed(order) => {
                        map.serialize_entry("family", order.family().name())?;
                        map.serialize_entry("order_id", order.order_id())?;
                        map.serialize_entry("artefacts", order)?;
                    }
                }
                map.serialize_entry("summary", &prepared.summary())?;
                map.serialize_entry("warnings", prepared.warnings())?;
            }
            Err(refusal) => map.serialize_entry("error", refusal)?,
        }
        map.end()
    }
}
