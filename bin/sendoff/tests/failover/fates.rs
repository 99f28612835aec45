//! Whether every message has its own outcome.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::endpoint::{Endpoint, SINKS, answer_to};
use super::rows::rows;
use super::scene::Entry;
use crate::sandbox::TestDatabase;

/// Where a message is that one of its sinks has not accepted.
struct Tables {
    ready: HashSet<String>,
    waiting: HashSet<(String, String)>,
    dead: HashSet<(String, String)>,
}

impl Tables {
    fn read(place: &TestDatabase) -> Self {
        let pairs = |table: &str| {
            let found = rows(place, &format!("SELECT id, sink FROM {table}"));
            found.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect()
        };
        let ready = rows(place, "SELECT id FROM outbox_message");
        Self {
            ready: ready.into_iter().map(|mut row| row.remove(0)).collect(),
            waiting: pairs("outbox_waiting"),
            dead: pairs("outbox_dead"),
        }
    }

    /// Ids of messages in a table that were not committed here.
    fn strangers(&self, messages: &[Entry]) -> Vec<&String> {
        let known: HashSet<&String> = messages.iter().map(|message| &message.id).collect();
        let deliveries = self.waiting.iter().chain(&self.dead).map(|(id, _)| id);
        let mut strangers: Vec<_> = self
            .ready
            .iter()
            .chain(deliveries)
            .filter(|id| !known.contains(id))
            .collect();
        strangers.dedup();
        strangers
    }
}

/// Waits until every message is delivered, waiting or dead for each sink, according to its topic. Fails with the state
/// of those that are not.
#[track_caller]
pub(crate) fn assert_accounted(place: &TestDatabase, endpoint: &Endpoint, messages: &[Entry], limit: Duration) {
    let began = Instant::now();
    loop {
        let tables = Tables::read(place);
        let wrong = wrong(&tables, endpoint, messages);
        if wrong.is_empty() {
            assert_eq!(tables.strangers(messages), Vec::<&String>::new());
            return;
        }
        if began.elapsed() > limit {
            let lost = wrong.iter().filter(|line| line.ends_with("nowhere")).count();
            panic!(
                "of {} messages for {} sinks {} have another end than their own, {lost} of them without a trace:\n{}",
                messages.len(),
                SINKS.len(),
                wrong.len(),
                wrong.join("\n")
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn wrong(tables: &Tables, endpoint: &Endpoint, messages: &[Entry]) -> Vec<String> {
    let mut wrong = Vec::new();
    for message in messages {
        for sink in SINKS {
            let row = (message.id.clone(), sink.to_owned());
            let expected = match answer_to(&message.topic, sink) {
                200 => "delivered",
                400 => "dead",
                _ => "waiting",
            };
            let found = if tables.ready.contains(&message.id) {
                "ready"
            } else if tables.waiting.contains(&row) || tables.waiting.contains(&(message.id.clone(), String::new())) {
                "waiting"
            } else if tables.dead.contains(&row) {
                "dead"
            } else if endpoint.has_taken(sink, &message.id) {
                "delivered"
            } else {
                "nowhere"
            };
            if found != expected {
                let Entry { lane, seq, topic, .. } = message;
                wrong.push(format!(
                    "lane {lane} seq {seq} {topic} for {sink}: {expected} expected, {found}"
                ));
            }
        }
    }
    wrong
}
