//! The relay and its builder.

mod event;
mod figures;
mod hand_over;
mod health;
mod history;
mod hold;
mod janitors;
mod publish;
mod read;
mod running;
pub(crate) mod settle;
mod state;
mod steps;
mod trail;
mod trouble;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;
use sendoff::sink::Middleware;
use sendoff::store::{OwnerId, RelayCard, RelayStore};
use sendoff::{Error, ErrorKind, Pattern, Result, Sink, Waker};
use tokio_util::sync::CancellationToken;

use crate::guard::wrapped;
use crate::hooks::HookList;
use crate::plan::{Plan, PlannedSink};
use crate::{HookCounts, Hooks, Observer, OnceReport, RunReport, Settings, SinkSettings, TopicPolicy};
use running::Running;

/// One crash proves nothing about the message that was under way: a process can be killed for any reason.
const LOWEST_CRASH_LIMIT: u32 = 2;

/// Creates the owner ids of a relay.
type Owners = Arc<dyn Fn() -> OwnerId + Send + Sync>;

/// Delivers messages from a store to sinks.
///
/// Any number of relays, on any number of hosts, share the work of one store; one of them works on a message at a time.
pub struct Relay {
    store: Arc<dyn RelayStore>,
    name: String,
    plan: Plan,
    hooks: HookList,
    settings: Settings,
    owners: Owners,
    waker: Waker,
    /// The application has set the wake source, and its emitters use it.
    wakes_in_process: bool,
}

impl Relay {
    /// Starts to build a relay that reads from `store`.
    pub fn builder(store: Arc<dyn RelayStore>) -> RelayBuilder {
        RelayBuilder {
            store,
            name: format!("pid {}", std::process::id()),
            sinks: Vec::new(),
            sink_settings: Vec::new(),
            routes: Vec::new(),
            topics: Vec::new(),
            default_policy: TopicPolicy::default(),
            hooks: HookList::default(),
            middleware: Vec::new(),
            settings: Settings::default(),
            owners: Arc::new(OwnerId::random),
            waker: Waker::new(),
            wakes_in_process: false,
        }
    }

    /// Runs until `stop` is cancelled. Then it waits for sinks to answer, settles, and gives its lanes back.
    ///
    /// # Errors
    /// Only at the start, when the store refuses permanently (missing tables, missing privileges). Later errors are logged,
    /// and the relay keeps trying.
    pub async fn run(self, stop: CancellationToken) -> Result<RunReport> {
        Ok(self.start(stop, false).await?.run)
    }

    /// Delivers the messages that are due now in free lanes, and stops.
    ///
    /// # Errors
    /// As [`Relay::run`], when the store cannot be reached at the start, and when it refuses permanently later.
    pub async fn run_once(self, stop: CancellationToken) -> Result<OnceReport> {
        self.start(stop, true).await
    }

    /// What other relays and operators see of it.
    fn card(&self) -> RelayCard {
        let routes = self.plan.published_routes().to_text();
        let mut hasher = FxHasher::default();
        (&routes, self.plan.policies()).hash(&mut hasher);
        RelayCard {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config: format!("{:016x}", hasher.finish()),
            routes,
        }
    }

    /// The relay's sinks, by name.
    pub fn sinks(&self) -> Vec<(Arc<str>, Arc<dyn Sink>)> {
        let sinks = self.plan.sinks.iter();
        sinks.map(|sink| (sink.name.clone(), sink.sink.clone())).collect()
    }

    /// Counters of failures in its hooks and observers.
    pub fn hook_counts(&self) -> HookCounts {
        self.hooks.counts.clone()
    }

    async fn start(mut self, stop: CancellationToken, once: bool) -> Result<OnceReport> {
        let sinks: Vec<Arc<dyn Sink>> = self.plan.sinks.iter().map(|planned| planned.sink.clone()).collect();
        let store = self.store.clone();
        let queues = self.hooks.start();
        let run = Running::registered(self, stop, once).await?.work().await;
        for sink in sinks {
            sink.close().await;
        }
        queues.end().await;
        let run = run?;
        let remaining = if once {
            store.backlog().await?
        } else {
            Default::default()
        };
        Ok(OnceReport { run, remaining })
    }
}

/// Builds a [`Relay`].
#[must_use]
pub struct RelayBuilder {
    store: Arc<dyn RelayStore>,
    name: String,
    sinks: Vec<(String, Arc<dyn Sink>)>,
    sink_settings: Vec<(String, SinkSettings)>,
    routes: Vec<(Pattern, Vec<String>)>,
    topics: Vec<(Pattern, TopicPolicy)>,
    default_policy: TopicPolicy,
    hooks: HookList,
    middleware: Vec<Arc<dyn Middleware>>,
    settings: Settings,
    owners: Owners,
    waker: Waker,
    wakes_in_process: bool,
}

impl RelayBuilder {
    /// Sets the relay's name for operators, such as host and process id. It need not be unique.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds a sink under a name.
    pub fn sink(mut self, name: impl Into<String>, sink: Arc<dyn Sink>) -> Self {
        self.sinks.push((name.into(), sink));
        self
    }

    /// Sets the limits of a sink: batch size, concurrency, timeout and rate.
    pub fn sink_settings(mut self, name: impl Into<String>, settings: SinkSettings) -> Self {
        self.sink_settings.push((name.into(), settings));
        self
    }

    /// Sends topics that match `pattern` to these sinks, as separate deliveries. The first matching route applies. A
    /// message without a matching route at any live relay becomes a dead letter.
    pub fn route(mut self, pattern: Pattern, to: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.routes.push((pattern, to.into_iter().map(Into::into).collect()));
        self
    }

    /// Sets retries and order for topics that match `pattern`. The first matching pattern applies.
    pub fn topic(mut self, pattern: Pattern, policy: TopicPolicy) -> Self {
        self.topics.push((pattern, policy));
        self
    }

    /// Sets retries and order for all other topics.
    pub fn default_policy(mut self, policy: TopicPolicy) -> Self {
        self.default_policy = policy;
        self
    }

    /// Adds middleware around publishing to every sink; the first added is called first.
    pub fn middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// Adds hooks, which run beside the relay.
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks.hooks.push(hooks);
        self
    }

    /// Adds an observer, which runs on the relay's own task.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.hooks.observers.push(observer);
        self
    }

    /// Sets the settings of the relay.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the source of owner ids, for repeatable simulations. In production, ids must be random: two relays with the
    /// same id would settle each other's messages.
    #[doc(hidden)]
    pub fn owners(mut self, owners: impl Fn() -> OwnerId + Send + Sync + 'static) -> Self {
        self.owners = Arc::new(owners);
        self
    }

    /// Shares a wake source with an outbox in the same process.
    pub fn waker(mut self, waker: Waker) -> Self {
        self.waker = waker;
        self.wakes_in_process = true;
        self
    }

    /// Builds the relay.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a route to an unknown sink, two sinks of one name, no sink at all, or settings that
    /// cannot work.
    pub fn build(self) -> Result<Relay> {
        check(&self.settings)?;
        if self.sinks.is_empty() {
            return Err(
                Error::new(ErrorKind::Invalid, "the relay has no sink").next_step("add a sink with RelayBuilder::sink")
            );
        }
        let middleware: Arc<[Arc<dyn Middleware>]> = self.middleware.into();
        let mut planned: Vec<PlannedSink> = Vec::with_capacity(self.sinks.len());
        for (name, sink) in self.sinks {
            if planned.iter().any(|other| *other.name == *name) || name.is_empty() {
                return Err(
                    Error::new(ErrorKind::Invalid, format!("the sink name {name:?} is invalid"))
                        .because("the name is empty, or another sink has the same name")
                        .next_step("give each sink a unique name"),
                );
            }
            let settings = self
                .sink_settings
                .iter()
                .rev()
                .find(|(of, _)| *of == name)
                .map(|(_, settings)| settings.clone());
            let mut settings = settings.unwrap_or_default();
            if settings.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
                return Err(
                    Error::new(ErrorKind::Invalid, format!("the rate of the sink {name:?} is invalid"))
                        .because("the relay would never send anything")
                        .next_step(
                            "use a rate above 0 messages per second, or remove the rate; to stop a sink, pause it",
                        ),
                );
            }
            let limits = sink.limits();
            settings.batch = limits.batch.map_or(settings.batch, |batch| settings.batch.min(batch));
            settings.timeout = limits
                .timeout
                .map_or(settings.timeout, |timeout| settings.timeout.max(timeout));
            planned.push(PlannedSink {
                sink: wrapped(&name, sink, &middleware, &mut settings.timeout),
                name: name.into(),
                settings,
            });
        }
        Ok(Relay {
            plan: Plan::new(planned, self.routes, self.topics, self.default_policy)?,
            store: self.store,
            name: self.name,
            hooks: self.hooks,
            settings: self.settings,
            owners: self.owners,
            waker: self.waker,
            wakes_in_process: self.wakes_in_process,
        })
    }
}

fn check(settings: &Settings) -> Result<()> {
    let complain =
        |what: &str, why: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).because(why).next_step(next));
    if settings.heartbeat.is_zero() || settings.heartbeat * 3 > settings.lease {
        return complain(
            "the heartbeat is too slow for the lease",
            "the relay would lose its lanes after one late heartbeat",
            "make the lease at least three times the heartbeat",
        );
    }
    if settings.batch == 0 || settings.max_in_flight < settings.batch {
        return complain(
            "batch or max_in_flight is too small",
            "a batch that was read must fit into max_in_flight",
            "use a batch of at least 1 and a max_in_flight of at least the batch",
        );
    }
    // That bug takes more crashes to show than a simulation has.
    let lowest = if planted!(LeaseLostIsCrash) {
        1
    } else {
        LOWEST_CRASH_LIMIT
    };
    if settings.crash_limit < lowest {
        return complain(
            "the crash_limit is below 2",
            "if a relay were killed for any other reason, the messages it worked on would become dead letters",
            "use a crash_limit of 2 or more",
        );
    }
    Ok(())
}
