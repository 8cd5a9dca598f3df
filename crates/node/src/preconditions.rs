//! Asks the preconditions of an order: what must hold before it is paid, and before its secret leaves.

use std::fmt;

use countersign::json::At;
use countersign::{
    Code, Leg, OrderRecord, Policy, Refusal, Registry, U256, Verified,
    evidence::{Precondition, Stage},
    report::Amount,
    trust::Asset,
    wire::{AssetId, RequestedLeg},
};
use countersign_core::reader::Urgency;
use countersign_transport::{Chains as _, Transport};
use futures_util::future::join_all;

use crate::config::Endpoints;
use crate::contracts::Contracts;
use crate::error::NodeError;
use crate::nodes::{Nodes, Speed};
use crate::prepare::Bid;

/// How an order ends: the assets as its own registry pins them, the receivers and amounts, and the sender of the redemption. See
/// [`Nodes::preconditions`].
#[derive(Debug, Clone, Copy)]
pub struct Ends<'a> {
    source: Pin<'a>,
    destination: Pin<'a>,
    refunded: Option<&'a str>,
    receiver: Option<&'a str>,
    payout: Option<U256>,
    redeemer: Option<&'a str>,
    #[cfg(feature = "tron")]
    permission: Option<&'a countersign::tron::Permission>,
    has_relayer: bool,
    contracts: Option<&'a Contracts>,
}

/// An asset of an order, and what the order's registry pins under its id.
#[derive(Debug, Clone, Copy)]
struct Pin<'a> {
    id: &'a str,
    asset: Option<&'a Asset>,
}

impl<'a> Pin<'a> {
    fn new(id: &'a AssetId, registry: &'a Registry) -> Self {
        Self { id: id.as_str(), asset: registry.asset(id).map(AsRef::as_ref) }
    }

    fn of_asset(asset: &'a Asset) -> Self {
        Self { id: asset.record.id.as_str(), asset: Some(asset) }
    }

    /// Returns the name of the asset's chain.
    fn chain(&self) -> &'a str {
        self.id.split_once(':').map_or(self.id, |(chain, _)| chain)
    }

    /// Returns that nothing is known of the asset; `None` if it is pinned.
    fn unpinned(&self, member: &str) -> Option<Unmet> {
        let refusal = || At::REQUEST.refuse_below(Code::UnknownAsset, member).with_actual(self.id);
        let error = || refusal().with_reason("the registry of the order does not have the asset, so nothing can be asked about it").into();
        self.asset.is_none().then(|| Unmet { precondition: Precondition::PinnedAsset, chain: self.chain().to_owned(), error: error() })
    }
}

impl<'a> Ends<'a> {
    /// Creates the ends of an order that does not exist yet, from its request: the owner of the source is refunded, and the owner of the
    /// destination is paid. `registry` is the one that the order will be verified with.
    #[must_use]
    pub fn of_request(source: &'a RequestedLeg, destination: &'a RequestedLeg, registry: &'a Registry) -> Self {
        Self {
            source: Pin::new(&source.asset, registry),
            destination: Pin::new(&destination.asset, registry),
            refunded: source.owner.as_deref(),
            receiver: destination.owner.as_deref(),
            payout: None,
            redeemer: None,
            #[cfg(feature = "tron")]
            permission: None,
            has_relayer: false,
            contracts: None,
        }
    }

    /// Creates the ends of an order from its record. `registry` is the one that the record was verified with: once an order is signed, that
    /// which was stored with it. A newer one may not have the asset any more, or have another contract under its id.
    #[must_use]
    pub fn of_record(record: &'a OrderRecord, registry: &'a Registry) -> Self {
        Self::of_pins(record, [&record.source_swap, &record.destination_swap].map(|swap| Pin::new(&swap.asset, registry)))
    }

    /// Creates the ends of a verified order, with the assets that it was verified with; `None` if it has no record.
    #[must_use]
    pub fn of_order(order: &'a Verified) -> Option<Self> {
        Some(Self::of_pins(order.terms().record?, [Leg::Source, Leg::Destination].map(|leg| Pin::of_asset(order.asset(leg)))))
    }

    fn of_pins(record: &'a OrderRecord, [source, destination]: [Pin<'a>; 2]) -> Self {
        Self {
            source,
            destination,
            refunded: Some(&record.source_swap.initiator),
            receiver: Some(&record.destination_swap.redeemer),
            payout: Some(record.destination_swap.amount),
            redeemer: None,
            #[cfg(feature = "tron")]
            permission: None,
            has_relayer: false,
            contracts: None,
        }
    }

    /// Sets what the owner is paid, in base units.
    #[must_use]
    pub const fn paying(mut self, amount: U256) -> Self {
        self.payout = Some(amount);
        self
    }

    /// Returns the names of the chains on which the owner pays and is paid.
    #[must_use]
    pub fn chains(&self) -> [&'a str; 2] {
        [self.source, self.destination].map(|pin| pin.chain())
    }

    /// Returns the name of the chain on which the owner is paid.
    #[must_use]
    pub fn destination_chain(&self) -> &'a str {
        let [_, destination] = self.chains();
        destination
    }

    /// Sets the account that sends the redemption and pays its fee.
    #[must_use]
    pub const fn redeemed_by(mut self, account: Option<&'a str>) -> Self {
        self.redeemer = account;
        self
    }

    /// Sets the permission of that account under which the redemption is signed on Tron. `None` is that of
    /// [`Nodes::with_permission`]; without one, the owner permission with the account's own key.
    #[cfg(feature = "tron")]
    #[must_use]
    pub const fn under_permission(mut self, permission: Option<&'a countersign::tron::Permission>) -> Self {
        self.permission = permission;
        self
    }

    /// Sets the stored descriptions of contracts, with which the HTLC of the destination is compared before the secret leaves. One that
    /// they do not have is not asked about.
    #[must_use]
    pub const fn described(mut self, contracts: &'a Contracts) -> Self {
        self.contracts = Some(contracts);
        self
    }

    /// Sets whether the service's relayer may redeem, so that the owner's account need not pay the fee.
    #[must_use]
    pub const fn with_relayer(mut self, is_allowed: bool) -> Self {
        self.has_relayer = is_allowed;
        self
    }
}

/// What a precondition of one leg depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) asset: &'a Asset,
    /// Who is paid.
    pub(crate) receiver: Option<&'a str>,
    /// What is paid, in base units.
    pub(crate) payout: Option<U256>,
    /// Who sends the redemption.
    pub(crate) redeemer: Option<&'a str>,
    /// The permission under which the redemption is signed.
    #[cfg(feature = "tron")]
    pub(crate) permission: Option<&'a countersign::tron::Permission>,
    /// Whether the service's relayer redeems where that account has no coins.
    has_relayer: bool,
    /// The stored descriptions of contracts.
    contracts: Option<&'a Contracts>,
    /// What the redemption may offer.
    pub(crate) bid: Bid<'a>,
    /// Once the order is paid, the HTLC holds the payout.
    stage: Stage,
}

impl<'a> End<'a> {
    const fn of_asset(asset: &'a Asset, speed: Speed, policy: &'a Policy, stage: Stage) -> Self {
        Self {
            asset,
            receiver: None,
            payout: None,
            redeemer: None,
            #[cfg(feature = "tron")]
            permission: None,
            has_relayer: false,
            contracts: None,
            bid: Bid { speed, policy, urgency: Urgency::CanWait },
            stage,
        }
    }

    /// Returns whether a precondition is asked at this stage, and about something that is known.
    fn is_asked(&self, item: Precondition) -> bool {
        let is_known = match item {
            Precondition::Contract => self.contracts.is_some_and(|contracts| contracts.get(self.asset).is_some()),
            Precondition::Receiver => self.receiver.is_some(),
            Precondition::Payout => self.payout.is_some(),
            Precondition::Redeemer => self.redeemer.is_some() && !self.has_relayer,
            _ => true,
        };
        is_known && item.is_asked(self.stage)
    }

    /// Returns what the owner is paid in the chain's own coin, if the owner's account pays for the redemption: only then the two can be
    /// compared.
    #[cfg(any(feature = "evm", feature = "solana", feature = "sui", feature = "tron"))]
    pub(crate) fn coins(&self) -> Option<U256> {
        self.payout.filter(|_| self.asset.token.is_none() && self.redeemer.is_some())
    }

    /// Describes a payout that counts as made by the same rule whatever its amount.
    fn at_stake(&self) -> String {
        let (record, payout) = (&self.asset.record, self.payout.unwrap_or_default());
        let rule = self.bid.policy.finality_of(self.asset, payout).finality;
        let amount = match self.payout {
            Some(payout) => Amount::new(payout, record.decimals, record.id.symbol()).to_string(),
            None => "any amount".to_owned(),
        };
        format!("{}: a payment of {amount} counts as made once it is {rule}; nothing says what the token is worth", record.id)
    }

    /// Returns the payout if the HTLC holds it.
    #[cfg(any(feature = "evm", feature = "tron"))]
    pub(crate) fn held(&self) -> Option<U256> {
        self.payout.filter(|_| self.stage != Stage::BeforePaying)
    }
}

/// A precondition that does not hold, or about which too few endpoints say anything.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmet {
    /// The precondition.
    pub precondition: Precondition,
    /// The chain, by its name in asset ids.
    pub chain: String,
    /// Why. [`NodeError::Refused`] is an answer, and anything else means that it is not known.
    pub error: NodeError,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.chain, self.precondition, self.error)
    }
}

/// What [`Nodes::preconditions`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preconditions {
    /// What was asked and holds, with the name of the chain.
    pub met: Vec<(Precondition, String)>,
    /// What does not hold, or is not known.
    pub unmet: Vec<Unmet>,
    /// What to know before paying: that others can change what holds today, with [`Code::MintAuthorities`], and that finality does not grow
    /// with the payout, with [`Code::FinalityIgnoresValue`].
    pub warnings: Vec<(Code, String)>,
}

impl Preconditions {
    /// Adds a warning. Before paying, one that the policy refuses is a precondition that does not hold.
    fn warn(&mut self, precondition: Precondition, end: &End<'_>, code: Code, said: String) {
        if end.stage == Stage::BeforePaying && end.bid.policy.refused_warnings.contains(&code) {
            self.unmet.push(Unmet::of_warning(precondition, end, code, &said));
        } else {
            self.warnings.push((code, said));
        }
    }

    /// Requires that everything holds.
    ///
    /// # Errors
    ///
    /// The first refusal, or the first other error if there is none.
    pub fn check(self) -> Result<(), NodeError> {
        let (refused, unknown): (Vec<_>, Vec<_>) = self.unmet.into_iter().partition(|unmet| matches!(unmet.error, NodeError::Refused(_)));
        refused.into_iter().chain(unknown).next().map_or(Ok(()), |unmet| Err(unmet.error))
    }
}

impl Unmet {
    fn of_warning(precondition: Precondition, end: &End<'_>, code: Code, said: &str) -> Self {
        let error = Refusal::new(Code::WarningRefused, "/policy/refused_warnings").with_reason(format!("{code}: {said}")).into();
        Self { precondition, chain: end.asset.chain_name().to_owned(), error }
    }
}

impl<T: Transport> Nodes<T> {
    /// Asks everything that must hold at a stage of an order, of the chains that are connected, and returns all that does not. No question
    /// contains the secret. The questions are about the assets of `ends`, whatever registry the connections were made with; one that is not
    /// pinned, although its chain is connected, is a precondition that does not hold.
    ///
    /// Ask before an order is created and before it is paid, and once more right before its secret is shown to anybody for the first time.
    /// Nothing of it may stand before a retry once the secret may be out.
    pub async fn preconditions(&self, ends: &Ends<'_>, stage: Stage, speed: Speed, policy: &Policy) -> Preconditions {
        let source = ends.source.asset.map(|asset| End { receiver: ends.refunded, ..End::of_asset(asset, speed, policy, stage) });
        let destination = ends.destination.asset.map(|asset| End {
            receiver: ends.receiver,
            payout: ends.payout,
            redeemer: ends.redeemer,
            #[cfg(feature = "tron")]
            permission: ends.permission,
            has_relayer: ends.has_relayer,
            contracts: ends.contracts,
            ..End::of_asset(asset, speed, policy, stage)
        });
        let of_source = |item: &Precondition| {
            // What a refund needs. Before the secret leaves, the payment is out, and nothing here could stop it.
            let is_due = stage == Stage::BeforePaying && !matches!(item, Precondition::FinalityMark);
            is_due.then(|| source.map(|end| (*item, end))).flatten()
        };
        let of_destination = |item: &Precondition| destination.map(|end| (*item, end));
        let all = || Precondition::ALL.iter();
        let questions = all().filter_map(of_source).chain(all().filter_map(of_destination)).collect();
        let mut found = self.ask_all(questions).await;
        let pins = [(ends.source, "/source/asset", stage == Stage::BeforePaying), (ends.destination, "/destination/asset", true)];
        let connected = pins.into_iter().filter(|(pin, _, is_due)| *is_due && self.has(pin.chain()));
        found.unmet.extend(connected.filter_map(|(pin, member, _)| pin.unpinned(member)));
        if Precondition::KnownChains.is_asked(stage) {
            found.unmet.extend(self.unknown_chains());
            found.unmet.extend([source, destination].iter().flatten().filter_map(|end| self.refused_provider(end)));
        }
        if let Some(end) = destination.filter(|end| stage == Stage::BeforePaying && policy.ignores_value(end.asset)) {
            found.warn(Precondition::FinalityMark, &end, Code::FinalityIgnoresValue, end.at_stake());
        }
        found
    }

    /// Asks everything about a connected chain that must hold whatever the order: what its endpoints serve, and what the tokens show that
    /// `registry` pins on it.
    pub async fn chain_preconditions(&self, chain: &str, registry: &Registry, policy: &Policy) -> Preconditions {
        let assets: Vec<_> = registry.assets().into_iter().filter(|asset| asset.chain_name() == chain).collect();
        let end = |asset| End::of_asset(asset, Speed::Normal, policy, Stage::BeforePaying);
        let of_chain = [Precondition::FinalityMark, Precondition::LowerHeight, Precondition::NodeVersion];
        let once = assets.first().into_iter().flat_map(|asset| of_chain.map(|item| (item, end(asset))));
        let of_asset = [Precondition::Decimals, Precondition::Mint];
        let each = assets.iter().flat_map(|asset| of_asset.map(|item| (item, end(asset))));
        self.ask_all(once.chain(each).collect()).await
    }

    /// Checks that an account can be paid in an asset, if its chain is connected: that the token is not paused and has not frozen it,
    /// and that a contract takes the chain's own coin with the gas that the HTLC gives it. [`Nodes::prepare`] does it for an order that has
    /// a record.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::ReceiverNotPayable`] if the account cannot be paid, or with the code of an address that
    /// is not one of the chain. Returns another [`NodeError`] if too few endpoints agree.
    pub async fn check_receiver(&self, asset: &Asset, receiver: &str) -> Result<(), NodeError> {
        let policy = Policy::default();
        let end = End { receiver: Some(receiver), ..End::of_asset(asset, Speed::Normal, &policy, Stage::BeforePaying) };
        self.ask_all(vec![(Precondition::Receiver, end)]).await.check()
    }

    fn unknown_chains(&self) -> impl Iterator<Item = Unmet> + '_ {
        self.unknown().iter().map(|name| {
            let refusal = Refusal::new(Code::UnknownChain, "/nodes").with_actual(name.as_str());
            let error = refusal.with_reason("not the name of a chain of the registry, so its endpoints are not used").into();
            Unmet { precondition: Precondition::KnownChains, chain: name.clone(), error }
        })
    }

    /// Returns that a single provider decides what a chain shows, if the policy refuses that.
    fn refused_provider(&self, end: &End<'_>) -> Option<Unmet> {
        let doubt = self.endpoints(end.asset.chain_name()).and_then(Endpoints::doubt);
        let doubt = doubt.filter(|_| end.bid.policy.refused_warnings.contains(&Code::SingleProvider))?;
        Some(Unmet::of_warning(Precondition::KnownChains, end, Code::SingleProvider, &doubt.to_string()))
    }

    async fn ask(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        match end.contracts.filter(|_| item == Precondition::Contract) {
            Some(contracts) => contracts.check_code(self, end.asset).await.map(|()| Vec::new()),
            None => self.ask_precondition(item, end).await,
        }
    }

    async fn ask_all(&self, questions: Vec<(Precondition, End<'_>)>) -> Preconditions {
        let asked = questions.into_iter().filter(|(item, end)| end.is_asked(*item) && self.has(end.asset.chain_name()));
        let answers = join_all(asked.map(async |(item, end)| (item, end, self.ask(item, &end).await))).await;
        let mut found = Preconditions::default();
        for (precondition, end, answer) in answers {
            let chain = end.asset.chain_name().to_owned();
            match answer {
                Ok(powers) if powers.is_empty() => found.met.push((precondition, chain)),
                Ok(powers) => {
                    found.met.push((precondition, chain));
                    let said = format!("{}: whoever controls the token can {}", end.asset.record.id, powers.join(", "));
                    found.warn(precondition, &end, Code::MintAuthorities, said);
                }
                Err(error) => found.unmet.push(Unmet { precondition, chain, error }),
            }
        }
        found
    }
}
