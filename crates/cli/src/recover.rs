//! `countersign recover`

use std::path::PathBuf;

use countersign::bitcoin::recover::{Fee, Funded, Funding, InstantRefund, Leg, Swap};
use countersign::bitcoin::{FeeRate, Key, Signed, describe_payment};
use countersign::json::{self, Node, Value};
use countersign::wire::{OrderRecord, Read};
use countersign::{Code, Refusal, SigningRequest, Summary};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::input::{self, Failure, KeyArgs, TrustArgs};
use crate::{OK, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign recover --registry registry.json --order record.json --funding <txid>:0:50000 --to bc1q... --fee-rate 2.5
  countersign recover ... --key-file refund-key.txt --json | jq -r .signed
  countersign recover --registry registry.json --order record.json --funding <txid>:0:50000 --to bc1q... --instant --hash <hash> --key-env KEY
  countersign recover ... --side destination --secret-file secret.txt --key-file redeem-key.txt   # redeems

Account chains need no key to refund: the service's relayer, or anyone, calls the contract.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    /// The order record, bare or in its envelope; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    order: PathBuf,
    /// Which side of the order: what you paid, or what you are paid.
    #[arg(long, value_enum, default_value = "source")]
    side: Side,
    /// An unspent output of the HTLC as your node shows it, once for each.
    #[arg(long, value_name = "TXID:INDEX:AMOUNT", required_unless_present = "presigned")]
    funding: Vec<String>,
    /// Your address, where the coins go.
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Base units per virtual byte, deducted from what comes out.
    #[arg(long, value_name = "RATE", required_unless_present_any = ["instant", "presigned"])]
    fee_rate: Option<String>,
    /// Redeems with the secret in this file, 64 hex digits, in place of refunding.
    #[arg(long, value_name = "FILE", conflicts_with = "instant")]
    secret_file: Option<PathBuf>,
    /// Signs the instant refund, which the solver has to sign too: prints the body of the PATCH.
    #[arg(long)]
    instant: bool,
    /// A hash that the service wants signed, once for each output: refused unless it is the one computed here.
    #[arg(long, value_name = "HEX", requires = "instant")]
    hash: Vec<String>,
    /// Only verifies the instant refund that the service has presigned in the record, for the outputs that the record names.
    #[arg(long, conflicts_with_all = ["instant", "secret_file", "funding"])]
    presigned: bool,
    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Side {
    Source,
    Destination,
}

#[derive(Serialize)]
struct Spent<'a> {
    ok: bool,
    psbt: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<SigningRequest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_id: Option<String>,
    summary: &'a Summary,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let text = input::read(&args.order)?;
    let value = json::parse(&text).map_err(|refusal| refusal.under("/order"))?;
    let record = record(&value)?;
    let leg = match args.side {
        Side::Source => Leg::Source,
        Side::Destination => Leg::Destination,
    };
    let swap = Swap::of(&record, leg, &registry)?;
    let key = args.key.read()?.map(|text| Key::parse(&text).map_err(|code| Refusal::new(code, "/key"))).transpose()?;
    if args.presigned {
        let refund = InstantRefund::verify_presigned(&swap, &args.to)?;
        return hashes(&refund, json);
    }
    let funding = |text: &String| Funding::parse(text).map_err(|code| Refusal::new(code, "/funding").with_actual(text));
    let fundings = args.funding.iter().map(funding).collect::<Result<Vec<_>, _>>()?;
    if args.instant {
        let refund = InstantRefund::new(&swap, &fundings, &args.to)?;
        if !args.hash.is_empty() {
            refund.check_hashes(&args.hash.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        return match key {
            Some(key) => show::json(&refund.sign(&key)?).map(|()| OK).map_err(Failure::from),
            None => hashes(&refund, json),
        };
    }
    let rate = FeeRate::parse(args.fee_rate.as_deref().unwrap_or_default()).map_err(|code| Refusal::new(code, "/fee_rate"))?;
    rate.check(policy.bitcoin_fee_rate, "/fee_rate")?;
    let fee = Fee::Deducted(rate);
    let payment = match &args.secret_file {
        Some(path) => swap.redeem(&*secret(&input::read(path)?)?, &fundings, &args.to, &fee)?,
        None => swap.refund(&fundings, &args.to, &fee)?,
    };
    let mut summary = Summary::default();
    describe_payment(&payment, swap.chain, &mut summary);
    let signed = key.map(|key| payment.sign(&key, swap.chain)).transpose()?;
    let requests = if signed.is_some() { Vec::new() } else { payment.requests(swap.chain) };
    let (raw, tx_id) = (signed.as_ref().and_then(Signed::raw), signed.as_ref().and_then(Signed::tx_id));
    let psbt = signed.as_ref().map_or(&payment.psbt, |signed| &signed.psbt).to_string();
    if json {
        show::json(&Spent { ok: true, psbt, requests, signed: raw, tx_id, summary: &summary })?;
        return Ok(OK);
    }
    if let funded @ Funded::Partly { .. } = swap.funded() {
        show::field("record", &funded.to_string())?;
    }
    show::summary(&summary, None)?;
    show::field("psbt", &psbt)?;
    for request in &requests {
        show::heading(&format!("sign {} with {}", request.name, request.signer))?;
        show::field("digest", &request.digest.to_string())?;
    }
    if let (Some(raw), Some(tx_id)) = (&raw, &tx_id) {
        show::field("transaction", raw)?;
        show::field("id", tx_id)?;
    }
    Ok(OK)
}

fn record(value: &Value<'_>) -> Result<OrderRecord, Refusal> {
    let node = Node::root(value, "/order");
    let members = node.object()?;
    match members.get("result") {
        Some(result) if members.get("source_swap").is_none() => OrderRecord::read(result),
        _ => OrderRecord::read(node),
    }
}

fn secret(text: &[u8]) -> Result<Zeroizing<[u8; 32]>, Failure> {
    let mut secret = Zeroizing::new([0; 32]);
    let digits = std::str::from_utf8(text).ok().map(str::trim).unwrap_or_default();
    hex::decode_to_slice(digits, secret.as_mut_slice()).map_err(|_| Refusal::new(Code::SecretWrong, "/secret"))?;
    Ok(secret)
}

/// What is to be signed, for a signer outside.
fn hashes(refund: &InstantRefund, json: bool) -> Result<u8, Failure> {
    let requests = refund.requests();
    if json {
        show::json(&requests)?;
        return Ok(OK);
    }
    for (request, output) in requests.iter().zip(&refund.transaction.output) {
        show::heading(&format!("instant refund of {} sat, sign {} with {}", output.value.to_sat(), request.name, request.signer))?;
        show::field("digest", &request.digest.to_string())?;
    }
    Ok(OK)
}
