//! `countersign refund|redeem|instant-refund`: ends an order through the service's relayer.

use std::path::PathBuf;

use countersign::bitcoin::Key;
use countersign::bitcoin::recover::Funding;
use countersign::{Code, OrderRecord, Refusal, text};
use countersign_client::{Action, Answer, Flow, OrderId};
use serde::Serialize;

use crate::input::{Failure, KeyArgs, TrustArgs, usage};
use crate::{OK, service, show, state};

#[derive(clap::Args)]
pub(crate) struct RefundArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    /// The order's id.
    id: String,
}

#[derive(clap::Args)]
pub(crate) struct RedeemArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    state: state::StateArgs,
    /// Reads the secret from a file of 64 hex digits. By default it is the one that was kept when the order was created.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// The order's id; it must have been created here.
    id: String,
}

#[derive(clap::Args)]
pub(crate) struct InstantRefundArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    state: state::StateArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// A funding output. Can be given several times. By default the record's only funding transaction is searched.
    #[arg(long, value_name = "TXID:INDEX:UNITS")]
    funding: Vec<String>,
    /// The order's id; it must have been created here.
    id: String,
}

#[derive(Serialize)]
struct Done<'a> {
    ok: bool,
    order_id: &'a str,
    result: Option<&'a str>,
}

fn done(id: &OrderId, what: &str, answer: &Answer<Option<String>>, json: bool) -> Result<u8, Failure> {
    let result = answer.value.as_deref();
    if json {
        show::json(&Done { ok: true, order_id: id.as_str(), result })?;
    } else {
        show::field(what, &result.map_or_else(|| "accepted".to_owned(), text::escape_untrusted))?;
    }
    Ok(OK)
}

pub(crate) fn refund(args: &RefundArgs, json: bool) -> Result<u8, Failure> {
    let (client, id) = (args.service.client()?, OrderId::parse(&args.id)?);
    let answer = service::run(async { Ok(client.act(&id, &Action::Refund).await?) })?;
    done(&id, "refund", &answer, json)
}

pub(crate) fn redeem(args: &RedeemArgs, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let state = args.state.open()?;
    let swap = state.load(&OrderId::parse(&args.id)?)?;
    let flow = Flow::new(args.service.client()?, registry, policy);
    let answer = service::run(async {
        let secret = match &args.secret_file {
            Some(path) => state::read_secret(path)?,
            None => {
                let hash = flow.follow(&swap).await?.source_swap.secret_hash;
                state.secret(&hash)?.ok_or_else(|| usage("the order's secret is not kept here: name --secret-file"))?
            }
        };
        Ok(flow.redeem(&swap, &secret).await?)
    })?;
    done(swap.id(), "redeem", &answer, json)
}

pub(crate) fn instant_refund(args: &InstantRefundArgs, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let swap = args.state.open()?.load(&OrderId::parse(&args.id)?)?;
    let text = args.key.read()?.ok_or_else(|| usage("no key: name a source with --key-file, --key-env or --key-stdin"))?;
    let key = Key::parse(&text).map_err(|error| Refusal::new(error, "/wallet/secret_key"))?;
    let funding = |text: &String| Funding::parse(text).map_err(|error| usage(format_args!("{text}: {error}")));
    let given = args.funding.iter().map(funding).collect::<Result<Vec<_>, _>>()?;
    let owner = swap.request().source.owner.as_deref().ok_or_else(|| Refusal::new(Code::MissingField, "/request/source/owner"))?;
    let flow = Flow::new(args.service.client()?, registry, policy);
    let answer = service::run(async {
        let sign = |record: &OrderRecord, hashes: &[[u8; 32]]| {
            let refund = countersign_client::instant_refund(record, flow.registry(), &given, owner, hashes)?;
            Ok(refund.sign(&key).map_err(|refusal| refusal.under("/wallet/secret_key"))?.signatures)
        };
        Ok(flow.instant_refund(&swap, sign).await?)
    })?;
    done(swap.id(), "instant refund", &answer, json)
}
