//! A small world: one dispatcher, the tables, and everything that can happen next.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::store::{At, Due, Tables, Why};
use super::*;

/// A row that was read: its number, and its sink if it is in the waiting table.
type Seen = (i64, Option<usize>);

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Commit,
    BeginRead,
    EndRead,
    Send(usize),
    Answer(usize, Answer),
    Settle,
    Settled(How),
    SettleRefused,
    Due(At),
    /// The lease is lost, and lanes are leased again. A settlement under way is written before, or never.
    LoseLease {
        written: bool,
    },
    GiveBack,
    GivenBack,
    Pause,
    Resume,
    ReadPauses,
    TimePasses,
    Discard(At),
    Recheck,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Delivered,
    Temporary,
    Permanent,
    Unknown,
    NotYet,
    NotSent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Written,
    AllRefused,
    LastRefused,
}

/// The messages of a world, and what may go wrong in it.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) on_failure: OnFailure,
    pub(super) sinks: &'static [&'static str],
    /// For each message, whether only the last sink gets it.
    pub(super) for_last: &'static [bool],
    pub(super) answers: &'static [Answer],
    pub(super) refusals: bool,
    pub(super) lost_leases: bool,
    pub(super) given_back: bool,
    pub(super) pauses: bool,
}

#[derive(Clone)]
pub(super) struct World {
    setup: &'static Setup,
    dispatcher: Dispatcher,
    tables: Tables,
    committed: usize,
    /// What the reader returned and was not settled.
    in_flight: BTreeSet<Seen>,
    page: Option<Vec<Seen>>,
    with_sink: Vec<(usize, Ticket, i64)>,
    settling: Option<Decided>,
    confirmed: BTreeSet<At>,
    /// Messages that others need not wait for.
    passed: BTreeSet<At>,
    now: Instant,
}

impl World {
    pub(super) fn new(setup: &'static Setup) -> Self {
        Self {
            setup,
            dispatcher: dispatcher_with(setup.on_failure, setup.sinks, 100),
            tables: Tables::default(),
            committed: 0,
            in_flight: BTreeSet::new(),
            page: None,
            with_sink: Vec::new(),
            settling: None,
            confirmed: BTreeSet::new(),
            passed: BTreeSet::new(),
            now: Instant::now(),
        }
    }

    /// Everything is delivered or dead, and nothing is in flight.
    pub(super) fn is_done(&self) -> bool {
        self.committed == self.setup.for_last.len()
            && self.tables.ready.is_empty()
            && self.tables.waiting.is_empty()
            && self.is_quiet()
    }

    fn is_quiet(&self) -> bool {
        self.dispatcher.in_flight() == 0
            && self.page.is_none()
            && self.with_sink.is_empty()
            && self.settling.is_none()
            && !self.dispatcher.has_settlements()
    }

    fn is_leaving(&self) -> bool {
        self.dispatcher.is_leaving()
    }

    /// Everything that may happen now.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut if_so = |so: bool, step: Step| steps.extend(so.then_some(step));
        if_so(self.committed < self.setup.for_last.len(), Step::Commit);
        if_so(self.page.is_none() && !self.is_leaving(), Step::BeginRead);
        if_so(self.page.is_some(), Step::EndRead);
        for sink in 0..self.setup.sinks.len() {
            if_so(!self.dispatcher.sinks[sink].queue.is_empty(), Step::Send(sink));
        }
        for at in 0..self.with_sink.len() {
            for answer in self.setup.answers {
                if_so(true, Step::Answer(at, *answer));
            }
        }
        let refused = self.dispatcher.next_refused().is_some();
        if_so(
            self.settling.is_none() && self.dispatcher.has_settlements(),
            Step::Settle,
        );
        if_so(self.settling.is_none() && refused, Step::SettleRefused);
        if let Some(decided) = &self.settling {
            if_so(true, Step::Settled(How::Written));
            if_so(self.setup.refusals, Step::Settled(How::AllRefused));
            let several = decided.entries.len() > 1;
            if_so(self.setup.refusals && several, Step::Settled(How::LastRefused));
        }
        for (at, (_, due)) in &self.tables.waiting {
            if_so(*due == Due::Later, Step::Due(*at));
        }
        if self.setup.lost_leases && !self.is_quiet() {
            if_so(true, Step::LoseLease { written: false });
            if_so(self.settling.is_some(), Step::LoseLease { written: true });
        }
        if_so(
            self.setup.given_back && !self.is_leaving() && !self.is_quiet(),
            Step::GiveBack,
        );
        if_so(!self.dispatcher.ready_to_leave().is_empty(), Step::GivenBack);
        if self.setup.pauses {
            if_so(!self.tables.paused, Step::Pause);
            if_so(self.tables.paused, Step::Resume);
            let known = !self.dispatcher.paused_topics.is_empty();
            if_so(
                known != self.tables.paused || self.dispatcher.is_in_doubt(),
                Step::ReadPauses,
            );
        }
        let is_shut = |sink: &SinkQueue| sink.breaker.shut_until(self.now).is_some();
        if_so(self.dispatcher.sinks.iter().any(is_shut), Step::TimePasses);
        for at in self.tables.dead.keys() {
            if_so(true, Step::Discard(*at));
            if_so(true, Step::Recheck);
        }
        steps
    }

    /// Lets something happen.
    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Commit => {
                self.committed += 1;
                self.tables.ready.insert(self.committed as i64);
            }
            Step::BeginRead => self.begin_read(),
            Step::EndRead => {
                let rows = self.page.take().unwrap_or_default();
                let rows = rows.into_iter().map(|seen| self.row_of(seen)).collect();
                self.dispatcher.take(rows, self.now);
            }
            Step::Send(sink) => self.send(sink),
            Step::Answer(at, answer) => self.answer(at, answer),
            Step::Settle => {
                let decided = self.dispatcher.take_settlements(100);
                self.settling = Some(decided).filter(|decided| !decided.entries.is_empty());
            }
            Step::SettleRefused => {
                let at = self.dispatcher.next_refused().unwrap();
                self.now = self.now.max(at);
                self.settling = self.dispatcher.take_refused(self.now);
            }
            Step::Settled(how) => self.settled(how),
            Step::Due(at) => self.tables.waiting.get_mut(&at).unwrap().1 = Due::Now,
            Step::LoseLease { written } => {
                let decided = self.settling.take().filter(|_| written);
                decided.map(|decided| self.tables.settle(&decided.settlements));
                for (sink, ..) in std::mem::take(&mut self.with_sink) {
                    self.dispatcher.dropped(sink);
                }
                self.lease_again();
            }
            Step::GiveBack => self.dispatcher.leave(&[1]),
            Step::GivenBack => self.lease_again(),
            Step::Pause => self.tables.paused = true,
            Step::Resume => {
                self.tables.paused = false;
                for row in self.tables.waiting.values_mut() {
                    if *row == (Why::Paused, Due::Later) {
                        row.1 = Due::Now;
                    }
                }
            }
            Step::ReadPauses => {
                let paused = [("topic".to_owned(), "t".to_owned())];
                let paused = if self.tables.paused { &paused[..] } else { &[] };
                self.dispatcher.pause(paused, self.now, self.now);
            }
            Step::TimePasses => self.now += Duration::from_secs(60),
            Step::Discard(at) => {
                self.tables.dead.remove(&at);
                self.passed.insert(at);
                self.tables.follow_on(at.1);
            }
            Step::Recheck => {
                let lanes = self.dispatcher.begin_recheck();
                self.dispatcher.recheck(&lanes, self.tables.blocked_keys());
            }
        }
        let dead = self.tables.dead.iter().filter(|(_, blocks)| !**blocks);
        let parked = self.tables.waiting.iter().filter(|(_, row)| row.0 == Why::Parked);
        self.passed
            .extend(dead.map(|(at, _)| *at).chain(parked.map(|(at, _)| *at)));
    }

    fn begin_read(&mut self) {
        self.dispatcher.begin_read();
        for row_ref in self
            .dispatcher
            .take_gone()
            .into_iter()
            .chain(self.dispatcher.take_forgotten())
        {
            let sink = row_ref.sink.as_deref();
            let sink = sink.and_then(|name| SINKS.iter().position(|sink| *sink == name));
            self.in_flight.remove(&(row_ref.seq, sink));
        }
        let ready = self.tables.ready.iter().map(|seq| (*seq, None));
        let due = self.tables.waiting.iter().filter(|(_, row)| row.1 == Due::Now);
        let found = ready.chain(due.map(|(at, _)| (at.0, Some(at.1))));
        let page: Vec<Seen> = found.filter(|seen| !self.in_flight.contains(seen)).collect();
        self.in_flight.extend(&page);
        self.page = (!page.is_empty()).then_some(page);
    }

    fn row_of(&self, (seq, sink): Seen) -> Row {
        let row_ref = RowRef {
            table: if sink.is_some() { Table::Waiting } else { Table::Ready },
            lane: 1,
            seq,
            id: sendoff::Uuid::from_u128(seq.unsigned_abs().into()).into(),
            sink: sink.map(|sink| SINKS[sink].into()),
            locator: 0,
        };
        let Row::Message(mut outgoing) = row_at(row_ref, Some("k")) else {
            unreachable!()
        };
        if self.setup.for_last[seq as usize - 1] {
            Arc::make_mut(&mut outgoing).topic = "last".to_owned();
        }
        Row::Message(outgoing)
    }

    /// Whether a message goes to a sink.
    fn goes_to(&self, seq: i64, sink: usize) -> bool {
        !self.setup.for_last[seq as usize - 1] || sink + 1 == self.setup.sinks.len()
    }

    fn send(&mut self, sink: usize) {
        let Some(batch) = self.dispatcher.next_batch(sink, self.now) else {
            return;
        };
        for (ticket, outgoing) in batch.tickets.into_iter().zip(batch.outgoing) {
            let seq = outgoing.row_ref.seq;
            let others = self.with_sink.iter().filter(|(other, ..)| *other == sink);
            assert_eq!(others.count(), 0, "{seq} is with the sink {sink} beside another one");
            for before in (1..seq).filter(|before| self.goes_to(*before, sink)) {
                let at = (before, sink);
                let is_over = self.confirmed.contains(&at) || self.passed.contains(&at);
                assert!(is_over, "{seq} overtakes {before} at the sink {sink}");
            }
            self.with_sink.push((sink, ticket, seq));
        }
    }

    fn answer(&mut self, at: usize, answer: Answer) {
        let (sink, ticket, seq) = self.with_sink.remove(at);
        let outcome = match answer {
            Answer::NotSent => {
                self.dispatcher.dropped(sink);
                return self.dispatcher.not_sent(ticket);
            }
            Answer::Delivered => {
                self.confirmed.insert((seq, sink));
                Outcome::Delivered
            }
            Answer::Temporary => Outcome::Temporary("no".into()),
            Answer::Permanent => Outcome::Permanent("no".into()),
            Answer::Unknown => Outcome::Unknown("silence".into()),
            Answer::NotYet => Outcome::NotYet("early".into()),
        };
        let outcomes = [outcome];
        self.dispatcher.begin_answers(sink, &outcomes, self.now);
        let [outcome] = outcomes;
        self.dispatcher.outcome(sink, ticket, outcome, self.now);
        self.dispatcher.answered(sink);
    }

    fn settled(&mut self, how: How) {
        let decided = self.settling.take().unwrap();
        let count = decided.settlements.len();
        let written = match how {
            How::Written => count,
            How::AllRefused => 0,
            How::LastRefused => count - 1,
        };
        let report = self.tables.settle(&decided.settlements[..written]);
        let written = crate::relay::settle::Written {
            report,
            refused: (written..count).collect(),
            refusal: None,
        };
        self.dispatcher.settled(decided, &written, self.now);
    }

    fn lease_again(&mut self) {
        self.dispatcher.lose(&[1]);
        let _ = (self.dispatcher.take_gone(), self.dispatcher.take_forgotten());
        self.in_flight.clear();
        self.page = None;
        let blocked = self.tables.blocked_keys();
        self.dispatcher.gain(&[grant_after_crashes(0)], blocked, self.now);
    }

    /// Two worlds with the same number behave the same. Times and counters that grow are left out.
    pub(super) fn fingerprint(&self) -> (u64, u64) {
        let code = self.code();
        let hash = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            (salt, &code).hash(&mut hasher);
            (&self.tables, self.committed, &self.in_flight, &self.page).hash(&mut hasher);
            (&self.confirmed, &self.passed).hash(&mut hasher);
            hasher.finish()
        };
        (hash(0), hash(1))
    }

    fn code(&self) -> Vec<i64> {
        let dispatcher = &self.dispatcher;
        let row = |row_ref: &RowRef| {
            let sink = row_ref
                .sink
                .as_deref()
                .map_or(0, |sink| if sink == SINKS[0] { 1 } else { 2 });
            row_ref.seq * 100 + sink * 10
        };
        let ticket = |ticket: Ticket| {
            let entry = dispatcher.entries.get(ticket.entry);
            entry.map_or(-1, |entry| row(&entry.outgoing.row_ref) + ticket.delivery as i64)
        };
        let mut code = Vec::with_capacity(64);
        let mut list = |items: &mut dyn Iterator<Item = i64>| {
            code.extend(items);
            code.push(i64::MIN);
        };
        let mut entries: Vec<&Entry> = dispatcher.entries.values().collect();
        entries.sort_by_key(|entry| row(&entry.outgoing.row_ref));
        for entry in entries {
            let deliveries = entry.deliveries.iter().map(|delivery| {
                let flags = i64::from(delivery.with_sink) + 2 * i64::from(delivery.at_sink);
                flags * 100 + delivery.verdict.as_ref().map_or(0, verdict_code)
            });
            list(&mut [row(&entry.outgoing.row_ref)].into_iter().chain(deliveries));
        }
        for sink in &dispatcher.sinks {
            // A ticket that outlived its message is passed over.
            let queued = sink.queue.iter().map(|queued| ticket(*queued));
            list(&mut queued.filter(|queued| *queued >= 0));
            list(&mut [sink.breaker.shape(self.now), i64::from(sink.paused)].into_iter());
        }
        let doubts = dispatcher.doubts.iter().map(|doubt| ticket(*doubt));
        list(&mut doubts.filter(|doubt| *doubt >= 0));
        list(
            &mut dispatcher
                .lanes
                .values()
                .map(|lane| i64::from(lane.leaving) + 2 * lane.in_flight as i64),
        );
        list(&mut [dispatcher.paused_topics.len() as i64].into_iter());
        list(&mut dispatcher.gone.iter().map(row));
        list(&mut dispatcher.forgotten.iter().map(row));
        list(
            &mut self
                .with_sink
                .iter()
                .map(|(sink, sent, _)| ticket(*sent) * 10 + *sink as i64),
        );
        let refused = dispatcher.refused.decided();
        for decided in [Some(&dispatcher.to_settle), Some(refused), self.settling.as_ref()] {
            let settlements = decided.into_iter().flat_map(|decided| &decided.settlements);
            list(&mut settlements.flat_map(|settlement| {
                let verdicts = settlement.deliveries.iter().map(|sink| verdict_code(&sink.verdict));
                [row(&settlement.row_ref)].into_iter().chain(verdicts)
            }));
        }
        list(&mut dispatcher.order.code(ticket).into_iter());
        list(&mut [i64::from(dispatcher.refused.has_dropped())].into_iter());
        code
    }
}

fn verdict_code(verdict: &Verdict) -> i64 {
    match verdict {
        Verdict::Delivered => 1,
        Verdict::Retry { state, delay, .. } => {
            let state = match state {
                RetryState::Retry => 2,
                RetryState::Deferred => 4,
                RetryState::Parked => 6,
            };
            state + i64::from(delay.is_zero())
        }
        Verdict::Paused { .. } => 8,
        Verdict::Blocked => 9,
        Verdict::Dead { blocks, .. } => 10 + i64::from(*blocks),
    }
}
