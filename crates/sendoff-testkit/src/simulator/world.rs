//! What all parts of a simulation share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use sendoff::{Pattern, Uuid};
use tokio::time::Instant;

use super::ledger::{Ledger, MessageNo};
use super::process::Process;
use super::verdict::{Rule, Violation};
use super::{Plan, SINKS};
use crate::MemoryStore;

/// How long lanes stay with a relay that is not heard of.
pub(super) const LEASE: Duration = Duration::from_secs(4);

pub(super) struct World {
    pub(super) store: MemoryStore,
    pub(super) plan: Plan,
    pub(super) began: Instant,
    pub(super) patterns: Patterns,
    logged: bool,
    state: Mutex<State>,
}

/// Patterns that are used again and again: parsing them takes longer than a relay takes to start.
#[derive(Clone)]
pub(super) struct Patterns {
    pub(super) routes: Vec<(Pattern, Vec<&'static str>)>,
    pub(super) somewhere: Pattern,
    pub(super) skip: Pattern,
    pub(super) park: Pattern,
}

pub(super) struct State {
    pub(super) rng: Rng,
    pub(super) ledger: Ledger,
    pub(super) violation: Option<Violation>,
    log: Option<Vec<String>>,
    /// Until then faults happen.
    pub(super) faulty: bool,
    /// From then on nothing is wrong with any message.
    pub(super) healed: bool,
    pub(super) store_down_until: Instant,
    pub(super) sinks_down_until: [Instant; SINKS.len()],
    /// When a failover or the database's clock last made leases void.
    pub(super) disturbed: Option<Instant>,
    pub(super) processes: Vec<Process>,
    /// Messages with a sink: which call has them.
    pub(super) with_sink: BTreeMap<u64, WithSink>,
    pub(super) calls: u64,
    pub(super) publications: u64,
    /// When something last went forward.
    pub(super) progress: Instant,
    /// How often owners of each lane were killed.
    pub(super) kills: Vec<u32>,
    pub(super) failed_over: bool,
    /// When a relay was last told that none lives which has the routes that the others lack.
    pub(super) no_route: Option<Instant>,
}

/// A call of a sink that is under way.
pub(super) struct WithSink {
    pub(super) sink: usize,
    pub(super) messages: Vec<MessageNo>,
}

impl World {
    pub(super) fn new(plan: Plan, store: MemoryStore, patterns: Patterns, logged: bool) -> Arc<Self> {
        let now = Instant::now();
        let lanes = usize::from(sendoff::store::RelayStore::lanes(&store));
        let state = State {
            rng: Rng::with_seed(plan.seed),
            ledger: Ledger::default(),
            violation: None,
            log: logged.then(Vec::new),
            faulty: true,
            healed: false,
            store_down_until: now,
            sinks_down_until: [now; SINKS.len()],
            disturbed: None,
            processes: (0..plan.relays).map(|_| Process::new(now)).collect(),
            with_sink: BTreeMap::new(),
            calls: 0,
            publications: 0,
            progress: now,
            kills: vec![0; lanes],
            failed_over: false,
            no_route: None,
        };
        Arc::new(Self {
            store,
            plan,
            began: now,
            patterns,
            logged,
            state: Mutex::new(state),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the beginning.
    pub(super) fn ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Writes a line down, if that was asked for. It may look at the state itself.
    pub(super) fn log(&self, line: impl FnOnce() -> String) {
        if self.logged {
            let (at, line) = (self.ms(), line());
            self.state().note(at, || line);
        }
    }

    pub(super) fn broken(&self, rule: Rule, what: impl Into<String>) {
        let at = self.ms();
        self.state().broken(at, rule, what);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.state().violation.is_some()
    }

    pub(super) fn take_log(&self) -> Vec<String> {
        self.state().log.take().unwrap_or_default()
    }

    pub(super) fn name_of(&self, id: Uuid) -> String {
        let state = self.state();
        let n = state.ledger.find(id);
        n.map_or_else(|| id.to_string(), |n| state.ledger.name(n))
    }
}

impl State {
    pub(super) fn note(&mut self, at: u64, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(format!("{at:>8} {}", line()));
        }
    }

    /// The first rule that is broken counts: others may follow from it.
    pub(super) fn broken(&mut self, at: u64, rule: Rule, what: impl Into<String>) {
        let what = what.into();
        self.note(at, || format!("!! {rule:?}: {what}"));
        self.violation.get_or_insert(Violation { rule, what, at });
    }

    /// Whether what only one relay has a route for may just have been taken for unroutable: then it holds up nobody.
    pub(super) fn may_have_no_route(&self) -> bool {
        self.no_route.is_some_and(|at| at.elapsed() <= LEASE * 2)
    }

    /// Whether leases may have been void in the time of a lease before now.
    pub(super) fn is_disturbed(&self) -> bool {
        self.disturbed.is_some_and(|at| at.elapsed() <= LEASE * 2)
    }
}
