//! Lines, and writers that fail.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex};

use sendoff::{Outcome, Sink};
use sendoff_sink_stdout::StdoutSink;

mod message;
use message::message;

fn topics(lines: &str) -> Vec<String> {
    let topic = |line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["topic"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    lines.lines().map(topic).collect()
}

/// Accepts this many bytes, a few at a time, then fails until it gets more room.
#[derive(Clone)]
struct Narrow(Arc<Mutex<(Vec<u8>, usize)>>);

impl Narrow {
    fn new(room: usize) -> Self {
        Self(Arc::new(Mutex::new((Vec::new(), room))))
    }

    fn widen(&self) {
        self.0.lock().unwrap().1 = usize::MAX;
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
    }
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (taken, room) = &mut *self.0.lock().unwrap();
        let count = bytes.len().min(7).min(*room);
        if count == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        *room -= count;
        taken.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_batch_is_lines_in_its_order() {
    let (mut reader, writer) = io::pipe().unwrap();
    let sink = StdoutSink::to_writer(writer);
    let batch = ["a", "b", "c"].map(|topic| message(topic, "{}".into()));
    assert_eq!(sink.publish(&batch).await, vec![Outcome::Delivered; 3]);
    assert_eq!(sink.publish(&[]).await, []);
    drop(sink);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(topics(&text), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_reader_that_went_away_is_a_sink_that_is_down() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let sink = StdoutSink::to_writer(writer);
    for _ in 0..2 {
        let outcomes = sink
            .publish(&[message("a", "{}".into()), message("b", "{}".into())])
            .await;
        assert_eq!(outcomes.len(), 2);
        for outcome in outcomes {
            assert!(matches!(outcome, Outcome::SinkDown(reason) if reason.text().contains("has closed it")));
        }
    }
}

#[tokio::test]
async fn a_line_that_broke_does_not_spoil_the_next_one() {
    let out = Narrow::new(300);
    let sink = StdoutSink::to_writer(out.clone());
    let batch = ["a", "b"].map(|topic| message(topic, format!("{:?}", "x".repeat(100))));
    let outcomes = sink.publish(&batch).await;
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Outcome::SinkDown(_))),
        "{outcomes:?}"
    );
    assert!(!out.text().ends_with('\n'), "the test needs a broken line");
    out.widen();
    assert_eq!(sink.publish(&batch).await, vec![Outcome::Delivered; 2]);
    let text = out.text();
    let (first, rest) = text.split_once('\n').unwrap();
    let (_broken, rest) = rest.split_once('\n').unwrap();
    assert_eq!(
        (topics(first), topics(rest)),
        (vec!["a".into()], vec!["a".into(), "b".into()])
    );
}

#[tokio::test]
async fn a_batch_larger_than_a_pipe_waits_for_its_reader() {
    let (reader, writer) = io::pipe().unwrap();
    let sink = StdoutSink::to_writer(writer);
    let batch: Vec<_> = (0..50)
        .map(|n| message(&format!("t{n}"), format!("{:?}", "x".repeat(10_000))))
        .collect();
    let reading = std::thread::spawn(move || BufReader::new(reader).lines().map(Result::unwrap).collect::<Vec<_>>());
    assert_eq!(sink.publish(&batch).await, vec![Outcome::Delivered; 50]);
    drop(sink);
    let expected: Vec<_> = (0..50).map(|n| format!("t{n}")).collect();
    assert_eq!(topics(&reading.join().unwrap().join("\n")), expected);
}
