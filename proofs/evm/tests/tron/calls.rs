//! Executes what the library signs on Tron. Every accepted fixture of the family is verified, prepared and signed.
//! Its calls run against this crate's swap contracts, at the addresses that the fixture pins.
//!
//! The virtual machine is the EVM, which is exact for these calls. The TVM has the same ABI, 20-byte addresses in
//! words, `msg.value` (in sun), SHA-256, `ecrecover`, and `chainid`, which returns the low 32 bits that TIP-712
//! domains contain. Tron's envelope, energy and fee limit are not executed. The fixtures' tests compare the
//! envelope's bytes with TronWeb's, and these tests take the calls out of the broadcast bytes.

use std::error::Error;
use std::fs;

use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::SolCall;
use countersign::tron::prost::Message;
use countersign::tron::recover::{self, Leg};
use countersign::tron::transaction::protocol::Transaction;
use countersign::tron::{Address as TronAddress, FundingPath, Key, SignedOrder, SignedTronTransaction, Tron, TxContext};
use countersign::{Code, OrderRecord, Policy, Registry, Role, SecretHash, SignedTransaction, json};
use countersign_json::JsonFamily as _;
use countersign_proofs_evm::abi::{Erc20, Htlc, NativeHtlc, Order as Entry};
use countersign_proofs_evm::{Account, Contract, Receipt, World};
use serde_json::Value;

use crate::{START, fixtures, registry};

type TestResult = Result<(), Box<dyn Error>>;

/// A verified and signed fixture, with data beyond its artefacts.
struct Case {
    id: String,
    signed: SignedOrder,
    owner: Address,
    /// Who may sign the calls: the owner, or the keys of the named permission.
    signers: Vec<Address>,
    chain_id: u64,
    htlc: Address,
    token: Option<Address>,
    version: String,
    /// What the contract should store.
    entry: Entry,
    secret_hash: B256,
    destination_data: Bytes,
    record: Option<OrderRecord>,
}

fn account(account: &countersign::chains::Account) -> Address {
    account.array::<20>().expect("an account of 20 bytes").into()
}

fn keys_of(calls: &TxContext) -> Vec<Address> {
    calls.permission.iter().flat_map(|permission| &permission.keys).map(|key| key.address.bytes()).collect()
}

/// Returns the keys that have to sign a fixture together, if it has a permission of several keys.
fn further_keys(id: &str) -> Result<Vec<Key>, Box<dyn Error>> {
    let file: Value = serde_json::from_str(&fs::read_to_string(fixtures().join("chain/tron.json"))?)?;
    let orders = file["orders"].as_array().ok_or("no orders")?;
    let keys = orders.iter().filter(|order| order["case"] == id).filter_map(|order| order["keys"].as_array()).flatten();
    keys.map(|key| Ok(key.as_str().ok_or("no text")?.parse()?)).collect()
}

impl Case {
    /// Verifies, prepares and signs a fixture. Returns `None` if its wallet has no key.
    fn of(line: &str, registry: &Registry) -> Result<Option<Self>, Box<dyn Error>> {
        let input = format!("{}}}", line.split_once(",\"note\":").ok_or("a line without a note")?.0);
        let value = json::parse(input.as_bytes())?;
        let id = serde_json::from_str::<serde_json::Value>(&input)?["id"].as_str().ok_or("no id")?.to_owned();
        let case = countersign_json::line::Case::from_value(&value)?;
        let wallet = case.wallet()?;
        let Some(key) = wallet.object()?.get("secret_key").map(|key| key.secret()).transpose()? else { return Ok(None) };
        let key: Key = key.parse()?;
        let proposal = case.proposal()?;
        let source = proposal.request().source.clone();
        let (owner, amount) = (source.owner.ok_or("no owner")?.parse::<TronAddress>()?.bytes(), source.amount);
        let asset = registry.asset(source.asset.as_str()).ok_or("no asset")?;
        let htlc = asset.htlc.as_ref().map(account).ok_or("no HTLC")?;
        let token = asset.token.as_ref().and_then(|token| token.account.as_ref()).map(account);
        let verified = countersign::tron::verify(proposal, registry, &Policy::default())?;
        let record = verified.terms().record.cloned();
        let deposit = verified.deposit();
        let (chain_id, terms) = (deposit.chain_id, deposit.terms.clone());
        let version = deposit.typed_data.as_ref().map_or_else(|| "3".to_owned(), |message| message.version.clone());
        let further = further_keys(&id)?;
        let context = match Tron::read_wallet(wallet)? {
            // The keys of a permission sign calls, but the contract requires the owner's own key for the message.
            FundingPath::Both(calls) if !further.is_empty() => FundingPath::SelfFunded(calls),
            context => context,
        };
        let signers = match &context {
            FundingPath::Both(calls) | FundingPath::SelfFunded(calls) => keys_of(calls),
            FundingPath::Gasless => Vec::new(),
        };
        let signers = if signers.is_empty() { vec![owner] } else { signers };
        let mut unsigned = verified.prepare(context)?;
        for key in std::iter::once(&key).chain(&further) {
            unsigned.sign(key)?;
        }
        let signed = unsigned.finish()?;
        let secret_hash = terms.secret_hash;
        let entry = Entry {
            initiator: owner,
            redeemer: terms.redeemer,
            initiatedAt: U256::from(START),
            timelock: terms.timelock,
            amount,
            fulfilledAt: U256::ZERO,
        };
        let destination_data = terms.destination_data.unwrap_or_default();
        Ok(Some(Self { id, signed, owner, signers, chain_id, htlc, token, version, entry, secret_hash, destination_data, record }))
    }

    fn all() -> Result<Vec<Self>, Box<dyn Error>> {
        let (registry, text) = (registry()?, fs::read_to_string(fixtures().join("accept/tron.jsonl"))?);
        let cases = text.lines().map(|line| Self::of(line, &registry)).collect::<Result<Vec<_>, _>>()?;
        let cases: Vec<_> = cases.into_iter().flatten().collect();
        assert!(cases.len() > 40, "{} signed fixtures", cases.len());
        Ok(cases)
    }

    /// Returns a chain with the pinned contracts. The owner has the amount and has approved nothing.
    fn world(&self) -> Result<World, Box<dyn Error>> {
        let mut world = World::new(self.chain_id, START);
        match self.token {
            Some(token) => {
                world.deploy_at(token, &Contract::Token { symbol: "TRC20", decimals: 6 })?;
                world.deploy_at(self.htlc, &Contract::Htlc { token, version: &self.version })?;
                let mint = Erc20::mintCall { to: self.owner, value: self.entry.amount };
                assert!(world.call(self.owner, token, mint.abi_encode(), U256::ZERO)?.is_success());
            }
            None => {
                world.deploy_at(self.htlc, &Contract::NativeHtlc)?;
                world.fund(self.owner, self.entry.amount);
            }
        }
        Ok(world)
    }

    /// Returns the signed transaction with this role.
    fn transaction(&self, role: Role) -> Option<SignedTransaction<SignedTronTransaction>> {
        self.signed.transactions().into_iter().find(|transaction| transaction.role == role)
    }

    fn approval(&self) -> Option<SignedTransaction<SignedTronTransaction>> {
        self.transaction(Role::Approval)
    }

    fn initiate(&self) -> SignedTransaction<SignedTronTransaction> {
        self.transaction(Role::Initiate).expect("every order has a call")
    }

    /// Returns the balances of the owner and the HTLC.
    fn holdings(&self, world: &World) -> Result<[U256; 2], Box<dyn Error>> {
        let of = |account| match self.token {
            Some(token) => world.balance_of(token, account),
            None => Ok(world.native_balance_of(account)),
        };
        Ok([of(self.owner)?, of(self.htlc)?])
    }

    fn opened(&self, world: &World, receipt: &Receipt) -> Result<B256, Box<dyn Error>> {
        assert!(receipt.is_success(), "{}: {:?}", self.id, receipt.outcome);
        let event: Htlc::Initiated = receipt.event(self.htlc).ok_or("no event")?;
        assert_eq!(world.order(self.htlc, event.orderId)?, self.entry, "{}", self.id);
        assert_eq!(self.holdings(world)?, [U256::ZERO, self.entry.amount], "{}", self.id);
        Ok(event.orderId)
    }
}

/// Executes the broadcast bytes.
fn execute(world: &mut World, case: &Case, call: &SignedTransaction<SignedTronTransaction>) -> Result<Receipt, Box<dyn Error>> {
    assert_eq!((call.native.broadcast_bytes(), alloy_primitives::hex::encode(call.native.tx_id())), (call.bytes.clone(), call.id.clone()));
    let transaction = Transaction::decode(call.bytes.as_slice())?;
    Ok(crate::execute(world, &transaction, call.native.tx_id(), case.owner, &case.signers)?.1)
}

#[test]
fn the_calls_lock_exactly_the_amount() -> TestResult {
    for case in Case::all()? {
        let mut world = case.world()?;
        match (case.approval(), case.token) {
            (Some(approval), Some(token)) => {
                assert!(execute(&mut world, &case, &approval)?.is_success(), "{}", case.id);
                assert!(world.allowance(token, case.owner, case.htlc)? >= case.entry.amount, "{}", case.id);
            }
            // The owner approved long ago.
            (None, Some(token)) => {
                let approve = Erc20::approveCall { spender: case.htlc, value: case.entry.amount };
                assert!(world.call(case.owner, token, approve.abi_encode(), U256::ZERO)?.is_success());
            }
            _ => {}
        }
        let receipt = execute(&mut world, &case, &case.initiate())?;
        case.opened(&world, &receipt)?;
        let event: Htlc::InitiatedWithData = receipt.event(case.htlc).ok_or("no event")?;
        assert_eq!(event.destinationData, case.destination_data, "{}", case.id);

        let again = execute(&mut world, &case, &case.initiate());
        assert!(!again.is_ok_and(|receipt| receipt.is_success()), "{}: opened twice", case.id);
    }
    Ok(())
}

#[test]
fn the_signature_locks_the_same_when_a_stranger_brings_it() -> TestResult {
    let relayer = Account::from_phrase("countersign proofs: relayer").address();
    let mut brought = 0;
    for case in Case::all()? {
        let (Some(token), Some(message)) = (case.token, &case.signed.payloads().payloads().message) else { continue };
        let mut world = case.world()?;
        assert_eq!(message.hashes.domain_separator, world.read(case.htlc, &Htlc::domainSeparatorCall {})?, "{}", case.id);
        let approve = Erc20::approveCall { spender: case.htlc, value: case.entry.amount };
        assert!(world.call(case.owner, token, approve.abi_encode(), U256::ZERO)?.is_success());
        let (Entry { initiator, redeemer, timelock, amount, .. }, secret_hash) = (case.entry.clone(), case.secret_hash);
        let signature: Bytes = message.signature.clone().ok_or("not signed")?.into();
        let bring = |signature, timelock| {
            let call = Htlc::initiateWithSignatureCall { initiator, redeemer, timelock, amount, secretHash: secret_hash, signature };
            call.abi_encode()
        };
        let longer = world.call(relayer, case.htlc, bring(signature.clone(), timelock + U256::ONE), U256::ZERO)?;
        assert_eq!(longer.reverted_with(), Some(Htlc::HTLC__InvalidInitiatorSignature {}), "{}", case.id);
        let receipt = world.call(relayer, case.htlc, bring(signature, timelock), U256::ZERO)?;
        case.opened(&world, &receipt)?;
        brought += 1;
    }
    assert!(brought > 30, "{brought}");
    Ok(())
}

#[test]
fn the_secret_pays_the_redeemer() -> TestResult {
    // The secrets of the fixtures' hashes are unknown, so the same swaps are opened again with this one's hash.
    const SECRET: &[u8; 32] = b"countersign proofs: tron redeem.";
    let registry = registry()?;
    let mut redeemed = 0;
    for mut case in Case::all()? {
        let Some(mut record) = case.record.take().filter(|record| record.version == "v3") else { continue };
        let mut world = case.world()?;
        let Entry { initiator, redeemer, timelock, amount, .. } = case.entry.clone();
        let secret_hash = SecretHash::of(SECRET);
        case.secret_hash = secret_hash.0.into();
        if let Some(token) = case.token {
            let approve = Erc20::approveCall { spender: case.htlc, value: amount };
            assert!(world.call(initiator, token, approve.abi_encode(), U256::ZERO)?.is_success());
        }
        let (hash, data) = (case.secret_hash, case.destination_data.clone());
        let call = Htlc::initiate_1Call { redeemer, timelock, amount, secretHash: hash, destinationData: data };
        let value = if case.token.is_some() { U256::ZERO } else { amount };
        let receipt = world.call(initiator, case.htlc, call.abi_encode(), value)?;
        let id = case.opened(&world, &receipt)?;

        record.source_swap.secret_hash = secret_hash;
        record.source_swap.swap_id = alloy_primitives::hex::encode(id);
        let mut wrong = *SECRET;
        wrong[0] ^= 1;
        let refusal = recover::redeem(&record, Leg::Source, &wrong, &registry).expect_err("another secret");
        assert_eq!(refusal.code(), Code::SecretWrong, "{}", case.id);
        let recovery = recover::redeem(&record, Leg::Source, SECRET, &registry)?;
        assert_eq!(
            (recovery.swap_id_recomputed(), recovery.to().bytes(), recovery.terms().amount),
            (true, redeemer, amount),
            "{}",
            case.id
        );
        let relayer = Account::from_phrase("countersign proofs: relayer").address();
        let data = Htlc::redeemCall { orderId: id, secret: wrong.into() }.abi_encode();
        let receipt = world.call(relayer, case.htlc, data, U256::ZERO)?;
        let is_wrong = match case.token {
            Some(_) => receipt.reverted_with::<Htlc::HTLC__IncorrectSecret>().is_some(),
            None => receipt.reverted_with::<NativeHtlc::NativeHTLC__IncorrectSecret>().is_some(),
        };
        assert!(is_wrong, "{}", case.id);
        assert!(world.call(relayer, recovery.call().to.bytes(), recovery.call().data.clone(), U256::ZERO)?.is_success(), "{}", case.id);
        let paid = match case.token {
            Some(token) => world.balance_of(token, redeemer)?,
            None => world.native_balance_of(redeemer),
        };
        assert_eq!((paid, case.holdings(&world)?), (amount, [U256::ZERO; 2]), "{}", case.id);
        redeemed += 1;
    }
    assert!(redeemed >= 2, "{redeemed}");
    Ok(())
}

#[test]
fn the_record_alone_leads_back_to_the_funds() -> TestResult {
    let registry = registry()?;
    let mut refunded = 0;
    for case in Case::all()? {
        let Some(record) = case.record.as_ref().filter(|record| record.version == "v3") else { continue };
        let mut world = case.world()?;
        match (case.approval(), case.token) {
            (None, Some(token)) => {
                let approve = Erc20::approveCall { spender: case.htlc, value: case.entry.amount };
                assert!(world.call(case.owner, token, approve.abi_encode(), U256::ZERO)?.is_success());
            }
            (Some(approval), _) => assert!(execute(&mut world, &case, &approval)?.is_success()),
            _ => {}
        }
        let receipt = execute(&mut world, &case, &case.initiate())?;
        let id = case.opened(&world, &receipt)?;
        let recovery = recover::refund(record, Leg::Source, &registry)?;
        assert_eq!(recovery.swap_id() == id.0, recovery.swap_id_recomputed(), "{}", case.id);
        if !recovery.swap_id_recomputed() {
            continue;
        }
        let relayer = Account::from_phrase("countersign proofs: relayer").address();
        let refund = |world: &mut World| world.call(relayer, recovery.call().to.bytes(), recovery.call().data.clone(), U256::ZERO);
        world.advance_blocks(u64::try_from(case.entry.timelock)?);
        let early = refund(&mut world)?;
        let is_early = match case.token {
            Some(_) => early.reverted_with::<Htlc::HTLC__OrderNotExpired>().is_some(),
            None => early.reverted_with::<NativeHtlc::NativeHTLC__OrderNotExpired>().is_some(),
        };
        assert!(is_early, "{}", case.id);
        world.advance_blocks(1);
        assert!(refund(&mut world)?.is_success(), "{}", case.id);
        assert_eq!(case.holdings(&world)?, [case.entry.amount, U256::ZERO], "{}", case.id);
        refunded += 1;
    }
    assert!(refunded >= 2, "{refunded}");
    Ok(())
}
