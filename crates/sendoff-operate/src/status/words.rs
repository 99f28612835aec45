//! Ages and numbers for people.

/// An age in the unit that a person would use: `0.4 s`, `42 s`, `9 min`, `5 h`, `3 d`.
pub fn age_in_words(seconds: f64) -> String {
    let seconds = if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    // Whole units, rounded down: 59.9 s are not a minute yet.
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3_600 => format!("{} min", whole / 60),
        3_600..172_800 => format!("{} h", whole / 3_600),
        _ => format!("{} d", whole / 86_400),
    }
}

/// A rate: `0/s`, `2.5/s`, `1,200/s`.
pub fn rate_in_words(rate: f64) -> String {
    if rate > 0.0 && rate < 9.95 {
        format!("{rate:.1}/s")
    } else {
        format!("{}/s", grouped(rate.round() as u64))
    }
}

/// A number with its digits in groups of three: `12,300`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun, in the singular if the number is one.
pub(super) fn counted(count: impl std::fmt::Display, is_one: bool, noun: &str, plural: &str) -> String {
    format!("{count} {}", if is_one { noun } else { plural })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_unit_that_a_person_would_use() {
        for (seconds, words) in [
            (0.0, "0.0 s"),
            (0.44, "0.4 s"),
            (9.96, "9 s"),
            (59.9, "59 s"),
            (60.0, "1 min"),
            (599.0, "9 min"),
            (7_200.0, "2 h"),
            (172_800.0, "2 d"),
            (-5.0, "0.0 s"),
            (f64::NAN, "0.0 s"),
        ] {
            assert_eq!(age_in_words(seconds), words, "{seconds}");
        }
    }

    #[test]
    fn slow_rates_have_a_fraction() {
        for (rate, words) in [
            (0.0, "0/s"),
            (0.02, "0.0/s"),
            (2.5, "2.5/s"),
            (12.4, "12/s"),
            (4000.0, "4,000/s"),
        ] {
            assert_eq!(rate_in_words(rate), words);
        }
    }

    #[test]
    fn digits_are_grouped() {
        for (number, words) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(number), words);
        }
    }
}
