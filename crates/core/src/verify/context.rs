//! An opened order: request, response and record are parsed, and both assets are found in the registry. Nothing in the response is
//! trusted yet.

use std::borrow::Cow;
use std::sync::Arc;

use countersign_chains::{Account, BUSY_FEE_RATE, Family, Network, UnixTime, address};
use ruint::aliases::U256;

use crate::json::{self, At, Cursor, Value};
use crate::report::{Code, Origin, Refusal, Warnings};
use crate::trust::{Asset, ContractKind, Policy, Registry};
use crate::wire::{self, CreateOrder, OrderRecord, RequestedLeg, SecretHash};

/// Where the response's result is.
const RESULT: At<'static> = At::of("/response/result", Origin::Service);

/// Members of a result that carry a payload of some family. Those of XRPL are included, although this library does not support it.
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

/// The documents of an order: the wallet's request, the service's response, and the order record.
///
/// ```
/// use countersign::{AssetId, CreateOrder, Proposal, U256, wire::RequestedLeg};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let request = CreateOrder::new(
///     RequestedLeg::new(
///         "ethereum:usdc".parse()?,
///         "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
///         U256::from(5_000_000),
///     ),
///     RequestedLeg::new(
///         "bitcoin:btc".parse()?,
///         "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
///         U256::from(4_900),
///     ),
/// );
/// let response = br#"{"status":"Ok","result":{"order_id":"..."}}"#;
/// let proposal = Proposal::new(&request, response);
/// # let _ = proposal;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Proposal<'d> {
    request: Cow<'d, CreateOrder>,
    response: Document<'d>,
    record: Option<Document<'d>>,
    now: Option<UnixTime>,
}

/// A document as the caller has it.
#[derive(Debug, Clone, Copy)]
enum Document<'d> {
    Text(&'d [u8]),
    Parsed(&'d Value<'d>),
}

impl<'d> Proposal<'d> {
    /// Creates a proposal from a request and the body of the service's response, in its envelope.
    #[must_use]
    pub const fn new(request: &'d CreateOrder, response: &'d [u8]) -> Self {
        Self { request: Cow::Borrowed(request), response: Document::Text(response), record: None, now: None }
    }

    /// Adds the order record, bare or in its envelope. Without it the destination leg is not checked, which is a warning.
    #[must_use]
    pub const fn with_record(mut self, record: &'d [u8]) -> Self {
        self.record = Some(Document::Text(record));
        self
    }

    /// Creates a proposal from parsed documents, for adapters that read all of them from one text.
    #[must_use]
    pub fn from_parsed(request: CreateOrder, response: &'d Value<'d>, record: Option<&'d Value<'d>>) -> Self {
        Self { request: Cow::Owned(request), response: Document::Parsed(response), record: record.map(Document::Parsed), now: None }
    }

    /// Sets the current time. An order whose record leaves no time to pay is then refused. Without the time, the
    /// deadline is only shown.
    ///
    /// The time must be right: a clock that is behind accepts an order that has expired.
    #[must_use]
    pub const fn at_time(mut self, now: UnixTime) -> Self {
        self.now = Some(now);
        self
    }

    /// Returns the request.
    #[must_use]
    pub fn request(&self) -> &CreateOrder {
        &self.request
    }

    /// Parses the documents, finds both assets in the registry, and calls `then` with the opened order.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member that is malformed, unknown or contradictory, or the refusal of `then`.
    pub fn open<T>(
        self,
        registry: &Registry,
        policy: &Policy,
        then: impl FnOnce(OrderContext<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let Self { request, response, record, now } = self;
        let (parsed_response, parsed_record);
        let response = match response {
            Document::Parsed(value) => value,
            Document::Text(text) => {
                parsed_response = json::parse(text).map_err(|refusal| refusal.within(&At::RESPONSE))?;
                &parsed_response
            }
        };
        let record = match record {
            Some(Document::Parsed(value)) => Some(value),
            Some(Document::Text(text)) => {
                parsed_record = json::parse(text).map_err(|refusal| refusal.within(&At::RECORD))?;
                Some(&parsed_record)
            }
            None => None,
        };
        let mut order = OrderContext::open(request, response, record, registry, policy)?;
        order.now = now;
        then(order)
    }
}

/// An opened order, on which every family's rules are checked.
#[derive(Debug)]
#[non_exhaustive]
pub struct OrderContext<'d> {
    /// What the wallet asked for.
    pub request: Cow<'d, CreateOrder>,
    /// The order id: 64 hex digits, in the letter case of the response.
    pub order_id: &'d str,
    /// The `result` of the response, not yet decoded.
    pub result: Cursor<'d, 'd>,
    /// The order record, if one was given.
    pub record: Option<Box<OrderRecord>>,
    /// Location of the record: `/order`, or `/order/result` if it came in its envelope.
    pub record_at: At<'static>,
    /// The pinned source asset.
    pub source: &'d Arc<Asset>,
    /// The pinned destination asset.
    pub destination: &'d Arc<Asset>,
    /// The source owner, `None` only on Bitcoin-like chains.
    pub owner: Option<Account>,
    /// The source delegate: an account, or an x-only key on Bitcoin-like chains.
    pub delegate: Option<Account>,
    /// The account that the destination pays.
    pub(crate) payout: Account,
    /// The current time, if the caller gave it.
    pub(crate) now: Option<UnixTime>,
    /// The wallet's registry.
    pub registry: &'d Registry,
    /// The wallet's policy.
    pub policy: &'d Policy,
}

/// The terms of the source leg, as the payload states them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "every family fills in every term")]
pub struct SwapTerms {
    /// Who funds, and gets refunds: on Bitcoin-like chains the x-only key.
    pub initiator: Account,
    /// Who redeems: on Bitcoin-like chains the x-only key.
    pub redeemer: Account,
    /// The timelock, in the chain's own unit: blocks, slots or milliseconds.
    pub timelock: u64,
    /// The secret hash, which locks both legs.
    pub secret_hash: SecretHash,
}

impl<'d> OrderContext<'d> {
    /// Reads the documents and finds both assets in the registry.
    fn open(
        request: Cow<'d, CreateOrder>,
        response: &'d Value<'d>,
        record: Option<&'d Value<'d>>,
        registry: &'d Registry,
        policy: &'d Policy,
    ) -> Result<Self, Refusal> {
        request.check_numbers()?;
        let source = pinned(registry, &request.source, "/source/asset")?;
        let destination = pinned(registry, &request.destination, "/destination/asset")?;
        if source.record.id == destination.record.id {
            return Err(At::REQUEST.refuse_below(Code::SameAsset, "/destination/asset").with_actual(&destination.record.id));
        }
        if source.chain.test != destination.chain.test {
            let kind = |asset: &Asset| format!("{} ({} network)", asset.record.id, if asset.chain.test { "test" } else { "main" });
            return Err(At::REQUEST
                .refuse_below(Code::MixedNetworks, "/destination/asset")
                .with_expected(kind(source))
                .with_actual(kind(destination)));
        }
        let owner = owner(source, &request.source, "/source/owner")?;
        let payout = owner_of_payout(destination, &request.destination)?;
        check_payout(registry, destination, &payout)?;
        let delegate = match &request.source.delegate {
            Some(text) => Some(somebody(party(source, text, "/source/delegate")?, text, "/source/delegate")?),
            None => None,
        };

        let response = Cursor::new(response, At::RESPONSE);
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

        let (record, record_at) = match record.filter(|record| **record != Value::Null) {
            Some(record) => read_record(record).map(|(record, at)| (Some(Box::new(record)), at))?,
            None => (None, At::RECORD),
        };
        let result = Cursor::new(result, RESULT);
        Ok(Self { request, order_id, result, record, record_at, source, destination, owner, delegate, payout, now: None, registry, policy })
    }

    /// Returns the family that signs for this order.
    #[must_use]
    pub fn family(&self) -> Family {
        self.source.chain.family()
    }

    /// Returns whether the source asset is its chain's own coin.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.source.token.is_none()
    }

    /// Parses a party of a swap record on an asset's chain: see [`address::parse_party`].
    ///
    /// # Errors
    ///
    /// As [`address::parse_party`].
    pub fn parse_party(&self, asset: &Asset, text: &str) -> Result<Account, address::AddressError> {
        match self.requested_owner(asset, text) {
            Some(owner) => Ok(owner.clone()),
            None => address::parse_party_unless_known(&asset.chain.network, text, &|key| self.is_known_key(asset, key)),
        }
    }

    /// Returns the account of a requested owner on an asset's chain, if this is its text: it was parsed when the request was opened.
    fn requested_owner(&self, asset: &Asset, text: &str) -> Option<&Account> {
        let source = (self.source, &self.request.source, self.owner.as_ref());
        let destination = (self.destination, &self.request.destination, Some(&self.payout));
        let is = |of: &Asset, leg: &RequestedLeg| leg.owner.as_deref() == Some(text) && of.chain_name() == asset.chain_name();
        [source, destination].into_iter().find(|(of, leg, _)| is(of, leg)).and_then(|(.., account)| account)
    }

    /// Returns whether this text of an x-only key is one that was checked to be a point when the request was opened or when the
    /// registry was pinned: a requested delegate, or a solver of the asset's chain.
    #[must_use]
    pub fn is_known_key(&self, asset: &Asset, key: &str) -> bool {
        let requested = [(self.source, &self.request.source), (self.destination, &self.request.destination)];
        let mut delegates =
            requested.iter().filter(|(asset, _)| asset.chain.family() == Family::Bitcoin).filter_map(|(_, leg)| leg.delegate.as_deref());
        let mut solvers = self.registry.solvers_of(asset.chain_name()).iter().map(|solver| solver.address.as_str());
        let is = |known: &str| known.eq_ignore_ascii_case(key);
        asset.chain.family() == Family::Bitcoin && address::is_key(key) && (delegates.any(is) || solvers.any(is))
    }

    /// Returns the pinned account that the registry spells exactly like this text: the source asset's HTLC or token, or a solver of
    /// its chain.
    #[must_use]
    pub fn pinned_as(&self, text: &str) -> Option<&Account> {
        let asset = self.source;
        let htlc = asset.record.htlc.as_ref().filter(|htlc| htlc.address == text).and(asset.htlc.as_ref());
        let token = || asset.token.as_ref().filter(|token| token.text == text)?.account.as_ref();
        let solver = || Some(&self.registry.solvers_of(asset.chain_name()).iter().find(|solver| solver.address == text)?.account);
        htlc.or_else(token).or_else(solver)
    }

    /// Requires that this family signs for the order.
    pub(crate) fn check_family(&self, family: Family) -> Result<(), Refusal> {
        if self.family() == family {
            return Ok(());
        }
        Err(At::REQUEST.refuse_below(Code::UnsupportedFamily, "/source/asset").with_expected(family).with_actual(self.family()))
    }

    /// Refuses a payload of another family in the result.
    pub(crate) fn check_payload_keys(&self, own: &[&str]) -> Result<(), Refusal> {
        let members = self.result.object()?;
        for key in PAYLOAD_KEYS.iter().filter(|key| !own.contains(key)) {
            if let Some(cursor) = members.get(key) {
                return Err(cursor.at().refuse(Code::MixedFamilies).with_expected(own.join(", ")).with_actual(*key));
            }
        }
        Ok(())
    }

    /// Adds the warnings that follow from the request and the registry alone.
    pub(crate) fn check_request(&self, warnings: &mut Warnings) {
        if self.request.secret_hash.is_none() {
            warnings.warn(Code::SecretNotYours);
        }
        if self.record.is_none() {
            warnings.warn(Code::NoOrderRecord);
        }
        for (asset, leg) in [(self.source, &self.request.source), (self.destination, &self.request.destination)] {
            if !asset.is_within_limits(leg.amount) {
                warnings.warn_about(Code::AmountOutsideLimits, format!("{} base units of {}", leg.amount, asset.record.id));
            }
        }
        self.check_payout_size(warnings);
    }

    /// Warns of a payout on a Bitcoin-like chain that nobody can pay, or that costs more than it pays once blocks are full.
    fn check_payout_size(&self, warnings: &mut Warnings) {
        let Network::Bitcoin(coin, _) = self.destination.chain.network else { return };
        let pays = self.record.as_ref().map_or(self.request.destination.amount, |record| record.destination_swap.amount);
        let (dust, cost) = (U256::from(coin.profile().htlc_dust()), U256::from(coin.profile().busy_redemption_fee()));
        if pays < dust {
            warnings.warn_about(Code::AmountBelowDust, format!("the payout of {pays}, of at least {dust}"));
        } else if pays < cost.saturating_mul(U256::from(2)) {
            let why = format!("the payout is {pays}, and at {BUSY_FEE_RATE} base units per virtual byte its redemption costs {cost}");
            warnings.warn_about(Code::FeeAbovePayout, why);
        }
    }
}

fn pinned<'d>(registry: &'d Registry, leg: &RequestedLeg, at: &str) -> Result<&'d Arc<Asset>, Refusal> {
    if let Some(asset) = registry.asset(leg.asset.as_str()) {
        return Ok(asset);
    }
    let code = registry.family(leg.asset.chain()).map_or(Code::UnknownChain, |_| Code::UnknownAsset);
    Err(At::REQUEST.refuse_below(code, at).with_actual(&leg.asset))
}

fn party(asset: &Asset, text: &str, at: &str) -> Result<Account, Refusal> {
    address::parse_party(&asset.chain.network, text).map_err(|error| address_refusal(error, text, &At::REQUEST, at))
}

/// Returns the refusal of a text that is not a valid address of its network: [`Code::AddressChecksum`],
/// [`Code::AddressNetwork`] or [`Code::AddressMalformed`] at a pointer into a document.
#[must_use]
pub fn address_refusal(error: address::AddressError, text: &str, document: &At<'_>, at: &str) -> Refusal {
    let code = match error {
        address::AddressError::Checksum | address::AddressError::RootstockChecksum => Code::AddressChecksum,
        address::AddressError::OtherNetwork => Code::AddressNetwork,
        _ => Code::AddressMalformed,
    };
    document.refuse_below(code, at).with_reason(error.to_string()).with_actual(text)
}

/// Refuses the zero address: nobody owns it, so what is refunded or paid there is lost.
fn somebody(account: Account, text: &str, at: &str) -> Result<Account, Refusal> {
    if account.is_zero() {
        return Err(At::REQUEST.refuse_below(Code::AddressMalformed, at).with_reason("nobody owns the zero address").with_actual(text));
    }
    Ok(account)
}

fn address_of(asset: &Asset, text: &str, at: &str) -> Result<Account, Refusal> {
    let account = address::parse(&asset.chain.network, text).map_err(|error| address_refusal(error, text, &At::REQUEST, at))?;
    somebody(account, text, at)
}

/// Reads the source owner. It is optional on Bitcoin-like chains, where the refund goes to a key.
fn owner(asset: &Asset, leg: &RequestedLeg, at: &str) -> Result<Option<Account>, Refusal> {
    match &leg.owner {
        Some(text) => address_of(asset, text, at).map(Some),
        None if asset.chain.family() == Family::Bitcoin => Ok(None),
        None => Err(At::REQUEST.refuse_below(Code::MissingField, at)),
    }
}

/// Reads the destination owner. It is never optional, because nothing else shows where the order must pay out.
fn owner_of_payout(asset: &Asset, leg: &RequestedLeg) -> Result<Account, Refusal> {
    const AT: &str = "/destination/owner";
    if let Some(delegate) = &leg.delegate {
        if !asset.chain.family().has_delegates() {
            return Err(At::REQUEST.refuse_below(Code::DelegateNotSupported, "/destination/delegate").with_actual(delegate));
        }
        party(asset, delegate, "/destination/delegate")?;
    }
    let text = leg.owner.as_deref().ok_or_else(|| At::REQUEST.refuse_below(Code::MissingField, AT))?;
    address_of(asset, text, AT)
}

/// Requires that the payout does not go to an HTLC, a token contract or a solver: it would be lost, or belong to the solver.
fn check_payout(registry: &Registry, destination: &Asset, payout: &Account) -> Result<(), Refusal> {
    // A taproot address with a party's key belongs to that party too.
    let key = match payout.bytes() {
        [0x51, 0x20, key @ ..] if payout.family() == Family::Bitcoin => Account::new(Family::Bitcoin, key),
        _ => None,
    };
    let chain = destination.chain_name();
    let is_any =
        |kind| [Some(payout), key.as_ref()].into_iter().flatten().any(|account| registry.contract_kind(chain, account) == Some(kind));
    let is = |account: &Account| account == payout || Some(account) == key.as_ref();
    let solver = || registry.solvers_of(chain).iter().any(|solver| is(&solver.account));
    let what = if is_any(ContractKind::Htlc) {
        "the payout goes to an HTLC"
    } else if is_any(ContractKind::Token) {
        "the payout goes to a token contract"
    } else if solver() {
        "the payout goes to a solver"
    } else {
        return Ok(());
    };
    Err(At::REQUEST.refuse_below(Code::PayoutInvalid, "/destination/owner").with_reason(what).with_actual(payout))
}

/// Reads the record, and returns it with its location.
fn read_record(record: &Value<'_>) -> Result<(OrderRecord, At<'static>), Refusal> {
    let (record, is_enveloped) = OrderRecord::read_enveloped(Cursor::new(record, At::RECORD))?;
    Ok((record, if is_enveloped { At::of("/order/result", Origin::Service) } else { At::RECORD }))
}
