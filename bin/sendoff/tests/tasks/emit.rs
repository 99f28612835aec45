//! The producers at work: each emits all its calls in one transaction.

use jiff::Timestamp;
use sendoff::{Message, Outbox, Uuid};
use sendoff_celery::CONTENT_TYPE;
use sendoff_tokio_postgres as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Caller, Producer, Scenario, Then, iso8601};
use crate::sandbox::{Sandbox, TestDatabase, block_on, connect};
use crate::shop::{Enqueuer, Project, database};

/// Where the producers emit to.
pub(crate) struct Dispatcher<'a> {
    pub(crate) project: &'a Project,
    pub(crate) django: Enqueuer,
    pub(crate) outbox: &'a Sandbox,
}

/// A call that was made.
pub(crate) struct Emitted<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) producer: Producer,
    pub(crate) caller: Caller,
    /// The ids of its first tasks, or the error of the producer.
    pub(crate) answer: Result<Vec<String>, String>,
}

impl Dispatcher<'_> {
    /// Lets every producer emit all calls that it supports.
    pub(crate) fn emit<'s>(&mut self, scenarios: &[&'s Scenario]) -> Vec<Emitted<'s>> {
        let mut emitted = Vec::new();
        for producer in Producer::ALL {
            let said = scenarios.iter().filter(|scenario| {
                let (then, _) = scenario.outcome(producer, &self.project.database);
                !matches!(then, Then::Unsaid)
            });
            let now = Timestamp::now();
            let calls: Vec<(&Scenario, Caller)> = said
                .map(|scenario| {
                    let tag = format!("{producer:?} {}:", scenario.name);
                    let queue = self.project.queue.clone();
                    (*scenario, Caller { tag, queue, now })
                })
                .collect();
            let answers = match producer {
                Producer::Django => self.by_django(&calls),
                Producer::Rust => block_on(self.by_rust(&calls)),
                Producer::Sql => block_on(self.by_sql(&calls)),
                Producer::Row => self.by_row(&calls),
            };
            assert_eq!(answers.len(), calls.len());
            emitted.extend(
                calls
                    .into_iter()
                    .zip(answers)
                    .map(|((scenario, caller), answer)| Emitted {
                        scenario,
                        producer,
                        caller,
                        answer,
                    }),
            );
        }
        emitted
    }

    fn by_django(&mut self, calls: &[(&Scenario, Caller)]) -> Vec<Result<Vec<String>, String>> {
        let call = |(scenario, caller): &(&Scenario, Caller)| {
            let (eta, later) = (iso8601(caller.eta()), iso8601(caller.later()));
            json!({"call": scenario.django.unwrap(), "tag": caller.tag, "eta": eta, "later": later})
        };
        let calls: Vec<Value> = calls.iter().map(call).collect();
        let answer = |answer: Value| match answer["refused"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(serde_json::from_value(answer["ids"].clone()).unwrap()),
        };
        self.django.enqueue(&calls).into_iter().map(answer).collect()
    }

    async fn by_rust(&self, calls: &[(&Scenario, Caller)]) -> Vec<Result<Vec<String>, String>> {
        let messages = |(scenario, caller): &(&Scenario, Caller)| {
            let tasks = scenario.rust.unwrap()(caller);
            tasks.into_iter().map(Message::from).collect::<Vec<_>>()
        };
        let calls: Vec<Vec<Message>> = calls.iter().map(messages).collect();
        let ids = |messages: &Vec<Message>| Ok(messages.iter().map(|each| each.id().to_string()).collect());
        let answers = calls.iter().map(ids).collect();
        let mut client = connect(&outbox_url(self.outbox)).await;
        let tx = client.transaction().await.unwrap();
        let emitted = Outbox::new().emit_many(&tx, calls.into_iter().flatten()).await;
        let _ = emitted.unwrap();
        tx.commit().await.unwrap();
        answers
    }

    async fn by_sql(&self, calls: &[(&Scenario, Caller)]) -> Vec<Result<Vec<String>, String>> {
        // Alternately, so that both are used with every kind of call over time.
        let ways = [
            "INSERT INTO outbox_message (topic, content_type, payload) VALUES ($1, $2, convert_to($3, 'UTF8')) RETURNING id",
            "SELECT outbox_emit(topic => $1, content_type => $2, payload => convert_to($3, 'UTF8'))",
        ];
        let mut client = connect(&outbox_url(self.outbox)).await;
        let tx = client.transaction().await.unwrap();
        let (mut answers, mut ways) = (Vec::new(), ways.iter().cycle());
        for (scenario, caller) in calls {
            let mut ids = Vec::new();
            for (task, payload) in &scenario.sql {
                let (task, payload) = (task.to_string(), caller.fill(payload));
                let way = *ways.next().unwrap();
                let row = tx.query_one(way, &[&task, &CONTENT_TYPE, &payload]).await.unwrap();
                ids.push(row.get::<_, Uuid>(0).to_string());
            }
            answers.push(Ok(ids));
        }
        tx.commit().await.unwrap();
        answers
    }

    fn by_row(&self, calls: &[(&Scenario, Caller)]) -> Vec<Result<Vec<String>, String>> {
        #[derive(Deserialize)]
        struct Payload<'a> {
            #[serde(borrow, default)]
            args: Option<&'a RawValue>,
            #[serde(borrow, default)]
            kwargs: Option<&'a RawValue>,
            #[serde(borrow, default)]
            options: Option<&'a RawValue>,
        }
        let (mut answers, mut rows) = (Vec::new(), Vec::new());
        for (scenario, caller) in calls {
            let mut ids = Vec::new();
            for (task, payload) in &scenario.sql {
                let payload = caller.fill(payload);
                let Payload { args, kwargs, options } = serde_json::from_str(&payload).unwrap();
                let text = |json: Option<&RawValue>, empty: &str| json.map_or(empty, RawValue::get).to_owned();
                // The row has a column for it.
                let id = match scenario.name {
                    "id_that_is_no_uuid" => caller.tag.clone(),
                    _ => Uuid::now_v7().to_string(),
                };
                ids.push(id.clone());
                rows.push([
                    id,
                    task.to_string(),
                    text(args, "[]"),
                    text(kwargs, "{}"),
                    text(options, "{}"),
                ]);
            }
            answers.push(Ok(ids));
        }
        database::insert(&self.project.database, &rows);
        answers
    }
}

/// The database of an outbox, with its tables under their usual names.
pub(crate) fn outbox_url(outbox: &Sandbox) -> String {
    let TestDatabase::Postgres { url, schema } = &outbox.place else {
        panic!("the outbox is in PostgreSQL");
    };
    let mark = if url.contains('?') { '&' } else { '?' };
    format!("{url}{mark}options=-csearch_path%3D{schema}")
}
