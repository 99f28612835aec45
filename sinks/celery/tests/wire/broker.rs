//! A broker that accepts everything, and records the frames.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const TX_SELECT: [u8; 4] = [0, 90, 0, 10];

/// A frame: its type and its content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    Method(Vec<u8>),
    Header(Vec<u8>),
    Body(Vec<u8>),
}

/// Listens until the test's runtime ends.
pub(crate) struct YesBroker {
    port: u16,
    frames: Arc<Mutex<Vec<Frame>>>,
}

impl YesBroker {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let frames = Arc::new(Mutex::new(Vec::new()));
        let kept = frames.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, kept.clone()));
            }
        });
        Self { port, frames }
    }

    pub(crate) fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port)
    }

    /// The frames since the last call.
    pub(crate) fn take(&self) -> Vec<Frame> {
        std::mem::take(&mut self.frames.lock().unwrap())
    }
}

async fn serve(stream: TcpStream, kept: Arc<Mutex<Vec<Frame>>>) {
    let (mut from, mut to) = stream.into_split();
    let mut greeting = [0; 8];
    from.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"AMQP\x00\x00\x09\x01");
    // connection.start: version 0.9, no properties, the login mechanisms and the locales.
    let start = [
        &[0, 10, 0, 10, 0, 9, 0, 0, 0, 0][..],
        &[0, 0, 0, 5],
        b"PLAIN",
        &[0, 0, 0, 5],
        b"en_US",
    ];
    answer(&mut to, 0, &start.concat()).await;
    let (mut published, mut missing) = (0_u64, 0);
    // The sink checks an exchange in a transaction and rolls it back: nothing is published there.
    let mut asking = HashSet::new();
    while let Some((kind, channel, payload)) = frame(&mut from).await {
        if kind == METHOD && payload.starts_with(&TX_SELECT) {
            asking.insert(channel);
        }
        if asking.contains(&channel) {
            if let Some(yes) = (kind == METHOD).then(|| yes(&payload)).flatten() {
                answer(&mut to, channel, &yes).await;
            }
            continue;
        }
        match kind {
            METHOD => {
                kept.lock().unwrap().push(Frame::Method(payload.clone()));
                if let Some(yes) = yes(&payload) {
                    answer(&mut to, channel, &yes).await;
                }
                continue;
            }
            HEADER => {
                missing = u64::from_be_bytes(payload[4..12].try_into().unwrap());
                kept.lock().unwrap().push(Frame::Header(payload));
            }
            BODY => {
                missing -= payload.len() as u64;
                kept.lock().unwrap().push(Frame::Body(payload));
            }
            // A heartbeat.
            _ => continue,
        }
        if missing == 0 {
            published += 1;
            let ack = [&[0, 60, 0, 80][..], &published.to_be_bytes(), &[0]].concat();
            answer(&mut to, channel, &ack).await;
        }
    }
}

/// The answer to a method, if it has one.
fn yes(payload: &[u8]) -> Option<Vec<u8>> {
    let method = |class: u8, method: u8, rest: &[u8]| Some([&[0, class, 0, method], rest].concat());
    match (payload[1], payload[3]) {
        // connection.start-ok: connection.tune, with channels, the size of frames, and no heartbeat.
        (10, 11) => method(10, 30, &[0x07, 0xff, 0, 2, 0, 0, 0, 0]),
        (10, 40) => method(10, 41, &[0]),
        (10, 50) => method(10, 51, &[]),
        (20, 10) => method(20, 11, &[0; 4]),
        (20, 40) => method(20, 41, &[]),
        (40, 10) => method(40, 11, &[]),
        // queue.declare-ok repeats the name, and counts messages and consumers.
        (50, 10) => {
            let name = &payload[6..7 + usize::from(payload[6])];
            method(50, 11, &[name, &[0; 8]].concat())
        }
        (50, 20) => method(50, 21, &[]),
        (85, 10) => method(85, 11, &[]),
        // tx.select and tx.rollback.
        (90, 10) => method(90, 11, &[]),
        (90, 30) => method(90, 31, &[]),
        _ => None,
    }
}

async fn frame(from: &mut OwnedReadHalf) -> Option<(u8, u16, Vec<u8>)> {
    let mut head = [0; 7];
    from.read_exact(&mut head).await.ok()?;
    let size = u32::from_be_bytes(head[3..].try_into().unwrap());
    let mut rest = vec![0; size as usize + 1];
    from.read_exact(&mut rest).await.ok()?;
    assert_eq!(rest.pop(), Some(0xce), "the end of a frame");
    Some((head[0], u16::from_be_bytes([head[1], head[2]]), rest))
}

async fn answer(to: &mut OwnedWriteHalf, channel: u16, payload: &[u8]) {
    let size = u32::try_from(payload.len()).unwrap();
    let frame = [
        &[METHOD][..],
        &channel.to_be_bytes(),
        &size.to_be_bytes(),
        payload,
        &[0xce],
    ]
    .concat();
    // The client may have closed the connection.
    let _ = to.write_all(&frame).await;
}
