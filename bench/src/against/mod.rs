//! Comparison with another revision: its benchmark program and ours measure the same part in turns.

mod database;
mod program;

use std::path::Path;

use anyhow::{Result, ensure};

use self::database::Database;
use self::program::Program;
use crate::Group;
use crate::figure::{Figures, Goal, Revisions};
use crate::part::Part;

/// The ratio that counts as no slower.
const NO_SLOWER: f64 = 0.97;

/// The two programs, and what they measure.
pub(crate) struct Against {
    ours: Program,
    theirs: Program,
    parts: Vec<Part>,
    revisions: Revisions,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

impl Against {
    /// Fails before anything is measured if the other program does not know a part.
    pub(crate) async fn prepare(theirs: &Path, revisions: Revisions, parts: Vec<Part>) -> Result<Self> {
        let theirs = Program::open(theirs, &revisions.theirs).await?;
        for part in &parts {
            theirs.check(*part)?;
        }
        Ok(Self {
            ours: Program::open(&std::env::current_exe()?, &revisions.ours).await?,
            theirs,
            parts,
            revisions,
        })
    }

    /// Measures all parts and reports a figure for each.
    pub(crate) async fn measure(&self, figures: &mut Figures) -> Result<()> {
        for part in &self.parts {
            let mut ratios = Vec::new();
            for round in 1..=figures.rounds {
                let (mut ours, mut theirs) = (f64::NAN, f64::NAN);
                for side in order(round) {
                    match side {
                        Side::Ours => ours = once(&self.ours, *part).await?,
                        Side::Theirs => theirs = once(&self.theirs, *part).await?,
                    }
                }
                figures.progress(&format!(
                    "{} against {}, round {round}: ours {ours:.0}/s, theirs {theirs:.0}/s",
                    part.name(),
                    self.revisions.theirs
                ));
                ratios.push(ours / theirs);
            }
            figures.report_against(&part.figure(), Goal::AtLeast(NO_SLOWER), &ratios, &self.revisions);
        }
        Ok(())
    }
}

/// The selected parts of a group.
pub(crate) fn parts(figures: &Figures, group: Option<Group>) -> Result<Vec<Part>> {
    let parts: Vec<Part> = Part::all()
        .iter()
        .copied()
        .filter(|part| group.is_none_or(|group| part.is_in(group)) && figures.wants(&[&part.figure()]))
        .collect();
    let known: Vec<String> = Part::all().iter().map(|part| part.figure()).collect();
    ensure!(
        !parts.is_empty(),
        "none of the selected figures can be measured against another revision: select a group, or a figure with `--only`, \
         that includes one of {}",
        known.join(", ")
    );
    Ok(parts)
}

/// Who measures first: the server is in another state for the second one of a round, so they alternate.
fn order(round: usize) -> [Side; 2] {
    if round % 2 == 1 {
        [Side::Ours, Side::Theirs]
    } else {
        [Side::Theirs, Side::Ours]
    }
}

/// One measurement, in a new database. The program migrates it, because schemas differ between revisions.
async fn once(program: &Program, part: Part) -> Result<f64> {
    if !part.uses_postgres() {
        return program.measure(part, None).await;
    }
    let database = Database::create().await?;
    let rate = program.measure(part, Some(database.url())).await;
    database.drop().await?;
    rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(only: Option<&str>) -> Figures {
        Figures::new(true, only.map(str::to_owned), 9, None)
    }

    #[test]
    fn sides_take_turns_in_going_first() {
        let sides: Vec<Side> = (1..=4).flat_map(order).collect();
        let (ours, theirs) = (Side::Ours, Side::Theirs);
        assert_eq!(sides, [ours, theirs, theirs, ours, ours, theirs, theirs, ours]);
    }

    #[test]
    fn only_parts_of_the_selected_figures_are_measured() {
        let core = Some(Group::Core);
        assert_eq!(parts(&figures(Some("drain")), core).unwrap(), Part::all());
        assert_eq!(parts(&figures(Some("sqlite")), core).unwrap(), [Part::SqliteDrain]);
    }

    #[test]
    fn selection_without_a_part_names_the_figures_that_there_are() {
        for (only, group) in [(None, Group::Celery), (Some("latency"), Group::Core)] {
            let error = parts(&figures(only), Some(group)).unwrap_err().to_string();
            assert!(error.contains("sqlite_drain_vs_revision"), "{error}");
        }
    }
}
