//! Holding lanes: heartbeat, fair share, hand-over, and what happens when all is lost.

use sendoff::store::{BlockedKey, Heartbeat, Lane, LaneGrant, LiveRelay, Routes};
use tokio::time::{Instant, timeout};

use super::event::Event;
use super::running::{Running, publishing_time};
use super::trouble::Step;
use crate::lease::fair_share;

/// Under how many names a relay that lost its lease again and again is remembered.
const FORMER: usize = 64;

impl Running {
    pub(super) fn start_beat(&mut self, now: Instant) {
        if self.beating || now < self.next_beat || !self.trouble.allows(Step::Heartbeat, now) {
            return;
        }
        self.beating = true;
        self.next_beat = now + self.settings.heartbeat;
        let (store, owner, lease) = (self.store.clone(), self.owner, self.settings.lease);
        self.tasks.spawn(async move {
            let sent = Instant::now();
            let beat = store.heartbeat(owner, lease).await;
            // Lanes of relays that are gone become free right away, for the acquisition that follows.
            let evicted = match &beat {
                Ok(beat) if beat.alive => store.evict().await.map(drop),
                _ => Ok(()),
            };
            Event::Beat { sent, beat, evicted }
        });
    }

    pub(super) fn alive(&mut self, sent: Instant, beat: &Heartbeat) {
        self.lease.send_replace(sent + publishing_time(self.settings.lease));
        self.watched.relays = beat.relays.len();
        if self.stopping.is_some() {
            return;
        }
        self.ask_soon = true;
        self.beat_sent = sent;
        self.compare_history(beat.history.as_ref());
        self.heed_routes(&beat.relays);
        self.admit_unsure_page();
        self.retire_former();
        if self.unsure {
            return self.disown_unknown();
        }
        let share = fair_share(self.store.lanes(), &beat.owners(), self.owner);
        let mine = self.desk.staying();
        if mine.len() > share {
            let surplus: Vec<Lane> = mine[share..].to_vec();
            tracing::debug!(
                event = "lanes_shared",
                giving = surplus.len(),
                relays = beat.relays.len(),
                "sharing lanes"
            );
            self.desk.leave(&surplus);
        } else if mine.len() < share && !self.acquiring && (!self.releasing || planted!(AcquiresWhileReleasing)) {
            self.start_acquiring(share - mine.len());
        } else {
            self.settled_in = true;
        }
    }

    /// Routes of relays with another configuration: what has no route here may have one there.
    fn heed_routes(&mut self, relays: &[LiveRelay]) {
        let others = relays.iter().filter(|relay| relay.config != self.card.config);
        let others: Vec<&LiveRelay> = others.collect();
        self.known_routes
            .retain(|config, _| others.iter().any(|relay| relay.config == *config));
        for relay in others {
            let known = self.known_routes.entry(relay.config.clone());
            known.or_insert_with(|| Routes::from_text(&relay.routes));
        }
        self.desk.heed_routes(self.known_routes.values().cloned().collect());
    }

    /// Tells the store that this relay lives, which lost its lease under another name: what was counted against it was no crash.
    fn retire_former(&mut self) {
        let now = Instant::now();
        if self.retiring || !self.trouble.allows(Step::Retire, now) {
            return;
        }
        let Some(owner) = self.former.first().copied() else {
            return;
        };
        self.retiring = true;
        let store = self.store.clone();
        self.tasks.spawn(async move {
            let retired = store.retire(owner).await;
            Event::Retired { owner, retired }
        });
    }

    /// Asks what is paused: with every heartbeat, and at once when something in hand depends on it.
    pub(super) fn start_asking(&mut self) {
        let wanted = self.ask_soon || self.desk.is_in_doubt();
        if self.asking || !wanted || !self.trouble.allows(Step::Pauses, Instant::now()) {
            return;
        }
        (self.asking, self.ask_soon) = (true, false);
        let store = self.store.clone();
        self.tasks.spawn(async move {
            let asked = Instant::now();
            let paused = store.paused().await;
            Event::Paused { asked, paused }
        });
    }

    /// Pauses what an operator has paused, and looks for messages of what goes on.
    pub(super) fn heed(&mut self, paused: &[(String, String)], asked: Instant) {
        self.pauses_known = true;
        let now = Instant::now();
        if self.desk.pause(paused, asked, now) {
            (self.next_due, self.next_poll) = (now, now);
        }
    }

    /// Gives back every lane that it does not know to be its own.
    fn disown_unknown(&mut self) {
        if self.acquiring {
            return;
        }
        self.acquiring = true;
        let lanes: Vec<Lane> = (0..self.store.lanes()).filter(|lane| !self.desk.holds(*lane)).collect();
        let (store, owner) = (self.store.clone(), self.owner);
        self.tasks
            .spawn(async move { Event::Disowned(store.release(owner, &lanes).await) });
    }

    pub(super) fn start_acquiring(&mut self, limit: usize) {
        self.acquiring = true;
        let (store, owner) = (self.store.clone(), self.owner);
        self.tasks.spawn(async move {
            let acquired = async {
                let grants = store.acquire(owner, limit).await?;
                let lanes: Vec<Lane> = grants.iter().map(|grant| grant.lane).collect();
                let blocked = if lanes.is_empty() {
                    Vec::new()
                } else {
                    store.blocked_keys(&lanes).await?
                };
                Ok((grants, blocked))
            };
            Event::Acquired(acquired.await)
        });
    }

    pub(super) fn gain(&mut self, grants: &[LaneGrant], blocked: Vec<BlockedKey>) {
        self.settled_in = true;
        self.found_nothing = false;
        if grants.is_empty() {
            return;
        }
        tracing::info!(event = "lanes_gained", count = grants.len(), "lanes leased");
        // The database may have another history, in which they are free, before what is with a sink was settled. That is of
        // another lease now, and begun anew.
        let again: Vec<Lane> = grants.iter().map(|grant| grant.lane).collect();
        let again: Vec<Lane> = again.into_iter().filter(|lane| self.desk.holds(*lane)).collect();
        if !planted!(GrantedTwice) {
            self.lose(&again);
        }
        self.desk.gain(grants, blocked, Instant::now());
        self.watched.behind();
        self.gained.extend_from_slice(grants);
        self.next_poll = Instant::now();
        self.next_due = self.next_poll;
    }

    pub(super) fn start_releasing(&mut self) {
        // Lanes that are on their way back must not be leased again before that is known to have happened, or be taken for
        // given back after it.
        let waits = self.releasing
            || (self.acquiring && !planted!(AcquiresWhileReleasing))
            || !self.trouble.allows(Step::Release, Instant::now());
        let lanes = if waits || self.stopping.is_some() {
            Vec::new()
        } else {
            self.desk.ready_to_leave()
        };
        if lanes.is_empty() {
            return;
        }
        self.releasing = true;
        let (store, owner) = (self.store.clone(), self.owner);
        self.tasks.spawn(async move {
            let released = store.release(owner, &lanes).await;
            Event::Released(lanes, released)
        });
    }

    pub(super) fn lose(&mut self, lanes: &[Lane]) {
        if lanes.is_empty() {
            return;
        }
        self.desk.lose(lanes);
        self.gained.retain(|grant| !lanes.contains(&grant.lane));
        self.lost.extend_from_slice(lanes);
    }

    /// Everything that hung on the lease is lost: another life begins, under another name.
    pub(super) fn start_anew(&mut self) {
        self.tasks.abort_all();
        self.tasks = tokio::task::JoinSet::new();
        let lanes: Vec<Lane> = (0..self.store.lanes()).collect();
        self.lose(&lanes);
        self.reader = Some(self.store.reader());
        (self.gained, self.lost) = Default::default();
        let _ = (self.desk.take_gone(), self.desk.take_forgotten());
        self.with_sink.fill(0);
        (0..self.desk.sink_count()).for_each(|sink| self.desk.dropped(sink));
        (self.acquiring, self.releasing, self.settling) = (false, false, false);
        self.asking = false;
        (self.unsure, self.anew) = (false, false);
        (self.void_grants, self.void_release) = (false, false);
        (self.suspecting, self.sweeping, self.cleaning) = (false, false, false);
        self.rechecking = false;
        (self.unsure_page, self.retiring) = (None, false);
        self.trouble.forget_reads();
        self.watched.anew();
        self.former.push(std::mem::replace(&mut self.owner, (self.owners)()));
        if planted!(LeaseLostIsCrash) {
            self.former.clear();
        }
        if self.former.len() > FORMER {
            self.former.remove(0);
        }
        self.lease.send_replace(Instant::now());
        self.beating = true;
        let (store, owner, card, lease) = (self.store.clone(), self.owner, self.card.clone(), self.settings.lease);
        let former = self.former.clone();
        self.tasks.spawn(async move {
            let patience = lease / 5;
            let mut retired = Vec::new();
            // Where that takes long, it is done later: then others may count a crash for a while.
            for owner in former {
                match timeout(patience, store.retire(owner)).await {
                    Ok(Ok(())) => retired.push(owner),
                    Ok(Err(_)) | Err(_) => break,
                }
            }
            let sent = Instant::now();
            let beat = match store.enlist(owner, &card, lease).await {
                Ok(()) => store.heartbeat(owner, lease).await,
                Err(error) => Err(error),
            };
            Event::Anew { sent, retired, beat }
        });
    }
}
