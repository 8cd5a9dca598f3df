//! The payment of a deposit from the wallet's own coins.
//!
//! Without unspent outputs there is nothing to sign: the address is paid by whatever wallet reads the URI.

mod coins;
mod fee_rate;
mod payment;
mod utxo;

use std::collections::BTreeSet;

use bitcoin::absolute::LockTime;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::transaction::Version;
use bitcoin::{Amount, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness};
use countersign_core::json::Node;
use countersign_core::{Code, Refusal, number};
use serde::ser::{Serialize, SerializeMap, Serializer};

pub use fee_rate::FeeRate;
pub(crate) use payment::{Input, Kind, Secret};
pub use payment::{MAX_WEIGHT, Payment};
pub(crate) use utxo::txid;
pub use utxo::{Spend, Utxo};

use crate::address::Chain;
use crate::verify::Deposit;

/// Version, locktime, one byte each for the numbers of inputs and outputs, marker and flag: the start of every weight.
pub(crate) const BASE_WEIGHT: u64 = 42;
/// Most inputs whose number takes one byte.
const ONE_BYTE: usize = 252;

/// What only the wallet knows. All of it is optional; unspent outputs need a change address and a fee rate beside them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Wallet {
    /// What the wallet may spend, each once.
    pub utxos: Option<Vec<Utxo>>,
    /// Where the change goes, on the deposit's own chain.
    pub change_address: Option<String>,
    /// At most the policy's ceiling.
    pub fee_rate: Option<FeeRate>,
    /// Which of the outputs are spent.
    pub selection: Selection,
    /// In which order inputs and outputs stand.
    pub order: Sorting,
    /// Whether the transaction may be replaced by one with a higher fee (BIP-125); so by default.
    pub replaceable: bool,
}

/// Which of the wallet's outputs are spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Selection {
    /// All of them: the batch contract's rule.
    #[default]
    All,
    /// As few as the lowest fee wants.
    Lowest,
}

/// In which order inputs and outputs stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Sorting {
    /// As given, the deposit first, the change last: the batch contract's rule.
    #[default]
    Given,
    /// Sorted (BIP-69): tells nothing about which output is the change.
    Bip69,
    /// Shuffled by a seed that the caller draws: no random source is read here.
    Shuffled([u8; 32]),
}

impl Wallet {
    /// A wallet that pays from these outputs, by the batch contract's rule.
    #[must_use]
    pub const fn new(utxos: Vec<Utxo>, change_address: String, fee_rate: FeeRate) -> Self {
        Self {
            utxos: Some(utxos),
            change_address: Some(change_address),
            fee_rate: Some(fee_rate),
            selection: Selection::All,
            order: Sorting::Given,
            replaceable: false,
        }
    }

    pub(crate) fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let utxos = match members.get("utxos") {
            Some(node) => Some(node.array()?.map(|utxo| Utxo::read(&utxo)).collect::<Result<_, _>>()?),
            None => None,
        };
        let choice = |key, choices: &[&str]| match members.get(key) {
            None => Ok(0),
            Some(node) => {
                let text = node.text()?;
                let found = choices.iter().position(|choice| *choice == text);
                found.ok_or_else(|| node.refuse(Code::WrongType).with_expected(choices.join(" or ")))
            }
        };
        let selection = if choice("selection", &["all", "lowest_fee"])? == 0 { Selection::All } else { Selection::Lowest };
        let order = match (choice("order", &["given", "bip69", "shuffled"])?, members.get("seed")) {
            (0, None) => Sorting::Given,
            (1, None) => Sorting::Bip69,
            (2, Some(seed)) => Sorting::Shuffled(number::bare_hex_array(seed.text()?).map_err(|code| seed.at().refuse(code))?),
            (2, None) => return Err(members.at().key("seed").refuse(Code::MissingField)),
            (_, Some(seed)) => {
                return Err(seed.at().refuse(Code::UnexpectedField).with_reason("a seed shuffles: give the order shuffled beside it"));
            }
            (_, None) => Sorting::Given,
        };
        Ok(Self {
            utxos,
            change_address: members.get("change_address").map(|node| node.text().map(str::to_owned)).transpose()?,
            fee_rate: members.get("fee_rate").map(|node| FeeRate::read(&node)).transpose()?,
            selection,
            order,
            replaceable: !members.get("rbf").map(|node| node.bool()).transpose()?.unwrap_or(true),
        })
    }
}

/// A deposit, and the transaction that pays it where the wallet gave its coins.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned {
    /// What is paid.
    pub deposit: Deposit,
    /// The payment.
    pub payment: Option<Payment>,
}

impl Unsigned {
    pub(crate) fn serialize_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let Deposit { address, script_pubkey, amount, .. } = &self.deposit;
        map.serialize_entry("address", address)?;
        map.serialize_entry("script_pubkey", &hex::encode(script_pubkey.as_bytes()))?;
        map.serialize_entry("amount", &amount.to_string())?;
        map.serialize_entry("uri", &self.deposit.uri())?;
        let payment = self.payment.as_ref();
        map.serialize_entry("psbt", &payment.map(|payment| payment.psbt.to_string()))?;
        map.serialize_entry("unsigned_tx", &payment.map(|payment| hex::encode(payment.unsigned_bytes())))
    }
}

impl Serialize for Unsigned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Members<'a>(&'a Unsigned);
        impl Serialize for Members<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                self.0.serialize_members(&mut map)?;
                let payment = self.0.payment.as_ref().filter(|payment| payment.id_is_final());
                map.serialize_entry("tx_id", &payment.map(|payment| payment.transaction().compute_txid().to_string()))?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("deposit", &Members(self))?;
        map.end()
    }
}

pub(crate) fn prepare(deposit: &Deposit, wallet: &Wallet) -> Result<Unsigned, Refusal> {
    if let Some(fee_rate) = wallet.fee_rate {
        fee_rate.check(deposit.fee_rate_limit, "/wallet/fee_rate")?;
    }
    let change = wallet.change_address.as_deref().map(|address| deposit.chain.script(address, "/wallet/change_address")).transpose()?;
    let payment = match &wallet.utxos {
        None => None,
        Some(utxos) => {
            let missing = |member| Refusal::new(Code::MissingField, format!("/wallet/{member}"));
            let fee_rate = wallet.fee_rate.ok_or_else(|| missing("fee_rate"))?;
            let change = change.ok_or_else(|| missing("change_address"))?;
            if change == deposit.script_pubkey {
                return Err(Refusal::new(Code::ChangeToDeposit, "/wallet/change_address"));
            }
            let output = TxOut { value: Amount::from_sat(deposit.amount), script_pubkey: deposit.script_pubkey.clone() };
            check_coins(utxos, deposit.chain)?;
            Some(Plan { chain: deposit.chain, wallet, output, change, fee_rate }.pay(utxos)?)
        }
    };
    Ok(Unsigned { deposit: deposit.clone(), payment })
}

/// Each coin once, and no more of them than there are in the world.
pub(crate) fn check_coins(utxos: &[Utxo], chain: Chain) -> Result<u64, Refusal> {
    let mut seen = BTreeSet::new();
    let mut total = 0_u64;
    for (index, utxo) in utxos.iter().enumerate() {
        let at = |member| format!("/wallet/utxos/{index}/{member}");
        if !seen.insert(utxo.outpoint) {
            return Err(Refusal::new(Code::UtxoTwice, at("txid")).with_actual(utxo.outpoint));
        }
        let value = utxo.output.value.to_sat();
        total = total.checked_add(value).filter(|total| *total <= chain.supply()).ok_or_else(|| {
            Refusal::new(Code::AmountAboveSupply, at("value")).with_expected(format!("at most {} in all", chain.supply())).with_actual(value)
        })?;
    }
    Ok(total)
}

/// Weight of an output: value, length and script.
pub(crate) fn output_weight(script: &ScriptBuf) -> u64 {
    u64::try_from(script.len()).unwrap_or(u64::MAX).saturating_add(9).saturating_mul(4)
}

/// How a deposit is paid.
struct Plan<'p> {
    chain: Chain,
    wallet: &'p Wallet,
    output: TxOut,
    change: ScriptBuf,
    fee_rate: FeeRate,
}

/// What remains of the coins.
struct Rest {
    fee: u64,
    vsize: u64,
    change: Option<u64>,
}

impl Plan<'_> {
    fn pay(&self, utxos: &[Utxo]) -> Result<Payment, Refusal> {
        let all: Vec<_> = (0..utxos.len()).collect();
        let mut chosen: Vec<&Utxo> = match self.wallet.selection {
            Selection::All => utxos.iter().collect(),
            Selection::Lowest => {
                let goal = coins::Goal {
                    amount: self.output.value.to_sat(),
                    output_weight: output_weight(&self.output.script_pubkey),
                    change_weight: output_weight(&self.change),
                    dust: self.dust(),
                    rate: self.fee_rate,
                };
                let enough = |indices: &[usize]| self.rest(&picked(utxos, indices)).is_some();
                let chosen = coins::choose(utxos, &goal, enough).unwrap_or(all);
                picked(utxos, &chosen)
            }
        };
        let rest = self.rest(&chosen).ok_or_else(|| self.insufficient(&chosen))?;
        let mut outputs = vec![(self.output.clone(), false)];
        outputs.extend(rest.change.map(|value| (TxOut { value: Amount::from_sat(value), script_pubkey: self.change.clone() }, true)));
        match self.wallet.order {
            Sorting::Given => {}
            Sorting::Bip69 => {
                // Both as they are displayed: the id's bytes in the opposite order.
                chosen.sort_by_cached_key(|utxo| {
                    let mut txid = utxo.outpoint.txid.to_byte_array();
                    txid.reverse();
                    (txid, utxo.outpoint.vout)
                });
                outputs.sort_by(|(a, _), (b, _)| (a.value, &a.script_pubkey).cmp(&(b.value, &b.script_pubkey)));
            }
            Sorting::Shuffled(seed) => {
                let rank = |item: &[u8]| sha256::Hash::hash(&[&seed[..], item].concat());
                chosen.sort_by_cached_key(|utxo| rank(&bitcoin::consensus::serialize(&utxo.outpoint)));
                outputs.sort_by_cached_key(|(output, _)| rank(output.script_pubkey.as_bytes()));
            }
        }
        let sequence = if self.wallet.replaceable { Sequence::ENABLE_LOCKTIME_NO_RBF } else { Sequence::ENABLE_RBF_NO_LOCKTIME };
        let transaction = Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: chosen.iter().map(|utxo| unsigned_input(utxo, sequence)).collect(),
            output: outputs.iter().map(|(output, _)| output.clone()).collect(),
        };
        let inputs = chosen.into_iter().map(|utxo| (utxo.output.clone(), Kind::Wallet(utxo.kind.clone()))).collect();
        let change = outputs.iter().position(|(_, change)| *change);
        Payment::new(transaction, inputs, (rest.fee, rest.vsize, self.fee_rate), change)
    }

    /// The smallest change that is made. The batch contract's rule has Bitcoin's figures for both coins.
    fn dust(&self) -> u64 {
        match self.wallet.selection {
            Selection::All => self.change.minimal_non_dust().to_sat(),
            Selection::Lowest => self.chain.dust(&self.change),
        }
    }

    /// Virtual size without and with change. The batch contract's rule knows one base weight.
    fn vsizes(&self, chosen: &[&Utxo]) -> (u64, u64) {
        let inputs = chosen.iter().fold(0_u64, |sum, utxo| sum.saturating_add(utxo.kind.weight()));
        let longer = if self.wallet.selection == Selection::Lowest && chosen.len() > ONE_BYTE { 8 } else { 0 };
        let alone = BASE_WEIGHT.saturating_add(longer).saturating_add(inputs).saturating_add(output_weight(&self.output.script_pubkey));
        (alone.div_ceil(4), alone.saturating_add(output_weight(&self.change)).div_ceil(4))
    }

    /// Change if it is not below dust, else all to the fee; `None` if the coins do not reach.
    fn rest(&self, chosen: &[&Utxo]) -> Option<Rest> {
        let total = chosen.iter().try_fold(0_u64, |sum, utxo| sum.checked_add(utxo.output.value.to_sat()))?;
        let left = total.checked_sub(self.output.value.to_sat())?;
        let (alone, with_change) = self.vsizes(chosen);
        if let Some(fee) = self.fee_rate.fee(with_change)
            && let Some(change) = left.checked_sub(fee)
            && change >= self.dust()
        {
            return Some(Rest { fee, vsize: with_change, change: Some(change) });
        }
        (left >= self.fee_rate.fee(alone)?).then_some(Rest { fee: left, vsize: alone, change: None })
    }

    fn insufficient(&self, chosen: &[&Utxo]) -> Refusal {
        let total = chosen.iter().fold(0_u64, |sum, utxo| sum.saturating_add(utxo.output.value.to_sat()));
        let (alone, _) = self.vsizes(chosen);
        let needed = self.fee_rate.fee(alone).unwrap_or(u64::MAX).saturating_add(self.output.value.to_sat());
        Refusal::new(Code::InsufficientFunds, "/wallet/utxos").with_expected(format!("at least {needed}")).with_actual(total)
    }
}

fn picked<'u>(utxos: &'u [Utxo], indices: &[usize]) -> Vec<&'u Utxo> {
    indices.iter().filter_map(|index| utxos.get(*index)).collect()
}

pub(crate) fn unsigned_input(utxo: &Utxo, sequence: Sequence) -> TxIn {
    TxIn { previous_output: utxo.outpoint, script_sig: ScriptBuf::new(), sequence, witness: Witness::new() }
}
