//! A node's own RPC, without an address index: requests, and what their answers say.
//!
//! On the main network, a scan for unspent outputs can take minutes. Funding transactions in the mempool are not found. The check where
//! a Litecoin payment comes from needs `-txindex=1`.

use bitcoin::consensus::encode::deserialize_partial;
use bitcoin::{Amount, BlockHash, OutPoint, Script, ScriptBuf, Transaction, TxOut, Txid, VarInt, block};
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Head, Reply, Request, RpcError};
use countersign_core::{BlockHeight, Code, Refusal, U256, UnixTime, number};

use super::fees::higher;
use super::look::Claim;
use super::parse;
use crate::address::Chain;
use crate::chain;
use crate::recover::Funding;
use crate::transaction::FeeRate;

/// The maximum number of outputs that a scan may find. Anybody can pay many small ones to an address.
const MAX_FOUND: usize = 50_000;

/// The error code for an unknown transaction, output or block.
pub(super) const UNKNOWN: i64 = -5;

/// Parts of the message of a node that has not searched the blocks for a transaction, because it has no transaction index, or only a part
/// of it.
const NO_INDEX: [&str; 3] = ["mempool transaction", "txindex", "being indexed"];

pub(super) fn block_hash(height: BlockHeight) -> Request {
    Request::json_rpc("getblockhash", format_args!("[{height}]"))
}

pub(super) fn header(hash: BlockHash) -> Request {
    Request::json_rpc("getblockheader", format_args!(r#"["{hash}",false]"#))
}

pub(super) fn block(hash: BlockHash) -> Request {
    Request::json_rpc("getblock", format_args!(r#"["{hash}",0]"#))
}

pub(super) fn tip() -> Request {
    Request::json_rpc("getblockchaininfo", "[]")
}

/// Asks for the unspent outputs of a script in blocks. The result includes outputs that the mempool spends.
pub(super) fn scan(script: &Script) -> Request {
    Request::json_rpc("scantxoutset", format_args!(r#"["start",[{{"desc":"raw({})"}}]]"#, hex::encode(script.as_bytes())))
}

/// Asks for a transaction. Without the hash of its block, a node finds it only in its mempool, or with a transaction index.
pub(super) fn transaction(txid: Txid, block: Option<BlockHash>) -> Request {
    let method = "getrawtransaction";
    block.map_or_else(
        || Request::json_rpc(method, format_args!(r#"["{txid}"]"#)),
        |block| Request::json_rpc(method, format_args!(r#"["{txid}",false,"{block}"]"#)),
    )
}

pub(super) fn proof(txid: Txid, block: BlockHash) -> Request {
    Request::json_rpc("gettxoutproof", format_args!(r#"[["{txid}"],"{block}"]"#))
}

/// Asks for an unspent output, without or with what the mempool spends.
pub(super) fn output(OutPoint { txid, vout }: OutPoint, with_mempool: bool) -> Request {
    Request::json_rpc("gettxout", format_args!(r#"["{txid}",{vout},{with_mempool}]"#))
}

pub(super) fn spending(OutPoint { txid, vout }: OutPoint) -> Request {
    Request::json_rpc("gettxspendingprevout", format_args!(r#"[[{{"txid":"{txid}","vout":{vout}}}]]"#))
}

/// Asks for a transaction with its block.
pub(super) fn found(txid: Txid) -> Request {
    Request::json_rpc("getrawtransaction", format_args!(r#"["{txid}",true]"#))
}

pub(super) fn height(block: BlockHash) -> Request {
    Request::json_rpc("getblockheader", format_args!(r#"["{block}",true]"#))
}

pub(super) fn estimate(blocks: u16) -> Request {
    Request::json_rpc("estimatesmartfee", format_args!("[{blocks}]"))
}

pub(super) fn network() -> Request {
    Request::json_rpc("getnetworkinfo", "[]")
}

pub(super) fn mempool() -> Request {
    Request::json_rpc("getmempoolinfo", "[]")
}

pub(super) fn test(hex: &str) -> Request {
    Request::json_rpc("testmempoolaccept", format_args!(r#"[["{hex}"]]"#))
}

pub(super) fn send(hex: &str) -> Request {
    Request::json_rpc("sendrawtransaction", format_args!(r#"["{hex}"]"#))
}

/// Reads the height and the hash of the newest block.
pub(super) fn read_tip(cursor: Cursor<'_, '_>) -> Result<(BlockHeight, BlockHash), Refusal> {
    let members = cursor.object()?;
    Ok((parse::height(&members.need("blocks")?)?, parse::block_hash(&members.need("bestblockhash")?)?))
}

/// Reads the newest block from its header.
pub(super) fn read_head(cursor: Cursor<'_, '_>, (height, hash): (BlockHeight, BlockHash), chain: Chain) -> Result<Head, Refusal> {
    let header = chain::check_header(&parse::bytes(&cursor)?, hash, chain)?;
    Ok(Head::new(height, hash.to_string(), UnixTime::from_secs(header.time.into())))
}

/// Reads a scan: the newest block, and the unspent outputs.
pub(super) fn read_scan(cursor: Cursor<'_, '_>) -> Result<((BlockHeight, BlockHash), Vec<Claim>), Refusal> {
    let claim = |cursor: Cursor<'_, '_>| {
        let members = cursor.object()?;
        let outpoint = OutPoint { txid: parse::txid(&members.need("txid")?)?, vout: parse::word(&members.need("vout")?)? };
        let funding = Funding::new(outpoint, parse::coins(&members.need("amount")?)?);
        Ok(Claim { funding, height: Some(parse::height(&members.need("height")?)?), hash: None, is_unspent: true })
    };
    let members = cursor.object()?;
    let success = members.need("success")?;
    if !success.bool()? {
        return Err(success.refuse(Code::WrongType).with_expected("a complete scan"));
    }
    let list = members.need("unspents")?;
    let items = list.array()?;
    if items.len() > MAX_FOUND {
        return Err(list.at().refuse(Code::JsonTooLarge));
    }
    let claims = items.map(claim).collect::<Result<_, Refusal>>()?;
    Ok(((parse::height(&members.need("height")?)?, parse::block_hash(&members.need("bestblock")?)?), claims))
}

/// Reads the value of an unspent output; `None` if the output does not exist or is spent.
pub(super) fn read_value(cursor: Cursor<'_, '_>) -> Result<Option<Amount>, Refusal> {
    if cursor.is_null() { Ok(None) } else { parse::coins(&cursor.object()?.need("value")?).map(Some) }
}

/// Reads the value and the script of an unspent output; `None` if the output does not exist or is spent.
pub(super) fn read_output(cursor: Cursor<'_, '_>) -> Result<Option<TxOut>, Refusal> {
    if cursor.is_null() {
        return Ok(None);
    }
    let members = cursor.object()?;
    let script = members.need("scriptPubKey")?;
    let script_pubkey = ScriptBuf::from_bytes(parse::bytes(&script.object()?.need("hex")?)?);
    Ok(Some(TxOut { value: parse::coins(&members.need("value")?)?, script_pubkey }))
}

/// Requires that an unspent output has the value that its transaction shows.
pub(super) fn check_value(value: Amount, funding: Funding) -> Result<(), Refusal> {
    if value == funding.value {
        return Ok(());
    }
    Err(Refusal::new(Code::FundingMismatch, "/value")
        .with_expected(funding.value.to_sat().to_string())
        .with_actual(value.to_sat().to_string()))
}

/// Reads a raw transaction.
pub(super) fn read_transaction(reply: &Reply<'_>, txid: Txid) -> Result<Transaction, Fault> {
    Ok(chain::parse_transaction(&parse::bytes(&reply.json()?)?, txid)?)
}

/// Reads the bytes of a transaction; `None` if the node does not know it.
pub(super) fn read_raw(reply: &Reply<'_>) -> Result<Option<Vec<u8>>, Fault> {
    match reply.json_or_error()? {
        Ok(cursor) => Ok(Some(parse::bytes(&cursor)?)),
        Err(RpcError { code: UNKNOWN, .. }) => Ok(None),
        Err(error) => Err(Fault::Rpc(error.clone())),
    }
}

/// Requires that a transaction is in a block, by a Merkle proof.
pub(super) fn check_proof(reply: &Reply<'_>, txid: Txid, block: BlockHash, chain: Chain) -> Result<(), Fault> {
    chain::check_merkle_block(&parse::bytes(&reply.json()?)?, txid, block, chain)?;
    Ok(())
}

/// Reads a raw block, and returns its header with what `find` returns for its transactions.
pub(super) fn search_block<R>(
    reply: &Reply<'_>,
    hash: BlockHash,
    chain: Chain,
    find: impl Fn(Transaction) -> Option<R>,
) -> Result<(block::Header, Vec<R>), Fault> {
    let refuse = || Refusal::new(Code::TransactionMalformed, "/block");
    let raw = parse::bytes(&reply.json()?)?;
    let (header, used) = deserialize_partial::<block::Header>(&raw).map_err(|_| refuse())?;
    chain::check_work(&header, hash, chain)?;
    let rest = raw.get(used..).ok_or_else(refuse)?;
    let (count, used) = deserialize_partial::<VarInt>(rest).map_err(|_| refuse())?;
    let mut rest = rest.get(used..).ok_or_else(refuse)?;
    let mut found = Vec::new();
    for _ in 0..count.0 {
        // On Litecoin, the last transaction belongs to the extension block, and the data of that block follow it.
        if chain::is_mweb(rest) {
            break;
        }
        let (transaction, used) = deserialize_partial::<Transaction>(rest).map_err(|_| refuse())?;
        found.extend(find(transaction));
        rest = rest.get(used..).ok_or_else(refuse)?;
    }
    Ok((header, found))
}

/// Reads the block of a transaction, which is `None` in the mempool; `None` if the node does not know the transaction.
pub(super) fn read_found(reply: &Reply<'_>, txid: Txid) -> Result<Option<Option<BlockHash>>, Fault> {
    let cursor = match reply.json_or_error()? {
        Ok(cursor) => cursor,
        Err(RpcError { code: UNKNOWN, message, .. }) if !NO_INDEX.iter().any(|part| message.contains(part)) => return Ok(None),
        Err(error) => return Err(Fault::Rpc(error.clone())),
    };
    let members = cursor.object()?;
    parse::check_txid(&members.need("txid")?, txid)?;
    // In an abandoned block, the number of confirmations is 0 or negative.
    let is_mined = members.get("confirmations").is_some_and(|cursor| cursor.integer().is_ok_and(|confirmations| confirmations > 0));
    Ok(Some(members.get("blockhash").filter(|_| is_mined).map(|cursor| parse::block_hash(&cursor)).transpose()?))
}

/// Reads the height of a block.
pub(super) fn read_height(cursor: Cursor<'_, '_>) -> Result<BlockHeight, Refusal> {
    parse::height(&cursor.object()?.need("height")?)
}

/// Reads the fee rate; `None` if the node has none, as on a new network.
pub(super) fn read_estimate(cursor: Cursor<'_, '_>) -> Result<Option<FeeRate>, Refusal> {
    cursor.object()?.get("feerate").map(rate).transpose()
}

/// Reads the lowest fee rate that the node takes: that of its full mempool, or the one that it relays.
pub(super) fn read_floor(cursor: Cursor<'_, '_>) -> Result<Option<FeeRate>, Refusal> {
    let members = cursor.object()?;
    let rates = ["mempoolminfee", "minrelaytxfee"].iter().filter_map(|name| members.get(name)).map(rate);
    Ok(rates.collect::<Result<Vec<_>, _>>()?.into_iter().reduce(higher))
}

/// Reads a fee rate. Nodes write whole coins per 1,000 vB.
fn rate(cursor: Cursor<'_, '_>) -> Result<FeeRate, Refusal> {
    let text = number::in_whole_units(U256::from(parse::coins(&cursor)?.to_sat()), 3);
    FeeRate::parse(&text).map_err(|error| cursor.refuse(error.code()))
}

/// Reads why the node would not accept a transaction; `None` if it would.
pub(super) fn read_test(cursor: Cursor<'_, '_>) -> Result<Option<String>, Refusal> {
    let first = cursor.array()?.next().ok_or_else(|| cursor.at().refuse(Code::MissingField))?;
    let members = first.object()?;
    if members.need("allowed")?.bool()? {
        return Ok(None);
    }
    Ok(Some(members.get("reject-reason").map_or(Ok("no reason given"), |cursor| cursor.text())?.to_owned()))
}
