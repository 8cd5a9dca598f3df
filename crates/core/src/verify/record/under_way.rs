//! Rules on the record of an order under way: its times can be parsed, its transaction ids have their chain's form, and a secret
//! matches its hash.

use countersign_chains::transaction_id;

use super::Check;
use crate::json::number;
use crate::report::{Code, Refusal};
use crate::verify::Leg;
use crate::wire::{RecordTime, SecretHash};

impl Check<'_, '_> {
    /// Requires that a secret in the record matches its hash.
    pub(super) fn known_secrets(&self) -> Result<(), Refusal> {
        for leg in [Leg::Source, Leg::Destination] {
            let swap = self.swap(leg);
            let Some(secret) = &swap.secret else { continue };
            let text = secret.strip_prefix("0x").unwrap_or(secret);
            let is_right = || number::bare_hex_array(text).is_ok_and(|secret| SecretHash::of(&secret) == swap.secret_hash);
            if !text.is_empty() && !is_right() {
                return Err(self
                    .refuse_leg(Code::SecretWrong, leg, "secret")
                    .with_reason("the secret in the record does not match its secret hash"));
            }
        }
        Ok(())
    }

    /// Requires that every time in the record can be parsed: callers decide by them, and people read them before they sign.
    pub(super) fn times(&self) -> Result<(), Refusal> {
        let malformed = |time: &&RecordTime| !time.is_empty() && time.time().is_none();
        let record = self.record;
        for (member, time) in [("created_at", &record.created_at), ("deadline", &record.deadline)] {
            if let Some(time) = time.as_ref().filter(malformed) {
                return Err(self.refuse(Code::TimeMalformed, member).with_actual(time.as_str()));
            }
        }
        for leg in [Leg::Source, Leg::Destination] {
            let swap = self.swap(leg);
            let times = [
                ("initiate_timestamp", &swap.initiate_timestamp),
                ("redeem_timestamp", &swap.redeem_timestamp),
                ("refund_timestamp", &swap.refund_timestamp),
            ];
            for (member, time) in times {
                if let Some(time) = time.as_ref().filter(malformed) {
                    return Err(self.refuse_leg(Code::TimeMalformed, leg, member).with_actual(time.as_str()));
                }
            }
        }
        Ok(())
    }

    /// Requires that every transaction id has the form of its chain.
    pub(super) fn transaction_ids(&self) -> Result<(), Refusal> {
        for leg in [Leg::Source, Leg::Destination] {
            let swap = self.swap(leg);
            let family = self.asset(leg).chain.family();
            let ids = [
                ("initiate_tx_hash", &swap.initiate_tx_hash),
                ("redeem_tx_hash", &swap.redeem_tx_hash),
                ("refund_tx_hash", &swap.refund_tx_hash),
            ];
            for (member, id) in ids {
                if let Some(id) = id.as_ref().filter(|id| !transaction_id::is_well_formed(family, id)) {
                    let refusal = self.refuse_leg(Code::TransactionIdMalformed, leg, member);
                    return Err(refusal.with_expected(transaction_id::form(family)).with_actual(id));
                }
            }
        }
        Ok(())
    }
}
