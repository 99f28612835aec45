//! Which share of messages start a trace.

use sendoff::{Error, ErrorKind, Result};

/// The share of messages without a trace for which one is started: from the configuration, else from OpenTelemetry's
/// variables, else all. A message that has a trace is traced if, and only if, that trace is recorded.
///
/// # Errors
/// [`ErrorKind::Invalid`] for unsupported values of the variables.
pub(super) fn roots(configured: Option<f64>, variable: impl Fn(&str) -> Option<String>) -> Result<f64> {
    if let Some(share) = configured {
        return Ok(share);
    }
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let Some(sampler) = set("OTEL_TRACES_SAMPLER") else {
        return Ok(1.0);
    };
    match sampler.trim().trim_start_matches("parentbased_") {
        "always_on" => Ok(1.0),
        "always_off" => Ok(0.0),
        "traceidratio" => {
            let Some(text) = set("OTEL_TRACES_SAMPLER_ARG") else {
                return Ok(1.0);
            };
            let share = text.trim().parse::<f64>().ok();
            share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
                Error::new(ErrorKind::Invalid, "OTEL_TRACES_SAMPLER_ARG is invalid")
                    .because("the value is not a number between 0 and 1")
                    .next_step("correct the value, or set `sample` in [trace]")
            })
        }
        other => Err(Error::new(
            ErrorKind::Invalid,
            format!("OTEL_TRACES_SAMPLER {other:?} is not supported"),
        )
        .because("only sampling by ratio, always on and always off are supported")
        .next_step("use parentbased_traceidratio, parentbased_always_on or parentbased_always_off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(configured: Option<f64>, sampler: &str, arg: &str) -> Option<f64> {
        let variable = |name: &str| match name {
            "OTEL_TRACES_SAMPLER" => Some(sampler.to_owned()),
            "OTEL_TRACES_SAMPLER_ARG" => Some(arg.to_owned()),
            _ => None,
        };
        roots(configured, variable).ok()
    }

    #[test]
    fn the_configuration_counts_more_than_variables_and_those_more_than_the_default() {
        assert_eq!(with(Some(0.25), "always_off", ""), Some(0.25));
        assert_eq!(with(None, "", ""), Some(1.0));
        assert_eq!(with(None, "always_off", ""), Some(0.0));
        assert_eq!(with(None, "parentbased_always_on", ""), Some(1.0));
        assert_eq!(with(None, "traceidratio", "0.01"), Some(0.01));
        assert_eq!(with(None, "parentbased_traceidratio", ""), Some(1.0));
        assert_eq!(with(None, "parentbased_traceidratio", "2"), None);
        assert_eq!(with(None, "jaeger_remote", ""), None);
    }
}
