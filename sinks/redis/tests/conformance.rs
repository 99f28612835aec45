//! The sink conformance suite on Redis: streams, lists, and streams in a cluster.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use redis::Value;
use sendoff::{Result, Sink};
use sendoff_sink_redis::{Mode, RedisConfig, RedisSink};
use sendoff_testkit::servers::{Redis, RedisCluster};
use sendoff_testkit::sink_suite::{Broker, Capabilities, Connection, HeaderText, Received, Setup, SinkHarness, run};
use sendoff_wire::Format;

const LIMIT: usize = 100_000;
const KEY: &str = "suite";

struct Harness {
    mode: Mode,
    cluster: bool,
}

struct Server {
    mode: Mode,
    far_side: FarSide,
}

enum FarSide {
    Node(Redis),
    Cluster(RedisCluster),
}

impl Server {
    fn redis(&mut self) -> &mut Redis {
        match &mut self.far_side {
            FarSide::Node(redis) => redis,
            FarSide::Cluster(cluster) => &mut cluster.nodes[0],
        }
    }

    async fn ask(&mut self, command: &redis::Cmd) -> Value {
        let client = redis::Client::open(self.redis().url()).unwrap();
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let mut connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .unwrap();
        command.query_async(&mut connection).await.unwrap()
    }
}

#[async_trait]
impl SinkHarness for Harness {
    fn capabilities(&self) -> Capabilities {
        let stream = self.mode == Mode::Stream;
        Capabilities {
            formats: if stream {
                &[
                    Format::Raw,
                    Format::Envelope,
                    Format::CloudEvents,
                    Format::CloudEventsBinary,
                ]
            } else {
                &[Format::Envelope, Format::CloudEvents]
            },
            attribute_prefix: "ce_",
            headers: if stream { HeaderText::Unicode } else { HeaderText::None },
            max_size: Some(LIMIT),
            unroutable: false,
            restart: true,
            handshake: true,
        }
    }

    async fn fresh(&self, _setup: Setup) -> Result<Box<dyn Broker>> {
        let far_side = if self.cluster {
            FarSide::Cluster(RedisCluster::start(1).await)
        } else {
            FarSide::Node(Redis::start().await)
        };
        Ok(Box::new(Server {
            mode: self.mode,
            far_side,
        }))
    }
}

#[async_trait]
impl Broker for Server {
    fn port(&self) -> u16 {
        match &self.far_side {
            FarSide::Node(redis) => redis.port(),
            FarSide::Cluster(cluster) => cluster.nodes[0].port(),
        }
    }

    async fn reached_by(&mut self, port: u16) {
        if matches!(self.far_side, FarSide::Cluster(_)) {
            let mut announce = redis::cmd("CONFIG");
            announce.arg("SET").arg("cluster-announce-ip").arg("127.0.0.1");
            self.ask(announce.arg("cluster-announce-port").arg(port)).await;
        }
    }

    fn sink(&self, connection: &Connection) -> Result<Arc<dyn Sink>> {
        let mut config = RedisConfig::new(&format!("redis://127.0.0.1:{}", connection.port))?;
        config.mode = self.mode;
        config.cluster = matches!(self.far_side, FarSide::Cluster(_));
        config.key = KEY.parse()?;
        config.format = Some(connection.format);
        config.max_message_bytes = LIMIT;
        config.password = connection.password.clone().map(Into::into);
        Ok(Arc::new(RedisSink::new(config)?))
    }

    async fn received(&mut self) -> Vec<Received> {
        let mut command = match self.mode {
            Mode::Stream => redis::cmd("XRANGE"),
            Mode::List | Mode::PubSub => redis::cmd("LRANGE"),
            other => panic!("say how what {other:?} stores is read"),
        };
        match self.mode {
            Mode::Stream => command.arg(KEY).arg("-").arg("+"),
            Mode::List | Mode::PubSub => command.arg(KEY).arg(0).arg(-1),
            other => panic!("say how what {other:?} stores is read"),
        };
        let Value::Array(items) = self.ask(&command).await else {
            panic!("not a list of messages");
        };
        items.into_iter().map(received).collect()
    }

    async fn kill(&mut self) {
        self.redis().kill();
    }

    async fn restart(&mut self) {
        self.redis().restart().await;
    }
}

/// An element of a list, or an entry of a stream by the names of its fields.
fn received(item: Value) -> Received {
    let fields: Vec<Vec<u8>> = match item {
        Value::BulkString(body) => {
            return Received {
                content_type: None,
                headers: Vec::new(),
                body: body.into(),
            };
        }
        Value::Array(entry) => redis::from_redis_value(entry.into_iter().nth(1).unwrap()).unwrap(),
        other => panic!("{other:?}"),
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut received = Received {
        content_type: None,
        headers: Vec::new(),
        body: bytes::Bytes::new(),
    };
    for pair in fields.chunks_exact(2) {
        match text(&pair[0]).as_str() {
            "payload" => received.body = pair[1].clone().into(),
            "content_type" => received.content_type = Some(text(&pair[1])),
            name => {
                let name = match name.strip_prefix("header:") {
                    Some(own) => own.to_owned(),
                    None if name.starts_with("ce_") => name.to_owned(),
                    None => format!("sendoff-{}", name.replace('_', "-")),
                };
                received.headers.push((name, text(&pair[1])));
            }
        }
    }
    received
}

fn main() -> ExitCode {
    let harness = |mode, cluster| Harness { mode, cluster };
    run([
        ("stream", harness(Mode::Stream, false)),
        ("list", harness(Mode::List, false)),
        ("cluster", harness(Mode::Stream, true)),
    ])
}
