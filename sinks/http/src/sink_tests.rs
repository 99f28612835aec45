use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;

use futures::FutureExt as _;
use sendoff_testkit::outgoing;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::Endpoint;

fn config(url: &str) -> HttpConfig {
    HttpConfig::new(Endpoint::parse(url).unwrap())
}

#[test]
fn the_login_is_shared_unless_it_is_made_of_the_message() {
    let login = |url: &str, headers: &[(&str, &str)]| {
        let mut config = config(url);
        let parsed = |text: &str| HeaderTemplate::parse(text).unwrap();
        config.headers = headers
            .iter()
            .map(|(name, text)| ((*name).to_owned(), parsed(text)))
            .collect();
        shared(&config, &config.url.open().unwrap()).login
    };
    let (fixed, host, own) = ("https://h/a", "https://h/{topic}", "{header:url}");
    let bearer = ("Authorization", "Bearer x");
    assert!(login(fixed, &[]) && login(fixed, &[bearer]) && login(host, &[bearer]));
    assert!(login("https://me:pw@h/{topic}", &[]) && login(host, &[bearer, ("x-tenant", "{key}")]));
    assert!(!login(host, &[]), "it may be the path that is refused");
    assert!(!login(own, &[bearer]));
    assert!(!login(
        fixed,
        &[("authorization", "Bearer {header:token}"), ("x-app", "shop")]
    ));
    assert!(!login(fixed, &[("x-api-key", "{header:token}"), ("x-app", "shop")]));
}

/// Answers one request per connection, and closes it.
async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_ne!(stream.read(&mut [0; 4096]).await.unwrap(), 0);
            let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_refused_although_it_was_called_before() {
    let port = server().await.port();
    for second in ["10.0.0.1", "::ffff:169.254.169.254"] {
        let answers = ["127.0.0.1".parse().unwrap(), second.parse().unwrap()];
        let answers = Mutex::new(VecDeque::from(answers));
        let names = move |_, port| {
            let address: std::net::IpAddr = answers.lock().unwrap().pop_front().unwrap();
            std::future::ready(Ok(vec![SocketAddr::new(address, port)])).boxed()
        };
        let guard = Guard::with_names(&["127.0.0.0/8".parse().unwrap()], Arc::new(names));
        let url = format!("http://hooks.example:{port}/{{topic}}");
        let sink = HttpSink::guarded(config(&url), guard).unwrap();
        let message = Arc::new(outgoing("order.placed", "{}"));
        assert_eq!(sink.publish(&[Arc::clone(&message)]).await, [Outcome::Delivered]);
        let again = sink.publish(&[message]).await;
        let [Outcome::SinkDown(reason)] = &again[..] else {
            panic!("{again:?}");
        };
        assert!(reason.text().contains("not a public address"), "{reason:?}");
    }
}
