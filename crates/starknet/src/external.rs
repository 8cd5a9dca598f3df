//! Calls for external wallets, which choose the nonce, the fees and the encoding of the calls themselves.
//!
//! [`VerifiedOrder::matches`](crate::VerifiedOrder) compares the transaction that such a wallet broadcast with the order.
//! [`InvokeTransaction::from_json`] parses the transaction as a node returns it.
//!
//! Specification: `docs/spec/starknet.md#signing`.

use countersign_core::json::{self, Cursor, Members};
use countersign_core::{ApprovalStep, Code, Refusal};
use serde::Serialize;
use serde::ser::Serializer;
use starknet_types_core::felt::Felt;

use crate::deposit::Deposit;
use crate::felt::{self, HexFelt, HexFelts};
use crate::htlc;
use crate::transaction::{Call, DataAvailabilityMode, InvokeTransaction, ResourceBound, ResourceBounds};

/// A call for `account.execute` of starknet.js.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExecuteCall {
    /// The contract that is called.
    #[serde(serialize_with = "serialize_felt")]
    pub contract_address: Felt,
    /// Name of the function, or its selector in hex.
    pub entrypoint: String,
    /// Arguments of the function.
    #[serde(serialize_with = "serialize_felts")]
    pub calldata: Vec<Felt>,
}

/// Parameters of `wallet_addInvokeTransaction` (the wallet API of get-starknet).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AddInvokeTransaction {
    /// The calls, in the order in which they are executed.
    pub calls: Vec<WalletCall>,
}

/// A call of `wallet_addInvokeTransaction`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WalletCall {
    /// The contract that is called.
    #[serde(serialize_with = "serialize_felt")]
    pub contract_address: Felt,
    /// Name of the function, or its selector in hex.
    pub entry_point: String,
    /// Arguments of the function.
    #[serde(serialize_with = "serialize_felts")]
    pub calldata: Vec<Felt>,
}

fn serialize_felt<S: Serializer>(felt: &Felt, serializer: S) -> Result<S::Ok, S::Error> {
    HexFelt(felt).serialize(serializer)
}

fn serialize_felts<S: Serializer>(felts: &[Felt], serializer: S) -> Result<S::Ok, S::Error> {
    HexFelts(felts).serialize(serializer)
}

/// Returns the name of a call's function, or its selector, which these interfaces accept too.
fn entry_point(call: &Call) -> String {
    htlc::name(call.selector).map_or_else(|| format!("{:#x}", call.selector), str::to_owned)
}

impl Deposit {
    /// Returns the calls for `account.execute` of starknet.js, which sends them in one transaction.
    ///
    /// ```
    /// # fn example(order: countersign::starknet::VerifiedOrder) -> Result<(), Box<dyn std::error::Error>> {
    /// let calls = serde_json::to_value(order.deposit().execute_calls(Default::default()))?;
    /// // await account.execute(calls)
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn execute_calls(&self, approval: ApprovalStep) -> Vec<ExecuteCall> {
        let calls = self.send(approval).into_iter();
        let calls = calls.map(|call| ExecuteCall { contract_address: call.to, entrypoint: entry_point(&call), calldata: call.calldata });
        calls.collect()
    }

    /// Returns the parameters of one `wallet_addInvokeTransaction` with all calls of the order.
    #[must_use]
    pub fn add_invoke_transaction(&self, approval: ApprovalStep) -> AddInvokeTransaction {
        let calls = self.send(approval).into_iter();
        let calls = calls.map(|call| WalletCall { contract_address: call.to, entry_point: entry_point(&call), calldata: call.calldata });
        AddInvokeTransaction { calls: calls.collect() }
    }
}

/// Why a transaction with a proof is refused, or with the facts of one.
pub(crate) const CARRIES_PROOF: &str =
    "the transaction carries a proof (SNIP-36), which no order needs: have the wallet send the calls without it";

impl InvokeTransaction {
    /// Parses the JSON of an invoke transaction of version 3: the parameter of `starknet_addInvokeTransaction`, or the result of
    /// `starknet_getTransactionByHash`. Other fields, such as `transaction_hash`, are ignored.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] for any other type or version; the codes of malformed JSON; [`Code::MissingField`];
    /// [`Code::WrongType`]; or the errors of [`felt::parse`].
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        Self::read(&Cursor::root(&json::parse(text)?, ""))
    }

    /// Reads a transaction, as [`from_json`](Self::from_json) does.
    pub(crate) fn read(root: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = root.object()?;
        for (key, expected) in [("type", "INVOKE"), ("version", "0x3")] {
            let cursor = members.need(key)?;
            if cursor.text()? != expected {
                return Err(cursor.refuse(Code::TransactionMismatch).with_expected(expected));
            }
        }
        // They are part of what is signed (SNIP-36), and no order needs any. Nodes write an empty list, or nothing.
        for key in ["proof_facts", "proof"] {
            if let Some(proof) = members.get(key).filter(|proof| !is_nothing(proof)) {
                return Err(proof.at().refuse(Code::TransactionMismatch).with_reason(CARRIES_PROOF));
            }
        }
        let bounds = members.need("resource_bounds")?;
        let bounds = bounds.object()?;
        Ok(Self {
            sender_address: felt::read(members.need("sender_address")?)?,
            calldata: read_felts(&members, "calldata")?,
            signature: read_felts(&members, "signature")?,
            nonce: felt::read(members.need("nonce")?)?,
            resource_bounds: ResourceBounds {
                l1_gas: read_bound(&bounds, "l1_gas")?,
                l2_gas: read_bound(&bounds, "l2_gas")?,
                l1_data_gas: read_bound(&bounds, "l1_data_gas")?,
            },
            tip: read_u64(members.need("tip")?)?,
            paymaster_data: read_felts(&members, "paymaster_data")?,
            account_deployment_data: read_felts(&members, "account_deployment_data")?,
            nonce_data_availability_mode: read_mode(&members, "nonce_data_availability_mode")?,
            fee_data_availability_mode: read_mode(&members, "fee_data_availability_mode")?,
        })
    }
}

/// Returns whether a member is null, an empty list or an empty text.
fn is_nothing(cursor: &Cursor<'_, '_>) -> bool {
    cursor.is_null() || cursor.array().is_ok_and(|items| items.len() == 0) || cursor.text().is_ok_and(str::is_empty)
}

fn read_felts(members: &Members<'_, '_>, key: &str) -> Result<Vec<Felt>, Refusal> {
    let cursor = members.need(key)?;
    cursor.array()?.map(|felt| felt::read(felt)).collect()
}

fn read_u64(cursor: Cursor<'_, '_>) -> Result<u64, Refusal> {
    u64::try_from(felt::read_u128(cursor)?).map_err(|_| cursor.refuse(Code::NumberTooLarge))
}

fn read_bound(members: &Members<'_, '_>, key: &str) -> Result<ResourceBound, Refusal> {
    let is_missing = |refusal: Refusal| {
        refusal.with_reason(
            "this resource bound is missing: read the transaction from another node, or have the wallet state all three bounds",
        )
    };
    let cursor = members.need(key).map_err(is_missing)?;
    let members = cursor.object()?;
    let (amount, price) = (members.need("max_amount")?, members.need("max_price_per_unit")?);
    Ok(ResourceBound::new(read_u64(amount)?, felt::read_u128(price)?))
}

fn read_mode(members: &Members<'_, '_>, key: &str) -> Result<DataAvailabilityMode, Refusal> {
    let cursor = members.need(key)?;
    DataAvailabilityMode::from_name(cursor.text()?).ok_or_else(|| cursor.refuse(Code::WrongType).with_expected("L1 or L2"))
}
