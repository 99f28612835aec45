//! Starts and holds all parts of the watch.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::health::Readiness;
use crate::look::{keep_checking, keep_looking, look};
use crate::statsd::{Sender, StatsdConfig};
use crate::subject::{Subject, Surroundings};
use crate::systemd::Systemd;
use crate::{liveness, render, serve};

/// Settings of the watch: what watches a relay, and where to send the results.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchConfig {
    /// The address for `/metrics` and the probes, such as `127.0.0.1:9464`; `None`: no server.
    pub listen: Option<String>,
    /// How often the database is checked.
    pub interval: Duration,
    /// After this time, a ready message that no relay takes counts as a stall.
    pub stall_after: Duration,
    /// How many topics have their own metrics; all others are counted under the topic `other`.
    pub topics: usize,
    /// The file to touch while the relay works.
    pub liveness_file: Option<PathBuf>,
    /// Where to send metrics by StatsD.
    pub statsd: Option<StatsdConfig>,
    /// How to notify systemd.
    pub systemd: Option<Systemd>,
}

impl WatchConfig {
    /// Whether no part of the watch is configured.
    pub fn is_off(&self) -> bool {
        self.listen.is_none() && self.liveness_file.is_none() && self.statsd.is_none() && self.systemd.is_none()
    }
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self {
            listen: None,
            interval: Duration::from_secs(5),
            stall_after: Duration::from_secs(60),
            topics: 100,
            liveness_file: None,
            statsd: None,
            systemd: None,
        }
    }
}

/// Watches relays: one, or several in one process.
///
/// ```
/// use std::sync::Arc;
/// use sendoff_relay::{CancellationToken, Relay};
/// use sendoff_watch::{Surroundings, Watch, WatchConfig};
///
/// # async fn run(store: Arc<dyn sendoff::store::RelayStore>, sink: Arc<dyn sendoff::Sink>) -> sendoff::Result<()> {
/// let mut watch = Watch::new(WatchConfig { listen: Some("127.0.0.1:9464".into()), ..WatchConfig::default() });
/// let subject = watch.subject("");
/// let relay = Relay::builder(store.clone())
///     .sink("out", sink)
///     .route("*".parse()?, ["out"])
///     .observer(subject.clone())
///     .build()?;
/// let surroundings = Surroundings { store, migrate: None, sinks: relay.sinks() };
/// let watching = watch.start(vec![(subject, surroundings)]).await?;
/// relay.run(CancellationToken::new()).await?;
/// watching.end().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Watch {
    config: Arc<WatchConfig>,
    subjects: Vec<Arc<Subject>>,
}

impl Watch {
    /// A watch without relays.
    pub fn new(config: WatchConfig) -> Self {
        Self {
            config: Arc::new(config),
            subjects: Vec::new(),
        }
    }

    /// Adds a relay and returns its observer. The name is the label `source`, which distinguishes several relays of a
    /// process; with an empty name there is no label.
    pub fn subject(&mut self, name: &str) -> Arc<Subject> {
        let WatchConfig {
            topics, stall_after, ..
        } = *self.config;
        let subject = Arc::new(Subject::new(name, topics, self.config.statsd.is_some(), stall_after));
        self.subjects.push(subject.clone());
        subject
    }

    /// Starts all configured parts, and checks the stores once.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the address cannot be listened on.
    pub async fn start(&self, watched: Vec<(Arc<Subject>, Surroundings)>) -> Result<Watching> {
        let mut tasks = JoinSet::new();
        let mut address = None;
        if let Some(listen) = &self.config.listen {
            let refused = |error: std::io::Error| {
                Error::new(ErrorKind::Invalid, format!("cannot listen on {listen}"))
                    .because(error.to_string())
                    .next_step("set watch.listen to a free address of this machine, such as 127.0.0.1:9464")
                    .with_source(error)
            };
            let listener = TcpListener::bind(listen).await.map_err(refused)?;
            let bound = listener.local_addr().map_err(refused)?;
            tracing::info!(event = "watch_listening", address = %bound, "serving metrics and probes");
            address = Some(bound);
            tasks.spawn(serve::serve(self.clone(), listener));
        }
        let interval = self.config.interval.min(self.config.stall_after / 4);
        // Latencies are measured by the database's clock, so it must be known before the first message arrives.
        let mut first_looks = JoinSet::new();
        for (subject, surroundings) in watched {
            let Surroundings { store, migrate, sinks } = surroundings;
            let (of, from, with) = (subject.clone(), store.clone(), migrate.clone());
            first_looks.spawn(async move { look(&of, from.as_ref(), with.as_deref()).await });
            tasks.spawn(keep_looking(subject.clone(), store, migrate, interval));
            tasks.spawn(keep_checking(subject, sinks));
        }
        first_looks.join_all().await;
        let relay_healths = self.relay_healths(&mut tasks);
        if let Some(path) = &self.config.liveness_file {
            tasks.spawn(liveness::keep_touching(path.clone(), relay_healths.clone()));
        }
        if let Some(systemd) = &self.config.systemd {
            tasks.spawn(systemd.clone().keep_telling(relay_healths));
        }
        let statsd = self.config.statsd.clone().map(|config| {
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let mut sender = Sender::new(&self.subjects, config);
            let task = tokio::spawn(async move {
                tokio::select! {
                    () = sender.keep_sending() => {}
                    _ = stopped => {}
                }
                sender.send().await;
            });
            (stop, task)
        });
        Ok(Watching {
            address,
            _tasks: tasks,
            statsd,
            systemd: self.config.systemd.clone(),
        })
    }

    /// All metrics, in Prometheus' text format.
    pub fn render(&self) -> String {
        render::render(&self.subjects, Instant::now())
    }

    /// Whether all relays are ready, and if not, why.
    pub fn readiness(&self) -> Readiness {
        let now = Instant::now();
        let of = |subject: &Arc<Subject>| subject.health().readiness(now).named(subject.name());
        Readiness {
            obstacles: self.subjects.iter().flat_map(|subject| of(subject).obstacles).collect(),
        }
    }

    /// Whether all relays work, or have not started yet.
    pub fn is_alive(&self) -> bool {
        let now = Instant::now();
        self.subjects.iter().all(|subject| subject.health().is_alive(now))
    }

    /// Whether all relays have started to work.
    pub fn has_started(&self) -> bool {
        self.subjects.iter().all(|subject| subject.health().has_started())
    }

    /// One stream of health reports for all relays: it reports only while every relay is alive.
    fn relay_healths(&self, tasks: &mut JoinSet<()>) -> watch::Receiver<Option<Instant>> {
        if let [only] = &*self.subjects {
            return only.relay_healths();
        }
        let (sender, receiver) = watch::channel(None);
        let watch = self.clone();
        tasks.spawn(async move {
            loop {
                sleep(Duration::from_millis(250)).await;
                if watch.has_started() && watch.is_alive() {
                    sender.send_replace(Some(Instant::now()));
                }
            }
        });
        receiver
    }
}

/// A running watch. Dropping it ends it.
pub struct Watching {
    address: Option<SocketAddr>,
    _tasks: JoinSet<()>,
    statsd: Option<(tokio::sync::oneshot::Sender<()>, tokio::task::JoinHandle<()>)>,
    systemd: Option<Systemd>,
}

impl Watching {
    /// The address that the watch listens on.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Ends the watch after the relay has stopped, and sends the remaining metrics.
    pub async fn end(mut self) {
        if let Some(systemd) = &self.systemd {
            systemd.tell("STOPPING=1");
        }
        if let Some((stop, task)) = self.statsd.take() {
            drop(stop);
            let _ = timeout(Duration::from_secs(2), task).await;
        }
    }
}
