//! Groups failures by sink, reason and error.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use sendoff::envelope::rfc3339;
use sendoff::store::{Filter, Status, Stored};
use sendoff::{Error, ErrorKind, Result, Uuid};

use crate::fingerprint::error_fingerprint;
use crate::list::{Bounds, Key, ListOrder, hash};
use crate::operator::Operator;
use crate::view::{FailureView, PageView};

/// The largest number of failures that one list reads for each status.
const MOST_LOOKED_AT: usize = 50_000;
/// How long one list reads failures of each status.
const LONGEST: Duration = Duration::from_millis(700);
/// How long to search for a group that is not among the newest failures.
const LONGEST_SEARCH: Duration = Duration::from_secs(10);
/// How many rows one step reads.
pub(crate) const STEP: usize = 1000;

/// Failures with the same sink, reason and error.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailureGroup {
    /// The sink; empty for messages that were not routed.
    pub(crate) sink: String,
    /// Whether the failures are dead; otherwise they are in retry.
    pub(crate) dead: bool,
    /// The reason of dead letters; `retry` for deliveries in retry.
    pub(crate) reason: String,
    /// The fingerprint of the failures' error.
    pub(crate) error: String,
}

impl FailureGroup {
    /// The group of a row; `None` when the row is not a failure.
    pub(crate) fn of(row: &Stored) -> Option<Self> {
        let dead = match row.status {
            Status::Dead => true,
            Status::Retry => false,
            _ => return None,
        };
        let reason = row.detail.clone().filter(|_| dead);
        Some(Self {
            sink: row.sink.clone(),
            dead,
            reason: reason.unwrap_or_else(|| "retry".to_owned()),
            error: error_fingerprint(row.last_error.as_deref().unwrap_or_default()),
        })
    }

    /// The short id of the group: the same for the same sink, reason and error, in every database.
    pub fn id(&self) -> String {
        let text = [&self.sink, &self.reason, &self.error].map(String::as_str).join("\0");
        let hash = hash(text.as_bytes());
        format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
    }

    /// A filter that selects the rows of the group, and other rows with the same sink and reason.
    pub(crate) fn filter(&self, filter: &Filter) -> Filter {
        Filter {
            status: Some(if self.dead { Status::Dead } else { Status::Retry }),
            sink: Some(self.sink.clone())
                .filter(|sink| !sink.is_empty())
                .or(filter.sink.clone()),
            reason: self.dead.then(|| self.reason.clone()),
            ..filter.clone()
        }
    }
}

/// What was counted of a group so far.
struct Seen {
    count: u64,
    first: SystemTime,
    last: SystemTime,
    example: Option<Uuid>,
    error: Option<String>,
}

impl Operator {
    /// Dead letters and deliveries in retry that match, by sink, reason and error, the largest groups first. It looks at the
    /// newest failures, up to a limit: then the counts are lower bounds, and `at_least` says so.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, and errors of the store.
    pub async fn failures(&self, filter: &Filter) -> Result<PageView<FailureView>> {
        let mut groups: BTreeMap<FailureGroup, Seen> = BTreeMap::new();
        let (mut scanned, mut at_least, mut reached) = (0, false, None);
        for status in failed(filter)? {
            let filter = Filter {
                status: Some(status),
                ..filter.clone()
            };
            let mut walk = Walk::new(self, filter, ListOrder::default());
            while let Some(rows) = walk.next().await? {
                rows.iter().for_each(|row| note(&mut groups, row));
                if walk.found >= MOST_LOOKED_AT || walk.began.elapsed() >= LONGEST {
                    at_least |= walk.from.is_some();
                    reached = reached.max(rows.last().map(|row| row.created_at).filter(|_| walk.from.is_some()));
                    break;
                }
            }
            scanned += walk.scanned;
        }
        let mut items: Vec<FailureView> = groups
            .into_iter()
            .map(|(group, seen)| view(&group, seen, at_least))
            .collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.count));
        Ok(PageView {
            items,
            next: None,
            scanned: Some(scanned),
            looked_back_to: reached.map(rfc3339),
        })
    }

    /// The group with this id.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when no failure is in it any more, and errors of the store.
    pub async fn failure_group(&self, id: &str) -> Result<FailureGroup> {
        for status in [Status::Dead, Status::Retry] {
            let filter = Filter {
                status: Some(status),
                ..Filter::default()
            };
            let mut walk = Walk::new(self, filter, ListOrder::default());
            while let Some(rows) = walk.next().await? {
                let mut groups = rows.iter().filter_map(FailureGroup::of);
                if let Some(group) = groups.find(|group| group.id() == id) {
                    return Ok(group);
                }
                if walk.began.elapsed() >= LONGEST_SEARCH {
                    break;
                }
            }
        }
        Err(Error::new(ErrorKind::NotFound, format!("there is no group {id:?}"))
            .because("the failures of the group were retried, delivered or discarded, or the id is wrong")
            .next_step("list the groups with `sendoff failures`"))
    }
}

/// Reads all rows that match, step by step.
pub(crate) struct Walk<'a> {
    operator: &'a Operator,
    filter: Filter,
    order: ListOrder,
    began: Instant,
    from: Option<Key>,
    is_done: bool,
    found: usize,
    scanned: u64,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(operator: &'a Operator, filter: Filter, order: ListOrder) -> Self {
        Self {
            operator,
            filter,
            order,
            began: Instant::now(),
            from: None,
            is_done: false,
            found: 0,
            scanned: 0,
        }
    }

    /// The next rows, which may be none although there are more; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Stored>>> {
        if self.is_done {
            return Ok(None);
        }
        let bounds = Bounds {
            rows: 200_000,
            time: Duration::from_millis(240),
        };
        let page = self
            .operator
            .page(&self.filter, self.order, self.from, STEP, bounds)
            .await?;
        self.is_done = page.next.is_none();
        self.from = page.next;
        self.found += page.rows.len();
        self.scanned += page.scanned;
        Ok(Some(page.rows))
    }
}

/// The states of the failures that a filter selects.
fn failed(filter: &Filter) -> Result<Vec<Status>> {
    let is_of_dead = filter.reason.is_some() || filter.died_from.is_some() || filter.died_until.is_some();
    match filter.status {
        None if is_of_dead => Ok(vec![Status::Dead]),
        None => Ok(vec![Status::Dead, Status::Retry]),
        Some(status @ (Status::Dead | Status::Retry)) => Ok(vec![status]),
        Some(other) => Err(Error::new(
            ErrorKind::Invalid,
            format!("failures do not have the status {}", other.as_str()),
        )
        .next_step("leave the status out, or use dead or retry")),
    }
}

fn note(groups: &mut BTreeMap<FailureGroup, Seen>, row: &Stored) {
    let Some(group) = FailureGroup::of(row) else { return };
    let at = row.ended_at.unwrap_or(row.created_at);
    let seen = groups.entry(group).or_insert_with(|| Seen {
        count: 0,
        first: at,
        last: at,
        example: row.id,
        error: row.last_error.clone(),
    });
    seen.count += 1;
    seen.first = seen.first.min(at);
    seen.last = seen.last.max(at);
}

fn view(group: &FailureGroup, seen: Seen, at_least: bool) -> FailureView {
    FailureView {
        group: group.id(),
        status: if group.dead { Status::Dead } else { Status::Retry },
        sink: Some(group.sink.clone()).filter(|sink| !sink.is_empty()),
        reason: group.reason.clone(),
        error: group.error.clone(),
        count: seen.count,
        at_least,
        first_seen: rfc3339(seen.first),
        last_seen: rfc3339(seen.last),
        example: seen.example,
        example_error: seen.error,
    }
}
