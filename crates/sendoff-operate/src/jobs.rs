//! Jobs: operators list them, and retry or discard failed ones.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use sendoff::envelope::rfc3339;
use sendoff::store::{Command, Filter, JobState, StoredJob, WorkStore};
use sendoff::{Error, ErrorKind, Result, Uuid};

use crate::filter::validate;
use crate::list::{Cursor, Key, ListOrder, checked_limit, fingerprint};
use crate::steer::{AT_ONCE, Progress};
use crate::view::{JobView, PageView};
use crate::written::WrittenFilter;

/// How long one page searches for jobs.
const LONGEST: Duration = Duration::from_millis(240);

/// Reads the jobs of an outbox, and retries or discards failed ones for an operator.
#[derive(Clone)]
pub struct JobOperator {
    store: Arc<dyn WorkStore>,
    who: String,
}

/// A request for one page of a list of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct JobListRequest {
    /// Only jobs in this state.
    pub state: Option<JobState>,
    /// Which jobs to list.
    pub filter: WrittenFilter,
    /// The largest number of jobs on the page.
    pub limit: usize,
    /// The cursor to continue from: the `next` of the previous page.
    pub after: Option<String>,
    /// Whether to include payloads, cut to a few kilobytes.
    pub payload: bool,
    /// The time that ages in the filter are relative to, by the database's clock.
    pub now: SystemTime,
}

/// An action on failed jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobAct {
    /// Makes failed jobs due now; attempts are reset to 0.
    Retry,
    /// Deletes failed jobs.
    Discard,
}

/// The state of jobs that can be retried or discarded.
const FAILED: Option<JobState> = Some(JobState::Failed);

impl JobOperator {
    /// Creates the service. Every change is recorded in the audit with the name `who`.
    pub fn new(store: Arc<dyn WorkStore>, who: impl Into<String>) -> Self {
        Self { store, who: who.into() }
    }

    /// A page of jobs that match, by number, oldest first. It reads a limited number of rows for a limited time, like
    /// [`Operator::list`](crate::Operator::list).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, limit or cursor, and errors of the store.
    pub async fn list(&self, request: &JobListRequest) -> Result<PageView<JobView>> {
        let limit = checked_limit(request.limit)?;
        let of = format!("jobs {:?}", request.state);
        let order = ListOrder {
            oldest_first: true,
            ..ListOrder::default()
        };
        let print = fingerprint(&of, &request.filter, order);
        let cursor = request
            .after
            .as_deref()
            .map(|text| Cursor::read(text, print))
            .transpose()?;
        let as_of = cursor.map_or(request.now, |cursor| cursor.as_of);
        let filter = request.filter.as_of(as_of)?;
        let began = Instant::now();
        let mut page = PageView::whole(Vec::new());
        let mut scanned = 0;
        let mut after = Some(cursor.map_or(i64::MIN, |cursor| cursor.key.1));
        while let Some(from) = after {
            let read = self.page(request.state, &filter, from).await?;
            scanned += read.rows;
            after = read.next;
            let room = limit - page.items.len();
            // The next page starts after the last job of this one.
            if read.jobs.len() > room {
                after = read.jobs.get(room - 1).map(|job| job.message.seq);
            }
            page.looked_back_to = read.jobs.last().map(|job| rfc3339(job.message.created_at));
            page.items
                .extend(read.jobs.into_iter().take(room).filter_map(JobView::of));
            if page.items.len() >= limit || began.elapsed() >= LONGEST {
                break;
            }
        }
        if !request.payload {
            page.items = page.items.into_iter().map(JobView::without_payload).collect();
        }
        page.scanned = Some(scanned);
        page.next = after.map(|seq| {
            let key = Key(0, seq);
            Cursor { key, as_of }.write(print)
        });
        page.looked_back_to = page.looked_back_to.filter(|_| page.next.is_some());
        Ok(page)
    }

    /// The job with this id.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, and errors of the store.
    pub async fn show(&self, id: Uuid) -> Result<JobView> {
        let found = self.store.find_job(id).await?;
        found.and_then(JobView::of).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no job {id}"))
                .because("the job is completed, was discarded, or was never committed")
                .next_step("list jobs with `sendoff jobs ls`")
        })
    }

    /// The number of failed jobs that match.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, and errors of the store.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        let mut count = 0;
        self.each_page(FAILED, filter, |page| {
            count += page.len() as u64;
            true
        })
        .await?;
        Ok(count)
    }

    /// Retries or discards failed jobs that match, in batches. Returns the number of jobs.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, and errors of the store; batches done before stay done.
    pub async fn act(&self, act: JobAct, filter: &Filter, progress: Progress<'_>) -> Result<u64> {
        let (mut done, mut after) = (0, Some(i64::MIN));
        let mut command = Command::by(&self.who);
        while let Some(from) = after {
            let page = self.page(FAILED, filter, from).await?;
            after = page.next;
            let ids: Vec<Uuid> = page.jobs.iter().filter_map(|job| job.message.id).collect();
            if ids.is_empty() {
                continue;
            }
            done += match act {
                JobAct::Retry => self.store.retry_failed(&ids, ids.len(), filter, &mut command).await?,
                JobAct::Discard => self.store.discard_failed(&ids, ids.len(), filter, &mut command).await?,
            };
            progress(done);
        }
        match act {
            JobAct::Retry => {
                tracing::info!(
                    event = "jobs_retried",
                    who = self.who,
                    retried = done,
                    "failed jobs retried"
                );
            }
            JobAct::Discard => {
                tracing::info!(
                    event = "jobs_discarded",
                    who = self.who,
                    discarded = done,
                    "failed jobs discarded"
                );
            }
        }
        Ok(done)
    }

    async fn each_page(
        &self,
        state: Option<JobState>,
        filter: &Filter,
        mut take: impl FnMut(Vec<StoredJob>) -> bool,
    ) -> Result<()> {
        let mut after = Some(i64::MIN);
        while let Some(from) = after {
            let page = self.page(state, filter, from).await?;
            let more = take(page.jobs);
            after = page.next.filter(|_| more);
        }
        Ok(())
    }

    /// Reads the next jobs and keeps those that match.
    async fn page(&self, state: Option<JobState>, filter: &Filter, after: i64) -> Result<Page> {
        check(filter)?;
        // Only the beginning of a payload is read here: the database searches the whole payload.
        let payload = filter.payload.as_deref();
        let mut jobs = self.store.jobs(state, &filter.ids, payload, after, AT_ONCE).await?;
        let rows = jobs.len() as u64;
        let is_full = jobs.len() >= AT_ONCE;
        let next = jobs.last().map(|job| job.message.seq).filter(|_| is_full);
        jobs.retain(|job| filter.fits_texts(&job.message));
        Ok(Page { jobs, rows, next })
    }
}

/// Some jobs.
struct Page {
    jobs: Vec<StoredJob>,
    /// How many were looked at.
    rows: u64,
    /// The number after which there may be more. `None` after a page that was not full: otherwise jobs that keep failing
    /// would make pages without end.
    next: Option<i64>,
}

fn check(filter: &Filter) -> Result<()> {
    validate(filter)?;
    if filter.reason.is_some() || filter.died_from.is_some() || filter.died_until.is_some() {
        return Err(
            Error::new(ErrorKind::Invalid, "jobs have neither a reason nor a time of death")
                .because("jobs fail; they do not become dead letters")
                .next_step(
                    "remove reason, died_from and died_until from the filter; `sendoff jobs ls --state failed` lists failed jobs",
                ),
        );
    }
    if !filter.payload_paths.is_empty() {
        return Err(
            Error::new(ErrorKind::Invalid, "jobs cannot be selected by a path in the payload")
                .next_step("use payload=TEXT, which finds a part of the payload"),
        );
    }
    if filter.status.is_none() && filter.sink.is_none() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Invalid, "jobs have neither a status nor a sink")
        .because("no relay delivers jobs")
        .next_step("remove status and sink from the filter; `sendoff jobs ls --state` selects by state"))
}
