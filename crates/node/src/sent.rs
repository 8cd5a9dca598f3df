//! Reads transactions that were sent, by their ids.

use countersign::{Code, Family, Refusal, Verified};
use countersign_core::chains::transaction_id::form;
use countersign_core::reader::{Agree, Equal, Judged, Machine};
use countersign_transport::Transport;

use crate::error::NodeError;
use crate::families::FamilyChain;
use crate::nodes::{Connection, Nodes};

/// Reads a transaction on which the endpoints must agree.
pub(crate) async fn read<T: Transport, M, D>(connection: Connection<'_, T>, subject: &M::Subject) -> Result<Option<D>, NodeError>
where
    M: Machine<Output = Judged<Equal<Option<D>>>>,
    M::Output: Agree,
{
    Ok(connection.agreed::<M>(subject).await?.0.map(|Equal(found)| found)?)
}

/// Parses the id of a transaction. `family` is the one whose ids have the same form.
pub(crate) fn parsed<V, E>(id: &str, family: Family, parse: impl FnOnce(&str) -> Result<V, E>) -> Result<V, NodeError> {
    let refusal = || Refusal::new(Code::TransactionIdMalformed, "/id").with_expected(form(family)).with_actual(id);
    parse(id).map_err(|_| refusal().into())
}

impl<T: Transport> Nodes<T> {
    /// Returns whether a transaction paid an order by its effect, which is that of an account with code, a bundler or a relay: by the event
    /// of the contract in its receipt, or the instruction of the program, which another program may have called. `false` if the endpoints
    /// have no receipt of it, in a family whose payments have no such effect, or if the chain is not connected. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionMismatch`] if the receipt does not show the payment, or with
    /// [`Code::TransactionIdMalformed`]; another [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn find_payment(&self, order: &Verified, id: &str) -> Result<bool, NodeError> {
        macro_rules! paid {
            ([] $($feature:literal $family:ident $module:ident,)*) => {
                match order {
                    $(
                        #[cfg(feature = $feature)]
                        Verified::$family(order) => match self.$module(order.chain()) {
                            Ok(chain) => chain.paid(order, id).await,
                            Err(error) => Err(error),
                        },
                    )*
                    _ => Ok(false),
                }
            };
        }
        let paid = countersign::for_each_family! { paid! [] };
        if matches!(paid, Err(NodeError::NotConnected(_))) { Ok(false) } else { paid }
    }
}
