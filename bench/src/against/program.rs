//! A benchmark program, of this revision or another, that measures one part in a separate process.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::process::Command;

use crate::part::Part;

/// Far longer than any part takes, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// The exit code for a command line that a program does not understand.
const NOT_UNDERSTOOD: i32 = 2;

pub(super) struct Program {
    path: PathBuf,
    revision: String,
    /// The parts that it knows; `None` for revisions without parts.
    parts: Option<Vec<String>>,
}

impl Program {
    /// Asks the program which parts it knows.
    pub(super) async fn open(path: &Path, revision: &str) -> Result<Self> {
        let mut program = Self {
            path: path.to_owned(),
            revision: revision.to_owned(),
            parts: None,
        };
        let output = program.run(&["--parts"], None).await?;
        program.parts = match output.status.code() {
            Some(0) => Some(text(&output.stdout).lines().map(str::to_owned).collect()),
            Some(NOT_UNDERSTOOD) => None,
            _ => bail!("{}", program.failed("--parts", &output)),
        };
        Ok(program)
    }

    /// Fails if it does not know the part. An old revision is only found out when it measures.
    pub(super) fn check(&self, part: Part) -> Result<()> {
        let known = self.parts.as_ref();
        ensure!(
            known.is_none_or(|known| known.iter().any(|known| known == part.name())),
            "the benchmark program of {} does not know the part {}: choose a revision that does, or leave the part out with `--only`",
            self.revision,
            part.name()
        );
        Ok(())
    }

    /// Messages per second.
    pub(super) async fn measure(&self, part: Part, postgres: Option<&str>) -> Result<f64> {
        let earlier = part.earlier();
        let arguments = match self.parts {
            Some(_) => vec!["--part", part.name()],
            None => vec![earlier.group, "--only", earlier.figure, "--rounds", "1"],
        };
        let output = self.run(&arguments, postgres).await?;
        let command = arguments.join(" ");
        ensure!(output.status.success(), "{}", self.failed(&command, &output));
        let rate = match self.parts {
            Some(_) => answer(&text(&output.stdout), part),
            None => progress(&text(&output.stderr), earlier.line).with_context(|| {
                format!(
                    "{} is too old to be measured: choose a revision whose `bench {}` has {}",
                    self.revision, earlier.group, earlier.figure
                )
            }),
        };
        rate.with_context(|| format!("`sendoff-bench {command}` of {} gave no rate", self.revision))
    }

    async fn run(&self, arguments: &[&str], postgres: Option<&str>) -> Result<Output> {
        // The kernel ends it together with this process, even if this process is killed.
        let mut command = Command::new("setpriv");
        command.arg("--pdeathsig=KILL").arg(&self.path).args(arguments);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command.envs(postgres.map(|url| ("SENDOFF_TEST_POSTGRES_URL", url)));
        let command_line = arguments.join(" ");
        tokio::time::timeout(LIMIT, command.output())
            .await
            .with_context(|| {
                format!(
                    "`sendoff-bench {command_line}` of {} took more than {LIMIT:?}",
                    self.revision
                )
            })?
            .with_context(|| format!("could not start the benchmark program of {}", self.revision))
    }

    fn failed(&self, command: &str, output: &Output) -> String {
        format!(
            "`sendoff-bench {command}` of {} ended with {}:\n{}",
            self.revision,
            output.status,
            text(&output.stderr)
        )
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The rate in the output of `--part`. A rate for another backlog cannot be compared.
fn answer(stdout: &str, part: Part) -> Result<f64> {
    let answer: Value = serde_json::from_str(stdout).context("the answer is not JSON")?;
    ensure!(answer["part"] == part.name(), "it measured {}", answer["part"]);
    ensure!(
        answer["messages"] == part.messages(),
        "it measured {} messages and we measure {}: the two cannot be compared",
        answer["messages"],
        part.messages()
    );
    positive(answer["rate"].as_f64())
}

/// The rate in a progress line, as in `drain, round 1: lanes 123456/s, raw delete …`.
fn progress(stderr: &str, before: &str) -> Result<f64> {
    let rate = stderr
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(before))
        .with_context(|| format!("there is no line `{before}RATE/s`"))?;
    positive(rate.split_once("/s").and_then(|(rate, _)| rate.parse().ok()))
}

fn positive(rate: Option<f64>) -> Result<f64> {
    rate.filter(|rate| rate.is_finite() && *rate > 0.0)
        .context("the rate is not a positive number")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that is a script; it lives as long as its folder.
    async fn script(text: &str) -> Result<(Program, tempfile::TempDir)> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("sendoff-bench");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n"))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        Ok((Program::open(&path, "abc1234").await?, folder))
    }

    #[test]
    fn answer_about_another_backlog_is_refused() {
        let answer_with = |messages: u64| {
            let text = format!(r#"{{"part": "sqlite_drain", "messages": {messages}, "rate": 250.5}}"#);
            answer(&text, Part::SqliteDrain)
        };
        assert_eq!(answer_with(Part::SqliteDrain.messages()).unwrap(), 250.5);
        let error = answer_with(7).unwrap_err().to_string();
        assert!(error.contains("cannot be compared"), "{error}");
    }

    #[test]
    fn answer_about_another_part_is_refused() {
        assert!(
            answer(
                r#"{"part": "other", "messages": 100000, "rate": 1.0}"#,
                Part::SqliteDrain
            )
            .is_err()
        );
    }

    #[tokio::test]
    async fn program_that_knows_parts_is_asked_for_one() {
        let messages = Part::PostgresDrain.messages();
        let (program, _folder) = script(&format!(
            r#"case "$*" in
                --parts) echo postgres_drain;;
                "--part postgres_drain") echo "{{\"part\":\"postgres_drain\",\"messages\":{messages},\"rate\":$SENDOFF_TEST_POSTGRES_URL}}";;
                *) exit 1;;
            esac"#
        ))
        .await
        .unwrap();
        program.check(Part::PostgresDrain).unwrap();
        assert_eq!(
            program.measure(Part::PostgresDrain, Some("4321")).await.unwrap(),
            4321.0
        );
        let error = program.check(Part::SqliteDrain).unwrap_err().to_string();
        assert!(error.contains("abc1234") && error.contains("sqlite_drain"), "{error}");
    }

    #[tokio::test]
    async fn program_from_before_parts_is_read_by_its_progress() {
        let (program, _folder) = script(
            r#"case "$*" in
                "core --only sqlite_drain_vs_row_lease --rounds 1")
                    echo "  sqlite, round 1: lanes 98765/s, row lease 45678/s" >&2;;
                *) exit 2;;
            esac"#,
        )
        .await
        .unwrap();
        program.check(Part::SqliteDrain).unwrap();
        assert_eq!(program.measure(Part::SqliteDrain, None).await.unwrap(), 98765.0);
    }

    #[tokio::test]
    async fn revision_that_prints_no_rate_is_too_old() {
        let (program, _folder) = script(r#"[ "$1" != --parts ] || exit 2"#).await.unwrap();
        let error = program.measure(Part::SqliteDrain, None).await.unwrap_err();
        assert!(format!("{error:#}").contains("abc1234 is too old"), "{error:#}");
    }

    #[tokio::test]
    async fn failed_program_shows_what_it_wrote() {
        let error = script("echo the disk is full >&2; exit 1").await.err().unwrap();
        assert!(error.to_string().contains("the disk is full"), "{error}");
    }
}
