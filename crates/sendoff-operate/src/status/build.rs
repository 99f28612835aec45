//! The answer, from an overview of the store.

use std::collections::BTreeMap;
use std::time::SystemTime;

use sendoff::envelope::rfc3339;
use sendoff::store::{Overview, Pausable, Rates, RelayStatus, Status, StoreHealth};

use super::count::Scale;
use super::{
    BacklogView, DeadView, LanesView, Level, RelayView, STALE_SECONDS, SampledCount, StatusView, StuckView, TopicView,
    sinks, verdict,
};

/// How many topics are listed.
const MOST_TOPICS: usize = 20;

/// Seconds from `earlier` to `now`; 0 for a time that is still to come, as after the clock stepped back.
pub(super) fn seconds_since(now: SystemTime, earlier: SystemTime) -> f64 {
    now.duration_since(earlier).unwrap_or_default().as_secs_f64()
}

/// How the samples are scaled.
pub(super) struct Scales {
    pub(super) ready: Scale,
    pub(super) waiting: Scale,
}

impl Scales {
    fn of(overview: &Overview) -> Self {
        let sampled = |groups: &[sendoff::store::Group]| groups.iter().map(|group| group.count).sum::<u64>();
        let (ready, waiting) = (sampled(&overview.ready), sampled(&overview.waiting));
        let health = &overview.health;
        Self {
            // Between the two statements messages came and went: a few more than were sampled are an estimate, too.
            ready: Scale::new(ready, health.ready, health.ready > ready),
            waiting: Scale::new(waiting, health.waiting, waiting >= u64::from(Overview::SAMPLE)),
        }
    }
}

impl StatusView {
    /// The status that an overview shows.
    pub(super) fn of(overview: &Overview) -> Self {
        let (now, health, scales) = (overview.health.now, &overview.health, Scales::of(overview));
        let mut pending = BacklogView::default();
        let mut backlog = BacklogView::default();
        let mut by_status: BTreeMap<&str, SampledCount> = BTreeMap::new();
        for group in &overview.waiting {
            let (count, oldest) = (scales.waiting.of(group.count), group.oldest.as_secs_f64());
            let counted = by_status.entry(group.status.as_str()).or_default();
            *counted = counted.plus(count);
            if group.status == Status::Pending {
                pending.add(count, oldest);
            }
            if group.status != Status::Scheduled {
                backlog.add(count, oldest);
            }
        }
        // The heads of the lanes are exact where a sample may miss the oldest.
        let head = health.oldest_ready().map_or(0.0, |age| age.as_secs_f64());
        for of in [&mut pending, &mut backlog] {
            of.add(ready_count(health), head);
        }
        let of = |status: Status| by_status.get(status.as_str()).copied().unwrap_or_default();
        let (topics, topics_left_out) = topics(overview, &scales);
        let mut view = Self {
            level: Level::Ok,
            verdict: String::new(),
            reasons: Vec::new(),
            at: rfc3339(now),
            rates: rates(overview),
            pending,
            backlog,
            retry: of(Status::Retry),
            blocked: of(Status::Blocked),
            deferred: of(Status::Deferred),
            scheduled: of(Status::Scheduled),
            sinks: sinks::of(overview, &scales),
            topics,
            topics_left_out,
            blocked_keys: SampledCount::up_to(Overview::SAMPLE, overview.blocked_keys),
            dead: dead(overview),
            relays: relays(overview),
            lanes: lanes(overview),
            jobs: overview.jobs.filter(|jobs| jobs.total() > 0),
        };
        verdict::judge(&mut view);
        view
    }
}

fn ready_count(health: &StoreHealth) -> SampledCount {
    SampledCount {
        count: health.ready,
        approximate: health.ready >= u64::from(StoreHealth::BOUND),
        at_least: false,
    }
}

/// Live relays only: nobody updates the figures of the others.
fn rates(overview: &Overview) -> Option<Rates> {
    let alive = overview.relays.iter().filter(|relay| relay.alive);
    let rates = alive.filter_map(|relay| relay.figures.as_ref().map(|(_, figures)| figures.rates));
    rates.reduce(Rates::plus)
}

fn dead(overview: &Overview) -> DeadView {
    let counted = overview.dead.iter().map(|(_, count)| count).sum();
    DeadView {
        count: SampledCount::up_to(Overview::SAMPLE, counted),
        reasons: overview.dead.iter().cloned().collect(),
    }
}

fn lanes(overview: &Overview) -> LanesView {
    let stuck: Vec<f64> = overview
        .health
        .heads
        .iter()
        .filter(|head| !head.held)
        .map(|head| head.age.as_secs_f64())
        .collect();
    LanesView {
        total: overview.lanes,
        free: overview.free_lanes.clone(),
        stuck: (!stuck.is_empty()).then(|| StuckView {
            lanes: stuck.len() as u64,
            oldest_seconds: stuck.iter().copied().fold(0.0, f64::max),
        }),
        stray: overview.health.stray.map(|stray| stray.lane),
    }
}

fn relays(overview: &Overview) -> Vec<RelayView> {
    let now = overview.health.now;
    let alive = || overview.relays.iter().filter(|relay| relay.alive);
    let view = |relay: &RelayStatus| {
        let figures = relay.figures.as_ref();
        let age = figures.map(|(at, _)| seconds_since(now, *at));
        RelayView {
            owner: relay.owner.0,
            name: relay.name.clone(),
            version: relay.version.clone(),
            config: relay.config.clone(),
            config_differs: relay.alive && alive().any(|other| other.config != relay.config),
            alive: relay.alive,
            beat_seconds: seconds_since(now, relay.beat_at),
            lanes: relay.lanes,
            in_flight: figures.map(|(_, figures)| figures.in_flight),
            rates: figures.map(|(_, figures)| figures.rates),
            figures_seconds: age,
            stale: age.is_some_and(|age| age > STALE_SECONDS),
        }
    };
    overview.relays.iter().map(view).collect()
}

fn topics(overview: &Overview, scales: &Scales) -> (Vec<TopicView>, usize) {
    let now = overview.health.now;
    let mut backlogs: BTreeMap<&str, BacklogView> = BTreeMap::new();
    for group in &overview.ready {
        let backlog = backlogs.entry(&group.topic).or_default();
        backlog.add(scales.ready.of(group.count), group.oldest.as_secs_f64());
    }
    for group in overview
        .waiting
        .iter()
        .filter(|group| group.status != Status::Scheduled)
    {
        let backlog = backlogs.entry(&group.topic).or_default();
        backlog.add(scales.waiting.of(group.count), group.oldest.as_secs_f64());
    }
    let mut topics: Vec<TopicView> = backlogs
        .into_iter()
        .filter(|(_, backlog)| backlog.count.count > 0)
        .map(|(topic, backlog)| TopicView {
            topic: topic.to_owned(),
            backlog,
            paused_by: None,
            paused_seconds: None,
        })
        .collect();
    topics.sort_by_key(|topic| std::cmp::Reverse(topic.backlog.count.count));
    let left_out = topics.len().saturating_sub(MOST_TOPICS);
    topics.truncate(MOST_TOPICS);
    for pause in &overview.pauses {
        let Pausable::Topic(name) = &pause.what else { continue };
        let known = topics.iter().position(|topic| topic.topic == *name);
        let at = known.unwrap_or(topics.len());
        if known.is_none() {
            topics.push(TopicView {
                topic: name.clone(),
                backlog: BacklogView::default(),
                paused_by: None,
                paused_seconds: None,
            });
        }
        topics[at].paused_by = Some(pause.by.clone());
        topics[at].paused_seconds = Some(seconds_since(now, pause.since));
    }
    (topics, left_out)
}
