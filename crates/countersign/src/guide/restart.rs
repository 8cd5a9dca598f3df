//! Surviving a restart: keep the documents, the wallet context and the signatures.
//!
//! A signer that is not connected may take hours or days: an air-gapped device that shows QR codes, several owners one after another, a
//! person who comes back tomorrow. Until then the wallet may be closed. The states of an order are proofs, so they cannot be read from a
//! file: whoever can write the file could forge a proof. Store what they were made from instead, and take the same steps again:
//!
//! | store | form | secret |
//! |---|---|---|
//! | request, response, record | the documents as they are | no |
//! | wallet context | [`Serialize`](serde::Serialize) and `Deserialize`, in each family, [with the field names as members](super::wallets#as-json): also a later version of this library reads it | no |
//! | signatures | `signatures()`: for each signature the stable id of its request, and the text that `attach_text` takes | no |
//!
//! The same documents and the same context give the same bytes to sign. A signature is proven again when it is attached, so a
//! changed file is refused. Starknet proves signatures of two felts only if the context has the account's public key.
//!
//! The context fixes nonce, fees or blockhash. If the chain has moved on meanwhile, prepare with a new context and ask for new signatures.
//!
#![cfg_attr(feature = "evm", doc = "```")]
#![cfg_attr(not(feature = "evm"), doc = "```ignore")]
//! use countersign::evm::{self, FundingPath, TxContext, UnsignedOrder};
//! use countersign::{CreateOrder, Policy, Proposal, Registry};
//!
//! /// Verifies and prepares the order: the same steps before and after a restart.
//! fn prepared(
//!     context: FundingPath<TxContext>,
//! ) -> Result<UnsignedOrder, Box<dyn std::error::Error>> {
//!     let registry: Registry = include_str!("../../doc/registry.json").parse()?;
//!     let request: CreateOrder = include_str!("../../doc/request.json").parse()?;
//!     let response = include_str!("../../doc/response.json");
//!     let proposal = Proposal::new(&request, response.as_bytes());
//!     Ok(evm::verify(proposal, &registry, &Policy::default())?.prepare(context)?)
//! }
//!
//! // The wallet shows the requests as QR codes. The first answer arrives, and then the
//! // wallet is closed.
//! let context = FundingPath::Both(TxContext::eip1559(891, 30_000_000_000, 1_000_000_000));
//! let mut unsigned = prepared(context.clone())?;
//! # let device: evm::Key = "0xf9900aa163b64dbaeb472abe7d918ada7c5a7b5021ab3f2bc709a3758da94fd8".parse()?;
//! # let mut answers = Vec::new();
//! # for request in unsigned.requests() {
//! #     let signature = device.sign(&evm::alloy_primitives::B256::from_slice(&request.digest))?;
//! #     answers.push((request.id, evm::ExternalSignature::from(signature).to_string()));
//! # }
//! unsigned.attach_text(answers[0].0, &answers[0].1)?;
//! let kept_context = serde_json::to_string(&context)?;
//! let kept_signatures = serde_json::to_string(&unsigned.signatures())?;
//!
//! // After the restart: verify, prepare, attach. Then the other answers arrive.
//! let mut unsigned = prepared(serde_json::from_str(&kept_context)?)?;
//! for (id, signature) in serde_json::from_str::<Vec<(String, String)>>(&kept_signatures)? {
//!     unsigned.attach_text(id.parse()?, &signature)?;
//! }
//! for (id, answer) in &answers[1..] {
//!     assert!(unsigned.missing().contains(id));
//!     unsigned.attach_text(*id, answer)?;
//! }
//! assert_eq!(unsigned.finish()?.transactions().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
