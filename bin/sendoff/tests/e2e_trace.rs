//! One trace from a request to the consumer, as a collector gets it: an application that emits, a relay process, and a
//! consumer, each with its own exporter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod collector;
mod sandbox;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use collector::{Answer, Collected, Collector, answer};
use hyper::HeaderMap;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rusqlite::TransactionBehavior;
use rustix::process::Signal;
use sandbox::{Running, Sandbox, TestDatabase, lines, wait_until};
use sendoff::{Message, Outbox};
use sendoff_log_context::LogContext;
use sendoff_opentelemetry::TraceContext;
use sendoff_rusqlite as _;
use tracing::info_span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::prelude::*;

const PATIENCE: Duration = Duration::from_secs(30);
const TOKEN: &str = "Bearer canary-of-the-collector";

/// What an application has: an outbox in its own database, and a tracer.
struct Application {
    outbox: Outbox,
    database: Mutex<Option<std::path::PathBuf>>,
    fails_once: AtomicBool,
    consumed: AtomicBool,
}

impl Application {
    fn handle(&self, path: &str, headers: &HeaderMap) -> Answer {
        match path {
            "/orders" => self.place_order(),
            "/hook" => self.consume(headers),
            _ => answer(404),
        }
    }

    /// A request, traced as a web framework traces it, whose transaction emits a message.
    fn place_order(&self) -> Answer {
        let request = info_span!(
            "POST /orders",
            otel.kind = "server",
            request_id = "a-1",
            password = "hunter2"
        );
        let _in_request = request.enter();
        let path = self.database.lock().unwrap().clone().unwrap();
        let mut connection = rusqlite::Connection::open(path).unwrap();
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .unwrap();
        let message = Message::json("order.placed", &42).unwrap();
        let _ = self.outbox.emit_blocking(&tx, message).unwrap();
        tx.commit().unwrap();
        answer(200)
    }

    /// The consumer: it continues the `traceparent` of the message.
    fn consume(&self, headers: &HeaderMap) -> Answer {
        assert_eq!(headers["log-context"], r#"{"request_id":"a-1"}"#);
        if self.fails_once.swap(false, Ordering::SeqCst) {
            return answer(500);
        }
        let text = |name: &str| (name.to_owned(), headers[name].to_str().unwrap().to_owned());
        let carrier = HashMap::from([text("traceparent")]);
        let span = info_span!("consume", otel.kind = "consumer");
        span.set_parent(TraceContextPropagator::new().extract(&carrier))
            .unwrap();
        span.in_scope(|| self.consumed.store(true, Ordering::SeqCst));
        answer(200)
    }
}

fn exporting(endpoint: &str) -> SdkTracerProvider {
    let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint).build();
    SdkTracerProvider::builder()
        .with_batch_exporter(exporter.unwrap())
        .with_resource(Resource::builder().with_service_name("shop").build())
        .build()
}

/// Places an order, and runs a relay with this protocol until it is consumed.
async fn relayed(application: &Application, address: SocketAddr, protocol: &str) {
    let sandbox = tokio::task::block_in_place(|| Sandbox::sqlite().migrated());
    sandbox.configure(&format!(
        "[relay]\nidle_time = \"20ms\"\n[retry]\nbase = \"50ms\"\n\
         [trace]\nendpoint = \"http://{address}\"\nprotocol = {protocol:?}\nsample = 0.0\nservice_name = \"relay\"\n\
         headers = {{ authorization = {TOKEN:?} }}\n\
         [[sink]]\nname = \"hook\"\ntype = \"http\"\nurl = \"http://{address}/hook\"\n\
         allow_private = [\"127.0.0.0/8\"]\n\
         [[sink]]\nname = \"out\"\ntype = \"file\"\npath = \"out.jsonl\"\n\
         [[route]]\nmatch = \"order.*\"\nto = [\"hook\"]\n[[route]]\nmatch = \"*\"\nto = [\"out\"]\n"
    ));
    let TestDatabase::Sqlite(path) = &sandbox.place else {
        panic!("it is SQLite");
    };
    *application.database.lock().unwrap() = Some(path.clone());
    application.fails_once.store(true, Ordering::SeqCst);
    application.consumed.store(false, Ordering::SeqCst);
    let ordered = reqwest::Client::new().post(format!("http://{address}/orders"));
    assert_eq!(ordered.send().await.unwrap().status(), 200);
    let log = std::fs::File::create(sandbox.path("relay.log")).unwrap();
    tokio::task::block_in_place(|| {
        // These are not traced: the first has a trace that is not recorded, and for the second no trace is started.
        let unrecorded = "traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        sandbox.emit(&["untraced", "--header", unrecorded]);
        sandbox.emit(&["untraced"]);
        let mut command = sandbox.command(["relay", "--log-format", "json", "-vv"]);
        let mut relay = Running::start(command.stdout(Stdio::null()).stderr(log));
        wait_until("the order is consumed, and the others are delivered", PATIENCE, || {
            application.consumed.load(Ordering::SeqCst) && lines(&sandbox.path("out.jsonl")).len() == 2
        });
        relay.signal(Signal::TERM);
        let ended = relay.end(PATIENCE);
        let log = sandbox.read("relay.log");
        assert_eq!(ended.code(), Some(0), "{log}");
        assert!(!log.contains("trace_export_failed") && !log.contains("canary"), "{log}");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_and_what_came_of_it_are_one_trace() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let log_context = LogContext::only(["request_id"]);
    let application = Arc::new(Application {
        outbox: Outbox::builder()
            .context(TraceContext::new())
            .context(log_context.clone())
            .build(),
        database: Mutex::new(None),
        fails_once: AtomicBool::new(false),
        consumed: AtomicBool::new(false),
    });
    let handler = application.clone();
    let collector = Collector::start(move |path, headers| handler.handle(path, headers)).await;
    let provider = exporting(&format!("http://{}", collector.address));
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    tracing_subscriber::registry()
        .with(
            layer.with_filter(
                tracing_subscriber::filter::Targets::new()
                    .with_targets([("e2e_trace", tracing::Level::INFO), ("sendoff", tracing::Level::INFO)]),
            ),
        )
        .with(log_context.layer())
        .init();

    // What packages have is tested with both (`--features full`).
    let protocols: &[&str] = if cfg!(feature = "otlp-grpc") {
        &["http/protobuf", "grpc"]
    } else {
        &["http/protobuf"]
    };
    for protocol in protocols {
        collector.forget();
        relayed(&application, collector.address, protocol).await;
        let flush = provider.clone();
        tokio::task::spawn_blocking(move || flush.force_flush().unwrap())
            .await
            .unwrap();
        let spans = collector.spans();
        let one = |name: &str, service: &str| -> Collected {
            let found: Vec<&Collected> = spans.iter().filter(|span| span.is(name, service)).collect();
            assert_eq!(found.len(), 1, "{protocol}: {name} of {service} in {spans:#?}");
            found[0].clone()
        };
        let request = one("POST /orders", "shop");
        let emit = one("emit", "shop");
        let consume = one("consume", "shop");
        let attempts: Vec<&Collected> = spans.iter().filter(|span| span.service == "relay").collect();
        let (first, retry) = match attempts.as_slice() {
            [a, b] if a.attribute("sendoff.attempt") == "1" => (*a, *b),
            [a, b] => (*b, *a),
            _ => panic!("{protocol}: two attempts in {attempts:#?}"),
        };

        // One trace: the request, the emit in it, the publish and the consumer after it.
        for span in [&emit, first, &consume] {
            assert_eq!(span.trace, request.trace, "{protocol}: {span:?}");
        }
        assert_eq!(emit.parent, request.id);
        assert_eq!((&first.parent, &consume.parent), (&emit.id, &emit.id));
        assert_eq!(first.name, "publish order.placed");
        assert_eq!(
            first.attribute("messaging.message.id"),
            emit.attribute("messaging.message.id")
        );
        assert_eq!(first.attribute("sendoff.sink"), "hook");
        assert_eq!(first.attribute("error.type"), "temporary");
        // The retry has its own trace, with a link to the emit.
        assert_ne!(retry.trace, request.trace);
        assert_eq!(retry.links, [(emit.trace.clone(), emit.id.clone())]);
        // The log context is on the relay's spans; unlisted fields are nowhere.
        for attempt in [first, retry] {
            assert_eq!(attempt.attribute("request_id"), "a-1");
            assert_eq!(attempt.authorization.as_deref(), Some(TOKEN), "{protocol}");
        }
        assert!(!format!("{attempts:?}").contains("hunter2"));
    }
    tokio::task::spawn_blocking(move || provider.shutdown().unwrap())
        .await
        .unwrap();
}
