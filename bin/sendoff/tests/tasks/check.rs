//! The checks after all calls are emitted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::emit::{Emitted, outbox_url};
use super::{Known, Producer, Then, fits};
use crate::sandbox::{Sandbox, wait_until};
use crate::shop::{Journal, PATIENCE, Project, database};

/// A worker's timer goes off a few milliseconds early.
const EARLY: Duration = Duration::from_millis(200);

/// How many are in progress.
pub(crate) fn left(project: &Project, outbox: &Sandbox) -> usize {
    let rows = |database: &str, table: &str| {
        let sql = format!("SELECT CAST(count(*) AS char(20)), '' FROM {table}");
        database::pairs(database, &sql)[0].0.trim().parse::<usize>().unwrap()
    };
    let url = outbox_url(outbox);
    rows(&project.database, "celery_outbox") + rows(&url, "outbox_message") + rows(&url, "outbox_waiting")
}

/// Checks the worker, the databases and the result backend.
pub(crate) struct Check<'a> {
    pub(crate) project: &'a Project,
    pub(crate) outbox: &'a Sandbox,
    pub(crate) journal: Journal,
}

impl Check<'_> {
    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, fits: impl Fn(&[Value]) -> bool) {
        let began = Instant::now();
        while !fits(self.journal.lines()) {
            assert!(
                began.elapsed() < PATIENCE,
                "waited in vain for {what}: {}\n{}",
                self.outbox.read("relay.log"),
                self.project.logs()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until everything is as expected, and reports everything that is not.
    pub(crate) fn outcomes(&mut self, emitted: &[Emitted<'_>]) {
        let began = Instant::now();
        loop {
            let dead = [Producer::Rust, Producer::Django].map(|of| self.dead(of)).concat();
            let lines = self.journal.lines();
            let database = self.project.database.as_str();
            let missing: Vec<String> = emitted
                .iter()
                .filter_map(|each| outcome(each, database, lines, &dead).err())
                .collect();
            if missing.is_empty() {
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{}\n{}\n{}",
                missing.join("\n"),
                self.outbox.read("relay.log"),
                self.project.logs()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The ids of dead letters, and why they are dead.
    fn dead(&self, producer: Producer) -> Vec<(String, String)> {
        match producer {
            Producer::Rust | Producer::Sql => {
                let sql = "SELECT id::text, coalesce(last_error, '') FROM outbox_dead";
                database::pairs(&outbox_url(self.outbox), sql)
            }
            Producer::Django | Producer::Row => {
                let sql = "SELECT task_id, failure_reason FROM celery_outbox_dead_letter";
                database::pairs(&self.project.database, sql)
            }
        }
    }

    /// Nothing is left, nothing else is dead, and expired tasks did not run.
    pub(crate) fn ends(&mut self, emitted: &[Emitted<'_>]) {
        wait_until("nothing is on its way", PATIENCE, || {
            left(self.project, self.outbox) == 0
        });
        let database = self.project.database.as_str();
        let of = |producer: Producer, wanted: fn(&Then) -> bool| {
            let fits =
                |each: &&Emitted<'_>| each.producer == producer && wanted(&each.scenario.outcome(producer, database).0);
            let ids = emitted
                .iter()
                .filter(fits)
                .flat_map(|each| each.answer.clone().unwrap());
            ids.collect::<BTreeSet<String>>()
        };
        for both in [[Producer::Rust, Producer::Sql], [Producer::Django, Producer::Row]] {
            let expected: BTreeSet<String> = both
                .iter()
                .flat_map(|each| of(*each, |then| matches!(then, Then::Dead(_))))
                .collect();
            let dead: BTreeSet<String> = self.dead(both[0]).into_iter().map(|(id, _)| id).collect();
            assert_eq!(dead, expected, "dead letters");
        }
        for producer in Producer::ALL {
            let expired = of(producer, |then| matches!(then, Then::Expires));
            let lines = self.journal.lines();
            let ran = lines
                .iter()
                .find(|line| line["id"].as_str().is_some_and(|id| expired.contains(id)));
            assert_eq!(ran, None, "it had expired");
        }
    }

    /// The broker decided the order: on RabbitMQ the highest priority comes first, on Redis the lowest step.
    pub(crate) fn priorities(&mut self) {
        let on_rabbitmq = self.project.broker.starts_with("amqp");
        for producer in Producer::ALL {
            let start = format!("{producer:?} priority_");
            let ran = self.journal.lines().iter().filter_map(|line| line["result"].as_str());
            let ran = ran.filter_map(|result| result.strip_prefix(&start)?.strip_suffix(":a"));
            let ran: Vec<u8> = ran.map(|priority| priority.parse().unwrap()).collect();
            if on_rabbitmq {
                assert_eq!(ran, [9, 5, 3, 0], "{producer:?}");
            } else {
                let steps: Vec<u8> = ran.iter().map(|priority| priority / 3 * 3).collect();
                assert_eq!(steps, [0, 3, 3, 9], "{producer:?}: {ran:?}");
            }
        }
    }

    /// The worker keeps the result of a task, and nothing if the result is ignored.
    pub(crate) fn results(&mut self) {
        let client = redis::Client::open(self.project.backend.as_str()).unwrap();
        let mut connection = client.get_connection().unwrap();
        let lines = self.journal.lines();
        for line in lines
            .iter()
            .filter(|line| !line["id"].is_null() && line["task"] != "shop.show")
        {
            let key = format!("celery-task-meta-{}", line["id"].as_str().unwrap());
            let mut kept = || -> Option<Value> {
                let text: Option<String> = redis::cmd("GET").arg(&key).query(&mut connection).unwrap();
                text.map(|text| serde_json::from_str(&text).unwrap())
            };
            if line["ignore_result"] == true {
                assert_eq!(kept(), None, "{line:#}");
                continue;
            }
            let status = if line["task"] == "shop.fail" {
                "FAILURE"
            } else {
                "SUCCESS"
            };
            // It is written after the line.
            wait_until(&format!("{status} of {line:#}"), PATIENCE, || {
                kept().is_some_and(|kept| kept["status"] == status)
            });
            if status == "SUCCESS" && line["task"] != "shop.again" {
                assert_eq!(kept().unwrap()["result"], line["result"], "{line:#}");
            }
        }
    }
}

/// Whether the outcome of a call is the expected one.
fn outcome(emitted: &Emitted<'_>, database: &str, lines: &[Value], dead: &[(String, String)]) -> Result<(), String> {
    let (then, reason) = emitted.scenario.outcome(emitted.producer, database);
    let what = format!("{} ({reason})", emitted.caller.tag);
    match (then, &emitted.answer) {
        (Then::Runs(patterns), Ok(ids)) => runs(emitted, &patterns, ids, lines).map_err(|why| format!("{what}: {why}")),
        // Whether it was dropped is known when all others have run.
        (Then::Expires, Ok(_)) => Ok(()),
        (Then::Dead(words), Ok(ids)) => {
            let found = dead.iter().find(|(id, _)| ids.contains(id));
            let said = found.map(|(_, said)| said.as_str());
            let fits = said.is_some_and(|said| said.contains(words));
            fits.then_some(())
                .ok_or(format!("{what}: a dead letter with {words:?} and not {said:?}"))
        }
        (Then::Refused(words), Err(error)) if error.contains(words) => Ok(()),
        (then, answer) => Err(format!(
            "{what}: {then:?} is expected, and it was emitted as {answer:?}"
        )),
    }
}

/// Whether there are matching lines, none of them from before the call was due.
fn runs(emitted: &Emitted<'_>, patterns: &[Value], ids: &[String], lines: &[Value]) -> Result<(), String> {
    let mut known = Known::new();
    for (at, id) in ids.iter().enumerate() {
        let name = if at == 0 { "$id".to_owned() } else { format!("$id{at}") };
        known.insert(name, json!(id));
    }
    let delay = emitted.scenario.delay;
    let due = emitted.caller.now + delay.saturating_sub(EARLY);
    for pattern in patterns {
        let pattern: Value = serde_json::from_str(&emitted.caller.fill(&pattern.to_string())).unwrap();
        let found = lines.iter().find_map(|line| {
            let mut known = known.clone();
            fits(&pattern, line, &mut known).then_some((known, line))
        });
        let Some((more, line)) = found else {
            let of_it = |line: &&Value| line["id"] == known["$id"] || line.to_string().contains(&emitted.caller.tag);
            let seen: Vec<&Value> = lines.iter().filter(of_it).collect();
            return Err(format!("no line matches {pattern} with {known:?}; there are {seen:?}"));
        };
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(line["at"].as_f64().unwrap());
        if at < due {
            return Err(format!("it ran at {at} and was due at {due}"));
        }
        known = more;
    }
    Ok(())
}
