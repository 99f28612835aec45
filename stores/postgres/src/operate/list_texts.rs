//! The statements of lists: one for each table and direction.

use sendoff::emit::Names;
use sendoff::store::{Direction, ListTable};

const LISTED: &str = include_str!("../../sql/listed.sql");
const LIST: &str = include_str!("../../sql/list.sql");
const LIST_NEXT: &str = include_str!("../../sql/list_next.sql");

/// The lanes of the ready table; see `list_next.sql`.
const READY_LANES: &str = "t.lane = ANY (ARRAY(SELECT lane FROM outbox_lane UNION ALL \
    SELECT DISTINCT lane FROM outbox_message WHERE lane < 0 OR lane > 79)) AND ";
const LANES: &str = "t.lane = ANY (ARRAY(SELECT lane FROM outbox_lane)) AND ";

/// The statements of one table in one direction.
#[derive(Debug)]
pub(crate) struct ListTexts {
    /// $1 a number: the first number at or after it.
    pub(crate) next: String,
    /// `list.sql`; $19 and $20 the lowest and the highest number.
    pub(crate) page: String,
    /// $1 and $2 as before. How many rows there are, and when the oldest and the newest were created.
    pub(crate) looked: String,
    /// `list.sql` by the time when rows ended; $19 and $20 where to start, $21 how many rows to look at.
    pub(crate) ended: String,
    /// $1 and $2 where to start, $3 how many rows. How many there are, and the time and number of the last.
    pub(crate) looked_ended: String,
}

impl ListTexts {
    /// For all tables and directions, as [`ListTable::index`] and [`Direction::index`] count them.
    pub(crate) fn all(names: &Names) -> [[Self; 2]; 4] {
        ListTable::ALL.map(|table| {
            [Direction::NewestFirst, Direction::OldestFirst].map(|direction| Self::new(names, table, direction))
        })
    }

    fn new(names: &Names, table: ListTable, direction: Direction) -> Self {
        let (beyond, sort, extreme) = match direction {
            Direction::NewestFirst => ("<=", "DESC", "max"),
            Direction::OldestFirst => (">=", "ASC", "min"),
        };
        let (name, lanes, ended) = match table {
            ListTable::Ready => ("outbox_message", READY_LANES, "created_at"),
            ListTable::Waiting => ("outbox_waiting", LANES, "created_at"),
            ListTable::Dead => ("outbox_dead", LANES, "dead_at"),
            ListTable::Delivered => ("outbox_delivered", "", "delivered_at"),
        };
        let statement = |text: &str| text.split(';').nth(table.index()).unwrap_or_default().trim().to_owned();
        let listed = statement(&without_comments(LISTED));
        let list = |looked: &str, order: &str| {
            let text = crate::texts::whole(LIST);
            let text = without_comments(&text)
                .replace("{listed}", &listed)
                .replace("{looked}", looked)
                .replace("{order}", order);
            names.render(&text)
        };
        let by_number = |first: &str, last: &str| format!("WHERE {lanes}t.seq BETWEEN {first} AND {last}");
        let by_end = |at: &str, seq: &str, most: &str| {
            format!(
                "WHERE (t.{ended}, t.seq) {beyond} ({at}, {seq}) ORDER BY t.{ended} {sort}, t.seq {sort} LIMIT {most}"
            )
        };
        Self {
            next: names.render(
                &statement(&without_comments(LIST_NEXT))
                    .replace("{extreme}", extreme)
                    .replace("{beyond}", beyond)
                    .replace("{direction}", sort),
            ),
            page: list(&by_number("$19", "$20"), &format!("a.seq {sort}")),
            looked: names.render(&format!(
                "SELECT count(*), min(t.created_at), max(t.created_at) FROM {name} AS t {}",
                by_number("$1", "$2")
            )),
            ended: list(
                &by_end("$19", "$20", "$21"),
                &format!("a.ended_at {sort}, a.seq {sort}"),
            ),
            looked_ended: names.render(&format!(
                "SELECT count(*) OVER (), looked.ended_at, looked.seq FROM (\
                 SELECT t.{ended} AS ended_at, t.seq FROM {name} AS t {}) AS looked \
                 ORDER BY 2 {back}, 3 {back} LIMIT 1",
                by_end("$1", "$2", "$3"),
                back = opposite(direction),
            )),
        }
    }
}

fn opposite(direction: Direction) -> &'static str {
    match direction {
        Direction::NewestFirst => "ASC",
        Direction::OldestFirst => "DESC",
    }
}

fn without_comments(sql: &str) -> String {
    let lines = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
    lines.flat_map(|line| [line, "\n"]).collect()
}
