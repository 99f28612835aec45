//! Large rows. Small rows are read with their contents, in one request. For large rows, the reader first requests their
//! sizes and then the contents of as many as fit into the limit: so rows in flight are not transferred a second time,
//! and no transferred row is thrown away.
//!
//! The sizes are not known in advance. So an answer to a request with contents is cut off when it exceeds the limit,
//! which costs the connection. From then on rows are treated as large, until they turn out to be small.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use sendoff::store::{Budget, Lane, Page, ReadRequest, Row, RowRef, Table};
use sendoff::{Result, Uuid};
use tokio::time::Instant;
use tokio_postgres::types::Type;

use crate::ask::sighting;
use crate::decode::{ReadColumns, count, named, number, smallint, smallints};
use crate::error::odd_answer;
use crate::lanes::{Found, OfLane, Plan, rank};
use crate::pipeline::Statement;
use crate::pool::PooledConnection;
use crate::progress::Weighed;
use crate::read::{PostgresReader, WHAT};
use crate::straggler::Sighting;

/// How many bytes the contents of the row `o` have: outside of the table, where long values are compressed, and without a look at
/// the values themselves. For headers there is no such function; those that may be too long to be written as text are estimated.
const BYTES: &str = "{o.bytes}
        + CASE
            WHEN o.headers IS NULL THEN 0
            WHEN pg_column_size(o.headers) <= 262144 THEN octet_length(o.headers::text)
            ELSE pg_column_size(o.headers)::bigint * 4
        END";

/// As `read_ready.sql`, with the size of a row instead of its contents, and the same parameters. The first row is about the
/// statement itself.
const SIZES: &str = "SELECT
    NULL::smallint AS lane,
    (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM outbox_message_seq_seq) AS seq,
    NULL::uuid AS id, pg_current_snapshot()::text AS topic, pg_postmaster_start_time() AS created_at,
    CASE WHEN $4 THEN pg_current_xact_id()::text::bigint END AS xid, NULL::bigint AS bytes
UNION ALL
SELECT m.lane, m.seq, m.id, NULL, NULL, NULL, m.bytes
FROM unnest($1, $2, $3) AS l (lane, floor, size)
CROSS JOIN LATERAL (
    SELECT o.lane, o.seq, o.id, {bytes} AS bytes
    FROM outbox_message AS o WHERE o.lane = l.lane AND o.seq > l.floor ORDER BY o.seq LIMIT l.size
) AS m";

/// As `read_due.sql`, the same.
const DUE_SIZES: &str = "SELECT o.lane, o.seq, o.id, o.sink, {bytes} AS bytes
FROM outbox_waiting AS o
WHERE o.due_at <= now() AND o.lane = ANY ($1) AND o.sink <> ALL ($2)
ORDER BY o.due_at, o.seq LIMIT $3";

/// The texts that ask for sizes, of the ready and of the waiting table.
pub(crate) fn texts() -> [String; 2] {
    [SIZES, DUE_SIZES].map(|text| text.replace("{bytes}", BYTES))
}

/// From how many bytes on a row is large.
const LARGE: usize = 16 << 10;
/// How many bytes a row has on its way beside its contents.
const ON_ITS_WAY: usize = 512;
/// A row cannot come over the wire from 1 GiB on. What the server makes of its headers may be longer than they are.
const TOO_LARGE: usize = 512 << 20;

/// How many bytes a row has, about.
#[derive(Debug, Default)]
pub(crate) struct RowSize {
    average: usize,
    is_large: bool,
    /// The lane that comes first.
    turn: Lane,
}

impl RowSize {
    /// Whether sizes are asked for first: where rows are large, and where so many rows may have more bytes than there is room for.
    pub(crate) fn is_large_for(&self, request: &ReadRequest, lanes: usize) -> bool {
        let rows = request.limit.max(lanes);
        self.is_large || rows.saturating_mul(2 * self.average) > request.bytes
    }

    /// How many bytes a row may have on its way, where most are small.
    pub(crate) fn expected(&self) -> usize {
        2 * self.average + ON_ITS_WAY
    }

    pub(crate) fn learn(&mut self, rows: &[Row]) {
        if rows.is_empty() {
            return;
        }
        let average = rows.iter().map(Row::bytes).sum::<usize>() / rows.len();
        self.average = average.max((self.average * 3 + average) / 4);
        self.is_large = self.average > if self.is_large { LARGE / 2 } else { LARGE };
    }

    /// The lane that comes first this time.
    fn next_turn(&mut self) -> Lane {
        self.turn = (self.turn + 7) % 64;
        self.turn
    }

    /// An answer was cut off, or did not come, for which large rows may be the reason.
    pub(crate) fn had_no_room(&mut self) {
        self.average = self.average.max(LARGE);
        self.is_large = true;
    }
}

/// A row that was looked at.
struct Looked {
    lane: Lane,
    seq: i64,
    id: Uuid,
    /// Of the waiting table.
    sink: Option<String>,
    bytes: usize,
}

/// What was looked at, of both tables.
#[derive(Default)]
struct Sizes {
    sighting: Option<Sighting>,
    ready: Vec<Looked>,
    due: Vec<Looked>,
}

impl PostgresReader {
    /// Reads a page of large rows.
    pub(crate) async fn read_large(
        &mut self,
        connection: &PooledConnection,
        request: &ReadRequest,
        page: &mut Page,
    ) -> Result<bool> {
        let Some(sizes) = self.look(connection, request).await? else {
            page.history_changed = true;
            return Ok(true);
        };
        let part = if request.ready { 2 } else { 1 };
        // Not all of it, so that what waited does not keep new messages waiting.
        let mut share = Budget::new(request.bytes.div_ceil(part));
        let due = self.choose_due(sizes.due, request.limit, &mut share, page);
        let mut budget = Budget::new(request.bytes);
        budget.spend(due.iter().map(|row| row.bytes).sum());
        let (found, cut, ready) = self.choose_ready(sizes.ready, &mut budget);
        if let Err(error) = self.fetch(connection, &due, &ready, page).await {
            // Rows that were found are not in flight: they have to be found again.
            self.progress.restart();
            return Err(error);
        }
        if let Some(sighting) = sizes.sighting {
            let lanes = &mut self.progress.lanes;
            page.more |= lanes.finish(&found, &cut, request.limit, sighting.head);
        }
        Ok(true)
    }

    /// Asks for sizes until they can be used. `None` when the database's history has changed.
    async fn look(&mut self, connection: &PooledConnection, request: &ReadRequest) -> Result<Option<Sizes>> {
        let mut attempt = self.progress.begin(Instant::now());
        loop {
            // A stretch is read as a whole.
            self.progress.lanes.density = None;
            let (plan, mark) = self.progress.plan(&attempt, request.limit);
            let sizes = self.ask_sizes(connection, request, &plan, mark).await?;
            let Some(sighting) = &sizes.sighting else {
                return Ok(Some(sizes));
            };
            match self.progress.weigh(&mut attempt, sighting) {
                Weighed::Use => return Ok(Some(sizes)),
                Weighed::AskAgain => {}
                Weighed::HistoryChanged => return Ok(None),
            }
        }
    }

    async fn ask_sizes(
        &self,
        connection: &PooledConnection,
        request: &ReadRequest,
        plan: &Plan,
        mark: bool,
    ) -> Result<Sizes> {
        let texts = &self.store.texts;
        let lanes = smallints(&self.progress.lanes.numbers());
        let due_limit = number(request.limit + self.waiting.len());
        let mut statements = Vec::new();
        if request.ready {
            statements.push(Statement {
                sql: &texts.read_sizes,
                params: vec![
                    (&plan.lanes as _, Type::INT2_ARRAY),
                    (&plan.starts as _, Type::INT8_ARRAY),
                    (&plan.sizes as _, Type::INT8_ARRAY),
                    (&mark as _, Type::BOOL),
                ],
            });
        }
        if request.due {
            statements.push(Statement {
                sql: &texts.read_due_sizes,
                params: vec![
                    (&lanes as _, Type::INT2_ARRAY),
                    (&request.skip_sinks as _, Type::TEXT_ARRAY),
                    (&due_limit as _, Type::INT8),
                ],
            });
        }
        let mut answers = connection.run_all(WHAT, &statements).await?.into_iter();
        let mut sizes = Sizes::default();
        if request.ready {
            for row in answers.next().unwrap_or_default() {
                match named::<Option<i16>>(WHAT, &row, "lane")? {
                    Some(_) => sizes.ready.push(looked(&row, None)?),
                    None => sizes.sighting = Some(sighting(&row)?),
                }
            }
            if sizes.sighting.is_none() {
                return Err(odd_answer(WHAT, "the answer has no snapshot"));
            }
        }
        for row in answers.next().unwrap_or_default() {
            sizes.due.push(looked(&row, Some(named(WHAT, &row, "sink")?))?);
        }
        Ok(sizes)
    }

    /// Rows of the waiting table that are new, in the order in which they fell due, as many as there is room for.
    fn choose_due(&self, rows: Vec<Looked>, limit: usize, budget: &mut Budget, page: &mut Page) -> Vec<Looked> {
        let mut chosen = Vec::new();
        for row in rows {
            if self.waiting.contains(&row.row_ref()) {
                continue;
            }
            if chosen.len() >= limit || budget.is_spent() {
                page.more = true;
                break;
            }
            budget.spend(row.bytes);
            chosen.push(row);
        }
        chosen
    }

    /// Ready rows that are new, as many as there is room for: of each lane in order, urgent lanes first, and among equals another
    /// one first each time. And what all lanes have, and where those are cut off that have more.
    fn choose_ready(&mut self, rows: Vec<Looked>, budget: &mut Budget) -> (Found, BTreeMap<Lane, i64>, Vec<Looked>) {
        let (mut found, mut cut, mut chosen) = (Found::new(), BTreeMap::new(), Vec::new());
        let first = self.row_size.next_turn();
        let mut rows = rows;
        rows.sort_by_key(|row| (rank(row.lane), row.lane < first, row.lane, row.seq));
        for row in rows {
            found.entry(row.lane).or_insert(OfLane::first(row.seq)).add(row.seq);
            if self.progress.lanes.has(row.lane, row.seq, row.id) {
                continue;
            }
            if budget.is_spent() || cut.contains_key(&row.lane) {
                cut.entry(row.lane).or_insert(row.seq);
                continue;
            }
            budget.spend(row.bytes);
            chosen.push(row);
        }
        (found, cut, chosen)
    }

    /// Fetches the contents of rows; they are in flight from now on. One that is gone was somebody else's.
    async fn fetch(
        &mut self,
        connection: &PooledConnection,
        due: &[Looked],
        ready: &[Looked],
        page: &mut Page,
    ) -> Result<()> {
        let mut contents: HashMap<RowRef, Row> = HashMap::new();
        let texts = &self.store.texts;
        for (sql, rows) in [(&texts.read_due_some, due), (&texts.read_some, ready)] {
            let rows: Vec<&Looked> = rows.iter().filter(|row| row.bytes <= TOO_LARGE).collect();
            if rows.is_empty() {
                continue;
            }
            let lanes: Vec<i16> = rows.iter().map(|row| smallint(row.lane)).collect();
            let numbers: Vec<i64> = rows.iter().map(|row| row.seq).collect();
            let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
            let deliveries: Vec<&str> = rows.iter().filter_map(|row| row.sink.as_deref()).collect();
            let mut params = vec![
                (&lanes as _, Type::INT2_ARRAY),
                (&numbers as _, Type::INT8_ARRAY),
                (&ids as _, Type::UUID_ARRAY),
            ];
            if !deliveries.is_empty() {
                params.push((&deliveries as _, Type::TEXT_ARRAY));
            }
            let columns = OnceLock::new();
            let take = |_: usize, row: tokio_postgres::Row| {
                Some(ReadColumns::once(&columns, &row).and_then(|at| at.row(&row)))
            };
            let found = connection
                .run_taking(WHAT, &[Statement { sql, params }], false, &take)
                .await?;
            for row in found.into_iter().flatten().flatten() {
                let row = row?;
                contents.insert(known(row.row_ref()), row);
            }
        }
        let read = |row: &Looked| match row.bytes {
            ..=TOO_LARGE => contents.remove(&row.row_ref()),
            bytes => Some(Row::Unreadable {
                row_ref: row.row_ref(),
                why: format!("it is {bytes} bytes, more than one read can return"),
            }),
        };
        for row in due.iter().chain(ready).filter_map(read) {
            let row_ref = row.row_ref();
            let is_new = match row_ref.table {
                Table::Ready => self.progress.lanes.take(row_ref.lane, row_ref.seq, row_ref.id.uuid()),
                Table::Waiting => self.waiting.take(row_ref),
            };
            if is_new {
                page.rows.push(row);
            }
        }
        Ok(())
    }
}

impl Looked {
    fn row_ref(&self) -> RowRef {
        RowRef {
            table: if self.sink.is_some() {
                Table::Waiting
            } else {
                Table::Ready
            },
            lane: self.lane,
            seq: self.seq,
            id: self.id.into(),
            sink: self.sink.as_deref().filter(|sink| !sink.is_empty()).map(Arc::from),
            locator: 0,
        }
    }
}

/// A place as it is known before its row is read.
fn known(row_ref: &RowRef) -> RowRef {
    RowRef {
        locator: 0,
        ..row_ref.clone()
    }
}

fn looked(row: &tokio_postgres::Row, sink: Option<String>) -> Result<Looked> {
    let bytes = named::<i64>(WHAT, row, "bytes")?;
    Ok(Looked {
        lane: named::<i16>(WHAT, row, "lane")?.unsigned_abs(),
        seq: named(WHAT, row, "seq")?,
        id: named(WHAT, row, "id")?,
        sink,
        bytes: usize::try_from(count(bytes)).unwrap_or(usize::MAX),
    })
}
