//! Payloads in the forms that the wallets of each chain accept.

use countersign::{Code, Context, Payload, Refusal, SigningRequest, Unsigned, Verified};

use super::fields::NativePayload;
use super::shapes::Failure;

/// Prepares the gasless path.
pub(super) fn prepare_gasless(order: &Verified) -> Result<Unsigned, Refusal> {
    let context = Context::gasless(order.family()).ok_or_else(|| {
        let reason = "orders of this family have no gasless funding path";
        Refusal::new(Code::NothingToSign, "").with_reason(reason).with_actual(order.family())
    })?;
    order.prepare(&context)
}

/// Returns the calls for wallets that choose nonce and fees themselves, as JSON text: on EVM chains the parameters of
/// `eth_sendTransaction`, one for each call; on Starknet the calls of `account.execute`.
///
/// # Errors
///
/// [`Failure`] with the code `unsupported_family` for a family without such an interface.
pub fn wallet_calls(order: &Verified) -> Result<Vec<String>, Failure> {
    match order {
        #[cfg(feature = "evm")]
        Verified::Evm(order) => {
            let calls = order.deposit().send_transactions(countersign::evm::ApprovalPlan::default());
            Ok(calls.iter().map(super::to_json).collect())
        }
        #[cfg(feature = "starknet")]
        Verified::Starknet(order) => {
            let calls = order.deposit().execute_calls(countersign::starknet::ApprovalStep::default());
            Ok(calls.iter().map(super::to_json).collect())
        }
        other => Err(Refusal::new(Code::UnsupportedFamily, "").with_actual(other.family()).into()),
    }
}

/// Returns the payload of one of an order's requests, in the form that wallets accept.
pub(super) fn payload(request: &SigningRequest<Payload>, order: &Unsigned) -> NativePayload {
    match (&request.payload, order) {
        #[cfg(feature = "evm")]
        (Payload::Evm(payload), Unsigned::Evm(order)) => evm(payload, order, &request.signer),
        #[cfg(feature = "tron")]
        (Payload::Tron(payload), _) => {
            let is_message = matches!(payload, countersign::tron::Payload::TypedData(_));
            native(if is_message { "typed_data" } else { "tron_transaction" }, payload.to_json().to_string())
        }
        #[cfg(feature = "starknet")]
        (Payload::Starknet(payload), _) => match payload {
            countersign::starknet::Payload::Invoke(invoke) => native("starknet_invoke", super::to_json(&invoke.transaction)),
            countersign::starknet::Payload::TypedData(typed_data) => native("typed_data", typed_data.to_string()),
            _ => native("", String::new()),
        },
        #[cfg(feature = "solana")]
        (Payload::Solana(transaction), _) => {
            native("solana_transaction", base64(&countersign::solana::transaction::to_bytes(&transaction.signatures, &request.message)))
        }
        #[cfg(feature = "sui")]
        (Payload::Sui(_), Unsigned::Sui(order)) => native("sui_transaction", order.payloads().base64()),
        #[cfg(feature = "bitcoin")]
        (Payload::Bitcoin(payload), _) => native("psbt", payload.psbt.to_string()),
        _ => native("", String::new()),
    }
}

fn native(kind: &str, value: String) -> NativePayload {
    NativePayload { kind: kind.to_owned(), value }
}

#[cfg(feature = "solana")]
fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Returns a transaction with the members of `eth_signTransaction` (EIP-1474), or typed data with the domain's type among its types.
#[cfg(feature = "evm")]
fn evm(payload: &countersign::evm::Payload, order: &countersign::UnsignedOrder<countersign::evm::Evm>, signer: &str) -> NativePayload {
    use countersign::evm::Payload;
    use countersign::evm::alloy_consensus::Transaction;

    let transaction = match payload {
        Payload::Transaction(transaction) => transaction,
        _ => {
            let message = order.payloads().message.as_ref().map(|message| message.message.to_json().to_string());
            return native("typed_data", message.unwrap_or_default());
        }
    };
    let quantity = |number: u128| serde_json::Value::from(format!("{number:#x}"));
    let mut object = serde_json::json!({
        "from": signer,
        "to": transaction.to().map(|to| to.to_string()),
        "value": format!("{:#x}", transaction.value()),
        "gas": quantity(transaction.gas_limit().into()),
        "nonce": quantity(transaction.nonce().into()),
        "data": transaction.input().to_string(),
        "chainId": transaction.chain_id().map(|id| quantity(id.into())),
        "type": if transaction.gas_price().is_some() { "0x0" } else { "0x2" },
    });
    let fees = match (transaction.gas_price(), transaction.max_priority_fee_per_gas()) {
        (Some(price), _) => vec![("gasPrice", price)],
        (None, tip) => vec![("maxFeePerGas", transaction.max_fee_per_gas()), ("maxPriorityFeePerGas", tip.unwrap_or_default())],
    };
    if let Some(members) = object.as_object_mut() {
        members.extend(fees.into_iter().map(|(name, fee)| (name.to_owned(), quantity(fee))));
    }
    native("evm_transaction", object.to_string())
}
