//! When a chain has its blocks: its pace, which may change by ten in the middle of a swap, the time for which it stands still, and how
//! coarse the times in its headers are.

/// Heights are counted from so many seconds before the world begins.
const BEFORE: u64 = 100_000;

/// The times of the blocks of one chain. Of Bitcoin-like chains only the pace counts: their ledgers date their own blocks.
#[derive(Debug, Clone)]
pub struct Tempo {
    /// From which millisecond on a block takes how many milliseconds; `None` while there are no blocks. In the order of time.
    pieces: Vec<(u64, Option<u64>)>,
    /// The times in headers are multiples of so many seconds.
    grain: u64,
}

/// The pace of a chain changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// After so many seconds; 0 for a pace that was never another one.
    pub after: u64,
    /// Whether blocks take a tenth of the time; otherwise ten times as long.
    pub is_faster: bool,
}

impl Turn {
    /// Returns what a number of milliseconds becomes.
    pub const fn of(self, millis: u64) -> u64 {
        if !self.is_faster {
            return millis * 10;
        }
        if millis < 10 { 1 } else { millis / 10 }
    }
}

impl Tempo {
    /// Creates the tempo of a chain whose blocks take `millis`. `halt` is from when until when it has none.
    pub fn new(epoch: u64, millis: u64, turn: Option<Turn>, halt: Option<(u64, u64)>, grain: u64) -> Self {
        let begin = (epoch - BEFORE) * 1_000;
        let mut paces = vec![(begin, millis)];
        if let Some(turn) = turn {
            paces.push((if turn.after == 0 { begin } else { (epoch + turn.after) * 1_000 }, turn.of(millis)));
        }
        let pace_at = |at: u64| paces.iter().rfind(|(from, _)| *from <= at).map(|(_, pace)| *pace);
        let mut changes: Vec<u64> = paces.iter().map(|(from, _)| *from).collect();
        let halt = halt.map(|(from, until)| (from * 1_000, until * 1_000));
        changes.extend(halt.into_iter().flat_map(|(from, until)| [from, until]));
        changes.sort_unstable();
        changes.dedup();
        let stands = |at: u64| halt.is_some_and(|(from, until)| (from..until).contains(&at));
        Self { pieces: changes.into_iter().map(|at| (at, pace_at(at).filter(|_| !stands(at)))).collect(), grain: grain.max(1) }
    }

    /// Returns how many blocks there are by a millisecond, in millionths of a block.
    fn progress(&self, at: u64) -> u128 {
        let ends = self.pieces.iter().skip(1).map(|(from, _)| *from).chain([u64::MAX]);
        let part = |((from, pace), end): (&(u64, Option<u64>), u64)| {
            let millis = u128::from(at.min(end).saturating_sub(*from));
            pace.map_or(0, |pace| millis * 1_000_000 / u128::from(pace))
        };
        self.pieces.iter().zip(ends).map(part).sum()
    }

    /// Returns the number of the newest block at a time, in seconds.
    pub fn newest(&self, at: u64) -> u64 {
        u64::try_from(self.progress(at * 1_000) / 1_000_000).unwrap()
    }

    /// Returns the millisecond of a block.
    fn millis_of(&self, block: u64) -> u64 {
        let (mut low, mut high) = (self.pieces[0].0, self.pieces[0].0 * 2);
        while low < high {
            let middle = low.midpoint(high);
            if self.progress(middle) >= u128::from(block) * 1_000_000 { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Returns the number of the block that has what happens at a time: the first one from then on.
    pub fn includes(&self, at: u64) -> u64 {
        let newest = self.newest(at);
        if self.millis_of(newest) >= at * 1_000 { newest } else { newest + 1 }
    }

    /// Returns the first second in which a block is the newest one.
    pub fn arrives(&self, block: u64) -> u64 {
        self.millis_of(block).div_ceil(1_000)
    }

    /// Returns the time in the header of a block.
    pub fn stamp(&self, block: u64) -> u64 {
        let time = self.millis_of(block) / 1_000;
        time - time % self.grain
    }

    /// Returns how long a block takes from a time on, in whole seconds.
    pub fn block_seconds(&self, at: u64) -> u64 {
        let pace = self.pieces.iter().rfind(|(from, _)| *from <= at * 1_000).and_then(|(_, pace)| *pace);
        pace.unwrap_or_default().div_ceil(1_000)
    }
}

#[test]
fn a_tempo_changes_stands_and_shows_coarse_times() {
    const EPOCH: u64 = 1_700_000_000;
    let begin = EPOCH - BEFORE;
    let steady = Tempo::new(EPOCH, 200, None, None, 1);
    assert_eq!((steady.newest(begin), steady.newest(begin + 2), steady.stamp(12)), (0, 10, begin + 2));
    assert_eq!((steady.includes(begin + 2), steady.arrives(11), steady.arrives(10)), (10, begin + 3, begin + 2));
    let slow = Tempo::new(EPOCH, 12_000, None, None, 1);
    assert_eq!((slow.newest(begin + 13), slow.includes(begin + 13), slow.includes(begin + 24)), (1, 2, 2));
    let base = BEFORE / 2;
    for (is_faster, blocks) in [(true, 10), (false, 0)] {
        let turned = Tempo::new(EPOCH, 2_000, Some(Turn { after: 10, is_faster }), None, 1);
        assert_eq!((turned.newest(EPOCH + 10), turned.newest(EPOCH + 12)), (base + 5, base + 5 + blocks));
    }
    let halted = Tempo::new(EPOCH, 2_000, None, Some((EPOCH + 10, EPOCH + 100)), 60);
    assert_eq!([10, 50, 100, 102].map(|at| halted.newest(EPOCH + at)), [base + 5, base + 5, base + 5, base + 6]);
    assert_eq!((halted.arrives(base + 6), halted.stamp(base + 6) % 60), (EPOCH + 102, 0));
}
