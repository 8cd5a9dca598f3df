//! Tests the harness and the contracts themselves, with transactions built by alloy. No countersign code takes part,
//! so a fault in its encoders cannot be hidden by the same fault in the contracts.

#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "the helpers of the tests, where a panic is a failed test")]

mod compiled_contracts;
mod initiate;
mod initiate_with_signature;
mod known_answers;
mod native_htlc;
mod redeem;
mod refund;
mod regulated_token;
mod stubborn_token;
mod world;

use std::collections::BTreeMap;
use std::error::Error;

use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxLegacy};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, address, b256, hex, keccak256};
use alloy_sol_types::{Eip712Domain, SolCall, SolInterface, SolStruct, sol};
use countersign_proofs_evm::abi::{Erc20, Htlc, NativeHtlc, Order};
use countersign_proofs_evm::revm::context_interface::result::InvalidTransaction;
use countersign_proofs_evm::{Account, Contract, DeployError, Outcome, Receipt, SendError, World};
use k256::elliptic_curve::{Curve, bigint::Encoding};

type TestResult = Result<(), Box<dyn Error>>;

const SEPOLIA: u64 = 11_155_111;
const START: u64 = 8_000_000;
const TIMELOCK: u64 = 7_200;
const AMOUNT: u64 = 50_000;
const MINTED: u64 = 1_000_000;
const SECRET: &[u8] = b"countersign proofs: the secret!!";
const MAX_FEE: u128 = 3_000_000_000;
const TIP: u128 = 1_000_000_000;
const ETHER: U256 = U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]);

sol! {
    /// The message to sign for `initiateWithSignature`, as a wallet receives it.
    struct Initiate {
        address redeemer;
        uint256 timelock;
        uint256 amount;
        bytes32 secretHash;
    }
}

/// A token, its HTLC, and a funded owner who has approved nothing.
struct Stage {
    world: World,
    token: Address,
    htlc: Address,
    owner: Account,
    redeemer: Address,
    relayer: Address,
}

impl Stage {
    fn new() -> Result<Self, Box<dyn Error>> {
        Self::with(&Contract::Token { symbol: "WBTC", decimals: 8 })
    }

    fn with(token: &Contract<'_>) -> Result<Self, Box<dyn Error>> {
        let mut world = World::new(SEPOLIA, START);
        let token = world.deploy(token)?;
        let htlc = world.deploy(&Contract::Htlc { token, version: "3" })?;
        let owner = Account::from_phrase("countersign proofs: owner");
        let redeemer = Account::from_phrase("countersign proofs: redeemer").address();
        let relayer = Account::from_phrase("countersign proofs: relayer").address();
        world.fund(owner.address(), ETHER);
        let mint = Erc20::mintCall { to: owner.address(), value: U256::from(MINTED) };
        assert!(world.call(relayer, token, mint.abi_encode(), U256::ZERO)?.is_success());
        Ok(Self { world, token, htlc, owner, redeemer, relayer })
    }

    /// Signs a call as the owner, and broadcasts it.
    fn send(&mut self, to: Address, call: &impl SolCall, value: U256) -> Result<Receipt, SendError> {
        let transaction = transaction(&self.world, self.owner.address(), to, call.abi_encode(), value);
        self.world.send_raw(&self.owner.sign_transaction(transaction))
    }

    fn approve(&mut self, amount: u64) -> TestResult {
        let call = Erc20::approveCall { spender: self.htlc, value: U256::from(amount) };
        assert!(self.send(self.token, &call, U256::ZERO)?.is_success());
        Ok(())
    }

    /// Approves and initiates the standard terms. Returns the order id.
    fn initiate(&mut self) -> Result<B256, Box<dyn Error>> {
        self.approve(AMOUNT)?;
        let receipt = self.send(self.htlc, &self.terms(), U256::ZERO)?;
        Ok(initiated(&receipt, self.htlc).orderId)
    }

    fn terms(&self) -> Htlc::initiate_0Call {
        Htlc::initiate_0Call {
            redeemer: self.redeemer,
            timelock: U256::from(TIMELOCK),
            amount: U256::from(AMOUNT),
            secretHash: secret_hash(),
        }
    }

    /// Calls the HTLC as an account that is not a party.
    fn relay(&mut self, call: &impl SolCall) -> Result<Receipt, Box<dyn Error>> {
        Ok(self.world.call(self.relayer, self.htlc, call.abi_encode(), U256::ZERO)?)
    }

    fn holdings(&self) -> Result<[U256; 4], Box<dyn Error>> {
        let mut balances = [U256::ZERO; 4];
        let accounts = [self.owner.address(), self.redeemer, self.relayer, self.htlc];
        for (balance, account) in balances.iter_mut().zip(accounts) {
            *balance = self.world.balance_of(self.token, account)?;
        }
        Ok(balances)
    }

    fn digest(&self, call: &Htlc::initiateWithSignatureCall) -> B256 {
        let message = Initiate { redeemer: call.redeemer, timelock: call.timelock, amount: call.amount, secretHash: call.secretHash };
        message.eip712_signing_hash(&domain(self.htlc, "3"))
    }

    /// Returns the standard terms with the owner's signature.
    fn signed_terms(&self) -> Htlc::initiateWithSignatureCall {
        let terms = self.terms();
        let mut call = Htlc::initiateWithSignatureCall {
            initiator: self.owner.address(),
            redeemer: terms.redeemer,
            timelock: terms.timelock,
            amount: terms.amount,
            secretHash: terms.secretHash,
            signature: Bytes::new(),
        };
        call.signature = self.owner.sign_digest(self.digest(&call)).as_bytes().into();
        call
    }
}

fn transaction(world: &World, from: Address, to: Address, input: Vec<u8>, value: U256) -> TxEip1559 {
    TxEip1559 {
        chain_id: world.chain_id(),
        nonce: world.nonce_of(from),
        gas_limit: 300_000,
        max_fee_per_gas: MAX_FEE,
        max_priority_fee_per_gas: TIP,
        to: TxKind::Call(to),
        value,
        input: input.into(),
        ..TxEip1559::default()
    }
}

fn domain(htlc: Address, version: &'static str) -> Eip712Domain {
    Eip712Domain::new(Some("HTLC".into()), Some(version.into()), Some(U256::from(SEPOLIA)), Some(htlc), None)
}

/// SHA-256 of [`SECRET`], by `sha256sum`.
const fn secret_hash() -> B256 {
    b256!("62fba994be90586f088c35e11d85044fc8d82a5d3c8cb8b9c0fb7493391ad06a")
}

fn initiated(receipt: &Receipt, htlc: Address) -> Htlc::Initiated {
    assert!(receipt.is_success(), "{:?}", receipt.outcome);
    receipt.event(htlc).expect("an initiated order is logged")
}

fn balances(values: [u64; 4]) -> [U256; 4] {
    values.map(U256::from)
}

fn no_order() -> Order {
    Order {
        initiator: Address::ZERO,
        redeemer: Address::ZERO,
        initiatedAt: U256::ZERO,
        timelock: U256::ZERO,
        amount: U256::ZERO,
        fulfilledAt: U256::ZERO,
    }
}

fn open_order(stage: &Stage) -> Order {
    Order {
        initiator: stage.owner.address(),
        redeemer: stage.redeemer,
        initiatedAt: U256::from(START),
        timelock: U256::from(TIMELOCK),
        amount: U256::from(AMOUNT),
        fulfilledAt: U256::ZERO,
    }
}

fn flip(signature: &Bytes, bit: usize) -> Bytes {
    let mut bytes = signature.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes.into()
}

/// Returns the other signature of the same digest by the same key: `n - s` with the other parity.
fn high_s(signature: &Signature) -> Signature {
    let order = U256::from_be_bytes(k256::Secp256k1::ORDER.to_be_bytes());
    Signature::new(signature.r(), order - signature.s(), !signature.v())
}
