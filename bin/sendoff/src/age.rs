//! Times for people: how long ago, or how soon, by the database's clock.

use std::time::SystemTime;

use jiff::Timestamp;
use sendoff::Result;
use sendoff_operate::Operator;

use crate::output::Output;

/// How times are shown.
pub(crate) enum Times {
    /// As ages at this time.
    At(Timestamp),
    /// To the second.
    Exact,
}

impl Times {
    /// Ages on a terminal, unless exact times are asked for; exact times elsewhere.
    ///
    /// # Errors
    /// Errors of the database, whose clock counts.
    pub(crate) async fn of(output: &Output, exact: bool, operator: &Operator) -> Result<Self> {
        if exact || !output.is_terminal() {
            return Ok(Self::Exact);
        }
        Ok(Self::at(operator.now().await?))
    }

    fn at(now: SystemTime) -> Self {
        Timestamp::try_from(now).map_or(Self::Exact, Self::At)
    }

    /// Whether people read it.
    pub(crate) fn for_people(&self) -> bool {
        matches!(self, Self::At(_))
    }

    /// A time.
    pub(crate) fn shown(&self, time: &str) -> String {
        match (self, time.parse::<Timestamp>()) {
            (Self::At(now), Ok(time)) => age(now.as_second() - time.as_second()),
            (Self::At(_) | Self::Exact, _) => time.get(.."2026-01-31T12:00:00".len()).unwrap_or(time).to_owned(),
        }
    }
}

fn age(seconds: i64) -> String {
    let (sign, left) = if seconds < 0 { ("in ", -seconds) } else { ("", seconds) };
    let shown = match left {
        0..60 => format!("{left}s"),
        60..3600 => format!("{}m", left / 60),
        3600..86_400 => format!("{}h", left / 3600),
        _ => format!("{}d", left / 86_400),
    };
    format!("{sign}{shown}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_ages_or_end_with_the_second() {
        let now = Times::at(SystemTime::UNIX_EPOCH + Duration::from_secs(200_000));
        for (time, shown) in [
            ("1970-01-03T07:33:20.5Z", "0s"),
            ("1970-01-03T07:32:20Z", "1m"),
            ("1970-01-03T04:33:20Z", "3h"),
            ("1970-01-01T00:00:00Z", "2d"),
            ("1970-01-03T08:33:20Z", "in 1h"),
            ("later", "later"),
        ] {
            assert_eq!(now.shown(time), shown, "{time}");
        }
        assert_eq!(Times::Exact.shown("2026-01-31T12:00:00.123456Z"), "2026-01-31T12:00:00");
    }
}
