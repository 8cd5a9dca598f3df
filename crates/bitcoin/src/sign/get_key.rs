//! Signers of the `bitcoin` crate: extended keys and maps of keys, which sign a prepared PSBT.

use bitcoin::psbt::GetKey;
use countersign_core::family::{SignWith, Signing};
use countersign_core::{Code, Refusal, RequestId};

use crate::Bitcoin;
use crate::curve::SECP;

/// Any [`GetKey`] signs the inputs whose key it has. It looks keys up by the key origins of the wallet's context
/// ([`TxContext::with_origins`](crate::TxContext::with_origins)), so without them it finds no key.
impl<K: GetKey> SignWith<K> for Bitcoin {
    type Error = Refusal;

    fn sign_with(signing: &mut Signing<'_, Self>, signer: &K) -> Result<(), Refusal> {
        let mut psbt = (*signing.payloads().payment()?.psbt).clone();
        // An input that cannot be signed does not prevent others from being signed. `missing` reports it afterwards.
        let errors = psbt.sign(signer, &*SECP).err().map(|(_, errors)| errors).unwrap_or_default();
        signing.attach(RequestId::Input(0), psbt).map_err(|refusal| match refusal.code() {
            Code::SignatureMissing => {
                let details: Vec<_> = errors.iter().map(|(input, error)| format!("; input {input}: {error}")).collect();
                let reason = format!("the signer has no key for any input; it looks keys up by their key origins{}", details.concat());
                Refusal::new(Code::KeyMismatch, "").with_reason(reason)
            }
            _ => refusal,
        })
    }
}
