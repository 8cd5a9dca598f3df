//! What the machine shares with its futures: the needs that are not answered yet, the timers and the clock.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use countersign::{Unsigned, chains::UnixTime};
use countersign_client::driver::Purpose;
use countersign_client::{MAX_BODY, Transport, TransportError, TransportErrorKind, is_safe};
use countersign_json::objects::Failure;
use countersign_transport::{Request, Response};

use crate::event::Event;
use crate::need::{Ask, Need, Reply, Signing};

/// How many withdrawn requests for signatures are remembered. A wallet is asked again every two minutes.
const MAX_LATE: usize = 64;

/// What a need waits for.
#[derive(Debug)]
enum Slot {
    /// The kind of reply that is expected, and whom to wake.
    Open(Expected, Option<Waker>),
    Answered(Reply),
}

/// The kind of reply that a need takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Http,
    Stored,
    Consent,
    /// A signature, unless the wallet has sent the transaction.
    Signature,
}

/// A redemption or a refund, by its order: what a wallet was asked to sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentLate {
    pub(crate) order_id: String,
    pub(crate) purpose: Purpose,
}

impl SentLate {
    /// Returns what a wallet that is asked for this can say too late; `None` for what is not remembered. A payment that nobody waits for any
    /// more counts as sent, and a raised one takes the coins of the first.
    fn of(ask: &Ask) -> Option<Self> {
        match ask {
            Ask::Sign(Signing { order_id, purpose: purpose @ (Purpose::Redemption | Purpose::Refund), .. }) => {
                Some(Self { order_id: order_id.clone(), purpose: *purpose })
            }
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    /// Unix milliseconds, as the host last told.
    now: u64,
    /// Milliseconds that have passed. Timers count in these, so that a clock that is set back does not stop them.
    passed: u64,
    last: u64,
    /// The call whose task runs.
    call: u64,
    slots: BTreeMap<u64, Slot>,
    timers: BTreeMap<(u64, u64), Waker>,
    needs: Vec<Need>,
    withdrawn: Vec<u64>,
    events: Vec<Event>,
    /// Orders to sign that the host has not taken yet.
    unsigned: BTreeMap<u64, Unsigned>,
    /// The withdrawn needs whose wallets may still send what they were asked to sign, by their numbers; the newest last.
    late: VecDeque<(u64, SentLate)>,
    /// What wallets have sent although nobody waited any more.
    sent_late: Vec<SentLate>,
}

impl Shared {
    const fn number(&mut self) -> u64 {
        self.last = self.last.saturating_add(1);
        self.last
    }
}

/// The side of the machine that its futures see. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host(Arc<Mutex<Shared>>);

impl Host {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the clock, and wakes the timers that are due.
    pub(crate) fn set_now(&self, now: u64) {
        let due = {
            let mut shared = self.shared();
            shared.passed = shared.passed.saturating_add(now.saturating_sub(shared.now));
            shared.now = now;
            let next = shared.passed.saturating_add(1);
            let later = shared.timers.split_off(&(next, 0));
            std::mem::replace(&mut shared.timers, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    /// Returns when the next timer is due, in Unix milliseconds.
    pub(crate) fn wake_at(&self) -> Option<u64> {
        let shared = self.shared();
        let (due, _) = shared.timers.keys().next()?;
        Some(shared.now.saturating_add(due.saturating_sub(shared.passed)))
    }

    /// Takes the needs that have come up, and the numbers of those that are not needed any more.
    pub(crate) fn take_needs(&self) -> (Vec<Need>, Vec<u64>) {
        let mut shared = self.shared();
        (std::mem::take(&mut shared.needs), std::mem::take(&mut shared.withdrawn))
    }

    pub(crate) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.shared().events)
    }

    pub(crate) fn report(&self, event: Event) {
        self.shared().events.push(event);
    }

    /// Numbers a call.
    pub(crate) fn number(&self) -> u64 {
        self.shared().number()
    }

    /// Runs a part of a call's task: what it needs meanwhile is needed for that call.
    pub(crate) fn for_call<T>(&self, call: u64, run: impl FnOnce() -> T) -> T {
        self.shared().call = call;
        run()
    }

    /// Returns the order that a need wants signed. It is handed out once.
    pub(crate) fn take_unsigned(&self, id: u64) -> Option<Unsigned> {
        self.shared().unsigned.remove(&id)
    }

    /// Takes the reply to a need. Returns whether it was still expected, or says of a withdrawn need that its wallet has sent the transaction.
    pub(crate) fn reply(&self, id: u64, reply: Reply) -> Result<bool, Failure> {
        let waker = {
            let mut shared = self.shared();
            let place = shared.late.iter().position(|(late, _)| *late == id).filter(|_| matches!(reply, Reply::Sent));
            if let Some((_, sent)) = place.and_then(|place| shared.late.remove(place)) {
                shared.sent_late.push(sent);
                return Ok(true);
            }
            let Some(slot) = shared.slots.get_mut(&id) else { return Ok(false) };
            let Slot::Open(expected, waker) = slot else { return Ok(false) };
            reply.check(*expected)?;
            let waker = waker.take();
            *slot = Slot::Answered(reply);
            waker
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(true)
    }

    /// Takes what wallets have sent although nobody waited any more.
    pub(crate) fn take_sent_late(&self) -> Vec<SentLate> {
        std::mem::take(&mut self.shared().sent_late)
    }

    /// Asks the host for something, and waits for the reply.
    pub(crate) async fn ask(&self, ask: Ask) -> Reply {
        self.need(ask, None).await
    }

    /// Asks the host to sign an order.
    pub(crate) async fn ask_to_sign(&self, ask: Ask, unsigned: Unsigned) -> Reply {
        self.need(ask, Some(unsigned)).await
    }

    fn need(&self, ask: Ask, unsigned: Option<Unsigned>) -> Asking {
        let mut shared = self.shared();
        let (id, call) = (shared.number(), shared.call);
        shared.slots.insert(id, Slot::Open(ask.expects(), None));
        shared.unsigned.extend(unsigned.map(|unsigned| (id, unsigned)));
        let late = SentLate::of(&ask);
        shared.needs.push(Need { id, call, ask });
        Asking { host: self.clone(), id, late }
    }
}

/// The future of a reply. Dropping it withdraws the need.
struct Asking {
    host: Host,
    id: u64,
    /// What is remembered of the need if it is withdrawn.
    late: Option<SentLate>,
}

impl Future for Asking {
    type Output = Reply;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reply> {
        let mut shared = self.host.shared();
        match shared.slots.remove(&self.id) {
            Some(Slot::Answered(reply)) => Poll::Ready(reply),
            Some(Slot::Open(expected, _)) => {
                shared.slots.insert(self.id, Slot::Open(expected, Some(context.waker().clone())));
                Poll::Pending
            }
            // Not reached: a future is not polled after it was ready.
            None => Poll::Pending,
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut shared = self.host.shared();
        shared.unsigned.remove(&self.id);
        if matches!(shared.slots.remove(&self.id), Some(Slot::Open(..))) {
            // One that the host has not seen yet is simply not told.
            let before = shared.needs.len();
            shared.needs.retain(|need| need.id != self.id);
            if shared.needs.len() == before {
                shared.withdrawn.push(self.id);
                shared.late.extend(self.late.take().map(|late| (self.id, late)));
                if shared.late.len() > MAX_LATE {
                    shared.late.pop_front();
                }
            }
        }
    }
}

/// The future of a timer.
struct Timer {
    host: Host,
    key: (u64, u64),
}

impl Future for Timer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.host.shared();
        if shared.passed >= self.key.0 {
            return Poll::Ready(());
        }
        shared.timers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.host.shared().timers.remove(&self.key);
    }
}

impl Transport for Host {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        if !is_safe(&request.url) {
            return Err(TransportError::new(TransportErrorKind::Insecure, ""));
        }
        match self.ask(Ask::http(request)).await {
            Reply::Response { status, headers, body } if body.len() <= MAX_BODY => {
                let response = Response::new(status, body);
                Ok(headers.iter().fold(response, |response, (name, value)| response.with_header(&name.to_ascii_lowercase(), value)))
            }
            Reply::NoResponse { kind, detail } => Err(TransportError::new(kind, &detail)),
            _ => Err(TransportError::new(TransportErrorKind::TooLarge, "")),
        }
    }

    async fn sleep(&self, duration: Duration) {
        let key = {
            let mut shared = self.shared();
            let at = shared.passed.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
            (at, shared.number())
        };
        Timer { host: self.clone(), key }.await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_millis(self.shared().now)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use std::pin::pin;

    use super::*;

    fn is_ready(future: Pin<&mut impl Future>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_timer_counts_what_passes_even_if_the_clock_is_set_back() {
        let host = Host::default();
        host.set_now(10_000_000);
        let mut timer = pin!(host.sleep(Duration::from_secs(10)));
        assert!(!is_ready(timer.as_mut()));
        assert_eq!(host.wake_at(), Some(10_010_000));
        host.set_now(10_004_000);
        // An hour back: six seconds are left.
        host.set_now(10_004_000 - 3_600_000);
        assert_eq!(host.now(), UnixTime::from_millis(10_004_000 - 3_600_000));
        assert_eq!(host.wake_at(), Some(10_010_000 - 3_600_000));
        host.set_now(10_009_999 - 3_600_000);
        assert!(!is_ready(timer.as_mut()));
        host.set_now(10_010_000 - 3_600_000);
        assert!(is_ready(timer.as_mut()));
        assert_eq!(host.wake_at(), None);
    }

    #[test]
    fn a_need_that_is_not_awaited_any_more_is_withdrawn_once_it_was_handed_out() {
        let host = Host::default();
        {
            let mut unseen = pin!(host.ask(Ask::Store(Vec::new())));
            assert!(!is_ready(unseen.as_mut()));
        }
        let (needs, withdrawn) = host.take_needs();
        assert!(needs.is_empty() && withdrawn.is_empty());
        let id = {
            let mut seen = pin!(host.ask(Ask::Store(Vec::new())));
            assert!(!is_ready(seen.as_mut()));
            host.take_needs().0.pop().unwrap().id
        };
        assert_eq!(host.take_needs().1, [id]);
        assert_eq!(host.reply(id, Reply::Stored(Ok(()))), Ok(false));
    }

    #[test]
    fn the_newest_withdrawn_requests_for_signatures_are_remembered() {
        let host = Host::default();
        let ask = |order: usize, purpose| {
            let (chain, account) = (String::new(), String::new());
            let mut asking = pin!(host.ask(Ask::Sign(Signing { order_id: order.to_string(), purpose, chain, account, replaces: None })));
            assert!(!is_ready(asking.as_mut()));
            host.take_needs().0.pop().unwrap().id
        };
        let payment = ask(0, Purpose::Funding);
        let asked: Vec<_> = (0..=MAX_LATE).map(|order| ask(order, Purpose::Redemption)).collect();
        let (first, rest) = asked.split_first().unwrap();
        for forgotten in [payment, *first] {
            assert_eq!(host.reply(forgotten, Reply::Sent), Ok(false));
        }
        assert!(rest.iter().all(|id| host.reply(*id, Reply::Sent) == Ok(true)));
        let sent: Vec<_> = host.take_sent_late().into_iter().map(|sent| sent.order_id).collect();
        assert_eq!(sent, (1..=MAX_LATE).map(|order| order.to_string()).collect::<Vec<_>>());
    }
}
