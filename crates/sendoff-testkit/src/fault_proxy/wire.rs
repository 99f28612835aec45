//! The bytes of the connections, and what happens to them on the way.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::Fault;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    ToServer,
    ToClient,
}

/// What all connections of a proxy share.
pub(super) struct Wire {
    state: watch::Sender<State>,
    connections: AtomicU64,
    open: AtomicU64,
    arrived: [AtomicU64; 2],
    /// How many bytes may still pass, by direction; `u64::MAX` is no limit.
    left: [AtomicU64; 2],
}

#[derive(Clone, Copy)]
struct State {
    fault: Fault,
    /// Grows with every cut.
    cuts: u64,
}

/// Why a connection ends.
struct Over;

impl Wire {
    pub(super) fn new() -> Self {
        Self {
            state: watch::Sender::new(State {
                fault: Fault::Pass,
                cuts: 0,
            }),
            connections: AtomicU64::new(0),
            open: AtomicU64::new(0),
            arrived: [AtomicU64::new(0), AtomicU64::new(0)],
            left: [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)],
        }
    }

    pub(super) fn fault(&self) -> Fault {
        self.state.borrow().fault
    }

    pub(super) fn set(&self, fault: Fault) {
        self.state.send_modify(|state| {
            state.fault = fault;
            if fault == Fault::Refuse {
                state.cuts += 1;
            }
        });
    }

    pub(super) fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    pub(super) fn limit(&self, direction: Direction, bytes: u64) {
        self.left[direction as usize].store(bytes, Ordering::SeqCst);
    }

    pub(super) fn count_connection(&self) {
        self.connections.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    pub(super) fn open(&self) -> u64 {
        self.open.load(Ordering::SeqCst)
    }

    pub(super) fn arrived(&self, direction: Direction) -> u64 {
        self.arrived[direction as usize].load(Ordering::SeqCst)
    }

    /// Carries bytes both ways until one side ends or the connection is cut.
    pub(super) async fn carry(&self, mut client: TcpStream, mut server: TcpStream) {
        // Small messages one by one are what a sink's tests send.
        let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let mut state = self.state.subscribe();
        let cuts = state.borrow_and_update().cuts;
        self.open.fetch_add(1, Ordering::SeqCst);
        let cut = async {
            // An error means that the proxy is gone.
            let _ = state.wait_for(|state| state.cuts != cuts).await;
        };
        tokio::select! {
            () = cut => {}
            _ = self.pump(Direction::ToServer, from_client, to_server) => {}
            _ = self.pump(Direction::ToClient, from_server, to_client) => {}
        }
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    async fn pump(
        &self,
        direction: Direction,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> Result<(), Over> {
        let mut state = self.state.subscribe();
        let mut buffer = vec![0; 64 * 1024];
        let mut has_lost = false;
        loop {
            let read = tokio::select! {
                read = from.read(&mut buffer) => read.unwrap_or(0),
                // Ends the fault for a connection that has lost something, also when nothing more comes.
                changed = state.wait_for(|state| has_lost && state.fault != Fault::LoseAnswers) => {
                    drop(changed);
                    return Err(Over);
                }
            };
            if read == 0 {
                // The other side is not told while nothing passes.
                let _ = state.wait_for(|state| state.fault != Fault::Freeze).await;
                return Err(Over);
            }
            self.arrived[direction as usize].fetch_add(read as u64, Ordering::SeqCst);
            let released = state.wait_for(|state| !holds(state.fault, direction)).await;
            let fault = released.map(|state| state.fault).map_err(|_| Over)?;
            match (fault, direction) {
                (Fault::LoseAnswers, Direction::ToClient) => {
                    has_lost = true;
                    continue;
                }
                (Fault::Delay(delay), _) => tokio::time::sleep(delay).await,
                // What was under way when connections were closed must not slip through.
                (Fault::Refuse, _) => return Err(Over),
                (Fault::Pass | Fault::HoldAnswers | Fault::LoseAnswers | Fault::Freeze, _) => {}
            }
            if has_lost {
                return Err(Over);
            }
            let passes = self.take(direction, read as u64);
            let all = passes == read as u64;
            let passed = to.write_all(&buffer[..usize::try_from(passes).unwrap_or(read)]).await;
            if passed.is_err() || !all {
                // What has passed must arrive before the end does.
                let _ = to.flush().await;
                return Err(Over);
            }
        }
    }

    /// How many of these bytes may pass. A limit that is reached is gone: it cuts one connection.
    fn take(&self, direction: Direction, wanted: u64) -> u64 {
        let left = &self.left[direction as usize];
        let mut granted = wanted;
        let _ = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
            u64::MAX => {
                granted = wanted;
                None
            }
            left if left > wanted => {
                granted = wanted;
                Some(left - wanted)
            }
            left => {
                // At the limit exactly, the cut comes with the next byte: this one may be the last there is.
                granted = left.min(wanted);
                Some(if left == wanted { 0 } else { u64::MAX })
            }
        });
        granted
    }
}

/// Whether bytes wait here.
fn holds(fault: Fault, direction: Direction) -> bool {
    match fault {
        Fault::Freeze => true,
        Fault::HoldAnswers => direction == Direction::ToClient,
        Fault::Pass | Fault::LoseAnswers | Fault::Delay(_) | Fault::Refuse => false,
    }
}
