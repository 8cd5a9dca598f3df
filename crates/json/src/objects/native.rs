//! Payloads in the forms that the wallets of each chain accept.

use std::convert::identity;

use countersign::{Code, Context, Refusal, Unsigned, UnsignedOrder, Verified, VerifiedOrder, for_each_family};

use super::fields::{NativePayload, Request};
use super::shapes::Failure;
use crate::JsonFamily;
use crate::dispatch::each_family;

impl NativePayload {
    pub(crate) fn new(kind: &str, value: String) -> Self {
        Self { kind: kind.to_owned(), value }
    }
}

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
    fn calls<F: JsonFamily>(order: &VerifiedOrder<F>) -> Result<Vec<String>, Refusal> {
        F::wallet_calls(order)
    }
    let calls: Result<_, Refusal> = for_each_family! { each_family! [order, Verified => |order| calls(order), identity] };
    Ok(calls?)
}

/// Returns the signing requests, in the order in which payloads are sent. Without JSON of the family their payloads have no native form.
pub(super) fn requests(order: &Unsigned) -> Vec<Request> {
    fn native<F: JsonFamily>(order: &UnsignedOrder<F>) -> Vec<Request> {
        let requests = order.requests().into_iter();
        requests.map(|request| Request::new(F::native_payload(&request, order.payloads()), request)).collect()
    }
    let requests: Result<_, Refusal> = for_each_family! { each_family! [order, Unsigned => |order| Ok(native(order)), identity] };
    requests.unwrap_or_else(|_| order.requests().into_iter().map(|request| Request::new(NativePayload::default(), request)).collect())
}
