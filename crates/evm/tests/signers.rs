//! Signers of the alloy ecosystem sign prepared orders: local keys, and devices that refuse bare hashes.
use std::error::Error;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use alloy_network::{EthereumWallet, FullSignerSync, TxSigner, TxSignerSync};
use alloy_signer::{Signer, SignerSync};
use alloy_signer_local::PrivateKeySigner;
use async_trait::async_trait;
use countersign_core::{Code, RequestId};
use countersign_evm::alloy_consensus::SignableTransaction;
use countersign_evm::alloy_dyn_abi::TypedData;
use countersign_evm::alloy_primitives::{Address, B256, ChainId, Signature};
use countersign_evm::{Evm, FundingPath, Gasless, Payload, SignerError, TxContext, UnsignedOrder};
use countersign_testkit::lines::difference;
use countersign_testkit::{Case, TestResult, artefacts, fixture, fixtures, verified, wallet};

const CASE: &str = "evm-token-approval-exact";

fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Evm>(case).prepare(wallet::<Evm>(case)).unwrap()
}

fn local(case: &Case) -> PrivateKeySigner {
    case.secret_key().unwrap().parse().unwrap()
}

/// Drives a future that never waits for anybody, or is polled again until it is ready.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
    panic!("never ready");
}

/// For every case, both interfaces of the local signer give the signatures of ethers and viem.
#[test]
fn a_local_signer_signs_every_fixture() -> TestResult {
    let mut seen = 0;
    for case in fixtures::<Evm>()? {
        if case.secret_key().is_none() {
            continue;
        }
        let signer = local(&case);
        let (mut sync, mut waited) = (prepared(&case), prepared(&case));
        sync.sign_with(&signer)?;
        ready(waited.sign_with_async(&signer))?;
        for unsigned in [sync, waited] {
            assert_eq!(unsigned.missing(), []);
            assert_eq!(difference(&case.expect()["artefacts"], &artefacts(&unsigned), ""), None, "{}", case.id);
            assert!(unsigned.finish().is_ok());
        }
        seen += 1;
    }
    assert!(seen > 80, "only {seen} signed cases");
    Ok(())
}

/// A signer may be behind a pointer, and its type may be known only at run time.
#[test]
fn signers_may_be_trait_objects() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let boxed: Box<dyn FullSignerSync<Signature>> = Box::new(local(&case));
    let mut unsigned = prepared(&case);
    unsigned.sign_with(&Dynamic(boxed))?;
    assert_eq!(unsigned.missing(), []);
    Ok(())
}

/// alloy implements neither trait for a boxed `dyn FullSignerSync`, so a wallet with several kinds of signers needs a wrapper.
struct Dynamic(Box<dyn FullSignerSync<Signature>>);

impl TxSignerSync<Signature> for Dynamic {
    fn address(&self) -> Address {
        self.0.address()
    }

    fn sign_transaction_sync(&self, tx: &mut dyn SignableTransaction<Signature>) -> alloy_signer::Result<Signature> {
        self.0.sign_transaction_sync(tx)
    }
}

impl SignerSync for Dynamic {
    fn sign_hash_sync(&self, hash: &B256) -> alloy_signer::Result<Signature> {
        self.0.sign_hash_sync(hash)
    }

    fn sign_dynamic_typed_data_sync(&self, payload: &TypedData) -> alloy_signer::Result<Signature> {
        self.0.sign_dynamic_typed_data_sync(payload)
    }

    fn chain_id_sync(&self) -> Option<ChainId> {
        self.0.chain_id_sync()
    }
}

/// How a hardware signer responds to a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Owner {
    Agrees,
    Rejects,
    SignsSomethingElse,
}

/// A hardware signer: it shows its owner transactions and typed data, and signs no bare hash.
struct Hardware {
    key: PrivateKeySigner,
    owner: fn(usize) -> Owner,
    asked: Mutex<Vec<&'static str>>,
}

impl Hardware {
    fn new(key: PrivateKeySigner, owner: fn(usize) -> Owner) -> Self {
        Self { key, owner, asked: Mutex::new(Vec::new()) }
    }

    fn asked(&self) -> Vec<&'static str> {
        self.asked.lock().unwrap().clone()
    }

    fn ask(&self, what: &'static str, digest: B256) -> alloy_signer::Result<Signature> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(what);
        match (self.owner)(asked.len()) {
            Owner::Agrees => self.key.sign_hash_sync(&digest),
            Owner::Rejects => Err(alloy_signer::Error::other("the owner rejected it")),
            Owner::SignsSomethingElse => self.key.sign_hash_sync(&B256::repeat_byte(0x5a)),
        }
    }
}

impl TxSignerSync<Signature> for Hardware {
    fn address(&self) -> Address {
        Signer::address(&self.key)
    }

    fn sign_transaction_sync(&self, tx: &mut dyn SignableTransaction<Signature>) -> alloy_signer::Result<Signature> {
        self.ask("transaction", tx.signature_hash())
    }
}

impl SignerSync for Hardware {
    fn sign_hash_sync(&self, _: &B256) -> alloy_signer::Result<Signature> {
        panic!("a bare hash was sent to a hardware signer")
    }

    fn sign_dynamic_typed_data_sync(&self, payload: &TypedData) -> alloy_signer::Result<Signature> {
        self.ask("typed data", payload.eip712_signing_hash().map_err(alloy_signer::Error::other)?)
    }

    fn chain_id_sync(&self) -> Option<ChainId> {
        None
    }
}

#[async_trait]
impl TxSigner<Signature> for Hardware {
    fn address(&self) -> Address {
        Signer::address(&self.key)
    }

    async fn sign_transaction(&self, tx: &mut dyn SignableTransaction<Signature>) -> alloy_signer::Result<Signature> {
        // A response takes time.
        let mut is_first = true;
        std::future::poll_fn(move |context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut is_first, false) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        self.ask("transaction", tx.signature_hash())
    }
}

#[async_trait]
impl Signer for Hardware {
    async fn sign_hash(&self, _: &B256) -> alloy_signer::Result<Signature> {
        Err(alloy_signer::Error::UnsupportedOperation(alloy_signer::UnsupportedSignerOperation::SignHash))
    }

    async fn sign_dynamic_typed_data(&self, payload: &TypedData) -> alloy_signer::Result<Signature> {
        self.ask("typed data", payload.eip712_signing_hash().map_err(alloy_signer::Error::other)?)
    }

    fn address(&self) -> Address {
        Signer::address(&self.key)
    }

    fn chain_id(&self) -> Option<ChainId> {
        None
    }

    fn set_chain_id(&mut self, _: Option<ChainId>) {}
}

#[test]
fn hardware_is_shown_what_it_signs() -> TestResult {
    for id in [CASE, "evm-legacy", "evm-native-typed-data", "evm-on-behalf-data"] {
        let case = fixture::<Evm>(id);
        let asked_for: Vec<_> = prepared(&case)
            .requests()
            .iter()
            .map(|request| if request.id == RequestId::TypedData { "typed data" } else { "transaction" })
            .collect();
        for is_async in [false, true] {
            let hardware = Hardware::new(local(&case), |_| Owner::Agrees);
            let mut unsigned = prepared(&case);
            if is_async {
                ready(unsigned.sign_with_async(&hardware))?;
            } else {
                unsigned.sign_with(&hardware)?;
            }
            assert_eq!(hardware.asked(), asked_for, "{id}");
            assert_eq!(difference(&case.expect()["artefacts"], &artefacts(&unsigned), ""), None, "{id}");
        }
    }
    Ok(())
}

/// The owner must confirm each request on a small screen, so requests that are already signed are not repeated.
#[test]
fn hardware_is_asked_only_for_what_is_missing() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let mut unsigned = verified::<Evm>(&case).prepare(Gasless)?;
    let hardware = Hardware::new(local(&case), |_| Owner::Agrees);
    unsigned.sign_with(&hardware)?;
    unsigned.sign_with(&hardware)?;
    assert_eq!(hardware.asked(), ["typed data"]);

    let mut unsigned = prepared(&case);
    let approval = case.expect()["artefacts"]["approval"].clone();
    let rejects = Hardware::new(local(&case), |question| if question == 2 { Owner::Rejects } else { Owner::Agrees });
    let error = unsigned.sign_with(&rejects).unwrap_err();
    assert!(matches!(error, SignerError::Signer(_)), "{error:?}");
    // The first signature is kept, and the next attempt continues after it.
    assert_eq!(unsigned.missing(), [RequestId::Initiate, RequestId::TypedData]);
    assert_eq!(difference(&approval, &artefacts(&unsigned)["approval"], ""), None);
    ready(unsigned.sign_with_async(&hardware))?;
    assert_eq!(hardware.asked(), ["typed data", "transaction", "typed data"]);
    assert!(unsigned.finish().is_ok());
    Ok(())
}

/// A signature that proves nothing is refused, whoever made it.
#[test]
fn a_signer_that_signs_something_else_is_refused() {
    let case = fixture::<Evm>(CASE);
    for is_async in [false, true] {
        let broken = Hardware::new(local(&case), |question| if question == 2 { Owner::SignsSomethingElse } else { Owner::Agrees });
        let mut unsigned = prepared(&case);
        let error = if is_async { ready(unsigned.sign_with_async(&broken)) } else { unsigned.sign_with(&broken) }.unwrap_err();
        let SignerError::Refused(refusal) = &error else { panic!("{error:?}") };
        assert_eq!(refusal.code(), Code::SignatureMismatch);
        assert_eq!(unsigned.missing(), [RequestId::Initiate, RequestId::TypedData]);
        // The message shows the cause, and a chain of sources does not repeat it.
        assert!(error.to_string().contains("signature_mismatch") && error.source().is_none(), "{error}");
    }
}

/// A wrong device is refused before it asks its owner for anything.
#[test]
fn a_signer_of_another_account_is_not_asked() {
    let case = fixture::<Evm>(CASE);
    let stranger = local(&fixture::<Evm>("evm-token-approval-unlimited"));
    let (mine, theirs) = (Signer::address(&local(&case)).to_string(), Signer::address(&stranger).to_string());
    let hardware = Hardware::new(stranger, |_| panic!("asked"));
    let mut unsigned = prepared(&case);
    for error in [unsigned.sign_with(&hardware).unwrap_err(), ready(prepared(&case).sign_with_async(&hardware)).unwrap_err()] {
        let SignerError::Refused(refusal) = error else { panic!("{error:?}") };
        assert_eq!(refusal.code(), Code::KeyMismatch);
        assert!(refusal.to_string().contains(&mine) && refusal.to_string().contains(&theirs), "{refusal}");
    }
    assert_eq!(unsigned.missing().len(), 3);
}

/// A signer that is set to another chain does not sign for this one, because of alloy's own check.
#[test]
fn a_signer_set_to_another_chain_fails() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let elsewhere = local(&case).with_chain_id(Some(1));
    let mut unsigned = prepared(&case);
    assert!(matches!(unsigned.sign_with(&elsewhere), Err(SignerError::Signer(_))));
    assert_eq!(unsigned.missing().len(), 3);
    unsigned.sign_with(&local(&case).with_chain_id(Some(8453)))?;
    assert!(unsigned.finish().is_ok());
    Ok(())
}

/// A server can spawn the whole flow, whose future crosses threads.
#[test]
fn signing_crosses_threads() {
    fn crosses<T: Send>(value: T) -> T {
        value
    }
    let case = fixture::<Evm>(CASE);
    let signer = local(&case);
    let order = verified::<Evm>(&case);
    let flow = crosses(async move {
        let mut unsigned = order.prepare(FundingPath::Both(TxContext::eip1559(1, 2, 1)))?;
        unsigned.sign_with_async(&signer).await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(unsigned.finish().map_err(|incomplete| incomplete.to_string())?.transactions().len())
    });
    assert_eq!(ready(flow).unwrap(), 2);
    const fn is_error<T: Error + Send + Sync + 'static>() {}
    is_error::<SignerError>();
}

/// For every case, the wallet of an alloy provider gives the signatures of ethers and viem, except that of the message.
#[test]
fn the_wallet_of_a_provider_signs_every_transaction() -> TestResult {
    let (mut transactions, mut messages) = (0, 0);
    for case in fixtures::<Evm>()? {
        if case.secret_key().is_none() {
            continue;
        }
        // The sender's key is one of two, and not the default one.
        let mut wallet = EthereumWallet::new(PrivateKeySigner::from_bytes(&B256::repeat_byte(7))?);
        wallet.register_signer(local(&case));
        let mut unsigned = prepared(&case);
        let has_transactions = unsigned.requests().iter().any(|request| matches!(request.payload, Payload::Transaction(_)));
        let result = ready(unsigned.sign_with_async(&wallet));
        if has_transactions {
            result?;
            transactions += 1;
        } else {
            assert!(result.is_err(), "{}", case.id);
        }
        // An alloy signer adds the message.
        if !unsigned.missing().is_empty() {
            assert_eq!(unsigned.missing(), [RequestId::TypedData], "{}", case.id);
            unsigned.sign_with(&local(&case))?;
            messages += 1;
        }
        assert_eq!(difference(&case.expect()["artefacts"], &artefacts(&unsigned), ""), None, "{}", case.id);
        assert!(unsigned.finish().is_ok());
    }
    assert!(transactions > 60 && messages > 10, "{transactions}, {messages}");
    Ok(())
}

#[test]
fn the_wallet_of_a_provider_that_cannot_sign_says_so() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let wallet = EthereumWallet::new(local(&case));
    let mut gasless = verified::<Evm>(&case).prepare(Gasless)?;
    let Err(SignerError::Refused(refusal)) = ready(gasless.sign_with_async(&wallet)) else { panic!("signed") };
    assert_eq!(refusal.code(), Code::NothingToSign);
    assert!(refusal.to_string().contains("transactions only"), "{refusal}");
    // Once another signer has signed the message, nothing is left, and the wallet has nothing against it.
    gasless.sign_with(&local(&case))?;
    ready(gasless.sign_with_async(&wallet))?;

    let stranger = local(&fixture::<Evm>("evm-token-approval-unlimited"));
    let theirs = Signer::address(&stranger).to_string();
    let hardware = Hardware::new(stranger, |_| panic!("asked"));
    let mut unsigned = prepared(&case);
    let Err(SignerError::Refused(refusal)) = ready(unsigned.sign_with_async(&EthereumWallet::new(hardware))) else { panic!("signed") };
    assert_eq!(refusal.code(), Code::KeyMismatch);
    let mine = Signer::address(&local(&case)).to_string();
    assert!(refusal.to_string().contains(&mine) && refusal.to_string().contains(&theirs), "{refusal}");
    assert_eq!(unsigned.missing().len(), 3);
    Ok(())
}

/// A signature that proves nothing is refused from a provider's wallet too, and the future crosses threads.
#[test]
fn a_provider_whose_signer_signs_something_else_is_refused() {
    fn crosses<T: Send>(value: T) -> T {
        value
    }
    let case = fixture::<Evm>(CASE);
    let broken = Hardware::new(local(&case), |question| if question == 2 { Owner::SignsSomethingElse } else { Owner::Agrees });
    let (wallet, mut unsigned) = (EthereumWallet::new(broken), prepared(&case));
    let Err(SignerError::Refused(refusal)) = ready(crosses(unsigned.sign_with_async(&wallet))) else { panic!("signed") };
    assert_eq!(refusal.code(), Code::SignatureMismatch);
    assert_eq!(unsigned.missing(), [RequestId::Initiate, RequestId::TypedData]);
}
