//! A relay that is watched: its metrics, its probes, and what DogStatsD and systemd hear.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

mod push;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{RelayCard, RelayStore};
use sendoff::{Error, ErrorKind, Outcome, Outgoing, Sink};
use sendoff_relay::{CancellationToken, Relay, RetryPolicy, TopicPolicy};
use sendoff_testkit::MemoryStore;
use sendoff_watch::{FAMILIES, Kind, StatsdConfig, StatsdTarget, Surroundings, Systemd, Watch, WatchConfig, Watching};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket, UnixDatagram};
use tokio::task::JoinHandle;

/// `never` fails for good, `again` the first time; the rest is delivered.
struct Post;

#[async_trait]
impl Sink for Post {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let outcome = |outgoing: &Arc<Outgoing>| match (outgoing.topic.as_str(), outgoing.attempts) {
            ("never", _) => Outcome::Permanent("no".into()),
            ("again", 0) => Outcome::Temporary("not yet".into()),
            ("down", _) => Outcome::SinkDown("out of order".into()),
            _ => Outcome::Delivered,
        };
        batch.iter().map(outcome).collect()
    }

    async fn check(&self) -> sendoff::Result<()> {
        Ok(())
    }
}

/// Cannot be reached, and nobody has tried to send anything yet.
struct Unreachable;

#[async_trait]
impl Sink for Unreachable {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        vec![Outcome::SinkDown("nobody there".into()); batch.len()]
    }

    async fn check(&self) -> sendoff::Result<()> {
        Err(Error::new(ErrorKind::Unreachable, "nobody there"))
    }
}

struct Scene {
    watch: Watch,
    watching: Watching,
    relay: JoinHandle<sendoff::Result<sendoff_relay::RunReport>>,
    stop: CancellationToken,
}

impl Scene {
    async fn start(store: &Arc<MemoryStore>, sink: Arc<dyn Sink>, config: WatchConfig) -> Self {
        let mut watch = Watch::new(config);
        let subject = watch.subject("");
        let policy = TopicPolicy {
            retry: RetryPolicy {
                base: Duration::from_millis(10),
                ..RetryPolicy::default()
            },
            ..TopicPolicy::default()
        };
        let relay = Relay::builder(store.clone())
            .sink("post", sink)
            .route("*".parse().unwrap(), ["post"])
            .default_policy(policy)
            .observer(subject.clone())
            .build()
            .unwrap();
        let surroundings = Surroundings {
            store: store.clone(),
            migrate: None,
            sinks: relay.sinks(),
        };
        let watching = watch.start(vec![(subject, surroundings)]).await.unwrap();
        let stop = CancellationToken::new();
        let relay = tokio::spawn(relay.run(stop.clone()));
        Self {
            watch,
            watching,
            relay,
            stop,
        }
    }

    /// Waits until the metrics are so.
    async fn until(&self, what: &str, so: impl Fn(&BTreeMap<String, f64>) -> bool) -> BTreeMap<String, f64> {
        let begun = std::time::Instant::now();
        loop {
            let metrics = parsed(&self.watch.render());
            if so(&metrics) {
                return metrics;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "in vain until {what}: {metrics:#?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(self) {
        self.stop.cancel();
        self.relay.await.unwrap().unwrap();
        self.watching.end().await;
    }
}

fn parsed(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

async fn get(scene: &Scene, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(scene.watching.address().unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn listening() -> WatchConfig {
    WatchConfig {
        listen: Some("127.0.0.1:0".into()),
        interval: Duration::from_millis(50),
        ..WatchConfig::default()
    }
}

#[tokio::test]
async fn metrics_tell_what_became_of_messages_and_how_long_it_took() {
    let store = Arc::new(MemoryStore::new());
    let scene = Scene::start(&store, Arc::new(Post), listening()).await;
    store.emit_topics(&["fine", "fine", "again", "never"]).await.unwrap();
    let delivered =
        |topic: &str| format!("sendoff_published_total{{topic={topic:?},sink=\"post\",outcome=\"delivered\"}}");
    let again = delivered("again");
    let metrics = scene
        .until("all is settled", |metrics| {
            metrics.get(&again) == Some(&1.0)
                && metrics["sendoff_settled_rows_total"] == 5.0
                && metrics.get("sendoff_lanes_owned").is_some_and(|lanes| *lanes > 0.0)
                && metrics.get("sendoff_rows{state=\"dead\"}") == Some(&1.0)
        })
        .await;
    let value = |name: &str| *metrics.get(name).unwrap_or_else(|| panic!("{name} in {metrics:#?}"));
    assert_eq!(value(&delivered("fine")), 2.0);
    assert_eq!(
        value("sendoff_published_total{topic=\"again\",sink=\"post\",outcome=\"temporary\"}"),
        1.0
    );
    assert_eq!(value("sendoff_retried_total{topic=\"again\",sink=\"post\"}"), 1.0);
    assert_eq!(
        value("sendoff_dead_lettered_total{topic=\"never\",sink=\"post\",reason=\"permanent\"}"),
        1.0
    );
    for (stage, count) in [
        ("emit_to_ready", 2.0),
        ("ready_to_claimed", 2.0),
        ("claimed_to_confirmed", 2.0),
        ("begin_to_confirmed", 2.0),
    ] {
        let labels = "topic=\"fine\",sink=\"post\"";
        assert_eq!(value(&format!("sendoff_{stage}_seconds_count{{{labels}}}")), count);
        assert_eq!(
            value(&format!("sendoff_{stage}_seconds_bucket{{{labels},le=\"+Inf\"}}")),
            count
        );
        let sum = value(&format!("sendoff_{stage}_seconds_sum{{{labels}}}"));
        assert!((0.0..600.0).contains(&sum), "{stage}: {sum}");
    }
    // What was tried twice came late, and was ready only once.
    assert_eq!(
        value("sendoff_begin_to_confirmed_seconds_count{topic=\"again\",sink=\"post\"}"),
        1.0
    );
    assert!(!metrics.contains_key("sendoff_ready_to_claimed_seconds_count{topic=\"again\",sink=\"post\"}"));
    assert_eq!(value("sendoff_sink_state{sink=\"post\",state=\"up\"}"), 1.0);
    assert_eq!(value("sendoff_rows{state=\"ready\"}"), 0.0);
    assert!(value("sendoff_lanes_owned") > 0.0 && value("sendoff_relays") == 1.0);
    assert_eq!(value("sendoff_wake_source{wake_source=\"poll\"}"), 1.0);
    assert_eq!(value("sendoff_ready"), 1.0);
    scene.end().await;
}

#[tokio::test]
async fn every_metric_has_its_head_and_every_series_a_family() {
    let store = Arc::new(MemoryStore::new());
    let scene = Scene::start(&store, Arc::new(Post), listening()).await;
    store.emit_topics(&["fine", "never", "again"]).await.unwrap();
    scene
        .until("the sinks were checked", |metrics| {
            metrics.contains_key("sendoff_sink_reachable{sink=\"post\"}")
                && metrics.contains_key("sendoff_retried_total{topic=\"again\",sink=\"post\"}")
                && metrics.contains_key("sendoff_begin_to_confirmed_seconds_count{topic=\"fine\",sink=\"post\"}")
                && metrics
                    .contains_key("sendoff_dead_lettered_total{topic=\"never\",sink=\"post\",reason=\"permanent\"}")
        })
        .await;
    let text = scene.watch.render();
    for family in FAMILIES {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let head = format!(
            "# HELP {} {}\n# TYPE {} {kind}\n",
            family.name, family.help, family.name
        );
        assert_eq!(text.matches(&head).count(), 1, "{head}");
        let ends: &[&str] = match family.kind {
            Kind::Histogram => &["_bucket", "_sum", "_count"],
            Kind::Counter | Kind::Gauge => &[""],
        };
        for end in ends {
            let name = format!("{}{end}", family.name);
            let is_it = |line: &&str| line.split(['{', ' ']).next() == Some(name.as_str());
            assert!(text.lines().any(|line| is_it(&line)), "{name} has no series in {text}");
        }
    }
    let known = |line: &str| FAMILIES.iter().any(|family| line.starts_with(family.name));
    assert!(text.lines().filter(|line| !line.starts_with('#')).all(known));
    scene.end().await;
}

#[tokio::test]
async fn the_probes_answer_over_http() {
    let store = Arc::new(MemoryStore::new());
    let scene = Scene::start(&store, Arc::new(Post), listening()).await;
    scene
        .until("it has its lanes", |metrics| {
            metrics["sendoff_ready"] == 1.0 && metrics["sendoff_lanes_owned"] == 80.0
        })
        .await;
    assert_eq!(get(&scene, "/live").await, (200, "alive\n".into()));
    assert_eq!(get(&scene, "/startup").await, (200, "started\n".into()));
    assert_eq!(
        get(&scene, "/ready").await,
        (200, "{\"obstacles\":[],\"ready\":true}\n".into())
    );
    let (status, metrics) = get(&scene, "/metrics").await;
    assert!(status == 200 && metrics.contains("sendoff_lanes_owned 80"), "{metrics}");
    assert_eq!(get(&scene, "/else").await.0, 404);
    scene.end().await;
}

#[tokio::test]
async fn a_relay_that_has_not_begun_is_alive_and_not_ready() {
    let mut watch = Watch::new(listening());
    watch.subject("shop");
    assert!(watch.is_alive() && !watch.has_started());
    let obstacle = &watch.readiness().obstacles[0];
    assert_eq!(
        (obstacle.kind, obstacle.why.as_str()),
        ("starting", "shop: the relay has not started to work")
    );
    assert!(
        watch
            .render()
            .contains("sendoff_obstacle{kind=\"starting\",source=\"shop\"} 1\n")
    );
}

#[tokio::test]
async fn it_is_not_ready_while_no_sink_can_be_reached() {
    let store = Arc::new(MemoryStore::new());
    let scene = Scene::start(&store, Arc::new(Unreachable), listening()).await;
    scene
        .until("the sink was checked", |metrics| {
            metrics.get("sendoff_obstacle{kind=\"sinks\"}") == Some(&1.0) && metrics["sendoff_lanes_owned"] > 0.0
        })
        .await;
    let (status, body) = get(&scene, "/ready").await;
    assert_eq!(status, 503, "{body}");
    assert!(
        body.contains("nobody there") && body.contains("\"kind\":\"sinks\""),
        "{body}"
    );
    assert_eq!(get(&scene, "/live").await.0, 200, "a restart would not help");
    scene.end().await;
}

#[tokio::test]
async fn it_is_not_ready_while_a_sink_that_is_the_only_one_is_down() {
    let store = Arc::new(MemoryStore::new());
    store.emit_topics(&["down"]).await.unwrap();
    let scene = Scene::start(&store, Arc::new(Post), listening()).await;
    scene
        .until("the breaker is open", |metrics| {
            metrics.get("sendoff_sink_state{sink=\"post\",state=\"down\"}") == Some(&1.0)
        })
        .await;
    let readiness = scene.watch.readiness();
    assert_eq!(readiness.obstacles[0].why, "post is down");
    scene.end().await;
}

#[tokio::test]
async fn a_stall_is_noticed_and_so_is_its_end() {
    let store = Arc::new(MemoryStore::new());
    // Another relay holds every lane and then falls silent for good, without anybody to take over.
    let other = sendoff::store::OwnerId::random();
    store
        .register(other, &RelayCard::named("other"), Duration::from_secs(3600))
        .await
        .unwrap();
    store.acquire(other, usize::MAX).await.unwrap();
    store.emit_topics(&["fine"]).await.unwrap();
    let config = WatchConfig {
        stall_after: Duration::from_millis(400),
        ..listening()
    };
    let scene = Scene::start(&store, Arc::new(Post), config).await;
    scene.until("it began", |metrics| metrics["sendoff_ready"] == 1.0).await;
    // Its lease runs out. The relay would take the lanes at its next heartbeat, if that worked.
    store.faults().fail(sendoff_testkit::Verb::Evict, u32::MAX);
    store.heartbeat(other, Duration::from_millis(1)).await.unwrap();
    scene
        .until("the stall is seen", |metrics| metrics["sendoff_ready"] == 0.0)
        .await;
    let readiness = scene.watch.readiness();
    assert_eq!(readiness.obstacles[0].kind, "stalled", "{readiness:?}");
    store.faults().clear();
    scene
        .until("it is over", |metrics| metrics["sendoff_ready"] == 1.0)
        .await;
    scene.end().await;
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_told() {
    let store = Arc::new(MemoryStore::new());
    let config = WatchConfig {
        stall_after: Duration::from_millis(200),
        ..listening()
    };
    let scene = Scene::start(&store, Arc::new(Post), config).await;
    scene
        .until("it is ready", |metrics| metrics["sendoff_ready"] == 1.0)
        .await;
    store.faults().fail(sendoff_testkit::Verb::StoreHealth, u32::MAX);
    scene
        .until("it is noticed", |metrics| {
            metrics["sendoff_obstacle{kind=\"store\"}"] == 1.0 && metrics["sendoff_store_up"] == 0.0
        })
        .await;
    store.faults().clear();
    scene
        .until("it is back", |metrics| metrics["sendoff_ready"] == 1.0)
        .await;
    scene.end().await;
}
