//! A key behind an HTTP service of the team's own, for any family. It gets bytes and answers with text.
//!
//! The service should know what it signs, not only a digest: give it the documents of the order too, and have it verify them itself, with a
//! registry and a policy of its own.

use std::error::Error;

use countersign::{Signed, Unsigned};
use reqwest::{Client, Url};
use serde_json::json;

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 4096;

/// Posts what is not signed yet to `service`, and attaches each answer. `token` is what the service knows this wallet by.
///
/// | chain | the service signs | and answers, for example |
/// |---|---|---|
/// | EVM, Tron | the digest, by ECDSA over secp256k1 | `0x` and r, s, v in hex; r and s alone; DER in hex; `{"r": .., "s": .., "v": ..}`; `{"signature": .., "public_key": ..}` |
/// | Solana | the message, by Ed25519 | 64 bytes in base58, base64 or hex |
///
/// # Errors
///
/// What the connection fails with; `signature_mismatch`, `signature_malformed` or another code if the answer is not the owner's signature of
/// this request. The order keeps the signatures that it had before.
pub async fn sign(order: &mut Unsigned, client: &Client, service: &Url, token: &str) -> Result<(), Box<dyn Error>> {
    let missing = order.missing();
    for request in order.requests().into_iter().filter(|request| missing.contains(&request.id)) {
        let asked = json!({
            "id": request.id.name(),
            "signer": request.signer,
            "scheme": request.scheme.name(),
            "message": hex(&request.message),
            "digest": hex(&request.digest),
        });
        let mut answer = client.post(service.clone()).bearer_auth(token).json(&asked).send().await?.error_for_status()?;
        let mut text = Vec::new();
        while let Some(part) = answer.chunk().await? {
            if text.len() + part.len() > MAX_ANSWER {
                return Err("the answer is too long for a signature".into());
            }
            text.extend_from_slice(&part);
        }
        order.attach_text(request.id, str::from_utf8(&text)?)?;
    }
    Ok(())
}

/// Signs as [`sign`] does, and combines payloads and signatures.
///
/// # Errors
///
/// As [`sign`].
pub async fn signed(mut order: Unsigned, client: &Client, service: &Url, token: &str) -> Result<Signed, Box<dyn Error>> {
    sign(&mut order, client, service, token).await?;
    Ok(order.finish()?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}
