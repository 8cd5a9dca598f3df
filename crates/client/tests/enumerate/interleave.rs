//! One order, and an input that decides everything else: what happens on both chains, what is seen of it and when, which replies are lost,
//! which writes fail, when the process starts again, and how the clock runs. The model is `chanmon_consistency` of rust-lightning.
//!
//! The owner's own steps are those of the driver: observe, decide, write the intent, act, write the outcome. Each may fail. Endpoints may
//! be silent or late, and the service says what the input wants; what a quorum of endpoints shows is true. When the input ends, all
//! faults end, and the order must come to an end without a loss that could have been avoided.
//!
//! A test plays random inputs, and the fuzz target `driver` those that reach new code.

use countersign_client::countersign::{
    chains::UnixTime,
    evidence::{Hold, HtlcState},
};
use countersign_client::driver::{
    Action, Capabilities, Delivery, Entry, Event, LegObservation, OrderObservation, OrderState, Outcome, Purpose, Release, SecretRoute,
    decide,
};
use std::sync::LazyLock;

use crate::rules::{Facts, check, check_asked_refund, check_money};
use crate::subject::{Subject, capabilities, changed, redeemed, refunded, secret_bytes, sending, signed, signed_gasless, unreachable};

/// Seconds of a unit of the timelock: the destination's is over first.
const UNITS: [u64; 2] = [600, 200];
/// Units that must be left when the secret leaves.
const MARGIN: u64 = 6;
const SOURCE: usize = 0;
const DESTINATION: usize = 1;

/// The subject, and a proof that its destination is funded.
struct Fixed {
    subject: Subject,
    evidence: Release,
}

static FIXED: LazyLock<Fixed> = LazyLock::new(|| {
    let subject = Subject::new();
    Fixed { evidence: subject.evidence(), subject }
});

/// The unread bytes. Beyond the end of the input, every byte is zero, which means that nothing goes wrong.
struct Bytes<'i>(&'i [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Returns whether something goes wrong, which one byte of eight decides.
    fn fails(&mut self) -> bool {
        self.byte() >= 224
    }
}

/// The events on an HTLC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Htlc {
    Absent,
    /// Since this time.
    Locked(u64),
    Redeemed,
    Refunded,
}

/// Something that was sent and is in no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Funding,
    Redemption,
    Refund,
    SolversRedemption,
}

/// Everything outside the process.
#[derive(Debug, Clone)]
struct World {
    now: u64,
    /// How far the owner's clock is ahead.
    skew: i64,
    legs: [Htlc; 2],
    is_final: [bool; 2],
    /// Each leg as late endpoints still show it.
    before: [(Htlc, bool); 2],
    pending: Vec<Pending>,
    /// Whether anyone else knows the secret.
    is_known: bool,
    /// Whether the relayer has it, which redeems for the owner.
    has_relayer: bool,
    /// Whether a payment was ever sent.
    was_paid: bool,
}

impl World {
    fn left(&self, leg: usize) -> u64 {
        let Htlc::Locked(since) = self.legs[leg] else { return 0 };
        FIXED.subject.timelock().saturating_sub(self.now.saturating_sub(since) / UNITS[leg])
    }

    fn is_over(&self, leg: usize) -> bool {
        matches!(self.legs[leg], Htlc::Locked(since) if (self.now - since) / UNITS[leg] > FIXED.subject.timelock())
    }

    fn change(&mut self, leg: usize, to: Htlc) {
        self.before[leg] = (self.legs[leg], self.is_final[leg]);
        (self.legs[leg], self.is_final[leg]) = (to, false);
        if to == Htlc::Redeemed {
            self.is_known = true;
        }
    }

    /// Puts a pending transaction into a block, if the chain accepts it there.
    fn mine(&mut self, at: usize) {
        let transaction = self.pending.remove(at);
        match (transaction, self.legs) {
            (Pending::Funding, [Htlc::Absent, _]) => self.change(SOURCE, Htlc::Locked(self.now)),
            (Pending::Redemption, [_, Htlc::Locked(_)]) => self.change(DESTINATION, Htlc::Redeemed),
            (Pending::Refund, [Htlc::Locked(_), _]) if self.is_over(SOURCE) => self.change(SOURCE, Htlc::Refunded),
            (Pending::SolversRedemption, [Htlc::Locked(_), _]) => self.change(SOURCE, Htlc::Redeemed),
            _ => {}
        }
    }

    /// Performs an action that anyone outside may take.
    fn happen(&mut self, what: u8, how: u8) {
        match what % 12 {
            0 => self.now += u64::from(how) * 20,
            1 => self.now += u64::from(how) * 900,
            2 if self.legs[DESTINATION] == Htlc::Absent => self.change(DESTINATION, Htlc::Locked(self.now)),
            3 if !self.pending.is_empty() => self.mine(usize::from(how) % self.pending.len()),
            4 if !self.pending.is_empty() => {
                self.pending.remove(usize::from(how) % self.pending.len());
            }
            5 if self.is_known && matches!(self.legs[SOURCE], Htlc::Locked(_)) => self.pending.push(Pending::SolversRedemption),
            6 if self.is_over(DESTINATION) => self.change(DESTINATION, Htlc::Refunded),
            7 if self.has_relayer => self.pending.push(Pending::Redemption),
            8 => self.is_final[usize::from(how) % 2] = true,
            // A final block is never replaced.
            9 if !self.is_final[usize::from(how) % 2] => {
                let leg = usize::from(how) % 2;
                let (htlc, is_final) = self.before[leg];
                (self.legs[leg], self.is_final[leg]) = (htlc, is_final);
            }
            10 => self.skew = i64::from(how.cast_signed()) * 30,
            11 => self.before = [0, 1].map(|leg| (self.legs[leg], self.is_final[leg])),
            _ => {}
        }
    }

    /// Returns a leg as the endpoints show it, or as the service states it.
    fn see(&self, leg: usize, how: u8, said: u8) -> LegObservation {
        let (htlc, is_final) = if how % 16 == 12 { self.before[leg] } else { (self.legs[leg], self.is_final[leg]) };
        match how % 16 {
            13 => LegObservation::Unknown("503".to_owned()),
            14 => LegObservation::Seen {
                state: HtlcState::Unclear("pruned".to_owned()),
                is_final: false,
                head_time: UnixTime::from_secs(self.now),
            },
            15 => LegObservation::Stated(match said % 5 {
                0 => HtlcState::Absent,
                1 => self.locked(leg, self.now),
                2 => self.locked(leg, 0),
                3 => redeemed(),
                _ => refunded(),
            }),
            _ => LegObservation::Seen { state: self.state(leg, htlc), is_final, head_time: UnixTime::from_secs(self.now) },
        }
    }

    fn state(&self, leg: usize, htlc: Htlc) -> HtlcState {
        match htlc {
            Htlc::Absent => HtlcState::Absent,
            Htlc::Locked(since) => self.locked(leg, since),
            Htlc::Redeemed => HtlcState::Redeemed { secret: Some(secret_bytes()), transaction: None },
            Htlc::Refunded => refunded(),
        }
    }

    fn locked(&self, leg: usize, since: u64) -> HtlcState {
        let elapsed = self.now.saturating_sub(since) / UNITS[leg];
        FIXED.subject.locked(elapsed, elapsed)
    }

    /// Judges whether the secret may leave, by what is seen of the destination.
    fn release(&self, seen: &LegObservation) -> Result<Release, Hold> {
        let timelock = FIXED.subject.timelock();
        match seen {
            LegObservation::Seen { state: HtlcState::Locked(locked), is_final: true, .. } if locked.left() > MARGIN => {
                Ok(FIXED.evidence.clone())
            }
            LegObservation::Seen { state: HtlcState::Locked(locked), is_final: true, .. } => {
                Err(Hold::NoTime { left: locked.left().min(timelock), needed: MARGIN, unit: "blocks" })
            }
            LegObservation::Seen { state: HtlcState::Locked(_), .. } => {
                Err(Hold::NotFinal { reached: String::new(), needed: String::new() })
            }
            LegObservation::Seen { state: HtlcState::Redeemed { .. }, .. } => Err(Hold::Redeemed),
            LegObservation::Seen { state: HtlcState::Refunded { .. }, .. } => Err(Hold::Refunded),
            LegObservation::Seen { state: HtlcState::Absent, .. } => Err(Hold::NotFunded),
            _ => Err(Hold::Unclear(String::new())),
        }
    }

    /// Judges it once more, right before the secret leaves.
    fn is_release_confirmed(&self) -> bool {
        self.release(&self.see(DESTINATION, 0, 0)).is_ok()
    }
}

/// The process: what it has stored, and what it can do.
struct Process {
    kept: OrderState,
    capabilities: Capabilities,
    is_gasless: bool,
    is_connected: bool,
}

/// A write that failed, or a process that ended: nothing after it happens in this step.
struct Stopped;

impl Process {
    fn write(&mut self, world: &World, bytes: &mut Bytes<'_>, event: Event) -> Result<(), Stopped> {
        if bytes.fails() {
            return Err(Stopped);
        }
        self.kept.journal.push(Entry { at: UnixTime::from_secs(world.now.saturating_add_signed(world.skew)), event });
        Ok(())
    }

    /// Starts again with the stored data.
    fn restart(&mut self, names_own_key: bool) {
        let stored = serde_json::to_string(&self.kept.journal).unwrap();
        let has_secret = self.kept.secret.is_some();
        self.kept = FIXED.subject.kept(has_secret, names_own_key);
        self.kept.journal = serde_json::from_str(&stored).unwrap();
    }

    /// Sends something whose intent is written. It may be lost on the way, and so may the reply.
    fn send(&mut self, world: &mut World, bytes: &mut Bytes<'_>, what: Delivery) -> Result<(), Stopped> {
        self.write(world, bytes, sending(what))?;
        let arrives = !bytes.fails();
        if arrives {
            match what {
                // With a gasless payment, these are the approvals.
                Delivery::Funding if self.is_gasless => {}
                Delivery::Funding | Delivery::Gasless => {
                    world.pending.push(Pending::Funding);
                    world.was_paid = true;
                }
                Delivery::Redemption => {
                    world.pending.push(Pending::Redemption);
                    world.is_known = true;
                }
                Delivery::Secret => (world.has_relayer, world.is_known) = (true, true),
                Delivery::Refund | Delivery::RefundRequest => world.pending.push(Pending::Refund),
                other => panic!("{other:?}"),
            }
        }
        let has_reply = arrives && !bytes.fails();
        let unknown = Event::NotSent { what, error: "timeout".to_owned(), is_rejected: false };
        self.write(world, bytes, if has_reply { Event::Sent { what } } else { unknown })
    }

    /// Requires what must be true of the world when the secret leaves for the first time.
    fn check_leaving(&self, world: &World, is_urgent: bool) {
        let was_out = world.is_known || self.kept.secret_was_sent();
        let is_there = world.is_final[DESTINATION] && world.left(DESTINATION) > MARGIN;
        assert!(was_out || is_there && !is_urgent, "the secret left, and the destination does not pay: {world:?}");
    }

    fn act(&mut self, world: &mut World, bytes: &mut Bytes<'_>, action: &Action) -> Result<(), Stopped> {
        match action {
            Action::Sign => {
                let event = if self.is_gasless { signed_gasless() } else { signed(Purpose::Funding) };
                self.write(world, bytes, event)
            }
            Action::Pay(what) => self.send(world, bytes, *what),
            Action::HandOut(what) => {
                self.write(world, bytes, sending(*what))?;
                if !self.is_gasless {
                    (world.was_paid, world.pending) = (true, [world.pending.clone(), vec![Pending::Funding]].concat());
                }
                Ok(())
            }
            Action::Redeem { path, is_urgent } => {
                if !is_urgent && !world.is_release_confirmed() {
                    return Ok(());
                }
                if *path == SecretRoute::Relayer {
                    self.check_leaving(world, *is_urgent);
                    self.write(world, bytes, Event::SecretLeaving { path: SecretRoute::Relayer })?;
                    return self.send(world, bytes, Delivery::Secret);
                }
                if self.kept.signed(Purpose::Redemption).is_none() {
                    self.write(world, bytes, Event::SecretLeaving { path: SecretRoute::Own })?;
                    self.write(world, bytes, signed(Purpose::Redemption))?;
                }
                self.check_leaving(world, *is_urgent);
                self.send(world, bytes, Delivery::Redemption)
            }
            Action::Refund if !self.is_connected => self.send(world, bytes, Delivery::RefundRequest),
            Action::Refund => {
                if self.kept.signed(Purpose::Refund).is_none() {
                    self.write(world, bytes, signed(Purpose::Refund))?;
                }
                self.send(world, bytes, Delivery::Refund)
            }
            Action::End(outcome) => {
                self.check_end(world, *outcome);
                self.write(world, bytes, Event::Ended { outcome: *outcome })
            }
            other => panic!("{other:?}"),
        }
    }

    /// Requires that an order ends as it has ended on the chains.
    fn check_end(&self, world: &World, outcome: Outcome) {
        let [source, destination] = world.legs;
        let is_true = match outcome {
            Outcome::Complete => destination == Htlc::Redeemed,
            Outcome::Refunded => source == Htlc::Refunded,
            Outcome::Lost => (source, destination) == (Htlc::Redeemed, Htlc::Refunded),
            Outcome::Expired => source == Htlc::Absent && !world.was_paid,
            other => panic!("{other:?}"),
        };
        assert!(is_true, "ends as {outcome:?}: {world:?}");
    }

    /// Observes, decides and acts once. Returns whether it acted.
    fn step(&mut self, world: &mut World, bytes: &mut Bytes<'_>) -> bool {
        let [how_source, how_destination, said, about] = [0; 4].map(|_: u8| bytes.byte());
        let record = match about % 8 {
            5 => changed(),
            6 => unreachable(),
            _ => FIXED.subject.verified(),
        };
        let mut observed = FIXED.subject.observed(record);
        observed.now = UnixTime::from_secs(world.now.saturating_add_signed(world.skew));
        (observed.source, observed.destination) = (world.see(SOURCE, how_source, said), world.see(DESTINATION, how_destination, said >> 4));
        observed.release = world.release(&observed.destination);
        if about & 16 != 0 {
            observed.heads = Err("stale".to_owned());
        }
        let shows = |leg: &LegObservation| matches!(leg, LegObservation::Seen { state: HtlcState::Redeemed { secret: Some(_), .. }, .. });
        observed.public_secret = (shows(&observed.source) || shows(&observed.destination)).then(secret_bytes);
        observed.refund_from = match world.legs[SOURCE] {
            Htlc::Locked(since) => Some(UnixTime::from_secs(since + (FIXED.subject.timelock() + 4) * UNITS[SOURCE])),
            _ => None,
        };
        self.decide(world, bytes, &observed)
    }

    fn decide(&mut self, world: &mut World, bytes: &mut Bytes<'_>, observed: &OrderObservation) -> bool {
        let decision = decide(&self.kept, observed, self.capabilities);
        let say = || format!("{:?}\n{world:?}\n{observed:?}\n{decision:?}", self.kept.journal);
        check(&self.kept, observed, self.capabilities, &decision, &say);
        check_asked_refund(&self.kept, observed, self.capabilities, &say);
        let facts = Facts::new(&self.kept, observed);
        // A recent attempt is not repeated for up to five minutes.
        let waits = self.kept.journal.iter().any(|entry| {
            matches!(entry.event, Event::Sending { .. })
                && entry.at <= observed.now
                && observed.now < entry.at.saturating_add(std::time::Duration::from_secs(300))
        });
        if !waits {
            check_money(observed, self.capabilities, &facts, &decision, &say);
        }
        let Some(action) = decision.action else { return false };
        // What stops an act is what the input decides, and the next step goes on from what is stored.
        let _ = self.act(world, bytes, &action);
        true
    }
}

/// How an order ended, for the test that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Ended(&'static str),
    /// Nothing was paid, and nothing is on its way.
    Unpaid,
    /// The faults lasted too long: what was lost was lost before they ended, or only the owner can go on.
    TooLate,
}

/// Plays an input.
pub fn play(input: &[u8]) -> End {
    let mut bytes = Bytes(input);
    let (can, kind) = (bytes.byte(), bytes.byte());
    let (names_own_key, is_gasless) = (kind & 1 != 0, kind & 2 != 0);
    let mut process = Process {
        kept: FIXED.subject.kept(kind & 12 != 12, names_own_key),
        capabilities: capabilities(u64::from(can)),
        is_gasless,
        is_connected: can & 2 != 0,
    };
    let mut world = World {
        now: 1_900,
        skew: 0,
        legs: [Htlc::Absent; 2],
        is_final: [false; 2],
        before: [(Htlc::Absent, false); 2],
        pending: Vec::new(),
        is_known: false,
        has_relayer: false,
        was_paid: false,
    };
    for _ in 0..400 {
        if bytes.0.is_empty() {
            break;
        }
        match bytes.byte() {
            what @ 0..=119 => world.happen(what, bytes.byte()),
            120..=239 => {
                process.step(&mut world, &mut bytes);
            }
            _ => process.restart(names_own_key),
        }
    }
    finish(&mut world, &mut process)
}

/// Ends all faults, and requires that the order comes to its end with the owner's money in one place or the other.
fn finish(world: &mut World, process: &mut Process) -> End {
    let mut none = Bytes(&[]);
    world.skew = 0;
    // The owner can do everything now, and is there.
    process.capabilities = capabilities(0b111);
    process.is_connected = true;
    let has_secret = process.kept.own_secret().is_some();
    // Others know the secret, and too little time is left for the owner to use it. No rule can prevent this: the faults lasted too long.
    let may_be_locked = matches!(world.legs[SOURCE], Htlc::Locked(_) | Htlc::Redeemed) || world.pending.contains(&Pending::Funding);
    let is_exposed = world.is_known && may_be_locked;
    let can_redeem = matches!(world.legs[DESTINATION], Htlc::Redeemed) || has_secret && world.left(DESTINATION) > 2 * MARGIN;
    let is_too_late = !can_redeem && (is_exposed || world.legs[SOURCE] == Htlc::Redeemed);
    // Longer than the source's timelock and a day after the deadline.
    for _ in 0..500 {
        process.step(world, &mut none);
        process.step(world, &mut none);
        while !world.pending.is_empty() {
            world.mine(0);
        }
        world.is_final = [true; 2];
        // The solver takes whatever it can.
        world.happen(5, 0);
        world.happen(6, 0);
        world.now += UNITS[DESTINATION] * MARGIN;
        if process.kept.outcome().is_some() {
            break;
        }
    }
    let is_paid = matches!(world.legs[SOURCE], Htlc::Locked(_) | Htlc::Redeemed);
    let told = || format!("{world:?}\n{:?}", process.kept.journal);
    match process.kept.outcome() {
        Some(Outcome::Lost) => assert!(is_too_late, "a loss that could have been avoided: {}", told()),
        Some(_) => {}
        None => assert!(is_too_late || !is_paid || !has_secret, "it does not end: {}", told()),
    }
    match process.kept.outcome() {
        Some(Outcome::Lost) => End::TooLate,
        Some(outcome) => End::Ended(outcome.name()),
        None if is_paid => End::TooLate,
        None => End::Unpaid,
    }
}
