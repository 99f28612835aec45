//! The statements of lists: one for each table and direction, made of a store's `list.sql`, `listed.sql` and `list_next.sql`.

use super::{Direction, ListTable, Text};
use crate::columns::expand;
use crate::emit::{Dialect, Names};

/// What a store has for its lists.
#[derive(Debug)]
pub struct ListSources<'a> {
    /// The dialect.
    pub dialect: Dialect,
    /// `list.sql`, with the conditions that it shares with other statements.
    pub list: &'a str,
    /// `listed.sql`: a statement for each table.
    pub listed: &'a str,
    /// `list_next.sql`: a statement for each table.
    pub next: &'a str,
    /// By [`ListTable::index`], the condition that selects the lanes of a table, so that its index can be used; empty for
    /// a table without such an index.
    pub lanes: [&'a str; 4],
    /// The same for the lanes of one key, which is `{key}`. It has the key in any case, because the statement does.
    pub lanes_of_key: [&'a str; 4],
}

/// The statements of one table in one direction. They have numbered parameters, and on MySQL named ones.
#[derive(Debug)]
pub struct ListTexts {
    /// The first number at or after 1 (`:seq`).
    pub next: String,
    /// `list.sql`; 19 and 20 (`:first`, `:last`) are the lowest and the highest number.
    pub page: String,
    /// 1 and 2 (`:first`, `:last`) the numbers. How many rows there are, and when the oldest and the newest were created.
    pub looked: String,
    /// `page` in the lanes of one key: 21 (`:one_key`).
    pub page_of_key: String,
    /// `looked` in the lanes of one key: 3 (`:one_key`).
    pub looked_of_key: String,
    /// `list.sql` by the time when rows ended; 19 and 20 (`:at`, `:seq`) where to start, 21 (`:rows`) how many rows to
    /// look at.
    pub ended: String,
    /// 1 and 2 (`:at`, `:seq`) where to start, 3 (`:rows`) how many rows. How many there are, and the time and number of
    /// the last.
    pub looked_ended: String,
}

impl ListTexts {
    /// For all tables and directions, as [`ListTable::index`] and [`Direction::index`] count them.
    pub fn all(names: &Names, sources: &ListSources<'_>) -> [[Self; 2]; 4] {
        let directions = [Direction::NewestFirst, Direction::OldestFirst];
        ListTable::ALL.map(|table| directions.map(|direction| Self::new(names, sources, table, direction)))
    }

    /// All of them.
    pub fn statements(&self) -> [&str; 7] {
        [
            &self.next,
            &self.page,
            &self.looked,
            &self.page_of_key,
            &self.looked_of_key,
            &self.ended,
            &self.looked_ended,
        ]
    }

    fn new(names: &Names, sources: &ListSources<'_>, table: ListTable, direction: Direction) -> Self {
        let dialect = sources.dialect;
        let (beyond, sort, back, extreme) = match direction {
            Direction::NewestFirst => ("<=", "DESC", "ASC", "max"),
            Direction::OldestFirst => (">=", "ASC", "DESC", "min"),
        };
        let (name, ended) = match table {
            ListTable::Ready => ("outbox_message", "created_at"),
            ListTable::Waiting => ("outbox_waiting", "created_at"),
            ListTable::Dead => ("outbox_dead", "dead_at"),
            ListTable::Delivered => ("outbox_delivered", "delivered_at"),
        };
        let of_table = |text: &str| Text::split(&expand(dialect, text)).at(table.index()).to_owned();
        let parameter = |number: usize, name: &str| match dialect {
            Dialect::Postgres => format!("${number}"),
            Dialect::Mysql => format!(":{name}"),
            Dialect::Sqlite => format!("?{number}"),
        };
        let time = |column: &str| match dialect {
            Dialect::Mysql => format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column})"),
            _ => column.to_owned(),
        };

        let listed = of_table(sources.listed);
        let list = |rows: &str, order: &str| {
            let text = Text::split(&expand(dialect, sources.list)).first().to_owned();
            let text = text.replace("{listed}", &listed).replace("{looked}", rows);
            names.render(&text.replace("{order}", order))
        };
        // `from` is the number of the first of their parameters.
        let by_number = |from: usize| {
            let (first, last) = (parameter(from, "first"), parameter(from + 1, "last"));
            let lanes = and(sources.lanes[table.index()]);
            format!("WHERE {lanes}t.seq BETWEEN {first} AND {last}")
        };
        let of_key = |from: usize| {
            let (first, last) = (parameter(from, "first"), parameter(from + 1, "last"));
            let key = parameter(from + 2, "one_key");
            let lanes = and(&sources.lanes_of_key[table.index()].replace("{key}", &key));
            format!("WHERE {lanes}t.seq BETWEEN {first} AND {last}")
        };
        let by_end = |from: usize| {
            let (at, seq, rows) = (
                parameter(from, "at"),
                parameter(from + 1, "seq"),
                parameter(from + 2, "rows"),
            );
            let starts = match dialect {
                // Not as a pair: the server would compare pairs without the index.
                Dialect::Mysql => {
                    let at = format!("TIMESTAMPADD(MICROSECOND, {at}, TIMESTAMP'1970-01-01 00:00:00.000000')");
                    format!("t.{ended} {beyond} {at} AND (t.{ended} <> {at} OR t.seq {beyond} {seq})")
                }
                _ => format!("(t.{ended}, t.seq) {beyond} ({at}, {seq})"),
            };
            format!("WHERE {starts} ORDER BY t.{ended} {sort}, t.seq {sort} LIMIT {rows}")
        };
        let looked = |rows: &str| {
            let (oldest, newest) = (time("min(t.created_at)"), time("max(t.created_at)"));
            names.render(&format!("SELECT count(*), {oldest}, {newest} FROM {name} AS t {rows}"))
        };
        let by_seq = format!("a.seq {sort}");
        Self {
            next: names.render(
                &of_table(sources.next)
                    .replace("{extreme}", extreme)
                    .replace("{beyond}", beyond)
                    .replace("{direction}", sort),
            ),
            page: list(&by_number(19), &by_seq),
            looked: looked(&by_number(1)),
            page_of_key: list(&of_key(19), &by_seq),
            looked_of_key: looked(&of_key(1)),
            ended: list(&by_end(19), &format!("a.ended_at {sort}, a.seq {sort}")),
            looked_ended: names.render(&format!(
                "SELECT count(*) OVER (), {}, looked.seq FROM (\
                 SELECT t.{ended} AS ended_at, t.seq FROM {name} AS t {}) AS looked \
                 ORDER BY 2 {back}, 3 {back} LIMIT 1",
                time("looked.ended_at"),
                by_end(1),
            )),
        }
    }
}

fn and(condition: &str) -> String {
    match condition {
        "" => String::new(),
        condition => format!("{condition} AND "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(dialect: Dialect) -> ListTexts {
        let sources = ListSources {
            dialect,
            list: "-- A comment.\nSELECT a.seq FROM (\n{listed}\n) AS a ORDER BY {order}\n",
            listed: "SELECT 1;\nSELECT 2;\n-- Dead.\nSELECT t.seq FROM outbox_dead AS t\n{looked}\n;\nSELECT 4\n",
            next: "SELECT 1;\nSELECT 2;\nSELECT {extreme}(seq) FROM outbox_dead WHERE seq {beyond} 1;\nSELECT 4\n",
            lanes: ["", "", "t.lane = 1", ""],
            lanes_of_key: ["", "", "t.lane = lane({key})", ""],
        };
        let [_, _, [_, oldest_first], _] = ListTexts::all(&Names::default(), &sources);
        oldest_first
    }

    #[test]
    fn a_table_has_its_own_statement_with_its_parameters() {
        let texts = dead(Dialect::Postgres);
        assert_eq!(texts.next, "SELECT min(seq) FROM outbox_dead WHERE seq >= 1");
        assert_eq!(
            texts.page_of_key,
            "SELECT a.seq FROM (\nSELECT t.seq FROM outbox_dead AS t\nWHERE t.lane = lane($21) AND t.seq BETWEEN $19 AND \
             $20\n) AS a ORDER BY a.seq ASC"
        );
        assert_eq!(
            texts.looked,
            "SELECT count(*), min(t.created_at), max(t.created_at) FROM outbox_dead AS t WHERE t.lane = 1 AND t.seq \
             BETWEEN $1 AND $2"
        );
        assert!(
            texts
                .ended
                .contains("WHERE (t.dead_at, t.seq) >= ($19, $20) ORDER BY t.dead_at ASC")
        );
    }

    #[test]
    fn on_mysql_parameters_have_names_and_times_are_numbers() {
        let texts = dead(Dialect::Mysql);
        assert!(
            texts.page.contains("t.lane = 1 AND t.seq BETWEEN :first AND :last"),
            "{}",
            texts.page
        );
        assert!(
            texts
                .looked_ended
                .contains("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', looked.ended_at)")
                && texts
                    .looked_ended
                    .contains("OR t.seq >= :seq) ORDER BY t.dead_at ASC, t.seq ASC LIMIT :rows"),
            "{}",
            texts.looked_ended
        );
    }
}
