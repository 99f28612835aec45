//! Two relays in one process that share the lanes. From time to time one of them is killed and another is started, as
//! if a process had crashed.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::RelayStore;
use sendoff::{Error, ErrorKind, Result, Sink, Waker};
use sendoff_relay::{OnFailure, Relay, RetryPolicy, RunReport, Settings, TopicPolicy};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::handlers::Watch;
use super::record::Record;

/// How long a killed relay keeps its lanes.
pub(super) const LEASE: Duration = Duration::from_secs(2);

pub(super) struct Relays {
    store: Arc<dyn RelayStore>,
    sink: Arc<dyn Sink>,
    record: Record,
    waker: Waker,
    /// How many were started in total.
    started: u32,
    /// Oldest first.
    running: Vec<Running>,
}

struct Running {
    name: String,
    stop: CancellationToken,
    task: JoinHandle<Result<RunReport>>,
}

impl Relays {
    /// Starts two relays.
    pub(super) fn start(store: Arc<dyn RelayStore>, sink: Arc<dyn Sink>, record: Record, waker: Waker) -> Result<Self> {
        let mut relays = Self {
            store,
            sink,
            record,
            waker,
            started: 0,
            running: Vec::new(),
        };
        relays.start_one()?;
        relays.start_one()?;
        Ok(relays)
    }

    /// Kills the oldest relay during its work, and starts a new one.
    pub(super) fn kill_one(&mut self) -> Result<()> {
        let victim = self.running.remove(0);
        victim.task.abort();
        // Ends its helper task that waits for wake-ups; the relay itself is already aborted.
        victim.stop.cancel();
        self.start_one()?;
        self.record.killed(format!(
            "{} was killed; {} takes over when its lease of {} s ends",
            victim.name,
            self.names(),
            LEASE.as_secs()
        ));
        Ok(())
    }

    /// Stops both relays: they finish what is with a handler and release their lanes.
    pub(super) async fn stop(self) -> Result<()> {
        for relay in &self.running {
            relay.stop.cancel();
        }
        for relay in self.running {
            relay.task.await.map_err(|error| {
                Error::new(ErrorKind::Backend, format!("{} crashed", relay.name))
                    .because(error.to_string())
                    .next_step("run the demo again with -v and check the log")
                    .with_source(error)
            })??;
        }
        Ok(())
    }

    fn start_one(&mut self) -> Result<()> {
        self.started += 1;
        let name = format!("relay {}", self.started);
        let relay = Relay::builder(self.store.clone())
            .name(&name)
            .sink("shop", self.sink.clone())
            .route("*".parse()?, ["shop"])
            .default_policy(TopicPolicy {
                retry: RetryPolicy {
                    base: Duration::from_millis(200),
                    max: Duration::from_secs(1),
                    attempts: 4,
                    ..RetryPolicy::default()
                },
                // A dead letter does not block its customer's other orders: the demo has no operator to release it.
                on_failure: OnFailure::Skip,
            })
            .settings(Settings {
                lease: LEASE,
                heartbeat: Duration::from_millis(250),
                idle_time: Duration::from_millis(20),
                drain_timeout: Duration::from_secs(5),
                ..Settings::default()
            })
            .hooks(Watch::new(&self.record))
            .waker(self.waker.clone())
            .build()?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(relay.run(stop.clone()));
        self.running.push(Running { name, stop, task });
        Ok(())
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.running.iter().map(|relay| relay.name.as_str()).collect();
        names.join(" or ")
    }
}
