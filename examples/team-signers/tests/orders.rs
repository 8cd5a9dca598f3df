//! Orders of the fixtures, and what other tools signed for them.

use std::error::Error;

use countersign::{Code, CreateOrder, Policy, Proposal, Refusal, Registry, SignerError, evm, solana};
use serde_json::Value;

/// A case of `fixtures/accept`.
pub struct Case(Value);

/// A token deposit with its approval, and the same order as a gasless message; signed by ethers and viem.
pub fn evm() -> Case {
    Case::read("evm", "evm-token-approval-exact")
}

/// A token deposit that the owner sends, and the same order as a transaction that a sponsor sends; signed by @solana/web3.js.
pub fn solana() -> Case {
    Case::read("solana", "solana-token-v0")
}

impl Case {
    fn read(family: &str, id: &str) -> Self {
        let lines = std::fs::read_to_string(format!("{}/../../fixtures/accept/{family}.jsonl", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut cases = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        Self(cases.find(|case| case["id"] == id).unwrap())
    }

    /// Returns the key of the order's owner.
    pub fn key(&self) -> &str {
        self.0["wallet"]["secret_key"].as_str().unwrap()
    }

    fn proposal<T>(&self, verify: impl FnOnce(Proposal<'_>, &Registry, &Policy) -> Result<T, Refusal>) -> T {
        let registry = Registry::from_json(include_bytes!("../../../fixtures/registry.json")).unwrap();
        let request = CreateOrder::from_json(self.0["request"].to_string().as_bytes()).unwrap();
        let response = self.0["response"].to_string();
        verify(Proposal::new(&request, response.as_bytes()), &registry, &Policy::default()).unwrap()
    }

    /// Prepares the approval and the payment of an EVM order.
    pub fn evm(&self) -> evm::UnsignedOrder {
        let nonce = self.0["wallet"]["nonce"].as_u64().unwrap();
        self.proposal(evm::verify).prepare(evm::TxContext::eip1559(nonce, 30_000_000_000, 1_000_000_000)).unwrap()
    }

    /// Prepares both paths of an EVM order. Returns what another tool signed beside each.
    pub fn evm_paths(&self) -> [(evm::UnsignedOrder, Vec<String>); 2] {
        let gasless = self.proposal(evm::verify).prepare(evm::Gasless).unwrap();
        [(self.evm(), self.expected(&["/approval/signed", "/initiate/signed"])), (gasless, self.expected(&["/typed_data/signature"]))]
    }

    /// Prepares the transaction of a Solana order that its owner sends.
    pub fn solana(&self) -> solana::UnsignedOrder {
        self.proposal(solana::verify).prepare(solana::TxContext::new()).unwrap()
    }

    /// Prepares both paths of a Solana order. Returns what another tool signed beside each.
    pub fn solana_paths(&self) -> [(solana::UnsignedOrder, Vec<String>); 2] {
        let gasless = self.proposal(solana::verify).prepare(solana::Gasless).unwrap();
        [(self.solana(), self.expected(&["/transaction/signed"])), (gasless, self.expected(&["/gasless/submission"]))]
    }

    /// Returns what another tool signed: the member of each artefact.
    fn expected(&self, members: &[&str]) -> Vec<String> {
        let artefacts = &self.0["expect"]["artefacts"];
        members.iter().map(|member| artefacts.pointer(member).unwrap().as_str().unwrap().to_owned()).collect()
    }
}

/// Writes a signed EVM order as the fixtures have it.
pub fn written(order: &evm::SignedOrder) -> Vec<String> {
    let transactions = order.transactions().into_iter().map(|transaction| crate::keys::hex(&transaction.bytes));
    transactions.chain(order.gasless().map(|body| body.signature)).collect()
}

/// Returns the code of a refusal, or what the signer failed with.
pub fn code_of<E: Error + 'static>(error: &(dyn Error + 'static)) -> Result<Code, String> {
    let refusal = error.downcast_ref::<Refusal>().or_else(|| match error.downcast_ref::<SignerError<E>>() {
        Some(SignerError::Refused(refusal)) => Some(refusal),
        _ => None,
    });
    refusal.map(|refusal| refusal.code()).ok_or_else(|| error.to_string())
}
