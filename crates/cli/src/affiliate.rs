//! `countersign earnings|claim`

use countersign::evm::claim::Claim;
use countersign::evm::{Evm, Key};
use countersign::json::{self, Cursor};
use countersign::wire::Earnings;
use countersign::{Code, Family, Refusal, Registry, report::Hex};
use countersign_json::JsonFamily;
use serde::Serialize;

use crate::amount;
use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::files;
use crate::input::{RegistryArgs, TrustArgs, WalletArgs};
use crate::key::KeyArgs;
use crate::quote::asset;
use crate::session::Session;
use crate::{lists, service, show};

#[derive(clap::Args)]
pub(crate) struct ClaimArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    wallet: WalletArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// Claims only the earnings in this asset.
    #[arg(long, value_name = "ASSET")]
    asset: Option<String>,
}

/// The service, and the registry with the decimals of assets.
#[derive(clap::Args)]
pub(crate) struct EarningsArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(crate) fn earnings(args: &EarningsArgs, session: &Session) -> Result<u8, Failure> {
    let (client, registry) = (args.service.client(session)?, args.registry.read()?);
    let answer = service::run(session, async { Ok(client.earnings().await?) })?;
    if session.json {
        show::answer(&answer.body)?;
        return Ok(OK);
    }
    lists::earnings(&answer.value, registry.as_ref())?;
    Ok(OK)
}

/// One claim call, with its signing request and signed transaction if there are any.
#[derive(Serialize)]
struct Prepared {
    asset: String,
    chain_id: u64,
    affiliate: String,
    total_rewards: String,
    /// The total in whole units, for people.
    #[serde(skip)]
    shown: String,
    to: String,
    data: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_payload: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_hash: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed: Option<Hex>,
}

pub(crate) fn claim(args: &ClaimArgs, session: &Session) -> Result<u8, Failure> {
    let (registry, _) = args.trust.read()?;
    let wanted = args.asset.as_deref().map(asset).transpose()?;
    let client = args.service.client(session)?;
    let rows = service::run(session, async { Ok(client.earnings().await?) })?.value;
    let mut claims = Vec::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| wanted.as_ref().is_none_or(|wanted| row.asset == *wanted)) {
        if let Some(claim) =
            Claim::from_earnings(row, &registry).map_err(|refusal| refusal.with_prefix(&format!("/response/result/{index}")))?
        {
            claims.push((row, claim));
        }
    }
    if let (Some(path), [_, _, ..]) = (&args.wallet.wallet, claims.as_slice()) {
        return Err(usage(format_args!(
            "{}: a wallet context has the nonce for a single call: choose an asset with --asset",
            path.display()
        )));
    }
    let claims = claims.iter().map(|(row, claim)| prepare(args, row, claim, &registry, session)).collect::<Result<Vec<_>, Failure>>()?;
    if session.json {
        show::json(&claims)?;
        return Ok(OK);
    }
    if claims.is_empty() {
        show::field("claim", "nothing to claim")?;
    }
    for claim in claims {
        show::heading(&format!("claim {}, the total ever earned", claim.shown))?;
        show::field("paid to", &claim.affiliate)?;
        show::field("distributor", &format!("{} on chain {}; this address is not pinned, so check it", claim.to, claim.chain_id))?;
        show::artefacts(&serde_json::to_value(&claim).map_err(usage)?, "")?;
    }
    Ok(OK)
}

fn prepare(args: &ClaimArgs, row: &Earnings, claim: &Claim, registry: &Registry, session: &Session) -> Result<Prepared, Failure> {
    let mut prepared = Prepared {
        asset: row.asset.to_string(),
        chain_id: claim.chain_id,
        affiliate: claim.to.to_string(),
        total_rewards: claim.total_rewards.to_string(),
        shown: amount::shown(claim.total_rewards, &row.asset, Some(registry)),
        to: claim.call.to.to_string(),
        data: Hex(claim.call.data.to_vec()),
        signing_payload: None,
        signing_hash: None,
        signed: None,
    };
    let Some(path) = &args.wallet.wallet else { return Ok(prepared) };
    let text = files::read(path)?;
    let value = json::parse(&text).map_err(|refusal| refusal.with_prefix("/wallet"))?;
    let path = Evm::read_wallet(Cursor::root(&value, "/wallet"))?;
    let calls = path.path.self_funded().ok_or_else(|| Refusal::new(Code::MissingField, "/wallet/nonce"))?;
    let key = args
        .key
        .read(session)?
        .map(|key| Key::parse(&key).map_err(|error| key.explain(Refusal::new(error, "/wallet/secret_key"), Family::Evm)));
    let key = key.transpose()?;
    // Anyone may send the claim. The sender follows from the signature.
    let sender = key.as_ref().map_or(claim.to, Key::address);
    let mut order = claim.prepare(calls.clone().sent_by(sender)).map_err(|refusal| refusal.with_prefix("/wallet"))?;
    if let Some(request) = order.requests().into_iter().next() {
        prepared.signing_payload = Some(Hex(request.message));
        prepared.signing_hash = Some(Hex(request.digest));
    }
    if let Some(key) = key {
        order.sign(&key)?;
        let signed = order.finish().map_err(Refusal::from)?;
        prepared.signed = signed.transactions().into_iter().next().map(|transaction| Hex(transaction.bytes));
    }
    Ok(prepared)
}
