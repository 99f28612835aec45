//! The statements of lists: one for each table and direction.

use sendoff::emit::Names;
use sendoff::store::{Direction, ListTable};

const LISTED: &str = include_str!("../../sql/listed.sql");
const LIST: &str = include_str!("../../sql/list.sql");
const LIST_NEXT: &str = include_str!("../../sql/list_next.sql");

/// The primary keys of waiting and dead rows start with the lane.
const LANES: &str = "t.lane IN (SELECT lane FROM outbox_lane) AND ";

/// Where to start, as a time of the server.
const AT: &str = "TIMESTAMPADD(MICROSECOND, :at, TIMESTAMP'1970-01-01 00:00:00.000000')";

/// The statements of one table in one direction.
#[derive(Debug)]
pub(crate) struct ListTexts {
    /// The first number at or after :seq.
    pub(crate) next: String,
    /// `list.sql`; :first and :last are the lowest and the highest number.
    pub(crate) page: String,
    /// The same numbers. How many rows there are, and when the oldest and the newest were created.
    pub(crate) looked: String,
    /// `list.sql` by the time when rows ended; :at and :seq where to start, :rows how many rows to look at.
    pub(crate) ended: String,
    /// The same. How many there are, and the time and number of the last.
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
            ListTable::Ready => ("outbox_message", "t.lane <= 80 AND ", "created_at"),
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
        let by_number = format!("WHERE {lanes}t.seq BETWEEN :first AND :last");
        // Not as a pair: the server would compare pairs without the index.
        let by_end = format!(
            "WHERE t.{ended} {beyond} {AT} AND (t.{ended} <> {AT} OR t.seq {beyond} :seq) \
             ORDER BY t.{ended} {sort}, t.seq {sort} LIMIT :rows"
        );
        Self {
            next: names.render(
                &statement(&without_comments(LIST_NEXT))
                    .replace("{extreme}", extreme)
                    .replace("{beyond}", beyond)
                    .replace("{direction}", sort),
            ),
            page: list(&by_number, &format!("a.seq {sort}")),
            looked: names.render(&format!(
                "SELECT count(*), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', min(t.created_at)), \
                 TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max(t.created_at)) FROM {name} AS t {by_number}"
            )),
            ended: list(&by_end, &format!("a.ended_at {sort}, a.seq {sort}")),
            looked_ended: names.render(&format!(
                "SELECT count(*) OVER (), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', looked.ended_at), looked.seq FROM (\
                 SELECT t.{ended} AS ended_at, t.seq FROM {name} AS t {by_end}) AS looked \
                 ORDER BY 2 {back}, 3 {back} LIMIT 1",
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
