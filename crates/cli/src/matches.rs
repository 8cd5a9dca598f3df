//! `countersign match`

use std::path::{Path, PathBuf};

use countersign::{Code, Family, Proposal, Refusal, Registry, Role, Verified, Warnings, report::OrderStage};
use countersign_client::Http;
use countersign_node::{NodeError, Nodes};
use serde::Serialize;

use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::files;
use crate::input::{CaseArgs, TrustArgs};
use crate::nodes::NodeArgs;
use crate::sent::{Found, Sent, may_be_of_another};
use crate::session::Session;
use crate::state::StateArgs;
use crate::{service, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign match --registry registry.json --case case.json transaction.json
  countersign match --registry registry.json --request request.json --response response.json signed.psbt
  countersign match --registry registry.json --case case.json --id 0x... --nodes nodes.json
  countersign match --stored 4784d9c7... --id 0x...        # an order that this program created
  echo 0x02f8... | countersign match --registry registry.json --case case.json -

The file has what the wallet returned, or what a node returns for the transaction's id: JSON of eth_getTransactionByHash,
starknet_getTransactionByHash, gettransactionbyid (Tron), getTransaction with base64 (Solana), with or without its JSON-RPC envelope; or the
signed bytes, binary or in hex, base64 or base58; on Bitcoin and Litecoin also a PSBT. If another account sent it for the owner, such as a
bundler, a relay, an owner of a Safe or a member of a multisig, pass what says what it did: the answer to wallet_getCallsStatus or the receipt
(EVM), gettransactioninfobyid (Tron), starknet_getTransactionReceipt (Starknet), getTransaction (Solana).

The wallet may have chosen nonce, fees, blockhash, gas and coins. What else it may change, such as a larger approval, is a warning. Everything
else must equal the order, or the first difference is shown.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    case: CaseArgs,
    /// The id of an order of the state directory, whose request, response and record are taken in place of files.
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["case", "request", "response", "order"])]
    stored: Option<String>,
    #[command(flatten)]
    state: StateArgs,
    /// What the wallet sent; `-` is stdin.
    #[arg(value_name = "FILE", required_unless_present = "id")]
    sent: Option<PathBuf>,
    /// The id of the transaction, which is then read from the source chain: hash, signature or digest, as explorers show it. On EVM
    /// chains, Tron, Starknet and Solana also that of another account, which paid for the owner.
    #[arg(long, value_name = "ID", conflicts_with = "sent")]
    id: Option<String>,
    #[command(flatten)]
    nodes: NodeArgs,
}

/// What was proven, as JSON.
#[derive(Serialize)]
struct Matched<'a> {
    id: Option<&'a str>,
    ok: bool,
    family: &'static str,
    order_id: &'a str,
    role: Role,
    /// What was compared: `transaction`, `psbt`, `calls`, or `receipt` of the chain.
    form: &'static str,
    /// The id of the transaction, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<&'a str>,
    /// The fee of a PSBT in base units, where it has every output that it spends.
    #[serde(skip_serializing_if = "Option::is_none")]
    fee: Option<String>,
    not_proven: &'static str,
    /// What the wallet changed although it may.
    changed: &'a Warnings,
    warnings: &'a Warnings,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    // The wallet may have paid already, so nobody is told not to sign.
    if let Some(id) = &args.stored {
        let kept = args.state.open()?.load(&args.state.id(id)?)?;
        let (registry, policy) = args.trust.of_order(&kept)?;
        let proposal = Proposal::new(kept.swap.request(), kept.swap.response());
        let proposal = kept.record.iter().fold(proposal, |proposal, record| proposal.with_record(record));
        let order = countersign::verify(proposal, &registry, &policy).map_err(Failure::RefusedAfterPaying)?;
        return print(&order, &find(args, &order, &registry, session)?, None, session);
    }
    let (registry, policy) = args.trust.read()?;
    let texts = args.case.read(None, "; or an order of this program with --stored")?;
    texts.open(|values| {
        let order = values.case().and_then(|case| case.verify(&registry, &policy)).map_err(Failure::RefusedAfterPaying)?;
        print(&order, &find(args, &order, &registry, session)?, values.id(), session)
    })
}

/// Proves what the wallet sent.
fn find(args: &Args, order: &Verified, registry: &Registry, session: &Session) -> Result<Found, Failure> {
    match (&args.sent, &args.id) {
        (Some(path), _) => {
            let name = if path == Path::new("-") { "stdin".into() } else { path.to_string_lossy() };
            Ok(Sent::read(&files::read(path)?, &name, order.family())?.find(order).map_err(after_sending)?)
        }
        (None, Some(id)) => {
            let nodes = args.nodes.connect(registry, session)?;
            service::run(session, by_id(&nodes, order, id))
        }
        (None, None) => Err(usage("pass a file with what the wallet sent, or --id")),
    }
}

/// Proves the transaction with this id. A payment whose effect the endpoints show must have paid: one that failed locks nothing. One that is
/// not of the order, or that cannot be read as one of any order, may be that of a bundler or a relay: what it did decides then, if the endpoints
/// have its receipt.
async fn by_id(nodes: &Nodes<Http>, order: &Verified, id: &str) -> Result<Found, Failure> {
    let found = |form, (role, changed)| Found { role, changed, form, transaction: Some(id.to_owned()), fee: None };
    let refused = |refusal: Refusal| after_sending(refusal.with_prefix("/transaction"));
    let failure = match nodes.sent(order.chain(), id).await {
        Ok(Some(transaction)) => match order.match_with_warnings(&transaction) {
            Ok(matched) if matched.0 == Role::Initiate => {
                return match nodes.find_payment(order, id).await {
                    // Without a location, the contract's events can prove no payment, and show nothing against this one either.
                    Err(NodeError::Refused(refusal)) if refusal.code() == Code::TransactionMismatch && !refusal.location().is_empty() => {
                        Err(after_sending(refusal.with_prefix("/calls")))
                    }
                    // It may be in no block yet, and what it did may not be served.
                    _ => Ok(found("transaction", matched)),
                };
            }
            Ok(matched) => return Ok(found("transaction", matched)),
            Err(refusal) if may_be_of_another(&refusal) => refused(refusal),
            Err(refusal) => return Err(refused(refusal)),
        },
        Ok(None) => {
            let message = format!("{}: no endpoint knows this transaction; wait until it is sent, or check the id", order.chain());
            return Err(Failure::Network { code: "transaction_unknown", message });
        }
        // A kind that no order needs, such as one that delegates the account, or one that failed.
        Err(NodeError::Refused(refusal)) if refusal.code() == Code::TransactionMismatch => refused(refusal),
        // The endpoints answered, with what this program does not read, such as a list that is longer than any order's.
        Err(error @ (NodeError::Malformed { .. } | NodeError::Disagree { .. })) => error.into(),
        Err(error) => return Err(error.into()),
    };
    if nodes.find_payment(order, id).await.unwrap_or_default() {
        return Ok(found("receipt", (Role::Initiate, Warnings::default())));
    }
    Err(failure)
}

/// What was sent is not signed any more: nobody is told not to.
fn after_sending(refusal: Refusal) -> Failure {
    match countersign_json::stage_of_sent(&refusal) {
        OrderStage::AfterPaying => Failure::RefusedAfterPaying(refusal),
        _ => Failure::Refused(refusal),
    }
}

fn print(order: &Verified, found: &Found, id: Option<&str>, session: &Session) -> Result<u8, Failure> {
    let not_proven = not_proven(order.family(), found);
    if session.json {
        show::json(&Matched {
            id,
            ok: true,
            family: order.family().name(),
            order_id: order.order_id(),
            role: found.role,
            form: found.form,
            transaction: found.transaction.as_deref(),
            fee: found.fee.map(|fee| fee.to_string()),
            not_proven,
            changed: &found.changed,
            warnings: order.warnings(),
        })?;
        return Ok(OK);
    }
    show::field("role", &format!("{}: {}", found.role, meaning(found.role)))?;
    show::field("order id", order.order_id())?;
    found.transaction.iter().try_for_each(|id| show::field("transaction", id))?;
    found.fee.iter().try_for_each(|fee| show::field("fee", &format!("{fee} sat")))?;
    show::field("not proven", not_proven)?;
    show::warnings(&found.changed)?;
    show::warnings(order.warnings())?;
    Ok(OK)
}

const fn meaning(role: Role) -> &'static str {
    match role {
        Role::ApprovalReset => "sets the token allowance to zero, and pays nothing yet",
        Role::Approval => "approves the token amount, and pays nothing yet",
        _ => "locks the funds of this order",
    }
}

/// Returns what a match does not prove, and where it can be seen.
const fn not_proven(family: Family, found: &Found) -> &'static str {
    match (family, found.form.as_bytes()) {
        (_, b"receipt") => {
            "that its block is final, and what else the transaction did, such as another approval; `countersign order watch` with --nodes \
             shows the first"
        }
        (_, b"calls") => {
            "that the wallet or node states the truth, which the chain shows: `countersign order watch` with --nodes; and what else the \
             transaction did, such as another approval"
        }
        (_, b"psbt") if found.fee.is_none() => {
            "its fee, because the PSBT does not have every output that it spends: it may be any; that the PSBT is completely signed, and that it \
             was sent"
        }
        (_, b"psbt") => "that the PSBT is completely signed, and that it was sent",
        (Family::Bitcoin, _) => "the signatures of its inputs, which only nodes can check, and that it is in a block",
        (Family::Starknet, _) => "the account's signature, which only its contract can check, and that it is in a block",
        _ => "that it is in a block and succeeded",
    }
}
