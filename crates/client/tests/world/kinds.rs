//! One order for each kind of source: the fixtures' own orders, with a secret that is known here.

use std::sync::{Arc, OnceLock};

use base64_of::{decode, encode as to_base64};
use countersign_client::Secret;
use countersign_client::countersign::json::{self, Cursor};
use countersign_client::countersign::solana::Address;
use countersign_client::countersign::{
    Code, Policy, Proposal, Registry, Signed, Verified, VerifiedRecord, evidence::VerifiedTerms, report::TypedValue, verify, verify_record,
};
use serde_json::{Value, json};

use crate::support::{Fixture, project};
use countersign_testkit::chain::view::{Marks, patch};

/// A kind of source or destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Evm,
    /// BNB Chain, as a destination: its payments are final, not only safe.
    Bnb,
    Tron,
    Starknet,
    Solana,
    Spl,
    Sui,
    Bitcoin,
    Litecoin,
}

/// The kinds of source.
pub const KINDS: [Kind; 7] = [Kind::Evm, Kind::Tron, Kind::Starknet, Kind::Solana, Kind::Spl, Kind::Sui, Kind::Bitcoin];

impl Kind {
    /// Returns the kinds of destination that an order of this source may have: on another chain, of the same sort of network.
    pub const fn destinations(self) -> &'static [Self] {
        match self {
            Self::Evm => &[Self::Evm, Self::Bnb, Self::Tron, Self::Starknet, Self::Spl],
            Self::Tron => &[Self::Evm, Self::Bnb, Self::Starknet, Self::Spl],
            Self::Spl | Self::Bnb => &[Self::Evm, Self::Bnb, Self::Tron, Self::Starknet],
            Self::Starknet => &[Self::Evm, Self::Solana, Self::Sui, Self::Bitcoin, Self::Litecoin],
            Self::Solana => &[Self::Evm, Self::Sui, Self::Bitcoin, Self::Litecoin],
            Self::Sui => &[Self::Evm, Self::Solana, Self::Bitcoin, Self::Litecoin],
            Self::Bitcoin | Self::Litecoin => &[Self::Evm, Self::Solana, Self::Sui, Self::Litecoin],
        }
    }

    /// Returns whether the chain is a Bitcoin-like one, of which the simulation has real blocks.
    pub const fn has_blocks(self) -> bool {
        matches!(self, Self::Bitcoin | Self::Litecoin)
    }

    /// Returns the seconds after which the simulated chain shows a block as final by the policy, where that is not a depth.
    pub const fn settles_after(self) -> u64 {
        match self {
            Self::Evm => self.marks().safe,
            Self::Bnb | Self::Tron | Self::Starknet => self.marks().finalized,
            Self::Solana | Self::Spl | Self::Sui => 0,
            // These have blocks of their own: see `settles_at`.
            Self::Bitcoin | Self::Litecoin => 0,
        }
    }

    /// Returns when the simulated chain shows a block as safe and as final.
    pub const fn marks(self) -> Marks {
        match self {
            Self::Tron => Marks { safe: 57, finalized: 57 },
            // Ethereum accepts blocks of Starknet in batches.
            Self::Starknet => Marks { safe: 1_800, finalized: 1_800 },
            _ => Marks { safe: 60, finalized: 600 },
        }
    }

    /// Returns how deep a payment on a Bitcoin-like chain must be.
    pub const fn settles_at(self) -> u64 {
        if matches!(self, Self::Litecoin) { 6 } else { 2 }
    }
}

/// An order of a kind of source and of destination.
pub struct Swap {
    pub kind: Kind,
    pub pays: Kind,
    pub fixture: Fixture,
    pub terms: VerifiedTerms,
    pub secret: [u8; 32],
    verified: Verified,
}

pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    // Without paces of its own: today's rows count.
    let text = || std::fs::read(project().join("fixtures/registry.json")).unwrap();
    REGISTRY.get_or_init(|| Registry::from_json(&text()).unwrap())
}

impl Swap {
    /// Returns the order of two kinds, which is made once.
    pub fn of(kind: Kind, pays: Kind) -> &'static Arc<Self> {
        static SWAPS: OnceLock<Vec<Arc<Swap>>> = OnceLock::new();
        let all =
            || KINDS.into_iter().flat_map(|kind| kind.destinations().iter().map(move |pays| Arc::new(Self::new(kind, *pays)))).collect();
        SWAPS.get_or_init(all).iter().find(|swap| (swap.kind, swap.pays) == (kind, pays)).unwrap()
    }

    fn new(kind: Kind, pays: Kind) -> Self {
        let id = match kind {
            Kind::Evm | Kind::Bnb => "evm-record-evm-v1",
            Kind::Tron => "tron-record-evm-v2",
            Kind::Starknet => "starknet-2025-11-testnet",
            Kind::Solana => "solana-record-testnet",
            Kind::Spl => "solana-record-token",
            Kind::Sui => "sui-record-evm",
            Kind::Bitcoin | Kind::Litecoin => "bitcoin-p2wpkh",
        };
        // Other destinations than those of the order's own fixture come from another one.
        let is_main = matches!(kind, Kind::Evm | Kind::Tron | Kind::Spl);
        let destination = match (pays, is_main) {
            (Kind::Evm, _) => (kind == Kind::Solana).then_some("bitcoin-p2wpkh"),
            (Kind::Bnb, _) => Some("evm-record-evm-v1"),
            (Kind::Tron, _) => Some("evm-record-tron"),
            (Kind::Starknet, _) => Some("starknet-to-2025-11"),
            (Kind::Solana | Kind::Spl, true) => Some("evm-record-solana"),
            (Kind::Solana | Kind::Spl, false) => Some("evm-record-solana-testnet"),
            (Kind::Sui, _) => Some("evm-record-sui-testnet"),
            // The blocks of these networks need little work.
            (Kind::Bitcoin, _) => Some("evm-record-bitcoin-testnet"),
            (Kind::Litecoin, _) => Some("evm-record-litecoin-testnet"),
        };
        let number = 0xabcd_ef01_u64 + kind as u64 + 16 * pays as u64;
        let secret = Secret::parse(&format!("{number:064x}")).unwrap();
        let original = Fixture::load(id);
        let mut fixture = original.clone();
        if let Some(donor) = destination.map(Fixture::load) {
            fixture.request["destination"] = donor.request["destination"].clone();
            fixture.order["destination_swap"] = donor.order["destination_swap"].clone();
            if kind == Kind::Solana {
                fixture.order["version"] = donor.order["version"].clone();
            }
            let hash = fixture.order["source_swap"]["secret_hash"].clone();
            fixture.order["destination_swap"]["secret_hash"] = hash;
        }
        if pays == Kind::Bnb {
            fixture.request["destination"]["asset"] = json!("bnbchain:btcb");
            let swap = &mut fixture.order["destination_swap"];
            (swap["chain"], swap["asset"]) = (json!("bnbchain"), json!("bnbchain:btcb"));
            // The solver's account on this chain.
            swap["initiator"] = json!("0x717294C7a42Fb813719540f8Bc0f49c5181f5191");
        }
        set_timelocks(&mut fixture, kind, pays);
        let (old, new) = (hash_of(&fixture), secret.hash().to_string());
        let mut fixture = fixture.with_secret_hash(&new);
        match kind {
            Kind::Starknet => {
                let hexes = |hash: &str| words(hash).map(|word| format!("\"{word:#x}\"")).join(",");
                let numbers = |hash: &str| words(hash).map(|word| word.to_string()).join(",");
                replace(&mut fixture.response, &hexes(&old), &hexes(&new));
                replace(&mut fixture.response, &numbers(&old), &numbers(&new));
            }
            Kind::Solana | Kind::Spl => {
                let mut bytes = decode(fixture.response["result"]["versioned_tx"].as_str().unwrap());
                patch(&mut bytes, &unhex(&old), &unhex(&new));
                fixture.response["result"]["versioned_tx"] = json!(to_base64(&bytes));
                // The sponsor's signature is of the original.
                fixture.response["result"]["versioned_tx_gasless"] = Value::Null;
            }
            Kind::Sui => {
                let mut bytes: Vec<u8> = serde_json::from_value(fixture.response["result"]["ptb_bytes"].clone()).unwrap();
                patch(&mut bytes, &unhex(&old), &unhex(&new));
                fixture.response["result"]["ptb_bytes"] = json!(bytes);
            }
            _ => {}
        }
        correct_ids(&mut fixture);
        Self::verified(kind, pays, fixture, &secret, registry())
    }

    /// Returns the order of a fixture.
    pub fn verified(kind: Kind, pays: Kind, fixture: Fixture, secret: &Secret, registry: &Registry) -> Self {
        let policy = Policy::default();
        let terms = open(&fixture, |proposal| verify_record(proposal, registry, &policy)).unwrap().terms;
        let verified = open(&fixture, |proposal| verify(proposal, registry, &policy)).unwrap();
        Self { kind, pays, fixture, terms, secret: *secret.expose(), verified }
    }

    /// Signs the funding at a time, with a nonce of its own. Two of them that are both sent pay twice.
    pub fn sign(&self, nonce: u64, now: u64) -> Signed {
        let mut wallet = self.fixture.wallet.clone();
        match self.kind {
            Kind::Evm | Kind::Bnb => wallet["nonce"] = json!(nonce),
            Kind::Tron => {
                // At least a minute, as wallets let theirs wait.
                (wallet["timestamp"], wallet["expiration"]) = (json!(now * 1_000), json!(now * 1_000 + 60_000 + nonce));
            }
            Kind::Starknet => wallet["nonce"] = json!(format!("{nonce:#x}")),
            Kind::Solana | Kind::Spl => {
                let mut hash = [1; 32];
                hash[..8].copy_from_slice(&nonce.to_le_bytes());
                wallet["recent_blockhash"] =
                    json!(countersign_client::countersign::solana::solana_hash::Hash::new_from_array(hash).to_string());
            }
            Kind::Sui => wallet["gas_budget"] = json!((10_000_000 + nonce).to_string()),
            Kind::Bitcoin | Kind::Litecoin => wallet["fee_rate"] = json!((2 + nonce % 50).to_string()),
        }
        let text = wallet.to_string();
        let node = json::parse(text.as_bytes()).unwrap();
        let mut unsigned = countersign_json::prepare(&self.verified, Cursor::root(&node, "/wallet")).unwrap();
        countersign_json::sign(&mut unsigned, wallet["secret_key"].as_str().unwrap()).unwrap();
        unsigned.finish().unwrap()
    }
}

/// Sets timelocks that are long enough at today's paces. Those of the fixtures were for chains with fewer blocks.
fn set_timelocks(fixture: &mut Fixture, kind: Kind, pays: Kind) {
    match kind {
        // 12 hours.
        Kind::Bitcoin => fixture.order["source_swap"]["timelock"] = json!(72),
        // Eight hours, the most that the policy allows.
        Kind::Starknet => {
            fixture.order["source_swap"]["timelock"] = json!(14_400);
            replace(&mut fixture.response, "\"0xb40\"", "\"0x3840\"");
            replace(&mut fixture.response, "\"timelock\":\"2880\"", "\"timelock\":\"14400\"");
        }
        _ => {}
    }
    let destination = &mut fixture.order["destination_swap"];
    match (pays, destination["chain"].as_str()) {
        // An hour, and by the batch contract ten, of at most twelve.
        (Kind::Evm, Some("base" | "base_sepolia")) => destination["timelock"] = json!(18_000),
        // Two hours and a quarter, and by the batch contract fifteen.
        (Kind::Bnb, _) => destination["timelock"] = json!(18_000),
        // An hour and a half, and by the batch contract just less than the day of the source.
        (Kind::Starknet, _) => destination["timelock"] = json!(2_850),
        _ => {}
    }
}

fn hash_of(fixture: &Fixture) -> String {
    fixture.order["source_swap"]["secret_hash"].as_str().unwrap().to_owned()
}

fn words(hash: &str) -> [u32; 8] {
    std::array::from_fn(|index| u32::from_str_radix(&hash[8 * index..8 * index + 8], 16).unwrap())
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn replace(value: &mut Value, old: &str, new: &str) {
    *value = serde_json::from_str(&value.to_string().replace(old, new)).unwrap();
}

fn open<R>(fixture: &Fixture, with: impl FnOnce(Proposal<'_>) -> R) -> R {
    let request = fixture.create();
    let (response, record) = (fixture.response.to_string(), json!({"status": "Ok", "result": fixture.order}).to_string());
    with(Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes()))
}

fn record_of(fixture: &Fixture) -> Result<VerifiedRecord, countersign_client::countersign::Refusal> {
    open(fixture, |proposal| verify_record(proposal, registry(), &Policy::default()))
}

/// Sets the swap ids and the accounts that follow from the new secret hash, as the refusals name them. On a Bitcoin-like chain the id is
/// the address.
fn correct_ids(fixture: &mut Fixture) {
    while let Err(refusal) = record_of(fixture) {
        if refusal.code() == Code::AccountMismatch {
            let account = |shown: Option<&TypedValue>| shown.unwrap().to_string().parse::<Address>().unwrap();
            let (new, old) = (account(refusal.expected()), account(refusal.actual()));
            let mut bytes = decode(fixture.response["result"]["versioned_tx"].as_str().unwrap());
            patch(&mut bytes, old.as_ref(), new.as_ref());
            fixture.response["result"]["versioned_tx"] = json!(to_base64(&bytes));
            continue;
        }
        let new = refusal.expected().unwrap().to_string();
        let old = match refusal.code() {
            Code::AddressNotDerived => refusal.actual().unwrap().to_string(),
            Code::RecordSwapId if refusal.location().contains("source_swap") => fixture.order["source_swap"]["swap_id"].to_string(),
            Code::RecordSwapId => fixture.order["destination_swap"]["swap_id"].to_string(),
            _ => panic!("{refusal:?}"),
        };
        let old = old.trim_matches('"').to_owned();
        assert_ne!(old, new, "{refusal:?}");
        replace(&mut fixture.order, &old, &new);
        replace(&mut fixture.response, &old, &new);
    }
}

/// Base64, which no dependency of these tests offers.
pub mod base64_of {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    pub fn encode(bytes: &[u8]) -> String {
        let digits = |chunk: &[u8]| {
            let number = chunk.iter().chain([&0; 2]).take(3).fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
            let all = [18, 12, 6, 0].map(|shift| char::from(ALPHABET[number >> shift & 63]));
            (0..4).map(move |place| if place <= chunk.len() { all[place] } else { '=' }).collect::<String>()
        };
        bytes.chunks(3).map(digits).collect()
    }

    pub fn decode(text: &str) -> Vec<u8> {
        let text = text.trim_end_matches('=');
        let digits: Vec<_> = text.bytes().map(|digit| ALPHABET.iter().position(|one| *one == digit).unwrap()).collect();
        let whole = |chunk: &[usize]| {
            let number = chunk.iter().chain([&0; 3]).take(4).fold(0, |sum, digit| sum << 6 | digit);
            [16, 8, 0].map(|shift| (number >> shift & 255) as u8)[..chunk.len() - 1].to_vec()
        };
        digits.chunks(4).flat_map(whole).collect()
    }
}
