//! The harness and the contracts prove themselves here, with transactions that alloy builds: nothing of countersign
//! takes part, so a fault in its encoders cannot hide behind the same fault in the contracts.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "the helpers of the tests, where a panic is a failed test"
)]

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
    /// The message that `initiateWithSignature` wants signed, as a wallet gets it.
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

    /// The owner signs a call and broadcasts it.
    fn send(&mut self, to: Address, call: &impl SolCall, value: U256) -> Result<Receipt, SendError> {
        let transaction = transaction(&self.world, self.owner.address(), to, call.abi_encode(), value);
        self.world.send_raw(&self.owner.sign_transaction(transaction))
    }

    fn approve(&mut self, amount: u64) -> TestResult {
        let call = Erc20::approveCall { spender: self.htlc, value: U256::from(amount) };
        assert!(self.send(self.token, &call, U256::ZERO)?.is_success());
        Ok(())
    }

    /// Approves and initiates the standard terms; gives the order id.
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

    /// Anyone but the parties calls.
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

    /// The standard terms with the owner's signature.
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
        secretHash: B256::ZERO,
        closedAt: U256::ZERO,
    }
}

fn open_order(stage: &Stage) -> Order {
    Order {
        initiator: stage.owner.address(),
        redeemer: stage.redeemer,
        initiatedAt: U256::from(START),
        timelock: U256::from(TIMELOCK),
        amount: U256::from(AMOUNT),
        secretHash: secret_hash(),
        closedAt: U256::ZERO,
    }
}

fn flip(signature: &Bytes, bit: usize) -> Bytes {
    let mut bytes = signature.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes.into()
}

/// The other signature of the same digest by the same key: `n - s`, and the other parity.
fn high_s(signature: &Signature) -> Signature {
    let order = U256::from_be_bytes(k256::Secp256k1::ORDER.to_be_bytes());
    Signature::new(signature.r(), order - signature.s(), !signature.v())
}

mod artefacts {
    use super::*;

    /// Selectors by ethers 6 from the interface's signatures; not by this crate's own types.
    const TOKEN_HTLC: [(&str, &str); 10] = [
        ("initiate(address,uint256,uint256,bytes32)", "97ffc7ae"),
        ("initiate(address,uint256,uint256,bytes32,bytes)", "4ede0ab7"),
        ("initiateOnBehalf(address,address,uint256,uint256,bytes32)", "13d4a787"),
        ("initiateOnBehalf(address,address,uint256,uint256,bytes32,bytes)", "a66a8641"),
        ("initiateWithSignature(address,address,uint256,uint256,bytes32,bytes)", "d4705e9e"),
        ("redeem(bytes32,bytes)", "f7ff7207"),
        ("refund(bytes32)", "7249fbb6"),
        ("orders(bytes32)", "9c3f1e90"),
        ("token()", "fc0c546a"),
        ("approve(address,uint256)", "095ea7b3"),
    ];

    /// Every function of a compiled ABI with its selector.
    fn functions(contract: &Contract<'_>) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
        let artefact = contract.artefact()?;
        let entries = artefact.abi.as_array().ok_or("the ABI is a list")?;
        let mut functions = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry["type"] == "function") {
            let name = entry["name"].as_str().ok_or("a function has a name")?;
            let inputs = entry["inputs"].as_array().ok_or("a function has inputs")?;
            let types: Option<Vec<&str>> = inputs.iter().map(|input| input["type"].as_str()).collect();
            let signature = format!("{name}({})", types.ok_or("an input has a type")?.join(","));
            let selector = hex::encode(&keccak256(&signature)[..4]);
            functions.insert(signature, selector);
        }
        Ok(functions)
    }

    #[test]
    fn answer_to_the_selectors_of_the_interface() -> TestResult {
        let token = Contract::Token { symbol: "T", decimals: 0 };
        let stubborn = Contract::StubbornToken { symbol: "T", decimals: 0 };
        let htlc = Contract::Htlc { token: Address::ZERO, version: "3" };
        for (signature, selector) in TOKEN_HTLC {
            let holders: &[Contract<'_>] = if signature.starts_with("approve") {
                &[token, stubborn]
            } else if signature.starts_with("initiateWithSignature") {
                &[htlc]
            } else {
                &[htlc, Contract::NativeHtlc]
            };
            for contract in holders {
                let found = functions(contract)?.remove(signature);
                assert_eq!(found.as_deref(), Some(selector), "{signature} of {contract:?}");
                // The dispatcher compares the selector as a pushed constant; leading zeros would be cut, none has any.
                let pushed = hex::decode(format!("63{selector}"))?;
                let code = contract.artefact()?.deployed_bytecode;
                assert!(code.windows(5).any(|window| window == pushed), "{signature} in the code of {contract:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn the_rust_types_are_those_of_the_compiled_contracts() -> TestResult {
        let compiled = functions(&Contract::Htlc { token: Address::ZERO, version: "3" })?;
        let names = Htlc::HtlcCalls::SIGNATURES.iter().map(ToString::to_string);
        let declared: BTreeMap<String, String> = names.zip(Htlc::HtlcCalls::selectors().map(hex::encode)).collect();
        assert_eq!(declared, compiled);
        Ok(())
    }

    #[test]
    fn all_come_from_one_compiler() -> TestResult {
        let contracts = [
            Contract::Token { symbol: "", decimals: 0 },
            Contract::StubbornToken { symbol: "", decimals: 0 },
            Contract::Htlc { token: Address::ZERO, version: "" },
            Contract::NativeHtlc,
        ];
        for contract in contracts {
            let artefact = contract.artefact()?;
            assert!(artefact.compiler.starts_with("solc 0.8.37+"), "{}", artefact.compiler);
            assert!(artefact.bytecode.len() > artefact.deployed_bytecode.len());
        }
        Ok(())
    }
}

/// Values that the service computed for orders on its test network.
mod known_answers {
    use super::*;

    const HTLC: Address = address!("d1e0ba2b165726b3a6051b765d4564d030fdcf50");
    const TOKEN: Address = address!("e918a5a47b8e0afac2382bc5d1e981613e63fb07");
    const INITIATOR: Address = address!("4cD3FB4a504cc978f316a81Dc5165D2C5b30592d");

    #[test]
    fn an_order_made_with_the_service_s_calldata_has_the_service_s_id() -> TestResult {
        let mut world = World::new(SEPOLIA, START);
        world.deploy_at(TOKEN, &Contract::Token { symbol: "WBTC", decimals: 8 })?;
        world.deploy_at(HTLC, &Contract::Htlc { token: TOKEN, version: "3" })?;
        let mint = Erc20::mintCall { to: INITIATOR, value: U256::from(50_000) };
        assert!(world.call(INITIATOR, TOKEN, mint.abi_encode(), U256::ZERO)?.is_success());

        let approve = hex!(
            "095ea7b3000000000000000000000000d1e0ba2b165726b3a6051b765d4564d030fdcf50"
            "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
        );
        assert!(world.call(INITIATOR, TOKEN, approve.to_vec(), U256::ZERO)?.is_success());
        let initiate = hex!(
            "97ffc7ae000000000000000000000000661ba32eb5f86cab358ddbb7f264b10c5825e2dd"
            "0000000000000000000000000000000000000000000000000000000000001c20"
            "000000000000000000000000000000000000000000000000000000000000c350"
            "7b32dd44045d8d6fc477615d0d72f42fc7696078e44724fe64c85b563fc8f306"
        );
        let receipt = world.call(INITIATOR, HTLC, initiate.to_vec(), U256::ZERO)?;

        let id = b256!("f511550e9629124790646668b8cdc2a42bbdc9b9333857c4fdd3f1bf514b6575");
        assert_eq!(initiated(&receipt, HTLC).orderId, id);
        let order = world.order(HTLC, id)?;
        assert_eq!(order.initiator, INITIATOR);
        assert_eq!(order.redeemer, address!("661ba32eb5f86cab358ddbb7f264b10c5825e2dd"));
        assert_eq!(order.timelock, U256::from(7_200));
        assert_eq!(order.amount, U256::from(50_000));
        assert_eq!(order.secretHash, b256!("7b32dd44045d8d6fc477615d0d72f42fc7696078e44724fe64c85b563fc8f306"));
        Ok(())
    }

    /// Type hash and separators by ethers 6 and eth-account.
    #[test]
    fn the_typed_data_domain_is_the_service_s() -> TestResult {
        let cases = [
            ("3", HTLC, b256!("dbf0f6d00f69ac8ea9e6ec1bb9fbcf5d2074ded65e4b2afa1737d37309818e6e")),
            (
                "2",
                address!("88e1032252c712681a3659986f452e910d2134d8"),
                b256!("4233ee4974060d2997e6378bf4ab0e7b7bbec65a78cc7c717cc2ec26cf0d8480"),
            ),
        ];
        for (version, htlc, separator) in cases {
            let mut world = World::new(SEPOLIA, START);
            world.deploy_at(htlc, &Contract::Htlc { token: TOKEN, version })?;
            assert_eq!(world.read(htlc, &Htlc::domainSeparatorCall {})?, separator);
            assert_eq!(
                world.read(htlc, &Htlc::INITIATE_TYPEHASHCall {})?,
                b256!("de5278e8c85ac4e57ea69f40f594c328916a0c846a6bbd82592e91cff5eee136")
            );
            assert_eq!(world.read(htlc, &Htlc::versionCall {})?, version);
            assert_eq!(world.read(htlc, &Htlc::tokenCall {})?, TOKEN);
        }
        Ok(())
    }
}

mod initiate {
    use super::*;

    #[test]
    fn moves_exactly_the_amount_and_records_the_terms() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(AMOUNT)?;
        let before = stage.world.native_balance_of(stage.owner.address());
        let receipt = stage.send(stage.htlc, &stage.terms(), U256::ZERO)?;

        let event = initiated(&receipt, stage.htlc);
        assert_eq!((event.secretHash, event.amount), (secret_hash(), U256::from(AMOUNT)));
        assert_eq!(receipt.from, stage.owner.address());
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
        assert_eq!(stage.world.allowance(stage.token, stage.owner.address(), stage.htlc)?, U256::ZERO);
        assert_eq!(stage.world.order(stage.htlc, event.orderId)?, open_order(&stage));
        assert_eq!(stage.world.nonce_of(stage.owner.address()), 2);

        let price = u128::from(stage.world.base_fee()) + TIP;
        assert_eq!(receipt.gas_price, price);
        let after = stage.world.native_balance_of(stage.owner.address());
        assert_eq!(before - after, U256::from(price) * U256::from(receipt.gas_used));
        Ok(())
    }

    #[test]
    fn needs_the_allowance_and_the_balance() -> TestResult {
        let mut stage = Stage::new()?;
        let receipt = stage.send(stage.htlc, &stage.terms(), U256::ZERO)?;
        assert!(receipt.reverted_with::<Erc20::InsufficientAllowance>().is_some(), "{:?}", receipt.outcome);

        stage.approve(u64::MAX)?;
        let too_much = Htlc::initiate_0Call { amount: U256::from(MINTED + 1), ..stage.terms() };
        let receipt = stage.send(stage.htlc, &too_much, U256::ZERO)?;
        assert!(receipt.reverted_with::<Erc20::InsufficientBalance>().is_some(), "{:?}", receipt.outcome);
        assert_eq!(stage.holdings()?, balances([MINTED, 0, 0, 0]));
        Ok(())
    }

    #[test]
    fn passes_the_destination_data_on_and_leaves_the_id_alone() -> TestResult {
        let mut stage = Stage::new()?;
        let mut plain = Stage::new()?;
        stage.approve(AMOUNT)?;
        let terms = stage.terms();
        let call = Htlc::initiate_1Call {
            redeemer: terms.redeemer,
            timelock: terms.timelock,
            amount: terms.amount,
            secretHash: terms.secretHash,
            destinationData: Bytes::from_static(b"where to"),
        };
        let receipt = stage.send(stage.htlc, &call, U256::ZERO)?;
        let id = initiated(&receipt, stage.htlc).orderId;
        let event: Htlc::InitiatedWithData = receipt.event(stage.htlc).expect("the data is logged");
        assert_eq!((event.orderId, event.destinationData), (id, call.destinationData));
        assert_eq!(stage.world.order(stage.htlc, id)?, open_order(&stage));
        assert_eq!(id, plain.initiate()?);
        Ok(())
    }

    #[test]
    fn on_behalf_takes_from_the_caller_and_records_the_initiator() -> TestResult {
        let initiator = Account::from_phrase("countersign proofs: initiator").address();
        for with_data in [false, true] {
            let mut stage = Stage::new()?;
            stage.approve(AMOUNT)?;
            let Htlc::initiate_0Call { redeemer, timelock, amount, secretHash } = stage.terms();
            let receipt = if with_data {
                let call =
                    Htlc::initiateOnBehalf_1Call { initiator, redeemer, timelock, amount, secretHash, destinationData: Bytes::new() };
                stage.send(stage.htlc, &call, U256::ZERO)?
            } else {
                let call = Htlc::initiateOnBehalf_0Call { initiator, redeemer, timelock, amount, secretHash };
                stage.send(stage.htlc, &call, U256::ZERO)?
            };
            let id = initiated(&receipt, stage.htlc).orderId;
            assert_eq!(receipt.event::<Htlc::InitiatedWithData>(stage.htlc).is_some(), with_data);
            assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
            assert_eq!(stage.world.order(stage.htlc, id)?, Order { initiator, ..open_order(&stage) });

            stage.world.advance_blocks(TIMELOCK + 1);
            assert!(stage.relay(&Htlc::refundCall { orderId: id })?.is_success());
            assert_eq!(stage.world.balance_of(stage.token, initiator)?, U256::from(AMOUNT));
            assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, 0]));
        }
        Ok(())
    }

    #[test]
    fn an_id_opens_once_even_after_it_was_closed() -> TestResult {
        let mut stage = Stage::new()?;
        let id = stage.initiate()?;
        stage.approve(AMOUNT)?;
        let duplicate = Some(Htlc::DuplicateOrder { orderId: id });
        assert_eq!(stage.send(stage.htlc, &stage.terms(), U256::ZERO)?.reverted_with(), duplicate);
        assert_eq!(stage.relay(&stage.signed_terms())?.reverted_with(), duplicate);

        let redeem = Htlc::redeemCall { orderId: id, secret: SECRET.into() };
        assert!(stage.relay(&redeem)?.is_success());
        assert_eq!(stage.send(stage.htlc, &stage.terms(), U256::ZERO)?.reverted_with(), duplicate);
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, AMOUNT, 0, 0]));
        Ok(())
    }

    #[test]
    fn each_term_is_part_of_the_id() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(MINTED)?;
        let terms = stage.terms();
        let variants = [
            terms.clone(),
            Htlc::initiate_0Call { redeemer: stage.relayer, ..terms.clone() },
            Htlc::initiate_0Call { timelock: terms.timelock + U256::ONE, ..terms.clone() },
            Htlc::initiate_0Call { amount: terms.amount + U256::ONE, ..terms.clone() },
            Htlc::initiate_0Call { secretHash: keccak256("another"), ..terms },
        ];
        let mut ids = Vec::new();
        for call in variants {
            let receipt = stage.send(stage.htlc, &call, U256::ZERO)?;
            let id = initiated(&receipt, stage.htlc).orderId;
            assert!(!ids.contains(&id));
            ids.push(id);
        }
        Ok(())
    }

    #[test]
    fn refuses_zeros() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(AMOUNT)?;
        let terms = stage.terms();
        let call = Htlc::initiate_0Call { redeemer: Address::ZERO, ..terms.clone() };
        assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::ZeroAddress>().is_some());
        let call = Htlc::initiate_0Call { timelock: U256::ZERO, ..terms.clone() };
        assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::ZeroTimelock>().is_some());
        let call = Htlc::initiate_0Call { amount: U256::ZERO, ..terms.clone() };
        assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::ZeroAmount>().is_some());
        let call = Htlc::initiate_0Call { secretHash: B256::ZERO, ..terms.clone() };
        assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::ZeroSecretHash>().is_some());
        let Htlc::initiate_0Call { redeemer, timelock, amount, secretHash } = terms;
        let initiator = Address::ZERO;
        let call = Htlc::initiateOnBehalf_0Call { initiator, redeemer, timelock, amount, secretHash };
        assert!(stage.send(stage.htlc, &call, U256::ZERO)?.reverted_with::<Htlc::ZeroAddress>().is_some());
        Ok(())
    }

    #[test]
    fn the_token_htlc_refuses_native_coins() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(AMOUNT)?;
        let receipt = stage.send(stage.htlc, &stage.terms(), U256::ONE)?;
        assert_eq!(receipt.outcome, Outcome::Reverted { output: Bytes::new() });
        Ok(())
    }

    #[test]
    fn a_token_without_code_is_refused() -> TestResult {
        let mut stage = Stage::new()?;
        let nowhere = address!("00000000000000000000000000000000000000aa");
        let htlc = stage.world.deploy(&Contract::Htlc { token: nowhere, version: "3" })?;
        let receipt = stage.send(htlc, &stage.terms(), U256::ZERO)?;
        assert!(receipt.reverted_with::<Htlc::TokenCallFailed>().is_some());
        let deployed = stage.world.deploy(&Contract::Htlc { token: Address::ZERO, version: "3" });
        assert!(matches!(deployed, Err(DeployError::Failed(Outcome::Reverted { .. }))));
        Ok(())
    }
}

mod initiate_with_signature {
    use super::*;

    fn refused(stage: &mut Stage, call: &Htlc::initiateWithSignatureCall) -> TestResult {
        let receipt = stage.relay(call)?;
        let expected = Htlc::InvalidSignature { initiator: call.initiator };
        assert_eq!(receipt.reverted_with(), Some(expected), "{}", call.signature);
        Ok(())
    }

    #[test]
    fn pulls_from_the_signer_whoever_brings_the_signature() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(AMOUNT)?;
        let receipt = stage.relay(&stage.signed_terms())?;
        let id = initiated(&receipt, stage.htlc).orderId;
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
        assert_eq!(stage.world.order(stage.htlc, id)?, open_order(&stage));
        let mut direct = Stage::new()?;
        assert_eq!(id, direct.initiate()?);
        Ok(())
    }

    #[test]
    fn refuses_every_single_flipped_bit() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(AMOUNT)?;
        let good = stage.signed_terms();
        for bit in 0..good.signature.len() * 8 {
            let signature = flip(&good.signature, bit);
            refused(&mut stage, &Htlc::initiateWithSignatureCall { signature, ..good.clone() })?;
        }
        assert!(stage.relay(&good)?.is_success());
        Ok(())
    }

    #[test]
    fn refuses_the_high_s_twin() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(AMOUNT)?;
        let good = stage.signed_terms();
        let digest = stage.digest(&good);
        let twin = high_s(&stage.owner.sign_digest(digest));
        // A valid signature in every other respect: plain recovery finds the owner.
        assert_eq!(twin.recover_address_from_prehash(&digest)?, stage.owner.address());
        let signature = twin.as_bytes().into();
        refused(&mut stage, &Htlc::initiateWithSignatureCall { signature, ..good })
    }

    #[test]
    fn refuses_other_lengths_and_recovery_ids() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(AMOUNT)?;
        let good = stage.signed_terms();
        let mut raw_parity = good.signature.to_vec();
        raw_parity[64] -= 27;
        let longer = [good.signature.as_ref(), &[0]].concat();
        for bytes in [&[][..], &good.signature[..64], &longer, &raw_parity, &[0; 65]] {
            let signature = Bytes::copy_from_slice(bytes);
            refused(&mut stage, &Htlc::initiateWithSignatureCall { signature, ..good.clone() })?;
        }
        Ok(())
    }

    #[test]
    fn a_signature_of_nobody_does_not_speak_for_the_zero_address() -> TestResult {
        let mut stage = Stage::new()?;
        let signature = Bytes::from([[0; 64].as_slice(), &[27]].concat());
        let call = Htlc::initiateWithSignatureCall { initiator: Address::ZERO, signature, ..stage.signed_terms() };
        refused(&mut stage, &call)
    }

    #[test]
    fn refuses_other_terms_domains_and_signers() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(MINTED)?;
        let good = stage.signed_terms();
        let others = [
            Htlc::initiateWithSignatureCall { initiator: stage.relayer, ..good.clone() },
            Htlc::initiateWithSignatureCall { initiator: Address::ZERO, ..good.clone() },
            Htlc::initiateWithSignatureCall { redeemer: stage.relayer, ..good.clone() },
            Htlc::initiateWithSignatureCall { timelock: good.timelock + U256::ONE, ..good.clone() },
            Htlc::initiateWithSignatureCall { amount: good.amount + U256::ONE, ..good.clone() },
            Htlc::initiateWithSignatureCall { secretHash: keccak256("another"), ..good.clone() },
        ];
        for call in others {
            refused(&mut stage, &call)?;
        }

        let message = Initiate { redeemer: good.redeemer, timelock: good.timelock, amount: good.amount, secretHash: good.secretHash };
        let here = domain(stage.htlc, "3");
        let domains = [
            domain(stage.htlc, "2"),
            domain(stage.token, "3"),
            Eip712Domain { chain_id: Some(U256::ONE), ..here.clone() },
            Eip712Domain { name: Some("Htlc".into()), ..here },
        ];
        for domain in domains {
            let signature = stage.owner.sign_digest(message.eip712_signing_hash(&domain)).as_bytes().into();
            refused(&mut stage, &Htlc::initiateWithSignatureCall { signature, ..good.clone() })?;
        }
        Ok(())
    }
}

mod redeem {
    use super::*;

    #[test]
    fn pays_the_redeemer_for_the_secret_whoever_brings_it() -> TestResult {
        let mut stage = Stage::new()?;
        let id = stage.initiate()?;
        stage.world.advance_blocks(1);
        let receipt = stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?;
        let event: Htlc::Redeemed = receipt.event(stage.htlc).expect("a redemption is logged");
        assert_eq!((event.orderId, event.secretHash, event.secret), (id, secret_hash(), SECRET.into()));
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, AMOUNT, 0, 0]));
        assert_eq!(stage.world.order(stage.htlc, id)?, Order { closedAt: U256::from(START + 1), ..open_order(&stage) });
        Ok(())
    }

    #[test]
    fn refuses_a_wrong_secret_and_an_unknown_order() -> TestResult {
        let mut stage = Stage::new()?;
        let id = stage.initiate()?;
        for wrong in [b"".as_slice(), &SECRET[1..], &[SECRET, &[0]].concat(), secret_hash().as_slice()] {
            let receipt = stage.relay(&Htlc::redeemCall { orderId: id, secret: Bytes::copy_from_slice(wrong) })?;
            assert_eq!(receipt.reverted_with(), Some(Htlc::WrongSecret { orderId: id }));
        }
        let unknown = keccak256("unknown");
        let receipt = stage.relay(&Htlc::redeemCall { orderId: unknown, secret: SECRET.into() })?;
        assert_eq!(receipt.reverted_with(), Some(Htlc::UnknownOrder { orderId: unknown }));
        assert_eq!(stage.world.order(stage.htlc, unknown)?, no_order());
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
        Ok(())
    }

    #[test]
    fn pays_once_and_shuts_the_refund() -> TestResult {
        let mut stage = Stage::new()?;
        let id = stage.initiate()?;
        let redeem = Htlc::redeemCall { orderId: id, secret: SECRET.into() };
        assert!(stage.relay(&redeem)?.is_success());
        assert_eq!(stage.relay(&redeem)?.reverted_with(), Some(Htlc::OrderClosed { orderId: id }));
        stage.world.advance_blocks(TIMELOCK + 1);
        let receipt = stage.relay(&Htlc::refundCall { orderId: id })?;
        assert_eq!(receipt.reverted_with(), Some(Htlc::OrderClosed { orderId: id }));
        Ok(())
    }
}

mod refund {
    use super::*;

    #[test]
    fn opens_one_block_after_the_timelock_has_run() -> TestResult {
        let mut stage = Stage::new()?;
        let id = stage.initiate()?;
        let refund = Htlc::refundCall { orderId: id };
        for wait in [0, 1, TIMELOCK - 1] {
            stage.world.advance_blocks(wait);
            let expected = Htlc::NotExpired { expiry: U256::from(START + TIMELOCK), blockNumber: U256::from(stage.world.block_number()) };
            assert_eq!(stage.relay(&refund)?.reverted_with(), Some(expected));
        }
        assert_eq!(stage.world.block_number(), START + TIMELOCK);

        stage.world.advance_blocks(1);
        let receipt = stage.relay(&refund)?;
        assert_eq!(receipt.event(stage.htlc), Some(Htlc::Refunded { orderId: id }));
        assert_eq!(stage.holdings()?, balances([MINTED, 0, 0, 0]));
        assert_eq!(stage.relay(&refund)?.reverted_with(), Some(Htlc::OrderClosed { orderId: id }));
        let redeem = Htlc::redeemCall { orderId: id, secret: SECRET.into() };
        assert_eq!(stage.relay(&redeem)?.reverted_with(), Some(Htlc::OrderClosed { orderId: id }));
        Ok(())
    }

    #[test]
    fn does_not_shut_the_redemption_by_being_open() -> TestResult {
        let mut stage = Stage::new()?;
        let id = stage.initiate()?;
        stage.world.advance_blocks(2 * TIMELOCK);
        assert!(stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?.is_success());
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, AMOUNT, 0, 0]));
        Ok(())
    }
}

mod native_htlc {
    use super::*;

    fn stage() -> Result<Stage, Box<dyn Error>> {
        let mut stage = Stage::new()?;
        stage.htlc = stage.world.deploy(&Contract::NativeHtlc)?;
        Ok(stage)
    }

    #[test]
    fn holds_the_value_then_pays_the_redeemer() -> TestResult {
        let mut stage = stage()?;
        let amount = U256::from(AMOUNT);
        let before = stage.world.native_balance_of(stage.owner.address());
        let receipt = stage.send(stage.htlc, &stage.terms(), amount)?;
        let id = initiated(&receipt, stage.htlc).orderId;
        let fee = U256::from(receipt.gas_price) * U256::from(receipt.gas_used);
        assert_eq!(stage.world.native_balance_of(stage.owner.address()), before - amount - fee);
        assert_eq!(stage.world.native_balance_of(stage.htlc), amount);
        assert_eq!(stage.world.order(stage.htlc, id)?, open_order(&stage));

        assert!(stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?.is_success());
        assert_eq!(stage.world.native_balance_of(stage.redeemer), amount);
        assert_eq!(stage.world.native_balance_of(stage.htlc), U256::ZERO);
        Ok(())
    }

    #[test]
    fn refuses_a_value_that_is_not_the_amount() -> TestResult {
        let mut stage = stage()?;
        let amount = U256::from(AMOUNT);
        for value in [U256::ZERO, amount - U256::ONE, amount + U256::ONE] {
            let receipt = stage.send(stage.htlc, &stage.terms(), value)?;
            assert_eq!(receipt.reverted_with(), Some(NativeHtlc::ValueMismatch { value, amount }));
            assert_eq!(stage.world.native_balance_of(stage.htlc), U256::ZERO);
        }
        Ok(())
    }

    #[test]
    fn refunds_the_initiator_after_the_timelock() -> TestResult {
        let mut stage = stage()?;
        let initiator = Account::from_phrase("countersign proofs: initiator").address();
        let Htlc::initiate_0Call { redeemer, timelock, amount, secretHash } = stage.terms();
        let call = Htlc::initiateOnBehalf_0Call { initiator, redeemer, timelock, amount, secretHash };
        let receipt = stage.send(stage.htlc, &call, amount)?;
        let refund = Htlc::refundCall { orderId: initiated(&receipt, stage.htlc).orderId };
        stage.world.advance_blocks(TIMELOCK);
        assert!(stage.relay(&refund)?.reverted_with::<Htlc::NotExpired>().is_some());
        stage.world.advance_blocks(1);
        assert!(stage.relay(&refund)?.is_success());
        assert_eq!(stage.world.native_balance_of(initiator), amount);
        Ok(())
    }

    #[test]
    fn a_payee_that_takes_no_coins_leaves_the_order_open() -> TestResult {
        let mut stage = stage()?;
        // A token contract has no way to receive the native coin.
        let call = Htlc::initiate_0Call { redeemer: stage.token, ..stage.terms() };
        let receipt = stage.send(stage.htlc, &call, call.amount)?;
        let id = initiated(&receipt, stage.htlc).orderId;
        let receipt = stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?;
        assert_eq!(receipt.reverted_with(), Some(NativeHtlc::PaymentFailed { to: stage.token }));
        assert_eq!(stage.world.order(stage.htlc, id)?.closedAt, U256::ZERO);
        Ok(())
    }
}

mod stubborn_token {
    use super::*;

    fn stage() -> Result<Stage, Box<dyn Error>> {
        Stage::with(&Contract::StubbornToken { symbol: "USDT", decimals: 6 })
    }

    #[test]
    fn wants_the_allowance_reset_to_zero() -> TestResult {
        let mut stage = stage()?;
        stage.approve(AMOUNT - 1)?;
        let raise = Erc20::approveCall { spender: stage.htlc, value: U256::from(AMOUNT) };
        let expected = Erc20::AllowanceNotZero { spender: stage.htlc, allowance: U256::from(AMOUNT - 1) };
        assert_eq!(stage.send(stage.token, &raise, U256::ZERO)?.reverted_with(), Some(expected));

        stage.approve(0)?;
        stage.approve(AMOUNT)?;
        assert_eq!(stage.world.allowance(stage.token, stage.owner.address(), stage.htlc)?, U256::from(AMOUNT));
        Ok(())
    }

    #[test]
    fn works_in_the_htlc_though_it_returns_nothing() -> TestResult {
        let mut stage = stage()?;
        let id = stage.initiate()?;
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, 0, 0, AMOUNT]));
        assert!(stage.relay(&Htlc::redeemCall { orderId: id, secret: SECRET.into() })?.is_success());
        assert_eq!(stage.holdings()?, balances([MINTED - AMOUNT, AMOUNT, 0, 0]));
        Ok(())
    }

    #[test]
    fn a_plain_token_changes_the_allowance_at_once() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(AMOUNT - 1)?;
        stage.approve(AMOUNT)
    }
}

/// The checks a node makes before it executes anything.
mod world {
    use super::*;

    fn transfer(stage: &Stage) -> TxEip1559 {
        transaction(&stage.world, stage.owner.address(), stage.redeemer, Vec::new(), U256::from(7))
    }

    /// Sends a changed transfer, requires a refusal that left no trace, and gives its reason.
    fn refusal(stage: &mut Stage, change: impl FnOnce(&mut TxEip1559)) -> InvalidTransaction {
        let mut transaction = transfer(stage);
        change(&mut transaction);
        let owner = stage.owner.address();
        let before = (stage.world.native_balance_of(owner), stage.world.nonce_of(owner));
        let error = stage.world.send_raw(&stage.owner.sign_transaction(transaction)).expect_err("refused");
        assert_eq!((stage.world.native_balance_of(owner), stage.world.nonce_of(owner)), before);
        error.refusal().cloned().expect("refused by a check")
    }

    #[test]
    fn checks_nonce_chain_balance_gas_and_fee() -> TestResult {
        let mut stage = Stage::new()?;
        stage.approve(1)?;
        assert_eq!(refusal(&mut stage, |tx| tx.nonce = 0), InvalidTransaction::NonceTooLow { tx: 0, state: 1 });
        assert_eq!(refusal(&mut stage, |tx| tx.nonce = 2), InvalidTransaction::NonceTooHigh { tx: 2, state: 1 });
        assert_eq!(refusal(&mut stage, |tx| tx.chain_id = 1), InvalidTransaction::InvalidChainId);
        let reason = refusal(&mut stage, |tx| tx.value = ETHER);
        assert!(matches!(reason, InvalidTransaction::LackOfFundForMaxFee { .. }), "{reason:?}");
        let reason = refusal(&mut stage, |tx| tx.gas_limit = 20_999);
        assert!(matches!(reason, InvalidTransaction::CallGasCostMoreThanGasLimit { .. }), "{reason:?}");
        let reason = refusal(&mut stage, |tx| tx.gas_limit = 17_000_000);
        assert!(matches!(reason, InvalidTransaction::TxGasLimitGreaterThanCap { .. }), "{reason:?}");
        let reason = refusal(&mut stage, |tx| tx.max_fee_per_gas = 999_999_999);
        assert_eq!(reason, InvalidTransaction::PriorityFeeGreaterThanMaxFee);
        stage.world.set_base_fee(4_000_000_000);
        assert_eq!(refusal(&mut stage, |_| ()), InvalidTransaction::GasPriceLessThanBasefee);

        stage.world.set_base_fee(1);
        let raw = stage.owner.sign_transaction(transfer(&stage));
        let receipt = stage.world.send_raw(&raw)?;
        assert!(receipt.is_success());
        assert_eq!((receipt.gas_used, receipt.gas_price), (21_000, TIP + 1));
        assert_eq!(receipt.hash, Some(keccak256(&raw)));
        assert_eq!(stage.world.native_balance_of(stage.redeemer), U256::from(7));
        let replay = stage.world.send_raw(&raw).expect_err("a transaction runs once");
        assert_eq!(replay.refusal(), Some(&InvalidTransaction::NonceTooLow { tx: 1, state: 2 }));
        Ok(())
    }

    #[test]
    fn takes_one_whole_transaction_and_nothing_else() -> TestResult {
        let mut stage = Stage::new()?;
        let raw = stage.owner.sign_transaction(transfer(&stage));
        for end in 0..raw.len() {
            let error = stage.world.send_raw(&raw[..end]).expect_err("cut short");
            assert!(matches!(error, SendError::Malformed(_)), "{end}: {error:?}");
        }
        let longer = [raw.as_slice(), &[0]].concat();
        assert!(matches!(stage.world.send_raw(&longer), Err(SendError::Malformed(_))));
        assert!(stage.world.send_raw(&raw)?.is_success());
        Ok(())
    }

    #[test]
    fn refuses_a_high_s_and_charges_another_account_for_other_content() -> TestResult {
        let mut stage = Stage::new()?;
        let transaction = transfer(&stage);
        let signature = stage.owner.sign_digest(transaction.signature_hash());
        let mut raw = Vec::new();
        transaction.clone().into_signed(high_s(&signature)).eip2718_encode(&mut raw);
        assert!(matches!(stage.world.send_raw(&raw), Err(SendError::Signature(_))));

        let mut raw = Vec::new();
        TxEip1559 { value: U256::from(8), ..transaction }.into_signed(signature).eip2718_encode(&mut raw);
        let error = stage.world.send_raw(&raw).expect_err("the signer is a stranger without funds");
        assert!(matches!(error.refusal(), Some(InvalidTransaction::LackOfFundForMaxFee { .. })), "{error:?}");
        Ok(())
    }

    #[test]
    fn takes_legacy_transactions_that_name_the_chain() -> TestResult {
        let mut stage = Stage::new()?;
        let legacy = TxLegacy {
            chain_id: Some(SEPOLIA),
            nonce: 0,
            gas_price: MAX_FEE,
            gas_limit: 21_000,
            to: TxKind::Call(stage.redeemer),
            value: U256::from(7),
            input: Bytes::new(),
        };
        let unprotected = TxLegacy { chain_id: None, ..legacy.clone() };
        let raw = stage.owner.sign_transaction(unprotected);
        assert!(matches!(stage.world.send_raw(&raw), Err(SendError::Unprotected)));
        let elsewhere = TxLegacy { chain_id: Some(1), ..legacy.clone() };
        let error = stage.world.send_raw(&stage.owner.sign_transaction(elsewhere)).expect_err("another chain");
        assert_eq!(error.refusal(), Some(&InvalidTransaction::InvalidChainId));

        let receipt = stage.world.send_raw(&stage.owner.sign_transaction(legacy))?;
        assert_eq!((receipt.is_success(), receipt.gas_price), (true, MAX_FEE));

        let other_type = TxEip2930 { chain_id: SEPOLIA, ..TxEip2930::default() };
        let error = stage.world.send_raw(&stage.owner.sign_transaction(other_type)).expect_err("another type");
        assert!(matches!(error, SendError::UnsupportedType(1)));
        Ok(())
    }

    #[test]
    fn a_reverted_transaction_costs_its_fee_and_its_nonce_only() -> TestResult {
        let mut stage = Stage::new()?;
        let before = stage.world.native_balance_of(stage.owner.address());
        let receipt = stage.send(stage.htlc, &stage.terms(), U256::ZERO)?;
        assert!(matches!(receipt.outcome, Outcome::Reverted { .. }));
        assert!(receipt.logs.is_empty());
        let fee = U256::from(receipt.gas_price) * U256::from(receipt.gas_used);
        assert_eq!(stage.world.native_balance_of(stage.owner.address()), before - fee);
        assert_eq!(stage.world.nonce_of(stage.owner.address()), 1);
        assert_eq!(stage.holdings()?, balances([MINTED, 0, 0, 0]));

        let mut starved = transaction(&stage.world, stage.owner.address(), stage.token, Vec::new(), U256::ZERO);
        starved.input = Erc20::approveCall { spender: stage.htlc, value: U256::ONE }.abi_encode().into();
        starved.gas_limit = 25_000;
        let receipt = stage.world.send_raw(&stage.owner.sign_transaction(starved))?;
        assert!(matches!(receipt.outcome, Outcome::Halted { .. }), "{:?}", receipt.outcome);
        assert_eq!(receipt.gas_used, 25_000);
        Ok(())
    }

    #[test]
    fn unsigned_calls_leave_nonces_alone_and_reads_leave_everything_alone() -> TestResult {
        let mut stage = Stage::new()?;
        let owner = stage.owner.address();
        let balance = stage.world.native_balance_of(owner);
        let approve = Erc20::approveCall { spender: stage.htlc, value: U256::from(5) };
        assert!(stage.world.call(owner, stage.token, approve.abi_encode(), U256::ZERO)?.is_success());
        assert_eq!(stage.world.nonce_of(owner), 0);
        assert_eq!(stage.world.native_balance_of(owner), balance);
        assert_eq!(stage.world.allowance(stage.token, owner, stage.htlc)?, U256::from(5));

        stage.world.read(stage.token, &Erc20::mintCall { to: owner, value: U256::from(5) })?;
        assert_eq!(stage.world.balance_of(stage.token, owner)?, U256::from(MINTED));
        // An address without code answers nothing, which is not a balance of zero.
        assert!(stage.world.balance_of(stage.redeemer, owner).is_err());
        assert!(stage.world.call(stage.relayer, stage.redeemer, Bytes::new(), U256::ONE).is_err());
        Ok(())
    }

    #[test]
    fn a_clone_goes_its_own_way() -> TestResult {
        let mut stage = Stage::new()?;
        let untouched = stage.world.clone();
        stage.approve(AMOUNT)?;
        assert_eq!(untouched.nonce_of(stage.owner.address()), 0);
        assert_eq!(untouched.allowance(stage.token, stage.owner.address(), stage.htlc)?, U256::ZERO);
        Ok(())
    }

    #[test]
    fn deploys_at_a_chosen_address_once() -> TestResult {
        let mut world = World::new(SEPOLIA, START);
        let place = address!("00000000000000000000000000000000000000bb");
        world.fund(place, ETHER);
        let bad = Contract::Htlc { token: Address::ZERO, version: "3" };
        assert!(matches!(world.deploy_at(place, &bad), Err(DeployError::Failed(_))));
        let token = Contract::Token { symbol: "WBTC", decimals: 8 };
        world.deploy_at(place, &token)?;
        assert!(matches!(world.deploy_at(place, &token), Err(DeployError::Occupied { .. })));
        assert_eq!(world.native_balance_of(place), ETHER);
        assert_eq!(world.read(place, &Erc20::decimalsCall {})?, 8);
        Ok(())
    }

    #[test]
    fn accounts_come_from_their_phrase() {
        let account = Account::from_phrase("countersign proofs: owner");
        assert_eq!(account.secret(), keccak256("countersign proofs: owner"));
        assert_eq!(account.address(), Address::from_private_key(account.key()));
        assert!(!format!("{account:?}").contains(&hex::encode(account.secret())));
    }
}
