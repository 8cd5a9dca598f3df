//! The call that pays affiliate earnings.
//!
//! A claim does not belong to an order. The address of the distributor contract comes from the service and is not pinned. The call
//! moves neither tokens nor coins of its sender, and pays `toAddress`, so a wrong contract costs no more than gas. It is not
//! documented what the distributor's signature covers, so only the chain can tell whether the contract accepts it.
//!
//! Specification: `docs/spec/evm.md#wallet-context`.

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::{SolCall, sol};
use countersign_core::chains::{Network, digits};
use countersign_core::json::At;
use countersign_core::wire::Earnings;
use countersign_core::{Code, Origin, Refusal, Registry, Role, SentBy, Summary, Topic, Warnings, family};

use crate::deposit::Call;
use crate::transaction::{EvmTransaction, TxContext, Unsigned};
use crate::{Evm, UnsignedOrder};

sol! {
    #[allow(missing_docs, reason = "the ABI itself is the documentation")]
    struct Rewards {
        address toAddress;
        address tokenAddress;
        uint256 totalRewards;
    }
    #[allow(missing_docs, reason = "the ABI itself is the documentation")]
    interface Distributor {
        function claim(Rewards rewards, bytes signature);
    }
}

/// Gas limit of the call. It covers the recovery of a signature, a few storage writes and one token transfer.
pub const GAS_LIMIT: u64 = 200_000;

/// A row of earnings, which the service lists.
const EARNINGS: At<'_> = At::of("", Origin::Service);

/// Length of the distributor's signature in bytes.
const SIGNATURE: usize = 65;

/// The claim of an affiliate's earnings, to which [`Claim::prepare`] adds a sender, a nonce and fees.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// EIP-155 chain id of the pinned asset.
    pub chain_id: u64,
    /// The call to the distributor contract.
    pub call: Call,
    /// The affiliate, who receives the tokens.
    pub to: Address,
    /// The pinned token.
    pub token: Address,
    /// All earnings so far, in base units of the token. The contract deducts what was claimed before.
    pub total_rewards: U256,
    /// The chain's name in asset ids.
    chain: String,
}

impl Claim {
    /// Returns the claim for one row of earnings; `None` if the row has neither a contract nor a signature.
    ///
    /// # Errors
    ///
    /// The location is the field of the row, which comes from the service. [`Code::UnknownAsset`]; [`Code::UnsupportedFamily`] for an asset of another family;
    /// [`Code::UnknownToken`] if the token is not the pinned one; [`Code::UnknownContract`] for a contract that cannot be a
    /// distributor; [`Code::MissingField`] if a field of the claim is missing; [`Code::AddressMalformed`],
    /// [`Code::AddressChecksum`] or [`Code::SignatureMalformed`].
    pub fn from_earnings(earnings: &Earnings, registry: &Registry) -> Result<Option<Self>, Refusal> {
        let refuse = |code, at: &str| EARNINGS.refuse_below(code, at);
        let (contract, signature) = match (&earnings.claim_contract, &earnings.claim_signature) {
            (None, None) => return Ok(None),
            (Some(contract), Some(signature)) => (contract, signature),
            (None, _) => return Err(refuse(Code::MissingField, "/claim_contract")),
            (_, None) => return Err(refuse(Code::MissingField, "/claim_signature")),
        };
        let asset =
            registry.asset(earnings.asset.as_str()).ok_or_else(|| refuse(Code::UnknownAsset, "/asset").with_actual(&earnings.asset))?;
        let Network::Evm(chain_id) = asset.chain.network else {
            return Err(refuse(Code::UnsupportedFamily, "/asset").with_expected("an EVM asset").with_actual(&earnings.asset));
        };
        let text = earnings.token_address.as_deref().ok_or_else(|| refuse(Code::MissingField, "/token_address"))?;
        let token = address(chain_id, text, "/token_address")?;
        let pinned = asset.token.as_ref().and_then(|token| crate::address::from_account(token.account.as_ref()?));
        if pinned != Some(token) {
            let expected = pinned.map_or_else(|| "a native asset has no token".to_owned(), |token| token.to_string());
            return Err(refuse(Code::UnknownToken, "/token_address").with_expected(expected).with_actual(text));
        }
        let to = address(chain_id, &earnings.affiliate, "/affiliate")?;
        let distributor = address(chain_id, contract, "/claim_contract")?;
        if distributor.is_zero() || distributor == token || distributor == to {
            return Err(refuse(Code::UnknownContract, "/claim_contract").with_expected("a distributor contract").with_actual(contract));
        }
        let signature = digits::bytes(signature.strip_prefix("0x").unwrap_or(signature))
            .ok()
            .filter(|bytes| bytes.len() == SIGNATURE)
            .ok_or_else(|| refuse(Code::SignatureMalformed, "/claim_signature").with_expected("65 bytes in hex"))?;
        let data = encode(to, token, earnings.total_earnings, &signature).into();
        let call = Call { to: distributor, data, value: U256::ZERO, gas_limit: GAS_LIMIT };
        let chain = asset.chain_name().to_owned();
        Ok(Some(Self { chain_id, call, to, token, total_rewards: earnings.total_earnings, chain }))
    }

    /// Prepares the transaction in which the sender makes the call: see [`TxContext::sent_by`]. The sender need not be the affiliate. The
    /// approvals and the gas limit of the context are not used.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain, [`Code::PriorityFeeAboveCap`], or
    /// [`Code::NonceLimit`].
    pub fn prepare(&self, context: SentBy<Address, TxContext>) -> Result<UnsignedOrder, Refusal> {
        let SentBy { sender, context: calls, .. } = context;
        calls.check(self.chain_id)?;
        let transaction = EvmTransaction::new(self.chain_id, calls.nonce, calls.fees, &self.call);
        let mut summary = Summary::default();
        let text = format!("claim of token {} pays {}, total earnings {} base units", self.token, self.to, self.total_rewards);
        summary.add_values(Topic::Payout, text, [crate::address::to_account(self.to).into(), self.total_rewards.into()]);
        let unsigned = Unsigned::new(sender, [(Role::Claim, transaction)], None);
        let recovered = family::Recovered { order_id: None, chain: self.chain.clone(), summary, unsigned, warnings: Warnings::default() };
        Ok(UnsignedOrder::from_recovery(recovered, Evm(())))
    }
}

/// Encodes the calldata of `claim((address,address,uint256),bytes)`.
///
/// | bytes | field |
/// |---|---|
/// | 0..4 | selector `ce2631b8` |
/// | 4..36 | `toAddress`, left-padded; the tuple is static, so its members are inline |
/// | 36..68 | `tokenAddress`, left-padded |
/// | 68..100 | `totalRewards`, big-endian, base units |
/// | 100..132 | offset of the signature, `0x80` |
/// | 132..164 | length of the signature in bytes |
/// | 164.. | the signature, padded with zeros to a whole word |
#[must_use]
pub fn encode(to: Address, token: Address, total_rewards: U256, signature: &[u8]) -> Vec<u8> {
    let rewards = Rewards { toAddress: to, tokenAddress: token, totalRewards: total_rewards };
    Distributor::claimCall { rewards, signature: Bytes::copy_from_slice(signature) }.abi_encode()
}

fn address(chain_id: u64, text: &str, at: &'static str) -> Result<Address, Refusal> {
    crate::address::parse(chain_id, text).map_err(|error| EARNINGS.refuse_below(error, at).with_actual(text))
}
