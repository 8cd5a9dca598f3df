//! The only file that accepts or refuses: each rule on a Bitcoin or Litecoin result (batch-contract.md, attacks.md).

use bitcoin::ScriptBuf;
use countersign_core::json::Node;
use countersign_core::{Code, Order, Refusal, SecretHash, Terms, U256, Warnings};

use crate::address::{Chain, account, taproot_key};
use crate::htlc::{self, Tree};
use crate::message::payment_uri;
use crate::wire;

/// Where the funds go, and how sure that is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Deposit {
    /// The chain.
    pub chain: Chain,
    /// The address, bech32m in lower case.
    pub address: String,
    /// What the address stands for.
    pub script_pubkey: ScriptBuf,
    /// Base units, at most the chain's supply.
    pub amount: u64,
    /// The HTLC that the address was recomputed from; `None` where it is taken on trust.
    pub tree: Option<Tree>,
    /// The owner's address as it is written today, where the request has Litecoin's old `3…` form, which is Bitcoin's too.
    pub owner_today: Option<String>,
    /// The policy's ceiling for the wallet's fee rate, sat/vB.
    pub(crate) fee_rate_limit: u64,
}

impl Deposit {
    /// The payment URI: address and amount for whatever wallet pays.
    #[must_use]
    pub fn uri(&self) -> String {
        payment_uri(self.chain, &self.address, self.amount)
    }
}

pub(crate) fn check(order: &Order<'_>, warnings: &mut Warnings) -> Result<(Deposit, Option<Terms>), Refusal> {
    let chain = Chain::of(&order.source.chain.network).ok_or_else(|| Refusal::new(Code::Internal, "/request/source/asset"))?;
    let result = order.result.object()?;
    let (to, stated) = wire::read(&result)?;
    let rules = Rules { order, chain, to };
    let amount = rules.amount(stated)?;
    rules.delegate()?;
    let (script_pubkey, key) = rules.taproot()?;
    if chain.dust(&script_pubkey) > amount {
        warnings.about(Code::AmountBelowDust, format!("{amount} of at least {}", chain.dust(&script_pubkey)));
    }
    let address = chain.address(&script_pubkey).ok_or_else(|| to.refuse(Code::Internal))?;
    let tree = rules.tree(&key, warnings)?;
    let terms = tree.map(|tree| terms(&tree)).transpose()?;
    if order.delegate.is_none() {
        warnings.warn(Code::RefundKeyNotYours);
    }
    let fee_rate_limit = order.policy.bitcoin_fee_rate;
    let owner_today = owner_today(order, chain);
    Ok((Deposit { chain, address, script_pubkey, amount, tree, owner_today, fee_rate_limit }, terms))
}

fn owner_today(order: &Order<'_>, chain: Chain) -> Option<String> {
    let script = ScriptBuf::from_bytes(order.owner.as_ref()?.bytes().to_vec());
    let today = chain.address(&script)?;
    let written = order.request.source.owner.as_deref()?;
    (!written.eq_ignore_ascii_case(&today)).then_some(today)
}

fn terms(tree: &Tree) -> Result<Terms, Refusal> {
    Ok(Terms {
        initiator: account(&tree.htlc.initiator)?,
        redeemer: account(&tree.htlc.redeemer)?,
        timelock: u64::from(tree.htlc.timelock),
        secret_hash: SecretHash(tree.htlc.secret_hash),
    })
}

struct Rules<'c, 'd> {
    order: &'c Order<'d>,
    chain: Chain,
    to: Node<'c, 'd>,
}

impl Rules<'_, '_> {
    /// The requested amount, which the chain can have.
    fn amount(&self, amount: U256) -> Result<u64, Refusal> {
        self.order.check_amount(amount, &|code| Refusal::new(code, "/response/result/amount"))?;
        let supply = self.chain.supply();
        u64::try_from(amount).ok().filter(|amount| *amount <= supply).ok_or_else(|| {
            Refusal::new(Code::AmountAboveSupply, "/request/source/amount").with_expected(format!("at most {supply}")).with_actual(amount)
        })
    }

    /// The requested refund key is nobody's who takes part otherwise.
    fn delegate(&self) -> Result<(), Refusal> {
        let Some(delegate) = &self.order.delegate else { return Ok(()) };
        let what = match () {
            () if self.order.solver(delegate).is_some() => "the refund key is a solver's",
            () if self.order.source.htlc.as_ref() == Some(delegate) => "the refund key is the HTLC's internal key, which nobody has",
            () if delegate.array::<32>().is_none() => "the refund key is an address: it has to be an x-only key",
            () => return Ok(()),
        };
        Err(Refusal::new(Code::InitiatorMismatch, "/request/source/delegate").with_reason(what).with_actual(hex::encode(delegate.bytes())))
    }

    /// An address of the asset's own chain, taproot, with a key that somebody can spend with.
    fn taproot(&self) -> Result<(ScriptBuf, [u8; 32]), Refusal> {
        let text = self.to.text()?;
        let script = self.chain.script(text, &self.to.at().to_string())?;
        if !script.is_p2tr() {
            return Err(self.to.refuse(Code::NotTaproot));
        }
        match taproot_key(&script) {
            Some(key) => Ok((script, key)),
            None => {
                Err(self.to.refuse(Code::NotTaproot).with_reason("the address holds no point of the curve: nobody could ever spend from it"))
            }
        }
    }

    /// The HTLC behind the address: from the record, or found, or unknown.
    fn tree(&self, output_key: &[u8; 32], warnings: &mut Warnings) -> Result<Option<Tree>, Refusal> {
        if self.order.record.is_some() {
            return self.recomputed(output_key, warnings).map(Some);
        }
        let delegate = self.order.delegate.as_ref().and_then(|delegate| delegate.array::<32>());
        match (delegate, self.order.request.secret_hash) {
            (Some(delegate), Some(secret_hash)) => {
                self.order.check_secret_hash(secret_hash, &|code| Refusal::new(code, "/request/secret_hash"))?;
                let tree = htlc::search(self.order, output_key, delegate, secret_hash).ok_or_else(|| {
                    self.to
                        .refuse(Code::AddressNotDerived)
                        .with_reason("no pinned solver and no timelock of the policy give this address with your key and secret hash")
                })?;
                Ok(Some(tree))
            }
            _ => {
                warnings.warn(Code::AddressOnTrust);
                Ok(None)
            }
        }
    }

    /// The record's HTLC, each term checked before its address is compared.
    fn recomputed(&self, output_key: &[u8; 32], warnings: &mut Warnings) -> Result<Tree, Refusal> {
        let order = self.order;
        let Some(record) = &order.record else { return Err(self.to.refuse(Code::Internal)) };
        let at = |code, member: &str| Refusal::new(code, format!("{}/source_swap/{member}", order.record_at));
        let swap = &record.source_swap;
        let htlc = htlc::of_record(order.source, self.chain, swap, &at)?;
        if let Some(delegate) = &order.delegate
            && delegate.bytes() != htlc.initiator
        {
            let wanted = hex::encode(delegate.bytes());
            return Err(at(Code::InitiatorMismatch, "delegate").with_expected(wanted).with_actual(hex::encode(htlc.initiator)));
        }
        let redeemer = account(&htlc.redeemer)?;
        if htlc.redeemer == htlc.initiator {
            return Err(at(Code::RedeemerInvalid, "redeemer").with_reason("the redeemer is the initiator").with_actual(&swap.redeemer));
        }
        order.check_redeemer(&redeemer, warnings, &|code| at(code, "redeemer"))?;
        order.check_secret_hash(swap.secret_hash, &|code| at(code, "secret_hash"))?;
        order.check_timelock(U256::from(swap.timelock), &|code| at(code, "timelock"))?;
        let tree =
            Tree::new(htlc).ok_or_else(|| at(Code::UnknownAsset, "asset").with_reason("the pinned internal key is no point of the curve"))?;
        if tree.output.key == *output_key {
            return Ok(tree);
        }
        Err(self.to.refuse(Code::AddressNotDerived).with_expected(tree.address(self.chain).unwrap_or_default()))
    }
}
