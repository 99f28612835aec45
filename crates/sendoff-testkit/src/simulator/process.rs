//! Processes that run a relay: started, stood still, told to stop, killed.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use sendoff::store::OwnerId;
use sendoff::{Result, Uuid};
use sendoff_relay::{
    Observer, OnFailure, Relay, RelayHealth, RetryPolicy, RunReport, Settings, SinkSettings, TopicPolicy,
};
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::SINKS;
use super::sink::FarSide;
use super::store::Far;
use super::verdict::Rule;
use super::world::{LEASE, World};

/// How many attempts a message has that does not say it itself.
pub(super) const ATTEMPTS: u32 = 4;
/// How long a sink may take.
pub(super) const SINK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a relay that is to stop waits for its sinks.
const DRAIN: Duration = Duration::from_secs(3);

/// A process, for the time of one life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) slot: usize,
    pub(super) life: u32,
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}.{}", self.slot, self.life)
    }
}

pub(super) struct Process {
    life: u32,
    stop: CancellationToken,
    task: Option<AbortHandle>,
    pub(super) running: bool,
    /// It was told to stop.
    pub(super) told: bool,
    pub(super) frozen_until: Instant,
    /// A call of it is never answered.
    pub(super) stuck: bool,
    /// Until when its lease lasts at most, by what it was told.
    pub(super) leased_until: Option<Instant>,
    /// What it knows to be paused, and since when.
    pub(super) paused: Vec<(String, String)>,
    pub(super) paused_since: Instant,
    /// What it said of itself last.
    pub(super) relay_health: Option<RelayHealth>,
    pub(super) owners: Vec<OwnerId>,
    /// Since when it has the last of them.
    pub(super) owned_since: Instant,
}

impl Process {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            life: 0,
            stop: CancellationToken::new(),
            task: None,
            running: false,
            told: false,
            frozen_until: now,
            stuck: false,
            leased_until: None,
            paused: Vec::new(),
            paused_since: now,
            owned_since: now,
            relay_health: None,
            owners: Vec::new(),
        }
    }

    fn born(&mut self, slot: usize) -> (Seat, CancellationToken) {
        *self = Self {
            life: self.life + 1,
            running: true,
            ..Self::new(Instant::now())
        };
        let seat = Seat { slot, life: self.life };
        (seat, self.stop.clone())
    }
}

impl World {
    /// Starts the process of a slot, unless it runs.
    pub(super) fn start(self: &Arc<Self>, slot: usize) {
        let mut state = self.state();
        if state.processes[slot].running || state.violation.is_some() {
            return;
        }
        let (seat, stop) = state.processes[slot].born(slot);
        let seed = state.rng.u64(..);
        drop(state);
        self.log(|| format!("{seat} starts"));
        let relay = match self.relay(seat, seed) {
            Ok(relay) => relay,
            Err(error) => return self.broken(Rule::Survives, format!("{seat} cannot be built: {error}")),
        };
        let running = Freezing {
            world: self.clone(),
            seat,
            inner: Box::pin(relay.run(stop)),
            rest: None,
        };
        let world = self.clone();
        let task = tokio::spawn(async move {
            let ended = AssertUnwindSafe(running).catch_unwind().await;
            world.ended(seat, ended);
        });
        self.state().processes[slot].task = Some(task.abort_handle());
    }

    fn relay(self: &Arc<Self>, seat: Seat, seed: u64) -> Result<Relay> {
        let policy = |head| TopicPolicy {
            retry: RetryPolicy {
                base: Duration::from_millis(200),
                multiplier: 2.0,
                max: Duration::from_secs(1),
                jitter: 0.1,
                attempts: ATTEMPTS,
            },
            on_failure: head,
        };
        let settings = Settings {
            lease: LEASE,
            heartbeat: Duration::from_secs(1),
            batch: self.plan.window / 2,
            max_in_flight: self.plan.window,
            idle_time: Duration::from_millis(500),
            sweep: Duration::from_secs(3),
            drain_timeout: DRAIN,
            crash_limit: self.plan.crash_limit,
            seed: Some(seed),
            ..Settings::default()
        };
        let mut builder = Relay::builder(Arc::new(Far::new(self.clone(), seat)))
            .name(seat.to_string())
            .settings(settings)
            .default_policy(policy(OnFailure::Block))
            .topic(self.patterns.skip.clone(), policy(OnFailure::Skip))
            .topic(self.patterns.park.clone(), policy(OnFailure::Park));
        let world = self.clone();
        builder = builder.owners(move || world.new_owner(seat));
        for (number, name) in SINKS.iter().enumerate() {
            let called = SinkSettings {
                batch: self.plan.batch,
                concurrency: 2,
                timeout: SINK_TIMEOUT,
                rate: None,
            };
            let sink = Arc::new(FarSide::new(self.clone(), seat, number));
            builder = builder.sink(*name, sink).sink_settings(*name, called);
        }
        for (pattern, sinks) in &self.patterns.routes {
            builder = builder.route(pattern.clone(), sinks.iter().copied());
        }
        // In the end all know all routes, as when a new configuration has reached every host, unless they differ for good.
        let differ = self.plan.routes_differ && (self.plan.routes_stay || self.state().faulty);
        if seat.slot == 0 || !differ {
            builder = builder.route(self.patterns.somewhere.clone(), [SINKS[0]]);
        }
        if self.plan.observed {
            builder = builder.observer(Arc::new(Watching(self.clone(), seat)));
        }
        builder.build()
    }

    fn new_owner(&self, seat: Seat) -> OwnerId {
        let mut state = self.state();
        let owner = OwnerId(Uuid::from_u128(state.rng.u128(..)));
        let process = &mut state.processes[seat.slot];
        if process.life == seat.life {
            process.owners.push(owner);
            process.leased_until = None;
            process.owned_since = Instant::now();
        }
        drop(state);
        self.log(|| format!("{seat} is {owner}"));
        owner
    }

    /// The process ends at once, and gives nothing back.
    pub(super) fn kill(self: &Arc<Self>, slot: usize, why: &str, again: Duration) {
        let mut state = self.state();
        let process = &mut state.processes[slot];
        if !process.running {
            return;
        }
        process.running = false;
        let seat = Seat {
            slot,
            life: process.life,
        };
        if let Some(task) = &process.task {
            task.abort();
        }
        drop(state);
        self.log(|| format!("{seat} is killed: {why}"));
        self.count_kill(seat);
        self.start_later(seat, again);
    }

    /// The process is told to stop.
    pub(super) fn stop(&self, slot: usize) {
        let mut state = self.state();
        let process = &mut state.processes[slot];
        process.told = true;
        process.stop.cancel();
        let life = process.life;
        drop(state);
        self.log(|| format!("{} is told to stop", Seat { slot, life }));
    }

    /// The process is told to stop, and started again later.
    pub(super) fn stop_and_start(self: &Arc<Self>, slot: usize, again: Duration) {
        self.stop(slot);
        let life = self.life(slot);
        self.start_later(Seat { slot, life }, again);
    }

    /// Starts a process again, once it has ended.
    pub(super) fn start_later(self: &Arc<Self>, seat: Seat, after: Duration) {
        let world = self.clone();
        tokio::spawn(async move {
            sleep(after).await;
            while world.state().processes[seat.slot].running && world.life(seat.slot) == seat.life {
                sleep(Duration::from_millis(100)).await;
            }
            if world.life(seat.slot) == seat.life {
                world.start(seat.slot);
            }
        });
    }

    pub(super) fn life(&self, slot: usize) -> u32 {
        self.state().processes[slot].life
    }

    /// The process stands still, and goes on as if nothing had been.
    pub(super) fn freeze(&self, slot: usize, for_: Duration) {
        self.log(|| format!("P{slot} stands still for {for_:?}"));
        // No longer than there are faults.
        let until = (Instant::now() + for_).min(self.began + self.plan.ends);
        self.state().processes[slot].frozen_until = until;
    }

    /// Lanes that are still a process's when it ended have seen a crash.
    fn count_kill(&self, seat: Seat) {
        let mut state = self.state();
        let owners = state.processes[seat.slot].owners.clone();
        for (lane, kills) in (0..).zip(&mut state.kills) {
            let owner = self.store.owner_of(lane);
            *kills += u32::from(owner.is_some_and(|owner| owners.contains(&owner)));
        }
        state.progress = Instant::now();
    }

    fn ended(&self, seat: Seat, ended: std::result::Result<Result<RunReport>, Box<dyn Any + Send>>) {
        let mut state = self.state();
        let process = &mut state.processes[seat.slot];
        if process.life != seat.life {
            return;
        }
        process.running = false;
        let told = process.told;
        drop(state);
        self.count_kill(seat);
        match ended {
            Ok(Ok(report)) if told => self.log(|| format!("{seat} has stopped: {report:?}")),
            Ok(Ok(_)) => self.broken(Rule::Survives, format!("{seat} stopped by itself")),
            // It had not even begun.
            Ok(Err(error)) if told && error.is_temporary() => {
                // If it is registered, an answer was lost.
                self.state().processes[seat.slot].owners.clear();
                self.log(|| format!("{seat} has stopped: {error}"));
            }
            Ok(Err(error)) => self.broken(Rule::Survives, format!("{seat} failed: {error}")),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                let text = text.unwrap_or_default();
                self.broken(Rule::Survives, format!("{seat} panicked: {text}"));
            }
        }
    }
}

/// A relay that is not polled while its process stands still.
struct Freezing {
    world: Arc<World>,
    seat: Seat,
    inner: Pin<Box<dyn Future<Output = Result<RunReport>> + Send>>,
    rest: Option<Pin<Box<Sleep>>>,
}

impl Future for Freezing {
    type Output = Result<RunReport>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let until = self.world.state().processes[self.seat.slot].frozen_until;
            if until <= Instant::now() {
                self.rest = None;
                return self.inner.as_mut().poll(context);
            }
            let rest = self.rest.insert(Box::pin(sleep_until(until)));
            if rest.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

struct Watching(Arc<World>, Seat);

impl Observer for Watching {
    fn relay_health(&self, relay_health: &RelayHealth) {
        let mut state = self.0.state();
        let process = &mut state.processes[self.1.slot];
        if process.life == self.1.life {
            process.relay_health = Some(relay_health.clone());
        }
    }
}
