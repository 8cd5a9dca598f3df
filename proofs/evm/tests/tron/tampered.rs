//! Tests a hostile service on Tron. Each response is refused. If it is signed by hand anyway, the contracts execute it,
//! and the owner loses what the refusal would have saved.

use alloy_primitives::{Address, B256, U256, hex};
use alloy_sol_types::SolCall;
use countersign::tron::Address as TronAddress;
use countersign::tron::prost::Message;
use countersign::tron::transaction::protocol::{self, Raw, Transaction, TriggerSmartContract};
use countersign::{Code, Policy, Refusal, Registry, Unsigned, json};
use countersign_proofs_evm::abi::{Erc20, Htlc};
use countersign_proofs_evm::k256::sha2::{Digest, Sha256};
use countersign_proofs_evm::{Account, Contract, World};
use serde_json::{Value, json};

use crate::{START, execute, lines, registry};

/// The end of the genesis block's id.
const CHAIN_ID: u64 = 728_126_428;
const SECRET: [u8; 32] = *b"countersign proofs: tron's owner";
const SOLVERS_OWN: [u8; 32] = *b"countersign proofs: solver's own";
/// The order's amount in the token's units. The owner has twice as much.
const AMOUNT: u64 = 1_750_000_000;
const APPROVAL: &str = "approval_transaction";
const INITIATE: &str = "initiate_transaction";

fn hash(bytes: &[u8]) -> B256 {
    B256::from_slice(&Sha256::digest(bytes))
}

fn address(text: &Value) -> Address {
    TronAddress::parse(text.as_str().unwrap()).unwrap().bytes()
}

/// Signs what a response asks for, without checks. Transactions are named like their artefacts.
fn blindly(line: &Value) -> Vec<(&'static str, Transaction)> {
    let (wallet, result) = (&line["wallet"], &line["response"]["result"]);
    let hex_of = |value: &Value| hex::decode(value.as_str().unwrap()).unwrap();
    let number_of = |value: &Value| value.as_str().unwrap().parse().unwrap();
    let signer = Account::from_secret(&hex_of(&wallet["secret_key"]).try_into().unwrap()).unwrap();
    // The key of a permission signs for the owner, who has another address.
    let owner = TronAddress::from(address(&line["request"]["source"]["owner"]));
    let sign = |call: &Value| {
        let trigger = TriggerSmartContract {
            owner_address: owner.prefixed().to_vec(),
            contract_address: TronAddress::from(address(&call["to"])).prefixed().to_vec(),
            call_value: number_of(&call["value"]),
            data: hex_of(&call["data"]),
            ..TriggerSmartContract::default()
        };
        let permission_id = wallet["permission_id"].as_i64().unwrap_or_default().try_into().unwrap();
        let raw = Raw {
            ref_block_bytes: hex_of(&wallet["ref_block_bytes"]),
            ref_block_hash: hex_of(&wallet["ref_block_hash"]),
            expiration: wallet["expiration"].as_i64().unwrap(),
            timestamp: wallet["timestamp"].as_i64().unwrap(),
            contract: vec![protocol::Contract { permission_id, ..trigger.to_contract() }],
            fee_limit: number_of(&call["gas_limit"]),
            ..Raw::default()
        };
        let signature = signer.sign_digest(hash(&raw.encode_to_vec())).as_bytes().to_vec();
        Transaction { raw_data: Some(raw), signature: vec![signature] }
    };
    let calls = [("approval", &result[APPROVAL]), ("initiate", &result[INITIATE])];
    calls.into_iter().filter(|(_, call)| !call.is_null()).map(|(name, call)| (name, sign(call))).collect()
}

/// An order of the fixtures with a known secret, and a chain on which its owner has approved nothing.
struct Stage {
    world: World,
    registry: Registry,
    line: Value,
    terms: Htlc::initiate_1Call,
    owner: Address,
    solver: Address,
    thief: Address,
    token: Address,
    htlc: Address,
}

impl Stage {
    fn new() -> Self {
        let mut line = lines().into_iter().find(|line| line["id"] == "tron-token-typed-data-null").expect("the fixture");
        line["request"]["secret_hash"] = json!(hash(&SECRET));
        for member in ["note", "source", "expect"] {
            line.as_object_mut().unwrap().remove(member);
        }
        let result = &line["response"]["result"];
        let data = hex::decode(result[INITIATE]["data"].as_str().unwrap()).unwrap();
        let terms = Htlc::initiate_1Call { secretHash: hash(&SECRET), ..Htlc::initiate_1Call::abi_decode(&data).unwrap() };
        assert_eq!(terms.amount, U256::from(AMOUNT));

        let [token, htlc] = [&result[APPROVAL]["to"], &result[INITIATE]["to"]].map(address);
        let (owner, thief) = (address(&line["request"]["source"]["owner"]), Account::from_phrase("countersign proofs: thief").address());
        let mut world = World::new(CHAIN_ID, START);
        world.deploy_at(token, &Contract::Token { symbol: "TRC20", decimals: 6 }).unwrap();
        world.deploy_at(htlc, &Contract::Htlc { token, version: "3" }).unwrap();
        let mint = Erc20::mintCall { to: owner, value: U256::from(2 * AMOUNT) };
        assert!(world.call(owner, token, mint.abi_encode(), U256::ZERO).unwrap().is_success());
        let solver = terms.redeemer;
        let mut stage = Self { world, registry: registry().unwrap(), line, terms, owner, solver, thief, token, htlc };
        stage.answer(INITIATE, &stage.terms.clone());
        stage
    }

    /// Puts another call into the response.
    fn answer(&mut self, transaction: &str, call: &impl SolCall) {
        self.line["response"]["result"][transaction]["data"] = json!(hex::encode_prefixed(call.abi_encode()));
    }

    /// Verifies and prepares the response.
    fn answered(&self) -> Result<Unsigned, Refusal> {
        let text = self.line.to_string();
        let value = json::parse(text.as_bytes())?;
        Ok(countersign_json::line::Case::from_value(&value)?.run(&self.registry, &Policy::default())?.0)
    }

    /// Executes what was signed without checks, all of which must succeed. Returns the order's id.
    fn execute(&mut self) -> B256 {
        let mut opened = None;
        for (_, transaction) in blindly(&self.line) {
            let id = hash(&transaction.raw_data.as_ref().unwrap().encode_to_vec());
            let (to, receipt) = execute(&mut self.world, &transaction, id, self.owner, &[self.owner]).unwrap();
            assert!(receipt.is_success(), "{:?}", receipt.outcome);
            opened = receipt.event::<Htlc::Initiated>(to);
        }
        opened.expect("an initiated order is logged").orderId
    }

    /// Checks that the response is refused, then executes it anyway. Returns the order's id.
    fn refused_then_done(&mut self, code: Code, at: &str) -> B256 {
        let refusal = self.answered().expect_err("a tampered answer");
        assert_eq!((refusal.code(), refusal.location()), (code, format!("/response/result/{at}").as_str()), "{refusal}");
        self.execute()
    }

    /// Redeems an order as a stranger.
    fn redeem(&mut self, order: B256, secret: [u8; 32]) -> bool {
        let call = Htlc::redeemCall { orderId: order, secret: secret.into() };
        let stranger = Account::from_phrase("countersign proofs: relayer").address();
        self.world.call(stranger, self.htlc, call.abi_encode(), U256::ZERO).unwrap().is_success()
    }

    /// Returns the token balances of owner, solver, thief and HTLC, in this order.
    fn holdings(&self) -> [U256; 4] {
        [self.owner, self.solver, self.thief, self.htlc].map(|account| self.world.balance_of(self.token, account).unwrap())
    }
}

fn tokens(values: [u64; 4]) -> [U256; 4] {
    values.map(U256::from)
}

/// The control test: for an honest response, signing by hand gives the same bytes as TronWeb.
#[test]
fn the_blind_hand_signs_an_honest_answer_as_tronweb_does() {
    let mut signed = 0;
    for line in lines().iter().filter(|line| !line["wallet"]["secret_key"].is_null()) {
        for (name, transaction) in blindly(line) {
            let expected = &line["expect"]["artefacts"][name];
            assert_eq!(expected["raw_data"], hex::encode(transaction.raw_data.unwrap().encode_to_vec()), "{}", line["id"]);
            assert_eq!(expected["signature"], hex::encode(&transaction.signature[0]), "{}", line["id"]);
            signed += 1;
        }
    }
    assert!(signed > 60, "{signed}");
}

/// Shows that the changes in the other tests are the only fault. Without one, the response is accepted, only the
/// owner's secret redeems, and the solver is paid.
#[test]
fn an_honest_answer_on_tron_pays_the_solver() {
    let mut stage = Stage::new();
    assert!(stage.answered().is_ok());
    let order = stage.execute();
    assert_eq!(stage.holdings(), tokens([AMOUNT, 0, 0, AMOUNT]));
    assert!(!stage.redeem(order, SOLVERS_OWN));
    assert!(stage.redeem(order, SECRET));
    assert_eq!(stage.holdings(), tokens([AMOUNT, AMOUNT, 0, 0]));
}

#[test]
fn another_contract_on_tron() {
    let mut stage = Stage::new();
    let trap = stage.world.deploy(&Contract::Htlc { token: stage.token, version: "3" }).unwrap();
    stage.answer(APPROVAL, &Erc20::approveCall { spender: trap, value: U256::MAX });
    stage.line["response"]["result"][INITIATE]["to"] = json!(TronAddress::from(trap).to_string());
    stage.refused_then_done(Code::UnknownContract, "initiate_transaction/to");
    assert_eq!(stage.holdings(), tokens([AMOUNT, 0, 0, 0]));
    assert_eq!(stage.world.balance_of(stage.token, trap).unwrap(), U256::from(AMOUNT));
}

#[test]
fn another_amount_on_tron() {
    let mut stage = Stage::new();
    let amount = U256::from(2 * AMOUNT);
    // An allowance of any size only causes a warning.
    stage.answer(APPROVAL, &Erc20::approveCall { spender: stage.htlc, value: U256::MAX });
    stage.answer(INITIATE, &Htlc::initiate_1Call { amount, ..stage.terms.clone() });
    stage.refused_then_done(Code::AmountMismatch, "initiate_transaction/data#68-100");
    assert_eq!(stage.holdings(), tokens([0, 0, 0, 2 * AMOUNT]));
}

#[test]
fn another_redeemer_on_tron() {
    let mut stage = Stage::new();
    stage.answer(INITIATE, &Htlc::initiate_1Call { redeemer: stage.thief, ..stage.terms.clone() });
    let order = stage.refused_then_done(Code::UnknownRedeemer, "initiate_transaction/data#4-36");
    // The owner reveals the secret by redeeming the destination.
    assert!(stage.redeem(order, SECRET));
    assert_eq!(stage.holdings(), tokens([AMOUNT, 0, AMOUNT, 0]));
}

#[test]
fn another_secret_hash_on_tron() {
    let mut stage = Stage::new();
    stage.answer(INITIATE, &Htlc::initiate_1Call { secretHash: hash(&SOLVERS_OWN), ..stage.terms.clone() });
    let order = stage.refused_then_done(Code::SecretHashMismatch, "initiate_transaction/data#100-132");
    // The solver does this at once, without paying the destination.
    assert!(stage.redeem(order, SOLVERS_OWN));
    assert_eq!(stage.holdings(), tokens([AMOUNT, AMOUNT, 0, 0]));
}
