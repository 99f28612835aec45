//! The text files of a checkout.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// What nobody wrote by hand; `.git` is a file in a worktree.
const SKIPPED: &[&str] = &[".git", "target", "node_modules"];

/// One text file.
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every text file, in the order of their paths.
pub(crate) struct Tree {
    files: Vec<File>,
}

impl Tree {
    /// Reads a checkout.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        visit(root, "", &mut files)?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self { files })
    }

    /// All files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files().filter(|file| file.path.ends_with(".rs"))
    }

    /// One file.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files().find(|file| file.path == path)
    }

    /// A tree out of paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Self {
            files: files.iter().map(file).collect(),
        }
    }
}

impl File {
    /// Whether the whole file is test code.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.split('/').any(|folder| folder == "tests")
    }

    /// The lines that are not in a `#[cfg(test)]` module, with their numbers.
    ///
    /// The block ends at the closing brace in its own column, which is where rustfmt puts it.
    pub(crate) fn lines_outside_tests(&self) -> Vec<(usize, &str)> {
        let mut kept = Vec::new();
        let mut lines = self
            .text
            .lines()
            .zip(1..)
            .map(|(line, number)| (number, line))
            .peekable();
        while let Some((number, line)) = lines.next() {
            let opens_module = lines.peek().is_some_and(|(_, next)| is_inline_module(next));
            if line.trim() != "#[cfg(test)]" || !opens_module {
                kept.push((number, line));
                continue;
            }
            let column = line.len() - line.trim_start().len();
            let closes = |line: &str| line.trim_end() == format!("{}}}", " ".repeat(column));
            for (_, inside) in lines.by_ref() {
                if closes(inside) {
                    break;
                }
            }
        }
        kept
    }
}

fn is_inline_module(line: &str) -> bool {
    line.trim_start().trim_start_matches("pub(crate) ").starts_with("mod ") && line.trim_end().ends_with('{')
}

fn visit(folder: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            visit(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() {
            // What is not UTF-8 is a picture or a database, and what is gone was somebody's temporary file.
            files.extend(fs::read_to_string(entry.path()).ok().map(|text| File { path, text }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_text_files_and_skips_build_output() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::create_dir_all(root.path().join("target")).unwrap();
        fs::write(root.path().join("a/b/c.rs"), "text").unwrap();
        fs::write(root.path().join("picture.png"), [0xff, 0xfe, 0xff]).unwrap();
        fs::write(root.path().join("target/out.rs"), "built").unwrap();
        let tree = Tree::read(root.path()).unwrap();
        let paths: Vec<_> = tree.files().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a/b/c.rs"]);
    }

    #[test]
    fn test_modules_are_left_out_and_line_numbers_kept() {
        let text = "one\n#[cfg(test)]\nmod tests {\n    fn a() {\n    }\n}\nseven\n#[cfg(test)]\nfn nine() {}\n";
        let tree = Tree::of(&[("a.rs", text)]);
        let lines = tree.file("a.rs").unwrap().lines_outside_tests();
        assert_eq!(
            lines,
            [(1, "one"), (7, "seven"), (8, "#[cfg(test)]"), (9, "fn nine() {}")]
        );
    }
}
