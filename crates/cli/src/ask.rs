//! What the user asks for in a new order: the request, its secret, and the keys that are derived for it.

use std::path::PathBuf;

use countersign::wire::{AffiliateFee, BasisPoints};
use countersign::{AssetId, CreateOrder, Registry, SecretHash, U256, wire::RequestedLeg};
use countersign_client::driver::{NewOrder, NoOwner};
use countersign_client::rescue::Missing;
use countersign_client::{Flow, Http, OrderId, Pace, Secret};
use countersign_store::KeyIndex;

use crate::amount::units;
use crate::config::Config;
use crate::failure::{Failure, usage};
use crate::listed::check_unlisted;
use crate::preflight::{self, Problems};
use crate::quote::asset;
use crate::session::Session;
use crate::{drive, nodes, state};

/// The request.
#[derive(clap::Args)]
pub(crate) struct RequestArgs {
    /// Source asset, `<chain>:<symbol>`.
    #[arg(long, value_name = "ASSET")]
    pub(crate) from: Option<String>,
    /// The owner's address on the source chain, which receives a refund. By default the owner of this chain in the configuration file.
    #[arg(long, value_name = "ADDRESS")]
    from_owner: Option<String>,
    /// The account that pays for the owner. On Bitcoin-like chains: the owner's x-only public key for refunds, by default derived from the
    /// rescue phrase.
    #[arg(long, value_name = "ACCOUNT")]
    from_delegate: Option<String>,
    /// Amount to pay: base units, or whole units with the symbol (`1.5 usdc`).
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) amount: Option<String>,
    /// Destination asset, `<chain>:<symbol>`.
    #[arg(long, value_name = "ASSET")]
    pub(crate) to: Option<String>,
    /// The address that is paid on the destination chain. By default the owner of this chain in the configuration file.
    #[arg(long, value_name = "ADDRESS")]
    to_owner: Option<String>,
    /// On Bitcoin-like chains: the owner's x-only public key for the redemption, by default derived from the rescue phrase.
    #[arg(long, value_name = "KEY")]
    to_delegate: Option<String>,
    /// Allowed slippage, in basis points.
    #[arg(long, value_name = "BPS")]
    pub(crate) slippage: Option<u64>,
    /// An affiliate fee, in basis points. Can be given several times.
    #[arg(long, value_name = "ASSET=ADDRESS=BPS")]
    affiliate: Vec<String>,
}

/// Where the secret, and the owner's keys on Bitcoin-like chains, come from.
#[derive(clap::Args)]
#[group(required = false, multiple = false)]
pub(crate) struct SecretArgs {
    /// Reads the secret from a file of 64 hex digits, instead of deriving one from the rescue phrase.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Lets the service choose the secret, or somebody else hold it. The holder can redeem without you.
    #[arg(long)]
    service_secret: bool,
}

/// The parts of a new order that only the owner knows.
pub(crate) struct NewOrderSecret {
    secret: Option<Secret>,
    /// The index with which keys and secret are derived, if any are.
    index: Option<KeyIndex>,
}

impl SecretArgs {
    /// Returns whether somebody else holds the secret.
    pub(crate) const fn is_for_others(&self) -> bool {
        self.service_secret
    }

    /// Generates the rescue phrase if a request needs it and there is none yet.
    pub(crate) fn ready(
        &self,
        state: &state::State,
        registry: &Registry,
        mut order: CreateOrder,
        session: &Session,
    ) -> Result<(), Failure> {
        if self.secret_file.is_some() {
            // Which secret it is does not matter here.
            order.secret_hash = Some(SecretHash([0; 32]));
        }
        if Missing::of(&order, registry, self.service_secret).is_needed() {
            state.rescue(session)?;
        }
        Ok(())
    }

    /// Adds the hash of the secret to a request, and the owner's keys on Bitcoin-like chains. Their index is marked as used before anything
    /// derived from it is sent.
    pub(crate) fn take(
        &self,
        state: &state::State,
        registry: &Registry,
        order: &mut CreateOrder,
        session: &Session,
    ) -> Result<NewOrderSecret, Failure> {
        let given = self.given(Some(state), session)?;
        if let Some(secret) = &given {
            order.secret_hash = Some(secret.hash());
        }
        let mut owned = NewOrderSecret { secret: given, index: None };
        let missing = Missing::of(order, registry, self.service_secret);
        if missing.is_needed() {
            let (rescue, taken) = (state.rescue(session)?, state.take_index()?);
            owned.index = Some(taken);
            if let Some(secret) = missing.derive(order, &rescue, taken).map_err(usage)? {
                state.check_unused(&secret.hash())?;
                owned.secret = Some(secret);
            }
        }
        Ok(owned)
    }

    /// Reads the given secret; `None` if none is given. It must be a new one, as far as `state` knows.
    pub(crate) fn given(&self, state: Option<&state::State>, session: &Session) -> Result<Option<Secret>, Failure> {
        let secret = self.secret_file.as_deref().map(|path| state::read_secret(path, session)).transpose()?;
        if let (Some(secret), Some(state)) = (&secret, state) {
            state.check_unused(&secret.hash())?;
        }
        Ok(secret)
    }
}

impl NewOrderSecret {
    /// Returns the value for a complete request, for which nothing is derived.
    pub(crate) const fn nothing() -> Self {
        Self { secret: None, index: None }
    }

    /// Creates the order and stores it. Nobody gets an order whose secret hash the service lists for another one: not only this program may
    /// pay it.
    pub(crate) async fn create(
        self,
        flow: &Flow<Http>,
        state: &state::State,
        request: CreateOrder,
        at_least: Option<U256>,
        session: &Session,
    ) -> Result<OrderId, Failure> {
        session.advise("the order may exist, but nothing was paid: create a new one; an unpaid order costs nothing");
        let driver = drive::driver(flow.clone(), &nodes::none(flow.registry(), session)?, &state.store, NoOwner, Pace::default(), None);
        let (index, branch) = (self.index.map(|taken| taken.index), self.index.map_or(0, |taken| taken.branch));
        let created = driver.create(NewOrder { request, secret: self.secret, index, branch, at_least }).await;
        let id = created.map_err(|error| {
            Failure::from(error).with_advice("the order may exist, but nothing was paid: create a new one; an unpaid order costs nothing")
        })?;
        check_unlisted(flow.client(), state, &state.load(&id)?, session).await?;
        Ok(id)
    }
}

impl RequestArgs {
    /// Returns the destination asset.
    pub(crate) fn destination(&self) -> Result<AssetId, Failure> {
        asset(need(&self.to, "--to")?)
    }

    /// Checks everything of the request but the amount to receive, which the quote decides.
    pub(crate) fn check(&self, problems: &mut Problems, registry: Option<&Registry>) -> Option<CreateOrder> {
        let from = problems.take(need(&self.from, "--from").and_then(asset));
        let to = problems.take(self.destination());
        let amount = problems.take(need(&self.amount, "--amount"));
        let fees = problems.take(self.affiliate_fees());
        let (config, registry) = (problems.take(Config::read())?, registry?);
        let leg = |asset: AssetId, owner: &Option<String>, delegate: &Option<String>| {
            // A missing or invalid amount is reported separately. Until then, one base unit is used in its place.
            let mut leg = RequestedLeg::without_owner(asset, U256::from(1));
            leg.owner = owner.as_deref().or_else(|| config.owner(&leg.asset)).map(str::to_owned);
            leg.delegate.clone_from(delegate);
            leg
        };
        let source = from.map(|from| leg(from, &self.from_owner, &self.from_delegate));
        let destination = to.map(|to| leg(to, &self.to_owner, &self.to_delegate));
        if let Some(source) = &source {
            preflight::check_leg(problems, source, &preflight::SOURCE, registry);
        }
        if let Some(destination) = &destination {
            preflight::check_leg(problems, destination, &preflight::DESTINATION, registry);
        }
        preflight::check_fees(problems, fees.as_deref().unwrap_or_default(), registry);
        let (source, destination) = (source?, destination?);
        preflight::check_assets(problems, &source.asset, &destination.asset);
        // An asset that is not pinned has no decimals, and is a problem of its own.
        if let Some(amount) = amount.filter(|_| registry.asset(source.asset.as_str()).is_some()) {
            problems.take(units(amount, &source.asset, Some(registry)));
        }
        Some(CreateOrder::new(source, destination))
    }

    fn affiliate_fees(&self) -> Result<Vec<AffiliateFee>, Failure> {
        let fee = |text: &String| {
            let parts: Vec<_> = text.split('=').collect();
            let [id, address, fee] = parts.as_slice() else { return Err(usage("an affiliate fee must have the form ASSET=ADDRESS=BPS")) };
            let fee = fee.parse().map(BasisPoints::new).map_err(|_| usage(format_args!("{fee}: not a number of basis points")))?;
            Ok(AffiliateFee::new(asset(id)?, (*address).to_owned(), fee)?)
        };
        self.affiliate.iter().map(fee).collect()
    }

    /// Returns the request, with the amount to receive in base units.
    pub(crate) fn request(&self, receive: U256, registry: &Registry) -> Result<CreateOrder, Failure> {
        let (from, to) = (asset(need(&self.from, "--from")?)?, self.destination()?);
        let config = Config::read()?;
        let owner = |given: &Option<String>, asset| given.as_deref().or_else(|| config.owner(asset)).map(str::to_owned);
        let (from_owner, to_owner) = (owner(&self.from_owner, &from), owner(&self.to_owner, &to));
        let amount = units(need(&self.amount, "--amount")?, &from, Some(registry))?;
        let mut source = RequestedLeg::without_owner(from, amount);
        source.owner = from_owner;
        source.delegate.clone_from(&self.from_delegate);
        let mut destination = RequestedLeg::new(to, need(&to_owner, "--to-owner")?, receive);
        destination.delegate.clone_from(&self.to_delegate);
        let mut order = CreateOrder::new(source, destination);
        order.slippage = self.slippage.map(BasisPoints::new);
        order.affiliate_fees = self.affiliate_fees()?;
        Ok(order)
    }
}

/// Returns the value of a required argument.
pub(crate) fn need<'a>(value: &'a Option<String>, name: &str) -> Result<&'a str, Failure> {
    value.as_deref().ok_or_else(|| usage(format_args!("{name} is missing")))
}
