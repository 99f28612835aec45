//! The service.

use std::sync::Arc;
use std::time::SystemTime;

use sendoff::store::{Command, Filter, OperateStore, Status};
use sendoff::{Error, ErrorKind, Result, Uuid};

use crate::filter::validate;
use crate::steer::{AT_ONCE, Progress};
use crate::{ListView, MessageView, RetryView, SummaryView, WrittenFilter};

/// The most that one page of a list holds.
pub const MOST_ROWS: usize = 1000;

/// Acts on an outbox in somebody's name.
#[derive(Clone)]
pub struct Operator {
    pub(crate) store: Arc<dyn OperateStore>,
    pub(crate) who: String,
}

impl Operator {
    /// An operator; `who` goes into the audit with every change.
    pub fn new(store: Arc<dyn OperateStore>, who: impl Into<String>) -> Self {
        Self { store, who: who.into() }
    }

    /// A command of theirs, which has one row in the audit however many batches it takes.
    pub(crate) fn command(&self) -> Command {
        Command::by(&self.who)
    }

    /// The filter that was written; ages in it count back from the database's time.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it fits nothing, and what the store says.
    pub async fn filter(&self, written: &WrittenFilter) -> Result<Filter> {
        // Asked only if it matters.
        let now = if written.has_ages() {
            self.store.now().await?
        } else {
            SystemTime::UNIX_EPOCH
        };
        written.as_of(now)
    }

    /// Messages that fit, oldest first; `offset` of them are passed over. A message that goes to several sinks is listed
    /// once for each of its legs.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter or limit that makes no sense, and what the store says.
    pub async fn list(&self, filter: &Filter, limit: usize, offset: usize) -> Result<ListView> {
        validate(filter)?;
        if limit == 0 || limit > MOST_ROWS {
            return Err(
                Error::new(ErrorKind::Invalid, format!("a limit of {limit} cannot be used"))
                    .next_step(format!("use 1 to {MOST_ROWS}, and an offset for the pages behind")),
            );
        }
        Ok(self.store.list(filter, limit, offset).await?.into())
    }

    /// One message with all its legs.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, and what the store says.
    pub async fn show(&self, id: Uuid) -> Result<MessageView> {
        MessageView::of_legs(self.store.find(id).await?).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no message {id}"))
                .because("it was never committed, or it was delivered and is not kept")
                .next_step("to keep delivered messages for a while, set a retention in [database]")
        })
    }

    /// The state of the outbox at a glance.
    ///
    /// # Errors
    /// What the store says.
    pub async fn summary(&self) -> Result<SummaryView> {
        Ok(self.store.summary().await?.into())
    }

    /// Dead letters that fit, as [`Operator::list`] gives them.
    ///
    /// # Errors
    /// As there; also when the filter asks for another status.
    pub async fn dead_list(&self, filter: &Filter, limit: usize, offset: usize) -> Result<ListView> {
        let mut dead = of_dead(filter)?;
        dead.status = Some(Status::Dead);
        self.list(&dead, limit, offset).await
    }

    /// One message with those of its legs that are dead.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none or it has no dead leg, and what the store says.
    pub async fn dead_show(&self, id: Uuid) -> Result<MessageView> {
        let mut message = self.show(id).await?;
        let status = message.status;
        message.legs.retain(|leg| leg.status == Status::Dead);
        if message.legs.is_empty() {
            return Err(
                Error::new(ErrorKind::NotFound, format!("message {id} is no dead letter"))
                    .because(format!("its status is {}", status.as_str()))
                    .next_step("show it as a message instead"),
            );
        }
        Ok(message)
    }

    /// Brings dead letters that fit back: due at once, with all their attempts, in order per key, in batches. Those that
    /// die while this is under way, for the first time or again, are left alone.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter that makes no sense, asks for another status, or is empty: to bring all of
    /// them back has to be said with [`Operator::dead_retry_all`]. And what the store says.
    pub async fn dead_retry(&self, filter: &Filter, progress: Progress<'_>) -> Result<RetryView> {
        let filter = of_dead(filter)?;
        if filter == Filter::default() {
            return Err(Error::new(ErrorKind::Invalid, "no dead letters are named")
                .because("an empty filter would bring back all of them")
                .next_step("give an id or a filter, or ask for all"));
        }
        validate(&filter)?;
        self.retry(&filter, progress).await
    }

    /// Brings every dead letter back.
    ///
    /// # Errors
    /// What the store says.
    pub async fn dead_retry_all(&self, progress: Progress<'_>) -> Result<RetryView> {
        self.retry(&Filter::default(), progress).await
    }

    async fn retry(&self, filter: &Filter, progress: Progress<'_>) -> Result<RetryView> {
        // What dies again meanwhile stays dead: otherwise this might never end beside a relay.
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
        tracing::info!(
            event = "dead_retried",
            who = self.who,
            retried,
            "dead letters were brought back"
        );
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
