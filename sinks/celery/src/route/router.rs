//! The router.

use std::collections::HashMap;

use sendoff::Result;

use super::glob::fits;
use super::{Delayed, Destination, Queue};
use crate::CeleryConfig;
use crate::config::{ExchangeType, RouteConfig};
use crate::error::invalid;

/// The routing options that a task has itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The queue that the task asks for.
    pub queue: Option<String>,
    /// The exchange that the task asks for.
    pub exchange: Option<String>,
    /// The type of the exchange that the task asks for.
    pub exchange_type: Option<ExchangeType>,
    /// The routing key that the task asks for.
    pub routing_key: Option<String>,
}

/// The result of routing a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The address of the task.
    pub destination: Destination,
    /// The matching entry of `task_routes`, with its other settings.
    pub matched: Option<RouteConfig>,
}

/// Routes tasks to queues, like Celery.
#[derive(Debug, Clone)]
pub struct Router {
    config: CeleryConfig,
    queues: HashMap<String, Queue>,
    has_quorum: bool,
}

impl Router {
    /// Creates a router with these settings.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when two queues or two routes have the same name.
    pub fn new(config: &CeleryConfig) -> Result<Self> {
        let mut queues = HashMap::new();
        for queue in &config.queues {
            let made = Queue::configured(config, queue);
            if queues.insert(queue.name.clone(), made).is_some() {
                return Err(twice("queue", &queue.name));
            }
        }
        if queues.is_empty() {
            queues.insert(config.default_queue.clone(), Queue::default(config));
        }
        for (at, route) in config.routes.iter().enumerate() {
            if config.routes[..at].iter().any(|earlier| earlier.task == route.task) {
                return Err(twice("route", &route.task));
            }
        }
        Ok(Self {
            has_quorum: queues.values().any(Queue::is_quorum),
            config: config.clone(),
            queues,
        })
    }

    /// Routes a task. `delay` is the number of seconds until the task is due, if it has an eta.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for a queue that is not in the settings if missing ones are not created, and for
    /// an exchange without a routing key.
    pub fn route(&self, task: &str, wanted: &Wanted, delay: Option<f64>) -> Result<Route> {
        let matched = self.lookup(task);
        let given = |own: &Option<String>, of: fn(&RouteConfig) -> &Option<String>| {
            own.clone().or_else(|| matched.and_then(|route| of(route).clone()))
        };
        let exchange = given(&wanted.exchange, |route| &route.exchange);
        let routing_key = given(&wanted.routing_key, |route| &route.routing_key);
        let exchange_type = wanted.exchange_type.or(matched.and_then(|route| route.exchange_type));
        let queue = match given(&wanted.queue, |route| &route.queue) {
            Some(name) => Some(self.queue(&name)?),
            // Celery adds the default queue even to an explicit exchange, unless a route matches.
            None if matched.is_none() || exchange.is_none() => Some(self.queue(&self.config.default_queue)?),
            None => None,
        };
        let delayed = queue.as_ref().and_then(|queue| self.delayed(queue, delay));
        let exchange_type = exchange_type
            .or(queue.as_ref().map(|queue| queue.exchange_type))
            .unwrap_or_default();
        let (exchange, routing_key) = address(task, exchange, routing_key, exchange_type, queue.as_ref())?;
        Ok(Route {
            destination: Destination {
                exchange,
                routing_key,
                exchange_type,
                queue,
                delayed,
            },
            matched: matched.cloned(),
        })
    }

    /// The route of a task: by its full name, then by the first pattern. A route without settings is ignored.
    fn lookup(&self, task: &str) -> Option<&RouteConfig> {
        let is_pattern = |route: &&RouteConfig| route.task.contains('*');
        let routes = || self.config.routes.iter();
        let by_name = routes().find(|route| !is_pattern(route) && route.task == task);
        let found = by_name.or_else(|| routes().find(|route| is_pattern(route) && fits(&route.task, task)));
        found.filter(|route| {
            **route
                != RouteConfig {
                    task: route.task.clone(),
                    ..RouteConfig::default()
                }
        })
    }

    fn queue(&self, name: &str) -> Result<Queue> {
        if let Some(queue) = self.queues.get(name) {
            return Ok(queue.clone());
        }
        if self.config.create_missing_queues {
            return Ok(Queue::missing(&self.config, name));
        }
        Err(invalid(
            format!("the queue {name:?} of the task is unknown"),
            "the queue is not in `queues` of the Celery sink, and `create_missing_queues` is false",
            "add it to `queues` of the sink, or emit the task with another queue",
        ))
    }

    /// Workers declare the chain only with quorum queues, and it cannot route to a direct exchange. A queue that is
    /// created on demand counts as well: Celery knows it as soon as a task is routed to it.
    fn delayed(&self, queue: &Queue, delay: Option<f64>) -> Option<Delayed> {
        let seconds = delay.filter(|seconds| *seconds >= 1.0)?;
        let has_quorum = self.has_quorum || queue.is_quorum();
        if !has_quorum || queue.exchange_type == ExchangeType::Direct {
            return None;
        }
        let prefix = self
            .config
            .delayed_delivery_prefix
            .as_deref()
            .filter(|prefix| !prefix.is_empty());
        // The cast drops fractions and saturates.
        Some(Delayed::new(prefix, seconds as u32, &queue.routing_key))
    }
}

fn address(
    task: &str,
    exchange: Option<String>,
    routing_key: Option<String>,
    exchange_type: ExchangeType,
    queue: Option<&Queue>,
) -> Result<(String, String)> {
    let exchange = exchange.filter(|name| !name.is_empty());
    let routing_key = routing_key.filter(|key| !key.is_empty());
    match (exchange, routing_key, queue) {
        (Some(exchange), Some(routing_key), _) => Ok((exchange, routing_key)),
        (_, _, Some(queue)) if exchange_type == ExchangeType::Direct => Ok((String::new(), queue.name.clone())),
        (Some(exchange), None, _) if exchange_type == ExchangeType::Fanout => Ok((exchange, String::new())),
        (None, routing_key, Some(queue)) => Ok((
            queue.exchange.clone(),
            routing_key.unwrap_or_else(|| queue.routing_key.clone()),
        )),
        (Some(exchange), None, _) => Err(invalid(
            format!("the task {task:?} cannot be routed"),
            format!("the task has the exchange {exchange:?} and no routing key, so no queue would get the task"),
            "emit the task with a routing key or a queue",
        )),
        (None, _, None) => Err(invalid(
            format!("the task {task:?} cannot be routed"),
            "the task has neither a queue nor an exchange",
            "emit the task with a queue",
        )),
    }
}

fn twice(what: &str, name: &str) -> sendoff::Error {
    invalid(
        format!("the {what} {name:?} is twice in the settings of the Celery sink"),
        "only one of them could apply",
        "remove one",
    )
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
