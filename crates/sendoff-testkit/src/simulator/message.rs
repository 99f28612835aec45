//! The messages of a simulation: where they go, and what is wrong with them.

use std::time::Duration;

use fastrand::Rng;

/// The sinks, by their numbers.
pub(super) const SINKS: [&str; 2] = ["a", "b"];

/// The ends of topics, each with the sinks that it is routed to. The beginning says what happens when a message fails.
const ROUTES: [(&str, &[usize]); 3] = [("x", &[0]), ("y", &[0, 1]), ("z", &[1])];
/// A topic that no relay routes.
const NOWHERE: &str = "nowhere.q";
/// A topic that only some relays route, in simulations where their routes differ.
pub(super) const SOMEWHERE: &str = "block.w";

/// What a message does to those who handle it, until it is healed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temper {
    /// Nothing.
    Usual,
    /// The sink refuses it so often for now.
    Flaky(u32),
    /// The sink refuses it for now, every time.
    Hopeless,
    /// The sink refuses it for good.
    Refused,
    /// The sink says once that it is too early.
    TooEarly,
    /// The relay dies that hands it to a sink.
    Poison,
    /// Its row cannot be read.
    Garbled,
}

/// A message to be emitted.
#[derive(Debug, Clone)]
pub struct Draft {
    pub(super) topic: String,
    pub(super) key: Option<String>,
    pub(super) temper: Temper,
    pub(super) priority: i16,
    pub(super) delay: Option<Duration>,
    pub(super) lives: Option<Duration>,
    pub(super) max_attempts: Option<u16>,
}

/// Which kinds of messages there are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kinds {
    pub(super) trouble: bool,
    pub(super) poison: bool,
    pub(super) garbled: bool,
    pub(super) schedules: bool,
    pub(super) unroutable: bool,
    pub(super) differs: bool,
    pub(super) keys: usize,
}

impl Draft {
    /// What it does to those who handle it.
    pub fn temper(&self) -> Temper {
        self.temper
    }

    pub(super) fn random(rng: &mut Rng, kinds: &Kinds) -> Self {
        let (policy, key) = if rng.u8(0..10) < 7 {
            let n = rng.usize(0..kinds.keys);
            let policy = ["block", "block", "skip", "park", "block"][n % 5];
            (policy, Some(format!("{policy}-{n}")))
        } else {
            (["block", "skip", "park"][rng.usize(0..3)], None)
        };
        let mut draft = Self {
            topic: format!("{policy}.{}", ROUTES[rng.usize(0..3)].0),
            temper: Temper::Usual,
            priority: if key.is_none() { rng.i16(-1..=1) } else { 0 },
            key,
            delay: None,
            lives: None,
            max_attempts: (rng.u8(0..8) == 0).then(|| rng.u16(1..6)),
        };
        if kinds.trouble {
            draft.temper = match rng.u8(0..100) {
                0..8 => Temper::Flaky(rng.u32(1..=3)),
                8..11 => Temper::Hopeless,
                11..14 => Temper::Refused,
                14..16 => Temper::TooEarly,
                16..18 if kinds.garbled && draft.key.is_none() => Temper::Garbled,
                _ => Temper::Usual,
            };
        }
        if kinds.schedules {
            match rng.u8(0..100) {
                0..8 => draft.delay = Some(Duration::from_millis(rng.u64(200..6000))),
                8..12 => draft.lives = Some(Duration::from_millis(rng.u64(100..8000))),
                _ => {}
            }
        }
        if draft.key.is_none() && draft.temper == Temper::Usual {
            match rng.u8(0..100) {
                0..4 if kinds.unroutable => draft.topic = NOWHERE.to_owned(),
                0..20 if kinds.differs => draft.topic = SOMEWHERE.to_owned(),
                _ => {}
            }
        }
        let is_blocking = draft.key.as_ref().is_some_and(|key| key.starts_with("block"));
        if kinds.differs && is_blocking && draft.temper == Temper::Usual && rng.u8(0..100) < 15 {
            draft.topic = SOMEWHERE.to_owned();
        }
        draft
    }

    /// The sinks that it is for.
    pub(super) fn sinks(&self) -> &'static [usize] {
        if self.topic == SOMEWHERE {
            return &[0];
        }
        let route = ROUTES
            .iter()
            .find(|(end, _)| self.topic != NOWHERE && self.topic.ends_with(end));
        route.map_or(&[], |(_, sinks)| sinks)
    }

    /// Whether messages behind it in its key need not wait for it, whatever happens.
    pub(super) fn lets_others_pass(&self) -> bool {
        self.topic.starts_with("park") || self.delay.is_some() || self.temper == Temper::Garbled
    }
}

/// The patterns of routes, each with its sinks.
pub(super) fn routes() -> impl Iterator<Item = (String, Vec<&'static str>)> {
    ROUTES.iter().map(|(end, sinks)| {
        let names = sinks.iter().map(|sink| SINKS[*sink]).collect();
        (format!("*.{end}"), names)
    })
}
