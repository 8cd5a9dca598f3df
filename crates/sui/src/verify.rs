//! The verification rules for the result of a Sui order. They compare its values with the request, the registry and the policy, after
//! [`Initiate::decode`] has refused any other form of transaction.
//!
//! Specification: `docs/spec/sui.md#payload`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use countersign_core::json::{At, Members};
use countersign_core::{ByteCoverage, Code, OrderContext, Refusal, Role, SecretHash, Summary, SwapTerms, U256, Warnings, family, number};
use sui_sdk_types::{Address, Mutability, ProgrammableTransaction, SharedInput, SignedTransaction, TransactionKind, TypeTag};

use crate::address::{self, format_address, to_account};
use crate::deposit::{Deposit, PAYLOAD_KEY};
use crate::gas::TxContext;
use crate::htlc::{self, Initiate, InputRole, PtbLayout, Range, Ranges};
use crate::kind::{self, Kind};
use crate::reader;
use crate::received;
use crate::summary::{SUI_DECIMALS, shared};
use crate::transaction::{self, Unsigned};

/// The most bytes of a transaction kind. No transaction may be longer (Sui's `max_tx_size_bytes`).
const MAX_KIND: usize = 128 * 1024;

impl family::Deposit for Deposit {
    type Context = TxContext;
    type Unsigned = Unsigned;

    fn verify(order: &OrderContext<'_>, warnings: &mut Warnings, _: family::Seal<Self>) -> Result<(Self, Option<SwapTerms>), Refusal> {
        order.check_no_delegate()?;
        let pins = Expected::from_order(order)?;
        let result = order.result.object()?;
        let bytes = read_kind_bytes(&result)?;
        let at = result.at().key(PAYLOAD_KEY);
        let transaction = decode(&bytes, &at)?;
        let (terms, layout) = Initiate::decode(&transaction, &pins.coin_type, &at)?;
        let rules = Rules { order, pins: &pins, ranges: Ranges(&transaction), layout: &layout, at: &at };
        let timelock = rules.check(&terms, warnings)?;
        let kind = rebuild(&terms, &layout, &bytes, &at)?;
        let kind_bytes = bytes.into_owned();
        let swap = SwapTerms {
            initiator: to_account(terms.initiator),
            redeemer: to_account(terms.redeemer),
            timelock,
            secret_hash: SecretHash(terms.secret_hash),
        };
        let genesis = reader::genesis(&order.source.chain.network);
        Ok((Self { sender: pins.owner, kind: Arc::new(kind), terms, layout, kind_bytes, genesis }, Some(swap)))
    }

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe(self, summary);
    }

    fn coverage(&self) -> Vec<ByteCoverage> {
        crate::summary::coverage(self)
    }

    fn prepare(&self, gas: &TxContext, _: family::Seal<Self>) -> Result<Unsigned, Refusal> {
        Unsigned::new(Role::Initiate, Arc::clone(&self.kind), &self.kind_bytes, self.sender, gas, self.genesis)
    }

    fn warn_about_wallet(&self, gas: &TxContext, warnings: &mut Warnings) {
        if let (Some(sponsor), true) = (gas.sponsor.filter(|sponsor| *sponsor != self.sender), self.layout.splits_gas()) {
            let amount = number::in_whole_units(U256::from(self.terms.amount), SUI_DECIMALS);
            warnings.warn_about(Code::SponsorPaysDeposit, format!("{amount} SUI of {}", format_address(&sponsor)));
        }
    }

    fn read_transaction(&self, bytes: &[u8], _: family::Seal<Self>) -> Result<SignedTransaction, Refusal> {
        received::from_bytes(bytes)
    }

    fn matches(&self, transaction: &SignedTransaction, warnings: &mut Warnings) -> Result<Role, Refusal> {
        transaction::matches(self, transaction, warnings)
    }
}

/// Reads the bytes of the transaction kind: an array of integers.
fn read_kind_bytes<'v>(result: &Members<'_, 'v>) -> Result<Cow<'v, [u8]>, Refusal> {
    let cursor = result.need(PAYLOAD_KEY)?;
    let bytes = cursor.byte_array()?;
    if bytes.len() > MAX_KIND {
        return Err(cursor.at().refuse(Code::KindMalformed).with_expected(format!("at most {MAX_KIND} bytes")).with_actual(bytes.len()));
    }
    Ok(bytes)
}

/// The values of the registry and the request that the payload must equal.
struct Expected {
    package: Address,
    registry: Address,
    registry_version: Option<u64>,
    coin_type: TypeTag,
    owner: Address,
}

impl Expected {
    fn from_order(order: &OrderContext<'_>) -> Result<Self, Refusal> {
        const ASSET: &str = "/source/asset";
        let (asset, convert) = (order.source, address::from_account);
        let package = order.pinned_htlc(convert)?;
        let registry = asset.htlc_registry.as_ref().and_then(convert).ok_or_else(|| {
            At::REQUEST.refuse_below(Code::UnknownAsset, ASSET).with_reason("no orders registry is pinned").with_actual(&asset.record.id)
        })?;
        let version = asset.record.htlc.as_ref().and_then(|htlc| htlc.registry_initial_shared_version.as_deref());
        let malformed = |what: &'static str| At::REQUEST.refuse_below(Code::RegistryMalformed, ASSET).with_reason(what);
        let version = version.map(|text| text.parse().map_err(|_| malformed("the pinned version of the orders registry is not a number")));
        let coin_type = htlc::coin_type(asset).ok_or_else(|| malformed("the pinned coin is not a Move type"))?;
        Ok(Self { package, registry, registry_version: version.transpose()?, coin_type, owner: order.owner_as(convert)? })
    }
}

/// Decodes exactly one canonical programmable transaction.
fn decode(bytes: &[u8], at: &At<'_>) -> Result<ProgrammableTransaction, Refusal> {
    let named = |range: Range, got: &'static str| at.refuse_bytes(Code::KindNotProgrammable, range.0, range.1).with_actual(got);
    match bytes.first() {
        Some(0) => {}
        Some(_) => return Err(named((0, 1), "another kind")),
        None => return Err(at.refuse_bytes(Code::KindMalformed, 0, 0).with_reason("the payload is empty")),
    }
    kind::decode(bytes).map_err(|error| malformed(bytes, &error, at))
}

/// Returns the refusal of malformed bytes, from where decoding stopped.
fn malformed(bytes: &[u8], error: &bcs::Error, at: &At<'_>) -> Refusal {
    let start = kind::stop(bytes);
    at.refuse_bytes(Code::KindMalformed, start, bytes.len()).with_reason(format!("not a canonical transaction kind: {error}"))
}

/// Rebuilds the kind from the terms in the layout of the response, and requires that its bytes are exactly those of the response.
fn rebuild(terms: &Initiate, layout: &PtbLayout, bytes: &[u8], at: &At<'_>) -> Result<TransactionKind, Refusal> {
    let transaction = terms.encode(layout);
    let mut same = MatchWriter { rest: bytes };
    match bcs::serialize_into(&mut same, &Kind::ProgrammableTransaction(&transaction)) {
        Ok(()) if same.rest.is_empty() => Ok(TransactionKind::ProgrammableTransaction(transaction)),
        _ => {
            let start = bytes.len().saturating_sub(same.rest.len());
            Err(at.refuse_bytes(Code::KindMalformed, start, bytes.len()).with_reason("encoding the terms gives other bytes"))
        }
    }
}

/// A writer that accepts only the expected bytes. Writing anything else fails, and `rest` then begins at the first byte that differs.
struct MatchWriter<'b> {
    rest: &'b [u8],
}

impl Write for MatchWriter<'_> {
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
    order: &'c OrderContext<'d>,
    pins: &'c Expected,
    ranges: Ranges<'c>,
    layout: &'c PtbLayout,
    at: &'c At<'c>,
}

impl Rules<'_, '_> {
    /// Checks each value against the request, the registry or the policy. A refusal locates the bytes of the value. Returns the timelock
    /// in milliseconds.
    fn check(&self, terms: &Initiate, warnings: &mut Warnings) -> Result<u64, Refusal> {
        self.package(terms)?;
        self.coin_type(terms)?;
        self.registry(terms, warnings)?;
        self.remainder()?;
        self.order.check_initiator(&to_account(terms.initiator), &|code| self.refuse(code, &InputRole::Initiator))?;
        self.order.check_redeemer(&to_account(terms.redeemer), warnings, &|code| self.refuse(code, &InputRole::Redeemer))?;
        self.order.check_secret_hash(SecretHash(terms.secret_hash), &|code| self.refuse(code, &InputRole::SecretHash))?;
        self.order.check_amount(U256::from(terms.amount), &|code| self.refuse_input(code, usize::from(self.layout.call_amount)))?;
        self.order.check_timelock(terms.timelock, warnings, &|code| self.refuse(code, &InputRole::Timelock))
    }

    fn package(&self, terms: &Initiate) -> Result<(), Refusal> {
        if terms.package == self.pins.package {
            return Ok(());
        }
        let [(_, end), ..] = self.ranges.call();
        let start = end.saturating_sub(Address::LENGTH);
        Err(self
            .at
            .refuse_bytes(Code::UnknownContract, start, end)
            .with_expected(to_account(self.pins.package))
            .with_actual(to_account(terms.package)))
    }

    fn coin_type(&self, terms: &Initiate) -> Result<(), Refusal> {
        if terms.coin_type == self.pins.coin_type {
            return Ok(());
        }
        let [_, _, _, (start, end), _] = self.ranges.call();
        Err(self
            .at
            .refuse_bytes(Code::CoinTypeMismatch, start, end)
            .with_expected(self.pins.coin_type.to_string())
            .with_actual(terms.coin_type.to_string()))
    }

    /// Requires the pinned orders registry, with the pinned initial shared version, as a mutable input.
    fn registry(&self, terms: &Initiate, warnings: &mut Warnings) -> Result<(), Refusal> {
        let version = self.pins.registry_version.unwrap_or_else(|| {
            warnings.warn(Code::UnpinnedRegistryVersion);
            terms.registry.version()
        });
        let pinned = SharedInput::new(self.pins.registry, version, Mutability::Mutable);
        if terms.registry == pinned {
            return Ok(());
        }
        Err(self.refuse(Code::UnknownRegistry, &InputRole::Registry).with_expected(shared(&pinned)).with_actual(shared(&terms.registry)))
    }

    /// Requires that what a split leaves goes to the owner.
    fn remainder(&self) -> Result<(), Refusal> {
        let Some(index) = self.layout.funds.and_then(|funds| funds.remainder) else { return Ok(()) };
        match self.layout.roles.get(usize::from(index)) {
            Some(InputRole::Remainder(account)) if *account != self.pins.owner => Err(self
                .refuse_input(Code::UnexpectedInput, usize::from(index))
                .with_reason("what is left of the coin would go to another account")
                .with_expected(to_account(self.pins.owner))
                .with_actual(to_account(*account))),
            _ => Ok(()),
        }
    }

    fn refuse(&self, code: Code, role: &InputRole) -> Refusal {
        self.refuse_input(code, self.layout.roles.iter().position(|other| other == role).unwrap_or_default())
    }

    fn refuse_input(&self, code: Code, index: usize) -> Refusal {
        let (start, end) = self.ranges.input(index);
        self.at.refuse_bytes(code, start, end)
    }
}
