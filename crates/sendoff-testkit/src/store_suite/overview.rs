//! What an operator sees at a glance: relays with their figures, and samples of what waits.

use std::time::Duration;

use sendoff::store::{
    DeadReason, Figures, Group, Overview, Pausable, Rates, RelayCard, RelayFigures, RetryState, SinkFigures, Status,
    Verdict,
};

use super::manual_relay::{ManualRelay, dead, retry, sink, waiting};
use super::registry::{CaseResult, cases};
use super::scene::{LONG_LEASE, Scene, numbered, plain};

cases![
    an_empty_outbox_without_relays_is_seen_as_that needs Figures,
    figures_are_read_as_they_were_written needs Figures,
    figures_go_with_their_relay needs Figures,
    a_relay_that_vanished_is_seen_until_it_is_evicted needs Figures,
    what_waits_is_grouped_by_topic_sink_and_status needs Figures,
    blocked_keys_are_counted_once needs Figures,
    a_pause_is_seen_with_who_set_it needs Figures,
    a_sample_has_an_end needs FiguresAndSql,
    jobs_are_seen_by_state needs FiguresAndJobs,
];

const LATER: Duration = Duration::from_secs(3600);

async fn overview(scene: &Scene) -> sendoff::Result<Overview> {
    scene.subject.operate.overview().await
}

fn sink_figures(delivered: u64) -> SinkFigures {
    SinkFigures {
        down_seconds: Some(9.5),
        in_flight: 3,
        delivered,
        last_error: Some("it said \"no\", ünd \u{0}".to_owned()),
        probe_seconds: Some(1.25),
        ..SinkFigures::default()
    }
}

async fn an_empty_outbox_without_relays_is_seen_as_that(scene: Scene) -> CaseResult {
    let found = overview(&scene).await?;
    assert!(found.relays.is_empty() && found.ready.is_empty() && found.waiting.is_empty() && found.dead.is_empty());
    assert_eq!(found.lanes, u64::from(scene.subject.relay.lanes()));
    assert_eq!(found.free_lanes.len() as u64, found.lanes, "nobody holds one");
    assert_eq!((found.blocked_keys, found.pauses.len()), (0, 0));
    assert_eq!(found.jobs.unwrap_or_default().total(), 0);
    Ok(())
}

async fn figures_are_read_as_they_were_written(scene: Scene) -> CaseResult {
    let relay = scene.relay().await?;
    let card = RelayCard {
        name: "web-1".to_owned(),
        version: "1.2.3".to_owned(),
        config: "abc".to_owned(),
        routes: "[]".to_owned(),
    };
    scene.subject.relay.register(relay.owner, &card, LONG_LEASE).await?;
    let before = scene.now().await?;
    let own = RelayFigures {
        lanes: 80,
        in_flight: 7,
        rates: Rates {
            read: 12.5,
            ..Rates::default()
        },
    };
    let figures = Figures {
        relay: Some(own.clone()),
        sinks: vec![("a b".to_owned(), sink_figures(1)), ("ü".to_owned(), sink_figures(2))],
    };
    scene.subject.relay.write_figures(relay.owner, &figures).await?;
    // Only one of them changed.
    let changed = Figures {
        relay: None,
        sinks: vec![("a b".to_owned(), sink_figures(5))],
    };
    scene.subject.relay.write_figures(relay.owner, &changed).await?;
    let after = scene.now().await?;
    let found = overview(&scene).await?;
    assert_eq!(found.free_lanes, Vec::<i64>::new());
    let [seen] = &found.relays[..] else {
        panic!("one relay: {:#?}", found.relays)
    };
    assert_eq!(
        (seen.owner, &*seen.name, &*seen.version, &*seen.config, &*seen.routes),
        (relay.owner, "web-1", "1.2.3", "abc", "[]")
    );
    assert!(seen.alive && seen.lanes == found.lanes, "{seen:#?}");
    assert!(
        seen.beat_at <= after && before <= seen.beat_at + Duration::from_secs(20),
        "{seen:#?}"
    );
    let (at, figures) = seen.figures.clone().expect("its own figures");
    assert_eq!(figures, own);
    assert!(
        before <= at + super::scene::TICK && at <= after + super::scene::TICK,
        "written at {at:?}"
    );
    let sinks: Vec<(&str, u64)> = seen
        .sinks
        .iter()
        .map(|(name, _, sink)| (&**name, sink.delivered))
        .collect();
    assert_eq!(sinks, [("a b", 5), ("ü", 2)]);
    assert_eq!(seen.sinks[0].2, sink_figures(5));
    Ok(())
}

async fn figures_go_with_their_relay(scene: Scene) -> CaseResult {
    let (gone, vanished, witness) = (
        scene.relay().await?,
        scene.idle_relay().await?,
        scene.idle_relay().await?,
    );
    let store = &scene.subject.relay;
    let figures = Figures {
        relay: Some(RelayFigures::default()),
        sinks: vec![("a".to_owned(), sink_figures(1))],
    };
    for relay in [&gone, &vanished, &witness] {
        store.write_figures(relay.owner, &figures).await?;
    }
    assert_eq!(overview(&scene).await?.relays.len(), 3);
    store.deregister(gone.owner).await?;
    vanished.vanish(&witness).await?;
    store.evict().await?;
    // Too late: whether it is an error or not, nothing comes of it.
    for relay in [&gone, &vanished] {
        let _ = store.write_figures(relay.owner, &figures).await;
    }
    for relay in [&gone, &vanished] {
        store
            .register(relay.owner, &RelayCard::named("again"), LONG_LEASE)
            .await?;
    }
    let found = overview(&scene).await?;
    for relay in &found.relays {
        let is_witness = relay.owner == witness.owner;
        assert_eq!(relay.figures.is_some(), is_witness, "{relay:#?}");
        assert_eq!(relay.sinks.len(), usize::from(is_witness), "{relay:#?}");
    }
    assert_eq!(found.relays.len(), 3);
    Ok(())
}

async fn a_relay_that_vanished_is_seen_until_it_is_evicted(scene: Scene) -> CaseResult {
    let (vanished, witness) = (scene.relay().await?, scene.idle_relay().await?);
    vanished.vanish(&witness).await?;
    let found = overview(&scene).await?;
    let alive: Vec<bool> = found.relays.iter().map(|relay| relay.alive).collect();
    assert_eq!(alive.iter().filter(|alive| **alive).count(), 1, "{:#?}", found.relays);
    assert_eq!(found.relays.len(), 2, "{:#?}", found.relays);
    assert_eq!(found.free_lanes.len() as u64, found.lanes, "its lease has run out");
    scene.subject.relay.evict().await?;
    assert_eq!(overview(&scene).await?.relays.len(), 1);
    Ok(())
}

fn counted(groups: &[Group]) -> Vec<(&str, &str, Status, u64)> {
    let mut counted: Vec<_> = groups
        .iter()
        .map(|group| (&*group.topic, &*group.sink, group.status, group.count))
        .collect();
    counted.sort_by_key(|(topic, sink, status, _)| (*topic, *sink, status.as_str()));
    counted
}

/// Reads what was emitted, and settles each message by its topic.
async fn settle_by_topic(relay: &mut ManualRelay, count: usize) -> CaseResult {
    for outgoing in relay.read_messages(count).await {
        let verdict = match &*outgoing.topic {
            "deferred" => Verdict::Retry {
                state: RetryState::Deferred,
                delay: LATER,
                charged: false,
                error: "the sink is down".into(),
            },
            "retry" => retry(LATER),
            "parked" => waiting(RetryState::Parked, LATER),
            "dead" => dead(DeadReason::Expired, false),
            _ => dead(DeadReason::Permanent, false),
        };
        let settlement = relay.settlement(&outgoing, vec![sink("cache", verdict)]);
        relay.settle(&[settlement]).await?;
    }
    Ok(())
}

async fn what_waits_is_grouped_by_topic_sink_and_status(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    let topics = [
        "deferred", "deferred", "retry", "parked", "dead", "hopeless", "hopeless",
    ];
    scene.emit(topics.map(plain)).await?;
    settle_by_topic(&mut relay, topics.len()).await?;
    scene
        .emit([
            plain("ready"),
            plain("ready"),
            plain("other"),
            plain("later").delay(LATER),
        ])
        .await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let found = overview(&scene).await?;
    assert_eq!(
        counted(&found.ready),
        [("other", "", Status::Pending, 1), ("ready", "", Status::Pending, 2)]
    );
    assert_eq!(
        counted(&found.waiting),
        [
            ("deferred", "cache", Status::Deferred, 2),
            ("later", "", Status::Scheduled, 1),
            ("parked", "cache", Status::Retry, 1),
            ("retry", "cache", Status::Retry, 1),
        ]
    );
    let mut dead = found.dead.clone();
    dead.sort();
    assert_eq!(dead, [("expired".to_owned(), 1), ("permanent".to_owned(), 2)]);
    for group in found.ready.iter().chain(&found.waiting) {
        let least = if group.status == Status::Scheduled { 0 } else { 10 };
        assert!(
            group.oldest >= Duration::from_millis(least) && group.oldest < Duration::from_secs(60),
            "{group:#?}"
        );
    }
    assert_eq!((found.health.ready, found.health.dead), (3, 3));
    Ok(())
}

async fn blocked_keys_are_counted_once(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    // Two followers behind a head that is tried again, one behind a dead letter, and a dead letter without any.
    for (key, count) in [("a", 3), ("b", 2), ("c", 1)] {
        scene.emit((0..count).map(|n| numbered(key, n))).await?;
    }
    let mut seen = Vec::new();
    for outgoing in relay.read_messages(6).await {
        let key = outgoing.key.clone().unwrap_or_default();
        let verdict = match (&*key, seen.contains(&key)) {
            (_, true) => Verdict::Blocked,
            ("a", false) => retry(LATER),
            (_, false) => dead(DeadReason::Permanent, true),
        };
        seen.push(key);
        let settlement = relay.settlement(&outgoing, vec![sink("cache", verdict)]);
        relay.settle(&[settlement]).await?;
    }
    assert_eq!(overview(&scene).await?.blocked_keys, 3);
    assert_eq!(
        scene.subject.operate.keys(10).await?.len(),
        3,
        "the list of keys agrees"
    );
    scene.subject.operate.release_key("c", None, "suite").await?;
    assert_eq!(overview(&scene).await?.blocked_keys, 2);
    Ok(())
}

async fn a_pause_is_seen_with_who_set_it(scene: Scene) -> CaseResult {
    let what = Pausable::Sink("cache".to_owned());
    scene.subject.operate.pause(&what, "ann@host").await?;
    let found = overview(&scene).await?;
    let pauses: Vec<_> = found.pauses.iter().map(|pause| (&pause.what, &*pause.by)).collect();
    assert_eq!(pauses, [(&what, "ann@host")]);
    Ok(())
}

async fn a_sample_has_an_end(scene: Scene) -> CaseResult {
    let many = u64::from(Overview::SAMPLE) + 500;
    scene.emit((0..many).map(|_| plain("later").delay(LATER))).await?;
    let found = overview(&scene).await?;
    let sampled: u64 = found.waiting.iter().map(|group| group.count).sum();
    assert_eq!(sampled, u64::from(Overview::SAMPLE));
    Ok(())
}

async fn jobs_are_seen_by_state(scene: Scene) -> CaseResult {
    scene.emit_jobs((0..3).map(|_| plain("job"))).await?;
    let jobs = overview(&scene).await?.jobs.expect("the store has jobs");
    assert_eq!((jobs.pending, jobs.total()), (3, 3));
    Ok(())
}
