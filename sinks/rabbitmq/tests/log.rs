//! The log never holds a message, although the client would log returned messages.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::io;
use std::sync::{Arc, Mutex};

use sendoff::Sink;
use sendoff_testkit::servers::RabbitMq;

mod broker;
use broker::{message, permanent, sink, to_queues};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_returned_message_is_not_logged() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .init();
    let sink = sink(to_queues(RabbitMq::shared().url()));
    let mut outgoing = message("no-such-queue");
    outgoing.payload = "canary".into();
    outgoing.headers.insert("h", "canary");
    permanent(&sink.publish(&[Arc::new(outgoing)]).await[0], &["312"]);
    sink.close().await;
    tracing::warn!("the log works");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("the log works"));
    assert!(
        !log.contains("canary") && !log.contains("99, 97, 110, 97, 114, 121"),
        "{log}"
    );
}
