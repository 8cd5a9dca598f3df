//! An Esplora server: an address index with an HTTP API.
//!
//! <https://github.com/Blockstream/esplora/blob/master/API.md>

use countersign::bitcoin::bitcoin::hashes::Hash;
use countersign::bitcoin::bitcoin::{BlockHash, OutPoint, Script, Transaction, TxMerkleNode, Txid, block, pow::CompactTarget};
use countersign::bitcoin::chain;
use countersign::bitcoin::recover::Funding;
use countersign::bitcoin::{Chain, FeeRate};
use countersign::json::{self, Node};
use countersign::{Code, Refusal};
use countersign_client::Transport;

use super::look::{Block, Claim};
use super::read;
use super::{MAX_COINS, Status};
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::Head;

/// The maximum number of entries in a list. Servers list at most 500 unspent outputs.
const MAX_LIST: usize = 1_000;

/// Reads the hash of the block at a height, which the server returns as plain text.
async fn block_at<T: Transport>(caller: Caller<'_, T>, height: u64) -> Result<BlockHash, NodeError> {
    let body = caller.get(&format!("/block-height/{height}")).await?;
    let hash = std::str::from_utf8(&body).ok().and_then(|text| text.trim().parse().ok());
    hash.ok_or_else(|| caller.malformed(Refusal::new(Code::HexLength, "/block-height").with_expected("a block hash")))
}

pub(super) async fn genesis<T: Transport>(caller: Caller<'_, T>) -> Result<BlockHash, NodeError> {
    block_at(caller, 0).await
}

/// Reads a JSON document.
async fn read<T: Transport, R>(
    caller: Caller<'_, T>,
    path: &str,
    read: impl FnOnce(&Node<'_, '_>) -> Result<R, Refusal>,
) -> Result<R, NodeError> {
    let body = caller.get(path).await?;
    json::parse(&body).and_then(|value| read(&Node::root(&value, ""))).map_err(|refusal| caller.malformed(refusal))
}

fn list<'s, 'v>(node: &'s Node<'_, 'v>) -> Result<impl Iterator<Item = Node<'s, 'v>>, Refusal> {
    let items = node.array()?;
    if items.len() > MAX_LIST { Err(node.at().refuse(Code::JsonTooLarge)) } else { Ok(items) }
}

/// Reads the newest block, and checks its hash and work against the fields of its header.
pub(super) async fn head<T: Transport>(caller: Caller<'_, T>, chain: Chain) -> Result<Head, NodeError> {
    let newest = |node: &Node<'_, '_>| {
        let first = list(node)?.next().ok_or_else(|| node.at().refuse(Code::MissingField))?;
        let members = first.object()?;
        let hash = read::block_hash(&members.need("id")?)?;
        let word = |name| read::index(&members.need(name)?);
        let root = read::txid(&members.need("merkle_root")?)?;
        let header = block::Header {
            version: block::Version::from_consensus(i32::from_be_bytes(word("version")?.to_be_bytes())),
            prev_blockhash: members.get("previousblockhash").map_or_else(|| Ok(BlockHash::all_zeros()), |node| read::block_hash(&node))?,
            merkle_root: TxMerkleNode::from_raw_hash(root.to_raw_hash()),
            time: word("timestamp")?,
            bits: CompactTarget::from_consensus(word("bits")?),
            nonce: word("nonce")?,
        };
        chain::check_work(&header, hash, chain)?;
        Ok(Head::new(read::height(&members.need("height")?)?, hash.to_string(), u64::from(header.time)))
    };
    read(caller, "/blocks", newest).await
}

/// Reads the member `status` of a transaction.
fn status(node: &Node<'_, '_>) -> Result<Option<Block>, Refusal> {
    let members = node.object()?;
    if !members.need("confirmed")?.bool()? {
        return Ok(None);
    }
    Ok(Some(Block { height: read::height(&members.need("block_height")?)?, hash: read::block_hash(&members.need("block_hash")?)? }))
}

/// Lists the unspent outputs of a script, including those in the mempool. The server leaves out outputs that the mempool spends.
pub(super) async fn unspent<T: Transport>(caller: Caller<'_, T>, script: &Script) -> Result<Vec<Claim>, NodeError> {
    let claim = |node: Node<'_, '_>| {
        let members = node.object()?;
        let block = status(&members.need("status")?)?;
        let outpoint = OutPoint { txid: read::txid(&members.need("txid")?)?, vout: read::index(&members.need("vout")?)? };
        let funding = Funding::new(outpoint, members.need("value")?.integer()?);
        Ok(Claim { funding, height: block.map(|block| block.height), hash: block.map(|block| block.hash), is_unspent: true })
    };
    let path = format!("/scripthash/{}/utxo", chain::script_hash(script));
    read(caller, &path, |node| list(node)?.map(claim).collect()).await
}

async fn raw<T: Transport>(caller: Caller<'_, T>, txid: Txid) -> Result<Vec<u8>, NodeError> {
    caller.get(&format!("/tx/{txid}/raw")).await
}

pub(super) async fn transaction<T: Transport>(caller: Caller<'_, T>, txid: Txid) -> Result<Transaction, NodeError> {
    chain::parse_transaction(&raw(caller, txid).await?, txid).map_err(|refusal| caller.malformed(refusal))
}

/// Returns the transaction that spends an output, mined or in the mempool; `None` if the output is unspent.
pub(super) async fn outspend<T: Transport>(caller: Caller<'_, T>, outpoint: OutPoint) -> Result<Option<(Txid, Option<Block>)>, NodeError> {
    let spend = |node: &Node<'_, '_>| {
        let members = node.object()?;
        if !members.need("spent")?.bool()? {
            return Ok(None);
        }
        let block = members.get("status").map_or(Ok(None), |node| status(&node))?;
        Ok(Some((read::txid(&members.need("txid")?)?, block)))
    };
    read(caller, &format!("/tx/{}/outspend/{}", outpoint.txid, outpoint.vout), spend).await
}

/// Reads the fee estimate for confirmation within a number of blocks, in sat/vB; `None` if the server has none.
pub(super) async fn fee_rate<T: Transport>(caller: Caller<'_, T>, blocks: u16) -> Result<Option<FeeRate>, NodeError> {
    let closest = |node: &Node<'_, '_>| {
        let members = node.object()?;
        let mut best: Option<(u16, FeeRate)> = None;
        for key in members.keys().take(MAX_COINS) {
            let node = members.need(key)?;
            let target: u16 = key.parse().map_err(|_| node.at().refuse(Code::DecimalDigit))?;
            // Without an estimate for this number of blocks, the one for the next smaller number is used, which is never too slow.
            if target <= blocks && best.is_none_or(|(other, _)| other < target) {
                best = Some((target, FeeRate::parse(read::number(&node)?).map_err(|error| node.refuse(error.code()))?));
            }
        }
        Ok(best.map(|(_, rate)| rate))
    };
    read(caller, "/fee-estimates", closest).await
}

/// Reads the block of a transaction; `None` if the server does not know the transaction.
pub(super) async fn find<T: Transport>(caller: Caller<'_, T>, txid: Txid) -> Result<Option<Status>, NodeError> {
    let block = |node: &Node<'_, '_>| {
        let members = node.object()?;
        let found = read::txid(&members.need("txid")?)?;
        if found != txid {
            return Err(members.need("txid")?.refuse(Code::UtxoMismatch).with_expected(txid.to_string()));
        }
        status(&members.need("status")?)
    };
    match read(caller, &format!("/tx/{txid}"), block).await {
        Ok(block) => Ok(Some(Status { block })),
        Err(NodeError::Status { status: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends a transaction. Returns the id that the server reports.
pub(super) async fn send<T: Transport>(caller: Caller<'_, T>, hex: &str) -> Result<Txid, NodeError> {
    let response = caller.post_as("text/plain", "/tx", hex.as_bytes().to_vec()).await?;
    let text = || String::from_utf8_lossy(response.body.get(..1_024).unwrap_or(&response.body)).into_owned();
    match response.status {
        200 => text().trim().parse().map_err(|_| caller.malformed(Refusal::new(Code::TransactionIdMalformed, ""))),
        400 => Err(NodeError::rpc(caller.endpoint.host(), 400, &text(), None)),
        status => Err(NodeError::Status { endpoint: caller.endpoint.host().to_owned(), status }),
    }
}
