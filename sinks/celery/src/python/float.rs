//! Floats as Python reads and prints them.

/// Parses a JSON literal; a literal out of range is infinite, as in Python.
pub(super) fn parse(literal: &str) -> f64 {
    match literal {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        digits => digits.parse().unwrap_or(f64::NAN),
    }
}

/// Python's `repr`: the fewest digits that parse to the same float, and an exponent from 1e16 on and below 1e-4.
pub(super) fn repr(float: f64) -> String {
    if float.is_nan() {
        return "nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let exponential = format!("{float:e}");
    let Some((mantissa, exponent)) = exponential.split_once('e') else {
        return exponential;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if (-4..16).contains(&exponent) => {
            let plain = format!("{float}");
            if plain.contains('.') { plain } else { plain + ".0" }
        }
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        Err(_) => exponential,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_python() {
        for (literal, printed) in [
            ("1.0", "1.0"),
            ("1.10", "1.1"),
            ("-0.0", "-0.0"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("123456789012345678.0", "1.2345678901234568e+17"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e300", "1e+300"),
            ("5e-324", "5e-324"),
            ("1e999", "inf"),
            ("-1e999", "-inf"),
            ("NaN", "nan"),
        ] {
            assert_eq!(repr(parse(literal)), printed, "{literal}");
        }
    }
}
