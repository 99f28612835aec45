//! `Retry-After`: seconds, or a date.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The longest delay that is accepted. Otherwise an endpoint that asks for years would hide a message.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The delay that the endpoint asks for. A date is compared with the endpoint's own clock if it sends a `Date`.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    let delay = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let said = headers.get(reqwest::header::DATE).and_then(|value| value.to_str().ok());
            let now = said.and_then(date).unwrap_or(now);
            date(text)?.duration_since(now).unwrap_or_default()
        }
    };
    Some(delay.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn asked(pairs: &[(&'static str, &'static str)]) -> Option<u64> {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let headers = pairs.iter().map(|(name, value)| {
            let name: reqwest::header::HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_static(value))
        });
        retry_after(&headers.collect(), now).map(|delay| delay.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_understood() {
        assert_eq!(asked(&[("retry-after", "120")]), Some(120));
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")]), Some(60));
        let skewed = [
            ("retry-after", "Sun, 06 Nov 2044 08:50:07 GMT"),
            ("date", "Sun, 06 Nov 2044 08:49:37 GMT"),
        ];
        assert_eq!(asked(&skewed), Some(30));
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), Some(0));
    }

    #[test]
    fn nonsense_is_no_delay_and_years_are_a_day() {
        assert_eq!(asked(&[]), None);
        for text in ["soon", "", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(asked(&[("retry-after", text)]), None, "{text}");
        }
        assert_eq!(asked(&[("retry-after", "999999999999")]), Some(86_400));
    }
}
