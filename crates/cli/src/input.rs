//! Reads the input of a command: documents, registry and policy.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use clap::Args;
use countersign::json::{self, At, Cursor, Value};
use countersign::tron::Permission;
use countersign::{Code, Policy, Refusal, Registry};
use countersign_client::driver::OrderState;
use countersign_json::line::Case;
use countersign_view::receipt::Documents;
use serde::Deserialize;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::config::Config;
use crate::failure::{Failure, usage};
use crate::files::read;
use crate::own;

/// The registry and the policy.
#[derive(Args)]
pub(crate) struct TrustArgs {
    #[command(flatten)]
    registry: RegistryArgs,
    /// The policy file with the wallet's limits. By default that of the configuration file, or the documented default values.
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_POLICY")]
    policy: Option<PathBuf>,
}

/// The pinned registry.
#[derive(Args)]
pub(crate) struct RegistryArgs {
    /// The pinned registry. By default that of the configuration file.
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_REGISTRY")]
    registry: Option<PathBuf>,
}

impl TrustArgs {
    /// Returns whether a policy file is named by the argument or the environment.
    pub(crate) const fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    /// Reads both for an order that is still to be paid. Every name in the policy must be one of the registry.
    pub(crate) fn read_to_pay(&self) -> Result<(Registry, Policy), Failure> {
        let (registry, policy) = self.read()?;
        policy.check_names(&registry)?;
        Ok((registry, policy))
    }

    /// Returns what a stored order was signed with; reads both for one that was not signed yet.
    pub(crate) fn of_order(&self, kept: &OrderState) -> Result<(Registry, Policy), Failure> {
        kept.pins.as_ref().map_or_else(|| self.read(), |pins| Ok((pins.registry.clone(), pins.policy.clone())))
    }

    /// Returns what a stored order is ended with: the registry that it was signed with, because its chains and assets may not be listed any
    /// more, and the policy of today, which limits what is signed today. It is the order's own where none is named today. Reads both for an
    /// order that was not signed yet.
    pub(crate) fn to_end(&self, kept: &OrderState) -> Result<(Registry, Policy), Failure> {
        let Some(pins) = &kept.pins else { return self.read() };
        Ok((pins.registry.clone(), self.named_policy()?.unwrap_or_else(|| pins.policy.clone())))
    }

    pub(crate) fn read(&self) -> Result<(Registry, Policy), Failure> {
        let registry = self.registry.read()?.ok_or_else(|| {
            usage("no registry: pass the pinned one with --registry, or set COUNTERSIGN_REGISTRY or registry in the configuration file; `countersign init` makes both")
        })?;
        Ok((registry, self.named_policy()?.unwrap_or_default()))
    }

    /// Reads the policy that the argument, the environment or the configuration file names; `None` if none does.
    fn named_policy(&self) -> Result<Option<Policy>, Failure> {
        let path = match &self.policy {
            Some(path) => Some(path.clone()),
            None => Config::read()?.policy,
        };
        path.map(|path| own::parse(&path, Policy::from_json)).transpose()
    }
}

impl RegistryArgs {
    /// Reads the registry; `None` if it is not configured.
    pub(crate) fn read(&self) -> Result<Option<Registry>, Failure> {
        match &self.registry {
            Some(path) => registry(path).map(Some),
            None => Config::read()?.registry.as_deref().map(registry).transpose(),
        }
    }
}

pub(crate) fn registry(path: &Path) -> Result<Registry, Failure> {
    own::parse(path, Registry::from_json)
}

/// The documents of one order, in one file or in several.
#[derive(Args)]
pub(crate) struct CaseArgs {
    /// A case in the format of `countersign batch`: one object with request, response, order and wallet; `-` is stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["request", "response"])]
    case: Option<PathBuf>,
    /// The create-order request that the wallet sent.
    #[arg(long, value_name = "FILE", requires = "response")]
    request: Option<PathBuf>,
    /// The service's response.
    #[arg(long, value_name = "FILE", requires = "request")]
    response: Option<PathBuf>,
    /// The order record, with or without its envelope.
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,
}

/// The wallet context.
#[derive(Args)]
pub(crate) struct WalletArgs {
    /// The wallet context as JSON, as in the batch contract: for example nonce and fees on EVM, coins and fee rate on Bitcoin.
    #[arg(long, value_name = "FILE")]
    pub(crate) wallet: Option<PathBuf>,
    /// The text that was read. The wallet context is needed twice, and stdin can be read only once.
    #[arg(skip)]
    text: OnceCell<Zeroizing<Vec<u8>>>,
}

impl WalletArgs {
    /// Returns the path of the file; `None` if none was given.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.wallet.as_deref()
    }

    /// Reads the wallet context; `None` if none was given.
    pub(crate) fn read(&self) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
        let Some(path) = self.path() else { return Ok(None) };
        let text = self.text.get().cloned().map_or_else(|| read(path), Ok)?;
        Ok(Some(self.text.get_or_init(|| text).clone()))
    }

    /// Returns the account in the first of these members that the wallet context has; `None` without one.
    pub(crate) fn account(&self, members: &[&str]) -> Result<Option<String>, Failure> {
        let Some(text) = self.read()? else { return Ok(None) };
        let value = json::parse(&text).map_err(|refusal| refusal.with_prefix("/wallet"))?;
        let root = Cursor::root(&value, "/wallet");
        let wallet = root.object()?;
        let account = members.iter().find_map(|name| wallet.get(name)).map(|account| account.text().map(str::to_owned));
        Ok(account.transpose()?)
    }

    /// Returns the permission of a Tron account that the wallet context names; `None` without one.
    pub(crate) fn permission(&self) -> Result<Option<Permission>, Failure> {
        let Some(text) = self.read()? else { return Ok(None) };
        let value = json::parse(&text).map_err(|refusal| refusal.with_prefix("/wallet"))?;
        Ok(countersign_json::tron_permission_in(Cursor::root(&value, "/wallet"))?)
    }
}

/// The unparsed documents of one order. They are wiped, because a wallet context can contain a key.
pub(crate) struct Texts {
    case: Option<Zeroizing<Vec<u8>>>,
    request: Option<Zeroizing<Vec<u8>>>,
    response: Option<Zeroizing<Vec<u8>>>,
    order: Option<Zeroizing<Vec<u8>>>,
    wallet: Option<Zeroizing<Vec<u8>>>,
}

/// The parsed documents of one order.
pub(crate) struct Values<'t> {
    case: Option<Value<'t>>,
    request: Option<Value<'t>>,
    response: Option<Value<'t>>,
    order: Option<Value<'t>>,
    wallet: Option<Value<'t>>,
}

impl CaseArgs {
    /// Reads the documents. `or` is what else the command takes in their place.
    pub(crate) fn read(&self, wallet: Option<&WalletArgs>, or: &str) -> Result<Texts, Failure> {
        if self.case.is_none() && self.request.is_none() {
            return Err(usage(format_args!("no order: name its documents with --case, or with --request and --response{or}")));
        }
        let text = |path: &Option<PathBuf>| path.as_deref().map(read).transpose();
        Ok(Texts {
            case: text(&self.case)?,
            request: text(&self.request)?,
            response: text(&self.response)?,
            order: text(&self.order)?,
            wallet: wallet.map(WalletArgs::read).transpose()?.flatten(),
        })
    }
}

impl Texts {
    /// Takes the documents of a stored order.
    pub(crate) fn of_order(request: &[u8], response: &[u8], record: Option<&[u8]>) -> Self {
        let text = |bytes: &[u8]| Some(Zeroizing::new(bytes.to_vec()));
        Self { case: None, request: text(request), response: text(response), order: record.and_then(text), wallet: None }
    }

    /// Parses the documents and passes them to `then`. A refusal gets the case's id, as in the batch contract.
    pub(crate) fn open(&self, then: impl FnOnce(&Values<'_>) -> Result<u8, Failure>) -> Result<u8, Failure> {
        let (id, answer) = match self.parse() {
            Ok(values) => (values.id().map(str::to_owned), then(&values)),
            Err(refusal) => (self.case.as_ref().and_then(|text| json::salvage_id(text)), Err(refusal.into())),
        };
        answer.map_err(|failure| match failure {
            Failure::Refused(refusal) => Failure::RefusedCase(id, refusal),
            other => other,
        })
    }

    /// Returns the documents byte for byte, without the wallet context; `None` if they cannot be cut out of the case file.
    pub(crate) fn documents(&self) -> Option<Documents<'_>> {
        /// The members of a case as they are written. Others, such as a key, are skipped.
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(borrow)]
            request: &'a RawValue,
            #[serde(borrow)]
            response: &'a RawValue,
            #[serde(borrow)]
            order: Option<&'a RawValue>,
        }
        fn bytes(raw: &RawValue) -> &[u8] {
            raw.get().as_bytes()
        }
        let record = self.order.as_ref().map(|text| text.as_slice());
        match (&self.case, &self.request, &self.response) {
            (Some(case), ..) => {
                let Raw { request, response, order } = serde_json::from_slice(case).ok()?;
                Some(Documents { request: bytes(request), response: bytes(response), record: record.or_else(|| order.map(bytes)) })
            }
            (None, Some(request), Some(response)) => Some(Documents { request, response, record }),
            _ => None,
        }
    }

    fn parse(&self) -> Result<Values<'_>, Refusal> {
        fn value<'t>(text: Option<&'t Zeroizing<Vec<u8>>>, at: At<'_>) -> Result<Option<Value<'t>>, Refusal> {
            text.map(|text| json::parse(text).map_err(|refusal| refusal.within(&at))).transpose()
        }
        Ok(Values {
            case: self.case.as_ref().map(|text| json::parse_case(text)).transpose()?,
            request: value(self.request.as_ref(), At::REQUEST)?,
            response: value(self.response.as_ref(), At::RESPONSE)?,
            order: value(self.order.as_ref(), At::RECORD)?,
            wallet: value(self.wallet.as_ref(), At::root("/wallet"))?,
        })
    }
}

impl<'t> Values<'t> {
    /// Returns the id of the case; `None` if it has none.
    pub(crate) fn id(&self) -> Option<&str> {
        Cursor::root(self.case.as_ref()?, "").object().ok()?.get("id")?.text().ok()
    }

    /// Returns the case. A separate record or wallet context replaces that of a case file.
    pub(crate) fn case(&'t self) -> Result<Case<'t>, Refusal> {
        let mut case = match (&self.case, &self.request, &self.response) {
            (Some(case), ..) => Case::from_value(case)?,
            (None, Some(request), Some(response)) => Case::new(request, response, None, None),
            _ => return Err(Refusal::new(Code::MissingField, "/response")),
        };
        if let Some(order) = &self.order {
            case.order = Some(order);
        }
        if let Some(wallet) = &self.wallet {
            case.wallet = Some(wallet);
        }
        Ok(case)
    }
}
