//! Reading what a command is given: documents, registry, policy, keys. Keys never come as arguments.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use countersign::case::Case;
use countersign::json::{self, Node, Value};
use countersign::{Code, Documents, Policy, Refusal, Registry};
use zeroize::Zeroizing;

/// Why a command ended early.
pub(crate) enum Failure {
    /// The order was refused.
    Refused(Refusal),
    /// The same, of a case: its id, where it has one.
    RefusedCase(Option<String>, Refusal),
    /// Wrong use, or a file that cannot be read or written.
    Usage(String),
    /// The secret is held back, or another step ended without harm.
    Held {
        /// A stable name.
        code: &'static str,
        /// Why.
        message: String,
    },
    /// Whoever read stdout has stopped reading: nothing is left to say.
    Closed,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<countersign_client::Error> for Failure {
    fn from(error: countersign_client::Error) -> Self {
        match error {
            countersign_client::Error::Refused(refusal) => Self::Refused(refusal),
            countersign_client::Error::Held(hold) => Self::Held { code: hold.code(), message: format!("the secret is held back: {hold}") },
            other => Self::Usage(format!("{} ({})", other, other.code())),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::Closed } else { Self::Usage(error.to_string()) }
    }
}

pub(crate) fn usage(message: impl Display) -> Failure {
    Failure::Usage(message.to_string())
}

/// What the wallet trusts.
#[derive(Args)]
pub(crate) struct TrustArgs {
    /// What the wallet has pinned.
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_REGISTRY")]
    registry: PathBuf,
    /// The wallet's limits; without it the documented defaults.
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_POLICY")]
    policy: Option<PathBuf>,
}

impl TrustArgs {
    pub(crate) fn read(&self) -> Result<(Registry, Policy), Failure> {
        let registry = registry(&self.registry)?;
        let policy = match &self.policy {
            Some(path) => Policy::from_json(&read(path)?).map_err(|refusal| usage(format_args!("{}: {refusal}", path.display())))?,
            None => Policy::default(),
        };
        Ok((registry, policy))
    }
}

pub(crate) fn registry(path: &Path) -> Result<Registry, Failure> {
    Registry::from_json(&read(path)?).map_err(|refusal| usage(format_args!("{}: {refusal}", path.display())))
}

/// The documents of one order, in one file or apart.
#[derive(Args)]
pub(crate) struct CaseArgs {
    /// A case as in the batch contract: request, response, order and wallet in one object; `-` is stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["request", "response"], required_unless_present_all = ["request", "response"])]
    case: Option<PathBuf>,
    /// The create-order request that the wallet sent.
    #[arg(long, value_name = "FILE", requires = "response")]
    request: Option<PathBuf>,
    /// The service's answer.
    #[arg(long, value_name = "FILE", requires = "request")]
    response: Option<PathBuf>,
    /// The order record, bare or in its envelope.
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,
}

/// The wallet's context, where a command needs one.
#[derive(Args)]
pub(crate) struct WalletArgs {
    /// The wallet's context: nonce, fees, coins, as in the batch contract.
    #[arg(long, value_name = "FILE")]
    pub(crate) wallet: Option<PathBuf>,
}

/// The texts of one order. A wallet's context can hold a key, so they are wiped.
pub(crate) struct Texts {
    case: Option<Zeroizing<Vec<u8>>>,
    request: Option<Zeroizing<Vec<u8>>>,
    response: Option<Zeroizing<Vec<u8>>>,
    order: Option<Zeroizing<Vec<u8>>>,
    wallet: Option<Zeroizing<Vec<u8>>>,
}

/// The parsed texts.
pub(crate) struct Values<'t> {
    case: Option<Value<'t>>,
    request: Option<Value<'t>>,
    response: Option<Value<'t>>,
    order: Option<Value<'t>>,
    wallet: Option<Value<'t>>,
}

impl CaseArgs {
    pub(crate) fn read(&self, wallet: Option<&WalletArgs>) -> Result<Texts, Failure> {
        let text = |path: &Option<PathBuf>| path.as_deref().map(read).transpose();
        Ok(Texts {
            case: text(&self.case)?,
            request: text(&self.request)?,
            response: text(&self.response)?,
            order: text(&self.order)?,
            wallet: wallet.map(|args| text(&args.wallet)).transpose()?.flatten(),
        })
    }
}

impl Texts {
    /// Parses the texts and judges them; a refusal carries the case's id, as in the batch.
    pub(crate) fn judge(&self, judge: impl FnOnce(&Values<'_>) -> Result<u8, Failure>) -> Result<u8, Failure> {
        let (id, answer) = match self.parse() {
            Ok(values) => (values.id().map(str::to_owned), judge(&values)),
            Err(refusal) => (self.case.as_ref().and_then(|text| json::salvage_id(text)), Err(refusal.into())),
        };
        answer.map_err(|failure| match failure {
            Failure::Refused(refusal) => Failure::RefusedCase(id, refusal),
            other => other,
        })
    }

    fn parse(&self) -> Result<Values<'_>, Refusal> {
        fn value<'t>(text: Option<&'t Zeroizing<Vec<u8>>>, prefix: &str) -> Result<Option<Value<'t>>, Refusal> {
            text.map(|text| json::parse(text).map_err(|refusal| refusal.under(prefix))).transpose()
        }
        Ok(Values {
            case: value(self.case.as_ref(), "")?,
            request: value(self.request.as_ref(), "/request")?,
            response: value(self.response.as_ref(), "/response")?,
            order: value(self.order.as_ref(), "/order")?,
            wallet: value(self.wallet.as_ref(), "/wallet")?,
        })
    }
}

impl<'t> Values<'t> {
    /// The id of the case.
    pub(crate) fn id(&self) -> Option<&str> {
        Node::root(self.case.as_ref()?, "").object().ok()?.get("id")?.text().ok()
    }

    /// The case; documents given apart take the place of those in a case file.
    pub(crate) fn case(&'t self) -> Result<Case<'t>, Refusal> {
        let mut case = match (&self.case, &self.request, &self.response) {
            (Some(case), ..) => Case::of(case)?,
            (None, Some(request), Some(response)) => Case::new(Documents { request, response, order: None }, None),
            _ => return Err(Refusal::new(Code::MissingField, "/response")),
        };
        if let Some(order) = &self.order {
            case.documents.order = Some(order);
        }
        if let Some(wallet) = &self.wallet {
            case.wallet = Some(wallet);
        }
        Ok(case)
    }
}

/// Where a secret comes from.
#[derive(Args)]
#[group(required = false, multiple = false)]
pub(crate) struct KeyArgs {
    /// Reads the key from a file.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Reads the key from an environment variable.
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    /// Reads the key from stdin.
    #[arg(long)]
    key_stdin: bool,
}

impl KeyArgs {
    /// The key's text without the line's end; `None` if no source was named.
    pub(crate) fn read(&self) -> Result<Option<Zeroizing<String>>, Failure> {
        let bytes = if let Some(path) = &self.key_file {
            read(path)?
        } else if let Some(name) = &self.key_env {
            let value = std::env::var(name).map_err(|_| usage(format_args!("the environment variable {name} holds no text")))?;
            Zeroizing::new(value.into_bytes())
        } else if self.key_stdin {
            read(Path::new("-"))?
        } else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| usage("the key is not text"))?;
        Ok(Some(Zeroizing::new(text.trim().to_owned())))
    }
}

/// Reads a file, or stdin for `-`, up to the largest document that is ever parsed.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let limit = u64::try_from(json::MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    // A document with a key in it is far shorter: the buffer does not grow then, and so leaves no copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(64 * 1024));
    let read = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(usage(format_args!("{}: {error}", path.display()))),
    }
}
