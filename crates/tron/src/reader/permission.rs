//! What the permissions of an account allow, as the chain has them.
//!
//! Nodes check this only when a transaction is sent: a payment that they refuse is lost time, and a redemption has shown the secret then.

use alloy_primitives::Address as AbiAddress;
use countersign_core::json::Cursor;
use countersign_core::reader::{Ask, Fault, Identity, Judged, Known, Question, Replies, Reply, Request};
use countersign_core::{Code, Refusal, number};
use countersign_evm_core::signers::Signers;

use super::{OnChain, coins_request, count, value};
use crate::address::read_any;
use crate::{Address, Permission, SignedTronTransaction, UnsignedOrder};

/// Who is to sign calls of an account, and under which of its permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    account: Address,
    /// 0 for the owner permission.
    id: u64,
    signers: Authorized,
}

/// The keys whose weights must reach the threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Authorized {
    /// The account's own key.
    Own,
    /// These keys, with the weights and the threshold that the wallet has named.
    Named(Signers),
    /// These keys have signed.
    Signed(Vec<AbiAddress>),
}

/// Checks that an account has a permission, that it allows contracts to be called, and that the keys which sign reach its threshold: see
/// [`Code::PermissionMismatch`]. Keys, weights and threshold that the wallet has named must be the chain's.
pub type AuthorityCheck = Ask<OnChain<Authority>>;

impl Authority {
    /// Creates the question for calls that an account signs under a permission. `None` is the owner permission with the owner's own key.
    #[must_use]
    pub fn new(account: Address, permission: Option<&Permission>) -> Self {
        let signers = permission.and_then(Permission::signers).map_or(Authorized::Own, Authorized::Named);
        Self { account, id: permission.map_or(0, |permission| permission.id.into()), signers }
    }

    /// Creates the question for what was prepared; `None` without a call, because the gasless message knows no permissions.
    pub(super) fn of_prepared(order: &UnsignedOrder) -> Option<Self> {
        let payloads = order.payloads();
        let id = payloads.calls.first()?.transaction.permission_id();
        let signers = payloads.signers().cloned().map_or(Authorized::Own, Authorized::Named);
        Some(Self { account: payloads.sender.into(), id: u64::try_from(id).unwrap_or(u64::MAX), signers })
    }

    /// Creates the question for a signed transaction; `None` if the account's own key has signed it under the owner permission, which every
    /// account begins with.
    #[must_use]
    pub fn of_signed(signed: &SignedTronTransaction) -> Option<Self> {
        let transaction = signed.transaction();
        let account = transaction.trigger.owner_address.as_slice().try_into().ok().and_then(Address::from_prefixed)?;
        let keys: Vec<_> = signed.signers().map(Address::bytes).collect();
        let id = u64::try_from(transaction.permission_id()).unwrap_or(u64::MAX);
        let is_plain = id == 0 && keys == [account.bytes()];
        (!is_plain).then_some(Self { account, id, signers: Authorized::Signed(keys) })
    }

    /// Returns how many keys have to sign each call: the fewest that reach the threshold.
    pub(super) fn keys(&self) -> usize {
        match &self.signers {
            Authorized::Own => 1,
            Authorized::Named(signers) => signers.fewest(),
            Authorized::Signed(keys) => keys.len(),
        }
    }

    /// Judges what `/wallet/getaccount` shows of the account.
    pub(super) fn judge(&self, reply: &Reply<'_>) -> Result<Result<(), Refusal>, Fault> {
        Ok(self.check(Held::find(self.id, &value(reply)?)?.as_ref()))
    }

    fn check(&self, held: Option<&Held>) -> Result<(), Refusal> {
        let refuse = |at: &str| Refusal::new(Code::PermissionMismatch, format!("/permission{at}"));
        // An account that has changed nothing, or does not exist yet, has its own key.
        let own = Held { threshold: 1, keys: vec![(self.account.bytes(), 1)], operations: None };
        let held = match held {
            Some(held) => held,
            None if self.id == 0 => &own,
            None => {
                let refusal = refuse("/id").with_actual(self.id);
                return Err(refusal.with_expected(format!("a permission of {}", self.account)));
            }
        };
        if self.id != 0 && !held.operations.as_ref().is_some_and(Permission::allows_calls) {
            let reason = "the permission does not allow contracts to be called (TriggerSmartContract)";
            return Err(refuse("/operations").with_reason(reason));
        }
        let weight_of = |key: AbiAddress| held.keys.iter().find(|(one, _)| *one == key).map_or(0, |(_, weight)| *weight);
        let keys: Vec<_> = match &self.signers {
            Authorized::Own => vec![self.account.bytes()],
            Authorized::Signed(keys) => keys.clone(),
            Authorized::Named(Signers { threshold, keys, .. }) => {
                for (index, (key, weight)) in keys.iter().enumerate() {
                    if weight_of(*key) != *weight {
                        let refusal = refuse(&format!("/keys/{index}")).with_actual(*weight).with_expected(weight_of(*key));
                        let reason = format!("the chain has another weight of the key of {}", Address::from(*key));
                        return Err(refusal.with_reason(reason));
                    }
                }
                if *threshold != held.threshold {
                    return Err(refuse("/threshold").with_actual(*threshold).with_expected(held.threshold));
                }
                keys.iter().map(|(key, _)| *key).collect()
            }
        };
        for (index, key) in keys.iter().enumerate() {
            if weight_of(*key) == 0 {
                let refusal = refuse(&format!("/keys/{index}")).with_actual(Address::from(*key));
                return Err(refusal.with_reason("the permission does not have this key"));
            }
        }
        let reached = keys.iter().fold(0_u64, |sum, key| sum.saturating_add(weight_of(*key)));
        if reached < held.threshold {
            let refusal = refuse("/threshold").with_actual(reached).with_expected(held.threshold);
            return Err(refusal.with_reason("the keys do not reach the threshold of the permission"));
        }
        Ok(())
    }
}

/// A permission as the chain has it.
struct Held {
    threshold: u64,
    keys: Vec<(AbiAddress, u64)>,
    /// Those of an active permission.
    operations: Option<[u8; 32]>,
}

impl Held {
    /// Finds a permission of an account; `None` if it has none with this id.
    fn find(id: u64, account: &Cursor<'_, '_>) -> Result<Option<Self>, Refusal> {
        let members = account.object()?;
        if id == 0 {
            return members.get("owner_permission").map(|owner| Self::read(&owner)).transpose();
        }
        let Some(active) = members.get("active_permission") else { return Ok(None) };
        for permission in active.array()? {
            if count(permission.object()?.get("id"))? == id {
                return Self::read(&permission).map(Some);
            }
        }
        Ok(None)
    }

    fn read(permission: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = permission.object()?;
        let read_key = |key: Cursor<'_, '_>| {
            let key = key.object()?;
            Ok::<_, Refusal>((read_any(key.need("address")?)?.bytes(), count(key.get("weight"))?))
        };
        let keys = members.need("keys")?.array()?.map(read_key).collect::<Result<_, _>>()?;
        let operations = members.get("operations").map(|text| number::bare_hex_array(text.text()?).map_err(|error| text.refuse(error)));
        Ok(Self { threshold: count(members.get("threshold"))?, keys, operations: operations.transpose()? })
    }
}

impl Question for OnChain<Authority> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![coins_request(self.subject.account)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        Ok(Judged(self.subject.judge(&replies.get(0)?)?))
    }
}
