//! The real standard output of a separate process, with both ends in the test.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::print_stderr, reason = "the child reports its outcomes this way")]

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Trial};
use sendoff::Sink;
use sendoff_sink_stdout::{StdoutConfig, StdoutSink};

mod message;
use message::message;

const CHILD: &str = "SENDOFF_TEST_STDOUT_CHILD";

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        publish_what_is_read();
        return ExitCode::SUCCESS;
    }
    let name = "process_whose_reader_goes_away_lives_on";
    let trial = Trial::test(name, || {
        process_whose_reader_goes_away_lives_on();
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

#[tokio::main(flavor = "current_thread")]
async fn publish_what_is_read() {
    let sink = StdoutSink::new(&StdoutConfig::default()).unwrap();
    for topic in io::stdin().lines() {
        let topic = topic.unwrap();
        let outcome = sink.publish(&[message(&topic, "{}".into())]).await.remove(0);
        eprintln!("{topic} {outcome:?}");
    }
}

fn process_whose_reader_goes_away_lives_on() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);

    writeln!(input, "first").unwrap();
    assert_eq!(said.next().unwrap(), "first Delivered");
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains(r#""topic":"first""#), "{line}");

    drop(output);
    for topic in ["second", "third"] {
        writeln!(input, "{topic}").unwrap();
        let said = said.next().unwrap();
        assert!(said.starts_with(&format!("{topic} SinkDown")), "{said}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}
