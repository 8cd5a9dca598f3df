//! Conversions to and from the types of starknet-rs, and of starknet-rust, its maintained fork. Both use the same felt type.

use countersign_core::{Code, Refusal};

#[cfg(feature = "starknet-rust")]
use crate::external::CARRIES_PROOF;
use crate::payloads::Payload;
use crate::signature::ExternalSignature;
use crate::transaction::{Call, DataAvailabilityMode, InvokeTransaction, ResourceBound, ResourceBounds};

/// Creates a `Self` from the fields that all transaction types share and the fields that only `Self` has.
macro_rules! with_shared_fields {
    ($transaction:ident $(, $field:ident: $value:expr)*) => {
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
            $($field: $value,)*
        }
    };
}

/// Converts to and from the types of a crate. The two crates have the same types, which are different ones to Rust; only those of
/// starknet-rust have the field `$facts`, the facts of a proof.
macro_rules! convert {
    ($core:ident, $to_typed_data:ident $(, $facts:ident)?) => {
        impl From<$core::crypto::Signature> for ExternalSignature {
            fn from(signature: $core::crypto::Signature) -> Self {
                [signature.r, signature.s].into()
            }
        }

        impl From<Call> for $core::types::Call {
            fn from(Call { to, selector, calldata }: Call) -> Self {
                Self { to, selector, calldata }
            }
        }

        impl From<ResourceBounds> for $core::types::ResourceBoundsMapping {
            fn from(bounds: ResourceBounds) -> Self {
                let convert = |bound: ResourceBound| $core::types::ResourceBounds {
                    max_amount: bound.max_amount,
                    max_price_per_unit: bound.max_price_per_unit,
                };
                Self { l1_gas: convert(bounds.l1_gas), l1_data_gas: convert(bounds.l1_data_gas), l2_gas: convert(bounds.l2_gas) }
            }
        }

        impl From<$core::types::ResourceBoundsMapping> for ResourceBounds {
            fn from(bounds: $core::types::ResourceBoundsMapping) -> Self {
                let convert = |bound: $core::types::ResourceBounds| ResourceBound::new(bound.max_amount, bound.max_price_per_unit);
                Self { l1_gas: convert(bounds.l1_gas), l2_gas: convert(bounds.l2_gas), l1_data_gas: convert(bounds.l1_data_gas) }
            }
        }

        impl From<DataAvailabilityMode> for $core::types::DataAvailabilityMode {
            fn from(mode: DataAvailabilityMode) -> Self {
                match mode {
                    DataAvailabilityMode::L1 => Self::L1,
                    DataAvailabilityMode::L2 => Self::L2,
                }
            }
        }

        impl From<$core::types::DataAvailabilityMode> for DataAvailabilityMode {
            fn from(mode: $core::types::DataAvailabilityMode) -> Self {
                match mode {
                    $core::types::DataAvailabilityMode::L1 => Self::L1,
                    $core::types::DataAvailabilityMode::L2 => Self::L2,
                }
            }
        }

        impl Payload {
            #[doc = concat!("Returns the gasless message as typed data of `", stringify!($core), "`; `None` for a transaction.")]
            #[must_use]
            pub fn $to_typed_data(&self) -> Option<$core::types::TypedData> {
                match self {
                    Self::TypedData(message) => serde_json::from_value(message.clone()).ok(),
                    Self::Invoke(_) => None,
                }
            }
        }

        impl From<InvokeTransaction> for $core::types::BroadcastedInvokeTransactionV3 {
            fn from(transaction: InvokeTransaction) -> Self {
                with_shared_fields!(transaction, is_query: false $(, $facts: None)?)
            }
        }

        impl TryFrom<$core::types::BroadcastedInvokeTransactionV3> for InvokeTransaction {
            type Error = Refusal;

            /// Converts a broadcast transaction.
            ///
            /// # Errors
            ///
            /// [`Code::TransactionMismatch`] for a query version, which can only be simulated, and for a transaction with a proof.
            fn try_from(transaction: $core::types::BroadcastedInvokeTransactionV3) -> Result<Self, Refusal> {
                if transaction.is_query {
                    return Err(Refusal::new(Code::TransactionMismatch, "/version").with_reason("the transaction can only be simulated"));
                }
                $(without_proof("/proof_facts", transaction.$facts.as_deref())?;)?
                Ok(with_shared_fields!(transaction))
            }
        }
    };
}

#[cfg(feature = "starknet-rs")]
convert!(starknet_core, to_typed_data);
#[cfg(feature = "starknet-rust")]
convert!(starknet_rust_core, to_starknet_rust_typed_data, proof_facts);

#[cfg(feature = "starknet-rs")]
impl From<starknet_core::types::InvokeTransactionV3> for InvokeTransaction {
    /// Converts a transaction as a node returns it.
    fn from(transaction: starknet_core::types::InvokeTransactionV3) -> Self {
        with_shared_fields!(transaction)
    }
}

#[cfg(feature = "starknet-rust")]
impl TryFrom<starknet_rust_core::types::InvokeTransactionV3> for InvokeTransaction {
    type Error = Refusal;

    /// Converts a transaction as a node returns it.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] for a transaction with a proof.
    fn try_from(transaction: starknet_rust_core::types::InvokeTransactionV3) -> Result<Self, Refusal> {
        without_proof("/proof_facts", transaction.proof_facts.as_deref())?;
        Ok(with_shared_fields!(transaction))
    }
}

#[cfg(feature = "starknet-rust")]
impl From<InvokeTransaction> for starknet_rust_core::types::BroadcastedInvokeTransaction {
    /// Converts to what a provider of starknet-rust sends.
    fn from(transaction: InvokeTransaction) -> Self {
        Self { broadcasted_invoke_txn_v3: transaction.into(), proof: None }
    }
}

#[cfg(feature = "starknet-rust")]
impl TryFrom<starknet_rust_core::types::BroadcastedInvokeTransaction> for InvokeTransaction {
    type Error = Refusal;

    /// Converts what an account of starknet-rust sends.
    ///
    /// # Errors
    ///
    /// As for a transaction without the member `proof`; [`Code::TransactionMismatch`] for one that has it.
    fn try_from(transaction: starknet_rust_core::types::BroadcastedInvokeTransaction) -> Result<Self, Refusal> {
        without_proof("/proof", transaction.proof.as_deref().map(str::as_bytes))?;
        transaction.broadcasted_invoke_txn_v3.try_into()
    }
}

/// Refuses a proof, or the facts of one, unless it is empty.
#[cfg(feature = "starknet-rust")]
fn without_proof<T>(at: &str, proof: Option<&[T]>) -> Result<(), Refusal> {
    match proof {
        None | Some([]) => Ok(()),
        Some(_) => Err(Refusal::new(Code::TransactionMismatch, at).with_reason(CARRIES_PROOF)),
    }
}
