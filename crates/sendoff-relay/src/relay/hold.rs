//! Holds lanes: heartbeat, fair share, and the loss of all lanes.

use sendoff::store::{BlockedKey, Heartbeat, Lane, LaneGrant, LiveRelay, Routes};
use tokio::time::{Instant, timeout};

use super::event::Event;
use super::running::{Running, publishing_time};
use super::state::{Holding, Reading, UnderWay};
use super::trouble::Step;
use crate::lease::fair_share;

impl Running {
    pub(super) fn start_beat(&mut self, now: Instant) {
        if self.under_way.beat || now < self.registration.next_beat || !self.trouble.allows(Step::Heartbeat, now) {
            return;
        }
        self.under_way.beat = true;
        self.registration.next_beat = now + self.settings.heartbeat;
        let (store, owner, lease) = (self.store.clone(), self.registration.owner, self.settings.lease);
        self.under_way.tasks.spawn(async move {
            let sent = Instant::now();
            let beat = store.heartbeat(owner, lease).await;
            // Frees the lanes of dead relays before the acquisition that follows.
            let evicted = match &beat {
                Ok(beat) if beat.alive => store.evict().await.map(drop),
                _ => Ok(()),
            };
            Event::Beat { sent, beat, evicted }
        });
    }

    pub(super) fn alive(&mut self, sent: Instant, beat: &Heartbeat) {
        self.registration
            .lease
            .send_replace(sent + publishing_time(self.settings.lease));
        self.watched.relays = beat.relays.len();
        if self.ending.stopping.is_some() {
            return;
        }
        self.pauses.ask_soon = true;
        self.registration.beat_sent = sent;
        self.compare_history(beat.history.as_ref());
        self.heed_routes(&beat.relays);
        self.admit_unsure_page();
        self.deregister_former();
        if self.holding.unsure {
            return self.disown_unknown();
        }
        let now = Instant::now();
        self.hand_over(now);
        let share = fair_share(self.store.lanes(), &beat.owners(), self.registration.owner);
        let mine = self.dispatcher.staying().len();
        let wanted = self.wanted_lanes(share, mine, now);
        if mine > share {
            let surplus = self.surplus_lanes(share, now);
            tracing::debug!(
                event = "lanes_shared",
                giving = surplus.len(),
                relays = beat.relays.len(),
                "releasing lanes, so that each relay has its share"
            );
            self.dispatcher.leave(&surplus);
        } else if wanted > 0 && !self.under_way.acquire && (!self.under_way.release || planted!(AcquiresWhileReleasing))
        {
            self.start_acquiring(wanted);
        } else {
            self.ending.settled_in = true;
        }
    }

    /// Reads the routes of relays with another configuration: a topic without a route here may have one there.
    fn heed_routes(&mut self, relays: &[LiveRelay]) {
        let others = relays
            .iter()
            .filter(|relay| relay.config != self.registration.card.config);
        let others: Vec<&LiveRelay> = others.collect();
        self.others
            .known
            .retain(|config, _| others.iter().any(|relay| relay.config == *config));
        for relay in others {
            let known = self.others.known.entry(relay.config.clone());
            known.or_insert_with(|| Routes::from_text(&relay.routes));
        }
        let (own, mut known) = (&self.others.own, self.others.known.values());
        self.others.hand_over.has_more_routes = known.any(|routes| own.has_more_than(routes));
        self.dispatcher
            .heed_routes(self.others.known.values().cloned().collect());
    }

    /// Reports to the store that this relay is alive although it lost its lease under another id: that was not a crash.
    fn deregister_former(&mut self) {
        let now = Instant::now();
        if self.under_way.deregister || !self.trouble.allows(Step::Deregister, now) {
            return;
        }
        let Some(owner) = self.registration.former.first().copied() else {
            return;
        };
        self.under_way.deregister = true;
        let store = self.store.clone();
        self.under_way.tasks.spawn(async move {
            let deregistered = store.deregister(owner).await;
            Event::Deregistered { owner, deregistered }
        });
    }

    /// Reads the pauses: with every heartbeat, and immediately when a message in flight depends on it.
    pub(super) fn start_asking(&mut self) {
        let wanted = self.pauses.ask_soon || self.dispatcher.is_in_doubt();
        if self.under_way.pauses || !wanted || !self.trouble.allows(Step::Pauses, Instant::now()) {
            return;
        }
        (self.under_way.pauses, self.pauses.ask_soon) = (true, false);
        let store = self.store.clone();
        self.under_way.tasks.spawn(async move {
            let asked = Instant::now();
            let paused = store.paused().await;
            Event::Paused { asked, paused }
        });
    }

    /// Applies the pauses, and reads messages of sinks and topics that were resumed.
    pub(super) fn heed(&mut self, paused: &[(String, String)], asked: Instant) {
        self.pauses.known = true;
        let now = Instant::now();
        if self.dispatcher.pause(paused, asked, now) {
            (self.pace.next_due, self.pace.next_poll) = (now, now);
        }
    }

    /// Gives back every lane that the store assigns to this relay and the relay does not know of.
    fn disown_unknown(&mut self) {
        if self.under_way.acquire {
            return;
        }
        self.under_way.acquire = true;
        let lanes: Vec<Lane> = (0..self.store.lanes())
            .filter(|lane| !self.dispatcher.holds(*lane))
            .collect();
        let (store, owner) = (self.store.clone(), self.registration.owner);
        self.under_way
            .tasks
            .spawn(async move { Event::Disowned(store.release(owner, &lanes).await) });
    }

    pub(super) fn start_acquiring(&mut self, limit: usize) {
        self.under_way.acquire = true;
        let (store, owner) = (self.store.clone(), self.registration.owner);
        self.under_way.tasks.spawn(async move {
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
        self.ending.settled_in = true;
        self.reading.found_nothing = false;
        if grants.is_empty() {
            return;
        }
        tracing::info!(event = "lanes_gained", count = grants.len(), "leased lanes");
        // With another history of the database, lanes can be free there before this relay has settled the messages that
        // are with a sink. Those messages belong to the old lease; the lane starts again.
        let again: Vec<Lane> = grants.iter().map(|grant| grant.lane).collect();
        let again: Vec<Lane> = again.into_iter().filter(|lane| self.dispatcher.holds(*lane)).collect();
        if !planted!(GrantedTwice) {
            self.lose(&again);
        }
        self.dispatcher.gain(grants, blocked, Instant::now());
        self.watched.behind();
        self.reading.gained.extend_from_slice(grants);
        self.pace.next_poll = Instant::now();
        self.pace.next_due = self.pace.next_poll;
    }

    pub(super) fn start_releasing(&mut self) {
        // Lanes that are being given back must not be leased again before the answer is known: the late answer would count
        // for the new lease.
        let waits = self.under_way.release
            || (self.under_way.acquire && !planted!(AcquiresWhileReleasing))
            || !self.trouble.allows(Step::Release, Instant::now());
        let lanes = if waits || self.ending.stopping.is_some() {
            Vec::new()
        } else {
            self.dispatcher.ready_to_leave()
        };
        if lanes.is_empty() {
            return;
        }
        self.under_way.release = true;
        let (store, owner) = (self.store.clone(), self.registration.owner);
        self.under_way.tasks.spawn(async move {
            let released = store.release(owner, &lanes).await;
            Event::Released(lanes, released)
        });
    }

    pub(super) fn lose(&mut self, lanes: &[Lane]) {
        if lanes.is_empty() {
            return;
        }
        self.dispatcher.lose(lanes);
        self.reading.gained.retain(|grant| !lanes.contains(&grant.lane));
        self.reading.lost.extend_from_slice(lanes);
    }

    /// Everything that depends on the lease is lost: the relay starts again under another owner id.
    pub(super) fn start_anew(&mut self) {
        let lanes: Vec<Lane> = (0..self.store.lanes()).collect();
        self.dispatcher.start_anew(&lanes);
        self.under_way = UnderWay::nothing(self.dispatcher.sink_count());
        self.holding = Holding::default();
        self.reading = Reading::new(self.store.reader(), Instant::now());
        self.others.hand_over = std::mem::take(&mut self.others.hand_over).without_lanes();
        self.trouble.forget_reads();
        self.watched.start_anew();
        self.registration.change_owner();
        self.under_way.beat = true;
        let (store, owner, card, lease) = (
            self.store.clone(),
            self.registration.owner,
            self.registration.card.clone(),
            self.settings.lease,
        );
        let former = self.registration.former.clone();
        self.under_way.tasks.spawn(async move {
            let patience = lease / 5;
            let mut deregistered = Vec::new();
            // If that takes too long, it is done later: until then, others may count a crash.
            for owner in former {
                match timeout(patience, store.deregister(owner)).await {
                    Ok(Ok(())) => deregistered.push(owner),
                    Ok(Err(_)) | Err(_) => break,
                }
            }
            let sent = Instant::now();
            let beat = match store.register(owner, &card, lease).await {
                Ok(()) => store.heartbeat(owner, lease).await,
                Err(error) => Err(error),
            };
            Event::Anew {
                sent,
                deregistered,
                beat,
            }
        });
    }
}
