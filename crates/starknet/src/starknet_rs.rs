//! Conversions to and from the types of starknet-rs, which uses the same felt type.

use countersign_core::{Code, Refusal};
use starknet_core::{crypto, types as rs};

use crate::payloads::Payload;
use crate::signature::ExternalSignature;
use crate::transaction::{Call, DataAvailabilityMode, InvokeTransaction, ResourceBound, ResourceBounds};

impl From<crypto::Signature> for ExternalSignature {
    fn from(signature: crypto::Signature) -> Self {
        [signature.r, signature.s].into()
    }
}

impl From<Call> for rs::Call {
    fn from(Call { to, selector, calldata }: Call) -> Self {
        Self { to, selector, calldata }
    }
}

impl From<ResourceBounds> for rs::ResourceBoundsMapping {
    fn from(bounds: ResourceBounds) -> Self {
        let convert = |ResourceBound { max_amount, max_price_per_unit }| rs::ResourceBounds { max_amount, max_price_per_unit };
        Self { l1_gas: convert(bounds.l1_gas), l1_data_gas: convert(bounds.l1_data_gas), l2_gas: convert(bounds.l2_gas) }
    }
}

impl From<rs::ResourceBoundsMapping> for ResourceBounds {
    fn from(bounds: rs::ResourceBoundsMapping) -> Self {
        let convert = |bound: rs::ResourceBounds| ResourceBound::new(bound.max_amount, bound.max_price_per_unit);
        Self { l1_gas: convert(bounds.l1_gas), l2_gas: convert(bounds.l2_gas), l1_data_gas: convert(bounds.l1_data_gas) }
    }
}

impl From<DataAvailabilityMode> for rs::DataAvailabilityMode {
    fn from(mode: DataAvailabilityMode) -> Self {
        match mode {
            DataAvailabilityMode::L1 => Self::L1,
            DataAvailabilityMode::L2 => Self::L2,
        }
    }
}

impl From<rs::DataAvailabilityMode> for DataAvailabilityMode {
    fn from(mode: rs::DataAvailabilityMode) -> Self {
        match mode {
            rs::DataAvailabilityMode::L1 => Self::L1,
            rs::DataAvailabilityMode::L2 => Self::L2,
        }
    }
}

impl Payload {
    /// Returns the gasless message as typed data of starknet-rs; `None` for a transaction.
    #[must_use]
    pub fn to_typed_data(&self) -> Option<rs::TypedData> {
        match self {
            Self::TypedData(message) => serde_json::from_value(message.clone()).ok(),
            Self::Invoke(_) => None,
        }
    }
}

/// Creates a `Self` from the fields that all transaction types share and the fields that only `Self` has.
macro_rules! with_shared_fields {
    ($transaction:ident $(, $field:ident: $value:expr)?) => {
        Self {
            sender_address: $transaction.sender_address,
            calldata: $transaction.calldata,
            signature: $transaction.signature,
            nonce: $transaction.nonce,
            resource_bounds: $transaction.resource_bounds.into(),
            tip: $transaction.tip,
            paymaster_data: $transaction.paymaster_data,
            account_deployment_data: $transaction.account_deployment_data,
            nonce_data_availability_mode: $transaction.nonce_data_availability_mode.into(),
            fee_data_availability_mode: $transaction.fee_data_availability_mode.into(),
            $($field: $value,)?
        }
    };
}

impl From<InvokeTransaction> for rs::BroadcastedInvokeTransactionV3 {
    fn from(transaction: InvokeTransaction) -> Self {
        with_shared_fields!(transaction, is_query: false)
    }
}

impl TryFrom<rs::BroadcastedInvokeTransactionV3> for InvokeTransaction {
    type Error = Refusal;

    /// Converts a broadcast transaction.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] for a query version, which can only be simulated.
    fn try_from(transaction: rs::BroadcastedInvokeTransactionV3) -> Result<Self, Refusal> {
        if transaction.is_query {
            return Err(Refusal::new(Code::TransactionMismatch, "/version").with_reason("the transaction can only be simulated"));
        }
        Ok(with_shared_fields!(transaction))
    }
}

impl From<rs::InvokeTransactionV3> for InvokeTransaction {
    /// Converts a transaction as a node returns it.
    fn from(transaction: rs::InvokeTransactionV3) -> Self {
        with_shared_fields!(transaction)
    }
}
