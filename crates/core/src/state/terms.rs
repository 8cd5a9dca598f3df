//! Terms as JSON, for a wallet's own interface: amounts are decimal strings in base units, accounts and hashes are text.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::evidence::HtlcTerms;
use crate::report::{Amount, OrderTerms, Timelock};

impl Serialize for Amount {
    /// Writes `{"base_units": "50000", "decimals": 8, "symbol": "wbtc"}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Amount", 3)?;
        object.serialize_field("base_units", &self.base_units.to_string())?;
        object.serialize_field("decimals", &self.decimals)?;
        object.serialize_field("symbol", &self.symbol)?;
        object.end()
    }
}

impl Serialize for Timelock {
    /// Writes `{"units": 7200, "unit": "blocks", "nominal_millis": 86400000}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Timelock", 3)?;
        object.serialize_field("units", &self.units)?;
        object.serialize_field("unit", self.unit())?;
        object.serialize_field("nominal_millis", &self.nominal_millis)?;
        object.end()
    }
}

impl Serialize for OrderTerms<'_> {
    /// Writes every field under its name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("OrderTerms", 15)?;
        object.serialize_field("order_id", self.order_id)?;
        object.serialize_field("family", self.family.name())?;
        object.serialize_field("pay", &self.pay)?;
        object.serialize_field("source", self.source)?;
        object.serialize_field("source_chain_title", self.source_chain_title)?;
        object.serialize_field("receive", &self.receive)?;
        object.serialize_field("destination", self.destination)?;
        object.serialize_field("destination_chain_title", self.destination_chain_title)?;
        object.serialize_field("payout", &self.payout)?;
        object.serialize_field("initiator", &self.initiator.map(ToString::to_string))?;
        object.serialize_field("redeemer", &self.redeemer.map(ToString::to_string))?;
        object.serialize_field("solver_id", &self.solver_id)?;
        object.serialize_field("timelock", &self.timelock)?;
        object.serialize_field("secret_hash", &self.secret_hash)?;
        object.serialize_field("record", &self.record)?;
        object.end()
    }
}

impl Serialize for HtlcTerms {
    /// Writes the terms that the contract stores, and where it is. What follows from the registry is left out.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("HtlcTerms", 11)?;
        object.serialize_field("chain", &self.chain)?;
        object.serialize_field("family", self.family.name())?;
        object.serialize_field("asset", &self.asset)?;
        object.serialize_field("htlc", &self.htlc.as_ref().map(ToString::to_string))?;
        object.serialize_field("token", &self.token)?;
        object.serialize_field("swap_id", &self.swap_id)?;
        object.serialize_field("initiator", &self.initiator.to_string())?;
        object.serialize_field("redeemer", &self.redeemer.to_string())?;
        object.serialize_field("amount", &self.amount.to_string())?;
        object.serialize_field("timelock", &self.timelock)?;
        object.serialize_field("secret_hash", &self.secret_hash)?;
        object.end()
    }
}
