//! Figures: the median over interleaved rounds, with its goal.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use crate::busy::{self, Machine};

/// Collects and prints figures.
pub(crate) struct Figures {
    json: bool,
    only: Option<String>,
    pub(crate) rounds: usize,
    plots: Option<PathBuf>,
    rows: Vec<String>,
    machine: Machine,
}

/// The two revisions that a figure compares.
#[derive(Clone)]
pub(crate) struct Revisions {
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

/// The goal of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Informative only.
    None,
}

impl Goal {
    fn text(self) -> String {
        match self {
            Self::AtLeast(value) => format!(">= {value}"),
            Self::AtMost(value) => format!("<= {value}"),
            Self::None => "-".to_owned(),
        }
    }

    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(goal) => value >= goal,
            Self::AtMost(goal) => value <= goal,
            Self::None => true,
        }
    }
}

impl Figures {
    pub(crate) fn new(json: bool, only: Option<String>, rounds: usize, plots: Option<PathBuf>) -> Self {
        Self {
            json,
            only,
            rounds,
            plots,
            rows: Vec::new(),
            machine: Machine::default(),
        }
    }

    /// From now on figures report whether other processes kept the machine busy.
    pub(crate) fn watch_the_machine(&mut self) {
        self.machine = Machine::new();
    }

    /// Whether any of these is selected.
    pub(crate) fn wants(&self, names: &[&str]) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| names.iter().any(|name| name.contains(only.as_str())))
    }

    /// Draws a plot, if plots are requested.
    pub(crate) fn draw(&self, picture: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.plots.as_deref().map_or(Ok(()), picture)
    }

    /// Prints a progress line.
    pub(crate) fn progress(&self, text: &str) {
        eprintln!("  {text}");
    }

    /// Reports a figure: the median of its rounds.
    pub(crate) fn report(&mut self, name: &str, unit: &str, goal: Goal, rounds: &[f64]) {
        self.print(name, unit, goal, rounds, object(name, unit, goal, rounds));
    }

    /// Reports a figure that compares two revisions: ours over theirs.
    pub(crate) fn report_against(&mut self, name: &str, goal: Goal, rounds: &[f64], revisions: &Revisions) {
        let object = object_against(name, goal, rounds, revisions);
        self.print(name, "ratio", goal, rounds, object);
        self.rows
            .push(format!("    {} over {}", revisions.ours, revisions.theirs));
    }

    fn print(&mut self, name: &str, unit: &str, goal: Goal, rounds: &[f64], object: Value) {
        let others = self.machine.look();
        let object = on_machine(object, others);
        if self.json {
            println!("{object}");
        }
        let value = median(rounds);
        let mark = match goal.is_met(value) {
            _ if rounds.is_empty() => "not measured",
            true => "met",
            false => "NOT MET",
        };
        let row = format!("{name:<36} {:>10.3} {unit:<8} {:<10} {mark}", value, goal.text());
        eprintln!("{row}");
        self.rows.push(row);
        if let Some(others) = others {
            let row = format!("    {}", busy::words(others));
            eprintln!("{row}");
            self.rows.push(row);
        }
    }

    /// Prints the table.
    pub(crate) fn finish(&self) {
        if !self.json {
            for row in &self.rows {
                println!("{row}");
            }
        }
    }
}

/// A figure as JSON.
fn object(name: &str, unit: &str, goal: Goal, rounds: &[f64]) -> Value {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let all: Vec<f64> = rounds.iter().map(|round| rounded(*round)).collect();
    json!({
        "figure": name, "value": rounded(median(rounds)), "unit": unit, "goal": goal.text(), "rounds": all,
    })
}

fn object_against(name: &str, goal: Goal, rounds: &[f64], revisions: &Revisions) -> Value {
    let mut object = object(name, "ratio", goal, rounds);
    object["ours"] = json!(revisions.ours);
    object["theirs"] = json!(revisions.theirs);
    object
}

/// Adds whether other processes used too much of the machine.
fn on_machine(mut object: Value, others: Option<f64>) -> Value {
    object["busy"] = json!(others.is_some());
    object
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which this part of the values lies.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = ((sorted.len().saturating_sub(1)) as f64 * part).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_median_all_rounds_and_both_revisions() {
        let revisions = Revisions {
            ours: "1111111 with uncommitted changes".to_owned(),
            theirs: "2222222".to_owned(),
        };
        let rounds = [1.04, 0.5, 0.98765];
        assert_eq!(
            object_against("sqlite_drain_vs_revision", Goal::AtLeast(0.97), &rounds, &revisions),
            json!({
                "figure": "sqlite_drain_vs_revision",
                "value": 0.988,
                "unit": "ratio",
                "goal": ">= 0.97",
                "rounds": [1.04, 0.5, 0.988],
                "ours": "1111111 with uncommitted changes",
                "theirs": "2222222",
            })
        );
    }

    #[test]
    fn json_tells_whether_the_machine_was_busy_and_has_no_value_of_no_rounds() {
        let busy = |rounds: &[f64], others| on_machine(object("wal", "ratio", Goal::None, rounds), others);
        assert_eq!(busy(&[1.0], None)["busy"], json!(false));
        assert_eq!(busy(&[1.0], Some(0.4))["busy"], json!(true));
        assert_eq!(busy(&[], Some(0.4))["value"], Value::Null);
    }

    #[test]
    fn figure_without_another_revision_names_none() {
        let object = object("wal", "ratio", Goal::None, &[1.0]);
        let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["figure", "goal", "rounds", "unit", "value"]);
    }
}
