//! Whether others keep the machine busy while something is measured.

use std::collections::{HashMap, HashSet};
use std::os::unix::process::parent_id;

/// From this part of the machine's time on that others take, or that its host does not give, figures say little.
const BUSY: f64 = 0.15;
/// Hundredths of a second, of all processors together, below which a share says nothing.
const SHORTEST: u64 = 50;

/// How much time the processors had given, and to whom, at a moment. In hundredths of a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// All of it, idle or not.
    all: u64,
    /// What ran, and what the host took away. Interrupts are left out: nobody knows whose they are.
    used: u64,
    /// What ran here: this program, the one that started it, and all that both have started, servers included.
    ours: u64,
}

impl Moment {
    /// `None` where the system does not tell.
    pub(crate) fn now() -> Option<Self> {
        let (all, used) = processors(&std::fs::read_to_string("/proc/stat").ok()?)?;
        let ours = family(parent_id(), &processes());
        Some(Self { all, used, ours })
    }

    /// What part of the machine's time went to others between two moments.
    fn others_until(&self, later: &Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all >= SHORTEST)?;
        let used = later.used.saturating_sub(self.used);
        let others = used.saturating_sub(later.ours.saturating_sub(self.ours));
        Some(others as f64 / all as f64)
    }
}

/// Looks at the machine from one figure to the next.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    since: Option<Moment>,
    others: f64,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            since: Moment::now(),
            others: 0.0,
        }
    }

    /// The part of the machine that others had since the last look, if that is too much. Figures that are told one right
    /// after the other were measured together.
    pub(crate) fn look(&mut self) -> Option<f64> {
        if let (Some(since), Some(now)) = (self.since, Moment::now())
            && let Some(others) = since.others_until(&now)
        {
            self.since = Some(now);
            self.others = others;
        }
        too_much(self.others)
    }
}

/// The same since a moment.
pub(crate) fn since(moment: Option<Moment>) -> Option<f64> {
    too_much(moment?.others_until(&Moment::now()?)?)
}

fn too_much(others: f64) -> Option<f64> {
    (others >= BUSY).then_some(others)
}

/// In words.
pub(crate) fn words(others: f64) -> String {
    format!(
        "the machine was busy: {:.0} % of its time went to others; measure again when nothing else runs",
        others * 100.0
    )
}

/// All time, and what was used, in the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn processors(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|time| time.parse().ok())
        .collect();
    let [user, nice, system, .., steal] = times[..] else {
        return None;
    };
    (times.len() == 8).then(|| (times.iter().sum(), user + nice + system + steal))
}

/// By process: its parent, and the time that it and those of its children that have ended took.
fn processes() -> HashMap<u32, (u32, u64)> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let process = |folder: std::fs::DirEntry| {
        let pid = folder.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(folder.path().join("stat")).ok()?;
        Some((pid, of_process(&stat)?))
    };
    folders.filter_map(process).collect()
}

fn of_process(stat: &str) -> Option<(u32, u64)> {
    // Behind the name, which may have anything in it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let times = fields.get(11..15)?.iter().map(|time| time.parse::<u64>().ok());
    Some((fields.get(1)?.parse().ok()?, times.sum::<Option<u64>>()?))
}

/// What a process and all that come from it took.
fn family(head: u32, processes: &HashMap<u32, (u32, u64)>) -> u64 {
    let (mut known, mut grows) = (HashSet::from([head]), true);
    while grows {
        let before = known.len();
        let children = processes.iter().filter(|(_, (parent, _))| known.contains(parent));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        known.extend(children);
        grows = known.len() > before;
    }
    let times = known.iter().filter_map(|pid| processes.get(pid));
    times.map(|(_, time)| time).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_kernel_writes_them() {
        let stat = "cpu  100 10 50 800 20 5 5 10 0 0\ncpu0 1 2 3\n";
        assert_eq!(processors(stat), Some((1000, 170)));
        assert_eq!(processors("cpu  1 2\n"), None);
        let stat = "7 (a) b) S 3 7 7 0 -1 4194304 1 1 1 1 10 20 30 40 20 0 1 0 5";
        assert_eq!(of_process(stat), Some((3, 100)));
    }

    #[test]
    fn a_family_is_all_that_come_from_one() {
        let processes = HashMap::from([
            (1, (0, 1)),
            (5, (1, 10)),
            (6, (5, 100)),
            (7, (6, 1000)),
            (8, (1, 10_000)),
        ]);
        assert_eq!(family(5, &processes), 1110);
    }

    #[test]
    fn what_others_take_makes_a_machine_busy_and_what_we_take_does_not() {
        let begin = Moment {
            all: 0,
            used: 0,
            ours: 0,
        };
        let end = |used, ours| Moment { all: 1000, used, ours };
        assert_eq!(begin.others_until(&end(900, 900)).and_then(too_much), None);
        assert_eq!(begin.others_until(&end(900, 800)).and_then(too_much), None);
        assert_eq!(begin.others_until(&end(900, 500)).and_then(too_much), Some(0.4));
        let soon = Moment {
            all: 10,
            used: 10,
            ours: 0,
        };
        assert_eq!(begin.others_until(&soon), None);
    }

    #[test]
    fn the_time_of_this_process_is_its_own() {
        let since = Moment::now().unwrap();
        let begun = crate::cpu::used().unwrap();
        let mut number = 1_u64;
        while crate::cpu::used().unwrap() - begun < std::time::Duration::from_millis(300) {
            for _ in 0..100_000 {
                number = std::hint::black_box(number.wrapping_mul(31));
            }
        }
        let now = Moment::now().unwrap();
        assert!(now.ours - since.ours >= 20, "{since:?} {now:?}");
        assert!(now.used >= since.used && now.all > since.all, "{since:?} {now:?}");
    }
}
