//! What a bulk command acts on: everything that a filter matches, or one group of failures.

use sendoff::store::{Filter, RetryOptions, Stored};
use sendoff::{Error, ErrorKind, Result, Uuid};

use crate::failures::{FailureGroup, Walk};
use crate::list::ListOrder;
use crate::operator::{Operator, of_dead};
use crate::steer::Progress;

/// What a bulk command acts on.
pub struct Selected {
    operator: Operator,
    filter: Filter,
    group: Option<FailureGroup>,
    all: bool,
}

/// An action on dead letters of a group.
#[derive(Clone, Copy)]
enum Act {
    Retry,
    Discard,
}

impl Operator {
    /// Selects what matches the filter and is in the group, if one is given. With `all`, an empty filter selects
    /// everything.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an unknown group, and errors of the store.
    pub async fn selected(&self, filter: Filter, group: Option<&str>, all: bool) -> Result<Selected> {
        let group = match group {
            Some(id) => Some(self.failure_group(id).await?),
            None => None,
        };
        let operator = self.clone();
        Ok(Selected {
            operator,
            filter,
            group,
            all,
        })
    }
}

impl Selected {
    /// The number of selected dead letters.
    ///
    /// # Errors
    /// As [`Operator::dead_count`]; also for a group of deliveries in retry.
    pub async fn dead_count(&self) -> Result<u64> {
        match self.dead_group()? {
            Some(group) => self.count_of(group).await,
            None => self.operator.dead_count(&self.filter).await,
        }
    }

    /// Retries the selected dead letters.
    ///
    /// # Errors
    /// As [`Operator::dead_retry`]; also for a group of deliveries in retry.
    pub async fn dead_retry(&self, progress: Progress<'_>) -> Result<u64> {
        match self.dead_group()? {
            Some(group) => self.act_on_dead(group, Act::Retry, progress).await,
            None if self.all => Ok(self.operator.dead_retry_all(progress).await?.retried),
            None => Ok(self.operator.dead_retry(&self.filter, progress).await?.retried),
        }
    }

    /// Deletes the selected dead letters.
    ///
    /// # Errors
    /// As [`Operator::dead_discard`]; also for a group of deliveries in retry.
    pub async fn dead_discard(&self, progress: Progress<'_>) -> Result<u64> {
        match self.dead_group()? {
            Some(group) => self.act_on_dead(group, Act::Discard, progress).await,
            None => self.operator.dead_discard(&self.filter, progress).await,
        }
    }

    /// The number of waiting deliveries that [`Selected::retry`] would make due.
    ///
    /// # Errors
    /// As [`Operator::retry_waiting_count`]; also for a group of dead letters.
    pub async fn retry_count(&self, how: RetryOptions) -> Result<u64> {
        match self.waiting_group()? {
            Some(group) => {
                let mut count = 0;
                let mut walk = self.walk(group);
                while let Some(rows) = walk.next().await? {
                    let filter = self.of_ids(group, members(group, &rows));
                    if !filter.ids.is_empty() {
                        count += self.operator.store.retry_waiting_count(&filter, how).await?;
                    }
                }
                Ok(count)
            }
            None => self.operator.retry_waiting_count(&self.filter, how).await,
        }
    }

    /// Makes the selected waiting deliveries due now.
    ///
    /// # Errors
    /// As [`Operator::retry_waiting`]; also for a group of dead letters.
    pub async fn retry(&self, how: RetryOptions, progress: Progress<'_>) -> Result<u64> {
        let Some(group) = self.waiting_group()? else {
            return self.operator.retry_waiting(&self.filter, how, progress).await;
        };
        let mut retried = 0;
        let mut walk = self.walk(group);
        while let Some(rows) = walk.next().await? {
            let filter = self.of_ids(group, members(group, &rows));
            if filter.ids.is_empty() {
                continue;
            }
            let mut command = self.operator.command();
            let limit = usize::MAX;
            let batch = self
                .operator
                .store
                .retry_waiting(&filter, how, None, limit, &mut command)
                .await?;
            retried += batch.due;
            progress(retried);
        }
        tracing::info!(
            event = "waiting_retried",
            who = self.operator.who,
            retried,
            reset = how.reset,
            "waiting deliveries are due now"
        );
        Ok(retried)
    }

    async fn count_of(&self, group: &FailureGroup) -> Result<u64> {
        let mut count = 0;
        let mut walk = self.walk(group);
        while let Some(rows) = walk.next().await? {
            count += members(group, &rows).count() as u64;
        }
        Ok(count)
    }

    /// In batches, each with a row in the audit, which names its messages.
    async fn act_on_dead(&self, group: &FailureGroup, act: Act, progress: Progress<'_>) -> Result<u64> {
        let until = Some(self.operator.store.now().await?);
        let mut done = 0;
        let mut walk = self.walk(group);
        while let Some(rows) = walk.next().await? {
            let filter = self.of_ids(group, members(group, &rows));
            if filter.ids.is_empty() {
                continue;
            }
            let filter = of_dead(&filter)?;
            let (store, mut command, limit) = (&self.operator.store, self.operator.command(), usize::MAX);
            done += match act {
                Act::Retry => store.retry_dead(&filter, until, limit, &mut command).await?,
                Act::Discard => store.discard_dead(&filter, until, limit, &mut command).await?,
            };
            progress(done);
        }
        let who = &self.operator.who;
        match act {
            Act::Retry => tracing::info!(event = "dead_retried", who, retried = done, "dead letters retried"),
            Act::Discard => tracing::info!(
                event = "dead_discarded",
                who,
                discarded = done,
                "dead letters discarded"
            ),
        }
        Ok(done)
    }

    /// Oldest first: what is added behind is read, too, and what is removed changes nothing.
    fn walk(&self, group: &FailureGroup) -> Walk<'_> {
        let order = ListOrder {
            oldest_first: true,
            ..ListOrder::default()
        };
        Walk::new(&self.operator, group.filter(&self.filter), order)
    }

    fn of_ids(&self, group: &FailureGroup, ids: impl Iterator<Item = Uuid>) -> Filter {
        Filter {
            ids: ids.collect(),
            group: Some(group.id()),
            ..group.filter(&self.filter)
        }
    }

    fn dead_group(&self) -> Result<Option<&FailureGroup>> {
        match &self.group {
            Some(group) if !group.dead => Err(of_other(
                group,
                "deliveries in retry, not dead letters",
                "sendoff retry",
            )),
            group => Ok(group.as_ref()),
        }
    }

    fn waiting_group(&self) -> Result<Option<&FailureGroup>> {
        match &self.group {
            Some(group) if group.dead => Err(of_other(group, "dead letters", "sendoff dead retry")),
            group => Ok(group.as_ref()),
        }
    }
}

/// Those of the rows that are in the group, by the same rule that made it.
fn members<'a>(group: &'a FailureGroup, rows: &'a [Stored]) -> impl Iterator<Item = Uuid> + 'a {
    let is_member = |row: &&Stored| FailureGroup::of(row).is_some_and(|of| of == *group);
    rows.iter().filter(is_member).filter_map(|row| row.id)
}

fn of_other(group: &FailureGroup, what: &str, command: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("the group {} has {what}", group.id()))
        .next_step(format!("use `{command} --group {}`", group.id()))
}
