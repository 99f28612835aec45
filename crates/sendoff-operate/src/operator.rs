//! The service: lists, and retries of dead letters.

use std::sync::Arc;
use std::time::SystemTime;

use sendoff::store::{Command, Filter, OperateStore, Routes, Status};
use sendoff::{Error, ErrorKind, Result, Uuid};

use crate::filter::validate;
use crate::steer::{AT_ONCE, Progress};
use crate::{MessageView, RetryView, SummaryView, WrittenFilter};

/// Lists and changes messages of an outbox for an operator.
#[derive(Clone)]
pub struct Operator {
    pub(crate) store: Arc<dyn OperateStore>,
    pub(crate) who: String,
}

impl Operator {
    /// Creates the service. Every change is recorded in the audit with the name `who`.
    pub fn new(store: Arc<dyn OperateStore>, who: impl Into<String>) -> Self {
        Self { store, who: who.into() }
    }

    /// A command of this operator. It has one row in the audit, regardless of the number of batches.
    pub(crate) fn command(&self) -> Command {
        Command::by(&self.who)
    }

    /// The time of the database's clock.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn now(&self) -> Result<SystemTime> {
        self.store.now().await
    }

    /// The sinks of the routes that running relays have published.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn routed_sinks(&self) -> Result<Vec<String>> {
        let routes = self.store.published_routes().await?;
        let sinks = routes.iter().flat_map(|routes| Routes::from_text(routes).sinks());
        Ok(sinks.collect())
    }

    /// Resolves a written filter; ages in it count back from the database's time.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when nothing can match it, and errors of the store.
    pub async fn filter(&self, written: &WrittenFilter) -> Result<Filter> {
        // The time is read only if it matters.
        let now = if written.has_ages() {
            self.store.now().await?
        } else {
            SystemTime::UNIX_EPOCH
        };
        written.as_of(now)
    }

    /// The message with this id, with all its deliveries.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, and errors of the store.
    pub async fn show(&self, id: Uuid) -> Result<MessageView> {
        MessageView::of_deliveries(self.store.find(id).await?).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no message {id}"))
                .because("the message was never committed, or it was delivered and is not kept")
                .next_step("check the id; to keep delivered messages for a while, set `retention` in [database]")
        })
    }

    /// The number of messages and deliveries in each state.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn summary(&self) -> Result<SummaryView> {
        Ok(self.store.summary().await?.into())
    }

    /// The message with this id, with its dead deliveries.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none or it has no dead delivery, and errors of the store.
    pub async fn dead_show(&self, id: Uuid) -> Result<MessageView> {
        let mut message = self.show(id).await?;
        let status = message.status;
        message.deliveries.retain(|sink| sink.status == Status::Dead);
        if message.deliveries.is_empty() {
            return Err(
                Error::new(ErrorKind::NotFound, format!("message {id} is not a dead letter"))
                    .because(format!("the message exists, and its status is {}", status.as_str()))
                    .next_step(format!("run `sendoff show {id}`")),
            );
        }
        Ok(message)
    }

    /// Retries dead letters that match: due now, attempts reset to 0, in order per key, in batches. Messages that die
    /// while this runs are not retried.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter that is invalid, asks for another status, or is empty: to retry all of
    /// them, use [`Operator::dead_retry_all`]. And errors of the store.
    pub async fn dead_retry(&self, filter: &Filter, progress: Progress<'_>) -> Result<RetryView> {
        let filter = of_dead(filter)?;
        if filter == Filter::default() {
            return Err(Error::new(ErrorKind::Invalid, "no dead letters are selected")
                .because("an empty filter would retry all dead letters")
                .next_step("give an id or a filter, or ask for all"));
        }
        validate(&filter)?;
        self.retry(&filter, progress).await
    }

    /// Retries every dead letter.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn dead_retry_all(&self, progress: Progress<'_>) -> Result<RetryView> {
        self.retry(&Filter::default(), progress).await
    }

    async fn retry(&self, filter: &Filter, progress: Progress<'_>) -> Result<RetryView> {
        // Dead letters that die again meanwhile stay dead: otherwise this might never end while a relay runs.
        let until = Some(self.store.now().await?);
        let (mut retried, mut command) = (0, self.command());
        loop {
            let step = self.store.retry_dead(filter, until, AT_ONCE, &mut command).await?;
            retried += step;
            progress(retried);
            if step < AT_ONCE as u64 {
                break;
            }
        }
        tracing::info!(event = "dead_retried", who = self.who, retried, "dead letters retried");
        Ok(RetryView { retried })
    }
}

/// The filter without its status, which is dead or not given.
pub(crate) fn of_dead(filter: &Filter) -> Result<Filter> {
    match filter.status {
        None | Some(Status::Dead) => Ok(Filter {
            status: None,
            ..filter.clone()
        }),
        Some(other) => Err(Error::new(
            ErrorKind::Invalid,
            format!("dead letters do not have the status {}", other.as_str()),
        )
        .next_step("leave the status out")),
    }
}
