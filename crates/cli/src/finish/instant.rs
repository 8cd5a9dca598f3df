//! `countersign instant-refund`: signs the refund of a Bitcoin-like deposit before its timelock ends.

use countersign::bitcoin::Key;
use countersign::bitcoin::recover::Funding;
use countersign::json::At;
use countersign::recover::Leg;
use countersign::{Code, Family, OrderRecord, Refusal};
use countersign_client::Flow;

use super::done;
use crate::failure::{Failure, usage};
use crate::input::TrustArgs;
use crate::key::KeyArgs;
use crate::nodes::NodeArgs;
use crate::session::Session;
use crate::{recover, service, state};

pub(crate) const INSTANT_EXAMPLES: &str = "Examples:
  countersign instant-refund <order id>
  countersign instant-refund <order id> --key-file refund-key.txt --funding <txid>:0:50000

Only for an order that you paid on Bitcoin or Litecoin, and that the solver has not paid. The solver has to sign too, through the service, so
the refund needs no timelock. Without a key, that of the rescue phrase is used.";

#[derive(clap::Args)]
pub(crate) struct InstantRefundArgs {
    /// The order's id, or its first digits. The order must have been created here.
    #[arg(help_heading = "The order")]
    id: String,
    #[command(flatten, next_help_heading = "Your own transaction")]
    key: KeyArgs,
    /// A funding output, with its amount in base units. Can be given several times. By default the outputs are those that the chain's
    /// endpoints show, and those of the record's only funding transaction.
    #[arg(help_heading = "Your own transaction", long, value_name = "TXID:INDEX:UNITS")]
    funding: Vec<String>,
    #[command(flatten, next_help_heading = "Chains")]
    nodes: NodeArgs,
    #[command(flatten, next_help_heading = "Trust")]
    trust: TrustArgs,
    #[command(flatten, next_help_heading = "Service and state")]
    service: service::ServiceArgs,
    #[command(flatten, next_help_heading = "Service and state")]
    state: state::StateArgs,
}

pub(crate) fn instant_refund(args: &InstantRefundArgs, session: &Session) -> Result<u8, Failure> {
    let state = args.state.open()?;
    let kept = state.load(&state.id(&args.id)?)?;
    let (registry, policy) = args.trust.of_order(&kept)?;
    let pinned = &registry;
    let swap = &kept.swap;
    let key = match args.key.read(session)? {
        Some(key) => Some(key),
        None => state.derived_key(Leg::Source, kept.key_index(), swap.request().source.delegate.as_deref())?,
    };
    let text = key.ok_or_else(|| usage("no key: pass --key-file, --key-env or --key-stdin"))?;
    let parsed = Key::parse(&text).map_err(|error| text.explain(Refusal::new(error, "/wallet/secret_key"), Family::Bitcoin));
    let key = parsed?;
    let funding = |text: &String| Funding::parse(text).map_err(|error| usage(format_args!("{text}: {error}")));
    let given = args.funding.iter().map(funding).collect::<Result<Vec<_>, _>>()?;
    let owner = swap.request().source.owner.as_deref().ok_or_else(|| At::REQUEST.refuse_below(Code::MissingField, "/source/owner"))?;
    let nodes = if given.is_empty() { Some(args.nodes.connect(pinned, session)?) } else { None };
    let flow = Flow::new(args.service.client(session)?, registry.clone(), policy);
    let answer = service::run(session, async {
        let outputs = match &nodes {
            Some(nodes) => nodes.deposit(&flow.follow_stored(&kept).await?.record, pinned).await?.ok_or_else(not_shown)?,
            None => given,
        };
        let sign = |record: &OrderRecord, hashes: &[[u8; 32]]| {
            let refund = countersign_client::instant_refund(record, pinned, &outputs, owner, hashes)?;
            recover::report(&refund.warnings, session);
            if !refund.is_whole(&outputs) {
                session.progress("this may be only a part of what you paid; whatever is left can be refunded after the timelock");
            }
            Ok(refund.sign(&key).map_err(|refusal| refusal.with_prefix("/wallet/secret_key"))?.signatures)
        };
        Ok(flow.instant_refund(&kept, sign).await?)
    })?;
    done(swap.id(), "instant refund", answer.value.as_deref(), session)
}

fn not_shown() -> Failure {
    let message = "neither the service nor the endpoints show your payment yet: run the same command again once it is in a block";
    Failure::Network { code: "not_refunded", message: message.to_owned() }
}
