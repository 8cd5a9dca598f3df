//! The HTTP API of an Esplora server, which has an address index: requests, and what their answers say.
//!
//! <https://github.com/Blockstream/esplora/blob/master/API.md>

use bitcoin::hashes::Hash;
use bitcoin::pow::CompactTarget;
use bitcoin::{Amount, BlockHash, OutPoint, Script, Transaction, TxMerkleNode, Txid, block};
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Format, Head, Reply, Request};
use countersign_core::{Code, Refusal, UnixTime};

use super::look::{Block, Claim};
use super::parse;
use crate::address::Chain;
use crate::chain;
use crate::recover::Funding;
use crate::transaction::FeeRate;

/// The maximum number of entries in a list.
const MAX_LIST: usize = 1_000;

/// The maximum number of unspent outputs in a list. Public servers refuse a list of more than 500, and anybody can pay as many to an
/// address. The owner of a server can raise its limit.
const MAX_UNSPENT: usize = 50_000;

/// The maximum number of further pages of a history that are read.
pub(super) const MAX_PAGES: usize = 40;

/// The number of mined transactions on a page from which there may be another page. Servers show 25 a page, some of them 10.
pub(super) const FULL_PAGE: usize = 10;

/// The statuses with which a server refuses to list the unspent outputs of an address that has too many.
const REFUSED: [u16; 2] = [BAD_REQUEST, 413];

/// The status of a server that refuses a request, or whose node returned an error.
pub(super) const BAD_REQUEST: u16 = 400;

pub(super) fn newest() -> Request {
    Request::get("/blocks", Format::Json)
}

pub(super) fn unspent(script: &Script) -> Request {
    Request::get(format!("/scripthash/{}/utxo", chain::script_hash(script)), Format::Json)
}

/// Asks for the newest transactions that pay or spend a script; with `after`, for the mined ones before that transaction.
pub(super) fn history(script: &Script, after: Option<Txid>) -> Request {
    let hash = chain::script_hash(script);
    let path = after.map_or_else(|| format!("/scripthash/{hash}/txs"), |txid| format!("/scripthash/{hash}/txs/chain/{txid}"));
    Request::get(path, Format::Json)
}

pub(super) fn status(txid: Txid) -> Request {
    Request::get(format!("/tx/{txid}"), Format::Json)
}

pub(super) fn raw(txid: Txid) -> Request {
    Request::get(format!("/tx/{txid}/raw"), Format::Bytes)
}

pub(super) fn outspend(outpoint: OutPoint) -> Request {
    Request::get(format!("/tx/{}/outspend/{}", outpoint.txid, outpoint.vout), Format::Json)
}

/// Asks for the block at a height, and for the Merkle proof of a transaction in it: see [`check_block`].
pub(super) fn block(txid: Txid, block: Option<Block>) -> impl Iterator<Item = Request> {
    block.into_iter().flat_map(move |block| {
        let proof = Request::get(format!("/tx/{txid}/merkleblock-proof"), Format::Text);
        [Request::get(format!("/block-height/{}", block.height), Format::Text), proof]
    })
}

pub(super) fn estimates() -> Request {
    Request::get("/fee-estimates", Format::Json)
}

pub(super) fn send(hex: &str) -> Request {
    Request::post("/tx", hex.as_bytes(), Format::Text)
}

fn list<'s, 'v>(cursor: &'s Cursor<'_, 'v>, max: usize) -> Result<impl Iterator<Item = Cursor<'s, 'v>>, Refusal> {
    let items = cursor.array()?;
    if items.len() > max { Err(cursor.at().refuse(Code::JsonTooLarge)) } else { Ok(items) }
}

/// Reads the newest block, and checks its hash and work against the fields of its header.
pub(super) fn read_newest(cursor: Cursor<'_, '_>, chain: Chain) -> Result<Head, Refusal> {
    let first = list(&cursor, MAX_LIST)?.next().ok_or_else(|| cursor.at().refuse(Code::MissingField))?;
    let members = first.object()?;
    let hash = parse::block_hash(&members.need("id")?)?;
    let word = |name| parse::word(&members.need(name)?);
    let root = parse::txid(&members.need("merkle_root")?)?;
    let header = block::Header {
        version: block::Version::from_consensus(i32::from_be_bytes(word("version")?.to_be_bytes())),
        prev_blockhash: members.get("previousblockhash").map_or_else(|| Ok(BlockHash::all_zeros()), |cursor| parse::block_hash(&cursor))?,
        merkle_root: TxMerkleNode::from_raw_hash(root.to_raw_hash()),
        time: word("timestamp")?,
        bits: CompactTarget::from_consensus(word("bits")?),
        nonce: word("nonce")?,
    };
    chain::check_work(&header, hash, chain)?;
    Ok(Head::new(parse::height(&members.need("height")?)?, hash.to_string(), UnixTime::from_secs(header.time.into())))
}

/// Reads the member `status` of a transaction.
fn read_block(cursor: &Cursor<'_, '_>) -> Result<Option<Block>, Refusal> {
    let members = cursor.object()?;
    if !members.need("confirmed")?.bool()? {
        return Ok(None);
    }
    Ok(Some(Block { height: parse::height(&members.need("block_height")?)?, hash: parse::block_hash(&members.need("block_hash")?)? }))
}

/// Reads the unspent outputs of a script, including those in the mempool; `None` if the server refuses to list them. It leaves out outputs
/// that the mempool spends.
pub(super) fn read_unspent(reply: &Reply<'_>) -> Result<Option<Vec<Claim>>, Fault> {
    if matches!(reply, Reply::Status { status, .. } if REFUSED.contains(status)) {
        return Ok(None);
    }
    let claim = |cursor: Cursor<'_, '_>| {
        let members = cursor.object()?;
        let block = read_block(&members.need("status")?)?;
        let outpoint = OutPoint { txid: parse::txid(&members.need("txid")?)?, vout: parse::word(&members.need("vout")?)? };
        let funding = Funding::new(outpoint, members.need("value")?.integer().map(Amount::from_sat)?);
        Ok(Claim { funding, height: block.map(|block| block.height), hash: block.map(|block| block.hash), is_unspent: true })
    };
    Ok(Some(list(&reply.json()?, MAX_UNSPENT)?.map(claim).collect::<Result<_, Refusal>>()?))
}

/// A page of the transactions that pay or spend a script.
pub(super) struct History {
    /// The outputs to the script, spent or not.
    pub(super) claims: Vec<Claim>,
    /// The last mined transaction of the page, and the number of mined ones on it.
    pub(super) last: Option<Txid>,
    pub(super) mined: usize,
}

/// Reads a page of the transactions that pay or spend a script.
pub(super) fn read_history(cursor: Cursor<'_, '_>, script: &Script) -> Result<History, Refusal> {
    let wanted = hex::encode(script.as_bytes());
    let mut history = History { claims: Vec::new(), last: None, mined: 0 };
    for transaction in list(&cursor, MAX_LIST)? {
        let members = transaction.object()?;
        let (txid, block) = (parse::txid(&members.need("txid")?)?, read_block(&members.need("status")?)?);
        if block.is_some() {
            (history.last, history.mined) = (Some(txid), history.mined.saturating_add(1));
        }
        for (vout, output) in (0..).zip(members.need("vout")?.array()?) {
            let output = output.object()?;
            if output.need("scriptpubkey")?.text()? == wanted {
                let funding = Funding::new(OutPoint { txid, vout }, output.need("value")?.integer().map(Amount::from_sat)?);
                let (height, hash) = (block.map(|block| block.height), block.map(|block| block.hash));
                history.claims.push(Claim { funding, height, hash, is_unspent: false });
            }
        }
    }
    Ok(history)
}

/// Reads a raw transaction.
pub(super) fn read_transaction(reply: &Reply<'_>, txid: Txid) -> Result<Transaction, Fault> {
    Ok(chain::parse_transaction(reply.bytes()?, txid)?)
}

/// Reads the transaction that spends an output, mined or in the mempool; `None` if the output is unspent.
pub(super) fn read_outspend(cursor: Cursor<'_, '_>) -> Result<Option<(Txid, Option<Block>)>, Refusal> {
    let members = cursor.object()?;
    if !members.need("spent")?.bool()? {
        return Ok(None);
    }
    let block = members.get("status").map_or(Ok(None), |cursor| read_block(&cursor))?;
    Ok(Some((parse::txid(&members.need("txid")?)?, block)))
}

/// Reads the block of a transaction, which is `None` in the mempool; `None` if the server does not know the transaction.
pub(super) fn read_status(reply: &Reply<'_>, txid: Txid) -> Result<Option<Option<Block>>, Fault> {
    if let Reply::Status { status: 404, .. } = reply {
        return Ok(None);
    }
    let cursor = reply.json()?;
    let members = cursor.object()?;
    parse::check_txid(&members.need("txid")?, txid)?;
    Ok(Some(read_block(&members.need("status")?)?))
}

/// Requires that a transaction is in a block of the server's chain. Checks the hash of the block at that height, and the Merkle proof if
/// the server provides one. `replies` are those to [`block`].
pub(super) fn check_block<'r>(
    replies: &mut impl Iterator<Item = Reply<'r>>,
    txid: Txid,
    block: Option<Block>,
    chain: Chain,
) -> Result<(), Fault> {
    let Some(block) = block else { return Ok(()) };
    let mut next = || replies.next().ok_or_else(|| Refusal::new(Code::MissingField, "/block"));
    let canonical = parse::hash_text(next()?.bytes()?)?;
    if canonical != block.hash {
        let why = "the block of the transaction is not on the server's chain";
        return Err(Refusal::new(Code::FundingMismatch, "/block").with_reason(why).into());
    }
    let proof = next()?;
    if let Reply::Status { status: 404 | 501, .. } = proof {
        return Ok(());
    }
    chain::check_merkle_block(&parse::hex_text(proof.bytes()?)?, txid, block.hash, chain)?;
    Ok(())
}

/// Reads the fee rate for confirmation within a number of blocks, in sat/vB; `None` if the server has none.
pub(super) fn read_estimate(cursor: Cursor<'_, '_>, blocks: u16) -> Result<Option<FeeRate>, Refusal> {
    let members = cursor.object()?;
    let mut best: Option<(u16, FeeRate)> = None;
    for key in members.keys().take(MAX_LIST) {
        let cursor = members.need(key)?;
        let target: u16 = key.parse().map_err(|_| cursor.at().refuse(Code::DecimalDigit))?;
        // Without an estimate for this number of blocks, the one for the next smaller number is used, which is never too slow.
        if target <= blocks && best.is_none_or(|(other, _)| other < target) {
            best = Some((target, FeeRate::parse(parse::number(&cursor)?).map_err(|error| cursor.refuse(error.code()))?));
        }
    }
    Ok(best.map(|(_, rate)| rate))
}
