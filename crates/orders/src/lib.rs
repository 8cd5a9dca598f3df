#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod artefact;
mod case;

use std::fmt;
use std::sync::Arc;

pub use artefact::Artefact;
pub use countersign;
use countersign::{Context, CreateOrder, Family, Proposal, Registry, Role, for_each_family};

use crate::case::{Registries, cases};

/// The lines of the corpus for a family; none if its feature is off.
macro_rules! corpus {
    ([$family:expr] $($feature:literal $variant:ident $module:ident,)*) => {
        match $family {
            $(#[cfg(feature = $feature)] Family::$variant => include_str!(concat!("../corpus/", $feature, ".jsonl")),)*
            _ => "",
        }
    };
}

/// An order of the service, with everything that a wallet has when it signs it.
///
/// `request`, `registry`, `context` and `key` are the wallet's own. `response` and `record` are texts of the service, with their exact spelling.
/// Every order is judged by the default [`Policy`](countersign::Policy).
#[derive(Clone)]
#[non_exhaustive]
pub struct Order {
    /// Unique in the corpus, such as `accept/evm-token-v2`.
    pub id: String,
    /// The family that signs.
    pub family: Family,
    /// What is special about the order, or what goes wrong if it is signed.
    pub note: String,
    /// The library and version that computed the artefacts, such as `ethers 6.17.0`. Empty for a tampered order.
    pub source: String,
    /// Whether the order must be signed. `false` for one that a wallet may also refuse, because of an unlimited approval, for example.
    pub must_sign: bool,
    /// The request that the wallet sent to create the order.
    pub request: CreateOrder,
    /// The same, as JSON.
    pub request_json: String,
    /// The service's response to the request, in its envelope.
    pub response: String,
    /// The order record; `None` where the wallet has none.
    pub record: Option<String>,
    /// What the wallet has pinned.
    pub registry: Arc<Registry>,
    /// What only the wallet knows: nonce and fees, a blockhash, or coins. Where the family has a gasless path, it asks for both paths.
    pub context: Context,
    /// The secret key, in the text form of [`Key::parse`](countersign::Key::parse). It is published and worthless. `None` where the artefacts
    /// have no signatures.
    pub key: Option<String>,
    /// What a wallet makes of the order. Empty for a tampered one.
    pub artefacts: Vec<Artefact>,
}

impl Order {
    /// Returns the documents for verification.
    ///
    #[cfg_attr(feature = "sui", doc = "```")]
    #[cfg_attr(not(feature = "sui"), doc = "```ignore")]
    /// use countersign_orders::countersign::{self, Family, Policy};
    ///
    /// for order in countersign_orders::orders(Family::Sui) {
    ///     let verified =
    ///         countersign::verify(order.proposal(), &order.registry, &Policy::default())?;
    ///     let unsigned = verified.prepare(&order.context)?;
    ///     let digest = order.artefacts[0].digest.expect("what is signed on Sui");
    ///     assert_eq!(unsigned.requests()[0].digest, digest);
    /// }
    /// # Ok::<(), countersign::Refusal>(())
    /// ```
    #[must_use]
    pub fn proposal(&self) -> Proposal<'_> {
        let proposal = Proposal::new(&self.request, self.response.as_bytes());
        match &self.record {
            Some(record) => proposal.with_record(record.as_bytes()),
            None => proposal,
        }
    }

    /// Returns the artefact of the transaction that has this role; `None` if the order has no such transaction.
    #[must_use]
    pub fn artefact(&self, role: Role) -> Option<&Artefact> {
        self.artefacts.iter().find(|artefact| artefact.role == Some(role))
    }
}

impl fmt::Debug for Order {
    /// Writes the id alone: the documents are long, and keys are not printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Order({})", self.id)
    }
}

/// An order whose response or record was changed so that no wallet may sign it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tampered {
    /// The order as the wallet sees it. It has no artefacts.
    pub order: Order,
    /// The id of the order before the change, one of [`orders`]. A wallet that signs the same for both has not used what was changed.
    pub base: String,
    /// The document that was changed: `response` or `record`.
    pub changed: String,
    /// What the attacker does.
    pub attack: String,
    /// The worst that signing can cost: `funds`, `fees`, `time`, `privacy`, `display` or `nothing`.
    pub loss: String,
    /// The name of the [`Code`](countersign::Code) with which countersign refuses it.
    pub code: String,
    /// Where countersign finds the fault, as a pointer that begins with `/response` or `/order`, the record. Of a syntax error, only the document.
    pub location: String,
}

/// Returns the honest orders of a family, in a fixed order; none if the feature of the family is off.
///
#[cfg_attr(feature = "bitcoin", doc = "```")]
#[cfg_attr(not(feature = "bitcoin"), doc = "```ignore")]
/// use countersign_orders::countersign::{Context, Family};
///
/// let has_coins = |context: &Context| match context {
///     Context::Bitcoin(context) => context.utxos.is_some(),
///     _ => false,
/// };
/// let mut orders = countersign_orders::orders(Family::Bitcoin);
/// assert!(orders.any(|order| order.key.is_some() && has_coins(&order.context)));
/// ```
pub fn orders(family: Family) -> impl Iterator<Item = Order> {
    let registries = Registries::parse();
    // Nothing is left out silently: a test counts the orders.
    lines(family).filter_map(move |line| case::order(family, &line, registries.as_ref()?))
}

/// Returns the tampered orders of a family, in a fixed order; none if the feature of the family is off.
///
/// These are the cases of the corpus in which the service lies. Those that need a registry or policy of their own are only in the corpus, and
/// so are mistakes in the wallet's own documents.
pub fn tampered(family: Family) -> impl Iterator<Item = Tampered> {
    let registries = Registries::parse();
    lines(family).filter_map(move |line| case::tampered(family, &line, registries.as_ref()?))
}

fn lines(family: Family) -> impl Iterator<Item = case::Case<'static>> {
    cases(for_each_family! { corpus! [family] })
}
