//! Evidence without a network: decodes what a chain returned about one HTLC, and compares it with the verified terms.

#![cfg_attr(
    not(all(feature = "bitcoin", feature = "evm", feature = "solana", feature = "starknet", feature = "sui", feature = "tron")),
    allow(dead_code, unused_imports, reason = "each family needs some of this")
)]

use countersign::chains::Network;
use countersign::{Code, Family, FinalityRule, Funded, HtlcState, HtlcTerms, LockedHtlc, Refusal, SeenAt, U256, VerifiedRecord};
use countersign_core::json::{Members, Node};

use super::{Failure, Htlc, read_leg, shapes, with_json};

/// Maximum length of a node's answer, in bytes. This is more than any contract, account or transaction of an HTLC has.
const MAX_ANSWER: usize = 4_000_000;

/// A verified record, with what is needed to judge evidence from its chains.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Record {
    /// The record and its terms.
    pub verified: VerifiedRecord,
    /// The networks of source and destination.
    pub(super) networks: [Network; 2],
    /// The policy's rule for the destination chain.
    pub(super) rule: FinalityRule,
}

/// The proof that a destination is funded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Proof {
    /// Id of the order that the proof is for.
    pub order_id: String,
    /// What is left of the destination's timelock, in `unit`.
    pub left: u64,
    /// `blocks`, `slots` or `ms`.
    pub unit: String,
}

/// Decodes what a chain returned about the HTLC of a leg, `source` or `destination`. The evidence has the members that [`judge`]
/// lists. Parties, amount and timelock are not compared with the verified terms.
///
/// # Errors
///
/// [`Failure`] at the member of `/evidence` that is missing or malformed, or with the code `usage` at `/leg`.
pub fn read_htlc(record: &Record, leg: &str, evidence: &[u8]) -> Result<Htlc, Failure> {
    let (terms, network) = side(record, leg)?;
    let state = with_json(evidence, "/evidence", |node| state(terms, network, &node.object()?))?;
    Ok(shapes::htlc(&state))
}

/// Decodes what the destination chain returned, and compares it with the verified terms: see [`Funded::judge`].
///
/// The caller fetches the evidence, with any client, from any number of endpoints. It is an object whose members depend on the
/// family. All of them must be read at one block, the newest that counts.
///
/// | family | member | what it is |
/// |---|---|---|
/// | EVM, Tron | `orders` | return data of the HTLC's `orders(bytes32)` with the swap id, `0x` hex |
/// | | `token` | return data of the HTLC's `token()`, `0x` hex; missing for older contracts for the chain's own coin |
/// | | `holds` | balance of the HTLC in the token or coin, base units, decimal string |
/// | | `head` | number of the newest block, as the contract counts blocks; JSON integer |
/// | Starknet | `order` | array of the order's felts, `0x` hex: from `get_order`, or from storage |
/// | | `token`, `holds`, `head` | the felt that `token()` returns, and as above |
/// | Solana | `owner`, `data` | the program that owns the swap account, and the account's data in base64; both `null` if the account does not exist |
/// | | `holds`, `slot` | lamports of the account, or tokens of the vault, as a decimal string; the slot as a JSON integer |
/// | Sui | `type`, `contents` | type and base64 BCS contents of the order's dynamic field; both `null` if there is none |
/// | | `time` | time of the newest checkpoint, Unix milliseconds |
/// | Bitcoin | `txid`, `output`, `transaction` | the output that pays the HTLC, and its raw transaction in hex without `0x`; all `null` if there is none |
/// | | `depth` | number of blocks from the one with the transaction to the newest, both included; 0 while it is in none |
/// | | `spend` | the raw transaction that spends the output, in hex without `0x`; optional |
///
/// What this evidence cannot prove is `unclear`, and never counts as funded. On account chains it does not prove how an order ended,
/// because only events tell that. Nor does it prove an order of a generation that does not store every term.
///
/// `seen` is an object with the members of [`SeenAt`]: `height`, `hash`, `head_time` in Unix seconds and `depth`; optionally also
/// `is_safe` and `is_finalized`, `false` by default, and `agreed` and `needed`, 1 by default. `now` is the caller's clock in Unix
/// seconds.
///
/// # Errors
///
/// [`Failure`] with the code of a [`countersign::Hold`] while the secret must not be released; or at the member of `/evidence` or
/// `/seen` that is missing or malformed.
pub fn judge(record: &Record, evidence: &[u8], seen: &[u8], now: u64) -> Result<Proof, Failure> {
    let (terms, network) = side(record, "destination")?;
    let state = with_json(evidence, "/evidence", |node| state(terms, network, &node.object()?))?;
    let seen = with_json(seen, "/seen", |node| read_seen(&node))?;
    let funded = Funded::judge(&record.verified.terms, &state, &seen, &record.rule, now)?;
    let unit = terms.family.timelock_unit().to_owned();
    Ok(Proof { order_id: funded.order_id().to_owned(), left: funded.left(), unit })
}

fn side<'r>(record: &'r Record, leg: &str) -> Result<(&'r HtlcTerms, &'r Network), Failure> {
    let leg = read_leg(leg)?;
    let [source, destination] = &record.networks;
    let network = if leg == countersign::Leg::Source { source } else { destination };
    Ok((record.verified.terms.leg(leg), network))
}

fn read_seen(node: &Node<'_, '_>) -> Result<SeenAt, Refusal> {
    let members = node.object()?;
    let fields = ["height", "hash", "head_time", "depth", "is_safe", "is_finalized", "agreed", "needed"];
    members.only(&fields)?;
    let number = |key| members.need(key)?.integer();
    let flag = |key| members.get(key).map_or(Ok(false), |node| node.bool());
    let count = |key| {
        let count = members.get(key).map_or(Ok(1), |node| node.integer())?;
        Ok::<_, Refusal>(u32::try_from(count).unwrap_or(u32::MAX))
    };
    let mut seen = SeenAt::new(number("height")?, members.need("hash")?.text()?, number("head_time")?, number("depth")?);
    seen.is_safe = flag("is_safe")?;
    seen.is_finalized = flag("is_finalized")?;
    Ok(seen.with_agreement(count("agreed")?, count("needed")?))
}

#[allow(unused_variables, reason = "a build may lack the families that need them")]
fn state(terms: &HtlcTerms, network: &Network, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    match terms.family {
        #[cfg(feature = "evm")]
        Family::Evm => evm(terms, members),
        #[cfg(feature = "tron")]
        Family::Tron => tron(terms, members),
        #[cfg(feature = "starknet")]
        Family::Starknet => starknet(terms, members),
        #[cfg(feature = "solana")]
        Family::Solana => solana(terms, members),
        #[cfg(feature = "sui")]
        Family::Sui => sui(terms, members),
        #[cfg(feature = "bitcoin")]
        Family::Bitcoin => bitcoin(terms, network, members),
        other => Err(Refusal::new(Code::UnsupportedFamily, "").with_actual(other)),
    }
}

fn unclear(why: impl ToString) -> HtlcState {
    HtlcState::Unclear(why.to_string())
}

const ENDED: &str = "the order has ended, and only the chain's events show how";
const OTHER_TOKEN: &str = "the contract's token is not the pinned one";
const AHEAD: &str = "the order was initiated after the newest block";

/// What an account chain's contract stores about an open order.
struct Open {
    initiator: countersign::Account,
    redeemer: countersign::Account,
    amount: U256,
    timelock: u64,
    initiated_at: u64,
}

/// Returns the state of an open order at `head`, in the unit of its timelock.
fn locked(terms: &HtlcTerms, open: Open, head: u64, covered: bool) -> HtlcState {
    let Some(elapsed) = head.checked_sub(open.initiated_at) else { return unclear(AHEAD) };
    let locked = LockedHtlc::new(open.initiator, open.redeemer, open.amount, open.timelock, elapsed);
    HtlcState::Locked(locked.with_token(terms.token.clone()).with_covered(covered))
}

fn holds(members: &Members<'_, '_>) -> Result<U256, Refusal> {
    members.need("holds")?.decimal()
}

/// Decodes the order of a contract that EVM and Tron share. `pinned` is the token that the contract must have, `check` requires the
/// expected generation of the order's layout, and `account` converts the parties.
#[cfg(any(feature = "evm", feature = "tron"))]
fn contract(
    terms: &HtlcTerms,
    members: &Members<'_, '_>,
    pinned: countersign_abi::alloy_primitives::Address,
    check: impl FnOnce(&countersign_abi::read::StoredOrder) -> Result<(), String>,
    account: impl Fn(countersign_abi::alloy_primitives::Address) -> countersign::Account,
) -> Result<HtlcState, Refusal> {
    use countersign_abi::read::{self, Layout, NATIVE, Progress};

    members.only(&["orders", "token", "holds", "head"])?;
    let order = match read::order(&members.need("orders")?.hex_bytes(MAX_ANSWER)?) {
        Ok(Some(order)) => order,
        Ok(None) => return Ok(HtlcState::Absent),
        Err(why) => return Ok(unclear(why)),
    };
    if let Err(why) = check(&order) {
        return Ok(unclear(why));
    }
    let token = members.get("token").map(|node| node.hex_bytes(MAX_ANSWER)).transpose()?;
    let token = token.and_then(|answer| read::address(&answer).ok());
    // The older contract for the chain's own coin has no `token()`.
    let has_none = token.is_none() && pinned == NATIVE && order.layout == Layout::Older;
    if token != Some(pinned) && !has_none {
        return Ok(unclear(OTHER_TOKEN));
    }
    if order.progress != Progress::Open {
        return Ok(unclear(ENDED));
    }
    let (initiator, redeemer) = (account(order.initiator), account(order.redeemer));
    let open = Open { initiator, redeemer, amount: order.amount, timelock: order.timelock, initiated_at: order.initiated_at };
    Ok(locked(terms, open, members.need("head")?.integer()?, holds(members)? >= order.amount))
}

#[cfg(feature = "evm")]
fn evm(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    let generation = match terms.generation {
        Some(countersign::Generation::Evm(generation)) => Some(generation),
        _ => None,
    };
    let pinned = match &terms.token {
        Some(text) => text.parse().map_err(|_| Refusal::new(Code::AddressMalformed, "/token"))?,
        None => countersign::evm::read::NATIVE,
    };
    let check = |order: &countersign_abi::read::StoredOrder| order.check_generation(generation).map_err(|why| why.to_string());
    contract(terms, members, pinned, check, countersign::evm::address::to_account)
}

#[cfg(feature = "tron")]
fn tron(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    use countersign::tron::Address;
    use countersign::tron::read::{Layout, NATIVE};

    let pinned = match &terms.token {
        Some(text) => text.parse::<Address>().map_err(|error| Refusal::new(error, "/token"))?.bytes(),
        None => NATIVE,
    };
    let check = |order: &countersign_abi::read::StoredOrder| match order.layout {
        Layout::V3 => Ok(()),
        _ => Err("the contract stores orders as an older generation does, which is not known on Tron".to_owned()),
    };
    contract(terms, members, pinned, check, |address| Address::from(address).to_account())
}

#[cfg(feature = "starknet")]
fn starknet(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    use countersign::starknet::address::to_account;
    use countersign::starknet::read::{self, Progress};
    use countersign::starknet::{Felt, felt};

    members.only(&["order", "token", "holds", "head"])?;
    let felts = members.need("order")?.array()?.take(read::FELTS.saturating_add(1)).map(felt::read).collect::<Result<Vec<_>, _>>()?;
    let order = match read::order(countersign::StarknetGeneration::expected(terms.generation), &felts) {
        Ok(Some(order)) => order,
        Ok(None) => return Ok(HtlcState::Absent),
        Err(why) => return Ok(unclear(why)),
    };
    let pinned = terms.token.as_deref().and_then(|text| Felt::from_hex(text).ok());
    if pinned != Some(felt::read(members.need("token")?)?) {
        return Ok(unclear(OTHER_TOKEN));
    }
    if order.progress != Progress::Open {
        return Ok(unclear(ENDED));
    }
    let (initiator, redeemer) = (to_account(order.initiator), to_account(order.redeemer));
    let open = Open { initiator, redeemer, amount: order.amount, timelock: order.timelock, initiated_at: order.initiated_at };
    Ok(locked(terms, open, members.need("head")?.integer()?, holds(members)? >= order.amount))
}

/// Reads base64 bytes.
#[cfg(any(feature = "solana", feature = "sui"))]
fn base64(node: &Node<'_, '_>) -> Result<Vec<u8>, Refusal> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(node.text()?);
    bytes.map_err(|_| node.refuse(Code::WrongType).with_expected("base64"))
}

#[cfg(feature = "solana")]
fn solana(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    use countersign::solana::address::to_account;
    use countersign::solana::read::{self, SwapLocation};

    members.only(&["owner", "data", "holds", "slot"])?;
    let (Some(owner), Some(data)) = (members.get("owner"), members.get("data")) else {
        return Ok(unclear(
            "the swap account does not exist: the swap was never funded, or it has ended, and only the chain's history shows how",
        ));
    };
    let location = SwapLocation::new(terms)?;
    if owner.text()? != location.htlc.program.to_string() {
        return Ok(unclear("the swap account belongs to another program"));
    }
    let stored = match read::swap_account(&base64(&data)?) {
        Ok(stored) => stored,
        Err(why) => return Ok(unclear(why)),
    };
    if stored.generation != location.htlc.generation || stored.is_token != location.htlc.token.is_some() {
        return Ok(unclear("the swap account is of another generation of the program than the pinned one"));
    }
    let Some(timelock) = stored.timelock else {
        return Ok(unclear("contracts of this generation do not store the timelock: only the transaction that initiated the swap has it"));
    };
    if stored.mint != location.htlc.token.map(|token| token.mint) {
        return Ok(unclear(OTHER_TOKEN));
    }
    let initiated_at = stored.expiry.saturating_sub(timelock);
    let open = Open {
        initiator: to_account(stored.initiator),
        redeemer: to_account(stored.redeemer),
        amount: U256::from(stored.amount),
        timelock,
        initiated_at,
    };
    let covered = holds(members)? >= open.amount;
    Ok(match locked(terms, open, members.need("slot")?.integer()?, covered) {
        HtlcState::Locked(locked) => HtlcState::Locked(locked.with_secret_hash(countersign::SecretHash(stored.secret_hash))),
        other => other,
    })
}

#[cfg(feature = "sui")]
fn sui(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    use countersign::sui::address::{from_account, to_account};
    use countersign::sui::read;

    members.only(&["type", "contents", "time"])?;
    let (Some(object_type), Some(contents)) = (members.get("type"), members.get("contents")) else { return Ok(HtlcState::Absent) };
    let order = match read::order(object_type.text()?, &base64(&contents)?) {
        Ok(order) => order,
        Err(why) => return Ok(unclear(why)),
    };
    let pinned =
        |account: Option<&countersign::Account>, at| account.and_then(from_account).ok_or_else(|| Refusal::new(Code::AddressMalformed, at));
    let (package, registry) = (pinned(terms.htlc.as_ref(), "/htlc")?, pinned(terms.htlc_registry.as_ref(), "/htlc_registry")?);
    if order.package != package {
        return Ok(unclear("the order is of another package than the pinned one"));
    }
    let pinned_coin = match &terms.token {
        Some(text) => text.parse().map_err(|_| Refusal::new(Code::AddressMalformed, "/token"))?,
        None => countersign::sui::htlc::sui(),
    };
    if order.coin_type != pinned_coin {
        return Ok(unclear("the order holds another coin than the pinned one"));
    }
    // The id is a hash of every term and of the registry, so it proves the secret hash.
    if !read::order_ids(terms, registry).any(|id| id == order.order_id && read::field_id(registry, &id) == order.field) {
        return Ok(unclear("the object holds another order"));
    }
    if order.has_ended {
        return Ok(unclear(ENDED));
    }
    let open = Open {
        initiator: to_account(order.initiator),
        redeemer: to_account(order.redeemer),
        amount: U256::from(order.amount),
        timelock: order.timelock,
        initiated_at: order.initiated_at,
    };
    Ok(match locked(terms, open, members.need("time")?.integer()?, order.balance >= order.amount) {
        HtlcState::Locked(locked) => HtlcState::Locked(locked.with_secret_hash(terms.secret_hash)),
        other => other,
    })
}

#[cfg(feature = "bitcoin")]
fn bitcoin(terms: &HtlcTerms, network: &Network, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    use countersign::bitcoin::chain::{self, HtlcSpend};
    use countersign::bitcoin::{Chain, bitcoin::OutPoint};

    members.only(&["txid", "output", "transaction", "depth", "spend"])?;
    let (Some(txid), Some(index), Some(raw)) = (members.get("txid"), members.get("output"), members.get("transaction")) else {
        return Ok(HtlcState::Absent);
    };
    let chain = Chain::from_network(network).ok_or_else(|| Refusal::new(Code::UnsupportedFamily, "/transaction"))?;
    let tree = chain::tree(terms, chain)?;
    let outpoint = OutPoint {
        txid: crate::bitcoin::read_txid(&txid)?,
        vout: u32::try_from(index.integer()?).map_err(|_| index.refuse(Code::NumberTooLarge))?,
    };
    let transaction = chain::parse_transaction(&crate::bitcoin::read_bytes(&raw, MAX_ANSWER)?, outpoint.txid)?;
    let output = usize::try_from(outpoint.vout).ok().and_then(|index| transaction.output.get(index));
    let Some(output) = output.filter(|output| output.script_pubkey == tree.script_pubkey()) else {
        return Err(index.refuse(Code::FundingMismatch).with_reason("this output does not pay the HTLC"));
    };
    if let Some(spend) = members.get("spend") {
        let spend = crate::bitcoin::read_transaction(&spend)?;
        let transaction = Some(spend.compute_txid().to_string());
        return Ok(match chain::read_spend(&tree, outpoint, &spend)? {
            HtlcSpend::Redeem(secret) => HtlcState::Redeemed { secret, transaction },
            HtlcSpend::Refund | HtlcSpend::InstantRefund => HtlcState::Refunded { transaction },
        });
    }
    let (initiator, redeemer) = (terms.initiator.clone(), terms.redeemer.clone());
    // What has passed of the timelock is the depth of the output (BIP-68).
    let elapsed = members.need("depth")?.integer()?;
    let locked = LockedHtlc::new(initiator, redeemer, U256::from(output.value.to_sat()), terms.timelock, elapsed);
    Ok(HtlcState::Locked(locked.with_secret_hash(terms.secret_hash)))
}
