//! The world around one order: two chains at a few moments, pending transactions, and who knows the secret.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::script::{BOTH, Leg};
use crate::setup::Config;

/// The moments at which something can happen, in seconds. Between two of them, every block becomes final, and every
/// wait of the driver ends. The destination can be refunded after two hours, the payment must be confirmed within one
/// hour, and the source can be refunded after a day.
///
/// The search covers moments up to [`SEARCHED`]. From there, only the end of a swap is followed to the end of the
/// list.
pub const MOMENTS: &[u64] = &[0, 1_500, 4_200, 8_050, 90_000, 95_000, 180_000, 190_000, 280_000, 290_000];
/// The number of moments that are searched: before the deadline, after it, after the destination's timelock, and
/// after the source's.
pub const SEARCHED: u8 = 5;
/// The timelocks of both sides in seconds, if their chains keep making blocks.
pub const TIMELOCKS: [u64; 2] = [86_400, 7_200];
/// The seconds that must remain when the secret is sent.
pub const MARGIN: u64 = 600;
/// The age of the newest block when it is read, in seconds.
pub const AGE: u64 = 100;
/// The seconds until a block is final.
pub const FINAL: u64 = 600;
/// The time by which the payment must be confirmed, in seconds.
pub const DEADLINE: u64 = 3_600;
/// By how many seconds a clock is behind or ahead.
pub const CLOCK: u64 = 7_200;
/// The driver's attempts at one moment, and the seconds between them. The latter exceed the longest wait before
/// something is sent again.
pub const ATTEMPTS: u8 = 1;
pub const ATTEMPT: u64 = 310;

/// The state of an HTLC. Each time is the index of a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Htlc {
    #[default]
    Absent,
    Locked { at: u8, less: bool },
    Redeemed { at: u8, locked: u8 },
    Refunded { at: u8, locked: u8 },
}

/// A rule that was broken: see [`BROKEN`](crate::check::BROKEN).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Broken {
    Loss,
    Leak,
    TwoPayments,
    Signed,
    Outcome,
}

/// The whole world at one moment. At first, an order has been created and nothing has happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub now: u8,
    /// The number of steps that the driver has taken at this moment, up to [`ATTEMPTS`].
    pub attempt: u8,
    /// The moment of each chain's newest block.
    pub heads: [u8; 2],
    /// The moment until which each chain made no blocks, or 0. The blocks of that time are missing for ever.
    pub stood: [u8; 2],
    /// Whether the caller's clock is behind or ahead.
    pub clock: i8,
    pub htlcs: [Htlc; 2],
    /// Whether anyone else knows the secret.
    pub secret: bool,
    /// Whether the journal states that the secret may be known. In that case the owner does not stay away.
    pub may_be_out: bool,
    /// The number of signed payments, and those among them that are pending or can never be included.
    pub payments: u8,
    pub on_the_way: u8,
    pub dead: u8,
    /// When another order's transaction took the nonce of one of this order's, as the index of the moment plus one. 0
    /// if none did.
    pub taken: [u8; 2],
    /// Whether the service holds a signed message with which it can pay.
    pub gasless: bool,
    pub redemption: bool,
    pub refund: bool,
    /// Whether a redemption was printed for the owner, and whether it was broadcast.
    pub paper: Paper,
    /// What is stored. See [`Kept`](crate::step::Kept).
    pub kept: u32,
    /// An earlier copy of what is stored.
    pub copy: Copy,
    /// How much bad luck there has been.
    pub bad_luck: u8,
    /// Whether the driver's last step at this moment, without bad luck, left nothing to do.
    pub rested: bool,
    /// Whether the driver reports that the order has ended.
    pub ended: bool,
    pub broken: Option<Broken>,
}

/// A copy of the state directory, which may be restored once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Copy {
    #[default]
    None,
    Made(u32),
    PutBack,
}

/// A redemption that was printed for the owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Paper {
    #[default]
    None,
    Printed,
    Broadcast,
}

/// An event outside the driver. `Display` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    Paid(u8),
    PaidByService,
    NonceUsed(u8),
    NonceTaken(Leg),
    NonceFree(Leg),
    SolverPays { less: bool },
    SolverRefunds,
    SolverRedeems,
    Redeemed,
    RedeemedBySomebody,
    Refunded,
    Replaced(Leg),
    Later { standing: Option<Leg> },
    Clock(i8),
    Copied,
    PutBack,
    Prints,
    Broadcasts,
}

impl Leg {
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl State {
    pub const fn htlc(&self, leg: Leg) -> Htlc {
        self.htlcs[leg.index()]
    }

    /// Returns the time of a chain's newest block.
    pub const fn head(&self, leg: Leg) -> u64 {
        let since = if self.is_going(leg) { self.attempt as u64 * ATTEMPT } else { 0 };
        MOMENTS[self.heads[leg.index()] as usize] + since
    }

    /// Returns the seconds since the start.
    pub const fn time(&self) -> u64 {
        MOMENTS[self.now as usize] + self.attempt as u64 * ATTEMPT + AGE
    }

    /// Returns whether a chain has made blocks up to this moment, so that it can include something.
    pub const fn is_going(&self, leg: Leg) -> bool {
        self.heads[leg.index()] == self.now
    }

    /// Returns the seconds during which a chain made blocks, up to some time. A chain that stopped does not catch up.
    pub fn counted(&self, leg: Leg, time: u64) -> u64 {
        match usize::from(self.stood[leg.index()]) {
            0 => time,
            end => time - (time.clamp(MOMENTS[end - 1], MOMENTS[end]) - MOMENTS[end - 1]),
        }
    }

    /// Returns the seconds that a chain has counted since a moment, until some time.
    fn since(&self, leg: Leg, at: u8, until: u64) -> u64 {
        self.counted(leg, until).saturating_sub(self.counted(leg, MOMENTS[usize::from(at)]))
    }

    /// Returns whether the timelock of a side has expired on its chain.
    pub fn is_over(&self, leg: Leg) -> bool {
        matches!(self.htlc(leg), Htlc::Locked { at, .. } if self.since(leg, at, self.head(leg)) > TIMELOCKS[leg.index()])
    }

    /// Returns whether the destination shows a covering HTLC in a final block, with time left.
    pub fn is_covered(&self) -> bool {
        let leg = Leg::Destination;
        match self.htlc(leg) {
            Htlc::Locked { at, less: false } => {
                self.since(leg, at, self.head(leg)) >= FINAL && self.since(leg, at, self.time()) + MARGIN < TIMELOCKS[leg.index()]
            }
            _ => false,
        }
    }

    /// Returns whether the deadline has passed according to the owner's clock or a newest block.
    pub fn is_late(&self) -> bool {
        self.clock >= 0 && self.time() > DEADLINE || BOTH.into_iter().any(|leg| self.head(leg) > DEADLINE)
    }

    /// Records a payment that is sent too late.
    pub fn check_payment(&mut self) {
        if self.is_late() {
            self.broken.get_or_insert(Broken::Signed);
        }
    }

    /// Returns whether the solver refunded its payment before this moment, and the chain shows it.
    pub fn is_taken_back(&self) -> bool {
        matches!(self.htlc(Leg::Destination), Htlc::Refunded { at, .. } if at < self.now && self.is_going(Leg::Destination))
    }

    /// Reveals the secret to everyone.
    pub fn leak(&mut self) {
        if !self.secret && !self.is_covered() {
            self.broken.get_or_insert(Broken::Leak);
        }
        self.secret = true;
    }

    /// Adds the possible next events outside the driver, before a moment and within a bound for bad luck.
    pub fn moves(&self, max_bad_luck: u8, end: usize, Config { stands, has_other, .. }: Config, moves: &mut Vec<Move>) {
        let (source, destination) = (self.htlc(Leg::Source), self.htlc(Leg::Destination));
        let is_locked = |leg| matches!(self.htlc(leg), Htlc::Locked { .. });
        if source == Htlc::Absent && self.is_going(Leg::Source) {
            moves.extend((0..self.payments).filter(|one| self.may_be_paid_by(*one)).map(Move::Paid));
            if self.gasless {
                moves.push(Move::PaidByService);
            }
        }
        if self.bad_luck < max_bad_luck {
            moves.extend((0..self.payments).filter(|one| self.may_be_paid_by(*one)).map(Move::NonceUsed));
        }
        if destination == Htlc::Absent && self.is_going(Leg::Destination) {
            moves.extend([false, true].map(|less| Move::SolverPays { less }));
        }
        if self.is_over(Leg::Destination) && self.is_going(Leg::Destination) {
            moves.push(Move::SolverRefunds);
        }
        if self.secret && is_locked(Leg::Source) && self.is_going(Leg::Source) {
            moves.push(Move::SolverRedeems);
        }
        if is_locked(Leg::Destination) && self.is_going(Leg::Destination) {
            if self.redemption {
                moves.push(Move::Redeemed);
            } else if self.secret {
                moves.push(Move::RedeemedBySomebody);
            }
        }
        if self.refund && self.is_over(Leg::Source) && self.is_going(Leg::Source) {
            moves.push(Move::Refunded);
        }
        moves.extend(BOTH.into_iter().filter(|leg| self.can_be_replaced(*leg)).map(Move::Replaced));
        // Another attempt follows.
        if has_other && self.attempt < ATTEMPTS {
            let may_take = |leg: &Leg| self.taken[leg.index()] == 0 && self.is_going(*leg) && self.waits_for_block(*leg);
            moves.extend(BOTH.into_iter().filter(may_take).map(Move::NonceTaken));
            moves.extend(BOTH.into_iter().filter(|leg| self.is_taken_anew(*leg)).map(Move::NonceFree));
        }
        if self.may_pass(end) {
            moves.push(Move::Later { standing: None });
            // Chains keep making blocks once the secret is out. Before that, one of them may stop once, for one
            // moment.
            if stands && !self.secret {
                let may_stand = |leg: &Leg| self.is_going(*leg) && self.stood == [0; 2];
                moves.extend(BOTH.into_iter().filter(may_stand).map(|leg| Move::Later { standing: Some(leg) }));
            }
        }
        // Both the program, which prints, and its user, who broadcasts, have just checked the chain. A chain that has
        // stopped proves nothing.
        if self.is_covered() && self.is_going(Leg::Destination) && matches!(source, Htlc::Locked { .. }) {
            match self.paper {
                Paper::None if self.bad_luck < max_bad_luck => moves.push(Move::Prints),
                Paper::Printed => moves.push(Move::Broadcasts),
                _ => {}
            }
        }
        if self.bad_luck < max_bad_luck {
            moves.extend([-1, 0, 1].into_iter().filter(|clock| *clock != self.clock).map(Move::Clock));
            match self.copy {
                Copy::None => moves.push(Move::Copied),
                Copy::Made(_) => moves.push(Move::PutBack),
                Copy::PutBack => {}
            }
        }
    }

    /// Returns the number of payments whose nonces have been used in sequence.
    pub const fn used(&self) -> u8 {
        self.dead.trailing_ones() as u8
    }

    /// Returns whether this order has a transaction that is in no block, or has signed a payment.
    fn waits_for_block(&self, leg: Leg) -> bool {
        match (leg, self.htlc(leg)) {
            (Leg::Source, Htlc::Absent) => self.used() < self.payments,
            (Leg::Source, Htlc::Locked { .. }) => self.refund,
            (Leg::Destination, Htlc::Locked { .. }) => self.redemption,
            _ => false,
        }
    }

    /// Returns whether another order took a nonce in a block that can still be replaced, and no later block has a
    /// transaction of this order.
    pub fn is_taken_anew(&self, leg: Leg) -> bool {
        let now = self.now;
        let is_later = |htlc| matches!(htlc, Htlc::Locked { at, .. } | Htlc::Redeemed { at, .. } | Htlc::Refunded { at, .. } if at == now);
        self.taken[leg.index()] == now + 1 && !is_later(self.htlc(leg))
    }

    const fn may_be_paid_by(&self, one: u8) -> bool {
        self.on_the_way & (1 << one) != 0 && self.dead & (1 << one) == 0
    }

    /// Returns whether a reorganization can undo what happened on a chain at this moment. If so, another attempt
    /// follows.
    pub fn can_be_replaced(&self, leg: Leg) -> bool {
        match self.htlc(leg) {
            _ if self.attempt == ATTEMPTS => false,
            Htlc::Absent => false,
            Htlc::Locked { at, .. } | Htlc::Redeemed { at, .. } | Htlc::Refunded { at, .. } => at == self.now,
        }
    }

    /// Returns whether time may pass. Once the secret is out, the owner's process must have had its turn. Honest
    /// endpoints and running chains must have included what was sent to them.
    fn may_pass(&self, end: usize) -> bool {
        let is_last = usize::from(self.now) + 1 >= end;
        let is_locked = |leg| matches!(self.htlc(leg), Htlc::Locked { .. }) && self.is_going(leg);
        let is_waiting =
            self.redemption && is_locked(Leg::Destination) || self.refund && is_locked(Leg::Source) && self.is_over(Leg::Source);
        !is_last && !is_waiting && (!(self.secret || self.may_be_out) || self.rested || self.ended)
    }

    /// Makes a move.
    pub fn after(&self, one: Move) -> Self {
        let mut next = *self;
        let now = self.now;
        let locked_at = |leg| match self.htlc(leg) {
            Htlc::Locked { at, .. } => at,
            _ => now,
        };
        let [source, destination] = BOTH.map(Leg::index);
        match one {
            Move::Paid(_) | Move::PaidByService => next.htlcs[source] = Htlc::Locked { at: now, less: false },
            Move::NonceUsed(one) => {
                next.dead |= 1 << one;
                next.bad_luck += 1;
            }
            Move::NonceTaken(leg) => {
                next.taken[leg.index()] = now + 1;
                match (leg, self.htlc(leg)) {
                    (Leg::Source, Htlc::Absent) => next.dead |= 1 << self.used(),
                    (Leg::Source, _) => next.refund = false,
                    (Leg::Destination, _) => next.redemption = false,
                }
            }
            Move::NonceFree(leg) => {
                next.taken[leg.index()] = 0;
                if self.htlc(leg) == Htlc::Absent {
                    next.dead &= !(1 << (self.used() - 1));
                }
            }
            Move::SolverPays { less } => next.htlcs[destination] = Htlc::Locked { at: now, less },
            Move::SolverRefunds => next.htlcs[destination] = Htlc::Refunded { at: now, locked: locked_at(Leg::Destination) },
            Move::SolverRedeems => next.htlcs[source] = Htlc::Redeemed { at: now, locked: locked_at(Leg::Source) },
            Move::Redeemed | Move::RedeemedBySomebody => {
                next.htlcs[destination] = Htlc::Redeemed { at: now, locked: locked_at(Leg::Destination) };
            }
            Move::Refunded => next.htlcs[source] = Htlc::Refunded { at: now, locked: locked_at(Leg::Source) },
            // Its transactions are gone, except a payment, which anyone who has it can send again.
            Move::Replaced(leg) => {
                match self.htlc(leg) {
                    Htlc::Redeemed { .. } => next.redemption &= leg == Leg::Source,
                    Htlc::Refunded { .. } => next.refund &= leg == Leg::Destination,
                    _ => {}
                }
                next.htlcs[leg.index()] = match self.htlc(leg) {
                    Htlc::Redeemed { locked, .. } | Htlc::Refunded { locked, .. } => Htlc::Locked { at: locked, less: false },
                    _ => Htlc::Absent,
                }
            }
            Move::Later { standing } => {
                next.now += 1;
                next.attempt = 0;
                for leg in BOTH {
                    if standing == Some(leg) {
                        next.stood[leg.index()] = next.now;
                    } else {
                        next.heads[leg.index()] = next.now;
                    }
                }
            }
            Move::Clock(clock) => {
                next.clock = clock;
                next.bad_luck += 1;
            }
            Move::Copied => next.copy = Copy::Made(self.kept),
            Move::PutBack => {
                if let Copy::Made(kept) = self.copy {
                    next.kept = kept;
                }
                next.copy = Copy::PutBack;
                next.bad_luck += 1;
                next.ended = false;
            }
            // The journal's entry is added by the caller, who knows what is stored.
            Move::Prints => {
                next.paper = Paper::Printed;
                next.bad_luck += 1;
            }
            Move::Broadcasts => {
                next.paper = Paper::Broadcast;
                (next.secret, next.redemption) = (true, true);
            }
        }
        next.rested = false;
        next.judged()
    }

    /// Records a loss, or a second payment that can be included. A restored store cannot know of the first payment.
    /// In that case only the contract, which accepts one payment per order, prevents a second one.
    pub fn judged(mut self) -> Self {
        if (self.on_the_way & !self.dead).count_ones() > 1 && self.copy != Copy::PutBack {
            self.broken.get_or_insert(Broken::TwoPayments);
        }
        let is_gone = matches!(self.htlc(Leg::Source), Htlc::Redeemed { .. });
        let is_had = matches!(self.htlc(Leg::Destination), Htlc::Redeemed { .. } | Htlc::Locked { less: false, .. });
        if is_gone && !is_had {
            self.broken.get_or_insert(Broken::Loss);
        }
        self
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paid(one) => write!(f, "payment {one} is in a block of the source chain"),
            Self::PaidByService => f.write_str("the service submits the signed payment, and it is in a block"),
            Self::NonceUsed(one) => write!(f, "another transaction of the owner uses the nonce of payment {one}"),
            Self::NonceTaken(leg) => {
                write!(f, "a transaction of another order is in a block of the {} chain, with this one's nonce", leg.name())
            }
            Self::NonceFree(leg) => write!(f, "that block of the {} chain is replaced, and the nonce is free again", leg.name()),
            Self::SolverPays { less: false } => f.write_str("the solver pays the destination"),
            Self::SolverPays { less: true } => f.write_str("the solver pays the destination one unit too little"),
            Self::SolverRefunds => f.write_str("the solver takes its payment back"),
            Self::SolverRedeems => f.write_str("the solver redeems the source with the secret"),
            Self::Redeemed => f.write_str("the owner's redemption is in a block"),
            Self::RedeemedBySomebody => f.write_str("somebody redeems the destination for the owner"),
            Self::Refunded => f.write_str("the owner's refund is in a block"),
            Self::Replaced(leg) => {
                write!(f, "a block of the {} chain that is not final is replaced, and what was in it is forgotten", leg.name())
            }
            Self::Later { standing: None } => f.write_str("time passes"),
            Self::Later { standing: Some(leg) } => write!(f, "time passes, and the {} chain stands still", leg.name()),
            Self::Clock(0) => f.write_str("the owner's clock is right again"),
            Self::Clock(by) => write!(f, "the owner's clock is two hours {}", if *by < 0 { "behind" } else { "ahead" }),
            Self::Copied => f.write_str("the state directory is copied"),
            Self::PutBack => f.write_str("the copy of the state directory is put back"),
            Self::Prints => f.write_str("the owner prints a redemption"),
            Self::Broadcasts => f.write_str("the owner broadcasts the printed redemption"),
        }
    }
}
