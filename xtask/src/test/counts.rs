//! How many tests passed and failed, read from what the runners print.

use std::ops::AddAssign;

/// Tests that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Reads nextest's closing line: `Summary [ 1.2s] 3 tests run: 2 passed (1 slow), 1 failed, 4 skipped`.
pub(crate) fn of_nextest(lines: &[String]) -> Counts {
    let plain = lines.iter().rev().map(|line| without_colour(line));
    let summary = plain
        .filter(|line| line.trim_start().starts_with("Summary ["))
        .find_map(|line| {
            let (_, counts) = line.split_once(" run: ")?;
            Some(of_list(&without_brackets(counts), ','))
        });
    summary.unwrap_or_default()
}

/// Adds up libtest's closing lines: `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured`.
pub(crate) fn of_doc_tests(lines: &[String]) -> Counts {
    let mut sum = Counts::default();
    for line in lines {
        let line = without_colour(line);
        if let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        {
            sum += of_list(counts.split("; finished").next().unwrap_or(counts), ';');
        }
    }
    sum
}

fn of_list(list: &str, separator: char) -> Counts {
    let mut sum = Counts::default();
    for item in list.split(separator) {
        let Some((number, word)) = item.trim().split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        match word.trim() {
            "passed" => sum.passed += number,
            "skipped" | "ignored" | "measured" | "filtered out" => {}
            // Failed, timed out, could not be executed: whatever new word a runner finds, it is not a success.
            _ => sum.failed += number,
        }
    }
    sum
}

fn without_brackets(text: &str) -> String {
    let mut depth = 0_u32;
    text.chars()
        .filter(|letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect()
}

/// The runners colour their output when this screen is a terminal: drops `ESC [ ... m`.
fn without_colour(line: &str) -> String {
    let mut pieces = line.split('\u{1b}');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(piece.split_once('m').map_or("", |(_, text)| text));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn nextest_summary_counts_every_way_to_fail() {
        let output = "     Summary [   3.1s] 9 tests run: 4 passed (1 slow, 2 leaky), 3 failed, 2 timed out, 5 skipped";
        assert_eq!(of_nextest(&lines(output)), Counts { passed: 4, failed: 5 });
    }

    #[test]
    fn coloured_nextest_summary_is_read() {
        let output = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] \u{1b}[1m2\u{1b}[0m tests run: \
                      \u{1b}[1m2\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m";
        assert_eq!(of_nextest(&lines(output)), Counts { passed: 2, failed: 0 });
    }

    #[test]
    fn output_without_a_summary_counts_nothing() {
        assert_eq!(
            of_nextest(&lines("error: could not compile `sendoff`")),
            Counts::default()
        );
    }

    #[test]
    fn doc_test_results_of_all_crates_add_up() {
        let output = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.5s\n\
                      all doctests ran in 0.9s\n\
                      test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s";
        assert_eq!(of_doc_tests(&lines(output)), Counts { passed: 4, failed: 2 });
    }
}
