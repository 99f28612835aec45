//! A server in a few lines: transactions that get an id, then numbers, and commit or roll back whenever they like.

mod stragglers;
mod stretches;

use std::collections::BTreeMap;
use std::time::SystemTime;

use proptest::prelude::*;
use sendoff::Uuid;
use sendoff::store::{Lane, LaneGrant, ReadRequest, RowRef, Table};

use super::*;
use crate::decode::smallint;
use crate::lanes::{Found, OfLane};
use crate::straggler::Snapshot;

const LIMIT: usize = 32;
const KEYS: u8 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Committed(usize),
    RolledBack,
}

#[derive(Debug)]
struct Transaction {
    state: State,
}

#[derive(Debug)]
struct Message {
    xid: usize,
    key: u8,
    inserted: usize,
    in_flight: bool,
    /// Whether it ever was returned.
    came: bool,
    settled: bool,
}

/// Transaction ids and numbers are places in these lists, counted from 1.
struct Server {
    transactions: Vec<Transaction>,
    messages: Vec<Message>,
    started: SystemTime,
    /// Tells the messages of one history from those of another.
    life: u128,
    tick: usize,
}

fn lane_of(key: u8) -> Lane {
    Lane::from(key % 2)
}

impl Server {
    fn new() -> Self {
        Self {
            transactions: Vec::new(),
            messages: Vec::new(),
            started: SystemTime::UNIX_EPOCH,
            life: 0,
            tick: 0,
        }
    }

    fn id_of(&self, seq: i64) -> Uuid {
        Uuid::from_u128(self.life << 64 | u128::from(seq.unsigned_abs()))
    }

    fn begin(&mut self) -> usize {
        self.transactions.push(Transaction { state: State::Open });
        self.transactions.len()
    }

    fn insert(&mut self, xid: usize, key: u8) {
        self.tick += 1;
        self.messages.push(Message {
            xid,
            key,
            inserted: self.tick,
            in_flight: false,
            came: false,
            settled: false,
        });
    }

    fn end(&mut self, xid: usize, commit: bool) {
        self.tick += 1;
        let state = if commit {
            State::Committed(self.tick)
        } else {
            State::RolledBack
        };
        self.transactions[xid - 1].state = state;
    }

    fn is_open(&self, xid: usize) -> bool {
        self.transactions[xid - 1].state == State::Open
    }

    fn committed(&self, message: &Message) -> Option<usize> {
        match self.transactions[message.xid - 1].state {
            State::Committed(tick) => Some(tick),
            State::Open | State::RolledBack => None,
        }
    }

    /// As PostgreSQL tells it: `xmax` is one past the last id that has ended, whatever ids were handed out since.
    fn snapshot(&self) -> Snapshot {
        let all = 1..=self.transactions.len();
        let last_ended = all.clone().rev().find(|xid| !self.is_open(*xid)).unwrap_or(0);
        let xmax = last_ended + 1;
        let running: Vec<usize> = all.filter(|xid| *xid < xmax && self.is_open(*xid)).collect();
        let xmin = running.first().copied().unwrap_or(xmax);
        let list: Vec<String> = running.iter().map(ToString::to_string).collect();
        Snapshot::parse(&format!("{xmin}:{xmax}:{}", list.join(","))).unwrap()
    }

    /// What `read_ready.sql` returns.
    fn read(&mut self, plan: &Plan, mark: bool) -> (Sighting, Vec<(Lane, i64)>) {
        let mut rows = Vec::new();
        for ((lane, start), size) in plan.lanes.iter().zip(&plan.starts).zip(&plan.sizes) {
            let visible = (1_i64..).zip(&self.messages).filter(|(seq, message)| {
                seq > start
                    && lane_of(message.key) == lane.unsigned_abs()
                    && !message.settled
                    && self.committed(message).is_some()
            });
            let size = usize::try_from(*size).unwrap();
            rows.extend(visible.take(size).map(|(seq, message)| (lane_of(message.key), seq)));
        }
        if let Some(stretch) = &plan.stretch {
            let visible = (1_i64..).zip(&self.messages).filter(|(seq, message)| {
                (stretch.after + 1..=stretch.upto).contains(seq)
                    && stretch.lanes.contains(&smallint(lane_of(message.key)))
                    && !message.settled
                    && self.committed(message).is_some()
            });
            let limit = usize::try_from(stretch.limit).unwrap();
            rows.extend(visible.take(limit).map(|(seq, message)| (lane_of(message.key), seq)));
        }
        let mut sighting = Sighting {
            snapshot: self.snapshot(),
            head: i64::try_from(self.messages.len()).unwrap(),
            xid: None,
            started: self.started,
        };
        if mark {
            let xid = self.begin();
            self.end(xid, true);
            sighting.xid = Some(xid as u64);
        }
        (sighting, rows)
    }
}

struct Simulation {
    server: Server,
    progress: Progress,
    open: Vec<usize>,
    now: Instant,
    /// Per key, the latest insertion among what was returned.
    newest: BTreeMap<u8, usize>,
    in_flight: Vec<RowRef>,
    settled: Vec<RowRef>,
    forgotten: Vec<RowRef>,
    questions: usize,
    stretches: usize,
    more: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Begin,
    Insert { slot: usize, key: u8, count: usize },
    End { slot: usize, commit: bool },
    Wait { millis: u64 },
    Read,
    Settle { count: usize },
    Forget { slot: usize },
    Regain { lane: Lane },
}

impl Simulation {
    fn new() -> Self {
        let mut progress = Progress::default();
        progress.lanes.gained(&[grant(0), grant(1)]);
        Self {
            server: Server::new(),
            progress,
            open: Vec::new(),
            now: Instant::now(),
            newest: BTreeMap::new(),
            in_flight: Vec::new(),
            settled: Vec::new(),
            forgotten: Vec::new(),
            questions: 0,
            stretches: 0,
            more: false,
        }
    }

    fn run(&mut self, step: &Step, rest: &mut std::slice::Iter<'_, Step>) {
        match *step {
            Step::Begin => self.open.push(self.server.begin()),
            Step::Insert { slot, key, count } => {
                if let Some(xid) = pick(&self.open, slot) {
                    for _ in 0..count {
                        self.server.insert(xid, key);
                    }
                }
            }
            Step::End { slot, commit } => {
                if let Some(xid) = pick(&self.open, slot) {
                    self.open.retain(|open| *open != xid);
                    self.server.end(xid, commit);
                }
            }
            Step::Wait { millis } => self.now += Duration::from_millis(millis),
            Step::Read => self.read(rest),
            Step::Settle { count } => {
                for _ in 0..count.min(self.in_flight.len()) {
                    let row_ref = self.in_flight.remove(0);
                    self.server.messages[index(row_ref.seq)].settled = true;
                    self.settled.push(row_ref);
                }
            }
            Step::Forget { slot } => {
                if !self.in_flight.is_empty() {
                    let row_ref = self.in_flight.remove(slot % self.in_flight.len());
                    self.server.messages[index(row_ref.seq)].in_flight = false;
                    self.forgotten.push(row_ref);
                }
            }
            Step::Regain { lane } => {
                self.progress.lanes.lost(&[lane]);
                self.progress.lanes.gained(&[grant(lane)]);
                for row_ref in self.in_flight.extract_if(.., |row_ref| row_ref.lane == lane) {
                    self.server.messages[index(row_ref.seq)].in_flight = false;
                }
                self.forgotten.retain(|row_ref| row_ref.lane != lane);
            }
        }
    }

    /// One call of the reader. When it has to ask twice, other steps happen in between.
    fn read(&mut self, rest: &mut std::slice::Iter<'_, Step>) {
        self.progress.lanes.begin(&ReadRequest {
            settled: std::mem::take(&mut self.settled),
            forgotten: std::mem::take(&mut self.forgotten),
            ..ReadRequest::default()
        });
        let mut attempt = self.progress.begin(self.now);
        let (head, rows) = loop {
            let (plan, mark) = self.progress.plan(&attempt, LIMIT);
            let (sighting, rows) = self.server.read(&plan, mark);
            self.questions += 1;
            self.stretches += usize::from(plan.stretch.is_some());
            if plan.stretch.is_some_and(|stretch| stretch.overflows(rows.len())) {
                self.progress.lanes.density = None;
                continue;
            }
            match self.progress.weigh(&mut attempt, &sighting) {
                Weighed::Use => break (sighting.head, rows),
                Weighed::AskAgain => {}
                Weighed::HistoryChanged => return self.lease_anew(),
            }
            if let Some(step @ (Step::Begin | Step::Insert { .. } | Step::End { .. })) = rest.as_slice().first() {
                rest.next();
                self.run(step, rest);
            }
        };
        let mut found = Found::new();
        for (lane, seq) in rows {
            found.entry(lane).or_insert(OfLane::first(seq)).add(seq);
            if self.progress.lanes.take(lane, seq, self.server.id_of(seq)) {
                self.returned(lane, seq);
            }
        }
        self.more = self
            .progress
            .lanes
            .finish(&found, &std::collections::BTreeMap::new(), LIMIT, head);
    }

    /// What a relay does when it is told that the history has changed.
    fn lease_anew(&mut self) {
        self.in_flight.clear();
        self.newest.clear();
        self.progress.lanes.lost(&[0, 1]);
        self.progress.lanes.gained(&[grant(0), grant(1)]);
        self.more = true;
    }

    /// The promise: nothing comes whose transaction had committed before something was inserted that came already.
    fn returned(&mut self, lane: Lane, seq: i64) {
        let message = &self.server.messages[index(seq)];
        let committed = self
            .server
            .committed(message)
            .expect("only committed messages are seen");
        assert!(!message.in_flight, "message {seq} came twice");
        let newest = self.newest.entry(message.key).or_insert(0);
        if !message.came {
            assert!(
                committed > *newest,
                "message {seq} of key {} came too late",
                message.key
            );
        }
        *newest = message.inserted.max(*newest);
        let message = &mut self.server.messages[index(seq)];
        (message.in_flight, message.came) = (true, true);
        self.in_flight.push(RowRef {
            table: Table::Ready,
            lane,
            seq,
            id: self.server.id_of(seq).into(),
            sink: None,
            locator: 0,
        });
    }

    fn play(&mut self, steps: &[Step]) {
        let mut rest = steps.iter();
        while let Some(step) = rest.next() {
            self.run(step, &mut rest);
        }
    }

    /// Everybody commits; then every message of a committed transaction has come, or comes now.
    fn finish(&mut self) {
        for xid in std::mem::take(&mut self.open) {
            self.server.end(xid, true);
        }
        self.more = true;
        for _ in 0..200 {
            if self.more || !self.forgotten.is_empty() {
                self.play(&[Step::Read, Step::Settle { count: 7 }]);
            }
        }
        assert!(!self.more, "there is no end to it");
        for (seq, message) in (1..).zip(&self.server.messages) {
            let due = self.server.committed(message).is_some();
            assert_eq!(message.came, due, "message {seq}, committed: {due}");
            assert!(
                !due || message.in_flight,
                "message {seq} was forgotten and did not come again"
            );
        }
    }
}

fn grant(lane: Lane) -> LaneGrant {
    LaneGrant {
        lane,
        epoch: 1,
        crashes: 0,
        quarantined: None,
    }
}

fn index(seq: i64) -> usize {
    usize::try_from(seq - 1).unwrap()
}

fn pick(open: &[usize], slot: usize) -> Option<usize> {
    (!open.is_empty()).then(|| open[slot % open.len()])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Begin),
        8 => (any::<usize>(), 0..KEYS, 1..9_usize).prop_map(|(slot, key, count)| Step::Insert { slot, key, count }),
        4 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(slot, commit)| Step::End { slot, commit }),
        4 => (0..200_u64).prop_map(|millis| Step::Wait { millis }),
        8 => Just(Step::Read),
        3 => (0..40_usize).prop_map(|count| Step::Settle { count }),
        1 => any::<usize>().prop_map(|slot| Step::Forget { slot }),
        1 => (0..2_u16).prop_map(|lane| Step::Regain { lane }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_committed_message_comes_once_and_no_key_is_turned_round(steps in prop::collection::vec(step(), 1..300)) {
        let mut simulation = Simulation::new();
        simulation.play(&steps);
        simulation.finish();
    }
}
