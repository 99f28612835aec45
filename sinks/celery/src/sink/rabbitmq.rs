//! Publishes tasks to RabbitMQ.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sendoff::sink::Limits;
use sendoff::{Outcome, Result};
use sendoff_sink_rabbitmq::publisher::{Prepared, Publisher, Settings, Topology};

use super::convert::{prepared, topology};
use crate::CeleryMessage;
use crate::amqp::{AmqpPublish, Declaration};
use crate::config::Declare;

/// How many declarations are remembered. Tasks may name queues, so there may be any number.
const REMEMBERED: usize = 10_000;

pub(super) struct ToRabbitMq {
    pub(super) publisher: Publisher,
    declare: Declare,
    connect_timeout: std::time::Duration,
    /// Queue, exchange and routing key of the declarations that were made or checked.
    declared: Mutex<HashSet<Name>>,
}

type Name = (String, String, String);

/// Encodes the task at an index of a batch.
type Encode<'a> = &'a (dyn Fn(usize) -> Result<CeleryMessage, Outcome> + Send + Sync);

/// Selects the tasks of a pass: those whose queues exist. The first other one and all behind it wait for the next pass,
/// so that tasks keep their order.
struct Gate {
    /// The last declaration; usually the next task has the same.
    open_for: Option<Declaration>,
    /// How many tasks were requested; a task that is requested again has already passed.
    asked: usize,
    put_off: Vec<usize>,
}

impl ToRabbitMq {
    pub(super) fn new(settings: Settings, declare: Declare) -> Result<Self> {
        Ok(Self {
            connect_timeout: settings.connect_timeout,
            publisher: Publisher::new(settings, Topology::default())?,
            declare,
            declared: Mutex::default(),
        })
    }

    pub(super) fn limits(&self) -> Limits {
        let mut limits = self.publisher.limits();
        // Time to declare missing queues, twice if necessary.
        limits.timeout = limits.timeout.map(|timeout| timeout + self.connect_timeout * 2);
        limits
    }

    /// Publishes this many tasks. Each is encoded just before it is sent, and again if it must be sent again.
    pub(super) async fn publish(
        &self,
        count: usize,
        encode: impl Fn(usize) -> Result<CeleryMessage, Outcome> + Send + Sync,
    ) -> Vec<Outcome> {
        let mut outcomes = vec![None; count];
        self.run((0..count).collect(), &encode, &mut outcomes).await;
        if self.declare == Declare::Active {
            // A declared queue was deleted meanwhile: the returned tasks are in no queue, so they are sent once more.
            let came_back = |place: &usize| {
                matches!(outcomes[*place], Some(Outcome::Permanent(_))) && self.declaration(*place, &encode).is_some()
            };
            let again = (0..count).filter(came_back).collect();
            self.run(again, &encode, &mut outcomes).await;
        }
        let unanswered =
            || Outcome::Unknown("the RabbitMQ publisher returned no outcome (please report this as a bug)".into());
        outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or_else(unanswered))
            .collect()
    }

    fn made(&self, message: CeleryMessage) -> Result<(Prepared, Option<Declaration>), Outcome> {
        let mut publish =
            AmqpPublish::new(message, self.declare).map_err(|error| Outcome::Permanent(error.to_string().into()))?;
        let declaration = publish.declaration.take();
        Ok((prepared(publish), declaration))
    }

    fn declaration(&self, place: usize, encode: Encode<'_>) -> Option<Declaration> {
        encode(place).and_then(|message| self.made(message)).ok()?.1
    }

    /// Publishes the tasks at these indexes, in as many passes as there are unchecked queues.
    async fn run(&self, mut places: Vec<usize>, encode: Encode<'_>, outcomes: &mut [Option<Outcome>]) {
        let mut refused: HashMap<Name, Outcome> = HashMap::new();
        while let Some(first) = places.first() {
            let open_for = self.declaration(*first, encode);
            if let Some(declaration) = &open_for
                && let Err(outcome) = self.see_to(declaration).await
            {
                if matches!(outcome, Outcome::SinkDown(_)) {
                    places
                        .into_iter()
                        .for_each(|place| outcomes[place] = Some(outcome.clone()));
                    return;
                }
                refused.insert(name(declaration), outcome);
            }
            places = self.pass(&places, open_for, &refused, encode, outcomes).await;
        }
    }

    /// Publishes the tasks that pass the gate, and returns the rest.
    async fn pass(
        &self,
        places: &[usize],
        open_for: Option<Declaration>,
        refused: &HashMap<Name, Outcome>,
        encode: Encode<'_>,
        outcomes: &mut [Option<Outcome>],
    ) -> Vec<usize> {
        let gate = Mutex::new(Gate {
            open_for,
            asked: 0,
            put_off: Vec::new(),
        });
        let put_off = || Outcome::Temporary("the queue of the task must be declared first".into());
        let make = |at: usize| {
            let mut gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
            let again = at < gate.asked;
            gate.asked = gate.asked.max(at + 1);
            if !again && !gate.put_off.is_empty() {
                gate.put_off.push(at);
                return Err(put_off());
            }
            let (message, declaration) = self.made(encode(places[at])?)?;
            let Some(declaration) = declaration.filter(|_| !again) else {
                return Ok(message);
            };
            let is_open = gate.open_for.as_ref() == Some(&declaration);
            if is_open && refused.is_empty() {
                return Ok(message);
            }
            let wanted = name(&declaration);
            if let Some(outcome) = refused.get(&wanted) {
                return Err(outcome.clone());
            }
            if !is_open && !self.declared().contains(&wanted) {
                gate.put_off.push(at);
                return Err(put_off());
            }
            gate.open_for = Some(declaration);
            Ok(message)
        };
        let published = self.publisher.publish(places.len(), make).await;
        let put_off = gate.into_inner().unwrap_or_else(PoisonError::into_inner).put_off;
        for (at, outcome) in published.into_iter().enumerate() {
            if put_off.binary_search(&at).is_ok() {
                continue;
            }
            // The queue may have been deleted.
            if matches!(outcome, Outcome::Permanent(_))
                && let Some(declaration) = self.declaration(places[at], encode)
            {
                self.declared().remove(&name(&declaration));
            }
            outcomes[places[at]] = Some(outcome);
        }
        put_off.into_iter().map(|at| places[at]).collect()
    }

    /// Declares the queue, or checks that it exists.
    async fn see_to(&self, declaration: &Declaration) -> Result<(), Outcome> {
        let wanted = name(declaration);
        if !self.declared().contains(&wanted) {
            self.publisher.declare(&topology(declaration)).await?;
            self.remember(wanted);
        }
        Ok(())
    }

    fn remember(&self, name: Name) {
        let mut declared = self.declared();
        if declared.len() >= REMEMBERED {
            declared.clear();
        }
        declared.insert(name);
    }

    fn declared(&self) -> MutexGuard<'_, HashSet<Name>> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(declaration: &Declaration) -> Name {
    let Declaration {
        queue,
        exchange,
        routing_key,
        ..
    } = declaration;
    (queue.clone(), exchange.clone(), routing_key.clone())
}
