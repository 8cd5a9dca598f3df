//! What the host asks for in a new swap.

use countersign::chains::address;
use countersign::json::{self, Cursor};
use countersign::wire::{AffiliateFee, BasisPoints, RequestedLeg};
use countersign::{AssetId, Code, CreateOrder, Family, Refusal, Registry, U256};
use countersign_client::QuoteWish;
use countersign_client::amount::base_units;
use countersign_json::objects::Failure;

use crate::options::Options;

/// A pinned contract differs from its stored description.
pub(crate) const CONTRACT_CHANGED: &str = "contract_changed";

/// A swap that the host asks for.
///
/// ```
/// use countersign_swap::countersign::{AssetId, U256};
/// use countersign_swap::{QuoteWish, Wish};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // 1.5 USDC, which has six decimals.
/// let (from, amount) = (AssetId::parse("base:usdc")?, U256::from(1_500_000));
/// let quote = QuoteWish::new(from, AssetId::parse("bitcoin:btc")?, amount);
/// let wish = Wish::new(quote, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4");
/// # assert_eq!(wish.from_owner, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wish {
    /// The assets, the amount, and which quotes are acceptable.
    pub quote: QuoteWish,
    /// The address on the source chain that pays and receives a refund; `None` for the account of that chain. An order from a Bitcoin-like
    /// chain is paid from any wallet.
    pub from_owner: Option<String>,
    /// The address on the destination chain that is paid.
    pub receive_at: String,
    /// Fees for others, in the order they were given.
    pub affiliate_fees: Vec<AffiliateFee>,
    /// Whether a contract may differ from its stored description, once. Its new description is stored then.
    pub accepts_changed_contracts: bool,
}

impl Wish {
    /// Creates a wish that is paid from the account of the source chain, without fees for others.
    #[must_use]
    pub fn new(quote: QuoteWish, receive_at: impl Into<String>) -> Self {
        Self { quote, from_owner: None, receive_at: receive_at.into(), affiliate_fees: Vec::new(), accepts_changed_contracts: false }
    }

    /// Parses a wish.
    pub(crate) fn from_json(text: &[u8], registry: &Registry) -> Result<Self, Failure> {
        let value = json::parse(text)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        members.only(&[
            "from",
            "to",
            "amount",
            "receive_at",
            "from_owner",
            "at_least",
            "slippage",
            "solver",
            "affiliate_fees",
            "accept",
        ])?;
        let mut wish = Self::new(read_quote(&root, registry)?, members.need("receive_at")?.text()?);
        wish.from_owner = members.get("from_owner").map(|owner| owner.text().map(str::to_owned)).transpose()?;
        if let Some(fees) = members.get("affiliate_fees") {
            for fee in fees.array()? {
                wish.affiliate_fees.push(<AffiliateFee as countersign::wire::Read>::read(fee)?);
            }
        }
        if let Some(accept) = members.get("accept") {
            for code in accept.array()? {
                if code.text()? != CONTRACT_CHANGED {
                    return Err(code.refuse(Code::WrongType).with_expected(CONTRACT_CHANGED).into());
                }
                wish.accepts_changed_contracts = true;
            }
        }
        Ok(wish)
    }

    /// Checks everything that needs no network, and fills in the owner.
    pub(crate) fn complete(mut self, registry: &Registry, options: &Options) -> Result<Self, Failure> {
        check_assets(&self.quote.from, &self.quote.to, registry)?;
        check_address(&self.receive_at, "/receive_at", &self.quote.to, registry)?;
        self.from_owner = self.from_owner.or_else(|| options.account(self.quote.from.chain(), registry).map(str::to_owned));
        if let Some(owner) = &self.from_owner {
            check_address(owner, "/from_owner", &self.quote.from, registry)?;
        }
        // A deposit names no owner. Everywhere else the owner pays and is refunded.
        if self.from_owner.is_none() && registry.family(self.quote.from.chain()) != Ok(Family::Bitcoin) {
            let expected = format!("your address on {}, or an account of that chain", self.quote.from.chain());
            return Err(Failure::usage("/from_owner", expected));
        }
        Ok(self)
    }

    /// Returns the request to the service, for the amount that was quoted.
    pub(crate) fn request(&self, receive: U256) -> CreateOrder {
        let mut source = RequestedLeg::without_owner(self.quote.from.clone(), self.quote.amount);
        source.owner.clone_from(&self.from_owner);
        let destination = RequestedLeg::new(self.quote.to.clone(), self.receive_at.clone(), receive);
        let mut order = CreateOrder::new(source, destination);
        order.slippage = self.quote.slippage;
        order.affiliate_fees.clone_from(&self.affiliate_fees);
        order
    }
}

/// Parses what a quote is asked for.
pub(crate) fn quote_from_json(text: &[u8], registry: &Registry) -> Result<QuoteWish, Failure> {
    let value = json::parse(text)?;
    let root = Cursor::root(&value, "");
    root.object()?.only(&["from", "to", "amount", "at_least", "slippage", "solver"])?;
    read_quote(&root, registry)
}

/// Checks that the assets of a swap are pinned, and differ.
pub(crate) fn check_assets(from: &AssetId, to: &AssetId, registry: &Registry) -> Result<(), Failure> {
    for (at, id) in [("/from", from), ("/to", to)] {
        if registry.asset(id.as_str()).is_none() {
            return Err(Refusal::new(Code::UnknownAsset, at).with_actual(id).into());
        }
    }
    if from == to {
        return Err(Failure::usage("/to", "another asset than that of the source"));
    }
    Ok(())
}

fn read_quote(root: &Cursor<'_, '_>, registry: &Registry) -> Result<QuoteWish, Failure> {
    let members = root.object()?;
    let asset = |name| {
        let text = members.need(name)?;
        AssetId::parse(text.text()?).map_err(|error| text.refuse(error))
    };
    let (from, to) = (asset("from")?, asset("to")?);
    // Amounts with a symbol are those of a pinned asset.
    check_assets(&from, &to, registry)?;
    let amount = |name: &'static str, text: &str, asset| {
        base_units(text, asset, Some(registry)).map_err(|error| Failure::usage(format!("/{name}"), error.to_string()))
    };
    let text = |name| members.get(name).filter(|value| !value.is_null()).map(|value| value.text()).transpose();
    let mut wish = QuoteWish::new(from.clone(), to.clone(), amount("amount", members.need("amount")?.text()?, &from)?);
    wish.at_least = text("at_least")?.map(|least| amount("at_least", least, &to)).transpose()?;
    wish.slippage = members.get("slippage").map(|slippage| slippage.integer().map(BasisPoints::new)).transpose()?;
    wish.solver = text("solver")?.map(str::to_owned);
    Ok(wish)
}

/// Checks that a text is an address on the chain of an asset.
fn check_address(text: &str, at: &str, asset: &AssetId, registry: &Registry) -> Result<(), Refusal> {
    let Some(asset) = registry.asset(asset.as_str()) else { return Ok(()) };
    let parsed = address::parse(&asset.chain.network, text);
    parsed.map(drop).map_err(|error| Refusal::new(Code::AddressMalformed, at).with_reason(error.to_string()).with_actual(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use std::path::Path;

    use super::*;

    #[test]
    fn only_a_changed_contract_can_be_accepted() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/registry.json");
        let registry = Registry::from_json(&std::fs::read(path).unwrap()).unwrap();
        let options = Options::from_json(br#"{"service":"https://service.example"}"#).unwrap();
        let owner = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
        let wish = |accept: &str| {
            let text = format!(
                r#"{{"from":"base:usdc","to":"ethereum:usdc","amount":"5","receive_at":"{owner}","from_owner":"{owner}"{accept}}}"#
            );
            Wish::from_json(text.as_bytes(), &registry)?.complete(&registry, &options)
        };
        for (accept, accepts) in [("", false), (r#","accept":[]"#, false), (r#","accept":["contract_changed"]"#, true)] {
            assert_eq!(wish(accept).unwrap().accepts_changed_contracts, accepts, "{accept}");
        }
        let other = wish(r#","accept":["contract_changed","danger"]"#).unwrap_err();
        assert_eq!((&*other.at, other.code), ("/accept/1", "wrong_type"));
    }
}
