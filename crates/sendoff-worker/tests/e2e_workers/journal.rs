//! What worker processes write down, line by line: a file outlives the process that wrote it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use sendoff::store::{Claim, Job};

/// What happened to a hand-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The process was handed it.
    Handed,
    /// The store took its mark of success.
    Finished,
    /// The store refused its mark: the lease was lost.
    Refused,
}

impl Event {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Handed, "handed"),
        (Self::Finished, "finished"),
        (Self::Refused, "refused"),
    ];
}

/// The journal of one process.
pub(crate) struct Journal(File);

impl Journal {
    pub(crate) fn open(path: &Path) -> Self {
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    /// Writes down jobs that were handed out, with the attempt that it was.
    pub(crate) fn note_handed<'a>(&self, jobs: impl IntoIterator<Item = &'a Job>) {
        let lines = jobs.into_iter().map(|job| {
            let Claim { seq, number } = job.claim;
            format!("handed {seq} {number} {}\n", job.attempt)
        });
        (&self.0).write_all(lines.collect::<String>().as_bytes()).unwrap();
    }

    /// Writes these down at once: when it returns, no kill undoes it.
    pub(crate) fn note(&self, event: Event, claims: impl IntoIterator<Item = Claim>) {
        let word = Event::ALL.iter().find(|(of, _)| *of == event).unwrap().1;
        let lines = claims
            .into_iter()
            .map(|Claim { seq, number }| format!("{word} {seq} {number} 0\n"));
        (&self.0).write_all(lines.collect::<String>().as_bytes()).unwrap();
    }
}

/// Everything in all journals of a folder. A kill may have cut a last line short: it was not written yet.
pub(crate) fn read_all(folder: &Path) -> Vec<(Event, Claim, i64)> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut events = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        events.extend(whole.lines().map(parse));
    }
    events
}

fn parse(line: &str) -> (Event, Claim, i64) {
    let mut words = line.split(' ');
    let word = words.next().unwrap();
    let event = Event::ALL.iter().find(|(_, of)| *of == word).unwrap().0;
    let mut number = || words.next().unwrap().parse().unwrap();
    let claim = Claim {
        seq: number(),
        number: number(),
    };
    (event, claim, number())
}
