//! The private servers: they start, lose their connections, come back on the same port with their data, and go.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test that is how it fails")]

use std::time::Duration;

use sendoff_testkit::servers::{Authority, Mosquitto, Nats, Options, RabbitMq, Redis};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn connect(port: u16) -> Option<TcpStream> {
    TcpStream::connect(("127.0.0.1", port)).await.ok()
}

/// Says something and reads what comes back within a moment.
async fn ask(port: u16, text: &str) -> String {
    let mut stream = connect(port).await.expect("the server accepts");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = timeout(Duration::from_secs(5), stream.read(&mut answer)).await;
    String::from_utf8_lossy(&answer[..read.expect("an answer").unwrap()]).into_owned()
}

#[tokio::test]
async fn a_killed_redis_comes_back_with_its_data_on_the_same_port() {
    let mut redis = Redis::start().await;
    let port = redis.port();
    assert_eq!(ask(port, "SET a 1\r\n").await, "+OK\r\n");
    redis.kill();
    assert!(connect(port).await.is_none());
    redis.restart().await;
    assert_eq!(redis.port(), port);
    assert_eq!(ask(port, "GET a\r\n").await, "$1\r\n1\r\n");
    redis.stop().await;
    assert!(connect(port).await.is_none());
}

#[tokio::test]
async fn a_paused_server_answers_when_it_is_resumed() {
    let redis = Redis::start().await;
    redis.pause();
    let mut stream = connect(redis.port()).await.expect("the kernel accepts for it");
    stream.write_all(b"PING\r\n").await.unwrap();
    assert!(timeout(Duration::from_millis(100), stream.read_u8()).await.is_err());
    redis.resume();
    assert_eq!(
        timeout(Duration::from_secs(5), stream.read_u8())
            .await
            .unwrap()
            .unwrap(),
        b'+'
    );
}

#[tokio::test]
async fn a_redis_with_a_password_and_tls_starts() {
    let authority = Authority::new();
    let options = Options {
        lines: vec!["requirepass hunter2".to_owned()],
        ..Options::tls(authority.certificate(&["localhost"]))
    };
    let redis = Redis::start_with(options).await;
    assert!(ask(redis.port(), "GET a\r\n").await.starts_with("-NOAUTH"));
    assert!(redis.tls_url().starts_with("rediss://localhost:"));
}

#[tokio::test]
async fn nats_has_jetstream_and_comes_back() {
    let mut nats = Nats::start().await;
    assert!(ask(nats.port(), "").await.contains("\"jetstream\":true"));
    nats.kill();
    nats.restart().await;
    assert!(ask(nats.port(), "").await.starts_with("INFO "));
    let certificate = Authority::new().certificate(&["localhost"]);
    let secure = Nats::start_with(Options::tls(certificate)).await;
    assert!(ask(secure.port(), "").await.contains("\"tls_required\":true"));
}

#[tokio::test]
async fn mosquitto_comes_back_and_speaks_tls() {
    let certificate = Authority::new().certificate(&["localhost"]);
    let mut mosquitto = Mosquitto::start_with(Options::tls(certificate)).await;
    mosquitto.kill();
    assert!(connect(mosquitto.port()).await.is_none());
    mosquitto.restart().await;
    assert!(mosquitto.tls_url().starts_with("mqtts://localhost:"));
}

#[tokio::test]
async fn a_rabbitmq_of_ones_own_obeys_rabbitmqctl_and_keeps_its_data() {
    let mut rabbit = RabbitMq::start().await;
    rabbit.ctl(&["add_vhost", "kept"]).await;
    rabbit.memory_alarm(true).await;
    assert!(rabbit.ctl(&["status"]).await.contains("Memory alarm"));
    rabbit.memory_alarm(false).await;
    assert!(!rabbit.ctl(&["status"]).await.contains("Memory alarm"));
    rabbit.kill();
    assert!(connect(rabbit.port()).await.is_none());
    rabbit.restart().await;
    assert!(rabbit.ctl(&["list_vhosts"]).await.contains("kept"));
}

#[tokio::test]
async fn the_shared_rabbitmq_obeys_rabbitmqctl() {
    let shared = RabbitMq::shared();
    assert!(shared.url().starts_with("amqp://guest:guest@127.0.0.1:"));
    assert!(shared.ctl(&["list_users"]).await.contains("guest"));
}
