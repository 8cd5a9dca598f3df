//! Whether the swap contract will take the signature of a gasless message.

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use countersign_core::reader::{Ask, Equal, Fault, Identity, Judged, Known, Question, Replies, Reply, Request};
use countersign_core::{Code, Refusal};
use countersign_evm_core::signature;
use serde_json::json;

use super::block::LATEST;
use super::{MAX_ANSWER, OnChain, revert};
use crate::{SignedOrder, read};

/// The maximum length in bytes of an account's code. EIP-170 allows 24 kB, and some chains a multiple.
const MAX_CODE: usize = 1024 * 1024;
/// The first 4 bytes of the word that `isValidSignature` returns for a signature that it accepts (ERC-1271): its own selector.
const ACCEPTED: [u8; 4] = [0x16, 0x26, 0xba, 0x7e];

/// The signature of a gasless message, and who made it for which contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GaslessSignature {
    /// EIP-155 chain id of the contract.
    pub chain_id: u64,
    /// The account whose funds the contract takes.
    pub owner: Address,
    /// The contract that checks the signature.
    pub htlc: Address,
    /// The digest that was signed.
    pub digest: B256,
    /// The signature, exactly as it is submitted.
    pub signature: Bytes,
}

impl GaslessSignature {
    /// Returns the signature of a signed order; `None` if the order has no gasless message.
    #[must_use]
    pub fn of(order: &SignedOrder) -> Option<Self> {
        let payloads = order.payloads().payloads();
        let message = payloads.message.as_ref()?;
        let signature = message.signature.clone()?.into();
        let (chain_id, htlc) = (message.message.chain_id, message.message.verifying_contract);
        Some(Self { chain_id, owner: payloads.sender, htlc, digest: message.hashes.digest, signature })
    }
}

/// Checks that the contract will take the signature of a gasless message, before it is submitted.
///
/// The contract recovers a key only if the owner has no code. If it has code, of a contract wallet or delegated by EIP-7702, the contract
/// asks the owner (ERC-1271). The same question is asked here, in the contract's name, with the very signature.
pub type SignatureCheck = Ask<OnChain<GaslessSignature>>;

impl Question for OnChain<GaslessSignature> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let GaslessSignature { owner, htlc, digest, signature, .. } = &self.subject;
        let data = hex::encode_prefixed(read::is_valid_signature_call(*digest, signature));
        let asked = json!([{"from": htlc, "to": owner, "data": data}, LATEST]);
        vec![Request::json_rpc("eth_getCode", json!([owner, LATEST])), Request::json_rpc("eth_call", asked)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        let has_code = !replies.json(0)?.hex_bytes(MAX_CODE)?.is_empty();
        Ok(Judged(if has_code { accepted(&replies.get(1)?)? } else { self.subject.check_key() }))
    }
}

impl GaslessSignature {
    /// Requires a key's signature: nobody else can sign for an account without code.
    fn check_key(&self) -> Result<(), Refusal> {
        if signature::is_by_key(self.owner, &self.signature, &self.digest) {
            return Ok(());
        }
        Err(Refusal::new(Code::AccountNotDeployed, "").with_reason(signature::NO_CODE).with_actual(self.owner.to_string()))
    }
}

/// Whether an account has code: that of a contract wallet, or a delegate's (EIP-7702).
///
/// It is asked before a gasless message is signed: wallets put the signature of a deployed account into the wrapper of ERC-6492, too, and
/// only the chain tells whether it can be taken off ([`OwnerPath::with_code`](crate::OwnerPath::with_code)).
pub type CodeCheck = Ask<OnChain<CodeOf>>;

/// The account whose code is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an account")]
pub struct CodeOf(pub Address);

impl Question for OnChain<CodeOf> {
    type Output = Equal<bool>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![Request::json_rpc("eth_getCode", json!([self.subject.0, LATEST]))]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<bool>, Fault> {
        Ok(Equal(!replies.json(0)?.hex_bytes(MAX_CODE)?.is_empty()))
    }
}

/// Requires the answer that ERC-1271 defines for a valid signature.
fn accepted(reply: &Reply<'_>) -> Result<Result<(), Refusal>, Fault> {
    let refuse = |actual: String| Refusal::new(Code::ContractSignatureRefused, "").with_actual(actual);
    let expected = U256::from_be_slice(&ACCEPTED).wrapping_shl(224);
    match reply.json_or_error()? {
        Ok(cursor) => {
            let answer = cursor.hex_bytes(MAX_ANSWER)?;
            let is_accepted = answer.get(..32).is_some_and(|word| U256::from_be_slice(word) == expected);
            Ok(if is_accepted { Ok(()) } else { Err(refuse(hex::encode_prefixed(answer))) })
        }
        Err(error) => match revert(error) {
            Some(why) => Ok(Err(refuse(why))),
            None => Err(reply.fault()),
        },
    }
}
