//! A relay at work: one loop that starts work, waits for what comes back, and never blocks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustc_hash::FxHashMap;
use sendoff::store::{History, Lane, LaneGrant, OwnerId, Reader, RelayCard, RelayStore, Routes, Row};
use sendoff::{Error, ErrorKind, Result, Waker};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::janitors::RECHECK_PAUSE;
use super::pulse::Watched;
use super::trouble::{Step, Trouble};
use super::{Owners, Relay};
use crate::desk::Desk;
use crate::follow::Followers;
use crate::report::RunReport;
use crate::settings::Settings;

/// The shortest pause between two polls: while there is work.
pub(super) const BUSY_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause while the store cannot be reached.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Running {
    pub(super) store: Arc<dyn RelayStore>,
    pub(super) owner: OwnerId,
    pub(super) owners: Owners,
    pub(super) card: RelayCard,
    /// Names under which this relay lost its lease, until the store knows that it lives.
    pub(super) former: Vec<OwnerId>,
    pub(super) retiring: bool,
    pub(super) trouble: Trouble,
    pub(super) settings: Settings,
    pub(super) desk: Desk,
    pub(super) waker: Waker,
    pub(super) stop: CancellationToken,
    pub(super) tasks: JoinSet<Event>,

    /// Until when this relay may publish, by its own monotonic clock.
    pub(super) lease: watch::Sender<Instant>,
    pub(super) next_beat: Instant,
    pub(super) beating: bool,
    /// When the last heartbeat was sent that came back.
    pub(super) beat_sent: Instant,
    /// Routes of other relays, by the hash of their configuration.
    pub(super) known_routes: FxHashMap<String, Routes>,
    pub(super) acquiring: bool,
    pub(super) releasing: bool,
    /// Whether lanes may be held by this relay that it does not know of, because an answer was lost.
    pub(super) unsure: bool,
    /// The history of the database as the last heartbeat saw it.
    pub(super) history: Option<History>,
    /// A heartbeat has seen another history. The reader is going to, as well.
    pub(super) reader_is_behind: bool,
    /// Lanes that are being asked for were leased in another history: this one may not know of it.
    pub(super) void_grants: bool,
    /// Lanes that are on their way back were given back in another history: this one may not know of it.
    pub(super) void_release: bool,
    /// Whether lanes are given back to be leased anew.
    pub(super) anew: bool,
    /// Whether the first try to get lanes is behind us.
    pub(super) settled_in: bool,

    pub(super) asking: bool,
    /// Ask what is paused.
    pub(super) ask_soon: bool,
    /// Nothing is read before it is known what is paused.
    pub(super) pauses_known: bool,

    /// At home, or away reading.
    pub(super) reader: Option<Box<dyn Reader>>,
    /// A page with a message that has no route here, and maybe one at another relay.
    pub(super) unsure_page: Option<Vec<Row>>,
    pub(super) gained: Vec<LaneGrant>,
    pub(super) lost: Vec<Lane>,
    pub(super) next_poll: Instant,
    pub(super) poll_pause: Duration,
    pub(super) next_due: Instant,
    pub(super) row_bytes: usize,
    /// Which part of a page is asked for: all of it, unless reads failed.
    pub(super) page_part: usize,
    /// The read that is under way, or was last, looks at both tables.
    pub(super) looks_everywhere: bool,
    pub(super) looks_at_ready: bool,
    /// When it began.
    pub(super) read_begun: Instant,
    /// It found nothing there.
    pub(super) found_nothing: bool,

    pub(super) with_sink: Vec<usize>,
    pub(super) followers: Followers,
    pub(super) settling: bool,
    pub(super) suspecting: bool,
    pub(super) next_sweep: Instant,
    pub(super) sweeping: bool,
    pub(super) next_recheck: Instant,
    pub(super) rechecking: bool,
    pub(super) next_clean: Instant,
    pub(super) cleaning: bool,
    /// How many rows were settled since cleaning began.
    pub(super) settled_meanwhile: usize,

    pub(super) once: bool,
    /// What keeps a run that is to end by itself from doing its work.
    pub(super) failure: Option<Error>,
    pub(super) stopping: Option<Instant>,
    pub(super) watched: Watched,
}

impl Running {
    /// Registers with the store. A daemon waits for a store that cannot be reached; a one-shot run does not.
    pub(super) async fn enlisted(relay: Relay, stop: CancellationToken, once: bool) -> Result<Self> {
        let owner = (relay.owners)();
        let card = relay.card();
        let (mut trouble, mut attempted) = (Trouble::default(), Instant::now());
        let sent = loop {
            let sent = Instant::now();
            match relay.store.enlist(owner, &card, relay.settings.lease).await {
                Ok(()) => break sent,
                Err(error) if error.is_temporary() && !once => {
                    attempted = trouble.failed(Step::Heartbeat, &error, Instant::now());
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => {
                            return Err(Error::new(ErrorKind::Unreachable, "stopped before the store could be reached")
                                .with_source(error));
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
        let watched = Watched::new(now, relay.hooks.observer.is_some(), relay.poked);
        let desk = Desk::new(relay.plan, relay.hooks, rng, &relay.settings);
        tracing::info!(event = "relay_started", owner = %owner, name = card.name, config = card.config, "relay started");
        Ok(Self {
            reader: Some(relay.store.reader()),
            store: relay.store,
            owner,
            owners: relay.owners,
            card,
            former: Vec::new(),
            retiring: false,
            trouble,
            with_sink: vec![0; desk.sink_count()],
            desk,
            followers: relay.followers,
            waker: relay.waker,
            stop,
            tasks: JoinSet::new(),
            lease: watch::channel(sent + publishing_time(relay.settings.lease)).0,
            next_beat: now,
            beating: false,
            beat_sent: sent,
            known_routes: FxHashMap::default(),
            acquiring: false,
            releasing: false,
            unsure: false,
            history: None,
            reader_is_behind: false,
            anew: false,
            void_grants: false,
            void_release: false,
            settled_in: false,
            asking: false,
            ask_soon: false,
            pauses_known: false,
            unsure_page: None,
            gained: Vec::new(),
            lost: Vec::new(),
            next_poll: now,
            poll_pause: BUSY_PAUSE,
            next_due: now,
            row_bytes: 16 << 10,
            page_part: 1,
            looks_everywhere: false,
            looks_at_ready: false,
            read_begun: now,
            found_nothing: false,
            settling: false,
            suspecting: false,
            next_sweep: now + relay.settings.sweep,
            sweeping: false,
            next_recheck: now + RECHECK_PAUSE,
            rechecking: false,
            next_clean: now + relay.settings.clean,
            cleaning: false,
            settled_meanwhile: 0,
            once,
            failure: None,
            stopping: None,
            watched,
            settings: relay.settings,
        })
    }

    /// Works until it is told to stop, and stops cleanly.
    ///
    /// # Errors
    /// Of a run that is to end by itself, and cannot do its work.
    pub(super) async fn work(mut self) -> Result<RunReport> {
        self.listen();
        loop {
            let now = Instant::now();
            self.tell_pulse(now);
            self.start_what_can_be_started(now);
            if self.is_done(now) {
                break;
            }
            let wake_at = self.next_wake(now);
            // In this order, so that a simulation repeats itself. Nothing starves: a wake-up that waits behind results only
            // asks for a read, and what is due is started in every round.
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if self.stopping.is_none() => self.begin_to_stop(),
                Some(joined) = self.tasks.join_next(), if !self.tasks.is_empty() => match joined {
                    Ok(event) => self.handle(event),
                    // Stores must not panic. If one does all the same, the lease runs out and others take over.
                    Err(error) if error.is_panic() => {
                        tracing::error!(event = "task_panicked", %error, "a store panicked; this relay gives up its lanes");
                        self.start_anew();
                    }
                    Err(_) => {}
                },
                () = self.waker.woken(), if self.stopping.is_none() => {
                    self.poll_pause = BUSY_PAUSE;
                    self.next_poll = Instant::now();
                }
                () = sleep_until(wake_at) => {}
            }
        }
        let failure = self.failure.take();
        let report = self.retire().await;
        failure.map_or(Ok(report), Err)
    }

    /// The second rung of the ladder: signals from other processes, as far as the store has them.
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
                            tracing::debug!(event = "listen_failed", %error, "polling alone");
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
            in_hand = self.desk.in_hand(),
            "finishing what is with a sink"
        );
        self.stopping = Some(Instant::now() + self.settings.drain_timeout);
        self.desk.put_down_all();
    }

    fn is_done(&mut self, now: Instant) -> bool {
        let busy = self.with_sink.iter().any(|count| *count > 0) || self.settling || self.desk.has_settlements();
        if let Some(deadline) = self.stopping {
            return now >= deadline || !busy;
        }
        if self.once && self.settled_in && self.found_nothing && !busy && self.desk.in_hand() == 0 && !self.suspecting {
            return self.reader.is_some() && self.unsure_page.is_none();
        }
        false
    }

    /// When to look again, if nothing happens before. What is under way needs no look: it wakes the relay when it ends.
    fn next_wake(&self, now: Instant) -> Instant {
        let mut at = now + LONGEST_PAUSE;
        if !self.beating {
            at = at.min(self.trouble.until(Step::Heartbeat, self.next_beat));
        }
        if let Some(deadline) = self.stopping {
            at = at.min(deadline);
        } else {
            if !self.sweeping {
                at = at.min(self.next_sweep);
            }
            if !self.cleaning && !self.once {
                at = at.min(self.next_clean);
            }
            if self.can_read() && now < *self.lease.borrow() {
                at = at.min(self.trouble.until(Step::Read, self.next_poll));
            }
            if let Some(probe) = self.desk.next_probe(now) {
                at = at.min(probe);
            }
        }
        if let Some(retry) = self.trouble.next(now) {
            at = at.min(retry);
        }
        if let Some(refused) = self.desk.next_refused().filter(|_| !self.settling) {
            at = at.min(refused);
        }
        at = self.watched.next().map_or(at, |pulse| at.min(pulse));
        // Something that is due but cannot be done yet must not turn this into a busy loop.
        if at <= now { now + BUSY_PAUSE } else { at }
    }

    /// Gives everything back. What is still under way is dropped; whoever takes the lanes delivers it again.
    async fn retire(mut self) -> RunReport {
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        let patience = self.settings.lease.min(Duration::from_secs(5));
        match tokio::time::timeout(patience, self.store.retire(self.owner)).await {
            Ok(Ok(())) => tracing::info!(event = "relay_stopped", "lanes are handed over"),
            Ok(Err(error)) => tracing::warn!(event = "retire_failed", %error, "the lease will run out by itself"),
            Err(_) => tracing::warn!(event = "retire_failed", "no answer; the lease will run out by itself"),
        }
        self.desk.report
    }
}

/// How long after a heartbeat was sent a relay may publish: a little less than the lease, so that it has stopped before
/// anybody can take over.
pub(super) fn publishing_time(lease: Duration) -> Duration {
    lease - lease / 20
}
