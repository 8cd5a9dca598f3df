//! Tests the gRPC-web interface. Its digests equal those of the SDK's types, arbitrary bytes get an answer, and calls
//! that the model does not support are refused by name.

use countersign_sandbox::accounts::{self, RELAYER, SOLVER, USER};
use countersign_sandbox::chains::sui::{Network, Sui};
use countersign_sandbox::chains::{Change, Engine, Terms};
use countersign_sandbox::http::Request;
use prost::Message;
use sui_crypto::SuiSigner as _;
use sui_crypto::ed25519::Ed25519PrivateKey;
use sui_rpc::field::{FieldMask, FieldMaskUtil as _};
use sui_rpc::proto::sui::rpc::v2 as proto;
use sui_sdk_types::bcs::{FromBcs as _, ToBcs as _};
use sui_sdk_types::{
    Address, Argument, Command, Digest, GasPayment, Input, MergeCoins, MoveCall, Object, ObjectOut, ObjectReference,
    ProgrammableTransaction, Publish, SharedInput, SplitCoins, StructTag, Transaction, TransactionEffects, TransactionExpiration,
    TransactionKind, TransferObjects, UserSignature,
};

use crate::world::{SECRET, World};

/// Calls a method. Returns the message, or the trailers of an error.
fn call<A: Message + Default>(chain: &mut Sui, method: &str, message: &impl Message) -> Result<A, String> {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let (message, trailers) = raw(chain, method, [&[0][..], &length, &message].concat());
    if trailers == "grpc-status:0\r\n" { Ok(A::decode(message.as_slice()).unwrap()) } else { Err(trailers) }
}

fn raw(chain: &mut Sui, method: &str, body: Vec<u8>) -> (Vec<u8>, String) {
    let headers = vec![("content-type".to_owned(), "application/grpc-web+proto".to_owned())];
    let path = format!("/sui.rpc.v2.{method}");
    let reply = chain.answer(&Request { method: "POST".to_owned(), path, query: String::new(), headers, body });
    assert_eq!(reply.status, 200);
    let (mut rest, mut message, mut trailers) = (reply.body.as_slice(), vec![], String::new());
    while let Some((kind, after)) = rest.split_first() {
        let (length, after) = after.split_at(4);
        let (content, after) = after.split_at(usize::try_from(u32::from_be_bytes(length.try_into().unwrap())).unwrap());
        if *kind == 0x80 {
            trailers = String::from_utf8(content.to_vec()).unwrap()
        } else {
            message = content.to_vec()
        }
        rest = after;
    }
    (message, trailers)
}

fn mask(paths: &str) -> FieldMask {
    FieldMask::from_str(paths)
}

/// Returns a transaction in a checkpoint.
fn found(chain: &mut Sui, digest: &str, paths: &str) -> Result<proto::ExecutedTransaction, String> {
    let asked = proto::GetTransactionRequest::default().with_digest(digest).with_read_mask(mask(paths));
    call(chain, "LedgerService/GetTransaction", &asked).map(|found: proto::GetTransactionResponse| found.transaction.unwrap())
}

#[test]
fn digests_are_those_of_the_sdk() {
    let world = World::new(Network::mainnet());
    let terms = world.terms(true);
    world.on(|chain| {
        let digest = chain.lock(&terms).unwrap();
        chain.mine(1);
        let executed = found(chain, &digest, "digest,transaction,effects,events").unwrap();
        let transaction = Transaction::from_bcs(executed.transaction().bcs().value()).unwrap();
        assert_eq!(transaction.digest().to_base58(), digest);
        let effects = TransactionEffects::from_bcs(executed.effects().bcs().value()).unwrap();
        assert_eq!(effects.digest().to_base58(), executed.effects().digest());
        assert_eq!(effects.transaction_digest().to_base58(), digest);
        let TransactionEffects::V2(effects) = effects else { panic!("version 2") };
        let mut seen = 0;
        for change in &effects.changed_objects {
            let asked = proto::GetObjectRequest::new(&change.object_id).with_read_mask(mask("bcs,digest"));
            let found: proto::GetObjectResponse = call(chain, "LedgerService/GetObject", &asked).unwrap();
            let ObjectOut::ObjectWrite { digest, .. } = change.output_state else { continue };
            let object = Object::from_bcs(found.object().bcs().value()).unwrap();
            assert_eq!((object.digest(), object.version(), object.object_id()), (digest, effects.lamport_version, change.object_id));
            assert_eq!(digest.to_base58(), found.object().digest());
            seen += 1;
        }
        assert_eq!(seen, 3, "the coin that paid, the registry, and the order");
        let bytes: Vec<u8> = serde_json::from_value(chain.payloads(&terms).unwrap()["ptb_bytes"].clone()).unwrap();
        let kind = TransactionKind::from_bcs(&bytes).unwrap();
        assert_eq!((bytes.len(), kind == transaction.kind, kind.to_bcs().unwrap() == bytes), (369, true, true), "as captured");
    });
}

#[test]
fn any_bytes_get_an_answer() {
    let world = World::new(Network::mainnet());
    world.on(|chain| {
        let status = |answer: (Vec<u8>, String)| answer.1.split("\r\n").next().unwrap().to_owned();
        let message = |bytes: &[u8]| [&[0, 0, 0, 0, u8::try_from(bytes.len()).unwrap()][..], bytes].concat();
        let of = |digest: &[u8]| message(&[&[10, u8::try_from(digest.len()).unwrap()][..], digest].concat());
        assert_eq!(status(raw(chain, "LedgerService/Nothing", message(&[]))), "grpc-status:12");
        assert_eq!(status(raw(chain, "LedgerService/GetTransaction", of(&[b'1'; 32]))), "grpc-status:5");
        assert_eq!(status(raw(chain, "LedgerService/GetTransaction", of(b"0"))), "grpc-status:3");
        assert_eq!(status(raw(chain, "LedgerService/GetEpoch", message(b"\x12\x09\x0a\x07no.such"))), "grpc-status:3");
        assert_eq!(status(raw(chain, "TransactionExecutionService/ExecuteTransaction", message(&[]))), "grpc-status:3");
        assert_eq!(status(raw(chain, "LedgerService/GetObject", message(&[0xff; 40]))), "grpc-status:13");
        for body in [vec![], vec![0; 4], vec![0, 0, 0, 0, 9], vec![1, 0, 0, 0, 0], vec![0xff; 100]] {
            assert_ne!(status(raw(chain, "LedgerService/GetObject", body)), "grpc-status:0");
        }
        let mut word = 1_u32;
        for method in ["LedgerService/GetObject", "StateService/ListOwnedObjects", "TransactionExecutionService/SimulateTransaction"] {
            for length in 0..200_usize {
                let noise: Vec<u8> = (0..length)
                    .map(|_| {
                        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        word.to_be_bytes()[0] & 0x3f
                    })
                    .collect();
                raw(chain, method, message(&noise));
            }
        }
        let plain = Request { method: "GET".to_owned(), path: "/".to_owned(), query: String::new(), headers: vec![], body: vec![] };
        assert_eq!(chain.answer(&plain).status, 415);
    });
}

fn send(chain: &mut Sui, transaction: &Transaction, signature: &[u8]) -> Result<proto::ExecutedTransaction, String> {
    let mut asked = proto::ExecuteTransactionRequest::default().with_read_mask(mask("digest,effects"));
    let bcs = |bytes: &[u8]| proto::Bcs::default().with_value(bytes.to_vec());
    asked.transaction = Some(proto::Transaction::default().with_bcs(bcs(&transaction.to_bcs().unwrap())));
    asked.signatures = vec![proto::UserSignature::default().with_bcs(bcs(signature))];
    let executed: Result<proto::ExecuteTransactionResponse, _> = call(chain, "TransactionExecutionService/ExecuteTransaction", &asked);
    executed.map(|executed| executed.transaction.unwrap())
}

#[test]
fn a_transaction_is_executed_once_and_only_as_it_was_signed() {
    let world = World::new(Network::mainnet());
    let terms = world.terms(true);
    world.on(|chain| {
        let digest = chain.lock(&terms).unwrap();
        chain.mine(1);
        let executed = found(chain, &digest, "transaction,signatures").unwrap();
        let transaction = Transaction::from_bcs(executed.transaction().bcs().value()).unwrap();
        let signature = executed.signatures[0].bcs().value().to_vec();
        assert_eq!(send(chain, &transaction, &signature).unwrap().digest(), digest);
        for place in [1, 40, 70] {
            let mut other = signature.clone();
            other[place] ^= 1;
            let refusal = send(chain, &transaction, &other).unwrap_err();
            assert!(refusal.starts_with("grpc-status:3\r\ngrpc-message:Invalid%20user%20signature"), "{refusal}");
        }
        let mut cheaper = transaction;
        cheaper.gas_payment.budget -= 1;
        assert!(send(chain, &cheaper, &signature).unwrap_err().contains("Invalid%20user%20signature"));
        assert_eq!((chain.pending(), chain.events().len()), (0, 1));
    });
}

/// An account that signs any transaction.
struct Signer(Ed25519PrivateKey, Address);

impl Signer {
    fn new(role: &str) -> Self {
        let key = Ed25519PrivateKey::new(accounts::key(role));
        let address = key.public_key().derive_address();
        Self(key, address)
    }

    fn coins(&self, chain: &mut Sui) -> Vec<ObjectReference> {
        let asked = proto::ListOwnedObjectsRequest::default().with_owner(self.1.to_string()).with_read_mask(mask("bcs"));
        let owned: proto::ListOwnedObjectsResponse = call(chain, "StateService/ListOwnedObjects", &asked).unwrap();
        let objects = owned.objects.iter().map(|object| Object::from_bcs(object.bcs().value()).unwrap());
        objects.map(|object| ObjectReference::new(object.object_id(), object.version(), object.digest())).collect()
    }

    fn transaction(&self, gas: &[ObjectReference], inputs: Vec<Input>, commands: Vec<Command>) -> Transaction {
        let gas_payment = GasPayment { objects: gas.to_vec(), owner: self.1, price: 500, budget: 50_000_000 };
        let kind = TransactionKind::ProgrammableTransaction(ProgrammableTransaction { inputs, commands });
        Transaction { kind, sender: self.1, gas_payment, expiration: TransactionExpiration::None }
    }

    /// Sends a transaction. Returns why it failed or was refused.
    fn send(&self, chain: &mut Sui, transaction: &Transaction) -> Result<(), String> {
        let signature: UserSignature = self.0.sign_transaction(transaction).unwrap();
        let executed = send(chain, transaction, &signature.to_bytes()).map_err(|trailers| trailers.replace("%20", " "))?;
        let status = executed.effects().status();
        if status.success() { Ok(()) } else { Err(status.error().description().to_owned()) }
    }
}

fn split(coin: Argument) -> Command {
    Command::SplitCoins(SplitCoins { coin, amounts: vec![Argument::Input(0)] })
}

const MAINNET: &str = "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S";
const TESTNET: &str = "69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD";

/// Sets an empty payment, so that the address balance pays.
fn from_balance(transaction: &mut Transaction, first: u64, last: u64, chain: &str) {
    transaction.gas_payment.objects.clear();
    let (min_epoch, max_epoch, chain) = (Some(first), Some(last), Digest::from_base58(chain).unwrap());
    transaction.expiration =
        TransactionExpiration::ValidDuring { min_epoch, max_epoch, min_timestamp: None, max_timestamp: None, chain, nonce: 1 };
}

/// Sets a payment that reserves part of an account's balance for an epoch.
fn reserve(transaction: &mut Transaction, owner: Address, now: u64, epoch: u64) {
    from_balance(transaction, now, now, MAINNET);
    let genesis = Digest::from_base58(MAINNET).unwrap();
    transaction.gas_payment.objects = vec![countersign::sui::balance::reservation(owner, 600_000, epoch, genesis).unwrap()];
}

fn give(coin: Argument) -> Command {
    Command::TransferObjects(TransferObjects { objects: vec![coin], address: Argument::Input(1) })
}

#[test]
fn what_a_validator_refuses_is_refused() {
    let world = World::new(Network::mainnet());
    // The main network started with epoch 0. An epoch lasts a day.
    let now = (world.clock.millis() - 1_681_257_600_000) / 86_400_000;
    world.on(|chain| {
        let (user, relayer) = (Signer::new(USER), Signer::new(RELAYER));
        let (coins, others) = (user.coins(chain), relayer.coins(chain));
        let pure = |amount: u64| vec![Input::Pure(amount.to_le_bytes().to_vec()), Input::Pure(vec![5; 32])];
        let pay = vec![split(Argument::Gas), give(Argument::NestedResult(0, 0))];
        let good = user.transaction(&coins, pure(1_000_000), pay.clone());
        let with = |change: &dyn Fn(&mut Transaction)| {
            let mut other = good.clone();
            change(&mut other);
            other
        };
        let later = ObjectReference::new(*coins[0].object_id(), coins[0].version() + 1, *coins[0].digest());
        let refused = [
            (with(&|other| other.gas_payment.objects = others.clone()), "was not signed by the correct sender"),
            (with(&|other| other.gas_payment.objects = vec![later.clone()]), "is unavailable for consumption"),
            (with(&|other| other.gas_payment.objects = vec![coins[0].clone(); 2]), "cannot appear more than one"),
            (with(&|other| other.gas_payment.objects = vec![]), "address-owned inputs, or a ValidDuring expiration"),
            (with(&|other| from_balance(other, now, now + 1, MAINNET)), "Invalid usage of the gas coin"),
            (with(&|other| from_balance(other, now, now + 2, MAINNET)), "at most two epochs of validity"),
            (with(&|other| from_balance(other, now + 1, now + 2, MAINNET)), "is not valid yet"),
            (with(&|other| from_balance(other, now - 2, now - 1, MAINNET)), "Transaction Expired"),
            (with(&|other| from_balance(other, now, now, TESTNET)), "chain identifier is that of another network"),
            (with(&|other| reserve(other, user.1, now, now)), "is less than requested"),
            (with(&|other| reserve(other, relayer.1, now, now)), "coin reservation object id"),
            // A reservation is valid in its epoch and the next one.
            (with(&|other| reserve(other, user.1, now, now - 1)), "is less than requested"),
            (with(&|other| reserve(other, user.1, now, now - 2)), "Transaction Expired"),
            (with(&|other| reserve(other, user.1, now, now + 1)), "Transaction Expired"),
            (with(&|other| other.gas_payment.price = 499), "under reference gas price"),
            (with(&|other| other.gas_payment.budget = 499_999), "is lower than min: 500000"),
            (with(&|other| other.gas_payment.budget = 50_000_000_001), "is higher than max"),
            (with(&|other| other.gas_payment.budget = 5_000_000_000), "is lower than the needed amount: 5000000000"),
            (with(&|other| other.gas_payment.owner = relayer.1), "Expect 2 signer signatures but got 1"),
            (with(&|other| other.sender = relayer.1), "Expect 2 signer signatures but got 1"),
            (with(&|other| other.expiration = TransactionExpiration::Epoch(1)), "Transaction Expired"),
            (
                user.transaction(&coins, pure(1_000_000), vec![Command::Publish(Publish { modules: vec![], dependencies: vec![] })]),
                "the model does not execute other commands",
            ),
            (user.transaction(&coins, pure(1), vec![give(Argument::Gas)]), "the model does not execute commands with Gas"),
            (
                user.transaction(&coins, pure(1), vec![split(Argument::Gas), give(Argument::Result(0)), give(Argument::Result(0))]),
                "the model does not execute commands with NestedResult(0, 0)",
            ),
        ];
        for (transaction, words) in refused {
            let refusal = user.send(chain, &transaction).unwrap_err();
            assert!(refusal.starts_with("grpc-status:3") && refusal.contains(words), "{refusal}");
        }
        assert_eq!(chain.pending(), 0, "nobody paid for that");
        user.send(chain, &good).unwrap();
        assert!(user.send(chain, &with(&|other| other.gas_payment.budget += 1)).unwrap_err().contains("is unavailable for consumption"));
        chain.mine(1);

        // These are executed and fail, and cost gas.
        let failing = [
            (pure(1 << 40), pay.clone(), 50_000_000, "InsufficientCoinBalance in command 0"),
            (pure(1), vec![split(Argument::Gas)], 50_000_000, "UnusedValueWithoutDrop"),
            (pure(1), pay, 500_000, "InsufficientGas"),
        ];
        for (inputs, commands, budget, words) in failing {
            let before = chain.balance(&user.1.to_string(), "sui:sui").unwrap();
            let mut transaction = user.transaction(&user.coins(chain), inputs, commands);
            transaction.gas_payment.budget = budget;
            let failure = user.send(chain, &transaction).unwrap_err();
            assert!(failure.contains(words), "{failure}");
            chain.mine(1);
            let paid = before - chain.balance(&user.1.to_string(), "sui:sui").unwrap();
            assert!((500_000..=u128::from(budget)).contains(&paid), "{words}: {paid}");
        }
        assert_eq!(chain.balance(&format!("0x{}", "05".repeat(32)), "sui:sui"), Ok(1_000_000));
        assert_eq!(chain.events(), []);
    });
}

#[test]
fn coins_are_merged_and_split() {
    let world = World::new(Network::mainnet());
    world.on(|chain| {
        let relayer = Signer::new(RELAYER);
        let first = relayer.coins(chain).remove(0);
        for amount in [30, 12] {
            chain.fund(&relayer.1.to_string(), "sui:sui", amount).unwrap();
        }
        let mut coins = relayer.coins(chain);
        let held = |chain: &Sui| chain.balance(&format!("0x{}", "05".repeat(32)), "sui:sui").unwrap();
        let gas = coins.remove(coins.iter().position(|coin| *coin == first).unwrap());
        let mut inputs = vec![Input::Pure(40_u64.to_le_bytes().to_vec()), Input::Pure(vec![5; 32])];
        inputs.extend(coins.into_iter().map(Input::ImmutableOrOwned));
        let merge = MergeCoins { coin: Argument::Input(2), coins_to_merge: vec![Argument::Input(3)] };
        let commands = vec![Command::MergeCoins(merge), split(Argument::Input(2)), give(Argument::Result(1))];
        relayer.send(chain, &relayer.transaction(&[gas], inputs, commands)).unwrap();
        chain.mine(1);
        assert_eq!(held(chain), 40);
    });
}

#[test]
fn the_redeemer_refunds_at_once() {
    let world = World::new(Network::mainnet());
    let terms = world.terms(false);
    world.on(|chain| {
        chain.lock(&terms).unwrap();
        let (registry, version) = chain.registry();
        let id = hex::decode(chain.leg(&terms).unwrap().swap_id).unwrap();
        let inputs = vec![Input::Shared(SharedInput::new(registry, version, true)), Input::Pure(id.to_bcs().unwrap())];
        let call = Command::MoveCall(MoveCall {
            package: chain.package(),
            module: "AtomicSwap".parse().unwrap(),
            function: "instant_refund".parse().unwrap(),
            type_arguments: vec![StructTag::sui().into()],
            arguments: vec![Argument::Input(0), Argument::Input(1)],
        });
        let mut refund = |signer: Signer| {
            let coins = signer.coins(chain);
            let transaction = signer.transaction(&coins, inputs.clone(), vec![call.clone()]);
            let outcome = signer.send(chain, &transaction);
            chain.mine(1);
            outcome
        };
        assert!(refund(Signer::new(RELAYER)).unwrap_err().contains("abort code: 16"));
        assert_eq!(refund(Signer::new(USER)), Ok(()));
        let changes: Vec<_> = chain.events().into_iter().map(|event| event.change).collect();
        assert_eq!(changes, [Change::Initiated { amount: terms.amount }, Change::Refunded]);
    });
}

#[test]
fn deep_types_do_no_harm() {
    let world = World::new(Network::mainnet());
    world.on(|chain| {
        let user = chain.address_of(&accounts::key(SOLVER));
        let asked = proto::GetBalanceRequest::default().with_owner(user).with_coin_type("vector<".repeat(1_000));
        let refusal = call::<proto::GetBalanceResponse>(chain, "StateService/GetBalance", &asked).unwrap_err();
        assert!(refusal.starts_with("grpc-status:3"), "{refusal}");
        // A call whose type argument is a vector of vectors, nested as deep as BCS allows.
        let kind = [&[0, 0, 1, 0][..], &[0; 32], &[1, b'a', 1, b'b', 1], &[6; 490], &[1, 0]].concat();
        let data = [&[0][..], &kind, &[0; 32], &[0], &[0; 48], &[0]].concat();
        let transaction = proto::Transaction::default().with_bcs(proto::Bcs::default().with_value(data));
        let asked = proto::SimulateTransactionRequest::default().with_transaction(transaction);
        let method = "TransactionExecutionService/SimulateTransaction";
        let refusal = call::<proto::SimulateTransactionResponse>(chain, method, &asked).unwrap_err();
        assert!(refusal.starts_with("grpc-status:3"), "{refusal}");
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let world = World::new(Network::mainnet());
    let terms = world.terms(true);
    world.on(|chain| {
        assert!(chain.initiate(&terms, "").is_err());
        assert!(chain.leg(&Terms { delegate: Some("00".to_owned()), ..terms.clone() }).is_err());
        assert!(chain.leg(&Terms { asset: "sui:usdc".to_owned(), ..terms.clone() }).is_err());
        assert!(chain.leg(&Terms { owner: "0x1".to_owned(), ..terms.clone() }).is_err());
        assert!(chain.leg(&Terms { amount: u128::MAX, ..terms.clone() }).is_err());
        assert!(chain.fund("0x", "sui:sui", 1).is_err() && chain.balance("0x", "sui:sui").is_err());
        let abort =
            |outcome: Result<String, String>| outcome.unwrap_err().split("code: ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        let solver = chain.address_of(&accounts::key(SOLVER));
        assert_eq!(abort(chain.lock(&Terms { timelock: 0, ..terms.clone() })), "9");
        assert_eq!(abort(chain.lock(&Terms { timelock: 604_800_001, ..terms.clone() })), "9");
        assert_eq!(abort(chain.lock(&Terms { amount: 0, ..terms.clone() })), "10");
        assert_eq!(abort(chain.lock(&Terms { owner: solver, ..terms.clone() })), "11");
        assert_eq!(abort(chain.lock(&Terms { owner: format!("0x{}", "0".repeat(64)), ..terms.clone() })), "3");
        assert_eq!(abort(chain.redeem(&terms, &SECRET)), "5");
        chain.lock(&terms).unwrap();
        assert_eq!(abort(chain.redeem(&terms, &[1; 32])), "8");
        chain.redeem(&terms, &SECRET).unwrap();
        assert_eq!((abort(chain.redeem(&terms, &SECRET)), abort(chain.refund(&terms))), ("14".to_owned(), "14".to_owned()));
        let relayer = chain.address_of(&accounts::key(RELAYER));
        assert!(chain.lock(&Terms { amount: 1 << 60, ..terms.clone() }).unwrap_err().contains("InsufficientCoinBalance"), "{relayer}");
    });
}
