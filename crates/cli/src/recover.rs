//! `countersign recover`

use std::path::PathBuf;

use countersign::bitcoin::recover::{Fee, Funding, FundingStatus, InstantRefund, Payout, RecordedHtlc};
use countersign::bitcoin::{FeeRate, Key, Payment, bitcoin};
use countersign::{Code, Leg, OrderRecord, Refusal, Summary, Warnings};
use countersign_batch::Request;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::input::{self, Failure, KeyArgs, TrustArgs};
use crate::{OK, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign recover --registry registry.json --order record.json --funding <txid>:0:50000 --to bc1q... --fee-rate 2.5
  countersign recover ... --key-file refund-key.txt --json | jq -r .signed
  countersign recover --registry registry.json --order record.json --funding <txid>:0:50000 --to bc1q... --instant --hash <hash> --key-env KEY
  countersign recover ... --leg destination --secret-file secret.txt --key-file redeem-key.txt   # redeems

Account chains need no key to refund: the service's relayer, or anyone, calls the contract.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    /// The order record, bare or in its envelope; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    order: PathBuf,
    /// Which leg of the order: what you paid, or what you are paid.
    #[arg(long, value_enum, default_value = "source")]
    leg: LegArg,
    /// An unspent output of the HTLC, as your node shows it. Can be given several times.
    #[arg(long, value_name = "TXID:INDEX:AMOUNT", required_unless_present = "presigned")]
    funding: Vec<String>,
    /// Your address, where the coins go.
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Base units per virtual byte, deducted from what is paid out.
    #[arg(long, value_name = "RATE", required_unless_present_any = ["instant", "presigned"])]
    fee_rate: Option<String>,
    /// Redeems with the secret in this file, 64 hex digits, instead of refunding.
    #[arg(long, value_name = "FILE", conflicts_with = "instant")]
    secret_file: Option<PathBuf>,
    /// Signs the instant refund, which the solver has to sign too, and prints the body of the PATCH.
    #[arg(long)]
    instant: bool,
    /// A hash that the service wants signed, one for each output. It is refused unless it is the one computed here.
    #[arg(long, value_name = "HEX", requires = "instant")]
    hash: Vec<String>,
    /// Only verifies the presigned instant refund of the record, for the outputs that the record names.
    #[arg(long, conflicts_with_all = ["instant", "secret_file", "funding"])]
    presigned: bool,
    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LegArg {
    Source,
    Destination,
}

impl From<LegArg> for Leg {
    fn from(leg: LegArg) -> Self {
        match leg {
            LegArg::Source => Self::Source,
            LegArg::Destination => Self::Destination,
        }
    }
}

#[derive(Serialize)]
struct Spent<'a> {
    ok: bool,
    psbt: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<Request>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_id: Option<String>,
    summary: Summary,
    warnings: &'a Warnings,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let record = OrderRecord::from_json(&input::read(&args.order)?).map_err(|refusal| refusal.under("/order"))?;
    let htlc = RecordedHtlc::new(&record, args.leg.into(), &registry)?;
    let key = args.key.read()?.map(|text| Key::parse(&text).map_err(|error| Refusal::new(error, "/key"))).transpose()?;
    if args.presigned {
        return hashes(&InstantRefund::verify_presigned(&htlc, &*args.to)?, json);
    }
    let funding = |text: &String| Funding::parse(text).map_err(|error| Refusal::new(error, "/funding").with_actual(text));
    let fundings = args.funding.iter().map(funding).collect::<Result<Vec<_>, _>>()?;
    if args.instant {
        let refund = InstantRefund::new(&htlc, &fundings, &*args.to)?;
        if !args.hash.is_empty() {
            let texts: Vec<_> = args.hash.iter().map(String::as_str).collect();
            refund.check_hashes(&texts).map_err(|refusal| refusal.under("/hashes"))?;
        }
        return match key {
            Some(key) => show::json(&refund.sign(&key).map_err(|refusal| refusal.under("/key"))?).map(|()| OK).map_err(Failure::from),
            None => hashes(&refund, json),
        };
    }
    let rate = FeeRate::parse(args.fee_rate.as_deref().unwrap_or_default()).map_err(|error| Refusal::new(error, "/fee_rate"))?;
    rate.check(policy.bitcoin_fee_rate, "/fee_rate")?;
    let payout = Payout::new(fundings, &*args.to, Fee::Deducted(rate));
    let mut order = match &args.secret_file {
        Some(path) => htlc.redeem(&*secret(&input::read(path)?)?, &payout)?,
        None => htlc.refund(&payout)?,
    };
    if let Some(key) = &key {
        order.sign(key).map_err(|refusal| refusal.under("/key"))?;
    }
    let payment = order.payloads().payment.as_ref();
    let psbt = payment.map(|payment| payment.signed_psbt().to_string()).unwrap_or_default();
    let transaction = payment.and_then(Payment::signed_transaction);
    let signed = transaction.as_ref().map(bitcoin::consensus::encode::serialize_hex);
    let tx_id = transaction.as_ref().map(|transaction| transaction.compute_txid().to_string());
    let requests = if signed.is_some() { Vec::new() } else { order.requests().into_iter().map(Request::from).collect() };
    if json {
        show::json(&Spent { ok: true, psbt, requests, signed, tx_id, summary: order.summary(), warnings: order.warnings() })?;
        return Ok(OK);
    }
    if let status @ FundingStatus::Partial { .. } = htlc.funding_status() {
        show::field("record", &status.to_string())?;
    }
    show::summary(&order.summary(), None)?;
    show::warnings(order.warnings())?;
    show::field("psbt", &psbt)?;
    show::requests(&requests)?;
    if let (Some(signed), Some(tx_id)) = (&signed, &tx_id) {
        show::field("transaction", signed)?;
        show::field("id", tx_id)?;
    }
    Ok(OK)
}

fn secret(text: &[u8]) -> Result<Zeroizing<[u8; 32]>, Failure> {
    let mut secret = Zeroizing::new([0; 32]);
    let digits = std::str::from_utf8(text).ok().map(str::trim).unwrap_or_default();
    hex::decode_to_slice(digits, secret.as_mut_slice()).map_err(|_| Refusal::new(Code::SecretWrong, "/secret"))?;
    Ok(secret)
}

/// Prints the requests to an external signer.
fn hashes(refund: &InstantRefund, json: bool) -> Result<u8, Failure> {
    let requests: Vec<_> = refund.requests().into_iter().map(Request::from).collect();
    if json {
        show::json(&requests)?;
        return Ok(OK);
    }
    for (request, output) in requests.iter().zip(&refund.transaction.output) {
        show::heading(&format!("instant refund of {} sat, sign {} with {}", output.value.to_sat(), request.id, request.signer))?;
        show::field("digest", &request.digest.to_string())?;
    }
    Ok(OK)
}
