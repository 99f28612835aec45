//! The proof at the end: compares the shop's own record of its transactions with the messages that the handlers took
//! and with those still in the outbox's tables.

use std::collections::{HashMap, HashSet};

use sendoff::Uuid;
use sendoff::store::Status;
use serde::Serialize;

use super::fit;
use super::record::Notes;
use crate::output::Paint;

/// The result of the comparison, counted in messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Proof {
    /// Of transactions that committed.
    committed: u64,
    /// Of transactions that were rolled back.
    rolled_back: u64,
    /// Committed, and taken by a handler.
    delivered: u64,
    /// Committed, not taken yet, and still in the tables.
    waiting: u64,
    /// Committed, not taken, and a dead letter.
    dead: u64,
    /// Committed, and neither delivered, nor waiting, nor dead.
    lost: u64,
    /// Not committed, but seen by a handler or found in the tables.
    phantom: u64,
    /// Taken again, with the same id.
    #[serde(skip)]
    copies: u64,
    /// Taken before an earlier message of the same customer.
    #[serde(skip)]
    out_of_order: u64,
    #[serde(skip)]
    relays_killed: u64,
    /// Transactions that committed.
    #[serde(skip)]
    orders: u64,
    /// Rows in the shop's own table.
    #[serde(skip)]
    rows: u64,
}

impl Proof {
    /// Compares. `stored` is what the outbox's tables hold, `rows` how many orders the shop's own table holds.
    pub(super) fn of(notes: &Notes, stored: &[(Uuid, Status)], rows: u64) -> Self {
        let arrived: HashSet<Uuid> = notes.arrived.iter().copied().collect();
        let tables: HashMap<Uuid, Status> = stored.iter().copied().collect();
        let mut proof = Self {
            committed: notes.committed.len() as u64,
            rolled_back: notes.rolled_back.len() as u64,
            copies: notes.copies,
            out_of_order: out_of_order(notes),
            relays_killed: notes.relays_killed,
            orders: notes.orders,
            rows,
            ..Self::default()
        };
        for id in notes.committed.keys() {
            *match (arrived.contains(id), tables.get(id)) {
                (true, _) => &mut proof.delivered,
                (false, Some(Status::Dead)) => &mut proof.dead,
                // The demo keeps no delivered messages, so a row with this status that never arrived is lost.
                (false, Some(Status::Delivered) | None) => &mut proof.lost,
                (false, Some(_)) => &mut proof.waiting,
            } += 1;
        }
        let everywhere: HashSet<&Uuid> = notes.seen.iter().chain(&notes.arrived).chain(tables.keys()).collect();
        let phantoms = everywhere.iter().filter(|id| !notes.committed.contains_key(id));
        proof.phantom = phantoms.count() as u64;
        proof
    }

    /// Whether the proof holds.
    pub(super) fn holds(&self) -> bool {
        self.lost == 0 && self.phantom == 0 && self.out_of_order == 0 && self.orders == self.rows
    }

    /// The proof as text, for a terminal with this many columns.
    pub(super) fn told(&self, paint: Paint, columns: usize) -> String {
        let title = "The proof: the shop's own record of its transactions against what arrived";
        let mut text = String::new();
        for line in fit::wrap(title, columns) {
            text += &format!("{}\n", paint.bold(line));
        }
        text.push('\n');
        for (name, count, words) in [
            ("committed", self.committed, "messages of transactions that committed"),
            ("delivered", self.delivered, "of these, taken by a handler"),
            ("waiting", self.waiting, "of these, still in the outbox"),
            (
                "dead",
                self.dead,
                "of these, given up; kept with the reason, can be retried",
            ),
            ("lost", self.lost, "of these, gone"),
            (
                "rolled back",
                self.rolled_back,
                "messages of transactions that were rolled back",
            ),
            (
                "phantom",
                self.phantom,
                "of these, seen by a handler or left in a table",
            ),
        ] {
            let start = format!("  {name:<12} {:>10}", grouped(count));
            text += &fit::beside(&start, words, paint, columns);
        }
        text.push('\n');
        let committed = format!(
            "{} committed = {} delivered + {} waiting + {} dead",
            grouped(self.committed),
            grouped(self.delivered),
            grouped(self.waiting),
            grouped(self.dead)
        );
        let rows = format!(
            "the shop's own table holds {} orders, one for each transaction that committed",
            grouped(self.rows)
        );
        for (holds, words) in [
            (self.lost == 0, committed.as_str()),
            (self.phantom == 0, "nothing of a rolled-back transaction ever left"),
            (
                self.out_of_order == 0,
                "the messages of every customer first arrived in the order they were committed",
            ),
            (self.orders == self.rows, &rows),
        ] {
            let mark = if holds { paint.good("✓") } else { paint.bad("✗") };
            text += &marked(&mark, words, columns);
        }
        let killed = format!(
            "relays killed: {}; messages delivered again because of that, with the same id: {}",
            self.relays_killed,
            grouped(self.copies)
        );
        text + &marked("·", &killed, columns)
    }
}

/// Words after a mark of one column, wrapped below themselves.
fn marked(mark: &str, words: &str, columns: usize) -> String {
    let lines = fit::wrap(words, columns.saturating_sub(4));
    format!("  {mark} {}\n", lines.join("\n    "))
}

/// How many messages of a key were taken after one that was committed later.
fn out_of_order(notes: &Notes) -> u64 {
    let mut latest: HashMap<&str, u64> = HashMap::new();
    let mut late = 0;
    for id in &notes.arrived {
        let Some(message) = notes.committed.get(id) else {
            continue;
        };
        let Some(key) = message.key.as_deref() else { continue };
        let last = latest.entry(key).or_insert(message.at);
        if message.at < *last {
            late += 1;
        }
        *last = message.at.max(*last);
    }
    late
}

/// A number with its digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::record::Record;
    use super::*;

    fn ids<const N: usize>() -> [Uuid; N] {
        std::array::from_fn(|_| Uuid::now_v7())
    }

    fn committed(record: &Record, number: u64, id: Uuid) {
        record.committed(number, vec![(id, Some("k".to_owned()))], String::new());
    }

    #[test]
    fn committed_messages_are_delivered_waiting_or_dead() {
        let record = Record::default();
        let [taken, waits, died, rolled] = ids();
        for (number, id) in [taken, waits, died].into_iter().enumerate() {
            committed(&record, number as u64, id);
        }
        record.rolled_back(vec![rolled], String::new());
        record.seen(taken);
        record.arrived(taken, String::new());
        let stored = [(waits, Status::Retry), (died, Status::Dead)];
        let proof = Proof::of(&record.notes(), &stored, 3);
        assert_eq!(
            serde_json::to_string(&proof).unwrap(),
            r#"{"committed":3,"rolled_back":1,"delivered":1,"waiting":1,"dead":1,"lost":0,"phantom":0}"#
        );
        assert!(proof.holds());
    }

    #[test]
    fn a_committed_message_that_is_nowhere_is_lost() {
        let record = Record::default();
        let [gone, pretended] = ids();
        committed(&record, 1, gone);
        committed(&record, 2, pretended);
        let proof = Proof::of(&record.notes(), &[(pretended, Status::Delivered)], 2);
        assert_eq!(proof.lost, 2);
        assert!(!proof.holds());
    }

    #[test]
    fn a_rolled_back_or_unknown_message_anywhere_is_a_phantom() {
        let record = Record::default();
        let [seen, stored, arrived] = ids();
        record.rolled_back(vec![seen, stored], String::new());
        record.seen(seen);
        record.arrived(arrived, String::new());
        let proof = Proof::of(&record.notes(), &[(stored, Status::Pending)], 0);
        assert_eq!(proof.phantom, 3);
        assert!(!proof.holds());
    }

    #[test]
    fn a_message_taken_before_an_earlier_one_of_its_key_is_out_of_order() {
        let record = Record::default();
        let [first, second] = ids();
        committed(&record, 1, first);
        committed(&record, 2, second);
        for id in [second, first, second] {
            record.arrived(id, String::new());
        }
        let proof = Proof::of(&record.notes(), &[], 2);
        assert_eq!((proof.out_of_order, proof.copies), (1, 1));
        assert!(!proof.holds());
    }

    #[test]
    fn orders_that_the_table_lacks_break_the_proof() {
        let record = Record::default();
        let [id] = ids();
        committed(&record, 1, id);
        record.arrived(id, String::new());
        assert!(!Proof::of(&record.notes(), &[], 0).holds());
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1 000", "1 234 567"]
        );
    }
}
