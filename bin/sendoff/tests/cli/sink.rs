//! `sink ls` and `sink test`, and a webhook from end to end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

use crate::sandbox::Sandbox;

/// A request: its head, in lower case, and its body.
pub(crate) struct Request {
    head: String,
    body: String,
}

/// An HTTP server that answers everything with `status`.
pub(crate) fn server(status: &'static str) -> (SocketAddr, mpsc::Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
            // A check connects and sends nothing.
            if head.is_empty() {
                continue;
            }
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.unwrap().parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
            let body = String::from_utf8(body).unwrap();
            if sender.send(Request { head, body }).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

pub(crate) fn hook(address: SocketAddr) -> String {
    format!(
        "[[sink]]\nname = \"hook\"\ntype = \"http\"\nurl = \"http://{address}/in?token=hunter2\"\n\
         allow_private = [\"127.0.0.0/8\"]\nsecrets = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]\n\
         [[route]]\nmatch = \"*\"\nto = [\"hook\"]\n"
    )
}

#[test]
fn a_message_reaches_a_webhook() {
    let (address, requests) = server("200 OK");
    let sandbox = Sandbox::sqlite();
    sandbox.configure(&hook(address));
    let sandbox = sandbox.migrated();
    let id = sandbox.emit(&["order.placed", "--payload", "{\"order\":42}"]);
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!(
        (report["delivered"].as_i64(), report["remaining"].as_i64()),
        (Some(1), Some(0)),
        "{report}"
    );
    let request = requests.recv().unwrap();
    assert!(request.head.starts_with("post /in?token=hunter2 "), "{}", request.head);
    for header in [
        format!("webhook-id: {id}"),
        "webhook-signature: v1,".to_owned(),
        "content-type: application/json".to_owned(),
    ] {
        assert!(request.head.contains(&header), "{header} in {}", request.head);
    }
    assert_eq!(request.body, "{\"order\":42}");
}

#[test]
fn a_sink_that_works_says_so_and_ends_with_0() {
    let (address, requests) = server("204 No Content");
    let sandbox = Sandbox::sqlite();
    sandbox.configure(&hook(address));
    let ran = sandbox.ok(["sink", "test", "hook"]);
    assert!(ran.out.starts_with("delivered: hook confirmed the probe"), "{ran:?}");
    let request = requests.recv().unwrap();
    assert!(request.head.contains("x-sendoff-probe: true"), "{}", request.head);
    assert!(
        request.head.contains("sendoff-topic: sendoff.probe"),
        "{}",
        request.head
    );
    assert_eq!(request.body, "{\"probe\":true}");
    let tried = sandbox.json(&["sink", "test", "hook", "--topic", "ping"]);
    assert_eq!(
        (tried["outcome"].as_str(), tried["topic"].as_str()),
        (Some("delivered"), Some("ping")),
        "{tried}"
    );
    assert_eq!(
        (tried["reached"].as_bool(), tried["type"].as_str()),
        (Some(true), Some("http")),
        "{tried}"
    );
    assert!(requests.recv().unwrap().head.contains(tried["id"].as_str().unwrap()));
}

#[test]
fn a_sink_that_refuses_is_told_and_ends_with_1() {
    let (address, _requests) = server("404 Not Found");
    let sandbox = Sandbox::sqlite();
    sandbox.configure(&hook(address));
    let ran = sandbox.run(["sink", "test", "hook", "--json"]);
    let tried = ran.json();
    assert_eq!((ran.code, tried["outcome"].as_str()), (1, Some("permanent")), "{ran:?}");
    assert!(tried["reason"].as_str().unwrap().contains("404 Not Found"), "{tried}");
    assert!(!ran.out.contains("hunter2") && !ran.err.contains("hunter2"), "{ran:?}");
}

#[test]
fn a_sink_that_cannot_be_reached_gets_nothing_and_ends_with_1() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sandbox = Sandbox::sqlite();
    sandbox.configure(&hook(nobody));
    let ran = sandbox.run(["sink", "test", "hook", "--json"]);
    let tried = ran.json();
    assert_eq!(
        (ran.code, tried["reached"].as_bool(), tried["outcome"].as_str()),
        (1, Some(false), None),
        "{ran:?}"
    );
    assert!(!ran.out.contains("hunter2") && !ran.err.contains("hunter2"), "{ran:?}");
    let ran = sandbox.run(["sink", "test", "hook"]);
    assert!(
        ran.code == 1 && ran.out.starts_with("not reached: cannot connect"),
        "{ran:?}"
    );
}

#[test]
fn a_host_that_cannot_be_reached_is_told_whatever_the_path_and_kills_no_message() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sandbox = Sandbox::sqlite();
    let sink = hook(nobody).replace("/in?", "/{topic}?");
    sandbox.configure(&format!("{sink}[retry]\nattempts = 1\n"));
    let sandbox = sandbox.migrated();
    let tried = sandbox.run(["sink", "test", "hook", "--json"]).json();
    assert_eq!(
        (tried["reached"].as_bool(), tried["outcome"].as_str()),
        (Some(false), None),
        "{tried}"
    );
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    let report = sandbox.run(["relay", "--once", "--json"]).json();
    assert_eq!(
        (report["dead"].as_i64(), report["remaining"].as_i64()),
        (Some(0), Some(1)),
        "{report}"
    );
}

#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let (address, requests) = server("204 No Content");
    let (proxy, proxied) = server("502 Bad Gateway");
    let sandbox = Sandbox::sqlite();
    sandbox.configure(&hook(address));
    let mut command = sandbox.command(["sink", "test", "hook"]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, format!("http://{proxy}"));
    }
    let output = command.env_remove("no_proxy").env_remove("NO_PROXY").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(requests.recv().unwrap().head.contains("x-sendoff-probe"));
    assert!(proxied.try_recv().is_err());
}

#[test]
fn a_sink_on_standard_output_keeps_the_report_out_of_its_messages() {
    let sandbox = Sandbox::sqlite();
    sandbox.configure("[[sink]]\nname = \"out\"\ntype = \"stdout\"\n");
    let ran = sandbox.ok(["sink", "test", "out", "--json"]);
    assert_eq!(ran.json()["topic"], "sendoff.probe");
    assert!(ran.err.contains("delivered"), "{ran:?}");
}

#[test]
fn sinks_are_listed_without_their_secrets() {
    let sandbox = Sandbox::sqlite();
    sandbox.configure(&hook("127.0.0.1:1".parse().unwrap()));
    assert_eq!(sandbox.ok(["sink", "ls"]).out, "name\ttype\troutes\nhook\thttp\t*\n");
    let shown = sandbox.ok(["sink", "ls", "--json"]).out;
    assert!(
        shown.contains("127.0.0.1") && !shown.contains("hunter2") && !shown.contains("MfKQ9"),
        "{shown}"
    );
    let shown = sandbox.ok(["config", "show"]).out;
    assert!(
        shown.contains("127.0.0.1") && !shown.contains("hunter2") && !shown.contains("MfKQ9"),
        "{shown}"
    );
}

#[test]
fn a_sink_that_is_not_there_ends_with_5() {
    let sandbox = Sandbox::sqlite();
    sandbox.configure(&hook("127.0.0.1:1".parse().unwrap()));
    sandbox
        .run(["sink", "test", "nowhere"])
        .fails_with_reason(5, &["nowhere", "use hook"]);
}
