//! Tasks to Redis.

use std::collections::HashMap;
use std::ops::Range;

use redis::{Cmd, Value, cmd};
use sendoff::{Outcome, Result};
use sendoff_sink_redis::Commander;
use uuid::Uuid;

use crate::CeleryMessage;
use crate::config::{CeleryConfig, Declare, ExchangeType, RedisConfig};
use crate::redis::{Binding, RedisPublish, RedisTarget};

/// How many tasks go to Redis at once.
const PART: usize = 500;
/// How many tasks are encoded before what is with Redis has its turn.
const TURN: usize = 20;

pub(super) struct ToRedis {
    pub(super) commander: Commander,
    declare: Declare,
    keys: RedisConfig,
    max_message_bytes: usize,
}

/// Messages in a row for the same list, in one command: Redis takes all of them or none, and in its log they are written, and
/// waited for, once.
struct Push {
    list: String,
    /// Of the messages, in the batch.
    places: Vec<usize>,
    bytes: usize,
    command: Cmd,
}

impl Push {
    const MESSAGES: usize = 100;
    const BYTES: usize = 256 << 10;

    fn new(list: String, at: usize, envelope: &str) -> Self {
        Self {
            places: vec![at],
            bytes: envelope.len(),
            command: cmd("LPUSH").arg(&list).arg(envelope).take(),
            list,
        }
    }

    fn has_room_for(&self, list: &str) -> bool {
        self.list == list && self.places.len() < Self::MESSAGES && self.bytes < Self::BYTES
    }

    fn add(&mut self, at: usize, envelope: &str) {
        self.places.push(at);
        self.bytes += envelope.len();
        self.command.arg(envelope);
    }
}

/// What the set of an exchange's bindings holds, or why that is not known.
type Members = Result<Vec<String>, Outcome>;

impl ToRedis {
    pub(super) fn new(server: sendoff_sink_redis::RedisConfig, config: &CeleryConfig) -> Result<Self> {
        Ok(Self {
            max_message_bytes: server.max_message_bytes,
            commander: Commander::new(server)?,
            declare: config.declare,
            keys: config.redis.clone(),
        })
    }

    /// Publishes so many tasks, and encodes some while those before them are with Redis.
    pub(super) async fn publish_in_parts(
        &self,
        count: usize,
        encode: impl Fn(usize) -> Result<CeleryMessage, Outcome> + Send + Sync,
    ) -> Vec<Outcome> {
        let encoded = async |part: Range<usize>| {
            let mut messages = Vec::with_capacity(part.len());
            for at in part {
                messages.push(encode(at));
                if messages.len() % TURN == 0 {
                    tokio::task::yield_now().await;
                }
            }
            messages
        };
        let part = |from: usize| from..count.min(from + PART);
        let mut outcomes = Vec::with_capacity(count);
        let mut next = encoded(part(0)).await;
        while !next.is_empty() {
            let behind = part(outcomes.len() + next.len());
            let published;
            (published, next) = tokio::join!(self.publish(next), encoded(behind));
            let down = published.iter().find(|outcome| matches!(outcome, Outcome::SinkDown(_)));
            let down = down.cloned();
            outcomes.extend(published);
            if let Some(down) = down {
                // The others need not find that out, one part after the other.
                outcomes.resize(count, down);
                break;
            }
        }
        outcomes
    }

    async fn publish(&self, messages: Vec<Result<CeleryMessage, Outcome>>) -> Vec<Outcome> {
        let prepare = |message: Result<CeleryMessage, Outcome>| {
            // A new one for every copy: a worker keeps what it has not finished under it.
            let tag = Uuid::now_v7();
            let publish = message.map(|message| RedisPublish::new(&message, self.declare, &self.keys, tag))?;
            self.refuse(&publish).map_or(Ok(publish), Err)
        };
        let messages: Vec<Result<RedisPublish, Outcome>> = messages.into_iter().map(prepare).collect();
        let unbound = self.bind(&messages).await;
        let members = self.members(&messages).await;

        let mut pushes: Vec<Push> = Vec::new();
        let mut outcomes = Vec::with_capacity(messages.len());
        for (at, message) in messages.into_iter().enumerate() {
            let lists = message.and_then(|message| {
                if let Some(outcome) = message
                    .bindings
                    .iter()
                    .find_map(|binding| unbound.get(&member(binding)))
                {
                    return Err(outcome.clone());
                }
                Ok((lists(&message.target, &members)?, message.envelope))
            });
            match lists {
                Ok((lists, envelope)) => {
                    for list in lists {
                        match pushes.last_mut().filter(|push| push.has_room_for(&list)) {
                            Some(push) => push.add(at, &envelope),
                            None => pushes.push(Push::new(list, at, &envelope)),
                        }
                    }
                    outcomes.push(Outcome::Delivered);
                }
                Err(outcome) => outcomes.push(outcome),
            }
        }
        let (places, commands): (Vec<Vec<usize>>, Vec<Cmd>) =
            pushes.into_iter().map(|push| (push.places, push.command)).unzip();
        for (places, answer) in places.into_iter().zip(self.commander.send(commands).await) {
            let outcome = match answer {
                Ok(Value::Int(_)) => continue,
                Ok(_) => strange(),
                Err(outcome) => outcome,
            };
            for at in places {
                // Of a message for several lists, the first that did not get it decides.
                if outcomes[at] == Outcome::Delivered {
                    outcomes[at] = outcome.clone();
                }
            }
        }
        outcomes
    }

    fn refuse(&self, publish: &RedisPublish) -> Option<Outcome> {
        let (bytes, limit) = (publish.envelope.len(), self.max_message_bytes);
        if bytes > limit {
            let reason = format!(
                "the task has {bytes} bytes and the limit is {limit} (store the data elsewhere and send a reference, or \
                 raise max_message_bytes, and proto-max-bulk-len of Redis, then replay it)"
            );
            return Some(Outcome::Permanent(reason.into()));
        }
        match &publish.target {
            RedisTarget::Exchange {
                exchange_type: ExchangeType::Fanout,
                table,
                ..
            } => {
                let reason = format!(
                    "Redis keeps nothing for a fanout exchange, only workers that listen at that moment hear of it: \
                     {table:?} (use a direct or a topic exchange, then replay the task)"
                );
                Some(Outcome::Permanent(reason.into()))
            }
            RedisTarget::Exchange { .. } | RedisTarget::List(_) => None,
        }
    }

    /// Notes the bindings, each once. Returns those that could not be noted.
    async fn bind(&self, messages: &[Result<RedisPublish, Outcome>]) -> HashMap<(String, String), Outcome> {
        let sent = messages.iter().flatten();
        let mut bindings: Vec<(String, String)> = sent.flat_map(|message| &message.bindings).map(member).collect();
        bindings.sort_unstable();
        bindings.dedup();
        let add = |(key, member): &(String, String)| cmd("SADD").arg(key).arg(member).take();
        let answers = self.commander.send(bindings.iter().map(add).collect()).await;
        let failed = |(binding, answer): (_, Result<Value, Outcome>)| Some((binding, answer.err()?));
        bindings.into_iter().zip(answers).filter_map(failed).collect()
    }

    /// The bindings of the exchanges that messages go to.
    async fn members(&self, messages: &[Result<RedisPublish, Outcome>]) -> HashMap<String, Members> {
        let table = |message: &RedisPublish| match &message.target {
            RedisTarget::Exchange { table, .. } => Some(table.clone()),
            RedisTarget::List(_) => None,
        };
        let mut tables: Vec<String> = messages.iter().flatten().filter_map(table).collect();
        tables.sort_unstable();
        tables.dedup();
        let commands = tables.iter().map(|table| cmd("SMEMBERS").arg(table).take()).collect();
        let answers = self.commander.send(commands).await;
        let read = |answer: Result<Value, Outcome>| {
            answer.and_then(|value| redis::from_redis_value(value).map_err(|_| strange()))
        };
        tables.into_iter().zip(answers.into_iter().map(read)).collect()
    }
}

/// The lists that get a message, at least one.
fn lists(target: &RedisTarget, members: &HashMap<String, Members>) -> Result<Vec<String>, Outcome> {
    let RedisTarget::Exchange { table, routing_key, .. } = target else {
        return Ok(target.lists([]));
    };
    let members = members.get(table).cloned().unwrap_or_else(|| Err(strange()))?;
    let lists = target.lists(members.iter().map(String::as_str));
    if lists.is_empty() {
        let reason = format!(
            "the task is unroutable: no queue is bound to its exchange for the routing key {routing_key:?}, as {table:?} in \
             Redis says (start a worker of the queue, or set declare = \"active\"; then replay the task)"
        );
        return Err(Outcome::Permanent(reason.into()));
    }
    Ok(lists)
}

fn member(binding: &Binding) -> (String, String) {
    (binding.key.clone(), binding.member.clone())
}

fn strange() -> Outcome {
    Outcome::Unknown("Redis gave an answer that the command does not have (check what is between)".into())
}
