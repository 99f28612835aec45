//! The sink conformance suite, on a Kafka-compatible broker that keeps its records in a file (tansu).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap fails the test"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection as Database, OpenFlags, Row};
use sendoff::{Outgoing, Result, Sink};
use sendoff_sink_kafka::{KafkaConfig, KafkaSink};
use sendoff_testkit::servers::Kafka;
use sendoff_testkit::sink_suite::{Broker, Capabilities, Connection, HeaderText, Received, Setup, SinkHarness, run};
use sendoff_wire::Format;

mod scene;

const LIMIT: u32 = 100_000;
const TOPIC: &str = "suite";

struct Harness;

#[async_trait]
impl SinkHarness for Harness {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            formats: &[
                Format::Raw,
                Format::Envelope,
                Format::CloudEvents,
                Format::CloudEventsBinary,
            ],
            attribute_prefix: "ce_",
            headers: HeaderText::Unicode,
            max_size: Some(LIMIT as usize),
            unroutable: true,
            restart: true,
            handshake: true,
        }
    }

    async fn fresh(&self, _setup: Setup) -> Result<Box<dyn Broker>> {
        let broker = Kafka::start().await;
        scene::create(&broker.address(), TOPIC).await;
        Ok(Box::new(Private(broker)))
    }
}

struct Private(Kafka);

#[async_trait]
impl Broker for Private {
    fn port(&self) -> u16 {
        self.0.port()
    }

    async fn reached_by(&mut self, port: u16) {
        self.0.advertise(&format!("127.0.0.1:{port}")).await;
    }

    fn sink(&self, connection: &Connection) -> Result<Arc<dyn Sink>> {
        let config = KafkaConfig {
            topic: format!("{{header:elsewhere|{TOPIC}}}").parse()?,
            format: connection.format,
            max_message_bytes: LIMIT,
            user: connection.password.as_ref().map(|_| "app".to_owned()),
            password: connection.password.as_deref().map(Into::into),
            connect_timeout: Duration::from_secs(4),
            // Long enough for a busy machine; a message without confirmation takes as long to fail.
            ack_timeout: Duration::from_secs(10),
            ..KafkaConfig::new([format!("127.0.0.1:{}", connection.port)])
        };
        Ok(Arc::new(KafkaSink::new(config)?))
    }

    /// From the broker's database: a consumer would connect to the broker's advertised address, which may be blocked.
    async fn received(&mut self) -> Vec<Received> {
        let path = self.0.database();
        tokio::task::spawn_blocking(move || stored(&path)).await.unwrap()
    }

    fn make_unroutable(&self, outgoing: &mut Outgoing) {
        outgoing.headers.insert("elsewhere", "missing");
    }

    async fn kill(&mut self) {
        self.0.kill();
    }

    async fn restart(&mut self) {
        self.0.restart().await;
    }
}

fn stored(path: &Path) -> Vec<Received> {
    let database = Database::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    database.busy_timeout(Duration::from_secs(30)).unwrap();
    // One snapshot of both tables.
    database.execute_batch("begin").unwrap();
    let mut records = database
        .prepare("select topition, offset_id, v from record order by topition, offset_id")
        .unwrap();
    let mut headers = database
        .prepare("select k, v from header where topition = ?1 and offset_id = ?2 order by rowid")
        .unwrap();
    let text = |row: &Row<'_>, column| Ok::<_, rusqlite::Error>(String::from_utf8(row.get(column)?).unwrap());
    let rows = records.query_map([], |row| {
        let place: (i64, i64) = (row.get(0)?, row.get(1)?);
        let mut headers: Vec<(String, String)> = headers
            .query_map(place, |row| Ok((text(row, 0)?, text(row, 1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let at = headers.iter().position(|(name, _)| name == "content-type");
        Ok(Received {
            content_type: at.map(|at| headers.remove(at).1),
            headers,
            body: Bytes::from(row.get::<_, Option<Vec<u8>>>(2)?.unwrap_or_default()),
        })
    });
    rows.unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

fn main() -> std::process::ExitCode {
    run([("tansu", Harness)])
}
