//! Figures: the median over interleaved rounds, with its goal.

use std::path::{Path, PathBuf};

use anyhow::Result;

/// Collects and prints figures.
pub(crate) struct Figures {
    json: bool,
    only: Option<String>,
    pub(crate) rounds: usize,
    plots: Option<PathBuf>,
    rows: Vec<String>,
}

/// What a figure is to be.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Only to be known.
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
        }
    }

    /// Whether any of these is asked for.
    pub(crate) fn wants(&self, names: &[&str]) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| names.iter().any(|name| name.contains(only.as_str())))
    }

    /// Draws a picture, if somebody wants to see one.
    pub(crate) fn draw(&self, picture: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.plots.as_deref().map_or(Ok(()), picture)
    }

    /// Says what is being measured.
    pub(crate) fn progress(&self, text: &str) {
        eprintln!("  {text}");
    }

    /// Reports a figure: the median of its rounds.
    pub(crate) fn report(&mut self, name: &str, unit: &str, goal: Goal, rounds: &[f64]) {
        let value = median(rounds);
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        if self.json {
            let rounds: Vec<f64> = rounds.iter().map(|round| rounded(*round)).collect();
            let object = serde_json::json!({
                "figure": name, "value": rounded(value), "unit": unit, "goal": goal.text(), "rounds": rounds,
            });
            println!("{object}");
        }
        let mark = if goal.is_met(value) { "met" } else { "NOT MET" };
        let row = format!("{name:<36} {:>10.3} {unit:<8} {:<10} {mark}", value, goal.text());
        eprintln!("{row}");
        self.rows.push(row);
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

/// The middle one.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which this part of them lies.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = ((sorted.len().saturating_sub(1)) as f64 * part).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}
