//! The configuration of a relay: its sinks, routes and policies.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sendoff::store::Routes;
use sendoff::{Error, ErrorKind, Pattern, Result, Sink};
use smallvec::SmallVec;

use crate::{SinkSettings, TopicPolicy};

/// The index of a sink in [`Plan::sinks`].
pub(crate) type SinkIndex = usize;

#[cfg_attr(test, derive(Clone))]
pub(crate) struct PlannedSink {
    pub(crate) name: Arc<str>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) settings: SinkSettings,
}

/// Routes and policies, each in the order they were given: the first that matches counts.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Plan {
    pub(crate) sinks: Vec<PlannedSink>,
    routes: Vec<(Pattern, SmallVec<[SinkIndex; 2]>)>,
    topics: Vec<(Pattern, Arc<TopicPolicy>)>,
    default_policy: Arc<TopicPolicy>,
    looked_up: FxHashMap<String, Topic>,
}

/// What applies to one topic.
#[derive(Clone)]
pub(crate) struct Topic {
    pub(crate) sinks: SmallVec<[SinkIndex; 2]>,
    pub(crate) policy: Arc<TopicPolicy>,
}

/// How many topics are cached; beyond that the cache is emptied.
const REMEMBERED_TOPICS: usize = 10_000;

impl Plan {
    pub(crate) fn new(
        sinks: Vec<PlannedSink>,
        routes: Vec<(Pattern, Vec<String>)>,
        topics: Vec<(Pattern, TopicPolicy)>,
        default_policy: TopicPolicy,
    ) -> Result<Self> {
        let index_of = |pattern: &Pattern, name: &str| {
            sinks.iter().position(|sink| &*sink.name == name).ok_or_else(|| {
                let known: Vec<&str> = sinks.iter().map(|sink| &*sink.name).collect();
                Error::new(
                    ErrorKind::Invalid,
                    format!("the route {pattern} names the unknown sink {name:?}"),
                )
                .because("no sink has that name")
                .next_step(format!("use one of: {}", known.join(", ")))
            })
        };
        let mut planned = Vec::with_capacity(routes.len());
        for (pattern, names) in routes {
            let mut indexes = SmallVec::new();
            for name in &names {
                let index = index_of(&pattern, name)?;
                if !indexes.contains(&index) {
                    indexes.push(index);
                }
            }
            planned.push((pattern, indexes));
        }
        Ok(Self {
            routes: planned,
            topics: topics
                .into_iter()
                .map(|(pattern, policy)| (pattern, Arc::new(policy)))
                .collect(),
            default_policy: Arc::new(default_policy),
            looked_up: FxHashMap::default(),
            sinks,
        })
    }

    /// Its routes, for other relays.
    pub(crate) fn published_routes(&self) -> Routes {
        let route = |(pattern, sinks): &(Pattern, SmallVec<[SinkIndex; 2]>)| {
            let names = sinks.iter().map(|sink| self.sinks[*sink].name.to_string());
            (pattern.clone(), names.collect())
        };
        Routes::new(self.routes.iter().map(route).collect())
    }

    /// Everything else in which relays may differ, as a text that is only compared.
    pub(crate) fn policies(&self) -> String {
        let sinks = self.sinks.iter().map(|sink| (&sink.name, &sink.settings));
        format!(
            "{:?} {:?} {:?}",
            self.topics,
            self.default_policy,
            sinks.collect::<Vec<_>>()
        )
    }

    pub(crate) fn sink_named(&self, name: &str) -> Option<SinkIndex> {
        self.sinks.iter().position(|sink| &*sink.name == name)
    }

    pub(crate) fn topic(&mut self, topic: &str) -> Topic {
        if let Some(known) = self.looked_up.get(topic) {
            return known.clone();
        }
        let found = Topic {
            sinks: self
                .routes
                .iter()
                .find(|(pattern, _)| pattern.matches(topic))
                .map_or_else(SmallVec::new, |r| r.1.clone()),
            policy: self
                .topics
                .iter()
                .find(|(pattern, _)| pattern.matches(topic))
                .map_or_else(|| self.default_policy.clone(), |(_, policy)| policy.clone()),
        };
        if self.looked_up.len() >= REMEMBERED_TOPICS {
            self.looked_up.clear();
        }
        self.looked_up.insert(topic.to_owned(), found.clone());
        found
    }
}
