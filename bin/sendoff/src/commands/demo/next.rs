//! What to do after the demo.

use std::borrow::Cow;
use std::path::Path;

use super::fit;
use crate::output::Paint;

/// What to do next: with the database, if it was kept, and with one's own.
pub(super) fn steps(kept: Option<&Path>, paint: Paint, columns: usize) -> String {
    let program = std::env::args_os().next();
    let program = program.as_deref().map_or(Cow::Borrowed("sendoff"), |name| {
        // Without a folder in it, the shell finds it.
        let name = name.to_string_lossy();
        let has_folder = Path::new(&*name).parent().is_some_and(|folder| folder != Path::new(""));
        if has_folder {
            quoted(&name).into()
        } else {
            Cow::Borrowed("sendoff")
        }
    });
    told(&program, kept, paint, columns)
}

fn told(program: &str, kept: Option<&Path>, paint: Paint, columns: usize) -> String {
    let own = [
        (format!("{program} init"), "writes a commented sendoff.toml"),
        (format!("{program} migrate"), "creates the outbox's tables"),
        (format!("{program} emit hello --payload '{{}}'"), "emits a message"),
        (format!("{program} relay"), "delivers messages"),
    ];
    let Some(path) = kept else {
        let again = [(
            format!("{program} demo --keep shop.db"),
            "keeps the database of the next run, to look into it",
        )];
        return section("Next, with your own database", &own, paint, columns)
            + &section("Or look closer", &again, paint, columns);
    };
    let path = path.display().to_string();
    let database = quoted(&format!("sqlite:{path}"));
    let look = [
        (format!("{program} stats --database {database}"), "counts by state"),
        (
            format!("{program} dead ls --database {database}"),
            "the dead letters, with their errors",
        ),
        (
            format!("{program} show ID --database {database}"),
            "one message, with its payload and its attempts",
        ),
        (
            format!("{program} dead retry --all --database {database}"),
            "makes the dead letters due again; a relay with a sendoff.toml delivers them",
        ),
        (
            // SQLite keeps its log beside the file.
            format!(
                "rm -f {}",
                ["", "-shm", "-wal"]
                    .map(|end| quoted(&format!("{path}{end}")))
                    .join(" ")
            ),
            "when you are done; the file is an ordinary SQLite database, with the shop's table `orders`",
        ),
    ];
    section(&format!("The database is kept in {path}"), &look, paint, columns)
        + &section("Next, with your own database", &own, paint, columns)
}

/// Commands under a title, each with its meaning. A command is never wrapped, so that it can be copied.
fn section(title: &str, commands: &[(String, &str)], paint: Paint, columns: usize) -> String {
    let longest = commands.iter().map(|(command, _)| command.chars().count()).max();
    let longest = longest.unwrap_or_default();
    let mut text = String::from("\n");
    for line in fit::wrap(title, columns) {
        text += &format!("{}\n", paint.bold(line));
    }
    for (command, words) in commands {
        text += &fit::beside(&format!("  {command:<longest$}"), words, paint, columns);
    }
    text
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-:+@%,=".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_database_comes_with_commands_for_it() {
        let text = told("sendoff", Some(Path::new("my shop.db")), Paint::plain(), usize::MAX);
        for line in [
            "The database is kept in my shop.db",
            "  sendoff stats --database 'sqlite:my shop.db' ",
            "  sendoff dead ls --database 'sqlite:my shop.db' ",
            "  sendoff dead retry --all --database 'sqlite:my shop.db' ",
            "  rm -f 'my shop.db' 'my shop.db-shm' 'my shop.db-wal' ",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
        assert!(!text.contains("--keep"), "{text}");
        let without = told("sendoff", None, Paint::plain(), usize::MAX);
        assert!(without.contains("  sendoff demo --keep shop.db "), "{without}");
    }

    #[test]
    fn a_command_is_never_wrapped() {
        let text = told("target/release/sendoff", Some(Path::new("shop.db")), Paint::plain(), 40);
        assert!(
            text.contains("\n  target/release/sendoff dead retry --all --database sqlite:shop.db\n"),
            "{text}"
        );
        assert!(text.contains("\n    counts by state\n"), "{text}");
    }

    #[test]
    fn a_word_for_a_shell_is_quoted_if_needed() {
        assert_eq!(quoted("a/b.db"), "a/b.db");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
