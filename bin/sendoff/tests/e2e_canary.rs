//! The program prints no payload and no secret: the test searches all of its output for a canary of each, at the lowest
//! log level, while everything that can fail does fail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod sandbox;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::Signal;
use sandbox::{Ran, Running, Sandbox, wait_until};

const PATIENCE: Duration = Duration::from_secs(30);
/// `cargo xtask test` searches the output of all tests for this.
const CANARY: &str = "canary-6f1d";
const SECRET: &str = "canary-6f1d-secret";
const PAYLOAD: &str = r#"{"card":"canary-6f1d-payload"}"#;
const HEADER: &str = "x-token=canary-6f1d-header";

/// The sinks, in the order of the configuration.
const SINKS: [&str; 9] = [
    "hook", "gone", "rabbit", "redis", "nats", "token", "mqtt", "celery", "file",
];

#[test]
fn nothing_that_is_said_holds_a_payload_or_a_secret_on_sqlite() {
    // One end refuses connections; the other echoes everything it gets, including passwords and payloads.
    look_everywhere(&Sandbox::sqlite(), &[closed_port(), echo()]);
}

#[test]
fn nothing_that_is_said_holds_a_payload_or_a_secret_on_postgres() {
    look_everywhere(&Sandbox::postgres(), &[echo()]);
}

#[test]
fn nothing_that_is_said_holds_a_payload_or_a_secret_on_mysql() {
    look_everywhere(&Sandbox::mysql(), &[echo()]);
}

fn look_everywhere(sandbox: &Sandbox, ends: &[SocketAddr]) {
    for address in ends {
        configure(sandbox, *address);
        sandbox.ok(["migrate"]);
        emit(sandbox);
        relay(sandbox, "json");
        steer(sandbox);
        relay(sandbox, "human");
    }
    break_the_database(sandbox);
}

#[test]
fn errors_about_a_configuration_do_not_quote_its_secrets() {
    let sandbox = Sandbox::sqlite();
    let url = |scheme: &str| format!("{scheme}://shop:{SECRET}@127.0.0.1:{}/shop", closed_port().port());
    for url in [
        url("postgres"),
        url("mysql"),
        url("oracle"),
        format!("shop:{SECRET}@db/shop"),
    ] {
        is_clean(&run(&sandbox, &["--database", &url, "stats"]));
        sandbox.write("sendoff.toml", &format!("[database]\nurl = {url:?}\n"));
        is_clean(&run(&sandbox, &["config", "show"]));
        is_clean(&run(&sandbox, &["relay", "--once"]));
    }
    let hook =
        |line: &str| format!("[[sink]]\nname = \"a\"\ntype = \"http\"\nurl = \"https://hook.invalid/\"\n{line}\n");
    for text in [
        format!("[database]\nurl = \"{SECRET}\n"),
        format!("[database]\nurl = [\"{SECRET}\"]\n"),
        format!("[database]\nurl = \"{SECRET}\"\n"),
        format!("[trace]\nendpoint = \"https://me:{SECRET}@otel.invalid\"\n"),
        format!("[trace]\nheaders = [\"{SECRET}\"]\n"),
        format!("[[sink]]\nname = \"a\"\ntype = \"http\"\nurl = \"https://me:{SECRET}@hook.invalid/\"\n"),
        format!("[[sink]]\nname = \"a\"\ntype = \"http\"\nurl = \"https://hook.invalid/\"\nsecrets = [\"{SECRET}\"]\n"),
        format!("[[sink]]\nname = \"a\"\ntype = \"rabbitmq\"\nurl = \"amqp://me:{SECRET}@\"\n"),
        format!("[[sink]]\nname = \"a\"\ntype = \"nats\"\nurl = \"nats://{SECRET}@broker.invalid\"\n"),
        format!("[[sink]]\nname = \"a\"\ntype = \"nats\"\nurl = \"nats://broker.invalid\"\nnkey = [\"{SECRET}\"]\n"),
        format!("[trace]\nheaders = \"{SECRET}\"\n"),
        hook(&format!("headers = \"Bearer {SECRET}\"")),
        hook(&format!("headers = {{ authorization = [\"{SECRET}\"] }}")),
        hook(&format!("headers = {{ authorization = \"{SECRET} {{tpoic}}\" }}")),
        hook(&format!("body = [\"{SECRET}\"]")),
        hook(&format!("body = \"{{ {SECRET}\"")),
    ] {
        sandbox.write("sendoff.toml", &text);
        for command in [["config", "check"], ["config", "show"], ["relay", "--once"]] {
            is_clean(&run(&sandbox, &command));
        }
    }
}

fn configure(sandbox: &Sandbox, address: SocketAddr) {
    let port = address.port();
    let password = format!("password = {SECRET:?}\ntimeout = \"2s\"\n");
    let sink = |name: &str, kind: &str, rest: &str| format!("[[sink]]\nname = {name:?}\ntype = {kind:?}\n{rest}");
    let hook = |path: &str| {
        format!(
            "url = \"http://{SECRET}@{address}/{path}\"\nallow_private = [\"127.0.0.0/8\"]\ntimeout = \"2s\"\n\
             headers = {{ authorization = {SECRET:?}, x-app = \"{SECRET}{{topic}}\" }}\n"
        )
    };
    let broker = |scheme: &str| format!("url = \"{scheme}://relay@127.0.0.1:{port}\"\n{password}");
    let plain = |scheme: &str| format!("url = \"{scheme}://127.0.0.1:{port}\"\nuser = \"relay\"\n{password}");
    let sinks = [
        sink(
            "hook",
            "http",
            &format!(
                "body = '{{\"token\": {SECRET:?}, \"of\": {{payload}}}}'\n{}",
                hook("500")
            ),
        ),
        sink("gone", "http", &hook("400")),
        sink("rabbit", "rabbitmq", &format!("exchange = \"\"\n{}", broker("amqp"))),
        sink("redis", "redis", &broker("redis")),
        sink("nats", "nats", &plain("nats")),
        sink(
            "token",
            "nats",
            &format!("url = \"nats://{SECRET}@127.0.0.1:{port}\"\ntimeout = \"2s\"\n"),
        ),
        sink("mqtt", "mqtt", &plain("mqtt")),
        sink(
            "celery",
            "celery",
            &format!("url = \"redis://me:{SECRET}@127.0.0.1:{port}/0\"\ntimeout = \"2s\"\n"),
        ),
        sink("file", "file", "path = \"no/such/folder/out.jsonl\"\n"),
    ];
    sandbox.configure(&format!(
        "[relay]\nidle_time = \"20ms\"\ndrain_timeout = \"1s\"\n[retry]\nbase = \"100ms\"\nattempts = 2\n\
         [trace]\nendpoint = \"http://{address}\"\nheaders = {{ authorization = {SECRET:?} }}\n{}\
         [[route]]\nmatch = \"nowhere.*\"\nto = [\"file\"]\n[[route]]\nmatch = \"*\"\nto = {SINKS:?}\n",
        sinks.concat()
    ));
}

/// Messages of every kind, and a row that is not a valid message.
fn emit(sandbox: &Sandbox) {
    for args in [
        &["order.placed"][..],
        &["order.placed", "--key", "customer-7"],
        &["order.placed", "--idempotency-key", "once"],
        &["order.placed", "--delay", "100ms"],
    ] {
        let all = [&["emit"], args, &["--payload", PAYLOAD, "--header", HEADER]].concat();
        is_clean(&run(sandbox, &all));
    }
    let bad = ["emit", "", "--payload", PAYLOAD, "--header", HEADER];
    is_clean(&run(sandbox, &bad));
    let large = format!("{CANARY}{}", "x".repeat(2 << 20));
    sandbox.write("large", &large);
    is_clean(&run(
        sandbox,
        &["emit", "order.placed", "--payload-file", "large", "--header", HEADER],
    ));
}

/// Runs a relay until every sink has failed.
fn relay(sandbox: &Sandbox, format: &str) {
    let troubled = |log: &str, name: &str| {
        let about = [format!("\"sink\":\"{name}\""), format!("sink=\"{name}\"")];
        log.lines().any(|line| about.iter().any(|about| line.contains(about)))
    };
    relay_until(sandbox, format, "every sink has failed", |log| {
        SINKS.iter().all(|sink| troubled(log, sink))
    });
}

fn relay_until(sandbox: &Sandbox, format: &str, what: &str, condition: impl Fn(&str) -> bool) {
    let file = |name| std::fs::File::create(sandbox.path(name)).unwrap();
    let mut command = sandbox.command(["relay", "--log-level", "trace", "--log-format", format, "-vv"]);
    let mut relay = Running::start(command.stdout(file("relay.out")).stderr(file("relay.err")));
    wait_until(what, PATIENCE, || condition(&sandbox.read("relay.err")));
    relay.signal(Signal::TERM);
    relay.end(PATIENCE);
    is_clean(&Ran {
        code: 0,
        out: sandbox.read("relay.out"),
        err: sandbox.read("relay.err"),
    });
}

/// What operators do.
fn steer(sandbox: &Sandbox) {
    for command in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "check"],
        &["migrate"],
        &["stats"],
        &["ls"],
        &["lanes"],
        &["keys", "ls"],
        &["keys", "ls", "--json"],
        &["dead", "ls"],
        &["dead", "retry", "--all", "--yes"],
        &["pause", "topic", "order.*"],
        &["resume", "topic", "order.*"],
        &["retry", "--all"],
        &["retry", "--reset", "--all"],
        &["reap"],
        &["sink", "ls"],
        &["sink", "ls", "--json"],
        &["sink", "test", "hook"],
        &["sink", "test", "redis"],
        &["cleanup", "--delivered", "1d", "--yes"],
        &["audit", "--json"],
    ] {
        let ran = run(sandbox, command);
        assert_ne!(ran.code, 2, "{command:?} is a command: {ran:?}");
        is_clean(&ran);
    }
    // These commands print whole messages: payloads are allowed here, secrets are not.
    let id = emitted(sandbox);
    for command in [&["show", &id][..], &["ls", "--json"], &["dead", "ls", "--json"]] {
        let ran = run(sandbox, command);
        assert!(ran.code == 0 && !ran.out.contains(SECRET), "{command:?}");
        let of_log = Ran {
            out: String::new(),
            ..ran
        };
        is_clean(&of_log);
    }
    let shown = sandbox.ok(["show", &id]);
    assert!(
        shown.out.contains("canary-6f1d-payload"),
        "the canary is not in the messages"
    );
}

/// The id of an existing message.
fn emitted(sandbox: &Sandbox) -> String {
    let listed = sandbox.json(&["ls"]);
    listed["items"][0]["id"].as_str().unwrap().to_owned()
}

/// The database fails under a relay and under an emit: drivers may quote the values.
fn break_the_database(sandbox: &Sandbox) {
    sandbox.sql("ALTER TABLE outbox_waiting RENAME TO elsewhere");
    relay_until(sandbox, "human", "the relay misses the table", |log| {
        log.contains("outbox_waiting")
    });
    let emit = ["emit", "order.placed", "--payload", PAYLOAD, "--header", HEADER];
    is_clean(&run(sandbox, &[&emit[..], &["--delay", "1h"]].concat()));
    is_clean(&run(sandbox, &["retry", "--all"]));
    is_clean(&run(sandbox, &["ls"]));
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Ran {
    sandbox.run(args.iter().copied().chain(["--log-level", "trace", "-vv"]))
}

#[track_caller]
fn is_clean(ran: &Ran) {
    for text in [&ran.out, &ran.err] {
        let line = text
            .lines()
            .find(|line| line.contains(CANARY) || line.contains(&hex(CANARY)));
        // Only the position: quoting the line would print the canary.
        let place = line.and_then(|line| line.find(CANARY).map(|at| line[..at].to_owned()));
        assert_eq!(place, None, "the canary comes after this");
    }
    assert!(!ran.err.contains("panicked"), "{ran:?}");
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// A port without a listener.
fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A server that echoes its input; for an HTTP request, as the body of an error with the status in its path.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || send_back(stream));
        }
    });
    address
}

fn send_back(mut stream: TcpStream) {
    let mut bytes = [0; 16 << 10];
    while let Ok(length @ 1..) = stream.read(&mut bytes) {
        let got = &bytes[..length];
        let status = [("POST /500", "500 Broken"), ("POST /400", "400 Wrong")]
            .iter()
            .find(|(start, _)| got.starts_with(start.as_bytes()));
        let done = match status {
            Some((_, status)) => {
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(got))
            }
            None => stream.write_all(got),
        };
        if done.is_err() || status.is_some() {
            return;
        }
    }
}
