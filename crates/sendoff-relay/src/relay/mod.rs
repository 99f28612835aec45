//! Putting the parts together.

mod deliver;
mod event;
mod history;
mod hold;
mod janitors;
mod pulse;
mod read;
mod running;
mod steps;
mod trail;
mod trouble;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;
use sendoff::context::Follow;
use sendoff::store::{OwnerId, RelayCard, RelayStore};
use sendoff::{Error, ErrorKind, Pattern, Result, Sink, Waker};
use tokio_util::sync::CancellationToken;

use crate::follow::Followers;
use crate::hooks::HookList;
use crate::middleware::wrapped;
use crate::plan::{Plan, PlannedSink};
use crate::{
    AsyncHooks, HookCounts, Hooks, Middleware, Observer, OnceReport, RunReport, Settings, SinkSettings, TopicPolicy,
};
use running::Running;

/// Where the names of its lives come from.
type Owners = Arc<dyn Fn() -> OwnerId + Send + Sync>;

/// Delivers what a store holds to sinks.
///
/// Any number of relays, on any number of hosts, share the work of one store; each message is with one of them.
pub struct Relay {
    store: Arc<dyn RelayStore>,
    name: String,
    plan: Plan,
    hooks: HookList,
    followers: Followers,
    settings: Settings,
    owners: Owners,
    waker: Waker,
    /// The bell was given by the application, whose emitters ring it.
    poked: bool,
}

impl Relay {
    /// A relay on `store`.
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
            followers: Followers::default(),
            settings: Settings::default(),
            owners: Arc::new(OwnerId::random),
            waker: Waker::new(),
            poked: false,
        }
    }

    /// Runs until `stop` is cancelled; then finishes what is with a sink, settles it and hands its lanes over.
    ///
    /// # Errors
    /// Only at the start, when the store refuses for good (missing tables, missing privileges). Later trouble is logged
    /// and tried again for as long as it takes.
    pub async fn run(self, stop: CancellationToken) -> Result<RunReport> {
        Ok(self.start(stop, false).await?.run)
    }

    /// Delivers what is due now in the lanes that are free, and stops.
    ///
    /// # Errors
    /// As [`Relay::run`], when the store cannot be reached at the start, and when it refuses for good later.
    pub async fn run_once(self, stop: CancellationToken) -> Result<OnceReport> {
        self.start(stop, true).await
    }

    /// What other relays and people see of it.
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

    /// Its sinks, by name.
    pub fn sinks(&self) -> Vec<(Arc<str>, Arc<dyn Sink>)> {
        let sinks = self.plan.sinks.iter();
        sinks.map(|sink| (sink.name.clone(), sink.sink.clone())).collect()
    }

    /// What goes wrong in its hooks.
    pub fn hook_counts(&self) -> HookCounts {
        self.hooks.counts.clone()
    }

    async fn start(mut self, stop: CancellationToken, once: bool) -> Result<OnceReport> {
        let sinks: Vec<Arc<dyn Sink>> = self.plan.sinks.iter().map(|planned| planned.sink.clone()).collect();
        let store = self.store.clone();
        let beside = self.hooks.start();
        let run = Running::enlisted(self, stop, once).await?.work().await;
        for sink in sinks {
            sink.close().await;
        }
        beside.end().await;
        let run = run?;
        let remaining = if once {
            store.backlog().await?
        } else {
            Default::default()
        };
        Ok(OnceReport { run, remaining })
    }
}

/// Sets up a [`Relay`].
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
    poked: bool,
    followers: Followers,
}

impl RelayBuilder {
    /// What people see of this relay, such as its host and process id. It identifies nothing.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds a sink.
    pub fn sink(mut self, name: impl Into<String>, sink: Arc<dyn Sink>) -> Self {
        self.sinks.push((name.into(), sink));
        self
    }

    /// Sets how a sink is called.
    pub fn sink_settings(mut self, name: impl Into<String>, settings: SinkSettings) -> Self {
        self.sink_settings.push((name.into(), settings));
        self
    }

    /// Sends topics that fit `pattern` to these sinks, as separate legs. The first route that fits counts; a message
    /// that none fits is a dead letter.
    pub fn route(mut self, pattern: Pattern, to: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.routes.push((pattern, to.into_iter().map(Into::into).collect()));
        self
    }

    /// Sets retries and order for topics that fit `pattern`. The first that fits counts.
    pub fn topic(mut self, pattern: Pattern, policy: TopicPolicy) -> Self {
        self.topics.push((pattern, policy));
        self
    }

    /// Sets retries and order for all other topics.
    pub fn default_policy(mut self, policy: TopicPolicy) -> Self {
        self.default_policy = policy;
        self
    }

    /// Adds hooks.
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks.hooks.push(hooks);
        self
    }

    /// Adds hooks that run beside the relay.
    pub fn async_hooks(mut self, hooks: Arc<dyn AsyncHooks>) -> Self {
        self.hooks.beside.push(hooks);
        self
    }

    /// Sets who watches it at work; there is one.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.hooks.observer = Some(observer);
        self
    }

    /// Adds something around publishing to every sink; what is added first is called first.
    pub fn middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// Adds one who follows messages to their sinks.
    pub fn follow(mut self, follower: Arc<dyn Follow>) -> Self {
        self.followers.add(follower);
        self
    }

    /// Sets the knobs.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Takes the ids of its owners, one a life, from a simulation that is to repeat itself. Two that are the same would
    /// settle each other's messages: everywhere else they are random.
    #[doc(hidden)]
    pub fn owners(mut self, owners: impl Fn() -> OwnerId + Send + Sync + 'static) -> Self {
        self.owners = Arc::new(owners);
        self
    }

    /// Shares a bell with an outbox in the same process.
    pub fn waker(mut self, waker: Waker) -> Self {
        self.waker = waker;
        self.poked = true;
        self
    }

    /// The relay.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a route to an unknown sink, two sinks of one name, no sink at all, or settings that
    /// cannot work.
    pub fn build(self) -> Result<Relay> {
        check(&self.settings)?;
        if self.sinks.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "the relay has no sink").next_step("add one"));
        }
        let middleware: Arc<[Arc<dyn Middleware>]> = self.middleware.into();
        let mut planned: Vec<PlannedSink> = Vec::with_capacity(self.sinks.len());
        for (name, sink) in self.sinks {
            if planned.iter().any(|other| *other.name == *name) || name.is_empty() {
                return Err(
                    Error::new(ErrorKind::Invalid, format!("the sink name {name:?} cannot be used"))
                        .because("it is empty or taken")
                        .next_step("give each sink a name of its own"),
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
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("the rate of the sink {name:?} cannot be used"),
                )
                .because("nothing would ever be sent")
                .next_step("use messages a second above 0, or leave it out; a sink can be paused instead"));
            }
            let limits = sink.limits();
            settings.batch = limits.batch.map_or(settings.batch, |batch| settings.batch.min(batch));
            settings.timeout = limits
                .timeout
                .map_or(settings.timeout, |timeout| settings.timeout.max(timeout));
            planned.push(PlannedSink {
                sink: wrapped(&name, sink, &middleware),
                name: name.into(),
                settings,
            });
        }
        Ok(Relay {
            plan: Plan::new(planned, self.routes, self.topics, self.default_policy)?,
            store: self.store,
            name: self.name,
            hooks: self.hooks,
            followers: self.followers,
            settings: self.settings,
            owners: self.owners,
            waker: self.waker,
            poked: self.poked,
        })
    }
}

fn check(settings: &Settings) -> Result<()> {
    let complain =
        |what: &str, why: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).because(why).next_step(next));
    if settings.heartbeat.is_zero() || settings.heartbeat * 3 > settings.lease {
        return complain(
            "the heartbeat is too slow for the lease",
            "one that comes late would cost the relay its lanes",
            "make the lease at least three times the heartbeat",
        );
    }
    if settings.batch == 0 || settings.window < settings.batch {
        return complain(
            "batch or window is too small",
            "a page that was read has to fit into the window",
            "use a batch of at least 1 and a window of at least the batch",
        );
    }
    Ok(())
}
