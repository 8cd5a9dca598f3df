//! One order, opened: request, response and record are read and the assets pinned; nothing of the response is believed.

use std::sync::Arc;

use countersign_chains::{Account, Family, address};

use crate::code::Code;
use crate::json::{Node, Value};
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::registry::{Asset, Registry};
use crate::secret_hash::SecretHash;
use crate::summary::Warnings;
use crate::wire::{self, CreateOrder, OrderRecord, Read, Side};

/// Where the response's result stands.
const RESULT: &str = "/response/result";

/// Members of a result that carry a payload of some family, XRPL's among them, which this library does not build.
const PAYLOAD_KEYS: [&str; 13] = [
    "approval_transaction",
    "initiate_transaction",
    "transaction",
    "typed_data",
    "approval_call",
    "initiate_call",
    "versioned_tx",
    "versioned_tx_gasless",
    "ptb_bytes",
    "to",
    "amount",
    "escrow_create_tx",
    "escrow_create",
];

/// The parsed documents that an order is judged by.
///
/// Pointers of refusals begin with `/request`, `/response` and `/order`, whether the documents came in one line or each
/// in its own file.
#[derive(Debug, Clone, Copy)]
pub struct Documents<'d> {
    /// The wallet's create-order request.
    pub request: &'d Value<'d>,
    /// The service's answer, in its envelope.
    pub response: &'d Value<'d>,
    /// The order record, bare or in its envelope.
    pub order: Option<&'d Value<'d>>,
}

/// An opened order: what every family's rules start from.
#[derive(Debug)]
#[non_exhaustive]
pub struct Order<'d> {
    /// What the wallet asked for.
    pub request: CreateOrder,
    /// 64 hex digits, as they came.
    pub order_id: &'d str,
    /// The result, not yet read.
    pub result: Node<'d, 'd>,
    /// The order record, if there is one.
    pub record: Option<Box<OrderRecord>>,
    /// Pointer of the record: `/order`, or `/order/result` where it came in its envelope.
    pub record_at: &'static str,
    /// The pinned source asset.
    pub source: &'d Arc<Asset>,
    /// The pinned destination asset.
    pub destination: &'d Arc<Asset>,
    /// The source owner, `None` only on Bitcoin-like chains.
    pub owner: Option<Account>,
    /// The source delegate: an account, or an x-only key on Bitcoin-like chains.
    pub delegate: Option<Account>,
    /// Where the destination pays out.
    pub(crate) payout: Account,
    /// What is pinned.
    pub registry: &'d Registry,
    /// What is allowed.
    pub policy: &'d Policy,
}

/// The terms of the source side as the payload states them.
#[derive(Debug, Clone, PartialEq, Eq)]

pub struct Terms {
    /// Who funds, and gets refunds: on Bitcoin-like chains the x-only key.
    pub initiator: Account,
    /// Who redeems: on Bitcoin-like chains the x-only key.
    pub redeemer: Account,
    /// In the chain's own unit.
    pub timelock: u64,
    /// What locks both sides.
    pub secret_hash: SecretHash,
}

impl<'d> Order<'d> {
    /// Reads the documents and pins both assets.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member that is malformed, unknown or contradictory.
    pub fn open(documents: Documents<'d>, registry: &'d Registry, policy: &'d Policy) -> Result<Self, Refusal> {
        let request = CreateOrder::read(Node::root(documents.request, "/request"))?;
        let source = pinned(registry, &request.source, "/request/source/asset")?;
        let destination = pinned(registry, &request.destination, "/request/destination/asset")?;
        if source.record.id == destination.record.id {
            return Err(Refusal::new(Code::SameAsset, "/request/destination/asset").got(&destination.record.id));
        }
        if source.chain.test != destination.chain.test {
            let kind = |asset: &Asset| format!("{} ({} network)", asset.record.id, if asset.chain.test { "test" } else { "main" });
            return Err(Refusal::new(Code::MixedNetworks, "/request/destination/asset").expected(kind(source)).got(kind(destination)));
        }
        let owner = owner(source, &request.source, "/request/source/owner")?;
        let payout = owner_of_payout(destination, &request.destination)?;
        let delegate = match &request.source.delegate {
            Some(text) => Some(somebody(party(source, text, "/request/source/delegate")?, text, "/request/source/delegate")?),
            None => None,
        };

        let response = Node::root(documents.response, "/response");
        let order_id = wire::with_result(response, |result| {
            let members = result.object()?;
            let order_id = members.need("order_id")?;
            let text = order_id.text()?;
            if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
                Ok(text)
            } else {
                Err(order_id.refuse(Code::OrderIdMalformed))
            }
        })?;
        let result = response.object()?.need("result")?.value();

        let (record, record_at) = match documents.order.filter(|order| **order != Value::Null) {
            Some(order) => read_record(order).map(|(record, at)| (Some(Box::new(record)), at))?,
            None => (None, ""),
        };
        let result = Node::root(result, RESULT);
        Ok(Self { request, order_id, result, record, record_at, source, destination, owner, delegate, payout, registry, policy })
    }

    /// The family that signs for this order.
    #[must_use]
    pub fn family(&self) -> Family {
        self.source.chain.family()
    }

    /// Whether the source asset is its chain's own coin.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.source.token.is_none()
    }

    /// The account that the registry pins for the source asset in just this spelling: its HTLC, its token, a solver.
    #[must_use]
    pub fn pinned_as(&self, text: &str) -> Option<&Account> {
        let asset = self.source;
        let htlc = asset.record.htlc.as_ref().filter(|htlc| htlc.address == text).and(asset.htlc.as_ref());
        let token = || asset.token.as_ref().filter(|token| token.text == text)?.account.as_ref();
        let solver = || Some(&self.registry.solvers_of(&asset.chain.record.chain).iter().find(|solver| solver.address == text)?.account);
        htlc.or_else(token).or_else(solver)
    }

    /// Refuses the payload of another family beside the right one.
    pub(crate) fn check_payload_keys(&self, own: &[&str]) -> Result<(), Refusal> {
        let members = self.result.object()?;
        for key in PAYLOAD_KEYS.iter().filter(|key| !own.contains(key)) {
            if let Some(node) = members.get(key) {
                return Err(node.at().refuse(Code::MixedFamilies).expected(own.join(", ")).got(*key));
            }
        }
        Ok(())
    }

    /// Warnings that need only the request and the registry.
    pub(crate) fn check_request(&self, warnings: &mut Warnings) {
        if self.request.secret_hash.is_none() {
            warnings.warn(Code::SecretNotYours);
        }
        if self.record.is_none() {
            warnings.warn(Code::NoOrderRecord);
        }
        for (asset, side) in [(self.source, &self.request.source), (self.destination, &self.request.destination)] {
            if !asset.takes(side.amount) {
                warnings.about(Code::AmountOutsideLimits, format!("{} base units of {}", side.amount, asset.record.id));
            }
        }
    }
}

fn pinned<'d>(registry: &'d Registry, side: &Side, at: &str) -> Result<&'d Arc<Asset>, Refusal> {
    if let Some(asset) = registry.asset(side.asset.as_str()) {
        return Ok(asset);
    }
    let code = registry.family(side.asset.chain()).map_or(Code::UnknownChain, |_| Code::UnknownAsset);
    Err(Refusal::new(code, at).got(&side.asset))
}

fn party(asset: &Asset, text: &str, at: &str) -> Result<Account, Refusal> {
    address::parse_party(&asset.chain.network, text).map_err(|error| bad_address(error, text, at))
}

/// The refusal of a text that is no address of its network.
#[must_use]
pub fn bad_address(error: address::AddressError, text: &str, at: &str) -> Refusal {
    let code = match error {
        address::AddressError::Checksum => Code::AddressChecksum,
        address::AddressError::OtherNetwork => Code::AddressNetwork,
        _ => Code::AddressMalformed,
    };
    Refusal::new(code, at).because(error.to_string()).got(text)
}

/// Nobody has the zero address: what is refunded or paid there is lost.
fn somebody(account: Account, text: &str, at: &str) -> Result<Account, Refusal> {
    if account.is_zero() {
        return Err(Refusal::new(Code::AddressMalformed, at).because("nobody owns the zero address").got(text));
    }
    Ok(account)
}

fn address_of(asset: &Asset, text: &str, at: &str) -> Result<Account, Refusal> {
    let account = address::parse(&asset.chain.network, text).map_err(|error| bad_address(error, text, at))?;
    somebody(account, text, at)
}

/// Optional on Bitcoin-like chains, where the refund goes to a key.
fn owner(asset: &Asset, side: &Side, at: &str) -> Result<Option<Account>, Refusal> {
    match &side.owner {
        Some(text) => address_of(asset, text, at).map(Some),
        None if asset.chain.family() == Family::Bitcoin => Ok(None),
        None => Err(Refusal::new(Code::MissingField, at)),
    }
}

/// Never optional: without it nothing would tell where the order pays out.
fn owner_of_payout(asset: &Asset, side: &Side) -> Result<Account, Refusal> {
    const AT: &str = "/request/destination/owner";
    if let Some(delegate) = &side.delegate {
        if matches!(asset.chain.family(), Family::Tron | Family::Solana | Family::Sui) {
            return Err(Refusal::new(Code::DelegateNotSupported, "/request/destination/delegate").got(delegate));
        }
        party(asset, delegate, "/request/destination/delegate")?;
    }
    let text = side.owner.as_deref().ok_or_else(|| Refusal::new(Code::MissingField, AT))?;
    address_of(asset, text, AT)
}

/// Reads the record, bare or in its envelope.
fn read_record(order: &Value<'_>) -> Result<(OrderRecord, &'static str), Refusal> {
    let node = Node::root(order, "/order");
    let members = node.object()?;
    if members.get("source_swap").is_none() && members.get("result").is_some() {
        return wire::with_result(node, OrderRecord::read).map(|record| (record, "/order/result"));
    }
    OrderRecord::read(node).map(|record| (record, "/order"))
}
