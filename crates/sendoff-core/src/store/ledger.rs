//! The steps of a schema, and the ledger of the applied steps. Every SQL store uses the same ledger.

use super::Migration;
use crate::emit::Names;
use crate::{Error, ErrorKind, Result};

/// One step of a schema.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The number of the step, from 1.
    pub version: u32,
    /// The name of the step.
    pub name: &'static str,
    /// The SQL of the step, before table names are inserted.
    pub sql: &'static str,
}

impl Step {
    /// The step with table names inserted, and the statement that records it.
    pub fn migration(&self, names: &Names) -> Migration {
        let Self { version, name, sql } = self;
        let (table, checksum) = (names.table("migration"), Self::checksum(sql));
        Migration {
            version: *version,
            name,
            sql: names.render(sql),
            note: format!("INSERT INTO {table} (version, name, checksum) VALUES ({version}, '{name}', '{checksum}');"),
        }
    }

    /// The version that a program with these steps needs.
    pub fn needed(steps: &[Self]) -> u32 {
        steps.iter().map(|step| step.version).max().unwrap_or_default()
    }

    /// Whether the steps are numbered from 1 without a gap.
    pub fn are_numbered(steps: &[Self]) -> bool {
        steps.iter().zip(1..).all(|(step, number)| step.version == number)
    }

    /// Checks the ledger, a list of versions and checksums, against the steps of this program.
    ///
    /// # Errors
    /// [`ErrorKind::SchemaTooNew`] for a version that is not among the steps; [`ErrorKind::Invalid`] for a step that was
    /// applied with another text.
    pub fn check(steps: &[Self], ledger: &[(u32, String)]) -> Result<()> {
        for (version, written) in ledger {
            let Some(step) = steps.iter().find(|step| step.version == *version) else {
                let needed = Self::needed(steps);
                return Err(Error::new(ErrorKind::SchemaTooNew, "the outbox's tables are too new")
                    .because(format!(
                        "the tables have version {version}; this program supports versions up to {needed}"
                    ))
                    .next_step("install a newer version of sendoff; the tables were not changed"));
            };
            if *written != Self::checksum(step.sql) {
                return Err(Error::new(ErrorKind::Invalid, "the schema could not be migrated")
                    .because(format!(
                        "step {version} ({}) was applied with other SQL than this program has",
                        step.name
                    ))
                    .next_step(
                        "use the version of sendoff that created the tables, or compare the tables with `sendoff migrate --dry-run`",
                    ));
            }
        }
        Ok(())
    }

    /// The checksum of a text (FNV-1a). It detects a changed text and ignores line ends. It is not secure against an
    /// attacker.
    pub fn checksum(text: &str) -> String {
        let bytes = text.bytes().filter(|byte| *byte != b'\r');
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &[Step] = &[Step {
        version: 1,
        name: "outbox",
        sql: "CREATE TABLE outbox_message ();",
    }];

    #[test]
    fn a_changed_step_and_a_newer_ledger_are_refused() {
        let good = (1, Step::checksum(STEPS[0].sql));
        assert!(Step::check(STEPS, std::slice::from_ref(&good)).is_ok());
        let changed = Step::check(STEPS, &[(1, "0".repeat(16))]).unwrap_err();
        assert!(changed.to_string().contains("other SQL"), "{changed}");
        let newer = Step::check(STEPS, &[good, (Step::needed(STEPS) + 1, String::new())]).unwrap_err();
        assert_eq!(newer.kind(), ErrorKind::SchemaTooNew);
        assert!(Step::are_numbered(STEPS) && !Step::are_numbered(&[STEPS[0], STEPS[0]]));
    }

    #[test]
    fn line_ends_do_not_change_a_checksum_and_letters_do() {
        assert_eq!(Step::checksum("a\nb"), Step::checksum("a\r\nb"));
        assert_ne!(Step::checksum("a\nb"), Step::checksum("a\nc"));
    }

    #[test]
    fn a_migration_has_the_configured_names_and_its_note() {
        let names = Names::new(None, "shop_").unwrap();
        let migration = STEPS[0].migration(&names);
        assert_eq!(migration.sql, "CREATE TABLE shop_message ();");
        assert!(
            migration
                .note
                .starts_with("INSERT INTO shop_migration (version, name, checksum) VALUES (1, 'outbox', '")
        );
    }
}
