//! The only file that accepts or refuses: each rule on a Sui result (batch-contract.md, attacks.md).

use std::io::{self, Read, Write};
use std::sync::Arc;

use countersign_core::json::At;
use countersign_core::{Code, Order, Refusal, SecretHash, Terms, U256, Warnings};
use sui_sdk_types::{Address, Mutability, ProgrammableTransaction, SharedInput, TransactionKind, TypeTag};

use crate::htlc::{self, Initiate, Layout, Range, Role, PtbLayout};
use crate::{address, wire};

/// What an order locks, rebuilt from its terms.
#[derive(Debug)]
#[non_exhaustive]
pub struct Deposit {
    /// Who sends: the owner.
    pub sender: Address,
    /// The rebuilt transaction kind; its bytes are those that came.
    pub kind: Arc<TransactionKind>,
    /// What the call says.
    pub terms: Initiate,
    /// What the service chose about its form.
    pub shape: PtbLayout,
    pub(crate) kind_bytes: Vec<u8>,
}

impl Deposit {
    /// The rebuilt kind's inputs and commands.
    pub(crate) fn programmable(&self) -> Option<&ProgrammableTransaction> {
        match self.kind.as_ref() {
            TransactionKind::ProgrammableTransaction(transaction) => Some(transaction),
            _ => None,
        }
    }
}

pub(crate) fn check(order: &Order<'_>, warnings: &mut Warnings) -> Result<(Deposit, Terms), Refusal> {
    order.check_no_delegate()?;
    let pins = Pins::of(order)?;
    let result = order.result.object()?;
    let bytes = wire::kind_bytes(&result)?;
    let at = result.at().key(wire::KEY);
    let transaction = decode(&bytes, &at)?;
    let (terms, shape) = Initiate::decode(&transaction, pins.coin_type == htlc::sui(), &at)?;
    let timelock = Rules { order, pins: &pins, layout: Layout(&transaction), shape: &shape, at: &at }.check(&terms, warnings)?;
    let kind = rebuild(&terms, &shape, &bytes, &at)?;
    let kind_bytes = bytes.into_owned();
    let stated = Terms {
        initiator: address::account(terms.initiator)?,
        redeemer: address::account(terms.redeemer)?,
        timelock,
        secret_hash: SecretHash(terms.secret_hash),
    };
    Ok((Deposit { sender: pins.owner, kind: Arc::new(kind), terms, shape, kind_bytes }, stated))
}

/// What the wallet knows already.
struct Pins {
    package: Address,
    registry: Address,
    registry_version: Option<u64>,
    coin_type: TypeTag,
    owner: Address,
}

impl Pins {
    fn of(order: &Order<'_>) -> Result<Self, Refusal> {
        let asset = order.source;
        let package = order.pinned_htlc(address::of)?;
        let registry = asset.htlc_registry.as_ref().and_then(address::of).ok_or_else(|| {
            Refusal::new(Code::UnknownAsset, "/request/source/asset").with_reason("no orders registry is pinned").with_actual(&asset.record.id)
        })?;
        let version = asset.record.htlc.as_ref().and_then(|htlc| htlc.registry_initial_shared_version.as_deref());
        let malformed = |what: &'static str| move || Refusal::new(Code::RegistryMalformed, "/request/source/asset").with_reason(what);
        let registry_version = match version {
            Some(text) => Some(text.parse().map_err(|_| malformed("the pinned version of the orders registry is no number")())?),
            None => None,
        };
        let coin_type = match &asset.token {
            Some(token) => token.text.parse().map_err(|_| malformed("the pinned coin is no Move type")())?,
            None => htlc::sui(),
        };
        Ok(Self { package, registry, registry_version, coin_type, owner: order.owner_as(address::of)? })
    }
}

/// One canonical programmable transaction, to the last byte.
fn decode(bytes: &[u8], at: &At<'_>) -> Result<ProgrammableTransaction, Refusal> {
    let named = |range: Range, got: &'static str| at.refuse_bytes(Code::KindNotProgrammable, range.0, range.1).with_actual(got);
    match bytes.first() {
        Some(0) => {}
        Some(_) => return Err(named((0, 1), "another kind")),
        None => return Err(at.refuse_bytes(Code::KindMalformed, 0, 0).with_reason("there are no bytes")),
    }
    match bcs::from_bytes(bytes) {
        Ok(TransactionKind::ProgrammableTransaction(transaction)) => Ok(transaction),
        Ok(_) => Err(named((0, 1), "another kind")),
        Err(error) => Err(malformed(bytes, &error, at)),
    }
}

/// Says where decoding stopped: BCS itself does not.
fn malformed(bytes: &[u8], error: &bcs::Error, at: &At<'_>) -> Refusal {
    struct Counting<'b>(&'b [u8]);
    impl Read for Counting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }
    let mut rest = Counting(bytes);
    let _ = bcs::from_reader::<TransactionKind>(&mut rest);
    // A reader is also asked for one byte behind the end, which a trailing byte is.
    let behind = usize::from(matches!(error, bcs::Error::RemainingInput));
    let start = bytes.len().saturating_sub(rest.0.len()).saturating_sub(behind);
    at.refuse_bytes(Code::KindMalformed, start, bytes.len()).with_reason(format!("not a canonical transaction kind: {error}"))
}

/// The kind that the terms give in the form that came; byte for byte what came.
fn rebuild(terms: &Initiate, shape: &PtbLayout, bytes: &[u8], at: &At<'_>) -> Result<TransactionKind, Refusal> {
    let kind = TransactionKind::ProgrammableTransaction(terms.encode(shape));
    let mut same = Same { rest: bytes };
    match bcs::serialize_into(&mut same, &kind) {
        Ok(()) if same.rest.is_empty() => Ok(kind),
        _ => {
            let start = bytes.len().saturating_sub(same.rest.len());
            Err(at.refuse_bytes(Code::KindMalformed, start, bytes.len()).with_reason("the bytes are not those that the terms give"))
        }
    }
}

/// Takes only what came: writing anything else fails, and what is left begins at the first byte that differs.
struct Same<'b> {
    rest: &'b [u8],
}

impl Write for Same<'_> {
    fn write(&mut self, ours: &[u8]) -> io::Result<usize> {
        match self.rest.strip_prefix(ours) {
            Some(rest) => self.rest = rest,
            None => {
                let same = ours.iter().zip(self.rest).take_while(|(ours, theirs)| ours == theirs).count();
                self.rest = self.rest.get(same..).unwrap_or_default();
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(ours.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Rules<'c, 'd> {
    order: &'c Order<'d>,
    pins: &'c Pins,
    layout: Layout<'c>,
    shape: &'c PtbLayout,
    at: &'c At<'c>,
}

impl Rules<'_, '_> {
    /// Each value against the request, the registry or the policy, at its own bytes; answers the timelock.
    fn check(&self, terms: &Initiate, warnings: &mut Warnings) -> Result<u64, Refusal> {
        self.package(terms)?;
        self.coin_type(terms)?;
        self.registry(terms, warnings)?;
        self.order.check_initiator(&address::account(terms.initiator)?, &|code| self.refuse(code, &Role::Initiator))?;
        self.order.check_redeemer(&address::account(terms.redeemer)?, warnings, &|code| self.refuse(code, &Role::Redeemer))?;
        self.order.check_secret_hash(SecretHash(terms.secret_hash), &|code| self.refuse(code, &Role::SecretHash))?;
        self.order.check_amount(U256::from(terms.amount), &|code| self.refuse_input(code, usize::from(self.shape.call_amount)))?;
        self.order.check_timelock(terms.timelock, &|code| self.refuse(code, &Role::Timelock))
    }

    fn package(&self, terms: &Initiate) -> Result<(), Refusal> {
        if terms.package == self.pins.package {
            return Ok(());
        }
        let [(_, end), ..] = self.layout.call();
        let start = end.saturating_sub(Address::LENGTH);
        Err(self.at.refuse_bytes(Code::UnknownContract, start, end).with_expected(self.pins.package).with_actual(terms.package))
    }

    fn coin_type(&self, terms: &Initiate) -> Result<(), Refusal> {
        if terms.coin_type == self.pins.coin_type {
            return Ok(());
        }
        let [_, _, _, (start, end), _] = self.layout.call();
        Err(self.at.refuse_bytes(Code::CoinTypeMismatch, start, end).with_expected(&self.pins.coin_type).with_actual(&terms.coin_type))
    }

    /// The pinned object, shared since the pinned version, changed by the call.
    fn registry(&self, terms: &Initiate, warnings: &mut Warnings) -> Result<(), Refusal> {
        let version = self.pins.registry_version.unwrap_or_else(|| {
            warnings.warn(Code::UnpinnedRegistryVersion);
            terms.registry.version()
        });
        let pinned = SharedInput::new(self.pins.registry, version, Mutability::Mutable);
        if terms.registry == pinned {
            return Ok(());
        }
        Err(self.refuse(Code::UnknownRegistry, &Role::Registry).with_expected(shared(&pinned)).with_actual(shared(&terms.registry)))
    }

    fn refuse(&self, code: Code, role: &Role) -> Refusal {
        self.refuse_input(code, self.shape.roles.iter().position(|other| other == role).unwrap_or_default())
    }

    fn refuse_input(&self, code: Code, index: usize) -> Refusal {
        let (start, end) = self.layout.input(index);
        self.at.refuse_bytes(code, start, end)
    }
}

/// A shared object as text.
pub(crate) fn shared(object: &SharedInput) -> String {
    let access = match object.mutability() {
        Mutability::Mutable => "changed by the call",
        Mutability::Immutable => "only read",
        Mutability::NonExclusiveWrite => "written without exclusion",
    };
    format!("{}, shared since version {}, {access}", object.object_id(), object.version())
}
