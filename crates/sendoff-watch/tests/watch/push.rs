//! What the watch sends by itself: to DogStatsD, to systemd, and to a file.

use super::*;

/// Everything that arrives until each of these lines has.
async fn heard<F: Future<Output = String>>(receive: impl Fn() -> F, wanted: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let hear = async {
        while !wanted.iter().all(|line| lines.iter().any(|heard| heard == line)) {
            lines.extend(receive().await.lines().map(str::to_owned));
        }
    };
    let all = tokio::time::timeout(Duration::from_secs(30), hear).await.is_ok();
    assert!(all, "{wanted:?} in {lines:#?}");
    lines
}

fn statsd(target: StatsdTarget, prefix: &str, topic_tag: &str, tags: &[&str]) -> WatchConfig {
    WatchConfig {
        statsd: Some(StatsdConfig {
            target,
            prefix: prefix.into(),
            topic_tag: topic_tag.into(),
            tags: tags.iter().map(ToString::to_string).collect(),
            drop_in: prefix == "celery_outbox",
        }),
        ..listening()
    }
}

#[tokio::test]
async fn dogstatsd_hears_the_documented_names_by_udp() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let target = StatsdTarget::Udp {
        host: "127.0.0.1".into(),
        port: socket.local_addr().unwrap().port(),
    };
    let store = Arc::new(MemoryStore::new());
    store
        .emit_topics(&["app.add", "app.add", "again", "never"])
        .await
        .unwrap();
    let config = statsd(target, "celery_outbox", "task_name", &["env:test", "team:a"]);
    let scene = Scene::start(&store, Arc::new(Post), config).await;
    let receive = || async {
        let mut datagram = vec![0; 65_536];
        let length = socket.recv(&mut datagram).await.unwrap();
        String::from_utf8(datagram[..length].to_vec()).unwrap()
    };
    let lines = heard(
        receive,
        &[
            "celery_outbox.messages.published:2|c|#task_name:app.add,env:test,team:a",
            "celery_outbox.messages.published:1|c|#task_name:again,env:test,team:a",
            "celery_outbox.messages.failed:1|c|#task_name:again,env:test,team:a",
            "celery_outbox.messages.failed:1|c|#task_name:never,env:test,team:a",
            "celery_outbox.messages.exceeded:1|c|#task_name:never,env:test,team:a",
            "celery_outbox.queue.depth:0|g|#env:test,team:a",
            "celery_outbox.dead_letter.count:1|g|#env:test,team:a",
        ],
    )
    .await;
    let timing = lines
        .iter()
        .find_map(|line| line.strip_prefix("celery_outbox.batch.duration_ms:"));
    let (ms, rest) = timing.expect("a timing").split_once('|').unwrap();
    assert!(
        ms.parse::<f64>().unwrap() >= 0.0 && rest == "ms|#env:test,team:a",
        "{timing:?}"
    );
    scene.end().await;
}

#[tokio::test]
async fn dogstatsd_hears_the_same_by_a_unix_socket_and_the_last_of_it_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dsd.socket");
    let socket = UnixDatagram::bind(&path).unwrap();
    let store = Arc::new(MemoryStore::new());
    let config = statsd(StatsdTarget::Unix(path), "sendoff", "topic", &[]);
    let scene = Scene::start(&store, Arc::new(Post), config).await;
    store.emit_topics(&["order.placed"]).await.unwrap();
    scene
        .until("it is settled", |metrics| metrics["sendoff_settled_rows_total"] == 1.0)
        .await;
    scene.end().await;
    let receive = || async {
        let mut datagram = vec![0; 65_536];
        let length = socket.recv(&mut datagram).await.unwrap();
        String::from_utf8(datagram[..length].to_vec()).unwrap()
    };
    let lines = heard(
        receive,
        &[
            "sendoff.deliveries.published:1|c|#topic:order.placed",
            "sendoff.dead_letter.count:0|g",
        ],
    )
    .await;
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("sendoff.queue.depth:") && line.ends_with("|g"))
    );
}

#[tokio::test]
async fn systemd_hears_of_the_start_of_life_and_of_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let variable = |name: &str| match name {
        "NOTIFY_SOCKET" => Some(path.clone().into_os_string()),
        "WATCHDOG_USEC" => Some("30000".into()),
        _ => None,
    };
    let config = WatchConfig {
        systemd: Systemd::from_env(variable, std::process::id()),
        ..listening()
    };
    let store = Arc::new(MemoryStore::new());
    let scene = Scene::start(&store, Arc::new(Post), config).await;
    let receive = || async {
        let mut datagram = vec![0; 4096];
        let length = socket.recv(&mut datagram).await.unwrap();
        String::from_utf8(datagram[..length].to_vec()).unwrap()
    };
    let lines = heard(receive, &["READY=1", "WATCHDOG=1"]).await;
    assert_eq!(lines[0], "READY=1", "before anything else");
    scene.end().await;
    heard(receive, &["STOPPING=1"]).await;
}

#[tokio::test]
async fn a_liveness_file_is_touched_while_the_relay_works_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alive");
    let config = WatchConfig {
        liveness_file: Some(path.clone()),
        ..listening()
    };
    let store = Arc::new(MemoryStore::new());
    let scene = Scene::start(&store, Arc::new(Post), config).await;
    let touched = || path.metadata().ok().map(|metadata| metadata.modified().unwrap());
    let mut seen = std::collections::BTreeSet::new();
    let begun = std::time::Instant::now();
    while seen.len() < 3 {
        seen.extend(touched());
        assert!(begun.elapsed() < Duration::from_secs(30), "{seen:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    scene.end().await;
    // One touch may still have been under way.
    let mut last = None;
    for _ in 0..10 {
        if touched() == last {
            return;
        }
        last = touched();
        tokio::time::sleep(Duration::from_millis(1200)).await;
    }
    panic!("it is touched although the relay has ended");
}
