//! Calls of tasks in Django, Rust and SQL, and the expected result of each at a worker. Every call that is captured in
//! `sinks/celery/tests/fixtures` is here.

mod bodies;
mod caller;
mod canvas;
pub(crate) mod check;
pub(crate) mod emit;
mod metadata;
mod pattern;
mod places;
mod plain;
mod scenario;
mod times;
mod values;

pub(crate) use caller::Caller;
use caller::{iso8601, system};
use pattern::{Known, fits};
pub(crate) use scenario::{Producer, Scenario, Then, When};
use scenario::{first, scenario};

/// All of them.
pub(crate) fn table() -> Vec<Scenario> {
    let parts = [
        plain::scenarios(),
        metadata::scenarios(),
        times::scenarios(),
        places::scenarios(),
        canvas::scenarios(),
        values::scenarios(),
        bodies::scenarios(),
    ];
    parts.into_iter().flatten().collect()
}
