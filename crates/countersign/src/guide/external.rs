//! External wallets: they sign what they are given, or choose nonce and fees themselves, and the result is proven.
//!
//! | the wallet | what it gets | what comes back | where it goes |
//! |---|---|---|---|
//! | signs a payload: hardware module, remote service, multisig | [`requests`](crate::UnsignedOrder::requests): native payload, message, digest | a signature | [`attach`](crate::UnsignedOrder::attach) with the request's id, or [`sign_with_fn`](crate::UnsignedOrder::sign_with_fn) for all |
//! | the same, over text (QR codes, files, JSON) | the same | text in [one of the family's forms](#what-goes-out-and-comes-back-by-family) | [`attach_text`](crate::UnsignedOrder::attach_text) |
//! | signs a PSBT | the `psbt` of the payload | the signed PSBT | `attach` under any input's id: it has the signatures of all inputs |
//! | returns the signed transaction: `eth_signTransaction`, Solana wallets, PSBT devices | the same | its bytes | [`attach_transaction`](crate::UnsignedOrder::attach_transaction), which takes all signatures |
//! | sends by itself: browser, mobile, WalletConnect | the calls of the [`deposit`](crate::VerifiedOrder::deposit) | a transaction | [`matches`](crate::VerifiedOrder::matches) with the native type, [`matches_bytes`](crate::VerifiedOrder::matches_bytes) with bytes |
//! | sends a bundle of calls (EIP-5792) | `send_calls` | the status of the calls | `find_payment` |
//! | has another account send: a relay, a bundler, the owners of a Safe, the members of a multisig | the same | what the transaction did | `find_payment`: see [`accounts`](crate::guide::accounts) |
//!
//! A signature is proven before it is attached, and a wrong one changes nothing. A transaction from outside may have another nonce, fee,
//! blockhash or gas. Everything else must equal what was verified; the answer is the [`Role`](crate::Role) of the transaction in the order.
//! [`match_with_warnings`](crate::VerifiedOrder::match_with_warnings) also says what a wallet changed although it may: on EVM and Tron a
//! larger approval, or bytes that it appended to the calldata; on Solana assertions that stop a transaction with another effect.
//!
//! # A signer without an adapter
//!
//! A closure signs every request that has no signature yet. It works with each version of each SDK, because it returns only bytes:
//!
#![cfg_attr(feature = "solana", doc = "```")]
#![cfg_attr(not(feature = "solana"), doc = "```ignore")]
//! use countersign::{SignerError, solana};
//!
//! /// Signs with a device that knows nothing of this library: message in, 64 bytes out.
//! fn sign<E>(
//!     unsigned: &mut solana::UnsignedOrder,
//!     device: impl Fn(&[u8]) -> Result<[u8; 64], E>,
//! ) -> Result<(), SignerError<E>> {
//!     unsigned.sign_with_fn(|request| device(&request.message))
//! }
//! ```
//!
//! If a signer takes its time, hand out the requests now, and attach each signature under the id of its request when it arrives.
//! [`Unsigned`](crate::Unsigned), the enum over all families, has `attach_text` alone:
//!
//! ```
//! use countersign::{Refusal, RequestId, Signed, Unsigned};
//!
//! /// Returns the content of the QR codes: the stable id of each request, and the bytes to
//! /// sign.
//! fn shown(unsigned: &Unsigned) -> Vec<(RequestId, Vec<u8>)> {
//!     unsigned.requests().into_iter().map(|request| (request.id, request.message)).collect()
//! }
//!
//! /// Attaches what was scanned. A signature that does not fit its request is refused, and
//! /// the others stay attached.
//! fn scanned(
//!     mut unsigned: Unsigned,
//!     answers: &[(RequestId, String)],
//! ) -> Result<Signed, Refusal> {
//!     for (id, signature) in answers {
//!         unsigned.attach_text(*id, signature)?;
//!     }
//!     Ok(unsigned.finish()?)
//! }
//! ```
//!
//! # Signers of teams
//!
//! A service holds the key, and no program of the team has it. `examples/team-signers` in the repository has a file to copy for each,
//! and tests it with the test double of its own library, which holds a published key:
//!
//! | the key is in | by | the order gets the signature through | the answer of another key, or over something else |
//! |---|---|---|---|
//! | AWS KMS | `alloy-signer-aws` | `sign_with_async` | `key_mismatch` before anything is signed; a wrong signature is the library's own error |
//! | Google Cloud KMS | `alloy-signer-gcp` | `sign_with_async` | the same |
//! | Turnkey | `alloy-signer-turnkey` | `sign_with_async` | `signature_mismatch` |
//! | Vault, AWS KMS, Turnkey, Fireblocks and others, for Solana | `solana-keychain` | `requests` and `attach` | `signature_mismatch` |
//! | an HTTP service of the team's own, for any family | HTTP and text | `requests` and `attach_text` | `signature_mismatch`; `signature_malformed` for text that is not a signature |
//!
//! A key service returns DER without a recovery id, and a high s half of the time. Either way the order gets the bytes that the key itself would
//! have signed. What is checked is the signature, not the service: a service that should refuse an order needs its documents, and verifies them
//! with a registry and a policy of its own.
//!
//! Contract wallets, such as a Safe, sign by their code: `ExternalSignature::contract` of the EVM family takes their signatures, and the npm
//! package has adapters for them (`countersign/contract-wallet`): see [`accounts`](crate::guide::accounts).
//!
//! # A PSBT
//!
//! The PSBT of an order has key origins (`TxContext::with_origins`) and previous transactions, so that hardware signers find their keys.
//! Pass what the signer returns back as it is, in bytes through `attach_transaction`, or in base64 or hex through `attach_text`. It may be a
//! PSBT of version 0 or 2, finalized or not, or the signed transaction:
//!
#![cfg_attr(feature = "bitcoin", doc = "```")]
#![cfg_attr(not(feature = "bitcoin"), doc = "```ignore")]
//! use countersign::bitcoin::{UnsignedOrder, bitcoin::Psbt};
//! use countersign::{Refusal, RequestId};
//!
//! fn pay(
//!     unsigned: &mut UnsignedOrder,
//!     device: impl Fn(&Psbt) -> Psbt,
//! ) -> Result<(), Refusal> {
//!     match unsigned.requests().into_iter().next() {
//!         Some(request) => {
//!             unsigned.attach(RequestId::Input(0), device(&request.payload.psbt))
//!         }
//!         None => Ok(()), // nothing is missing
//!     }
//! }
//! ```
//!
//! A wallet that makes the payment itself gets `deposit().uri()`. `deposit().matches_psbt` compares its PSBT before anybody signs.
//!
//! # A browser wallet (EIP-1193)
//!
//! It chooses nonce and fees, signs and sends. The transaction that the chain then has is compared with the order:
//!
#![cfg_attr(feature = "evm", doc = "```")]
#![cfg_attr(not(feature = "evm"), doc = "```ignore")]
//! use countersign::evm::{ApprovalStep, VerifiedOrder, received};
//! use countersign::{Refusal, Role};
//! use serde_json::{Value, json};
//!
//! /// `request` is `provider.request`: method and parameters in, the answer out.
//! fn pay(
//!     order: &VerifiedOrder,
//!     request: impl Fn(&str, Value) -> Value,
//! ) -> Result<Vec<Role>, Refusal> {
//!     let mut done = Vec::new();
//!     for call in order.deposit().send_transactions(ApprovalStep::Exact) {
//!         let hash = request("eth_sendTransaction", json!([call]));
//!         let sent = request("eth_getTransactionByHash", json!([hash]));
//!         done.push(order.matches(&received::from_json(sent.to_string().as_bytes())?)?);
//!     }
//!     Ok(done)
//! }
//! ```
//!
//! If the account is a Safe, send `call.without_gas()`: a Safe signs the gas limit. Its answer is the hash of a Safe transaction, which no
//! node knows, so take the next section's way.
//!
//! # A bundle of calls (EIP-5792)
//!
//! One request contains the approval and the payment. The wallet chooses the form in which a bundle reaches the chain, so the payment is
//! proven by its effect: the contract's event with this order's swap id. `with_capabilities` passes on what the wallet
//! may use, such as a paymaster.
//!
#![cfg_attr(feature = "evm", doc = "```")]
#![cfg_attr(not(feature = "evm"), doc = "```ignore")]
//! use countersign::Refusal;
//! use countersign::evm::{ApprovalStep, VerifiedOrder, received};
//! use serde_json::{Value, json};
//!
//! /// Returns the hash of the transaction that paid. A wallet that cannot bundle calls may
//! /// send them one after the other.
//! fn pay(
//!     order: &VerifiedOrder,
//!     request: impl Fn(&str, Value) -> Value,
//! ) -> Result<String, Refusal> {
//!     let calls = order.deposit().send_calls(ApprovalStep::Exact).without_atomicity();
//!     let answer = request("wallet_sendCalls", json!([calls]));
//!     // Version 2.0.0 of the method answers with an object. Older wallets answer with the
//!     // id alone.
//!     let id = answer.get("id").unwrap_or(&answer);
//!     let status = request("wallet_getCallsStatus", json!([id]));
//!     Ok(order
//!         .deposit()
//!         .find_payment(&received::calls_status(status.to_string().as_bytes())?)?
//!         .to_string())
//! }
//! #
//! # // A provider of version 2.0.0 and an older one, both of which know one id.
//! # fn provider(answer: Value) -> impl Fn(&str, Value) -> Value {
//! #     move |method, params| match method {
//! #         "wallet_sendCalls" => answer.clone(),
//! #         _ => { assert_eq!(params, json!(["0x01"])); json!({ "chainId": "0x1", "status": 100 }) }
//! #     }
//! # }
//! # let _ = |order: &VerifiedOrder| (pay(order, provider(json!({ "id": "0x01" }))), pay(order, provider(json!("0x01"))));
//! ```
//!
//! Wallets that bundle nothing may give no receipts. A receipt of a node (`eth_getTransactionReceipt`) is read by
//! [`received::receipt`](crate::evm::received::receipt), whoever sent the transaction.
//!
//! This is only what the wallet's provider states. The reader of the source leg shows whether the payment is on chain and final: see
//! [`swaps`](crate::guide::swaps).
//!
//! # What goes out and comes back, by family
//!
//! The page of each family has a table of what its `deposit()` gives to a wallet, and of the forms in which signatures and transactions come
//! back: [`evm`](crate::evm#external-wallets), [`tron`](crate::tron#external-wallets), [`starknet`](crate::starknet#external-wallets),
//! [`solana`](crate::solana#external-wallets), [`sui`](crate::sui#external-wallets), [`bitcoin`](crate::bitcoin#external-wallets). Its module
//! `received` reads a signed transaction in the forms in which wallets and nodes return it.
//!
//! Specification: `docs/spec/batch.md#external-transactions`.
