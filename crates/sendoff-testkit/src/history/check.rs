//! The judge of a history.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use super::{Fate, History, Sent};

/// What is wrong with a history; empty lists when nothing is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Committed, and neither arrived nor dead.
    pub lost: Vec<Sent>,
    /// Arrived, and never committed.
    pub phantoms: Vec<Sent>,
    /// Arrived in the wrong order.
    pub inversions: Vec<Inversion>,
    /// Arrived again: one entry for every copy after the first.
    pub duplicates: Vec<Sent>,
}

/// Two messages of one key that first arrived in the wrong order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inversion {
    /// It arrived too early,
    pub early: Sent,
    /// because this one had committed before it was emitted, and arrived later.
    pub late: Sent,
}

impl Findings {
    /// Whether nothing was lost, invented or reordered. Duplicates are counted by the caller, who knows how many a
    /// crash may have caused.
    pub fn is_sound(&self) -> bool {
        self.lost.is_empty() && self.phantoms.is_empty() && self.inversions.is_empty()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let few = |sent: &[Sent]| {
            let names: Vec<String> = sent
                .iter()
                .take(5)
                .map(|sent| format!("{}#{}", sent.key, sent.n))
                .collect();
            names.join(" ")
        };
        write!(f, "lost {} [{}], ", self.lost.len(), few(&self.lost))?;
        write!(f, "phantoms {} [{}], ", self.phantoms.len(), few(&self.phantoms))?;
        let pairs: Vec<String> = self
            .inversions
            .iter()
            .take(5)
            .map(|pair| format!("{}: #{} before #{}", pair.early.key, pair.early.n, pair.late.n))
            .collect();
        write!(f, "inversions {} [{}], ", self.inversions.len(), pairs.join(", "))?;
        write!(f, "duplicates {}", self.duplicates.len())
    }
}

/// When a message was emitted: two are in order when one had ended before the other began, or, in one transaction, by
/// their place in it. Otherwise the database may have committed them either way.
#[derive(Debug, Clone, Copy)]
struct Span {
    began: u64,
    ended: u64,
    place: usize,
}

impl Span {
    fn is_before(self, other: Self) -> bool {
        self.ended < other.began || (self.began == other.began && self.place < other.place)
    }
}

impl History {
    /// Judges it.
    pub fn check(&self) -> Findings {
        let mut findings = Findings::default();
        let (mut spans, mut committed) = (HashMap::new(), Vec::new());
        for ended in self.transactions.iter().filter(|ended| ended.fate != Fate::RolledBack) {
            // A commit without an answer may take effect at any later time.
            let known = if ended.fate == Fate::Unknown {
                u64::MAX
            } else {
                ended.ended
            };
            for (place, sent) in ended.messages.iter().enumerate() {
                let span = Span {
                    began: ended.began,
                    ended: known,
                    place,
                };
                spans.insert(sent, span);
                if ended.fate == Fate::Committed {
                    committed.push(sent);
                }
            }
        }
        let (mut arrived, mut by_key) = (HashSet::new(), BTreeMap::<&str, Vec<(&Sent, Span)>>::new());
        for sent in &self.arrivals {
            if !arrived.insert(sent) {
                findings.duplicates.push(sent.clone());
            } else if let Some(span) = spans.get(sent) {
                by_key.entry(&sent.key).or_default().push((sent, *span));
            } else {
                findings.phantoms.push(sent.clone());
            }
        }
        let dead: HashSet<&Sent> = self.dead.iter().collect();
        findings.lost = committed
            .into_iter()
            .filter(|sent| !arrived.contains(sent) && !dead.contains(sent))
            .cloned()
            .collect();
        for arrivals in by_key.values() {
            inversions(arrivals, &mut findings.inversions);
        }
        findings
    }
}

/// Finds, for each message, one that arrived behind it and should have come before: at most one, because after a single
/// slip everything behind it is out of place.
fn inversions(arrivals: &[(&Sent, Span)], found: &mut Vec<Inversion>) {
    // From the last to the first, the earliest end so far is the one most likely to be in the wrong place.
    let mut earliest: Option<(&Sent, Span)> = None;
    // Of each transaction, the lowest place so far.
    let mut lowest: HashMap<u64, (&Sent, Span)> = HashMap::new();
    for (sent, span) in arrivals.iter().rev() {
        let candidates = [earliest, lowest.get(&span.began).copied()];
        let late = candidates.into_iter().flatten().find(|(_, late)| late.is_before(*span));
        if let Some((late, _)) = late {
            found.push(Inversion {
                early: (*sent).clone(),
                late: late.clone(),
            });
        }
        if earliest.is_none_or(|(_, other)| span.ended < other.ended) {
            earliest = Some((sent, *span));
        }
        let low = lowest.entry(span.began).or_insert((sent, *span));
        if span.place < low.1.place {
            *low = (sent, *span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ended, Recorder};
    use super::*;

    fn sent(n: u64) -> Sent {
        Sent::new("k", n)
    }

    /// One transaction after the other, each with one message of the key `k`.
    fn in_turn(fates: &[Fate], arrivals: &[u64]) -> Findings {
        let step = |n: usize| n as u64;
        let transactions = (0..).zip(fates).map(|(n, fate)| Ended {
            began: step(2 * n),
            ended: step(2 * n + 1),
            fate: *fate,
            messages: vec![sent(step(n))],
        });
        let history = History {
            transactions: transactions.collect(),
            arrivals: arrivals.iter().copied().map(sent).collect(),
            dead: Vec::new(),
        };
        history.check()
    }

    const C: Fate = Fate::Committed;

    #[test]
    fn what_arrives_once_and_in_order_is_sound() {
        let findings = in_turn(&[C, Fate::RolledBack, C], &[0, 2]);
        assert_eq!(findings, Findings::default());
        assert!(findings.is_sound());
    }

    #[test]
    fn a_committed_message_that_never_arrives_is_lost() {
        let findings = in_turn(&[C, C], &[0]);
        assert_eq!(findings.lost, [sent(1)]);
        assert!(!findings.is_sound());
    }

    #[test]
    fn a_dead_letter_is_not_lost() {
        let recorder = Recorder::new();
        let mut tx = recorder.begin();
        tx.emit(sent(0));
        tx.committed();
        assert_eq!(recorder.history().check().lost, [sent(0)]);
        recorder.died(sent(0));
        assert!(recorder.history().check().is_sound());
    }

    #[test]
    fn a_message_of_a_rolled_back_or_unheard_of_transaction_is_a_phantom() {
        assert_eq!(in_turn(&[Fate::RolledBack], &[0]).phantoms, [sent(0)]);
        assert_eq!(in_turn(&[C], &[0, 7]).phantoms, [sent(7)]);
    }

    #[test]
    fn an_unknown_commit_may_or_may_not_arrive() {
        assert!(in_turn(&[Fate::Unknown], &[]).is_sound());
        assert!(in_turn(&[Fate::Unknown], &[0]).is_sound());
    }

    #[test]
    fn an_unknown_commit_may_come_late_but_not_before_what_had_committed() {
        assert!(in_turn(&[Fate::Unknown, C], &[1, 0]).is_sound());
        assert!(!in_turn(&[C, Fate::Unknown], &[1, 0]).is_sound());
    }

    #[test]
    fn a_later_message_that_arrives_first_is_an_inversion() {
        let findings = in_turn(&[C, C, C], &[0, 2, 1]);
        assert_eq!(
            findings.inversions,
            [Inversion {
                early: sent(2),
                late: sent(1)
            }]
        );
    }

    #[test]
    fn a_slip_is_found_however_far_apart_the_two_are() {
        let mut arrivals: Vec<u64> = (1..100).collect();
        arrivals.push(0);
        assert_eq!(in_turn(&[C; 100], &arrivals).inversions.len(), 99);
    }

    #[test]
    fn a_second_copy_is_a_duplicate_and_no_inversion() {
        let findings = in_turn(&[C, C], &[0, 1, 0, 1]);
        assert_eq!(findings.duplicates, [sent(0), sent(1)]);
        assert!(findings.is_sound());
    }

    #[test]
    fn transactions_that_overlap_may_arrive_either_way() {
        for arrivals in [[0, 1], [1, 0]] {
            let recorder = Recorder::new();
            let (mut one, mut other) = (recorder.begin(), recorder.begin());
            one.emit(sent(0));
            other.emit(sent(1));
            other.committed();
            one.committed();
            for n in arrivals {
                recorder.arrived(sent(n));
            }
            assert!(recorder.history().check().is_sound());
        }
    }

    #[test]
    fn messages_of_one_transaction_arrive_in_the_order_they_were_emitted() {
        let recorder = Recorder::new();
        let mut tx = recorder.begin();
        for n in 0..3 {
            tx.emit(sent(n));
        }
        tx.committed();
        for n in [0, 2, 1] {
            recorder.arrived(sent(n));
        }
        assert_eq!(recorder.history().check().inversions.len(), 1);
    }

    #[test]
    fn other_keys_do_not_matter() {
        let recorder = Recorder::new();
        for key in ["a", "b"] {
            let mut tx = recorder.begin();
            tx.emit(Sent::new(key, 0));
            tx.committed();
        }
        for key in ["b", "a"] {
            recorder.arrived(Sent::new(key, 0));
        }
        assert!(recorder.history().check().is_sound());
    }

    proptest::proptest! {
        /// Against a judge that compares every two arrivals.
        #[test]
        fn the_quick_judge_and_the_slow_one_agree(
            spans in proptest::collection::vec((0_u64..40, 1_u64..6, 1_usize..3), 1..12),
            shuffle in proptest::prelude::any::<u64>(),
        ) {
            let (mut transactions, mut n) = (Vec::new(), 0);
            for (i, (began, length, count)) in spans.iter().enumerate() {
                // Steps are unique in a real history.
                let began = began * 100 + i as u64;
                let messages = (n..n + *count as u64).map(sent).collect();
                n += *count as u64;
                transactions.push(Ended { began, ended: began + length * 100 + 50, fate: C, messages });
            }
            let mut arrivals: Vec<Sent> = (0..n).map(sent).collect();
            fastrand::Rng::with_seed(shuffle).shuffle(&mut arrivals);
            let span = |sent: &Sent| {
                let of = |ended: &&Ended| ended.messages.contains(sent);
                let ended = transactions.iter().find(of).unwrap();
                let place = ended.messages.iter().position(|other| other == sent).unwrap();
                Span { began: ended.began, ended: ended.ended, place }
            };
            let slow: Vec<bool> = (0..arrivals.len())
                .map(|at| arrivals[at + 1..].iter().any(|late| span(late).is_before(span(&arrivals[at]))))
                .collect();
            let history = History { transactions: transactions.clone(), arrivals: arrivals.clone(), dead: vec![] };
            let quick = history.check();
            for (sent, inverted) in arrivals.iter().zip(slow) {
                proptest::prop_assert_eq!(quick.inversions.iter().any(|pair| pair.early == *sent), inverted);
            }
        }
    }
}
