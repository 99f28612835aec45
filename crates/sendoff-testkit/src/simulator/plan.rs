//! What happens in a simulation, and when: all of it follows from the seed.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use super::message::{Draft, Kinds, SINKS, Temper};

/// The transaction that comes after a failover.
const ONE_MORE: usize = 1000;

/// Something that happens at a moment of its own.
#[derive(Debug, Clone)]
pub enum Step {
    /// A transaction begins.
    Begin(usize),
    /// It emits a message.
    Emit(usize, Draft),
    /// It commits.
    Commit(usize),
    /// It rolls back.
    RollBack(usize),
    /// The store cannot be reached for a while.
    StoreDown(Duration),
    /// A sink is down for a while.
    SinkDown(usize, Duration),
    /// A process is stopped for a while, and goes on where it was.
    Freeze(usize, Duration),
    /// A process is killed, and started again later.
    Kill(usize, Duration),
    /// A process is told to stop, and started again later.
    Stop(usize, Duration),
    /// The standby gets nothing any more.
    Lag,
    /// The standby takes over.
    FailOver,
    /// The database's clock is set, by so many milliseconds.
    SetClock(i64),
    /// An operator acts.
    Operate(Operation),
}

impl Step {
    /// Whether nothing comes between a relay and the store because of it.
    pub(super) fn is_calm(&self) -> bool {
        match self {
            Self::Begin(_) | Self::Emit(..) | Self::Commit(_) | Self::RollBack(_) => true,
            Self::SinkDown(..) | Self::Operate(_) => true,
            Self::StoreDown(_) | Self::Freeze(..) | Self::Kill(..) | Self::Stop(..) => false,
            Self::Lag | Self::FailOver | Self::SetClock(_) => false,
        }
    }
}

/// What operators do.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Brings up to so many dead letters back.
    RetryDead(usize),
    /// Deletes up to so many dead letters.
    DiscardDead(usize),
    /// Lets the keys go on that dead letters hold up.
    ReleaseKeys,
    /// Makes what waits due, and forgets its attempts if so.
    RetryOptions(bool),
    /// Pauses a sink for a while.
    PauseSink(usize, Duration),
    /// Pauses a topic for a while.
    PauseTopic(&'static str, Duration),
}

/// A simulation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What it follows from.
    pub seed: u64,
    /// How many processes there are.
    pub relays: usize,
    /// How many of a thousand calls of the store go wrong.
    pub store_trouble: u32,
    /// How many of a thousand calls of a sink go wrong.
    pub sink_trouble: u32,
    /// Whether sinks take their time, so that much is with them.
    pub slow_sinks: bool,
    /// How many messages a relay has in flight at most.
    pub window: usize,
    /// How many messages a sink gets at once at most.
    pub batch: usize,
    /// After how many crashes a lane is in quarantine, and after how many more a message is dead.
    pub crash_limit: u32,
    /// Whether the first relay alone knows the route of some messages.
    pub routes_differ: bool,
    /// Whether it stays so when all faults have ended.
    pub routes_stay: bool,
    /// Whether what is in flight is watched.
    pub observed: bool,
    /// Everything else, in the order of time.
    pub steps: Vec<(Duration, Step)>,
    /// When all faults end.
    pub ends: Duration,
}

impl Plan {
    /// The simulation of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x5e4d_0ff0);
        let mut plan = Self {
            seed,
            relays: rng.usize(1..=3),
            store_trouble: 0,
            sink_trouble: 0,
            slow_sinks: false,
            window: [8, 20, 60][rng.usize(0..3)],
            batch: [1, 3, 10][rng.usize(0..3)],
            crash_limit: 2,
            routes_differ: rng.u8(0..12) == 0,
            routes_stay: false,
            observed: rng.u8(0..4) == 0,
            steps: Vec::new(),
            ends: Duration::from_millis(rng.u64(4_000..10_000)),
        };
        // Each kind of trouble is there in some simulations only, so that every combination comes up.
        let mut some = |of: u8| rng.u8(0..100) < of;
        let (calls, answers) = (some(50), some(60));
        let (store_down, sinks_down) = (some(20), some(30));
        let (freezes, kills, stops) = (some(25), some(30), some(35));
        let (fail_over, clock, operator) = (some(25), some(20), some(40));
        plan.slow_sinks = some(if fail_over { 60 } else { 20 });
        let kinds = Kinds {
            trouble: some(60),
            poison: some(10),
            garbled: some(20),
            schedules: some(40),
            unroutable: some(15),
            differs: plan.routes_differ,
            keys: rng.usize(1..=5),
        };
        if calls {
            plan.store_trouble = [10, 40, 120][rng.usize(0..3)];
        }
        if answers {
            plan.sink_trouble = [20, 80, 200][rng.usize(0..3)];
        }
        plan.emit(&mut rng, &kinds);
        if store_down {
            plan.some(&mut rng, 2, |rng, _| Step::StoreDown(millis(rng, 200..7_000)));
        }
        if sinks_down {
            plan.some(&mut rng, 3, |rng, _| {
                Step::SinkDown(rng.usize(0..SINKS.len()), millis(rng, 200..5_000))
            });
        }
        if freezes {
            plan.some(&mut rng, 2, |rng, relays| {
                Step::Freeze(rng.usize(0..relays), millis(rng, 500..8_000))
            });
        }
        if kills {
            plan.some(&mut rng, 2, |rng, relays| {
                Step::Kill(rng.usize(0..relays), millis(rng, 100..3_000))
            });
        }
        if stops {
            plan.some(&mut rng, 2, |rng, relays| {
                Step::Stop(rng.usize(0..relays), millis(rng, 100..3_000))
            });
        }
        if fail_over {
            let last = plan.ends.as_millis() as u64;
            let at = rng.u64(1_000..last);
            let lag = rng.u64(0..4_000).min(at);
            plan.steps.push((Duration::from_millis(at - lag), Step::Lag));
            plan.steps.push((Duration::from_millis(at), Step::FailOver));
            plan.emit_at_once(&mut rng, &kinds, at + 5);
        }
        if clock {
            plan.some(&mut rng, 2, |rng, _| {
                Step::SetClock([-3_000, -500, 900, 5_000, 60_000, 3_600_000][rng.usize(0..6)])
            });
        }
        if operator {
            plan.some(&mut rng, 4, |rng, _| Step::Operate(Operation::random(rng)));
        }
        plan.routes_stay = plan.routes_differ && rng.bool();
        plan.steps.sort_by_key(|(at, _)| *at);
        plan
    }

    /// Whether this kind of step is in it.
    pub(super) fn has(&self, is: impl Fn(&Step) -> bool) -> bool {
        self.steps.iter().any(|(_, step)| is(step))
    }

    fn emit(&mut self, rng: &mut Rng, kinds: &Kinds) {
        let last = self.ends.as_millis() as u64;
        let transactions = rng.usize(6..16);
        let poisoned = kinds.poison.then(|| rng.usize(0..transactions));
        for tx in 0..transactions {
            let mut at = rng.u64(0..last * 3 / 4);
            self.steps.push((Duration::from_millis(at), Step::Begin(tx)));
            for _ in 0..rng.usize(1..6) {
                at += rng.u64(0..3) * rng.u64(0..100);
                let draft = Draft::random(rng, kinds);
                self.steps.push((Duration::from_millis(at), Step::Emit(tx, draft)));
            }
            if poisoned == Some(tx) {
                let mut draft = Draft::random(
                    rng,
                    &Kinds {
                        keys: kinds.keys,
                        ..Kinds::default()
                    },
                );
                draft.temper = Temper::Poison;
                self.steps.push((Duration::from_millis(at), Step::Emit(tx, draft)));
            }
            // Some stay open for long: others overtake them.
            at += if rng.u8(0..5) == 0 { rng.u64(0..3_000) } else { 0 };
            let end = if rng.u8(0..8) == 0 {
                Step::RollBack(tx)
            } else {
                Step::Commit(tx)
            };
            self.steps.push((Duration::from_millis(at), end));
        }
    }

    /// One more transaction: what the numbers of others are given to, if there are any.
    fn emit_at_once(&mut self, rng: &mut Rng, kinds: &Kinds, at: u64) {
        let (tx, at) = (ONE_MORE, Duration::from_millis(at));
        self.steps.push((at, Step::Begin(tx)));
        for _ in 0..rng.usize(2..8) {
            self.steps.push((at, Step::Emit(tx, Draft::random(rng, kinds))));
        }
        self.steps.push((at, Step::Commit(tx)));
    }

    fn some(&mut self, rng: &mut Rng, most: usize, mut step: impl FnMut(&mut Rng, usize) -> Step) {
        let last = self.ends.as_millis() as u64;
        for _ in 0..rng.usize(1..=most) {
            let at = Duration::from_millis(rng.u64(200..last));
            let step = step(rng, self.relays);
            self.steps.push((at, step));
        }
    }
}

impl Operation {
    fn random(rng: &mut Rng) -> Self {
        match rng.u8(0..12) {
            0..3 => Self::RetryDead(rng.usize(1..5)),
            3..5 => Self::DiscardDead(rng.usize(1..4)),
            5 => Self::ReleaseKeys,
            6..8 => Self::RetryOptions(rng.bool()),
            8..10 => Self::PauseSink(rng.usize(0..SINKS.len()), millis(rng, 500..5_000)),
            _ => Self::PauseTopic(["*.x", "block.*", "skip.y"][rng.usize(0..3)], millis(rng, 500..5_000)),
        }
    }
}

fn millis(rng: &mut Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.u64(range))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} relays, window {}, batches of {}, store trouble {}‰, sink trouble {}‰, {} sinks, routes {}, faults end at {} ms",
            self.relays,
            self.window,
            self.batch,
            self.store_trouble,
            self.sink_trouble,
            if self.slow_sinks { "slow" } else { "quick" },
            match (self.routes_differ, self.routes_stay) {
                (false, _) => "are the same",
                (true, false) => "differ",
                (true, true) => "differ for good",
            },
            self.ends.as_millis()
        )?;
        for (at, step) in &self.steps {
            if !matches!(
                step,
                Step::Begin(_) | Step::Emit(..) | Step::Commit(_) | Step::RollBack(_)
            ) {
                writeln!(f, "{:>8} ms {step:?}", at.as_millis())?;
            }
        }
        Ok(())
    }
}
