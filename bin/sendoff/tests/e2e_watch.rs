//! Metrics and probes of a relay process: over HTTP, for systemd, in a liveness file and for DogStatsD, and a stall
//! that comes and goes.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

mod sandbox;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sandbox::{Running, Sandbox, TestDatabase, connect, lines, wait_until};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// A relay with its address.
struct Watched {
    relay: Running,
    address: String,
}

impl Watched {
    /// Starts a relay and waits until it logs its address.
    fn start(sandbox: &Sandbox, args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::run(sandbox, &[&["relay"], args].concat(), variables)
    }

    fn run(sandbox: &Sandbox, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = sandbox.command(["--log-format", "json"].iter().chain(args));
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        for (name, value) in variables {
            command.env(name, value);
        }
        let mut relay = Running::start(&mut command);
        let mut log = BufReader::new(relay.0.stderr.take().unwrap()).lines();
        let address = loop {
            let line = log.next().expect("the relay ended").unwrap();
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if line["event"] == "watch_listening" {
                break line["address"].as_str().unwrap().to_owned();
            }
        };
        // The pipe must be read, or the relay would block on it.
        std::thread::spawn(move || log.for_each(drop));
        Self { relay, address }
    }

    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The value of a series.
    fn metric(&self, series: &str) -> Option<f64> {
        let (status, text) = self.get("/metrics");
        assert_eq!(status, 200);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        Some(line.parse().unwrap())
    }

    /// Waits for an answer of `/ready`.
    #[track_caller]
    fn until_ready_says(&self, wanted: u16) -> Value {
        let begun = Instant::now();
        loop {
            let (status, body) = self.get("/ready");
            if status == wanted {
                return serde_json::from_str(&body).unwrap();
            }
            assert!(begun.elapsed() < LIMIT, "{status}: {body}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for an answer of `/ready` with this obstacle.
    #[track_caller]
    fn until_ready_says_kind(&self, wanted: u16, kind: &str) -> Value {
        let begun = Instant::now();
        loop {
            let said = self.until_ready_says(wanted);
            let obstacles = said["obstacles"].as_array().unwrap();
            if obstacles.iter().any(|obstacle| obstacle["kind"] == kind) {
                return said;
            }
            assert!(begun.elapsed() < LIMIT, "{said}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn stop(mut self) {
        self.relay.signal(Signal::TERM);
        assert!(self.relay.end(LIMIT).success());
    }
}

const WATCH: &str = "[watch]\nlisten = \"127.0.0.1:0\"\ninterval = \"100ms\"\n";

#[test]
fn e2e_a_relay_serves_metrics_and_probes_and_touches_its_file() {
    for sandbox in [Sandbox::sqlite(), Sandbox::postgres(), Sandbox::mysql()].map(Sandbox::migrated) {
        let out = sandbox.configure_file_sink(WATCH);
        let alive = sandbox.path("alive");
        let watched = Watched::start(&sandbox, &["--liveness-file", alive.to_str().unwrap()], &[]);
        watched.until_ready_says(200);
        assert_eq!(watched.get("/live"), (200, "alive\n".into()));
        assert_eq!(watched.get("/startup"), (200, "started\n".into()));
        for _ in 0..3 {
            sandbox.emit(&["order.placed", "--payload", "{}"]);
        }
        wait_until("all have arrived", LIMIT, || lines(&out).len() == 3);
        let series = |stage: &str| format!("sendoff_{stage}_count{{topic=\"order.placed\",sink=\"out\"}}");
        for stage in [
            "emit_to_ready",
            "ready_to_claimed",
            "claimed_to_confirmed",
            "begin_to_confirmed",
        ] {
            let series = series(&format!("{stage}_seconds"));
            wait_until(&series, LIMIT, || watched.metric(&series) == Some(3.0));
        }
        // By the database's clock, not this machine's: a newly emitted message is seconds old.
        let sum = watched.metric("sendoff_begin_to_confirmed_seconds_sum{topic=\"order.placed\",sink=\"out\"}");
        assert!((0.0..600.0).contains(&sum.unwrap()), "{sum:?}");
        wait_until("it is empty", LIMIT, || {
            watched.metric("sendoff_rows{state=\"ready\"}") == Some(0.0)
        });
        let wake_source = if matches!(sandbox.place, TestDatabase::Mysql { .. }) {
            "poll"
        } else {
            "listen"
        };
        wait_until("it is woken as it should be", LIMIT, || {
            watched.metric(&format!("sendoff_wake_source{{wake_source={wake_source:?}}}")) == Some(1.0)
        });
        wait_until("the file is there", LIMIT, || alive.exists());
        watched.stop();
    }
}

#[test]
fn e2e_a_stall_turns_ready_to_503_and_its_end_turns_it_back() {
    let sandbox = Sandbox::postgres().migrated();
    let out = sandbox.configure_file_sink(&format!("{WATCH}stall_after = \"1s\"\n"));
    let TestDatabase::Postgres { url, schema } = sandbox.place.clone() else {
        unreachable!()
    };
    // A session keeps all lanes locked, like a forgotten prompt: relays that start now get none.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let prompt = runtime.block_on(connect(&url));
    runtime
        .block_on(prompt.batch_execute(&format!("BEGIN; SELECT FROM {schema}.outbox_lane FOR UPDATE")))
        .unwrap();
    let watched = Watched::start(&sandbox, &[], &[]);
    watched.until_ready_says(200);
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    let said = watched.until_ready_says(503);
    assert_eq!(said["obstacles"][0]["kind"], "stalled", "{said}");
    assert_eq!(watched.metric("sendoff_obstacle{kind=\"stalled\"}"), Some(1.0));
    assert_eq!(watched.get("/live").0, 200, "a restart would not help");
    assert!(lines(&out).is_empty());
    runtime.block_on(prompt.batch_execute("ROLLBACK")).unwrap();
    watched.until_ready_says(200);
    wait_until("it arrives", LIMIT, || lines(&out).len() == 1);
    watched.stop();
}

#[test]
fn e2e_tables_that_are_changed_under_a_relay_are_noticed() {
    let sandbox = Sandbox::sqlite().migrated();
    sandbox.configure_file_sink(WATCH);
    let watched = Watched::start(&sandbox, &[], &[]);
    watched.until_ready_says(200);
    sandbox.sql("UPDATE outbox_migration SET version = version + 100");
    let said = watched.until_ready_says(503);
    assert_eq!(said["obstacles"][0]["kind"], "schema", "{said}");
    sandbox.sql("UPDATE outbox_migration SET version = version - 100");
    watched.until_ready_says(200);
    watched.stop();
}

#[test]
fn e2e_dogstatsd_and_systemd_hear_of_a_relay() {
    let sandbox = Sandbox::sqlite().migrated();
    let statsd = UdpSocket::bind("127.0.0.1:0").unwrap();
    statsd.set_read_timeout(Some(LIMIT)).unwrap();
    let port = statsd.local_addr().unwrap().port();
    let out = sandbox.configure_file_sink(&format!(
        "{WATCH}[statsd]\nenabled = true\nport = {port}\ntags = [\"env:test\"]\n"
    ));
    let notify = UnixDatagram::bind(sandbox.path("notify")).unwrap();
    notify.set_read_timeout(Some(LIMIT)).unwrap();
    let socket = sandbox.path("notify");
    let variables = [("NOTIFY_SOCKET", socket.to_str().unwrap()), ("WATCHDOG_USEC", "300000")];
    let watched = Watched::start(&sandbox, &[], &variables);
    let mut datagram = vec![0; 65_536];
    let mut told = || {
        let length = notify.recv(&mut datagram).unwrap();
        String::from_utf8_lossy(&datagram[..length]).into_owned()
    };
    assert!(told().starts_with("READY=1\n"));
    assert_eq!(told(), "WATCHDOG=1");
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    wait_until("it arrives", LIMIT, || lines(&out).len() == 1);
    let mut datagram = vec![0; 65_536];
    let mut heard = String::new();
    let wanted = [
        "sendoff.deliveries.published:1|c|#topic:order.placed,env:test",
        "sendoff.queue.depth:0|g|#env:test",
    ];
    while !wanted.iter().all(|line| heard.lines().any(|heard| heard == *line)) {
        let length = statsd
            .recv(&mut datagram)
            .unwrap_or_else(|error| panic!("{error}: {heard}"));
        heard.push_str(std::str::from_utf8(&datagram[..length]).unwrap());
        heard.push('\n');
    }
    watched.stop();
    let mut last = told();
    while last == "WATCHDOG=1" {
        last = told();
    }
    assert_eq!(last, "STOPPING=1");
}

const DJANGO: [&str; 3] = [
    include_str!("../../../stores/django-celery/tests/fixtures/sqlite.sql"),
    include_str!("../../../stores/django-celery/tests/fixtures/postgres.sql"),
    include_str!("../../../stores/django-celery/tests/fixtures/mysql.sql"),
];

/// The tables of Django's migrations.
fn with_django_tables(sandbox: Sandbox) -> Sandbox {
    let [sqlite, postgres, mysql] = DJANGO;
    // The migration of our own tables creates the schema or the database.
    let sandbox = sandbox.migrated();
    sandbox.sql(&match sandbox.place {
        TestDatabase::Sqlite(_) => sqlite.to_owned(),
        TestDatabase::Postgres { .. } => postgres.replace("public.", ""),
        TestDatabase::Mysql { .. } => mysql.to_owned(),
    });
    sandbox
}

/// Django does not use schemas: its tables are in the first schema of the search path.
fn django_url(place: &TestDatabase) -> String {
    match place {
        TestDatabase::Sqlite(_) => place.url(),
        TestDatabase::Postgres { url, schema } => {
            let mark = if url.contains('?') { '&' } else { '?' };
            format!("{url}{mark}options=-csearch_path%3D{schema}")
        }
        TestDatabase::Mysql { url, schema } => {
            let opts = mysql_async::Opts::from_url(url).unwrap();
            let password = opts.pass().map(|password| format!(":{password}")).unwrap_or_default();
            let (user, host, port) = (opts.user().unwrap_or_default(), opts.ip_or_hostname(), opts.tcp_port());
            format!("mysql://{user}{password}@{host}:{port}/{schema}")
        }
    }
}

fn add_task(sandbox: &Sandbox, options: &str) {
    let now = match sandbox.place {
        TestDatabase::Sqlite(_) => "strftime('%Y-%m-%d %H:%M:%f', 'now')",
        TestDatabase::Postgres { .. } => "now()",
        TestDatabase::Mysql { .. } => "UTC_TIMESTAMP(6)",
    };
    sandbox.sql(&format!(
        "INSERT INTO celery_outbox (created_at, retries, task_id, task_name, args, kwargs, options, schema_version,
            structlog_context) VALUES ({now}, 0, '{}', 'shop.add', '[1, 2]', '{{}}', '{options}', 1, '{{\"request\": 7}}')",
        sendoff::Uuid::now_v7()
    ));
}

#[test]
fn e2e_celery_relay_serves_metrics_and_probes_on_all_databases() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let mut redis = runtime.block_on(sendoff_testkit::servers::Redis::start());
    for sandbox in [Sandbox::sqlite(), Sandbox::postgres(), Sandbox::mysql()].map(with_django_tables) {
        sandbox.configure(&format!("{WATCH}stall_after = \"2s\"\n"));
        let url = redis.url();
        let cooldown = ["--broker-outage-cooldown", "0.2", "--idle-time", "0.1"];
        let database = django_url(&sandbox.place);
        let args = [
            &["celery-relay", "--database", &database, "--broker", &url],
            &cooldown[..],
        ]
        .concat();
        let watched = Watched::run(&sandbox, &args, &[]);
        watched.until_ready_says(200);
        assert_eq!(watched.get("/live"), (200, "alive\n".into()));
        assert_eq!(watched.get("/startup"), (200, "started\n".into()));
        for _ in 0..3 {
            add_task(&sandbox, "{}");
        }
        // Charged once, and then waiting for a second attempt.
        add_task(&sandbox, r#"{"countdown": "soon"}"#);
        for (series, value) in [
            (
                "sendoff_published_total{topic=\"shop.add\",sink=\"celery\",outcome=\"delivered\"}",
                3.0,
            ),
            (
                "sendoff_published_total{topic=\"shop.add\",sink=\"celery\",outcome=\"permanent\"}",
                1.0,
            ),
            ("sendoff_retried_total{topic=\"shop.add\",sink=\"celery\"}", 1.0),
            (
                "sendoff_begin_to_confirmed_seconds_count{topic=\"shop.add\",sink=\"celery\"}",
                3.0,
            ),
            ("sendoff_settled_rows_total", 4.0),
            ("sendoff_rows{state=\"ready\"}", 0.0),
            ("sendoff_rows{state=\"waiting\"}", 1.0),
            ("sendoff_in_flight_rows", 0.0),
            ("sendoff_sink_reachable{sink=\"celery\"}", 1.0),
            ("sendoff_ready", 1.0),
        ] {
            wait_until(series, LIMIT, || watched.metric(series) == Some(value));
        }
        // By the database's clock: newly added tasks are seconds old.
        let sum = watched.metric("sendoff_begin_to_confirmed_seconds_sum{topic=\"shop.add\",sink=\"celery\"}");
        assert!((0.0..600.0).contains(&sum.unwrap()), "{sum:?}");

        redis.kill();
        add_task(&sandbox, "{}");
        let said = watched.until_ready_says(503);
        assert_eq!(said["obstacles"][0]["kind"], "sinks", "{said}");
        assert_eq!(watched.get("/live").0, 200, "a restart would not help");
        runtime.block_on(redis.restart());
        watched.until_ready_says(200);
        watched.stop();
    }
}

#[test]
fn e2e_tasks_that_celery_relay_cannot_take_turn_ready_to_503() {
    let sandbox = with_django_tables(Sandbox::postgres());
    sandbox.configure(&format!("{WATCH}stall_after = \"1s\"\n"));
    let TestDatabase::Postgres { url, schema } = sandbox.place.clone() else {
        unreachable!()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let prompt = runtime.block_on(connect(&url));
    let redis = runtime.block_on(sendoff_testkit::servers::Redis::start());
    add_task(&sandbox, "{}");
    let lock = format!("BEGIN; LOCK TABLE {schema}.celery_outbox IN EXCLUSIVE MODE");
    runtime.block_on(prompt.batch_execute(&lock)).unwrap();
    // Counting still works, claiming waits for the lock: the task exists, and no relay takes it.
    let database = django_url(&sandbox.place);
    let watched = Watched::run(
        &sandbox,
        &["celery-relay", "--database", &database, "--broker", &redis.url()],
        &[],
    );
    let said = watched.until_ready_says_kind(503, "stalled");
    assert_eq!(watched.get("/live").0, 200, "{said}");
    assert_eq!(watched.get("/startup").0, 200, "{said}");
    runtime.block_on(prompt.batch_execute("ROLLBACK")).unwrap();
    watched.until_ready_says(200);
    watched.stop();
}

#[test]
fn e2e_lines_about_a_task_have_the_log_context_of_its_request() {
    let sandbox = with_django_tables(Sandbox::sqlite());
    add_task(&sandbox, r#"{"countdown": "soon"}"#);
    let args = [
        "--log-format",
        "json",
        "celery-relay",
        "--once",
        "--broker",
        "redis://127.0.0.1:1",
    ];
    let ran = sandbox.ok(args);
    let mut lines = ran
        .err
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let failed = lines.find(|line| line["event"] == "celery_task_failed");
    let failed = failed.unwrap_or_else(|| panic!("no line about it: {}", ran.err));
    assert_eq!(failed["context"], r#"{"request": 7}"#, "{failed}");
}
