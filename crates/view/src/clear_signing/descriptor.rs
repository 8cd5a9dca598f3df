//! The members of a descriptor that are written, in the order in which they are written.

use std::collections::BTreeMap;

use countersign::evm::alloy_primitives::Address;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// The schema of descriptors of version 2. Tools recognise the version by it.
const SCHEMA: &str = "https://eips.ethereum.org/assets/eip-7730/erc7730-v2.schema.json";

pub(super) struct Descriptor<'a> {
    pub(super) context: Context<'a>,
    pub(super) metadata: Metadata,
    pub(super) display: Formats,
}

/// The formats by function signature or encoded type, sorted.
pub(super) type Formats = BTreeMap<String, Format>;

impl Descriptor<'_> {
    pub(super) fn to_json(&self) -> String {
        // Texts and numbers can always be written to memory.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }
}

impl Serialize for Descriptor<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Display<'f> {
            formats: &'f Formats,
        }
        let mut members = serializer.serialize_struct("Descriptor", 4)?;
        members.serialize_field("$schema", SCHEMA)?;
        members.serialize_field("context", &self.context)?;
        members.serialize_field("metadata", &self.metadata)?;
        members.serialize_field("display", &Display { formats: &self.display })?;
        members.end()
    }
}

/// What a descriptor binds to. It applies to nothing else.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Context<'a> {
    Contract { deployments: [Deployment; 1] },
    Eip712 { deployments: [Deployment; 1], domain: Domain<'a> },
}

impl<'a> Context<'a> {
    pub(super) fn contract(chain_id: u64, address: Address) -> Self {
        Self::Contract { deployments: [Deployment { chain_id, address: address.to_string() }] }
    }

    pub(super) fn eip712(domain: Domain<'a>) -> Self {
        Self::Eip712 { deployments: [Deployment { chain_id: domain.chain_id, address: domain.verifying_contract.clone() }], domain }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Deployment {
    chain_id: u64,
    address: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Domain<'a> {
    pub(super) name: &'static str,
    /// `None` matches every version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<&'a str>,
    pub(super) chain_id: u64,
    pub(super) verifying_contract: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) contract_name: &'static str,
    /// The token that the contract itself is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<Token>,
}

#[derive(Serialize)]
pub(super) struct Token {
    pub(super) name: String,
    pub(super) ticker: String,
    pub(super) decimals: u8,
}

/// How one function or message is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Format {
    pub(super) intent: &'static str,
    /// A sentence. A wallet replaces each path in braces with the formatted value of that field.
    pub(super) interpolated_intent: &'static str,
    pub(super) fields: Vec<Field>,
}

#[derive(Clone, Serialize)]
pub(super) struct Field {
    pub(super) path: &'static str,
    pub(super) label: &'static str,
    pub(super) format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Params>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) visible: Option<MustMatch>,
}

/// The values of a field that is not shown. With any other value, a wallet must not show the call as one that it understands.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MustMatch {
    pub(super) must_match: Vec<String>,
}

/// Parameters of a field's format.
#[derive(Clone, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum Params {
    /// `addressName`: what the address can be.
    Address { types: &'static [&'static str] },
    /// `tokenAmount` of a token, or of the chain's own coin if both members are its stand-in.
    Amount {
        token: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        native_currency_address: Option<String>,
    },
    /// `tokenAmount` of the token at a path; from the threshold on, the message takes the place of the number.
    Allowance { token_path: &'static str, threshold: String, message: &'static str },
    /// `unit`
    Unit { base: &'static str },
}
