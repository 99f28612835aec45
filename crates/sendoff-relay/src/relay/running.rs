//! A running relay: one loop that starts work, waits for results, and never blocks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustc_hash::FxHashMap;
use sendoff::store::{History, RelayStore};
use sendoff::{Error, ErrorKind, Result, Waker};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Relay;
use super::figures::FigureBook;
use super::hand_over::HandOver;
use super::health::Watched;
use super::state::{Ending, Holding, Janitors, Others, Pace, Pauses, Reading, Registration, UnderWay};
use super::trouble::{Step, Trouble};
use crate::dispatcher::Dispatcher;
use crate::report::RunReport;
use crate::settings::Settings;

/// The shortest pause between two polls, used while there is work.
pub(super) const BUSY_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause while the store cannot be reached.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Running {
    pub(super) store: Arc<dyn RelayStore>,
    pub(super) settings: Settings,
    pub(super) waker: Waker,
    pub(super) stop: CancellationToken,
    pub(super) once: bool,

    pub(super) dispatcher: Dispatcher,
    pub(super) registration: Registration,
    pub(super) under_way: UnderWay,
    pub(super) holding: Holding,
    /// The history of the database as the last heartbeat saw it.
    pub(super) history: Option<History>,
    pub(super) others: Others,
    pub(super) pauses: Pauses,
    pub(super) reading: Reading,
    pub(super) pace: Pace,
    pub(super) janitors: Janitors,
    pub(super) trouble: Trouble,
    pub(super) ending: Ending,
    pub(super) watched: Watched,
    pub(super) figures: FigureBook,
}

impl Running {
    /// Registers with the store. A daemon waits for a store that cannot be reached; a one-shot run does not.
    pub(super) async fn registered(relay: Relay, stop: CancellationToken, once: bool) -> Result<Self> {
        let owner = (relay.owners)();
        let card = relay.card();
        let (mut trouble, mut attempted) = (Trouble::default(), Instant::now());
        let sent = loop {
            let sent = Instant::now();
            match relay.store.register(owner, &card, relay.settings.lease).await {
                Ok(()) => break sent,
                Err(error) if error.is_temporary() && !once => {
                    attempted = trouble.failed(Step::Heartbeat, &error, Instant::now());
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => {
                            let what = "the relay was stopped before it could reach the database";
                            return Err(Error::new(ErrorKind::Unreachable, what).with_source(error));
                        }
                        () = sleep_until(attempted) => {}
                    }
                }
                Err(error) => return Err(error),
            }
        };
        let now = Instant::now();
        trouble.succeeded(Step::Heartbeat, attempted, now);
        let rng = relay
            .settings
            .seed
            .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let watched = Watched::new(now, relay.hooks.is_observed(), relay.wakes_in_process);
        let own_routes = relay.plan.published_routes();
        let figures = FigureBook::new(now, relay.plan.sinks.len(), once);
        let mut dispatcher = Dispatcher::new(relay.plan, relay.hooks, rng, &relay.settings);
        dispatcher.keeps_delivered = relay.store.keeps_delivered();
        tracing::info!(
            event = "relay_started", owner = %owner, name = card.name, config = card.config,
            "relay started"
        );
        Ok(Self {
            registration: Registration {
                owner,
                owners: relay.owners,
                card,
                former: Vec::new(),
                lease: watch::channel(sent + publishing_time(relay.settings.lease)).0,
                next_beat: now,
                beat_sent: sent,
            },
            under_way: UnderWay::nothing(dispatcher.sink_count()),
            holding: Holding::default(),
            history: None,
            others: Others {
                own: own_routes,
                known: FxHashMap::default(),
                hand_over: HandOver::default(),
            },
            pauses: Pauses::default(),
            reading: Reading::new(relay.store.reader(), now),
            pace: Pace::new(now),
            janitors: Janitors::new(&relay.settings, now),
            trouble,
            ending: Ending::default(),
            watched,
            figures,
            dispatcher,
            store: relay.store,
            settings: relay.settings,
            waker: relay.waker,
            stop,
            once,
        })
    }

    /// Works until it is stopped, and stops cleanly.
    ///
    /// # Errors
    /// When a one-shot run cannot do its work.
    pub(super) async fn work(mut self) -> Result<RunReport> {
        self.listen();
        loop {
            let now = Instant::now();
            self.tell_health(now);
            self.start_what_can_be_started(now);
            if self.is_done(now) {
                break;
            }
            let wake_at = self.next_wake(now);
            // The order is fixed so that simulations are repeatable. Nothing starves: a wake-up that waits behind results
            // only asks for a read, and every round starts the work that is due.
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if self.ending.stopping.is_none() => self.begin_to_stop(),
                Some(joined) = self.under_way.tasks.join_next(), if !self.under_way.tasks.is_empty() => match joined {
                    Ok(event) => self.handle(event),
                    // Stores must not panic. If one does, the lease expires and other relays take over.
                    Err(error) if error.is_panic() => {
                        tracing::error!(
                            event = "task_panicked", %error,
                            "store panicked; the relay gives up its lanes and registers again"
                        );
                        self.start_anew();
                    }
                    Err(_) => {}
                },
                () = self.waker.woken(), if self.ending.stopping.is_none() => {
                    self.pace.poll_pause = BUSY_PAUSE;
                    self.pace.next_poll = Instant::now();
                }
                () = sleep_until(wake_at) => {}
            }
        }
        let failure = self.ending.failure.take();
        let report = self.deregister().await;
        failure.map_or(Ok(report), Err)
    }

    /// The second wake source: notifications of the database, if the store has them.
    fn listen(&mut self) {
        if self.once {
            return;
        }
        let (store, waker, stop) = (self.store.clone(), self.waker.clone(), self.stop.clone());
        let listening = self.watched.listening.clone();
        tokio::spawn(async move {
            let work = async {
                loop {
                    match store.listen().await {
                        Ok(None) => return,
                        Ok(Some(mut source)) => {
                            listening.store(true, Ordering::Relaxed);
                            while source.woken().await.is_ok() {
                                waker.wake();
                            }
                            listening.store(false, Ordering::Relaxed);
                        }
                        Err(error) => {
                            tracing::debug!(
                                event = "listen_failed", %error,
                                "cannot listen for notifications; the relay only polls"
                            );
                        }
                    }
                    sleep(LONGEST_PAUSE).await;
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
    }

    pub(super) fn begin_to_stop(&mut self) {
        tracing::info!(
            event = "relay_stopping",
            in_flight = self.dispatcher.in_flight(),
            "stopping; waiting for sinks to confirm messages in flight"
        );
        self.ending.stopping = Some(Instant::now() + self.settings.drain_timeout);
        self.dispatcher.put_down_all();
    }

    fn is_done(&mut self, now: Instant) -> bool {
        let busy = self.under_way.with_sink.iter().any(|count| *count > 0)
            || self.under_way.settle
            || self.dispatcher.has_settlements();
        if let Some(deadline) = self.ending.stopping {
            return now >= deadline || !busy;
        }
        if self.once
            && self.ending.settled_in
            && self.reading.found_nothing
            && !busy
            && self.dispatcher.in_flight() == 0
            && !self.under_way.quarantine
        {
            return self.reading.reader.is_some() && self.reading.unsure_page.is_none();
        }
        false
    }

    /// When the loop runs again if nothing happens before. Work under way needs no timer: it wakes the relay when it ends.
    fn next_wake(&self, now: Instant) -> Instant {
        let mut at = now + LONGEST_PAUSE;
        if !self.under_way.beat {
            at = at.min(self.trouble.until(Step::Heartbeat, self.registration.next_beat));
        }
        if let Some(deadline) = self.ending.stopping {
            at = at.min(deadline);
        } else {
            if !self.under_way.sweep {
                at = at.min(self.janitors.next_sweep);
            }
            if !self.under_way.clean && !self.once {
                at = at.min(self.janitors.next_clean);
            }
            if self.can_read() && now < *self.registration.lease.borrow() {
                at = at.min(self.trouble.until(Step::Read, self.pace.next_poll));
            }
            if let Some(figures) = self.figures.next() {
                at = at.min(self.trouble.until(Step::Figures, figures));
            }
            if let Some(probe) = self.dispatcher.next_probe(now) {
                at = at.min(probe);
            }
        }
        if let Some(retry) = self.trouble.next(now) {
            at = at.min(retry);
        }
        if let Some(refused) = self.dispatcher.next_refused().filter(|_| !self.under_way.settle) {
            at = at.min(refused);
        }
        at = self.watched.next().map_or(at, |relay_health| at.min(relay_health));
        // Work that is due but cannot be done yet must not make this a busy loop.
        if at <= now { now + BUSY_PAUSE } else { at }
    }

    /// Gives all lanes back. Work still under way is dropped; the relay that takes the lanes delivers it again.
    async fn deregister(mut self) -> RunReport {
        self.under_way.tasks.abort_all();
        while self.under_way.tasks.join_next().await.is_some() {}
        let patience = self.settings.lease.min(Duration::from_secs(5));
        match tokio::time::timeout(patience, self.store.deregister(self.registration.owner)).await {
            Ok(Ok(())) => tracing::info!(event = "relay_stopped", "relay stopped; its lanes are released"),
            Ok(Err(error)) => {
                tracing::warn!(
                    event = "deregister_failed", %error,
                    "cannot deregister; the lanes are free when the lease expires"
                );
            }
            Err(_) => tracing::warn!(
                event = "deregister_failed",
                "cannot deregister: no answer; the lanes are free when the lease expires"
            ),
        }
        self.dispatcher.report
    }
}

/// How long after a heartbeat was sent a relay may publish: a little less than the lease, so that it has stopped before
/// another relay can take over.
pub(super) fn publishing_time(lease: Duration) -> Duration {
    lease - lease / 20
}
