//! Situations, and what is said about them.

use std::time::{Duration, SystemTime};

use sendoff::Uuid;
use sendoff::store::{
    Group, JobCounts, LaneHead, Overview, OwnerId, Pausable, PauseView, Rates, RelayFigures, RelayStatus, SinkFigures,
    Status, StoreHealth, Stray,
};

use super::*;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn ago(seconds: u64) -> SystemTime {
    now() - Duration::from_secs(seconds)
}

/// Nothing in it, and nobody there.
fn empty() -> Overview {
    Overview {
        health: StoreHealth {
            now: now(),
            ready: 0,
            waiting: 0,
            dead: 0,
            oldest_due: None,
            heads: Vec::new(),
            stray: None,
        },
        relays: Vec::new(),
        lanes: 80,
        free_lanes: (0..80).collect(),
        ready: Vec::new(),
        waiting: Vec::new(),
        dead: Vec::new(),
        blocked_keys: 0,
        pauses: Vec::new(),
        jobs: None,
    }
}

fn relay(name: &str, delivered: f64) -> RelayStatus {
    RelayStatus {
        owner: OwnerId(Uuid::from_u128(name.len() as u128)),
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        config: "c0ffee".to_owned(),
        routes: r#"[["*", ["cache"]]]"#.to_owned(),
        beat_at: ago(1),
        alive: true,
        lanes: 80,
        figures: Some((
            ago(1),
            RelayFigures {
                lanes: 80,
                in_flight: 4,
                rates: Rates {
                    read: delivered,
                    delivered,
                    ..Rates::default()
                },
            },
        )),
        sinks: vec![("cache".to_owned(), ago(1), SinkFigures::default())],
    }
}

/// One relay that holds every lane.
fn running(delivered: f64) -> Overview {
    Overview {
        relays: vec![relay("web-1", delivered)],
        free_lanes: Vec::new(),
        ..empty()
    }
}

/// So many ready messages, the oldest this old.
fn ready(mut overview: Overview, count: u64, age: u64, held: bool) -> Overview {
    overview.health.ready = count;
    overview.health.heads = vec![LaneHead {
        lane: 3,
        seq: 1,
        age: Duration::from_secs(age),
        held,
    }];
    overview.ready = vec![group("order", "", Status::Pending, count, age)];
    overview
}

fn group(topic: &str, sink: &str, status: Status, count: u64, age: u64) -> Group {
    Group {
        topic: topic.to_owned(),
        sink: sink.to_owned(),
        status,
        count,
        oldest: Duration::from_secs(age),
    }
}

fn down(mut overview: Overview, seconds: f64) -> Overview {
    overview.relays[0].sinks[0].2 = SinkFigures {
        down_seconds: Some(seconds),
        last_error: Some("connection refused".to_owned()),
        error_seconds: Some(1.0),
        probe_seconds: Some(3.0),
        ..SinkFigures::default()
    };
    overview.waiting = vec![group("order", "cache", Status::Deferred, 6_000, 540)];
    overview.health.waiting = 6_000;
    overview
}

fn pause(mut overview: Overview, what: Pausable) -> Overview {
    overview.pauses.push(PauseView {
        what,
        since: ago(120),
        by: "ann@host".to_owned(),
    });
    overview
}

/// After a restored backup: relays of the past, and their figures.
fn restored() -> Overview {
    let mut overview = ready(running(100.0), 12, 7_200, false);
    overview.relays[0].alive = false;
    overview.relays[0].beat_at = ago(7_200);
    overview.relays[0].figures = Some((ago(7_200), RelayFigures::default()));
    overview.free_lanes = (0..80).collect();
    overview
}

#[test]
fn every_situation_has_its_sentence() {
    let stale = || {
        let mut overview = running(5.0);
        if let Some((at, _)) = &mut overview.relays[0].figures {
            *at = ago(20);
        }
        overview
    };
    let two = || {
        let mut overview = running(5.0);
        overview.relays.push(relay("web-22", 2.5));
        overview
    };
    let differing = || {
        let mut overview = two();
        overview.relays[1].config = "other".to_owned();
        overview
    };
    let blocked = || {
        let mut overview = down(running(0.0), 539.5);
        overview.blocked_keys = 40;
        overview
    };
    let half_down = || {
        let mut overview = down(running(5.0), 90.0);
        overview.relays.push(relay("web-22", 2.5));
        overview
    };
    let unknown = || {
        let mut overview = running(5.0);
        overview.waiting = vec![group("order", "gone", Status::Deferred, 3, 9)];
        overview
    };
    let everything = || {
        let mut overview = blocked();
        overview.dead = vec![("permanent".to_owned(), 9_999), ("exhausted".to_owned(), 1)];
        overview.jobs = Some(JobCounts {
            failed: 1,
            ..JobCounts::default()
        });
        overview
    };
    let stray = || {
        let mut overview = running(0.0);
        overview.health.stray = Some(Stray {
            lane: 99,
            seq: 1,
            age: Duration::from_secs(5),
        });
        overview
    };
    let free = || Overview {
        free_lanes: vec![7],
        ..running(5.0)
    };
    let sink = || Pausable::Sink("cache".to_owned());
    let situations: Vec<(Overview, Level, &str)> = vec![
        (empty(), Level::Warning, "no relay is alive; nothing waits"),
        (
            ready(empty(), 5, 2, false),
            Level::Critical,
            "no relay is alive, 5 messages wait",
        ),
        (
            restored(),
            Level::Critical,
            "no relay is alive, the last one was seen 2 h ago, 12 messages wait",
        ),
        (running(0.0), Level::Ok, "nothing waits, 1 relay"),
        (two(), Level::Ok, "7.5/s out, nothing waits, 2 relays"),
        (
            ready(running(240.0), 70, 1, true),
            Level::Ok,
            "240/s in, 240/s out, oldest pending 1.0 s, 1 relay",
        ),
        (
            ready(running(0.0), 500, 120, true),
            Level::Critical,
            "nothing moves: 500 pending, the oldest for 2 min, no delivery in the last minute",
        ),
        (
            ready(running(5.0), 500, 120, true),
            Level::Warning,
            "delivery is late: 500 pending, the oldest for 2 min",
        ),
        (
            ready(stale(), 500, 120, true),
            Level::Warning,
            "the figures of web-1 are 20 s old; delivery is late: 500 pending, the oldest for 2 min",
        ),
        (
            down(running(0.0), 20.0),
            Level::Warning,
            "cache is down for 21 s, 6,000 deliveries deferred",
        ),
        (
            blocked(),
            Level::Critical,
            "cache is down for 9 min, 6,000 deliveries deferred; 40 keys blocked",
        ),
        (
            half_down(),
            Level::Critical,
            "cache is down for 1 of 2 relays for 1 min, 6,000 deliveries deferred",
        ),
        (
            ready(down(running(0.0), 539.5), 100, 539, true),
            Level::Critical,
            "cache is down for 9 min, 6,000 deliveries deferred, 100 more messages wait",
        ),
        (
            pause(down(running(0.0), 539.5), sink()),
            Level::Warning,
            "cache is paused by ann@host for 2 min, 6,000 deliveries deferred",
        ),
        (
            pause(ready(running(0.0), 5, 300, true), Pausable::Topic("order.*".to_owned())),
            Level::Warning,
            "the topic order.* is paused by ann@host for 2 min",
        ),
        (
            pause(ready(running(0.0), 1, 300, true), sink()),
            Level::Warning,
            "cache is paused by ann@host for 2 min, 1 message waits",
        ),
        (differing(), Level::Warning, "relays have different configurations"),
        (stale(), Level::Warning, "the figures of web-1 are 20 s old"),
        (
            unknown(),
            Level::Warning,
            "no relay has the sink gone; waiting for it: 3 deliveries",
        ),
        (
            ready(running(5.0), 1, 31, false),
            Level::Critical,
            "1 lane with messages has no relay, the oldest waits for 31 s",
        ),
        (free(), Level::Warning, "1 lane has no relay"),
        (
            stray(),
            Level::Critical,
            "no relay reads a row in lane 99: only 0 to 79 are read",
        ),
        (
            everything(),
            Level::Critical,
            "cache is down for 9 min, 6,000 deliveries deferred; 40 keys blocked; 10,000+ dead letters; 1 more",
        ),
    ];
    for (overview, level, verdict) in situations {
        let view = StatusView::of(&overview);
        assert_eq!((view.level, &*view.verdict), (level, verdict), "{:#?}", view.reasons);
    }
}

#[test]
fn a_large_backlog_is_scaled_from_its_sample() {
    let mut overview = ready(running(5.0), 2_000, 3, true);
    overview.health.ready = 40_000;
    overview.ready = vec![
        group("order", "", Status::Pending, 1_500, 3),
        group("invoice", "", Status::Pending, 500, 2),
    ];
    overview.waiting = vec![group("order", "cache", Status::Deferred, 10_000, 30)];
    overview.health.waiting = 100_000;
    let view = StatusView::of(&overview);
    assert_eq!(view.pending.count.to_string(), "≈40,000");
    assert_eq!(view.deferred.to_string(), "≈100,000");
    let topics: Vec<(&str, String)> = view
        .topics
        .iter()
        .map(|topic| (&*topic.topic, topic.backlog.count.to_string()))
        .collect();
    assert_eq!(
        topics,
        [("order", "≈130,000".to_owned()), ("invoice", "≈10,000".to_owned())]
    );
    let cache = &view.sinks[0];
    assert_eq!(cache.backlog.count.to_string(), "≈140,000", "with what is routed to it");
    assert_eq!(cache.backlog.oldest_seconds, Some(30.0));
    // A store that does not know how many there are says at least how many it saw.
    overview.health.waiting = 10_000;
    assert_eq!(StatusView::of(&overview).deferred.to_string(), "10,000+");
}

#[test]
fn scheduled_messages_are_no_backlog() {
    let mut overview = running(0.0);
    overview.waiting = vec![group("later", "", Status::Scheduled, 5, 0)];
    let view = StatusView::of(&overview);
    assert_eq!(
        (view.level, view.scheduled.count, view.backlog.count.count),
        (Level::Ok, 5, 0)
    );
    assert!(view.topics.is_empty());
}

#[test]
fn only_live_relays_count_and_the_newest_error_is_shown() {
    let mut overview = down(running(5.0), 10.0);
    let mut other = relay("web-22", 7.0);
    other.sinks[0].2 = SinkFigures {
        last_error: Some("older".to_owned()),
        error_seconds: Some(400.0),
        in_flight: 3,
        delivered: 9,
        ..SinkFigures::default()
    };
    overview.relays.push(other);
    let mut gone = relay("gone", 1000.0);
    gone.alive = false;
    overview.relays.push(gone);
    let view = StatusView::of(&overview);
    assert_eq!(view.rates.map(|rates| rates.delivered), Some(12.0));
    let cache = &view.sinks[0];
    assert_eq!(
        (cache.relays, cache.relays_down, cache.in_flight, cache.delivered),
        (2, 1, 3, 9)
    );
    assert_eq!(cache.last_error.as_deref(), Some("connection refused"));
    assert_eq!((cache.down_seconds, cache.next_probe_seconds), (Some(11.0), Some(2.0)));
}

#[test]
fn the_json_has_the_verdict_and_marks_what_is_approximate() {
    let mut overview = down(running(0.0), 539.5);
    overview.health.waiting = 6_000;
    let json = serde_json::to_value(StatusView::of(&overview)).unwrap();
    assert_eq!(json["level"], "critical");
    assert_eq!(json["reasons"][0]["code"], "sink_down");
    assert_eq!(json["sinks"][0]["state"], "down");
    assert_eq!(json["backlog"]["count"], 6_000);
    assert_eq!(json["backlog"]["approximate"], false);
}
