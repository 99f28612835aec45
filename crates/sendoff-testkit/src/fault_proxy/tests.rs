//! The proxy on a server that answers each byte with the same.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::*;

const MOMENT: Duration = Duration::from_millis(50);

/// A server that echoes, and the proxy in front of it.
async fn echo() -> FaultProxy {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    FaultProxy::start(port).await
}

async fn connect(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await.unwrap()
}

async fn read_exactly(stream: &mut TcpStream, count: usize) -> String {
    let mut read = vec![0; count];
    timeout(Duration::from_secs(5), stream.read_exact(&mut read))
        .await
        .unwrap()
        .unwrap();
    String::from_utf8(read).unwrap()
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    // The end may be a reset: what came before it counts.
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut read))
        .await
        .unwrap();
    String::from_utf8(read).unwrap()
}

async fn is_silent(stream: &mut TcpStream) -> bool {
    timeout(MOMENT, stream.read_u8()).await.is_err()
}

#[tokio::test]
async fn bytes_pass_both_ways_and_connections_are_counted() {
    let proxy = echo().await;
    for connection in 1..=2 {
        let mut client = connect(&proxy).await;
        client.write_all(b"hello").await.unwrap();
        assert_eq!(read_exactly(&mut client, 5).await, "hello");
        assert_eq!((proxy.connections(), proxy.requested()), (connection, 5 * connection));
    }
}

#[tokio::test]
async fn held_answers_come_later_and_none_is_missing() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.set(Fault::HoldAnswers);
    client.write_all(b"one").await.unwrap();
    proxy.wait_until_answered(2).await;
    assert!(is_silent(&mut client).await);
    proxy.set(Fault::Pass);
    assert_eq!(read_exactly(&mut client, 3).await, "one");
}

#[tokio::test]
async fn lost_answers_never_come_although_the_requests_arrived() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.set(Fault::LoseAnswers);
    client.write_all(b"one").await.unwrap();
    proxy.wait_until_answered(2).await;
    assert!(is_silent(&mut client).await);
    proxy.set(Fault::Pass);
    // Anything else would be an answer with a hole in it.
    assert_eq!(read_to_end(&mut client).await, "");
    let mut next = connect(&proxy).await;
    next.write_all(b"two").await.unwrap();
    assert_eq!(read_exactly(&mut next, 3).await, "two");
}

#[tokio::test]
async fn a_cut_ends_every_connection_and_welcomes_the_next() {
    let proxy = echo().await;
    let (mut one, mut other) = (connect(&proxy).await, connect(&proxy).await);
    one.write_all(b"a").await.unwrap();
    other.write_all(b"b").await.unwrap();
    assert_eq!(
        read_exactly(&mut one, 1).await + &read_exactly(&mut other, 1).await,
        "ab"
    );
    proxy.cut();
    assert_eq!(read_to_end(&mut one).await + &read_to_end(&mut other).await, "");
    let mut next = connect(&proxy).await;
    next.write_all(b"two").await.unwrap();
    assert_eq!(read_exactly(&mut next, 3).await, "two");
}

#[tokio::test]
async fn requests_are_cut_at_the_very_byte() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.cut_after_requests(4);
    client.write_all(b"123456").await.unwrap();
    read_to_end(&mut client).await;
    assert_eq!(proxy.requested(), 6);
    let mut next = connect(&proxy).await;
    next.write_all(b"123456").await.unwrap();
    assert_eq!(read_exactly(&mut next, 6).await, "123456");
}

#[tokio::test]
async fn answers_are_cut_at_the_very_byte() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.cut_after_answers(4);
    client.write_all(b"123456").await.unwrap();
    assert_eq!(read_to_end(&mut client).await, "1234");
}

#[tokio::test]
async fn a_limit_that_ends_with_a_message_cuts_the_next() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.cut_after_answers(3);
    client.write_all(b"one").await.unwrap();
    assert_eq!(read_exactly(&mut client, 3).await, "one");
    client.write_all(b"two").await.unwrap();
    assert_eq!(read_to_end(&mut client).await, "");
}

#[tokio::test]
async fn a_delay_is_kept() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.set(Fault::Delay(MOMENT));
    let began = Instant::now();
    client.write_all(b"one").await.unwrap();
    assert_eq!(read_exactly(&mut client, 3).await, "one");
    assert!(began.elapsed() >= MOMENT * 2);
}

#[tokio::test]
async fn a_refusing_proxy_closes_old_and_new_connections() {
    let proxy = echo().await;
    let mut old = connect(&proxy).await;
    old.write_all(b"a").await.unwrap();
    assert_eq!(read_exactly(&mut old, 1).await, "a");
    proxy.set(Fault::Refuse);
    assert_eq!(read_to_end(&mut old).await, "");
    let mut new = connect(&proxy).await;
    assert_eq!(read_to_end(&mut new).await, "");
}

#[tokio::test]
async fn new_connections_go_where_it_leads_and_old_ones_stay() {
    let proxy = echo().await;
    let mut old = connect(&proxy).await;
    old.write_all(b"a").await.unwrap();
    assert_eq!(read_exactly(&mut old, 1).await, "a");
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    proxy.lead_to(other.local_addr().unwrap().port());
    let mut new = connect(&proxy).await;
    let (mut server, _) = other.accept().await.unwrap();
    server.write_all(b"other").await.unwrap();
    assert_eq!(read_exactly(&mut new, 5).await, "other");
    old.write_all(b"b").await.unwrap();
    assert_eq!(read_exactly(&mut old, 1).await, "b");
}

#[tokio::test]
async fn a_frozen_wire_carries_nothing_and_hides_the_end_of_either_side() {
    let proxy = echo().await;
    let (mut stays, mut goes) = (connect(&proxy).await, connect(&proxy).await);
    for client in [&mut stays, &mut goes] {
        client.write_all(b"a").await.unwrap();
        assert_eq!(read_exactly(client, 1).await, "a");
    }
    // An answer that is held already stays where it is.
    proxy.set(Fault::HoldAnswers);
    let answered = proxy.answered();
    stays.write_all(b"b").await.unwrap();
    proxy.wait_until_answered(answered).await;
    proxy.set(Fault::Freeze);
    let (requested, answered) = (proxy.requested(), proxy.answered());
    stays.write_all(b"c").await.unwrap();
    let began = Instant::now();
    while proxy.requested() == requested {
        assert!(began.elapsed() < Duration::from_secs(5), "nothing arrives at the proxy");
        sleep(Duration::from_millis(1)).await;
    }
    drop(goes);
    assert!(is_silent(&mut stays).await);
    assert_eq!((proxy.answered(), proxy.open()), (answered, 2));

    proxy.set(Fault::Pass);
    assert_eq!(read_exactly(&mut stays, 2).await, "bc");
    let began = Instant::now();
    while proxy.open() > 1 {
        assert!(began.elapsed() < Duration::from_secs(5), "the end is still hidden");
        sleep(Duration::from_millis(1)).await;
    }
}
