//! Two relays in one process that share the lanes. Now and then one of them is ended without warning and another takes
//! its place, as it happens to processes.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::RelayStore;
use sendoff::{Error, ErrorKind, Result, Sink, Waker};
use sendoff_relay::{HeadPolicy, Relay, RetryPolicy, RunReport, Settings, TopicPolicy};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::handlers::Watch;
use super::record::Record;

/// How long lanes stay with a relay that was killed.
pub(super) const LEASE: Duration = Duration::from_secs(2);

pub(super) struct Relays {
    store: Arc<dyn RelayStore>,
    sink: Arc<dyn Sink>,
    record: Record,
    waker: Waker,
    /// How many were started, ever.
    started: u32,
    /// The oldest first.
    running: Vec<Running>,
}

struct Running {
    name: String,
    stop: CancellationToken,
    task: JoinHandle<Result<RunReport>>,
}

impl Relays {
    /// Starts two.
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

    /// Ends the oldest in the middle of what it does, and starts a new one.
    pub(super) fn kill_one(&mut self) -> Result<()> {
        let victim = self.running.remove(0);
        victim.task.abort();
        // For its helper that waits for wake-ups; the relay itself can hear nothing any more.
        victim.stop.cancel();
        self.start_one()?;
        self.record.killed(format!(
            "{} was killed in the middle of its work; {} takes over when its lease of {} s is over",
            victim.name,
            self.names(),
            LEASE.as_secs()
        ));
        Ok(())
    }

    /// Lets both finish what is with a handler and hand their lanes back.
    pub(super) async fn stop(self) -> Result<()> {
        for relay in &self.running {
            relay.stop.cancel();
        }
        for relay in self.running {
            relay.task.await.map_err(|error| {
                Error::new(ErrorKind::Backend, format!("{} ended badly", relay.name))
                    .because(error.to_string())
                    .next_step("run the demo again with -v and look at the log")
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
                // A dead letter does not hold up its customer's other orders: nobody is here to release it.
                head: HeadPolicy::Skip,
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
