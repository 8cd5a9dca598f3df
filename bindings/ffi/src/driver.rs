//! Whole swaps, without I/O: the machine of `countersign_swap`, with its needs and replies as records.

use std::sync::{Arc, Mutex, MutexGuard};

use countersign_json::objects::Failure;
use countersign_swap::{JsonSetup, Reply, UnixMillis};
use zeroize::Zeroizing;

use crate::{Result, UnsignedOrder};

/// A document that was stored before.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
pub struct StoredDocument {
    /// The name under which it was stored.
    pub name: String,
    /// The whole content, which can be a secret.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for StoredDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredDocument({}, {} bytes)", self.name, self.bytes.len())
    }
}

/// Something that only the app can do. [`Swaps::reply`] or [`Swaps::reply_signed`] takes the reply to it.
// Kotlin and Swift would print every member. They print what `Debug` does.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
#[uniffi::export(Debug)]
pub struct Need {
    /// The number under which it is replied to.
    pub id: u64,
    /// The number of the call that needs it, as the call returned it: two calls can work on the same order.
    pub call: u64,
    /// What is needed, as JSON. Its member `kind` is `http`, `store`, `consent` or `sign`.
    pub detail: String,
    /// `http`: one entry, the body of the request, or none if it has no body. `store`: one entry for each name, or none to delete the document.
    pub bodies: Vec<Option<Vec<u8>>>,
}

impl std::fmt::Debug for Need {
    /// Leaves out what can contain a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Need").field("id", &self.id).finish_non_exhaustive()
    }
}

impl From<&countersign_swap::Need> for Need {
    fn from(need: &countersign_swap::Need) -> Self {
        let bodies = need.bodies().into_iter().map(|body| body.map(<[u8]>::to_vec)).collect();
        Self { id: need.id, call: need.call, detail: need.detail().to_string(), bodies }
    }
}

/// What the app has to do next.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Output {
    /// What is needed now, each once. The app replies in any order.
    pub needs: Vec<Need>,
    /// The numbers of needs that are not needed any more. A reply to one of them is ignored, except that a wallet has
    /// sent the transaction: hand that one over whenever it comes.
    pub withdrawn: Vec<u64>,
    /// What happened, as a JSON array of objects with the member `event`.
    pub events: String,
    /// When to poll again even if no reply arrives, in Unix milliseconds; none if there is nothing to wait for.
    pub wake_at: Option<u64>,
}

/// Runs whole swaps without I/O: it says what it needs, takes the replies, and reports what happens.
///
/// The options, the wishes, the needs with their replies and the events are those of the crate `countersign-swap`. Every method can be called
/// from any thread. After a panic, which would be a bug, every method fails with the code `used_up`: open the machine again with what is
/// stored.
#[derive(Debug, uniffi::Object)]
pub struct Swaps(Mutex<countersign_swap::Swaps>);

impl Swaps {
    /// A machine that a panic has interrupted may be half changed, and what is stored is whole.
    fn lock(&self) -> Result<MutexGuard<'_, countersign_swap::Swaps>> {
        Ok(self.0.lock().map_err(|_| Failure::used_up())?)
    }
}

#[uniffi::export]
impl Swaps {
    /// Opens the machine with every document that was stored before; none for a new store. Nothing is needed before the first call.
    ///
    /// Options, registry, policy and nodes are JSON. An empty policy is the default policy, and empty nodes are none. `place` identifies where
    /// the documents are stored, such as a folder with its file key. `now` is in Unix milliseconds.
    #[uniffi::constructor]
    pub fn open(
        options: Vec<u8>,
        registry: Vec<u8>,
        policy: Vec<u8>,
        nodes: Vec<u8>,
        documents: Vec<StoredDocument>,
        place: String,
        now: u64,
    ) -> Result<Self> {
        // The options can contain the application's id, and nodes the keys of endpoints.
        let (options, nodes) = (Zeroizing::new(options), Zeroizing::new(nodes));
        let mut setup = JsonSetup::new(&options, &registry, UnixMillis::from_millis(now));
        (setup.policy, setup.nodes, setup.place) = (&policy, &nodes, &place);
        setup.documents = documents.into_iter().map(|document| (document.name, Zeroizing::new(document.bytes))).collect();
        Ok(Self(Mutex::new(countersign_swap::Swaps::open(setup.parse()?)?)))
    }

    /// Asks for the best quote. The wish is JSON with `from`, `to`, `amount`, and if wanted `at_least`, `slippage` and `solver`. Returns the
    /// number of the call, which is in the event `quoted` or `failed`.
    pub fn quote(&self, wish: Vec<u8>) -> Result<u64> {
        Ok(self.lock()?.quote_json(&wish)?)
    }

    /// Creates an order, verifies it, asks for consent and signatures, pays it, and follows it to its end. The wish also has `receive_at`, and
    /// if wanted `from_owner` and `affiliate_fees`. Returns the number of the call, which is in the event `created` and in `stopped` or
    /// `failed`.
    pub fn create(&self, wish: Vec<u8>) -> Result<u64> {
        Ok(self.lock()?.create_json(&wish)?)
    }

    /// Continues a stored order, from wherever it is. Ends with the event `stopped` or `failed`.
    pub fn follow(&self, order_id: String) -> Result<u64> {
        Ok(self.lock()?.follow(&order_id)?)
    }

    /// Refunds a stored order if its timelock has expired, whatever else could be done. Ends with the event `stopped` or `failed`.
    pub fn refund(&self, order_id: String) -> Result<u64> {
        Ok(self.lock()?.refund(&order_id)?)
    }

    /// Asks for the refund of a stored order on a Bitcoin-like chain before its timelock ends. The solver has to sign it too. Ends with the event
    /// `stopped`, or with `failed`. The reason is `refunding` once the service has the owner's signatures, and `not_refunded` while neither
    /// the service nor the endpoints show the payment.
    pub fn instant_refund(&self, order_id: String) -> Result<u64> {
        Ok(self.lock()?.instant_refund(&order_id)?)
    }

    /// Lists the stored orders. Ends with the event `listed` or `failed`.
    pub fn list(&self) -> Result<u64> {
        Ok(self.lock()?.list())
    }

    /// Returns the words of the rescue phrase; none before the first order. Whoever has them has the funds of every open order.
    pub fn phrase(&self) -> Result<Option<String>> {
        Ok(self.lock()?.phrase()?.map(|words| words.to_string()))
    }

    /// Goes on as far as possible without the app, and returns what the app has to do. `now` is the time in Unix milliseconds; a clock that
    /// runs behind can lose a swap.
    pub fn poll(&self, now: u64) -> Result<Output> {
        let output = self.lock()?.poll(UnixMillis::from_millis(now));
        let events = output.events_json();
        let (needs, wake_at) = (output.needs.iter().map(Need::from).collect(), output.wake_at.map(UnixMillis::as_millis));
        Ok(Output { needs, withdrawn: output.withdrawn, events, wake_at })
    }

    /// Takes the reply to a need: JSON, with the body of an HTTP response beside it. Returns whether it was still wanted. Poll afterwards.
    ///
    /// A reply of the wrong kind fails with the code `usage`, and the need is still open.
    pub fn reply(&self, id: u64, reply: String, body: Vec<u8>) -> Result<bool> {
        Ok(self.lock()?.reply(id, Reply::from_json(reply.as_bytes(), body)?)?)
    }

    /// Returns the order that a need of the kind `sign` wants signed; none if it was taken before, or is not wanted any more.
    pub fn take_unsigned(&self, id: u64) -> Result<Option<Arc<UnsignedOrder>>> {
        Ok(self.lock()?.take_unsigned(id).map(|unsigned| Arc::new(unsigned.into())))
    }

    /// Takes the order back, with its signatures. The object is used up. Returns whether the order was still wanted. Poll afterwards.
    // `unsigned` is a word of C, and names of arguments are in the Swift package's header.
    pub fn reply_signed(&self, id: u64, order: &UnsignedOrder) -> Result<bool> {
        let mut machine = self.lock()?;
        Ok(machine.reply(id, Reply::Signed(Box::new(order.take()?)))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[u8] = br#"{"service": "https://service.example", "accounts": {"base": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}}"#;
    const NODES: &[u8] = br#"{"base": ["https://base.example"], "bitcoin": ["https://bitcoin.example"]}"#;
    const WISH: &[u8] =
        br#"{"from": "base:usdc", "to": "bitcoin:btc", "amount": "1.5 usdc", "receive_at": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"}"#;

    fn open() -> Swaps {
        let registry = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/registry.json")).unwrap();
        Swaps::open(OPTIONS.to_vec(), registry, Vec::new(), NODES.to_vec(), Vec::new(), "a test".to_owned(), 1_764_000_000_000).unwrap()
    }

    fn error<T>(result: Result<T>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_need_takes_its_own_kind_of_reply_and_only_once() {
        let swaps = open();
        let call = swaps.create(WISH.to_vec()).unwrap();
        let Output { needs, withdrawn, events, .. } = swaps.poll(1_764_000_000_001).unwrap();
        let [need] = needs.as_slice() else { panic!("{needs:?}") };
        assert!(need.detail.contains(r#""kind":"http""#) && need.detail.contains("https://service.example/"), "{}", need.detail);
        assert_eq!(need.bodies, [None]);
        assert!(withdrawn.is_empty());
        assert_eq!(events, "[]");
        assert!(error(swaps.reply(need.id, r#"{"consent": true}"#.to_owned(), Vec::new())).starts_with("usage at /reply"));
        assert!(swaps.take_unsigned(need.id).unwrap().is_none());
        let failed = r#"{"failed": "connect", "detail": "refused"}"#;
        assert!(swaps.reply(need.id, failed.to_owned(), Vec::new()).unwrap());
        assert!(!swaps.reply(need.id, failed.to_owned(), Vec::new()).unwrap());
        // Until the client gives up, every need fails and every wait passes.
        let mut now = 1_764_000_000_002;
        let events = loop {
            let Output { needs, events, wake_at, .. } = swaps.poll(now).unwrap();
            if events != "[]" {
                break events;
            }
            for need in &needs {
                assert!(swaps.reply(need.id, failed.to_owned(), Vec::new()).unwrap());
            }
            assert!(!needs.is_empty() || wake_at.is_some(), "nothing is waited for");
            now = wake_at.unwrap_or(now).max(now);
        };
        assert!(events.contains(&format!(r#""event":"failed","call":{call}"#)) && events.contains("transport_connect"), "{events}");
    }

    #[test]
    fn a_lock_that_a_panic_has_poisoned_is_used_up() {
        let swaps = open();
        assert_eq!(error(swaps.list()), "");
        let panicked = std::thread::scope(|scope| {
            let act = || {
                let _machine = swaps.lock();
                panic!("a bug")
            };
            scope.spawn(act).join()
        });
        assert!(panicked.is_err());
        for error in [error(swaps.list()), error(swaps.poll(0)), error(swaps.take_unsigned(1))] {
            assert!(error.starts_with("used_up"), "{error}");
        }
    }
}
