//! Lists: newest or oldest first, page by page. Each page reads a limited number of rows.

mod cursor;
mod pager;
mod seek;
mod stream;

use std::time::{Duration, SystemTime};

use sendoff::store::{Filter, LISTED_BYTES, ListTable, Status, Stored};
use sendoff::{Error, ErrorKind, Result};

pub(crate) use self::cursor::{Cursor, fingerprint, hash};
pub(crate) use self::pager::Bounds;
use self::pager::Pager;
pub(crate) use self::stream::Key;
use crate::SampledCount;
use crate::filter::validate;
use crate::operator::{Operator, of_dead};
use crate::view::{MessageView, PageView};
use crate::written::WrittenFilter;

/// The largest page of a list.
pub const MOST_ROWS: usize = 1000;

/// The highest count that a list reports; beyond it, the count is a lower bound.
pub const MOST_COUNTED: u64 = 10_000;

/// How many rows one page reads, and for how long.
const PAGE: Bounds = Bounds {
    rows: 2_000_000,
    time: Duration::from_millis(240),
};

/// What a list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ListBy {
    /// By the number that the database gave each message when it was emitted. This is the order of creation: a message
    /// keeps its number in every state.
    #[default]
    Created,
    /// By when dead letters died and messages were delivered. Others are not in such a list.
    Ended,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ListOrder {
    /// What the list is sorted by.
    pub by: ListBy,
    /// Whether the oldest come first.
    pub oldest_first: bool,
}

/// A request for one page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListRequest {
    /// Which messages to list.
    pub filter: WrittenFilter,
    /// The order of the list.
    pub order: ListOrder,
    /// The largest number of rows on the page: 1 to [`MOST_ROWS`].
    pub limit: usize,
    /// The cursor to continue from: the `next` of the previous page.
    pub after: Option<String>,
    /// Whether to include payloads, cut to a few kilobytes.
    pub payload: bool,
}

impl Default for ListRequest {
    fn default() -> Self {
        Self {
            filter: WrittenFilter::default(),
            order: ListOrder::default(),
            limit: 50,
            after: None,
            payload: false,
        }
    }
}

impl Operator {
    /// A page of deliveries that match. A page reads a limited number of rows for a limited time: it may have fewer
    /// rows than asked for, or none, although there are more. Then `next` continues where the page stopped, and
    /// `looked_back_to` is the time of the last row that was read.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, limit or cursor, and errors of the store.
    pub async fn list(&self, request: &ListRequest) -> Result<PageView<MessageView>> {
        let limit = checked_limit(request.limit)?;
        let print = fingerprint("messages", &request.filter, request.order);
        let cursor = request
            .after
            .as_deref()
            .map(|text| Cursor::read(text, print))
            .transpose()?;
        let as_of = self.as_of(&request.filter, cursor).await?;
        let filter = request.filter.as_of(as_of)?;
        let page = self
            .page(&filter, request.order, cursor.map(|cursor| cursor.key), limit, PAGE)
            .await?;
        let items = page.rows.into_iter().filter_map(|stored| {
            let view = MessageView::of_deliveries(vec![stored])?;
            Some(if request.payload { view } else { view.without_payload() })
        });
        Ok(PageView {
            items: items.collect(),
            next: page.next.map(|key| Cursor { key, as_of }.write(print)),
            scanned: Some(page.scanned),
            looked_back_to: page.reached.map(sendoff::envelope::rfc3339),
        })
    }

    /// A page of dead letters that match; see [`Operator::list`].
    ///
    /// # Errors
    /// As [`Operator::list`]; also when the filter asks for another status.
    pub async fn dead_list(&self, request: &ListRequest) -> Result<PageView<MessageView>> {
        let mut request = request.clone();
        of_dead(&request.filter.filter)?;
        request.filter.filter.status = Some(Status::Dead);
        self.list(&request).await
    }

    /// How many messages match, counted up to [`MOST_COUNTED`] and within the limits of one page.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, and errors of the store.
    pub async fn count_some(&self, filter: &Filter) -> Result<SampledCount> {
        let limit = usize::try_from(MOST_COUNTED).unwrap_or(usize::MAX);
        let page = self.page(filter, ListOrder::default(), None, limit, PAGE).await?;
        Ok(SampledCount::counted(page.rows.len() as u64, page.next.is_some()))
    }

    /// The time that ages in a filter count back from: the same for all pages of a list.
    async fn as_of(&self, filter: &WrittenFilter, cursor: Option<Cursor>) -> Result<SystemTime> {
        match cursor {
            Some(cursor) => Ok(cursor.as_of),
            None if filter.has_ages() => self.store.now().await,
            None => Ok(SystemTime::UNIX_EPOCH),
        }
    }

    /// Some rows that match, from a key on.
    pub(crate) async fn page(
        &self,
        filter: &Filter,
        order: ListOrder,
        from: Option<Key>,
        limit: usize,
        bounds: Bounds,
    ) -> Result<pager::Paged> {
        validate(filter)?;
        if !filter.ids.is_empty() {
            return self.page_of_ids(filter, order, from, limit).await;
        }
        let tables = tables(filter, order)?;
        let pager = Pager {
            store: &*self.store,
            filter,
            order,
        };
        pager.page(&tables, from, limit, bounds).await
    }

    /// Ids have an index: their rows are found without looking at others.
    async fn page_of_ids(
        &self,
        filter: &Filter,
        order: ListOrder,
        from: Option<Key>,
        limit: usize,
    ) -> Result<pager::Paged> {
        let mut ids = filter.ids.clone();
        ids.sort();
        ids.dedup();
        let mut rows: Vec<(Key, Stored)> = Vec::new();
        for id in ids {
            let found = self.store.find(id).await?.into_iter().filter(|row| filter.fits(row));
            rows.extend(found.filter_map(|row| Some((Key::of(&row, order)?, row.cut(LISTED_BYTES)))));
        }
        let scanned = rows.len() as u64;
        rows.retain(|(key, _)| from.is_none_or(|from| *key >= from));
        rows.sort_by_key(|(key, _)| *key);
        Ok(pager::Paged::cut(rows, None, limit, scanned, None))
    }
}

/// Checks the limit of a page.
pub(crate) fn checked_limit(limit: usize) -> Result<usize> {
    if limit == 0 || limit > MOST_ROWS {
        return Err(
            Error::new(ErrorKind::Invalid, format!("the limit {limit} is out of range")).next_step(format!(
                "use 1 to {MOST_ROWS}, and continue with the cursor for further pages"
            )),
        );
    }
    Ok(limit)
}

/// The tables that a list reads.
fn tables(filter: &Filter, order: ListOrder) -> Result<Vec<ListTable>> {
    let is_of_dead = filter.reason.is_some() || filter.died_from.is_some() || filter.died_until.is_some();
    let mut tables = ListTable::of(filter.status).to_vec();
    if is_of_dead {
        tables.retain(|table| *table == ListTable::Dead);
    }
    if order.by == ListBy::Ended {
        tables.retain(|table| matches!(table, ListTable::Dead | ListTable::Delivered));
    }
    match filter.status {
        Some(status) if tables.is_empty() => Err(Error::new(
            ErrorKind::Invalid,
            format!("nothing that is {} has died or was delivered", status.as_str()),
        )
        .because("only dead letters have a reason and a time of death, and only they and delivered messages have ended")
        .next_step("leave the status out, or list by creation and without reason and time of death")),
        _ => Ok(tables),
    }
}
