//! Work items: what operators see of them, and do with what workers gave up.

use std::sync::Arc;

use sendoff::store::{Command, Filter, ItemState, Stored, StoredItem, WorkStore};
use sendoff::{Error, ErrorKind, Result, Uuid};

use crate::filter::validate;
use crate::steer::{AT_ONCE, Progress};
use crate::{ItemListView, ItemView, MOST_ROWS};

/// Looks at the items of an outbox, and acts on failed ones in somebody's name.
#[derive(Clone)]
pub struct ItemOperator {
    store: Arc<dyn WorkStore>,
    who: String,
}

/// What is done with failed items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemAct {
    /// Due at once, as if they had never been tried.
    Retry,
    /// Deleted for good.
    Discard,
}

/// Nothing else is brought back or discarded.
const FAILED: Option<ItemState> = Some(ItemState::Failed);

impl ItemOperator {
    /// An operator; `who` goes into the audit with every change.
    pub fn new(store: Arc<dyn WorkStore>, who: impl Into<String>) -> Self {
        Self { store, who: who.into() }
    }

    /// Items that fit, of this state if one is given, oldest first; `offset` of them are passed over.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter or limit that makes no sense, and what the store says.
    pub async fn list(
        &self,
        state: Option<ItemState>,
        filter: &Filter,
        limit: usize,
        offset: usize,
    ) -> Result<ItemListView> {
        if limit == 0 || limit > MOST_ROWS {
            return Err(
                Error::new(ErrorKind::Invalid, format!("a limit of {limit} cannot be used"))
                    .next_step(format!("use 1 to {MOST_ROWS}, and an offset for the pages behind")),
            );
        }
        // One more than asked for tells whether there are more.
        let wanted = offset.saturating_add(limit).saturating_add(1);
        let mut fitting = Vec::new();
        self.each_page(state, filter, |page| {
            fitting.extend(page);
            fitting.len() < wanted
        })
        .await?;
        let more = fitting.len() >= wanted;
        let items = fitting.into_iter().skip(offset).take(limit);
        Ok(ItemListView {
            items: items.filter_map(ItemView::of).collect(),
            more,
        })
    }

    /// One item.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, and what the store says.
    pub async fn show(&self, id: Uuid) -> Result<ItemView> {
        let found = self.store.items(None, &[id], i64::MIN, 1).await?;
        found.into_iter().next().and_then(ItemView::of).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no item {id}"))
                .because("it is done, or was discarded, or was never committed")
                .next_step("look with `sendoff items ls`")
        })
    }

    /// How many failed items fit.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter that makes no sense, and what the store says.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        let mut count = 0;
        self.each_page(FAILED, filter, |page| {
            count += page.len() as u64;
            true
        })
        .await?;
        Ok(count)
    }

    /// Retries or discards failed items that fit, in batches. Returns how many.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter that makes no sense, and what the store says; what was done until then stays.
    pub async fn act(&self, act: ItemAct, filter: &Filter, progress: Progress<'_>) -> Result<u64> {
        let (mut done, mut after) = (0, Some(i64::MIN));
        let mut command = Command::by(&self.who);
        while let Some(from) = after {
            let page = self.page(FAILED, filter, from).await?;
            after = page.next;
            let ids: Vec<Uuid> = page.items.iter().filter_map(|item| item.message.id).collect();
            if ids.is_empty() {
                continue;
            }
            done += match act {
                ItemAct::Retry => self.store.retry_failed(&ids, ids.len(), filter, &mut command).await?,
                ItemAct::Discard => self.store.discard_failed(&ids, ids.len(), filter, &mut command).await?,
            };
            progress(done);
        }
        match act {
            ItemAct::Retry => {
                tracing::info!(
                    event = "items_retried",
                    who = self.who,
                    retried = done,
                    "failed items were brought back"
                );
            }
            ItemAct::Discard => {
                tracing::info!(
                    event = "items_discarded",
                    who = self.who,
                    discarded = done,
                    "failed items were discarded"
                );
            }
        }
        Ok(done)
    }

    async fn each_page(
        &self,
        state: Option<ItemState>,
        filter: &Filter,
        mut take: impl FnMut(Vec<StoredItem>) -> bool,
    ) -> Result<()> {
        let mut after = Some(i64::MIN);
        while let Some(from) = after {
            let page = self.page(state, filter, from).await?;
            let more = take(page.items);
            after = page.next.filter(|_| more);
        }
        Ok(())
    }

    /// Of the next items those that fit.
    async fn page(&self, state: Option<ItemState>, filter: &Filter, after: i64) -> Result<Page> {
        check(filter)?;
        let mut items = self.store.items(state, &filter.ids, after, AT_ONCE).await?;
        let is_full = items.len() >= AT_ONCE;
        let next = items.last().map(|item| item.message.seq).filter(|_| is_full);
        items.retain(|item| fits(&item.message, filter));
        Ok(Page { items, next })
    }
}

/// Some items.
struct Page {
    items: Vec<StoredItem>,
    /// Behind which number there may be more. None behind a page that was not full: items that fail all the time would
    /// make one page after another, and no end.
    next: Option<i64>,
}

fn check(filter: &Filter) -> Result<()> {
    validate(filter)?;
    if filter.status.is_none() && filter.leg.is_none() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Invalid, "items have neither a status nor a sink")
        .because("no relay delivers them")
        .next_step("leave status and leg out; `sendoff items ls --state` chooses by their state"))
}

fn fits(item: &Stored, filter: &Filter) -> bool {
    let same = |wanted: &Option<String>, value: &Option<String>| wanted.is_none() || wanted == value;
    let contains =
        |bytes: &[u8], part: &[u8]| part.is_empty() || bytes.windows(part.len()).any(|window| window == part);
    filter.topic.as_deref().is_none_or(|wanted| like(wanted, &item.topic))
        && same(&filter.key, &item.key)
        && same(&filter.aggregate_type, &item.aggregate_type)
        && same(&filter.aggregate_id, &item.aggregate_id)
        && same(&filter.idempotency_key, &item.idempotency_key)
        && filter.error.as_deref().is_none_or(|part| {
            let error = item.last_error.as_deref();
            error.is_some_and(|error| error.contains(part))
        })
        && filter
            .payload
            .as_deref()
            .is_none_or(|part| contains(&item.payload, part.as_bytes()))
        && filter.created_from.is_none_or(|from| item.created_at >= from)
        && filter.created_until.is_none_or(|until| item.created_at < until)
}

/// Whether a topic fits, where `*` stands for any text.
fn like(wanted: &str, topic: &str) -> bool {
    let mut parts = wanted.split('*');
    let Some(mut rest) = topic.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_topic_stands_for_any_text() {
        for (wanted, topic, expected) in [
            ("order.*", "order.placed", true),
            ("order.*", "orders", false),
            ("*", "", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*a", "a", false),
            ("order", "order.placed", false),
        ] {
            assert_eq!(like(wanted, topic), expected, "{wanted} {topic}");
        }
    }
}
