//! What is asked of an owner, and what the replies of signers mean.

use std::path::Path;
use std::task::{Context, Poll, Waker};

use countersign_client::CreatedOrder;
use countersign_json::objects::Documents;
use countersign_node::NodeConfig;
use countersign_testkit::lines::accepted_case;

use super::*;
use crate::disk::HostDisk;
use crate::need::{NOTHING_SENT, Need};

mod own;
mod pins;
mod raise;

/// Pays on Base, and is paid on Arbitrum.
const CASE: &str = "evm-record-evm-v2";
const NOW: UnixTime = UnixTime::from_secs(1_700_000_000);

fn document(at: &str) -> Vec<u8> {
    document_of(CASE, at)
}

fn document_of(case: &str, at: &str) -> Vec<u8> {
    accepted_case(case).tree().at(at).unwrap().text().into_bytes()
}

fn registry() -> Registry {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/registry.json");
    Registry::from_json(&std::fs::read(path).unwrap()).unwrap()
}

fn owner(accounts: &str, more: &str) -> HostOwner {
    owner_under(registry(), accounts, more)
}

/// The owner of a wallet with these pins.
fn owner_under(registry: Registry, accounts: &str, more: &str) -> HostOwner {
    let registry = Arc::new(registry);
    let host = Host::default();
    host.set_now(1_700_000_000_000);
    let nodes = NodeConfig::from_json(br#"{"base": ["https://base.example"], "arbitrum": ["https://arbitrum.example"]}"#).unwrap();
    let options = format!(r#"{{"service":"https://service.example","accounts":{accounts}{more}}}"#);
    HostOwner {
        nodes: Arc::new(Nodes::new(host.clone(), nodes, &registry)),
        store: HostStore::open(host.clone(), HostDisk::new(Vec::new(), "here")).unwrap(),
        host,
        options: Arc::new(Options::from_json(options.as_bytes()).unwrap()),
        policy: Arc::default(),
        registry,
        agreed: Mutex::default(),
        not_raised: Mutex::default(),
    }
}

const BASE: &str = r#"{"base":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}"#;
const BOTH: &str = r#"{"evm":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}"#;

fn verified(owner: &HostOwner) -> Verified {
    let (request, response, record) = (document("/request"), document("/response"), document("/order"));
    let documents = Documents::new(&request, &response).with_record(Some(&record));
    objects::verify(&documents, &owner.registry, &owner.policy).unwrap()
}

fn unsigned(order: &Verified) -> Unsigned {
    objects::prepare(order, &document("/wallet")).unwrap()
}

/// Polls until the future is ready. Writes are kept, and every other need gets this reply.
fn run<T>(host: &Host, future: impl Future<Output = T>, reply: impl Fn(&Need) -> Reply) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        for need in host.take_needs().0 {
            let reply = if matches!(need.ask, Ask::Store(_)) { Reply::Stored(Ok(())) } else { reply(&need) };
            assert!(host.reply(need.id, reply).unwrap());
        }
    }
}

#[test]
fn the_question_lists_what_the_chains_show_and_whether_the_service_is_trusted() {
    for (accounts, signers, is_warned) in
        [(BASE, "", true), (BOTH, "", false), (BOTH, r#","signers":["base"]"#, true), (BOTH, r#","signers":["base","arbitrum"]"#, false)]
    {
        let owner = owner(accounts, &format!(r#","trust_the_service":true,"relayer":true{signers}"#));
        let order = verified(&owner);
        let seen = Mutex::new(Vec::new());
        let found = vec![(Code::MintAuthorities, "base:usdc: whoever controls the token can freeze it".to_owned())];
        let asked = run(&owner.host, owner.consent(&order, &unsigned(&order), found), |need| {
            let Ask::Consent(consent) = &need.ask else { panic!("{need:?}") };
            seen.lock().unwrap().extend(consent.warnings.iter().map(|notice| (notice.code.clone(), notice.severity.clone())));
            Reply::Consent(false)
        });
        assert!(asked.is_err_and(|error| matches!(error, OwnerError::Failed { code: DECLINED, .. })));
        let seen = seen.into_inner().unwrap();
        let expected = ("trusts_the_service".to_owned(), "danger".to_owned());
        assert_eq!(seen.contains(&expected), is_warned, "{accounts} {signers}");
        assert!(seen.contains(&("mint_authorities".to_owned(), "caution".to_owned())), "what a chain shows is part of the question");
    }
}

/// Returns what a payment comes to whose signer fails with this code.
fn failed(more: &str, code: Option<i64>) -> (Result<FundingReply, OwnerError>, usize) {
    let owner = owner(BOTH, more);
    let order = verified(&owner);
    let signing = signing(order.order_id(), Purpose::Funding, "base".to_owned(), String::new());
    let reply = |_: &Need| Reply::SignerFailed { message: "the wallet failed".to_owned(), code };
    let end = run(&owner.host, owner.sign(&order, signing, unsigned(&order)), reply);
    let alerts = owner.host.take_events();
    assert!(alerts.iter().all(|event| matches!(event, Event::Alert { alert: "maybe_paid", .. })));
    (end, alerts.len())
}

#[test]
fn a_signer_that_fails_may_have_sent_the_payment_unless_its_code_says_otherwise() {
    for code in NOTHING_SENT {
        let (end, alerts) = failed("", Some(code));
        assert!(matches!(end, Err(OwnerError::Failed { code: NOT_SIGNED, .. })) && alerts == 0, "{code}");
    }
    for code in [None, Some(-32603), Some(-32000), Some(4002), Some(0)] {
        // Counted as paid, so that nobody is asked to pay again.
        assert_eq!(failed("", code), (Ok(FundingReply::Elsewhere), 1), "{code:?}");
        let (end, alerts) = failed(r#","sign_only":true"#, code);
        assert!(matches!(end, Err(OwnerError::Failed { code: NOT_SIGNED, .. })) && alerts == 0, "{code:?}");
    }
}

fn order() -> OrderState {
    let request = countersign::CreateOrder::from_json(&document("/request")).unwrap();
    OrderState::new(CreatedOrder::new(request, String::from_utf8(document("/response")).unwrap()).unwrap(), None)
}

#[test]
fn what_a_wallet_has_sent_is_waited_for_before_anybody_else_redeems() {
    let sent = |purpose| {
        let mut kept = order();
        let events = [Noted::sending(delivery(purpose)), Noted::Sent { what: delivery(purpose) }];
        kept.journal.extend(events.map(|event| Entry { at: NOW, event }));
        kept
    };
    let later = |seconds| NOW.saturating_add(Duration::from_secs(seconds));
    for purpose in [Purpose::Redemption, Purpose::Refund] {
        assert_eq!(self_sent(&order(), purpose, NOW, true), SelfSent::Ask);
        for seconds in [0, 119] {
            assert_eq!(self_sent(&sent(purpose), purpose, later(seconds), true), SelfSent::Wait);
        }
        assert_eq!(self_sent(&sent(purpose), purpose, later(120), false), SelfSent::Ask);
        // A clock that was set back.
        assert_eq!(self_sent(&sent(purpose), purpose, UnixTime::from_secs(1), false), SelfSent::Ask);
    }
    assert_eq!(self_sent(&sent(Purpose::Redemption), Purpose::Redemption, later(120), true), SelfSent::Relayer);
    assert_eq!(self_sent(&sent(Purpose::Refund), Purpose::Refund, later(120), true), SelfSent::Ask);
    // One that the relayer has the secret of, and one that was signed here.
    let mut known = sent(Purpose::Redemption);
    known.journal.push(Entry { at: NOW, event: Noted::SecretLeaving { path: SecretRoute::Relayer } });
    assert_eq!(self_sent(&known, Purpose::Redemption, later(120), true), SelfSent::Ask);
    let mut signed = sent(Purpose::Redemption);
    signed.journal.push(Entry { at: NOW, event: Noted::Signed { purpose: Purpose::Redemption, transactions: Vec::new(), gasless: None } });
    assert_eq!(self_sent(&signed, Purpose::Redemption, NOW, true), SelfSent::Ask);
}

#[test]
fn a_redemption_that_a_wallet_has_sent_is_written_down() {
    for (purpose, what, is_out) in [(Purpose::Redemption, Delivery::Redemption, true), (Purpose::Refund, Delivery::Refund, false)] {
        let owner = owner(BOTH, "");
        let order = order();
        let id = order.swap.id().clone();
        let done = async {
            owner.store.create(&order).await.unwrap();
            note_sent(&owner.host, &owner.store, &id, purpose).await.unwrap();
            owner.store.load(&id).await.unwrap()
        };
        let kept = run(&owner.host, done, |need| panic!("{need:?}"));
        assert!(kept.was_sent(what) && kept.signed(purpose).is_none());
        assert_eq!(kept.secret_was_sent(), is_out);
        assert_eq!(kept.secret_left(), is_out.then_some(SecretRoute::Own));
    }
}

/// What must hold before paying is asked of the chains before any wallet, and no answer is no yes.
#[test]
fn no_wallet_is_asked_before_the_chains_have_answered() {
    for status in [429, 500, 200] {
        let owner = owner(BOTH, "");
        let order = verified(&owner);
        let mut future = pin!(owner.fund(&order));
        let (mut end, mut asked) = (None, 0);
        for seconds in 0..600_u64 {
            owner.host.set_now((1_700_000_000 + seconds) * 1_000);
            if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                end = Some(done);
                break;
            }
            for need in owner.host.take_needs().0 {
                assert!(matches!(need.ask, Ask::Http(_)), "{:?}", need.ask);
                asked += 1;
                let reply = Reply::Response { status, headers: Vec::new(), body: b"{}".to_vec() };
                assert!(owner.host.reply(need.id, reply).unwrap());
            }
        }
        assert!(asked > 0 && end.is_some_and(|end| end.is_err()), "{status}");
    }
}
