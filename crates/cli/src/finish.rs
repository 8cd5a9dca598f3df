//! `countersign refund|redeem|instant-refund`: ends a stored order, with the owner's own transaction or through the service's relayer. With
//! `--self` the transaction is built from the stored documents, without the service.

use std::path::PathBuf;
use std::sync::Arc;

use countersign::json::At;
use countersign::recover::Leg;
use countersign::{Code, Family, OrderRecord, Policy, Registry, VerifiedRecord, Warnings, evidence::VerifiedTerms, text};
use countersign_client::driver::{Chains as _, NoOwner, OrderState};
use countersign_client::restore::{RestoredOrder, owner_key};
use countersign_client::status::refund_possible_from;
use countersign_client::{Action, Client, Flow, Http, OrderId, Pace};
use countersign_node::{Nodes, Speed};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::drive::{self, TerminalOwner, TrustFlags};
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::input::TrustArgs;
use crate::key::{GivenKey, configured_key};
use crate::nodes::{EndingArgs, NodeArgs};
use crate::order::PaceArgs;
use crate::recover::{ConnectedChain, Context, LegRecovery};
use crate::session::Session;
use crate::{follow, recover, service, show, state};

mod all;
mod evidence;
mod instant;

pub(crate) use instant::{INSTANT_EXAMPLES, InstantRefundArgs, instant_refund};

pub(crate) const REFUND_EXAMPLES: &str = "Examples:
  countersign refund <order id>
  countersign refund --all --nodes nodes.json --key-file key.txt      # every order that can be refunded now, one question for each
  countersign refund --self <order id> --registry registry.json --wallet wallet.json --key-file key.txt
  countersign refund --self <order id> --registry registry.json --funding <txid>:0:50000 --to bc1q... --fee-rate 2 --key-file refund-key.txt
  countersign refund --self <order id> --registry registry.json --order record.json --wallet wallet.json --json

With endpoints of the source chain (--node, --nodes) and a key, the program refunds with your own transaction; otherwise it asks the
service's relayer, which can only pay you. With --self the transaction is built and signed here, without any call to the service, and
printed for you to broadcast once the timelock has expired. Without a wallet context, nonce and fees are read from the endpoints.
With --all, the stored orders that cannot be refunded now are listed with the reason, and from when a refund is possible; a key is used for
the orders whose source it is a key of. `countersign recover --help` describes the wallet context of each family.";

pub(crate) const REDEEM_EXAMPLES: &str = "Examples:
  countersign redeem <order id> --registry registry.json --nodes nodes.json --key-file key.txt
  countersign redeem <order id> --registry registry.json --trust-the-service
  countersign redeem --self <order id> --registry registry.json --wallet wallet.json --key-file key.txt
  countersign redeem --self <order id> --registry registry.json --funding <txid>:0:50000 --to bc1q... --fee-rate 9 --key-file redeem-key.txt
  countersign redeem --self <order id> --registry registry.json --order record.json --secret-file secret.txt --wallet wallet.json --json

With endpoints of the destination chain (--node, --nodes) and a key, the program checks the solver's payment and redeems with your own
transaction. Without them, the service's relayer redeems if you pass --trust-the-service. With --self the transaction is built and signed
here, without any call to the service, and printed for you to broadcast; without a wallet context, nonce and fees are read from the
endpoints. Broadcasting it makes the secret public, so check the chain
first: the destination must be funded in a final block, and its timelock must be far from its end. `countersign recover --help` describes
the wallet context of each family.";

#[derive(clap::Args)]
pub(crate) struct RefundArgs {
    /// The order's id, or its first digits.
    #[arg(help_heading = "The order", required_unless_present = "all")]
    id: Option<String>,
    /// Refunds every stored order that can be refunded now, and lists the others. Asks before each refund.
    #[arg(help_heading = "The order", long, conflicts_with_all = ["id", "by_self"])]
    all: bool,
    /// With --all: refunds without asking.
    #[arg(help_heading = "The order", long, requires = "all")]
    yes: bool,
    #[command(flatten, next_help_heading = "Your own transaction")]
    own: SelfArgs,
    #[command(flatten, next_help_heading = "Chains")]
    nodes: NodeArgs,
    #[command(flatten, next_help_heading = "Chains")]
    ending: EndingArgs,
    #[command(flatten, next_help_heading = "Trust")]
    trust: TrustArgs,
    #[command(flatten, next_help_heading = "Service and state")]
    service: service::ServiceArgs,
    #[command(flatten, next_help_heading = "Service and state")]
    state: state::StateArgs,
}

/// How to end an order without the service.
#[derive(clap::Args)]
struct SelfArgs {
    /// Builds and signs the transaction here from the stored documents, without any call to the service.
    #[arg(long = "self")]
    by_self: bool,
    /// The order record, in place of the stored one; `-` is stdin.
    #[arg(long, value_name = "FILE", requires = "by_self")]
    order: Option<PathBuf>,
    #[command(flatten)]
    signing: recover::SigningArgs,
}

#[derive(clap::Args)]
pub(crate) struct RedeemArgs {
    /// The order's id, or its first digits. The order must have been created or restored here, unless its record is passed with --order.
    #[arg(help_heading = "The order")]
    id: String,
    #[command(flatten, next_help_heading = "Your own transaction")]
    own: SelfArgs,
    /// Prints the redemption with --self although the endpoints of the destination chain do not prove the solver's payment. RISK: whoever
    /// sees the transaction has the secret, and can take your payment; if the destination then pays nothing, your funds are lost.
    #[arg(help_heading = "Your own transaction", long, requires = "by_self")]
    without_evidence: bool,
    /// Reads the secret from a file of 64 hex digits, with --self. By default it is the stored secret of the order.
    #[arg(help_heading = "Your own transaction", long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Chains")]
    nodes: NodeArgs,
    #[command(flatten, next_help_heading = "Chains")]
    ending: EndingArgs,
    #[command(flatten, next_help_heading = "Trust")]
    trust: TrustArgs,
    #[command(flatten, next_help_heading = "Trust")]
    relying: TrustFlags,
    #[command(flatten, next_help_heading = "Service and state")]
    service: service::ServiceArgs,
    #[command(flatten, next_help_heading = "Service and state")]
    state: state::StateArgs,
    #[command(flatten, next_help_heading = "Service and state")]
    pace: PaceArgs,
}

#[derive(Serialize)]
struct Done<'a> {
    ok: bool,
    order_id: &'a str,
    result: Option<&'a str>,
}

fn done(id: &OrderId, what: &str, result: Option<&str>, session: &Session) -> Result<u8, Failure> {
    if session.json {
        show::json(&Done { ok: true, order_id: id.as_str(), result })?;
    } else {
        show::field(what, &result.map_or_else(|| "accepted".to_owned(), text::escape_untrusted))?;
    }
    Ok(OK)
}

pub(crate) fn refund(args: &RefundArgs, session: &Session) -> Result<u8, Failure> {
    if args.all {
        return all::refund(args, session);
    }
    let given = args.id.as_deref().unwrap_or_default();
    if args.own.by_self {
        let (registry, policy) = args.trust.read()?;
        let state = args.state.open()?;
        let kept = Kept::read(given, &args.own, &state, &registry, &policy)?;
        let registry = kept.registry(&registry);
        let key = kept.signing_key(Leg::Source, registry, &state, session)?;
        let recovery = LegRecovery::new(&kept.record, Leg::Source, None, registry)?.with_default_key(key);
        let context = kept.context(Leg::Source, &args.own, || args.nodes.connect(registry, session), args.ending.speed(), &policy)?;
        let refunded = recovery.finish(kept.warnings.as_ref(), &context, || Ok(()), session);
        return refunded.map_err(|failure| kept.explain_early_refund(failure, registry));
    }
    args.own.signing.check_key_only(args.nodes.is_named()?)?;
    let (client, id) = (args.service.client(session)?, args.state.id(given)?);
    let state = args.state.open_existing()?;
    let kept = state.as_ref().map(|state| state.find(&id)).transpose()?.flatten();
    let (Some(state), Some(kept)) = (state, kept) else {
        // The relayer can only pay the owner, so the request is harmless for any order.
        let answer = service::run(session, async { Ok(client.act(&id, &Action::Refund).await?) })?;
        return done(&id, "refund", answer.value.as_deref(), session);
    };
    refund_stored(args, client, &state, &kept, |_| args.own.signing.key(session), session)?;
    done(&id, "refund", None, session)
}

/// Refunds an order that was created here, with the pins that were stored with it. `key` returns the given key, for an order
/// of these pins.
fn refund_stored(
    args: &RefundArgs,
    client: Client<Http>,
    state: &state::State,
    kept: &OrderState,
    key: impl FnOnce(&Registry) -> Result<Option<GivenKey>, Failure>,
    session: &Session,
) -> Result<(), Failure> {
    let id = kept.swap.id();
    let (registry, policy) = args.trust.to_end(kept)?;
    let nodes = Arc::new(args.nodes.connect(&registry, session)?);
    let key = key(&registry)?;
    let owner = ending_owner(kept, state, &registry, &policy, &nodes, key, &args.ending, session)?;
    let driver = drive::driver(Flow::new(client, registry, policy), &nodes, &state.store, owner, Pace::default(), None);
    session.advise(format!(
        "the refund may have been sent; run the same command again, or follow the order with: {}",
        session.commands.watch(id)
    ));
    service::run(session, follow::refund(&driver, id, session))?;
    session.progress(&format!("follow the refund with: {}", session.commands.watch(id)));
    Ok(())
}

pub(crate) fn redeem(args: &RedeemArgs, session: &Session) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let state = args.state.open()?;
    if args.own.by_self {
        let kept = Kept::read(&args.id, &args.own, &state, &registry, &policy)?;
        let secret = match &args.secret_file {
            Some(path) => recover::read_secret(path, session)?,
            None => kept.secret()?,
        };
        let registry = kept.registry(&registry);
        let key = match args.ending.redeem_key(Some(Leg::Destination.of(&kept.record).asset.chain()), session)? {
            Some(key) if !kept.is_bitcoin(Leg::Destination, registry) => Some(key),
            _ => kept.signing_key(Leg::Destination, registry, &state, session)?,
        };
        let recovery = LegRecovery::new(&kept.record, Leg::Destination, Some(&secret), registry)?.with_default_key(key);
        kept.check_evidence(args, recovery.recovery(), &state.store, (registry, &policy), session)?;
        let leaving = || if kept.order.is_some() { state.write_printed(&kept.id) } else { Ok(()) };
        let context = kept.context(Leg::Destination, &args.own, || args.nodes.connect(registry, session), args.ending.speed(), &policy)?;
        return recovery.finish(kept.warnings.as_ref(), &context, leaving, session);
    }
    args.own.signing.check_key_only(args.nodes.is_named()?)?;
    if args.secret_file.is_some() {
        return Err(usage("--secret-file is only used with --self: without it, only the stored secret of this order is used"));
    }
    let id = state.id(&args.id)?;
    let kept = state.load(&id)?;
    let (registry, policy) = args.trust.to_end(&kept)?;
    let nodes = Arc::new(args.nodes.connect(&registry, session)?);
    let trust = args.relying.trust();
    if trust.is_none() && !nodes.has(kept.swap.request().destination.asset.chain()) {
        if kept.is_to_be_paid() {
            check_paid(args, &kept, &state, (&registry, &policy), &nodes, session)?;
        }
        let message = format!(
            "the program is not connected to the destination chain, and the service's word does not prove that the solver has paid: connect the chain \
             with --node, pass --trust-the-service, or redeem with your own transaction: {}",
            session.commands.by_self(Leg::Destination, &kept, &registry)
        );
        return Err(Failure::NeedsUser { code: "evidence_needed", message });
    }
    let key = args.own.signing.key(session)?;
    let owner = ending_owner(&kept, &state, &registry, &policy, &nodes, key, &args.ending, session)?;
    let flow = Flow::new(args.service.client(session)?, registry, policy);
    let driver = drive::driver(flow, &nodes, &state.store, owner, args.pace.pace(), trust);
    session.advise(format!("the secret may have left; run the same command again, or continue with: {}", session.commands.resume(&id)));
    service::run(session, async {
        follow::release(&driver, &id, session).await?;
        session.progress("the secret was sent; following the redemption until it is complete");
        follow::follow(&driver, &id, trust, session).await
    })
}

/// Requires that an order of which no payment left from here may be paid, by its chain or the service: otherwise nothing has to be proven.
/// Says nothing if neither can be asked.
fn check_paid(
    args: &RedeemArgs,
    kept: &OrderState,
    state: &state::State,
    (registry, policy): (&Registry, &Policy),
    nodes: &Arc<Nodes<Http>>,
    session: &Session,
) -> Result<(), Failure> {
    let Ok(client) = args.service.client(session) else { return Ok(()) };
    let flow = Flow::new(client, registry.clone(), policy.clone());
    let driver = drive::driver(flow, nodes, &state.store, NoOwner, args.pace.pace(), None);
    match service::run(session, async { Ok(driver.advance(kept.swap.id()).await) })? {
        Ok(progress) => follow::check_paid(&progress),
        Err(_) => Ok(()),
    }
}

/// Returns an owner that can end an order and signs nothing else.
#[expect(clippy::too_many_arguments, reason = "shared by two commands")]
fn ending_owner<'s>(
    kept: &OrderState,
    state: &state::State,
    registry: &Registry,
    policy: &Policy,
    nodes: &Arc<Nodes<Http>>,
    named: Option<GivenKey>,
    ending: &EndingArgs,
    session: &'s Session,
) -> Result<TerminalOwner<'s>, Failure> {
    let key = if named.is_none() && nodes.names().next().is_some() {
        configured_key(Some(kept.swap.request().source.asset.chain()), session)?
    } else {
        named
    };
    let (refund, redeem) = ending.read(kept, state, registry, key.as_ref(), session)?;
    Ok(TerminalOwner {
        session,
        nodes: Arc::clone(nodes),
        store: Arc::clone(&state.store),
        speed: ending.speed(),
        refund,
        redeem,
        owner: kept.swap.request().source.owner.clone().unwrap_or_default(),
        wallet: None,
        // Only `swap` pays orders.
        key: None,
        configured_key: None,
        yes: false,
        full: false,
        registry: registry.clone(),
        quoted: None,
        secret_elsewhere: false,
        approved: false,
        own_transactions: false,
        at_least: None,
        policy: policy.clone(),
        // An account without coins is refused when it signs, and the relayer asked then.
        has_relayer: true,
    })
}

/// The stored documents of an order, and the record to recover it with. The service is not called.
struct Kept {
    id: OrderId,
    order: Option<OrderState>,
    /// The order as restored from the rescue phrase, if it was not created here.
    restored: Option<RestoredOrder>,
    record: OrderRecord,
    /// The warnings of a record that was verified against the stored request and response; `None` if these are not stored.
    warnings: Option<Warnings>,
    /// The terms of that record.
    terms: Option<VerifiedTerms>,
}

impl Kept {
    /// Reads the record. If the order was created here, verifies it again with the pins and the policy that were stored with the order.
    fn read(id: &str, own: &SelfArgs, state: &state::State, registry: &Registry, policy: &Policy) -> Result<Self, Failure> {
        let id = state.id(id)?;
        let (kept, restored) = (state.find(&id)?, state.restored(&id)?);
        let record = match (&own.order, &restored) {
            (Some(path), _) => Some(state::read_record(path)?),
            (None, Some(restored)) => Some(restored.record.clone()),
            (None, None) => state.record(&id)?,
        };
        let record = record.ok_or_else(|| usage("the state directory has no record of this order: pass one with --order"))?;
        if !record.order_id.eq_ignore_ascii_case(id.as_str()) {
            let refusal = At::RECORD.refuse_below(Code::RecordMismatch, "/order_id");
            return Err(refusal.with_expected(id.as_str()).with_actual(&record.order_id).into());
        }
        let Some(order) = kept else { return Ok(Self { id, order: None, restored, record, warnings: None, terms: None }) };
        let text = serde_json::to_vec(&record).map_err(usage)?;
        let VerifiedRecord { record, warnings, terms, .. } = order.verify_record(&text, registry, policy)?;
        Ok(Self { id, order: Some(order), restored, record, warnings: Some(warnings), terms: Some(terms) })
    }

    /// Returns the registry that was stored with the order, otherwise the current one. Removing a pin later must not prevent a refund or a
    /// redemption.
    fn registry<'r>(&'r self, current: &'r Registry) -> &'r Registry {
        self.order.as_ref().and_then(|order| order.pins.as_ref()).map_or(current, |pins| &pins.registry)
    }

    /// Returns the stored secret if it belongs to this order. A record alone could contain the secret hash of another order, so the stored
    /// request must contain it too. A restored order has no request; its hash was compared with its own index when it was restored.
    fn secret(&self) -> Result<Zeroizing<[u8; 32]>, Failure> {
        let restored = self.restored.as_ref().and_then(|restored| restored.secret.as_ref());
        let secret = self.order.as_ref().and_then(OrderState::own_secret).or(restored);
        let secret = secret.ok_or_else(|| usage("the order's secret is not in the state directory: pass --secret-file"))?;
        Ok(Zeroizing::new(*secret.expose()))
    }

    /// Adds when a refund is possible to the reason why the chain refuses it now.
    fn explain_early_refund(&self, failure: Failure, registry: &Registry) -> Failure {
        match failure {
            Failure::Refused(refusal) if refusal.code() == Code::SimulationReverted => {
                match refund_possible_from(&self.record, Leg::Source, registry).filter(|from| *from > show::now()) {
                    Some(from) => follow::not_refundable(refusal.reason(), Some(from)),
                    None => Failure::Refused(refusal),
                }
            }
            other => other,
        }
    }

    fn is_bitcoin(&self, leg: Leg, registry: &Registry) -> bool {
        registry.family(leg.of(&self.record).asset.chain()).is_ok_and(|family| family == Family::Bitcoin)
    }

    /// Returns what a recovery is built with: the given wallet context, or the chain itself where it is connected.
    fn context<'c>(
        &self,
        leg: Leg,
        own: &'c SelfArgs,
        connect: impl FnOnce() -> Result<Nodes<Http>, Failure>,
        speed: Speed,
        policy: &'c Policy,
    ) -> Result<Context<'c>, Failure> {
        let chain = leg.of(&self.record).chain.clone();
        let offline = Context { signing: &own.signing, policy, chain: None };
        if own.signing.has_wallet() {
            return Ok(offline);
        }
        let nodes = connect()?;
        if !nodes.has(&chain) {
            return Ok(offline);
        }
        let owner = self.order.as_ref().and_then(|order| match leg {
            Leg::Source => order.swap.request().source.owner.clone(),
            _ => order.swap.request().destination.owner.clone(),
        });
        // A refund does not reveal the secret, so it can wait.
        let is_urgent = leg == Leg::Destination && self.order.as_ref().is_some_and(OrderState::secret_was_sent);
        Ok(Context { chain: Some(ConnectedChain { nodes, name: chain, owner, speed, is_urgent }), ..offline })
    }

    /// Returns the key that signs if no other is given. On a Bitcoin-like chain it is the derived key of the leg, if the order contains its
    /// public key; on other chains it is the key of the configuration file.
    fn signing_key(&self, leg: Leg, registry: &Registry, state: &state::State, session: &Session) -> Result<Option<GivenKey>, Failure> {
        if !self.is_bitcoin(leg, registry) {
            return configured_key(Some(leg.of(&self.record).asset.chain()), session);
        }
        let index = match (&self.order, &self.restored) {
            (Some(order), _) => order.key_index(),
            (None, Some(_)) => state.index(&self.id)?,
            (None, None) => None,
        };
        let requested = self.order.as_ref().map(|order| match leg {
            Leg::Source => order.swap.request().source.delegate.as_deref(),
            _ => order.swap.request().destination.delegate.as_deref(),
        });
        // Without the request, the public key is that of the record.
        state.derived_key(leg, index, requested.unwrap_or_else(|| owner_key(&self.record, leg)))
    }
}
