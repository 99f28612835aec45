//! Publishes tasks to Redis.

use std::collections::HashMap;
use std::ops::Range;

use redis::{Cmd, Value, cmd};
use sendoff::{Outcome, Result};
use sendoff_sink_redis::{Commander, Lack};
use sendoff_wire::{Fate, Parts};
use uuid::Uuid;

use crate::CeleryMessage;
use crate::config::{CeleryConfig, Declare, ExchangeType, RedisConfig};
use crate::redis::{Binding, RedisPublish, RedisTarget};

/// How many tasks are sent to Redis together.
const PART: usize = 500;
/// How many tasks are encoded before the pending commands are polled.
const TURN: usize = 20;

pub(super) struct ToRedis {
    pub(super) commander: Commander,
    declare: Declare,
    keys: RedisConfig,
    max_message_bytes: usize,
}

/// Consecutive messages for the same list, in one command: Redis accepts all of them or none, and writes and
/// synchronises them once in its append-only file.
struct Push {
    list: String,
    /// The indexes of the messages in the batch.
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

/// The members of an exchange's set of bindings, or why they are unknown.
type Members = Result<Vec<String>, Lack>;

const DELIVERED: Fate = Fate::Settled(Outcome::Delivered);

impl ToRedis {
    pub(super) fn new(server: sendoff_sink_redis::RedisConfig, config: &CeleryConfig) -> Result<Self> {
        Ok(Self {
            max_message_bytes: server.max_message_bytes,
            commander: Commander::new(server)?,
            declare: config.declare,
            keys: config.redis.clone(),
        })
    }

    /// Publishes this many tasks, and encodes some while earlier ones are with Redis.
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
            let (from, size) = (outcomes.len(), next.len());
            let sent;
            (sent, next) = tokio::join!(self.send(next, false), encoded(part(from + size)));
            let published = self.send_again(sent, |place| encode(from + place)).await;
            let down = published.iter().find(|outcome| matches!(outcome, Outcome::SinkDown(_)));
            let down = down.cloned();
            outcomes.extend(published);
            if let Some(down) = down {
                // The other parts would fail the same way, one after the other.
                outcomes.resize(count, down);
                break;
            }
        }
        outcomes
    }

    /// Sends tasks again whose connection broke, in smaller and smaller parts. Each is encoded again.
    async fn send_again(
        &self,
        sent: Vec<Fate>,
        encode: impl Fn(usize) -> Result<CeleryMessage, Outcome> + Send + Sync,
    ) -> Vec<Outcome> {
        let mut parts = Parts::new(sent.len());
        if let Some(all) = parts.next() {
            parts.settle(&all, sent);
        }
        while let Some(part) = parts.next() {
            let messages = part.iter().map(|place| encode(*place)).collect();
            let fates = self.send(messages, true).await;
            parts.settle(&part, fates);
        }
        parts.into_outcomes()
    }

    /// Sends commands, on a separate connection if the last one broke.
    async fn command(&self, commands: Vec<Cmd>, apart: bool) -> Vec<Result<Value, Lack>> {
        match apart {
            true => self.commander.send_apart(commands).await,
            false => self.commander.send(commands).await,
        }
    }

    async fn send(&self, messages: Vec<Result<CeleryMessage, Outcome>>, apart: bool) -> Vec<Fate> {
        let prepare = |message: Result<CeleryMessage, Outcome>| {
            // A new tag for every copy: a worker stores unfinished tasks under it.
            let tag = Uuid::now_v7();
            let publish = message.map(|message| RedisPublish::new(&message, self.declare, &self.keys, tag))?;
            self.refuse(&publish).map_or(Ok(publish), Err)
        };
        let messages: Vec<Result<RedisPublish, Outcome>> = messages.into_iter().map(prepare).collect();
        let unbound = self.bind(&messages, apart).await;
        let members = self.members(&messages, apart).await;

        let mut pushes: Vec<Push> = Vec::new();
        let mut fates = Vec::with_capacity(messages.len());
        for (at, message) in messages.into_iter().enumerate() {
            let lists = message.map_err(Fate::Settled).and_then(|message| {
                let mut bindings = message.bindings.iter();
                if let Some(lack) = bindings.find_map(|binding| unbound.get(&member(binding))) {
                    return Err(lack.clone().fate());
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
                    fates.push(DELIVERED);
                }
                Err(fate) => fates.push(fate),
            }
        }
        let (places, commands): (Vec<Vec<usize>>, Vec<Cmd>) =
            pushes.into_iter().map(|push| (push.places, push.command)).unzip();
        for (places, answer) in places.into_iter().zip(self.command(commands, apart).await) {
            let fate = match answer {
                Ok(Value::Int(_)) => continue,
                Ok(_) => Fate::Settled(strange()),
                // One of them is too large.
                Err(Lack::Oversize(reason)) if places.len() > 1 => Fate::Broken(Outcome::Permanent(reason)),
                Err(lack) => lack.fate(),
            };
            for at in places {
                // For a message with several lists, the first failure decides.
                if fates[at] == DELIVERED {
                    fates[at] = fate.clone();
                }
            }
        }
        fates
    }

    fn refuse(&self, publish: &RedisPublish) -> Option<Outcome> {
        let (bytes, limit) = (publish.envelope.len(), self.max_message_bytes);
        if bytes > limit {
            let reason = format!(
                "the task has {bytes} bytes and the limit is {limit} (raise `max_message_bytes` of the sink and \
                 proto-max-bulk-len of Redis, then retry the task, or send a reference)"
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
                    "the task has a fanout exchange, and Redis does not store messages for it: {table:?} (use a \
                     direct or a topic exchange, then retry the task)"
                );
                Some(Outcome::Permanent(reason.into()))
            }
            RedisTarget::Exchange { .. } | RedisTarget::List(_) => None,
        }
    }

    /// Writes the bindings, each once. Returns those that failed.
    async fn bind(&self, messages: &[Result<RedisPublish, Outcome>], apart: bool) -> HashMap<(String, String), Lack> {
        let sent = messages.iter().flatten();
        let mut bindings: Vec<(String, String)> = sent.flat_map(|message| &message.bindings).map(member).collect();
        bindings.sort_unstable();
        bindings.dedup();
        let add = |(key, member): &(String, String)| cmd("SADD").arg(key).arg(member).take();
        let answers = self.command(bindings.iter().map(add).collect(), apart).await;
        let failed = |(binding, answer): (_, Result<Value, Lack>)| Some((binding, answer.err()?));
        bindings.into_iter().zip(answers).filter_map(failed).collect()
    }

    /// The bindings of the messages' exchanges.
    async fn members(&self, messages: &[Result<RedisPublish, Outcome>], apart: bool) -> HashMap<String, Members> {
        let table = |message: &RedisPublish| match &message.target {
            RedisTarget::Exchange { table, .. } => Some(table.clone()),
            RedisTarget::List(_) => None,
        };
        let mut tables: Vec<String> = messages.iter().flatten().filter_map(table).collect();
        tables.sort_unstable();
        tables.dedup();
        let commands = tables.iter().map(|table| cmd("SMEMBERS").arg(table).take()).collect();
        let answers = self.command(commands, apart).await;
        let read = |answer: Result<Value, Lack>| {
            answer.and_then(|value| redis::from_redis_value(value).map_err(|_| Lack::Settled(strange())))
        };
        tables.into_iter().zip(answers.into_iter().map(read)).collect()
    }
}

/// The lists of a message, at least one.
fn lists(target: &RedisTarget, members: &HashMap<String, Members>) -> Result<Vec<String>, Fate> {
    let RedisTarget::Exchange { table, routing_key, .. } = target else {
        return Ok(target.lists([]));
    };
    let members = members.get(table).cloned();
    let members = members
        .unwrap_or_else(|| Err(Lack::Settled(strange())))
        .map_err(Lack::fate)?;
    let lists = target.lists(members.iter().map(String::as_str));
    if lists.is_empty() {
        let reason = format!(
            "the task is unroutable: no queue is bound to its exchange for the routing key {routing_key:?}, according \
             to {table:?} in Redis (start a worker of the queue, or set `declare = \"active\"` of the sink; then retry \
                                                                                    the task)"
        );
        return Err(Fate::Settled(Outcome::Permanent(reason.into())));
    }
    Ok(lists)
}

fn member(binding: &Binding) -> (String, String) {
    (binding.key.clone(), binding.member.clone())
}

fn strange() -> Outcome {
    Outcome::Unknown("Redis gave an unexpected answer (check for a proxy between the relay and Redis)".into())
}
