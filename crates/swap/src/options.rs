//! The host's options, and what it asks for in a new swap.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign::chains::address;
use countersign::json::{self, Cursor};
use countersign::wire::AffiliateFee;
use countersign::{AssetId, Code, CreateOrder, Family, Refusal, Registry, U256, wire::RequestedLeg};
use countersign_client::amount::base_units;
use countersign_client::driver::TrustTheService;
use countersign_client::{AppId, Pace, QuoteWish, url::Url};
use countersign_json::objects::Failure;
use countersign_node::Speed;

/// A pinned contract differs from its stored description.
pub(crate) const CONTRACT_CHANGED: &str = "contract_changed";

/// How swaps are run.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) service: Url,
    pub(crate) app_id: Option<AppId>,
    /// The owner's accounts, by chain or by family.
    accounts: BTreeMap<String, String>,
    /// The chains and families that the host has a signer for; `None` if it does not say.
    signers: Option<BTreeSet<String>>,
    pub(crate) relayer: bool,
    pub(crate) trust: Option<TrustTheService>,
    pub(crate) pace: Pace,
    pub(crate) speed: Speed,
    /// Whether the host's signers never send a payment by themselves. One that does is believed, but only once it replies.
    pub(crate) sign_only: bool,
}

impl Options {
    /// Parses the options.
    pub(crate) fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(text)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        members.only(&["service", "app_id", "accounts", "signers", "relayer", "trust_the_service", "poll_ms", "speed", "sign_only"])?;
        let service = members.need("service")?;
        let app_id = members.get("app_id").filter(|id| !id.is_null());
        let mut accounts = BTreeMap::new();
        if let Some(given) = members.get("accounts") {
            let given = given.object()?;
            for name in given.keys() {
                accounts.insert(name.to_owned(), given.need(name)?.text()?.to_owned());
            }
        }
        let names = |list: Cursor<'_, '_>| list.array()?.map(|name| name.text().map(str::to_owned)).collect();
        let flag = |name| members.get(name).map_or(Ok(false), |value| value.bool());
        let pace = members.get("poll_ms").map(|millis| millis.integer().map(Duration::from_millis)).transpose()?;
        Ok(Self {
            service: Url::parse(service.text()?).map_err(|_| service.refuse(Code::WrongType).with_reason("not a URL"))?,
            app_id: match app_id {
                Some(id) => Some(AppId::new(id.secret()?).map_err(|_| id.refuse(Code::TextNotPlain))?),
                None => None,
            },
            accounts,
            signers: members.get("signers").map(names).transpose()?,
            relayer: flag("relayer")?,
            sign_only: flag("sign_only")?,
            trust: flag("trust_the_service")?.then_some(TrustTheService),
            pace: pace.map_or_else(Pace::default, |wait| Pace { quickest: wait, slowest: wait }),
            speed: match members.get("speed").map(|speed| speed.text().map(|text| (text, speed.refuse(Code::WrongType)))).transpose()? {
                None | Some(("normal", _)) => Speed::Normal,
                Some(("slow", _)) => Speed::Slow,
                Some(("fast", _)) => Speed::Fast,
                Some((_, refusal)) => return Err(refusal.with_expected("slow, normal or fast")),
            },
        })
    }

    /// Checks that each account is named by a pinned chain or by a family, and is an address there.
    pub(crate) fn check_accounts(&self, registry: &Registry) -> Result<(), Failure> {
        for (name, account) in &self.accounts {
            let at = format!("/options/accounts/{name}");
            let chains: Vec<_> = registry.chains().filter(|chain| chain.name() == name || chain.network.family().name() == name).collect();
            let is_named = |chain: &&&countersign::trust::Chain| chain.name() == name;
            if chains.is_empty() {
                return Err(Failure::usage(at, "the name of a pinned chain or of a family"));
            }
            // One address for a family is that of any of its chains.
            let valid = chains.iter().any(|chain| address::parse(&chain.network, account).is_ok());
            if !valid || chains.iter().find(is_named).is_some_and(|chain| address::parse(&chain.network, account).is_err()) {
                return Err(Refusal::new(Code::AddressMalformed, at).with_actual(account.as_str()).into());
            }
        }
        Ok(())
    }

    /// Returns whether the host may have a signer for a chain, by the chain's name or by its family.
    pub(crate) fn may_sign(&self, chain: &str, registry: &Registry) -> bool {
        let has = |name: &str| self.signers.as_ref().is_none_or(|signers| signers.contains(name));
        has(chain) || registry.family(chain).is_ok_and(|family| has(family.name()))
    }

    /// Returns the owner's account on a chain, by the chain's name or by its family; `None` if the owner has none there.
    pub(crate) fn account(&self, chain: &str, registry: &Registry) -> Option<&str> {
        let of_family = || self.accounts.get(registry.family(chain).ok()?.name());
        self.accounts.get(chain).or_else(of_family).map(String::as_str)
    }
}

/// A swap that the host asks for.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) quote: QuoteWish,
    pub(crate) from_owner: Option<String>,
    pub(crate) receive_at: String,
    pub(crate) affiliate_fees: Vec<AffiliateFee>,
    /// Whether a contract may differ from its stored description. The new one is stored then.
    pub(crate) accepts_contracts: bool,
}

impl Wish {
    /// Parses a wish, and checks everything that needs no network.
    pub(crate) fn from_json(text: &[u8], registry: &Registry, options: &Options) -> Result<Self, Failure> {
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
        let quote = read_quote(&root, registry)?;
        let receive_at = members.need("receive_at")?;
        check_address(receive_at.text()?, "/receive_at", &quote.to, registry)?;
        let from_owner = match members.get("from_owner") {
            Some(owner) => Some(owner.text()?.to_owned()),
            None => options.account(quote.from.chain(), registry).map(str::to_owned),
        };
        if let Some(owner) = &from_owner {
            check_address(owner, "/from_owner", &quote.from, registry)?;
        }
        // A deposit names no owner. Everywhere else the owner pays and is refunded.
        if from_owner.is_none() && registry.family(quote.from.chain()) != Ok(Family::Bitcoin) {
            return Err(Failure::usage("/from_owner", format!("your address on {}, or an account of that chain", quote.from.chain())));
        }
        let mut affiliate_fees = Vec::new();
        if let Some(fees) = members.get("affiliate_fees") {
            for fee in fees.array()? {
                affiliate_fees.push(<AffiliateFee as countersign::wire::Read>::read(fee)?);
            }
        }
        let mut accepts_contracts = false;
        if let Some(accept) = members.get("accept") {
            for code in accept.array()? {
                if code.text()? != CONTRACT_CHANGED {
                    return Err(code.refuse(Code::WrongType).with_expected(CONTRACT_CHANGED).into());
                }
                accepts_contracts = true;
            }
        }
        Ok(Self { quote, from_owner, receive_at: receive_at.text()?.to_owned(), affiliate_fees, accepts_contracts })
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

fn read_quote(root: &Cursor<'_, '_>, registry: &Registry) -> Result<QuoteWish, Failure> {
    let members = root.object()?;
    let asset = |name| {
        let text = members.need(name)?;
        let id = AssetId::parse(text.text()?).map_err(|error| text.refuse(error))?;
        if registry.asset(id.as_str()).is_none() {
            return Err(text.refuse(Code::UnknownAsset).with_actual(&id));
        }
        Ok::<_, Refusal>(id)
    };
    let (from, to) = (asset("from")?, asset("to")?);
    if from == to {
        return Err(Failure::usage("/to", "another asset than that of the source"));
    }
    let amount = |name: &'static str, text: &str, asset| {
        base_units(text, asset, Some(registry)).map_err(|error| Failure::usage(format!("/{name}"), error.to_string()))
    };
    let text = |name| members.get(name).filter(|value| !value.is_null()).map(|value| value.text()).transpose();
    let mut wish = QuoteWish::new(from.clone(), to.clone(), amount("amount", members.need("amount")?.text()?, &from)?);
    wish.at_least = text("at_least")?.map(|least| amount("at_least", least, &to)).transpose()?;
    wish.slippage = members.get("slippage").map(|slippage| slippage.integer()).transpose()?;
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
            Wish::from_json(text.as_bytes(), &registry, &options)
        };
        for (accept, accepts) in [("", false), (r#","accept":[]"#, false), (r#","accept":["contract_changed"]"#, true)] {
            assert_eq!(wish(accept).unwrap().accepts_contracts, accepts, "{accept}");
        }
        let other = wish(r#","accept":["contract_changed","danger"]"#).unwrap_err();
        assert_eq!((&*other.at, other.code), ("/accept/1", "wrong_type"));
    }
}
