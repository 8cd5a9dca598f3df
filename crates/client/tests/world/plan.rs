//! Who is hostile and how, and everything else that may go wrong around an order.

use std::collections::BTreeMap;

use countersign_client::driver::Purpose;

use super::kinds::Kind;
use countersign_testkit::chain::view::Turn;

/// SplitMix64, which produces the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub const fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Returns whether an event with this probability in per cent happens.
    pub const fn is(&mut self, per_cent: u64) -> bool {
        self.below(100) < per_cent
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// How an endpoint is dishonest. In a storm, at most one of three is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    Hangs,
    /// It answers nothing any more once the owner has paid.
    HangsOncePaid,
    /// It answers with a web page.
    ShowsHtml,
    /// It refuses with status 429.
    IsTooBusy,
    /// Its newest block is this many seconds ahead of the clock; negative if it is old.
    HeadIsOff(i64),
    /// It follows the chain by this many seconds too late.
    Lags(u64),
    ServesAnotherChain,
    /// It follows the chain by this many seconds too late, and rejects the owner's payment.
    LagsAndRejects(u64),
    /// It is the first to take what it is sent, and says so only after five seconds.
    ConfirmsLate,
    /// It knows only the newest block.
    IsPruned,
    /// It shows what is so, and keeps the transactions that it accepts.
    Swallows,
    Lies(Lie),
    /// It lies in single components of what it answers, also after the faults: see `lies`. Its place in the list is drawn at every stage.
    /// It keeps the transactions that it gets, and shows the solver the secret in them.
    Components {
        /// Whether it shows the same for as long as a stage lasts.
        is_steady: bool,
    },
}

impl Bad {
    /// Returns whether an endpoint keeps the transactions that it gets.
    pub const fn keeps_transactions(self) -> bool {
        matches!(self, Self::Lies(_) | Self::Swallows | Self::Components { .. })
    }
}

/// The answers of a liar. Each liar also keeps the transactions that it gets, and shows the solver the secret in
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    Funded,
    Absent,
    Redeemed,
    Refunded,
    /// Two days too late.
    TimelockIsOver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Hangs,
    /// It answers nothing any more once the owner has paid.
    HangsOncePaid,
    Fails,
    /// States that both sides are funded, redeemed or refunded, whatever is on chain.
    SaysFunded,
    SaysRedeemed,
    SaysRefunded,
    /// Shows the record of the beginning.
    Replays,
    /// Acts, and its replies are lost.
    LosesReplies,
    /// Later records have other terms.
    ChangesTerms,
    /// Later records have an affiliate fee.
    AddsAFee,
    /// Takes the secret and relays nothing.
    KeepsTheSecret,
    /// Takes the gasless payment and sends nothing.
    KeepsThePayment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Solver {
    /// Pays after this many seconds.
    Pays(u64),
    PaysLess,
    /// Pays after half a minute, and takes the payment back as soon as somebody has seen it final.
    TakesBack,
    Never,
}

/// How endpoints treat the owner's redemptions and refunds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miners {
    TakeAll,
    /// The first four attempts to send a redemption fail, and one is accepted for a minute only after it was signed.
    Expire,
    RejectRedemptions,
    /// What does not replace another transaction is accepted and never mined.
    WantMore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    True,
    /// Is behind by this many seconds.
    Behind(u64),
    /// Is set by this many seconds, forwards or back, after a while.
    Jumps(u64, i64),
}

/// A reorganization, this many seconds after what happened on a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorganization {
    pub after_end: bool,
    pub seconds: u64,
    /// How many seconds of blocks are replaced.
    pub depth: u64,
    /// Whether the owner's transactions are in no mempool afterwards.
    pub forgets: bool,
}

/// Everything that a seed decides at the beginning.
#[derive(Debug, Clone)]
pub struct Plan {
    pub kind: Kind,
    pub pays: Kind,
    pub gasless: bool,
    /// Seconds after which everything is well, except that a solver that does not pay still does not.
    pub faults: u64,
    /// On each leg, the endpoints that are not honest.
    pub bad: [Vec<(usize, Bad)>; 2],
    /// Nothing if the service is honest.
    pub service: Vec<Service>,
    pub solver: Solver,
    /// Seconds until the solver redeems the source with a secret that it knows.
    pub solver_redeems: u64,
    pub clock: Clock,
    pub reorganizations: [Option<Reorganization>; 2],
    /// From which second until which each chain has no blocks.
    pub halts: [Option<(u64, u64)>; 2],
    /// From when on each chain is ten times as fast or as slow as its row.
    pub turns: [Option<Turn>; 2],
    /// The times in each chain's headers are multiples of this many seconds.
    pub grains: [u64; 2],
    /// Whether the solver pays dust to the address of a Bitcoin-like destination: long before its payment, and together with it. It takes
    /// the dust back while the owner redeems.
    pub has_dust: bool,
    /// When fees are a hundred times as high.
    pub fees: Option<(u64, u64)>,
    pub miners: Miners,
    /// How many endpoints each chain has. More than half of them must agree.
    pub endpoints: usize,
    /// The shortest and the longest time until an endpoint answers, in milliseconds.
    pub latency: (u64, u64),
    /// How many of a hundred requests fail.
    pub fault_rate: u64,
    /// The record's deadline, in seconds from the beginning. Otherwise it is that of the fixture.
    pub deadline: Option<i64>,
    /// The actions for which the owner has no coin to pay the fee.
    pub cannot_pay: Vec<Purpose>,
    /// Whether the token has frozen the owner's receiver.
    pub freezes_the_receiver: bool,
    /// Whether the owner's wallet raises the payment by itself: it is in a block once a node is asked for the sender's nonce, under
    /// another id.
    pub raises_in_the_wallet: bool,
    /// Whether the owner's keys are in the process.
    pub signs_here: bool,
    /// Seconds until the owner has signed a redemption for the first time.
    pub signing: u64,
    pub owner_redeems: bool,
    pub relayer_allowed: bool,
    /// Of a hundred lives of the process, how many end early.
    pub deaths: u64,
    /// Whether two processes follow the order at the same time.
    pub has_rival: bool,
}

impl Plan {
    /// Returns a storm without any fault.
    pub const fn calm(kind: Kind, pays: Kind) -> Self {
        Self {
            kind,
            pays,
            gasless: false,
            faults: 0,
            bad: [Vec::new(), Vec::new()],
            service: Vec::new(),
            solver: Solver::Pays(60),
            solver_redeems: 600,
            clock: Clock::True,
            reorganizations: [None, None],
            halts: [None, None],
            turns: [None, None],
            grains: [1, 1],
            has_dust: false,
            fees: None,
            miners: Miners::TakeAll,
            endpoints: 3,
            latency: (10, 300),
            fault_rate: 10,
            deadline: None,
            cannot_pay: Vec::new(),
            freezes_the_receiver: false,
            raises_in_the_wallet: false,
            signs_here: false,
            signing: 0,
            owner_redeems: true,
            relayer_allowed: false,
            deaths: 0,
            has_rival: false,
        }
    }

    /// Returns a swap between two EVM chains of one endpoint each, with a gasless payment. Whatever goes wrong does so for a year.
    pub fn honest() -> Self {
        Self {
            gasless: true,
            faults: 365 * 86_400,
            solver: Solver::Pays(30),
            solver_redeems: 30,
            endpoints: 1,
            latency: (10, 100),
            fault_rate: 0,
            signs_here: true,
            ..Self::calm(Kind::Evm, Kind::Evm)
        }
    }
}

/// How often each fault happened.
pub type Counts = BTreeMap<&'static str, u64>;
