//! The limit of the broker: a client that does nothing else sends the recorded bytes of a relay again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// A frame begins with type, channel and length, and ends with one more byte.
const FRAME_HEAD: usize = 7;
const METHOD: u8 = 1;
/// Class and method, as AMQP numbers them.
const PUBLISH: [u8; 4] = [0, 60, 0, 40];
const ACK: [u8; 4] = [0, 60, 0, 80];

/// A proxy between a relay and the broker that records what the relay sends.
pub(super) struct Recorder {
    /// Where the relay connects.
    pub(super) url: String,
    said: Arc<Mutex<Vec<Said>>>,
}

type Said = Arc<Mutex<Vec<u8>>>;

/// What a relay sent on the connection that it published on.
pub(super) struct Recording {
    broker: String,
    /// Login, declarations and so on: each waits for an answer.
    before: Vec<Vec<u8>>,
    publishes: Vec<u8>,
    count: u64,
}

impl Recorder {
    pub(super) async fn start(broker: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, own) = (address(broker)?, listener.local_addr()?.to_string());
        let said: Arc<Mutex<Vec<Said>>> = Arc::default();
        let all = Arc::clone(&said);
        let broker_address = address.clone();
        tokio::spawn(async move {
            while let Ok((relay, _)) = listener.accept().await {
                let Ok(broker) = TcpStream::connect(&broker_address).await else {
                    break;
                };
                let own = Said::default();
                lock(&all).push(Arc::clone(&own));
                let ((from_relay, to_relay), (from_broker, to_broker)) = (relay.into_split(), broker.into_split());
                tokio::spawn(copy(from_relay, to_broker, Some(own)));
                tokio::spawn(copy(from_broker, to_relay, None));
            }
        });
        Ok(Self {
            url: broker.replacen(&address, &own, 1),
            said,
        })
    }

    pub(super) fn end(self, broker: &str) -> Result<Recording> {
        let said = lock(&self.said);
        let longest = said.iter().max_by_key(|said| lock(said).len());
        let bytes = lock(longest.context("the relay did not connect")?).clone();
        Recording::of(address(broker)?, &bytes)
    }
}

impl Recording {
    fn of(broker: String, bytes: &[u8]) -> Result<Self> {
        // The first eight bytes name the protocol.
        let (hello, mut rest) = bytes.split_at_checked(8).context("the relay sent nothing")?;
        let mut frames = vec![hello];
        let mut publishes: BTreeMap<&[u8], (usize, u64)> = BTreeMap::new();
        while let Some((frame, behind)) = frame(rest) {
            if is(frame, PUBLISH) {
                let (_, count) = publishes.entry(&frame[1..3]).or_insert((frames.len(), 0));
                *count += 1;
            }
            frames.push(frame);
            rest = behind;
        }
        // Another channel may have a few, which check that an exchange exists.
        let (first, count) = publishes
            .into_values()
            .max_by_key(|(_, count)| *count)
            .context("the relay published nothing")?;
        Ok(Self {
            broker,
            before: frames[..first].iter().map(|frame| frame.to_vec()).collect(),
            publishes: frames[first..].concat(),
            count,
        })
    }

    /// Tasks per second until all of them are confirmed.
    pub(super) async fn replay(&self) -> Result<f64> {
        let (reading, mut writing) = TcpStream::connect(&self.broker).await?.into_split();
        let confirmed = tokio::spawn(confirmed(reading, self.count));
        for frame in &self.before {
            writing.write_all(frame).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let begun = Instant::now();
        writing.write_all(&self.publishes).await?;
        let ended = tokio::time::timeout(Duration::from_secs(60), confirmed).await???;
        Ok(self.count as f64 / (ended - begun).as_secs_f64())
    }
}

/// When the last of `count` tasks was confirmed.
async fn confirmed(mut reading: OwnedReadHalf, count: u64) -> Result<Instant> {
    let mut bytes = Vec::new();
    loop {
        let mut used = 0;
        while let Some((frame, _)) = frame(&bytes[used..]) {
            used += frame.len();
            let tag = frame.get(FRAME_HEAD + 4..FRAME_HEAD + 12).filter(|_| is(frame, ACK));
            if tag.is_some_and(|tag| u64::from_be_bytes(tag.try_into().unwrap_or_default()) >= count) {
                return Ok(Instant::now());
            }
        }
        bytes.drain(..used);
        ensure!(
            reading.read_buf(&mut bytes).await? > 0,
            "RabbitMQ closed the connection"
        );
    }
}

/// The first complete frame, and the bytes after it.
fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = bytes.get(3..FRAME_HEAD)?.try_into().ok().map(u32::from_be_bytes)?;
    bytes.split_at_checked(FRAME_HEAD + usize::try_from(length).ok()? + 1)
}

fn is(frame: &[u8], method: [u8; 4]) -> bool {
    frame[0] == METHOD && frame[FRAME_HEAD..].starts_with(&method)
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, said: Option<Said>) -> std::io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        if let Some(said) = &said {
            lock(said).extend_from_slice(&bytes[..read]);
        }
        to.write_all(&bytes[..read]).await?;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Host and port of a URL.
fn address(broker: &str) -> Result<String> {
    let (_, behind) = broker.rsplit_once('@').context("no host in the broker's URL")?;
    Ok(behind.split('/').next().unwrap_or(behind).to_owned())
}
