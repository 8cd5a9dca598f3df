//! A node's own RPC, without an address index. It finds the unspent outputs of a script. It finds spent ones only in its newest blocks
//! and its mempool.
//!
//! On the main network, a scan for unspent outputs can take minutes. Funding transactions in the mempool are not found. The check where
//! a Litecoin payment comes from needs `-txindex=1`.

use std::time::Duration;

use countersign::bitcoin::bitcoin::{BlockHash, OutPoint, Script, Transaction, Txid};
use countersign::bitcoin::chain;
use countersign::bitcoin::recover::Funding;
use countersign::bitcoin::{Chain, FeeRate};
use countersign::json::Node;
use countersign::{Code, Refusal, U256, number};
use countersign_client::Transport;
use serde_json::json;

use super::look::{Block, Claim};
use super::read;
use super::{MAX_COINS, Status};
use crate::endpoint::{Call, Caller, nth};
use crate::error::NodeError;
use crate::nodes::Head;

/// The error code for an unknown transaction, output or block.
const UNKNOWN: i64 = -5;

/// The error of a node that is busy with another scan.
const SCAN_IN_PROGRESS: (i64, &str) = (-8, "Scan already in progress");
/// The number of retries of a scan, and the pause between them.
const SCAN_AGAIN: (u32, Duration) = (20, Duration::from_millis(500));

async fn one<T: Transport, R>(
    caller: Caller<'_, T>,
    call: Call,
    read: impl FnOnce(&Node<'_, '_>) -> Result<R, Refusal>,
) -> Result<R, NodeError> {
    caller.rpc(&[call], |results| read(nth(results, 0)?)).await
}

pub(super) async fn genesis<T: Transport>(caller: Caller<'_, T>) -> Result<BlockHash, NodeError> {
    one(caller, Call::new("getblockhash", json!([0])), read::block_hash).await
}

fn header_call(hash: BlockHash) -> Call {
    Call::new("getblockheader", json!([hash.to_string(), false]))
}

/// Reads the newest block.
pub(super) async fn head<T: Transport>(caller: Caller<'_, T>, chain: Chain) -> Result<Head, NodeError> {
    let tip = |node: &Node<'_, '_>| {
        let members = node.object()?;
        Ok((read::height(&members.need("blocks")?)?, read::block_hash(&members.need("bestblockhash")?)?))
    };
    let (height, hash) = one(caller, Call::new("getblockchaininfo", json!([])), tip).await?;
    let header = one(caller, header_call(hash), |node| chain::check_header(&read::raw(node)?, hash, chain)).await?;
    Ok(Head::new(height, hash.to_string(), u64::from(header.time)))
}

/// Scans for the unspent outputs of a script in blocks. The result includes outputs that the mempool spends.
async fn scan<T: Transport>(caller: Caller<'_, T>, script: &Script) -> Result<(u64, BlockHash, Vec<Claim>), NodeError> {
    let call = || Call::new("scantxoutset", json!(["start", [{"desc": format!("raw({})", hex::encode(script.as_bytes()))}]]));
    let claim = |node: Node<'_, '_>| {
        let members = node.object()?;
        let outpoint = OutPoint { txid: read::txid(&members.need("txid")?)?, vout: read::index(&members.need("vout")?)? };
        let funding = Funding::new(outpoint, read::coins(&members.need("amount")?)?);
        Ok(Claim { funding, height: Some(read::height(&members.need("height")?)?), hash: None, is_unspent: true })
    };
    let found = |node: &Node<'_, '_>| {
        let members = node.object()?;
        if !members.need("success")?.bool()? {
            return Err(members.need("success")?.refuse(Code::WrongType).with_expected("a complete scan"));
        }
        let list = members.need("unspents")?;
        let items = list.array()?;
        if items.len() > MAX_COINS.saturating_mul(10) {
            return Err(list.at().refuse(Code::JsonTooLarge));
        }
        let claims = items.map(claim).collect::<Result<Vec<_>, Refusal>>()?;
        Ok((read::height(&members.need("height")?)?, read::block_hash(&members.need("bestblock")?)?, claims))
    };
    // A node runs only one scan at a time.
    for _ in 0..SCAN_AGAIN.0 {
        match one(caller, call(), &found).await {
            Err(NodeError::Rpc { code, message, .. }) if code == SCAN_IN_PROGRESS.0 && message.contains(SCAN_IN_PROGRESS.1) => {
                caller.transport.sleep(SCAN_AGAIN.1).await;
            }
            answer => return answer,
        }
    }
    one(caller, call(), found).await
}

/// Lists the outputs of a script in blocks that neither a block nor the mempool spends, the most valuable first.
pub(super) async fn unspent<T: Transport>(caller: Caller<'_, T>, script: &Script) -> Result<Vec<Claim>, NodeError> {
    let (_, _, mut claims) = scan(caller, script).await?;
    claims.sort_by_key(|claim| (u64::MAX.saturating_sub(claim.funding.value), claim.funding.outpoint));
    claims.truncate(MAX_COINS);
    if claims.is_empty() {
        return Ok(claims);
    }
    let call = |claim: &Claim| {
        let OutPoint { txid, vout } = claim.funding.outpoint;
        [Call::new("gettxout", json!([txid.to_string(), vout, true])), Call::new("getblockhash", json!([claim.height]))]
    };
    let calls: Vec<Call> = claims.iter().flat_map(call).collect();
    let unspent = |results: &[Node<'_, '_>]| {
        let mut unspent = Vec::new();
        for (claim, pair) in claims.iter().zip(results.chunks(2)) {
            if !nth(pair, 0)?.is_null() {
                unspent.push(Claim { hash: Some(read::block_hash(nth(pair, 1)?)?), ..*claim });
            }
        }
        Ok(unspent)
    };
    caller.rpc(&calls, unspent).await
}

fn transaction_call(txid: Txid, block: Option<BlockHash>) -> Call {
    let txid = txid.to_string();
    Call::new("getrawtransaction", block.map_or_else(|| json!([txid]), |block| json!([txid, false, block.to_string()])))
}

/// Reads a transaction. Without the hash of its block, a node finds it only in its mempool, or with a transaction index.
pub(super) async fn transaction<T: Transport>(
    caller: Caller<'_, T>,
    txid: Txid,
    block: Option<BlockHash>,
) -> Result<Transaction, NodeError> {
    one(caller, transaction_call(txid, block), |node| chain::parse_transaction(&read::raw(node)?, txid)).await
}

/// Reads the fee estimate for confirmation within a number of blocks, in sat/vB; `None` if the node has none, as on a new network.
pub(super) async fn fee_rate<T: Transport>(caller: Caller<'_, T>, blocks: u16) -> Result<Option<FeeRate>, NodeError> {
    let rate = |node: &Node<'_, '_>| {
        let members = node.object()?;
        let Some(rate) = members.get("feerate") else { return Ok(None) };
        // Coins per 1,000 vB.
        let per_thousand = read::coins(&rate)?;
        FeeRate::parse(&number::in_whole_units(U256::from(per_thousand), 3)).map(Some).map_err(|error| rate.refuse(error.code()))
    };
    one(caller, Call::new("estimatesmartfee", json!([blocks])), rate).await
}

/// Reads the block of a transaction; `None` if the node does not know the transaction.
pub(super) async fn find<T: Transport>(caller: Caller<'_, T>, txid: Txid) -> Result<Option<Status>, NodeError> {
    let block = |node: &Node<'_, '_>| {
        let members = node.object()?;
        let found = read::txid(&members.need("txid")?)?;
        if found != txid {
            return Err(members.need("txid")?.refuse(Code::UtxoMismatch).with_expected(txid.to_string()));
        }
        // In an abandoned block, the number of confirmations is 0 or negative.
        let is_mined = members.get("confirmations").is_some_and(|node| node.integer().is_ok_and(|confirmations| confirmations > 0));
        members.get("blockhash").filter(|_| is_mined).map(|node| read::block_hash(&node)).transpose()
    };
    let hash = match one(caller, Call::new("getrawtransaction", json!([txid.to_string(), true])), block).await {
        Ok(Some(hash)) => hash,
        Ok(None) => return Ok(Some(Status { block: None })),
        Err(NodeError::Rpc { code: UNKNOWN, .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let height = |node: &Node<'_, '_>| read::height(&node.object()?.need("height")?);
    let height = one(caller, Call::new("getblockheader", json!([hash.to_string(), true])), height).await?;
    Ok(Some(Status { block: Some(Block { height, hash }) }))
}

/// Sends a transaction. Returns the id that the node reports.
pub(super) async fn send<T: Transport>(caller: Caller<'_, T>, hex: &str) -> Result<Txid, NodeError> {
    one(caller, Call::new("sendrawtransaction", json!([hex])), read::txid).await
}

/// Tests whether the node would accept a transaction. Returns its reason if not.
pub(super) async fn test<T: Transport>(caller: Caller<'_, T>, hex: &str) -> Result<Option<String>, NodeError> {
    let reason = |node: &Node<'_, '_>| {
        let first = node.array()?.next().ok_or_else(|| node.at().refuse(Code::MissingField))?;
        let members = first.object()?;
        if members.need("allowed")?.bool()? {
            return Ok(None);
        }
        Ok(Some(members.get("reject-reason").map_or(Ok("no reason given"), |node| node.text())?.to_owned()))
    };
    one(caller, Call::new("testmempoolaccept", json!([[hex]])), reason).await
}

/// Returns the value of an output; `None` if it does not exist or is spent in a block. A transaction in the mempool may spend it, because
/// that may be the transaction that is being checked.
pub(super) async fn value<T: Transport>(caller: Caller<'_, T>, outpoint: OutPoint) -> Result<Option<u64>, NodeError> {
    let call = |mempool: bool| Call::new("gettxout", json!([outpoint.txid.to_string(), outpoint.vout, mempool]));
    let value = |results: &[Node<'_, '_>]| {
        let found = results.iter().find(|node| !node.is_null());
        found.map(|node| read::coins(&node.object()?.need("value")?)).transpose()
    };
    caller.rpc(&[call(false), call(true)], value).await
}
