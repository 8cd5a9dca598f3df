//! One chain as one endpoint shows it: the testkit's chains, set to a moment and to the state of one HTLC.

use countersign_client::countersign::chains::Network;
use countersign_client::countersign::evm::alloy_primitives::{B256, U256};
use countersign_client::countersign::evm::read as evm_read;
use countersign_client::countersign::reader::{Answer, Request};
use countersign_client::countersign::starknet::{Felt, felt};
use countersign_client::countersign::{Family, HtlcTerms, sui};
use countersign_testkit::chain::{evm, solana, starknet, sui as sui_chain, tron};
use serde_json::{Value, json};

use crate::kinds::{chain_id, patch};
use crate::tempo::Tempo;

/// How an HTLC ended, and in which transaction, where that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Redeemed(Option<B256>),
    Refunded,
}

/// An HTLC on its chain. Times are those of the blocks, in Unix seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Htlc {
    pub funded: Option<u64>,
    pub ended: Option<(End, u64)>,
    /// Whether it holds one unit less than its terms.
    pub is_short: bool,
}

impl Htlc {
    /// Returns the HTLC as it was at a time.
    pub fn at(self, time: u64) -> Self {
        self.when(|at| at <= time)
    }

    /// Returns the HTLC as the newest block at a time shows it.
    pub fn shown(self, tempo: &Tempo, time: u64) -> Self {
        let newest = tempo.newest(time);
        self.when(|at| at <= time && tempo.includes(at) <= newest)
    }

    fn when(self, is_there: impl Fn(u64) -> bool) -> Self {
        let funded = self.funded.filter(|at| is_there(*at));
        Self { funded, ended: self.ended.filter(|(_, at)| is_there(*at) && funded.is_some()), ..self }
    }
}

/// The seconds after which a block of an EVM chain is safe and final.
pub const SAFE: u64 = 60;
pub const FINAL: u64 = 600;
/// The seconds after which Ethereum has accepted a block of Starknet.
pub const ON_L1: u64 = 1_800;
/// The height of an EVM chain when the counting begins.
const EVM: u64 = evm::INITIATED;

/// What an endpoint answers from.
pub struct View<'v> {
    pub terms: &'v HtlcTerms,
    pub secret: &'v [u8; 32],
    /// When the chain has its blocks.
    pub tempo: &'v Tempo,
    /// The time at which the chain is looked at.
    pub now: u64,
    pub htlc: Htlc,
    /// Whether the endpoint serves another chain of the family.
    pub is_other_chain: bool,
}

impl View<'_> {
    /// Returns the height of the newest block at the time at which the chain is looked at.
    fn newest(&self, base: u64) -> u64 {
        base + self.tempo.newest(self.now)
    }

    /// Returns the height of the newest block so many seconds before.
    fn before(&self, base: u64, seconds: u64) -> u64 {
        base + self.tempo.newest(self.now - seconds)
    }

    /// Returns the height of the block that has what happens at a time.
    fn including(&self, base: u64, time: u64) -> u64 {
        base + self.tempo.includes(time)
    }

    /// Returns the time in the header of the block at a height.
    fn stamp(&self, base: u64, height: u64) -> u64 {
        self.tempo.stamp(height.saturating_sub(base))
    }

    /// Gives the block of an answer the time of its height. The testkit's chains have one pace.
    fn dated(&self, answer: Answer) -> Answer {
        let (Answer::Result(text) | Answer::Http { body: text, .. }) = &answer else { return answer };
        let Ok(mut value) = serde_json::from_slice::<Value>(text) else { return answer };
        let hex = |value: &Value| u64::from_str_radix(value.as_str()?.trim_start_matches("0x"), 16).ok();
        match self.terms.family {
            Family::Evm if value["timestamp"].is_string() => {
                let number = hex(&value["number"]).unwrap();
                value["timestamp"] = json!(format!("{:#x}", self.stamp(EVM, number)));
                Answer::result(value.to_string().into_bytes())
            }
            Family::Tron if value["block_header"]["raw_data"]["number"].is_u64() => {
                let raw = &mut value["block_header"]["raw_data"];
                raw["timestamp"] = json!(self.stamp(tron::INITIATED, raw["number"].as_u64().unwrap()) * 1_000);
                Answer::http(200, value.to_string().into_bytes())
            }
            Family::Starknet if value["timestamp"].is_u64() => {
                value["timestamp"] = json!(self.stamp(starknet::INITIATED, value["block_number"].as_u64().unwrap()));
                Answer::result(value.to_string().into_bytes())
            }
            Family::Solana if value[0]["blockTime"].is_u64() => {
                for one in value.as_array_mut().unwrap() {
                    one["blockTime"] = json!(self.stamp(solana::INITIATED, one["slot"].as_u64().unwrap()));
                }
                Answer::result(value.to_string().into_bytes())
            }
            _ => answer,
        }
    }

    /// Answers the requests of one round. Transactions that are sent are not for this function.
    pub fn answer(&self, requests: &[Request]) -> Vec<Answer> {
        self.answers(requests).into_iter().map(|answer| self.dated(answer)).collect()
    }

    fn answers(&self, requests: &[Request]) -> Vec<Answer> {
        match self.terms.family {
            Family::Evm => {
                let chain = self.evm();
                requests.iter().map(|request| self.answer_evm(&chain, request)).collect()
            }
            Family::Tron => {
                let chain = self.tron();
                requests.iter().map(|request| chain.answer(request)).collect()
            }
            Family::Starknet => {
                let mut chain = self.starknet();
                requests.iter().map(|request| self.answer_starknet(&mut chain, request)).collect()
            }
            Family::Solana => {
                let chain = self.solana();
                // What is signed in this world has blockhashes of its own, and none of them runs out.
                let valid = || Answer::result(format!(r#"{{"context":{{"slot":{}}},"value":true}}"#, chain.finalized).into_bytes());
                let is_of_hash = |request: &&Request| matches!(request, Request::JsonRpc { method: "isBlockhashValid", .. });
                let answer = |request| if is_of_hash(&request) { valid() } else { chain.answer(request) };
                requests.iter().map(answer).collect()
            }
            Family::Sui => {
                let ledger = self.sui();
                requests.iter().map(|request| ledger.answer(request)).collect()
            }
            other => panic!("{other:?} has a ledger of its own"),
        }
    }

    fn evm(&self) -> evm::Evm {
        let height = |time: u64| self.including(EVM, time);
        let mut chain = evm::Evm::funded(self.terms);
        chain.chain_id = chain_id(&self.terms.network) + u64::from(self.is_other_chain);
        (chain.latest, chain.time, chain.block_millis) = (self.newest(EVM), self.now, 1);
        (chain.safe, chain.finalized) = (Some(self.before(EVM, SAFE)), Some(self.before(EVM, FINAL)));
        let Some(funded) = self.htlc.funded else {
            chain.order = None;
            return chain;
        };
        chain.initiated = height(funded);
        let words = chain.order.as_mut().unwrap();
        words[2] = U256::from(height(funded));
        if self.htlc.is_short {
            words[4] -= U256::from(1);
        }
        if let Some((end, at)) = self.htlc.ended {
            words[5] = U256::from(height(at));
            let id = evm::id(self.terms);
            let mut log = match end {
                End::Redeemed(_) => {
                    let topics = [evm_read::REDEEMED, id, self.terms.secret_hash.0.into()];
                    evm::log(chain.htlc, &topics, &evm::redeemed_data(self.secret), height(at))
                }
                End::Refunded => evm::log(chain.htlc, &[evm_read::REFUNDED, id], &[], height(at)),
            };
            if let End::Redeemed(Some(transaction)) = end {
                log["transactionHash"] = json!(transaction);
            }
            chain.logs = vec![log];
        }
        chain
    }

    /// Answers with the order as it was at the block that a request names. The testkit's chain shows an end at all its blocks.
    fn answer_evm(&self, chain: &evm::Evm, request: &Request) -> Answer {
        let height = |time: u64| self.including(EVM, time);
        if let (Request::JsonRpc { method: "eth_call", params }, Some((_, ended))) = (request, self.htlc.ended) {
            let params: Value = serde_json::from_str(params).unwrap();
            let marks = [chain.safe, chain.finalized].into_iter().flatten();
            let is_before = |number: u64| number < height(ended) && params[1]["blockHash"] == json!(chain.hash(number));
            if marks.into_iter().any(is_before) {
                let mut old = chain.clone();
                old.order.as_mut().unwrap()[5] = U256::ZERO;
                return old.answer(request);
            }
        }
        chain.answer(request)
    }

    fn tron(&self) -> tron::Tron {
        let height = |time: u64| self.including(tron::INITIATED, time);
        let mut chain = tron::Tron::funded(self.terms);
        chain.genesis = u32::try_from(self.tron_id()).unwrap() + u32::from(self.is_other_chain);
        (chain.latest, chain.solid) = (self.newest(tron::INITIATED), self.before(tron::INITIATED, 57));
        chain.time = self.now;
        let initiated = chain.infos.remove(&tron::INITIATED).unwrap().remove(0)["log"][0].clone();
        let Some(funded) = self.htlc.funded else {
            chain.order = None;
            return chain;
        };
        let at = height(funded);
        let words = chain.order.as_mut().unwrap();
        words[2] = U256::from(at);
        if self.htlc.is_short {
            words[4] -= U256::from(1);
        }
        chain.infos.insert(at, vec![tron::info(at, &[initiated])]);
        match self.htlc.ended {
            None => chain,
            Some((end, at)) => {
                let log = match end {
                    End::Redeemed(_) => tron::redeemed(chain.htlc, self.terms, *self.secret),
                    End::Refunded => tron::log(chain.htlc, &[evm_read::REFUNDED, tron::id(self.terms)], &[]),
                };
                let before = chain.latest - height(at);
                chain.ended(before, &log)
            }
        }
    }

    fn tron_id(&self) -> u64 {
        match &self.terms.network {
            Network::Tron(id) => *id,
            other => panic!("{other:?}"),
        }
    }

    fn starknet(&self) -> starknet::Chain {
        let height = |time: u64| self.including(starknet::INITIATED, time);
        let mut chain = starknet::Chain::funded(self.terms);
        chain.chain_id = match &self.terms.network {
            Network::Starknet(id) if id == "SN_MAIN" => {
                if self.is_other_chain {
                    "SN_SEPOLIA"
                } else {
                    "SN_MAIN"
                }
            }
            _ => {
                if self.is_other_chain {
                    "SN_MAIN"
                } else {
                    "SN_SEPOLIA"
                }
            }
        };
        (chain.latest, chain.time) = (self.newest(starknet::INITIATED), self.now);
        chain.on_l1 = Some(self.before(starknet::INITIATED, ON_L1));
        let Some(funded) = self.htlc.funded else {
            chain.order = None;
            return chain;
        };
        let amount = self.terms.amount - U256::from(u64::from(self.htlc.is_short));
        let words = chain.order.as_mut().unwrap();
        (words[3], words[5]) = (Felt::from(height(funded)), felt::halves(amount)[0]);
        if !self.terms.swap_id_recomputed {
            let mut event = chain.initiated(self.terms.secret_hash, amount);
            event["block_number"] = json!(height(funded));
            event["block_hash"] = json!(starknet::hash_of(height(funded)));
            chain.events = vec![event];
        }
        if let Some((end, at)) = self.htlc.ended {
            let block = height(at);
            let event = match end {
                End::Redeemed(_) => {
                    let data = starknet::redeemed_data(chain.generation, self.secret);
                    chain.event(&[countersign_client::countersign::starknet::read::REDEEMED, chain.id], &data, block)
                }
                End::Refunded => chain.event(&[countersign_client::countersign::starknet::read::REFUNDED, chain.id], &[], block),
            };
            return chain.ended(block, vec![event]);
        }
        chain
    }

    /// Answers with the order as it was at the block that a request names. The testkit's chain has one order at all its blocks.
    fn answer_starknet(&self, chain: &mut starknet::Chain, request: &Request) -> Answer {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let mut params: Value = serde_json::from_str(params).unwrap();
        let hash = params["block_id"]["block_hash"].as_str().and_then(number_of);
        if let Some(number) = hash {
            params["block_id"] = json!({"block_number": number});
        }
        let number = match &params["block_id"] {
            Value::String(tag) if tag == "l1_accepted" => chain.on_l1.unwrap(),
            id => id["block_number"].as_u64().unwrap_or(chain.latest),
        };
        let is_before = |at: u64| number < self.including(starknet::INITIATED, at);
        let kept = chain.order;
        if self.htlc.funded.is_some_and(is_before) {
            chain.order = None;
        } else if let (Some((_, ended)), Some(words)) = (self.htlc.ended, &mut chain.order)
            && is_before(ended)
        {
            words[0] = Felt::ZERO;
        }
        let answer = chain.answer(&Request::json_rpc(method, params));
        chain.order = kept;
        answer
    }

    fn solana(&self) -> solana::Chain {
        let slot = |time: u64| self.including(solana::INITIATED, time);
        let (htlc, mut swap) = solana::swap_of(self.terms);
        if self.htlc.is_short {
            swap.amount -= 1;
        }
        let mut chain = match self.htlc.funded {
            None => solana::Chain::empty(self.terms),
            Some(at) => {
                let mut chain = solana::Chain::with_swap(self.terms, &swap, slot(at) + swap.timelock);
                chain.mined = vec![solana::mined(slot(at), &solana::initiate(&htlc, &swap))];
                chain
            }
        };
        if let Some((end, at)) = self.htlc.ended {
            let sponsor = solana::SPONSOR.into();
            let instruction = match end {
                End::Redeemed(_) => htlc.redeem(&swap, sponsor, self.secret),
                End::Refunded => htlc.refund(&swap, sponsor),
            };
            chain.accounts.remove(&htlc.swap_account(&swap).unwrap());
            chain.mined.push(solana::mined(slot(at), &instruction.unwrap()));
        }
        if self.is_other_chain {
            chain.genesis = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY";
        }
        let newest = self.newest(solana::INITIATED);
        chain.at(newest, self.stamp(solana::INITIATED, newest))
    }

    fn sui(&self) -> sui_chain::Ledger {
        // Sui counts milliseconds. It has a checkpoint four times a second.
        let checkpoint = |time: u64| sui_chain::HEAD + self.tempo.newest(time) / 250;
        let mut ledger = match self.htlc.ended {
            None => sui_chain::Ledger::funded(),
            Some((End::Redeemed(_), _)) => sui_chain::Ledger::ended("Redeemed"),
            Some((End::Refunded, _)) => sui_chain::Ledger::ended("Refunded"),
        };
        ledger.chain_id = if self.is_other_chain { sui_chain::MAINNET } else { sui_chain::TESTNET }.to_owned();
        (ledger.height, ledger.time) = (checkpoint(self.now), (self.now, 0));
        let Some(funded) = self.htlc.funded else {
            ledger.objects.remove(0);
            ledger.transactions.clear();
            return ledger;
        };
        let changed = self.htlc.ended.map_or(funded, |(_, at)| at);
        // A digest for each version of the object.
        let version = checkpoint(changed) % 200;
        let digest = sui_chain::digest_of(u8::try_from(version).unwrap() + 50);
        (ledger.objects[0].version, ledger.objects[0].digest) = (Some(checkpoint(changed)), Some(digest));
        ledger.transactions[0].checkpoint = Some(checkpoint(changed));
        let patches = self.sui_patches(funded * 1_000);
        ledger.objects[0].id = Some(self.sui_field());
        let mut texts = vec![&mut ledger.objects[0].contents];
        texts
            .extend(ledger.transactions[0].events.iter_mut().filter(|(kind, _)| kind.contains("AtomicSwap")).map(|(_, contents)| contents));
        for contents in texts {
            for (old, new) in &patches {
                if contents.windows(old.len()).any(|window| window == old) {
                    patch(contents, old, new);
                }
            }
        }
        if self.htlc.is_short {
            let (amount, less) = (self.sui_amount(), self.sui_amount() - 1);
            patch(&mut ledger.objects[0].contents, &amount.to_le_bytes(), &less.to_le_bytes());
        }
        ledger
    }

    fn sui_amount(&self) -> u64 {
        self.terms.amount.try_into().unwrap()
    }

    fn sui_field(&self) -> sui::sui_sdk_types::Address {
        let registry = self.terms.htlc_registry.as_ref().unwrap().array().unwrap();
        let id = self.terms.swap_id.parse::<B256>().unwrap().0;
        sui::read::field_id(sui::sui_sdk_types::Address::new(registry), &id)
    }

    /// Returns what differs between the order that the testkit has and this one.
    fn sui_patches(&self, initiated_at: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let order = &sui_chain::made()["order"];
        let made = |name: &str| sui_chain::bytes(&order[name]);
        let number = |name: &str| order[name].as_str().unwrap().parse::<u64>().unwrap();
        let wide = |number: u64| U256::from(number).to_le_bytes::<32>().to_vec();
        let id = self.terms.swap_id.parse::<B256>().unwrap().to_vec();
        vec![
            (sui_chain::bytes(&order["fields"][0]), self.sui_field().as_bytes().to_vec()),
            (sui_chain::bytes(&order["ids"][0]), id),
            (made("initiator"), self.terms.initiator.bytes().to_vec()),
            (made("redeemer"), self.terms.redeemer.bytes().to_vec()),
            (made("secret_hash"), self.terms.secret_hash.0.to_vec()),
            (made("secret"), self.secret.to_vec()),
            (number("amount").to_le_bytes().to_vec(), self.sui_amount().to_le_bytes().to_vec()),
            (wide(number("initiated_at")), wide(initiated_at)),
            (wide(number("timelock")), wide(self.terms.timelock)),
        ]
    }
}

/// Returns the height of the Starknet block with a hash.
fn number_of(hash: &str) -> Option<u64> {
    let product = |text: &str| u128::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let number = u64::try_from(product(hash)? / product(&starknet::hash_of(1))?).ok()?;
    (starknet::hash_of(number) == hash).then_some(number)
}
