//! One chain as one endpoint shows it: the testkit's chains, set to a moment and to the state of one HTLC.

use std::collections::HashMap;
use std::sync::OnceLock;

use countersign_client::countersign::chains::Network;
use countersign_client::countersign::evm::alloy_primitives::{B256, U256};
use countersign_client::countersign::evm::read as evm_read;
use countersign_client::countersign::reader::{Answer, Request};
use countersign_client::countersign::starknet::{Felt, felt};
use countersign_client::countersign::{Family, HtlcTerms, sui};
use countersign_testkit::chain::{evm, solana, starknet, sui as sui_chain, tron};
use serde_json::{Value, json};

use crate::kinds::{chain_id, patch};

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
        let funded = self.funded.filter(|at| *at <= time);
        Self { funded, ended: self.ended.filter(|(_, at)| *at <= time && funded.is_some()), ..self }
    }
}

/// The seconds that an EVM chain or Tron takes for a block by default, and after which a block is safe and final.
pub const SAFE: u64 = 60;
pub const FINAL: u64 = 600;

/// What an endpoint answers from.
pub struct View<'v> {
    pub terms: &'v HtlcTerms,
    pub secret: &'v [u8; 32],
    /// The moment that the world began: heights are counted from there.
    pub epoch: u64,
    /// The time of the newest block.
    pub now: u64,
    pub htlc: Htlc,
    /// Whether the endpoint serves another chain of the family.
    pub is_other_chain: bool,
    /// From when until when the chain has no blocks.
    pub halt: Option<(u64, u64)>,
}

impl View<'_> {
    /// Returns the height of the block at a time, on a chain whose blocks take this many milliseconds.
    fn height(&self, base: u64, time: u64, millis: u64) -> u64 {
        let halted = self.halt.map_or(0, |(from, until)| time.clamp(from, until) - from);
        base + (time + 100_000 - self.epoch - halted) * 1_000 / millis
    }

    /// Answers the requests of one round. Transactions that are sent are not for this function.
    pub fn answer(&self, requests: &[Request]) -> Vec<Answer> {
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
        // Starknet and others count in their own unit; an EVM chain's blocks take what the registry says.
        let millis = self.terms.pace.contract.max(1_000);
        let height = |time: u64| self.height(21_000_000, time, millis);
        let mut chain = evm::Evm::funded(self.terms);
        chain.chain_id = chain_id(&self.terms.network) + u64::from(self.is_other_chain);
        (chain.latest, chain.time) = (height(self.now), self.now);
        (chain.safe, chain.finalized) = (Some(height(self.now - SAFE)), Some(height(self.now - FINAL)));
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
        let height = |time: u64| self.height(21_000_000, time, self.terms.pace.contract.max(1_000));
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
        let height = |time: u64| self.height(tron::INITIATED, time, 3_000);
        let mut chain = tron::Tron::funded(self.terms);
        chain.genesis = u32::try_from(self.tron_id()).unwrap() + u32::from(self.is_other_chain);
        (chain.latest, chain.solid, chain.time) = (height(self.now), height(self.now - 57), self.now);
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
        let height = |time: u64| self.height(starknet::INITIATED, time, 30_000);
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
        (chain.latest, chain.time, chain.on_l1) = (height(self.now), self.now, Some(height(self.now - 7_200)));
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
        let hash = params["block_id"]["block_hash"].as_str().and_then(|hash| numbers().get(hash).copied());
        if let Some(number) = hash {
            params["block_id"] = json!({"block_number": number});
        }
        let number = match &params["block_id"] {
            Value::String(tag) if tag == "l1_accepted" => chain.on_l1.unwrap(),
            id => id["block_number"].as_u64().unwrap_or(chain.latest),
        };
        let is_before = |at: u64| number < self.height(starknet::INITIATED, at, 30_000);
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
        let slot = |time: u64| self.height(solana::INITIATED, time, 400);
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
        chain.at(slot(self.now), self.now)
    }

    fn sui(&self) -> sui_chain::Ledger {
        let checkpoint = |time: u64| self.height(sui_chain::HEAD, time, 250);
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

/// The heights of Starknet's blocks by their hashes.
fn numbers() -> &'static HashMap<String, u64> {
    static NUMBERS: OnceLock<HashMap<String, u64>> = OnceLock::new();
    NUMBERS
        .get_or_init(|| (0..16_000).map(|number| starknet::INITIATED + number).map(|number| (starknet::hash_of(number), number)).collect())
}
