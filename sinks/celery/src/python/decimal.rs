//! Decimals as Python prints them.

/// Python's `str` of the decimal in a text: with an exponent only where it is needed. A text that is not a number stays
/// as it is.
pub(super) fn canonical(text: &str) -> String {
    finite(text).unwrap_or_else(|| text.to_owned())
}

fn finite(text: &str) -> Option<String> {
    let (sign, number) = match text.strip_prefix(['+', '-']) {
        Some(number) if text.starts_with('-') => ("-", number),
        Some(number) => ("", number),
        None => ("", text),
    };
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits = match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let length = i64::try_from(digits.len()).ok()?;
    let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    // The number of digits before the point, without an exponent.
    let before = exponent.checked_add(length)?;
    let plain = exponent <= 0 && before > -6;
    let point = if plain { before } else { 1 };
    let mut printed = sign.to_owned();
    match usize::try_from(point).ok().filter(|point| *point > 0) {
        Some(point) if point < digits.len() => {
            let (whole, fraction) = digits.split_at(point);
            printed.extend([whole, ".", fraction]);
        }
        Some(_) => printed.push_str(digits),
        None => {
            let zeros = "0".repeat(usize::try_from(-point).ok()?);
            printed.extend(["0.", &zeros, digits]);
        }
    }
    if !plain {
        printed.push_str(&format!("E{:+}", before - 1));
    }
    Some(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each printed by Python's `str(Decimal(text))`.
    #[test]
    fn decimals_print_as_in_python() {
        for (text, printed) in [
            ("12.50", "12.50"),
            ("1e3", "1E+3"),
            ("-1.5E3", "-1.5E+3"),
            ("12e-1", "1.2"),
            ("0.00", "0.00"),
            ("-0", "-0"),
            ("+007", "7"),
            ("1E-7", "1E-7"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1E-7"),
            ("123e-9", "1.23E-7"),
            ("1230e-9", "0.000001230"),
            ("0e5", "0E+5"),
            (".5", "0.5"),
            ("5.", "5"),
            ("1e0", "1"),
            ("NaN", "NaN"),
            ("no number", "no number"),
            ("", ""),
            ("1e99999999999999999999", "1e99999999999999999999"),
        ] {
            assert_eq!(canonical(text), printed, "{text}");
        }
    }
}
