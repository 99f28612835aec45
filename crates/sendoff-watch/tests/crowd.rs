//! Many who ask at the same time, and some who only keep their connections open.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test that is how it fails")]

use std::net::SocketAddr;
use std::time::Duration;

use sendoff_watch::{Watch, WatchConfig, Watching};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn watching() -> (Watching, SocketAddr) {
    let config = WatchConfig {
        listen: Some("127.0.0.1:0".into()),
        ..WatchConfig::default()
    };
    let watching = Watch::new(config).start(Vec::new()).await.unwrap();
    let address = watching.address().unwrap();
    (watching, address)
}

async fn asking(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    // One that was closed already may refuse it.
    let _ = stream.write_all(request.as_bytes()).await;
    stream
}

async fn is_answered(address: SocketAddr, path: &str) -> bool {
    let mut stream = asking(address, path).await;
    let mut start = [0; 12];
    let answer = timeout(Duration::from_secs(5), stream.read_exact(&mut start)).await;
    matches!(answer, Ok(Ok(_))) && &start == b"HTTP/1.1 200"
}

#[tokio::test]
async fn a_probe_is_answered_however_many_keep_their_connections_open() {
    let (watching, address) = watching().await;
    let mut idle = Vec::new();
    for number in 0..200 {
        let path = if number % 2 == 0 { "/live" } else { "/metrics" };
        // Their answers are never read.
        idle.push(asking(address, path).await);
        idle.push(TcpStream::connect(address).await.unwrap());
        if number % 20 == 0 {
            assert!(is_answered(address, "/live").await, "after {} connections", idle.len());
        }
    }
    assert!(is_answered(address, "/ready").await);
    watching.end().await;
}

#[tokio::test]
async fn a_connection_that_asks_nothing_is_closed() {
    let (watching, address) = watching().await;
    let mut idle = asking(address, "/live").await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut answer = Vec::new();
    let read = async {
        // Until the end of the connection.
        idle.read_to_end(&mut answer).await.unwrap();
        silent.read_to_end(&mut Vec::new()).await.unwrap();
    };
    timeout(Duration::from_secs(60), read).await.expect("it is closed");
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    watching.end().await;
}

#[tokio::test]
async fn a_connection_whose_question_never_ends_is_closed() {
    let (watching, address) = watching().await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let trickle = tokio::spawn(async move {
        let _ = writing.write_all(b"GET /live HTTP/1.1\r\n").await;
        // Every header comes in time, and there is always one more.
        while writing.write_all(b"x: y\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(60), reading.read_to_end(&mut answer)).await;
    // However it ends: what is sent to a closed connection may reset it.
    let _ = read.expect("it is closed");
    assert_eq!(answer, b"", "it was no question");
    trickle.abort();
    watching.end().await;
}

#[tokio::test]
async fn several_questions_go_over_one_connection() {
    let (watching, address) = watching().await;
    let mut stream = asking(address, "/live").await;
    for _ in 0..3 {
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 200"));
        stream
            .write_all(b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
    }
    watching.end().await;
}
