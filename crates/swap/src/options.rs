//! The host's options.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

#[cfg(feature = "tron")]
use countersign::Family;
use countersign::chains::address;
use countersign::json::{self, Cursor};
use countersign::trust::Chain;
use countersign::{Code, Refusal, Registry};
use countersign_client::driver::TrustTheService;
use countersign_client::{AppId, Pace, url::Url};
use countersign_json::objects::Failure;
use countersign_node::Speed;

const MEMBERS: &[&str] = &[
    "service",
    "app_id",
    "accounts",
    #[cfg(feature = "tron")]
    "permissions",
    "own_transactions",
    "signers",
    "relayer",
    "trust_the_service",
    "poll_ms",
    "speed",
    "sign_only",
];

/// How swaps are run: through which service, for which accounts, and what the service is trusted with.
///
/// ```
/// use countersign_swap::{Options, Speed, Url};
///
/// let service = Url::parse("https://service.example").expect("a URL");
/// let mut options = Options::new(service)
///     .with_account("base", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
/// options.speed = Speed::Fast;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The URL of the service.
    pub service: Url,
    /// The application's id, if the service wants one.
    pub app_id: Option<AppId>,
    /// The owner's accounts: addresses by chain (`base`) or by family (`evm`). The account of a chain goes before that of its family.
    /// [`Swaps::open`](crate::Swaps::open) checks the addresses, and [`Swaps::create`](crate::Swaps::create) the names. The host signs for
    /// them, unless [`signers`](Self::signers) says otherwise.
    pub accounts: BTreeMap<String, String>,
    /// The permissions under which the accounts on Tron sign, by chain or by the family's name; without one, an account's own key signs. The
    /// signer attaches as many signatures as the permission asks for.
    #[cfg(feature = "tron")]
    pub permissions: BTreeMap<String, countersign::tron::Permission>,
    /// Whether a payment is always the account's own transactions, which cost gas, although the order offers a gasless message. Without it,
    /// they are offered only to an account whose code refuses the message.
    pub own_transactions: bool,
    /// The chains and families that the host has a signer for; `None` if it has one for every account.
    pub signers: Option<BTreeSet<String>>,
    /// Whether the service's relayer may redeem, once the destination is proven to be funded, where the owner's account does not sign or has
    /// no coins for the fee.
    pub relayer: bool,
    /// Whether to believe the service about a destination that is not connected, and to swap where only its relayer could redeem. **A
    /// dishonest service then has the funds**: it can keep the secret, take what was paid, and pay nothing.
    pub trust_the_service: Option<TrustTheService>,
    /// How long to wait between two reads of an order.
    pub pace: Pace,
    /// How soon the owner's transactions should be mined.
    pub speed: Speed,
    /// Whether the host's signers never send a payment by themselves. Otherwise an order counts as paid from the moment its payment is
    /// handed out, so that it is not paid twice if the machine ends before the reply.
    pub sign_only: bool,
}

/// Shows the host of the service alone: the path of a URL can be a key.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = f.debug_struct("Options");
        #[cfg(feature = "tron")]
        options.field("permissions", &self.permissions);
        let Self { service, app_id, accounts, own_transactions, signers, relayer, trust_the_service, pace, speed, sign_only, .. } = self;
        options.field("service", &service.host_str()).field("app_id", app_id).field("accounts", accounts);
        options.field("own_transactions", own_transactions).field("signers", signers);
        options.field("relayer", relayer).field("trust_the_service", trust_the_service).field("pace", pace);
        options.field("speed", speed).field("sign_only", sign_only).finish()
    }
}

impl Options {
    /// Creates options without accounts: no relayer, no trust in the service, normal speed.
    #[must_use]
    pub fn new(service: Url) -> Self {
        Self {
            service,
            app_id: None,
            accounts: BTreeMap::new(),
            #[cfg(feature = "tron")]
            permissions: BTreeMap::new(),
            own_transactions: false,
            signers: None,
            relayer: false,
            trust_the_service: None,
            pace: Pace::default(),
            speed: Speed::default(),
            sign_only: false,
        }
    }

    /// Sets the owner's account on a chain, or on every chain of a family.
    #[must_use]
    pub fn with_account(mut self, chain_or_family: impl Into<String>, address: impl Into<String>) -> Self {
        self.accounts.insert(chain_or_family.into(), address.into());
        self
    }

    /// Sets the permission under which the account on a Tron chain signs, or on every chain of the family (`tron`).
    #[cfg(feature = "tron")]
    #[must_use]
    pub fn with_permission(mut self, chain_or_family: impl Into<String>, permission: countersign::tron::Permission) -> Self {
        self.permissions.insert(chain_or_family.into(), permission);
        self
    }

    /// Pays with the account's own transactions, although the order offers a gasless message.
    #[must_use]
    pub const fn with_own_transactions(mut self) -> Self {
        self.own_transactions = true;
        self
    }

    /// Lists the chains and families that the host has a signer for. An account elsewhere counts as none for redemptions.
    #[must_use]
    pub fn with_signers<S: Into<String>>(mut self, chains_or_families: impl IntoIterator<Item = S>) -> Self {
        self.signers = Some(chains_or_families.into_iter().map(Into::into).collect());
        self
    }

    /// Parses the options of a host in another language: an object with `service` and, if wanted, `app_id`, `accounts`, `permissions`,
    /// `own_transactions`, `signers`, `relayer`, `trust_the_service`, `poll_ms`, `speed` (`slow`, `normal` or `fast`) and `sign_only`.
    /// `poll_ms`, for tests, is the [`pace`](Self::pace). A permission is its id, or an object with `id`, `threshold` and `keys` as a node
    /// describes it.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member that is invalid or has no meaning.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(text)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        members.only(MEMBERS)?;
        let service = members.need("service")?;
        let app_id = members.get("app_id").filter(|id| !id.is_null());
        let mut accounts = BTreeMap::new();
        if let Some(given) = members.get("accounts") {
            let given = given.object()?;
            for name in given.keys() {
                accounts.insert(name.to_owned(), given.need(name)?.text()?.to_owned());
            }
        }
        #[cfg(feature = "tron")]
        let mut permissions = BTreeMap::new();
        #[cfg(feature = "tron")]
        if let Some(given) = members.get("permissions") {
            let given = given.object()?;
            for name in given.keys() {
                permissions.insert(name.to_owned(), countersign_json::tron_permission(&given.need(name)?)?);
            }
        }
        let names = |list: Cursor<'_, '_>| {
            let mut names = BTreeSet::new();
            for name in list.array()? {
                names.insert(name.text()?.to_owned());
            }
            Ok::<_, Refusal>(names)
        };
        let flag = |name| members.get(name).map_or(Ok(false), |value| value.bool());
        let pace = members.get("poll_ms").map(|millis| millis.integer().map(Duration::from_millis)).transpose()?;
        Ok(Self {
            service: Url::parse(service.text()?).map_err(|_| service.refuse(Code::WrongType).with_reason("not a URL"))?,
            app_id: match app_id {
                Some(id) => Some(AppId::new(id.secret()?).map_err(|_| id.refuse(Code::TextNotPlain))?),
                None => None,
            },
            accounts,
            #[cfg(feature = "tron")]
            permissions,
            own_transactions: flag("own_transactions")?,
            signers: members.get("signers").map(names).transpose()?,
            relayer: flag("relayer")?,
            sign_only: flag("sign_only")?,
            trust_the_service: flag("trust_the_service")?.then_some(TrustTheService),
            pace: pace.map_or_else(Pace::default, |wait| Pace { quickest: wait, slowest: wait }),
            speed: match members.get("speed").map(|speed| speed.text().map(|text| (text, speed.refuse(Code::WrongType)))).transpose()? {
                None | Some(("normal", _)) => Speed::Normal,
                Some(("slow", _)) => Speed::Slow,
                Some(("fast", _)) => Speed::Fast,
                Some((_, refusal)) => return Err(refusal.with_expected("slow, normal or fast")),
            },
        })
    }

    /// Checks that each account is an address on the chain or the family that it is named by, and that no permission is one of a chain of
    /// another family than Tron. What is named by no pinned chain passes: its chain may have been taken off the list, which must not stop
    /// what is paid. [`check_names`](Self::check_names) refuses it.
    pub(crate) fn check_accounts(&self, registry: &Registry) -> Result<(), Failure> {
        for (name, account) in &self.accounts {
            let is_named = |chain: &&&Chain| chain.name() == name;
            let chains: Vec<_> = chains_of(name, registry).collect();
            // One address for a family is that of any of its chains.
            let valid = chains.is_empty() || chains.iter().any(|chain| address::parse(&chain.network, account).is_ok());
            if !valid || chains.iter().find(is_named).is_some_and(|chain| address::parse(&chain.network, account).is_err()) {
                return Err(Refusal::new(Code::AddressMalformed, account_at(name)).with_actual(account.as_str()).into());
            }
        }
        #[cfg(feature = "tron")]
        if let Some(name) = self.permissions.keys().find(|name| registry.family(name).is_ok_and(|family| family != Family::Tron)) {
            return Err(not_tron(name));
        }
        Ok(())
    }

    /// Checks that each account is named by a pinned chain or by a family, and each permission by a pinned Tron chain or by the family.
    pub(crate) fn check_names(&self, registry: &Registry) -> Result<(), Failure> {
        if let Some(name) = self.accounts.keys().find(|name| chains_of(name, registry).next().is_none()) {
            return Err(Failure::usage(account_at(name), "the name of a pinned chain or of a family"));
        }
        #[cfg(feature = "tron")]
        if let Some(name) = self.permissions.keys().find(|name| registry.family(name).is_err() && *name != Family::Tron.name()) {
            return Err(not_tron(name));
        }
        Ok(())
    }

    /// Returns the permission under which the account on a chain signs, by the chain's name or by its family.
    #[cfg(feature = "tron")]
    pub(crate) fn permission(&self, chain: &str, registry: &Registry) -> Option<&countersign::tron::Permission> {
        let of_family = || registry.family(chain).ok().and_then(|family| self.permissions.get(family.name()));
        self.permissions.get(chain).or_else(of_family)
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

/// Returns the pinned chains with this name, or of the family with this name.
fn chains_of<'r>(name: &'r str, registry: &'r Registry) -> impl Iterator<Item = &'r Chain> {
    registry.chains().filter(move |chain| chain.name() == name || chain.network.family().name() == name)
}

fn account_at(name: &str) -> String {
    format!("/options/accounts/{name}")
}

#[cfg(feature = "tron")]
fn not_tron(name: &str) -> Failure {
    Failure::usage(format!("/options/permissions/{name}"), "the name of a pinned Tron chain, or tron")
}
