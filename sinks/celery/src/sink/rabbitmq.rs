//! Tasks to RabbitMQ.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sendoff::sink::Limits;
use sendoff::{Outcome, Result};
use sendoff_sink_rabbitmq::publisher::{Prepared, Publisher, Settings, Topology};

use super::convert::{prepared, topology};
use crate::CeleryMessage;
use crate::amqp::{AmqpPublish, Declaration};
use crate::config::Declare;

/// How many declarations are remembered. Queues may be named by tasks, so there may be any number.
const REMEMBERED: usize = 10_000;

pub(super) struct ToRabbitMq {
    pub(super) publisher: Publisher,
    declare: Declare,
    connect_timeout: std::time::Duration,
    /// Queue, exchange and routing key of what was declared, or found to be there.
    declared: Mutex<HashSet<Name>>,
}

type Name = (String, String, String);

/// A task on its way.
struct Errand {
    message: Prepared,
    declaration: Option<Declaration>,
    outcome: Option<Outcome>,
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
        // To declare what is missing, twice if need be.
        limits.timeout = limits.timeout.map(|timeout| timeout + self.connect_timeout * 2);
        limits
    }

    /// Publishes messages that are made one by one, so that each is in its final form before the next takes memory.
    pub(super) async fn publish(
        &self,
        messages: impl ExactSizeIterator<Item = Result<CeleryMessage, Outcome>> + Send,
    ) -> Vec<Outcome> {
        let mut refused = Vec::with_capacity(messages.len());
        let mut errands = Vec::with_capacity(messages.len());
        for message in messages {
            refused.push(match message.and_then(|message| self.errand(message)) {
                Ok(errand) => {
                    errands.push(errand);
                    None
                }
                Err(outcome) => Some(outcome),
            });
        }
        self.run(&mut errands).await;
        if self.declare == Declare::Active {
            self.mend(&mut errands).await;
        }
        let mut settled = errands.into_iter().map(|errand| errand.outcome);
        let unanswered = || Outcome::Unknown("the publisher gave no answer".into());
        let mut outcome = |refused: Option<Outcome>| refused.or_else(|| settled.next().flatten());
        refused
            .into_iter()
            .map(|refused| outcome(refused).unwrap_or_else(unanswered))
            .collect()
    }

    fn errand(&self, message: CeleryMessage) -> Result<Errand, Outcome> {
        let mut publish =
            AmqpPublish::new(message, self.declare).map_err(|error| Outcome::Permanent(error.to_string().into()))?;
        Ok(Errand {
            declaration: publish.declaration.take(),
            message: prepared(publish),
            outcome: None,
        })
    }

    /// Declares what has to be, and publishes all that has no outcome yet.
    async fn run(&self, errands: &mut [Errand]) {
        self.declare_for(errands).await;
        let open = |errand: &&mut Errand| errand.outcome.is_none();
        let open: Vec<&mut Errand> = errands.iter_mut().filter(open).collect();
        let outcomes = self.publisher.publish(open.iter().map(|errand| &errand.message)).await;
        for (errand, outcome) in open.into_iter().zip(outcomes) {
            // The queue that was there may be gone.
            if let (Outcome::Permanent(_), Some(declaration)) = (&outcome, &errand.declaration) {
                self.declared().remove(&name(declaration));
            }
            errand.outcome = Some(outcome);
        }
    }

    /// A queue that we had declared was deleted since: what came back is in no queue, so it is sent once more.
    async fn mend(&self, errands: &mut [Errand]) {
        let mut again = false;
        for errand in errands.iter_mut() {
            if matches!(errand.outcome, Some(Outcome::Permanent(_))) && errand.declaration.is_some() {
                errand.outcome = None;
                again = true;
            }
        }
        if again {
            self.run(errands).await;
        }
    }

    async fn declare_for(&self, errands: &mut [Errand]) {
        for at in 0..errands.len() {
            // Most are for the same queue as the one before.
            if at > 0 && errands[at].declaration == errands[at - 1].declaration {
                continue;
            }
            let Errand {
                declaration: Some(declaration),
                outcome: None,
                ..
            } = &errands[at]
            else {
                continue;
            };
            let wanted = name(declaration);
            if self.declared().contains(&wanted) {
                continue;
            }
            let Err(outcome) = self.publisher.declare(&topology(declaration)).await else {
                self.remember(wanted);
                continue;
            };
            // Whoever needs the same need not ask; if the broker is down, that is everybody.
            let down = matches!(outcome, Outcome::SinkDown(_));
            for errand in errands.iter_mut().filter(|errand| errand.outcome.is_none()) {
                if down || errand.declaration.as_ref().is_some_and(|other| name(other) == wanted) {
                    errand.outcome = Some(outcome.clone());
                }
            }
        }
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
