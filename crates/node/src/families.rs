//! What connected chains of all families do.

use countersign::{Family, SignedOrder, Transaction, U256, VerifiedOrder, evidence::Precondition, trust::Asset};
use countersign_core::family::ChainFamily;
use countersign_transport::Transport;

use crate::contracts::Description;
use crate::error::NodeError;
use crate::nodes::{Head, Nodes};
use crate::preconditions::End;

/// Evaluates an expression with the connected chain, whose type depends on its family.
macro_rules! of_family {
    ($nodes:expr, $chain:expr, |$connected:ident| $body:expr) => {
        countersign::for_each_family! { with_chain! [$nodes, $chain, $connected, $body] }
    };
}

macro_rules! with_chain {
    ([$nodes:expr, $chain:expr, $connected:ident, $body:expr] $($feature:literal $family:ident $module:ident,)*) => {{
        let name: &str = $chain;
        match $nodes.connection(name)?.network.family() {
            $(
                #[cfg(feature = $feature)]
                Family::$family => {
                    let $connected = $nodes.$module(name)?;
                    $body
                }
            )*
            _ => Err(NodeError::NotConnected(name.to_owned())),
        }
    }};
}

impl<T: Transport> Nodes<T> {
    /// Reads the newest block of one endpoint of a chain. `index` counts the endpoints from 0, in the order of
    /// [`Endpoints::all`](crate::Endpoints::all).
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if there is no such chain or endpoint, [`NodeError::WrongChain`] if the endpoint serves another
    /// chain, and another [`NodeError`] if the read fails.
    pub async fn head(&self, chain: &str, index: usize) -> Result<Head, NodeError> {
        let connection = self.connection(chain)?;
        let caller = connection.callers().nth(index).ok_or_else(|| NodeError::NotConnected(chain.to_owned()))?;
        of_family!(self, chain, |connected| connected.head(caller).await)
    }

    /// Asks one precondition of a leg on a connected chain. Returns what an authority of its token may do.
    pub(crate) async fn ask_precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        of_family!(self, end.asset.chain_name(), |connected| connected.precondition(item, end).await)
    }

    /// Reads the balance of an address in a pinned asset, in base units. `owner` is an address in the chain's usual text form.
    ///
    /// The endpoints must agree. On Bitcoin-like chains as much counts as enough endpoints show at least, and only confirmed coins.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain is not connected, [`NodeError::Refused`] if `owner` is not an address of the chain,
    /// and another [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn balance(&self, asset: &Asset, owner: &str) -> Result<U256, NodeError> {
        let (chain, token) = (asset.chain_name(), asset.token.as_ref());
        of_family!(self, chain, |connected| connected.balance_of(owner, token).await)
    }

    /// Reads facts about the pinned contract of an asset from its chain. Store them in [`Contracts`](crate::Contracts) next to the
    /// registry, and compare them later to notice a change. The endpoints must agree.
    ///
    /// On Bitcoin-like chains there is no contract, and the description is empty.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain is not connected, and another [`NodeError`] if no endpoint answers or too few of
    /// them agree.
    pub async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        of_family!(self, asset.chain_name(), |connected| connected.describe(asset).await)
    }

    /// Reads a transaction that was sent, with its signatures, by its id as explorers show it; `None` if the chain does not know it. The
    /// endpoints must agree. Compare it with the order by [`Verified::matches`](countersign::Verified::matches).
    ///
    /// An endpoint can withhold a transaction, but not change what its id covers. The family's `reader::Sent` says what that is, and which
    /// transactions are found: finalized ones on Solana, for example. In everything else only the number of endpoints that must agree
    /// protects: in the witnesses on Bitcoin-like chains, in further signatures, in a claim that a transaction is of a kind that is not read.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionIdMalformed`](countersign::Code::TransactionIdMalformed) if `id` is not an
    /// id of the chain, or with [`Code::TransactionMismatch`](countersign::Code::TransactionMismatch) if the transaction is of a kind that
    /// no order needs. Returns [`NodeError::NotConnected`] if the chain is not connected, and another [`NodeError`] if no endpoint answers
    /// or too few of them agree.
    pub async fn sent(&self, chain: &str, id: &str) -> Result<Option<Transaction>, NodeError> {
        of_family!(self, chain, |connected| connected.sent(id).await)
    }
}

/// What a connected chain does in a way of its own. Every family states both, because a default would let a new one through unasked.
pub(crate) trait FamilyChain {
    type Family: ChainFamily;

    /// Returns whether a transaction paid an order by its effect: see [`Nodes::find_payment`].
    async fn paid(&self, order: &VerifiedOrder<Self::Family>, id: &str) -> Result<bool, NodeError>;

    /// Checks that the chain accepts who has signed a payment: see [`Nodes::check_signed`].
    async fn check_signed(&self, order: &SignedOrder<Self::Family>) -> Result<(), NodeError>;
}

/// Gives a chain the methods that those of all families share.
macro_rules! shared_methods {
    ($chain:ident) => {
        impl<T: Transport> $chain<'_, T> {
            /// Reads the state of an HTLC: see [`Nodes::htlc`](crate::Nodes::htlc).
            ///
            /// # Errors
            ///
            /// Returns the same errors as [`Nodes::htlc`](crate::Nodes::htlc).
            pub async fn htlc(
                &self,
                terms: &countersign::evidence::HtlcTerms,
            ) -> Result<countersign::reader::HtlcQuorum, $crate::NodeError> {
                self.connection.nodes.htlc(terms).await
            }

            /// Sends a signed transaction: see [`Nodes::broadcast`](crate::Nodes::broadcast).
            ///
            /// # Errors
            ///
            /// Returns the same errors as [`Nodes::broadcast`](crate::Nodes::broadcast).
            pub async fn broadcast(&self, id: &str, payload: &str) -> Result<(), $crate::NodeError> {
                self.connection.nodes.broadcast(self.connection.name, id, payload).await
            }
        }
    };
}
pub(crate) use shared_methods;
