//! A Django process that creates the tables and enqueues calls.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

pub(crate) struct Enqueuer {
    child: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Enqueuer {
    /// Starts one. It takes calls once it has created the tables; earlier calls wait.
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Self {
            calls: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Waits until the tables exist.
    pub(crate) fn wait(&mut self) {
        while self.answer().trim() != "ready" {}
    }

    /// Makes the calls in one transaction, and returns the result of each: its `ids`, or why it was `refused`.
    pub(crate) fn enqueue(&mut self, calls: &[Value]) -> Vec<Value> {
        writeln!(self.calls, "{}", Value::from(calls)).unwrap();
        let answer = self.answer();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).unwrap();
        assert!(read > 0, "Django ended: {:?}; its words are above", self.child.wait());
        line
    }
}

impl Drop for Enqueuer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
