//! One connection with its channels, used by one batch at a time.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use lapin::options::ConfirmSelectOptions;
use lapin::types::ShortString;
use lapin::{Channel, Connection, Event};
use tokio::time::{Instant, timeout};

use super::connect::Connector;
use super::socket::Switch;
use crate::error::{self, Failure};

/// How long a connection may take to close.
const CLOSE: Duration = Duration::from_secs(1);

/// A connection. Every batch has its own, so that confirms and errors of two batches cannot mix: the client attaches a
/// returned message to the next confirm, and messages that it has queued for a channel that the broker has closed end
/// the whole connection.
pub(super) struct Link {
    pub(super) connection: Connection,
    /// In confirm mode.
    pub(super) channel: Channel,
    /// In transaction mode; see [`super::probe`].
    pub(super) prober: Option<Channel>,
    /// Exchanges that exist, and that the user may write to.
    pub(super) known: HashSet<ShortString>,
    pub(super) last_confirm: Instant,
    /// Whether an earlier batch used it.
    pub(super) used: bool,
    events: Pin<Box<dyn Stream<Item = Event> + Send>>,
    switch: Arc<Switch>,
}

impl Link {
    pub(super) async fn open(
        connection: Connection,
        switch: Arc<Switch>,
        connector: &Connector,
    ) -> Result<Self, Failure> {
        // The client drops events without a listener.
        let events = Box::pin(connection.events_listener());
        let opening = async {
            let channel = connection.create_channel().await?;
            connector.topology.queues(&channel).await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok(channel)
        };
        let channel = opening
            .await
            .map_err(|error: lapin::Error| match error::channel_error(&error) {
                Some(refusal) => Failure::misplaced(refusal.clone()),
                None => Failure::lost(&error),
            })?;
        Ok(Self {
            connection,
            channel,
            prober: None,
            known: HashSet::new(),
            last_confirm: Instant::now(),
            used: false,
            events,
            switch,
        })
    }

    pub(super) fn is_alive(&self) -> bool {
        self.connection.status().connected() && self.channel.status().connected()
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.connection.status().connected() && self.connection.status().blocked()
    }

    pub(super) fn frame_max(&self) -> usize {
        self.connection.configuration().frame_max() as usize
    }

    /// Returns when the broker blocks the connection, with its reason.
    pub(super) async fn blocked(&mut self) -> String {
        while let Some(event) = self.events.next().await {
            if let Event::ConnectionBlocked(reason) = event {
                return reason;
            }
        }
        // The connection has ended, which also ends the wait for confirms.
        std::future::pending().await
    }

    /// Returns when the broker no longer blocks the connection.
    pub(super) async fn unblocked(&mut self) {
        while self.is_blocked() {
            if self.events.next().await.is_none() {
                return;
            }
        }
    }

    /// Why a channel was closed. Later errors of the client say only that it is closed.
    pub(super) async fn cause(&mut self, error: lapin::Error) -> lapin::Error {
        if !matches!(error.kind(), lapin::ErrorKind::InvalidChannelState(..)) {
            return error;
        }
        let told = async {
            while let Some(event) = self.events.next().await {
                if let Event::Error(cause) = event {
                    return Some(cause);
                }
            }
            None
        };
        timeout(CLOSE, told).await.ok().flatten().unwrap_or(error)
    }

    /// Closes it immediately. Messages that are not written to the socket yet are never sent.
    pub(super) fn kill(&self) {
        self.switch.off();
    }

    /// Closes it with the protocol's handshake if that is quick, and waits until its thread has ended.
    pub(super) async fn close(self) {
        let Self {
            connection,
            channel,
            prober,
            switch,
            ..
        } = self;
        if !connection.status().blocked() {
            let _ = timeout(CLOSE, connection.close(200, "OK".into())).await;
        }
        switch.off();
        drop((channel, prober));
        let _ = timeout(CLOSE, tokio::task::spawn_blocking(move || connection.run())).await;
    }
}
